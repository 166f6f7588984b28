//! What many sessions come to, and what stays of those that were cleaned up.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, ThreadId};
use crate::session::Status;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    pub total: u64,
    pub by_status: BTreeMap<String, u64>,
    pub by_mode: BTreeMap<String, u64>,
    /// Completed ÷ (completed + failed + timeout); `ended` ones, which were ended on request, do not count. None while there is none.
    pub success_rate: Option<f64>,
    pub average_iterations: Option<f64>,
    /// From start to end, of those that have ended.
    pub average_duration_ms: Option<f64>,
    pub p95_duration_ms: Option<u64>,
    pub execs: u64,
    pub recorded_bytes: u64,
    pub cost: f64,
    pub tokens: Tokens,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub prompt: u64,
    pub completion: u64,
    pub total: u64,
}

/// What recordings take on disk, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    pub total: DiskUse,
    /// Of all recordings together; none: no limit.
    pub limit: Option<u64>,
    /// Free where they are kept.
    pub free: Option<u64>,
    pub sessions: Vec<SessionDisk>,
    /// Folders of no session that is known.
    pub unknown: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// All of it.
    pub bytes: u64,
    /// As it was written.
    pub plain: u64,
    /// In small.
    pub packed: u64,
    /// What makes seeking quick: keyframes and indexes.
    pub index: u64,
}

impl DiskUse {
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.plain += other.plain;
        self.packed += other.packed;
        self.index += other.index;
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDisk {
    pub session: SessionId,
    pub name: String,
    pub status: Status,
    #[serde(flatten)]
    pub disk: DiskUse,
}

/// What a cleanup did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cleaned {
    pub dry_run: bool,
    /// Sessions that went, or would go; the first of them.
    pub sessions: Vec<AuditLine>,
    pub count: u64,
    /// Bytes on disk of their recordings.
    pub bytes: u64,
    /// Audit lines that went, when asked for.
    pub audit: u64,
    /// Why some were kept that should have gone: their recordings could not be removed.
    #[serde(default)]
    pub kept: Vec<String>,
    /// More are left: ask again.
    pub more: bool,
}

/// The line that stays of a session when its record goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditLine {
    pub id: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub workspace: String,
    pub created_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub task_count: u64,
    pub status: Status,
    pub status_reason: Option<String>,
    /// When its record was cleaned up; none while it is still there.
    pub removed_at: Option<Timestamp>,
}

/// A group of sessions of which only so many run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    pub name: String,
    pub limit: u64,
    /// Where the limit comes from.
    pub source: LimitSource,
    pub running: u64,
    pub queued: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    /// Nobody has said: one at a time.
    Default,
    Config,
    /// `group set`.
    Command,
}
