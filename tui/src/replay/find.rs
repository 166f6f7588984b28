//! Where a pattern is to be seen on a screen, so that it can be highlighted. Pure.

use std::collections::HashSet;

use shared::screen::Screen;

/// What is looked for. All lower case finds both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    pub ignore_case: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ignore_case: !text.chars().any(char::is_uppercase) }
    }

    /// The characters of a line that belong to a match.
    fn matches(&self, line: &[char]) -> Vec<std::ops::Range<usize>> {
        let wanted: Vec<char> = self.text.chars().map(|c| self.folded(c)).collect();
        let mut found = Vec::new();
        let mut at = 0;
        while !wanted.is_empty() && at + wanted.len() <= line.len() {
            let is_match = wanted.iter().zip(&line[at..]).all(|(wanted, c)| *wanted == self.folded(*c));
            if is_match {
                found.push(at..at + wanted.len());
                at += wanted.len();
            } else {
                at += 1;
            }
        }
        found
    }

    pub fn is_in(&self, line: &str) -> bool {
        !self.matches(&line.chars().collect::<Vec<_>>()).is_empty()
    }

    fn folded(&self, c: char) -> char {
        let mut lower = c.to_lowercase();
        match lower.next() {
            Some(folded) if self.ignore_case && lower.next().is_none() => folded,
            _ => c,
        }
    }

    /// The cells (row, column) of all matches; lines that wrap are one line.
    pub fn cells(&self, screen: &Screen) -> HashSet<(u16, u16)> {
        let mut cells = HashSet::new();
        let size = screen.size();
        let (mut line, mut places) = (Vec::new(), Vec::new());
        for row in 0..size.rows {
            for col in 0..size.cols {
                let Some(cell) = screen.cell(row, col) else { break };
                let text = if cell.text.is_empty() && cell.width > 0 { " " } else { cell.text };
                for c in text.chars() {
                    line.push(c);
                    places.push((row, col));
                }
            }
            if screen.row_wrapped(row) && row + 1 < size.rows {
                continue;
            }
            for range in self.matches(&line) {
                cells.extend(&places[range]);
            }
            line.clear();
            places.clear();
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::screen::Size;

    #[test]
    fn matches_are_cells_also_where_lines_wrap() {
        let mut screen = Screen::new(Size { cols: 6, rows: 3 });
        screen.feed("ab Fehler 世 fe".as_bytes(), &mut Vec::new());
        let cells = |text: &str| {
            let mut cells: Vec<_> = Pattern::new(text).cells(&screen).into_iter().collect();
            cells.sort_unstable();
            cells
        };
        assert_eq!(cells("fehler"), [(0, 3), (0, 4), (0, 5), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(cells("FEHLER"), []);
        assert_eq!(cells("世"), [(1, 4)]);
        assert_eq!(cells("fe").len(), 4);
        assert_eq!(cells(""), []);
    }
}
