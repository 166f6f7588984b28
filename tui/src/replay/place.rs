//! Places in a recording as people write them: `1:23`, `90s`, `50%`, `14:05`, `-10s`, `end`. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shared::policy::Span;
use shared::replay::Outline;

use super::clock::Clock;

const SECOND: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Start,
    End,
    /// Of what is played.
    Percent(f64),
    /// Since the recording began.
    Since(u64),
    /// From where we are.
    By(i64),
    /// `14:05` and `14:05:10`: so long since the beginning, or at that time of day, whichever is in the recording.
    Digits {
        since: u64,
        of_day: Option<jiff::civil::Time>,
    },
    OfDay(jiff::civil::Time),
    At(Timestamp),
    /// As near to it as the recording goes.
    Near(Timestamp),
    /// Date and time without a zone: the user's own.
    Local(jiff::civil::DateTime),
}

const HOW: &str =
    "write 1:23 or 90s since the beginning, 50%, -10s, a time of day as in 14:05:10 (or @14:05), 2026-11-16T14:05:10Z, start or end";

impl Place {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("{text:?} is not a place in a recording: {HOW}");
        match text {
            "start" => return Ok(Self::Start),
            "end" => return Ok(Self::End),
            _ => {}
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            return if (0.0..=100.0).contains(&percent) { Ok(Self::Percent(percent)) } else { Err(wrong()) };
        }
        if let Some(of_day) = text.strip_prefix('@') {
            return digits(of_day).and_then(|(_, of_day)| of_day).map(Self::OfDay).ok_or_else(wrong);
        }
        let signed = text.strip_prefix('-').map(|rest| (-1, rest)).or_else(|| text.strip_prefix('+').map(|rest| (1, rest)));
        if let Some((sign, rest)) = signed {
            let length = length(rest).or_else(|| digits(rest).map(|(since, _)| since)).ok_or_else(wrong)?;
            return Ok(Self::By(sign * i64::try_from(length).map_err(|_| wrong())?));
        }
        if let Some((since, of_day)) = digits(text) {
            return Ok(Self::Digits { since, of_day });
        }
        if let Some(length) = length(text) {
            return Ok(Self::Since(length));
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(at));
        }
        text.parse::<jiff::civil::DateTime>().map(Self::Local).map_err(|_| wrong())
    }

    /// The time in the recording that is meant, from where one is now.
    pub fn resolve(&self, outline: &Outline, clock: &Clock, now: u64, zone: &TimeZone) -> Result<u64, String> {
        let (first, end) = (outline.first.time, outline.end.time);
        let inside = |time: Option<u64>| time.filter(|time| (first..=end).contains(time));
        match *self {
            Self::Start => Ok(first),
            Self::End => Ok(end),
            Self::Percent(percent) => Ok(clock.recorded((clock.length() as f64 * percent / 100.0) as u64)),
            Self::By(delta) => Ok(now.saturating_add_signed(delta).clamp(first, end.max(first))),
            Self::Since(since) => inside(Some(since)).ok_or_else(|| outside(outline, zone)),
            Self::Digits { since, of_day } => {
                let by_clock = || of_day.and_then(|of_day| next(of_day, outline, zone)).and_then(|at| time_of(at, outline));
                inside(Some(since)).or_else(|| inside(by_clock())).ok_or_else(|| outside(outline, zone))
            }
            Self::OfDay(of_day) => {
                inside(next(of_day, outline, zone).and_then(|at| time_of(at, outline))).ok_or_else(|| outside(outline, zone))
            }
            Self::At(at) => inside(time_of(at, outline)).ok_or_else(|| outside(outline, zone)),
            Self::Near(at) => Ok(time_of(at, outline).unwrap_or(first).clamp(first, end.max(first))),
            Self::Local(at) => {
                let at = at.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
                inside(at.and_then(|at| time_of(at, outline))).ok_or_else(|| outside(outline, zone))
            }
        }
    }
}

/// `1m30s`, `90s`, `1.5h`.
fn length(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let end = rest[unit..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |n| unit + n);
        sum += Span::parse(&rest[..end]).ok()?.ms * 1000;
        rest = &rest[end..];
    }
    (sum > 0 || text.starts_with('0')).then_some(sum)
}

