//! Reaching the daemon: connect, else start it, else say why.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use shared::message::{Code, Failure, Request, Stopped};
use shared::paths::Paths;
use shared::runtime::{MARKS, ROLE};
use tokio::sync::mpsc;

use crate::client::{Acts, Client, FIRST, Silent, refusal_of};
use crate::environment;

/// A daemon that another client is starting gets this long to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A daemon that is asked to leave stores what is left first. A little longer than its successor waits, which says why it gave up.
const LEAVING_PATIENCE: Duration = Duration::from_secs(65);

/// Between two tries to reach a daemon that is starting: there is nothing to wait on yet.
const RETRY: Duration = Duration::from_millis(5);

/// After a daemon said that another has its place: if that one does not listen by then, it was ending.
const LAUNCH_AGAIN: Duration = Duration::from_millis(200);

/// First word of a starting daemon to whoever started it.
pub const READY: &str = "ready";
pub const TAKEN: &str = "taken";
/// Of one that is to take another's place, before that has left.
pub const WAITS: &str = "waits";

/// Where a daemon goes that is being started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    /// Another is there and will be asked to leave.
    Taken,
}

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
    let went = |error: io::Error| refusal_of(&error).unwrap_or_else(|| no_daemon(format!("the daemon went away: {error}")));
    client.send(request.clone()).await.map_err(went)?;
    Ok(client)
}

/// As [`call`], of a request that may be sent again because it carries an id of its own: when the daemon dies before it answers, the next
/// one is asked.
pub async fn call_repeatable<T: DeserializeOwned>(paths: &Paths, request: Request) -> Result<T, Failure> {
    let mut crashes = Crashes::default();
    let mut client = send_first(paths, &request).await?;
    let mut id = client.last_id();
    loop {
        if let Ok(answer) = client.answer_unless_lost(id).await {
            return answer;
        }
        client = crashes.again(paths).await?;
        // a connection that ends here is seen by the answer
        id = client.send(request.clone()).await.unwrap_or(id);
    }
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
                io::ErrorKind::TimedOut => return Err(no_daemon(silent(paths, pid_of(&error)))),
                _ => {
                    let cannot = || no_daemon(format!("cannot reach the daemon at {}: {error}", socket.display()));
                    return Err(refusal_of(&error).unwrap_or_else(cannot));
                }
            },
        }
    }
    Ok(None)
}

fn pid_of(error: &io::Error) -> Option<u32> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Silent>()).and_then(|silent| silent.pid)
}

/// What can be done about a daemon that listens and says nothing.
fn silent(paths: &Paths, pid: Option<u32>) -> String {
    let log = paths.log();
    match pid {
        Some(pid) => format!(
            "the daemon (pid {pid}) does not answer: it is stopped or stuck, and nothing was done; see {}, or end it with `kill -9 {pid}`: sessions go on",
            log.display()
        ),
        None => format!(
            "the daemon does not answer: it is stopped or stuck, and nothing was done; see {}; it can be killed, sessions go on",
            log.display()
        ),
    }
}

/// Where the daemon of this place listens, if that is not where the user says.
pub fn elsewhere(paths: &Paths) -> Option<PathBuf> {
    let socket = PathBuf::from(std::fs::read_to_string(paths.pointer()).ok()?);
    if crate::trust::check_directory(&socket).is_err() {
        return None;
    }
    (paths.socket_is_named() && socket != paths.socket() && std::os::unix::net::UnixStream::connect(&socket).is_ok()).then_some(socket)
}

