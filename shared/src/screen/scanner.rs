//! The cheap live pass for terminals that nobody looks at: tokens, modes and events, no cells.
//! It must not know positions; questions about the cursor come out without one.

use super::event::{Located, observe};
use super::modes::Modes;
use super::token::Tokenizer;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scanner {
    pub(super) tokenizer: Tokenizer,
    pub(super) modes: Modes,
}

impl Scanner {
    pub fn new() -> Scanner {
        Scanner::default()
    }

    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Located>) {
        let modes = &mut self.modes;
        self.tokenizer.feed(bytes, |token, start, end| {
            modes.apply(&token);
            observe(&token, modes, |event| {
                events.push(Located { start, end, event });
            });
        });
    }

    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    /// The unfinished bytes at the end of what was fed.
    pub fn pending(&self) -> Vec<u8> {
        self.tokenizer.pending()
    }
}
