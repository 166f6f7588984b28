//! What a dashboard watches: how busy sessions are, what is on their screens now, and how much happened when.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::Language;
use crate::id::{Offset, SessionId};
use crate::session::Status;

/// Asks how some sessions are. Answered at once, or, with `wait_ms`, as soon as one of them has printed something beyond
/// `seen` (in all), or after that long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PulseOf {
    pub sessions: Vec<SessionId>,
    /// The sum of `output` in the last answer.
    pub seen: Option<u64>,
    pub wait_ms: Option<u64>,
}

/// How one session is right now. What cannot be known here is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pulse {
    pub session: SessionId,
    /// Bytes recorded by all its live runtimes: it grows as they print.
    pub output: u64,
    /// Processor time that the living processes of its tree have used, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// Resident memory of its tree.
    pub memory: Option<u64>,
    pub processes: Option<u32>,
    /// The command in the foreground of its terminal, as one line.
    pub foreground: Option<String>,
    /// The title its program has set, if any.
    pub title: Option<String>,
    /// Why its holder cannot be reached, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unreachable: Option<String>,
}

/// Asks for the screen of a session. Answered at once unless it is the same as at `after`: then when it is another, or
/// after `wait_ms` with nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    pub name: String,
    /// The transcript of this language's runtime instead of the program's screen.
    #[serde(default)]
    pub language: Option<Language>,
    #[serde(default)]
    pub after: Option<Offset>,
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

/// A screen as it is; looking changes neither who has control nor any size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sight {
    /// What to say as `after` next time.
    pub at: Offset,
    /// `Keyframe::to_bytes` in base64; none if it is still the same.
    pub keyframe: Option<String>,
    /// The program still runs.
    pub is_live: bool,
}

/// How much happened when, for charts. Days and hours are those of the daemon's time zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calendar {
    /// Sessions by the day they were made on, oldest first; days without any are there too.
    pub days: Vec<Day>,
    /// Events by day of the week (Monday first) and hour, within those days.
    pub hours: Vec<Vec<u64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Day {
    /// `2026-11-17`
    pub date: String,
    pub by_status: BTreeMap<String, u64>,
}

impl Day {
    pub fn total(&self) -> u64 {
        self.by_status.values().sum()
    }

    pub fn of(&self, status: Status) -> u64 {
        self.by_status.get(status.as_str()).copied().unwrap_or(0)
    }
}
