//! Telling a caller that waits how far its call is. Only one that asked for it hears anything, and only when there is
//! something to wait for.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use shared::text::{fit, visible};
use tokio::time::Instant;

/// Between two words, and before the first: clients show each one to a person.
const EVERY: Duration = Duration::from_secs(1);

/// Columns of a message: one line of a person's window.
const WIDTH: usize = 120;

pub struct Progress {
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    started: Instant,
    next: Instant,
}

impl Progress {
    pub fn new(token: Option<ProgressToken>, peer: Peer<RoleServer>) -> Self {
        let started = Instant::now();
        Self { token, peer, started, next: started + EVERY }
    }

    pub fn is_wanted(&self) -> bool {
        self.token.is_some()
    }

    /// Waits until something should be said; for ever if nobody listens.
    pub async fn due(&self) {
        if self.token.is_some() {
            tokio::time::sleep_until(self.next).await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// The number of a word is the seconds gone by: it rises as the protocol wants it, because words are a second apart.
    pub async fn tell(&mut self, message: &str) {
        let Some(token) = self.token.clone() else { return };
        let now = Instant::now();
        self.next = now + EVERY;
        let seconds = now.duration_since(self.started).as_millis() as f64 / 1000.0;
        let mut word = ProgressNotificationParam::new(token, seconds);
        let message = fit(&visible(message.trim()), WIDTH);
        if !message.is_empty() {
            word = word.with_message(message);
        }
        // a client that does not read is not our concern
        let _ = self.peer.notify_progress(word).await;
    }
}
