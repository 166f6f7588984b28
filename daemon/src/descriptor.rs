//! Descriptors that no program inherits, also where a system cannot be told so in the call that makes them. There, a program started
//! by another thread in between could get one; the holder, which starts them, has only one thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags};
use rustix::pty::OpenptFlags;

/// A pipe: the side to read from, and the side to write to.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reading, writing) = std::io::pipe()?;
    Ok((reading.into(), writing.into()))
}

/// The master of a new terminal.
pub fn open_terminal() -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    keep_to_ourselves(&master)?;
    Ok(master)
}

/// How a message is received that may bring a descriptor; that is then given to [`keep_to_ourselves`].
#[cfg(target_os = "linux")]
pub const RECEIVES: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);
#[cfg(not(target_os = "linux"))]
pub const RECEIVES: RecvFlags = RecvFlags::DONTWAIT;

/// A peer that is gone is an error, not a signal; where there is no such flag, std has set it on the socket.
#[cfg(target_os = "linux")]
pub const SENDS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
pub const SENDS: SendFlags = SendFlags::empty();

/// Nothing to do where it was made so.
pub fn keep_to_ourselves(descriptor: impl AsFd) -> io::Result<()> {
    if !cfg!(target_os = "linux") {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(())
}
