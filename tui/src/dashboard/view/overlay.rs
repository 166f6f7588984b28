//! What lies over a view: help, questions, the form, the palette. What is where is asked by the mouse too.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use shared::text::{columns, visible};

use super::{cell, clear, form, help};
use crate::dashboard::app::{App, Overlay};
use crate::dashboard::state::act::Deed;
use crate::dashboard::state::palette::Palette;
use crate::words::wrapped;

const QUESTION_WIDTH: u16 = 64;

/// A box of this size in the middle of the window.
pub fn place(app: &App, (width, height): (u16, u16)) -> Rect {
    let window = app.area;
    let (width, height) = (width.min(window.width), height.min(window.height));
    Rect { x: window.x + (window.width - width) / 2, y: window.y + (window.height - height) / 2, width, height }
}

/// What is within a border.
pub fn inside(place: Rect) -> Rect {
    Block::bordered().inner(place)
}

/// Where it lies; a prompt is in the footer.
pub fn area(app: &App) -> Option<Rect> {
    Some(match app.overlay.as_ref()? {
        Overlay::Help(page) => place(app, help::size(app, page)),
        Overlay::Confirm { question, deed, .. } => question_area(app, question, deed),
        Overlay::New(form) => place(app, form::size(app, form)),
        Overlay::Palette(palette) => palette_area(app, palette),
        Overlay::Prompt(_) => return None,
    })
}

fn palette_area(app: &App, palette: &Palette) -> Rect {
    let rows = (palette.found.len() as u16).clamp(1, 14);
    let place = place(app, (66, rows + 3));
    // at the top, so that it does not jump while one types
    Rect { y: app.area.y + (app.area.height / 6).min(app.area.height.saturating_sub(place.height)), ..place }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
}

/// The two answers, in words.
fn answers(deed: &Deed) -> [(Answer, String); 2] {
    [(Answer::Yes, format!("y: {}", deed.verb())), (Answer::No, "any other key: leave it".to_owned())]
}

fn question_lines(app: &App, question: &str) -> Vec<String> {
    wrapped(&visible(question), usize::from(QUESTION_WIDTH.min(app.area.width).saturating_sub(4)))
}

/// Where the answers are, counted from the first row below the question: beside each other if there is room.
fn answer_places(app: &App, deed: &Deed) -> Vec<(Answer, String, u16, u16)> {
    let room = QUESTION_WIDTH.min(app.area.width).saturating_sub(4);
    let [(yes, first), (no, second)] = answers(deed);
    let beside = columns(&first) as u16 + 3;
    let fits = beside + columns(&second) as u16 <= room;
    let (row, col) = if fits { (0, beside) } else { (1, 0) };
    vec![(yes, first, 0, 0), (no, second, row, col)]
}

fn question_area(app: &App, question: &str, deed: &Deed) -> Rect {
    let answers = answer_places(app, deed).last().map_or(1, |(.., row, _)| row + 1);
    place(app, (QUESTION_WIDTH, question_lines(app, question).len() as u16 + 1 + answers + 2))
}

/// Which answer is clicked on.
pub fn answer_at(app: &App, question: &str, deed: &Deed, at: Position) -> Option<Answer> {
    let inside = inside(question_area(app, question, deed));
    let first = inside.y + question_lines(app, question).len() as u16 + 1;
    let found = answer_places(app, deed).into_iter().find(|(_, text, row, col)| {
        let x = inside.x + 1 + col;
        at.y == first + row && (x..x + columns(text) as u16).contains(&at.x)
    });
    found.map(|(answer, ..)| answer)
}

/// The rows of actions below the line, and the first that is seen.
fn palette_rows(inside: Rect, palette: &Palette) -> (Rect, usize) {
    let rows = Rect { y: inside.y + 1, height: inside.height.saturating_sub(1), ..inside };
    (rows, (palette.cursor + 1).saturating_sub(usize::from(rows.height)))
}

/// Which action is clicked on.
pub fn palette_row(app: &App, palette: &Palette, at: Position) -> Option<usize> {
    let (rows, top) = palette_rows(inside(palette_area(app, palette)), palette);
    let row = top + usize::from(at.y.checked_sub(rows.y)?);
    (rows.contains(at) && row < palette.found.len()).then_some(row)
}

pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let (Some(overlay), Some(place)) = (&app.overlay, area(app)) else { return };
    let theme = &app.theme;
    clear(frame, place);
    let title = match overlay {
        Overlay::Help(page) => help::title(page),
        Overlay::Confirm { .. } => " sure? ".to_owned(),
        Overlay::New(_) => " new session ".to_owned(),
        Overlay::Palette(_) => " actions ".to_owned(),
        Overlay::Prompt(_) => String::new(),
    };
    let block = Block::bordered().title(Span::styled(title, theme.accent)).border_style(theme.focus);
    let inside = block.inner(place);
    frame.render_widget(block, place);
    match overlay {
        Overlay::Help(page) => help::draw(app, page, frame, inside),
        Overlay::Confirm { question, deed, .. } => draw_question(app, question, deed, frame, inside),
        Overlay::New(form) => form::draw(app, form, frame, inside),
        Overlay::Palette(palette) => draw_palette(app, palette, frame, inside),
        Overlay::Prompt(_) => {}
    }
}

fn draw_question(app: &App, question: &str, deed: &Deed, frame: &mut Frame<'_>, inside: Rect) {
    let text = Rect { x: inside.x + 1, width: inside.width.saturating_sub(1), ..inside };
    let lines = question_lines(app, question);
    let below = text.y + lines.len() as u16 + 1;
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::raw).collect::<Vec<_>>()), text);
    for (answer, words, row, col) in answer_places(app, deed) {
        let place = Rect { x: text.x + col, y: below + row, width: text.width.saturating_sub(col), height: 1 };
        let style: Style = if answer == Answer::Yes { app.theme.warn } else { app.theme.accent };
        frame.render_widget(Paragraph::new(Span::styled(words, style)), place.intersection(text));
    }
}

fn draw_palette(app: &App, palette: &Palette, frame: &mut Frame<'_>, inside: Rect) {
    let theme = &app.theme;
    let (text, cursor) = palette.line.shown(usize::from(inside.width).saturating_sub(3));
    let line = Line::from(vec![Span::styled(" ❯ ", theme.focus), Span::raw(text)]);
    frame.render_widget(Paragraph::new(line), Rect { height: 1, ..inside });
    frame.set_cursor_position(Position { x: (inside.x + 3 + cursor as u16).min(inside.right().saturating_sub(1)), y: inside.y });
    let (rows, top) = palette_rows(inside, palette);
    if palette.found.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled("   no such action", theme.dim)), rows);
    }
    for (n, entry) in palette.found.iter().enumerate().skip(top).take(usize::from(rows.height)) {
        let place = Rect { y: rows.y + (n - top) as u16, height: 1, ..rows };
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        let room = usize::from(rows.width).saturating_sub(14 + 10);
        let line = Line::from(vec![
            Span::styled(format!("   {} ", cell(entry.name, 12)), theme.strong),
            Span::styled(cell(entry.what, room), theme.dim),
            Span::styled(format!("{key:>6} "), theme.accent),
        ]);
        frame.render_widget(Paragraph::new(line), place);
        if n == palette.cursor {
            let buffer = frame.buffer_mut();
            for x in place.left()..place.right() {
                buffer[(x, place.y)].set_style(theme.cursor);
            }
        }
    }
}
