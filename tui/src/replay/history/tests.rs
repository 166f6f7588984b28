//! Lines first, then time; what is found where.

use super::*;
use crate::replay::player::tests::outline;
use crate::replay::reel::tests::{moment, output};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shared::replay::{Position, Seek};
use shared::screen::Size;

const END: Position = Position { offset: 1000, time: 100_000_000 };

/// Opened over this screen, in a window of 40 by 6, of a session that has ended.
fn opened(text: &str) -> (History, Vec<Effect>) {
    let (mut history, effects) = History::new(outline(), TimeZone::UTC).expect("a history");
    assert_eq!(effects, [Effect::Seek(1, Seek::Offset { offset: 1000 })]);
    history.update(Event::Resized(Rect::new(0, 0, 40, 6)));
    let effects = history.update(Event::Moment(1, moment(text, END, Size { cols: 40, rows: 6 })));
    (history, effects)
}

fn press(history: &mut History, code: KeyCode) -> Vec<Effect> {
    history.update(Event::Key(KeyEvent::from(code)))
}

fn drawn(history: &History) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(40, 6)).expect("a backend");
    terminal.draw(|frame| history.draw(frame, frame.area())).expect("draws");
    let buffer = terminal.backend().buffer().clone();
    (0..6).map(|y| (0..40).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
}

fn lines(range: std::ops::Range<usize>) -> Vec<Line> {
    range.map(|n| Line { text: format!("line {n}"), ansi: format!("\x1b[32mline {n}\x1b[0m"), wrapped: false }).collect()
}

#[test]
fn lines_come_first_then_time() {
    let (mut history, effects) = opened("now\r\n$ ");
    assert_eq!(effects, [Effect::Scrolled { turn: OURS + 1, until: 1000, most: FIRST_LINES }]);
    history.update(Event::Scrolled(OURS + 1, lines(0..10)));
    assert_eq!(drawn(&history)[..5], ["line 7", "line 8", "line 9", "now", "$"]);
    assert!(drawn(&history)[5].starts_with(" [0/7]"), "{:?}", drawn(&history));
    assert_eq!(press(&mut history, KeyCode::Down), [], "nobody has moved yet");
    press(&mut history, KeyCode::PageUp);
    assert_eq!(drawn(&history)[0], "line 3");
    press(&mut history, KeyCode::Char('g'));
    assert_eq!(drawn(&history)[0], "line 0");
    assert_eq!(press(&mut history, KeyCode::Up), [], "the top is said first");
    assert!(drawn(&history)[5].contains("back in time"), "{:?}", drawn(&history));
    assert_eq!(press(&mut history, KeyCode::Up), [Effect::Seek(2, Seek::PreviousChange { from: 1000 })]);
    history.update(Event::Moment(2, moment("before", Position { offset: 900, time: 90_000_000 }, Size { cols: 40, rows: 6 })));
    assert_eq!(drawn(&history)[0], "before");
    assert!(drawn(&history)[5].contains("◀ 00:01:30"), "{:?}", drawn(&history));
    assert_eq!(press(&mut history, KeyCode::Down), [Effect::Seek(3, Seek::NextChange { from: 900 })]);
    let effects = history.update(Event::Moment(3, moment("now", END, Size { cols: 40, rows: 6 })));
    assert_eq!(effects, [Effect::Leave], "the end is where it came from");
}

#[test]
fn programs_of_the_whole_screen_have_only_time() {
    let (mut history, effects) = opened("\x1b[?1049hpage");
    assert_eq!(effects, []);
    assert_eq!(press(&mut history, KeyCode::Char('k')), [Effect::Seek(2, Seek::PreviousChange { from: 1000 })]);
}

#[test]
fn what_is_in_no_line_is_looked_for_in_time() {
    let (mut history, _) = opened("$ ");
    history.update(Event::Scrolled(OURS + 1, lines(0..10)));
    let search = |history: &mut History, text: &str| {
        press(history, KeyCode::Char('/'));
        for c in text.chars() {
            press(history, KeyCode::Char(c));
        }
        press(history, KeyCode::Enter)
    };
    let effects = search(&mut history, "drawn");
    let find = |turn| Effect::Find { turn, pattern: "drawn".into(), ignore_case: true, from: 1000, forward: false };
    assert_eq!(effects, [find(2)]);
    history.update(Event::Found(2, None));
    assert!(drawn(&history)[5].contains("no \"drawn\" before this"), "{:?}", drawn(&history));
    assert_eq!(drawn(&history)[0], "line 6", "the lines are still there");
    assert_eq!(press(&mut history, KeyCode::Char('n')), [find(3)]);
    assert_eq!(history.update(Event::Found(3, Some(500))), [Effect::Seek(4, Seek::Offset { offset: 500 })]);
    history.update(Event::Moment(4, moment("as drawn", Position { offset: 500, time: 50_000_000 }, Size { cols: 40, rows: 6 })));
    assert_eq!(drawn(&history)[0], "as drawn");
}

#[test]
fn more_lines_are_loaded_when_they_are_needed_and_searched_upwards() {
    let (mut history, _) = opened("$ ");
    history.update(Event::Scrolled(OURS + 1, lines(1000..3000)));
    press(&mut history, KeyCode::Char('/'));
    for c in "LINE 1500".to_lowercase().chars() {
        press(&mut history, KeyCode::Char(c));
    }
    press(&mut history, KeyCode::Enter);
    assert!(drawn(&history).contains(&"line 1500".to_owned()), "{:?}", drawn(&history));
    let top = history.top;
    let effects = press(&mut history, KeyCode::Char('n'));
    assert_eq!(effects, [Effect::Scrolled { turn: OURS + 2, until: 1000, most: ALL_LINES }], "not in those that are there");
    history.update(Event::Scrolled(OURS + 2, lines(0..3000)));
    assert_eq!(history.top, top + 1000, "what is shown stays");
    assert!(drawn(&history)[5].contains("no \"line 1500\" above this"), "{:?}", drawn(&history));
    press(&mut history, KeyCode::Char('g'));
    assert_eq!(drawn(&history)[0], "line 0");
    assert_eq!(press(&mut history, KeyCode::Char('q')), [Effect::Leave]);
}

#[test]
fn what_the_program_does_meanwhile_is_told() {
    let (mut history, _) = History::new(Outline { is_live: true, ..outline() }, TimeZone::UTC).expect("a history");
    history.update(Event::Resized(Rect::new(0, 0, 40, 6)));
    let mut now = moment("$ ", END, Size { cols: 40, rows: 6 });
    now.is_live = true;
    let effects = history.update(Event::Moment(1, now));
    assert_eq!(effects[1], Effect::Records { turn: OURS + 2, from: 1000, waits: Waits::ForMore });
    let records = vec![output(1010, 101_000_000, "more")];
    assert_eq!(history.update(Event::Records(OURS + 2, Records { records, at_end: true, is_live: true, end: 1010 })), []);
    assert!(history.next_deadline().is_some(), "looked at again in a moment");
    let effects = history.update(Event::Time(LOOK_AGAIN));
    assert!(effects.contains(&Effect::Records { turn: OURS + 3, from: 1010, waits: Waits::ForMore }), "{effects:?}");
    history.update(Event::Records(OURS + 3, Records { records: Vec::new(), at_end: true, is_live: false, end: 1010 }));
    assert!(drawn(&history)[5].contains("the program has ended"), "{:?}", drawn(&history));
}
