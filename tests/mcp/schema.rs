//! What clients learn before they call anything: in both eras the same, in schemas that all of them take, without effects.

use serde_json::{Value, json};

use super::client::{Era, MODERN, Mcp};
use crate::support::Root;

const TOOLS: [&str; 16] = [
    "runtime",
    "search",
    "session_complete",
    "session_context",
    "session_event",
    "session_fail",
    "session_files",
    "session_iterate",
    "session_list",
    "session_pause",
    "session_resume",
    "session_start",
    "terminal_screen",
    "terminal_send",
    "terminal_start",
    "terminal_wait",
];

#[test]
fn both_eras_learn_the_same_and_nothing_is_started() {
    let root = Root::new();
    let mut lists = Vec::new();
    for era in [Era::Initialize("2024-11-05"), Era::Initialize("2025-06-18"), Era::Initialize("2025-11-25"), Era::Discover] {
        let mut mcp = Mcp::start(&root, era);
        let greeting = mcp.greeting.clone();
        let about = match era {
            Era::Initialize(version) => {
                assert_eq!(greeting["protocolVersion"], version);
                &greeting["serverInfo"]
            }
            Era::Discover => {
                assert!(greeting["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!(MODERN))), "{greeting}");
                &greeting["_meta"]["io.modelcontextprotocol/serverInfo"]
            }
        };
        assert_eq!((about["name"].as_str(), about["version"].as_str()), (Some("sessions-tui"), Some(env!("CARGO_PKG_VERSION"))));
        assert!(greeting["instructions"].as_str().is_some_and(|text| text.len() < 1500 && text.contains("terminal_start")), "{greeting}");
        assert!(greeting["capabilities"]["tools"].is_object(), "{greeting}");
        lists.push(mcp.tools());
        let (_, said) = mcp.close();
        assert_eq!(said, "", "an agent shows what is said here to a person");
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]));
    let names: Vec<&str> = lists[0].iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, TOOLS);
    assert_eq!((root.processes(), root.socket().exists()), (vec![], false), "looking has no effect");
}

#[test]
fn schemas_are_ones_that_every_client_takes() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    for tool in mcp.tools() {
        let name = tool["name"].as_str().expect("a name").to_owned();
        assert!(tool["description"].as_str().is_some_and(|text| (40..2000).contains(&text.len())), "{tool}");
        assert!(tool["title"].is_string() && tool["annotations"]["title"] == tool["title"], "{tool}");
        let input = &tool["inputSchema"];
        assert_eq!((input["type"].as_str(), input["additionalProperties"].as_bool()), (Some("object"), Some(false)), "{tool}");
        for (argument, schema) in input["properties"].as_object().expect("arguments") {
            assert!(schema["description"].is_string() && schema["type"].is_string(), "{name} {argument}: {schema}");
        }
        check(&name, input);
        match tool.get("outputSchema") {
            None => assert!(matches!(name.as_str(), "terminal_screen" | "search"), "{name}"),
            Some(output) => {
                assert_eq!((output["type"].as_str(), &output["required"]), (Some("object"), &json!(["success"])), "{tool}");
                for always in ["success", "error", "code"] {
                    assert!(output["properties"][always]["type"].is_string() || name == "runtime" && always == "code", "{tool}");
                }
                check(&name, output);
            }
        }
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|hint| tool["annotations"][hint].as_bool());
        let expected = match name.as_str() {
            "runtime" | "terminal_send" => [false, true, false, true],
            "terminal_start" => [false, false, false, true],
            "search" | "session_files" | "session_list" | "terminal_screen" | "terminal_wait" => [true, false, true, false],
            "session_context" => [false, false, true, false],
            _ => [false, false, false, false],
        };
        assert_eq!(hints, expected.map(Some), "{name}");
    }
    let runtime = mcp.tools().remove(0);
    let arguments: Vec<&String> = runtime["inputSchema"]["properties"].as_object().expect("arguments").keys().collect();
    assert_eq!(&arguments[..4], ["action", "command", "language", "limit"], "as agents know it, then what is ours");
    assert_eq!(runtime["inputSchema"]["required"], json!(["action"]));
}

