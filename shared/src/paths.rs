//! Where things live. Computes paths from the environment given to it; touches nothing.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::id::{ExecId, RuntimeId};

/// Longest socket path every system takes: macOS has 104 bytes with the final zero.
const MAX_SOCKET_PATH: usize = 100;

/// `/` + 32 hexadecimal digits + `.sock`: the longest name put into the runtime directory.
const LONGEST_SOCKET_NAME: usize = 38;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Database, recordings, log, lock: survives a reboot.
    pub state: PathBuf,
    /// Sockets: gone after a reboot.
    pub runtime: PathBuf,
    pub config: PathBuf,
    /// Set when the user named the socket.
    socket: Option<PathBuf>,
}

/// The few variables that say where things are.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub root: Option<PathBuf>,
    pub socket: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub state_home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
    pub runtime_dir: Option<PathBuf>,
    pub temp: PathBuf,
    pub uid: u32,
    /// Whether a directory exists, is this user's, and can be written by nobody else.
    pub is_private: Option<fn(&Path) -> bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("HOME is not set: set it, or set SESSIONS_ROOT to a folder for everything")]
    NoHome,
    #[error("SESSIONS_ROOT must be an absolute path, not {0}")]
    RelativeRoot(String),
    #[error("the path {0} is too long for sockets, and there is no private directory with a shorter one: set XDG_RUNTIME_DIR to one")]
    TooLong(String),
}

impl Environment {
    /// A directory for sockets when the usual one's path is too long. Only below directories that nobody else can write to:
    /// in a shared one (`/tmp`), whoever knows the name could be there first.
    fn short_runtime(&self, wanted: &Path) -> Option<PathBuf> {
        let is_private = |path: &PathBuf| path.is_absolute() && self.is_private.is_some_and(|is_private| is_private(path));
        let name = format!("sessions-tui-{:016x}", fingerprint(wanted));
        // where earlier versions put it: sockets of running sessions may be there
        let earlier = self.temp.join(format!("sessions-tui-{}-{:016x}", self.uid, fingerprint(wanted)));
        if is_private(&earlier) {
            return Some(earlier);
        }
        let system = Some(PathBuf::from(format!("/run/user/{}", self.uid)));
        let bases = [self.runtime_dir.clone(), system, Some(self.temp.clone())].into_iter().flatten().filter(is_private);
        let below_home = self.home.clone().filter(is_private).map(|home| home.join(format!(".sessions-tui/{:016x}", fingerprint(wanted))));
        bases.map(|base| base.join(&name)).chain(below_home).find(|path| fits(path))
    }
}

fn fits(runtime: &Path) -> bool {
    runtime.as_os_str().len() + LONGEST_SOCKET_NAME <= MAX_SOCKET_PATH
}

impl Paths {
    pub fn find(env: &Environment) -> Result<Self, PathError> {
        let (state, wanted, config) = if let Some(root) = &env.root {
            if !root.is_absolute() {
                return Err(PathError::RelativeRoot(root.display().to_string()));
            }
            (root.join("state"), root.join("run"), root.join("config"))
        } else {
            // the XDG rules: relative values are ignored
            let absolute = |path: &Option<PathBuf>| path.clone().filter(|p| p.is_absolute());
            let home = absolute(&env.home);
            let under_home = |rest: &str| home.as_ref().map(|h| h.join(rest)).ok_or(PathError::NoHome);
            let state = match absolute(&env.state_home) {
                Some(dir) => dir,
                None => under_home(".local/state")?,
            }
            .join("sessions-tui");
            let config = match absolute(&env.config_home) {
                Some(dir) => dir,
                None => under_home(".config")?,
            }
            .join("sessions-tui");
            let runtime = absolute(&env.runtime_dir).map_or_else(|| state.join("run"), |dir| dir.join("sessions-tui"));
            (state, runtime, config)
        };
        let runtime = if fits(&wanted) {
            wanted
        } else {
            env.short_runtime(&wanted).ok_or_else(|| PathError::TooLong(wanted.display().to_string()))?
        };
        Ok(Self { state, runtime, config, socket: env.socket.clone() })
    }

