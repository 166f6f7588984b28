//! Many live tiles.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, BorderType, Clear};
use shared::session::Session;
use shared::text::{columns, fit, visible};

use super::{areas, preview, sessions};
use crate::dashboard::app::App;
use crate::words::mark;

pub fn draw(app: &App, frame: &mut Frame<'_>) {
    for (id, place) in areas::tiles(app) {
        if let Some(session) = app.list.get(id) {
            tile(app, session, frame, place);
        }
    }
}

fn tile(app: &App, session: &Session, frame: &mut Frame<'_>, place: Rect) {
    let theme = &app.theme;
    let is_cursor = app.list.cursor == Some(session.id);
    let needs = session.needs.as_ref().filter(|needs| needs.state.needs_someone());
    let is_unreachable = session.unreachable.is_some();
    let border: Style = match (is_cursor, needs) {
        (true, _) => theme.focus,
        (false, _) if is_unreachable => theme.bad,
        (false, Some(needs)) => theme.attention(needs.state),
        (false, None) => theme.border,
    };
    let block = Block::bordered().border_style(border).border_type(if is_cursor { BorderType::Thick } else { BorderType::Plain });
    let inside = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    preview::draw_screen(app, session, frame, inside);
    let room = usize::from(place.width.saturating_sub(4));
    let lead = format!(
        "{}{}{} ",
        if app.list.selected.contains(&session.id) { "+" } else { "" },
        if is_unreachable { "!" } else { needs.map_or("", |needs| sessions::attention_mark(needs.state).trim()) },
        mark(session.status),
    );
    let name = fit(&visible(&session.name), room.saturating_sub(columns(&lead) + 1));
    let buffer = frame.buffer_mut();
    let x = place.x + 2;
    buffer.set_stringn(x, place.y, format!(" {lead}"), room, theme.status(session.status));
    let after = x + columns(&lead) as u16 + 1;
    let style = super::over(if is_cursor { theme.focus } else { theme.strong });
    buffer.set_stringn(after, place.y, format!("{name} "), room, style);
    let used = columns(&lead) + columns(&name) + 3;
    let right = match (&session.unreachable, needs) {
        (Some(why), _) => visible(why),
        (None, Some(needs)) => visible(&needs.why),
        (None, None) => sessions::passed(session.last_activity_at, app.at),
    };
    let left_over = room.saturating_sub(used);
    if left_over > 5 {
        let right = fit(&right, left_over - 2);
        let at = place.right() - 3 - columns(&right) as u16;
        let style = if is_unreachable { theme.bad } else { needs.map_or(theme.dim, |needs| theme.attention(needs.state)) };
        buffer.set_stringn(at, place.y, format!(" {right} "), left_over, super::over(style));
    }
}
