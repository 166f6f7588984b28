//! Threads: found by what a user typed, renamed, removed with everything below them.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;
use shared::event::Author;
use shared::id::{InstanceId, LeaseId, RuntimeId, SessionId, TerminalId, ThreadId};
use shared::lease::{Instance, Lease};
use shared::message::{Code, Failure};
use shared::screen::Size;
use shared::terminal::{Terminal, TerminalKind};
use shared::thread::Thread;

use super::{Change, Durability, Error, Fact, Removed, Result, StoreHandle, broken, micros, timestamp};

/// How many candidates an ambiguous prefix shows.
const CANDIDATES: usize = 5;

/// How much of a session's name or id a request must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameMatch {
    /// An unambiguous prefix is enough.
    Prefix,
    /// For what cannot be undone: `kill cat` must not end `catty`.
    Exact,
}

/// The session that a word means.
pub struct Found {
    pub session: SessionId,
    /// It was named by its own id, not by its thread.
    pub by_id: bool,
}

impl StoreHandle {
    /// The latest session of the thread a user means: exact name, exact id, or an unambiguous prefix of either.
    pub async fn find(&self, word: String) -> std::result::Result<Found, Failure> {
        self.find_by(word, NameMatch::Prefix).await
    }

    /// As `find`, without prefixes: for requests that end or remove something.
    pub async fn find_exact(&self, word: String) -> std::result::Result<Found, Failure> {
        self.find_by(word, NameMatch::Exact).await
    }

    async fn find_by(&self, word: String, matching: NameMatch) -> std::result::Result<Found, Failure> {
        self.read(move |connection| Ok(find(connection, &word, matching)?)).await.map_err(|error| Failure::failed(error.to_string()))?
    }

    pub async fn rename(&self, session: SessionId, new: String, author: Author) -> Result<()> {
        self.write(Durability::Power, move |change| {
            let old: String = change.query_row(
                "SELECT name FROM threads WHERE id = (SELECT thread_id FROM sessions WHERE id = ?1)",
                [session.to_string()],
                |row| row.get(0),
            )?;
            if old == new {
                return Ok(());
            }
            let own: String = change.query_row("SELECT thread_id FROM sessions WHERE id = ?1", [session.to_string()], |row| row.get(0))?;
            if thread_id_named(&change.sql, &new)?.is_some_and(|thread| thread != own) {
                return Err(Error::NameTaken(new));
            }
            change.execute(
                "UPDATE threads SET name = ?1 WHERE id = (SELECT thread_id FROM sessions WHERE id = ?2)",
                params![new, session.to_string()],
            )?;
            change.tell(Fact::new(session, author, "renamed", json!({"from": old, "to": new})))
        })
        .await
    }

