//! Workspaces with the sessions that are active in them: one tree for each, however many work in it. Everything here may wait for the disk.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use shared::config::WatchConfig;
use shared::id::SessionId;
use shared::watch::{FileChange, WatchMode, Watching};
use tokio::time::Instant;

use super::inbox::{Eye, Inbox};
use super::pace::Pace;
use super::rules::Rules;
use super::tree::{Limits, Tree, Unwatched, Watches};
use crate::store::{Burst, Watched};

/// To look everywhere is worth ten times its time.
const EVERYWHERE_FACTOR: u32 = 10;

/// A burst's changes reach the database after they happened: those of the last moments may still be on their way to us.
const ON_THE_WAY: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);

/// More is not watched, whoever asks for it: some hundred megabytes.
const MOST: Limits = Limits { folders: 200_000, files: 1_000_000, advice: ", which is too much to watch" };

/// A workspace with the sessions that are active in it.
pub struct Place {
    pub workspace: String,
    pub tree: Result<Tree, Watching>,
    pub pace: Pace,
    pub members: Vec<Member>,
    pub missed: bool,
    /// It is gone: the folder above it that is watched until it comes back.
    pub waits_at: Option<PathBuf>,
}

pub struct Member {
    pub session: SessionId,
    /// Changes before this are not its own.
    pub from: Timestamp,
    /// What an earlier daemon has told of files, and when.
    pub known: HashMap<String, Timestamp>,
    pub mode: WatchMode,
}

/// Everything that is watched. It works in threads that may wait for the disk, and is handed to and fro.
pub struct Places {
    pub inbox: Arc<Inbox>,
    pub eye: Option<Eye>,
    pub by_workspace: HashMap<String, Place>,
    pub settings: WatchConfig,
    pub ours: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// Events were lost, and not everything has been looked at since.
    pub missed: bool,
    /// Not before these.
    pub next_look: Instant,
    pub next_everywhere: Instant,
}

pub enum Wanted {
    Comes { workspace: String, member: Member },
    Stays(SessionId),
}

impl Places {
    /// Whether it is watched as it is to be.
    pub fn has(&self, watched: &Watched, mode: WatchMode) -> bool {
        self.by_workspace
            .get(&watched.workspace)
            .is_some_and(|place| place.members.iter().any(|member| member.session == watched.session && member.mode == mode))
    }

    pub fn due(&self) -> Option<Instant> {
        let told = self.by_workspace.values().filter_map(|place| place.pace.due());
        told.chain(self.missed.then_some(self.next_everywhere)).min()
    }

    /// Looks where something happened; everywhere, if that is not known and its time has come.
    pub fn look(&mut self, now: Instant, at_once: bool) {
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
    pub fn come_back(&mut self) {
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
    pub fn tell(&mut self, now: Instant, is_due: impl Fn(&Pace) -> bool) -> Vec<(SessionId, Burst)> {
        let mut bursts = Vec::new();
        for place in self.by_workspace.values_mut().filter(|place| is_due(&place.pace)) {
            bursts.extend(place.tell(now));
        }
        bursts
    }

    /// Takes sessions in and lets others go.
    pub fn settle(&mut self, wanted: Vec<Wanted>) -> Vec<(SessionId, Burst)> {
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

    pub fn close_all(&mut self) {
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

pub fn asked_off() -> Watching {
    Watching::off("that is what was asked for (`new --watch`, or [watch] in config.toml)")
}
