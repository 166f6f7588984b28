//! Live screens of sessions somebody looks at: which are asked for, when again, and what was seen last. Pure.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use shared::exec::Language;
use shared::id::{Offset, SessionId};
use shared::live::{Look, Sight};
use shared::message::Request;
use shared::screen::{Keyframe, Screen};

/// A screen that changes without end is asked for this often; of many each less often, so that all of them together cost little.
const PACE: Duration = Duration::from_millis(33);
const PACE_OF_EACH: Duration = Duration::from_millis(8);
const SLOWEST_PACE: Duration = Duration::from_millis(500);

/// A cursor that moves on asks for nothing that lasts.
const REST: Duration = Duration::from_millis(200);

/// How long the daemon may wait for a change before it says that there is none: longer each time.
const FIRST_WAIT: Duration = Duration::from_secs(8);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A screen that could not be had is asked for again after this.
const RETRY: Duration = Duration::from_secs(5);

/// Screens that are kept for when the cursor comes back.
const KEPT: usize = 48;

pub struct Seen {
    pub screen: Screen,
    pub is_live: bool,
    /// The last change was made at the cursor: somebody types, or a program draws there.
    pub follows_cursor: bool,
}

#[derive(Default)]
struct One {
    seen: Option<Seen>,
    failure: Option<String>,
    at: Option<Offset>,
    is_asked: bool,
    due: Duration,
    wait: Duration,
    used: Duration,
}

#[derive(Default)]
pub struct Sights {
    by_session: HashMap<SessionId, One>,
    wanted: Vec<SessionId>,
    /// Since when exactly these are wanted.
    since: Duration,
}

impl Sights {
    /// These are on the screen now.
    pub fn want(&mut self, ids: Vec<SessionId>, now: Duration) {
        if ids != self.wanted {
            self.since = now;
            self.wanted = ids;
        }
        for id in &self.wanted {
            self.by_session.entry(*id).or_default().used = now;
        }
        if self.by_session.len() > KEPT.max(self.wanted.len() * 2) {
            let mut ages: Vec<(Duration, SessionId)> = self.by_session.iter().map(|(id, one)| (one.used, *id)).collect();
            ages.sort_unstable();
            for (_, id) in ages.into_iter().take(self.by_session.len() - KEPT.max(self.wanted.len())) {
                if !self.wanted.contains(&id) {
                    self.by_session.remove(&id);
                }
            }
        }
    }

    /// What is to be asked now.
    pub fn due(&mut self, now: Duration) -> Vec<(SessionId, Request)> {
        let rests = now >= self.since + REST;
        let mut asks = Vec::new();
        for id in &self.wanted {
            let Some(one) = self.by_session.get_mut(id) else { continue };
            // what was never seen is asked for at once; waiting for changes begins when the cursor rests
            if one.is_asked || now < one.due || (one.at.is_some() && !rests) {
                continue;
            }
            one.is_asked = true;
            let wait = one.at.map(|_| one.wait.max(FIRST_WAIT).as_millis() as u64);
            let language: Option<Language> = None;
            asks.push((*id, Request::Look(Look { name: id.to_string(), language, after: one.at, wait_ms: wait })));
        }
        asks
    }

    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let rest = self.since + REST;
        let due = self
            .wanted
            .iter()
            .filter_map(|id| self.by_session.get(id))
            .filter(|one| !one.is_asked)
            .map(|one| if one.at.is_some() { one.due.max(rest) } else { one.due });
        due.min().map(|at| at.max(now))
    }

    /// `true` if there is something new to be seen.
    pub fn take(&mut self, id: SessionId, answer: Result<Sight, String>, now: Duration) -> bool {
        let pace = (PACE_OF_EACH * self.wanted.len() as u32).clamp(PACE, SLOWEST_PACE);
        let Some(one) = self.by_session.get_mut(&id) else { return false };
        one.is_asked = false;
        match answer {
            Ok(sight) => {
                one.failure = None;
                one.at = Some(sight.at);
                let Some(keyframe) = sight.keyframe else {
                    one.wait = (one.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                    one.due = now;
                    let was_live = one.seen.as_mut().map(|seen| std::mem::replace(&mut seen.is_live, sight.is_live));
                    return was_live != Some(sight.is_live);
                };
                one.wait = FIRST_WAIT;
                one.due = now + pace;
                let bytes = BASE64.decode(keyframe).ok();
                let Some(keyframe) = bytes.and_then(|bytes| Keyframe::from_bytes(&bytes)) else { return false };
                let screen = Screen::restore(&keyframe);
                let follows_cursor = one.seen.as_ref().is_some_and(|seen| match changed_at_cursor(&seen.screen, &screen) {
                    Some(is_at_cursor) => is_at_cursor,
                    None => seen.follows_cursor,
                });
                one.seen = Some(Seen { screen, is_live: sight.is_live, follows_cursor });
                true
            }
            Err(why) => {
                one.due = now + RETRY;
                one.at = None;
                one.failure.replace(why.clone()) != Some(why)
            }
        }
    }

    pub fn get(&self, id: SessionId) -> Option<&Seen> {
        self.by_session.get(&id)?.seen.as_ref()
    }

    /// Why there is nothing to be seen.
    pub fn failure(&self, id: SessionId) -> Option<&str> {
        self.by_session.get(&id)?.failure.as_deref()
    }

    /// Its program has changed: it is looked at again soon.
    pub fn stir(&mut self, id: SessionId, now: Duration) {
        if let Some(one) = self.by_session.get_mut(&id) {
            one.due = one.due.min(now);
            if !one.is_asked {
                one.at = None;
            }
        }
    }

    /// What it printed is not to be seen any more.
    pub fn forget(&mut self, id: SessionId) {
        self.by_session.remove(&id);
    }

    /// The daemon is gone: nothing that was asked will be answered.
    pub fn lost(&mut self) {
        for one in self.by_session.values_mut() {
            one.is_asked = false;
            one.at = None;
            one.due = Duration::ZERO;
        }
    }
}

