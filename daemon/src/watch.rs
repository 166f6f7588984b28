//! Files that change in the workspaces of active sessions become `file_changed` events. One tree for each workspace, however many
//! sessions work in it. It sleeps until the system tells of something; what it may cost is bounded by what it has cost before.

mod changes;
mod inbox;
mod pace;
mod places;
mod rules;
mod tree;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use shared::event::Event;
use shared::id::SessionId;
use shared::watch::WatchMode;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use crate::context::Context;
use crate::file_time::{file_time, tick};
use crate::store::{self, Burst, Watched};
use inbox::Inbox;
use places::{Member, Places, Wanted, asked_off};

pub use inbox::in_words;

/// After any of these other sessions are active than before.
const MOVING: &[&str] = &["start", "resume", "restored", "pause", "hibernate", "complete", "error", "timeout", "lost", "exit", "watch"];

/// And of these, sessions have become active.
const BEGINNING: &[&str] = &["start", "resume", "restored"];

/// The first look waits this long for more to look at, and every further one until four times as long has passed as the last took.
const GATHER: Duration = Duration::from_millis(100);

/// The system tells within milliseconds; on a machine that stands still for a while, an answer does not wait longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What could not be stored (a full disk) is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Of bursts that cannot be stored for a long time, the oldest are given up.
const MOST_UNSENT: usize = 256;

pub async fn run(context: Context) {
    let Some(mut asked) = context.watch.take_questions() else { return };
    let paths = &context.paths;
    let mut news = context.store.announcements();
    let mut settings = context.settings.changes();
    let inbox = Inbox::new(paths.state.join("watch"));
    let mut stop = context.stop.subscribe();
    let over = Arc::clone(&inbox);
    tokio::spawn(async move {
        if stop.changed().await.is_ok() {
            over.is_over.store(true, Ordering::Relaxed);
        }
    });
    let ours = [&paths.state, &paths.runtime, &paths.config].map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    let mut places = Places {
        inbox: Arc::clone(&inbox),
        eye: None,
        by_workspace: HashMap::new(),
        settings: context.config().watch.clone(),
        ours: ours.to_vec(),
        home: std::env::home_dir().and_then(|home| home.canonicalize().ok()),
        missed: false,
        next_look: Instant::now(),
        next_everywhere: Instant::now(),
    };
    let mut unsent: Vec<(SessionId, Burst)> = Vec::new();
    let mut retry_at = None;
    // those that have begun since anybody looked, and when: also what was over before that may have changed something
    let mut begun: Begun = HashMap::new();
    let mut moved = true;
    // something has happened: where, is looked at then
    let mut look_at: Option<Instant> = None;
    loop {
        if moved {
            moved = false;
            places = settle_members(&context, places, std::mem::take(&mut begun), &mut unsent).await;
        }
        if !unsent.is_empty() && retry_at.is_none_or(|at| at <= Instant::now()) {
            retry_at = store_all(&context, &mut unsent).await;
        }
        let due = places.due().into_iter().chain(retry_at.filter(|_| !unsent.is_empty())).chain(look_at).min();
        let is_due = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = news.recv() => match event {
                Ok(event) => moved |= moves(&event, &mut begun),
                Err(RecvError::Lagged(_)) => moved = true,
                Err(RecvError::Closed) => return,
            },
            _ = settings.changed() => {
                let now = context.config().watch.clone();
                if now != places.settings {
                    places = at_work(&context, places, Places::close_all).await;
                    places.settings = now;
                    moved = true;
                }
            }
            Some(answer) = asked.recv() => {
                // whoever has begun by now counts: the event of it is there, since the caller knows of it
                loop {
                    match news.try_recv() {
                        Ok(event) => drop(moves(&event, &mut begun)),
                        Err(TryRecvError::Lagged(_)) => {}
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    }
                }
                places = settle_members(&context, places, std::mem::take(&mut begun), &mut unsent).await;
                if places.eye.is_some() {
                    inbox.caught_up(PATIENCE).await;
                }
                look_at = None;
                places = at_work(&context, places, |places| places.look(Instant::now(), true)).await;
                unsent.extend(places.tell(Instant::now(), |_| true));
                publish(&context, &places);
                retry_at = store_all(&context, &mut unsent).await;
                let _ = answer.send(());
            }
            // more is on its way, as a rule
            () = inbox.changed(), if look_at.is_none() => look_at = Some(places.next_look.max(Instant::now() + GATHER)),
            () = is_due => {
                let now = Instant::now();
                if look_at.is_some_and(|at| at <= now) || (places.missed && places.next_everywhere <= now) {
                    look_at = None;
                    places = at_work(&context, places, move |places| places.look(now, false)).await;
                }
                unsent.extend(places.tell(now, |pace| pace.due().is_some_and(|due| due <= now)));
                // what was given up may have come back before that was told
                if places.by_workspace.values().any(|place| place.waits_at.is_some() && place.tree.is_err()) {
                    places = at_work(&context, places, Places::come_back).await;
                }
                publish(&context, &places);
            }
        }
    }
}

