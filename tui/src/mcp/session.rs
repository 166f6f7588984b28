//! Tools for the record of a task: what it is, how far it is, what is to be known to go on with it.

use rmcp::handler::server::tool::ToolRoute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::filter::{Filter, Order};
use shared::id::SessionId;
use shared::message::{Changed, Failure, NewSession, Pause, Request, Resume, Resumption};
use shared::session::{Session, Status};

use super::row::{Continuation, Row, StatusWord};
use super::server::{Call, Server};
use super::tool::{self, About, Effect};
use crate::environment;

/// Sessions in a list when no number is given, and at most.
const LIST: u32 = 50;
const MAX_LIST: u32 = 200;

pub fn tools() -> Vec<ToolRoute<Server>> {
    vec![
        tool::structured::<ListArguments, Listed, _, _, _>(
            &About {
                name: "session_list",
                title: "List sessions",
                description: "The sessions of this machine, the most recently active first: terminals with their programs, and records of \
tasks. Without a filter those that live and those that ended within a day. Use it to find a session's name or id, or to see what runs.",
                effect: Effect::Reads,
            },
            list,
        ),
        tool::structured::<StartArguments, Row, _, _, _>(
            &About {
                name: "session_start",
                title: "Start the record of a task",
                description: "Open the record of a task, without a program: what is to be done, a budget of iterations, context for whoever \
goes on. Keep its `session`: it stays valid across conversations and restarts. A `name` that has a live session continues it with \
the new task; without a name one is made from the folder. Then: session_iterate for each round of work, session_event for facts, \
session_context to keep what matters, session_complete or session_fail at the end.",
                effect: Effect::Records,
            },
            start,
        ),
        tool::structured::<IterateArguments, Row, _, _, _>(
            &About {
                name: "session_iterate",
                title: "Count an iteration",
                description: "Count one round of work on a task. The one that uses up max_iterations makes the session `timeout`: then \
stop and let a person review it (session_resume with a larger max_iterations goes on).",
                effect: Effect::Records,
            },
            async |call: Call, given: IterateArguments| {
                let request = Request::Iterate { name: own(given.session)?, data: given.data.map_or(Value::Null, Value::Object) };
                change(&call, request).await
            },
        ),
        tool::structured::<EventArguments, Row, _, _, _>(
            &About {
                name: "session_event",
                title: "Record a custom event",
                description: "Record a custom event of a session (deployed, tests_passed, decision, …), with JSON data. \
People and other programs see it at once, and webhooks can hear of it.",
                effect: Effect::Records,
            },
            async |call: Call, given: EventArguments| {
                let data = given.data.map_or(Value::Null, Value::Object);
                change(&call, Request::Tell { name: own(given.session)?, kind: given.kind, data }).await
            },
        ),
        tool::structured::<PauseArguments, Row, _, _, _>(
            &About {
                name: "session_pause",
                title: "Pause a session",
                description: "Pause a session, with a reason: work waits for an answer or a decision. Everything it runs stands still, uses no processor \
time and loses nothing; session_resume goes on exactly there. With hibernate its processes are ended, which frees their memory, and are \
started again in the same folder when it is resumed or used. Pausing the session you run in stops you too.",
                effect: Effect::Records,
            },
            async |call: Call, given: PauseArguments| {
                let (reason, hibernate) = (given.reason, given.hibernate);
                change(&call, Request::Pause(Pause { name: own(given.session)?, reason, hibernate, ..Pause::default() })).await
            },
        ),
        tool::structured::<ResumeArguments, Row, _, _, _>(
            &About {
                name: "session_resume",
                title: "Resume a session",
                description: "Go on with a paused session, or, with a larger max_iterations, with one whose iterations were used up.",
                effect: Effect::Records,
            },
            async |call: Call, given: ResumeArguments| {
                let (max_iterations, environment) = (given.max_iterations, Some(environment::inherited()));
                change(&call, Request::Resume(Resume { name: own(given.session)?, max_iterations, environment, ..Resume::default() })).await
            },
        ),
        tool::structured::<CompleteArguments, Row, _, _, _>(
            &About {
                name: "session_complete",
                title: "Complete a session",
                description: "Say that a session's task is done, and what came of it. Its program goes on, if it has one.",
                effect: Effect::Records,
            },
            async |call: Call, given: CompleteArguments| {
                change(&call, Request::Complete { name: own(given.session)?, result: given.result }).await
            },
        ),
        tool::structured::<FailArguments, Row, _, _, _>(
            &About {
                name: "session_fail",
                title: "Fail a session",
                description: "Say that a session's task has failed, and why. Its program goes on, if it has one.",
                effect: Effect::Records,
            },
            async |call: Call, given: FailArguments| change(&call, Request::Fail { name: own(given.session)?, error: given.error }).await,
        ),
        tool::structured::<ContextArguments, Continuation, _, _, _>(
            &About {
                name: "session_context",
                title: "Context of a session",
                description: "Everything needed to go on with a session: task, status, iterations, context, metadata, recent events, and \
whether it can be resumed. Call it first when you come back to a task. `set` is merged into the context before (objects key by key at \
every depth, null takes a key away), `metadata` into the metadata (model, cost, tokens, …).",
                effect: Effect::RecordsOnce,
            },
            context,
        ),
    ]
}

