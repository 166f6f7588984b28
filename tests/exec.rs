//! Calls to interpreters: what comes back and how much of it, while they run and afterwards; what is refused.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::exec::Calls;
use crate::support::wire::Wire;
use crate::support::{Root, wait_for, wait_until};

/// Says that it has begun, then waits for the file `go`.
const HELD: &str = "echo begun; touch begun; while [ ! -e go ]; do sleep 0.02; done";

#[track_caller]
fn wait_begun(root: &Root) {
    wait_until("the call to begin", || root.work().join("begun").exists());
}

fn go(root: &Root) {
    std::fs::write(root.work().join("go"), "").expect("writes");
}

#[track_caller]
fn text<'a>(result: &'a Value, key: &str) -> &'a str {
    result[key].as_str().unwrap_or_else(|| panic!("no {key} in {result}"))
}

/// A command whose output is not text.
#[track_caller]
fn bytes(root: &Root, args: &[&str]) -> Output {
    root.command(args).output().expect("runs")
}

/// Bytes in which no two places look alike, of every value.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = Vec::with_capacity(length + 8);
    while noise.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        noise.extend_from_slice(&(state >> 16).to_le_bytes()[..4]);
    }
    noise.truncate(length);
    noise
}

#[test]
fn a_result_says_what_happened() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let id = "01a1e427-0789-74cc-8bfe-000000000001";
    let work = root.work().canonicalize().expect("a folder");
    let result = calls.ask(json!({"request": "exec", "exec": id, "code": "echo out; echo err >&2; (exit 3)"}));
    let session = calls.ask(json!({"request": "state"}));
    assert!(result["durationMs"].as_f64().is_some_and(|ms| ms > 0.0), "{result}");
    let mut expected = json!({
        "success": false, "exitCode": 3, "stdout": "out\n", "stderr": "err\n", "error": "exit code 3", "cwd": work, "execId": id, "language": "bash",
        "session": session["session"], "name": session["name"], "truncated": {"stdout": false, "stderr": false},
        "bytes": {"stdout": 4, "stderr": 4}, "restarted": false,
    });
    expected["durationMs"] = result["durationMs"].clone();
    assert_eq!(result, expected, "this and nothing else");
    // the same for as long as it is kept, and under another daemon
    assert_eq!(calls.ask(json!({"request": "result", "exec": id})), expected);
    root.kill_daemon();
    let mut calls = Calls::new(&root);
    assert_eq!(calls.ask(json!({"request": "result", "exec": id})), expected);
    let refusal = calls.refused(json!({"request": "exec", "exec": id, "code": "echo again"}), "usage");
    assert!(refusal.contains("already"), "an id is used once: {refusal}");
    let good = calls.exec("bash", "true");
    assert_eq!((good["success"].as_bool(), good["exitCode"].as_i64(), good.get("error")), (Some(true), Some(0), None), "{good}");
}

