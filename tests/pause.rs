//! Pausing: everything of a session stands still, nothing is lost, and it goes on exactly there.

use serde_json::Value;

use crate::support::{BASH, Root, Term, process, wait_for, wait_until};

/// Processes that belong to a session's program, whoever is their parent.
fn tree(root: &Root, name: &str) -> Vec<u32> {
    let mark = format!("SESSIONS_RUNTIME={}", root.runtime(name)["id"].as_str().expect("an id"));
    let is_marked = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
    };
    let holders = root.holders();
    root.processes().into_iter().filter(|pid| !holders.contains(pid) && is_marked(pid)).collect()
}

/// Ticks of processor time they have used, each by its number.
fn used(pids: &[u32]) -> Vec<(u32, u64)> {
    let mut used: Vec<(u32, u64)> = pids.iter().filter_map(|pid| Some((*pid, process::stat(*pid)?.cpu))).collect();
    used.sort_unstable();
    used
}

/// Returns when some processor time has passed in which others could have run.
fn let_others_run() {
    let start = process::stat(std::process::id()).expect("ourselves").cpu;
    wait_until("some processor time", || {
        let until = std::time::Instant::now() + std::time::Duration::from_millis(20);
        while std::time::Instant::now() < until {}
        process::stat(std::process::id()).expect("ourselves").cpu > start + 30
    });
}

fn signals_only(root: &Root) {
    root.config("[pause]\nfreeze = \"signals\"\n");
}

/// A busy loop in front, one in the background, one in a session of its own, and one whose parents are gone.
const RESTLESS: &str = "spin() { while :; do :; done; }; spin & setsid bash -c 'while :; do :; done' & \
    bash -c 'setsid bash -c \"while :; do :; done\" &'; : > \"$READY\"; spin";

fn start_restless(root: &Root, name: &str) {
    let ready = format!("READY={}", root.join(name).display());
    root.json(&["new", "-d", "--json", "-n", name, "-e", &ready, "--", "bash", "-c", RESTLESS]);
    wait_until("all of it to run", || root.join(name).exists() && tree(root, name).len() >= 4);
}

#[track_caller]
fn stands_still(root: &Root, name: &str) {
    let pids = tree(root, name);
    let before = used(&pids);
    let_others_run();
    assert_eq!((tree(root, name), used(&pids)), (pids, before), "nothing ran, nothing was started");
}

#[track_caller]
fn goes_on(root: &Root, name: &str) {
    let before = used(&tree(root, name));
    wait_until("everything to use processor time again", || {
        used(&before.iter().map(|(pid, _)| *pid).collect::<Vec<_>>()).iter().zip(&before).all(|(now, then)| now.1 > then.1)
    });
}

#[test]
fn everything_stands_still_and_goes_on() {
    let root = Root::new();
    start_restless(&root, "busy");
    let pids = tree(&root, "busy");
    let paused = root.json(&["pause", "busy", "--reason", "lunch", "--json"]);
    assert_eq!(paused["runtime_state"]["state"], "frozen", "{paused}");
    assert_eq!(root.status("busy"), ("paused".into(), "lunch".into()));
    stands_still(&root, "busy");
    root.run(&["resume", "busy"]).ok();
    goes_on(&root, "busy");
    assert_eq!(tree(&root, "busy"), pids, "the same processes");
    assert_eq!(root.runtime("busy")["state"]["state"], "running");
}

#[test]
fn everything_stands_still_where_only_signals_can_be_sent() {
    let root = Root::new();
    signals_only(&root);
    start_restless(&root, "busy");
    let pids = tree(&root, "busy");
    root.run(&["pause", "busy"]).ok();
    assert!(pids.iter().all(|pid| process::stat(*pid).expect("alive").state == 'T'), "stopped by signals");
    stands_still(&root, "busy");
    root.run(&["resume", "busy"]).ok();
    goes_on(&root, "busy");
    assert_eq!(tree(&root, "busy"), pids);
}

/// What a person had stopped stays so, and a shell does not notice that it stood still.
#[test]
fn jobs_of_a_shell_are_as_before() {
    let root = Root::new();
    signals_only(&root);
    root.start("shell", BASH);
    root.wait_screen("shell", "$");
    root.run(&["send", "shell", "--enter", "sleep 1000 & sleep 2000"]).ok();
    wait_until("both sleeps", || tree(&root, "shell").len() == 3);
    root.run(&["send", "shell", "--key", "ctrl-z"]).ok();
    root.wait_screen("shell", "Stopped");
    root.run(&["pause", "shell"]).ok();
    root.run(&["resume", "shell"]).ok();
    root.run(&["send", "shell", "--enter", "jobs; echo all-told"]).ok();
    root.wait_screen("shell", "all-told\n");
    let screen = root.screen("shell");
    assert!(screen.contains("Running") && screen.matches("Stopped").count() == 2, "as they were:\n{screen}");
}

