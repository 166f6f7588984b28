//! Runtimes as recordings: whose they are and what ran, whether they are live or not.

use rusqlite::{Connection, Params, Row};
use shared::exec::Language;
use shared::id::{RuntimeId, SessionId};
use shared::runtime::Launch;

use super::{Result, StoreHandle, broken};

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
}

impl StoreHandle {
    /// Of a session, newest first.
    pub async fn recorded_of(&self, session: SessionId) -> Result<Vec<Recorded>> {
        self.read(move |connection| {
            query(connection, "WHERE runtimes.session_id = ?1 ORDER BY runtimes.created_at DESC, runtimes.id DESC", [session.to_string()])
        })
        .await
    }

    pub async fn recorded(&self, runtime: RuntimeId) -> Result<Option<Recorded>> {
        self.read(move |connection| Ok(query(connection, "WHERE runtimes.id = ?1", [runtime.to_string()])?.pop())).await
    }
}

fn query(connection: &Connection, filter: &str, params: impl Params) -> Result<Vec<Recorded>> {
    let sql = format!(
        "SELECT runtimes.id, runtimes.session_id, threads.name, terminals.kind, launch, is_live FROM runtimes
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
    })
}
