//! Doing something with sessions: alone, with several, taken back, refused.

use std::os::unix::fs::PermissionsExt;

use super::{ESC, find, open, quit, remembered, wait_cursor};
use crate::support::{BASH, Root, Term, process, wait_until};

/// Puts the cursor on a session, by the keys that are always there.
#[track_caller]
fn go_to(term: &Term, name: &str) {
    term.send(b"g");
    term.wait_for("the first row", |screen| screen.row_text(2).starts_with('▸'));
    for _ in 0..20 {
        if term.look(|screen| super::cursor_row(screen).is_some_and(|row| row.contains(name))) {
            return;
        }
        let before = term.look(super::cursor_name);
        term.send(b"j");
        term.wait_for("another row", |screen| super::cursor_name(screen) != before);
    }
    panic!("{name} is not in the list:\n{}", term.text());
}

fn sleepers(root: &Root, names: &[&str]) -> Term {
    for name in names {
        root.start(name, &["sleep", "1000"]);
    }
    let term = open(root);
    term.wait_for_text(&format!("{} active", names.len()));
    term.send(b"S");
    term.wait_for_text("sorted by name");
    term
}

#[test]
fn several_at_once_are_paused_resumed_undone_and_ended_after_a_question() {
    let root = Root::new();
    let mut term = sleepers(&root, &["a1", "b2", "c3"]);
    term.send(b"g  ");
    term.wait_for_text("2 selected");
    term.send(b"p");
    term.wait_for_text("2 sessions paused");
    assert_eq!([root.status("a1").0, root.status("b2").0, root.status("c3").0], ["paused", "paused", "active"]);
    term.wait_for_text("2 paused");
    assert!(!term.text().contains("selected"), "done is done");
    term.send(b"u");
    term.wait_for_text("3 active");
    assert_eq!(root.status("a1").0, "active");
    // all that are shown
    term.send(b"A");
    term.wait_for_text("3 selected");
    term.send(b"p");
    term.wait_for_text("3 sessions paused");
    term.wait_for_text("3 paused");
    term.send(b"A");
    term.wait_for_text("3 selected");
    term.send(b"p");
    term.wait_for_text("3 sessions resumed");
    term.wait_for_text("3 active");
    term.send(b"g  ");
    term.wait_for_text("2 selected");
    term.send(b"x");
    term.wait_for_text("End 2 sessions?");
    term.send(b"n");
    term.wait_for_text("nothing was done");
    assert_eq!(root.status("a1").0, "active");
    term.wait_for_text("2 selected");
    term.send(b"x");
    term.wait_for_text("End 2 sessions?");
    term.send(b"y");
    term.wait_for_text("2 sessions ended");
    term.wait_for_text("1 active 2 ended");
    assert_eq!(root.status("c3").0, "active");
    // of what has ended and what has not, only what can be removed is
    term.send(b"A");
    term.wait_for_text("3 selected");
    term.send(b"D");
    term.wait_for_text("Remove 2 sessions for good");
    term.send(b"y");
    term.wait_for("they are gone", |screen| find(screen, " a1 ").is_none() && find(screen, " b2 ").is_none());
    assert_eq!(root.json(&["ls", "--all", "--json"]).as_array().map(Vec::len), Some(1));
    quit(&mut term);
}

#[test]
fn undoing_takes_back_one_change_after_the_other() {
    let root = Root::new();
    let mut term = sleepers(&root, &["api"]);
    term.send(b"R");
    term.wait_for_text("new name of api: api");
    term.send(b"\x15web\r");
    term.wait_for_text("api is web now");
    wait_cursor(&term, "web");
    // quicker than the row can be new
    term.send(b"puu");
    // which of the two is told last is not said
    wait_cursor(&term, "api");
    wait_until("resumed", || root.status("api").0 == "active");
    term.send(b"u");
    term.wait_for_text("there is nothing to undo");
    // a name that cannot be is said, and stays readable
    root.start("taken", &["sleep", "1000"]);
    term.wait_for_text("2 active");
    go_to(&term, "api");
    term.send(b"R");
    term.wait_for_text("new name of api: api");
    term.send(b"\x15taken\r");
    // what was typed is there to be corrected, with the reason
    term.wait_for("the refusal beside it", |screen| {
        let last = screen.row_text(29);
        last.contains("new name of api: taken") && last.contains("already")
    });
    term.send(ESC);
    term.wait_for("no prompt", |screen| find(screen, "new name").is_none());
    term.send(b"m");
    term.wait_for("the refusal", |screen| {
        (0..30).any(|row| screen.row_text(row).contains("taken") && screen.row_text(row).contains("name"))
    });
    term.send(b"q");
    wait_cursor(&term, "api");
    // what was refused is not there to be undone
    term.send(b"u");
    term.wait_for_text("there is nothing to undo");
    assert_eq!(root.status("api").0, "active");
    quit(&mut term);
}

