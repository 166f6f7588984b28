//! A terminal window with the real client in it: keys go in, and what the client draws becomes a screen.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use shared::screen::{Event, Query, Screen, ScrolledLine, Size};

use super::{PATIENCE, Root, process, wait_for};

pub const CTRL_B: &[u8] = b"\x02";
pub const DETACH: &[u8] = b"\x02d";

/// How a terminal window differs from a plain one.
#[derive(Clone, Copy, Default)]
pub struct Habits {
    /// What it answers to DA1; nothing if empty.
    pub attributes: &'static [u8],
    /// Keeps lines that scroll away.
    pub keeps_history: bool,
    /// Added to the environment of whatever runs in it.
    pub variables: &'static [(&'static str, &'static str)],
}

pub struct Term {
    /// `None` once the window is closed.
    window: Option<Window>,
    child: Child,
    seen: Arc<Seen>,
}

/// The master side, and the thread that reads it.
struct Window {
    master: Arc<OwnedFd>,
    reader: JoinHandle<()>,
    /// Closing it ends the reader.
    closing: UnixStream,
}

struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    screen: Screen,
    bytes: Vec<u8>,
    scrolled: Vec<ScrolledLine>,
    is_paused: bool,
    has_ended: bool,
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, State> {
        // a failed wait leaves nothing half done
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Term {
    /// Runs the client with these arguments in a window of this size.
    #[track_caller]
    pub fn open(root: &Root, cols: u16, rows: u16, args: &[&str]) -> Self {
        Self::open_with(root, cols, rows, args, Habits::default())
    }

    #[track_caller]
    pub fn open_with(root: &Root, cols: u16, rows: u16, args: &[&str], habits: Habits) -> Self {
        let size = Size { cols, rows };
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        rustix::pty::grantpt(&master).and_then(|()| rustix::pty::unlockpt(&master)).expect("a terminal of ours");
        let name = rustix::pty::ptsname(&master, Vec::new()).expect("its name");
        let slave =
            rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("its other side");
        set_size(&master, size);
        // setsid makes the window the client's controlling terminal and then becomes the client: its pid is the client's
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(root.executable()).args(args);
        command.env_clear().envs(root.environment()).envs(habits.variables.iter().copied()).current_dir(root.work());
        let stdio = || File::from(slave.try_clone().expect("a copy"));
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = command.spawn().expect("the client starts");
        drop((command, slave));
        let mut screen = Screen::new(size);
        screen.capture_scrolled(habits.keeps_history);
        let state = State { screen, bytes: Vec::new(), scrolled: Vec::new(), is_paused: false, has_ended: false };
        let seen = Arc::new(Seen { state: Mutex::new(state), changed: Condvar::new() });
        let (closing, told) = UnixStream::pair().expect("a pair");
        let master = Arc::new(master);
        let reader = {
            let (master, seen) = (Arc::clone(&master), Arc::clone(&seen));
            std::thread::spawn(move || read(&master, &told, &seen, habits))
        };
        Self { window: Some(Window { master, reader, closing }), child, seen }
    }

    fn master(&self) -> &OwnedFd {
        &self.window.as_ref().expect("an open window").master
    }

    #[track_caller]
    pub fn send(&self, keys: &[u8]) {
        write(self.master(), keys);
    }

    /// Text of the screen, a line a row, without trailing blanks.
    pub fn text(&self) -> String {
        text_of(&self.seen.state().screen)
    }

    /// Looks at the screen as it is now.
    pub fn look<T>(&self, looks: impl FnOnce(&Screen) -> T) -> T {
        looks(&self.seen.state().screen)
    }

    /// Everything the client has written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.state().bytes.clone()
    }

    /// Lines that scrolled away, then the screen's. Needs the habit of keeping history.
    pub fn history(&self) -> Vec<String> {
        let state = self.seen.state();
        let rows = (0..state.screen.size().rows).map(|row| state.screen.row_text(row));
        state.scrolled.iter().map(|line| line.text.trim_end().to_owned()).chain(rows).collect()
    }

    pub fn is_alternate(&self) -> bool {
        self.seen.state().screen.is_alternate()
    }

    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        self.wait_for(&format!("{text:?}"), |screen| text_of(screen).contains(text));
    }

    #[track_caller]
    pub fn wait_for(&self, what: &str, mut condition: impl FnMut(&Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.seen.state();
        while !condition(&state.screen) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} did not come to the window:\n{}\n(process {})", text_of(&state.screen), self.child.id());
            // a condition may look at more than the screen, so it is tried now and then in any case
            state = self.seen.changed.wait_timeout(state, left.min(Duration::from_millis(50))).expect("no reader panicked").0;
        }
    }

    pub fn resize(&self, cols: u16, rows: u16) {
        let size = Size { cols, rows };
        self.seen.state().screen.resize(size);
        set_size(self.master(), size);
    }

    /// Stops reading, as a window on the far end of a dead connection does.
    pub fn pause(&self) {
        self.seen.state().is_paused = true;
    }

    pub fn resume(&self) {
        self.seen.state().is_paused = false;
        self.seen.changed.notify_all();
    }

    /// Whether the terminal echoes and edits lines, as a shell's user expects; false while a client has it raw.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(self.master()).expect("a terminal has modes");
        modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the window: the client is hung up on.
    pub fn close(&mut self) {
        let Window { master, reader, closing } = self.window.take().expect("an open window");
        self.resume();
        drop(closing);
        reader.join().expect("the reader ends");
        assert_eq!(Arc::strong_count(&master), 1, "ours is the last copy, so that dropping it hangs up");
    }

    /// Waits until the client has ended and all it wrote has been read; gives its exit code, or 128 and its signal.
    #[track_caller]
    pub fn wait_exit(&mut self) -> i32 {
        let status = wait_for("the client to end", || self.child.try_wait().expect("a child of ours"));
        if self.window.is_some() {
            wait_for("the rest of its output", || self.seen.state().has_ended.then_some(()));
        }
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.resume();
        if let Ok(None) = self.child.try_wait() {
            process::signal(self.child.id(), rustix::process::Signal::CONT);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if let Some(Window { reader, closing, .. }) = self.window.take() {
            drop(closing);
            let _ = reader.join();
        }
    }
}

