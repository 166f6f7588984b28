//! What the door does with a daemon that behaves exactly as the test wants: slow, forgetful, or gone at the worst moment.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::client::{Era, Mcp};
use crate::support::{Root, wait_for, wait_until};

const SESSION: &str = "01900000-0000-7000-8000-000000000001";

/// What to do with one call.
enum Act {
    Answer(Value),
    Refuse(&'static str),
    Push(Value),
    HangUp,
}

type Script = dyn Fn(&Value) -> Vec<Act> + Send + Sync;

/// A daemon that does what it is told, in the place of the real one.
struct StandIn {
    socket: PathBuf,
    calls: Arc<Mutex<VecDeque<Value>>>,
}

impl StandIn {
    /// `script` says what to do for each call; a call for which it says nothing is left unanswered.
    fn start(root: &Root, script: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let socket = root.socket();
        std::fs::create_dir_all(socket.parent().expect("a folder")).expect("a folder");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let calls: Arc<Mutex<VecDeque<Value>>> = Arc::default();
        let script: Arc<Script> = Arc::new(script);
        let heard = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), script, heard) = (stream, Arc::clone(&script), Arc::clone(&heard)) else { return };
                std::thread::spawn(move || serve(&stream, &*script, &heard));
            }
        });
        Self { socket, calls }
    }

    fn heard(&self) -> Vec<Value> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The first call of this kind, once it has come.
    #[track_caller]
    fn wait_call(&self, kind: &str) -> Value {
        wait_for(&format!("the call {kind}"), || self.heard().into_iter().find(|call| call["request"] == kind))
    }

    #[track_caller]
    fn kinds(&self) -> Vec<String> {
        self.heard().iter().map(|call| call["request"].as_str().expect("a kind").to_owned()).collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // nobody shall take it for a daemon any more
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn serve(stream: &UnixStream, script: &Script, heard: &Mutex<VecDeque<Value>>) {
    let say = |value: &Value| {
        let _ = { stream }.write_all(format!("{value}\n").as_bytes());
    };
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if message.get("hello").is_some() {
            say(&json!({"hello": {"protocol": 1, "version": "stand-in", "pid": 1}}));
            continue;
        }
        heard.lock().unwrap_or_else(PoisonError::into_inner).push_back(message.clone());
        for act in script(&message) {
            match act {
                Act::Answer(value) => say(&json!({"id": message["id"], "ok": value})),
                Act::Refuse(code) => say(&json!({"id": message["id"], "failure": {"code": code, "message": "the stand-in refuses"}})),
                Act::Push(value) => say(&value),
                Act::HangUp => {
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                    return;
                }
            }
        }
    }
}

/// The result of a call, as the daemon gives it.
fn result(exec: &Value, more: &Value) -> Value {
    let mut result = json!({
        "success": true, "exitCode": 0, "stdout": "", "stderr": "", "durationMs": 1.5, "cwd": "/", "execId": exec, "language": "bash",
        "session": SESSION, "name": "work", "truncated": {"stdout": false, "stderr": false}, "bytes": {"stdout": 0, "stderr": 0},
        "restarted": false,
    });
    for (name, value) in more.as_object().expect("fields") {
        result[name] = value.clone();
    }
    result
}

fn output(exec: &Value, text: &str) -> Act {
    use base64::Engine;
    let base64 = base64::engine::general_purpose::STANDARD.encode(text);
    Act::Push(json!({"push": "exec_output", "exec": exec, "stream": "stdout", "base64": base64}))
}

