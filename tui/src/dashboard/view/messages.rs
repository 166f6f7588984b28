//! The messages page, oldest first.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::text::visible;

use super::areas;
use super::detail::clock;
use crate::dashboard::app::App;
use crate::dashboard::state::log::Tone;
use crate::words::wrapped;

/// Lines as they are shown, each with the number of its message; and the first that is seen.
fn lines(app: &App, cursor: usize, area: Rect) -> (Vec<(usize, Line<'static>)>, usize) {
    let theme = &app.theme;
    // long ones are wrapped: they are here to be read
    let width = usize::from(area.width).saturating_sub(14).max(10);
    let mut lines = Vec::new();
    let mut cursor_at = 0;
    for (n, message) in app.log.messages.iter().enumerate() {
        if n == cursor {
            cursor_at = lines.len();
        }
        let style = if message.tone == Tone::Failed { theme.bad } else { theme.text };
        let times = if message.times > 1 { format!(" ×{}", message.times) } else { String::new() };
        let text = visible(&message.text) + &times;
        for (part, chunk) in wrapped(&text, width).into_iter().enumerate() {
            let lead = if part == 0 { format!(" {} ", clock(app, message.at)) } else { " ".repeat(10) };
            let mark = if n == cursor && part == 0 { "▸" } else { " " };
            let line = Line::from(vec![Span::styled(mark, theme.focus), Span::styled(lead, theme.dim), Span::styled(chunk, style)]);
            lines.push((n, line));
        }
    }
    let height = usize::from(area.height);
    let top = (cursor_at + 1).saturating_sub(height).max(lines.len().saturating_sub(height).min(cursor_at));
    (lines, top)
}

/// Which message is under the mouse.
pub fn at(app: &App, cursor: usize, at: Position) -> Option<usize> {
    let area = areas::body(app.area);
    let (lines, top) = lines(app, cursor, area);
    let row = area.contains(at).then(|| top + usize::from(at.y - area.y))?;
    lines.get(row).map(|(n, _)| *n)
}

pub fn draw(app: &App, cursor: usize, frame: &mut Frame<'_>, area: Rect) {
    if app.log.messages.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled(" nothing has been said yet", app.theme.dim)), area);
        return;
    }
    let (lines, top) = lines(app, cursor, area);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).take(usize::from(area.height)).map(|(_, line)| line).collect();
    frame.render_widget(Paragraph::new(shown), area);
}
