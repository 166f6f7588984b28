//! Played time and recording time: pauses longer than the idle limit are played as if they were that long. Pure.
//! All times are microseconds; recording times count from the recording's beginning, played ones from the oldest that is there.

use shared::replay::Position;

/// One of the speeds one can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(usize);

const SPEEDS: [(f64, &str); 9] =
    [(0.25, "¼×"), (0.5, "½×"), (1.0, "1×"), (2.0, "2×"), (4.0, "4×"), (8.0, "8×"), (16.0, "16×"), (32.0, "32×"), (64.0, "64×")];

impl Default for Speed {
    fn default() -> Self {
        Self(2)
    }
}

impl Speed {
    /// What a user wrote: one of the speeds, with or without an `x`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number: Option<f64> = text.trim_end_matches(['x', '×']).parse().ok();
        let index = number.and_then(|number| SPEEDS.iter().position(|(speed, _)| (speed - number).abs() < 1e-9));
        index.map(Self).ok_or_else(|| format!("{text:?} is not a speed: one of 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64"))
    }

    pub fn factor(self) -> f64 {
        SPEEDS[self.0].0
    }

    pub fn label(self) -> &'static str {
        SPEEDS[self.0].1
    }

    #[must_use]
    pub fn faster(self) -> Self {
        Self((self.0 + 1).min(SPEEDS.len() - 1))
    }

    #[must_use]
    pub fn slower(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// How long a pause is played at most; none: as long as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleLimit(pub Option<u64>);

/// What the keys go through, from everything to nothing.
const LIMITS: [IdleLimit; 6] = [
    IdleLimit(Some(500_000)),
    IdleLimit(Some(1_000_000)),
    IdleLimit(Some(2_000_000)),
    IdleLimit(Some(5_000_000)),
    IdleLimit(Some(10_000_000)),
    IdleLimit(None),
];

impl Default for IdleLimit {
    fn default() -> Self {
        Self(Some(2_000_000))
    }
}

impl IdleLimit {
    pub fn parse(text: &str) -> Result<Self, String> {
        if matches!(text, "off" | "none") {
            return Ok(Self(None));
        }
        let span = shared::policy::Span::parse(text).map_err(|error| format!("{error}, or off"))?;
        if span.ms == 0 {
            return Err("pauses cannot be left out entirely: write 100ms or more, or off".into());
        }
        Ok(Self(Some(span.ms * 1000)))
    }

    fn order(self) -> u64 {
        self.0.unwrap_or(u64::MAX)
    }

    #[must_use]
    pub fn longer(self) -> Self {
        LIMITS.into_iter().find(|limit| limit.order() > self.order()).unwrap_or(Self(None))
    }

    #[must_use]
    pub fn shorter(self) -> Self {
        LIMITS.into_iter().rev().find(|limit| limit.order() < self.order()).unwrap_or(LIMITS[0])
    }

    pub fn label(self) -> String {
        match self.0 {
            None => "idle off".into(),
            Some(micros) if micros % 1_000_000 == 0 => format!("idle {}s", micros / 1_000_000),
            Some(micros) => format!("idle {}s", micros as f64 / 1e6),
        }
    }
}

/// Both times at every place where one runs at another pace than the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    knots: Vec<Knot>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    recorded: u64,
    played: u64,
}

impl Clock {
    /// Of a recording whose pauses of `grain` and more are between two neighbours of `points`.
    pub fn new(first: u64, end: u64, points: &[Position], grain: u64, limit: IdleLimit) -> Self {
        let mut knots = vec![Knot { recorded: first, played: 0 }];
        let mut last = Knot { recorded: first, played: 0 };
        if let Some(limit) = limit.0 {
            for pair in points.windows(2) {
                let (from, to) = (pair[0].time.max(last.recorded), pair[1].time);
                let pause = to.saturating_sub(from);
                if pause < grain || pause <= limit {
                    continue;
                }
                let begins = Knot { recorded: from, played: last.played + (from - last.recorded) };
                last = Knot { recorded: to, played: begins.played + limit };
                knots.extend([begins, last]);
            }
        }
        let end = end.max(last.recorded);
        knots.push(Knot { recorded: end, played: last.played + (end - last.recorded) });
        Self { knots }
    }