#[test]
fn exec_is_bash_and_eval_is_python_unless_said_otherwise() {
    let root = Root::new();
    assert_eq!(root.run(&["exec", "echo $((1 + 1))"]).ok(), "2\n");
    assert_eq!(root.run(&["eval", "'a' * 3"]).ok(), "'aaa'\n");
    assert_eq!(root.run(&["eval", "-l", "node", "[1, 2].map(n => n * n)"]).ok(), "[ 1, 4 ]\n");
    assert_eq!(root.run(&["eval", "-l", "bash", "echo one; echo two"]).ok(), "one\ntwo\n", "printed once: its value is what it prints");
    assert_eq!(root.run(&["exec", "-l", "python", "1 + 1"]).ok(), "", "values are for eval, and for people");
    let result = root.json(&["eval", "--json", "{'a': [1, None]}"]);
    assert_eq!((text(&result, "value"), &result["json"]), ("{'a': [1, None]}", &json!({"a": [1, null]})));
    let result = root.json(&["eval", "-l", "bash", "--json", "printf 'a\\nb\\n\\n'"]);
    assert_eq!((text(&result, "value"), text(&result, "stdout")), ("a\nb", "a\nb\n\n"), "as $(…) would give it");
    let failed = root.run(&["eval", "1 / 0"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
    assert!(failed.stderr.contains("ZeroDivisionError"), "{failed:?}");
    let none = root.json(&["eval", "--json", "None"]);
    assert_eq!((text(&none, "value"), none.get("json")), ("None", Some(&Value::Null)), "null is JSON too: {none}");
}

#[test]
fn the_exit_code_is_the_codes_own_and_the_client_has_two_of_its_own() {
    let root = Root::new();
    for (args, code) in [
        (&["exec", "(exit 3)"][..], 3),
        (&["exec", "exit 200"], 200),
        (&["exec", "nosuchcommand"], 127),
        (&["exec", "kill -9 $BASHPID"], 137),
        (&["exec", "-l", "python", "import sys; sys.exit(7)"], 7),
        (&["exec", "-l", "python", "1/0"], 1),
        (&["exec", "--timeout", "300ms", "sleep 1000"], 124),
        (&["exec", "-s", "nobody", "true"], 125),
        (&["exec", "--language", "cobol", "true"], 2),
        (&["exec", "--timeout", "0s", "true"], 2),
        (&["exec", "-s", "a", "-w", ".", "true"], 2),
        (&["exec", "-w", "/no/such/folder", "true"], 2),
        (&["exec"], 2),
        (&["result", "nothing"], 2),
        (&["result", "01a1e427-0789-74cc-8bfe-000000000000"], 3),
        (&["cancel", "01a1e427-0789-74cc-8bfe-000000000000"], 3),
    ] {
        let output = root.run(args);
        assert_eq!(output.code, code, "{args:?}: {output:?}");
        assert!(!output.stderr.contains("panicked"), "{args:?}: {output:?}");
        assert!(!matches!(code, 2 | 124 | 125) || !output.stderr.trim().is_empty(), "{args:?} says why");
    }
    let killed = root.json(&["exec", "--json", "true"]);
    assert_eq!(killed["success"], true, "{killed}");
}

#[test]
fn output_is_shown_while_the_code_runs() {
    let root = Root::new();
    root.run(&["exec", "true"]).ok();
    let code = format!("{HELD}; echo ended; echo late >&2; (exit 4)");
    let mut client = root.command(&["exec", &format!("echo wrong >&2; {code}")]).spawn().expect("starts");
    let mut stdout = BufReader::new(client.stdout.take().expect("a pipe"));
    let mut stderr = BufReader::new(client.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("reads");
    assert_eq!(line, "begun\n");
    line.clear();
    stderr.read_line(&mut line).expect("reads");
    assert_eq!(line, "wrong\n");
    assert!(client.try_wait().expect("a child").is_none() && !root.work().join("go").exists(), "it still runs");
    // whoever asks meanwhile is told how far it is, and whoever waits gets everything from the beginning
    let id = root.json(&["history", "--json", "--limit", "1"])[0]["execId"].as_str().expect("an id").to_owned();
    let so_far = root.json(&["result", &id, "--json"]);
    assert_eq!((so_far["running"].as_bool(), text(&so_far, "stdout"), text(&so_far, "stderr")), (Some(true), "begun\n", "wrong\n"));
    assert!(so_far.get("exitCode").is_none() && text(&so_far, "note").contains("--wait"), "{so_far}");
    let waiting = root.command(&["result", &id, "--wait"]).spawn().expect("starts");
    go(&root);
    let waited = waiting.wait_with_output().expect("ends");
    assert_eq!((waited.stdout.as_slice(), waited.status.code()), (&b"begun\nended\n"[..], Some(4)));
    assert_eq!(String::from_utf8_lossy(&waited.stderr), "wrong\nlate\n");
    let (mut out, mut err) = (String::new(), String::new());
    stdout.read_to_string(&mut out).expect("reads");
    stderr.read_to_string(&mut err).expect("reads");
    assert_eq!((out.as_str(), err.as_str()), ("ended\n", "late\n"));
    assert_eq!(client.wait().expect("ends").code(), Some(4));
}

#[test]
fn a_reader_that_has_seen_enough_leaves_the_call_alone() {
    let root = Root::new();
    let mut client = root.command(&["exec", "seq 200000; echo done > done"]).spawn().expect("starts");
    let mut first = [0; 2];
    client.stdout.take().expect("a pipe").read_exact(&mut first).expect("reads");
    assert_eq!(&first, b"1\n");
    let left = client.wait_with_output().expect("ends");
    assert!(left.stderr.is_empty(), "{left:?}");
    wait_until("the code to end", || root.work().join("done").exists());
}

#[test]
fn a_call_over_the_soft_limit_is_answered_with_a_handle_and_goes_on() {
    let root = Root::new();
    root.config("[runtime]\nsoft_limit = \"100ms\"\n");
    let mut calls = Calls::new(&root);
    calls.exec("bash", "x=kept");
    let code = format!("{HELD}; echo $x");
    let handle = calls.exec("bash", &code);
    assert_eq!((handle["running"].as_bool(), handle["success"].as_bool(), handle.get("exitCode")), (Some(true), Some(true), None));
    let id = text(&handle, "execId").to_owned();
    wait_begun(&root);
    assert!(text(&handle, "note").contains(&id), "{handle}");
    assert_eq!(root.run(&["exec", "-l", "bash", "--detach", "true"]).ok().trim().len(), id.len());
    // a limit of its own: none at all
    let waiting = root.command(&["exec", "--soft-limit", "none", "--json", "echo after"]).spawn().expect("starts");
    go(&root);
    let result = calls.result(&id);
    assert_eq!((text(&result, "stdout"), result["exitCode"].as_i64(), result.get("running")), ("begun\nkept\n", Some(0), None));
    let after: Value = serde_json::from_slice(&waiting.wait_with_output().expect("ends").stdout).expect("JSON");
    assert_eq!(after["stdout"], "after\n");
}

#[test]
fn a_detached_call_is_waited_for_or_cancelled() {
    let root = Root::new();
    let id = root.run(&["exec", "--detach", &format!("x=1; {HELD}; (exit 6)")]).ok().trim().to_owned();
    wait_begun(&root);
    let queued = root.run(&["exec", "--detach", "echo queued > queued"]).ok().trim().to_owned();
    let behind = root.json(&["result", &queued, "--json"]);
    assert_eq!((behind["running"].as_bool(), behind["queuedBehind"].as_u64()), (Some(true), Some(1)), "{behind}");
    let last = root.json(&["exec", "--detach", "--json", "echo last"]);
    assert_eq!(last["queuedBehind"], 2, "{last}");
    // taken out of the queue: nothing of it is done
    let said = root.run(&["cancel", &queued]).ok();
    assert!(said.contains("before its turn"), "{said}");
    let cancelled = root.run(&["result", &queued, "--json"]);
    let cancelled: Value = serde_json::from_str(&cancelled.stdout).expect("JSON");
    assert_eq!((cancelled["success"].as_bool(), cancelled.get("exitCode"), cancelled.get("running")), (Some(false), None, None));
    // interrupted: its output so far is there, and the state is kept
    let stopped = root.json(&["cancel", &id, "--json"]);
    assert_eq!(
        (stopped["exitCode"].as_i64(), stopped["interrupted"].as_bool(), text(&stopped, "stdout")),
        (Some(130), Some(true), "begun\n")
    );
    assert!(stopped.get("timedOut").is_none() && text(&stopped, "error").contains("cancelled"), "{stopped}");
    assert_eq!(root.run(&["result", text(&last, "execId"), "--wait"]).ok(), "last\n");
    let refusal = root.run(&["cancel", &id]).refused(4);
    assert!(refusal.contains("has ended already"), "{refusal}");
    assert_eq!(root.run(&["exec", "echo $x"]).ok(), "1\n");
    assert!(!root.work().join("queued").exists());
    let stages: Vec<Value> =
        root.json(&["history", "--json"]).as_array().expect("a list").iter().map(|entry| entry["stage"].clone()).collect();
    assert_eq!(stages, ["finished", "cancelled", "finished", "finished"]);
}

#[test]
fn output_beyond_the_bound_is_paged_byte_by_byte() {
    let root = Root::new();
    let stdout = noise(10_000_001);
    let stderr = noise(1_300_000);
    std::fs::write(root.work().join("out"), &stdout).expect("writes");
    std::fs::write(root.work().join("err"), &stderr).expect("writes");
    // streamed: every byte as it is
    let streamed = bytes(&root, &["exec", "cat err >&2 & cat out; wait"]);
    assert!(streamed.stdout == stdout && streamed.stderr == stderr, "{} and {} bytes", streamed.stdout.len(), streamed.stderr.len());
    let mut calls = Calls::new(&root);
    let result = calls.ask(json!({"request": "exec", "code": "cat err >&2 & cat out; wait", "output_limit": 1000}));
    assert_eq!(result["bytes"], json!({"stdout": stdout.len(), "stderr": stderr.len()}));
    assert_eq!(
        (&result["truncated"], &result["lossy"]),
        (&json!({"stdout": true, "stderr": true}), &json!({"stdout": true, "stderr": true}))
    );
    let id = text(&result, "execId").to_owned();
    let mut read = Vec::new();
    while read.len() < stdout.len() {
        let at = read.len() as u64;
        let (part, page) = calls.page(&id, "stdout", at, 1_777_777);
        assert_eq!((page["offset"].as_u64(), page["nextOffset"].as_u64()), (Some(at), Some(at + part.len() as u64)));
        assert!(!part.is_empty() && part.len() <= 1_777_777, "{} bytes at {at}", part.len());
        assert_eq!((page["bytes"].as_u64(), page["running"].as_bool()), (Some(stdout.len() as u64), Some(false)), "at {at}");
        read.extend_from_slice(&part);
    }
    assert!(read == stdout, "the same bytes");
    assert!(calls.page(&id, "stdout", stdout.len() as u64, 10).0.is_empty() && calls.page(&id, "stdout", u64::MAX, 10).0.is_empty());
    for (args, expected) in [
        (&["result", &id, "--offset", "9999000"][..], &stdout[9_999_000..]),
        (&["result", &id, "--stream", "stderr"], &stderr[..]),
        (&["result", &id, "--stream", "stderr", "--offset", "1048576", "--limit", "5"], &stderr[1_048_576..1_048_581]),
    ] {
        let paged = bytes(&root, args);
        assert!(paged.status.success() && paged.stdout == expected, "{args:?}: {} bytes", paged.stdout.len());
    }
}

#[test]
fn a_result_is_bounded_and_says_what_it_left_out() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let result = calls.exec("bash", "head -c 1048577 /dev/zero | tr '\\0' x; head -c 1048576 /dev/zero | tr '\\0' y >&2");
    assert_eq!((text(&result, "stdout").len(), text(&result, "stderr").len()), (1 << 20, 1 << 20));
    assert_eq!(
        (&result["truncated"], &result["bytes"]),
        (&json!({"stdout": true, "stderr": false}), &json!({"stdout": 1_048_577, "stderr": 1_048_576}))
    );
    // a character is never cut in two, and that is no loss
    let result = calls.ask(json!({"request": "exec", "code": "printf 'aüü'", "output_limit": 4}));
    assert_eq!((text(&result, "stdout"), &result["truncated"]["stdout"], result.get("lossy")), ("aü", &json!(true), None), "{result}");
    let result = calls.exec("bash", "printf 'a\\xffb\\0c'; printf '\\xc3' >&2");
    assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("a\u{fffd}b\0c", "\u{fffd}"));
    assert_eq!((&result["lossy"], &result["bytes"]), (&json!({"stdout": true, "stderr": true}), &json!({"stdout": 5, "stderr": 1})));
    assert_eq!(calls.page(text(&result, "execId"), "stdout", 0, 100).0, b"a\xffb\0c");
    let clean = calls.exec("bash", "printf 'ü\\0'");
    assert_eq!((text(&clean, "stdout"), clean.get("lossy")), ("ü\0", None), "a zero byte is a character like any other");
    // what a running call has printed can be paged too
    let id = calls.detach("bash", &format!("printf '\\xfe'; {HELD}"));
    wait_for("its output", || (calls.page(&id, "stdout", 0, 100).0 == b"\xfebegun\n").then_some(()));
    let (part, page) = calls.page(&id, "stdout", 1, 3);
    assert_eq!((part.as_slice(), page["running"].as_bool(), page["nextOffset"].as_u64()), (&b"beg"[..], Some(true), Some(4)));
    go(&root);
    assert_eq!(calls.result(&id)["exitCode"], 0);
}

#[test]
fn code_that_cannot_be_run_is_refused_with_a_sentence() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let longest = format!("echo fine #{}", "x".repeat(1_000_000 - 11));
    assert_eq!(calls.prints("bash", &longest), "fine\n", "{} bytes are run", longest.len());
    let refusal = calls.refused(json!({"request": "exec", "code": format!("{longest}x")}), "usage");
    assert!(refusal.contains("1000001 bytes") && refusal.contains("file"), "{refusal}");
    let refusal = calls.refused(json!({"request": "exec", "code": "echo a\0b"}), "usage");
    assert!(refusal.contains("zero byte"), "{refusal}");
    let refusal = calls.refused(json!({"request": "exec", "code": "cat", "stdin": "x".repeat((4 << 20) + 1)}), "usage");
    assert!(refusal.contains("standard input"), "{refusal}");
    let result = calls.exec("python", "print(1)\0");
    assert!(text(&result, "error").contains("SyntaxError"), "python says it itself: {result}");
    assert_eq!(calls.prints("node", "console.log('a\0b')"), "a\0b\n", "node takes it");
    for (input, code, word) in [
        (&vec![b'#'; 10_000_000][..], 2, "10000000 bytes"),
        (b"echo a\xffb", 2, "not UTF-8 from byte 6 on"),
        (b"echo a\0b", 2, "zero byte"),
    ] {
        let refusal = root.run_with_input(&["exec", "-"], input).refused(code);
        assert!(refusal.contains(word), "{refusal}");
    }
    let mut command = root.command(&["exec"]);
    let refused = command.arg(std::ffi::OsStr::from_bytes(b"echo \xff")).output().expect("runs");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(root.run_with_input(&["exec", "-"], b"echo from\necho stdin\n").ok(), "from\nstdin\n");
    assert_eq!(root.run_with_input(&["exec", "--stdin", "given", "cat"], b"not this").ok(), "given");
    let history = calls.ask(json!({"request": "history"}));
    assert_eq!(history.as_array().map(Vec::len), Some(5), "what was refused was no call");
}

