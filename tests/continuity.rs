//! Threads go on: `new` continues what lives, and opens the next session where the last one was left.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::{BASH, Root, process, wait_until};

/// Says where it is and what it was given, then stays.
const TELL: &str = "echo \"$PWD|$COLOR|$SHAPE\" > \"$OUT\"; exec sleep 1000";

#[track_caller]
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// What the next session of `name` finds.
#[track_caller]
fn found(root: &Root, name: &str, more: &[&str]) -> String {
    let out = root.join("out");
    let _ = std::fs::remove_file(&out);
    let variable = format!("OUT={}", out.display());
    let mut args = vec!["new", "-d", "-n", name, "-e", &variable];
    args.extend_from_slice(more);
    args.extend_from_slice(&["--", "bash", "-c", TELL]);
    root.run(&args).ok();
    root.wait_file("out").trim_end().to_owned()
}

#[test]
fn new_continues_a_live_session() {
    let root = Root::new();
    let first = root.json(&["new", "-d", "--json", "-n", "api", "--task", "one", "--", "sleep", "1000"]);
    let program = root.program("api");
    let second =
        root.json(&["new", "-d", "--json", "-n", "api", "--task", "two", "--mode", "test", "--attach-existing", "--", "sleep", "2000"]);
    assert_eq!((&second["id"], &second["task"], &second["mode"]), (&first["id"], &"two".into(), &"test".into()));
    assert_eq!((first["task_count"].as_u64(), second["task_count"].as_u64()), (Some(1), Some(2)));
    assert!(text(&second, "note").contains("sleep 2000 was not started"), "{second}");
    assert_eq!(root.program("api"), program);
    // without a command there is nothing to be told
    let third = root.json(&["new", "-d", "--json", "-n", "api"]);
    assert_eq!((&third["id"], third.get("note"), third["task_count"].as_u64()), (&first["id"], None, Some(2)));
    assert_eq!(root.kinds("api"), ["start", "task"]);
    assert_eq!(root.events("api")[1]["data"]["task"], "two");
    let told = root.run(&["new", "-d", "-n", "api", "--", "sleep", "3000"]);
    assert!(told.code == 4 && told.stderr.contains("cannot start sleep 3000"), "{told:?}");
    // by its id too
    let by_id = root.json(&["new", "-d", "--json", "-n", text(&first, "id")]);
    assert_eq!((&by_id["id"], by_id.get("previous")), (&first["id"], None));
    // a paused one stays so
    root.run(&["pause", "api"]).ok();
    let paused = root.json(&["new", "-d", "--json", "-n", "api", "--task", "three", "--attach-existing", "--", "ls"]);
    assert_eq!((text(&paused, "status"), paused["task_count"].as_u64()), ("paused", Some(3)));
    assert!(text(&paused, "note").contains("ls was not started"), "{paused}");
}

#[test]
fn a_record_gets_a_program() {
    let root = Root::new();
    let record = root.record("fix", &["--task", "fix it"]);
    assert_eq!(record["runtime"], Value::Null);
    root.run(&["send", "fix", "x"]).refused(4);
    let running = root.json(&["new", "-d", "--json", "-n", "fix", "--", "sleep", "1000"]);
    assert_eq!((&running["id"], running.get("note")), (&record["id"], None));
    assert!(process::is_alive(root.program("fix")));
    assert_eq!(root.kinds("fix"), ["start", "start"]);
    assert_eq!(root.events("fix")[1]["data"]["command"][0], "sleep");
    // an ended program leaves an ended session
    root.run(&["kill", "fix"]).ok();
    let next = root.record("fix", &[]);
    assert_ne!(next["id"], record["id"]);
    assert_eq!(next["task_count"], 2);
}

