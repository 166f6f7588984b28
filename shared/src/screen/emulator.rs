//! The vt100 crate behind a small face: plain sequences in, glyphs and a position out.
//! It must not see anything of a program that `rewrite` has not translated.

use super::Size;
use super::glyph::{Glyph, Line, PaintOn, paint_lines, row_ansi};
use super::pen::{Color, Pen, write_csi};
use super::text::{CONCEALED, REPLACEMENT, width};
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};

/// Enough to make the call worth it, little enough to stay in the cache.
const BATCH: usize = 16 * 1024;

/// A row that left the top of the main screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScrolledLine {
    pub text: String,
    /// SGR and text, self-contained.
    pub ansi: Vec<u8>,
    /// It goes on in the next row.
    pub wrapped: bool,
}

impl ScrolledLine {
    pub(super) fn of(line: &Line) -> ScrolledLine {
        let ansi = row_ansi(&line.cells);
        let formatted = String::from_utf8_lossy(&ansi);
        let scrolled = scrolled_line(formatted.strip_suffix("\x1b[0m").unwrap_or(&formatted), line.wrapped);
        if line.cells.iter().all(|cell| !cell.pen.concealed) {
            return scrolled;
        }
        let blanked: Vec<Glyph> =
            line.cells.iter().map(|cell| if cell.pen.concealed { Glyph::new(" ", cell.width, cell.pen) } else { *cell }).collect();
        let blanked = row_ansi(&blanked);
        let text: String = basic_formatted_to_plain(&String::from_utf8_lossy(&blanked)).collect();
        ScrolledLine { text: text.trim_end_matches(' ').to_owned(), ..scrolled }
    }
}

#[derive(Default)]
struct Scrolled {
    on: bool,
    lines: Vec<ScrolledLine>,
}

impl vt100::Callbacks for Scrolled {
    fn on_scroll(&mut self, row: RowContents<'_>, alternate: bool) {
        if !self.on || alternate {
            return;
        }
        let mut state = BasicFormattedCaptureState::new();
        let mut formatted = String::new();
        if row.write_formatted_basic(&mut formatted, &mut state).is_err() {
            return;
        }
        // The crate tells whether the row wraps only by what it would write before the next one.
        let mut first = FirstChar(None);
        let _ = row.write_formatted_basic(&mut first, &mut state);
        let wrapped = first.0 != Some('\n');
        self.lines.push(scrolled_line(&formatted, wrapped));
    }
}

fn scrolled_line(formatted: &str, wrapped: bool) -> ScrolledLine {
    let formatted = formatted.replace(REPLACEMENT, "\u{fffd}");
    let plain: String = basic_formatted_to_plain(&blank_concealed(&formatted)).collect();
    let formatted = conceal(formatted);
    let mut ansi = formatted.into_bytes();
    if ansi.contains(&0x1b) {
        ansi.extend_from_slice(b"\x1b[0m");
    }
    ScrolledLine { text: plain.trim_end_matches(' ').to_owned(), ansi, wrapped }
}

/// Concealed characters as blanks.
fn blank_concealed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(character) = chars.next() {
        if chars.next_if_eq(&CONCEALED).is_some() {
            out.extend(std::iter::repeat_n(' ', width(character)));
        } else {
            out.push(character);
        }
    }
    out
}

/// The mark of concealed characters as SGR.
fn conceal(text: String) -> String {
    if !text.contains(CONCEALED) {
        return text;
    }
    let mut out = String::with_capacity(text.len() * 2);
    let mut chars = text.chars().peekable();
    while let Some(character) = chars.next() {
        if chars.next_if_eq(&CONCEALED).is_some() {
            out.push_str("\x1b[8m");
            out.push(character);
            out.push_str("\x1b[28m");
        } else {
            out.push(character);
        }
    }
    out
}

/// Takes one character and then refuses, which ends the writing early.
struct FirstChar(Option<char>);

impl std::fmt::Write for FirstChar {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = self.0.or(text.chars().next());
        Err(std::fmt::Error)
    }
}

pub(super) struct Emulator {
    parser: vt100::Parser<Scrolled>,
    out: Vec<u8>,
    sent: Pen,
    size: Size,
    /// First and last row of the scroll region.
    region: (u16, u16),
    faults: u32,
}

impl Emulator {
    pub fn new(size: Size) -> Emulator {
        Emulator {
            parser: fresh(size, Scrolled::default()),
            out: Vec::with_capacity(BATCH + 256),
            sent: Pen::default(),
            size,
            region: (0, size.rows - 1),
            faults: 0,
        }
    }

