//! How many processes a runtime may have. An ordinary user's limit is the kernel's own, counted over all of the user's
//! processes; root has none, so there a group of its own is made where the system lets us.

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::group::{self, Kind};

pub struct ProcessLimit {
    group: Option<PathBuf>,
}

impl ProcessLimit {
    /// For this process and what it starts. Where nothing can be set, nothing is.
    pub fn set(runtime: &str, most: u64) -> Self {
        if rustix::process::geteuid().is_root() {
            return Self { group: make_group(runtime, most) };
        }
        let wanted = processes_of_user().saturating_add(most);
        let maximum = getrlimit(Resource::Nproc).maximum;
        let current = maximum.map_or(wanted, |maximum| wanted.min(maximum));
        let _ = setrlimit(Resource::Nproc, Rlimit { current: Some(current), maximum });
        Self { group: None }
    }

    /// A process that was started, before it starts others.
    pub fn include(&self, pid: u32) {
        if let Some(group) = &self.group {
            let _ = std::fs::write(group.join("cgroup.procs"), pid.to_string());
        }
    }

    /// Everything that was in it has ended.
    pub fn lift(self) {
        if let Some(group) = self.group {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// Threads count too, since the kernel counts them.
fn processes_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())))
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == user))
        .map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(1, |tasks| tasks.count() as u64))
        .sum()
}

/// The new kind may be there without this controller: then the file is not.
fn make_group(runtime: &str, most: u64) -> Option<PathBuf> {
    [Kind::Unified, Kind::Of("pids")].into_iter().find_map(|kind| {
        let group = group::create(kind, runtime)?;
        if std::fs::write(group.join("pids.max"), most.to_string()).is_err() {
            let _ = std::fs::remove_dir(&group);
            return None;
        }
        Some(group)
    })
}
