//! The keys of a place, with what they do.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::text::columns;

use super::{cell, wrapped};
use crate::app::App;
use crate::keymap::Place;

/// The box, at most, and its column of keys.
const WIDTH: u16 = 70;
const MOST_KEYS: usize = 18;

/// Keys and what they do, a line each; in a narrow window what they do takes several.
fn lines(app: &App, place: Place) -> (usize, Vec<(String, String)>) {
    let mut rows = app.keymap.help(place, app.prefix);
    if place == Place::Pane {
        rows.push(("drag".into(), "mark and copy; with shift where the program has the mouse"));
        rows.push((String::new(), "every other key is the program's"));
    }
    let widest = rows.iter().map(|(keys, _)| columns(keys)).max().unwrap_or(0).min(MOST_KEYS);
    let room = usize::from(WIDTH.min(app.area.width)).saturating_sub(widest + 5).max(8);
    let mut lines = Vec::new();
    for (keys, what) in rows {
        for (n, part) in wrapped(what, room).into_iter().enumerate() {
            lines.push((if n == 0 { keys.clone() } else { String::new() }, part));
        }
    }
    (widest, lines)
}

/// The box it wants.
pub fn size(app: &App, place: Place) -> (u16, u16) {
    (WIDTH, lines(app, place).1.len() as u16 + 2)
}

/// How many lines do not fit into the window.
pub fn overflow(app: &App, place: Place) -> u16 {
    size(app, place).1.saturating_sub(app.area.height)
}

pub fn draw(app: &App, place: Place, top: u16, frame: &mut Frame<'_>, inside: Rect) {
    let theme = &app.theme;
    let (widest, lines) = lines(app, place);
    let shown: Vec<Line<'_>> = lines
        .iter()
        .skip(usize::from(top))
        .take(usize::from(inside.height))
        .map(|(keys, what)| Line::from(vec![Span::styled(format!(" {} ", cell(keys, widest)), theme.accent), Span::raw(what.clone())]))
        .collect();
    frame.render_widget(Paragraph::new(shown), inside);
    let most = overflow(app, place);
    if most > 0 {
        let text = if top < most { " ↓ more " } else { " ↑ more " };
        let width = columns(text) as u16;
        let place = Rect { x: inside.right().saturating_sub(width + 1), y: inside.bottom(), width: width.min(inside.width), height: 1 };
        frame.render_widget(Paragraph::new(Span::styled(text, theme.warn)), place);
    }
}
