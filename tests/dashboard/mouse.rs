//! The mouse: on rows, titles, tiles, keys in the last line, and in lists of other views.

use super::{TAB, click, copied, drag, find, open, quit, wait_cursor, wait_place};
use crate::support::term::DETACH;
use crate::support::{BASH, Root, Term, wait_until};

#[test]
fn clicks_select_and_open_the_wheel_moves_and_keys_in_the_footer_are_pressed() {
    let root = Root::new();
    for name in ["aaa", "bbb", "ccc"] {
        root.start(name, BASH);
    }
    let mut term = open(&root);
    term.wait_for_text("3 active");
    // a click on a title sorts by its column
    for (title, order) in [("idle", "last active"), ("status", "who needs you"), ("name", "name")] {
        let title = wait_place(&term, title);
        click(&term, title);
        term.wait_for_text(&format!("sorted by {order}"));
    }
    let third = wait_place(&term, " ccc");
    click(&term, third);
    wait_cursor(&term, "ccc");
    term.send(b"\x1b[<64;10;3M");
    wait_cursor(&term, "bbb");
    term.send(b"\x1b[<64;10;3M");
    wait_cursor(&term, "aaa");
    term.send(b"\x1b[<65;10;3M");
    wait_cursor(&term, "bbb");
    // twice is once more
    let first = wait_place(&term, " aaa");
    click(&term, first);
    click(&term, first);
    wait_until("a client", || root.session("aaa")["clients"] == 1);
    term.send(DETACH);
    term.wait_for_text("detached from aaa");
    // any key takes the message away, then keys are shown in its place
    term.send(b"g");
    let pause = wait_place(&term, "p pause");
    click(&term, pause);
    term.wait_for_text("aaa paused");
    wait_until("paused", || root.status("aaa").0 == "paused");
    term.send(b"g");
    let help = wait_place(&term, "? keys");
    click(&term, help);
    term.wait_for_text("attach, only to watch");
    // beside it means: not this
    click(&term, (15, 1));
    term.wait_for("no help", |screen| find(screen, "attach, only to watch").is_none());
    let detail = wait_place(&term, "i detail");
    click(&term, detail);
    let events = wait_place(&term, "events");
    click(&term, events);
    term.wait_for_text("kinds: all");
    term.send(b"qm");
    let mut back = None;
    term.wait_for("the last line of the messages", |screen| {
        back = find(screen, "j scroll  ? keys  esc back");
        back.is_some()
    });
    let (row, col) = back.expect("just found");
    click(&term, (row, col + 18));
    let grid = wait_place(&term, "t grid");
    click(&term, grid);
    // the tile that is clicked is the one that is meant
    term.wait_for_text("┏");
    let tile = wait_place(&term, "ccc");
    click(&term, (tile.0 + 2, tile.1));
    term.wait_for("its tile in focus", |screen| find(screen, "┏").is_some_and(|(row, _)| row == tile.0));
    click(&term, (tile.0 + 2, tile.1 + 1));
    click(&term, (tile.0 + 2, tile.1 + 1));
    wait_until("a client", || root.session("ccc")["clients"] == 1);
    term.send(DETACH);
    term.wait_for_text("detached from ccc");
    term.send(b"g");
    let out = wait_place(&term, "q quit");
    click(&term, out);
    assert_eq!(term.wait_exit(), 0);
    super::assert_given_back(&term);
    let mut term = open(&root);
    quit(&mut term);
}

