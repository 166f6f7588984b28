//! What happens around it: the daemon dies or is stopped, the window is closed, signals come, nothing happens for long.

use std::time::Duration;

use rustix::process::Signal;

use super::{ESC, TAB, assert_given_back, find, open, quit, wait_cursor};
use crate::support::term::DETACH;
use crate::support::{BASH, Root, Term, process, wait_for, wait_until};

/// kill -9, and another one is there: the dashboard has started it.
#[track_caller]
fn killed_and_back(root: &Root) {
    let before = root.kill_daemon();
    wait_for("another daemon", || root.daemons().into_iter().find(|pid| *pid != before));
}

/// What a session prints reaches the window.
#[track_caller]
fn assert_live(root: &Root, term: &Term, name: &str, word: &str) {
    root.run(&["send", name, "--enter", &format!("echo {word}-$((40+2))")]).ok();
    term.wait_for_text(&format!("{word}-42"));
}

#[test]
fn a_daemon_that_is_killed_is_started_again_with_the_same_view_and_selection() {
    let root = Root::new();
    for name in ["aaa", "bbb", "ccc"] {
        root.start(name, BASH);
    }
    let mut term = open(&root);
    term.wait_for_text("3 active");
    term.send(b"Sgj ");
    wait_cursor(&term, "ccc");
    term.wait_for_text("1 selected");
    killed_and_back(&root);
    term.wait_for_text("3 active");
    wait_cursor(&term, "ccc");
    term.wait_for_text("1 selected");
    assert_live(&root, &term, "ccc", "list");
    // in tiles
    term.send(b"t");
    term.wait_for_text("┏");
    killed_and_back(&root);
    for name in ["aaa", "ccc"] {
        assert_live(&root, &term, name, &format!("tile-{name}"));
    }
    // of the daemons that it has started and outlives nothing is left
    let is_left = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    let children = || std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", term.pid())).unwrap_or_default();
    wait_until("the dead to be collected", || !children().split_whitespace().any(is_left));
    term.send(b"t");
    wait_cursor(&term, "ccc");
    // in the detail, where events go on
    term.send(b"i\t");
    term.wait_for_text("kinds: all");
    killed_and_back(&root);
    root.run(&["event", "ccc", "after_the_crash"]).ok();
    term.wait_for_text("after_the_crash");
    term.send(b"q");
    wait_cursor(&term, "ccc");
    // while the window is the session's
    term.send(b"\r");
    wait_until("a client", || root.session("ccc")["clients"] == 1);
    root.kill_daemon();
    term.send(b"echo whole-$((40+2))\r");
    term.wait_for_text("whole-42");
    term.send(DETACH);
    term.wait_for_text("detached from ccc");
    wait_cursor(&term, "ccc");
    quit(&mut term);
}

#[test]
fn typing_beside_the_list_goes_on_after_a_crash() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.send(TAB);
    term.send(b"echo before-$((40+2))\r");
    term.wait_for_text("before-42");
    for word in ["one", "two"] {
        killed_and_back(&root);
        wait_until("the pane to be back", || root.session("api")["clients"] == 1);
        term.send(format!("echo {word}-$((40+2))\r").as_bytes());
        term.wait_for_text(&format!("{word}-42"));
    }
    let text = term.text();
    assert!(text.contains("before-42") && text.contains("one-42"), "nothing is lost:\n{text}");
    assert_eq!(text.matches("one-42").count(), 1, "nothing comes twice:\n{text}");
    term.wait_for_text("ctrl-b d list");
    term.send(b"\x02x");
    wait_cursor(&term, "api");
    quit(&mut term);
}

#[test]
fn keys_typed_around_a_crash_arrive_once_and_in_order() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.send(TAB);
    term.send(b"echo begin-$((40+2))\r");
    term.wait_for_text("begin-42");
    // a new daemon each time, killed while keys are on their way; what the shell got is in a file
    let line = |n: u32| format!("echo {n} >> got\r");
    let file = root.work().join("got");
    // more deaths than these within ten seconds are taken for a fault
    for n in 0..5 {
        let daemon = root.daemon_pid();
        term.send(line(3 * n).as_bytes());
        process::kill(daemon);
        // in the instant after, and once more while the next one starts
        term.send(line(3 * n + 1).as_bytes());
        wait_for("another daemon", || root.daemons().into_iter().find(|pid| *pid != daemon));
        term.send(line(3 * n + 2).as_bytes());
        wait_until("the line", || std::fs::read_to_string(&file).is_ok_and(|text| text.lines().any(|got| got == (3 * n + 2).to_string())));
    }
    let got: Vec<u32> = std::fs::read_to_string(&file).expect("written").lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(got, (0..15).collect::<Vec<u32>>(), "each once, in order");
    term.send(b"\x02x");
    wait_cursor(&term, "api");
    quit(&mut term);
}

