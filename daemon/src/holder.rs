//! A holder owns one program with its PTY and appends what it says to the recording. It outlives the daemon.
//! `process`, `recorder`, `peer`, `pty`, `driver`, `echo`, `freeze`, `group`, `limit`, `typed` and `wire` run inside the holder; `spawn` and `link` are the daemon's side.

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
