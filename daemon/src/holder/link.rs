//! The daemon's end of a holder's socket: orders out, news in. Knows nothing of screens or clients.

use std::io;
use std::path::Path;

use shared::id::Offset;
use shared::screen::Size;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::wire::{Greeting, INPUT_WINDOW, News, Order, VERSION};

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the holder has gone")]
    Gone,
    #[error("the holder speaks version {0} of its protocol, newer than this daemon ({VERSION}): upgrade sessions-tui")]
    Newer(u8),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

pub struct Link {
    stream: UnixStream,
    arrived: Vec<u8>,
    /// Input bytes sent and taken since the hello.
    sent: u64,
    taken: u64,
}

impl Link {
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, arrived: Vec::new(), sent: 0, taken: 0 }
    }

    /// Reaches a holder that was started by an earlier daemon.
    pub async fn connect(socket: &Path) -> Result<(Self, Greeting), LinkError> {
        let stream = UnixStream::connect(socket).await?;
        let mut link = Self::new(stream);
        link.order(&Order::Hello(VERSION)).await?;
        let greeting = link.greeting().await?;
        Ok((link, greeting))
    }

    /// The holder's first words: where it stands, or why it could not start the program.
    pub async fn greeting(&mut self) -> Result<Greeting, LinkError> {
        loop {
            match self.news().await? {
                News::Greeting(version, _) if version > VERSION => return Err(LinkError::Newer(version)),
                News::Greeting(_, Some(greeting)) => return Ok(greeting),
                News::Refused(why) => return Err(LinkError::Refused(why)),
                _ => {}
            }
        }
    }

    /// The next thing the holder says. Safe to cancel: nothing is lost between calls.
    pub async fn news(&mut self) -> Result<News, LinkError> {
        loop {
            if let Some(news) = self.buffered()? {
                return Ok(news);
            }
            self.stream.readable().await?;
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<(), LinkError> {
        let mut chunk = [0; 16 << 10];
        match self.stream.try_read(&mut chunk) {
            Ok(0) => Err(LinkError::Gone),
            Ok(n) => {
                self.arrived.extend_from_slice(&chunk[..n]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(LinkError::Gone),
            Err(error) => Err(error.into()),
        }
    }

    fn buffered(&mut self) -> Result<Option<News>, LinkError> {
        let mut latest_end = None;
        let mut used = 0;
        let outcome = loop {
            match News::decode(&self.arrived[used..]) {
                Ok(Some((news, size))) => match news {
                    // only the last of a row of ends matters
                    News::End(end) => {
                        used += size;
                        latest_end = Some(end);
                    }
                    _ if latest_end.is_some() => break Ok(None),
                    other => {
                        used += size;
                        if let News::Taken(total) = other {
                            self.taken = total;
                        }
                        break Ok(Some(other));
                    }
                },
                Ok(None) => break Ok(None),
                Err(error) => break Err(io::Error::new(io::ErrorKind::InvalidData, error).into()),
            }
        };
        self.arrived.drain(..used);
        if self.arrived.is_empty() && self.arrived.capacity() > 4096 {
            self.arrived = Vec::new();
        }
        match (latest_end, outcome) {
            (Some(end), Ok(None)) => Ok(Some(News::End(end))),
            (_, outcome) => outcome,
        }
    }

    async fn order(&mut self, order: &Order) -> Result<(), LinkError> {
        let mut bytes = Vec::new();
        order.encode(&mut bytes);
        self.stream.write_all(&bytes).await.map_err(|_| LinkError::Gone)
    }

    /// How many bytes of input the holder would take now.
    pub fn input_room(&self) -> usize {
        INPUT_WINDOW.saturating_sub(self.sent.wrapping_sub(self.taken)) as usize
    }

    /// Sends input that fits into the room.
    pub async fn input(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.sent = self.sent.wrapping_add(bytes.len() as u64);
        self.order(&Order::Input(bytes.to_vec())).await
    }

    /// Answers terminal queries up to `offset`; the holder sees to it that each is answered once.
    pub async fn answer(&mut self, offset: Offset, bytes: Vec<u8>) -> Result<(), LinkError> {
        self.order(&Order::Answer(offset, bytes)).await
    }

    pub async fn resize(&mut self, size: Size) -> Result<(), LinkError> {
        self.order(&Order::Resize(size)).await
    }

    pub async fn terminate(&mut self, grace_ms: u32) -> Result<(), LinkError> {
        self.order(&Order::Terminate(grace_ms)).await
    }
}
