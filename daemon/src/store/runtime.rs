//! Runtimes: a launch is a row before it is a process, and its end is one transaction with the session's.

use rusqlite::{OptionalExtension, params};
use shared::event::Author;
use shared::exec::Language;
use shared::id::{Offset, RuntimeId, SessionId, TerminalId, ThreadId};
use shared::runtime::{ExitStatus, Recording, Runtime, RuntimeState};

use super::{AfterLoss, Durability, Result, StoreHandle, broken, json, timestamp};
use crate::language::environment::Delta;
use crate::lifecycle::{self, End};

/// A runtime that has not ended as far as the database knows.
#[derive(Clone, Debug)]
pub struct LiveRuntime {
    pub runtime: RuntimeId,
    pub session: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub state: RuntimeState,
    pub holder_pid: Option<u32>,
    pub last_activity_at: jiff::Timestamp,
    pub created_at: jiff::Timestamp,
    /// The folder its program was in, as far as known.
    pub cwd: String,
    /// A client had control when the last daemon ended.
    pub is_controlled: bool,
    /// When a person last looked at its session.
    pub seen_at: Option<jiff::Timestamp>,
    /// What it asked before was answered or dismissed.
    pub answered_at: Option<jiff::Timestamp>,
    /// An interpreter's, with the environment it was started with beyond its caller's.
    pub interpreter: Option<(Language, Delta)>,
}

/// What the end of a runtime came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    Ended,
    /// It is started again when it is needed.
    Sleeps,
}

/// The times that belong to an end.
#[derive(Clone, Copy, Debug)]
pub struct EndingAt {
    pub now: jiff::Timestamp,
    pub last_activity: jiff::Timestamp,
    /// Where its recording stood when it was asked to end.
    pub screen_at: Option<Offset>,
}

impl StoreHandle {
    /// Gives whether it is to be ended again: that may have been decided while it was being started.
    pub async fn runtime_is_running(&self, runtime: RuntimeId, pid: u32, holder_pid: u32) -> Result<bool> {
        let state = RuntimeState::Running { pid };
        self.write_beside(Durability::Process, move |change| {
            let ending: Option<Option<String>> = change
                .sql
                .prepare_cached("UPDATE runtimes SET state = ?1, holder_pid = ?2 WHERE id = ?3 AND is_live RETURNING ending")?
                .query_row(params![json(&state)?, holder_pid, runtime.to_string()], |row| row.get(0))
                .optional()?;
            // what it was queued with has been used
            change
                .sql
                .prepare_cached("UPDATE sessions SET queued_launch = NULL WHERE id = (SELECT session_id FROM runtimes WHERE id = ?1) AND queued_launch IS NOT NULL")?
                .execute([runtime.to_string()])?;
            Ok(ending.flatten().is_some())
        })
        .await
    }

