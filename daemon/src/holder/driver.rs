//! A language's driver as the holder has it: pipes for what its code prints, and two descriptors of its own for calls and
//! answers, framed by length, so that nothing printed can be taken for an answer. What is inside is the daemon's business.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use shared::id::{ExecId, Offset};

use super::answers::{Answer, Answers};
use super::apart::Apart;
use super::wire::{CallOrder, Start};
use crate::descriptor;

/// Where the driver finds its calls, and where it answers.
const CALLS: i32 = 3;
const ANSWERS: i32 = 4;

/// Beyond the descriptors the driver expects, so that putting them in place overwrites none of ours.
const OUT_OF_THE_WAY: i32 = 10;

pub struct Driver {
    /// Gone when the driver is to end.
    calls: Option<OwnedFd>,
    answers: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    pub apart: Apart,
    /// Of calls that the driver has not taken yet.
    unsent: Vec<u8>,
    arrived: Answers,
    /// Its descriptors are closed at its end: it cannot be asked, or cannot answer.
    is_cut_off: bool,
    /// The file of its own, which is only here: a driver's environment is in it.
    _scratch: Option<OwnedFd>,
    /// The process group of it and what it runs in the foreground.
    pub group: u32,
    pub call: Option<Running>,
    /// Asked for while another was under way, which the daemon did not know of.
    pub next: Option<CallOrder>,
    /// The last thing printed did not end its line.
    pub mid_line: bool,
    /// What the driver last said of its environment, first and latest: for whoever is the daemon. Never recorded.
    pub baseline: Option<Vec<u8>>,
    pub state: Option<Vec<u8>>,
    pub hello: Option<Vec<u8>>,
    /// Which program the driver is, since its hello.
    pub image: Option<Vec<u8>>,
    /// A result that could be neither recorded nor told.
    pub unrecorded_result: Option<Vec<u8>>,
    /// Said before that result: how much of its output was not recorded.
    pub unrecorded_output: Option<(ExecId, u64)>,
}

/// A call under way.
pub struct Running {
    pub id: ExecId,
    pub at: Offset,
    pub since: Instant,
    /// Milliseconds since boot: what has been started since belongs to it.
    pub since_boot_ms: u64,
    /// Bytes that it has printed and that are not in the recording.
    pub unrecorded: u64,
}

