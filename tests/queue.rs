//! Groups of which only so many run at once: order, places, limits, cancelling, and restarts.

use serde_json::Value;

use crate::support::{Root, process, wait_until};

const WAIT: &str = "20s";

/// Starts a sleeper in a group; gives its status.
#[track_caller]
fn enter(root: &Root, group: &str, name: &str) -> String {
    let session = root.json(&["new", "-d", "--json", "-n", name, "--group", group, "--", "sleep", "1000"]);
    session["status"].as_str().expect("a status").to_owned()
}

/// Name and place of whoever waits, in the order of the list.
#[track_caller]
fn places(root: &Root) -> Vec<(String, u64)> {
    let list = root.json(&["ls", "--json", "--status", "queued"]);
    let one = |row: &Value| (row["name"].as_str().expect("a name").to_owned(), row["queue_place"].as_u64().expect("a place"));
    list.as_array().expect("a list").iter().map(one).collect()
}

#[track_caller]
fn active(root: &Root) -> Vec<String> {
    let list = root.json(&["ls", "--json", "--status", "active"]);
    list.as_array().expect("a list").iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

#[track_caller]
fn wait_active(root: &Root, names: &[&str]) {
    wait_until(&format!("{names:?} to be active"), || active(root) == names);
}

fn is(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, place)| ((*name).to_owned(), *place)).collect()
}

#[test]
fn first_come_first_served() {
    let root = Root::new();
    root.run(&["group", "set", "builds", "--limit", "2"]).ok();
    let statuses: Vec<String> = ["a", "b", "c", "d", "e"].iter().map(|name| enter(&root, "builds", name)).collect();
    assert_eq!(statuses, ["active", "active", "queued", "queued", "queued"]);
    assert_eq!(places(&root), is(&[("c", 1), ("d", 2), ("e", 3)]));
    let table = root.run(&["ls"]).ok();
    for words in ["queued: #1 in builds", "queued: #3 in builds"] {
        assert!(table.contains(words), "{table}");
    }
    assert_eq!(root.session("c")["command"], serde_json::json!(["sleep", "1000"]), "what it waits to run is shown");
    assert_eq!(root.kinds("c"), ["queued"]);
    assert_eq!(root.events("d")[0]["data"]["place"], 2);
    let group = root.json(&["group", "ls", "--json"])[0].clone();
    assert_eq!((group["limit"].as_u64(), group["running"].as_u64(), group["queued"].as_u64()), (Some(2), Some(2), Some(3)));
    root.run(&["kill", "a"]).ok();
    wait_active(&root, &["b", "c"]);
    assert_eq!(places(&root), is(&[("d", 1), ("e", 2)]));
    assert_eq!(root.kinds("c"), ["queued", "start"]);
    assert!(process::is_alive(root.program("c")));
    // a limit that grows lets more in at once; one that shrinks sends nobody away
    root.run(&["group", "set", "builds", "--limit", "4"]).ok();
    wait_active(&root, &["b", "c", "d", "e"]);
    root.run(&["group", "set", "builds", "--limit", "1"]).ok();
    assert_eq!(enter(&root, "builds", "f"), "queued");
    assert_eq!(active(&root).len(), 4);
}

#[test]
fn groups_are_apart_and_one_is_the_default() {
    let root = Root::new();
    assert_eq!(enter(&root, "one", "a"), "active");
    assert_eq!(enter(&root, "two", "b"), "active");
    assert_eq!(enter(&root, "one", "c"), "queued", "a group nobody has set a limit for runs one at a time");
    root.run(&["new", "--queue", "-n", "d", "--", "sleep", "1000"]).ok();
    root.run(&["new", "--queue", "-n", "e", "--", "sleep", "1000"]).ok();
    assert_eq!((root.session("d")["group"].as_str(), root.status("d").0.as_str()), (Some("default"), "active"));
    assert_eq!(places(&root), is(&[("c", 1), ("e", 1)]));
    root.start("free", &["sleep", "1000"]);
    assert_eq!(root.status("free").0, "active", "without a group nobody waits");
}

