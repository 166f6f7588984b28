//! What a person has seen.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, params};
use serde_json::json;
use shared::attention::Attention;
use shared::event::Author;
use shared::id::SessionId;

use super::{Durability, Fact, Result, StoreHandle, micros};

impl StoreHandle {
    /// Which of these are there.
    pub async fn known_sessions(&self, asked: Vec<SessionId>) -> Result<HashSet<SessionId>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?;
            let mut known = HashSet::with_capacity(asked.len());
            for session in asked {
                if statement.exists([session.to_string()])? {
                    known.insert(session);
                }
            }
            Ok(known)
        })
        .await
    }

    /// Somebody has looked at it now. If it was news that it has ended, others are told that it no longer is.
    pub async fn seen(&self, session: SessionId) -> Result<()> {
        self.see(session, true).await
    }

    /// Whoever ends or brings it knows of it: it is never news.
    pub async fn known(&self, session: SessionId) -> Result<()> {
        self.see(session, false).await
    }

    /// What it asked until now was answered or dismissed.
    pub async fn answered(&self, session: SessionId) -> Result<()> {
        let now = jiff::Timestamp::now();
        self.write_beside(Durability::Process, move |change| {
            match change.execute("UPDATE sessions SET answered_at = ?2 WHERE id = ?1", params![session.to_string(), micros(now)])? {
                0 => Err(super::Error::Gone),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn see(&self, session: SessionId, tells: bool) -> Result<()> {
        let now = jiff::Timestamp::now();
        self.write_beside(Durability::Process, move |change| {
            let id = session.to_string();
            let was_news: Option<bool> = change
                .query_row("SELECT ended_at IS NOT NULL AND coalesce(seen_at, 0) < ended_at FROM sessions WHERE id = ?1", [&id], |row| {
                    row.get(0)
                })
                .optional()?;
            let Some(was_news) = was_news else { return Err(super::Error::Gone) };
            change.execute("UPDATE sessions SET seen_at = ?2 WHERE id = ?1", params![id, micros(now)])?;
            if was_news && tells {
                let data = json!({"state": Attention::Unknown, "was": Attention::DoneUnseen, "why": "somebody has looked"});
                change.tell(Fact::new(session, Author::Daemon, "status", data))?;
            }
            Ok(())
        })
        .await
    }
}
