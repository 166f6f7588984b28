//! The callable side of the watch of workspaces (`watch.rs`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use shared::id::SessionId;
use shared::watch::Watching;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for an answer.
const QUESTIONS: usize = 64;

/// The callable side.
pub struct Watch {
    questions: mpsc::Sender<oneshot::Sender<()>>,
    asked: Mutex<Option<mpsc::Receiver<oneshot::Sender<()>>>>,
    states: Mutex<HashMap<SessionId, Watching>>,
}

impl Default for Watch {
    fn default() -> Self {
        let (questions, asked) = mpsc::channel(QUESTIONS);
        Self { questions, asked: Mutex::new(Some(asked)), states: Mutex::default() }
    }
}

impl Watch {
    /// Whether the files of an active session are watched; none: it is not active.
    pub fn state(&self, session: SessionId) -> Option<Watching> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).get(&session).cloned()
    }

    /// Whatever has happened by now is stored when this returns.
    pub async fn settle(&self) {
        let (answer, answered) = oneshot::channel();
        if self.questions.send(answer).await.is_ok() {
            let _ = answered.await;
        }
    }

    /// The questions, for the loop that answers them; once.
    pub fn take_questions(&self) -> Option<mpsc::Receiver<oneshot::Sender<()>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn set_states(&self, states: HashMap<SessionId, Watching>) {
        *self.states.lock().unwrap_or_else(PoisonError::into_inner) = states;
    }
}
