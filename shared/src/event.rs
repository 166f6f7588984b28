//! An event: a numbered fact about a session.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{Seq, SessionId};

/// Who caused it; said by the daemon, never by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    Human,
    Agent,
    Api,
    Daemon,
}

impl Author {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Agent => "agent",
            Self::Api => "api",
            Self::Daemon => "daemon",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Human, Self::Agent, Self::Api, Self::Daemon].into_iter().find(|author| author.as_str() == text)
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: Seq,
    pub session: SessionId,
    /// The name its thread had when it was told.
    pub name: String,
    pub at: Timestamp,
    pub author: Author,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub data: serde_json::Value,
}
