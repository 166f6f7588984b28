//! Many clients on one session, and kill -9 of the daemon in the middle: what was acknowledged is there, counted exactly.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::support::wire::Wire;
use crate::support::{Root, wait_until};

const CLIENTS: usize = 50;
const ROUNDS: usize = 12;

/// What one client knows of its calls.
#[derive(Default)]
struct Told {
    iterations: u64,
    facts: u64,
    tools: u64,
    /// Calls whose answer never came: they happened, or they did not.
    unknown: u64,
    last_round: Option<usize>,
}

fn count(events: &[Value], kind: &str) -> u64 {
    events.iter().filter(|event| event["type"] == kind).count() as u64
}

/// One client: each call is made once; a connection that broke is replaced, and its call counted as unknown.
fn hammer(root: &Root, client: usize) -> Told {
    let mut told = Told::default();
    let mut wire = None;
    for round in 0..ROUNDS {
        let key = format!("client-{client}");
        for (what, request) in [
            ("iterate", json!({"request": "iterate", "name": "busy", "data": {"client": client, "round": round}})),
            ("fact", json!({"request": "tell", "name": "busy", "type": "note", "data": {"client": client, "round": round}})),
            ("tool", json!({"request": "tool_call", "name": "busy", "tool": format!("tool-{client}"), "input": round})),
            ("context", json!({"request": "context", "name": "busy", "set": {"clients": {key: round}}})),
        ] {
            let connection = match wire.take() {
                Some(wire) => wire,
                None => reconnect(root),
            };
            let mut connection = connection;
            match connection.try_call(1 + round as u64, request) {
                Some(answer) => {
                    assert!(answer["failure"].is_null(), "{answer}");
                    match what {
                        "iterate" => told.iterations += 1,
                        "fact" => told.facts += 1,
                        "tool" => told.tools += 1,
                        _ => told.last_round = Some(round),
                    }
                    wire = Some(connection);
                }
                None => told.unknown += 1,
            }
        }
    }
    told
}

/// Waits until a daemon answers; whoever kills it also starts it again.
fn reconnect(root: &Root) -> Wire {
    crate::support::wait_for("a daemon", || Wire::try_greeted(&root.socket()))
}

fn check(root: &Root, told: &[Told]) {
    let session = root.session("busy");
    let events = root.events("busy");
    let numbers: Vec<u64> = events.iter().map(|event| event["n"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "the session's numbers have no gap");
    let seqs: Vec<i64> = events.iter().map(|event| event["seq"].as_i64().expect("a number")).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "and rise over all");
    let unknown: u64 = told.iter().map(|told| told.unknown).sum();
    for (kind, acknowledged) in [
        ("iteration", told.iter().map(|told| told.iterations).sum::<u64>()),
        ("note", told.iter().map(|told| told.facts).sum()),
        ("tool_call", told.iter().map(|told| told.tools).sum()),
    ] {
        let found = count(&events, kind);
        assert!(
            (acknowledged..=acknowledged + unknown).contains(&found),
            "{kind}: {found} of {acknowledged} acknowledged, {unknown} unknown"
        );
    }
    assert_eq!(session["iterations"].as_u64(), Some(count(&events, "iteration")), "counted as often as told");
    let counted: Vec<u64> = events
        .iter()
        .filter(|event| event["type"] == "iteration")
        .map(|event| event["data"]["iteration"].as_u64().expect("a number"))
        .collect();
    assert_eq!(counted, (1..=counted.len() as u64).collect::<Vec<_>>(), "each iteration has its number");
    let mut once: HashMap<String, u64> = HashMap::new();
    for event in events.iter().filter(|event| event["type"] == "note") {
        *once.entry(event["data"].to_string()).or_default() += 1;
    }
    assert!(once.values().all(|times| *times == 1), "no fact is told twice");
    for (client, told) in told.iter().enumerate() {
        let kept = session["context"]["clients"][format!("client-{client}")].as_u64();
        assert!(kept >= told.last_round.map(|round| round as u64), "client {client}: {kept:?} after {:?}", told.last_round);
    }
    let tools = session["metadata"]["tools_used"].as_array().expect("a list").len();
    assert_eq!(tools, CLIENTS, "every tool once");
}

