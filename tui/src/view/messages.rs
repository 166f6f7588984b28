//! What was said here, oldest first.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::text::{columns, visible};

use super::detail::clock;
use crate::app::App;
use crate::state::log::Tone;

pub fn draw(app: &App, cursor: usize, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    if app.log.messages.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled(" nothing has been said yet", theme.dim)), area);
        return;
    }
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
            lines.push(Line::from(vec![Span::styled(mark, theme.focus), Span::styled(lead, theme.dim), Span::styled(chunk, style)]));
        }
    }
    let height = usize::from(area.height);
    let top = (cursor_at + 1).saturating_sub(height).max(lines.len().saturating_sub(height).min(cursor_at));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).take(height).collect();
    frame.render_widget(Paragraph::new(shown), area);
}

/// By words; a word that is too long is cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word.to_owned();
        loop {
            let last = lines.last().map_or(0, |line| columns(line));
            let gap = usize::from(last > 0);
            if last + gap + columns(&rest) <= width {
                if let Some(line) = lines.last_mut() {
                    line.push_str(&" ".repeat(gap));
                    line.push_str(&rest);
                }
                break;
            }
            if last > 0 {
                lines.push(String::new());
                continue;
            }
            let head: String = rest.chars().take(width.max(1)).collect();
            rest = rest.chars().skip(width.max(1)).collect();
            if let Some(line) = lines.last_mut() {
                line.push_str(&head);
            }
            lines.push(String::new());
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}
