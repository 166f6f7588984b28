//! A command that was typed into a shell, as the shell told of it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Author;
use crate::id::{Offset, RuntimeId, SessionId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    pub command: String,
    /// Where it was typed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration: Option<f64>,
    pub started_at: Timestamp,
    /// It has not ended yet.
    pub running: bool,
    /// Who typed it, if the daemon saw that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
    pub session: SessionId,
    /// Where it is in this runtime's recording.
    pub runtime: RuntimeId,
    pub start_offset: Offset,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end_offset: Option<Offset>,
}
