//! Finding our prefix key in what a user types. Pure: bytes in, actions out, whatever way the terminal encodes keys.

use crate::config::Prefix;
use crate::message::Direction;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Send(Vec<u8>),
    Detach,
    Help,
    TakeControl,
    /// Look back: what scrolled away, then back in time.
    History,
    /// Another session in this one's place; what was typed behind the key, as it came, is for that one.
    Switch {
        direction: Direction,
        behind: Vec<u8>,
    },
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Longest encoding of one key that is looked for: `ESC [ 27 ; 5 ; 98 ~` and its kitty cousins.
const LONGEST_KEY: usize = 24;

pub struct PrefixKeys {
    prefix: Prefix,
    /// The prefix was pressed: the next key is for us.
    is_armed: bool,
    is_pasting: bool,
}

impl PrefixKeys {
    pub fn new(prefix: Prefix) -> Self {
        Self { prefix, is_armed: false, is_pasting: false }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut plain = Vec::new();
        let mut rest = bytes;
        while let Some((first, _)) = rest.split_first() {
            if self.is_pasting {
                // what is pasted is text, whatever it contains
                let end = find(rest, PASTE_ENDS).map_or(rest.len(), |at| at + PASTE_ENDS.len());
                self.is_pasting = !rest[..end].ends_with(PASTE_ENDS);
                plain.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            if !self.is_armed && rest.starts_with(PASTE_BEGINS) {
                self.is_pasting = true;
                plain.extend_from_slice(PASTE_BEGINS);
                rest = &rest[PASTE_BEGINS.len()..];
                continue;
            }
            let (key, length) = if *first == 0x1b { encoded_key(rest) } else { (Key::Byte(*first), 1) };
            // after the prefix a whole key is ours: the rest of an arrow's sequence is nothing the user typed
            let length = if self.is_armed && key == Key::Other { whole_key(rest) } else { length };
            let (taken, after) = rest.split_at(length);
            rest = after;
            if key == Key::Release {
                // the release of a key that was ours says nothing to the program
                if !self.is_armed {
                    plain.extend_from_slice(taken);
                }
                continue;
            }
            let is_prefix = key == Key::Byte(self.prefix.byte()) || key == Key::Control(self.prefix.letter());
            if !self.is_armed {
                if is_prefix {
                    self.is_armed = true;
                } else {
                    plain.extend_from_slice(taken);
                }
                continue;
            }
            self.is_armed = false;
            let action = match key {
                _ if is_prefix => {
                    plain.extend_from_slice(taken);
                    continue;
                }
                Key::Byte(b'd') => Action::Detach,
                Key::Byte(b'?') => Action::Help,
                Key::Byte(b't') => Action::TakeControl,
                Key::Byte(b'[') | Key::PageUp => Action::History,
                Key::Byte(b'n') => Action::Switch { direction: Direction::Next, behind: std::mem::take(&mut rest).to_vec() },
                Key::Byte(b'p') => Action::Switch { direction: Direction::Previous, behind: std::mem::take(&mut rest).to_vec() },
                // as in tmux, an unknown key after the prefix does nothing
                _ => continue,
            };
            if !plain.is_empty() {
                actions.push(Action::Send(std::mem::take(&mut plain)));
            }
            actions.push(action);
        }
        if !plain.is_empty() {
            actions.push(Action::Send(plain));
        }
        actions
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Byte(u8),
    Control(char),
    PageUp,
    /// A key going up, as some terminals report on request.
    Release,
    Other,
}

/// A key as kitty (`CSI 98;5u`) or xterm (`CSI 27;5;98~`) write it, and how long that is. Anything else is one byte.
fn encoded_key(bytes: &[u8]) -> (Key, usize) {
    let one = (Key::Other, 1);
    let Some(body) = bytes.strip_prefix(b"\x1b[") else { return one };
    let Some(end) = body.iter().take(LONGEST_KEY).position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':')) else { return one };
    let Ok(text) = std::str::from_utf8(&body[..end]) else { return one };
    let mut fields = text.split(';');
    let (code, modifiers) = match body[end] {
        b'u' => (fields.next(), fields.next()),
        b'~' if text.starts_with("27;") => {
            let modifiers = fields.nth(1);
            (fields.next(), modifiers)
        }
        b'~' if text == "5" || text.starts_with("5;") => return (Key::PageUp, 2 + end + 1),
        _ => return one,
    };
    let length = 2 + end + 1;
    // `98:66;5:1`: alternate keys and event types come after a colon
    let number =
        |field: Option<&str>, part: usize| field.and_then(|text| text.split(':').nth(part)).and_then(|text| text.parse::<u32>().ok());
    let modifiers_value = number(modifiers, 0).unwrap_or(1).saturating_sub(1);
    if number(modifiers, 1) == Some(3) {
        return (Key::Release, length);
    }
    let Some(c) = number(code, 0).and_then(char::from_u32) else { return (Key::Other, length) };
    // locks (64, 128) do not change what was meant
    match modifiers_value & 0x3f {
        4 => (Key::Control(c), length),
        0 | 1 if c.is_ascii() => {
            let shifted = number(code, 1).and_then(char::from_u32).filter(|_| modifiers_value & 1 == 1).unwrap_or(c);
            // `?` is shift and `/` on many keyboards
            let shifted = if shifted == '/' && modifiers_value & 1 == 1 { '?' } else { shifted };
            (Key::Byte(shifted as u8), length)
        }
        _ => (Key::Other, length),
    }
}

