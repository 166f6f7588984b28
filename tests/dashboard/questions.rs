//! Questions that sessions ask: looking at one leaves it, an answer or a dismissal clears it.

use super::{open, quit, wait_cursor};
use crate::support::{BASH, Root, Term, wait_until};

fn state(root: &Root, name: &str) -> String {
    root.session(name)["needs"]["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn resting_on_a_question_leaves_it_and_d_dismisses_it() {
    let root = Root::new();
    root.start_script("agent", "printf '\\e]9;May I go on?\\a'; cat");
    root.start("other", &["sleep", "1000"]);
    wait_until("the question", || state(&root, "agent") == "waiting_answer");
    let mut term = open(&root);
    term.wait_for_text("May I go on?");
    wait_cursor(&term, "agent");
    // longer than a look takes: the cursor goes there and back again until the daemon has heard of other looks
    std::thread::sleep(std::time::Duration::from_millis(1700));
    term.send(b"j");
    wait_cursor(&term, "other");
    term.send(b"k");
    wait_cursor(&term, "agent");
    assert_eq!(state(&root, "agent"), "waiting_answer");
    term.send(b"d");
    term.wait_for_text("agent dismissed");
    wait_until("no question", || state(&root, "agent") != "waiting_answer");
    // a new daemon reads the question in the recording again, and knows that it was dismissed
    root.kill_daemon();
    assert_ne!(state(&root, "agent"), "waiting_answer");
    quit(&mut term);
}

#[test]
fn the_prefix_is_ours_while_its_help_is_open() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = Term::open(&root, 120, 30, &[]);
    wait_cursor(&term, "api");
    term.send(b"\t");
    term.send(b"echo one-$((40+2))\r");
    term.wait_for_text("one-42");
    term.send(b"\x02?");
    term.wait_for_text("next session");
    term.send(b"\x02d");
    term.wait_for("the list", |screen| super::cursor_row(screen).is_some_and(|row| row.contains("api")));
    term.wait_for("no help", |screen| super::find(screen, "next session").is_none());
    term.send(b"\r");
    term.send(b"echo two-$((40+3))\r");
    term.wait_for_text("two-43");
    assert!(!term.text().contains("decho"), "{}", term.text());
    term.send(b"\x02d");
    quit(&mut term);
}