impl Driver {
    /// Starts it as leader of its own process session; gives its pid too.
    pub fn start(start: &Start) -> io::Result<(Self, u32)> {
        let Start { argv, cwd, env, .. } = start;
        let Some((program, arguments)) = argv.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was given"));
        };
        let (theirs_in, calls) = descriptor::pipe()?;
        let (answers, theirs_out) = descriptor::pipe()?;
        let (stdout, stdout_end) = descriptor::pipe()?;
        let (stderr, stderr_end) = descriptor::pipe()?;
        let theirs_in = rustix::io::fcntl_dupfd_cloexec(&theirs_in, OUT_OF_THE_WAY)?;
        let theirs_out = rustix::io::fcntl_dupfd_cloexec(&theirs_out, OUT_OF_THE_WAY)?;
        for ours in [&calls, &answers, &stdout, &stderr] {
            rustix::io::ioctl_fionbio(ours, true)?;
        }
        let (scratch, place) = scratch();
        let mut command = Command::new(program);
        match (arguments.split_last(), place) {
            (Some((_, others)), Some(place)) => command.args(others).arg(place),
            _ => command.args(arguments),
        };
        command.env_clear().envs(env.iter().map(|(k, v)| (k, v))).current_dir(cwd);
        command.stdin(Stdio::null()).stdout(Stdio::from(stdout_end)).stderr(Stdio::from(stderr_end));
        let (from, to) = (theirs_in.as_raw_fd(), theirs_out.as_raw_fd());
        #[expect(unsafe_code, reason = "a session of its own and descriptors by number can only be had between fork and exec")]
        // SAFETY: the closure only makes three system calls, which are async-signal-safe, and allocates nothing. `from` and `to`
        // stay open until exec because their owners outlive the spawn. Numbers 3 and 4 are the holder's signal pipe in this
        // process, open since its start, so that neither is a descriptor of `Command`'s own; here they are overwritten.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                for (source, target) in [(from, CALLS), (to, ANSWERS)] {
                    let mut place = std::mem::ManuallyDrop::new(OwnedFd::from_raw_fd(target));
                    rustix::io::dup2(BorrowedFd::borrow_raw(source), &mut place)?;
                }
                Ok(())
            });
        }
        // reaped by the holder's own wait
        let pid = command.spawn()?.id();
        let driver = Self {
            calls: Some(calls),
            answers: Some(answers),
            stdout: Some(stdout),
            stderr: Some(stderr),
            apart: Apart::new(start.can_switch),
            unsent: Vec::new(),
            arrived: Answers::new(start.has_nonces),
            is_cut_off: false,
            group: pid,
            _scratch: scratch,
            call: None,
            next: None,
            mid_line: false,
            baseline: None,
            state: None,
            hello: None,
            image: None,
            unrecorded_result: None,
            unrecorded_output: None,
        };
        Ok((driver, pid))
    }

    /// The call that is being carried out, or whose result is still to be told because it could not be recorded; and where it is.
    pub fn unsettled(&self, end: Offset) -> Option<(ExecId, Offset)> {
        let untold = || self.unrecorded_result.as_ref().and_then(|body| body.first_chunk::<16>()).map(|id| (ExecId::from_bytes(*id), end));
        self.call.as_ref().map(|call| (call.id, call.at)).or_else(untold)
    }

    pub fn answers(&self) -> Option<&OwnedFd> {
        self.answers.as_ref()
    }

    /// The descriptor to wait on while calls are to be sent.
    pub fn wants_to_send(&self) -> Option<&OwnedFd> {
        self.calls.as_ref().filter(|_| !self.unsent.is_empty())
    }

    /// Nothing more will be asked, and nothing it says counts any more: it ends when it has read that.
    pub fn close(&mut self) {
        self.calls = None;
        self.answers = None;
        self.arrived.clear();
    }

    /// The driver lives, and can be neither asked nor answer: its code closed or replaced its descriptors.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    pub fn call(&mut self, call: &CallOrder) {
        self.arrived.rotate();
        self.ask(call.verb, &call.stdin, call.code.as_bytes());
    }

    /// Gives the next exec pipes of its own if something that earlier ones left running may still print into the present ones.
    pub fn keep_late_output_apart(&mut self) {
        if let Some(places) = self.apart.begin_switch() {
            self.ask(b'o', &places, &[]);
        }
    }

    /// The driver has said whether it prints into the new pipes.
    pub fn switched(&mut self, is_done: bool) {
        if let Some((stdout, stderr)) = self.apart.end_switch(is_done) {
            self.apart.keep_late([self.stdout.replace(stdout), self.stderr.replace(stderr)]);
        }
    }

    pub fn names(&mut self) {
        self.ask(b'n', "", &[]);
    }

    /// `a` is `x` with nothing but ASCII characters, which bash can read without changing its locale. In capitals: the nonce follows.
    fn ask(&mut self, verb: u8, stdin: &str, code: &[u8]) {
        let verb = if verb == b'x' && code.is_ascii() && stdin.is_ascii() { b'a' } else { verb };
        let nonce = self.arrived.nonce();
        let verb = if nonce.is_some() { verb.to_ascii_uppercase() } else { verb };
        self.unsent.extend_from_slice(format!("{} {:010} {:04}\n", char::from(verb), code.len(), stdin.len()).as_bytes());
        if let Some(nonce) = nonce {
            self.unsent.extend_from_slice(&nonce);
            self.unsent.push(b'\n');
        }
        self.unsent.extend_from_slice(stdin.as_bytes());
        self.unsent.extend_from_slice(code);
        self.send();
    }

    /// Writes what the driver takes now.
    pub fn send(&mut self) {
        let Some(calls) = &self.calls else {
            self.unsent = Vec::new();
            return;
        };
        let mut sent = 0;
        while let Some(rest) = self.unsent.get(sent..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(calls, rest) {
                Ok(n) if n > 0 => sent += n,
                Err(rustix::io::Errno::PIPE) => {
                    self.is_cut_off = true;
                    break;
                }
                _ => break,
            }
        }
        self.unsent.drain(..sent);
        if self.unsent.is_empty() && self.unsent.capacity() > (64 << 10) {
            self.unsent = Vec::new();
        }
    }

    /// Reads what has been answered.
    pub fn receive(&mut self) {
        let mut chunk = [0; 8 << 10];
        while let Some(answers) = &self.answers {
            match rustix::io::read(answers, &mut chunk) {
                Ok(0) => {
                    self.answers = None;
                    self.is_cut_off = true;
                }
                Ok(n) => self.arrived.push(chunk.get(..n).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Takes the next complete answer.
    pub fn next_answer(&mut self) -> Option<Answer> {
        let answer = self.arrived.take();
        if answer == Some(Answer::Nonsense) {
            self.answers = None;
        }
        answer
    }
}

/// A file without a place on any disk, and the name by which our child can open it. Where there is no such thing, the driver uses
/// the file that it was given last.
#[cfg(target_os = "linux")]
fn scratch() -> (Option<OwnedFd>, Option<String>) {
    match rustix::fs::memfd_create("driver", rustix::fs::MemfdFlags::CLOEXEC) {
        Ok(file) => {
            let place = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            if std::fs::File::options().read(true).write(true).open(&place).is_ok() { (Some(file), Some(place)) } else { (None, None) }
        }
        Err(_) => (None, None),
    }
}

#[cfg(not(target_os = "linux"))]
fn scratch() -> (Option<OwnedFd>, Option<String>) {
    (None, None)
}

/// What is in a pipe at this moment: as much as was printed before an answer that has arrived.
pub fn waiting_in(pipe: BorrowedFd<'_>) -> usize {
    rustix::io::ioctl_fionread(pipe).map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

impl Driver {
    pub fn waiting(&self) -> (usize, usize) {
        let count = |pipe: &Option<OwnedFd>| pipe.as_ref().map_or(0, |pipe| waiting_in(pipe.as_fd()));
        (count(&self.stdout), count(&self.stderr))
    }
}

/// Milliseconds since boot, as process start times are counted.
pub fn since_boot_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
