//! Sessions: new, list, show, rename, kill, remove.

use std::path::Path;
use std::time::Duration;

use shared::event::Author;
use shared::exec::Language;
use shared::filter::Filter;
use shared::id::{RuntimeId, SessionId};
use shared::message::{Changed, Code, Failure, Gone, Layers, NewSession};
use shared::name;
use shared::runtime::Keeps;
use shared::session::{Session, Status};

use super::record::data;
use super::{find, find_exact, with_handles, with_live};
use crate::agent::Known;
use crate::context::Context;
use crate::holder::link::Link;
use crate::launch::{self, ENDING_GRACE_MS, Ready};
use crate::recording;
use crate::runtime::RuntimeHandle;
use crate::store::{self, EndAsked, New, Opened, Program};

/// How long a program that is being ended is waited for before another is started in its place.
const ENDING_PATIENCE: Duration = Duration::from_secs(10);

/// How long a holder that is being reached is waited for before an end is reported as still to come.
const REACHING_PATIENCE: Duration = Duration::from_secs(4);

/// Beyond the grace, for what is left to be killed and reaped.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Longest text of a task, a mode, a user: what belongs into a list.
const MAX_TEXT: usize = 16 << 10;

pub async fn new(context: &Context, new: NewSession, author: Author) -> Result<Changed, Failure> {
    check(&new)?;
    check_program(context, &new).await?;
    let runtime = RuntimeId::new();
    let program = (!new.no_run).then(|| Program {
        is_named: !new.argv.is_empty(),
        argv: if new.argv.is_empty() { vec![launch::user_shell(&new.environment)] } else { new.argv },
        env_delta: new.env_delta,
        size: new.size,
        umask: new.umask,
        keeps: new.keeps.unwrap_or(if context.config().recording.input { Keeps::OutputAndInput } else { Keeps::Output }),
    });
    // gets ready while the launch is being stored; one that is not needed ends by itself
    let holder = program.as_ref().map(|_| launch::holder(context, runtime));
    let group = new.group.or_else(|| new.queue.then(|| "default".to_owned()));
    let asked = New {
        name: new.name,
        here: new.here,
        workspace: new.workspace,
        program,
        must_start: new.must_start,
        user: new.user,
        channel: new.channel,
        mode: new.mode,
        task: new.task,
        max_iterations: new.max_iterations,
        context: data("--context", new.context)?,
        metadata: data("--metadata", new.metadata)?,
        idle_timeout: new.idle_timeout,
        max_duration: new.max_duration,
        watch: new.watch,
        group,
        runtime,
        session: new.session.unwrap_or_else(SessionId::new),
        ..launch::plain(context, author)
    };
    let waits = asked.group.is_some() && asked.program.is_some();
    if waits {
        // before it can be anybody's turn
        context.queue.remember(asked.session, new.environment.clone());
    }
    let (id, outcome) = (asked.session, open(context, asked).await);
    if waits && !outcome.as_ref().is_ok_and(|opened| opened.session.id == id && opened.session.status == Status::Queued) {
        context.queue.environment_of(id);
    }
    let opened = outcome?;
    let session = take_over(context, &opened).await;
    if let Some(launch) = opened.launch
        && let Some(holder) = holder
    {
        let (id, thread, name) = (session.id, session.thread, session.name.clone());
        let ready = Ready {
            runtime,
            session: id,
            thread,
            name,
            launch,
            environment: new.environment,
            holder,
            interpreter: None,
            preface: String::new(),
        };
        if let Err(why) = launch::start(context, ready).await? {
            return Err(Failure::failed(format!("{why}; session {} is failed", session.name)));
        }
    }
    Ok(Changed { session: with_live(context, session), note: opened.note, previous: opened.previous })
}

/// Opens or continues; a last program that is being ended is waited for.
async fn open(context: &Context, asked: New) -> Result<Opened, Failure> {
    let deadline = tokio::time::Instant::now() + ENDING_PATIENCE;
    loop {
        let changed = context.registry.changed();
        match context.store.open_session(asked.clone()).await {
            Err(store::Error::Ending { .. }) if tokio::time::timeout_at(deadline, changed).await.is_ok() => {}
            outcome => return Ok(outcome?),
        }
    }
}

/// A fresh session in the place of one that was lost with the machine; its program is not started again by itself.
pub async fn open_record(context: &Context, lost: SessionId, author: Author) -> Result<Opened, Failure> {
    let asked = New { name: Some(lost.to_string()), ..launch::plain(context, author) };
    let mut opened = open(context, asked).await?;
    opened.session = take_over(context, &opened).await;
    Ok(opened)
}

