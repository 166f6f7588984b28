//! Reaching the daemon: connect, else start it, else say why.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use shared::message::{Code, Failure, Request};
use shared::paths::Paths;
use shared::runtime::{MARKS, ROLE};

use crate::client::{Acts, Client, FIRST};
use crate::environment;

/// A daemon that another client is starting gets this long to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two tries to reach a daemon that is starting: there is nothing to wait on yet.
const RETRY: Duration = Duration::from_millis(5);

/// After a daemon said that another has its place: if that one does not listen by then, it was ending.
const LAUNCH_AGAIN: Duration = Duration::from_millis(200);

/// First word of a starting daemon to whoever started it.
pub const READY: &str = "ready";
pub const TAKEN: &str = "taken";

/// The running daemon, or `None`.
pub async fn running(paths: &Paths) -> Result<Option<Client>, Failure> {
    reach(paths, Acts::ForAnyone, None).await
}

/// One call to the daemon, which is started if it is not running.
pub async fn call<T: DeserializeOwned>(paths: &Paths, request: Request) -> Result<T, Failure> {
    match reach(paths, Acts::ForAnyone, Some(&request)).await? {
        Some(mut client) => match client.version_gap() {
            Some(gap) => Err(gap),
            None => client.answer(FIRST).await,
        },
        None => connect(paths).await?.call(request).await,
    }
}

/// Sends a first call to the daemon, which is started if it is not running; whatever comes next is its answer, or about it.
pub async fn send_first(paths: &Paths, request: &Request) -> Result<Client, Failure> {
    if let Some(client) = reach(paths, Acts::ForAnyone, Some(request)).await? {
        return match client.version_gap() {
            Some(gap) => Err(gap),
            None => Ok(client),
        };
    }
    let mut client = connect(paths).await?;
    client.send(request.clone()).await.map_err(|error| no_daemon(format!("the daemon went away: {error}")))?;
    Ok(client)
}

async fn reach(paths: &Paths, acts: Acts, first: Option<&Request>) -> Result<Option<Client>, Failure> {
    for socket in candidates(paths) {
        match Client::connect(&socket, acts, first).await {
            Ok(client) => return client.map(Some),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset => {}
                io::ErrorKind::BrokenPipe | io::ErrorKind::NotADirectory => {}
                _ => return Err(no_daemon(format!("cannot reach the daemon at {}: {error}", socket.display()))),
            },
        }
    }
    Ok(None)
}

/// The daemon, started if it is not running; of a version we can talk to.
pub async fn connect(paths: &Paths) -> Result<Client, Failure> {
    connect_as(paths, Acts::ForAnyone).await
}

/// As [`connect`], for whoever acts for somebody in particular.
pub async fn connect_as(paths: &Paths, acts: Acts) -> Result<Client, Failure> {
    let client = match reach(paths, acts, None).await? {
        Some(client) => client,
        None => start_as(paths, acts).await?,
    };
    match client.version_gap() {
        Some(gap) => Err(gap),
        None => Ok(client),
    }
}

/// A daemon that dies this often within this time is not started once more.
const MAX_CRASHES: usize = 5;
const CRASH_WINDOW: Duration = Duration::from_secs(10);

/// How often the daemon died under a client that stays.
#[derive(Default)]
pub struct Crashes {
    seen: Vec<Instant>,
    acts: Acts,
}

impl Crashes {
    pub fn of(acts: Acts) -> Self {
        Self { seen: Vec::new(), acts }
    }

    /// Another daemon, unless they die again and again.
    pub async fn again(&mut self, paths: &Paths) -> Result<Client, Failure> {
        self.seen.retain(|at| at.elapsed() < CRASH_WINDOW);
        self.seen.push(Instant::now());
        if self.seen.len() > MAX_CRASHES {
            return Err(no_daemon(format!("the daemon dies again and again: see {}", paths.log().display())));
        }
        connect_as(paths, self.acts).await
    }
}

/// The socket named by the user; else the runtime directory's; else where the last daemon said it listens.
fn candidates(paths: &Paths) -> Vec<PathBuf> {
    let mut sockets = vec![paths.socket()];
    if !paths.socket_is_named()
        && let Ok(pointed) = std::fs::read_to_string(paths.pointer())
        && !sockets.contains(&PathBuf::from(&pointed))
    {
        sockets.push(PathBuf::from(pointed));
    }
    sockets
}

/// Starts a daemon of its own session, which goes on when we end. One that is just ending keeps its place for a moment, and
/// another client may be quicker: then it is tried again until somebody listens.
pub async fn start(paths: &Paths) -> Result<Client, Failure> {
    start_as(paths, Acts::ForAnyone).await
}

async fn start_as(paths: &Paths, acts: Acts) -> Result<Client, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let word = launch(paths)?;
        match word.trim() {
            READY | TAKEN => {}
            "" => return Err(no_daemon(format!("the daemon ended while starting: see {}", paths.log().display()))),
            why => return Err(no_daemon(format!("the daemon cannot start: {why}"))),
        }
        let again = Instant::now() + LAUNCH_AGAIN;
        while Instant::now() < again {
            if let Some(client) = reach(paths, acts, None).await? {
                return Ok(client);
            }
            tokio::time::sleep(RETRY).await;
        }
        if Instant::now() >= deadline {
            return Err(no_daemon(format!(
                "a daemon holds the lock {} but does not listen: see {}",
                paths.lock().display(),
                paths.log().display()
            )));
        }
    }
}

/// One try; gives the daemon's first word.
fn launch(paths: &Paths) -> Result<String, Failure> {
    let cannot = |error: io::Error| no_daemon(format!("cannot start the daemon: {error}"));
    let executable = std::env::current_exe().map_err(cannot)?;
    environment::keep_descriptors_to_ourselves();
    let mut command = Command::new(executable);
    command.args(["daemon", "run", "--detached"]).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // started from inside a session, it must not be taken for a part of it
    for variable in MARKS {
        command.env_remove(variable);
    }
    command.env(ROLE, "daemon");
    if paths.socket_is_named() {
        command.env("SESSIONS_SOCKET", paths.socket());
    }
    let mut child = command.spawn().map_err(cannot)?;
    let mut word = String::new();
    if let Some(output) = child.stdout.take() {
        // it says one line when clients can connect, or why it cannot run
        let _ = BufReader::new(output).read_line(&mut word);
    }
    Ok(word)
}

pub fn no_daemon(message: String) -> Failure {
    Failure::new(Code::Version, message)
}
