//! Attach like tmux: the exact screen first, then the stream; control, observers, sizes, and the way out.

use rustix::process::Signal;

use crate::support::term::{CTRL_B, DETACH, Habits, contains};
use crate::support::{BASH, Root, Term, process, wait_until};

/// Waits until this many clients are attached.
#[track_caller]
fn wait_clients(root: &Root, name: &str, count: u64) {
    wait_until(&format!("{count} clients of {name}"), || root.session(name)["clients"] == count);
}

/// Attaches in a window of 80x24 and waits for the prompt.
#[track_caller]
fn attached(root: &Root, name: &str) -> Term {
    let term = Term::open(root, 80, 24, &["attach", name]);
    term.wait_for_text("$");
    term
}

#[test]
fn a12_a_paste_that_nobody_reads_leaves_our_keys_and_ctrl_c_alive() {
    let root = Root::new();
    root.start_script("deaf", "trap 'echo yes > interrupted; exit 3' INT; echo ready; while :; do sleep 0.1; done");
    root.wait_screen("deaf", "ready");
    let mut term = Term::open(&root, 80, 24, &["attach", "deaf"]);
    term.wait_for_text("ready");
    std::thread::scope(|scope| {
        let paste = scope.spawn(|| {
            for _ in 0..160 {
                term.send(&vec![b'x'; 64 << 10]);
            }
            term.send(DETACH);
        });
        paste.join().expect("the terminal takes it");
    });
    assert_eq!(term.wait_exit(), 0, "the key to leave is heard");
    let mut next = Term::open(&root, 80, 24, &["attach", "deaf"]);
    next.wait_for_text("xxxx");
    next.send(b"\x03");
    root.wait_file("work/interrupted");
    next.wait_exit();
}

#[test]
fn the_exact_screen_comes_first_then_what_is_typed() {
    let root = Root::new();
    root.start("one", BASH);
    root.run(&["send", "one", "--enter", "printf '\\e[31;1mred\\e[0m \\e]2;the title\\a\\e[5;10Hhere'"]).ok();
    root.wait_screen("one", "here");
    let term = attached(&root, "one");
    term.wait_for_text("here");
    let expected = root.json(&["screen", "one", "--json"]);
    term.wait_for("the same rows, colours, cursor and title", |screen| {
        let rows = expected["rows"].as_array().expect("rows");
        let same_rows = rows.iter().zip(0u16..).all(|(row, n)| row["ansi"].as_str().expect("text").as_bytes() == screen.row_ansi(n));
        let cursor = screen.cursor();
        same_rows && expected["cursor"] == serde_json::json!([cursor.row, cursor.col]) && screen.title() == "the title"
    });
    term.send(b"\recho typed-$((40+2))\r");
    term.wait_for_text("typed-42");
    assert!(root.screen("one").contains("typed-42"));
}

#[test]
fn keys_typed_ahead_arrive() {
    let root = Root::new();
    root.start("one", BASH);
    root.wait_screen("one", "$");
    for round in 0..10 {
        let term = Term::open(&root, 80, 24, &["attach", "one"]);
        term.send(format!("clear; echo ahead-$((100 + {round}))\r").as_bytes());
        term.wait_for_text(&format!("ahead-{}", 100 + round));
    }
}

#[test]
fn new_attaches_and_the_prefix_key_detaches() {
    let root = Root::new();
    let mut term = Term::open(&root, 100, 30, &["new", "-n", "mine", "--", "bash", "--norc"]);
    term.wait_for_text("$");
    term.send(b"stty size\r");
    term.wait_for_text("30 100");
    term.send(DETACH);
    assert_eq!(term.wait_exit(), 0);
    assert!(term.text().contains("[detached from mine]"), "{}", term.text());
    assert!(term.is_cooked());
    assert_eq!(root.status("mine").0, "active");
    wait_clients(&root, "mine", 0);
}

#[test]
fn the_prefix_twice_is_sent_and_a_question_mark_shows_the_keys() {
    let root = Root::new();
    root.start("one", &["cat", "-v"]);
    let term = Term::open(&root, 80, 24, &["attach", "one"]);
    wait_clients(&root, "one", 1);
    term.send(b"a\x02\x02b\r");
    // once from the terminal's echo, once from cat
    term.wait_for_text("a^Bb\na^Bb");
    term.send(CTRL_B);
    term.send(b"?");
    term.wait_for_text("d detach");
    term.send(b"x\r");
    term.wait_for("the line of keys to be gone", |screen| {
        let text: Vec<String> = (0..24).map(|row| screen.row_text(row)).collect();
        !text.join("\n").contains("d detach") && text.join("\n").contains("x\nx")
    });
}

