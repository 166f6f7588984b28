//! The update as tables: what comes in, what is wanted.

mod mouse;
mod refusal;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use shared::attention::Attention;
use shared::id::SessionId;
use shared::live::{Pulse, Sight};
use shared::message::{Attached, Failure, Request};
use shared::session::{Session, Status};

use super::{App, Focus, Link, Overlay, Setting, View};
use crate::dashboard::event::{Asked, Effect, Event, PaneNews, PaneOrder, Reply, Then};
use crate::dashboard::state::act::Deed;
use crate::dashboard::state::remembered::{Layout, Remembered};
use crate::dashboard::state::tests::{needing, session};
use crate::keymap::{Key, Keymap};
use crate::settings::Look;
use crate::theme::Theme;

pub fn setting() -> Setting {
    Setting {
        look: Look { keymap: Keymap::default(), theme: Theme::none(), prefix: shared::config::Prefix::default() },
        here: "/home/me/src".into(),
        home: Some("/home/me".into()),
        zone: jiff::tz::TimeZone::UTC,
        at: jiff::Timestamp::UNIX_EPOCH,
        remembered: Remembered { is_known: true, ..Remembered::default() },
    }
}

pub fn app(width: u16, height: u16, sessions: Vec<Session>) -> App {
    let (mut app, _) = App::new(setting());
    app.update(Event::Time { now: Duration::from_secs(100), at: jiff::Timestamp::from_second(100).expect("a time") });
    app.update(Event::Resized(Rect::new(0, 0, width, height)));
    app.update(Event::Answer(Asked::List, Box::new(Reply::Sessions(sessions))));
    app
}

pub fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for name in keys.split(' ') {
        let key = if name == "SPACE" { Key::parse("space") } else { Key::parse(name) };
        effects = app.update(Event::Key(event(key.unwrap_or_else(|| panic!("{name} is a key")))));
    }
    effects
}

fn event(key: Key) -> KeyEvent {
    key.into()
}

fn typed(app: &mut App, text: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for c in text.chars() {
        effects = app.update(Event::Key(KeyEvent::from(KeyCode::Char(c))));
    }
    effects
}

fn pass(app: &mut App, by: Duration) -> Vec<Effect> {
    let at = app.at + jiff::SignedDuration::try_from(by).expect("a short time");
    app.update(Event::Time { now: app.now + by, at })
}

/// Without what is watched beside it.
fn deeds(effects: Vec<Effect>) -> Vec<Effect> {
    let is_watching = |effect: &Effect| matches!(effect, Effect::Ask(Asked::Look(_) | Asked::Pulse(_), _));
    effects.into_iter().filter(|effect| !is_watching(effect)).collect()
}

fn two() -> (App, SessionId, SessionId) {
    let (a, b) = (session("a", Status::Active), session("b", Status::Completed));
    let ids = (a.id, b.id);
    (app(80, 24, vec![a, b]), ids.0, ids.1)
}

#[test]
fn enter_attaches_to_what_lives_and_plays_what_has_ended() {
    let (mut app, a, b) = two();
    assert_eq!(deeds(press(&mut app, "enter")), vec![Effect::Attach { name: a.to_string(), watches: false }]);
    assert_eq!(deeds(press(&mut app, "W")), vec![Effect::Attach { name: a.to_string(), watches: true }]);
    let played = deeds(press(&mut app, "j enter"));
    assert!(matches!(&played[0], Effect::Ask(Asked::Open(_), Request::Replay(of)) if of.name == b.to_string()), "{played:?}");
    assert!(deeds(press(&mut app, "j j j k")).is_empty());
    assert_eq!(app.list.cursor, Some(a));
}

#[test]
fn what_takes_long_to_open_can_be_left() {
    let (mut app, _, _) = two();
    press(&mut app, "j enter");
    assert!(app.is_opening);
    assert!(deeds(press(&mut app, "q")).is_empty(), "q is about the recording, not the dashboard");
    assert!(!app.is_opening);
    assert_eq!(deeds(press(&mut app, "q")).last(), Some(&Effect::Quit));
}

