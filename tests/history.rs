//! Looking back: lists and statistics over any filter, and cleaning up.

use serde_json::{Value, json};

use crate::support::{Root, process, wait_until};

const DAY: i64 = 86_400_000_000;

#[track_caller]
fn names(root: &Root, command: &[&str], filter: &[&str]) -> Vec<String> {
    let mut args = command.to_vec();
    args.extend_from_slice(filter);
    args.push("--json");
    let list = root.json(&args);
    let list = if command[0] == "cleanup" { list["sessions"].clone() } else { list };
    list.as_array().expect("a list").iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

/// As if the session had ended this many days ago.
#[track_caller]
fn age(root: &Root, name: &str, days: i64) {
    let id = root.session(name)["id"].as_str().expect("an id").to_owned();
    let changed = root.sql(&format!(
        "UPDATE sessions SET created_at = created_at - {0}, started_at = started_at - {0}, ended_at = ended_at - {0} WHERE id = '{id}'",
        days * DAY
    ));
    assert_eq!(changed, 1);
}

/// A few sessions of every kind, all with names of their own:
/// old (45 days), done, wrong, spent; alive, waiting, resting.
fn known(root: &Root) {
    std::fs::create_dir_all(root.work().join("sub")).expect("a folder");
    root.run(&["group", "set", "held", "--limit", "0"]).ok();
    root.record("old", &["--user", "ann", "--channel", "mail", "--mode", "test", "--task", "Fix the LOGIN page"]);
    root.record("done", &["--user", "ann", "--channel", "chat", "--mode", "test", "--task", "100% done_now"]);
    root.record("wrong", &["--user", "bob", "--channel", "chat", "--mode", "developer", "--task", "login again", "-w", "sub"]);
    root.record("spent", &["--user", "bob", "--mode", "developer", "--max-iterations", "2"]);
    root.record("alive", &["--user", "ann", "--task", "100 done now"]);
    root.record("waiting", &["--group", "held", "--mode", "developer"]);
    root.record("resting", &["--channel", "chat"]);
    root.run(&["complete", "old"]).ok();
    root.run(&["complete", "done"]).ok();
    root.run(&["fail", "wrong", "--error", "no"]).ok();
    root.run(&["iterate", "spent"]).ok();
    root.run(&["iterate", "spent"]).ok();
    root.run(&["iterate", "alive"]).ok();
    root.run(&["pause", "resting"]).ok();
    age(root, "old", 45);
}

/// What each filter finds, oldest first.
fn table(root: &Root) -> Vec<(Vec<String>, Vec<&'static str>)> {
    let sub = root.work().join("sub").display().to_string();
    let work = root.work().display().to_string();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let two = |flag: &str, value: &str| vec![flag.to_owned(), value.to_owned()];
    vec![
        (words("--user ann"), vec!["old", "done", "alive"]),
        (words("--user nobody"), vec![]),
        (words("--channel chat"), vec!["done", "wrong", "resting"]),
        (words("--mode developer"), vec!["wrong", "spent", "waiting"]),
        (words("--thread wrong"), vec!["wrong"]),
        (two("--workspace", &sub), vec!["wrong"]),
        (words("-w sub"), vec!["wrong"]),
        (two("-w", &work), vec!["old", "done", "spent", "alive", "waiting", "resting"]),
        (words("--group held"), vec!["waiting"]),
        (words("--status completed"), vec!["old", "done"]),
        (words("--status queued,paused,timeout"), vec!["spent", "waiting", "resting"]),
        (words("--text login"), vec!["old", "wrong"]),
        (words("--text 100%"), vec!["done"]),
        (words("--text done_now"), vec!["done"]),
        (words("--created-before 30d"), vec!["old"]),
        (words("--created-after 30d --text login"), vec!["wrong"]),
        (words("--created-after 2100-01-01"), vec![]),
        (words("--created-before 2100-01-01T09:30 --status failed"), vec!["wrong"]),
        (words("--user bob --mode developer --status timeout"), vec!["spent"]),
    ]
}

#[test]
fn lists_are_filtered_ordered_and_cut() {
    let root = Root::new();
    known(&root);
    for (filter, expected) in table(&root) {
        let filter: Vec<&str> = filter.iter().map(String::as_str).collect();
        assert_eq!(names(&root, &["ls"], &filter), expected, "{filter:?}");
    }
    let all = ["old", "done", "wrong", "spent", "alive", "waiting", "resting"];
    assert_eq!(names(&root, &["ls"], &["--all"]), all);
    assert_eq!(names(&root, &["ls"], &[]), all[1..], "what ended long ago is only in --all");
    assert_eq!(names(&root, &["ls"], &["--all", "--limit", "2"]), ["waiting", "resting"], "the newest");
    assert_eq!(names(&root, &["ls"], &["--all", "--order", "newest", "--limit", "2"]), ["resting", "waiting"]);
    assert_eq!(names(&root, &["ls"], &["--all", "--order", "oldest", "--limit", "3"]), ["old", "done", "wrong"]);
    assert_eq!(names(&root, &["ls"], &["--all", "--order", "newest-last", "--limit", "2"]), ["waiting", "resting"]);
    root.run(&["event", "done", "tick"]).ok();
    root.run(&["event", "alive", "tick"]).ok();
    assert_eq!(names(&root, &["ls"], &["--all", "--order", "active", "--limit", "2"]), ["alive", "done"]);
    for wrong in [["--status", "asleep"], ["--order", "up"], ["--limit", "x"], ["--created-after", "someday"], ["--limit", "-1"]] {
        for command in ["ls", "stats"] {
            root.run(&[command, wrong[0], wrong[1]]).refused(2);
        }
    }
}

#[test]
fn statistics_and_cleanup_take_the_same_filters() {
    let root = Root::new();
    known(&root);
    let ended = ["old", "done", "wrong", "spent"];
    for (filter, expected) in table(&root) {
        let filter: Vec<&str> = filter.iter().map(String::as_str).collect();
        let mut args = vec!["stats", "--json"];
        args.extend_from_slice(&filter);
        assert_eq!(root.json(&args)["total"].as_u64(), Some(expected.len() as u64), "{filter:?}");
        let would_go: Vec<&str> = expected.into_iter().filter(|name| ended.contains(name)).collect();
        assert_eq!(names(&root, &["cleanup", "--dry-run", "--older-than", "0"], &filter), would_go, "{filter:?}");
    }
    assert_eq!(names(&root, &["ls"], &["--all"]).len(), 7, "nothing went");
}

#[test]
fn statistics_are_exact() {
    let root = Root::new();
    let empty = root.json(&["stats", "--json"]);
    assert_eq!((empty["total"].as_u64(), &empty["success_rate"], &empty["p95_duration_ms"]), (Some(0), &Value::Null, &Value::Null));
    for number in 1..=20u64 {
        let name = format!("n{number}");
        let mode = if number % 2 == 0 { "even" } else { "odd" };
        root.record(&name, &["--mode", mode]);
        root.run(&["iterate", &name]).ok();
        let end: &[&str] = if number <= 15 { &["complete", &name] } else { &["fail", &name, "--error", "x"] };
        root.run(end).ok();
        // n seconds long
        let id = root.session(&name)["id"].as_str().expect("an id").to_owned();
        assert_eq!(root.sql(&format!("UPDATE sessions SET ended_at = started_at + {number} * 1000000 WHERE id = '{id}'")), 1);
    }
    root.record("alive", &["--metadata", r#"{"cost":0.25,"tokens":{"prompt":100,"completion":20}}"#]);
    root.record("other", &[]);
    root.run(&["context", "n1", "--metadata", r#"{"cost":0.5,"tokens":{"prompt":1,"completion":2,"total":7}}"#]).ok();
    root.run(&["context", "n1", "--metadata", r#"{"cost":1.5}"#]).ok();
    let stats = root.json(&["stats", "--json"]);
    assert_eq!(stats["total"], 22);
    assert_eq!(stats["by_status"], json!({"active": 2, "completed": 15, "failed": 5}));
    assert_eq!(stats["by_mode"], json!({"even": 10, "odd": 10, "none": 2}));
    let near = |key: &str, expected: f64| {
        let value = stats[key].as_f64().unwrap_or_else(|| panic!("{key} in {stats}"));
        assert!((value - expected).abs() < 1e-9, "{key}: {value}, not {expected}");
    };
    near("success_rate", 0.75);
    near("average_iterations", 20.0 / 22.0);
    near("average_duration_ms", 10_500.0);
    assert_eq!(stats["p95_duration_ms"], 19_000, "the smallest that 95 in 100 do not exceed");
    near("cost", 1.75);
    assert_eq!(stats["tokens"], json!({"prompt": 101, "completion": 22, "total": 127}));
    assert_eq!(stats["execs"], 0);
    let odd = root.json(&["stats", "--mode", "odd", "--json"]);
    assert_eq!((odd["total"].as_u64(), odd["p95_duration_ms"].as_u64()), (Some(10), Some(19_000)));
    assert_eq!(odd["by_status"], json!({"completed": 8, "failed": 2}));
    assert_eq!(odd["average_duration_ms"].as_f64(), Some(10_000.0));
    let even = root.json(&["stats", "--mode", "even", "--status", "completed", "--json"]);
    assert_eq!((even["success_rate"].as_f64(), even["p95_duration_ms"].as_u64()), (Some(1.0), Some(14_000)));
    let text = root.run(&["stats"]).ok();
    for word in ["22", "75", "completed", "1.75"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    root.kill_daemon();
    assert_eq!(root.json(&["stats", "--json"]), stats);
}

#[test]
fn recorded_bytes_are_those_of_the_recordings() {
    let root = Root::new();
    root.start_script("one", "seq 1 5000; exit 0");
    root.start_script("two", "seq 1 3000; echo up; exec sleep 1000");
    root.wait_status("one", "completed");
    root.wait_screen("two", "up");
    let end = |name: &str| root.runtime(name)["recording"]["end"].as_u64().expect("an offset");
    let bytes = |filter: &[&str]| {
        let mut args = vec!["stats", "--json"];
        args.extend_from_slice(filter);
        root.json(&args)["recorded_bytes"].as_u64().expect("bytes")
    };
    assert!(end("one") > 5000 && end("two") > 3000);
    assert_eq!(bytes(&["--thread", "one"]), end("one"));
    assert_eq!(bytes(&["--thread", "two"]), end("two"), "also of what still runs");
    assert_eq!(bytes(&[]), end("one") + end("two"));
}

#[test]
fn cleanup_takes_what_ended_long_ago_and_leaves_a_line() {
    let root = Root::new();
    for name in ["ancient", "recent"] {
        root.json(&["new", "-d", "--json", "-n", name, "--task", "x", "--mode", "test", "--", "bash", "-c", "seq 1 1000; exit 0"]);
        root.wait_status(name, "completed");
    }
    root.start("alive", &["sleep", "1000"]);
    root.record("resting", &[]);
    root.run(&["pause", "resting"]).ok();
    root.start("running", &["sleep", "1000"]);
    let running = root.program("running");
    root.run(&["complete", "running"]).ok();
    age(&root, "ancient", 40);
    age(&root, "recent", 10);
    age(&root, "running", 40);
    // even a live one that looks old never goes
    root.sql(&format!(
        "UPDATE sessions SET created_at = created_at - {0}, last_activity_at = last_activity_at - {0} WHERE status IN ('active', 'paused')",
        400 * DAY
    ));
    let dirs = ["ancient", "recent", "alive", "running"].map(|name| root.recording(name));
    let ancient = root.json(&["show", "ancient", "--json"]);

    let dry = root.json(&["cleanup", "--dry-run", "--json"]);
    assert_eq!((dry["dry_run"].as_bool(), dry["count"].as_u64(), dry["audit"].as_u64()), (Some(true), Some(1), Some(0)));
    assert_eq!(dry["sessions"][0]["id"], ancient["session"]["id"]);
    assert!(dry["bytes"].as_u64() > Some(3000), "{dry}");
    assert!(root.run(&["cleanup", "--dry-run"]).ok().contains("ancient"));
    assert!(dirs.iter().all(|dir| dir.exists()));
    assert_eq!(root.json(&["show", "ancient", "--json"]), ancient, "a dry run changes nothing");
    assert_eq!(root.json(&["audit", "--json"]), json!([]));

    let cleaned = root.json(&["cleanup", "--json"]);
    assert_eq!((cleaned["count"].as_u64(), cleaned["more"].as_bool(), &cleaned["bytes"]), (Some(1), Some(false), &dry["bytes"]));
    assert_eq!(dirs.each_ref().map(|dir| dir.exists()), [false, true, true, true]);
    root.run(&["show", "ancient"]).refused(3);
    root.run(&["show", ancient["session"]["id"].as_str().expect("an id")]).refused(3);
    let left: i64 = root
        .database()
        .query_row("SELECT (SELECT count(*) FROM events WHERE session_id NOT IN (SELECT id FROM sessions)) + (SELECT count(*) FROM runtimes WHERE session_id NOT IN (SELECT id FROM sessions))", [], |row| row.get(0))
        .expect("counts");
    assert_eq!(left, 0, "nothing of it is left behind");
    let audit = root.json(&["audit", "--json"]);
    let line = &audit[0];
    assert_eq!(audit.as_array().map(Vec::len), Some(1));
    for (key, value) in [
        ("id", &ancient["session"]["id"]),
        ("thread", &ancient["thread"]["id"]),
        ("name", &json!("ancient")),
        ("workspace", &ancient["thread"]["workspace"]),
        ("created_at", &ancient["session"]["created_at"]),
        ("last_activity_at", &ancient["session"]["last_activity_at"]),
        ("ended_at", &ancient["session"]["ended_at"]),
        ("task_count", &json!(1)),
        ("status", &json!("completed")),
        ("status_reason", &json!("exit code 0")),
    ] {
        assert_eq!(&line[key], value, "{key} in {line}");
    }
    assert!(line["removed_at"].is_string());
    assert!(root.run(&["audit", "ancient"]).ok().contains("ancient"));
    assert_eq!(root.json(&["audit", "recent", "--json"]), json!([]));

    // by age, by filter
    assert_eq!(root.json(&["cleanup", "--older-than", "7", "--mode", "other", "--json"])["count"], 0);
    assert_eq!(root.json(&["cleanup", "--older-than", "7", "--json"])["count"], 1);
    assert!(!dirs[1].exists());
    assert_eq!(root.json(&["cleanup", "--older-than", "0", "--json"])["count"], 0);
    assert_eq!(names(&root, &["ls"], &["--all"]).len(), 3);
    assert!(process::is_alive(running), "a program that still runs keeps its session");
    assert_eq!(root.status("running").0, "completed");
    process::kill(running);
    wait_until("its end to be known", || root.runtime("running")["state"]["state"] == "exited");
    assert_eq!(names(&root, &["cleanup"], &["--older-than", "30"]), ["running"]);

    // the thread goes on
    let again = root.start("ancient", &["sleep", "1000"]);
    assert_eq!((&again["thread"], again["task_count"].as_u64()), (&ancient["thread"]["id"], Some(2)));
    assert_ne!(again["id"], ancient["session"]["id"]);
    root.run(&["kill", "ancient"]).ok();

    // and the lines go when they are asked to
    assert_eq!(root.json(&["audit", "--json"]).as_array().map(Vec::len), Some(3));
    let dry = root.json(&["cleanup", "--older-than", "30", "--audit", "--dry-run", "--json"]);
    assert_eq!((dry["count"].as_u64(), dry["audit"].as_u64()), (Some(0), Some(2)));
    assert_eq!(root.json(&["audit", "--json"]).as_array().map(Vec::len), Some(3));
    assert_eq!(root.json(&["cleanup", "--older-than", "30", "--audit", "--json"])["audit"], 2);
    assert_eq!(root.json(&["audit", "--json"])[0]["name"], "recent");
    root.json(&["cleanup", "--older-than", "0", "--audit", "--json"]);
    assert_eq!(root.json(&["audit", "--json"]), json!([]), "the last one left no line at all");
    for wrong in ["-1", "x", "1e9"] {
        root.run(&["cleanup", &format!("--older-than={wrong}")]).refused(2);
    }
}

#[test]
fn cleanup_takes_many_and_their_age_from_the_settings() {
    let root = Root::new();
    root.config("[cleanup]\nolder_than_days = 5\n");
    for number in 0..5 {
        let name = format!("n{number}");
        root.record(&name, &[]);
        root.run(&["complete", &name]).ok();
        age(&root, &name, number * 2);
    }
    assert_eq!(names(&root, &["cleanup"], &["--dry-run"]), ["n4", "n3"], "the oldest first");
    // a few hundred more, on one thread
    let id = root.session("n4")["id"].as_str().expect("an id").to_owned();
    let columns = "thread_id, status, created_at, updated_at, last_activity_at, ended_at, started_at";
    let copies = format!(
        "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 500)
         INSERT INTO sessions (id, {columns})
         SELECT substr(id, 1, 24) || printf('%012x', n), thread_id, 'failed', created_at - n, updated_at, last_activity_at, ended_at, started_at
         FROM sessions, many WHERE id = '{id}'"
    );
    assert_eq!(root.sql(&copies), 500);
    assert_eq!(root.json(&["cleanup", "--dry-run", "--json"])["count"], 502);
    let said = root.run(&["cleanup"]).ok();
    assert!(said.contains("502 sessions removed"), "{said}");
    assert_eq!(names(&root, &["ls"], &["--all"]).len(), 3);
    assert_eq!(root.json(&["audit", "n4", "--limit", "1000", "--json"]).as_array().map(Vec::len), Some(501));
    assert_eq!(root.json(&["audit", "--limit", "2", "--json"]).as_array().map(Vec::len), Some(2));
}

#[test]
fn cleanup_of_audit_lines_keeps_to_its_filter() {
    let root = Root::new();
    root.record("good", &["--mode", "a"]);
    root.record("bad", &["--mode", "b"]);
    root.run(&["complete", "good"]).ok();
    root.run(&["fail", "bad", "--error", "x"]).ok();
    root.json(&["cleanup", "--older-than", "0", "--json"]);
    assert_eq!(root.json(&["audit", "--json"]).as_array().map(Vec::len), Some(2));
    let asked = ["cleanup", "--older-than", "0", "--status", "failed", "--audit", "--json"];
    root.json(&asked);
    let left = root.json(&["audit", "--json"]);
    assert_eq!(left.as_array().map(Vec::len), Some(1), "the line of a completed one was not asked for: {left}");
    assert_eq!(left[0]["name"], "good");
}

#[test]
fn cleanup_of_audit_lines_by_mode_takes_no_other() {
    let root = Root::new();
    root.record("other", &["--mode", "b"]);
    root.run(&["complete", "other"]).ok();
    root.json(&["cleanup", "--older-than", "0", "--json"]);
    // a line does not know its mode: refused or none, but not all
    root.run(&["cleanup", "--older-than", "0", "--mode", "a", "--audit"]);
    assert_eq!(root.json(&["audit", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn numbers_at_the_limit_do_not_break_the_sums() {
    let root = Root::new();
    root.record("one", &[]);
    root.record("two", &[]);
    let largest = r#"{"tokens":{"prompt":9223372036854775807,"completion":1}}"#;
    // kept or refused, but with an answer
    for name in ["one", "two"] {
        let output = root.run(&["context", name, "--metadata", largest]);
        assert!(matches!(output.code, 0 | 2), "{output:?}");
    }
    root.json(&["stats", "--json"]);
}

#[test]
fn a_sum_of_large_numbers_is_still_a_sum() {
    let root = Root::new();
    for name in ["one", "two"] {
        root.record(name, &[]);
        root.run(&["context", name, "--metadata", r#"{"tokens":{"total":9223372036854775807},"cost":1e308}"#]);
    }
    root.json(&["stats", "--json"]);
}

#[test]
fn once_a_day_what_ended_long_ago_goes_by_itself() {
    let root = Root::new();
    root.start_script("old", "echo something to keep");
    root.start("live", &["sleep", "1000"]);
    root.run(&["wait", "old", "--for", "exit", "--timeout", "20s"]).ok();
    let recording = root.recording("old");
    root.run(&["daemon", "stop"]).ok();
    root.sql(
        "UPDATE sessions SET created_at = created_at - 40 * 86400000000, ended_at = ended_at - 40 * 86400000000 WHERE ended_at IS NOT NULL",
    );
    root.sql("UPDATE sessions SET created_at = created_at - 40 * 86400000000 WHERE ended_at IS NULL");
    // a day ago, as far as the daemon remembers
    root.sql("UPDATE remembered SET value = CAST(value AS INTEGER) - 86400000000 WHERE what = 'cleanup'");
    root.run(&["daemon", "start"]).ok();
    wait_until("the old one to go", || root.run(&["show", "old"]).code == 3);
    assert!(!recording.exists());
    assert_eq!(root.json(&["audit", "old", "--json"])[0]["status"], "completed");
    assert_eq!(root.status("live").0, "active", "a live one never goes, however old");
}
