//! Passes over raw bytes at memory speed and names the places where a literal could be seen; never misses one.
//!
//! What is seen is what was printed with things left out: sequences (all begin with ESC), other controls, and characters
//! that were taken back by BS. So wherever the literal was seen, each byte of it is followed in the raw bytes by the next one,
//! or by a control; or there is a BS in the line.

use std::cell::Cell;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memrchr2};

use super::line::LONG;

const ESC: u8 = 0x1b;
const BS: u8 = 0x08;

/// Looked at in one way: as a piece without any control, or byte by byte.
const PIECE: usize = 32 << 10;

pub struct Sieve {
    /// The literal, in lower case where case does not matter.
    needle: Vec<u8>,
    /// Index in it of the byte that is looked for.
    anchor: usize,
    fold: bool,
    /// The whole literal: what it is where no control is near.
    whole: Finder<'static>,
}

/// A pass over one slice.
pub struct Pass<'s> {
    sieve: &'s Sieve,
    raw: &'s [u8],
    /// The next BS behind what has been passed over.
    taken_back: Cell<Option<usize>>,
    /// The number of the piece that was looked at last, and whether it is plain.
    plain: Cell<Option<(usize, bool)>>,
}

impl Sieve {
    pub fn exact(needle: &[u8]) -> Option<Self> {
        Self::new(needle.to_vec(), false)
    }

    /// Letters beyond ASCII have more than one other case: for those there is none.
    pub fn without_case(needle: &[u8]) -> Option<Self> {
        needle.is_ascii().then(|| Self::new(needle.to_ascii_lowercase(), true))?
    }

    fn new(needle: Vec<u8>, fold: bool) -> Option<Self> {
        // a blank may be a movement of the cursor, and k and s are also written as U+212A and U+017F
        let is_doubtful = |byte: u8| matches!(byte, b' ' | b'\t') || fold && matches!(byte, b'k' | b's');
        let anchor = (0..needle.len()).filter(|at| !is_doubtful(needle[*at])).min_by_key(|at| {
            // together with the byte after it, which is looked at next
            let next = needle.get(at + 1).map_or(400, |byte| commonness(*byte));
            2 * commonness(needle[*at]) + next
        })?;
        let whole = Finder::new(&needle).into_owned();
        Some(Self { needle, anchor, fold, whole })
    }

    pub fn pass<'s>(&'s self, raw: &'s [u8]) -> Pass<'s> {
        Pass { sieve: self, raw, taken_back: Cell::new(memchr(BS, raw)), plain: Cell::new(None) }
    }

    fn is_same(&self, raw: u8, wanted: u8) -> bool {
        raw == wanted || self.fold && raw.to_ascii_lowercase() == wanted
    }

    /// Something that may be left out, or be another way to write a letter.
    fn is_odd(&self, byte: u8) -> bool {
        is_control(byte) || self.fold && byte >= 0x80
    }

    /// Whether the literal could be seen with its anchor at `at`.
    fn could_be(&self, raw: &[u8], at: usize) -> bool {
        for (byte, wanted) in raw[at..].iter().zip(&self.needle[self.anchor..]).skip(1) {
            if !self.is_same(*byte, *wanted) {
                if !self.is_odd(*byte) {
                    return false;
                }
                break;
            }
        }
        for (back, wanted) in self.needle[..self.anchor].iter().rev().enumerate() {
            let Some(before) = (at - back).checked_sub(1) else { return true };
            if !self.is_same(raw[before], *wanted) {
                // not the byte before it: unless that is the end of a sequence
                return self.is_odd(raw[before]) || ends_c1(raw, before) || may_end_sequence(raw, before);
            }
        }
        true
    }
}

/// Controls that may be left out; LF and CR end a line, HT is seen.
#[expect(clippy::needless_bitwise_bool, reason = "branches would keep loops over it from becoming vector code")]
fn is_control(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r') | (byte == 0x7f) | (byte == 0xc2)
}

/// The second byte of a C1 control as UTF-8 writes it: the first is known as one, the second is not by itself.
fn ends_c1(raw: &[u8], at: usize) -> bool {
    (0x80..=0x9f).contains(&raw[at]) && at > 0 && raw[at - 1] == 0xc2
}

fn has_control(bytes: &[u8]) -> bool {
    // in steps that become vector code, and end early where there are many
    bytes.chunks(256).any(|chunk| chunk.iter().fold(false, |any, &byte| any | is_control(byte)))
}

/// Whether the byte at `at`, which is no control, may be the last one of a sequence that began in its line.
fn may_end_sequence(raw: &[u8], at: usize) -> bool {
    let near = at.saturating_sub(LONG);
    let Some(begin) = memrchr2(b'\n', ESC, &raw[near..at]).map(|begin| near + begin) else { return true };
    if raw[begin] == b'\n' {
        return false;
    }
    let ends = |first: usize, is_last: fn(&u8) -> bool| raw[first..=at].iter().position(is_last).is_none_or(|end| first + end == at);
    match raw[begin + 1] {
        b'[' => at == begin + 1 || ends(begin + 2, |byte| (b'@'..=b'~').contains(byte)),
        b']' | b'P' | b'_' | b'^' | b'X' | b'k' => true,
        _ => ends(begin + 1, |byte| (b'0'..=b'~').contains(byte)),
    }
}

