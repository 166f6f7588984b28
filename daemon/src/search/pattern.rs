//! What is looked for, ready to be looked for: in a line, and quickly in much text.

use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};
use shared::message::Failure;

use super::sieve::Sieve;

/// Memory of a compiled expression, and of what it remembers while it looks: larger ones are refused, not endured.
const MAX_REGEX: usize = 4 << 20;

/// Matches that are marked in one line.
const MAX_RANGES: usize = 100;

pub struct Pattern {
    matcher: Matcher,
    /// Passes over raw bytes without stripping them; not every pattern has one.
    pub sieve: Option<Sieve>,
}

enum Matcher {
    Literal(Box<Finder<'static>>),
    Regex(Regex),
}

impl Pattern {
    pub fn new(asked: &shared::search::Pattern) -> Result<Self, Failure> {
        asked.check()?;
        if !asked.regex && !asked.ignore_case {
            let matcher = Matcher::Literal(Box::new(Finder::new(asked.text.as_bytes()).into_owned()));
            return Ok(Self { matcher, sieve: Sieve::exact(asked.text.as_bytes()) });
        }
        let text = if asked.regex { asked.text.clone() } else { regex::escape(&asked.text) };
        let regex = RegexBuilder::new(&text)
            .case_insensitive(asked.ignore_case)
            .multi_line(true)
            .size_limit(MAX_REGEX)
            .dfa_size_limit(MAX_REGEX)
            .build()
            .map_err(|error| Failure::usage(refusal(&asked.text, &error)))?;
        if regex.is_match(b"") {
            return Err(Failure::usage(format!(
                "the pattern {:?} also finds nothing at all, on every line: say what must be there",
                asked.text
            )));
        }
        let sieve = match asked.regex {
            true if asked.ignore_case => None,
            true => certain(&asked.text).and_then(|literal| Sieve::exact(&literal)),
            false => Sieve::without_case(asked.text.as_bytes()),
        };
        Ok(Self { matcher: Matcher::Regex(regex), sieve })
    }

    fn find_at(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        match &self.matcher {
            Matcher::Literal(finder) => finder.find(&text[from..]).map(|at| from + at..from + at + finder.needle().len()),
            Matcher::Regex(regex) => {
                let mut from = from;
                while from <= text.len() {
                    let found = regex.find_at(text, from)?.range();
                    if !found.is_empty() {
                        return Some(found);
                    }
                    from = found.end + 1;
                }
                None
            }
        }
    }

    /// Every match in a line.
    pub fn find_in(&self, line: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(range) = self.find_at(line, from) {
            from = range.end;
            found.push(range);
            if found.len() == MAX_RANGES {
                break;
            }
        }
        found
    }

    /// Where in a text of many lines those are that have a match. An expression may run on over the end of a line: then that
    /// line is looked at alone.
    pub fn lines_in(&self, text: &[u8], mut each: impl FnMut(usize)) {
        let mut from = 0;
        while let Some(found) = self.find_at(text, from) {
            let start = memrchr(b'\n', &text[..found.start]).map_or(0, |at| at + 1);
            let end = memchr(b'\n', &text[found.start..]).map_or(text.len(), |at| found.start + at);
            if found.end <= end {
                each(found.start);
            } else if let Some(found) = self.find_at(&text[start..end], 0) {
                each(start + found.start);
            }
            from = end + 1;
            if from >= text.len() {
                return;
            }
        }
    }
}

/// The longest text that every match of an expression has in it; too short a one tells little.
fn certain(pattern: &str) -> Option<Vec<u8>> {
    let hir = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern).ok()?;
    literal_in(&hir).filter(|literal| literal.len() > 2 && !literal.iter().any(u8::is_ascii_control))
}

fn literal_in(hir: &Hir) -> Option<Vec<u8>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(literal.0.to_vec()),
        HirKind::Concat(parts) => parts.iter().filter_map(literal_in).max_by_key(Vec::len),
        HirKind::Capture(capture) => literal_in(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => literal_in(&repetition.sub),
        _ => None,
    }
}

fn refusal(pattern: &str, error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => format!("the pattern {pattern:?} is too large to be looked for: ask for less repetition"),
        error => {
            // the last line says what is wrong, those above draw where
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("{pattern:?} is no regular expression: {reason}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, regex: bool, ignore_case: bool) -> Pattern {
        Pattern::new(&shared::search::Pattern { text: text.into(), regex, ignore_case }).expect("fine")
    }

    #[test]
    fn lines_are_found_one_by_one() {
        let text = b"one two\nthree\n\nfour one one\nlast one";
        let lines = |pattern: &Pattern| {
            let mut found = Vec::new();
            pattern.lines_in(text, |at| found.push(at));
            found
        };
        assert_eq!(lines(&pattern("one", false, false)), [0, 20, 33]);
        assert_eq!(lines(&pattern("ONE", false, true)), [0, 20, 33]);
        assert_eq!(lines(&pattern(r"^\w+$", true, false)), [8]);
        assert_eq!(lines(&pattern(r"two\s+three|three\s*\n", true, false)), [0; 0], "a match does not go over the end of a line");
        assert_eq!(lines(&pattern(r"[^x]+one", true, false)), [15, 28], "alone, a line may still have one");
    }

    #[test]
    fn what_must_be_there_is_known() {
        for (pattern, literal) in [
            (r"took \d+ ms in vain$", Some(&b" ms in vain"[..])),
            (r"^(?:(abcd)+)x", Some(b"abcd")),
            (r"error|warning", None),
            (r"(?i)error \d", None),
            (r"(error)?x\d", None),
            (r"\w+", None),
        ] {
            assert_eq!(certain(pattern).as_deref(), literal, "{pattern}");
        }
    }

    #[test]
    fn refusals_are_one_sentence() {
        for (text, words) in [("a(", "unclosed group"), ("a*", "nothing at all"), ("(a{1000}){1000}", "too large")] {
            let asked = shared::search::Pattern { text: text.into(), regex: true, ignore_case: false };
            let Err(failure) = Pattern::new(&asked) else { panic!("{text}") };
            assert!(failure.message.contains(words) && !failure.message.contains('\n'), "{failure}");
        }
    }
}
