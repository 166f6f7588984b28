//! The daemon's life: one per state directory, listening on one socket, until it is asked to stop. Knows no request.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::traits::StreamCommon;
use interprocess::local_socket::{GenericFilePath, ListenerOptions};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use rustix::fs::FlockOperation;
use shared::paths::Paths;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::context::{Context, Stop, World};
use crate::handle::queue::Queue;
use crate::handle::upcall::Upcalls;
use crate::handle::upkeep::Upkeep;
use crate::handle::watch::Watch;
use crate::log::Log;
use crate::peer::Peer;
use crate::registry::Registry;
use crate::settings::{FirstSettings, Settings};
use crate::store::{self, StoreHandle};
use crate::watch as files_watch;
use crate::webhook::Post;
use crate::{
    cleanup, command_history, connection, delivery, expiry, files, hibernate, leftover, memory, queue, recover, reload, request, restore,
    upcalls, upkeep,
};

/// Clients at once; beyond that a new one has to wait, and those that are there are fine.
const MAX_CLIENTS: usize = 1000;

/// Changes of files that are not told yet get this long when the daemon leaves.
const LAST_CHANGES: Duration = Duration::from_secs(2);

/// After `accept` failed for want of descriptors: a moment, instead of a hot loop.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("a daemon is already running for {0}")]
    AlreadyRunning(String),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Where a daemon finds the place it is to have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Free,
    /// Another one has it, and is asked to leave.
    BeingLeft,
}

/// How long a daemon that leaves may take to store what is left.
const LEAVING_PATIENCE: Duration = Duration::from_mins(1);

/// Runs the daemon until it is told to stop. `ready` is called once clients can connect.
pub async fn run(paths: Paths, settings: FirstSettings, place: Place, ready: impl FnOnce()) -> Result<(), StartError> {
    crate::signals::survive_file_size_limit()?;
    // whoever started us may be in a session: what happens to that is not for us
    crate::holder::leave_sessions();
    files::private_dir(&paths.state)?;
    // let go by the kernel when the process is gone, not when this function is: until then the store's thread has the database open
    std::mem::forget(match place {
        Place::Free => lock(&paths, FlockOperation::NonBlockingLockExclusive)?,
        Place::BeingLeft => wait_for_lock(&paths).await?,
    });
    files::private_dir(&paths.runtime)?;
    files::private_dir(&paths.recordings())?;
    if let Some(parent) = paths.socket().parent() {
        files::private_dir(parent)?;
    }
    let limits = Limits { open_files: raise_file_limit(), core_files: Some(memory::hide()) };
    memory::refuse_inspection();
    let log = Log::open(&paths.log());
    let context = open_world(paths, settings, log, limits).await?;
    recover::recover(&context).await?;
    leftover::remove(&context).await;
    delivery::start(&context);
    request::drain_hooks(&context).await;
    let listener = listen(&context.paths.socket())?;
    if let Err(error) = point_to_socket(&context.paths) {
        // only those look there who know neither the runtime directory nor the socket; a full disk must not keep the daemon from starting
        context.warn(format!("{} could not be written: {error}", context.paths.pointer().display()));
    }
    if let Err(error) = cleanup::look_at_clocks(&context).await {
        context.log.warn(&format!("the clocks could not be compared: {error}"));
    }
    context.log.note(&format!(
        "daemon {} started, pid {}, {} going on",
        shared::VERSION,
        std::process::id(),
        shared::text::count(context.registry.count_sessions(), "session")
    ));
    ready();
    for work in [
        tokio::spawn(restore::run(context.clone())),
        tokio::spawn(hibernate::run(context.clone())),
        tokio::spawn(queue::run(context.clone())),
        tokio::spawn(upcalls::run(context.clone())),
        tokio::spawn(expiry::run(context.clone())),
        tokio::spawn(cleanup::run(context.clone())),
        tokio::spawn(upkeep::run(context.clone())),
        tokio::spawn(files_watch::run(context.clone())),
        tokio::spawn(back_up_at_start(context.clone())),
        tokio::spawn(count_activity(context.clone())),
        tokio::spawn(reload::run(context.clone())),
        tokio::spawn(command_history::catch_up_ended(context.clone())),
    ] {
        // they end with the daemon
        drop(work);
    }
    let outcome = serve(&context, listener).await;
    let _ = std::fs::remove_file(context.paths.socket());
    for handle in context.registry.all() {
        if let Some(at) = handle.facts.last_activity() {
            let _ = context.store.touch(handle.facts.session(), at, handle.facts.last_steady()).await;
        }
    }
    // what was not told by then is found by the next daemon, from the times of files
    let _ = tokio::time::timeout(LAST_CHANGES, context.watch.settle()).await;
    context.store.settle().await;
    let _ = cleanup::look_at_clocks(&context).await;
    cleanup::back_up(&context).await;
    context.log.note("daemon stopped");
    outcome?;
    Ok(())
}

/// A copy to recover from, as of now: the database has just been found sound.
async fn back_up_at_start(context: Context) {
    cleanup::back_up(&context).await;
}

