//! A session: one policy window on a thread, and the row a user sees in `ls`.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attention::Needs;
use crate::exec::Language;
use crate::id::{RuntimeId, SessionId, ThreadId};
use crate::policy::Policy;
use crate::runtime::{LostReason, RuntimeState};
use crate::screen::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Active,
    Paused,
    Completed,
    Failed,
    Timeout,
    /// A person, a script or a reset ended it: neither a success nor a failure.
    Ended,
}

impl Status {
    pub const ALL: [Self; 7] = [Self::Queued, Self::Active, Self::Paused, Self::Completed, Self::Failed, Self::Timeout, Self::Ended];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Ended => "ended",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// `queued`, `active` or `paused`: the session its thread stands at.
    pub fn is_live(self) -> bool {
        !self.has_ended()
    }

    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Timeout | Self::Ended)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Reasons of a `timeout`.
pub const ITERATIONS: &str = "iterations";
pub const IDLE: &str = "idle";
pub const DURATION: &str = "duration";

/// Reason of a `failed` whose program is gone without having said how.
pub const LOST: &str = "lost";

/// Why a session has ended of which only the recording was left.
pub const FOUND: &str = "found";

/// Why a session is paused whose processes were ended to free their memory, and why they were.
pub const HIBERNATED: &str = "hibernated";

/// Why a session is active that came in the place of one that was lost.
pub const RESTORED: &str = "restored";

/// The budget of a session when none is asked for.
pub const DEFAULT_ITERATIONS: u64 = 50;

/// Everything about one session that a client can see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: SessionId,
    pub thread: ThreadId,
    /// The thread's name: what people call the session.
    pub name: String,
    pub workspace: String,
    pub user: Option<String>,
    pub channel: Option<String>,
    pub mode: Option<String>,
    pub task: Option<String>,
    pub status: Status,
    pub status_reason: Option<String>,
    pub created_at: Timestamp,
    /// Rises with each session that is created, also when the clock is set back.
    #[serde(default)]
    pub number: u64,
    pub updated_at: Timestamp,
    pub last_activity_at: Timestamp,
    /// When it became active first.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub iterations: u64,
    pub max_iterations: u64,
    pub context: serde_json::Value,
    pub result: Option<String>,
    pub error: Option<String>,
    pub metadata: serde_json::Value,
    pub policy: Policy,
    /// Tasks given to its thread so far.
    pub task_count: u64,
    /// The group it counts in, if it does.
    #[serde(default)]
    pub group: Option<String>,
    /// Its place in the queue of its group, from 1, while it is queued.
    #[serde(default)]
    pub queue_place: Option<u64>,
    /// The terminal's program, as started.
    pub command: Vec<String>,
    /// The runtime behind the session's terminal, once it has had one.
    pub runtime: Option<RuntimeId>,
    pub runtime_state: Option<RuntimeState>,
    pub size: Option<Size>,
    /// Interpreters that run for it.
    #[serde(default)]
    pub languages: Vec<Language>,
    /// Clients attached right now.
    pub clients: u32,
    /// Whether it needs a person.
    #[serde(default)]
    pub needs: Option<Needs>,
    /// It was lost, and `restore` starts its program again.
    #[serde(default)]
    pub restorable: bool,
    /// What of its record was damaged and had to be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// Why its holder cannot be reached, while it cannot: nothing can be asked of its program then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
}

impl Session {
    /// There is a terminal that one can attach to.
    pub fn has_live_program(&self) -> bool {
        self.runtime_state.as_ref().is_some_and(RuntimeState::is_live)
    }

    /// Neither its task nor its program goes on. A task may be completed while its program still runs: those are two things.
    pub fn is_over(&self) -> bool {
        self.status.has_ended() && !self.has_live_program()
    }

    /// Its program was ended to free its memory, and is started again when it is needed.
    pub fn is_hibernated(&self) -> bool {
        self.status == Status::Paused && matches!(self.runtime_state, Some(RuntimeState::Hibernated { .. }))
    }

    /// It ended because its program was lost when the machine was restarted.
    pub fn is_lost_with_machine(&self) -> bool {
        let went = matches!(self.runtime_state, Some(RuntimeState::Lost { reason: LostReason::MachineRestarted, .. }));
        went && self.status == Status::Failed && self.status_reason.as_deref() == Some(LOST)
    }

    /// `completed (exit code 0)`
    pub fn in_words(&self) -> String {
        match &self.status_reason {
            Some(reason) => format!("{} ({reason})", self.status),
            None => self.status.to_string(),
        }
    }
}
