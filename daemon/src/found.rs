//! Recordings without a row: the database was lost or restored from an older copy, or the directory was copied here. Each
//! becomes an ended session with the reason `found`, so that it is listed, counted, replayed, searched and removed like any
//! other. Reads recordings; never changes or removes one.

use std::path::Path;

use serde_json::json;
use shared::event::Author;
use shared::id::RuntimeId;
use shared::runtime::Keeps;

use crate::context::Context;
use crate::launch;
use crate::lifecycle::End;
use crate::recording::{self, SegmentHeader, Tail};
use crate::store::{self, EndingAt, New, Program};

/// What a recording tells about itself. `None` if it is empty, or its header names another runtime: such a directory is
/// counted as unknown by `stats --disk` and left as it is.
pub fn describe(dir: &Path, runtime: RuntimeId) -> Option<(SegmentHeader, Tail)> {
    let header = recording::header(dir).filter(|header| header.runtime == runtime.to_string())?;
    Some((header, recording::tail(dir).ok()?))
}

/// Opens an ended session for a recording that has none. The caller has checked that no holder may be writing it.
pub async fn list(context: &Context, runtime: RuntimeId, header: &SegmentHeader, tail: &Tail) -> store::Result<()> {
    let program = Program {
        // for lists; it is never started
        argv: vec!["(found)".to_owned()],
        is_named: true,
        env_delta: Vec::new(),
        size: Some(header.size.clamped()),
        umask: None,
        keeps: Keeps::Output,
    };
    let began_at = jiff::Timestamp::from_microsecond(header.began_at).unwrap_or_default();
    let asked = New {
        name: Some(context.store.free_name("found".to_owned()).await?),
        here: "/".to_owned(),
        program: Some(program),
        metadata: [("found".to_owned(), json!({"recorded_at": began_at}))].into_iter().collect(),
        runtime,
        ..launch::plain(context, Author::Daemon)
    };
    let opened = context.store.open_session(asked).await?;
    let last_activity = tail.last_at.and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok()).unwrap_or(began_at);
    // ended now: cleanup by age counts from when its user can know of it
    let at = EndingAt { now: jiff::Timestamp::now(), last_activity, screen_at: None };
    context.store.runtime_has_ended(runtime, End::Found(tail.exit), at, tail.end).await?;
    context.log.warn(&format!("a recording without a session is session {} now (runtime {runtime})", opened.session.name));
    Ok(())
}
