//! One workspace that is watched: its folders, the files that are known in them, and what has changed since it was last asked.
//! A change is what is different on the disk, whatever the system calls it: events only say where to look.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use shared::watch::{FileChange, Watching};

use super::changes::Changes;
use super::rules::{self, Rules};
use crate::file_time::file_time;

/// How a folder is asked to be watched, and given up.
pub trait Watches {
    fn add(&mut self, folder: &Path) -> Result<(), Refused>;
    /// Once more: what has its name now may be another folder.
    fn renew(&mut self, folder: &Path) -> Result<(), Refused>;
    fn remove(&mut self, folder: &Path);
    /// Nobody waits for the rest any more: the daemon ends.
    fn is_over(&self) -> bool;
}

#[derive(Debug)]
pub enum Refused {
    /// It went away.
    Gone,
    /// No more folders can be watched; why.
    Full(String),
}

/// Larger trees are not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub folders: usize,
    pub files: usize,
    /// What can be done about it.
    pub advice: &'static str,
}

/// What files that are not known mean.
#[derive(Clone, Copy)]
enum Seen {
    /// They were there when nobody looked yet, unless they are younger than this.
    First(Timestamp),
    /// They are new, if they are younger than the last look; those that are known may have changed since then.
    Again(Timestamp),
    /// As above, but of those that are known the system tells itself.
    ByNewRules(Timestamp),
    /// Their folder is new since this, and so are they.
    New(Timestamp),
}

pub struct Tree {
    root: PathBuf,
    device: u64,
    rules: Rules,
    make_rules: Box<dyn Fn(&Path) -> Rules + Send>,
    limits: Limits,
    /// Folders that are watched, and the files known in each.
    folders: HashMap<PathBuf, HashSet<OsString>>,
    files: usize,
    /// Why not everything is watched.
    short: Option<String>,
    /// Up to when everything has been looked at, by the clock of file times.
    looked_at: Timestamp,
    /// Why nothing is watched any more; what was known by then is still to be told.
    given_up: Option<String>,
    pub changes: Changes,
}

/// Why a tree is not watched at all.
#[derive(Debug, PartialEq, Eq)]
pub enum Unwatched {
    Gone(String),
    TooLarge(String),
}

impl Unwatched {
    pub fn why(self) -> String {
        match self {
            Self::Gone(why) | Self::TooLarge(why) => why,
        }
    }
}

impl Tree {
    /// Everything below a folder. Files that are younger than `since` are the first changes.
    pub fn open(
        root: &Path,
        make_rules: impl Fn(&Path) -> Rules + Send + 'static,
        limits: Limits,
        since: Timestamp,
        watches: &mut dyn Watches,
    ) -> Result<Self, Unwatched> {
        let gone = |error: io::Error| Unwatched::Gone(format!("the workspace cannot be read: {error}"));
        let root = root.canonicalize().map_err(gone)?;
        let device = root.metadata().map_err(gone)?.dev();
        let mut tree = Self {
            rules: make_rules(&root),
            make_rules: Box::new(make_rules),
            root: root.clone(),
            device,
            limits,
            folders: HashMap::new(),
            files: 0,
            short: None,
            looked_at: file_time(),
            given_up: None,
            changes: Changes::default(),
        };
        match tree.scan(&root, Seen::First(since), watches) {
            Ok(()) => Ok(tree),
            Err(why) => {
                tree.close(watches);
                Err(why)
            }
        }
    }

    pub fn close(&mut self, watches: &mut dyn Watches) {
        for folder in self.folders.keys() {
            watches.remove(folder);
        }
        self.folders.clear();
    }

    pub fn give_up(&mut self, why: String) {
        self.given_up = Some(why);
    }

    pub fn has_given_up(&self) -> bool {
        self.given_up.is_some()
    }

    pub fn given_up(&mut self) -> Option<String> {
        self.given_up.take()
    }

    pub fn state(&self) -> Watching {
        if let Some(why) = &self.given_up {
            return Watching::off(why);
        }
        let folders = self.folders.len() as u64;
        match &self.short {
            Some(why) => Watching::Part { folders, why: why.clone() },
            None => Watching::On { folders, files: self.files as u64 },
        }
    }

