//! The budget of iterations, and the policy: how long a session may be idle, and how long it may last.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::term::DETACH;
use crate::support::{Root, Term, process, wait_until};

const HOUR: &str = "3600000000";

#[track_caller]
fn last_event(root: &Root, name: &str, kind: &str) -> Value {
    let found = root.events(name).into_iter().rfind(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("a {kind} among {:?}", root.kinds(name)))
}

/// Another session's end, this long from now: a moment that can be waited for.
#[track_caller]
fn let_pass(root: &Root, span: &str) {
    let name = format!("clock-{span}");
    root.record(&name, &["--max-duration", span]);
    root.wait_status(&name, "timeout");
}

#[track_caller]
fn wait_timeout(root: &Root, name: &str, reason: &str) {
    root.wait_status(name, "timeout");
    assert_eq!(root.status(name).1, reason, "{name}");
    assert_eq!(last_event(root, name, "timeout")["data"]["reason"], reason);
    assert_eq!(last_event(root, name, "timeout")["author"], "daemon");
    assert_eq!(root.kinds(name).iter().filter(|kind| *kind == "timeout").count(), 1, "told once");
}

#[test]
fn an_iteration_is_counted_with_its_data() {
    let root = Root::new();
    root.record("fix", &["--max-iterations", "10"]);
    let answer = root.json(&["iterate", "fix", "--data", r#"{"phase":"analysis","files":["a","b"]}"#, "--json"]);
    assert_eq!((answer["iterations"].as_u64(), answer["max_iterations"].as_u64()), (Some(1), Some(10)));
    root.run(&["iterate", "fix"]).ok();
    root.kill_daemon();
    root.run(&["iterate", "fix", "--data", r#"{"größe":"ü"}"#]).ok();
    let data: Vec<Value> =
        root.events("fix").iter().filter(|event| event["type"] == "iteration").map(|event| event["data"].clone()).collect();
    assert_eq!(data[0], json!({"phase": "analysis", "files": ["a", "b"], "iteration": 1, "max_iterations": 10}));
    assert_eq!(data[1], json!({"iteration": 2, "max_iterations": 10}));
    assert_eq!(data[2], json!({"größe": "ü", "iteration": 3, "max_iterations": 10}));
    assert_eq!(root.session("fix")["iterations"], 3);
    for wrong in ["[1]", "7", "not json", "\"text\"", r#"{"iteration":99}"#] {
        root.run(&["iterate", "fix", "--data", wrong]).refused(2);
    }
    assert_eq!(root.session("fix")["iterations"], 3, "what is refused is not counted");
    assert_eq!(root.record("plain", &[])["max_iterations"], 50);
}

#[test]
fn a_used_up_budget_ends_the_session_for_review() {
    let root = Root::new();
    root.json(&["new", "-d", "--json", "-n", "fix", "--max-iterations", "2", "--", "sleep", "1000"]);
    let program = root.program("fix");
    root.run(&["iterate", "fix"]).ok();
    let last = root.json(&["iterate", "fix", "--json"]);
    assert_eq!((last["status"].as_str(), last["status_reason"].as_str()), (Some("timeout"), Some("iterations")));
    assert!(last["note"].as_str().is_some_and(|note| note.contains("stands still")), "{last}");
    assert_eq!(root.kinds("fix"), ["start", "iteration", "iteration", "timeout"]);
    assert_eq!(last_event(&root, "fix", "timeout")["data"], json!({"reason": "iterations", "iterations": 2, "max_iterations": 2}));
    assert!(process::is_alive(program));
    let before = (root.run(&["show", "fix", "--json"]).ok(), root.kinds("fix"));
    // a larger budget is needed
    assert!(root.run(&["resume", "fix"]).refused(4).contains("--max-iterations"));
    for too_small in ["2", "1", "0"] {
        root.run(&["resume", "fix", "--max-iterations", too_small]).refused(2);
    }
    root.run(&["iterate", "fix"]).refused(4);
    let stable = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["session"].clone();
    assert_eq!((stable(&root.run(&["show", "fix", "--json"]).ok()), root.kinds("fix")), (stable(&before.0), before.1));
    root.kill_daemon();
    let resumed = root.json(&["resume", "fix", "--max-iterations", "3", "--json"]);
    assert_eq!(
        (resumed["status"].as_str(), resumed["iterations"].as_u64(), resumed["ended_at"].is_null()),
        (Some("active"), Some(2), true)
    );
    assert_eq!(root.program("fix"), program);
    assert_eq!(root.json(&["iterate", "fix", "--json"])["status_reason"], "iterations");
    // the next session on the thread takes its place for good
    let next = root.json(&["new", "-d", "--json", "-n", "fix"]);
    let old = resumed["id"].as_str().expect("an id");
    assert!(root.run(&["resume", old, "--max-iterations", "9"]).refused(4).contains(next["id"].as_str().expect("an id")));
    assert_eq!(root.status(old), ("timeout".into(), "iterations".into()));
}

#[test]
fn an_idle_session_is_over_and_so_is_its_program() {
    let root = Root::new();
    root.json(&["new", "-d", "--json", "-n", "idle", "--idle-timeout", "300ms", "--", "sleep", "1000"]);
    root.json(&["new", "-d", "--json", "-n", "long", "--max-duration", "300ms", "--", "bash", "-c", "while sleep 0.05; do echo x; done"]);
    root.record("record", &["--idle-timeout", "300ms"]);
    let other = root.start("other", &["sleep", "1000"]);
    for (name, reason) in [("idle", "idle"), ("long", "duration"), ("record", "idle")] {
        wait_timeout(&root, name, reason);
        assert!(root.session(name)["ended_at"].is_string());
    }
    for name in ["idle", "long"] {
        wait_until("its program to end", || root.kinds(name).iter().any(|kind| kind == "exit"));
        assert_eq!(root.status(name).0, "timeout", "its program's end changes nothing");
        root.run(&["resume", name, "--max-iterations", "100"]).refused(4);
    }
    wait_until("only the other one to run", || root.holders().len() == 1);
    assert_eq!(root.session("other")["id"], other["id"]);
    assert_eq!(root.status("other").0, "active");
}

#[test]
fn output_keeps_a_session_alive() {
    let root = Root::new();
    let script = "for i in $(seq 1 30); do echo $i; sleep 0.1; done; exit 0";
    root.json(&["new", "-d", "--json", "-n", "busy", "--idle-timeout", "1s", "--", "bash", "-c", script]);
    wait_until("its end", || root.status("busy").0 != "active");
    assert_eq!(root.status("busy"), ("completed".into(), "exit code 0".into()));
}

#[test]
fn whatever_is_done_with_a_session_keeps_it_alive() {
    let root = Root::new();
    let doings: [(&str, &[&str]); 5] = [
        ("event", &["event", "event", "tick"]),
        ("iterate", &["iterate", "iterate"]),
        ("learn", &["learn", "learn", "something"]),
        ("tool", &["tool-call", "tool", "bash"]),
        ("send", &["send", "send", "x"]),
    ];
    for (name, _) in &doings[..4] {
        root.record(name, &["--idle-timeout", "1s", "--max-iterations", "1000000"]);
    }
    // it neither echoes nor says anything: only what is typed counts
    root.run(&["new", "-d", "-n", "send", "--idle-timeout", "1s", "--", "bash", "-c", "stty raw -echo; exec sleep 1000"]).ok();
    root.record("left-alone", &["--idle-timeout", "1s"]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        for (_, args) in doings {
            root.run(args).ok();
        }
    }
    for (name, _) in doings {
        assert_eq!(root.status(name).0, "active", "{name}");
    }
    wait_timeout(&root, "left-alone", "idle");
    for (name, _) in doings {
        wait_timeout(&root, name, "idle");
    }
}

#[test]
fn time_spent_paused_or_queued_does_not_count() {
    let root = Root::new();
    root.record("idle", &["--idle-timeout", "2s"]);
    root.record("long", &["--max-duration", "2s"]);
    root.run(&["group", "set", "held", "--limit", "0"]).ok();
    root.record("queued", &["--group", "held", "--max-duration", "2s", "--idle-timeout", "2s"]);
    for name in ["idle", "long"] {
        root.run(&["pause", name]).ok();
    }
    let_pass(&root, "2500ms");
    root.kill_daemon();
    for (name, status) in [("idle", "paused"), ("long", "paused"), ("queued", "queued")] {
        assert_eq!(root.status(name).0, status, "{name}");
    }
    root.run(&["group", "set", "held", "--limit", "1"]).ok();
    for name in ["idle", "long"] {
        assert_eq!(root.json(&["resume", name, "--json"])["status"], "active");
        assert_eq!(root.json(&["event", name, "here", "--json"])["status"], "active", "{name} has time left");
    }
    wait_timeout(&root, "idle", "idle");
    wait_timeout(&root, "long", "duration");
    assert_eq!(root.kinds("queued")[..2], ["queued", "start"]);
    root.wait_status("queued", "timeout");
}

#[test]
fn what_expired_without_a_daemon_is_over_after_the_next_start() {
    let root = Root::new();
    root.record("idle", &["--idle-timeout", "1h"]);
    root.json(&["new", "-d", "--json", "-n", "long", "--max-duration", "1h", "--", "sleep", "1000"]);
    root.record("not-yet", &["--idle-timeout", "3h", "--max-duration", "3h"]);
    root.run(&["daemon", "stop"]).ok();
    let shift = format!("UPDATE sessions SET idle_since = idle_since - 2 * {HOUR}, active_since = active_since - 2 * {HOUR}");
    assert_eq!(root.sql(&shift), 3);
    wait_timeout(&root, "idle", "idle");
    wait_timeout(&root, "long", "duration");
    wait_until("its program to end", || root.holders().is_empty());
    assert_eq!(root.status("not-yet").0, "active");
}

#[test]
fn a_deadline_is_kept_through_kill_9() {
    let root = Root::new();
    root.record("one", &["--idle-timeout", "500ms"]);
    root.kill_daemon();
    // any command starts the next one
    wait_timeout(&root, "one", "idle");
    root.run(&["new", "-d", "-n", "two", "--idle-timeout", "500ms", "--", "sleep", "1000"]).ok();
    root.kill_daemon();
    wait_timeout(&root, "two", "idle");
    wait_until("its program to end", || root.holders().is_empty());
}

#[test]
fn a_client_in_control_holds_a_session() {
    let root = Root::new();
    let mut term =
        Term::open(&root, 80, 24, &["new", "-n", "held", "--idle-timeout", "700ms", "--", "bash", "-c", "echo up; exec sleep 1000"]);
    term.wait_for_text("up");
    let mut second =
        Term::open(&root, 80, 24, &["new", "-n", "long", "--max-duration", "700ms", "--", "bash", "-c", "echo up; exec sleep 1000"]);
    second.wait_for_text("up");
    let_pass(&root, "1500ms");
    assert_eq!((root.status("held").0, root.status("long").0), ("active".into(), "active".into()));
    for (window, name, reason) in [(&mut term, "held", "idle"), (&mut second, "long", "duration")] {
        window.send(DETACH);
        assert_eq!(window.wait_exit(), 0);
        wait_timeout(&root, name, reason);
    }
    wait_until("their programs to end", || root.holders().is_empty());
}

#[test]
fn a_window_that_is_closed_lets_go_too() {
    let root = Root::new();
    let mut term =
        Term::open(&root, 80, 24, &["new", "-n", "held", "--idle-timeout", "500ms", "--", "bash", "-c", "echo up; exec sleep 1000"]);
    term.wait_for_text("up");
    let_pass(&root, "1s");
    assert_eq!(root.status("held").0, "active");
    process::kill(term.pid());
    term.close();
    wait_timeout(&root, "held", "idle");
}

#[test]
fn a_client_that_only_watches_holds_nothing() {
    let root = Root::new();
    root.run(&["new", "-d", "-n", "watched", "--idle-timeout", "2s", "--", "bash", "-c", "echo up; exec sleep 1000"]).ok();
    let term = Term::open(&root, 80, 24, &["attach", "watched", "--read-only"]);
    term.wait_for_text("up");
    wait_timeout(&root, "watched", "idle");
}

#[test]
fn policies_have_defaults_by_kind() {
    let root = Root::new();
    let policy = |name: &str| {
        let policy = root.session(name)["policy"].clone();
        let word = |key: &str| policy[key].as_str().unwrap_or_default().to_owned();
        (word("idle_timeout"), word("max_duration"))
    };
    let is = |idle: &str, duration: &str| (idle.to_owned(), duration.to_owned());
    root.start("terminal", &["sleep", "1000"]);
    root.record("record", &[]);
    root.record("task", &["--task", "x"]);
    root.record("some", &["--task", "x", "--idle-timeout", "90s"]);
    root.record("free", &["--task", "x", "--idle-timeout", "none", "--max-duration", "none"]);
    root.record("limited", &["--max-duration", "2d"]);
    for (name, expected) in [
        ("terminal", is("none", "none")),
        ("record", is("none", "none")),
        ("task", is("1h", "1d")),
        ("some", is("90s", "1d")),
        ("free", is("none", "none")),
        ("limited", is("none", "2d")),
    ] {
        assert_eq!(policy(name), expected, "{name}");
    }
    for wrong in ["0", "0s", "soon", "-1s", "1y", ""] {
        root.run(&["new", "--no-run", "-n", "wrong", "--idle-timeout", wrong]).refused(2);
    }
    root.run(&["show", "wrong"]).refused(3);
    // a live session's can be changed, and both ways
    root.record("task", &["--idle-timeout", "none"]);
    assert_eq!(policy("task"), is("none", "1d"));
    root.record("free", &["--idle-timeout", "300ms"]);
    assert_eq!(root.kinds("free"), ["start", "policy"]);
    wait_timeout(&root, "free", "idle");
    // from the settings
    root.run(&["daemon", "stop"]).ok();
    root.config("[policy.task]\nidle_timeout = \"10m\"\nmax_duration = \"none\"\n[policy.terminal]\nmax_duration = \"2h\"\n");
    root.record("task-2", &["--task", "x"]);
    root.record("record-2", &[]);
    root.record("flag-2", &["--idle-timeout", "1m"]);
    assert_eq!(policy("task-2"), is("10m", "none"));
    assert_eq!(policy("record-2"), is("none", "2h"));
    assert_eq!(policy("flag-2"), is("1m", "2h"));
    assert_eq!(policy("some"), is("90s", "1d"), "what was made before keeps its own");
}

/// A window stays open on sessions that would be over without it, while the daemon goes away and comes back.
#[track_caller]
fn check_held(replace: impl Fn(&Root)) {
    let root = Root::new();
    let script = "echo up; while read line; do echo got $line; done";
    for round in 0..5 {
        let name = format!("held-{round}");
        let mut term = Term::open(&root, 80, 24, &["new", "-n", &name, "--idle-timeout", "700ms", "--", "bash", "-c", script]);
        term.wait_for_text("up");
        let_pass(&root, &format!("1{round}00ms"));
        assert_eq!(root.status(&name).0, "active");
        replace(&root);
        let_pass(&root, &format!("3{round}0ms"));
        assert_eq!(root.status(&name).0, "active", "somebody sits in front of {name}:\n{}", term.text());
        term.send(b"hello\r");
        term.wait_for_text("got hello");
        term.send(DETACH);
        assert_eq!(term.wait_exit(), 0);
    }
}

#[test]
fn a_client_in_control_holds_a_session_while_the_daemon_is_replaced() {
    check_held(|root| drop(root.run(&["daemon", "restart"]).ok()));
}

#[test]
fn a_client_in_control_holds_a_session_through_kill_9_of_the_daemon() {
    // expiry looks before the client has come back
    check_held(|root| {
        root.kill_daemon();
    });
}

#[test]
fn a_program_that_is_being_ended_is_not_taken_over() {
    let root = Root::new();
    // it takes its time: only what follows the grace ends it
    let stubborn = "trap '' HUP TERM; while :; do sleep 1000; done";
    root.json(&["new", "-d", "--json", "-n", "slow", "--idle-timeout", "300ms", "--", "bash", "-c", stubborn]);
    root.wait_status("slow", "timeout");
    let next = root.json(&["new", "-d", "--json", "-n", "slow", "--", "sleep", "1000"]);
    assert_eq!(next["note"], serde_json::Value::Null, "it was waited for: {next}");
    assert_eq!(root.status("slow").0, "active");
    assert_eq!(root.session("slow")["command"], serde_json::json!(["sleep", "1000"]));
    assert!(crate::support::process::is_alive(root.program("slow")));
    assert_eq!(root.holders().len(), 1);
}

#[test]
fn an_end_that_was_decided_comes_also_after_kill_9_of_the_daemon() {
    let root = Root::new();
    root.start("busy", &["sleep", "1000"]);
    let pid = root.program("busy");
    root.kill_daemon();
    // as if the daemon had died between deciding and doing
    assert_eq!(root.sql("UPDATE runtimes SET ending = 'reset' WHERE is_live"), 1);
    root.run(&["wait", "busy", "--for", "status=ended", "--timeout", "20s"]).ok();
    assert_eq!(root.status("busy"), ("ended".into(), "reset".into()));
    assert!(!crate::support::process::is_alive(pid));
}
