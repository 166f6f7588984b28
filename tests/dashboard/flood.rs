//! Many sessions that print without a pause: the dashboard goes on.

use super::{ESC, cursor_row, find, quit, wait_cursor};
use crate::support::term::text_of;
use crate::support::{Root, Term};

const FLOODS: usize = 30;

#[test]
fn keys_are_answered_while_thirty_sessions_flood() {
    let root = Root::new();
    for n in 0..FLOODS {
        // as fast as it can, but for a breath now and then: there are tests beside this one
        root.start_script(&format!("flood{n:02}"), "trap 'exit 3' INT; while :; do seq 1 2000; sleep 0.05; done");
    }
    let mut term = Term::open(&root, 120, 40, &[]);
    term.wait_for_text("30 active");
    term.send(b"S");
    term.wait_for_text("sorted by name");
    term.send(b"g");
    wait_cursor(&term, "flood00");
    // what is looked at moves on while keys are pressed
    let mut seen = Vec::new();
    for n in 1..FLOODS {
        term.send(b"j");
        term.wait_for("the next row", |screen| cursor_row(screen).is_some_and(|row| row.contains(&format!("flood{n:02}"))));
        seen.push(term.text());
    }
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
    term.wait_for("numbers in the preview", |screen| {
        (2..38).any(|row| screen.row_text(row).rsplit('│').next().is_some_and(|text| text.trim().parse::<u32>().is_ok()))
    });
    // tiles, the filter, the detail and a question
    term.send(b"t");
    term.wait_for_text("┏");
    let still = term.look(text_of);
    term.wait_for("tiles that move", |screen| text_of(screen) != still);
    term.send(b"t/flood07\r");
    wait_cursor(&term, "flood07");
    term.send(b"i");
    term.wait_for_text("session · flood07");
    term.send(b"q");
    wait_cursor(&term, "flood07");
    // typing beside it: the program is in the foreground, and hears of ctrl-c
    term.send(b"\t");
    term.wait_for_text("ctrl-b d list");
    term.send(b"\x03");
    root.wait_status("flood07", "failed");
    term.wait_for_text("it ended");
    term.send(ESC);
    term.wait_for_text("n new");
    term.send(ESC);
    term.wait_for("all of them", |screen| find(screen, "/flood07").is_none());
    term.send(b"A");
    term.wait_for_text("30 selected");
    // its row is new only when it has been asked for again
    term.wait_for_text("29 active 1 ended");
    term.send(b"x");
    term.wait_for_text("End 29 sessions?");
    term.send(b"y");
    term.wait_for_text("29 sessions ended");
    quit(&mut term);
}
