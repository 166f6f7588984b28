//! The user's window: taken, drawn into without flicker, given back whatever happens.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Size;
use ratatui::{Frame, Terminal};
use shared::message::Failure;

/// Clicks, drags and the wheel, without every movement of the pointer; pastes as pastes.
const ON: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h";
const OFF: &[u8] = b"\x1b[?25h\x1b[?2026l\x1b[?2004l\x1b[?1006l\x1b[?1002l\x1b[?1000l";

/// A terminal that knows of it shows what is between the two at once.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// A frame is gathered and written at once: on a busy machine every further write is a wait for a turn.
#[derive(Clone, Default)]
struct Gathered(Rc<RefCell<Vec<u8>>>);

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // not before its end
        Ok(())
    }
}

pub struct Window {
    terminal: Terminal<CrosstermBackend<Gathered>>,
    gathered: Gathered,
    /// What is on it may not be what was drawn.
    is_stale: bool,
}

impl Window {
    pub fn open() -> Result<Self, Failure> {
        // makes it raw, takes the alternate screen, and sees to it that a panic gives both back
        drop(ratatui::try_init().map_err(broken)?);
        let gathered = Gathered::default();
        let terminal = Terminal::new(CrosstermBackend::new(gathered.clone())).map_err(broken)?;
        let window = Self { terminal, gathered, is_stale: false };
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
        self.gathered.0.borrow_mut().extend_from_slice(BEGIN);
        let drawn = self.redraw(draws).map_err(broken);
        let mut frame = std::mem::take(&mut *self.gathered.0.borrow_mut());
        frame.extend_from_slice(END);
        write(&frame)?;
        // the room it took is there for the next one
        frame.clear();
        *self.gathered.0.borrow_mut() = frame;
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

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(broken)
}

#[expect(clippy::needless_pass_by_value, reason = "the form map_err wants")]
pub fn broken(error: std::io::Error) -> Failure {
    Failure::failed(format!("the terminal: {error}"))
}
