//! What is said about keys is true where it is said: the user's own keys, the view that is looked at, the prefix.

use super::{ESC, TAB, find, open, quit, wait_cursor};
use crate::support::term::DETACH;
use crate::support::{BASH, Root, Term};

#[test]
fn hints_and_help_name_the_keys_that_are_set() {
    let root = Root::new();
    root.config("[keys]\nprefix = \"ctrl-a\"\n[keys.dashboard]\nkill = [\"ctrl-k\"]\nrefresh = [\"f5\"]\nquit = [\"Q\"]\nopen = [\"o\"]\n");
    root.start("api", BASH);
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.wait_for_text("o attach");
    term.wait_for_text("ctrl-k end");
    term.send(b"D");
    term.wait_for_text("api is active; ctrl-k ends it first");
    term.send(ESC);
    term.wait_for_text("Q leaves; sessions go on");
    root.run(&["daemon", "stop"]).ok();
    term.wait_for_text("f5 starts it again, Q leaves");
    term.send(b"\x1b[15~");
    term.wait_for_text("1 active");
    // beside a terminal
    term.send(TAB);
    term.wait_for_text("ctrl-a d list");
    term.send(b"\x01?");
    term.wait_for_text("ctrl-a [");
    term.wait_for_text("ctrl-a ctrl-a");
    term.send(b"\x1b");
    term.wait_for("no help", |screen| find(screen, "ctrl-a ctrl-a").is_none());
    term.send(b"\x01d");
    term.wait_for_text("o types here");
    term.send(b"Q");
    assert_eq!(term.wait_exit(), 0);
}

/// Opens the help and reads it: it is all there when its last row is.
#[track_caller]
fn help_of(term: &Term, (key, what): (&str, &str)) -> String {
    term.send(b"?");
    term.wait_for("the last of the keys", |screen| {
        (0..screen.size().rows).any(|row| {
            let text = screen.row_text(row);
            let mut cells = text.split('│').map(str::trim);
            cells.any(|cell| cell.starts_with(key) && cell.ends_with(what))
        })
    });
    term.text()
}

/// Keys that lead to a view, the last row of its help, what else is in it, what is not.
type Expected = (&'static [u8], (&'static str, &'static str), &'static [&'static str], &'static [&'static str]);

#[test]
fn every_view_lists_its_own_keys() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = Term::open(&root, 100, 75, &[]);
    wait_cursor(&term, "api");
    let views: [Expected; 5] = [
        (
            b"",
            ("ctrl-b ?", "in a session: its keys"),
            &["type into it, with the list beside it", "leave; sessions"],
            &["close the terminal"],
        ),
        (b"T", ("q", "back"), &["ask the daemon again"], &["next page", "clipboard", "leave; sessions go on"]),
        (b"m", ("q", "back"), &["copy this row to the clipboard"], &["next page", "leave; sessions go on"]),
        (b"i", ("q", "back"), &["which kinds of events", "play from there", "next page"], &["select, for doing"]),
        (
            b"\t\x02d",
            ("ctrl-b ?", "these keys"),
            &["type into it; of an ended one", "ctrl-b z", "close the terminal"],
            &["hide the preview"],
        ),
    ];
    for (keys, last, shown, hidden) in views {
        term.send(keys);
        if keys.starts_with(TAB) {
            term.wait_for_text("enter types here");
        }
        let text = help_of(&term, last);
        for part in shown {
            assert!(text.contains(part), "{keys:?}: {part}\n{text}");
        }
        for part in hidden {
            assert!(!text.contains(part), "{keys:?}: {part}\n{text}");
        }
        term.send(ESC);
        term.wait_for("no help", |screen| find(screen, "keys ·").is_none());
        if !keys.is_empty() {
            term.send(ESC);
            term.wait_for_text("n new");
        }
    }
    quit(&mut term);
}

#[test]
fn a_small_window_reaches_everything() {
    let root = Root::new();
    let mut term = Term::open(&root, 40, 15, &[]);
    term.wait_for_text("shows every key");
    term.wait_for_text("sessions-tui new -n api -- npm run dev");
    term.send(b"n");
    term.wait_for_text("start and attach");
    term.wait_for_text("start, stay here");
    term.wait_for_text("esc cancel");
    term.send(b"sleep 1000\tsmall\t\t\t\t\t");
    term.send(b"agroup\x13");
    term.wait_for_text("small is running");
    assert_eq!(root.session("small")["group"], "agroup");
    wait_cursor(&term, "small");
    term.send(b"i");
    term.wait_for_text("directory");
    // the last tab is there when it is turned to, and by the mouse
    term.send(b"\x1b[Z");
    term.wait_for_text("no file of the workspace");
    term.wait_for_text(" files");
    term.send(b"\t");
    term.wait_for_text("session · small");
    term.wait_for_text("›");
    term.send(b"q");
    wait_cursor(&term, "small");
    // where it is, in a window that has room for it
    term.resize(100, 30);
    term.wait_for_text("workspace");
    quit(&mut term);
    let mut term = Term::open(&root, 80, 24, &[]);
    wait_cursor(&term, "small");
    term.wait_for("the folder in the preview's title", |screen| find(screen, "/work · 80×24").is_some());
    term.send(TAB);
    term.wait_for_text("ctrl-b d list");
    term.send(DETACH);
    quit(&mut term);
}