    /// Where the daemon listens.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| self.runtime.join("daemon.sock"))
    }

    /// Says where the running daemon listens, for helpers that lost `XDG_RUNTIME_DIR`.
    pub fn pointer(&self) -> PathBuf {
        self.state.join("socket")
    }

    /// Whether the user named the socket, so that no other place is to be tried.
    pub fn socket_is_named(&self) -> bool {
        self.socket.is_some()
    }

    pub fn holder_socket(&self, runtime: RuntimeId) -> PathBuf {
        self.runtime.join(format!("{}.sock", runtime.compact()))
    }

    pub fn lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    pub fn log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    pub fn database(&self) -> PathBuf {
        self.state.join("sessions.db")
    }

    /// What the dashboard remembers.
    pub fn dashboard(&self) -> PathBuf {
        self.state.join("dashboard.json")
    }

    pub fn recordings(&self) -> PathBuf {
        self.state.join("recordings")
    }

    pub fn recording(&self, runtime: RuntimeId) -> PathBuf {
        self.recordings().join(runtime.compact())
    }

    /// Where the drivers of languages are put, for their interpreters to read.
    pub fn drivers(&self) -> PathBuf {
        self.state.join("drivers")
    }

    /// A file of a driver's own.
    pub fn scratch(&self, runtime: RuntimeId) -> PathBuf {
        self.runtime.join(format!("{}.env", runtime.compact()))
    }

    /// What a shell exports, as its script keeps it, and what that was at its first prompt.
    pub fn shell_state(&self, runtime: RuntimeId) -> PathBuf {
        self.runtime.join(format!("{}.now", runtime.compact()))
    }

    pub fn shell_start(&self, runtime: RuntimeId) -> PathBuf {
        self.runtime.join(format!("{}.was", runtime.compact()))
    }

    /// What agents' hooks said while no daemon was there.
    pub fn hooks(&self) -> PathBuf {
        self.state.join("hooks")
    }

    /// Manifests of agents, of the user's own.
    pub fn agents(&self) -> PathBuf {
        self.config.join("agents")
    }

    /// What a call reads from its standard input.
    pub fn stdin(&self, exec: ExecId) -> PathBuf {
        self.runtime.join(format!("{}.in", exec.compact()))
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }
}

/// FNV-1a: the same in every version, because an upgraded daemon must find the sockets of old holders.
pub fn fingerprint(path: &Path) -> u64 {
    path.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment { home: Some("/home/me".into()), temp: "/tmp".into(), uid: 1000, ..Environment::default() }
    }

    #[test]
    fn xdg_with_and_without_a_runtime_directory() {
        let paths = Paths::find(&environment()).expect("home is enough");
        assert_eq!(paths.state, Path::new("/home/me/.local/state/sessions-tui"));
        assert_eq!(paths.socket(), Path::new("/home/me/.local/state/sessions-tui/run/daemon.sock"));
        let env = Environment { runtime_dir: Some("/run/user/1000".into()), ..environment() };
        let paths = Paths::find(&env).expect("home is enough");
        assert_eq!(paths.socket(), Path::new("/run/user/1000/sessions-tui/daemon.sock"));
        let env = Environment { runtime_dir: Some("relative".into()), ..environment() };
        assert!(Paths::find(&env).expect("home is enough").runtime.starts_with("/home/me"));
    }

    #[test]
    fn one_root_holds_everything() {
        let env = Environment { root: Some("/x".into()), ..environment() };
        let paths = Paths::find(&env).expect("absolute");
        assert_eq!(paths.database(), Path::new("/x/state/sessions.db"));
        assert_eq!(paths.config_file(), Path::new("/x/config/config.toml"));
        let env = Environment { root: Some("x".into()), ..environment() };
        assert!(Paths::find(&env).is_err());
    }

    #[test]
    fn long_roots_get_short_sockets() {
        let private: fn(&Path) -> bool = |path| path == Path::new("/home/me") || path == Path::new("/run/user/7");
        let env = Environment { root: Some(Path::new("/").join("d".repeat(200))), is_private: Some(private), ..environment() };
        let paths = Paths::find(&env).expect("absolute");
        assert!(paths.runtime.starts_with("/home/me/.sessions-tui"));
        assert!(paths.holder_socket(RuntimeId::new()).as_os_str().len() <= MAX_SOCKET_PATH);
        let other = Environment { root: Some(Path::new("/").join("e".repeat(200))), ..env.clone() };
        assert_ne!(paths.socket(), Paths::find(&other).expect("absolute").socket());
        let with_runtime = Environment { runtime_dir: Some("/run/user/7".into()), ..env.clone() };
        assert!(Paths::find(&with_runtime).expect("fits").runtime.starts_with("/run/user/7"));
        let earlier: fn(&Path) -> bool = |path| path.to_string_lossy().starts_with("/tmp/sessions-tui-1000-");
        let earlier = Environment { is_private: Some(earlier), ..env.clone() };
        assert!(Paths::find(&earlier).expect("there").runtime.starts_with("/tmp"), "running sessions have their sockets there");
        let nowhere = Environment { is_private: Some(|_| false), ..env };
        assert!(matches!(Paths::find(&nowhere), Err(PathError::TooLong(_))), "never below a shared directory");
    }

    #[test]
    fn without_home_there_is_a_sentence() {
        let env = Environment { home: None, ..environment() };
        assert_eq!(Paths::find(&env), Err(PathError::NoHome));
    }
}
