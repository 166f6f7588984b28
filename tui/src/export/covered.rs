//! Secrets are covered before anything is written: looked for in the text as it was seen, so that colours inside a secret or a
//! cut in its middle do not hide it, and covered where its bytes came from.

use std::collections::VecDeque;
use std::io::{self, Write};

use shared::redact::{OVERLAP, Redactor};
use shared::seen::{Seen, Text};
use shared::text::percent_decoded;

use super::{Piece, Said, Sink};

/// Looked through at a time.
const WINDOW: usize = 512 << 10;

pub struct Covered<'a> {
    redactor: Option<Redactor>,
    sink: &'a mut dyn Sink,
    out: &'a mut dyn Write,
    /// Not written yet: the end of it may be the beginning of a secret.
    waiting: VecDeque<Piece>,
    /// Bytes of output among them.
    bytes: usize,
    /// Before the first of them.
    seen: Seen,
}

impl<'a> Covered<'a> {
    pub fn new(redactor: Option<Redactor>, sink: &'a mut dyn Sink, out: &'a mut dyn Write) -> Self {
        Self { redactor, sink, out, waiting: VecDeque::new(), bytes: 0, seen: Seen::default() }
    }

    pub fn take(&mut self, piece: Piece) -> io::Result<()> {
        if self.redactor.is_none() {
            return self.sink.take(piece, self.out);
        }
        if let Said::Output(bytes) = &piece.what {
            self.bytes += bytes.len();
        }
        self.waiting.push_back(piece);
        if self.bytes >= WINDOW { self.write(OVERLAP) } else { Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.write(0)?;
        self.sink.finish(self.out)
    }

    /// Covers what is waiting, and writes all of it but about `keep` bytes at the end.
    fn write(&mut self, keep: usize) -> io::Result<()> {
        if let Some(redactor) = &self.redactor {
            cover(redactor, self.seen.clone(), &mut self.waiting);
        }
        while let Some(piece) = self.waiting.front() {
            if let Said::Output(bytes) = &piece.what {
                if self.bytes - bytes.len() < keep && keep > 0 {
                    break;
                }
                self.bytes -= bytes.len();
                self.seen.feed(bytes, 0, &mut Text::default());
            }
            if let Some(piece) = self.waiting.pop_front() {
                self.sink.take(piece, self.out)?;
            }
        }
        Ok(())
    }
}

fn cover(redactor: &Redactor, mut seen: Seen, pieces: &mut VecDeque<Piece>) {
    let mut text = Text::default();
    let (mut output, mut input) = (Vec::new(), Vec::new());
    for piece in pieces.iter_mut() {
        match &mut piece.what {
            Said::Output(bytes) => {
                seen.feed(bytes, output.len(), &mut text);
                output.extend_from_slice(bytes);
            }
            Said::Input(bytes) => input.extend_from_slice(bytes),
            Said::Marker(label) => *label = redactor.cover(label),
            Said::Resize(_) | Said::Exit(_) => {}
        }
    }
    let mut hidden: Vec<usize> = Vec::new();
    for range in redactor.find(&text.bytes) {
        hidden.extend(range.filter(|place| !text.bytes[*place].is_ascii_whitespace()).map(|place| text.input_of(place)));
    }
    hidden.extend(in_strings(redactor, &output));
    hidden.sort_unstable();
    cover_at(hidden, pieces.iter_mut().filter_map(|piece| if let Said::Output(bytes) = &mut piece.what { Some(bytes) } else { None }));
    // keys come one by one, a secret is what they make together
    let typed: Vec<usize> = redactor.find(&input).into_iter().flatten().collect();
    cover_at(typed, pieces.iter_mut().filter_map(|piece| if let Said::Input(bytes) = &mut piece.what { Some(bytes) } else { None }));
}

/// Stars at these places of what the parts are together; only text is covered, never the sequence a character was made by.
fn cover_at<'b>(places: Vec<usize>, parts: impl Iterator<Item = &'b mut Vec<u8>>) {
    let mut places = places.into_iter().peekable();
    let mut base = 0;
    for bytes in parts {
        while let Some(place) = places.next_if(|place| *place < base + bytes.len()) {
            let byte = place.checked_sub(base).and_then(|place| bytes.get_mut(place));
            if let Some(byte) = byte.filter(|byte| **byte >= 0x20 && **byte != 0x7f) {
                *byte = b'*';
            }
        }
        base += bytes.len();
    }
}

