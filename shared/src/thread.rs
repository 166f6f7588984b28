//! A thread: a durable line of work, named by a user.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ThreadId;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    pub id: ThreadId,
    pub name: String,
    pub workspace: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
    pub created_at: Timestamp,
    /// How many sessions this thread has had.
    pub task_count: u64,
}
