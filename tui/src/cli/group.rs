//! group ls, set, unset.

use std::fmt::Write;

use clap::Subcommand;
use shared::message::{Failure, Request};
use shared::paths::Paths;
use shared::stats::{Group, LimitSource};
use shared::text::{pad, visible};

use super::{print, print_json};
use crate::connect;

pub const HELP: &str = "\
Examples:
  sessions-tui group set builds --limit 2
  sessions-tui new --queue --group builds -- make test     waits until one of the two places is free
  sessions-tui group ls";

#[derive(Subcommand)]
pub enum GroupCommand {
    /// Groups, their limits, and how full they are
    Ls {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Let so many sessions of a group run at once; 0 holds it
    #[command(after_help = "Example:\n  sessions-tui group set builds --limit 2")]
    Set {
        /// The group
        name: String,
        /// How many at once
        #[arg(long, value_name = "N")]
        limit: u64,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget what was set: config.toml decides again, or one at a time
    Unset {
        /// The group
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn perform(paths: &Paths, command: GroupCommand) -> Result<(), Failure> {
    match command {
        GroupCommand::Ls { json } => {
            let groups: Vec<Group> = connect::call(paths, Request::Groups).await?;
            if json {
                return print_json(&groups);
            }
            if groups.is_empty() {
                eprintln!("no groups yet: `sessions-tui new --queue --group builds -- COMMAND` makes one, `group set` its limit");
                return Ok(());
            }
            print(&table(&groups))
        }
        GroupCommand::Set { name, limit, json } => one(paths, Request::SetGroup { name, limit }, json).await,
        GroupCommand::Unset { name, json } => one(paths, Request::UnsetGroup { name }, json).await,
    }
}

async fn one(paths: &Paths, request: Request, json: bool) -> Result<(), Failure> {
    let group: Group = connect::call(paths, request).await?;
    if json { print_json(&group) } else { print(&table(&[group])) }
}

fn table(groups: &[Group]) -> String {
    let mut out = format!("{}  {:>5}  {:>7}  {:>6}  {}\n", pad("GROUP", 20), "LIMIT", "RUNNING", "QUEUED", "LIMIT FROM");
    for group in groups {
        let source = match group.source {
            LimitSource::Default => "default",
            LimitSource::Config => "config.toml",
            LimitSource::Command => "group set",
        };
        let _ =
            writeln!(out, "{}  {:>5}  {:>7}  {:>6}  {source}", pad(&visible(&group.name), 20), group.limit, group.running, group.queued);
    }
    out
}
