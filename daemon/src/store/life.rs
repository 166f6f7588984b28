//! Changes of a session's status: each is judged and made in one transaction, with the event that tells of it.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};
use shared::event::Author;
use shared::id::{RuntimeId, SessionId};
use shared::session::{ITERATIONS, Session, Status};

use super::session::load;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, broken, micros};
use crate::clock::Steady;
use crate::lifecycle::{self, Step};
use crate::policy::{self, Verdict};

/// What is asked of a session.
#[derive(Clone, Debug)]
pub enum Asked {
    /// With everything that runs in it; what is typed meanwhile is kept, or not.
    Pause {
        reason: Option<String>,
        queues_input: bool,
    },
    /// `limits` are those of groups, as the settings have them.
    Resume {
        max_iterations: Option<u64>,
        limits: BTreeMap<String, u64>,
    },
    Complete {
        result: Option<String>,
    },
    Fail {
        error: String,
    },
}

/// What asking for an end came to.
pub enum EndAsked {
    /// These are to be ended, and the session ends with its program, which is one of them.
    Program(Vec<RuntimeId>),
    /// It has ended; these interpreters are to be ended too.
    Ended(Vec<RuntimeId>),
    /// It had ended before, and has no program.
    Nothing,
}

/// A session that has expired, and its programs, which are to be ended.
pub struct Expired {
    pub reason: &'static str,
    pub runtimes: Vec<RuntimeId>,
}

/// Runtimes whose end is decided.
#[derive(Default)]
struct Endings {
    /// One of them is the session's program.
    has_program: bool,
    runtimes: Vec<RuntimeId>,
}

/// What a step does to the row beside the status.
#[derive(Default)]
struct Words<'a> {
    reason: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
    /// Whoever asks for an end knows of it.
    is_known: bool,
}

/// A session's present standing.
pub(super) struct Standing {
    pub name: String,
    pub status: Status,
    pub reason: Option<String>,
    pub iterations: u64,
    pub max_iterations: u64,
}

impl Standing {
    /// Where a step leads from here, or a refusal.
    fn allow(&self, step: Step) -> Result<Status> {
        lifecycle::step(&self.name, self.status, self.reason.as_deref(), step).map_err(Error::Refused)
    }
}

impl StoreHandle {
    /// Does what is asked if the present status allows it; gives the session as it is then.
    pub async fn change_status(&self, session: SessionId, asked: Asked, author: Author) -> Result<Session> {
        self.write(Durability::Power, move |change| {
            change.obey(session, &asked, author)?;
            load(&change.sql, session)
        })
        .await
    }

    /// Counts an iteration; the one that uses up the budget ends the session.
    pub async fn iterate(&self, session: SessionId, data: serde_json::Map<String, Value>, author: Author) -> Result<Session> {
        let session = self
            .write(Durability::Process, move |change| {
                let standing = change.standing(session)?;
                standing.allow(Step::Iterate)?;
                let iteration = standing.iterations + 1;
                change.sql.prepare_cached("UPDATE sessions SET iterations = ?1, updated_at = ?2 WHERE id = ?3")?.execute(params![
                    iteration as i64,
                    micros(jiff::Timestamp::now()),
                    session.to_string()
                ])?;
                let mut data = data;
                data.insert("iteration".into(), json!(iteration));
                data.insert("max_iterations".into(), json!(standing.max_iterations));
                change.tell(Fact::new(session, author, "iteration", Value::Object(data)))?;
                if iteration >= standing.max_iterations {
                    let standing = Standing { iterations: iteration, ..standing };
                    change.step(session, &standing, Step::TimeOut, &Words { reason: Some(ITERATIONS), ..Words::default() })?;
                    // for review: nothing of it is lost, nothing of it goes on
                    change.freeze_runtimes(session, false)?;
                    let told = json!({"reason": ITERATIONS, "iterations": iteration, "max_iterations": standing.max_iterations});
                    change.tell(Fact::new(session, Author::Daemon, "timeout", told))?;
                }
                load(&change.sql, session)
            })
            .await?;
        if session.status.has_ended() {
            // iterations are many, their end is a lifecycle fact: this commit takes those before it to the disk
            self.write(Durability::Power, |change| change.remember("last_timeout", &change.clock.now().to_string())).await?;
        }
        Ok(session)
    }

