//! One connection to a holder: what has arrived, what is still to be sent. Never blocks, and trusts nothing that arrives.

use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use super::wire::Order;

/// A queue that has run empty gives back memory above this.
const KEPT_CAPACITY: usize = 32 << 10;

/// A connection with what has arrived and what is still to be sent.
pub struct Peer {
    pub stream: UnixStream,
    arrived: Vec<u8>,
    pub outgoing: Vec<u8>,
}

impl Peer {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, arrived: Vec::new(), outgoing: Vec::new() })
    }

    /// Reads what is there, if anything is; an error or end means the peer is gone.
    pub fn receive(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(n) => {
                self.arrived.extend_from_slice(chunk.get(..n).unwrap_or_default());
                Ok(true)
            }
            Err(error) if would_block(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub fn next_order(&mut self) -> io::Result<Option<Order>> {
        match Order::decode(&self.arrived) {
            Ok(Some((order, size))) => {
                self.arrived.drain(..size);
                if self.arrived.is_empty() {
                    self.arrived = Vec::new();
                }
                Ok(Some(order))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    pub fn send(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(n) => {
                    self.outgoing.drain(..n);
                }
                Err(error) if would_block(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.outgoing.capacity() > KEPT_CAPACITY {
            self.outgoing = Vec::new();
        }
        Ok(())
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(target_os = "linux")]
pub fn is_same_user(socket: BorrowedFd<'_>) -> bool {
    rustix::net::sockopt::socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Elsewhere the folder's permissions (0700) are the check.
#[cfg(not(target_os = "linux"))]
pub fn is_same_user(_: BorrowedFd<'_>) -> bool {
    true
}
