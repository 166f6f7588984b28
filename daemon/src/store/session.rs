//! Sessions: listed and shown with the runtime behind their terminal.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rusqlite::{Connection, Row, params};
use shared::id::{RuntimeId, SessionId, ThreadId};
use shared::message::Filter;
use shared::runtime::{Launch, RuntimeState};
use shared::session::{Session, Status};

use super::{Durability, Error, Result, StoreHandle, broken, micros, timestamp};

/// Ended sessions stay in the plain `ls` for a day: long enough to see how last night's work went.
const RECENT_MICROS: i64 = 24 * 3600 * 1_000_000;

/// A session with its thread and its latest runtime.
const SELECT: &str = "
    SELECT sessions.id, thread_id, name, workspace, user, channel, mode, task, status, status_reason,
        sessions.created_at, updated_at, last_activity_at, ended_at, iterations, max_iterations, context, result, error, metadata,
        (SELECT count(*) FROM sessions AS every WHERE every.thread_id = sessions.thread_id),
        runtimes.id, runtimes.launch, runtimes.state
    FROM sessions JOIN threads ON threads.id = thread_id
    LEFT JOIN runtimes ON runtimes.id =
        (SELECT latest.id FROM runtimes AS latest WHERE latest.session_id = sessions.id ORDER BY latest.created_at DESC, latest.id DESC LIMIT 1)";

impl StoreHandle {
    pub async fn session(&self, id: SessionId) -> Result<Session> {
        self.read(move |connection| load(connection, id)).await
    }

    /// Newest last, as people read lists in a terminal.
    pub async fn sessions(&self, filter: Filter) -> Result<Arc<Vec<Session>>> {
        // counted before reading: a commit in between makes the copy old, never wrong
        let at = self.commits.load(Ordering::Acquire);
        if let Some(listed) = self.listed.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && listed.at == at
            && listed.filter == filter
        {
            return Ok(Arc::clone(&listed.sessions));
        }
        let wanted = filter.clone();
        let sessions = Arc::new(self.read(move |connection| list(connection, &wanted)).await?);
        let listed = super::Listed { at, filter, sessions: Arc::clone(&sessions) };
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(listed);
        Ok(sessions)
    }

    pub async fn earlier_sessions(&self, session: SessionId) -> Result<Vec<SessionId>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM sessions WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) AND id <> ?1
                 ORDER BY created_at DESC",
            )?;
            let ids: Vec<String> = statement.query_map([session.to_string()], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            Ok(ids.iter().filter_map(|id| SessionId::parse(id)).collect())
        })
        .await
    }

    /// Remembers when something last happened in it.
    pub async fn touch(&self, session: SessionId, at: jiff::Timestamp) -> Result<()> {
        self.write(Durability::Process, move |change| {
            change.sql.execute(
                "UPDATE sessions SET last_activity_at = max(last_activity_at, ?1) WHERE id = ?2",
                params![micros(at), session.to_string()],
            )?;
            Ok(())
        })
        .await
    }
}

pub(super) fn load(connection: &Connection, id: SessionId) -> Result<Session> {
    let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE sessions.id = ?1"))?;
    let mut rows = statement.query([id.to_string()])?;
    match rows.next()? {
        Some(row) => read(row),
        None => Err(Error::Gone),
    }
}

fn list(connection: &Connection, filter: &Filter) -> Result<Vec<Session>> {
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = serde_json::to_string(&statuses).map_err(|error| Error::Broken(error.to_string()))?;
    let oldest = if filter.all || !filter.statuses.is_empty() { i64::MIN } else { micros(jiff::Timestamp::now()) - RECENT_MICROS };
    let limit = filter.limit.map_or(-1, i64::from);
    let mut statement = connection.prepare_cached(&format!(
        "{SELECT}
         WHERE (?1 = '[]' OR status IN (SELECT value FROM json_each(?1)))
         AND (status IN ('queued', 'active', 'paused') OR ended_at IS NULL OR ended_at > ?2)
         AND (?4 OR NOT EXISTS (SELECT 1 FROM sessions AS later WHERE later.thread_id = sessions.thread_id
            AND (later.created_at, later.id) > (sessions.created_at, sessions.id)))
         ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT ?3"
    ))?;
    let mut rows = statement.query(params![statuses, oldest, limit, filter.all])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(read(row)?);
    }
    sessions.reverse();
    Ok(sessions)
}

fn read(row: &Row<'_>) -> Result<Session> {
    let (id, thread, status): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(8)?);
    let (context, metadata): (String, String) = (row.get(16)?, row.get(19)?);
    let runtime: Option<String> = row.get(21)?;
    let launch: Option<String> = row.get(22)?;
    let state: Option<String> = row.get(23)?;
    let launch: Option<Launch> = launch.map(|text| serde_json::from_str(&text).map_err(|_| broken("launch", &text))).transpose()?;
    let runtime_state: Option<RuntimeState> =
        state.map(|text| serde_json::from_str(&text).map_err(|_| broken("runtime state", &text))).transpose()?;
    Ok(Session {
        id: SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?,
        thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
        name: row.get(2)?,
        workspace: row.get(3)?,
        user: row.get(4)?,
        channel: row.get(5)?,
        mode: row.get(6)?,
        task: row.get(7)?,
        status: Status::parse(&status).ok_or_else(|| broken("status", &status))?,
        status_reason: row.get(9)?,
        created_at: timestamp(row.get(10)?),
        updated_at: timestamp(row.get(11)?),
        last_activity_at: timestamp(row.get(12)?),
        ended_at: row.get::<_, Option<i64>>(13)?.map(timestamp),
        iterations: row.get::<_, i64>(14)? as u64,
        max_iterations: row.get::<_, i64>(15)? as u64,
        context: serde_json::from_str(&context).map_err(|_| broken("context", &context))?,
        result: row.get(17)?,
        error: row.get(18)?,
        metadata: serde_json::from_str(&metadata).map_err(|_| broken("metadata", &metadata))?,
        task_count: row.get::<_, i64>(20)? as u64,
        runtime: runtime.as_deref().and_then(RuntimeId::parse),
        size: launch.as_ref().map(|launch| launch.size),
        command: launch.map(|launch| launch.argv).unwrap_or_default(),
        runtime_state,
        clients: 0,
    })
}
