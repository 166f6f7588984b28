//! Translates tokens into what stock vt100 understands and does right.
//! Strings (OSC, DCS, …) and unknown sequences must never reach the emulator from here.

use super::Size;
use super::emulator::Emulator;
use super::glyph::{Place, crop, fit, reflow};
use super::modes::Modes;
use super::pen::Pen;
use super::token::{Csi, Token};

/// What DECSC keeps of the canvas; never the pending wrap, as in tmux.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Saved {
    pub row: u16,
    pub col: u16,
    pub pen: Pen,
}

/// The emulator and what has to be known beside it to use it well.
pub(super) struct Canvas {
    pub emulator: Emulator,
    pub pen: Pen,
    pub saved: [Saved; 2],
    pub alternate: bool,
}

impl Canvas {
    pub fn new(size: Size) -> Canvas {
        Canvas { emulator: Emulator::new(size), pen: Pen::default(), saved: [Saved::default(); 2], alternate: false }
    }

    pub fn size(&self) -> Size {
        self.emulator.size()
    }

    /// Draws one token. `modes` has already followed it.
    pub fn apply(&mut self, token: &Token<'_>, modes: &mut Modes) {
        match token {
            Token::Text(run) => self.print(run, modes),
            Token::Csi(csi) => self.apply_csi(csi, modes),
            Token::Escape { intermediates, last } => self.apply_escape(intermediates, *last, modes),
            Token::Control(_) | Token::Osc(_) | Token::String { .. } | Token::Skipped => {}
        }
    }

    fn apply_escape(&mut self, intermediates: &[u8], last: u8, modes: &mut Modes) {
        match (intermediates, last) {
            (b"#", b'8') => self.alignment(),
            ([], b'7') => self.save(),
            ([], b'8') => self.restore(modes),
            ([], b'D') => self.line_feed(),
            ([], b'E') => {
                self.emulator.push(b"\r");
                self.line_feed();
            }
            ([], b'M') => self.reverse_line_feed(),
            ([], b'H') => {
                let col = self.column();
                let stops = self.stops(modes);
                if !stops.contains(&col) {
                    stops.push(col);
                    stops.sort_unstable();
                }
            }
            ([], b'c') => {
                self.emulator.reset();
                self.pen = Pen::default();
                self.saved = [Saved::default(); 2];
                self.alternate = false;
            }
            _ => {}
        }
    }

