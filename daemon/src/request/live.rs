//! What a dashboard watches: how busy sessions are, and what is on their screens. Looking changes nothing.

use std::collections::HashMap;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use base64::Engine;
use shared::id::{Offset, RuntimeId, SessionId};
use shared::live::{Look, Pulse, PulseOf, Sight};
use shared::message::Failure;
use shared::runtime::RuntimeState;
use shared::screen::{Keyframe, Size};
use shared::session::Session;
use tokio::time::Instant;

use super::terminal::{no_interpreter, no_screen};
use super::{find, shown_of};
use crate::context::Context;
use crate::handle::runtime::RuntimeHandle;
use crate::pulse::{self, Rooted, Usage};
use crate::recording;
use crate::replay::Replay;
use crate::search::Wanted;

/// Sessions of one question: more than fit on any screen.
const MAX_ASKED: usize = 4096;

/// Whoever waits asks again after this at the latest.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// What has begun to print mostly goes on: so much of it is told at once.
const GATHER: Duration = Duration::from_millis(50);

/// While somebody waits, holders are looked at this often: nothing tells that one was stopped.
const HOLDERS_EVERY: Duration = Duration::from_secs(10);

fn until(wait_ms: Option<u64>) -> Option<Instant> {
    wait_ms.map(|ms| Instant::now() + Duration::from_millis(ms).min(MAX_WAIT))
}

type Live = HashMap<SessionId, Vec<RuntimeHandle>>;

pub async fn pulse(context: &Context, of: PulseOf) -> Result<Vec<Pulse>, Failure> {
    let mut asked = of.sessions;
    asked.truncate(MAX_ASKED);
    let known = context.store.known_sessions(asked.clone()).await?;
    asked.retain(|session| known.contains(session));
    if let (Some(deadline), Some(seen)) = (until(of.wait_ms), of.seen) {
        // an end of its own: waiting in vain is an answer too
        let _ = tokio::time::timeout_at(deadline, until_news(context, &asked, seen)).await;
    }
    let live = live_of(context, &asked);
    let rooted: Vec<(SessionId, Rooted)> =
        asked.iter().flat_map(|session| live.get(session).into_iter().flatten().map(|handle| (*session, rooted(handle)))).collect();
    let roots: Vec<Rooted> = rooted.iter().map(|(_, rooted)| *rooted).collect();
    let usages = tokio::task::spawn_blocking(move || pulse::measure(&roots)).await.unwrap_or_default();
    let mut unreachable: HashMap<SessionId, String> = context.registry.all_unreachable().into_iter().collect();
    let mut used: HashMap<SessionId, Usage> = HashMap::new();
    for ((session, _), usage) in rooted.into_iter().zip(usages) {
        let Some(usage) = usage else { continue };
        let sum = used.entry(session).or_default();
        sum.cpu_ms += usage.cpu_ms;
        sum.memory += usage.memory;
        sum.processes += usage.processes;
        sum.foreground = usage.foreground.or_else(|| sum.foreground.take());
    }
    Ok(asked
        .into_iter()
        .map(|session| {
            let handles = live.get(&session).map_or(&[][..], Vec::as_slice);
            let usage = used.remove(&session);
            Pulse {
                session,
                output: handles.iter().map(|handle| handle.facts.printed()).sum(),
                cpu_ms: usage.as_ref().map(|usage| usage.cpu_ms),
                memory: usage.as_ref().map(|usage| usage.memory),
                processes: usage.as_ref().map(|usage| usage.processes),
                foreground: usage.and_then(|usage| usage.foreground),
                title: handles.iter().find_map(|handle| handle.facts.title()),
                unreachable: unreachable.remove(&session),
            }
        })
        .collect())
}

fn rooted(handle: &RuntimeHandle) -> Rooted {
    Rooted { holder: handle.facts.holder_pid, program: handle.facts.pid() }
}

fn live_of(context: &Context, asked: &[SessionId]) -> Live {
    let mut live = context.registry.by_session();
    live.retain(|session, _| asked.contains(session));
    live
}

/// Returns when these sessions have printed more than was seen, one of them starts or ends, or a holder stops or continues.
async fn until_news(context: &Context, asked: &[SessionId], seen: u64) {
    let began = Instant::now();
    let present = |live: &Live| -> (u64, Vec<RuntimeId>) {
        let mut ids: Vec<RuntimeId> = live.values().flatten().map(|handle| handle.id).collect();
        ids.sort_unstable();
        (live.values().flatten().map(|handle| handle.facts.printed()).sum(), ids)
    };
    let mut first: Option<Vec<RuntimeId>> = None;
    let away = || {
        let mut away = context.registry.all_unreachable();
        away.retain(|(session, _)| asked.contains(session));
        away.sort_unstable();
        away
    };
    let away_at_first = away();
    loop {
        let changed = context.registry.changed();
        let live = live_of(context, asked);
        // subscribed before looking, so that nothing in between is missed
        let mut waits: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = live.values().flatten().map(printing).collect();
        let (printed, ids) = present(&live);
        // less than was seen is news too: something has ended, or a daemon has
        if printed != seen || first.as_ref().is_some_and(|first| *first != ids) || away() != away_at_first {
            break;
        }
        first.get_or_insert(ids);
        let any =
            poll_fn(|poll| if waits.iter_mut().any(|wait| wait.as_mut().poll(poll).is_ready()) { Poll::Ready(()) } else { Poll::Pending });
        tokio::select! {
            () = any => {}
            () = changed => {}
            () = tokio::time::sleep(HOLDERS_EVERY) => {}
        }
    }
    tokio::time::sleep_until(began + GATHER).await;
}

