//! What a search reads from the database: page by page, newest first, each page a short turn. What is looked for is not known
//! here; texts are given as they are stored.

use std::fmt::Write;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use shared::event::Author;
use shared::exec::Language;
use shared::filter::Filter;
use shared::id::{ExecId, Offset, RuntimeId, Seq, SessionId, ThreadId};
use shared::runtime::{ExitStatus, RuntimeState};

use super::session::conditions;
use super::{Result, StoreHandle, broken, parse, timestamp};

/// Rows of one turn, and bytes of their texts.
const ROWS: i64 = 500;
const BYTES: usize = 1 << 20;

/// Sessions of one turn when only their order is asked.
const ORDERED: i64 = 2000;

/// Whose sessions are meant.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    All,
    Thread(ThreadId),
    Session(SessionId),
}

/// A session with what belongs to it, except for its events and calls.
pub struct SearchedSession {
    pub id: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub task: Option<String>,
    pub result: Option<String>,
    pub error: Option<String>,
    pub created_at: jiff::Timestamp,
    pub ended_at: Option<jiff::Timestamp>,
    pub updated_at: jiff::Timestamp,
    /// Newest first.
    pub runtimes: Vec<SearchedRuntime>,
    pub has_execs: bool,
}

#[derive(Clone)]
pub struct SearchedRuntime {
    pub id: RuntimeId,
    pub language: Option<Language>,
    pub created_at: jiff::Timestamp,
    pub exit_code: Option<i32>,
    pub recorded_bytes: u64,
}

pub struct SearchedEvent {
    pub at: jiff::Timestamp,
    pub author: Author,
    pub kind: String,
    pub data: String,
}

pub struct SearchedExec {
    pub id: ExecId,
    pub runtime: RuntimeId,
    pub language: Language,
    pub code: String,
    pub author: Author,
    pub exit_code: Option<i32>,
    pub at: jiff::Timestamp,
    pub start: Option<Offset>,
}

/// Some rows, and where the next ones are.
pub struct Page<T, C> {
    pub rows: Vec<T>,
    pub next: Option<C>,
}

/// What is known of a call beside its code.
#[derive(Clone, Debug)]
pub struct ExecFacts {
    pub id: ExecId,
    pub author: Author,
    pub exit_code: Option<i32>,
}

/// Where the next page of calls begins.
pub type ExecCursor = (i64, String);

impl StoreHandle {
    /// The sessions that are meant, and until when something happened in each, as far as the database knows; latest first.
    pub async fn search_order(&self, filter: &Filter, scope: Scope) -> Result<Vec<(SessionId, jiff::Timestamp)>> {
        let mut found: Vec<(SessionId, jiff::Timestamp)> = Vec::new();
        loop {
            let (filter, last) = (filter.clone(), found.last().map(|(id, _)| *id));
            let page = self.read(move |connection| order_page(connection, &filter, scope, last)).await?;
            let is_last = page.len() < ORDERED as usize;
            found.extend(page);
            if is_last {
                break;
            }
        }
        found.sort_by_key(|(id, at)| std::cmp::Reverse((*at, *id)));
        Ok(found)
    }

