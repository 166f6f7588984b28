//! What every tool has in common: its description, arguments read with errors that a model can act on, and results in one
//! form. A refusal is a result too: structured, marked as an error, with the daemon's own sentence.

use rmcp::handler::server::tool::{ToolCallContext, ToolRoute};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use shared::message::Failure;
use shared::model_text::for_model;

use super::server::{Call, Server};
use super::{daemon, schema};

/// What a client may know before it calls.
#[derive(Clone, Copy)]
pub enum Effect {
    /// Looks only.
    Reads,
    /// Adds to our own records, or changes them in a way that loses nothing.
    Records,
    /// As `Records`; doing it twice is doing it once.
    RecordsOnce,
    /// Starts programs, which may do anything, but harms nothing that is there.
    Starts,
    /// May do anything.
    Acts,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::Reads => (true, false, true, false),
            Self::Records => (false, false, false, false),
            Self::RecordsOnce => (false, false, true, false),
            Self::Starts => (false, false, false, true),
            Self::Acts => (false, true, false, true),
        };
        ToolAnnotations::with_title(title).read_only(read_only).destructive(destructive).idempotent(idempotent).open_world(open_world)
    }
}

/// A tool in words.
pub struct About {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub effect: Effect,
}

impl About {
    fn tool<A: JsonSchema + 'static>(&self) -> Tool {
        Tool::new(self.name, self.description, schema::input::<A>())
            .with_title(self.title)
            .with_annotations(self.effect.annotations(self.title))
    }
}

/// A tool that takes `A` and gives an object as `S` describes it.
pub fn structured<A, S, O, F, W>(about: &About, work: F) -> ToolRoute<Server>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    S: JsonSchema + 'static,
    O: Serialize,
    F: Fn(Call, A) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<O, Failure>> + Send + 'static,
{
    let tool = about.tool::<A>().with_raw_output_schema(schema::output::<S>());
    route(tool, move |call, arguments| {
        let work = work.clone();
        async move { work(call, arguments?).await.and_then(|given| success(&given)).map(CallToolResult::structured) }
    })
}

/// A tool that takes `A` and gives text: a client that gets both shows its model only the object.
pub fn text<A, F, W>(about: &About, work: F) -> ToolRoute<Server>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Call, A) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<String, Failure>> + Send + 'static,
{
    route(about.tool::<A>(), move |call, arguments| {
        let work = work.clone();
        async move { work(call, arguments?).await.map(|text| CallToolResult::success(vec![ContentBlock::text(text)])) }
    })
}

fn route<A, F, W>(tool: Tool, work: F) -> ToolRoute<Server>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(Call, Result<A, Failure>) -> W + Send + Sync + 'static,
    W: Future<Output = Result<CallToolResult, Failure>> + Send + 'static,
{
    ToolRoute::new_dyn(tool, move |context: ToolCallContext<'_, Server>| {
        let given = context.arguments.unwrap_or_default();
        let hidden = if given.get("raw") == Some(&Value::Bool(true)) { Hidden::Shown } else { Hidden::Marked };
        let arguments = read(&context.name, &given);
        let outcome = work(Call::new(context.service.clone(), context.request_context), arguments);
        Box::pin(async move {
            let result = outcome.await.unwrap_or_else(|failure| refusal(&failure));
            Ok(CallToolResponse::Complete(hidden.apply(result)))
        })
    })
}

/// What becomes of text that a person would not see. Every result of every tool passes through here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// Left out or named, and marked.
    Marked,
    /// The caller asked for the text as it is.
    Shown,
}

impl Hidden {
    fn apply(self, result: CallToolResult) -> CallToolResult {
        if self == Self::Shown {
            return result;
        }
        if let Some(mut value) = result.structured_content {
            mark_strings(&mut value);
            let is_error = result.is_error == Some(true);
            return if is_error { CallToolResult::structured_error(value) } else { CallToolResult::structured(value) };
        }
        let mut result = result;
        for block in &mut result.content {
            if let ContentBlock::Text(text) = block {
                text.text = for_model(&text.text);
            }
        }
        result
    }
}

