//! daemon start, stop, restart, status, logs; install and uninstall have a file of their own. `run` is the root package's, which alone sees the daemon.

pub mod install;

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use shared::filter::Filter;
use shared::message::{DaemonStatus, Failure, Request, Stopped};
use shared::paths::Paths;
use shared::session::Session;
use shared::text::{count, visible};

pub use install::{InstallArgs, UninstallArgs};

use super::{DaemonCommand, print, print_json, table};
use crate::client::Client;
use crate::connect::{self, READY, TAKEN, WAITS};
use crate::service::machine::{self, Installed};
use crate::tty;

pub const HELP: &str = "\
Examples:
  sessions-tui daemon status
  sessions-tui daemon restart         after an upgrade; no session ends
  sessions-tui daemon install         start it on login
  sessions-tui daemon stop --all      ends every session too";

pub async fn perform(paths: &Paths, command: DaemonCommand) -> Result<(), Failure> {
    match command {
        DaemonCommand::Run { .. } => Err(Failure::failed("the daemon cannot run inside a command")),
        DaemonCommand::Start { json } => start(paths, json).await,
        DaemonCommand::Stop { all, yes, json } => stop(paths, all, yes, json).await,
        DaemonCommand::Restart { json } => restart(paths, json).await,
        DaemonCommand::Status { json } => status(paths, json).await,
        DaemonCommand::Install(args) => install::install(paths, args).await,
        DaemonCommand::Uninstall(args) => install::uninstall(&args),
        DaemonCommand::Logs { lines } => logs(paths, lines),
    }
}

/// A detached daemon says this once clients can connect.
pub fn announce_ready() {
    say(READY);
}

/// Or, before that, that it is there for the place of another.
pub fn announce_waiting() {
    say(WAITS);
}

/// Or why it cannot run; being one too many is no error.
pub fn announce_refusal(error: &str, already_running: bool) {
    say(if already_running { TAKEN } else { error });
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{}", line.replace('\n', " "));
    let _ = out.flush();
}

async fn start(paths: &Paths, json: bool) -> Result<(), Failure> {
    let (client, words) = match connect::running(paths).await? {
        Some(client) => (client, "is already running"),
        None => (start_anew(paths).await?, "is running"),
    };
    if json {
        return print_json(&client.daemon);
    }
    print(&format!("the daemon {words}, pid {}\n", client.daemon.pid))
}

/// By its service if it is installed, so that it is kept by that; else by ourselves.
async fn start_anew(paths: &Paths) -> Result<Client, Failure> {
    if install::start_service()
        && let Some(client) = connect::running(paths).await?
    {
        return Ok(client);
    }
    connect::start(paths).await
}

/// Whether any holder's socket is there beside the daemon's own.
fn has_holders(paths: &Paths) -> bool {
    let is_holder = |path: std::path::PathBuf| path != paths.socket() && path.extension().is_some_and(|extension| extension == "sock");
    std::fs::read_dir(&paths.runtime).is_ok_and(|entries| entries.filter_map(Result::ok).any(|entry| is_holder(entry.path())))
}

async fn stop(paths: &Paths, all: bool, yes: bool, json: bool) -> Result<(), Failure> {
    let running = match connect::running(paths).await? {
        // sessions go on without a daemon; to end them takes one
        None if all && has_holders(paths) => Some(connect::connect(paths).await?),
        other => other,
    };
    let Some(mut client) = running else {
        return if json { print_json(&Stopped { going_on: 0, ended: 0 }) } else { print("the daemon is not running\n") };
    };
    if all && !yes {
        let sessions: Vec<Session> = client.call(Request::List(Filter::default())).await?;
        let live = sessions.iter().filter(|session| !session.is_over()).count();
        if live > 0 && !confirm(&format!("End {} and stop the daemon?", count(live, "running session")))? {
            return print("nothing was stopped\n");
        }
    }
    let stopped: Stopped = client.call(Request::Stop { end_sessions: all, restart: false }).await?;
    wait_until_gone(paths, client).await;
    if json {
        return print_json(&stopped);
    }
    print(&match (stopped.going_on, stopped.ended) {
        (0, 0) => "the daemon is stopped; there were no running sessions\n".to_owned(),
        (0, ended) => format!("the daemon is stopped, {} ended\n", count(ended as usize, "session")),
        (1, _) => "the daemon is stopped; 1 session goes on, and is back with the next command\n".to_owned(),
        (going_on, _) => format!("the daemon is stopped; {going_on} sessions go on, and are back with the next command\n"),
    })
}

