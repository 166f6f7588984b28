//! Ages, judged by time that was seen to pass. A wall clock that jumps ahead (a wrong clock, a machine that was off for
//! months) would make everything old at once, and cleanup would remove it: what was jumped over does not count. Pure.

use serde::{Deserialize, Serialize};

use crate::clock::Steady;

/// A jump of the wall clock within this is taken for time that passed: a weekend with the machine switched off.
pub const PLAUSIBLE_MICROS: i64 = 3 * 24 * 3600 * 1_000_000;

/// Jumps that are remembered; the oldest are forgotten first, so that ages become larger again, never smaller.
const MAX_JUMPS: usize = 32;

/// When the clocks were last looked at, and where the wall clock has jumped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTime {
    /// Wall clock, microseconds since 1970.
    wall: i64,
    /// The steady clock then, and the boot it belongs to: within one boot it tells how much time really passed.
    steady: Steady,
    boot: String,
    /// Wall clock before and after each jump, in order.
    jumps: Vec<(i64, i64)>,
}

impl SeenTime {
    /// As if the clocks had been looked at when the wall clock stood here, in an unknown boot; at 0, never.
    pub fn since(wall: i64) -> Self {
        let boot = if wall > 0 { "unknown".to_owned() } else { String::new() };
        Self { wall, boot, ..Self::default() }
    }

    /// Looks at the clocks again. Gives by how much the wall clock has jumped ahead since the last look, if it has.
    pub fn look(&mut self, wall: i64, steady: Steady, boot: &str) -> Option<i64> {
        let is_first = self.boot.is_empty();
        let passed = if self.boot == boot { (steady - self.steady).max(0) } else { 0 };
        let ahead = wall - self.wall - passed;
        let before = std::mem::replace(&mut self.wall, wall);
        self.steady = steady;
        boot.clone_into(&mut self.boot);
        if is_first {
            return None;
        }
        // a clock that was set right again takes its jump back
        self.jumps.retain(|(_, after)| *after <= wall);
        if ahead <= PLAUSIBLE_MICROS {
            return None;
        }
        self.jumps.push((before + passed, wall));
        let surplus = self.jumps.len().saturating_sub(MAX_JUMPS);
        self.jumps.drain(..surplus);
        Some(ahead)
    }

    /// The latest moment that is at least `age` ago, in time that was seen to pass.
    pub fn before(&self, age: i64) -> i64 {
        let (mut at, mut left) = (self.wall, age);
        for (before, after) in self.jumps.iter().rev() {
            let seen = (at - after).max(0);
            if seen >= left {
                break;
            }
            left -= seen;
            at = *before;
        }
        at.saturating_sub(left)
    }

    /// How much of the last `age` was jumped over.
    pub fn jumped_within(&self, age: i64) -> i64 {
        self.wall.saturating_sub(age).saturating_sub(self.before(age)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1_000_000;

    #[test]
    fn time_that_was_jumped_over_does_not_count() {
        let mut seen = SeenTime::default();
        assert_eq!(seen.look(100 * DAY, 100 * DAY, "a"), None, "the first look knows nothing");
        assert_eq!(seen.look(110 * DAY, 110 * DAY, "a"), None);
        assert_eq!(seen.before(30 * DAY), 80 * DAY);
        // a year ahead, in the same boot and in another
        for boot in ["a", "b"] {
            let mut seen = seen.clone();
            assert_eq!(seen.look(475 * DAY, 110 * DAY, boot), Some(365 * DAY));
            assert_eq!(seen.before(30 * DAY), 80 * DAY, "nothing is older than it was");
            assert_eq!(seen.before(0), 475 * DAY);
            assert_eq!(seen.jumped_within(30 * DAY), 365 * DAY);
            // ten days later those have passed
            assert_eq!(seen.look(485 * DAY, 120 * DAY, boot), None);
            assert_eq!(seen.before(30 * DAY), 90 * DAY);
            // after a month everything is as if it had not happened
            assert_eq!(seen.look(515 * DAY, 150 * DAY, boot), None);
            assert_eq!(seen.before(30 * DAY), 485 * DAY);
        }
    }

    #[test]
    fn a_clock_that_is_set_right_takes_its_jump_back() {
        let mut seen = SeenTime::default();
        seen.look(100 * DAY, 100 * DAY, "a");
        assert!(seen.look(465 * DAY, 100 * DAY, "a").is_some());
        assert_eq!(seen.look(101 * DAY, 101 * DAY, "a"), None);
        assert_eq!(seen.before(DAY), 100 * DAY);
        assert_eq!(seen.jumped_within(30 * DAY), 0);
    }

    #[test]
    fn a_weekend_without_the_machine_is_time_that_passed() {
        let mut seen = SeenTime::default();
        seen.look(100 * DAY, 100 * DAY, "a");
        assert_eq!(seen.look(102 * DAY, 102 * DAY, "b"), None);
        assert_eq!(seen.before(DAY), 101 * DAY);
    }
}
