//! Everything about one session, page by page.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::event::Event;
use shared::text::{fit, visible};
use shared::watch::{ChangedFiles, FileChange, Since, Watching};

use super::{areas, cell, rule};
use crate::dashboard::app::App;
use crate::dashboard::state::detail::{Detail, Page};
use crate::dashboard::state::layers::Tone;
use crate::dashboard::state::tree::Fold;
use crate::words::length;
use crate::words::wrapped;

pub fn draw(app: &App, detail: &Detail, frame: &mut Frame<'_>) {
    let theme = &app.theme;
    let body = areas::body(app.area);
    let tabs = areas::tabs(app);
    let (before, behind) = areas::more_tabs(&tabs);
    for (is_there, mark, x) in [(before, "‹", body.x), (behind, "›", body.right().saturating_sub(1))] {
        if is_there {
            frame.buffer_mut().set_stringn(x, body.y, mark, 1, theme.accent);
        }
    }
    for (page, place) in tabs {
        let style = if page == detail.page { theme.found } else { theme.dim };
        frame.render_widget(Paragraph::new(Span::styled(format!(" {} ", page.words()), style)), place);
    }
    let line = Rect { y: body.y + 1, height: 1, ..body };
    let mut about = Vec::new();
    if !detail.filter.is_empty() {
        about.push((format!("/{}", detail.filter), theme.note));
    }
    if detail.page == Page::Events {
        about.push((format!("kinds: {}", detail.kinds.words()), theme.dim));
    }
    if detail.page == Page::Files
        && let Some(changed) = &detail.changed
    {
        about.push((since_words(detail, changed), theme.dim));
        if !matches!(changed.watch, Watching::On { .. }) && !detail.files().is_empty() {
            about.push((visible(&changed.watch.in_words()), theme.warn));
        }
    }
    if let Some(failure) = &detail.failure {
        about.push((failure.clone(), theme.bad));
    }
    let count = detail.count();
    let right = if count > 0 { format!("{} of {count}", detail.cursor() + 1) } else { String::new() };
    rule(&about, (&right, theme.dim), theme.border, line, frame);
    let rows = areas::page(app);
    let lines = lines(app, detail, usize::from(rows.width));
    if lines.is_empty() {
        let lines = wrapped(&empty(detail), usize::from(rows.width).saturating_sub(2));
        let lines: Vec<Line<'_>> = lines.into_iter().map(|line| Line::styled(format!(" {line}"), theme.dim)).collect();
        frame.render_widget(Paragraph::new(lines), rows);
        return;
    }
    let top = detail.top();
    for (n, line) in lines.into_iter().skip(top).take(usize::from(rows.height)).enumerate() {
        let place = Rect { y: rows.y + n as u16, height: 1, ..rows };
        frame.render_widget(Paragraph::new(line), place);
        if top + n == detail.cursor() {
            let buffer = frame.buffer_mut();
            for x in place.left()..place.right() {
                buffer[(x, place.y)].set_style(theme.cursor);
            }
        }
    }
}

fn empty(detail: &Detail) -> String {
    let text = match detail.page {
        Page::Layers => "asking …",
        Page::Events => "no events of this kind",
        Page::Commands => "no commands: shells that mark them (OSC 133) and calls to interpreters come here",
        Page::Context => "no context: `sessions-tui context NAME --set JSON` keeps what whoever goes on needs to know",
        Page::Files => match &detail.changed {
            None => "asking …",
            Some(changed) if changed.files.is_empty() => {
                return format!(
                    "no file of the workspace has changed, {}: {}",
                    since_words(detail, changed),
                    visible(&changed.watch.in_words())
                );
            }
            Some(_) => "no file with this in its name",
        },
    };
    text.to_owned()
}

/// From when on files are shown.
fn since_words(detail: &Detail, changed: &ChangedFiles) -> String {
    match (&changed.command, detail.files_since) {
        (Some(command), _) => format!("since {}", fit(&visible(command.lines().next().unwrap_or_default()), 40)),
        (None, Since::Command) => "since it began: no command yet".to_owned(),
        (None, _) => "since it began".to_owned(),
    }
}

