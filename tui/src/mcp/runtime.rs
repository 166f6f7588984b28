//! The tool `runtime`: code in an interpreter that remembers, and what it remembers.

use rmcp::handler::server::tool::ToolRoute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::exec::{ExecCall, ExecResult, HistoryEntry, Language, Place, ResetDone, States, Verb};
use shared::id::ExecId;
use shared::message::{Failure, Request};

use super::clip::{self, add_note};
use super::described::{Described, LanguageWord};
use super::exec;
use super::server::{Call, Server};
use super::tool::{self, About, Effect};
use crate::environment;

/// How long a call waits for its code when it does not say, and at most: below the time any client gives a tool.
const YIELD_MS: u64 = 10_000;
const MAX_YIELD_MS: u64 = 30_000;

/// Entries of a history when none are asked for, and at most.
const HISTORY: u32 = 20;
const MAX_HISTORY: u32 = 500;

const RUNTIME: About = About {
    name: "runtime",
    title: "Language runtime",
    description: "Run code in a bash, python or node interpreter that stays alive between calls: working directory, variables, \
functions, imports and environment are kept, for each workspace folder (or session) its own. Prefer it to one-off shell commands \
whenever state or structured results help.\n\
- exec: run statements (default language bash). Gives success, exitCode, stdout, stderr, cwd. Code that fails is a result \
(success false), not an error of the tool; the interpreter goes on.\n\
- eval: the value of one expression (default language python), as text (value) and as JSON where possible (json).\n\
- A call that still runs after yield_ms returns running: true with its execId and goes on; wait for it with action result \
(exec_id), interrupt it with action cancel (exec_id). Give long work a small yield_ms and do something else meanwhile.\n\
- state: working_dir, env_vars, imports, names and recent calls. history: past calls. reset: fresh interpreters, clean state.\n\
Standard input is empty: for programs that ask questions or draw a screen use terminal_start. An interpreter that was idle for long \
is ended; the next call starts a fresh one in the same folder with the same environment and says so (restarted, note).",
    effect: Effect::Acts,
};

pub fn tools() -> Vec<ToolRoute<Server>> {
    vec![tool::structured::<Arguments, Described, _, _, _>(&RUNTIME, perform)]
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Exec,
    Eval,
    State,
    Reset,
    History,
    Result,
    Cancel,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// exec runs code; eval gives the value of an expression; state, reset and history look at or renew the interpreters; result waits for a call that still runs; cancel interrupts it.
    action: Action,
    /// The code, for exec and eval; required there, ignored elsewhere.
    command: Option<String>,
    /// Without it: bash for exec, python for eval, all languages for state, reset and history.
    language: Option<LanguageWord>,
    /// For history and state: how many of the newest calls.
    #[schemars(range(min = 1, max = 500), extend("default" = 20))]
    limit: Option<u32>,
    /// A session whose interpreters are meant (its id or name), instead of a folder's.
    session: Option<String>,
    /// Absolute path of the folder whose interpreters are meant; they start in it. Without it, the folder the client works in.
    workspace: Option<String>,
    /// For exec, eval and result: come back after this many milliseconds even if the code still runs.
    #[schemars(range(min = 0, max = 30000), extend("default" = 10000))]
    yield_ms: Option<u64>,
    /// For exec and eval: interrupt the code after this many milliseconds. Without it, it may run for as long as it wants.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// For result and cancel: the execId of the call.
    exec_id: Option<String>,
    /// The exact text, with escape sequences and characters that a person does not see. Without it those are left out or named, and marked.
    #[expect(dead_code, reason = "read for all tools at once, in tool.rs")]
    raw: Option<bool>,
}

async fn perform(call: Call, arguments: Arguments) -> Result<Map<String, Value>, Failure> {
    match arguments.action {
        Action::Exec => run(&call, arguments, Verb::Exec).await,
        Action::Eval => run(&call, arguments, Verb::Eval).await,
        Action::Result => result(&call, arguments).await,
        Action::Cancel => {
            let exec = exec_id(arguments.exec_id.as_deref())?;
            finish(&call, call.ask(Request::Cancel { exec }).await?).await
        }
        Action::State => state(&call, arguments).await,
        Action::History => history(&call, arguments).await,
        Action::Reset => reset(&call, arguments).await,
    }
}

async fn place(call: &Call, arguments: &Arguments) -> Result<Place, Failure> {
    match (&arguments.session, &arguments.workspace) {
        (Some(_), Some(_)) => Err(Failure::usage("give `session` or `workspace`, not both: each has interpreters of its own")),
        (Some(session), None) => Ok(Place::Session(session.clone())),
        (None, workspace) => Ok(Place::Workspace(call.workspace(workspace.as_deref()).await?)),
    }
}

fn exec_id(given: Option<&str>) -> Result<ExecId, Failure> {
    let given = given.ok_or_else(|| Failure::usage("say which call is meant: give its execId as `exec_id`"))?;
    ExecId::parse(given).ok_or_else(|| Failure::usage(format!("{given:?} is no execId: action history lists those of past calls")))
}