/// That nobody is at the socket which the user named.
pub fn nobody_at(paths: &Paths, listens: &std::path::Path) -> String {
    let named = paths.socket();
    let by = if std::env::var_os("SESSIONS_SOCKET").is_some_and(|variable| variable == named.as_os_str()) {
        "SESSIONS_SOCKET"
    } else {
        "--socket"
    };
    format!("nobody listens at {}, which {by} names; the daemon of this place listens at {}", named.display(), listens.display())
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
        if let Some(listens) = elsewhere(paths) {
            return Err(no_daemon(nobody_at(paths, &listens)));
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
    let mut child = spawn(paths, Place::Free)?;
    let mut word = String::new();
    if let Some(output) = child.stdout.take() {
        // it says one line when clients can connect, or why it cannot run
        let _ = BufReader::new(output).read_line(&mut word);
    }
    // a window that stays open for days outlives it, and is the one who has to collect it
    std::thread::spawn(move || child.wait());
    Ok(word)
}

fn spawn(paths: &Paths, place: Place) -> Result<Child, Failure> {
    let cannot = |error: io::Error| no_daemon(format!("cannot start the daemon: {error}"));
    environment::keep_descriptors_to_ourselves();
    let mut command = Command::new(executable().map_err(cannot)?);
    command.args(["daemon", "run", "--detached"]).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if place == Place::Taken {
        command.arg("--takes-over");
    }
    // started from inside a session, it must not be taken for a part of it
    for variable in MARKS {
        command.env_remove(variable);
    }
    command.env(ROLE, "daemon");
    if paths.socket_is_named() {
        command.env("SESSIONS_SOCKET", paths.socket());
    }
    command.spawn().map_err(cannot)
}

/// This program, or what has come to its place since: a window that was open during an upgrade starts the daemon of after.
fn executable() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    if own.exists() {
        return Ok(own);
    }
    let replaced = own.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from).filter(|path| path.exists());
    Ok(replaced.unwrap_or_else(|| PathBuf::from("/proc/self/exe")))
}

/// Puts a daemon of this program in the place of the one that runs. It waits at the other's lock before that is asked to leave:
/// clients that lose theirs start one too, perhaps of the version that is to be replaced, and come too late. One that cannot take over, because
/// the database is of a later version, says so while the other still runs.
pub async fn replace(paths: &Paths, running: Client) -> Result<Client, Failure> {
    let mut successor = spawn(paths, Place::Taken)?;
    let (says, mut words) = mpsc::channel(2);
    if let Some(output) = successor.stdout.take() {
        std::thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).all(|word| says.blocking_send(word).is_ok()));
    }
    let outcome = change_over(paths, running, successor.id(), &mut words).await;
    if outcome.is_err() {
        let _ = successor.kill();
        let _ = successor.wait();
    }
    outcome
}

async fn change_over(paths: &Paths, running: Client, successor: u32, words: &mut mpsc::Receiver<String>) -> Result<Client, Failure> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let silent = || no_daemon(format!("the new daemon does not start: see {}", paths.log().display()));
    match tokio::time::timeout_at(deadline, words.recv()).await.map_err(|_| silent())? {
        Some(word) if word == WAITS => {}
        Some(why) => return Err(no_daemon(format!("nothing was restarted: {why}"))),
        None => return Err(silent()),
    }
    let old = running.daemon.pid;
    let deadline = tokio::time::Instant::now() + LEAVING_PATIENCE;
    let mut leaving = Some(running);
    loop {
        if let Some(mut client) = leaving.take() {
            let _ = client.call::<Stopped>(Request::Stop { end_sessions: false, restart: true }).await;
        }
        match tokio::time::timeout(LAUNCH_AGAIN, words.recv()).await {
            Ok(Some(word)) if word == READY => break,
            Ok(Some(word)) if word == TAKEN => return Err(no_daemon(stays(paths, old))),
            Ok(Some(why)) => return Err(no_daemon(format!("the daemon cannot start: {why}"))),
            Ok(None) => return Err(silent()),
            Err(_) if tokio::time::Instant::now() >= deadline => return Err(no_daemon(stays(paths, old))),
            // somebody was quicker after all
            Err(_) => leaving = self::running(paths).await?.filter(|client| client.daemon.pid != successor),
        }
    }
    self::running(paths).await?.ok_or_else(silent)
}

/// The old daemon was asked to leave, and is still there.
fn stays(paths: &Paths, old: u32) -> String {
    format!(
        "the old daemon (pid {old}) has not left within {} seconds: see {}, then try again, or end it with `kill -9 {old}`: sessions go on",
        LEAVING_PATIENCE.as_secs(),
        paths.log().display()
    )
}

pub fn no_daemon(message: String) -> Failure {
    Failure::new(Code::Version, message)
}
