//! What a call printed, read back from the recording: for paging, for results of calls that ended long ago, and live.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use shared::exec::{PerStream, Stage, Stream};
use shared::id::{ExecId, Offset};
use shared::message::Push;

use super::result;
use crate::attachment::Outbox;
use crate::context::Context;
use crate::handle::exec::{Captured, Live, Progress};
use crate::language;
use crate::lifecycle::End;
use crate::recording::{OVERHEAD, ReadError, Reader, Record};
use crate::store::{Finished, StoredExec};

/// Read at a time; between two, others get their turn.
const BATCH: usize = 256 << 10;

/// Pushed to a client at a time.
const PUSH_BYTES: usize = 48 << 10;

/// A part of one stream of a call.
pub struct Part {
    /// Where it begins in the stream.
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// How long the stream is, as far as it was looked at.
    pub seen: u64,
}

/// Up to `limit` bytes of a stream from `offset` on, of a call that is recorded from `start` to `end`. What has been dropped from
/// the front of the recording is passed over.
pub async fn part(dir: &Path, (start, end): (Offset, Offset), total: u64, stream: Stream, offset: u64, limit: u64) -> Part {
    let mut reader = Reader::new(dir, start);
    let mut part = Part { offset, bytes: Vec::new(), seen: 0 };
    // without the front, the stream is counted from its end
    let mut missing = 0;
    if let Some(first) = crate::recording::segments(dir).ok().and_then(|starts| starts.first().copied()).filter(|first| *first > start) {
        missing = total.saturating_sub(count(dir, (first, end), stream).await);
        reader.seek(first);
        part.offset = part.offset.max(missing);
    }
    part.seen = missing;
    loop {
        let outcome = reader.read(end, BATCH, |_, _, record| {
            let Some(bytes) = printed(&record, stream) else { return };
            let from = part.offset.saturating_sub(part.seen).min(bytes.len() as u64) as usize;
            let room = (limit as usize).saturating_sub(part.bytes.len());
            part.bytes.extend_from_slice(&bytes[from..bytes.len().min(from.saturating_add(room))]);
            part.seen += bytes.len() as u64;
        });
        match outcome {
            Ok(true) if (part.bytes.len() as u64) < limit => tokio::task::yield_now().await,
            _ => return part,
        }
    }
}

async fn count(dir: &Path, (start, end): (Offset, Offset), stream: Stream) -> u64 {
    let mut reader = Reader::new(dir, start);
    let mut count = 0;
    while let Ok(true) = reader.read(end, BATCH, |_, _, record| count += printed(&record, stream).map_or(0, |bytes| bytes.len() as u64)) {
        tokio::task::yield_now().await;
    }
    count
}

fn printed<'a>(record: &Record<'a>, stream: Stream) -> Option<&'a [u8]> {
    match (record, stream) {
        (Record::Stdout(bytes), Stream::Stdout) | (Record::Stderr(bytes), Stream::Stderr) => Some(bytes),
        _ => None,
    }
}

/// The beginnings of both streams of a call that has ended.
pub async fn heads(dir: &Path, span: (Offset, Offset), totals: PerStream<u64>, limit: u64) -> PerStream<Captured> {
    let mut heads: PerStream<Captured> = PerStream::default();
    for (stream, total, head) in [(Stream::Stdout, totals.stdout, &mut heads.stdout), (Stream::Stderr, totals.stderr, &mut heads.stderr)] {
        head.total = total;
        if total > 0 {
            head.head = part(dir, span, total, stream, 0, limit).await.bytes;
        }
    }
    heads
}

