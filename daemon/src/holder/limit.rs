//! How many processes a runtime may have. An ordinary user's limit is the kernel's own, counted over all of the user's
//! processes; root has none, so there a group of its own is made where the system lets us.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

/// Of a runtime whose holder was killed: its group is empty by now.
pub fn lift_behind(runtime: &str) {
    if rustix::process::geteuid().is_root()
        && let Some(base) = base()
    {
        let _ = std::fs::remove_dir(base.join(name(runtime)));
    }
}

fn name(runtime: &str) -> String {
    format!("sessions-tui-{runtime}")
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

/// Below the control group we are in, old or new kind.
fn make_group(runtime: &str, most: u64) -> Option<PathBuf> {
    let group = base()?.join(name(runtime));
    std::fs::create_dir(&group).ok()?;
    if std::fs::write(group.join("pids.max"), most.to_string()).is_err() {
        let _ = std::fs::remove_dir(&group);
        return None;
    }
    Some(group)
}

fn base() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        let found = match (number, controllers) {
            ("0", "") => Path::new("/sys/fs/cgroup").join(path),
            (_, controllers) if controllers.split(',').any(|name| name == "pids") => Path::new("/sys/fs/cgroup/pids").join(path),
            _ => return None,
        };
        // the new kind may be there without this controller
        (found.join("cgroup.procs").exists() && (number != "0" || has_pids(&found))).then_some(found)
    })
}

fn has_pids(group: &Path) -> bool {
    std::fs::read_to_string(group.join("cgroup.subtree_control")).is_ok_and(|list| list.split_whitespace().any(|name| name == "pids"))
}
