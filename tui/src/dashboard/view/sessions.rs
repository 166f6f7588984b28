//! The list of sessions: a row each, columns by how much room there is. Only what is in view is drawn.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use shared::attention::Attention;
use shared::session::Session;
use shared::text::{columns, visible};

use super::cell;
use super::plan::{self, Column};
use crate::dashboard::app::{App, Focus};
use crate::dashboard::state::list::Row;
use crate::dashboard::state::rates::Rate;
use crate::keymap::{Action, Place};
use crate::words::wrapped;
use crate::words::{command_words, known_state, mark, question, short_path, state_words, what};

/// A mark for people who do not see colours.
pub fn attention_mark(state: Attention) -> &'static str {
    match state {
        Attention::WaitingApproval | Attention::WaitingAnswer => "?",
        Attention::Stuck => "!",
        Attention::DoneUnseen => "*",
        Attention::Working | Attention::Idle | Attention::Unknown => " ",
    }
}

pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    let plan = plan::columns(app, usize::from(area.width));
    let titles: Vec<Span<'_>> =
        plan.iter().map(|(column, width)| Span::styled(cell(&title(app, *column), *width) + " ", theme.dim)).collect();
    frame.render_widget(Paragraph::new(Line::from(titles)), Rect { height: 1, ..area });
    let rows = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let visible_rows = app.list.rows.iter().skip(app.list.top).take(usize::from(rows.height));
    for (n, row) in visible_rows.enumerate() {
        let place = Rect { y: rows.y + n as u16, height: 1, ..rows };
        match row {
            Row::Heading { title, count } => {
                let title = short_path(title, app.home.as_deref());
                let line = Line::from(vec![Span::styled(format!(" {title}"), theme.strong), Span::styled(format!("  {count}"), theme.dim)]);
                frame.render_widget(Paragraph::new(line), place);
            }
            Row::Session(at) => {
                if let Some(session) = app.list.all.get(*at) {
                    draw_row(app, session, &plan, frame, place);
                }
            }
        }
    }
}

/// The column that decides about the order has a mark, unless it is the usual order.
fn title(app: &App, column: Column) -> String {
    let (sort, is_reversed) = (app.list.sort, app.list.is_reversed);
    let is_usual = sort == crate::dashboard::state::order::Sort::default() && !is_reversed;
    let decides = column != Column::Mark && column.sort() == Some(sort) && !is_usual;
    format!(
        "{}{}",
        column.title(),
        if !decides {
            ""
        } else if is_reversed {
            "▴"
        } else {
            "▾"
        }
    )
}

fn draw_row(app: &App, session: &Session, plan: &[(Column, usize)], frame: &mut Frame<'_>, place: Rect) {
    let theme = &app.theme;
    let is_cursor = app.list.cursor == Some(session.id);
    let is_selected = app.list.selected.contains(&session.id);
    let rate = app.rates.get(session.id);
    let dims = session.is_over() && !session.needs.as_ref().is_some_and(|needs| needs.state.needs_someone());
    let mut spans = Vec::new();
    for (column, width) in plan {
        let (text, style) = content(app, session, rate, *column, *width);
        let style = if dims && style == theme.text { theme.dim } else { style };
        spans.push(Span::styled(cell(&text, *width), style));
        spans.push(Span::raw(" "));
    }
    // the mark is two: who needs you, then what it is
    let needs = session.needs.as_ref().map(|needs| needs.state);
    let lead = vec![
        Span::styled(
            if is_cursor {
                "▸"
            } else if is_selected {
                "+"
            } else {
                " "
            },
            theme.focus,
        ),
        match &session.unreachable {
            Some(_) => Span::styled("!", theme.bad),
            None => Span::styled(needs.map_or(" ", attention_mark), needs.map_or(theme.dim, |state| theme.attention(state))),
        },
        Span::styled(mark(session.status).to_string(), theme.status(session.status)),
    ];
    let spans: Vec<Span<'_>> = lead.into_iter().chain(spans.into_iter().skip(1)).collect();
    frame.render_widget(Paragraph::new(Line::from(spans)), place);
    let highlight = match (is_cursor, is_selected) {
        (true, true) => theme.selected.patch(theme.cursor),
        (true, false) => theme.cursor,
        (false, true) => theme.selected,
        (false, false) => return,
    };
    let dulled = app.pane.is_some() && app.focus == Focus::Pane && is_cursor;
    let highlight = if dulled { highlight.remove_modifier(Modifier::REVERSED).add_modifier(Modifier::BOLD) } else { highlight };
    paint(frame, place, highlight, theme.is_plain && is_cursor);
}

/// Lays a style over what is drawn already.
fn paint(frame: &mut Frame<'_>, place: Rect, style: Style, replaces: bool) {
    let buffer = frame.buffer_mut();
    for x in place.left()..place.right() {
        let cell = &mut buffer[(x, place.y)];
        if replaces {
            cell.set_style(Style::reset());
        }
        cell.set_style(style);
    }
}

