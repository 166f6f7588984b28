//! Sessions: listed, searched and shown with the runtime behind their terminal.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params};
use shared::filter::{Filter, Order};
use shared::id::{RuntimeId, SessionId, ThreadId};
use shared::message::SessionLine;
use shared::runtime::{Launch, RuntimeState};
use shared::session::{Session, Status};

use super::{Error, Result, StoreHandle, broken, micros, parse, timestamp};
use crate::attention;

/// Ended sessions stay in the plain `ls` for a day: long enough to see how last night's work went.
const RECENT_MICROS: i64 = 24 * 3600 * 1_000_000;

/// A session with its thread and the latest runtime of its terminal; interpreters are not its program.
const SELECT: &str = "
    SELECT sessions.id, thread_id, name, workspace, user, channel, mode, task, status, status_reason,
        sessions.created_at, updated_at, last_activity_at, ended_at, iterations, max_iterations, context, result, error, metadata,
        threads.task_count, runtimes.id, runtimes.launch, runtimes.state, policy, group_name,
        CASE WHEN status = 'queued' THEN
            (SELECT count(*) FROM sessions AS ahead WHERE ahead.group_name = sessions.group_name AND ahead.status = 'queued'
                AND (ahead.created_at, ahead.id) <= (sessions.created_at, sessions.id)) END,
        started_at, queued_launch, seen_at, restore IS NOT NULL,
        (SELECT value FROM remembered WHERE what = 'damaged:' || sessions.id), sessions.number
    FROM sessions JOIN threads ON threads.id = thread_id
    LEFT JOIN runtimes ON runtimes.id =
        (SELECT latest.id FROM runtimes AS latest LEFT JOIN terminals ON terminals.id = latest.terminal_id
            WHERE latest.session_id = sessions.id AND coalesce(kind, 'terminal') = 'terminal'
            ORDER BY latest.created_at DESC, latest.id DESC LIMIT 1)";

impl StoreHandle {
    pub async fn session(&self, id: SessionId) -> Result<Session> {
        self.read(move |connection| load(connection, id)).await
    }

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
        // a search is asked once; the plain list again and again
        if !filter.searches() {
            let listed = super::Listed { at, filter, sessions: Arc::clone(&sessions) };
            *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(listed);
        }
        Ok(sessions)
    }

    /// Every session of a session's thread in one line, newest first.
    pub async fn lines_of_thread(&self, session: SessionId) -> Result<Vec<SessionLine>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, status, status_reason, task, task_count, created_at, last_activity_at, ended_at FROM sessions
                 WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) ORDER BY created_at DESC, id DESC",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let mut lines = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, status): (String, String) = (row.get(0)?, row.get(1)?);
                lines.push(SessionLine {
                    id: SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?,
                    status: Status::parse(&status).ok_or_else(|| broken("status", &status))?,
                    status_reason: row.get(2)?,
                    task: row.get(3)?,
                    task_count: row.get::<_, i64>(4)? as u64,
                    created_at: timestamp(row.get(5)?),
                    last_activity_at: timestamp(row.get(6)?),
                    ended_at: row.get::<_, Option<i64>>(7)?.map(timestamp),
                });
            }
            Ok(lines)
        })
        .await
    }
}

pub(super) fn load(connection: &Connection, id: SessionId) -> Result<Session> {
    let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE sessions.id = ?1"))?;
    let mut rows = statement.query(params![id.to_string()])?;
    match rows.next()? {
        Some(row) => read(row),
        None => Err(Error::Gone),
    }
}

/// What a filter means in SQL; only what is given is asked, so that the database can choose the index that fits.
pub(super) fn conditions(filter: &Filter) -> (String, Vec<Sql>) {
    let mut clauses: Vec<String> = Vec::new();
    let mut values: Vec<Sql> = Vec::new();
    let mut add = |clause: &str, value: Sql| {
        values.push(value);
        clauses.push(clause.replace('?', &format!("?{}", values.len())));
    };
    let text = |value: &str| Sql::Text(value.to_owned());
    // labels are stored in this form
    let label = |value: &str| Sql::Text(shared::text::composed(value));
    if let Some(user) = &filter.user {
        add("thread_id IN (SELECT id FROM threads WHERE user = ?)", label(user));
    }
    if let Some(channel) = &filter.channel {
        add("thread_id IN (SELECT id FROM threads WHERE channel = ?)", label(channel));
    }
    if let Some(thread) = &filter.thread {
        add("thread_id IN (SELECT id FROM threads WHERE name = ?)", label(thread));
    }
    if let Some(workspace) = &filter.workspace {
        add("thread_id IN (SELECT id FROM threads WHERE workspace = ?)", text(workspace));
    }
    if let Some(mode) = &filter.mode {
        add("mode = ?", label(mode));
    }
    if let Some(group) = &filter.group {
        add("group_name = ?", label(group));
    }
    if let Some(after) = filter.created_after {
        add("sessions.created_at >= ?", Sql::Integer(micros(after)));
    }
    if let Some(before) = filter.created_before {
        add("sessions.created_at < ?", Sql::Integer(micros(before)));
    }
    if let Some(words) = &filter.text {
        // LIKE takes no notice of case; what it takes for wildcards is meant as it is
        let pattern = words.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        add("task LIKE ? ESCAPE '\\'", Sql::Text(format!("%{pattern}%")));
    }
    if !filter.statuses.is_empty() {
        let wanted: Vec<String> = filter.statuses.iter().map(|status| format!("'{status}'")).collect();
        clauses.push(format!("status IN ({})", wanted.join(", ")));
    }
    let clauses = if clauses.is_empty() { "TRUE".to_owned() } else { clauses.join(" AND ") };
    (clauses, values)
}

