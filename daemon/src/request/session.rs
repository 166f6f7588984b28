//! Sessions: new, list, show, rename, kill, remove.

use std::time::Duration;

use shared::event::Author;
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
use crate::ending::{end_leftovers, end_lingering, end_runtimes};
use crate::handle::runtime::RuntimeHandle;
use crate::launch::{self, ENDING_GRACE_MS, Ready};
use crate::recording;
use crate::store::{self, EndAsked, New, Opened, Program};
use crate::workspace::check_folder;

/// How long a program that is being ended is waited for before another is started in its place.
const ENDING_PATIENCE: Duration = Duration::from_secs(10);

/// Longest text of a task: what belongs into a list.
const MAX_TEXT: usize = 16 << 10;

pub async fn new(context: &Context, mut new: NewSession, author: Author) -> Result<Changed, Failure> {
    normalise(context, &mut new).await?;
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
        context.queue.take_environment(id);
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
        crate::pausing::settle(context, opened.session.id).await;
    }
    if let Some(previous) = &opened.previous {
        context.log.warn(&format!(
            "session {} of thread {} ({}), last activity {}, was used after the machine restarted; session {} goes on in its place",
            previous.id, previous.name, previous.thread, previous.last_activity_at, opened.session.id
        ));
    }
    opened.session.clone()
}

/// Brings the name and the other labels into the form in which they are stored, or says why that is not possible.
async fn normalise(context: &Context, new: &mut NewSession) -> Result<(), Failure> {
    if let Some(name) = new.name.take_if(|name| SessionId::parse(name).is_none()) {
        new.name = Some(match name::normalise(&name) {
            Ok(name) => name,
            // a name that an older version allowed stays usable
            Err(_) if context.store.has_thread(name.clone()).await? => name,
            Err(why) => return Err(Failure::usage(why)),
        });
    }
    if let Some(group) = &mut new.group {
        *group = super::queue::normalise_name(group)?;
    }
    for (what, label) in [("mode", &mut new.mode), ("user", &mut new.user), ("channel", &mut new.channel)] {
        if let Some(label) = label {
            *label = name::normalise_label(what, label).map_err(Failure::usage)?;
        }
    }
    Ok(())
}

/// What can be said before anything is stored.
fn check(new: &NewSession) -> Result<(), Failure> {
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
    if let Some(task) = &new.task {
        if task.trim().is_empty() {
            return Err(Failure::usage("--task is empty: leave it out, or say something"));
        }
        if task.len() > MAX_TEXT {
            return Err(Failure::usage(format!("--task has more than {MAX_TEXT} bytes: put it into a file and name that")));
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
    let new = name::normalise(&new).map_err(Failure::usage)?;
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
        match recording::remove(&dir) {
            Ok(()) => context.store.removal_is_done(runtime).await?,
            // the next daemon tries again
            Err(error) => context.log.warn(&format!("removing session {}: {}: {error}", session.name, dir.display())),
        }
    }
    Ok(Gone { name: session.name })
}
