//! The settings, read from their file; and what of them is the client's: keys, colours and the prefix. What is wrong is said, and where.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use shared::config::{Config, Keys, Prefix, ThemeConfig, Wrong};
use shared::paths::Paths;

use crate::background::{self, Background};
use crate::keymap::Keymap;
use crate::theme::{Colours, Theme};

/// How the dashboard looks and listens.
#[derive(Debug)]
pub struct Look {
    pub keymap: Keymap,
    pub theme: Theme,
    pub prefix: Prefix,
}

impl Look {
    /// What makes no sense is said, and the rest is used.
    pub fn of(config: &Config, colours: Colours, background: Background) -> (Self, Vec<Wrong>) {
        let (keymap, mut wrong) = Keymap::with(&config.keys.dashboard);
        let (theme, of_theme) = Theme::new(config.theme.name.as_deref(), &config.theme.colours, colours, background);
        wrong.extend(of_theme);
        (Self { keymap, theme, prefix: config.keys.prefix }, wrong)
    }
}

/// What the environment says about colours.
pub fn colours() -> Colours {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Colours::of(!variable("NO_COLOR").is_empty(), &variable("TERM"), &variable("COLORTERM"))
}

/// What the terminal has answered, once it was asked.
static BACKGROUND: OnceLock<Background> = OnceLock::new();

/// The background as the terminal told it, else as the environment does.
pub fn background() -> Background {
    let variable = || std::env::var("COLORFGBG").ok().as_deref().and_then(background::of_variable);
    BACKGROUND.get().copied().or_else(variable).unwrap_or(Background::Dark)
}

/// Asks the terminal for its background, if that decides about the theme.
pub fn ask_background(paths: &Paths) -> background::Reply {
    let is_chosen = load_config(paths).0.theme.name.is_some();
    if is_chosen || colours() != Colours::Many || BACKGROUND.get().is_some() {
        return background::Reply { is_complete: true, ..background::Reply::default() };
    }
    let reply = background::ask();
    if let Some(found) = reply.background {
        let _ = BACKGROUND.set(found);
    }
    reply
}

/// What is wrong with keys and colours.
pub fn check_look(config: &Config) -> Vec<Wrong> {
    Look::of(config, Colours::Many, Background::Dark).1
}

/// Nobody writes so much by hand.
const MAX_BYTES: u64 = 1 << 20;

/// A file of settings; nothing if there is none. What could keep a reader waiting, or never ends, is refused.
pub fn text(path: &Path) -> Result<Option<String>, String> {
    let refused = |why: &str| format!("{}: {why}", path.display());
    // a pipe without a writer would be waited for here
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(refused(&std::io::Error::from(error).to_string())),
    };
    let is_file = file.metadata().map_err(|error| refused(&error.to_string()))?.is_file();
    if !is_file {
        return Err(refused("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 1 MiB, which no settings are"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is not text (UTF-8)"))
}

/// The settings as the file is now; one that is not there says nothing. Else a sentence that says why not.
pub fn config(paths: &Paths) -> Result<Config, String> {
    let text = text(&paths.config_file())?.unwrap_or_default();
    Config::read(&text, check_look).map_err(|mistakes| mistakes.to_string())
}

/// The settings for whoever starts now, and what is wrong with the file if something is: then the defaults hold in its place.
pub fn load_config(paths: &Paths) -> (Config, Option<String>) {
    match config(paths) {
        Ok(config) => (config, None),
        Err(why) => {
            let text = text(&paths.config_file()).ok().flatten().unwrap_or_default();
            match Config::parse(&text) {
                // a colour that is misspelt must not bring back what the rest of the file turns off, such as cleaning up
                Ok(config) if !text.is_empty() => {
                    let keys = Keys { dashboard: BTreeMap::new(), ..config.keys };
                    let config = Config { keys, theme: ThemeConfig::default(), ..config };
                    (config, Some(format!("{why}; the usual keys and colours are used")))
                }
                _ => (Config::without_settings(&text), Some(format!("{why}; the defaults are used"))),
            }
        }
    }
}

/// The dashboard's part of the file as it is now, and a sentence for each mistake in it: the rest of it can be used. A file that has
/// other mistakes gives only a sentence.
pub fn read(paths: &Paths) -> Result<(Look, Vec<String>), String> {
    let text = text(&paths.config_file())?.unwrap_or_default();
    let config = Config::parse(&text).map_err(|error| error.to_string())?;
    let (look, wrong) = Look::of(&config, colours(), background());
    Ok((look, wrong.iter().map(|wrong| wrong.located(&text).to_string()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_settings_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        let refusal = |name: &str| text(&at(name)).expect_err(name);
        assert_eq!(text(&at("none")), Ok(None));
        std::fs::write(at("plain"), "a = 1\n").expect("writes");
        std::os::unix::fs::symlink("plain", at("link")).expect("links");
        assert_eq!(text(&at("link")), Ok(Some("a = 1\n".to_owned())));
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().is_ok_and(|status| status.success()));
        std::os::unix::fs::symlink("pipe", at("link to a pipe")).expect("links");
        for name in ["pipe", "link to a pipe", "/dev/zero", "."] {
            assert!(refusal(name).contains("not a regular file"), "{name}");
        }
        std::fs::write(at("large"), vec![b'#'; (1 << 20) + 1]).expect("writes");
        assert!(refusal("large").contains("1 MiB"));
        std::fs::write(at("latin"), b"# \xe4\n").expect("writes");
        assert!(refusal("latin").contains("not text (UTF-8)"));
    }
}
