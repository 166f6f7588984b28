//! Terminals and sessions as an agent uses them.

use serde_json::json;

use super::client::{Era, Mcp};
use crate::support::{Root, Term};

/// Waits until this is on the screen.
#[track_caller]
fn awaited(mcp: &mut Mcp, session: &str, pattern: &str) {
    let met = mcp.call("terminal_wait", json!({"session": session, "until": "text", "pattern": pattern, "timeout_ms": 30000}));
    assert_eq!(met["met"], true, "{pattern}");
}

#[test]
fn a_program_is_started_typed_to_watched_and_awaited() {
    let root = Root::new();
    for era in [Era::Initialize("2025-11-25"), Era::Discover] {
        let name = if era == Era::Discover { "modern" } else { "legacy" };
        let mut mcp = Mcp::start(&root, era);
        let started = mcp.call(
            "terminal_start",
            json!({"argv": ["bash", "--norc", "--noprofile"], "name": name, "cols": 100, "rows": 30, "env": {"GREETING": "hello"}}),
        );
        assert_eq!((started["name"].as_str(), started["status"].as_str()), (Some(name), Some("active")));
        assert_eq!((started["running"].as_bool(), started["command"].as_str()), (Some(true), Some("bash --norc --noprofile")));
        let session = started["session"].as_str().expect("an id").to_owned();
        let sent = mcp.call("terminal_send", json!({"session": session, "text": "echo $GREETING-$((6*7)); stty size", "submit": true}));
        assert!(sent["bytes"].as_u64().is_some_and(|bytes| bytes > 10), "{sent}");
        let met = mcp.call("terminal_wait", json!({"session": session, "until": "text", "pattern": "^hello-42$"}));
        assert_eq!((met["met"].as_bool(), met["status"].as_str()), (Some(true), Some("active")));
        mcp.call("terminal_wait", json!({"session": name, "until": "quiet", "quiet_ms": 200}));
        let screen = mcp.text("terminal_screen", json!({"session": name}));
        let (header, text) = screen.split_once('\n').expect("a header");
        assert!(header.starts_with(&format!("session {name} ({session}) · active · 100x30 · cursor at row ")), "{header}");
        assert!(text.contains("\nhello-42\n30 100\n"), "{text}");
        // keys come after the text, by tmux's names
        mcp.call("terminal_send", json!({"session": session, "text": "echo ready; cat", "keys": ["Enter"]}));
        awaited(&mut mcp, &session, "^ready$");
        mcp.call("terminal_send", json!({"session": session, "text": "typo", "keys": ["C-u", "o", "k", "BSpace", "k", "Enter", "C-d"]}));
        awaited(&mut mcp, &session, "^ok\nok$");
        // what has scrolled away
        mcp.call("terminal_send", json!({"session": session, "text": "seq 1 200", "submit": true}));
        awaited(&mut mcp, &session, "^200$");
        let screen = mcp.text("terminal_screen", json!({"session": session, "scrollback": 500}));
        assert!(screen.contains("lines of scrollback first") && screen.contains("\n1\n2\n3\n"), "{screen}");
        // in vain is an answer, not an error
        let met = mcp.call("terminal_wait", json!({"session": session, "until": "exit", "timeout_ms": 50}));
        assert_eq!((met["success"].as_bool(), met["met"].as_bool(), met["status"].as_str()), (Some(true), Some(false), Some("active")));
        mcp.call("terminal_send", json!({"session": session, "text": "exit 5", "submit": true}));
        let met = mcp.call("terminal_wait", json!({"session": session, "until": "exit"}));
        assert_eq!((met["met"].as_bool(), met["status"].as_str(), met["exit_code"].as_i64()), (Some(true), Some("failed"), Some(5)));
        let screen = mcp.text("terminal_screen", json!({"session": session}));
        assert!(screen.contains("failed (exit code 5)") && screen.contains("exit 5"), "{screen}");
        let sentence = mcp.refused("terminal_send", json!({"session": session, "text": "x"}), "status");
        assert!(sentence.contains("failed"), "{sentence}");
        mcp.refused("terminal_screen", json!({"session": "nobody"}), "not_found");
        mcp.refused("terminal_wait", json!({"session": "nobody", "until": "exit"}), "not_found");
        mcp.close();
    }
}

