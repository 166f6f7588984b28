//! Calls to interpreters: where they go, accepted, finished, found again. One transaction each, with the event that tells of it.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::event::Author;
use shared::exec::{HistoryEntry, Language, PerStream, Place, Stage, Verb};
use shared::id::{ExecId, Offset, RuntimeId, SessionId, ThreadId};
use shared::message::Failure;
use shared::name;
use shared::session::Status;

use super::interpreter::Absent;
use super::thread::{NameMatch, find};
use super::{Change, Durability, Error, Fact, New, Result, StoreHandle, broken, json as stored, micros, parse, timestamp};

/// Of the code, in events: the rest is in the history.
const CODE_IN_EVENT: usize = 200;

/// The mode of sessions that only hold a folder's runtimes.
pub const RUNTIME_MODE: &str = "runtime";

/// A call that is to be accepted.
pub struct AskedExec {
    pub id: ExecId,
    pub place: Place,
    pub language: Language,
    pub verb: Verb,
    pub code: String,
    pub stdin: Option<String>,
    pub timeout_ms: Option<u64>,
    pub author: Author,
    /// Calls that may be open at once, and how many are.
    pub max_open: u32,
    pub open: Box<dyn Fn(RuntimeId) -> u64 + Send + Sync>,
    /// Why the holder of a runtime cannot be reached, if it cannot: then nothing is accepted for it.
    pub unreachable: Box<dyn Fn(RuntimeId) -> Option<String> + Send + Sync>,
    /// A session that has to be opened.
    pub new: Box<dyn Fn() -> New + Send + Sync>,
    /// Whether a folder can be worked in; a sentence if not.
    pub check_folder: fn(&str) -> std::result::Result<(), Failure>,
}

/// Where a call goes.
pub enum Begun {
    /// Accepted, for this runtime.
    On { runtime: RuntimeId, session: SessionId, name: String },
    /// Not accepted yet: a runtime has to be started first.
    Absent(Box<Absent>),
}

/// Sessions that were opened on the way, and what they took over.
#[derive(Default)]
pub struct Adopted {
    pub runtimes: Vec<RuntimeId>,
    pub session: Option<SessionId>,
}

/// The result of an exec, besides numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared::json::present")]
    pub json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub timed_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub interrupted: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub restarted: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub ended: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde wants")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The end of a call, to be stored.
#[derive(Clone, Debug)]
pub struct Finished {
    pub stage: Stage,
    pub exit_code: Option<i32>,
    /// Microseconds.
    pub took: u64,
    pub start: Option<Offset>,
    pub end: Option<Offset>,
    pub bytes: PerStream<u64>,
    pub outcome: Outcome,
}

/// A call as stored.
#[derive(Clone, Debug)]
pub struct StoredExec {
    pub id: ExecId,
    pub runtime: RuntimeId,
    pub session: SessionId,
    pub name: String,
    pub language: Language,
    pub verb: Verb,
    pub code: String,
    pub stdin: Option<String>,
    pub timeout_ms: Option<u64>,
    pub asked_at: jiff::Timestamp,
    /// What its result will say of the runtime before this one.
    pub restarted: Option<String>,
    /// `None` while it is open.
    pub finished: Option<Finished>,
}

impl StoreHandle {
    /// Accepts a call if its runtime is there; otherwise says what a new one is to be started with.
    pub async fn begin_exec(&self, asked: Arc<AskedExec>, restarted: Option<String>) -> Result<(Begun, Adopted)> {
        self.write(Durability::Process, move |change| change.begin_exec(&asked, restarted)).await
    }

    /// Accepts a call for a runtime of which it is known that it may be called.
    pub async fn accept_exec(&self, asked: Arc<AskedExec>, runtime: RuntimeId, session: SessionId) -> Result<()> {
        self.write_beside(Durability::Process, move |change| change.accept_exec(&asked, runtime, session, None)).await
    }

