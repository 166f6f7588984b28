//! The first minutes, and coming back: creating, attaching, finding things as they were left.

use std::os::unix::fs::PermissionsExt;

use super::{CTRL_S, ESC, TAB, assert_given_back, open, quit, remembered, wait_cursor};
use crate::support::term::DETACH;
use crate::support::{Root, Term, wait_until};

#[test]
fn the_first_run_teaches_creates_attaches_and_gives_the_terminal_back() {
    let root = Root::new();
    let mut term = Term::open(&root, 80, 24, &[]);
    term.wait_for_text("No sessions yet");
    let text = term.text();
    for hint in ["n   starts a program or your shell here", "ctrl-b d leaves it running", "?   shows every key"] {
        let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(&hint.split_whitespace().collect::<Vec<_>>().join(" ")), "{hint}:\n{text}");
    }
    assert!(term.is_alternate() && term.look(|screen| screen.modes().get(2004) && screen.modes().get(1006)));

    term.send(b"n");
    term.wait_for_text("new session");
    term.send(b"bash --norc --noprofile\tapi\r");
    wait_until("a client", || root.json(&["ls", "--json"])[0]["clients"] == 1);
    term.send(b"echo here-$((40+2)); stty size\r");
    term.wait_for_text("here-42");
    term.wait_for_text("24 80");
    term.send(DETACH);
    term.wait_for_text("detached from api");
    term.wait_for_text("1 active");
    wait_until("nobody", || root.session("api")["clients"] == 0);
    // and by the key that everybody knows
    wait_cursor(&term, "api");
    // what is typed right behind it is for the program
    term.send(b"\recho behind-$((40+2))\r");
    term.wait_for_text("behind-42");
    assert_eq!(root.session("api")["clients"], 1);
    term.send(b"exit 3\r");
    term.wait_for_text("api ended: exit code 3");
    term.wait_for_text("1 ended");
    quit(&mut term);
    assert!(
        std::fs::read_dir(root.join("state")).expect("lists").all(|file| !file
            .expect("a file")
            .file_name()
            .to_string_lossy()
            .starts_with("fault"))
    );
}

#[test]
fn a_session_is_created_behind_the_dashboard_and_a_refusal_is_said_where_it_was_typed() {
    let root = Root::new();
    let mut term = open(&root);
    term.send(b"n");
    term.wait_for_text("new session");
    term.send(b"sleep 1000\tquiet");
    // what is pasted is on one line
    term.send(b"\t\tpasted\x1b[200~ task\nin two lines\x1b[201~");
    term.wait_for_text("pasted task in two lines");
    term.send(CTRL_S);
    term.wait_for_text("quiet is running");
    wait_cursor(&term, "quiet");
    assert_eq!(
        (root.session("quiet")["clients"].clone(), root.session("quiet")["task"].clone()),
        (0.into(), "pasted task in two lines".into())
    );

    term.send(b"n");
    term.wait_for_text("new session");
    term.send(b"sleep 1000\tnowhere\t/there/is/none\r");
    term.wait_for_text("/there/is/none");
    term.wait_for("a reason in the form", |screen| {
        (0..30).any(|row| screen.row_text(row).contains("there/is/none") && screen.row_text(row).contains("folder"))
    });
    assert!(term.text().contains("new session"), "it can be mended:\n{}", term.text());
    // nor does a slip of the fingers leave anything behind
    term.send(b"\x15\x1b[Z\x1b[Z\x15sloop 1000\r");
    term.wait_for_text("no such program");
    assert_eq!(root.json(&["ls", "--json"]).as_array().map(Vec::len), Some(1));
    term.send(ESC);
    term.wait_for("the form gone", |screen| !(0..30).any(|row| screen.row_text(row).contains("new session")));
    term.send(b"m");
    term.wait_for_text("messages");
    term.wait_for_text("/there/is/none");
    // a recent one is taken again, under another name
    term.send(b"q");
    term.wait_for_text("by who needs you");
    term.send(b"n");
    term.wait_for_text("new session");
    term.send(b"\x0e");
    term.wait_for_text("1 of 1");
    term.send(b"\tagain");
    term.send(CTRL_S);
    term.wait_for_text("again is running");
    assert_eq!(root.session("again")["command"], root.session("quiet")["command"]);
    assert_eq!(root.session("again")["task"], root.session("quiet")["task"]);
    quit(&mut term);
}

