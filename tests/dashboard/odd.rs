//! Promise 12 in the dashboard: whatever sessions are called, print or say, nothing but drawing reaches the terminal.

use serde_json::{Value, json};

use super::{CTRL_S, ESC, find, quit, wait_cursor};
use crate::hostile::{arsenal, trespass};
use crate::support::wire::Wire;
use crate::support::{BASH, Root, Term};

/// What the window itself turns on and off.
const OWN: [&str; 2] = ["\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h", "\x1b[?2026l\x1b[?2004l\x1b[?1006l\x1b[?1002l\x1b[?1000l"];

#[track_caller]
pub fn assert_only_drawing(term: &Term) {
    let mut text = String::from_utf8(term.bytes()).expect("text in UTF-8");
    // the background is asked for once, at the start
    text = text.replacen("\x1b]11;?\x1b\\\x1b[c", "", 1);
    for own in OWN {
        text = text.replace(own, "");
    }
    // that a session waits for somebody is told to the terminal on purpose, in words that do nothing
    while let Some(start) = text.find("\x1b]9;") {
        let end = start + text[start..].find("\x1b\\").expect("its end");
        let told = &text[start + 4..end];
        assert!(told.starts_with("shown: ") && !told.chars().any(|c| c.is_control() || c == '\u{202e}'), "{told:?}");
        text.replace_range(start..end + 2, "");
    }
    assert_eq!(trespass(text.as_bytes()), None);
}

