//! Notices when files of settings are changed: by editors that write in place or rename a new file over the old one, behind links,
//! and where there was none. Sleeps until the system tells of something; a burst is read once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use shared::paths::Paths;
use tokio::sync::Notify;

use crate::context::Context;
use crate::log::Log;
use crate::settings::Reread;
use crate::watch::in_words as watch_error;

/// Editors write, rename and set times in a row: the files are read when nothing has happened for this long,
const QUIET: Duration = Duration::from_millis(100);

/// or after this long in any case.
const LONGEST: Duration = Duration::from_secs(1);

/// Links that lead to links: more are a circle.
const MOST_LINKS: u32 = 8;

/// Folders, and what in them is of interest.
type Points = BTreeMap<PathBuf, Names>;

#[derive(Debug, PartialEq)]
enum Names {
    All,
    These(BTreeSet<OsString>),
}

pub async fn run(context: Context) {
    let touched = Arc::new(Notify::new());
    loop {
        // watched first, then read: what changes in between is told
        let (watcher, blind) = match watch(&points(&context.paths), &touched) {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (None, Some(in_words(&error))),
        };
        report(&context.log, &context.settings.read_again(&context.paths, blind));
        touched.notified().await;
        let latest = tokio::time::Instant::now() + LONGEST;
        while tokio::time::timeout_at(latest.min(tokio::time::Instant::now() + QUIET), touched.notified()).await.is_ok() {
            if tokio::time::Instant::now() >= latest {
                break;
            }
        }
        // folders may be others now: they are looked for anew
        drop(watcher);
    }
}

fn report(log: &Log, reread: &Reread) {
    for sentence in &reread.newly_wrong {
        log.warn(sentence);
    }
    if reread.is_in_order_again {
        log.note("the settings are in order again");
    }
    if !reread.changed.is_empty() {
        log.note(&format!("settings were changed: {}", reread.changed.join(", ")));
    }
}

fn watch(points: &Points, touched: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let interesting: Vec<(PathBuf, Option<BTreeSet<OsString>>)> = points
        .iter()
        .map(|(folder, names)| match names {
            Names::All => (folder.clone(), None),
            Names::These(names) => (folder.clone(), Some(names.clone())),
        })
        .collect();
    let touched = Arc::clone(touched);
    let is_of_interest = move |path: &Path| {
        interesting.iter().any(|(folder, names)| {
            let in_folder = || {
                path.parent() == Some(folder)
                    && path.file_name().is_some_and(|name| names.as_ref().is_none_or(|names| names.contains(name)))
            };
            path == folder || in_folder()
        })
    };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
        // being read is no change, least of all by ourselves
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(event) if !event.need_rescan() && !event.paths.iter().any(|path| is_of_interest(path)) => {}
        Ok(_) | Err(_) => touched.notify_one(),
    })?;
    for folder in points.keys() {
        match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {}
            // gone since it was looked for: whoever takes it away touches the one above too
            Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(watcher)
}

fn in_words(error: &notify::Error) -> String {
    format!("changes of the settings are not noticed until the daemon is restarted: {}", watch_error(error))
}

/// What has to be watched to hear of any change: the folders of the files, of what they link to, and of what is not there yet.
fn points(paths: &Paths) -> Points {
    let mut points = Points::new();
    follow(&paths.config_file(), 0, &mut points);
    let agents = paths.agents();
    follow(&agents, 0, &mut points);
    if let Ok(entries) = std::fs::read_dir(&agents) {
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_symlink()) {
            follow(&path, 0, &mut points);
        }
        points.insert(agents, Names::All);
    }
    points
}

fn follow(path: &Path, links: u32, points: &mut Points) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    if links > MOST_LINKS {
        return;
    }
    if !folder.is_dir() {
        return follow(folder, links, points);
    }
    if let Names::These(names) = points.entry(folder.to_owned()).or_insert_with(|| Names::These(BTreeSet::new())) {
        names.insert(name.to_owned());
    }
    // a folder that is a link may be pointed elsewhere
    if folder.is_symlink() {
        follow(folder, links + 1, points);
    }
    if let Ok(target) = std::fs::read_link(path) {
        follow(&folder.join(target), links + 1, points);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_links_and_of_what_is_missing_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let names = |names: &[&str]| Names::These(names.iter().map(OsString::from).collect());
        let of = |path: &Path| {
            let mut points = Points::new();
            follow(path, 0, &mut points);
            points
        };
        let missing = dir.path().join("config/sessions/config.toml");
        assert_eq!(of(&missing), Points::from([(dir.path().to_owned(), names(&["config"]))]));
        std::fs::create_dir_all(dir.path().join("dots")).expect("a folder");
        std::fs::create_dir_all(dir.path().join("config/sessions")).expect("a folder");
        std::fs::write(dir.path().join("dots/real.toml"), "").expect("a file");
        std::os::unix::fs::symlink("../../dots/real.toml", &missing).expect("a link");
        let found = of(&missing);
        assert_eq!(found.get(&dir.path().join("config/sessions")), Some(&names(&["config.toml"])));
        assert_eq!(found.get(&dir.path().join("config/sessions/../../dots")), Some(&names(&["real.toml"])));
        std::fs::remove_file(&missing).expect("goes");
        std::os::unix::fs::symlink("config.toml", &missing).expect("a link to itself");
        assert_eq!(of(&missing).len(), 1, "a circle ends");
    }
}
