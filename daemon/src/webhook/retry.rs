//! When a delivery that failed is tried again. Pure; chance and time are arguments.

use shared::config::WebhookConfig;

use crate::clock::Steady;

/// How far a wait may be from its even length, either way: endpoints that failed together do not come back together.
const JITTER: f64 = 0.2;

/// The moment of the next attempt, `attempts` having failed so far. `chance` is between 0 and 1; `asked` is what the endpoint
/// wants, in microseconds.
pub fn next_attempt(config: &WebhookConfig, attempts: u32, now: Steady, asked: Option<i64>, chance: f64) -> Steady {
    let (first, longest) = (config.first_retry.micros().max(1), config.max_retry.micros().max(1));
    let wait = match asked {
        // not sooner than we would by ourselves, and not for ever
        Some(asked) => asked.max(first.min(longest)),
        None => {
            let doublings = attempts.saturating_sub(1).min(40);
            let even = first.saturating_mul(1_i64 << doublings).min(longest);
            (even as f64 * (1.0 - JITTER + 2.0 * JITTER * chance)) as i64
        }
    };
    now + wait.min(longest)
}

#[cfg(test)]
mod tests {
    use shared::policy::Span;

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn config() -> WebhookConfig {
        WebhookConfig { first_retry: Span::from_secs(5), max_retry: Span::from_secs(3600), ..WebhookConfig::default() }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        for (attempts, seconds) in [(0, 5), (1, 5), (2, 10), (3, 20), (10, 2560), (11, 3600), (12, 3600), (u32::MAX, 3600)] {
            assert_eq!(next_attempt(&config(), attempts, 0, None, 0.5), seconds * SECOND, "{attempts}");
        }
    }

    #[test]
    fn chance_moves_a_wait_by_a_fifth_and_never_beyond_the_longest() {
        assert_eq!(next_attempt(&config(), 2, 100, None, 0.0), 100 + 8 * SECOND);
        assert_eq!(next_attempt(&config(), 2, 100, None, 1.0), 100 + 12 * SECOND);
        assert_eq!(next_attempt(&config(), 20, 0, None, 1.0), 3600 * SECOND);
    }

    #[test]
    fn what_the_endpoint_asks_for_is_bounded() {
        for (asked, seconds) in [(0, 5), (60, 60), (999_999, 3600)] {
            assert_eq!(next_attempt(&config(), 1, 0, Some(asked * SECOND), 0.9), seconds * SECOND, "{asked}");
        }
    }
}
