//! Lines as they were seen, with what matches in them and the lines around, cut to what a person reads. Pure.

use std::ops::Range;

use shared::seen::{Seen, Text};

use super::Pattern;

/// A line that is longer is looked at in parts.
pub const LONG: usize = 64 << 10;

/// Bytes of a line in a hit, and of a line around it.
const SHOWN: usize = 2 << 10;
const SHOWN_AROUND: usize = 512;

/// A line that has a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    /// In bytes of `text`.
    pub ranges: Vec<(usize, usize)>,
    /// As a person could see it, if parts of it were hidden.
    pub perceived: Option<String>,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// Each line of `text` with a match whose last byte is at a place that is `meant`; with that place. Hidden bytes are masked in the
/// lines around it.
pub fn find(
    pattern: &Pattern,
    text: &[u8],
    context: usize,
    meant: impl Fn(usize) -> bool,
    is_hidden: impl Fn(usize) -> bool,
    mut each: impl FnMut(Line, usize),
) {
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        lines.push(start..end);
        start = end + 1;
    }
    for (number, line) in lines.iter().enumerate() {
        let found = pattern.find_in(&text[line.clone()]);
        let Some(first) = found.iter().find(|range| meant(line.start + range.end - 1)) else { continue };
        let masked = |line: &Range<usize>| masked(text, line.clone(), &is_hidden);
        let around = |lines: &[Range<usize>]| {
            lines
                .iter()
                .map(|line| masked(line).map_or_else(|| beginning(&text[line.clone()]), |text| beginning(text.as_bytes())))
                .collect()
        };
        let (shown, ranges) = cut(&text[line.clone()], &found, first.start);
        let hit = Line {
            text: shown,
            ranges,
            perceived: masked(line).map(|text| cut(text.as_bytes(), &[], 0).0),
            before: around(&lines[number.saturating_sub(context)..number]),
            after: around(&lines[number + 1..lines.len().min(number + 1 + context)]),
        };
        each(hit, line.start + first.end - 1);
    }
}

/// The lines with a match of a text that is kept somewhere else than in a recording.
pub fn lines_of(pattern: &Pattern, text: &str, context: usize) -> Vec<Line> {
    let mut seen = Text::default();
    Seen::default().feed(text.trim_end_matches('\n').as_bytes(), 0, &mut seen);
    let mut found = Vec::new();
    find(pattern, &seen.bytes, context, |_| true, |_| false, |line, _| found.push(line));
    found
}

/// The line with a mark in the place of each hidden run; nothing if none of it is hidden.
fn masked(text: &[u8], line: Range<usize>, is_hidden: &impl Fn(usize) -> bool) -> Option<String> {
    if !line.clone().any(is_hidden) {
        return None;
    }
    let mut out = String::new();
    let mut at = line.start;
    while at < line.end {
        let hides = is_hidden(at);
        let end = (at..line.end).find(|next| is_hidden(*next) != hides).unwrap_or(line.end);
        let part = String::from_utf8_lossy(&text[at..end]);
        if hides && !part.trim().is_empty() {
            out += &shared::model_text::hidden_mark(part.chars().count());
        } else {
            out += &part;
        }
        at = end;
    }
    Some(out)
}

fn beginning(line: &[u8]) -> String {
    cut(line, &[], 0).0.chars().take(SHOWN_AROUND).collect()
}

/// The part of a line around `at`, and where in it the matches are.
fn cut(line: &[u8], found: &[Range<usize>], at: usize) -> (String, Vec<(usize, usize)>) {
    let start = if line.len() <= SHOWN { 0 } else { at.saturating_sub(SHOWN / 4).min(line.len() - SHOWN) };
    let end = line.len().min(start + SHOWN);
    // never in the middle of a character
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let start = (start..end).find(|at| !is_inside(*at)).unwrap_or(start);
    let end = (end..line.len()).take(3).find(|at| !is_inside(*at)).unwrap_or(end);
    let mut text = String::new();
    if start > 0 {
        text.push('…');
    }
    let mut ranges = Vec::new();
    let mut copied = start;
    for range in found {
        let (from, to) = (range.start.clamp(copied, end), range.end.clamp(copied, end));
        if from < to {
            text += &String::from_utf8_lossy(&line[copied..from]);
            let begin = text.len();
            text += &String::from_utf8_lossy(&line[from..to]);
            ranges.push((begin, text.len()));
            copied = to;
        }
    }
    text += &String::from_utf8_lossy(&line[copied..end]);
    if end < line.len() {
        text.push('…');
    }
    (text, ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(&shared::search::Pattern { text: text.into(), ..Default::default() }).expect("fine")
    }

    #[test]
    fn lines_come_with_those_around_them() {
        let found = lines_of(&pattern("x"), "one\ntwo x\x1b[31mx\nthree\nx four\n", 1);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].text.as_str(), &found[0].ranges[..]), ("two xx", &[(4, 5), (5, 6)][..]));
        assert_eq!((&found[0].before[..], &found[0].after[..]), (&["one".to_owned()][..], &["three".to_owned()][..]));
        assert_eq!((found[1].before.len(), found[1].after.len()), (1, 0));
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let text = format!("{}größe{}", "é".repeat(9000), "世".repeat(9000));
        let found = lines_of(&pattern("größe"), &text, 0).remove(0);
        let (from, to) = found.ranges[0];
        assert_eq!(&found.text[from..to], "größe");
        assert!(found.text.len() < SHOWN + 20 && found.text.starts_with('…') && found.text.ends_with('…'));
        assert!(!found.text.contains('\u{fffd}'));
        let short = cut(b"a\xffb", std::slice::from_ref(&(2..3)), 0);
        assert_eq!(short, ("a\u{fffd}b".to_owned(), vec![(4, 5)]), "what is no text is replaced");
    }
}