fn read(master: &OwnedFd, closing: &UnixStream, seen: &Seen, habits: Habits) {
    let mut chunk = vec![0; 64 << 10];
    loop {
        let mut fds = [PollFd::new(master, PollFlags::IN), PollFd::new(closing, PollFlags::IN)];
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return;
        }
        let mut state = seen.state();
        if state.is_paused {
            // looked at again before every read, so that nothing is taken out of a paused window
            drop(seen.changed.wait_timeout(state, Duration::from_millis(50)));
            continue;
        }
        drop(state);
        let Ok(read @ 1..) = rustix::io::read(master, &mut chunk) else { break };
        let mut events = Vec::new();
        state = seen.state();
        state.screen.feed(&chunk[..read], &mut events);
        state.bytes.extend_from_slice(&chunk[..read]);
        if habits.keeps_history {
            let lines = state.screen.take_scrolled();
            state.scrolled.extend(lines);
        }
        drop(state);
        for located in events {
            if matches!(located.event, Event::Query(Query::PrimaryAttributes, _)) {
                write(master, habits.attributes);
            }
        }
        seen.changed.notify_all();
    }
    seen.state().has_ended = true;
    seen.changed.notify_all();
}

fn write(master: &OwnedFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let written = rustix::io::write(master, bytes).expect("the window takes keys");
        bytes = &bytes[written..];
    }
}

fn set_size(master: &OwnedFd, size: Size) {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("takes the size");
}

/// The dots that fill a window larger than what it shows are no text.
pub fn text_of(screen: &Screen) -> String {
    let rows: Vec<String> = (0..screen.size().rows).map(|row| screen.row_text(row).trim_end_matches([' ', '·']).to_owned()).collect();
    rows.join("\n").trim_end_matches('\n').to_owned()
}

pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}
