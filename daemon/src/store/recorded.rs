//! Runtimes as recordings: whose they are and what ran, whether they are live or not.

use std::collections::HashSet;

use rusqlite::{Connection, Params, Row, params, params_from_iter};
use shared::exec::Language;
use shared::filter::Filter;
use shared::id::{Offset, RuntimeId, SessionId};
use shared::runtime::Launch;
use shared::session::Status;
use shared::stats::{DiskUse, SessionDisk};

use super::session::conditions;
use super::{Change, Durability, Result, StoreHandle, broken};

#[derive(Clone, Debug)]
pub struct Recorded {
    pub runtime: RuntimeId,
    pub session: SessionId,
    /// The thread's.
    pub name: String,
    /// `None` for a program on a PTY.
    pub language: Option<Language>,
    pub launch: Launch,
    pub is_live: bool,
    /// Where the recording ended when the runtime did; 0 while it is live.
    pub end: Offset,
}

/// Keys of `remembered` for recordings whose rows are gone: this and the runtime's id.
const REMOVED: &str = "removed:";

impl Change<'_> {
    /// Remembers that the files of a recording are to go with its row. Without that, a daemon that dies before they are gone
    /// would leave them to be found as a recording without a session.
    pub(super) fn mark_removed(&mut self, runtime: RuntimeId) -> Result<()> {
        self.execute("INSERT OR REPLACE INTO remembered (what, value) VALUES (?1, '')", [format!("{REMOVED}{runtime}")])?;
        Ok(())
    }
}

impl StoreHandle {
    /// Of a session, newest first.
    pub async fn recorded_of(&self, session: SessionId) -> Result<Vec<Recorded>> {
        self.read(move |connection| {
            query(connection, "WHERE runtimes.session_id = ?1 ORDER BY runtimes.created_at DESC, runtimes.id DESC", [session.to_string()])
        })
        .await
    }

    /// Runtimes of the sessions that are meant, those of one session together.
    pub async fn recorded_sessions(&self, filter: Filter) -> Result<Vec<(RuntimeId, SessionDisk)>> {
        self.read(move |connection| {
            let (clauses, values) = conditions(&filter);
            let sql = format!(
                "SELECT runtimes.id, sessions.id, (SELECT name FROM threads WHERE id = thread_id), status
                 FROM sessions JOIN runtimes ON session_id = sessions.id WHERE {clauses} ORDER BY sessions.id"
            );
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(values.iter()))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, session, status): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
                found.push((
                    RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?,
                    SessionDisk {
                        session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
                        name: row.get(2)?,
                        status: Status::parse(&status).ok_or_else(|| broken("status", &status))?,
                        disk: DiskUse::default(),
                    },
                ));
            }
            Ok(found)
        })
        .await
    }

    /// A name for a new thread that nobody has: this, or with a number.
    pub async fn free_name(&self, wanted: String) -> Result<String> {
        self.read(move |connection| {
            let mut taken = connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM threads WHERE name = ?1)")?;
            Ok(shared::name::generate(&wanted, |name| taken.query_row([name], |row| row.get(0)).unwrap_or(false)))
        })
        .await
    }

    /// Runtimes that have ended. They never live again, so the answer stays true.
    pub async fn ended_runtimes(&self) -> Result<HashSet<RuntimeId>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached("SELECT id FROM runtimes WHERE NOT is_live")?;
            let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
            Ok(ids.filter_map(|id| RuntimeId::parse(&id.ok()?)).collect())
        })
        .await
    }

    /// Recordings whose rows were removed and whose files may still be there: the daemon died in between, or they could not be
    /// removed.
    pub async fn removed_recordings(&self) -> Result<Vec<RuntimeId>> {
        self.read(move |connection| {
            let mut statement = connection.prepare("SELECT substr(what, ?1) FROM remembered WHERE what LIKE ?2")?;
            let ids = statement.query_map(params![REMOVED.len() as i64 + 1, format!("{REMOVED}%")], |row| row.get::<_, String>(0))?;
            Ok(ids.filter_map(|id| RuntimeId::parse(&id.ok()?)).collect())
        })
        .await
    }

    /// The files of a removed recording are gone.
    pub async fn removal_is_done(&self, runtime: RuntimeId) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change.execute("DELETE FROM remembered WHERE what = ?1", [format!("{REMOVED}{runtime}")])?;
            Ok(())
        })
        .await
    }

    pub async fn recorded(&self, runtime: RuntimeId) -> Result<Option<Recorded>> {
        self.read(move |connection| Ok(query(connection, "WHERE runtimes.id = ?1", [runtime.to_string()])?.pop())).await
    }
}

fn query(connection: &Connection, filter: &str, params: impl Params) -> Result<Vec<Recorded>> {
    let sql = format!(
        "SELECT runtimes.id, runtimes.session_id, threads.name, terminals.kind, launch, is_live, recorded_bytes FROM runtimes
         JOIN terminals ON terminals.id = terminal_id JOIN threads ON threads.id = terminals.thread_id {filter}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(understand(row)?);
    }
    Ok(found)
}

fn understand(row: &Row<'_>) -> Result<Recorded> {
    let (id, session, kind): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
    Ok(Recorded {
        runtime: RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?,
        session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
        name: row.get(2)?,
        language: Language::parse(&kind),
        launch: super::parse("launch", &row.get::<_, String>(4)?)?,
        is_live: row.get(5)?,
        end: row.get::<_, i64>(6)?.unsigned_abs(),
    })
}
