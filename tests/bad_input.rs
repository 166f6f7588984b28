//! Bad input gets one clear sentence and changes nothing.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::wire::{Wire, frame};
use crate::support::{BASH, Root, Term, wait_until};

#[test]
fn a10_a_line_that_the_terminal_would_cut_is_refused() {
    let root = Root::new();
    root.start_script("lines", "echo ready; cat > got");
    root.wait_screen("lines", "ready");
    let refusal = root.run(&["send", "lines", "--enter", &"x".repeat(4096)]).refused(2);
    assert!(refusal.contains("4096 bytes") && refusal.contains("nothing was sent"), "{refusal}");
    // in parts, too
    root.run(&["send", "lines", &"x".repeat(3000)]).ok();
    root.run(&["send", "lines", "--enter", &"x".repeat(1096)]).refused(2);
    root.run(&["send", "lines", "--enter", &"x".repeat(1095)]).ok();
    root.run(&["send", "lines", "--enter", &"y".repeat(4095)]).ok();
    root.run(&["send", "lines", "--key", "ctrl-d"]).ok();
    root.wait_status("lines", "completed");
    let got = std::fs::read_to_string(root.work().join("got")).expect("a file");
    assert_eq!(got, format!("{}\n{}\n", "x".repeat(4095), "y".repeat(4095)), "nothing is cut");
    // a program that reads keys takes any length
    root.start_script("keys", "stty raw -echo; echo ready; head -c 9000 | wc -c > count");
    root.wait_screen("keys", "ready");
    root.run(&["send", "keys", &"x".repeat(9000)]).ok();
    assert_eq!(root.wait_file("work/count").trim(), "9000");
}

#[test]
fn promise_13_bad_words_are_refused_and_change_nothing() {
    let root = Root::new();
    root.start("api", BASH);
    let file = root.join("a-file");
    std::fs::write(&file, "").expect("writes");
    let file = file.to_str().expect("Unicode");
    let long = "x".repeat(65);
    let before = root.json(&["ls", "--all", "--json"]);
    for (args, code, word) in [
        (&["show", "nobody"][..], 3, "no session called nobody"),
        (&["attach", "api"], 2, "needs a terminal"),
        (&["new", "-n", "x"], 2, "new -d"),
        (&["new", "-d", "-n", "a b", "--", "true"], 2, "cannot contain"),
        (&["new", "-d", "-n", "a/b", "--", "true"], 2, "cannot contain"),
        (&["new", "-d", "-n", "a\x1b[31mb", "--", "true"], 2, "control"),
        (&["new", "-d", "-n", "", "--", "true"], 2, "empty"),
        (&["new", "-d", "-n", &long, "--", "true"], 2, "at most 64"),
        (&["new", "-d", "--max-iterations", "0", "--", "true"], 2, "between 1"),
        (&["new", "-d", "--context", "{", "--", "true"], 2, "not JSON"),
        (&["new", "-d", "--context", "[1]", "--", "true"], 2, "JSON object"),
        (&["new", "-d", "--metadata", "{\"cost\":-1}", "--", "true"], 2, "metadata.cost"),
        (&["new", "-d", "--idle-timeout", "0s", "--", "true"], 2, "at once"),
        (&["new", "-d", "--group", "a b", "--", "true"], 2, "a group"),
        (&["new", "-d", "--no-run", "--", "true"], 2, "cannot be used"),
        (&["new", "--json", "-n", "x"], 2, "give -d"),
        (&["new", "-d", "-n", "01a1e427-0789-74cc-8bfe-000000000000", "--", "true"], 3, "no session"),
        (&["ls", "--created-after", "yesterday"], 2, "7d"),
        (&["ls", "--order", "odd"], 2, "not an order"),
        (&["cleanup", "--older-than=-1"], 2, "days"),
        (&["group", "set", "x y", "--limit", "1"], 2, "a group"),
        (&["group", "unset", "nobody"], 3, "group ls"),
        (&["iterate", "nobody"], 3, "no session called"),
        (&["iterate", "api", "--data", "[1]"], 2, "JSON object"),
        (&["iterate", "api", "--data", "{\"iteration\":9}"], 2, "choose another key"),
        (&["event", "api", "complete"], 2, "sessions-tui complete"),
        (&["event", "api", "two words"], 2, "cannot be an event's type"),
        (&["tool-call", "api", ""], 2, "tool's name"),
        (&["learn", "api", " "], 2, "nothing to learn"),
        (&["context", "api", "--set", "1"], 2, "JSON object"),
        (&["resume", "api"], 4, "session api is active"),
        (&["resume", "api", "--max-iterations", "0"], 2, "between 1"),
        (&["new", "-d", "-w", "/nowhere/at/all", "--", "true"], 2, "does not exist"),
        (&["new", "-d", "-w", file, "--", "true"], 2, "is not a folder"),
        (&["new", "-d", "--size", "1x1", "--", "true"], 2, "not possible"),
        (&["new", "-d", "--size", "wide", "--", "true"], 2, "COLSxROWS"),
        (&["new", "-d", "-e", "NOVALUE", "--", "true"], 2, "NAME=VALUE"),
        (&["wait", "api", "--for", "moon"], 2, "exit, prompt, quiet"),
        (&["wait", "api", "--for", "text=("], 2, "regular expression"),
        (&["wait", "api", "--for", "exit", "--timeout", "soon"], 2, "duration"),
        (&["send", "api"], 2, "nothing to send"),
        (&["send", "api", "--key", "hyper-q"], 2, "not a key"),
        (&["ls", "--status", "lazy"], 2, "not a status"),
        (&["rename", "nobody", "x"], 3, "no session"),
        (&["daemon", "stop", "--all"], 2, "--yes"),
        (&["frobnicate"], 2, "frobnicate"),
    ] {
        let sentence = root.run(args).refused(code);
        assert!(sentence.contains(word), "{args:?}: {sentence}");
        assert!(!sentence.contains('\x1b'), "{args:?}: {sentence:?}");
    }
    let after = root.json(&["ls", "--all", "--json"]);
    assert_eq!(before[0]["id"], after[0]["id"]);
    assert_eq!(after.as_array().map(Vec::len), Some(1), "{after}");
}