    /// A call that only the recording knows of; `false` if it is stored after all.
    pub async fn adopt_exec(&self, id: ExecId, runtime: RuntimeId, verb: Verb, code: String) -> Result<bool> {
        self.write_beside(Durability::Process, move |change| {
            let inserted = change.execute(
                "INSERT INTO execs (id, session_id, runtime_id, language, verb, code, author, stage, asked_at)
                 SELECT ?1, session_id, runtimes.id, kind, ?3, ?4, ?5, 'open', ?6
                 FROM runtimes JOIN terminals ON terminals.id = terminal_id WHERE runtimes.id = ?2 ON CONFLICT (id) DO NOTHING",
                params![id.to_string(), runtime.to_string(), verb.as_str(), code, Author::Api.as_str(), micros(jiff::Timestamp::now())],
            )?;
            Ok(inserted > 0)
        })
        .await
    }

    /// Stores the end of a call with the terminal's new state. Nothing happens to one that ended before.
    pub async fn finish_exec(&self, id: ExecId, finished: Finished) -> Result<()> {
        let ended_at = jiff::Timestamp::now();
        let had_input = self.write_beside(Durability::Process, move |change| change.finish_exec(id, &finished, ended_at)).await?;
        if had_input { self.checkpoint().await } else { Ok(()) }
    }

    /// A call that was over before it was stored: all of it at once.
    pub async fn accept_and_finish(&self, asked: Arc<AskedExec>, runtime: RuntimeId, session: SessionId, finished: Finished) -> Result<()> {
        let ended_at = jiff::Timestamp::now();
        self.write_beside(Durability::Process, move |change| {
            change.accept_exec(&asked, runtime, session, None)?;
            change.finish_exec(asked.id, &finished, ended_at)?;
            Ok(())
        })
        .await
    }

    /// Calls that waited for a runtime that has ended wait for another; the first of them says so.
    pub async fn move_execs(&self, ids: Vec<ExecId>, to: RuntimeId, restarted: Option<String>) -> Result<()> {
        self.write(Durability::Process, move |change| {
            for id in &ids {
                change.execute(
                    "UPDATE execs SET runtime_id = ?1 WHERE id = ?2 AND stage = 'open'",
                    params![to.to_string(), id.to_string()],
                )?;
            }
            if let (Some(first), Some(note)) = (ids.first(), restarted) {
                let outcome = restarted_outcome(note)?;
                change.execute("UPDATE execs SET outcome = ?1 WHERE id = ?2 AND stage = 'open'", params![outcome, first.to_string()])?;
            }
            Ok(())
        })
        .await
    }

    pub async fn exec(&self, id: ExecId) -> Result<StoredExec> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE execs.id = ?1"))?;
            let mut rows = statement.query([id.to_string()])?;
            match rows.next()? {
                Some(row) => read(row),
                None => Err(Error::NotFound(format!("there is no exec {id}: `sessions-tui history` shows what there is"))),
            }
        })
        .await
    }

    /// Calls of a runtime that have not ended as far as the database knows, in their order; and up to where in its recording
    /// results are stored.
    pub async fn open_execs(&self, runtime: RuntimeId) -> Result<(Vec<StoredExec>, Offset)> {
        self.read(move |connection| {
            let key = runtime.to_string();
            // its sessions are those of its thread: they have the index
            let of_runtime = "execs.session_id IN (SELECT id FROM sessions WHERE thread_id = (SELECT thread_id FROM sessions
                WHERE id = (SELECT session_id FROM runtimes WHERE id = ?1))) AND runtime_id = ?1";
            // ends are not stored in the order of the calls: before the first that is open, all of them are
            let settled: Option<i64> = connection
                .prepare_cached(&format!(
                    "SELECT max(end_offset) FROM execs WHERE {of_runtime}
                     AND asked_at < coalesce((SELECT min(asked_at) FROM execs WHERE {of_runtime} AND stage = 'open'), 9223372036854775807)"
                ))?
                .query_row([&key], |row| row.get(0))?;
            let mut statement =
                connection.prepare_cached(&format!("{SELECT} WHERE {of_runtime} AND stage = 'open' ORDER BY asked_at, execs.id"))?;
            let mut rows = statement.query([&key])?;
            let mut open = Vec::new();
            while let Some(row) = rows.next()? {
                open.push(read(row)?);
            }
            Ok((open, settled.unwrap_or(0) as u64))
        })
        .await
    }

    /// The session of a place, if it has one; none is opened.
    pub async fn place(&self, place: Place) -> Result<Option<SessionId>> {
        self.read(move |connection| place_of(connection, &place)).await
    }

    /// The last calls of a session's thread, oldest first.
    pub async fn history(&self, session: SessionId, language: Option<Language>, limit: u32) -> Result<Vec<HistoryEntry>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, code, verb, language, stage, exit_code, took, coalesce(started_at, asked_at), author, session_id FROM execs
                 WHERE session_id IN (SELECT id FROM sessions WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1))
                 AND (?2 IS NULL OR language = ?2) ORDER BY asked_at DESC, id DESC LIMIT ?3",
            )?;
            let mut rows = statement.query(params![session.to_string(), language.map(Language::as_str), limit])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                entries.push(read_entry(row)?);
            }
            entries.reverse();
            Ok(entries)
        })
        .await
    }
}

