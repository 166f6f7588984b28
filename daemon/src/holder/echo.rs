//! What is typed into a terminal whose echo is off, and whether the program shows it by itself. Line editors do (shells, editors, a
//! remote shell), passwords are never shown. Only what is shown is given back: it is in the recording of the output anyway.
//! Pure; bounded; no unwrap.

/// What is typed ahead of its being shown; whoever types more without seeing any of it types blindly.
const MAX_PENDING: usize = 4096;

#[derive(Default)]
pub struct Echo {
    pending: Vec<u8>,
}

impl Echo {
    pub fn typed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() > MAX_PENDING {
            self.pending.clear();
        }
    }

    /// Nothing that was typed before counts any more.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// The program has printed this: gives what of the input it shows. If it shows something else instead, nothing of it.
    pub fn shown(&mut self, output: &[u8]) -> Vec<u8> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let mut printed = Printed { bytes: output, has_broken: false };
        let mut given = 0;
        for (at, byte) in self.pending.iter().enumerate() {
            if !is_printable(*byte) {
                // keys that are no text have nothing to be shown; they go with the text around them
                if given == at {
                    given = at + 1;
                }
                continue;
            }
            match printed.next() {
                Some(shown) if shown == *byte && !printed.has_broken => given = at + 1,
                // the rest may still come
                None if !printed.has_broken || given > 0 => break,
                // a new line, or something else: what was typed is not to be seen
                _ => {
                    self.pending.clear();
                    return Vec::new();
                }
            }
        }
        self.pending.drain(..given).collect()
    }
}

fn is_printable(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f
}

/// The text of some output, without controls and sequences.
struct Printed<'a> {
    bytes: &'a [u8],
    /// A line ended before the next character.
    has_broken: bool,
}

impl Iterator for Printed<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            let (first, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            match first {
                0x1b => self.pass_sequence(),
                b'\n' => self.has_broken = true,
                byte if is_printable(*byte) => return Some(*byte),
                _ => {}
            }
        }
    }
}

impl Printed<'_> {
    fn pass_sequence(&mut self) {
        let Some((kind, rest)) = self.bytes.split_first() else { return };
        let length = match kind {
            b'[' => rest.iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|end| end + 1),
            b']' | b'P' | b'_' | b'^' | b'X' => rest.iter().position(|byte| matches!(byte, 0x07 | b'\\')).map(|end| end + 1),
            b' '..=b'/' => Some(1),
            _ => Some(0),
        };
        self.bytes = length.and_then(|length| rest.get(length..)).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step {
        Type(&'static str),
        Print(&'static str),
    }
    use Step::{Print, Type};

    fn recorded(steps: &[Step]) -> String {
        let mut echo = Echo::default();
        let mut out = Vec::new();
        for step in steps {
            match step {
                Type(text) => echo.typed(text.as_bytes()),
                Print(text) => out.extend(echo.shown(text.as_bytes())),
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn what_the_program_shows_is_given_and_what_it_hides_is_not() {
        for (steps, expected) in [
            // a line editor, key by key, then all at once, then late
            (&[Type("l"), Print("l"), Type("s"), Print("s"), Type("\r"), Print("\r\nfile\r\n$ ")][..], "ls\r"),
            (&[Type("ls -l\r"), Print("ls -l\r\nfile\r\n")], "ls -l\r"),
            (&[Type("ls"), Print("l"), Print("s")], "ls"),
            // colours, and a suggestion behind it
            (&[Type("g"), Print("\x1b[1m\x1b[32mg\x1b[2mit status\x1b[0m\x1b[10D")], "g"),
            (&[Type("ü"), Print("ü")], "ü"),
            // arrows and control keys
            (&[Type("\x1b[A"), Print("make test")], ""),
            (&[Type("\x03"), Print("^C\r\n$ ")], "\x03"),
            // passwords: the line ends, then something else is said
            (&[Type("hunter2\r"), Print("\r\n"), Print("Sorry, try again.\r\n")], ""),
            (&[Type("h"), Type("u"), Type("n\r"), Print("\r\nhuman@host $ ")], ""),
            (&[Type("root\r"), Print("\r\nroot@host # ")], ""),
            (&[Type("secret"), Print("***")], ""),
            (&[Type("s"), Print("*"), Type("e"), Print("*"), Type("\r"), Print("\r\nsee\r\n")], ""),
        ] {
            let shown = recorded(steps);
            assert!(shown == expected || (expected.is_empty() && shown.trim_end_matches('\r').is_empty()), "{shown:?} is not {expected:?}");
        }
    }

    #[test]
    fn typing_blindly_takes_no_memory() {
        let mut echo = Echo::default();
        for _ in 0..1000 {
            echo.typed(&[b'x'; 1000]);
        }
        assert!(echo.pending.len() <= MAX_PENDING);
    }
}
