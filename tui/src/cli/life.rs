//! complete, fail, reset.

use std::path::PathBuf;

use clap::Subcommand;
use shared::exec::Language;
use shared::message::{Changed, Failure, Request};
use shared::paths::Paths;
use shared::session::{ITERATIONS, Status};
use shared::text::visible;

use super::{exec, parse, print, print_json, table};
use crate::connect;

#[derive(Subcommand)]
pub enum LifeCommand {
    /// Say that a session's task is done
    #[command(after_help = "Its program goes on, if it has one.\n\nExample:\n  sessions-tui complete fix --result 'the login works again'")]
    Complete {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// What came of it
        #[arg(long)]
        result: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Say that a session's task has failed
    #[command(after_help = "Its program goes on, if it has one.\n\nExample:\n  sessions-tui fail fix --error 'the tests do not pass'")]
    Fail {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// What went wrong
        #[arg(long)]
        error: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session with its program, and forget its folder and variables; or only the runtimes of a place
    #[command(
        after_help = "With a NAME the session ends and its next one starts clean. With -s, -w or -l only runtimes end, and the next call starts clean.\n\nExamples:\n  sessions-tui reset api && sessions-tui new -d -n api\n  sessions-tui reset -l python               this folder's python\n  sessions-tui reset -s api                  all runtimes of a session, not its program"
    )]
    Reset {
        /// The session: its exact name or id
        #[arg(required_unless_present_any = ["session", "workspace", "language"], conflicts_with_all = ["session", "workspace", "language"])]
        name: Option<String>,
        /// The runtimes of a session
        #[arg(long, short, value_name = "NAME", conflicts_with = "workspace")]
        session: Option<String>,
        /// The runtimes of a folder [default: this one]
        #[arg(long, short, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// Only this language: bash, python or node
        #[arg(long, short, value_name = "LANG", value_parser = parse::language)]
        language: Option<Language>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn perform(paths: &Paths, command: LifeCommand) -> Result<(), Failure> {
    let (request, json) = match command {
        LifeCommand::Complete { name, result, json } => (Request::Complete { name, result }, json),
        LifeCommand::Fail { name, error, json } => (Request::Fail { name, error }, json),
        LifeCommand::Reset { name: Some(name), json, .. } => (Request::Reset { name }, json),
        LifeCommand::Reset { name: None, session, workspace, language, json } => {
            return exec::reset(paths, exec::PlaceArgs::new(session, workspace), language, json).await;
        }
    };
    changed(paths, request, json).await
}

/// A call that changes a session: prints its new state, and what else is to be known.
pub async fn changed(paths: &Paths, request: Request, json: bool) -> Result<(), Failure> {
    let changed: Changed = connect::call(paths, request).await?;
    print_changed(&changed, json)
}

/// Prints a session's new state.
pub fn print_changed(changed: &Changed, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(changed);
    }
    if let Some(note) = &changed.note {
        eprintln!("{}", visible(note));
    }
    let session = &changed.session;
    if session.status == Status::Timeout && session.status_reason.as_deref() == Some(ITERATIONS) {
        return print(&format!(
            "{}: iteration budget used up ({} of {})\n",
            visible(&session.name),
            session.iterations,
            session.max_iterations
        ));
    }
    let budget =
        if session.iterations > 0 { format!(", iteration {} of {}", session.iterations, session.max_iterations) } else { String::new() };
    print(&format!("{} is {}{budget}\n", visible(&session.name), table::status_words(session)))
}