/// Ends when the runtime has printed something after this call, or is over.
fn printing(handle: &RuntimeHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let mut sight = handle.sight();
    sight.mark_unchanged();
    Box::pin(async move {
        // its end changes the registry, which is waited for too
        if sight.changed().await.is_err() {
            pending::<()>().await;
        }
    })
}

pub async fn look(context: &Context, look: Look) -> Result<Sight, Failure> {
    let deadline = until(look.wait_ms);
    // where it was live a moment ago, its end is news by itself
    let mut was_live = false;
    loop {
        let changed = context.registry.changed();
        let still = match shown(context, &look).await? {
            Shown::Live(handle) => {
                was_live = true;
                let Ok((at, keyframe)) = handle.look(look.after).await else {
                    handle.ended().await;
                    continue;
                };
                if let Some(keyframe) = keyframe {
                    return Ok(sight(at, Some(&keyframe), true));
                }
                let mut moves = handle.sight();
                let wait = async {
                    // an end comes by way of the registry
                    let _ = moves.wait_for(|place| *place != at).await;
                };
                if waits(deadline, wait).await {
                    continue;
                }
                sight(at, None, true)
            }
            Shown::Ended(session) => {
                let last = last_screen(context, &session, look.after).await?;
                if last.keyframe.is_some() || was_live || !waits(deadline, changed).await {
                    return Ok(last);
                }
                continue;
            }
        };
        return Ok(still);
    }
}

/// Waits until the deadline; `true` if what was waited for came first.
async fn waits(deadline: Option<Instant>, wait: impl Future<Output = ()>) -> bool {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, wait).await.is_ok(),
        None => false,
    }
}

enum Shown {
    Live(RuntimeHandle),
    Ended(Box<Session>),
}

async fn shown(context: &Context, look: &Look) -> Result<Shown, Failure> {
    // asked again and again, by id: what runs is found without the database
    if look.language.is_none()
        && let Some(handle) = SessionId::parse(&look.name).and_then(|session| context.registry.of_session(session))
    {
        return Ok(Shown::Live(handle));
    }
    let session = find(context, look.name.clone()).await?;
    match (shown_of(context, &session, look.language), look.language) {
        (Some(handle), _) => Ok(Shown::Live(handle)),
        (None, Some(language)) => Err(no_interpreter(&session, language)),
        (None, None) => Ok(Shown::Ended(Box::new(session))),
    }
}

/// The last screen of a session that is over; not built again for somebody who has it.
async fn last_screen(context: &Context, session: &Session, after: Option<Offset>) -> Result<Sight, Failure> {
    let runtime = session.runtime.ok_or_else(|| no_screen(session))?;
    if matches!(session.runtime_state, Some(RuntimeState::Refused { .. })) {
        return Err(no_screen(session));
    }
    let wanted = Wanted::default();
    let dir = context.paths.recording(runtime);
    let size = session.size.unwrap_or(Size { cols: 80, rows: 24 });
    let replay = Replay { dir, size, until: Offset::MAX, gone: wanted.gone() };
    let stays_at = match session.runtime_state {
        Some(RuntimeState::Hibernated { screen_at, .. }) => screen_at,
        _ => None,
    };
    let read = move || {
        let end = recording::end(&replay.dir).map(|end| stays_at.map_or(end, |at| at.min(end)));
        if end.is_some() && end == after {
            return Ok(None);
        }
        replay
            .seek(stays_at.map_or(shared::replay::Seek::End, |offset| shared::replay::Seek::Offset { offset }))
            .map(|(at, keyframe, _)| Some((at.offset, keyframe)))
    };
    match super::replay::work(context, read).await? {
        Some((at, keyframe)) => Ok(sight(at, Some(&keyframe), false)),
        None => Ok(sight(after.unwrap_or_default(), None, false)),
    }
}

fn sight(at: Offset, keyframe: Option<&Keyframe>, is_live: bool) -> Sight {
    let keyframe = keyframe.map(|keyframe| base64::engine::general_purpose::STANDARD.encode(keyframe.to_bytes()));
    Sight { at, keyframe, is_live }
}

/// A person has looked at it.
pub async fn seen(context: &Context, name: String) -> Result<(), Failure> {
    let session = find(context, name).await?;
    context.store.seen(session.id).await?;
    if let Some(handle) = context.registry.of_session(session.id) {
        handle.seen().await;
    }
    Ok(())
}

/// A person dismisses what a session asks. That it has ended is dismissed with it.
pub async fn dismiss(context: &Context, name: String) -> Result<(), Failure> {
    let session = find(context, name).await?;
    context.store.seen(session.id).await?;
    context.store.answered(session.id).await?;
    if let Some(handle) = context.registry.of_session(session.id) {
        handle.seen().await;
        handle.dismiss().await;
    }
    Ok(())
}
