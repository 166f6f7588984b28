//! The holder's share of pausing: orders to stop and to go on, what is typed meanwhile, and what the daemon is told.

use super::Holder;
use crate::holder::freeze::Seen;
use crate::holder::wire::News;

/// Input that may wait for a frozen program.
const MAX_QUEUED: usize = 1 << 20;

impl Holder {
    pub(super) fn freeze(&mut self, queues_input: bool) {
        if self.exit.is_some() {
            return;
        }
        self.queues_input = queues_input;
        if self.freeze.is_running() {
            self.freeze.begin();
            self.look_at_freezing();
        } else {
            self.tell_frozen();
        }
    }

    pub(super) fn look_at_freezing(&mut self) {
        match self.freeze.look(std::process::id()) {
            Seen::Nothing => {}
            Seen::Stopped | Seen::Slow => self.tell_frozen(),
        }
    }

    pub(super) fn thaw(&mut self) {
        let stood = self.freeze.thaw();
        if let Some(call) = self.driver.as_mut().and_then(|driver| driver.call.as_mut()) {
            // the call's clock stood too
            call.since += stood;
        }
        self.queues_input = false;
        let queued = std::mem::take(&mut self.queued);
        // not from the present daemon's window
        self.taken = self.taken.wrapping_sub(queued.len() as u64);
        self.record_input(&queued);
        self.input.extend_from_slice(&queued);
        self.tell_frozen();
    }

    /// All of it, or none: half a command is worse than no command.
    pub(super) fn queue(&mut self, bytes: &[u8]) {
        let has_room = self.queued.len() + bytes.len() <= MAX_QUEUED;
        if has_room && self.freeze.is_running() {
            // it has gone on meanwhile
            self.record_input(bytes);
            self.taken = self.taken.wrapping_sub(bytes.len() as u64);
            self.input.extend_from_slice(bytes);
        } else if has_room {
            self.queued.extend_from_slice(bytes);
        }
        self.say(&News::Queued(self.queued.len() as u64, has_room));
    }

    fn tell_frozen(&mut self) {
        let frozen = self.frozen();
        self.say(&News::Frozen(frozen));
    }

    pub(super) fn frozen(&self) -> Option<crate::holder::wire::Frozen> {
        self.freeze.told(self.queued.len() as u64, self.queues_input)
    }
}
