//! A runtime: the live process behind a terminal, from its launch to its end.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Offset, RuntimeId, TerminalId};
use crate::screen::Size;

/// Variables that say which session a program belongs to. Daemons and holders must not have them.
pub const MARKS: [&str; 3] = ["SESSIONS_RUNTIME", "SESSIONS_SESSION", "SESSIONS_THREAD"];

/// Carried by daemons and holders, whoever started them: they are nobody's children, also when a command inside a session
/// started the daemon and the kernel says otherwise.
pub const ROLE: &str = "SESSIONS_ROLE";

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

impl ExitStatus {
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {name}"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

/// The names people know; numbers are the same on Linux and macOS for these.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostReason {
    /// The holder was killed or crashed while the daemon watched.
    HolderDied,
    /// A starting daemon found neither the holder nor a recorded exit: a reboot, or kill -9 of all.
    HolderGone,
    /// As before, and the machine has been restarted meanwhile.
    MachineRestarted,
    /// The daemon died between storing the launch and starting its holder.
    NeverStarted,
}

impl LostReason {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::HolderDied => "lost: its holder was killed",
            Self::HolderGone => "lost: its holder was gone when the daemon started",
            Self::MachineRestarted => "lost: the machine was restarted",
            Self::NeverStarted => "lost: the daemon died before the program was started",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RuntimeState {
    Starting,
    Running {
        pid: u32,
    },
    /// Paused: everything of it stands still.
    Frozen {
        pid: u32,
        since: Timestamp,
    },
    /// Its processes were ended to free their memory; it is started again where it was when somebody needs it.
    Hibernated {
        since: Timestamp,
        /// Where its recording stood when it was asked to end: what it drew as it ended is not what one wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        screen_at: Option<Offset>,
    },
    Exited {
        status: ExitStatus,
        at: Timestamp,
    },
    Lost {
        reason: LostReason,
        at: Timestamp,
    },
    /// The program could not be started at all.
    Refused {
        error: String,
        at: Timestamp,
    },
}

impl RuntimeState {
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Starting | Self::Running { .. } | Self::Frozen { .. })
    }
}

/// Everything needed to start the program again; stored before its process exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    pub argv: Vec<String>,
    pub cwd: String,
    /// Variables the user asked for; the environment they came on top of is never stored.
    pub env_delta: Vec<(String, String)>,
    /// Variables of that environment which its terminal had taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_removed: Vec<String>,
    pub size: Size,
    #[serde(default, skip_serializing_if = "Keeps::is_output")]
    pub keeps: Keeps,
    /// The mask for new files it was asked for with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
}

/// What of a terminal is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// Nothing that was printed or typed.
    Nothing,
    #[default]
    Output,
    /// What is typed too, except where the terminal does not show it.
    OutputAndInput,
}

impl Keeps {
    pub fn is_output(&self) -> bool {
        *self == Self::Output
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    pub id: RuntimeId,
    pub terminal: TerminalId,
    pub launch: Launch,
    pub state: RuntimeState,
    pub holder_pid: Option<u32>,
    pub created_at: Timestamp,
    pub recording: Recording,
    /// The agent in it and its conversation, as far as known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<crate::agent::Conversation>,
    /// How that agent would be started again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resume: Option<crate::agent::Resume>,
}

/// What is kept of a runtime's output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    pub start: Offset,
    pub end: Offset,
    /// Bytes on disk.
    pub bytes: u64,
    /// Why nothing is being recorded now, if so.
    pub suspended: Option<String>,
    /// Parts that were recorded and cannot be read any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Hole>,
}

/// A part of a recording that is missing or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hole {
    pub offset: Offset,
    pub bytes: u64,
}
