//! Status `ended`: what a person, a script or a reset ended is neither a success nor a failure.

use std::os::unix::fs::DirBuilderExt;

use rusqlite::Connection;

use crate::support::http::{Reply, Server};
use crate::support::{Root, wait_until};

#[test]
fn what_was_ended_on_request_is_ended_and_not_counted() {
    let root = Root::new();
    root.start("mine", &["sleep", "1000"]);
    root.start("reset", &["sleep", "1000"]);
    root.start("good", &["true"]);
    root.wait_status("good", "completed");
    root.run(&["kill", "mine"]).ok();
    root.run(&["reset", "reset"]).ok();
    assert_eq!(root.status("mine"), ("ended".into(), "killed".into()));
    assert_eq!(root.status("reset"), ("ended".into(), "reset".into()));
    assert!(root.session("mine")["error"].is_null(), "nothing went wrong");
    let list = root.run(&["ls"]).ok();
    let row = list.lines().find(|line| line.contains("mine")).expect("a row");
    assert!(row.contains("ended") && !row.contains("failed") && !row.contains("killed"), "{row}");
    assert_eq!(root.json(&["ls", "--status", "ended", "--json"]).as_array().map(Vec::len), Some(2));
    let stats = root.json(&["stats", "--json"]);
    assert_eq!((stats["by_status"]["ended"].as_u64(), stats["success_rate"].as_f64()), (Some(2), Some(1.0)), "{stats}");
    let last = root.events("mine").pop().expect("an event");
    assert_eq!((last["type"].as_str(), last["data"]["status"].as_str()), (Some("complete"), Some("ended")), "{last}");
    // a program that ends by itself with a failure is one
    root.start("bad", &["false"]);
    root.wait_status("bad", "failed");
    assert_eq!(root.json(&["stats", "--json"])["success_rate"].as_f64(), Some(0.5));
    // and it can be waited for, and cleaned up
    root.run(&["wait", "mine", "--for", "status=ended"]).ok();
    let cleaned = root.json(&["cleanup", "--older-than", "0", "--status", "ended", "--dry-run", "--json"]);
    assert_eq!(cleaned["count"].as_u64(), Some(2), "{cleaned}");
}

#[test]
fn a_webhook_is_told_complete_with_status_ended() {
    let root = Root::new();
    let server = Server::start(|_| Reply::with(200, "", ""));
    root.run(&["webhook", "add", &server.url(), "--event", "complete,error"]).ok();
    root.start("mine", &["sleep", "1000"]);
    root.run(&["kill", "mine"]).ok();
    let told = server.wait(1);
    assert_eq!(told[0].event(), "complete");
    assert_eq!(told[0].json()["session"]["status"], "ended");
}

#[test]
fn sessions_of_before_are_migrated_by_their_reason() {
    let root = Root::new();
    std::fs::DirBuilder::new().mode(0o700).create(root.join("state")).expect("a directory");
    let path = root.join("state/sessions.db");
    let before = Connection::open(&path).expect("a database");
    before.execute_batch(include_str!("data/version4.sql")).expect("the fixture");
    let insert = |name: &str, status: &str, reason: &str, error: Option<&str>| {
        let id = format!("01a1e427-0000-7000-8000-{:012x}", name.len() as u64 * 1000 + reason.len() as u64);
        before
            .execute("INSERT INTO threads (id, name, workspace, created_at) VALUES (?1, ?2, '/', 1)", [&id, &name.to_owned()])
            .expect("a thread");
        before
            .execute(
                "INSERT INTO sessions (id, thread_id, status, status_reason, error, created_at, updated_at, last_activity_at, ended_at)
                 VALUES (?1, ?1, ?2, ?3, ?4, 1, 1, 1, 2)",
                rusqlite::params![id, status, reason, error],
            )
            .expect("a session");
    };
    insert("by-hand", "failed", "killed", Some("ended on request"));
    insert("was-reset", "failed", "reset", Some("ended on request"));
    insert("from-queue", "failed", "cancelled", Some("ended on request"));
    insert("by-itself", "failed", "exit code 1", Some("the program ended with exit code 1"));
    insert("killed-by-signal", "failed", "signal KILL", Some("the program ended with signal KILL"));
    drop(before);
    for (name, reason) in [("by-hand", "killed"), ("was-reset", "reset"), ("from-queue", "cancelled")] {
        assert_eq!(root.status(name), ("ended".into(), reason.into()));
        assert!(root.session(name)["error"].is_null(), "{name}");
    }
    assert_eq!(root.status("by-itself"), ("failed".into(), "exit code 1".into()));
    assert_eq!(root.status("killed-by-signal").0, "failed");
    let database = Connection::open(&path).expect("opens");
    let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(sound, "ok");
    assert!(database.execute("UPDATE sessions SET status = 'nonsense'", []).is_err(), "other words are refused as before");
}

#[test]
fn a_task_that_is_completed_while_its_program_runs_is_shown_as_both() {
    let root = Root::new();
    root.start("dev", &["cat"]);
    root.run(&["complete", "dev"]).ok();
    let list = root.run(&["ls"]).ok();
    assert!(list.contains("completed, runs"), "{list}");
    let refusal = root.run(&["rm", "dev"]).refused(4);
    assert!(refusal.contains("still running"), "{refusal}");
    root.run(&["send", "dev", "hello", "--enter"]).ok();
    root.wait_screen("dev", "hello");
    root.run(&["kill", "dev"]).ok();
    wait_until("its end", || !root.run(&["ls"]).ok().contains("completed, runs"));
    assert_eq!(root.status("dev").0, "completed", "its task stays what it was");
}
