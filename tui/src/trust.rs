//! Whom a client talks to: the same user only. A request may carry the whole environment, so this is checked before the first byte.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether a directory exists, is this user's, and can be written by nobody else.
pub fn is_private(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|found| found.is_dir() && found.uid() == own_user() && found.mode() & 0o022 == 0)
}

/// Refuses a socket in a directory of another user. A directory that is missing is no refusal: nothing can listen there.
pub fn check_directory(socket: &Path) -> io::Result<()> {
    let Some(directory) = socket.parent() else { return Ok(()) };
    let Ok(found) = std::fs::metadata(directory) else { return Ok(()) };
    if found.uid() == own_user() {
        return Ok(());
    }
    let why = format!("the directory {} belongs to another user; nothing was sent", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Refuses a peer that runs as another user. `user` is what the kernel says of it.
pub fn check_peer(user: Option<u32>) -> io::Result<()> {
    match user {
        Some(user) if user == own_user() => Ok(()),
        Some(user) => {
            let why = format!("a process of another user (uid {user}) listens there; nothing was sent");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
        None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the system does not tell who listens there; nothing was sent")),
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
