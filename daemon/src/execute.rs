//! Carries out an exec: finds or starts the interpreter it goes to, and hands it over. The runtime's own task does the rest
//! (`runtime/calls.rs`).

mod start;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use shared::event::Author;
use shared::exec::{ExecCall, Language, Place, Verb};
use shared::id::{ExecId, RuntimeId, SessionId};
use shared::message::{Code, Failure};
use tokio::time::Instant;

use crate::context::Context;
use crate::exec::settle;
use crate::handle::ask::Calling;
use crate::handle::exec::{Asking, Known, Live, Progress};
use crate::launch;
use crate::store::{self, Adopted, AskedExec, Begun, Finished, New, RUNTIME_MODE};
use crate::workspace::check_folder;

use start::{Caller, start_runtime};

/// How long a runtime that is being started, reached or ended is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// An exec that ends within this time is stored together with its result.
const SHORT: Duration = Duration::from_millis(10);

/// Accepts an exec and hands it to its runtime.
pub async fn begin(context: &Context, call: ExecCall, author: Author) -> Result<Arc<Live>, Failure> {
    let language = call.language.unwrap_or_else(|| call.verb.default_language());
    call.check()?;
    let (has_id, is_detached) = (call.id.is_some(), call.soft_limit_ms == Some(0));
    let (world, calls, holders) = (context.clone(), context.clone(), context.clone());
    let asked = Arc::new(AskedExec {
        id: call.id.unwrap_or_else(ExecId::new),
        place: call.place,
        language,
        verb: call.verb,
        code: call.code,
        stdin: call.stdin,
        timeout_ms: call.timeout_ms,
        author,
        max_open: context.config().runtime.max_queue,
        open: Box::new(move |runtime| calls.registry.runtime(runtime).map_or(0, |handle| handle.facts.calls())),
        unreachable: Box::new(move |runtime| holders.registry.why_unreachable(runtime)),
        new: Box::new(move || New { mode: Some(RUNTIME_MODE.to_owned()), for_calls: true, ..launch::plain(&world, author) }),
        check_folder,
    });
    let caller = Caller { environment: Arc::new(call.environment), umask: call.umask };
    let deadline = Instant::now() + PATIENCE;
    // an id that the caller has chosen may have been used before, which only the database knows
    if !has_id
        && let Some(known) = context.execs.known(&asked.place, language, context.store.standings())
        && let Some(handle) = context.registry.runtime(known.runtime)
        && handle.facts.calls() <= u64::from(asked.max_open)
    {
        // the holder records a call before it is carried out, and its result before it is told: a short one is stored when it is over
        let live = Arc::new(Live::new(asked.id, language, known.session, known.name, known.runtime));
        live.accept_later(Arc::clone(&asked));
        let live = on_its_way(context, &asked, live, None, &caller, deadline).await;
        if is_detached || tokio::time::timeout(SHORT, live.ended()).await.is_err() {
            accept(context, &live).await;
        }
        return Ok(live);
    }
    let _asking = Asking::new(&context.execs, &asked.place, language);
    let mut restarted = None;
    loop {
        let changed = context.registry.changed();
        let standings = context.store.standings();
        let (begun, adopted) = match context.store.begin_exec(Arc::clone(&asked), restarted.clone()).await {
            Err(store::Error::Ending { .. }) if tokio::time::timeout_at(deadline, changed).await.is_ok() => continue,
            outcome => outcome?,
        };
        pass_on(context, adopted);
        match begun {
            Begun::On { runtime, session, name } => {
                // its own change is the only one since
                context.execs.remember(&asked.place, language, Known { standings: standings + 1, runtime, session, name: name.clone() });
                let live = Arc::new(Live::new(asked.id, language, session, name, runtime));
                return Ok(on_its_way(context, &asked, live, restarted, &caller, deadline).await);
            }
            Begun::Absent(absent) => {
                if let Some(note) = start_runtime(context, *absent, language, &caller).await? {
                    restarted = Some(note);
                }
            }
        }
    }
}

/// Sessions that were opened for a call take over what was still running.
fn pass_on(context: &Context, adopted: Adopted) {
    if let Some(session) = adopted.session {
        for runtime in adopted.runtimes {
            context.registry.pass_on(runtime, session);
        }
    }
}

/// An accepted call is known, and goes to its runtime.
async fn on_its_way(
    context: &Context,
    asked: &AskedExec,
    live: Arc<Live>,
    restarted: Option<String>,
    caller: &Caller,
    deadline: Instant,
) -> Arc<Live> {
    let live = context.execs.insert(live);
    let calling = Calling {
        live: Arc::clone(&live),
        verb: asked.verb,
        code: asked.code.clone(),
        stdin: asked.stdin.clone(),
        timeout_ms: asked.timeout_ms,
        restarted,
        environment: Arc::clone(&caller.environment),
    };
    hand_over(context, live.runtime(), vec![calling], deadline).await;
    live
}

