//! Pause and resume: everything of a session stands still, or is ended and started again.

use shared::event::Author;
use shared::id::{RuntimeId, SessionId};
use shared::message::{Changed, Code, Failure, Pause, Restored, Resume};
use shared::session::{ITERATIONS, LOST, Session, Status};
use shared::terminal::TerminalKind;

use super::life::{answer, check_text};
use super::session::check_budget;
use super::{check_reachable, find, find_to_use, with_live};
use crate::context::Context;
use crate::pausing::{self, UNREACHED, Working, settle, settle_one};
use crate::restore;
use crate::store::{Asked, Waking};
use crate::wake::{self, Was};

pub async fn pause(context: &Context, asked: Pause, author: Author) -> Result<Changed, Failure> {
    check_text("the reason", asked.reason.as_deref())?;
    let (session, previous) = find_to_use(context, asked.name.clone(), author).await?;
    if asked.hibernate {
        return hibernate(context, session, asked, author).await;
    }
    if let Some(kind) = asked.terminal {
        return freeze_terminal(context, &session, kind, Some(asked.queue_input), author).await;
    }
    check_reachable(context, &session, "pause")?;
    let stored = Asked::Pause { reason: asked.reason, queues_input: asked.queue_input };
    let paused = context.store.change_status(session.id, stored, author).await?;
    let problems = settle(context, paused.id).await;
    if problems.as_deref() == Some(UNREACHED) {
        return Err(Failure::failed(format!("session {} is not paused yet: {UNREACHED}", paused.name)));
    }
    let mut changed = answer(context, paused, previous);
    changed.note = changed.note.or(problems);
    Ok(changed)
}

pub async fn resume(context: &Context, asked: Resume, author: Author) -> Result<Changed, Failure> {
    check_budget(asked.max_iterations)?;
    let (session, previous) = find_to_use(context, asked.name, author).await?;
    if previous.is_some() {
        // the fresh one is active already
        return Ok(answer(context, session, previous));
    }
    if let Some(kind) = asked.terminal {
        return freeze_terminal(context, &session, kind, None, author).await;
    }
    let stored = Asked::Resume { max_iterations: asked.max_iterations, limits: context.config().groups.clone() };
    if session.is_hibernated() {
        return Box::pin(wake(context, session, stored, asked.environment, author)).await;
    }
    check_reachable(context, &session, "resume")?;
    let resumed = context.store.change_status(session.id, stored, author).await?;
    let problems = settle(context, resumed.id).await;
    if problems.as_deref() == Some(UNREACHED) {
        return Err(Failure::failed(format!("session {} does not go on yet: {UNREACHED}", resumed.name)));
    }
    let mut changed = answer(context, resumed, None);
    if changed.session.runtime.is_some() && context.registry.of_session(changed.session.id).is_none() {
        changed.note = Some(format!("its program is gone: `sessions-tui new -n {} -- COMMAND` starts one in it", changed.session.name));
    }
    changed.note = changed.note.or(problems);
    Ok(changed)
}

/// One terminal of an active session.
async fn freeze_terminal(
    context: &Context,
    session: &Session,
    kind: TerminalKind,
    freeze: Option<bool>,
    author: Author,
) -> Result<Changed, Failure> {
    check_reachable(context, session, if freeze.is_some() { "pause" } else { "resume" })?;
    let runtime = context.store.freeze_terminal(session.id, kind, freeze, author).await?;
    let note = match context.registry.runtime(runtime) {
        Some(handle) => settle_one(&handle).await,
        None => Some(UNREACHED.to_owned()),
    };
    let session = with_live(context, context.store.session(session.id).await?);
    Ok(Changed { session, note, previous: None })
}

