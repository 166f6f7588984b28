//! Starting a holder: the daemon's side. A socket pair is its first link, so nothing has to be waited for or found.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use super::link::Link;
use super::wire::{Order, Start};

/// The program holders are: our own file, or, when an upgrade removed it, the image still in memory.
fn executable() -> PathBuf {
    std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// A holder that has no program yet. It ends by itself if it never gets one.
pub struct Waiting {
    link: UnixStream,
}

/// Starts a holder; it gets ready while its launch is being stored.
pub fn spawn() -> io::Result<Waiting> {
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
    Ok(Waiting { link: ours })
}

impl Waiting {
    /// Tells the holder what to run; its answer comes over the link.
    pub fn start(self, start: Start) -> io::Result<Link> {
        let mut bytes = Vec::new();
        Order::Start(start).encode(&mut bytes);
        if bytes.len() > shared::frame::MAX_PAYLOAD {
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, "the command and its environment are larger than 1 MiB"));
        }
        // may be larger than the socket's buffer: written while the holder reads
        (&self.link).write_all(&bytes)?;
        Link::new(self.link)
    }
}
