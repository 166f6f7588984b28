//! JSON that callers give us: bounded, and merged deeply. Pure.

use serde_json::{Map, Value};

/// Data of one event, one update: more belongs into a file.
pub const MAX_DATA: usize = 64 << 10;

/// A session's whole context.
pub const MAX_CONTEXT: usize = 256 << 10;

/// Levels of nesting: everybody who reads it back, with what is around it, has room for twice as many.
pub const MAX_DEPTH: usize = 60;

/// Refuses what is larger than `limit` bytes as JSON text, or nested too deeply to be read back by everybody.
pub fn check(what: &str, value: &Value, limit: usize) -> Result<(), String> {
    if !is_shallow(value, MAX_DEPTH) {
        return Err(format!("{what} is nested more than {MAX_DEPTH} levels deep: make it flatter"));
    }
    let bytes = value.to_string().len();
    if bytes > limit {
        return Err(format!("{what} has {bytes} bytes as JSON, at most {limit} are kept: store it in a file and give its name"));
    }
    Ok(())
}

/// For a field that may be there and null, which is not the same as absent: `None` is JSON too.
pub fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

fn is_shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(list) => levels > 0 && list.iter().all(|value| is_shallow(value, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|value| is_shallow(value, levels - 1)),
        _ => true,
    }
}

/// A JSON object, or a sentence.
pub fn object(what: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("{what} must be a JSON object, as in '{{\"step\":1}}', not {}", kind(&other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Objects are merged key by key, at every depth; anything else replaces what was there; null takes a key away (RFC 7396).
pub fn merge(into: &mut Map<String, Value>, update: Map<String, Value>) {
    for (key, value) in update {
        match (into.get_mut(&key), value) {
            (_, Value::Null) => {
                into.remove(&key);
            }
            (Some(Value::Object(below)), Value::Object(update)) => merge(below, update),
            (_, Value::Object(update)) => {
                // what is new may carry nulls too: they have nothing to take away
                let mut fresh = Map::new();
                merge(&mut fresh, update);
                into.insert(key, Value::Object(fresh));
            }
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(into: Value, update: Value) -> Value {
        let (Value::Object(mut into), Value::Object(update)) = (into, update) else { panic!("objects") };
        merge(&mut into, update);
        Value::Object(into)
    }

    #[test]
    fn merging_goes_deep() {
        for (before, update, after) in [
            (json!({}), json!({"a": 1}), json!({"a": 1})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 3, "d": 4}}), json!({"a": {"b": 1, "c": 3, "d": 4}})),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": {"b": 1}}), json!({"a": 5}), json!({"a": 5})),
            (json!({"a": 5}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
            (json!({"a": 1, "b": 2}), json!({"a": null}), json!({"b": 2})),
            (json!({}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}})),
        ] {
            assert_eq!(merged(before, update), after);
        }
    }

    #[test]
    fn what_is_too_large_or_no_object_gets_a_sentence() {
        let large = json!("x".repeat(MAX_DATA));
        let sentence = check("the data", &large, MAX_DATA).expect_err("too large");
        assert!(sentence.contains("65538") && sentence.contains("65536"), "{sentence}");
        assert!(check("the data", &json!("x".repeat(MAX_DATA - 2)), MAX_DATA).is_ok());
        let deep = (0..MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        assert!(check("the data", &deep, MAX_DATA).is_ok());
        assert!(check("the data", &json!([deep]), MAX_DATA).expect_err("too deep").contains("flatter"));
        assert!(object("the context", json!([1])).expect_err("a list").contains("a list"));
    }
}