#[test]
fn a_call_says_all_that_is_known_of_it() {
    let root = Root::new();
    let daemon = StandIn::start(&root, |call| vec![Act::Answer(result(&call["exec"], &json!({"stdout": "hi\n"})))]);
    let mut mcp = Mcp::start(&root, Era::Discover);
    let given = mcp.call("runtime", json!({"action": "exec", "command": "echo hi"}));
    let keys: Vec<&String> = given.as_object().expect("an object").keys().collect();
    assert_eq!(&keys[..4], ["success", "exitCode", "stdout", "stderr"], "what matters most is read first");
    let call = daemon.wait_call("exec");
    assert!(call["exec"].is_string() && given["execId"] == call["exec"], "{call}");
    assert_eq!(call["workspace"].as_str(), root.work().canonicalize().expect("a folder").to_str());
    assert_eq!((&call["code"], &call["verb"], &call["language"]), (&json!("echo hi"), &json!("exec"), &json!("bash")));
    assert_eq!((&call["soft_limit_ms"], &call["output_limit"], &call["stream"]), (&json!(10000), &json!(65536), &json!(true)));
    assert_eq!((&call["timeout_ms"], &call["stdin"]), (&Value::Null, &Value::Null));
    assert!(call["environment"].as_array().is_some_and(|all| all.iter().any(|pair| pair[0] == "HOME")), "{call}");
    // without somebody who listens nothing is streamed; and what is given is passed on
    let arguments = json!({"action": "eval", "command": "1", "session": "fix", "yield_ms": 99999, "timeout_ms": 5});
    let id = mcp.send("tools/call", json!({"name": "runtime", "arguments": arguments}));
    mcp.finish(id);
    let call = daemon.heard().pop().expect("a call");
    assert_eq!((&call["session"], call.get("workspace"), &call["stream"]), (&json!("fix"), None, &json!(false)));
    assert_eq!((&call["verb"], &call["language"]), (&json!("eval"), &json!("python")));
    assert_eq!((&call["soft_limit_ms"], &call["timeout_ms"]), (&json!(30000), &json!(5)), "never longer than a client waits");
}

#[test]
fn what_is_printed_is_told_while_the_code_runs() {
    let root = Root::new();
    let _daemon = StandIn::start(&root, |call| match call["request"].as_str() {
        Some("exec") => vec![output(&call["exec"], "one\ntw"), output(&call["exec"], "o\nst\u{1b}[1mep\u{1b}[0m 3\n\n")],
        _ => vec![],
    });
    let mut mcp = Mcp::start(&root, Era::Initialize("2025-06-18"));
    let id = mcp.begin("runtime", json!({"action": "exec", "command": "make"}));
    let words = mcp.progress(id, 2);
    assert_eq!((&words[0]["message"], &words[1]["message"]), (&json!("step 3"), &json!("step 3")));
    let numbers: Vec<f64> = words.iter().filter_map(|word| word["progress"].as_f64()).collect();
    assert!(numbers[0] >= 0.9 && numbers[1] - numbers[0] >= 0.5, "{numbers:?}");
}

#[test]
fn a_cancelled_call_is_interrupted_and_an_abandoned_one_is_not() {
    let root = Root::new();
    let tries = Mutex::new(0);
    let daemon = StandIn::start(&root, move |call| match call["request"].as_str() {
        Some("cancel") => {
            let mut tries = tries.lock().unwrap_or_else(PoisonError::into_inner);
            *tries += 1;
            // not stored yet at first: then it must be asked again
            if *tries == 1 {
                vec![Act::Refuse("not_found")]
            } else {
                vec![Act::Answer(result(&call["exec"], &json!({"interrupted": true})))]
            }
        }
        _ => vec![],
    });
    let mut mcp = Mcp::start(&root, Era::Discover);
    let id = mcp.begin("runtime", json!({"action": "exec", "command": "sleep 1000"}));
    let exec = daemon.wait_call("exec")["exec"].clone();
    mcp.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until("two tries to cancel", || {
        daemon.heard().iter().filter(|call| call["request"] == "cancel" && call["exec"] == exec).count() == 2
    });
    // a client that goes away leaves what it started
    let id = mcp.begin("runtime", json!({"action": "exec", "command": "make"}));
    mcp.progress(id, 1);
    mcp.close();
    assert_eq!(daemon.kinds(), ["exec", "cancel", "cancel", "exec"]);
}

#[test]
fn a_call_under_which_the_daemon_went_away_is_found_again() {
    let root = Root::new();
    let daemon = StandIn::start(&root, |call| match call["request"].as_str() {
        Some("exec") => vec![output(&call["exec"], "half\n"), Act::HangUp],
        Some("result") => vec![Act::Answer(result(&call["exec"], &json!({"stdout": "half\nwhole\n"})))],
        _ => vec![],
    });
    let mut mcp = Mcp::start(&root, Era::Discover);
    let given = mcp.call("runtime", json!({"action": "exec", "command": "make", "yield_ms": 5000}));
    assert_eq!(given["stdout"], "half\nwhole\n");
    let calls = daemon.heard();
    assert_eq!((calls.len(), &calls[1]["exec"], &calls[1]["output_limit"]), (2, &calls[0]["exec"], &json!(65536)));
    assert!(calls[1]["wait_ms"].as_u64().is_some_and(|ms| ms <= 5000), "{calls:?}");
}

