//! Changes to the files in which agents keep their hooks: text in, text out. The text is edited in place, so that everything that is not
//! ours stays as it is to the byte: order, line ends, duplicate keys, numbers of any size. A file that is not understood is refused.

use std::ops::Range;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use shared::agent::{Install, InstallFormat};

/// Seconds: it takes some milliseconds, but a machine may be busy.
const TIMEOUT: u64 = 5;

/// The indentation of a file that has none yet.
const INDENT: &str = "  ";

/// What becomes of a file; nothing: it is removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub after: Option<String>,
    /// Hooks of ours that come and go.
    pub added: usize,
    pub removed: usize,
}

pub fn install(before: Option<&str>, install: &Install, command: &str) -> Result<Change, String> {
    let timeout = match install.format {
        InstallFormat::Claude => TIMEOUT,
        InstallFormat::Gemini => TIMEOUT * 1000,
    };
    let entry = json!({"hooks": [{"type": "command", "command": command, "timeout": timeout}]});
    let mut text = match before {
        Some(text) if !text.trim_start_matches('\u{feff}').trim().is_empty() => text.to_owned(),
        _ => "{}\n".to_owned(),
    };
    let root = parse(&text)?;
    let is_there = install.events.iter().all(|event| {
        let entries = root.last("hooks").and_then(|hooks| hooks.last(event)).map(Node::items).unwrap_or_default();
        entries.iter().any(|node| serde_json::from_str::<Value>(&text[node.range.clone()]).is_ok_and(|value| value == entry))
    });
    if is_there {
        return Ok(Change { after: before.map(str::to_owned), added: 0, removed: 0 });
    }
    let removed = remove_ours(&mut text)?;
    for event in &install.events {
        insert(&mut text, event, &entry)?;
    }
    Ok(Change { after: Some(text), added: install.events.len(), removed })
}

pub fn uninstall(before: Option<&str>) -> Result<Change, String> {
    let Some(before) = before else { return Ok(Change { after: None, added: 0, removed: 0 }) };
    let mut text = before.to_owned();
    let removed = if before.trim().is_empty() { 0 } else { remove_ours(&mut text)? };
    Ok(Change { after: Some(text), added: 0, removed })
}

pub fn is_installed(text: Option<&str>) -> Result<bool, String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(false) };
    Ok(remove_ours(&mut text.to_owned())? > 0)
}

/// A JSON value and where it is in the text.
struct Node {
    range: Range<usize>,
    kind: NodeKind,
}

enum NodeKind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

struct Member {
    key: String,
    /// Where its key begins.
    start: usize,
    value: Node,
}

impl Node {
    fn members(&self) -> &[Member] {
        if let NodeKind::Object(members) = &self.kind { members } else { &[] }
    }

    fn items(&self) -> &[Node] {
        if let NodeKind::Array(items) = &self.kind { items } else { &[] }
    }

    /// The member of this name; of several the last, which is the one that readers take.
    fn last(&self, key: &str) -> Option<&Node> {
        self.members().iter().rev().find(|member| member.key == key).map(|member| &member.value)
    }

    /// The ranges of its members or items, keys included.
    fn parts(&self) -> Vec<Range<usize>> {
        match &self.kind {
            NodeKind::Object(members) => members.iter().map(|member| member.start..member.value.range.end).collect(),
            NodeKind::Array(items) => items.iter().map(|item| item.range.clone()).collect(),
            NodeKind::Scalar => Vec::new(),
        }
    }
}

fn parse(text: &str) -> Result<Node, String> {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    if let Err(error) = serde_json::from_str::<IgnoredAny>(&text[start..]) {
        return Err(format!("it is not plain JSON ({error}): add the hooks by hand"));
    }
    let root = Scanner { text, at: start }.value();
    if !matches!(root.kind, NodeKind::Object(_)) {
        return Err("it is not a JSON object".into());
    }
    match root.last("hooks") {
        None => {}
        Some(hooks) if !matches!(hooks.kind, NodeKind::Object(_)) => return Err("\"hooks\" is not an object".into()),
        Some(_) => {}
    }
    Ok(root)
}

