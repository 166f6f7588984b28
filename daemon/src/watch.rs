//! Files that change in the workspaces of active sessions become `file_changed` events. One tree for each workspace, however many
//! sessions work in it. It sleeps until the system tells of something; what it may cost is bounded by what it has cost before.

mod changes;
mod inbox;
mod pace;
mod rules;
mod tree;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::config::WatchConfig;
use shared::event::Event;
use shared::id::SessionId;
use shared::watch::{FileChange, WatchMode, Watching};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::context::Context;
use crate::store::{self, Burst, Watched};
use inbox::{Eye, Inbox};
use pace::Pace;
use rules::Rules;
use tree::{Limits, Tree, Unwatched, Watches};

pub use inbox::in_words;
pub use tree::tick;

/// After any of these other sessions are active than before.
const MOVING: &[&str] = &["start", "resume", "restored", "pause", "hibernate", "complete", "error", "timeout", "lost", "exit", "watch"];

/// And of these, sessions have become active.
const BEGINNING: &[&str] = &["start", "resume", "restored"];

/// The first look waits this long for more to look at, and every further one until four times as long has passed as the last took.
const GATHER: Duration = Duration::from_millis(100);

/// To look everywhere is worth ten times its time.
const EVERYWHERE_FACTOR: u32 = 10;

/// The system tells within milliseconds; on a machine that stands still for a while, an answer does not wait longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What could not be stored (a full disk) is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Of bursts that cannot be stored for a long time, the oldest are given up.
const MOST_UNSENT: usize = 256;

/// A burst's changes reach the database after they happened: those of the last moments may still be on their way to us.
const ON_THE_WAY: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);

/// More is not watched, whoever asks for it: some hundred megabytes.
const MOST: Limits = Limits { folders: 200_000, files: 1_000_000, advice: ", which is too much to watch" };

/// Questions that may wait for an answer.
const QUESTIONS: usize = 64;

/// The callable side.
pub struct Watch {
    questions: mpsc::Sender<oneshot::Sender<()>>,
    asked: Mutex<Option<mpsc::Receiver<oneshot::Sender<()>>>>,
    states: Mutex<HashMap<SessionId, Watching>>,
}

impl Default for Watch {
    fn default() -> Self {
        let (questions, asked) = mpsc::channel(QUESTIONS);
        Self { questions, asked: Mutex::new(Some(asked)), states: Mutex::default() }
    }
}

impl Watch {
    /// Whether the files of an active session are watched; none: it is not active.
    pub fn state(&self, session: SessionId) -> Option<Watching> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).get(&session).cloned()
    }

    /// Whatever has happened by now is stored when this returns.
    pub async fn settle(&self) {
        let (answer, answered) = oneshot::channel();
        if self.questions.send(answer).await.is_ok() {
            let _ = answered.await;
        }
    }
}

/// A workspace with the sessions that are active in it.
struct Place {
    workspace: String,
    tree: Result<Tree, Watching>,
    pace: Pace,
    members: Vec<Member>,
    missed: bool,
    /// It is gone: the folder above it that is watched until it comes back.
    waits_at: Option<PathBuf>,
}

struct Member {
    session: SessionId,
    /// Changes before this are not its own.
    from: Timestamp,
    /// What an earlier daemon has told of files, and when.
    known: HashMap<String, Timestamp>,
    mode: WatchMode,
}

/// Everything that is watched. It works in threads that may wait for the disk, and is handed to and fro.
struct Places {
    inbox: Arc<Inbox>,
    eye: Option<Eye>,
    by_workspace: HashMap<String, Place>,
    settings: WatchConfig,
    ours: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Events were lost, and not everything has been looked at since.
    missed: bool,
    /// Not before these.
    next_look: Instant,
    next_everywhere: Instant,
}

