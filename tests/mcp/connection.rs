//! Clients that come, go, change their mind and do several things at once; daemons that go away.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::client::{Era, Mcp};
use crate::support::{Root, process, wait_until};

/// Far above what an exit takes, far below what a client waits before it kills.
const PROMPTLY: Duration = Duration::from_millis(1500);

#[test]
fn calls_do_not_wait_for_each_other() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    for name in ["a", "b"] {
        mcp.call("terminal_start", json!({"argv": ["cat"], "name": name}));
    }
    let first = mcp.begin("terminal_wait", json!({"session": "a", "until": "text", "pattern": "done", "timeout_ms": 30000}));
    let second = mcp.begin("terminal_wait", json!({"session": "b", "until": "text", "pattern": "done", "timeout_ms": 30000}));
    mcp.call("session_list", json!({}));
    assert!(!mcp.is_answered(first) && !mcp.is_answered(second));
    mcp.call("terminal_send", json!({"session": "b", "text": "done"}));
    assert_eq!(mcp.finish(second)["structuredContent"]["met"], true);
    assert!(!mcp.is_answered(first));
    mcp.call("terminal_send", json!({"session": "a", "text": "done"}));
    assert_eq!(mcp.finish(first)["structuredContent"]["met"], true);
}

#[test]
fn a_caller_that_waits_hears_of_it_and_may_give_up() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Initialize("2025-06-18"));
    mcp.call("terminal_start", json!({"argv": ["sleep", "1000"], "name": "long"}));
    let id = mcp.begin("terminal_wait", json!({"session": "long", "until": "exit", "timeout_ms": 30000}));
    let words = mcp.progress(id, 2);
    let numbers: Vec<f64> = words.iter().filter_map(|word| word["progress"].as_f64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] >= 0.5), "rising, and not too often: {numbers:?}");
    assert_eq!(words[0]["message"], "waiting for its program to end");
    mcp.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
    let another = mcp.begin("session_list", json!({}));
    mcp.finish(another);
    assert!(!mcp.is_answered(id), "a cancelled call has no answer");
    // one without a token hears nothing, however long it takes
    let id =
        mcp.send("tools/call", json!({"name": "terminal_wait", "arguments": {"session": "long", "until": "exit", "timeout_ms": 1500}}));
    mcp.notifications.clear();
    assert_eq!(mcp.finish(id)["structuredContent"]["met"], false);
    assert!(mcp.notifications.is_empty(), "{:?}", mcp.notifications);
}

#[test]
fn the_end_of_the_client_ends_the_server_and_nothing_else() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    mcp.call("terminal_start", json!({"argv": ["sleep", "1000"], "name": "stays"}));
    let program = root.program("stays");
    let (took, said) = mcp.close();
    assert!(took < PROMPTLY && said.is_empty(), "{took:?} {said}");
    // also while a call is under way
    let mut mcp = Mcp::start(&root, Era::Initialize("2025-11-25"));
    let id = mcp.begin("terminal_wait", json!({"session": "stays", "until": "exit", "timeout_ms": 30000}));
    mcp.progress(id, 1);
    let (took, said) = mcp.close();
    assert!(took < PROMPTLY && said.is_empty(), "{took:?} {said}");
    assert!(process::is_alive(program));
    assert_eq!(root.status("stays").0, "active");
}

#[test]
fn requests_that_are_piped_in_are_answered() {
    let root = Root::new();
    root.start("there", &["sleep", "1000"]);
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pipe", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "session_list", "arguments": {}}}),
    ];
    let input = requests.map(|request| request.to_string()).join("\n") + "\n";
    let text = root.run_with_input(&["mcp"], input.as_bytes()).ok();
    assert!(text.lines().count() == 2 && text.contains("there"), "{text}");
    // a probe that says nothing, or only asks who is there
    assert_eq!(root.run_with_input(&["mcp"], b"").ok(), "");
    let probe = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    assert!(root.run_with_input(&["mcp"], format!("{probe}\n").as_bytes()).ok().contains("supportedVersions"));
    // rubbish is passed over
    let text = root.run_with_input(&["mcp"], format!("rubbish\n{{\n{input}").as_bytes()).ok();
    assert!(text.contains("there"), "{text}");
}

#[test]
fn a_daemon_that_went_away_is_started_again() {
    let root = Root::new();
    let mut mcp = Mcp::start(&root, Era::Discover);
    mcp.call("terminal_start", json!({"argv": ["cat"], "name": "cat"}));
    let first = root.kill_daemon();
    assert_eq!(mcp.call("session_list", json!({}))["sessions"][0]["name"], "cat");
    assert_ne!(root.daemon_pid(), first);
    // under a call that only looks
    let id = mcp.begin("terminal_wait", json!({"session": "cat", "until": "text", "pattern": "done", "timeout_ms": 30000}));
    mcp.progress(id, 1);
    root.kill_daemon();
    mcp.call("terminal_send", json!({"session": "cat", "text": "done"}));
    assert_eq!(mcp.finish(id)["structuredContent"]["met"], true);
    // stopped on purpose: not behind the user's back
    let id = mcp.begin("terminal_wait", json!({"session": "cat", "until": "text", "pattern": "never", "timeout_ms": 30000}));
    mcp.progress(id, 1);
    root.run(&["daemon", "stop"]).ok();
    let result = mcp.finish(id);
    assert!(result["structuredContent"]["error"].as_str().is_some_and(|text| text.contains("was stopped")), "{result}");
    wait_until("no daemon", || root.daemons().is_empty());
    // the next call starts it
    assert_eq!(mcp.call("session_list", json!({}))["sessions"][0]["status"], "active");
}

