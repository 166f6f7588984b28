//! Schemas that every client takes: nothing referred to, no unions with null, no formats of integers. Some clients refuse
//! the whole list of tools because of one schema they do not like.

use std::sync::Arc;

use rmcp::handler::server::tool::schema_for_type;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// Deep enough for every type of ours; one that contains itself would end here.
const MAX_DEPTH: usize = 32;

/// What a tool takes.
pub fn input<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    Arc::new(tidy::<T>())
}

/// What a tool gives: of everything only `success` is certain, because a refusal has nothing else to give than its reason.
pub fn output<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = tidy::<T>();
    let mut properties = Map::new();
    properties.insert("success".into(), json!({"type": "boolean"}));
    if let Some(Value::Object(declared)) = schema.remove("properties") {
        properties.extend(declared);
    }
    for (name, description) in [
        ("error", "What went wrong, in a sentence."),
        ("code", "Of a call that failed itself: usage, not_found, status, version, timed_out or failed."),
    ] {
        properties.entry(name).or_insert_with(|| json!({"type": "string", "description": description}));
    }
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("required".into(), json!(["success"]));
    Arc::new(schema)
}

fn tidy<T: JsonSchema + 'static>() -> JsonObject {
    let mut schema = schema_for_type::<T>().as_ref().clone();
    let definitions = match schema.shift_remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    // the name and the words of our own type are noise to a model
    for word in ["$schema", "title", "description"] {
        schema.shift_remove(word);
    }
    let mut schema = Value::Object(schema);
    simplify(&mut schema, &definitions, MAX_DEPTH);
    match schema {
        Value::Object(schema) => schema,
        // simplifying an object leaves an object
        _ => Map::new(),
    }
}

fn simplify(schema: &mut Value, definitions: &Map<String, Value>, depth: usize) {
    if depth == 0 {
        *schema = json!({});
        return;
    }
    match schema {
        // anything at all: some clients only know schemas that are objects
        Value::Bool(true) => *schema = json!({}),
        Value::Array(list) => list.iter_mut().for_each(|below| simplify(below, definitions, depth - 1)),
        Value::Object(object) => {
            refer(object, definitions);
            take_null_away(object);
            // what remains of a union with null may be a reference in its turn
            refer(object, definitions);
            merge_constants(object);
            if object.get("type").is_some_and(|kind| kind == "integer" || kind == "number") {
                object.shift_remove("format");
            }
            for (word, below) in object.iter_mut() {
                match word.as_str() {
                    // the names in it are not words of a schema
                    "properties" => {
                        if let Value::Object(properties) = below {
                            properties.values_mut().for_each(|property| simplify(property, definitions, depth - 1));
                        }
                    }
                    "items" | "anyOf" | "oneOf" | "allOf" | "prefixItems" => simplify(below, definitions, depth - 1),
                    "additionalProperties" if below.is_object() => simplify(below, definitions, depth - 1),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Puts what is referred to in its place; words beside the reference win.
fn refer(object: &mut JsonObject, definitions: &Map<String, Value>) {
    while let Some(Value::String(reference)) = object.shift_remove("$ref") {
        let Some(Value::Object(definition)) = reference.strip_prefix("#/$defs/").and_then(|name| definitions.get(name)) else { return };
        for (word, value) in definition {
            object.entry(word.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Absent is written by absence: `null` is neither taken for more than that nor ever given.
fn take_null_away(object: &mut JsonObject) {
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [one] = &kinds[..] {
            let one = one.clone();
            object.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        if let [one] = &choices[..] {
            let one = one.clone();
            object.shift_remove("anyOf");
            if let Value::Object(one) = one {
                for (word, value) in one {
                    object.entry(word).or_insert(value);
                }
            }
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if object.get("default") == Some(&Value::Null) {
        object.shift_remove("default");
    }
}

/// `oneOf` of constants, which documented enums become, as the `enum` that it is; what is said of each goes to the whole.
fn merge_constants(object: &mut JsonObject) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let constants: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    let Some(constants) = constants else { return };
    let said: Vec<String> = choices
        .iter()
        .filter_map(|choice| Some(format!("{}: {}", choice.get("const")?.as_str()?, choice.get("description")?.as_str()?)))
        .collect();
    object.shift_remove("oneOf");
    object.insert("type".into(), json!("string"));
    object.insert("enum".into(), Value::Array(constants));
    if !said.is_empty() {
        let description = match object.get("description").and_then(Value::as_str) {
            Some(first) => format!("{first} {}", said.join(" ")),
            None => said.join(" "),
        };
        object.insert("description".into(), json!(description));
    }
}
