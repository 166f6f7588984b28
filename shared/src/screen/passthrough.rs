//! Filters program output on its way to the user's own terminal: passes every byte unchanged, except queries for the
//! contents of the clipboard (OSC 52 with `?`, and reads of kitty's OSC 5522), in every spelling that terminals accept.
//! It must hold back only bytes that could still become such a query.

use memchr::memchr3_iter;

/// More than any honest query has before its `?`; a longer one is swallowed.
const LONGEST: usize = 64;
/// Metadata of OSC 5522 (type, MIME type, id, password, name), which comes before the payload; longer ones are swallowed.
const LONGEST_METADATA: usize = 1024;
const ESC: u8 = 0x1b;
/// OSC as a single byte, for terminals in 8-bit mode.
const OSC: u8 = 0x9d;
/// ST as a single byte.
const ST: u8 = 0x9c;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Ground,
    /// After ESC, or after the first byte of U+009D.
    Begun(u8),
    Number(u16),
    Selection,
    Data,
    /// In the `key=value:…` part of OSC 5522.
    Metadata,
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
    /// The last bytes of the slice before: they tell whether a byte like 0x9d continues a character.
    recent: [u8; 3],
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
        let before = self.recent;
        while let Some(&byte) = rest.first() {
            match self.state {
                State::Ground => {
                    let start = find_start(before, bytes, bytes.len() - rest.len()) - (bytes.len() - rest.len());
                    out.extend_from_slice(&rest[..start]);
                    rest = &rest[start..];
                    if let Some((&first, tail)) = rest.split_first() {
                        self.held.push(first);
                        self.state = if first == OSC { State::Number(0) } else { State::Begun(first) };
                        rest = tail;
                    }
                    continue;
                }
                State::Swallowing => {
                    // ST ends it also as U+009C; ending too early only shows harmless text
                    let end = rest.iter().position(|&byte| ends_string(byte) || byte == ST).unwrap_or(rest.len());
                    rest = &rest[end..];
                    if let Some((&last, tail)) = rest.split_first() {
                        rest = tail;
                        self.state = if last == ESC { State::Removed } else { State::Ground };
                    }
                    continue;
                }
                _ => {}
            }
            let longest = if self.state == State::Metadata { LONGEST_METADATA } else { LONGEST };
            let step = match self.state {
                _ if self.held.len() >= longest => Step::RemoveBefore(State::Swallowing),
                State::Metadata if is_control_in_string(byte) => Step::Hold(State::Metadata),
                // what is no write is taken for a read: terminals may learn more types
                State::Metadata if byte == b';' || ends_string(byte) || matches!(byte, ST | 0xc2) => {
                    if is_clipboard_write(&self.held) {
                        Step::Release
                    } else {
                        Step::RemoveBefore(State::Swallowing)
                    }
                }
                state => step(state, byte),
            };
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
        for &byte in &bytes[bytes.len().saturating_sub(self.recent.len())..] {
            self.recent = [self.recent[1], self.recent[2], byte];
        }
    }
}

fn step(state: State, byte: u8) -> Step {
    // Terminals leave out controls inside strings, so they cannot tell a question from a harmless string.
    let ignored = is_control_in_string(byte);
    match (state, byte) {
        (State::Begun(ESC), b']') | (State::Begun(0xc2), OSC) => Step::Hold(State::Number(0)),
        (State::Removed, b'\\') => Step::Remove(State::Ground),
        (State::Removed, _) => Step::RemoveBefore(State::Begun(ESC)),
        (State::Begun(0xc2), _) => Step::Release,
        (state, _) if ignored => Step::Hold(state),
        (State::Number(number), b'0'..=b'9') => {
            let digit = u16::from(byte - b'0');
            Step::Hold(State::Number(number.saturating_mul(10).saturating_add(digit)))
        }
        (State::Number(52), b';') => Step::Hold(State::Selection),
        (State::Number(5522), b';') => Step::Hold(State::Metadata),
        (State::Selection, b';') => Step::Hold(State::Data),
        (State::Selection, _) if !ends_string(byte) => Step::Hold(State::Selection),
        (State::Metadata, _) => Step::Hold(State::Metadata),
        (State::Data, b'?') => Step::Hold(State::Question),
        (State::Question, ESC) => Step::Remove(State::Removed),
        // The last one is the first byte of U+009C, which ends strings in xterm.
        (State::Question, 0x07 | 0x18 | 0x1a | ST | 0xc2) => Step::Remove(State::Ground),
        _ => Step::Release,
    }
}