#[test]
fn what_cannot_be_undone_is_asked_first() {
    let (mut app, a, b) = two();
    assert!(deeds(press(&mut app, "x")).is_empty());
    assert!(matches!(app.overlay, Some(Overlay::Confirm { .. })));
    assert!(deeds(press(&mut app, "n")).is_empty(), "n is no");
    let killed = deeds(press(&mut app, "x y"));
    assert!(matches!(&killed[..], [Effect::Ask(Asked::Deed(_, _, Deed::Kill), Request::Kill { name })] if *name == a.to_string()));
    assert!(deeds(press(&mut app, "D")).is_empty() && app.overlay.is_none(), "what runs cannot be removed");
    assert!(app.log.current().is_some_and(|message| message.text.contains("x ends it first")));
    let removed = deeds(press(&mut app, "j D y"));
    assert!(matches!(&removed[..], [Effect::Ask(_, Request::Remove { name })] if *name == b.to_string()));
}

#[test]
fn undo_says_what_it_cannot_take_back_and_touches_nothing_else() {
    let list: Vec<Session> = ["alpha", "zeta"].into_iter().map(|name| session(name, Status::Active)).collect();
    let mut app = app(80, 24, list);
    let said = |app: &App| app.log.current().map(|message| message.text.clone()).unwrap_or_default();
    assert_eq!(deeds(press(&mut app, "p")).len(), 1, "a is paused");
    assert_eq!(deeds(press(&mut app, "j x y")).len(), 1, "b is ended");
    assert!(deeds(press(&mut app, "u")).is_empty());
    assert_eq!(said(&app), "cannot undo: end zeta");
    assert!(deeds(press(&mut app, "u")).is_empty(), "not the pause before it either");
    // what is filtered out of view is left alone
    assert_eq!(deeds(press(&mut app, "g p")).len(), 1);
    app.list.filter = "zeta".into();
    app.list.arrange();
    assert!(deeds(press(&mut app, "u")).is_empty());
    assert_eq!(said(&app), "not undone: pause alpha: it is not shown here");
    app.list.filter.clear();
    app.list.arrange();
    assert!(matches!(&deeds(press(&mut app, "u"))[..], [Effect::Ask(_, Request::Resume(_))]));
    assert_eq!(said(&app), "undoing: pause alpha");
}

#[test]
fn a_completed_task_whose_program_runs_is_attached_to_and_not_removed() {
    let mut done = session("dev", Status::Completed);
    done.runtime_state = Some(shared::runtime::RuntimeState::Running { pid: 1 });
    let id = done.id.to_string();
    let mut app = app(80, 24, vec![done]);
    assert!(deeds(press(&mut app, "D")).is_empty() && app.overlay.is_none());
    assert!(app.log.current().is_some_and(|message| message.text.contains("its program still runs")));
    assert!(deeds(press(&mut app, "enter")).contains(&Effect::Attach { name: id, watches: false }));
}

#[test]
fn one_key_each_shows_what_asks_or_has_ended_and_a_second_reverses_the_order() {
    let mut app =
        app(80, 24, vec![needing("asks", Attention::WaitingAnswer), session("idle", Status::Active), session("over", Status::Completed)]);
    let shown = |app: &App| app.list.shown().map(|session| session.name.clone()).collect::<Vec<_>>();
    for (key, names) in [("1", &["asks"][..]), ("3", &["idle"]), ("4", &["over"]), ("4", &["asks", "idle", "over"])] {
        press(&mut app, key);
        let mut found = shown(&app);
        found.sort();
        assert_eq!(found, names, "{key}");
    }
    press(&mut app, "1 esc");
    assert_eq!(shown(&app).len(), 3, "esc shows all again");
    press(&mut app, "S");
    let order = shown(&app);
    press(&mut app, "O");
    assert_eq!(shown(&app), order.iter().rev().cloned().collect::<Vec<_>>());
    assert!(crate::dashboard::view::tests::find(&app, "name▴").is_some());
}

