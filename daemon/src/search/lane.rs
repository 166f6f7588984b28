//! One stream of a recording as it is passed over: a window of its raw bytes, whole lines at a time, and which frame each
//! byte came with. Bounded, whatever the recording.

use memchr::{memchr, memrchr};
use shared::exec::Stream;
use shared::id::Offset;
use shared::screen::hidden_ranges;
use shared::search::MAX_PATTERN;
use shared::seen::{Seen, Text};

use super::Pattern;
use super::line::{self, LONG, Line};

const ESC: u8 = 0x1b;

/// How far before a line its colours may have been set, in bytes; what sets them farther away is not known of.
const LOOKED_BACK: usize = 16 << 10;

#[derive(Default)]
pub struct Lane {
    pub stream: Option<Stream>,
    raw: Vec<u8>,
    frames: Vec<Frame>,
    /// The stripper at the beginning of `raw`.
    seen: Seen,
    /// Everything before has been searched.
    searched: usize,
    /// The line it begins with belongs to the segment before.
    is_in_foreign_line: bool,
    /// Where bytes begin that are only here to complete a line.
    border: Option<usize>,
    text: Text,
}

struct Frame {
    /// Of its bytes in the window.
    end: usize,
    offset: Offset,
    time: u64,
}

/// A line with a match, and where that has been seen: the end of the line, or of the frame that completed the match.
pub struct Found {
    pub line: Line,
    pub offset: Offset,
    pub time: u64,
    pub stream: Option<Stream>,
}

impl Lane {
    pub fn new(stream: Option<Stream>, is_first_segment: bool) -> Self {
        Self { stream, is_in_foreign_line: !is_first_segment, ..Self::default() }
    }

    pub fn push(&mut self, bytes: &[u8], offset: Offset, time: u64) {
        self.raw.extend_from_slice(bytes);
        self.frames.push(Frame { end: self.raw.len(), offset, time });
    }

    /// Nothing continues over this.
    pub fn interrupt(&mut self, offset: Offset, time: u64) {
        self.push(b"\x18\n", offset, time);
    }

    /// Searches the lines that are whole, with as many behind them as are wanted for context.
    pub fn search(&mut self, pattern: &Pattern, context: usize, each: &mut impl FnMut(Found)) {
        if !self.begin() {
            return;
        }
        let mut limit = self.raw.len();
        for _ in 0..=context {
            limit = memrchr(b'\n', &self.raw[self.searched..limit]).map_or(self.searched, |at| self.searched + at);
        }
        if limit > self.searched || self.raw.get(limit) == Some(&b'\n') {
            limit += 1;
        } else if self.raw.len() - self.searched > 2 * LONG {
            // a line without end
            limit = self.raw.len() - LONG;
        } else {
            return;
        }
        self.search_to(limit, pattern, context, each);
        self.forget(limit.saturating_sub(LONG));
    }

    /// What comes from now on only completes the last line.
    pub fn end_segment(&mut self) {
        self.border = Some(self.raw.len());
    }

    /// Whether more is needed for the last lines of the segment.
    pub fn is_incomplete(&self, context: usize) -> bool {
        let Some(border) = self.border else { return false };
        if self.searched >= border || self.is_in_foreign_line || self.raw.len() - border > LONG {
            return false;
        }
        let wanted = context + usize::from(self.raw[border - 1] != b'\n');
        memchr::memchr_iter(b'\n', &self.raw[border..]).take(wanted).count() < wanted
    }

    /// Searches what is left of the segment.
    pub fn finish(&mut self, pattern: &Pattern, context: usize, each: &mut impl FnMut(Found)) {
        let border = self.border.unwrap_or(self.raw.len());
        if !self.begin() || self.searched >= border {
            return;
        }
        let limit = match self.raw[border - 1] {
            b'\n' => border,
            _ => memchr(b'\n', &self.raw[border..]).map_or(self.raw.len(), |at| border + at + 1),
        };
        self.search_to(limit, pattern, context, each);
    }

