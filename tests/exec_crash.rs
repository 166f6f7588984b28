//! Calls to interpreters when things die: the daemon, the holder, the interpreter, all of them; and when there is too much of something.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::wire::Wire;
use crate::support::{Root, process, wait_for, wait_until};

/// Starts a call that says it has begun, and ends when the file `go` is there.
fn begin(root: &Root, after: &str) -> String {
    let code = format!("echo begun; touch begun; while [ ! -e go ]; do sleep 0.02; done; {after}");
    let id = root.run(&["exec", "--detach", &code]).ok().trim().to_owned();
    wait_until("the call to begin", || root.work().join("begun").exists());
    id
}

fn go(root: &Root) {
    std::fs::write(root.work().join("go"), "").expect("writes");
}

fn result(root: &Root, id: &str) -> Value {
    let output = root.run(&["result", id, "--wait", "--json"]);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn runtime_of(root: &Root, language: &str) -> Value {
    let states = root.json(&["state", "-l", language, "--json"]);
    states["runtimes"][0].clone()
}

/// The holder of this folder's only runtime.
fn holder(root: &Root) -> u32 {
    let name = root.json(&["state", "--json"])["name"].as_str().expect("a name").to_owned();
    let layers = root.json(&["show", &name, "--json"]);
    layers["runtimes"][0]["holder_pid"].as_u64().expect("a holder") as u32
}

#[test]
fn promise_5_the_result_of_a_call_that_ended_while_the_daemon_was_dead_is_there_afterwards() {
    let root = Root::new();
    root.run(&["exec", "export KEPT=1; variable=2"]).ok();
    let id = begin(&root, "echo out; echo err >&2; (exit 7)");
    root.kill_daemon();
    go(&root);
    wait_until("the call to end", || root.recordings_contain("\"exit\":7"));
    assert!(root.daemons().is_empty(), "nobody has started another daemon yet");
    let result = result(&root, &id);
    assert_eq!(
        (result["exitCode"].as_i64(), result["stdout"].as_str(), result["stderr"].as_str()),
        (Some(7), Some("begun\nout\n"), Some("err\n"))
    );
    assert_eq!(root.run(&["exec", "echo $KEPT $variable"]).ok(), "1 2\n", "the interpreter is the same");
}

#[test]
fn promise_5_a_call_goes_on_under_the_next_daemon_and_answers_its_first_client() {
    let root = Root::new();
    root.run(&["exec", "true"]).ok();
    let mut client =
        root.command(&["exec", "for n in 1 2 3; do echo $n; done; touch begun; while [ ! -e go ]; do sleep 0.02; done; echo 4; (exit 5)"]);
    let client = std::thread::spawn(move || client.output().expect("runs"));
    wait_until("the call to begin", || root.work().join("begun").exists());
    for _ in 0..3 {
        root.kill_daemon();
        root.run(&["ls"]).ok();
    }
    go(&root);
    let output = client.join().expect("ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n3\n4\n", "each line once");
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn promise_10_calls_that_waited_when_the_daemon_died_are_carried_out_in_order() {
    let root = Root::new();
    root.run(&["exec", "true"]).ok();
    let first = begin(&root, "echo 0 >> order");
    let others: Vec<String> =
        (1..=5).map(|number| root.run(&["exec", "--detach", &format!("echo {number} >> order")]).ok().trim().to_owned()).collect();
    root.kill_daemon();
    root.run(&["ls"]).ok();
    go(&root);
    for id in [&first].into_iter().chain(&others) {
        assert_eq!(result(&root, id)["exitCode"], 0, "{id}");
    }
    assert_eq!(std::fs::read_to_string(root.work().join("order")).expect("reads"), "0\n1\n2\n3\n4\n5\n");
}

#[test]
fn an_interpreter_that_is_killed_in_mid_call_says_so_and_the_next_call_has_its_state() {
    let root = Root::new();
    for (language, export, look) in [
        ("bash", "export CALLED=yes; cd /", "echo $CALLED; pwd"),
        ("python", "import os; os.environ['CALLED'] = 'yes'; os.chdir('/')", "import os; print(os.environ['CALLED']); print(os.getcwd())"),
        ("node", "process.env.CALLED = 'yes'; process.chdir('/')", "console.log(process.env.CALLED); console.log(process.cwd())"),
    ] {
        root.run(&["exec", "-l", language, export]).ok();
        let pid = runtime_of(&root, language)["pid"].as_u64().expect("a pid") as u32;
        let endless = if language == "bash" { "while :; do sleep 0.05; done" } else { "while (1): pass" };
        let endless = if language == "node" { "while (true) {}" } else { endless };
        let id = root.run(&["exec", "--detach", "-l", language, endless]).ok().trim().to_owned();
        wait_until("it runs", || runtime_of(&root, language)["busy"] == true);
        process::signal(pid, Signal::KILL);
        let killed = result(&root, &id);
        assert_eq!((killed["exitCode"].as_i64(), killed["ended"].as_bool()), (Some(137), Some(true)), "{language}: {killed}");
        assert!(killed["error"].as_str().expect("an error").contains("killed"), "{killed}");
        let output = root.run(&["exec", "-l", language, "--json", look]);
        let next: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!((next["stdout"].as_str(), next["restarted"].as_bool()), (Some("yes\n/\n"), Some(true)), "{language}: {next}");
        assert!(next["note"].as_str().expect("a note").contains("variables are gone"), "{next}");
    }
}

#[test]
fn a_holder_that_is_killed_takes_its_call_with_it_and_nothing_else() {
    let root = Root::new();
    root.run(&["exec", "export A=1; cd /"]).ok();
    root.run(&["exec", "sleep 1000 &"]).ok();
    root.run(&["exec", "--timeout", "30s", "cd - >/dev/null"]).ok();
    let id = begin(&root, "true");
    process::signal(holder(&root), Signal::KILL);
    let lost = result(&root, &id);
    assert_eq!((lost["success"].as_bool(), lost["exitCode"].as_i64()), (Some(false), None), "{lost}");
    assert!(lost["error"].as_str().expect("an error").contains("holder was killed"), "{lost}");
    let next = root.json(&["exec", "--json", "echo $A"]);
    assert_eq!((next["stdout"].as_str(), next["restarted"].as_bool()), (Some("1\n"), Some(true)), "{next}");
}

#[test]
fn promise_10_after_kill_9_of_everything_what_was_answered_is_there_and_the_rest_is_lost_and_says_so() {
    let root = Root::new();
    root.run(&["exec", "export A=1; cd /"]).ok();
    let done = root.json(&["exec", "--json", "echo done"])["execId"].as_str().expect("an id").to_owned();
    root.run(&["exec", "cd - >/dev/null"]).ok();
    let open = begin(&root, "true");
    let waiting = root.run(&["exec", "--detach", "echo never"]).ok().trim().to_owned();
    let holder = holder(&root);
    root.kill_daemon();
    process::signal(holder, Signal::KILL);
    wait_until("the holder to be gone", || !process::is_alive(holder));
    assert_eq!(result(&root, &done)["stdout"], "done\n");
    for id in [&open, &waiting] {
        let lost = result(&root, id);
        assert_eq!(lost["success"], false, "{lost}");
        assert!(lost["error"].is_string(), "{lost}");
    }
    assert_eq!(root.run(&["exec", "echo $A"]).ok(), "1\n");
}

/// A daemon that ends (a shutdown) may have stored the end of a runtime, and not yet those of its calls.
#[test]
fn promise_10_a_call_whose_runtime_s_end_alone_was_stored_is_settled_when_it_is_asked_for() {
    let root = Root::new();
    root.run(&["exec", "true"]).ok();
    let open = begin(&root, "true");
    let waiting = root.run(&["exec", "--detach", "echo never"]).ok().trim().to_owned();
    root.kill_daemon();
    for pid in root.processes() {
        process::kill(pid);
    }
    let state = r#"{"state":"exited","status":{"signal":1},"at":"2026-11-17T12:00:00Z"}"#;
    assert_eq!(root.sql(&format!("UPDATE runtimes SET is_live = 0, state = '{state}'")), 1);
    for id in [&open, &waiting] {
        let settled = result(&root, id);
        assert_eq!((settled["success"].as_bool(), settled["running"].as_bool()), (Some(false), None), "{settled}");
        assert!(settled["error"].is_string(), "{settled}");
    }
    assert_eq!(root.run(&["exec", "echo on"]).ok(), "on\n");
}

#[test]
fn two_hundred_calls_at_once_are_all_answered_in_order() {
    let root = Root::new();
    root.run(&["exec", "n=0"]).ok();
    let workspace = root.work().to_str().expect("Unicode").to_owned();
    let mut clients: Vec<Wire> = (0..4).map(|_| Wire::greeted(&root.socket())).collect();
    for number in 0..200u64 {
        let client = &mut clients[(number % 4) as usize];
        client.say(&json!({"id": number + 1, "request": "exec", "workspace": workspace, "code": "n=$((n+1)); echo $n"}));
    }
    let mut seen: Vec<u64> = Vec::new();
    for client in &mut clients {
        let mut answers: Vec<(u64, u64)> = Vec::new();
        for _ in 0..50 {
            let answer = client.line().expect("an answer");
            let number = answer["ok"]["stdout"].as_str().unwrap_or_else(|| panic!("{answer}")).trim().parse().expect("a number");
            answers.push((answer["id"].as_u64().expect("an id"), number));
        }
        answers.sort_unstable();
        assert!(answers.is_sorted_by_key(|(_, number)| *number), "a client's calls are carried out in their order: {answers:?}");
        seen.extend(answers.into_iter().map(|(_, number)| number));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=200).collect::<Vec<u64>>(), "each once");
}

#[test]
fn a_full_queue_refuses_with_a_sentence_and_loses_nothing() {
    let root = Root::new();
    root.config("[runtime]\nmax_queue = 2\n");
    root.run(&["exec", "true"]).ok();
    let first = begin(&root, "true");
    let waiting: Vec<String> = (0..2).map(|_| root.run(&["exec", "--detach", "true"]).ok().trim().to_owned()).collect();
    let refusal = root.run(&["exec", "true"]).refused(125);
    assert!(refusal.contains("2 calls wait"), "{refusal}");
    assert_eq!(root.run(&["exec", "-l", "python", "print(1)"]).ok(), "1\n", "another runtime is free");
    go(&root);
    for id in [&first].into_iter().chain(&waiting) {
        assert_eq!(result(&root, id)["success"], true);
    }
}

#[test]
fn processes_of_a_runtime_are_bounded() {
    let root = Root::new();
    root.config("[runtime]\nmax_processes = 60\n");
    // as far as a fork bomb would get, by somebody who cleans up
    let code = "import subprocess\nall = []\ntry:\n    while len(all) < 200: all.append(subprocess.Popen(['sleep', '1000']))\nexcept OSError: pass\n\
                print(len(all))\nfor one in all: one.kill(); one.wait()";
    let result = root.json(&["exec", "-l", "python", "--json", code]);
    let count: u32 = result["stdout"].as_str().expect("text").trim().parse().unwrap_or_else(|_| panic!("{result}"));
    assert!((1..=60).contains(&count), "{count} of 200 could be started");
    // it is not broken by that
    assert_eq!(root.run(&["exec", "echo fine"]).ok(), "fine\n");
}

#[test]
fn a_client_that_dies_changes_nothing() {
    let root = Root::new();
    root.run(&["exec", "true"]).ok();
    let mut client =
        root.command(&["exec", "echo $BASHPID > begun; while [ ! -e go ]; do sleep 0.02; done; echo done > done"]).spawn().expect("starts");
    wait_until("the call to begin", || root.work().join("begun").exists());
    client.kill().expect("killed");
    client.wait().expect("reaped");
    go(&root);
    wait_until("the call to end", || root.work().join("done").exists());
    let last = wait_for("its result", || {
        let history = root.json(&["history", "--json"]);
        let last = history.as_array().and_then(|all| all.last().cloned()).expect("a call");
        (last["stage"] == "finished").then_some(last)
    });
    assert_eq!(last["exitCode"], 0);
}

#[test]
fn promise_10_a_call_that_ran_before_it_was_stored_is_found_in_the_recording() {
    let root = Root::new();
    // twice: from then on it is known where calls go
    root.run(&["exec", "true"]).ok();
    let workspace = root.work().to_str().expect("Unicode").to_owned();
    let mut wire = Wire::greeted(&root.socket());
    wire.call(1, json!({"request": "exec", "workspace": workspace, "code": "true"}));
    let database = root.database();
    // nothing can be stored, but the call is on its way
    database.execute_batch("BEGIN IMMEDIATE").expect("locks");
    let code = "echo once >> ran; touch begun; while [ ! -e go ]; do sleep 0.02; done; echo unseen";
    wire.say(&json!({"id": 2, "request": "exec", "workspace": workspace, "code": code}));
    wait_until("the call to begin", || root.work().join("begun").exists());
    root.kill_daemon_at_once();
    database.execute_batch("ROLLBACK").expect("unlocks");
    let next = root.run(&["exec", "--detach", "echo next"]).ok().trim().to_owned();
    go(&root);
    assert_eq!(result(&root, &next)["stdout"], "next\n");
    let history = root.json(&["history", "--json"]);
    let found = history.as_array().expect("a list").iter().find(|entry| entry["command"] == code).expect("it is known");
    assert_eq!((found["stage"].as_str(), found["exitCode"].as_i64()), (Some("finished"), Some(0)));
    assert_eq!(result(&root, found["execId"].as_str().expect("an id"))["stdout"], "unseen\n");
    assert_eq!(std::fs::read_to_string(root.work().join("ran")).expect("reads"), "once\n");
}

#[test]
fn a_call_is_not_carried_out_twice_under_one_id() {
    let root = Root::new();
    let workspace = root.work().to_str().expect("Unicode").to_owned();
    root.run(&["exec", "true"]).ok();
    let mut wire = Wire::greeted(&root.socket());
    let id = "01a1e500-0000-7000-8000-000000000001";
    for number in 1..=20 {
        let answer = wire.call(number, json!({"request": "exec", "workspace": workspace, "exec": id, "code": "echo once >> ran"}));
        assert_eq!(answer["ok"].is_object(), number == 1, "{answer}");
    }
    assert_eq!(std::fs::read_to_string(root.work().join("ran")).expect("reads"), "once\n");
}

#[test]
fn a_driver_that_cannot_answer_any_more_is_ended_and_another_takes_its_place() {
    let root = Root::new();
    let garbage = "require('fs').writeSync(4, 'garbage garbage garbage'); console.log('heard')";
    assert_eq!(root.run(&["exec", "-l", "node", garbage]).ok(), "heard\n", "what is not an answer is passed over");
    let code = "require('fs').closeSync(4); require('fs').openSync('/dev/null', 'w'); await new Promise(() => setTimeout(() => 0, 1e9))";
    let broken = root.run(&["exec", "-l", "node", "--json", code]);
    let broken: Value = serde_json::from_str(&broken.stdout).unwrap_or_else(|_| panic!("{broken:?}"));
    assert_eq!((broken["success"].as_bool(), broken["ended"].as_bool()), (Some(false), Some(true)), "{broken}");
    assert_eq!(root.run(&["exec", "-l", "node", "console.log(1)"]).ok(), "1\n");
}

#[test]
fn nothing_that_was_given_to_a_call_stays_behind() {
    let root = Root::new();
    root.run(&["exec", "true"]).ok();
    let code = "touch begun; while [ ! -e go ]; do sleep 0.02; done; cat";
    let id = root.run(&["exec", "--detach", "--stdin", "a secret", code]).ok().trim().to_owned();
    wait_until("the call to begin", || root.work().join("begun").exists());
    root.kill_daemon();
    root.run(&["ls"]).ok();
    go(&root);
    assert_eq!(result(&root, &id)["stdout"], "a secret");
    let left = || -> Vec<String> {
        let names = std::fs::read_dir(root.join("run")).expect("a folder").filter_map(Result::ok);
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| !name.contains(".sock")).collect()
    };
    wait_until("files of calls to be gone", || left().is_empty());
    let holder = holder(&root);
    root.kill_daemon();
    process::signal(holder, Signal::KILL);
    root.run(&["ls"]).ok();
    assert!(left().is_empty(), "{:?}", left());
}

