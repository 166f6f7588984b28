//! Recordings as files: asciicast for the real asciinema, text, a page; and back again.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::wire::Wire;
use crate::support::{Root, Term};

/// Colours, a command with its marks, wide characters, a pause, a full-screen part, a secret, an exit code.
const DEMO: &str = r"printf '\033]133;A\007$ \033]133;B\007make test\r\n\033]133;C\007'; printf 'one \033[31mred\033[0m ünïcode 中文 🙂\n'
printf '\033]133;D;0\007'; sleep 0.3; echo token ghp_abcdefghijklmnopqrstuvwxyz0123456789 end; for i in $(seq 1 40); do echo line $i; done
printf '\033[?1049h\033[2J\033[5;10HFULL SCREEN'; sleep 0.1; printf '\033[?1049l'; echo bye; exit 3";

fn demo(root: &Root) {
    root.start_script("demo", DEMO);
    root.run(&["wait", "demo", "--for", "exit", "--timeout", "20s"]).ok();
}

/// The real asciinema, installed once for all runs.
fn asciinema() -> PathBuf {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    READY
        .get_or_init(|| {
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("asciinema-2.4.0");
            let program = folder.join("bin/asciinema");
            if !program.exists() {
                let run = |program: &str, args: &[&str]| {
                    let output = Command::new(program).args(args).output().expect(program);
                    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
                };
                run("python3", &["-m", "venv", folder.to_str().expect("a path")]);
                run(folder.join("bin/pip").to_str().expect("a path"), &["install", "--quiet", "asciinema==2.4.0"]);
            }
            program
        })
        .clone()
}

fn lines(cast: &str) -> (Value, Vec<(f64, String, String)>) {
    let mut lines = cast.lines();
    let header = serde_json::from_str(lines.next().expect("a header")).expect("a header");
    (header, lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect())
}

#[test]
fn asciicast_has_the_exact_bytes_and_times_of_the_recording() {
    let root = Root::new();
    demo(&root);
    let recorded = crate::support::recording::output(&root.recording("demo"));
    for (format, version) in [("asciicast-v3", 3), ("asciicast-v2", 2), ("asciicast", 2)] {
        let (header, events) = lines(&root.run(&["export", "demo", "--raw", "--format", format]).ok());
        assert_eq!(header["version"], version);
        let size =
            if version == 3 { json!([header["term"]["cols"], header["term"]["rows"]]) } else { json!([header["width"], header["height"]]) };
        assert_eq!(size, json!([80, 24]));
        let output: String = events.iter().filter(|(_, code, _)| code == "o").map(|(_, _, data)| data.as_str()).collect();
        assert_eq!(output.as_bytes(), recorded, "{format}");
        assert!(events.iter().any(|(_, code, data)| code == "m" && data == "make test"), "{events:?}");
        let length: f64 = if version == 3 { events.iter().map(|event| event.0).sum() } else { events.last().expect("events").0 };
        assert!(length > 0.3, "{length}");
        let exits: Vec<&str> = events.iter().filter(|(_, code, _)| code == "x").map(|(_, _, data)| data.as_str()).collect();
        assert_eq!(exits, if version == 3 { vec!["3"] } else { vec![] });
    }
    // pauses can be cut
    let (_, events) = lines(&root.run(&["export", "demo", "--format", "asciicast-v3", "--idle-limit", "50ms"]).ok());
    assert!(events.iter().all(|event| event.0 <= 0.05), "{events:?}");
}

