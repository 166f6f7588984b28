//! What is typed, on its way through the holder: recorded if that is wanted, given to the program as it takes it.

use shared::runtime::Keeps;

use super::{Holder, READ_BUFFER};
use crate::holder::wire::{INPUT_STEP, News};
use crate::recording::kind;

impl Holder {
    /// What is typed into a terminal that does not echo it is recorded only if the program shows it by itself.
    pub(super) fn record_input(&mut self, bytes: &[u8]) {
        use rustix::termios::{LocalModes, tcgetattr};
        if self.recorder.keeps() != Keeps::OutputAndInput {
            return;
        }
        let Some(modes) = self.pty.as_ref().and_then(|pty| tcgetattr(&pty.master).ok()).map(|state| state.local_modes) else { return };
        if modes.contains(LocalModes::ECHO) {
            self.echo.clear();
            self.keep_input(bytes.to_vec());
        } else if modes.contains(LocalModes::ICANON) {
            // whole lines without an echo: a password
            self.echo.clear();
        } else {
            self.echo.typed(bytes);
        }
    }

    pub(super) fn keep_input(&mut self, mut bytes: Vec<u8>) {
        if let Some(redactor) = &self.redactor {
            redactor.cover_bytes(&mut bytes);
        }
        self.record(kind::INPUT, &bytes);
    }

    pub(super) fn give_input(&mut self) {
        if !self.freeze.is_running() {
            // it would be echoed by the terminal, and taken for heard
            return;
        }
        let Some(pty) = &self.pty else {
            self.input.clear();
            return;
        };
        let mut given = 0;
        while let Some(rest) = self.input.get(given..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(&pty.master, rest) {
                Ok(n) if n > 0 => given += n,
                _ => break,
            }
        }
        if given == 0 {
            return;
        }
        self.input.drain(..given);
        if self.input.is_empty() && self.input.capacity() > READ_BUFFER {
            self.input = Vec::new();
        }
        self.taken = self.taken.wrapping_add(given as u64);
        if self.taken.wrapping_sub(self.told_taken) as i64 >= INPUT_STEP as i64 {
            self.told_taken = self.taken;
            self.say(&News::Taken(self.taken));
        }
    }
}
