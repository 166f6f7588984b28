//! From a stored launch to a running program: its environment, its holder, its place in the registry.

use std::io;
use std::path::Path;

use serde_json::Map;
use shared::config::FreezeBy;
use shared::event::Author;
use shared::exec::Language;
use shared::id::{RuntimeId, SessionId, ThreadId};
use shared::runtime::Launch;

use crate::context::Context;
use crate::files;
use crate::holder::link::{Link, LinkError};
use crate::holder::spawn::spawn;
use crate::holder::wire;
use crate::language::environment::Delta;
use crate::lifecycle::End;
use crate::runtime::{self, Beginning, Revived};
use crate::shell;
use crate::store::{self, EndingAt, New};

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

/// What a program gets to clean up when it is to end.
pub const ENDING_GRACE_MS: u32 = 2000;

/// A launch that is stored and may become a process.
pub struct Ready {
    pub runtime: RuntimeId,
    pub session: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub launch: Launch,
    /// The environment of whoever asked for it; never stored.
    pub environment: Vec<(String, String)>,
    /// Started while the launch was being stored.
    pub holder: io::Result<Link>,
    /// What is started is a language's driver.
    pub interpreter: Option<Driven>,
    /// What its terminal shows before it says anything.
    pub preface: String,
}

/// What an interpreter gets beside its launch.
pub struct Driven {
    pub language: Language,
    /// Variables of its caller that it had removed.
    pub removed: Vec<String>,
    /// Variables of its own, for this time only.
    pub own: Vec<(String, String)>,
}

/// A new session of which nothing special is asked; for the rest to be filled in.
pub fn plain(context: &Context, author: Author) -> New {
    New {
        name: None,
        here: String::new(),
        workspace: None,
        program: None,
        must_start: false,
        user: None,
        channel: None,
        mode: None,
        task: None,
        max_iterations: None,
        context: Map::new(),
        metadata: Map::new(),
        idle_timeout: None,
        max_duration: None,
        watch: None,
        defaults: context.config().policy.clone(),
        group: None,
        limits: context.config().groups.clone(),
        lease: context.local_lease,
        author,
        session: SessionId::new(),
        runtime: RuntimeId::new(),
        for_calls: false,
        is_folder: |path| Path::new(path).is_dir(),
        lost: None,
    }
}

/// A holder that gets ready; it ends by itself if it never gets a launch.
pub fn holder(context: &Context, runtime: RuntimeId) -> io::Result<Link> {
    spawn(&context.paths.holder_socket(runtime))
}

/// Starts the program. One that cannot be started ends its session, and the sentence says why.
pub async fn start(context: &Context, ready: Ready) -> store::Result<Result<(), String>> {
    let Ready { runtime, session, thread, name, launch, environment, holder, interpreter, preface } = ready;
    let recording = context.paths.recording(runtime);
    let outcome = async {
        if let Err(error) = files::private_dir(&recording) {
            // the program runs all the same; its runtime says that nothing is recorded
            context.log.warn(&format!("session {name}: {error}"));
        }
        let mut link = holder.map_err(LinkError::Io)?;
        let mut env = program_environment(context, &environment, &launch, interpreter.as_ref(), (session, &name, runtime));
        let mut argv = launch.argv.clone();
        if interpreter.is_none()
            && context.config().shell.integration
            && let Err(error) = shell::integrate(&mut argv, &mut env, &context.paths.drivers(), shell::StateFiles::of(context, runtime))
        {
            // it runs all the same, and says nothing of its commands
            context.log.warn(&format!("session {name}: shell integration: {error}"));
        }
        let start = wire::Start {
            runtime: runtime.to_string(),
            env,
            argv,
            cwd: launch.cwd.clone(),
            size: launch.size,
            recording: recording.to_string_lossy().into_owned(),
            max_bytes: context.config().recording.max_mib << 20,
            open_files: context.open_files,
            umask: launch.umask,
            is_driver: interpreter.is_some(),
            max_processes: interpreter.as_ref().map(|_| context.config().runtime.max_processes),
            keeps: launch.keeps,
            redact: context.config().recording.redact.at_write.then(|| context.config().recording.redact.rules.clone()),
            preface,
            no_groups: context.config().pause.freeze == FreezeBy::Signals,
            has_nonces: interpreter.is_some(),
            can_switch: interpreter.is_some(),
            core_files: context.core_files,
        };
        let greeting = link.start(start).await?;
        Ok::<_, LinkError>((link, greeting))
    }
    .await;
    match outcome {
        Ok((link, greeting)) => {
            let (pid, holder_pid) = (greeting.child, greeting.pid);
            let interpreter = interpreter.map(|driven| Revived {
                language: driven.language,
                carried: Delta { set: launch.env_delta, removed: driven.removed },
                open: Vec::new(),
                settled: 0,
            });
            let beginning = Beginning { id: runtime, session, thread, name, cwd: launch.cwd, link, greeting, interpreter };
            let handle = runtime::begin(context.clone(), beginning);
            handle.facts.happened_now();
            context.registry.insert(handle.clone());
            // it runs, which the registry knows; that a later daemon finds it does not depend on this row
            let store = context.store.clone();
            tokio::spawn(async move {
                if let Ok(true) = store.runtime_is_running(runtime, pid, holder_pid).await {
                    handle.terminate(ENDING_GRACE_MS, Author::Daemon).await;
                }
            });
            Ok(Ok(()))
        }
        Err(error) => {
            let why = match error {
                LinkError::Gone => "the holder ended before it could start the program".to_owned(),
                other => other.to_string(),
            };
            let now = jiff::Timestamp::now();
            context.registry.remove(runtime);
            context
                .store
                .runtime_has_ended(runtime, End::Refused(why.clone()), EndingAt { now, last_activity: now, screen_at: None }, 0)
                .await?;
            Ok(Err(why))
        }
    }
}

