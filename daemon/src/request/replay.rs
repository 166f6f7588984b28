//! The time machine: what a recording holds, the screen at any moment of it, and what comes after one.

use std::time::Duration;

use base64::Engine;
use shared::event::Event;
use shared::id::{Offset, RuntimeId, SessionId};
use shared::message::{Code, Failure, Line};
use shared::replay::{Mark, MarkKind, Moment, Of, Outline, Position, Records, Seek, What};
use shared::runtime::Keeps;

use super::find;
use crate::context::Context;
use crate::gaps;
use crate::picture::scrolled_away;
use crate::recording::{self, FoundMark, Hole, Index};
use crate::replay::Replay;
use crate::search::Wanted;
use crate::store::Recorded;

/// Points told at most: a timeline has fewer columns, and the answer must fit into one line.
const MAX_POINTS: usize = 16 << 10;

/// Marks told at most.
const MAX_MARKS: usize = 10_000;

/// Records at a time, if the client does not say.
const BATCH: u32 = 256 << 10;
const MAX_BATCH: u32 = 2 << 20;

/// A client that waits for more asks again after this at the latest.
const MAX_WAIT: Duration = Duration::from_mins(1);

pub async fn outline(context: &Context, of: Of) -> Result<Outline, Failure> {
    let recorded = which(context, of).await?;
    let wanted = Wanted::default();
    let replay = open(context, &recorded, &wanted);
    let read = move || Ok((Index::read(&replay.dir, replay.until, &|| replay.gone.is_true())?, recording::header(&replay.dir)));
    let (index, header) = work(context, read).await?;
    // whoever looks at it will want to go to and fro
    context.upkeep.look_at(recorded.runtime);
    let missing = Box::pin(known_gaps(context, &recorded)).await?;
    let Some(header) = header else {
        return Err(if missing.is_empty() { nothing_recorded(&recorded.name) } else { cannot_be_read(&recorded.name, &missing) });
    };
    let first = index.points.first().copied().unwrap_or_default();
    let title = title_of(&context.store.session(recorded.session).await?);
    let mut marks = found_marks(index.marks);
    marks.extend(events(context, recorded.session, header.began_at, index.end.time).await?);
    marks.sort_by_key(|mark| mark.time);
    let surplus = marks.len().saturating_sub(MAX_MARKS);
    marks.drain(..surplus);
    let (points, grain) = thinned(&index.points);
    Ok(Outline {
        missing,
        runtime: recorded.runtime,
        session: recorded.session,
        name: recorded.name,
        title,
        language: recorded.language,
        command: if recorded.language.is_some() { Vec::new() } else { recorded.launch.argv },
        began_at: jiff::Timestamp::from_microsecond(header.began_at).unwrap_or_default(),
        first,
        end: index.end,
        is_live: context.registry.runtime(recorded.runtime).is_some(),
        points,
        grain,
        marks,
        marks_left_off: surplus as u64,
    })
}

/// What is missing in a recording: as its files show now, and as was found by reading it.
pub(super) async fn known_gaps(context: &Context, recorded: &Recorded) -> Result<Vec<Hole>, Failure> {
    let (context_, recorded_) = (context.clone(), recorded.clone());
    let found = tokio::task::spawn_blocking(move || gaps::check(&context_, &recorded_)).await.unwrap_or_default();
    for hole in &found {
        gaps::note(context, recorded.session, recorded.runtime, *hole).await;
    }
    let mut missing: Vec<Hole> = Vec::new();
    let told = context.store.gaps_of(recorded.session).await?;
    missing.extend(told.into_iter().filter(|(runtime, _)| *runtime == recorded.runtime).map(|(_, hole)| hole));
    // what was dropped since is missed by nobody
    let first = recording::segments(&context.paths.recording(recorded.runtime)).ok().and_then(|starts| starts.first().copied());
    missing.retain(|hole| found.contains(hole) || first.is_some_and(|first| hole.offset >= first));
    missing.sort_by_key(|hole| hole.offset);
    Ok(missing)
}

/// The title that an imported recording brought with it.
fn title_of(session: &shared::session::Session) -> Option<String> {
    let title = session.metadata.get("imported")?.get("title")?.as_str()?;
    Some(title.to_owned()).filter(|title| !title.is_empty())
}