/// How long the escape sequence at the beginning is, of those that keys make.
fn whole_key(bytes: &[u8]) -> usize {
    let body = match bytes {
        [0x1b, b'O', _, ..] => return 3,
        [0x1b, b'[', body @ ..] => body,
        _ => return 1,
    };
    let end = body.iter().take(LONGEST_KEY).position(|byte| (0x40..=0x7e).contains(byte));
    end.map_or(1, |end| 2 + end + 1)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn keys() -> PrefixKeys {
        PrefixKeys::new(Config::default().keys.prefix)
    }

    fn send(text: &[u8]) -> Action {
        Action::Send(text.to_vec())
    }

    #[test]
    fn keys_after_the_prefix_are_ours() {
        for (typed, expected) in [
            (&b"ls\r"[..], vec![send(b"ls\r")]),
            (b"ab\x02d", vec![send(b"ab"), Action::Detach]),
            (b"\x02\x02x", vec![send(b"\x02x")]),
            (b"\x02?", vec![Action::Help]),
            (b"\x02t", vec![Action::TakeControl]),
            (b"a\x02zb", vec![send(b"ab")]),
            (b"a\x02[", vec![send(b"a"), Action::History]),
            (b"\x02\x1b[5~", vec![Action::History]),
            (b"\x02\x1b[91u", vec![Action::History]),
            (b"a\x02nb\x02d", vec![send(b"a"), Action::Switch { direction: Direction::Next, behind: b"b\x02d".to_vec() }]),
            (b"\x02\x1b[112u", vec![Action::Switch { direction: Direction::Previous, behind: Vec::new() }]),
            (b"\x1b[5~", vec![send(b"\x1b[5~")]),
            (b"\x02\x1b[Ax\x02\x1bOBy", vec![send(b"xy")]),
            // kitty's and xterm's way to write ctrl-b, and a plain or encoded d
            (b"\x1b[98;5ud", vec![Action::Detach]),
            (b"\x1b[98;5u\x1b[100u", vec![Action::Detach]),
            (b"\x1b[98;5:1u\x1b[98;5:3u\x1b[100u", vec![Action::Detach]),
            (b"\x1b[98;69ud", vec![Action::Detach]),
            (b"\x1b[27;5;98~d", vec![Action::Detach]),
            (b"\x02\x1b[47;2u", vec![Action::Help]),
            // other keys pass unchanged
            (b"\x1b[A\x1b[1;5C\x1bOP\x1b", vec![send(b"\x1b[A\x1b[1;5C\x1bOP\x1b")]),
            (b"\x1b[99;5u", vec![send(b"\x1b[99;5u")]),
            // pasted text is never a command
            (b"\x1b[200~a\x02d\x1b[201~b", vec![send(b"\x1b[200~a\x02d\x1b[201~b")]),
        ] {
            assert_eq!(keys().feed(typed), expected, "{:?}", String::from_utf8_lossy(typed));
        }
    }

    #[test]
    fn the_prefix_and_its_key_may_come_apart() {
        let mut keys = keys();
        assert_eq!(keys.feed(b"\x02"), vec![]);
        assert_eq!(keys.feed(b"d"), vec![Action::Detach]);
        assert_eq!(keys.feed(b"\x1b[200~x\x02"), vec![send(b"\x1b[200~x\x02")]);
        assert_eq!(keys.feed(b"d\x1b[201~\x02d"), vec![send(b"d\x1b[201~"), Action::Detach]);
    }
}
