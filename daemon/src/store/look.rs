//! A look at the database from outside, for `doctor`: reads, changes nothing, and works without a daemon.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use shared::doctor::Database;

use super::open::{damage, is_damage};
use super::{Error, Result, clock, repair, schema};

pub fn look(path: &Path) -> Database {
    if !path.exists() {
        return Database::Absent;
    }
    match try_look(path) {
        Ok(found) => found,
        Err(Error::Newer { found, known }) => Database::Newer { found, known },
        Err(error) if is_damage(&error) => Database::Damaged(error.to_string()),
        Err(error) => Database::Unreadable(error.to_string()),
    }
}

/// Says in advance what a daemon of this version would say of a database of a later one; whatever else is wrong is not asked here.
pub fn refuse_newer(path: &Path) -> Result<()> {
    match open(path) {
        Err(error @ Error::Newer { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// With its version and the one that is known here.
fn open(path: &Path) -> Result<(Connection, i64, i64)> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    let (version, known) = (schema::version(&connection)?, schema::known_version());
    if version > known {
        return Err(Error::Newer { found: version, known });
    }
    Ok((connection, version, known))
}

fn try_look(path: &Path) -> Result<Database> {
    let (connection, version, known) = open(path)?;
    if let Some(damage) = damage(&connection)? {
        return Ok(Database::Damaged(damage));
    }
    // one that was only just made, or is of the very first days
    if version < 2 {
        return Ok(Database::Sound { version, known, runtimes: Vec::new(), clock: None, gaps: Vec::new(), damaged: Vec::new() });
    }
    let mut statement = connection.prepare("SELECT id, is_live FROM runtimes")?;
    let runtimes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let clock = clock::kept(&connection)?.map(|kept| (kept.boot, kept.offset));
    Ok(Database::Sound { version, known, runtimes, clock, gaps: gaps(&connection)?, damaged: repair::damaged(&connection)? })
}

/// Sessions whose recordings were found to have gaps.
fn gaps(connection: &Connection) -> Result<Vec<(String, u64)>> {
    let mut statement = connection.prepare(
        "SELECT name, sum(data ->> '$.bytes') FROM events JOIN sessions ON sessions.id = session_id JOIN threads ON threads.id = thread_id
         WHERE type = 'recording_gap' GROUP BY sessions.id ORDER BY max(seq) DESC",
    )?;
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, f64>(1)? as u64)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
