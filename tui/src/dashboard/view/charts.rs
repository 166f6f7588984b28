//! Statistics: sessions by status, mode and day, when things happen, what recordings take.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::live::{Calendar, Day};
use shared::session::Status;
use shared::stats::{Disk, Stats};
use shared::text::visible;

use super::{areas, cell};
use crate::dashboard::app::{App, Charts};
use crate::theme::Theme;
use crate::words::wrapped;
use crate::words::{bytes, length};

/// From here on there are two columns.
const WIDE: u16 = 100;

/// The columns, each with its place.
fn columns(app: &App, charts: &Charts, area: Rect) -> Vec<(Rect, Vec<Line<'static>>)> {
    let theme = &app.theme;
    let half = area.width / 2;
    let column = usize::from(if area.width >= WIDE { half } else { area.width });
    let mut left = Vec::new();
    let mut right = Vec::new();
    match &charts.stats {
        Some(stats) => {
            numbers(stats, theme, column, &mut left);
            bars("by status", &by_status(stats, theme), theme, column, &mut left);
            let modes: Vec<(String, u64, Style)> = stats.by_mode.iter().map(|(mode, count)| (mode.clone(), *count, theme.note)).collect();
            bars("by mode", &modes, theme, column, &mut left);
        }
        None => left.push(Line::styled(
            charts.failure.as_ref().map_or_else(|| " counting …".to_owned(), |why| format!(" {}", visible(why))),
            theme.dim,
        )),
    }
    if let Some(calendar) = &charts.calendar {
        days(calendar, theme, column, &mut right);
        heat(calendar, theme, column, &mut right);
    }
    if let Some(disk) = &charts.disk {
        recordings(disk, theme, column, &mut right);
    }
    if area.width >= WIDE {
        return vec![(Rect { width: half, ..area }, left), (Rect { x: area.x + half, width: area.width - half, ..area }, right)];
    }
    left.push(Line::raw(""));
    left.extend(right);
    vec![(area, left)]
}

pub fn draw(app: &App, charts: &Charts, frame: &mut Frame<'_>, area: Rect) {
    for (place, lines) in columns(app, charts, area) {
        let top = charts.top.min(below(&lines, place));
        let shown: Vec<Line<'static>> = lines.into_iter().skip(top).take(usize::from(place.height)).collect();
        frame.render_widget(Paragraph::new(shown), place);
    }
}

/// How many lines do not fit into the window.
pub fn overflow(app: &App, charts: &Charts) -> usize {
    columns(app, charts, areas::body(app.area)).iter().map(|(place, lines)| below(lines, *place)).max().unwrap_or(0)
}

