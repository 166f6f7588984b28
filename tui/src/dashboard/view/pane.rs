//! The terminal beside the list.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::Paragraph;
use shared::text::visible;

use super::{areas, rule};
use crate::dashboard::app::{App, Focus};
use crate::dashboard::state::pane::{Pane, State};
use crate::keymap::{Action, Place};
use crate::replay::{Part, ScreenWidget};

pub fn draw(app: &App, pane: &Pane, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    let has_focus = app.focus == Focus::Pane;
    let border = if has_focus { theme.focus } else { theme.border };
    if let Some(title) = areas::sessions(app).pane_title {
        let state = match (&pane.state, pane.has_control) {
            (State::Joining, _) => ("joining …".to_owned(), theme.dim),
            (State::Away, _) => ("waits for the daemon …".to_owned(), theme.warn),
            (State::Over(why), _) => (why.clone(), theme.warn),
            (State::Attached, false) => (format!("only watching · {} t takes control", app.prefix.label()), theme.warn),
            (State::Attached, true) => (pane.screen.title().to_owned(), theme.dim),
        };
        let right = if has_focus {
            format!("{} d list", app.prefix.label())
        } else {
            let does = if app.list.current().is_some_and(shared::session::Session::is_over) { "plays it" } else { "types here" };
            format!("{} {does}", app.keymap.hint(Place::Beside, Action::Open))
        };
        rule(&[(pane.name.clone(), if has_focus { theme.accent } else { theme.strong }), state], (&right, theme.dim), border, title, frame);
        if title.x > 0 {
            for y in title.top()..area.bottom() {
                frame.buffer_mut()[(title.x - 1, y)].set_symbol("│").set_style(border);
            }
        }
    }
    let size = pane.screen.size();
    let part = Part::From { row: 0, col: 0 };
    frame.render_widget(ScreenWidget { screen: &pane.screen, part, found: &HashSet::new() }.without_cursor(), area);
    if pane.state == State::Joining && (0..size.rows).all(|row| pane.screen.row_text(row).is_empty()) {
        let place = Rect { height: 1, ..area };
        frame.render_widget(Paragraph::new(Span::styled(format!(" {} …", visible(&pane.name)), theme.dim)), place);
    }
    if let Some(selection) = &pane.selection {
        let buffer = frame.buffer_mut();
        for y in 0..area.height {
            let Some(columns) = selection.columns(usize::from(y)) else { continue };
            for x in (0..area.width).filter(|x| columns.contains(&usize::from(*x))) {
                buffer[(area.x + x, area.y + y)].set_style(Style::new().add_modifier(Modifier::REVERSED));
            }
        }
    }
    let cursor = pane.screen.cursor();
    let is_inside = cursor.col < area.width && cursor.row < area.height;
    if has_focus && cursor.visible && is_inside && app.overlay.is_none() && app.views.is_empty() {
        frame.set_cursor_position(Position { x: area.x + cursor.col, y: area.y + cursor.row });
    }
}
