//! The command line as scripts use it.

use serde_json::Value;

use crate::support::{BASH, Root, wait_until};

fn names(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn c7_a_prompt_is_one_that_comes_after_what_was_typed() {
    let root = Root::new();
    std::fs::write(root.join("home/.bashrc"), "sleep 1\ntouch rc-done\n").expect("writes");
    root.start("slow", &["bash"]);
    root.run(&["wait", "slow", "--for", "prompt", "--timeout", "20s"]).ok();
    assert!(root.work().join("rc-done").exists(), "not while the start file runs");
    root.run(&["send", "slow", "--enter", "sleep 0.5; touch one"]).ok();
    root.run(&["wait", "slow", "--for", "prompt", "--timeout", "20s"]).ok();
    assert!(root.work().join("one").exists(), "not the prompt before the line");
    // typed before its first prompt
    root.start("early", &["bash"]);
    root.run(&["send", "early", "--enter", "sleep 0.5; touch two"]).ok();
    root.run(&["wait", "early", "--for", "prompt", "--timeout", "20s"]).ok();
    assert!(root.work().join("two").exists(), "nor the one that reads it");
}

#[test]
fn new_makes_names_layers_and_a_clean_environment() {
    let root = Root::new();
    let first = root.json(&[
        "new",
        "-d",
        "--json",
        "-e",
        "GREETING=hello world",
        "--size",
        "100x30",
        "--task",
        "try it",
        "--",
        "bash",
        "-c",
        "env > env; stty size >> env; pwd >> env; echo END >> env; exec sleep 1000",
    ]);
    assert_eq!(first["name"], "work", "named after the folder");
    assert_eq!(root.run(&["new", "-d", "--", "sleep", "1000"]).ok(), "work-2\n");
    let text = root.wait_file("work/env");
    wait_until("all of it", || root.wait_file("work/env").ends_with("END\n"));
    let text = if text.ends_with("END\n") { text } else { root.wait_file("work/env") };
    for line in ["GREETING=hello world", "TERM=xterm-256color", "SESSIONS_THREAD=work", "30 100"] {
        assert!(text.lines().any(|have| have == line), "{line} in {text}");
    }
    assert!(text.contains(&format!("SESSIONS_SESSION={}", first["id"].as_str().expect("an id"))));
    assert!(text.contains(&format!("SESSIONS_SOCKET={}", root.socket().display())));
    let said = root.run_with(
        &["new", "-d", "-n", "nested", "--", "bash", "-c", "env > nested; echo END >> nested"],
        &[("TMUX", "x"), ("CLAUDECODE", "1"), ("KEPT", "yes")],
    );
    said.ok();
    wait_until("its environment", || root.wait_file("work/nested").ends_with("END\n"));
    let text = root.wait_file("work/nested");
    assert!(text.contains("KEPT=yes") && !text.contains("TMUX=") && !text.contains("CLAUDECODE="), "{text}");

    let layers = root.json(&["show", "work", "--json"]);
    assert_eq!(layers["session"]["task"], "try it");
    assert_eq!(layers["terminals"][0]["kind"], "terminal");
    assert_eq!(layers["terminals"][0]["env_delta"][0][0], "GREETING");
    assert_eq!(layers["runtimes"][0]["state"]["state"], "running");
    assert_eq!(layers["leases"][0]["provider"], "local");
    assert!(layers["leases"][0]["instance"]["place"].is_string());
    let text = root.run(&["show", "work"]).ok();
    for word in ["thread work", "session ● active", "terminal terminal", "runtime running", "lease local"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn ls_lists_filters_and_fits() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    root.start_script("two", "exit 3");
    root.start_script("three", "exit 0");
    for name in ["two", "three"] {
        root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
    }
    assert_eq!(names(&root.json(&["ls", "--json"])), ["one", "two", "three"]);
    assert_eq!(names(&root.json(&["ls", "--json", "--status", "failed,active"])), ["one", "two"]);
    assert_eq!(names(&root.json(&["ls", "--json", "--limit", "1"])), ["three"]);
    let table = root.run(&["ls"]).ok();
    assert!(table.lines().next().is_some_and(|line| line.starts_with("NAME")), "{table}");
    assert!(table.contains("✗ failed: exit code 3") && !table.contains('\x1b'), "{table}");
    // a thread that ended is used again: the next session on it
    root.start("two", &["sleep", "1000"]);
    let layers = root.json(&["show", "two", "--json"]);
    assert_eq!((layers["thread"]["task_count"].as_u64(), layers["sessions"].as_array().map(Vec::len)), (Some(2), Some(2)));
    // what ended long ago is only in --all
    let database = rusqlite::Connection::open(root.join("state/sessions.db")).expect("opens");
    database.execute("UPDATE sessions SET ended_at = ended_at - 3 * 86400000000 WHERE ended_at IS NOT NULL", []).expect("updates");
    drop(database);
    assert_eq!(names(&root.json(&["ls", "--json"])), ["one", "two"]);
    assert!(names(&root.json(&["ls", "--json", "--all"])).contains(&"three".to_owned()));
}

#[test]
fn a_prompt_is_waited_for_after_what_was_sent() {
    let root = Root::new();
    let wait = |name: &str, timeout: &str| root.run(&["wait", name, "--for", "prompt", "--timeout", timeout]);
    for shell in ["bash", "zsh", "fish", "dash"] {
        root.start(shell, &[shell]);
        wait(shell, "20s").ok();
        wait(shell, "20s").ok();
        for n in 0..3 {
            // the prompt of before is not the one that is waited for
            root.run(&["send", shell, "--enter", &format!("sleep 0.3; echo do'n'e-{n}")]).ok();
            wait(shell, "20s").ok();
            assert!(root.screen(shell).contains(&format!("done-{n}")), "{shell}: {}", root.screen(shell));
        }
        // a line that is not entered, an empty one, one that is never over
        root.run(&["send", shell, "true"]).ok();
        wait(shell, "20s").ok();
        root.run(&["send", shell, "--enter", ""]).ok();
        wait(shell, "20s").ok();
        root.run(&["send", shell, "--enter", "cat"]).ok();
        wait(shell, "700ms").refused(1);
    }
    // another daemon knows from the recording
    root.run(&["send", "bash", "--key", "ctrl-d"]).ok();
    wait("bash", "20s").ok();
    root.kill_daemon();
    wait("bash", "20s").ok();
    wait("zsh", "300ms").refused(1);
    // a waiter that is there when it happens, and one when it ends
    root.run(&["send", "bash", "--enter", "exit 3"]).ok();
    root.wait_status("bash", "failed");
    assert!(wait("bash", "20s").refused(4).contains("no shell of it"), "it has ended");
    root.record("plan", &[]);
    wait("plan", "20s").refused(4);
    root.start_script("brief", "read line");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait("brief", "20s"));
        root.run(&["send", "brief", "--enter", "x"]).ok();
        waiter.join().expect("ends").refused(4);
    });
}