#[test]
fn the_real_asciinema_plays_what_is_exported() {
    let root = Root::new();
    demo(&root);
    let file = root.work().join("demo.cast");
    root.run(&["export", "demo", "--raw", "--format", "asciicast-v2", "-o", file.to_str().expect("a path")]).ok();
    let printed = Command::new(asciinema()).arg("cat").arg(&file).env("HOME", root.path()).output().expect("asciinema runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    assert_eq!(printed.stdout, crate::support::recording::output(&root.recording("demo")));
    // and it records what we take in
    let cast = root.work().join("theirs.cast");
    let recorded = Command::new(asciinema())
        .args(["rec", "-q", "--cols", "70", "--rows", "20", "-t", "their title", "-c", "sh -c 'echo from-asciinema; exit 0'"])
        .arg(&cast)
        .env("HOME", root.path())
        .output()
        .expect("asciinema runs");
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    assert_eq!(root.run(&["import", cast.to_str().expect("a path")]).ok(), "theirs\n");
    assert!(root.screen("theirs").contains("from-asciinema"));
    let session = root.session("theirs");
    assert_eq!((&session["status"], &session["metadata"]["imported"]["title"]), (&json!("completed"), &json!("their title")));
    // written again it is called what it was called, not what we call it
    let cast = root.run(&["export", "theirs", "--format", "cast"]).ok();
    assert!(cast.lines().next().is_some_and(|header| header.contains("\"their title\"")), "{cast}");
    let page = root.run(&["export", "theirs", "--format", "html"]).ok();
    assert!(page.contains("<title>their title</title>"), "{}", &page[..page.len().min(600)]);
}

#[test]
fn text_is_what_was_seen() {
    let root = Root::new();
    demo(&root);
    let text = root.run(&["export", "demo", "--format", "text"]).ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[..2], ["$ make test", "one red ünïcode 中文 🙂"]);
    assert_eq!(lines[2], format!("token {} end", "*".repeat(40)), "secrets are covered by default");
    assert_eq!(&lines[lines.len() - 2..], ["line 40", "bye"]);
    assert_eq!(lines.len(), 44);
    assert!(root.run(&["export", "demo", "--format", "text", "--raw"]).ok().contains("ghp_abcdef"));
    // a line that was wrapped is one line
    root.start_script("wide", "printf '%0300d\\n' 7; echo after; exit 0");
    root.run(&["wait", "wide", "--for", "exit", "--timeout", "20s"]).ok();
    assert_eq!(root.run(&["export", "wide", "--format", "text"]).ok(), format!("{:0300}\nafter\n", 7));
}

#[test]
fn secrets_are_covered_in_every_format_wherever_they_are() {
    let root = Root::new();
    root.config("[recording.redact]\nrules = [\"corp-[0-9]{6}\"]\n");
    // cut by time, by colour, in the command line, in a title, in a mark
    let script = "printf 'ghp_abcdefghijklmn'; sleep 0.1; printf 'opqrstuvwxyz0123456789 \\n'; printf 'corp-1\\033[1m234\\033[0m56\\n'
printf '\\033]133;A\\007$ \\033]133;B\\007login corp-777777\\r\\n\\033]133;C\\007ok\\n\\033]133;D;0\\007'; : corp-555555; exit 0";
    let file = root.work().join("script");
    std::fs::write(&file, script).expect("writes");
    root.start("secrets", &["sh", file.to_str().expect("a path"), "corp-999999"]);
    root.run(&["wait", "secrets", "--for", "exit", "--timeout", "20s"]).ok();
    for format in ["asciicast", "asciicast-v2", "text", "html"] {
        let text = root.run(&["export", "secrets", "--format", format]).ok();
        for secret in ["ghp_abc", "opqrstuvwxyz", "123456789", "234\\u001b", "corp-7", "corp-5", "corp-9"] {
            assert!(!text.contains(secret), "{secret} in {format}: {text}");
        }
        assert!(text.contains("****"), "{format}");
        let raw = root.run(&["export", "secrets", "--raw", "--format", format]).ok();
        assert!(raw.contains("ghp_abc") || format == "html", "{format}: {raw}");
    }
}

