//! The filter before the person's own terminal: all bytes unchanged, but a program cannot ask for the
//! person's clipboard (OSC 52 with `?`), in none of the spellings that terminals accept.
//! It must hold back only bytes that could still become that question.

use memchr::{memchr2, memchr3};

/// More than any honest question has before its `?`; what goes on longer is swallowed.
const LONGEST: usize = 64;
const ESC: u8 = 0x1b;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Ground,
    /// After ESC, or after the first byte of U+009D.
    Begun(u8),
    Number(u16),
    Selection,
    Data,
    Question,
    /// A question that ended with ESC: a `\` would belong to it.
    Removed,
    /// Inside something too long to be honest.
    Swallowing,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passthrough {
    state: State,
    held: Vec<u8>,
}

enum Step {
    /// Hold the byte and go on.
    Hold(State),
    /// What is held is something else: pass it on and look at the byte again.
    Release,
    /// Drop what is held, and the byte.
    Remove(State),
    /// Drop what is held and look at the byte again.
    RemoveBefore(State),
}

impl Passthrough {
    pub fn new() -> Passthrough {
        Passthrough::default()
    }

    /// Bytes not yet passed on because they may be the start of a question.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Appends to `out` what the terminal may see.
    pub fn filter(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            match self.state {
                State::Ground => {
                    let start = find_start(rest);
                    out.extend_from_slice(&rest[..start]);
                    rest = &rest[start..];
                    if let Some((&first, tail)) = rest.split_first() {
                        self.held.push(first);
                        self.state = State::Begun(first);
                        rest = tail;
                    }
                    continue;
                }
                State::Swallowing => {
                    let end = memchr3(0x07, 0x18, ESC, rest).unwrap_or(rest.len());
                    rest = &rest[end..];
                    if let Some((&last, tail)) = rest.split_first() {
                        rest = tail;
                        self.state = if last == ESC { State::Removed } else { State::Ground };
                    }
                    continue;
                }
                _ => {}
            }
            let step = if self.held.len() >= LONGEST { Step::RemoveBefore(State::Swallowing) } else { step(self.state, byte) };
            match step {
                Step::Hold(state) => {
                    self.held.push(byte);
                    self.state = state;
                    rest = &rest[1..];
                }
                Step::Release => {
                    out.append(&mut self.held);
                    self.state = State::Ground;
                }
                Step::Remove(state) => {
                    self.held.clear();
                    self.state = state;
                    rest = &rest[1..];
                }
                Step::RemoveBefore(state) => {
                    self.held.clear();
                    self.state = state;
                    // The ESC that ended the question was kept out; it may begin something.
                    if state == State::Begun(ESC) {
                        self.held.push(ESC);
                    }
                }
            }
        }
    }
}

fn step(state: State, byte: u8) -> Step {
    // Terminals leave out controls inside strings, so they cannot tell a question from a harmless string.
    let ignored = (byte < 0x20 && !ends_string(byte)) || byte == 0x7f;
    match (state, byte) {
        (State::Begun(ESC), b']') | (State::Begun(0xc2), 0x9d) => Step::Hold(State::Number(0)),
        (State::Removed, b'\\') => Step::Remove(State::Ground),
        (State::Removed, _) => Step::RemoveBefore(State::Begun(ESC)),
        (State::Begun(0xc2), _) => Step::Release,
        (state, _) if ignored => Step::Hold(state),
        (State::Number(number), b'0'..=b'9') => {
            let digit = u16::from(byte - b'0');
            Step::Hold(State::Number(number.saturating_mul(10).saturating_add(digit)))
        }
        (State::Number(52), b';') => Step::Hold(State::Selection),
        (State::Selection, b';') => Step::Hold(State::Data),
        (State::Selection, _) if !ends_string(byte) => Step::Hold(State::Selection),
        (State::Data, b'?') => Step::Hold(State::Question),
        (State::Question, ESC) => Step::Remove(State::Removed),
        // The last one is the first byte of U+009C, which ends strings in xterm.
        (State::Question, 0x07 | 0x18 | 0x1a | 0xc2) => Step::Remove(State::Ground),
        _ => Step::Release,
    }
}

fn ends_string(byte: u8) -> bool {
    matches!(byte, 0x07 | 0x18 | 0x1a | ESC)
}

/// The first place where a string could begin: an ESC or U+009D, unless what follows tells otherwise.
fn find_start(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(ESC, 0xc2, &bytes[at..]) {
        at += found;
        match (bytes[at], bytes.get(at + 1)) {
            (_, None) | (0xc2, Some(0x9d)) => return at,
            (ESC, Some(&next)) if next == b']' || next < 0x20 || next == 0x7f => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(chunks: &[&[u8]]) -> Vec<u8> {
        let mut filter = Passthrough::new();
        let mut out = Vec::new();
        for chunk in chunks {
            filter.filter(chunk, &mut out);
        }
        out.extend_from_slice(filter.held());
        out
    }

    #[test]
    fn only_clipboard_questions_are_removed() {
        let endless = [b"a\x1b]52;", vec![b'c'; 100].as_slice(), b";?\x07b"].concat();
        for (bytes, expected) in [
            (&b"a\x1b]52;c;?\x07b"[..], &b"ab"[..]),
            (b"a\x1b]52;;?\x1b\\b\x1b]52;pc;?\x07", b"ab"),
            (b"\x1b]52;c;aGk=\x07x", b"\x1b]52;c;aGk=\x07x"),
            (b"\x1b]52;c;?x\x07\x1b[1m\x1b", b"\x1b]52;c;?x\x07\x1b[1m\x1b"),
            (b"\x1b]5\x1b]52;c;?\x07z", b"\x1b]5z"),
            (b"\x1b\x1b]52;c;?\x07z", b"\x1bz"),
            (b"plain \xff\xfe text \xc2\xb7", b"plain \xff\xfe text \xc2\xb7"),
            // Other spellings of the same question.
            (b"a\x1b]052;c;?\x07b", b"ab"),
            (b"a\x1b]5\x002;c\x7f;?\x00\x07b", b"ab"),
            (b"a\x1b\x00]52;c;?\x07b", b"ab"),
            (b"a\xc2\x9d52;c;?\x07b", b"ab"),
            (b"a\x1b]52;c;?\x1b[1mb", b"a\x1b[1mb"),
            (b"a\x1b]52;c;?\x1b\x1b]52;c;?\x18b", b"a\x1bb"),
            (&endless, b"ab"),
            (b"\x1b]52;c\x07x\x1b]520;c;?\x07", b"\x1b]52;c\x07x\x1b]520;c;?\x07"),
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(filtered(&[bytes]), expected, "{shown:?}");
            for cut in 0..bytes.len() {
                assert_eq!(filtered(&[&bytes[..cut], &bytes[cut..]]), expected, "{shown:?} at {cut}");
            }
            assert_eq!(filtered(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        }
    }
}
