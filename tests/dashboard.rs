//! The dashboard: keys and clicks in, a screen out. What it shows is compared with what the daemon knows, and with what the
//! programs themselves have seen.

mod acts;
mod begin;
mod flood;
mod hints;
mod look;
mod mouse;
pub mod odd;
mod questions;
mod resilience;
mod split;
mod views;

use serde_json::Value;
use shared::screen::Screen;

use crate::support::{Root, Term};

const ESC: &[u8] = b"\x1b";
const CTRL_S: &[u8] = b"\x13";
const TAB: &[u8] = b"\t";

/// A window in which list and preview are one above the other.
#[track_caller]
fn open(root: &Root) -> Term {
    let term = Term::open(root, 100, 30, &[]);
    term.wait_for_text(" by ");
    term
}

/// Quits and checks that the terminal is as it was.
#[track_caller]
fn quit(term: &mut Term) {
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0, "{}", term.text());
    assert_given_back(term);
}

#[track_caller]
fn assert_given_back(term: &Term) {
    assert!(!term.is_alternate() && term.is_cooked(), "the terminal is given back");
    term.look(|screen| {
        assert!(screen.cursor().visible);
        let on: Vec<u16> = screen
            .modes()
            .changed()
            .filter(|(number, _)| [1000, 1002, 1003, 1006, 2004, 2026].contains(number))
            .map(|(number, _)| number)
            .collect();
        assert!(on.is_empty(), "modes that are still on: {on:?}");
    });
}

/// Waits until the cursor of the list is on a session.
#[track_caller]
fn wait_cursor(term: &Term, name: &str) {
    term.wait_for(&format!("the cursor on {name}"), |screen| cursor_row(screen).is_some_and(|row| row.contains(name)));
}

/// Without its folder, in whose name anything may be.
fn cursor_row(screen: &Screen) -> Option<String> {
    let row = (0..screen.size().rows).map(|row| screen.row_text(row)).find(|row| row.trim_start_matches('│').starts_with('▸'))?;
    Some(row.split(" /").next().unwrap_or_default().to_owned())
}

/// The name in it, which no clock changes.
fn cursor_name(screen: &Screen) -> Option<String> {
    let row = cursor_row(screen)?;
    row.split_whitespace().find(|word| word.contains(char::is_alphanumeric)).map(str::to_owned)
}

/// Where a text is on a screen: row and column of its first cell.
fn find(screen: &Screen, text: &str) -> Option<(u16, u16)> {
    let size = screen.size();
    (0..size.rows).find_map(|row| {
        let cells: Vec<&str> = (0..size.cols).map(|col| screen.cell(row, col).map_or("", |cell| cell.text)).collect();
        let wanted: Vec<String> = text.chars().map(|c| if c == ' ' { String::new() } else { c.to_string() }).collect();
        let is_here = |at: usize| wanted.iter().enumerate().all(|(n, c)| cells.get(at + n).is_some_and(|cell| cell.trim() == c));
        (0..cells.len()).find(|at| is_here(*at)).map(|col| (row, col as u16))
    })
}

/// Waits until a text is there, and gives its place.
#[track_caller]
fn wait_place(term: &Term, text: &str) -> (u16, u16) {
    let mut place = None;
    term.wait_for(&format!("{text:?}"), |screen| {
        place = find(screen, text);
        place.is_some()
    });
    place.expect("just found")
}

/// A click of the left button on a cell, as a terminal tells of it.
fn click(term: &Term, (row, col): (u16, u16)) {
    let (x, y) = (col + 1, row + 1);
    term.send(format!("\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m").as_bytes());
}

/// Presses the left button on one cell, moves it over another and lets it go on a third; with these modifiers.
fn drag(term: &Term, from: (u16, u16), over: (u16, u16), to: (u16, u16), modifiers: u8) {
    let at = |button: u8, (row, col): (u16, u16), end: char| format!("\x1b[<{};{};{}{end}", button + modifiers, col + 1, row + 1);
    term.send(format!("{}{}{}", at(0, from, 'M'), at(32, over, 'M'), at(0, to, 'm')).as_bytes());
}

/// What was put into the clipboard last.
fn copied(term: &Term) -> Option<String> {
    use base64::Engine;
    let text = String::from_utf8_lossy(&term.bytes()).into_owned();
    let (_, rest) = text.rsplit_once("\x1b]52;c;")?;
    let encoded = rest.split(['\x1b', '\x07']).next()?;
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(encoded).ok()?).ok()
}

fn size_of(root: &Root, name: &str) -> Value {
    root.session(name)["size"].clone()
}

/// What the present way of keeping state says.
#[track_caller]
fn remembered(root: &Root) -> Value {
    let text = std::fs::read_to_string(root.join("state/dashboard.json")).expect("remembered");
    serde_json::from_str(&text).expect("JSON")
}
