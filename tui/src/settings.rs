//! What of the settings is the client's: keys, colours and the prefix, with what is wrong with them, where.

use shared::config::{Config, Prefix, Wrong};
use shared::paths::Paths;

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
    pub fn of(config: &Config, colours: Colours) -> (Self, Vec<Wrong>) {
        let (keymap, mut wrong) = Keymap::with(&config.keys.dashboard);
        let (theme, of_theme) = Theme::new(config.theme.name.as_deref(), &config.theme.colours, colours);
        wrong.extend(of_theme);
        (Self { keymap, theme, prefix: config.keys.prefix }, wrong)
    }
}

/// What the environment says about colours.
pub fn colours() -> Colours {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Colours::of(!variable("NO_COLOR").is_empty(), &variable("TERM"), &variable("COLORTERM"))
}

/// The dashboard's part of the file as it is now, and a sentence for each mistake; a file that cannot be read gives only the sentence.
pub fn read(paths: &Paths) -> Result<(Look, Vec<String>), String> {
    let path = paths.config_file();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let config = Config::parse(&text).map_err(|error| error.to_string())?;
    let (look, wrong) = Look::of(&config, colours());
    Ok((look, wrong.iter().map(|wrong| wrong.located(&text).to_string()).collect()))
}
