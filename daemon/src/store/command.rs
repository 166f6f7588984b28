//! Commands of terminals, and what a runtime's task has to know when it begins.

use rusqlite::{OptionalExtension, params};
use shared::agent::Conversation;
use shared::command::Command;
use shared::event::Author;
use shared::id::{RuntimeId, SessionId};
use shared::runtime::Launch;

use super::{Durability, Result, StoreHandle, broken, micros, parse, timestamp};
use crate::attention::Hooked;
use crate::command::{Begun, Heard, Told};

/// What an earlier daemon knew of a runtime.
#[derive(Clone, Debug)]
pub struct Memory {
    pub launch: Launch,
    pub agent: Option<Conversation>,
    pub hook: Option<Hooked>,
    /// Since when it waited for somebody when people were last told.
    pub notified_at: Option<jiff::Timestamp>,
    pub heard: Heard,
    /// A command that has not ended.
    pub running: Option<Begun>,
}

impl StoreHandle {
    pub async fn memory_of(&self, runtime: RuntimeId) -> Result<Option<Memory>> {
        self.read(move |connection| {
            let id = runtime.to_string();
            let mut statement = connection
                .prepare_cached("SELECT launch, agent, hook, notified_at, commands_from, commands_mark FROM runtimes WHERE id = ?1")?;
            let mut rows = statement.query([&id])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let text = |column: usize| row.get::<_, Option<String>>(column);
            let running = connection
                .prepare_cached(
                    "SELECT mark, start_offset, text, cwd, author FROM commands
                     WHERE runtime_id = ?1 AND mark = (SELECT max(mark) FROM commands WHERE runtime_id = ?1) AND end_offset IS NULL",
                )?
                .query_row([&id], |row| {
                    Ok(Begun {
                        mark: row.get::<_, i64>(0)? as u64,
                        offset: row.get::<_, i64>(1)? as u64,
                        // its row has the time
                        time: 0,
                        text: row.get(2)?,
                        cwd: row.get(3)?,
                        author: row.get::<_, Option<String>>(4)?.as_deref().and_then(Author::parse),
                    })
                })
                .optional()?;
            Ok(Some(Memory {
                launch: parse("launch", &row.get::<_, String>(0)?)?,
                agent: text(1)?.map(|text| parse("agent", &text)).transpose()?,
                hook: text(2)?.map(|text| parse("hook", &text)).transpose()?,
                notified_at: row.get::<_, Option<i64>>(3)?.map(timestamp),
                heard: Heard { from: row.get::<_, i64>(4)?.max(0) as u64, mark: row.get::<_, i64>(5)?.max(0) as u64 },
                running,
            }))
        })
        .await
    }

    /// Commands that were heard of, and up to where: one transaction, so that none is lost and none is there twice.
    pub async fn commands(&self, runtime: RuntimeId, told: Vec<Told>, heard: Heard, began_at: i64) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            let id = runtime.to_string();
            for told in told {
                let (begun, end) = match told {
                    Told::Began(begun) => (begun, None),
                    Told::Ended { begun, offset, time, exit_code } => (begun, Some((offset, time, exit_code))),
                };
                change.execute(
                    "INSERT INTO commands (runtime_id, mark, session_id, text, cwd, author, started_at, start_offset)
                     SELECT id, ?2, session_id, ?3, ?4, ?5, ?6, ?7 FROM runtimes WHERE id = ?1 ON CONFLICT DO NOTHING",
                    params![
                        id,
                        begun.mark as i64,
                        begun.text,
                        begun.cwd,
                        begun.author.map(Author::as_str),
                        began_at.saturating_add_unsigned(begun.time),
                        begun.offset as i64
                    ],
                )?;
                if let Some((offset, time, exit_code)) = end {
                    change.execute(
                        "UPDATE commands SET end_offset = ?3, took = max(0, ?4 - started_at), exit_code = ?5
                         WHERE runtime_id = ?1 AND mark = ?2 AND end_offset IS NULL",
                        params![id, begun.mark as i64, offset as i64, began_at.saturating_add_unsigned(time), exit_code],
                    )?;
                }
            }
            change.execute(
                "UPDATE runtimes SET commands_from = ?2, commands_mark = ?3 WHERE id = ?1 AND commands_from <= ?2",
                params![id, heard.from as i64, heard.mark as i64],
            )?;
            Ok(())
        })
        .await
    }

    /// Programs that have ended and have more recorded than was heard of their commands, with the end of that.
    pub async fn unheard_commands(&self) -> Result<Vec<(RuntimeId, u64)>> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT runtimes.id, recorded_bytes FROM runtimes JOIN terminals ON terminals.id = terminal_id
                 WHERE NOT is_live AND kind = 'terminal' AND commands_from >= 0 AND commands_from < recorded_bytes",
            )?;
            let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
            rows.map(|row| {
                let (id, end) = row?;
                Ok((RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?, end as u64))
            })
            .collect()
        })
        .await
    }

    /// The last commands typed into the terminal of a session's thread, newest last.
    pub async fn commands_of(&self, session: SessionId, limit: u32) -> Result<Vec<Command>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT runtime_id, text, cwd, author, started_at, start_offset, end_offset, took, exit_code, session_id,
                    (SELECT is_live FROM runtimes WHERE id = runtime_id)
                 FROM commands WHERE session_id IN (SELECT id FROM sessions WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1))
                 ORDER BY started_at DESC, mark DESC LIMIT ?2",
            )?;
            let mut rows = statement.query(params![session.to_string(), limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (runtime, session): (String, String) = (row.get(0)?, row.get(9)?);
                let end: Option<i64> = row.get(6)?;
                found.push(Command {
                    command: row.get(1)?,
                    cwd: row.get(2)?,
                    exit_code: row.get(8)?,
                    duration: row.get::<_, Option<i64>>(7)?.map(|micros| micros as f64 / 1000.0),
                    started_at: timestamp(row.get(4)?),
                    running: end.is_none() && row.get::<_, Option<bool>>(10)?.unwrap_or(false),
                    author: row.get::<_, Option<String>>(3)?.as_deref().and_then(Author::parse),
                    session: SessionId::parse(&session).ok_or_else(|| broken("session id", &session))?,
                    runtime: RuntimeId::parse(&runtime).ok_or_else(|| broken("runtime id", &runtime))?,
                    start_offset: row.get::<_, i64>(5)? as u64,
                    end_offset: end.map(|end| end as u64),
                });
            }
            found.reverse();
            Ok(found)
        })
        .await
    }

    /// People are told now that it waits for somebody since then; `false` if they have been.
    pub async fn notified(&self, runtime: RuntimeId, since: jiff::Timestamp, fact: super::Fact) -> Result<bool> {
        self.write_beside(Durability::Process, move |change| {
            let is_news = change.execute(
                "UPDATE runtimes SET notified_at = ?2 WHERE id = ?1 AND coalesce(notified_at, 0) < ?2",
                params![runtime.to_string(), micros(since)],
            )? > 0;
            if is_news {
                change.tell(fact)?;
            }
            Ok(is_news)
        })
        .await
    }
}
