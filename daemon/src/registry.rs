//! Live runtimes by session. Its lock is never held across an await.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use shared::id::SessionId;

use crate::runtime::RuntimeHandle;

#[derive(Default)]
pub struct Registry {
    live: Mutex<HashMap<SessionId, RuntimeHandle>>,
}

impl Registry {
    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, RuntimeHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn insert(&self, handle: RuntimeHandle) {
        self.live().insert(handle.session, handle);
    }

    pub fn remove(&self, session: SessionId) {
        self.live().remove(&session);
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