#[test]
fn a_task_is_completed_or_failed_with_words_and_a_line_is_sent() {
    let root = Root::new();
    root.record("one", &["--task", "First"]);
    root.record("two", &["--task", "Second"]);
    root.start("shell", BASH);
    let mut term = open(&root);
    term.wait_for_text("3 active");
    go_to(&term, "one");
    term.send(b"c");
    term.wait_for_text("result of one (may be empty):");
    term.send(b"all done\r");
    term.wait_for_text("one completed");
    assert_eq!((root.status("one").0, root.session("one")["result"].clone()), ("completed".into(), "all done".into()));
    go_to(&term, "two");
    term.send(b"f");
    term.wait_for_text("what went wrong with two:");
    term.send(b"\r");
    term.wait_for_text("say what went wrong, or esc");
    term.send(b"no idea\r");
    term.wait_for_text("two failed, as said");
    assert_eq!((root.status("two").0, root.session("two")["error"].clone()), ("failed".into(), "no idea".into()));
    go_to(&term, "shell");
    term.send(b"s");
    term.wait_for_text("send to shell:");
    term.send(b"echo sent-$((40+2))\r");
    term.wait_for_text("shell got the line");
    root.wait_screen("shell", "sent-42");
    term.wait_for_text("sent-42");
    assert_eq!(root.session("shell")["clients"], 0);
    // whoever has ended is told so
    go_to(&term, "one");
    term.send(b"s");
    term.wait_for_text("one has ended: no program reads what is typed");
    term.send(b"p");
    term.wait_for_text("it can neither be paused nor resumed");
    // a whole window for one that is over is its recording, if there is any
    term.send(b"\r");
    term.wait_for("a sentence in the last line", |screen| {
        let last = screen.row_text(screen.size().rows - 1);
        last.contains("record") && !last.contains("opening")
    });
    quit(&mut term);
}

#[test]
fn code_is_run_and_remembered_and_what_is_reset_starts_clean() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.send(b"!");
    term.wait_for_text("bash in api>");
    term.send(b"echo first-$((40+2))\r");
    term.wait_for_text("first-42");
    term.send(b"!");
    term.wait_for_text("bash in api>");
    term.send(b"\t");
    term.wait_for_text("python in api>");
    term.send(b"print(6 * 7)\r");
    term.wait_for_text("done: 42");
    term.send(b"!");
    term.wait_for_text("bash in api>");
    term.send(b"exit_code() { return 3; }; exit_code\r");
    term.wait_for_text("exit code 3");
    quit(&mut term);
    assert_eq!(remembered(&root)["code"].as_array().map(Vec::len), Some(3));
    // the next time too
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.send(b"!");
    term.wait_for_text("bash in api>");
    term.send(b"\x1b[A\x1b[A\x1b[A");
    term.wait_for_text("bash in api> echo first-$((40+2))");
    term.send(b"\r");
    term.wait_for_text("done: first-42");
    let calls = root.run(&["history", "-s", "api", "--json"]).ok();
    assert_eq!(calls.matches("first-").count(), 2, "{calls}");
    term.send(b"Z");
    term.wait_for_text("Reset api?");
    term.send(b"y");
    term.wait_for_text("starts clean");
    wait_until("ended", || root.status("api").0 != "active");
    quit(&mut term);
}

