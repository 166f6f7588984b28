//! Which session a command acts on, and what it types or starts there.

use crate::support::{BASH, Root, Term};

#[test]
fn send_takes_options_anywhere_and_refuses_unknown_ones() {
    let root = Root::new();
    root.start("sh", BASH);
    root.wait_screen("sh", "$");
    root.run(&["send", "sh", "echo after-$((20+1))", "--enter"]).ok();
    root.wait_screen("sh", "after-21");
    root.run(&["send", "--enter", "sh", "echo", "before-$((20+2))"]).ok();
    root.wait_screen("sh", "before-22");
    root.run(&["send", "sh", "echo between-$((20+3))", "--key", "ctrl-a", "-e"]).ok();
    root.wait_screen("sh", "between-23");
    for wrong in [&["send", "sh", "x", "--entre"][..], &["send", "sh", "--yes", "x"], &["send", "sh", "-z"]] {
        root.run(wrong).refused(2);
    }
    root.run(&["send", "sh", "--enter", "--", "echo", "--enter", "-z"]).ok();
    root.wait_screen("sh", "\n--enter -z");
    let screen = root.screen("sh");
    assert!(!screen.contains("entre") && !screen.contains("--yes"), "nothing of a refused command was typed:\n{screen}");
    assert!(!screen.contains("21 --enter"), "{screen}");
}

#[test]
fn code_that_begins_with_a_dash_needs_two_dashes() {
    let root = Root::new();
    root.run(&["eval", "--jsno", "1"]).refused(2);
    root.run(&["exec", "--timout=5s", "true"]).refused(2);
    assert_eq!(root.run(&["eval", "-5"]).ok(), "-5\n");
    assert_eq!(root.run(&["eval", "--", "-len('abc')"]).ok(), "-3\n");
}

#[test]
fn destructive_commands_take_no_prefix() {
    let root = Root::new();
    root.start("catty", &["cat"]);
    root.run(&["exec", "-s", "catty", "x=1"]).ok();
    let id = root.session("catty")["id"].as_str().expect("an id").to_owned();
    for args in [
        &["kill", "cat"][..],
        &["rm", "cat"],
        &["forget", "cat"],
        &["reset", "cat"],
        &["reset", "-s", "cat"],
        &["kill", &id[..13]],
        &["forget", &id[..30]],
    ] {
        let said = root.run(args).refused(3);
        assert!(said.contains("did you mean catty"), "{args:?}: {said}");
        assert_eq!(root.status("catty").0, "active", "{args:?}");
    }
    assert_eq!(root.run(&["exec", "-s", "catty", "echo $x"]).ok(), "1\n", "its bash was not reset");
    // elsewhere a prefix is enough
    root.run(&["show", "cat"]).ok();
    root.run(&["send", "cat", "hello", "-e"]).ok();
    root.wait_screen("catty", "hello");
    // the whole id is as good as the name
    root.run(&["kill", &id]).ok();
    let said = root.run(&["rm", "catt"]).refused(3);
    assert!(said.contains("catty"), "{said}");
    root.run(&["rm", "catty"]).ok();
}

#[test]
fn a_webhook_is_removed_by_its_whole_id() {
    let root = Root::new();
    let added = root.json(&["webhook", "add", "http://localhost:9/hook", "--json"]);
    let id = added["id"].as_str().expect("an id").to_owned();
    let said = root.run(&["webhook", "rm", &id[..9]]).refused(3);
    assert!(said.contains(&id), "{said}");
    root.run(&["webhook", "log", &id[..9]]).ok();
    root.run(&["webhook", "rm", &id]).ok();
}

#[test]
fn a_mistyped_name_is_answered_with_the_one_that_was_meant() {
    let root = Root::new();
    root.record("api", &[]);
    for command in ["kill", "show", "pause"] {
        let said = root.run(&[command, "apii"]).refused(3);
        assert!(said.contains("did you mean api?"), "{command}: {said}");
    }
    let said = root.run(&["kill", "zzzzzzzz"]).refused(3);
    assert!(!said.contains("did you mean"), "{said}");
}

#[test]
fn a_command_that_would_not_run_is_refused() {
    let root = Root::new();
    root.start("api", &["cat"]);
    let marker = root.join("ran");
    let touch = marker.to_str().expect("Unicode").to_owned();
    let said = root.run(&["new", "-d", "-n", "api", "--task", "other", "--", "touch", &touch]).refused(4);
    assert!(said.contains("api is active") && said.contains("--attach-existing"), "{said}");
    assert!(root.session("api")["task"].is_null(), "a refused request changes nothing");
    let said = root.run(&["new", "-d", "-n", "api", "-e", "A=1"]).refused(4);
    assert!(said.contains("set A"), "{said}");
    // without a command nothing is left undone
    root.run(&["new", "-d", "-n", "api"]).ok();
    root.run(&["new", "-d", "-n", "api", "--attach-existing", "--", "touch", &touch]).ok();
    assert!(!marker.exists());
    // also with a window to attach to
    let mut term = Term::open(&root, 80, 24, &["new", "-n", "api", "--", "touch", &touch]);
    assert_eq!(term.wait_exit(), 4);
    root.run(&["pause", "api"]).ok();
    let said = root.run(&["new", "-d", "-n", "api", "--", "touch", &touch]).refused(4);
    assert!(said.contains("paused"), "{said}");
    root.run(&["resume", "api"]).ok();
    // a completed task whose program still runs
    root.run(&["complete", "api"]).ok();
    let said = root.run(&["new", "-d", "-n", "api", "--", "touch", &touch]).refused(4);
    assert!(said.contains("still running"), "{said}");
    assert_eq!(root.status("api").0, "completed");
    assert!(!marker.exists());
    root.run(&["kill", "api"]).ok();
    root.run(&["new", "-d", "-n", "api", "--", "touch", &touch]).ok();
    root.run(&["wait", "api", "--for", "exit"]).ok();
    assert!(marker.exists());
}

#[test]
fn a_relative_program_is_the_one_where_the_caller_stands() {
    use std::os::unix::fs::PermissionsExt;
    let root = Root::new();
    let elsewhere = root.join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    for (dir, word) in [(root.work(), "here"), (elsewhere.clone(), "there")] {
        let program = dir.join("prog");
        std::fs::write(&program, format!("#!/bin/sh\necho from-{word} $PWD\n")).expect("writes");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let elsewhere = elsewhere.to_str().expect("Unicode");
    root.run(&["new", "-d", "-n", "job", "-w", elsewhere, "--", "./prog"]).ok();
    root.run(&["wait", "job", "--for", "exit"]).ok();
    root.wait_screen("job", "from-there");
    // the directory is the one it was left in, the program is the caller's
    root.run(&["new", "-d", "-n", "job", "--", "./prog"]).ok();
    root.run(&["wait", "job", "--for", "exit"]).ok();
    root.wait_screen("job", "from-here");
    assert!(root.screen("job").replace('\n', "").contains(elsewhere), "{}", root.screen("job"));
}
