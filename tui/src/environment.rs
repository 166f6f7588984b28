//! What the process's environment says: where things are, and what a new program inherits.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::io::FdFlags;

use crate::trust;
use shared::id::SessionId;
use shared::paths::{Environment, PathError, Paths};

/// Where everything lives for this user; a socket given on the command line wins.
pub fn paths(socket: Option<PathBuf>) -> Result<Paths, PathError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    Paths::find(&Environment {
        root: variable("SESSIONS_ROOT"),
        socket: socket.or_else(|| variable("SESSIONS_SOCKET")),
        home: variable("HOME"),
        state_home: variable("XDG_STATE_HOME"),
        config_home: variable("XDG_CONFIG_HOME"),
        runtime_dir: variable("XDG_RUNTIME_DIR"),
        temp: std::env::temp_dir(),
        uid: rustix::process::geteuid().as_raw(),
        is_private: Some(trust::is_private),
    })
}

/// Keeps descriptors that we were started with, beyond the standard three, from the processes we start. A daemon that
/// inherited somebody's pipe would keep its reader waiting for ever.
pub fn keep_descriptors_to_ourselves() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let numbers: Vec<i32> = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        #[expect(unsafe_code, reason = "descriptors we did not open have only a number")]
        // SAFETY: the borrow ends with this statement, and the call only sets a flag: on a number that is not open (any
        // more) it fails without effect.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

/// Our mask for new files. It can only be read by setting it.
#[allow(clippy::useless_conversion, reason = "macOS has narrower modes")]
pub fn umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    u32::from(mask.as_raw_mode())
}

/// The session this process runs in, if it does.
pub fn own_session() -> Option<SessionId> {
    SessionId::parse(&std::env::var("SESSIONS_SESSION").ok()?)
}

/// The prefix of the tmux we are in, as tmux writes it (`C-b`); nothing outside of tmux, or if it does not answer.
pub fn tmux_prefix() -> Option<String> {
    std::env::var_os("TMUX")?;
    let output =
        std::process::Command::new("tmux").args(["show-options", "-gv", "prefix"]).stderr(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What a user inside tmux has to know of the prefix: nothing if tmux's own is another key.
pub fn tmux_hint(prefix: shared::config::Prefix) -> Option<String> {
    let (theirs, label) = (tmux_prefix()?, prefix.label());
    let is_same = theirs.eq_ignore_ascii_case(&format!("C-{}", prefix.letter()));
    is_same.then(|| format!("tmux takes {label} for itself: press it twice ({label} {label} d), or set [keys] prefix in config.toml"))
}

/// Our environment, for a program that is to run as if started here. What is not Unicode is left out.
pub fn inherited() -> Vec<(String, String)> {
    std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?))).collect()
}
