//! After a start: the database says what should live; holders and recordings say what does.

use std::path::Path;
use std::time::Duration;

use shared::event::Author;
use shared::exec::Verb;
use shared::id::RuntimeId;
use shared::runtime::{Launch, LostReason, RuntimeState};
use tokio::task::JoinSet;

use crate::context::Context;
use crate::ending;
use crate::holder;
use crate::holder::link::{Link, LinkError};
use crate::holder::wire::Greeting;
use crate::language::environment::Delta;
use crate::lifecycle::End;
use crate::runtime::{self, Beginning, Revived};
use crate::store::{self, Absent, EndingAt, LiveRuntime, New, Program};
use crate::{exec, language, launch, queue, recording, restore, wake};

/// A holder answers a hello at once; one that is stopped or stuck must not keep the daemon from starting.
const GREETING_PATIENCE: Duration = Duration::from_secs(2);

/// A holder that is asked to listen again does so at once, unless the machine is busy.
const LISTENS_WITHIN: Duration = Duration::from_millis(20);

/// Between two tries to reach a holder that did not answer.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// An attached client comes back at once; nothing expires for this long if it had control.
const COME_BACK_MICROS: i64 = 10_000_000;

/// What a lost holder left running gets this long to end by itself.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// Brings back a true picture: reaches every holder, settles what ended or was lost meanwhile.
pub async fn recover(context: &Context) -> store::Result<()> {
    let live = context.store.live_runtimes().await?;
    let known: Vec<RuntimeId> = live.iter().map(|runtime| runtime.runtime).collect();
    let mut reaching = JoinSet::new();
    for runtime in live {
        let socket = context.paths.holder_socket(runtime.runtime);
        reaching.spawn(async move {
            let outcome = tokio::time::timeout(GREETING_PATIENCE, reach(&socket, runtime.holder_pid)).await;
            (runtime, outcome)
        });
    }
    while let Some(Ok((runtime, outcome))) = reaching.join_next().await {
        match outcome {
            Ok(Ok((link, greeting))) => reconnect(context, runtime, link, greeting).await?,
            Ok(Err(error)) if is_gone(context, &runtime, &error) => {
                if let Err(error) = settle_lost(context, runtime.clone()).await {
                    context.log.warn(&format!("session {}: {error}", runtime.name));
                    keep_trying(context, runtime, error.to_string());
                }
            }
            // alive as far as anybody knows: stopped, stuck, newer, or out of our reach for the moment
            Ok(Err(error)) => {
                let why = why_unreachable(&runtime, Some(&error));
                keep_trying(context, runtime, why);
            }
            Err(_) => {
                let why = why_unreachable(&runtime, None);
                keep_trying(context, runtime, why);
            }
        }
    }
    adopt_unknown(context, &known).await;
    Ok(())
}

/// Connects to a holder. One that runs without a socket, because the folder for it was taken away, is asked to make another.
async fn reach(socket: &Path, holder: Option<u32>) -> Result<(Link, Greeting), LinkError> {
    loop {
        match Link::connect(socket).await {
            Err(LinkError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound && is_running(holder, socket) => {
                if let Some(pid) = holder {
                    holder::listen_again(pid);
                }
                tokio::time::sleep(LISTENS_WITHIN).await;
            }
            outcome => return outcome,
        }
    }
}

/// Whether that process is the holder with this socket.
fn is_running(holder: Option<u32>, socket: &Path) -> bool {
    holder.is_some_and(|pid| holder::is_holder(pid, socket))
}

/// Whether a holder that cannot be reached is dead. When in doubt it is not: work must not be given up for a passing error.
fn is_gone(context: &Context, live: &LiveRuntime, error: &LinkError) -> bool {
    let unreachable = match error {
        LinkError::Gone => true,
        LinkError::Io(error) => matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound),
        LinkError::Newer(_) | LinkError::Refused(_) => false,
    };
    let socket = context.paths.holder_socket(live.runtime);
    unreachable && !is_running(live.holder_pid, &socket)
}

