//! The mouse: on rows, titles, tiles, keys in the last line, and in lists of other views.

use super::{click, find, open, quit, wait_cursor, wait_place};
use crate::support::term::DETACH;
use crate::support::{BASH, Root, wait_until};

#[test]
fn clicks_select_and_open_the_wheel_moves_and_keys_in_the_footer_are_pressed() {
    let root = Root::new();
    for name in ["aaa", "bbb", "ccc"] {
        root.start(name, BASH);
    }
    let mut term = open(&root);
    term.wait_for_text("3 active");
    // a click on the titles sorts
    let titles = wait_place(&term, "status");
    click(&term, titles);
    term.wait_for_text("sorted by name");
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
