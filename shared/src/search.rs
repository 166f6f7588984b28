//! Searching everything that was printed, run, told and asked for: what is looked for, and what is found.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Author;
use crate::exec::Language;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::id::{ExecId, Offset, RuntimeId, SessionId, ThreadId};

/// Hits when no number is given.
pub const DEFAULT_LIMIT: u32 = 100;

/// Hits of one search, at most: each is kept until those that are newer have been told.
pub const MAX_LIMIT: u32 = 10_000;

/// Lines of context, at most.
pub const MAX_CONTEXT: u32 = 20;

/// Longest pattern: lines that are too long are looked at in parts that overlap by this much.
pub const MAX_PATTERN: usize = 4096;

/// Where something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What a program or a call printed.
    Output,
    /// The code of a call to an interpreter.
    Code,
    /// A command of a shell that marks them. What it looked like when it was typed is output too, so these are looked at
    /// only when they are asked for.
    Command,
    Event,
    /// What a session is for, its name, and what came of it.
    Task,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Output, Self::Code, Self::Command, Self::Event, Self::Task];

    /// What is looked at when nothing is said.
    pub const USUAL: [Self; 4] = [Self::Output, Self::Code, Self::Event, Self::Task];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Code => "code",
            Self::Command => "command",
            Self::Event => "event",
            Self::Task => "task",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pattern {
    #[serde(rename = "pattern")]
    pub text: String,
    /// A regular expression, not the text itself.
    pub regex: bool,
    pub ignore_case: bool,
}

impl Pattern {
    pub fn check(&self) -> Result<(), Failure> {
        if self.text.is_empty() {
            return Err(Failure::usage("there is nothing to look for: give a text, or a pattern with --regex"));
        }
        if self.text.len() > MAX_PATTERN {
            return Err(Failure::usage(format!("the pattern has {} bytes, at most {MAX_PATTERN} can be looked for", self.text.len())));
        }
        if !self.regex && self.text.chars().any(|c| c.is_control() && c != '\t') {
            return Err(Failure::usage(
                "the text has a line break or a control character in it: lines are searched one by one, as they are seen",
            ));
        }
        Ok(())
    }
}

/// Everything that is given must agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchQuery {
    #[serde(flatten)]
    pub pattern: Pattern,
    /// A thread's name: all of its sessions; or a session's id; or the beginning of either.
    pub name: Option<String>,
    /// Which sessions.
    pub filter: Filter,
    /// Of what happened since then, and before.
    pub after: Option<Timestamp>,
    pub before: Option<Timestamp>,
    /// Only these; none: the usual ones.
    pub kinds: Vec<Kind>,
    /// Only calls and programs that ended with this code, and what they printed.
    pub exit_code: Option<i32>,
    /// Only what this author did: events, calls, and what those printed.
    pub author: Option<Author>,
    pub limit: Option<u32>,
    /// Lines before and after each hit.
    pub context: u32,
}

impl SearchQuery {
    /// Whether this kind is to be looked at; some have nothing that a filter asks for.
    pub fn wants(&self, kind: Kind) -> bool {
        let is_chosen = if self.kinds.is_empty() { Kind::USUAL.contains(&kind) } else { self.kinds.contains(&kind) };
        let has_exit_code = matches!(kind, Kind::Output | Kind::Code | Kind::Command);
        let has_author = !matches!(kind, Kind::Task | Kind::Command);
        is_chosen && (self.exit_code.is_none() || has_exit_code) && (self.author.is_none() || has_author)
    }

    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize
    }

    pub fn context(&self) -> usize {
        self.context.min(MAX_CONTEXT) as usize
    }

    pub fn is_in_time(&self, at: Timestamp) -> bool {
        self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|before| at < before)
    }
}

/// One line in which something was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    pub session: SessionId,
    /// The thread's name.
    pub name: String,
    pub thread: ThreadId,
    pub kind: Kind,
    /// Of a task: name, task, result or error; of an event: its type; of what a call printed: stdout or stderr.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<String>,
    pub at: Timestamp,
    /// What was running: its recording has the hit, or the time of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime: Option<RuntimeId>,
    /// End of the frame that completes the match: played up to there, the recording shows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<Offset>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exec: Option<ExecId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub language: Option<Language>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<Author>,
    pub line: String,
    /// Where in the line the matches are, in bytes: each from, to.
    pub ranges: Vec<(usize, usize)>,
    /// The line as a person could see it, where parts of it were concealed or in the colour of their background.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub perceived: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<String>,
    /// How often the same line came among the hits around it; programs draw the same again and again. This is the latest.
    pub times: u64,
}

/// What came of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchSummary {
    pub hits: u64,
    /// In how many sessions.
    pub sessions: u64,
    /// How many were looked at.
    pub searched_sessions: u64,
    /// Bytes of recordings that were read.
    pub searched_bytes: u64,
    pub took_ms: f64,
    /// The limit ended it: there may be more.
    pub more: bool,
    /// Bytes of recordings that could not be read, and why, for the first few.
    pub damaged_bytes: u64,
    pub damaged: Vec<String>,
    /// Bytes that had been dropped from the front of recordings before.
    pub dropped_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_leave_out_what_has_nothing_they_ask_for() {
        let all = SearchQuery::default();
        assert!(Kind::USUAL.into_iter().all(|kind| all.wants(kind)) && !all.wants(Kind::Command));
        let failed = SearchQuery { exit_code: Some(1), ..SearchQuery::default() };
        assert_eq!(Kind::USUAL.map(|kind| failed.wants(kind)), [true, true, false, false]);
        let agents = SearchQuery { author: Some(Author::Agent), kinds: vec![Kind::Event, Kind::Task], ..SearchQuery::default() };
        assert_eq!(Kind::USUAL.map(|kind| agents.wants(kind)), [false, false, true, false]);
    }

    #[test]
    fn patterns_that_can_find_nothing_are_refused() {
        for text in ["", "two\nlines", "\x1b[31m", &"x".repeat(5000)] {
            assert!(Pattern { text: text.into(), ..Pattern::default() }.check().is_err(), "{text:?}");
        }
        Pattern { text: "tab\there größe".into(), ..Pattern::default() }.check().expect("fine");
        Pattern { text: r"a\nb".into(), regex: true, ..Pattern::default() }.check().expect("a pattern");
    }
}