    /// Some of these sessions, from the first on, until a turn is full; and how many of them that were. Those that are gone are
    /// left out.
    pub async fn searched_sessions(&self, ids: Vec<SessionId>) -> Result<(Vec<SearchedSession>, usize)> {
        self.read(move |connection| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            for (count, id) in ids.iter().enumerate() {
                if bytes > BYTES {
                    return Ok((found, count));
                }
                if let Some(session) = searched_session(connection, *id)? {
                    bytes += [&session.task, &session.result, &session.error].into_iter().flatten().map(String::len).sum::<usize>();
                    found.push(session);
                }
            }
            Ok((found, ids.len()))
        })
        .await
    }

    /// Events of a session before this one, newest first. The beginnings of calls are left out: their code is found by itself.
    pub async fn searched_events(&self, session: SessionId, before: Option<Seq>) -> Result<Page<SearchedEvent, Seq>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT seq, at, author, type, data FROM events INDEXED BY events_by_session
                 WHERE session_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3",
            )?;
            let mut rows = statement.query(params![session.to_string(), before.unwrap_or(Seq::MAX), ROWS])?;
            let (mut page, mut bytes, mut count, mut last) = (Vec::new(), 0, 0, 0);
            while let Some(row) = rows.next()? {
                count += 1;
                last = row.get(0)?;
                let event = read_event(row)?;
                bytes += event.data.len();
                if event.kind != "exec_started" {
                    page.push(event);
                }
                if bytes > BYTES {
                    return Ok(Page { rows: page, next: Some(last) });
                }
            }
            Ok(Page { rows: page, next: (count == ROWS).then_some(last) })
        })
        .await
    }

    /// Calls of a session before this one, newest first.
    pub async fn searched_execs(&self, session: SessionId, before: Option<ExecCursor>) -> Result<Page<SearchedExec, ExecCursor>> {
        self.read(move |connection| {
            let (at, id) = before.unwrap_or((i64::MAX, String::new()));
            let mut statement = connection.prepare_cached(
                "SELECT id, runtime_id, language, code, author, exit_code, coalesce(started_at, asked_at), start_offset, asked_at FROM execs
                 WHERE session_id = ?1 AND (asked_at, id) < (?2, ?3) ORDER BY asked_at DESC, id DESC LIMIT ?4",
            )?;
            let mut rows = statement.query(params![session.to_string(), at, id, ROWS])?;
            let (mut page, mut bytes, mut last) = (Vec::new(), 0, None);
            while let Some(row) = rows.next()? {
                let exec = read_exec(row)?;
                bytes += exec.code.len();
                last = Some((row.get(8)?, exec.id.to_string()));
                page.push(exec);
                if bytes > BYTES {
                    return Ok(Page { rows: page, next: last });
                }
            }
            let is_full = page.len() == ROWS as usize;
            Ok(Page { rows: page, next: last.filter(|_| is_full) })
        })
        .await
    }

    pub async fn exec_facts(&self, id: ExecId) -> Result<Option<ExecFacts>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached("SELECT id, author, exit_code FROM execs WHERE id = ?1")?;
            let mut rows = statement.query([id.to_string()])?;
            rows.next()?.map(read_facts).transpose()
        })
        .await
    }

    /// The call whose output is at this place of a runtime's recording.
    pub async fn exec_at(&self, thread: ThreadId, runtime: RuntimeId, offset: Offset) -> Result<Option<ExecFacts>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, author, exit_code FROM execs WHERE session_id IN (SELECT id FROM sessions WHERE thread_id = ?1)
                 AND runtime_id = ?2 AND start_offset < ?3 AND end_offset >= ?3 LIMIT 1",
            )?;
            let mut rows = statement.query(params![thread.to_string(), runtime.to_string(), offset as i64])?;
            rows.next()?.map(read_facts).transpose()
        })
        .await
    }

    /// The parts of a runtime's recording that belong to calls of this author and exit code, in order.
    pub async fn exec_spans(
        &self,
        thread: ThreadId,
        runtime: RuntimeId,
        exit_code: Option<i32>,
        author: Option<Author>,
    ) -> Result<Vec<(Offset, Offset)>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT start_offset, end_offset FROM execs WHERE session_id IN (SELECT id FROM sessions WHERE thread_id = ?1)
                 AND runtime_id = ?2 AND start_offset IS NOT NULL AND end_offset IS NOT NULL
                 AND (?3 IS NULL OR exit_code = ?3) AND (?4 IS NULL OR author = ?4) ORDER BY start_offset",
            )?;
            let values = params![thread.to_string(), runtime.to_string(), exit_code, author.map(Author::as_str)];
            let spans = statement.query_map(values, |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))?;
            Ok(spans.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// The session a runtime belongs to.
    pub async fn session_of_runtime(&self, runtime: RuntimeId) -> Result<Option<SearchedSession>> {
        self.read(move |connection| {
            let id: Option<String> = connection
                .prepare_cached("SELECT session_id FROM runtimes WHERE id = ?1")?
                .query_row([runtime.to_string()], |row| row.get(0))
                .optional()?;
            match id {
                Some(id) => searched_session(connection, SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?),
                None => Ok(None),
            }
        })
        .await
    }

    /// Bytes that were recorded of runtimes that are over.
    pub async fn recorded_bytes(&self, filter: Filter, scope: Scope) -> Result<u64> {
        self.read(move |connection| {
            let (clauses, values) = scoped(&filter, scope);
            let sql = format!("SELECT total(recorded_bytes) FROM runtimes WHERE session_id IN (SELECT id FROM sessions WHERE {clauses})");
            let sum: f64 = connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
            Ok(sum as u64)
        })
        .await
    }
}

