//! Reading `config.toml`: what is wrong with it is said with line, column and reason, and with what may have been meant.

use serde::Deserialize;
use toml::de::{DeTable, DeValue, Deserializer};

use super::Config;
use super::words::in_words;
use crate::policy::Span;

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

/// Everything that is wrong with the file, in its order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<ConfigError>);

impl std::fmt::Display for Mistakes {
    /// One sentence: the first, and that there are more.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(first) = self.0.first() else { return Ok(()) };
        match self.0.len() - 1 {
            0 => first.fmt(f),
            more => write!(f, "{first} (and {more} more: `sessions-tui config check`)"),
        }
    }
}

/// What keys and colours have to be like: the client knows.
pub type CheckLook = fn(&Config) -> Vec<Wrong>;

/// Whoever has more has another file in its place; and to find each place the file is read once more.
const MAX_MISTAKES: usize = 20;

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

    /// The settings of a file, or all that is wrong with it.
    pub fn read(text: &str, look: CheckLook) -> Result<Self, Mistakes> {
        let (mut document, errors) = DeTable::parse_recoverable(text);
        let mut mistakes: Vec<ConfigError> = errors.iter().take(MAX_MISTAKES).map(|error| located(text, error)).collect();
        // behind the first on a line the reader only guesses where it is
        mistakes.dedup_by_key(|mistake| mistake.line);
        while mistakes.len() < MAX_MISTAKES && errors.is_empty() {
            match Self::deserialize(Deserializer::from(document.clone())) {
                Ok(config) => {
                    let wrong = config.wrong().into_iter().chain(look(&config)).take(MAX_MISTAKES);
                    mistakes.extend(wrong.map(|wrong| wrong.located(text)));
                    if mistakes.is_empty() {
                        return Ok(config);
                    }
                    break;
                }
                Err(error) => {
                    mistakes.push(located(text, &error));
                    // without it, the next one shows
                    if !error.span().is_some_and(|span| take_out(document.get_mut(), span.start)) {
                        break;
                    }
                }
            }
        }
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        Err(Mistakes(mistakes))
    }

    /// As [`Config::read`], whatever keys and colours are like; the first mistake.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::read(text, |_| Vec::new()).map_err(|Mistakes(mut mistakes)| mistakes.swap_remove(0))
    }

    /// What has the right form and still makes no sense.
    fn wrong(&self) -> Vec<Wrong> {
        let mut found = Vec::new();
        let mut unless = |holds: bool, path: &str, reason: &str| {
            if !holds {
                found.push(Wrong::new(path, reason));
            }
        };
        unless(self.recording.max_mib >= MIN_RECORDING_MIB, "recording.max_mib", &format!("must be at least {MIN_RECORDING_MIB}"));
        unless(self.pause.memory_pressure <= 99, "pause.memory_pressure", "is a share of the time in percent, 99 at most");
        // a runtime that nothing may wait for, or that may have no process, cannot be called
        unless(self.runtime.max_queue >= 1, "runtime.max_queue", "must be at least 1");
        unless(self.runtime.max_processes >= 1, "runtime.max_processes", "must be at least 1");
        for (name, interpreter) in [("bash", &self.runtime.bash), ("python", &self.runtime.python), ("node", &self.runtime.node)] {
            let is_named = interpreter.as_ref().is_none_or(|path| !path.trim().is_empty());
            unless(is_named, &format!("runtime.{name}"), "must be the full path of a program; without the line it is looked for");
        }
        let webhooks = &self.webhooks;
        let spans = [("timeout", webhooks.timeout), ("first_retry", webhooks.first_retry), ("max_retry", webhooks.max_retry)];
        for (name, span) in spans.into_iter().chain([("max_age", webhooks.max_age)]) {
            unless(span > Span { ms: 0 }, &format!("webhooks.{name}"), "must be longer than nothing");
        }
        let checked = [
            ("recording.redact.rules", crate::redact::check(&self.recording.redact.rules)),
            ("notify.command", self.notify.check()),
            ("watch.ignore", self.watch.check()),
        ];
        found.extend(checked.into_iter().filter_map(|(path, outcome)| Some(Wrong::new(path, outcome.err()?))));
        for group in self.groups.keys() {
            if let Err(reason) = crate::name::check(group) {
                let path = vec!["groups".to_owned(), group.clone()];
                found.push(Wrong { path, reason: format!("a group is called like a session: {reason}") });
            }
        }
        found
    }
}

