//! Reading from an offset and following a growing recording. A reader that meets bytes it cannot read (a missing, truncated
//! or damaged file) reports them as `Record::Missing` and continues behind them.

use std::io;
use std::path::{Path, PathBuf};

use shared::frame;
use shared::id::Offset;
use shared::runtime::ExitStatus;

use super::segment::Segment;
use super::{Record, STAMP, decode, is_segment, kind, segments, understand};

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the recording before offset {first} has been dropped")]
    Dropped { first: Offset },
    #[error("reading the recording: {0}")]
    Io(#[from] io::Error),
}

/// What is asked for when one frame is wanted: most of what people see happen is smaller.
const SMALL: usize = 128;

/// The longest frame there is.
const LONGEST: usize = frame::HEADER + frame::MAX_PAYLOAD;

/// Read at a time to find the end.
const TAIL_BATCH: usize = 1 << 20;

/// Reads frames in order from any frame's edge.
pub struct Reader {
    dir: PathBuf,
    segment: Option<(Offset, Segment)>,
    offset: Offset,
    buffer: Vec<u8>,
    /// Of the last frame that was read.
    time: u64,
}

/// Where reading continues when no whole frame was found.
enum Continue {
    /// At the same offset: in the next segment, or more has been appended meanwhile.
    Here,
    /// Behind bytes that cannot be read.
    At(Offset),
    /// Nowhere yet: the rest is still to be written, or ends behind what was asked for.
    Nowhere,
}

impl Reader {
    pub fn new(dir: &Path, offset: Offset) -> Self {
        Self { dir: dir.to_owned(), segment: None, offset, buffer: Vec::new(), time: 0 }
    }

