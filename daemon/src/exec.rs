//! Execs as their runtime and the recording know them: what an end comes to, what was printed, and how both are stored. Must not
//! start anything: that is `execute.rs`.

pub mod output;
pub mod result;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use shared::exec::{PerStream, Stage, Verb};
use shared::id::{ExecId, Offset, RuntimeId};

use crate::context::Context;
use crate::handle::exec::{Live, Progress};
use crate::language;
use crate::lifecycle::End;
use crate::store::{self, Finished, Outcome, StoredExec};

use output::Seen;

/// A result that could not be stored (a full disk) is tried again this often.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// Stores the end of a call. What is recorded is told at once: after a crash it is read from there. Anything else is told when
/// it is stored; what cannot be stored is told all the same, and tried again.
pub async fn settle(context: Context, live: Arc<Live>, mut finished: Finished) {
    let mut is_told = finished.is_recorded();
    if is_told {
        live.progress.send_replace(Progress::Ended(Arc::new(finished.clone())));
    }
    let unaccepted = live.take_unaccepted();
    loop {
        let stored = match &unaccepted {
            Some(asked) => context.store.accept_and_finish(Arc::clone(asked), live.runtime(), live.session, finished.clone()).await,
            None => context.store.finish_exec(live.id, finished.clone()).await,
        };
        match stored {
            Ok(()) | Err(store::Error::Gone) => break,
            Err(error) => {
                context.log.warn(&format!("session {}: the result of exec {} could not be stored: {error}", live.name, live.id));
                if !is_told {
                    finished.outcome.note = Some(format!("this result is not stored yet: {error}"));
                    live.progress.send_replace(Progress::Ended(Arc::new(finished.clone())));
                    finished.outcome.note = None;
                    is_told = true;
                }
                tokio::time::sleep(STORE_RETRY).await;
            }
        }
    }
    if !is_told {
        live.progress.send_replace(Progress::Ended(Arc::new(finished)));
    }
    context.execs.remove(live.id);
}

impl Finished {
    /// The driver's own word is in the recording.
    fn is_recorded(&self) -> bool {
        self.stage == Stage::Finished && self.end.is_some() && !self.outcome.ended
    }

    /// A call of which nothing more will be heard.
    pub fn lost(why: &str) -> Self {
        Self {
            stage: Stage::Lost,
            exit_code: None,
            took: 0,
            start: None,
            end: None,
            bytes: PerStream::default(),
            outcome: Outcome { error: Some(why.to_owned()), ..Outcome::default() },
        }
    }

    pub fn cancelled(why: &str) -> Self {
        Self { stage: Stage::Cancelled, ..Self::lost(why) }
    }
}

/// The calls of a runtime that ended while no daemon was there: what the recording says of them is stored, the rest is lost.
pub async fn settle_ended(context: &Context, runtime: RuntimeId, end: &End, recorded: Offset) -> store::Result<()> {
    let (open, mut found, _) = open_calls(context, runtime, recorded).await?;
    for stored in open {
        let finished = match found.remove(&stored.id) {
            Some(seen) => seen.finished(&stored, end, recorded),
            None => Finished::lost("its runtime ended before it was run; nothing of it was done"),
        };
        context.store.finish_exec(stored.id, finished).await?;
        let _ = std::fs::remove_file(context.paths.stdin(stored.id));
    }
    let _ = std::fs::remove_file(context.paths.scratch(runtime));
    Ok(())
}

/// The calls of a runtime that have not ended as far as the database knows, what its recording says since the last result that
/// is stored, and where that is. A daemon may have died after it sent a call and before it had stored it: then the
/// recording alone knows of it, and it is stored now, so that nobody runs it again.
pub async fn open_calls(
    context: &Context,
    runtime: RuntimeId,
    end: Offset,
) -> store::Result<(Vec<StoredExec>, HashMap<ExecId, Seen>, Offset)> {
    let (open, settled) = context.store.open_execs(runtime).await?;
    let found = output::calls(&context.paths.recording(runtime), settled, end).await;
    let mut is_complete = true;
    for (id, seen) in found.iter().filter(|(id, _)| open.iter().all(|stored| stored.id != **id)) {
        let verb = if seen.verb == language::verb_byte(Verb::Eval) { Verb::Eval } else { Verb::Exec };
        is_complete &= !context.store.adopt_exec(*id, runtime, verb, seen.code.clone()).await?;
    }
    let open = if is_complete { open } else { context.store.open_execs(runtime).await?.0 };
    Ok((open, found, settled))
}
