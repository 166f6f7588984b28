//! Terminal bytes in, text as it was seen out: without escape sequences, line by line, however the bytes were cut.
//! It keeps no screen: what a program puts at places of its own choosing becomes lines of its own. Pure, and bounded in memory.

use std::ops::Range;

use memchr::{memchr, memchr3, memrchr};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

/// Blanks or repeated characters of one sequence, at most: no terminal is wider.
const MAX_FILL: u16 = 512;

/// Bytes of a control sequence that is read in one go.
const SHORT: usize = 32;

/// Where in a sequence the bytes stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// A line was broken by CR: an LF right after it belongs to it.
    Returned,
    /// The first byte of a character that may be a control.
    Lead,
    Escape,
    /// An escape sequence with intermediate bytes: its last one ends it.
    Charset,
    Csi(Csi),
    String {
        osc: bool,
    },
}

/// As much of a control sequence as decides what is seen of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Csi {
    prefixed: bool,
    intermediate: bool,
    /// The number that is being read, and the first one.
    number: u16,
    first: Option<u16>,
    /// One of its numbers is the alternate screen.
    alternate: bool,
}

impl Csi {
    fn take(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' => self.number = self.number.saturating_mul(10).saturating_add(u16::from(byte - b'0')),
            b':' | b';' => self.next(),
            b'<'..=b'?' => self.prefixed = true,
            _ => self.intermediate = true,
        }
    }

    fn next(&mut self) {
        self.first.get_or_insert(self.number);
        self.alternate |= matches!(self.number, 47 | 1047 | 1049);
        self.number = 0;
    }

    fn count(&self) -> usize {
        usize::from(self.first.unwrap_or(0).clamp(1, MAX_FILL))
    }
}

/// The stripper: what it knows between two slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    state: State,
}

/// What was seen, and where each part of it came from.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// From `out` on, bytes came from the input at `input` on, or all from there.
#[derive(Clone, Copy, Debug)]
struct Run {
    out: usize,
    input: usize,
    copied: bool,
}