#[test]
fn promise_12_nothing_named_or_told_or_printed_acts_on_the_terminal() {
    let root = Root::new();
    let evil = String::from_utf8_lossy(&arsenal().iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<u8>>()).into_owned();
    let evil = evil.replace('\0', "");
    let short: String = evil.chars().take(2000).collect();
    // a folder, a command, a title, a notification, a screen
    let folder = root.work().join("evil\x1b]0;EVIL\x07\u{202e}folder");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(
        root.work().join("evil.bin"),
        arsenal().iter().flat_map(|(_, bytes)| [bytes.clone(), b"\x18\r\n".to_vec()].concat()).collect::<Vec<u8>>(),
    )
    .expect("writes");
    let script = format!(
        "cat ../evil.bin; printf '\\x18\\x1b(B\\x1b[0m\\x0f\\x1b[?1049l\\x1b[r\\x1b[?6l\\x1b]2;EVIL\u{202e}title\\x07\\x1b]9;EVIL\u{202e} needs you\\x07needle 漢字\\r\\n'; : '{short}'; sleep 1000",
        short = short.replace('\'', "")
    );
    root.json(&["new", "-d", "--json", "-n", "shown", "-w", folder.to_str().expect("Unicode"), "--", "bash", "-c", &script]);
    root.wait_screen("shown", "needle");
    root.run(&["ls"]).ok();
    let mut wire = Wire::greeted(&root.socket());
    let mut id = 0;
    let mut call = |request: Value| {
        id += 1;
        let answer = wire.call(id, request);
        assert!(answer["failure"].is_null(), "{answer}");
    };
    call(json!({"request": "new", "name": "named", "here": "/", "no_run": true, "task": short,
        "context": {short.clone(): short, "list": [short]}, "metadata": {"model": short}}));
    // older versions took any label
    let database = root.database();
    database.execute("UPDATE sessions SET mode = ?1 WHERE task IS NOT NULL", [&short]).expect("updates");
    database.execute("UPDATE threads SET user = ?1, channel = ?1 WHERE name = 'named'", [&short]).expect("updates");
    drop(database);
    call(json!({"request": "tell", "name": "named", "type": "note", "data": {short.clone(): short}}));
    call(json!({"request": "learn", "name": "named", "text": short, "file": short}));
    call(
        json!({"request": "exec", "session": "named", "verb": "exec", "language": "bash", "code": format!("printf '%s' '{}'; # {short}\nfalse", short.replace('\'', ""))}),
    );
    let mut term = Term::open(&root, 120, 40, &[]);
    term.wait_for_text("2 active");
    for group in 0..5 {
        term.send(b"B");
        term.wait_for_text(["workspace", "status", "mode", "user", "nothing"][group]);
    }
    term.send(b"j");
    wait_cursor(&term, "named");
    term.send(b"i");
    term.wait_for_text("layers");
    for shows in ["kinds: all", "bash", "list", "files"] {
        term.send(b"\t");
        term.wait_for_text(shows);
    }
    term.send(b"q");
    wait_cursor(&term, "named");
    // said in the last line, and in the log
    term.send(b"f");
    term.wait_for_text("what went wrong with");
    term.send(format!("\x1b[200~{short}\x1b[201~\r").as_bytes());
    term.wait_for_text("1 ended");
    term.send(b"gR");
    term.wait_for_text("new name");
    term.send("\x1b[200~\x1b]0;x\x07\u{202e}\u{9b}5n\x1b[201~\r".as_bytes());
    term.wait_for_text("invisible characters");
    term.send(ESC);
    term.wait_for("no prompt", |screen| find(screen, "new name").is_none());
    term.send(b"m");
    term.wait_for_text("messages");
    term.send(b"q");
    term.wait_for_text("quit");
    term.send("/\x1b[200~EVIL\u{202e}\x1b]0;x\x07\x1b[201~".as_bytes());
    term.wait_for_text("/EVIL");
    term.send(ESC);
    term.wait_for("no filter", |screen| find(screen, "esc takes it away").is_none());
    term.send(b"t");
    term.wait_for_text("┏");
    term.wait_for_text("needle");
    term.send(b"t");
    term.wait_for_text("status");
    term.send(b"T");
    term.wait_for_text("by mode");
    term.send(b"q");
    term.wait_for_text("quit");
    term.send(CTRL_S);
    term.wait_for_text("everything that was printed");
    for word in ["EVIL", "needle"] {
        term.send(format!("\x15{word}").as_bytes());
        term.wait_for_text(" searched in ");
    }
    term.send(b"\r");
    term.wait_for_text("play from there");
    term.send(b"jjk\r");
    term.wait_for_text("q leave");
    term.send(b"q");
    term.wait_for_text("play from there");
    term.send(ESC);
    term.wait_for_text("quit");
    assert!(!term.bytes().windows(5).any(|part| part == b"\x1b]52;"), "only a copy that was asked for");
    quit(&mut term);
    assert_only_drawing(&term);
}

#[test]
fn wide_characters_keep_their_columns() {
    let root = Root::new();
    root.record("wide", &["--task", "漢字とかな 👩‍👩‍👧 e\u{301}clair ✈️ \u{200b}end-of-task"]);
    root.start("shell", BASH);
    root.run(&["send", "shell", "--enter", "printf '漢字|\\n👍|x\\n'"]).ok();
    root.wait_screen("shell", "漢字|");
    let mut term = Term::open(&root, 120, 30, &[]);
    term.wait_for_text("2 active");
    wait_cursor(&term, "shell");
    term.wait_for("the program's screen", |screen| find(screen, "x").is_some());
    // what is behind wide characters is where it belongs: the border between list and preview is straight
    term.wait_for("a straight border", |screen| {
        let Some((row, col)) = find(screen, "│") else { return false };
        (row..29).all(|row| screen.cell(row, col).is_some_and(|cell| cell.text == "│"))
    });
    // typed, it is as wide as it looks
    term.send("/漢字".as_bytes());
    term.wait_for_text("/漢字");
    term.wait_for("the cursor behind it", |screen| screen.cursor().col == 2 + 4 && screen.cursor().row == 29);
    term.send(ESC);
    term.wait_for("the whole list", |screen| find(screen, "esc takes it away").is_none() && find(screen, "shell").is_some());
    quit(&mut term);
}
