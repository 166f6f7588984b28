//! The callable side of upkeep (`upkeep.rs`): which recordings are to be looked after.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

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

    /// As long as this is held, nothing is written beside any recording.
    pub async fn quiet(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.quiet.lock().await
    }

    pub fn next(&self) -> Option<RuntimeId> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }
}
