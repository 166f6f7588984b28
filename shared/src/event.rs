//! An event: a numbered fact about a session.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Seq, SessionId, ThreadId};

/// Who caused it; said by the daemon, never by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number over all sessions: what a subscriber says it has seen.
    pub seq: Seq,
    /// Its number within its session, from 1, without a gap.
    #[serde(default)]
    pub n: u64,
    pub session: SessionId,
    pub thread: ThreadId,
    /// Its thread's name.
    pub name: String,
    pub at: Timestamp,
    pub author: Author,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub data: serde_json::Value,
}

/// Types that only the daemon tells, each with what to use instead. A caller's own types are any others.
pub const RESERVED: &[(&str, &str)] = &[
    ("start", "new"),
    ("queued", "new --queue"),
    ("iteration", "iterate"),
    ("tool_call", "tool-call"),
    ("learning", "learn"),
    ("context", "context --set"),
    ("pause", "pause"),
    ("resume", "resume"),
    ("complete", "complete"),
    ("error", "fail"),
    ("reset", "reset"),
    ("renamed", "rename"),
    ("task", "new --task"),
    ("policy", "new --idle-timeout"),
    ("test", "webhook test"),
    ("timeout", ""),
    ("attach", ""),
    ("detach", ""),
    ("control", ""),
    ("exit", ""),
    ("lost", ""),
    ("recording_gap", ""),
    ("restore_failed", ""),
    ("restored", ""),
    ("hibernate", ""),
    ("status", ""),
    ("bell", ""),
    ("notification", ""),
    ("notified", ""),
    ("watch", "new --watch"),
    ("file_changed", ""),
    ("exec_started", ""),
    ("exec_finished", ""),
    ("forgotten", "forget"),
    ("recording_suspended", ""),
    ("recording_resumed", ""),
];

/// Long enough for `vendor.subsystem.what_happened`.
const MAX_TYPE: usize = 64;

/// Whether a caller may use this type; the error says what to do instead.
pub fn check_type(kind: &str) -> Result<(), String> {
    if let Some((_, verb)) = RESERVED.iter().find(|(name, _)| *name == kind) {
        return Err(if verb.is_empty() {
            format!("an event of type {kind} is only told by the daemon: choose another type")
        } else {
            format!("an event of type {kind} is told by `sessions-tui {verb}`: use that, or choose another type")
        });
    }
    if !is_type(kind) {
        return Err(format!(
            "{:?} cannot be an event's type: use letters, digits and _ - . : (at most {MAX_TYPE})",
            crate::text::fit(kind, MAX_TYPE)
        ));
    }
    Ok(())
}

/// Whether any event can have this type.
pub fn is_type(kind: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() && !crate::text::is_unsafe(c) || matches!(c, '_' | '-' | '.' | ':');
    !kind.is_empty() && kind.chars().count() <= MAX_TYPE && kind.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_callers_are_words_of_their_own() {
        for kind in ["deployed", "ci.build-2", "größe", "notify"] {
            check_type(kind).expect(kind);
        }
        for kind in ["", "two words", "a\x1b", "a\u{3164}", &"x".repeat(65)] {
            assert!(check_type(kind).is_err(), "{kind:?}");
        }
        assert!(check_type("complete").expect_err("ours").contains("sessions-tui complete"));
        assert!(check_type("timeout").expect_err("ours").contains("daemon"));
    }
}
