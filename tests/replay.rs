//! Replay: the player over real recordings, and looking back from an attached terminal.

use crate::support::term::contains;
use crate::support::{BASH, Root, Term, wait_until};

const LEFT: &[u8] = b"\x1b[D";
const RIGHT: &[u8] = b"\x1b[C";

/// A session that has printed this and ended.
#[track_caller]
fn recorded(root: &Root, name: &str, script: &str) {
    root.start_script(name, script);
    root.run(&["wait", name, "--for", "exit"]).ok();
}

/// Presses a key until what is shown is as wanted; each time something else has to be shown.
#[track_caller]
fn step_until(term: &Term, key: &[u8], is_there: impl Fn(&str) -> bool) {
    loop {
        let before = term.bytes().len();
        if is_there(&term.text()) {
            return;
        }
        term.send(key);
        // perhaps only the cursor has moved
        wait_until("something else to be seen", || term.bytes().len() != before);
    }
}

/// Three screens, one after the other: each line that is typed makes the next.
const PAGES: &str = "printf '\\e[?1049h'; for n in one two three; do printf '\\e[H\\e[2Jpage %s' $n; read; done; printf '\\e[?1049l'";

#[test]
fn it_plays_to_the_end_and_steps_and_seeks() {
    let root = Root::new();
    recorded(&root, "one", "for n in 1 2 3 4; do echo line-$n; sleep 0.2; done");
    let mut term = Term::open(&root, 80, 24, &["replay", "one", "--speed", "8"]);
    term.wait_for("the last screen, paused", |screen| screen.row_text(3) == "line-4" && screen.row_text(23).contains('⏸'));
    // the end of the program is no change: one step back is before its last line
    term.send(LEFT);
    term.wait_for("a step back", |screen| screen.row_text(2) == "line-3" && screen.row_text(3).is_empty());
    term.send(LEFT);
    term.send(LEFT);
    term.wait_for("two more", |screen| screen.row_text(0) == "line-1" && screen.row_text(1).is_empty());
    term.send(RIGHT);
    term.wait_for("a step forward", |screen| screen.row_text(1) == "line-2" && screen.row_text(2).is_empty());
    term.send(b"0");
    term.wait_for("the start", |screen| screen.row_text(0).is_empty() && screen.row_text(23).contains("0:00:00 /"));
    term.send(b"G");
    term.wait_for_text("line-4");
    term.send(b"t50%\r");
    term.wait_for("half of it", |screen| screen.row_text(1) == "line-2" && screen.row_text(3).is_empty());
    term.send(b"+++");
    term.wait_for_text("64×");
    term.send(b"?");
    term.wait_for_text("play, pause");
    term.send(b"qq");
    assert_eq!(term.wait_exit(), 0);
    assert!(term.is_cooked() && !term.is_alternate());
}

#[test]
fn commands_are_jumped_to_and_shown_with_their_ends() {
    let root = Root::new();
    let command = |text: &str, code: u32| {
        format!("printf '$ \\e]133;B\\a{text}\\r\\n\\e]133;C\\a'; sleep 0.05; printf 'did {text}\\n\\e]133;D;{code}\\a'; sleep 0.05; ")
    };
    recorded(&root, "one", &format!("{}{}true", command("first", 0), command("second", 3)));
    let term = Term::open(&root, 80, 24, &["replay", "one", "--at", "start"]);
    term.send(b" 0}");
    term.wait_for("the first", |screen| screen.row_text(23).contains("❯ first") && screen.row_text(1).is_empty());
    term.send(b"}");
    term.wait_for("the second", |screen| screen.row_text(23).contains("❯ second") && screen.row_text(3).is_empty());
    term.send(b"}");
    term.wait_for_text("there is no command after this");
    term.send(b"G");
    term.wait_for_text("❯ second ✗ 3");
    term.send(b"{{");
    term.wait_for("the first again", |screen| screen.row_text(23).contains("❯ first"));
}