/// Walks over text that is known to be JSON.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    /// The next byte that is not blank.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    fn value(&mut self) -> Node {
        let first = self.peek();
        let start = self.at;
        let kind = match first {
            b'{' => {
                let mut members = Vec::new();
                self.each(b'}', |scanner| {
                    let start = scanner.peek_at();
                    let key = scanner.string();
                    // the colon
                    scanner.peek();
                    scanner.at += 1;
                    members.push(Member { key, start, value: scanner.value() });
                });
                NodeKind::Object(members)
            }
            b'[' => {
                let mut items = Vec::new();
                self.each(b']', |scanner| items.push(scanner.value()));
                NodeKind::Array(items)
            }
            b'"' => {
                self.string();
                NodeKind::Scalar
            }
            _ => {
                let rest = &self.text[self.at..];
                self.at += rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                NodeKind::Scalar
            }
        };
        Node { range: start..self.at, kind }
    }

    fn peek_at(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Walks over the parts of a container, from its first byte to behind its last.
    fn each(&mut self, last: u8, mut part: impl FnMut(&mut Self)) {
        self.at += 1;
        while self.peek() != last && self.at < self.text.len() {
            if self.peek() == b',' {
                self.at += 1;
            } else {
                part(self);
            }
        }
        self.at += 1;
    }

    fn string(&mut self) -> String {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1 + usize::from(*byte == b'\\');
            if *byte == b'"' {
                break;
            }
        }
        serde_json::from_str(&self.text[start..self.at]).unwrap_or_default()
    }
}

/// Adds an entry for an event, as the last one.
fn insert(text: &mut String, event: &str, entry: &Value) -> Result<(), String> {
    let root = parse(text)?;
    let Some(hooks) = root.last("hooks") else {
        append(text, &root, 0, Some("hooks"), &json!({event: [entry]}));
        return Ok(());
    };
    match hooks.last(event) {
        None => append(text, hooks, 1, Some(event), &json!([entry])),
        Some(list) if matches!(list.kind, NodeKind::Array(_)) => append(text, list, 2, None, entry),
        Some(_) => return Err(format!("\"hooks.{event}\" is not a list")),
    }
    Ok(())
}

/// Adds a part at the end of a container, in the style of the file.
fn append(text: &mut String, container: &Node, depth: usize, key: Option<&str>, value: &Value) {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let unit = indentation(text);
    let parts = container.parts();
    let inside = &text[container.range.clone()];
    let is_one_line = !inside.contains('\n') && !parts.is_empty();
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    if is_one_line {
        let at = parts.last().map_or(container.range.end - 1, |last| last.end);
        text.insert_str(at, &format!(", {key}{value}"));
        return;
    }
    // as deep as its neighbour, if that begins a line
    let neighbour = parts.last().and_then(|last| line_blank(text, last.start));
    let blank = neighbour.unwrap_or_else(|| unit.repeat(depth + 1));
    let pretty = format!("{blank}{key}{}", indented(value, &unit, &blank, line_end));
    match parts.last() {
        Some(last) => text.insert_str(last.end, &format!(",{line_end}{pretty}")),
        None => {
            let closing = line_blank(text, container.range.start).unwrap_or_else(|| unit.repeat(depth));
            text.replace_range(container.range.start + 1..container.range.end - 1, &format!("{line_end}{pretty}{line_end}{closing}"));
        }
    }
}

/// The blanks before `at`, if there is nothing else before it in its line.
fn line_blank(text: &str, at: usize) -> Option<String> {
    let line = &text[text[..at].rfind('\n')? + 1..at];
    line.chars().all(|c| matches!(c, ' ' | '\t')).then(|| line.to_owned())
}

