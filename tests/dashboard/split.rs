//! The terminal beside the list: typing, sizes, switching, pastes, the mouse, looking back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{TAB, find, open, quit, wait_cursor, wait_place};
use crate::support::term::{CTRL_B, DETACH, contains};
use crate::support::{BASH, Root, Term, wait_until};

/// Shows the bytes it gets.
fn shower(root: &Root, name: &str, modes: &str) {
    root.start_script(name, &format!("stty raw -echo; printf '{modes}ready-{name}\\r\\n'; exec cat -v"));
    root.wait_screen(name, &format!("ready-{name}"));
}

/// Opens the split on a session.
#[track_caller]
fn beside(term: &Term, name: &str) {
    term.send(format!("/{name}\r").as_bytes());
    wait_cursor(term, name);
    term.send(TAB);
    term.wait_for_text("ctrl-b d list");
}

#[test]
fn typing_beside_the_list_with_the_size_of_the_pane() {
    let root = Root::new();
    root.start("api", BASH);
    root.start("web", BASH);
    root.run(&["send", "web", "--enter", "PS1='web> '"]).ok();
    let mut term = Term::open(&root, 120, 30, &[]);
    wait_cursor(&term, "api");
    term.send(TAB);
    // typed before it is there
    term.send(b"echo one-$((40+2)); stty size\r");
    term.wait_for_text("one-42");
    term.wait_for_text("27 90");
    assert!(term.text().contains("web"), "the list is beside it");
    wait_until("the size", || root.session("api")["size"]["cols"] == 90);
    // the terminal's own cursor is the program's
    let (row, col) = wait_place(&term, "27 90");
    term.wait_for("the cursor behind the prompt", |screen| {
        (screen.cursor().row, screen.cursor().col, screen.cursor().visible) == (row + 1, col + 2, true)
    });
    term.resize(140, 40);
    wait_until("the size", || root.session("api")["size"]["cols"] == 110);
    term.send(b"stty size\r");
    term.wait_for_text("37 110");

    term.send(CTRL_B);
    term.send(b"n");
    term.wait_for_text("web>");
    term.send(b"echo two-$((40+3))\r");
    term.wait_for_text("two-43");
    root.wait_screen("web", "two-43");
    wait_until("one of them", || root.session("api")["clients"] == 0 && root.session("web")["clients"] == 1);
    term.send(b"\x02p");
    term.wait_for_text("one-42");
    term.send(b"\x02n");
    term.wait_for_text("two-43");
    // the prefix twice is the key itself
    term.send(b"\x02\x02");
    // the list takes the keys again, and the terminal follows its cursor
    term.send(DETACH);
    term.wait_for_text("enter types here");
    term.send(b"k");
    wait_cursor(&term, "api");
    term.wait_for_text("one-42");
    term.send(b"\r");
    term.wait_for_text("ctrl-b d list");
    term.send(b"echo three-$((40+4))\r");
    term.wait_for_text("three-44");
    // with the whole window and back
    term.send(b"\x02z");
    wait_until("the size", || root.session("api")["size"]["cols"] == 140);
    term.send(b"stty size\r");
    term.wait_for_text("40 140");
    term.send(DETACH);
    term.wait_for_text("detached from api");
    wait_until("the size", || root.session("api")["size"]["cols"] == 110);
    term.wait_for_text("ctrl-b d list");
    term.send(DETACH);
    term.wait_for_text("enter types here");
    // its end is said, and nothing is typed into it any more
    term.send(b"x");
    term.wait_for_text("End api?");
    term.send(b"y");
    term.wait_for_text("1 ended");
    term.send(TAB);
    wait_until("nobody", || root.session("web")["clients"] == 0);
    quit(&mut term);
}