    /// Takes the thread of this session away, with all its sessions, terminals, runtimes and events.
    pub async fn remove(&self, session: SessionId) -> Result<Removed> {
        self.write(Durability::Power, move |change| {
            let (thread, name): (String, String) = change.query_row(
                "SELECT thread_id, name FROM sessions JOIN threads ON threads.id = thread_id WHERE sessions.id = ?1",
                [session.to_string()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let standing: Option<String> = change
                .query_row(
                    "SELECT status FROM sessions WHERE thread_id = ?1 AND status IN ('queued', 'active', 'paused') UNION ALL
                     SELECT 'still running' FROM runtimes JOIN terminals ON terminals.id = terminal_id WHERE is_live AND thread_id = ?1
                     LIMIT 1",
                    [&thread],
                    |row| row.get(0),
                )
                .optional()?;
            if let Some(standing) = standing {
                return Err(Error::Refused(format!(
                    "cannot remove: session {name} is {standing}; end it first with `sessions-tui kill {name}`"
                )));
            }
            let runtimes = {
                let mut statement = change
                    .sql
                    .prepare("SELECT runtimes.id FROM runtimes JOIN sessions ON sessions.id = session_id WHERE thread_id = ?1")?;
                let ids: Vec<String> = statement.query_map([&thread], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                ids.iter().filter_map(|id| RuntimeId::parse(id)).collect::<Vec<_>>()
            };
            change.execute("DELETE FROM threads WHERE id = ?1", [&thread])?;
            for runtime in &runtimes {
                change.mark_removed(*runtime)?;
            }
            Ok(Removed { runtimes })
        })
        .await
    }

    /// Takes a thread away whose sessions have all been cleaned up; `false` if there is none of that name.
    pub async fn remove_empty(&self, name: String) -> Result<bool> {
        self.write(Durability::Power, move |change| {
            let Some(thread) = thread_id_named(&change.sql, &name)? else { return Ok(false) };
            let gone = change.execute(
                "DELETE FROM threads WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE thread_id = threads.id)",
                [&thread],
            )?;
            Ok(gone > 0)
        })
        .await
    }

    /// Whether there is a thread of this name, also one that would be refused today.
    pub async fn has_thread(&self, name: String) -> Result<bool> {
        self.read(move |connection| Ok(thread_id_named(connection, &name)?.is_some())).await
    }

    pub async fn thread_of(&self, session: SessionId) -> Result<Thread> {
        self.read(move |connection| {
            let row = connection.query_row(
                "SELECT threads.id, name, workspace, user, channel, threads.created_at, threads.task_count FROM threads JOIN sessions ON sessions.thread_id = threads.id WHERE sessions.id = ?1",
                [session.to_string()],
                |row| {
                    Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get::<_, i64>(6)?))
                },
            )?;
            Ok(Thread {
                id: ThreadId::parse(&row.0).ok_or_else(|| broken("thread id", &row.0))?,
                name: row.1,
                workspace: row.2,
                user: row.3,
                channel: row.4,
                created_at: timestamp(row.5),
                task_count: row.6 as u64,
            })
        })
        .await
    }

    pub async fn terminals_of(&self, session: SessionId) -> Result<Vec<Terminal>> {
        self.read(move |connection| {
            let mut statement = connection.prepare(
                "SELECT id, kind, cwd, env_delta, cols, rows, state_version, lease_id FROM terminals
                 WHERE thread_id = (SELECT thread_id FROM sessions WHERE id = ?1) ORDER BY kind",
            )?;
            let mut rows = statement.query([session.to_string()])?;
            let mut terminals = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, kind, lease): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(7)?);
                let env: String = row.get(3)?;
                terminals.push(Terminal {
                    id: TerminalId::parse(&id).ok_or_else(|| broken("terminal id", &id))?,
                    kind: TerminalKind::parse(&kind).ok_or_else(|| broken("terminal kind", &kind))?,
                    cwd: row.get(2)?,
                    env_delta: serde_json::from_str(&env).map_err(|_| broken("environment", &env))?,
                    size: Size { cols: row.get(4)?, rows: row.get(5)? },
                    state_version: row.get::<_, i64>(6)? as u64,
                    lease: LeaseId::parse(&lease).ok_or_else(|| broken("lease id", &lease))?,
                });
            }
            Ok(terminals)
        })
        .await
    }

    pub async fn lease(&self, id: LeaseId) -> Result<Lease> {
        self.read(move |connection| {
            let key = id.to_string();
            let (provider, created_at) = connection
                .query_row("SELECT provider, created_at FROM leases WHERE id = ?1", [&key], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let instance = connection
                .query_row("SELECT id, place, created_at FROM instances WHERE lease_id = ?1 AND gone_at IS NULL", [&key], |row| {
                    Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let instance = match instance {
                Some((text, place, at)) => Some(Instance {
                    id: InstanceId::parse(&text).ok_or_else(|| broken("instance id", &text))?,
                    place,
                    created_at: timestamp(at),
                }),
                None => None,
            };
            Ok(Lease { id, provider, created_at: timestamp(created_at), instance })
        })
        .await
    }

    /// The lease on this machine, with an instance for its present boot; and since when it has been this boot.
    pub async fn local_lease(&self, boot: String) -> Result<(LeaseId, jiff::Timestamp)> {
        self.write(Durability::Power, move |change| {
            let now = micros(jiff::Timestamp::now());
            let found: Option<String> =
                change.query_row("SELECT id FROM leases WHERE provider = 'local'", [], |row| row.get(0)).optional()?;
            let lease = match found {
                Some(text) => LeaseId::parse(&text).ok_or_else(|| broken("lease id", &text))?,
                None => {
                    // its row may have gone missing: terminals still say which one they are on
                    let missing: Option<String> = change
                        .query_row(
                            "SELECT lease_id FROM terminals UNION ALL SELECT lease_id FROM instances WHERE gone_at IS NULL LIMIT 1",
                            [],
                            |row| row.get(0),
                        )
                        .optional()?;
                    let lease = missing.as_deref().and_then(LeaseId::parse).unwrap_or_else(LeaseId::new);
                    change.execute(
                        "INSERT INTO leases (id, provider, created_at) VALUES (?1, 'local', ?2)",
                        params![lease.to_string(), now],
                    )?;
                    lease
                }
            };
            let key = lease.to_string();
            change.execute(
                "UPDATE instances SET gone_at = ?1 WHERE lease_id = ?2 AND gone_at IS NULL AND place <> ?3",
                params![now, key, boot],
            )?;
            change.execute(
                "INSERT INTO instances (id, lease_id, place, created_at) SELECT ?1, ?2, ?3, ?4
                 WHERE NOT EXISTS (SELECT 1 FROM instances WHERE lease_id = ?2 AND gone_at IS NULL)",
                params![InstanceId::new().to_string(), key, boot, now],
            )?;
            let since: i64 =
                change.query_row("SELECT created_at FROM instances WHERE lease_id = ?1 AND gone_at IS NULL", [&key], |row| row.get(0))?;
            Ok((lease, timestamp(since)))
        })
        .await
    }

    /// Puts back what is missing below a session's thread.
    pub async fn mend(&self, session: SessionId) -> Result<()> {
        let is_whole = self
            .read(move |connection| {
                Ok(connection
                    .prepare_cached(
                        "SELECT NOT EXISTS (SELECT 1 FROM runtimes JOIN sessions ON sessions.id = session_id
                            WHERE thread_id = thread AND terminal_id NOT IN (SELECT id FROM terminals))
                         AND NOT EXISTS (SELECT 1 FROM terminals WHERE thread_id = thread AND lease_id NOT IN (SELECT id FROM leases))
                         FROM (SELECT thread_id AS thread FROM sessions WHERE id = ?1)",
                    )?
                    .query_row([session.to_string()], |row| row.get::<_, bool>(0))?)
            })
            .await?;
        if is_whole {
            return Ok(());
        }
        self.write(Durability::Power, move |change| {
            let thread: String =
                change.query_row("SELECT thread_id FROM sessions WHERE id = ?1", [session.to_string()], |row| row.get(0))?;
            change.mend(ThreadId::parse(&thread).ok_or_else(|| broken("thread id", &thread))?)
        })
        .await
    }
}

/// A prefix match without LIKE, whose wildcards a name may contain.
const PREFIX: &str = "substr({}, 1, length(?1)) = ?1";

pub(super) fn find(connection: &Connection, word: &str, matching: NameMatch) -> rusqlite::Result<std::result::Result<Found, Failure>> {
    let not_found = || no_such_session(connection, word, None);
    if word.is_empty() {
        return Ok(Err(Failure::usage("a session's name is needed, not an empty word")));
    }
    let latest = "SELECT id FROM sessions WHERE thread_id = ?1 ORDER BY created_at DESC, id DESC LIMIT 1";
    if let Some(thread) = thread_id_named(connection, word)? {
        let id: Option<String> = connection.prepare_cached(latest)?.query_row([&thread], |row| row.get(0)).optional()?;
        let all_gone = || {
            let word = shared::text::visible(word);
            Failure::new(
                Code::NotFound,
                format!("the sessions of {word} have been cleaned up: `sessions-tui new -n {word}` opens the next, `rm {word}` forgets it"),
            )
        };
        return Ok(id.as_deref().and_then(SessionId::parse).map(|session| Found { session, by_id: false }).ok_or_else(all_gone));
    }
    if let Some(id) = SessionId::parse(word) {
        let exists: bool = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)")?
            .query_row([id.to_string()], |row| row.get(0))?;
        return Ok(if exists { Ok(Found { session: id, by_id: true }) } else { Err(not_found()?) });
    }
    let sql = format!(
        "SELECT name, id FROM threads WHERE {} UNION
         SELECT name || ' (' || sessions.id || ')', sessions.id FROM sessions JOIN threads ON threads.id = thread_id WHERE {} ORDER BY 1 LIMIT ?2",
        PREFIX.replace("{}", "name"),
        PREFIX.replace("{}", "sessions.id"),
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found: Vec<(String, String)> = statement
        .query_map(params![shared::text::composed(word), CANDIDATES as i64 + 1], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    match found.as_slice() {
        [] => Ok(Err(not_found()?)),
        many if matching == NameMatch::Exact => {
            let meant = if let [(name, _)] = many { Some(name.as_str()) } else { None };
            no_such_session(connection, word, meant).map(Err)
        }
        [(_, id)] => {
            // the id of a thread, or of a session
            let session: Option<String> = connection.prepare_cached(latest)?.query_row([id], |row| row.get(0)).optional()?;
            let by_id = session.is_none();
            match SessionId::parse(session.as_deref().unwrap_or(id)) {
                Some(session) => Ok(Ok(Found { session, by_id })),
                None => Ok(Err(not_found()?)),
            }
        }
        many => {
            let mut names: Vec<String> = many.iter().take(CANDIDATES).map(|(name, _)| shared::text::visible(name)).collect();
            if many.len() > CANDIDATES {
                names.push("…".into());
            }
            Ok(Err(Failure::new(
                Code::NotFound,
                format!("{} could be any of {}: type a little more", shared::text::visible(word), names.join(", ")),
            )))
        }
    }
}

/// The id of the thread that has this name: exactly as given, else in composed form, else the only one whose own composed form is
/// the same, for names that versions before the normalisation have stored.
pub(super) fn thread_id_named(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut exact = connection.prepare_cached("SELECT id FROM threads WHERE name = ?1")?;
    let found: Option<String> = exact.query_row([name], |row| row.get(0)).optional()?;
    if found.is_some() || name.is_ascii() {
        return Ok(found);
    }
    let composed = shared::text::composed(name);
    if let Some(id) = exact.query_row([&composed], |row| row.get(0)).optional()? {
        return Ok(Some(id));
    }
    let mut statement = connection.prepare_cached("SELECT id, name FROM threads WHERE name GLOB '*[^ -~]*'")?;
    let mut rows = statement.query([])?;
    let mut twins = Vec::new();
    while let Some(row) = rows.next()? {
        if shared::text::composed(&row.get::<_, String>(1)?) == composed {
            twins.push(row.get(0)?);
        }
    }
    Ok(twins.pop().filter(|_| twins.is_empty()))
}

/// Names beyond these are not compared with a mistyped one.
const COMPARED: usize = 2000;

/// The refusal of a name, with the one that may have been meant: `meant`, or the most similar.
fn no_such_session(connection: &Connection, word: &str, meant: Option<&str>) -> rusqlite::Result<Failure> {
    let shown = shared::text::visible(word);
    let similar = match meant {
        Some(name) => Some(name.to_owned()),
        None => {
            let names: Vec<String> = connection
                .prepare_cached("SELECT name FROM threads ORDER BY created_at DESC LIMIT ?1")?
                .query_map([COMPARED as i64], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            shared::config::nearest(word, names.iter().map(String::as_str)).map(str::to_owned)
        }
    };
    let advice = match similar {
        Some(name) if meant.is_some() => format!("this needs the exact name or id; did you mean {}?", shared::text::visible(&name)),
        Some(name) => format!("did you mean {}?", shared::text::visible(&name)),
        None => "`sessions-tui ls --all` shows what there is".to_owned(),
    };
    Ok(Failure::new(Code::NotFound, format!("there is no session called {shown}: {advice}")))
}

impl Change<'_> {
    /// A terminal or lease whose row is missing is made again, with the id that others know it by.
    pub(super) fn mend(&mut self, thread: ThreadId) -> Result<()> {
        let (key, now) = (thread.to_string(), micros(jiff::Timestamp::now()));
        // as its last launch says; runtimes of interpreters are told apart by their command when there are any
        let lost: Option<(String, String)> = self
            .query_row(
                "SELECT terminal_id, launch FROM runtimes JOIN sessions ON sessions.id = session_id
                 WHERE thread_id = ?1 AND terminal_id NOT IN (SELECT id FROM terminals) ORDER BY runtimes.created_at DESC LIMIT 1",
                [&key],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if let Some((terminal, launch)) = lost {
            let launch: shared::runtime::Launch = super::parse("launch", &launch)?;
            // the instance still says which lease was the local one
            let found: Option<String> = self
                .query_row(
                    "SELECT id FROM leases WHERE provider = 'local' UNION ALL SELECT lease_id FROM instances WHERE gone_at IS NULL LIMIT 1",
                    [],
                    |row| row.get(0),
                )
                .optional()?;
            let lease = found.as_deref().and_then(LeaseId::parse).unwrap_or_else(LeaseId::new);
            self.keep_lease(lease)?;
            self.execute(
                "INSERT INTO terminals (id, thread_id, kind, cwd, env_delta, cols, rows, lease_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (thread_id, kind) DO NOTHING",
                params![
                    terminal,
                    key,
                    TerminalKind::Terminal.as_str(),
                    launch.cwd,
                    super::json(&launch.env_delta)?,
                    launch.size.cols,
                    launch.size.rows,
                    lease.to_string()
                ],
            )?;
        }
        self.execute(
            "INSERT INTO leases (id, provider, created_at) SELECT DISTINCT lease_id, 'local', ?2 FROM terminals
             WHERE thread_id = ?1 AND lease_id NOT IN (SELECT id FROM leases)",
            params![key, now],
        )?;
        Ok(())
    }

    /// The lease on this machine is there, whatever happened to its row.
    pub(super) fn keep_lease(&mut self, lease: LeaseId) -> Result<()> {
        self.sql
            .prepare_cached("INSERT INTO leases (id, provider, created_at) VALUES (?1, 'local', ?2) ON CONFLICT (id) DO NOTHING")?
            .execute(params![lease.to_string(), micros(jiff::Timestamp::now())])?;
        Ok(())
    }

    /// The thread a new session goes to, and its id; made if there is none of that name.
    pub(super) fn thread_named(&mut self, name: &str) -> Result<Option<ThreadId>> {
        let found = thread_id_named(&self.sql, name)?;
        found.map(|text| ThreadId::parse(&text).ok_or_else(|| broken("thread id", &text))).transpose()
    }
}
