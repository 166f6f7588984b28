//! The steady clock: microseconds that only ever go forward, in which policies, queues and retries are counted. Setting the
//! wall clock does not move it, a suspended machine does not either, and it goes on where it was when the daemon is replaced.

use std::time::Duration;

use tokio::time::Instant;

/// A moment of the steady clock.
pub type Steady = i64;

/// The kernel's monotonic clock plus what makes it agree with the wall clock at the first start after a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    offset: i64,
}

/// The steady clock as a daemon left it: which boot, and its offset then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub boot: String,
    pub offset: i64,
}

impl Clock {
    /// The clock for this boot. `kept` is what an earlier daemon stored, `latest` the latest moment that is stored anywhere:
    /// a machine that wakes up in the past must not turn deadlines back.
    pub fn settle(kept: Option<&Kept>, boot: &str, latest: Steady, wall: i64, monotonic: i64) -> Self {
        match kept {
            Some(kept) if kept.boot == boot => Self { offset: kept.offset },
            _ => Self { offset: wall.max(latest) - monotonic },
        }
    }

    pub fn offset(self) -> i64 {
        self.offset
    }

    pub fn now(self) -> Steady {
        monotonic() + self.offset
    }

    /// When to wake up for a moment of this clock; now, if it has passed.
    pub fn instant(self, at: Steady) -> Instant {
        Instant::now() + Duration::from_micros(u64::try_from(at - self.now()).unwrap_or(0))
    }
}

/// Microseconds since boot, suspended time left out: what tokio's timers count too.
pub fn monotonic() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_jump_of_the_wall_clock_is_not_seen() {
        let first = Clock::settle(None, "boot-1", 0, 1_000 * HOUR, 5 * HOUR);
        assert_eq!(first.offset() + 5 * HOUR, 1_000 * HOUR, "agrees with the wall clock at first");
        let kept = Kept { boot: "boot-1".into(), offset: first.offset() };
        for wall in [0, 999 * HOUR, 9_999 * HOUR] {
            assert_eq!(Clock::settle(Some(&kept), "boot-1", 0, wall, 6 * HOUR), first, "the next daemon of this boot, wall {wall}");
        }
    }

    #[test]
    fn after_a_reboot_the_wall_clock_is_asked_but_never_backwards() {
        let kept = Kept { boot: "boot-1".into(), offset: 995 * HOUR };
        let later = Clock::settle(Some(&kept), "boot-2", 1_001 * HOUR, 1_010 * HOUR, HOUR);
        assert_eq!(later.offset() + HOUR, 1_010 * HOUR);
        let in_the_past = Clock::settle(Some(&kept), "boot-2", 1_001 * HOUR, 10 * HOUR, HOUR);
        assert_eq!(in_the_past.offset() + HOUR, 1_001 * HOUR);
    }
}
