//! What the tool `runtime` gives, in a schema. The values themselves are those of the wire, unchanged: a test holds the two
//! together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::exec::Language;

// a language as callers name it; a doc comment would become words for models
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LanguageWord {
    Bash,
    Python,
    Node,
}

impl From<LanguageWord> for Language {
    fn from(word: LanguageWord) -> Self {
        match word {
            LanguageWord::Bash => Self::Bash,
            LanguageWord::Python => Self::Python,
            LanguageWord::Node => Self::Node,
        }
    }
}

impl From<Language> for LanguageWord {
    fn from(language: Language) -> Self {
        match language {
            Language::Bash => Self::Bash,
            Language::Python => Self::Python,
            Language::Node => Self::Node,
        }
    }
}

/// What the tool gives, for its schema: all actions in one flat object. The values are those of the wire.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub struct Described {
    /// The code ended well; of a call that still runs, that it was taken.
    success: bool,
    /// Absent while the code runs.
    exit_code: Option<i32>,
    stdout: Option<String>,
    stderr: Option<String>,
    /// What went wrong, in a sentence.
    error: Option<String>,
    /// eval: the value as the language writes it.
    value: Option<String>,
    /// eval: the value as JSON, if it can be.
    json: Option<Value>,
    duration_ms: Option<f64>,
    /// Where the interpreter is after the call.
    cwd: Option<String>,
    /// Names this call to actions result and cancel; kept with the history.
    exec_id: Option<String>,
    language: Option<LanguageWord>,
    /// Id of the session the interpreter belongs to.
    session: Option<String>,
    /// That session's name.
    name: Option<String>,
    /// Which of the streams are given without their middle.
    truncated: Option<Streams<bool>>,
    /// Which of the streams had bytes that are not UTF-8; they were replaced.
    lossy: Option<Streams<bool>>,
    /// Bytes of each stream in all.
    bytes: Option<Streams<u64>>,
    /// The code still runs.
    running: Option<bool>,
    /// Calls before this one, while it waits for its turn.
    queued_behind: Option<u64>,
    /// Its timeout ended it.
    timed_out: Option<bool>,
    /// A signal ended it: its timeout, or cancel.
    interrupted: Option<bool>,
    /// The interpreter was started afresh for this call; note says why and what is gone.
    restarted: Option<bool>,
    /// The interpreter ended with this call; the next one starts a fresh one.
    ended: Option<bool>,
    /// What else is to be known.
    note: Option<String>,
    /// state: of one interpreter.
    state: Option<DescribedState>,
    /// state: of several, or of none.
    states: Option<Vec<DescribedState>>,
    /// history: newest last.
    history: Option<Vec<DescribedEntry>>,
    /// reset: done.
    reset: Option<bool>,
    /// reset: of these.
    languages: Option<Vec<LanguageWord>>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Streams<T> {
    stdout: T,
    stderr: T,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct DescribedState {
    language: LanguageWord,
    /// A process is there.
    alive: bool,
    /// A call is being carried out.
    busy: bool,
    pid: Option<u32>,
    version: Option<String>,
    working_dir: String,
    /// Set or changed since its start; values of secret-looking names are masked.
    env_vars: std::collections::BTreeMap<String, String>,
    env_removed: Option<Vec<String>>,
    imports: Vec<String>,
    /// Names the code has defined.
    names: Vec<String>,
    history: Vec<DescribedEntry>,
    last_activity: Option<String>,
    state_version: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct DescribedEntry {
    exec_id: String,
    command: String,
    verb: String,
    language: LanguageWord,
    /// queued, running, finished, lost or cancelled.
    stage: String,
    exit_code: Option<i32>,
    /// Milliseconds.
    duration: Option<f64>,
    started_at: String,
    author: String,
    session: String,
}

#[cfg(test)]
mod tests {
    use shared::event::Author;
    use shared::exec::{ExecResult, HistoryEntry, PerStream, ResetDone, Stage, State, Verb};
    use shared::id::{ExecId, SessionId};

    use super::*;
    use crate::mcp::schema;
    use serde::Serialize;
    use serde_json::{Map, json};

    fn object(value: &impl Serialize) -> Map<String, Value> {
        serde_json::from_value(serde_json::to_value(value).expect("JSON")).expect("an object")
    }

    /// Every field of the wire is in the schema: a field added there must be described here.
    #[test]
    fn everything_that_is_given_is_described() {
        let session = SessionId::new();
        let result = ExecResult {
            missing_bytes: 0,
            success: true,
            exit_code: Some(0),
            stdout: String::new(),
            stderr: String::new(),
            error: Some(String::new()),
            value: Some(String::new()),
            json: Some(json!(1)),
            duration_ms: 1.0,
            cwd: Some("/".into()),
            exec_id: ExecId::new(),
            language: Language::Bash,
            session,
            name: "x".into(),
            truncated: PerStream { stdout: true, stderr: true },
            lossy: PerStream { stdout: true, stderr: true },
            bytes: PerStream { stdout: 1, stderr: 1 },
            running: true,
            queued_behind: Some(1),
            timed_out: true,
            interrupted: true,
            restarted: true,
            ended: true,
            note: Some(String::new()),
        };
        let entry = HistoryEntry {
            exec_id: ExecId::new(),
            command: String::new(),
            verb: Verb::Exec,
            language: Language::Bash,
            stage: Stage::Finished,
            exit_code: Some(0),
            duration: Some(1.0),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            author: Author::Agent,
            session,
        };
        let state = State {
            language: Language::Bash,
            alive: true,
            busy: true,
            pid: Some(1),
            version: Some(String::new()),
            working_dir: String::new(),
            env_vars: [("A".to_owned(), String::new())].into(),
            env_removed: vec![String::new()],
            imports: vec![],
            names: vec![],
            history: vec![],
            last_activity: Some(jiff::Timestamp::UNIX_EPOCH),
            state_version: 1,
        };
        let schema = Value::Object(schema::output::<Described>().as_ref().clone());
        let properties = &schema["properties"];
        let done = ResetDone { reset: true, languages: vec![], note: String::new() };
        for (given, described) in [
            (object(&result), properties),
            (object(&done), properties),
            (object(&entry), &properties["history"]["items"]["properties"]),
            (object(&state), &properties["state"]["properties"]),
            (object(&state), &properties["states"]["items"]["properties"]),
        ] {
            for name in given.keys() {
                assert!(described.get(name).is_some(), "{name} is not described in {described}");
            }
        }
        assert_eq!(schema["required"], json!(["success"]));
        assert_eq!(schema["type"], "object");
        let text = schema.to_string();
        for word in ["$ref", "null", "format", "$defs"] {
            assert!(!text.contains(&format!("\"{word}\"")), "{word} in {text}");
        }
    }
}