#[test]
fn other_sizes_are_shown() {
    let root = Root::new();
    let script = "printf '%0120d' 7; printf '\\e[40;1Hthe bottom'; read; printf '\\e[H\\e[2Jsmall now'";
    root.run(&["new", "-d", "-n", "one", "--size", "120x40", "--", "bash", "-c", script]).ok();
    root.wait_screen("one", "the bottom");
    let mut window = Term::open(&root, 60, 10, &["attach", "one"]);
    wait_until("the window's size", || root.session("one")["size"]["cols"] == 60);
    window.send(b"\r");
    assert_eq!(window.wait_exit(), 0);
    let term = Term::open(&root, 160, 24, &["replay", "one", "--at", "end"]);
    term.wait_for("the small screen, with its edge", |screen| {
        screen.row_text(0).starts_with("small now") && screen.row_text(10).starts_with("──")
    });
    term.send(b"{g");
    term.wait_for_text("0:00:00 /");
    // nothing is to be seen yet; then all of it, of which the cursor is at the bottom
    step_until(&term, RIGHT, |text| text.contains("the bottom"));
    term.wait_for_text("120×40, window 160×22, panning");
    term.send(b"z");
    term.wait_for("all of it in small", |screen| screen.row_text(0).starts_with("████"));
    term.send(b"zKKKKKKKKKK");
    term.wait_for("the top", |screen| screen.row_text(0).starts_with("0000000"));
    term.resize(60, 20);
    term.wait_for_text("0:00:0");
}

#[test]
fn a_transcript_is_played_too() {
    let root = Root::new();
    root.record("one", &[]);
    root.run(&["exec", "-s", "one", "-l", "python", "print('from ' + 'python')"]).ok();
    let term = Term::open(&root, 80, 24, &["replay", "one", "-l", "python", "--at", "end"]);
    term.wait_for_text("from python");
    term.wait_for_text("❯ print('from '");
    // it lives, so its end is live
    term.wait_for_text("● live");
    root.run(&["exec", "-s", "one", "-l", "python", "print('a second ' + 'call')"]).ok();
    term.wait_for_text("a second call");
}

#[test]
fn a_live_one_is_followed_until_it_ends() {
    let root = Root::new();
    root.start("one", &["cat"]);
    root.run(&["send", "one", "--enter", "before"]).ok();
    root.wait_screen("one", "before\nbefore");
    let term = Term::open(&root, 80, 24, &["replay", "one", "--speed", "64"]);
    term.wait_for_text("● live");
    root.run(&["send", "one", "--enter", "meanwhile"]).ok();
    term.wait_for_text("meanwhile\nmeanwhile");
    term.send(b" ");
    term.wait_for("the pause", |screen| screen.row_text(23).contains('⏸'));
    root.run(&["send", "one", "--enter", "unseen"]).ok();
    root.wait_screen("one", "unseen\nunseen");
    term.send(b"l");
    term.wait_for_text("unseen\nunseen");
    root.run(&["kill", "one"]).ok();
    term.wait_for_text("the program ended here: signal HUP");
    term.wait_for("the end", |screen| screen.row_text(23).contains('⏸'));
}

#[test]
fn text_is_searched() {
    let root = Root::new();
    recorded(&root, "one", "echo alpha; sleep 0.05; clear; echo beta; sleep 0.05; clear; echo gamma");
    let term = Term::open(&root, 80, 24, &["replay", "one", "--at", "end"]);
    term.wait_for_text("gamma");
    term.send(b"/ALPHA\r");
    term.wait_for_text("no \"ALPHA\" after this");
    term.send(b"g/beta\r");
    term.wait_for("the match", |screen| screen.row_text(0) == "beta");
    term.send(b"/alpha\r");
    term.wait_for_text("no \"alpha\" after this");
    term.send(b"N");
    term.wait_for("the match before", |screen| screen.row_text(0) == "alpha");
}

#[test]
fn what_cannot_be_played_is_said() {
    let root = Root::new();
    root.record("bare", &[]);
    recorded(&root, "one", "echo hello");
    assert!(root.run(&["replay", "one"]).refused(2).contains("needs a terminal"));
    let refused = |args: &[&str], code: i32, text: &str| {
        let mut term = Term::open(&root, 80, 24, args);
        assert_eq!(term.wait_exit(), code, "{args:?}: {}", term.text());
        assert!(term.text().contains(text), "{args:?}: {}", term.text());
    };
    refused(&["replay", "nobody"], 3, "nobody");
    refused(&["replay", "bare"], 4, "nothing of session bare is recorded");
    refused(&["replay", "one", "-l", "node"], 4, "no node runtime");
    refused(&["replay", "one", "--at", "moon"], 2, "is not a place");
    refused(&["replay", "one", "--at", "5h"], 2, "that is not in the recording");
    refused(&["replay", "one", "--speed", "3"], 2, "is not a speed");
}