#[test]
fn a_paste_is_bracketed_for_those_that_asked_and_the_mouse_is_told_to_those_that_asked() {
    let root = Root::new();
    shower(&root, "plain", "");
    shower(&root, "asks", "\\e[?2004h\\e[?1000h\\e[?1006h");
    let mut term = Term::open(&root, 120, 30, &[]);
    term.wait_for_text("2 active");
    beside(&term, "plain");
    term.wait_for_text("ready-plain");
    term.send(b"\x1b[200~one\ntwo\x1b[201~");
    term.wait_for_text("one^Mtwo");
    assert!(!term.text().contains("200~"), "{}", term.text());
    // keys as a terminal writes them
    term.send(b"\x1b[A\x1bOP\x1b[5~\xc3\xa9\x1bx\x03");
    term.wait_for_text("^[[A^[OP^[[5~M-CM-)^[x^C");
    term.send(DETACH);
    term.wait_for_text("enter types here");
    term.send(b"\x1b");
    term.wait_for_text("split");
    term.send(b"\x1b");
    term.wait_for("no filter", |screen| find(screen, "/plain").is_none());
    beside(&term, "asks");
    let (row, col) = wait_place(&term, "ready-asks");
    term.send(b"\x1b[200~text\x1b[201~");
    term.wait_for_text("^[[200~text^[[201~");
    // in the pane: column 5, row 6 of the program
    let (x, y) = (col + 5, row + 6);
    term.send(format!("\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m\x1b[<65;{x};{y}M").as_bytes());
    term.wait_for_text("^[[<0;5;6M^[[<0;5;6m^[[<65;5;6M");
    // a click on the list is the list's
    let (row, col) = wait_place(&term, "asks");
    super::click(&term, (row, col));
    term.wait_for_text("enter types here");
    term.send(TAB);
    term.wait_for_text("quit");
    quit(&mut term);
    assert!(!root.screen("asks").contains("<0;1;"));
}

#[test]
fn looking_back_beside_the_list_copies_to_the_clipboard() {
    let root = Root::new();
    root.start("api", BASH);
    root.run(&["send", "api", "--enter", "for n in $(seq 100); do echo line-$n-; done"]).ok();
    root.wait_screen("api", "line-100-");
    let mut term = Term::open(&root, 120, 30, &[]);
    wait_cursor(&term, "api");
    term.send(TAB);
    term.wait_for_text("ctrl-b d list");
    term.wait_for_text("line-100-");
    term.send(b"\x02[");
    term.wait_for_text("q back");
    assert!(term.text().contains("api"), "the list stays");
    term.send(b"g");
    term.wait_for_text("line-1-");
    term.wait_for("the list beside it", |screen| find(screen, "▸").is_some());
    term.send(b"v");
    term.wait_for_text("y copies");
    term.send(b"kky");
    term.wait_for_text("copied");
    let bytes = term.bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (_, rest) = text.split_once("\x1b]52;c;").expect("something for the clipboard");
    let copied = String::from_utf8(STANDARD.decode(rest.split(['\x1b', '\x07']).next().expect("an end")).expect("base64")).expect("text");
    let lines: Vec<&str> = copied.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.starts_with("line-")), "{copied:?}");
    term.send(b"q");
    term.wait_for_text("ctrl-b d list");
    term.send(b"echo still-$((40+2))\r");
    term.wait_for_text("still-42");
    // the wheel over a program that does not ask for the mouse looks back too
    let (row, col) = wait_place(&term, "still-42");
    term.send(format!("\x1b[<64;{};{}M", col + 1, row + 1).as_bytes());
    term.wait_for_text("q back");
    term.send(b"q");
    term.wait_for_text("ctrl-b d list");
    term.send(b"\x02x");
    term.wait_for_text("quit");
    quit(&mut term);
    assert!(contains(&bytes, b"\x1b]52;c;"));
}

#[test]
fn a_narrow_window_shows_one_at_a_time_and_who_has_no_control_says_so() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = Term::open(&root, 60, 20, &[]);
    wait_cursor(&term, "api");
    term.send(TAB);
    term.wait_for_text("ctrl-b d list");
    term.wait_for_text("$");
    let other = Term::open(&root, 90, 20, &["attach", "api"]);
    other.wait_for_text("$");
    term.wait_for_text("only watching");
    term.send(b"x");
    term.wait_for_text("another client has control");
    term.send(b"\x02t");
    term.wait_for("control", |screen| find(screen, "only watching").is_none());
    term.send(b"echo mine-$((40+2)); stty size\r");
    term.wait_for_text("mine-42");
    term.wait_for_text("17 60");
    term.send(DETACH);
    wait_cursor(&term, "api");
    term.send(b"\r");
    term.wait_for_text("mine-42");
    term.send(b"\x02x");
    wait_cursor(&term, "api");
    quit(&mut term);
    drop(other);
}

#[test]
fn a_program_that_ends_beside_the_list_leaves_the_list() {
    let root = Root::new();
    root.start("api", BASH);
    let mut term = open(&root);
    wait_cursor(&term, "api");
    term.send(TAB);
    term.wait_for_text("ctrl-b d list");
    term.send(b"exit 4\r");
    term.wait_for_text("it ended: exit code 4");
    // keys are the list's again: nothing is typed into nothing
    term.send(b"?");
    term.wait_for_text("attach, only to watch");
    term.send(b"\x1b");
    term.wait_for_text("enter plays it");
    term.send(TAB);
    term.wait_for_text("remove");
    quit(&mut term);
}
