//! Events: everybody's own words, who said them, numbers without a gap, and following them through any crash. Context.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Root, Term, process, wait_until};

/// The bound on the data of one event.
const MAX_DATA: usize = 64 << 10;

/// A JSON text of exactly this many bytes.
fn text_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

#[track_caller]
fn last(root: &Root, name: &str) -> Value {
    root.events(name).pop().expect("an event")
}

#[track_caller]
fn told_by(root: &Root, name: &str, kind: &str) -> String {
    let events = root.events(name);
    let found = events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind} in {events:?}"));
    found["author"].as_str().expect("an author").to_owned()
}

#[test]
fn a13_events_from_the_future_are_refused_with_the_newest_there_is() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    let newest = root.events("one").last().expect("an event")["seq"].as_u64().expect("a number");
    root.run(&["events", "--since", &newest.to_string()]).ok();
    for follow in [&["events", "--since", "99999"][..], &["events", "one", "--since", "99999", "-f"]] {
        let refusal = root.run(follow).refused(2);
        assert!(refusal.contains("no event 99999") && refusal.contains(&format!("newest is {newest}")), "{refusal}");
    }
}

#[test]
fn callers_choose_their_own_types() {
    let root = Root::new();
    root.record("one", &[]);
    for (kind, data) in [
        ("deployed", r#"{"to":"staging"}"#),
        ("ci.build-2:done", "[1,2,null]"),
        ("größe", "\"text\""),
        ("x", "true"),
        ("64".repeat(32).as_str(), "12.5"),
    ] {
        let answer = root.json(&["event", "one", kind, "--data", data, "--json"]);
        assert_eq!(answer["name"], "one");
        let event = last(&root, "one");
        assert_eq!((event["type"].as_str(), &event["data"]), (Some(kind), &serde_json::from_str::<Value>(data).expect("JSON")));
        assert!(event["at"].is_string() && event["seq"].is_u64());
    }
    root.run(&["event", "one", "bare"]).ok();
    assert_eq!(last(&root, "one")["data"], json!({}));
    let before = root.events("one");
    for kind in ["", "two words", "a/b", "complete", "start", "timeout", "iteration", "lost", &"x".repeat(65)] {
        root.run(&["event", "one", kind]).refused(2);
    }
    root.run(&["event", "one", "fine", "--data", "{broken"]).refused(2);
    root.run(&["event", "nobody", "fine"]).refused(3);
    assert_eq!(root.events("one"), before);
    // an ended session can still be told of
    root.run(&["complete", "one"]).ok();
    root.run(&["event", "one", "reviewed"]).ok();
    assert_eq!((last(&root, "one")["type"].as_str(), root.status("one").0.as_str()), (Some("reviewed"), "completed"));
}

#[test]
fn data_has_a_bound() {
    let root = Root::new();
    root.record("one", &[]);
    root.run(&["event", "one", "large", "--data", &text_of(MAX_DATA)]).ok();
    assert_eq!(last(&root, "one")["data"].as_str().map(str::len), Some(MAX_DATA - 2));
    let before = (root.run(&["show", "one", "--json"]).ok(), root.events("one"));
    let large = text_of(MAX_DATA + 1);
    let object = format!("{{\"a\":{large}}}");
    for args in [
        &["event", "one", "large", "--data", &large][..],
        &["iterate", "one", "--data", &object],
        &["tool-call", "one", "bash", "--input", &large],
        &["tool-call", "one", "bash", "--output", &large],
        &["learn", "one", &large],
        &["context", "one", "--set", &object],
        &["context", "one", "--metadata", &object],
        &["pause", "one", "--reason", &large],
        &["complete", "one", "--result", &large],
        &["fail", "one", "--error", &large],
    ] {
        let sentence = root.run(args).refused(2);
        assert!(sentence.contains("65536"), "{:?}: {sentence}", &args[..3]);
        assert!(sentence.len() < 500, "the sentence does not repeat what was too long: {} bytes", sentence.len());
    }
    assert_eq!((root.run(&["show", "one", "--json"]).ok(), root.events("one")), before, "nothing of it was stored");
    // depth is no way around it
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let output = root.run(&["event", "one", "deep", "--data", &deep]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    root.run(&["event", "one", "fine"]).ok();
}

#[test]
fn the_daemon_says_who_it_was() {
    let root = Root::new();
    let binary = env!("CARGO_BIN_EXE_sessions-tui");
    root.start_script(
        "one",
        &format!("{binary} event one inside; {binary} iterate one; {binary} event other visited; echo up; exec sleep 1000"),
    );
    root.record("other", &[]);
    root.wait_screen("one", "up");
    root.run(&["event", "one", "outside"]).ok();
    let term = Term::open(&root, 80, 24, &["attach", "one"]);
    term.wait_for_text("up");
    wait_until("the attachment to be told", || root.kinds("one").iter().any(|kind| kind == "attach"));
    for (kind, author) in [("inside", "agent"), ("iteration", "agent"), ("outside", "api"), ("start", "api"), ("attach", "human")] {
        assert_eq!(told_by(&root, "one", kind), author, "{kind}");
    }
    drop(term);
    root.run(&["kill", "one"]).ok();
    assert_eq!((told_by(&root, "one", "exit").as_str(), told_by(&root, "one", "complete").as_str()), ("daemon", "api"));
}

#[test]
fn a_session_s_numbers_have_no_gap() {
    let root = Root::new();
    let names = ["a", "b", "c"];
    for name in names {
        root.record(name, &[]);
    }
    std::thread::scope(|scope| {
        for name in names {
            let root = &root;
            scope.spawn(move || {
                for round in 0..15 {
                    root.run(&["event", name, "tick", "--data", &round.to_string()]).ok();
                    root.run(&["iterate", name]).ok();
                }
            });
        }
    });
    root.kill_daemon();
    root.run(&["event", "a", "after"]).ok();
    for name in names {
        let events = root.events(name);
        let numbers: Vec<u64> = events.iter().map(|event| event["n"].as_u64().expect("a number")).collect();
        let expected = if name == "a" { 32 } else { 31 };
        assert_eq!(numbers, (1..=expected).collect::<Vec<u64>>(), "{name}");
        let ticks: Vec<u64> = events.iter().filter(|event| event["type"] == "tick").filter_map(|event| event["data"].as_u64()).collect();
        assert_eq!(ticks, (0..15).collect::<Vec<u64>>(), "in the order they were acknowledged");
        assert!(events.is_sorted_by_key(|event| event["seq"].as_u64()));
    }
    let all = root.run(&["events", "--json"]).ok();
    assert_eq!(all.lines().count(), 94, "every session's together");
}

#[test]
fn since_and_follow() {
    let root = Root::new();
    root.record("one", &[]);
    root.record("other", &[]);
    for kind in ["a", "b", "c"] {
        root.run(&["event", "one", kind]).ok();
        root.run(&["event", "other", kind]).ok();
    }
    let seq = root.events("one")[1]["seq"].as_u64().expect("a number").to_string();
    let text = root.run(&["events", "one", "--since", &seq, "--json"]).ok();
    let kinds: Vec<String> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].as_str().expect("a type").to_owned()).collect();
    assert_eq!(kinds, ["b", "c"]);
    assert!(root.run(&["events", "one", "--since", "1000000", "--json"]).refused(2).contains("the newest is"));
    root.run(&["events", "nobody"]).refused(3);
    root.run(&["events", "one", "--since", "x"]).refused(2);
}

