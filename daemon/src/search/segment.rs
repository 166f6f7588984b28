//! One segment of a recording, the unit of a search: read, searched, and its hits given, newest first. A line belongs to the
//! segment in which it begins; what is missing of the last one is read from the next.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shared::exec::Stream;
use shared::id::{ExecId, Offset};

use super::lane::{Found, Lane};
use super::line::{LONG, Line};
use super::{Gone, Latest, Pattern};
use crate::recording::{self, Hole, ReadError, Reader, Record};

/// Read at a time: fits the processor's cache, and nobody who has gone is worked for much longer.
const BATCH: usize = 512 << 10;

/// Read at a time to complete a line.
const SMALL_BATCH: usize = 16 << 10;

/// A part of a recording, and when it was recorded, in microseconds since 1970.
#[derive(Clone, Debug)]
pub struct Segment {
    dir: PathBuf,
    pub start: Offset,
    /// Where the next one begins, or everything ends; `Offset::MAX` if that is not known.
    pub until: Offset,
    /// Where everything ends.
    end: Offset,
    is_first: bool,
    pub began_at: i64,
    pub ended_at: i64,
}

/// What is to be found in a segment.
pub struct Asked {
    pub pattern: Arc<Pattern>,
    pub context: usize,
    /// At most this many, the newest; none: the oldest one.
    pub newest: Option<usize>,
    /// Recorded since then, and before.
    pub after: Option<i64>,
    pub before: Option<i64>,
    /// Completed behind this offset, and before that one.
    pub between: (Offset, Offset),
    /// Only inside of these parts of the recording, in order.
    pub spans: Option<Arc<Vec<(Offset, Offset)>>>,
    pub gone: Gone,
}

/// Whose output it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    Exec(ExecId),
    /// A call that began before this segment, if any.
    Unknown,
    /// No call was running.
    Nothing,
}

pub struct SegmentHit {
    pub line: Line,
    /// Microseconds since 1970.
    pub at: i64,
    pub offset: Offset,
    pub stream: Option<Stream>,
    pub during: During,
    pub times: u64,
}

#[derive(Default)]
pub struct Searched {
    /// Newest first.
    pub hits: Vec<SegmentHit>,
    pub bytes: u64,
    /// Parts that could not be read.
    pub missing: Vec<Hole>,
}

/// The segments of a recording, oldest first, and how much has been dropped before them. `end`: up to where it may be read
/// while somebody appends to it.
pub fn plan(dir: &Path, end: Option<Offset>) -> (Vec<Segment>, u64) {
    let starts = recording::segments(dir).unwrap_or_default();
    let all_ends_at = end.unwrap_or(Offset::MAX);
    let mut segments: Vec<Segment> = Vec::new();
    for (number, start) in starts.iter().copied().enumerate().filter(|(_, start)| *start < all_ends_at) {
        let until = starts.get(number + 1).copied().unwrap_or(all_ends_at).min(all_ends_at);
        let began_at = first_time(dir, start, until).or_else(|| segments.last().map(|last| last.began_at)).unwrap_or(i64::MIN);
        if let Some(last) = segments.last_mut() {
            last.ended_at = began_at.max(last.began_at);
        }
        segments.push(Segment { dir: dir.to_owned(), start, until, end: all_ends_at, is_first: number == 0, began_at, ended_at: i64::MAX });
    }
    // a closed recording was written to for the last time when its last segment was
    if end.is_none()
        && let Some(last) = segments.last_mut()
        && let Some(at) = recording::last_written(dir)
    {
        // file times are coarser than ours
        last.ended_at = at.as_microsecond().saturating_add(1_000_000);
    }
    (segments, starts.first().copied().unwrap_or(0))
}

/// When the header of a segment was written.
fn first_time(dir: &Path, start: Offset, until: Offset) -> Option<i64> {
    let mut first = None;
    let _ = Reader::new(dir, start).read(until, 512, |_, time, record| {
        if let Record::Header(header) = record {
            first.get_or_insert(header.began_at.saturating_add_unsigned(time));
        }
    });
    first
}