/// So that whoever looks at a calendar has little to wait for, however much has happened since somebody last did.
async fn count_activity(context: Context) {
    // a database that cannot take it now is asked again by the calendar itself
    let _ = context.store.count_activity().await;
}

/// In line before anybody who only tries: the kernel hands it over.
async fn wait_for_lock(paths: &Paths) -> Result<File, StartError> {
    let waiting = {
        let paths = paths.clone();
        tokio::task::spawn_blocking(move || lock(&paths, FlockOperation::LockExclusive))
    };
    match tokio::time::timeout(LEAVING_PATIENCE, waiting).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(io::Error::other(error).into()),
        Err(_) => Err(StartError::AlreadyRunning(paths.state.display().to_string())),
    }
}

/// Held for life: whoever has it may touch the socket, the database and the holders.
fn lock(paths: &Paths, operation: FlockOperation) -> Result<File, StartError> {
    let path = paths.lock();
    let file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write to {}: {error}", paths.state.display())))?;
    match rustix::fs::flock(&file, operation) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StartError::AlreadyRunning(paths.state.display().to_string())),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// A descriptor or two for each session adds up. Gives the limit of before, which programs get.
fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit.current
}

/// Limits of before, which programs get.
struct Limits {
    open_files: Option<u64>,
    core_files: Option<u64>,
}

async fn open_world(paths: Paths, settings: FirstSettings, log: Log, limits: Limits) -> Result<Context, StartError> {
    let settings = Settings::new(&paths, settings);
    for sentence in settings.wrong() {
        log.warn(&sentence);
    }
    let mut warnings = Vec::new();
    let opened = store::open(&paths.database())?;
    for text in opened.repaired {
        log.warn(&text);
        warnings.push(text);
    }
    let clock = store::steady_clock(&opened.connection, &boot_id())?;
    let store = StoreHandle::start(opened.connection, clock)?;
    let (local_lease, boot_since) = store.local_lease(boot_id()).await?;
    Ok(Arc::new(World {
        post: Post::default(),
        paths,
        settings,
        store,
        registry: Registry::default(),
        notify: crate::notify::Notify::default(),
        execs: crate::handle::exec::Execs::default(),
        queue: Queue::default(),
        upkeep: Upkeep::default(),
        upcalls: Upcalls::default(),
        watch: Watch::default(),
        searches: crate::search::Turns::default(),
        replays: crate::search::Turns::default(),
        clock,
        log,
        local_lease,
        boot_since,
        started_at: jiff::Timestamp::now(),
        clients: AtomicU32::new(0),
        warnings: Mutex::new(warnings),
        open_files: limits.open_files,
        core_files: limits.core_files,
        stop: watch::Sender::new(Stop::No),
    }))
}

/// Names this boot of this machine: after a reboot the lease points to a new instance.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| "this machine".to_owned(), |id| id.trim().to_owned())
}

/// Only with the lock held: a socket file that is there belongs to a daemon that is dead.
fn listen(path: &Path) -> io::Result<Listener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let name = path.to_fs_name::<GenericFilePath>()?;
    // the folder is 0700 already; the name is ours to clean up, because only we know whether it is still ours
    ListenerOptions::new().name(name).mode(0o600).reclaim_name(false).create_tokio()
}

/// Says in the state directory where the socket is, for callers without `XDG_RUNTIME_DIR`.
fn point_to_socket(paths: &Paths) -> io::Result<()> {
    let temporary = paths.state.join("socket.new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(paths.socket().to_string_lossy().as_bytes())?;
    std::fs::rename(temporary, paths.pointer())
}

async fn serve(context: &Context, listener: Listener) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stop = context.stop.subscribe();
    let mut clients = JoinSet::new();
    let uid = rustix::process::geteuid().as_raw();
    loop {
        tokio::select! {
            accepted = listener.accept(), if clients.len() < MAX_CLIENTS => match accepted {
                Ok(stream) => {
                    match stream.peer_creds() {
                        Ok(peer) if peer.euid() == Some(uid) => {
                            clients.spawn(connection::serve(Arc::clone(context), stream, Peer::of(peer.pid())));
                        }
                        _ => context.log.warn("a connection of another user was refused"),
                    }
                }
                Err(error) => {
                    context.log.warn(&format!("accepting a client: {error}"));
                    tokio::time::sleep(ACCEPT_BACK_OFF).await;
                }
            },
            Some(ended) = clients.join_next() => {
                if let Err(error) = ended
                    && error.is_panic()
                {
                    context.log.warn(&format!("a connection ended with a panic: {error}"));
                }
            }
            _ = terminate.recv() => { context.stop.send_replace(Stop::Leave); }
            _ = interrupt.recv() => { context.stop.send_replace(Stop::Leave); }
            // the terminal it was started from is gone: nothing to us
            _ = hangup.recv() => {}
            _ = stop.changed() => break,
        }
    }
    drop(listener);
    while clients.join_next().await.is_some() {}
    Ok(())
}
