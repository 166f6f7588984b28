//! Sessions that were lost with the machine, and those that take their place.

use rusqlite::params;
use serde_json::json;
use shared::event::Author;
use shared::id::{RuntimeId, SessionId};
use shared::session::{LOST, RESTORED, Status};

use super::session::load;
use super::{Change, Durability, Error, Fact, New, Opened, Result, StoreHandle, broken};

/// What becomes of a session that is lost, beside being told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// Nothing by itself.
    Stays,
    /// It is started again when a person says so.
    Asked,
    /// It is started again, by this daemon or the next.
    Due,
}

impl AfterLoss {
    pub(super) fn stored(self) -> Option<&'static str> {
        match self {
            Self::Stays => None,
            Self::Asked => Some("asked"),
            Self::Due => Some("due"),
        }
    }
}

impl StoreHandle {
    /// Lost sessions that are to be started again, those without which others cannot go on first: in the order they were made.
    pub async fn to_restore(&self, also_asked: bool) -> Result<Vec<SessionId>> {
        self.read(move |connection| {
            let mut statement = connection
                .prepare("SELECT id FROM sessions WHERE restore = 'due' OR (?1 AND restore = 'asked') ORDER BY created_at, id")?;
            let ids: Vec<String> = statement.query_map([also_asked], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            ids.iter().map(|id| SessionId::parse(id).ok_or_else(|| broken("session id", id))).collect()
        })
        .await
    }

    /// Opens the session that takes the place of a lost one, with the launch of its program.
    pub async fn restore(&self, lost: SessionId, new: New, continues: RuntimeId) -> Result<Opened> {
        self.write(Durability::Power, move |change| {
            let (author, runtime) = (new.author, new.runtime);
            change.check_restorable(lost)?;
            let mut opened = change.open_session(new)?;
            let id = opened.session.id;
            if opened.launch.is_some() {
                change.continues(runtime, continues)?;
            }
            change
                .execute("UPDATE sessions SET status_reason = ?1 WHERE id = ?2 AND status = 'active'", params![RESTORED, id.to_string()])?;
            change.tell(Fact::new(id, author, "restored", json!({"from": lost})))?;
            opened.session = load(&change.sql, id)?;
            Ok(opened)
        })
        .await
    }

    /// It cannot be: that is said, and its record and recording stay.
    pub async fn could_not_restore(&self, lost: SessionId, why: String) -> Result<()> {
        self.write(Durability::Power, move |change| {
            let error = format!("could not be restored: {why}");
            change.execute("UPDATE sessions SET restore = NULL, error = ?1 WHERE id = ?2", params![error, lost.to_string()])?;
            change.tell(Fact::new(lost, Author::Daemon, "restore_failed", json!({"reason": why})))
        })
        .await
    }
}

impl Change<'_> {
    fn check_restorable(&self, lost: SessionId) -> Result<()> {
        let session = load(&self.sql, lost)?;
        if session.status != Status::Failed || session.status_reason.as_deref() != Some(LOST) {
            let what = session.in_words();
            return Err(Error::Refused(format!("cannot restore: session {} is {what}; only what was lost is restored", session.name)));
        }
        let later: bool = self.query_row(
            "SELECT EXISTS (SELECT 1 FROM sessions JOIN sessions AS later ON later.thread_id = sessions.thread_id
                WHERE sessions.id = ?1 AND (later.created_at, later.id) > (sessions.created_at, sessions.id))",
            [lost.to_string()],
            |row| row.get(0),
        )?;
        if later {
            return Err(Error::Refused(format!("cannot restore: a later session of {} has taken its place", session.name)));
        }
        Ok(())
    }

    /// Another session of its thread has been opened: there is nothing to restore any more.
    pub(super) fn forget_restoring(&mut self, thread: shared::id::ThreadId) -> Result<()> {
        self.execute("UPDATE sessions SET restore = NULL WHERE thread_id = ?1 AND restore IS NOT NULL", [thread.to_string()])?;
        Ok(())
    }
}
