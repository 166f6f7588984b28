//! The user's own terminal: raw mode, its size, and giving it back whatever happens.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use shared::message::TtyName;
use shared::screen::Size;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Undoes whatever a program may have set: ends unfinished sequences, all modes off,
/// cursor visible and of its usual shape, the title of before.
const RESTORE: &[u8] = b"\x18\x1b[?2026l\x1b7\x1b[r\x1b8\x1b[!p\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[<99u\x1b[>4m\x1b[0 q\x1b[23;0t";

/// Leaves the alternate screen. Only where it may be in use: elsewhere some terminals move the cursor to where it was when
/// the alternate screen was used before.
const LEAVE_ALTERNATE: &[u8] = b"\x18\x1b7\x1b[?1049l";

/// Whether the alternate screen may be in use; so it is taken until the daemon says otherwise.
static ALTERNATE: AtomicBool = AtomicBool::new(true);

/// The daemon knows what it left the terminal in.
pub fn is_in_alternate(in_alternate: bool) {
    ALTERNATE.store(in_alternate, Ordering::Relaxed);
}

/// What the terminal was like, while it is raw; for the panic hook, which cannot be handed anything.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

pub struct Tty {
    keys: Receiver,
    screen: Sender,
}

impl Tty {
    /// Opens the controlling terminal anew, so that its being non-blocking is ours alone, and makes it raw.
    pub fn raw() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/tty", flags, Mode::empty())?;
        let before = tcgetattr(&file)?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        tcsetattr(&file, OptionalActions::Drain, &raw)?;
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            hook(panic);
        }));
        // tokio's pipe ends are the safe way to wait for any descriptor that can be polled
        let keys = Receiver::from_owned_fd_unchecked(file.try_clone()?)?;
        Ok(Self { keys, screen: Sender::from_owned_fd_unchecked(file)? })
    }

    pub fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(&self.keys)?;
        Ok(Size { cols: size.ws_col, rows: size.ws_row })
    }

    /// Keys typed; an empty answer means that the terminal is gone.
    pub async fn read(&self) -> io::Result<Vec<u8>> {
        loop {
            self.keys.readable().await?;
            let mut bytes = [0; 4096];
            match self.keys.try_read(&mut bytes) {
                Ok(n) => return Ok(bytes[..n].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much as the terminal takes now, waiting until it takes something.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.screen.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.screen.writable().await?,
                outcome => return outcome,
            }
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. Opens it anew and waits: what was written before has to get out first.
fn restore() {
    let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open("/dev/tty", flags, Mode::empty()) {
        if ALTERNATE.swap(true, Ordering::Relaxed) {
            let _ = rustix::io::write(&file, LEAVE_ALTERNATE);
        }
        let _ = rustix::io::write(&file, RESTORE);
        // keys typed but not read are for the shell that follows; answers to queries are not, and cannot be told apart
        let _ = tcsetattr(&file, OptionalActions::Drain, &before);
    }
}

/// Our terminal's device, for a daemon that may use it directly.
#[allow(clippy::unnecessary_cast, reason = "macOS numbers devices by a narrower, signed type")]
pub fn name() -> Option<TtyName> {
    let path = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok()?.into_string().ok()?;
    let meta = rustix::fs::fstat(rustix::stdio::stdin()).ok()?;
    Some(TtyName { path, device: meta.st_rdev as u64, filesystem: meta.st_dev as u64, inode: meta.st_ino })
}

/// Most of what a terminal takes into its clipboard at once; many refuse more.
const MAX_COPY: usize = 74_000;

/// Has the user's terminal tell something (OSC 9), if it can.
pub fn notify(text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut out = io::stdout().lock();
    write!(out, "\x1b]9;{}\x1b\\", shared::text::visible(text).replace(';', ","))?;
    out.flush()
}

/// Puts text into the clipboard of the user's terminal (OSC 52), also through ssh. Whether the terminal obeys is its own business.
pub fn copy(text: &str) -> io::Result<()> {
    use base64::Engine;
    use std::io::Write;
    let mut end = text.len().min(MAX_COPY);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(&text[..end]);
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{encoded}\x1b\\")?;
    out.flush()
}

/// The size of the terminal a command was started in.
pub fn window() -> Option<Size> {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size { cols: size.ws_col, rows: size.ws_row })
}

/// Whether a person sits at both ends.
pub fn is_interactive() -> bool {
    rustix::termios::isatty(rustix::stdio::stdin()) && rustix::termios::isatty(rustix::stdio::stdout())
}