    fn apply_csi(&mut self, csi: &Csi<'_>, modes: &mut Modes) {
        let size = self.size();
        match (csi.prefix, csi.intermediates, csi.last) {
            (0, b"", b'm') => self.pen.apply(csi),
            (0, b"", b'H' | b'f') => {
                self.go(csi.number_or(0, 1) - 1, csi.number_or(1, 1) - 1, modes);
            }
            (0, b"", b'A' | b'B' | b'e') => {
                self.unpend();
                let last = if csi.last == b'A' { b'A' } else { b'B' };
                let count = csi.number_or(0, 1).min(size.rows);
                self.emulator.push_csi(&[count], last);
            }
            (0, b"", b'E' | b'F') => {
                let count = csi.number_or(0, 1).min(size.rows);
                self.emulator.push_csi(&[count], csi.last);
            }
            (0, b"", b'C' | b'a') => {
                let count = csi.number_or(0, 1).min(size.cols);
                self.emulator.push_csi(&[count], b'C');
            }
            (0, b"", b'D') => {
                let count = csi.number_or(0, 1).min(size.cols);
                self.emulator.push_csi(&[count], b'D');
            }
            (0, b"", b'G' | b'`') => {
                let col = csi.number_or(0, 1).min(size.cols);
                self.emulator.push_csi(&[col], b'G');
            }
            (0, b"", b'd') => {
                self.unpend();
                let (_, col) = self.emulator.position();
                self.go(csi.number_or(0, 1) - 1, col, modes);
            }
            (0 | b'?', b"", b'J' | b'K') => self.erase(csi),
            (0, b"", b'X') => {
                self.emulator.use_pen(self.pen.erasing());
                let count = csi.number_or(0, 1).min(size.cols);
                self.emulator.push_csi(&[count], b'X');
            }
            (0, b"", b'@') => self.insert_cells(csi.number_or(0, 1)),
            (0, b"", b'P') => self.delete_cells(csi.number_or(0, 1)),
            (0, b"", b'L' | b'M' | b'S') => self.shift_lines(csi.last, csi.number_or(0, 1)),
            // With more parameters it is mouse tracking.
            (0, b"", b'T') if !csi.params.contains(&b';') => {
                self.shift_lines(b'T', csi.number_or(0, 1));
            }
            (0, b"", b'b') => {
                if let Some(character) = modes.last_char {
                    // As in tmux, no more than a row: counts up to 65535 would cost dearly.
                    for _ in 0..csi.number_or(0, 1).min(size.cols) {
                        self.put(character, modes);
                    }
                }
            }
            (0, b"", b'I') => self.tab_forward(csi.number_or(0, 1), modes),
            (0, b"", b'Z') => self.tab_back(csi.number_or(0, 1), modes),
            (0, b"", b'g') => match csi.number_or(0, 0) {
                0 => {
                    let col = self.column();
                    self.stops(modes).retain(|&stop| stop != col);
                }
                3 => modes.tabs = Some(Vec::new()),
                _ => {}
            },
            (0, b"", b'r') => {
                let top = csi.number_or(0, 1) - 1;
                let bottom = csi.number_or(1, size.rows).min(size.rows) - 1;
                if top < bottom {
                    self.emulator.set_region(top, bottom);
                    self.go(0, 0, modes);
                }
            }
            (0, b"", b's') => self.save(),
            (0, b"", b'u') => self.restore(modes),
            (0, b"!", b'p') => {
                let (row, col) = self.emulator.position();
                self.emulator.set_region(0, size.rows - 1);
                self.emulator.move_to(row, col.min(size.cols - 1));
                self.pen = Pen::default();
                self.saved[usize::from(self.alternate)] = Saved::default();
            }
            (b'?', b"", b'h' | b'l') => {
                let on = csi.last == b'h';
                for number in csi.numbers() {
                    self.private_mode(number, on, modes);
                }
            }
            _ => {}
        }
    }

    fn private_mode(&mut self, number: u16, on: bool, modes: &Modes) {
        match (number, on) {
            (6, _) => self.go(0, 0, modes),
            (47 | 1047, _) => self.show_alternate(on),
            (1048, true) => self.save(),
            (1048, false) => self.restore(modes),
            (1049, true) if !self.alternate => {
                self.save();
                self.show_alternate(true);
            }
            (1049, false) if self.alternate || modes.saved[0].set => {
                self.show_alternate(false);
                self.restore(modes);
            }
            _ => {}
        }
    }

    /// The cursor stays where it was; the alternate screen is always entered empty, as in tmux.
    fn show_alternate(&mut self, on: bool) {
        if on == self.alternate {
            return;
        }
        let (row, _) = self.emulator.position();
        let col = self.column();
        self.emulator.show_alternate(on);
        if on {
            self.emulator.use_pen(Pen::default());
            self.emulator.push(b"\x1b[2J");
        }
        self.saved[1] = Saved::default();
        self.emulator.move_to(row, col);
        self.alternate = on;
    }

    /// To a row and column as the program counts them: in origin mode from the top of the region.
    fn go(&mut self, row: u16, col: u16, modes: &Modes) {
        let size = self.size();
        let (top, bottom) = self.emulator.region();
        let row = if modes.origin() { row.saturating_add(top).min(bottom) } else { row.min(size.rows - 1) };
        self.emulator.move_to(row, col.min(size.cols - 1));
    }

