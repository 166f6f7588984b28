//! Which sessions are meant: by `ls`, `stats`, `cleanup` and every other door.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::Status;

/// Everything that is given must agree. Nothing given: those that have not ended, and those that ended within the last
/// day; of each thread the latest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Filter {
    pub statuses: Vec<Status>,
    /// Every one, however long ago it ended, also those that were followed by another.
    pub all: bool,
    pub user: Option<String>,
    pub channel: Option<String>,
    pub mode: Option<String>,
    /// A thread's name.
    pub thread: Option<String>,
    pub workspace: Option<String>,
    pub group: Option<String>,
    pub created_after: Option<Timestamp>,
    pub created_before: Option<Timestamp>,
    /// In the task; upper and lower case are the same.
    pub text: Option<String>,
    pub limit: Option<u32>,
    pub order: Order,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The newest, of which the newest comes last, as people read lists in a terminal.
    #[default]
    NewestLast,
    NewestFirst,
    OldestFirst,
    /// By last activity, the most recent first.
    ActiveFirst,
}

impl Filter {
    /// Whether anything narrows it: then all sessions are searched, not only those of today.
    pub fn searches(&self) -> bool {
        let Self { statuses, all, user, channel, mode, thread, workspace, group, created_after, created_before, text, limit: _, order: _ } =
            self;
        *all || !statuses.is_empty()
            || [user, channel, mode, thread, workspace, group, text].into_iter().any(Option::is_some)
            || created_after.is_some()
            || created_before.is_some()
    }
}
