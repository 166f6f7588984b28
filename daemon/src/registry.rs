//! Live runtimes by session. Its lock is never held across an await.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use shared::id::SessionId;
use tokio::sync::Notify;

use crate::runtime::RuntimeHandle;

#[derive(Default)]
pub struct Registry {
    live: Mutex<HashMap<SessionId, RuntimeHandle>>,
    inserted: Notify,
}

impl Registry {
    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, RuntimeHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn insert(&self, handle: RuntimeHandle) {
        self.live().insert(handle.facts.session(), handle);
        self.inserted.notify_waiters();
    }

    /// Returns when something has been inserted since the call.
    pub fn inserted(&self) -> impl Future<Output = ()> + '_ {
        let mut inserted = Box::pin(self.inserted.notified());
        // counted from now on, not from when it is first waited for
        inserted.as_mut().enable();
        inserted
    }

    pub fn remove(&self, session: SessionId) {
        self.live().remove(&session);
    }

    /// A program that is still running belongs to the next session of its thread.
    pub fn pass_on(&self, from: SessionId, to: SessionId) {
        let mut live = self.live();
        if let Some(handle) = live.remove(&from) {
            handle.facts.set_session(to);
            live.insert(to, handle);
        }
    }

    pub fn get(&self, session: SessionId) -> Option<RuntimeHandle> {
        self.live().get(&session).cloned()
    }

    pub fn all(&self) -> Vec<RuntimeHandle> {
        self.live().values().cloned().collect()
    }

    pub fn count(&self) -> usize {
        self.live().len()
    }
}
