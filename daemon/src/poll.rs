//! Reading and writing descriptors that are polled only for what is being waited for. Tokio's own streams are always told
//! of both directions, so that every byte the other side takes would wake the daemon; at a keystroke's scale that doubles
//! the work. Its pipe ends are the safe way to wait for any descriptor in one direction.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::descriptor;

/// The reading side of a descriptor.
pub struct Source(Receiver);

impl Source {
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self(Receiver::from_owned_fd_unchecked(descriptor)?))
    }

    /// Waits for something to read and reads it; 0 is the end. Safe to cancel.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.0.readable().await?;
            match self.0.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
        }
    }
}

impl Source {
    /// As `read`, for a socket: also a descriptor the other side may have sent along.
    pub async fn read_with_descriptor(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
        loop {
            self.0.readable().await?;
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            match rustix::net::recvmsg(&self.0, &mut [io::IoSliceMut::new(buffer)], &mut control, descriptor::RECEIVES) {
                Ok(message) => {
                    let sent = control.drain().find_map(|message| match message {
                        RecvAncillaryMessage::ScmRights(mut sent) => sent.next(),
                        _ => None,
                    });
                    if let Some(sent) = &sent {
                        descriptor::keep_to_ourselves(sent)?;
                    }
                    return Ok((message.bytes, sent));
                }
                // tokio forgets readiness only by a read of its own
                Err(rustix::io::Errno::WOULDBLOCK) => match self.0.try_read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    outcome => return Ok((outcome?, None)),
                },
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The writing side of a descriptor, which must be non-blocking.
pub struct Sink(File);

impl Sink {
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(File::from(descriptor))
    }

    pub fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    /// Writes what fits now; 0 when there is no room.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match (&self.0).write(bytes) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            outcome => outcome,
        }
    }

    /// Returns when there is room again.
    pub async fn has_room(&self) -> io::Result<()> {
        Sender::from_file_unchecked(self.0.try_clone()?)?.writable().await
    }

    /// Writes all of it, however slowly the other side takes it.
    pub async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        // only a full buffer is worth waiting for, and that is rare
        let mut waiting: Option<Sender> = None;
        while !bytes.is_empty() {
            match (&self.0).write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let sender = match waiting.take() {
                        Some(sender) => sender,
                        None => Sender::from_file_unchecked(self.0.try_clone()?)?,
                    };
                    sender.writable().await?;
                    // readiness is forgotten only by a write through the sender itself
                    match sender.try_write(bytes) {
                        Ok(n) => bytes = &bytes[n..],
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                    waiting = Some(sender);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[tokio::test]
    async fn a_full_buffer_is_waited_for_and_nothing_is_lost() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("non-blocking");
        let sink = Sink::new(ours.into());
        let sent: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        let copy = sent.clone();
        let reader = std::thread::spawn(move || {
            let mut seen = vec![0; copy.len()];
            theirs.read_exact(&mut seen).expect("reads");
            seen == copy
        });
        sink.write(&sent).await.expect("writes");
        assert!(reader.join().expect("ends"));
    }
}