#[test]
fn d3_all_that_code_prints_is_shown_and_can_be_scrolled() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.send(b"!");
    term.wait_for_text("bash in api>");
    term.send(b"for n in $(seq 200); do echo row-$n; done; echo went-wrong >&2\r");
    term.wait_for_text("row-1\n row-2\n");
    term.wait_for_text("row-20");
    term.send(b"G");
    term.wait_for_text("went-wrong");
    assert!(term.text().contains("row-200"), "{}", term.text());
    term.send(b"g");
    term.wait_for_text("row-1\n row-2\n");
    term.send(ESC);
    wait_cursor(&term, "api");
    term.send(b"o");
    term.wait_for_text("row-1\n row-2\n");
    term.send(b"q");
    wait_cursor(&term, "api");
    quit(&mut term);
}

#[test]
fn d5_tiles_show_the_top_left_unless_the_cursor_is_what_changes() {
    let root = Root::new();
    // a program with the whole screen: a headline, a clock, and its cursor in the lower right corner
    let draws = "printf '\\e[?1049h\\e[2J\\e[1;1HHEADLINE\\e[24;70HCORNER'; n=0; while read -r -t 0.3 x; [ $? -gt 128 ]; do n=$((n+1)); printf '\\e[2;1Hclock %d\\e[24;76H' $n; done; while read -rsn1 x; do n=$((n+1)); printf '\\e[24;76H%d' $((n%10)); done";
    root.start_script("tui", &format!("stty -echo; {draws}"));
    root.start_script("other", "echo here; exec sleep 1000");
    let mut term = Term::open(&root, 90, 24, &[]);
    term.wait_for_text(" by ");
    term.send(b"t");
    term.wait_for_text("HEADLINE");
    term.wait_for_text("clock");
    assert!(!term.text().contains("CORNER"), "{}", term.text());
    // now it only writes at its cursor
    root.run(&["send", "tui", "--enter", ""]).ok();
    root.run(&["send", "tui", "a"]).ok();
    wait_until("its cursor", || {
        root.run(&["send", "tui", "a"]).ok();
        term.text().contains("CORNER")
    });
    quit(&mut term);
}

