//! The recording as the holder has it: working, or suspended with a reason and tried again. Nothing here speaks to anybody.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use shared::id::Offset;
use shared::runtime::Keeps;
use shared::screen::Size;

use crate::recording::{Writer, kind};

/// A full disk is tried again this often.
const RETRY: Duration = Duration::from_secs(1);

/// Said of a recording that has no output because nobody wanted it.
const NOT_WANTED: &str = "it was started with --no-record";

/// Where a recording goes.
pub struct Place {
    pub dir: PathBuf,
    pub runtime: String,
    /// Wall clock at time 0, in microseconds since 1970.
    pub began_at: i64,
    pub max_bytes: u64,
}

pub struct Recorder {
    place: Place,
    keeps: Keeps,
    state: State,
}

/// The recording, or the reason why there is none now.
enum State {
    Recording(Writer),
    Suspended { writer: Option<Writer>, why: String, lost: u64, retry_at: Instant },
}

/// What became of a frame.
pub enum Outcome {
    Recorded,
    /// Recorded, and so is everything from now on.
    Resumed,
    /// Not recorded, nor what follows, because of this.
    Suspended(String),
    NotRecorded,
}

impl Recorder {
    pub fn create(place: Place, size: Size, keeps: Keeps) -> Self {
        let state = match place.create(size) {
            Ok(writer) => State::Recording(writer),
            Err(error) => State::Suspended { writer: None, why: error.to_string(), lost: 0, retry_at: Instant::now() },
        };
        Self { place, keeps, state }
    }

    pub fn keeps(&self) -> Keeps {
        self.keeps
    }

    /// Where the next frame will begin.
    pub fn end(&self) -> Offset {
        match &self.state {
            State::Recording(writer) | State::Suspended { writer: Some(writer), .. } => writer.end(),
            State::Suspended { writer: None, .. } => 0,
        }
    }

    pub fn why_suspended(&self) -> Option<String> {
        match &self.state {
            State::Suspended { why, .. } => Some(why.clone()),
            State::Recording(_) => (self.keeps == Keeps::Nothing).then(|| NOT_WANTED.to_owned()),
        }
    }

    /// When a suspended recording is to be tried again, also if there is nothing to write.
    pub fn retry_at(&self) -> Option<Instant> {
        match &self.state {
            State::Suspended { retry_at, .. } => Some(*retry_at),
            State::Recording(_) => None,
        }
    }

    pub fn append(&mut self, frame_kind: u8, time: u64, size: Size, body: &[u8]) -> Outcome {
        let is_output = matches!(frame_kind, kind::OUTPUT | kind::STDOUT | kind::STDERR | kind::LATE_STDOUT | kind::LATE_STDERR);
        if is_output && self.keeps == Keeps::Nothing {
            return Outcome::NotRecorded;
        }
        let output = if is_output { body.len() as u64 } else { 0 };
        match &mut self.state {
            State::Recording(writer) => match writer.append(frame_kind, time, size, body) {
                Ok(()) => Outcome::Recorded,
                Err(error) => self.suspend(&error, output),
            },
            State::Suspended { .. } => {
                if self.resume(time, size) && self.append_resumed(frame_kind, time, size, body) {
                    return Outcome::Resumed;
                }
                if let State::Suspended { lost, .. } = &mut self.state {
                    *lost += output;
                }
                Outcome::NotRecorded
            }
        }
    }

    fn append_resumed(&mut self, frame_kind: u8, time: u64, size: Size, body: &[u8]) -> bool {
        let State::Recording(writer) = &mut self.state else { return false };
        match writer.append(frame_kind, time, size, body) {
            Ok(()) => true,
            Err(error) => {
                self.suspend(&error, 0);
                false
            }
        }
    }

    /// Goes on with a suspended recording if it is time to try and there is room; what is missing is said in it.
    pub fn resume(&mut self, time: u64, size: Size) -> bool {
        let State::Suspended { writer, lost, retry_at, .. } = &mut self.state else { return false };
        if Instant::now() < *retry_at {
            return false;
        }
        *retry_at = Instant::now() + RETRY;
        if writer.is_none() {
            *writer = self.place.create(size).ok();
        }
        let gap = lost.to_le_bytes();
        if writer.as_mut().is_none_or(|writer| writer.append(kind::GAP, time, size, &gap).is_err()) {
            return false;
        }
        if let Some(writer) = writer.take() {
            self.state = State::Recording(writer);
        }
        true
    }

    /// Takes away what was recorded so far.
    pub fn forget(&mut self, time: u64, size: Size) -> io::Result<()> {
        match &mut self.state {
            State::Recording(writer) | State::Suspended { writer: Some(writer), .. } => writer.forget(time, size),
            State::Suspended { writer: None, .. } => Ok(()),
        }
    }

    fn suspend(&mut self, error: &io::Error, lost: u64) -> Outcome {
        let why = error.to_string();
        let suspended = State::Suspended { writer: None, why: why.clone(), lost, retry_at: Instant::now() + RETRY };
        if let State::Recording(working) = std::mem::replace(&mut self.state, suspended)
            && let State::Suspended { writer, .. } = &mut self.state
        {
            *writer = Some(working);
        }
        Outcome::Suspended(why)
    }
}

impl Place {
    fn create(&self, size: Size) -> io::Result<Writer> {
        Writer::create(&self.dir, self.runtime.clone(), self.began_at, size, self.max_bytes)
    }
}
