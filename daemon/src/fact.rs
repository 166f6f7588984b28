//! What is stored about a session's life: an event, and how a session ends. Plain data: no rules, no SQL.

use std::borrow::Cow;

use shared::event::Author;
use shared::id::SessionId;
use shared::session::Status;

/// An event that is stored with the change it tells of.
pub struct Fact {
    pub session: SessionId,
    pub author: Author,
    pub kind: Cow<'static, str>,
    pub data: serde_json::Value,
}

impl Fact {
    pub fn new(session: SessionId, author: Author, kind: impl Into<Cow<'static, str>>, data: serde_json::Value) -> Self {
        Self { session, author, kind: kind.into(), data }
    }
}

/// How a session ends when its program does.
pub struct Ending {
    pub status: Status,
    pub reason: String,
    pub error: Option<String>,
    pub last_activity_at: jiff::Timestamp,
}
