//! Events: told inside a change, read back by number.

use rusqlite::{Connection, Row, params};
use shared::event::{Author, Event};
use shared::id::{Seq, SessionId};

use super::{Change, Durability, Fact, Result, StoreHandle, broken, micros, timestamp};

/// Rows of one read: enough to be quick, few enough to stay small.
const BATCH: i64 = 500;

impl StoreHandle {
    /// A fact that changes nothing else (attach, detach).
    pub async fn tell(&self, fact: Fact) -> Result<()> {
        self.write(Durability::Process, move |change| change.tell(fact)).await
    }

    pub async fn last_seq(&self) -> Result<Seq> {
        self.read(|connection| Ok(connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?)).await
    }

    /// A batch of events after `since`, of one session's thread or of all.
    pub async fn events_after(&self, session: Option<SessionId>, since: Seq) -> Result<Vec<Event>> {
        self.read(move |connection| match session {
            Some(session) => query(
                connection,
                "WHERE seq > ?1 AND session_id IN (SELECT id FROM sessions WHERE thread_id =
                    (SELECT thread_id FROM sessions WHERE id = ?3))",
                params![since, BATCH, session.to_string()],
            ),
            None => query(connection, "WHERE seq > ?1", params![since, BATCH]),
        })
        .await
    }
}

fn query(connection: &Connection, filter: &str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<Event>> {
    let sql = format!(
        "SELECT seq, session_id, threads.name, at, author, type, data FROM events
         JOIN sessions ON sessions.id = session_id JOIN threads ON threads.id = sessions.thread_id
         {filter} ORDER BY seq LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params)?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(read(row)?);
    }
    Ok(events)
}

fn read(row: &Row<'_>) -> Result<Event> {
    let session: String = row.get(1)?;
    let author: String = row.get(4)?;
    let data: String = row.get(6)?;
    Ok(Event {
        seq: row.get(0)?,
        session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
        name: row.get(2)?,
        at: timestamp(row.get(3)?),
        author: Author::parse(&author).ok_or_else(|| broken("author", &author))?,
        kind: row.get(5)?,
        data: serde_json::from_str(&data).map_err(|_| broken("event data", &data))?,
    })
}

impl Change<'_> {
    pub(super) fn tell(&mut self, fact: Fact) -> Result<()> {
        let at = jiff::Timestamp::now();
        let session = fact.session.to_string();
        let name: Option<String> = self
            .sql
            .prepare_cached("SELECT name FROM threads JOIN sessions ON thread_id = threads.id WHERE sessions.id = ?1")?
            .query_row([&session], |row| row.get(0))
            .map(Some)
            .or_else(|error| if error == rusqlite::Error::QueryReturnedNoRows { Ok(None) } else { Err(error) })?;
        // the session was removed meanwhile: there is nobody left to tell of
        let Some(name) = name else { return Err(super::Error::Gone) };
        self.sql
            .prepare_cached("INSERT INTO events (session_id, at, author, type, data) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![session, micros(at), fact.author.as_str(), fact.kind, fact.data.to_string()])?;
        self.events.push(Event {
            seq: self.sql.last_insert_rowid(),
            session: fact.session,
            name,
            at,
            author: fact.author,
            kind: fact.kind.to_owned(),
            data: fact.data,
        });
        Ok(())
    }
}
