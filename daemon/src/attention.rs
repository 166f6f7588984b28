//! Whether a session needs a person: pure rules over evidence. What is heard of a program is kept with its time; what it
//! comes to is decided when somebody asks. Silence alone never becomes anything.

mod report;

use jiff::Timestamp;
use serde_json::json;
use shared::attention::{Attention, Needs};
use shared::screen::{Event, Located, NotificationSource};
use shared::session::Status;
use shared::text::{fit, visible};

use report::{Kind, Records, State};

/// Of a batch of output the last so many reports are looked at: a flood of them says no more than its end.
const MAX_REPORTS: usize = 64;

/// Columns of a reason.
const MAX_WHY: usize = 200;

/// What a program has said that bears on attention. The strongest counts: reports of its own, then notifications and bells,
/// then progress, then marks of a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    reports: Records,
    notification: Option<(Timestamp, String)>,
    bell: Option<Timestamp>,
    progress: Option<(Timestamp, Progress)>,
    shell: Option<(Timestamp, Shell)>,
    /// What was asked was answered then, and nothing has been said since.
    answered: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    At(Option<u8>),
    Failed,
    Paused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Prompt,
    Command,
}

/// What people should hear of besides a changed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Bell,
    Notification { source: NotificationSource, text: String },
}

impl Call {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bell => "bell",
            Self::Notification { .. } => "notification",
        }
    }

    pub fn data(&self) -> serde_json::Value {
        match self {
            Self::Bell => json!({}),
            Self::Notification { source, text } => {
                let source = match source {
                    NotificationSource::Osc9 => "osc9",
                    NotificationSource::Osc99 => "osc99",
                    NotificationSource::Osc777 => "osc777",
                };
                json!({"text": text, "source": source})
            }
        }
    }
}

/// Whether somebody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Somebody is there who may type.
    Now,
    /// Not since then; never, if there is no time.
    Since(Option<Timestamp>),
}

impl Watched {
    fn has_seen(self, at: Timestamp) -> bool {
        match self {
            Self::Now => true,
            Self::Since(seen) => seen.is_some_and(|seen| seen >= at),
        }
    }
}

/// Whether any of this bears on attention.
pub fn concerns(events: &[Located]) -> bool {
    events.iter().any(|located| {
        matches!(
            located.event,
            Event::Bell | Event::Notification { .. } | Event::Progress { .. } | Event::Prompt { .. } | Event::Status(_) | Event::Reset
        )
    })
}

impl Evidence {
    /// What a batch of output says. Gives the last bell and notification in it.
    pub fn hear(&mut self, events: &[Located], at: Timestamp) -> Vec<Call> {
        let reports = events.iter().filter(|located| matches!(located.event, Event::Status(_))).count();
        let mut skipped = reports.saturating_sub(MAX_REPORTS);
        let (mut bell, mut notification) = (None, None);
        for located in events {
            match &located.event {
                Event::Bell => bell = Some(Call::Bell),
                Event::Notification { source, text } => notification = Some((*source, text)),
                Event::Progress { state, percent } => {
                    let progress = match state {
                        1 | 3 => Some(Progress::At(*percent)),
                        2 => Some(Progress::Failed),
                        4 => Some(Progress::Paused),
                        _ => None,
                    };
                    // since when it makes progress, not when it last said so
                    let since = match (self.progress, progress) {
                        (Some((since, Progress::At(_))), Some(Progress::At(_))) => since,
                        _ => at,
                    };
                    self.progress = progress.map(|progress| (since, progress));
                }
                Event::Prompt { mark, .. } => self.mark(*mark, at),
                Event::Status(_) if skipped > 0 => skipped -= 1,
                Event::Status(text) => {
                    if let Some(said) = report::parse(text) {
                        self.reports.take(said, at);
                    }
                }
                Event::Reset => {
                    self.reports.clear();
                    self.progress = None;
                }
                _ => {}
            }
        }
        let notification = notification.map(|(source, text)| Call::Notification { source, text: one_line(text) });
        if bell.is_some() {
            self.bell = Some(at);
        }
        if let Some(Call::Notification { text, .. }) = &notification {
            self.notification = Some((at, text.clone()));
        }
        self.answered = None;
        bell.into_iter().chain(notification).collect()
    }