#[test]
fn the_next_session_opens_where_the_last_was_left() {
    let root = Root::new();
    let sub = root.work().join("sub dir");
    std::fs::create_dir(&sub).expect("a folder");
    let mut args = vec!["new", "-d", "--json", "-n", "api", "-e", "COLOR=red", "-e", "SHAPE=two words", "--"];
    args.extend_from_slice(BASH);
    let first = root.json(&args);
    root.wait_screen("api", "$");
    root.run(&["send", "api", "--enter", "cd 'sub dir'"]).ok();
    let cwd = || text(&root.json(&["show", "api", "--json"])["terminals"][0], "cwd").to_owned();
    wait_until("the folder to be known", || cwd() == sub.to_str().expect("Unicode"));
    root.run(&["send", "api", "--enter", "exit"]).ok();
    root.wait_status("api", "completed");
    let there = sub.display();
    assert_eq!(found(&root, "api", &[]), format!("{there}|red|two words"));
    let second = root.session("api");
    assert_ne!(second["id"], first["id"]);
    assert_eq!((&second["thread"], second["task_count"].as_u64()), (&first["thread"], Some(2)));
    // what is asked for wins, and the rest stays
    root.run(&["kill", "api"]).ok();
    let other = root.join("other");
    std::fs::create_dir(&other).expect("a folder");
    assert_eq!(found(&root, "api", &["-w", "../other", "-e", "COLOR=blue"]), format!("{}|blue|two words", other.display()));
    root.run(&["kill", "api"]).ok();
    assert_eq!(found(&root, "api", &[]), format!("{}|blue|two words", other.display()), "and is what the next one finds");
    root.run(&["kill", "api"]).ok();
    // a folder that is gone
    std::fs::remove_dir(&other).expect("removes");
    assert_eq!(found(&root, "api", &[]), format!("{}|blue|two words", root.work().display()));
    let layers = root.json(&["show", "api", "--json"]);
    assert_eq!(layers["terminals"].as_array().map(Vec::len), Some(1), "one terminal through all of it");
    assert_eq!(layers["sessions"].as_array().map(Vec::len), Some(5));
}

#[test]
fn reset_starts_clean() {
    let root = Root::new();
    let sub = root.work().join("sub");
    std::fs::create_dir(&sub).expect("a folder");
    assert_eq!(found(&root, "api", &["-w", "sub", "-e", "COLOR=red"]), format!("{}|red|", sub.display()));
    // the thread's workspace is where it was made: sub
    root.run(&["kill", "api"]).ok();
    let other = root.join("other");
    std::fs::create_dir(&other).expect("a folder");
    assert_eq!(found(&root, "api", &["-w", "../other"]), format!("{}|red|", other.display()));
    let program = root.program("api");
    let before = root.json(&["show", "api", "--json"])["terminals"][0].clone();
    let answer = root.json(&["reset", "api", "--json"]);
    assert_eq!((text(&answer, "status"), text(&answer, "status_reason")), ("ended", "reset"));
    assert!(!process::is_alive(program), "its program went with it");
    let after = root.json(&["show", "api", "--json"])["terminals"][0].clone();
    assert_eq!(after["id"], before["id"]);
    assert!(after["state_version"].as_u64() > before["state_version"].as_u64(), "{after}");
    assert_eq!((text(&after, "cwd"), &after["env_delta"]), (sub.to_str().expect("Unicode"), &serde_json::json!([])));
    assert_eq!(found(&root, "api", &[]), format!("{}||", sub.display()));
    // an ended one can be made to forget, too
    root.run(&["kill", "api"]).ok();
    let version = || root.json(&["show", "api", "--json"])["terminals"][0]["state_version"].as_u64();
    let ended = version();
    root.run(&["reset", "api"]).ok();
    assert!(version() > ended);
}

#[test]
fn show_has_the_ids_of_every_layer() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    root.record("two", &["--task", "x"]);
    let layers = |name: &str| root.json(&["show", name, "--json"]);
    let (one, two) = (layers("one"), layers("two"));
    let mut ids = HashSet::new();
    for path in [
        "/thread/id",
        "/session/id",
        "/sessions/0/id",
        "/terminals/0/id",
        "/terminals/0/lease",
        "/runtimes/0/id",
        "/leases/0/id",
        "/leases/0/instance/id",
    ] {
        let id = one.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path} in {one}"));
        assert_eq!(id.len(), 36, "{path}: {id}");
        ids.insert(id.to_owned());
    }
    assert_eq!(ids.len(), 6, "the session and the lease are named twice");
    assert_eq!(one["session"]["thread"], one["thread"]["id"]);
    assert_eq!(one["sessions"][0]["task_count"], 1);
    for key in ["created_at", "last_activity_at"] {
        assert!(one["sessions"][0][key].is_string(), "{one}");
    }
    assert!(one["terminals"][0]["state_version"].is_u64());
    // two threads share one lease
    assert_eq!(one["leases"], two["leases"]);
    assert_eq!(one["terminals"][0]["lease"], two["terminals"][0]["lease"]);
    assert_ne!(one["terminals"][0]["id"], two["terminals"][0]["id"]);
    assert_eq!(two["runtimes"], serde_json::json!([]));
}

