//! Secrets are covered before anything is written: looked for in the text as it was seen, so that colours inside a secret or a
//! cut in its middle do not hide it, and covered where its bytes came from.

use std::collections::VecDeque;
use std::io::{self, Write};

use shared::redact::{OVERLAP, Redactor};
use shared::seen::{Seen, Text};

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
    let mut at = 0;
    for piece in pieces.iter_mut() {
        match &mut piece.what {
            Said::Output(bytes) => {
                seen.feed(bytes, at, &mut text);
                at += bytes.len();
            }
            Said::Input(bytes) => redactor.cover_bytes(bytes),
            Said::Marker(label) => *label = redactor.cover(label),
            Said::Resize(_) | Said::Exit(_) => {}
        }
    }
    let mut hidden: Vec<usize> = Vec::new();
    for range in redactor.find(&text.bytes) {
        hidden.extend(range.filter(|place| !text.bytes[*place].is_ascii_whitespace()).map(|place| text.input_of(place)));
    }
    hidden.sort_unstable();
    let mut hidden = hidden.into_iter().peekable();
    let mut base = 0;
    for piece in pieces.iter_mut() {
        let Said::Output(bytes) = &mut piece.what else { continue };
        while let Some(place) = hidden.next_if(|place| *place < base + bytes.len()) {
            // only text is covered, never the sequence a character was made by
            if let Some(byte) = bytes.get_mut(place - base).filter(|byte| **byte >= 0x20 && **byte != 0x7f) {
                *byte = b'*';
            }
        }
        base += bytes.len();
    }
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
    fn a_secret_at_the_edge_of_a_window_is_covered_too() {
        let filler = vec![b'.'; WINDOW - 20];
        let out = written(&[&filler, b" ghp_abcdefghijklm", b"nopqrstuvwxyz0123456789 \r\n", &filler]);
        assert!(!out.windows(8).any(|part| part == b"ghp_abcd"), "covered");
        assert_eq!(out.len(), 2 * filler.len() + 18 + 26);
    }
}
