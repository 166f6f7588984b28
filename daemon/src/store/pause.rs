//! Pausing and waking as rows: what is to stand still, what was ended to free its memory, and the launch it is started again with.

use rusqlite::{OptionalExtension, params};
use serde_json::json;
use shared::agent::Conversation;
use shared::event::Author;
use shared::id::{LeaseId, Offset, RuntimeId, SessionId};
use shared::message::{Code, Failure};
use shared::runtime::{Launch, RuntimeState};
use shared::screen::Size;
use shared::session::{HIBERNATED, Session, Status};
use shared::terminal::TerminalKind;

use super::life::Asked;
use super::session::load;
use super::{Change, Durability, Error, Fact, Result, StoreHandle, broken, micros, parse};

/// A program that was ended, and how it is started again where it was.
#[derive(Clone, Debug)]
pub struct Asleep {
    pub runtime: RuntimeId,
    /// Where in its recording the screen is that stays; the last one, if nothing is known.
    pub screen_at: Option<Offset>,
    pub launch: Launch,
    /// The folder it was in is gone: it starts in its workspace.
    pub folder_is_gone: bool,
    /// The conversation an agent had in it.
    pub conversation: Option<Conversation>,
}

/// What a program is started again with.
pub struct Waking {
    /// The launch's own id.
    pub runtime: RuntimeId,
    pub continues: RuntimeId,
    pub launch: Launch,
    pub lease: LeaseId,
}

