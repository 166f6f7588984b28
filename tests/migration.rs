//! A database of an earlier version is understood, with nothing lost (promise 9). The fixtures are never changed.

use std::os::unix::fs::DirBuilderExt;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::support::Root;

/// What the foundation's daemon left behind: four sessions of three threads, one of them running when everything was killed.
const FOUNDATION: &str = include_str!("data/foundation.sql");

/// What a daemon from before pausing left behind.
const VERSION_4: &str = include_str!("data/version4.sql");

/// Every row of a table as it was then: its old columns, in the order of its key.
fn rows(database: &Connection, table: &str, columns: &str, key: &str) -> Vec<Vec<Value>> {
    let mut statement = database.prepare(&format!("SELECT {columns} FROM {table} ORDER BY {key}")).expect("a statement");
    let width = statement.column_count();
    let mut rows = statement.query([]).expect("rows");
    let mut found = Vec::new();
    while let Some(row) = rows.next().expect("a row") {
        found.push((0..width).map(|column| row.get(column).expect("a value")).collect());
    }
    found
}

/// A row of a session as it is after the migration: ended on request is no failure.
fn as_ended(mut row: Vec<Value>) -> Vec<Value> {
    let killed = Value::Text("killed".into());
    if let Some(at) = row.iter().position(|value| *value == killed)
        && row[at - 1] == Value::Text("failed".into())
    {
        row[at - 1] = Value::Text("ended".into());
        for value in &mut row {
            if *value == Value::Text("ended on request".into()) {
                *value = Value::Null;
            }
        }
    }
    row
}

fn columns(database: &Connection, table: &str) -> String {
    let mut statement = database.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).expect("a statement");
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).expect("rows").map(|name| name.expect("a name")).collect();
    names.join(", ")
}

#[test]
fn promise_9_a_database_of_the_foundation_is_migrated_with_nothing_lost() {
    let root = Root::new();
    std::fs::DirBuilder::new().mode(0o700).create(root.join("state")).expect("a folder");
    let path = root.join("state/sessions.db");
    let before = Connection::open(&path).expect("a database");
    before.execute_batch(FOUNDATION).expect("the fixture");
    let was_running = "id <> '01a1e427-07d0-7244-bda9-cb777c2d6ba2'";
    let kept = [
        ("threads", "id"),
        ("leases", "id"),
        ("terminals", "id"),
        ("events", "seq"),
        (&format!("(SELECT * FROM sessions WHERE {was_running})"), "id"),
        ("(SELECT * FROM runtimes WHERE NOT is_live)", "id"),
    ]
    .map(|(table, key)| {
        let name = table.trim_start_matches("(SELECT * FROM ").split(' ').next().expect("a name").to_owned();
        let columns = columns(&before, &name);
        (table.to_owned(), columns.clone(), key, rows(&before, table, &columns, key))
    });
    drop(before);

    let all = root.json(&["ls", "--all", "--json"]);
    assert_eq!(all.as_array().map(Vec::len), Some(4), "{all}");
    let database = Connection::open(&path).expect("opens");
    for (table, columns, key, expected) in kept {
        let table = if table.contains("runtimes") {
            "(SELECT * FROM runtimes WHERE session_id <> '01a1e427-07d0-7244-bda9-cb777c2d6ba2')".to_owned()
        } else {
            table
        };
        let mut found = rows(&database, &table, &columns, key);
        // what happened since is new; what was there is as it was
        found.truncate(expected.len());
        // but for what was ended on request, which has a status of its own now
        let expected: Vec<Vec<Value>> = expected.into_iter().map(as_ended).collect();
        assert_eq!(found, expected, "{table}");
    }
    drop(database);

    // and it can be worked with
    let layers = root.json(&["show", "api", "--json"]);
    assert_eq!(layers["thread"]["task_count"], 2);
    assert_eq!(layers["sessions"].as_array().map(Vec::len), Some(2));
    assert_eq!((layers["session"]["status"].as_str(), layers["session"]["task"].as_str()), (Some("failed"), Some("again")));
    assert_eq!((layers["thread"]["user"].as_str(), layers["thread"]["channel"].as_str()), (Some("ann"), Some("c1")));
    let events = root.run(&["events", "api", "--json"]).ok();
    let numbers: Vec<(i64, i64)> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|event| (event["seq"].as_i64().expect("seq"), event["n"].as_i64().expect("n")))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (3, 3), (4, 1), (5, 2), (6, 3)]);
    assert_eq!(root.status("größe"), ("failed".into(), "lost".into()), "its holder is gone, and it says so");
    let log = std::fs::read_to_string(root.join("state/daemon.log")).expect("a log");
    assert!(log.contains("01a1e427-07d0-7244-bda9-cb777c2d6ba2") && log.contains("the machine was restarted"), "{log}");
    let stats = root.json(&["stats", "--json"]);
    assert_eq!((stats["total"].as_u64(), stats["by_status"]["completed"].as_u64()), (Some(4), Some(1)));
    let next = root.json(&["new", "-d", "--json", "-n", "api", "-w", "/", "--", "true"]);
    assert_eq!(next["task_count"], 3);

    // the copy that was made before is the old database, whole
    let backup = Connection::open(root.join("state/sessions.v1.backup.db")).expect("a backup");
    let (version, sessions): (i64, i64) = backup
        .query_row("SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sessions)", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("reads");
    assert_eq!((version, sessions), (1, 4));
}

#[test]
fn promise_9_a_database_from_before_pausing_is_migrated_with_nothing_lost() {
    let root = Root::new();
    std::fs::DirBuilder::new().mode(0o700).create(root.join("state")).expect("a folder");
    let path = root.join("state/sessions.db");
    let before = Connection::open(&path).expect("a database");
    before.execute_batch(VERSION_4).expect("the fixture");
    let kept = ["events", "execs", "threads"].map(|table| {
        let (columns, key) = (columns(&before, table), if table == "events" { "seq" } else { "id" });
        (table, columns.clone(), key, rows(&before, table, &columns, key))
    });
    drop(before);
    assert_eq!(root.status("done"), ("completed".into(), "exit code 0".into()));
    assert_eq!(root.status("broken"), ("failed".into(), "exit code 3".into()));
    assert_eq!(root.status("task"), ("paused".into(), "waits".into()));
    assert_eq!(root.status("live"), ("failed".into(), "lost".into()), "its holder is gone, and it says so");
    let database = Connection::open(&path).expect("opens");
    for (table, columns, key, expected) in kept {
        let mut found = rows(&database, table, &columns, key);
        found.truncate(expected.len());
        assert_eq!(found, expected, "{table}");
    }
    drop(database);
    // and it can be gone on with: a record, a history, what was lost
    root.run(&["resume", "task"]).ok();
    let session = root.session("task");
    assert_eq!((session["iterations"].as_u64(), session["context"]["next"].as_str()), (Some(1), Some("tests")));
    assert!(root.run(&["history", "-s", "live", "-l", "bash"]).ok().contains("x=1"));
    // its folder was on another machine
    let refusal = root.run(&["restore", "live"]).refused(1);
    assert!(refusal.contains("could not be restored"), "{refusal}");
    assert!(root.session("live")["error"].as_str().is_some_and(|error| error.contains("is gone")));
    assert!(root.join("state/sessions.v4.backup.db").exists());
}