#[test]
fn send_screen_and_wait_do_what_scraping_did() {
    let root = Root::new();
    root.start("shell", BASH);
    root.run(&["send", "shell", "--enter", "echo", "a-$((1+1))"]).ok();
    root.wait_screen("shell", "\na-2");
    root.run(&["send", "shell", "--key", "ctrl-l"]).ok();
    root.run_with_input(&["send", "shell", "-"], b"echo 'from stdin'\r").ok();
    root.wait_screen("shell", "\nfrom stdin");
    root.run(&["send", "shell", "--enter", "printf '\\033[31mred\\033[0m\\n'; seq 1 100"]).ok();
    root.wait_screen("shell", "\n100");
    assert!(root.run(&["screen", "shell", "--scrollback", "200", "--ansi"]).ok().contains("\x1b[31mred"));
    let text = root.run(&["screen", "shell", "--scrollback", "200"]).ok();
    assert!(text.contains("\n1\n2\n3\n") && text.contains("red") && !text.contains('\x1b'), "{text}");
    let shot = root.json(&["screen", "shell", "--json"]);
    assert_eq!((shot["size"]["cols"].as_u64(), shot["rows"].as_array().map(Vec::len)), (Some(80), Some(24)));
    root.run(&["wait", "shell", "--for", "quiet=200ms", "--timeout", "20s"]).ok();
    root.run(&["wait", "shell", "--for", "text=never-ever", "--timeout", "100ms"]).refused(1);
    root.run(&["wait", "shell", "--for", "status=active"]).ok();
    root.run(&["send", "shell", "--enter", "exit 5"]).ok();
    let waited = root.json(&["wait", "shell", "--for", "exit", "--timeout", "20s", "--json"]);
    assert_eq!((waited["status"].as_str(), waited["exit"]["code"].as_i64()), (Some("failed"), Some(5)));
    root.run(&["wait", "shell", "--for", "status=failed"]).ok();
    root.run(&["wait", "shell", "--for", "status=active"]).refused(4);
    root.run(&["send", "shell", "x"]).refused(4);
    assert!(root.screen("shell").contains("exit 5"), "an ended session still has its screen");
}