/// No reference, no null, no union, no format of an integer, no schema that is not an object.
fn check(whose: &str, schema: &Value) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{whose}: {schema}"));
    for word in ["$ref", "$defs", "anyOf", "oneOf", "allOf", "nullable", "format", "$schema"] {
        assert!(!object.contains_key(word), "{whose}: {word} in {schema}");
    }
    assert!(!schema["type"].is_array() && schema.get("default") != Some(&Value::Null), "{whose}: {schema}");
    if let Some(values) = schema["enum"].as_array() {
        assert!(!values.is_empty() && values.iter().all(Value::is_string), "{whose}: {schema}");
    }
    for below in schema["properties"].as_object().into_iter().flat_map(|properties| properties.values()) {
        check(whose, below);
    }
    for below in [&schema["items"], &schema["additionalProperties"]] {
        if below.is_object() {
            check(whose, below);
        }
    }
}

#[test]
fn wrong_arguments_are_named() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Initialize("2025-06-18"));
    for (tool, arguments, words) in [
        ("session_list", json!({"colour": "red"}), "unknown field `colour`, expected one of `status`"),
        ("session_list", json!({"limit": "many"}), "argument `limit`: invalid type: string \"many\""),
        ("session_list", json!({"status": ["lazy"]}), "unknown variant `lazy`, expected one of `queued`"),
        ("session_list", json!({"workspace": "src"}), "not an absolute path"),
        ("session_list", json!({"workspace": "/nowhere/at/all"}), "no folder"),
        ("search", json!({}), "missing field `pattern`"),
        ("search", json!({"pattern": ""}), "nothing to look for"),
        ("search", json!({"pattern": "x", "after": "soon"}), "argument `after`"),
        ("session_start", json!({}), "missing field `task`"),
        ("session_iterate", json!({}), "say which session"),
        ("terminal_start", json!({"command": "a", "argv": ["b"]}), "not both"),
        ("terminal_start", json!({"argv": []}), "`argv` is empty"),
        ("terminal_send", json!({"session": "x"}), "nothing to type"),
        ("terminal_send", json!({"session": "x", "keys": ["Hyper-q"]}), "not a key"),
        ("terminal_wait", json!({"session": "x", "until": "text"}), "needs `pattern`"),
        ("terminal_wait", json!({"session": "x", "until": "status"}), "needs `status`"),
        ("terminal_wait", json!({"session": "x", "until": "doomsday"}), "unknown variant `doomsday`"),
        ("terminal_screen", json!({"session": "x", "scrollback": -1}), "argument `scrollback`"),
        ("runtime", json!({}), "missing field `action`"),
        ("runtime", json!({"action": "fly"}), "unknown variant `fly`, expected one of `exec`, `eval`"),
        ("runtime", json!({"action": "exec"}), "give the code as `command`"),
        ("runtime", json!({"action": "exec", "command": "1", "language": "perl"}), "unknown variant `perl`"),
        ("runtime", json!({"action": "exec", "command": "1", "session": "a", "workspace": "/"}), "not both"),
        ("runtime", json!({"action": "exec", "command": "1", "cmd": "2"}), "unknown field `cmd`"),
        ("runtime", json!({"action": "result"}), "`exec_id`"),
        ("runtime", json!({"action": "cancel", "exec_id": "x"}), "no execId"),
    ] {
        let sentence = mcp.refused(tool, arguments.clone(), "usage");
        assert!(sentence.contains(words), "{tool} {arguments}: {sentence}");
    }
    assert!(root.daemons().is_empty(), "nothing of this needs the daemon");
    let id = mcp.send("tools/call", json!({"name": "fly", "arguments": {}}));
    assert_eq!(mcp.answer(id)["error"]["code"], json!(-32602));
    let id = mcp.send("no/such/method", json!({}));
    assert_eq!(mcp.answer(id)["error"]["code"], json!(-32601));
    mcp.call("session_list", json!({}));
}