impl Pass<'_> {
    /// The first place from `from` on, before `until`, where the literal could be seen, or where its line could hide it.
    pub fn next(&self, from: usize, until: usize) -> Option<usize> {
        let taken_back = self.next_taken_back(from, until);
        let until = taken_back.unwrap_or(until);
        let mut from = from;
        while from < until {
            let end = until.min((from / PIECE + 1) * PIECE);
            if let Some(found) = self.next_in_piece(from, end) {
                return Some(found);
            }
            from = end;
        }
        taken_back
    }

    fn next_in_piece(&self, from: usize, until: usize) -> Option<usize> {
        if !self.sieve.fold && self.is_plain(from / PIECE) {
            // a match is the literal as it is; one that began before is not passed over either
            let length = self.sieve.needle.len();
            let (begin, far) = ((from + 1).saturating_sub(length), self.raw.len().min(until + length));
            return self.sieve.whole.find(&self.raw[begin..far]).map(|at| from.max(begin + at)).filter(|at| *at < until);
        }
        let anchor = self.sieve.needle[self.sieve.anchor];
        let other = if self.sieve.fold { anchor.to_ascii_uppercase() } else { anchor };
        let mut at = from;
        while at < until {
            let rest = &self.raw[at..until];
            let found = if anchor == other { memchr(anchor, rest) } else { memchr2(anchor, other, rest) };
            let Some(found) = found else { break };
            at += found;
            if self.sieve.could_be(self.raw, at) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// Whether no control is in this piece, nor so near that a match could reach both. Remembered: there may be many matches in it.
    fn is_plain(&self, number: usize) -> bool {
        if let Some((known, is_plain)) = self.plain.get()
            && known == number
        {
            return is_plain;
        }
        let length = self.sieve.needle.len();
        let (begin, end) = ((number * PIECE).saturating_sub(length), self.raw.len().min((number + 1) * PIECE + length));
        let is_plain = !has_control(&self.raw[begin..end]);
        self.plain.set(Some((number, is_plain)));
        is_plain
    }

    fn next_taken_back(&self, from: usize, until: usize) -> Option<usize> {
        if self.taken_back.get().is_some_and(|at| at < from) {
            self.taken_back.set(memchr(BS, &self.raw[from..]).map(|at| from + at));
        }
        self.taken_back.get().filter(|at| *at < until)
    }
}

/// How often a byte is met in what programs print, roughly: logs and code in English, numbers, colours.
fn commonness(byte: u8) -> u32 {
    match byte {
        b' ' | b'\t' => 255,
        b'e' | b't' | b'0' | b'1' => 200,
        b'a' | b'i' | b'n' | b'o' | b'r' | b's' | b'2' | b'3' => 170,
        b'c' | b'd' | b'l' | b'm' | b'u' | b'4'..=b'9' | b';' | b'[' => 130,
        b'f' | b'g' | b'h' | b'p' | b'.' | b'-' | b':' | b'/' => 100,
        b'b' | b'k' | b'v' | b'w' | b'x' | b'y' | b'_' | b'=' | b',' | b'"' | b']' => 60,
        b'A'..=b'I' | b'L'..=b'P' | b'R'..=b'W' => 50,
        0x80.. => 60,
        _ => 25,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shared::seen::{Seen, Text};

    #[test]
    fn only_places_that_could_be_are_named() {
        let sieve = Sieve::exact(b"needle").expect("has one");
        let places = |raw: &[u8]| {
            let pass = sieve.pass(raw);
            let (mut at, mut found) = (0, 0);
            while let Some(place) = pass.next(at, raw.len()) {
                found += 1;
                at = place + "needle".len();
            }
            found
        };
        assert_eq!(places(b"\na noodle, a needless word, nee dle, handle\n"), 1);
        assert_eq!(places(b"\nnee\x1b[31mdle nee\x1b[1mdoodle \n"), 1);
        assert_eq!(places("\nnee\u{85}dle \u{85}nXedle\n".as_bytes()), 1, "a control of two bytes before the anchor");
        assert!(places(b"\x1b[31mneXX\x08\x08edle \x1b[0m") > 0, "characters were taken back");
        assert!(Sieve::exact(b"   ").is_none());
    }

    proptest! {
        /// Whatever is seen in a line is named in it.
        #[test]
        fn nothing_is_missed(pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "b", "ab", "c", "K", "\u{212a}", "k", " ", "\x1b[31m", "\x1b[2C", "\x1b]0;t\x07", "\x08", "\r", "\n", "\x0e", "\u{85}", "\u{e9}", "\x1b]8;;x\x1b\\", "\x1b(B", "\x1b[3", "\x18", "m", "\x1bM", "zzzz",
        ]), 0..40), fold in any::<bool>(), needle in prop::sample::select(vec!["ab", "a", "aab", "a b", "ck", "b\u{e9}", "bab"])) {
            let raw = pieces.concat().into_bytes();
            let sieve = if fold { Sieve::without_case(needle.as_bytes()) } else { Sieve::exact(needle.as_bytes()) };
            let Some(sieve) = sieve else { return Ok(()) };
            let pattern = shared::search::Pattern { text: needle.into(), regex: false, ignore_case: fold };
            let Ok(pattern) = super::super::Pattern::new(&pattern) else { panic!("fine") };
            let mut seen = Seen::default();
            let mut start = 0;
            for line in raw.split_inclusive(|byte| *byte == b'\n') {
                let mut text = Text::default();
                seen.feed(line, 0, &mut text);
                let mut is_there = false;
                pattern.lines_in(&text.bytes, |_| is_there = true);
                if is_there {
                    prop_assert!(sieve.pass(&raw).next(start, start + line.len()).is_some(), "{:?} in {:?}", needle, String::from_utf8_lossy(&raw));
                }
                start += line.len();
            }
        }
    }
}
