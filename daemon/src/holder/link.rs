//! The daemon's end of a holder's socket: orders out, news in. Knows nothing of screens or clients.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use shared::id::Offset;
use shared::screen::Size;
use tokio::net::UnixStream;

use crate::poll::{Sink, Source};

use super::peer::is_same_user;
use super::wire::{CallOrder, Force, Greeting, INPUT_WINDOW, News, Order, Start, VERSION};

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
    news: Source,
    orders: Sink,
    /// The program's terminal itself, if the holder has handed it over: input then needs no further process.
    terminal: Option<Arc<Sink>>,
    arrived: Vec<u8>,
    /// Input bytes sent and taken since the hello.
    sent: u64,
    taken: u64,
}

impl Link {
    pub fn new(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let news = Source::new(stream.try_clone()?.into())?;
        Ok(Self { news, orders: Sink::new(stream.into()), terminal: None, arrived: Vec::new(), sent: 0, taken: 0 })
    }

    /// Reaches a holder that was started by an earlier daemon.
    pub async fn connect(socket: &Path) -> Result<(Self, Greeting), LinkError> {
        if let Some(directory) = socket.parent() {
            crate::files::refuse_foreign(directory)?;
        }
        let stream = UnixStream::connect(socket).await?.into_std()?;
        if !is_same_user(stream.as_fd()) {
            return Err(LinkError::Refused("a process of another user listens on the holder's socket".into()));
        }
        let mut link = Self::new(stream)?;
        link.order(&Order::Hello(VERSION)).await?;
        let greeting = link.greeting().await?;
        Ok((link, greeting))
    }

    /// Tells a new holder what to run, once it can be found by a later daemon.
    pub async fn start(&mut self, start: Start) -> Result<Greeting, LinkError> {
        let mut bytes = Vec::new();
        Order::Start(start).encode(&mut bytes);
        if bytes.len() > shared::frame::MAX_PAYLOAD {
            return Err(LinkError::Refused("the command and its environment are larger than 1 MiB".into()));
        }
        loop {
            match self.news().await? {
                News::Ready => break,
                News::Refused(why) => return Err(LinkError::Refused(why)),
                _ => {}
            }
        }
        self.orders.write(&bytes).await.map_err(|_| LinkError::Gone)?;
        self.greeting().await
    }

