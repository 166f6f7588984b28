//! config init, show, path, check.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use shared::config::{COMMENTED_DEFAULT, Config, ConfigError};
use shared::message::{Failure, Request, SettingsNow};
use shared::paths::Paths;
use shared::text::visible;

use super::{print, print_json};
use crate::{connect, settings};

pub const HELP: &str = "\
A change of the file counts at once; one with a mistake changes nothing, and `daemon status`, the log and the dashboard say where it is.

Examples:
  sessions-tui config init             a file with every setting, explained and commented out
  sessions-tui config check            line, column and reason of each mistake, also in agents/*.toml
  sessions-tui config show --json      the effective settings
  $EDITOR \"$(sessions-tui config path)\"";

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Write a config.toml with every setting in it, explained and commented out
    Init {
        /// Take the place of the file that is there
        #[arg(long)]
        force: bool,
    },
    /// The settings that hold now, defaults included
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Where config.toml is, or would be
    Path,
    /// Look for mistakes, in config.toml and agents/*.toml; ends with 1 if there are any
    Check {
        /// Another file than config.toml
        file: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Looks through a folder of manifests: the daemon knows how, and only the root package sees both.
pub type CheckAgents = fn(&Path) -> Vec<String>;

pub async fn perform(paths: &Paths, command: ConfigCommand, check_agents: CheckAgents) -> Result<ExitCode, Failure> {
    match command {
        ConfigCommand::Init { force } => init(paths, force)?,
        ConfigCommand::Show { json } => show(paths, json).await?,
        ConfigCommand::Path => print(&format!("{}\n", paths.config_file().display()))?,
        ConfigCommand::Check { file, json } => return check(paths, file.as_deref(), json, check_agents),
    }
    Ok(ExitCode::SUCCESS)
}

fn init(paths: &Paths, force: bool) -> Result<(), Failure> {
    let path = paths.config_file();
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    // through a link, if it is one: dotfiles stay where they are
    let target = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    if path.symlink_metadata().is_ok() && !force {
        return Err(Failure::usage(format!("{} is there already: `config init --force` takes its place", path.display())));
    }
    let folder = target.parent().map_or_else(|| paths.config.clone(), Path::to_path_buf);
    // for this user alone, if it is made here
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    // whole or not at all; in the place of another, as open as that was
    let draft = folder.join(format!(".config.toml.{}", std::process::id()));
    let before = std::fs::metadata(&target).ok().map(|meta| meta.permissions());
    let written = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&draft).and_then(|mut file| {
        file.write_all(COMMENTED_DEFAULT.as_bytes())?;
        before.map_or(Ok(()), |before| file.set_permissions(before))?;
        std::fs::rename(&draft, &target)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)?;
    print(&format!("wrote {}: take the # away from what you change\n", super::shown(&path)))
}

async fn show(paths: &Paths, json: bool) -> Result<(), Failure> {
    let (config, wrong) = match connect::running(paths).await? {
        // what the daemon holds to is not what the file says, if that has a mistake
        Some(mut client) => {
            let now: SettingsNow = client.call(Request::Settings).await?;
            (now.config, now.wrong)
        }
        None => {
            let (config, wrong) = settings::load_config(paths);
            (config, wrong.into_iter().collect())
        }
    };
    for sentence in &wrong {
        eprintln!("{}", visible(sentence));
    }
    if json {
        return print_json(&config);
    }
    let text = toml::to_string(&config).map_err(|error| Failure::failed(format!("the settings cannot be shown: {error}")))?;
    print(&text)
}

/// A mistake, for programs.
#[derive(Serialize, Deserialize)]
struct Mistake {
    file: String,
    line: Option<usize>,
    column: Option<usize>,
    reason: String,
}

impl Mistake {
    fn sentence(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}, line {line}, column {column}: {}", self.file, self.reason),
            // it says itself where it is
            _ => self.reason.clone(),
        }
    }
}

fn check(paths: &Paths, file: Option<&Path>, json: bool, check_agents: CheckAgents) -> Result<ExitCode, Failure> {
    let path = file.map_or_else(|| paths.config_file(), Path::to_path_buf);
    let shown = path.display().to_string();
    let unplaced = |file: &Path, reason: String| Mistake { file: file.display().to_string(), line: None, column: None, reason };
    let mut mistakes: Vec<Mistake> = match settings::text(&path) {
        Err(reason) => vec![unplaced(&path, reason)],
        // without one the defaults hold, which is fine; one that was named is to be there
        Ok(None) if file.is_some() => vec![unplaced(&path, format!("{shown}: there is no such file"))],
        Ok(text) => {
            let found = Config::read(&text.unwrap_or_default(), settings::check_look).err().map_or_else(Vec::new, |mistakes| mistakes.0);
            let placed =
                |ConfigError { line, column, reason }| Mistake { file: shown.clone(), line: Some(line), column: Some(column), reason };
            found.into_iter().map(placed).collect()
        }
    };
    if file.is_none() {
        mistakes.extend(check_agents(&paths.agents()).into_iter().map(|sentence| unplaced(&paths.agents(), sentence)));
    }
    let code = if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        print_json(&mistakes)?;
    } else if mistakes.is_empty() {
        print(&format!("{shown}: no mistakes\n"))?;
    }
    for mistake in mistakes.iter().filter(|_| !json) {
        eprintln!("{}", visible(&mistake.sentence()));
    }
    Ok(code)
}
