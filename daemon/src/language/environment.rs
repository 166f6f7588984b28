//! An interpreter's environment, as its driver tells it, and what has changed since it started. Pure.

use std::collections::BTreeMap;

use shared::exec::Language;

pub type Environment = BTreeMap<String, String>;

/// Variables that belong to a process rather than to a user: never kept.
const OWN: &[&str] = &["PWD", "OLDPWD", "_", "SHLVL", "PIPESTATUS", "BASH_ENV"];

fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with("SESSIONS_") || name.starts_with("__sessions_") || name.starts_with("BASH_FUNC_")
}

/// What changed between two environments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    pub set: Vec<(String, String)>,
    pub removed: Vec<String>,
}

impl Delta {
    /// This, and then that.
    pub fn then(&self, later: &Self) -> Self {
        let is_set = |name: &str| later.set.iter().any(|(key, _)| key == name);
        let set = self.set.iter().filter(|(name, _)| !is_set(name) && !later.removed.contains(name)).chain(&later.set).cloned().collect();
        let mut removed: Vec<String> = self.removed.iter().filter(|name| !is_set(name)).chain(&later.removed).cloned().collect();
        removed.sort();
        removed.dedup();
        Self { set, removed }
    }
}

pub fn delta(before: &Environment, now: &Environment) -> Delta {
    let set = now.iter().filter(|(name, value)| !is_own(name) && before.get(*name) != Some(value));
    let removed = before.keys().filter(|name| !is_own(name) && !now.contains_key(*name));
    Delta { set: set.map(|(name, value)| (name.clone(), value.clone())).collect(), removed: removed.cloned().collect() }
}

pub fn parse(language: Language, said: &[u8]) -> Environment {
    match language {
        Language::Bash => parse_exports(&String::from_utf8_lossy(said)),
        Language::Python | Language::Node => serde_json::from_slice(said).unwrap_or_default(),
    }
}

/// `declare -x NAME="value"` and `declare -x NAME=$'value'`, one after the other; a value may hold newlines.
fn parse_exports(text: &str) -> Environment {
    let mut found = Environment::new();
    let mut rest = text;
    while let Some(start) = rest.find("declare -") {
        rest = &rest[start + "declare -".len()..];
        // flags, then the name
        let Some((_, after)) = rest.split_once(' ') else { break };
        let end = after.find(['=', '\n']).unwrap_or(after.len());
        let name = after[..end].to_owned();
        let Some(quoted) = after[end..].strip_prefix('=') else {
            // exported but never set
            rest = &after[end..];
            continue;
        };
        let (value, tail) = match quoted.as_bytes() {
            [b'"', ..] => double_quoted(&quoted[1..]),
            [b'$', b'\'', ..] => ansi_quoted(&quoted[2..]),
            _ => {
                let end = quoted.find('\n').unwrap_or(quoted.len());
                (quoted[..end].to_owned(), &quoted[end..])
            }
        };
        found.insert(name, value);
        rest = tail;
    }
    found
}

/// Up to the closing quote; a backslash takes the next character as it is.
fn double_quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

/// As bash writes what it cannot write plainly.
fn ansi_quoted(text: &str) -> (String, &str) {
    let mut value: Vec<u8> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\'' => return (String::from_utf8_lossy(&value).into_owned(), &text[at + 1..]),
            b'\\' => {
                let (byte, used) = escape(&bytes[at + 1..]);
                value.extend(byte);
                at += 1 + used;
            }
            byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
    (String::from_utf8_lossy(&value).into_owned(), "")
}

/// What follows a backslash, and how much of it was used.
fn escape(bytes: &[u8]) -> (Option<u8>, usize) {
    let Some(first) = bytes.first() else { return (None, 0) };
    let plain = match first {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'e' | b'E' => 27,
        b'0'..=b'7' => {
            let digits = bytes.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            let number = bytes[..digits].iter().fold(0u32, |number, digit| number * 8 + u32::from(digit - b'0'));
            return (Some(number as u8), digits);
        }
        other => *other,
    };
    (Some(plain), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_of_bash_are_read_exactly() {
        let text = "declare -x A=\"plain\"\ndeclare -x B=\"two\nlines \\\"quoted\\\" \\$x \\` \\\\\"\ndeclare -x C\ndeclare -x D=$'tab\\there\\303\\251\\E'\ndeclare -rx E=\"\"\n";
        let found = parse_exports(text);
        let expected = [("A", "plain"), ("B", "two\nlines \"quoted\" $x ` \\"), ("D", "tab\there\u{e9}\u{1b}"), ("E", "")];
        assert_eq!(found, expected.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect());
    }

    #[test]
    fn a_value_that_looks_like_a_declaration_is_a_value() {
        let found = parse_exports("declare -x A=\"\ndeclare -x B=\\\"no\\\"\"\ndeclare -x C=\"yes\"\n");
        assert_eq!(found.get("A").map(String::as_str), Some("\ndeclare -x B=\"no\""));
        assert_eq!((found.get("B"), found.get("C").map(String::as_str)), (None, Some("yes")));
    }

    #[test]
    fn the_difference_leaves_out_what_is_nobodys() {
        let of = |pairs: &[(&str, &str)]| -> Environment { pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect() };
        let before = of(&[("A", "1"), ("B", "2"), ("PWD", "/a"), ("SESSIONS_X", "1")]);
        let now = of(&[("A", "1"), ("C", "3"), ("PWD", "/b")]);
        assert_eq!(delta(&before, &now), Delta { set: vec![("C".into(), "3".into())], removed: vec!["B".into()] });
    }
}
