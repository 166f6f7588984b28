//! The queue: groups of which only so many sessions run at once, first come first served.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::json;
use shared::event::Author;
use shared::id::{LeaseId, RuntimeId, SessionId};
use shared::runtime::{Launch, LostReason, RuntimeState};
use shared::session::{Session, Status};
use shared::stats::{Group, LimitSource};

use super::session::load;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, broken, json as stored, parse};

/// A group nobody has set a limit for runs one session at a time.
const DEFAULT_LIMIT: u64 = 1;

/// What a queued session starts when its turn comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueuedLaunch {
    pub launch: Launch,
    pub umask: Option<u32>,
}

/// Whose turn it was, and what came of it.
pub struct Promotion {
    pub session: SessionId,
    pub outcome: Result<Option<Promoted>>,
}

/// A session whose turn has come.
pub struct Promoted {
    pub session: Session,
    /// The thread's last program still runs, and is this session's now.
    pub adopted: Vec<RuntimeId>,
    /// Stored, and now to be started; none for a record alone.
    pub launch: Option<(RuntimeId, QueuedLaunch)>,
}

impl StoreHandle {
    /// Gives the next free place to whoever waits longest for it, these left aside; `None` when nobody has one.
    pub async fn promote(&self, limits: BTreeMap<String, u64>, lease: LeaseId, aside: Vec<SessionId>) -> Result<Option<Promotion>> {
        let again = limits.clone();
        // looked at first without writing: most of the time nobody waits
        let next = self.read(move |connection| next_in_line(connection, &limits, &aside)).await?;
        let Some(session) = next else { return Ok(None) };
        // each in a transaction of its own: what cannot be started holds up nobody else
        let outcome = self.write(Durability::Power, move |change| change.promote(session, lease, &again)).await;
        Ok(Some(Promotion { session, outcome }))
    }

    /// The daemon died when it was about to start this one: a new launch takes the place of the one that never ran.
    pub async fn launch_again(&self, session: SessionId, never_ran: RuntimeId, lease: LeaseId) -> Result<Option<Promoted>> {
        self.write(Durability::Power, move |change| {
            let text: Option<String> = change
                .query_row(
                    "SELECT queued_launch FROM sessions WHERE id = ?1 AND status = 'active'
                         AND NOT EXISTS (SELECT 1 FROM runtimes WHERE runtimes.id = ?2 AND ending IS NOT NULL)",
                    params![session.to_string(), never_ran.to_string()],
                    |row| row.get(0),
                )
                .optional()?
                .flatten();
            let Some(text) = text else { return Ok(None) };
            let queued: QueuedLaunch = parse("launch", &text)?;
            let state = RuntimeState::Lost { reason: LostReason::NeverStarted, at: jiff::Timestamp::now() };
            change.execute("UPDATE runtimes SET is_live = 0, state = ?1 WHERE id = ?2", params![stored(&state)?, never_ran.to_string()])?;
            let loaded = load(&change.sql, session)?;
            let runtime = RuntimeId::new();
            change.store_launch(loaded.thread, session, runtime, &queued.launch, lease)?;
            Ok(Some(Promoted { session: load(&change.sql, session)?, adopted: Vec::new(), launch: Some((runtime, queued)) }))
        })
        .await
    }

    pub async fn groups(&self, limits: BTreeMap<String, u64>) -> Result<Vec<Group>> {
        self.read(move |connection| {
            let names: Vec<String> = connection
                .prepare_cached(
                    "SELECT name FROM groups UNION SELECT DISTINCT group_name FROM sessions
                     WHERE group_name IS NOT NULL AND status IN ('queued', 'active', 'paused') ORDER BY 1",
                )?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let mut all: Vec<String> = names.into_iter().chain(limits.keys().cloned()).collect();
            all.sort();
            all.dedup();
            all.into_iter()
                .map(|name| {
                    let (limit, source) = limit_of(connection, &name, &limits)?;
                    let (running, queued) = standing(connection, &name)?;
                    Ok(Group { name, limit, source, running, queued })
                })
                .collect()
        })
        .await
    }

    pub async fn set_group(&self, name: String, limit: u64) -> Result<()> {
        self.write(Durability::Power, move |change| {
            change.execute(
                "INSERT INTO groups (name, max_running) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET max_running = ?2",
                params![name, limit as i64],
            )?;
            Ok(())
        })
        .await
    }

    pub async fn unset_group(&self, name: String) -> Result<()> {
        self.write(Durability::Power, move |change| {
            if change.execute("DELETE FROM groups WHERE name = ?1", [&name])? == 0 {
                return Err(Error::NotFound(format!("no limit was set for a group {name}: `sessions-tui group ls` shows them")));
            }
            Ok(())
        })
        .await
    }
}

