//! Interpreters: exec, its result and output, cancel, state, history, reset.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use shared::command::Command;
use shared::event::Author;
use shared::exec::{
    DEFAULT_HISTORY, ExecCall, ExecResult, HistoryEntry, Language, MASK, MAX_OUTPUT, OutputPage, PerStream, Place, ResetDone, State,
    States, Stream, looks_secret,
};
use shared::id::{ExecId, SessionId};
use shared::message::{Code, Failure};

use super::Caller;
use super::pause::wake_if_hibernated;
use crate::context::Context;
use crate::ending::{end_leftovers, end_runtimes};
use crate::exec::output;
use crate::handle::exec::{self as live_exec, Live, Progress};
use crate::recording;
use crate::store::{Remembered, StoredExec};
use crate::workspace::check_folder;
use crate::{exec, execute};

/// Entries of history in one answer.
const MAX_HISTORY: u32 = 10_000;

/// A call is ended within this time after its timeout, unless its holder is stopped.
const OVERDUE: Duration = Duration::from_secs(2);

/// An idle interpreter says what it has defined at once.
const NAMES_PATIENCE: Duration = Duration::from_secs(2);

pub async fn exec(context: &Context, caller: &Arc<Caller>, call: ExecCall, author: Author) -> Result<ExecResult, Failure> {
    let limit = live_exec::output_limit(call.output_limit);
    let patience = call.soft_limit_ms.map_or(context.config().runtime.soft_limit.duration(), Duration::from_millis);
    let is_streamed = call.stream;
    let timeout = call.timeout_ms.map(Duration::from_millis);
    let live = match execute::begin(context, call.clone(), author).await {
        Err(failure) if failure.code == Code::Status && wake_place(context, &call, author).await? => {
            execute::begin(context, call, author).await?
        }
        begun => begun?,
    };
    let silent = async {
        match timeout {
            Some(timeout) => until_overdue(context, &live, timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = await_end(context, caller, &live, patience, is_streamed) => Ok(live.result(limit)),
        why = silent => {
            let result = live.result(limit);
            let note = format!("timed out, but {why}; it is interrupted then: `sessions-tui result {} --wait` waits for it", result.exec_id);
            Ok(ExecResult { success: false, timed_out: true, note: Some(note), ..result })
        }
    }
}

/// Returns when a call is overdue and its holder is stopped, with why: nothing can end it then.
async fn until_overdue(context: &Context, live: &Arc<Live>, timeout: Duration) -> String {
    tokio::time::sleep(timeout + OVERDUE).await;
    loop {
        let holder = context.registry.runtime(live.runtime()).map(|handle| handle.facts.holder_pid);
        if let Some(why) = holder.and_then(crate::holder::why_silent) {
            return why;
        }
        tokio::time::sleep(OVERDUE).await;
    }
}

/// A session that was hibernated goes on for a call; `false` if that was not why it was refused.
async fn wake_place(context: &Context, call: &ExecCall, author: Author) -> Result<bool, Failure> {
    let Some(session) = context.store.place(call.place.clone()).await? else { return Ok(false) };
    wake_if_hibernated(context, session.to_string(), Some(call.environment.clone()), author).await
}

/// Waits for a call for as long as asked, and streams what it prints meanwhile.
async fn await_end(context: &Context, caller: &Arc<Caller>, live: &Arc<Live>, patience: Duration, is_streamed: bool) {
    let ended = async {
        if is_streamed {
            output::follow(context, live, &caller.outbox).await;
        }
        live.ended().await;
    };
    let _ = tokio::time::timeout(patience, ended).await;
}

pub async fn result(
    context: &Context,
    caller: &Arc<Caller>,
    id: ExecId,
    wait_ms: Option<u64>,
    output_limit: Option<u64>,
    is_streamed: bool,
) -> Result<ExecResult, Failure> {
    let limit = live_exec::output_limit(output_limit);
    if let Some(live) = context.execs.get(id) {
        let patience = Duration::from_millis(wait_ms.unwrap_or(0));
        await_end(context, caller, &live, patience, is_streamed).await;
        return Ok(live.result(limit));
    }
    let mut stored = context.store.exec(id).await?;
    if stored.finished.is_none()
        && let Some(end) = context.store.end_of(stored.runtime).await?
    {
        // the daemon of before ended between storing its runtime's end and its own
        let recorded = recording::tail(&context.paths.recording(stored.runtime)).map_or(0, |tail| tail.end);
        exec::settle_ended(context, stored.runtime, &end, recorded).await?;
        stored = context.store.exec(id).await?;
    }
    if stored.finished.is_none() {
        // accepted, and its runtime is being reached: it becomes live when it is
        return Ok(live_exec::describe(id, stored.language, (stored.session, stored.name), None, nothing()));
    }
    if is_streamed {
        let live = Arc::new(Live::of(&stored));
        if let Some(finished) = &stored.finished {
            live.progress.send_replace(Progress::Ended(Arc::new(finished.clone())));
        }
        output::follow(context, &live, &caller.outbox).await;
    }
    Ok(stored_result(context, stored, limit).await)
}

fn nothing() -> PerStream<live_exec::Text> {
    let text = || live_exec::text(&live_exec::Captured::default(), 0);
    PerStream { stdout: text(), stderr: text() }
}

async fn stored_result(context: &Context, stored: StoredExec, limit: u64) -> ExecResult {
    let heads = match stored.finished.as_ref().and_then(|finished| Some(((finished.start?, finished.end?), finished.bytes))) {
        Some((span, totals)) => output::heads(&context.paths.recording(stored.runtime), span, totals, limit).await,
        None => PerStream::default(),
    };
    let missing = |captured: &live_exec::Captured| captured.total.min(limit).saturating_sub(captured.head.len() as u64);
    let missing_bytes = missing(&heads.stdout) + missing(&heads.stderr);
    let streams = PerStream { stdout: live_exec::text(&heads.stdout, limit), stderr: live_exec::text(&heads.stderr, limit) };
    let described = live_exec::describe(stored.id, stored.language, (stored.session, stored.name), stored.finished.as_ref(), streams);
    ExecResult { missing_bytes, ..described }
}

pub async fn page(context: &Context, id: ExecId, stream: Stream, offset: u64, limit: Option<u64>) -> Result<OutputPage, Failure> {
    let limit = limit.unwrap_or(MAX_OUTPUT).clamp(1, MAX_OUTPUT);
    let live = context.execs.get(id);
    let (runtime, span, bytes, running) = match &live {
        Some(live) => {
            let (start, end, running) = match &*live.progress.borrow() {
                Progress::Running(start) => (Some(*start), u64::MAX, true),
                // its caller may have been told before it is taken out of the list
                Progress::Ended(finished) => (finished.start, finished.end.unwrap_or(u64::MAX), false),
                Progress::Waiting(_) => (None, 0, true),
            };
            (live.runtime(), start.map(|start| (start, end)), live.bytes(), running)
        }
        None => {
            let stored = context.store.exec(id).await?;
            let finished = stored.finished.as_ref();
            let span = finished.and_then(|finished| Some((finished.start?, finished.end?)));
            (stored.runtime, span, finished.map(|finished| finished.bytes).unwrap_or_default(), finished.is_none())
        }
    };
    let bytes = match stream {
        Stream::Stdout => bytes.stdout,
        Stream::Stderr => bytes.stderr,
    };
    // what was printed since is for the next page
    let limit = limit.min(bytes.saturating_sub(offset));
    let part = match span {
        Some(span) if limit > 0 => output::part(&context.paths.recording(runtime), span, bytes, stream, offset, limit).await,
        _ => output::Part { offset: offset.min(bytes), bytes: Vec::new(), seen: bytes },
    };
    Ok(OutputPage {
        exec_id: id,
        stream,
        offset: part.offset,
        next_offset: part.offset + part.bytes.len() as u64,
        bytes,
        running,
        base64: base64::engine::general_purpose::STANDARD.encode(&part.bytes),
    })
}

pub async fn cancel(context: &Context, id: ExecId) -> Result<ExecResult, Failure> {
    let live = execute::cancel(context, id).await?;
    live.ended().await;
    Ok(live.result(live_exec::output_limit(None)))
}

/// The session of a place that must have one.
async fn session_of(context: &Context, place: &Place) -> Result<Option<SessionId>, Failure> {
    if let Place::Workspace(folder) = place {
        check_folder(folder)?;
    }
    Ok(context.store.place(place.clone()).await?)
}

pub async fn state(
    context: &Context,
    place: Place,
    language: Option<Language>,
    history: Option<u32>,
    reveal: bool,
) -> Result<States, Failure> {
    let Some(session) = session_of(context, &place).await? else {
        return Ok(States { session: None, name: None, runtimes: Vec::new() });
    };
    // asked first: what it says of its environment before that is stored by then
    for remembered in context.store.remembered(session).await? {
        if language.is_none_or(|wanted| wanted == remembered.language)
            && let Some(handle) = remembered.runtime.and_then(|runtime| context.registry.runtime(runtime))
            && handle.facts.calls() == 0
        {
            let _ = tokio::time::timeout(NAMES_PATIENCE, handle.names()).await;
        }
    }
    let name = context.store.session(session).await?.name;
    let mut runtimes = Vec::new();
    for remembered in context.store.remembered(session).await? {
        if language.is_none_or(|wanted| wanted == remembered.language) {
            runtimes.push(describe(context, session, remembered, history.unwrap_or(DEFAULT_HISTORY), reveal).await?);
        }
    }
    Ok(States { session: Some(session), name: Some(name), runtimes })
}

async fn describe(context: &Context, session: SessionId, remembered: Remembered, history: u32, reveal: bool) -> Result<State, Failure> {
    let language = remembered.language;
    let handle = remembered.runtime.and_then(|runtime| context.registry.runtime(runtime));
    let history = context.store.history(session, Some(language), history.min(MAX_HISTORY)).await?;
    let show = |(name, value): (String, String)| {
        let value = if !reveal && looks_secret(&name) { MASK.to_owned() } else { value };
        (name, value)
    };
    let last_call = history.last().map(|entry| entry.started_at);
    Ok(State {
        language,
        alive: handle.is_some(),
        busy: handle.as_ref().is_some_and(|handle| handle.facts.calls() > 0),
        pid: handle.as_ref().map(|handle| handle.facts.pid()),
        version: handle.as_ref().and_then(|handle| handle.facts.version()),
        working_dir: remembered.cwd,
        env_vars: remembered.env.set.into_iter().map(show).collect(),
        env_removed: remembered.env.removed,
        // what a runtime had defined goes with it
        imports: if handle.is_some() { remembered.names.imports } else { Vec::new() },
        names: if handle.is_some() { remembered.names.names } else { Vec::new() },
        last_activity: handle.as_ref().and_then(|handle| handle.facts.last_activity()).or(last_call),
        history,
        state_version: remembered.state_version,
    })
}

pub async fn history(
    context: &Context,
    place: Place,
    language: Option<Language>,
    limit: Option<u32>,
) -> Result<Vec<HistoryEntry>, Failure> {
    match session_of(context, &place).await? {
        Some(session) => Ok(context.store.history(session, language, limit.unwrap_or(DEFAULT_HISTORY).min(MAX_HISTORY)).await?),
        None => Ok(Vec::new()),
    }
}

/// What was typed into the shell of a session's terminal, newest last.
pub async fn commands(context: &Context, name: String, limit: Option<u32>) -> Result<Vec<Command>, Failure> {
    let session = context.store.find(name).await?.session;
    Ok(context.store.commands_of(session, limit.unwrap_or(DEFAULT_HISTORY).min(MAX_HISTORY)).await?)
}

/// Ends the interpreters, then forgets what their terminals remember: in this order, so that whatever they still do is forgotten too.
pub async fn reset(context: &Context, place: Place, language: Option<Language>, author: Author) -> Result<ResetDone, Failure> {
    let what = language.map_or("runtimes".to_owned(), |language| format!("{language} runtime"));
    if let Place::Session(name) = &place {
        // what is reset cannot be brought back: no prefix
        context.store.find_exact(name.clone()).await?;
    }
    let Some(session) = session_of(context, &place).await? else {
        return Ok(ResetDone {
            reset: true,
            languages: Vec::new(),
            note: format!("there was no {what} to reset: the next call starts clean"),
        });
    };
    let status = context.store.session(session).await?;
    if status.status == shared::session::Status::Queued {
        return Err(Failure::new(Code::Status, format!("cannot reset: session {} is queued", status.name)));
    }
    let ending = context.store.end_interpreters(session, language, "reset").await?;
    end_runtimes(context, ending, author).await?;
    end_leftovers(context, session, language).await?;
    let languages = context.store.forget_interpreters(session, language, author).await?;
    let note = if languages.is_empty() {
        format!("{} had no {what}: the next call starts clean", status.name)
    } else {
        let words: Vec<&str> = languages.iter().map(|language| language.as_str()).collect();
        format!("{} of {} starts clean with the next call, in {}", words.join(", "), status.name, status.workspace)
    };
    Ok(ResetDone { reset: true, languages, note })
}