impl Text {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }

    fn copy(&mut self, bytes: &[u8], input: usize) {
        let goes_on = self.runs.last().is_some_and(|run| run.copied && run.input + (self.bytes.len() - run.out) == input);
        if !goes_on {
            self.runs.push(Run { out: self.bytes.len(), input, copied: true });
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn fill(&mut self, bytes: &[u8], times: usize, input: usize) {
        self.runs.push(Run { out: self.bytes.len(), input, copied: false });
        for _ in 0..times {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn is_at_line_start(&self) -> bool {
        self.bytes.last().is_none_or(|last| *last == b'\n')
    }

    /// Ends the line, unless nothing is in it: programs move the cursor many times between two words.
    fn break_line(&mut self, input: usize) {
        if !self.is_at_line_start() {
            self.copy(b"\n", input);
        }
    }

    /// The last character of the line, as bytes.
    fn last_char(&self) -> Range<usize> {
        let end = self.bytes.len();
        if self.is_at_line_start() {
            return end..end;
        }
        let mut start = end - 1;
        while start > 0 && end - start < 4 && self.bytes[start] & 0xc0 == 0x80 && self.bytes[start - 1] != b'\n' {
            start -= 1;
        }
        start..end
    }

    fn take_back(&mut self) {
        let mut start = self.last_char().start;
        if start > 0 && self.bytes[start - 1] == 0xc2 {
            start -= 1;
        }
        self.bytes.truncate(start);
        while self.runs.last().is_some_and(|run| run.out >= start) {
            self.runs.pop();
        }
    }

    /// Where in the input the byte at `at` came from.
    pub fn input_of(&self, at: usize) -> usize {
        match self.runs[..self.runs.partition_point(|run| run.out <= at)].last() {
            Some(run) if run.copied => run.input + (at - run.out),
            Some(run) => run.input,
            None => 0,
        }
    }
}

/// A byte that is not simply seen: controls but HT and LF, and what may begin a control of two bytes.
#[expect(clippy::needless_bitwise_bool, reason = "branches would keep the loop below from becoming vector code")]
const fn is_special(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\t') & (byte != b'\n') | (byte == 0x7f) | (byte == 0xc2)
}

/// The same for single bytes: one look instead of five comparisons.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_special(byte as u8);
        byte += 1;
    }
    table
};

fn find_special(bytes: &[u8]) -> usize {
    const LANES: usize = 32;
    // between colours there is little text: look near first
    let near = bytes.len().min(LANES);
    if let Some(found) = bytes[..near].iter().position(|&byte| SPECIAL[usize::from(byte)]) {
        return found;
    }
    let mut at = near;
    // without a branch per byte the compiler turns this into vector instructions
    for chunk in bytes[near..].chunks_exact(LANES) {
        if chunk.iter().fold(false, |any, &byte| any | is_special(byte)) {
            break;
        }
        at += LANES;
    }
    bytes[at..].iter().position(|&byte| SPECIAL[usize::from(byte)]).map_or(bytes.len(), |found| at + found)
}

impl Seen {
    /// Adds what is seen of `bytes` to `text`; `input` is where they begin.
    pub fn feed(&mut self, bytes: &[u8], input: usize, text: &mut Text) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::Ground => {
                    let end = at + find_special(&bytes[at..]);
                    if end > at {
                        text.copy(&bytes[at..end], input + at);
                    }
                    match bytes.get(end) {
                        Some(&ESC) => end + self.escape(&bytes[end..], input + end, text),
                        Some(byte) => {
                            self.special(*byte, input + end, text);
                            end + 1
                        }
                        None => end,
                    }
                }
                State::Returned if bytes[at] == b'\r' => at + 1,
                State::Returned => {
                    self.state = State::Ground;
                    at + usize::from(bytes[at] == b'\n')
                }
                State::Lead => {
                    self.state = State::Ground;
                    match bytes[at] {
                        0x80..0xa0 => at + 1,
                        0xa0..0xc0 => {
                            // a character like any other
                            text.copy(&[0xc2], (input + at).saturating_sub(1));
                            at
                        }
                        // of nothing; kept, it could become a control with what comes later
                        _ => at,
                    }
                }
                State::String { osc } => match string_end(&bytes[at..], osc) {
                    Some(end) => {
                        self.state = if bytes[at + end] == ESC { State::Escape } else { State::Ground };
                        at + end + 1
                    }
                    None => bytes.len(),
                },
                _ => {
                    self.sequence(bytes[at], input + at, text);
                    at + 1
                }
            };
        }
    }

    /// As `feed`, without looking at what is seen: only where it leaves us. An ESC ends whatever was open, so that only what
    /// follows the last one matters.
    pub fn skip(&mut self, bytes: &[u8]) {
        let rest = match memrchr(ESC, bytes) {
            Some(at) => {
                self.state = State::Escape;
                &bytes[at + 1..]
            }
            None => bytes,
        };
        let mut text = Text::default();
        let mut at = 0;
        while at < rest.len() && !matches!(self.state, State::Ground | State::Returned | State::Lead) {
            if let State::String { osc } = self.state {
                let Some(end) = string_end(&rest[at..], osc) else { return };
                self.state = State::Ground;
                at += end + 1;
            } else {
                self.sequence(rest[at], 0, &mut text);
                at += 1;
            }
        }
        if at < rest.len() {
            // in plain text now, and there is no other sequence
            self.state = match rest[rest.len() - 1] {
                b'\r' => State::Returned,
                0xc2 => State::Lead,
                _ => State::Ground,
            };
        }
    }

    /// An ESC at the beginning of `bytes`; gives how many are dealt with. Most sequences are short and whole.
    #[inline]
    fn escape(&mut self, bytes: &[u8], input: usize, text: &mut Text) -> usize {
        if bytes.get(1) == Some(&b'[') {
            let near = &bytes[2..bytes.len().min(2 + SHORT)];
            if let Some(end) = near.iter().position(|byte| !(0x20..0x40).contains(byte))
                && (b'@'..=b'~').contains(&near[end])
            {
                // colours are most of all sequences
                if near[end] != b'm' {
                    let mut csi = Csi::default();
                    near[..end].iter().for_each(|byte| csi.take(*byte));
                    csi.next();
                    finish(&csi, near[end], input + 2 + end, text);
                }
                return 3 + end;
            }
        }
        self.state = State::Escape;
        1
    }

    fn special(&mut self, byte: u8, input: usize, text: &mut Text) {
        match byte {
            0xc2 => self.state = State::Lead,
            b'\r' if !text.is_at_line_start() => {
                text.break_line(input);
                self.state = State::Returned;
            }
            _ => control(byte, input, text),
        }
    }

    /// One byte inside an escape or control sequence.
    fn sequence(&mut self, byte: u8, input: usize, text: &mut Text) {
        match byte {
            ESC => self.state = State::Escape,
            CAN | SUB => self.state = State::Ground,
            // controls act at once, in the middle of the sequence, as on the real devices
            b'\n' => text.copy(b"\n", input),
            b'\t' => text.copy(b"\t", input),
            0..0x20 => control(byte, input, text),
            0x7f.. => {}
            _ => self.part(byte, input, text),
        }
    }

    fn part(&mut self, byte: u8, input: usize, text: &mut Text) {
        self.state = match (self.state, byte) {
            (State::Escape, b'[') => State::Csi(Csi::default()),
            (State::Escape, b']') => State::String { osc: true },
            (State::Escape, b'P' | b'_' | b'^' | b'X' | b'k') => State::String { osc: false },
            (State::Escape | State::Charset, 0x20..0x30) => State::Charset,
            (State::Escape, b'c' | b'D' | b'E' | b'M' | b'8') => {
                text.break_line(input);
                State::Ground
            }
            (State::Csi(mut csi), _) => {
                if byte >= b'@' {
                    csi.next();
                    finish(&csi, byte, input, text);
                    State::Ground
                } else {
                    csi.take(byte);
                    State::Csi(csi)
                }
            }
            _ => State::Ground,
        };
    }
}