/// Forks its successor and ends, as fast as it can: no look at a list of processes ever sees all of it.
#[test]
fn a_storm_of_forks_is_stopped() {
    let root = Root::new();
    std::fs::write(root.join("work/hop.sh"), "echo x >> hops\nsh hop.sh &\n").expect("writes");
    root.start_script("storm", "sh hop.sh; exec sleep 1000");
    let hops = root.join("work/hops");
    let size = || std::fs::metadata(&hops).map_or(0, |meta| meta.len());
    wait_until("a storm", || size() > 200);
    for round in 0..5 {
        root.run(&["pause", "storm"]).ok();
        let before = size();
        let_others_run();
        assert_eq!(size(), before, "round {round}: nothing forked any more");
        root.run(&["resume", "storm"]).ok();
        wait_until("the storm to go on", || size() > before);
    }
    root.run(&["kill", "storm"]).ok();
    let last = wait_for("the storm to be over", || {
        let before = size();
        let_others_run();
        (size() == before).then_some(before)
    });
    assert!(last > 0);
}

#[test]
fn paused_twice_or_resumed_while_active_is_refused() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    assert!(root.run(&["resume", "api"]).refused(4).contains("session api is active"));
    root.run(&["pause", "api"]).ok();
    assert!(root.run(&["pause", "api"]).refused(4).contains("session api is paused"));
    root.run(&["resume", "api"]).ok();
    assert!(root.run(&["resume", "api"]).refused(4).contains("session api is active"));
    assert!(root.run(&["pause", "nobody"]).refused(3).contains("nobody"));
    assert!(root.run(&["pause", "api", "-t", "cobol"]).refused(2).contains("not a terminal"));
    assert!(root.run(&["pause", "api", "-t", "python"]).refused(4).contains("no python that runs"));
    assert!(root.run(&["pause", "api", "--force"]).refused(2).contains("--hibernate"));
}

#[test]
fn input_is_refused_or_kept_until_it_goes_on() {
    let root = Root::new();
    root.start("cat", &["cat"]);
    root.run(&["send", "cat", "--enter", "before"]).ok();
    root.wait_screen("cat", "before\nbefore");
    root.run(&["pause", "cat"]).ok();
    let refusal = root.run(&["send", "cat", "--enter", "lost"]).refused(4);
    assert!(refusal.contains("sessions-tui resume cat") && refusal.contains("--queue-input"), "{refusal}");
    root.run(&["send", "cat", "--queue-input", "--enter", "kept-1"]).ok();
    // what was acknowledged survives the daemon
    root.kill_daemon();
    root.run(&["send", "cat", "--queue-input", "--enter", "kept-2"]).ok();
    assert!(!root.screen("cat").contains("kept"), "nothing is typed yet");
    let many = vec![b'x'; 1 << 20];
    assert!(root.run_with_input(&["send", "cat", "--queue-input", "-"], &many).refused(4).contains("1 MiB"));
    root.run(&["resume", "cat"]).ok();
    // once as the terminal echoes it, once from the program
    wait_until("both lines, in their order", || {
        let screen = root.screen("cat");
        let told: Vec<&str> = screen.lines().filter(|line| line.starts_with("kept")).collect();
        told.len() == 4 && told.iter().position(|line| *line == "kept-1") == Some(0) && told.last() == Some(&"kept-2")
    });
    assert!(!root.screen("cat").contains("lost"));

    root.run(&["pause", "cat", "--queue-input"]).ok();
    root.run(&["send", "cat", "--enter", "by-policy"]).ok();
    root.run(&["resume", "cat"]).ok();
    root.wait_screen("cat", "by-policy\nby-policy");
}

#[test]
fn whoever_attaches_sees_that_it_stands_and_goes_on_with_a_key() {
    let root = Root::new();
    root.start("cat", &["cat"]);
    root.run(&["send", "cat", "--enter", "hello"]).ok();
    root.wait_screen("cat", "hello\nhello");
    root.run(&["pause", "cat"]).ok();
    let mut term = Term::open(&root, 80, 24, &["attach", "cat"]);
    term.wait_for_text("cat is paused");
    term.wait_for_text("hello");
    term.send(b"x");
    term.send(b"\x1b[A");
    term.send(b"\r");
    root.wait_status("cat", "active");
    term.send(b"there\r");
    term.wait_for_text("there");
    assert!(!term.text().contains("is paused"), "{}", term.text());
    root.wait_screen("cat", "there\nthere");
    assert!(!root.screen("cat").contains('x'), "keys pressed while it stood were for nobody");
    // paused under somebody who looks
    root.run(&["pause", "cat"]).ok();
    term.wait_for_text("cat is paused");
    term.send(b"\x02d");
    assert_eq!(term.wait_exit(), 0);
    root.run(&["resume", "cat"]).ok();
}