    /// Passes over the line that belongs to the segment before; `false` while it has not ended.
    fn begin(&mut self) -> bool {
        if self.is_in_foreign_line {
            match memchr(b'\n', &self.raw) {
                Some(end) => self.searched = end + 1,
                // too long to be completed there
                None if self.raw.len() > LONG => {}
                None => return false,
            }
            self.is_in_foreign_line = false;
        }
        true
    }

    fn search_to(&mut self, limit: usize, pattern: &Pattern, context: usize, each: &mut impl FnMut(Found)) {
        let mut from = self.searched;
        let mut state = (0, self.seen.clone());
        if let Some(sieve) = &pattern.sieve {
            let raw = std::mem::take(&mut self.raw);
            let pass = sieve.pass(&raw[..]);
            while let Some(place) = pass.next(from, limit) {
                from = self.judge(&raw, place, from, &mut state, pattern, context, each);
            }
            self.raw = raw;
        } else {
            let raw = std::mem::take(&mut self.raw);
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            let mut seen = self.seen.clone();
            seen.skip(&raw[..from]);
            seen.feed(&raw[from..limit], from, &mut text);
            let mut places = Vec::new();
            pattern.lines_in(&text.bytes, |at| places.push(text.input_of(at)));
            self.text = text;
            for place in places {
                if place >= from {
                    from = self.judge(&raw, place, from, &mut state, pattern, context, each);
                }
            }
            self.raw = raw;
        }
        self.searched = limit.max(from);
    }

    /// Reads the lines around a place as they were seen; gives where to go on.
    #[expect(clippy::too_many_arguments, reason = "the window is taken apart while it is passed over")]
    fn judge(
        &mut self,
        raw: &[u8],
        place: usize,
        from: usize,
        (mark, state): &mut (usize, Seen),
        pattern: &Pattern,
        context: usize,
        each: &mut impl FnMut(Found),
    ) -> usize {
        let start = line_start(raw, place).max(from.saturating_sub(MAX_PATTERN));
        let end = line_end(raw, place);
        let (mut first, mut last) = (start, end);
        for _ in 0..context {
            first = first.checked_sub(1).map_or(0, |before| line_start(raw, before));
            last = line_end(raw, last);
        }
        if first < *mark {
            (*mark, *state) = (0, self.seen.clone());
        }
        state.skip(&raw[*mark..first]);
        *mark = first;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        state.clone().feed(&raw[first..last], first, &mut text);
        let bytes = std::mem::take(&mut text.bytes);
        let meant = |at: usize| (from..end).contains(&text.input_of(at));
        let behind = first.saturating_sub(LOOKED_BACK);
        let hidden = if memchr(ESC, &raw[behind..last]).is_some() { hidden_ranges(&raw[behind..last]) } else { Vec::new() };
        let is_hidden = |at: usize| {
            let input = text.input_of(at).saturating_sub(behind);
            hidden.get(hidden.partition_point(|range| range.end <= input)).is_some_and(|range| range.contains(&input))
        };
        line::find(pattern, &bytes, context, meant, is_hidden, |line, at| {
            let input = text.input_of(at);
            let frame = self.frames.partition_point(|frame| frame.end <= input);
            if let Some(frame) = self.frames.get(frame) {
                // a frame may be many screens long: at its end the line may have gone
                let last = at + memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at).max(1) - 1;
                let seen = text.input_of(last).max(input) + 1;
                let offset = frame.offset.saturating_sub(frame.end.saturating_sub(seen) as u64);
                each(Found { line, offset, time: frame.time, stream: self.stream });
            }
        });
        text.bytes = bytes;
        self.text = text;
        end.max(place + 1)
    }

    fn forget(&mut self, count: usize) {
        self.seen.skip(&self.raw[..count]);
        self.raw.drain(..count);
        self.searched -= count;
        let gone = self.frames.partition_point(|frame| frame.end <= count);
        self.frames.drain(..gone);
        for frame in &mut self.frames {
            frame.end -= count;
        }
    }
}

/// Where the line that has the byte at `at` begins; not farther back than a long line.
fn line_start(raw: &[u8], at: usize) -> usize {
    let near = at.saturating_sub(LONG);
    memrchr(b'\n', &raw[near..at]).map_or(near, |end| near + end + 1)
}

