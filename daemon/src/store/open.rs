//! Opening the database file: permissions, integrity, a newer version, a damaged one.
//! Nothing is ever deleted here: damaged rows are repaired one by one, a damaged file is kept and read into a new one.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{Error, Result, repair, schema};

pub struct Opened {
    pub connection: Connection,
    /// What was wrong and what became of it, in sentences for the user.
    pub repaired: Vec<String>,
}

/// Opens or creates the database. A newer one is refused untouched; a damaged one is repaired.
pub fn open(path: &Path) -> Result<Opened> {
    let (mut connection, mut repaired) = match try_open(path) {
        Ok(opened) => opened,
        Err(error) if is_damage(&error) => {
            let aside = set_aside(path).map_err(|io| Error::Broken(format!("it is damaged ({error}) and could not be set aside: {io}")))?;
            let mut connection = repair::empty(path)?;
            let found = repair::salvage(&mut connection, &aside, &repair::backup_path(path))?;
            let kept = format!(
                "the database was damaged ({error}) and was recovered into a new file; {found}; the damaged one is {}",
                aside.display()
            );
            (connection, vec![kept])
        }
        Err(error) => return Err(error),
    };
    if !is_large(path) || !repaired.is_empty() {
        repaired.extend(repair::repair_rows(&mut connection, path)?);
    }
    Ok(Opened { connection, repaired })
}

/// As many as the calls that are made again and again need together; some kilobytes each.
const READY_STATEMENTS: usize = 64;

/// A version above this was never given to a database: the header is damaged.
const ABSURD_VERSION: i64 = 10_000;

fn try_open(path: &Path) -> Result<(Connection, Vec<String>)> {
    if path.exists() {
        // read-only first: a newer database must stay byte for byte as it is
        let peek = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        let found = schema::version(&peek)?;
        let known = schema::known_version();
        if !(0..ABSURD_VERSION).contains(&found) {
            return Err(Error::Broken(format!("its version is {found}")));
        }
        if found > known {
            return Err(Error::Newer { found, known });
        }
    }
    let mut connection = connect(path)?;
    let mut repaired = Vec::new();
    if !is_large(path) {
        let found = diagnose(&connection)?;
        if found.iter().any(|complaint| is_about_index(complaint)) && !found.iter().any(|complaint| is_about_file(complaint)) {
            connection.execute_batch("REINDEX")?;
            repaired.push("indexes of the database were damaged and were rebuilt".to_owned());
        }
        let left = diagnose(&connection)?;
        if let Some(damage) = left.into_iter().find(|complaint| !is_about_row(complaint)) {
            return Err(Error::Broken(damage));
        }
    }
    schema::migrate(&mut connection, |connection, found| {
        let backup = path.with_extension(format!("v{found}.backup.db"));
        connection.execute("VACUUM INTO ?1", [backup.to_string_lossy()])?;
        Ok(())
    })?;
    Ok((connection, repaired))
}

/// A connection with our settings; nothing is read yet.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    // SQLite gives its side files the mode of the database
    let _ = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    // one thread uses it: no locks inside
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.set_prepared_statement_cache_capacity(READY_STATEMENTS);
    // plans that do not look at values: otherwise partial indexes make SQLite plan the same statement anew for every value
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA foreign_keys = ON;
         PRAGMA trusted_schema = OFF;
         PRAGMA secure_delete = ON;
         PRAGMA cell_size_check = ON;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 4194304;
         PRAGMA cache_size = -1024;
         PRAGMA temp_store = MEMORY;",
    )?;
    Ok(connection)
}

/// Complaints told at most: after that many the file is read row by row anyway.
const MAX_COMPLAINTS: usize = 500;

/// What `SQLite` finds wrong with the file.
fn diagnose(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MAX_COMPLAINTS})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(found.into_iter().filter(|complaint| complaint != "ok").collect())
}

/// A value that its table does not allow: that row alone is repaired.
fn is_about_row(complaint: &str) -> bool {
    complaint.starts_with("CHECK constraint failed") || complaint.contains(" value in ")
}

/// An index that does not agree with its table, which is the truth.
fn is_about_index(complaint: &str) -> bool {
    complaint.contains("missing from index") || complaint.contains("entries in index") || complaint.contains("non-unique entry in index")
}

fn is_about_file(complaint: &str) -> bool {
    !is_about_row(complaint) && !is_about_index(complaint)
}

/// Reading all of a large database would keep everybody waiting at every start: it is looked through later, beside the work.
const LARGE_BYTES: u64 = 4 << 20;

fn is_large(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.len() > LARGE_BYTES)
}

pub(super) fn damage(connection: &Connection) -> Result<Option<String>> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((verdict != "ok").then(|| format!("quick_check says {verdict}")))
}

/// Looks through a database that was too large for that when it was opened; gives what is wrong with it. Blocks.
pub fn check_large(path: &Path) -> Option<String> {
    if !is_large(path) {
        return None;
    }
    let looked = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(Error::from)
        .and_then(|connection| damage(&connection));
    match looked {
        Ok(damage) => damage,
        Err(error) if is_damage(&error) => Some(error.to_string()),
        // not being able to look says nothing about it
        Err(_) => None,
    }
}

pub(super) fn is_damage(error: &Error) -> bool {
    match error {
        Error::Sqlite(sqlite) => {
            // Unknown is what a damaged schema looks like: a column or a table that should be there is not
            matches!(
                sqlite.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::Unknown)
            ) || matches!(
                sqlite,
                rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::Utf8Error(..)
            )
        }
        Error::Broken(_) => true,
        _ => false,
    }
}

/// Renames the file and its log out of the way.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut aside = path.with_extension(format!("damaged-{stamp}.db"));
    for n in 2.. {
        if !aside.exists() {
            break;
        }
        aside = path.with_extension(format!("damaged-{stamp}-{n}.db"));
    }
    for suffix in ["", "-wal", "-shm"] {
        let from = with_suffix(path, suffix);
        if from.exists() {
            std::fs::rename(&from, with_suffix(&aside, suffix))?;
        }
    }
    Ok(aside)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_9_a_newer_database_is_refused_untouched() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("sessions.db");
        drop(open(&path).expect("creates"));
        let connection = Connection::open(&path).expect("opens");
        connection.pragma_update(None, "user_version", 99).expect("sets");
        drop(connection);
        let before = std::fs::read(&path).expect("reads");
        assert!(matches!(open(&path), Err(Error::Newer { found: 99, .. })));
        assert_eq!(std::fs::read(&path).expect("reads"), before);
    }

    #[test]
    fn a_damaged_database_is_set_aside_and_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("sessions.db");
        let noise: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        std::fs::write(&path, &noise).expect("writes");
        let opened = open(&path).expect("starts anew");
        let [said] = &opened.repaired[..] else { panic!("{:?}", opened.repaired) };
        let aside = said.rsplit(' ').next().expect("a path");
        assert_eq!(std::fs::read(aside).expect("kept"), noise);
    }

    #[test]
    fn damage_in_any_page_never_stops_the_start() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("sessions.db");
        drop(open(&path).expect("creates"));
        let good = std::fs::read(&path).expect("reads");
        for page in 0..good.len() / 4096 {
            let mut bad = good.clone();
            bad[page * 4096..(page + 1) * 4096].fill(0xa5);
            let path = dir.path().join(format!("page-{page}.db"));
            std::fs::write(&path, &bad).expect("writes");
            open(&path).unwrap_or_else(|error| panic!("page {page}: {error}"));
        }
    }
}
