//! Words of the command line into values, with errors that say what to write instead. Pure.

use jiff::Timestamp;
use shared::attention::Attention;
use shared::exec::Language;
use shared::filter::Order;
use shared::message::Condition;
use shared::policy::Span;
use shared::screen::Size;
use shared::session::Status;
use shared::terminal::TerminalKind;
use shared::watch::WatchMode;

/// `wait --for quiet` without a time.
const QUIET_MS: u64 = 1000;

pub fn size(text: &str) -> Result<Size, String> {
    let wrong = || format!("{text:?} is not a size: write COLSxROWS, as in 120x40");
    let (cols, rows) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    Ok(Size { cols: cols.parse().map_err(|_| wrong())?, rows: rows.parse().map_err(|_| wrong())? })
}

pub fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not a variable: write NAME=VALUE")),
    }
}

pub fn status(text: &str) -> Result<Status, String> {
    Status::parse(text).ok_or_else(|| {
        let all: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("{text:?} is not a status: one of {}", all.join(", "))
    })
}

fn attention(text: &str) -> Result<Attention, String> {
    Attention::parse(text).ok_or_else(|| {
        let all: Vec<&str> = Attention::ALL.iter().map(|state| state.as_str()).collect();
        format!("{text:?} is no state of attention: one of {}", all.join(", "))
    })
}

pub fn language(text: &str) -> Result<Language, String> {
    Language::parse(text).ok_or_else(|| format!("{text:?} is not a language of ours: bash, python or node"))
}

pub fn terminal(text: &str) -> Result<TerminalKind, String> {
    TerminalKind::parse(text)
        .ok_or_else(|| format!("{text:?} is not a terminal of a session: terminal (its program), bash, python or node"))
}

pub fn watch(text: &str) -> Result<WatchMode, String> {
    WatchMode::parse(text).ok_or_else(|| format!("{text:?} is not a way to watch: auto, on or off"))
}

pub fn duration_ms(text: &str) -> Result<u64, String> {
    Span::parse(text).map(|span| span.ms)
}

/// A moment: a date, a time, or how long ago.
pub fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(span) = Span::parse(text) {
        let ago = jiff::SignedDuration::from_millis(span.ms as i64);
        return Timestamp::now().checked_sub(ago).map_err(|error| error.to_string());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    // without a zone it is the user's own
    let local = text.parse::<jiff::civil::DateTime>().or_else(|_| text.parse::<jiff::civil::Date>().map(|date| date.at(0, 0, 0, 0)));
    local.and_then(|at| at.to_zoned(jiff::tz::TimeZone::system())).map(|zoned| zoned.timestamp()).map_err(|_| {
        format!("{text:?} is not a time: write 2026-11-16, 2026-11-16T09:30, 2026-11-16T09:30:00Z, or how long ago, as in 2h or 7d")
    })
}

pub fn days(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(days) if (0.0..=36_500.0).contains(&days) => Ok(days),
        _ => Err(format!("{text:?} is no number of days: write --older-than 30")),
    }
}

pub fn order(text: &str) -> Result<Order, String> {
    Ok(match text {
        "newest-last" => Order::NewestLast,
        "newest" => Order::NewestFirst,
        "oldest" => Order::OldestFirst,
        "active" => Order::ActiveFirst,
        _ => return Err(format!("{text:?} is not an order: newest-last, newest, oldest or active")),
    })
}

pub fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not JSON ({error}): write it as '{{\"step\": 1}}'"))
}

pub fn condition(text: &str) -> Result<Condition, String> {
    match text.split_once('=') {
        None if text == "exit" => Ok(Condition::Exit),
        None if text == "prompt" => Ok(Condition::Prompt),
        None if text == "quiet" => Ok(Condition::Quiet { ms: QUIET_MS }),
        Some(("quiet", duration)) => Ok(Condition::Quiet { ms: duration_ms(duration)? }),
        Some(("text", pattern)) => Ok(Condition::Text { pattern: pattern.to_owned() }),
        Some(("status", word)) => Ok(Condition::Status { status: status(word)? }),
        Some(("attention", word)) => Ok(Condition::Attention { state: attention(word)? }),
        _ => Err(format!(
            "cannot wait for {text:?}: write exit, prompt, quiet, quiet=DURATION, text=REGEX, status=STATUS or attention=STATE"
        )),
    }
}

/// Whose history is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryOf {
    Calls(Language),
    Terminal,
}

impl HistoryOf {
    pub fn language(self) -> Option<Language> {
        match self {
            Self::Calls(language) => Some(language),
            Self::Terminal => None,
        }
    }
}

pub fn history_of(text: &str) -> Result<HistoryOf, String> {
    match text {
        "terminal" => Ok(HistoryOf::Terminal),
        _ => language(text).map(HistoryOf::Calls).map_err(|why| format!("{why}; or terminal")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_conditions() {
        for (text, ms) in [("500ms", 500), ("2s", 2000), ("2", 2000), ("1.5s", 1500), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "s", "5 s", "-1s", "1y", "1e9h", "99999d"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
        assert_eq!(condition("prompt"), Ok(Condition::Prompt));
        assert_eq!(condition("quiet=2s"), Ok(Condition::Quiet { ms: 2000 }));
        assert_eq!(condition("text=a=b"), Ok(Condition::Text { pattern: "a=b".into() }));
        assert_eq!(condition("attention=idle"), Ok(Condition::Attention { state: Attention::Idle }));
        assert!(condition("attention=bored").is_err());
        assert!(condition("moon").is_err());
        assert!(condition("status=lazy").is_err());
    }

    #[test]
    fn moments() {
        assert_eq!(moment("2026-11-16T09:30:00Z"), Ok("2026-11-16T09:30:00Z".parse().expect("a time")));
        for text in ["2026-11-16", "2026-11-16T09:30", "2h", "7d"] {
            assert!(moment(text).expect(text) < Timestamp::now() + jiff::SignedDuration::from_hours(24 * 365));
        }
        assert!(moment("yesterday").expect_err("no").contains("7d"));
    }

    #[test]
    fn sizes_and_variables() {
        assert_eq!(size("120x40"), Ok(Size { cols: 120, rows: 40 }));
        assert!(size("120").is_err());
        assert!(size("99999x1").is_err());
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(variable("=x").is_err());
    }
}