#[test]
fn a_daemon_that_is_stopped_stays_so_until_it_is_asked_for() {
    let root = Root::new();
    root.start("api", BASH);
    let program = root.program("api");
    let mut term = open(&root);
    wait_cursor(&term, "api");
    let stop = |term: &Term| {
        root.run(&["daemon", "stop"]).ok();
        term.wait_for_text("the daemon was stopped");
        // keys that need nobody work
        term.send(b"?");
        term.wait_for_text("attach, only to watch");
        term.send(ESC);
        term.wait_for("no help", |screen| find(screen, "attach, only to watch").is_none());
        assert_eq!(root.daemons(), Vec::<u32>::new(), "nobody starts it unasked");
        term.send(b"\x12");
        wait_cursor(term, "api");
        term.wait_for_text("1 active");
    };
    stop(&term);
    assert_live(&root, &term, "api", "again");
    // also with a terminal beside the list, which is there again then
    term.send(TAB);
    term.wait_for_text("again-42");
    term.wait_for_text("ctrl-b d list");
    term.send(DETACH);
    term.wait_for_text("enter types here");
    stop(&term);
    term.send(b"\r");
    term.wait_for_text("ctrl-b d list");
    term.send(b"echo beside-$((40+2))\r");
    term.wait_for_text("beside-42");
    term.send(b"\x02x");
    wait_cursor(&term, "api");
    // somebody else starts one
    root.run(&["daemon", "stop"]).ok();
    term.wait_for_text("the daemon was stopped");
    root.run(&["daemon", "start"]).ok();
    term.wait_for("it to be noticed", |screen| find(screen, "the daemon was stopped").is_none());
    assert_live(&root, &term, "api", "noticed");
    // what cannot be done without one says so
    root.run(&["daemon", "stop"]).ok();
    term.wait_for_text("the daemon was stopped");
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    assert_given_back(&term);
    assert_eq!(root.daemons(), Vec::<u32>::new());
    assert!(process::is_alive(program));
}

/// What a fault leaves behind.
fn reports(root: &Root) -> Vec<String> {
    let files = std::fs::read_dir(root.join("state")).into_iter().flatten().filter_map(Result::ok);
    files.map(|file| file.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with("fault")).collect()
}

#[test]
fn whoever_ends_it_gets_the_terminal_back_and_sessions_go_on() {
    let root = Root::new();
    root.start("api", BASH);
    let program = root.program("api");
    // in every place: the list, a form, beside the list, the whole window, a recording
    let places: [(&[u8], &str); 5] = [(b"", "api"), (b"n", "new session"), (b"\t", "ctrl-b d list"), (b"\r", "$"), (b"r", "q leave")];
    for (keys, shows) in places {
        for end in [Signal::TERM, Signal::HUP] {
            let mut term = open(&root);
            wait_cursor(&term, "api");
            term.send(keys);
            term.wait_for_text(shows);
            if keys == b"\r" {
                wait_until("a client", || root.session("api")["clients"] == 1);
            }
            process::signal(term.pid(), end);
            term.wait_exit();
            assert_given_back(&term);
        }
        let mut term = open(&root);
        wait_cursor(&term, "api");
        term.send(keys);
        term.wait_for_text(shows);
        let pid = term.pid();
        term.close();
        term.wait_exit();
        assert!(!process::is_alive(pid));
    }
    assert_eq!(reports(&root), Vec::<String>::new());
    wait_until("nobody", || root.session("api")["clients"] == 0);
    assert!(process::is_alive(program));
}

#[test]
fn an_open_dashboard_over_idle_sessions_costs_nothing() {
    let root = Root::new();
    for n in 0..5 {
        root.start(&format!("s{n}"), &["sleep", "1000"]);
    }
    let mut term = Term::open(&root, 100, 30, &[]);
    term.wait_for_text("5 active");
    let pids = [term.pid(), root.daemon_pid()];
    let used = || -> (u64, usize) { (pids.iter().map(|pid| process::wake_ups(*pid)).sum(), term.bytes().len()) };
    // whatever still settles has an end, and ages are drawn now and then; in between nothing may happen at all
    wait_until("a second in which nothing happens", || {
        let before = used();
        std::thread::sleep(Duration::from_secs(1));
        used() == before
    });
    let cpu = process::stat(term.pid()).expect("it lives").cpu;
    assert!(cpu < 100, "{cpu} ticks of CPU for nothing");
    quit(&mut term);
}

#[test]
fn a_key_that_comes_together_with_a_resize_is_heard() {
    let root = Root::new();
    root.record("one", &[]);
    root.record("two", &[]);
    let mut term = open(&root);
    term.wait_for_text("2 active");
    term.send(b"Sg");
    let names = term.look(|screen| {
        let row = super::cursor_row(screen).unwrap_or_default();
        if row.contains("one") { ["two", "one"] } else { ["one", "two"] }
    });
    for round in 0..200 {
        let width = 90 + u16::from(round % 2 == 0) * 10;
        term.resize(width, 28);
        // now before, now after the signal has been taken notice of
        std::thread::sleep(Duration::from_micros(round % 20 * 100));
        term.send(if round % 2 == 0 { b"G" } else { b"g" });
        let name = names[usize::from(round % 2 == 1)];
        wait_cursor(&term, name);
    }
    quit(&mut term);
}