pub async fn seek(context: &Context, runtime: RuntimeId, seek: Seek) -> Result<Moment, Failure> {
    let recorded = by_id(context, runtime).await?;
    let wanted = Wanted::default();
    let replay = open(context, &recorded, &wanted);
    let until = replay.until;
    let (at, keyframe, inside) = work(context, move || replay.seek(seek)).await?;
    let is_live = context.registry.runtime(runtime).is_some();
    let end = if is_live { until } else { at.offset };
    let keyframe = base64::engine::general_purpose::STANDARD.encode(keyframe.to_bytes());
    Ok(Moment { at, inside, keyframe, end, is_live })
}

pub async fn records(
    context: &Context,
    runtime: RuntimeId,
    from: Offset,
    most: Option<u32>,
    wait_ms: Option<u64>,
) -> Result<Records, Failure> {
    let recorded = by_id(context, runtime).await?;
    let most = most.unwrap_or(BATCH).clamp(1, MAX_BATCH) as usize;
    let deadline = tokio::time::Instant::now() + wait_ms.map_or(Duration::ZERO, Duration::from_millis).min(MAX_WAIT);
    loop {
        let handle = context.registry.runtime(runtime);
        // looked at before reading: what comes in between is read in the next round
        let mut activity = handle.as_ref().map(crate::handle::runtime::RuntimeHandle::activity);
        if let Some(activity) = &mut activity {
            activity.mark_unchanged();
        }
        let wanted = Wanted::default();
        let replay = open(context, &recorded, &wanted);
        let until = replay.until;
        let (records, at_end) = work(context, move || replay.records(from, most).map_err(std::io::Error::other)).await?;
        for record in &records {
            if let What::Gap { bytes, is_lost: true } = record.what {
                let hole = Hole { offset: record.end.saturating_sub(bytes), bytes };
                Box::pin(gaps::note(context, recorded.session, recorded.runtime, hole)).await;
            }
        }
        let end = if handle.is_some() { until } else { records.last().map_or(from, |record| record.end) };
        if !records.is_empty() || handle.is_none() || tokio::time::Instant::now() >= deadline {
            return Ok(Records { at_end, is_live: handle.is_some(), end, records });
        }
        tokio::select! {
            () = tokio::time::sleep_until(deadline) => {}
            // the program's end is the end of its activity
            _ = async { match &mut activity { Some(activity) => activity.changed().await.is_ok(), None => false } } => {}
        }
    }
}

/// Lines that had left the top of the screen when the recording stood at `until`: the last `most`, oldest first.
pub async fn scrolled(context: &Context, runtime: RuntimeId, until: Offset, most: u32) -> Result<Vec<Line>, Failure> {
    let recorded = by_id(context, runtime).await?;
    Ok(scrolled_away(&context.paths.recording(recorded.runtime), until, most as usize).await)
}

/// Reading a recording is work: not for the thread that serves everybody, and not for all of the others at once.
pub(super) async fn work<T: Send + 'static>(
    context: &Context,
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    match context.replays.take(read).await {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(Code::Status, "nothing of it is recorded any more"))
        }
        Some(Err(error)) => Err(Failure::failed(format!("the recording could not be read: {error}"))),
        None => Err(Failure::failed("the recording could not be read: this is a bug; `sessions-tui daemon logs` may say more")),
    }
}

pub(super) fn open(context: &Context, recorded: &Recorded, wanted: &Wanted) -> Replay {
    let until = context.registry.runtime(recorded.runtime).map_or(Offset::MAX, |handle| handle.facts.end());
    Replay { dir: context.paths.recording(recorded.runtime), size: recorded.launch.size, until, gone: wanted.gone() }
}

pub(super) async fn by_id(context: &Context, runtime: RuntimeId) -> Result<Recorded, Failure> {
    let found = context.store.recorded(runtime).await?;
    found.ok_or_else(|| Failure::new(Code::NotFound, "the session of this recording is gone"))
}

