//! The facts: looks at files, processes and variables, and asks the daemon for its name. Starts nothing, changes nothing.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::time::{ClockId, clock_gettime};
use shared::doctor::Database;
use shared::exec::Language;
use shared::filter::Filter;
use shared::message::{PROTOCOL, Request, SettingsNow};
use shared::paths::Paths;
use shared::session::Session;

use super::Lookers;
use super::check::{self, Clock, Daemon, Facts, Guard, Holder, Missing, Place, Service, Shell, Socket, Terminal};
use crate::client::Client;
use crate::connect;
use crate::service::Kind;
use crate::service::machine;
use crate::trust;

/// A daemon says hello at once; one that is stopped must not keep us.
const PATIENCE: Duration = Duration::from_secs(3);

/// Longest that Linux takes, with its final zero; macOS takes four less.
const MAX_SOCKET: usize = 107;

pub async fn gather(paths: &Paths, look: Lookers) -> Facts {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let database = (look.database)(&paths.database());
    let (config, warning) = crate::settings::load_config(paths);
    let languages = [Language::Bash, Language::Python, Language::Node];
    let service = machine::service().ok().and_then(|service| machine::installed(&service).into_iter().next());
    let (daemon, mut client) = daemon(paths).await;
    let sessions = listed(&mut client).await;
    let wrong = match asked(&mut client).await {
        Some(now) => now.wrong,
        None => warning.into_iter().chain((look.agents)(&paths.agents())).collect(),
    };
    Facts {
        restorable: sessions.iter().filter(|session| session.restorable).map(|session| session.name.clone()).collect(),
        unreachable: sessions.iter().filter_map(|session| Some((session.name.clone(), session.unreachable.clone()?))).collect(),
        daemon,
        version: shared::VERSION.to_owned(),
        socket: socket(&paths.socket()),
        path: path(paths),
        places: places(paths),
        config: wrong,
        clock: clock(&database),
        database,
        disk_free: disk_free(&paths.state),
        files_free: files_free(&paths.state),
        interpreters: languages
            .map(|language| (language.to_string(), interpreter(language, config.runtime.interpreter(language))))
            .to_vec(),
        shell: match variable("SHELL") {
            None => Shell::Unset,
            Some(path) if is_program(Path::new(&path)) => Shell::Found(path),
            Some(path) => Shell::NoProgram(path),
        },
        locale: ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| Some((name.to_owned(), variable(name)?))),
        terminal: terminal(variable("TERM")),
        inside: variable("SESSIONS_THREAD").or_else(|| variable("SESSIONS_SESSION")),
        tmux: variable("TMUX").map(|_| crate::environment::tmux_prefix().unwrap_or_default()),
        prefix: format!("C-{}", crate::settings::load_config(paths).0.keys.prefix.letter()),
        service: service.map(|service| Service {
            words: service.words(),
            is_current: service.is_current,
            is_systemd: service.kind == Kind::Systemd,
        }),
        lingers: machine::lingers(),
        has_user_manager: machine::has_user_manager(),
        watches: std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok().and_then(|text| text.trim().parse().ok()),
        holders: holders(paths),
    }
}

/// The daemon, and a connection to it if it speaks as we do.
async fn daemon(paths: &Paths) -> (Daemon, Option<Client>) {
    let found = match tokio::time::timeout(PATIENCE, connect::running(paths)).await {
        Err(_) => Daemon::Silent(listener(&paths.socket())),
        Ok(Err(failure)) => Daemon::Other(failure.message),
        Ok(Ok(Some(client))) => {
            let hello = &client.daemon;
            let same_protocol = hello.protocol == PROTOCOL;
            let running = Daemon::Running { pid: hello.pid, version: hello.version.clone(), same_protocol };
            return (running, same_protocol.then_some(client));
        }
        Ok(Ok(None)) if is_locked(&paths.lock()) => match connect::elsewhere(paths) {
            Some(listens) => Daemon::Elsewhere(connect::nobody_at(paths, &listens)),
            None => Daemon::Silent(None),
        },
        Ok(Ok(None)) if paths.lock().exists() => Daemon::NotRunning,
        Ok(Ok(None)) => Daemon::Never,
    };
    (found, None)
}

/// The settings that a running daemon holds to, and what it says is wrong with their files.
async fn asked(client: &mut Option<Client>) -> Option<SettingsNow> {
    let asked = client.as_mut()?.call::<SettingsNow>(Request::Settings);
    tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()
}

/// The sessions as the daemon lists them.
async fn listed(client: &mut Option<Client>) -> Vec<Session> {
    let Some(client) = client else { return Vec::new() };
    let listed = tokio::time::timeout(PATIENCE, client.call::<Vec<Session>>(Request::List(Filter::default()))).await;
    listed.ok().and_then(Result::ok).unwrap_or_default()
}

/// Which process listens there.
fn listener(socket: &Path) -> Option<u32> {
    use interprocess::local_socket::prelude::*;
    use interprocess::local_socket::{GenericFilePath, Stream, traits::StreamCommon};
    trust::check_directory(socket).ok()?;
    let stream = Stream::connect(socket.to_fs_name::<GenericFilePath>().ok()?).ok()?;
    stream.peer_creds().ok()?.pid().and_then(|pid| u32::try_from(pid).ok())
}

