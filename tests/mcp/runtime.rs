//! The tool `runtime` with real interpreters.

use serde_json::{Value, json};

use super::client::{Era, Mcp};
use crate::support::{Root, wait_until};

#[test]
fn what_one_call_leaves_the_next_finds() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Initialize("2025-06-18"));
    std::fs::create_dir(root.join("work/src")).expect("a folder");
    mcp.call("runtime", json!({"action": "exec", "command": "cd src; export GREETING=hello"}));
    let given = mcp.call("runtime", json!({"action": "exec", "command": "echo $GREETING; echo oops >&2; (exit 3)"}));
    assert_eq!((given["success"].as_bool(), given["exitCode"].as_i64()), (Some(false), Some(3)), "a result, not an error");
    assert_eq!((given["stdout"].as_str(), given["stderr"].as_str()), (Some("hello\n"), Some("oops\n")));
    assert!(given["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("work/src")), "{given}");
    mcp.call("runtime", json!({"action": "exec", "language": "python", "command": "import json\nnumbers = [1, 2]"}));
    let given = mcp.call("runtime", json!({"action": "eval", "command": "numbers + [3]"}));
    assert_eq!(
        (given["value"].as_str(), &given["json"], given["language"].as_str()),
        (Some("[1, 2, 3]"), &json!([1, 2, 3]), Some("python"))
    );
    let given = mcp.call("runtime", json!({"action": "eval", "command": "1 / 0"}));
    assert_eq!(given["success"], false);
    assert!(given["stderr"].as_str().is_some_and(|text| text.contains("ZeroDivisionError")), "{given}");

    let state = mcp.call("runtime", json!({"action": "state", "language": "bash"}))["state"].clone();
    assert_eq!((state["env_vars"]["GREETING"].as_str(), state["alive"].as_bool()), (Some("hello"), Some(true)));
    assert!(state["working_dir"].as_str().is_some_and(|folder| folder.ends_with("work/src")), "{state}");
    let states = mcp.call("runtime", json!({"action": "state", "limit": 1}));
    assert_eq!(states["states"].as_array().map(Vec::len), Some(2), "{states}");
    assert_eq!(states["states"][1]["history"].as_array().map(Vec::len), Some(1), "{states}");
    let history = mcp.call("runtime", json!({"action": "history", "language": "bash"}));
    assert_eq!(history["history"][0]["command"], "cd src; export GREETING=hello");
    assert_eq!(root.json(&["history", "--json"])[0]["author"], "agent", "the daemon sees which door it came through");
    let history = mcp.call("runtime", json!({"action": "history", "limit": 1}));
    assert_eq!((history["history"].as_array().map(Vec::len), history["history"][0]["command"].as_str()), (Some(1), Some("1 / 0")));

    // each folder has its own, and so has each session
    let given = mcp.call("runtime", json!({"action": "exec", "command": "echo [$GREETING]", "workspace": root.join("home")}));
    assert_eq!(given["stdout"], "[]\n");
    let session = mcp.call("session_start", json!({"task": "own", "name": "own"}))["session"].clone();
    let given = mcp.call("runtime", json!({"action": "exec", "command": "echo [$GREETING]", "session": "own"}));
    assert_eq!((given["stdout"].as_str(), &given["session"]), (Some("[]\n"), &session));
    let transcript = mcp.text("terminal_screen", json!({"session": "own", "language": "bash"}));
    assert!(transcript.contains("echo [$GREETING]") && transcript.contains("[]"), "{transcript}");
    let list = mcp.call("session_list", json!({}));
    let own = list["sessions"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "own")).expect("its row");
    assert_eq!(own["languages"], json!(["bash"]));
    mcp.refused("runtime", json!({"action": "exec", "command": "true", "session": "nobody"}), "not_found");

    assert_eq!(mcp.call("runtime", json!({"action": "reset", "language": "bash"}))["languages"], json!(["bash"]));
    let given = mcp.call("runtime", json!({"action": "exec", "command": "echo [$GREETING]; pwd"}));
    assert!(given["stdout"].as_str().is_some_and(|text| text.starts_with("[]\n") && text.ends_with("/work\n")), "{given}");
}

#[test]
fn long_work_yields_and_is_polled_or_interrupted() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let wait = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended";
    let given = mcp.call("runtime", json!({"action": "exec", "command": wait, "yield_ms": 300}));
    assert_eq!((given["running"].as_bool(), given["stdout"].as_str(), given.get("exitCode")), (Some(true), Some("begun\n"), None));
    let exec = given["execId"].clone();
    assert!(given["note"].as_str().is_some_and(|note| note.contains("action result") && note.contains(exec.as_str().expect("an id"))));
    let given = mcp.call("runtime", json!({"action": "result", "exec_id": exec, "yield_ms": 0}));
    assert_eq!(given["running"], true);
    let poll = mcp.begin("runtime", json!({"action": "result", "exec_id": exec, "yield_ms": 30000}));
    // a poll that is given up leaves the call alone
    mcp.progress(poll, 1);
    mcp.notify("notifications/cancelled", json!({"requestId": poll}));
    let poll = mcp.begin("runtime", json!({"action": "result", "exec_id": exec, "yield_ms": 30000}));
    std::fs::write(root.join("work/go"), "").expect("writes");
    let given = mcp.finish(poll)["structuredContent"].clone();
    assert_eq!((given["stdout"].as_str(), given["exitCode"].as_i64()), (Some("begun\nended\n"), Some(0)));

    let endless = "import time\nkept = 'yes'\nprint('begun', flush=True)\ntime.sleep(1000)";
    let given = mcp.call("runtime", json!({"action": "exec", "language": "python", "command": endless, "yield_ms": 0}));
    let exec = given["execId"].clone();
    wait_until("the code to begin", || {
        mcp.call("runtime", json!({"action": "result", "exec_id": exec, "yield_ms": 0}))["stdout"] == "begun\n"
    });
    mcp.call("runtime", json!({"action": "cancel", "exec_id": exec}));
    let given = mcp.call("runtime", json!({"action": "result", "exec_id": exec}));
    assert_eq!((given["interrupted"].as_bool(), given["success"].as_bool(), given.get("running")), (Some(true), Some(false), None));
    assert_eq!(mcp.call("runtime", json!({"action": "eval", "command": "kept"}))["value"], "'yes'");
    let given = mcp.call("runtime", json!({"action": "exec", "command": "sleep 1000", "timeout_ms": 200}));
    assert_eq!((given["timedOut"].as_bool(), given["success"].as_bool()), (Some(true), Some(false)), "{given}");
    mcp.refused("runtime", json!({"action": "result", "exec_id": "00000000-0000-7000-8000-000000000000"}), "not_found");
}