#[test]
fn twenty_at_once_make_one_session() {
    let root = Root::new();
    for round in 0..3 {
        let name = format!("same-{round}");
        let args = ["new", "-d", "--json", "-n", &name, "--attach-existing", "--", "sleep", "1000"];
        let children: Vec<_> = (0..20).map(|_| root.command(&args).spawn().expect("starts")).collect();
        let mut ids = HashSet::new();
        for child in children {
            let output = child.wait_with_output().expect("ends");
            assert!(output.status.success(), "{output:?}");
            let session: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            ids.insert(text(&session, "id").to_owned());
        }
        assert_eq!(ids.len(), 1, "round {round}");
        let layers = root.json(&["show", &name, "--json"]);
        for layer in ["sessions", "terminals", "runtimes"] {
            assert_eq!(layers[layer].as_array().map(Vec::len), Some(1), "{layer} of {layers}");
        }
        assert_eq!(root.kinds(&name), ["start"]);
    }
    wait_until("the holders that were not needed to end", || root.holders().len() == 3);
    // the same on a thread whose session has ended
    root.run(&["kill", "same-0"]).ok();
    let args = ["new", "--no-run", "-n", "same-0"];
    let children: Vec<_> = (0..20).map(|_| root.command(&args).spawn().expect("starts")).collect();
    for child in children {
        assert!(child.wait_with_output().expect("ends").status.success());
    }
    assert_eq!(root.json(&["ls", "--json", "--thread", "same-0"]).as_array().map(Vec::len), Some(2));
}

/// Terminal, lease and runtime of a session.
#[track_caller]
fn ids(root: &Root, name: &str) -> [Value; 3] {
    let layers = root.json(&["show", name, "--json"]);
    ["terminals", "leases", "runtimes"].map(|layer| layers[layer][0]["id"].clone())
}

/// Three threads; `lose` takes rows away, and all is as it was.
#[track_caller]
fn check_rows_come_back(lose: impl Fn(&Root)) {
    let root = Root::new();
    root.start("one", BASH);
    root.start("two", &["sleep", "1000"]);
    root.start_script("over", "exit 0");
    root.wait_status("over", "completed");
    let names = ["one", "two", "over"];
    let program = root.program("one");
    let before = names.map(|name| ids(&root, name));
    assert!(before.iter().flatten().all(Value::is_string), "{before:?}");
    lose(&root);
    assert_eq!(names.map(|name| ids(&root, name)), before);
    assert_eq!((root.program("one"), root.status("one").0.as_str()), (program, "active"));
    root.run(&["send", "one", "--enter", "echo \"still-$((40+2))\""]).ok();
    root.wait_screen("one", "still-42");
    assert_eq!(root.json(&["new", "-d", "--json", "-n", "two"])["id"], root.session("two")["id"]);
    root.start("over", &["sleep", "1000"]);
    assert_eq!(ids(&root, "over")[..2], before[2][..2], "the next session has the same terminal and lease");
    let broken: i64 = root.database().query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(broken, 0, "everything points somewhere again");
}

#[test]
fn missing_terminals_come_back_while_the_daemon_runs() {
    check_rows_come_back(|root| assert_eq!(root.sql("DELETE FROM terminals"), 3));
}

#[test]
fn a_missing_lease_comes_back_while_the_daemon_runs() {
    check_rows_come_back(|root| assert_eq!(root.sql("DELETE FROM leases"), 1));
}

#[test]
fn a_missing_lease_comes_back_at_the_next_start() {
    check_rows_come_back(|root| {
        root.run(&["daemon", "stop"]).ok();
        assert_eq!(root.sql("DELETE FROM leases"), 1);
    });
}

#[test]
fn a_missing_terminal_comes_back_when_the_next_session_needs_it_first() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    let before = ids(&root, "one");
    root.run(&["kill", "one"]).ok();
    assert_eq!(root.sql("DELETE FROM terminals"), 1);
    root.start("one", &["sleep", "1000"]);
    assert_eq!(ids(&root, "one")[..2], before[..2]);
}

#[test]
fn an_ended_session_s_terminal_comes_back_at_the_next_start() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    let before = ids(&root, "one");
    root.run(&["kill", "one"]).ok();
    root.run(&["daemon", "stop"]).ok();
    assert_eq!(root.sql("DELETE FROM terminals"), 1);
    assert_eq!(ids(&root, "one"), before);
}

