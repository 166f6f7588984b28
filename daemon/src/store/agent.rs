//! Agents in terminals: the conversation each has, and the last that its hooks said.

use rusqlite::{OptionalExtension, params};
use shared::agent::Conversation;
use shared::id::RuntimeId;

use super::{Change, Durability, Result, StoreHandle, broken, json, parse};
use crate::attention::Hooked;

impl StoreHandle {
    /// Changes what is known of a runtime's conversation; what `work` gives is known from then on.
    pub async fn rebind(
        &self,
        runtime: RuntimeId,
        work: impl FnOnce(Option<Conversation>) -> Option<Conversation> + Send + 'static,
    ) -> Result<Option<Conversation>> {
        self.write_beside(Durability::Power, move |change| {
            let before = change.conversation(runtime)?;
            let after = work(before.clone());
            if after != before {
                let stored = after.as_ref().map(json).transpose()?;
                change.execute("UPDATE runtimes SET agent = ?2 WHERE id = ?1", params![runtime.to_string(), stored])?;
            }
            Ok(after)
        })
        .await
    }

    /// A live runtime that has this conversation: no two may have the same.
    pub async fn who_has(&self, agent: String, conversation: String) -> Result<Option<RuntimeId>> {
        self.read(move |connection| {
            let found: Option<String> = connection
                .prepare_cached(
                    "SELECT id FROM runtimes WHERE is_live AND agent IS NOT NULL AND agent ->> '$.agent' = ?1
                     AND agent ->> '$.session_id' = ?2 AND NOT coalesce(agent ->> '$.ended', 0)",
                )?
                .query_row([agent, conversation], |row| row.get(0))
                .optional()?;
            found.map(|id| RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))).transpose()
        })
        .await
    }

    /// The last that an agent's hooks said.
    pub async fn hooked(&self, runtime: RuntimeId, hook: Option<Hooked>) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            let stored = hook.as_ref().map(json).transpose()?;
            change.execute("UPDATE runtimes SET hook = ?2 WHERE id = ?1", params![runtime.to_string(), stored])?;
            Ok(())
        })
        .await
    }
}

impl Change<'_> {
    fn conversation(&self, runtime: RuntimeId) -> Result<Option<Conversation>> {
        let stored: Option<Option<String>> =
            self.query_row("SELECT agent FROM runtimes WHERE id = ?1", [runtime.to_string()], |row| row.get(0)).optional()?;
        stored.flatten().map(|text| parse("agent", &text)).transpose()
    }
}
