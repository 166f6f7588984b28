//! Which sessions are meant: the same words for ls, stats, search and cleanup.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use shared::filter::Filter;
use shared::message::Failure;
use shared::session::Status;

use super::{parse, session};

#[derive(Args, Default)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Only these (queued, active, paused, completed, failed, timeout, ended), separated by commas
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = parse::status)]
    status: Vec<Status>,
    /// Only work of this kind
    #[arg(long)]
    mode: Option<String>,
    /// Only for this user
    #[arg(long)]
    user: Option<String>,
    /// Only from this channel
    #[arg(long)]
    channel: Option<String>,
    /// Only sessions of this name, also earlier ones
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Only in this folder
    #[arg(long, short, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Only of this group
    #[arg(long)]
    group: Option<String>,
    /// Only those created since then (2026-11-16, 2026-11-16T09:30, or 2h, 7d ago)
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    created_after: Option<Timestamp>,
    /// Only those created before
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    created_before: Option<Timestamp>,
    /// Only those with this text in their task
    #[arg(long)]
    text: Option<String>,
}

impl FilterArgs {
    /// Whether any of them was given.
    pub fn is_given(&self) -> bool {
        let Self { status, mode, user, channel, thread, workspace, group, created_after, created_before, text } = self;
        !status.is_empty()
            || [mode, user, channel, thread, group, text].into_iter().any(Option::is_some)
            || workspace.is_some()
            || created_after.is_some()
            || created_before.is_some()
    }

    pub fn filter(self) -> Result<Filter, Failure> {
        let workspace = match self.workspace {
            Some(path) => Some(session::workspace(Some(path))?),
            None => None,
        };
        Ok(Filter {
            statuses: self.status,
            user: self.user,
            channel: self.channel,
            mode: self.mode,
            thread: self.thread,
            workspace,
            group: self.group,
            created_after: self.created_after,
            created_before: self.created_before,
            text: self.text,
            ..Filter::default()
        })
    }
}
