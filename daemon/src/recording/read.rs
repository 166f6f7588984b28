//! Reading from an offset, following a growing recording, and cutting a torn tail.

use std::io;
use std::path::{Path, PathBuf};

use shared::frame;
use shared::id::Offset;
use shared::runtime::ExitStatus;

use super::segment::Segment;
use super::{Record, decode, is_segment, segment_path, segments, understand};

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the recording before offset {first} has been dropped")]
    Dropped { first: Offset },
    #[error("the recording is damaged at offset {at}")]
    Damaged { at: Offset },
    #[error("reading the recording: {0}")]
    Io(#[from] io::Error),
}

/// What is asked for when one frame is wanted: most of what people see happen is smaller.
const SMALL: usize = 128;

/// Reads frames in order from any frame's edge.
pub struct Reader {
    dir: PathBuf,
    segment: Option<(Offset, Segment)>,
    offset: Offset,
    buffer: Vec<u8>,
}

impl Reader {
    pub fn new(dir: &Path, offset: Offset) -> Self {
        Self { dir: dir.to_owned(), segment: None, offset, buffer: Vec::new() }
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
        let here = self.offset;
        let (mut look, mut seen) = (Some(look), None);
        let read = self.read(until, SMALL, |end, time, record| {
            if let Some(look) = look.take() {
                seen = Some(look(end, time, record));
            }
        });
        self.offset = here;
        seen.filter(|_| read.is_ok())
    }

    /// Gives up memory and the open file while nothing is to be read.
    pub fn rest(&mut self) {
        self.buffer = Vec::new();
        self.segment = None;
    }

    /// Hands a batch of whole frames that end at or before `until` to `each`, about `most` bytes of them (at least one frame);
    /// `false` when there are none.
    pub fn read(&mut self, until: Offset, most: usize, mut each: impl FnMut(Offset, u64, Record<'_>)) -> Result<bool, ReadError> {
        if self.offset >= until {
            return Ok(false);
        }
        let there = usize::try_from(until - self.offset).unwrap_or(usize::MAX);
        let mut wanted = most.min(there);
        loop {
            self.open()?;
            let Some((start, segment)) = &mut self.segment else { return Ok(false) };
            let start = *start;
            let position = self.offset - start;
            self.buffer.resize(wanted, 0);
            let filled = match segment.fill_at(&mut self.buffer[..wanted], position) {
                Ok(filled) => filled,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(ReadError::Damaged { at: self.offset }),
                Err(error) => return Err(error.into()),
            };
            let mut used = 0;
            while let Some(frame) = decode(&self.buffer[used..filled]) {
                used += frame.size;
                each(self.offset + used as u64, frame.time, understand(frame.kind, frame.body));
            }
            if used > 0 {
                self.offset += used as u64;
                return Ok(true);
            }
            if filled == 0 {
                // the end of this segment: go on in the next, if it begins here
                if start != self.offset && is_segment(&self.dir, self.offset) {
                    self.segment = None;
                    continue;
                }
                return Ok(false);
            }
            // a frame longer than what was asked for, or a broken one
            if filled == wanted && wanted < there.min(2 * frame::MAX_PAYLOAD) {
                wanted = wanted.saturating_mul(2).min(there);
                continue;
            }
            return Err(ReadError::Damaged { at: self.offset });
        }
    }

    fn open(&mut self) -> Result<(), ReadError> {
        if self.segment.is_some() {
            return Ok(());
        }
        let starts = segments(&self.dir)?;
        let Some(first) = starts.first() else { return Err(io::Error::from(io::ErrorKind::NotFound).into()) };
        if self.offset < *first {
            return Err(ReadError::Dropped { first: *first });
        }
        let start = starts.iter().rev().find(|start| **start <= self.offset).copied().unwrap_or(*first);
        self.segment = match Segment::open(&self.dir, start) {
            Ok(segment) => Some((start, segment)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(ReadError::Damaged { at: self.offset }),
            // packed or dropped since it was listed
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_segment(&self.dir, start) => {
                Some((start, Segment::open(&self.dir, start)?))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }
}

/// What the end of a recording says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    pub end: Offset,
    /// Microseconds since 1970 of the last frame.
    pub last_at: Option<i64>,
    pub exit: Option<ExitStatus>,
    /// Bytes that were not whole and have been cut off.
    pub torn: u64,
}

/// How a recording ends, as far as it is whole. Changes nothing: somebody may be appending.
pub fn tail(dir: &Path) -> io::Result<Tail> {
    examine(dir, |_, _| Ok(()))
}

/// Cuts what a killed holder left half-written, and tells how the recording ends. Only for recordings nobody appends to.
pub fn cut_torn_tail(dir: &Path) -> io::Result<Tail> {
    examine(dir, |path, whole| match whole {
        0 => std::fs::remove_file(path),
        _ => std::fs::OpenOptions::new().write(true).open(path)?.set_len(whole),
    })
}

/// `mend` is called with each segment that is not whole, and how much of it is.
fn examine(dir: &Path, mend: impl Fn(&Path, u64) -> io::Result<()>) -> io::Result<Tail> {
    let starts = match segments(dir) {
        Ok(starts) => starts,
        // nothing was ever recorded
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tail::default()),
        Err(error) => return Err(error),
    };
    let mut tail = Tail::default();
    // a segment with nothing whole in it was being opened when the holder died: the one before has the end
    for start in starts.iter().rev() {
        let path = segment_path(dir, *start);
        let bytes = match Segment::open(dir, *start).and_then(|mut segment| segment.read_all()) {
            Ok(bytes) => bytes,
            // nothing can be cut off a packed one: what is before it stands
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            Err(error) => return Err(error),
        };
        let mut used = 0;
        let mut began_at = None;
        while let Some(frame) = decode(&bytes[used..]) {
            used += frame.size;
            match understand(frame.kind, frame.body) {
                Record::Header(header) => began_at = Some(header.began_at),
                Record::Exit(status) => tail.exit = Some(status),
                _ => {}
            }
            tail.last_at = began_at.map(|began| began.saturating_add_unsigned(frame.time));
        }
        let torn = (bytes.len() - used) as u64;
        if torn > 0 || used == 0 {
            tail.torn += torn;
            mend(&path, used as u64)?;
        }
        tail.end = start + used as u64;
        if used > 0 {
            break;
        }
    }
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::super::{SEGMENT_BYTES, Writer, encode_exit, kind};
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
    fn every_torn_tail_is_cut_to_the_longest_whole_prefix() {
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
            let tail = cut_torn_tail(torn.path()).expect("cuts");
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
