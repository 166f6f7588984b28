//! What is recorded is what may be: not what is typed, nothing where nothing is wanted, and no longer than it is wanted.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::recording::{self, Kind};
use crate::support::{BASH, Root, Term, wait_until};

/// Whether these bytes are in any file of ours.
fn is_anywhere(root: &Root, text: &str) -> bool {
    fn walk(dir: &std::path::Path, text: &[u8]) -> bool {
        std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok).any(|entry| {
            let path = entry.path();
            if path.is_dir() {
                return walk(&path, text);
            }
            std::fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text))
        })
    }
    walk(&root.join("state"), text.as_bytes())
}

#[test]
fn b3_exports_and_input_are_private_and_do_not_stay() {
    use std::os::unix::fs::PermissionsExt;
    let root = Root::new();
    root.start("shell", &["bash"]);
    root.run(&["wait", "shell", "--for", "prompt", "--timeout", "20s"]).ok();
    root.run(&["send", "shell", "--enter", "umask 0; export EXPORTED=canary-exported"]).ok();
    let files = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(root.join("run")).expect("a directory").filter_map(Result::ok).map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|ending| ending != "sock")).collect()
    };
    let has_canary = || files().iter().any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("canary-exported")));
    crate::support::wait_until("the export to be written", has_canary);
    for path in files() {
        let mode = std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
    // daemon and holder die together
    let holder = root.holder("shell");
    root.kill_daemon();
    crate::support::process::kill(holder);
    root.run(&["ls"]).ok();
    assert_eq!(files(), Vec::<std::path::PathBuf>::new(), "the next daemon removes them");
    // longer than a call that is stored only when it is over
    root.run_with_input(&["exec", "-l", "bash", "--stdin", "canary-of-input", "sleep 0.3; cat >/dev/null"], b"").ok();
    for file in ["sessions.db", "sessions.db-wal", "sessions.backup.db"] {
        // a result is answered before it is stored
        crate::support::wait_until(&format!("the input to be gone from {file}"), || {
            let bytes = std::fs::read(root.join("state").join(file)).unwrap_or_default();
            !crate::support::term::contains(&bytes, b"canary-of-input")
        });
    }
}

#[test]
fn what_is_typed_is_not_recorded_unless_asked_for() {
    let root = Root::new();
    // the program shows nothing of what it reads
    root.start_script("quiet", "stty -echo; echo ready; while read line; do echo got ${#line}; done");
    root.wait_screen("quiet", "ready");
    root.run(&["send", "quiet", "--enter", "canary-typed"]).ok();
    root.wait_screen("quiet", "got 12");
    assert!(!is_anywhere(&root, "canary-typed"));
    assert!(recording::frames(&root.recording("quiet")).iter().all(|frame| frame.kind != Kind::Input));
}

#[test]
fn typed_input_is_recorded_on_request_and_never_where_the_terminal_hides_it() {
    let root = Root::new();
    let argv: Vec<&str> = ["new", "-d", "-n", "typed", "--record-input", "--"].into_iter().chain(BASH.iter().copied()).collect();
    root.run(&argv).ok();
    let term = Term::open(&root, 80, 24, &["attach", "typed"]);
    term.wait_for_text("$");
    term.send(b"echo vis''ible-$((40+2))\r");
    term.wait_for_text("visible-42");
    // at the prompt: what is typed before it is there is shown after something else, and not recorded
    root.wait_screen("typed", "visible-42\n$");
    term.send(b"read -s SECRET; echo len ${#SECRET}\r");
    let reads_hidden = || {
        let pid = root.program("typed").to_string();
        let flags = std::process::Command::new("stty").arg("-a").arg("-F").arg(format!("/proc/{pid}/fd/0")).output().expect("stty");
        String::from_utf8_lossy(&flags.stdout).split_whitespace().any(|word| word == "-echo")
            && String::from_utf8_lossy(&flags.stdout).split_whitespace().any(|word| word == "icanon")
    };
    wait_until("the password to be asked for", reads_hidden);
    term.send(b"canary-pass\r");
    root.wait_screen("typed", "len 11\n$");
    // keys at once, without an echo and without lines: as programs that draw their own field ask, and ssh passes on
    term.send(b"read -s -n 10 KEYS; echo keys ${#KEYS}\r");
    wait_until("keys to be asked for", || !root.screen("typed").contains("keys 10") && root.screen("typed").contains("KEYS; echo"));
    for key in "canary-key".chars() {
        term.send(key.to_string().as_bytes());
    }
    term.wait_for_text("keys 10");
    drop(term);
    let typed: Vec<u8> = recording::frames(&root.recording("typed"))
        .into_iter()
        .filter(|frame| frame.kind == Kind::Input)
        .flat_map(|frame| frame.body)
        .collect();
    let typed = String::from_utf8_lossy(&typed).into_owned();
    assert!(typed.contains("echo vis''ible-$((40+2))\r") && typed.contains("read -s SECRET"), "{typed:?}");
    assert!(!is_anywhere(&root, "canary-pass") && !typed.contains("canary-key") && !typed.contains("ary-k"), "{typed:?}");
    // it is in an export as input, and the screen of a replay is the same with or without
    let cast = root.run(&["export", "typed"]).ok();
    assert!(cast.lines().any(|line| line.contains("\"i\"")), "{cast}");
    // after kill -9 of the daemon it goes on like that
    root.kill_daemon();
    root.run(&["send", "typed", "--enter", "echo aft''er-$((40+2))"]).ok();
    root.wait_screen("typed", "after-42");
    assert!(is_anywhere(&root, "echo aft''er-"));
}

