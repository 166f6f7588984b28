//! The live screen of the session under the cursor. Only cells are drawn.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use shared::session::Session;
use shared::text::{columns, visible};

use super::rule;
use crate::dashboard::app::App;
use crate::replay::{ScreenWidget, at_cursor, at_edge};
use crate::words::what;

pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    let is_beside = area.y == 1 && area.x > 0;
    let area = if is_beside {
        for y in area.top()..area.bottom() {
            frame.buffer_mut()[(area.x, y)].set_symbol("│").set_style(theme.border);
        }
        Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area }
    } else {
        area
    };
    let Some(session) = app.list.current() else { return };
    let title = Rect { height: 1.min(area.height), ..area };
    let inside = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    draw_titled(app, session, theme.border, frame, title);
    draw_screen(app, session, frame, inside);
}

/// The line that names it.
pub fn draw_titled(app: &App, session: &Session, border: Style, frame: &mut Frame<'_>, title: Rect) {
    let theme = &app.theme;
    let rate = app.rates.get(session.id);
    let about = rate.and_then(|rate| rate.title.clone()).filter(|title| !title.is_empty()).unwrap_or_else(|| what(session));
    let size = app.sights.get(session.id).map(|seen| seen.screen.size()).or(session.size);
    let size = size.map(|size| format!("{}×{}", size.cols, size.rows)).unwrap_or_default();
    let folder = crate::words::short_path(&session.workspace, app.home.as_deref());
    // where it is matters more than how large it is
    let room = usize::from(title.width).saturating_sub(columns(&visible(&session.name)) + columns(&visible(&about)) + 12);
    let right = match (columns(&folder), columns(&size)) {
        (wide, more) if more > 0 && wide + more + 3 <= room => format!("{} · {size}", visible(&folder)),
        (wide, _) if wide <= room.max(usize::from(title.width / 2)) => visible(&folder),
        _ => visible(&shortened(&folder, usize::from(title.width / 2))),
    };
    let names = [(session.name.clone(), theme.strong), (about, theme.dim)];
    rule(&names, (&right, theme.dim), border, title, frame);
}

/// The end of a path says most.
fn shortened(path: &str, width: usize) -> String {
    let mut rest = path;
    while columns(rest) + 1 > width {
        match rest.char_indices().nth(1) {
            Some((at, _)) => rest = &rest[at..],
            None => break,
        }
    }
    format!("…{rest}")
}

pub fn draw_screen(app: &App, session: &Session, frame: &mut Frame<'_>, inside: Rect) {
    if inside.is_empty() {
        return;
    }
    match app.sights.get(session.id) {
        Some(seen) => {
            let part = if seen.follows_cursor { at_cursor(&seen.screen, inside) } else { at_edge(&seen.screen, inside) };
            frame.render_widget(ScreenWidget { screen: &seen.screen, part, found: &HashSet::new() }, inside);
        }
        None => {
            let text = nothing(app, session);
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), inside);
        }
    }
}

/// What is said of a session that has no screen: what there is to know of it.
fn nothing(app: &App, session: &Session) -> Vec<Line<'static>> {
    let theme = &app.theme;
    let mut lines = Vec::new();
    if let Some(task) = &session.task {
        lines.extend(task.lines().take(6).map(|line| Line::styled(format!(" {}", visible(line)), theme.strong)));
    }
    if let Some(result) = session.result.as_ref().or(session.error.as_ref()) {
        lines.extend(result.lines().take(6).map(|line| Line::raw(format!(" {}", visible(line)))));
    }
    if let Some(failure) = app.sights.failure(session.id) {
        lines.push(Line::from(Span::styled(format!(" {}", visible(failure)), theme.dim)));
    }
    lines
}
