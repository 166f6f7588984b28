//! A terminal's screen: bytes in, cells, modes and events out; keyframes to start again from.
//! It must not do I/O or look at the clock, and nothing a program sends may make it panic.

mod csi;
mod emulator;
mod event;
mod glyph;
mod hidden;
mod keyframe;
mod modes;
mod passthrough;
mod pen;
mod print;
mod query;
mod render;
mod rewrite;
mod scan;
mod scanner;
mod skip;
mod text;
mod token;

pub use emulator::ScrolledLine;
pub use event::{Event, Located, NotificationSource};
pub use hidden::{PerceivedRow, hidden_ranges, perceived_output, perceived_row};
pub use keyframe::{Extra, Keyframe};
pub use modes::{Charset, CursorShape, KeyFlags, Modes, SavedModes};
pub use passthrough::Passthrough;
pub use pen::Color;
pub use query::{Query, answer, resize_report};
pub use render::View;
pub use scanner::Scanner;

use event::observe;
use rewrite::Canvas;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use token::{Token, Tokenizer};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

impl Size {
    /// Below two columns a wide character has no place; above these limits a screen is an attack.
    #[must_use]
    pub fn clamped(self) -> Size {
        Size { cols: self.cols.clamp(2, 1000), rows: self.rows.clamp(2, 500) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    pub row: u16,
    pub col: u16,
    pub visible: bool,
    pub shape: CursorShape,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "five independent attributes of a cell")]
pub struct Cell<'a> {
    /// Empty when nothing was drawn here, or what was drawn is concealed.
    pub text: &'a str,
    /// 0 is the second half of a wide character.
    pub width: u8,
    pub fg: Color,
    pub bg: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
}

pub struct Screen {
    tokenizer: Tokenizer,
    modes: Modes,
    canvas: Canvas,
    skipping: bool,
}

impl Screen {
    pub fn new(size: Size) -> Screen {
        Screen { tokenizer: Tokenizer::new(), modes: Modes::default(), canvas: Canvas::new(size.clamped()), skipping: true }
    }

    /// Takes any bytes, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Located>) {
        let may_skip = self.skipping && !self.canvas.emulator.is_capturing();
        match skip::plan(self, bytes).filter(|_| may_skip) {
            Some(plan) => {
                self.draw(bytes, 0..plan.from, events);
                self.skim(bytes, plan.from..plan.to, events);
                let last = self.size().rows - 1;
                self.canvas.emulator.move_to(last, 0);
                self.draw(bytes, plan.to..bytes.len(), events);
            }
            None => self.draw(bytes, 0..bytes.len(), events),
        }
        self.canvas.emulator.flush();
    }

    fn draw(&mut self, bytes: &[u8], range: std::ops::Range<usize>, events: &mut Vec<Located>) {
        let base = range.start;
        let (modes, canvas) = (&mut self.modes, &mut self.canvas);
        self.tokenizer.feed(&bytes[range], |token, start, end| {
            modes.apply(&token);
            observe(&token, modes, |event| {
                let event = match event {
                    Event::Query(query, _) if query.needs_cursor() => Event::Query(query, Some(reported_position(canvas, modes))),
                    other => other,
                };
                events.push(located(base, start, end, event));
            });
            canvas.apply(&token, modes);
        });
    }

    /// Follows modes, colours and events of bytes whose text will have scrolled away.
    fn skim(&mut self, bytes: &[u8], range: std::ops::Range<usize>, events: &mut Vec<Located>) {
        let base = range.start;
        let (modes, canvas) = (&mut self.modes, &mut self.canvas);
        self.tokenizer.feed(&bytes[range], |token, start, end| {
            modes.apply(&token);
            match &token {
                Token::Csi(csi) if csi.last == b'm' && csi.prefix == 0 => {
                    if csi.intermediates.is_empty() {
                        canvas.pen.apply(csi);
                    }
                }
                _ => observe(&token, modes, |event| {
                    events.push(located(base, start, end, event));
                }),
            }
        });
    }

    /// Without skipping the result is the same, only slower: for tests of exactly that.
    #[doc(hidden)]
    pub fn set_skipping(&mut self, on: bool) {
        self.skipping = on;
    }

    pub fn resize(&mut self, size: Size) {
        self.canvas.resize(size.clamped(), &mut self.modes);
    }

    pub fn size(&self) -> Size {
        self.canvas.size()
    }

    pub fn cursor(&self) -> Cursor {
        let (row, col) = self.canvas.emulator.flushed_position();
        Cursor { row, col: col.min(self.size().cols - 1), visible: self.modes.cursor_visible(), shape: self.modes.cursor_shape }
    }

    pub fn is_alternate(&self) -> bool {
        self.canvas.alternate
    }

    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    pub fn title(&self) -> &str {
        &self.modes.title
    }

    pub fn cell(&self, row: u16, col: u16) -> Option<Cell<'_>> {
        let (text, width, pen) = self.canvas.emulator.cell(row, col)?;
        Some(Cell {
            text,
            width,
            fg: pen.fg,
            bg: pen.bg,
            bold: pen.bold,
            dim: pen.dim,
            italic: pen.italic,
            underline: pen.underline,
            inverse: pen.inverse,
        })
    }

    /// The text of a row without trailing blanks; concealed text is blank.
    pub fn row_text(&self, row: u16) -> String {
        let mut text = String::new();
        for col in 0..self.size().cols {
            match self.canvas.emulator.cell(row, col) {
                Some(("", width, _)) => text.extend(std::iter::repeat_n(' ', usize::from(width))),
                Some((cell, _, _)) => text.push_str(cell),
                None => break,
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    pub fn row_wrapped(&self, row: u16) -> bool {
        self.canvas.emulator.row_wrapped(row)
    }

    /// Colours and text of a row, self-contained; it ends with the default colours.
    pub fn row_ansi(&self, row: u16) -> Vec<u8> {
        glyph::row_ansi(&self.canvas.emulator.line(row).cells)
    }

    /// What is needed to go on from here with another screen.
    pub fn keyframe(&self) -> Keyframe {
        keyframe::take(self)
    }

    pub fn restore(keyframe: &Keyframe) -> Screen {
        keyframe::restore(keyframe)
    }

    /// The cheap pass that goes on from here while nobody looks.
    pub fn scanner(&self) -> Scanner {
        Scanner { tokenizer: self.tokenizer.clone(), modes: self.modes.clone() }
    }

    /// Whether rows that leave the top of the main screen are kept for [`Screen::take_scrolled`].
    pub fn capture_scrolled(&mut self, on: bool) {
        self.canvas.emulator.capture(on);
    }

    pub fn take_scrolled(&mut self) -> Vec<ScrolledLine> {
        self.canvas.emulator.take_scrolled()
    }

    /// How often the emulator crate panicked and was rebuilt.
    pub fn faults(&self) -> u32 {
        self.canvas.emulator.faults()
    }
}

fn located(base: usize, start: isize, end: usize, event: Event) -> Located {
    Located { start: base.cast_signed() + start, end: base + end, event }
}

/// The cursor as CPR tells it: from 1, in origin mode from the top of the region.
fn reported_position(canvas: &mut Canvas, modes: &Modes) -> (u16, u16) {
    let (row, _) = canvas.emulator.position();
    let top = if modes.origin() { canvas.emulator.region().0 } else { 0 };
    (row.saturating_sub(top) + 1, canvas.column() + 1)
}
