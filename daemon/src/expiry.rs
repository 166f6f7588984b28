//! Sessions whose policy says that they are over. It sleeps until the next deadline, and looks at what really happened when
//! that has come: activity moves no timer.

use shared::event::Author;
use tokio::sync::broadcast::error::RecvError;

use crate::clock::Steady;
use crate::context::{Context, Stop};
use crate::policy::{self, Verdict};
use crate::{request, store};

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
    let mut again = |at: Steady| next = Some(next.map_or(at, |soonest: Steady| soonest.min(at)));
    let live = context.registry.by_session();
    for (session, stored) in context.store.policed_sessions().await? {
        // clients of a daemon that is leaving are not gone: they wait for the next
        if *context.stop.borrow() != Stop::No {
            return Ok(None);
        }
        let handle = live.get(&session).cloned();
        let present = move |stored: policy::Facts| match &handle {
            Some(handle) => policy::Facts {
                idle_since: stored.idle_since.max(handle.facts.last_steady()),
                is_controlled: handle.facts.is_controlled(),
                ..stored
            },
            None => stored,
        };
        match policy::judge(&present.clone()(stored), context.clock.now()) {
            Verdict::Never => {}
            // for as long as somebody is there; what they do then is an event
            Verdict::Held => {
                if let Some(until) = live.get(&session).and_then(|handle| handle.facts.held_until()) {
                    again(until);
                }
            }
            Verdict::NotBefore(at) => again(at),
            Verdict::Expired(_) => match context.store.expire(session, present).await? {
                Some(expired) => {
                    context.log.note(&format!("session {session} is over: timeout ({})", expired.reason));
                    if let Some(runtime) = expired.runtime {
                        let context = context.clone();
                        tokio::spawn(async move {
                            // one that cannot be reached now is ended when it can: that is stored
                            let _ = request::end_runtime(&context, runtime, Author::Daemon).await;
                        });
                    }
                }
                // something happened to it just now: its new deadline is looked at in the next round
                None => again(context.clock.now()),
            },
        }
    }
    Ok(next)
}