/// The session that is meant: the one given, else the one we run in.
pub fn own(given: Option<String>) -> Result<String, Failure> {
    given.or_else(|| std::env::var("SESSIONS_SESSION").ok().filter(|session| !session.is_empty())).ok_or_else(|| {
        Failure::usage("say which session is meant: give its id or name as `session` (session_list shows them, session_start opens one)")
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Only these; any filter searches all sessions, however long ago they ended.
    status: Option<Vec<StatusWord>>,
    /// Only of this mode.
    mode: Option<String>,
    /// Only in this folder.
    workspace: Option<String>,
    /// Only with this text in the task.
    text: Option<String>,
    /// Every session, however long ago it ended.
    all: Option<bool>,
    /// At most this many.
    #[schemars(range(min = 1, max = 200), extend("default" = 50))]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    /// What is to be done, in words.
    task: String,
    /// A name people can use; no spaces or slashes.
    name: Option<String>,
    /// What kind of work it is, in a word of yours.
    mode: Option<String>,
    /// How many iterations before it has to be reviewed (50 if none is given).
    #[schemars(range(min = 1))]
    max_iterations: Option<u64>,
    /// What whoever goes on with it needs to know.
    context: Option<Map<String, Value>>,
    /// About the work: model, cost, tokens, …
    metadata: Option<Map<String, Value>>,
    /// Absolute path of the folder it is about. Without it, where the name was left, or the folder the client works in.
    workspace: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IterateArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// Kept with the iteration, as in {"phase": "analysis"}.
    data: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// What kind of fact: letters, digits and _ - . :
    #[serde(rename = "type")]
    kind: String,
    /// Kept with it.
    data: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PauseArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// Why.
    reason: Option<String>,
    /// End its processes and free their memory; refused while it is working.
    #[serde(default)]
    hibernate: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// A new budget, in all.
    #[schemars(range(min = 1))]
    max_iterations: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompleteArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// What came of it.
    result: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FailArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// What went wrong.
    error: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// Merged into the context.
    set: Option<Map<String, Value>>,
    /// Merged into the metadata.
    metadata: Option<Map<String, Value>>,
}

async fn list(call: Call, given: ListArguments) -> Result<Listed, Failure> {
    let limit = given.limit.unwrap_or(LIST).clamp(1, MAX_LIST);
    let workspace = match given.workspace {
        Some(workspace) => Some(call.workspace(Some(&workspace)).await?),
        None => None,
    };
    let filter = Filter {
        statuses: given.status.unwrap_or_default().into_iter().map(Status::from).collect(),
        all: given.all.unwrap_or_default(),
        mode: given.mode,
        workspace,
        text: given.text,
        // one more, to know whether there are more
        limit: Some(limit + 1),
        order: Order::ActiveFirst,
        ..Filter::default()
    };
    let sessions: Vec<Session> = call.ask(Request::List(filter)).await?;
    let has_more = sessions.len() > limit as usize;
    let sessions = sessions.into_iter().take(limit as usize).map(|session| Row::from(session).in_one_line()).collect();
    Ok(Listed { sessions, has_more })
}

async fn start(call: Call, given: StartArguments) -> Result<Row, Failure> {
    let here = call.workspace(given.workspace.as_deref()).await?;
    let new = NewSession {
        session: Some(SessionId::new()),
        name: given.name,
        workspace: given.workspace.is_some().then(|| here.clone()),
        here,
        no_run: true,
        environment: environment::inherited(),
        umask: Some(environment::umask()),
        task: Some(given.task),
        mode: given.mode,
        max_iterations: given.max_iterations,
        context: given.context.map_or(Value::Null, Value::Object),
        metadata: given.metadata.map_or(Value::Null, Value::Object),
        ..NewSession::default()
    };
    change(&call, Request::New(new)).await
}

/// A call that changes a session, and the session after it.
pub async fn change(call: &Call, request: Request) -> Result<Row, Failure> {
    let changed: Changed = call.ask(request).await?;
    Ok(Row::from(changed))
}

async fn context(call: Call, given: ContextArguments) -> Result<Continuation, Failure> {
    let object = |given: Option<Map<String, Value>>| given.map_or(Value::Null, Value::Object);
    let request = Request::Context { name: own(given.session)?, set: object(given.set), metadata: object(given.metadata) };
    Ok(Continuation::from(call.ask::<Resumption>(request).await?))
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    sessions: Vec<Row>,
    /// There are more than `limit`.
    has_more: bool,
}
