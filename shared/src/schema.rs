//! The client protocol as one JSON Schema, made from the very types that are read and written. Prints nothing.

use std::collections::BTreeSet;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::message::{CALLS_AT_ONCE, HELLO_MS, INPUT, MAX_LINE, OUTPUT, PROTOCOL};
use crate::{answer, event, exec, frame, json, name, search};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";
const REFERENCE: &str = "#/$defs/";

/// The whole protocol. Its definitions are types (`Session`) and what is said with them: `hello`, `call.NAME`, `ok.NAME` (what a
/// request is answered with), `push.NAME`, and `call`, `answer`, `push` for any of them.
pub fn protocol() -> Value {
    let lines = ["hello", "call", "answer", "push"].map(reference);
    let events: Vec<&str> = event::RESERVED.iter().map(|(kind, _)| *kind).collect();
    json!({
        "$schema": DRAFT,
        "title": "The client protocol of sessions-tui: any one line",
        "description": "shared/PROTOCOL.md explains it. What is not named here is to be ignored.",
        "x-protocol": PROTOCOL,
        "x-version": crate::VERSION,
        "x-frames": {
            "header": "kind (1 byte), length of the payload (4 bytes, little-endian); a JSON line begins with { instead",
            "input": {"kind": INPUT, "from": "client", "payload": "bytes that are typed"},
            "output": {"kind": OUTPUT, "from": "daemon", "payload": "bytes for the attached client's terminal"},
        },
        "x-limits": {
            "line_bytes": MAX_LINE,
            "frame_bytes": frame::MAX_PAYLOAD,
            "hello_ms": HELLO_MS,
            "calls_at_once": CALLS_AT_ONCE,
            "name_characters": name::MAX_CHARS,
            "event_data_bytes": json::MAX_DATA,
            "context_bytes": json::MAX_CONTEXT,
            "json_depth": json::MAX_DEPTH,
            "code_bytes": exec::MAX_CODE,
            "stdin_bytes": exec::MAX_STDIN,
            "output_bytes": exec::MAX_OUTPUT,
            "search_hits": search::MAX_LIMIT,
        },
        "x-events": events,
        "anyOf": lines,
        "$defs": definitions(),
    })
}