/// Where the line that has the byte at `at` ends, with its LF.
fn line_end(raw: &[u8], at: usize) -> usize {
    let far = raw.len().min(at.saturating_add(LONG));
    memchr(b'\n', &raw[at.min(far)..far]).map_or(far, |end| at + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str, ignore_case: bool) -> Pattern {
        Pattern::new(&shared::search::Pattern { text: text.into(), regex: false, ignore_case }).expect("fine")
    }

    /// Searches in frames of this size; each frame's offset is where it ends.
    fn search(bytes: &[u8], frame: usize, pattern: &Pattern, context: usize) -> Vec<(String, Offset, Vec<String>, Vec<String>)> {
        let mut lane = Lane::new(None, true);
        let mut found = Vec::new();
        let mut each = |hit: Found| found.push((hit.line.text, hit.offset, hit.line.before, hit.line.after));
        let mut end = 0;
        for part in bytes.chunks(frame) {
            end += part.len() as u64;
            lane.push(part, end, 0);
            lane.search(pattern, context, &mut each);
        }
        lane.finish(pattern, context, &mut each);
        found
    }

    #[test]
    fn a_hit_is_at_the_end_of_its_line_or_of_the_frame_that_completes_it() {
        let bytes = b"first\r\nsecond ne\x1b[31med\x1b[0mle here\r\nthird\r\nne\x08\x08needle again";
        for frame in [1, 2, 3, 7, 100] {
            let found = search(bytes, frame, &pattern("needle", false), 1);
            assert_eq!(found.len(), 2, "{frame}: {found:?}");
            assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("second needle here", "needle again"));
            let complete = bytes.windows(2).position(|pair| pair == b"le").expect("there") + 2;
            let line = bytes.windows(4).position(|part| part == b"here").expect("there") + 4;
            assert_eq!(found[0].1, complete.div_ceil(frame).saturating_mul(frame).min(line) as u64, "{frame}");
            assert_eq!((&found[0].2[..], &found[0].3[..]), (&["first".to_owned()][..], &["third".to_owned()][..]), "{frame}");
        }
    }

    #[test]
    fn lines_without_end_are_searched_in_parts_and_memory_stays() {
        let mut lane = Lane::new(None, true);
        let wanted = pattern("needle", false);
        let mut count = 0;
        for number in 0..2000u64 {
            let mut part = vec![b'x'; 997];
            if number % 500 == 250 {
                part.extend_from_slice(b"needle");
            }
            lane.push(&part, number, 0);
            lane.search(&wanted, 0, &mut |_| count += 1);
            assert!(lane.raw.len() < 4 * LONG && lane.frames.len() < 400);
        }
        lane.finish(&wanted, 0, &mut |_| count += 1);
        assert_eq!(count, 4);
    }

    proptest! {
        /// The sieve finds what stripping everything finds, whatever the frames.
        #[test]
        fn quick_and_thorough_find_the_same(pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "b", "ab", "aab", " ", "\x1b[31m", "\x1b[2C", "\x1b[5;5H", "\x1b]0;ab\x07", "\x08", "\r", "\n", "\r\n", "\x0e", "\u{e9}", "zzzzzzzzzz",
        ]), 0..80), frame in 1..20usize, needle in prop::sample::select(vec!["ab", "aab", "b  a", "bab"]), context in 0..3usize) {
            let raw = pieces.concat().into_bytes();
            let quick = pattern(needle, false);
            let mut thorough = pattern(needle, false);
            thorough.sieve = None;
            let expected = search(&raw, raw.len().max(1), &thorough, context);
            let found = search(&raw, frame, &quick, context);
            prop_assert_eq!(&found, &search(&raw, frame, &thorough, context));
            let without_place = |hits: Vec<(String, Offset, Vec<String>, Vec<String>)>| hits.into_iter().map(|hit| (hit.0, hit.2, hit.3)).collect::<Vec<_>>();
            prop_assert_eq!(without_place(found), without_place(expected));
        }
    }
}
