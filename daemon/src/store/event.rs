//! Events: told inside a change, read back by number.

use rusqlite::{Connection, OptionalExtension, Row, params};
use shared::event::{Author, Event};
use shared::id::{Offset, RuntimeId, Seq, SessionId, ThreadId};
use shared::runtime::Hole;

use super::{Change, Durability, Fact, Result, StoreHandle, broken, micros, timestamp};

/// Rows of one read: enough to be quick, few enough to stay small.
const BATCH: i64 = 500;

impl StoreHandle {
    /// A fact that changes nothing else (attach, detach).
    pub async fn tell(&self, fact: Fact) -> Result<()> {
        self.write_beside(Durability::Process, move |change| change.tell(fact)).await
    }

    /// Tells of a gap in a recording; `false` if that one has been told before.
    pub async fn tell_gap(&self, fact: Fact, runtime: RuntimeId, offset: Offset) -> Result<bool> {
        self.write_beside(Durability::Process, move |change| {
            let is_known = gaps(&change.sql, fact.session)?.iter().any(|(of, hole)| *of == runtime && hole.offset == offset);
            if !is_known {
                change.tell(fact)?;
            }
            Ok(!is_known)
        })
        .await
    }

    /// Gaps that were found in a session's recordings, each with its runtime.
    pub async fn gaps_of(&self, session: SessionId) -> Result<Vec<(RuntimeId, Hole)>> {
        self.read(move |connection| gaps(connection, session)).await
    }

    pub async fn last_seq(&self) -> Result<Seq> {
        self.read(|connection| Ok(connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?)).await
    }

    /// A batch of events after `since`, of one session's thread or of all.
    pub async fn events_after(&self, session: Option<SessionId>, since: Seq) -> Result<Vec<Event>> {
        self.read(move |connection| match session {
            Some(session) => of_thread(connection, session, since),
            None => query(connection, "WHERE seq > ?1 ORDER BY seq LIMIT ?2", params![since, BATCH]),
        })
        .await
    }

    /// The last events of a session, newest last.
    pub async fn recent_events(&self, session: SessionId, count: u32) -> Result<Vec<Event>> {
        let mut events = self.events_before(session, Seq::MAX, count).await?;
        events.reverse();
        Ok(events)
    }

    /// The last events of a session before a number, newest first.
    pub async fn events_before(&self, session: SessionId, before: Seq, count: u32) -> Result<Vec<Event>> {
        self.read(move |connection| {
            let filter = "WHERE session_id = ?1 AND seq < ?3 ORDER BY seq DESC LIMIT ?2";
            query(connection, filter, params![session.to_string(), count, before])
        })
        .await
    }
}

fn gaps(connection: &Connection, session: SessionId) -> Result<Vec<(RuntimeId, Hole)>> {
    let mut statement = connection.prepare_cached("SELECT data FROM events WHERE session_id = ?1 AND type = 'recording_gap'")?;
    let data = statement.query_map([session.to_string()], |row| row.get::<_, String>(0))?;
    Ok(data
        .filter_map(|data| {
            let data: serde_json::Value = serde_json::from_str(&data.ok()?).ok()?;
            Some((RuntimeId::parse(data.get("runtime")?.as_str()?)?, serde_json::from_value(data).ok()?))
        })
        .collect())
}

/// Each session's events are read by its own index, those with the earliest first: asking for all of them in order would sort
/// them anew for every batch, and following the order of all events would pass over those of everybody else.
fn of_thread(connection: &Connection, session: SessionId, since: Seq) -> Result<Vec<Event>> {
    let mut heads: Vec<(Seq, String)> = connection
        .prepare_cached(
            "SELECT (SELECT min(seq) FROM events WHERE session_id = sessions.id AND seq > ?2) AS head, id FROM sessions
             WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) AND head IS NOT NULL",
        )?
        .query_map(params![session.to_string(), since], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    heads.sort_unstable();
    let mut events: Vec<Event> = Vec::new();
    for (head, id) in heads {
        // a full batch that ends before this one begins needs nothing of it
        if events.len() >= BATCH as usize && events[BATCH as usize - 1].seq < head {
            break;
        }
        events.extend(query(
            connection,
            "INDEXED BY events_by_session WHERE session_id = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2",
            params![since, BATCH, id],
        )?);
        events.sort_unstable_by_key(|event| event.seq);
        events.truncate(BATCH as usize);
    }
    Ok(events)
}

fn query(connection: &Connection, filter: &str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<Event>> {
    // the name is looked up row by row, so that the order of the events is the order of the index
    let sql = format!(
        "SELECT seq, session_id,
            (SELECT name FROM threads WHERE id = (SELECT thread_id FROM sessions WHERE id = session_id)), at, author, type, data, n,
            (SELECT thread_id FROM sessions WHERE id = session_id)
         FROM events {filter}"
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
    let thread: String = row.get(8)?;
    Ok(Event {
        thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
        seq: row.get(0)?,
        n: row.get::<_, i64>(7)? as u64,
        session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
        name: row.get(2)?,
        at: timestamp(row.get(3)?),
        author: Author::parse(&author).ok_or_else(|| broken("author", &author))?,
        kind: row.get(5)?,
        data: serde_json::from_str(&data).map_err(|_| broken("event data", &data))?,
    })
}

impl Change<'_> {
    /// Stores a fact as the session's next event. What callers tell is activity; what the daemon tells is not.
    pub(super) fn tell(&mut self, fact: Fact) -> Result<()> {
        let at = jiff::Timestamp::now();
        let session = fact.session.to_string();
        let told: Option<(i64, String, String)> = if fact.author == Author::Daemon {
            self.sql
                .prepare_cached(
                    "UPDATE sessions SET event_count = event_count + 1 WHERE id = ?1
                     RETURNING event_count, (SELECT name FROM threads WHERE id = thread_id), thread_id",
                )?
                .query_row([&session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?
        } else {
            self.sql
                .prepare_cached(
                    "UPDATE sessions SET event_count = event_count + 1, last_activity_at = max(last_activity_at, ?2), idle_since = ?3
                     WHERE id = ?1 RETURNING event_count, (SELECT name FROM threads WHERE id = thread_id), thread_id",
                )?
                .query_row(params![session, micros(at), self.clock.now()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?
        };
        // the session was removed meanwhile: there is nobody left to tell of
        let Some((n, name, thread)) = told else { return Err(super::Error::Gone) };
        self.sql
            .prepare_cached("INSERT INTO events (session_id, at, author, type, data, n) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![session, micros(at), fact.author.as_str(), fact.kind, fact.data.to_string(), n])?;
        let event = Event {
            seq: self.sql.last_insert_rowid(),
            n: n as u64,
            session: fact.session,
            thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
            name,
            at,
            author: fact.author,
            kind: fact.kind.into_owned(),
            data: fact.data,
        };
        self.queue_deliveries(&event)?;
        self.events.push(event);
        Ok(())
    }
}