/// Whoever has the lock is the daemon.
fn is_locked(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

fn socket(path: &Path) -> Socket {
    match std::fs::symlink_metadata(path) {
        Err(_) => Socket::Absent,
        Ok(meta) if !meta.file_type().is_socket() => Socket::OtherFile,
        // whoever listens in a directory of another user is not asked; what refuses it is said of the daemon
        Ok(_) if trust::check_directory(path).is_err() => Socket::Listening,
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Socket::Stale,
            _ => Socket::Listening,
        },
    }
}

fn path(paths: &Paths) -> check::Path {
    let socket = paths.socket();
    if socket.as_os_str().len() > MAX_SOCKET {
        return check::Path::TooLong(socket.display().to_string(), socket.as_os_str().len());
    }
    // the usual ones end so
    let is_substitute = paths.runtime.file_name().is_none_or(|name| name != "run" && name != "sessions-tui");
    if is_substitute { check::Path::Elsewhere(paths.runtime.display().to_string()) } else { check::Path::Usual }
}

fn places(paths: &Paths) -> Vec<Place> {
    let uid = rustix::process::geteuid().as_raw();
    let places = [paths.state.clone(), paths.runtime.clone(), paths.recordings(), paths.database(), paths.log(), paths.socket()];
    let settings = [paths.config.clone(), paths.config_file(), paths.agents()];
    let seen = |path: &PathBuf| std::fs::symlink_metadata(path).ok().map(|meta| (path.clone(), meta));
    let of_settings = |path: &PathBuf| {
        // through links: dotfiles may be anywhere
        let meta = std::fs::metadata(path).ok()?;
        let (is_folder, mode) = (meta.is_dir(), meta.permissions().mode());
        Some(Place { path: path.display().to_string(), mode, is_ours: true, is_folder, guard: Guard::Writing, is_read_only: false })
    };
    let place = |(path, meta): (PathBuf, Metadata)| Place {
        guard: Guard::Anything,
        is_ours: meta.uid() == uid,
        is_folder: meta.is_dir(),
        // a symbolic link says nothing by its own mode
        mode: if meta.is_symlink() { 0o700 } else { meta.permissions().mode() },
        is_read_only: meta.is_dir() && rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).is_err(),
        path: path.display().to_string(),
    };
    places.iter().filter_map(seen).map(place).chain(settings.iter().filter_map(of_settings)).collect()
}

/// Of the folder, or of the nearest one above it that is there.
fn disk_free(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail * disk.f_frsize)
}

/// Files that can still be made; `None` where the file system has no such limit.
fn files_free(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    (disk.f_files > 0).then_some(disk.f_favail)
}

fn interpreter(language: Language, named: Option<&str>) -> Result<String, Missing> {
    if let Some(named) = named {
        return if is_program(Path::new(named)) { Ok(named.to_owned()) } else { Err(Missing::Named(named.to_owned())) };
    }
    let names: &[&str] = match language {
        Language::Bash => &["bash"],
        Language::Python => &["python3", "python"],
        Language::Node => &["node", "nodejs"],
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = names.iter().find_map(|name| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path)));
    found.map(|path| path.display().to_string()).ok_or(Missing::NotOnPath)
}

fn is_program(path: &Path) -> bool {
    path.is_absolute() && std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn terminal(term: Option<String>) -> Terminal {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) => Terminal::Is { term, columns: size.ws_col, rows: size.ws_row },
        Err(_) => Terminal::None,
    }
}

/// Holders of this place by the argument they were started with: the socket they listen on.
fn holders(paths: &Paths) -> Vec<Holder> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let holder = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&str> = line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok()).collect();
        let socket = match words.as_slice() {
            [_, "holder", socket, ..] => Path::new(*socket),
            _ => return None,
        };
        let runtime = (socket.parent() == Some(&paths.runtime)).then(|| socket.file_stem())??.to_str()?.to_owned();
        Some(Holder { pid, runtime, has_socket: socket.exists() })
    };
    entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(holder).collect()
}

/// How far the wall clock is from the steady one that the database keeps for this boot.
fn clock(database: &Database) -> Option<Clock> {
    let Database::Sound { clock: Some((boot, offset)), .. } = database else { return None };
    let now = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    if now.trim() != boot {
        return None;
    }
    let seconds = |id| clock_gettime(id).tv_sec;
    let monotonic = seconds(ClockId::Monotonic);
    Some(Clock { ahead: jiff::Timestamp::now().as_second() - (monotonic + offset / 1_000_000), suspended: suspended(monotonic) })
}

#[cfg(target_os = "linux")]
fn suspended(monotonic: i64) -> i64 {
    clock_gettime(ClockId::Boottime).tv_sec - monotonic
}

#[cfg(not(target_os = "linux"))]
fn suspended(_: i64) -> i64 {
    0
}
