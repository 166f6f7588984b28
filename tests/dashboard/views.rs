//! Everything about one session, playing from a moment, searching, statistics.

use super::{CTRL_S, ESC, TAB, find, open, quit, wait_cursor};
use crate::support::{BASH, Root, Term};

/// A session that has ended and has something to tell.
fn told(root: &Root) {
    root.json(&["new", "-d", "--json", "-n", "job", "--task", "Find the needle", "--mode", "review", "--", "bash", "-c", "for n in 1 2 3; do echo step-$n; sleep 0.1; done; echo the-needle-is-here; sleep 0.1; printf '\\e[2Jafterwards\\n'; read line; exit 0"]);
    root.wait_screen("job", "afterwards");
    root.run(&["event", "job", "note", "--data", "{\"text\": \"a note of mine\"}"]).ok();
    root.run(&["context", "job", "--set", "{\"branch\": \"main\", \"files\": {\"open\": [\"a.rs\", \"b.rs\"]}}"]).ok();
    root.run(&["exec", "-s", "job", "echo from-a-call"]).ok();
    root.run(&["send", "job", "--enter", ""]).ok();
    root.wait_status("job", "completed");
}

#[test]
fn the_detail_tells_everything_and_plays_from_an_event() {
    let root = Root::new();
    told(&root);
    let mut term = open(&root);
    wait_cursor(&term, "job");
    term.send(b"i");
    term.wait_for_text("layers");
    for part in ["Find the needle", "completed", "review", "/work"] {
        term.wait_for_text(part);
    }
    term.send(TAB);
    term.wait_for_text("kinds: all");
    term.wait_for_text("a note of mine");
    // only what was asked for
    term.send(b"/note\r");
    term.wait_for("filtered", |screen| find(screen, "a note of mine").is_some() && find(screen, "complete ").is_none());
    // the moment of the note: everything was printed, nothing had ended
    term.send(b"\r");
    term.wait_for("a player", |screen| find(screen, "⏸").is_some());
    term.wait_for_text("afterwards");
    assert!(term.look(|screen| (20..30).any(|row| screen.row_text(row).contains(" / 0:"))), "it says the time:\n{}", term.text());
    term.send(b"q");
    term.wait_for_text("kinds: all");
    term.wait_for_text("a note of mine");
    term.send(ESC);
    term.wait_for_text("start");
    term.send(TAB);
    term.wait_for_text("echo from-a-call");
    term.send(TAB);
    term.wait_for_text("branch");
    term.wait_for_text("b.rs");
    term.send(b"G");
    term.send(TAB);
    term.wait_for_text("no file of the workspace has changed, since it began: not watched: the session is completed");
    term.send(b"\x1b[Z\x1b[Z");
    term.wait_for_text("echo from-a-call");
    term.send(b"q");
    wait_cursor(&term, "job");
    // an ended one is played
    term.send(b"\r");
    term.wait_for("a player", |screen| find(screen, "▶").is_some() || find(screen, "⏸").is_some());
    term.send(b"G");
    term.wait_for_text("afterwards");
    term.send(b"q");
    wait_cursor(&term, "job");
    quit(&mut term);
}