/// As after a power cut and a boot: everything is gone, and the machine calls itself something else.
fn restart_machine(root: &Root) {
    root.kill_daemon();
    for pid in root.processes() {
        process::signal(pid, rustix::process::Signal::KILL);
    }
    wait_until("everything to be gone", || root.processes().is_empty());
    assert_eq!(root.sql("UPDATE instances SET place = 'the boot before'"), 1);
}

#[test]
fn an_id_from_before_the_machine_restarted_opens_a_fresh_session() {
    let root = Root::new();
    let olds: Vec<Value> = ["a", "b", "c", "d", "e", "f"].iter().map(|name| root.start(name, &["sleep", "1000"])).collect();
    let lease = root.json(&["show", "a", "--json"])["leases"][0].clone();
    restart_machine(&root);
    for name in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(root.status(name), ("failed".into(), "lost".into()));
        assert_eq!(root.kinds(name), ["start", "lost"]);
    }
    let now = root.json(&["show", "a", "--json"])["leases"][0].clone();
    assert_eq!(now["id"], lease["id"], "the same lease");
    assert_ne!(now["instance"]["id"], lease["instance"]["id"], "on another instance");
    let log = || std::fs::read_to_string(root.join("state/daemon.log")).expect("a log");
    for old in &olds {
        let (id, thread) = (text(old, "id"), text(old, "thread"));
        let is_told = log()
            .lines()
            .any(|line| line.contains("warning") && line.contains(id) && line.contains(thread) && line.contains("last activity 20"));
        assert!(is_told, "{id} of {thread} in {}", log());
    }
    let id = |which: usize| text(&olds[which], "id").to_owned();
    for (which, args) in [
        (0, vec!["iterate".to_owned(), id(0), "--json".into()]),
        (1, vec!["resume".into(), id(1), "--json".into()]),
        (2, ["new", "-d", "-n", &id(2), "--json", "--", "sleep", "1000"].map(str::to_owned).to_vec()),
    ] {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let fresh = root.json(&words);
        assert_eq!((text(&fresh["previous"], "id"), text(&fresh["previous"], "status")), (id(which).as_str(), "failed"), "{words:?}");
        assert_eq!((text(&fresh["previous"], "status_reason"), &fresh["previous"]["thread"]), ("lost", &olds[which]["thread"]));
        assert!(fresh["previous"]["last_activity_at"].is_string() && fresh["note"].is_string(), "{fresh}");
        assert_ne!(text(&fresh, "id"), id(which));
        assert_eq!((&fresh["thread"], text(&fresh, "status")), (&olds[which]["thread"], "active"));
        assert_eq!(root.status(&id(which)), ("failed".into(), "lost".into()), "the old one stays what it is");
        let used = log().lines().filter(|line| line.contains(&id(which)) && line.contains("was used after")).count();
        assert_eq!(used, 1, "{}", log());
    }
    assert_eq!(root.session("a")["iterations"], 1, "the fresh one was iterated");
    // used again, the fresh one goes on: no third one
    root.json(&["iterate", &id(0), "--json"]);
    assert_eq!(root.session("a")["iterations"], 2);
    assert_eq!(root.json(&["show", "a", "--json"])["sessions"].as_array().map(Vec::len), Some(2));
    let sentence = root.run(&["send", &id(3), "x"]).refused(4);
    for word in [id(3).as_str(), "lost", "the machine was restarted", "last activity 20"] {
        assert!(sentence.contains(word), "{word} in {sentence}");
    }
    root.run(&["send", &id(3), "x"]).refused(4);
    assert_eq!(root.json(&["show", "d", "--json"])["sessions"].as_array().map(Vec::len), Some(2), "one fresh one");
    // by name: nothing special
    for args in [&["iterate", "f"][..], &["resume", "f"], &["send", "f", "x"]] {
        assert!(root.run(args).refused(4).contains("session f is failed"), "{args:?}");
    }
    assert_eq!(root.kinds("f"), ["start", "lost"]);
    let next = root.json(&["new", "-d", "--json", "-n", "e", "--", "sleep", "1000"]);
    assert_eq!((next.get("previous"), &next["thread"]), (None, &olds[4]["thread"]));
    root.wait_status("e", "active");
}

#[test]
fn missing_terminals_of_running_programs_come_back_at_the_next_start() {
    // the daemon cannot start: "UNIQUE constraint failed: runtimes.id"
    check_rows_come_back(|root| {
        root.run(&["daemon", "stop"]).ok();
        assert_eq!(root.sql("DELETE FROM terminals"), 3);
    });
}

