//! What stays between calls to interpreters and for whom: state, history, reset, idle ends; folders, sessions and how those end.

use serde_json::{Value, json};

use crate::support::exec::Calls;
use crate::support::{Root, process, wait_for, wait_until};

#[track_caller]
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[track_caller]
fn pid(state: &Value) -> u32 {
    u32::try_from(state["pid"].as_u64().unwrap_or_else(|| panic!("no pid in {state}"))).expect("a pid")
}

/// A folder beside the usual one.
fn folder(root: &Root, name: &str) -> Value {
    let folder = root.join(name);
    std::fs::create_dir(&folder).expect("a folder");
    json!({"workspace": folder.to_str().expect("Unicode")})
}

#[test]
fn values_of_secret_looking_names_are_masked_unless_asked_for() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "export GITHUB_TOKEN=t0p API_KEY=k3y DB_PASSWORD=p4ss PLAIN=seen");
    let state = calls.state("bash");
    assert_eq!(state["env_vars"], json!({"GITHUB_TOKEN": "***", "API_KEY": "***", "DB_PASSWORD": "***", "PLAIN": "seen"}), "{state}");
    let revealed = calls.ask(json!({"request": "state", "language": "bash", "reveal": true}));
    assert_eq!(revealed["runtimes"][0]["env_vars"]["API_KEY"], "k3y");
    let shown = root.run(&["state"]).ok();
    assert!(shown.contains("GITHUB_TOKEN=***") && shown.contains("PLAIN=seen") && !shown.contains("t0p"), "{shown}");
    assert!(root.run(&["state", "--reveal"]).ok().contains("GITHUB_TOKEN=t0p"));
    assert_eq!(calls.prints("bash", "echo $API_KEY"), "k3y\n", "the code itself sees it");
}

#[test]
fn state_version_moves_with_every_change_and_with_nothing_else() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let mut last = 0;
    for code in ["x=1", "export A=1", "cd /", "unset A", "false"] {
        calls.exec("bash", code);
        let version = calls.state("bash")["state_version"].as_u64().expect("a number");
        assert!(version > last, "{code}: {version} after {last}");
        assert_eq!(calls.state("bash")["state_version"], version, "looking changes nothing");
        last = version;
    }
    calls.exec("python", "1");
    assert_eq!(calls.state("bash")["state_version"], last, "another language is another terminal");
    root.kill_daemon();
    let mut calls = Calls::new(&root);
    assert_eq!(calls.state("bash")["state_version"], last);
    calls.ask(json!({"request": "reset_runtime", "language": "bash"}));
    assert!(calls.state("bash")["state_version"].as_u64() > Some(last), "forgetting is a change");
}

#[test]
fn state_says_what_is_there() {
    let root = Root::new();
    let nothing = root.json(&["state", "--json"]);
    assert_eq!(nothing, json!({"session": null, "name": null, "runtimes": []}));
    assert!(root.run(&["state"]).ok().contains("no runtimes yet"));
    assert_eq!(root.json(&["history", "--json"]), json!([]));
    assert!(root.json(&["ls", "--all", "--json"]).as_array().is_some_and(Vec::is_empty), "looking opens nothing");
    let mut calls = Calls::new(&root);
    for number in 0..5 {
        calls.exec("bash", &format!("echo {number}"));
    }
    calls.exec("python", "x = 1");
    let states = calls.ask(json!({"request": "state", "history": 2}));
    assert_eq!((&states["runtimes"][0]["language"], &states["runtimes"][1]["language"]), (&json!("bash"), &json!("python")));
    let bash = &states["runtimes"][0];
    assert_eq!((bash["alive"].as_bool(), bash["busy"].as_bool()), (Some(true), Some(false)));
    assert!(process::command(pid(bash)).contains("bash"), "{bash}");
    assert!(bash["last_activity"].is_string(), "{bash}");
    let commands: Vec<&str> = bash["history"].as_array().expect("a list").iter().map(|entry| text(entry, "command")).collect();
    assert_eq!(commands, ["echo 3", "echo 4"], "the last ones, oldest first");
    let id = calls.detach("bash", "touch begun; while [ ! -e go ]; do sleep 0.02; done");
    wait_until("it to begin", || root.work().join("begun").exists());
    assert_eq!(calls.state("bash")["busy"], true, "told although it is busy");
    std::fs::write(root.work().join("go"), "").expect("writes");
    calls.result(&id);
    process::kill(pid(bash));
    calls.wait_ended("bash");
    let gone = calls.state("bash");
    assert!(gone.get("pid").is_none() && gone["names"] == json!([]), "{gone}");
    assert!(root.run(&["state", "-l", "bash"]).ok().contains("the next call starts it"));
}

