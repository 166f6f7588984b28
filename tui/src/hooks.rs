//! Changes to the files in which agents keep their hooks: text in, text out. What is not ours stays as it is, in its order; a file that
//! is not understood is refused.

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::agent::{Install, InstallFormat};

/// Seconds: it takes some milliseconds, but a machine may be busy.
const TIMEOUT: u64 = 5;

/// What becomes of a file; nothing: it is removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub after: Option<String>,
}

pub fn install(before: Option<&str>, install: &Install, command: &str) -> Result<Change, String> {
    let mut file = parse(before.unwrap_or("{}"))?;
    let timeout = match install.format {
        InstallFormat::Claude => TIMEOUT,
        InstallFormat::Gemini => TIMEOUT * 1000,
    };
    let entry = json!({"hooks": [{"type": "command", "command": command, "timeout": timeout}]});
    let is_there = |file: &Map<String, Value>| {
        install.events.iter().all(|event| {
            file.get("hooks").and_then(|hooks| hooks.get(event)).and_then(Value::as_array).is_some_and(|list| list.contains(&entry))
        })
    };
    if is_there(&file) {
        return Ok(Change { after: before.map(str::to_owned) });
    }
    remove(&mut file)?;
    let hooks = file.entry("hooks").or_insert_with(|| json!({}));
    let Value::Object(hooks) = hooks else { return Err("\"hooks\" is not an object".into()) };
    for event in &install.events {
        match hooks.entry(event.clone()).or_insert_with(|| json!([])) {
            Value::Array(list) => list.push(entry.clone()),
            _ => return Err(format!("\"hooks.{event}\" is not a list")),
        }
    }
    Ok(Change { after: Some(text(&file, before)) })
}

pub fn uninstall(before: Option<&str>) -> Result<Change, String> {
    let Some(text_before) = before else { return Ok(Change { after: None }) };
    let mut file = parse(text_before)?;
    if !remove(&mut file)? {
        return Ok(Change { after: before.map(str::to_owned) });
    }
    Ok(Change { after: Some(text(&file, before)) })
}

pub fn is_installed(text: Option<&str>) -> Result<bool, String> {
    let Some(text) = text else { return Ok(false) };
    remove(&mut parse(text)?)
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(file)) => Ok(file),
        Ok(_) => Err("it is not a JSON object".into()),
        Err(error) => Err(format!("it is not plain JSON ({error}): comments would be lost, so add the hooks by hand")),
    }
}

/// Takes ours out, and whatever is empty without them; whether there were any.
fn remove(file: &mut Map<String, Value>) -> Result<bool, String> {
    let Some(hooks) = file.get_mut("hooks") else { return Ok(false) };
    let Value::Object(hooks) = hooks else { return Err("\"hooks\" is not an object".into()) };
    let mut found = false;
    hooks.retain(|_, list| {
        let Value::Array(entries) = list else { return true };
        let had = entries.len();
        entries.retain_mut(|entry| {
            let Some(Value::Array(commands)) = entry.get_mut("hooks") else { return true };
            let before = commands.len();
            commands.retain(|command| !is_ours(command));
            found |= commands.len() < before;
            !commands.is_empty() || before == 0
        });
        !entries.is_empty() || had == 0
    });
    if found && hooks.is_empty() {
        file.shift_remove("hooks");
    }
    Ok(found)
}

fn is_ours(command: &Value) -> bool {
    let Some(words) = command.get("command").and_then(Value::as_str) else { return false };
    let program = words.split(" hook ").next().unwrap_or_default().trim_matches(['\'', '"']);
    words.contains(" hook ") && (program == "sessions-tui" || program.ends_with("/sessions-tui"))
}

/// Written as the file was: with its indentation and its last line's end.
fn text(file: &Map<String, Value>, before: Option<&str>) -> String {
    let before = before.unwrap_or("{\n  \n}\n");
    let indent: String = before
        .lines()
        .find_map(|line| {
            let blank: String = line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
            (!blank.is_empty()).then_some(blank)
        })
        .unwrap_or_else(|| "  ".into());
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // a map of values can always be written
    let _ = file.serialize(&mut serializer);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if before.ends_with('\n') || before.trim().is_empty() {
        text.push('\n');
    }
    text
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
            let Change { after } = install(Some(before), &claude(), COMMAND).expect("installs");
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
