//! Searching everything: what was printed as it was seen, code, events, tasks; by every filter, of the living and the dead.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::mcp::client::{Era, Mcp};
use crate::support::exec::Calls;
use crate::support::wire::Wire;
use crate::support::{Root, process, recording, wait_until};

/// The hits of a search, as JSON, newest first; none is no failure here.
#[track_caller]
fn hits(root: &Root, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["search", "--json"];
    all.extend_from_slice(args);
    let output = root.run(&all);
    assert!(matches!(output.code, 0 | 1), "{args:?}: {}", output.stderr);
    assert_eq!(output.code == 0, !output.stdout.is_empty(), "{args:?}: {}", output.stderr);
    output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[track_caller]
fn lines(root: &Root, args: &[&str]) -> Vec<String> {
    hits(root, args).iter().map(|hit| hit["line"].as_str().expect("a line").to_owned()).collect()
}

/// Starts a program that writes exactly these parts, one write each, and waits until all are recorded apart.
#[track_caller]
fn printed(root: &Root, name: &str, parts: &[&[u8]]) {
    for (number, part) in parts.iter().enumerate() {
        std::fs::write(root.work().join(format!("{name}.{number}")), part).expect("writes");
    }
    // each part is asked for, so that it is a frame of its own
    let script = format!(
        "stty raw -echo; for n in $(seq 0 {}); do head -c 1 >/dev/null; cat {name}.$n; done; printf '\\r\\nall-of-it\\r\\n'; exec sleep 1000",
        parts.len() - 1
    );
    root.start_script(name, &script);
    let dir = root.recording(name);
    let mut expected = Vec::new();
    for part in parts {
        root.run(&["send", name, "x"]).ok();
        expected.extend_from_slice(part);
        wait_until("the part to be recorded", || recording::output(&dir).starts_with(&expected));
    }
    wait_until("the end", || recording::output(&dir).ends_with(b"all-of-it\r\n"));
}

/// Nothing but text reaches a terminal.
#[track_caller]
fn assert_clean(text: &str) {
    let acts =
        |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    assert!(!text.contains(acts), "{text:?}");
}

#[test]
fn output_is_found_as_it_was_seen() {
    let root = Root::new();
    printed(
        &root,
        "parts",
        &[
            b"split wo",
            b"rd over two\r\ncolour \x1b[3",
            b"1min\x1b[1mside\x1b[0m it\r\nsplit gr\xc3",
            b"\xb6\xc3\x9fe here\r\n10%\r20%\rdone 30%\r\ntypo\x08\x08\x08\x08right\r\n",
            b"\x1b]0;hidden title\x07\x1b]8;;http://hidden.link\x1b\\seen\x1b]8;;\x1b\\ link\r\nfar\x1b[4Capart\r\n",
        ],
    );
    for (pattern, line) in [
        ("split word", "split word over two"),
        ("inside", "colour inside it"),
        ("größe", "split größe here"),
        ("done 30", "done 30%"),
        ("right", "right"),
        ("seen link", "seen link"),
        ("far    apart", "far    apart"),
    ] {
        let found = hits(&root, &[pattern]);
        assert_eq!(found.len(), 1, "{pattern}: {found:?}");
        let hit = &found[0];
        assert_eq!((hit["line"].as_str(), hit["kind"].as_str(), hit["name"].as_str()), (Some(line), Some("output"), Some("parts")));
        let range = &hit["ranges"][0];
        let (from, to) = (range[0].as_u64().expect("a number") as usize, range[1].as_u64().expect("a number") as usize);
        assert_eq!(&line[from..to], pattern);
        assert_eq!(lines(&root, &["-i", &pattern.replace('ö', "Ö").to_ascii_uppercase()]), [line], "{pattern}");
    }
    for hidden in ["hidden", "typo", "word over two colour", "[31m"] {
        assert_eq!(lines(&root, &["--kind", "output", hidden]), [""; 0], "{hidden}");
    }
    // the end of its line, in the frame that completes the match: played up to there, it is on the screen
    let hit = &hits(&root, &["split word"])[0];
    let offset = hit["offset"].as_u64().expect("an offset") as usize;
    let bytes = std::fs::read(&recording::segments(&root.recording("parts"))[0]).expect("a segment");
    assert!(bytes[..offset].ends_with(b"rd over two"), "the end of its line");
    assert_eq!(hit["runtime"], root.runtime("parts")["id"]);
}

#[test]
fn lines_go_on_over_segments() {
    let root = Root::new();
    let filler = "0123456789".repeat(8);
    // enough for a second segment, with a word every 10 000 lines, and nothing but a number of its own in each line
    let script = format!(
        "awk 'BEGIN {{ for (n = 0; n < 230000; n++) printf \"%d {filler} line%d%s\\n\", n, n, n % 10000 ? \"\" : \" mark\" }}'; echo the-end; exec sleep 1000"
    );
    root.start_script("long", &script);
    root.wait_screen("long", "the-end");
    assert!(recording::segments(&root.recording("long")).len() > 1);
    let found = lines(&root, &[" mark", "--limit", "1000", "--kind", "output"]);
    let expected: Vec<String> = (0..23).rev().map(|n| format!("{0} {filler} line{0} mark", n * 10000)).collect();
    assert_eq!(found, expected, "each once, newest first");
    // every line that was cut by the border is found too
    let borders = lines(&root, &["--regex", r"^\d+ .* line\d+9999( mark)?$", "--limit", "1000"]);
    assert_eq!(borders.len(), 22);
    let closing = root.run(&["search", " mark", "--limit", "3"]);
    assert!(
        closing.stderr.contains("3 hits in 1 session · searched ") && closing.stderr.contains("there may be more"),
        "{}",
        closing.stderr
    );
    // one recording, step by step
    let runtime = root.runtime("long")["id"].clone();
    let mut wire = Wire::greeted(&root.socket());
    let mut find = |from: u64, forward: bool| {
        wire.call(1, json!({"request": "find", "runtime": runtime, "pattern": " mark", "from": from, "forward": forward}))["ok"].clone()
    };
    let (mut from, mut steps) = (0, Vec::new());
    for _ in 0..4 {
        from = find(from, true)["offset"].as_u64().expect("another");
        steps.push(from);
    }
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    for step in steps[..3].iter().rev() {
        from = find(from, false)["offset"].as_u64().expect("the one before");
        assert_eq!(from, *step);
    }
    assert_eq!(find(from, false), Value::Null, "there is none before the first");
    let last = find(u64::from(u32::MAX), false);
    assert!(last["line"].as_str().is_some_and(|line| line.starts_with("220000 ")), "{last}");
    assert_eq!(find(last["offset"].as_u64().expect("an offset"), true), Value::Null);
}

#[test]
fn full_screen_programs_are_found_once() {
    let root = Root::new();
    let draw = r"printf '\e[?1049h'; for n in 1 2 3 4 5; do printf '\e[H\e[2J\e[1;1Hmenu alpha\e[2;1Hmenu beta\e[10;30Hround %d' $n; done; exec sleep 1000";
    root.start_script("screen", draw);
    root.wait_screen("screen", "round 5");
    let found = hits(&root, &["menu", "--kind", "output"]);
    let seen: Vec<(&str, u64)> =
        found.iter().map(|hit| (hit["line"].as_str().expect("a line"), hit["times"].as_u64().expect("a number"))).collect();
    assert_eq!(seen, [("menu beta", 5), ("menu alpha", 5)]);
    assert_eq!(lines(&root, &["round", "--kind", "output"]), ["round 5", "round 4", "round 3", "round 2", "round 1"]);
}

#[test]
fn code_output_events_and_tasks_are_found_by_kind_and_filter() {
    let root = Root::new();
    root.record("work", &["--task", "Fix the zebra page", "--mode", "developer", "--user", "ann"]);
    root.record("other", &["--task", "another zebra"]);
    root.run(&["event", "work", "deployed", "--data", r#"{"to":"zebra staging"}"#]).ok();
    let mut calls = Calls::of_session(&root, "work");
    calls.exec("python", "x = 1\nprint('zebra' + ' from python')");
    calls.exec("node", "console.log('zebra ' + 'from node')");
    calls.exec("bash", "echo zebra from bash >&2; exit_with() { return 3; }; exit_with");
    let kinds = |args: &[&str]| {
        let mut found: Vec<String> = hits(&root, args)
            .iter()
            .map(|hit| {
                format!(
                    "{} {} {}",
                    hit["name"].as_str().unwrap_or(""),
                    hit["kind"].as_str().unwrap_or(""),
                    hit["line"].as_str().unwrap_or("")
                )
            })
            .collect();
        found.sort();
        found
    };
    let task = "work task Fix the zebra page";
    let event = r#"work event deployed {"to":"zebra staging"}"#;
    let python = "work output zebra from python";
    let bash_code = "work code echo zebra from bash >&2; exit_with() { return 3; }; exit_with";
    let bash = "work output zebra from bash";
    assert_eq!(
        kinds(&["zebra"]),
        [
            "other task another zebra",
            "work code console.log('zebra ' + 'from node')",
            bash_code,
            "work code print('zebra' + ' from python')",
            event,
            bash,
            "work output zebra from node",
            python,
            task,
        ]
    );
    assert_eq!(kinds(&["zebra", "--kind", "task", "-s", "work"]), [task]);
    assert_eq!(kinds(&["zebra", "--kind", "event"]), [event]);
    assert_eq!(kinds(&["zebra", "--exit-code", "3"]), [bash_code, bash]);
    assert_eq!(kinds(&["ZEBRA", "-i", "--kind", "event,task", "-s", "work"]), [event, task]);
    assert_eq!(kinds(&["--regex", "^zebra from py", "--kind", "output"]), [python]);
    assert_eq!(kinds(&["zebra", "--author", "api", "--kind", "output,event"]).len(), 4);
    assert_eq!(kinds(&["zebra", "--author", "agent"]), [""; 0]);
    assert_eq!(kinds(&["zebra", "--mode", "developer", "--kind", "task"]), [task]);
    assert_eq!(kinds(&["zebra", "--user", "bob"]), [""; 0]);
    assert_eq!(kinds(&["zebra", "--thread", "other"]), ["other task another zebra"]);
    assert_eq!(kinds(&["zebra", "--before", "1d"]), [""; 0]);
    assert_eq!(kinds(&["zebra", "--after", "1d"]).len(), 9);
    assert_eq!(kinds(&["zebra", "--after", "2100-01-01"]), [""; 0]);
    root.run(&["search", "zebra", "-s", "nobody"]).refused(3);

    // what is known of a call is with its output, and context is what was around
    let hit = &hits(&root, &["zebra from bash", "--kind", "output"])[0];
    assert_eq!((hit["exit_code"].as_i64(), hit["language"].as_str(), hit["part"].as_str()), (Some(3), Some("bash"), Some("stderr")));
    let code = &hits(&root, &["zebra", "--kind", "code", "-C", "3", "--exit-code", "0"]);
    let python = code.iter().find(|hit| hit["language"] == "python").expect("the call");
    assert_eq!((python["before"].as_array().map(Vec::len), &python["before"][0]), (Some(1), &json!("x = 1")));
    assert_eq!(calls.result(python["exec"].as_str().expect("an id"))["stdout"], "zebra from python\n");

    // newest first, whoever was active last
    root.run(&["event", "other", "tick"]).ok();
    for args in [&["zebra"][..], &["zebra", "-s", "work"], &["zebra", "--kind", "event,output"], &["zebra", "--limit", "4"]] {
        let times: Vec<String> = hits(&root, args).iter().map(|hit| in_order(hit["at"].as_str().expect("a time"))).collect();
        assert!(times.len() > 1 && times.is_sorted_by(|a, b| a >= b), "{args:?}: {times:?}");
    }
    assert_eq!(hits(&root, &["zebra", "--limit", "1"])[0]["name"], "work", "the newest of all");
    assert_eq!(hits(&root, &["zebra", "--limit", "2"]).len(), 2);
}

/// A time as it is written, so that later ones sort behind.
fn in_order(time: &str) -> String {
    let (second, fraction) = time.trim_end_matches('Z').split_once('.').unwrap_or((time.trim_end_matches('Z'), ""));
    format!("{second}.{fraction:0<9}")
}

#[test]
fn sessions_that_were_there_at_the_same_time_take_turns() {
    let root = Root::new();
    for name in ["left", "right"] {
        root.start(name, crate::support::BASH);
    }
    for round in 0..3 {
        for name in ["left", "right"] {
            root.run(&["send", name, "--enter", &format!("echo seen-$(({round} + 10)) in {name}")]).ok();
            root.wait_screen(name, &format!("seen-{} in {name}", round + 10));
        }
    }
    let expected = ["12 in right", "12 in left", "11 in right", "11 in left", "10 in right", "10 in left"].map(|end| format!("seen-{end}"));
    assert_eq!(lines(&root, &["--regex", r"^seen-\d+", "--kind", "output"]), expected);
    // also when they are over, in another order
    for name in ["right", "left"] {
        root.run(&["kill", name]).ok();
        root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
    }
    assert_eq!(lines(&root, &["--regex", r"^seen-\d+", "--kind", "output"]), expected);
}

#[test]
fn hits_are_written_for_people_and_for_programs() {
    let root = Root::new();
    root.start_script("app", "echo one; echo two needle two; echo three; exit 4");
    root.wait_status("app", "failed");
    let output = root.run(&["search", "needle", "-C", "1", "--kind", "output"]);
    assert_eq!(output.code, 0);
    let (head, rest) = output.stdout.split_once('\n').expect("lines");
    assert!(head.starts_with("app · 2") && head.ends_with("Z · output · exit code 4"), "{head}");
    assert_eq!(rest, "  one\n  two needle two\n  three\n");
    assert!(output.stderr.starts_with("1 hit in 1 session · searched "), "{}", output.stderr);
    assert_eq!(root.run(&["search", "--kind", "output", "needle", "--exit-code", "4"]).code, 0);
    let hit = &hits(&root, &["needle", "-C", "1", "--kind", "output"])[0];
    assert_eq!((&hit["before"], &hit["after"], &hit["ranges"]), (&json!(["one"]), &json!(["three"]), &json!([[4, 10]])));

    let sentence = root.run(&["search", "Nowhere*"]).refused(1);
    for word in ["Nowhere* was not found", "1 session", "-i takes no notice of case", "--regex"] {
        assert!(sentence.contains(word), "{word} in {sentence}");
    }
    for (args, word) in [
        (&["search", "--regex", "a("][..], "unclosed group"),
        (&["search", "--regex", "x*"], "nothing at all"),
        (&["search", "--regex", "(a{1000}){1000}"], "too large"),
        (&["search", ""], "nothing to look for"),
        (&["search", "two\nlines"], "line break"),
        (&["search", "x", "--kind", "screen"], "output, code, command, event or task"),
        (&["search", "x", "--author", "god"], "human, agent, api or daemon"),
        (&["search", "x", "--after", "soon"], "is not a time"),
        (&["search", "x", "--limit", "0"], "1 or more"),
    ] {
        let sentence = root.run(args).refused(2);
        assert!(sentence.contains(word), "{args:?}: {sentence}");
    }
    assert!(root.run(&["search", "needle", "--open"]).refused(2).contains("terminal"));
}

#[test]
fn an_empty_root_says_so() {
    let root = Root::new();
    assert!(root.run(&["search", "anything"]).refused(1).contains("no session to search"));
}

#[test]
fn the_living_the_dead_and_those_of_before_a_crash_are_searched() {
    let root = Root::new();
    root.start_script("dead", "echo treasure of the dead; exit 0");
    root.wait_status("dead", "completed");
    root.start_script("living", "echo treasure of the living; exec sleep 1000");
    root.wait_screen("living", "treasure");
    let expected = ["treasure of the living", "treasure of the dead"];
    assert_eq!(lines(&root, &["treasure of", "--kind", "output"]), expected);
    root.kill_daemon();
    assert_eq!(lines(&root, &["treasure of", "--kind", "output"]), expected);
    // lost with its holder: what it said stays
    let (holder, daemon) = (root.holder("living"), root.daemon_pid());
    process::kill(daemon);
    process::kill(holder);
    assert_eq!(root.status("living").0, "failed");
    assert_eq!(lines(&root, &["treasure of", "--kind", "output"]).len(), 2);
}

#[test]
fn nothing_that_was_recorded_can_act() {
    let root = Root::new();
    let evil = "\u{1b}]0;pwned\u{7}trap\u{1b}[31m\u{202e}\u{200b}\u{9b}2Jend";
    printed(&root, "evil", &[format!("{evil}\r\n").as_bytes()]);
    root.record("task", &["--task", evil]);
    root.run(&["event", "task", "told", "--data", &json!({"text": evil}).to_string()]).ok();
    let mut calls = Calls::of_session(&root, "task");
    calls.exec("python", &format!("# {evil}\nprint({evil:?}.replace('\\\\u{{', ''))"));
    for args in
        [&["search", "trap"][..], &["search", "trap", "--json"], &["search", "-i", "TRAP", "-C", "2"], &["search", "--regex", "tr.p"]]
    {
        let output = root.run(args);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(output.stdout.matches("trap").count() >= 4, "{}", output.stdout);
        assert_clean(&output.stdout);
        assert_clean(&output.stderr);
    }
    assert_clean(&root.run(&["search", evil.trim_matches(char::is_control)]).stderr);
    assert_clean(&root.run(&["search", "not there \u{202e}"]).stderr);
}

#[test]
fn damage_is_said_and_the_rest_is_found() {
    let root = Root::new();
    printed(&root, "hurt", &[b"before the damage\r\n", b"behind the damage\r\n"]);
    root.run(&["kill", "hurt"]).ok();
    root.wait_status("hurt", "ended");
    root.start_script("whole", "echo nothing the damage could do; exit 0");
    root.wait_status("whole", "completed");
    let segment = recording::segments(&root.recording("hurt")).pop().expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("reads");
    let place = bytes.windows(6).position(|part| part == b"behind").expect("there");
    bytes[place] = b'X';
    std::fs::write(&segment, &bytes).expect("writes");
    let output = root.run(&["search", "the damage", "--kind", "output"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("before the damage") && output.stdout.contains("nothing the damage could do"), "{}", output.stdout);
    assert!(!output.stdout.contains("ehind"), "{}", output.stdout);
    assert!(
        output.stderr.contains("not searched:") && output.stderr.contains("hurt (") && output.stderr.contains("cannot be read"),
        "{}",
        output.stderr
    );
}

/// Searches that nobody waits for any more, and how much there is to be read by each.
const ABANDONED: u64 = 40;
const PRINTED: u64 = 40_000_000;

/// Bytes a process has read so far.
fn bytes_read(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("a process");
    text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).expect("a number")
}

#[test]
fn a_reader_that_leaves_ends_the_search() {
    let root = Root::new();
    root.start_script("long", &format!("yes 'a line that is found again and again' | head -c {PRINTED}; echo the-end; exec sleep 1000"));
    root.wait_screen("long", "the-end");
    let mut child = root.command(&["search", "again", "--limit", "10000", "--json"]).spawn().expect("starts");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut first).expect("a line");
    assert!(first.contains("found again"), "{first}");
    process::kill(child.id());
    child.wait().expect("gone");
    // an expression that takes its time over everything
    let daemon = root.daemon_pid();
    let before = bytes_read(daemon);
    for _ in 0..ABANDONED {
        let mut wire = Wire::greeted(&root.socket());
        wire.say(&json!({"id": 7, "request": "search", "pattern": r"(a|l|i|n|e| )+(x|y|z)+q\d+$", "regex": true}));
    }
    // quiet for many looks in a row: nobody works for them any more
    let (mut last, mut looks) = (before, 0);
    wait_until("the daemon to read no more", || {
        let now = bytes_read(daemon);
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        looks == 30
    });
    let read = last - before;
    assert!(read < ABANDONED * PRINTED / 4, "{read} bytes were read for nobody");
    assert_eq!(hits(&root, &["found again", "--kind", "output", "--limit", "1"]).len(), 1, "others are served");
}

#[test]
fn agents_search_too() {
    let root = Root::new();
    root.start_script("app", "echo connection refused by peer; exit 2");
    root.wait_status("app", "failed");
    let mut mcp = Mcp::start(&root, Era::Discover);
    let text = mcp.text("search", json!({"pattern": "CONNECTION refused", "ignore_case": true, "kinds": ["output"]}));
    assert!(text.starts_with("1 hit in 1 session; searched 1 session\n\napp ("), "{text}");
    assert!(text.contains(" · output · exit code 2\n> connection refused by peer\n"), "{text}");
    let text = mcp.text("search", json!({"pattern": "nowhere"}));
    assert!(text.starts_with("0 hits in 0 sessions"), "{text}");
    assert!(mcp.refused("search", json!({"pattern": "(", "regex": true}), "usage").contains("no regular expression"));
    mcp.refused("search", json!({"pattern": "x", "session": "nobody"}), "not_found");
}

#[test]
fn commands_of_shells_that_mark_them_are_found_with_their_ends() {
    let root = Root::new();
    let script = r#"for c in 'make test' 'make clean' 'ls -l'; do printf '\033]133;A\007$ \033]133;B\007%s\r\n\033]133;C\007' "$c"; echo makes noise
        printf '\033]133;D;%s\007' ${#c}; done; exec sleep 1000"#;
    root.start_script("shell", script);
    root.wait_screen("shell", "ls -l");
    root.run(&["wait", "shell", "--for", "quiet", "--timeout", "20s"]).ok();
    let found = lines(&root, &["make", "--kind", "command"]);
    assert_eq!(found, ["make clean", "make test"], "newest first");
    assert_eq!(lines(&root, &["make", "--kind", "command", "--exit-code", "9"]), ["make test"]);
    let hit = &hits(&root, &["make test", "--kind", "command"])[0];
    assert_eq!((&hit["kind"], &hit["exit_code"]), (&serde_json::json!("command"), &serde_json::json!(9)));
    assert!(hit["offset"].is_u64(), "{hit}");
}