/// Pushes what a call prints to a client, from its beginning to its end. Reads the recording at the client's own pace, so that
/// nobody else has to wait for it.
pub async fn follow(context: &Context, live: &Arc<Live>, outbox: &Outbox) {
    let mut progress = live.progress.subscribe();
    let start = loop {
        match &*progress.borrow_and_update() {
            Progress::Running(start) => break *start,
            Progress::Ended(finished) => match finished.start {
                Some(start) => break start,
                None => return,
            },
            Progress::Waiting(_) => {}
        }
        if progress.changed().await.is_err() {
            return;
        }
    };
    let runtime = live.runtime();
    let mut pushing = Pushing { live, outbox, pushed: PerStream::default(), is_over: false };
    let mut reader = Reader::new(&context.paths.recording(runtime), start);
    let mut activity = context.registry.runtime(runtime).map(|handle| handle.activity());
    loop {
        // looked at before reading: what comes in between is read in the next round
        let end = match &*live.progress.borrow() {
            Progress::Ended(finished) => Some(finished.end.unwrap_or(Offset::MAX)),
            _ => None,
        };
        if let Some(activity) = &mut activity {
            activity.mark_unchanged();
        }
        if !pushing.push_to(&mut reader, end.unwrap_or(Offset::MAX)).await {
            return;
        }
        if pushing.is_over || end.is_some() {
            return pushing.push_unrecorded().await;
        }
        tokio::select! {
            _ = progress.changed() => {}
            () = async {
                match &mut activity {
                    // a runtime that is over says nothing more; its call's end comes by the other way
                    Some(activity) => if activity.changed().await.is_err() { std::future::pending().await },
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

/// What of an exec has been pushed to one client.
struct Pushing<'a> {
    live: &'a Arc<Live>,
    outbox: &'a Outbox,
    pushed: PerStream<u64>,
    /// Its result was read.
    is_over: bool,
}

impl Pushing<'_> {
    /// Everything that is in the recording, as far as it has all of a stream; `false` when the client has gone.
    async fn push_to(&mut self, reader: &mut Reader, until: Offset) -> bool {
        loop {
            let mut pieces: Vec<(Stream, Vec<u8>)> = Vec::new();
            let mut is_over = self.is_over;
            let outcome = reader.read(until, BATCH, |_, _, record| {
                let (stream, bytes) = match record {
                    Record::Stdout(bytes) => (Stream::Stdout, bytes),
                    Record::Stderr(bytes) => (Stream::Stderr, bytes),
                    Record::Result(result) if result.id == self.live.id => {
                        is_over = true;
                        return;
                    }
                    _ => return,
                };
                if is_over {
                    return;
                }
                match pieces.last_mut() {
                    Some((last, piece)) if *last == stream && piece.len() + bytes.len() <= PUSH_BYTES => piece.extend_from_slice(bytes),
                    _ => pieces.push((stream, bytes.to_vec())),
                }
            });
            self.is_over = is_over;
            for (stream, mut bytes) in pieces {
                let room = self.live.recorded_until(stream).saturating_sub(*self.pushed_of(stream));
                bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
                if !self.push(stream, &bytes).await {
                    return false;
                }
            }
            match outcome {
                _ if self.is_over => return true,
                Ok(true) => {}
                Err(ReadError::Dropped { first }) => reader.seek(first),
                Ok(false) | Err(_) => return true,
            }
        }
    }

    /// The rest of streams of which the recording has not all (the disk was full), as far as it was kept in memory.
    async fn push_unrecorded(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.live.recorded_until(stream) == u64::MAX {
                continue;
            }
            let rest = self.live.kept_from(stream, *self.pushed_of(stream));
            for piece in rest.chunks(PUSH_BYTES) {
                if !self.push(stream, piece).await {
                    return;
                }
            }
        }
    }

    fn pushed_of(&mut self, stream: Stream) -> &mut u64 {
        match stream {
            Stream::Stdout => &mut self.pushed.stdout,
            Stream::Stderr => &mut self.pushed.stderr,
        }
    }

    async fn push(&mut self, stream: Stream, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        *self.pushed_of(stream) += bytes.len() as u64;
        let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        self.outbox.line(&Push::ExecOutput { exec: self.live.id, stream, base64 });
        self.outbox.drained().await
    }
}

/// What a recording says of one call.
#[derive(Default)]
pub struct Seen {
    pub verb: u8,
    pub code: String,
    start: Offset,
    bytes: PerStream<u64>,
    /// Bytes that were printed before its end and not recorded.
    unrecorded: u64,
    /// How long it took, what the driver said of its end, and where that is.
    result: Option<(u64, Vec<u8>, Offset)>,
}

impl Seen {
    /// Its end, as far as the recording tells it; without a result it ended with its runtime.
    pub fn finished(self, stored: &StoredExec, end: &End, recorded: Offset) -> Finished {
        let (exit_code, took, end, mut outcome) = match self.result {
            Some((took, said, at)) => {
                let said = language::understand(&said);
                let mut outcome = result::outcome(said.clone(), stored.language, stored.verb, None);
                outcome.say_output_lost(self.unrecorded, stored.language, stored.verb);
                (Some(said.exit), took, at, outcome)
            }
            None => (result::exit_code(end), 0, recorded, result::ended_with_runtime(end, None)),
        };
        outcome.say_restarted(stored.restarted.clone());
        Finished { stage: Stage::Finished, exit_code, took, start: Some(self.start), end: Some(end), bytes: self.bytes, outcome }
    }
}

/// Every call between two offsets of a recording.
pub async fn calls(dir: &Path, from: Offset, until: Offset) -> HashMap<ExecId, Seen> {
    let mut reader = Reader::new(dir, from);
    let mut found: HashMap<ExecId, Seen> = HashMap::new();
    let mut current: Option<ExecId> = None;
    loop {
        let outcome = reader.read(until, BATCH, |end, _, record| match record {
            Record::Call(call) => {
                current = Some(call.id);
                let code = String::from_utf8_lossy(call.code).into_owned();
                found.insert(call.id, Seen { verb: call.verb, code, start: end - (call.size() + OVERHEAD) as u64, ..Seen::default() });
            }
            Record::Result(result) => {
                current = None;
                if let Some(seen) = found.get_mut(&result.id) {
                    seen.result = Some((result.took, result.said.to_vec(), end));
                }
            }
            Record::Stdout(bytes) | Record::Stderr(bytes) => {
                let Some(seen) = current.and_then(|id| found.get_mut(&id)) else { return };
                let count = if matches!(record, Record::Stdout(_)) { &mut seen.bytes.stdout } else { &mut seen.bytes.stderr };
                *count += bytes.len() as u64;
            }
            Record::Gap(bytes) => {
                if let Some(seen) = current.and_then(|id| found.get_mut(&id)) {
                    seen.unrecorded += bytes;
                }
            }
            _ => {}
        });
        match outcome {
            Ok(true) => tokio::task::yield_now().await,
            Err(ReadError::Dropped { first }) => reader.seek(first),
            Ok(false) | Err(_) => return found,
        }
    }
}
