//! Plain text as it was seen: the lines that scrolled away, then the last screen. Colours, titles and moves of the cursor are gone,
//! lines that were only wrapped are whole again.

use std::io::{self, Write};

use shared::screen::{Screen, ScrolledLine, Size};
use shared::text::columns;

use super::{Piece, Said, Sink};

pub struct Text {
    screen: Screen,
    /// A line that goes on in the next row.
    line: String,
}

impl Text {
    pub fn new(size: Size) -> Self {
        let mut screen = Screen::new(size);
        screen.capture_scrolled(true);
        Self { screen, line: String::new() }
    }

    fn row(&mut self, text: &str, is_wrapped: bool, out: &mut dyn Write) -> io::Result<()> {
        self.line.push_str(text);
        if is_wrapped {
            // blanks at the end of a row that goes on were there; one may be the place a wide character did not fit into
            let missing = usize::from(self.screen.size().cols).saturating_sub(columns(text));
            if missing > 1 {
                self.line.extend(std::iter::repeat_n(' ', missing));
            }
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        writeln!(out, "{}", line.trim_end())
    }
}

impl Sink for Text {
    fn take(&mut self, piece: Piece, out: &mut dyn Write) -> io::Result<()> {
        match piece.what {
            Said::Output(bytes) => self.screen.feed(&bytes, &mut Vec::new()),
            Said::Resize(size) => self.screen.resize(size),
            Said::Input(_) | Said::Marker(_) | Said::Exit(_) => return Ok(()),
        }
        for ScrolledLine { text, wrapped, .. } in self.screen.take_scrolled() {
            self.row(&text, wrapped, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.screen.size().rows;
        let last = (0..rows).rev().find(|row| !self.screen.row_text(*row).is_empty());
        for row in 0..last.map_or(0, |last| last + 1) {
            let (text, is_wrapped) = (self.screen.row_text(row), self.screen.row_wrapped(row));
            self.row(&text, is_wrapped && Some(row) != last, out)?;
        }
        Ok(())
    }
}