#[test]
fn a_missing_interpreter_is_one_sentence() {
    let root = Root::new();
    root.config("[runtime]\nnode = \"/no/such/node\"\n");
    let refusal = root.run(&["exec", "-l", "node", "1"]).refused(125);
    assert!(refusal.contains("/no/such/node") && refusal.contains("config.toml") && refusal.lines().count() == 1, "{refusal}");
    let refusal = root.run_with(&["exec", "-l", "python", "1"], &[("PATH", "/no/such")]).refused(125);
    assert!(refusal.contains("no python3 or python on PATH") && refusal.lines().count() == 1, "{refusal}");
    assert_eq!(root.run(&["exec", "-l", "python", "print(1)"]).ok(), "1\n", "found by the next who has one");
    root.run(&["daemon", "stop"]).ok();
    // a program that is no interpreter
    root.config("[runtime]\npython = \"/bin/true\"\nnode = \"node\"\n");
    let refusal = root.run(&["exec", "-w", "/", "-l", "python", "1"]);
    assert_eq!((refusal.code, refusal.stdout.as_str()), (125, ""), "what never ran is no success: {refusal:?}");
    assert!(refusal.stderr.contains("before it was ready"), "{refusal:?}");
    let refusal = root.run(&["exec", "-l", "node", "1"]).refused(125);
    assert!(refusal.contains("full path"), "{refusal}");
}

