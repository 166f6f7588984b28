//! An agent in a session: which one it is, and which of its conversations it has.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RuntimeId, SessionId};

/// What is known of an agent's conversation: enough to go on with it by the agent's own command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// As in its manifest.
    pub agent: String,
    /// The agent's own id of it, not one of ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transcript: Option<String>,
    /// Something was asked in it: before that there is nothing to go on with.
    #[serde(default)]
    pub prompted: bool,
    pub id_source: IdSource,
    pub bound_at: Timestamp,
    /// The agent said that it has ended.
    #[serde(default)]
    pub ended: bool,
}

/// Where the id of a conversation is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdSource {
    /// Nothing has told it.
    None,
    /// The command that started it names it.
    Launch,
    Hook,
}

/// How an agent would be started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgentResume")]
pub struct Resume {
    pub argv: Vec<String>,
    /// What that does, for a person.
    pub says: String,
    /// The conversation goes on.
    pub continues: bool,
    /// Flags of the first launch that lift its limits: left out unless a person says otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub withheld: Vec<String>,
}

/// What an agent's hook was called with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime: Option<RuntimeId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<SessionId>,
    #[serde(default)]
    pub payload: Value,
    pub at: Timestamp,
}

/// An agent that is known, for whoever sets up its hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownAgent {
    pub name: String,
    pub aliases: Vec<String>,
    pub title: String,
    pub install: Option<Install>,
}

/// Where an agent's hooks are set up, and in which form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    pub format: InstallFormat,
    /// `~` is the user's home.
    pub file: String,
    /// A variable that says where its folder is, if it is set.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub folder_variable: Option<String>,
    pub events: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstallFormat {
    /// `hooks.EVENT[].hooks[].command`, timeouts in seconds.
    Claude,
    /// The same, timeouts in milliseconds.
    Gemini,
}
