//! A client's own terminal, used by the daemon directly: keys and output then pass through no other process.
//! The client keeps it raw and gives it back; here it is only read and written.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use rustix::fs::{Mode, OFlags};
use shared::message::TtyName;

use crate::poll::{Sink, Source};

pub struct Tty {
    pub keys: Source,
    pub screen: Sink,
}

/// Opens the terminal the client named, if it is the same device here and this user's.
pub fn open(name: &TtyName) -> io::Result<Tty> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&name.path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    let is_the_one = meta.file_type().is_char_device()
        && (meta.rdev(), meta.dev(), meta.ino()) == (name.device, name.filesystem, name.inode)
        && meta.uid() == rustix::process::geteuid().as_raw()
        && rustix::termios::isatty(&file);
    if !is_the_one {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    Ok(Tty { keys: Source::new(file.try_clone()?.into())?, screen: Sink::new(file.into()) })
}
