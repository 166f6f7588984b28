//! forget: a session's bytes go for good; its record stays.

use std::path::PathBuf;
use std::time::Duration;

use shared::event::Author;
use shared::id::Offset;
use shared::message::{Code, Failure, Forgotten};

use super::find_exact;
use crate::context::Context;
use crate::recording;

/// A holder that can forget does so at once.
const PATIENCE: Duration = Duration::from_secs(3);

pub async fn forget(context: &Context, name: String, author: Author) -> Result<Forgotten, Failure> {
    let session = find_exact(context, name).await?;
    let mut bytes = 0;
    let mut is_live = false;
    // what is being written beside a recording just now would outlive it
    let _quiet = context.upkeep.quiet().await;
    let all = context.store.recorded_of(session.id).await?;
    let has_none = all.is_empty();
    for recorded in all {
        let dir = context.paths.recording(recorded.runtime);
        bytes += recording::disk_bytes(&dir);
        match context.registry.runtime(recorded.runtime) {
            Some(handle) => {
                is_live = true;
                let end = handle.facts.end();
                if !handle.forget().await? || !is_forgotten(dir.clone(), end).await {
                    return Err(Failure::failed(format!(
                        "the holder of session {} cannot forget (it was started by an earlier version, or its disk is full): end the session, \
                         then forget it",
                        session.name
                    )));
                }
                recording::sweep(&dir);
            }
            None if recorded.is_live => {
                return Err(Failure::new(
                    Code::Status,
                    format!("the holder of session {} does not answer, so that it cannot be told to forget; try again", session.name),
                ));
            }
            None => {
                remove(dir, recorded.end).await.map_err(|error| Failure::failed(format!("the recording could not be removed: {error}")))?;
            }
        }
    }
    crate::store::drop_backup(&context.paths.database());
    context.store.forget(session.id, bytes, author).await?;
    let note = if is_live {
        Some("it goes on: what is on its screen now stays until it is drawn over".to_owned())
    } else {
        has_none
            .then(|| format!("it has no recording of its own; what was printed meanwhile may be with another session of {}", session.name))
    };
    Ok(Forgotten { session: session.id, name: session.name, bytes, note })
}

/// Waits until everything before `end` is gone.
async fn is_forgotten(dir: PathBuf, end: Offset) -> bool {
    let gone = async {
        loop {
            let starts = recording::segments(&dir).unwrap_or_default();
            if starts.first().is_none_or(|first| *first >= end) {
                return;
            }
            // there is no news of it: the holder says where its recording ends, which it does for many reasons
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.is_ok()
}

/// Removes a recording and leaves a note that it was meant to go.
async fn remove(dir: PathBuf, end: Offset) -> std::io::Result<()> {
    let removed = move || {
        recording::remove(&dir)?;
        recording::mark_dropped(&dir, end)
    };
    tokio::task::spawn_blocking(removed).await.map_err(std::io::Error::other)?
}