fn scoped(filter: &Filter, scope: Scope) -> (String, Vec<Sql>) {
    let (mut clauses, mut values) = conditions(filter);
    let (column, id) = match scope {
        Scope::All => return (clauses, values),
        Scope::Thread(thread) => ("thread_id", thread.to_string()),
        Scope::Session(session) => ("id", session.to_string()),
    };
    values.push(Sql::Text(id));
    let _ = write!(clauses, " AND {column} = ?{}", values.len());
    (clauses, values)
}

fn order_page(
    connection: &Connection,
    filter: &Filter,
    scope: Scope,
    last: Option<SessionId>,
) -> Result<Vec<(SessionId, jiff::Timestamp)>> {
    let (mut clauses, mut values) = scoped(filter, scope);
    if let Some(last) = last {
        values.push(Sql::Text(last.to_string()));
        let _ = write!(clauses, " AND id < ?{}", values.len());
    }
    let sql = format!("SELECT id, max(last_activity_at, updated_at) FROM sessions WHERE {clauses} ORDER BY id DESC LIMIT {ORDERED}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        found.push((SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?, timestamp(row.get(1)?)));
    }
    Ok(found)
}

fn searched_session(connection: &Connection, id: SessionId) -> Result<Option<SearchedSession>> {
    let key = id.to_string();
    let mut statement = connection.prepare_cached(
        "SELECT thread_id, name, task, result, error, sessions.created_at, ended_at, updated_at,
            EXISTS (SELECT 1 FROM execs WHERE session_id = sessions.id)
         FROM sessions JOIN threads ON threads.id = thread_id WHERE sessions.id = ?1",
    )?;
    let mut rows = statement.query([&key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let thread: String = row.get(0)?;
    Ok(Some(SearchedSession {
        id,
        thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
        name: row.get(1)?,
        task: row.get(2)?,
        result: row.get(3)?,
        error: row.get(4)?,
        created_at: timestamp(row.get(5)?),
        ended_at: row.get::<_, Option<i64>>(6)?.map(timestamp),
        updated_at: timestamp(row.get(7)?),
        has_execs: row.get(8)?,
        runtimes: searched_runtimes(connection, &key)?,
    }))
}

fn searched_runtimes(connection: &Connection, session: &str) -> Result<Vec<SearchedRuntime>> {
    let mut statement = connection.prepare_cached(
        "SELECT runtimes.id, kind, created_at, state, recorded_bytes FROM runtimes LEFT JOIN terminals ON terminals.id = terminal_id
         WHERE session_id = ?1 ORDER BY created_at DESC, runtimes.id DESC",
    )?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, kind, state): (String, Option<String>, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
        let exit_code = match parse::<RuntimeState>("runtime state", &state)? {
            RuntimeState::Exited { status: ExitStatus::Code(code), .. } => Some(code),
            // as shells count them
            RuntimeState::Exited { status: ExitStatus::Signal(signal), .. } => Some(128 + signal),
            _ => None,
        };
        found.push(SearchedRuntime {
            id: RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?,
            language: kind.as_deref().and_then(Language::parse),
            created_at: timestamp(row.get(2)?),
            exit_code,
            recorded_bytes: row.get::<_, i64>(4)? as u64,
        });
    }
    Ok(found)
}

fn read_event(row: &Row<'_>) -> Result<SearchedEvent> {
    Ok(SearchedEvent { at: timestamp(row.get(1)?), author: read_author(&row.get::<_, String>(2)?)?, kind: row.get(3)?, data: row.get(4)? })
}

fn read_exec(row: &Row<'_>) -> Result<SearchedExec> {
    let (id, runtime, language): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(SearchedExec {
        id: ExecId::parse(&id).ok_or_else(|| broken("exec id", &id))?,
        runtime: RuntimeId::parse(&runtime).ok_or_else(|| broken("runtime id", &runtime))?,
        language: Language::parse(&language).ok_or_else(|| broken("language", &language))?,
        code: row.get(3)?,
        author: read_author(&row.get::<_, String>(4)?)?,
        exit_code: row.get(5)?,
        at: timestamp(row.get(6)?),
        start: row.get::<_, Option<i64>>(7)?.map(|at| at as u64),
    })
}

fn read_facts(row: &Row<'_>) -> Result<ExecFacts> {
    let id: String = row.get(0)?;
    Ok(ExecFacts {
        id: ExecId::parse(&id).ok_or_else(|| broken("exec id", &id))?,
        author: read_author(&row.get::<_, String>(1)?)?,
        exit_code: row.get(2)?,
    })
}

fn read_author(text: &str) -> Result<Author> {
    Author::parse(text).ok_or_else(|| broken("author", text))
}