const SELECT: &str = "SELECT execs.id, runtime_id, session_id, threads.name, language, verb, code, stdin, timeout_ms, asked_at, stage,
        exit_code, took, start_offset, end_offset, stdout_bytes, stderr_bytes, outcome
    FROM execs JOIN sessions ON sessions.id = session_id JOIN threads ON threads.id = thread_id";

fn read(row: &Row<'_>) -> Result<StoredExec> {
    let text = |column: usize| row.get::<_, String>(column);
    let number = |column: usize| row.get::<_, Option<i64>>(column).map(|number| number.map(|number| number as u64));
    let (id, runtime, session, stage) = (text(0)?, text(1)?, text(2)?, text(10)?);
    let stage = read_stage(&stage)?;
    let outcome: Outcome = row.get::<_, Option<String>>(17)?.map(|text| parse("outcome", &text)).transpose()?.unwrap_or_default();
    let restarted = outcome.note.clone().filter(|_| outcome.restarted);
    let finished = match stage {
        Stage::Queued | Stage::Running => None,
        stage => Some(Finished {
            stage,
            exit_code: row.get(11)?,
            took: number(12)?.unwrap_or(0),
            start: number(13)?,
            end: number(14)?,
            bytes: PerStream { stdout: number(15)?.unwrap_or(0), stderr: number(16)?.unwrap_or(0) },
            outcome,
        }),
    };
    Ok(StoredExec {
        id: ExecId::parse(&id).ok_or_else(|| broken("exec id", &id))?,
        runtime: RuntimeId::parse(&runtime).ok_or_else(|| broken("runtime id", &runtime))?,
        session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
        name: text(3)?,
        language: read_language(&text(4)?)?,
        verb: read_verb(&text(5)?)?,
        code: text(6)?,
        stdin: row.get(7)?,
        timeout_ms: number(8)?,
        asked_at: timestamp(row.get(9)?),
        restarted,
        finished,
    })
}

fn restarted_outcome(note: String) -> Result<String> {
    stored(&Outcome { restarted: true, note: Some(note), ..Outcome::default() })
}

fn read_entry(row: &Row<'_>) -> Result<HistoryEntry> {
    let text = |column: usize| row.get::<_, String>(column);
    let (id, author, session) = (text(0)?, text(8)?, text(9)?);
    Ok(HistoryEntry {
        exec_id: ExecId::parse(&id).ok_or_else(|| broken("exec id", &id))?,
        command: text(1)?,
        verb: read_verb(&text(2)?)?,
        language: read_language(&text(3)?)?,
        stage: read_stage(&text(4)?)?,
        exit_code: row.get(5)?,
        duration: row.get::<_, Option<i64>>(6)?.map(|micros| micros as f64 / 1000.0),
        started_at: timestamp(row.get(7)?),
        author: Author::parse(&author).ok_or_else(|| broken("author", &author))?,
        session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
    })
}

fn read_language(text: &str) -> Result<Language> {
    Language::parse(text).ok_or_else(|| broken("language", text))
}

fn read_verb(text: &str) -> Result<Verb> {
    [Verb::Exec, Verb::Eval].into_iter().find(|verb| verb.as_str() == text).ok_or_else(|| broken("verb", text))
}

fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Queued | Stage::Running => "open",
        Stage::Finished => "finished",
        Stage::Lost => "lost",
        Stage::Cancelled => "cancelled",
    }
}

fn read_stage(text: &str) -> Result<Stage> {
    [Stage::Running, Stage::Finished, Stage::Lost, Stage::Cancelled]
        .into_iter()
        .find(|stage| stage_word(*stage) == text)
        .ok_or_else(|| broken("stage", text))
}