fn waiting_groups(connection: &Connection) -> Result<Vec<String>> {
    Ok(connection
        .prepare_cached("SELECT DISTINCT group_name FROM sessions WHERE status = 'queued' AND group_name IS NOT NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?)
}

/// What was set by command wins over the settings.
fn limit_of(connection: &Connection, group: &str, limits: &BTreeMap<String, u64>) -> Result<(u64, LimitSource)> {
    let set: Option<i64> =
        connection.prepare_cached("SELECT max_running FROM groups WHERE name = ?1")?.query_row([group], |row| row.get(0)).optional()?;
    Ok(match (set, limits.get(group)) {
        (Some(limit), _) => (limit as u64, LimitSource::Command),
        (None, Some(limit)) => (*limit, LimitSource::Config),
        (None, None) => (DEFAULT_LIMIT, LimitSource::Default),
    })
}

/// How many of a group have a place, and how many wait. A paused one keeps its place: its program is still there.
fn standing(connection: &Connection, group: &str) -> Result<(u64, u64)> {
    Ok(connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE status <> 'queued'), count(*) FILTER (WHERE status = 'queued') FROM sessions
             WHERE group_name = ?1 AND status IN ('queued', 'active', 'paused')",
        )?
        .query_row([group], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))?)
}

impl Change<'_> {
    /// Refuses what would be one too many in a group: an ended session that wants to go on.
    pub(super) fn refuse_if_crowded(&self, session: SessionId, limits: &BTreeMap<String, u64>) -> Result<()> {
        let group: Option<String> =
            self.query_row("SELECT group_name FROM sessions WHERE id = ?1", [session.to_string()], |row| row.get(0))?;
        let Some(group) = group else { return Ok(()) };
        let (limit, _) = limit_of(&self.sql, &group, limits)?;
        let (running, _) = standing(&self.sql, &group)?;
        if running >= limit {
            return Err(Error::Refused(format!(
                "cannot resume: group {group} is full ({running} of {limit}); wait for a place, or `sessions-tui group set {group} --limit {}`",
                limit + 1
            )));
        }
        Ok(())
    }

    /// Whether a newcomer has to wait: no place is free, or others wait already.
    pub(super) fn is_full(&self, group: &str, limits: &BTreeMap<String, u64>) -> Result<bool> {
        let (limit, _) = limit_of(&self.sql, group, limits)?;
        let (running, queued) = standing(&self.sql, group)?;
        Ok(queued > 0 || running >= limit)
    }

    /// `None` if it does not wait any more, or its place is taken.
    fn promote(&mut self, session: SessionId, lease: LeaseId, limits: &BTreeMap<String, u64>) -> Result<Option<Promoted>> {
        let waiting = load(&self.sql, session)?;
        let group = waiting.group.as_deref().unwrap_or_default();
        if waiting.status != Status::Queued || standing(&self.sql, group)?.0 >= limit_of(&self.sql, group, limits)?.0 {
            return Ok(None);
        }
        let queued: Option<String> =
            self.query_row("SELECT queued_launch FROM sessions WHERE id = ?1", [session.to_string()], |row| row.get(0))?;
        let mut queued: Option<QueuedLaunch> = queued.map(|text| parse("launch", &text)).transpose()?;
        if let Some(queued) = &mut queued {
            // beside the launch in databases of before
            queued.launch.umask = queued.launch.umask.or(queued.umask);
        }
        let program = self.take_over_program(waiting.thread, &waiting.name, session)?;
        let mut adopted = self.take_over_interpreters(waiting.thread, session)?;
        adopted.extend(program);
        self.start_queued(session)?;
        let mut data = json!({"group": waiting.group, "task": waiting.task, "workspace": waiting.workspace});
        let launch = match (program, queued) {
            (Some(runtime), _) => {
                data["continues"] = json!(runtime);
                None
            }
            (None, Some(queued)) => {
                let runtime = RuntimeId::new();
                data["command"] = json!(queued.launch.argv);
                data["workspace"] = json!(queued.launch.cwd);
                self.store_launch(waiting.thread, session, runtime, &queued.launch, lease)?;
                Some((runtime, queued))
            }
            (None, None) => None,
        };
        self.tell(Fact::new(session, Author::Daemon, "start", data))?;
        Ok(Some(Promoted { session: load(&self.sql, session)?, adopted, launch }))
    }
}

/// The one that waits longest in any group with a free place.
fn next_in_line(connection: &Connection, limits: &BTreeMap<String, u64>, aside: &[SessionId]) -> Result<Option<SessionId>> {
    for group in waiting_groups(connection)? {
        let (limit, _) = limit_of(connection, &group, limits)?;
        let (running, _) = standing(connection, &group)?;
        if running >= limit {
            continue;
        }
        let mut statement = connection
            .prepare_cached("SELECT id FROM sessions WHERE group_name = ?1 AND status = 'queued' ORDER BY created_at, id LIMIT ?2")?;
        let mut rows = statement.query(params![group, aside.len() as i64 + 1])?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            let session = SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?;
            if !aside.contains(&session) {
                return Ok(Some(session));
            }
        }
    }
    Ok(None)
}
