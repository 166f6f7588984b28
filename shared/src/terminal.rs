//! A terminal: the durable state of one place to type in a thread.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{LeaseId, TerminalId};
use crate::screen::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalKind {
    Terminal,
    Bash,
    Python,
    Node,
}

impl TerminalKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Bash => "bash",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Terminal, Self::Bash, Self::Python, Self::Node].into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for TerminalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Terminal {
    pub id: TerminalId,
    pub kind: TerminalKind,
    pub cwd: String,
    /// What the user set beyond the environment the program was started from.
    pub env_delta: Vec<(String, String)>,
    pub size: Size,
    pub state_version: u64,
    pub lease: LeaseId,
}
