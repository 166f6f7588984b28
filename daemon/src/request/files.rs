//! Files of a workspace that changed while its session was active.

use jiff::Timestamp;
use shared::message::Failure;
use shared::session::{Session, Status};
use shared::watch::{ChangedFiles, Since, Watching};

use super::find;
use crate::context::Context;

/// Files of one answer, unless another number is asked for; and at most.
const USUAL: u32 = 1000;
const MOST: u32 = 20_000;

pub async fn changed(context: &Context, name: String, since: Since, limit: Option<u32>, at_once: bool) -> Result<ChangedFiles, Failure> {
    let session = find(context, name).await?;
    if at_once {
        // also for a session that has just ended
        context.watch.settle().await;
    }
    // `from` is what is looked for
    let (from, since, command) = match since {
        Since::Start => (None, session.created_at, None),
        Since::At(at) => (Some(at), at, None),
        Since::Command => match context.store.last_command(session.id).await? {
            Some(last) => (Some(last.since), last.began_at, Some(last.text)),
            None => (None, session.created_at, None),
        },
    };
    // of what is its own nothing is before its beginning
    let from = from.unwrap_or(Timestamp::UNIX_EPOCH);
    let (files, all) = context.store.changed_files(session.id, from, limit.unwrap_or(USUAL).clamp(1, MOST)).await?;
    let more = all.saturating_sub(files.len() as u64);
    Ok(ChangedFiles { watch: watching(context, &session), workspace: session.workspace, since, command, files, more })
}

/// Whether its files are watched now; if not, why.
pub fn watching(context: &Context, session: &Session) -> Watching {
    if session.status != Status::Active {
        return Watching::off(format!("the session is {}", session.status));
    }
    context.watch.state(session.id).unwrap_or_else(|| Watching::off("it has only just begun"))
}