/// Lines of a client that follows, until it ends or is killed.
struct Follower {
    child: std::process::Child,
    lines: mpsc::Receiver<String>,
}

impl Follower {
    fn start(root: &Root, name: &str, since: u64) -> Self {
        let since = since.to_string();
        let mut child = root.command(&["events", name, "--follow", "--json", "--since", &since]).spawn().expect("starts");
        let mut reader = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // a line that is not whole was cut off by the kill: it does not count
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        process::kill(self.child.id());
        self.child.wait().expect("ours");
    }
}

#[test]
fn a_follower_misses_nothing_and_sees_nothing_twice_through_any_crash() {
    let root = Root::new();
    root.record("one", &[]);
    root.record("other", &[]);
    let is_over = AtomicBool::new(false);
    let (seen, acknowledged) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut acknowledged = Vec::new();
            for number in 0..150u64 {
                let data = number.to_string();
                // it may lose its daemon in the middle: then it was not acknowledged
                if root.run(&["event", "one", "tick", "--data", &data]).code == 0 {
                    acknowledged.push(number);
                }
                if number % 3 == 0 {
                    root.run(&["event", "other", "noise"]);
                }
                if number % 12 == 11 {
                    root.kill_daemon_at_once();
                }
            }
            is_over.store(true, Ordering::SeqCst);
            wait_until("the end to be told", || root.run(&["event", "one", "end"]).code == 0);
            acknowledged
        });
        let mut seen: Vec<Value> = Vec::new();
        let mut round = 0;
        'all: loop {
            round += 1;
            let since = seen.last().map_or(0, |event| event["seq"].as_u64().expect("a number"));
            let follower = Follower::start(&root, "one", since);
            // the client is killed after a few lines; sometimes it lives long enough to outlive a daemon
            for _ in 0..[1, 2, 5, 30][round % 4] {
                let line = match follower.lines.recv_timeout(PATIENCE) {
                    Ok(line) => line,
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(mpsc::RecvTimeoutError::Timeout) => panic!("nothing came for {PATIENCE:?} after {:?}", seen.last()),
                };
                let event: Value = serde_json::from_str(&line).expect("JSON");
                let is_end = event["type"] == "end";
                seen.push(event);
                if is_end {
                    break 'all;
                }
            }
        }
        (seen, writer.join().expect("the writer"))
    });
    assert!(is_over.load(Ordering::SeqCst));
    let stored = root.events("one");
    let upto: Vec<Value> = stored.into_iter().take_while(|event| event["type"] != "end").collect();
    assert_eq!(seen[..seen.len() - 1], upto[..], "exactly what is stored, in its order");
    let numbers: Vec<u64> = seen.iter().map(|event| event["n"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<u64>>());
    let ticks: Vec<u64> = seen.iter().filter(|event| event["type"] == "tick").filter_map(|event| event["data"].as_u64()).collect();
    for number in acknowledged {
        assert_eq!(ticks.iter().filter(|tick| **tick == number).count(), 1, "{number} was acknowledged");
    }
}