#[test]
fn another_prefix_key_can_be_chosen() {
    let root = Root::new();
    root.config("[keys]\nprefix = \"ctrl-a\"\n");
    root.start("one", &["cat", "-v"]);
    let mut term = Term::open(&root, 80, 24, &["attach", "one"]);
    wait_clients(&root, "one", 1);
    term.send(b"\x02d\r");
    term.wait_for_text("^Bd\n^Bd");
    term.send(b"\x01d");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn the_program_follows_the_windows_size() {
    let root = Root::new();
    root.start("one", BASH);
    let term = attached(&root, "one");
    for (cols, rows) in [(100, 30), (60, 10), (132, 50)] {
        term.resize(cols, rows);
        wait_until("the new size", || root.session("one")["size"] == serde_json::json!({"cols": cols, "rows": rows}));
        term.send(b"clear; stty size\r");
        term.wait_for_text(&format!("{rows} {cols}"));
    }
    let shot = root.json(&["screen", "one", "--json"]);
    assert_eq!(shot["rows"].as_array().map(Vec::len), Some(50));
}

#[test]
fn full_screen_programs_look_right_after_coming_back() {
    let root = Root::new();
    let file = root.work().join("text");
    let rows: Vec<String> = (1..200).map(|n| format!("row {n} of the text")).collect();
    std::fs::write(&file, rows.join("\n")).expect("writes");
    root.start("one", BASH);
    let mut term = attached(&root, "one");
    term.send(b"echo before-$((40+2))\r");
    term.wait_for_text("before-42\n$");
    // an editor where there is one, else the same sequences by hand
    let editor = "if command -v vim >/dev/null; then vim -u NONE -N text; else printf '\\e[?1049h\\e[H\\e[2Jrow 1 of the text'; read; printf '\\e[?1049l'; fi";
    term.send(format!("{editor}\r").as_bytes());
    term.wait_for_text("row 1 of the text");
    term.wait_for("the alternate screen", shared::screen::Screen::is_alternate);
    term.send(b"jj");
    wait_until("the screen to settle", || root.run(&["wait", "one", "--for", "quiet=300ms"]).code == 0);
    let before = term.text();
    term.send(DETACH);
    assert_eq!(term.wait_exit(), 0);
    assert!(!term.is_alternate(), "the user's own screen is back");

    let term = Term::open(&root, 80, 24, &["attach", "one"]);
    term.wait_for_text("row 1 of the text");
    wait_until("the same screen", || term.text() == before);
    assert!(term.is_alternate());
    term.send(b":q!\r\r");
    term.wait_for("the main screen", |screen| !screen.is_alternate());
    term.wait_for_text("before-42");
}

#[test]
fn promise_7_observers_never_type_and_never_resize() {
    let root = Root::new();
    root.start("one", BASH);
    let term = attached(&root, "one");
    let mut observer = Term::open(&root, 60, 15, &["attach", "one", "--read-only"]);
    observer.wait_for_text("watching only");
    observer.send(b"echo intruder\r");
    term.send(b"stty size\r");
    term.wait_for_text("24 80");
    observer.wait_for_text("24 80");
    observer.resize(120, 40);
    observer.send(b"\x02techo intruder\r");
    term.send(b"clear; stty size; echo still-$((40+2))\r");
    term.wait_for_text("24 80\nstill-42");
    observer.wait_for_text("24 80\nstill-42");
    assert!(!root.screen("one").contains("intruder") && !term.text().contains("intruder"));
    let session = root.session("one");
    assert_eq!((&session["size"], &session["clients"]), (&serde_json::json!({"cols": 80, "rows": 24}), &serde_json::json!(2)));
    observer.send(DETACH);
    assert_eq!(observer.wait_exit(), 0);
    assert!(!observer.is_alternate() && observer.is_cooked());
    wait_clients(&root, "one", 1);
}

#[test]
fn promise_7_a_second_client_takes_control_and_the_first_takes_it_back() {
    let root = Root::new();
    root.start("one", BASH);
    let first = attached(&root, "one");
    let second = Term::open(&root, 100, 30, &["attach", "one"]);
    first.wait_for_text("another client has control");
    second.send(b"clear; stty size\r");
    second.wait_for_text("30 100");
    first.send(b"echo intruder\r");
    second.send(b"echo from-the-second\r");
    second.wait_for_text("\nfrom-the-second");
    assert!(!root.screen("one").contains("intruder"));

    first.send(b"\x02t");
    second.wait_for_text("another client has control");
    first.send(b"clear; stty size; echo back-$((40+2))\r");
    first.wait_for_text("24 80\nback-42");
    second.wait_for_text("24 80\nback-42");
    let events = root.run(&["events", "one"]).ok();
    assert_eq!(events.lines().filter(|line| line.contains("control")).count(), 2, "{events}");
    // who types again when the one in control leaves
    drop(first);
    wait_until("the terminal to take the size of the one who is left", || root.session("one")["size"]["cols"] == 100);
    second.send(b"clear; echo mine-$((40+2))\r");
    second.wait_for_text("mine-42");
}

#[test]
fn many_clients_see_the_same() {
    let root = Root::new();
    root.start("one", BASH);
    let observers: Vec<Term> = (0..8).map(|n| Term::open(&root, 90 + n, 30, &["attach", "one", "--read-only"])).collect();
    let term = attached(&root, "one");
    wait_clients(&root, "one", 9);
    term.send(b"for i in 1 2 3 4 5; do echo line-$i; done; echo end-$((40+2))\r");
    for window in observers.iter().chain([&term]) {
        window.wait_for_text("line-1\nline-2\nline-3\nline-4\nline-5\nend-42");
    }
}

#[test]
fn detach_from_elsewhere() {
    let root = Root::new();
    root.start("one", BASH);
    let mut terms = [attached(&root, "one"), Term::open(&root, 50, 20, &["attach", "one", "--read-only"])];
    wait_clients(&root, "one", 2);
    let said = root.run(&["detach", "one"]).ok();
    assert!(said.contains("2 clients"), "{said}");
    for term in &mut terms {
        assert_eq!(term.wait_exit(), 0);
        assert!(term.text().contains("by another client"), "{}", term.text());
        assert!(term.is_cooked() && !term.is_alternate());
    }
    assert_eq!(root.status("one").0, "active");
}

#[test]
fn closing_the_window_detaches() {
    let root = Root::new();
    root.start("one", BASH);
    let mut term = attached(&root, "one");
    wait_clients(&root, "one", 1);
    term.close();
    term.wait_exit();
    wait_clients(&root, "one", 0);
    assert_eq!(root.status("one").0, "active");
    attached(&root, "one");
}

#[test]
fn the_terminal_is_given_back_on_kill_and_on_stop() {
    let root = Root::new();
    root.start("one", BASH);
    for how in ["TERM", "daemon stop"] {
        let mut term = attached(&root, "one");
        assert!(!term.is_cooked(), "raw while attached");
        term.send(b"printf '\\e[?1049h\\e[?25l\\e[?1000h\\e[?2004h'; echo in-$((40+2))\r");
        term.wait_for_text("in-42");
        term.wait_for("the alternate screen", shared::screen::Screen::is_alternate);
        if how == "TERM" {
            process::signal(term.pid(), Signal::TERM);
        } else {
            root.run(&["daemon", "stop"]).ok();
        }
        term.wait_exit();
        let bytes = term.bytes();
        let tail = &bytes[bytes.len().saturating_sub(600)..];
        for sequence in [&b"\x1b[?1049l"[..], b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l"] {
            assert!(contains(tail, sequence), "{how}: {} is missing", String::from_utf8_lossy(sequence));
        }
        term.wait_for("a visible cursor on the main screen", |screen| screen.cursor().visible && !screen.is_alternate());
        assert!(term.is_cooked(), "{how}");
        root.run(&["send", "one", "--enter", "printf '\\e[?1049l\\e[?25h\\e[?1000l\\e[?2004l'; clear"]).ok();
    }
}

#[test]
fn when_the_program_ends_the_last_line_says_how() {
    let root = Root::new();
    for (script, words) in
        [("read; echo bye; exit 7", "exit code 7"), ("read; kill -TERM $$", "signal TERM"), ("read; exit 0", "exit code 0")]
    {
        let name = format!("s{}", words.replace(' ', "-"));
        root.start_script(&name, script);
        let mut term = Term::open(&root, 80, 24, &["attach", &name]);
        wait_clients(&root, &name, 1);
        term.send(b"\r");
        term.wait_exit();
        assert!(term.text().lines().last().is_some_and(|line| line.contains(words) && line.contains(&name)), "{}", term.text());
        assert!(term.is_cooked());
    }
}

#[test]
fn promise_6_no_gap_and_no_repeat() {
    let root = Root::new();
    root.start_script("one", "i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.002; done");
    root.wait_screen("one", "line-100");
    for _ in 0..5 {
        let habits = Habits { keeps_history: true, ..Habits::default() };
        let mut term = Term::open_with(&root, 80, 24, &["attach", "one"], habits);
        wait_until("some hundred lines", || term.history().iter().filter(|line| line.starts_with("line-")).count() > 300);
        term.send(DETACH);
        term.wait_exit();
        // the line the program was writing at that moment, and what follows it, are not whole
        let lines: Vec<u64> = term.history().iter().filter_map(|line| line.strip_prefix("line-")?.parse().ok()).collect();
        let broken: Vec<&[u64]> = lines[..lines.len() - 1].windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
        assert!(broken.is_empty(), "{broken:?}");
    }
}

#[test]
fn a_window_that_stops_reading_holds_nobody_back_and_is_right_again_afterwards() {
    let root = Root::new();
    let done = root.join("done");
    root.start("one", BASH);
    let slow = attached(&root, "one");
    let other = Term::open(&root, 80, 24, &["attach", "one", "--read-only"]);
    other.wait_for_text("watching only");
    slow.pause();
    let line = format!("seq 1 200000; echo through-$((40+2)); echo > {}", done.display());
    root.run(&["send", "one", "--enter", &line]).ok();
    wait_until("the program to reach its end", || done.exists());
    other.wait_for_text("through-42");
    slow.resume();
    slow.wait_for_text("through-42");
    root.wait_screen("one", "through-42\n$");
    wait_until("the same screen", || slow.text().trim_end() == root.screen("one").trim_end());
    slow.send(b"clear; echo alive-$((40+2))\r");
    slow.wait_for_text("alive-42");
}

#[test]
fn a_flood_is_skipped_and_the_last_screen_is_right() {
    let root = Root::new();
    root.start("one", BASH);
    let term = attached(&root, "one");
    term.send(b"seq 1 300000; echo done-$((40+2))\r");
    term.wait_for_text("done-42\n$");
    wait_until("the same screen", || term.text().trim_end() == root.screen("one").trim_end());
    assert!(term.text().contains("299999\n300000\ndone-42"), "{}", term.text());
    term.send(b"echo after-$((40+2))\r");
    term.wait_for_text("after-42");
}

#[test]
fn a_flood_can_be_interrupted() {
    let root = Root::new();
    root.start("one", BASH);
    let term = attached(&root, "one");
    term.send(b"yes the-flood\r");
    term.wait_for_text("the-flood\nthe-flood\nthe-flood");
    term.send(b"\x03");
    term.send(b"clear; echo stopped-$((40+2))\r");
    term.wait_for_text("stopped-42");
}

#[test]
fn without_a_name_the_last_active_session_is_meant() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    let mut term = Term::open(&root, 80, 24, &["attach"]);
    assert_eq!(term.wait_exit(), 3);
    root.start("older", &["cat"]);
    root.start("newer", &["cat"]);
    root.run(&["send", "older", "--enter", "most recent"]).ok();
    root.wait_screen("older", "most recent\nmost recent");
    let term = Term::open(&root, 80, 24, &["attach"]);
    term.wait_for_text("most recent\nmost recent");
}