fn content(app: &App, session: &Session, rate: Option<&Rate>, column: Column, width: usize) -> (String, Style) {
    let theme = &app.theme;
    let is_live = !session.is_over();
    match column {
        Column::Mark => (String::new(), theme.text),
        Column::Name => (session.name.clone(), if is_live { theme.strong } else { theme.text }),
        Column::Status => (state_words(session), state_style(app, session)),
        Column::What => {
            let asks = match (&session.unreachable, &session.needs) {
                (Some(_), _) => theme.bad,
                (None, needs) => theme.attention(needs.as_ref().map_or(Attention::Unknown, |needs| needs.state)),
            };
            question(session).map_or_else(|| (runs(session, rate, width), theme.text), |why| (why, asks))
        }
        Column::Budget if session.iterations > 0 || session.task.is_some() => {
            let is_near = session.iterations * 10 >= session.max_iterations * 9;
            (format!("{}/{}", session.iterations, session.max_iterations), if is_near && is_live { theme.warn } else { theme.dim })
        }
        Column::Budget => (String::new(), theme.dim),
        Column::Curve => (rate.filter(|_| is_live).map(|rate| curve(rate, app.now, width)).unwrap_or_default(), theme.note),
        Column::Cpu => match rate.and_then(|rate| rate.cpu).filter(|_| is_live) {
            Some(cpu) if cpu >= 0.5 => (format!("{cpu:>3.0}%"), if cpu >= 80.0 { theme.warn } else { theme.text }),
            Some(_) => ("  0%".into(), theme.dim),
            None => (String::new(), theme.dim),
        },
        Column::Memory => (rate.and_then(|rate| rate.memory).filter(|_| is_live).map(memory).unwrap_or_default(), theme.dim),
        Column::Idle => (passed(session.last_activity_at, app.at), theme.dim),
        Column::Age => (passed(session.created_at, app.at), theme.dim),
        Column::Workspace => (short_path(&session.workspace, app.home.as_deref()), theme.dim),
    }
}

/// A holder that cannot be reached is a failure, whatever was last known of its program.
fn state_style(app: &App, session: &Session) -> Style {
    let theme = &app.theme;
    let known = session.needs.as_ref().filter(|_| known_state(session).is_some());
    match known {
        _ if session.unreachable.is_some() => theme.bad,
        Some(needs) => theme.attention(needs.state),
        None => theme.status(session.status),
    }
}

/// Fewer columns of a task say nothing.
const MIN_TASK: usize = 9;

/// What is in the foreground of its terminal, with its task if there is room; where nothing runs, what it was for.
fn runs(session: &Session, rate: Option<&Rate>, width: usize) -> String {
    if session.is_over() {
        return what(session);
    }
    let command = match rate.and_then(|rate| rate.foreground.clone()) {
        // how our shell integration starts a bash is nothing the user asked for
        Some(command) if !session.command.iter().any(|word| word == "--posix") => command.replacen(" --posix", "", 1),
        Some(command) => command,
        None => command_words(session),
    };
    if session.task.is_none() {
        return command;
    }
    let task = what(session);
    match columns(&command) {
        0 => task,
        wide if wide + 3 + MIN_TASK <= width => format!("{command} · {task}"),
        _ => command,
    }
}

pub fn curve(rate: &Rate, now: std::time::Duration, width: usize) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    rate.curve(now, width.min(crate::dashboard::state::rates::BARS)).into_iter().map(|height| BARS[usize::from(height).min(8)]).collect()
}

pub fn memory(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{:>4}K", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{:>4}M", bytes >> 20),
        _ => format!("{:>4.1}G", bytes as f64 / 1_073_741_824.0),
    }
}

/// In steps that need no drawing every second.
pub fn passed(from: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = (now.as_second() - from.as_second()).max(0);
    match seconds {
        0..5 => "now".into(),
        5..60 => format!("{}s", seconds / 5 * 5),
        _ => crate::words::ago(from, now),
    }
}

/// Nothing to show: how to begin, or why nothing is here.
pub fn draw_empty(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    let key = |action| app.keymap.hint(Place::List, action);
    let width = usize::from(area.width);
    let mut lines = vec![Line::raw("")];
    let mut say = |text: &str, style: Style| {
        for line in wrapped(text, width.saturating_sub(3)) {
            lines.push(Line::styled(format!("  {line}"), style));
        }
    };
    if !app.list.has_loaded {
        say("asking the daemon …", theme.dim);
    } else if !app.list.filter.is_empty() {
        say(&format!("Nothing fits “{}”.", visible(&app.list.filter)), theme.text);
        say(&format!("{} takes the filter away", key(Action::Back)), theme.dim);
    } else {
        say("No sessions yet. To begin:", theme.strong);
        // a low window has no room for blank lines
        let is_low = area.height < 12;
        if !is_low {
            lines.push(Line::raw(""));
        }
        let hints = [
            (key(Action::New), "starts a program or your shell here, and attaches"),
            (app.prefix.label() + " d", "leaves it running and brings you back here"),
            (key(Action::Help), "shows every key"),
        ];
        let indent = hints.iter().map(|(key, _)| columns(key)).max().unwrap_or(0) + 4;
        for (key, text) in hints {
            for (n, part) in wrapped(text, width.saturating_sub(indent + 1)).into_iter().enumerate() {
                let lead = if n == 0 { format!("  {}", cell(&key, indent - 2)) } else { " ".repeat(indent) };
                lines.push(Line::from(vec![Span::styled(lead, theme.accent), Span::raw(part)]));
            }
        }
        if !is_low {
            lines.push(Line::raw(""));
        }
        let mut say = |text: &str, style: Style| {
            for line in wrapped(text, width.saturating_sub(2)) {
                lines.push(Line::styled(format!("  {line}"), style));
            }
        };
        if let Some(hint) = &app.tmux_hint {
            say(hint, theme.warn);
        }
        say("or from any terminal:", theme.dim);
        say("sessions-tui new -n api -- npm run dev", theme.note);
    }
    frame.render_widget(Paragraph::new(lines), area);
}
