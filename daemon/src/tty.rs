//! A client's own terminal, used by the daemon directly: keys and output then pass through no other process.
//! The client keeps it raw and gives it back; here it is only read and written.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use rustix::fs::{Mode, OFlags};
use shared::message::TtyName;
use tokio::net::unix::pipe::{Receiver, Sender};

pub struct Tty {
    pub keys: Receiver,
    pub screen: Sender,
}

/// Opens the terminal the client named, if it is the same device here and this user's.
pub fn open(name: &TtyName) -> io::Result<Tty> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&name.path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    let is_the_one = meta.file_type().is_char_device()
        && meta.rdev() == name.device
        && meta.uid() == rustix::process::geteuid().as_raw()
        && rustix::termios::isatty(&file);
    if !is_the_one {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    // tokio's pipe ends are the safe way to wait for any descriptor that can be polled
    let keys = Receiver::from_file_unchecked(file.try_clone()?)?;
    Ok(Tty { keys, screen: Sender::from_file_unchecked(file)? })
}

/// What was typed; empty when the terminal is gone.
pub async fn read(keys: &Receiver) -> io::Result<Vec<u8>> {
    loop {
        keys.readable().await?;
        let mut bytes = [0; 1024];
        match keys.try_read(&mut bytes) {
            Ok(n) => return Ok(bytes[..n].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes all of it, however slowly the terminal takes it.
pub async fn write(screen: &Sender, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match screen.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => screen.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
