//! Searching: what is looked for, hits as they come, and the moment of the one under the cursor.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::search::Hit;
use shared::text::{columns, count, fit, visible};

use super::{areas, cell, rule};
use crate::dashboard::app::App;
use crate::dashboard::state::hits::{Focus, Hits};
use crate::keymap::{Action, Place};
use crate::replay::{Pattern, ScreenWidget, at_cursor};
use crate::words::wrapped;
use crate::words::{ago, bytes};

pub fn draw(app: &App, hits: &Hits, frame: &mut Frame<'_>) {
    let theme = &app.theme;
    let area = app.area;
    let is_typing = hits.focus == Focus::Text;
    let label = " search ";
    let (text, cursor) = hits.line.shown(usize::from(area.width).saturating_sub(columns(label) + 2));
    let line = Line::from(vec![
        Span::styled(label, theme.accent),
        Span::styled("❯ ", if is_typing { theme.focus } else { theme.dim }),
        Span::raw(text),
    ]);
    frame.render_widget(Paragraph::new(line), Rect { height: 1, ..area });
    if is_typing && app.overlay.is_none() {
        let x = area.x + (columns(label) + 2 + cursor) as u16;
        frame.set_cursor_position(Position { x: x.min(area.right().saturating_sub(1)), y: area.y });
    }
    let mut about = Vec::new();
    if hits.is_regex {
        about.push(("regular expression".to_owned(), theme.note));
    }
    if hits.is_exact {
        about.push(("exact case".to_owned(), theme.note));
    }
    if let Some((name, _)) = &hits.only {
        about.push((format!("only in {}", visible(name)), theme.note));
    }
    match (&hits.progress, &hits.summary) {
        (Some((done, total)), _) if *total > 0 => {
            let percent = done * 100 / total.max(&1);
            about.push((format!("{} searching … {percent} % of {}", meter(percent, 10), bytes(*total)), theme.warn));
        }
        (Some(_), _) => about.push(("searching …".into(), theme.warn)),
        (None, Some(Ok(summary))) => {
            let more = if summary.more { ", there are more" } else { "" };
            about.push((
                format!(
                    "{} in {}, {} searched in {:.0} ms{more}",
                    count(hits.found.len(), "hit"),
                    count(summary.sessions as usize, "session"),
                    bytes(summary.searched_bytes),
                    summary.took_ms
                ),
                theme.dim,
            ));
        }
        (None, Some(Err(why))) => about.push((why.clone(), theme.bad)),
        (None, None) => about.push(("everything that was printed, run, told or asked for".into(), theme.dim)),
    }
    rule(&about, ("", theme.dim), theme.border, Rect { y: area.y + 1, height: 1, ..area }, frame);
    let (rows, moment) = areas::hits(area);
    for (n, hit) in hits.found.iter().skip(hits.top).take(usize::from(rows.height)).enumerate() {
        let place = Rect { y: rows.y + n as u16, height: 1, ..rows };
        frame.render_widget(Paragraph::new(hit_line(app, hit, usize::from(rows.width))), place);
        if hits.top + n == hits.cursor {
            let style = if is_typing { theme.selected } else { theme.cursor };
            let buffer = frame.buffer_mut();
            for x in place.left()..place.right() {
                // the match keeps its own background: its text is made for that
                let cell = &mut buffer[(x, place.y)];
                if cell.bg == Color::Reset {
                    cell.set_style(style);
                }
            }
        }
    }
    if hits.found.is_empty() && hits.progress.is_none() && !matches!(hits.summary, Some(Err(_))) {
        let text =
            if hits.summary.is_some() { "nothing was found" } else { "type at least two characters; small letters find large ones too" };
        let lines = wrapped(text, usize::from(rows.width).saturating_sub(2)).into_iter();
        frame.render_widget(Paragraph::new(lines.map(|line| Line::styled(format!(" {line}"), theme.dim)).collect::<Vec<_>>()), rows);
    }
    if let Some(place) = moment {
        draw_moment(app, hits, frame, place);
    }
}

/// A bar of so many cells.
pub fn meter(percent: u64, width: usize) -> String {
    let full = (percent.min(100) as usize * width).div_ceil(100);
    format!("{}{}", "━".repeat(full), "╌".repeat(width - full))
}

fn hit_line(app: &App, hit: &Hit, width: usize) -> Line<'static> {
    let theme = &app.theme;
    let name = cell(&hit.name, (width / 6).clamp(6, 18));
    let when = format!("{:>4}", ago(hit.at, app.at));
    let kind = hit.kind.as_str();
    let times = if hit.times > 1 { format!("×{} ", hit.times) } else { String::new() };
    let lead = columns(&name) + 4 + 9 + columns(&times) + 3;
    let room = width.saturating_sub(lead);
    let mut spans = vec![
        Span::styled(format!(" {name} "), theme.strong),
        Span::styled(format!("{when} {} ", cell(kind, 7)), theme.dim),
        Span::styled(times, theme.warn),
    ];
    // the match is what has to be seen: what is before it is cut if need be
    let first = hit.ranges.first().copied().unwrap_or((0, 0));
    let start = clamp(&hit.line, first.0);
    let end = clamp(&hit.line, first.1.max(first.0));
    let before = visible(hit.line[..start].trim_start());
    let found = visible(&hit.line[start..end]);
    let keep = room.saturating_sub(columns(&found)).min(room / 3);
    let before = if columns(&before) > keep {
        let skip = columns(&before) - keep;
        format!("…{}", before.chars().skip(skip + 1).collect::<String>())
    } else {
        before
    };
    let left = room.saturating_sub(columns(&before));
    let found = fit(&found, left);
    let behind = fit(&visible(&hit.line[end..]), left.saturating_sub(columns(&found)));
    spans.push(Span::raw(before));
    spans.push(Span::styled(found, theme.found));
    spans.push(Span::raw(behind));
    Line::from(spans)
}

/// A place in a text that is between two characters.
fn clamp(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn draw_moment(app: &App, hits: &Hits, frame: &mut Frame<'_>, place: Rect) {
    let theme = &app.theme;
    let Some(hit) = hits.current() else { return };
    let title = Rect { height: 1.min(place.height), ..place };
    let inside = Rect { y: place.y + 1, height: place.height.saturating_sub(1), ..place };
    let at = hit.at.to_zoned(app.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
    rule(
        &[(hit.name.clone(), theme.strong), (at, theme.dim)],
        (&format!("{} plays from here", app.keymap.hint(Place::Hits, Action::Open)), theme.dim),
        theme.border,
        title,
        frame,
    );
    match hits.shown() {
        Some(screen) => {
            let pattern = hits.pattern();
            let found = if pattern.regex { HashSet::default() } else { Pattern::new(&pattern.text).cells(screen) };
            let part = match found.iter().max() {
                // the match is what has to be seen
                Some((row, _)) if screen.size().rows > inside.height => {
                    crate::replay::Part::From { row: row.saturating_sub(inside.height / 2).min(screen.size().rows - inside.height), col: 0 }
                }
                _ => at_cursor(screen, inside),
            };
            frame.render_widget(ScreenWidget { screen, part, found: &found }, inside);
        }
        None => {
            let lines: Vec<Line<'_>> = hit.line.lines().map(|line| Line::raw(format!(" {}", visible(line)))).collect();
            frame.render_widget(Paragraph::new(lines).wrap(ratatui::widgets::Wrap { trim: false }), inside);
        }
    }
}