#[test]
fn a_program_that_cannot_start_is_a_failed_session_that_says_why() {
    let root = Root::new();
    // a slip of the fingers is none
    assert!(root.run(&["new", "-d", "-n", "slip", "--", "no-such-program"]).refused(1).contains("no such program"));
    root.run(&["show", "slip"]).refused(3);
    assert!(root.run(&["new", "-d", "-n", "typo", "--", "./no-such-program"]).refused(1).contains("no such program"));
    assert_eq!(root.status("typo"), ("failed".into(), "not started".into()));
    std::fs::write(root.join("work/plain.txt"), "not a program").expect("writes");
    assert!(root.run(&["new", "-d", "-n", "denied", "--", "./plain.txt"]).refused(1).to_lowercase().contains("permission denied"));
    root.run(&["screen", "typo"]).refused(4);
    wait_until("no holder to be left", || root.holders().is_empty());
    root.run(&["new", "-d", "-n", "typo", "--", "sleep", "1000"]).ok();
    assert_eq!(root.status("typo").0, "active", "the next session on the same thread");
}

#[test]
fn attaching_to_an_ended_session_shows_its_last_screen_and_how_it_ended() {
    let root = Root::new();
    root.start_script("done", "echo the last words; exit 3");
    root.run(&["wait", "done", "--for", "exit", "--timeout", "20s"]).ok();
    let mut term = Term::open(&root, 80, 24, &["attach", "done"]);
    assert_eq!(term.wait_exit(), 4);
    let text = term.text();
    assert!(text.contains("the last words") && text.contains("failed (exit code 3)"), "{text}");
    assert!(term.is_cooked());
}

