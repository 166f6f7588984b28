//! What is typed into a terminal, counted: what has arrived, what was sent, what still has to be. After a crash of the daemon
//! the next one says how much had arrived; the rest is sent again, and nothing twice. Pure.

use std::hash::{BuildHasher, RandomState};

use shared::id::RuntimeId;

/// Keys that wait, at most; more are lost, as they are in a full terminal.
const MAX_TYPED: usize = 16 << 20;

pub struct Ledger {
    stream: u64,
    /// The one it is typed into; another one has nothing to do with what was sent before.
    runtime: Option<RuntimeId>,
    /// What is not known to have arrived, in order.
    bytes: Vec<u8>,
    /// How many of the stream were before these.
    arrived: u64,
    /// How many of these were sent.
    sent: usize,
    /// The daemon counts too; else what was sent is taken for arrived.
    is_counted: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        // a number that no other client has
        let stream = RandomState::new().hash_one(std::process::id());
        Self { stream, runtime: None, bytes: Vec::new(), arrived: 0, sent: 0, is_counted: false }
    }
}

impl Ledger {
    pub fn stream(&self) -> u64 {
        self.stream
    }

    pub fn push(&mut self, more: &[u8]) {
        if self.bytes.len() + more.len() <= MAX_TYPED {
            self.bytes.extend_from_slice(more);
        }
    }

    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub fn sent(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.bytes.len());
        if !self.is_counted {
            self.forget_sent();
        }
    }

    fn forget_sent(&mut self) {
        self.bytes.drain(..self.sent);
        self.arrived += self.sent as u64;
        self.sent = 0;
    }

    /// It is attached again: to this runtime, which has so many bytes of the stream.
    pub fn attached(&mut self, runtime: Option<RuntimeId>, taken: Option<u64>) {
        let is_same = runtime.is_some() && runtime == self.runtime;
        match taken.filter(|taken| is_same && *taken >= self.arrived) {
            Some(taken) => {
                self.taken(taken);
                // whatever of it was under way is not any more
                self.sent = 0;
            }
            // what was sent was for another program, or nobody knows: it must not come twice
            None => self.forget_sent(),
        }
        self.runtime = runtime;
        self.is_counted = taken.is_some();
        if let Some(taken) = taken {
            self.arrived = taken;
        }
    }

    /// So many bytes of the stream have arrived.
    pub fn taken(&mut self, taken: u64) {
        let count = usize::try_from(taken.saturating_sub(self.arrived)).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.drain(..count);
        self.arrived += count as u64;
        self.sent = self.sent.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_not_arrived_is_sent_again_and_nothing_twice() {
        let runtime = Some(RuntimeId::new());
        let mut ledger = Ledger::default();
        ledger.push(b"ahead");
        ledger.attached(runtime, Some(0));
        assert_eq!(ledger.unsent(), b"ahead");
        ledger.sent(5);
        ledger.push(b" and more");
        ledger.sent(4);
        assert_eq!(ledger.unsent(), b" more");
        // a crash: seven bytes had arrived
        ledger.attached(runtime, Some(7));
        assert_eq!(ledger.unsent(), b"nd more");
        ledger.sent(7);
        ledger.taken(10);
        ledger.attached(runtime, Some(14));
        assert_eq!(ledger.unsent(), b"");
        // the program ended and another is there: what was sent to the first is not for it
        ledger.push(b"rm -r old\r");
        ledger.sent(10);
        ledger.push(b"new");
        ledger.attached(Some(RuntimeId::new()), Some(0));
        assert_eq!(ledger.unsent(), b"new");
    }

    #[test]
    fn where_nobody_counts_what_is_sent_has_arrived() {
        let mut ledger = Ledger::default();
        ledger.attached(None, None);
        ledger.push(b"abc");
        ledger.sent(3);
        ledger.attached(None, None);
        assert_eq!(ledger.unsent(), b"");
        assert_ne!(Ledger::default().stream(), Ledger::default().stream());
    }
}
