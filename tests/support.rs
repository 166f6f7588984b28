//! What every test stands on: a root of its own, terminals, sockets, processes, recordings.
//! It waits for conditions, never for time, and leaves no process behind.

pub mod exec;
pub mod http;
pub mod process;
pub mod recording;
pub mod root;
pub mod term;
pub mod version;
pub mod wire;

use std::time::{Duration, Instant};

pub use root::Root;
pub use term::Term;

/// Long enough for a busy machine; a test that needs all of it has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at a condition that nothing announces.
const GLANCE: Duration = Duration::from_millis(10);

/// A shell whose prompt is `$ ` whatever the machine's own settings are.
pub const BASH: &[&str] = &["bash", "--norc", "--noprofile"];

/// Looks until `condition` holds; fails with `what` after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Looks until there is a value; fails with `what` after [`PATIENCE`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
        std::thread::sleep(GLANCE);
    }
}

/// As [`wait_for`], without a pause between two looks: for moments that pass quickly.
#[track_caller]
pub fn wait_for_at_once<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
    }
}
