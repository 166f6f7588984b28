//! The first line: who needs you, how many there are, and what is wrong with the daemon if something is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::session::Status;
use shared::text::{columns, fit, visible};

use super::areas;
use crate::dashboard::app::{App, Link, View};
use crate::dashboard::state::list::{Row, Scope};
use crate::dashboard::state::order::Only;
use crate::dashboard::state::remembered::Layout;
use crate::keymap::Action;

pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    if let Some(text) = banner(app) {
        let text = fit(&format!(" {text}"), usize::from(area.width));
        frame.render_widget(Paragraph::new(text).style(theme.banner), area);
        return;
    }
    let list = &app.list;
    let needing =
        list.count(|session| session.unreachable.is_some() || session.needs.as_ref().is_some_and(|needs| needs.state.needs_someone()));
    let counts = [
        (list.count(|session| session.status == Status::Active), "active", theme.good),
        (list.count(|session| session.status == Status::Paused), "paused", theme.warn),
        (list.count(|session| session.status == Status::Queued), "queued", theme.warn),
        (list.count(|session| session.status.has_ended()), "ended", theme.dim),
    ];
    let width = usize::from(area.width);
    let elsewhere = where_am_i(app);
    let is_list = elsewhere.is_none();
    let first = fit(&elsewhere.unwrap_or_else(|| narrowed(app, width)), width.saturating_sub(2));
    // what does not fit beside that is left out whole, the least first
    let mut room = width.saturating_sub(if first.is_empty() { 0 } else { columns(&first) + 2 });
    let mut fits = |wide: usize| {
        let has_room = wide <= room;
        room -= if has_room { wide } else { 0 };
        has_room
    };
    let needing = match needing {
        0 => None,
        1 => Some(" 1 needs you ".to_owned()),
        _ => Some(format!(" {needing} need you ")),
    };
    let needing = needing.filter(|text| fits(columns(text)));
    let title = Some(" sessions ").filter(|text| fits(columns(text)));
    let mut right: Vec<String> = Some(first).into_iter().filter(|text| !text.is_empty()).collect();
    right.extend(in_view(app).filter(|text| is_list && fits(columns(text) + 3)));
    let counts = counts.into_iter().filter(|(count, _, _)| *count > 0);
    let counts: Vec<_> = counts.take_while(|(count, word, _)| fits(columns(word) + count.to_string().len() + 2)).collect();
    if is_list {
        let all = (list.scope == Scope::All).then(|| "all".to_owned());
        let only = (list.only != Only::All).then(|| list.only.words().to_owned());
        let rest = only.into_iter().chain(all).chain([format!("by {}", list.sort.words())]);
        right.extend(rest.filter(|text| fits(columns(text) + 3)));
    }
    let mut spans: Vec<Span<'_>> = title.map(|text| Span::styled(text, theme.accent)).into_iter().collect();
    spans.extend(needing.map(|text| Span::styled(text, theme.found)));
    for (count, word, style) in counts {
        spans.push(Span::styled(format!(" {count}"), style));
        spans.push(Span::styled(format!(" {word}"), theme.dim));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
    let right = right.join(" · ");
    let wide = columns(&right) as u16;
    let place = Rect { x: area.right().saturating_sub(wide + 1), width: wide.min(area.width), ..area };
    frame.render_widget(Paragraph::new(Span::styled(right, theme.dim)), place);
}

/// What is shown instead of the sessions.
fn where_am_i(app: &App) -> Option<String> {
    match app.views.last() {
        Some(View::Detail(detail)) => detail.session.as_ref().map(|session| visible(&session.name)),
        Some(View::Stats(_)) => Some("statistics".into()),
        Some(View::Messages { .. }) => Some("messages".into()),
        Some(View::Output) => app.output.as_ref().map(|output| format!("output of {}", fit(&visible(&output.code), 40))),
        _ => None,
    }
}

/// What is selected, and the filter: without them sessions seem lost, so they are seen in every window.
fn narrowed(app: &App, width: usize) -> String {
    let list = &app.list;
    let selected = (!list.selected.is_empty()).then(|| format!("{} selected", list.selected.len()));
    let taken = selected.as_ref().map_or(0, |text| columns(text) + 3);
    let filter = (!list.filter.is_empty()).then(|| {
        let text = format!("/{}", visible(&list.filter));
        let count = format!(" {} of {}", list.shown_count(), list.all.len());
        let room = width.saturating_sub(taken + 2);
        // the first letters of a long one say enough, if how many it leaves is seen too
        match room.checked_sub(columns(&count)) {
            Some(left) if left >= columns(&text).min(8) => fit(&text, left) + &count,
            _ => fit(&text, room),
        }
    });
    selected.into_iter().chain(filter).collect::<Vec<_>>().join(" · ")
}

/// Which sessions are in view, if there are more of them.
fn in_view(app: &App) -> Option<String> {
    let list = &app.list;
    let shown = list.shown_count();
    let (first, seen) = if app.layout == Layout::Grid && app.pane.is_none() {
        let tiles = areas::tiles(app);
        let first = tiles.first().and_then(|(id, _)| list.shown().position(|session| session.id == *id))?;
        (first, tiles.len())
    } else {
        areas::sessions(app).list?;
        let is_session = |row: &&Row| matches!(row, Row::Session(_));
        let first = list.rows.iter().take(list.top).filter(is_session).count();
        (first, list.rows.iter().skip(list.top).take(areas::list_height(app)).filter(is_session).count())
    };
    match seen {
        1 if shown > 1 => Some(format!("{} of {shown}", first + 1)),
        2.. if seen < shown => Some(format!("{}–{} of {shown}", first + 1, first + seen)),
        _ => None,
    }
}

fn banner(app: &App) -> Option<String> {
    let place = app.place();
    let leaves = if app.views.is_empty() { "leaves" } else { "goes back" };
    let key = |action| app.keymap.hint(place, action);
    let keys = |does: &str| format!("{} {does}, {} {leaves}", key(Action::Refresh), key(Action::Quit));
    match &app.link {
        // what the settings lack is said for as long as it is so: they are not what their file says
        Link::Up => app.wrong.first().map(|sentence| visible(sentence)),
        Link::Lost => Some("the daemon is gone; it is being started again … sessions go on".into()),
        Link::Stopped => Some(format!("the daemon was stopped; sessions go on. {}", keys("starts it again"))),
        Link::Failed(why) => Some(format!("{}: {}", keys("tries again"), visible(why))),
    }
}
