//! A connection to the daemon: typed calls, pushes, and terminal bytes.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::trust;
use interprocess::local_socket::GenericFilePath;
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::traits::StreamCommon;
use serde::de::DeserializeOwned;
use shared::frame;
use shared::message::{Answer, Call, Code, Failure, Hello, HelloLine, INPUT, MAX_LINE, OUTPUT, PROTOCOL, Push, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Room made for each read: a picture or a screenful of output.
const READ_BYTES: usize = 64 << 10;

pub struct Client {
    stream: Stream,
    arrived: Vec<u8>,
    /// No line ends in this much of what has arrived.
    looked_through: usize,
    next_id: u64,
    /// Pushes that came while an answer was awaited.
    pushes: VecDeque<Push>,
    pub daemon: Hello,
}

/// For whom a client acts: it says so, and the daemon sees whether that can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acts {
    #[default]
    ForAnyone,
    /// Each request is a key that a person pressed here.
    ForPerson,
}

/// What the daemon says.
#[derive(Debug)]
pub enum Incoming {
    Answer(Answer),
    Push(Push),
    Output(Vec<u8>),
}

/// A daemon says hello before anything else, at once: whatever takes longer is stopped or stuck. Answers may take as long as they like.
const GREETING: Duration = Duration::from_secs(10);

/// Whoever listens does not even say hello.
#[derive(Debug, thiserror::Error)]
#[error("it says nothing")]
pub struct Silent {
    /// Which process that is, if the system tells.
    pub pid: Option<u32>,
}

impl Client {
    /// Connects and exchanges versions. The inner failure is something else than a daemon of ours. A first call travels
    /// with the hello, so that a short command waits for the daemon only once; its answer is the next to arrive.
    pub async fn connect(socket: &Path, acts: Acts, first: Option<&Request>) -> io::Result<Result<Self, Failure>> {
        trust::check_directory(socket)?;
        let stream = Stream::connect(socket.to_fs_name::<GenericFilePath>()?).await?;
        trust::check_peer(stream.peer_creds()?.euid())?;
        let person = acts == Acts::ForPerson;
        let hello = Hello { protocol: PROTOCOL, version: shared::VERSION.to_owned(), pid: std::process::id(), person };
        let mut client =
            Self { stream, arrived: Vec::new(), looked_through: 0, next_id: 1, pushes: VecDeque::new(), daemon: hello.clone() };
        let mut line = serde_json::to_vec(&HelloLine { hello })?;
        line.push(b'\n');
        if let Some(request) = first {
            line.extend(call_line(client.next_id, request.clone())?);
            client.next_id += 1;
        }
        client.stream.write_all(&line).await?;
        let pid = client.stream.peer_creds().ok().and_then(|peer| peer.pid()).and_then(|pid| u32::try_from(pid).ok());
        let silent = |_| io::Error::new(io::ErrorKind::TimedOut, Silent { pid });
        let line = tokio::time::timeout(GREETING, client.line()).await.map_err(silent)??;
        if line.starts_with(b"{\"push\"") {
            // it is leaving, and says so instead of a hello
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon is stopping"));
        }
        let Ok(HelloLine { hello }) = serde_json::from_slice::<HelloLine>(&line) else {
            return Ok(Err(Failure::new(Code::Version, "whatever listens there is not a sessions-tui daemon")));
        };
        client.daemon = hello;
        Ok(Ok(client))
    }

