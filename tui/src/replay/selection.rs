//! What is marked to be copied: lines by keys, or characters by dragging. Pure.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Lines,
    Characters,
}

/// A line, and a column in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub line: usize,
    pub col: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    anchor: Point,
    pub head: Point,
    pub shape: Shape,
}

impl Selection {
    pub fn new(at: Point, shape: Shape) -> Self {
        Self { anchor: at, head: at, shape }
    }

    fn ends(&self) -> (Point, Point) {
        (self.anchor.min(self.head), self.anchor.max(self.head))
    }

    /// Nothing was dragged over.
    pub fn is_click(&self) -> bool {
        self.shape == Shape::Characters && self.anchor == self.head
    }

    pub fn lines(&self) -> usize {
        let (from, to) = self.ends();
        to.line - from.line + 1
    }

    /// Columns of a line that are marked.
    pub fn columns(&self, line: usize) -> Option<Range<usize>> {
        let (from, to) = self.ends();
        if !(from.line..=to.line).contains(&line) {
            return None;
        }
        if self.shape == Shape::Lines {
            return Some(0..usize::MAX);
        }
        let start = if line == from.line { from.col } else { 0 };
        let end = if line == to.line { to.col + 1 } else { usize::MAX };
        Some(start..end)
    }

    /// What is marked, as text; lines that were wrapped are whole.
    pub fn text<'a>(&self, line: impl Fn(usize) -> Option<(&'a str, bool)>) -> String {
        let (from, to) = self.ends();
        let mut text = String::new();
        for n in from.line..=to.line {
            let (Some((content, is_wrapped)), Some(columns)) = (line(n), self.columns(n)) else { continue };
            let part = cut(content, &columns);
            text.push_str(if is_wrapped { &part } else { part.trim_end() });
            if n < to.line && !is_wrapped {
                text.push('\n');
            }
        }
        text
    }
}

/// The characters that are in these columns; one that is cut by an edge belongs to it.
fn cut(text: &str, columns: &Range<usize>) -> String {
    let mut col = 0;
    let mut part = String::new();
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if columns.contains(&col) || (width == 2 && columns.contains(&(col + 1))) || (width == 0 && !part.is_empty() && col <= columns.end)
        {
            part.push(c);
        }
        col += width;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [(&str, bool); 4] = [("first line   ", false), ("a long one that goes ", true), ("on 世界 here", false), ("last", false)];

    fn marked(from: (usize, usize), to: (usize, usize), shape: Shape) -> String {
        let mut selection = Selection::new(Point { line: from.0, col: from.1 }, shape);
        selection.head = Point { line: to.0, col: to.1 };
        selection.text(|line| LINES.get(line).copied())
    }

    #[test]
    fn text_is_what_was_marked_in_either_direction() {
        assert_eq!(marked((0, 0), (0, 0), Shape::Lines), "first line");
        assert_eq!(marked((3, 0), (1, 5), Shape::Lines), "a long one that goes on 世界 here\nlast");
        assert_eq!(marked((0, 6), (0, 9), Shape::Characters), "line");
        assert_eq!(marked((0, 9), (0, 6), Shape::Characters), "line");
        assert_eq!(marked((2, 4), (2, 5), Shape::Characters), "世界", "half of a wide character is all of it");
        assert_eq!(marked((0, 6), (3, 1), Shape::Characters), "line\na long one that goes on 世界 here\nla");
    }
}