#[test]
fn what_lies_over_the_list_is_clicked_too() {
    let root = Root::new();
    root.start("aaa", &["sleep", "1000"]);
    let mut term = open(&root);
    wait_cursor(&term, "aaa");
    // an action of the palette, found by typing or by the wheel
    term.send(b":pause");
    let (row, col) = wait_place(&term, "pause, or go on");
    click(&term, (row, col));
    term.wait_for_text("aaa paused");
    wait_until("paused", || root.status("aaa").0 == "paused");
    term.send(b":");
    term.wait_for_text("actions");
    term.send(b"\x1b[<65;50;10M\x1b[<65;50;10M");
    click(&term, (0, 0));
    term.wait_for("no palette", |screen| find(screen, "actions").is_none() || find(screen, "❯").is_none());
    // a question: no, then yes
    term.send(b"x");
    let no = wait_place(&term, "any other key: leave it");
    click(&term, no);
    term.wait_for_text("nothing was done");
    assert_eq!(root.status("aaa").0, "paused");
    term.send(b"x");
    let yes = wait_place(&term, "y: end");
    click(&term, yes);
    term.wait_for_text("aaa ended");
    wait_until("ended", || root.status("aaa").0 == "ended");
    // the form: a recent one, another name, started from its last line
    term.send(b"n");
    let recent = wait_place(&term, "takes one you had before");
    click(&term, recent);
    term.wait_for_text("1 of 1");
    let (row, col) = wait_place(&term, "made from the workspace");
    click(&term, (row, col));
    term.send(b"clicked");
    term.wait_for_text("clicked");
    let start = wait_place(&term, "ctrl-s");
    click(&term, start);
    term.wait_for_text("clicked is running");
    assert_eq!(root.session("clicked")["command"], root.session("aaa")["command"]);
    // the wheel in what was said, and in the keys
    term.send(b"m");
    term.wait_for_text("esc back");
    let last = wait_place(&term, "▸");
    term.send(b"\x1b[<64;10;5M");
    term.wait_for("the cursor further up", |screen| find(screen, "▸").is_some_and(|place| place.0 < last.0));
    term.send(b"q?");
    term.wait_for_text("↓ more");
    // further than there is anything: it stops at the end
    term.send("\x1b[<65;50;10M".repeat(40).as_bytes());
    term.wait_for_text("↑ more");
    term.send(b"\x1b");
    term.wait_for("the list", |screen| find(screen, "↑ more").is_none());
    quit(&mut term);
}

#[test]
fn a_drag_is_the_programs_to_its_end_or_copies() {
    let root = Root::new();
    root.start_script("asks", "stty raw -echo; printf '\\e[?1002h\\e[?1006hready-asks\\r\\n'; exec cat -v");
    root.wait_screen("asks", "ready-asks");
    root.start("plain", BASH);
    root.run(&["send", "plain", "--enter", "printf 'first-%s\\nsecond-%s\\n' line line"]).ok();
    root.wait_screen("plain", "second-line");
    let mut term = Term::open(&root, 120, 30, &[]);
    term.wait_for_text("2 active");
    term.send(b"S");
    term.wait_for_text("sorted by name");
    term.send(b"g");
    wait_cursor(&term, "asks");
    term.send(TAB);
    term.wait_for_text("ctrl-b d list");
    let (row, col) = wait_place(&term, "ready-asks");
    // let go over the list: the program that saw the press sees the release, at its own edge
    drag(&term, (row + 3, col + 4), (row + 4, col + 6), (row + 5, 2), 0);
    term.wait_for_text("^[[<0;5;4M^[[<32;7;5M^[[<0;1;6m");
    assert!(term.look(super::cursor_row).is_some_and(|row| row.contains("asks")), "the list has not moved");
    // with shift it is the user's
    drag(&term, (row, col), (row, col + 4), (row, col + 4), 4);
    term.wait_for_text("copied 1 line");
    assert_eq!(copied(&term).as_deref(), Some("ready"));
    assert!(!root.screen("asks").contains("<4;"), "{}", root.screen("asks"));
    // over one that does not ask for it, it always is
    term.send(b"\x02n");
    term.wait_for_text("second-line");
    let (row, col) = wait_place(&term, "first-line");
    drag(&term, (row, col), (row + 1, col), (row + 1, col + 5), 0);
    term.wait_for_text("copied 2 lines");
    assert_eq!(copied(&term).as_deref(), Some("first-line\nsecond"));
    term.send(b"echo still-$((40+2))\r");
    term.wait_for_text("still-42");
    term.send(b"\x02x");
    wait_cursor(&term, "plain");
    quit(&mut term);
}
