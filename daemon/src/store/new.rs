//! What `new` asks for: a thread's live session is continued, otherwise the next one opens where the thread stands.
//! All of it is one transaction, before any process exists.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};
use shared::event::Author;
use shared::id::{LeaseId, RuntimeId, SessionId, ThreadId};
use shared::message::Previous;
use shared::policy::{Kind, Limit, Policy};
use shared::runtime::{Keeps, Launch, LostReason, RuntimeState};
use shared::screen::Size;
use shared::session::{DEFAULT_ITERATIONS, Session, Status};
use shared::terminal::TerminalKind;
use shared::watch::WatchMode;
use shared::{json, name, text};

use super::launch::DEFAULT_SIZE;
use super::queue::QueuedLaunch;
use super::session::load;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, broken, json as stored, micros, parse};

/// A larger number of a session is damage; counting on from it must not overflow.
const MAX_NUMBER: i64 = 1 << 53;

/// Everything that is asked of a new session, checked as far as can be without looking at the thread.
#[derive(Clone)]
pub struct New {
    /// A thread's name, or the id of one of its sessions.
    pub name: Option<String>,
    /// The workspace of a new thread.
    pub here: String,
    /// The folder the user named.
    pub workspace: Option<String>,
    pub program: Option<Program>,
    /// A program that was named is started, or nothing happens.
    pub must_start: bool,
    pub user: Option<String>,
    pub channel: Option<String>,
    pub mode: Option<String>,
    pub task: Option<String>,
    pub max_iterations: Option<u64>,
    pub context: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub idle_timeout: Option<Limit>,
    pub max_duration: Option<Limit>,
    /// Whether its files are watched, if that was said.
    pub watch: Option<WatchMode>,
    /// Defaults by kind of session.
    pub defaults: shared::config::PolicyConfig,
    /// The group to count in; a full one makes it wait.
    pub group: Option<String>,
    /// Limits of groups as the settings have them.
    pub limits: BTreeMap<String, u64>,
    pub lease: LeaseId,
    pub author: Author,
    /// Its id, if a session is opened.
    pub session: SessionId,
    /// Chosen by whoever starts or found the holder.
    pub runtime: RuntimeId,
    /// Opened for calls to interpreters alone.
    pub for_calls: bool,
    /// Whether a folder is still there.
    pub is_folder: fn(&str) -> bool,
    /// The session in whose place this one is opened, once that is known.
    pub lost: Option<Box<Session>>,
}

impl New {
    /// Refuses a program, or variables for one, that would not be started: the transaction is rolled back.
    fn refuse_not_started(&self, name: &str, status: &str) -> Result<()> {
        let Some(program) = self.program.as_ref().filter(|_| self.must_start) else { return Ok(()) };
        let command = text::shell_words(&program.argv);
        let what = match (program.is_named, program.env_delta.as_slice()) {
            (true, _) => format!("start {command}"),
            (false, [(variable, _), ..]) => format!("set {variable}"),
            (false, []) => return Ok(()),
        };
        Err(Error::Refused(format!("cannot {what}: session {name} is {status}: end it first, or use it as it is")))
    }

    /// What the lost session was for, where nothing else is asked for.
    fn go_on_from_lost(&mut self) {
        let Some(lost) = self.lost.take() else { return };
        self.task = self.task.take().or(lost.task);
        self.mode = self.mode.take().or(lost.mode);
        self.max_iterations = self.max_iterations.or(Some(lost.max_iterations));
        self.idle_timeout = self.idle_timeout.or(Some(lost.policy.idle_timeout));
        self.max_duration = self.max_duration.or(Some(lost.policy.max_duration));
        if self.context.is_empty()
            && let Value::Object(context) = lost.context
        {
            self.context = context;
        }
    }
}

/// What is to run.
#[derive(Clone)]
pub struct Program {
    pub argv: Vec<String>,
    /// The user named it, so that not starting it needs a word.
    pub is_named: bool,
    pub env_delta: Vec<(String, String)>,
    pub size: Option<Size>,
    pub umask: Option<u32>,
    pub keeps: Keeps,
}

