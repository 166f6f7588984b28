//! Reading `config.toml`: what is wrong with it is said with line, column and reason, and with what may have been meant.

use toml::de::{DeTable, DeValue};

use super::Config;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("config.toml, line {line}, column {column}: {reason}")]
pub struct ConfigError {
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

/// A setting that makes no sense, by its path: `["keys", "dashboard", "kil"]`; numbers count in lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub path: Vec<String>,
    pub reason: String,
}

impl Wrong {
    /// `path` as it is written: `keys.dashboard.kil`.
    pub fn new(path: &str, reason: impl Into<String>) -> Self {
        Self { path: path.split('.').map(str::to_owned).collect(), reason: reason.into() }
    }

    /// Where in the file that is.
    pub fn located(&self, text: &str) -> ConfigError {
        let (line, column) = place(text, &self.path);
        ConfigError { line, column, reason: format!("{}: {}", self.path.join("."), self.reason) }
    }
}

/// Two segments: below that, cutting the oldest would cut what is on the screen.
const MIN_RECORDING_MIB: u64 = 32;

impl Config {
    /// The defaults, for a file that cannot be understood; but what was to be covered is covered, as far as that is known.
    pub fn without_settings(text: &str) -> Self {
        let mut config = Self::default();
        let is_on =
            |line: &str| line.split_once('=').is_some_and(|(key, value)| key.trim().ends_with("at_write") && value.contains("true"));
        config.recording.redact.at_write = text.lines().any(|line| !line.trim_start().starts_with('#') && is_on(line));
        config
    }

    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| located(text, &error))?;
        match config.wrong() {
            Some(wrong) => Err(wrong.located(text)),
            None => Ok(config),
        }
    }

    /// What has the right form and still makes no sense.
    fn wrong(&self) -> Option<Wrong> {
        if self.recording.max_mib < MIN_RECORDING_MIB {
            return Some(Wrong::new("recording.max_mib", format!("must be at least {MIN_RECORDING_MIB}")));
        }
        if let Err(reason) = crate::redact::check(&self.recording.redact.rules) {
            return Some(Wrong::new("recording.redact.rules", reason));
        }
        if let Err(reason) = self.notify.check() {
            return Some(Wrong::new("notify.command", reason));
        }
        if let Err(reason) = self.watch.check() {
            return Some(Wrong::new("watch.ignore", reason));
        }
        if self.pause.memory_pressure > 99 {
            return Some(Wrong::new("pause.memory_pressure", "is a share of the time in percent, 99 at most"));
        }
        None
    }
}

/// What the reader of TOML has to say, in our words and with a place.
pub fn located(text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let (line, column) = position(text, start);
    ConfigError { line, column, reason: in_words(error.message()) }
}

/// Line and column of a byte, from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
}

/// Where a setting is written, or the last part of its path that is there.
pub fn place(text: &str, path: &[String]) -> (usize, usize) {
    let Ok(document) = DeTable::parse(text) else { return (1, 1) };
    let mut at = 0;
    let mut next: Option<&DeTable<'_>> = Some(document.get_ref());
    let mut list: Option<&[toml::Spanned<DeValue<'_>>]> = None;
    for part in path {
        let value = if let Some(items) = list.take() {
            let Some(item) = part.parse::<usize>().ok().and_then(|index| items.get(index)) else { break };
            at = item.span().start;
            item
        } else if let Some(table) = next.take() {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == part) else { break };
            at = key.span().start;
            value
        } else {
            break;
        };
        match value.get_ref() {
            DeValue::Table(table) => next = Some(table),
            DeValue::Array(items) => list = Some(items),
            _ => {}
        }
    }
    position(text, at)
}

/// "unknown field `a`, expected one of `b`, `c`" as a sentence that says what was meant.
fn in_words(message: &str) -> String {
    let first = message.lines().next().unwrap_or("this cannot be read");
    let unknown = ["unknown field `", "unknown variant `"].into_iter().find_map(|lead| first.strip_prefix(lead));
    let Some((word, rest)) = unknown.and_then(|rest| rest.split_once('`')) else { return first.to_owned() };
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    format!("{word:?} is not known here: {}", did_you_mean(word, known.iter().copied()))
}

/// What a word that is not known may have stood for, or what there is.
pub fn did_you_mean<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = known.iter().map(|name| (distance(name, word), *name)).min();
    // a third of the letters may be wrong: beyond that it is another word
    match near {
        Some((letters, name)) if letters <= (word.chars().count() / 3).max(2) => format!("did you mean {name:?}?"),
        _ if known.is_empty() => "nothing can be set".to_owned(),
        _ => format!("it can be {}", known.join(", ")),
    }
}

/// How many letters differ.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_a_place_and_a_guess() {
        for (text, line, column, part) in [
            ("[keys]\n\nprefix = \"b\"\n", 3, 10, "ctrl-b"),
            ("[recording]\nmax_mb = 3\n", 2, 1, "did you mean \"max_mib\"?"),
            ("[recording]\nmax_mib = 1\n", 2, 1, "at least 32"),
            ("[recoding]\nmax_mib = 99\n", 1, 2, "did you mean \"recording\"?"),
            ("restore = \"atuo\"\n", 1, 11, "did you mean \"auto\"?"),
            ("restore = \"sometimes\"\n", 1, 11, "it can be ask, auto, never"),
            ("[pause]\nfreeze = 3\n", 2, 10, "wanted string"),
            ("[policy.task]\nidle_timeout = \"soon\"\n", 2, 16, "not a duration"),
            ("[policy.tsk]\nidle_timeout = \"1h\"\n", 1, 9, "did you mean \"task\"?"),
            ("[recording.redact]\n  rules = [\"(\"]\n", 2, 3, "recording.redact.rules"),
            ("[pause]\nmemory_pressure = 100\n", 2, 1, "percent"),
            ("a = \n", 1, 5, ""),
            ("# ä\n[keys]\nprefix = ctrl\n", 3, 10, ""),
        ] {
            let error = Config::parse(text).expect_err(text);
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
            assert!(error.reason.contains(part), "{text}: {error}");
            assert_eq!(error.reason.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn places_are_found_as_far_as_they_are_there() {
        let text = "a = 1\n[b.c]\n  d = [1, 2]\n[[e]]\nf = 1\n[[e]]\nf = 2\n";
        let at = |path: &str| place(text, &path.split('.').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(at("a"), (1, 1));
        assert_eq!(at("b.c.d"), (3, 3));
        assert_eq!(at("b.c.d.1"), (3, 11));
        assert_eq!(at("b.c.x"), (2, 4));
        assert_eq!(at("e.1.f"), (7, 1));
        assert_eq!(at("x"), (1, 1));
    }

    #[test]
    fn a_guess_is_made_only_if_it_is_near() {
        let known = ["kill", "rename", "remove"];
        assert_eq!(did_you_mean("kil", known.into_iter()), "did you mean \"kill\"?");
        assert_eq!(did_you_mean("explode", known.into_iter()), "it can be kill, rename, remove");
    }
}
