//! The recording as the holder has it: working, or suspended with a reason and tried again. Nothing here speaks to anybody.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use shared::id::Offset;
use shared::screen::Size;

use crate::recording::{Writer, kind};

/// A full disk is tried again this often, when there is something to write.
const RETRY: Duration = Duration::from_secs(1);

/// The recording, or the reason why there is none now.
pub enum Recorder {
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
    pub fn create(dir: &Path, runtime: String, began_at: i64, size: Size, max_bytes: u64) -> Self {
        match Writer::create(dir, runtime, began_at, size, max_bytes) {
            Ok(writer) => Self::Recording(writer),
            Err(error) => Self::Suspended { writer: None, why: error.to_string(), lost: 0, retry_at: Instant::now() },
        }
    }

    /// Where the next frame will begin.
    pub fn end(&self) -> Offset {
        match self {
            Self::Recording(writer) | Self::Suspended { writer: Some(writer), .. } => writer.end(),
            Self::Suspended { writer: None, .. } => 0,
        }
    }

    pub fn why_suspended(&self) -> Option<String> {
        match self {
            Self::Recording(_) => None,
            Self::Suspended { why, .. } => Some(why.clone()),
        }
    }

    pub fn append(&mut self, frame_kind: u8, time: u64, size: Size, body: &[u8]) -> Outcome {
        let is_output = matches!(frame_kind, kind::OUTPUT | kind::STDOUT | kind::STDERR);
        let output = if is_output { body.len() as u64 } else { 0 };
        match self {
            Self::Recording(writer) => match writer.append(frame_kind, time, size, body) {
                Ok(()) => Outcome::Recorded,
                Err(error) => self.suspend(&error, output),
            },
            Self::Suspended { writer, lost, retry_at, .. } => {
                let gap = lost.to_le_bytes();
                let now = Instant::now();
                let resumed = now >= *retry_at
                    && writer.as_mut().is_some_and(|writer| {
                        writer.append(kind::GAP, time, size, &gap).and_then(|()| writer.append(frame_kind, time, size, body)).is_ok()
                    });
                if resumed {
                    if let Some(writer) = writer.take() {
                        *self = Self::Recording(writer);
                    }
                    return Outcome::Resumed;
                }
                if now >= *retry_at {
                    *retry_at = now + RETRY;
                }
                *lost += output;
                Outcome::NotRecorded
            }
        }
    }

    fn suspend(&mut self, error: &io::Error, lost: u64) -> Outcome {
        let why = error.to_string();
        let suspended = Self::Suspended { writer: None, why: why.clone(), lost, retry_at: Instant::now() + RETRY };
        if let Self::Recording(working) = std::mem::replace(self, suspended)
            && let Self::Suspended { writer, .. } = self
        {
            *writer = Some(working);
        }
        Outcome::Suspended(why)
    }
}