#[test]
fn limits_come_from_the_settings_and_commands_win() {
    let root = Root::new();
    root.config("[groups]\nbuilds = 2\nheld = 0\n");
    assert_eq!(["a", "b", "c"].map(|name| enter(&root, "builds", name)), ["active", "active", "queued"]);
    assert_eq!(enter(&root, "held", "h"), "queued", "0 holds");
    let limits = || -> Vec<(String, u64, String)> {
        let groups = root.json(&["group", "ls", "--json"]);
        let one = |group: &Value| {
            let word = |key: &str| group[key].as_str().expect("a word").to_owned();
            (word("name"), group["limit"].as_u64().expect("a limit"), word("source"))
        };
        groups.as_array().expect("a list").iter().map(one).collect()
    };
    assert_eq!(limits(), [("builds".into(), 2, "config".into()), ("held".into(), 0, "config".into())]);
    root.run(&["group", "set", "builds", "--limit", "3"]).ok();
    wait_active(&root, &["a", "b", "c"]);
    assert_eq!(limits()[0], ("builds".into(), 3, "command".into()));
    root.run(&["group", "unset", "builds"]).ok();
    assert_eq!(limits()[0], ("builds".into(), 2, "config".into()));
    root.run(&["group", "unset", "builds"]).refused(3);
    root.run(&["group", "set", "held", "--limit", "1"]).ok();
    root.wait_status("h", "active");
}

#[test]
fn whoever_waits_can_be_cancelled() {
    let root = Root::new();
    for name in ["a", "b", "c", "d"] {
        enter(&root, "g", name);
    }
    let killed = root.json(&["kill", "b", "--json"]);
    assert_eq!((killed["status"].as_str(), killed["status_reason"].as_str()), (Some("ended"), Some("cancelled")));
    assert_eq!(places(&root), is(&[("c", 1), ("d", 2)]));
    assert_eq!(root.kinds("b"), ["queued", "complete"]);
    assert!(root.json(&["show", "b", "--json"])["runtimes"].as_array().is_some_and(Vec::is_empty), "it never ran");
    root.run(&["kill", "a"]).ok();
    wait_active(&root, &["c"]);
    assert_eq!(root.status("b").0, "ended");
    // its name is free again, at the end of the queue
    assert_eq!(enter(&root, "g", "b"), "queued");
    assert_eq!(places(&root), is(&[("d", 1), ("b", 2)]));
}

#[test]
fn the_queue_and_its_order_survive_kill_9() {
    let root = Root::new();
    for name in ["a", "z", "m", "b"] {
        enter(&root, "g", name);
    }
    let before = places(&root);
    assert_eq!(before, is(&[("z", 1), ("m", 2), ("b", 3)]));
    root.kill_daemon();
    assert_eq!(places(&root), before);
    for (ends, next) in [("a", "z"), ("z", "m"), ("m", "b")] {
        root.run(&["kill", ends]).ok();
        wait_active(&root, &[next]);
        wait_until("its program", || root.runtime(next)["state"]["state"] == "running");
        root.kill_daemon();
        assert!(process::is_alive(root.program(next)));
        assert_eq!(root.kinds(next), ["queued", "start"], "{next} started once");
    }
    assert_eq!(places(&root), []);
    wait_until("nothing else to run", || root.holders().len() == 1);
}

#[test]
fn a_place_that_became_free_while_no_daemon_was_there_is_taken_at_the_next_start() {
    let root = Root::new();
    root.start("other", &["sleep", "1000"]);
    enter(&root, "g", "a");
    enter(&root, "g", "b");
    let program = root.program("a");
    root.kill_daemon();
    process::kill(program);
    wait_active(&root, &["other", "b"]);
    assert_eq!(root.status("a").0, "failed");
}