    /// Where the next frame begins.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    pub fn seek(&mut self, offset: Offset) {
        self.offset = offset;
        self.segment = None;
    }

    /// Where the next frame ends, if it is whole and ends at or before `until`.
    pub fn next_edge(&mut self, until: Offset) -> Option<Offset> {
        self.peek(until, |end, _, _| end)
    }

    /// Looks at the next frame without passing it; `None` if it does not end at or before `until`.
    pub fn peek<T>(&mut self, until: Offset, look: impl FnOnce(Offset, u64, Record<'_>) -> T) -> Option<T> {
        let (here, time) = (self.offset, self.time);
        let (mut look, mut seen) = (Some(look), None);
        let read = self.read(until, SMALL, |end, time, record| {
            if let Some(look) = look.take() {
                seen = Some(look(end, time, record));
            }
        });
        (self.offset, self.time) = (here, time);
        if self.segment.as_ref().is_some_and(|(start, _)| *start > here) {
            self.segment = None;
        }
        seen.filter(|_| read.is_ok())
    }

    /// Gives up memory and the open file while nothing is to be read.
    pub fn rest(&mut self) {
        self.buffer = Vec::new();
        self.segment = None;
    }

    /// Passes a batch of whole frames that end at or before `until` to `each`, about `most` bytes of them (at least one frame);
    /// `false` when there are none. Bytes that cannot be read become one `Record::Missing` in their place.
    pub fn read(&mut self, until: Offset, most: usize, mut each: impl FnMut(Offset, u64, Record<'_>)) -> Result<bool, ReadError> {
        if self.offset >= until {
            return Ok(false);
        }
        let mut missing_from = None;
        loop {
            self.open()?;
            if self.read_frames(until, most, &mut missing_from, &mut each)? {
                return Ok(true);
            }
            match self.find_next(until)? {
                Continue::Here => {}
                Continue::At(next) => {
                    let from = *missing_from.get_or_insert(self.offset);
                    self.seek(next);
                    if next == until {
                        each(next, self.time, Record::Missing(next - from));
                        return Ok(true);
                    }
                }
                Continue::Nowhere => {
                    if let Some(from) = missing_from {
                        self.seek(from);
                    }
                    return Ok(false);
                }
            }
        }
    }

    fn read_frames(
        &mut self,
        until: Offset,
        most: usize,
        missing_from: &mut Option<Offset>,
        each: &mut impl FnMut(Offset, u64, Record<'_>),
    ) -> Result<bool, ReadError> {
        let Some((start, segment)) = &mut self.segment else { return Ok(false) };
        let position = self.offset - *start;
        let there = usize::try_from(until - self.offset).unwrap_or(usize::MAX);
        let mut wanted = most.min(there);
        loop {
            self.buffer.resize(wanted, 0);
            let filled = match segment.fill_at(&mut self.buffer[..wanted], position) {
                Ok(filled) => filled,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            let mut used = 0;
            while let Some(frame) = decode(&self.buffer[used..filled]) {
                if let Some(from) = missing_from.take() {
                    each(self.offset, frame.time, Record::Missing(self.offset - from));
                }
                used += frame.size;
                self.time = frame.time;
                each(self.offset + used as u64, frame.time, understand(frame.kind, frame.body));
            }
            if used > 0 {
                self.offset += used as u64;
                return Ok(true);
            }
            // a frame longer than what was asked for
            if filled == wanted && wanted < there.min(2 * frame::MAX_PAYLOAD) {
                wanted = wanted.saturating_mul(2).min(there);
                continue;
            }
            return Ok(false);
        }
    }

    /// Decides how to continue when there is no whole frame before `until` at the present offset.
    fn find_next(&mut self, until: Offset) -> Result<Continue, ReadError> {
        // Listed before the segment is looked at again: if there is a later one, this one is closed and that look is final.
        let later = segments(&self.dir)?.into_iter().find(|start| *start > self.offset);
        let Some((start, segment)) = &mut self.segment else { return Ok(Continue::Nowhere) };
        let start = *start;
        if start != self.offset && is_segment(&self.dir, self.offset) {
            self.segment = None;
            return Ok(Continue::Here);
        }
        let position = self.offset - start;
        if let Some(size) = whole_frame_at(segment, position)? {
            return Ok(if self.offset + size <= until { Continue::Here } else { Continue::Nowhere });
        }
        let next = match next_frame(segment, position)? {
            Some(found) => Some(start + found),
            None => later,
        };
        Ok(match next {
            Some(next) if next <= until => Continue::At(next),
            _ => Continue::Nowhere,
        })
    }

    fn open(&mut self) -> Result<(), ReadError> {
        while self.segment.is_none() {
            let starts = segments(&self.dir)?;
            let Some(first) = starts.first() else { return Err(io::Error::from(io::ErrorKind::NotFound).into()) };
            if self.offset < *first {
                return Err(ReadError::Dropped { first: *first });
            }
            let start = starts.iter().rev().find(|start| **start <= self.offset).copied().unwrap_or(*first);
            let opened = match Segment::open(&self.dir, start) {
                // packed since it was listed
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_segment(&self.dir, start) => Segment::open(&self.dir, start),
                other => other,
            };
            match opened {
                Ok(segment) => self.segment = Some((start, segment)),
                // nothing in it can be read: what comes next is found as behind any other damage
                Err(error) if error.kind() == io::ErrorKind::InvalidData => self.segment = Some((start, Segment::Unreadable)),
                // dropped since it was listed
                Err(error) if error.kind() == io::ErrorKind::NotFound && starts.len() > 1 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The size of the whole frame at this position.
fn whole_frame_at(segment: &mut Segment, position: u64) -> io::Result<Option<u64>> {
    let mut head = [0; frame::HEADER];
    if fill(segment, &mut head, position)? < head.len() {
        return Ok(None);
    }
    let Some(size) = plausible_size(&head) else { return Ok(None) };
    let mut bytes = vec![0; size];
    let filled = fill(segment, &mut bytes, position)?;
    Ok(decode(&bytes[..filled]).map(|frame| frame.size as u64))
}

/// As `fill_at`; what is damaged reads as nothing.
fn fill(segment: &mut Segment, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    match segment.fill_at(buffer, position) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(0),
        other => other,
    }
}

/// The size of a frame with this header, if a recording could have one.
fn plausible_size(head: &[u8]) -> Option<usize> {
    let [kind, a, b, c, d] = *head.first_chunk::<{ frame::HEADER }>()?;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    ((kind::HEADER..=kind::LAST).contains(&kind) && (STAMP..=frame::MAX_PAYLOAD).contains(&length)).then_some(frame::HEADER + length)
}

/// The position of the first whole frame behind a position that has none, or the end of the segment if the frame that is
/// damaged ends there.
fn next_frame(segment: &mut Segment, position: u64) -> io::Result<Option<u64>> {
    let length = segment.length()?;
    let mut head = [0; frame::HEADER];
    // The length of the damaged frame may be intact. Trusted first: what a program printed may look like frames.
    if fill(segment, &mut head, position)? == head.len()
        && let Some(size) = plausible_size(&head)
    {
        let next = position + size as u64;
        if next == length || whole_frame_at(segment, next)?.is_some() {
            return Ok(Some(next));
        }
    }
    let mut at = position + 1;
    let mut window = vec![0; LONGEST];
    while at < length {
        let filled = fill(segment, &mut window, at)?;
        if filled < frame::HEADER {
            at = segment.after_unreadable(at)?.max(at + 1);
            continue;
        }
        for n in 0..=filled - frame::HEADER {
            if plausible_size(&window[n..]).is_some() && whole_frame_at(segment, at + n as u64)?.is_some() {
                return Ok(Some(at + n as u64));
            }
        }
        at += (filled - frame::HEADER + 1) as u64;
    }
    Ok(None)
}

/// What the end of a recording says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    /// Behind the last whole frame.
    pub end: Offset,
    /// Microseconds since 1970 of the last frame.
    pub last_at: Option<i64>,
    pub exit: Option<ExitStatus>,
    /// Bytes behind it that are no whole frame: one was being written when the holder was killed.
    pub torn: u64,
}

/// How a recording ends, as far as it is whole. Changes nothing: bytes that cannot be read today stay where they are.
pub fn tail(dir: &Path) -> io::Result<Tail> {
    let starts = match segments(dir) {
        Ok(starts) => starts,
        // nothing was ever recorded
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tail::default()),
        Err(error) => return Err(error),
    };
    let mut tail = Tail::default();
    // a segment with nothing whole in it was being opened when the holder died: the one before has the end
    for start in starts.iter().rev() {
        let mut reader = Reader::new(dir, *start);
        let mut began_at = None;
        loop {
            let read = reader.read(Offset::MAX, TAIL_BATCH, |end, time, record| {
                match record {
                    Record::Header(header) => began_at = Some(header.began_at),
                    Record::Exit(status) => tail.exit = Some(status),
                    Record::Missing(_) => return,
                    _ => {}
                }
                tail.last_at = began_at.map(|began| began.saturating_add_unsigned(time));
                tail.end = end;
            });
            match read {
                Ok(true) => {}
                Ok(false) | Err(ReadError::Dropped { .. }) => break,
                Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => break,
                Err(ReadError::Io(error)) => return Err(error),
            }
        }
        if tail.end > 0 {
            break;
        }
    }
    tail.torn = super::end(dir).map_or(0, |end| end.saturating_sub(tail.end));
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::super::{SEGMENT_BYTES, Writer, encode_exit, kind, segment_path};
    use super::*;
    use proptest::prelude::*;
    use shared::screen::Size;

    const SIZE: Size = Size { cols: 80, rows: 24 };

    fn output(dir: &Path, until: Offset) -> (Vec<u8>, Vec<u64>) {
        let mut reader = Reader::new(dir, 0);
        let (mut bytes, mut times) = (Vec::new(), Vec::new());
        while reader
            .read(until, 100_000, |_, time, record| {
                if let Record::Output(body) = record {
                    bytes.extend_from_slice(body);
                    times.push(time);
                }
            })
            .expect("reads")
        {}
        (bytes, times)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_appended_is_read_back(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 1..20)) {
            let dir = tempfile::tempdir().expect("a folder");
            let mut writer = Writer::create(dir.path(), "r".into(), 0, SIZE, 1 << 30).expect("creates");
            for (time, chunk) in (0u64..).zip(&chunks) {
                writer.append(kind::OUTPUT, time, SIZE, chunk).expect("appends");
            }
            let (bytes, times) = output(dir.path(), writer.end());
            prop_assert_eq!(bytes, chunks.concat());
            prop_assert_eq!(times.len(), chunks.len());
        }
    }

    #[test]
    fn a_torn_tail_ends_at_the_longest_whole_prefix_and_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(dir.path(), "r".into(), 7, SIZE, 1 << 30).expect("creates");
        let mut edges = vec![(writer.end(), 0)];
        let mut said = 0;
        for n in 0..6usize {
            writer.append(kind::OUTPUT, n as u64, SIZE, &vec![b'a' + n as u8; n * 37]).expect("appends");
            said += n * 37;
            edges.push((writer.end(), said));
        }
        writer.append(kind::EXIT, 9, SIZE, &encode_exit(ExitStatus::Code(3))).expect("appends");
        let whole = std::fs::read(segment_path(dir.path(), 0)).expect("reads");
        for cut in 0..=whole.len() {
            let torn = tempfile::tempdir().expect("a folder");
            std::fs::write(segment_path(torn.path(), 0), &whole[..cut]).expect("writes");
            let tail = tail(torn.path()).expect("reads");
            assert_eq!(std::fs::read(segment_path(torn.path(), 0)).expect("reads").len(), cut, "nothing was removed");
            assert_eq!(tail.end + tail.torn, cut as u64);
            let expected = edges.iter().rev().find(|(edge, _)| *edge <= cut as u64);
            if cut == whole.len() {
                assert_eq!(tail.exit, Some(ExitStatus::Code(3)));
                assert_eq!(tail.last_at, Some(7 + 9));
            } else if let Some((edge, said)) = expected {
                assert_eq!((tail.end, tail.exit), (*edge, None), "cut at {cut}");
                assert_eq!(output(torn.path(), tail.end).0.len(), *said);
            } else {
                assert_eq!(tail.end, 0, "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_never_shown_as_output() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(dir.path(), "r".into(), 7, SIZE, 1 << 30).expect("creates");
        writer.append(kind::OUTPUT, 1, SIZE, b"hello").expect("appends");
        let whole = std::fs::read(segment_path(dir.path(), 0)).expect("reads");
        for bit in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let torn = tempfile::tempdir().expect("a folder");
            std::fs::write(segment_path(torn.path(), 0), &bad).expect("writes");
            let mut reader = Reader::new(torn.path(), 0);
            let mut seen = Vec::new();
            while let Ok(true) = reader.read(whole.len() as u64, 10, |_, _, record| {
                if let Record::Output(body) = record {
                    seen.extend_from_slice(body);
                }
            }) {}
            assert!(seen.is_empty() || seen == b"hello", "bit {bit}: {seen:?}");
        }
    }

    #[test]
    fn segments_follow_each_other_and_the_oldest_go() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(dir.path(), "r".into(), 0, SIZE, 2 * SEGMENT_BYTES).expect("creates");
        let chunk = vec![b'x'; 60_000];
        while writer.end() < 5 * SEGMENT_BYTES {
            writer.append(kind::OUTPUT, 0, SIZE, &chunk).expect("appends");
        }
        let starts = segments(dir.path()).expect("lists");
        assert_eq!(starts.len(), 2, "{starts:?}");
        let mut reader = Reader::new(dir.path(), 0);
        let Err(ReadError::Dropped { first }) = reader.read(writer.end(), 1 << 20, |_, _, _| {}) else { panic!("the start was dropped") };
        assert_eq!(first, starts[0]);
        reader.seek(first);
        let mut frames = 0;
        while reader.read(writer.end(), 1 << 20, |_, _, record| frames += usize::from(matches!(record, Record::Output(_)))).expect("reads")
        {
        }
        assert_eq!(reader.offset(), writer.end());
        assert!(frames > 250, "{frames}");
    }
}