/// Why a holder that lives cannot be used. No error: it did not answer in time.
fn why_unreachable(live: &LiveRuntime, error: Option<&LinkError>) -> String {
    let pid = live.holder_pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let seen = live.holder_pid.and_then(holder::why_silent);
    match error {
        Some(LinkError::Newer(version)) => {
            format!("its holder{pid} speaks version {version} of its protocol, newer than this daemon: upgrade sessions-tui")
        }
        Some(LinkError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            format!("its holder{pid} answers with garbage: {error}")
        }
        Some(error @ LinkError::Refused(_)) => format!("its holder{pid} refuses: {error}"),
        _ => seen.unwrap_or_else(|| format!("its holder{pid} does not answer")),
    }
}

/// A holder that does not answer is asked again until it does, or is gone.
fn keep_trying(context: &Context, live: LiveRuntime, why: String) {
    context.log.warn(&format!("session {}: {why}; it is tried again", live.name));
    context.registry.set_unreachable(live.runtime, live.session, why);
    let context = context.clone();
    tokio::spawn(async move {
        let socket = context.paths.holder_socket(live.runtime);
        loop {
            tokio::time::sleep(TRY_AGAIN).await;
            let outcome = match tokio::time::timeout(GREETING_PATIENCE, reach(&socket, live.holder_pid)).await {
                Ok(Ok((link, greeting))) => reconnect(&context, live.clone(), link, greeting).await,
                Ok(Err(error)) if is_gone(&context, &live, &error) => settle_lost(&context, live.clone()).await,
                silent => {
                    let why = why_unreachable(&live, silent.as_ref().ok().and_then(|outcome| outcome.as_ref().err()));
                    context.registry.set_unreachable(live.runtime, live.session, why);
                    continue;
                }
            };
            match outcome {
                Ok(()) => {
                    context.registry.forget_unreachable(live.runtime);
                    return;
                }
                Err(error) => context.log.warn(&format!("session {}: {error}", live.name)),
            }
        }
    });
}

async fn reconnect(context: &Context, live: LiveRuntime, link: Link, greeting: Greeting) -> store::Result<()> {
    if matches!(live.state, RuntimeState::Starting) {
        context.store.runtime_is_running(live.runtime, greeting.child, greeting.pid).await?;
    }
    let last_output = recording::last_written(&context.paths.recording(live.runtime));
    let (id, session, thread) = (live.runtime, live.session, live.thread);
    let interpreter = match live.interpreter {
        Some((language, carried)) => {
            let (open, found, settled) = exec::open_calls(context, id, greeting.end).await?;
            if let Some((running, _)) = greeting.call
                && open.iter().all(|stored| stored.id != running)
                && !found.contains_key(&running)
            {
                // its beginning has been dropped from the recording
                context.store.adopt_exec(running, id, Verb::Exec, String::new()).await?;
            }
            let open = if greeting.call.is_some() { context.store.open_execs(id).await?.0 } else { open };
            Some(Revived { language, carried, open, settled })
        }
        None => None,
    };
    let beginning = Beginning { id, session, thread, name: live.name, cwd: live.cwd, link, greeting, interpreter };
    let handle = runtime::begin(context.clone(), beginning);
    if let Some(at) = live.seen_at {
        handle.facts.set_seen(at);
    }
    if let Some(at) = live.answered_at {
        handle.facts.set_answered(at);
    }
    if live.is_controlled {
        handle.facts.hold_until(context.clock.now() + COME_BACK_MICROS);
    }
    if let Some(at) = last_output {
        // what it said while no daemon was there is activity too, as long ago as the files say
        let ago = jiff::Timestamp::now().as_microsecond() - at.as_microsecond();
        handle.facts.happened(at, context.clock.now() - ago.max(0));
    }
    context.registry.insert(handle.clone());
    // as the database says: whoever decided it may have died before it was done
    tokio::spawn(async move {
        let _ = handle.settle_freezing().await;
    });
    // decided before, by whoever then was the daemon, or while it could not be reached
    if context.store.is_ending(id).await? == Some(true) {
        let context = context.clone();
        tokio::spawn(async move {
            let _ = ending::end_runtime(&context, id, Author::Daemon).await;
        });
    }
    Ok(())
}

