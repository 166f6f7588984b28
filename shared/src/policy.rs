//! Policy: how long a session may be idle, and how long it may last. Pure values; the rules are the daemon's.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time as people write it: `500ms`, `30s`, `10m`, `1h`, `1h30m`, `2d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Span {
    pub ms: u64,
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

/// Ten years: beyond that somebody mistyped, and sums stay far from any limit.
const MAX_MS: f64 = 10.0 * 366.0 * 86_400_000.0;

impl Span {
    pub const fn from_secs(seconds: u64) -> Self {
        Self { ms: seconds * 1000 }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration: write 500ms, 30s, 10m, 1h, 1h30m or 2d");
        let (mut rest, mut ms, mut above) = (text, 0.0, f64::INFINITY);
        loop {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, after) = rest.split_at(digits);
            let number: f64 = number.parse().map_err(|_| wrong())?;
            let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
            let factor = match unit {
                "ms" => 1.0,
                "s" => 1000.0,
                // seconds, if that is all
                "" if rest.len() == text.len() => 1000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                "d" => 86_400_000.0,
                _ => return Err(wrong()),
            };
            // hours before minutes, each once
            if factor >= above {
                return Err(wrong());
            }
            ms += number * factor;
            (rest, above) = (after, factor);
            if rest.is_empty() {
                break;
            }
        }
        if !(0.0..=MAX_MS).contains(&ms) {
            return Err(wrong());
        }
        Ok(Self { ms: ms as u64 })
    }

    pub fn micros(self) -> i64 {
        (self.ms * 1000) as i64
    }

    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.ms)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.ms {
            0 => (0, "s"),
            ms if ms % 86_400_000 == 0 => (ms / 86_400_000, "d"),
            ms if ms % 3_600_000 == 0 => (ms / 3_600_000, "h"),
            ms if ms % 60_000 == 0 => (ms / 60_000, "m"),
            ms if ms % 1000 == 0 => (ms / 1000, "s"),
            ms => (ms, "ms"),
        };
        f.pad(&format!("{number}{unit}"))
    }
}

/// A limit that may also be none at all, written `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Limit {
    #[default]
    None,
    After(Span),
}

impl Limit {
    pub const fn secs(seconds: u64) -> Self {
        Self::After(Span::from_secs(seconds))
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let span = Span::parse(text).map_err(|error| format!("{error}, or none"))?;
        if span.ms == 0 {
            return Err(format!("{text:?} would end it at once: write a longer time, or none"));
        }
        Ok(Self::After(span))
    }

    pub fn span(self) -> Option<Span> {
        match self {
            Self::None => None,
            Self::After(span) => Some(span),
        }
    }
}

impl TryFrom<String> for Limit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Limit> for String {
    fn from(limit: Limit) -> Self {
        limit.to_string()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::After(span) => span.fmt(f),
        }
    }
}

/// What a session may do before it becomes `timeout`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Without input, output, exec, iteration or event.
    pub idle_timeout: Limit,
    /// In all, while active: time spent paused or queued does not count.
    pub max_duration: Limit,
}

impl Policy {
    pub fn has_limits(&self) -> bool {
        self.idle_timeout != Limit::None || self.max_duration != Limit::None
    }
}

/// What kind of session it is, which decides its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A person's terminal.
    Terminal,
    /// A task given to an agent or a person.
    Task,
    /// Interpreters that are only called.
    Runtime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_they_are_read() {
        for (text, ms) in [
            ("500ms", 500),
            ("2s", 2000),
            ("2", 2000),
            ("1.5s", 1500),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
            ("1h30m", 5_400_000),
            ("1d2h", 93_600_000),
            ("1m500ms", 60_500),
        ] {
            let span = Span::parse(text).expect(text);
            assert_eq!(span.ms, ms, "{text}");
            assert_eq!(Span::parse(&span.to_string()), Ok(span), "{text}");
        }
        for text in ["", "s", "5 s", "-1s", "1y", "1e9h", "99999d", "1h30", "30m1h", "1m1m", "1h m", "1h-1m"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_may_be_none_but_not_nothing() {
        assert_eq!(Limit::parse("none"), Ok(Limit::None));
        assert_eq!(Limit::parse("1h"), Ok(Limit::secs(3600)));
        assert!(Limit::parse("0s").expect_err("zero").contains("at once"));
        assert!(Limit::parse("soon").expect_err("no").contains("or none"));
        let policy = Policy { idle_timeout: Limit::secs(5), max_duration: Limit::None };
        let text = serde_json::to_string(&policy).expect("serialises");
        assert_eq!(text, r#"{"idle_timeout":"5s","max_duration":"none"}"#);
        assert_eq!(serde_json::from_str::<Policy>("{}").expect("defaults"), Policy::default());
    }
}
