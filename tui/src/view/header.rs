//! The first line: who needs you, how many there are, and what is wrong with the daemon if something is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::session::Status;
use shared::text::{columns, fit, visible};

use super::areas;
use crate::app::{App, Link, View};
use crate::keymap::Action;
use crate::state::list::Scope;
use crate::state::remembered::Layout;

pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    if let Some(text) = banner(app) {
        let text = fit(&format!(" {text}"), usize::from(area.width));
        frame.render_widget(Paragraph::new(text).style(theme.banner), area);
        return;
    }
    let list = &app.list;
    let needing = list.count(|session| session.needs.as_ref().is_some_and(|needs| needs.state.needs_someone()));
    let counts = [
        (list.count(|session| session.status == Status::Active), "active", theme.good),
        (list.count(|session| session.status == Status::Paused), "paused", theme.warn),
        (list.count(|session| session.status == Status::Queued), "queued", theme.warn),
        (list.count(|session| session.status.has_ended()), "ended", theme.dim),
    ];
    let mut spans = vec![Span::styled(" sessions ", theme.accent)];
    if needing > 0 {
        let words = if needing == 1 { "1 needs you".to_owned() } else { format!("{needing} need you") };
        spans.push(Span::styled(format!(" {words} "), theme.found));
    }
    for (count, word, style) in counts {
        if count > 0 {
            spans.push(Span::styled(format!(" {count}"), style));
            spans.push(Span::styled(format!(" {word}"), theme.dim));
        }
    }
    let where_am_i = match app.views.last() {
        Some(View::Detail(detail)) => detail.session.as_ref().map(|session| visible(&session.name)),
        Some(View::Stats(_)) => Some("statistics".into()),
        Some(View::Messages { .. }) => Some("messages".into()),
        _ => None,
    };
    let mut right = Vec::new();
    match where_am_i {
        Some(text) => right.push(text),
        None => {
            if !list.selected.is_empty() {
                right.push(format!("{} selected", list.selected.len()));
            }
            if !list.filter.is_empty() {
                right.push(format!("/{} {} of {}", visible(&list.filter), list.shown_count(), list.all.len()));
            }
            if list.scope == Scope::All {
                right.push("all".into());
            }
            if let Some(page) = page(app) {
                right.push(page);
            }
            right.push(format!("by {}", list.sort.words()));
        }
    }
    let left = Line::from(spans);
    let room = usize::from(area.width).saturating_sub(left.width() + 2);
    let mut text = right.join(" · ");
    // the last is the least
    while columns(&text) > room && right.len() > 1 {
        right.pop();
        text = right.join(" · ");
    }
    frame.render_widget(Paragraph::new(left), area);
    let text = fit(&text, room);
    let width = columns(&text) as u16;
    if width > 0 && room > 4 {
        let place = Rect { x: area.right().saturating_sub(width + 1), width: width + 1, ..area };
        frame.render_widget(Paragraph::new(Span::styled(text, theme.dim)), place);
    }
}

/// Which tiles are shown, if there are more of them.
fn page(app: &App) -> Option<String> {
    if app.layout != Layout::Grid || app.pane.is_some() {
        return None;
    }
    let (shown, tiles) = (app.list.shown_count(), areas::tiles(app));
    let first = tiles.first().and_then(|(id, _)| app.list.shown().position(|session| session.id == *id))?;
    (tiles.len() < shown).then(|| format!("{}–{} of {shown}", first + 1, first + tiles.len()))
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
