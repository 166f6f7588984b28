//! The callable side of the queue's loop (`queue.rs`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use shared::id::SessionId;
use tokio::sync::Notify;

/// What the queue needs to know beside the database.
#[derive(Default)]
pub struct Queue {
    /// Environments of callers whose sessions wait: never stored, so a later daemon has its own instead.
    environments: Mutex<HashMap<SessionId, Vec<(String, String)>>>,
    changed: Notify,
}

impl Queue {
    pub fn remember(&self, session: SessionId, environment: Vec<(String, String)>) {
        self.environments.lock().unwrap_or_else(PoisonError::into_inner).insert(session, environment);
    }

    /// The environment a session is to be started with, which is forgotten here.
    pub fn take_environment(&self, session: SessionId) -> Option<Vec<(String, String)>> {
        self.environments.lock().unwrap_or_else(PoisonError::into_inner).remove(&session)
    }

    /// Returns when a limit was changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A limit was changed.
    pub fn look_again(&self) {
        self.changed.notify_one();
    }
}
