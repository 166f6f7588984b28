//! Which processes belong to a runtime, and ending them. Linux reads /proc; elsewhere only process groups are known.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use shared::runtime::ROLE;

/// A daemon or a holder, which belong to no session.
pub fn has_role(pid: u32) -> bool {
    match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(environ) => {
            environ.split(|byte| *byte == 0).any(|entry| entry.starts_with(ROLE.as_bytes()) && entry.get(ROLE.len()) == Some(&b'='))
        }
        // ours let nobody but root read it
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => has_role_by_arguments(pid),
        Err(_) => false,
    }
}

fn has_role_by_arguments(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let own = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.as_encoded_bytes().to_vec())).unwrap_or_default();
    let is_ours = |program: &[u8]| program.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name == own || name == b"sessions-tui");
    match words.as_slice() {
        [program, b"holder", ..] | [program, b"daemon", b"run", ..] => is_ours(program) || program.ends_with(b"/proc/self/exe"),
        _ => false,
    }
}

/// Every process whose chain of parents leads to `root`, but for daemons and holders and what is theirs.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in pids() {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if seen.insert(*child) && !has_role(*child) {
                found.push(*child);
                open.push(*child);
            }
        }
    }
    found
}

/// Whether this process or its child has children other than that one. Cheaper than `descendants`; `false` where the kernel
/// does not list them.
pub fn has_children_besides(child: u32) -> bool {
    let children = |pid: u32| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok()).collect::<String>()
    };
    let is_other = |pid: &str| pid.parse() != Ok(child);
    children(std::process::id()).split_whitespace().any(is_other) || children(child).split_whitespace().next().is_some()
}

/// Processes of this user that were started with this variable in their environment, whoever is their parent now.
pub fn marked(variable: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{variable}={value}");
    pids()
        .into_iter()
        .filter(|pid| *pid != std::process::id() && !has_role(*pid))
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
        })
        .collect()
}

/// Hangs up every marked process, and kills those that are still there after `grace`. Gives how many there were.
pub fn end_marked(variable: &str, value: &str, grace: Duration) -> usize {
    let found = marked(variable, value);
    for pid in &found {
        signal(*pid, Signal::HUP);
        signal(*pid, Signal::CONT);
        signal(*pid, Signal::TERM);
    }
    let deadline = Instant::now() + grace;
    loop {
        let left = marked(variable, value);
        if left.is_empty() {
            return found.len();
        }
        if Instant::now() >= deadline {
            for pid in left {
                signal(pid, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
        if Instant::now() >= deadline + grace {
            return found.len();
        }
    }
}

/// The executable and the arguments of a process: another value after an exec. None where the system does not tell.
pub fn image_of(pid: u32) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let executable = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some([executable.as_os_str().as_bytes(), b"\0", &arguments].concat())
}

pub fn signal(pid: u32, signal: Signal) {
    send(pid, signal);
}

/// As `signal`; `false` for a process that is somebody else's. Gone already is what we want.
pub fn send(pid: u32, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    rustix::process::kill_process(pid, signal) != Err(rustix::io::Errno::PERM)
}

pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

pub fn pids() -> Vec<u32> {
    std::fs::read_dir("/proc")
        .map(|entries| entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_default()
}

/// A process as it was seen: a number alone may be another one's by now.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub pid: u32,
    /// In ticks since boot.
    started: u64,
    /// By job control, or by somebody who traces it.
    pub is_stopped: bool,
}

impl PartialEq for Stat {
    fn eq(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }
}

/// `None` for one that is gone, or only waits to be collected.
pub fn stat(pid: u32) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    // field 22, counted from the one behind the state
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(Stat { pid, started, is_stopped: matches!(state, "T" | "t") })
}

/// Descendants from the top down, by the kernel's lists of children, which miss far less of what forks quickly than a look at all
/// processes does; where those lists are not to be had, by such a look.
pub fn descend(root: u32) -> Vec<Stat> {
    let mut found = Vec::new();
    let mut open = std::collections::VecDeque::from([root]);
    let mut has_lists = false;
    while let Some(pid) = open.pop_front() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.filter_map(Result::ok) {
            let Ok(list) = std::fs::read_to_string(task.path().join("children")) else { continue };
            has_lists = true;
            for child in list.split_whitespace().filter_map(|word| word.parse().ok()) {
                if let Some(stat) = stat(child).filter(|_| !has_role(child)) {
                    found.push(stat);
                    open.push_back(child);
                }
            }
        }
    }
    if has_lists { found } else { descendants(root).into_iter().filter_map(stat).collect() }
}

/// Field 4 of stat; the name before it is in parentheses and may hold anything. A zombie is nobody's descendant.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if state == "Z" {
        return None;
    }
    fields.next()?.parse().ok()
}

/// Whether a process was started at or after a moment, in milliseconds since boot. Start times are told in ticks (hundredths of a
/// second): one of the same tick counts as later.
pub fn started_since(pid: u32, since_boot_ms: u64) -> bool {
    let start = || -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // field 22, counted from the state, which is field 3
        stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
    };
    start().is_some_and(|ticks| ticks >= since_boot_ms * rustix::param::clock_ticks_per_second() / 1000)
}

/// When a process was started, in ticks since boot.
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
}

/// Field 5 of stat.
pub fn group_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}