/// Takes the innermost setting out that is written there; false if there is none.
fn take_out(table: &mut DeTable<'_>, at: usize) -> bool {
    for (_, value) in table.iter_mut() {
        if let DeValue::Table(inner) = value.get_mut()
            && take_out(inner, at)
        {
            return true;
        }
    }
    let found = table.iter().find(|(key, value)| {
        // a table's own place is the line of its name, which is its key's too
        key.span().contains(&at) || value.span().contains(&at) || value.span().start == at
    });
    let Some(key) = found.map(|(key, _)| key.clone()) else { return false };
    table.remove(&key).is_some()
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
            ("[pause]\nfreeze = 3\n", 2, 10, "write text"),
            ("[recording]\nmax_mib = \"much\"\n", 2, 11, "the text \"much\" cannot be here: write a number from 0 on"),
            ("[cleanup]\nolder_than_days = -1\n", 2, 19, "the number -1 cannot be here: write a number from 0 to"),
            ("[watch]\nignore = 3\n", 2, 10, "write a list"),
            ("keys = 3\n", 1, 8, "write a table"),
            ("[keys.dashboard]\nkill = 3\n", 2, 8, "write text or a list of texts"),
            ("[theme]\naccent = 3\n", 2, 10, "the number 3 cannot be here: write text"),
            ("[shell]\nsecrets = \"no\"\n", 2, 11, "write true or false"),
            ("[webhooks]\ntimeout = \"0s\"\n", 2, 1, "longer than nothing"),
            ("[webhooks]\nfirst_retry = \"0\"\n", 2, 1, "longer than nothing"),
            ("[runtime]\npython = \"\"\n", 2, 1, "full path"),
            ("[runtime]\nmax_queue = 0\n", 2, 1, "at least 1"),
            ("[recording.redact]\nrules = [\"x\", \"\"]\n", 2, 1, "finds nothing"),
            ("[groups]\n\"\" = 2\n", 2, 1, "cannot be empty"),
            ("[groups]\n\"a b\" = 2\n", 2, 1, "cannot contain"),
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
    fn all_mistakes_are_found_in_the_order_of_the_file() {
        let look: CheckLook = |config| config.theme.colours.keys().map(|role| Wrong::new(&format!("theme.{role}"), "no")).collect();
        let lines = |text: &str| Config::read(text, look).map_err(|Mistakes(all)| all.iter().map(|one| one.line).collect::<Vec<_>>());
        let text = "[theme]\nglow = \"red\"\n[groups]\nb = \"x\"\nc = 2\n[recoding]\nx = 1\n[recording]\nmax_mib = 1\nmax_mb = 2\n";
        assert_eq!(lines(text), Err(vec![2, 4, 6, 9, 10]));
        assert_eq!(lines("a = \nb = 1\n[keys\n"), Err(vec![1, 3]), "what is no TOML hides the rest");
        assert_eq!(lines("keys = 3\npause = 1\n"), Err(vec![1, 2]));
        assert_eq!(lines("[groups]\nc = 2\n").map(|config| config.groups.len()), Ok(1));
        let many = (0..20_000).map(|n| format!("\"a {n}\" = 1")).collect::<Vec<_>>().join("\n");
        // no file keeps its reader long, whatever is in it
        for hostile in ["= ".repeat(1 << 19), "x\n".repeat(1 << 19), format!("[groups]\n{many}\n")] {
            let began = std::time::Instant::now();
            assert!(Config::read(&hostile, look).is_err_and(|Mistakes(all)| all.len() <= MAX_MISTAKES));
            assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
        }
        let said = Config::read(text, look).expect_err("mistakes").to_string();
        assert!(said.starts_with("config.toml, line 2, column 1: theme.glow: no (and 4 more"), "{said}");
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
}
