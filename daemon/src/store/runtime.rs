//! Runtimes: a launch is a row before it is a process, and its end is one transaction with the session's.

use rusqlite::params;
use serde_json::json;
use shared::event::Author;
use shared::id::{LeaseId, RuntimeId, SessionId, TerminalId, ThreadId};
use shared::name;
use shared::runtime::{Launch, Recording, Runtime, RuntimeState};
use shared::session::{Session, Status};
use shared::terminal::TerminalKind;

use super::session::load;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, broken, micros, timestamp};

/// What a new session with a program consists of.
pub struct Start {
    pub name: Option<String>,
    pub user: Option<String>,
    pub channel: Option<String>,
    pub mode: Option<String>,
    pub task: Option<String>,
    pub launch: Launch,
    pub lease: LeaseId,
    pub author: Author,
    /// Chosen by whoever starts or found the holder.
    pub runtime: RuntimeId,
}

pub struct Started {
    /// As it was stored: not running yet.
    pub session: Session,
    pub runtime: RuntimeId,
}

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
}

impl StoreHandle {
    /// Thread, session, terminal and launch of a new session, before any process exists.
    pub async fn start_session(&self, start: Start) -> Result<Started> {
        self.write(Durability::Power, move |change| change.start_session(start)).await
    }

    pub async fn runtime_is_running(&self, runtime: RuntimeId, pid: u32, holder_pid: u32) -> Result<()> {
        let state = RuntimeState::Running { pid };
        self.write(Durability::Process, move |change| {
            change.sql.prepare_cached("UPDATE runtimes SET state = ?1, holder_pid = ?2 WHERE id = ?3 AND is_live")?.execute(params![
                json(&state)?,
                holder_pid,
                runtime.to_string()
            ])?;
            Ok(())
        })
        .await
    }

    /// The runtime is over, and its session with it; `facts` tell how.
    pub async fn runtime_has_ended(
        &self,
        runtime: RuntimeId,
        session: SessionId,
        state: RuntimeState,
        ending: Ending,
        facts: Vec<Fact>,
    ) -> Result<()> {
        self.write(Durability::Power, move |change| {
            let now = micros(jiff::Timestamp::now());
            let changed = change.sql.execute(
                "UPDATE runtimes SET state = ?1, is_live = 0 WHERE id = ?2 AND is_live",
                params![json(&state)?, runtime.to_string()],
            )?;
            if changed == 0 {
                // told before, or removed meanwhile
                return Ok(());
            }
            change.sql.execute(
                "UPDATE sessions SET status = ?1, status_reason = ?2, error = ?3, updated_at = ?4, ended_at = ?4,
                    last_activity_at = max(last_activity_at, ?5)
                 WHERE id = ?6 AND status IN ('queued', 'active', 'paused')",
                params![ending.status.as_str(), ending.reason, ending.error, now, micros(ending.last_activity_at), session.to_string()],
            )?;
            for fact in facts {
                change.tell(fact)?;
            }
            Ok(())
        })
        .await
    }

    pub async fn resize(&self, runtime: RuntimeId, size: shared::screen::Size) -> Result<()> {
        self.write(Durability::Process, move |change| {
            change.sql.execute(
                "UPDATE terminals SET cols = ?1, rows = ?2, state_version = state_version + 1
                 WHERE id = (SELECT terminal_id FROM runtimes WHERE id = ?3) AND (cols <> ?1 OR rows <> ?2)",
                params![size.cols, size.rows, runtime.to_string()],
            )?;
            Ok(())
        })
        .await
    }

    pub async fn live_runtimes(&self) -> Result<Vec<LiveRuntime>> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT runtimes.id, session_id, thread_id, name, state, last_activity_at, holder_pid FROM runtimes
                 JOIN sessions ON sessions.id = session_id JOIN threads ON threads.id = thread_id WHERE is_live",
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
                "SELECT runtimes.id, terminal_id, launch, state, holder_pid, runtimes.created_at FROM runtimes
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
                });
            }
            Ok(runtimes)
        })
        .await
    }
}

/// How a session ends when its program does.
pub struct Ending {
    pub status: Status,
    pub reason: String,
    pub error: Option<String>,
    pub last_activity_at: jiff::Timestamp,
}

impl Change<'_> {
    fn start_session(&mut self, start: Start) -> Result<Started> {
        let now = micros(jiff::Timestamp::now());
        let launch = &start.launch;
        let name = match start.name {
            Some(name) => name,
            None => {
                let mut taken = self.sql.prepare_cached("SELECT EXISTS (SELECT 1 FROM threads WHERE name = ?1)")?;
                name::generate(&launch.cwd, |name| taken.query_row([name], |row| row.get(0)).unwrap_or(false))
            }
        };
        let thread = if let Some(thread) = self.thread_named(&name)? {
            self.refuse_if_live(thread, &name)?;
            thread
        } else {
            let thread = ThreadId::new();
            self.sql.execute(
                "INSERT INTO threads (id, name, workspace, user, channel, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![thread.to_string(), name, launch.cwd, start.user, start.channel, now],
            )?;
            thread
        };
        let session = SessionId::new();
        self.sql.execute(
            "INSERT INTO sessions (id, thread_id, mode, task, status, created_at, updated_at, last_activity_at)
             VALUES (?1, ?2, ?3, ?4, 'active', ?5, ?5, ?5)",
            params![session.to_string(), thread.to_string(), start.mode, start.task, now],
        )?;
        // the thread keeps its one terminal of this kind; a new program changes its state
        self.sql.execute(
            "INSERT INTO terminals (id, thread_id, kind, cwd, env_delta, cols, rows, lease_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (thread_id, kind) DO UPDATE SET cwd = ?4, env_delta = ?5, cols = ?6, rows = ?7, lease_id = ?8,
                state_version = state_version + 1",
            params![
                TerminalId::new().to_string(),
                thread.to_string(),
                TerminalKind::Terminal.as_str(),
                launch.cwd,
                json(&launch.env_delta)?,
                launch.size.cols,
                launch.size.rows,
                start.lease.to_string()
            ],
        )?;
        let runtime = start.runtime;
        self.sql.execute(
            "INSERT INTO runtimes (id, terminal_id, session_id, launch, is_live, state, created_at)
             SELECT ?1, id, ?2, ?3, 1, ?4, ?5 FROM terminals WHERE thread_id = ?6 AND kind = ?7",
            params![
                runtime.to_string(),
                session.to_string(),
                json(launch)?,
                json(&RuntimeState::Starting)?,
                now,
                thread.to_string(),
                TerminalKind::Terminal.as_str()
            ],
        )?;
        let data = json!({"command": launch.argv, "workspace": launch.cwd, "task": start.task});
        self.tell(Fact::new(session, start.author, "start", data))?;
        Ok(Started { session: load(&self.sql, session)?, runtime })
    }

    fn refuse_if_live(&mut self, thread: ThreadId, name: &str) -> Result<()> {
        let mut statement =
            self.sql.prepare("SELECT status FROM sessions WHERE thread_id = ?1 AND status IN ('queued', 'active', 'paused')")?;
        let mut rows = statement.query([thread.to_string()])?;
        if let Some(row) = rows.next()? {
            let status: String = row.get(0)?;
            return Err(Error::SessionIsLive {
                name: name.to_owned(),
                status: Status::parse(&status).ok_or_else(|| broken("status", &status))?,
            });
        }
        Ok(())
    }
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Broken(error.to_string()))
}
