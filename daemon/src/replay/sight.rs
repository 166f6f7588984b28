//! Where a text comes to be seen. Programs that draw the whole screen write only what differs from what stood there, so a word
//! may be on the screen that was never written as one: only the screens themselves tell.

use shared::id::Offset;
use shared::replay::Position;
use shared::screen::Screen;

use super::Replay;

/// Looked through at a time, going back; then twice as much each time.
const WINDOW: u64 = 256 << 10;

impl Replay {
    /// The first moment behind `from`, up to `until`, at which something is seen that was not seen before it.
    pub fn comes_to_be_seen<T>(&self, from: Offset, until: Offset, see: impl Fn(&Screen) -> Option<T>) -> Option<(Position, T)> {
        let until = until.min(self.until);
        let (mut picture, _) = self.exactly(from);
        let mut is_seen = see(picture.screen()).is_some();
        while !self.gone.is_true() && picture.frame(until) {
            let seen = see(picture.screen());
            match seen {
                Some(what) if !is_seen => return Some((picture.position(), what)),
                seen => is_seen = seen.is_some(),
            }
        }
        None
    }

    /// The last such moment before `before`, no further back than `after`.
    pub fn came_to_be_seen<T>(&self, before: Offset, after: Offset, see: impl Fn(&Screen) -> Option<T>) -> Option<(Position, T)> {
        let (mut end, mut window) = (before.min(self.until), WINDOW);
        while end > after && !self.gone.is_true() {
            let start = end.saturating_sub(window).max(after);
            let mut picture = self.picture(start);
            let mut is_seen = see(picture.screen()).is_some();
            let mut found = None;
            while !self.gone.is_true() && picture.frame(end) {
                let seen = see(picture.screen());
                let was_seen = std::mem::replace(&mut is_seen, seen.is_some());
                if let Some(what) = seen.filter(|_| !was_seen && picture.offset() < before) {
                    found = Some((picture.position(), what));
                }
            }
            if found.is_some() {
                return found;
            }
            (end, window) = (start, window * 2);
        }
        None
    }
}