/// `1:23`, `14:05:10`, and a number alone, which is seconds: as a length, and as a time of day if it can be one.
fn digits(text: &str) -> Option<(u64, Option<jiff::civil::Time>)> {
    let parts: Vec<&str> = text.split(':').collect();
    let numbers: Vec<u64> = parts.iter().map(|part| part.parse().ok().filter(|n| *n < 1_000_000)).collect::<Option<_>>()?;
    let of_day = |h: u64, m: u64, s: u64| jiff::civil::Time::new(h.try_into().ok()?, m.try_into().ok()?, s.try_into().ok()?, 0).ok();
    match numbers[..] {
        [seconds] => Some((seconds * SECOND, None)),
        [minutes, seconds] => Some(((minutes * 60 + seconds) * SECOND, of_day(minutes, seconds, 0))),
        [hours, minutes, seconds] => Some((((hours * 60 + minutes) * 60 + seconds) * SECOND, of_day(hours, minutes, seconds))),
        _ => None,
    }
}

/// The first time after the recording's beginning that a clock on the wall shows this.
fn next(of_day: jiff::civil::Time, outline: &Outline, zone: &TimeZone) -> Option<Timestamp> {
    let began = outline.began_at.to_zoned(zone.clone());
    let that_day = began.date().to_datetime(of_day).to_zoned(zone.clone()).ok()?;
    // the second itself began before: what is meant lies in it
    let at = that_day.timestamp();
    if at.as_second() >= outline.began_at.as_second() {
        return Some(at.max(outline.began_at));
    }
    let next_day = began.date().tomorrow().ok()?.to_datetime(of_day).to_zoned(zone.clone()).ok()?;
    Some(next_day.timestamp())
}

fn time_of(at: Timestamp, outline: &Outline) -> Option<u64> {
    u64::try_from(at.as_microsecond() - outline.began_at.as_microsecond()).ok()
}

fn outside(outline: &Outline, zone: &TimeZone) -> String {
    format!(
        "that is not in the recording, which goes from {} to {} ({} to {})",
        in_words(outline.first.time),
        in_words(outline.end.time),
        on_the_wall(outline, outline.first.time, zone),
        on_the_wall(outline, outline.end.time, zone)
    )
}

/// `0:01:23`.
pub fn in_words(micros: u64) -> String {
    let seconds = micros / SECOND;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// What a clock on the wall showed then.
pub fn on_the_wall(outline: &Outline, time: u64, zone: &TimeZone) -> String {
    let at = outline.began_at.checked_add(jiff::SignedDuration::from_micros(i64::try_from(time).unwrap_or(0))).unwrap_or(outline.began_at);
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::clock::IdleLimit;
    use crate::replay::player::tests::outline;

    #[test]
    fn places_are_found() {
        let mut outline = outline();
        outline.began_at = "2026-11-16T14:00:00.5Z".parse().expect("a time");
        outline.end.time = 600 * SECOND;
        outline.points = vec![outline.first, outline.end];
        let clock = Clock::new(0, 600 * SECOND, &outline.points, SECOND, IdleLimit(None));
        let now = 100 * SECOND;
        for (text, expected) in [
            ("start", 0),
            ("end", 600 * SECOND),
            ("50%", 300 * SECOND),
            ("1:23", 83 * SECOND),
            ("90s", 90 * SECOND),
            ("90", 90 * SECOND),
            ("1m30s", 90 * SECOND),
            ("0:01:30", 90 * SECOND),
            ("-10s", 90 * SECOND),
            ("+1:00", 160 * SECOND),
            ("-1h", 0),
            ("14:05:10", 309_500_000),
            ("@14:05", 299_500_000),
            ("14:05", 299_500_000),
            ("2026-11-16T14:05:10Z", 309_500_000),
            ("2026-11-16T14:05:10", 309_500_000),
            ("@14:00", 0),
        ] {
            let place = Place::parse(text).expect(text);
            assert_eq!(place.resolve(&outline, &clock, now, &TimeZone::UTC), Ok(expected), "{text}");
        }
        for text in ["15:00", "11m", "2020-01-01T00:00:00Z", "99:99"] {
            let place = Place::parse(text).expect(text);
            let error = place.resolve(&outline, &clock, now, &TimeZone::UTC).expect_err(text);
            assert!(error.contains("0:10:00") && error.contains("14:10:00"), "{error}");
        }
        for text in ["", "x", "120%", "1:2:3:4", "-", "@", "@90s", "1x", "99999999999999"] {
            assert!(Place::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_night_is_crossed() {
        let mut outline = outline();
        outline.began_at = "2026-11-16T23:50:00Z".parse().expect("a time");
        outline.end.time = 3600 * SECOND;
        let clock = Clock::new(0, 3600 * SECOND, &[], SECOND, IdleLimit(None));
        let place = Place::parse("@00:10").expect("a place");
        assert_eq!(place.resolve(&outline, &clock, 0, &TimeZone::UTC), Ok(1200 * SECOND));
    }
}
