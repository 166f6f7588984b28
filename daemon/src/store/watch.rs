//! Files that changed in workspaces while sessions were active.

use rusqlite::{OptionalExtension, params};
use serde_json::json;
use shared::event::Author;
use shared::id::SessionId;
use shared::watch::{ChangedFile, FileChange, WatchMode};

use super::{Durability, Fact, Result, StoreHandle, broken, micros, timestamp};
use crate::clock::Steady;

/// An active session, as far as its files are concerned.
#[derive(Clone, Debug)]
pub struct Watched {
    pub session: SessionId,
    pub workspace: String,
    pub mode: Option<WatchMode>,
    /// When it became active; none: it is so no more.
    pub active_since: Option<Steady>,
    /// Up to when its changes are known.
    pub until: Option<jiff::Timestamp>,
}

/// Changes of files, told as one.
#[derive(Clone, Debug)]
pub struct Burst {
    pub files: Vec<(String, FileChange, jiff::Timestamp)>,
    /// Created, changed, removed; also those that are not named.
    pub counts: [u64; 3],
    /// Events were lost on the way: there may have been more.
    pub missed: bool,
    pub until: jiff::Timestamp,
}

/// Paths in one event; the table has them all.
const NAMED_IN_EVENT: usize = 20;

/// Paths kept for one session: beyond, only those that are known already are kept up to date.
const MOST_PATHS: i64 = 20_000;

/// Shells tell by what they print that a command begins, which is read a little later.
const READ_WITHIN: jiff::SignedDuration = jiff::SignedDuration::from_millis(250);

/// The end of one and the beginning of the next may be read together, which takes no longer than this; then the next has already done
/// something, perhaps for as long as the other.
const READ_TOGETHER: jiff::SignedDuration = jiff::SignedDuration::from_millis(5);
const AHEAD: jiff::SignedDuration = jiff::SignedDuration::from_millis(20);

/// What ran last in a session.
pub struct LastCommand {
    pub text: String,
    pub began_at: jiff::Timestamp,
    /// What it has done is not older than this; what others did before it, as far as can be told, is. By the clock of file times.
    pub since: jiff::Timestamp,
}