#[test]
fn a_page_plays_by_itself_and_nothing_in_it_is_from_elsewhere() {
    let root = Root::new();
    root.start_script("page", "printf '</script><script>alert(1)</script>'; printf '\\033[2J\\033[H\\033[32mgreen\\033[0m & <b>'; sleep 0.2; echo; echo last; exit 0");
    root.run(&["wait", "page", "--for", "exit", "--timeout", "20s"]).ok();
    let file = root.work().join("page.html");
    root.run(&["export", "page", "-o", file.to_str().expect("a path")]).ok();
    let page = std::fs::read_to_string(&file).expect("reads");
    assert!(page.starts_with("<!doctype html>") && page.contains("Content-Security-Policy"));
    assert_eq!((page.matches("<script").count(), page.matches("src=").count(), page.matches("href=").count()), (2, 0, 0));
    assert!(page.contains("<span class=\"f2\">green</span> &amp; &lt;b&gt;"), "its last screen is there without a script");
    // its own script runs, and shows the last picture at the end
    let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("its data");
    let data: Value = serde_json::from_str(data).expect("JSON");
    let rows: Vec<&str> = data["rows"].as_array().expect("rows").iter().filter_map(Value::as_str).collect();
    assert!(rows.contains(&"last"), "{rows:?}");
    let script = page.split("<script>").nth(1).and_then(|rest| rest.split("</script>").next()).expect("its script");
    let checked = root.work().join("player.js");
    std::fs::write(&checked, script).expect("writes");
    let output = Command::new("node").arg("--check").arg(&checked).output().expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_version_comes_in_and_goes_out_again() {
    let root = Root::new();
    demo(&root);
    for format in ["asciicast-v3", "asciicast-v2"] {
        let cast = root.run(&["export", "demo", "--raw", "--format", format]).ok();
        let name = format.replace("asciicast", "in");
        assert_eq!(root.run_with_input(&["import", "-", "-n", &name], cast.as_bytes()).ok(), format!("{name}\n"));
        let again = root.run(&["export", &name, "--raw", "--format", format]).ok();
        let (first, second) = (lines(&cast), lines(&again));
        let data = |events: &[(f64, String, String)], wanted: &str| -> String {
            events.iter().filter(|(_, code, _)| code == wanted).map(|(_, _, data)| data.as_str()).collect()
        };
        assert_eq!(data(&first.1, "o"), data(&second.1, "o"));
        assert_eq!(first.0["timestamp"], second.0["timestamp"]);
        assert_eq!(root.screen(&name), root.screen("demo"));
        let expected = if format == "asciicast-v3" { ("failed", "exit code 3") } else { ("completed", "exit code 0") };
        assert_eq!(root.status(&name), (expected.0.into(), expected.1.into()));
    }
    let first = r#"{"version":1,"width":60,"height":10,"stdout":[[0.1,"hel"],[2.5,"lo\r\n"]]}"#;
    root.run_with_input(&["import", "-", "-n", "one"], first.as_bytes()).ok();
    assert!(root.screen("one").contains("hello"));
    let found = root.run(&["search", "hello", "-s", "one"]).ok();
    assert!(found.contains("hello"), "{found}");
    // markers come with it
    let third = "{\"version\":3,\"term\":{\"cols\":50,\"rows\":8}}\n# a comment\n[0.5,\"o\",\"a\"]\n[1.0,\"m\",\"chapter one\"]\n[0.1,\"r\",\"60x9\"]\n[0.1,\"o\",\"b\"]\n";
    root.run_with_input(&["import", "-", "-n", "three"], third.as_bytes()).ok();
    let mut wire = Wire::greeted(&root.socket());
    let outline = wire.call(1, json!({"request": "replay", "name": "three"}))["ok"].clone();
    assert!(
        outline["marks"].as_array().expect("marks").iter().any(|mark| mark["kind"] == "marker" && mark["text"] == "chapter one"),
        "{outline}"
    );
    // taken in, it is a session like others: it survives the daemon, and goes when it is told to
    root.kill_daemon();
    assert!(root.screen("one").contains("hello"));
    root.run(&["rm", "one"]).ok();
}

#[test]
fn what_is_no_recording_is_refused_and_leaves_nothing() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    for (text, words) in [
        ("", "no asciicast"),
        ("hello\n", "no asciicast"),
        ("{\"version\":7,\"width\":1,\"height\":1}\n", "version 7"),
        ("{\"version\":2,\"width\":80,\"height\":24}\n[0,\"o\",\"fine\"]\n{broken\n", "line 3"),
        ("{\"version\":2,\"width\":80,\"height\":24}\n[1e999,\"o\",\"x\"]\n", "line 2"),
        ("{\"version\":3}\n", "term"),
    ] {
        let refusal = root.run_with_input(&["import", "-", "-n", "bad"], text.as_bytes()).refused(2);
        assert!(refusal.contains(words) && refusal.lines().count() == 1, "{text:?}: {refusal}");
    }
    assert_eq!(root.json(&["ls", "--all", "--json"]), json!([]));
    let folder = root.join("state/recordings");
    crate::support::wait_until("nothing to be left", || std::fs::read_dir(&folder).map_or(0, Iterator::count) == 0);
    let refusal = root.run(&["import", "/nowhere/at.cast"]).refused(2);
    assert!(refusal.contains("at.cast"), "{refusal}");
    root.start_script("taken", "exec sleep 1000");
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0,\"o\",\"x\"]\n";
    let refusal = root.run_with_input(&["import", "-", "-n", "taken"], cast.as_bytes()).refused(2);
    assert!(refusal.contains("another name"), "{refusal}");
    // hostile, but a recording: huge, back in time, escapes in its title
    let hostile = "{\"version\":2,\"width\":65535,\"height\":65535,\"title\":\"\\u001b]0;x\\u0007\",\"command\":\"\\u001b[2Jrm\"}\n[5,\"o\",\"\\u001b]52;c;eA==\\u0007a\"]\n[-1,\"o\",\"b\"]\n";
    root.run_with_input(&["import", "-", "-n", "hostile"], hostile.as_bytes()).ok();
    let shown = root.run(&["ls", "--all"]).ok() + &root.run(&["show", "hostile"]).ok();
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn an_import_that_is_cut_off_leaves_nothing_behind() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let folder = root.join("state/recordings");
    let count = || std::fs::read_dir(&folder).map_or(0, Iterator::count);
    let begin = json!({"request": "import", "step": "begin", "name": "half", "called": null, "here": "/", "began_at": null,
        "size": {"cols": 80, "rows": 24}, "command": null, "title": null});
    let records =
        json!({"request": "import", "step": "records", "records": [{"end": 0, "time": 1, "what": "output", "base64": "aGVsbG8="}]});
    let mut wire = Wire::greeted(&root.socket());
    assert!(wire.call(1, records.clone())["failure"]["message"].as_str().expect("a sentence").contains("begin"));
    assert_eq!(wire.call(2, begin.clone())["ok"], Value::Null);
    assert_eq!(wire.call(3, records.clone())["failure"], Value::Null);
    assert_eq!(count(), 1);
    drop(wire);
    crate::support::wait_until("the half to be gone", || count() == 0);
    // kill -9 in the middle: the next daemon takes it away
    let mut wire = Wire::greeted(&root.socket());
    wire.call(1, begin);
    wire.call(2, records);
    root.kill_daemon_at_once();
    assert_eq!(count(), 1);
    root.run(&["ls"]).ok();
    crate::support::wait_until("the half to be gone", || count() == 0);
}

