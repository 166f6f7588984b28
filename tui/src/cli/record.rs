//! iterate, event, tool-call, learn, context.

use clap::Subcommand;
use serde_json::Value;
use shared::message::{Failure, Request, Resumption};
use shared::paths::Paths;
use shared::text::visible;

use super::{event, life, parse, print, print_json, table};
use crate::connect;

#[derive(Subcommand)]
pub enum RecordCommand {
    /// Count an iteration of a session's work
    #[command(
        after_help = "The one that uses up the budget (--max-iterations of `new`) makes the session `timeout`.\n\nExample:\n  sessions-tui iterate fix --data '{\"phase\":\"analysis\"}'"
    )]
    Iterate {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// An object to keep with it (at most 64 KiB)
        #[arg(long, value_name = "JSON", value_parser = parse::json)]
        data: Option<Value>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Record a custom event
    #[command(after_help = "Example:\n  sessions-tui event fix deployed --data '{\"to\":\"staging\"}'")]
    Event {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// What kind of fact: letters, digits and _ - . :
        #[arg(value_name = "TYPE")]
        kind: String,
        /// JSON to keep with it (at most 64 KiB)
        #[arg(long, value_name = "JSON", value_parser = parse::json)]
        data: Option<Value>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Record a tool call
    #[command(
        after_help = "The tool's name is added to metadata.tools_used.\n\nExample:\n  sessions-tui tool-call fix bash --input '{\"command\":\"npm test\"}' --output '{\"exitCode\":0}'"
    )]
    ToolCall {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// The tool's name
        tool: String,
        /// What it was called with
        #[arg(long, value_name = "JSON", value_parser = parse::json)]
        input: Option<Value>,
        /// What it answered
        #[arg(long, value_name = "JSON", value_parser = parse::json)]
        output: Option<Value>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep what was learned
    #[command(after_help = "Example:\n  sessions-tui learn fix 'the cache must be cleared first' --file expertise/developer.md")]
    Learn {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// What was learned
        text: String,
        /// Where it was written down
        #[arg(long)]
        file: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Everything needed to go on with a session; --set merges into its context first
    #[command(
        after_help = "Objects are merged key by key, at every depth; null takes a key away; anything else replaces what was there.\n\nExamples:\n  sessions-tui context fix --json\n  sessions-tui context fix --set '{\"next\":\"write tests\"}'\n  sessions-tui context fix --metadata '{\"cost\":0.12,\"tokens\":{\"total\":5200}}'"
    )]
    Context {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// An object to merge into the context
        #[arg(long, value_name = "JSON", value_parser = parse::json)]
        set: Option<Value>,
        /// An object to merge into the metadata (model, cost, tokens, …)
        #[arg(long, value_name = "JSON", value_parser = parse::json)]
        metadata: Option<Value>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn perform(paths: &Paths, command: RecordCommand) -> Result<(), Failure> {
    let given = |value: Option<Value>| value.unwrap_or_default();
    match command {
        RecordCommand::Iterate { name, data, json } => life::changed(paths, Request::Iterate { name, data: given(data) }, json).await,
        RecordCommand::Event { name, kind, data, json } => {
            life::changed(paths, Request::Tell { name, kind, data: given(data) }, json).await
        }
        RecordCommand::ToolCall { name, tool, input, output, json } => {
            life::changed(paths, Request::ToolCall { name, tool, input: given(input), output: given(output) }, json).await
        }
        RecordCommand::Learn { name, text, file, json } => life::changed(paths, Request::Learn { name, text, file }, json).await,
        RecordCommand::Context { name, set, metadata, json } => {
            let request = Request::Context { name, set: given(set), metadata: given(metadata) };
            let resumption: Resumption = connect::call(paths, request).await?;
            if json {
                return print_json(&resumption);
            }
            if let Some(previous) = &resumption.previous {
                eprintln!("{}; this is session {}", visible(&previous.sentence()), resumption.id);
            }
            print(&words(&resumption))
        }
    }
}

fn words(resumption: &Resumption) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let _ = writeln!(out, "{} {} {}", visible(&resumption.name), table::mark(resumption.status), resumption.status);
    for (label, value) in [("task", &resumption.task), ("mode", &resumption.mode), ("folder", &resumption.cwd)] {
        if let Some(value) = value {
            out += &table::field(label, value);
        }
    }
    out += &table::field("iterations", &format!("{} of {}", resumption.iterations, resumption.max_iterations));
    out += &table::field("resumable", &format!("{}: {}", if resumption.resumable { "yes" } else { "no" }, resumption.reason));
    for (label, value) in [("context", &resumption.context), ("metadata", &resumption.metadata)] {
        if value.as_object().is_some_and(|map| !map.is_empty()) {
            out += &table::field(label, &value.to_string());
        }
    }
    for (label, value) in [("result", &resumption.result), ("error", &resumption.error)] {
        if let Some(value) = value {
            out += &table::field(label, value);
        }
    }
    if !resumption.recent_events.is_empty() {
        let _ = writeln!(out, "recent events");
        for recent in &resumption.recent_events {
            let _ = writeln!(out, "{}", event::words(recent));
        }
    }
    out
}