pub fn search(segment: &Segment, asked: &Asked) -> Searched {
    let mut hits = Hits { asked, began_at: 0, calls: Vec::new(), latest: Latest::new(asked.newest.unwrap_or(1)), oldest: None };
    // a terminal has one stream, an interpreter two
    let mut lanes = [None, Some(Stream::Stdout), Some(Stream::Stderr)].map(|stream| Lane::new(stream, segment.is_first));
    let mut reader = Reader::new(&segment.dir, segment.start);
    let mut searched = Searched::default();
    let mut missing = Vec::new();
    while !hits.is_complete() && !asked.gone.is_true() {
        let read = reader.read(segment.until, BATCH, |end, time, record| {
            if let Record::Missing(bytes) = record {
                missing.push(Hole { offset: end - bytes, bytes });
            }
            hits.take(&mut lanes, end, time, &record);
        });
        match read {
            Ok(true) => {}
            Ok(false) => {
                if reader.offset() < segment.until && segment.until != Offset::MAX {
                    missing.push(Hole { offset: reader.offset(), bytes: segment.until - reader.offset() });
                }
                break;
            }
            // dropped or removed while we were looking
            Err(ReadError::Dropped { .. }) => break,
            Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => break,
            Err(_) => {
                missing.push(Hole { offset: reader.offset(), bytes: segment.until.saturating_sub(reader.offset()) });
                break;
            }
        }
        for lane in &mut lanes {
            lane.search(&asked.pattern, asked.context, &mut |found| hits.add(found));
        }
    }
    searched.bytes = reader.offset() - segment.start;
    searched.bytes -= missing.iter().map(|hole| hole.bytes).sum::<u64>().min(searched.bytes);
    searched.missing = missing;
    read_on(segment, asked, &mut reader, &mut lanes, &mut hits);
    for lane in &mut lanes {
        lane.finish(&asked.pattern, asked.context, &mut |found| hits.add(found));
    }
    searched.hits = hits.newest_first();
    searched
}

/// What the next segment has of this one's last lines.
fn read_on(segment: &Segment, asked: &Asked, reader: &mut Reader, lanes: &mut [Lane], hits: &mut Hits<'_>) {
    for lane in lanes.iter_mut() {
        lane.end_segment();
    }
    let far = reader.offset().saturating_add(2 * LONG as u64);
    while !asked.gone.is_true() && reader.offset() < far && lanes.iter().any(|lane| lane.is_incomplete(asked.context)) {
        // whatever is wrong there is told when it is that segment's turn
        let Ok(true) = reader.read(segment.end, SMALL_BATCH, |end, time, record| hits.take(lanes, end, time, &record)) else { return };
    }
}

struct Hits<'a> {
    asked: &'a Asked,
    /// Wall clock at time 0 of the recording.
    began_at: i64,
    /// Where calls begin and end.
    calls: Vec<(Offset, During)>,
    latest: Latest<SegmentHit>,
    oldest: Option<SegmentHit>,
}

impl Hits<'_> {
    fn take(&mut self, lanes: &mut [Lane], end: Offset, time: u64, record: &Record<'_>) {
        match record {
            Record::Output(bytes) => lanes[0].push(bytes, end, time),
            Record::Stdout(bytes) | Record::Late(Stream::Stdout, bytes) => lanes[1].push(bytes, end, time),
            Record::Stderr(bytes) | Record::Late(Stream::Stderr, bytes) => lanes[2].push(bytes, end, time),
            Record::Header(header) => self.began_at = header.began_at,
            Record::Call(call) => self.calls.push((end, During::Exec(call.id))),
            Record::Result(_) => self.calls.push((end, During::Nothing)),
            Record::Gap(_) => lanes[0].interrupt(end, time),
            Record::Missing(_) => lanes.iter_mut().for_each(|lane| lane.interrupt(end, time)),
            _ => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.oldest.is_some()
    }

    fn add(&mut self, found: Found) {
        let Found { line, offset, time, stream } = found;
        let at = self.began_at.saturating_add_unsigned(time);
        let Asked { after, before, between, spans, .. } = self.asked;
        let is_in_time = after.is_none_or(|after| at >= after) && before.is_none_or(|before| at < before);
        let is_in_span = spans.as_ref().is_none_or(|spans| {
            let behind = spans.partition_point(|(start, _)| *start < offset);
            behind > 0 && offset <= spans[behind - 1].1
        });
        if !is_in_time || !is_in_span || offset <= between.0 || offset >= between.1 {
            return;
        }
        let during = match self.calls[..self.calls.partition_point(|(at, _)| *at < offset)].last() {
            Some((_, during)) => *during,
            None => During::Unknown,
        };
        let text = if self.asked.newest.is_some() { line.text.clone() } else { String::new() };
        let hit = SegmentHit { line, at, offset, stream, during, times: 1 };
        match self.asked.newest {
            Some(_) => self.latest.push(&text, hit),
            // two streams are searched one after the other
            None if self.oldest.as_ref().is_none_or(|oldest| offset < oldest.offset) => self.oldest = Some(hit),
            None => {}
        }
    }

    fn newest_first(self) -> Vec<SegmentHit> {
        if let Some(oldest) = self.oldest {
            return vec![oldest];
        }
        let mut hits: Vec<SegmentHit> = self.latest.newest_first().map(|(hit, times)| SegmentHit { times, ..hit }).collect();
        hits.sort_by_key(|hit| std::cmp::Reverse((hit.at, hit.offset)));
        hits
    }
}