fn mark_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = for_model(text),
        Value::Array(items) => items.iter_mut().for_each(mark_strings),
        Value::Object(fields) => {
            if fields.keys().any(|key| for_model(key) != *key) {
                *fields = std::mem::take(fields).into_iter().map(|(key, value)| (for_model(&key), value)).collect();
            }
            fields.values_mut().for_each(mark_strings);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A result that says first that it is one.
fn success(given: &impl Serialize) -> Result<Value, Failure> {
    let unwritable = |why: String| Failure::failed(format!("the result could not be written: {why}"));
    let value = serde_json::to_value(given).map_err(|error| unwritable(error.to_string()))?;
    let Value::Object(fields) = value else { return Err(unwritable("it is not an object".into())) };
    if fields.contains_key("success") {
        return Ok(Value::Object(fields));
    }
    let mut object = Map::new();
    object.insert("success".into(), json!(true));
    object.extend(fields);
    Ok(Value::Object(object))
}

fn refusal(failure: &Failure) -> CallToolResult {
    CallToolResult::structured_error(json!({"success": false, "error": failure.message, "code": daemon::code(failure.code)}))
}

/// The arguments of a call, or a sentence that names the one that is wrong.
fn read<A: DeserializeOwned>(tool: &str, arguments: &JsonObject) -> Result<A, Failure> {
    let parse = |arguments: JsonObject| serde_json::from_value::<A>(Value::Object(arguments)).map_err(|error| error.to_string());
    let error = match parse(arguments.clone()) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // what is wrong is told without its name; it is the one without which there is nothing wrong, or something else
    let culprit = arguments.keys().find(|name| {
        let mut others = arguments.clone();
        others.shift_remove(*name);
        parse(others).err().as_ref() != Some(&error)
    });
    Err(Failure::usage(match culprit {
        Some(name) if !error.contains(&format!("`{name}`")) => format!("{tool}: argument `{name}`: {error}"),
        _ => format!("{tool}: {error}"),
    }))
}

/// A moment that was given as an argument of a tool.
pub fn moment(tool: &str, argument: &str, given: Option<String>) -> Result<Option<jiff::Timestamp>, Failure> {
    let read = |text: String| {
        let wrong = || format!("{tool}: argument `{argument}`: {text:?} is not a time: write it as 2026-11-16T09:30:00Z");
        text.parse().map_err(|_| Failure::usage(wrong()))
    };
    given.map(read).transpose()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        #[expect(dead_code, reason = "only read")]
        name: String,
        #[expect(dead_code, reason = "only read")]
        limit: Option<u32>,
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (given, words) in [
            (json!({}), "missing field `name`"),
            (json!({"name": "a", "colour": "red"}), "unknown field `colour`, expected `name` or `limit`"),
            (json!({"name": 5}), "argument `name`: invalid type"),
            (json!({"limit": "many", "name": "a"}), "argument `limit`: invalid type"),
            (json!({"name": "a", "limit": -1}), "argument `limit`: invalid value"),
        ] {
            let Value::Object(object) = given else { panic!("an object") };
            let failure = read::<Arguments>("tool", &object).expect_err(words);
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        let Value::Object(object) = json!({"name": "a", "limit": null}) else { panic!("an object") };
        read::<Arguments>("tool", &object).expect("null is absence");
    }

    #[test]
    fn a_result_says_first_that_it_is_one() {
        let value = success(&json!({"a": 1})).expect("an object");
        assert_eq!(value.to_string(), r#"{"success":true,"a":1}"#);
        let value = success(&json!({"success": false, "a": 1})).expect("an object");
        assert_eq!(value.to_string(), r#"{"success":false,"a":1}"#);
        assert!(success(&json!([1])).is_err());
    }
}
