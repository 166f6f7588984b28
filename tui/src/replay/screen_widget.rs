//! Draws a recorded screen into a part of a window: as it was, from some row and column on, or all of it in small.
//! Only cells get out: nothing a program has ever sent reaches the user's terminal as anything but a visible character.

use std::collections::HashSet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Widget;
use shared::screen::{self, Cell, Screen, Size};
use shared::text::is_visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Which part is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From this row and column on.
    From { row: u16, col: u16 },
    /// Everything, in small.
    All,
}

/// The part of a screen that is to be seen in a smaller window: with the cursor in it, from the left edge if that will do.
pub fn at_cursor(screen: &Screen, area: Rect) -> Part {
    let (size, cursor) = (screen.size(), screen.cursor());
    let from = |at: u16, most: u16, room: u16| if most <= room { 0 } else { (at + 1).saturating_sub(room).min(most - room) };
    // an empty rest below the cursor is not worth a row
    let last = (0..size.rows).rev().find(|row| !screen.row_text(*row).is_empty()).unwrap_or(0).max(cursor.row);
    let row = if last < area.height { 0 } else { from(if screen.is_alternate() { cursor.row } else { last }, size.rows, area.height) };
    Part::From { row, col: from(cursor.col, size.cols, area.width) }
}

/// The part that is to be seen of a screen on which something other than the cursor changes: from the left edge; of a program
/// that has the whole screen the top, else the end of what was printed.
pub fn at_edge(screen: &Screen, area: Rect) -> Part {
    match at_cursor(screen, area) {
        Part::From { row, .. } if !screen.is_alternate() => Part::From { row, col: 0 },
        _ => Part::From { row: 0, col: 0 },
    }
}

pub struct ScreenWidget<'a> {
    pub screen: &'a Screen,
    pub part: Part,
    /// Cells that belong to a match.
    pub found: &'a HashSet<(u16, u16)>,
}

/// A screen whose cursor is the user's own terminal's.
pub struct WithoutCursor<'a>(ScreenWidget<'a>);

impl Widget for WithoutCursor<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        if let Part::From { row, col } = self.0.part {
            self.0.draw(row, col, None, area, buffer);
        }
    }
}

impl<'a> ScreenWidget<'a> {
    pub fn without_cursor(self) -> WithoutCursor<'a> {
        WithoutCursor(self)
    }
}

impl Widget for ScreenWidget<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        match self.part {
            Part::From { row, col } => self.draw(row, col, Some(self.screen.cursor()).filter(|cursor| cursor.visible), area, buffer),
            Part::All => self.draw_small(area, buffer),
        }
    }
}

impl ScreenWidget<'_> {
    fn draw(&self, top: u16, left: u16, cursor: Option<screen::Cursor>, area: Rect, buffer: &mut Buffer) {
        let size = self.screen.size();
        let (cols, rows) = (size.cols.saturating_sub(left).min(area.width), size.rows.saturating_sub(top).min(area.height));
        for y in 0..rows {
            let mut x = 0;
            while x < cols {
                let (row, col) = (top + y, left + x);
                let Some(cell) = self.screen.cell(row, col) else { break };
                let (symbol, width) = symbol(&cell, cols - x);
                let mut style = style(&cell);
                if self.found.contains(&(row, col)) {
                    style = style.fg(Color::Black).bg(Color::Yellow).remove_modifier(Modifier::REVERSED);
                }
                if cursor.is_some_and(|cursor| (cursor.row, cursor.col) == (row, col)) {
                    style = if style.add_modifier.contains(Modifier::REVERSED) {
                        style.remove_modifier(Modifier::REVERSED)
                    } else {
                        style.add_modifier(Modifier::REVERSED)
                    };
                }
                buffer[(area.x + x, area.y + y)].set_symbol(&symbol).set_style(style);
                x += width;
            }
        }
        edge(cols, rows, area, buffer);
    }

    /// A quarter of a cell for so many cells that all of them fit: the picture of a page from afar.
    fn draw_small(&self, area: Rect, buffer: &mut Buffer) {
        const QUARTERS: [&str; 16] = [" ", "▘", "▝", "▀", "▖", "▌", "▞", "▛", "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█"];
        if area.is_empty() {
            return;
        }
        let size = self.screen.size();
        let (step, shown) = scale(size, area);
        // the first and last row or column of a quarter, of as many as it has
        let span = |n: u16, most: u16| {
            let from = (f64::from(n) * step / 2.0) as u16;
            let to = ((f64::from(n + 1) * step / 2.0) as u16).min(most);
            from..to.max(from + 1).min(most)
        };
        for y in 0..shown.rows {
            for x in 0..shown.cols {
                let (mut bits, mut colour, mut back) = (0, None, None);
                for (bit, (dx, dy)) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().enumerate() {
                    for row in span(2 * y + dy, size.rows) {
                        for col in span(2 * x + dx, size.cols) {
                            let Some(cell) = self.screen.cell(row, col) else { continue };
                            let is_found = self.found.contains(&(row, col));
                            if !cell.text.trim().is_empty() {
                                bits |= 1 << bit;
                                let style = style(&cell);
                                colour = if is_found { Some(Color::Yellow) } else { colour.or(style.fg) };
                            }
                            if cell.bg != screen::Color::Default {
                                back = back.or(style(&cell).bg);
                            }
                        }
                    }
                }
                let style = Style::new().fg(colour.unwrap_or(Color::Reset)).bg(back.unwrap_or(Color::Reset));
                buffer[(area.x + x, area.y + y)].set_symbol(QUARTERS[bits]).set_style(style);
            }
        }
    }
}