#[test]
fn a_call_that_goes_on_is_cancelled_and_long_values_are_said_in_full() {
    let root = Root::new();
    let long = "x".repeat(150) + "-the-end";
    root.record("task", &["--context", &format!(r#"{{"note": "{long}"}}"#)]);
    let mut term = open(&root);
    wait_cursor(&term, "task");
    root.run(&["exec", "-s", "task", "-l", "python", "--detach", "import time; time.sleep(1000)"]).ok();
    term.send(b"i\t\t");
    term.wait_for_text("time.sleep(1000)");
    term.wait_for_text("C cancel the call");
    term.send(b"C");
    term.wait_for_text("python in task was interrupted");
    term.wait_for("how long it took", |screen| find(screen, "ms api").is_some() || find(screen, "s api").is_some());
    term.send(b"C");
    term.wait_for_text("no call under the cursor that runs");
    term.send(b"\tj\r");
    term.wait_for_text("all of it");
    term.send(b"m");
    term.wait_for_text("-the-end");
    term.send(b"qq");
    quit(&mut term);
}

#[test]
fn a_recording_is_written_once_then_forgotten_then_removed() {
    let root = Root::new();
    root.start_script("job", "echo printed-$((40+2)); exit 0");
    root.wait_status("job", "completed");
    let mut term = open(&root);
    wait_cursor(&term, "job");
    term.send(b"E");
    term.wait_for_text("job.cast");
    term.send(b"\x15job.pdf\r");
    term.wait_for_text("end it with .cast, .html or .txt");
    term.send(b"\x15job.txt\r");
    term.wait_for_text("written:");
    let file = root.work().join("job.txt");
    assert!(std::fs::read_to_string(&file).expect("written").contains("printed-42"));
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    std::fs::write(&file, "mine").expect("writes");
    term.send(b"E");
    term.wait_for_text("job.cast");
    term.send(b"\x15job.txt\r");
    term.wait_for("a refusal", |screen| {
        let last = screen.row_text(29);
        last.contains("job.txt") && (last.contains("exists") || last.contains("there already"))
    });
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "mine");
    // another name is a matter of a few keys
    term.send(b"\x7f\x7f\x7f\x7f2.txt\r");
    term.wait_for_text("written:");
    assert!(root.work().join("job2.txt").exists());
    // and entered again it is meant
    term.send(b"E");
    term.wait_for_text("job.cast");
    term.send(b"\x15job.txt\r");
    term.wait_for_text("enter writes over it");
    term.send(b"\r");
    wait_until("the file to be written over", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("printed-42")));

    term.send(b"F");
    term.wait_for_text("Forget everything job printed?");
    term.send(b"y");
    term.wait_for_text("nothing recorded is left");
    assert!(!root.recordings_contain("printed-42"));
    term.wait_for("nothing to be seen", |screen| find(screen, "printed-42").is_none());
    term.send(b"D");
    term.wait_for_text("Remove job for good");
    term.send(ESC);
    term.wait_for_text("nothing was done");
    term.send(b"D");
    term.wait_for_text("Remove job for good");
    term.send(b"y");
    term.wait_for_text("No sessions yet");
    quit(&mut term);
}

#[test]
fn what_a_person_ends_or_has_looked_at_is_no_news() {
    let root = Root::new();
    root.record("told", &[]);
    root.start_script("ended", "exit 3");
    root.wait_status("ended", "failed");
    let mut term = open(&root);
    let other = open(&root);
    for window in [&term, &other] {
        window.wait_for_text("1 needs you");
    }
    go_to(&term, "told");
    term.send(b"c\r");
    term.wait_for_text("told completed");
    term.wait_for_text("2 ended");
    assert!(term.text().contains("1 needs you"), "whoever does it knows of it:\n{}", term.text());
    go_to(&term, "ended");
    term.send(b"i");
    term.wait_for_text("session · ended");
    // this window and every other one know at once
    term.send(b"q");
    for window in [&term, &other] {
        window.wait_for("nobody to need somebody", |screen| {
            find(screen, "needs you").is_none() || find(screen, "by who needs you").is_some()
        });
        window.wait_for("no mark", |screen| find(screen, "*✗").is_none() && find(screen, "1 needs you").is_none());
    }
    quit(&mut term);
}

#[test]
fn what_is_lost_is_asked_about_and_what_is_hidden_is_said() {
    let root = Root::new();
    root.start("api", BASH);
    root.record("web", &[]);
    let mut term = open(&root);
    term.wait_for_text("2 active");
    go_to(&term, "api");
    let program = root.program("api");
    term.send(b"H");
    term.wait_for_text("Hibernate api?");
    term.wait_for_text("Its program is ended");
    term.send(ESC);
    term.wait_for_text("nothing was done");
    assert!(process::is_alive(program));
    term.send(b"Hy");
    term.wait_for_text("api hibernated");
    term.send(b"u");
    term.wait_for_text("cannot undo: hibernate api");
    // what is selected and does not fit the filter
    go_to(&term, "web");
    term.send(b" ");
    term.wait_for_text("1 selected");
    term.send(b"/api\r");
    term.send(b"p");
    term.wait_for_text("what is selected (1) does not fit the filter");
    assert_eq!(root.status("web").0, "active");
    quit(&mut term);
}

#[test]
fn every_action_has_a_name_and_esc_backs_out_of_everything() {
    let root = Root::new();
    let mut term = sleepers(&root, &["api"]);
    term.send(b":");
    term.wait_for_text("actions");
    term.send(b"renam");
    term.wait_for("one action", |screen| find(screen, "rename").is_some() && find(screen, "statistics").is_none());
    term.send(b"\r");
    term.wait_for_text("new name of api: api");
    term.send(ESC);
    term.wait_for("no prompt", |screen| find(screen, "new name").is_none());
    for (keys, shows) in [
        (&b":"[..], "❯"),
        (b"?", "only to watch"),
        (b"n", "new session"),
        (b"i", "layers"),
        (b"T", "by status"),
        (b"m", "messages"),
        (b"\x13", "everything that was printed"),
    ] {
        term.send(keys);
        term.wait_for_text(shows);
        term.send(ESC);
        term.wait_for("the list", |screen| find(screen, shows).is_none() && super::cursor_row(screen).is_some());
    }
    term.send(ESC);
    term.wait_for_text("q leaves; sessions go on");
    term.send(b"y");
    term.wait_for_text("copied: api");
    assert!(crate::support::term::contains(&term.bytes(), b"\x1b]52;c;YXBp\x1b\\"));
    // ctrl-c leaves as q does
    term.send(b"\x03");
    assert_eq!(term.wait_exit(), 0);
    super::assert_given_back(&term);
}

#[test]
fn what_a_person_does_here_is_told_as_a_persons() {
    let root = Root::new();
    let mut term = sleepers(&root, &["a1", "b2"]);
    root.record("task", &["--task", "First"]);
    term.wait_for_text("3 active");
    go_to(&term, "a1");
    term.send(b"p");
    term.wait_for_text("a1 paused");
    term.send(b"u");
    term.wait_for_text("a1 resumed");
    term.send(b"x");
    term.wait_for_text("End a1?");
    term.send(b"y");
    term.wait_for_text("a1 ended");
    go_to(&term, "task");
    term.send(b"c");
    term.wait_for_text("result");
    term.send(b"done\r");
    term.wait_for_text("task completed");
    term.send(b"n");
    term.wait_for_text("new session");
    term.send(b"sleep 1000\tmade\x13");
    term.wait_for_text("made is running");
    go_to(&term, "b2");
    term.send(b"!");
    term.wait_for_text("bash in b2>");
    term.send(b"true\r");
    term.wait_for_text("bash in b2 done");
    // another daemon is told the same
    let before = root.kill_daemon();
    // started by the dashboard, which has then noticed
    wait_until("another daemon", || root.daemons().iter().any(|pid| *pid != before));
    term.wait_for("it to be reached", |screen| find(screen, "the daemon is gone").is_none());
    go_to(&term, "b2");
    term.send(b"p");
    term.wait_for_text("b2 paused");
    quit(&mut term);
    let author = |name: &str, kind: &str| {
        let found = root.events(name).into_iter().rev().find(|event| event["type"] == kind);
        found.unwrap_or_else(|| panic!("{name} has a {kind}: {:?}", root.kinds(name)))["author"].clone()
    };
    for (name, kind) in [
        ("a1", "pause"),
        ("a1", "resume"),
        ("a1", "complete"),
        ("task", "complete"),
        ("made", "start"),
        ("b2", "exec_started"),
        ("b2", "pause"),
    ] {
        assert_eq!(author(name, kind), "human", "{name} {kind}");
    }
    // the same from a script is not
    root.run(&["resume", "b2"]).ok();
    assert_eq!(author("b2", "resume"), "api");
    // and a dashboard inside a session acts for whoever works there
    root.start("inside", BASH);
    root.run(&["send", "inside", "--enter", env!("CARGO_BIN_EXE_sessions-tui")]).ok();
    root.wait_screen("inside", "by name");
    root.run(&["send", "inside", "p"]).ok();
    wait_until("paused by it", || {
        root.events("b2")
            .iter()
            .chain(&root.events("made"))
            .chain(&root.events("inside"))
            .any(|event| event["type"] == "pause" && event["author"] == "agent")
    });
}

#[test]
fn a_long_export_tells_how_far_it_is_while_keys_go_on() {
    let root = Root::new();
    root.start_script("big", "seq 1 600000; exit 0");
    root.wait_status("big", "completed");
    let mut term = open(&root);
    wait_cursor(&term, "big");
    term.send(b"E");
    term.wait_for_text("big.cast");
    term.send(b"\x15big.html\r");
    let mut percents = std::collections::BTreeSet::new();
    term.wait_for("three steps on the way", |screen| {
        let last = screen.row_text(29);
        if let Some((_, percent)) = last.split_once("writing big.html ") {
            percents.insert(percent.trim().to_owned());
        }
        percents.len() >= 3
    });
    // other keys are heard meanwhile, and a second file has to wait
    term.send(b"?");
    term.wait_for_text("attach, only to watch");
    term.send(ESC);
    term.wait_for_text("written:");
    assert!(std::fs::read_to_string(root.work().join("big.html")).expect("written").contains("600000"));
    quit(&mut term);
}
