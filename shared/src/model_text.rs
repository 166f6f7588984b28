//! Text for a language model: what a person would see of it, with a mark where something is hidden. A model reads every
//! character, so that text which nobody sees could give it instructions behind its user's back. Pure.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

use crate::screen::perceived_output;
use crate::text::{MAX_MARKS, is_unsafe};

/// A text of any origin as a model gets it. Terminal sequences are carried out, as on a screen; characters that cannot be seen
/// are named by their code, or counted.
pub fn for_model(text: &str) -> String {
    let mut bytes = text.bytes().zip(text.bytes().skip(1).chain([0]));
    let has_controls =
        bytes.any(|(byte, next)| (byte < 0x20 && !matches!(byte, b'\n' | b'\t')) && !(byte == b'\r' && next == b'\n') || byte == 0x7f);
    if !has_controls {
        return escape_hidden(text);
    }
    let (shown, left_out) = perceived_output(text);
    let mut out = escape_hidden(&shown);
    if left_out > 0 {
        let separator = if out.is_empty() || out.ends_with('\n') {
            ""
        } else if text.contains('\n') {
            "\n"
        } else {
            " "
        };
        let _ = write!(out, "{separator}{}", left_out_mark(left_out));
        if text.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// The mark for characters that were printed but cannot be seen.
pub fn left_out_mark(count: usize) -> String {
    format!("[{count} characters left out: concealed, invisible, overwritten or erased]")
}

/// The mark at the end of a row of a screen that has hidden characters.
pub fn hidden_mark(count: usize) -> String {
    format!("[{count} hidden characters]")
}

/// Names or counts characters that cannot be seen: controls, zero-width and bidirectional characters, tags, variation
/// selectors, stacks of combining marks. Line ends and tabs stay.
pub fn escape_hidden(text: &str) -> String {
    if text.is_ascii() && !text.bytes().any(|byte| byte == 0x7f || byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r')) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut hidden: Vec<char> = Vec::new();
    let (mut before, mut marks) = ('\0', 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or('\0');
        let is_mark = c.width() == Some(0) && !is_unsafe(c) && !is_selector(c);
        marks = if is_mark { marks + 1 } else { 0 };
        let is_hidden = match c {
            '\n' | '\t' => false,
            '\r' => next != '\n',
            // letters and emoji of several writing systems need joiners and one selector
            '\u{200c}' | '\u{200d}' => !joins(before) || !joins(next),
            '\u{fe0e}' | '\u{fe0f}' => is_selector(before) || is_unsafe(before) || before.is_ascii_alphabetic(),
            _ => is_unsafe(c) || is_selector(c) || marks > MAX_MARKS,
        };
        if is_hidden {
            hidden.push(c);
        } else {
            flush(&mut hidden, &mut out);
            out.push(c);
        }
        before = c;
    }
    flush(&mut hidden, &mut out);
    out
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a joiner beside it can have a meaning.
fn joins(c: char) -> bool {
    !c.is_ascii() && (c == '\u{fe0f}' || !is_unsafe(c) && !is_selector(c))
}

fn flush(hidden: &mut Vec<char>, out: &mut String) {
    match hidden.as_slice() {
        [] => {}
        [c] => {
            let _ = write!(out, "<U+{:04X}>", *c as u32);
        }
        [first, ..] => {
            let _ = write!(out, "<{} hidden characters from U+{:04X}>", hidden.len(), *first as u32);
        }
    }
    hidden.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_cannot_be_seen_are_named() {
        for (text, expected) in [
            ("plain\ttext\r\n größe 世界 e\u{301}", "plain\ttext\r\n größe 世界 e\u{301}"),
            ("a\u{200b}b", "a<U+200B>b"),
            ("a\u{202e}b\u{202c}", "a<U+202E>b<U+202C>"),
            ("hi\u{e0069}\u{e0067}\u{e006e}", "hi<3 hidden characters from U+E0069>"),
            ("👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3}", "👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3}"),
            ("a\u{200d}b x\u{fe0f}\u{fe01}", "a<U+200D>b x<2 hidden characters from U+FE0F>"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("\u{feff}bom", "<U+FEFF>bom"),
            ("c1\u{9b}31m", "c1<U+009B>31m"),
        ] {
            assert_eq!(for_model(text), expected, "{text:?}");
        }
        let stack = format!("z{}", "\u{301}".repeat(1000));
        assert_eq!(for_model(&stack), format!("z{}<996 hidden characters from U+0301>", "\u{301}".repeat(4)));
    }

    #[test]
    fn terminal_sequences_are_carried_out() {
        for (text, expected) in [
            ("\x1b[32mok\x1b[0m\n", "ok\n"),
            ("ok\x1b[8mevil\x1b[0m", "ok [4 characters left out: concealed, invisible, overwritten or erased]"),
            ("evil\rgood\nx\n", "good\nx\n[4 characters left out: concealed, invisible, overwritten or erased]\n"),
            ("a\x07b", "ab"),
        ] {
            assert_eq!(for_model(text), expected, "{text:?}");
        }
    }
}