#[test]
fn history_has_everything_in_its_order() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "echo one");
    calls.exec("bash", "(exit 3)");
    calls.eval("python", "1 + 1");
    calls.exec("bash", "exit 4");
    calls.ask(json!({"request": "reset_runtime"}));
    let long = format!("echo \"two\nlines\" # {}", "x".repeat(5000));
    calls.exec("bash", &long);
    let history = root.json(&["history", "--json"]);
    let entries: Vec<(&str, &str, &str, Option<i64>)> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| (text(entry, "language"), text(entry, "verb"), text(entry, "command"), entry["exitCode"].as_i64()))
        .collect();
    assert_eq!(
        entries,
        [
            ("bash", "exec", "echo one", Some(0)),
            ("bash", "exec", "(exit 3)", Some(3)),
            ("python", "eval", "1 + 1", Some(0)),
            ("bash", "exec", "exit 4", Some(4)),
            ("bash", "exec", &long, Some(0)),
        ]
    );
    for entry in history.as_array().expect("a list") {
        assert!(entry["duration"].as_f64().is_some_and(|ms| ms >= 0.0) && entry["startedAt"].is_string(), "{entry}");
        assert_eq!((text(entry, "stage"), text(entry, "author")), ("finished", "api"));
    }
    let last = root.json(&["history", "-l", "bash", "--limit", "1", "--json"]);
    assert_eq!((last.as_array().map(Vec::len), text(&last[0], "command")), (Some(1), long.as_str()));
    let shown = root.run(&["history"]).ok();
    assert_eq!(shown.lines().count(), 5, "a line each, however many it had: {shown}");
    assert!(shown.contains("✗ 3") && shown.contains("two ⏎ lines"), "{shown}");
}

#[test]
fn reset_gives_a_fresh_process_and_a_clean_state() {
    let root = Root::new();
    std::fs::create_dir(root.work().join("sub")).expect("a folder");
    let mut calls = Calls::new(&root);
    let nothing = calls.ask(json!({"request": "reset_runtime"}));
    assert_eq!((nothing["reset"].as_bool(), &nothing["languages"]), (Some(true), &json!([])));
    calls.exec("bash", "cd sub; export A=1; x=1");
    calls.exec("python", "x = 1");
    let (bash, python) = (pid(&calls.state("bash")), pid(&calls.state("python")));
    let said = root.run(&["reset", "-l", "bash"]).ok();
    assert!(said.contains("bash") && said.contains("clean"), "{said}");
    wait_until("the process to be gone", || !process::is_alive(bash));
    let clean = calls.state("bash");
    assert_eq!((&clean["env_vars"], &clean["names"]), (&json!({}), &json!([])));
    let fresh = calls.exec("bash", "echo [$x$A] $(basename $PWD)");
    assert_eq!(
        (text(&fresh, "stdout"), fresh["restarted"].as_bool(), fresh.get("note")),
        ("[] work\n", Some(false), None),
        "that was asked for"
    );
    assert_eq!(pid(&calls.state("python")), python, "only what was asked for");
    assert_eq!(calls.eval("python", "x")["value"], "1");
    // in the middle of a call: it ends, those behind it are not run, and both say so
    let running = calls.detach("bash", "export LATE=1; touch begun; sleep 1000");
    let waiting = calls.detach("bash", "touch never");
    wait_until("it to begin", || root.work().join("begun").exists());
    calls.ask(json!({"request": "reset_runtime"}));
    let ended = calls.result(&running);
    assert_eq!((ended["success"].as_bool(), ended["ended"].as_bool()), (Some(false), Some(true)), "{ended}");
    assert!(text(&ended, "error").contains("was ended while the call ran"), "{ended}");
    let cancelled = calls.result(&waiting);
    assert!(cancelled["success"] == false && text(&cancelled, "error").contains("nothing of it was done"), "{cancelled}");
    let fresh = calls.exec("bash", "echo [$LATE]; ls never");
    assert_eq!((text(&fresh, "stdout"), fresh["exitCode"].as_i64()), ("[]\n", Some(2)), "{fresh}");
    assert!(calls.exec("python", "x")["error"].is_string(), "all of them, this time");
}