    /// A difference of protocol that calls cannot cross, as a sentence.
    pub fn version_gap(&self) -> Option<Failure> {
        let daemon = &self.daemon;
        let message = match daemon.protocol.cmp(&PROTOCOL) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Less => format!(
                "the daemon is older ({}) than this client ({}): run `sessions-tui daemon restart`; sessions go on",
                daemon.version,
                shared::VERSION
            ),
            std::cmp::Ordering::Greater => format!(
                "the daemon is newer ({}) than this client ({}): use the newer sessions-tui; sessions go on",
                daemon.version,
                shared::VERSION
            ),
        };
        Some(Failure::new(Code::Version, message))
    }

    /// Sends a call without waiting; gives its id.
    pub async fn send(&mut self, request: Request) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        self.stream.write_all(&call_line(id, request)?).await?;
        Ok(id)
    }

    /// The id of the call that was sent last.
    pub fn last_id(&self) -> u64 {
        self.next_id - 1
    }

    /// A call and its answer.
    pub async fn call<T: DeserializeOwned>(&mut self, request: Request) -> Result<T, Failure> {
        let id = self.send(request).await.map_err(lost)?;
        self.answer(id).await
    }

    /// The answer to the call with this id; pushes that come before it are kept.
    pub async fn answer<T: DeserializeOwned>(&mut self, id: u64) -> Result<T, Failure> {
        self.answer_unless_lost(id).await.map_err(lost)?
    }

    /// As [`Self::answer`]; the outer error is a daemon that went away before it answered.
    pub async fn answer_unless_lost<T: DeserializeOwned>(&mut self, id: u64) -> io::Result<Result<T, Failure>> {
        loop {
            match self.receive().await? {
                Incoming::Answer(answer) if answer.id == id || answer.id == 0 => return Ok(answer.understand()),
                Incoming::Push(push) => self.pushes.push_back(push),
                Incoming::Answer(_) | Incoming::Output(_) => {}
            }
        }
    }

    pub async fn input(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = Vec::with_capacity(bytes.len() + frame::HEADER);
        for part in bytes.chunks(frame::MAX_PAYLOAD) {
            frame::encode(INPUT, part, &mut out);
        }
        self.stream.write_all(&out).await
    }

    /// Whatever comes next. Safe to cancel: nothing is lost between calls.
    pub async fn receive(&mut self) -> io::Result<Incoming> {
        loop {
            if let Some(incoming) = self.buffered()? {
                return Ok(incoming);
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        self.arrived.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.arrived).await? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
            _ => Ok(()),
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            self.read_more().await?;
        }
    }

    /// The line at the beginning of what has arrived. What was looked through before is not looked at again: a list of a
    /// hundred thousand sessions is one line.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.arrived[self.looked_through..].iter().position(|byte| *byte == b'\n') else {
            self.looked_through = self.arrived.len();
            return None;
        };
        let end = self.looked_through + end;
        self.looked_through = 0;
        Some(self.arrived.drain(..=end).collect())
    }

    fn buffered(&mut self) -> io::Result<Option<Incoming>> {
        let Some(first) = self.arrived.first() else { return Ok(None) };
        if *first == b'{' {
            let Some(line) = self.take_line() else { return Ok(None) };
            // pushes have their kind first; anything else with an id is an answer
            let incoming = if line.starts_with(b"{\"push\"") {
                match serde_json::from_slice(&line) {
                    Ok(push) => Incoming::Push(push),
                    // a newer daemon's push: not for us. One that we know must not be missed
                    Err(error) if error.to_string().starts_with("unknown variant") => return self.buffered(),
                    Err(error) => return Err(error.into()),
                }
            } else {
                Incoming::Answer(serde_json::from_slice(&line)?)
            };
            return Ok(Some(incoming));
        }
        let frame = frame::decode(&self.arrived).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let Some(frame) = frame else { return Ok(None) };
        if frame.kind != OUTPUT {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an unknown kind of frame"));
        }
        let (bytes, size) = (frame.payload.to_vec(), frame.size);
        self.arrived.drain(..size);
        Ok(Some(Incoming::Output(bytes)))
    }
}

/// The id of a call that travelled with the hello.
pub const FIRST: u64 = 1;

/// A request that does not fit into a line of the protocol. Nothing of it was sent.
#[derive(Debug, thiserror::Error)]
#[error("the request is too large: it has {bytes} bytes, at most {MAX_LINE} can be sent{largest}")]
struct TooLarge {
    bytes: usize,
    /// The part that takes most of it, as words.
    largest: String,
}

/// The refusal behind an error of [`Client::send`] that is not about the connection.
pub fn refusal_of(error: &io::Error) -> Option<Failure> {
    let too_large = error.get_ref()?.downcast_ref::<TooLarge>()?;
    Some(Failure::usage(too_large.to_string()))
}

/// A call as it is sent. The daemon closes connections with longer lines, so those are not begun.
fn call_line(id: u64, request: Request) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Call { id, request })?;
    if line.len() > MAX_LINE {
        let value: serde_json::Value = serde_json::from_slice(&line)?;
        let (bytes, path) = largest_text(&value);
        let largest = if path.is_empty() { String::new() } else { format!("; `{}` has {bytes}", path.join(".")) };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, TooLarge { bytes: line.len(), largest }));
    }
    line.push(b'\n');
    Ok(line)
}

/// The longest text in a JSON value, and the names that lead to it.
fn largest_text(value: &serde_json::Value) -> (usize, Vec<String>) {
    let below = |name: String, value: &serde_json::Value| {
        let (bytes, mut path) = largest_text(value);
        path.insert(0, name);
        (bytes, path)
    };
    let parts: Vec<(usize, Vec<String>)> = match value {
        serde_json::Value::String(text) => return (text.len(), Vec::new()),
        serde_json::Value::Array(items) => items.iter().enumerate().map(|(at, item)| below(at.to_string(), item)).collect(),
        serde_json::Value::Object(fields) => fields.iter().map(|(name, field)| below(name.clone(), field)).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().max_by_key(|(bytes, _)| *bytes).unwrap_or_default()
}

#[expect(clippy::needless_pass_by_value, reason = "the form map_err wants")]
fn lost(error: io::Error) -> Failure {
    if let Some(refusal) = refusal_of(&error) {
        return refusal;
    }
    Failure::new(
        Code::Failed,
        format!(
            "the daemon went away before it answered ({error}): whether this was carried out is not known, so look before you repeat it; sessions go on"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_too_large_is_named() {
        let request = Request::Show { name: "x".repeat(MAX_LINE) };
        let error = call_line(7, request).expect_err("too large");
        let failure = refusal_of(&error).expect("a refusal");
        assert!(failure.code == Code::Usage && failure.message.contains("at most 8388608"), "{failure}");
        assert!(failure.message.contains("name` has 8388608"), "{failure}");
        assert!(refusal_of(&io::ErrorKind::BrokenPipe.into()).is_none());
    }
}