async fn settle_lost(context: &Context, live: LiveRuntime) -> store::Result<()> {
    let dir = context.paths.recording(live.runtime);
    let tail = recording::tail(&dir).map_err(|error| store::Error::Broken(format!("its recording cannot be read: {error}")))?;
    if tail.torn > 0 {
        context.log.warn(&format!("session {}: the last {} bytes of its recording are not a whole frame", live.name, tail.torn));
    }
    let _ = std::fs::remove_file(context.paths.holder_socket(live.runtime));
    let last_activity = tail
        .last_at
        .and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok())
        .map_or(live.last_activity_at, |at| at.max(live.last_activity_at));
    let end = match tail.exit {
        Some(status) => End::Exited(status),
        None if tail.end == 0 && matches!(live.state, RuntimeState::Starting) => {
            if let Some(again) = context.store.launch_again(live.session, live.runtime, context.local_lease).await? {
                context.log.note(&format!("session {}: the daemon died when its turn had come; it is started now", live.name));
                queue::begin(context, again).await;
                return Ok(());
            }
            if let Some((launch, continues)) = context.store.launch_of(live.runtime).await? {
                context.log.note(&format!("session {}: the daemon died when it was started again; it is started now", live.name));
                return start_again(context, &live, launch, continues).await;
            }
            End::Lost(LostReason::NeverStarted)
        }
        None if live.created_at < context.boot_since => End::Lost(LostReason::MachineRestarted),
        None => End::Lost(LostReason::HolderGone),
    };
    if let End::Lost(reason) = &end {
        context.log.warn(&format!(
            "session {} of thread {} ({}) is lost, last activity {last_activity}: {}",
            live.session,
            live.name,
            live.thread,
            reason.sentence()
        ));
        end_orphans(context, &live);
    }
    let at = EndingAt { now: jiff::Timestamp::now(), last_activity, screen_at: None };
    let after = restore::after(&end, context.config().restore);
    context.store.runtime_was_lost(live.runtime, end.clone(), at, tail.end, after).await?;
    if live.interpreter.is_some() {
        exec::settle_ended(context, live.runtime, &end, tail.end).await?;
    }
    Ok(())
}

/// A program that was to be started in the place of another.
async fn start_again(context: &Context, live: &LiveRuntime, launch: Launch, continues: RuntimeId) -> store::Result<()> {
    let session = context.store.session(live.session).await?;
    let again = wake::Again { runtime: live.runtime, continues, screen_at: None, launch, was: wake::Was::Hibernated, says: None };
    if let Err(why) = wake::start(context, &session, again, wake::environment(None)).await? {
        context.log.warn(&format!("session {}: {why}", session.name));
    }
    Ok(())
}

/// A holder killed together with the daemon may have left processes that nobody owns.
fn end_orphans(context: &Context, live: &LiveRuntime) {
    let (context, name, id) = (context.clone(), live.name.clone(), live.runtime.to_string());
    tokio::task::spawn_blocking(move || {
        let ended = holder::end_orphans(&id, ORPHAN_GRACE);
        if ended > 0 {
            context.log.warn(&format!("session {name}: ended {ended} process(es) its lost holder left behind"));
        }
    });
}

