//! Cleaning up: which sessions ended long ago, taking them away, and the audit line that stays of each.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params, params_from_iter};
use shared::filter::Filter;
use shared::id::{RuntimeId, SessionId, ThreadId};
use shared::session::Status;
use shared::stats::AuditLine;

use super::session::conditions;
use super::{Durability, Result, StoreHandle, broken, micros, timestamp};

/// Sessions of this filter that ended before this time. Live ones never are, nor those whose program still runs.
#[derive(Clone, Debug)]
pub struct Old {
    pub filter: Filter,
    pub ended_before: jiff::Timestamp,
}

/// A session that may go, and the recordings that go with it.
pub struct Candidate {
    pub line: AuditLine,
    pub runtimes: Vec<RuntimeId>,
}

impl StoreHandle {
    pub async fn count_old(&self, old: Old) -> Result<u64> {
        self.read(move |connection| {
            let (clauses, values) = clauses(&old, "status");
            let sql = format!("SELECT count(*) FROM sessions WHERE {clauses}");
            Ok(connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))? as u64)
        })
        .await
    }

    /// The oldest of them.
    pub async fn old_sessions(&self, old: Old, limit: u32) -> Result<Vec<Candidate>> {
        self.read(move |connection| {
            // + keeps the index on the status from being used, which has no order: the oldest are few
            let (clauses, mut values) = clauses(&old, "+status");
            values.push(Sql::Integer(i64::from(limit)));
            let sql = format!(
                "SELECT sessions.id, thread_id, name, workspace, sessions.created_at, last_activity_at, ended_at, sessions.task_count,
                    status, status_reason, NULL
                 FROM sessions JOIN threads ON threads.id = thread_id WHERE {clauses} ORDER BY ended_at LIMIT ?{}",
                values.len()
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let line = read(row)?;
                found.push(Candidate { runtimes: runtimes_of(connection, line.id)?, line });
            }
            Ok(found)
        })
        .await
    }

    /// Takes their records away. Their audit lines stay, unless those are to go too.
    pub async fn remove_old(&self, sessions: Vec<SessionId>, keep_audit: bool) -> Result<u64> {
        self.write(Durability::Power, move |change| {
            let now = micros(jiff::Timestamp::now());
            let mut gone = 0u64;
            for session in sessions {
                let id = session.to_string();
                if keep_audit {
                    change
                        .sql
                        .prepare_cached(
                            "INSERT OR REPLACE INTO audit
                             SELECT sessions.id, thread_id, name, workspace, sessions.created_at, last_activity_at, ended_at,
                                sessions.task_count, status, status_reason, ?2
                             FROM sessions JOIN threads ON threads.id = thread_id WHERE sessions.id = ?1 AND ended_at IS NOT NULL",
                        )?
                        .execute(params![id, now])?;
                }
                gone += change.execute("DELETE FROM sessions WHERE id = ?1 AND ended_at IS NOT NULL", [id])? as u64;
            }
            Ok(gone)
        })
        .await
    }

    /// Takes the audit lines of sessions away that ended before this time.
    pub async fn remove_audit(&self, old: Old) -> Result<u64> {
        self.write(Durability::Power, move |change| {
            let (clauses, values) = audit_clauses(&old);
            Ok(change.execute(&format!("DELETE FROM audit WHERE {clauses}"), params_from_iter(values))? as u64)
        })
        .await
    }

    pub async fn count_audit(&self, old: Old) -> Result<u64> {
        self.read(move |connection| {
            let (clauses, values) = audit_clauses(&old);
            let sql = format!("SELECT count(*) FROM audit WHERE {clauses}");
            Ok(connection.query_row(&sql, params_from_iter(values), |row| row.get::<_, i64>(0))? as u64)
        })
        .await
    }

    /// What stays of sessions that were cleaned up, newest last.
    pub async fn audit(&self, thread: Option<String>, limit: Option<u32>) -> Result<Vec<AuditLine>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT session_id, thread_id, thread, workspace, created_at, last_activity_at, ended_at, task_count, status, status_reason,
                    removed_at
                 FROM audit WHERE ?1 IS NULL OR thread = ?1 ORDER BY created_at DESC LIMIT ?2",
            )?;
            let mut rows = statement.query(params![thread, limit.map_or(-1, i64::from)])?;
            let mut lines = Vec::new();
            while let Some(row) = rows.next()? {
                lines.push(read(row)?);
            }
            lines.reverse();
            Ok(lines)
        })
        .await
    }
}

fn clauses(old: &Old, status: &str) -> (String, Vec<Sql>) {
    let (clauses, mut values) = conditions(&old.filter);
    values.push(Sql::Integer(micros(old.ended_before)));
    let clauses = format!(
        "{clauses} AND ended_at < ?{} AND {status} IN ('completed', 'failed', 'timeout', 'ended')
         AND NOT EXISTS (SELECT 1 FROM runtimes WHERE session_id = sessions.id AND is_live)",
        values.len()
    );
    (clauses, values)
}

/// An audit line knows less than a session did: where more is asked, none is meant.
fn audit_clauses(old: &Old) -> (String, Vec<Sql>) {
    let Filter { statuses, thread, workspace, created_after, created_before, user, channel, mode, group, text, .. } = &old.filter;
    if [user, channel, mode, group, text].into_iter().any(Option::is_some) {
        return ("FALSE".to_owned(), Vec::new());
    }
    let known = Filter { statuses: statuses.clone(), created_after: *created_after, created_before: *created_before, ..Filter::default() };
    let (clauses, mut values) = conditions(&known);
    let mut clauses = clauses.replace("sessions.created_at", "created_at");
    for (clause, value) in [("thread =", thread), ("workspace =", workspace)] {
        if let Some(value) = value {
            values.push(Sql::Text(value.clone()));
            clauses = format!("{clauses} AND {clause} ?{}", values.len());
        }
    }
    values.push(Sql::Integer(micros(old.ended_before)));
    (format!("{clauses} AND ended_at < ?{}", values.len()), values)
}

fn runtimes_of(connection: &Connection, session: SessionId) -> Result<Vec<RuntimeId>> {
    let ids: Vec<String> = connection
        .prepare_cached("SELECT id FROM runtimes WHERE session_id = ?1")?
        .query_map([session.to_string()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(ids.iter().filter_map(|id| RuntimeId::parse(id)).collect())
}

fn read(row: &Row<'_>) -> Result<AuditLine> {
    let (id, thread, status): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(8)?);
    Ok(AuditLine {
        id: SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?,
        thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
        name: row.get(2)?,
        workspace: row.get(3)?,
        created_at: timestamp(row.get(4)?),
        last_activity_at: timestamp(row.get(5)?),
        ended_at: row.get::<_, Option<i64>>(6)?.map(timestamp),
        task_count: row.get::<_, i64>(7)? as u64,
        status: Status::parse(&status).ok_or_else(|| broken("status", &status))?,
        status_reason: row.get(9)?,
        removed_at: row.get::<_, Option<i64>>(10)?.map(timestamp),
    })
}