#[test]
fn a_call_that_never_arrived_is_made_once_more() {
    let root = Root::new();
    let lost = Mutex::new(false);
    let daemon = StandIn::start(&root, move |call| match call["request"].as_str() {
        Some("exec") => {
            let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::replace(&mut *lost, true) { vec![Act::Answer(result(&call["exec"], &json!({})))] } else { vec![Act::HangUp] }
        }
        _ => vec![Act::Refuse("not_found")],
    });
    let mut mcp = Mcp::start(&root, Era::Discover);
    let given = mcp.call("runtime", json!({"action": "exec", "command": "true"}));
    let calls = daemon.heard();
    assert_eq!(daemon.kinds(), ["exec", "result", "exec"]);
    assert_eq!((&calls[0]["exec"], &calls[2]["exec"]), (&given["execId"], &given["execId"]), "one call, however often it is sent");
}

#[test]
fn what_cannot_be_known_is_said() {
    let root = Root::new();
    let daemon = StandIn::start(&root, |call| match call["request"].as_str() {
        Some("show") => vec![Act::Refuse("not_found")],
        Some("exec") if call["code"] == "stopped" => vec![Act::Push(json!({"push": "stopping", "restart": false})), Act::HangUp],
        Some("list") => vec![Act::HangUp],
        _ => vec![Act::HangUp],
    });
    let mut mcp = Mcp::start(&root, Era::Discover);
    // what may have been done is not done again
    let sentence = mcp.refused("session_event", json!({"session": "x", "type": "deployed"}), "failed");
    assert!(sentence.contains("not known") && daemon.kinds() == ["tell"], "{sentence}");
    // what only looks is asked twice
    let sentence = mcp.refused("session_list", json!({}), "failed");
    assert!(sentence.contains("twice") && daemon.kinds() == ["tell", "list", "list"], "{sentence}");
    // the id of a call whose end is unknown is told
    let sentence = mcp.refused("runtime", json!({"action": "exec", "command": "x"}), "failed");
    let exec = daemon.wait_call("exec")["exec"].as_str().expect("an id").to_owned();
    assert!(sentence.contains(&exec) && sentence.contains("action result"), "{sentence}");
    let sentence = mcp.refused("runtime", json!({"action": "exec", "command": "stopped"}), "failed");
    assert!(sentence.contains("was stopped") && sentence.contains("action result"), "{sentence}");
    assert!(mcp.refused("terminal_screen", json!({"session": "x"}), "not_found").contains("the stand-in refuses"));
}

#[test]
fn long_output_is_given_by_its_ends() {
    use base64::Engine;
    let lines: Vec<String> = (0..40_000).map(|line| format!("line {line:06}")).collect();
    let all = lines.join("\n") + "\n";
    let total = all.len();
    let root = Root::new();
    let daemon = StandIn::start(&root, move |call| match call["request"].as_str() {
        Some("exec" | "result" | "cancel") => vec![Act::Answer(result(
            &call["exec"],
            &json!({
                "stdout": all[..65536], "truncated": {"stdout": true, "stderr": false}, "bytes": {"stdout": total, "stderr": 0},
                "value": "v".repeat(100_000), "json": ["j".repeat(100_000)], "running": call["request"] == "result",
            }),
        ))],
        Some("output") => {
            let offset = usize::try_from(call["offset"].as_u64().expect("an offset")).expect("small");
            let end = total.min(offset + usize::try_from(call["limit"].as_u64().expect("a limit")).expect("small"));
            let base64 = base64::engine::general_purpose::STANDARD.encode(&all[offset..end]);
            vec![Act::Answer(json!({
                "execId": call["exec"], "stream": "stdout", "offset": offset, "nextOffset": end, "bytes": total, "running": false, "base64": base64
            }))]
        }
        _ => vec![],
    });
    let mut mcp = Mcp::start(&root, Era::Discover);
    let given = mcp.call("runtime", json!({"action": "exec", "command": "x"}));
    let text = given["stdout"].as_str().expect("text");
    assert!(text.len() < (64 << 10) + 300 && text.starts_with("line 000000\n") && text.ends_with("line 039999\n"), "{} bytes", text.len());
    let exec = daemon.wait_call("exec")["exec"].as_str().expect("an id").to_owned();
    let marker = text.lines().find(|line| line.starts_with("[…")).expect("a marker");
    assert!(marker.contains(&format!("{} bytes of stdout left out", total - 65536)), "{marker}");
    assert!(marker.contains(&format!("sessions-tui result {exec} --stream stdout --offset 16384")), "{marker}");
    assert_eq!(given["truncated"], json!({"stdout": true, "stderr": false}));
    assert!(given["value"].as_str().is_some_and(|value| value.len() < 70_000), "bounded too");
    assert!(given.get("json").is_none() && given["note"].as_str().is_some_and(|note| note.contains("too large")), "{}", given["note"]);
    // the others give it the same way, and one that still runs says what to do
    for action in ["result", "cancel"] {
        let given = mcp.call("runtime", json!({"action": action, "exec_id": exec}));
        assert!(given["stdout"].as_str().is_some_and(|text| text.len() < (64 << 10) + 300), "{action}");
        assert_eq!(given["note"].as_str().is_some_and(|note| note.contains("still running")), action == "result");
    }
}

