//! Numbered migrations: only ever added, each applied once, in one transaction, after a backup.

use rusqlite::Connection;

use super::{Error, Result};

/// `user_version` of the database counts how many have been applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_words.sql"),
    include_str!("../../migrations/0002_records.sql"),
    include_str!("../../migrations/0003_execs.sql"),
    include_str!("../../migrations/0004_attention.sql"),
    include_str!("../../migrations/0005_pause.sql"),
    include_str!("../../migrations/0006_agents.sql"),
    include_str!("../../migrations/0007_watch.sql"),
    include_str!("../../migrations/0008_ended.sql"),
    include_str!("../../migrations/0009_number.sql"),
];

pub(super) fn known_version() -> i64 {
    MIGRATIONS.len() as i64
}

pub(super) fn version(connection: &Connection) -> Result<i64> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Brings the database to the version this program knows. `backup` is called before the first change to a database that has one.
pub(super) fn migrate(connection: &mut Connection, backup: impl FnOnce(&Connection, i64) -> Result<()>) -> Result<()> {
    let found = version(connection)?;
    let known = known_version();
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    if found > 0 {
        backup(connection, found)?;
    }
    for (number, sql) in (1i64..).zip(MIGRATIONS).skip(found as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_database_gets_every_migration_once() {
        let mut connection = Connection::open_in_memory().expect("opens");
        migrate(&mut connection, |_, _| panic!("nothing to back up")).expect("migrates");
        assert_eq!(version(&connection).expect("reads"), known_version());
        migrate(&mut connection, |_, _| panic!("nothing to do")).expect("migrates again");
    }

    #[test]
    fn a_newer_database_is_refused() {
        let mut connection = Connection::open_in_memory().expect("opens");
        connection.pragma_update(None, "user_version", 99).expect("sets");
        let error = migrate(&mut connection, |_, _| Ok(())).expect_err("newer");
        assert!(matches!(error, Error::Newer { found: 99, .. }), "{error}");
    }
}