/// Paused is paused, whatever happens to daemons; a later one goes on with it.
#[test]
fn promise_10_a_pause_survives_the_daemon() {
    let root = Root::new();
    start_restless(&root, "busy");
    root.run(&["pause", "busy", "--reason", "night"]).ok();
    for _ in 0..3 {
        root.kill_daemon();
        assert_eq!(root.status("busy"), ("paused".into(), "night".into()));
    }
    wait_until("it to be known as frozen", || root.runtime("busy")["state"]["state"] == "frozen");
    stands_still(&root, "busy");
    root.kill_daemon();
    root.run(&["resume", "busy"]).ok();
    goes_on(&root, "busy");
}

/// The daemon dies between deciding and doing: the next one does it.
#[test]
fn promise_5_what_was_decided_is_done_by_the_next_daemon() {
    let root = Root::new();
    start_restless(&root, "busy");
    root.run(&["daemon", "stop"]).ok();
    root.sql("UPDATE sessions SET status = 'paused', active_since = NULL");
    root.sql("UPDATE runtimes SET frozen_since = 1");
    root.run(&["ls"]).ok();
    wait_until("it to be frozen", || root.runtime("busy")["state"]["state"] == "frozen");
    stands_still(&root, "busy");
    root.run(&["daemon", "stop"]).ok();
    root.sql("UPDATE sessions SET status = 'active', active_since = 1");
    root.sql("UPDATE runtimes SET frozen_since = NULL");
    root.run(&["ls"]).ok();
    wait_until("it to run", || root.runtime("busy")["state"]["state"] == "running");
    goes_on(&root, "busy");
}

/// The clock of a call stands too, across daemons: its timeout does not fire, and the time does not count.
#[test]
fn a_call_in_the_middle_loses_no_time() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    let go = root.join("go");
    let code =
        format!("import os\nopen({:?}, 'w').close()\nwhile not os.path.exists({:?}): pass\nprint('through')", root.join("began"), go);
    let begun = root.json(&["exec", "-s", "api", "-l", "python", "--timeout", "4s", "--detach", "--json", &code]);
    let id = begun["execId"].as_str().expect("an id").to_owned();
    wait_until("the call to run", || root.join("began").exists());
    root.run(&["pause", "api"]).ok();
    assert!(root.run(&["exec", "-s", "api", "-l", "python", "1"]).refused(125).contains("is paused"));
    root.kill_daemon();
    // longer than its timeout, by another clock
    root.start_script("clock", "sleep 5");
    root.run(&["wait", "clock", "--for", "exit", "--timeout", "30s"]).ok();
    std::fs::write(&go, "").expect("writes");
    let result = root.json(&["result", &id, "--json"]);
    assert!(result["running"].as_bool().unwrap_or(false) || result["success"].is_null(), "it stands: {result}");
    root.run(&["resume", "api"]).ok();
    let result = root.json(&["result", &id, "--wait", "--json"]);
    assert_eq!((result["success"].as_bool(), result["stdout"].as_str()), (Some(true), Some("through\n")), "{result}");
    assert!(result["durationMs"].as_f64().expect("a number") < 4000.0, "{result}");
    // calls that follow find everything as it was
    assert_eq!(root.run(&["eval", "-s", "api", "-l", "python", "os.sep"]).ok().trim(), "'/'");
}

/// What stands still is not idle: policies wait for it.
#[test]
fn nothing_expires_while_it_stands_still() {
    let root = Root::new();
    root.config("[policy.runtime]\nidle_timeout = \"1s\"\n");
    root.json(&["new", "-d", "--json", "-n", "api", "--idle-timeout", "2s", "--", "cat"]);
    root.run(&["exec", "-s", "api", "-l", "bash", "x=1"]).ok();
    root.run(&["pause", "api"]).ok();
    root.start_script("clock", "sleep 4");
    root.run(&["wait", "clock", "--for", "exit", "--timeout", "30s"]).ok();
    let states: Vec<Value> = root.json(&["show", "api", "--json"])["runtimes"]
        .as_array()
        .expect("two")
        .iter()
        .map(|one| one["state"]["state"].clone())
        .collect();
    assert_eq!(states, ["frozen", "frozen"]);
    assert_eq!(root.status("api").0, "paused");
    root.run(&["resume", "api"]).ok();
    wait_until("its policy to go on", || root.status("api") == ("timeout".into(), "idle".into()));
}