#[test]
fn a_record_waits_too() {
    let root = Root::new();
    enter(&root, "g", "a");
    let record = root.record("task", &["--group", "g", "--task", "later"]);
    assert_eq!((record["status"].as_str(), record["queue_place"].as_u64()), (Some("queued"), Some(1)));
    assert!(root.run(&["iterate", "task"]).refused(4).contains("queued"));
    // what it is told while it waits is kept
    root.run(&["context", "task", "--set", r#"{"a":1}"#]).ok();
    let more = root.json(&["new", "--no-run", "--json", "-n", "task", "--task", "much later"]);
    assert_eq!((&more["id"], more["status"].as_str()), (&record["id"], Some("queued")));
    root.run(&["complete", "a"]).ok();
    root.wait_status("task", "active");
    assert_eq!(root.kinds("task"), ["queued", "context", "task", "start"]);
    let session = root.session("task");
    assert_eq!((&session["context"]["a"], session["task"].as_str(), &session["runtime"]), (&1.into(), Some("much later"), &Value::Null));
    root.run(&["iterate", "task"]).ok();
}

#[test]
fn every_end_frees_a_place() {
    let root = Root::new();
    let script = |name: &str, script: &str| drop(root.run(&["new", "-d", "-n", name, "--group", "g", "--", "bash", "-c", script]).ok());
    let go = |name: &str, end: &str| format!("while [ ! -e {}/{name} ]; do sleep 0.02; done; {end}", root.path().display());
    script("good", &go("good", "exit 0"));
    script("bad", &go("bad", "exit 9"));
    root.run(&["new", "-d", "-n", "nothing", "--group", "g", "--", "/no/such/program"]).ok();
    root.run(&["new", "-d", "-n", "idle", "--group", "g", "--idle-timeout", "50ms", "--", "sleep", "1000"]).ok();
    root.record("budget", &["--group", "g", "--max-iterations", "1"]);
    root.record("last", &["--group", "g"]);
    assert_eq!(places(&root).len(), 5);
    std::fs::write(root.join("good"), "").expect("writes");
    root.wait_status("bad", "active");
    std::fs::write(root.join("bad"), "").expect("writes");
    root.wait_status("budget", "active");
    assert_eq!(root.status("nothing"), ("failed".into(), "not started".into()));
    assert_eq!(root.status("idle"), ("timeout".into(), "idle".into()));
    root.run(&["iterate", "budget"]).ok();
    root.wait_status("last", "active");
    // a paused one keeps its place
    root.run(&["pause", "last"]).ok();
    assert_eq!(root.record("after", &["--group", "g"])["status"], "queued");
}

#[test]
fn a_queued_program_gets_what_its_caller_had() {
    let root = Root::new();
    enter(&root, "g", "a");
    let sub = root.work().join("sub");
    std::fs::create_dir(&sub).expect("a folder");
    let script = "echo \"$PWD|$FROM_CALLER|$GIVEN\" > out; echo shown-$((40+2)); exec sleep 1000";
    let args = ["new", "-d", "-n", "b", "--group", "g", "-w", "sub", "-e", "GIVEN=yes", "--", "bash", "-c", script];
    root.run_with(&args, &[("FROM_CALLER", "here")]).ok();
    root.run(&["complete", "a"]).ok();
    assert_eq!(root.wait_file("work/sub/out").trim_end(), format!("{}|here|yes", sub.display()));
}

#[test]
fn waiting_for_a_queued_session_waits_for_its_turn() {
    let root = Root::new();
    enter(&root, "g", "a");
    root.run(&["new", "-d", "-n", "b", "--group", "g", "--", "bash", "-c", "echo shown-$((40+2)); exec sleep 1000"]).ok();
    root.run(&["wait", "b", "--for", "status=active", "--timeout", "100ms"]).refused(1);
    root.run(&["wait", "b", "--for", "text=shown", "--timeout", "100ms"]).refused(1);
    let waits: Vec<_> = ["status=active", "text=shown-42", "quiet=100ms"]
        .iter()
        .map(|what| root.command(&["wait", "b", "--for", what, "--timeout", WAIT]).spawn().expect("starts"))
        .collect();
    root.run(&["send", "b", "x"]).refused(4);
    root.run(&["kill", "a"]).ok();
    for wait in waits {
        let output = wait.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    // one that is cancelled is not waited for any longer
    enter(&root, "g", "c");
    let waits: Vec<_> = ["status=active", "text=shown-42"]
        .iter()
        .map(|what| root.command(&["wait", "c", "--for", what, "--timeout", WAIT]).spawn().expect("starts"))
        .collect();
    root.run(&["kill", "c"]).ok();
    for wait in waits {
        let output = wait.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(4), "{output:?}");
    }
}

#[test]
fn many_at_once_never_exceed_the_limit() {
    let root = Root::new();
    root.run(&["group", "set", "g", "--limit", "3"]).ok();
    let args = |name: &str| ["new", "-d", "-n", name, "--group", "g", "--", "bash", "-c", "echo $$ >> order; exit 0"].map(str::to_owned);
    let children: Vec<_> = (0..20)
        .map(|number| {
            let args = args(&format!("n{number}"));
            root.command(&args.each_ref().map(String::as_str)).spawn().expect("starts")
        })
        .collect();
    for child in children {
        assert!(child.wait_with_output().expect("ends").status.success());
    }
    wait_until("all to be done", || root.json(&["ls", "--json", "--status", "completed"]).as_array().map(Vec::len) == Some(20));
    // replayed from what was told: never more than three at once
    let text = root.run(&["events", "--json"]).ok();
    let mut running = 0;
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        match event["type"].as_str() {
            Some("start") => running += 1,
            Some("complete") => running -= 1,
            _ => {}
        }
        assert!((0..=3).contains(&running), "{running} at {event}");
    }
    assert_eq!(std::fs::read_to_string(root.join("work/order")).expect("the file").lines().count(), 20);
}

#[test]
fn a_thread_whose_old_program_still_runs_does_not_stop_the_queue() {
    let root = Root::new();
    enter(&root, "g", "a");
    root.start("x", &["sleep", "1000"]);
    let program = root.program("x");
    root.run(&["complete", "x"]).ok();
    assert_eq!(enter(&root, "g", "x"), "queued");
    root.record("other", &["--group", "h"]);
    root.record("y", &["--group", "h"]);
    root.run(&["kill", "a"]).ok();
    root.run(&["complete", "other"]).ok();
    // another group has nothing to do with it
    root.wait_status("y", "active");
    root.wait_status("x", "active");
    assert_eq!(root.program("x"), program, "as `new` does without a group: the program goes on in the next session");
}

#[test]
fn a_session_that_comes_back_does_not_exceed_the_limit() {
    let root = Root::new();
    root.record("a", &["--group", "g", "--max-iterations", "1"]);
    assert_eq!(root.record("b", &["--group", "g"])["status"], "queued");
    root.run(&["iterate", "a"]).ok();
    root.wait_status("b", "active");
    // refused or queued, but not one more than the group may have
    root.run(&["resume", "a", "--max-iterations", "5"]);
    let group = root.json(&["group", "ls", "--json"])[0].clone();
    assert!(group["running"].as_u64() <= group["limit"].as_u64(), "{group}");
}

#[test]
fn a_daemon_killed_while_it_starts_the_next_one_is_followed_by_one_that_does() {
    let root = Root::new();
    enter(&root, "g", "n0");
    for number in 1..=12 {
        let (ends, next) = (format!("n{}", number - 1), format!("n{number}"));
        enter(&root, "g", &next);
        root.run(&["kill", &ends]).ok();
        // at whatever moment of its start
        root.kill_daemon_at_once();
        // sometimes: "the daemon cannot start: the database: UNIQUE constraint failed: runtimes.id"
        wait_active(&root, &[&next]);
        wait_until("its program", || root.runtime(&next)["state"]["state"] == "running");
        assert!(process::is_alive(root.program(&next)));
        assert_eq!(root.kinds(&next), ["queued", "start"], "{next} started once");
    }
    wait_until("nothing else to run", || root.holders().len() == 1);
}

#[test]
fn a_launch_that_was_stored_but_never_ran_is_made_good_at_the_next_start() {
    let root = Root::new();
    enter(&root, "g", "a");
    enter(&root, "g", "b");
    let launch: String =
        root.database().query_row("SELECT queued_launch FROM sessions WHERE status = 'queued'", [], |row| row.get(0)).expect("a launch");
    root.run(&["kill", "a"]).ok();
    wait_active(&root, &["b"]);
    wait_until("its program", || root.runtime("b")["state"]["state"] == "running");
    let dir = root.recording("b");
    // back to the moment between the commit of its launch and the birth of its holder
    root.kill_daemon();
    for pid in root.processes() {
        process::signal(pid, rustix::process::Signal::KILL);
    }
    wait_until("everything to be gone", || root.processes().is_empty());
    std::fs::remove_dir_all(dir).expect("removes");
    assert_eq!(root.sql("UPDATE runtimes SET state = '{\"state\":\"starting\"}', holder_pid = NULL WHERE is_live"), 1);
    let written = root.database().execute("UPDATE sessions SET queued_launch = ?1 WHERE status = 'active'", [launch]).expect("writes");
    assert_eq!(written, 1);
    root.run(&["daemon", "start"]).ok();
    wait_until("its program", || root.runtime("b")["state"]["state"] == "running");
    assert!(process::is_alive(root.program("b")));
    assert_eq!(root.kinds("b"), ["queued", "start"]);
    assert_eq!(root.holders().len(), 1);
}

#[test]
fn ending_everything_starts_nothing_new() {
    let root = Root::new();
    for name in ["a", "b", "c"] {
        enter(&root, "g", name);
    }
    let stopped = root.json(&["daemon", "stop", "--all", "--yes", "--json"]);
    assert_eq!(stopped["ended"], 3);
    assert!(root.processes().is_empty());
    assert_eq!(root.status("a"), ("ended".into(), "killed".into()));
    for name in ["b", "c"] {
        assert_eq!(root.status(name), ("ended".into(), "cancelled".into()));
    }
    assert!(root.holders().is_empty());
}

#[test]
fn killing_a_session_whose_turn_comes_ends_it_either_way() {
    let root = Root::new();
    for round in 0..12 {
        let (first, second) = (format!("first-{round}"), format!("second-{round}"));
        enter(&root, "g", &first);
        enter(&root, "g", &second);
        let freeing = root.command(&["kill", &first]).spawn().expect("starts");
        root.run(&["kill", &second]).ok();
        freeing.wait_with_output().expect("ends");
        // cancelled while it waited, or killed when it had just begun: in no case does its program go on
        let session = root.session(&second);
        assert_eq!(session["status"], "ended", "{session}");
        assert_ne!(session["runtime_state"]["state"], "running", "{session}");
    }
    assert!(active(&root).is_empty());
    wait_until("every holder to be gone", || root.holders().is_empty());
}

#[test]
fn a_program_left_from_before_is_ended_by_its_name() {
    let root = Root::new();
    enter(&root, "g", "holds");
    root.start("left", &["sleep", "1000"]);
    root.run(&["complete", "left"]).ok();
    let pid = root.program("left");
    assert_eq!(enter(&root, "g", "left"), "queued");
    assert!(root.run(&["rm", "left"]).refused(4).contains("queued"));
    root.run(&["kill", "left"]).ok();
    assert_eq!(root.status("left"), ("ended".into(), "cancelled".into()));
    assert!(process::is_alive(pid), "what waited is cancelled; what runs goes on");
    assert!(root.run(&["rm", "left"]).refused(4).contains("still running"));
    root.run(&["kill", "left"]).ok();
    assert!(!process::is_alive(pid));
    root.run(&["rm", "left"]).ok();
}