/// One step of the file's indentation.
fn indentation(text: &str) -> String {
    let blank_of = |line: &str| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect::<String>();
    text.lines().map(blank_of).find(|blank| !blank.is_empty()).unwrap_or_else(|| INDENT.to_owned())
}

/// A value over several lines, all but the first behind `blank`.
fn indented(value: &Value, unit: &str, blank: &str, line_end: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // values can always be written
    let _ = value.serialize(&mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("{line_end}{blank}"))
}

/// Takes our hooks out, and whatever is empty without them; how many there were.
fn remove_ours(text: &mut String) -> Result<usize, String> {
    let mut count = 0;
    loop {
        let root = parse(text)?;
        let Some((range, inside)) = first_of_ours(text, &root) else { return Ok(count) };
        text.replace_range(range, inside);
        count += 1;
    }
}

/// The text to take away for the first hook of ours, and what takes its place.
fn first_of_ours(text: &str, root: &Node) -> Option<(Range<usize>, &'static str)> {
    let (at, hooks) = root.members().iter().enumerate().rev().find(|(_, member)| member.key == "hooks")?;
    let hooks = (at, &hooks.value);
    for (event, member) in hooks.1.members().iter().enumerate() {
        for (item, entry) in member.value.items().iter().enumerate() {
            let Some(commands) = entry.last("hooks") else { continue };
            let Some(ours) = commands.items().iter().position(|command| is_ours(text, command)) else { continue };
            // from the inside out: the first container that keeps something
            return Some(if commands.items().len() > 1 {
                (without(commands, ours), "")
            } else if member.value.items().len() > 1 {
                (without(&member.value, item), "")
            } else if hooks.1.members().len() > 1 {
                (without(hooks.1, event), "")
            } else if root.members().len() > 1 {
                (without(root, hooks.0), "")
            } else {
                (root.range.clone(), "{}")
            });
        }
    }
    None
}

/// What to take away of a container's text so that one of its several parts is gone, with the comma that belongs to it.
fn without(container: &Node, index: usize) -> Range<usize> {
    let parts = container.parts();
    match parts.get(index + 1) {
        // what was added last goes exactly as it came
        None => parts[index - 1].end..parts[index].end,
        Some(next) => parts[index].start..next.start,
    }
}

fn is_ours(text: &str, command: &Node) -> bool {
    let Ok(command) = serde_json::from_str::<Value>(&text[command.range.clone()]) else { return false };
    let Some(words) = command.get("command").and_then(Value::as_str) else { return false };
    let program = words.split(" hook ").next().unwrap_or_default().trim_matches(['\'', '"']);
    words.contains(" hook ") && (program == "sessions-tui" || program.ends_with("/sessions-tui"))
}