#[test]
fn one_follower_outlives_daemons() {
    let root = Root::new();
    root.record("one", &[]);
    let follower = Follower::start(&root, "one", 0);
    let next = || -> Value { serde_json::from_str(&follower.lines.recv_timeout(PATIENCE).expect("a line")).expect("JSON") };
    assert_eq!(next()["type"], "start");
    for round in 0..5u64 {
        root.kill_daemon_at_once();
        root.run(&["event", "one", "tick", "--data", &round.to_string()]).ok();
        let event = next();
        assert_eq!((event["type"].as_str(), event["data"].as_u64(), event["n"].as_u64()), (Some("tick"), Some(round), Some(round + 2)));
    }
}

#[test]
fn tools_and_learnings_are_kept() {
    let root = Root::new();
    root.record("fix", &[]);
    root.run(&["tool-call", "fix", "bash", "--input", r#"{"command":"npm test"}"#, "--output", r#"{"exitCode":0}"#]).ok();
    assert_eq!(last(&root, "fix")["type"], "tool_call");
    assert_eq!(last(&root, "fix")["data"], json!({"tool": "bash", "input": {"command": "npm test"}, "output": {"exitCode": 0}}));
    root.run(&["tool-call", "fix", "read"]).ok();
    root.run(&["tool-call", "fix", "bash"]).ok();
    assert_eq!(root.session("fix")["metadata"]["tools_used"], json!(["bash", "read"]), "each once");
    root.run(&["tool-call", "fix", ""]).refused(2);
    root.run(&["learn", "fix", "clear the cache", "--file", "expertise/developer.md"]).ok();
    assert_eq!(last(&root, "fix")["type"], "learning");
    assert_eq!(last(&root, "fix")["data"], json!({"text": "clear the cache", "file": "expertise/developer.md"}));
    root.run(&["learn", "fix", " "]).refused(2);
    assert_eq!(root.kinds("fix"), ["start", "tool_call", "tool_call", "tool_call", "learning"]);
    // at once, none is lost
    let children: Vec<_> =
        (0..20).map(|number| root.command(&["tool-call", "fix", &format!("t{number}")]).spawn().expect("starts")).collect();
    for child in children {
        assert!(child.wait_with_output().expect("ends").status.success());
    }
    assert_eq!(root.session("fix")["metadata"]["tools_used"].as_array().map(Vec::len), Some(22));
}

#[test]
fn context_is_merged_deeply() {
    let root = Root::new();
    root.record("fix", &["--context", r#"{"a":{"b":1,"c":{"d":2}},"list":[1,2]}"#, "--metadata", r#"{"model":"m","own":1}"#]);
    let set = |text: &str| root.json(&["context", "fix", "--set", text, "--json"])["context"].clone();
    assert_eq!(set(r#"{"a":{"c":{"e":3}}}"#), json!({"a": {"b": 1, "c": {"d": 2, "e": 3}}, "list": [1, 2]}));
    assert_eq!(set(r#"{"a":{"b":null},"list":[3]}"#), json!({"a": {"c": {"d": 2, "e": 3}}, "list": [3]}));
    assert_eq!(set(r#"{"a":5,"nothing":null,"new":{"x":null,"y":1}}"#), json!({"a": 5, "list": [3], "new": {"y": 1}}));
    let answer = root.json(&["context", "fix", "--metadata", r#"{"cost":0.5,"tokens":{"prompt":10},"own":null}"#, "--json"]);
    assert_eq!(answer["metadata"], json!({"model": "m", "cost": 0.5, "tokens": {"prompt": 10}}));
    assert_eq!(root.kinds("fix"), ["start", "context", "context", "context", "context"]);
    let before = root.run(&["show", "fix", "--json"]).ok();
    for args in [["--set", "[1]"], ["--set", "x"], ["--metadata", r#"{"cost":"much"}"#], ["--metadata", r#"{"tools_used":"bash"}"#]] {
        root.run(&["context", "fix", args[0], args[1]]).refused(2);
    }
    assert_eq!(root.run(&["show", "fix", "--json"]).ok(), before);
    // merged by many at once: every key is there
    let children: Vec<_> = (0..20)
        .map(|number| root.command(&["context", "fix", "--set", &format!("{{\"k\":{{\"n{number}\":1}}}}")]).spawn().expect("starts"))
        .collect();
    for child in children {
        assert!(child.wait_with_output().expect("ends").status.success());
    }
    assert_eq!(root.session("fix")["context"]["k"].as_object().map(serde_json::Map::len), Some(20));
    root.kill_daemon();
    assert_eq!(root.session("fix")["context"]["k"].as_object().map(serde_json::Map::len), Some(20));
}

#[test]
fn the_whole_context_has_a_bound() {
    let root = Root::new();
    root.record("fix", &[]);
    let part = |number: usize| format!("{{\"part-{number}\":{}}}", text_of(60_000));
    for number in 0..4 {
        root.run(&["context", "fix", "--set", &part(number)]).ok();
    }
    let before = (root.run(&["show", "fix", "--json"]).ok(), root.kinds("fix"));
    let sentence = root.run(&["context", "fix", "--set", &part(4)]).refused(2);
    assert!(sentence.contains("262144"), "{sentence}");
    assert_eq!((root.run(&["show", "fix", "--json"]).ok(), root.kinds("fix")), before);
    root.run(&["context", "fix", "--set", r#"{"part-0":null}"#]).ok();
    root.run(&["context", "fix", "--set", &part(4)]).ok();
}

#[test]
fn one_call_gives_what_is_needed_to_go_on() {
    let root = Root::new();
    root.run(&["group", "set", "held", "--limit", "0"]).ok();
    root.record("queued", &["--group", "held"]);
    root.record("active", &["--task", "fix it", "--mode", "developer", "--context", r#"{"next":"tests"}"#, "--max-iterations", "7"]);
    root.record("paused", &[]);
    root.record("completed", &[]);
    root.record("failed", &[]);
    root.record("used-up", &["--max-iterations", "1"]);
    root.record("idle", &["--idle-timeout", "20ms"]);
    root.run(&["pause", "paused"]).ok();
    root.run(&["complete", "completed", "--result", "done"]).ok();
    root.run(&["fail", "failed", "--error", "no"]).ok();
    root.run(&["iterate", "used-up"]).ok();
    root.wait_status("idle", "timeout");
    for (name, resumable, words) in [
        ("queued", false, "waits for its turn"),
        ("active", true, "just go on"),
        ("paused", true, "sessions-tui resume paused"),
        ("completed", false, "it is completed: `sessions-tui new -n completed`"),
        ("failed", false, "failed"),
        ("used-up", true, "sessions-tui resume used-up --max-iterations N"),
        ("idle", false, "idle"),
    ] {
        let context = root.json(&["context", name, "--json"]);
        assert_eq!(context["resumable"], resumable, "{context}");
        assert!(context["reason"].as_str().is_some_and(|reason| reason.contains(words)), "{context}");
        assert_eq!(context["recent_events"].as_array(), Some(&root.events(name)), "{name}");
        let text = root.run(&["context", name]).ok();
        assert!(text.contains(name), "{text}");
    }
    for round in 0..25 {
        root.run(&["event", "active", "tick", "--data", &round.to_string()]).ok();
    }
    root.run(&["iterate", "active"]).ok();
    let context = root.json(&["context", "active", "--json"]);
    assert_eq!(context["task"], "fix it");
    assert_eq!((context["iterations"].as_u64(), context["max_iterations"].as_u64()), (Some(1), Some(7)));
    assert_eq!((&context["context"]["next"], &context["mode"]), (&"tests".into(), &"developer".into()));
    let recent = context["recent_events"].as_array().expect("events");
    assert_eq!((recent.len(), &recent[19]["type"], &recent[0]["data"]), (20, &"iteration".into(), &json!(6)), "the newest, oldest first");
    // only asking changes nothing
    let before = root.run(&["show", "active", "--json"]).ok();
    root.json(&["context", "active", "--json"]);
    assert_eq!(root.run(&["show", "active", "--json"]).ok(), before);
}

#[test]
fn a_word_of_the_daemon_is_nobody_else_s() {
    let root = Root::new();
    root.record("one", &[]);
    // what `new --idle-timeout` tells of a live session
    root.run(&["event", "one", "policy"]).refused(2);
}

#[test]
fn a_follower_stays_with_its_session_whatever_it_is_called() {
    let root = Root::new();
    root.record("one", &[]);
    let path = root.join("followed");
    let file = std::fs::File::create(&path).expect("a file");
    let mut follower = root.command(&["events", "one", "--follow", "--json"]).stdout(file).spawn().expect("starts");
    let followed = || std::fs::read_to_string(&path).expect("reads");
    wait_until("the past", || followed().lines().count() == 1);
    root.run(&["rename", "one", "moved"]).ok();
    wait_until("the new name", || followed().contains("renamed"));
    root.record("one", &[]);
    root.kill_daemon();
    root.run(&["event", "one", "not-mine"]).ok();
    root.run(&["event", "moved", "mine"]).ok();
    wait_until("what is told of it", || followed().contains("\"mine\""));
    assert!(!followed().contains("not-mine"), "{}", followed());
    assert_eq!(followed().lines().count(), 3);
    follower.kill().expect("a child of ours");
    follower.wait().expect("ends");
}

#[test]
fn events_end_when_nobody_reads_them() {
    let root = Root::new();
    root.record("one", &[]);
    for _ in 0..5 {
        root.run(&["event", "one", "x"]).ok();
    }
    let mut reader = root.command(&["events", "--follow", "--json"]).spawn().expect("starts");
    drop(reader.stdout.take());
    root.run(&["event", "one", "x"]).ok();
    wait_until("it to notice", || reader.try_wait().expect("a child of ours").is_some());
}