    /// An emulator showing `main`, and over it `alternate`; the cursor is at home.
    pub fn showing(size: Size, main: &[Line], alternate: Option<&[Line]>, scrolled: Option<Vec<ScrolledLine>>) -> Emulator {
        let mut emulator = Emulator::new(size);
        paint_lines(main, PaintOn::Emulator, &mut emulator.out);
        if let Some(lines) = alternate {
            emulator.out.extend_from_slice(b"\x1b[?47h");
            paint_lines(lines, PaintOn::Emulator, &mut emulator.out);
        }
        emulator.out.extend_from_slice(b"\x1b[m\x1b[H");
        emulator.flush();
        let callbacks = emulator.parser.callbacks_mut();
        callbacks.on = scrolled.is_some();
        callbacks.lines = scrolled.unwrap_or_default();
        emulator
    }

    pub fn size(&self) -> Size {
        self.size
    }

    pub fn region(&self) -> (u16, u16) {
        self.region
    }

    /// How often the crate panicked and was rebuilt.
    pub fn faults(&self) -> u32 {
        self.faults
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        if self.out.len() >= BATCH {
            self.flush();
        }
    }

    pub fn push_char(&mut self, character: char) {
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    pub fn push_csi(&mut self, numbers: &[u16], last: u8) {
        write_csi(&mut self.out, numbers, last);
    }

    /// Makes `pen` the one that what follows is drawn or erased with.
    pub fn use_pen(&mut self, pen: Pen) {
        // The crate knows bold or dim, never both, and nothing concealed.
        let pen = Pen { dim: pen.dim && !pen.bold, concealed: false, ..pen };
        if pen != self.sent {
            pen.write(&mut self.out);
            self.sent = pen;
        }
    }

    pub fn move_to(&mut self, row: u16, col: u16) {
        self.push_csi(&[row + 1, col + 1], b'H');
    }

    /// Sets the scroll region; the cursor goes home.
    pub fn set_region(&mut self, top: u16, bottom: u16) {
        self.region = (top, bottom);
        self.push_csi(&[top + 1, bottom + 1], b'r');
    }

    /// Shows the other screen. The crate has a region per screen, terminals have one.
    pub fn show_alternate(&mut self, on: bool) {
        self.push(if on { b"\x1b[?47h" } else { b"\x1b[?47l" });
        let (top, bottom) = self.region;
        self.set_region(top, bottom);
    }

    pub fn reset(&mut self) {
        self.push(b"\x1bc");
        self.sent = Pen::default();
        self.region = (0, self.size.rows - 1);
    }

    pub fn flush(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let parser = &mut self.parser;
        let out = &self.out;
        let outcome = catch_unwind(AssertUnwindSafe(|| parser.process(out)));
        self.out.clear();
        if outcome.is_err() {
            self.rebuild();
        }
    }

    /// After a panic: what can still be read is shown by a fresh emulator, the culprit is skipped.
    fn rebuild(&mut self) {
        self.faults += 1;
        let read = catch_unwind(AssertUnwindSafe(|| {
            let screen = self.parser.screen();
            let position = screen.cursor_position();
            let active = lines_of(screen, self.size);
            if screen.alternate_screen() { (position, self.hidden_main(), Some(active)) } else { (position, active, None) }
        }));
        let scrolled = std::mem::take(self.parser.callbacks_mut());
        self.parser = fresh(self.size, Scrolled::default());
        if let Ok((position, main, alternate)) = read {
            let mut bytes = Vec::new();
            paint_lines(&main, PaintOn::Emulator, &mut bytes);
            if let Some(lines) = &alternate {
                bytes.extend_from_slice(b"\x1b[?47h");
                paint_lines(lines, PaintOn::Emulator, &mut bytes);
            }
            self.sent.write(&mut bytes);
            write_csi(&mut bytes, &[self.region.0 + 1, self.region.1 + 1], b'r');
            write_csi(&mut bytes, &[position.0 + 1, position.1 + 1], b'H');
            let parser = &mut self.parser;
            if catch_unwind(AssertUnwindSafe(|| parser.process(&bytes))).is_err() {
                self.parser = fresh(self.size, Scrolled::default());
                self.sent = Pen::default();
            }
        }
        *self.parser.callbacks_mut() = scrolled;
    }

    /// Row and column from 0; the column equals the width when the next character will wrap.
    pub fn position(&mut self) -> (u16, u16) {
        self.flush();
        self.flushed_position()
    }

    pub fn flushed_position(&self) -> (u16, u16) {
        debug_assert!(self.out.is_empty());
        self.parser.screen().cursor_position()
    }

    pub fn row_wrapped(&self, row: u16) -> bool {
        self.parser.screen().row_wrapped(row)
    }

    /// Text (empty for the second half of a wide character and where it is concealed), width and pen of a cell.
    pub fn cell(&self, row: u16, col: u16) -> Option<(&str, u8, Pen)> {
        let screen = self.parser.screen();
        let cell = screen.cell(row, col)?;
        if cell.is_wide_continuation() && col > 0 {
            let base = screen.cell(row, col - 1)?;
            if base.is_wide() {
                return Some(("", 0, pen_of(base)));
            }
        }
        if !cell.has_contents() {
            return Some(("", 1, pen_of(cell).erasing()));
        }
        let text = cell.contents();
        if is_concealed(cell) {
            return Some(("", if cell.is_wide() { 2 } else { 1 }, pen_of(cell)));
        }
        let text = if text.starts_with(REPLACEMENT) { "\u{fffd}" } else { text };
        Some((text, if cell.is_wide() { 2 } else { 1 }, pen_of(cell)))
    }

    pub fn lines(&self) -> Vec<Line> {
        debug_assert!(self.out.is_empty());
        lines_of(self.parser.screen(), self.size)
    }

    pub fn line(&self, row: u16) -> Line {
        debug_assert!(self.out.is_empty());
        line_of(self.parser.screen(), self.size, row)
    }

    /// The main screen under the alternate one.
    pub fn hidden_main(&self) -> Vec<Line> {
        let mut probe = fresh(self.size, ());
        *probe.screen_mut() = self.parser.screen().clone();
        probe.process(b"\x1b[?47l");
        lines_of(probe.screen(), self.size)
    }

    pub fn capture(&mut self, on: bool) {
        self.flush();
        self.parser.callbacks_mut().on = on;
    }

    pub fn is_capturing(&self) -> bool {
        self.parser.callbacks().on
    }

    pub fn take_scrolled(&mut self) -> Vec<ScrolledLine> {
        std::mem::take(&mut self.parser.callbacks_mut().lines)
    }
}

fn fresh<C: vt100::Callbacks>(size: Size, callbacks: C) -> vt100::Parser<C> {
    let rows = NonZeroU16::new(size.rows).unwrap_or(NonZeroU16::MIN);
    let cols = NonZeroU16::new(size.cols).unwrap_or(NonZeroU16::MIN);
    vt100::Parser::new_with_callbacks(rows, cols, 0, callbacks)
}

fn lines_of(screen: &vt100::Screen, size: Size) -> Vec<Line> {
    (0..size.rows).map(|row| line_of(screen, size, row)).collect()
}

fn line_of(screen: &vt100::Screen, size: Size, row: u16) -> Line {
    let mut cells: Vec<Glyph> = Vec::with_capacity(usize::from(size.cols));
    for col in 0..size.cols {
        let Some(cell) = screen.cell(row, col) else {
            break;
        };
        let follows_wide = cells.last().is_some_and(|before| before.width == 2);
        cells.push(if follows_wide {
            Glyph::second_half()
        } else if cell.has_contents() {
            let width = if cell.is_wide() { 2 } else { 1 };
            if is_concealed(cell) {
                Glyph::new(&cell.contents().replace(CONCEALED, ""), width, pen_of(cell))
            } else {
                Glyph::new(cell.contents(), width, pen_of(cell))
            }
        } else {
            Glyph::blank(pen_of(cell).erasing())
        });
    }
    Line { cells, wrapped: screen.row_wrapped(row) }
}

fn pen_of(cell: &vt100::Cell) -> Pen {
    Pen {
        fg: color_of(cell.fgcolor()),
        bg: color_of(cell.bgcolor()),
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        underline: cell.underline(),
        inverse: cell.inverse(),
        concealed: is_concealed(cell),
    }
}

fn is_concealed(cell: &vt100::Cell) -> bool {
    // shorter ones have no room for the mark
    let text = cell.contents();
    text.len() > CONCEALED.len_utf8() && text.contains(CONCEALED)
}

fn color_of(color: vt100::Color) -> Color {
    match color {
        vt100::Color::Default => Color::Default,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest known panic of the crate. `rewrite` never sends this; the next one may be unknown.
    #[test]
    fn a_panic_of_the_crate_costs_only_the_culprit() {
        let mut emulator = Emulator::new(Size { cols: 80, rows: 24 });
        emulator.push(b"\x1b[9;1Hkept\x1b[31m");
        emulator.flush();
        emulator.push("\x1b[24;80H\u{26a0}\u{fe0f}\x1b[23;80Hx".as_bytes());
        emulator.flush();
        assert_eq!(emulator.faults(), 1);
        emulator.push(b"\x1b[2;1Hgoes on");
        emulator.flush();
        let text = |row| -> String { (0..80).filter_map(|col| emulator.cell(row, col).map(|(text, _, _)| text.to_owned())).collect() };
        let all: Vec<String> = (0..24).map(text).collect();
        assert!(all.iter().any(|row| row == "kept") && all[1] == "goes on", "{all:?}");
    }
}