#[test]
fn a_daemon_that_dies_is_replaced() {
    let root = Root::new();
    recorded(&root, "one", "echo first; sleep 0.05; echo second");
    let term = Term::open(&root, 80, 24, &["replay", "one", "--at", "end"]);
    term.wait_for_text("second");
    root.kill_daemon();
    term.send(LEFT);
    term.wait_for("a step back", |screen| screen.row_text(0) == "first" && screen.row_text(1).is_empty());
}

#[test]
fn promise_12_nothing_recorded_acts_on_the_terminal() {
    let root = Root::new();
    let hostile = "printf '\\e]52;c;aGVsbG8=\\a\\e]2;a title\\a\\e]8;;http://x\\e\\\\link\\e]8;;\\e\\\\\\e[c\\e[6n\\eP+q544e\\e\\\\\\e]11;?\\a\\e[?1003h\\e[21t\\eP1$r0m\\e\\\\\\e_Gi=1;x\\e\\\\\\x07shown\\n'; sleep 0.1; echo after";
    recorded(&root, "one", hostile);
    let mut term = Term::open(&root, 80, 24, &["replay", "one", "--speed", "8"]);
    term.wait_for("all of it", |screen| screen.row_text(23).contains('⏸'));
    assert!(term.text().contains("linkshown"), "{}", term.text());
    term.send(LEFT);
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    let bytes = term.bytes();
    for forbidden in [
        &b"\x1b]"[..],
        b"\x1bP",
        b"\x1b_",
        b"\x1b[c",
        b"\x1b[6n",
        b"\x1b[?1003h",
        b"\x1b[21t",
        b"\x07",
        b"aGVsbG8",
        b"a title",
        b"http://x",
    ] {
        assert!(!contains(&bytes, forbidden), "{:?} got out", String::from_utf8_lossy(forbidden));
    }
}

#[test]
fn looking_back_shows_what_scrolled_away() {
    let root = Root::new();
    root.start("one", BASH);
    for more in [&[][..], &["--read-only"]] {
        let term = Term::open(&root, 80, 24, &[&["attach", "one"], more].concat());
        term.wait_for_text("$");
        root.run(&["send", "one", "--enter", "clear; seq 1 500"]).ok();
        term.wait_for_text("\n500\n$");
        term.send(b"\x02[");
        term.wait_for_text("q back to the program");
        term.send(b"k");
        term.wait_for("a line up", |screen| screen.row_text(23).contains("[1/") && screen.row_text(22) == "500");
        term.send(b"/321\r");
        term.wait_for_text("\n321\n");
        term.send(b"g");
        term.wait_for("the top", |screen| (0..23).any(|row| screen.row_text(row) == "2"));
        term.send(b"q");
        term.wait_for("the live screen", |screen| !screen.row_text(23).contains("q back"));
        root.run(&["send", "one", "--enter", "clear; echo again"]).ok();
        term.wait_for("the program", |screen| screen.row_text(0) == "again");
    }
    let term = Term::open(&root, 80, 24, &["attach", "one"]);
    term.wait_for_text("again");
    term.send(b"\x02?");
    term.wait_for_text("[ look back");
    term.send(b"\x02\x1b[5~");
    term.wait_for_text("q back to the program");
    // what is typed right behind it is for the program
    term.send(b"qecho typed-$((40+2))\r");
    term.wait_for_text("typed-42");
}

#[test]
fn looking_back_goes_through_time_where_the_whole_screen_is_drawn() {
    let root = Root::new();
    root.start_script("one", PAGES);
    let mut term = Term::open(&root, 80, 24, &["attach", "one"]);
    term.wait_for_text("page one");
    term.send(b"\r");
    term.wait_for_text("page two");
    term.send(b"\r");
    term.wait_for_text("page three");
    term.send(b"\x02[");
    term.wait_for_text("↑ back in time");
    // the last row is ours, so the first line up is one of the screen
    term.send(b"kk");
    term.wait_for("an earlier moment", |screen| screen.row_text(23).contains('◀'));
    step_until(&term, b"k", |text| text.contains("page one"));
    // forward until the present, which is live
    step_until(&term, b"j", |text| !text.contains('◀'));
    term.wait_for("the live screen", |screen| {
        screen.row_text(0) == "page three" && screen.is_alternate() && screen.row_text(23).is_empty()
    });
    term.send(b"\r");
    assert_eq!(term.wait_exit(), 0);
    assert!(term.text().contains("ended"), "{}", term.text());
}

