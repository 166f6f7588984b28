//! A holder owns one program with its PTY and appends what it says to the recording. It outlives the daemon.
//! `process`, `recorder`, `peer`, `pty`, `driver`, `echo`, `limit`, `typed` and `wire` run inside the holder; `spawn` and `link` are the daemon's side.

mod driver;
mod echo;
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

pub use limit::lift_behind;
pub use process::run;
pub use tree::{end_marked, has_role, marked, pids};
