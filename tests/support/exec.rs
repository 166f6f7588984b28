//! Calls to interpreters over one connection, without a process per call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::wire::Wire;
use super::{Root, wait_for};

/// A connection, and the place its calls go to.
pub struct Calls {
    wire: Wire,
    place: Value,
    last: u64,
}

impl Calls {
    /// To the runtimes of the root's own folder.
    #[track_caller]
    pub fn new(root: &Root) -> Self {
        let folder = root.work();
        Self::to(root, json!({"workspace": folder.to_str().expect("Unicode")}))
    }

    /// To the runtimes of a session.
    #[track_caller]
    pub fn of_session(root: &Root, name: &str) -> Self {
        Self::to(root, json!({"session": name}))
    }

    #[track_caller]
    pub fn to(root: &Root, place: Value) -> Self {
        root.run(&["ls"]).ok();
        Self { wire: Wire::greeted(&root.socket()), place, last: 0 }
    }

    /// Sends a request about this place and does not wait; gives its number.
    #[track_caller]
    pub fn send(&mut self, mut request: Value) -> u64 {
        self.last += 1;
        request["id"] = json!(self.last);
        for (key, value) in self.place.as_object().expect("an object") {
            if request.get(key).is_none() {
                request[key] = value.clone();
            }
        }
        self.wire.say(&request);
        self.last
    }

    /// The next answer, whichever request it is for.
    #[track_caller]
    pub fn answer(&mut self) -> Value {
        loop {
            let line = self.wire.line().expect("an answer");
            if line["id"].is_u64() {
                return line;
            }
        }
    }

    #[track_caller]
    pub fn ask(&mut self, request: Value) -> Value {
        self.send(request);
        let mut answer = self.answer();
        assert!(answer.get("failure").is_none(), "{answer}");
        answer["ok"].take()
    }

    /// The sentence of a refusal, provided that it has this code.
    #[track_caller]
    pub fn refused(&mut self, request: Value, code: &str) -> String {
        self.send(request);
        let answer = self.answer();
        assert_eq!(answer["failure"]["code"], code, "{answer}");
        answer["failure"]["message"].as_str().expect("a sentence").to_owned()
    }

    #[track_caller]
    pub fn exec(&mut self, language: &str, code: &str) -> Value {
        self.ask(json!({"request": "exec", "language": language, "code": code}))
    }

    #[track_caller]
    pub fn eval(&mut self, language: &str, code: &str) -> Value {
        self.ask(json!({"request": "exec", "language": language, "code": code, "verb": "eval"}))
    }

    /// What code that ends well prints.
    #[track_caller]
    pub fn prints(&mut self, language: &str, code: &str) -> String {
        let result = self.exec(language, code);
        assert_eq!(result["exitCode"], 0, "{code}: {result}");
        result["stdout"].as_str().expect("text").to_owned()
    }

    /// Each line of code, the exit code it ends with and what it prints to its standard output.
    #[track_caller]
    pub fn table(&mut self, language: &str, rows: &[(&str, i64, &str)]) {
        for (code, exit, stdout) in rows {
            let result = self.exec(language, code);
            assert_eq!((result["exitCode"].as_i64(), result["stdout"].as_str()), (Some(*exit), Some(*stdout)), "{code}: {result}");
            assert_eq!(result["success"], *exit == 0, "{code}: {result}");
        }
    }

    /// Begins a call that is not waited for; gives its id.
    #[track_caller]
    pub fn detach(&mut self, language: &str, code: &str) -> String {
        let result = self.ask(json!({"request": "exec", "language": language, "code": code, "soft_limit_ms": 0}));
        result["execId"].as_str().expect("an id").to_owned()
    }

    /// Waits for the end of a call.
    #[track_caller]
    pub fn result(&mut self, exec: &str) -> Value {
        self.ask(json!({"request": "result", "exec": exec, "wait_ms": 30_000}))
    }

    /// What the runtime of a language says of itself; null if there is none.
    #[track_caller]
    pub fn state(&mut self, language: &str) -> Value {
        self.ask(json!({"request": "state", "language": language}))["runtimes"][0].take()
    }

    /// Waits until the process of a runtime is gone.
    #[track_caller]
    pub fn wait_ended(&mut self, language: &str) {
        wait_for(&format!("the {language} to end"), || (self.state(language)["alive"] == false).then_some(()));
    }

    /// A part of a stream, exactly, and what is said of it.
    #[track_caller]
    pub fn page(&mut self, exec: &str, stream: &str, offset: u64, limit: u64) -> (Vec<u8>, Value) {
        let page = self.ask(json!({"request": "output", "exec": exec, "stream": stream, "offset": offset, "limit": limit}));
        (STANDARD.decode(page["base64"].as_str().expect("text")).expect("base64"), page)
    }
}