#[test]
fn a_command_line_is_the_shells() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let folder = root.join("home");
    let started = mcp.call("terminal_start", json!({"command": "echo $((20+1))$((1+1)) in $PWD | tee out; exit 3", "cwd": folder}));
    assert_eq!(started["name"], "home", "named after its folder");
    let met = mcp.call("terminal_wait", json!({"session": started["session"], "until": "exit"}));
    assert_eq!((met["exit_code"].as_i64(), met["status"].as_str()), (Some(3), Some("failed")));
    let text = std::fs::read_to_string(root.join("home/out")).expect("its output");
    assert_eq!(text.trim_end(), format!("212 in {}", folder.canonicalize().expect("a folder").display()));
    let met = mcp.call("terminal_wait", json!({"session": started["session"], "until": "status", "status": "failed"}));
    assert_eq!(met["met"], true);
    mcp.refused("terminal_wait", json!({"session": started["session"], "until": "status", "status": "active"}), "status");
    let sentence = mcp.refused("terminal_start", json!({"argv": ["/no/such/program"]}), "failed");
    assert!(sentence.contains("/no/such/program"), "{sentence}");
}

#[test]
fn a_task_is_kept_from_its_start_to_its_end() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    let started = mcp.call(
        "session_start",
        json!({"name": "fix", "task": "Fix the login", "mode": "developer", "max_iterations": 2, "context": {"step": {"now": 1}}, "metadata": {"model": "m"}}),
    );
    assert_eq!((started["status"].as_str(), started["running"].as_bool()), (Some("active"), Some(false)));
    assert_eq!((started["max_iterations"].as_u64(), started["mode"].as_str()), (Some(2), Some("developer")));
    assert_eq!(started["workspace"].as_str(), root.work().canonicalize().expect("a folder").to_str());
    let session = started["session"].clone();
    let row = mcp.call("session_iterate", json!({"session": session, "data": {"phase": "analysis"}}));
    assert_eq!((row["iterations"].as_u64(), row["status"].as_str()), (Some(1), Some("active")));
    let row = mcp.call("session_event", json!({"session": "fix", "type": "deployed", "data": {"to": "staging"}}));
    assert_eq!(row["session"], session);
    let sentence = mcp.refused("session_event", json!({"session": "fix", "type": "complete"}), "usage");
    assert!(sentence.contains("told by"), "{sentence}");
    let row = mcp.call("session_pause", json!({"session": "fix", "reason": "waits"}));
    assert_eq!((row["status"].as_str(), row["status_reason"].as_str()), (Some("paused"), Some("waits")));
    mcp.refused("session_iterate", json!({"session": "fix"}), "status");
    mcp.call("session_resume", json!({"session": "fix"}));
    let row = mcp.call("session_iterate", json!({"session": "fix"}));
    assert_eq!((row["status"].as_str(), row["status_reason"].as_str()), (Some("timeout"), Some("iterations")));
    let row = mcp.call("session_resume", json!({"session": "fix", "max_iterations": 5}));
    assert_eq!((row["status"].as_str(), row["max_iterations"].as_u64()), (Some("active"), Some(5)));
    let context = mcp.call("session_context", json!({"session": "fix", "set": {"step": {"next": 2}}, "metadata": {"cost": 0.5}}));
    assert_eq!((&context["context"], &context["metadata"]["cost"]), (&json!({"step": {"now": 1, "next": 2}}), &json!(0.5)));
    assert_eq!((context["resumable"].as_bool(), context["task"].as_str()), (Some(true), Some("Fix the login")));
    let facts = context["recent_events"].as_array().expect("events");
    assert!(facts.iter().any(|fact| fact["type"] == "deployed" && fact["data"]["to"] == "staging"), "{context}");
    let row = mcp.call("session_complete", json!({"session": "fix", "result": "it works"}));
    assert_eq!((row["status"].as_str(), row["result"].as_str()), (Some("completed"), Some("it works")));
    mcp.refused("session_complete", json!({"session": "fix"}), "status");

    let other = mcp.call("session_start", json!({"name": "other", "task": "Another"}));
    let row = mcp.call("session_fail", json!({"session": other["session"], "error": "no access"}));
    assert_eq!((row["success"].as_bool(), row["status"].as_str()), (Some(true), Some("failed")));
    assert_eq!((row["session_error"].as_str(), row.get("error")), (Some("no access"), None));

    let list = mcp.call("session_list", json!({}));
    let names: Vec<&str> = list["sessions"].as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!((names, list["has_more"].as_bool()), (vec!["other", "fix"], Some(false)), "the most recently active first");
    let list = mcp.call("session_list", json!({"limit": 1}));
    assert_eq!((list["sessions"].as_array().map(Vec::len), list["has_more"].as_bool()), (Some(1), Some(true)));
    for (filter, count) in [
        (json!({"status": ["completed"]}), 1),
        (json!({"mode": "developer"}), 1),
        (json!({"text": "LOGIN"}), 1),
        (json!({"workspace": root.work()}), 2),
        (json!({"workspace": root.join("home")}), 0),
        (json!({"all": true}), 2),
    ] {
        let list = mcp.call("session_list", filter.clone());
        assert_eq!(list["sessions"].as_array().map(Vec::len), Some(count), "{filter}: {list}");
    }
}

