//! files: what changed in a session's workspace.

use std::fmt::Write;

use clap::Subcommand;
use jiff::Timestamp;
use shared::message::{Failure, Request};
use shared::paths::Paths;
use shared::text::{count, fit, pad, visible};
use shared::watch::{ChangedFiles, FileChange, Since};

use super::{parse, print, print_json, session, table};
use crate::connect;

pub const HELP: &str = "\
While a session is active, files that are created, changed or removed in its workspace are noticed, whoever does it; what .gitignore
and .ignore files, [watch] in config.toml and the contents of .git say is left out. Home folders and huge trees are not watched
unless `new --watch on` says so. Bursts of changes are also events (`file_changed`).

Examples:
  sessions-tui files api changed                     since the session began
  sessions-tui files api changed --since-command     since its last command or call began
  sessions-tui files api changed --since 10m --json";

/// Of the command that is named, so much is enough to know it again.
const MOST_COMMAND: usize = 60;

#[derive(Subcommand)]
pub enum FilesCommand {
    /// Files that were created, changed or removed, newest first
    Changed {
        /// Since its last command (of a shell) or call (exec) began
        #[arg(long, conflicts_with = "since")]
        since_command: bool,
        /// Since a time, or for how long: 2026-11-16T09:30, 10m, 2h
        #[arg(long, value_name = "TIME", value_parser = parse::moment, allow_hyphen_values = true)]
        since: Option<Timestamp>,
        /// At most this many [default: 1000]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn perform(paths: &Paths, name: String, command: FilesCommand) -> Result<(), Failure> {
    let FilesCommand::Changed { since_command, since, limit, json } = command;
    let since = match since {
        Some(at) => Since::At(at),
        None if since_command => Since::Command,
        None => Since::Start,
    };
    let changed: ChangedFiles = connect::call(paths, Request::Files { name, since, limit, at_once: true }).await?;
    if json { print_json(&changed) } else { print(&words(&changed, Timestamp::now(), session::colours())) }
}

/// For people: a line for each file, and what that is since.
fn words(changed: &ChangedFiles, now: Timestamp, has_colours: bool) -> String {
    let mut out = String::new();
    for file in &changed.files {
        let colour = match file.change {
            FileChange::Created => "32",
            FileChange::Changed => "33",
            FileChange::Removed => "31",
        };
        let change = pad(file.change.as_str(), 8);
        let change = if has_colours { format!("\x1b[{colour}m{change}\x1b[0m") } else { change };
        let _ = writeln!(out, "{change} {:>4}  {}", table::ago(file.at, now), visible(&file.path));
    }
    let what = match changed.files.len() as u64 + changed.more {
        0 => "nothing has changed".to_owned(),
        all if changed.more == 0 => format!("{} changed", count(all as usize, "file")),
        all => format!("{} changed", count(all as usize, "file")),
    };
    let since = match &changed.command {
        Some(command) => {
            format!(
                "since `{}` began, {} ago",
                fit(&visible(command.lines().next().unwrap_or_default()), MOST_COMMAND),
                table::ago(changed.since, now)
            )
        }
        None => format!("in {}", table::ago(changed.since, now)),
    };
    let cut = if changed.more == 0 { String::new() } else { format!("; the newest {} are shown, --limit shows more", changed.files.len()) };
    let _ = writeln!(out, "{what} {since}{cut}; {}", visible(&changed.watch.in_words()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::watch::{ChangedFile, Watching};

    #[test]
    fn files_are_lines_and_what_it_is_since_is_said() {
        let now = Timestamp::from_second(1000).expect("a time");
        let file =
            |path: &str, change, at| ChangedFile { path: path.into(), change, at: Timestamp::from_second(at).expect("a time"), times: 1 };
        let mut changed = ChangedFiles {
            workspace: "/w".into(),
            watch: Watching::On { folders: 2, files: 9 },
            since: Timestamp::from_second(880).expect("a time"),
            command: Some("cargo test\nmore".into()),
            files: vec![file("src/a\x1b.rs", FileChange::Created, 990), file("b", FileChange::Removed, 900)],
            more: 0,
        };
        let text = words(&changed, now, false);
        assert_eq!(
            text,
            "created   10s  src/a·.rs\nremoved    1m  b\n2 files changed since `cargo test` began, 2m ago; 2 folders watched\n"
        );
        changed.more = 5;
        let text = words(&changed, now, false);
        assert!(
            text.contains("7 files changed since `cargo test` began, 2m ago; the newest 2 are shown, --limit shows more; 2 f"),
            "{text}"
        );
        changed.more = 0;
        changed = ChangedFiles { files: Vec::new(), command: None, watch: Watching::off("it is paused"), ..changed };
        assert_eq!(words(&changed, now, false), "nothing has changed in 2m; not watched: it is paused\n");
    }
}