#[test]
fn a_used_up_budget_stops_the_program_for_review() {
    let root = Root::new();
    let ready = format!("READY={}", root.join("busy").display());
    root.json(&["new", "-d", "--json", "-n", "busy", "--max-iterations", "1", "-e", &ready, "--", "bash", "-c", RESTLESS]);
    wait_until("all of it to run", || root.join("busy").exists() && tree(&root, "busy").len() >= 4);
    root.run(&["iterate", "busy"]).ok();
    assert_eq!(root.status("busy"), ("timeout".into(), "iterations".into()));
    stands_still(&root, "busy");
    let mut term = Term::open(&root, 100, 24, &["attach", "busy"]);
    term.wait_for_text("busy is paused");
    term.send(b"r");
    term.wait_for_text("--max-iterations");
    term.send(b"\x02d");
    assert_eq!(term.wait_exit(), 0);
    root.run(&["resume", "busy", "--max-iterations", "5"]).ok();
    goes_on(&root, "busy");
    // one that is used up again, and whose thread goes on with the next session
    for _ in 0..4 {
        root.run(&["iterate", "busy"]).ok();
    }
    stands_still(&root, "busy");
    root.run(&["new", "-d", "-n", "busy"]).ok();
    assert_eq!(root.status("busy").0, "active");
    goes_on(&root, "busy");
}

#[test]
fn one_terminal_of_a_session_or_a_whole_group() {
    let root = Root::new();
    root.json(&["new", "-d", "--json", "-n", "a", "--group", "crew", "--", "cat"]);
    root.run(&["group", "set", "crew", "--limit", "3"]).ok();
    root.json(&["new", "-d", "--json", "-n", "b", "--group", "crew", "--", "cat"]);
    root.start("c", &["cat"]);
    root.run(&["exec", "-s", "c", "-l", "bash", "x=7"]).ok();
    root.run(&["pause", "c", "-t", "bash"]).ok();
    let state = |name: &str, kind: &str| -> Value {
        let shown = root.json(&["show", name, "--json"]);
        let terminal = shown["terminals"].as_array().expect("terminals").iter().find(|one| one["kind"] == kind).expect("one").clone();
        let runtimes = shown["runtimes"].as_array().expect("runtimes").clone();
        runtimes.into_iter().find(|one| one["terminal"] == terminal["id"]).expect("a runtime")["state"]["state"].clone()
    };
    assert_eq!((state("c", "bash"), state("c", "terminal")), ("frozen".into(), "running".into()));
    assert_eq!(root.status("c").0, "active");
    assert!(root.run(&["pause", "c", "-t", "bash"]).refused(4).contains("paused already"));
    root.run(&["resume", "c", "-t", "bash"]).ok();
    assert_eq!(root.run(&["eval", "-s", "c", "-l", "bash", "echo $x"]).ok().trim(), "7");

    let said = root.run(&["pause", "--group", "crew", "--reason", "stop"]).ok();
    assert!(said.contains("a is paused") && said.contains("b is paused"), "{said}");
    assert_eq!((root.status("a").0.as_str(), root.status("b").0.as_str(), root.status("c").0.as_str()), ("paused", "paused", "active"));
    assert!(root.run(&["pause", "--group", "crew"]).ok().contains("no session matches"));
    root.run(&["resume", "--group", "crew"]).ok();
    assert_eq!((root.status("a").0.as_str(), root.status("b").0.as_str()), ("active", "active"));
}

/// A command inside a session may be the one that starts the daemon: that does not stand still with it.
#[test]
fn a_daemon_started_from_inside_a_session_is_no_part_of_it() {
    let root = Root::new();
    let binary = env!("CARGO_BIN_EXE_sessions-tui");
    let script = format!("while [ ! -e go ]; do sleep 0.05; done; {binary} ls > listed; echo all-listed; exec cat");
    root.start_script("inside", &script);
    root.run(&["daemon", "stop"]).ok();
    std::fs::write(root.join("work/go"), "").expect("writes");
    wait_until("a daemon", || !root.daemons().is_empty());
    root.wait_screen("inside", "all-listed");
    let daemon = root.daemon_pid();
    root.run(&["pause", "inside"]).ok();
    assert_eq!(root.status("inside").0, "paused");
    root.start("other", &["cat"]);
    root.run(&["resume", "inside"]).ok();
    root.wait_status("inside", "active");
    assert_eq!(root.daemon_pid(), daemon, "the same one all the time");
}