    /// The holder's first words: where it stands, or why it could not start the program.
    pub async fn greeting(&mut self) -> Result<Greeting, LinkError> {
        let mut chunk = [0; 4 << 10];
        loop {
            if self.arrived.is_empty() {
                let (count, terminal) = self.news.read_with_descriptor(&mut chunk).await?;
                if count == 0 {
                    return Err(LinkError::Gone);
                }
                self.arrived.extend_from_slice(&chunk[..count]);
                self.terminal = self.terminal.take().or(terminal.map(|terminal| Arc::new(Sink::new(terminal))));
            }
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
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> Result<(), LinkError> {
        let mut chunk = [0; 4 << 10];
        match self.news.read(&mut chunk).await {
            Ok(0) => Err(LinkError::Gone),
            Ok(n) => {
                self.arrived.extend_from_slice(&chunk[..n]);
                Ok(())
            }
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
        self.orders.write(&bytes).await.map_err(|_| LinkError::Gone)
    }

    /// Gives as much input as is taken now; 0 when there is no room.
    pub async fn input(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        if let Some(terminal) = &self.terminal {
            // a program that has closed its terminal takes nothing; the holder tells of its end
            return Ok(terminal.try_write(bytes).unwrap_or(bytes.len()));
        }
        let part = &bytes[..bytes.len().min(self.room())];
        if !part.is_empty() {
            self.sent = self.sent.wrapping_add(part.len() as u64);
            self.order(&Order::Input(part.to_vec())).await?;
        }
        Ok(part.len())
    }

    /// Whether the terminal takes lines without showing them, and which process group has it; nothing if it is not to be seen.
    pub fn terminal_state(&self) -> Option<(bool, Option<u32>)> {
        use rustix::termios::LocalModes;
        let terminal = self.terminal.as_ref()?;
        let modes = rustix::termios::tcgetattr(terminal.descriptor()).ok()?.local_modes;
        let group = rustix::termios::tcgetpgrp(terminal.descriptor()).ok().map(|group| group.as_raw_nonzero().get() as u32);
        Some((modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO), group))
    }

    /// Whether the terminal gives its program whole lines (canonical mode); nothing if it is not to be seen.
    pub fn is_line_mode(&self) -> Option<bool> {
        use rustix::termios::LocalModes;
        let terminal = self.terminal.as_ref()?;
        Some(rustix::termios::tcgetattr(terminal.descriptor()).ok()?.local_modes.contains(LocalModes::ICANON))
    }

    /// Sends the signal that one of these keys (ctrl-c, ctrl-\\) stands for to whatever is in front, as the terminal itself would if it
    /// had room for the key. `false` if none of them is such a key.
    pub fn signal_in_front(&self, keys: &[u8]) -> bool {
        use rustix::process::Signal;
        use rustix::termios::{LocalModes, SpecialCodeIndex, tcgetattr, tcgetpgrp};
        let Some(terminal) = &self.terminal else { return false };
        let Ok(modes) = tcgetattr(terminal.descriptor()) else { return false };
        if !modes.local_modes.contains(LocalModes::ISIG) {
            return false;
        }
        let meant = [(SpecialCodeIndex::VINTR, Signal::INT), (SpecialCodeIndex::VQUIT, Signal::QUIT)]
            .into_iter()
            .find(|(code, _)| modes.special_codes[*code] != 0 && keys.contains(&modes.special_codes[*code]));
        match (meant, tcgetpgrp(terminal.descriptor())) {
            (Some((_, signal)), Ok(group)) => rustix::process::kill_process_group(group, signal).is_ok(),
            _ => false,
        }
    }

    /// As [`Self::input`], of a client that counts its bytes; through the holder, which knows what it has of them.
    pub async fn typed(&mut self, stream: u64, at: u64, bytes: &[u8]) -> Result<usize, LinkError> {
        let part = &bytes[..bytes.len().min(self.room())];
        if !part.is_empty() || bytes.is_empty() {
            self.sent = self.sent.wrapping_add(part.len() as u64);
            self.order(&Order::Typed(stream, at, part.to_vec())).await?;
        }
        Ok(part.len())
    }

    fn room(&self) -> usize {
        usize::try_from(INPUT_WINDOW.saturating_sub(self.under_way())).unwrap_or(usize::MAX)
    }

    /// Bytes of input that the holder has not said it has taken.
    pub fn under_way(&self) -> u64 {
        self.sent.wrapping_sub(self.taken)
    }

    /// Returns when the program's terminal has room again; never if its holder tells of that by news.
    pub fn input_room(&self) -> impl Future<Output = ()> + use<> {
        let terminal = self.terminal.clone();
        async move {
            match terminal {
                Some(terminal) if terminal.has_room().await.is_ok() => {}
                _ => std::future::pending().await,
            }
        }
    }

    /// Answers terminal queries up to `offset`; the holder sees to it that each is answered once.
    pub async fn answer(&mut self, offset: Offset, bytes: Vec<u8>) -> Result<(), LinkError> {
        self.order(&Order::Answer(offset, bytes)).await
    }

    pub async fn resize(&mut self, size: Size) -> Result<(), LinkError> {
        self.order(&Order::Resize(size)).await
    }

    /// A call to a language's driver.
    pub async fn call(&mut self, call: CallOrder) -> Result<(), LinkError> {
        self.order(&Order::Call(call)).await
    }

    pub async fn interrupt(&mut self, force: Force) -> Result<(), LinkError> {
        self.order(&Order::Interrupt(force)).await
    }

    /// Asks a driver which names are defined; the answer is news.
    pub async fn names(&mut self) -> Result<(), LinkError> {
        self.order(&Order::Names).await
    }

    /// What was recorded so far goes; the new end is news.
    pub async fn forget(&mut self) -> Result<(), LinkError> {
        self.order(&Order::Forget).await
    }

    /// Stops everything; when it stands is news.
    pub async fn freeze(&mut self, queues_input: bool) -> Result<(), LinkError> {
        self.order(&Order::Freeze { queues_input }).await
    }

    pub async fn thaw(&mut self) -> Result<(), LinkError> {
        self.order(&Order::Thaw).await
    }

    /// Input for when it goes on; that it is kept is news.
    pub async fn queue(&mut self, bytes: Vec<u8>) -> Result<(), LinkError> {
        self.order(&Order::Queue(bytes)).await
    }

    pub async fn terminate(&mut self, grace_ms: u32) -> Result<(), LinkError> {
        self.order(&Order::Terminate(grace_ms)).await
    }
}
