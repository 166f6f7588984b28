//! A program on a PTY of its own. The only unsafe code of the product: what must happen between fork and exec.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{InputModes, OptionalActions, Winsize};
use shared::screen::Size;

use crate::descriptor;

pub struct Pty {
    pub master: OwnedFd,
    /// Kept open so that the master never reports a hang-up while the program closes and reopens its terminal.
    pub slave: Option<OwnedFd>,
}

pub fn open(size: Size) -> io::Result<Pty> {
    let master = descriptor::open_terminal()?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let mut modes = rustix::termios::tcgetattr(&slave)?;
    // erasing in canonical mode takes a whole character, not a byte
    modes.input_modes |= InputModes::IUTF8;
    rustix::termios::tcsetattr(&slave, OptionalActions::Now, &modes)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let pty = Pty { master, slave: Some(slave) };
    resize(&pty.master, size)?;
    Ok(pty)
}

pub fn resize(master: &OwnedFd, size: Size) -> io::Result<()> {
    let winsize = Winsize { ws_col: size.cols, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(master, winsize)?;
    Ok(())
}

/// Starts the program as leader of its own process session with the PTY as its terminal; gives its pid.
pub fn start(pty: &Pty, argv: &[String], cwd: &str, env: &[(String, String)]) -> io::Result<u32> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was given"));
    };
    let Some(slave) = &pty.slave else { return Err(io::Error::from(io::ErrorKind::NotConnected)) };
    let stdio = || -> io::Result<Stdio> { Ok(Stdio::from(File::from(slave.as_fd().try_clone_to_owned()?))) };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env.iter().map(|(k, v)| (k, v))).current_dir(cwd);
    command.stdin(stdio()?).stdout(stdio()?).stderr(stdio()?);
    let terminal = slave.as_raw_fd();
    #[expect(unsafe_code, reason = "setsid and the controlling terminal can only be set between fork and exec")]
    // SAFETY: the closure only makes two system calls, which are async-signal-safe, and touches no memory of ours;
    // `terminal` stays open until exec because `pty` outlives this call. Signal handlers of the holder are reset by exec.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(std::os::fd::BorrowedFd::borrow_raw(terminal))?;
            Ok(())
        });
    }
    // reaped by the holder's own wait, which also gets adopted grandchildren
    Ok(command.spawn()?.id())
}