    /// Looks where the system says that something happened; whether folders among that may be others than before.
    pub fn look(&mut self, touched: &HashMap<PathBuf, bool>, watches: &mut dyn Watches) -> Result<(), Unwatched> {
        let (now, looked_at) = (Timestamp::now(), file_time());
        let mut here: Vec<(&PathBuf, bool)> =
            touched.iter().filter(|(path, _)| path.starts_with(&self.root)).map(|(path, anew)| (path, *anew)).collect();
        // while a program works in it, nobody tells that it was removed
        if !self.root.is_dir() {
            let root = self.root.clone();
            self.removed(&root, now, watches);
            return Err(Unwatched::Gone("the workspace is gone".into()));
        }
        if here.is_empty() {
            return Ok(());
        }
        let is_rule = |path: &Path| {
            path.file_name().is_some_and(rules::makes_rules) && path.parent().is_some_and(|folder| self.folders.contains_key(folder))
        };
        if here.iter().any(|(path, _)| is_rule(path)) {
            self.rules = (self.make_rules)(&self.root);
            self.compare(Seen::ByNewRules(self.looked_at), watches)?;
        }
        // folders before what is in them
        here.sort_unstable();
        for (path, anew) in here {
            self.look_at(path, anew, now, watches)?;
        }
        self.looked_at = looked_at;
        Ok(())
    }

    /// After events were lost: compares everything with what is known.
    pub fn look_everywhere(&mut self, watches: &mut dyn Watches) -> Result<(), Unwatched> {
        self.rules = (self.make_rules)(&self.root);
        self.compare(Seen::Again(self.looked_at), watches)
    }

    fn compare(&mut self, seen: Seen, watches: &mut dyn Watches) -> Result<(), Unwatched> {
        let (root, now, looked_at) = (self.root.clone(), Timestamp::now(), file_time());
        // what is ignored by now is no change, only of no interest
        let mut known: Vec<PathBuf> = self.folders.keys().cloned().collect();
        known.sort_unstable();
        for folder in &known {
            self.rules.enter(folder);
        }
        for folder in &known {
            if *folder != root && self.rules.ignores(folder, true) {
                self.forget(folder, watches);
            }
        }
        for folder in known {
            let Some(files) = self.folders.get_mut(&folder) else { continue };
            let before = files.len();
            files.retain(|name| !self.rules.ignores(&folder.join(name), false));
            self.files -= before - files.len();
        }
        let all: Vec<PathBuf> = self.folders.keys().cloned().collect();
        for folder in all {
            if self.folders.contains_key(&folder) && !folder.is_dir() {
                self.removed(&folder, now, watches);
            }
        }
        self.scan(&root, seen, watches)?;
        self.looked_at = looked_at;
        Ok(())
    }