async fn restart(paths: &Paths, json: bool) -> Result<(), Failure> {
    let mut client = match connect::running(paths).await? {
        None => start_anew(paths).await?,
        // its service manager has to start it, so that it is kept by that
        Some(mut client) if install::is_service() => {
            client.call::<Stopped>(Request::Stop { end_sessions: false, restart: true }).await?;
            wait_until_gone(paths, client).await;
            start_anew(paths).await?
        }
        Some(client) => connect::replace(paths, client).await?,
    };
    let status: DaemonStatus = client.call(Request::Status).await?;
    if json {
        return print_json(&status);
    }
    let sessions = count(status.live_sessions as usize, "session");
    print(&format!("the daemon is running again, version {}, pid {}, with {sessions}\n", status.version, status.pid))
}

/// The connection ends shortly before the daemon does; its lock ends with it.
async fn wait_until_gone(paths: &Paths, mut client: Client) {
    while client.receive().await.is_ok() {}
    let Ok(lock) = std::fs::File::open(paths.lock()) else { return };
    let deadline = Instant::now() + GOING_PATIENCE;
    while rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared).is_err() && Instant::now() < deadline {
        tokio::time::sleep(GLANCE).await;
    }
}

/// A daemon that has closed its connections only stores what is left.
const GOING_PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks at its lock.
const GLANCE: Duration = Duration::from_millis(2);

fn confirm(question: &str) -> Result<bool, Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("this would end running sessions: pass --yes if that is meant"));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// What the daemon says of itself, and what starts it on login.
#[derive(serde::Serialize)]
struct FullStatus {
    #[serde(flatten)]
    daemon: DaemonStatus,
    service: Option<Installed>,
}

async fn status(paths: &Paths, json: bool) -> Result<(), Failure> {
    let service = machine::service().ok().and_then(|service| machine::installed(&service).into_iter().next());
    let Some(mut client) = connect::running(paths).await? else {
        let login = service.map_or_else(String::new, |service| format!("; on login it is started by its {}", service.words()));
        return Err(connect::no_daemon(format!("the daemon is not running: any command starts it, or `sessions-tui daemon start`{login}")));
    };
    if let Some(gap) = client.version_gap() {
        return Err(gap);
    }
    let status: DaemonStatus = client.call(Request::Status).await?;
    if json {
        return print_json(&FullStatus { daemon: status, service });
    }
    let mut out = format!("the daemon is running, pid {}\n", status.pid);
    out += &table::field("version", &format!("{} (protocol {})", status.version, status.protocol));
    if status.version != shared::VERSION {
        let way = "`sessions-tui daemon restart` puts this one in its place, and ends no session";
        out += &table::field("warning", &format!("this program is of version {}: {way}", shared::VERSION));
    }
    out += &table::field("since", &status.started_at.to_string());
    out += &table::field("sessions", &status.live_sessions.to_string());
    out += &table::field("clients", &status.clients.to_string());
    out += &table::field("socket", &status.socket);
    out += &table::field("state", &status.state_dir);
    out += &table::field("log", &status.log);
    let login = service.map_or_else(|| "not installed: `sessions-tui daemon install` starts it on login".to_owned(), |it| it.words());
    out += &table::field("service", &login);
    for warning in &status.warnings {
        out += &table::field("warning", warning);
    }
    print(&out)
}

fn logs(paths: &Paths, lines: usize) -> Result<(), Failure> {
    let path = paths.log();
    let text = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Failure::failed("there is no log yet")),
        Err(error) => return Err(Failure::failed(format!("{}: {error}", path.display()))),
    };
    let all: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    for line in &all[all.len().saturating_sub(lines)..] {
        out.push_str(&visible(line));
        out.push('\n');
    }
    print(&out)
}
