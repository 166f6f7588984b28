//! Files that change in the workspace of an active session: noticed, told once, listed; and what is not watched says why.

use serde_json::Value;

use crate::support::root::finish;
use crate::support::{Root, Term, process, wait_until};

/// What `files NAME changed` has: `created path`, sorted by path.
#[track_caller]
fn changed(root: &Root, name: &str, more: &[&str]) -> Vec<String> {
    let mut args = vec!["files", name, "changed", "--json"];
    args.extend_from_slice(more);
    let answer = root.json(&args);
    let mut files: Vec<(&str, &str)> = answer["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| (file["path"].as_str().expect("a path"), file["change"].as_str().expect("a change")))
        .collect();
    files.sort_unstable();
    files.into_iter().map(|(path, change)| format!("{change} {path}")).collect()
}

/// Sums of what all events of a session tell: created, changed, removed.
fn told(root: &Root, name: &str) -> [u64; 3] {
    let events = root.events(name);
    let told = events.iter().filter(|event| event["type"] == "file_changed").map(|event| &event["data"]);
    told.fold([0; 3], |sums, data| {
        let of = |key: &str| data[key].as_u64().expect("a number");
        [sums[0] + of("created"), sums[1] + of("changed"), sums[2] + of("removed")]
    })
}

#[track_caller]
fn state(root: &Root, name: &str) -> Value {
    root.json(&["show", name, "--json"])["watch"].clone()
}

fn write(root: &Root, file: &str, text: &str) {
    let path = root.work().join(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    std::fs::write(path, text).expect("writes");
}

/// Until what was written is older than any session that begins from now on, by the coarse clock of file systems.
fn grow_old(root: &Root) {
    let path = root.join("clock");
    let now = || {
        std::fs::write(&path, "").expect("writes");
        path.metadata().and_then(|found| found.modified()).expect("a time")
    };
    let then = now();
    let margin = std::time::Duration::from_millis(100);
    wait_until("file times to move on", || now().duration_since(then).is_ok_and(|passed| passed > margin));
}

#[test]
fn files_are_created_changed_and_removed_and_told_as_one_event() {
    let root = Root::new();
    write(&root, "old.txt", "before");
    write(&root, "src/gone.txt", "before");
    write(&root, ".gitignore", "*.log\n/target/\n");
    grow_old(&root);
    root.start_script("api", "echo up; exec cat");
    assert_eq!(changed(&root, "api", &[]), [""; 0], "what was there is no change");
    assert_eq!(state(&root, "api")["state"], "on");

    write(&root, "old.txt", "after");
    write(&root, "src/deep/new.txt", "new");
    write(&root, "noise.log", "ignored");
    write(&root, "target/debug/out", "ignored");
    write(&root, ".git/index", "ignored");
    std::fs::remove_file(root.work().join("src/gone.txt")).expect("goes");
    // an editor's way: a new file is renamed over the old one
    write(&root, "old.txt.new", "after that");
    std::fs::rename(root.work().join("old.txt.new"), root.work().join("old.txt")).expect("is renamed");
    assert_eq!(changed(&root, "api", &[]), ["changed old.txt", "created src/deep/new.txt", "removed src/gone.txt"]);
    assert_eq!(told(&root, "api"), [1, 1, 1]);
    let event = root.events("api").into_iter().rfind(|event| event["type"] == "file_changed").expect("an event");
    assert_eq!(event["author"], "daemon");
    assert_eq!(event["data"]["files"][0]["path"], "old.txt");

    // without being asked, a burst is told when it is over
    for n in 0..50 {
        write(&root, &format!("many/{n}"), "x");
    }
    wait_until("the burst to be told", || told(&root, "api")[0] == 51);
    let events = root.events("api");
    let last = events.iter().rfind(|event| event["type"] == "file_changed").expect("an event");
    assert!(last["data"]["files"].as_array().is_some_and(|files| files.len() <= 20), "only some are named: {last}");
    let said = root.run(&["files", "api", "changed", "--limit", "2"]).ok();
    assert!(
        said.contains("53 files changed in")
            && said.contains("; the newest 2 are shown, --limit shows more; ")
            && said.contains("folders watched"),
        "{said}"
    );
    // nothing of it is the session's own activity, and callers cannot tell such events
    root.run(&["event", "api", "file_changed"]).refused(2);
}

#[test]
fn since_the_last_command_means_the_shells_and_the_interpreters() {
    let root = Root::new();
    root.start("sh", &["bash"]);
    root.run(&["send", "sh", "--enter", "echo 1 > first"]).ok();
    root.run(&["wait", "sh", "--for", "attention=idle", "--timeout", "20s"]).ok();
    wait_until("the first file", || changed(&root, "sh", &[]) == ["created first"]);
    root.run(&["send", "sh", "--enter", "echo 2 > second; echo 3 > second; mkdir d; mv first d/"]).ok();
    // looked at when it is over: before its beginning has been read, what it did is no command's yet
    wait_until("the second command to be over", || {
        let text = root.run(&["history", "sh", "--json"]).ok();
        text.contains("mv first d/") && text.matches("exitCode").count() == 2
    });
    assert_eq!(changed(&root, "sh", &["--since-command"]), ["created d/first", "removed first", "created second"]);
    let answer = root.json(&["files", "sh", "changed", "--since-command", "--json"]);
    assert_eq!(answer["command"], "echo 2 > second; echo 3 > second; mkdir d; mv first d/");
    assert_eq!(changed(&root, "sh", &[]), ["created d/first", "created second"], "what came and went is not there");

    root.run(&["exec", "-s", "sh", "-l", "python", "open('by-python', 'w').write('x')"]).ok();
    assert_eq!(changed(&root, "sh", &["--since-command"]), ["created by-python"]);
    let said = root.run(&["files", "sh", "changed", "--since-command"]).ok();
    assert!(said.contains("1 file changed since `open('by-python', 'w').write('x')` began"), "{said}");
    assert_eq!(changed(&root, "sh", &["--since", "1d"]).len(), 3);
    // a folder's own interpreters are a session too
    root.run(&["exec", "echo > by-bash"]).ok();
    let name = root.json(&["state", "--json"])["name"].as_str().expect("a name").to_owned();
    assert_eq!(changed(&root, &name, &["--since-command"]), ["created by-bash"]);
}

#[test]
fn promise_10_what_changed_while_no_daemon_was_there_is_found() {
    let root = Root::new();
    write(&root, "kept", "x");
    write(&root, "edited", "x");
    grow_old(&root);
    root.start_script("api", "echo up; exec cat");
    write(&root, "before", "x");
    assert_eq!(changed(&root, "api", &[]), ["created before"]);
    grow_old(&root);
    root.kill_daemon();
    write(&root, "edited", "y");
    write(&root, "sub/meanwhile", "x");
    assert_eq!(changed(&root, "api", &[]), ["created before", "changed edited", "created sub/meanwhile"]);
    assert_eq!(told(&root, "api"), [2, 1, 0], "none twice");
    // and goes on
    write(&root, "afterwards", "x");
    std::fs::remove_file(root.work().join("kept")).expect("goes");
    assert_eq!(changed(&root, "api", &[]).len(), 5);
    assert_eq!(told(&root, "api"), [3, 1, 1]);
    // what was only pending when a daemon was stopped is told by it
    write(&root, "last", "x");
    root.run(&["daemon", "stop"]).ok();
    assert_eq!(told(&root, "api")[0], 4);
}

#[test]
fn only_active_sessions_are_told_also_those_that_end_at_once() {
    let root = Root::new();
    root.start_script("brief", "echo > by-brief");
    root.wait_status("brief", "completed");
    assert_eq!(changed(&root, "brief", &[]), ["created by-brief"], "it was over before anybody looked");
    grow_old(&root);

    root.start_script("one", "exec cat");
    root.record("two", &[]);
    write(&root, "both", "x");
    assert_eq!(changed(&root, "one", &[]), ["created both"]);
    assert_eq!(changed(&root, "two", &[]), ["created both"], "a record without a program has a workspace too");
    assert_eq!(changed(&root, "brief", &[]), ["created by-brief"]);
    root.run(&["pause", "one"]).ok();
    write(&root, "only-two", "x");
    let answer = root.json(&["files", "one", "changed", "--json"]);
    assert_eq!(answer["watch"], serde_json::json!({"state": "off", "why": "the session is paused"}));
    assert_eq!(changed(&root, "one", &[]), ["created both"]);
    assert_eq!(changed(&root, "two", &[]), ["created both", "created only-two"]);
    grow_old(&root);
    root.run(&["resume", "one"]).ok();
    write(&root, "again", "x");
    assert_eq!(changed(&root, "one", &[]), ["created again", "created both"]);
    root.run(&["complete", "two"]).ok();
    assert_eq!(changed(&root, "two", &[]).len(), 3, "again, both, only-two");
    // whoever joins, or wants it otherwise, has nobody told anything twice
    let before = told(&root, "one");
    grow_old(&root);
    root.json(&["new", "-d", "--json", "-n", "three", "--watch", "on", "--", "cat"]);
    root.record("one", &["--watch", "on"]);
    assert_eq!(changed(&root, "three", &[]), [""; 0]);
    assert_eq!(changed(&root, "one", &[]), ["created again", "created both"]);
    assert_eq!(told(&root, "one"), before);
    root.run(&["complete", "three"]).ok();
    write(&root, "late", "x");
    assert_eq!(changed(&root, "two", &[]).len(), 3, "it has ended");
    root.run(&["files", "nobody", "changed"]).refused(3);
    root.run(&["files", "one", "changed", "--since", "whenever"]).refused(2);
}

#[test]
fn huge_trees_and_homes_are_left_alone_unless_asked_for() {
    let root = Root::new();
    for n in 0..30 {
        write(&root, &format!("d{n}/f"), "x");
    }
    grow_old(&root);
    root.config("[watch]\nmax_folders = 20\n");
    root.start_script("auto", "exec cat");
    wait_until("the tree to be looked through", || {
        state(&root, "auto")["why"].as_str().is_some_and(|why| why.contains("more than 20 folders"))
    });
    write(&root, "unseen", "x");
    let said = root.run(&["files", "auto", "changed"]).ok();
    assert!(said.contains("nothing has changed") && said.contains("new --watch on"), "{said}");
    grow_old(&root);
    // asked for
    root.json(&["new", "-d", "--json", "-n", "on", "--watch", "on", "--", "cat"]);
    wait_until("it to be watched", || state(&root, "on")["state"] == "on");
    write(&root, "d3/seen", "x");
    assert_eq!(changed(&root, "on", &[]), ["created d3/seen"], "{}", state(&root, "on"));
    // also later, and the other way
    root.record("auto", &["--watch", "on"]);
    write(&root, "d4/seen", "x");
    assert!(changed(&root, "auto", &[]).contains(&"created d4/seen".to_owned()));
    root.record("auto", &["--watch", "off"]);
    write(&root, "d5/unseen", "x");
    assert!(!changed(&root, "auto", &[]).contains(&"created d5/unseen".to_owned()));
    assert!(state(&root, "auto")["why"].as_str().is_some_and(|why| why.contains("asked for")));
    // the settings count at once
    root.config("[watch]\nmax_folders = 100\nignore = [\"*.tmp\"]\n");
    wait_until("the settings to hold", || root.run(&["config", "show"]).ok().contains("*.tmp"));
    root.start_script("more", "exec cat");
    wait_until("the tree to be watched", || state(&root, "more")["state"] == "on");
    write(&root, "x.tmp", "x");
    write(&root, "x.txt", "x");
    assert_eq!(changed(&root, "more", &[]), ["created x.txt"]);
    let home = root.join("home");
    std::fs::create_dir_all(&home).expect("a folder");
    let home = home.to_str().expect("Unicode");
    root.json(&["new", "-d", "--json", "-n", "at-home", "-w", home, "--", "cat"]);
    wait_until("the home to be known", || state(&root, "at-home")["why"].as_str().is_some_and(|why| why.contains("home folder")));
    root.config("[watch]\nmode = \"off\"\n");
    wait_until("nothing to be watched", || state(&root, "more")["state"] == "off");
    root.run(&["new", "-d", "--watch", "sometimes", "--", "cat"]).refused(2);
    root.config("[watch]\nignore = [\"a[\"]\n");
    let said = root.run(&["config", "check"]).refused(1);
    assert!(said.contains("line 2") && said.contains("watch.ignore"), "{said}");
}

#[test]
fn promise_14_our_own_files_and_endless_writers_make_no_busy_loop() {
    let root = Root::new();
    // everything of ours lies in the workspace
    let here = root.path().to_str().expect("Unicode").to_owned();
    root.json(&[
        "new",
        "-d",
        "--json",
        "-n",
        "around",
        "-w",
        &here,
        "--watch",
        "on",
        "--",
        "bash",
        "-c",
        "while :; do echo line; done >> work/endless",
    ]);
    root.run(&["files", "around", "changed"]).ok();
    wait_until("the writer to be noticed", || changed(&root, "around", &[]).iter().any(|line| line.ends_with("work/endless")));
    let daemon = root.daemon_pid();
    let before = process::stat(daemon).expect("runs").cpu;
    let events = root.events("around").len();
    std::thread::sleep(std::time::Duration::from_secs(5));
    let used = process::stat(daemon).expect("runs").cpu - before;
    // ticks are hundredths of a second: five seconds are 500
    assert!(used < 150, "{used} of 500 ticks");
    assert!(root.events("around").len() <= events + 5, "few events: {:?}", root.events("around"));
    for file in changed(&root, "around", &[]) {
        assert!(!file.contains("state/") && !file.contains("run/"), "{file}");
    }
    root.run(&["kill", "around"]).ok();
}

#[test]
fn the_dashboard_shows_files_as_they_change() {
    let root = Root::new();
    root.start("sh", &["bash"]);
    let term = Term::open(&root, 100, 30, &[]);
    term.wait_for_text("▸ ● sh");
    term.send(b"i");
    term.wait_for_text("layers");
    term.send(b"\x1b[Z");
    term.wait_for_text("no file of the workspace has changed, since it began: 1 folder watched");
    write(&root, "src/shown.rs", "x");
    term.wait_for_text("created  src/shown.rs");
    root.run(&["send", "sh", "--enter", "echo > by-command"]).ok();
    term.wait_for_text("created  by-command");
    term.send(b"K");
    term.wait_for_text("since echo > by-command");
    term.wait_for("only that", |screen| {
        let text: Vec<String> = (0..30).map(|row| screen.row_text(row)).collect();
        text.iter().any(|row| row.contains("by-command")) && !text.iter().any(|row| row.contains("shown.rs"))
    });
    // enter plays from the moment of the change
    term.send(b"\r");
    term.wait_for("a player", |screen| (0..30).any(|row| screen.row_text(row).contains('⏸')));
    term.send(b"qq");
    term.wait_for_text("▸ ● sh");
}

#[test]
fn a_workspace_that_goes_away_is_said_and_nothing_else_breaks() {
    let root = Root::new();
    let above = root.work().join("above");
    let place = above.join("place");
    std::fs::create_dir_all(place.join("sub")).expect("folders");
    std::fs::write(place.join("sub/file"), "x").expect("a file");
    grow_old(&root);
    root.json(&["new", "-d", "--json", "-n", "gone", "-w", place.to_str().expect("Unicode"), "--", "cat"]);
    assert_eq!(changed(&root, "gone", &[]), [""; 0]);
    std::fs::remove_dir_all(&place).expect("goes");
    assert_eq!(changed(&root, "gone", &[]), ["removed sub/file"]);
    assert!(state(&root, "gone")["why"].as_str().is_some_and(|why| why.contains("gone")), "{}", state(&root, "gone"));
    // it comes back, also with the folder above it, and without being asked
    std::fs::create_dir_all(place.join("sub")).expect("folders");
    wait_until("it to be watched again", || state(&root, "gone")["state"] == "on");
    std::fs::write(place.join("sub/again"), "x").expect("a file");
    assert_eq!(changed(&root, "gone", &[]), ["created sub/again", "removed sub/file"]);
    std::fs::rename(&above, root.join("elsewhere")).expect("moves");
    wait_until("it to be gone", || !changed(&root, "gone", &[]).is_empty() && state(&root, "gone")["state"] == "off");
    std::fs::rename(root.join("elsewhere"), &above).expect("moves back");
    wait_until("it to be watched again", || state(&root, "gone")["state"] == "on");
    std::fs::write(place.join("later"), "x").expect("a file");
    assert!(changed(&root, "gone", &[]).contains(&"created later".to_owned()));
    // others are watched as ever
    root.start_script("here", "exec cat");
    write(&root, "file", "x");
    assert_eq!(changed(&root, "here", &[]), ["created file"]);
}

#[test]
fn the_systems_limit_on_watches_is_explained() {
    // the limit is of the whole user: it can be lowered for a user namespace of our own
    let root = Root::new();
    for n in 0..40 {
        write(&root, &format!("d{n}/f"), "x");
    }
    let mut probe = std::process::Command::new("unshare");
    probe.args(["-Ur", "sh", "-c", "echo 1 > /proc/sys/user/max_inotify_watches"]);
    probe.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    if !probe.output().is_ok_and(|output| output.status.success()) {
        eprintln!("no user namespaces here: the limit is not tried");
        return;
    }
    let mut inside = std::process::Command::new("unshare");
    let script = "echo 25 > /proc/sys/user/max_inotify_watches; \"$0\" new -d -n limited -- cat && \"$0\" files limited changed; \"$0\" doctor; \"$0\" kill limited; \"$0\" daemon stop";
    inside.args(["-Ur", "sh", "-c", script, env!("CARGO_BIN_EXE_sessions-tui")]).env_clear().envs(root.environment());
    inside
        .current_dir(root.work())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let said = finish(inside, b"", &["limited"]).stdout;
    assert!(said.contains("only ") && said.contains("limit on watched folders is reached"), "{said}");
    wait_until("the daemon to be gone", || root.daemons().is_empty());
}
