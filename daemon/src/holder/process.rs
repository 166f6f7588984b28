//! The holder itself: one thread, `poll`, fixed buffers. Reads the PTY, appends, tells the daemon where the recording ends.
//! It parses nothing, waits for nobody, and ends only with its program or on request. No unwrap, no expect.

mod calls;
mod daemon;
mod freezing;
mod input;

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions};
use shared::id::Offset;
use shared::redact::Redactor;
use shared::runtime::{ExitStatus, Keeps};
use shared::screen::Size;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::driver::Driver;
use super::echo::Echo;
use super::freeze::{By, Freeze};
use super::limit::ProcessLimit;
use super::peer::Peer;
use super::pty::{self, Pty};
use super::recorder::{Outcome, Place, Recorder};
use super::tree;
use super::typed::Streams;
use super::wire::{News, Order, Start};
use crate::memory;
use crate::recording::{encode_exit, encode_size, kind};

/// One turn's worth of output: eight full reads of a PTY, which gives 4 KiB at a time.
const READ_BUFFER: usize = 32 << 10;

/// A link that does not read is given at most this much unrecorded output.
const MAX_LINK_BACKLOG: usize = 256 << 10;

/// … or this much of a session of which nothing is recorded.
const MAX_UNKEPT_BACKLOG: usize = 8 << 20;

/// After the program's exit its last bytes are waited for this long when others hold the terminal open.
const LAST_BYTES_MS: i64 = 20;

/// … but not for longer than this in all.
const LAST_BYTES: Duration = Duration::from_millis(200);

/// On SIGTERM (a logout, a shutdown) the program gets this long to end by itself.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Runs until the program and everything it left behind are gone. Descriptor 0 is the daemon that started us.
pub fn run() -> io::Result<()> {
    crate::signals::reset();
    #[expect(unsafe_code, reason = "descriptor 0 is handed to us by the daemon's spawn")]
    // SAFETY: descriptor 0 is open (the daemon passes one end of a socket pair as standard input) and nothing else here uses it.
    let mut link = unsafe { UnixStream::from(OwnedFd::from_raw_fd(0)) };
    // our own session: no terminal's hang-up and no group kill of the daemon's reaches us
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
    let (signals, signal_end) = UnixStream::pair()?;
    signals.set_nonblocking(true)?;
    // handlers, not "ignore": exec resets handlers, so the program gets clean signals
    for signal in [SIGCHLD, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, signal_end.try_clone()?)?;
    }
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    let asked = Asked::default();
    crate::signals::survive_file_size_limit()?;
    signal_hook::flag::register(SIGTERM, Arc::clone(&asked.to_end))?;
    signal_hook::flag::register(SIGHUP, Arc::clone(&asked.to_listen))?;

    let Some(socket) = std::env::args_os().nth(2).map(PathBuf::from) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no socket was named"));
    };
    let listener = match listen(&socket) {
        Ok(listener) => listener,
        Err(error) => return send(&mut link, &News::Refused(format!("the holder's socket: {error}"))),
    };
    let outcome = serve(link, (listener, &socket), signals, &asked);
    let _ = std::fs::remove_file(&socket);
    outcome
}

/// What signals have asked of us.
#[derive(Default)]
struct Asked {
    to_end: Arc<AtomicBool>,
    /// A daemon does not find our socket.
    to_listen: Arc<AtomicBool>,
}

fn serve(mut link: UnixStream, listening: (UnixListener, &Path), signals: UnixStream, asked: &Asked) -> io::Result<()> {
    let (listener, socket) = listening;
    send(&mut link, &News::Ready)?;
    let start = read_start(&mut link)?;
    let mut holder = match Holder::start(start, listener, signals) {
        Ok(holder) => holder,
        Err(why) => return send(&mut link, &News::Refused(why)),
    };
    // a daemon that is gone by now is no reason to end: the next one finds us
    holder.daemon = Peer::new(link).ok();
    holder.greet();
    while holder.turn(asked)? {
        if asked.to_listen.swap(false, Ordering::Relaxed) && !socket.exists() {
            holder.listen_again(socket);
        }
    }
    holder.say_the_rest();
    if let Some(limit) = holder.limit.take() {
        limit.lift();
    }
    holder.freeze.remove();
    Ok(())
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn send(link: &mut UnixStream, news: &News) -> io::Result<()> {
    let mut bytes = Vec::new();
    news.encode(&mut bytes);
    link.write_all(&bytes)
}

/// The first order must be the start; a daemon that dies before sending it leaves nothing behind.
fn read_start(link: &mut UnixStream) -> io::Result<Start> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let n = link.read(&mut chunk)?;
        if n == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        bytes.extend_from_slice(chunk.get(..n).unwrap_or_default());
        match Order::decode(&bytes) {
            Ok(Some((Order::Start(start), _))) => return Ok(start),
            Ok(None) => {}
            _ => return Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }
}