#[test]
fn several_are_paused_at_once_told_once_and_undone() {
    let list: Vec<Session> = ["a", "b", "c"].into_iter().map(|name| session(name, Status::Active)).collect();
    let mut app = app(80, 24, list);
    let paused = deeds(press(&mut app, "space space p"));
    assert_eq!(paused.len(), 2, "{paused:?}");
    let turn = match &paused[0] {
        Effect::Ask(Asked::Deed(turn, _, Deed::Pause), _) => *turn,
        other => panic!("{other:?}"),
    };
    assert_eq!(app.under_way(), Some(("pause".into(), 0, 2)));
    let id = app.list.all[0].id;
    let done = || Event::Answer(Asked::Deed(turn, id, Deed::Pause), Box::new(Reply::Done(None)));
    app.update(done());
    assert!(app.log.current().is_none(), "one is still under way");
    app.update(done());
    assert_eq!(app.log.current().map(|message| message.text.as_str()), Some("2 sessions paused"));
    assert!(app.list.selected.is_empty());
    let undone = deeds(press(&mut app, "u"));
    assert_eq!(undone.len(), 2);
    assert!(matches!(&undone[0], Effect::Ask(_, Request::Resume(_))));
    assert!(deeds(press(&mut app, "u")).is_empty(), "undoing is not undone");
}

#[test]
fn failures_are_said_and_kept() {
    let (mut app, _, _) = two();
    let asked = deeds(press(&mut app, "p"));
    let [Effect::Ask(asked, _)] = &asked[..] else { panic!("{asked:?}") };
    app.update(Event::Refused(asked.clone(), Failure::failed("the disk is full")));
    pass(&mut app, Duration::from_mins(10));
    assert_eq!(app.log.current().map(|message| message.text.as_str()), Some("the disk is full"), "until a key is pressed");
    press(&mut app, "m");
    assert!(matches!(app.views.last(), Some(View::Messages { .. })));
    assert!(app.log.messages.iter().any(|message| message.text == "the disk is full"));
    press(&mut app, "q");
    assert!(app.views.is_empty());
    assert_eq!(deeds(press(&mut app, "q")).last(), Some(&Effect::Quit));
}

#[test]
fn filters_narrow_as_one_types_and_esc_backs_out() {
    let list = ["alpha", "beta", "gamma"].into_iter().map(|name| session(name, Status::Active)).collect();
    let mut app = app(80, 24, list);
    press(&mut app, "/");
    typed(&mut app, "gam");
    assert_eq!(app.list.shown_count(), 1);
    assert_eq!(app.list.current().map(|session| session.name.as_str()), Some("gamma"));
    let kept = deeds(press(&mut app, "enter"));
    assert!(matches!(&kept[..], [Effect::Remember(kept)] if kept.filter == "gam"), "{kept:?}");
    press(&mut app, "space esc");
    assert!(app.list.selected.is_empty() && !app.list.filter.is_empty(), "one step at a time");
    press(&mut app, "esc");
    assert_eq!(app.list.shown_count(), 3);
    assert!(deeds(press(&mut app, "esc")).is_empty(), "esc alone never leaves");
}

#[test]
fn how_to_look_at_nothing_is_not_changed() {
    let mut app = app(80, 24, Vec::new());
    for key in ["t", "v"] {
        assert!(deeds(press(&mut app, key)).is_empty(), "{key} is not remembered");
        assert_eq!((app.layout, app.hides_preview), (Layout::List, false), "{key}");
        assert_eq!(app.log.current().map(|message| message.text.as_str()), Some("there is nothing to show yet"));
    }
    let (mut app, _, _) = two();
    press(&mut app, "/");
    typed(&mut app, "zzz");
    press(&mut app, "enter t");
    assert_eq!(app.layout, Layout::List);
    assert_eq!(app.log.current().map(|message| message.text.as_str()), Some("nothing fits the filter"));
}

#[test]
fn the_form_asks_and_stays_until_it_is_done() {
    let (mut app, _, _) = two();
    press(&mut app, "n");
    typed(&mut app, "npm run dev");
    let asked = deeds(press(&mut app, "ctrl-s"));
    assert!(matches!(&asked[..], [Effect::New(new, Then::Stay)] if new.argv.len() == 3 && new.here == "/home/me/src"), "{asked:?}");
    app.update(Event::Refused(Asked::New(Then::Stay), Failure::usage("no such folder")));
    assert!(matches!(&app.overlay, Some(Overlay::New(form)) if form.error.as_deref() == Some("no such folder")));
    let made = session("dev", Status::Active);
    let id = made.id;
    let after = app.update(Event::Answer(Asked::New(Then::Attach), Box::new(Reply::Session(Box::new(made)))));
    assert!(app.overlay.is_none());
    assert!(after.contains(&Effect::Attach { name: id.to_string(), watches: false }));
    assert_eq!(app.list.cursor, Some(id));
}