/// Secrets in what is not seen: titles, links, commands that a shell tells of. What is in the clipboard is one as a whole.
fn in_strings(redactor: &Redactor, bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(escape) = memchr::memchr(0x1b, &bytes[at..]).map(|place| at + place) {
        at = escape + 1;
        if !matches!(bytes.get(at), Some(b']' | b'P' | b'_' | b'^' | b'X')) {
            continue;
        }
        let start = at + 1;
        let end = memchr::memchr2(0x07, 0x1b, &bytes[start..]).map_or(bytes.len(), |end| start + end);
        let payload = &bytes[start..end];
        let is_clipboard = payload.starts_with(b"52;");
        let is_coded = memchr::memmem::find(payload, b"_url=").is_some() && !redactor.find(&percent_decoded(payload)).is_empty();
        if is_clipboard || is_coded {
            // the number stays, so that it is still the same kind of string
            let first = payload.iter().position(|byte| *byte == b';').map_or(0, |place| place + 1);
            found.extend(start + first..end);
        } else {
            found.extend(redactor.find(payload).into_iter().flatten().map(|place| start + place));
        }
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<u8>);

    impl Sink for Kept {
        fn take(&mut self, piece: Piece, _: &mut dyn Write) -> io::Result<()> {
            if let Said::Output(bytes) = piece.what {
                self.0.extend(bytes);
            }
            Ok(())
        }

        fn finish(&mut self, _: &mut dyn Write) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(parts: &[&[u8]]) -> Vec<u8> {
        let mut kept = Kept(Vec::new());
        let (mut nowhere, redactor) = (io::sink(), Redactor::new(&[]).expect("rules"));
        let mut covered = Covered::new(Some(redactor), &mut kept, &mut nowhere);
        for (time, part) in (0u64..).zip(parts) {
            covered.take(Piece { time, what: Said::Output(part.to_vec()) }).expect("takes");
        }
        covered.finish().expect("finishes");
        kept.0
    }

    #[test]
    fn a_secret_is_covered_however_it_is_cut_or_coloured() {
        let secret = b"ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        let whole = [b"x \x1b[1m", &secret[..], b"\x1b[0m y"].concat();
        let stars = [b"x \x1b[1m", &[b'*'; 40][..], b"\x1b[0m y"].concat();
        for cut in 0..=whole.len() {
            assert_eq!(written(&[&whole[..cut], &whole[cut..]]), stars, "cut at {cut}");
        }
        let coloured = written(&[b"ghp_abcdefghij\x1b[31mklmnopqrstuvwx", b"yz0123\x1b[0m456789 end"]);
        assert_eq!(coloured, b"**************\x1b[31m********************\x1b[0m****** end".to_vec());
    }

    #[test]
    fn what_is_not_seen_is_covered_too() {
        let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        for text in [
            format!("\x1b]0;export TOKEN={secret}\x07x"),
            format!("\x1b]8;;https://x/?t={secret}\x1b\\link\x1b]8;;\x1b\\"),
            format!("\x1b]133;C;cmdline_url=login%20password%3D{secret}\x07"),
            "\x1b]52;c;Z2hwX2FiY2RlZg==\x07".to_owned(),
        ] {
            let (before, after) = text.as_bytes().split_at(text.len() / 2);
            let out = String::from_utf8_lossy(&written(&[before, after])).into_owned();
            assert!(!out.contains("abcdef") && !out.contains("Z2hwX2Fi") && out.contains("***"), "{out:?}");
            assert_eq!(out.len(), text.len(), "nothing moves");
        }
        let plain = b"\x1b]0;a title\x07password: \x1b[31mred text\x1b[0m\r\n";
        assert!(written(&[plain]).starts_with(b"\x1b]0;a title\x07"));
    }

    #[test]
    fn a_secret_at_the_edge_of_a_window_is_covered_too() {
        let filler = vec![b'.'; WINDOW - 20];
        let out = written(&[&filler, b" ghp_abcdefghijklm", b"nopqrstuvwxyz0123456789 \r\n", &filler]);
        assert!(!out.windows(8).any(|part| part == b"ghp_abcd"), "covered");
        assert_eq!(out.len(), 2 * filler.len() + 18 + 26);
    }
}