fn patience(arguments: &Arguments) -> u64 {
    arguments.yield_ms.unwrap_or(YIELD_MS).min(MAX_YIELD_MS)
}

async fn run(call: &Call, arguments: Arguments, verb: Verb) -> Result<Map<String, Value>, Failure> {
    let place = place(call, &arguments).await?;
    let soft_limit_ms = Some(patience(&arguments));
    let code =
        arguments.command.ok_or_else(|| Failure::usage(format!("there is nothing to {}: give the code as `command`", verb.as_str())))?;
    let id = ExecId::new();
    let code = ExecCall {
        place,
        id: Some(id),
        code,
        verb,
        language: Some(arguments.language.map_or_else(|| verb.default_language(), Language::from)),
        stdin: None,
        timeout_ms: arguments.timeout_ms,
        soft_limit_ms,
        stream: false,
        output_limit: Some(clip::LIMIT),
        environment: environment::inherited(),
        umask: Some(environment::umask()),
    };
    finish(call, exec::run(call, id, code).await?).await
}

/// Waits for a call that was started before. Giving up on that leaves the call alone.
async fn result(call: &Call, arguments: Arguments) -> Result<Map<String, Value>, Failure> {
    let exec = exec_id(arguments.exec_id.as_deref())?;
    let request = Request::Result { exec, wait_ms: Some(patience(&arguments)), output_limit: Some(clip::LIMIT), stream: false };
    finish(call, call.ask_patiently(request, "still running").await?).await
}

/// A result as the model gets it: the fields of the other doors, in a size it can read.
async fn finish(call: &Call, mut result: ExecResult) -> Result<Map<String, Value>, Failure> {
    clip::fit_result(call, &mut result).await;
    if result.running {
        let id = result.exec_id;
        add_note(&mut result.note, &format!("still running: action result with exec_id {id} waits for it, action cancel interrupts it"));
    }
    object(&result)
}

async fn state(call: &Call, arguments: Arguments) -> Result<Map<String, Value>, Failure> {
    let place = place(call, &arguments).await?;
    let (language, history) = (arguments.language.map(Language::from), Some(entries(&arguments)));
    let states: States = call.ask(Request::State { place, language, history, reveal: false }).await?;
    let mut fields = Map::new();
    fields.insert("success".into(), json!(true));
    if let Some(session) = states.session {
        fields.insert("session".into(), json!(session));
    }
    if let Some(name) = states.name {
        fields.insert("name".into(), json!(name));
    }
    let mut note = None;
    let mut runtimes = Vec::new();
    for state in &states.runtimes {
        let mut state = object(state)?;
        if clip::fit_state(&mut state) {
            note = Some("long lists are cut: look for what you need with code".to_owned());
        }
        runtimes.push(Value::Object(state));
    }
    if runtimes.is_empty() {
        note = Some("no interpreter has been used here yet: exec or eval starts one".to_owned());
    }
    match <[Value; 1]>::try_from(runtimes) {
        Ok([one]) => fields.insert("state".into(), one),
        Err(several) => fields.insert("states".into(), Value::Array(several)),
    };
    fields.extend(note.map(|note| ("note".to_owned(), json!(note))));
    Ok(fields)
}

async fn history(call: &Call, arguments: Arguments) -> Result<Map<String, Value>, Failure> {
    let place = place(call, &arguments).await?;
    let (language, limit) = (arguments.language.map(Language::from), Some(entries(&arguments)));
    let history: Vec<HistoryEntry> = call.ask(Request::History { place, language, limit }).await?;
    let mut history = history.iter().map(|entry| object(entry).map(Value::Object)).collect::<Result<Vec<Value>, Failure>>()?;
    let dropped = clip::fit_history(&mut history);
    let mut fields = Map::new();
    fields.insert("success".into(), json!(true));
    fields.insert("history".into(), Value::Array(history));
    if dropped > 0 {
        fields.insert("note".into(), json!(format!("the {dropped} oldest of these are left out: ask for fewer")));
    }
    Ok(fields)
}

fn entries(arguments: &Arguments) -> u32 {
    arguments.limit.unwrap_or(HISTORY).clamp(1, MAX_HISTORY)
}

async fn reset(call: &Call, arguments: Arguments) -> Result<Map<String, Value>, Failure> {
    let place = place(call, &arguments).await?;
    let done: ResetDone = call.ask(Request::ResetRuntime { place, language: arguments.language.map(Language::from) }).await?;
    let mut fields = Map::new();
    fields.insert("success".into(), json!(true));
    fields.extend(object(&done)?);
    Ok(fields)
}

fn object(value: &impl Serialize) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Failure::failed("the daemon's answer is not an object")),
        Err(error) => Err(Failure::failed(format!("the daemon's answer could not be written: {error}"))),
    }
}
