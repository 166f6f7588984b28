//! Interpreters: which one is there, what a new one is started with, what their terminals remember of them, and their end.

use rusqlite::{OptionalExtension, params};
use serde_json::json;
use shared::event::Author;
use shared::exec::Language;
use shared::id::{LeaseId, RuntimeId, SessionId, ThreadId};
use shared::runtime::{Launch, RuntimeState};
use shared::screen::Size;
use shared::session::Status;

use super::exec::{Begun, Found};
use super::launch::DEFAULT_SIZE;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, broken, json as stored, parse};
use crate::language::Names;
use crate::language::environment::Delta;

/// A terminal without a runtime, as it was left.
#[derive(Clone, Debug)]
pub struct Absent {
    pub session: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub workspace: String,
    pub cwd: String,
    pub env: Delta,
    pub size: Size,
    /// How its last runtime ended, and whether that was asked for.
    pub last: Option<(RuntimeState, Option<String>)>,
}

impl Absent {
    /// A terminal that was never used.
    pub fn of(session: SessionId, thread: ThreadId, name: String, folder: String) -> Self {
        let (workspace, env) = (folder.clone(), Delta::default());
        Self { session, thread, name, workspace, cwd: folder, env, size: DEFAULT_SIZE, last: None }
    }
}

/// What a terminal remembers of its interpreter.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub language: Language,
    pub cwd: String,
    pub env: Delta,
    pub names: Names,
    pub state_version: u64,
    pub runtime: Option<RuntimeId>,
}

impl StoreHandle {
    /// A runtime is about to be started for a terminal that has none; `false` if it has one by now.
    pub async fn launch_runtime(
        &self,
        absent: Absent,
        language: Language,
        runtime: RuntimeId,
        launch: Launch,
        lease: LeaseId,
    ) -> Result<bool> {
        self.write(Durability::Power, move |change| {
            let is_there: bool = change.query_row(
                "SELECT EXISTS (SELECT 1 FROM runtimes JOIN terminals ON terminals.id = terminal_id
                    WHERE is_live AND thread_id = ?1 AND kind = ?2)",
                params![absent.thread.to_string(), language.as_str()],
                |row| row.get(0),
            )?;
            if is_there {
                return Ok(false);
            }
            change.store_launch_of(language.kind(), (absent.thread, absent.session, runtime), &launch, lease)?;
            Ok(true)
        })
        .await
    }

    /// The runtime of a language of a session that goes on, or what one is to be started with.
    pub async fn interpreter_of(&self, session: SessionId, language: Language) -> Result<Begun> {
        self.write(Durability::Process, move |change| {
            let found = change.found(session)?;
            if found.status != Status::Active {
                return Err(Error::Refused(format!("session {} is {}", found.name, found.status)));
            }
            match change.live_interpreter(&found, language)? {
                Some(runtime) => Ok(Begun::On { runtime, session, name: found.name }),
                None => Ok(Begun::Absent(Box::new(change.absent(&found, language.as_str())?))),
            }
        })
        .await
    }

    /// What the terminals of a session's thread remember.
    pub async fn remembered(&self, session: SessionId) -> Result<Vec<Remembered>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT kind, cwd, env_delta, env_removed, names, imports, state_version,
                    (SELECT id FROM runtimes WHERE terminal_id = terminals.id AND is_live)
                 FROM terminals WHERE kind <> 'terminal' AND thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) ORDER BY kind",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let text = |column: usize| row.get::<_, String>(column);
                let (kind, runtime): (String, Option<String>) = (text(0)?, row.get(7)?);
                found.push(Remembered {
                    language: Language::parse(&kind).ok_or_else(|| broken("language", &kind))?,
                    cwd: text(1)?,
                    env: Delta { set: parse("environment", &text(2)?)?, removed: parse("environment", &text(3)?)? },
                    names: Names { names: parse("names", &text(4)?)?, imports: parse("imports", &text(5)?)? },
                    state_version: row.get::<_, i64>(6)? as u64,
                    runtime: runtime.as_deref().and_then(RuntimeId::parse),
                });
            }
            Ok(found)
        })
        .await
    }

    /// The environment of an interpreter has changed.
    pub async fn environment_changed(&self, runtime: RuntimeId, delta: Delta) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change.execute(
                "UPDATE terminals SET env_delta = ?1, env_removed = ?2, state_version = state_version + 1
                 WHERE id = (SELECT terminal_id FROM runtimes WHERE id = ?3 AND is_live) AND (env_delta <> ?1 OR env_removed <> ?2)",
                params![stored(&delta.set)?, stored(&delta.removed)?, runtime.to_string()],
            )?;
            Ok(())
        })
        .await
    }

    /// What the code of an interpreter has defined, as just seen.
    pub async fn names_seen(&self, runtime: RuntimeId, names: Names) -> Result<()> {
        self.write_beside(Durability::Process, move |change| {
            change.execute(
                "UPDATE terminals SET names = ?1, imports = ?2
                 WHERE id = (SELECT terminal_id FROM runtimes WHERE id = ?3) AND (names <> ?1 OR imports <> ?2)",
                params![stored(&names.names)?, stored(&names.imports)?, runtime.to_string()],
            )?;
            Ok(())
        })
        .await
    }

    /// Decides that the runtimes of a session's thread are to end, all or those of one language; gives them.
    pub async fn end_interpreters(&self, session: SessionId, language: Option<Language>, reason: &'static str) -> Result<Vec<RuntimeId>> {
        self.write(Durability::Power, move |change| {
            let ids: Vec<String> = change
                .sql
                .prepare_cached(
                    "UPDATE runtimes SET ending = coalesce(ending, ?3) WHERE is_live AND terminal_id IN (SELECT id FROM terminals
                        WHERE kind <> 'terminal' AND (?2 IS NULL OR kind = ?2)
                        AND thread_id = (SELECT thread_id FROM sessions WHERE id = ?1)) RETURNING id",
                )?
                .query_map(params![session.to_string(), language.map(Language::as_str), reason], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(ids.iter().filter_map(|id| RuntimeId::parse(id)).collect())
        })
        .await
    }

    /// Decides that one runtime is to end; `false` if it has ended, somebody decided so before, or it has been called.
    pub async fn end_interpreter(&self, runtime: RuntimeId, reason: &'static str) -> Result<bool> {
        self.write(Durability::Power, move |change| {
            let sql = "UPDATE runtimes SET ending = ?2 WHERE id = ?1 AND is_live AND ending IS NULL
                AND NOT EXISTS (SELECT 1 FROM execs WHERE runtime_id = ?1 AND stage = 'open')";
            Ok(change.execute(sql, params![runtime.to_string(), reason])? > 0)
        })
        .await
    }

    /// Forgets what terminals of a session's thread remember of their interpreters; gives of which languages.
    pub async fn forget_interpreters(&self, session: SessionId, language: Option<Language>, author: Author) -> Result<Vec<Language>> {
        self.write(Durability::Power, move |change| {
            let kinds: Vec<String> = change
                .sql
                .prepare_cached(
                    "UPDATE terminals SET env_delta = '[]', env_removed = '[]', imports = '[]', names = '[]',
                        state_version = state_version + 1, cwd = (SELECT workspace FROM threads WHERE threads.id = thread_id)
                     WHERE kind <> 'terminal' AND (?2 IS NULL OR kind = ?2)
                        AND thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) RETURNING kind",
                )?
                .query_map(params![session.to_string(), language.map(Language::as_str)], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let languages: Vec<Language> = kinds.iter().filter_map(|kind| Language::parse(kind)).collect();
            change.tell(Fact::new(session, author, "reset", json!({"languages": languages})))?;
            Ok(languages)
        })
        .await
    }
}

