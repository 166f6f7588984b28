//! Draws a screen for an observer whose window has any size, sending only what changed.
//! Nothing of the program's own sequences may get through: only SGR, CUP, EL and clean text.

use super::pen::{Pen, write_csi};
use super::text::{self, push_clean};
use super::{Screen, Size};

/// What one observer's terminal shows.
#[derive(Clone, Debug)]
pub struct View {
    window: Size,
    /// The bytes each window row was last drawn with; empty when nothing is known.
    drawn: Vec<Vec<u8>>,
    /// First row and column of the screen that is in the window.
    offset: (u16, u16),
}

impl View {
    pub fn new(window: Size) -> View {
        View { window: Size { cols: window.cols.max(1), rows: window.rows.max(1) }, drawn: Vec::new(), offset: (0, 0) }
    }

    /// The window changed its size: all is drawn anew.
    pub fn resize(&mut self, window: Size) {
        *self = View::new(window);
    }

    /// Something else was drawn over the window: all is drawn anew.
    pub fn invalidate(&mut self) {
        self.drawn.clear();
    }

    /// The bytes that bring the observer's terminal from what was drawn last to the present.
    pub fn draw(&mut self, screen: &Screen, status: Option<&str>) -> Vec<u8> {
        let rows = self.window.rows - u16::from(status.is_some() && self.window.rows > 1);
        self.follow_cursor(screen, rows);
        let mut body = Vec::new();
        let first = self.drawn.len() != usize::from(self.window.rows);
        if first {
            body.extend_from_slice(b"\x1b[0m\x1b[H\x1b[2J");
            self.drawn = vec![Vec::new(); usize::from(self.window.rows)];
        }
        for row in 0..self.window.rows {
            let bytes = match status {
                Some(status) if row >= rows => self.status_row(status),
                _ => self.screen_row(screen, row, rows),
            };
            let known = &mut self.drawn[usize::from(row)];
            if *known != bytes {
                write_csi(&mut body, &[row + 1, 1], b'H');
                body.extend_from_slice(&bytes);
                *known = bytes;
            }
        }
        let mut out = b"\x1b[?2026h\x1b[?25l".to_vec();
        out.extend_from_slice(&body);
        self.place_cursor(screen, rows, &mut out);
        out.extend_from_slice(b"\x1b[?2026l");
        out
    }

    /// Moves the window over a larger screen just so far that the cursor is inside.
    fn follow_cursor(&mut self, screen: &Screen, rows: u16) {
        let (size, cursor) = (screen.size(), screen.cursor());
        if !cursor.visible {
            // a full-screen program parks a hidden cursor anywhere: its beginning says most
            self.offset = (0, 0);
            return;
        }
        let follow = |offset: u16, at: u16, room: u16, all: u16| {
            let room = room.max(1);
            // The beginning is the best part to see whenever the cursor is in it.
            if at < room {
                return 0;
            }
            let nearest = offset.min(at).max((at + 1).saturating_sub(room));
            nearest.min(all.saturating_sub(room))
        };
        self.offset = (follow(self.offset.0, cursor.row, rows, size.rows), follow(self.offset.1, cursor.col, self.window.cols, size.cols));
    }

    fn place_cursor(&self, screen: &Screen, rows: u16, out: &mut Vec<u8>) {
        let cursor = screen.cursor();
        let row = cursor.row.saturating_sub(self.offset.0);
        let col = cursor.col.saturating_sub(self.offset.1);
        if row < rows && col < self.window.cols {
            write_csi(out, &[row + 1, col + 1], b'H');
            if cursor.visible {
                out.extend_from_slice(b"\x1b[?25h");
            }
        }
    }

