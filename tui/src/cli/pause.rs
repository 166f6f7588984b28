//! pause, resume, restore.

use clap::{Args, Subcommand};
use shared::message::{Failure, Pause, Request, Restored, Resume};
use shared::paths::Paths;
use shared::session::Status;
use shared::terminal::TerminalKind;
use shared::text::visible;

use super::targets::{self, TargetArgs};
use super::{life, parse, print, print_json};
use crate::{connect, environment};

#[derive(Subcommand)]
pub enum PauseCommand {
    /// Pause a session: everything it runs stands still until it is resumed
    #[command(
        after_help = "Every process of the session is stopped where it is, those that went into the background too: it uses no processor time and loses nothing.\n--hibernate ends the processes instead, and frees their memory; the program is started again in the same folder, with the same\narguments and variables, when somebody resumes the session, attaches to it, sends to it or calls its runtimes.\n\nExamples:\n  sessions-tui pause build --reason 'the office closes'\n  sessions-tui pause api --queue-input         what is sent meanwhile is kept for then\n  sessions-tui pause -t python notebook        only its python\n  sessions-tui pause --group builds            every session of a group\n  sessions-tui pause --hibernate old-agent"
    )]
    Pause(PauseArgs),
    /// Go on with a paused session, or with one whose iterations are used up
    #[command(
        after_help = "Examples:\n  sessions-tui resume fix\n  sessions-tui resume fix --max-iterations 100\n  sessions-tui resume --group builds"
    )]
    Resume(ResumeArgs),
    /// Start programs again that were lost when the machine was restarted
    #[command(
        after_help = "Each is started again in the folder it was in, with its arguments, variables and size, in a new session of the same name; what was on its\nscreen stands above. `restore = \"auto\"` in config.toml does this by itself, \"never\" does not offer it.\n\nExamples:\n  sessions-tui restore                 all that were lost\n  sessions-tui restore api notes"
    )]
    Restore {
        /// Sessions: names, ids, or the beginning of either [default: all that were lost]
        names: Vec<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which sessions, or which part of them.
#[derive(Args)]
pub struct Which {
    #[command(flatten)]
    targets: TargetArgs,
    /// Only this terminal of it: terminal (its program), bash, python or node
    #[arg(long, short, value_name = "KIND", value_parser = parse::terminal)]
    terminal: Option<TerminalKind>,
}

#[derive(Args)]
pub struct PauseArgs {
    #[command(flatten)]
    which: Which,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// End the processes and free their memory; they are started again when they are needed
    #[arg(long, conflicts_with_all = ["queue_input", "terminal"])]
    hibernate: bool,
    /// Hibernate also what is working
    #[arg(long, requires = "hibernate")]
    force: bool,
    /// Keep what is typed meanwhile until it goes on, instead of refusing it
    #[arg(long)]
    queue_input: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    which: Which,
    /// A new budget, in all
    #[arg(long, value_name = "N")]
    max_iterations: Option<u64>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub async fn perform(paths: &Paths, command: PauseCommand) -> Result<(), Failure> {
    match command {
        PauseCommand::Pause(args) => {
            let PauseArgs { which, reason, hibernate, force, queue_input, json } = args;
            let terminal = which.terminal;
            let request = move |name| Request::Pause(Pause { name, reason: reason.clone(), hibernate, force, queue_input, terminal });
            each(paths, which, Status::Active, request, json).await
        }
        PauseCommand::Resume(ResumeArgs { which, max_iterations, json }) => {
            let terminal = which.terminal;
            let request =
                move |name| Request::Resume(Resume { name, max_iterations, terminal, environment: Some(environment::inherited()) });
            each(paths, which, Status::Paused, request, json).await
        }
        PauseCommand::Restore { names, json } => restore(paths, names, json).await,
    }
}

/// Those that are named, or those that fit the filters and are in this status.
async fn each(paths: &Paths, which: Which, status: Status, request: impl Fn(String) -> Request, json: bool) -> Result<(), Failure> {
    if let Some(name) = which.targets.only() {
        return life::changed(paths, request(name), json).await;
    }
    let mut client = connect::connect(paths).await?;
    let targets = which.targets.resolve(&mut client, |session| session.status == status).await?;
    targets::change_each(&mut client, &targets, request, json).await
}

async fn restore(paths: &Paths, names: Vec<String>, json: bool) -> Result<(), Failure> {
    let request = Request::Restore { names, environment: Some(environment::inherited()) };
    let restored: Vec<Restored> = connect::call(paths, request).await?;
    if json {
        print_json(&restored)?;
    } else if restored.is_empty() {
        print("nothing was lost: there is nothing to restore\n")?;
    } else {
        let lines: Vec<String> = restored
            .iter()
            .map(|one| match &one.error {
                None => format!("{} was started again\n", visible(&one.name)),
                Some(why) => format!("{} could not be restored: {}\n", visible(&one.name), visible(why)),
            })
            .collect();
        print(&lines.concat())?;
    }
    match restored.iter().filter(|one| one.error.is_some()).count() {
        0 => Ok(()),
        count => Err(Failure::failed(format!("{} could not be restored", shared::text::count(count, "session")))),
    }
}