fn below(lines: &[Line<'_>], place: Rect) -> usize {
    lines.len().saturating_sub(usize::from(place.height))
}

/// A label and what belongs to it; what does not fit goes on below, by words.
fn labelled(label: &str, text: &str, width: usize, theme: &Theme, lines: &mut Vec<Line<'static>>) {
    const LABEL: usize = 12;
    for (n, part) in wrapped(text, width.saturating_sub(LABEL + 3)).into_iter().enumerate() {
        let label = if n == 0 { label } else { "" };
        lines.push(Line::from(vec![Span::styled(format!("   {}", cell(label, LABEL)), theme.dim), Span::raw(part)]));
    }
}

fn heading(text: &str, theme: &Theme, lines: &mut Vec<Line<'static>>) {
    if !lines.is_empty() {
        lines.push(Line::raw(""));
    }
    lines.push(Line::styled(format!(" {text}"), theme.accent));
}

fn numbers(stats: &Stats, theme: &Theme, width: usize, lines: &mut Vec<Line<'static>>) {
    heading("all sessions", theme, lines);
    let percent = |rate: f64| format!("{:.0} %", rate * 100.0);
    let mut rows = vec![
        ("sessions", stats.total.to_string()),
        ("success", stats.success_rate.map_or_else(|| "none has ended yet".into(), percent)),
        ("iterations", stats.average_iterations.map_or_else(|| "–".into(), |n| format!("{n:.1} on average"))),
        (
            "duration",
            match (stats.average_duration_ms, stats.p95_duration_ms) {
                (Some(average), Some(p95)) => format!("{} on average, 95 % below {}", length(average), length(p95 as f64)),
                _ => "–".into(),
            },
        ),
        ("calls", stats.execs.to_string()),
        ("recorded", bytes(stats.recorded_bytes)),
    ];
    if stats.cost > 0.0 || stats.tokens.total > 0 {
        rows.push(("cost", format!("{:.2}, {} tokens", stats.cost, stats.tokens.total)));
    }
    for (label, value) in rows {
        labelled(label, &value, width, theme, lines);
    }
}

fn by_status(stats: &Stats, theme: &Theme) -> Vec<(String, u64, Style)> {
    let count = |status: Status| stats.by_status.get(status.as_str()).copied().unwrap_or(0);
    Status::ALL
        .into_iter()
        .map(|status| (status.to_string(), count(status), theme.status(status)))
        .filter(|(_, count, _)| *count > 0)
        .collect()
}

fn bars(title: &str, rows: &[(String, u64, Style)], theme: &Theme, width: usize, lines: &mut Vec<Line<'static>>) {
    if rows.is_empty() {
        return;
    }
    heading(title, theme, lines);
    let most = rows.iter().map(|(_, count, _)| *count).max().unwrap_or(1).max(1);
    let room = width.saturating_sub(28).clamp(4, 50);
    for (label, count, style) in rows.iter().take(12) {
        lines.push(Line::from(vec![
            Span::styled(format!("   {} ", cell(label, 12)), theme.dim),
            Span::styled(bar(*count, most, room), *style),
            Span::raw(format!(" {count}")),
        ]));
    }
}

/// A bar in eighths of a cell; what is there at all is seen.
fn bar(count: u64, most: u64, room: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count * room as u64 * 8 / most.max(1)).max(u64::from(count > 0)) as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

fn days(calendar: &Calendar, theme: &Theme, width: usize, lines: &mut Vec<Line<'static>>) {
    const ROWS: u64 = 5;
    const PARTS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    if calendar.days.is_empty() {
        return;
    }
    heading("sessions by day", theme, lines);
    let shown: Vec<&Day> =
        calendar.days.iter().rev().take(width.saturating_sub(12).clamp(7, 56) / 2).collect::<Vec<_>>().into_iter().rev().collect();
    let most = shown.iter().map(|day| day.total()).max().unwrap_or(1).max(1);
    for row in (0..ROWS).rev() {
        let mut spans = vec![Span::styled(
            if row == ROWS - 1 {
                format!("{most:>5} ")
            } else if row == 0 {
                "    0 ".into()
            } else {
                "      ".into()
            },
            theme.dim,
        )];
        for day in &shown {
            let eighths = (day.total() * ROWS * 8).div_ceil(most);
            let part = eighths.saturating_sub(row * 8).min(8) as usize;
            let failed = day.of(Status::Failed) + day.of(Status::Timeout);
            let style = if failed * 2 > day.total() { theme.bad } else { theme.good };
            spans.push(Span::styled(format!("{} ", PARTS[part]), style));
        }
        lines.push(Line::from(spans));
    }
    if let (Some(first), Some(last)) = (shown.first(), shown.last()) {
        let room = (shown.len() * 2).saturating_sub(6);
        lines.push(Line::styled(format!("      {}{:>room$}", short(&first.date), short(&last.date)), theme.dim));
    }
}

/// `11-17`
fn short(date: &str) -> String {
    date.get(5..).unwrap_or(date).to_owned()
}

fn heat(calendar: &Calendar, theme: &Theme, width: usize, lines: &mut Vec<Line<'static>>) {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const SHADES: [&str; 5] = ["·", "░", "▒", "▓", "█"];
    let most = calendar.hours.iter().flatten().copied().max().unwrap_or(0);
    if most == 0 {
        return;
    }
    heading("when things happen", theme, lines);
    let wide = width >= 7 + 48;
    for (day, hours) in DAYS.iter().zip(&calendar.hours) {
        let mut spans = vec![Span::styled(format!("   {day} "), theme.dim)];
        for count in hours {
            // each shade is a good deal more than the one before
            let shade = if *count == 0 { 0 } else { 1 + (((*count as f64).ln_1p() / (most as f64).ln_1p()) * 3.99) as usize };
            let symbol = SHADES[shade.min(4)];
            let style = if shade == 0 { theme.border } else { theme.note };
            spans.push(Span::styled(if wide { symbol.repeat(2) } else { symbol.to_owned() }, style));
        }
        lines.push(Line::from(spans));
    }
    let step = if wide { 12 } else { 6 };
    let marks = ["0", "6", "12", "18"].map(|hour| cell(hour, step)).concat();
    lines.push(Line::styled(format!("       {marks}"), theme.dim));
}

fn recordings(disk: &Disk, theme: &Theme, width: usize, lines: &mut Vec<Line<'static>>) {
    heading("recordings on disk", theme, lines);
    let limit = disk.limit.map(|limit| format!(" of {}", bytes(limit))).unwrap_or_default();
    let free = disk.free.map(|free| format!(", {} free", bytes(free))).unwrap_or_default();
    let total = format!("{}{limit}{free}", bytes(disk.total.bytes));
    let parts =
        format!("{} as written, {} packed, {} for seeking", bytes(disk.total.plain), bytes(disk.total.packed), bytes(disk.total.index));
    for (text, style) in [(total, theme.text), (parts, theme.dim)] {
        lines.extend(wrapped(&text, width.saturating_sub(3)).into_iter().map(|part| Line::styled(format!("   {part}"), style)));
    }
    let most = disk.sessions.first().map_or(1, |first| first.disk.bytes);
    let room = width.saturating_sub(36).clamp(4, 40);
    for session in disk.sessions.iter().take(8) {
        lines.push(Line::from(vec![
            Span::styled(format!("   {} ", cell(&session.name, 16)), theme.dim),
            Span::styled(bar(session.disk.bytes, most, room), theme.note),
            Span::raw(format!(" {}", bytes(session.disk.bytes))),
        ]));
    }
}
