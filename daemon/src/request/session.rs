//! Sessions: new, list, show, rename, kill, remove.

use std::path::Path;
use std::time::Duration;

use shared::id::RuntimeId;
use shared::message::{Code, Failure, Filter, Layers, NewSession};
use shared::name;
use shared::runtime::{Launch, RuntimeState};
use shared::screen::Size;
use shared::session::Session;

use super::{AUTHOR, find, find_live, in_words, with_live};
use crate::context::Context;
use crate::holder::link::{Link, LinkError};
use crate::holder::spawn::spawn;
use crate::holder::wire;
use crate::lifecycle::{self, End};
use crate::runtime::{self, Beginning};
use crate::store::Start;
use crate::{files, recording};

/// A terminal nobody has attached to yet.
const DEFAULT_SIZE: Size = Size { cols: 80, rows: 24 };

/// What a program gets to clean up after a kill, before it is made to end.
const KILL_GRACE_MS: u32 = 2000;

/// Beyond the grace, for what is left to be killed and reaped.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Variables that describe the terminal or session the caller sits in, which is not the one the program gets.
const NOT_INHERITED: &[&str] = &[
    "TERM",
    "TERMCAP",
    "COLORTERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "WINDOWID",
    "COLUMNS",
    "LINES",
    "KITTY_WINDOW_ID",
    "KITTY_PID",
    "KITTY_LISTEN_ON",
    "WEZTERM_PANE",
    "WEZTERM_UNIX_SOCKET",
    "VTE_VERSION",
    "ITERM_SESSION_ID",
    "ITERM_PROFILE",
    "ZELLIJ",
    "ZELLIJ_SESSION_NAME",
    "ZELLIJ_PANE_ID",
    "ALACRITTY_WINDOW_ID",
    "ALACRITTY_SOCKET",
    "GHOSTTY_RESOURCES_DIR",
    "CLAUDECODE",
    "SESSIONS_ROLE",
    "SHLVL",
    "OLDPWD",
    "_",
];

pub async fn new(context: &Context, new: NewSession) -> Result<Session, Failure> {
    let launch = check(&new)?;
    let runtime = RuntimeId::new();
    let holder = spawn(&context.paths.holder_socket(runtime));
    let started = context
        .store
        .start_session(Start {
            name: new.name,
            user: new.user,
            channel: new.channel,
            mode: new.mode,
            task: new.task,
            launch: launch.clone(),
            lease: context.local_lease,
            author: AUTHOR,
            runtime,
        })
        .await?;
    let recording = context.paths.recording(runtime);
    let outcome = async {
        if let Err(error) = files::private_dir(&recording) {
            // the program runs all the same; its runtime says that nothing is recorded
            context.log.warn(&format!("session {}: {error}", started.session.name));
        }
        let mut link = holder.map_err(LinkError::Io)?;
        let start = wire::Start {
            runtime: runtime.to_string(),
            env: environment(context, &new.environment, &launch, &started),
            argv: launch.argv.clone(),
            cwd: launch.cwd.clone(),
            size: launch.size,
            recording: recording.to_string_lossy().into_owned(),
            max_bytes: context.config.recording.max_mib << 20,
            open_files: context.open_files,
            umask: new.umask,
        };
        let greeting = link.start(start).await?;
        Ok::<_, LinkError>((link, greeting))
    }
    .await;
    match outcome {
        Ok((link, greeting)) => {
            let (pid, holder_pid) = (greeting.child, greeting.pid);
            let name = started.session.name.clone();
            context
                .registry
                .insert(runtime::begin(context.clone(), Beginning { id: runtime, session: started.session.id, name, link, greeting }));
            // it runs, which the registry knows; that a later daemon finds it does not depend on this row
            let store = context.store.clone();
            tokio::spawn(async move {
                let _ = store.runtime_is_running(runtime, pid, holder_pid).await;
            });
            Ok(with_live(context, started.session))
        }
        Err(error) => {
            let why = match error {
                LinkError::Gone => "the holder ended before it could start the program".to_owned(),
                other => other.to_string(),
            };
            let (state, ending, facts) = lifecycle::settle(&End::Refused(why.clone()), started.session.id, jiff::Timestamp::now());
            context.store.runtime_has_ended(runtime, started.session.id, state, ending, facts).await?;
            Err(Failure::failed(format!("{why}; session {} is failed", started.session.name)))
        }
    }
}

