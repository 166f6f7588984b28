use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn soon() -> Moment {
    Moment { now: at(20), quiet_since: Some(at(20)) }
}

fn located(event: Event) -> Located {
    Located { start: 0, end: 0, event }
}

fn notification(text: &str) -> Event {
    Event::Notification { source: NotificationSource::Osc9, text: text.into() }
}

fn status(text: &str) -> Event {
    Event::Status(text.into())
}

fn prompt(mark: char) -> Event {
    Event::Prompt { mark, rest: String::new() }
}

/// What happens, in order: second after second.
enum Step {
    Say(Event),
    Type,
}
use Step::{Say, Type};

fn after(steps: Vec<Step>) -> Evidence {
    let mut evidence = Evidence::default();
    for (second, step) in (1..).zip(steps) {
        match step {
            Say(event) => {
                evidence.hear(&[located(event)], at(second));
            }
            Type => {
                evidence.typed(at(second));
            }
        }
    }
    evidence
}

#[test]
fn what_evidence_comes_to() {
    use Attention::{DoneUnseen, Idle, Stuck, Unknown, WaitingAnswer, WaitingApproval, Working};
    let never = Watched::Since(None);
    let progress = |state, percent| Say(Event::Progress { state, percent });
    let blocked = "state=blocked:app=codex:kind=permission:msg=YXBwcm92ZSBCYXNo";
    for (steps, watched, expected) in [
        (vec![], never, None),
        // reports
        (vec![Say(status("state=working:app=codex"))], never, Some((Working, 1, "codex works"))),
        (vec![Say(status(blocked))], never, Some((WaitingApproval, 1, "approve Bash"))),
        (vec![Say(status(blocked))], Watched::Now, Some((WaitingApproval, 1, "approve Bash"))),
        (vec![Say(status(blocked)), Say(status("state=working:app=codex"))], never, Some((Working, 2, "codex works"))),
        (vec![Say(status(blocked)), Type], never, Some((Unknown, 2, "nothing has been said since something was typed"))),
        (vec![Say(status("state=blocked:kind=question"))], never, Some((WaitingAnswer, 1, "the program asks something"))),
        (vec![Say(status("state=error:app=x"))], never, Some((Stuck, 1, "x says that something went wrong"))),
        (vec![Say(status("state=done:app=x"))], never, Some((DoneUnseen, 1, "x is done"))),
        (vec![Say(status("state=done:app=x"))], Watched::Since(Some(at(1))), Some((Idle, 1, "x is done"))),
        (vec![Say(status("state=done:app=x"))], Watched::Since(Some(at(0))), Some((DoneUnseen, 1, "x is done"))),
        (vec![Say(status(blocked)), Say(Event::Reset)], never, None),
        (vec![Say(status(blocked)), Say(prompt('A'))], never, Some((Idle, 2, "at a prompt"))),
        (vec![Say(status("state=nonsense"))], never, None),
        // calls for somebody
        (vec![Say(notification("Build done"))], never, Some((WaitingAnswer, 1, "Build done"))),
        (vec![Say(notification("needs your Approval"))], never, Some((WaitingApproval, 1, "needs your Approval"))),
        (vec![Say(notification("a\u{202e}b"))], never, Some((WaitingAnswer, 1, "a·b"))),
        // looking at a question is no answer
        (vec![Say(notification("x"))], Watched::Since(Some(at(1))), Some((WaitingAnswer, 1, "x"))),
        (vec![Say(notification("x"))], Watched::Now, None),
        (vec![Say(notification("x")), Type], never, Some((Unknown, 2, "nothing has been said since something was typed"))),
        (vec![Say(Event::Bell)], never, Some((WaitingAnswer, 1, "the bell rang"))),
        (vec![Say(Event::Bell), Say(notification("x"))], never, Some((WaitingAnswer, 2, "x"))),
        (vec![Say(Event::Bell)], Watched::Since(Some(at(5))), None),
        // the stronger counts, whichever came first, but what is over is overtaken
        (vec![Say(status("state=working:app=x")), Say(Event::Bell)], never, Some((Working, 1, "x works"))),
        (vec![Say(status("state=idle:app=x")), Say(notification("y"))], never, Some((WaitingAnswer, 2, "y"))),
        (vec![Say(notification("y")), Say(status("state=idle:app=x"))], never, Some((Idle, 2, "x waits for a task"))),
        (vec![Say(prompt('C')), Say(Event::Bell)], never, Some((WaitingAnswer, 2, "the bell rang"))),
        // progress
        (vec![progress(1, Some(40))], never, Some((Working, 1, "40 % done"))),
        (vec![progress(1, Some(40)), progress(1, Some(50))], never, Some((Working, 1, "50 % done"))),
        (vec![progress(3, None)], never, Some((Working, 1, "makes progress"))),
        (vec![progress(2, None)], never, Some((Stuck, 1, "its progress has met an error"))),
        (vec![progress(4, None)], never, Some((WaitingAnswer, 1, "its progress is paused"))),
        (vec![progress(1, None), progress(0, None)], never, None),
        (vec![progress(1, None), Say(prompt('A'))], never, Some((Idle, 2, "at a prompt"))),
        // marks of a shell; typing at a prompt answers nothing
        (vec![Say(prompt('A')), Say(prompt('B'))], never, Some((Idle, 1, "at a prompt"))),
        (vec![Say(prompt('A')), Type], never, Some((Idle, 1, "at a prompt"))),
        (vec![Say(prompt('A')), Say(prompt('C'))], never, Some((Working, 2, "a command runs"))),
        (vec![Say(prompt('C')), Say(prompt('D')), Say(prompt('A'))], never, Some((Idle, 2, "at a prompt"))),
        (vec![Say(prompt('P'))], never, None),
        (vec![Type], never, None),
    ] {
        let count = steps.len();
        let found = after(steps).needs(watched, soon()).map(|needs| (needs.state, needs.since.as_second(), needs.why));
        let expected = expected.map(|(state, since, why): (Attention, i64, &str)| (state, since, why.to_owned()));
        assert_eq!(found, expected, "{count} steps, {watched:?}");
    }
}

