//! The last line: what was said, what is under way, else the keys that fit where one is. Clicking on a key presses it.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::text::{columns, fit, visible};

use super::areas;
use super::hits::meter;
use crate::dashboard::app::{App, Focus, Overlay, Prompt, View};
use crate::dashboard::state::detail::Page;
use crate::dashboard::state::hits;
use crate::dashboard::state::log::Tone;
use crate::keymap::{Action, Place};

pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    if let Some(Overlay::Prompt(prompt)) = &app.overlay {
        draw_prompt(app, prompt, frame, area);
        return;
    }
    if let Some(message) = app.log.current() {
        let style = if message.tone == Tone::Failed { theme.bad } else { theme.text };
        let text = visible(&message.text);
        let room = usize::from(area.width).saturating_sub(1);
        // what does not fit can be read in the log
        let more = format!(" {}: all of it", app.keymap.hint(app.place(), Action::Messages));
        let is_log = matches!(app.views.last(), Some(View::Messages { .. }));
        let text = match columns(&text) > room {
            true if is_log => fit(&text, room),
            true => fit(&text, room.saturating_sub(columns(&more))) + &more,
            false => text,
        };
        frame.render_widget(Paragraph::new(Span::styled(format!(" {text}"), style)), area);
        return;
    }
    if let Some((_, file, done)) = &app.exporting {
        let text = format!(" {} writing {} {} %", meter(done / 10, 20), visible(file), done / 10);
        frame.render_widget(Paragraph::new(Span::styled(text, theme.note)), area);
        return;
    }
    if app.is_opening {
        let text = format!(" opening the recording … {}: do not", app.keymap.hint(app.place(), Action::Back));
        frame.render_widget(Paragraph::new(Span::styled(text, theme.note)), area);
        return;
    }
    if let Some((verb, done, total)) = app.under_way() {
        let percent = (done * 100 / total.max(1)) as u64;
        let text = format!(" {} {verb}: {done} of {total}", meter(percent, 20));
        frame.render_widget(Paragraph::new(Span::styled(text, theme.note)), area);
        return;
    }
    let mut spans = Vec::new();
    for (key, what, _, _) in hints(app, area) {
        spans.push(Span::styled(format!(" {key}"), theme.accent));
        spans.push(Span::styled(format!(" {what} "), theme.dim));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// A line that is asked for: of a long one the part around the cursor is seen; what is wrong with it is said in full if that
/// leaves room to type.
fn draw_prompt(app: &App, prompt: &Prompt, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    // whom it is about, if that leaves room for what is typed
    let said = prompt.asks.label(&fit(&prompt.whom, 24));
    let label = if columns(&said) * 2 > usize::from(area.width) { prompt.asks.label("") } else { said };
    let label = format!(" {label}");
    let room = usize::from(area.width).saturating_sub(columns(&label) + 1);
    let (hint, style) = match &prompt.error {
        Some(why) => (visible(why), theme.bad),
        None => (prompt.asks.hint().to_owned(), theme.dim),
    };
    let wanted = columns(&visible(prompt.line.text())) + 1;
    let left = room.saturating_sub(wanted + 3);
    let hint = match prompt.error {
        // what is typed keeps a third of the line at least
        Some(_) => fit(&hint, left.max(room.saturating_sub(room / 3 + 3))),
        None => whole_parts(&hint, left),
    };
    let for_hint = if hint.is_empty() { 0 } else { columns(&hint) + 3 };
    let (shown, cursor) = prompt.line.shown(room.saturating_sub(for_hint));
    let x = area.x + (columns(&label) + cursor) as u16;
    let line = Line::from(vec![Span::styled(label, theme.accent), Span::raw(shown), Span::raw("   "), Span::styled(hint, style)]);
    frame.render_widget(ratatui::widgets::Clear, area);
    frame.render_widget(Paragraph::new(line), area);
    frame.set_cursor_position(Position { x: x.min(area.right().saturating_sub(1)), y: area.y });
}

/// As many of `one · two · three` as fit: half a word says nothing.
fn whole_parts(text: &str, width: usize) -> String {
    let mut shown = String::new();
    for part in text.split(" · ") {
        let longer = if shown.is_empty() { part.to_owned() } else { format!("{shown} · {part}") };
        if columns(&longer) > width {
            break;
        }
        shown = longer;
    }
    shown
}

/// Keys that fit where one is, as many as there is room for: key, words, what it does, where it begins.
fn hints(app: &App, area: Rect) -> Vec<(String, &'static str, Option<Action>, u16)> {
    let place = app.place();
    let mut wanted: Vec<(Option<String>, &'static str, Option<Action>)> = Vec::new();
    let key = |action: Action, words: &'static str| (app.keymap.key(place, action).map(|key| key.to_string()), words, Some(action));
    match app.views.last() {
        None if app.pane.is_some() && app.focus == Focus::Pane => {
            let prefix = app.prefix.label();
            wanted.push((Some(format!("{prefix} d")), "list", None));
            wanted.push((Some(format!("{prefix} n p")), "next, previous", None));
            wanted.push((Some(format!("{prefix} z")), "whole window", None));
            wanted.push((Some(format!("{prefix} [")), "look back", None));
            wanted.push((Some(format!("{prefix} ?")), "keys", None));
        }
        None if app.pane.is_some() => {
            let has_ended = app.list.current().is_some_and(shared::session::Session::is_over);
            wanted.push(key(Action::Open, if has_ended { "play" } else { "type" }));
            wanted.push(key(Action::Split, "close"));
            wanted.push(key(Action::Down, "next"));
            wanted.push(key(Action::Help, "keys"));
            wanted.push(key(Action::Quit, "quit"));
        }
        None if app.list.rows.is_empty() => {
            wanted.push(key(Action::New, "new"));
            wanted.push(key(Action::Help, "keys"));
            wanted.push(key(Action::Quit, "quit"));
        }
        None => {
            let current = app.list.current();
            let has_ended = current.is_some_and(shared::session::Session::is_over);
            let is_paused = current.is_some_and(|session| session.status == shared::session::Status::Paused);
            if app.list.selected.is_empty() {
                wanted.push(key(Action::Open, if has_ended { "play" } else { "attach" }));
                if !has_ended {
                    wanted.push(key(Action::Split, "split"));
                }
                wanted.push(key(Action::New, "new"));
            }
            wanted.push(key(Action::Filter, "filter"));
            if has_ended {
                wanted.push(key(Action::Remove, "remove"));
            } else {
                wanted.push(key(Action::PauseResume, if is_paused { "resume" } else { "pause" }));
                wanted.push(key(Action::Kill, "end"));
            }
            wanted.push(key(Action::Detail, "detail"));
            wanted.push(key(Action::Grid, if place == Place::Grid { "list" } else { "grid" }));
            wanted.push(key(Action::Search, "search"));
            wanted.push(key(Action::Palette, "actions"));
            wanted.push(key(Action::Help, "keys"));
            wanted.push(key(Action::Quit, "quit"));
        }
        Some(View::Detail(detail)) => {
            wanted.push(key(Action::NextTab, "page"));
            match detail.page {
                Page::Layers => {}
                Page::Context => wanted.push(key(Action::Open, "fold")),
                _ => wanted.push(key(Action::Open, "play from there")),
            }
            match detail.page {
                Page::Events => wanted.push(key(Action::Kinds, "kinds")),
                Page::Files => wanted.push(key(Action::Kinds, "since when")),
                Page::Commands if detail.running_call().is_some() => wanted.push(key(Action::Cancel, "cancel the call")),
                _ => {}
            }
            wanted.push(key(Action::Filter, "filter"));
            wanted.push(key(Action::Attach, "attach"));
            wanted.push(key(Action::Replay, "replay"));
            wanted.push(key(Action::Help, "keys"));
            wanted.push(key(Action::Back, "back"));
        }
        Some(View::Hits(hits)) => {
            if hits.focus == hits::Focus::Text {
                wanted.push((Some("alt-r".into()), "regular expression", None));
                wanted.push((Some("alt-c".into()), "exact case", None));
                wanted.push((Some("enter".into()), "to the hits", None));
                wanted.push((Some("esc".into()), "back", None));
            } else {
                wanted.push(key(Action::Open, "play from there"));
                wanted.push(key(Action::Filter, "change"));
                wanted.push(key(Action::Copy, "copy"));
                wanted.push(key(Action::Help, "keys"));
                wanted.push(key(Action::Back, "back"));
            }
        }
        // it has a line of its own
        Some(View::Time(_)) => {}
        Some(View::Output) => {
            wanted.push(key(Action::Down, "scroll"));
            wanted.push(key(Action::Copy, "copy"));
            wanted.push(key(Action::Help, "keys"));
            wanted.push(key(Action::Back, "back"));
        }
        Some(View::Stats(_) | View::Messages { .. }) => {
            wanted.push(key(Action::Down, "scroll"));
            wanted.push(key(Action::Help, "keys"));
            wanted.push(key(Action::Back, "back"));
        }
    }
    let mut x = area.x;
    let mut shown = Vec::new();
    // the last two say how to learn more or go on, and how to leave: they stay
    let wanted: Vec<(String, &'static str, Option<Action>)> =
        wanted.into_iter().filter_map(|(key, words, action)| Some((key?, words, action))).collect();
    let width = |(key, words, _): &(String, &'static str, Option<Action>)| (columns(key) + columns(words) + 3) as u16;
    let last: u16 = wanted.iter().rev().take(2).map(width).sum();
    let count = wanted.len();
    for (n, hint) in wanted.into_iter().enumerate() {
        let is_last = n + 2 >= count;
        let keeps = if is_last { 0 } else { last };
        let wide = width(&hint);
        if x + wide + keeps <= area.right() {
            shown.push((hint.0, hint.1, hint.2, x));
            x += wide;
        }
    }
    shown
}

/// What a click on the footer means.
pub fn action_at(app: &App, at: Position) -> Option<Action> {
    let area = areas::footer(app.area);
    if at.y != area.y || app.log.current().is_some() {
        return None;
    }
    let hints = hints(app, area);
    let found = hints.into_iter().find(|(key, words, _, x)| (*x..*x + (columns(key) + columns(words) + 3) as u16).contains(&at.x));
    found.and_then(|(_, _, action, _)| action)
}
