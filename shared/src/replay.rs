//! The time machine on the wire: what a recording holds, a moment of it, and what comes after a moment.
//! A position is an offset (bytes since the beginning, always a frame's edge) with its time (microseconds since the beginning).
//! What came in one piece may be too much for one screen, so a moment may lie inside of a frame, too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::Language;
use crate::id::{Offset, RuntimeId, SessionId};
use crate::runtime::ExitStatus;
use crate::screen::Size;

/// Which recording is meant: of a session, of one of its interpreters, or exactly this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Of {
    pub name: String,
    pub language: Option<Language>,
    pub runtime: Option<RuntimeId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    pub offset: Offset,
    pub time: u64,
}

/// A recording from outside: enough to draw its timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outline {
    pub runtime: RuntimeId,
    pub session: SessionId,
    pub name: String,
    /// What it was called where it was imported from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// An interpreter's transcript; none: a program's terminal.
    pub language: Option<Language>,
    pub command: Vec<String>,
    /// Wall clock at time 0.
    pub began_at: jiff::Timestamp,
    /// The oldest and the latest that is there now.
    pub first: Position,
    pub end: Position,
    pub is_live: bool,
    /// Where things happened: never more than about a second apart while there was output, exactly at both ends of a pause.
    /// Coarser for recordings of many days.
    pub points: Vec<Position>,
    /// Two points that are at least this far apart have nothing between them: a pause of exactly that length. Microseconds.
    #[serde(default = "one_second")]
    pub grain: u64,
    /// In order of time.
    pub marks: Vec<Mark>,
    /// Oldest marks that were left off, because there are too many.
    #[serde(default)]
    pub marks_left_off: u64,
    /// Parts that were recorded and cannot be read any more, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<crate::runtime::Hole>,
}

fn one_second() -> u64 {
    1_000_000
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A command of a shell that marks them (OSC 133), or a call to an interpreter.
    Command,
    /// An event of the session.
    Event,
    /// What an imported recording had marked.
    Marker,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    pub time: u64,
    /// Known for what is in the recording itself; events have only their time.
    pub offset: Option<Offset>,
    pub kind: MarkKind,
    /// The command, or what happened; clean text on one line.
    pub text: String,
    /// Of a command that has ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// Microseconds until then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub took: Option<u64>,
}

/// Where to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum Seek {
    /// Exactly there: the last edge of a frame at or before this offset, and what the next frame has up to it.
    Offset {
        offset: Offset,
    },
    /// As it stood at this time.
    Time {
        time: u64,
    },
    /// The next edge after which something else is to be seen.
    NextChange {
        from: Offset,
    },
    /// The last edge before `from` at which something else was to be seen.
    PreviousChange {
        from: Offset,
    },
    End,
}

/// The screen at a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    pub at: Position,
    /// The screen is further than `at`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inside: Option<Inside>,
    /// `Keyframe::to_bytes` in base64: `Screen::restore` gives the screen.
    pub keyframe: String,
    /// Where the recording ends now.
    pub end: Offset,
    pub is_live: bool,
}

/// A place inside of the frame behind a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inside {
    pub offset: Offset,
    /// Bytes of the frame's output, as [`Records`] give it, that are on the screen already.
    pub drawn: usize,
}

/// What comes after a position, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Records {
    pub records: Vec<Record>,
    /// The last one there is now is among them, or was before.
    pub at_end: bool,
    pub is_live: bool,
    /// Where the recording ends now.
    pub end: Offset,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The position behind it.
    pub end: Offset,
    pub time: u64,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// Bytes for a screen, in base64: a program's as they were, an interpreter's calls and output drawn as a transcript.
    Output {
        base64: String,
    },
    Resize {
        size: Size,
    },
    /// So many bytes were not recorded here.
    Gap {
        bytes: u64,
        /// They were recorded, and cannot be read any more: a file is missing or damaged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_lost: bool,
    },
    /// What was typed, of a session that records that.
    Input {
        base64: String,
    },
    /// A mark of an imported recording.
    Marker {
        text: String,
    },
    /// A call to an interpreter begins: what follows until its end is drawn in `Output`.
    Call {
        code: String,
    },
    /// A call has ended.
    Result {
        exit_code: i32,
    },
    Exit {
        status: ExitStatus,
    },
}
