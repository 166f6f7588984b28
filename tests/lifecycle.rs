//! A session's life by command and by its program: every status with every command, and who wins a race.

use serde_json::Value;

use crate::support::{Root, process, wait_until};

/// Every status a session can be in, with the reasons that matter.
const STATES: [&str; 9] = ["queued", "active", "paused", "completed", "failed", "ended", "iterations", "idle", "duration"];

const COMMANDS: [&[&str]; 8] = [
    &["pause", "NAME", "--reason", "lunch"],
    &["resume", "NAME"],
    &["resume", "NAME", "--max-iterations", "100"],
    &["complete", "NAME", "--result", "fine"],
    &["fail", "NAME", "--error", "broken"],
    &["iterate", "NAME"],
    &["kill", "NAME"],
    &["reset", "NAME"],
];

/// What a command makes of a status: the next one and the events that tell of it; nothing where it is refused.
fn expected(state: &str, command: &[&str]) -> Option<(&'static str, &'static [&'static str])> {
    let has_budget = command.contains(&"--max-iterations");
    match (state, command[0]) {
        ("queued" | "active", "kill") => Some(("ended", &["complete"])),
        ("queued" | "active", "reset") => Some(("ended", &["complete", "reset"])),
        ("active", "pause") => Some(("paused", &["pause"])),
        ("active", "complete") => Some(("completed", &["complete"])),
        ("active", "fail") => Some(("failed", &["error"])),
        ("active", "iterate") => Some(("active", &["iteration"])),
        ("paused", "resume") => Some(("active", &["resume"])),
        // by way of active, as drawn
        ("paused", "kill") => Some(("ended", &["resume", "complete"])),
        ("paused", "reset") => Some(("ended", &["resume", "complete", "reset"])),
        ("iterations", "resume") if has_budget => Some(("active", &["resume"])),
        ("completed", "reset") => Some(("completed", &["reset"])),
        ("failed", "reset") => Some(("failed", &["reset"])),
        ("ended", "reset") => Some(("ended", &["reset"])),
        ("iterations" | "idle" | "duration", "reset") => Some(("timeout", &["reset"])),
        _ => None,
    }
}

/// A record in this state.
#[track_caller]
fn make(root: &Root, name: &str, state: &str) {
    let limit: &[&str] = match state {
        "queued" => &["--group", "held"],
        "iterations" => &["--max-iterations", "1"],
        "idle" => &["--idle-timeout", "20ms"],
        "duration" => &["--max-duration", "20ms"],
        _ => &[],
    };
    root.record(name, limit);
    match state {
        "paused" => drop(root.run(&["pause", name, "--reason", "tea"]).ok()),
        "completed" => drop(root.run(&["complete", name]).ok()),
        "ended" => drop(root.run(&["kill", name]).ok()),
        "failed" => drop(root.run(&["fail", name, "--error", "no"]).ok()),
        "iterations" => drop(root.run(&["iterate", name]).ok()),
        "idle" | "duration" => root.wait_status(name, "timeout"),
        _ => {}
    }
}

#[test]
fn every_status_with_every_command() {
    let root = Root::new();
    root.run(&["group", "set", "held", "--limit", "0"]).ok();
    // whether files are watched is not the session's doing
    let show = |name: &str| {
        let mut layers = root.json(&["show", name, "--json"]);
        layers.as_object_mut().expect("layers").remove("watch");
        layers
    };
    for state in STATES {
        for (number, command) in COMMANDS.iter().enumerate() {
            let name = format!("{state}-{number}");
            make(&root, &name, state);
            let args: Vec<&str> = command.iter().map(|word| if *word == "NAME" { name.as_str() } else { word }).collect();
            let (shown, events) = (show(&name), root.events(&name));
            let present = root.status(&name).0;
            let Some((status, told)) = expected(state, command) else {
                let sentence = root.run(&args).refused(4);
                assert!(sentence.contains(&format!("session {name} is {present}")), "{args:?}: {sentence}");
                assert_eq!(sentence.trim_end().lines().count(), 1, "one sentence: {sentence}");
                assert_eq!(show(&name), shown, "{args:?} was refused in {state}");
                assert_eq!(root.events(&name), events, "{args:?} was refused in {state}");
                continue;
            };
            let mut with_json = args.clone();
            with_json.push("--json");
            let answer = root.json(&with_json);
            assert_eq!(answer["status"], status, "{args:?} in {state}: the answer");
            assert_eq!(root.status(&name).0, status, "{args:?} in {state}");
            let kinds = root.kinds(&name);
            assert_eq!(&kinds[events.len()..], told, "{args:?} in {state}");
            assert_eq!(root.events(&name)[..events.len()], events, "{args:?} in {state}: what was told stays");
        }
    }
}

#[test]
fn words_given_are_kept_and_told() {
    let root = Root::new();
    root.record("one", &[]);
    root.run(&["pause", "one", "--reason", "waits for an answer"]).ok();
    assert_eq!(root.status("one"), ("paused".into(), "waits for an answer".into()));
    root.run(&["resume", "one"]).ok();
    assert_eq!(root.session("one")["status_reason"], Value::Null);
    root.run(&["complete", "one", "--result", "it works"]).ok();
    let session = root.session("one");
    assert_eq!((&session["result"], &session["error"]), (&Value::from("it works"), &Value::Null));
    assert!(session["ended_at"].is_string());
    root.record("two", &[]);
    root.run(&["fail", "two", "--error", "tests do not pass"]).ok();
    assert_eq!(root.session("two")["error"], "tests do not pass");
    let last = |name: &str| root.events(name).pop().expect("an event")["data"].clone();
    assert_eq!((&last("one")["result"], &last("two")["error"]), (&Value::from("it works"), &Value::from("tests do not pass")));
    assert_eq!(root.run(&["fail", "two"]).code, 2, "an error is needed");
}

#[test]
fn the_end_of_a_program_is_the_end_of_its_session() {
    let root = Root::new();
    root.start_script("good", "exit 0");
    root.start_script("bad", "exit 3");
    root.start_script("shot", "kill -9 $$");
    root.start("ended", &["sleep", "1000"]);
    root.run(&["kill", "ended"]).ok();
    for (name, status, reason, told) in [
        ("good", "completed", "exit code 0", "complete"),
        ("bad", "failed", "exit code 3", "error"),
        ("shot", "failed", "signal KILL", "error"),
        ("ended", "ended", "killed", "complete"),
    ] {
        root.wait_status(name, status);
        assert_eq!(root.status(name), (status.into(), reason.into()));
        assert_eq!(root.kinds(name), ["start", "exit", told], "{name}");
        root.run(&["kill", name]).refused(4);
    }
}

#[test]
fn a_paused_session_whose_program_ends_goes_by_way_of_active() {
    let root = Root::new();
    root.start("shot", &["sleep", "1000"]);
    let program = root.program("shot");
    let paused = root.json(&["pause", "shot", "--json"]);
    assert_eq!((paused["status"].as_str(), paused["note"].as_str()), (Some("paused"), None));
    // somebody else ends what stands still
    process::signal(program, rustix::process::Signal::KILL);
    root.wait_status("shot", "failed");
    let kinds: Vec<String> = root.kinds("shot").into_iter().filter(|kind| kind != "exit").collect();
    assert_eq!(kinds, ["start", "pause", "resume", "error"]);
    let events = root.events("shot");
    let resumed = events.iter().find(|event| event["type"] == "resume").expect("told");
    assert_eq!(resumed["author"], "daemon");
    assert_eq!(root.status("shot").1, "signal KILL");
}

#[test]
fn an_end_that_was_told_leaves_the_program_to_the_next_session() {
    let root = Root::new();
    for (name, end) in [("done", &["complete", "done"][..]), ("wrong", &["fail", "wrong", "--error", "no"])] {
        let first = root.start(name, &["sleep", "1000"]);
        let program = root.program(name);
        let mut args = end.to_vec();
        args.push("--json");
        let answer = root.json(&args);
        assert!(answer["note"].as_str().is_some_and(|note| note.contains("its program goes on")), "{answer}");
        let (status, _) = root.status(name);
        assert!(process::is_alive(program));
        let output = root.run(&["new", "-d", "-n", name, "--json", "--attach-existing", "--", "sleep", "2000"]);
        let next: Value = serde_json::from_str(&output.stdout).expect("JSON");
        assert!(next["note"].as_str().is_some_and(|note| note.contains("sleep 2000 was not started")), "{next}");
        assert!(output.stderr.is_empty() || output.stderr.contains("was not started"), "{}", output.stderr);
        assert_ne!(next["id"], first["id"]);
        assert_eq!((next["thread"].clone(), root.program(name)), (first["thread"].clone(), program), "the same program goes on");
        let before = first["id"].as_str().expect("an id");
        assert_eq!(root.status(before).0, status, "the one that ended stays as it was");
        // its end is the new one's end, and only that
        process::kill(program);
        root.wait_status(name, "failed");
        assert_eq!(root.session(name)["id"], next["id"]);
        assert_eq!(root.status(before).0, status);
        // those of its thread, of which the first two are its own
        let of_first: Vec<Value> = root.events(before).into_iter().filter(|event| event["session"] == first["id"]).collect();
        assert_eq!(of_first.len(), 2, "{of_first:?}");
    }
}

#[test]
fn a_program_that_ends_after_its_session_changes_nothing_about_that() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    root.run(&["complete", "one", "--result", "enough"]).ok();
    let before = root.session("one");
    root.run(&["kill", "one"]).ok();
    wait_until("the exit to be told", || root.kinds("one").iter().any(|kind| kind == "exit"));
    let after = root.session("one");
    for key in ["status", "status_reason", "result", "error", "ended_at"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(root.kinds("one"), ["start", "complete", "exit"]);
}

#[test]
fn of_complete_and_fail_at_once_one_wins_and_the_other_is_told() {
    let root = Root::new();
    let mut wins = [0, 0];
    for round in 0..25 {
        let name = format!("race-{round}");
        root.record(&name, &[]);
        let complete = root.command(&["complete", &name, "--result", "good"]).spawn().expect("starts");
        let fail = root.command(&["fail", &name, "--error", "bad"]).spawn().expect("starts");
        let outputs = [complete, fail].map(|child| child.wait_with_output().expect("ends"));
        let codes = [0, 1].map(|which: usize| outputs[which].status.code());
        let winner = usize::from(codes[1] == Some(0));
        assert_eq!((codes[winner], codes[1 - winner]), (Some(0), Some(4)), "round {round}: {outputs:?}");
        wins[winner] += 1;
        let (status, told) = [("completed", "complete"), ("failed", "error")][winner];
        let sentence = String::from_utf8_lossy(&outputs[1 - winner].stderr).into_owned();
        assert!(sentence.contains(&format!("session {name} is {status}")), "{sentence}");
        assert_eq!(root.kinds(&name), ["start", told], "round {round}");
        let session = root.session(&name);
        assert_eq!(session["status"], status);
        assert_eq!((session["result"].is_null(), session["error"].is_null()), (winner == 1, winner == 0), "nothing of the other");
    }
    assert_eq!(wins[0] + wins[1], 25);
}

#[test]
fn fifty_clients_at_once_count_exactly() {
    let root = Root::new();
    root.record("busy", &["--max-iterations", "40"]);
    let children: Vec<_> = (0..50).map(|_| root.command(&["iterate", "busy"]).spawn().expect("starts")).collect();
    let codes: Vec<_> = children.into_iter().map(|child| child.wait_with_output().expect("ends").status.code()).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 40, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(4)).count(), 10, "{codes:?}");
    let session = root.session("busy");
    assert_eq!((session["iterations"].as_u64(), session["status"].as_str()), (Some(40), Some("timeout")));
    let events = root.events("busy");
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["data"]["iteration"].as_u64()).collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<u64>>());
    let n: Vec<u64> = events.iter().filter_map(|event| event["n"].as_u64()).collect();
    assert_eq!(n, (1..=42).collect::<Vec<u64>>(), "start, iterations, timeout");
}