#[test]
fn an_idle_runtime_ends_and_the_next_call_says_so() {
    let root = Root::new();
    root.config("[policy.runtime]\nidle_timeout = \"700ms\"\n");
    std::fs::create_dir(root.work().join("sub")).expect("a folder");
    let mut calls = Calls::new(&root);
    calls.exec("python", "import os; os.chdir('sub'); os.environ['KEPT'] = 'yes'; gone = 1");
    // one that works is not idle, however long that takes: here, until another has ended
    let busy = calls.detach("bash", "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo done");
    calls.wait_ended("python");
    assert_eq!(calls.state("bash")["alive"], true);
    let next = calls.exec("python", "import os; print(os.path.basename(os.getcwd()), os.environ['KEPT'], 'gone' in globals())");
    assert_eq!((text(&next, "stdout"), next["restarted"].as_bool()), ("sub yes False\n", Some(true)), "{next}");
    assert!(text(&next, "note").contains("idle") && text(&next, "note").contains("variables are gone"), "{next}");
    std::fs::write(root.work().join("go"), "").expect("writes");
    assert_eq!(calls.result(&busy)["stdout"], "done\n");
    calls.wait_ended("bash");
    assert!(calls.state("bash")["history"].as_array().is_some_and(|history| history.len() == 1));
    // and so does a person at a terminal
    let told = root.run(&["exec", "true"]);
    assert!(told.stderr.contains("idle"), "{told:?}");
}

#[test]
fn an_idle_runtime_ends_also_in_a_session_that_may_last_much_longer() {
    let root = Root::new();
    root.config("[policy.runtime]\nidle_timeout = \"700ms\"\n");
    // its own deadline is the one that is waited for before the first call
    root.record("long", &["--task", "long", "--max-duration", "10h", "--idle-timeout", "5h"]);
    let mut calls = Calls::of_session(&root, "long");
    calls.exec("bash", "true");
    calls.wait_ended("bash");
    assert_eq!(root.status("long").0, "active");
}

#[test]
fn folders_and_sessions_have_runtimes_of_their_own() {
    let root = Root::new();
    root.record("api", &[]);
    let other = folder(&root, "other");
    let mut places = [Calls::new(&root), Calls::to(&root, other), Calls::of_session(&root, "api")];
    for (number, calls) in (0..).zip(&mut places) {
        assert_eq!(calls.prints("bash", "echo [$x$E]; pwd > where"), "[]\n");
        calls.exec("bash", &format!("x={number}; export E=e{number}"));
        calls.exec("python", &format!("x = {number}"));
    }
    for (number, calls) in (0..).zip(&mut places) {
        assert_eq!(calls.prints("bash", "echo $x $E"), format!("{number} e{number}\n"));
        assert_eq!(calls.eval("python", "x")["json"], number);
        assert_eq!(calls.ask(json!({"request": "history"})).as_array().map(Vec::len), Some(5));
    }
    assert_eq!(root.run(&["exec", "-s", "api", "echo $x"]).ok(), "2\n");
    assert_eq!(root.run(&["exec", "-w", "../other", "echo $x"]).ok(), "1\n", "however the folder is written");
    std::os::unix::fs::symlink("other", root.join("link")).expect("a link");
    assert_eq!(root.run(&["exec", "-w", "../link/", "echo $x"]).ok(), "1\n");
    // by its id, and by the name of a folder's own session
    let session = text(&root.session("api"), "id").to_owned();
    assert_eq!(root.run(&["exec", "-s", &session, "echo $x"]).ok(), "2\n");
    let name = root.json(&["state", "--json"])["name"].as_str().expect("a name").to_owned();
    assert_eq!(root.run(&["exec", "-s", &name, "echo $x"]).ok(), "0\n");
    // a reset of one leaves the others alone
    root.run(&["reset", "-s", "api"]).ok();
    assert_eq!(places[0].prints("bash", "echo $x"), "0\n");
    assert_eq!(places[2].prints("bash", "echo [$x]"), "[]\n");
}

