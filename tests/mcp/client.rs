//! A client of the Model Context Protocol without a library: lines of JSON in both eras.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{PATIENCE, Root};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Begins with `initialize`, at this version.
    Initialize(&'static str),
    /// Says its version with every request.
    Discover,
}

pub const MODERN: &str = "2026-07-28";

pub struct Mcp {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    era: Era,
    last_id: u64,
    answers: Vec<Value>,
    /// What the server said unasked.
    pub notifications: Vec<Value>,
    /// What the server asked: the roots of the client, each time it did.
    pub asked_for_roots: usize,
    pub roots: Vec<String>,
    /// What the server said first.
    pub greeting: Value,
}

impl Mcp {
    #[track_caller]
    pub fn start(root: &Root, era: Era) -> Self {
        Self::start_command(root.command(&["mcp"]), era, &[])
    }

    #[track_caller]
    pub fn start_with(root: &Root, variables: &[(&str, &str)]) -> Self {
        let mut command = root.command(&["mcp"]);
        command.envs(variables.iter().copied());
        Self::start_command(command, Era::Initialize("2025-11-25"), &[])
    }

    #[track_caller]
    pub fn start_command(mut command: Command, era: Era, roots: &[&str]) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server starts");
        let stdin = child.stdin.take();
        let output = child.stdout.take().expect("its output");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                // nothing but the protocol may be on standard output
                let value = serde_json::from_str(&line).unwrap_or_else(|error| json!({"not JSON": format!("{error}: {line}")}));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let roots: Vec<String> = roots.iter().map(|&root| root.to_owned()).collect();
        let mut mcp = Self {
            child,
            stdin,
            lines,
            era,
            last_id: 0,
            answers: Vec::new(),
            notifications: Vec::new(),
            asked_for_roots: 0,
            roots,
            greeting: Value::Null,
        };
        mcp.greet();
        mcp
    }

    #[track_caller]
    fn greet(&mut self) {
        match self.era {
            Era::Initialize(version) => {
                let capabilities = if self.roots.is_empty() { json!({}) } else { json!({"roots": {"listChanged": true}}) };
                let client = json!({"name": "test", "version": "1"});
                let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
                let id = self.send("initialize", params);
                self.greeting = self.answer(id)["result"].clone();
                self.notify("notifications/initialized", json!({}));
            }
            Era::Discover => {
                let id = self.send("server/discover", json!({}));
                self.greeting = self.answer(id)["result"].clone();
            }
        }
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("not closed yet");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "as with json! written in its place")]
    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request without waiting; gives its id.
    #[track_caller]
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.era == Era::Discover {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Calls a tool without waiting; gives the request's id, which is its progress token too.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "as with json! written in its place")]
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let token = self.last_id + 1;
        self.send("tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}}))
    }

    /// Takes the next thing the server says, if it says something before the deadline.
    fn hear(&mut self, deadline: Instant) -> bool {
        let Ok(message) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) else { return false };
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match (message.get("method"), message.get("id")) {
            (None, Some(_)) => self.answers.push(message),
            (Some(_), None) => self.notifications.push(message),
            (Some(method), Some(id)) => {
                assert_eq!((method, self.era == Era::Discover), (&json!("roots/list"), false), "{message}");
                self.asked_for_roots += 1;
                let roots: Vec<Value> = self.roots.iter().map(|root| json!({"uri": root})).collect();
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": roots}});
                self.write(&answer);
            }
            (None, None) => panic!("neither an answer nor a word: {message}"),
        }
        true
    }

    /// The answer to a request; others that come before it are kept.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.answers.iter().position(|answer| answer["id"] == json!(id)) {
                return self.answers.remove(place);
            }
            assert!(self.hear(deadline), "waited {PATIENCE:?} in vain for the answer to {id}");
        }
    }

    /// Whether this request has been answered, as far as has been heard.
    pub fn is_answered(&self, id: u64) -> bool {
        self.answers.iter().any(|answer| answer["id"] == json!(id))
    }

    /// Hears until there are so many words on the progress of a request; gives them.
    #[track_caller]
    pub fn progress(&mut self, id: u64, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let words: Vec<Value> = self
                .notifications
                .iter()
                .filter(|word| word["params"]["progressToken"] == json!(id))
                .map(|word| word["params"].clone())
                .collect();
            if words.len() >= count {
                return words;
            }
            assert!(!self.is_answered(id), "answered after {} words: {:?}", words.len(), self.answers);
            assert!(self.hear(deadline), "waited {PATIENCE:?} in vain for progress");
        }
    }

    /// The result of a tool call.
    #[track_caller]
    pub fn finish(&mut self, id: u64) -> Value {
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        let result = answer["result"].clone();
        if self.era == Era::Discover {
            assert_eq!(result["resultType"], "complete", "{result}");
        }
        if let Some(structured) = result.get("structuredContent") {
            let text = result["content"][0]["text"].as_str().expect("the same as text");
            assert_eq!(&serde_json::from_str::<Value>(text).expect("JSON"), structured);
            assert!(!text.contains("null,") && !text.contains(":null"), "nothing is null: {text}");
        }
        result
    }

    #[track_caller]
    pub fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.finish(id)
    }

    /// The object a tool gave, provided that it did.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], json!(false), "{result}");
        let object = result["structuredContent"].clone();
        assert!(object["success"].is_boolean(), "{object}");
        object
    }

    /// The text a tool gave.
    #[track_caller]
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!((result["isError"].as_bool(), result.get("structuredContent")), (Some(false), None), "{result}");
        result["content"][0]["text"].as_str().expect("text").to_owned()
    }

    /// The sentence with which a tool refused, provided that it did, and with this code.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value, code: &str) -> String {
        let result = self.result(tool, arguments);
        let object = &result["structuredContent"];
        assert_eq!(
            (result["isError"].as_bool(), object["success"].as_bool(), object["code"].as_str()),
            (Some(true), Some(false), Some(code)),
            "{result}"
        );
        object["error"].as_str().expect("a sentence").to_owned()
    }

    #[track_caller]
    pub fn tools(&mut self) -> Vec<Value> {
        let id = self.send("tools/list", json!({}));
        let answer = self.answer(id);
        answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Closes the server's input; gives how long it took to end, and what it printed besides the protocol.
    #[track_caller]
    pub fn close(mut self) -> (Duration, String) {
        drop(self.stdin.take());
        let closed = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            assert!(closed.elapsed() < PATIENCE, "the server did not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = closed.elapsed();
        assert!(status.success(), "{status:?}");
        let mut stderr = String::new();
        self.child.stderr.take().expect("its error output").read_to_string(&mut stderr).expect("text");
        (took, stderr)
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        // gone already if it was closed
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