fn rubbish() -> Vec<Vec<u8>> {
    let deep = format!("{{\"id\":1,\"request\":\"show\",\"name\":{}1{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    vec![
        b"\0\0\0\0\0\0\0\0".to_vec(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![0xff; 4096],
        vec![1, 0xff, 0xff, 0xff, 0xff],
        vec![3, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3],
        frame(99, b"unknown"),
        frame(1, b"{\"runtime\":5}"),
        vec![1, 10, 0, 0, 0, b'h', b'a', b'l', b'f'],
        b"{\"hello\":\n".to_vec(),
        b"{\"hello\":{\"protocol\":\"one\"}}\n".to_vec(),
        b"{\"id\":1}\n".to_vec(),
        deep.into_bytes(),
    ]
}

#[test]
fn rubbish_on_the_daemons_socket_harms_nobody() {
    let root = Root::new();
    root.start("shell", BASH);
    let pid = root.daemon_pid();
    for bytes in rubbish() {
        // before the hello, and after it
        let mut stranger = Wire::connect(&root.socket());
        let _ = stranger.write(&bytes);
        drop(stranger);
        let mut client = Wire::greeted(&root.socket());
        let _ = client.write(&bytes);
        drop(client);
    }
    let mut client = Wire::greeted(&root.socket());
    let answer = client.call(1, json!({"request": "fly"}));
    assert!(answer["failure"]["message"].as_str().is_some_and(|text| text.contains("\"fly\"")), "{answer}");
    let answer = client.call(2, json!({"request": "show"}));
    assert_eq!(answer["failure"]["code"], "usage", "{answer}");
    let answer = client.call(3, json!({"request": "show", "name": "shell", "unheard_of": true}));
    assert_eq!(answer["ok"]["thread"]["name"], "shell", "an unknown field is ignored, and the connection still works");
    let huge = "x".repeat(1 << 20);
    let work = root.work();
    let answer = client.call(4, json!({"request": "new", "workspace": work, "argv": ["echo", huge]}));
    assert_eq!(answer["failure"]["code"], "failed", "a 1 MiB argument is more than a program can get");
    assert!(answer["failure"]["message"].as_str().is_some_and(|text| text.len() < 500), "and is not repeated back");
    assert_eq!(root.daemon_pid(), pid);
    root.run(&["send", "shell", "--enter", "echo still-$((40+2))"]).ok();
    root.wait_screen("shell", "still-42");
}

#[test]
fn promise_2_rubbish_on_a_holders_socket_harms_nobody() {
    let root = Root::new();
    root.start("shell", BASH);
    let (program, socket) = (root.program("shell"), root.holder_socket("shell"));
    let mut silent: Vec<Wire> = (0..8).map(|_| Wire::connect(&socket)).collect();
    for bytes in rubbish() {
        let mut stranger = Wire::connect(&socket);
        let _ = stranger.write(&bytes);
    }
    root.run(&["send", "shell", "--enter", "echo still-$((40+2))"]).ok();
    root.wait_screen("shell", "still-42");
    // the daemon's own link was not displaced by any of them, nor is a later one
    root.kill_daemon();
    root.run(&["send", "shell", "--enter", "echo again-$((40+2))"]).ok();
    root.wait_screen("shell", "again-42");
    assert_eq!(root.program("shell"), program);
    silent.clear();
}

/// Something that listens in the daemon's place and says hello in its own way.
fn impostor(root: &Root, protocol: u32) -> std::thread::JoinHandle<()> {
    std::fs::create_dir_all(root.join("run")).expect("a folder");
    let listener = UnixListener::bind(root.socket()).expect("binds");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut line = String::new();
        BufReader::new(stream.try_clone().expect("a copy")).read_line(&mut line).expect("a hello");
        let hello = json!({"hello": {"protocol": protocol, "version": "9.9.9", "pid": 1}});
        writeln!(stream, "{hello}").expect("writes");
        // the client leaves by itself
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })
}

#[test]
fn versions_that_do_not_fit_are_named_with_what_to_do() {
    for (protocol, word) in [(0, "sessions-tui daemon restart"), (99, "use the newer sessions-tui")] {
        let root = Root::new();
        let daemon = impostor(&root, protocol);
        let sentence = root.run(&["ls"]).refused(5);
        assert!(sentence.contains(word) && sentence.contains("sessions go on"), "{sentence}");
        daemon.join().expect("ends");
        std::fs::remove_file(root.socket()).expect("removes");
    }
    let root = Root::new();
    root.run(&["ls"]).ok();
    let mut newer = Wire::connect(&root.socket());
    newer.say(&json!({"hello": {"protocol": 2, "version": "2.0.0", "pid": 1}}));
    assert_eq!(newer.line().expect("a hello")["hello"]["protocol"], 1);
    let answer = newer.call(1, json!({"request": "list"}));
    assert_eq!(answer["failure"]["code"], "version", "{answer}");
    assert_eq!(newer.call(2, json!({"request": "stop"}))["ok"]["going_on"], 0, "but it may ask an older daemon to make way");
}