    fn save(&mut self) {
        let (row, _) = self.emulator.position();
        self.saved[usize::from(self.alternate)] = Saved { row, col: self.column(), pen: self.pen };
    }

    fn restore(&mut self, modes: &Modes) {
        let saved = self.saved[usize::from(self.alternate)];
        let (top, bottom) = self.emulator.region();
        let row = if modes.origin() { saved.row.clamp(top, bottom) } else { saved.row };
        self.emulator.move_to(row, saved.col);
        self.pen = saved.pen;
    }

    /// The cursor's column, also when the next character would wrap.
    pub fn column(&mut self) -> u16 {
        let (_, col) = self.emulator.position();
        col.min(self.size().cols - 1)
    }

    /// A cursor that would wrap is put on the last column: what follows moves it elsewhere or erases
    /// the character it stands behind.
    pub fn unpend(&mut self) {
        let cols = self.size().cols;
        let (_, col) = self.emulator.position();
        if col >= cols {
            self.emulator.push_csi(&[cols], b'G');
        }
    }

    /// Down one row, scrolling at the bottom of the region; the fresh row gets the background.
    pub fn line_feed(&mut self) {
        self.unpend();
        let (row, _) = self.emulator.position();
        self.emulator.push(b"\n");
        if self.pen.has_background() && row == self.emulator.region().1 {
            self.emulator.use_pen(self.pen.erasing());
            self.emulator.push(b"\x1b[2K");
        }
    }

    fn reverse_line_feed(&mut self) {
        self.unpend();
        let (row, _) = self.emulator.position();
        if row == self.emulator.region().0 {
            self.emulator.push(b"\x1bM");
            if self.pen.has_background() {
                self.emulator.use_pen(self.pen.erasing());
                self.emulator.push(b"\x1b[2K");
            }
        } else if row > 0 {
            self.emulator.push(b"\x1b[A");
        }
    }

    fn erase(&mut self, csi: &Csi<'_>) {
        let mode = csi.number_or(0, 0);
        if mode > 2 {
            return;
        }
        if mode > 0 {
            self.unpend();
        }
        self.emulator.use_pen(self.pen.erasing());
        self.emulator.push_csi(&[mode], csi.last);
    }

    fn insert_cells(&mut self, count: u16) {
        let count = count.min(self.size().cols);
        self.emulator.push_csi(&[count], b'@');
        if self.pen.has_background() {
            self.emulator.use_pen(self.pen.erasing());
            self.emulator.push_csi(&[count], b'X');
        }
    }

    fn delete_cells(&mut self, count: u16) {
        let cols = self.size().cols;
        let (_, col) = self.emulator.position();
        let count = count.min(cols.saturating_sub(col));
        if count == 0 {
            return;
        }
        self.emulator.push_csi(&[count], b'P');
        if self.pen.has_background() {
            self.emulator.use_pen(self.pen.erasing());
            self.emulator.push_csi(&[cols - count + 1], b'G');
            self.emulator.push_csi(&[count], b'X');
            self.emulator.push_csi(&[col + 1], b'G');
        }
    }

    /// IL, DL, SU and SD.
    fn shift_lines(&mut self, last: u8, count: u16) {
        self.unpend();
        let count = count.min(self.size().rows);
        let (row, col) = self.emulator.position();
        let (top, bottom) = self.emulator.region();
        if matches!(last, b'L' | b'M') && !(top..=bottom).contains(&row) {
            return;
        }
        self.emulator.push_csi(&[count], last);
        if !self.pen.has_background() {
            return;
        }
        let fresh = match last {
            b'L' => row..=bottom.min(row + count - 1),
            b'M' => row.max((bottom + 1).saturating_sub(count))..=bottom,
            b'S' => top.max((bottom + 1).saturating_sub(count))..=bottom,
            _ => top..=bottom.min(top + count - 1),
        };
        self.emulator.use_pen(self.pen.erasing());
        for row in fresh {
            self.emulator.move_to(row, 0);
            self.emulator.push(b"\x1b[2K");
        }
        self.emulator.move_to(row, col);
    }