    pub fn length(&self) -> u64 {
        self.knots.last().map_or(0, |knot| knot.played)
    }

    pub fn played(&self, recorded: u64) -> u64 {
        let after = self.knots.partition_point(|knot| knot.recorded <= recorded);
        self.between(after, |knot| (knot.recorded, knot.played), recorded)
    }

    pub fn recorded(&self, played: u64) -> u64 {
        let after = self.knots.partition_point(|knot| knot.played <= played);
        self.between(after, |knot| (knot.played, knot.recorded), played)
    }

    fn between(&self, after: usize, axes: impl Fn(&Knot) -> (u64, u64), x: u64) -> u64 {
        let Some(before) = after.checked_sub(1).map(|n| axes(&self.knots[n])) else { return axes(&self.knots[0]).1 };
        match self.knots.get(after).map(axes) {
            // beyond the end, where a live recording goes on
            None => before.1 + (x - before.0),
            Some(next) => {
                let share = (x - before.0) as f64 / (next.0 - before.0) as f64;
                before.1 + ((next.1 - before.1) as f64 * share).round() as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(times: &[u64]) -> Vec<Position> {
        times.iter().map(|time| Position { offset: time * 10, time: *time * 1_000_000 }).collect()
    }

    const S: u64 = 1_000_000;

    #[test]
    fn long_pauses_are_played_shorter() {
        let points = points(&[0, 1, 11, 12, 13, 73]);
        let clock = Clock::new(0, 74 * S, &points, S, IdleLimit(Some(2 * S)));
        assert_eq!(clock.length(), (1 + 2 + 2 + 2 + 1) * S);
        for (recorded, played) in [(0, 0), (1, 1), (6, 2), (11, 3), (13, 5), (43, 6), (73, 7), (74, 8), (80, 14)] {
            assert_eq!(clock.played(recorded * S), played * S, "{recorded}");
            assert_eq!(clock.recorded(played * S), recorded * S, "{played}");
        }
        let clock = Clock::new(0, 74 * S, &points, S, IdleLimit(None));
        assert_eq!((clock.length(), clock.played(43 * S)), (74 * S, 43 * S));
    }

    #[test]
    fn a_recording_may_begin_later_and_be_empty() {
        let clock = Clock::new(100 * S, 130 * S, &points(&[100, 101, 130]), S, IdleLimit(Some(S / 2)));
        assert_eq!(clock.length(), S, "both are pauses");
        assert_eq!((clock.played(0), clock.played(100 * S), clock.recorded(0)), (0, 0, 100 * S));
        let clock = Clock::new(0, 0, &[], S, IdleLimit::default());
        assert_eq!((clock.length(), clock.played(5), clock.recorded(5)), (0, 5, 5));
    }

    #[test]
    fn coarse_points_are_not_taken_for_pauses() {
        let points = points(&[0, 4, 8, 20]);
        let clock = Clock::new(0, 20 * S, &points, 8 * S, IdleLimit(Some(2 * S)));
        assert_eq!(clock.length(), 10 * S);
    }

    #[test]
    fn speeds_and_limits_have_ends() {
        let mut speed = Speed::default();
        assert_eq!(speed.label(), "1×");
        for _ in 0..20 {
            speed = speed.faster();
        }
        assert_eq!(speed.label(), "64×");
        for _ in 0..20 {
            speed = speed.slower();
        }
        assert_eq!(speed.label(), "¼×");
        assert_eq!(Speed::parse("16x").map(Speed::label), Ok("16×"));
        assert!(Speed::parse("3").is_err());
        assert_eq!(IdleLimit::default().longer().label(), "idle 5s");
        assert_eq!(IdleLimit::default().shorter().shorter().shorter().label(), "idle 0.5s");
        assert_eq!(IdleLimit(Some(3 * S)).longer().label(), "idle 5s");
        assert_eq!(IdleLimit(None).longer().label(), "idle off");
        assert_eq!(IdleLimit::parse("off"), Ok(IdleLimit(None)));
        assert!(IdleLimit::parse("0").is_err());
    }
}