    /// Ends a session whose policy says so, by what is true at that moment. Gives its program, which is to be ended too; `None`
    /// if something happened to it meanwhile.
    pub async fn expire(
        &self,
        session: SessionId,
        present: impl FnOnce(policy::Facts) -> policy::Facts + Send + 'static,
    ) -> Result<Option<Expired>> {
        self.write(Durability::Power, move |change| {
            let Some(stored) = change.policed(session)? else { return Ok(None) };
            let facts = present(stored);
            let Verdict::Expired(reason) = policy::judge(&facts, change.clock.now()) else { return Ok(None) };
            let standing = change.standing(session)?;
            change.step(session, &standing, Step::TimeOut, &Words { reason: Some(reason), ..Words::default() })?;
            let told = json!({"reason": reason, "policy": facts.policy});
            change.tell(Fact::new(session, Author::Daemon, "timeout", told))?;
            Ok(Some(Expired { reason, runtimes: change.end_programs(session, reason)?.runtimes }))
        })
        .await
    }

    /// Decides that a session is to end for this reason. One with a program ends when that has: it is given, and stays decided
    /// whatever happens to the daemon. A queued session is cancelled, one without a program ends at once.
    pub async fn ask_to_end(&self, session: SessionId, reason: &'static str, author: Author) -> Result<EndAsked> {
        self.write(Durability::Power, move |change| {
            let standing = change.standing(session)?;
            let ending = if standing.status == Status::Queued { Endings::default() } else { change.end_programs(session, reason)? };
            if ending.has_program {
                return Ok(EndAsked::Program(ending.runtimes));
            }
            match standing.status.has_ended() {
                true if ending.runtimes.is_empty() => return Ok(EndAsked::Nothing),
                true => {}
                false => change.end(session, standing, reason, author)?,
            }
            Ok(EndAsked::Ended(ending.runtimes))
        })
        .await
    }

    /// Cancels everything that waits in the queue.
    pub async fn cancel_queue(&self, author: Author) -> Result<u32> {
        self.write(Durability::Power, move |change| {
            let ids: Vec<String> = change
                .sql
                .prepare("SELECT id FROM sessions WHERE status = 'queued'")?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for id in &ids {
                let session = SessionId::parse(id).ok_or_else(|| broken("session id", id))?;
                let standing = change.standing(session)?;
                change.end(session, standing, "cancelled", author)?;
            }
            Ok(ids.len() as u32)
        })
        .await
    }

    /// Whether a runtime has not ended, and is to end.
    pub async fn is_ending(&self, runtime: RuntimeId) -> Result<Option<bool>> {
        self.read(move |connection| {
            let sql = "SELECT ending IS NOT NULL FROM runtimes WHERE id = ?1 AND is_live";
            Ok(connection.prepare_cached(sql)?.query_row([runtime.to_string()], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Active sessions with a policy that limits them.
    pub async fn policed_sessions(&self) -> Result<Vec<(SessionId, policy::Facts)>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&format!("{POLICED} status = 'active' AND policy <> '{{}}'"))?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.extend(read_policed(row)?);
            }
            Ok(found)
        })
        .await
    }

    /// Something happened in its terminal.
    pub async fn touch(&self, session: SessionId, at: jiff::Timestamp, steady: Steady) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change
                .sql
                .prepare_cached(
                    "UPDATE sessions SET last_activity_at = max(last_activity_at, ?1), idle_since = max(coalesce(idle_since, 0), ?2)
                     WHERE id = ?3 AND status IN ('queued', 'active', 'paused')",
                )?
                .execute(params![micros(at), steady, session.to_string()])?;
            Ok(())
        })
        .await
    }

    /// Forgets what the terminals of a session's thread remember.
    pub async fn forget_state(&self, session: SessionId, author: Author) -> Result<Session> {
        self.write(Durability::Power, move |change| {
            change.execute(
                "UPDATE terminals SET env_delta = '[]', env_removed = '[]', imports = '[]', names = '[]', state_version = state_version + 1,
                    cwd = (SELECT workspace FROM threads WHERE threads.id = thread_id)
                 WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1)",
                [session.to_string()],
            )?;
            change.tell(Fact::new(session, author, "reset", json!({})))?;
            load(&change.sql, session)
        })
        .await
    }
}

const POLICED: &str = "SELECT id, policy, active_since, active_before, idle_since FROM sessions WHERE";

/// `None` for what limits nothing.
fn read_policed(row: &rusqlite::Row<'_>) -> Result<Option<(SessionId, policy::Facts)>> {
    let (id, text): (String, String) = (row.get(0)?, row.get(1)?);
    let policy: shared::policy::Policy = super::parse("policy", &text)?;
    let active_since: Option<Steady> = row.get(2)?;
    let (Some(active_since), true) = (active_since, policy.has_limits()) else { return Ok(None) };
    let session = SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?;
    let idle_since = row.get::<_, Option<Steady>>(4)?.unwrap_or(active_since);
    Ok(Some((session, policy::Facts { policy, active_since, active_before: row.get(3)?, idle_since, is_controlled: false })))
}

