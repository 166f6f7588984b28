//! Sessions whose policy says that they are over. It sleeps until the next deadline, and looks at what really happened when
//! that has come: activity moves no timer.

use shared::event::Author;
use shared::policy::Kind;
use shared::session::IDLE;
use tokio::sync::broadcast::error::RecvError;

use crate::clock::Steady;
use crate::context::{Context, Stop};
use crate::ending;
use crate::policy::{self, Verdict};
use crate::store;

/// After any of these a deadline may be nearer than before: a session began or goes on, or nobody is there any more. The end of
/// a call only if the next look is far away.
const NEARER: &[&str] = &["start", "resume", "policy", "detach", "control", "exec_finished"];

/// A database that could not be asked (a full disk) is asked again this much later.
const RETRY_MICROS: i64 = 5_000_000;

pub async fn run(context: Context) {
    let mut news = context.store.announcements();
    let mut settings = context.settings.changes();
    loop {
        let next = match look(&context).await {
            Ok(next) => next,
            Err(error) => {
                context.log.warn(&format!("looking for expired sessions: {error}"));
                Some(context.clock.now() + RETRY_MICROS)
            }
        };
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(context.clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(due);
        loop {
            tokio::select! {
                () = &mut due => break,
                _ = settings.changed() => break,
                event = news.recv() => match event {
                    Ok(event) if event.kind == "exec_finished" && looks_soon(&context, next) => {}
                    Ok(event) if NEARER.contains(&event.kind.as_str()) => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Whether the next look comes no later than a runtime that has just been called can be idle for too long: calls are many.
fn looks_soon(context: &Context, next: Option<Steady>) -> bool {
    match context.config().policy.of(Kind::Runtime).idle_timeout.span() {
        Some(span) => next.is_some_and(|at| at <= context.clock.now() + span.micros()),
        None => true,
    }
}

/// Ends what is over; gives when to look again.
async fn look(context: &Context) -> store::Result<Option<Steady>> {
    let mut next: Option<Steady> = None;
    let mut again = |at: Steady| next = Some(next.map_or(at, |soonest: Steady| soonest.min(at)));
    let live = context.registry.by_session();
    for (session, stored) in context.store.policed_sessions().await? {
        // clients of a daemon that is leaving are not gone: they wait for the next
        if *context.stop.borrow() != Stop::No {
            return Ok(None);
        }
        let handles = live.get(&session).cloned().unwrap_or_default();
        let held_until = handles.iter().filter_map(|handle| handle.facts.held_until()).min();
        let present = move |stored: policy::Facts| policy::Facts {
            idle_since: handles.iter().map(|handle| handle.facts.last_steady()).fold(stored.idle_since, Steady::max),
            // a call that runs is somebody who waits
            is_controlled: handles.iter().any(|handle| handle.facts.is_controlled() || handle.facts.calls() > 0),
            ..stored
        };
        match policy::judge(&present.clone()(stored), context.clock.now()) {
            Verdict::Never => {}
            // for as long as somebody is there; what they do then is an event
            Verdict::Held => {
                if let Some(until) = held_until {
                    again(until);
                }
            }
            Verdict::NotBefore(at) => again(at),
            Verdict::Expired(_) => match context.store.expire(session, present).await? {
                Some(expired) => {
                    context.log.note(&format!("session {session} is over: timeout ({})", expired.reason));
                    for runtime in expired.runtimes {
                        let context = context.clone();
                        tokio::spawn(async move {
                            // one that cannot be reached now is ended when it can: that is stored
                            let _ = ending::end_runtime(&context, runtime, Author::Daemon).await;
                        });
                    }
                }
                // something happened to it just now: its new deadline is looked at in the next round
                None => again(context.clock.now()),
            },
        }
    }
    for handle in context.registry.all().into_iter().filter(|handle| handle.language.is_some()) {
        let Some(span) = context.config().policy.of(Kind::Runtime).idle_timeout.span() else { break };
        // while a call runs, or somebody is there, nothing is idle; what they do then is an event
        if handle.facts.calls() > 0 || handle.facts.is_controlled() || handle.facts.frozen().is_some() {
            continue;
        }
        let due = handle.facts.last_steady() + span.micros();
        if due > context.clock.now() {
            again(due);
        } else if context.store.end_interpreter(handle.id, IDLE).await? {
            context.log.note(&format!("a runtime of session {} was idle and is ended", handle.facts.session()));
            let context = context.clone();
            tokio::spawn(async move {
                let _ = ending::end_runtime(&context, handle.id, Author::Daemon).await;
            });
        }
    }
    Ok(next)
}