    /// DECALN: the screen full of E.
    fn alignment(&mut self) {
        let size = self.size();
        self.emulator.set_region(0, size.rows - 1);
        self.emulator.use_pen(Pen::default());
        self.emulator.push(b"\x1b[2J");
        let row_of_e = vec![b'E'; usize::from(size.cols)];
        for row in 0..size.rows {
            self.emulator.move_to(row, 0);
            self.emulator.push(&row_of_e);
        }
        self.emulator.move_to(0, 0);
    }

    /// The custom tab stops, made from the default ones when there were none.
    fn stops<'a>(&self, modes: &'a mut Modes) -> &'a mut Vec<u16> {
        let cols = self.size().cols;
        modes.tabs.get_or_insert_with(|| (8..cols).step_by(8).collect())
    }

    pub fn tab_forward(&mut self, count: u16, modes: &Modes) {
        let cols = self.size().cols;
        let (_, mut col) = self.emulator.position();
        for _ in 0..count.min(cols) {
            if col >= cols - 1 {
                return;
            }
            col = match &modes.tabs {
                None => (col / 8 + 1) * 8,
                Some(stops) => stops.iter().copied().find(|&stop| stop > col).unwrap_or(cols),
            }
            .min(cols - 1);
        }
        self.emulator.push_csi(&[col + 1], b'G');
    }

    fn tab_back(&mut self, count: u16, modes: &Modes) {
        let mut col = self.column();
        for _ in 0..count.min(self.size().cols) {
            col = match &modes.tabs {
                None => col.saturating_sub(1) / 8 * 8,
                Some(stops) => stops.iter().copied().rfind(|&stop| stop < col).unwrap_or(0),
            };
        }
        self.emulator.push_csi(&[col + 1], b'G');
    }

    /// The main screen's lines are cut anew for another width, the alternate one is cropped.
    pub fn resize(&mut self, size: Size, modes: &mut Modes) {
        let old = self.size();
        if size == old {
            return;
        }
        let (row, _) = self.emulator.position();
        let at = Place { row: usize::from(row), col: usize::from(self.column()) };
        let slot = Place { row: usize::from(self.saved[0].row), col: usize::from(self.saved[0].col) };
        let bring = |lines: Vec<super::glyph::Line>, cursor: Place, flow: bool| {
            let (mut lines, mut cursor) =
                if flow && size.cols != old.cols { reflow(&lines, size.cols, cursor) } else { (crop(&lines, size.cols), cursor) };
            let gone = fit(&mut lines, size.rows, size.cols, &mut cursor);
            cursor.col = cursor.col.min(usize::from(size.cols) - 1);
            (lines, cursor, gone)
        };
        let scrolled = self.emulator.is_capturing().then(|| self.emulator.take_scrolled());
        let (emulator, cursor) = if self.alternate {
            let (main, slot, _) = bring(self.emulator.hidden_main(), slot, true);
            let (alternate, cursor, _) = bring(self.emulator.lines(), at, false);
            (self.saved[0].row, self.saved[0].col) = (slot.row as u16, slot.col as u16);
            let emulator = Emulator::showing(size, &main, Some(&alternate), scrolled);
            (emulator, cursor)
        } else {
            let (main, cursor, gone) = bring(self.emulator.lines(), at, true);
            let scrolled = scrolled.map(|mut lines| {
                lines.extend(gone.iter().map(super::emulator::ScrolledLine::of));
                lines
            });
            (Emulator::showing(size, &main, None, scrolled), cursor)
        };
        self.emulator = emulator;
        self.emulator.move_to(cursor.row as u16, cursor.col as u16);
        self.emulator.flush();
        for saved in &mut self.saved {
            saved.row = saved.row.min(size.rows - 1);
            saved.col = saved.col.min(size.cols - 1);
        }
        if size.cols != old.cols {
            modes.tabs = None;
        }
    }
}
