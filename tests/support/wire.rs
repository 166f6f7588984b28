//! The sockets without our client: JSON lines, frames, and rubbish.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use super::PATIENCE;

pub struct Wire {
    stream: UnixStream,
    arrived: Vec<u8>,
    /// No line ends before this: long ones come in many parts.
    looked: usize,
}

impl Wire {
    #[track_caller]
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time limit");
        Self { stream, arrived: Vec::new(), looked: 0 }
    }

    /// Connects to a daemon and says hello.
    #[track_caller]
    pub fn greeted(socket: &Path) -> Self {
        let mut wire = Self::connect(socket);
        wire.say(&json!({"hello": {"protocol": 1, "version": "test", "pid": std::process::id()}}));
        let hello = wire.line().expect("a hello");
        assert!(hello["hello"]["pid"].is_u64(), "{hello}");
        wire
    }

    /// As [`Self::greeted`], for a daemon that may not be there, or may be gone in the middle of it.
    pub fn try_greeted(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut wire = Self { stream, arrived: Vec::new(), looked: 0 };
        let hello = json!({"hello": {"protocol": 1, "version": "test", "pid": std::process::id()}});
        wire.write(format!("{hello}\n").as_bytes()).ok()?;
        wire.line()?;
        Some(wire)
    }

    /// As [`Self::call`]; `None` when the other side went away before it answered.
    pub fn try_call(&mut self, id: u64, mut request: Value) -> Option<Value> {
        request["id"] = json!(id);
        self.write(format!("{request}\n").as_bytes()).ok()?;
        loop {
            let line = self.line()?;
            if line["id"] == json!(id) {
                return Some(line);
            }
        }
    }

    #[track_caller]
    pub fn say(&mut self, value: &Value) {
        self.write(format!("{value}\n").as_bytes()).expect("the other side listens");
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next line, passing over frames; `None` when the other side has closed.
    pub fn line(&mut self) -> Option<Value> {
        loop {
            if self.arrived.first() == Some(&b'{') {
                if let Some(end) = self.arrived[self.looked..].iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.arrived.drain(..=self.looked + end).collect();
                    self.looked = 0;
                    return Some(serde_json::from_slice(&line).expect("a JSON line"));
                }
                self.looked = self.arrived.len();
            } else if let Some(size) = frame_size(&self.arrived) {
                self.arrived.drain(..size);
                continue;
            }
            if !self.receive() {
                return None;
            }
        }
    }

    /// A call and its answer.
    #[track_caller]
    pub fn call(&mut self, id: u64, mut request: Value) -> Value {
        request["id"] = json!(id);
        self.say(&request);
        loop {
            let line = self.line().expect("an answer");
            if line["id"] == json!(id) || line["id"] == json!(0) {
                return line;
            }
        }
    }

    /// Reads until the other side closes.
    #[track_caller]
    pub fn wait_closed(mut self) {
        while self.receive() {}
    }

    #[track_caller]
    fn receive(&mut self) -> bool {
        let mut chunk = vec![0; 64 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => false,
            Ok(n) => {
                self.arrived.extend_from_slice(&chunk[..n]);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            // a read with a time limit is not taken up again by itself after a signal
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => panic!("nothing was said for {PATIENCE:?}: {error}"),
        }
    }
}

fn frame_size(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<5>()?;
    let size = 5 + u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    (bytes.len() >= size).then_some(size)
}

/// A frame as both sockets use them.
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&u32::try_from(payload.len()).expect("a short payload").to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}
