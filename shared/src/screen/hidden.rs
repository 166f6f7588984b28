//! Printed text that nobody can see: concealed (SGR 8), or drawn in the colour of its background. It only tells; whoever shows
//! text decides what to do about it.

use std::ops::Range;

use super::pen::{Color, Pen};
use super::query::{BACKGROUND, FOREGROUND, Rgb, palette};
use super::token::{Token, Tokenizer};
use super::{Screen, Size};
use unicode_width::UnicodeWidthChar;

/// Colours that differ by no more than this in each channel cannot be told apart; black on our default background is one pair.
const SAME: u8 = 20;

/// The widest and highest screen that output is laid out on.
const MAX_COLS: usize = 1000;
const MAX_ROWS: usize = 500;

impl Pen {
    /// Whether what it draws cannot be read: concealed, or in the colour of its background. Default colours are those that
    /// programs are told when they ask.
    pub fn is_hidden(self) -> bool {
        let (ink, paper) = (resolved(self.fg, FOREGROUND), resolved(self.bg, BACKGROUND));
        self.concealed || [(ink.0, paper.0), (ink.1, paper.1), (ink.2, paper.2)].iter().all(|(a, b)| a.abs_diff(*b) <= SAME)
    }
}

fn resolved(color: Color, default: Rgb) -> Rgb {
    match color {
        Color::Default => default,
        Color::Indexed(index) => palette(index),
        Color::Rgb(red, green, blue) => (red, green, blue),
    }
}

/// The ranges of raw terminal output that were printed so that nobody could see them, from the default colours on.
pub fn hidden_ranges(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut pen, mut found) = (Pen::default(), Vec::new());
    Tokenizer::new().feed(bytes, |token, start, end| match token {
        Token::Csi(csi) if csi.last == b'm' && csi.prefix == 0 && csi.intermediates.is_empty() => pen.apply(&csi),
        Token::Escape { intermediates: [], last: b'c' } => pen = Pen::default(),
        Token::Text(_) if pen.is_hidden() => found.push(usize::try_from(start).unwrap_or(0)..end),
        _ => {}
    });
    found
}

/// A row as a person sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PerceivedRow {
    /// Hidden characters are blanks.
    pub text: String,
    /// How many characters are hidden.
    pub hidden: usize,
}

/// What a person sees of a row that is given as SGR sequences and text.
pub fn perceived_row(ansi: &[u8]) -> PerceivedRow {
    let (mut pen, mut row) = (Pen::default(), PerceivedRow::default());
    Tokenizer::new().feed(ansi, |token, _, _| match token {
        Token::Csi(csi) if csi.last == b'm' => pen.apply(&csi),
        Token::Text(text) => {
            let text = String::from_utf8_lossy(text);
            if pen.is_hidden() {
                row.hidden += ink(&text);
                row.text.extend(text.chars().flat_map(|c| std::iter::repeat_n(' ', c.width().unwrap_or(0))));
            } else {
                row.text.push_str(&text);
            }
        }
        _ => {}
    });
    row.text.truncate(row.text.trim_end_matches(' ').len());
    row
}

/// Characters that are not blank.
fn ink(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).count()
}

/// Output of a program as a terminal leaves it on the screen, and how many of the characters that were printed are not there:
/// concealed, overwritten, erased, or inside of control strings.
pub fn perceived_output(text: &str) -> (String, usize) {
    let widest = text.lines().map(str::len).max().unwrap_or(0).saturating_add(1);
    let height = text.lines().count().saturating_add(1);
    let size = Size { cols: widest.clamp(80, MAX_COLS) as u16, rows: height.clamp(24, MAX_ROWS) as u16 };
    let mut screen = Screen::new(size);
    screen.capture_scrolled(true);
    // a pipe's lines end with LF alone
    let mut rest = text;
    while let Some((line, tail)) = rest.split_once('\n') {
        screen.feed(line.as_bytes(), &mut Vec::new());
        screen.feed(b"\r\n", &mut Vec::new());
        rest = tail;
    }
    screen.feed(rest.as_bytes(), &mut Vec::new());
    let mut rows: Vec<(PerceivedRow, bool)> = screen.take_scrolled().iter().map(|line| (perceived_row(&line.ansi), line.wrapped)).collect();
    rows.extend((0..size.rows).map(|row| (perceived_row(&screen.row_ansi(row)), screen.row_wrapped(row))));
    let used = rows.iter().rposition(|(row, _)| !row.text.is_empty()).map_or(0, |last| last + 1);
    let mut out = String::new();
    for (row, wrapped) in &rows[..used] {
        out.push_str(&row.text);
        if *wrapped {
            // blanks at the margin belong to the line
            let missing = usize::from(size.cols).saturating_sub(row.text.chars().map(|c| c.width().unwrap_or(0)).sum());
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            out.push('\n');
        }
    }
    if !text.ends_with('\n') {
        out.truncate(out.trim_end_matches('\n').len());
    }
    let left_out = printed(text).saturating_sub(ink(&out));
    (out, left_out)
}

/// Characters that were sent, in text and in control strings.
fn printed(text: &str) -> usize {
    let mut count = 0;
    Tokenizer::new().feed(text.as_bytes(), |token, _, _| match token {
        Token::Text(part) | Token::Osc(part) | Token::String { payload: part, .. } => count += ink(&String::from_utf8_lossy(part)),
        _ => {}
    });
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concealed_and_same_coloured_text_is_hidden() {
        for (ansi, text, hidden) in [
            (&b"plain \x1b[31mred\x1b[0m"[..], "plain red", 0),
            (b"a\x1b[8mb c\x1b[28md", "a   d", 2),
            (b"\x1b[31;41mx\x1b[0my", " y", 1),
            (b"\x1b[38;2;9;9;9;48;2;10;10;12mx\x1b[0my", " y", 1),
            (b"\x1b[38;5;16mblack\x1b[0m.", "     .", 5),
            (b"\x1b[30mblack\x1b[47mon white", "     on white", 5),
            (b"\x1b[7;30mno\x1b[27m", "", 2),
            (b"\x1b[8m\xe4\xb8\xad\x1b[0mx", "  x", 1),
        ] {
            assert_eq!(perceived_row(ansi), PerceivedRow { text: text.into(), hidden }, "{:?}", String::from_utf8_lossy(ansi));
        }
        assert!(matches!(hidden_ranges(b"a\x1b[8mbc\n\x1b[0md").as_slice(), [range] if *range == (5..8)));
    }

    #[test]
    fn output_is_what_stays_on_the_screen() {
        for (text, shown, left_out) in [
            ("one\ntwo\n", "one\ntwo\n", 0),
            ("\x1b[32mok\x1b[0m done", "ok done", 0),
            ("10%\r20%\n", "20%\n", 3),
            ("evil\r\x1b[2Kgood\n", "good\n", 4),
            ("evil\n\x1b[A\x1b[2Kgood\n", "good\n", 4),
            ("a\x1b[8mevil\x1b[0mb\n", "a    b\n", 4),
            ("\x1b[?1049hevil\x1b[?1049lgood", "good", 4),
            ("\x1b]0;evil\x07good", "good", 6),
            ("abc\x08\x08xy\n", "axy\n", 2),
        ] {
            assert_eq!(perceived_output(text), (shown.to_owned(), left_out), "{text:?}");
        }
        let long = format!("\x1b[1m{}\x1b[0m\n{}", "x ".repeat(3000), "line\n".repeat(1200));
        let (shown, left_out) = perceived_output(&long);
        assert_eq!((shown.len(), left_out), (5999 + 1 + 6000, 0), "the last blank of a line is not seen");
    }
}
