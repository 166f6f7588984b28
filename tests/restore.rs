//! After a restart of the machine: what was lost is started again, by itself or when somebody says so.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{BASH, Root, process, wait_until};

/// As a restart of the machine leaves it: no daemon, no holder, nothing of the runtime folder.
fn lose_everything(root: &Root) {
    let holders = root.holders();
    root.kill_daemon_at_once();
    for pid in holders {
        process::kill(pid);
    }
    for pid in root.processes() {
        process::kill(pid);
    }
    std::fs::remove_dir_all(root.join("run")).expect("the sockets go");
}

fn start_three(root: &Root) {
    std::fs::create_dir_all(root.join("work/deep")).expect("a folder");
    let mut args = vec![
        "new",
        "-d",
        "--json",
        "-n",
        "shell",
        "-e",
        "ASKED=yes",
        "--size",
        "91x21",
        "--task",
        "Mend it",
        "--max-iterations",
        "9",
        "--",
    ];
    args.extend_from_slice(BASH);
    root.json(&args);
    root.wait_screen("shell", "$");
    root.run(&["send", "shell", "--enter", "cd deep; echo said-before"]).ok();
    root.wait_screen("shell", "said-before\n");
    root.run(&["context", "shell", "--set", r#"{"next":"the test"}"#]).ok();
    root.start("cat", &["cat", "-"]);
    root.start("paused", &["cat"]);
    root.run(&["pause", "paused", "--reason", "night"]).ok();
    // the folder is known once it has been looked at
    wait_until("its folder to be stored", || {
        root.json(&["show", "shell", "--json"])["terminals"][0]["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("deep"))
    });
}

fn row(root: &Root, name: &str) -> Value {
    let rows = root.json(&["ls", "--json"]);
    rows.as_array().expect("a list").iter().find(|row| row["name"] == name).expect("a row").clone()
}

#[track_caller]
fn is_back(root: &Root, lost: &str) {
    root.wait_status("shell", "active");
    root.wait_screen("shell", "was lost; started again");
    let screen = root.screen("shell");
    assert!(screen.find("said-before").expect("above") < screen.find("was lost").expect("below"), "{screen}");
    root.run(&["send", "shell", "--enter", "echo at=$PWD asked=$ASKED size=$(stty size)"]).ok();
    root.wait_screen("shell", &format!("at={} asked=yes size=21 91", root.join("work/deep").display()));
    let session = root.session("shell");
    assert_ne!(session["id"], lost);
    assert_eq!((session["task"].as_str(), session["max_iterations"].as_u64()), (Some("Mend it"), Some(9)));
    assert_eq!(session["context"]["next"], "the test");
    assert_eq!(session["status_reason"], "restored");
    let told = root.events("shell").into_iter().find(|event| event["type"] == "restored").expect("told");
    assert_eq!(told["data"]["from"], lost);
    let before = root.json(&["show", lost, "--json"]);
    assert_eq!(before["session"]["status_reason"], "lost", "its record stays");
    assert!(root.run(&["export", lost, "--format", "text"]).ok().contains("said-before"), "and its recording");
}

#[test]
fn promise_10_lost_sessions_come_back_when_somebody_says_so() {
    let root = Root::new();
    start_three(&root);
    let lost = root.session("shell")["id"].as_str().expect("an id").to_owned();
    lose_everything(&root);
    for name in ["shell", "cat"] {
        assert_eq!(root.status(name), ("failed".into(), "lost".into()));
        assert_eq!(row(&root, name)["restorable"], true);
    }
    let listed = root.run(&["ls"]).ok();
    assert!(listed.contains("restorable"), "{listed}");
    let doctor = root.run(&["doctor"]).refused_or_printed();
    let about: Vec<&str> = doctor.lines().skip_while(|line| !line.contains("– restore")).take(2).collect();
    assert!(about.len() == 2 && about[0].contains("lost") && about[1].ends_with("→ sessions-tui restore"), "{doctor}");
    // what was paused had nothing to lose but its processes
    assert_eq!(root.status("paused"), ("paused".into(), "night".into()));
    assert_eq!(root.runtime("paused")["state"]["state"], "hibernated");
    let log = std::fs::read_to_string(root.join("state/daemon.log")).expect("a log");
    assert!(log.contains(&lost) && log.contains("last activity"), "{log}");

    let said = root.run(&["restore"]).ok();
    assert!(said.contains("shell was started again") && said.contains("cat was started again"), "{said}");
    is_back(&root, &lost);
    assert!(root.run(&["restore"]).ok().contains("nothing to restore"));
    assert!(root.run(&["restore", "cat"]).refused(4).contains("only what was lost"));
    assert!(root.run(&["restore", &lost]).refused(1).contains("could not be restored"));
    root.run(&["send", "cat", "--enter", "hello"]).ok();
    root.wait_screen("cat", "hello\nhello");
    root.run(&["resume", "paused"]).ok();
    root.wait_screen("paused", "started again");
}

#[test]
fn lost_sessions_come_back_by_themselves() {
    let root = Root::new();
    root.config("restore = \"auto\"\n[pause]\nrestore_at_once = 1\n");
    start_three(&root);
    let lost = root.session("shell")["id"].as_str().expect("an id").to_owned();
    lose_everything(&root);
    is_back(&root, &lost);
    root.wait_status("cat", "active");
    assert_eq!(root.status("paused").0, "paused", "what was paused stays so");
    // and once more: everything that was there before is still above
    lose_everything(&root);
    root.wait_status("cat", "active");
    root.wait_screen("shell", "was lost; started again");
}

/// The daemon is killed while it restores: the next one goes on with it.
/// As a service manager does it: the daemon first, then everything else is asked to end.
#[test]
fn promise_10_what_a_shutdown_ended_comes_back_too() {
    let root = Root::new();
    root.config("restore = \"auto\"\n");
    start_three(&root);
    let lost = root.session("shell")["id"].as_str().expect("an id").to_owned();
    let daemon = root.daemon_pid();
    process::signal(daemon, Signal::TERM);
    wait_until("the daemon to be gone", || !process::is_alive(daemon));
    for pid in root.processes() {
        process::signal(pid, Signal::TERM);
    }
    wait_until("all of them to be gone", || root.processes().is_empty());
    std::fs::remove_dir_all(root.join("run")).expect("the sockets go");
    is_back(&root, &lost);
    root.wait_status("cat", "active");
    assert_eq!(root.status("paused"), ("paused".into(), "night".into()), "what was paused stays so");
}

#[test]
fn promise_10_restoring_survives_the_daemon() {
    let root = Root::new();
    root.config("restore = \"auto\"\n[pause]\nrestore_at_once = 1\n");
    let names: Vec<String> = (0..6).map(|n| format!("cat-{n}")).collect();
    for name in &names {
        root.start(name, &["cat"]);
    }
    lose_everything(&root);
    for _ in 0..4 {
        let mut client = root.command(&["ls"]).spawn().expect("starts");
        client.wait().expect("ends");
        root.kill_daemon_at_once();
    }
    for name in &names {
        root.wait_status(name, "active");
        wait_until(&format!("{name} to run"), || {
            let pid = root.runtime(name)["state"]["pid"].as_u64();
            pid.is_some_and(|pid| process::is_alive(u32::try_from(pid).expect("a pid")))
        });
    }
    assert_eq!(root.holders().len(), names.len(), "each of them once");
}

#[test]
fn never_means_never_and_what_cannot_be_says_why() {
    let root = Root::new();
    root.config("restore = \"never\"\n");
    root.start("cat", &["cat"]);
    lose_everything(&root);
    assert_eq!(root.status("cat"), ("failed".into(), "lost".into()));
    assert_eq!(row(&root, "cat")["restorable"], false);
    assert!(root.run(&["restore"]).ok().contains("nothing to restore"));
    // asked for by name it is done all the same
    root.run(&["restore", "cat"]).ok();
    root.wait_status("cat", "active");

    root.config("restore = \"auto\"\n");
    root.run(&["daemon", "restart"]).ok();
    let folder = root.join("gone");
    std::fs::create_dir(&folder).expect("a folder");
    root.json(&[
        "new",
        "-d",
        "--json",
        "-n",
        "homeless",
        "-w",
        folder.to_str().expect("text"),
        "--",
        "sh",
        "-c",
        "echo last-words; exec cat",
    ]);
    root.wait_screen("homeless", "last-words");
    std::fs::remove_dir(&folder).expect("goes");
    lose_everything(&root);
    wait_until("it to be told", || root.kinds("homeless").contains(&"restore_failed".to_owned()));
    let session = root.session("homeless");
    assert_eq!((session["status"].as_str(), session["status_reason"].as_str()), (Some("failed"), Some("lost")));
    let error = session["error"].as_str().expect("a reason");
    assert!(error.contains("could not be restored") && error.contains("is gone"), "{error}");
    assert!(root.screen("homeless").contains("last-words"), "its recording stays");
    root.wait_status("cat", "active");
}