#[test]
fn a_command_of_the_details_is_played_from_its_beginning() {
    let root = Root::new();
    // a shell that tells of its commands
    root.json(&["new", "-d", "--json", "-n", "shell", "--", "bash"]);
    for (line, shows) in
        [("echo first-$((40+2))", "first-42"), ("clear; echo second-$((40+3))", "second-43"), ("clear; echo third-$((40+4))", "third-44")]
    {
        root.run(&["send", "shell", "--enter", line]).ok();
        root.wait_screen("shell", shows);
    }
    root.run(&["exec", "-s", "shell", "-l", "python", "print('of-a-' + 'call')"]).ok();
    let mut term = open(&root);
    wait_cursor(&term, "shell");
    term.send(b"i\t\t");
    term.wait_for_text("clear; echo second-");
    term.send(b"/second\r");
    term.wait_for("one command", |screen| find(screen, "clear; echo second-").is_some() && find(screen, "first-$").is_none());
    term.send(b"\r");
    term.wait_for("a player, paused there", |screen| find(screen, "⏸").is_some() && find(screen, "❯ clear; echo second-").is_some());
    assert!(!term.text().contains("third-44"), "not the end:\n{}", term.text());
    term.send(b"q");
    term.wait_for_text("clear; echo second-");
    // a call to an interpreter is played in its own transcript
    term.send(ESC);
    term.wait_for_text("of-a-");
    term.send(b"/of-a-\r");
    term.wait_for("one call", |screen| find(screen, "of-a-").is_some() && find(screen, "echo second-").is_none());
    term.send(b"\r");
    term.wait_for("its player", |screen| find(screen, "⏸").is_some() || find(screen, "▶").is_some());
    term.send(b"G");
    term.wait_for_text("of-a-call");
    term.send(b"q");
    term.wait_for_text("play from there");
    term.send(ESC);
    term.wait_for_text("echo second-");
    term.send(ESC);
    wait_cursor(&term, "shell");
    quit(&mut term);
}

#[test]
fn a_search_finds_what_was_printed_and_plays_that_moment() {
    let root = Root::new();
    told(&root);
    root.start("other", BASH);
    let mut term = open(&root);
    term.wait_for_text("1 active");
    term.send(CTRL_S);
    term.wait_for_text("everything that was printed");
    term.send(b"needle-is");
    term.wait_for_text("2 hits in 1 session");
    // the moment of it, not the end
    term.wait_for("the moment", |screen| (10..29).any(|row| screen.row_text(row).starts_with("the-needle-is-here")));
    assert!(!term.text().contains("afterwards"), "{}", term.text());
    term.send(b"\r");
    term.wait_for_text("play from there");
    term.send(b"\r");
    term.wait_for("a player", |screen| find(screen, "q leave").is_some() && find(screen, "the-needle-is-here").is_some());
    assert!(!term.text().contains("afterwards"), "{}", term.text());
    term.send(b"q");
    term.wait_for_text("2 hits in 1 session");
    // what is not there is not found, and what is no expression is said
    term.send(b"/");
    term.send(b"\x15nothing-like-it");
    term.wait_for_text("0 hits");
    term.send(b"\x15\x1br((x");
    term.wait_for_text("regular expression");
    term.wait_for("a complaint", |screen| {
        find(screen, "unclosed").is_some() || find(screen, "expression:").is_some() || find(screen, "not a regular").is_some()
    });
    term.send(ESC);
    wait_cursor(&term, "job");
    quit(&mut term);
}

#[test]
fn statistics_count_what_there_is() {
    let root = Root::new();
    told(&root);
    root.start("live", BASH);
    root.start_script("bad", "exit 1");
    root.wait_status("bad", "failed");
    let mut term = Term::open(&root, 120, 45, &[]);
    term.wait_for_text(" by ");
    term.send(b"T");
    term.wait_for_text("by status");
    let row = |screen: &shared::screen::Screen, word: &str| {
        (0..45).map(|row| screen.row_text(row)).find(|row| row.trim_start().starts_with(word)).unwrap_or_default()
    };
    term.wait_for("the counts", |screen| {
        row(screen, "sessions ").contains('3')
            || (0..45).any(|n| screen.row_text(n).contains("sessions") && screen.row_text(n).contains(" 3"))
    });
    assert!(
        term.look(|screen| (0..45).any(|n| screen.row_text(n).contains("success") && screen.row_text(n).contains("50 %"))),
        "{}",
        term.text()
    );
    for word in ["completed", "failed", "active", "review", "recordings"] {
        term.wait_for_text(word);
    }
    term.send(b"q");
    term.wait_for_text("quit");
    quit(&mut term);
}
