//! Starting a holder: the daemon's side. A socket pair is its first link, so nothing has to be waited for or found.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use super::wire::{Order, Start};

/// The program holders are: our own file, or, when an upgrade removed it, the image still in memory.
fn executable() -> PathBuf {
    std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Starts a holder and tells it what to run; its answer comes over the link.
pub fn spawn(start: Start) -> io::Result<tokio::net::UnixStream> {
    let mut bytes = Vec::new();
    Order::Start(start).encode(&mut bytes);
    if bytes.len() > shared::frame::MAX_PAYLOAD {
        return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, "the command and its environment are larger than 1 MiB"));
    }
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = tokio::process::Command::new(executable());
    command
        .arg("holder")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(false);
    // reaped by tokio when it ends while we live; a later daemon is not its parent
    drop(command.spawn()?);
    // larger than the socket's buffer for big environments: written while the holder reads
    {
        use std::io::Write;
        (&ours).write_all(&bytes)?;
    }
    ours.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(ours)
}
