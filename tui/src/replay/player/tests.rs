//! The player as a whole: keys and answers in, effects and pictures out.

use super::*;
use crate::replay::event::Waits;
use crate::replay::reel::tests::{moment, output};
use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shared::id::{RuntimeId, SessionId};
use shared::replay::{Position, Record, Records, What};
use shared::runtime::ExitStatus;

const S: u64 = 1_000_000;

pub fn outline() -> Outline {
    Outline {
        missing: Vec::new(),
        runtime: RuntimeId::new(),
        session: SessionId::new(),
        name: "api".into(),
        title: None,
        language: None,
        command: vec!["bash".into()],
        began_at: jiff::Timestamp::UNIX_EPOCH,
        first: Position::default(),
        end: Position { offset: 1000, time: 100 * S },
        is_live: false,
        points: vec![Position::default(), Position { offset: 1000, time: 100 * S }],
        grain: 200 * S,
        marks: Vec::new(),
        marks_left_off: 0,
    }
}

#[test]
fn it_begins_so_long_before_the_end() {
    for (text, time) in [("-10s", 90 * S), ("+10s", 10 * S), ("-1h", 0)] {
        let start = Start { place: Some(Place::parse(text).expect(text)), ..Start::default() };
        let (player, _) = Player::new(outline(), &start, TimeZone::UTC).expect("a player");
        assert_eq!(player.time, time, "{text}");
    }
}

const SIZE: Size = Size { cols: 80, rows: 24 };

fn opened(outline: Outline, start: &Start) -> (Player, Vec<Effect>) {
    let (mut player, effects) = Player::new(outline, start, TimeZone::UTC).expect("a player");
    player.update(Event::Resized(Rect::new(0, 0, 80, 26)));
    (player, effects)
}

/// One that plays from the beginning and has loaded these.
fn playing(records: Vec<Record>) -> Player {
    let (mut player, effects) = opened(outline(), &Start::default());
    assert_eq!(effects, [Effect::Seek(1, Seek::Time { time: 0 })]);
    let effects = player.update(Event::Moment(1, moment("zero", Position::default(), SIZE)));
    assert_eq!(effects, [Effect::Records { turn: 2, from: 0, waits: Waits::No }]);
    player.update(Event::Records(2, Records { records, at_end: true, is_live: false, end: 1000 }));
    player
}

fn press(player: &mut Player, code: KeyCode) -> Vec<Effect> {
    player.update(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_in(player: &mut Player, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| press(player, if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) })).collect()
}

fn at(player: &mut Player, seconds: f64) -> Vec<Effect> {
    player.update(Event::Time(Duration::from_secs_f64(seconds)))
}

fn top(player: &Player) -> String {
    player.screen().map(|screen| screen.row_text(0)).unwrap_or_default()
}