#[test]
fn files_are_whole_or_not_there() {
    let root = Root::new();
    demo(&root);
    let file = root.work().join("out.cast");
    let path = file.to_str().expect("a path");
    root.run(&["export", "demo", "-o", path]).ok();
    let refusal = root.run(&["export", "demo", "-o", path]).refused(2);
    assert!(refusal.contains("--force"), "{refusal}");
    root.run(&["export", "demo", "-o", path, "--force"]).ok();
    assert!(root.run(&["export", "nobody", "-o", path, "--force"]).refused(3).contains("nobody"));
    assert!(std::fs::read_to_string(&file).expect("still there").starts_with("{\"version\":2"));
    assert!(root.run(&["export", "demo", "--format", "gif"]).refused(2).contains("asciicast"));
    assert_eq!(root.run(&["export", "demo", "-o", "/nowhere/x.cast"]).code, 1);
    let left: Vec<_> = std::fs::read_dir(root.work())
        .expect("a folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .collect();
    assert!(left.iter().all(|name| !name.contains("part")), "{left:?}");
    // on a terminal a recording is not thrown at the screen
    let mut term = Term::open(&root, 80, 24, &["export", "demo"]);
    assert_eq!(term.wait_exit(), 2);
    assert!(term.text().contains("-o"), "{}", term.text());
}

#[test]
fn a_live_session_is_written_as_far_as_it_is_and_interpreters_too() {
    let root = Root::new();
    root.start_script("live", "echo so-far; exec sleep 1000");
    root.wait_screen("live", "so-far");
    let output = root.run(&["export", "live", "-o", root.work().join("live.txt").to_str().expect("a path")]);
    assert!(output.stderr.contains("goes on"), "{}", output.stderr);
    root.run(&["exec", "-s", "live", "-l", "python", "print('from', 'python')"]).ok();
    let text = root.run(&["export", "live", "-l", "python", "--format", "text"]).ok();
    assert!(text.contains("print('from', 'python')") && text.contains("\nfrom python"), "{text}");
    let (_, events) = lines(&root.run(&["export", "live", "-l", "python"]).ok());
    assert!(events.iter().any(|(_, code, data)| code == "m" && data.contains("print(")), "{events:?}");
}

#[test]
fn a_dash_is_standard_output_and_a_path_is_printed_without_its_escapes() {
    let root = Root::new();
    root.start_script("job", "echo printed-by-it");
    root.wait_status("job", "completed");
    let text = root.run(&["export", "job", "--format", "text", "-o", "-"]).ok();
    assert!(text.contains("printed-by-it"), "{text}");
    assert!(!root.work().join("-").exists());
    let said = root.run(&["export", "job", "--format", "text", "-o", "a\x1b[31mb.txt"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.stderr.contains('\x1b') && said.stderr.contains("b.txt"), "{said:?}");
}

#[test]
fn b8_large_events_are_imported_and_what_is_too_large_is_named() {
    let root = Root::new();
    let header = "{\"version\":2,\"width\":80,\"height\":24}\n";
    let large = format!("{header}[0.1,\"o\",\"{}end\"]\n", "x".repeat(9 << 20));
    assert_eq!(root.run_with_input(&["import", "-", "-n", "large"], large.as_bytes()).ok(), "large\n");
    assert!(root.screen("large").contains("xend"), "{}", root.screen("large"));
    // other texts are cut, and any other request that is too large is answered
    let marker = format!("{header}[0.1,\"m\",\"{}\"]\n", "x".repeat(9 << 20));
    root.run_with_input(&["import", "-", "-n", "marker"], marker.as_bytes()).ok();
    let title = format!("{{\"version\":2,\"width\":80,\"height\":24,\"title\":\"{}\"}}\n", "x".repeat(9 << 20));
    root.run_with_input(&["import", "-", "-n", "title"], title.as_bytes()).ok();
    let mut wire = crate::support::wire::Wire::greeted(&root.socket());
    let line = format!("{{\"id\": 5, \"request\": \"show\", \"name\": \"{}\"}}\n", "x".repeat(9 << 20));
    let _ = wire.write(line.as_bytes());
    let answer = wire.line().expect("an answer, not a closed connection");
    assert!(answer.to_string().contains("too large"), "{answer}");
}
