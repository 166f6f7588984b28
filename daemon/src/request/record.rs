//! What agents and people write into a session's record, and the one call that reads what is needed to go on.

use serde_json::{Map, Value, json};
use shared::event::{Author, check_type};
use shared::json::{self, MAX_DATA};
use shared::message::{Changed, Failure, Resumption};
use shared::session::Status;

use super::life::{answer, with_note};
use super::{find, find_to_use};
use crate::context::Context;
use crate::lifecycle;
use crate::store::Fact;

/// Events that come with the context: enough to see what was done last.
const RECENT_EVENTS: u32 = 20;

/// Longest name of a tool.
const MAX_TOOL: usize = 200;

/// Data of a caller: an object, bounded; nothing given is an empty one.
pub(super) fn data(what: &str, value: Value) -> Result<Map<String, Value>, Failure> {
    if value.is_null() {
        return Ok(Map::new());
    }
    json::check(what, &value, MAX_DATA).and_then(|()| json::object(what, value)).map_err(Failure::usage)
}

pub async fn iterate(context: &Context, name: String, given: Value, author: Author) -> Result<Changed, Failure> {
    let given = data("--data", given)?;
    if let Some(key) = ["iteration", "max_iterations"].into_iter().find(|key| given.contains_key(*key)) {
        return Err(Failure::usage(format!("{key:?} in --data is written by the daemon itself: choose another key")));
    }
    let (session, previous) = find_to_use(context, name, author).await?;
    let session = context.store.iterate(session.id, given, author).await?;
    if session.status == Status::Timeout {
        crate::pausing::settle(context, session.id).await;
        let note =
            format!("its budget is used up; its program stands still: `sessions-tui resume {} --max-iterations N` goes on", session.name);
        return Ok(with_note(context, session, previous, &note));
    }
    Ok(answer(context, session, previous))
}

pub async fn tell(context: &Context, name: String, kind: String, given: Value, author: Author) -> Result<Changed, Failure> {
    check_type(&kind).map_err(Failure::usage)?;
    let given = if given.is_null() { json!({}) } else { given };
    json::check("--data", &given, MAX_DATA).map_err(Failure::usage)?;
    let (session, previous) = find_to_use(context, name, author).await?;
    let session = context.store.tell_of(Fact::new(session.id, author, kind, given)).await?;
    Ok(answer(context, session, previous))
}

pub async fn tool_call(
    context: &Context,
    name: String,
    tool: String,
    input: Value,
    output: Value,
    author: Author,
) -> Result<Changed, Failure> {
    if tool.is_empty() || tool.len() > MAX_TOOL || !shared::text::is_visible(&tool) || shared::text::is_blank(&tool) {
        return Err(Failure::usage(format!("a tool's name has 1 to {MAX_TOOL} visible characters")));
    }
    let mut told = json!({"tool": tool});
    for (key, value) in [("input", input), ("output", output)] {
        if !value.is_null() {
            told[key] = value;
        }
    }
    json::check("input and output together", &told, MAX_DATA).map_err(Failure::usage)?;
    let (session, previous) = find_to_use(context, name, author).await?;
    let session = context.store.tool_call(session.id, tool, told, author).await?;
    Ok(answer(context, session, previous))
}

pub async fn learn(context: &Context, name: String, text: String, file: Option<String>, author: Author) -> Result<Changed, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("there is nothing to learn in an empty text"));
    }
    let mut told = json!({"text": text});
    if let Some(file) = file {
        told["file"] = json!(file);
    }
    json::check("the text", &told, MAX_DATA).map_err(Failure::usage)?;
    let (session, previous) = find_to_use(context, name, author).await?;
    let session = context.store.tell_of(Fact::new(session.id, author, "learning", told)).await?;
    Ok(answer(context, session, previous))
}

/// Everything needed to go on, after what is given was merged in.
pub async fn context(context: &Context, name: String, set: Value, metadata: Value, author: Author) -> Result<Resumption, Failure> {
    let (set, metadata) = (data("--set", set)?, data("--metadata", metadata)?);
    let (session, previous) = if set.is_empty() && metadata.is_empty() {
        (find(context, name).await?, None)
    } else {
        let (session, previous) = find_to_use(context, name, author).await?;
        context.store.merge(session.id, set, metadata, author).await?;
        (context.store.session(session.id).await?, previous)
    };
    let (resumable, reason) = lifecycle::resumable(&session);
    let cwd = context.store.terminals_of(session.id).await?.into_iter().next().map(|terminal| terminal.cwd);
    Ok(Resumption {
        recent_events: context.store.recent_events(session.id, RECENT_EVENTS).await?,
        id: session.id,
        name: session.name,
        workspace: session.workspace,
        cwd,
        mode: session.mode,
        task: session.task,
        status: session.status,
        status_reason: session.status_reason,
        iterations: session.iterations,
        max_iterations: session.max_iterations,
        context: session.context,
        metadata: session.metadata,
        result: session.result,
        error: session.error,
        resumable,
        reason,
        previous,
    })
}