/// Where the recorded screen ends in a larger window.
fn edge(cols: u16, rows: u16, area: Rect, buffer: &mut Buffer) {
    let dim = Style::new().fg(Color::DarkGray);
    if cols < area.width {
        for y in 0..rows {
            buffer[(area.x + cols, area.y + y)].set_symbol("│").set_style(dim);
        }
    }
    if rows < area.height {
        for x in 0..cols {
            buffer[(area.x + x, area.y + rows)].set_symbol("─").set_style(dim);
        }
        if cols < area.width {
            buffer[(area.x + cols, area.y + rows)].set_symbol("┘").set_style(dim);
        }
    }
}

/// How many cells one cell of the small picture stands for, and how large that is.
fn scale(size: Size, area: Rect) -> (f64, Size) {
    let (cols, rows) = (f64::from(size.cols), f64::from(size.rows));
    let step = (cols / f64::from(area.width)).max(rows / f64::from(area.height)).max(1.0);
    let fits = |cells: f64, most: u16| ((cells / step).ceil() as u16).clamp(1, most);
    (step, Size { cols: fits(cols, area.width), rows: fits(rows, area.height) })
}

/// What is written for a cell, and how many columns that takes; never more than there is room for.
fn symbol(cell: &Cell<'_>, room: u16) -> (String, u16) {
    let width = u16::from(cell.width.max(1));
    // a wide character cut by the edge, or its second half
    if cell.width == 0 || width > room || cell.text.is_empty() {
        return (" ".into(), if cell.width == 0 { 1 } else { width.min(room) });
    }
    if is_visible(cell.text) && cell.text.width() == usize::from(width) {
        return (cell.text.to_owned(), width);
    }
    // joiners and selectors, about which terminals do not agree: the character itself
    let first = cell.text.chars().find(|c| is_visible(c.encode_utf8(&mut [0; 4])));
    match first.filter(|c| c.width() == Some(usize::from(width))) {
        Some(c) => (c.to_string(), width),
        None => (if width == 2 { "··" } else { "·" }.into(), width),
    }
}

fn colour(colour: screen::Color) -> Color {
    match colour {
        screen::Color::Default => Color::Reset,
        screen::Color::Indexed(index) => Color::Indexed(index),
        screen::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
    }
}

fn style(cell: &Cell<'_>) -> Style {
    let mut style = Style::new().fg(colour(cell.fg)).bg(colour(cell.bg));
    for (is_set, modifier) in [
        (cell.bold, Modifier::BOLD),
        (cell.dim, Modifier::DIM),
        (cell.italic, Modifier::ITALIC),
        (cell.underline, Modifier::UNDERLINED),
        (cell.inverse, Modifier::REVERSED),
    ] {
        if is_set {
            style = style.add_modifier(modifier);
        }
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bytes: &str, size: Size, part: Part, area: Rect) -> Buffer {
        let mut screen = Screen::new(size);
        screen.feed(bytes.as_bytes(), &mut Vec::new());
        let mut buffer = Buffer::empty(area);
        ScreenWidget { screen: &screen, part, found: &HashSet::new() }.render(area, &mut buffer);
        buffer
    }

    fn text(buffer: &Buffer, y: u16) -> String {
        (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect()
    }

    const TOP: Part = Part::From { row: 0, col: 0 };

    #[test]
    fn cells_keep_their_looks() {
        let buffer = drawn("\x1b[1;31mred\x1b[0m \x1b[7mon\x1b[0m 世界", Size { cols: 12, rows: 2 }, TOP, Rect::new(0, 0, 14, 4));
        assert_eq!(buffer[(0, 0)].fg, Color::Indexed(1));
        assert!(buffer[(0, 0)].modifier.contains(Modifier::BOLD) && buffer[(4, 0)].modifier.contains(Modifier::REVERSED));
        assert_eq!((buffer[(7, 0)].symbol(), buffer[(9, 0)].symbol(), buffer[(12, 0)].symbol()), ("世", "界", "│"));
        assert!(text(&buffer, 2).starts_with("────────────┘"));
    }

    #[test]
    fn a_wide_character_at_the_edge_is_left_out() {
        let size = Size { cols: 12, rows: 2 };
        let buffer = drawn("ab世cd", size, TOP, Rect::new(0, 0, 3, 1));
        assert_eq!(text(&buffer, 0), "ab ");
        let buffer = drawn("ab世cd", size, Part::From { row: 0, col: 3 }, Rect::new(0, 0, 3, 1));
        assert_eq!(text(&buffer, 0), " cd");
    }

    #[test]
    fn the_cursor_is_shown_unless_it_is_hidden() {
        let size = Size { cols: 6, rows: 2 };
        let is_reversed = |bytes| drawn(bytes, size, TOP, Rect::new(0, 0, 6, 2))[(2, 0)].modifier.contains(Modifier::REVERSED);
        assert!(is_reversed("ab"));
        assert!(!is_reversed("ab\x1b[?25l"));
    }

    #[test]
    fn everything_fits_in_small() {
        let rows = vec!["x".repeat(120); 40].join("\r\n");
        let buffer = drawn(&rows, Size { cols: 120, rows: 40 }, Part::All, Rect::new(0, 0, 60, 10));
        assert!(text(&buffer, 0).starts_with(&"█".repeat(30)) && text(&buffer, 0).ends_with(' '), "{}", text(&buffer, 0));
        assert!(text(&buffer, 9).starts_with('█'));
    }

    #[test]
    fn nothing_but_visible_characters() {
        let buffer = drawn("a\u{202e}b\u{200d}c\u{fe0f}d\x1b]52;c;aGk=\x07e", Size { cols: 20, rows: 2 }, TOP, Rect::new(0, 0, 20, 1));
        assert!(is_visible(&text(&buffer, 0)), "{:?}", text(&buffer, 0));
    }
}