impl StoreHandle {
    /// Whether a runtime is to stand still; if so, whether what is typed is kept.
    pub async fn wanted_freeze(&self, runtime: RuntimeId) -> Result<Option<bool>> {
        self.read(move |connection| {
            let sql = "SELECT queues_input FROM runtimes WHERE id = ?1 AND is_live AND ending IS NULL AND frozen_since IS NOT NULL";
            Ok(connection.prepare_cached(sql)?.query_row([runtime.to_string()], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// One terminal of a session alone stands still or goes on; the session itself stays what it is.
    pub async fn freeze_terminal(&self, session: SessionId, kind: TerminalKind, freeze: Option<bool>, author: Author) -> Result<RuntimeId> {
        self.write(Durability::Power, move |change| {
            let standing = change.standing(session)?;
            let row: Option<(String, bool)> = change
                .query_row(
                    "SELECT runtimes.id, frozen_since IS NOT NULL FROM runtimes JOIN terminals ON terminals.id = terminal_id
                     WHERE is_live AND ending IS NULL AND session_id = ?1 AND kind = ?2",
                    params![session.to_string(), kind.as_str()],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let verb = if freeze.is_some() { "pause" } else { "resume" };
            let refused = |why: String| Error::Refused(format!("cannot {verb}: {why}"));
            let name = &standing.name;
            if standing.status != Status::Active {
                return Err(refused(format!("session {name} is {}: `sessions-tui resume {name}` goes on with all of it", standing.status)));
            }
            let Some((id, is_frozen)) = row else { return Err(refused(format!("session {name} has no {} that runs", kind.as_str()))) };
            if is_frozen == freeze.is_some() {
                let present = if is_frozen { "is paused already" } else { "is not paused" };
                return Err(refused(format!("the {} of session {name} {present}", kind.as_str())));
            }
            let runtime = RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?;
            change.execute(
                "UPDATE runtimes SET frozen_since = ?1, queues_input = ?2 WHERE id = ?3",
                params![freeze.map(|_| micros(jiff::Timestamp::now())), freeze.unwrap_or(false), id],
            )?;
            change.tell(Fact::new(session, author, verb, json!({"terminal": kind.as_str()})))?;
            Ok(runtime)
        })
        .await
    }

    /// Pauses a session whose processes are to be ended; gives them. They are its own: what it was used for stays.
    pub async fn hibernate(&self, session: SessionId, reason: Option<String>, author: Author) -> Result<Vec<RuntimeId>> {
        self.write(Durability::Power, move |change| {
            let standing = change.standing(session)?;
            if standing.status == Status::Paused {
                change.execute(
                    "UPDATE sessions SET status_reason = ?1, updated_at = ?2 WHERE id = ?3",
                    params![reason.as_deref().unwrap_or(HIBERNATED), micros(jiff::Timestamp::now()), session.to_string()],
                )?;
            } else {
                let reason = Some(reason.unwrap_or_else(|| HIBERNATED.to_owned()));
                change.obey(session, &Asked::Pause { reason, queues_input: false }, author)?;
            }
            let ids: Vec<String> = change
                .sql
                .prepare_cached(
                    "UPDATE runtimes SET ending = ?2, frozen_since = NULL WHERE is_live AND session_id = ?1 AND ending IS NULL RETURNING id",
                )?
                .query_map(params![session.to_string(), HIBERNATED], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            if ids.is_empty() {
                let why = format!("cannot hibernate: session {0} has nothing that runs; `sessions-tui pause {0}` pauses its record", standing.name);
                return Err(Error::Refusal(Failure::new(Code::Status, why)));
            }
            ids.iter().map(|id| RuntimeId::parse(id).ok_or_else(|| broken("runtime id", id))).collect()
        })
        .await
    }

    /// Whether what runs in a paused session was ended, instead of stopped.
    pub async fn sleeps(&self, session: SessionId) -> Result<bool> {
        self.read(move |connection| {
            let sql = "SELECT EXISTS (SELECT 1 FROM runtimes WHERE session_id = ?1 AND json_extract(state, '$.state') = 'hibernated')
                AND NOT EXISTS (SELECT 1 FROM runtimes WHERE session_id = ?1 AND is_live)";
            Ok(connection.prepare_cached(sql)?.query_row([session.to_string()], |row| row.get(0))?)
        })
        .await
    }

    /// The program of a session that was hibernated, as it would be started again.
    pub async fn asleep(&self, session: SessionId) -> Result<Option<Asleep>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT runtimes.id, state, launch, terminals.cwd, env_delta, cols, rows, workspace, env_removed, agent FROM runtimes
                 JOIN terminals ON terminals.id = terminal_id JOIN threads ON threads.id = terminals.thread_id
                 WHERE session_id = ?1 AND kind = 'terminal' ORDER BY runtimes.created_at DESC LIMIT 1",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let text = |column: usize| row.get::<_, String>(column);
            let state: RuntimeState = parse("runtime state", &text(1)?)?;
            let screen_at = match state {
                RuntimeState::Hibernated { screen_at, .. } => screen_at,
                RuntimeState::Lost { .. } => None,
                _ => return Ok(None),
            };
            let (id, launch, cwd): (String, Launch, String) = (text(0)?, parse("launch", &text(2)?)?, text(3)?);
            let folder_is_gone = !std::path::Path::new(&cwd).is_dir();
            let launch = Launch {
                cwd: if folder_is_gone { text(7)? } else { cwd },
                env_delta: parse("environment", &text(4)?)?,
                env_removed: parse("environment", &text(8)?)?,
                size: Size { cols: row.get(5)?, rows: row.get(6)? },
                ..launch
            };
            let runtime = RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?;
            let conversation = row.get::<_, Option<String>>(9)?.map(|text| parse("agent", &text)).transpose()?;
            Ok(Some(Asleep { runtime, screen_at, launch, folder_is_gone, conversation }))
        })
        .await
    }

    /// Goes on with a session whose program is started again: both are one.
    pub async fn wake(&self, session: SessionId, asked: Asked, waking: Waking, author: Author) -> Result<Session> {
        self.write(Durability::Power, move |change| {
            change.obey(session, &asked, author)?;
            let woken = load(&change.sql, session)?;
            change.store_launch(woken.thread, session, waking.runtime, &waking.launch, waking.lease)?;
            change.continues(waking.runtime, waking.continues)?;
            change.tell(Fact::new(
                session,
                author,
                "start",
                json!({"command": waking.launch.argv, "workspace": waking.launch.cwd, "continues": waking.continues}),
            ))?;
            load(&change.sql, session)
        })
        .await
    }

    /// A launch in the place of another; told again to whoever has to start it after a crash.
    pub async fn launch_of(&self, runtime: RuntimeId) -> Result<Option<(Launch, RuntimeId)>> {
        self.read(move |connection| {
            let row: Option<(String, String)> = connection
                .query_row("SELECT launch, continues FROM runtimes WHERE id = ?1 AND continues IS NOT NULL", [runtime.to_string()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let Some((launch, continues)) = row else { return Ok(None) };
            Ok(Some((parse("launch", &launch)?, RuntimeId::parse(&continues).ok_or_else(|| broken("runtime id", &continues))?)))
        })
        .await
    }
}

impl Change<'_> {
    pub(super) fn freeze_runtimes(&mut self, session: SessionId, queues_input: bool) -> Result<()> {
        let now = micros(jiff::Timestamp::now());
        self.execute(
            "UPDATE runtimes SET frozen_since = coalesce(frozen_since, ?1), queues_input = ?2 WHERE is_live AND session_id = ?3",
            params![now, queues_input, session.to_string()],
        )?;
        Ok(())
    }

    pub(super) fn thaw_runtimes(&mut self, session: SessionId) -> Result<()> {
        self.execute(
            "UPDATE runtimes SET frozen_since = NULL WHERE is_live AND session_id = ?1 AND frozen_since IS NOT NULL",
            [session.to_string()],
        )?;
        Ok(())
    }

    pub(super) fn continues(&mut self, runtime: RuntimeId, before: RuntimeId) -> Result<()> {
        self.execute("UPDATE runtimes SET continues = ?1 WHERE id = ?2", params![before.to_string(), runtime.to_string()])?;
        Ok(())
    }
}