fn hook(state: HookState, second: i64) -> Hooked {
    Hooked { agent: "Codex".into(), state, text: None, at: at(second) }
}

fn sign(state: Attention, second: i64) -> Sign {
    Sign { state, text: "Ready".into(), context: String::new(), is_weak: false, at: at(second) }
}

#[test]
fn hooks_are_believed_until_something_stronger_or_later_says_otherwise() {
    use Attention::{DoneUnseen, Idle, Unknown, WaitingAnswer, WaitingApproval, Working};
    type Case = (&'static str, fn(&mut Evidence), Moment, Option<(Attention, i64)>);
    let never = Watched::Since(None);
    let later = |second| Moment { now: at(second), quiet_since: Some(at(5)) };
    let cases: Vec<Case> = vec![
        ("works", |e| e.hooked(hook(HookState::State(Working), 5)), later(10), Some((Working, 5))),
        ("done", |e| e.hooked(hook(HookState::Done, 5)), later(10), Some((DoneUnseen, 5))),
        ("asks", |e| e.hooked(hook(HookState::State(WaitingApproval), 5)), later(100_000), Some((WaitingApproval, 5))),
        ("stale", |e| e.hooked(hook(HookState::State(Working), 5)), later(5 + 600), Some((Unknown, 5))),
        (
            "not stale while it prints",
            |e| e.hooked(hook(HookState::State(Working), 5)),
            Moment { now: at(900), quiet_since: Some(at(899)) },
            Some((Working, 5)),
        ),
        (
            "ended",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.hooked(hook(HookState::Ended, 6));
            },
            later(10),
            None,
        ),
        (
            "late",
            |e| {
                e.hooked(hook(HookState::Done, 6));
                e.hooked(hook(HookState::State(Working), 5));
            },
            later(10),
            Some((DoneUnseen, 6)),
        ),
        (
            "answered",
            |e| {
                e.hooked(hook(HookState::State(WaitingApproval), 5));
                e.typed(at(6));
            },
            later(10),
            Some((Unknown, 6)),
        ),
        (
            "typing does not end work",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.typed(at(6));
            },
            later(10),
            Some((Working, 5)),
        ),
        (
            "reports are stronger",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.hear(&[located(status("state=idle"))], at(4));
            },
            later(10),
            Some((Idle, 4)),
        ),
        (
            "a prompt ends it",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.hear(&[located(prompt('A'))], at(6));
            },
            later(10),
            Some((Idle, 6)),
        ),
        (
            "the title shows an interrupt",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.titled(Some(sign(Idle, 6)));
            },
            later(9),
            Some((Idle, 6)),
        ),
        (
            "but not at once",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.titled(Some(sign(Idle, 6)));
            },
            later(8),
            Some((Working, 5)),
        ),
        (
            "its shell is in front",
            |e| {
                e.hooked(hook(HookState::State(Working), 5));
                e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Shell) }, at(7));
            },
            later(10),
            Some((Idle, 7)),
        ),
        (
            "a notification after it was done",
            |e| {
                e.hooked(hook(HookState::Done, 5));
                e.hear(&[located(notification("hello?"))], at(6));
            },
            later(10),
            Some((WaitingAnswer, 6)),
        ),
    ];
    for (what, steps, moment, expected) in cases {
        let mut evidence = Evidence::default();
        steps(&mut evidence);
        let found = evidence.needs(never, moment).map(|needs| (needs.state, needs.since.as_second()));
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn what_can_be_seen_counts_least() {
    use Attention::{Idle, WaitingAnswer, WaitingApproval, Working};
    type Case = (&'static str, fn(&mut Evidence), Option<Attention>);
    let asks = || Some(Sign { text: "allow command?".into(), ..sign(WaitingApproval, 3) });
    let hides = || Sample { hides_line: true, foreground: None };
    let cases: Vec<Case> = vec![
        ("a title", |e| e.titled(Some(sign(Working, 1))), Some(Working)),
        (
            "no title any more",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.titled(None);
            },
            None,
        ),
        ("a password", |e| e.sampled(Sample { hides_line: true, foreground: None }, at(2)), Some(WaitingAnswer)),
        (
            "a password of a command",
            |e| {
                e.hear(&[located(prompt('C'))], at(1));
                e.sampled(Sample { hides_line: true, foreground: None }, at(2));
            },
            Some(WaitingAnswer),
        ),
        (
            "a password that was typed",
            |e| {
                e.sampled(Sample { hides_line: true, foreground: None }, at(2));
                e.typed(at(3));
            },
            Some(Attention::Unknown),
        ),
        (
            "a program in front",
            |e| e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Program("make".into())) }, at(2)),
            Some(Working),
        ),
        ("a shell in front", |e| e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Shell) }, at(2)), Some(Idle)),
    ];
    for (what, steps, expected) in cases {
        let mut evidence = Evidence::default();
        steps(&mut evidence);
        assert_eq!(evidence.needs(Watched::Since(None), soon()).map(|needs| needs.state), expected, "{what}");
    }
    let mut evidence = Evidence::default();
    evidence.on_screen(asks());
    assert_eq!(evidence.needs(Watched::Now, soon()).map(|needs| needs.why), Some("allow command?".into()));
    evidence.sampled(hides(), at(4));
    evidence.hear(&[located(prompt('A'))], at(5));
    assert_eq!(evidence.needs(Watched::Now, soon()).map(|needs| needs.state), Some(Idle), "a prompt is stronger than what is seen");
}

