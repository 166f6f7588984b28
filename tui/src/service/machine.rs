//! What of the daemon's service is on this machine: read from the environment, files and the service manager.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use shared::message::Failure;

use super::{Kind, MARK, Service};

/// A service that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Installed {
    pub kind: Kind,
    pub file: PathBuf,
    /// It starts this very program, as it would be written now.
    pub is_current: bool,
}

impl Installed {
    pub fn words(&self) -> String {
        let stale = if self.is_current { "" } else { "; it names another program or folder: `sessions-tui daemon install` renews it" };
        format!("{}, {}{stale}", self.kind.words(), shared::text::visible(&self.file.to_string_lossy()))
    }
}

/// What the environment says of this machine and user.
pub fn service() -> Result<Service, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let home =
        variable("HOME").map(PathBuf::from).ok_or_else(|| Failure::usage("HOME is not set: a service needs a place for its file"))?;
    let config_home =
        variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(".config"));
    // PATH: what is started again after a reboot is found where it is found now
    let mut environment = vec!["PATH", "SESSIONS_ROOT", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
    // inside a session it only says where the daemon of that one is
    if variable("SESSIONS_SESSION").is_none() {
        environment.push("SESSIONS_SOCKET");
    }
    let executable = std::env::current_exe().map_err(|error| Failure::failed(format!("where this program is cannot be told: {error}")))?;
    if !executable.exists() {
        return Err(Failure::failed("this program's file is gone, it was replaced while it ran: run `sessions-tui daemon install` again"));
    }
    Ok(Service {
        executable,
        environment: environment.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect(),
        root: variable("SESSIONS_ROOT").map(PathBuf::from),
        home,
        config_home,
    })
}

/// The service files of ours that are there.
pub fn installed(service: &Service) -> Vec<Installed> {
    let there = |kind: Kind| {
        let file = service.file(kind);
        let text = std::fs::read_to_string(&file).ok().filter(|text| text.contains(MARK))?;
        // the PATH of another window is no other installation
        let plain = |text: &str| text.lines().filter(|line| !line.starts_with("Environment=\"PATH=")).collect::<Vec<_>>().join("\n");
        let wanted = service.text(kind).unwrap_or_default();
        let is_current = if kind == Kind::Systemd { plain(&text) == plain(&wanted) } else { names(&text, &service.executable) };
        Some(Installed { kind, file, is_current })
    };
    Kind::ALL.into_iter().filter_map(there).collect()
}

pub fn names(text: &str, executable: &Path) -> bool {
    executable.to_str().is_some_and(|path| text.contains(path))
}

pub fn has_user_manager() -> bool {
    found("systemctl") && quiet(&words(&["systemctl", "--user", "show-environment"]))
}

/// Whether everything of this user ends with the last logout; nothing where nobody can say.
pub fn lingers() -> Option<bool> {
    let output = Command::new("loginctl")
        .args(["show-user", "--property=Linger", "--value", &rustix::process::getuid().as_raw().to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

pub fn quiet(command: &[String]) -> bool {
    Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether there is such a program on PATH.
pub fn found(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
