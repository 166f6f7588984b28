//! What runtimes want from the layers above them. A runtime's task cannot call those; it leaves a message, which `upcalls.rs`
//! carries out.

use std::sync::{Mutex, PoisonError};

use shared::exec::Language;
use shared::id::{RuntimeId, SessionId};
use tokio::sync::mpsc;

use super::ask::Calling;

pub enum Upcall {
    /// Execs whose interpreter has ended before they were run need another one.
    MoveExecs { session: SessionId, language: Language, execs: Vec<Calling> },
    /// A person typed a line into an interpreter's transcript.
    RunLine { session: SessionId, language: Language, code: String },
    /// A person pressed the key that resumes a paused terminal.
    Resume { session: SessionId, runtime: RuntimeId },
}

/// Unbounded: a runtime must never wait for those above it, who may be waiting for the runtime.
pub struct Upcalls {
    sender: mpsc::UnboundedSender<Upcall>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Upcall>>>,
}

impl Default for Upcalls {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl Upcalls {
    pub fn send(&self, upcall: Upcall) {
        // the receiver lives as long as the daemon
        let _ = self.sender.send(upcall);
    }

    /// The messages, for the loop that carries them out; once.
    pub fn take(&self) -> Option<mpsc::UnboundedReceiver<Upcall>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
