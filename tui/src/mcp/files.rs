//! A tool for the files that changed in a session's workspace.

use rmcp::handler::server::tool::ToolRoute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shared::message::{Failure, Request};
use shared::watch::{ChangedFiles, FileChange, Since};

use super::server::{Call, Server};
use super::session::own;
use super::tool::{self, About, Effect};

/// Files when no number is given, and at most.
const LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;

pub fn tools() -> Vec<ToolRoute<Server>> {
    vec![tool::structured::<FilesArguments, Changes, _, _, _>(
        &About {
            name: "session_files",
            title: "List changed files",
            description: "The files that were created, changed or removed in a session's workspace while it was active, by whomever, \
the newest change first; what .gitignore leaves out is not among them. With since_command only those since its last command or call began: \
use it after a build or a script to see what it touched. `watch` says whether changes are noticed at all.",
            effect: Effect::Reads,
        },
        files,
    )]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilesArguments {
    /// Id or name. Without it, the session this client runs in.
    session: Option<String>,
    /// Only since its last command (of a shell) or call (of a runtime) began.
    since_command: Option<bool>,
    /// Only since then: 2026-11-16T09:30:00Z.
    since: Option<String>,
    /// At most this many.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChangeWord {
    Created,
    Changed,
    Removed,
}

impl From<FileChange> for ChangeWord {
    fn from(change: FileChange) -> Self {
        match change {
            FileChange::Created => Self::Created,
            FileChange::Changed => Self::Changed,
            FileChange::Removed => Self::Removed,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct File {
    /// From the workspace on.
    path: String,
    change: ChangeWord,
    /// When it was last seen to change.
    at: String,
}

#[derive(Serialize, JsonSchema)]
struct Changes {
    workspace: String,
    /// Whether changes are noticed now, in words.
    watch: String,
    /// From when on they are told.
    since: String,
    /// The command or call whose beginning that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    files: Vec<File>,
    /// Files beyond the limit.
    more: u64,
}

async fn files(call: Call, given: FilesArguments) -> Result<Changes, Failure> {
    let since = match (tool::moment("session_files", "since", given.since)?, given.since_command.unwrap_or_default()) {
        (Some(_), true) => return Err(Failure::usage("session_files: give `since` or `since_command`, not both")),
        (Some(at), false) => Since::At(at),
        (None, true) => Since::Command,
        (None, false) => Since::Start,
    };
    let limit = Some(given.limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT));
    let found: ChangedFiles = call.ask(Request::Files { name: own(given.session)?, since, limit, at_once: true }).await?;
    Ok(Changes {
        watch: found.watch.in_words(),
        workspace: found.workspace,
        since: found.since.to_string(),
        command: found.command,
        files: found.files.into_iter().map(|file| File { path: file.path, change: file.change.into(), at: file.at.to_string() }).collect(),
        more: found.more,
    })
}
