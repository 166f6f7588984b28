//! What clients and the daemon say to each other: JSON lines, and binary frames for terminal bytes.
//! A line starts with `{`; a frame starts with its kind, which never is that byte.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::event::Event;
use crate::exec::Stream;
use crate::id::{ExecId, Seq};
use crate::search::Hit;

pub use crate::answer::*;
pub use crate::failure::{Code, Failure};
pub use crate::request::*;

/// Raised when an older side could misunderstand a newer one; new fields and requests do not raise it.
pub const PROTOCOL: u32 = 1;

/// Longest JSON line: a 1 MiB argument of a program must fit, with its escapes.
pub const MAX_LINE: usize = 8 << 20;

/// A stranger that says nothing holds no place for longer.
pub const HELLO_MS: u64 = 5000;

/// Calls of one client that are under way; more make it wait. A dashboard waits for each of its tiles.
pub const CALLS_AT_ONCE: usize = 256;

/// Frame kind: bytes typed by the client, to the terminal it is attached to.
pub const INPUT: u8 = 1;
/// Frame kind: bytes to write to the attached client's terminal.
pub const OUTPUT: u8 = 2;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    pub pid: u32,
    /// Whoever speaks here carries out what a person does at a terminal, key by key.
    #[serde(default)]
    pub person: bool,
}

/// The first line in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelloLine {
    pub hello: Hello,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    pub id: u64,
    #[serde(flatten)]
    pub request: Request,
}

/// The answer to a call: `{"id":1,"ok":…}` or `{"id":1,"failure":…}`. What is in it is written and read only once.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub id: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ok: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    failure: Option<Failure>,
}

impl Answer {
    /// The answer to such a request: only what the table of answers says can be in it.
    pub fn to<R: Answered>(id: u64, outcome: Result<R::Ok, Failure>) -> Self {
        let written = outcome
            .and_then(|value| to_raw_value(&value).map_err(|error| Failure::failed(format!("the answer could not be written: {error}"))));
        match written {
            Ok(value) => Self { id, ok: Some(value), failure: None },
            Err(failure) => Self::refusal(id, failure),
        }
    }

    pub fn refusal(id: u64, failure: Failure) -> Self {
        Self { id, ok: None, failure: Some(failure) }
    }

    /// What was answered, as the caller expects it.
    pub fn understand<T: DeserializeOwned>(self) -> Result<T, Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => serde_json::from_str(self.ok.as_ref().map_or("null", |value| value.get()))
                .map_err(|error| Failure::new(Code::Version, format!("the daemon's answer is not understood: {error}"))),
        }
    }
}

/// What the daemon says unasked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "push", rename_all = "snake_case")]
pub enum Push {
    Event(Event),
    /// Everything up to this event has been told; now it follows live.
    CaughtUp {
        seq: Seq,
    },
    /// The attachment is over; whether the client's terminal was left in its alternate screen.
    Detached {
        #[serde(flatten)]
        why: Detached,
        alternate: Option<bool>,
    },
    /// The attached client has control now, or has lost it.
    Control {
        held: bool,
    },
    /// So many bytes of what the attached client types have reached the program.
    Taken {
        bytes: u64,
    },
    /// What a call that is being streamed has printed, exactly.
    ExecOutput {
        exec: ExecId,
        stream: Stream,
        base64: String,
    },
    /// Found by the search with this call's id.
    Hit {
        call: u64,
        hit: Box<Hit>,
    },
    /// How far that search is, in bytes of recordings.
    SearchProgress {
        call: u64,
        searched: u64,
        total: u64,
    },
    /// The settings were changed, or what is wrong with their files; told to whoever watches.
    Settings {
        wrong: Vec<String>,
    },
    /// The daemon ends; with `restart` another one follows at once.
    Stopping {
        restart: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Detached {
    /// The program ended; the sentence says how.
    Ended { sentence: String, exit_code: i32 },
    /// Another client asked for it.
    Asked,
    /// The user pressed the keys for it, in a terminal the daemon reads.
    ByKey,
    /// The user wants to look back, in a terminal the daemon reads: the client shows that, and attaches again.
    History,
    /// The user wants the next session, or the one before, in a terminal the daemon reads.
    Switch { direction: Direction },
}

/// To the next of the live sessions, in the order of `ls`, or to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Next,
    Previous,
}

/// What a line from a client turned out to be.
pub fn parse_call(line: &[u8]) -> Result<Call, (u64, Failure)> {
    let value: Value = serde_json::from_slice(line).map_err(|error| (0, Failure::usage(format!("this is not a JSON line: {error}"))))?;
    let id = value.get("id").and_then(Value::as_u64).unwrap_or(0);
    let Some(name) = value.get("request").and_then(Value::as_str).map(str::to_owned) else {
        return Err((id, Failure::usage("a call needs \"id\" and \"request\"")));
    };
    if id == 0 {
        return Err((0, Failure::usage("a call needs an \"id\" above 0")));
    }
    let request: Request = serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        if text.starts_with("unknown variant") && text.contains(&name) {
            let way = "if your program is newer, `sessions-tui daemon restart` puts it in its place, and ends no session";
            (id, Failure::usage(format!("unknown request {name:?}: this daemon is {}; {way}", crate::VERSION)))
        } else {
            (id, Failure::usage(format!("request {name:?}: {text}")))
        }
    })?;
    Ok(Call { id, request })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_round_trip() {
        let call = Call { id: 7, request: Request::Rename { name: "a".into(), new: "b".into() } };
        let line = serde_json::to_vec(&call).expect("serialises");
        assert_eq!(parse_call(&line), Ok(call));
    }

    #[test]
    fn unknown_fields_are_ignored_and_unknown_requests_named() {
        let call = parse_call(br#"{"id":1,"request":"show","name":"api","colour":"red"}"#);
        assert!(call.is_ok(), "{call:?}");
        let (id, failure) = parse_call(br#"{"id":2,"request":"fly"}"#).expect_err("unknown");
        assert_eq!(id, 2);
        assert!(failure.message.contains("\"fly\""), "{failure}");
    }

    #[test]
    fn broken_lines_get_a_sentence() {
        for line in
            ["{", "{}", r#"{"id":1}"#, r#"{"request":"show","name":"x"}"#, r#"{"id":1,"request":"show"}"#, r#"{"id":1,"request":{}}"#]
        {
            let (_, failure) = parse_call(line.as_bytes()).expect_err(line);
            assert_eq!(failure.code, Code::Usage, "{line}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let line = format!("{{\"id\":1,\"request\":\"show\",\"name\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse_call(line.as_bytes()).is_err());
    }

    #[test]
    fn answers_have_one_outcome() {
        let ok = Answer::to::<to::Send>(1, Ok(()));
        assert_eq!(serde_json::to_string(&ok).expect("serialises"), r#"{"id":1,"ok":null}"#);
        assert_eq!(ok.understand::<()>(), Ok(()));
        let refusal = Answer::refusal(2, Failure::usage("no"));
        let text = serde_json::to_string(&refusal).expect("serialises");
        assert_eq!(text, r#"{"id":2,"failure":{"code":"usage","message":"no"}}"#);
        let back: Answer = serde_json::from_str(&text).expect("parses");
        assert_eq!(back.understand::<u32>(), Err(Failure::usage("no")));
        let surprise: Answer = serde_json::from_str(r#"{"id":3,"ok":"text"}"#).expect("parses");
        assert_eq!(surprise.understand::<u32>().map_err(|failure| failure.code), Err(Code::Version));
    }
}