    /// A client has control of it now, or nobody has.
    pub async fn controlled(&self, runtime: RuntimeId, is_controlled: impl FnOnce() -> bool + Send + 'static) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change
                .sql
                .prepare_cached("UPDATE runtimes SET is_controlled = ?1 WHERE id = ?2 AND is_live")?
                .execute(params![is_controlled(), runtime.to_string()])?;
            Ok(())
        })
        .await
    }

    /// The runtime is over, and the session it belongs to by then, if that has not ended before.
    pub async fn runtime_has_ended(&self, runtime: RuntimeId, end: End, ending_at: EndingAt, recorded_bytes: u64) -> Result<Settles> {
        self.runtime_was_lost(runtime, end, ending_at, recorded_bytes, AfterLoss::Stays).await
    }

    /// As above; a session that is lost may be started again afterwards.
    pub async fn runtime_was_lost(
        &self,
        runtime: RuntimeId,
        end: End,
        ending_at: EndingAt,
        recorded_bytes: u64,
        after: AfterLoss,
    ) -> Result<Settles> {
        self.write(Durability::Power, move |change| {
            let row: Option<(String, Option<String>, Option<String>)> = change
                .query_row(
                    "SELECT session_id, ending, (SELECT kind FROM terminals WHERE id = terminal_id) FROM runtimes WHERE id = ?1 AND is_live",
                    [runtime.to_string()],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()?;
            // told before, or removed meanwhile
            let Some((session, why, kind)) = row else { return Ok(Settles::Ended) };
            let language = kind.as_deref().and_then(Language::parse);
            let session = SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?;
            if lifecycle::sleeps(&end, change.standing(session)?.status, why.as_deref()) {
                let state = RuntimeState::Hibernated { since: ending_at.now, screen_at: ending_at.screen_at };
                change.execute(
                    "UPDATE runtimes SET state = ?1, is_live = 0, is_controlled = 0, recorded_bytes = ?2 WHERE id = ?3",
                    params![json(&state)?, recorded_bytes as i64, runtime.to_string()],
                )?;
                let mut data = serde_json::json!({"terminal": kind, "runtime": runtime});
                if let End::Lost(reason) = &end {
                    data["lost"] = serde_json::json!(reason);
                }
                change.tell(super::Fact::new(session, shared::event::Author::Daemon, "hibernate", data))?;
                return Ok(Settles::Sleeps);
            }
            let mut settled = lifecycle::settle(&end, session, ending_at.now, why.as_deref());
            settled.ending.last_activity_at = ending_at.last_activity;
            change.execute(
                "UPDATE runtimes SET state = ?1, is_live = 0, is_controlled = 0, recorded_bytes = ?2 WHERE id = ?3",
                params![json(&settled.state)?, recorded_bytes as i64, runtime.to_string()],
            )?;
            if let Some(language) = language {
                // a session does not end with an interpreter: the next call starts another
                let data = serde_json::json!({"language": language, "state": settled.state, "reason": why});
                let kind = if matches!(end, End::Lost(_)) { "lost" } else { "exit" };
                change.tell(super::Fact::new(session, shared::event::Author::Daemon, kind, data))?;
                return Ok(Settles::Ended);
            }
            if let Some(exit) = settled.exit {
                change.tell(exit)?;
            }
            change.end_with_program(session, &settled.ending, settled.end)?;
            if let Some(after) = after.stored() {
                let sql = "UPDATE sessions SET restore = ?1 WHERE id = ?2 AND status = 'failed' AND status_reason = 'lost'";
                change.execute(sql, params![after, session.to_string()])?;
            }
            Ok(Settles::Ended)
        })
        .await
    }

    /// The folder a terminal's program is in now.
    pub async fn moved(&self, runtime: RuntimeId, cwd: String) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change
                .sql
                .prepare_cached(
                    "UPDATE terminals SET cwd = ?1, state_version = state_version + 1
                     WHERE id = (SELECT terminal_id FROM runtimes WHERE id = ?2 AND is_live) AND cwd <> ?1",
                )?
                .execute(params![cwd, runtime.to_string()])?;
            Ok(())
        })
        .await
    }

    pub async fn resize(&self, runtime: RuntimeId, size: shared::screen::Size) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change.execute(
                "UPDATE terminals SET cols = ?1, rows = ?2, state_version = state_version + 1
                 WHERE id = (SELECT terminal_id FROM runtimes WHERE id = ?3) AND (cols <> ?1 OR rows <> ?2)",
                params![size.cols, size.rows, runtime.to_string()],
            )?;
            Ok(())
        })
        .await
    }

    /// How a runtime ended, if it has.
    pub async fn end_of(&self, runtime: RuntimeId) -> Result<Option<End>> {
        self.read(move |connection| {
            let sql = "SELECT state FROM runtimes WHERE id = ?1 AND NOT is_live";
            let row: Option<String> = connection.prepare_cached(sql)?.query_row([runtime.to_string()], |row| row.get(0)).optional()?;
            let Some(state) = row else { return Ok(None) };
            Ok(match serde_json::from_str(&state).map_err(|_| broken("runtime state", &state))? {
                RuntimeState::Starting | RuntimeState::Running { .. } | RuntimeState::Frozen { .. } => None,
                RuntimeState::Exited { status, .. } => Some(End::Exited(status)),
                RuntimeState::Lost { reason, .. } => Some(End::Lost(reason)),
                RuntimeState::Refused { error, .. } => Some(End::Refused(error)),
                RuntimeState::Hibernated { .. } => Some(End::Killed(ExitStatus::Signal(9), Author::Daemon)),
            })
        })
        .await
    }

    pub async fn live_runtimes(&self) -> Result<Vec<LiveRuntime>> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT runtimes.id, session_id, sessions.thread_id, name, state, last_activity_at, holder_pid, runtimes.created_at, cwd, is_controlled, kind, launch, env_removed, seen_at, answered_at
                 FROM runtimes LEFT JOIN terminals ON terminals.id = terminal_id JOIN sessions ON sessions.id = session_id JOIN threads ON threads.id = sessions.thread_id WHERE is_live",
            )?;
            let mut rows = statement.query([])?;
            let mut live = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, session, thread): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let state: String = row.get(4)?;
                live.push(LiveRuntime {
                    runtime: RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?,
                    session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
                    thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
                    name: row.get(3)?,
                    state: serde_json::from_str(&state).map_err(|_| broken("runtime state", &state))?,
                    last_activity_at: timestamp(row.get(5)?),
                    holder_pid: row.get(6)?,
                    created_at: timestamp(row.get(7)?),
                    // a terminal whose row is missing is made again when it is used
                    cwd: row.get::<_, Option<String>>(8)?.unwrap_or_default(),
                    is_controlled: row.get(9)?,
                    seen_at: row.get::<_, Option<i64>>(13)?.map(timestamp),
                    answered_at: row.get::<_, Option<i64>>(14)?.map(timestamp),
                    interpreter: match row.get::<_, Option<String>>(10)?.as_deref().and_then(Language::parse) {
                        Some(language) => {
                            let launch: shared::runtime::Launch = super::parse("launch", &row.get::<_, String>(11)?)?;
                            Some((language, Delta { set: launch.env_delta, removed: super::parse("environment", &row.get::<_, String>(12)?)? }))
                        }
                        None => None,
                    },
                });
            }
            Ok(live)
        })
        .await
    }

    /// Runtimes of a session's thread, newest first; what is recorded of them is filled in by the caller.
    pub async fn runtimes_of(&self, session: SessionId) -> Result<Vec<Runtime>> {
        self.read(move |connection| {
            let mut statement = connection.prepare(
                "SELECT runtimes.id, terminal_id, launch, state, holder_pid, runtimes.created_at, agent FROM runtimes
                 JOIN sessions ON sessions.id = session_id
                 WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) ORDER BY runtimes.created_at DESC",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let mut runtimes = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, terminal): (String, String) = (row.get(0)?, row.get(1)?);
                let (launch, state): (String, String) = (row.get(2)?, row.get(3)?);
                runtimes.push(Runtime {
                    id: RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?,
                    terminal: TerminalId::parse(&terminal).ok_or_else(|| broken("terminal id", &terminal))?,
                    launch: serde_json::from_str(&launch).map_err(|_| broken("launch", &launch))?,
                    state: serde_json::from_str(&state).map_err(|_| broken("runtime state", &state))?,
                    holder_pid: row.get(4)?,
                    created_at: timestamp(row.get(5)?),
                    recording: Recording::default(),
                    resume: None,
                    agent: row.get::<_, Option<String>>(6)?.map(|text| super::parse("agent", &text)).transpose()?,
                });
            }
            Ok(runtimes)
        })
        .await
    }
}
