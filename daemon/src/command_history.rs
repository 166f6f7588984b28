//! Commands of shells that ended while no daemon was there: read from their recordings and stored.

use shared::id::{Offset, RuntimeId};

use crate::command::{Tracker, read_on};
use crate::context::Context;
use crate::{recording, store};

/// Programs that ended while no daemon was there, or with it: what was not heard of their commands is read now.
pub async fn catch_up_ended(context: Context) {
    let Ok(unheard) = context.store.unheard_commands().await else { return };
    for (runtime, end) in unheard {
        if let Err(error) = catch_up(&context, runtime, end).await {
            context.log.warn(&format!("commands of runtime {runtime}: {error}"));
        }
    }
}

async fn catch_up(context: &Context, runtime: RuntimeId, end: Offset) -> store::Result<()> {
    let Some(memory) = context.store.memory_of(runtime).await? else { return Ok(()) };
    let dir = context.paths.recording(runtime);
    let began_at = recording::header(&dir).map_or(0, |header| header.began_at);
    let mut tracker = Tracker::resume(memory.heard, memory.running);
    let mut found = Vec::new();
    read_on(&dir, &mut tracker, end, |told, _| found.extend(told)).await;
    tracker.pass(end);
    context.store.commands(runtime, found, tracker.heard(), began_at).await
}
