//! The keys of a place, with what they do: by subject, in as many columns as there is room for, searchable.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::text::columns;

use super::cell;
use crate::dashboard::app::{App, HelpPage};
use crate::keymap::Place;
use crate::words::wrapped;

/// A column of the box, at most, and its part for keys.
const WIDTH: u16 = 70;
const MOST_KEYS: usize = 18;

/// A column beside others: enough for most sentences in one line.
const NARROW: u16 = 58;

enum Entry {
    Title(&'static str),
    /// The keys, on the first line of what they do.
    Key(String, String),
}

/// Everything that is laid out.
struct Layout {
    widest: usize,
    entries: Vec<Entry>,
    /// Columns, and how many lines each has.
    count: u16,
    width: u16,
    height: u16,
}

fn layout(app: &App, page: &HelpPage) -> Layout {
    let mut sections = app.keymap.sections(page.place, app.prefix);
    if page.place == Place::Pane {
        let more = [("drag", "mark and copy; with shift where the program has the mouse"), ("", "every other key is the program's")];
        sections.push(("Mouse", more.map(|(keys, what)| (keys.to_owned(), what)).to_vec()));
    }
    let wanted = page.find.to_lowercase();
    for (_, rows) in &mut sections {
        rows.retain(|(keys, what)| keys.to_lowercase().contains(&wanted) || what.to_lowercase().contains(&wanted));
    }
    sections.retain(|(_, rows)| !rows.is_empty());
    let rows = sections.iter().flat_map(|(_, rows)| rows);
    let widest = rows.map(|(keys, _)| columns(keys)).max().unwrap_or(0).min(MOST_KEYS);
    let total: usize = sections.iter().map(|(_, rows)| rows.len() + 1).sum();
    let room = app.area.height.saturating_sub(2);
    let is_long = total > usize::from(room);
    let count = if is_long { (app.area.width.saturating_sub(2) / NARROW).clamp(1, 3) } else { 1 };
    let width = if count > 1 { NARROW } else { WIDTH.min(app.area.width).saturating_sub(2) };
    let text = usize::from(width).saturating_sub(widest + 3).max(8);
    let mut entries = Vec::new();
    for (title, rows) in sections {
        entries.push(Entry::Title(title));
        for (keys, what) in rows {
            for (n, part) in wrapped(what, text).into_iter().enumerate() {
                entries.push(Entry::Key(if n == 0 { keys.clone() } else { String::new() }, part));
            }
        }
    }
    let height = (entries.len() as u16).div_ceil(count).max(1);
    Layout { widest, entries, count, width, height }
}

/// The box it wants.
pub fn size(app: &App, page: &HelpPage) -> (u16, u16) {
    let layout = layout(app, page);
    (layout.width * layout.count + 2, layout.height + 2)
}

/// How many lines do not fit into the window.
pub fn overflow(app: &App, page: &HelpPage) -> u16 {
    size(app, page).1.saturating_sub(app.area.height)
}

/// What stands in the upper border.
pub fn title(page: &HelpPage) -> String {
    match (page.is_finding, page.find.as_str()) {
        (false, "") => " keys · / finds ".to_owned(),
        (true, find) => format!(" keys /{find}▏"),
        (false, find) => format!(" keys /{find} "),
    }
}

pub fn draw(app: &App, page: &HelpPage, frame: &mut Frame<'_>, inside: Rect) {
    let theme = &app.theme;
    let layout = layout(app, page);
    if layout.entries.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled(" no key does that", theme.dim)), inside);
    }
    for (number, entries) in layout.entries.chunks(usize::from(layout.height)).enumerate() {
        let lines = entries.iter().skip(usize::from(page.top)).take(usize::from(inside.height)).map(|entry| match entry {
            Entry::Title(title) => Line::from(Span::styled(format!(" {title}"), theme.strong)),
            Entry::Key(keys, what) => {
                Line::from(vec![Span::styled(format!(" {} ", cell(keys, layout.widest)), theme.accent), Span::raw(what.clone())])
            }
        });
        let x = inside.x + layout.width * number as u16;
        let place = Rect { x, width: layout.width.min(inside.right().saturating_sub(x)), ..inside };
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), place);
    }
    let most = overflow(app, page);
    if most > 0 {
        let text = if page.top < most { " ↓ more " } else { " ↑ more " };
        let width = columns(text) as u16;
        let place = Rect { x: inside.right().saturating_sub(width + 1), y: inside.bottom(), width: width.min(inside.width), height: 1 };
        frame.render_widget(Paragraph::new(Span::styled(text, theme.warn)), place);
    }
}
