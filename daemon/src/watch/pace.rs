//! When changes of files are told: soon after they have ended, and ever more seldom while they go on and on. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A burst is over when nothing has changed for this long,
const QUIET: Duration = Duration::from_secs(1);

/// or is told after this long in any case.
const LONGEST: Duration = Duration::from_secs(5);

/// While bursts follow each other, twice as long passes between two of them as between the two before: from this
const SHORTEST_GAP: Duration = Duration::from_secs(1);

/// to this. A program that writes a line a second into its workspace for a day makes some three thousand events, not ninety thousand.
const LONGEST_GAP: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The burst that is not told yet: its beginning and its latest change.
    burst: Option<(Instant, Instant)>,
    told_at: Option<Instant>,
    gap: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { burst: None, told_at: None, gap: SHORTEST_GAP }
    }
}

impl Pace {
    /// Something has changed.
    pub fn note(&mut self, now: Instant) {
        match &mut self.burst {
            Some((_, latest)) => *latest = now,
            None => {
                let follows = self.told_at.is_some_and(|told| now < told + self.gap * 2 + QUIET);
                self.gap = if follows { (self.gap * 2).min(LONGEST_GAP) } else { SHORTEST_GAP };
                self.burst = Some((now, now));
            }
        }
    }

    pub fn due(&self) -> Option<Instant> {
        let (began, latest) = self.burst?;
        let due = (latest + QUIET).min(began + LONGEST);
        Some(self.told_at.map_or(due, |told| due.max(told + self.gap)))
    }

    pub fn tell(&mut self, now: Instant) {
        self.burst = None;
        self.told_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_burst_is_told_when_it_is_over() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.due(), None);
        pace.note(start);
        pace.note(start + SECOND / 2);
        assert_eq!(pace.due(), Some(start + SECOND / 2 + QUIET));
        pace.tell(start + 2 * SECOND);
        assert_eq!(pace.due(), None, "nothing ticks");
        pace.note(start + 3600 * SECOND);
        assert_eq!(pace.due(), Some(start + 3600 * SECOND + QUIET), "after an hour it is news again");
    }

    #[tokio::test]
    async fn what_never_ends_is_told_ever_more_seldom() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let (mut now, mut told) = (start, 0);
        while now < start + 3600 * SECOND {
            pace.note(now);
            if pace.due().is_some_and(|due| due <= now) {
                pace.tell(now);
                told += 1;
            }
            now += SECOND / 10;
        }
        assert!((100..200).contains(&told), "{told} events in an hour");
    }
}