#[test]
fn lines_are_asked_for_and_sent() {
    let (mut app, a, _) = two();
    press(&mut app, "R ctrl-u");
    typed(&mut app, "backend");
    let renamed = deeds(press(&mut app, "enter"));
    assert!(matches!(&renamed[..], [Effect::Ask(_, Request::Rename { new, .. })] if new == "backend"));
    press(&mut app, "s");
    typed(&mut app, "git status");
    let sent = deeds(press(&mut app, "enter"));
    assert!(matches!(&sent[..], [Effect::Ask(_, Request::Send { name, .. })] if *name == a.to_string()));
    press(&mut app, "f");
    assert!(deeds(press(&mut app, "enter")).is_empty(), "a failure needs a reason");
    assert!(matches!(&app.overlay, Some(Overlay::Prompt(prompt)) if prompt.error.is_some()));
    press(&mut app, "esc !");
    press(&mut app, "tab");
    typed(&mut app, "1 + 1");
    let run = deeds(press(&mut app, "enter"));
    assert!(matches!(&run[..], [Effect::Remember(_), Effect::Exec { language: shared::exec::Language::Python, .. }]), "{run:?}");
    press(&mut app, "! up");
    assert!(matches!(&app.overlay, Some(Overlay::Prompt(prompt)) if prompt.line.text() == "1 + 1"), "what was run before");
    press(&mut app, "esc E");
    let written = deeds(press(&mut app, "enter"));
    assert!(matches!(&written[..], [Effect::Export { .. }]), "{written:?}");
}

#[test]
fn d3_a_short_result_is_a_line_and_a_long_one_a_page() {
    use crate::dashboard::state::output::tests::result;
    let (mut app, ..) = two();
    let run = |app: &mut App, code: &str| {
        press(app, "!");
        typed(app, code);
        let turn = deeds(press(app, "enter")).iter().find_map(|effect| match effect {
            Effect::Exec { turn, .. } => Some(*turn),
            _ => None,
        });
        turn.expect("it is run")
    };
    let answer = |app: &mut App, turn, result| app.update(Event::Answer(Asked::Exec(turn), Box::new(Reply::Exec(Box::new(result)))));
    let turn = run(&mut app, "echo 42");
    answer(&mut app, turn, result("a", "42\n", "", 0));
    assert!(app.shows_sessions());
    assert_eq!(app.log.current().map(|message| message.text.as_str()), Some("bash in a done: 42"));
    let turn = run(&mut app, "seq 100");
    answer(&mut app, turn, result("a", &"x\n".repeat(100), "", 0));
    assert!(matches!(app.views.last(), Some(View::Output)));
    press(&mut app, "esc");
    // whoever has gone on is not taken away from there
    let turn = run(&mut app, "seq 100");
    press(&mut app, "j");
    answer(&mut app, turn, result("a", &"x\n".repeat(100), "", 0));
    assert!(app.shows_sessions());
    assert_eq!(app.log.current().map(|message| message.text.as_str()), Some("bash in a done; o shows what it printed"));
    press(&mut app, "o");
    assert!(matches!(app.views.last(), Some(View::Output)));
    // one that still runs is asked for again
    press(&mut app, "esc");
    let turn = run(&mut app, "sleep 9");
    let mut running = result("a", "first\n", "", 0);
    (running.running, running.exit_code) = (true, None);
    let again = answer(&mut app, turn, running);
    assert!(again.iter().any(|effect| matches!(effect, Effect::Ask(Asked::Exec(of), Request::Result { .. }) if *of == turn)), "{again:?}");
}