pub struct Opened {
    pub session: Session,
    /// Stored, and now to be started.
    pub launch: Option<Launch>,
    /// Programs that were still running are the new session's now.
    pub adopted: Vec<RuntimeId>,
    pub note: Option<String>,
    pub previous: Option<Previous>,
}

/// What is asked of the terminal's program in the end.
enum Start {
    Now(Launch),
    GoesOn(RuntimeId),
    No,
}

/// A thread as it stands before.
struct Thread {
    id: ThreadId,
    name: String,
    workspace: String,
    is_new: bool,
}

impl StoreHandle {
    pub async fn open_session(&self, new: New) -> Result<Opened> {
        self.write(Durability::Power, move |change| change.open_session(new)).await
    }
}

impl Change<'_> {
    pub(super) fn open_session(&mut self, mut new: New) -> Result<Opened> {
        if let Some(session) = self.opened_before(&mut new)? {
            return Ok(Opened { session, launch: None, adopted: Vec::new(), note: None, previous: None });
        }
        let (thread, previous) = self.thread_for(&mut new)?;
        if !thread.is_new {
            self.mend(thread.id)?;
        }
        let live: Option<(String, String)> = self
            .query_row(
                "SELECT id, status FROM sessions WHERE thread_id = ?1 AND status IN ('queued', 'active', 'paused')",
                [thread.id.to_string()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let mut opened = match live {
            Some((id, status)) => {
                let session = SessionId::parse(&id).ok_or_else(|| broken("session id", &id))?;
                let status = Status::parse(&status).ok_or_else(|| broken("status", &status))?;
                self.continue_session(&new, &thread, session, status)?
            }
            None => {
                new.go_on_from_lost();
                self.next_session(&new, &thread)?
            }
        };
        if let Some(previous) = previous {
            opened.note = Some(format!("{}; this is session {}", previous.sentence(), opened.session.id));
            opened.previous = Some(previous);
        }
        Ok(opened)
    }

    /// The session that an earlier request with the same id opened. One whose program was never started is followed by another of
    /// its thread.
    fn opened_before(&mut self, new: &mut New) -> Result<Option<Session>> {
        let session = match load(&self.sql, new.session) {
            Ok(session) => session,
            Err(Error::Gone) => return Ok(None),
            Err(error) => return Err(error),
        };
        let state: Option<String> = self
            .query_row(
                "SELECT state FROM runtimes WHERE session_id = ?1 ORDER BY created_at DESC LIMIT 1",
                [new.session.to_string()],
                |row| row.get(0),
            )
            .optional()?;
        let was_never_started = state
            .and_then(|state| serde_json::from_str(&state).ok())
            .is_some_and(|state| matches!(state, RuntimeState::Lost { reason: LostReason::NeverStarted, .. }));
        if session.status.is_live() || !was_never_started {
            return Ok(Some(session));
        }
        new.session = SessionId::new();
        new.name = Some(session.name);
        Ok(None)
    }

    /// The thread that is meant, made if there is none; and the session that was named, if it was lost with the machine.
    fn thread_for(&mut self, new: &mut New) -> Result<(Thread, Option<Previous>)> {
        let mut previous = None;
        let named = match new.name.take() {
            Some(word) => match SessionId::parse(&word) {
                Some(id) => {
                    let session = load(&self.sql, id).map_err(|error| match error {
                        Error::Gone => Error::NotFound(format!("there is no session {id}: `sessions-tui ls --all` shows what there is")),
                        other => other,
                    })?;
                    if session.is_lost_with_machine() {
                        previous = Some(Previous::of(&session));
                        new.lost = Some(Box::new(session.clone()));
                    }
                    Some(session.name)
                }
                None => Some(word),
            },
            None => None,
        };
        if let Some(name) = &named
            && let Some(id) = self.thread_named(name)?
        {
            let (name, workspace): (String, String) =
                self.query_row("SELECT name, workspace FROM threads WHERE id = ?1", [id.to_string()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            // whom it belongs to is said once
            self.execute(
                "UPDATE threads SET user = coalesce(user, ?1), channel = coalesce(channel, ?2) WHERE id = ?3",
                params![new.user, new.channel, id.to_string()],
            )?;
            return Ok((Thread { id, name, workspace, is_new: false }, previous));
        }
        let workspace = new.workspace.clone().unwrap_or_else(|| new.here.clone());
        let name = match named {
            Some(name) => name,
            None => {
                let mut taken = self.sql.prepare_cached("SELECT EXISTS (SELECT 1 FROM threads WHERE name = ?1)")?;
                name::generate(&workspace, |name| taken.query_row([name], |row| row.get(0)).unwrap_or(false))
            }
        };
        let id = ThreadId::new();
        self.execute(
            "INSERT INTO threads (id, name, workspace, user, channel, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![id.to_string(), name, workspace, new.user, new.channel, micros(jiff::Timestamp::now())],
        )?;
        Ok((Thread { id, name, workspace, is_new: true }, None))
    }

    /// The thread's live session takes what is given: a task, a mode, a budget, context; and a program if it has none.
    fn continue_session(&mut self, new: &New, thread: &Thread, session: SessionId, status: Status) -> Result<Opened> {
        let id = session.to_string();
        let now = micros(jiff::Timestamp::now());
        let mut note = None;
        if let Some(task) = &new.task {
            self.execute(
                "UPDATE sessions SET task = ?1, task_count = task_count + 1, updated_at = ?2 WHERE id = ?3",
                params![task, now, id],
            )?;
            self.execute("UPDATE threads SET task_count = task_count + 1 WHERE id = ?1", [thread.id.to_string()])?;
            self.tell(Fact::new(session, new.author, "task", json!({"task": task})))?;
        }
        if let Some(mode) = &new.mode {
            self.execute("UPDATE sessions SET mode = ?1, updated_at = ?2 WHERE id = ?3", params![mode, now, id])?;
        }
        if let Some(budget) = new.max_iterations {
            let used: i64 = self.query_row("SELECT iterations FROM sessions WHERE id = ?1", [&id], |row| row.get(0))?;
            if budget <= used as u64 {
                return Err(Error::Usage(format!(
                    "session {} has used {used} iterations already: give it more than that with --max-iterations",
                    thread.name
                )));
            }
            self.execute("UPDATE sessions SET max_iterations = ?1 WHERE id = ?2", params![budget as i64, id])?;
        }
        if new.idle_timeout.is_some() || new.max_duration.is_some() {
            let text: String = self.query_row("SELECT policy FROM sessions WHERE id = ?1", [&id], |row| row.get(0))?;
            let policy = with_wishes(parse("policy", &text)?, new);
            self.execute("UPDATE sessions SET policy = ?1 WHERE id = ?2", params![stored_policy(policy)?, id])?;
            self.tell(Fact::new(session, new.author, "policy", json!(policy)))?;
        }
        if let Some(watch) = new.watch {
            self.execute("UPDATE sessions SET watch = ?1 WHERE id = ?2", params![watch.as_str(), id])?;
            self.tell(Fact::new(session, new.author, "watch", json!({"mode": watch})))?;
        }
        if !new.context.is_empty() || !new.metadata.is_empty() {
            self.merge(session, new.context.clone(), new.metadata.clone(), new.author)?;
        }
        if new.group.is_some() {
            note = Some(format!("{} is {status} already: a group is only chosen when a session is opened", thread.name));
        }
        let start = match status {
            Status::Active => self.start(new, thread, session)?,
            _ => Start::No,
        };
        let named = new.program.as_ref().filter(|program| program.is_named);
        if !matches!(start, Start::Now(_)) {
            new.refuse_not_started(&thread.name, status.as_str())?;
        }
        let adopted = if let Start::GoesOn(runtime) = start { vec![runtime] } else { Vec::new() };
        let launch = match start {
            Start::Now(launch) => {
                self.tell(Fact::new(session, new.author, "start", json!({"command": launch.argv, "workspace": launch.cwd})))?;
                Some(launch)
            }
            Start::GoesOn(..) | Start::No => {
                if let Some(program) = named {
                    let command = text::shell_words(&program.argv);
                    note = Some(match status {
                        Status::Active => format!(
                            "{0} has a program already: it goes on, {command} was not started; `sessions-tui kill {0}` ends it",
                            thread.name
                        ),
                        Status::Paused => {
                            format!("{0} is paused: {command} was not started; `sessions-tui resume {0}` goes on", thread.name)
                        }
                        _ => format!("{} is {status}: {command} was not started", thread.name),
                    });
                } else if status == Status::Paused {
                    note = Some(format!("{0} is paused: `sessions-tui resume {0}` goes on", thread.name));
                }
                None
            }
        };
        Ok(Opened { session: load(&self.sql, session)?, launch, adopted, note, previous: None })
    }

    fn next_session(&mut self, new: &New, thread: &Thread) -> Result<Opened> {
        let session = new.session;
        self.forget_restoring(thread.id)?;
        // later than any before it, whatever was done to the clock: which one is the latest is decided by this
        let latest: Option<i64> = self.query_row(
            "SELECT max(created_at) FROM sessions WHERE thread_id = ?1 OR (group_name = ?2 AND status = 'queued')",
            params![thread.id.to_string(), new.group],
            |row| row.get(0),
        )?;
        let now = micros(jiff::Timestamp::now()).max(latest.unwrap_or(0) + 1);
        let kind = match &new.task {
            _ if new.for_calls => Kind::Runtime,
            Some(_) => Kind::Task,
            None => Kind::Terminal,
        };
        let policy = with_wishes(new.defaults.of(kind), new);
        let must_wait = match &new.group {
            Some(group) => self.is_full(group, &new.limits)?,
            None => false,
        };
        let steady = (!must_wait).then(|| self.clock.now());
        self.execute(
            "INSERT INTO sessions (id, thread_id, mode, task, status, created_at, updated_at, last_activity_at, max_iterations, policy,
                group_name, started_at, active_since, idle_since, watch, number)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12,
                (SELECT coalesce(min(max(number), ?13), 0) + 1 FROM sessions))",
            params![
                session.to_string(),
                thread.id.to_string(),
                new.mode,
                new.task,
                if must_wait { Status::Queued } else { Status::Active }.as_str(),
                now,
                new.max_iterations.unwrap_or(DEFAULT_ITERATIONS) as i64,
                stored_policy(policy)?,
                new.group,
                (!must_wait).then_some(now),
                steady,
                new.watch.map(WatchMode::as_str),
                MAX_NUMBER,
            ],
        )?;
        self.execute("UPDATE threads SET task_count = task_count + 1 WHERE id = ?1", [thread.id.to_string()])?;
        self.store_merged(session, new.context.clone(), new.metadata.clone())?;
        if must_wait {
            return self.wait_in_queue(new, thread, session);
        }
        let adopted = self.take_over_interpreters(thread.id, session)?;
        let mut opened = Opened { launch: None, adopted, note: None, previous: None, session: load(&self.sql, session)? };
        let mut data = json!({"workspace": thread.workspace, "task": new.task});
        match self.start(new, thread, session)? {
            Start::Now(launch) => {
                data = json!({"command": launch.argv, "workspace": launch.cwd, "task": new.task});
                opened.launch = Some(launch);
            }
            Start::GoesOn(runtime) => {
                new.refuse_not_started(&thread.name, "still running the program of its last session")?;
                data["continues"] = json!(runtime);
                opened.adopted.push(runtime);
                let named = new.program.as_ref().filter(|program| program.is_named);
                opened.note = named.map(|program| {
                    let command = text::shell_words(&program.argv);
                    format!(
                        "the program of {0}'s last session still runs: it goes on, {command} was not started; `sessions-tui kill {0}` ends it",
                        thread.name
                    )
                });
            }
            Start::No => {}
        }
        self.tell(Fact::new(session, new.author, "start", data))?;
        opened.session = load(&self.sql, session)?;
        Ok(opened)
    }

    fn wait_in_queue(&mut self, new: &New, thread: &Thread, session: SessionId) -> Result<Opened> {
        if let Some(program) = &new.program {
            let launch = self.launch_of(new, program, thread)?;
            let queued = QueuedLaunch { umask: launch.umask, launch };
            self.execute("UPDATE sessions SET queued_launch = ?1 WHERE id = ?2", params![stored(&queued)?, session.to_string()])?;
        }
        let waiting = load(&self.sql, session)?;
        let data = json!({"group": waiting.group, "place": waiting.queue_place, "task": new.task});
        self.tell(Fact::new(session, new.author, "queued", data))?;
        Ok(Opened { session: load(&self.sql, session)?, launch: None, adopted: Vec::new(), note: None, previous: None })
    }

    /// Stores the launch, unless the terminal's program still runs or none is wanted.
    fn start(&mut self, new: &New, thread: &Thread, session: SessionId) -> Result<Start> {
        if let Some(runtime) = self.take_over_program(thread.id, &thread.name, session)? {
            return Ok(Start::GoesOn(runtime));
        }
        let Some(program) = &new.program else {
            self.store_terminal(thread.id, &thread.workspace, new.lease)?;
            return Ok(Start::No);
        };
        let launch = self.launch_of(new, program, thread)?;
        self.store_launch(thread.id, session, new.runtime, &launch, new.lease)?;
        Ok(Start::Now(launch))
    }

    /// The program with the folder and variables its terminal was left with, where nothing else is asked for.
    fn launch_of(&self, new: &New, program: &Program, thread: &Thread) -> Result<Launch> {
        let left: Option<(String, String, u16, u16, String)> = self
            .query_row(
                "SELECT cwd, env_delta, cols, rows, env_removed FROM terminals WHERE thread_id = ?1 AND kind = ?2",
                params![thread.id.to_string(), TerminalKind::Terminal.as_str()],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
            )
            .optional()?;
        let mut launch = Launch {
            argv: program.argv.clone(),
            cwd: thread.workspace.clone(),
            env_delta: Vec::new(),
            env_removed: Vec::new(),
            size: program.size.unwrap_or(DEFAULT_SIZE),
            keeps: program.keeps,
            umask: program.umask,
        };
        if let Some((cwd, env_delta, cols, rows, env_removed)) = left {
            if (new.is_folder)(&cwd) {
                launch.cwd = cwd;
            }
            launch.env_delta = parse("environment", &env_delta)?;
            launch.env_removed = parse("environment", &env_removed)?;
            launch.size = program.size.unwrap_or(Size { cols, rows });
        }
        if let Some(workspace) = &new.workspace {
            launch.cwd.clone_from(workspace);
        }
        // a relative path means what it means where the caller stands, also if the terminal was left somewhere else
        let stands = new.workspace.as_ref().unwrap_or(&new.here);
        if let Some(path) = launch.argv.first_mut()
            && path.contains('/')
            && !path.starts_with('/')
            && !stands.is_empty()
            && *stands != launch.cwd
        {
            *path = format!("{}/{}", stands.trim_end_matches('/'), path.trim_start_matches("./"));
        }
        if !(new.is_folder)(&launch.cwd) {
            return Err(Error::Usage(format!("the workspace {} is gone: give a folder with -w", text::visible(&launch.cwd))));
        }
        for (key, value) in &program.env_delta {
            launch.env_delta.retain(|(name, _)| name != key);
            launch.env_delta.push((key.clone(), value.clone()));
        }
        Ok(launch)
    }

    fn store_merged(&mut self, session: SessionId, context: Map<String, Value>, metadata: Map<String, Value>) -> Result<()> {
        if context.is_empty() && metadata.is_empty() {
            return Ok(());
        }
        let mut fresh = (Map::new(), Map::new());
        json::merge(&mut fresh.0, context);
        json::merge(&mut fresh.1, metadata);
        self.store_documents(session, &fresh.0, &fresh.1)
    }
}

fn with_wishes(policy: Policy, new: &New) -> Policy {
    Policy { idle_timeout: new.idle_timeout.unwrap_or(policy.idle_timeout), max_duration: new.max_duration.unwrap_or(policy.max_duration) }
}

/// What limits nothing is stored as nothing, so that it is never looked at.
fn stored_policy(policy: Policy) -> Result<String> {
    if policy.has_limits() { stored(&policy) } else { Ok("{}".to_owned()) }
}