#[test]
fn a_session_whose_place_was_taken_does_not_come_back() {
    let root = Root::new();
    let first = root.record("fix", &["--max-iterations", "1"]);
    root.run(&["iterate", "fix"]).ok();
    root.record("fix", &[]);
    root.run(&["complete", "fix"]).ok();
    // another one has been opened on its thread since
    let id = first["id"].as_str().expect("an id");
    assert!(root.run(&["resume", id, "--max-iterations", "5"]).refused(4).contains("has taken its place"));
    assert_eq!(root.session(id)["status"], "timeout");
}

#[test]
fn what_is_nested_too_deeply_is_refused_and_hides_nothing() {
    let root = Root::new();
    root.record("deep", &[]);
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let (fine, deep) = (nested(55), nested(110));
    for args in [&["context", "deep", "--set", &deep][..], &["event", "deep", "x", "--data", &deep], &["iterate", "deep", "--data", &deep]]
    {
        assert!(root.run(args).refused(2).contains("flatter"), "{args:?}");
    }
    for args in [&["context", "deep", "--set", &fine][..], &["event", "deep", "x", "--data", &fine], &["iterate", "deep", "--data", &fine]]
    {
        root.run(args).ok();
    }
    assert!(root.run(&["ls"]).ok().contains("deep"));
    assert_eq!(root.kinds("deep"), ["start", "context", "x", "iteration"]);
    root.run(&["context", "deep"]).ok();
}

