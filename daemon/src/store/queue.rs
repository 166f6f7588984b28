//! The queue: groups of which only so many sessions run at once, first come first served.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::json;
use shared::event::Author;
use shared::id::{LeaseId, RuntimeId, SessionId};
use shared::runtime::{Launch, LostReason, RuntimeState};
use shared::session::Session;
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

/// A session whose turn has come.
pub struct Promoted {
    pub session: Session,
    /// Stored, and now to be started; none for a record alone.
    pub launch: Option<(RuntimeId, QueuedLaunch)>,
}

impl StoreHandle {
    /// Starts whatever has a free place, in order.
    pub async fn promote(&self, limits: BTreeMap<String, u64>, lease: LeaseId) -> Result<Vec<Promoted>> {
        // looked at first without writing: most of the time nobody waits
        let waits = self.read(|connection| Ok(!waiting_groups(connection)?.is_empty())).await?;
        if !waits {
            return Ok(Vec::new());
        }
        self.write(Durability::Power, move |change| change.promote(&limits, lease)).await
    }

    /// The daemon died when it was about to start this one: a new launch takes the place of the one that never ran.
    pub async fn launch_again(&self, session: SessionId, never_ran: RuntimeId, lease: LeaseId) -> Result<Option<Promoted>> {
        self.write(Durability::Power, move |change| {
            let text: Option<String> = change
                .sql
                .query_row("SELECT queued_launch FROM sessions WHERE id = ?1 AND status = 'active'", [session.to_string()], |row| {
                    row.get(0)
                })
                .optional()?
                .flatten();
            let Some(text) = text else { return Ok(None) };
            let queued: QueuedLaunch = parse("launch", &text)?;
            let state = RuntimeState::Lost { reason: LostReason::NeverStarted, at: jiff::Timestamp::now() };
            change
                .sql
                .execute("UPDATE runtimes SET is_live = 0, state = ?1 WHERE id = ?2", params![stored(&state)?, never_ran.to_string()])?;
            let loaded = load(&change.sql, session)?;
            let runtime = RuntimeId::new();
            change.store_launch(loaded.thread, session, runtime, &queued.launch, lease)?;
            Ok(Some(Promoted { session: load(&change.sql, session)?, launch: Some((runtime, queued)) }))
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
            change.sql.execute(
                "INSERT INTO groups (name, max_running) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET max_running = ?2",
                params![name, limit as i64],
            )?;
            Ok(())
        })
        .await
    }

    pub async fn unset_group(&self, name: String) -> Result<()> {
        self.write(Durability::Power, move |change| {
            if change.sql.execute("DELETE FROM groups WHERE name = ?1", [&name])? == 0 {
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
    /// Whether a newcomer has to wait: no place is free, or others wait already.
    pub(super) fn is_full(&self, group: &str, limits: &BTreeMap<String, u64>) -> Result<bool> {
        let (limit, _) = limit_of(&self.sql, group, limits)?;
        let (running, queued) = standing(&self.sql, group)?;
        Ok(queued > 0 || running >= limit)
    }

    fn promote(&mut self, limits: &BTreeMap<String, u64>, lease: LeaseId) -> Result<Vec<Promoted>> {
        let mut promoted = Vec::new();
        for group in waiting_groups(&self.sql)? {
            let (limit, _) = limit_of(&self.sql, &group, limits)?;
            let (running, _) = standing(&self.sql, &group)?;
            let free = limit.saturating_sub(running);
            let next: Vec<(String, Option<String>)> = self
                .sql
                .prepare_cached(
                    "SELECT id, queued_launch FROM sessions WHERE group_name = ?1 AND status = 'queued'
                     ORDER BY created_at, id LIMIT ?2",
                )?
                .query_map(params![group, free as i64], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            for (id, launch) in next {
                let session = SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?;
                let launch: Option<QueuedLaunch> = launch.map(|text| parse("launch", &text)).transpose()?;
                promoted.push(self.promote_one(session, launch, &group, lease)?);
            }
        }
        Ok(promoted)
    }

    fn promote_one(&mut self, session: SessionId, queued: Option<QueuedLaunch>, group: &str, lease: LeaseId) -> Result<Promoted> {
        self.start_queued(session)?;
        let loaded = load(&self.sql, session)?;
        let mut data = json!({"group": group, "task": loaded.task, "workspace": loaded.workspace});
        let launch = match queued {
            Some(queued) => {
                let runtime = RuntimeId::new();
                data["command"] = json!(queued.launch.argv);
                data["workspace"] = json!(queued.launch.cwd);
                self.store_launch(loaded.thread, session, runtime, &queued.launch, lease)?;
                Some((runtime, queued))
            }
            None => None,
        };
        self.tell(Fact::new(session, Author::Daemon, "start", data))?;
        Ok(Promoted { session: load(&self.sql, session)?, launch })
    }
}
