//! The line a person types into an interpreter's transcript. Keys in, what to run out; pure.

/// Longer lines belong into a file.
const MAX_LINE: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Line {
    text: String,
    /// Bytes of a character that has not come whole, or of a key's sequence.
    pending: Vec<u8>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Typed {
    Run(String),
    Interrupt,
}

impl Line {
    /// What has been typed and not run yet, in one line.
    pub fn shown(&self) -> String {
        shared::text::visible(&self.text.replace('\n', " ⏎ "))
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Typed> {
        let mut typed = Vec::new();
        for &byte in bytes {
            if self.pending.first() == Some(&0x1b) {
                self.pending.push(byte);
                self.key();
                continue;
            }
            match byte {
                b'\r' => {
                    let code = std::mem::take(&mut self.text);
                    if !code.trim().is_empty() {
                        typed.push(Typed::Run(code));
                    }
                }
                // ctrl-j: a further line
                b'\n' => self.text.push('\n'),
                0x03 => {
                    if self.text.is_empty() {
                        typed.push(Typed::Interrupt);
                    }
                    self.text.clear();
                }
                0x15 => self.text.clear(),
                0x17 => {
                    let kept = self.text.trim_end().rfind([' ', '\n']).map_or(0, |at| at + 1);
                    self.text.truncate(kept);
                }
                0x7f | 0x08 => {
                    self.text.pop();
                }
                0x1b => self.pending = vec![byte],
                b'\t' => self.text.push_str("    "),
                0x20..=0x7e => self.push(&[byte]),
                0x80.. => {
                    self.pending.push(byte);
                    match std::str::from_utf8(&self.pending) {
                        Ok(_) => {
                            let whole = std::mem::take(&mut self.pending);
                            self.push(&whole);
                        }
                        Err(error) if error.error_len().is_some() => self.pending.clear(),
                        Err(_) => {}
                    }
                }
                _ => {}
            }
        }
        typed
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.text.len() + bytes.len() <= MAX_LINE {
            self.text.push_str(&String::from_utf8_lossy(bytes));
        }
    }

    /// A key's sequence, which means nothing here: passed over whole. Alt-enter is a further line.
    fn key(&mut self) {
        let last = self.pending.last().copied().unwrap_or_default();
        let is_over = match self.pending.get(1) {
            Some(b'[' | b'O') => self.pending.len() > 2 && (0x40..=0x7e).contains(&last),
            Some(b'\r') => {
                self.text.push('\n');
                true
            }
            _ => true,
        };
        if is_over || self.pending.len() > 32 {
            self.pending.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_edited_and_run() {
        let mut line = Line::default();
        let mut feed = |keys: &str| line.feed(keys.as_bytes());
        assert_eq!(feed("1+2\r"), [Typed::Run("1+2".into())]);
        assert_eq!(feed("ab\x7fc\x1b[A\x1b[1;5C\r"), [Typed::Run("ac".into())]);
        assert_eq!(feed("if x:\n  y\x1b\r  z\r"), [Typed::Run("if x:\n  y\n  z".into())]);
        assert_eq!(feed("  \r"), []);
        assert_eq!(feed("gone\x03"), []);
        assert_eq!(feed("\x03"), [Typed::Interrupt]);
        assert_eq!(feed("one two\x17x\r"), [Typed::Run("one x".into())]);
        assert_eq!(feed("é🙂\r"), [Typed::Run("é🙂".into())]);
    }

    #[test]
    fn a_character_may_come_in_parts() {
        let mut line = Line::default();
        for byte in "é".bytes() {
            assert!(line.feed(&[byte]).is_empty());
        }
        assert_eq!(line.feed(b"\r"), [Typed::Run("é".into())]);
    }
}