/// A title that an agent also shows while it asks.
fn weak(second: i64) -> Sign {
    Sign { is_weak: true, ..sign(Attention::Idle, second) }
}

fn question(context: &str, second: i64) -> Sign {
    Sign { text: "Do you want to proceed?".into(), context: context.into(), ..sign(Attention::WaitingApproval, second) }
}

#[test]
fn titles_and_screens_together_tell_working_asking_and_finished() {
    use Attention::{DoneUnseen, Idle, Unknown, WaitingApproval, Working};
    type Case = (&'static str, fn(&mut Evidence), Watched, Option<(Attention, i64)>);
    let never = Watched::Since(None);
    let cases: Vec<Case> = vec![
        ("idle from the start is not finished", |e| e.titled(Some(weak(1))), never, Some((Idle, 1))),
        (
            "a turn has ended",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.titled(Some(weak(2)));
            },
            never,
            Some((DoneUnseen, 2)),
        ),
        (
            "and was seen",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.titled(Some(weak(2)));
            },
            Watched::Since(Some(at(3))),
            Some((Idle, 2)),
        ),
        (
            "a title that goes away ends nothing",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.titled(None);
            },
            never,
            None,
        ),
        (
            "a screen that says nothing any more ends nothing",
            |e| {
                e.on_screen(Some(sign(Working, 1)));
                e.on_screen(None);
            },
            never,
            None,
        ),
        (
            "the screen counts more than a weak title",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.on_screen(Some(question("", 2)));
                e.titled(Some(weak(2)));
            },
            never,
            Some((WaitingApproval, 2)),
        ),
        (
            "but less than a strong one",
            |e| {
                e.on_screen(Some(question("", 2)));
                e.titled(Some(sign(Working, 3)));
            },
            never,
            Some((Working, 3)),
        ),
        (
            "a hook counts more than both",
            |e| {
                e.titled(Some(weak(1)));
                e.on_screen(Some(question("", 2)));
                e.hooked(hook(HookState::State(Working), 3));
            },
            never,
            Some((Working, 3)),
        ),
        (
            "a report counts more than both",
            |e| {
                e.on_screen(Some(question("", 2)));
                e.hear(&[located(status("state=idle"))], at(1));
            },
            never,
            Some((Idle, 1)),
        ),
        (
            "an answer is no end of a turn",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.on_screen(Some(question("", 2)));
                e.titled(Some(weak(2)));
                e.typed(at(3));
            },
            never,
            Some((Idle, 2)),
        ),
        (
            "without a title nothing is known after an answer",
            |e| {
                e.on_screen(Some(question("", 2)));
                e.typed(at(3));
            },
            never,
            Some((Unknown, 3)),
        ),
        (
            "the agent has left its shell",
            |e| {
                e.titled(Some(sign(Working, 1)));
                e.on_screen(Some(question("", 2)));
                e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Shell) }, at(4));
            },
            never,
            Some((Idle, 4)),
        ),
        (
            "a prompt of the shell",
            |e| {
                e.titled(Some(weak(1)));
                e.hear(&[located(prompt('A'))], at(4));
                e.hear(&[located(prompt('C'))], at(5));
            },
            never,
            Some((Working, 5)),
        ),
    ];
    for (what, steps, watched, expected) in cases {
        let mut evidence = Evidence::default();
        steps(&mut evidence);
        let found = evidence.needs(watched, soon()).map(|needs| (needs.state, needs.since.as_second()));
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_question_found_again_is_the_same_one() {
    let since = |evidence: &Evidence| evidence.decide(Watched::Since(None), soon()).map(|(needs, basis)| (needs.since.as_second(), basis));
    let mut evidence = Evidence::default();
    evidence.on_screen(Some(question("rm x", 1)));
    evidence.on_screen(Some(question("rm x", 5)));
    assert_eq!(since(&evidence), Some((1, Basis::Rules)));
    // a key that only moves in its menu
    assert!(evidence.typed(at(6)));
    evidence.on_screen(Some(question("rm x", 7)));
    assert_eq!(since(&evidence), Some((1, Basis::Rules)));
    evidence.on_screen(Some(question("rm y", 8)));
    assert_eq!(since(&evidence), Some((8, Basis::Rules)), "another question with the same words");
    evidence.dismiss(at(9));
    evidence.on_screen(Some(question("rm y", 10)));
    assert_eq!(since(&evidence).map(|(since, _)| since), Some(9), "what was dismissed stays dismissed");
    evidence.on_screen(Some(question("rm z", 11)));
    assert_eq!(since(&evidence), Some((11, Basis::Rules)));
}

#[test]
fn a_flood_is_one_call_and_ends_with_its_last_report() {
    let mut evidence = Evidence::default();
    let mut flood: Vec<Located> = (0..10_000).map(|_| located(Event::Bell)).collect();
    flood.extend((0..1000).map(|n| located(notification(&format!("n{n}")))));
    flood.extend((0..1000).map(|_| located(status("state=working"))));
    flood.push(located(status("state=idle")));
    let source = NotificationSource::Osc9;
    assert_eq!(evidence.hear(&flood, at(1)), [Call::Bell, Call::Notification { source, text: "n999".into() }]);
    assert_eq!(evidence.needs(Watched::Since(None), soon()).map(|needs| needs.state), Some(Attention::Idle));
}

#[test]
fn what_has_ended_is_news_until_it_is_seen() {
    let why = |status, reason, seen| ended(status, reason, at(10), seen).map(|needs| (needs.state, needs.why));
    let news = |why: &str| Some((Attention::DoneUnseen, why.to_owned()));
    assert_eq!(why(Status::Completed, Some("exit code 0"), None), news("completed"));
    assert_eq!(why(Status::Failed, Some("exit code 3"), None), news("failed: exit code 3"));
    assert_eq!(why(Status::Timeout, Some("idle"), Some(at(9))), news("timeout: idle"));
    assert_eq!(why(Status::Failed, None, Some(at(10))), None);
    assert_eq!(why(Status::Failed, None, Some(at(11))), None);
}

#[test]
fn terminals_speak_for_themselves_and_people_type() {
    for typed in
        [&b"y"[..], b"\r", b"\x1b", b"\x1b[A", b"\x1b[1;5C", b"\x1bOP", b"\x1b[97u", b"\x1b[Iy", b"\x1b[5~", b"\x1b[200~x\x1b[201~"]
    {
        assert!(is_typed(typed), "{:?}", String::from_utf8_lossy(typed));
    }
    for spoken in [
        &b""[..],
        b"\x1b[I",
        b"\x1b[O",
        b"\x1b[I\x1b[O",
        b"\x1b[?62;4c",
        b"\x1b[>1;10;0c",
        b"\x1b[12;40R",
        b"\x1b[0n",
        b"\x1b[<0;10;5M\x1b[<0;10;5m",
        b"\x1b[?1u",
        b"\x1b[?2026;2$y",
        b"\x1b[8;24;80t",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]10;rgb:ffff/ffff/ffff\x07",
        b"\x1bP>|kitty\x1b\\\x1b[?62c",
    ] {
        assert!(!is_typed(spoken), "{:?}", String::from_utf8_lossy(spoken));
    }
}