/// Whether all that differs between two screens is in the rows that the cursor was in, moved over or is in; nothing if neither
/// text nor cursor differs.
fn changed_at_cursor(before: &Screen, now: &Screen) -> Option<bool> {
    if before.size() != now.size() || before.is_alternate() != now.is_alternate() {
        return Some(false);
    }
    let (from, to) = (before.cursor(), now.cursor());
    let changed: Vec<u16> = (0..now.size().rows).filter(|row| before.row_text(*row) != now.row_text(*row)).collect();
    if changed.is_empty() {
        return ((from.row, from.col) != (to.row, to.col)).then_some(true);
    }
    // a redraw of many rows moves the cursor too
    let is_small = from.row.abs_diff(to.row) <= 1;
    Some(is_small && changed.iter().all(|row| *row == from.row || *row == to.row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::screen::Size;

    fn sight(text: &str, at: Offset) -> Sight {
        let mut screen = Screen::new(Size { cols: 20, rows: 3 });
        screen.feed(text.as_bytes(), &mut Vec::new());
        Sight { at, keyframe: Some(BASE64.encode(screen.keyframe().to_bytes())), is_live: true }
    }

    #[test]
    fn a_screen_is_asked_for_at_once_then_waited_for() {
        let id = SessionId::new();
        let mut sights = Sights::default();
        let at = Duration::from_millis;
        sights.want(vec![id], at(0));
        let first = sights.due(at(0));
        assert!(matches!(&first[0].1, Request::Look(look) if look.after.is_none() && look.wait_ms.is_none()));
        assert!(sights.due(at(1)).is_empty(), "one at a time");
        assert!(sights.take(id, Ok(sight("hello", 7)), at(10)));
        assert_eq!(sights.get(id).expect("seen").screen.row_text(0), "hello");
        assert!(sights.due(at(20)).is_empty(), "the cursor may be on its way");
        assert_eq!(sights.next_deadline(at(20)), Some(at(200)));
        let again = sights.due(at(200));
        assert!(matches!(&again[0].1, Request::Look(look) if look.after == Some(7) && look.wait_ms == Some(8000)));
        assert!(!sights.take(id, Ok(Sight { at: 7, keyframe: None, is_live: true }), at(8200)), "nothing new");
        assert!(matches!(&sights.due(at(8200))[0].1, Request::Look(look) if look.wait_ms == Some(16_000)), "and longer each time");
    }

    #[test]
    fn a_cursor_that_moves_leaves_nothing_waiting() {
        let ids: Vec<SessionId> = (0..200).map(|_| SessionId::new()).collect();
        let mut sights = Sights::default();
        let mut waiting = 0;
        for (n, id) in ids.iter().enumerate() {
            let now = Duration::from_millis(30 * n as u64);
            sights.want(vec![*id], now);
            for (id, request) in sights.due(now) {
                waiting += usize::from(matches!(request, Request::Look(look) if look.wait_ms.is_some()));
                sights.take(id, Ok(sight("x", 1)), now);
            }
        }
        assert_eq!(waiting, 0);
        assert!(sights.by_session.len() <= KEPT + 1, "{}", sights.by_session.len());
    }

    #[test]
    fn the_cursor_is_followed_while_it_is_what_changes() {
        for (before, now, expected) in [
            ("\x1b[?1049h\x1b[2;1Hab", "\x1b[?1049h\x1b[2;1Habc", Some(true)),
            ("\x1b[?1049h\x1b[2;1Hab", "\x1b[?1049h\x1b[2;1Hab\x1b[3;1H", Some(true)),
            ("\x1b[?1049hclock 1\x1b[3;18H", "\x1b[?1049hclock 2\x1b[3;18H", Some(false)),
            ("\x1b[?1049hclock 1\x1b[3;18Hx", "\x1b[?1049hclock 2\x1b[3;18Hy", Some(false)),
            ("$ ", "$ ls", Some(true)),
            ("one", "two\r\nthree\r\nfour", Some(false)),
            ("same", "same", None),
        ] {
            let screen = |text: &str| {
                let mut screen = Screen::new(Size { cols: 20, rows: 3 });
                screen.feed(text.as_bytes(), &mut Vec::new());
                screen
            };
            assert_eq!(changed_at_cursor(&screen(before), &screen(now)), expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn failures_are_kept_and_tried_again() {
        let id = SessionId::new();
        let mut sights = Sights::default();
        sights.want(vec![id], Duration::ZERO);
        sights.due(Duration::ZERO);
        assert!(sights.take(id, Err("it has no screen".into()), Duration::ZERO));
        assert_eq!(sights.failure(id), Some("it has no screen"));
        assert!(sights.due(Duration::from_secs(1)).is_empty());
        assert_eq!(sights.due(Duration::from_secs(6)).len(), 1);
        sights.lost();
        assert_eq!(sights.due(Duration::from_secs(7)).len(), 1);
        assert!(sights.take(id, Ok(sight("a secret", 8)), Duration::from_secs(7)));
        sights.forget(id);
        assert!(sights.get(id).is_none());
    }
}