/// One part of it, with everything that it needs. A request's name alone means the call.
pub fn part(wanted: &str) -> Option<Value> {
    let all = definitions();
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let is_type = |name: &&String| !name.contains('.') && plain(name) == plain(wanted);
    let exact = |name: &str| all.get_key_value(name).map(|(name, _)| name);
    let name = exact(wanted).or_else(|| all.keys().find(is_type)).or_else(|| exact(&format!("call.{wanted}")))?;
    let mut needed = BTreeSet::new();
    let mut open = vec![name.clone()];
    while let Some(next) = open.pop() {
        if needed.insert(next.clone()) {
            open.extend(all.get(&next).map(references).unwrap_or_default());
        }
    }
    let defs: Map<String, Value> =
        all.iter().filter(|(key, _)| needed.contains(*key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(json!({"$schema": DRAFT, "$ref": format!("{REFERENCE}{name}"), "$defs": defs}))
}

/// What [`part`] knows.
pub fn names() -> Vec<String> {
    definitions().keys().cloned().collect()
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

fn definitions() -> Map<String, Value> {
    // what is asked may leave out what has a default; what is told has everything that is written
    let mut asked = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut told = SchemaSettings::draft2020_12().for_serialize().into_generator();
    asked.subschema_for::<crate::message::HelloLine>();
    asked.subschema_for::<crate::message::Request>();
    told.subschema_for::<crate::message::Push>();
    told.subschema_for::<crate::message::Failure>();
    let answers: Vec<(String, Value)> =
        answer::SCHEMAS.iter().map(|(request, schema)| (format!("ok.{}", snake(request)), schema(&mut told).to_value())).collect();

    let mut told = take(&mut told);
    let mut asked = tell_apart(take(&mut asked), &told);
    let mut all = Map::new();
    let hello = asked.remove("HelloLine").unwrap_or_default();
    let calls = split(asked.remove("Request"), "call", "request");
    let pushes = split(told.remove("Push"), "push", "push");
    let any = |parts: &[(String, Value)]| json!({"oneOf": parts.iter().map(|(name, _)| reference(name)).collect::<Vec<_>>()});
    all.insert("hello".into(), hello);
    all.insert("call".into(), any(&calls));
    all.insert(
        "answer".into(),
        json!({
            "type": "object",
            "description": "The answer to the call with this id: `ok`, which is `ok.NAME` of its request, or `failure`. \
                            Id 0: what was said could not be read as a call.",
            "properties": {"id": {"type": "integer", "minimum": 0}, "ok": true, "failure": reference("Failure")},
            "required": ["id"],
            "oneOf": [{"required": ["ok"]}, {"required": ["failure"]}],
        }),
    );
    all.insert("push".into(), any(&pushes));
    for (name, mut call) in calls {
        if let Some(properties) = call.as_object_mut().and_then(|call| call.get_mut("properties")).and_then(Value::as_object_mut) {
            properties.insert("id".into(), json!({"type": "integer", "minimum": 1}));
        }
        if let Some(required) = call.get_mut("required").and_then(Value::as_array_mut) {
            required.push("id".into());
        }
        all.insert(name, call);
    }
    all.extend(answers);
    all.extend(pushes);
    let mut types: Vec<(String, Value)> = told.into_iter().collect();
    types.extend(asked.into_iter().filter(|(name, _)| !types.iter().any(|(known, _)| known == name)).collect::<Vec<_>>());
    types.sort_by(|(one, _), (other, _)| one.cmp(other));
    all.extend(types);
    all
}

/// What a generator has come by. The other side may be a later one, and say more.
fn take(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut definitions = generator.take_definitions(true);
    for definition in definitions.values_mut() {
        visit(definition, &mut |object| {
            if object.get("additionalProperties") == Some(&Value::Bool(false)) {
                object.remove("additionalProperties");
            }
        });
    }
    definitions
}

/// `ToolCall` as it is on the wire.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Each variant of an enum that is told apart by a word, under that word.
fn split(definition: Option<Value>, prefix: &str, word: &str) -> Vec<(String, Value)> {
    let Some(Value::Array(variants)) = definition.and_then(|mut definition| definition.get_mut("oneOf").map(Value::take)) else {
        return Vec::new();
    };
    let named = variants.into_iter().filter_map(|variant| {
        let name = variant["properties"][word]["const"].as_str()?.to_owned();
        Some((format!("{prefix}.{name}"), variant))
    });
    named.collect()
}

/// Where a type is written otherwise than it may be read, what is read has a name of its own.
fn tell_apart(asked: Map<String, Value>, told: &Map<String, Value>) -> Map<String, Value> {
    let mut other: BTreeSet<String> =
        asked.iter().filter(|(name, schema)| told.get(*name).is_some_and(|known| known != *schema)).map(|(name, _)| name.clone()).collect();
    loop {
        let more: Vec<String> = asked
            .iter()
            .filter(|(name, schema)| {
                told.contains_key(*name) && !other.contains(*name) && references(schema).iter().any(|to| other.contains(to))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            break;
        }
        other.extend(more);
    }
    let rename = |name: &str| if other.contains(name) { format!("{name}Asked") } else { name.to_owned() };
    let renamed = asked.into_iter().map(|(name, mut schema)| {
        visit(&mut schema, &mut |object| {
            if let Some(Value::String(to)) = object.get_mut("$ref")
                && let Some(name) = to.strip_prefix(REFERENCE)
            {
                *to = format!("{REFERENCE}{}", rename(name));
            }
        });
        (rename(&name), schema)
    });
    renamed.collect()
}

fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(&mut schema.clone(), &mut |object| {
        found.extend(object.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(REFERENCE)).map(str::to_owned));
    });
    found
}

fn visit(schema: &mut Value, see: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(object) => {
            see(object);
            for value in object.values_mut() {
                visit(value, see);
            }
        }
        Value::Array(items) => {
            for item in items {
                visit(item, see);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_a_call_and_an_answer() {
        let names = names();
        let of =
            |prefix: &str| -> BTreeSet<String> { names.iter().filter_map(|name| name.strip_prefix(prefix).map(str::to_owned)).collect() };
        assert!(of("call.").len() > 60, "{names:?}");
        assert_eq!(of("call."), of("ok."));
        assert!(of("push.").contains("event"));
    }

    #[test]
    fn everything_that_is_referred_to_is_there() {
        let all = definitions();
        for (name, definition) in &all {
            for to in references(definition) {
                assert!(all.contains_key(&to), "{name} needs {to}");
            }
            // numbered names are two types of one name
            let plain = name.trim_end_matches(|last: char| last.is_ascii_digit());
            assert!(plain == name || !all.contains_key(plain), "{name} and {plain}");
        }
    }

    #[test]
    fn a_part_has_what_it_needs() {
        let session = part("session").expect("a type");
        assert_eq!(session["$ref"], "#/$defs/Session");
        assert!(session["$defs"]["RuntimeState"].is_object() && session["$defs"]["ExecResult"].is_null());
        assert_eq!(part("exec_result").expect("a type")["$ref"], "#/$defs/ExecResult");
        assert_eq!(part("rename").expect("a call")["$ref"], "#/$defs/call.rename");
        assert_eq!(part("ok.show").expect("an answer")["$ref"], "#/$defs/ok.show");
        assert!(part("fly").is_none());
    }
}
