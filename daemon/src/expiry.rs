//! Sessions whose policy says that they are over. It sleeps until the next deadline, and looks at what really happened when
//! that has come: activity moves no timer.

use shared::event::Author;
use tokio::sync::broadcast::error::RecvError;

use crate::clock::Steady;
use crate::context::Context;
use crate::policy::{self, Verdict};
use crate::store;

/// What a program gets to clean up when its session is over.
const EXPIRED_GRACE_MS: u32 = 2000;

/// After any of these a deadline may be nearer than before: a session began or goes on, or nobody is there any more.
const NEARER: &[&str] = &["start", "resume", "policy", "detach", "control"];

/// A database that could not be asked (a full disk) is asked again this much later.
const RETRY_MICROS: i64 = 5_000_000;

pub async fn run(context: Context) {
    let mut news = context.store.announcements();
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
                event = news.recv() => match event {
                    Ok(event) if NEARER.contains(&event.kind.as_str()) => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Ends what is over; gives when to look again.
async fn look(context: &Context) -> store::Result<Option<Steady>> {
    let mut next: Option<Steady> = None;
    for (session, stored) in context.store.policed_sessions().await? {
        let handle = context.registry.get(session);
        let facts = policy::Facts {
            idle_since: handle.as_ref().map_or(stored.idle_since, |handle| stored.idle_since.max(handle.facts.last_steady())),
            is_controlled: handle.as_ref().is_some_and(|handle| handle.facts.is_controlled()),
            ..stored
        };
        match policy::judge(&facts, context.clock.now()) {
            Verdict::Never | Verdict::Held => {}
            Verdict::NotBefore(at) => next = Some(next.map_or(at, |soonest| soonest.min(at))),
            Verdict::Expired(reason) => {
                if context.store.expire(session, facts).await? {
                    context.log.note(&format!("session {session} is over: timeout ({reason})"));
                    if let Some(handle) = handle {
                        tokio::spawn(async move {
                            handle.terminate(EXPIRED_GRACE_MS, Author::Daemon).await;
                        });
                    }
                } else {
                    // something happened to it just now: its new deadline is looked at in the next round
                    next = Some(context.clock.now());
                }
            }
        }
    }
    Ok(next)
}