/// What can be said before anything is stored.
fn check(new: &NewSession) -> Result<Launch, Failure> {
    if let Some(name) = &new.name {
        name::check(name).map_err(Failure::usage)?;
    }
    let workspace = Path::new(&new.workspace);
    if !workspace.is_absolute() {
        return Err(Failure::usage(format!("the workspace must be an absolute path, not {:?}", new.workspace)));
    }
    match std::fs::read_dir(workspace) {
        Ok(_) => {}
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                std::io::ErrorKind::NotADirectory => "is not a folder".to_owned(),
                std::io::ErrorKind::PermissionDenied => "may not be read by you".to_owned(),
                _ => error.to_string(),
            };
            return Err(Failure::usage(format!("the workspace {} {why}: give a folder with -w", shared::text::visible(&new.workspace))));
        }
    }
    for (key, value) in new.env_delta.iter().chain(&new.environment) {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            return Err(Failure::usage(format!("{key:?} is not an environment variable: write -e NAME=VALUE")));
        }
    }
    if new.argv.iter().any(|word| word.contains('\0')) {
        return Err(Failure::usage("the command contains a zero byte"));
    }
    let argv = if new.argv.is_empty() { vec![shell(&new.environment)] } else { new.argv.clone() };
    let size = new.size.unwrap_or(DEFAULT_SIZE);
    if !(2..=1000).contains(&size.cols) || !(2..=500).contains(&size.rows) {
        return Err(Failure::usage(format!("a size of {}x{} is not possible: between 2x2 and 1000x500", size.cols, size.rows)));
    }
    Ok(Launch { argv, cwd: new.workspace.clone(), env_delta: new.env_delta.clone(), size })
}

/// The user's shell, as their environment names it.
fn shell(environment: &[(String, String)]) -> String {
    environment
        .iter()
        .find(|(key, value)| key == "SHELL" && !value.is_empty())
        .map_or_else(|| "/bin/sh".to_owned(), |(_, value)| value.clone())
}

fn environment(
    context: &Context,
    inherited: &[(String, String)],
    launch: &Launch,
    started: &crate::store::Started,
) -> Vec<(String, String)> {
    let own = [
        ("TERM", "xterm-256color".to_owned()),
        ("COLORTERM", "truecolor".to_owned()),
        ("TERM_PROGRAM", "sessions-tui".to_owned()),
        ("TERM_PROGRAM_VERSION", shared::VERSION.to_owned()),
        ("PWD", launch.cwd.clone()),
        ("SESSIONS_SESSION", started.session.id.to_string()),
        ("SESSIONS_THREAD", started.session.name.clone()),
        ("SESSIONS_RUNTIME", started.runtime.to_string()),
        ("SESSIONS_SOCKET", context.paths.socket().to_string_lossy().into_owned()),
    ];
    let is_ours = |key: &str| own.iter().any(|(name, _)| *name == key) || launch.env_delta.iter().any(|(name, _)| name == key);
    inherited
        .iter()
        .filter(|(key, _)| !NOT_INHERITED.contains(&key.as_str()) && !key.starts_with("CLAUDE_CODE_") && !is_ours(key))
        .cloned()
        .chain(
            own.iter()
                .filter(|(key, _)| !launch.env_delta.iter().any(|(name, _)| name == key))
                .map(|(key, value)| ((*key).to_owned(), value.clone())),
        )
        .chain(launch.env_delta.iter().cloned())
        .collect()
}