#[test]
fn different_runtimes_work_at_the_same_time_and_one_works_in_order() {
    let root = Root::new();
    let other = folder(&root, "other");
    let mut places = [Calls::new(&root), Calls::to(&root, other)];
    let top = root.path().to_str().expect("Unicode").to_owned();
    // each waits for the other two: they can only end if all run at once
    let mut ids: Vec<(usize, String)> = Vec::new();
    for (place, language, name) in [(0, "bash", "a"), (1, "bash", "b"), (0, "python", "c")] {
        let code = if language == "bash" {
            format!("cd {top}; touch {name}; until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.02; done; echo met")
        } else {
            format!(
                "import os, time\nos.chdir('{top}')\nopen('{name}', 'w')\nwhile not all(map(os.path.exists, 'abc')): time.sleep(0.02)\nprint('met')"
            )
        };
        ids.push((place, places[place].detach(language, &code)));
    }
    for (place, id) in ids {
        assert_eq!(places[place].result(&id)["stdout"], "met\n");
    }
    let calls = &mut places[0];
    let sent: Vec<u64> = (0..20).map(|number| calls.send(json!({"request": "exec", "code": format!("echo {number} >> order")}))).collect();
    for _ in sent {
        assert_eq!(calls.answer()["ok"]["exitCode"], 0);
    }
    let expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(calls.prints("bash", "cat order").lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_runtime_starts_with_its_first_callers_environment() {
    let root = Root::new();
    assert_eq!(root.run_with(&["exec", "echo $COLOR"], &[("COLOR", "red")]).ok(), "red\n");
    assert_eq!(root.run_with(&["exec", "echo $COLOR"], &[("COLOR", "blue")]).ok(), "red\n", "it is the same process");
    assert_eq!(root.json(&["state", "--json"])["runtimes"][0]["env_vars"], json!({}), "no change of the code's");
    let mut calls = Calls::new(&root);
    let seen = calls.prints("bash", "env");
    assert!(seen.contains("SESSIONS_SESSION=") && seen.contains("SESSIONS_SOCKET="), "{seen}");
    assert!(!seen.contains("SESSIONS_ROLE"), "{seen}");
}

#[test]
fn a_paused_session_refuses_calls_and_goes_on_where_it_was() {
    let root = Root::new();
    root.record("api", &[]);
    let mut calls = Calls::of_session(&root, "api");
    calls.exec("bash", "x=1");
    root.run(&["pause", "api"]).ok();
    let refusal = root.run(&["exec", "-s", "api", "echo no"]).refused(125);
    assert!(refusal.contains("session api is paused") && refusal.contains("resume api"), "{refusal}");
    assert_eq!(calls.state("bash")["alive"], true, "looking is allowed");
    root.run(&["resume", "api"]).ok();
    assert_eq!(calls.prints("bash", "echo $x"), "1\n");
    root.run(&["group", "set", "one", "--limit", "0"]).ok();
    root.run(&["new", "-d", "-n", "later", "--group", "one", "--queue", "--", "true"]).ok();
    let refusal = root.run(&["exec", "-s", "later", "true"]).refused(125);
    assert!(refusal.contains("queued"), "{refusal}");
}

#[test]
fn a_call_to_a_session_that_has_ended_opens_the_next_one() {
    let root = Root::new();
    root.record("api", &[]);
    let mut calls = Calls::of_session(&root, "api");
    let first = calls.exec("bash", "x=1; cd /; export A=1");
    let process = pid(&calls.state("bash"));
    root.run(&["complete", "api"]).ok();
    let second = calls.exec("bash", "echo $x $A $PWD");
    assert_ne!(second["session"], first["session"], "another session of the same thread");
    assert_eq!(
        (text(&second, "stdout"), text(&second, "name"), second["restarted"].as_bool()),
        ("1 1 /\n", "api", Some(false)),
        "{second}"
    );
    assert_eq!((pid(&calls.state("bash")), root.status("api").0.as_str()), (process, "active"));
    assert_eq!(calls.ask(json!({"request": "history"})).as_array().map(Vec::len), Some(2), "of the thread");
    // ended with its programs: the next one has folder and environment, and says what it has not
    root.run(&["kill", "api"]).ok();
    wait_until("its process to be gone", || !process::is_alive(process));
    let third = calls.exec("bash", "echo [$x] $A $PWD");
    assert_eq!((text(&third, "stdout"), third["restarted"].as_bool()), ("[] 1 /\n", Some(true)), "{third}");
    assert_ne!(third["session"], second["session"]);
}

#[test]
fn kill_rm_and_reset_of_a_session_end_its_runtimes() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    let mut calls = Calls::of_session(&root, "api");
    let start = |calls: &mut Calls| -> Vec<u32> {
        let job = calls.prints("bash", "cd /; export A=1; sleep 1000 & echo $!");
        calls.exec("python", "1");
        vec![job.trim().parse().expect("a pid"), pid(&calls.state("bash")), pid(&calls.state("python"))]
    };
    let processes = start(&mut calls);
    assert_eq!(root.kinds("api").iter().filter(|kind| *kind == "exec_finished").count(), 2);
    root.run(&["kill", "api"]).ok();
    wait_until("all of it to end", || processes.iter().all(|pid| !process::is_alive(*pid)));
    assert_eq!(root.status("api").0, "ended");
    let processes = start(&mut calls);
    root.run(&["reset", "api"]).ok();
    wait_until("all of it to end", || processes.iter().all(|pid| !process::is_alive(*pid)));
    let clean = calls.exec("bash", "echo [$A]; basename $PWD");
    assert_eq!((text(&clean, "stdout"), clean["restarted"].as_bool()), ("[]\nwork\n", Some(false)), "forgotten on purpose: {clean}");
    let id = text(&clean, "execId").to_owned();
    let running = calls.detach("bash", "echo $BASHPID > begun; sleep 1000");
    let shell: u32 = root.wait_file("work/begun").trim().parse().expect("a pid");
    root.run(&["kill", "api"]).ok();
    wait_until("the call to end", || !process::is_alive(shell));
    assert_eq!(calls.result(&running)["success"], false, "the call says how it ended");
    root.run(&["rm", "api"]).ok();
    calls.refused(json!({"request": "exec", "code": "true"}), "not_found");
    calls.refused(json!({"request": "result", "exec": id}), "not_found");
    wait_until("its recordings to be gone", || !root.recordings_contain("echo [$A]"));
    wait_until("its holders to be gone", || root.holders().is_empty());
}

#[test]
fn rm_of_a_folders_session_lets_it_start_anew() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let name = text(&calls.exec("bash", "export A=1"), "name").to_owned();
    root.run(&["kill", &name]).ok();
    root.run(&["rm", &name]).ok();
    assert_eq!(calls.ask(json!({"request": "history"})), json!([]));
    let fresh = calls.exec("bash", "echo [$A]");
    assert_eq!((text(&fresh, "stdout"), fresh["restarted"].as_bool()), ("[]\n", Some(false)), "{fresh}");
}