/// Where a string stops: its terminator, the ESC of one, or an abort.
fn string_end(bytes: &[u8], osc: bool) -> Option<usize> {
    let end = memchr3(ESC, CAN, SUB, bytes);
    if osc { memchr(BEL, &bytes[..end.unwrap_or(bytes.len())]).or(end) } else { end }
}

fn control(byte: u8, input: usize, text: &mut Text) {
    match byte {
        0x08 => text.take_back(),
        b'\r' | 0x0b | 0x0c => text.break_line(input),
        _ => {}
    }
}

/// What is seen of a whole control sequence.
fn finish(csi: &Csi, last: u8, input: usize, text: &mut Text) {
    if csi.intermediate {
        return;
    }
    match last {
        b'h' | b'l' if csi.prefixed && csi.alternate => text.break_line(input),
        _ if csi.prefixed => {}
        // programs move forward over blanks instead of writing them
        b'C' | b'a' => text.fill(b" ", csi.count(), input),
        b'b' => {
            let last = text.bytes[text.last_char()].to_vec();
            if !last.is_empty() {
                text.fill(&last, csi.count(), input);
            }
        }
        b'A' | b'B' | b'D'..=b'J' | b'L' | b'M' | b'S' | b'T' | b'Z' | b'`' | b'd' | b'e' | b'f' | b'r' | b'u' => text.break_line(input),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(bytes: &[u8]) -> String {
        let mut text = Text::default();
        Seen::default().feed(bytes, 0, &mut text);
        String::from_utf8_lossy(&text.bytes).into_owned()
    }

    #[test]
    fn only_what_is_seen_is_left() {
        for (bytes, expected) in [
            (&b"plain\r\ntext\n"[..], "plain\ntext\n"),
            (b"a\x1b[1;31mb\x1b[0mc\x1b[Kd", "abcd"),
            (b"a\x1b[3Cb\x1b[Cc", "a   b c"),
            (b"10%\r20%\r\r\n\r\nend", "10%\n20%\n\nend"),
            (b"helo\x08lo\x08\x08\x08\x08p", "hp"),
            ("x\u{e9}\x08e\x08\x08\x08".as_bytes(), ""),
            (b"\n\x08a", "\na"),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq\nsixel\x1b\\c\x1b_apc\x1b\\", "abc"),
            (b"\x1b]0;never ends\x18a\x1b]0;nor this\x1b[31mb", "ab"),
            (b"one\x1b[5;1Htwo\x1b[2J\x1b[Hthree\x1b[?1049hfour\x1b[?25lfive", "one\ntwo\nthree\nfourfive"),
            (b"\x1b(Ba\x1b)0b\x0e\x0f\x00c\x7f", "abc"),
            ("a\u{9b}31mb\u{b7}".as_bytes(), "a31mb\u{b7}"),
            (b"-\x1b[4b|", "-----|"),
            (b"tab\there\x0bdown", "tab\there\ndown"),
            (b"a\x1b[3\n1mb", "a\nb"),
            (b"\x1b[>4;1m\x1b[?2004h\x1b[=1u\x1b[!pq", "q"),
            (b"\x1b[65535C", &" ".repeat(512)),
        ] {
            assert_eq!(seen(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn every_byte_tells_where_it_came_from() {
        let bytes = b"ab\x1b[31mcd\x1b[2Ce\x08f\r\ng";
        let mut text = Text::default();
        Seen::default().feed(bytes, 100, &mut text);
        assert_eq!(text.bytes, b"abcd  f\ng");
        let from: Vec<usize> = (0..text.bytes.len()).map(|at| text.input_of(at) - 100).collect();
        assert_eq!(from, [0, 1, 7, 8, 12, 12, 15, 16, 18]);
    }

    /// Bytes that are mostly sequences, whole and broken.
    fn noise() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            "[a-c\u{e9}\u{4e16}\u{85} ]{0,4}".prop_map(String::into_bytes),
            prop::sample::select(vec![
                &b"\x1b["[..],
                b"\x1b[3",
                b";",
                b"m",
                b"C",
                b"H",
                b"\x1b]",
                b"\x07",
                b"\x1b\\",
                b"\x1bP",
                b"\x1b",
                b"\r",
                b"\n",
                b"\r\n",
                b"\x08",
                b"\xc2",
                b"\x9b",
                b"\x18",
                b"b",
                b"?1049h"
            ])
            .prop_map(<[u8]>::to_vec),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn however_it_is_cut_it_is_the_same(bytes in noise(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut whole = Text::default();
            let mut end = Seen::default();
            end.feed(&bytes, 0, &mut whole);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let (mut parts, mut seen) = (Text::default(), Seen::default());
            for pair in cuts.windows(2) {
                seen.feed(&bytes[pair[0]..pair[1]], pair[0], &mut parts);
            }
            prop_assert_eq!(&parts.bytes, &whole.bytes);
            prop_assert_eq!(&seen, &end);
            for at in 0..whole.bytes.len() {
                prop_assert_eq!(parts.input_of(at), whole.input_of(at));
                prop_assert!(at == 0 || whole.input_of(at - 1) <= whole.input_of(at));
            }
        }

        #[test]
        fn nothing_seen_can_act(bytes in noise()) {
            let text = seen(&bytes);
            prop_assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{:?}", text);
        }

        #[test]
        fn skipping_leads_where_reading_does(bytes in noise()) {
            let (mut read, mut skipped) = (Seen::default(), Seen::default());
            read.feed(&bytes, 0, &mut Text::default());
            skipped.skip(&bytes);
            let plain = |state: State| if matches!(state, State::Returned | State::Lead) { State::Ground } else { state };
            prop_assert_eq!(plain(read.state), plain(skipped.state));
        }
    }
}
