//! Text from outside made safe and fit to show: names, titles, reasons, paths. Pure.

use std::fmt::Write;

use unicode_normalization::UnicodeNormalization;
use unicode_width::UnicodeWidthChar;

/// Combining marks on one character that are shown. Writing systems need up to four; stacks of more only cover other lines.
pub const MAX_MARKS: usize = 4;

/// Whether a character can act on a terminal, reorder text, or hide in it: controls, bidirectional and zero-width characters,
/// fillers, tags, and selectors that no font shows.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character leaves a mark on the screen by itself.
fn has_ink(c: char) -> bool {
    !is_unsafe(c) && !c.is_whitespace() && c != '\u{2800}' && c.width().unwrap_or(0) > 0
}

/// Whether nothing of the text can be seen.
pub fn is_blank(text: &str) -> bool {
    !text.chars().any(has_ink)
}

/// The composed form (NFC), in which texts that look the same are the same.
pub fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// Unsafe characters shown as `·`, and so is a stack of combining marks beyond [`MAX_MARKS`].
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        let is_mark = !is_unsafe(c) && c.width() == Some(0);
        marks = if is_mark { marks + 1 } else { 0 };
        match c {
            _ if is_unsafe(c) => out.push('·'),
            _ if marks <= MAX_MARKS => out.push(c),
            _ if marks == MAX_MARKS + 1 => out.push('·'),
            _ => {}
        }
    }
    out
}

pub fn is_visible(text: &str) -> bool {
    !text.chars().any(is_unsafe)
}

/// Whether a character has more combining marks than are shown.
pub fn has_mark_stack(text: &str) -> bool {
    let mut marks = 0;
    text.chars().any(|c| {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        marks > MAX_MARKS
    })
}

/// The same JSON with every unsafe character escaped: they occur only in strings, where JSON can write them as `\uXXXX`.
pub fn visible_json(json: String) -> String {
    let is_fine = |c: char| c == '\n' || !is_unsafe(c);
    if json.chars().all(is_fine) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_fine(c) {
            safe.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        }
    }
    safe
}

/// What `%41` means in addresses; what is no such thing stays as it is.
pub fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let coded = (*first == b'%').then(|| tail.get(..2)).flatten().and_then(|hex| std::str::from_utf8(hex).ok());
        match coded.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[2..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

/// Columns the text takes in a terminal.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// At most `width` columns, with `…` where something was cut.
pub fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// `fit`, then filled with spaces to exactly `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    let mut out = fit(text, width);
    let missing = width.saturating_sub(columns(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// A command line as a person would type it.
pub fn shell_words(argv: &[String]) -> String {
    let quoted: Vec<String> = argv
        .iter()
        .map(|word| {
            let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=@%+,".contains(c));
            if plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
        })
        .collect();
    visible(&quoted.join(" "))
}

/// A count with its noun: `1 session`, `3 sessions`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_become_dots() {
        assert_eq!(visible("a\x1b[31mb\u{202e}c\n"), "a·[31mb·c·");
        assert!(is_visible("größe 世界"));
        assert!(!is_visible("tab\there"));
        assert_eq!(visible("a\u{e0041}\u{3164}b\u{ad}"), "a··b·");
        assert_eq!(visible(&format!("z{}y", "\u{301}".repeat(3000))), format!("z{}·y", "\u{301}".repeat(MAX_MARKS)));
        assert!(is_blank("\u{2800} \u{200b}\u{301}") && !is_blank("x") && !is_blank("世"));
    }

    #[test]
    fn json_says_the_same_in_characters_that_do_nothing() {
        let value = serde_json::json!({"a\u{9b}": "b\u{202e}c\u{7f}\u{feff}\u{e0041} größe 世界 \n"});
        let text = visible_json(serde_json::to_string_pretty(&value).expect("JSON"));
        assert!(text.lines().all(is_visible), "{text:?}");
        assert!(text.contains("größe 世界"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("the same"), value);
    }

    #[test]
    fn addresses_are_decoded_and_the_rest_stays() {
        for (coded, plain) in [("a%20b%C3%BC", "a bü"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("", "")] {
            assert_eq!(percent_decoded(coded.as_bytes()), plain.as_bytes());
        }
    }

    #[test]
    fn fitting_counts_columns() {
        assert_eq!(fit("hello", 5), "hello");
        assert_eq!(fit("hello!", 5), "hell…");
        assert_eq!(fit("世界世界", 5), "世界…");
        assert_eq!(pad("世", 4), "世  ");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn commands_are_quoted_like_a_person_would() {
        let argv = ["bash", "-c", "echo it's"].map(String::from);
        assert_eq!(shell_words(&argv), r"bash -c 'echo it'\''s'");
    }
}