pub async fn run(context: Context) {
    let Some(mut asked) = context.watch.asked.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
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

/// Watches the nearest folder above a workspace that is gone, instead of the one that was watched for that before.
fn wait_above(workspace: &str, before: Option<PathBuf>, eye: &mut Eye) -> Option<PathBuf> {
    let above = Path::new(workspace).ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned);
    if above == before {
        return before;
    }
    if let Some(before) = before {
        eye.remove(&before);
    }
    // elsewhere a watch is of everything below
    above.filter(|above| cfg!(target_os = "linux") && eye.add(above).is_ok())
}

/// Sessions that have become active, and when, by a clock that file times are not behind by more than a tick.
type Begun = HashMap<SessionId, Timestamp>;

/// Whether other sessions may be active after this.
fn moves(event: &Event, begun: &mut Begun) -> bool {
    if BEGINNING.contains(&event.kind.as_str()) {
        // where the machine is late for its ticks, the times of files are late too
        begun.entry(event.session).or_insert_with(|| event.at.min(tree::file_time()));
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

enum Wanted {
    Comes { workspace: String, member: Member },
    Stays(SessionId),
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
    *context.watch.states.lock().unwrap_or_else(PoisonError::into_inner) = states.collect();
}

fn asked_off() -> Watching {
    Watching::off("that is what was asked for (`new --watch`, or [watch] in config.toml)")
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

impl Places {
    /// Whether it is watched as it is to be.
    fn has(&self, watched: &Watched, mode: WatchMode) -> bool {
        self.by_workspace
            .get(&watched.workspace)
            .is_some_and(|place| place.members.iter().any(|member| member.session == watched.session && member.mode == mode))
    }

    fn due(&self) -> Option<Instant> {
        let told = self.by_workspace.values().filter_map(|place| place.pace.due());
        told.chain(self.missed.then_some(self.next_everywhere)).min()
    }

    /// Looks where something happened; everywhere, if that is not known and its time has come.
    fn look(&mut self, now: Instant, at_once: bool) {
        let touched = self.inbox.take();
        self.missed |= touched.missed;
        let everywhere = self.missed && (at_once || self.next_everywhere <= now);
        let Some(eye) = &mut self.eye else {
            // nobody is watched any more, and nothing is due for them
            self.missed = false;
            return;
        };
        for place in self.by_workspace.values_mut() {
            let Ok(tree) = &mut place.tree else { continue };
            if tree.has_given_up() {
                continue;
            }
            let outcome = if everywhere {
                place.missed = true;
                tree.look_everywhere(eye)
            } else {
                tree.look(&touched.places, eye)
            };
            if let Err(why) = outcome {
                tree.close(eye);
                if matches!(why, Unwatched::Gone(_)) {
                    place.waits_at = wait_above(&place.workspace, None, eye);
                }
                // what is known is told before it is given up
                if tree.changes.is_empty() {
                    place.tree = Err(Watching::off(why.why()));
                } else {
                    tree.give_up(why.why());
                }
            }
            place.note(now);
        }
        self.come_back();
        let cost = now.elapsed();
        self.next_look = Instant::now() + cost * 4;
        if everywhere {
            self.missed = false;
            self.next_everywhere = Instant::now() + cost * EVERYWHERE_FACTOR;
        }
    }

    /// Workspaces that were gone and are there again.
    fn come_back(&mut self) {
        let waiting = self.by_workspace.iter().filter(|(_, place)| place.waits_at.is_some() && place.tree.is_err());
        let waiting: Vec<String> = waiting.map(|(workspace, _)| workspace.clone()).collect();
        for workspace in waiting {
            let (Some(mut place), Some(eye)) = (self.by_workspace.remove(&workspace), &mut self.eye) else { continue };
            if Path::new(&workspace).is_dir() {
                self.open_place(&mut place);
                place.note(Instant::now());
            } else {
                // folders above it may have come back, or have gone too
                place.waits_at = wait_above(&workspace, place.waits_at.take(), eye);
            }
            self.by_workspace.insert(workspace, place);
        }
    }

    /// What is to be told of those places whose time has come.
    fn tell(&mut self, now: Instant, is_due: impl Fn(&Pace) -> bool) -> Vec<(SessionId, Burst)> {
        let mut bursts = Vec::new();
        for place in self.by_workspace.values_mut().filter(|place| is_due(&place.pace)) {
            bursts.extend(place.tell(now));
        }
        bursts
    }

    /// Takes sessions in and lets others go.
    fn settle(&mut self, wanted: Vec<Wanted>) -> Vec<(SessionId, Burst)> {
        let now = Instant::now();
        self.look(now, false);
        let mut bursts = Vec::new();
        let mut stays = HashSet::new();
        let mut coming: HashMap<String, Vec<Member>> = HashMap::new();
        for wanted in wanted {
            match wanted {
                Wanted::Stays(session) => drop(stays.insert(session)),
                Wanted::Comes { workspace, member } => coming.entry(workspace).or_default().push(member),
            }
        }
        for (workspace, members) in coming {
            match self.by_workspace.remove(&workspace) {
                Some(mut place) => {
                    let was_watched = place.tree.is_ok();
                    let changes_mind = |member: &Member| members.iter().any(|newcomer| newcomer.session == member.session);
                    let is_otherwise = place.members.iter().any(changes_mind) || members.iter().any(|member| member.mode == WatchMode::On);
                    if was_watched && is_otherwise {
                        let stay = place.members.iter().filter(|member| !changes_mind(member));
                        let modes: Vec<WatchMode> = stay.chain(&members).map(|member| member.mode).collect();
                        bursts.extend(self.limit(&mut place, &modes, now));
                    }
                    place.members.retain(|member| !changes_mind(member));
                    place.members.extend(members);
                    if !was_watched {
                        // what could not be watched may be by now
                        self.open_place(&mut place);
                    } else if place.tree.is_err() {
                        place.begin_anew();
                    }
                    place.note(now);
                    self.by_workspace.insert(workspace, place);
                }
                None => {
                    let (tree, pace) = (Err(Watching::off("it has only just begun")), Pace::default());
                    let mut place = Place { workspace: workspace.clone(), tree, pace, members, missed: false, waits_at: None };
                    self.open_place(&mut place);
                    place.note(now);
                    self.by_workspace.insert(workspace, place);
                }
            }
        }
        for place in self.by_workspace.values_mut() {
            if place.members.iter().any(|member| !stays.contains(&member.session)) {
                bursts.extend(place.tell(now));
                place.members.retain(|member| stays.contains(&member.session));
            }
        }
        let empty: Vec<String> =
            self.by_workspace.values().filter(|place| place.members.is_empty()).map(|place| place.workspace.clone()).collect();
        for workspace in empty {
            if let (Some(place), Some(eye)) = (self.by_workspace.remove(&workspace), &mut self.eye) {
                if let Some(above) = place.waits_at {
                    eye.remove(&above);
                }
                if let Ok(mut tree) = place.tree {
                    tree.close(eye);
                }
            }
        }
        // the system's watcher costs a thread: not without a reason
        if !self.by_workspace.values().any(|place| place.tree.is_ok() || place.waits_at.is_some()) {
            self.eye = None;
        }
        bursts
    }

    /// Somebody wants more of a tree than before, or less. What is given up for that is told first.
    fn limit(&mut self, place: &mut Place, modes: &[WatchMode], now: Instant) -> Vec<(SessionId, Burst)> {
        let limits = self.limits(&place.workspace, modes);
        let (Ok(tree), Some(eye)) = (&mut place.tree, &mut self.eye) else { return Vec::new() };
        let Err(state) = limits.and_then(|limits| tree.limit(limits).map_err(|why| Watching::off(why.why()))) else { return Vec::new() };
        tree.close(eye);
        let bursts = place.tell(now);
        place.tree = Err(state);
        bursts
    }

    /// How much of a workspace is watched; or why nothing is.
    fn limits(&self, workspace: &str, modes: &[WatchMode]) -> Result<Limits, Watching> {
        if modes.iter().all(|mode| *mode == WatchMode::Off) {
            return Err(asked_off());
        }
        if modes.contains(&WatchMode::On) {
            return Ok(MOST);
        }
        let root = Path::new(workspace).canonicalize();
        if root.is_ok_and(|root| self.home.as_ref().is_some_and(|home| home.starts_with(root))) {
            return Err(Watching::off("it is your home folder, or above it; `new --watch on` has it watched all the same"));
        }
        let advice = "; `new --watch on`, or [watch] in config.toml, has it watched all the same";
        Ok(Limits { folders: self.settings.max_folders as usize, files: self.settings.max_files as usize, advice })
    }

    fn open_place(&mut self, place: &mut Place) {
        place.tree = self.open(&place.workspace, &place.members);
        let Some(eye) = &mut self.eye else { return };
        if place.tree.is_err() && !Path::new(&place.workspace).is_dir() {
            place.waits_at = wait_above(&place.workspace, place.waits_at.take(), eye);
        } else if let Some(above) = place.waits_at.take() {
            eye.remove(&above);
        }
    }

    fn open(&mut self, workspace: &str, members: &[Member]) -> Result<Tree, Watching> {
        let modes: Vec<WatchMode> = members.iter().map(|member| member.mode).collect();
        let limits = self.limits(workspace, &modes)?;
        if self.eye.is_none() {
            self.eye = Some(Eye::open(&self.inbox).map_err(Watching::off)?);
        }
        let Some(eye) = &mut self.eye else { return Err(Watching::off("nothing can be watched here")) };
        let since = members.iter().map(|member| member.from).min().unwrap_or_else(Timestamp::now);
        let (ours, ignored) = (self.ours.clone(), self.settings.ignore.clone());
        let make_rules = move |root: &Path| Rules::new(root, ours.clone(), &ignored);
        Tree::open(Path::new(workspace), make_rules, limits, since, eye).map_err(|why| Watching::off(why.why()))
    }

    fn close_all(&mut self) {
        // everything is opened again, by other rules: what was found so far is not known to be of interest any more
        self.by_workspace.clear();
        self.eye = None;
        self.inbox.take();
    }
}

impl Place {
    /// What was found is told when its time has come.
    fn note(&mut self, now: Instant) {
        if self.tree.as_ref().is_ok_and(|tree| !tree.changes.is_empty()) {
            self.pace.note(now);
        }
    }

    /// Whoever is watched again later has been told of everything before.
    fn begin_anew(&mut self) {
        let now = Timestamp::now();
        for member in &mut self.members {
            member.from = now;
        }
    }

    /// One burst for each session, of what is its own.
    fn tell(&mut self, now: Instant) -> Vec<(SessionId, Burst)> {
        self.pace.tell(now);
        let Ok(tree) = &mut self.tree else { return Vec::new() };
        let changes = std::mem::take(&mut tree.changes);
        let ended = tree.given_up();
        let missed = std::mem::take(&mut self.missed);
        let at = Timestamp::now();
        let until = at.checked_sub(ON_THE_WAY).unwrap_or(at);
        let mut bursts = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.mode != WatchMode::Off) {
            let mut files: Vec<(String, FileChange, Timestamp)> = Vec::new();
            let mut counts = changes.unnamed;
            for (path, (change, at)) in &changes.files {
                let path = path.to_string_lossy();
                if *at >= member.from && member.known.get(&*path).is_none_or(|known| known < at) {
                    counts[*change as usize] += 1;
                    files.push((path.into_owned(), *change, *at));
                }
            }
            // what an earlier daemon knew is only met in the first look
            member.known.clear();
            if counts != [0; 3] {
                bursts.push((member.session, Burst { files, counts, missed, until }));
            }
        }
        if let Some(why) = ended {
            self.tree = Err(Watching::off(why));
            self.begin_anew();
        }
        bursts
    }
}
