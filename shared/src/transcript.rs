//! What the calls to an interpreter look like on a screen: the code after a prompt, its output, errors in red, how it ended.
//! Bytes in, bytes for a terminal out. Only text and colours of the output get through; nothing printed moves the cursor.

/// Before the first line of code, and before the others.
const PROMPT: &str = "\x1b[1;36m❯\x1b[0m ";
const CONTINUED: &str = "\x1b[36m·\x1b[0m ";

/// Code longer than this is shown by its beginning: the rest is in the history.
const MAX_CODE_LINES: usize = 40;

/// A sequence longer than this is no colour.
const MAX_SEQUENCE: usize = 64;

/// Where in a stream of output we are: a frame may end in the middle of a sequence.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// An escape sequence that has begun.
    sequence: Vec<u8>,
}

impl Transcript {
    /// A call begins. `mid_line`: what was printed last did not end its line.
    pub fn call(&mut self, code: &str, mid_line: bool, out: &mut Vec<u8>) {
        self.sequence.clear();
        begin_line(mid_line, out);
        let code = code.trim_end_matches('\n');
        let lines = code.lines().count();
        for (number, line) in code.lines().take(MAX_CODE_LINES).enumerate() {
            out.extend_from_slice(if number == 0 { PROMPT } else { CONTINUED }.as_bytes());
            out.extend_from_slice(crate::text::visible(line).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if lines == 0 {
            out.extend_from_slice(PROMPT.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if lines > MAX_CODE_LINES {
            out.extend_from_slice(format!("{CONTINUED}\x1b[2m{} more lines\x1b[0m\r\n", lines - MAX_CODE_LINES).as_bytes());
        }
    }

    pub fn stdout(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.output(bytes, out);
    }

    pub fn stderr(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[31m");
        self.output(bytes, out);
        out.extend_from_slice(b"\x1b[39m");
    }

    /// A call has ended: its value, if it has one, then how it went and how long it took.
    pub fn result(&mut self, ending: &Ending<'_>, mid_line: bool, out: &mut Vec<u8>) {
        self.sequence.clear();
        begin_line(mid_line, out);
        if let Some(value) = ending.value {
            for line in value.lines().take(MAX_CODE_LINES) {
                out.extend_from_slice(format!("\x1b[36m{}\x1b[0m\r\n", crate::text::visible(line)).as_bytes());
            }
        }
        let took = duration(ending.took_micros);
        let text = match ending.exit_code {
            0 => format!("\x1b[32m✓\x1b[0m \x1b[2m{took}\x1b[0m\r\n"),
            code => {
                let error = ending.error.map(|error| format!(" · {}", crate::text::visible(error))).unwrap_or_default();
                format!("\x1b[31m✗ exit {code}{error}\x1b[0m \x1b[2m{took}\x1b[0m\r\n")
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn output(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            if !self.sequence.is_empty() {
                self.sequence.push(byte);
                self.continue_sequence(out);
                continue;
            }
            match byte {
                b'\n' => out.extend_from_slice(b"\r\n"),
                b'\t' | b'\r' | 0x20..=0x7e | 0x80.. => out.push(byte),
                0x1b => self.sequence.push(byte),
                0x08 => out.push(byte),
                // as `cat -v` shows them
                0x7f => out.extend_from_slice(b"^?"),
                control => out.extend([b'^', control + b'@']),
            }
        }
    }

    /// Colours pass; of anything else only its end is looked for.
    fn continue_sequence(&mut self, out: &mut Vec<u8>) {
        let sequence = &self.sequence;
        let last = sequence[sequence.len() - 1];
        let is_over = match sequence.get(1) {
            Some(b'[') => sequence.len() > 2 && (0x40..=0x7e).contains(&last),
            // a string: to its bell or terminator
            Some(b']' | b'P' | b'_' | b'^' | b'X') => last == 0x07 || sequence.ends_with(b"\x1b\\"),
            _ => true,
        };
        let is_string = matches!(sequence.get(1), Some(b']' | b'P' | b'_' | b'^' | b'X'));
        if is_over {
            if sequence.starts_with(b"\x1b[") && last == b'm' {
                out.extend_from_slice(sequence);
            }
            self.sequence.clear();
        } else if is_string && sequence.len() > MAX_SEQUENCE {
            // the rest of a long string is of no interest, but its end is
            self.sequence.drain(2..sequence.len() - 1);
        } else if sequence.len() > MAX_SEQUENCE {
            self.sequence.clear();
        }
    }
}

/// How a call ended, for the line that says so.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    pub exit_code: i32,
    pub value: Option<&'a str>,
    pub error: Option<&'a str>,
    pub took_micros: u64,
}

fn begin_line(mid_line: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if mid_line { b"\x1b[0m\r\n" } else { b"\x1b[0m" });
}

fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..60_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: &[&[u8]]) -> String {
        let (mut transcript, mut out) = (Transcript::default(), Vec::new());
        for part in parts {
            transcript.stdout(part, &mut out);
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn text_and_colours_pass_and_nothing_else_acts() {
        for (input, expected) in [
            (&b"a\nb"[..], "a\r\nb"),
            (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
            (b"x\x1b[2J\x1b[Hy", "xy"),
            (b"\x1b]0;title\x07z", "z"),
            (b"\x1b]52;c;aaaa\x1b\\z", "z"),
            (b"\x00\x07\x7f", "^@^G^?"),
            ("é ✓ 🙂".as_bytes(), "é ✓ 🙂"),
            (b"\x1bcreset", "reset"),
        ] {
            assert_eq!(shown(&[input]), expected, "{input:?}");
            for cut in 0..=input.len() {
                assert_eq!(shown(&[&input[..cut], &input[cut..]]), expected, "{input:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn an_endless_string_takes_no_memory() {
        let mut transcript = Transcript::default();
        let mut out = Vec::new();
        transcript.stdout(b"\x1b]0;", &mut out);
        for _ in 0..1000 {
            transcript.stdout(&[b'a'; 1000], &mut out);
        }
        assert!(out.is_empty() && transcript.sequence.capacity() < 1000);
        transcript.stdout(b"\x1b\\b", &mut out);
        assert_eq!(out, b"b");
    }

    #[test]
    fn a_call_begins_on_a_line_of_its_own() {
        let mut out = Vec::new();
        Transcript::default().call("x = 1\nprint(x)\n", true, &mut out);
        let text = String::from_utf8(out).expect("text");
        assert!(text.starts_with("\x1b[0m\r\n"), "{text:?}");
        assert!(text.contains("❯\x1b[0m x = 1\r\n") && text.contains("·\x1b[0m print(x)\r\n"), "{text:?}");
    }
}