#[test]
fn a_session_without_recording_leaves_nothing_and_works() {
    let root = Root::new();
    let argv: Vec<&str> = ["new", "-d", "-n", "off", "--no-record", "--"].into_iter().chain(BASH.iter().copied()).collect();
    root.run(&argv).ok();
    let mut term = Term::open(&root, 80, 24, &["attach", "off"]);
    term.wait_for_text("$");
    term.send(b"echo canary-$((40+2))-printed\r");
    term.wait_for_text("canary-42-printed");
    term.resize(100, 30);
    wait_until("the new size", || root.session("off")["size"]["cols"] == 100);
    term.send(b"stty size\r");
    term.wait_for_text("30 100");
    term.close();
    assert!(root.screen("off").contains("canary-42-printed"), "whoever looks while it lives sees it");
    let runtime = root.runtime("off");
    assert!(runtime["recording"]["suspended"].as_str().expect("says so").contains("--no-record"), "{runtime}");
    let refusal = root.run(&["search", "canary-42-printed"]).refused(1);
    assert!(refusal.contains("not found"), "{refusal}");
    let refusal = root.run(&["export", "off"]).refused(4);
    assert!(refusal.contains("--no-record"), "{refusal}");
    let mut term = Term::open(&root, 80, 24, &["replay", "off"]);
    assert_eq!(term.wait_exit(), 4);
    assert!(term.text().contains("--no-record"), "{}", term.text());
    // looking back there is nothing to be seen: that is said, and a key leads back
    let term = Term::open(&root, 80, 24, &["attach", "off"]);
    term.wait_for_text("canary-42-printed");
    term.send(b"\x02[");
    term.wait_for_text("--no-record");
    term.wait_for_text("any key: back to the program");
    term.send(b" ");
    term.wait_for("the program is back", |screen| (0..24).any(|row| screen.row_text(row).contains("canary-42-printed")));
    term.send(b"echo still-$((40+2))\r");
    term.wait_for_text("still-42");
    drop(term);
    root.kill_daemon();
    root.run(&["send", "off", "--enter", "echo again-$((40+2))"]).ok();
    root.wait_screen("off", "again-42");
    root.run(&["send", "off", "--enter", "exit 7"]).ok();
    root.run(&["wait", "off", "--for", "exit", "--timeout", "20s"]).ok();
    assert_eq!(root.status("off"), ("failed".into(), "exit code 7".into()));
    assert!(!is_anywhere(&root, "canary-42-printed") && !is_anywhere(&root, "again-42"));
}

#[test]
fn its_end_is_known_even_if_nobody_was_there() {
    let root = Root::new();
    root.run(&["new", "-d", "-n", "off", "--no-record", "--", "sh", "-c", "read line; exit 9"]).ok();
    root.run(&["send", "off", "--enter", "go"]).ok();
    root.kill_daemon_at_once();
    wait_until("its holder to be gone", || root.holders().is_empty());
    assert_eq!(root.status("off"), ("failed".into(), "exit code 9".into()));
}