    /// OSC 133: `A` and `B` belong to a prompt, `C` begins a command's output, `D` ends it.
    fn mark(&mut self, mark: char, at: Timestamp) {
        let shell = match mark {
            'A' | 'B' | 'D' => Shell::Prompt,
            'C' => Shell::Command,
            _ => return,
        };
        if shell == Shell::Prompt {
            // whatever ran is over
            self.reports.prompt();
            self.progress = None;
        }
        if self.shell.is_none_or(|(_, before)| before != shell) {
            self.shell = Some((at, shell));
        }
    }

    /// Somebody has typed into it: whatever asked for a person has got one.
    pub fn typed(&mut self, at: Timestamp) {
        let mut asked = self.reports.answered();
        asked |= self.notification.take().is_some();
        asked |= self.bell.take().is_some();
        asked |= matches!(self.progress, Some((_, Progress::Failed | Progress::Paused)));
        self.progress = self.progress.filter(|(_, progress)| matches!(progress, Progress::At(_)));
        if asked {
            self.answered = Some(at);
        }
    }

    /// What it comes to; nothing if nothing has been said.
    pub fn needs(&self, watched: Watched) -> Option<Needs> {
        let calls = self.calls(watched);
        if let Some((since, report, app)) = self.reports.foremost() {
            // what is done or idle is overtaken by a call for somebody; what works or asks by itself is not
            let is_overtaken = |called: &Needs| called.since > since && matches!(report.state, State::Idle | State::Done);
            return Some(calls.filter(is_overtaken).unwrap_or_else(|| reported(since, report, app, watched)));
        }
        calls
            .or_else(|| self.progress.map(|(since, progress)| progressing(since, progress)))
            .or_else(|| self.of_shell())
            .or_else(|| self.answered.map(|since| needs(Attention::Unknown, since, "nothing has been said since something was typed")))
    }

    /// Notifications and bells that nobody has seen. One text says more than one bell.
    fn calls(&self, watched: Watched) -> Option<Needs> {
        if let Some((at, text)) = self.notification.as_ref().filter(|(at, _)| !watched.has_seen(*at)) {
            return Some(needs(if asks_for_approval(text) { Attention::WaitingApproval } else { Attention::WaitingAnswer }, *at, text));
        }
        let at = self.bell.filter(|at| !watched.has_seen(*at))?;
        Some(needs(Attention::WaitingAnswer, at, "the bell rang"))
    }

    fn of_shell(&self) -> Option<Needs> {
        let (since, shell) = self.shell?;
        Some(match shell {
            Shell::Prompt => needs(Attention::Idle, since, "at a prompt"),
            Shell::Command => needs(Attention::Working, since, "a command runs"),
        })
    }
}

fn asks_for_approval(text: &str) -> bool {
    let text = text.to_lowercase();
    ["permission", "approval", "approve", "allow"].iter().any(|word| text.contains(word))
}

fn reported(since: Timestamp, report: &report::Report, app: Option<&str>, watched: Watched) -> Needs {
    let app = app.unwrap_or("the program");
    let (state, plain) = match report.state {
        State::Blocked(Kind::Permission) => (Attention::WaitingApproval, format!("{app} asks for permission")),
        State::Blocked(Kind::Question) => (Attention::WaitingAnswer, format!("{app} asks something")),
        State::Blocked(Kind::Auth) => (Attention::WaitingAnswer, format!("{app} wants somebody to sign in")),
        State::Blocked(Kind::Unsaid) => (Attention::WaitingAnswer, format!("{app} waits for somebody")),
        State::Error => (Attention::Stuck, format!("{app} says that something went wrong")),
        State::Working => (Attention::Working, format!("{app} works")),
        State::Done if watched.has_seen(since) => (Attention::Idle, format!("{app} is done")),
        State::Done => (Attention::DoneUnseen, format!("{app} is done")),
        State::Idle => (Attention::Idle, format!("{app} waits for a task")),
    };
    needs(state, since, report.message.as_deref().unwrap_or(&plain))
}