#[test]
fn only_what_is_seen_is_watched() {
    let list: Vec<Session> = (0..1000).map(|n| session(&format!("s{n:04}"), Status::Active)).collect();
    let mut app = app(80, 24, list);
    let first = app.update(Event::Time { now: app.now, at: app.at });
    let all: Vec<&Effect> = first.iter().collect();
    assert!(all.len() <= 2, "{all:?}");
    let mut watched = 0;
    for _ in 0..50 {
        for effect in press(&mut app, "j") {
            if let Effect::Ask(Asked::Pulse(_), Request::Pulse(of)) = &effect {
                watched = watched.max(of.sessions.len());
            }
        }
    }
    assert!(watched <= 24, "{watched}");
    press(&mut app, "t");
    assert_eq!(app.layout, Layout::Grid);
    let looks: Vec<Effect> = press(&mut app, "j").into_iter().filter(|effect| matches!(effect, Effect::Ask(Asked::Look(_), _))).collect();
    assert!(looks.len() <= 4, "as many as there are tiles: {}", looks.len());
}

#[test]
fn an_idle_dashboard_has_next_to_nothing_to_do() {
    let mut quiet = session("quiet", Status::Active);
    quiet.last_activity_at = jiff::Timestamp::from_second(-100_000).expect("a time");
    let id = quiet.id;
    let mut app = app(80, 24, vec![quiet]);
    let mut asked = 0;
    // an hour, every deadline met, every question answered after its wait with "nothing new"
    let until = app.now + Duration::from_hours(1);
    let mut answers: Vec<(Duration, Asked)> = Vec::new();
    let mut wakes = 0;
    while app.now < until {
        let next =
            [app.next_deadline(), answers.iter().map(|(at, _)| *at).min()].into_iter().flatten().min().expect("something is always due");
        let by = next.saturating_sub(app.now).max(Duration::from_millis(1));
        let mut effects = pass(&mut app, by);
        wakes += 1;
        let now = app.now;
        let (due, later): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(at, _)| *at <= now);
        answers = later;
        for (_, what) in due {
            let reply = match &what {
                Asked::Look(_) => Reply::Sight(Sight { at: 5, keyframe: None, is_live: true }),
                _ => Reply::Pulses(vec![Pulse {
                    session: id,
                    output: 5,
                    cpu_ms: Some(0),
                    memory: None,
                    processes: None,
                    foreground: None,
                    title: None,
                    unreachable: None,
                }]),
            };
            effects.extend(app.update(Event::Answer(what, Box::new(reply))));
        }
        for effect in effects {
            let Effect::Ask(what, request) = effect else { panic!("{effect:?}") };
            asked += 1;
            let wait = match request {
                Request::Look(look) => look.wait_ms.unwrap_or(0),
                Request::Pulse(of) => of.wait_ms.unwrap_or(0),
                other => panic!("{other:?}"),
            };
            answers.push((app.now + Duration::from_millis(wait), what));
        }
    }
    assert!(asked < 200, "about two questions a minute: {asked}");
    assert!(wakes < 500, "{wakes}");
}

#[test]
fn news_are_gathered_and_only_their_rows_asked_for() {
    let (mut app, a, _) = two();
    let event = |seq| shared::event::Event {
        seq,
        n: 1,
        session: a,
        thread: shared::id::ThreadId::new(),
        name: "a".into(),
        at: jiff::Timestamp::UNIX_EPOCH,
        author: shared::event::Author::Api,
        kind: "iteration".into(),
        data: serde_json::Value::Null,
    };
    for seq in 0..100 {
        assert!(deeds(app.update(Event::Told(Box::new(event(seq))))).is_empty());
    }
    let asked = deeds(pass(&mut app, Duration::from_millis(100)));
    assert!(matches!(&asked[..], [Effect::Ask(Asked::Rows(ids), Request::Rows { .. })] if *ids == vec![a]), "{asked:?}");
    app.update(Event::Told(Box::new(event(101))));
    assert!(deeds(pass(&mut app, Duration::from_millis(100))).is_empty(), "one at a time");
    let mut changed = session("a", Status::Paused);
    changed.id = a;
    app.update(Event::Answer(Asked::Rows(vec![a]), Box::new(Reply::Sessions(vec![changed]))));
    assert_eq!(app.list.get(a).map(|session| session.status), Some(Status::Paused));
    assert_eq!(deeds(pass(&mut app, Duration::from_millis(100))).len(), 1);
}

