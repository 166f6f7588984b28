//! ls --watch: the list, drawn again when something happens. Nothing ticks.

use std::io::Write;
use std::time::Duration;

use crossterm::event::{Event as Key, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures_util::StreamExt;
use shared::filter::Filter;
use shared::id::Seq;
use shared::message::{Failure, Request};
use shared::paths::Paths;
use shared::screen::Size;
use shared::session::Session;

use super::table::{self, Look};
use crate::client::{Client, Incoming};
use crate::connect::{self, Crashes};
use crate::tty;
use crate::window::broken;

/// What happens together is drawn together.
const TOGETHER: Duration = Duration::from_millis(100);

pub async fn watch(paths: &Paths, filter: Filter, colours: bool) -> Result<(), Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("ls --watch needs a terminal: in scripts use `events --follow --json`"));
    }
    let mut crashes = Crashes::default();
    let mut client = connect::connect(paths).await?;
    client.call::<Seq>(Request::Watch).await?;
    // makes it raw, takes the alternate screen, and gives both back in a panic too
    drop(ratatui::try_init().map_err(broken)?);
    let outcome = follow(paths, &mut client, &mut crashes, &filter, colours).await;
    ratatui::restore();
    outcome
}

async fn follow(paths: &Paths, client: &mut Client, crashes: &mut Crashes, filter: &Filter, colours: bool) -> Result<(), Failure> {
    let mut keys = EventStream::new();
    loop {
        if let Ok(sessions) = client.call::<Vec<Session>>(Request::List(filter.clone())).await {
            draw(&sessions, colours)?;
        }
        let happened = tokio::select! {
            key = keys.next() => match key {
                Some(Ok(key)) if leaves(&key) => return Ok(()),
                Some(Ok(_)) => Ok(()),
                Some(Err(_)) | None => return Ok(()),
            },
            incoming = client.receive() => gather(client, incoming).await,
        };
        if happened.is_err() {
            *client = crashes.again(paths).await?;
            client.call::<Seq>(Request::Watch).await?;
        }
    }
}

/// Takes what comes within a moment too; an error when the daemon is gone.
async fn gather(client: &mut Client, first: std::io::Result<Incoming>) -> std::io::Result<()> {
    first?;
    let until = tokio::time::Instant::now() + TOGETHER;
    while let Ok(incoming) = tokio::time::timeout_at(until, client.receive()).await {
        incoming?;
    }
    Ok(())
}

fn leaves(key: &Key) -> bool {
    let Key::Key(key) = key else { return false };
    let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (is_ctrl_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

fn draw(sessions: &[Session], colours: bool) -> Result<(), Failure> {
    let home = std::env::var("HOME").ok();
    let size = tty::window().unwrap_or(Size { cols: 80, rows: 24 });
    let look = Look { width: Some(usize::from(size.cols)), colours, home: home.as_deref(), now: jiff::Timestamp::now() };
    let table = if sessions.is_empty() { "no sessions\n".to_owned() } else { table::sessions(sessions, &look) };
    let frame = frame(&table, usize::from(size.rows));
    let mut out = std::io::stdout().lock();
    out.write_all(frame.as_bytes()).and_then(|()| out.flush()).map_err(broken)
}

/// As one update: the newest rows that fit, and how to leave in the last line.
fn frame(table: &str, rows: usize) -> String {
    use std::fmt::Write;
    let lines: Vec<&str> = table.lines().collect();
    let hidden = lines.len().saturating_sub(rows.saturating_sub(1).max(1));
    let mut out = String::from("\x1b[?2026h\x1b[?25l\x1b[H");
    for (row, line) in (1..).zip(&lines[hidden..]) {
        let _ = write!(out, "\x1b[{row};1H{line}\x1b[m\x1b[K");
    }
    // what is below from before
    out.push_str("\x1b[J");
    if rows > 1 {
        let more = if hidden > 0 { format!("{hidden} more above; ") } else { String::new() };
        let _ = write!(out, "\x1b[{rows};1H{more}q leaves\x1b[K");
    }
    out.push_str("\x1b[?2026l");
    out
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn the_newest_rows_stay_when_the_window_is_small() {
        let all = frame("a\nb\nc\n", 10);
        assert!(all.contains("\x1b[1;1Ha\x1b[m\x1b[K\x1b[2;1Hb") && all.contains("\x1b[10;1Hq leaves"), "{all:?}");
        let small = frame("a\nb\nc\n", 2);
        assert!(!small.contains("Hb") && small.contains("c\x1b[m") && small.contains("2 more above"), "{small:?}");
        assert!(frame("a\nb\n", 1).contains("b\x1b[m"));
    }
}