#[test]
fn what_was_chosen_is_remembered() {
    let root = Root::new();
    for name in ["alpha", "beta", "gamma", "gimlet"] {
        root.start(name, &["sleep", "1000"]);
    }
    let mut term = open(&root);
    term.wait_for_text("4 active");
    term.send(b"/gm");
    term.wait_for_text("2 of 4");
    let text = term.text();
    assert!(text.contains("gamma") && text.contains("gimlet") && !text.contains("alpha"), "{text}");
    term.send(ESC);
    term.wait_for_text("alpha");
    term.send(b"/gam\r");
    term.wait_for_text("1 of 4");
    term.send(b"S");
    term.wait_for_text("sorted by name");
    term.send(b"B");
    term.wait_for_text("grouped by workspace");
    term.wait_for_text("/work  1");
    quit(&mut term);
    let file = root.join("state/dashboard.json");
    assert_eq!(std::fs::metadata(&file).expect("kept").permissions().mode() & 0o777, 0o600);
    assert_eq!((remembered(&root)["filter"].clone(), remembered(&root)["sort"].clone()), ("gam".into(), "name".into()));

    let mut term = open(&root);
    term.wait_for_text("1 of 4");
    term.wait_for_text("/work  1");
    wait_cursor(&term, "gamma");
    // one step out takes the filter away; the cursor stays where it is
    term.send(ESC);
    term.wait_for_text("gimlet");
    wait_cursor(&term, "gamma");
    let order: Vec<usize> = term.look(|screen| {
        ["alpha", "beta", "gamma", "gimlet"]
            .map(|name| (0..30).position(|row| screen.row_text(row).contains(&format!(" {name} "))).unwrap_or(99))
            .to_vec()
    });
    assert!(order.is_sorted() && !order.contains(&99), "{order:?}\n{}", term.text());
    for _ in 0..4 {
        term.send(b"B");
    }
    term.wait_for_text("grouped by nothing");
    quit(&mut term);
    assert_eq!(remembered(&root)["filter"], "");
}

#[test]
fn what_cannot_be_understood_is_said_and_everything_else_works() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    std::fs::write(root.join("state/dashboard.json"), "{\"sort\": 7, nonsense").expect("writes");
    root.config("[theme]\nname = \"purple\"\n[keys.dashboard]\nkil = [\"ctrl-k\"]\nrename = [\"hyper-x\"]\nkill = [\"ctrl-k\"]\n");
    let mut term = open_saying(&root, "dashboard.json");
    term.send(b"m");
    for sentence in
        ["dashboard.json", "theme.name: \"purple\" is not known", "keys.dashboard.kil: this is not an action", "\"hyper-x\" is not a key"]
    {
        term.wait_for_text(sentence);
    }
    term.send(b"q");
    wait_cursor(&term, "api");
    term.send(b"x");
    term.wait_for_text("quit");
    assert!(!term.text().contains("sure?"), "x is no longer the key for it");
    term.send(b"\x0b");
    term.wait_for_text("End api?");
    term.send(b"n");
    term.wait_for_text("nothing was done");
    quit(&mut term);
    assert_eq!(root.status("api").0, "active");
    assert_eq!(remembered(&root)["is_known"], true, "and it is mended");
    assert_given_back(&term);
}

/// A window that has something to say at once.
fn open_saying(root: &Root, what: &str) -> Term {
    let term = Term::open(root, 100, 30, &[]);
    term.wait_for_text(what);
    term
}

#[test]
fn a_file_of_settings_that_is_no_toml_is_said_in_one_sentence() {
    let root = Root::new();
    root.config("this is [ no toml\n");
    let mut term = open_saying(&root, "config.toml");
    term.wait_for_text("No sessions yet");
    term.send(TAB);
    quit(&mut term);
}