    fn screen_row(&self, screen: &Screen, row: u16, rows: u16) -> Vec<u8> {
        let size = screen.size();
        let mut out = Vec::with_capacity(usize::from(self.window.cols) + 16);
        let source = row + self.offset.0;
        let shown = size.cols.saturating_sub(self.offset.1).min(self.window.cols);
        if source >= size.rows || row >= rows {
            border(&mut out, self.window.cols);
            return out;
        }
        let mut pen = Pen::default();
        out.extend_from_slice(b"\x1b[0m");
        let mut col = 0;
        while col < shown {
            let Some(cell) = screen.cell(source, col + self.offset.1) else {
                break;
            };
            let wanted = Pen {
                fg: cell.fg,
                bg: cell.bg,
                bold: cell.bold,
                dim: cell.dim,
                italic: cell.italic,
                underline: cell.underline,
                inverse: cell.inverse,
                // its text is not in the cell
                concealed: false,
            };
            if wanted != pen {
                wanted.write(&mut out);
                pen = wanted;
            }
            let width = u16::from(cell.width);
            // Half of a wide character at the edge of the window is a blank.
            if cell.text.is_empty() || width == 0 || col + width > shown {
                out.push(b' ');
                col += 1;
            } else {
                push_clean(cell.text, &mut out);
                col += width;
            }
        }
        out.extend_from_slice(b"\x1b[0m");
        border(&mut out, self.window.cols - shown);
        out
    }

    fn status_row(&self, status: &str) -> Vec<u8> {
        let mut out = b"\x1b[0;7m".to_vec();
        let cols = usize::from(self.window.cols);
        let mut used = 0;
        for character in text::sanitise(status.as_bytes(), super::modes::TEXT_LIMIT).chars() {
            let width = text::width(character);
            if used + width > cols {
                break;
            }
            used += width;
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        out.resize(out.len() + cols - used, b' ');
        out.extend_from_slice(b"\x1b[0m");
        out
    }
}

/// The area of the window that the screen does not reach.
fn border(out: &mut Vec<u8>, cols: u16) {
    if cols > 0 {
        out.extend_from_slice(b"\x1b[0;2m");
        for _ in 0..cols {
            out.extend_from_slice("·".as_bytes());
        }
        out.extend_from_slice(b"\x1b[0m");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(cols: u16, rows: u16, bytes: &[u8]) -> Screen {
        let mut screen = Screen::new(Size { cols, rows });
        screen.feed(bytes, &mut Vec::new());
        screen
    }

    /// What an observer's terminal shows after the views were drawn on it.
    fn observed(window: Size, views: &[Vec<u8>]) -> Screen {
        let mut terminal = Screen::new(window);
        for bytes in views {
            terminal.feed(bytes, &mut Vec::new());
        }
        terminal
    }

    #[test]
    fn a_smaller_screen_gets_a_border_and_a_status() {
        let window = Size { cols: 6, rows: 4 };
        let mut view = View::new(window);
        let drawn = view.draw(&screen(4, 2, b"ab\r\ncd"), Some("st"));
        let terminal = observed(window, &[drawn]);
        let rows: Vec<String> = (0..4).map(|row| terminal.row_text(row)).collect();
        assert_eq!(rows, ["ab  ··", "cd  ··", "······", "st"]);
        assert!(terminal.cell(3, 5).is_some_and(|cell| cell.inverse));
        assert_eq!((terminal.cursor().row, terminal.cursor().col), (1, 2));
    }

    #[test]
    fn a_larger_screen_is_followed_at_the_cursor() {
        let window = Size { cols: 4, rows: 2 };
        let mut view = View::new(window);
        let mut watched = screen(10, 5, b"\x1b[5;9Hxy");
        let first = view.draw(&watched, None);
        assert_eq!(observed(window, std::slice::from_ref(&first)).row_text(1), "  xy");
        watched.feed(b"\x1b[H12\xe4\xb8\xad\x1b[D", &mut Vec::new());
        let second = view.draw(&watched, None);
        assert_eq!(observed(window, &[first, second]).row_text(0), "12中");
        watched.feed(b"\x1b[5;9H\x1b[?25l", &mut Vec::new());
        view.invalidate();
        let third = view.draw(&watched, None);
        assert_eq!(observed(window, &[third]).row_text(0), "12中", "a hidden cursor is not followed");
    }

    #[test]
    fn nothing_changed_draws_no_row() {
        let watched = screen(10, 5, b"hello");
        let mut view = View::new(Size { cols: 10, rows: 5 });
        view.draw(&watched, None);
        let again = view.draw(&watched, None);
        assert!(again.len() < 40, "{:?}", String::from_utf8_lossy(&again));
        view.invalidate();
        assert!(view.draw(&watched, None).len() > 40);
    }
}
