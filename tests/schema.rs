//! `sessions-tui schema` against a real daemon: whatever is asked, answered, pushed or printed fits what is printed there.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::mcp::official;
use crate::support::http::{Reply, Server};
use crate::support::root::finish;
use crate::support::wire::{Wire, frame};
use crate::support::{BASH, Root};

/// What was said, and where in the schema it belongs.
struct Said {
    wire: Wire,
    last: u64,
    lines: Vec<Value>,
    answered: BTreeSet<String>,
}

impl Said {
    fn note(&mut self, part: &str, value: &Value) {
        self.lines.push(json!({"part": part, "value": value}));
    }

    fn wrong(&mut self, part: &str, value: &Value) {
        self.lines.push(json!({"part": part, "value": value, "wrong": true}));
    }

    /// A call, everything that comes before its answer, and the answer.
    #[track_caller]
    fn answer(&mut self, mut request: Value) -> Value {
        self.last += 1;
        request["id"] = json!(self.last);
        let name = request["request"].as_str().expect("a name").to_owned();
        self.note(&format!("call.{name}"), &request);
        self.note("call", &request);
        self.wire.say(&request);
        loop {
            let line = self.wire.line().expect("an answer");
            if let Some(push) = line["push"].as_str() {
                self.note(&format!("push.{push}"), &line);
                self.note("push", &line);
                continue;
            }
            self.note("answer", &line);
            if line["id"] == self.last {
                return line;
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, request: Value) -> Value {
        let name = request["request"].as_str().expect("a name").to_owned();
        let mut answer = self.answer(request);
        assert!(answer.get("failure").is_none(), "{name}: {answer}");
        let ok = answer["ok"].take();
        self.note(&format!("ok.{name}"), &ok);
        self.answered.insert(name);
        ok
    }

    /// Fails with whatever does not fit.
    #[track_caller]
    fn check(&self, root: &Root) {
        official::prepare();
        let (schema, lines) = (root.join("schema.json"), root.join("lines"));
        std::fs::write(&schema, root.run(&["schema"]).ok()).expect("writes");
        std::fs::write(&lines, self.lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")).expect("writes");
        let mut python = Command::new(official::environment().join("bin/python"));
        python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/validate.py")).arg(schema).arg(lines);
        python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        assert_eq!(finish(python, b"", &["validate.py"]).ok().trim_end(), "all is well");
    }
}

fn typed(text: &str) -> String {
    STANDARD.encode(text)
}

#[test]
fn everything_a_daemon_says_fits_the_schema() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let mut said = Said { wire: Wire::connect(&root.socket()), last: 0, lines: Vec::new(), answered: BTreeSet::new() };
    let hello = json!({"hello": {"protocol": 1, "version": "test", "pid": std::process::id()}});
    said.note("hello", &hello);
    said.wire.say(&hello);
    let greeting = said.wire.line().expect("a hello");
    said.note("hello", &greeting);
    let work = root.work().to_str().expect("Unicode").to_owned();

    for request in ["status", "settings", "agents", "watch", "groups", "webhooks"] {
        said.ask(json!({"request": request}));
    }
    let api = said.ask(json!({"request": "new", "name": "api", "here": work, "argv": BASH, "size": {"cols": 80, "rows": 24},
        "environment": root.environment(), "task": "Mend it", "mode": "developer", "idle_timeout": "1h", "context": {"a": 1}}));
    let (session, runtime) = (api["id"].clone(), api["runtime"].clone());
    said.ask(json!({"request": "send", "name": "api", "bytes": typed("for n in $(seq 60); do echo line-$n; done; echo hi-$((40+2))\r")}));
    said.ask(json!({"request": "wait", "name": "api", "condition": {"text": {"pattern": "hi-42"}}, "timeout_ms": 20_000}));
    said.ask(json!({"request": "wait", "name": "api", "condition": {"quiet": {"ms": 50}}, "timeout_ms": 20_000}));
    said.ask(json!({"request": "screen", "name": "api", "scrollback": 5}));
    for request in ["show", "explain", "commands", "files", "look", "seen"] {
        said.ask(json!({"request": request, "name": "api"}));
    }
    said.ask(json!({"request": "pulse", "sessions": [session]}));
    said.ask(json!({"request": "list"}));
    said.ask(json!({"request": "rows", "sessions": [session]}));
    said.ask(json!({"request": "rename", "name": "api", "new": "apis"}));
    said.ask(json!({"request": "rename", "name": "apis", "new": "api"}));

    // a terminal
    said.ask(json!({"request": "attach", "name": "api", "size": {"cols": 80, "rows": 24}}));
    said.ask(json!({"request": "resize", "size": {"cols": 90, "rows": 20}}));
    said.ask(json!({"request": "take_control"}));
    said.ask(json!({"request": "key_help"}));
    said.wire.write(&frame(1, b"echo typed\r")).expect("takes it");
    said.ask(json!({"request": "wait", "name": "api", "condition": {"text": {"pattern": "\ntyped"}}, "timeout_ms": 20_000}));
    said.ask(json!({"request": "leave"}));
    said.ask(json!({"request": "attach", "name": "api", "size": {"cols": 80, "rows": 24}, "stream": 7, "read_only": true}));
    said.ask(json!({"request": "detach", "name": "api"}));

    // a task
    said.ask(json!({"request": "iterate", "name": "api", "data": {"phase": 1}}));
    said.ask(json!({"request": "tell", "name": "api", "type": "deployed"}));
    said.ask(json!({"request": "tool_call", "name": "api", "tool": "bash", "input": {"command": "true"}}));
    said.ask(json!({"request": "learn", "name": "api", "text": "it works", "file": null}));
    said.ask(json!({"request": "context", "name": "api", "set": {"b": [2]}, "metadata": {"model": "m"}}));
    said.ask(json!({"request": "pause", "name": "api", "reason": "lunch"}));
    said.ask(json!({"request": "resume", "name": "api"}));
    let at = "2026-11-17T12:00:00Z";
    said.ask(json!({"request": "hook", "agent": "claude-code", "event": "Stop", "session": session, "payload": {}, "at": at}));
    said.ask(json!({"request": "events", "name": "api", "since": 0}));
    said.ask(json!({"request": "recent", "name": "api", "before": null, "most": 5}));
    for (name, end) in [("done", json!({"request": "complete", "result": "it is"})), ("gone", json!({"request": "fail", "error": "no"}))] {
        said.ask(json!({"request": "new", "name": name, "here": work, "no_run": true}));
        let mut end = end;
        end["name"] = json!(name);
        said.ask(end);
    }
    said.ask(json!({"request": "new", "name": "first", "here": work, "no_run": true, "group": "g"}));
    said.ask(json!({"request": "new", "name": "second", "here": work, "argv": ["sleep", "1000"], "group": "g", "queue": true}));
    let refused = said.answer(json!({"request": "new", "name": "refused", "here": work, "argv": ["/no/such/program"]}));
    assert!(refused["failure"].is_object(), "{refused}");
    said.ask(json!({"request": "new", "name": "asleep", "here": work, "argv": ["cat"], "keeps": "nothing"}));
    said.ask(json!({"request": "pause", "name": "asleep", "hibernate": true, "force": true}));
    said.ask(json!({"request": "set_group", "name": "g", "limit": 1}));
    said.ask(json!({"request": "groups"}));
    said.ask(json!({"request": "unset_group", "name": "g"}));

    // calls
    let exec = said.ask(json!({"request": "exec", "workspace": work, "code": "echo out; echo err >&2", "stream": true}));
    said.ask(json!({"request": "exec", "workspace": work, "code": "[1, {'a': 2}]", "verb": "eval"}));
    said.ask(json!({"request": "exec", "session": "api", "language": "python", "code": "1 / 0", "umask": 18}));
    said.ask(json!({"request": "result", "exec": exec["execId"], "stream": true}));
    said.ask(json!({"request": "output", "exec": exec["execId"], "stream": "stdout"}));
    let long = said.ask(json!({"request": "exec", "workspace": work, "code": "sleep 1000", "soft_limit_ms": 0}));
    said.ask(json!({"request": "cancel", "exec": long["execId"]}));
    said.ask(json!({"request": "state", "workspace": work, "reveal": true}));
    said.ask(json!({"request": "history", "workspace": work}));
    said.ask(json!({"request": "reset_runtime", "workspace": work, "language": "python"}));

    // the time machine
    said.ask(json!({"request": "search", "pattern": "hi-42", "context": 1}));
    said.ask(json!({"request": "search", "pattern": "deployed|err", "regex": true, "kinds": ["event", "output", "task"]}));
    said.ask(json!({"request": "find", "runtime": runtime, "pattern": "hi-42", "from": 0, "forward": true}));
    said.ask(json!({"request": "find", "runtime": runtime, "pattern": "never", "from": 0, "forward": true}));
    let outline = said.ask(json!({"request": "replay", "name": "api"}));
    let (first, end) = (outline["first"]["offset"].clone(), outline["end"]["offset"].clone());
    for seek in [json!({"to": "end"}), json!({"to": "time", "time": 1000}), json!({"to": "next_change", "from": first})] {
        let mut request = json!({"request": "seek", "runtime": runtime});
        request.as_object_mut().expect("an object").extend(seek.as_object().expect("an object").clone());
        said.ask(request);
    }
    said.ask(json!({"request": "records", "runtime": runtime, "from": first}));
    said.ask(json!({"request": "scrolled", "runtime": runtime, "until": end, "most": 3}));
    said.ask(json!({"request": "import", "step": "begin", "name": "film", "here": work, "size": {"cols": 80, "rows": 24}}));
    let record = json!({"end": 0, "time": 1, "what": "output", "base64": typed("hello")});
    said.ask(json!({"request": "import", "step": "records", "records": [record]}));
    said.ask(json!({"request": "import", "step": "end", "exit_code": 0}));

    said.ask(json!({"request": "stats", "mode": "developer"}));
    said.ask(json!({"request": "calendar", "days": 3}));
    said.ask(json!({"request": "disk"}));

    let server = Server::start(|_| Reply::Status(204));
    let webhook = said.ask(json!({"request": "add_webhook", "url": server.url(), "filter": {"events": ["complete"]}}));
    for request in ["test_webhook", "deliveries", "enable_webhook", "remove_webhook"] {
        said.ask(json!({"request": request, "webhook": webhook["id"]}));
    }
    said.ask(json!({"request": "webhooks"}));

    // what is printed has the same form
    for (part, args) in [
        ("ok.list", &["ls", "--all", "--json"][..]),
        ("ok.show", &["show", "api", "--json"]),
        ("ok.show", &["show", "asleep", "--json"]),
        ("Stats", &["stats", "--json"]),
        ("ExecResult", &["exec", "--json", "true"]),
        ("ok.state", &["state", "--json"]),
        ("ScreenShot", &["screen", "api", "--json"]),
        ("DaemonStatus", &["daemon", "status", "--json"]),
    ] {
        let printed = root.json(args);
        said.note(part, &printed);
    }
    for event in root.events("api") {
        said.note("Event", &event);
    }

    said.ask(json!({"request": "dismiss", "name": "api"}));

    // the ends
    said.ask(json!({"request": "reset", "name": "done"}));
    said.ask(json!({"request": "kill", "name": "second"}));
    said.ask(json!({"request": "kill", "name": "api"}));
    said.ask(json!({"request": "show", "name": "api"}));
    said.ask(json!({"request": "forget", "name": "api"}));
    said.ask(json!({"request": "restore", "names": []}));
    said.ask(json!({"request": "cleanup", "dry_run": true, "older_than_days": 0.0}));
    said.ask(json!({"request": "remove", "name": "gone"}));
    said.ask(json!({"request": "cleanup", "older_than_days": 0.0}));
    said.ask(json!({"request": "audit", "thread": null, "limit": null}));

    // refusals
    for request in [json!({"request": "show", "name": "nobody"}), json!({"request": "pause", "name": "done"})] {
        let refused = said.answer(request);
        assert!(refused["failure"].is_object(), "{refused}");
    }
    for (part, wrong) in [
        ("call.show", json!({"request": "show"})),
        ("call.exec", json!({"request": "exec", "code": "true"})),
        ("call.attach", json!({"request": "attach", "name": "api"})),
        ("call.wait", json!({"request": "wait", "name": "api", "condition": "never"})),
        ("call", json!({"request": "fly"})),
    ] {
        let mut request = wrong;
        said.last += 1;
        request["id"] = json!(said.last);
        said.wrong(part, &request);
        said.wire.say(&request);
        let refused = said.wire.line().expect("an answer");
        assert_eq!(refused["failure"]["code"], "usage", "the daemon agrees: {request}: {refused}");
        said.note("answer", &refused);
    }
    said.wrong("answer", &json!({"id": 1}));
    said.wrong("push", &json!({"push": "nonsense"}));
    said.ask(json!({"request": "stop", "end_sessions": true}));
    let known: BTreeSet<String> =
        root.run(&["schema", "--list"]).ok().lines().filter_map(|name| name.strip_prefix("call.").map(str::to_owned)).collect();
    assert_eq!(said.answered, known, "every request was asked and answered");
    said.check(&root);
}

#[test]
fn the_schema_is_printed_without_a_daemon_whole_or_in_parts() {
    let root = Root::new();
    let whole = root.json(&["schema"]);
    assert_eq!(whole["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!((whole["x-protocol"].as_u64(), whole["x-frames"]["output"]["kind"].as_u64()), (Some(1), Some(2)));
    assert_eq!(root.json(&["schema", "session"])["$ref"], "#/$defs/Session");
    assert_eq!(root.json(&["schema", "call.new"])["$defs"]["NewSession"], whole["$defs"]["NewSession"]);
    assert!(root.run(&["schema", "--list"]).ok().lines().any(|name| name == "ok.exec"));
    assert!(root.run(&["schema", "fly"]).refused(2).contains("\"fly\""));
    assert!(root.daemons().is_empty(), "nobody was asked");
}
