//! The command line: its grammar and help. Each family of subcommands has a file; they print, nothing else.

mod completions;
mod config;
mod daemon;
mod doctor;
mod event;
mod exec;
mod files;
mod filter;
mod group;
mod groups;
mod hook;
mod life;
mod parse;
mod pause;
mod record;
mod recording;
mod replay;
mod schema;
mod search;
mod session;
mod stats;
mod table;
mod targets;
mod terminal;
mod watch;
mod webhook;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use shared::exec::Language;
use shared::id::Seq;
use shared::message::{Code, Condition, Failure};
use shared::paths::Paths;
use shared::screen::Size;
use shared::text::visible_json;

use crate::environment;

pub use completions::{answer_shell, parse};
pub use daemon::{announce_ready, announce_refusal, announce_waiting};
pub use doctor::doctor;

pub use crate::doctor::Lookers;

const EXAMPLES: &str = "\
Examples:
  sessions-tui                          the dashboard: n starts something, enter attaches, ? shows every key
  sessions-tui new                      your shell, in a session named after this folder
  sessions-tui new -n api -- npm run dev
  sessions-tui attach api               ctrl-b d leaves it running, ctrl-b n goes to the next, ctrl-b ? shows the keys
  sessions-tui replay api --at 14:05     what it printed, as it was then
  sessions-tui send api 'git status' --enter && sessions-tui wait api --for quiet
  sessions-tui exec 'cd src && make'     in this folder's own bash, which stays; -l python, -l node
  sessions-tui search 'connection refused'     in everything any session ever printed, ran or was told
  sessions-tui new -n fix --task 'Fix the login' --no-run     the record of a task; iterate, pause, resume, complete

Sessions go on when you detach, close the window, or when the daemon is stopped, upgraded or killed.
NAME is a session's name, its id, or the beginning of either if that is unambiguous; kill, rm, forget and reset need all of it.
Exit codes: 0 done, 1 failed, 2 usage, 3 no such session, 4 not allowed in its present status, 5 no daemon;
  exec and eval end with the code's own, 125 if the call failed, 124 if --timeout ended it.";

