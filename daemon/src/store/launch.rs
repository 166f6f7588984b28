//! Launches: a terminal's next program as a row, before it is a process; or the one that is still there, passed on.

use rusqlite::{OptionalExtension, params};
use shared::id::{LeaseId, RuntimeId, SessionId, TerminalId, ThreadId};
use shared::runtime::{Launch, RuntimeState};
use shared::screen::Size;
use shared::terminal::TerminalKind;

use super::{Change, Error, Result, broken, json as stored, micros};

/// A terminal nobody has attached to yet.
pub(super) const DEFAULT_SIZE: Size = Size { cols: 80, rows: 24 };

impl Change<'_> {
    /// The thread's program that is still there belongs to this session from now on; one that is being ended does not.
    pub(super) fn take_over_program(&mut self, thread: ThreadId, name: &str, session: SessionId) -> Result<Option<RuntimeId>> {
        let running: Option<(String, bool)> = self
            .query_row(
                "SELECT runtimes.id, ending IS NOT NULL FROM runtimes JOIN terminals ON terminals.id = terminal_id
                 WHERE is_live AND thread_id = ?1 AND kind = ?2",
                params![thread.to_string(), TerminalKind::Terminal.as_str()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let Some((id, is_ending)) = running else { return Ok(None) };
        let runtime = RuntimeId::parse(&id).ok_or_else(|| broken("runtime id", &id))?;
        if is_ending {
            return Err(Error::Ending { name: name.to_owned(), runtime });
        }
        // whatever it stood still for is over
        self.execute("UPDATE runtimes SET session_id = ?1, frozen_since = NULL WHERE id = ?2", params![session.to_string(), id])?;
        Ok(Some(runtime))
    }

    /// Interpreters that are still there belong to this session from now on; those that are being ended do not.
    pub(super) fn take_over_interpreters(&mut self, thread: ThreadId, session: SessionId) -> Result<Vec<RuntimeId>> {
        let ids: Vec<String> = self
            .sql
            .prepare_cached(
                "UPDATE runtimes SET session_id = ?1, frozen_since = NULL WHERE is_live AND ending IS NULL AND terminal_id IN
                    (SELECT id FROM terminals WHERE thread_id = ?2 AND kind <> 'terminal') RETURNING id",
            )?
            .query_map(params![session.to_string(), thread.to_string()], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        ids.iter().map(|id| RuntimeId::parse(id).ok_or_else(|| broken("runtime id", id))).collect()
    }

    /// A record without a program has a place to work in too.
    pub(super) fn store_terminal(&mut self, thread: ThreadId, workspace: &str, lease: LeaseId) -> Result<()> {
        self.keep_lease(lease)?;
        self.execute(
            "INSERT INTO terminals (id, thread_id, kind, cwd, cols, rows, lease_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (thread_id, kind) DO NOTHING",
            params![
                TerminalId::new().to_string(),
                thread.to_string(),
                TerminalKind::Terminal.as_str(),
                workspace,
                DEFAULT_SIZE.cols,
                DEFAULT_SIZE.rows,
                lease.to_string()
            ],
        )?;
        Ok(())
    }

    /// A launch is a row before it is a process. The thread keeps its one terminal of this kind.
    pub(super) fn store_launch(
        &mut self,
        thread: ThreadId,
        session: SessionId,
        runtime: RuntimeId,
        launch: &Launch,
        lease: LeaseId,
    ) -> Result<()> {
        self.store_launch_of(TerminalKind::Terminal, (thread, session, runtime), launch, lease)
    }

    pub(super) fn store_launch_of(
        &mut self,
        kind: TerminalKind,
        (thread, session, runtime): (ThreadId, SessionId, RuntimeId),
        launch: &Launch,
        lease: LeaseId,
    ) -> Result<()> {
        let kind = kind.as_str();
        self.keep_lease(lease)?;
        self.execute(
            "INSERT INTO terminals (id, thread_id, kind, cwd, env_delta, cols, rows, lease_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (thread_id, kind) DO UPDATE SET cwd = ?4, env_delta = ?5, cols = ?6, rows = ?7,
                state_version = state_version + 1",
            params![
                TerminalId::new().to_string(),
                thread.to_string(),
                kind,
                launch.cwd,
                stored(&launch.env_delta)?,
                launch.size.cols,
                launch.size.rows,
                lease.to_string()
            ],
        )?;
        self.execute(
            "INSERT INTO runtimes (id, terminal_id, session_id, launch, is_live, state, created_at)
             SELECT ?1, id, ?2, ?3, 1, ?4, max(?5, (SELECT coalesce(max(created_at), 0) + 1 FROM runtimes WHERE terminal_id = terminals.id))
             FROM terminals WHERE thread_id = ?6 AND kind = ?7",
            params![
                runtime.to_string(),
                session.to_string(),
                stored(launch)?,
                stored(&RuntimeState::Starting)?,
                micros(jiff::Timestamp::now()),
                thread.to_string(),
                kind
            ],
        )?;
        Ok(())
    }
}
