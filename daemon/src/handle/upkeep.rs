//! The callable side of upkeep (`upkeep.rs`): which recordings are to be looked after.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shared::id::RuntimeId;
use tokio::sync::Notify;

#[derive(Default)]
pub struct Upkeep {
    due: Mutex<BTreeSet<RuntimeId>>,
    changed: Notify,
    /// What this daemon itself is taking in.
    imports: Mutex<HashSet<RuntimeId>>,
    /// Held while files of a recording are written.
    quiet: tokio::sync::Mutex<()>,
    /// How many wait for that: the work gives way, since it has the lowest priority and may take long on a busy machine.
    wanted: Arc<AtomicUsize>,
}

impl Upkeep {
    /// A segment was closed, or the runtime has ended.
    pub fn look_at(&self, runtime: RuntimeId) {
        self.add(runtime);
        self.changed.notify_one();
    }

    /// As `look_at`, when the loop is awake.
    pub fn add(&self, runtime: RuntimeId) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(runtime);
    }

    /// Returns when there may be something to look at.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// This folder is not one that was left unfinished.
    pub fn is_importing(&self, runtime: RuntimeId) {
        self.imports.lock().unwrap_or_else(PoisonError::into_inner).insert(runtime);
    }

    pub fn is_ours(&self, runtime: RuntimeId) -> bool {
        self.imports.lock().unwrap_or_else(PoisonError::into_inner).contains(&runtime)
    }

    /// As long as this is held, nothing is written beside any recording. Work that is under way is broken off.
    pub async fn quiet(&self) -> tokio::sync::MutexGuard<'_, ()> {
        let _waiting = Waiting::new(&self.wanted);
        self.quiet.lock().await
    }

    /// As `quiet`, for the work itself: together with how it is told to give way.
    pub async fn work(&self) -> (tokio::sync::MutexGuard<'_, ()>, GiveWay) {
        (self.quiet.lock().await, GiveWay(Arc::clone(&self.wanted)))
    }

    pub fn next(&self) -> Option<RuntimeId> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }
}

/// Whether work is to be broken off because somebody waits for its end.
#[derive(Clone)]
pub struct GiveWay(Arc<AtomicUsize>);

impl GiveWay {
    pub fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// For as long as somebody waits; also if the one who waits is gone.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(wanted: &'a AtomicUsize) -> Self {
        wanted.fetch_add(1, Ordering::Relaxed);
        Self(wanted)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
