//! The user's window: taken, drawn into without flicker, given back whatever happens.

use std::io::Write;

use ratatui::layout::Size;
use ratatui::{DefaultTerminal, Frame};
use shared::message::Failure;

/// Clicks, drags and the wheel, without every movement of the pointer; pastes as pastes.
const ON: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h";
const OFF: &[u8] = b"\x1b[?2026l\x1b[?2004l\x1b[?1006l\x1b[?1002l\x1b[?1000l";

/// A terminal that knows of it shows what is between the two at once.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

pub struct Window {
    terminal: DefaultTerminal,
    /// What is on it may not be what was drawn.
    is_stale: bool,
}

impl Window {
    pub fn open() -> Result<Self, Failure> {
        let terminal = ratatui::try_init().map_err(broken)?;
        let window = Self { terminal, is_stale: false };
        write(ON)?;
        Ok(window)
    }

    pub fn size(&self) -> Result<Size, Failure> {
        self.terminal.size().map_err(broken)
    }

    /// It has another size, or had one for a moment: what did not fit is gone, even if the size is as before.
    pub fn resized(&mut self) -> Result<Size, Failure> {
        self.is_stale = true;
        self.size()
    }

    pub fn draw(&mut self, draws: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        write(BEGIN)?;
        let drawn = self.redraw(draws).map_err(broken);
        write(END)?;
        drawn
    }

    fn redraw(&mut self, draws: impl FnOnce(&mut Frame<'_>)) -> std::io::Result<()> {
        if std::mem::take(&mut self.is_stale) {
            let size = self.terminal.size()?;
            self.terminal.resize(size.into())?;
        }
        self.terminal.draw(draws).map(|_| ())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = write(OFF);
        ratatui::restore();
    }
}

/// Dropping a stream of keys leaves a wake-up behind in crossterm, which passes over a key that arrives together with it:
/// the first key after an attachment would wait for the second. It is taken while nobody types.
pub fn take_wake_up() {
    // whether there is an event is for the stream to say
    let _ = crossterm::event::poll(std::time::Duration::ZERO);
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(broken)
}

#[expect(clippy::needless_pass_by_value, reason = "the form map_err wants")]
pub fn broken(error: std::io::Error) -> Failure {
    Failure::failed(format!("the terminal: {error}"))
}
