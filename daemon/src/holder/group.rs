//! Control groups of a runtime: one in which all of it can be frozen at once, one that limits its processes. Where the system lets us
//! have none, there is none, and others find another way. Only Linux has them.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// What the names of our groups begin with.
const NAME: &str = "sessions-tui-";

/// So many looks, a hundredth of a second apart, are taken until killed processes are out of a group.
const COLLECTED: u32 = 50;

/// Where a group may be, by what it is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The second version: one tree for everything.
    Unified,
    /// The first one's tree for this controller.
    Of(&'static str),
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Unified => "cgroup2",
            Self::Of(_) => "cgroup1",
        }
    }
}

/// A group in which a whole tree of processes is stopped and goes on as one.
pub struct Freezer {
    kind: Kind,
    dir: PathBuf,
}

impl Freezer {
    /// A group for a runtime, in the best way that can be had beside those that were tried; it is empty.
    pub fn make(runtime: &str, tried: &[&'static str]) -> Option<Self> {
        [Kind::Unified, Kind::Of("freezer")].into_iter().find_map(|kind| {
            if tried.contains(&kind.word()) {
                return None;
            }
            let freezer = Self { kind, dir: create(kind, runtime)? };
            if freezer.freeze().is_err() {
                freezer.remove();
                return None;
            }
            Some(freezer)
        })
    }

    pub fn word(&self) -> &'static str {
        self.kind.word()
    }

    pub fn freeze(&self) -> io::Result<()> {
        match self.kind {
            Kind::Unified => std::fs::write(self.dir.join("cgroup.freeze"), "1"),
            Kind::Of(_) => std::fs::write(self.dir.join("freezer.state"), "FROZEN"),
        }
    }

    pub fn thaw(&self) {
        let _ = match self.kind {
            Kind::Unified => std::fs::write(self.dir.join("cgroup.freeze"), "0"),
            Kind::Of(_) => std::fs::write(self.dir.join("freezer.state"), "THAWED"),
        };
    }

    /// Everything in it has come to a stop.
    pub fn is_frozen(&self) -> bool {
        let (file, words) = match self.kind {
            Kind::Unified => ("cgroup.events", "frozen 1"),
            Kind::Of(_) => ("freezer.state", "FROZEN"),
        };
        std::fs::read_to_string(self.dir.join(file)).is_ok_and(|text| text.lines().any(|line| line.trim() == words))
    }

    /// Ends everything in it at once, frozen or not, however quickly it forks; `false` where that cannot be had.
    pub fn kill(&self) -> bool {
        self.kind == Kind::Unified && std::fs::write(self.dir.join("cgroup.kill"), "1").is_ok()
    }

    /// Those that are in it.
    pub fn members(&self) -> HashSet<u32> {
        let list = std::fs::read_to_string(self.dir.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Takes a process in, and with it all that it will ever start.
    pub fn take_in(&self, pid: u32) -> Taking {
        match std::fs::write(self.dir.join("cgroup.procs"), pid.to_string()) {
            Ok(()) => Taking::In,
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Taking::Gone,
            Err(_) => Taking::Refused,
        }
    }

    /// Everything that was in it has ended.
    pub fn remove(&self) {
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// What became of a process that was to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    In,
    /// It has ended meanwhile.
    Gone,
    Refused,
}

/// Of a runtime whose holder was killed: what it left frozen goes on, so that it can be ended.
pub fn thaw_behind(runtime: &str) {
    for kind in [Kind::Unified, Kind::Of("freezer")] {
        if let Some(dir) = place(kind, runtime).filter(|dir| dir.exists()) {
            Freezer { kind, dir }.thaw();
        }
    }
}

/// … and its groups, which are empty by now, or as soon as what was killed has been collected.
pub fn remove_behind(runtime: &str) {
    let kinds = [Kind::Unified, Kind::Of("freezer"), Kind::Of("pids")];
    let dirs: Vec<PathBuf> = kinds.into_iter().filter_map(|kind| place(kind, runtime)).collect();
    for _ in 0..COLLECTED {
        let is_left = |dir: &PathBuf| std::fs::remove_dir(dir).is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
        if dirs.iter().filter(|dir| is_left(dir)).count() == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A daemon that was started from inside a session is no part of it: it must not be frozen with it.
pub fn leave_sessions() {
    let Ok(groups) = std::fs::read_to_string("/proc/self/cgroup") else { return };
    for kind in [Kind::Unified, Kind::Of("freezer"), Kind::Of("pids")] {
        if let Some((root, path)) = root(kind).zip(path_in(&groups, kind))
            && let Some(outside) = outside_of_sessions(path)
        {
            let _ = std::fs::write(root.join(outside).join("cgroup.procs"), std::process::id().to_string());
        }
    }
}

/// The part of a group's path before the first of ours, if one of ours is in it.
fn outside_of_sessions(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ours = parts.iter().position(|part| part.starts_with(NAME))?;
    Some(parts.get(..ours)?.join("/"))
}

/// Makes the group of a runtime, or finds it made.
pub fn create(kind: Kind, runtime: &str) -> Option<PathBuf> {
    let dir = place(kind, runtime)?;
    match std::fs::create_dir(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => None,
        _ => Some(dir),
    }
}

/// Below the group we are in.
fn place(kind: Kind, runtime: &str) -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = path_in(&groups, kind)?;
    // a holder that was started by a daemon inside a session is in nobody's group either
    let path = outside_of_sessions(path).unwrap_or_else(|| path.trim_start_matches('/').to_owned());
    Some(root(kind)?.join(path).join(format!("{NAME}{runtime}")))
}

/// Where a kind is mounted, as everybody mounts it.
fn root(kind: Kind) -> Option<PathBuf> {
    let candidates = match kind {
        Kind::Unified => vec![Path::new("/sys/fs/cgroup").to_owned(), Path::new("/sys/fs/cgroup/unified").to_owned()],
        Kind::Of(controller) => vec![Path::new("/sys/fs/cgroup").join(controller)],
    };
    // both versions have this file in every group
    candidates.into_iter().find(|root| root.join("cgroup.procs").exists())
}

/// Our own path in a tree, from the kernel's list: `0::/user.slice`, `6:freezer:/`.
fn path_in(groups: &str, kind: Kind) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_meant = match kind {
            Kind::Unified => number == "0" && controllers.is_empty(),
            Kind::Of(controller) => controllers.split(',').any(|name| name == controller),
        };
        is_meant.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_kind() {
        let groups = "9:name=systemd:/\n6:freezer:/a\n1:cpu,cpuacct:/b\n0::/user.slice/x.scope\n";
        assert_eq!(path_in(groups, Kind::Unified), Some("/user.slice/x.scope"));
        assert_eq!(path_in(groups, Kind::Of("freezer")), Some("/a"));
        assert_eq!(path_in(groups, Kind::Of("cpuacct")), Some("/b"));
        assert_eq!(path_in(groups, Kind::Of("pids")), None);
    }

    #[test]
    fn a_daemon_knows_that_it_is_inside_a_session() {
        for (path, outside) in [
            ("/", None),
            ("/user.slice/term.scope", None),
            ("/user.slice/sessions-tui-0198/deeper", Some("user.slice")),
            ("/sessions-tui-0198", Some("")),
            ("/a/sessions-tui-1/sessions-tui-2", Some("a")),
        ] {
            assert_eq!(outside_of_sessions(path).as_deref(), outside, "{path}");
        }
    }
}
