//! Processes as /proc shows them, and signals to single ones.

use std::path::Path;

use rustix::process::{Pid, Signal};

use super::wait_until;

/// Fields of `/proc/PID/stat` that tests look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub state: char,
    pub parent: u32,
    pub session: u32,
    /// Ticks of CPU time used so far, in user and kernel mode.
    pub cpu: u64,
}

/// `None` when there is no such process.
pub fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        cpu: fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?,
    })
}

/// Runs or sleeps; a zombie is dead, once the last of its threads has let go of its files.
pub fn is_alive(pid: u32) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X') || threads() > 1)
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    // gone already is for the caller to notice
    let _ = rustix::process::kill_process(pid, signal);
}

/// kill -9, and gone when this returns.
#[track_caller]
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
    wait_until(&format!("process {pid} to be gone"), || !is_alive(pid));
}

/// Its command line, words joined by spaces.
pub fn command(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    words.join(" ").trim_end().to_owned()
}

/// Every process whose environment mentions `path`: clients, daemon, holders, programs.
pub fn mentioning(path: &Path) -> Vec<u32> {
    let needle = path.to_str().expect("a Unicode path").as_bytes();
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own && is_alive(*pid))
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| environ.windows(needle.len()).any(|part| part == needle))
        })
        .collect()
}

/// The pid the kernel gave out last.
pub fn newest() -> u32 {
    let text = std::fs::read_to_string("/proc/loadavg").expect("the load");
    text.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a pid")
}

/// A child of `parent` among the processes younger than `than`: quick enough to catch one at its birth.
pub fn child_younger(parent: u32, than: u32) -> Option<u32> {
    let newest = newest();
    // numbers start again from the bottom now and then
    let (top, wrapped) = if newest < than { (than + 1000, newest) } else { (newest, 0) };
    (than + 1..=top).chain(1..=wrapped).find(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent))
}

/// Voluntary context switches of all threads: each one is a wake-up.
pub fn wake_ups(pid: u32) -> u64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    tasks
        .filter_map(Result::ok)
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        .filter_map(|status| {
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"))?;
            line.split_whitespace().last()?.parse::<u64>().ok()
        })
        .sum()
}

/// Memory that is this process's alone, in KiB.
pub fn private_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("Private_")).filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}
