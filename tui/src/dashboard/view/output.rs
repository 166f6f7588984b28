//! The page with what code printed that was run from the dashboard.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::dashboard::app::App;
use crate::dashboard::state::output::Kind;

/// Columns of a row's text: one is left free on either side.
pub fn width(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2)).max(1)
}

pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    let Some(output) = &app.output else { return };
    let rows = output.rows(width(area));
    let top = output.top.min(rows.len().saturating_sub(usize::from(area.height)));
    let lines = rows.into_iter().skip(top).take(usize::from(area.height)).map(|(kind, row)| {
        let style = match kind {
            Kind::Heading => theme.strong,
            Kind::Stdout => theme.text,
            Kind::Stderr => theme.bad,
            Kind::Value => theme.good,
            Kind::Note => theme.dim,
        };
        Line::from(Span::styled(format!(" {row}"), style))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}
