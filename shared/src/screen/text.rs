//! Text as the screen needs it: decoding, line drawing, widths, and cleaning of strings that people will
//! read. It must not know positions.

use super::modes::Charset;
use crate::text::is_unsafe;
use unicode_width::UnicodeWidthChar;

/// vt100 refuses U+FFFD, so this private character stands for it inside the emulator.
pub const REPLACEMENT: char = '\u{10fffd}';

/// Follows each concealed character inside the emulator, whose cells cannot be concealed. `drawn` lets no program print it.
pub const CONCEALED: char = '\u{e0001}';

/// DEC Special Graphics for `_` (0x5f) to `~` (0x7e).
const LINE_DRAWING: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤',
    '≥', 'π', '≠', '£', '·',
];

/// The character that `character` draws, in the form the emulator takes; `None` draws nothing.
pub fn drawn(character: char, charset: Charset) -> Option<char> {
    match character {
        '\u{5f}'..='\u{7e}' if charset == Charset::LineDrawing => Some(LINE_DRAWING[character as usize - 0x5f]),
        ' '..='~' => Some(character),
        // Raw C1 controls act on no UTF-8 terminal. The variation selector would widen the cell behind
        // it, which vt100 panics over and tmux does not do.
        '\0'..='\u{9f}' | '\u{fe0f}' => None,
        '\u{fffd}' => Some(REPLACEMENT),
        // What reorders or hides text takes no cell, and would only come out of one again to fool somebody.
        // Joiners are left: letters and emoji need them.
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => None,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => None,
        other => Some(other),
    }
}

/// The columns a drawn character takes.
pub fn width(character: char) -> usize {
    character.width().unwrap_or(0).min(2)
}

/// Calls `each` for every character of a run; each maximal invalid part is one U+FFFD.
pub fn decode(run: &[u8], mut each: impl FnMut(char)) {
    for chunk in run.utf8_chunks() {
        chunk.valid().chars().for_each(&mut each);
        if !chunk.invalid().is_empty() {
            each('\u{fffd}');
        }
    }
}

/// The last character of a run that took a cell, as drawn.
pub fn last_printed(run: &[u8], charset: Charset) -> Option<char> {
    // Nearly every run ends like this.
    if let Some(&byte @ 0x20..=0x7e) = run.last()
        && charset == Charset::Ascii
    {
        return Some(char::from(byte));
    }
    let mut end = run.len();
    while end > 0 {
        // A character, or an invalid part, never reaches over a byte that begins another one.
        let start = run[..end].iter().rposition(|&byte| !(0x80..0xc0).contains(&byte)).unwrap_or(0);
        let mut found = None;
        decode(&run[start..end], |character| {
            found = drawn(character, charset).filter(|&character| width(character) > 0).or(found);
        });
        if found.is_some() {
            return found;
        }
        end = start;
    }
    None
}

/// Text of a program made fit for showing: no control or bidi characters, at most `limit` bytes.
pub fn sanitise(bytes: &[u8], limit: usize) -> String {
    let mut clean = String::new();
    let mut full = false;
    // Invalid bytes cost three each; looking at more than this cannot add anything.
    decode(&bytes[..bytes.len().min(limit * 4)], |character| {
        if full || is_unsafe(character) {
            return;
        }
        if clean.len() + character.len_utf8() > limit {
            full = true;
        } else {
            clean.push(character);
        }
    });
    clean
}

/// Cell text for an observer's terminal; joiners are kept, they belong to the picture.
pub fn push_clean(text: &str, out: &mut Vec<u8>) {
    for character in text.chars() {
        let character = if character == REPLACEMENT { '\u{fffd}' } else { character };
        if character == '\u{200d}' || character == '\u{200c}' || !is_unsafe(character) {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            // fillers take columns although they show nothing
            out.resize(out.len() + width(character), b' ');
        }
    }
}

/// `7501;rest` → its number and the rest.
pub fn split_osc(payload: &[u8]) -> (Option<u16>, &[u8]) {
    let split = memchr::memchr(b';', payload).unwrap_or(payload.len());
    let digits = &payload[..split];
    let rest = payload.get(split + 1..).unwrap_or_default();
    if digits.is_empty() || digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return (None, rest);
    }
    (Some(super::token::number(digits)), rest)
}

/// The decoded path of a `file://host/path` URI, or of a bare absolute path.
pub fn path_of_uri(uri: &str) -> Option<String> {
    let path = match uri.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/')?..],
        None => uri,
    };
    if !path.starts_with('/') {
        return None;
    }
    let bytes = crate::text::percent_decoded(path.as_bytes());
    Some(sanitise(&bytes, super::modes::TEXT_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_printed_character_skips_what_takes_no_cell() {
        for (run, expected) in
            [("abc\r\n", Some('c')), ("\r\n", None), ("e\u{301}\u{302}", Some('e')), ("中\u{fe0f}\t", Some('中')), ("\u{85}", None)]
        {
            assert_eq!(last_printed(run.as_bytes(), Charset::Ascii), expected, "{run:?}");
        }
        assert_eq!(last_printed(b"a\xff\xfe", Charset::Ascii), Some(REPLACEMENT));
        assert_eq!(last_printed(b"xq", Charset::LineDrawing), Some('─'));
    }

    #[test]
    fn text_for_people_is_clean_and_bounded() {
        assert_eq!(sanitise("a\x1bb\u{202e}c\u{9b}\n".as_bytes(), 99), "abc");
        assert_eq!(sanitise("日本語".as_bytes(), 7), "日本");
    }
}
