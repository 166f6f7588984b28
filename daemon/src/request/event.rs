//! Events: what has been, then what comes, without a gap or a repeat.

use std::sync::Arc;

use shared::event::Event;
use shared::id::{Seq, SessionId, ThreadId};
use shared::message::{Answer, Failure, Push, Told, to};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Caller;
use crate::context::Context;

pub async fn events(
    context: &Context,
    caller: &Arc<Caller>,
    id: u64,
    name: Option<String>,
    since: Option<Seq>,
    follow: bool,
) -> Result<(), Failure> {
    let session = match name {
        Some(name) => Some(context.store.find(name).await?.session),
        None => None,
    };
    // subscribed before reading: whatever is announced meanwhile is in the database already
    let live = context.store.announcements();
    let mut last = since.unwrap_or(0);
    let newest = context.store.last_seq().await?;
    if last > newest {
        let text = format!("there is no event {last} yet: the newest is {newest}; a database that was restored counts from there");
        return Err(Failure::usage(text));
    }
    tell_after(context, caller, session, &mut last).await?;
    caller.outbox.line(&Push::CaughtUp { seq: last });
    caller.outbox.line(&Answer::to::<to::Events>(id, Ok(Told { seq: last, session })));
    if !follow {
        return Ok(());
    }
    let thread = match session {
        Some(session) => Some(context.store.session(session).await?.thread),
        None => None,
    };
    spawn_follower(context, caller, live, session.zip(thread), last);
    Ok(())
}

/// Everything after `last`, batch by batch: the next one is read when the client has taken the one before.
async fn tell_after(context: &Context, caller: &Caller, session: Option<SessionId>, last: &mut Seq) -> Result<(), Failure> {
    loop {
        let batch = context.store.events_after(session, *last).await?;
        let Some(newest) = batch.last().map(|event| event.seq) else { return Ok(()) };
        for event in batch {
            caller.outbox.line(&Push::Event(event));
        }
        *last = newest;
        if !caller.outbox.drained().await {
            return Ok(());
        }
    }
}

/// Events of one answer, at most.
const MOST_RECENT: u32 = 1000;

/// The last events of a session before a number, newest first.
pub async fn recent(context: &Context, name: String, before: Option<Seq>, most: u32) -> Result<Vec<Event>, Failure> {
    let session = context.store.find(name).await?.session;
    Ok(context.store.events_before(session, before.unwrap_or(Seq::MAX), most.clamp(1, MOST_RECENT)).await?)
}

/// Events from now on; gives the number of the last one before.
pub async fn watch(context: &Context, caller: &Arc<Caller>) -> Result<Seq, Failure> {
    let live = context.store.announcements();
    let last = context.store.last_seq().await?;
    spawn_follower(context, caller, live, None, last);
    follow_settings(context, caller);
    Ok(last)
}

/// Whoever watches hears of the settings too.
fn follow_settings(context: &Context, caller: &Arc<Caller>) {
    let mut changes = context.settings.changes();
    let wrong = context.settings.wrong();
    if !wrong.is_empty() {
        caller.outbox.line(&Push::Settings { wrong });
    }
    let (context, caller) = (Arc::clone(context), Arc::clone(caller));
    tokio::spawn(async move {
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = caller.outbox.closed() => return,
            }
            caller.outbox.line(&Push::Settings { wrong: context.settings.wrong() });
        }
    });
}

fn spawn_follower(context: &Context, caller: &Arc<Caller>, mut live: Receiver<Event>, only: Option<(SessionId, ThreadId)>, mut last: Seq) {
    let (context, caller) = (Arc::clone(context), Arc::clone(caller));
    tokio::spawn(async move {
        loop {
            let announced = tokio::select! {
                announced = live.recv() => announced,
                () = caller.outbox.closed() => return,
            };
            match announced {
                Ok(event) if event.seq <= last || only.is_some_and(|(_, thread)| thread != event.thread) => {}
                // an event is only the sign to look: the database has them all, in order
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    if tell_after(&context, &caller, only.map(|(session, _)| session), &mut last).await.is_err() {
                        return;
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
}