#[test]
fn a_missing_lease_does_not_keep_a_new_thread_from_starting() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    let lease = root.json(&["show", "one", "--json"])["leases"][0]["id"].clone();
    assert_eq!(root.sql("DELETE FROM leases"), 1);
    root.start("fresh", &["sleep", "1000"]);
    assert_eq!(root.json(&["show", "fresh", "--json"])["leases"][0]["id"], lease);
}

#[test]
fn terminal_and_lease_missing_together_come_back_with_their_ids() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    let present = || {
        let layers = root.json(&["show", "one", "--json"]);
        (layers["terminals"][0]["id"].clone(), layers["leases"][0]["id"].clone())
    };
    let before = present();
    root.sql("DELETE FROM terminals");
    root.sql("DELETE FROM leases");
    assert_eq!(present(), before);
}

#[test]
fn a_folder_is_known_also_when_the_program_is_killed_at_once() {
    let root = Root::new();
    let sub = root.work().join("sub");
    std::fs::create_dir(&sub).expect("a folder");
    root.start("api", BASH);
    root.wait_screen("api", "$");
    root.run(&["send", "api", "--enter", "cd sub"]).ok();
    root.run(&["wait", "api", "--for", "text=\\$ cd sub\\n\\$", "--timeout", "20s"]).ok();
    root.run(&["kill", "api"]).ok();
    assert_eq!(found(&root, "api", &[]), format!("{}||", sub.display()));
}

#[test]
fn a_used_up_budget_can_be_raised_also_after_the_machine_restarted() {
    let root = Root::new();
    let old = root.json(&["new", "-d", "--json", "-n", "one", "--max-iterations", "1", "--", "sleep", "1000"]);
    root.run(&["iterate", "one"]).ok();
    restart_machine(&root);
    wait_until("the loss to be known", || root.runtime("one")["state"]["state"] == "lost");
    assert_eq!(root.status("one"), ("timeout".into(), "iterations".into()));
    // by its name it is resumed; its id means the same session
    let resumed = root.json(&["resume", text(&old, "id"), "--max-iterations", "5", "--json"]);
    assert_eq!((&resumed["id"], resumed["iterations"].as_u64()), (&old["id"], Some(1)), "{resumed}");
}

#[test]
fn context_for_an_id_from_before_the_restart_says_what_happened() {
    let root = Root::new();
    let old = root.start("one", &["sleep", "1000"]);
    restart_machine(&root);
    assert_eq!(root.status("one"), ("failed".into(), "lost".into()));
    let answer = root.run(&["context", text(&old, "id"), "--set", r#"{"a":1}"#, "--json"]);
    let answer: Value = serde_json::from_str(&answer.ok()).expect("JSON");
    assert_eq!(answer["previous"]["id"], old["id"], "it was kept with session {}, without a word", answer["id"]);
}

/// The clock is set back by a year: lists keep the order of creation, and the latest program and exec are the latest.
#[test]
fn lists_keep_the_order_of_creation_when_the_clock_is_set_back() {
    let root = Root::new();
    root.start("first", &["cat"]);
    root.start("second", &["cat"]);
    root.run(&["exec", "-s", "second", "-l", "bash", "echo one"]).ok();
    root.run(&["daemon", "stop"]).ok();
    // as if everything so far had happened while the clock was a year ahead
    let year = 365_i64 * 24 * 3600 * 1_000_000;
    for (table, column) in [("sessions", "created_at"), ("runtimes", "created_at"), ("threads", "created_at"), ("execs", "asked_at")] {
        root.sql(&format!("UPDATE {table} SET {column} = {column} + {year}"));
    }
    root.start("third", &["cat"]);
    let names = |args: &[&str]| -> Vec<String> {
        let listed = root.json(args);
        listed.as_array().expect("a list").iter().map(|session| session["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&["ls", "--json"]), ["first", "second", "third"]);
    assert_eq!(names(&["ls", "--all", "--limit", "1", "--json"]), ["third"]);
    root.run(&["exec", "-s", "second", "-l", "bash", "echo two"]).ok();
    let history = root.run(&["history", "-s", "second", "-l", "bash"]).ok();
    let (one, two) = (history.find("echo one").expect("the first"), history.find("echo two").expect("the second"));
    assert!(one < two, "{history}");
    let before = root.session("first")["runtime"].clone();
    root.run(&["pause", "first", "--hibernate"]).ok();
    root.run(&["resume", "first"]).ok();
    root.wait_status("first", "active");
    assert_ne!(root.session("first")["runtime"], before, "the program that runs now is the session's");
}
