//! Secrets in what programs print: found by rules, covered with stars of the same length, so that nothing moves.
//! Rules find what looks like a secret; nothing finds all of them. Text in, places out; no I/O.

use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Forms that are hard to take for anything else, and assignments to names that speak for themselves. Where a rule has a group,
/// that is the secret.
const KNOWN: &[&str] = &[
    // AWS
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    // GitHub, GitLab
    r"\bgh[pousr]_[A-Za-z0-9]{30,255}\b",
    r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b",
    r"\bglpat-[A-Za-z0-9_\-]{20,}",
    // Slack
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"https://hooks\.slack\.com/services/([A-Za-z0-9/_]{20,})",
    // OpenAI, Anthropic and whoever followed
    r"\bsk-[A-Za-z0-9_\-]{20,}",
    // Google, Stripe, npm, PyPI, Hugging Face, SendGrid
    r"\bAIza[0-9A-Za-z_\-]{35}",
    r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,}",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bpypi-[A-Za-z0-9_\-]{50,}",
    r"\bhf_[A-Za-z0-9]{30,}\b",
    r"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}",
    // our own webhook secrets, by their standard
    r"\bwhsec_[A-Za-z0-9+/=]{20,}",
    // JSON Web Tokens
    r"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}",
    // keys in PEM
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----([A-Za-z0-9+/=\s:,\-]{16,}?)-----END",
    // https://user:password@host
    r"://[^\s:/@]{1,64}:([^\s@/]{3,256})@",
    r"(?i)\bauthorization:\s*(?:bearer|basic|token)\s+([^\s'\x22]{8,})",
    // PASSWORD=…, api_key: …
    r"(?i)[a-z0-9_]*(?:passwd|password|secret|token|api_?key|access_?key|private_?key)[a-z0-9_]*\s*[=:]\s*['\x22]?([^\s'\x22;]{6,256})",
];

/// A compiled rule may take this much: a hostile one is refused.
const SIZE_LIMIT: usize = 2 << 20;

/// Longest secret that is certainly found when text comes in parts that overlap by this much.
pub const OVERLAP: usize = 16 << 10;

pub struct Redactor {
    any: RegexSet,
    rules: Vec<Regex>,
}

impl Redactor {
    /// The known forms and these besides; an error names the rule that cannot be used.
    pub fn new(own: &[String]) -> Result<Self, String> {
        let rules: Vec<&str> = KNOWN.iter().copied().chain(own.iter().map(String::as_str)).collect();
        let compiled = rules.iter().map(|rule| build(rule)).collect::<Result<Vec<_>, _>>()?;
        let any = RegexSetBuilder::new(&rules)
            .size_limit(SIZE_LIMIT * 8)
            .build()
            .map_err(|error| format!("the rules are too many or too large: {error}"))?;
        Ok(Self { any, rules: compiled })
    }

    /// Where secrets are, in order, without overlaps.
    pub fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for rule in self.any.matches(text) {
            for captures in self.rules[rule].captures_iter(text) {
                let secret = captures.get(1).or_else(|| captures.get(0));
                found.extend(secret.map(|secret| secret.range()));
            }
        }
        found.sort_by_key(|range| (range.start, range.end));
        let mut apart: Vec<Range<usize>> = Vec::new();
        for range in found.into_iter().filter(|range| !range.is_empty()) {
            match apart.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        apart
    }

    /// The same text with stars in the place of secrets.
    pub fn cover(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for range in self.find(text.as_bytes()) {
            // bytes of a custom rule may begin inside a character
            let (Some(before), Some(secret)) = (text.get(done..range.start), text.get(range.clone())) else { continue };
            out.push_str(before);
            out.extend(secret.chars().map(|c| if c.is_whitespace() { c } else { '*' }));
            done = range.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }

    /// Stars in place, byte by byte; line ends and escapes stay, so that nothing moves.
    pub fn cover_bytes(&self, bytes: &mut [u8]) {
        for range in self.find(bytes) {
            for byte in &mut bytes[range] {
                if !byte.is_ascii_whitespace() && *byte != 0x1b {
                    *byte = b'*';
                }
            }
        }
    }
}

fn build(rule: &str) -> Result<Regex, String> {
    RegexBuilder::new(rule).size_limit(SIZE_LIMIT).build().map_err(|error| reason(rule, &error))
}

/// Why a rule of the user's cannot be used.
fn reason(rule: &str, error: &regex::Error) -> String {
    let text = match error {
        regex::Error::CompiledTooBig(_) => "it would grow too large".to_owned(),
        // the last line says what is wrong, the others point at where
        other => other.to_string().lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned(),
    };
    format!("{:?} is no rule: {text}", crate::text::fit(rule, 60))
}

/// Whether these rules can be used; the error is a sentence.
pub fn check(own: &[String]) -> Result<(), String> {
    if let Some(rule) = own.iter().find(|rule| rule.is_empty()) {
        return Err(format!("{rule:?} is no rule: it finds nothing"));
    }
    // the known ones need no check, and this is asked by every command that reads the settings
    if own.is_empty() { Ok(()) } else { Redactor::new(own).map(|_| ()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(&["corp-[0-9]{6}".to_owned()]).expect("rules")
    }

    #[test]
    fn secrets_are_covered_and_the_rest_stays() {
        let of = |length: usize| "a1B2c3D4e5".repeat(30)[..length].to_owned();
        let stars = |length: usize| "*".repeat(length);
        for (before, secret, after) in [
            ("key AKIA", "", ""),
            ("x ", &*format!("ghp_{}", of(36)), " y"),
            ("", &*format!("github_pat_{}", of(60)), "\n"),
            ("token: \"", &*of(12), "\" ok"),
            ("", &*format!("sk-ant-{}", of(40)), ""),
            ("", &*format!("xoxb-{}", of(20)), "."),
            ("export API_KEY=", &*of(20), "\n"),
            ("https://me:", "hunter22", "@example.org/x"),
            ("Authorization: Bearer ", &*of(30), ""),
            ("id ", "corp-123456", "!"),
            ("ü ", &*format!("AIza{}", of(35)), " ü"),
        ] {
            let text = format!("{before}{secret}{after}");
            let expected = format!("{before}{}{after}", stars(secret.len()));
            assert_eq!(redactor().cover(&text), expected, "{text}");
            let mut bytes = text.clone().into_bytes();
            redactor().cover_bytes(&mut bytes);
            assert_eq!(String::from_utf8_lossy(&bytes), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["the password is asked for", "secret: no", "cargo build --token-less", "sk-short", "a:b@c", "0123456789abcdef"] {
            assert_eq!(redactor().cover(text), text);
        }
    }

    #[test]
    fn a_key_of_many_lines_is_covered_line_by_line() {
        let text = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----";
        let covered = redactor().cover(text);
        assert!(covered.contains("KEY-----\n****************\n****************\n-----END"), "{covered}");
    }

    #[test]
    fn a_bad_rule_is_named() {
        let error = check(&["good".into(), "a(".into()]).expect_err("bad");
        assert!(error.contains("\"a(\""), "{error}");
        assert!(check(&["(((a{100}){100}){100})".into()]).expect_err("huge").contains("too large"));
    }
}