fn ends_string(byte: u8) -> bool {
    matches!(byte, 0x07 | 0x18 | 0x1a | ESC)
}

fn is_control_in_string(byte: u8) -> bool {
    (byte < 0x20 && !ends_string(byte)) || byte == 0x7f
}

/// Whether the metadata of an OSC 5522 says that it writes, and nothing else.
fn is_clipboard_write(held: &[u8]) -> bool {
    let text: Vec<u8> = held.iter().copied().filter(|&byte| !is_control_in_string(byte)).collect();
    let metadata = memchr::memchr(b';', &text).map_or(&[][..], |at| &text[at + 1..]);
    let mut types = metadata.split(|&byte| byte == b':').filter_map(|record| record.trim_ascii().strip_prefix(b"type")).peekable();
    types.peek().is_some() && types.all(|kind| matches!(kind, b"=write" | b"=wdata" | b"=walias"))
}

/// The first position from `from` on where a string could begin: an ESC, U+009D, or a 0x9d that is no part of a character,
/// unless what follows tells otherwise.
fn find_start(before: [u8; 3], bytes: &[u8], from: usize) -> usize {
    for found in memchr3_iter(ESC, 0xc2, OSC, &bytes[from..]) {
        let at = from + found;
        match (bytes[at], bytes.get(at + 1)) {
            (OSC, _) if continues_character(before, &bytes[..at]) => {}
            (OSC, None | Some(b'5' | b'0' | 0..0x20 | 0x7f)) => return at,
            (OSC, _) => {}
            (_, None) | (0xc2, Some(&OSC)) => return at,
            (ESC, Some(&next)) if next == b']' || next < 0x20 || next == 0x7f => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Whether a byte of 0x80..0xc0 after these bytes belongs to a UTF-8 character that they begin.
fn continues_character(before: [u8; 3], bytes: &[u8]) -> bool {
    let back = |distance: usize| match bytes.len().checked_sub(distance) {
        Some(at) => bytes[at],
        None => before[3 + bytes.len() - distance],
    };
    for distance in 1..=3 {
        match back(distance) {
            0x80..0xc0 => {}
            0xc2..0xe0 => return distance == 1,
            0xe0..0xf0 => return distance <= 2,
            0xf0..0xf5 => return true,
            _ => return false,
        }
    }
    false
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
    fn only_clipboard_queries_are_removed() {
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
            // The 8-bit form, and characters that only contain its byte.
            (b"a\x9d52;c;?\x9cb", b"ab"),
            (b"a\xff\x9d052;c;?\x07b", b"a\xffb"),
            (b"\xe2\x80\x9d\x9d52;c;?\x07b", b"\xe2\x80\x9db"),
            (b"say \xe2\x80\x9d52;c;?\x07 \xf0\x9d\x9d\x9d5", b"say \xe2\x80\x9d52;c;?\x07 \xf0\x9d\x9d\x9d5"),
            (b"a\x9d0;title\x9cb", b"a\x9d0;title\x9cb"),
            // kitty's clipboard: reads are removed, writes pass.
            (b"a\x1b]5522;type=read;dGV4dA==\x1b\\b", b"ab"),
            (b"a\x9d5522;loc=primary:type=read;\x07b", b"ab"),
            (b"a\x1b]5522;type=write:type=read;.\x07b", b"ab"),
            (b"a\x1b]5522;;.\x07b\x1b]5522;type=\x00read\x07c", b"abc"),
            (
                b"\x1b]5522;type=write\x1b\\\x1b]5522;type=wdata:mime=dA==;aGk=\x1b\\",
                b"\x1b]5522;type=write\x1b\\\x1b]5522;type=wdata:mime=dA==;aGk=\x1b\\",
            ),
            (b"\x1b]55220;type=read\x07", b"\x1b]55220;type=read\x07"),
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