/// What the database now says, said in the registry and the log too.
async fn take_over(context: &Context, opened: &Opened) -> Session {
    for runtime in &opened.adopted {
        context.registry.pass_on(*runtime, opened.session.id);
    }
    if !opened.adopted.is_empty() {
        // what stood still for the session before goes on for this one
        super::settle(context, opened.session.id).await;
    }
    if let Some(previous) = &opened.previous {
        context.log.warn(&format!(
            "session {} of thread {} ({}), last activity {}, was used after the machine restarted; session {} goes on in its place",
            previous.id, previous.name, previous.thread, previous.last_activity_at, opened.session.id
        ));
    }
    opened.session.clone()
}

/// What can be said before anything is stored.
fn check(new: &NewSession) -> Result<(), Failure> {
    if let Some(name) = &new.name
        && SessionId::parse(name).is_none()
    {
        name::check(name).map_err(Failure::usage)?;
    }
    if let Some(group) = &new.group {
        super::queue::check_name(group)?;
    }
    check_folder(new.workspace.as_ref().unwrap_or(&new.here))?;
    for (key, value) in new.env_delta.iter().chain(&new.environment) {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            return Err(Failure::usage(format!("{key:?} is not an environment variable: write -e NAME=VALUE")));
        }
    }
    if new.argv.iter().any(|word| word.contains('\0')) {
        return Err(Failure::usage("the command contains a zero byte"));
    }
    if let Some(size) = new.size
        && (!(2..=1000).contains(&size.cols) || !(2..=500).contains(&size.rows))
    {
        return Err(Failure::usage(format!("a size of {}x{} is not possible: between 2x2 and 1000x500", size.cols, size.rows)));
    }
    check_budget(new.max_iterations)?;
    for (what, text) in [("task", &new.task), ("mode", &new.mode), ("user", &new.user), ("channel", &new.channel)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(Failure::usage(format!("--{what} is empty: leave it out, or say something")));
        }
        if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
            return Err(Failure::usage(format!("--{what} has more than {MAX_TEXT} bytes: put it into a file and name that")));
        }
    }
    Ok(())
}

/// A slip of the fingers is no session. Under a name that was used before, the folder and variables of then count, and whether it can be
/// started shows when it is.
async fn check_program(context: &Context, new: &NewSession) -> Result<(), Failure> {
    let Some(program) = new.argv.first().filter(|program| !program.contains('/')) else { return Ok(()) };
    let path = new.env_delta.iter().rev().chain(&new.environment).find(|(key, _)| key == "PATH").map(|(_, value)| value);
    let Some(path) = path.filter(|path| path.split(':').all(|folder| folder.starts_with('/'))) else { return Ok(()) };
    if launch::is_on_path(program, path) {
        return Ok(());
    }
    let is_known = match &new.name {
        Some(name) => context.store.find_exact(name.clone()).await.is_ok(),
        None => false,
    };
    if is_known { Ok(()) } else { Err(Failure::failed(format!("cannot start {}: no such program", shared::text::visible(program)))) }
}

/// Far beyond any task, and far from what a number in a database can hold.
const MAX_BUDGET: u64 = 1_000_000_000;

pub fn check_budget(budget: Option<u64>) -> Result<(), Failure> {
    match budget {
        Some(budget) if !(1..=MAX_BUDGET).contains(&budget) => {
            Err(Failure::usage(format!("--max-iterations must be between 1 and {MAX_BUDGET}")))
        }
        _ => Ok(()),
    }
}

/// A folder one can work in, or why not.
pub fn check_folder(path: &str) -> Result<(), Failure> {
    if !Path::new(path).is_absolute() {
        return Err(Failure::usage(format!("the workspace must be an absolute path, not {path:?}")));
    }
    let Err(error) = std::fs::read_dir(path) else { return Ok(()) };
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        std::io::ErrorKind::NotADirectory => "is not a folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "may not be read by you".to_owned(),
        _ => error.to_string(),
    };
    Err(Failure::usage(format!("the workspace {} {why}: give a folder with -w", shared::text::visible(path))))
}

pub async fn list(context: &Context, filter: Filter) -> Result<Vec<Session>, Failure> {
    let sessions = context.store.sessions(filter).await?;
    let live = context.registry.by_session();
    let unreachable: std::collections::HashMap<SessionId, String> = context.registry.all_unreachable().into_iter().collect();
    let present = |session: &Session| {
        let handles = live.get(&session.id).map_or(&[][..], Vec::as_slice);
        Session { unreachable: unreachable.get(&session.id).cloned(), ..with_handles(session.clone(), handles) }
    };
    Ok(sessions.iter().map(present).collect())
}