pub fn drawn(player: &Player, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
    terminal.draw(|frame| view::draw(player, frame, frame.area())).expect("draws");
    let buffer = terminal.backend().buffer().clone();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn it_plays_when_things_happened_and_stops_at_the_end() {
    let mut player = playing(vec![output(10, S, " one"), output(20, 2 * S, " two"), output(1000, 100 * S, " end")]);
    assert_eq!(player.next_deadline(), Some(TICK));
    at(&mut player, 0.9);
    assert_eq!(top(&player), "zero");
    at(&mut player, 1.0);
    assert_eq!(top(&player), "zero one");
    press(&mut player, KeyCode::Char(' '));
    assert_eq!(player.next_deadline(), None, "nothing ticks while it is paused");
    at(&mut player, 50.0);
    assert_eq!((top(&player).as_str(), player.time), ("zero one", S));
    press(&mut player, KeyCode::Char(' '));
    at(&mut player, 51.0);
    assert_eq!(top(&player), "zero one two");
    for _ in 0..6 {
        press(&mut player, KeyCode::Char('+'));
    }
    at(&mut player, 52.0);
    assert_eq!(player.time, (2 + 64) * S);
    at(&mut player, 53.0);
    assert_eq!((top(&player).as_str(), player.state, player.time), ("zero one two end", State::Paused, 100 * S));
    assert_eq!(press(&mut player, KeyCode::Char(' ')), [Effect::Seek(3, Seek::Time { time: 0 })], "from the beginning again");
}

#[test]
fn long_pauses_are_short_unless_asked_for() {
    let mut outline = outline();
    outline.grain = S;
    let (mut player, _) = opened(outline, &Start::default());
    player.update(Event::Moment(1, moment("", Position::default(), SIZE)));
    player.update(Event::Records(2, Records { records: vec![output(1000, 100 * S, "end")], at_end: true, is_live: false, end: 1000 }));
    at(&mut player, 1.0);
    assert_eq!(player.time, 50 * S);
    press(&mut player, KeyCode::Char('i'));
    assert_eq!(player.limit.label(), "idle 5s");
    at(&mut player, 2.0);
    assert_eq!(player.time, 70 * S, "the clock goes on from where it was");
}

#[test]
fn one_seek_at_a_time_and_the_last_wish_counts() {
    let mut player = playing(vec![]);
    let time = |time| Seek::Time { time: time * S };
    assert_eq!(press(&mut player, KeyCode::Char('5')), [Effect::Seek(3, time(50))]);
    assert_eq!(press(&mut player, KeyCode::Char('7')), []);
    assert_eq!(press(&mut player, KeyCode::PageDown), []);
    assert_eq!(player.time, 80 * S, "shown at once");
    let effects = player.update(Event::Moment(3, moment("fifty", Position { offset: 500, time: 49 * S }, SIZE)));
    assert_eq!(effects, [Effect::Seek(4, time(80))]);
    assert_eq!(player.time, 80 * S);
    assert_eq!(player.update(Event::Moment(3, moment("too late", Position::default(), SIZE))), []);
    player.update(Event::Moment(4, moment("eighty", Position { offset: 800, time: 79 * S }, SIZE)));
    assert_eq!((top(&player).as_str(), player.time), ("eighty", 80 * S));
}

#[test]
fn steps_pause_and_are_counted() {
    let mut player = playing(vec![]);
    assert_eq!(press(&mut player, KeyCode::Right), [Effect::Seek(3, Seek::NextChange { from: 0 })]);
    press(&mut player, KeyCode::Right);
    press(&mut player, KeyCode::Char('.'));
    press(&mut player, KeyCode::Left);
    let effects = player.update(Event::Moment(3, moment("a", Position { offset: 10, time: S }, SIZE)));
    assert_eq!(effects, [Effect::Seek(4, Seek::NextChange { from: 10 })]);
    assert_eq!(player.update(Event::Moment(4, moment("b", Position { offset: 20, time: 2 * S }, SIZE))), []);
    assert_eq!((player.state, player.time), (State::Paused, 2 * S));
    press(&mut player, KeyCode::Right);
    player.update(Event::Moment(5, moment("b", Position { offset: 20, time: 2 * S }, SIZE)));
    assert_eq!(player.message.as_ref().map(|message| message.text.as_str()), Some("nothing changes after this"));
}

#[test]
fn who_is_far_behind_skips() {
    let mut outline = outline();
    outline.end.offset = 1 << 40;
    outline.points[1].offset = 1 << 40;
    let (mut player, _) = opened(outline, &Start { speed: Speed::parse("64").expect("a speed"), ..Start::default() });
    player.update(Event::Moment(1, moment("", Position::default(), SIZE)));
    assert_eq!(at(&mut player, 0.5), [Effect::Seek(3, Seek::Time { time: 32 * S })]);
    at(&mut player, 0.7);
    let effects = player.update(Event::Moment(3, moment("later", Position { offset: 1 << 38, time: 32 * S }, SIZE)));
    assert!(matches!(effects[..], [Effect::Seek(4, Seek::Time { time })] if time > 40 * S), "{effects:?}");
    assert_eq!(top(&player), "later", "what came is shown");
}

fn live() -> Outline {
    Outline { is_live: true, ..outline() }
}

#[test]
fn live_follows_until_the_program_ends() {
    let (mut player, effects) = opened(live(), &Start { place: Some(Place::End), ..Start::default() });
    assert_eq!(effects, [Effect::Seek(1, Seek::End)]);
    let mut now = moment("now", Position { offset: 1000, time: 100 * S }, SIZE);
    now.is_live = true;
    assert_eq!(player.update(Event::Moment(1, now)), [Effect::Records { turn: 2, from: 1000, waits: Waits::ForMore }]);
    assert_eq!(player.next_deadline(), None, "nothing ticks while nothing comes");
    let records = vec![output(1010, 105 * S, " more")];
    at(&mut player, 10.0);
    let effects = player.update(Event::Records(2, Records { records, at_end: true, is_live: true, end: 1010 }));
    assert_eq!(effects, [Effect::Records { turn: 3, from: 1010, waits: Waits::ForMore }, Effect::Outline]);
    assert_eq!((top(&player).as_str(), player.time, player.outline.end.offset), ("now more", 105 * S, 1010));
    let records = vec![Record { end: 1020, time: 106 * S, what: What::Exit { status: ExitStatus::Code(3) } }];
    player.update(Event::Records(3, Records { records, at_end: true, is_live: false, end: 1020 }));
    assert_eq!(player.state, State::Paused);
    assert!(player.message.as_ref().is_some_and(|message| message.text.contains("exit code 3")), "{:?}", player.message);
    assert_eq!(press(&mut player, KeyCode::Char('l')), [Effect::Seek(4, Seek::End)]);
}

#[test]
fn playing_a_live_one_to_its_end_follows_it() {
    let (mut player, _) = opened(live(), &Start::default());
    let mut beginning = moment("", Position::default(), SIZE);
    beginning.is_live = true;
    player.update(Event::Moment(1, beginning));
    let records = vec![output(1000, 100 * S, "end")];
    player.update(Event::Records(2, Records { records, at_end: true, is_live: true, end: 1000 }));
    let effects = at(&mut player, 101.0);
    assert_eq!(player.state, State::Following);
    assert!(matches!(effects[..], [Effect::Records { waits: Waits::ForMore, .. }]), "{effects:?}");
}

fn mark(time: u64, offset: Option<Offset>, kind: MarkKind, text: &str, exit_code: Option<i32>) -> Mark {
    Mark { time, offset, kind, text: text.into(), exit_code, took: exit_code.map(|_| S) }
}

fn marked() -> Player {
    let mut player = playing(vec![]);
    player.outline.marks = vec![
        mark(0, None, MarkKind::Event, "start", None),
        mark(10 * S, Some(100), MarkKind::Command, "make", Some(2)),
        mark(20 * S, Some(200), MarkKind::Command, "ls", Some(0)),
        mark(30 * S, None, MarkKind::Event, "iteration", None),
    ];
    press(&mut player, KeyCode::Char(' '));
    player
}

#[test]
fn commands_and_marks_are_jumped_to() {
    let mut player = marked();
    assert_eq!(press(&mut player, KeyCode::Char('}')), [Effect::Seek(3, Seek::Offset { offset: 100 })]);
    player.update(Event::Moment(3, moment("", Position { offset: 100, time: 10 * S }, SIZE)));
    assert_eq!(player.command(), Some(("make", None)), "it runs");
    press(&mut player, KeyCode::Down);
    player.update(Event::Moment(4, moment("", Position { offset: 110, time: 11 * S }, SIZE)));
    assert_eq!(player.command(), Some(("make", Some(2))), "it has ended");
    assert_eq!(press(&mut player, KeyCode::Char('{')), [Effect::Seek(5, Seek::Offset { offset: 100 })]);
    player.update(Event::Moment(5, moment("", Position { offset: 100, time: 10 * S }, SIZE)));
    assert_eq!(press(&mut player, KeyCode::Char('{')), []);
    assert!(player.message.is_some());
    assert_eq!(press(&mut player, KeyCode::Char('m')), [Effect::Seek(6, Seek::Time { time: 30 * S })]);
    player.update(Event::Moment(6, moment("", Position { offset: 290, time: 29 * S }, SIZE)));
    assert_eq!(player.time, 30 * S);
    assert_eq!(press(&mut player, KeyCode::Char('M')), [Effect::Seek(7, Seek::Time { time: 0 })]);
}

#[test]
fn times_and_patterns_are_typed() {
    let mut player = playing(vec![]);
    assert_eq!(type_in(&mut player, "t1:15\n"), [Effect::Seek(3, Seek::Time { time: 75 * S })]);
    player.update(Event::Moment(3, moment("", Position { offset: 700, time: 70 * S }, SIZE)));
    assert_eq!(type_in(&mut player, ":moon\n"), []);
    assert!(player.message.as_ref().is_some_and(|message| message.is_failure && message.text.contains("moon")));
    let effects = type_in(&mut player, "/Error\n");
    let find = |turn, forward| Effect::Find { turn, pattern: "Error".into(), ignore_case: false, from: 700, forward };
    let Some(Effect::Find { turn, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(effects, [find(*turn, true)]);
    let effects = player.update(Event::Found(*turn, Some(800)));
    assert!(matches!(effects[..], [Effect::Seek(_, Seek::Offset { offset: 800 })]), "{effects:?}");
    assert_eq!(press(&mut player, KeyCode::Char('N')), [], "it goes on from where the match leads");
    let Effect::Seek(turn, _) = effects[0] else { panic!("{effects:?}") };
    let effects = player.update(Event::Moment(turn, moment("Error", Position { offset: 800, time: 80 * S }, SIZE)));
    assert!(matches!(effects[..], [Effect::Find { forward: false, from: 800, .. }]), "{effects:?}");
    assert_eq!(press(&mut player, KeyCode::Char('q')), [Effect::Leave]);
}

#[test]
fn after_a_crash_it_goes_on_where_it_was() {
    let mut player = playing(vec![output(10, 2 * S, " two")]);
    at(&mut player, 1.0);
    player.update(Event::Lost);
    assert_eq!(player.next_deadline(), None);
    at(&mut player, 30.0);
    assert_eq!(top(&player), "zero");
    player.update(Event::Back);
    at(&mut player, 31.0);
    assert_eq!((top(&player).as_str(), player.time), ("zero two", 2 * S));
    press(&mut player, KeyCode::Char('5'));
    player.update(Event::Lost);
    assert!(matches!(player.update(Event::Back)[..], [Effect::Seek(_, Seek::Time { time: 50_000_000 })]));
}

#[test]
fn a_click_on_the_timeline_goes_there() {
    let mut player = playing(vec![]);
    let mouse = |kind, column, row| Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
    assert_eq!(player.update(mouse(MouseEventKind::Down(MouseButton::Left), 79, 5)), []);
    let effects = player.update(mouse(MouseEventKind::Down(MouseButton::Left), 79, 24));
    assert_eq!(effects, [Effect::Seek(3, Seek::Time { time: 100 * S })]);
    player.update(Event::Moment(3, moment("", Position { offset: 1000, time: 100 * S }, SIZE)));
    assert_eq!(player.update(mouse(MouseEventKind::ScrollUp, 0, 0)), [Effect::Seek(4, Seek::PreviousChange { from: 1000 })]);
}

#[test]
fn the_view_fits_everywhere() {
    let mut player = marked();
    player.update(Event::Moment(2, moment("", Position::default(), SIZE)));
    press(&mut player, KeyCode::Char('}'));
    player.update(Event::Moment(3, moment("hello\r\n$ \x1b[31mmake", Position { offset: 100, time: 10 * S }, SIZE)));
    for (width, height) in [(80, 24), (40, 15), (200, 50), (20, 5), (10, 2), (1, 1)] {
        player.update(Event::Resized(Rect::new(0, 0, width, height)));
        let text = drawn(&player, width, height);
        let rows: Vec<&str> = text.lines().collect();
        if width >= 40 {
            assert!(rows[0].starts_with("hello") && rows[1].starts_with("$ make"), "{text}");
            assert!(rows.last().is_some_and(|row| row.contains("⏸") && row.contains("0:00:10 / 0:01:40")), "{text}");
            assert!(rows.last().is_some_and(|row| row.contains("❯ make")), "{text}");
            assert!(rows[usize::from(height) - 2].contains('│'), "marks on the timeline: {text}");
        }
        assert_eq!(text.contains("00:00:10"), width >= 80, "the time of day: {text}");
        assert_eq!(text.contains("panning"), width == 200 && height < 26, "{text}");
    }
    press(&mut player, KeyCode::Char('?'));
    let text = drawn(&player, 40, 15);
    assert!(text.contains("play, pause") && text.contains(" keys "), "{text}");
}

#[test]
fn a_large_screen_is_panned_or_small() {
    let (mut player, _) = opened(outline(), &Start::default());
    let rows: Vec<String> = (0..50).map(|row| format!("row {row} {}", "x".repeat(100))).collect();
    let size = Size { cols: 120, rows: 50 };
    player.update(Event::Moment(1, moment(&rows.join("\r\n"), Position::default(), size)));
    let text = drawn(&player, 80, 26);
    assert!(text.contains("xxx") && !text.contains("row 49"), "the part with the cursor, which is at the end of the row: {text}");
    assert_eq!(player.size_hint(120).as_deref(), Some("120×50, window 80×24, panning (z all, HJKL)"));
    for _ in 0..5 {
        press(&mut player, KeyCode::Char('H'));
    }
    assert!(drawn(&player, 80, 26).contains("row 49"));
    for _ in 0..20 {
        press(&mut player, KeyCode::Char('K'));
    }
    assert!(drawn(&player, 80, 26).starts_with("row 0 "));
    press(&mut player, KeyCode::Char('z'));
    let text = drawn(&player, 80, 26);
    assert!(!text.contains("row") && text.contains('█'), "{text}");
    press(&mut player, KeyCode::Char('z'));
    assert!(drawn(&player, 80, 26).contains("xxx"));
}

#[test]
fn nothing_recorded_gets_out_as_more_than_text() {
    let mut player = playing(vec![]);
    player.outline.name = "evil\x1b]2;x\x07".into();
    player.outline.marks = vec![mark(0, Some(0), MarkKind::Command, "rm\x1b[2J\u{202e}", None)];
    player.say("a\x1bb");
    let text = drawn(&player, 200, 24);
    player.message = None;
    let more = drawn(&player, 200, 24);
    assert!(more.contains("rm·[2J·") && more.contains("evil·]2;x·"), "{more}");
    assert!(!format!("{text}{more}").contains(|c: char| c.is_control() && c != '\n'));
}