#[test]
fn a_call_that_meets_a_runtime_at_its_end_gets_the_next_one() {
    let root = Root::new();
    let workspace = root.work().to_str().expect("Unicode").to_owned();
    root.run(&["exec", "true"]).ok();
    let socket = root.socket();
    let callers: Vec<_> = (0..3)
        .map(|caller| {
            let (socket, workspace) = (socket.clone(), workspace.clone());
            std::thread::spawn(move || {
                let mut wire = Wire::greeted(&socket);
                for number in 1..=25u64 {
                    let (code, expected) = if caller == 0 { ("exit 0", "") } else { ("echo here", "here\n") };
                    let answer = wire.call(number, json!({"request": "exec", "workspace": workspace, "code": code}));
                    assert_eq!(answer["ok"]["stdout"], expected, "{answer}");
                    assert_eq!(answer["ok"]["success"], true, "{answer}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().expect("all are answered");
    }
}

#[test]
fn a_cancel_that_comes_before_the_code_has_begun_keeps_the_state_too() {
    let root = Root::new();
    let workspace = root.work().to_str().expect("Unicode").to_owned();
    root.run(&["exec", "kept=1"]).ok();
    let mut wire = Wire::greeted(&root.socket());
    for number in 0..10u64 {
        let begun = wire
            .call(number * 2 + 1, json!({"request": "exec", "workspace": workspace, "code": "while :; do :; done", "soft_limit_ms": 0}));
        let id = begun["ok"]["execId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
        let cancelled = wire.call(number * 2 + 2, json!({"request": "cancel", "exec": id}));
        assert_eq!((&cancelled["ok"]["interrupted"], &cancelled["ok"]["ended"]), (&json!(true), &Value::Null), "{cancelled}");
    }
    assert_eq!(root.run(&["exec", "echo $kept"]).ok(), "1\n");
}

#[test]
fn promise_10_a_result_that_was_told_but_not_stored_is_not_asked_for_again() {
    let root = Root::new();
    root.run(&["exec", "exit 4"]).refused(4);
    let workspace = root.work().to_str().expect("Unicode").to_owned();
    // the first of a fresh runtime: what it says of that survives too
    let open = begin(&root, "echo once >> ran");
    let mut wire = Wire::greeted(&root.socket());
    wire.say(&json!({"id": 1, "request": "exec", "workspace": workspace, "code": "echo second"}));
    let database = root.database();
    wait_until("the second to wait", || {
        let count = "SELECT count(*) FROM execs WHERE stage = 'open'";
        database.query_row(count, [], |row| row.get::<_, i64>(0)).expect("reads") == 2
    });
    // the end of the first cannot be stored; that of the second is, by our own hand, as if it had overtaken it
    database.execute_batch("BEGIN IMMEDIATE").expect("locks");
    go(&root);
    wait_until("both to end", || root.recordings_contain("second\n") && root.work().join("ran").exists());
    wait_until("their results to be recorded", || root.recorded_results() >= 2);
    root.kill_daemon_at_once();
    database
        .execute_batch("UPDATE execs SET stage = 'finished', exit_code = 0, took = 1, start_offset = 0, end_offset = 1000000 WHERE code = 'echo second'; COMMIT")
        .expect("stores");
    let first = result(&root, &open);
    assert_eq!((first["exitCode"].as_i64(), first["restarted"].as_bool()), (Some(0), Some(true)), "{first}");
    root.run(&["exec", "true"]).ok();
    assert_eq!(std::fs::read_to_string(root.work().join("ran")).expect("reads"), "once\n");
}

#[test]
fn an_interrupt_spares_what_earlier_calls_left_in_the_background() {
    let root = Root::new();
    let start = "import subprocess; job = subprocess.Popen(['sleep', '1000']); print(job.pid)";
    let job: u32 = root.run(&["exec", "-l", "python", start]).ok().trim().parse().expect("a pid");
    // start times are told in hundredths of a second: within one of them nobody can tell which call it was
    root.run(&["exec", "-l", "python", "import time; time.sleep(0.02)"]).ok();
    let stopped = root.run(&["exec", "-l", "python", "--timeout", "300ms", "subprocess.run(['sleep', '1000'])"]);
    assert_eq!(stopped.code, 124, "{stopped:?}");
    assert!(process::is_alive(job));
    assert_eq!(root.run(&["eval", "job.poll()"]).ok(), "None\n");
}

#[test]
fn what_an_interpreter_left_running_when_it_ended_is_ended_with_a_reset_and_a_kill() {
    let root = Root::new();
    for command in [&["reset", "-l", "bash"][..], &["kill", "work-runtime"]] {
        let output = root.run(&["exec", "sleep 1000 & echo $!; exit 0"]);
        let job: u32 = output.stdout.trim().parse().unwrap_or_else(|_| panic!("{output:?}"));
        assert!(process::is_alive(job), "it goes on");
        root.run(command).ok();
        wait_until("it to be ended", || !process::is_alive(job));
    }
}

#[test]
fn ctrl_c_in_a_waiting_client_interrupts_the_code() {
    let root = Root::new();
    root.run(&["exec", "kept=1"]).ok();
    let client = root.command(&["exec", "touch begun; sleep 1000"]).spawn().expect("starts");
    wait_until("the call to begin", || root.work().join("begun").exists());
    process::signal(client.id(), Signal::INT);
    let output = client.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cancelled"), "{output:?}");
    assert_eq!(root.run(&["exec", "echo $kept"]).ok(), "1\n");
}
