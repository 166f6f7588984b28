//! The filter before the person's own terminal: all bytes unchanged, but a program cannot ask for the
//! person's clipboard (OSC 52 with `?`). It must hold back only bytes that could still become that.

use memchr::memchr;

const ASK: &[u8] = b"\x1b]52;";
/// Longer than any list of clipboard names.
const LONGEST: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passthrough {
    held: Vec<u8>,
}

enum Judgement {
    /// Could still become a question.
    Open,
    /// Is something else.
    Harmless,
    Question,
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
        while !rest.is_empty() {
            if self.held.is_empty() {
                let escape = memchr(0x1b, rest).unwrap_or(rest.len());
                out.extend_from_slice(&rest[..escape]);
                rest = &rest[escape..];
                if rest.is_empty() {
                    return;
                }
            }
            let byte = rest[0];
            self.held.push(byte);
            match judge(&self.held) {
                Judgement::Open => rest = &rest[1..],
                Judgement::Question => {
                    self.held.clear();
                    rest = &rest[1..];
                }
                Judgement::Harmless => {
                    // The byte is looked at again: it may begin a question of its own.
                    if self.held.len() > 1 {
                        self.held.pop();
                    } else {
                        rest = &rest[1..];
                    }
                    out.append(&mut self.held);
                }
            }
        }
    }
}

fn judge(held: &[u8]) -> Judgement {
    let known = held.len().min(ASK.len());
    if held[..known] != ASK[..known] {
        return Judgement::Harmless;
    }
    let selection = &held[known..];
    if held.len() > LONGEST {
        return Judgement::Harmless;
    }
    let Some(split) = memchr(b';', selection) else {
        return if selection.iter().all(|&byte| byte.is_ascii_graphic()) { Judgement::Open } else { Judgement::Harmless };
    };
    match &selection[split + 1..] {
        b"" | b"?" | b"?\x1b" => Judgement::Open,
        b"?\x07" | b"?\x1b\\" => Judgement::Question,
        _ => Judgement::Harmless,
    }
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
        for (bytes, expected) in [
            (&b"a\x1b]52;c;?\x07b"[..], &b"ab"[..]),
            (b"a\x1b]52;;?\x1b\\b\x1b]52;pc;?\x07", b"ab"),
            (b"\x1b]52;c;aGk=\x07x", b"\x1b]52;c;aGk=\x07x"),
            (b"\x1b]52;c;?x\x07\x1b[1m\x1b", b"\x1b]52;c;?x\x07\x1b[1m\x1b"),
            (b"\x1b]5\x1b]52;c;?\x07z", b"\x1b]5z"),
            (b"\x1b\x1b]52;c;?\x07z", b"\x1bz"),
            (b"plain \xff\xfe text", b"plain \xff\xfe text"),
        ] {
            assert_eq!(filtered(&[bytes]), expected, "{bytes:?}");
            for cut in 0..bytes.len() {
                assert_eq!(filtered(&[&bytes[..cut], &bytes[cut..]]), expected);
            }
            assert_eq!(filtered(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        }
    }
}