/// Holders the database knows nothing of: it was set aside, or restored from an older copy. They get a session again.
async fn adopt_unknown(context: &Context, known: &[RuntimeId]) {
    let Ok(entries) = std::fs::read_dir(&context.paths.runtime) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".sock")).and_then(RuntimeId::parse);
        // one that was launched again a moment ago is known too
        let Some(id) = id.filter(|id| !known.contains(id) && context.registry.runtime(*id).is_none()) else { continue };
        match tokio::time::timeout(GREETING_PATIENCE, Link::connect(&path)).await {
            // its program has ended and that is known: it only waits for what the program left behind
            Ok(Ok((_, greeting))) if greeting.exit.is_some() => {}
            Ok(Ok((link, greeting))) => {
                if let Err(error) = adopt(context, id, link, greeting).await {
                    context.log.warn(&format!("a holder the database does not know ({id}) was left as it is: {error}"));
                }
            }
            Ok(Err(LinkError::Io(error))) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&path);
            }
            _ => {}
        }
    }
}

async fn adopt(context: &Context, id: RuntimeId, link: Link, greeting: Greeting) -> store::Result<()> {
    let proc = Path::new("/proc").join(greeting.child.to_string());
    let argv: Vec<String> = std::fs::read(proc.join("cmdline"))
        .map(|bytes| {
            bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        })
        .unwrap_or_default();
    let cwd = std::fs::read_link(proc.join("cwd")).map_or_else(|_| "/".to_owned(), |path| path.to_string_lossy().into_owned());
    if greeting.is_driver {
        return adopt_interpreter(context, id, &argv, cwd, (link, greeting)).await;
    }
    let asked = New {
        here: cwd.clone(),
        program: Some(Program {
            argv,
            is_named: true,
            env_delta: Vec::new(),
            size: Some(greeting.size),
            umask: None,
            keeps: greeting.keeps,
        }),
        runtime: id,
        // it is there, and stays where it is
        is_folder: |_| true,
        ..launch::plain(context, Author::Daemon)
    };
    let started = context.store.open_session(asked).await?;
    context.log.warn(&format!("a holder the database did not know is session {} now", started.session.name));
    context.store.runtime_is_running(id, greeting.child, greeting.pid).await?;
    let (session, thread) = (started.session.id, started.session.thread);
    let beginning = Beginning { id, session, thread, name: started.session.name, cwd, link, greeting, interpreter: None };
    let handle = runtime::begin(context.clone(), beginning);
    handle.facts.happened_now();
    context.registry.insert(handle);
    Ok(())
}

/// An interpreter's driver says which language it is by its name; what it knows is still there.
async fn adopt_interpreter(context: &Context, id: RuntimeId, argv: &[String], cwd: String, held: (Link, Greeting)) -> store::Result<()> {
    let Some(language) = argv.iter().find_map(|word| language::of_driver(word)) else { return Ok(()) };
    let asked =
        New { here: cwd.clone(), mode: Some(store::RUNTIME_MODE.to_owned()), for_calls: true, ..launch::plain(context, Author::Daemon) };
    let opened = context.store.open_session(asked).await?;
    let (session, thread, name) = (opened.session.id, opened.session.thread, opened.session.name);
    let (link, greeting) = held;
    let launch = Launch {
        argv: argv.to_vec(),
        cwd: cwd.clone(),
        env_delta: Vec::new(),
        env_removed: Vec::new(),
        size: greeting.size,
        keeps: greeting.keeps,
        umask: None,
    };
    let absent = Absent::of(session, thread, name.clone(), cwd.clone());
    context.store.launch_runtime(absent, language, id, launch, context.local_lease).await?;
    context.log.warn(&format!("a {language} runtime the database did not know is in session {name} now"));
    context.store.runtime_is_running(id, greeting.child, greeting.pid).await?;
    let open = match greeting.call {
        Some((running, _)) => {
            context.store.adopt_exec(running, id, Verb::Exec, String::new()).await?;
            context.store.open_execs(id).await?.0
        }
        None => Vec::new(),
    };
    let revived = Revived { language, carried: Delta::default(), open, settled: greeting.end };
    let beginning = Beginning { id, session, thread, name, cwd, link, greeting, interpreter: Some(revived) };
    let handle = runtime::begin(context.clone(), beginning);
    // when it was last used is not known: counted from now, or it would be ended as idle at once
    handle.facts.happened_now();
    context.registry.insert(handle);
    Ok(())
}