/// Sessions that have become active, and when, by a clock that file times are not behind by more than a tick.
type Begun = HashMap<SessionId, Timestamp>;

/// Whether other sessions may be active after this.
fn moves(event: &Event, begun: &mut Begun) -> bool {
    if BEGINNING.contains(&event.kind.as_str()) {
        // where the machine is late for its ticks, the times of files are late too
        begun.entry(event.session).or_insert_with(|| event.at.min(file_time()));
    }
    MOVING.contains(&event.kind.as_str())
}

/// Lets the places do something that may take a while.
async fn at_work(context: &Context, mut places: Places, work: impl FnOnce(&mut Places) + Send + 'static) -> Places {
    let (inbox, settings, ours, home) = (Arc::clone(&places.inbox), places.settings.clone(), places.ours.clone(), places.home.clone());
    let done = tokio::task::spawn_blocking(move || {
        work(&mut places);
        places
    });
    done.await.unwrap_or_else(|error| {
        context.log.warn(&format!("watching workspaces: {error}"));
        let now = Instant::now();
        let by_workspace = HashMap::new();
        Places { inbox, eye: None, by_workspace, settings, ours, home, missed: false, next_look: now, next_everywhere: now }
    })
}

/// Brings the members of all places up to date with the sessions that are active: whoever leaves is told what is known by then.
async fn settle_members(context: &Context, places: Places, begun: Begun, unsent: &mut Vec<(SessionId, Burst)>) -> Places {
    let found = match context.store.watched_sessions(begun.keys().copied().collect()).await {
        Ok(found) => found,
        Err(error) => {
            context.log.warn(&format!("watching workspaces: {error}"));
            return places;
        }
    };
    let leaves = {
        let active: HashSet<SessionId> = found.iter().filter(|watched| watched.active_since.is_some()).map(|one| one.session).collect();
        places.by_workspace.values().flat_map(|place| &place.members).any(|member| !active.contains(&member.session))
    };
    if leaves && places.eye.is_some() {
        places.inbox.caught_up(PATIENCE).await;
    }
    let usual = context.config().watch.mode;
    let mut wanted = Vec::new();
    for watched in found {
        let mode = watched.mode.unwrap_or(usual);
        if !places.has(&watched, mode) {
            wanted.push(newcomer(context, &watched, begun.get(&watched.session).copied(), mode).await);
        }
        if watched.active_since.is_some() {
            wanted.push(Wanted::Stays(watched.session));
        }
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let places = at_work(context, places, move |places| {
        let _ = sender.send(places.settle(wanted));
    })
    .await;
    unsent.extend(receiver.try_iter().flatten());
    publish(context, &places);
    places
}

/// A session that was not watched by this daemon: from when on changes are its own, and which of them are known.
async fn newcomer(context: &Context, watched: &Watched, begun_at: Option<Timestamp>, mode: WatchMode) -> Wanted {
    let active = begun_at.unwrap_or_else(|| {
        let now = Timestamp::now();
        let ago = watched.active_since.map_or(0, |since| context.clock.now() - since);
        now.checked_sub(jiff::SignedDuration::from_micros(ago.max(0))).unwrap_or(now)
    });
    let from = watched.until.map_or(active, |until| until.max(active));
    let from = from.checked_sub(tick()).unwrap_or(from);
    let known = match watched.until {
        Some(_) => context.store.known_changes(watched.session, from).await.unwrap_or_default(),
        None => Vec::new(),
    };
    Wanted::Comes {
        workspace: watched.workspace.clone(),
        member: Member { session: watched.session, from, known: known.into_iter().collect(), mode },
    }
}

/// What sessions can be told of how they are watched.
fn publish(context: &Context, places: &Places) {
    let states = places.by_workspace.values().flat_map(|place| {
        let state = match &place.tree {
            Ok(tree) => tree.state(),
            Err(state) => state.clone(),
        };
        place.members.iter().map(move |member| (member.session, if member.mode == WatchMode::Off { asked_off() } else { state.clone() }))
    });
    context.watch.set_states(states.collect());
}

/// Stores what is to be told; gives when to try again what could not be.
async fn store_all(context: &Context, unsent: &mut Vec<(SessionId, Burst)>) -> Option<Instant> {
    let mut failed = Vec::new();
    for (session, burst) in unsent.drain(..) {
        match context.store.files_changed(session, burst.clone()).await {
            // whoever was removed has no files
            Ok(()) | Err(store::Error::Gone) => {}
            Err(error) => {
                context.log.warn(&format!("files of session {session}: {error}"));
                failed.push((session, burst));
            }
        }
    }
    *unsent = failed;
    unsent.drain(..unsent.len().saturating_sub(MOST_UNSENT));
    (!unsent.is_empty()).then(|| Instant::now() + RETRY)
}