/// The plain list: what lives, and what ended within a day; of each thread the latest.
const PRESENT: &str = "id IN (SELECT id FROM sessions WHERE status IN ('queued', 'active', 'paused')
        UNION SELECT id FROM sessions WHERE ended_at > ?1)
    AND NOT EXISTS (SELECT 1 FROM sessions AS later WHERE later.thread_id = sessions.thread_id
        AND (later.created_at, later.id) > (sessions.created_at, sessions.id))";

pub(super) fn list(connection: &Connection, filter: &Filter) -> Result<Vec<Session>> {
    let (clauses, mut values) = if filter.searches() {
        conditions(filter)
    } else {
        (PRESENT.to_owned(), vec![Sql::Integer(micros(jiff::Timestamp::now()) - RECENT_MICROS)])
    };
    let order = match filter.order {
        Order::NewestLast | Order::NewestFirst => "sessions.number DESC, sessions.id DESC",
        Order::OldestFirst => "sessions.number, sessions.id",
        Order::ActiveFirst => "last_activity_at DESC, sessions.id DESC",
    };
    values.push(Sql::Integer(filter.limit.map_or(-1, i64::from)));
    // which ones is decided first, by indexes alone where they can; only those are read
    let mut statement = connection.prepare_cached(&format!(
        "{SELECT} WHERE sessions.id IN (SELECT id FROM sessions WHERE {clauses} ORDER BY {order} LIMIT ?{}) ORDER BY {order}",
        values.len()
    ))?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(read(row)?);
    }
    if filter.order == Order::NewestLast {
        sessions.reverse();
    }
    Ok(sessions)
}

fn read(row: &Row<'_>) -> Result<Session> {
    let (id, thread, status): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(8)?);
    let (context, metadata, policy): (String, String, String) = (row.get(16)?, row.get(19)?, row.get(24)?);
    let runtime: Option<String> = row.get(21)?;
    let launch: Option<String> = row.get(22)?;
    let state: Option<String> = row.get(23)?;
    let queued: Option<String> = row.get(28)?;
    let launch: Option<Launch> = match (launch, queued) {
        (Some(text), _) => Some(parse("launch", &text)?),
        (None, Some(text)) => Some(parse::<super::QueuedLaunch>("launch", &text)?.launch),
        (None, None) => None,
    };
    let status = Status::parse(&status).ok_or_else(|| broken("status", &status))?;
    let reason: Option<String> = row.get(9)?;
    let time = |column: usize| -> Result<Option<jiff::Timestamp>> { Ok(row.get::<_, Option<i64>>(column)?.map(timestamp)) };
    let (ended_at, seen_at) = (time(13)?, time(29)?);
    let needs = ended_at.and_then(|ended_at| attention::ended(status, reason.as_deref(), ended_at, seen_at));
    let runtime_state: Option<RuntimeState> = state.map(|text| parse("runtime state", &text)).transpose()?;
    Ok(Session {
        id: SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?,
        thread: ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?,
        name: row.get(2)?,
        workspace: row.get(3)?,
        user: row.get(4)?,
        channel: row.get(5)?,
        mode: row.get(6)?,
        task: row.get(7)?,
        status,
        status_reason: reason,
        created_at: timestamp(row.get(10)?),
        number: row.get::<_, i64>(32)?.unsigned_abs(),
        updated_at: timestamp(row.get(11)?),
        last_activity_at: timestamp(row.get(12)?),
        started_at: row.get::<_, Option<i64>>(27)?.map(timestamp),
        ended_at,
        iterations: row.get::<_, i64>(14)? as u64,
        max_iterations: row.get::<_, i64>(15)? as u64,
        context: parse("context", &context)?,
        result: row.get(17)?,
        error: row.get(18)?,
        metadata: parse("metadata", &metadata)?,
        policy: parse("policy", &policy)?,
        task_count: row.get::<_, i64>(20)? as u64,
        group: row.get(25)?,
        queue_place: row.get::<_, Option<i64>>(26)?.map(|place| place as u64),
        runtime: runtime.as_deref().and_then(RuntimeId::parse),
        size: launch.as_ref().map(|launch| launch.size),
        command: launch.map(|launch| launch.argv).unwrap_or_default(),
        runtime_state,
        languages: Vec::new(),
        clients: 0,
        needs,
        restorable: row.get(30)?,
        damaged: row.get(31)?,
        unreachable: None,
    })
}
