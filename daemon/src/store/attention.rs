//! What a person has seen.

use std::collections::HashSet;

use rusqlite::params;
use shared::id::SessionId;

use super::{Durability, Result, StoreHandle, micros};

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

    /// Somebody has looked at it now.
    pub async fn seen(&self, session: SessionId) -> Result<()> {
        let now = jiff::Timestamp::now();
        self.write_beside(Durability::Process, move |change| {
            match change.execute("UPDATE sessions SET seen_at = ?2 WHERE id = ?1", params![session.to_string(), micros(now)])? {
                0 => Err(super::Error::Gone),
                _ => Ok(()),
            }
        })
        .await
    }
}