/// Some of a list again; those that are gone are left out.
pub async fn rows(context: &Context, sessions: Vec<SessionId>) -> Result<Vec<Session>, Failure> {
    let mut rows = Vec::with_capacity(sessions.len());
    for id in sessions {
        match context.store.session(id).await {
            Ok(session) => rows.push(with_live(context, session)),
            Err(store::Error::Gone) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rows)
}

pub async fn show(context: &Context, name: String) -> Result<Layers, Failure> {
    let mut session = find(context, name).await?;
    session.unreachable = context.registry.unreachable(session.id);
    let store = &context.store;
    store.mend(session.id).await?;
    let mut runtimes = store.runtimes_of(session.id).await?;
    for runtime in &mut runtimes {
        runtime.resume = context.agents().resume(&runtime.launch.argv, Known::of(runtime.agent.as_ref()));
        let dir = context.paths.recording(runtime.id);
        runtime.recording.bytes = recording::disk_bytes(&dir);
        runtime.recording.start = recording::segments(&dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
        if let Some(handle) = context.registry.runtime(runtime.id) {
            runtime.state = handle.facts.state();
            runtime.holder_pid = Some(handle.facts.holder_pid);
            runtime.recording.end = handle.facts.end();
            runtime.recording.suspended = handle.facts.suspended();
        } else {
            runtime.recording.end = recording::tail(&dir).map_or(0, |tail| tail.end);
        }
        if let Some(recorded) = store.recorded(runtime.id).await? {
            runtime.recording.missing = Box::pin(super::replay::known_gaps(context, &recorded)).await?;
        }
    }
    let terminals = store.terminals_of(session.id).await?;
    let mut leases = Vec::new();
    for terminal in &terminals {
        if leases.iter().all(|lease: &shared::lease::Lease| lease.id != terminal.lease) {
            leases.push(store.lease(terminal.lease).await?);
        }
    }
    let evidence = super::program_of(context, &session).map(|handle| handle.facts.explain()).unwrap_or_default();
    Ok(Layers {
        evidence,
        watch: Some(super::files::watching(context, &session)),
        thread: store.thread_of(session.id).await?,
        sessions: store.lines_of_thread(session.id).await?,
        session,
        terminals,
        runtimes,
        leases,
    })
}

pub async fn rename(context: &Context, name: String, new: String, author: Author) -> Result<Session, Failure> {
    name::check(&new).map_err(Failure::usage)?;
    let session = find(context, name).await?;
    context.store.rename(session.id, new.clone(), author).await?;
    if let Some(handle) = context.registry.of_thread(session.thread) {
        handle.renamed(new).await;
    }
    Ok(with_live(context, context.store.session(session.id).await?))
}

/// Ends the program, and with it the session. One without a program just ends, a queued one is cancelled.
pub async fn kill(context: &Context, name: String, author: Author) -> Result<Changed, Failure> {
    let session = find_exact(context, name).await?;
    let had_ended = session.status.has_ended();
    let asked = match context.store.ask_to_end(session.id, "killed", author).await {
        Err(crate::store::Error::DiskFull) => return kill_unstored(context, session, author).await,
        asked => asked?,
    };
    match asked {
        EndAsked::Program(runtimes) | EndAsked::Ended(runtimes) => {
            end_runtimes(context, runtimes, author).await?;
            end_leftovers(context, session.id, None).await?;
        }
        EndAsked::Nothing => {
            if !end_leftovers(context, session.id, None).await? {
                return Err(Failure::new(Code::Status, format!("cannot kill: session {} is {}", session.name, session.in_words())));
            }
        }
    }
    if author != Author::Agent {
        // whoever asks for an end knows of it
        context.store.known(session.id).await?;
    }
    let session = with_live(context, context.store.session(session.id).await?);
    let note = had_ended.then(|| format!("what was still running of {} has been ended", session.name));
    Ok(Changed { session, note, previous: None })
}

/// Ends what runs although that cannot be stored: a full disk must not keep a program running. Its runtime stores the end as
/// soon as there is room.
async fn kill_unstored(context: &Context, session: Session, author: Author) -> Result<Changed, Failure> {
    let runtimes: Vec<RuntimeHandle> = context.registry.all().into_iter().filter(|handle| handle.facts.session() == session.id).collect();
    if runtimes.is_empty() {
        return Err(crate::store::Error::DiskFull.into());
    }
    for handle in runtimes {
        handle.terminate(ENDING_GRACE_MS, author).await;
    }
    let note = Some(format!("what ran in {} is ended; the disk is full: that is stored as soon as there is room", session.name));
    Ok(Changed { session: with_live(context, session), note, previous: None })
}

/// Ends programs of which that is stored already, all at once.
pub async fn end_runtimes(context: &Context, runtimes: Vec<RuntimeId>, author: Author) -> Result<(), Failure> {
    let mut endings = tokio::task::JoinSet::new();
    for runtime in runtimes {
        let context = context.clone();
        endings.spawn(async move { end_runtime(&context, runtime, author).await });
    }
    let mut outcome = Ok(());
    while let Some(ended) = endings.join_next().await {
        outcome = outcome.and(ended.unwrap_or(Ok(())));
    }
    outcome
}

/// Ends a program of which that is stored already; one that is only being started, or reached, is waited for.
pub async fn end_runtime(context: &Context, runtime: RuntimeId, author: Author) -> Result<(), Failure> {
    let deadline = tokio::time::Instant::now() + REACHING_PATIENCE;
    loop {
        let changed = context.registry.changed();
        if let Some(handle) = context.registry.runtime(runtime) {
            handle.terminate(ENDING_GRACE_MS, author).await;
            return Ok(());
        }
        if context.store.is_ending(runtime).await?.is_none() {
            return Ok(());
        }
        if tokio::time::timeout_at(deadline, changed).await.is_err() {
            let why = context.registry.why_unreachable(runtime).unwrap_or_else(|| "its holder does not answer".to_owned());
            return Err(Failure::failed(format!("{why}; the program is ended as soon as it can be reached")));
        }
    }
}

/// What programs and interpreters of a session's thread have left running when they ended, or only those of a language; `false` if
/// there is nothing.
pub async fn end_leftovers(context: &Context, session: SessionId, language: Option<Language>) -> Result<bool, Failure> {
    let terminals = context.store.terminals_of(session).await?;
    let is_meant = |terminal| language.is_none_or(|language| terminals.iter().any(|one| one.id == terminal && one.kind == language.kind()));
    let mut endings = tokio::task::JoinSet::new();
    for runtime in context.store.runtimes_of(session).await? {
        let is_over = context.registry.runtime(runtime.id).is_none() && !runtime.state.is_live();
        if is_over && is_meant(runtime.terminal) && context.paths.holder_socket(runtime.id).exists() {
            let context = context.clone();
            endings.spawn(async move { end_lingering(&context, runtime.id).await });
        }
    }
    let mut has_ended = false;
    while let Some(ended) = endings.join_next().await {
        has_ended |= ended.unwrap_or(false);
    }
    Ok(has_ended)
}

/// A program that has ended may have left processes behind, and its holder with them. Ends both; `false` if there is none.
pub async fn end_lingering(context: &Context, runtime: RuntimeId) -> bool {
    end_behind(&context.paths.holder_socket(runtime), ENDING_GRACE_MS).await
}

/// Ends whatever is behind a holder's socket; `false` if there is nothing.
pub async fn end_behind(socket: &Path, grace_ms: u32) -> bool {
    let ending = async {
        let Ok((mut link, _)) = Link::connect(socket).await else { return false };
        let _ = link.terminate(grace_ms).await;
        // it closes the link when everything is gone
        while link.news().await.is_ok() {}
        true
    };
    // a holder that is stopped or stuck must not hold up the user
    tokio::time::timeout(Duration::from_millis(u64::from(grace_ms)) + END_PATIENCE, ending).await.unwrap_or(true)
}

/// Takes a thread away for good, recordings included. A live one has to be ended first.
pub async fn remove(context: &Context, name: String) -> Result<Gone, Failure> {
    let session = match find_exact(context, name.clone()).await {
        Err(_) if context.store.remove_empty(name.clone()).await? => return Ok(Gone { name }),
        found => found?,
    };
    crate::store::drop_backup(&context.paths.database());
    let removed = context.store.remove(session.id).await?;
    for runtime in removed.runtimes {
        end_lingering(context, runtime).await;
        let dir = context.paths.recording(runtime);
        if let Err(error) = recording::remove(&dir) {
            context.log.warn(&format!("removing session {}: {}: {error}", session.name, dir.display()));
        }
    }
    Ok(Gone { name: session.name })
}