/// A line of history, with a long command.
fn entry(language: &str) -> Value {
    json!({
        "execId": SESSION, "command": "c".repeat(5000), "verb": "exec", "language": language, "stage": "finished", "exitCode": 0,
        "duration": 1.0, "startedAt": "2026-11-16T02:05:44Z", "author": "agent", "session": SESSION,
    })
}

#[test]
fn what_runtimes_say_of_themselves_is_one_object_or_several() {
    let state = |language: &str| {
        json!({
            "language": language, "alive": true, "busy": false, "working_dir": "/src", "env_vars": {"A": "1"}, "imports": ["os"],
            "names": ["x"], "history": [entry(language)], "state_version": 3,
        })
    };
    let root = Root::new();
    let daemon = StandIn::start(&root, move |call| {
        let runtimes = match call["language"].as_str() {
            None => vec![state("bash"), state("python")],
            Some("node") => vec![],
            Some(one) => vec![state(one)],
        };
        vec![Act::Answer(match call["request"].as_str() {
            Some("state") => {
                json!({"session": if runtimes.is_empty() { Value::Null } else { json!(SESSION) }, "name": null, "runtimes": runtimes})
            }
            Some("history") => json!([entry("bash"), entry("python")]),
            _ => json!({"reset": true, "languages": ["bash"], "note": "fresh"}),
        })]
    });
    let mut mcp = Mcp::start(&root, Era::Discover);
    let given = mcp.call("runtime", json!({"action": "state", "language": "bash", "limit": 7}));
    assert_eq!((given["state"]["working_dir"].as_str(), given["state"]["env_vars"]["A"].as_str()), (Some("/src"), Some("1")));
    assert_eq!((&given["session"], given.get("states")), (&json!(SESSION), None));
    let command = given["state"]["history"][0]["command"].as_str().expect("a command");
    assert!(command.len() < 3000 && command.ends_with("bytes more)"), "{command}");
    assert_eq!((&daemon.heard()[0]["history"], &daemon.heard()[0]["reveal"]), (&json!(7), &json!(false)));
    let given = mcp.call("runtime", json!({"action": "state"}));
    assert_eq!((given["states"].as_array().map(Vec::len), given.get("state")), (Some(2), None));
    let given = mcp.call("runtime", json!({"action": "state", "language": "node"}));
    assert!(given["states"] == json!([]) && given["note"].as_str().is_some_and(|note| note.contains("no interpreter")), "{given}");
    let given = mcp.call("runtime", json!({"action": "history"}));
    assert_eq!((given["history"].as_array().map(Vec::len), given["history"][1]["language"].as_str()), (Some(2), Some("python")));
    assert_eq!(daemon.wait_call("history")["limit"], 20);
    let given = mcp.call("runtime", json!({"action": "reset", "language": "bash"}));
    assert_eq!((given["success"].as_bool(), given["reset"].as_bool(), given["note"].as_str()), (Some(true), Some(true), Some("fresh")));
    assert_eq!(daemon.wait_call("reset_runtime")["language"], "bash");
}