#[test]
fn fifty_clients_on_one_session_are_counted_exactly() {
    let root = Root::new();
    root.run(&["new", "--no-run", "-n", "busy", "--max-iterations", "1000000"]).ok();
    let told: Vec<Told> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn({
                    let root = &root;
                    move || hammer(root, client)
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    assert!(told.iter().all(|told| told.unknown == 0 && told.iterations == ROUNDS as u64));
    check(&root, &told);
}

#[test]
fn promise_5_fifty_clients_and_kill_9_in_the_middle_lose_nothing_acknowledged() {
    let root = Root::new();
    root.run(&["new", "--no-run", "-n", "busy", "--max-iterations", "1000000"]).ok();
    let is_over = AtomicBool::new(false);
    let kills = AtomicU64::new(0);
    let told: Vec<Told> = std::thread::scope(|scope| {
        let (root, is_over, kills) = (&root, &is_over, &kills);
        let killer = scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let before = count_events(root);
                // some work in between, so that each life of the daemon does something
                wait_until("something to be told", || is_over.load(Ordering::Relaxed) || count_events(root) > before + 100);
                root.kill_daemon_at_once();
                kills.fetch_add(1, Ordering::Relaxed);
                root.run(&["daemon", "start"]).ok();
            }
        });
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || hammer(root, client))).collect();
        let told = clients.into_iter().map(|client| client.join().expect("a client")).collect();
        is_over.store(true, Ordering::Relaxed);
        killer.join().expect("the killer");
        told
    });
    assert!(kills.load(Ordering::Relaxed) > 2);
    check(&root, &told);
}

/// As the database has it, whoever runs.
fn count_events(root: &Root) -> i64 {
    root.database().query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("counts")
}

#[test]
fn promise_5_each_call_of_a_task_is_there_after_kill_9() {
    let root = Root::new();
    let look = |what: &[(&str, Value)]| {
        root.kill_daemon();
        let session = root.session("fix");
        for (path, expected) in what {
            assert_eq!(session.pointer(path), Some(expected), "{path} in {session}");
        }
    };
    root.run(&["new", "--no-run", "-n", "fix", "--task", "Fix it", "--max-iterations", "3", "--context", r#"{"a":{"b":1}}"#]).ok();
    look(&[("/status", json!("active")), ("/task", json!("Fix it")), ("/context/a/b", json!(1))]);
    root.run(&["iterate", "fix"]).ok();
    look(&[("/iterations", json!(1))]);
    root.run(&["tool-call", "fix", "bash"]).ok();
    look(&[("/metadata/tools_used", json!(["bash"]))]);
    root.run(&["context", "fix", "--set", r#"{"a":{"c":2}}"#]).ok();
    look(&[("/context", json!({"a": {"b": 1, "c": 2}}))]);
    root.run(&["pause", "fix", "--reason", "lunch"]).ok();
    look(&[("/status", json!("paused")), ("/status_reason", json!("lunch"))]);
    root.run(&["resume", "fix"]).ok();
    look(&[("/status", json!("active")), ("/status_reason", Value::Null)]);
    root.run(&["iterate", "fix"]).ok();
    root.run(&["iterate", "fix"]).ok();
    look(&[("/status", json!("timeout")), ("/status_reason", json!("iterations")), ("/iterations", json!(3))]);
    root.run(&["resume", "fix", "--max-iterations", "9"]).ok();
    look(&[("/status", json!("active")), ("/max_iterations", json!(9)), ("/ended_at", Value::Null)]);
    root.run(&["complete", "fix", "--result", "done"]).ok();
    look(&[("/status", json!("completed")), ("/result", json!("done"))]);
    let kinds = root.kinds("fix");
    assert_eq!(
        json!(kinds),
        json!(["start", "iteration", "tool_call", "context", "pause", "resume", "iteration", "iteration", "timeout", "resume", "complete"])
    );
}