#[test]
fn a_daemon_that_dies_leaves_the_view_as_it_was() {
    let (mut app, _, b) = two();
    press(&mut app, "j i");
    let effects = app.update(Event::Lost);
    assert!(effects.contains(&Effect::Connect));
    assert_eq!(app.link, Link::Lost);
    assert!(pass(&mut app, Duration::from_secs(5)).is_empty(), "nobody is asked who is not there");
    let back = app.update(Event::Back);
    assert!(back.iter().any(|effect| matches!(effect, Effect::Ask(Asked::List, _))));
    assert!(back.iter().any(|effect| matches!(effect, Effect::Ask(Asked::Layers(_), _))), "the detail is asked for anew");
    assert!(matches!(app.views.last(), Some(View::Detail(_))));
    assert_eq!(app.list.cursor, Some(b));
    app.update(Event::Stopped);
    assert_eq!(app.link, Link::Stopped);
    assert!(press(&mut app, "ctrl-r").contains(&Effect::Connect), "stopped on purpose: only when asked");
}

#[test]
fn keys_go_to_the_terminal_beside_the_list_until_the_prefix() {
    let (mut app, a, _) = two();
    let opened = deeds(press(&mut app, "tab"));
    let turn = match &opened[..] {
        [Effect::Pane(PaneOrder::Open { turn, name, size, .. })] if *name == a.to_string() => {
            assert_eq!((size.cols, size.rows), (50, 21));
            *turn
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(app.focus, Focus::Pane);
    assert!(deeds(press(&mut app, "q")).is_empty(), "kept until it is there");
    let attached = Attached { session: a, name: "a".into(), control: true, direct: false, ended: None, runtime: None, taken: None };
    let typed_ahead = app.update(Event::Pane(turn, PaneNews::Attached(Box::new(attached))));
    assert_eq!(deeds(typed_ahead), vec![Effect::Pane(PaneOrder::Type(b"q".to_vec()))]);
    assert_eq!(deeds(press(&mut app, "ctrl-c")), vec![Effect::Pane(PaneOrder::Type(vec![3]))], "not for us");
    assert_eq!(deeds(press(&mut app, "ctrl-b ctrl-b")), vec![Effect::Pane(PaneOrder::Type(vec![2]))]);
    app.update(Event::Pane(turn, PaneNews::Output(b"\x1b[?2004hhello".to_vec())));
    assert_eq!(
        deeds(app.update(Event::Paste("two\nlines".into()))),
        vec![Effect::Pane(PaneOrder::Type(b"\x1b[200~two\nlines\x1b[201~".to_vec()))]
    );
    app.update(Event::Pane(turn + 1, PaneNews::Output(b"of another".to_vec())));
    assert_eq!(app.pane.as_ref().map(|pane| pane.screen.row_text(0)), Some("hello".into()));
    press(&mut app, "ctrl-b d");
    assert_eq!(app.focus, Focus::List);
    let resized = deeds(app.update(Event::Resized(Rect::new(0, 0, 120, 40))));
    assert!(matches!(&resized[..], [Effect::Pane(PaneOrder::Resize(size))] if size.rows == 37), "{resized:?}");
    assert_eq!(deeds(press(&mut app, "tab")), vec![Effect::Pane(PaneOrder::Close)]);
    assert!(app.pane.is_none());
}

#[test]
fn moving_in_the_list_beside_a_terminal_only_looks() {
    let list: Vec<Session> = ["a", "b"].into_iter().map(|name| session(name, Status::Active)).collect();
    let mut app = app(100, 30, list);
    press(&mut app, "tab ctrl-b d");
    let moved = deeds(press(&mut app, "j"));
    let Some(Effect::Pane(PaneOrder::Open { turn, watches: true, .. })) = moved.last() else { panic!("{moved:?}") };
    let attached =
        Attached { session: SessionId::new(), name: "b".into(), control: false, direct: false, ended: None, runtime: None, taken: None };
    app.update(Event::Pane(*turn, PaneNews::Attached(Box::new(attached))));
    assert_eq!(deeds(press(&mut app, "enter")), vec![Effect::Pane(PaneOrder::TakeControl)], "typing is another matter");
    assert_eq!(app.focus, Focus::Pane);
}

#[test]
fn a_form_is_sent_once_and_can_be_left() {
    let (mut app, _, _) = two();
    press(&mut app, "n");
    assert_eq!(deeds(press(&mut app, "enter")).len(), 1);
    assert!(deeds(press(&mut app, "enter")).is_empty(), "it is under way");
    press(&mut app, "esc");
    let made = Reply::Session(Box::new(session("late", Status::Active)));
    let after = app.update(Event::Answer(Asked::New(Then::Attach), Box::new(made)));
    assert!(!after.iter().any(|effect| matches!(effect, Effect::Attach { .. })), "{after:?}");
}

#[test]
fn the_mouse_points_and_clicks() {
    let (mut app, a, b) = two();
    let click = |column, row| {
        Event::Mouse(MouseEvent { kind: MouseEventKind::Down(MouseButton::Left), column, row, modifiers: KeyModifiers::NONE })
    };
    app.update(click(5, 3));
    assert_eq!(app.list.cursor, Some(b));
    app.update(click(5, 2));
    assert_eq!(app.list.cursor, Some(a));
    let twice = app.update(click(5, 2));
    assert!(twice.contains(&Effect::Attach { name: a.to_string(), watches: false }), "{twice:?}");
    let wheel = Event::Mouse(MouseEvent { kind: MouseEventKind::ScrollDown, column: 5, row: 2, modifiers: KeyModifiers::NONE });
    app.update(wheel);
    assert_eq!(app.list.cursor, Some(b));
    app.update(click(1, 23));
    let clicked = app.update(click(2, 23));
    assert!(!clicked.is_empty() || app.overlay.is_some(), "the footer's keys can be clicked");
}

#[test]
fn whoever_rested_on_news_has_seen_them() {
    let news = needing("done", Attention::DoneUnseen);
    let id = news.id;
    let mut app = app(80, 24, vec![news, session("other", Status::Active)]);
    assert_eq!(app.list.cursor, Some(id));
    assert!(deeds(press(&mut app, "j")).is_empty(), "a glance is not enough");
    press(&mut app, "k");
    pass(&mut app, Duration::from_secs(2));
    let seen = deeds(press(&mut app, "j"));
    assert!(matches!(&seen[..], [Effect::Ask(Asked::Seen, Request::Seen { name })] if *name == id.to_string()), "{seen:?}");
}

#[test]
fn the_palette_does_what_it_names() {
    let (mut app, _, _) = two();
    press(&mut app, ":");
    typed(&mut app, "statistics");
    let asked = deeds(press(&mut app, "enter"));
    assert!(matches!(app.views.last(), Some(View::Stats(_))));
    assert_eq!(asked.len(), 3);
    press(&mut app, "? q");
    assert!(app.overlay.is_none(), "any key closes the help");
    assert!(matches!(app.views.last(), Some(View::Stats(_))));
}

#[test]
fn the_search_opens_the_very_moment() {
    let (mut app, a, _) = two();
    press(&mut app, "ctrl-s");
    typed(&mut app, "panic");
    let begun = pass(&mut app, Duration::from_secs(1));
    let Some(Effect::Search(turn, _)) = begun.iter().find(|effect| matches!(effect, Effect::Search(..))) else { panic!("{begun:?}") };
    let runtime = shared::id::RuntimeId::new();
    let hit = shared::search::Hit {
        session: a,
        name: "a".into(),
        thread: shared::id::ThreadId::new(),
        kind: shared::search::Kind::Output,
        part: None,
        at: jiff::Timestamp::UNIX_EPOCH,
        runtime: Some(runtime),
        offset: Some(77),
        exec: None,
        language: None,
        exit_code: None,
        author: None,
        line: "thread main panicked".into(),
        ranges: vec![(12, 17)],
        perceived: None,
        before: vec![],
        after: vec![],
        times: 1,
    };
    app.update(Event::Hit(*turn, Box::new(hit)));
    press(&mut app, "enter");
    let opened = deeds(press(&mut app, "enter"));
    assert!(matches!(&opened[..], [Effect::Ask(Asked::Open(_), Request::Replay(of))] if of.runtime == Some(runtime)), "{opened:?}");
    assert_eq!(deeds(press(&mut app, "esc esc")), vec![Effect::StopSearch], "first what is being opened, then the search");
}
