//! config init, show, path, check.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use shared::config::{COMMENTED_DEFAULT, Config, ConfigError};
use shared::message::{Failure, Request, SettingsNow};
use shared::paths::Paths;
use shared::text::visible;

use super::{print, print_json};
use crate::settings::Look;
use crate::theme::Colours;
use crate::{connect, environment};

pub const HELP: &str = "\
A change of the file counts at once; one with a mistake changes nothing, and `daemon status`, the log and the dashboard say where it is.

Examples:
  sessions-tui config init             a file with every setting, explained and commented out
  sessions-tui config check            line, column and reason of each mistake, also in agents/*.toml
  sessions-tui config show --json      what holds now
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

pub async fn perform(paths: &Paths, command: ConfigCommand, check_agents: CheckAgents) -> Result<(), Failure> {
    match command {
        ConfigCommand::Init { force } => init(paths, force),
        ConfigCommand::Show { json } => show(paths, json).await,
        ConfigCommand::Path => print(&format!("{}\n", paths.config_file().display())),
        ConfigCommand::Check { file, json } => check(paths, file.as_deref(), json, check_agents),
    }
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
    std::fs::create_dir_all(&folder).map_err(failed)?;
    // whole or not at all
    let draft = folder.join(format!(".config.toml.{}", std::process::id()));
    let written = std::fs::write(&draft, COMMENTED_DEFAULT).and_then(|()| std::fs::rename(&draft, &target));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)?;
    print(&format!("wrote {}: take the # away from what you change\n", path.display()))
}

async fn show(paths: &Paths, json: bool) -> Result<(), Failure> {
    let (config, wrong) = match connect::running(paths).await? {
        // what the daemon holds to is not what the file says, if that has a mistake
        Some(mut client) => {
            let now: SettingsNow = client.call(Request::Settings).await?;
            (now.config, now.wrong)
        }
        None => {
            let (config, wrong) = environment::load_config(paths);
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

fn check(paths: &Paths, file: Option<&Path>, json: bool, check_agents: CheckAgents) -> Result<(), Failure> {
    let path = file.map_or_else(|| paths.config_file(), Path::to_path_buf);
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // without one the defaults hold, which is fine; one that was named is to be there
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => String::new(),
        Err(error) => return Err(Failure::failed(format!("{shown}: {error}"))),
    };
    let found: Vec<ConfigError> = match Config::parse(&text) {
        Err(error) => vec![error],
        Ok(config) => Look::of(&config, Colours::Many).1.iter().map(|wrong| wrong.located(&text)).collect(),
    };
    let mut mistakes: Vec<Mistake> = found
        .into_iter()
        .map(|ConfigError { line, column, reason }| Mistake { file: shown.clone(), line: Some(line), column: Some(column), reason })
        .collect();
    let mut sentences: Vec<String> = mistakes
        .iter()
        .map(|mistake| {
            format!("{}, line {}, column {}: {}", mistake.file, mistake.line.unwrap_or(1), mistake.column.unwrap_or(1), mistake.reason)
        })
        .collect();
    if file.is_none() {
        for sentence in check_agents(&paths.agents()) {
            mistakes.push(Mistake { file: paths.agents().display().to_string(), line: None, column: None, reason: sentence.clone() });
            sentences.push(sentence);
        }
    }
    if json {
        print_json(&mistakes)?;
    }
    if sentences.is_empty() {
        return if json { Ok(()) } else { print(&format!("{shown}: no mistakes\n")) };
    }
    Err(Failure::failed(sentences.join("\n")))
}