impl StoreHandle {
    /// Sessions that are active, and these in any case.
    pub async fn watched_sessions(&self, also: Vec<SessionId>) -> Result<Vec<Watched>> {
        self.read(move |connection| {
            const SELECT: &str = "SELECT sessions.id, workspace, watch, CASE WHEN status = 'active' THEN active_since END, watched_until
                 FROM sessions JOIN threads ON threads.id = thread_id WHERE";
            let mut found = Vec::new();
            let mut read = |rows: &mut rusqlite::Rows<'_>| -> Result<()> {
                while let Some(row) = rows.next()? {
                    let id: String = row.get(0)?;
                    found.push(Watched {
                        session: SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?,
                        workspace: row.get(1)?,
                        mode: row.get::<_, Option<String>>(2)?.as_deref().and_then(WatchMode::parse),
                        active_since: row.get(3)?,
                        until: row.get::<_, Option<i64>>(4)?.map(timestamp),
                    });
                }
                Ok(())
            };
            read(&mut connection.prepare_cached(&format!("{SELECT} status = 'active'"))?.query([])?)?;
            let mut one = connection.prepare_cached(&format!("{SELECT} sessions.id = ?1 AND status <> 'active'"))?;
            for session in also {
                read(&mut one.query([session.to_string()])?)?;
            }
            Ok(found)
        })
        .await
    }

    /// What a session's files were seen to do: kept by path, told as one event.
    pub async fn files_changed(&self, session: SessionId, burst: Burst) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            let id = session.to_string();
            let mut room = MOST_PATHS
                - change.query_row("SELECT count(*) FROM changed_files WHERE session_id = ?1", [&id], |row| row.get::<_, i64>(0))?;
            for (path, what, at) in &burst.files {
                let created = (*what == FileChange::Created).then(|| micros(*at));
                let known = change.execute(
                    "UPDATE changed_files SET change = ?3, created_at = iif(created_at IS NULL, NULL, coalesce(?4, created_at)), changed_at = ?5, times = times + 1
                     WHERE session_id = ?1 AND path = ?2",
                    params![id, path, what.as_str(), created, micros(*at)],
                )?;
                if known == 0 && room > 0 {
                    room -= 1;
                    change.execute(
                        "INSERT INTO changed_files (session_id, path, change, created_at, changed_at, times) VALUES (?1, ?2, ?3, ?4, ?5, 1)",
                        params![id, path, what.as_str(), created, micros(*at)],
                    )?;
                }
            }
            change.execute("UPDATE sessions SET watched_until = ?2 WHERE id = ?1", params![id, micros(burst.until)])?;
            let [created, changed, removed] = burst.counts;
            let mut data = json!({"created": created, "changed": changed, "removed": removed});
            let named = burst.files.iter().take(NAMED_IN_EVENT);
            data["files"] = named.map(|(path, what, _)| json!({"path": path, "change": what})).collect();
            let more = (created + changed + removed).saturating_sub(NAMED_IN_EVENT as u64);
            if more > 0 {
                data["more"] = json!(more);
            }
            if burst.missed {
                data["missed"] = json!(true);
            }
            change.tell(Fact::new(session, Author::Daemon, "file_changed", data))
        })
        .await
    }

    /// Those files of a session that are known to have changed at that time or later already.
    pub async fn known_changes(&self, session: SessionId, since: jiff::Timestamp) -> Result<Vec<(String, jiff::Timestamp)>> {
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT path, changed_at FROM changed_files WHERE session_id = ?1 AND changed_at >= ?2")?;
            let rows = statement.query_map(params![session.to_string(), micros(since)], |row| Ok((row.get(0)?, timestamp(row.get(1)?))))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Changed files since a moment, newest first, and how many there are in all; what came and went since then is left out.
    pub async fn changed_files(&self, session: SessionId, since: jiff::Timestamp, limit: u32) -> Result<(Vec<ChangedFile>, u64)> {
        self.read(move |connection| {
            let (id, since) = (session.to_string(), micros(since));
            let mut statement = connection.prepare_cached(
                "SELECT path, CASE WHEN change = 'changed' AND created_at >= ?2 THEN 'created' ELSE change END, changed_at, times
                 FROM changed_files WHERE session_id = ?1 AND changed_at >= ?2 AND NOT (change = 'removed' AND coalesce(created_at >= ?2, 0))
                 ORDER BY changed_at DESC, path LIMIT ?3",
            )?;
            let mut rows = statement.query(params![id, since, limit])?;
            let mut files = Vec::new();
            while let Some(row) = rows.next()? {
                let change: String = row.get(1)?;
                files.push(ChangedFile {
                    path: row.get(0)?,
                    change: FileChange::parse(&change).ok_or_else(|| broken("change of a file", &change))?,
                    at: timestamp(row.get(2)?),
                    times: row.get::<_, i64>(3)? as u64,
                });
            }
            let all: i64 = connection
                .prepare_cached(
                    "SELECT count(*) FROM changed_files WHERE session_id = ?1 AND changed_at >= ?2
                        AND NOT (change = 'removed' AND coalesce(created_at >= ?2, 0))",
                )?
                .query_row(params![id, since], |row| row.get(0))?;
            Ok((files, all as u64))
        })
        .await
    }

    /// The last command of a shell or call of a session.
    pub async fn last_command(&self, session: SessionId) -> Result<Option<LastCommand>> {
        self.read(move |connection| {
            let id = session.to_string();
            // each with when the one before it was over
            let shell = connection
                .prepare_cached(
                    "SELECT text, started_at, lead(started_at + coalesce(took, 0), 1, 0) OVER (ORDER BY started_at DESC)
                     FROM (SELECT text, started_at, took FROM commands WHERE session_id = ?1 ORDER BY started_at DESC LIMIT 2) LIMIT 1",
                )?
                .query_row([&id], |row| {
                    let (began_at, before) = (timestamp(row.get(1)?), timestamp(row.get(2)?));
                    let before = if before + READ_TOGETHER > began_at { began_at - AHEAD } else { before };
                    let since = before.max(began_at - READ_WITHIN);
                    Ok(LastCommand { text: row.get(0)?, began_at, since })
                })
                .optional()?;
            let call = connection
                .prepare_cached(
                    "SELECT code, asked_at, coalesce(started_at, asked_at), lead(started_at + coalesce(took, 0), 1, 0) OVER (ORDER BY asked_at DESC)
                     FROM (SELECT * FROM execs WHERE session_id = ?1 ORDER BY asked_at DESC LIMIT 2) LIMIT 1",
                )?
                .query_row([&id], |row| {
                    let (asked_at, began_at) = (timestamp(row.get(1)?), timestamp(row.get(2)?));
                    let before = row.get::<_, Option<i64>>(3)?.map_or(asked_at, timestamp);
                    Ok(LastCommand { text: row.get(0)?, began_at, since: before.max(asked_at).min(began_at) - crate::file_time::tick() })
                })
                .optional()?;
            Ok(shell.into_iter().chain(call).max_by_key(|last| last.began_at))
        })
        .await
    }
}