#[test]
fn a_stripped_environment_is_enough() {
    let root = Root::home_only();
    let runtime_dir = root.join("xdg");
    std::fs::create_dir(&runtime_dir).expect("a folder");
    let folder = runtime_dir.to_str().expect("Unicode");
    root.run_with(&["new", "-d", "-n", "found", "--", "sleep", "1000"], &[("XDG_RUNTIME_DIR", folder)]).ok();
    let daemon = root.daemons();
    let mut command = root.command(&["mcp"]);
    command.env_clear().envs(root.environment().into_iter().filter(|(name, _)| matches!(name.as_str(), "HOME" | "PATH")));
    let mut mcp = Mcp::start_command(command, Era::Discover, &[]);
    assert_eq!(mcp.call("session_list", json!({}))["sessions"][0]["name"], "found");
    // without SHELL there is still a shell
    let started = mcp.call("terminal_start", json!({"command": "exit 4"}));
    assert_eq!(mcp.call("terminal_wait", json!({"session": started["session"], "until": "exit"}))["exit_code"], 4);
    assert_eq!(root.daemons(), daemon, "the same daemon");
    mcp.close();
    root.run_with(&["daemon", "stop", "--all", "--yes"], &[("XDG_RUNTIME_DIR", folder)]).ok();
}

#[test]
fn the_folder_that_is_meant_is_the_clients() {
    let root = Root::new();
    for name in ["first root", "second", "project"] {
        std::fs::create_dir(root.join(name)).expect("a folder");
    }
    let place = |name: &str| root.join(name).canonicalize().expect("a folder").to_str().expect("Unicode").to_owned();
    let mut count = 0;
    let mut workspace = |mcp: &mut Mcp| {
        count += 1;
        let started = mcp.call("session_start", json!({"task": "where am I", "name": format!("s{count}")}));
        started["workspace"].as_str().expect("a folder").to_owned()
    };
    let uri = |name: &str| format!("file://{}", place(name).replace(' ', "%20"));
    let mut command = root.command(&["mcp"]);
    command.env("CLAUDE_PROJECT_DIR", root.join("project"));
    let mut mcp = Mcp::start_command(command, Era::Initialize("2025-06-18"), &["https://example.org", &uri("first root"), &uri("second")]);
    assert_eq!(mcp.asked_for_roots, 0, "not before it matters");
    assert_eq!((workspace(&mut mcp), workspace(&mut mcp), mcp.asked_for_roots), (place("first root"), place("first root"), 1));
    mcp.roots = vec![uri("second")];
    mcp.notify("notifications/roots/list_changed", json!({}));
    assert_eq!((workspace(&mut mcp), mcp.asked_for_roots), (place("second"), 2));
    drop(mcp);
    let mut mcp = Mcp::start_with(&root, &[("CLAUDE_PROJECT_DIR", root.join("project").to_str().expect("Unicode"))]);
    assert_eq!(workspace(&mut mcp), place("project"));
    drop(mcp);
    let mut mcp = Mcp::start_with(&root, &[("CLAUDE_PROJECT_DIR", "/nowhere/at/all")]);
    assert_eq!(workspace(&mut mcp), place("work"), "else where it was started");
    let given = mcp.call("session_start", json!({"task": "there", "name": "given", "workspace": root.join("second")}));
    assert_eq!(given["workspace"], place("second"));
}

/// Node gives its children sockets, not pipes.
#[test]
fn sockets_do_as_well_as_pipes() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let root = Root::new();
    let (input, their_input) = UnixStream::pair().expect("sockets");
    let (output, their_output) = UnixStream::pair().expect("sockets");
    let mut command = root.command(&["mcp"]);
    command.stdin(Stdio::from(OwnedFd::from(their_input))).stdout(Stdio::from(OwnedFd::from(their_output)));
    let mut child = command.spawn().expect("starts");
    drop(command);
    output.set_read_timeout(Some(crate::support::PATIENCE)).expect("a limit");
    let mut lines = BufReader::new(output).lines();
    let ask = |request: serde_json::Value| (&input).write_all(format!("{request}\n").as_bytes()).expect("it reads");
    ask(
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "s", "version": "1"}}}),
    );
    assert!(lines.next().expect("a line").expect("read").contains("sessions-tui"));
    ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "session_list", "arguments": {}}}));
    assert!(lines.next().expect("a line").expect("read").contains("\"sessions\":[]"));
    input.shutdown(std::net::Shutdown::Write).expect("closes");
    wait_until("it to end", || child.try_wait().expect("a child of ours").is_some());
}

/// A client that pipes its requests in, closes, and only then begins to read, slowly.
#[test]
fn b8_the_last_answer_reaches_a_client_that_reads_slowly() {
    use std::io::{Read, Write};
    let root = Root::new();
    let mut child = root.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("its input");
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let code = json!({"action": "exec", "language": "python", "command": "print('x' * 60000)", "workspace": root.work()});
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for id in 2..8 {
        lines.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "runtime", "arguments": code}}));
    }
    // the first call starts the daemon and the interpreter; answers are not waited for
    root.run(&["exec", "--language", "python", "pass"]);
    for line in &lines {
        stdin.write_all(format!("{line}\n").as_bytes()).expect("writes");
    }
    let mut output = child.stdout.take().expect("its output");
    std::thread::sleep(Duration::from_secs(3));
    drop(stdin);
    std::thread::sleep(Duration::from_secs(7));
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let count = output.read(&mut part).expect("reads");
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&part[..count]);
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait().expect("ends");
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.ends_with('\n'), "the last line is cut: {:?}", &text[text.len().saturating_sub(80)..]);
    let answered = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).expect("whole lines")["id"].is_u64()).count();
    assert_eq!(answered, 7);
}
