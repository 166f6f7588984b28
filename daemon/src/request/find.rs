//! find: the next match in a recording, or the one before; for whoever looks at it.

use std::sync::Arc;

use shared::id::{Offset, RuntimeId};
use shared::message::{Code, Failure};
use shared::screen::Screen;
use shared::search::{Hit, Pattern};

use super::replay::{by_id, open, work};
use super::search::{complete, output_hit, read};
use crate::context::Context;
use crate::recording;
use crate::search::{self, Asked, During, Gone, Line, SegmentHit, Wanted, lines_of};

/// Screens are looked at this far: when nothing was written that matches, and when it is only about something nearer.
const FAR: u64 = 64 << 20;
const NEAR: u64 = 2 << 20;

/// The next match in a recording behind `from`, or the last one before it.
pub async fn find(context: &Context, runtime: RuntimeId, pattern: Pattern, from: Offset, forward: bool) -> Result<Option<Hit>, Failure> {
    let pattern = Arc::new(search::Pattern::new(&pattern)?);
    let session = context.store.session_of_runtime(runtime).await?;
    let known = session.as_ref().and_then(|session| session.runtimes.iter().find(|known| known.id == runtime));
    let (Some(session), Some(known)) = (&session, known) else {
        return Err(Failure::new(Code::NotFound, format!("there is no runtime {runtime}: `sessions-tui show NAME --json` has their ids")));
    };
    let wanted = Wanted::default();
    let end = context.registry.runtime(runtime).map(|handle| handle.facts.end());
    let dir = context.paths.recording(runtime);
    let (mut segments, _) = context.searches.take(move || search::plan(&dir, end)).await.unwrap_or_default();
    // a line may begin in the segment before the one that completes it
    let here = segments.iter().rposition(|segment| segment.start <= from).unwrap_or(0);
    if forward {
        segments.drain(..here.saturating_sub(1).min(segments.len()));
    } else {
        segments.truncate(here + 1);
        segments.reverse();
    }
    let mut written = None;
    for segment in segments {
        let asked = asked_for(&pattern, from, forward, wanted.gone());
        written = read(context, segment, asked).await?.hits.into_iter().next();
        if written.is_some() {
            break;
        }
    }
    let found = match seen(context, runtime, &wanted, pattern, from, forward, written.as_ref().map(|hit| hit.offset)).await? {
        Some(nearer) => Some(nearer),
        None => written,
    };
    let Some(found) = found else { return Ok(None) };
    let mut hit = output_hit(session, known, found);
    complete(context, &mut hit).await?;
    Ok(Some(hit))
}

/// What was seen without having been written as one word, nearer than what was.
async fn seen(
    context: &Context,
    runtime: RuntimeId,
    wanted: &Wanted,
    pattern: Arc<search::Pattern>,
    from: Offset,
    forward: bool,
    written: Option<Offset>,
) -> Result<Option<SegmentHit>, Failure> {
    let recorded = by_id(context, runtime).await?;
    let replay = open(context, &recorded, wanted);
    let far = if written.is_some() { NEAR } else { FAR };
    let see = move |screen: &Screen| {
        // elsewhere a line is written whole, and comes back for many reasons
        let is_meant = written.is_none() || screen.is_alternate();
        is_meant.then(|| lines_of(&pattern, &text_of(screen), 0).into_iter().next()).flatten()
    };
    let look = move || {
        let began_at = recording::header(&replay.dir).map_or(0, |header| header.began_at);
        let found = if forward {
            // what is written there is on the screen there
            let until = written.map_or(Offset::MAX, |written| written.saturating_sub(1));
            replay.comes_to_be_seen(from, until.min(from.saturating_add(far)), see)
        } else {
            replay.came_to_be_seen(from, written.unwrap_or(0).max(from.min(replay.until).saturating_sub(far)), see)
        };
        Ok(found.map(|(at, line)| (at.offset, began_at.saturating_add_unsigned(at.time), line)))
    };
    let found: Option<(Offset, i64, Line)> = work(context, look).await?;
    Ok(found.map(|(offset, at, line)| SegmentHit { line, at, offset, stream: None, during: During::Unknown, times: 1 }))
}

/// The lines of a screen; those that were wrapped are one.
fn text_of(screen: &Screen) -> String {
    let mut text = String::new();
    for row in 0..screen.size().rows {
        text += &screen.row_text(row);
        if !screen.row_wrapped(row) {
            text.push('\n');
        }
    }
    text
}

fn asked_for(pattern: &Arc<search::Pattern>, from: Offset, forward: bool, gone: Gone) -> Asked {
    Asked {
        pattern: Arc::clone(pattern),
        context: 0,
        newest: (!forward).then_some(1),
        after: None,
        before: None,
        between: if forward { (from, Offset::MAX) } else { (0, from) },
        spans: None,
        gone,
    }
}