#[test]
fn attaching_a_session_to_itself_is_refused() {
    let root = Root::new();
    root.start("self", BASH);
    let binary = env!("CARGO_BIN_EXE_sessions-tui");
    root.run(&["send", "self", "--enter", &format!("{binary} attach self; echo code-$?")]).ok();
    root.wait_screen("self", "code-4");
    let screen = root.screen("self");
    let said: Vec<&str> = screen.lines().skip_while(|line| !line.contains("echo code-$?")).collect();
    assert!(screen.contains("inside session self") && !screen.contains("hears"), "{said:?}");
    assert!(!root.recordings_contain("\x1b[?1049l") && !root.recordings_contain("\x1b[?1003l"), "nothing was done to the terminal");
}

#[test]
fn whoever_had_control_before_a_crash_has_it_after() {
    let root = Root::new();
    root.start("shared", BASH);
    let watcher = Term::open(&root, 70, 20, &["attach", "shared"]);
    watcher.wait_for_text("$");
    let typist = Term::open(&root, 90, 30, &["attach", "shared"]);
    watcher.wait_for_text("another client has control");
    for round in 0..3 {
        root.kill_daemon();
        wait_until("both to be back", || root.session("shared")["clients"] == 2);
        typist.send(format!("echo round-$(({round}+40)); stty size\r").as_bytes());
        typist.wait_for_text(&format!("round-{}", round + 40));
        typist.wait_for_text("30 90");
        watcher.wait_for_text("another client has control");
    }
}

#[test]
fn keys_before_the_one_that_leaves_reach_the_program() {
    let root = Root::new();
    root.start("shell", BASH);
    let mut term = Term::open(&root, 80, 24, &["attach", "shell"]);
    term.wait_for_text("$");
    term.send(b"echo before-$((40+2))-looking\r\x02[");
    term.wait_for_text("q back to the program");
    term.send(b"q");
    term.wait_for("the program again", |screen| {
        let rows: Vec<String> = (0..24).map(|row| screen.row_text(row)).collect();
        rows.iter().any(|row| row == "before-42-looking") && !rows.iter().any(|row| row.contains("q back"))
    });
    term.send(b"echo before-$((40+2))-leaving\r\x02d");
    term.wait_exit();
    root.wait_screen("shell", "before-42-leaving");
}