impl Change<'_> {
    pub(super) fn standing(&self, session: SessionId) -> Result<Standing> {
        let row = self
            .sql
            .prepare_cached(
                "SELECT name, status, status_reason, iterations, max_iterations FROM sessions
                 JOIN threads ON threads.id = thread_id WHERE sessions.id = ?1",
            )?
            .query_row([session.to_string()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get::<_, i64>(3)?, row.get::<_, i64>(4)?))
            })
            .optional()?
            .ok_or(Error::Gone)?;
        Ok(Standing {
            name: row.0,
            status: Status::parse(&row.1).ok_or_else(|| broken("status", &row.1))?,
            reason: row.2,
            iterations: row.3 as u64,
            max_iterations: row.4 as u64,
        })
    }

    fn policed(&self, session: SessionId) -> Result<Option<policy::Facts>> {
        let mut statement = self.sql.prepare_cached(&format!("{POLICED} id = ?1 AND status = 'active'"))?;
        let mut rows = statement.query([session.to_string()])?;
        match rows.next()? {
            Some(row) => Ok(read_policed(row)?.map(|(_, facts)| facts)),
            None => Ok(None),
        }
    }

    pub(super) fn obey(&mut self, session: SessionId, asked: &Asked, author: Author) -> Result<()> {
        let standing = self.standing(session)?;
        match asked {
            Asked::Pause { reason, queues_input } => {
                self.step(session, &standing, Step::Pause, &Words { reason: reason.as_deref(), ..Words::default() })?;
                self.freeze_runtimes(session, *queues_input)?;
                self.tell(Fact::new(session, author, "pause", json!({"reason": reason})))
            }
            Asked::Resume { max_iterations, limits } => {
                let step = if max_iterations.is_some() { Step::ResumeWithBudget } else { Step::Resume };
                standing.allow(step)?;
                if let Some(budget) = max_iterations {
                    if *budget <= standing.iterations {
                        return Err(Error::Usage(format!(
                            "session {} has used {} iterations: a budget of {budget} leaves none; give more with --max-iterations",
                            standing.name, standing.iterations
                        )));
                    }
                    self.execute("UPDATE sessions SET max_iterations = ?1 WHERE id = ?2", params![*budget as i64, session.to_string()])?;
                }
                if standing.status.has_ended() {
                    self.refuse_if_followed(session, &standing)?;
                    self.refuse_if_crowded(session, limits)?;
                }
                self.step(session, &standing, step, &Words::default())?;
                self.thaw_runtimes(session)?;
                let mut data = json!({"from": standing.status});
                if let Some(budget) = max_iterations {
                    data["max_iterations"] = json!(budget);
                }
                self.tell(Fact::new(session, author, "resume", data))
            }
            Asked::Complete { result } => {
                self.step(
                    session,
                    &standing,
                    Step::Complete,
                    &Words { result: result.as_deref(), is_known: author == Author::Human, ..Words::default() },
                )?;
                let data = result.as_ref().map_or_else(|| json!({}), |result| json!({"result": result}));
                self.tell(Fact::new(session, author, "complete", data))
            }
            Asked::Fail { error } => {
                self.step(
                    session,
                    &standing,
                    Step::Fail,
                    &Words { error: Some(error), is_known: author == Author::Human, ..Words::default() },
                )?;
                self.tell(Fact::new(session, author, "error", json!({"error": error})))
            }
        }
    }

    /// Decides that what runs of a session is to end, or, if it is the latest of its thread, what an earlier one has left
    /// running: its program and its interpreters.
    fn end_programs(&mut self, session: SessionId, reason: &str) -> Result<Endings> {
        let rows: Vec<(String, bool)> = self
            .sql
            .prepare_cached(
                "UPDATE runtimes SET ending = coalesce(ending, ?2) WHERE is_live AND terminal_id IN
                    (SELECT id FROM terminals WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1))
                 AND (session_id = ?1 OR NOT EXISTS (SELECT 1 FROM sessions AS named JOIN sessions AS later
                    ON later.thread_id = named.thread_id AND (later.created_at, later.id) > (named.created_at, named.id)
                    WHERE named.id = ?1)) RETURNING id, (SELECT kind = 'terminal' FROM terminals WHERE id = terminal_id)",
            )?
            .query_map(params![session.to_string(), reason], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut endings = Endings::default();
        for (id, is_program) in rows {
            endings.has_program |= is_program;
            endings.runtimes.push(RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?);
        }
        Ok(endings)
    }

    fn end(&mut self, session: SessionId, standing: Standing, reason: &'static str, author: Author) -> Result<()> {
        let (step, reason) = if standing.status == Status::Queued { (Step::Cancel, "cancelled") } else { (Step::End, reason) };
        let standing = self.out_of_pause(session, standing, reason, author)?;
        self.step(session, &standing, step, &Words { reason: Some(reason), is_known: author != Author::Agent, ..Words::default() })?;
        self.tell(lifecycle::ended(session, author, reason))
    }

    /// A paused session ends by way of `active`, as drawn; both steps are told.
    pub(super) fn out_of_pause(&mut self, session: SessionId, standing: Standing, why: &str, author: Author) -> Result<Standing> {
        if standing.status != Status::Paused {
            return Ok(standing);
        }
        self.step(session, &standing, Step::Resume, &Words::default())?;
        self.tell(Fact::new(session, author, "resume", json!({"from": standing.status, "reason": why})))?;
        Ok(Standing { status: Status::Active, reason: None, ..standing })
    }

    /// The program's end, as the session's. Nothing happens to one that ended before.
    pub(super) fn end_with_program(&mut self, session: SessionId, ending: &super::Ending, fact: Fact) -> Result<()> {
        let standing = self.standing(session)?;
        if standing.status.has_ended() {
            return Ok(());
        }
        let step = match (standing.status, ending.status) {
            // its program was refused the moment it should have started
            (Status::Queued, _) => Step::FailToStart,
            (_, Status::Completed) => Step::Complete,
            (_, Status::Ended) => Step::End,
            _ => Step::Fail,
        };
        let standing = self.out_of_pause(session, standing, "its program ended", Author::Daemon)?;
        let words = Words { reason: Some(&ending.reason), error: ending.error.as_deref(), ..Words::default() };
        self.step(session, &standing, step, &words)?;
        self.execute(
            "UPDATE sessions SET last_activity_at = max(last_activity_at, ?1) WHERE id = ?2",
            params![micros(ending.last_activity_at), session.to_string()],
        )?;
        self.tell(fact)
    }

    /// Its turn has come.
    pub(super) fn start_queued(&mut self, session: SessionId) -> Result<()> {
        let standing = self.standing(session)?;
        self.step(session, &standing, Step::Start, &Words::default())
    }

    /// An ended session comes back only while nothing has taken its place on its thread or in its group.
    fn refuse_if_followed(&self, session: SessionId, standing: &Standing) -> Result<()> {
        let later: Option<String> = self
            .query_row(
                "SELECT later.id FROM sessions JOIN sessions AS later ON later.thread_id = sessions.thread_id
                 WHERE sessions.id = ?1 AND (later.created_at, later.id) > (sessions.created_at, sessions.id) LIMIT 1",
                [session.to_string()],
                |row| row.get(0),
            )
            .optional()?;
        match later {
            Some(later) => Err(Error::Refused(format!("cannot resume: session {later} of {} has taken its place", standing.name))),
            None => Ok(()),
        }
    }

    /// One step of the state machine, if it is allowed here.
    fn step(&mut self, session: SessionId, standing: &Standing, step: Step, words: &Words<'_>) -> Result<()> {
        let target = standing.allow(step)?;
        let (now, steady, id) = (micros(jiff::Timestamp::now()), self.clock.now(), session.to_string());
        if target == Status::Active {
            self.sql
                .prepare_cached(
                    "UPDATE sessions SET status = 'active', status_reason = NULL, updated_at = ?1, started_at = coalesce(started_at, ?1),
                    ended_at = NULL, active_since = ?2, idle_since = ?2 WHERE id = ?3",
                )?
                .execute(params![now, steady, id])?;
        } else {
            let ended_at = target.has_ended().then_some(now);
            self.sql
                .prepare_cached(
                    "UPDATE sessions SET status = ?1, status_reason = ?2, updated_at = ?3, ended_at = ?4,
                    active_before = active_before + coalesce(?5 - active_since, 0), active_since = NULL,
                    result = coalesce(?6, result), error = coalesce(?7, error), seen_at = coalesce(?8, seen_at) WHERE id = ?9",
                )?
                .execute(params![
                    target.as_str(),
                    words.reason,
                    now,
                    ended_at,
                    steady,
                    words.result,
                    words.error,
                    ended_at.filter(|_| words.is_known),
                    id
                ])?;
        }
        Ok(())
    }
}
