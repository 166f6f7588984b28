//! Gaps: parts of a recording that were recorded and cannot be read any more. Each becomes one event of its session, whoever
//! finds it (the live runtime, upkeep, a replay, a search). Removes and repairs nothing.

use serde_json::json;
use shared::event::Author;
use shared::id::{RuntimeId, SessionId};

use crate::context::Context;
use crate::recording::{self, Hole};
use crate::store::{Fact, Recorded};

/// Stores a gap as an event and logs it, unless it is known.
pub async fn note(context: &Context, session: SessionId, runtime: RuntimeId, hole: Hole) {
    let Hole { offset, bytes } = hole;
    let fact = Fact::new(session, Author::Daemon, "recording_gap", json!({"runtime": runtime, "offset": offset, "bytes": bytes}));
    match context.store.tell_gap(fact, runtime, offset).await {
        Ok(true) => context.log.warn(&format!(
            "session {session}: {bytes} recorded bytes at offset {offset} of runtime {runtime} cannot be read: a file of the recording is \
             missing or damaged"
        )),
        Ok(false) => {}
        Err(error) => context.log.warn(&format!("session {session}: a gap in its recording could not be stored: {error}")),
    }
}

/// Compares a recording with itself and with what the database knows of its end. Blocks.
pub fn check(context: &Context, recorded: &Recorded) -> Vec<Hole> {
    // while it is live, the holder knows the end
    let end = (!recorded.is_live).then_some(recorded.end);
    recording::holes(&context.paths.recording(recorded.runtime), end)
}
