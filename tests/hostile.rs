//! Promise 12: nothing that was recorded, named or told can act on the user's terminal, whichever way it is looked at.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::wire::Wire;
use crate::support::{Root, Term};

/// Every class of sequence that has hurt a terminal, each with a word that must not be hidden by it.
pub fn arsenal() -> Vec<(&'static str, Vec<u8>)> {
    let plain: &[(&str, &[u8])] = &[
        ("a title and its report", b"\x1b]2;EVIL\x07\x1b[21t"),
        ("the name of an icon", b"\x1b]1;EVIL\x1b\\\x1b[20t"),
        ("writing the clipboard", b"\x1b]52;c;RVZJTA==\x07"),
        ("reading the clipboard", b"\x1b]52;c;?\x07"),
        ("a link that lies", b"\x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\"),
        ("a settings report", b"\x1bP$qEVIL\x1b\\"),
        ("capabilities", b"\x1bP+q544e\x1b\\"),
        ("who are you", b"\x1b[c\x1b[>c\x1b[=c\x1bZ\x1b[>q\x05"),
        ("where is the cursor", b"\x1b[6n\x1b[?6n\x1b[5n"),
        ("which mode", b"\x1b[?2004$p\x1b[4$p"),
        ("a checksum", b"\x1b[1;1;1;1;5;5*y"),
        ("colours", b"\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x07\x1b]12;?\x07"),
        ("a font", b"\x1b]50;?\x07\x1b]50;EVIL\x07"),
        ("a file", b"\x1b]1337;File=name=RVZJTA==;inline=1:RVZJTA==\x07"),
        ("notifications", b"\x1b]9;EVIL\x07\x1b]777;notify;EVIL;EVIL\x07\x1b]99;;EVIL\x1b\\"),
        ("progress", b"\x1b]9;4;1;50\x07"),
        ("printing", b"\x1b[5i\x1b[4i\x1b[i\x1b[?5i\x1b[?4i"),
        ("the mouse", b"\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h"),
        ("focus and paste", b"\x1b[?1004h\x1b[?2004h"),
        ("the keys of kitty", b"\x1b[>31u\x1b[=31;1u"),
        ("the keys of xterm", b"\x1b[>4;2m\x1b="),
        ("an image", b"\x1b_Gf=24,s=1,v=1;AAAA\x1b\\\x1bPq#0;2;0;0;0~-\x1b\\"),
        ("tmux pass-through", b"\x1bPtmux;\x1b\x1b]52;c;RVZJTA==\x07\x1b\\"),
        ("the title of screen", b"\x1bkEVIL\x1b\\"),
        ("the window", b"\x1b[3;0;0t\x1b[8;5;5t\x1b[9;1t\x1b[2t"),
        ("a folder", b"\x1b]7;file://evil/EVIL\x07"),
        ("reset", b"\x1bc\x1b[!p"),
        ("columns", b"\x1b[?3h\x1b[?40h"),
        ("a hidden screen", b"\x1b[?1049h\x1b[2J\x1b[?1049l"),
        ("scroll region and origin", b"\x1b[5;6r\x1b[?6h"),
        ("line drawing", b"\x1b(0\x0e"),
        ("8-bit controls", b"\x9b5n\x9d52;c;RVZJTA==\x9c\x90$qEVIL\x9c"),
        ("8-bit controls in UTF-8", b"\xc2\x9b5n\xc2\x9d52;c;RVZJTA==\xc2\x9c"),
        ("an endless count", b"\x1b[65535b\x1b[65535L\x1b[65535@"),
        ("bidi and invisible", "\u{202e}EVIL\u{202c}\u{2066}\u{200b}\u{feff}".as_bytes()),
        ("bells", b"\x07\x07\x07"),
        ("cancelled", b"\x1b]52;c;RVZJ\x18\x1b[6\x1an"),
        ("unfinished", b"\x1b]2;EVIL"),
    ];
    plain.iter().map(|(what, bytes)| (*what, bytes.to_vec())).collect()
}

/// What may be in the bytes that reach a terminal: text, line ends, colours, and what ratatui needs to draw. Gives what may not.
pub fn trespass(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if let Some(bad) =
        text.chars().find(|c| ('\u{80}'..='\u{9f}').contains(c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    {
        return Some(format!("{bad:?}"));
    }
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{8}')) {
        rest = &rest[at..];
        let Some(sequence) = rest.strip_prefix("\x1b[") else { return Some(format!("{:?}", rest.chars().take(12).collect::<String>())) };
        let end = sequence.find(|c: char| ('@'..='~').contains(&c)).unwrap_or(sequence.len());
        let (parameters, last) = (&sequence[..end], sequence[end..].chars().next().unwrap_or(' '));
        let is_fine = match last {
            'm' | 'H' | 'J' | 'K' | 'A' | 'B' | 'C' | 'D' | 'G' | 'd' => !parameters.starts_with(['>', '?', '=', '<']),
            // the alternate screen, the cursor, and the player's own mouse and synchronised drawing
            'h' | 'l' => matches!(parameters, "?1049" | "?25" | "?1000" | "?1002" | "?1006" | "?2026" | "?12" | "?7"),
            'q' => parameters.ends_with(' '),
            _ => false,
        };
        if !is_fine {
            return Some(format!("\\e[{parameters}{last}"));
        }
        rest = &sequence[(end + 1).min(sequence.len())..];
    }
    None
}

/// A recording with all of it, as a session that has ended.
fn recorded(root: &Root) {
    let file = root.work().join("arsenal.py");
    let mut script = String::from("import os, time\n");
    for (what, bytes) in arsenal() {
        let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
        let end = r"b'\x18\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?1049l\r\nneedle ";
        let _ = writeln!(script, "os.write(1, bytes([{}]) + {end}{what}\\r\\n'); time.sleep(0.002)", list.join(","));
    }
    std::fs::write(&file, script).expect("writes");
    root.start("hostile", &["python3", file.to_str().expect("a path")]);
    root.run(&["wait", "hostile", "--for", "exit", "--timeout", "30s"]).ok();
}

#[test]
fn promise_12_nothing_recorded_acts_when_it_is_replayed() {
    let root = Root::new();
    recorded(&root);
    // on a terminal of its own, whose every byte is looked at
    let mut term = Term::open(&root, 90, 30, &["replay", "hostile", "--speed", "64"]);
    term.wait_for_text("needle unfinished");
    // backwards too, and by search
    for keys in ["g", "/needle\r", "n", "n", "N", "5", "G"] {
        term.send(keys.as_bytes());
    }
    term.wait_for_text("needle unfinished");
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    crate::dashboard::odd::assert_only_drawing(&term);
    assert!(!String::from_utf8_lossy(&term.bytes()).contains("RVZJTA"));
}

#[test]
fn promise_12_nor_when_it_is_looked_back_at_while_it_lives() {
    let root = Root::new();
    root.start("live", crate::support::BASH);
    for (what, bytes) in arsenal().into_iter().filter(|(what, _)| !matches!(*what, "reset" | "columns" | "line drawing" | "the window")) {
        let mut hex = String::new();
        for byte in bytes {
            let _ = write!(hex, "\\x{byte:02x}");
        }
        root.run(&["send", "live", "--enter", &format!("printf '{hex}\\x18\\r\\nneedle {what}\\n'")]).ok();
    }
    root.run(&["send", "live", "--enter", "clear; echo all-$((40+2))"]).ok();
    root.wait_screen("live", "all-42");
    let mut term = Term::open(&root, 90, 30, &["attach", "live", "--read-only"]);
    term.wait_for_text("all-42");
    let before = term.bytes().len();
    term.send(b"\x02[");
    term.wait_for_text("q back to the program");
    for key in [&b"k"[..], b"\x15", b"g", b"G"] {
        term.send(key);
    }
    term.send(b"q");
    term.wait_for_text("all-42");
    term.send(b"\x02d");
    assert_eq!(term.wait_exit(), 0);
    // what the attachment itself sends is another promise's; what was drawn in between is this one's
    let bytes = term.bytes();
    let drawn = String::from_utf8_lossy(&bytes[before..]).into_owned();
    assert!(!drawn.contains("RVZJTA") && !drawn.contains("\x1b]52"), "{drawn:?}");
}

#[test]
fn promise_12_nor_when_it_is_searched_listed_exported_or_told() {
    let root = Root::new();
    recorded(&root);
    // the same in everything that callers can name
    let mut wire = Wire::greeted(&root.socket());
    let evil = String::from_utf8_lossy(&arsenal().iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<u8>>()).into_owned();
    let short: String = evil.chars().take(2000).collect();
    let mut id = 0;
    let mut call = |request: Value| {
        id += 1;
        wire.call(id, request)
    };
    for label in ["mode", "user", "channel", "group"] {
        let refused = call(json!({"request": "new", "name": "named", "here": "/", "no_run": true, label: short}));
        assert_eq!(refused["failure"]["code"], "usage", "{label}: {refused}");
    }
    let new = json!({"request": "new", "name": "named", "here": "/", "no_run": true, "task": short,
        "context": {"key": short}, "metadata": {"model": short}});
    let made = call(new);
    assert!(made["failure"].is_null(), "{made}");
    // older versions took any label
    let database = root.database();
    database.execute("UPDATE sessions SET mode = ?1 WHERE task IS NOT NULL", [&short]).expect("updates");
    database.execute("UPDATE threads SET user = ?1, channel = ?1 WHERE name = 'named'", [&short]).expect("updates");
    drop(database);
    assert!(call(json!({"request": "tell", "name": "named", "type": "note", "data": {"text": short}}))["failure"].is_null());
    assert!(call(json!({"request": "learn", "name": "named", "text": short, "file": short}))["failure"].is_null());
    assert!(call(json!({"request": "tool_call", "name": "named", "tool": "Bash", "input": short, "output": short}))["ok"].is_object());
    assert!(call(json!({"request": "exec", "session": "named", "verb": "exec", "language": "bash", "code": format!("# {short}\necho needle printed")}))["id"].is_u64());
    root.run(&["fail", "named", "--error", &short.replace('\0', "")]).ok();
    assert!(!root.run(&["rename", "hostile", "bad\x1b]0;x\x07"]).refused(2).contains('\x1b'));
    for args in [
        &["ls", "--all"][..],
        &["show", "named"],
        &["show", "hostile"],
        &["events", "named"],
        &["events"],
        &["context", "named"],
        &["history", "-s", "named"],
        &["stats"],
        &["stats", "--disk"],
        &["search", "needle", "-C", "3"],
        &["search", "EVIL", "-C", "3"],
        &["search", "-i", "evil", "--kind", "event,task,code", "-C", "2"],
        &["export", "hostile", "--format", "text"],
        &["screen", "hostile"],
        &["screen", "hostile", "--scrollback", "100"],
        &["audit"],
        &["cleanup", "--older-than", "0", "--dry-run"],
    ] {
        let output = root.run(args);
        assert_eq!(trespass(output.stdout.as_bytes()), None, "{args:?} on standard output");
        assert_eq!(trespass(output.stderr.as_bytes()), None, "{args:?} on standard error");
        assert!(!output.stdout.contains('\x1b'), "{args:?}: no colours where nobody looks");
    }
    // JSON says all of it, in characters that do nothing
    for args in [
        &["ls", "--all", "--json"][..],
        &["show", "named", "--json"],
        &["events", "named", "--json"],
        &["context", "named", "--json"],
        &["history", "-s", "named", "--json"],
        &["search", "EVIL", "--json"],
        &["screen", "hostile", "--json", "--scrollback", "100"],
        &["stats", "--disk", "--json"],
    ] {
        let output = root.run(args);
        assert_eq!(trespass(output.stdout.as_bytes()), None, "{args:?}");
        assert!(!output.stdout.contains('\x1b'), "{args:?}");
    }
    assert_eq!(root.json(&["show", "named", "--json"])["session"]["task"], json!(short));
    // on a terminal there are colours, and still nothing else
    for args in [&["ls", "--all"][..], &["search", "needle", "-C", "2"], &["show", "named"], &["events", "named"], &["stats", "--disk"]] {
        let mut term = Term::open(&root, 100, 30, args);
        term.wait_exit();
        assert_eq!(trespass(&term.bytes()), None, "{args:?} on a terminal");
    }
    // pictures in colour have colours and text alone
    let ansi = root.run(&["screen", "hostile", "--ansi", "--scrollback", "200"]).ok();
    assert_eq!(trespass(ansi.as_bytes()), None);
    let page = root.run(&["export", "hostile", "--format", "html"]).ok();
    assert!(!page.contains('\x1b') && page.matches("<script").count() == 2);
    // the dashboard lists them all
    let mut term = Term::open(&root, 100, 30, &[]);
    term.wait_for_text("hostile");
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    crate::dashboard::odd::assert_only_drawing(&term);
    let log = std::fs::read(root.join("state/daemon.log")).expect("the log");
    assert_eq!(trespass(&log), None, "the log");
}

#[test]
fn a_program_cannot_read_the_clipboard_of_an_attached_terminal() {
    let root = Root::new();
    root.start("live", crate::support::BASH);
    let mut term = Term::open(&root, 90, 30, &["attach", "live"]);
    // octal escapes have three digits at most: what follows them is text
    for query in [
        r"\033]52;c;?\007",
        r"\23552;c;?\007",
        r"\302\23552;c;?\007",
        r"\235052;c;?\234",
        r"\033]5522;type=read;dGV4dA==\033\\",
        r"\2355522;loc=primary:type=read;\007",
    ] {
        root.run(&["send", "live", "--enter", &format!("printf '{query}'")]).ok();
    }
    root.run(&["send", "live", "--enter", "echo all-$((40+2))"]).ok();
    term.wait_for_text("all-42");
    let bytes = term.bytes();
    for part in [&b"\x1b]52;"[..], b"\x9d52;", b"\x9d052;", b"\x1b]5522;", b"\x9d5522;"] {
        assert!(!crate::support::term::contains(&bytes, part), "{part:?} in {:?}", String::from_utf8_lossy(&bytes));
    }
    term.send(b"\x02d");
    assert_eq!(term.wait_exit(), 0);
}
