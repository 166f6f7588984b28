//! Starting a holder: the daemon's side. A socket pair is its first link, so nothing has to be waited for or found.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use shared::runtime::{MARKS, ROLE};

use super::link::Link;

/// The program holders are: our own file, or, when an upgrade removed it, the image still in memory.
fn executable() -> PathBuf {
    std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Starts a holder that will listen on `socket`; it gets ready while its launch is being stored, and ends by itself if it
/// never gets one.
pub fn spawn(socket: &Path) -> io::Result<Link> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = tokio::process::Command::new(executable());
    command
        .arg("holder")
        .arg(socket)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .kill_on_drop(false);
    // a command inside a session may have started the daemon: its mark must not pass to others
    for variable in MARKS {
        command.env_remove(variable);
    }
    command.env(ROLE, "holder");
    // reaped by tokio when it ends while we live; a later daemon is not its parent
    drop(command.spawn()?);
    Link::new(ours)
}
