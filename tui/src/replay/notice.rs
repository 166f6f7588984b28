//! Says in the user's window why there is nothing to be shown, until a key is pressed.

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use shared::message::Failure;
use shared::text::{columns, visible};
use tokio::signal::unix::{SignalKind, signal};

use super::run::{Left, typed_behind};
use crate::window::{Window, broken};

const BACK: &str = "any key: back to the program";

/// Columns of the box, at most.
const WIDTH: u16 = 64;

pub async fn notice(sentence: &str) -> Result<Left, Failure> {
    let mut terminated = signal(SignalKind::terminate()).map_err(broken)?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(broken)?;
    let mut resized = signal(SignalKind::window_change()).map_err(broken)?;
    let mut window = Window::open()?;
    let mut keys = EventStream::new();
    loop {
        window.draw(|frame| draw(sentence, frame, frame.area()))?;
        tokio::select! {
            _ = terminated.recv() => return Ok(Left::Gone),
            _ = hung_up.recv() => return Ok(Left::Gone),
            _ = resized.recv() => {
                window.resized()?;
            }
            key = keys.next() => match key {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    drop(keys);
                    return Ok(Left::ByKey { typed: typed_behind() });
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Ok(Left::Gone),
            },
        }
    }
}

fn draw(sentence: &str, frame: &mut Frame<'_>, area: Rect) {
    let text = visible(sentence);
    let width = (columns(&text).max(columns(BACK)) as u16 + 4).min(WIDTH).min(area.width);
    let room = width.saturating_sub(4).max(1);
    // words that are broken early take a line more
    let lines = (columns(&text) as u16).div_ceil(room) + 1;
    let height = (lines + 3).min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" nothing to look back at ");
    let inside = block.inner(place);
    frame.render_widget(block, place);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
    frame.render_widget(Paragraph::new(vec![Line::raw(text), Line::raw(BACK)]).wrap(Wrap { trim: true }), inside);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn the_reason_is_read_in_any_window() {
        let sentence = "nothing of secret is recorded: it was started with --no-record";
        for (width, height) in [(80, 24), (40, 15), (20, 5), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
            terminal.draw(|frame| draw(sentence, frame, frame.area())).expect("draws");
            let buffer = terminal.backend().buffer().clone();
            let text: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
            assert!(width < 40 || (text.contains("--no-record") && text.contains("any key")), "{text}");
        }
    }
}
