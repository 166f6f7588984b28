//! When a session expires. Pure: what is known of it and the time are arguments.

use shared::policy::Policy;
use shared::session::{DURATION, IDLE};

use crate::clock::Steady;

/// What is known of an active session.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub policy: Policy,
    pub active_since: Steady,
    /// Microseconds it was active before, between pauses.
    pub active_before: i64,
    /// Its last input, output, exec, iteration or event.
    pub idle_since: Steady,
    /// A client is attached with control: somebody is there.
    pub is_controlled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing will happen by itself.
    Never,
    /// Not before this moment.
    NotBefore(Steady),
    /// Over, for this reason.
    Expired(&'static str),
    /// Would be over, but somebody is there.
    Held,
}

pub fn judge(facts: &Facts, now: Steady) -> Verdict {
    let idle = facts.policy.idle_timeout.span().map(|span| (facts.idle_since + span.micros(), IDLE));
    let duration = facts.policy.max_duration.span().map(|span| (facts.active_since - facts.active_before + span.micros(), DURATION));
    match [idle, duration].into_iter().flatten().min() {
        None => Verdict::Never,
        Some((at, _)) if at > now => Verdict::NotBefore(at),
        Some(_) if facts.is_controlled => Verdict::Held,
        Some((_, reason)) => Verdict::Expired(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::policy::Limit;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn verdicts() {
        let limits = |idle, duration| Policy { idle_timeout: idle, max_duration: duration };
        let (none, ten, sixty) = (Limit::None, Limit::secs(10), Limit::secs(60));
        // policy, active since, active before, idle since, controlled, now → verdict; times in seconds
        for (policy, since, before, idle, controlled, now, verdict) in [
            (limits(none, none), 0, 0, 0, false, 1_000_000, Verdict::Never),
            (limits(ten, none), 0, 0, 5, false, 14, Verdict::NotBefore(15 * SECOND)),
            (limits(ten, none), 0, 0, 5, false, 15, Verdict::Expired(IDLE)),
            (limits(ten, none), 0, 0, 5, true, 15, Verdict::Held),
            (limits(none, sixty), 0, 0, 59, false, 59, Verdict::NotBefore(60 * SECOND)),
            (limits(none, sixty), 0, 0, 59, false, 60, Verdict::Expired(DURATION)),
            (limits(none, sixty), 100, 50, 100, false, 109, Verdict::NotBefore(110 * SECOND)),
            (limits(none, sixty), 100, 50, 100, false, 110, Verdict::Expired(DURATION)),
            (limits(ten, sixty), 0, 0, 55, false, 61, Verdict::Expired(DURATION)),
            (limits(ten, sixty), 0, 0, 0, false, 99, Verdict::Expired(IDLE)),
            (limits(ten, sixty), 0, 0, 55, true, 99, Verdict::Held),
            (limits(ten, none), 0, 0, 5, true, 9, Verdict::NotBefore(15 * SECOND)),
        ] {
            let facts = Facts {
                policy,
                active_since: since * SECOND,
                active_before: before * SECOND,
                idle_since: idle * SECOND,
                is_controlled: controlled,
            };
            assert_eq!(judge(&facts, now * SECOND), verdict, "{facts:?} at {now}");
        }
    }
}
