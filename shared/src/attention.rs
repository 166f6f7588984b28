//! Attention: whether a session needs a person, and why that is thought.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In the order in which people want to hear of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    WaitingApproval,
    WaitingAnswer,
    Stuck,
    /// Something has ended that nobody has looked at since.
    DoneUnseen,
    Working,
    Idle,
    /// Nothing has said anything that could be relied on.
    Unknown,
}

impl Attention {
    pub const ALL: [Self; 7] =
        [Self::WaitingApproval, Self::WaitingAnswer, Self::Stuck, Self::DoneUnseen, Self::Working, Self::Idle, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::WaitingApproval => "waiting_approval",
            Self::WaitingAnswer => "waiting_answer",
            Self::Stuck => "stuck",
            Self::DoneUnseen => "done_unseen",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Somebody should look.
    pub fn needs_someone(self) -> bool {
        matches!(self, Self::WaitingApproval | Self::WaitingAnswer | Self::Stuck | Self::DoneUnseen)
    }
}

impl fmt::Display for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is thought of a session, and on which evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    pub state: Attention,
    pub since: Timestamp,
    /// For a person, in one line: the question that was asked, or what was seen.
    pub why: String,
}

/// A piece of evidence: what it says by itself, how much that counts, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clue {
    /// Which signal it is.
    pub source: String,
    /// From 100 down: the strongest counts.
    pub weight: u8,
    pub state: Attention,
    pub at: Timestamp,
    pub text: String,
    pub changes: String,
    /// Why it does not count, if so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ignored: Option<String>,
    /// It is the one that decided.
    pub decides: bool,
}

/// Why a session is thought to be in its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    pub session: crate::id::SessionId,
    pub name: String,
    pub state: Attention,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<Timestamp>,
    pub why: String,
    /// The agent that is known to be in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<String>,
    /// The strongest first.
    pub evidence: Vec<Clue>,
    pub would_change: Vec<String>,
}