/// Lines that go (`-`) and come (`+`), with two around them.
pub fn difference(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (gone, come) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    // the longest common part of what is between; these files are small
    let mut table = vec![vec![0usize; come.len() + 1]; gone.len() + 1];
    for i in (0..gone.len()).rev() {
        for j in (0..come.len()).rev() {
            table[i][j] = if gone[i] == come[j] { table[i + 1][j + 1] + 1 } else { table[i + 1][j].max(table[i][j + 1]) };
        }
    }
    let mut out = String::new();
    let mut add = |mark: char, line: &str| {
        out.push(mark);
        out.push(' ');
        out.push_str(&shared::text::visible(line));
        out.push('\n');
    };
    old[start.saturating_sub(2)..start].iter().for_each(|line| add(' ', line));
    let (mut i, mut j) = (0, 0);
    while i < gone.len() || j < come.len() {
        if i < gone.len() && j < come.len() && gone[i] == come[j] {
            add(' ', gone[i]);
            (i, j) = (i + 1, j + 1);
        } else if j < come.len() && (i == gone.len() || table[i][j + 1] >= table[i + 1][j]) {
            add('+', come[j]);
            j += 1;
        } else {
            add('-', gone[i]);
            i += 1;
        }
    }
    old[old.len() - end..].iter().take(2).for_each(|line| add(' ', line));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claude() -> Install {
        Install {
            format: InstallFormat::Claude,
            file: "~/x".into(),
            folder_variable: None,
            events: vec!["Stop".into(), "SessionStart".into()],
        }
    }

    const COMMAND: &str = "sessions-tui hook claude-code";

    #[test]
    fn what_is_there_stays_and_comes_back() {
        for before in [
            "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls)\"\n    ]\n  }\n}\n",
            "{\n\t\"b\": 1,\n\t\"a\": 2\n}",
            "{\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": \"say done\"\n                    }\n                ]\n            }\n        ]\n    },\n    \"z\": null\n}\n",
        ] {
            let Change { after, added, removed } = install(Some(before), &claude(), COMMAND).expect("installs");
            assert_eq!((added, removed), (2, 0));
            let after = after.expect("a file");
            assert!(is_installed(Some(&after)).expect("reads"));
            assert_eq!(after.matches(COMMAND).count(), 2, "{after}");
            assert_eq!(install(Some(&after), &claude(), COMMAND).expect("again").after.as_deref(), Some(after.as_str()));
            let other =
                install(Some(&after), &claude(), "'/opt/my bin/sessions-tui' hook claude-code").expect("moves").after.expect("a file");
            assert_eq!((other.matches("my bin").count(), other.matches(COMMAND).count()), (2, 0), "{other}");
            assert_eq!(uninstall(Some(&other)).expect("removes").after.as_deref(), Some(before));
            assert_eq!(uninstall(Some(before)).expect("nothing").after.as_deref(), Some(before));
        }
        for before in [
            // nothing of these survives reading and writing again
            "{\r\n  \"n\": 123456789012345678901234567890,\r\n  \"e\": 1e3\r\n}\r\n",
            "{\n  \"a\": 1,\n  \"a\": 2,\n  \"u\": \"\\u00e9\\/\"\n}",
            "\u{feff}{\n  \"a\" : 1 ,\n\n  \"b\":[ 1,2 ]\n}\n\n",
            "{\"a\": 1, \"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\"}]}]}}",
            "{\"hooks\":{\"Other\":[]},\"a\":1}",
        ] {
            let after = install(Some(before), &claude(), COMMAND).expect("installs").after.expect("a file");
            let read: Value = serde_json::from_str(after.trim_start_matches('\u{feff}')).expect("JSON");
            assert!(
                read["hooks"]["Stop"].to_string().contains(COMMAND) && read["hooks"]["SessionStart"].to_string().contains(COMMAND),
                "{after}"
            );
            assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
            assert_eq!(
                after.matches('\n').count(),
                after.matches("\r\n").count().max(if before.contains('\r') { 0 } else { after.matches('\n').count() })
            );
            assert_eq!(uninstall(Some(&after)).expect("removes").after.as_deref(), Some(before), "{after}");
        }
        // what came behind ours stays where it is
        let text = "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"/x/sessions-tui hook c\"}, {\"command\": \"y\"}]}]}}";
        let left = uninstall(Some(text)).expect("removes");
        assert_eq!((left.after.as_deref(), left.removed), (Some("{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"y\"}]}]}}"), 1));
        let fresh = install(None, &claude(), COMMAND).expect("installs").after.expect("a file");
        assert_eq!(uninstall(Some(&fresh)).expect("removes").after.as_deref(), Some("{}\n"));
        assert!(!is_installed(None).expect("none"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for before in ["{ // mine\n}", "[]", "{", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}"] {
            let why = install(Some(before), &claude(), COMMAND).expect_err(before);
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn differences_are_shown() {
        assert_eq!(difference("a\nb\nc\nd\n", "a\nb\nx\nd\n"), "  a\n  b\n+ x\n- c\n  d\n");
        assert_eq!(difference("", "a\n"), "+ a\n");
        assert_eq!(difference("a\n", ""), "- a\n");
    }
}
