//! An exec: one structured call to a runtime; code in, exit code, output and value out. And what a runtime says of itself.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Author;
use crate::failure::Failure;
use crate::id::{ExecId, SessionId};
use crate::terminal::TerminalKind;

/// Longest code of one call: it travels and is recorded as one frame.
pub const MAX_CODE: usize = 1_000_000;

/// Longest standard input given to a call.
pub const MAX_STDIN: usize = 4 << 20;

/// Bytes of each stream in a result when nothing else is asked for; the rest can be paged.
pub const DEFAULT_OUTPUT: u64 = 1 << 20;

/// Most bytes of a stream in one answer, whatever is asked for.
pub const MAX_OUTPUT: u64 = 2 << 20;

/// Entries of the history in `state`, and in `history` when no number is given.
pub const DEFAULT_HISTORY: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    Bash,
    Python,
    Node,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Bash, Self::Python, Self::Node];

    pub fn as_str(self) -> &'static str {
        self.kind().as_str()
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.as_str() == text)
    }

    /// The kind of terminal it is spoken in.
    pub fn kind(self) -> TerminalKind {
        match self {
            Self::Bash => TerminalKind::Bash,
            Self::Python => TerminalKind::Python,
            Self::Node => TerminalKind::Node,
        }
    }

    /// The language of a terminal; `None` for one with a program on a PTY.
    pub fn of(kind: TerminalKind) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.kind() == kind)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is done with the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Runs statements.
    #[default]
    Exec,
    /// Gives the value of an expression.
    Eval,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Eval => "eval",
        }
    }

    pub fn default_language(self) -> Language {
        match self {
            Self::Exec => Language::Bash,
            Self::Eval => Language::Python,
        }
    }
}

/// Whose runtime is meant: a session's, or a folder's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A session's name, its id, or a prefix of either.
    Session(String),
    /// A folder; each has runtimes of its own.
    Workspace(String),
}

/// Asks for a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecCall {
    #[serde(flatten)]
    pub place: Place,
    /// Chosen by the caller, so that it can speak of the call before it is answered.
    #[serde(rename = "exec")]
    pub id: Option<ExecId>,
    pub code: String,
    #[serde(default)]
    pub verb: Verb,
    pub language: Option<Language>,
    /// What the code reads from its standard input; without it, nothing.
    pub stdin: Option<String>,
    /// Interrupted after this long.
    pub timeout_ms: Option<u64>,
    /// Answered after this long even if it still runs; 0 at once. Without it, what the settings say.
    pub soft_limit_ms: Option<u64>,
    /// Output is pushed as it comes.
    #[serde(default)]
    pub stream: bool,
    /// Bytes of each stream in the result.
    pub output_limit: Option<u64>,
    /// The caller's environment, for a runtime that has to be started; never stored.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// The caller's mask for new files.
    pub umask: Option<u32>,
}

impl ExecCall {
    /// What can be said of it before anything is stored, and before it is sent: what is too long for a line would be cut off unheard.
    pub fn check(&self) -> Result<(), Failure> {
        let language = self.language.unwrap_or_else(|| self.verb.default_language());
        if self.code.len() > MAX_CODE {
            return Err(Failure::usage(format!(
                "the code has {} bytes, at most {MAX_CODE} can be run at once: write it to a file and run that",
                self.code.len()
            )));
        }
        if language == Language::Bash && self.code.contains('\0') {
            return Err(Failure::usage("the code contains a zero byte, which bash cannot read: write it as \\0 in printf, or use a file"));
        }
        if self.stdin.as_ref().is_some_and(|stdin| stdin.len() > MAX_STDIN) {
            return Err(Failure::usage(format!("the standard input has more than {MAX_STDIN} bytes: write it to a file and read that")));
        }
        if self.timeout_ms == Some(0) {
            return Err(Failure::usage("a timeout of 0 would end it at once: give a longer one, or none"));
        }
        for (key, value) in &self.environment {
            if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
                return Err(Failure::usage(format!("{key:?} is not an environment variable")));
            }
        }
        Ok(())
    }
}

/// One of the two things a program prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Something that is true of one stream and not of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PerStreamOf{T}")]
pub struct PerStream<T> {
    pub stdout: T,
    pub stderr: T,
}

impl PerStream<bool> {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde wants")]
    fn is_neither(&self) -> bool {
        !self.stdout && !self.stderr
    }
}