struct Holder {
    runtime: String,
    began: Instant,
    size: Size,
    pty: Option<Pty>,
    /// Instead of a PTY, for a language's driver.
    driver: Option<Driver>,
    limit: Option<ProcessLimit>,
    freeze: Freeze,
    /// What is typed while everything stands is kept until it goes on.
    queues_input: bool,
    queued: Vec<u8>,
    child: u32,
    exit: Option<ExitStatus>,
    /// The system ends us (a shutdown, a logout), and the program with us.
    is_put_down: bool,
    recorder: Recorder,
    /// What was typed while the terminal's echo was off.
    echo: Echo,
    /// Covers secrets before anything is recorded or shown.
    redactor: Option<Redactor>,
    listener: UnixListener,
    signals: UnixStream,
    daemon: Option<Peer>,
    strangers: Vec<Peer>,
    /// The daemon has not been told the present end yet.
    end_due: bool,
    input: Vec<u8>,
    /// Of clients that count what they type.
    streams: Streams,
    taken: u64,
    told_taken: u64,
    answered: Offset,
    kill_at: Option<Instant>,
    /// That a call has been recorded is told together with what comes of it, or then.
    quiet_until: Option<Instant>,
    buffer: Box<[u8]>,
}

impl Holder {
    fn start(start: Start, listener: UnixListener, signals: UnixStream) -> Result<Self, String> {
        let began_at = jiff::Timestamp::now().as_microsecond();
        let began = Instant::now();
        let place = Place { dir: start.recording.clone().into(), runtime: start.runtime.clone(), began_at, max_bytes: start.max_bytes };
        let recorder = Recorder::create(place, start.size, start.keeps);
        // rules that cannot be used were refused with the settings they are from; the known ones always can
        let redactor = start.redact.as_ref().and_then(|rules| Redactor::new(rules).or_else(|_| Redactor::new(&[])).ok());
        if let Some(limit) = start.open_files {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: getrlimit(Resource::Nofile).maximum });
        }
        if let Some(mask) = start.umask {
            // our own files have their modes given with them
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask as rustix::fs::RawMode));
        }
        memory::hide();
        let restore_core_files = memory::CoreFiles::allow(start.core_files);
        let limit = start.max_processes.map(|most| ProcessLimit::set(&start.runtime, most));
        let (pty, driver, child) = if start.is_driver {
            let (driver, child) = Driver::start(&start).map_err(|error| describe(&start, &error))?;
            (None, Some(driver), child)
        } else {
            let pty = pty::open(start.size).map_err(|error| format!("no terminal could be had: {error}"))?;
            let child = pty::start(&pty, &start.argv, &start.cwd, &start.env).map_err(|error| describe(&start, &error))?;
            (Some(pty), None, child)
        };
        drop(restore_core_files);
        if driver.is_none() {
            // a driver opens its scratch file through our entry in /proc, which only root could then
            memory::refuse_inspection();
        }
        let freeze = Freeze::new(&start.runtime, if start.no_groups { By::Signals } else { By::Groups });
        if let Some(limit) = &limit {
            limit.include(child);
        }
        let mut holder = Self {
            runtime: start.runtime,
            began,
            size: start.size,
            pty,
            driver,
            limit,
            freeze,
            queues_input: false,
            queued: Vec::new(),
            child,
            exit: None,
            is_put_down: false,
            recorder,
            echo: Echo::default(),
            redactor,
            listener,
            signals,
            daemon: None,
            strangers: Vec::new(),
            end_due: false,
            input: Vec::new(),
            streams: Streams::default(),
            taken: 0,
            told_taken: 0,
            answered: 0,
            kill_at: None,
            quiet_until: None,
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
        };
        if !start.preface.is_empty() {
            // nothing of what the program says has been read yet
            holder.record(kind::OUTPUT, start.preface.as_bytes());
        }
        Ok(holder)
    }

    /// Waits for something and deals with it; `false` when everything is over.
    fn turn(&mut self, asked: &Asked) -> io::Result<bool> {
        let ready = self.wait()?;
        if ready.signals {
            let mut drain = [0; 64];
            while matches!((&self.signals).read(&mut drain), Ok(n) if n > 0) {}
        }
        if ready.terminal {
            self.read_terminal();
        }
        if self.driver.is_some() {
            self.turn_driver(&ready);
            if ready.late {
                self.read_late(READ_BUFFER);
            }
        }
        if ready.daemon {
            self.hear_daemon();
        }
        if ready.knock {
            self.accept();
        }
        self.hear_strangers(&ready.strangers);
        self.give_input();
        if ready.signals {
            // before the program's end is looked at: whoever ends all of us may have ended it first
            if asked.to_end.swap(false, Ordering::Relaxed) {
                self.is_put_down = self.exit.is_none();
                self.terminate(SHUTDOWN_GRACE);
            }
            if !self.reap() {
                return Ok(false);
            }
        }
        self.look_at_freezing();
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.freeze.kill();
            for pid in tree::descendants(std::process::id()) {
                tree::signal(pid, Signal::KILL);
            }
            tree::signal_group(self.child, Signal::KILL);
            // anything forked meanwhile goes in the next sweep
            self.kill_at = Some(Instant::now() + Duration::from_millis(50));
        }
        if self.recorder.retry_at().is_some_and(|at| Instant::now() >= at) {
            self.resume_recording();
        }
        self.tell_end();
        self.look_for_background();
        Ok(true)
    }

    /// Room on the disk is found again also while the program says nothing.
    fn resume_recording(&mut self) {
        let (time, size) = (self.time(), self.size);
        if self.recorder.resume(time, size) {
            self.end_due = true;
            self.say(&News::Suspended(String::new()));
        }
    }

    fn wait(&self) -> io::Result<Ready> {
        let readable = PollFlags::IN;
        let mut fds = vec![PollFd::new(&self.signals, readable), PollFd::new(&self.listener, readable)];
        let terminal = self.pty.as_ref().map(|pty| {
            let flags = if self.input.is_empty() || !self.freeze.is_running() { readable } else { readable | PollFlags::OUT };
            fds.push(PollFd::new(&pty.master, flags));
            fds.len() - 1
        });
        let daemon = self.daemon.as_ref().map(|peer| {
            let flags = if peer.outgoing.is_empty() { readable } else { readable | PollFlags::OUT };
            fds.push(PollFd::new(&peer.stream, flags));
            fds.len() - 1
        });
        let mut driver = [None; 4];
        if let Some(held) = &self.driver {
            let is_read = |_: &&OwnedFd| !held.apart.is_switching();
            let watched = [
                (held.answers(), readable),
                (held.stdout.as_ref().filter(is_read), readable),
                (held.stderr.as_ref().filter(is_read), readable),
                (held.wants_to_send(), PollFlags::OUT),
            ];
            for (place, (descriptor, flags)) in driver.iter_mut().zip(watched) {
                if let Some(descriptor) = descriptor {
                    fds.push(PollFd::new(descriptor, flags));
                    *place = Some(fds.len() - 1);
                }
            }
        }
        let first_late = fds.len();
        fds.extend(self.driver.iter().flat_map(|driver| &driver.apart.late).map(|late| PollFd::new(&late.pipe, readable)));
        let first_stranger = fds.len();
        fds.extend(self.strangers.iter().map(|peer| PollFd::new(&peer.stream, readable)));
        let timeout =
            [self.kill_at, self.quiet_until, self.recorder.retry_at(), self.freeze.next_look()].into_iter().flatten().min().map(|at| {
                let left = at.saturating_duration_since(Instant::now());
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
            });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let fired = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Ready {
            signals: fired(0),
            knock: fired(1),
            terminal: terminal.is_some_and(fired),
            daemon: daemon.is_some_and(fired),
            answers: driver[0].is_some_and(fired),
            stdout: driver[1].is_some_and(fired),
            stderr: driver[2].is_some_and(fired),
            calls: driver[3].is_some_and(fired),
            late: (first_late..first_stranger).any(fired),
            strangers: (first_stranger..fds.len()).map(fired).collect(),
        })
    }

    fn time(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Takes what the program said and records it. Never waits for anyone.
    fn read_terminal(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut filled = 0;
        if let Some(pty) = &self.pty {
            while let Some(free) = buffer.get_mut(filled..).filter(|free| !free.is_empty()) {
                match rustix::io::read(&pty.master, free) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => filled += n,
                }
            }
        }
        if let Some(bytes) = buffer.get_mut(..filled).filter(|bytes| !bytes.is_empty()) {
            let shown = self.echo.shown(bytes);
            if !shown.is_empty() {
                self.keep_input(shown);
            }
            if let Some(redactor) = &self.redactor {
                redactor.cover_bytes(bytes);
            }
            self.record(kind::OUTPUT, bytes);
        }
        self.buffer = buffer;
    }

    /// Appends a frame, or says why nothing is recorded now and goes on without.
    fn record(&mut self, frame_kind: u8, body: &[u8]) {
        let (time, size) = (self.time(), self.size);
        self.quiet_until = None;
        match self.recorder.append(frame_kind, time, size, body) {
            Outcome::Recorded => self.end_due = true,
            Outcome::Resumed => {
                self.end_due = true;
                self.say(&News::Suspended(String::new()));
            }
            Outcome::Suspended(why) => {
                // what was recorded came first: the daemon must read it before it is shown what was not
                if std::mem::take(&mut self.end_due) {
                    self.say(&News::End(self.recorder.end()));
                }
                self.say(&News::Suspended(why));
                self.show_unrecorded(frame_kind, body);
            }
            Outcome::NotRecorded => self.show_unrecorded(frame_kind, body),
        }
    }

    /// The user still sees what is not recorded, and a result is never lost.
    fn show_unrecorded(&mut self, frame_kind: u8, body: &[u8]) {
        if matches!(frame_kind, kind::STDOUT | kind::STDERR)
            && let Some(call) = self.driver.as_mut().and_then(|driver| driver.call.as_mut())
        {
            call.unrecorded += body.len() as u64;
        }
        // where nothing is recorded there is nothing to read it from later
        let most = if self.recorder.keeps() == Keeps::Nothing { MAX_UNKEPT_BACKLOG } else { MAX_LINK_BACKLOG };
        let has_room = self.daemon.as_ref().is_some_and(|peer| peer.outgoing.len() < most);
        match frame_kind {
            kind::OUTPUT if has_room => self.say(&News::Unrecorded(body.to_vec())),
            kind::STDOUT | kind::STDERR | kind::LATE_STDOUT | kind::LATE_STDERR | kind::RESIZE if has_room => {
                self.say(&News::UnrecordedFrame(frame_kind, body.to_vec()));
            }
            // without its beginning nothing of an exec would be understood
            kind::CALL | kind::RESULT if self.daemon.is_some() => self.say(&News::UnrecordedFrame(frame_kind, body.to_vec())),
            kind::RESULT => {
                if let Some(driver) = &mut self.driver {
                    driver.unrecorded_result = Some(body.to_vec());
                }
            }
            _ => {}
        }
    }

    fn forget(&mut self) {
        let (time, size) = (self.time(), self.size);
        // an error leaves everything as it was, which the daemon sees
        if self.recorder.forget(time, size).is_ok() {
            self.end_due = true;
        }
    }

    fn resize(&mut self, size: Size) {
        if size == self.size || size.cols == 0 || size.rows == 0 {
            return;
        }
        self.size = size;
        // recorded first: what the program draws for the new size comes after it
        self.record(kind::RESIZE, &encode_size(size));
        if let Some(pty) = &self.pty {
            let _ = pty::resize(&pty.master, size);
        }
    }

    /// As when a terminal window is closed; whatever is left at the deadline is killed.
    fn terminate(&mut self, grace: Duration) {
        if !self.freeze.is_running() {
            // what stands still hears nothing; what was typed for later is for nobody
            self.queued.clear();
            self.thaw();
        }
        if let Some(driver) = &mut self.driver {
            driver.close();
        }
        if self.exit.is_none() {
            tree::signal_group(self.child, Signal::HUP);
            tree::signal_group(self.child, Signal::CONT);
            if let Some(pty) = &self.pty
                && let Ok(group) = rustix::termios::tcgetpgrp(&pty.master)
            {
                let _ = rustix::process::kill_process_group(group, Signal::HUP);
                let _ = rustix::process::kill_process_group(group, Signal::CONT);
            }
        } else {
            for pid in tree::descendants(std::process::id()) {
                tree::signal(pid, Signal::HUP);
                tree::signal(pid, Signal::TERM);
            }
        }
        self.kill_at = Some(Instant::now() + grace);
    }

    /// Collects ended children; `false` when the program and all it left behind are gone.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let is_child = |holder: &Self| pid.as_raw_nonzero().get().unsigned_abs() == holder.child && holder.exit.is_none();
                    if is_child(self) {
                        // a driver may go on in another process, and says so before the old one ends
                        self.hear_driver();
                    }
                    if is_child(self) {
                        let status = match (status.exit_status(), status.terminating_signal()) {
                            (Some(code), _) => ExitStatus::Code(code),
                            (None, Some(signal)) => ExitStatus::Signal(signal),
                            (None, None) => continue,
                        };
                        self.program_ended(status);
                    }
                }
                // a daemon that was started from inside is not what is waited for
                Ok(None) => return self.exit.is_none() || !tree::descendants(std::process::id()).is_empty(),
                // no children at all
                Err(_) => return false,
            }
        }
    }

    fn program_ended(&mut self, status: ExitStatus) {
        // with our own copy closed, the end of the output can be seen
        if let Some(pty) = &mut self.pty {
            pty.slave = None;
        }
        if let Some(driver) = &mut self.driver {
            driver.apart.close();
        }
        self.read_late(READ_BUFFER);
        // others may hold the terminal and print for ever: the program's own last bytes are there at once
        let deadline = Instant::now() + LAST_BYTES;
        loop {
            self.read_terminal();
            self.read_stream(kind::STDOUT, usize::MAX);
            self.read_stream(kind::STDERR, usize::MAX);
            let mut fds: Vec<PollFd<'_>> = self.pty.iter().map(|pty| PollFd::new(&pty.master, PollFlags::IN)).collect();
            let pipes = self.driver.iter().flat_map(|driver| [&driver.stdout, &driver.stderr]).flatten();
            fds.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            if fds.is_empty() {
                break;
            }
            let wait = Timespec { tv_sec: 0, tv_nsec: LAST_BYTES_MS * 1_000_000 };
            let more = poll(&mut fds, Some(&wait)).unwrap_or(0) > 0 && fds.iter().any(|fd| fd.revents().contains(PollFlags::IN));
            if !more || Instant::now() >= deadline {
                break;
            }
        }
        self.exit = Some(status);
        // what went with the machine came to no end of its own: without one it is found to be lost, and can be started again
        if !self.is_put_down {
            self.record(kind::EXIT, &encode_exit(status));
        }
        self.tell_end();
        if !self.is_put_down {
            self.say(&News::Exit(status));
        }
        self.pty = None;
        self.driver = None;
    }
}

struct Ready {
    signals: bool,
    knock: bool,
    terminal: bool,
    daemon: bool,
    answers: bool,
    stdout: bool,
    stderr: bool,
    calls: bool,
    late: bool,
    strangers: Vec<bool>,
}

/// Says what could not be started, in the words of the system.
fn describe(start: &Start, error: &io::Error) -> String {
    let program = start.argv.first().map_or("", String::as_str);
    if !Path::new(&start.cwd).is_dir() {
        return format!("cannot start in {}: it is not a folder any more", start.cwd);
    }
    match error.kind() {
        io::ErrorKind::NotFound => format!("cannot start {program}: no such program"),
        _ => format!("cannot start {program}: {error}"),
    }
}