/// Editors write only what differs from what stood there: the second number is all that is written of its line.
const CHANGED: &str = "printf '\\e[?1049h\\e[H\\e[2Jtext line 1300'; read; printf '\\e[1;11H2990'; read; printf '\\e[H\\e[2Jelsewhere'; read; \
     printf '\\e[?1049l'; exec cat";

#[test]
fn words_that_were_seen_are_found_though_they_were_never_written_as_one() {
    let root = Root::new();
    root.start_script("one", CHANGED);
    let term = Term::open(&root, 80, 24, &["attach", "one"]);
    term.wait_for_text("text line 1300");
    term.send(b"\r");
    term.wait_for_text("text line 2990");
    term.send(b"\r");
    term.wait_for_text("elsewhere");
    term.send(b"\x02[");
    term.wait_for_text("↑ back in time");
    term.send(b"/line 2990\r");
    term.wait_for("the match", |screen| screen.row_text(0) == "text line 2990");
    term.send(b"n");
    term.wait_for_text("no \"line 2990\" before this");
    term.send(b"/line 1300\r");
    term.wait_for("what was written", |screen| screen.row_text(0) == "text line 1300");
    term.send(b"q");
    term.wait_for("the live screen", |screen| screen.row_text(0) == "elsewhere" && screen.row_text(23).is_empty());
    // and when it has left the whole screen: none of it is in a line any more
    term.send(b"\r");
    term.wait_for("the program to have left that screen", |screen| !screen.is_alternate());
    root.run(&["send", "one", "--enter", "typed"]).ok();
    term.wait_for_text("typed\ntyped");
    term.send(b"\x02[");
    term.wait_for_text("q back to the program");
    term.send(b"/nowhere\r");
    term.wait_for_text("no \"nowhere\" before this");
    term.wait_for_text("typed\ntyped");
    term.send(b"/line 2990\r");
    term.wait_for("the match", |screen| screen.row_text(0) == "text line 2990");
    term.send(b"q");
    let player = Term::open(&root, 80, 24, &["replay", "one", "--at", "start"]);
    player.wait_for_text("? keys");
    player.send(b" g/line 2990\r");
    player.wait_for("the match after", |screen| screen.row_text(0) == "text line 2990");
    player.send(b"G/else\r");
    player.wait_for_text("no \"else\" after this");
    player.send(b"N");
    player.wait_for("what was written", |screen| screen.row_text(0).starts_with("else"));
    player.send(b"/2990\r");
    player.wait_for_text("no \"2990\" after this");
    player.send(b"N");
    player.wait_for("the match before", |screen| screen.row_text(0) == "text line 2990");
}

#[test]
fn a_program_that_ends_while_one_looks_back_is_told() {
    let root = Root::new();
    root.start("one", &["cat"]);
    let mut term = Term::open(&root, 80, 24, &["attach", "one"]);
    root.run(&["send", "one", "--enter", "hello"]).ok();
    term.wait_for_text("hello\nhello");
    term.send(b"\x02[");
    term.wait_for_text("q back to the program");
    root.run(&["send", "one", "--key", "ctrl-d"]).ok();
    term.wait_for_text("the program has ended: exit code 0");
    term.send(b"k");
    term.wait_for_text("hello");
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    assert!(term.text().contains("one ended"), "{}", term.text());
}

#[test]
fn the_dashboard_plays_what_has_ended() {
    let root = Root::new();
    root.start_script("over", "echo it-was-$((40+2)); exit 0");
    root.run(&["wait", "over", "--for", "exit", "--timeout", "20s"]).ok();
    let mut term = Term::open(&root, 80, 24, &[]);
    term.wait_for_text("by who needs you");
    // its last screen is in the preview too: the player is known by its line of keys
    for key in [b"\r", b"r"] {
        term.wait_for_text("it-was-42");
        term.send(key);
        term.wait_for_text("q leave");
        term.wait_for_text("it-was-42");
        term.send(b"q");
        term.wait_for_text("by who needs you");
    }
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
}