/// The result of an exec; of one that still runs, what there is so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecResult {
    /// The code ended well; of a call that still runs, that it was taken.
    pub success: bool,
    /// Absent while it runs, and when the runtime was lost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// What went wrong, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// The value of the expression, as the language writes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<String>,
    /// The same as JSON, of an eval whose value can be.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "crate::json::present")]
    pub json: Option<Value>,
    pub duration_ms: f64,
    /// Where the runtime is after the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    pub exec_id: ExecId,
    pub language: Language,
    pub session: SessionId,
    /// The session's name.
    pub name: String,
    /// There is more than is given here: `result EXEC_ID --offset` has it.
    pub truncated: PerStream<bool>,
    /// Bytes that are not UTF-8 were replaced; the exact ones can be paged.
    #[serde(skip_serializing_if = "PerStream::is_neither", default)]
    pub lossy: PerStream<bool>,
    /// Bytes of each stream in all.
    pub bytes: PerStream<u64>,
    /// It has not ended yet.
    #[serde(skip_serializing_if = "is_false", default)]
    pub running: bool,
    /// Calls before it, while it waits for its turn.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queued_behind: Option<u64>,
    /// Its timeout ended it.
    #[serde(skip_serializing_if = "is_false", default)]
    pub timed_out: bool,
    /// A signal ended it: its timeout, or `cancel`.
    #[serde(skip_serializing_if = "is_false", default)]
    pub interrupted: bool,
    /// The runtime was started afresh for this call; `note` says why and what is gone.
    pub restarted: bool,
    /// The runtime ended with this call: the next one starts a fresh one.
    #[serde(skip_serializing_if = "is_false", default)]
    pub ended: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    /// Bytes of what it printed that cannot be read back: they were forgotten or dropped, or the recording is damaged.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub missing_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde wants")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde wants")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A part of what a call printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputPage {
    pub exec_id: ExecId,
    pub stream: Stream,
    /// Where this part begins, in bytes of the stream. Later than asked for if the beginning has been dropped.
    pub offset: u64,
    /// Where the next part begins; the same as `bytes` at the end.
    pub next_offset: u64,
    /// Bytes of the stream so far.
    pub bytes: u64,
    /// It has not ended yet.
    pub running: bool,
    pub base64: String,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Queued,
    Running,
    Finished,
    /// The runtime was killed before it could answer.
    Lost,
    /// Taken out of the queue before its turn.
    Cancelled,
}

/// A line of history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    pub exec_id: ExecId,
    pub command: String,
    pub verb: Verb,
    pub language: Language,
    pub stage: Stage,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration: Option<f64>,
    pub started_at: Timestamp,
    pub author: Author,
    pub session: SessionId,
}

/// What is known of one runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    pub language: Language,
    /// A process is there.
    pub alive: bool,
    /// A call is being carried out.
    pub busy: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    pub working_dir: String,
    /// Set or changed since its start; values of secret-looking names are masked unless asked for.
    pub env_vars: std::collections::BTreeMap<String, String>,
    /// Variables it was started with that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub env_removed: Vec<String>,
    pub imports: Vec<String>,
    /// Names the code has defined.
    pub names: Vec<String>,
    pub history: Vec<HistoryEntry>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_activity: Option<Timestamp>,
    pub state_version: u64,
}

/// The runtimes of a session or a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct States {
    /// `None` while the folder has none.
    pub session: Option<SessionId>,
    pub name: Option<String>,
    pub runtimes: Vec<State>,
}

/// What was made clean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResetDone {
    pub reset: bool,
    pub languages: Vec<Language>,
    pub note: String,
}

/// Names whose values are not shown unless asked for.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "AUTH", "CREDENTIAL", "COOKIE"].iter().any(|word| name.contains(word))
}

/// Stands for a value that is not shown.
pub const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_flat_and_languages_are_words() {
        let call = r#"{"workspace":"/src/api","code":"true","language":"bash"}"#;
        let call: ExecCall = serde_json::from_str(call).expect("parses");
        assert_eq!((call.place, call.verb, call.language), (Place::Workspace("/src/api".into()), Verb::Exec, Some(Language::Bash)));
        for language in Language::ALL {
            assert_eq!(Language::parse(language.as_str()), Some(language));
            assert_eq!(Language::of(language.kind()), Some(language));
        }
        assert_eq!(Language::of(TerminalKind::Terminal), None);
    }

    #[test]
    fn secrets_are_told_by_their_names() {
        for name in ["GITHUB_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "AUTH"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "FOO"] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