pub async fn list(context: &Context, filter: Filter) -> Result<Vec<Session>, Failure> {
    let sessions = context.store.sessions(filter).await?;
    Ok(sessions.iter().map(|session| with_live(context, session.clone())).collect())
}

pub async fn show(context: &Context, name: String) -> Result<Layers, Failure> {
    let session = find(context, name).await?;
    let store = &context.store;
    let mut runtimes = store.runtimes_of(session.id).await?;
    for runtime in &mut runtimes {
        let dir = context.paths.recording(runtime.id);
        runtime.recording.bytes = recording::disk_bytes(&dir);
        runtime.recording.start = recording::segments(&dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
        if let Some(handle) = context.registry.get(session.id).filter(|handle| handle.id == runtime.id) {
            runtime.state = RuntimeState::Running { pid: handle.facts.pid };
            runtime.holder_pid = Some(handle.facts.holder_pid);
            runtime.recording.end = handle.facts.end();
            runtime.recording.suspended = handle.facts.suspended();
        } else {
            runtime.recording.end = recording::tail(&dir).map_or(0, |tail| tail.end);
        }
    }
    let terminals = store.terminals_of(session.id).await?;
    let mut leases = Vec::new();
    for terminal in &terminals {
        if leases.iter().all(|lease: &shared::lease::Lease| lease.id != terminal.lease) {
            leases.push(store.lease(terminal.lease).await?);
        }
    }
    Ok(Layers {
        thread: store.thread_of(session.id).await?,
        earlier: store.earlier_sessions(session.id).await?,
        session,
        terminals,
        runtimes,
        leases,
    })
}

pub async fn rename(context: &Context, name: String, new: String) -> Result<Session, Failure> {
    name::check(&new).map_err(Failure::usage)?;
    let session = find(context, name).await?;
    context.store.rename(session.id, new.clone(), AUTHOR).await?;
    if let Some(handle) = context.registry.get(session.id) {
        handle.renamed(new).await;
    }
    Ok(with_live(context, context.store.session(session.id).await?))
}

pub async fn kill(context: &Context, name: String) -> Result<Session, Failure> {
    let session = find(context, name.clone()).await?;
    if session.status.has_ended()
        && let Some(runtime) = session.runtime
        && end_lingering(&context.paths.holder_socket(runtime), KILL_GRACE_MS).await
    {
        return Ok(session);
    }
    let (session, handle) = find_live(context, name, "kill").await?;
    handle.terminate(KILL_GRACE_MS, AUTHOR).await;
    Ok(context.store.session(session.id).await?)
}

/// A program that has ended may have left processes behind, and its holder with them. Ends both; `false` if there is none.
pub async fn end_lingering(socket: &Path, grace_ms: u32) -> bool {
    let ending = async {
        let Ok((mut link, _)) = Link::connect(socket).await else { return false };
        let _ = link.terminate(grace_ms).await;
        // it closes the link when everything is gone
        while link.news().await.is_ok() {}
        true
    };
    // a holder that is stopped or stuck must not hold up the user
    tokio::time::timeout(Duration::from_millis(u64::from(grace_ms)) + END_PATIENCE, ending).await.unwrap_or(true)
}

/// Takes a thread away for good, recordings included. A live one has to be ended first.
pub async fn remove(context: &Context, name: String) -> Result<Session, Failure> {
    let session = find(context, name).await?;
    if !session.status.has_ended() {
        return Err(Failure::new(
            Code::Status,
            format!("cannot remove: session {0} is {1}; end it first with `sessions-tui kill {0}`", session.name, in_words(&session)),
        ));
    }
    let removed = context.store.remove(session.id).await?;
    for runtime in removed.runtimes {
        end_lingering(&context.paths.holder_socket(runtime), KILL_GRACE_MS).await;
        let dir = context.paths.recording(runtime);
        if let Err(error) = std::fs::remove_dir_all(&dir)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            context.log.warn(&format!("removing session {}: {}: {error}", session.name, dir.display()));
        }
    }
    Ok(session)
}