#[test]
fn promise_9_a_newer_database_is_refused_and_a_damaged_one_recovered() {
    let root = Root::new();
    root.start("survivor", BASH);
    root.run(&["send", "survivor", "--enter", "echo before-$((40+2))"]).ok();
    root.wait_screen("survivor", "before-42");
    let (program, recording, database) = (root.program("survivor"), root.recording("survivor"), root.join("state/sessions.db"));
    root.run(&["daemon", "stop"]).ok();

    let connection = rusqlite::Connection::open(&database).expect("opens");
    connection.pragma_update(None, "user_version", 99).expect("sets");
    connection.pragma_update(None, "journal_mode", "DELETE").expect("one file");
    drop(connection);
    let bytes = std::fs::read(&database).expect("reads");
    let sentence = root.run(&["ls"]).refused(5);
    assert!(sentence.contains("newer version") && sentence.contains("upgrade"), "{sentence}");
    assert_eq!(std::fs::read(&database).expect("reads"), bytes, "untouched");

    std::fs::write(&database, vec![0xa5; 10_000]).expect("writes");
    let list = root.json(&["ls", "--json"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "the holder was found again: {list}");
    let name = list[0]["name"].as_str().expect("a name").to_owned();
    assert_eq!(root.program(&name), program);
    assert!(root.screen(&name).contains("before-42"));
    assert!(root.run(&["daemon", "status"]).ok().contains("recovered into a new file"));
    let kept = std::fs::read_dir(root.join("state")).expect("lists").filter_map(Result::ok).any(|entry| {
        entry.file_name().to_string_lossy().contains("damaged")
            && std::fs::read(entry.path()).is_ok_and(|bytes| bytes == vec![0xa5; 10_000])
    });
    assert!(kept && recording.exists(), "nothing was deleted");
}

#[test]
fn folders_that_cannot_be_used_are_named() {
    let root = Root::new();
    let file = root.join("a-file");
    std::fs::write(&file, "").expect("writes");
    let sentence = root.run_with(&["ls"], &[("SESSIONS_ROOT", file.to_str().expect("Unicode"))]).refused(5);
    assert!(sentence.contains("a-file"), "{sentence}");
    assert!(root.run_with(&["ls"], &[("SESSIONS_ROOT", "relative")]).refused(2).contains("absolute"));
    let link = root.join("link");
    std::fs::create_dir(root.join("elsewhere")).expect("a folder");
    std::fs::create_dir(&link).expect("a folder");
    std::os::unix::fs::symlink(root.join("elsewhere"), link.join("state")).expect("links");
    let sentence = root.run_with(&["ls"], &[("SESSIONS_ROOT", link.to_str().expect("Unicode"))]).refused(5);
    assert!(sentence.contains("is a link"), "{sentence}");
}

#[test]
fn a_bad_config_is_named_with_its_line_and_the_defaults_hold() {
    let root = Root::new();
    root.config("[keys]\nprefix = \"b\"\n");
    root.start("shell", BASH);
    let status: Value = root.json(&["daemon", "status", "--json"]);
    let warning = status["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("line 2") && warning.contains("ctrl-b"), "{warning}");
    let mut term = Term::open(&root, 80, 24, &["attach", "shell"]);
    term.wait_for_text("$");
    term.send(b"\x02d");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_socket_path_that_is_too_long_is_handled() {
    let root = Root::new();
    let deep = root.path().join("d".repeat(60)).join("e".repeat(60));
    std::fs::create_dir_all(&deep).expect("a folder");
    let deep = deep.to_str().expect("Unicode");
    let run = |args: &[&str]| root.run_with(args, &[("SESSIONS_ROOT", deep)]);
    run(&["new", "-d", "-n", "far", "--", "sleep", "1000"]).ok();
    let status: Value = serde_json::from_str(&run(&["daemon", "status", "--json"]).ok()).expect("JSON");
    let socket = Path::new(status["socket"].as_str().expect("a path")).to_owned();
    assert!(socket.exists() && !socket.starts_with(deep), "{}", socket.display());
    run(&["kill", "far"]).ok();
    run(&["daemon", "stop"]).ok();
    std::fs::remove_dir_all(socket.parent().expect("a folder")).expect("removes");
}

#[test]
fn strangers_that_say_nothing_or_never_stop_are_closed() {
    let root = Root::new();
    root.start("shell", BASH);
    let silent = Wire::connect(&root.socket());
    let mut half = Wire::connect(&root.socket());
    half.write(b"{\"hello\":").expect("writes");
    let mut endless = Wire::greeted(&root.socket());
    let line = format!("{{\"id\":1,\"request\":\"show\",\"name\":\"{}", "x".repeat(9 << 20));
    // it may be closed before all of it is taken
    let _ = endless.write(line.as_bytes());
    for stranger in [endless, silent, half] {
        stranger.wait_closed();
    }
    root.run(&["send", "shell", "--enter", "echo still-$((40+2))"]).ok();
    root.wait_screen("shell", "still-42");
    wait_until("nobody but us to be counted", || root.json(&["daemon", "status", "--json"])["clients"] == 1);
}

#[test]
fn many_strangers_at_once_leave_room_for_a_client() {
    let root = Root::new();
    root.start("shell", BASH);
    let strangers: Vec<Wire> = (0..200).map(|_| Wire::connect(&root.socket())).collect();
    root.run(&["send", "shell", "--enter", "echo still-$((40+2))"]).ok();
    root.wait_screen("shell", "still-42");
    drop(strangers);
}

#[test]
fn a_file_in_place_of_a_folder_is_named_and_kept() {
    for part in ["state", "run", "state/recordings"] {
        let root = Root::new();
        let path = root.join(part);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, "somebody's").expect("writes");
        let sentence = root.run(&["ls"]).refused(5);
        assert!(sentence.contains(path.to_str().expect("Unicode")), "{part}: {sentence}");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "somebody's");
        assert_eq!(root.processes(), Vec::<u32>::new(), "{part}");
    }
}