#[test]
fn forget_takes_bytes_keyframes_and_words_and_a_live_session_goes_on() {
    let root = Root::new();
    root.start("live", BASH);
    root.run(&["send", "live", "--enter", "echo canary-$((40+2))-live"]).ok();
    root.wait_screen("live", "canary-42-live");
    root.run(&["exec", "-s", "live", "-l", "bash", "echo canary-$((1+1))-exec # canary-code"]).ok();
    root.run(&["eval", "-s", "live", "-l", "python", "'canary-value' * 2000"]).ok();
    root.run_with_input(&["exec", "-s", "live", "-l", "python", "-"], format!("# {}\n", "canary-long ".repeat(9000)).as_bytes()).ok();
    assert!(is_anywhere(&root, "canary-42-live") && is_anywhere(&root, "canary-2-exec") && is_anywhere(&root, "canary-code"));
    let said = root.run(&["forget", "live"]).ok();
    assert!(said.contains("forgotten") && said.contains("screen"), "{said}");
    for text in ["canary-42-live", "canary-2-exec", "canary-code", "canary-value", "canary-long"] {
        assert!(!is_anywhere(&root, text), "{text} is still there");
    }
    assert!(root.run(&["search", "canary"]).refused(1).contains("not found"));
    root.run(&["send", "live", "--enter", "clear; echo next-$((40+2))"]).ok();
    root.wait_screen("live", "next-42");
    root.kill_daemon();
    root.wait_screen("live", "next-42");
    assert!(root.kinds("live").contains(&"forgotten".to_owned()));
    // of one that has ended, all goes
    root.run(&["kill", "live"]).ok();
    root.run(&["forget", "live", "--json"]).ok();
    let left: Vec<_> = std::fs::read_dir(root.recording("live")).expect("a note that it was meant").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let refusal = root.run(&["replay", "live"]).refused(2);
    assert!(refusal.contains("terminal"), "{refusal}");
    let refusal = root.run(&["export", "live"]).refused(4);
    assert!(refusal.contains("recorded"), "{refusal}");
    assert!(root.run(&["forget", "nobody"]).refused(3).contains("nobody"));
}

#[test]
fn secrets_are_covered_before_they_are_recorded_if_the_settings_say_so() {
    let root = Root::new();
    root.config("[recording.redact]\nat_write = true\nrules = [\"corp-[0-9]{6}\"]\n");
    root.start_script("covered", "echo token ghp_abcdefghijklmnopqrstuvwxyz0123456789 and corp-123456 end; exec sleep 1000");
    root.wait_screen("covered", "end");
    assert!(root.screen("covered").contains(&format!("token {} and {} end", "*".repeat(40), "*".repeat(11))), "{}", root.screen("covered"));
    let of_state = |text: &str| recording::output(&root.recording("covered")).windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!of_state("ghp_abcdef") && !of_state("corp-123456"));
    root.run(&["exec", "-s", "covered", "echo id corp-654321"]).ok();
    let result = root.json(&["exec", "-s", "covered", "--json", "echo id corp-65$((4321))"]);
    assert_eq!(result["stdout"], "id ***********\n");
}

#[test]
fn a_bad_rule_is_named_with_its_line() {
    let root = Root::new();
    root.config("[recording.redact]\nrules = [\"good\", \"bad(\"]\n");
    root.run(&["ls"]);
    let output = root.run(&["daemon", "status"]);
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains("line 2") && said.contains("bad("), "{said}");
    // and nothing leaves uncovered because of it
    root.start_script("one", "echo corp-123456; exec sleep 1000");
    root.wait_screen("one", "corp");
    let refusal = root.run(&["export", "one"]).refused(2);
    assert!(refusal.contains("line 2") && refusal.contains("--raw"), "{refusal}");
    assert!(root.run(&["export", "one", "--raw"]).ok().contains("corp-123456"));
}

#[test]
fn everything_recorded_is_for_this_user_alone() {
    let root = Root::new();
    root.start_script("big", "yes 0123456789 | head -c 18000000; echo; echo WRITTEN; exec sleep 1000");
    root.run(&["wait", "big", "--for", "text=WRITTEN", "--timeout", "60s"]).ok();
    let dir = root.recording("big");
    let names =
        || -> Vec<std::path::PathBuf> { std::fs::read_dir(&dir).expect("a folder").map(|entry| entry.expect("an entry").path()).collect() };
    wait_until("a packed segment", || names().iter().any(|path| path.extension().is_some_and(|end| end == "recz")));
    assert_eq!(std::fs::metadata(&dir).expect("there").permissions().mode() & 0o777, 0o700);
    for path in names() {
        if let Ok(meta) = std::fs::metadata(&path) {
            assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{}", path.display());
        }
    }
    root.run(&["exec", "-s", "big", "true"]).ok();
    for entry in std::fs::read_dir(root.join("state/drivers")).expect("drivers") {
        let path = entry.expect("an entry").path();
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    let file = root.work().join("big.cast");
    root.run(&["export", "big", "-o", file.to_str().expect("a path")]).ok();
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let _: Value = root.json(&["stats", "--disk", "--json"]);
}
