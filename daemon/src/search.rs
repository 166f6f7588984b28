//! Searching recordings: bytes of a terminal in, lines as they were seen out, newest first. Reads, never writes; nothing is
//! indexed, so that recording costs nothing more. Knows no database and no socket; runs on threads of its own.
//!
//! Most bytes are never stripped of their escape sequences: a sieve looks at the raw bytes and names the few places where
//! what is looked for could be; only the lines around those are read as a person saw them.

mod collapse;
mod lane;
mod line;
mod pattern;
mod segment;
mod sieve;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

pub use collapse::Latest;
pub use line::{Line, lines_of};
pub use pattern::Pattern;
pub use segment::{Asked, During, Searched, Segment, SegmentHit, plan, search};

/// Searches that read recordings at the same time; the others wait for their turn, segment by segment.
const AT_ONCE: usize = 2;

/// Whose turn it is to read.
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl Turns {
    /// Does work that reads on a thread of its own, when it is its turn.
    pub async fn take<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let _turn = self.0.acquire().await.ok()?;
        tokio::task::spawn_blocking(work).await.ok()
    }
}

/// Ends the work that is under way when whoever wanted it has gone.
#[derive(Default)]
pub struct Wanted(Arc<AtomicBool>);

/// The worker's side.
#[derive(Clone, Default)]
pub struct Gone(Arc<AtomicBool>);

impl Wanted {
    pub fn gone(&self) -> Gone {
        Gone(Arc::clone(&self.0))
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Gone {
    pub fn is_true(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