#[test]
fn a_workspace_that_is_gone_is_told() {
    let root = Root::new();
    let other = folder(&root, "other");
    let path = root.join("other");
    let mut calls = Calls::to(&root, other);
    std::fs::create_dir(path.join("sub")).expect("a folder");
    calls.exec("bash", "cd sub; export A=1");
    std::fs::remove_dir(path.join("sub")).expect("removed");
    // the shell is in it and goes on; the next one cannot be
    assert_eq!(calls.prints("bash", "echo $A"), "1\n");
    calls.exec("bash", "exit 0");
    let next = calls.exec("bash", "pwd; echo $A");
    assert_eq!(text(&next, "stdout"), format!("{}\n1\n", path.canonicalize().expect("there").display()), "{next}");
    assert!(text(&next, "note").contains("sub is gone"), "{next}");
    calls.exec("bash", "exit 0");
    std::fs::remove_dir_all(&path).expect("removed");
    calls.send(json!({"request": "exec", "code": "true"}));
    let answer = calls.answer();
    assert!(text(&answer["failure"], "message").contains("other"), "{answer}");
}

#[test]
fn five_hundred_small_calls_leave_nothing_behind() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "n=0");
    let holder = wait_for("the holder", || root.holders().first().copied());
    let daemon = root.daemon_pid();
    let descriptors = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let round = |calls: &mut Calls, count: u64| {
        for _ in 0..count {
            calls.send(json!({"request": "exec", "code": "n=$((n+1))", "stdin": "x"}));
            assert_eq!(calls.answer()["ok"]["exitCode"], 0);
        }
    };
    round(&mut calls, 50);
    let before = (descriptors(daemon), descriptors(holder));
    round(&mut calls, 450);
    wait_until("as many descriptors as before", || (descriptors(daemon), descriptors(holder)) == before);
    assert_eq!(calls.prints("bash", "echo $n"), "500\n");
    assert_eq!(root.holders().len(), 1);
    let left: Vec<_> =
        std::fs::read_dir(root.join("run")).expect("a folder").filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    assert!(left.len() < 10, "files of calls are removed: {left:?}");
}
