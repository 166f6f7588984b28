//! A holder owns one program with its PTY and appends what it says to the recording. It outlives the daemon.
//! `process`, `recorder`, `peer`, `pty`, `driver`, `echo`, `freeze`, `group`, `limit`, `typed` and `wire` run inside the holder; `spawn` and `link` are the daemon's side.

mod answers;
mod apart;
mod driver;
mod echo;
mod freeze;
mod group;
mod limit;
pub mod link;
mod peer;
mod process;
mod pty;
mod recorder;
pub mod spawn;
mod tree;
pub mod typed;
pub mod wire;

use std::time::Duration;

pub use group::leave_sessions;
pub use process::run;
pub use tree::{has_role, pids};

/// Whether a process is the holder with this socket, started before this daemon. An editor or a `tail` with the socket's path among its
/// arguments is not, nor is a later process with a number that was used before.
pub fn is_holder(pid: u32, socket: &std::path::Path) -> bool {
    let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let mut words = line.split(|byte| *byte == 0).skip(1);
    if words.next() != Some(b"holder") || words.next() != Some(socket.as_os_str().as_encoded_bytes()) || words.next() != Some(b"") {
        return false;
    }
    // not readable of a process that is no longer dumpable, unless by root
    let is_ours = match (std::fs::read_link(format!("/proc/{pid}/exe")), std::env::current_exe()) {
        (Ok(theirs), Ok(ours)) => name_of(&theirs) == name_of(&ours),
        _ => true,
    };
    let is_older = match (tree::start_ticks(pid), tree::start_ticks(std::process::id())) {
        (Some(theirs), Some(ours)) => theirs <= ours,
        _ => false,
    };
    is_ours && is_older
}

/// The name of an executable, also of one that an upgrade has replaced.
fn name_of(executable: &std::path::Path) -> Option<String> {
    let name = executable.file_name()?.to_string_lossy();
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}

/// Why a holder says nothing, if that can be seen.
pub fn why_silent(holder: u32) -> Option<String> {
    tree::stat(holder)
        .filter(|stat| stat.is_stopped)
        .map(|_| format!("its holder (pid {holder}) is stopped: `kill -CONT {holder}` lets it go on"))
}

/// Lets a holder go on that was stopped. Its number may be another process's by now, which is left alone.
pub fn go_on(holder: u32) {
    if tree::has_role(holder) {
        tree::signal(holder, rustix::process::Signal::CONT);
    }
}

/// Whether a shell waits for a child of its own process group, as for the commands of its start files: a job at its prompt has a
/// group of its own.
pub fn runs_in_front(shell: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap_or_default();
    children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .any(|pid| tree::stat(pid).is_some() && tree::group_of(pid) == Some(shell))
}

/// Has a holder make its socket again, if that is gone; those of before take no notice.
pub fn listen_again(holder: u32) {
    tree::signal(holder, rustix::process::Signal::HUP);
}

/// Ends what a killed holder has left running, frozen or not, after this much grace; gives how many processes there were.
pub fn end_orphans(runtime: &str, grace: Duration) -> usize {
    group::thaw_behind(runtime);
    let ended = tree::end_marked("SESSIONS_RUNTIME", runtime, grace);
    group::remove_behind(runtime);
    ended
}
