//! Draws the dashboard from its state; changes nothing.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState};
use shared::session::Status;
use shared::text::{fit, visible};

use crate::app::{App, Message, Overlay};
use crate::cli::{ago, mark, short_path, status_words, what};

pub struct Surroundings {
    pub now: jiff::Timestamp,
    pub home: Option<String>,
}

/// Columns of a name; longer ones are cut with an ellipsis.
const MAX_NAME: usize = 24;

const KEYS: &[(&str, &str)] = &[
    ("enter", "attach (ctrl-b d comes back)"),
    ("p", "play what it recorded; enter does for those that ended"),
    ("n", "new session: your shell, here"),
    ("j k ↑ ↓", "move"),
    ("g G", "first, last"),
    ("x", "end a session"),
    ("D", "remove an ended session"),
    ("r", "refresh"),
    ("?", "these keys"),
    ("q esc", "quit; sessions go on"),
];

pub fn draw(app: &App, around: &Surroundings, frame: &mut Frame<'_>) {
    let [head, body, foot] = Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    heading(app, frame, head);
    if app.sessions.is_empty() {
        empty(app, frame, body);
    } else {
        list(app, around, frame, body);
    }
    footer(app, frame, foot);
    if let Some(overlay) = &app.overlay {
        draw_overlay(overlay, frame);
    }
}

fn heading(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let count = |wanted: fn(Status) -> bool| app.sessions.iter().filter(|session| wanted(session.status)).count();
    let counts = [
        (count(|status| status == Status::Active), "active"),
        (count(|status| status == Status::Paused), "paused"),
        (count(|status| status == Status::Queued), "queued"),
        (count(Status::has_ended), "ended"),
    ];
    let words: Vec<String> =
        counts.iter().filter(|(count, word)| *count > 0 || *word == "active").map(|(count, word)| format!("{count} {word}")).collect();
    let line = Line::from(vec![
        Span::styled(" sessions ", Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)),
        Span::raw(format!(" {}", words.join(", "))),
    ]);
    frame.render_widget(Paragraph::new(line), area);
}

fn empty(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let text = if app.has_loaded {
        vec![
            Line::raw(""),
            Line::raw("  No sessions yet."),
            Line::raw(""),
            Line::raw("  n   starts your shell here, and attaches"),
            Line::raw("  or, in any terminal:"),
            Line::styled("  sessions-tui new -n api -- npm run dev", Style::new().fg(Color::Cyan)),
        ]
    } else {
        vec![Line::raw("  …")]
    };
    frame.render_widget(Paragraph::new(text), area);
}

fn colour(status: Status) -> Style {
    match status {
        Status::Active => Style::new().fg(Color::Green),
        Status::Queued | Status::Paused => Style::new().fg(Color::Yellow),
        Status::Completed => Style::new().add_modifier(Modifier::DIM),
        Status::Failed | Status::Timeout => Style::new().fg(Color::Red),
    }
}

fn list(app: &App, around: &Surroundings, frame: &mut Frame<'_>, area: Rect) {
    let is_narrow = area.width < 70;
    let rows = app.sessions.iter().map(|session| {
        let mut cells = vec![
            Cell::new(Span::styled(mark(session.status).to_string(), colour(session.status))),
            Cell::new(fit(&visible(&session.name), MAX_NAME)),
            Cell::new(Span::styled(status_words(session), colour(session.status))),
            Cell::new(ago(session.last_activity_at, around.now)),
        ];
        if !is_narrow {
            cells.push(Cell::new(what(session)));
            cells.push(Cell::new(short_path(&session.workspace, around.home.as_deref())));
        }
        Row::new(cells)
    });
    let names = app.sessions.iter().map(|session| shared::text::columns(&visible(&session.name))).max().unwrap_or(4);
    let statuses = app.sessions.iter().map(|session| shared::text::columns(&status_words(session))).max().unwrap_or(8);
    let mut widths = vec![
        Constraint::Length(1),
        Constraint::Length(names.clamp(8, MAX_NAME) as u16),
        Constraint::Length(statuses.clamp(8, usize::from(area.width / if is_narrow { 3 } else { 4 })) as u16),
        Constraint::Length(4),
    ];
    let mut titles = vec!["", "name", "status", "idle"];
    if !is_narrow {
        widths.extend([Constraint::Fill(3), Constraint::Fill(2)]);
        titles.extend(["task or command", "workspace"]);
    }
    let header = Row::new(titles).style(Style::new().add_modifier(Modifier::DIM));
    let table = Table::new(rows, widths)
        .header(header)
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol("▸");
    let mut state = TableState::new().with_selected(Some(app.selected));
    frame.render_stateful_widget(table, area, &mut state);
}

fn footer(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let line = match &app.message {
        Some(Message::Failed(why)) => Line::styled(format!(" {}", visible(why)), Style::new().fg(Color::Red)),
        Some(Message::Said(what)) => Line::raw(format!(" {}", visible(what))),
        None if area.width < 50 => Line::styled(" enter attach  n new  ? keys  q quit", Style::new().add_modifier(Modifier::DIM)),
        None => {
            Line::styled(" enter attach   p play   n new   x end   D remove   ? keys   q quit", Style::new().add_modifier(Modifier::DIM))
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn draw_overlay(overlay: &Overlay, frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> = match overlay {
        Overlay::Help => KEYS.iter().map(|(key, what)| Line::raw(format!(" {key:<8} {what} "))).collect(),
        Overlay::Confirm { question, .. } => vec![Line::raw(format!(" {question} "))],
    };
    let title = match overlay {
        Overlay::Help => " keys ",
        Overlay::Confirm { .. } => " sure? ",
    };
    let area = frame.area();
    let width = (lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 2).min(area.width);
    // a long question wraps in a narrow window
    let text_width = width.saturating_sub(2).max(1);
    let height: u16 = lines.iter().map(|line| (line.width() as u16).div_ceil(text_width).max(1)).sum();
    let height = (height + 2).min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let text = Paragraph::new(lines).wrap(ratatui::widgets::Wrap { trim: true }).block(Block::bordered().title(title));
    frame.render_widget(text, place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tests::session;
    use crate::event::Event;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(app: &App, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
        let around = Surroundings { now: jiff::Timestamp::UNIX_EPOCH, home: Some("/home/me".into()) };
        terminal.draw(|frame| draw(app, &around, frame)).expect("draws");
        let buffer = terminal.backend().buffer().clone();
        (0..height)
            .map(|y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>().trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn the_empty_list_says_how_to_begin() {
        let mut app = App::default();
        app.update(Event::Sessions(vec![]));
        let text = drawn(&app, 80, 24);
        assert!(text.contains("No sessions yet") && text.contains("sessions-tui new"), "{text}");
    }

    #[test]
    fn rows_show_what_matters_at_every_width() {
        let mut app = App::default();
        app.update(Event::Sessions(vec![session("api", Status::Active), session("evil\x1b[31m", Status::Failed)]));
        for (width, height) in [(80, 24), (40, 15), (200, 50)] {
            let text = drawn(&app, width, height);
            assert!(text.contains("● api") && text.contains("✗ evil·[31m"), "{width}: {text}");
            assert!(text.contains("1 active, 1 ended"), "{width}: {text}");
            assert_eq!(text.contains("/src"), width >= 70, "{width}: {text}");
        }
        app.overlay = Some(Overlay::Help);
        assert!(drawn(&app, 40, 15).contains("attach"), "the help fits");
    }
}