#[test]
fn calls_are_events_with_an_author() {
    let root = Root::new();
    let result = root.json(&["exec", "--json", "echo hello; # a comment"]);
    let name = text(&result, "name").to_owned();
    // from inside a session
    let itself = format!("{} exec -s {name} true", env!("CARGO_BIN_EXE_sessions-tui"));
    root.run(&["exec", "-w", "/", &itself]).ok();
    let events = root.events(&name);
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["type"] == kind).collect() };
    let (started, finished) = (of("exec_started"), of("exec_finished"));
    assert_eq!((started.len(), finished.len()), (2, 2), "{events:?}");
    assert_eq!(started[0]["data"]["exec"], result["execId"]);
    assert_eq!((&started[0]["data"]["language"], &started[0]["data"]["code"]), (&json!("bash"), &json!("echo hello; # a comment")));
    assert_eq!((&finished[0]["data"]["exec"], &finished[0]["data"]["exitCode"]), (&result["execId"], &json!(0)));
    assert_eq!((&started[0]["author"], &started[1]["author"]), (&json!("api"), &json!("agent")));
    let history = root.json(&["history", "--json"]);
    assert_eq!((&history[0]["author"], &history[1]["author"]), (&json!("api"), &json!("agent")));
}

#[test]
fn rubbish_on_the_wire_is_refused_and_harms_nobody() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let mut wire = Wire::greeted(&root.socket());
    let work = root.work();
    for (id, request) in (1..).zip([
        json!({"request": "exec", "code": "true"}),
        json!({"request": "exec", "workspace": work}),
        json!({"request": "exec", "workspace": work, "code": 5}),
        json!({"request": "exec", "workspace": work, "code": "true", "language": "cobol"}),
        json!({"request": "exec", "workspace": work, "code": "true", "exec": "x"}),
        json!({"request": "exec", "workspace": work, "code": "true", "timeout_ms": 0}),
        json!({"request": "exec", "workspace": "relative", "code": "true"}),
        json!({"request": "exec", "workspace": root.join("nowhere"), "code": "true"}),
        json!({"request": "exec", "session": "", "code": "true"}),
        json!({"request": "exec", "workspace": work, "code": "true", "environment": [["A=B", "c"]]}),
        json!({"request": "result", "exec": "x"}),
        json!({"request": "output", "exec": "01a1e427-0789-74cc-8bfe-000000000000", "stream": "stdlog"}),
        json!({"request": "state", "session": "nobody"}),
        json!({"request": "history", "workspace": work, "limit": -1}),
        json!({"request": "reset_runtime", "session": "nobody"}),
    ]) {
        let answer = wire.call(id, request.clone());
        assert!(answer["failure"]["message"].as_str().is_some_and(|sentence| !sentence.is_empty()), "{request}: {answer}");
    }
    assert!(root.json(&["ls", "--all", "--json"]).as_array().is_some_and(Vec::is_empty), "nothing was opened for any of it");
    assert_eq!(calls.prints("bash", "echo fine"), "fine\n");
}
