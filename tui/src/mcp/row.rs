//! Sessions as agents get them: flat, without nulls, in a size that can be read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::event::Event;
use shared::message::{Changed, Resumption};
use shared::runtime::RuntimeState;
use shared::session::{Session, Status};
use shared::text::shell_words;

use super::clip::clip;
use super::described::LanguageWord;

/// A task, a result or an error in a list.
const LINE: usize = 300;

/// The data of one recent event.
const EVENT: usize = 2 << 10;

// a status as callers name it; a doc comment would become words for models
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    Queued,
    Active,
    Paused,
    Completed,
    Failed,
    Timeout,
    Ended,
}

impl From<StatusWord> for Status {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::Queued => Self::Queued,
            StatusWord::Active => Self::Active,
            StatusWord::Paused => Self::Paused,
            StatusWord::Completed => Self::Completed,
            StatusWord::Failed => Self::Failed,
            StatusWord::Timeout => Self::Timeout,
            StatusWord::Ended => Self::Ended,
        }
    }
}

impl From<Status> for StatusWord {
    fn from(status: Status) -> Self {
        match status {
            Status::Queued => Self::Queued,
            Status::Active => Self::Active,
            Status::Paused => Self::Paused,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Timeout => Self::Timeout,
            Status::Ended => Self::Ended,
        }
    }
}

/// A session, without its context: the tool `session_context` gives that.
#[derive(Serialize, JsonSchema)]
pub struct Row {
    /// Its id; other tools take it as `session`.
    session: String,
    name: String,
    workspace: String,
    status: StatusWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// The program in its terminal, if it has had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Whether that program runs now.
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Interpreters that run for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    languages: Option<Vec<LanguageWord>>,
    iterations: u64,
    max_iterations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// What went wrong with the session; `error` is for the call itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_error: Option<String>,
    created_at: String,
    last_activity_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// The session that was meant, if a fresh one had to take its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_session: Option<String>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl From<Session> for Row {
    fn from(session: Session) -> Self {
        let pid = match session.runtime_state {
            Some(RuntimeState::Running { pid } | RuntimeState::Frozen { pid, .. }) => Some(pid),
            _ => None,
        };
        Self {
            session: session.id.to_string(),
            name: session.name,
            workspace: session.workspace,
            status: session.status.into(),
            status_reason: session.status_reason,
            task: session.task,
            mode: session.mode,
            command: (!session.command.is_empty()).then(|| shell_words(&session.command)),
            running: session.runtime_state.is_some_and(|state| state.is_live()),
            pid,
            languages: (!session.languages.is_empty()).then(|| session.languages.into_iter().map(LanguageWord::from).collect()),
            iterations: session.iterations,
            max_iterations: session.max_iterations,
            result: session.result,
            session_error: session.error,
            created_at: session.created_at.to_string(),
            last_activity_at: session.last_activity_at.to_string(),
            ended_at: session.ended_at.map(|at| at.to_string()),
            previous_session: None,
            note: None,
        }
    }
}

impl From<Changed> for Row {
    fn from(changed: Changed) -> Self {
        let previous_session = changed.previous.map(|previous| previous.id.to_string());
        Self { note: changed.note, previous_session, ..Self::from(changed.session) }
    }
}

impl Row {
    /// For a list: long texts are cut.
    pub fn in_one_line(mut self) -> Self {
        for text in [&mut self.task, &mut self.command, &mut self.result, &mut self.session_error].into_iter().flatten() {
            *text = clip(text, LINE);
        }
        self
    }
}

/// Everything needed to go on.
#[derive(Serialize, JsonSchema)]
pub struct Continuation {
    /// Its id; other tools take it as `session`.
    session: String,
    name: String,
    workspace: String,
    /// The folder its terminal was left in.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    status: StatusWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_reason: Option<String>,
    iterations: u64,
    max_iterations: u64,
    resumable: bool,
    /// Why it can be resumed, or why not and what to do.
    reason: String,
    context: Map<String, Value>,
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// What went wrong with the session; `error` is for the call itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_error: Option<String>,
    /// Newest last.
    recent_events: Vec<Fact>,
    /// The session that was meant, if a fresh one had to take its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl From<Resumption> for Continuation {
    fn from(given: Resumption) -> Self {
        let object = |value: Value| match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        Self {
            session: given.id.to_string(),
            name: given.name,
            workspace: given.workspace,
            cwd: given.cwd,
            mode: given.mode,
            task: given.task,
            status: given.status.into(),
            status_reason: given.status_reason,
            iterations: given.iterations,
            max_iterations: given.max_iterations,
            resumable: given.resumable,
            reason: given.reason,
            context: object(given.context),
            metadata: object(given.metadata),
            result: given.result,
            session_error: given.error,
            recent_events: given.recent_events.into_iter().map(Fact::from).collect(),
            previous_session: given.previous.as_ref().map(|previous| previous.id.to_string()),
            note: given.previous.map(|previous| previous.sentence()),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Fact {
    seq: i64,
    at: String,
    author: String,
    #[serde(rename = "type")]
    kind: String,
    /// JSON; text with its beginning if it is long.
    data: Value,
}

impl From<Event> for Fact {
    fn from(event: Event) -> Self {
        let text = event.data.to_string();
        let data = if text.len() > EVENT { Value::String(clip(&text, EVENT)) } else { event.data };
        Self { seq: event.seq, at: event.at.to_string(), author: event.author.to_string(), kind: event.kind, data }
    }
}