/// Keeps terminals alive, records everything they print, and brings you back to them.
#[derive(Parser)]
#[command(name = "sessions-tui", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// The daemon's socket, if it is not in its usual place
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Start a program in a session and attach to it; a session that lives is continued
    #[command(
        visible_alias = "start",
        after_help = "A name whose session has ended opens the next one, in the directory and with the variables the last one was left with.\nA name that has a live session continues it; a CMD that cannot be started because the session has a program already is\nrefused with exit code 4, unless --attach-existing is given.\n\nExamples:\n  sessions-tui new\n  sessions-tui new -n api -w ~/src/api -- npm run dev\n  sessions-tui new -d -n build -e CI=1 -- make -j4\n  sessions-tui new -n fix --task 'Fix the login' --mode developer --no-run\n  sessions-tui new --queue --group builds -- make test"
    )]
    New(Box<NewArgs>),
    /// List sessions: those that live, and those that ended within a day
    #[command(
        visible_aliases = ["list", "ps"],
        after_help = "Any filter searches all sessions, also those that ended long ago.\n\nExamples:\n  sessions-tui ls\n  sessions-tui ls --status active,paused --mode developer\n  sessions-tui ls --text login --created-after 7d --json"
    )]
    Ls(LsArgs),
    /// Attach to a session; ctrl-b d detaches, ctrl-b n and p go to the next and previous, ctrl-b [ looks back, ctrl-b ? shows the keys
    #[command(
        after_help = "Examples:\n  sessions-tui attach                 the one that was active last\n  sessions-tui attach api\n  sessions-tui attach api --read-only\n  sessions-tui attach api -l python   what was run in its python, and a prompt for more"
    )]
    Attach {
        /// The session; without it, the one that was active last
        name: Option<String>,
        /// The transcript of this language's runtime: bash, python or node
        #[arg(long, short, value_name = "LANG", value_parser = parse::language)]
        language: Option<Language>,
        /// Only watch: never type, never change the terminal's size
        #[arg(long)]
        read_only: bool,
    },
    /// Detach every client from a session
    #[command(after_help = "Example:\n  sessions-tui detach api        it goes on; ctrl-b d detaches only the window it is typed in")]
    Detach {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all layers of a session: thread, session, terminals, runtimes, lease
    #[command(after_help = "Examples:\n  sessions-tui show api\n  sessions-tui show api --json")]
    Show {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Type into a session without attaching
    #[command(
        after_help = "Options stand anywhere; -- comes before a text that begins with a dash.\n\nKeys: enter tab esc space backspace up down left right home end pageup pagedown insert delete\n      f1…f12 ctrl-a…ctrl-z alt-x (also C-c, M-x)\n\nExamples:\n  sessions-tui send api 'npm test' --enter\n  sessions-tui send api --key ctrl-c\n  sessions-tui send editor --key esc --key : 'wq' --enter\n  sessions-tui send --group builds --enter 'git pull'\n  sessions-tui send api -- --literal"
    )]
    Send(SendArgs),
    /// Print what is on a session's screen
    #[command(
        after_help = "Examples:\n  sessions-tui screen api\n  sessions-tui screen api --scrollback 1000 | grep -i error\n  sessions-tui screen api --ansi"
    )]
    Screen {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// The transcript of this language's runtime: bash, python or node
        #[arg(long, short, value_name = "LANG", value_parser = parse::language)]
        language: Option<Language>,
        /// With colours and attributes
        #[arg(long, conflicts_with = "json")]
        ansi: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Also this many lines that have scrolled away (20000 at most)
        #[arg(long, value_name = "LINES", default_value_t = 0)]
        scrollback: u32,
    },
    /// Print what a session printed last
    #[command(
        after_help = "The screen and the lines that scrolled away before it; `export --format text` prints everything.\n\nExamples:\n  sessions-tui logs api\n  sessions-tui logs api -n 50"
    )]
    Logs {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// How many lines
        #[arg(long, short = 'n', default_value_t = 200)]
        lines: u32,
    },
    /// How a session is, or all of them
    #[command(after_help = "Examples:\n  sessions-tui status          as ls\n  sessions-tui status api      as show")]
    Status {
        /// The session: its name, its id, or the beginning of either
        name: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait for something in a session
    #[command(
        after_help = "Examples:\n  sessions-tui wait build --for exit --timeout 10m\n  sessions-tui send sh --enter make && sessions-tui wait sh --for prompt\n  sessions-tui wait api --for 'text=Listening on \\d+' --timeout 30s\n  sessions-tui wait api --for quiet=2s"
    )]
    Wait {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// exit, prompt (a shell waits for a line), quiet (no output for 1s, or quiet=DURATION), text=REGEX on the screen, status=STATUS, attention=STATE
        #[arg(long = "for", value_name = "WHAT", value_parser = parse::condition)]
        condition: Condition,
        /// Give up after this long (500ms, 30s, 10m, 1h)
        #[arg(long, value_name = "DURATION", value_parser = parse::duration_ms)]
        timeout: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session's program: hang up, then kill what is left after two seconds
    #[command(
        visible_alias = "stop",
        after_help = "Needs the exact names or ids. Filters need --yes or a terminal to ask on.\n\nExamples:\n  sessions-tui kill api\n  sessions-tui kill api web\n  sessions-tui kill --group builds --yes"
    )]
    Kill {
        #[command(flatten)]
        targets: targets::TargetArgs,
        /// Do not ask before ending what filters find
        #[arg(long, short)]
        yes: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Rename a session
    #[command(after_help = "Example:\n  sessions-tui rename api backend")]
    Rename {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// Its new name
        new: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an ended session with its recording
    #[command(visible_aliases = ["delete", "remove"], after_help = "Needs the exact names or ids. Filters need --yes or a terminal to ask on.\n\nExamples:\n  sessions-tui kill api; sessions-tui rm api\n  sessions-tui rm --status ended,failed --created-before 7d --yes")]
    Rm {
        #[command(flatten)]
        targets: targets::TargetArgs,
        /// Do not ask before removing what filters find
        #[arg(long, short)]
        yes: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    #[command(flatten)]
    Exec(exec::ExecCommand),
    #[command(flatten)]
    Pause(pause::PauseCommand),
    #[command(flatten)]
    Life(life::LifeCommand),
    #[command(flatten)]
    Record(record::RecordCommand),
    /// What happened: all events, or those of one name, its earlier sessions included
    #[command(
        after_help = "Each event has a number over all sessions (seq), which --since takes, and one within its session (n), without a gap.\n\nExamples:\n  sessions-tui events api\n  sessions-tui events api --since 42 --follow --json"
    )]
    Events {
        /// A session, with all others of its name; without it, everything
        name: Option<String>,
        /// Only events after this number
        #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
        since: Option<Seq>,
        /// Go on with new ones as they happen
        #[arg(long, short)]
        follow: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Files that changed in a session's workspace while it was active
    #[command(after_help = files::HELP)]
    Files {
        /// The session: its name, its id, or the beginning of either
        name: String,
        #[command(subcommand)]
        command: files::FilesCommand,
    },
    /// Find text in all output, code, events and tasks of all sessions, newest first
    #[command(after_help = search::HELP)]
    Search(Box<search::SearchArgs>),
    #[command(flatten)]
    Recording(recording::RecordingCommand),
    /// Play what a session recorded: pause, step, search, jump to any moment
    #[command(after_help = replay::HELP)]
    Replay(replay::ReplayArgs),
    #[command(flatten)]
    Stats(stats::StatsCommand),
    /// Groups of sessions of which only so many run at once
    #[command(after_help = group::HELP)]
    Group {
        #[command(subcommand)]
        command: group::GroupCommand,
    },
    /// Tell other programs of events, over HTTP
    #[command(after_help = webhook::EXAMPLES)]
    Webhook {
        #[command(subcommand)]
        command: webhook::WebhookCommand,
    },
    /// Why a session is thought to work, wait or be idle: each piece of evidence, and what would change it
    #[command(after_help = "Examples:\n  sessions-tui explain api\n  sessions-tui explain api --json")]
    Explain {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What agents call to tell what they do, and setting that up
    #[command(after_help = hook::HELP, arg_required_else_help = true)]
    Hook {
        #[command(subcommand)]
        command: hook::HookCommand,
    },
    /// MCP server for agents: tools over the Model Context Protocol, on standard input and output
    #[command(after_help = crate::mcp::HELP)]
    Mcp,
    /// Check the daemon, its files and this machine; each problem comes with the command that fixes it
    #[command(after_help = doctor::HELP)]
    Doctor(doctor::DoctorArgs),
    /// Completions for a shell, with the names of live sessions
    #[command(after_help = completions::HELP)]
    Completions { shell: completions::Shell },
    /// The manual: one page, or one for each command in a folder
    #[command(after_help = "Examples:\n  sessions-tui man | man -l -\n  sessions-tui man ~/.local/share/man/man1")]
    Man {
        /// A folder to write a page for each command into
        folder: Option<PathBuf>,
    },
    /// The client protocol as a JSON Schema, for whoever writes a client
    #[command(after_help = schema::HELP)]
    Schema {
        /// One part of it: a type, `call.NAME`, `ok.NAME`, `push.NAME`
        name: Option<String>,
        /// The names of all parts
        #[arg(long, conflicts_with = "name")]
        list: bool,
    },
    /// The settings: write a commented file, show what holds, look for mistakes
    #[command(after_help = config::HELP)]
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// The daemon: starts by itself when it is needed
    #[command(after_help = daemon::HELP)]
    Daemon {
        #[command(subcommand)]
        command: DaemonCommand,
    },
}

#[derive(Args)]
pub struct NewArgs {
    /// A name; without it, one is made from the folder
    #[arg(short, long)]
    name: Option<String>,
    /// The folder to work in; without it, where the name was left, or this one
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Do not attach: start it and return
    #[arg(short, long)]
    detached: bool,
    /// Start nothing: only the record of a task
    #[arg(long, conflicts_with_all = ["argv", "size", "env"])]
    no_run: bool,
    /// Wait for a free place in its group (`default` if none is named); should the daemon be replaced meanwhile, it starts
    /// with the daemon's environment and what -e gives
    #[arg(long)]
    queue: bool,
    /// Count in this group; a full one makes it wait
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// What it is for, in words
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// What kind of work it is, in a word of yours; kept with the record
    #[arg(long)]
    mode: Option<String>,
    /// For whom it is; kept with the record
    #[arg(long)]
    user: Option<String>,
    /// Where it was asked for; kept with the record
    #[arg(long)]
    channel: Option<String>,
    /// How often it may iterate before it has to be reviewed [default: 50]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u64>,
    /// What whoever goes on with it needs to know
    #[arg(long, value_name = "JSON", value_parser = parse::json)]
    context: Option<serde_json::Value>,
    /// About the work: model, cost, tokens, …
    #[arg(long, value_name = "JSON", value_parser = parse::json)]
    metadata: Option<serde_json::Value>,
    /// End after this much inactivity (30s, 10m, 1h, none) [default for tasks: 1h]
    #[arg(long, value_name = "DURATION", value_parser = shared::policy::Limit::parse, allow_hyphen_values = true)]
    idle_timeout: Option<shared::policy::Limit>,
    /// End after this long in all, pauses excluded [default for tasks: 1d]
    #[arg(long, value_name = "DURATION", value_parser = shared::policy::Limit::parse, allow_hyphen_values = true)]
    max_duration: Option<shared::policy::Limit>,
    /// The terminal's size until someone attaches
    #[arg(long, value_name = "COLSxROWS", value_parser = parse::size)]
    size: Option<Size>,
    /// Record nothing of what it prints: no replay, no search, and an empty screen after a restart of the daemon
    #[arg(long, conflicts_with = "no_run")]
    no_record: bool,
    /// Record what is typed too, except into a terminal that does not show it (passwords)
    #[arg(long, conflicts_with_all = ["no_run", "no_record"])]
    record_input: bool,
    /// Tell of files that change in its workspace: auto (not in a home folder or a huge tree), on, off [default: config.toml, else auto]
    #[arg(long, value_name = "MODE", value_parser = parse::watch)]
    watch: Option<shared::watch::WatchMode>,
    /// A variable for the program
    #[arg(short, long = "env", value_name = "NAME=VALUE", value_parser = parse::variable)]
    env: Vec<(String, String)>,
    /// Use a live session of this name as it is, instead of refusing to start CMD or set variables in it
    #[arg(long)]
    attach_existing: bool,
    /// Print the session as JSON (with -d, --no-run or --queue)
    #[arg(long)]
    json: bool,
    /// The program and its arguments; without it, your shell
    #[arg(last = true, value_name = "CMD")]
    argv: Vec<String>,
}

#[derive(Args, Default)]
pub struct LsArgs {
    /// All, however long ago they ended
    #[arg(long, short)]
    all: bool,
    /// Stay, and show changes as they happen; q leaves
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// At most this many, the newest
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<u32>,
    /// newest-last (the default), newest, oldest, active
    #[arg(long, value_name = "ORDER", value_parser = parse::order)]
    order: Option<shared::filter::Order>,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: filter::FilterArgs,
}

#[derive(Args)]
pub struct SendArgs {
    /// Send to this session; may be repeated. Then every word is text
    #[arg(long, value_name = "NAME")]
    to: Vec<String>,
    #[command(flatten)]
    filter: filter::FilterArgs,
    /// A key, by name; may be repeated, and comes before the text
    #[arg(long, short, value_name = "KEY", value_parser = crate::key_name::parse)]
    key: Vec<crate::key_name::Bytes>,
    /// Press enter after the text
    #[arg(long, short)]
    enter: bool,
    /// If the session is paused: keep it until that goes on, instead of refusing it
    #[arg(long)]
    queue_input: bool,
    /// The session (without --to and filters), then the text: words are joined by spaces, - reads standard input, -- comes before a text that begins with a dash
    #[arg(value_name = "NAME] [TEXT")]
    words: Vec<String>,
}

#[derive(Subcommand)]
pub enum DaemonCommand {
    /// Run the daemon here, in the foreground
    Run {
        /// Leave the terminal and its session, and say one line when ready
        #[arg(long, hide = true)]
        detached: bool,
        /// Wait for the place of a daemon that will be asked to leave
        #[arg(long, hide = true)]
        takes_over: bool,
    },
    /// Start the daemon, if it is not running
    Start {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the daemon; sessions go on without it
    Stop {
        /// End all sessions too
        #[arg(long)]
        all: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop and start again, for instance after an upgrade; sessions go on
    Restart {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Is it running, and how is it?
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Start it on login: shows what it writes, and can be repeated
    #[command(
        after_help = "A unit of the systemd user manager, an agent of launchd, or, where neither is, an entry in the desktop's autostart\nfolder. Stopping, restarting and upgrading the daemon under it ends no session.\n\nExamples:\n  sessions-tui daemon install --dry-run\n  sessions-tui daemon install --linger"
    )]
    Install(daemon::InstallArgs),
    /// Do not start it on login any more: takes away what install has written
    Uninstall(daemon::UninstallArgs),
    /// The end of the daemon's log
    Logs {
        /// How many lines
        #[arg(long, short = 'n', default_value_t = 50)]
        lines: usize,
    },
}

impl Cli {
    pub fn paths(&self) -> Result<Paths, Failure> {
        environment::paths(self.socket.clone()).map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Carries the command out; the exit code is the one of SPEC section 8.
pub async fn run(cli: Cli, check_agents: config::CheckAgents) -> ExitCode {
    let outcome = async {
        let paths = cli.paths()?;
        match cli.command {
            None => crate::dashboard::dashboard(&paths).await.map(|()| ExitCode::SUCCESS),
            Some(Command::Exec(command)) => exec::perform(&paths, command).await,
            Some(Command::Config { command }) => config::perform(&paths, command, check_agents).await,
            Some(command) => perform(&paths, command).await.map(|()| ExitCode::SUCCESS),
        }
    };
    match outcome.await {
        Ok(code) => code,
        Err(failure) => refuse(&failure),
    }
}

fn refuse(failure: &Failure) -> ExitCode {
    eprintln!("error: {}", shared::text::visible(&failure.message).replace("; ", ";\n  ").trim_end());
    ExitCode::from(exit_code(failure.code))
}

fn exit_code(code: Code) -> u8 {
    match code {
        Code::Failed | Code::TimedOut => 1,
        Code::Usage => 2,
        Code::NotFound => 3,
        Code::Status => 4,
        Code::Version => 5,
    }
}

async fn perform(paths: &Paths, command: Command) -> Result<(), Failure> {
    match command {
        Command::New(args) => session::new(paths, *args).await,
        Command::Ls(args) => session::ls(paths, args).await,
        Command::Attach { name, language, read_only } => terminal::attach(paths, name, language, read_only).await,
        Command::Detach { name, json } => terminal::detach(paths, name, json).await,
        Command::Show { name, json } => session::show(paths, name, json).await,
        Command::Send(args) => terminal::send(paths, args).await,
        Command::Screen { name, language, ansi, json, scrollback } => terminal::screen(paths, name, language, ansi, json, scrollback).await,
        Command::Wait { name, condition, timeout, json } => terminal::wait(paths, name, condition, timeout, json).await,
        Command::Logs { name, lines } => terminal::logs(paths, name, lines).await,
        Command::Status { name: Some(name), json } => session::show(paths, name, json).await,
        Command::Status { name: None, json } => session::ls(paths, LsArgs { json, ..LsArgs::default() }).await,
        Command::Kill { targets, yes, json } => session::kill(paths, targets, yes, json).await,
        Command::Rename { name, new, json } => session::rename(paths, name, new, json).await,
        Command::Rm { targets, yes, json } => session::rm(paths, targets, yes, json).await,
        // has exit codes of its own
        Command::Exec(command) => exec::perform(paths, command).await.map(|_| ()),
        Command::Config { .. } => Err(Failure::failed("settings are looked after elsewhere")),
        Command::Pause(command) => pause::perform(paths, command).await,
        Command::Life(command) => life::perform(paths, command).await,
        Command::Record(command) => record::perform(paths, command).await,
        Command::Recording(command) => recording::perform(paths, command).await,
        Command::Files { name, command } => files::perform(paths, name, command).await,
        Command::Search(args) => search::search(paths, *args).await,
        Command::Replay(args) => replay::replay(paths, args).await,
        Command::Stats(command) => stats::perform(paths, command).await,
        Command::Webhook { command } => webhook::perform(paths, command).await,
        Command::Group { command } => group::perform(paths, command).await,
        Command::Events { name, since, follow, json } => event::events(paths, name, since, follow, json).await,
        Command::Explain { name, json } => hook::explain(paths, name, json).await,
        Command::Hook { command } => hook::perform(paths, command).await,
        // the root package gives it what reads a database
        Command::Doctor(_) => Err(Failure::failed("doctor cannot run inside a command")),
        Command::Completions { shell } => completions::completions(shell),
        Command::Man { folder } => completions::man(folder),
        Command::Schema { name, list } => schema::schema(name.as_deref(), list),
        Command::Mcp => crate::mcp::serve(paths).await,
        Command::Daemon { command } => daemon::perform(paths, command).await,
    }
}

/// Prints to standard output; a reader that has gone (`| head`) is not an error.
fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(|_| ())
}

/// As `print`, for those who have more to say: `false` when nobody reads any more.
fn print_on(text: &str) -> Result<bool, Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("standard output: {error}"))),
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    print(&format!("{}\n", visible_json(text)))
}

/// A path as it can be printed: without its control characters.
fn shown(path: &std::path::Path) -> String {
    shared::text::visible(&path.to_string_lossy())
}

/// For what comes as one object a line.
fn json_line(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map(visible_json).map_err(|error| Failure::failed(error.to_string()))
}