fn progressing(since: Timestamp, progress: Progress) -> Needs {
    match progress {
        Progress::At(Some(percent)) => needs(Attention::Working, since, &format!("{percent} % done")),
        Progress::At(None) => needs(Attention::Working, since, "makes progress"),
        Progress::Failed => needs(Attention::Stuck, since, "its progress has met an error"),
        Progress::Paused => needs(Attention::WaitingAnswer, since, "its progress is paused"),
    }
}

fn needs(state: Attention, since: Timestamp, why: &str) -> Needs {
    Needs { state, since, why: one_line(why) }
}

fn one_line(text: &str) -> String {
    fit(&visible(text.trim()), MAX_WHY)
}

/// A session that is over: news until somebody has looked.
pub fn ended(status: Status, reason: Option<&str>, ended_at: Timestamp, seen_at: Option<Timestamp>) -> Option<Needs> {
    if Watched::Since(seen_at).has_seen(ended_at) {
        return None;
    }
    let why = match reason {
        Some(reason) if status != Status::Completed => format!("{status}: {reason}"),
        _ => status.to_string(),
    };
    Some(needs(Attention::DoneUnseen, ended_at, &why))
}

/// A program of which nothing is known.
pub fn silent(since: Timestamp) -> Needs {
    needs(Attention::Unknown, since, "nothing has said anything")
}

/// A session in which only interpreters run: they say themselves what they do.
pub fn of_calls(open: u64, since: Timestamp) -> Needs {
    match open {
        0 => needs(Attention::Idle, since, "no call runs"),
        1 => needs(Attention::Working, since, "a call runs"),
        more => needs(Attention::Working, since, &format!("{more} calls run or wait")),
    }
}

/// Whether bytes from a terminal were typed. Terminals also speak for themselves: answers to queries, focus, the mouse.
pub fn is_typed(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        match spoken(rest) {
            Some(length) => rest = &rest[length..],
            None => return true,
        }
    }
    false
}

/// The length of what a terminal says by itself at the beginning, if it is that.
fn spoken(bytes: &[u8]) -> Option<usize> {
    match bytes {
        // OSC, DCS, APC: answers, up to their end
        [0x1b, b']' | b'P' | b'_', body @ ..] => {
            let end = body.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
            Some(2 + end + if body[end] == 0x1b { 2.min(body.len() - end) } else { 1 })
        }
        [0x1b, b'[', body @ ..] => {
            let end = body.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let is_private = matches!(body.first(), Some(b'?' | b'>' | b'<'));
            let speaks = match body[end] {
                b'I' | b'O' => end == 0,
                b'M' | b'm' | b'c' | b'u' | b'y' => is_private,
                b'R' | b'n' | b't' => true,
                _ => false,
            };
            speaks.then_some(2 + end + 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
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
                Type => evidence.typed(at(second)),
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
            (vec![Say(notification("x"))], Watched::Since(Some(at(1))), None),
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
            let found = after(steps).needs(watched).map(|needs| (needs.state, needs.since.as_second(), needs.why));
            let expected = expected.map(|(state, since, why): (Attention, i64, &str)| (state, since, why.to_owned()));
            assert_eq!(found, expected, "{count} steps, {watched:?}");
        }
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
        assert_eq!(evidence.needs(Watched::Since(None)).map(|needs| needs.state), Some(Attention::Idle));
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
}