/// The latest session of a place.
fn place_of(connection: &Connection, place: &Place) -> Result<Option<SessionId>> {
    match place {
        Place::Session(word) => Ok(Some(find(connection, word, NameMatch::Prefix)?.map_err(Error::Refusal)?.session)),
        Place::Workspace(folder) => {
            let found: Option<String> = connection
                .prepare_cached(
                    "SELECT sessions.id FROM threads JOIN sessions ON thread_id = threads.id WHERE workspace = ?1 AND is_place
                     ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT 1",
                )?
                .query_row([folder], |row| row.get(0))
                .optional()?;
            found.map(|id| SessionId::parse(&id).ok_or_else(|| broken("session id", &id))).transpose()
        }
    }
}

/// A session as a call finds it.
pub(super) struct Found {
    pub session: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub workspace: String,
    pub status: Status,
}

impl Change<'_> {
    fn begin_exec(&mut self, asked: &AskedExec, restarted: Option<String>) -> Result<(Begun, Adopted)> {
        let (found, adopted) = self.session_for(asked)?;
        let kind = asked.language.as_str();
        let Some(runtime) = self.live_interpreter(&found, asked.language)? else {
            return Ok((Begun::Absent(Box::new(self.absent(&found, kind)?)), adopted));
        };
        if let Some(why) = (asked.unreachable)(runtime) {
            return Err(Error::Refused(format!("cannot run {kind} in session {}: {why}; nothing was changed", found.name)));
        }
        let open = (asked.open)(runtime);
        if open > u64::from(asked.max_open) {
            return Err(Error::Refused(format!(
                "{} calls wait for the {kind} of {} already: wait for some of them, or use another session",
                open - 1,
                found.name
            )));
        }
        self.accept_exec(asked, runtime, found.session, restarted)?;
        Ok((Begun::On { runtime, session: found.session, name: found.name }, adopted))
    }

    /// `restarted`: what its result will say of the runtime before this one.
    fn accept_exec(&mut self, asked: &AskedExec, runtime: RuntimeId, session: SessionId, restarted: Option<String>) -> Result<()> {
        let now = micros(jiff::Timestamp::now());
        let inserted = self.execute(
            "INSERT INTO execs (id, runtime_id, session_id, language, verb, code, stdin, author, timeout_ms, stage, asked_at, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open',
                max(?10, (SELECT coalesce(max(asked_at), 0) + 1 FROM execs WHERE session_id = ?3)), ?11) ON CONFLICT (id) DO NOTHING",
            params![
                asked.id.to_string(),
                runtime.to_string(),
                session.to_string(),
                asked.language.as_str(),
                asked.verb.as_str(),
                asked.code,
                asked.stdin,
                asked.author.as_str(),
                asked.timeout_ms.map(|ms| ms as i64),
                now,
                restarted.map(restarted_outcome).transpose()?
            ],
        )?;
        if inserted == 0 {
            return Err(Error::Usage(format!("there is an exec {} already: each call needs an id of its own", asked.id)));
        }
        let data = json!({"exec": asked.id, "language": asked.language, "verb": asked.verb, "code": beginning(&asked.code)});
        self.tell(Fact::new(session, asked.author, "exec_started", data))
    }

    /// The live session of a place; opened if the last one has ended, or none was there.
    fn session_for(&mut self, asked: &AskedExec) -> Result<(Found, Adopted)> {
        if let Some(session) = place_of(&self.sql, &asked.place)? {
            let found = self.found(session)?;
            match found.status {
                Status::Active => return Ok((found, Adopted::default())),
                Status::Paused => {
                    return Err(Error::Refused(format!(
                        "cannot {0}: session {1} is paused: `sessions-tui resume {1}` first",
                        asked.verb.as_str(),
                        found.name
                    )));
                }
                Status::Queued => {
                    return Err(Error::Refused(format!("cannot {}: session {} is queued", asked.verb.as_str(), found.name)));
                }
                Status::Completed | Status::Failed | Status::Timeout | Status::Ended => {}
            }
            let new = New { name: Some(found.name), here: found.workspace, ..(asked.new)() };
            return self.open_for(new, asked);
        }
        let Place::Workspace(folder) = &asked.place else { return Err(Error::Gone) };
        (asked.check_folder)(folder).map_err(Error::Refusal)?;
        let name = {
            let mut taken = self.sql.prepare_cached("SELECT EXISTS (SELECT 1 FROM threads WHERE name = ?1)")?;
            name::generate(&format!("{folder}-runtime"), |name| taken.query_row([name], |row| row.get(0)).unwrap_or(false))
        };
        // a place whose sessions have all been cleaned up keeps its name
        let kept: Option<String> =
            self.query_row("SELECT name FROM threads WHERE workspace = ?1 AND is_place", [folder], |row| row.get(0)).optional()?;
        let new = New { name: Some(kept.unwrap_or(name)), here: folder.clone(), ..(asked.new)() };
        let (found, adopted) = self.open_for(new, asked)?;
        self.execute("UPDATE threads SET is_place = 1 WHERE id = ?1", [found.thread.to_string()])?;
        Ok((found, adopted))
    }

    fn open_for(&mut self, new: New, asked: &AskedExec) -> Result<(Found, Adopted)> {
        let opened = self.open_session(New { author: asked.author, session: SessionId::new(), ..new })?;
        let session = opened.session.id;
        Ok((self.found(session)?, Adopted { runtimes: opened.adopted, session: Some(session) }))
    }

    pub(super) fn found(&self, session: SessionId) -> Result<Found> {
        let row: (String, String, String, String) = self.query_row(
            "SELECT thread_id, name, workspace, status FROM sessions JOIN threads ON threads.id = thread_id WHERE sessions.id = ?1",
            [session.to_string()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        Ok(Found {
            session,
            thread: ThreadId::parse(&row.0).ok_or_else(|| broken("thread id", &row.0))?,
            name: row.1,
            workspace: row.2,
            status: Status::parse(&row.3).ok_or_else(|| broken("status", &row.3))?,
        })
    }

    /// Gives whether standard input was stored with it, which is removed. `ended_at` is when its end was known, not when it is stored: on
    /// a busy machine that is later, and when it began is counted from there.
    fn finish_exec(&mut self, id: ExecId, finished: &Finished, ended_at: jiff::Timestamp) -> Result<bool> {
        let now = micros(ended_at);
        let had_input: Option<bool> = self
            .query_row("SELECT stdin IS NOT NULL FROM execs WHERE id = ?1 AND stage = 'open'", [id.to_string()], |row| row.get(0))
            .optional()?;
        let row: Option<(String, String, String, String)> = self
            .query_row(
                "UPDATE execs SET stage = ?2, exit_code = ?3, took = ?4, start_offset = ?5, end_offset = ?6, stdout_bytes = ?7,
                    stderr_bytes = ?8, outcome = ?9, started_at = ?10, stdin = NULL
                 WHERE id = ?1 AND stage = 'open' RETURNING session_id, runtime_id, language, author",
                params![
                    id.to_string(),
                    stage_word(finished.stage),
                    finished.exit_code,
                    finished.took as i64,
                    finished.start.map(|at| at as i64),
                    finished.end.map(|at| at as i64),
                    finished.bytes.stdout as i64,
                    finished.bytes.stderr as i64,
                    stored(&finished.outcome)?,
                    now - finished.took as i64
                ],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )
            .optional()?;
        let Some((session, runtime, language, author)) = row else { return Ok(false) };
        if finished.stage == Stage::Finished {
            self.execute(
                "UPDATE terminals SET state_version = state_version + 1, cwd = coalesce(?1, cwd)
                 WHERE id = (SELECT terminal_id FROM runtimes WHERE id = ?2)",
                params![finished.outcome.cwd, runtime],
            )?;
        }
        let session = SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?;
        let mut data =
            json!({"exec": id, "language": language, "exitCode": finished.exit_code, "durationMs": finished.took as f64 / 1000.0});
        if finished.stage != Stage::Finished {
            data["stage"] = json!(finished.stage);
        }
        if let Some(error) = &finished.outcome.error {
            data["error"] = json!(beginning(error));
        }
        // whoever called was active until now
        self.tell(Fact::new(session, Author::parse(&author).unwrap_or(Author::Daemon), "exec_finished", data))?;
        Ok(had_input == Some(true))
    }
}

fn beginning(text: &str) -> &str {
    let end = (0..=CODE_IN_EVENT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
