//! Attached to an interpreter: a readable transcript of its calls, live and afterwards, and a line to type in.

use serde_json::json;
use shared::screen::Screen;

use crate::support::exec::Calls;
use crate::support::term::DETACH;
use crate::support::{Root, Term, process, wait_for, wait_until};

/// The number of the red of errors, as the screen layer shows it in a row.
const RED: &[u8] = b"31m";

/// The name of the session that holds this folder's runtimes.
#[track_caller]
fn name(calls: &mut Calls) -> String {
    calls.ask(json!({"request": "state"}))["name"].as_str().expect("a name").to_owned()
}

/// The first row that begins with `text`.
fn row(screen: &Screen, text: &str) -> Option<u16> {
    (0..screen.size().rows).find(|row| screen.row_text(*row).starts_with(text))
}

fn is_red(screen: &Screen, text: &str) -> bool {
    row(screen, text).is_some_and(|row| screen.row_ansi(row).windows(RED.len()).any(|part| part == RED))
}

/// The newest call of a language.
#[track_caller]
fn last_call(calls: &mut Calls, language: &str) -> serde_json::Value {
    calls.ask(json!({"request": "history", "language": language, "limit": 1}))[0].take()
}

#[test]
fn the_transcript_shows_code_output_errors_and_how_it_ended() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "x=1\necho before $x");
    let name = name(&mut calls);
    let term = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    term.wait_for_text("before 1");
    assert!(term.text().contains("❯ x=1\n· echo before $x\nbefore 1\n✓ "), "what was there comes first:\n{}", term.text());
    // live, while it runs
    let id = calls.detach("bash", "echo live; echo wrong >&2; while [ ! -e go ]; do sleep 0.02; done; (exit 3)");
    term.wait_for("the output of a call that still runs", |screen| {
        row(screen, "live") < row(screen, "wrong") && row(screen, "live").is_some()
    });
    term.wait_for("errors in red and output not", |screen| is_red(screen, "wrong") && !is_red(screen, "before 1"));
    std::fs::write(root.work().join("go"), "").expect("writes");
    calls.result(&id);
    term.wait_for("the line of its end, in red", |screen| is_red(screen, "✗ exit 3"));
    // values, tracebacks and colours; nothing printed acts on the window
    calls.exec("python", "1/0");
    calls.exec("python", "21 * 2");
    calls.exec("python", "print('\\x1b[2J\\x1b[5;5Hmoved \\x1b[32mgreen\\x1b[0m \\x07end')");
    let term = Term::open(&root, 80, 24, &["attach", &name, "-l", "python"]);
    term.wait_for_text("moved green ^Gend");
    term.wait_for("the traceback in red", |screen| is_red(screen, "ZeroDivisionError"));
    assert!(term.text().contains("❯ 21 * 2\n42\n✓ "), "{}", term.text());
    let shown = root.run(&["screen", &name, "-l", "python"]).ok();
    assert!(shown.contains("❯ 1/0") && shown.contains("✗ exit 1 · ZeroDivisionError"), "{shown}");
}

#[test]
fn a_line_that_is_typed_is_run_as_a_call_of_a_person() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("python", "x = 20");
    let name = name(&mut calls);
    let mut term = Term::open(&root, 80, 24, &["attach", &name, "-l", "python"]);
    term.wait_for_text("python ❯");
    term.send(b"x + 2");
    term.wait_for_text("❯ x + 2▏");
    term.send(b"\x7f1\r");
    term.wait_for_text("❯ x + 1\n");
    term.wait_for_text("\n21\n✓ ");
    let call = wait_for("the call in the history", || Some(last_call(&mut calls, "python")).filter(|call| call["stage"] == "finished"));
    assert_eq!((&call["command"], &call["author"], &call["verb"]), (&json!("x + 1"), &json!("human"), &json!("exec")));
    // several lines, characters of more bytes, and what is typed is there for others
    term.send("for y in 'ü'*2:\x1b\r    z = y\r".as_bytes());
    wait_until("its end", || {
        let call = last_call(&mut calls, "python");
        call["command"] == "for y in 'ü'*2:\n    z = y" && call["exitCode"] == 0
    });
    assert_eq!(calls.eval("python", "z")["json"], "ü");
    let started = root.events(&name).into_iter().rev().find(|event| event["type"] == "exec_started" && event["author"] == "human");
    assert!(started.is_some(), "told as a person's");
    // ctrl-c clears a line and runs nothing; an empty line is none
    let count = calls.ask(json!({"request": "history"})).as_array().map(Vec::len);
    term.send(b"1/0\x03\r\r");
    term.send(b"'after'\r");
    term.wait_for_text("❯ 'after'\n");
    wait_until("one more", || calls.ask(json!({"request": "history"})).as_array().map(Vec::len) == count.map(|count| count + 1));
    term.send(DETACH);
    assert_eq!(term.wait_exit(), 0);
    assert!(term.is_cooked() && term.text().contains("detached"), "{}", term.text());
    assert_eq!(calls.eval("python", "x")["json"], 20, "it is still there");
}

