//! The form for a new session: its fields, and below them its keys. What is where is asked by the mouse too.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::text::{columns, fit, visible};

use super::{cell, overlay};
use crate::dashboard::app::App;
use crate::dashboard::state::form::{Field, Form};
use crate::words::wrapped;

const WIDTH: u16 = 76;
const LABEL: u16 = 12;

const KEYS: [(KeyCode, KeyModifiers, &str, &str); 4] = [
    (KeyCode::Enter, KeyModifiers::NONE, "enter", "start and attach"),
    (KeyCode::Char('s'), KeyModifiers::CONTROL, "ctrl-s", "start, stay here"),
    (KeyCode::Char('n'), KeyModifiers::CONTROL, "ctrl-n", "recent"),
    (KeyCode::Esc, KeyModifiers::NONE, "esc", "cancel"),
];

/// What a click in the form means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    Field(Field),
    /// The recent one before, or after.
    Recent(isize),
    Key(KeyEvent),
}

/// The box it wants.
pub fn size(app: &App, form: &Form) -> (u16, u16) {
    let width = WIDTH.min(app.area.width);
    (width, Field::ALL.len() as u16 + 1 + below(form, width.saturating_sub(2)) + 2)
}

/// Rows below the fields: its keys, or what is wrong.
fn below(form: &Form, width: u16) -> u16 {
    match &form.error {
        Some(why) => wrapped(&visible(why), usize::from(width).saturating_sub(2)).len().min(4) as u16,
        None if form.is_sent => 1,
        None => keys(width).last().map_or(1, |(_, row, _)| row + 1),
    }
}

/// Its keys: which, in which row, in which column; in a narrow window they take several rows.
fn keys(width: u16) -> Vec<(usize, u16, u16)> {
    let (mut row, mut col) = (0, 0);
    let place = |(n, (_, _, name, what)): (usize, &(KeyCode, KeyModifiers, &str, &str))| {
        let wide = (columns(name) + columns(what) + 3) as u16;
        if col > 0 && col + wide > width {
            (row, col) = (row + 1, 0);
        }
        let here = (n, row, col);
        col += wide;
        here
    };
    KEYS.iter().enumerate().map(place).collect()
}

/// The rows of fields that are seen, and the first of them: in a low window the one in focus is.
fn fields(form: &Form, inside: Rect) -> (Rect, u16) {
    let rows = inside.height.saturating_sub(below(form, inside.width)).max(1).min(inside.height);
    let at = Field::ALL.iter().position(|field| *field == form.focus).unwrap_or(0) as u16;
    (Rect { height: rows.min(Field::ALL.len() as u16), ..inside }, (at + 1).saturating_sub(rows))
}

pub fn spot(app: &App, form: &Form, at: Position) -> Option<Spot> {
    let inside = overlay::inside(overlay::place(app, size(app, form)));
    let (rows, top) = fields(form, inside);
    if rows.contains(at) {
        let field = *Field::ALL.get(usize::from(top + at.y - rows.y))?;
        let (text, _) = value(app, form, field);
        let behind = at.x.saturating_sub(inside.x + LABEL);
        return Some(match field {
            Field::Recent if at.x < inside.x + LABEL => Spot::Field(field),
            // the two arrows, and the words between them
            Field::Recent if behind < 2 => Spot::Recent(-1),
            Field::Recent if usize::from(behind) <= columns(&text) => Spot::Recent(1),
            field => Spot::Field(field),
        });
    }
    let height = below(form, inside.width);
    let first = inside.bottom().saturating_sub(height);
    if form.error.is_some() || form.is_sent || at.y < first || at.y >= inside.bottom() {
        return None;
    }
    let found = keys(inside.width).into_iter().rev().find(|(_, row, col)| first + row == at.y && inside.x + col <= at.x)?;
    let (code, modifiers, ..) = KEYS[found.0];
    Some(Spot::Key(KeyEvent::new(code, modifiers)))
}

pub fn draw(app: &App, form: &Form, frame: &mut Frame<'_>, inside: Rect) {
    let theme = &app.theme;
    let (rows, top) = fields(form, inside);
    for (n, field) in Field::ALL.into_iter().enumerate().skip(usize::from(top)).take(usize::from(rows.height)) {
        let place = Rect { y: rows.y + n as u16 - top, height: 1, ..inside };
        let is_focus = field == form.focus;
        let label =
            Span::styled(format!(" {}", cell(field.label(), usize::from(LABEL) - 1)), if is_focus { theme.accent } else { theme.dim });
        let room = usize::from(inside.width.saturating_sub(LABEL + 1));
        let is_typed = is_focus && field != Field::Recent && !form.line(field).is_empty();
        let (text, style, cursor) = if is_typed {
            let (text, cursor) = form.line(field).shown(room);
            (text, theme.text, cursor)
        } else {
            let (text, style) = value(app, form, field);
            (fit(&text, room), style, 0)
        };
        frame.render_widget(Paragraph::new(Line::from(vec![label, Span::styled(text, style)])), place);
        if is_focus && field != Field::Recent {
            let x = inside.x + LABEL + cursor as u16;
            frame.set_cursor_position(Position { x: x.min(inside.right().saturating_sub(1)), y: place.y });
        }
    }
    let height = below(form, inside.width).min(inside.height);
    let below = Rect { y: inside.bottom() - height, height, ..inside };
    if let Some(why) = &form.error {
        let lines = wrapped(&visible(why), usize::from(inside.width).saturating_sub(2));
        let lines: Vec<Line<'_>> = lines.into_iter().map(|line| Line::styled(format!(" {line}"), theme.bad)).collect();
        frame.render_widget(Paragraph::new(lines), below);
    } else if form.is_sent {
        frame.render_widget(Paragraph::new(Line::styled(" starting …", theme.note)), below);
    } else {
        for (n, row, col) in keys(inside.width) {
            let (_, _, name, what) = KEYS[n];
            let place = Rect { x: below.x + col, y: below.y + row, width: below.width.saturating_sub(col), height: 1 };
            let line = Line::from(vec![Span::styled(format!(" {name}"), theme.accent), Span::styled(format!(" {what} "), theme.dim)]);
            frame.render_widget(Paragraph::new(line), place.intersection(below));
        }
    }
}

fn value(app: &App, form: &Form, field: Field) -> (String, Style) {
    let theme = &app.theme;
    if field == Field::Recent {
        return match form.recent() {
            (_, 0) => ("none yet".into(), theme.dim),
            (None, count) => (format!("‹ {} › {count}", field.hint()), theme.dim),
            (Some(at), count) => (format!("‹ {} of {count} ›", at + 1), theme.note),
        };
    }
    let text = form.line(field).text();
    if text.is_empty() {
        let hint =
            if field == Field::Workspace { crate::words::short_path(&app.here, app.home.as_deref()) } else { field.hint().to_owned() };
        return (hint, theme.dim);
    }
    (visible(text), theme.text)
}