#[test]
fn an_old_id_ends_nothing_that_came_later() {
    let root = Root::new();
    let first = root.start_script("api", "exit 0");
    root.run(&["wait", "api", "--for", "exit", "--timeout", "20s"]).ok();
    root.start("api", &["sleep", "1000"]);
    let pid = root.program("api");
    let id = first["id"].as_str().expect("an id");
    assert!(root.run(&["kill", id]).refused(4).contains("completed"));
    assert!(root.run(&["reset", id]).refused(4).contains("has been followed by"));
    assert_eq!(root.status("api").0, "active");
    assert!(crate::support::process::is_alive(pid));
}

#[test]
fn an_end_that_was_asked_for_is_no_success_though_the_daemon_did_not_see_it() {
    let root = Root::new();
    // ends well, but only a moment after it was asked to
    root.start_script("slow", "trap 'sleep 0.5; exit 0' HUP; touch ../ready; while :; do sleep 0.05; done");
    wait_until("the trap", || root.join("ready").exists());
    let mut kill = root.command(&["kill", "slow"]).spawn().expect("starts");
    wait_until("the decision", || {
        let decided = "SELECT count(*) FROM runtimes WHERE ending IS NOT NULL";
        root.database().query_row(decided, [], |row| row.get::<_, i64>(0)).expect("counts") == 1
    });
    root.kill_daemon_at_once();
    kill.wait().expect("ends");
    root.wait_status("slow", "ended");
    assert_eq!(root.status("slow").1, "killed");
}