fn lines(app: &App, detail: &Detail, width: usize) -> Vec<Line<'static>> {
    let theme = &app.theme;
    match detail.page {
        Page::Layers => detail
            .layer_lines(&app.zone)
            .into_iter()
            .map(|line| match line.tone {
                Tone::Heading => Line::styled(format!(" {}", line.value), theme.accent),
                Tone::Plain | Tone::Bad => {
                    let style = if line.tone == Tone::Bad { theme.bad } else { theme.text };
                    Line::from(vec![
                        Span::styled(format!("   {}", cell(&line.label, 12)), theme.dim),
                        Span::styled(fit(&line.value, width.saturating_sub(16)), style),
                    ])
                }
            })
            .collect(),
        Page::Events => detail.events().into_iter().map(|event| event_line(app, event, width)).collect(),
        Page::Commands => {
            let commands = detail.commands();
            commands
                .iter()
                .map(|command| {
                    let (mark, style) = match (command.is_running, command.exit_code) {
                        (true, _) => ("…", theme.note),
                        (false, Some(0)) => ("✓", theme.good),
                        (false, Some(_)) => ("✗", theme.bad),
                        (false, None) => ("·", theme.dim),
                    };
                    let code = command.exit_code.filter(|code| *code != 0).map(|code| code.to_string()).unwrap_or_default();
                    let took = command.took_ms.map(length).unwrap_or_default();
                    let who = command.language.map_or("terminal", |language| language.as_str());
                    let author = command.author.map(shared::event::Author::as_str).unwrap_or_default();
                    let room = width.saturating_sub(45);
                    Line::from(vec![
                        Span::styled(format!(" {mark} "), style),
                        Span::styled(format!("{} ", clock(app, command.at)), theme.dim),
                        Span::styled(cell(who, 8) + " ", theme.dim),
                        Span::styled(cell(&code, 4), theme.bad),
                        Span::styled(format!("{took:>8} "), theme.dim),
                        Span::styled(cell(author, 6) + " ", theme.dim),
                        Span::raw(fit(&command.text, room)),
                    ])
                })
                .collect()
        }
        Page::Context => detail
            .context()
            .into_iter()
            .map(|row| {
                let fold = match row.folds {
                    Fold::Leaf => "  ",
                    Fold::Open => "▾ ",
                    Fold::Closed => "▸ ",
                };
                let lead = format!(" {}{fold}", "  ".repeat(row.depth));
                let room = width.saturating_sub(lead.chars().count() + row.key.chars().count() + 3);
                let style = if row.folds == Fold::Leaf { theme.text } else { theme.dim };
                Line::from(vec![
                    Span::styled(lead, theme.dim),
                    Span::styled(format!("{}: ", row.key), theme.accent),
                    Span::styled(fit(&row.value, room), style),
                ])
            })
            .collect(),
        Page::Files => detail
            .files()
            .into_iter()
            .map(|file| {
                let style = match file.change {
                    FileChange::Created => theme.good,
                    FileChange::Changed => theme.note,
                    FileChange::Removed => theme.bad,
                };
                let times = if file.times > 1 { format!(" ×{}", file.times) } else { String::new() };
                Line::from(vec![
                    Span::styled(format!(" {} ", clock(app, file.at)), theme.dim),
                    Span::styled(cell(file.change.as_str(), 8) + " ", style),
                    Span::raw(fit(&visible(&file.path), width.saturating_sub(19 + times.chars().count()))),
                    Span::styled(times, theme.dim),
                ])
            })
            .collect(),
    }
}

fn event_line(app: &App, event: &Event, width: usize) -> Line<'static> {
    let theme = &app.theme;
    let style = match event.kind.as_str() {
        "error" | "lost" | "timeout" | "recording_suspended" => theme.bad,
        "complete" | "start" | "resume" | "restored" => theme.good,
        "pause" | "queued" | "notification" | "bell" => theme.warn,
        "attach" | "detach" | "control" => theme.dim,
        _ => theme.note,
    };
    let data = match &event.data {
        serde_json::Value::Null => String::new(),
        // what is a name for programs only comes last
        serde_json::Value::Object(map) => {
            let (ids, words): (Vec<_>, Vec<_>) = map.iter().partition(|(_, value)| value.as_str().is_some_and(is_id));
            words.into_iter().chain(ids).map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(" ")
        }
        other => plain(other),
    };
    let room = width.saturating_sub(36);
    Line::from(vec![
        Span::styled(format!(" {} ", clock(app, event.at)), theme.dim),
        Span::styled(cell(&event.kind, 16) + " ", style),
        Span::styled(cell(event.author.as_str(), 6) + " ", theme.dim),
        Span::raw(fit(&visible(&data), room)),
    ])
}

fn is_id(text: &str) -> bool {
    shared::id::SessionId::parse(text).is_some()
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Time of day, on the user's own clock.
pub fn clock(app: &App, at: jiff::Timestamp) -> String {
    at.to_zoned(app.zone.clone()).strftime("%H:%M:%S").to_string()
}
