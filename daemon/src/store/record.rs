//! What is written into a session's record: facts in the caller's words, tool calls, learnings, context and metadata.

use rusqlite::params;
use serde_json::{Map, Value, json};
use shared::event::Author;
use shared::id::SessionId;
use shared::json::{self, MAX_CONTEXT, MAX_DATA};
use shared::session::Session;

use super::session::load;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, micros, parse};

impl StoreHandle {
    /// A fact that changes nothing else; gives the session as it is then.
    pub async fn tell_of(&self, fact: Fact) -> Result<Session> {
        self.write(Durability::Process, move |change| {
            let session = fact.session;
            change.tell(fact)?;
            load(&change.sql, session)
        })
        .await
    }

    /// A call of a tool, whose name is kept among those used.
    pub async fn tool_call(&self, session: SessionId, tool: String, data: Value, author: Author) -> Result<Session> {
        self.write(Durability::Process, move |change| {
            let (context, mut metadata) = change.documents(session)?;
            let used = metadata.entry("tools_used").or_insert_with(|| json!([]));
            if let Some(used) = used.as_array_mut()
                && !used.iter().any(|name| *name == tool)
            {
                used.push(json!(tool));
                change.store_documents(session, &context, &metadata)?;
            }
            change.tell(Fact::new(session, author, "tool_call", data))?;
            load(&change.sql, session)
        })
        .await
    }

    /// Merges deeply into context and metadata.
    pub async fn merge(&self, session: SessionId, context: Map<String, Value>, metadata: Map<String, Value>, author: Author) -> Result<()> {
        self.write(Durability::Process, move |change| change.merge(session, context, metadata, author)).await
    }
}

impl Change<'_> {
    fn documents(&self, session: SessionId) -> Result<(Map<String, Value>, Map<String, Value>)> {
        let (context, metadata): (String, String) = self
            .sql
            .prepare_cached("SELECT context, metadata FROM sessions WHERE id = ?1")?
            .query_row([session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((parse("context", &context)?, parse("metadata", &metadata)?))
    }

    pub(super) fn merge(
        &mut self,
        session: SessionId,
        context: Map<String, Value>,
        metadata: Map<String, Value>,
        author: Author,
    ) -> Result<()> {
        let (mut before, mut about) = self.documents(session)?;
        let mut told = json!({});
        if !context.is_empty() {
            told["set"] = Value::Object(context.clone());
        }
        if !metadata.is_empty() {
            told["metadata"] = Value::Object(metadata.clone());
        }
        json::check("context and metadata together", &told, MAX_DATA).map_err(Error::Usage)?;
        json::merge(&mut before, context);
        json::merge(&mut about, metadata);
        self.store_documents(session, &before, &about)?;
        self.tell(Fact::new(session, author, "context", told))
    }

    /// Stores context and metadata, and what sums are made of beside them.
    pub(super) fn store_documents(
        &mut self,
        session: SessionId,
        context: &Map<String, Value>,
        metadata: &Map<String, Value>,
    ) -> Result<()> {
        check_metadata(metadata).map_err(Error::Usage)?;
        let (context, metadata) = (Value::Object(context.clone()), Value::Object(metadata.clone()));
        for (what, value) in [("the context", &context), ("the metadata", &metadata)] {
            json::check(what, value, MAX_CONTEXT).map_err(Error::Usage)?;
        }
        let tokens = |key: &str| metadata["tokens"][key].as_u64().map(|count| count as i64);
        self.sql
            .prepare_cached(
                "UPDATE sessions SET context = ?1, metadata = ?2, updated_at = ?3, cost = ?4, tokens_prompt = ?5, tokens_completion = ?6,
                    tokens_total = ?7 WHERE id = ?8",
            )?
            .execute(params![
                context.to_string(),
                metadata.to_string(),
                micros(jiff::Timestamp::now()),
                metadata["cost"].as_f64(),
                tokens("prompt"),
                tokens("completion"),
                tokens("total").or_else(|| Some(tokens("prompt")? + tokens("completion")?)),
                session.to_string()
            ])?;
        Ok(())
    }
}

/// What every reader of JSON can count exactly; sums of many of them are far from any limit.
const MAX_COUNT: u64 = 1 << 53;

/// Keys with a meaning have the form that goes with it; all others are the caller's own.
fn check_metadata(metadata: &Map<String, Value>) -> std::result::Result<(), String> {
    let words = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    let count = |value: &Value| value.as_u64().is_some_and(|count| count <= MAX_COUNT);
    for (key, value) in metadata {
        let (is_fine, form) = match key.as_str() {
            "model" => (value.is_string(), "a text"),
            "timeout" => (value.is_number(), "a number"),
            "enable_learning" | "delegated" => (value.is_boolean(), "true or false"),
            "blocked_actions" => (value.is_array(), "a list"),
            "tools_used" => (words(value), "a list of texts"),
            "cost" => (value.as_f64().is_some_and(|cost| cost >= 0.0), "a number, not below 0"),
            "tokens" => (
                value.as_object().is_some_and(|tokens| tokens.values().all(count)),
                "an object of counts, as in {\"prompt\":1,\"completion\":2,\"total\":3}",
            ),
            _ => continue,
        };
        if !is_fine {
            return Err(format!("metadata.{key} must be {form}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_with_a_meaning_has_its_form() {
        let check = |value: Value| check_metadata(value.as_object().expect("an object"));
        check(json!({"model": "x", "cost": 0.5, "tokens": {"prompt": 1, "total": 2}, "tools_used": ["bash"], "mine": [1, {}]}))
            .expect("fine");
        for (value, word) in [
            (json!({"cost": -1}), "cost"),
            (json!({"cost": "1"}), "cost"),
            (json!({"tokens": {"prompt": -1}}), "tokens"),
            (json!({"tokens": 3}), "tokens"),
            (json!({"tools_used": [1]}), "tools_used"),
            (json!({"delegated": 1}), "delegated"),
        ] {
            assert!(check(value).expect_err(word).contains(word));
        }
    }
}