impl Change<'_> {
    /// One that is being ended is to be waited for.
    pub(super) fn live_interpreter(&self, found: &Found, language: Language) -> Result<Option<RuntimeId>> {
        let live: Option<(String, bool)> = self
            .query_row(
                "SELECT runtimes.id, ending IS NOT NULL FROM runtimes JOIN terminals ON terminals.id = terminal_id
                 WHERE is_live AND thread_id = ?1 AND kind = ?2",
                params![found.thread.to_string(), language.as_str()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let Some((id, is_ending)) = live else { return Ok(None) };
        let runtime = RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?;
        if is_ending { Err(Error::Ending { name: found.name.clone(), runtime }) } else { Ok(Some(runtime)) }
    }

    pub(super) fn absent(&self, found: &Found, kind: &str) -> Result<Absent> {
        let left: Option<(String, String, String, String, u16, u16)> = self
            .query_row(
                "SELECT id, cwd, env_delta, env_removed, cols, rows FROM terminals WHERE thread_id = ?1 AND kind = ?2",
                params![found.thread.to_string(), kind],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)),
            )
            .optional()?;
        let mut absent = Absent::of(found.session, found.thread, found.name.clone(), found.workspace.clone());
        if let Some((terminal, cwd, set, removed, cols, rows)) = left {
            absent.cwd = cwd;
            absent.env = Delta { set: parse("environment", &set)?, removed: parse("environment", &removed)? };
            absent.size = Size { cols, rows };
            let last: Option<(String, Option<String>)> = self
                .query_row(
                    "SELECT state, ending FROM runtimes WHERE terminal_id = ?1 ORDER BY created_at DESC, id DESC LIMIT 1",
                    [terminal],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            absent.last = match last {
                Some((state, ending)) => Some((parse("runtime state", &state)?, ending)),
                None => None,
            };
        }
        Ok(absent)
    }
}