#[test]
fn ctrl_c_interrupts_what_runs_and_keeps_the_state() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "x=kept");
    let name = name(&mut calls);
    let term = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    term.wait_for_text("bash ❯");
    let id = calls.detach("bash", "touch begun; sleep 1000; echo never");
    wait_until("it to begin", || root.work().join("begun").exists());
    term.wait_for_text("bash …");
    term.send(b"\x03");
    let result = calls.result(&id);
    assert_eq!((result["exitCode"].as_i64(), result["interrupted"].as_bool(), &result["stdout"]), (Some(130), Some(true), &json!("")));
    term.wait_for_text("✗ exit 130");
    term.send(b"echo $x-$((40+2))\r");
    term.wait_for_text("kept-42");
}

#[test]
fn observers_watch_and_do_not_type() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "x=1");
    let name = name(&mut calls);
    let first = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    first.wait_for_text("bash ❯");
    let watching = Term::open(&root, 60, 12, &["attach", &name, "-l", "bash", "--read-only"]);
    watching.wait_for_text("watching only");
    watching.send(b"touch typed-by-an-observer\r");
    first.send(b"echo seen-$((40+2))\r");
    first.wait_for_text("seen-42");
    watching.wait_for_text("seen-42");
    assert_eq!(last_call(&mut calls, "bash")["command"], "echo seen-$((40+2))");
    assert!(!root.work().join("typed-by-an-observer").exists());
    // a person's take-over is immediate; the first one watches from now on
    let second = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    second.wait_for_text("bash ❯");
    first.wait_for_text("another client has control");
    second.send(b"echo second-$((40+2))\r");
    for term in [&first, &second, &watching] {
        term.wait_for_text("second-42");
    }
}

#[test]
fn detaching_and_dying_windows_leave_the_runtime_alone() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let pid = calls.prints("bash", "echo $BASHPID");
    let name = name(&mut calls);
    for end in 0..3 {
        let mut term = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
        term.wait_for_text("bash ❯");
        match end {
            0 => {
                term.send(DETACH);
                assert_eq!(term.wait_exit(), 0);
            }
            1 => term.close(),
            _ => process::kill(term.pid()),
        }
        wait_until("nobody to be attached", || root.session(&name)["clients"] == 0);
    }
    assert_eq!(calls.prints("bash", "echo $BASHPID"), pid);
    // a daemon that goes away under the window comes back with the same transcript, and takes lines
    let term = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    term.wait_for_text("bash ❯");
    root.kill_daemon();
    wait_until("the window to be attached again", || root.session(&name)["clients"] == 1);
    term.send(b"echo again-$((40+2))\r");
    term.wait_for_text("again-42");
    assert!(term.text().contains("❯ echo $BASHPID"), "{}", term.text());
}

#[test]
fn the_end_of_a_runtime_ends_the_window_with_a_sentence() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "true");
    let name = name(&mut calls);
    let mut term = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    term.wait_for_text("bash ❯");
    term.send(b"exit 3\r");
    term.wait_exit();
    assert!(term.is_cooked() && term.text().contains("exit code 3"), "{}", term.text());
    assert_eq!(last_call(&mut calls, "bash")["exitCode"], 3);
    let mut term = Term::open(&root, 80, 24, &["attach", &name, "-l", "node"]);
    assert_ne!(term.wait_exit(), 0);
    assert!(term.text().contains("node"), "says what is not there: {}", term.text());
}

#[test]
fn a_flood_is_followed_by_its_end_and_the_next_prompt() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.exec("bash", "true");
    let name = name(&mut calls);
    let term = Term::open(&root, 80, 24, &["attach", &name, "-l", "bash"]);
    term.wait_for_text("bash ❯");
    term.send(b"seq 300000; echo last\r");
    term.wait_for_text("300000\nlast\n✓ ");
    let shown = root.run(&["screen", &name, "-l", "bash", "--scrollback", "30"]).ok();
    assert!(shown.contains("\n299990\n") && shown.ends_with(" s\n") | shown.ends_with(" ms\n"), "{shown}");
}

#[test]
fn a_program_and_interpreters_of_one_session_are_told_apart() {
    let root = Root::new();
    root.start_script("api", "echo the program; exec sleep 1000");
    let mut calls = Calls::of_session(&root, "api");
    calls.exec("python", "print('the python')");
    calls.exec("bash", "echo the bash");
    root.wait_screen("api", "the program");
    assert!(!root.screen("api").contains("the python"), "without a language, the program");
    for (language, text) in [("python", "the python"), ("bash", "the bash")] {
        let shown = root.run(&["screen", "api", "-l", language]).ok();
        assert!(shown.contains(text) && !shown.contains("the program"), "{shown}");
    }
    root.run(&["screen", "api", "-l", "node"]).refused(4);
    // the transcript of an ended runtime is in its recording
    calls.exec("python", "import os; os._exit(0)");
    calls.exec("python", "print('the second python')");
    assert!(root.run(&["screen", "api", "-l", "python"]).ok().contains("the second python"));
    assert!(root.recordings_contain("the python"), "recorded like everything else");
}