    fn look_at(&mut self, path: &Path, anew: bool, now: Timestamp, watches: &mut dyn Watches) -> Result<(), Unwatched> {
        let found = path.symlink_metadata().ok();
        let is_folder = found.as_ref().is_some_and(Metadata::is_dir);
        let is_known_folder = self.folders.contains_key(path);
        if is_known_folder && !is_folder {
            self.removed(path, now, watches);
        }
        if is_folder {
            if is_known_folder {
                if anew {
                    self.scan(path, Seen::Again(self.looked_at), watches)?;
                }
                return Ok(());
            }
            if self.is_of_interest(path, true) {
                let at = found.as_ref().map_or(now, |found| self.when(found, now));
                self.scan(path, Seen::New(at), watches)?;
            }
            return Ok(());
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let Some(files) = self.folders.get_mut(folder) else { return Ok(()) };
        let change = match (files.contains(name), found.is_some()) {
            (true, true) => FileChange::Changed,
            (true, false) => FileChange::Removed,
            (false, true) => FileChange::Created,
            (false, false) => return Ok(()),
        };
        match change {
            FileChange::Removed => {
                files.remove(name);
                self.files -= 1;
            }
            FileChange::Created => {
                if self.rules.ignores(path, false) {
                    return Ok(());
                }
                files.insert(name.to_owned());
                self.files += 1;
                self.check_size()?;
            }
            FileChange::Changed => {}
        }
        // of what is gone, its folder tells when
        let told_by = found.or_else(|| folder.metadata().ok());
        self.tell(path, change, told_by.map_or(now, |found| self.when(&found, now)));
        Ok(())
    }

    /// When something happened of which the system has told since the last look. On other machines' disks clocks may be wrong.
    fn when(&self, found: &Metadata, now: Timestamp) -> Timestamp {
        touched(found).map_or(now, |at| at.max(self.looked_at).min(now))
    }

    /// Whether its folder is watched and no rule is against it.
    fn is_of_interest(&self, path: &Path, is_folder: bool) -> bool {
        path.parent().is_some_and(|folder| self.folders.contains_key(folder)) && !self.rules.ignores(path, is_folder)
    }

    fn tell(&mut self, path: &Path, change: FileChange, at: Timestamp) {
        if let Ok(path) = path.strip_prefix(&self.root) {
            self.changes.add(path.to_owned(), change, at);
        }
    }

    /// A folder and everything below it: watched, then compared with what was known. What happens meanwhile is told by the watch.
    fn scan(&mut self, top: &Path, seen: Seen, watches: &mut dyn Watches) -> Result<(), Unwatched> {
        let now = Timestamp::now();
        let mut todo = vec![top.to_owned()];
        while let Some(folder) = todo.pop() {
            if watches.is_over() {
                return Err(Unwatched::Gone("the daemon ends".into()));
            }
            let asked = if self.folders.contains_key(&folder) { watches.renew(&folder) } else { watches.add(&folder) };
            match asked {
                Ok(()) => {}
                Err(Refused::Gone) => {
                    self.removed(&folder, now, watches);
                    continue;
                }
                Err(Refused::Full(why)) => {
                    self.short = Some(why);
                    return Ok(());
                }
            }
            self.rules.enter(&folder);
            let known = self.folders.entry(folder.clone()).or_default().clone();
            self.check_size()?;
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            let mut there = HashSet::new();
            let mut below = Vec::new();
            for entry in entries.filter_map(Result::ok) {
                let (path, name) = (entry.path(), entry.file_name());
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if self.rules.ignores(&path, is_folder) {
                    continue;
                }
                if is_folder {
                    below.push(path);
                    continue;
                }
                let Ok(found) = entry.metadata() else { continue };
                if let Some((change, at)) = what_happened(&found, known.contains(&name), seen) {
                    self.tell(&path, change, at);
                }
                there.insert(name);
            }
            if folder != self.root && there.contains(&OsString::from(rules::CACHE_TAG)) {
                self.forget(&folder, watches);
                continue;
            }
            for name in known.difference(&there) {
                self.tell(&folder.join(name), FileChange::Removed, now);
            }
            self.files = self.files + there.len() - known.len();
            self.folders.insert(folder, there);
            self.check_size()?;
            // another disk, a network, the kernel's own files: not this workspace's
            below.retain(|folder| folder.symlink_metadata().is_ok_and(|found| found.dev() == self.device));
            todo.extend(below);
        }
        Ok(())
    }

    /// A folder that is not there any more, and what was known in it.
    fn removed(&mut self, top: &Path, now: Timestamp, watches: &mut dyn Watches) {
        for (folder, files) in self.take(top, watches) {
            for name in files {
                self.tell(&folder.join(name), FileChange::Removed, now);
            }
        }
    }

    /// A folder that is of no interest any more.
    fn forget(&mut self, top: &Path, watches: &mut dyn Watches) {
        for (folder, _) in self.take(top, watches) {
            if let Ok(inside) = folder.strip_prefix(&self.root) {
                self.changes.files.retain(|path, _| path.parent() != Some(inside));
            }
        }
    }

    fn take(&mut self, top: &Path, watches: &mut dyn Watches) -> Vec<(PathBuf, HashSet<OsString>)> {
        let gone: Vec<PathBuf> = self.folders.keys().filter(|folder| folder.starts_with(top)).cloned().collect();
        let mut taken = Vec::with_capacity(gone.len());
        for folder in gone {
            watches.remove(&folder);
            self.rules.leave(&folder);
            if let Some(files) = self.folders.remove(&folder) {
                self.files -= files.len();
                taken.push((folder, files));
            }
        }
        taken
    }

    /// From now on it may be so large.
    pub fn limit(&mut self, limits: Limits) -> Result<(), Unwatched> {
        self.limits = limits;
        self.check_size()
    }

    fn check_size(&self) -> Result<(), Unwatched> {
        let limits = self.limits;
        let what = if self.folders.len() > limits.folders {
            format!("{} folders", limits.folders)
        } else if self.files > limits.files {
            format!("{} files", limits.files)
        } else {
            return Ok(());
        };
        Err(Unwatched::TooLarge(format!("the workspace has more than {what}{}", limits.advice)))
    }
}

/// What happened to a file that is there, and when, as far as its times tell.
fn what_happened(found: &Metadata, is_known: bool, seen: Seen) -> Option<(FileChange, Timestamp)> {
    let since = match seen {
        Seen::New(at) => {
            let at = touched(found).map_or(at, |touched| touched.max(at).min(Timestamp::now()));
            return Some((if is_known { FileChange::Changed } else { FileChange::Created }, at));
        }
        Seen::ByNewRules(_) if is_known => return None,
        Seen::First(since) | Seen::Again(since) | Seen::ByNewRules(since) => since,
    };
    let touched = touched(found)?;
    if touched <= since {
        return None;
    }
    let is_young = || found.created().ok().and_then(|at| Timestamp::try_from(at).ok()).is_some_and(|born| born > since);
    let is_new = !is_known && (!matches!(seen, Seen::First(_)) || is_young());
    Some((if is_new { FileChange::Created } else { FileChange::Changed }, touched))
}

/// When it was written, moved here or given another mode; as exact as the database keeps it.
fn touched(found: &Metadata) -> Option<Timestamp> {
    Timestamp::from_microsecond(found.ctime() * 1_000_000 + found.ctime_nsec() / 1000).ok()
}

#[cfg(test)]
mod tests;