#[test]
fn names_ids_and_prefixes_find_a_session() {
    let root = Root::new();
    let first = root.start("api-server", &["sleep", "1000"]);
    root.start("api-client", &["sleep", "1000"]);
    root.start("api", &["sleep", "1000"]);
    let id = first["id"].as_str().expect("an id");
    for word in ["api-server", "api-s", id, &id[..35]] {
        assert_eq!(root.session(word)["name"], "api-server", "{word}");
    }
    assert_eq!(root.session("api")["name"], "api", "an exact name is no prefix");
    let sentence = root.run(&["show", "api-"]).refused(3);
    assert!(sentence.contains("api-client") && sentence.contains("api-server"), "{sentence}");
    root.run(&["rename", "api-server", "backend"]).ok();
    assert_eq!(root.session("backend")["id"], first["id"]);
    root.run(&["show", "api-server"]).refused(3);
    root.run(&["rename", "backend", "api"]).refused(2);
    root.run(&["rename", "backend", "a b"]).refused(2);
}

#[test]
fn kill_ends_and_rm_takes_away() {
    let root = Root::new();
    root.start("gone", BASH);
    let recording = root.recording("gone");
    assert!(root.run(&["rm", "gone"]).refused(4).contains("kill gone"));
    assert!(root.run(&["kill", "gone"]).ok().contains("gone is ended"));
    root.run(&["kill", "gone"]).refused(4);
    assert!(recording.exists());
    root.run(&["rm", "gone"]).ok();
    assert!(!recording.exists());
    root.run(&["show", "gone"]).refused(3);
    root.start("gone", BASH);
}

#[test]
fn whatever_prints_can_print_json() {
    let root = Root::new();
    root.start("one", &["sleep", "1000"]);
    assert_eq!(root.json(&["detach", "one", "--json"])["detached"], 0);
    assert_eq!(root.json(&["rename", "one", "two", "--json"])["name"], "two");
    assert_eq!(root.json(&["kill", "two", "--json"])["status_reason"], "killed");
    assert_eq!(root.json(&["rm", "two", "--json"])["name"], "two");
    let pid = root.daemon_pid();
    assert_eq!(root.json(&["daemon", "start", "--json"])["pid"], pid);
    assert_ne!(root.json(&["daemon", "restart", "--json"])["pid"], pid);
    assert_eq!(root.json(&["daemon", "stop", "--json"])["going_on"], 0);
    assert_eq!(root.json(&["daemon", "stop", "--json"])["ended"], 0);
}

#[test]
fn events_tell_everything_once_also_across_kill_9() {
    let root = Root::new();
    root.start_script("quick", "exit 0");
    root.run(&["wait", "quick", "--for", "exit", "--timeout", "20s"]).ok();
    let kinds = |text: &str| -> Vec<String> {
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].as_str().expect("a type").to_owned()).collect()
    };
    let text = root.run(&["events", "quick", "--json"]).ok();
    assert_eq!(kinds(&text), ["start", "exit", "complete"]);
    let second: Value = serde_json::from_str(text.lines().nth(1).expect("a line")).expect("JSON");
    let since = second["seq"].to_string();
    assert_eq!(kinds(&root.run(&["events", "--since", &since, "--json"]).ok()), ["complete"]);
    assert!(root.run(&["events"]).ok().contains("quick"), "for people too");

    let path = root.join("followed");
    let file = std::fs::File::create(&path).expect("a file");
    let mut follower = root.command(&["events", "--follow", "--json"]).stdout(file).spawn().expect("starts");
    let followed = || std::fs::read_to_string(&path).expect("reads");
    wait_until("the past", || followed().lines().count() == 3);
    for round in 0..3 {
        root.start(&format!("round-{round}"), &["sleep", "1000"]);
        root.kill_daemon();
        root.run(&["kill", &format!("round-{round}")]).ok();
    }
    wait_until("all of it", || followed().matches("killed").count() == 3);
    let seqs: Vec<i64> =
        followed().lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].as_i64().expect("a number")).collect();
    let all: Vec<i64> = root
        .run(&["events", "--json"])
        .ok()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].as_i64().expect("a number"))
        .collect();
    assert_eq!(seqs, all, "nothing is missed, nothing comes twice");
    follower.kill().expect("a child of ours");
    follower.wait().expect("ends");
}
