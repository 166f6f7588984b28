//! Printing text runs: layout controls, charsets, insert mode, no-wrap mode, combining marks.
//! The fast way must be taken whenever nothing special is in force.

use super::modes::{Charset, Modes};
use super::rewrite::Canvas;
use super::text;
use memchr::memchr3_iter;

impl Canvas {
    pub(super) fn print(&mut self, run: &[u8], modes: &Modes) {
        let plain = modes.autowrap() && !modes.insert && modes.charset() == Charset::Ascii && modes.tabs.is_none() && !self.pen.concealed;
        if !plain {
            self.print_slowly(run, modes);
        } else if run.is_ascii() {
            self.print_ascii(run);
        } else {
            self.print_unicode(run, modes);
        }
    }

    /// ASCII and layout controls. A line feed after a carriage return needs no look at the cursor.
    fn print_ascii(&mut self, run: &[u8]) {
        let mut start = 0;
        for at in memchr3_iter(b'\n', 0x0b, 0x0c, run) {
            let returned = at > 0 && run[at - 1] == b'\r';
            if returned && !self.pen.has_background() {
                continue;
            }
            self.push_text(&run[start..at]);
            self.line_feed();
            start = at + 1;
        }
        self.push_text(&run[start..]);
    }

    fn push_text(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // The last piece may be only "\r\n": the pen is sent when something is drawn with it.
        if bytes.iter().any(|&byte| byte >= 0x20) {
            self.emulator.use_pen(self.pen);
        }
        self.emulator.push(bytes);
    }

    fn print_unicode(&mut self, run: &[u8], modes: &Modes) {
        let mut after_letter = false;
        for chunk in run.utf8_chunks() {
            let valid = chunk.valid();
            let mut ascii_from = 0;
            for (at, character) in valid.char_indices() {
                if character.is_ascii() {
                    continue;
                }
                let ascii = &valid.as_bytes()[ascii_from..at];
                self.print_ascii(ascii);
                after_letter = match ascii.last() {
                    None => after_letter,
                    Some(&byte) => byte >= 0x20,
                };
                ascii_from = at + character.len_utf8();
                if let Some(character) = text::drawn(character, Charset::Ascii) {
                    if text::width(character) > 0 {
                        self.emulator.use_pen(self.pen);
                        self.emulator.push_char(character);
                        after_letter = true;
                    } else if after_letter {
                        self.emulator.push_char(character);
                    } else {
                        self.combine(character);
                    }
                }
            }
            let ascii = &valid.as_bytes()[ascii_from..];
            self.print_ascii(ascii);
            after_letter = match ascii.last() {
                None => after_letter,
                Some(&byte) => byte >= 0x20,
            };
            if !chunk.invalid().is_empty() {
                self.put(text::REPLACEMENT, modes);
                after_letter = true;
            }
        }
    }

    fn print_slowly(&mut self, run: &[u8], modes: &Modes) {
        let charset = modes.charset();
        text::decode(run, |character| match character {
            '\n' | '\x0b' | '\x0c' => self.line_feed(),
            '\r' => self.emulator.push(b"\r"),
            '\x08' => self.emulator.push(b"\x08"),
            '\t' => self.tab_forward(1, modes),
            _ => {
                if let Some(character) = text::drawn(character, charset) {
                    self.put(character, modes);
                }
            }
        });
    }

    /// Draws one character as the modes say.
    pub(super) fn put(&mut self, character: char, modes: &Modes) {
        let width = text::width(character) as u16;
        if width == 0 {
            self.combine(character);
            return;
        }
        if modes.autowrap() && !modes.insert {
            self.emulator.use_pen(self.pen);
            self.push_drawn(character);
            return;
        }
        let cols = self.size().cols;
        let (_, mut col) = self.emulator.position();
        if col + width > cols {
            if modes.autowrap() {
                self.emulator.push(b"\r\n");
                col = 0;
            } else if width == 1 {
                self.emulator.push_csi(&[cols], b'G');
                col = cols - 1;
            } else {
                return;
            }
        }
        if modes.insert {
            self.emulator.push_csi(&[width], b'@');
        }
        self.emulator.use_pen(self.pen);
        self.push_drawn(character);
        if !modes.autowrap() && col + width == cols {
            self.emulator.push_csi(&[cols], b'G');
        }
    }

    fn push_drawn(&mut self, character: char) {
        self.emulator.push_char(character);
        if self.pen.concealed && character != ' ' {
            self.emulator.push_char(text::CONCEALED);
        }
    }

    /// Adds a mark to the character before the cursor. On an empty cell it is dropped: what such a cell
    /// would look like is not expressible in a keyframe.
    fn combine(&mut self, mark: char) {
        let (row, col) = self.emulator.position();
        let has_text =
            |col: u16| self.emulator.cell(row, col).is_some_and(|(text, width, pen)| !text.is_empty() || width == 0 || pen.concealed);
        if col > 0 && has_text(col - 1) {
            self.emulator.push_char(mark);
        }
    }
}