#[test]
fn changed_files_are_listed_and_a_prompt_is_waited_for() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    mcp.call("terminal_start", json!({"name": "sh", "argv": ["bash"]}));
    let waited = mcp.call("terminal_wait", json!({"session": "sh", "until": "prompt", "timeout_ms": 20000}));
    assert_eq!(waited["met"], true);
    for line in ["echo 1 > first; sleep 0.1", "echo 2 > second"] {
        mcp.call("terminal_send", json!({"session": "sh", "text": line, "submit": true}));
        mcp.call("terminal_wait", json!({"session": "sh", "until": "prompt", "timeout_ms": 20000}));
    }
    let found = mcp.call("session_files", json!({"session": "sh"}));
    let mut paths: Vec<&str> = found["files"].as_array().expect("files").iter().filter_map(|file| file["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!((paths, found["files"][0]["change"].as_str()), (vec!["first", "second"], Some("created")), "{found}");
    assert!(found["watch"].as_str().is_some_and(|words| words.contains("1 folder watched")), "{found}");
    let found = mcp.call("session_files", json!({"session": "sh", "since_command": true}));
    assert_eq!((found["files"].as_array().map(Vec::len), found["files"][0]["path"].as_str()), (Some(1), Some("second")), "{found}");
    assert_eq!(found["command"], "echo 2 > second");
    let found = mcp.call("session_files", json!({"session": "sh", "limit": 1}));
    assert_eq!((found["files"].as_array().map(Vec::len), found["more"].as_u64()), (Some(1), Some(1)));
    mcp.refused("session_files", json!({"session": "sh", "since": "soon"}), "usage");
    mcp.refused("session_files", json!({"session": "sh", "since": "2026-11-16T09:30:00Z", "since_command": true}), "usage");
    mcp.refused("session_files", json!({"session": "nobody"}), "not_found");
}

#[test]
fn the_session_it_runs_in_is_meant_when_none_is_named() {
    let root = Root::new();
    let started = root.record("mine", &["--task", "Mine"]);
    let id = started["id"].as_str().expect("an id");
    let mut mcp = Mcp::start_with(&root, &[("SESSIONS_SESSION", id)]);
    assert_eq!(mcp.call("session_iterate", json!({}))["iterations"], 1);
    assert_eq!(mcp.call("session_context", json!({"set": {"a": 1}}))["context"], json!({"a": 1}));
    mcp.call("session_event", json!({"type": "seen"}));
    assert_eq!(mcp.call("session_complete", json!({}))["session"], id);
    // what acts on a terminal is never guessed
    mcp.refused("terminal_send", json!({"text": "x"}), "usage");
    mcp.close();
    assert!(root.kinds("mine").contains(&"seen".to_owned()));
}

#[test]
fn a_person_is_told_what_this_is() {
    let root = Root::new();
    let help = root.run(&["mcp", "--help"]).ok();
    for word in ["claude mcp add", "codex mcp add", "mcpServers", "runtime", "terminal_start", "CLAUDE_PROJECT_DIR"] {
        assert!(help.contains(word), "{word} in {help}");
    }
    let mut term = Term::open(&root, 100, 20, &["mcp"]);
    term.wait_for_text("sessions-tui mcp --help");
    term.send(b"\x04");
    assert_eq!(term.wait_exit(), 0);
}