/// The recording that is meant: of the program, else of the interpreter that was started last.
async fn which(context: &Context, of: Of) -> Result<Recorded, Failure> {
    if let Some(runtime) = of.runtime {
        return by_id(context, runtime).await;
    }
    let session = find(context, of.name).await?;
    let all = context.store.recorded_of(session.id).await?;
    let chosen = match of.language {
        Some(_) => all.into_iter().find(|recorded| recorded.language == of.language),
        None => {
            let program = all.iter().position(|recorded| recorded.language.is_none());
            all.into_iter().nth(program.unwrap_or(0))
        }
    };
    match (chosen, of.language) {
        (Some(recorded), _) if recorded.launch.keeps == Keeps::Nothing => {
            let name = &session.name;
            Err(Failure::new(Code::Status, format!("nothing of session {name} is recorded: it was started with --no-record")))
        }
        (Some(recorded), _) => Ok(recorded),
        (None, Some(language)) => {
            Err(Failure::new(Code::Status, format!("session {} has had no {language} runtime: there is nothing to replay", session.name)))
        }
        (None, None) => Err(nothing_recorded(&session.name)),
    }
}

fn nothing_recorded(name: &str) -> Failure {
    Failure::new(Code::Status, format!("nothing of session {name} is recorded"))
}

fn cannot_be_read(name: &str, missing: &[Hole]) -> Failure {
    let bytes: u64 = missing.iter().map(|hole| hole.bytes).sum();
    Failure::failed(format!(
        "the recording of session {name} cannot be read: {bytes} bytes are missing, damaged, or belong to another session"
    ))
}

/// Beginnings and ends put together.
pub fn found_marks(found: Vec<FoundMark>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    // the command that has not ended yet
    let mut open: Option<usize> = None;
    for mark in found {
        match mark {
            FoundMark::Begins { offset, time, text } => {
                open = Some(marks.len());
                marks.push(Mark { time, offset: Some(offset), kind: MarkKind::Command, text, exit_code: None, took: None });
            }
            FoundMark::Ends { time, exit_code, .. } => {
                if let Some(ended) = open.take().and_then(|open| marks.get_mut(open)) {
                    (ended.exit_code, ended.took) = (exit_code, Some(time.saturating_sub(ended.time)));
                }
            }
            FoundMark::Marker { offset, time, text } => {
                marks.push(Mark { time, offset: Some(offset), kind: MarkKind::Marker, text, exit_code: None, took: None });
            }
        }
    }
    marks
}

/// What happened to the session while this was recorded; calls are marks of their own.
async fn events(context: &Context, session: SessionId, began_at: i64, end: u64) -> Result<Vec<Mark>, Failure> {
    let told = context.store.recent_events(session, MAX_MARKS as u32).await?;
    Ok(told
        .into_iter()
        .filter(|event| !matches!(event.kind.as_str(), "exec_started" | "exec_finished"))
        .filter_map(|event| {
            let time = u64::try_from(event.at.as_microsecond() - began_at).ok().filter(|time| *time <= end)?;
            Some(Mark { time, offset: None, kind: MarkKind::Event, text: in_words(&event), exit_code: None, took: None })
        })
        .collect())
}

/// An event on one line.
fn in_words(event: &Event) -> String {
    let data = match &event.data {
        serde_json::Value::Object(map) if map.is_empty() => String::new(),
        serde_json::Value::Null => String::new(),
        data => format!(" {data}"),
    };
    shared::text::fit(&shared::text::visible(&format!("{}{data}", event.kind)), 200)
}

/// Few enough to be told, and how long a pause has to be to stay exact.
fn thinned(points: &[Position]) -> (Vec<Position>, u64) {
    let mut step = 1_000_000;
    let mut kept = points.to_vec();
    while kept.len() > MAX_POINTS && step < u64::MAX / 4 {
        step *= 2;
        kept.clear();
        let mut before: Option<Position> = None;
        for point in points {
            match (before, kept.last().copied()) {
                (Some(before), Some(last)) if point.time.saturating_sub(last.time) >= step => {
                    if before != last {
                        kept.push(before);
                    }
                    if point.time.saturating_sub(before.time) >= step {
                        kept.push(*point);
                    }
                }
                (None, _) | (_, None) => kept.push(*point),
                _ => {}
            }
            before = Some(*point);
        }
        kept.extend(points.last().filter(|last| kept.last() != Some(*last)));
    }
    (kept, step)
}