#[test]
fn a_cancelled_call_is_interrupted_and_its_interpreter_goes_on() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Initialize("2025-06-18"));
    let endless = "import time\nkept = 'yes'\nfor i in range(1000):\n    print('step', i, flush=True)\n    time.sleep(0.2)";
    let id = mcp.begin("runtime", json!({"action": "exec", "language": "python", "command": endless, "yield_ms": 30000}));
    // on a busy machine the first words come before anything was printed
    let is_step = |word: &Value| word["message"].as_str().is_some_and(|text| text.starts_with("step "));
    let words = (2..100)
        .map(|count| mcp.progress(id, count).into_iter().filter(is_step).collect::<Vec<_>>())
        .find(|words| words.len() >= 2)
        .expect("waits until there are two");
    assert!(words[0]["progress"].as_f64() < words[1]["progress"].as_f64() && words[0]["message"] != words[1]["message"], "{words:?}");
    mcp.notify("notifications/cancelled", json!({"requestId": id}));
    let given = mcp.call("runtime", json!({"action": "eval", "command": "kept", "yield_ms": 30000}));
    assert_eq!((given["value"].as_str(), given["restarted"].as_bool()), (Some("'yes'"), Some(false)), "{given}");
    assert!(!mcp.is_answered(id));
}

#[test]
fn what_a_client_leaves_behind_goes_on_and_is_found_by_the_next() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let wait = "while [ ! -e go ]; do sleep 0.05; done; echo done | tee result";
    let id = mcp.begin("runtime", json!({"action": "exec", "command": wait, "yield_ms": 30000}));
    mcp.progress(id, 1);
    mcp.close();
    std::fs::write(root.join("work/go"), "").expect("writes");
    assert_eq!(root.wait_file("work/result"), "done\n");
    let mut mcp = Mcp::start(&root, Era::Discover);
    let entry = mcp.call("runtime", json!({"action": "history"}))["history"][0].clone();
    let given = mcp.call("runtime", json!({"action": "result", "exec_id": entry["execId"]}));
    assert_eq!((given["stdout"].as_str(), given["exitCode"].as_i64(), given.get("interrupted")), (Some("done\n"), Some(0), None));
}

#[test]
fn a_call_outlives_the_daemon_under_it() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let wait = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended";
    let id = mcp.begin("runtime", json!({"action": "exec", "command": wait, "yield_ms": 30000}));
    mcp.progress(id, 1);
    let first = root.kill_daemon();
    wait_until("another daemon", || root.daemons().iter().any(|pid| *pid != first));
    std::fs::write(root.join("work/go"), "").expect("writes");
    let given = mcp.finish(id)["structuredContent"].clone();
    assert_eq!((given["stdout"].as_str(), given["exitCode"].as_i64()), (Some("begun\nended\n"), Some(0)), "{given}");
}

#[test]
fn interpreters_work_at_the_same_time_and_one_after_the_other() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let slow = mcp.begin("runtime", json!({"action": "exec", "command": "while [ ! -e go ]; do sleep 0.05; done; echo first"}));
    let next = mcp.begin("runtime", json!({"action": "exec", "command": "echo second"}));
    let other = mcp.call("runtime", json!({"action": "exec", "language": "python", "command": "open('go', 'w').close(); print('other')"}));
    assert_eq!(other["stdout"], "other\n");
    assert_eq!(mcp.finish(slow)["structuredContent"]["stdout"], "first\n");
    assert_eq!(mcp.finish(next)["structuredContent"]["stdout"], "second\n");
}

#[test]
fn much_output_is_given_by_its_ends_and_the_rest_can_be_had() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let given = mcp.call("runtime", json!({"action": "exec", "command": "seq -f 'größe %06.0f' 30000; echo small >&2"}));
    let text = given["stdout"].as_str().expect("text");
    assert!(
        text.len() < (64 << 10) + 300 && text.starts_with("größe 000001\n") && text.ends_with("größe 030000\n"),
        "{} bytes",
        text.len()
    );
    assert!(!text.contains('\u{fffd}') && given["stderr"] == "small\n");
    assert_eq!(given["truncated"], json!({"stdout": true, "stderr": false}));
    // the marker is a command that prints exactly what is missing
    let marker = text.lines().find(|line| line.starts_with("[…")).expect("a marker");
    let command = marker.split('`').nth(1).expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let middle = root.run(&words).ok();
    let (head, tail) = text.split_once(&format!("{marker}\n")).expect("two ends");
    // the line that was cut in two got an end of its own
    let cut = head.strip_suffix('\n').expect("a line");
    let lines: Vec<String> = (1..=30000).map(|n| format!("größe {n:06}")).collect();
    let whole = lines.join("\n") + "\n";
    assert!(format!("{cut}{middle}{tail}") == whole || format!("{head}{middle}{tail}") == whole);
}
