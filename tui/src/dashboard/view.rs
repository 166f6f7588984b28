//! Draws the dashboard from its state; changes nothing.

pub mod areas;
pub mod charts;
mod detail;
pub mod footer;
pub mod form;
mod grid;
mod header;
pub mod help;
mod hits;
pub mod messages;
pub mod output;
pub mod overlay;
mod pane;
pub mod plan;
mod preview;
mod sessions;
#[cfg(test)]
pub mod tests;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use shared::text::{columns, fit, visible};

use crate::dashboard::app::{App, View};
use crate::dashboard::state::remembered::Layout;

/// A window smaller than this shows only that it is too small.
const MIN_WIDTH: u16 = 20;
const MIN_HEIGHT: u16 = 5;

pub fn draw(app: &App, frame: &mut Frame<'_>) {
    draw_all(app, frame);
    if !app.theme.has_colours {
        without_colours(frame);
    }
}

/// What has a background of its own, as a match has, is still told from the rest.
fn without_colours(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        if cell.bg != Color::Reset {
            cell.modifier.toggle(Modifier::REVERSED);
        }
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}

fn draw_all(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        frame.render_widget(Span::styled("too small", app.theme.warn), area);
        return;
    }
    // the window has changed since the last event: the next one is on its way, and everything is placed by it
    if area != app.area {
        return;
    }
    match app.views.last() {
        Some(View::Time(machine)) if !machine.is_beside => machine.component.draw(frame, areas::time(app)),
        Some(View::Time(machine)) => {
            sessions_view(app, frame);
            let place = areas::time(app);
            clear(frame, place);
            machine.component.draw(frame, place);
        }
        None => sessions_view(app, frame),
        Some(View::Detail(detail)) => {
            header::draw(app, frame, areas::header(area));
            detail::draw(app, detail, frame);
            footer::draw(app, frame, areas::footer(area));
        }
        Some(View::Hits(hits)) => {
            hits::draw(app, hits, frame);
            footer::draw(app, frame, areas::footer(area));
        }
        Some(View::Stats(stats)) => {
            header::draw(app, frame, areas::header(area));
            charts::draw(app, stats, frame, areas::body(area));
            footer::draw(app, frame, areas::footer(area));
        }
        Some(View::Messages { cursor }) => {
            header::draw(app, frame, areas::header(area));
            messages::draw(app, *cursor, frame, areas::body(area));
            footer::draw(app, frame, areas::footer(area));
        }
        Some(View::Output) => {
            header::draw(app, frame, areas::header(area));
            output::draw(app, frame, areas::body(area));
            footer::draw(app, frame, areas::footer(area));
        }
    }
    overlay::draw(app, frame);
}

fn sessions_view(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    header::draw(app, frame, areas::header(area));
    let places = areas::sessions(app);
    if app.list.rows.is_empty() && app.pane.is_none() {
        sessions::draw_empty(app, frame, areas::body(area));
    } else if app.layout == Layout::Grid && app.pane.is_none() {
        grid::draw(app, frame);
    } else {
        if let Some(list) = places.list {
            sessions::draw(app, frame, list);
        }
        if let Some(preview) = places.preview {
            preview::draw(app, frame, preview);
        }
    }
    if let (Some(area), Some(pane)) = (places.pane, &app.pane) {
        pane::draw(app, pane, frame, area);
    }
    footer::draw(app, frame, areas::footer(area));
}

/// Nothing is left of what was there, nor of a wide character that reaches into it.
fn clear(frame: &mut Frame<'_>, place: Rect) {
    frame.render_widget(ratatui::widgets::Clear, place);
    let buffer = frame.buffer_mut();
    if place.x > buffer.area.x {
        for y in place.top()..place.bottom() {
            let before = &mut buffer[(place.x - 1, y)];
            if columns(before.symbol()) > 1 {
                before.set_symbol(" ");
            }
        }
    }
}

/// Text of a program, a user or the daemon: only what can be seen, cut to fit.
fn cell(text: &str, width: usize) -> String {
    let text = fit(&visible(text), width);
    let missing = width.saturating_sub(columns(&text));
    text + &" ".repeat(missing)
}

/// A line with a title in it: `── api ─ npm run dev ─────`.
fn rule(title: &[(String, Style)], (right, beside): (&str, Style), style: Style, area: Rect, frame: &mut Frame<'_>) {
    let buffer = frame.buffer_mut();
    for x in area.left()..area.right() {
        buffer[(x, area.y)].set_symbol("─").set_style(style);
    }
    let right_width = columns(right) as u16;
    let has_right = !right.is_empty() && area.width > right_width + 12;
    let most = area.width.saturating_sub(if has_right { right_width + 6 } else { 4 });
    let mut x = area.x + 2;
    let mut left = usize::from(most);
    for (text, style) in title {
        if left < 3 || text.is_empty() {
            break;
        }
        let text = fit(&visible(text), left.saturating_sub(2));
        let padded = format!(" {text} ");
        let width = columns(&padded);
        buffer.set_stringn(x, area.y, &padded, left, over(*style));
        x += width as u16;
        left = left.saturating_sub(width + 1);
        x += 1;
    }
    if has_right {
        buffer.set_stringn(area.right() - right_width - 3, area.y, format!(" {right} "), usize::from(right_width) + 2, over(beside));
    }
}

/// For a text that is written over a line: a style without a colour would take the line's, which is faint.
fn over(style: Style) -> Style {
    Style::new().fg(Color::Reset).patch(style)
}