/// A person at a paused terminal pressed the key that lets it go on.
pub async fn go_on(context: &Context, session: SessionId, runtime: RuntimeId) -> Result<(), Failure> {
    let present = context.store.session(session).await?;
    if present.status == Status::Active {
        let kind = context.store.terminals_of(session).await?;
        let runtimes = context.store.runtimes_of(session).await?;
        let terminal =
            runtimes.iter().find(|one| one.id == runtime).and_then(|one| kind.iter().find(|terminal| terminal.id == one.terminal));
        if let Some(terminal) = terminal {
            freeze_terminal(context, &present, terminal.kind, None, Author::Human).await?;
        }
        return Ok(());
    }
    if present.status == Status::Timeout && present.status_reason.as_deref() == Some(ITERATIONS) {
        let text = format!("its {} iterations are used up: `sessions-tui resume {} --max-iterations N`", present.iterations, present.name);
        return Err(Failure::new(Code::Status, text));
    }
    resume(context, Resume { name: session.to_string(), ..Resume::default() }, Author::Human).await.map(|_| ())
}

/// Ends the processes of a session and keeps everything else: it is started again when it is needed.
async fn hibernate(context: &Context, session: Session, asked: Pause, author: Author) -> Result<Changed, Failure> {
    let allowed = if asked.force { Working::IsEnded } else { Working::IsRefused };
    let session = pausing::hibernate(context, session, asked.reason, allowed, author).await?;
    let note = format!("its processes are ended: `sessions-tui resume {}`, attaching, sending or exec start it again", session.name);
    Ok(Changed { session, note: Some(note), previous: None })
}

/// Starts a hibernated session's program again, as the session goes on.
async fn wake(
    context: &Context,
    session: Session,
    asked: Asked,
    environment: Option<Vec<(String, String)>>,
    author: Author,
) -> Result<Changed, Failure> {
    let environment = wake::environment(environment);
    let Some(asleep) = context.store.asleep(session.id).await? else {
        return Err(Failure::failed(format!("session {} has no program that could be started again", session.name)));
    };
    let again = wake::again(context, asleep, Was::Hibernated).await?;
    wake::check(&session, &again.launch, &environment)?;
    let waking = Waking { runtime: again.runtime, continues: again.continues, launch: again.launch.clone(), lease: context.local_lease };
    let session = context.store.wake(session.id, asked, waking, author).await?;
    if let Err(why) = wake::start(context, &session, again, environment).await? {
        return Err(Failure::failed(format!("{why}; session {} is failed", session.name)));
    }
    Ok(Changed { session: with_live(context, session), note: Some("it was hibernated and has been started again".into()), previous: None })
}

/// Whoever wants to use a hibernated session wakes it; `true` if it was one.
pub async fn wake_if_hibernated(
    context: &Context,
    name: String,
    environment: Option<Vec<(String, String)>>,
    author: Author,
) -> Result<bool, Failure> {
    let session = find(context, name).await?;
    if session.status != Status::Paused || !context.store.sleeps(session.id).await? {
        return Ok(false);
    }
    let asked = Resume { name: session.id.to_string(), environment, ..Resume::default() };
    match Box::pin(resume(context, asked, author)).await {
        Ok(_) => Ok(true),
        // somebody else did at the same moment
        Err(failure) if failure.code == Code::Status && context.store.session(session.id).await?.status == Status::Active => Ok(true),
        Err(failure) => Err(failure),
    }
}

/// Starts lost programs again: those that are named, or all that can be.
pub async fn restore(
    context: &Context,
    names: Vec<String>,
    environment: Option<Vec<(String, String)>>,
    author: Author,
) -> Result<Vec<Restored>, Failure> {
    if names.is_empty() {
        let lost = context.store.to_restore(true).await?;
        return Ok(restore::all(context, lost, environment, author).await);
    }
    let mut lost = Vec::new();
    for name in names {
        let session = find(context, name).await?;
        if session.status != Status::Failed || session.status_reason.as_deref() != Some(LOST) {
            let text = format!("cannot restore: session {} is {}; only what was lost is restored", session.name, session.in_words());
            return Err(Failure::new(Code::Status, text));
        }
        lost.push(session.id);
    }
    Ok(restore::all(context, lost, environment, author).await)
}
