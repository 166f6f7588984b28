//! Words of the command line into values, with errors that say what to write instead. Pure.

use shared::message::Condition;
use shared::screen::Size;
use shared::session::Status;

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

pub fn duration_ms(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a duration: write 500ms, 30s, 10m or 1h");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "ms" => 1.0,
        "s" | "" => 1000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(wrong()),
    };
    let ms = number * factor;
    // a year: beyond that somebody mistyped
    if !(0.0..=31_536_000_000.0).contains(&ms) {
        return Err(wrong());
    }
    Ok(ms as u64)
}

pub fn condition(text: &str) -> Result<Condition, String> {
    match text.split_once('=') {
        None if text == "exit" => Ok(Condition::Exit),
        None if text == "quiet" => Ok(Condition::Quiet { ms: QUIET_MS }),
        Some(("quiet", duration)) => Ok(Condition::Quiet { ms: duration_ms(duration)? }),
        Some(("text", pattern)) => Ok(Condition::Text { pattern: pattern.to_owned() }),
        Some(("status", word)) => Ok(Condition::Status { status: status(word)? }),
        _ => Err(format!("cannot wait for {text:?}: write exit, quiet, quiet=DURATION, text=REGEX or status=STATUS")),
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
        assert_eq!(condition("quiet=2s"), Ok(Condition::Quiet { ms: 2000 }));
        assert_eq!(condition("text=a=b"), Ok(Condition::Text { pattern: "a=b".into() }));
        assert!(condition("moon").is_err());
        assert!(condition("status=lazy").is_err());
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
