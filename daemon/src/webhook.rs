//! Sending a webhook: its body, signature, address, one attempt, and when the next one is due. Knows nothing of the outbox: that
//! is `delivery.rs`.

pub mod address;
pub mod body;
pub mod retry;
pub mod send;
pub mod sign;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use send::{Message, Outcome};

/// Attempts under way at once: one per endpoint, so this is a bound on endpoints that hang, not on those that work. A thread each,
/// because tokio's own few are for files, which must never wait for a network.
const MAX_SENDERS: usize = 256;

/// Of which for deliveries that have failed before: endpoints that hang must leave room for those that do not.
const MAX_RETRYING: usize = 192;

/// Whether a delivery has failed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    First,
    Again,
}

/// What TLS needs, with room.
const SENDER_STACK: usize = 1 << 20;

/// The callable side of sending; cheap to clone.
#[derive(Clone)]
pub struct Post {
    senders: Arc<Semaphore>,
    retrying: Arc<Semaphore>,
}

impl Default for Post {
    fn default() -> Self {
        Self { senders: Arc::new(Semaphore::new(MAX_SENDERS)), retrying: Arc::new(Semaphore::new(MAX_RETRYING)) }
    }
}

impl Post {
    /// One attempt, in a thread of its own that ends with it.
    pub async fn send(&self, message: Message, attempt: Attempt, timeout: Duration) -> Outcome {
        let closed = || Outcome::failed("nothing is sent any more");
        let retrying = match attempt {
            Attempt::First => None,
            Attempt::Again => match Arc::clone(&self.retrying).acquire_owned().await {
                Ok(permit) => Some(permit),
                Err(_) => return closed(),
            },
        };
        let Ok(permit) = Arc::clone(&self.senders).acquire_owned().await else { return closed() };
        let (answer, answered) = oneshot::channel();
        let thread = std::thread::Builder::new().name("webhook".into()).stack_size(SENDER_STACK).spawn(move || {
            let outcome = send::send(&message, timeout);
            drop((permit, retrying));
            let _ = answer.send(outcome);
        });
        match thread {
            Ok(_) => answered.await.unwrap_or_else(|_| Outcome::failed("the attempt was broken off by an error of ours")),
            Err(error) => Outcome::failed(format!("no thread to send it: {error}")),
        }
    }
}
