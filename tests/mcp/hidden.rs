//! Text that a person does not see must not reach a model unmarked, by whichever tool.

use serde_json::{Value, json};

use super::client::{Era, Mcp};
use crate::support::Root;

/// `ignore` in tag characters: nothing of it is seen anywhere.
const TAGS: &str = "\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}";

/// What must not be in an answer: concealed words, and characters that nobody sees.
#[track_caller]
fn assert_nothing_hidden(what: &str, text: &str) {
    for word in ["CONCEALED", "SAMECOLOUR", "OVERWRITTEN", "ERASED"] {
        assert!(!text.contains(word), "{what}: {word} in {text}");
    }
    assert_no_invisible(what, text);
}

#[track_caller]
fn assert_no_invisible(what: &str, text: &str) {
    let hidden = text.chars().find(|&c| c != '\n' && c != '\t' && shared::text::is_unsafe(c));
    assert_eq!(hidden, None, "{what}: {text:?}");
}

/// Prints each kind of hidden text, and what is seen around it.
const SCRIPT: &str =
    r"printf 'seen \033[8mCONCEALED\033[28m one\n\033[31;41mSAMECOLOUR\033[0m two\nOVERWRITTEN\rthree      \033[K\nERASED\033[2K\rfour\n'";

#[test]
fn b5_hidden_text_is_left_out_and_marked_in_every_tool() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let script = format!(r"{SCRIPT}; printf '\033]2;ti{TAGS}tle\007'; printf 'a{TAGS}b\342\200\213c done\n'; sleep 1000");
    mcp.call("terminal_start", json!({"argv": ["bash", "-c", script], "name": "screen"}));
    let waited = mcp.call("terminal_wait", json!({"session": "screen", "until": "text", "pattern": "done", "timeout_ms": 30000}));
    assert_eq!(waited["met"], true);
    let screen = mcp.text("terminal_screen", json!({"session": "screen"}));
    assert_nothing_hidden("terminal_screen", &screen);
    for line in ["seen           one [9 hidden characters]", "           two [10 hidden characters]", "three", "four", "abc done"] {
        assert!(screen.lines().any(|row| row == line), "{line:?} in {screen}");
    }
    let raw = mcp.text("terminal_screen", json!({"session": "screen", "raw": true}));
    assert!(raw.contains("seen CONCEALED one") && raw.contains("SAMECOLOUR two"), "{raw}");

    let ran =
        mcp.call("runtime", json!({"action": "exec", "command": format!("{SCRIPT}; printf 'a{TAGS}b\\n'"), "workspace": root.work()}));
    let stdout = ran["stdout"].as_str().expect("text").to_owned();
    assert_nothing_hidden("runtime", &stdout);
    assert!(stdout.starts_with("seen           one\n           two\nthree\nfour\nab\n"), "{stdout}");
    assert!(stdout.contains("[42 characters left out"), "{stdout}");
    let command = format!("{SCRIPT}; printf 'a{TAGS}b\\n'");
    let raw = mcp.call("runtime", json!({"action": "exec", "command": command, "workspace": root.work(), "raw": true}));
    assert!(raw["stdout"].as_str().is_some_and(|text| text.contains("\u{1b}[8mCONCEALED") && text.contains(TAGS)), "{raw}");
    let history = mcp.call("runtime", json!({"action": "history", "workspace": root.work()}));
    assert!(!history.to_string().contains(TAGS), "{history}");
    let value = mcp.call("runtime", json!({"action": "eval", "command": format!("'x{TAGS}'"), "workspace": root.work()}));
    assert_nothing_hidden("eval", &value.to_string());

    // what was concealed in a terminal is found, and marked
    let found = mcp.text("search", json!({"pattern": "seen CONCEALED", "kinds": ["output"], "session": "screen"}));
    assert_nothing_hidden("search", &found);
    assert!(found.contains("> seen [9 hidden characters] one"), "{found}");
    let around = mcp.text("search", json!({"pattern": "three", "context": 3, "session": "screen", "kinds": ["output"]}));
    assert!(!around.contains("CONCEALED") && !around.contains("SAMECOLOUR"), "{around}");
    let raw = mcp.text("search", json!({"pattern": "seen CONCEALED", "session": "screen", "kinds": ["output"], "raw": true}));
    assert!(raw.contains("> seen CONCEALED one"), "{raw}");

    // records and their events
    let task = format!("do it{TAGS}\u{202e}");
    mcp.call("session_start", json!({"name": "task", "task": task, "context": {format!("k{TAGS}"): format!("v{TAGS}")}}));
    mcp.call("session_event", json!({"session": "task", "type": "seen", "data": {"text": "x\u{1b}[8mCONCEALED\u{1b}[0my\u{200b}"}}));
    for (tool, arguments) in [
        ("session_context", json!({"session": "task"})),
        ("session_iterate", json!({"session": "task", "data": {"a": TAGS}})),
        ("session_files", json!({"session": "task"})),
    ] {
        let answer = mcp.call(tool, arguments);
        assert_nothing_hidden(tool, &answer.to_string());
    }
    // the words of the script are a command there, which is seen
    assert_no_invisible("session_list", &mcp.call("session_list", json!({})).to_string());
    let context = mcp.call("session_context", json!({"session": "task"}));
    assert_eq!(context["task"], Value::from("do it<7 hidden characters from U+E0069>"), "{context}");
    let refused = mcp.refused("terminal_screen", json!({"session": format!("no{TAGS}")}), "not_found");
    assert_nothing_hidden("a refusal", &refused);
}

#[test]
fn a_refusal_to_start_names_no_flags_of_the_command_line() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    mcp.call("terminal_start", json!({"argv": ["sleep", "1000"], "name": "busy"}));
    let why = mcp.refused("terminal_start", json!({"argv": ["sleep", "2000"], "name": "busy"}), "status");
    assert!(why.contains("cannot start sleep 2000: session busy is active") && !why.contains("--"), "{why}");
    let why = root.run(&["new", "-d", "-n", "busy", "--", "sleep", "2000"]).refused(4);
    assert!(why.contains("--attach-existing"), "{why}");
}

#[test]
fn a_request_that_is_too_large_is_named_to_the_model() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let why = mcp.refused("session_start", json!({"task": "x".repeat(9 << 20)}), "usage");
    assert!(why.contains("too large") && why.contains("8388608") && why.contains("task"), "{why}");
}