/// Stores an exec that is still running. If storing fails, the exec continues, and its result reports the failure.
async fn accept(context: &Context, live: &Live) {
    if let Some(asked) = live.take_unaccepted()
        && let Err(error) = context.store.accept_exec(asked, live.runtime(), live.session).await
    {
        live.was_not_stored(&error.to_string());
    }
}

/// Gives accepted calls to their runtime, which may still be starting. One that has just ended by itself is followed by another;
/// one that cannot be reached finds them in the database when it can.
async fn hand_over(context: &Context, runtime: RuntimeId, calls: Vec<Calling>, deadline: Instant) {
    let handle = loop {
        let changed = context.registry.changed();
        if let Some(handle) = context.registry.runtime(runtime) {
            break Some(handle);
        }
        if !matches!(context.store.is_ending(runtime).await, Ok(Some(_))) {
            break None;
        }
        if tokio::time::timeout_at(deadline, changed).await.is_err() {
            return;
        }
    };
    let mut refused = Vec::new();
    for calling in calls {
        match &handle {
            Some(handle) => refused.extend(handle.call(calling).await.err()),
            None => refused.push(calling),
        }
    }
    if let Some((session, language)) = refused.first().map(|calling| (calling.live.session, calling.live.language)) {
        if let Some(handle) = handle {
            handle.ended().await;
        }
        Box::pin(go_on_elsewhere(context.clone(), session, language, refused)).await;
    }
}

/// Calls that waited for a runtime that has just ended get another one, if their session goes on.
pub async fn go_on_elsewhere(context: Context, session: SessionId, language: Language, mut calls: Vec<Calling>) {
    let environment = calls.first().map(|calling| Arc::clone(&calling.environment)).unwrap_or_default();
    let caller = Caller { environment, umask: None };
    let deadline = Instant::now() + PATIENCE;
    let outcome = async {
        let mut note = None;
        loop {
            let changed = context.registry.changed();
            match context.store.interpreter_of(session, language).await {
                Ok(Begun::On { runtime, .. }) => {
                    let ids = calls.iter().map(|calling| calling.live.id).collect();
                    context.store.move_execs(ids, runtime, note.clone()).await?;
                    return Ok::<_, Failure>((runtime, note));
                }
                Ok(Begun::Absent(absent)) => note = start_runtime(&context, *absent, language, &caller).await?.or(note),
                Err(store::Error::Ending { .. }) if tokio::time::timeout_at(deadline, changed).await.is_ok() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    .await;
    match outcome {
        Ok((runtime, note)) => {
            for calling in &calls {
                *calling.live.runtime.lock().unwrap_or_else(PoisonError::into_inner) = runtime;
            }
            if let Some(first) = calls.first_mut() {
                first.restarted = note;
            }
            hand_over(&context, runtime, calls, deadline).await;
        }
        Err(failure) => {
            for calling in calls {
                let why = format!("its runtime ended before it was run, and there is no other: {failure}; nothing of it was done");
                settle(context.clone(), calling.live, Finished::lost(&why)).await;
            }
        }
    }
}

/// Interrupts a call, or takes it out of the queue; returns when it is over.
pub async fn cancel(context: &Context, id: ExecId) -> Result<Arc<Live>, Failure> {
    let refused = |what: &str| Failure::new(Code::Status, format!("cannot cancel: exec {id} {what}"));
    let Some(live) = context.execs.get(id) else {
        let has_ended = context.store.exec(id).await?.finished.is_some();
        return Err(refused(if has_ended { "has ended already" } else { "cannot be reached: its runtime does not answer" }));
    };
    // told, and not stored yet
    if matches!(*live.progress.borrow(), Progress::Ended(_)) {
        return Err(refused("has ended already"));
    }
    let Some(handle) = context.registry.runtime(live.runtime()) else {
        return Err(Failure::new(Code::Status, format!("cannot cancel: the runtime of exec {id} is just being started or ended")));
    };
    handle.cancel(id).await;
    Ok(live)
}

/// A line that a person typed into a transcript. What comes of it is there to be seen; a refusal is in the log.
pub async fn typed(context: &Context, session: SessionId, language: Language, code: String) {
    let call = ExecCall {
        place: Place::Session(session.to_string()),
        id: None,
        code,
        verb: Verb::Exec,
        language: Some(language),
        stdin: None,
        timeout_ms: None,
        soft_limit_ms: None,
        stream: false,
        output_limit: None,
        environment: Vec::new(),
        umask: None,
    };
    if let Err(failure) = begin(context, call, Author::Human).await {
        context.log.warn(&format!("session {session}: a typed line was not run: {failure}"));
    }
}
