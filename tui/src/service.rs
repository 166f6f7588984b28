//! Starting the daemon on login: what is written where, for each kind of session keeper a machine may have. Pure: the text and the
//! place are computed from what is given; `cli/daemon/install.rs` writes and asks.

mod autostart;
mod launchd;
pub mod machine;
mod systemd;

use std::path::{Path, PathBuf};

use serde::Serialize;
use shared::paths::fingerprint;

/// In each file that is ours; one without it is somebody else's and is left alone.
pub const MARK: &str = "written by `sessions-tui daemon install`";

/// `daemon run` ends with this when another daemon is there: no failure, and no reason to try again.
pub const ALREADY_RUNNING: u8 = 4;

/// Who starts programs on login here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A unit of the systemd user manager
    Systemd,
    /// An agent of launchd (macOS)
    Launchd,
    /// An entry in the desktop's autostart folder
    Autostart,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Systemd, Self::Launchd, Self::Autostart];

    pub fn words(self) -> &'static str {
        match self {
            Self::Systemd => "systemd user unit",
            Self::Launchd => "launchd agent",
            Self::Autostart => "desktop autostart entry",
        }
    }
}

/// Everything the text depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub executable: PathBuf,
    /// What the daemon has to be told: where things are, and where programs are found.
    pub environment: Vec<(String, String)>,
    /// Set for a side-by-side install, which has a service of its own.
    pub root: Option<PathBuf>,
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`, or what it is without.
    pub config_home: PathBuf,
}

impl Service {
    /// The name service managers know it by.
    pub fn name(&self) -> String {
        match &self.root {
            None => "sessions-tui".to_owned(),
            Some(root) => format!("sessions-tui-{:016x}", fingerprint(root)),
        }
    }

    pub fn file(&self, kind: Kind) -> PathBuf {
        let name = self.name();
        match kind {
            Kind::Systemd => self.config_home.join("systemd/user").join(format!("{name}.service")),
            Kind::Launchd => self.home.join("Library/LaunchAgents").join(format!("{name}.plist")),
            Kind::Autostart => self.config_home.join("autostart").join(format!("{name}.desktop")),
        }
    }

    pub fn text(&self, kind: Kind) -> Result<String, String> {
        let odd = |text: &str| text.chars().any(char::is_control);
        let executable = self.executable.to_str().filter(|path| !odd(path));
        let Some(executable) = executable else {
            return Err(format!("{} cannot be named in a service's file: copy sessions-tui to a plain path", self.executable.display()));
        };
        if let Some((key, _)) = self.environment.iter().find(|(_, value)| odd(value)) {
            return Err(format!("{key} has a control character in it, which a service's file cannot have"));
        }
        Ok(match kind {
            Kind::Systemd => systemd::unit(executable, &self.environment),
            Kind::Launchd => launchd::plist(&self.name(), executable, &self.environment),
            Kind::Autostart => autostart::entry(executable, &self.environment),
        })
    }
}

/// A build folder is emptied by `cargo clean`, and what is in it changes with each build.
pub fn is_build_folder(executable: &Path) -> bool {
    let words: Vec<_> = executable.iter().collect();
    words.windows(2).any(|pair| pair[0] == "target" && (pair[1] == "debug" || pair[1] == "release"))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn odd_service() -> Service {
        Service {
            executable: "/opt/50% \"off\" $HOME\\bin & <x>/sessions-tui".into(),
            environment: vec![("PATH".into(), "/usr/bin:/home/me/my programs/bin".into()), ("SESSIONS_ROOT".into(), "/x & 'y'".into())],
            root: None,
            home: "/home/me".into(),
            config_home: "/home/me/.config".into(),
        }
    }

    #[test]
    fn each_kind_has_its_place_and_a_root_has_its_own() {
        let plain = odd_service();
        assert_eq!(plain.file(Kind::Systemd), Path::new("/home/me/.config/systemd/user/sessions-tui.service"));
        assert_eq!(plain.file(Kind::Launchd), Path::new("/home/me/Library/LaunchAgents/sessions-tui.plist"));
        assert_eq!(plain.file(Kind::Autostart), Path::new("/home/me/.config/autostart/sessions-tui.desktop"));
        let rooted = Service { root: Some("/x".into()), ..odd_service() };
        for kind in Kind::ALL {
            assert_ne!(rooted.file(kind), plain.file(kind));
            assert!(plain.text(kind).expect("text").contains(MARK), "{kind:?}");
        }
    }

    #[test]
    fn what_no_file_can_say_is_refused() {
        let service = Service { executable: "/opt/a\nb/sessions-tui".into(), ..odd_service() };
        let service_env = Service { environment: vec![("PATH".into(), "/a\nExecStart=/evil".into())], ..odd_service() };
        for kind in Kind::ALL {
            assert!(service.text(kind).is_err() && service_env.text(kind).is_err());
        }
    }

    #[test]
    fn build_folders_are_recognised() {
        assert!(is_build_folder(Path::new("/src/x/target/release/sessions-tui")));
        assert!(!is_build_folder(Path::new("/home/me/.cargo/bin/sessions-tui")));
        assert!(!is_build_folder(Path::new("/target/bin/sessions-tui")));
    }
}
