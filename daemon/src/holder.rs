//! A holder owns one program with its PTY and appends what it says to the recording. It outlives the daemon.
//! `process`, `peer`, `pty` and `wire` run inside the holder; `spawn` and `link` are the daemon's side.

pub mod link;
mod peer;
mod process;
mod pty;
pub mod spawn;
mod tree;
pub mod wire;

pub use process::run;
pub use tree::{end_marked, marked};