/// What the daemon itself was started with: for programs whose caller is not there any more.
pub fn own_environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        // between a service manager and ourselves
        .filter(|(key, _)| {
            !matches!(key.as_str(), "NOTIFY_SOCKET" | "INVOCATION_ID" | "JOURNAL_STREAM" | "MANAGERPID" | "SYSTEMD_EXEC_PID")
        })
        .collect()
}

/// Whether a program without a folder is found where one is looked for.
pub fn is_on_path(program: &str, path: &str) -> bool {
    path.split(':').any(|folder| Path::new(folder).join(program).is_file())
}

/// The user's shell, as their environment names it.
pub fn user_shell(environment: &[(String, String)]) -> String {
    environment
        .iter()
        .find(|(key, value)| key == "SHELL" && !value.is_empty())
        .map_or_else(|| "/bin/sh".to_owned(), |(_, value)| value.clone())
}

fn program_environment(
    context: &Context,
    inherited: &[(String, String)],
    launch: &Launch,
    interpreter: Option<&Driven>,
    (session, name, runtime): (SessionId, &str, RuntimeId),
) -> Vec<(String, String)> {
    // what an interpreter runs prints into a pipe: colours would be noise
    let (term, colours) = if interpreter.is_some() { ("dumb", "") } else { ("xterm-256color", "truecolor") };
    let own = [
        ("TERM", term.to_owned()),
        ("COLORTERM", colours.to_owned()),
        ("TERM_PROGRAM", "sessions-tui".to_owned()),
        ("TERM_PROGRAM_VERSION", shared::VERSION.to_owned()),
        ("PWD", launch.cwd.clone()),
        ("SESSIONS_SESSION", session.to_string()),
        ("SESSIONS_THREAD", name.to_owned()),
        ("SESSIONS_RUNTIME", runtime.to_string()),
        ("SESSIONS_SOCKET", context.paths.socket().to_string_lossy().into_owned()),
    ];
    let (removed, added) = interpreter.map_or((&launch.env_removed[..], &[][..]), |driven| (&driven.removed[..], &driven.own[..]));
    let is_given = |key: &str| launch.env_delta.iter().any(|(name, _)| name == key);
    let is_ours = |key: &str| {
        own.iter().any(|(name, _)| *name == key)
            || added.iter().any(|(name, _)| name == key)
            || is_given(key)
            || removed.iter().any(|name| name == key)
    };
    inherited
        .iter()
        .filter(|(key, _)| !NOT_INHERITED.contains(&key.as_str()) && !key.starts_with("CLAUDE_CODE_") && !is_ours(key))
        .cloned()
        .chain(own.iter().filter(|(key, value)| !is_given(key) && !value.is_empty()).map(|(key, value)| ((*key).to_owned(), value.clone())))
        .chain(added.iter().filter(|(key, _)| !is_given(key)).cloned())
        .chain(launch.env_delta.iter().cloned())
        .collect()
}
