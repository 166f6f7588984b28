//! Cuts terminal output into tokens: text runs, controls, escape sequences and strings.
//! Incremental and bounded; it must not interpret what a token means.

pub use super::csi::{Csi, number};
use super::scan::{find_special, split_tail, string_end, whole_csi, whole_string};

/// A longer string (picture, clipboard) is swallowed to its end but not kept.
pub const STRING_CAP: usize = 64 * 1024;
/// No real control sequence comes near this; a longer one is swallowed.
pub(super) const SEQUENCE_CAP: usize = 512;

pub(super) const ESC: u8 = 0x1b;
pub(super) const BEL: u8 = 0x07;

/// The strings that are not OSC. `Title` is `ESC k … ST`, which screen and tmux programs send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StringKind {
    Dcs,
    Apc,
    Pm,
    Sos,
    Title,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// Text with the layout controls BS, HT, LF, VT, FF and CR in it. May hold invalid UTF-8, but never
    /// ends inside a character that could still be completed.
    Text(&'a [u8]),
    /// Any other C0 control, or DEL.
    Control(u8),
    Escape {
        intermediates: &'a [u8],
        last: u8,
    },
    Csi(Csi<'a>),
    Osc(&'a [u8]),
    String {
        kind: StringKind,
        payload: &'a [u8],
    },
    /// Something too long to keep, or malformed; already swallowed.
    Skipped,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ground,
    Utf8,
    Escape,
    Csi,
    CsiIgnored,
    String { osc: bool, overflow: bool },
    StringEscape { osc: bool, overflow: bool },
}

/// Remembers an unfinished sequence between two slices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tokenizer {
    state: State,
    held: Vec<u8>,
    /// Bytes fed since the unfinished sequence began; more than `held` when something was dropped.
    age: usize,
}

impl Default for Tokenizer {
    fn default() -> Self {
        Tokenizer::new()
    }
}

impl Tokenizer {
    pub const fn new() -> Tokenizer {
        Tokenizer { state: State::Ground, held: Vec::new(), age: 0 }
    }

    /// The unfinished bytes, or a short form that swallows the same rest.
    pub fn pending(&self) -> Vec<u8> {
        match self.state {
            State::CsiIgnored => b"\x1b[0?".to_vec(),
            State::String { osc, overflow: true } => introducer(osc).to_vec(),
            State::StringEscape { osc, overflow: true } => [introducer(osc), b"\x1b"].concat(),
            _ => self.held.clone(),
        }
    }

    /// Whether it is inside a string that is no longer kept.
    pub fn is_overlong(&self) -> bool {
        matches!(self.state, State::String { overflow: true, .. } | State::StringEscape { overflow: true, .. })
    }

    /// Calls `sink` with each finished token and its byte range in `bytes`; a range starts below 0
    /// when the token began in an earlier slice.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Token<'_>, isize, usize)) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::Ground => {
                    let mut at = at;
                    while at < bytes.len() && self.state == State::Ground {
                        at = self.ground(bytes, at, &mut sink);
                    }
                    at
                }
                State::Utf8 => self.utf8(bytes, at, &mut sink),
                State::Escape | State::Csi | State::CsiIgnored => self.sequence(bytes, at, &mut sink),
                State::String { osc, overflow } => self.string(bytes, at, osc, overflow, &mut sink),
                State::StringEscape { osc, overflow } => self.string_escape(bytes, at, osc, overflow, &mut sink),
            };
        }
    }

    #[inline]
    fn ground(&mut self, bytes: &[u8], at: usize, sink: &mut impl FnMut(Token<'_>, isize, usize)) -> usize {
        let end = at + find_special(&bytes[at..]);
        if end > at {
            let tail = if end == bytes.len() { split_tail(&bytes[at..end]) } else { 0 };
            if end - tail > at {
                sink(Token::Text(&bytes[at..end - tail]), at.cast_signed(), end - tail);
            }
            if tail > 0 {
                self.hold(State::Utf8, &bytes[end - tail..]);
            }
            return end;
        }
        let byte = bytes[at];
        if byte != ESC {
            sink(Token::Control(byte), at.cast_signed(), at + 1);
            return at + 1;
        }
        if let Some((csi, length)) = whole_csi(&bytes[at..]) {
            sink(Token::Csi(csi), at.cast_signed(), at + length);
            return at + length;
        }
        if let Some((length, osc)) = whole_string(&bytes[at..]) {
            sink(string_token(&bytes[at..at + length], osc), at.cast_signed(), at + length);
            return at + length;
        }
        self.hold(State::Escape, &bytes[at..=at]);
        at + 1
    }

    fn hold(&mut self, state: State, bytes: &[u8]) {
        self.state = state;
        self.held.clear();
        self.held.extend_from_slice(bytes);
        self.age = bytes.len();
    }

    fn reset(&mut self) {
        self.state = State::Ground;
        self.held.clear();
        // One huge string must not cost its memory for ever.
        self.held.shrink_to(4096);
        self.age = 0;
    }

    /// Hands over the token made of the held bytes.
    fn finish(&mut self, end: usize, sink: &mut impl FnMut(Token<'_>, isize, usize), token: impl FnOnce(&[u8]) -> Token<'_>) -> usize {
        let start = end.cast_signed() - self.age.cast_signed();
        sink(token(&self.held), start, end);
        self.reset();
        end
    }

    fn utf8(&mut self, bytes: &[u8], at: usize, sink: &mut impl FnMut(Token<'_>, isize, usize)) -> usize {
        let mut longer = self.held.clone();
        longer.push(bytes[at]);
        match std::str::from_utf8(&longer) {
            Ok(_) => {
                self.held = longer;
                self.age += 1;
                self.finish(at + 1, sink, |held| Token::Text(held))
            }
            Err(error) if error.error_len().is_none() => {
                self.held = longer;
                self.age += 1;
                at + 1
            }
            // The byte does not belong to the character: what is held stays invalid on its own.
            Err(_) => self.finish(at, sink, |held| Token::Text(held)),
        }
    }

    /// One byte of an escape or control sequence.
    fn sequence(&mut self, bytes: &[u8], at: usize, sink: &mut impl FnMut(Token<'_>, isize, usize)) -> usize {
        let byte = bytes[at];
        match byte {
            ESC => {
                self.hold(State::Escape, &[ESC]);
                return at + 1;
            }
            0x18 | 0x1a => {
                self.reset();
                return at + 1;
            }
            // Controls act at once, in the middle of the sequence, as on the real devices.
            0x00..=0x1f => {
                self.age += 1;
                if matches!(byte, 8..=13) {
                    sink(Token::Text(&[byte]), at.cast_signed(), at + 1);
                } else {
                    sink(Token::Control(byte), at.cast_signed(), at + 1);
                }
                return at + 1;
            }
            0x7f..=0xff => {
                self.age += 1;
                return at + 1;
            }
            _ => {}
        }
        self.age += 1;
        if self.state == State::CsiIgnored {
            return if byte >= b'@' { self.finish(at + 1, sink, |_| Token::Skipped) } else { at + 1 };
        }
        self.held.push(byte);
        if self.state == State::Csi {
            let misplaced_prefix = (b'<'..=b'?').contains(&byte) && self.held.len() > 3;
            let late_parameter = (b'0'..=b'?').contains(&byte)
                && self.held[..self.held.len() - 1].last().is_some_and(|&before| (0x20..0x30).contains(&before));
            if byte >= b'@' {
                return self.finish(at + 1, sink, |held| Token::Csi(Csi::parse(held)));
            }
            if misplaced_prefix || late_parameter || self.held.len() > SEQUENCE_CAP {
                self.state = State::CsiIgnored;
            }
            return at + 1;
        }
        let first = self.held.len() == 2;
        match byte {
            b'[' if first => self.state = State::Csi,
            b']' | b'P' | b'_' | b'^' | b'X' | b'k' if first => {
                self.state = State::String { osc: byte == b']', overflow: false };
            }
            0x20..=0x2f if self.held.len() < SEQUENCE_CAP => {}
            0x20..=0x2f => {
                self.held.pop();
            }
            _ => {
                return self.finish(at + 1, sink, |held| Token::Escape { intermediates: &held[1..held.len() - 1], last: byte });
            }
        }
        at + 1
    }

    fn string(&mut self, bytes: &[u8], at: usize, osc: bool, overflow: bool, sink: &mut impl FnMut(Token<'_>, isize, usize)) -> usize {
        let rest = &bytes[at..];
        let length = string_end(rest, osc).unwrap_or(rest.len());
        self.age += length;
        let mut overflow = overflow;
        if !overflow && self.held.len() + length > STRING_CAP {
            overflow = true;
            self.held = Vec::new();
        }
        if !overflow {
            self.held.extend_from_slice(&rest[..length]);
        }
        self.state = State::String { osc, overflow };
        match rest.get(length) {
            None => bytes.len(),
            Some(&ESC) => {
                self.age += 1;
                if !overflow {
                    self.held.push(ESC);
                }
                self.state = State::StringEscape { osc, overflow };
                at + length + 1
            }
            Some(&BEL) => {
                self.age += 1;
                if overflow {
                    return self.finish(at + length + 1, sink, |_| Token::Skipped);
                }
                self.held.push(BEL);
                self.finish(at + length + 1, sink, |held| string_token(held, osc))
            }
            Some(_) => {
                self.age += 1;
                self.finish(at + length + 1, sink, |_| Token::Skipped)
            }
        }
    }

    fn string_escape(
        &mut self,
        bytes: &[u8],
        at: usize,
        osc: bool,
        overflow: bool,
        sink: &mut impl FnMut(Token<'_>, isize, usize),
    ) -> usize {
        if bytes[at] == b'\\' {
            self.age += 1;
            if overflow {
                return self.finish(at + 1, sink, |_| Token::Skipped);
            }
            self.held.push(b'\\');
            return self.finish(at + 1, sink, |held| string_token(held, osc));
        }
        // Not a terminator: the string is given up and the escape begins something new.
        self.finish(at, sink, |_| Token::Skipped);
        self.hold(State::Escape, &[ESC]);
        at
    }
}

/// Swallows what an overlong string would have swallowed; the `x` keeps a rest that begins like a
/// real command from being taken for one.
fn introducer(osc: bool) -> &'static [u8] {
    if osc { b"\x1b]x" } else { b"\x1b_" }
}

fn string_token(sequence: &[u8], osc: bool) -> Token<'_> {
    let end = sequence.len() - if sequence.ends_with(b"\\") { 2 } else { 1 };
    let payload = &sequence[2..end];
    if osc {
        return Token::Osc(payload);
    }
    let kind = match sequence[1] {
        b'P' => StringKind::Dcs,
        b'_' => StringKind::Apc,
        b'^' => StringKind::Pm,
        b'X' => StringKind::Sos,
        _ => StringKind::Title,
    };
    Token::String { kind, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(chunks: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
        let mut tokenizer = Tokenizer::new();
        let mut seen: Vec<String> = Vec::new();
        for chunk in chunks {
            tokenizer.feed(chunk, |token, _, _| match token {
                Token::Text(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    match seen.last_mut() {
                        Some(last) if last.starts_with("T:") => last.push_str(&text),
                        _ => seen.push(format!("T:{text}")),
                    }
                }
                other => seen.push(format!("{other:?}")),
            });
        }
        (seen, tokenizer.pending())
    }

    #[test]
    fn every_split_gives_the_same_tokens() {
        let long = [b"\x1b_".as_slice(), &vec![b'a'; 70_000], b"\x1b\\z"].concat();
        let samples: [&[u8]; 8] = [
            "plain \u{e9}\u{4e2d}\u{1f600}\r\nmore".as_bytes(),
            b"\x1b[1;38:2::1:2:3m\x1b[?25l\x1b[3\x08C\x1b[ q\x1b[!p\x1b[1?2m",
            b"\x1b]0;a;b\x07\x1b]2;x\x1b\\\x1bPq..\x1b\\\x1bktitle\x1b\\",
            b"\x1b]0;lost\x18ok\x1b]0;lost\x1b[mx\x1b(0q\x1b)B",
            b"\xff\xe4\xb8x\xe4\xb8\xad\xf0\x9f\x98",
            b"\x1b[12\xc3\x7f3H\x07\x0e\x0f\x00",
            b"\x1b[\x1b[31m\x1b\x1b7\x1b \x1bF",
            &long,
        ];
        for sample in samples {
            let whole = tokens(&[sample]);
            let step = (sample.len() / 97).max(1);
            for cut in (0..sample.len()).step_by(step) {
                assert_eq!(tokens(&[&sample[..cut], &sample[cut..]]), whole, "cut {cut}");
            }
            let bytes: Vec<&[u8]> = sample.chunks(1).collect();
            assert_eq!(tokens(&bytes), whole);
        }
    }

    #[test]
    fn an_overlong_string_is_pending_as_a_short_one() {
        let mut tokenizer = Tokenizer::new();
        tokenizer.feed(b"\x1b]52;c;", |_, _, _| {});
        tokenizer.feed(&vec![b'A'; STRING_CAP + 1], |_, _, _| {});
        assert_eq!(tokenizer.pending(), b"\x1b]x");
    }

    #[test]
    fn ranges_reach_back_into_earlier_slices() {
        let mut tokenizer = Tokenizer::new();
        let mut ranges = Vec::new();
        for chunk in [b"ab\x1b]0;t".as_slice(), b"it\x07cd"] {
            tokenizer.feed(chunk, |token, start, end| {
                if matches!(token, Token::Osc(_)) {
                    ranges.push((start, end));
                }
            });
        }
        assert_eq!(ranges, [(-5, 3)]);
    }
}
