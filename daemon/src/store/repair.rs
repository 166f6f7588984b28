//! Repairing a damaged database. Rows that cannot be understood are repaired one value at a time, so that one of them harms
//! nobody else; a damaged file is read row by row into a new one, and a backup fills in what could not be read.
//! Nothing is discarded silently: replaced values are kept in `damaged-rows.jsonl`, a damaged file beside the new one, and
//! everything is reported.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};
use serde::de::IgnoredAny;
use shared::event::Author;
use shared::exec::Language;
use shared::id::SessionId;
use shared::runtime::{Launch, RuntimeState};
use shared::session::Status;

use super::{Result, schema};

/// Keys of `remembered` for sessions with repaired rows: this and the session's id. The value says what was repaired.
pub(super) const DAMAGED: &str = "damaged:";

/// What a column must hold, and what takes the place of a value that is something else.
struct Rule {
    table: &'static str,
    column: &'static str,
    is_sound: fn(&str) -> bool,
    /// An SQL expression over the row.
    instead: &'static str,
}

const fn rule(table: &'static str, column: &'static str, is_sound: fn(&str) -> bool, instead: &'static str) -> Rule {
    Rule { table, column, is_sound, instead }
}

const ANY_LAUNCH: &str = r#"'{"argv":[],"cwd":"/","env_delta":[],"size":{"cols":80,"rows":24}}'"#;
const ANY_STATE: &str =
    r#"CASE WHEN is_live THEN '{"state":"starting"}' ELSE '{"state":"lost","reason":"holder_gone","at":"1970-01-01T00:00:00Z"}' END"#;

/// Columns with more structure than their declared type. What is not listed is checked against that alone.
const RULES: &[Rule] = &[
    rule("sessions", "status", |text| Status::parse(text).is_some(), "'failed'"),
    rule("sessions", "context", json::<IgnoredAny>, "'{}'"),
    rule("sessions", "metadata", json::<IgnoredAny>, "'{}'"),
    rule("sessions", "policy", json::<shared::policy::Policy>, "'{}'"),
    rule("sessions", "queued_launch", json::<super::QueuedLaunch>, "NULL"),
    rule("runtimes", "launch", json::<Launch>, ANY_LAUNCH),
    rule("runtimes", "state", json::<RuntimeState>, ANY_STATE),
    rule("runtimes", "agent", json::<shared::agent::Conversation>, "NULL"),
    rule("runtimes", "hook", json::<IgnoredAny>, "NULL"),
    rule("terminals", "kind", |text| text == "terminal" || Language::parse(text).is_some(), "'terminal'"),
    rule("terminals", "env_delta", json::<Vec<(String, String)>>, "'[]'"),
    rule("terminals", "env_removed", json::<Vec<String>>, "'[]'"),
    rule("terminals", "imports", json::<Vec<IgnoredAny>>, "'[]'"),
    rule("terminals", "names", json::<Vec<IgnoredAny>>, "'[]'"),
    rule("events", "author", |text| Author::parse(text).is_some(), "'daemon'"),
    rule("events", "data", json::<IgnoredAny>, "'{}'"),
    rule("execs", "language", |text| Language::parse(text).is_some(), "'bash'"),
    rule("execs", "author", |text| Author::parse(text).is_some(), "'daemon'"),
    rule("execs", "stage", |text| matches!(text, "open" | "finished" | "lost" | "cancelled"), "'lost'"),
    rule("execs", "outcome", json::<IgnoredAny>, "NULL"),
];

fn json<T: serde::de::DeserializeOwned>(text: &str) -> bool {
    serde_json::from_str::<T>(text).is_ok()
}

/// Whether this column has an id that was made by us.
fn is_generated(table: &str, column: &str) -> bool {
    let has_id = matches!(table, "sessions" | "threads" | "terminals" | "runtimes" | "leases" | "instances" | "execs");
    has_id && (column == "id" || (table, column) == ("sessions", "thread_id"))
}

/// All ids have the same form.
fn is_id(text: &str) -> bool {
    SessionId::parse(text).is_some()
}

struct Column {
    name: String,
    kind: String,
    is_key: bool,
    may_be_null: bool,
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let mut statement = connection.prepare(&format!("PRAGMA table_info({table})"))?;
    let columns = statement.query_map([], |row| {
        let (is_key, not_null): (i64, i64) = (row.get(5)?, row.get(3)?);
        Ok(Column { name: row.get(1)?, kind: row.get(2)?, is_key: is_key > 0, may_be_null: not_null == 0 && is_key == 0 })
    })?;
    columns.collect()
}

/// A value that is to take the place of another.
enum Instead {
    Value(Value),
    Sql(&'static str),
}

/// What must replace this value, if it cannot stay.
fn replacement(table: &str, column: &Column, value: ValueRef<'_>) -> Option<Instead> {
    if is_generated(table, &column.name) && !value.as_str().is_ok_and(is_id) {
        // what referred to it is found without it, and handled as an orphan
        return Some(Instead::Value(Value::Text(SessionId::new().to_string())));
    }
    let empty = || Instead::Value(if column.kind == "TEXT" { Value::Text(String::new()) } else { Value::Integer(0) });
    match (column.kind.as_str(), value) {
        (_, ValueRef::Null) => (!column.may_be_null).then(empty),
        ("TEXT", ValueRef::Text(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => {
                let rule = RULES.iter().find(|rule| rule.table == table && rule.column == column.name)?;
                (!(rule.is_sound)(text)).then_some(Instead::Sql(rule.instead)).filter(|_| !column.is_key)
            }
            // a name that is not UTF-8 any more is still most of a name
            Err(_) => match RULES.iter().find(|rule| rule.table == table && rule.column == column.name && !column.is_key) {
                Some(rule) => Some(Instead::Sql(rule.instead)),
                None => Some(Instead::Value(Value::Text(String::from_utf8_lossy(bytes).into_owned()))),
            },
        },
        ("INTEGER", ValueRef::Integer(_)) | ("REAL", ValueRef::Real(_) | ValueRef::Integer(_)) => None,
        _ => Some(empty()),
    }
}

/// Repairs every row that cannot be understood. Gives a sentence for each.
pub(super) fn repair_rows(connection: &mut Connection, path: &Path) -> Result<Vec<String>> {
    let mut repaired = Vec::new();
    connection.pragma_update(None, "ignore_check_constraints", true)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    let transaction = connection.transaction()?;
    for table in tables(&transaction)? {
        repair_table(&transaction, &table, path, &mut repaired)?;
    }
    repaired.extend(mend_ids(&transaction)?);
    repaired.extend(repair_references(&transaction)?);
    transaction.commit()?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "ignore_check_constraints", false)?;
    Ok(repaired)
}

fn repair_table(connection: &Connection, table: &str, path: &Path, repaired: &mut Vec<String>) -> Result<()> {
    let columns = columns(connection, table)?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let keys: Vec<usize> = (0..columns.len()).filter(|n| columns[*n].is_key).collect();
    let session = match table {
        "sessions" => "id",
        _ if names.contains(&"session_id") => "session_id",
        "threads" => "(SELECT id FROM sessions WHERE thread_id = threads.id ORDER BY created_at DESC LIMIT 1)",
        _ if names.contains(&"thread_id") => {
            "(SELECT id FROM sessions AS s WHERE s.thread_id = terminals.thread_id ORDER BY created_at DESC LIMIT 1)"
        }
        _ => "NULL",
    };
    let mut statement = connection.prepare(&format!("SELECT {}, {session} FROM {table}", names.join(", ")))?;
    let mut rows = statement.query([])?;
    let mut fixes = Vec::new();
    while let Some(row) = rows.next()? {
        let mut wrong = Vec::new();
        for (n, column) in columns.iter().enumerate() {
            if let Some(instead) = replacement(table, column, row.get_ref(n)?) {
                wrong.push((n, instead, raw(row.get_ref(n)?)));
            }
        }
        if !wrong.is_empty() {
            let key: Vec<Value> = keys.iter().map(|n| row.get_ref(*n).map(raw)).collect::<rusqlite::Result<_>>()?;
            let session = row.get_ref(columns.len())?.as_str().ok().map(str::to_owned);
            fixes.push((key, wrong, session));
        }
    }
    drop(rows);
    for (key, wrong, session) in fixes {
        let mut values: Vec<Value> = Vec::new();
        let mut sets = Vec::new();
        let mut said = Vec::new();
        for (n, instead, was) in wrong {
            keep_value(path, table, &key, names[n], &was);
            said.push(names[n]);
            match instead {
                Instead::Sql(sql) => sets.push(format!("{} = {sql}", names[n])),
                Instead::Value(value) => {
                    values.push(value);
                    sets.push(format!("{} = ?{}", names[n], values.len()));
                }
            }
        }
        let conditions: Vec<String> = keys.iter().enumerate().map(|(k, n)| format!("{} = ?{}", names[*n], values.len() + k + 1)).collect();
        values.extend(key);
        let sql = format!("UPDATE OR REPLACE {table} SET {} WHERE {}", sets.join(", "), conditions.join(" AND "));
        connection.execute(&sql, params_from_iter(values.iter().map(bound)))?;
        let sentence = format!("{} of {table} could not be read", said.join(", "));
        if let Some(session) = session {
            connection.execute(
                "INSERT INTO remembered VALUES (?1, ?2) ON CONFLICT (what) DO UPDATE SET value = excluded.value",
                [format!("{DAMAGED}{session}"), sentence.clone()],
            )?;
            repaired.push(format!("session {session}: {sentence}"));
        } else {
            repaired.push(sentence);
        }
    }
    Ok(())
}

/// A text that may not be UTF-8, as it is in the row. Kept as a blob; `bound` makes a text of it again.
fn raw(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

fn bound(value: &Value) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        Value::Blob(bytes) => ValueRef::Text(bytes),
        other => ValueRef::from(other),
    })
}

/// Which ids are referred to, and where.
const REFERENCES: &[(&str, &str, &str)] = &[
    ("threads", "sessions", "thread_id"),
    ("threads", "terminals", "thread_id"),
    ("sessions", "runtimes", "session_id"),
    ("sessions", "events", "session_id"),
    ("terminals", "runtimes", "terminal_id"),
    ("leases", "terminals", "lease_id"),
    ("runtimes", "commands", "runtime_id"),
];

/// An id in which one character changed, in the row itself or in one that refers to it, is set right by the other.
fn mend_ids(connection: &Connection) -> Result<Vec<String>> {
    let ids = |sql: &str| -> Result<Vec<String>> {
        let mut statement = connection.prepare(sql)?;
        let found = statement.query_map([], |row| row.get::<_, String>(0))?;
        Ok(found.filter_map(rusqlite::Result::ok).collect())
    };
    let mut repaired = Vec::new();
    for (parent, child, column) in REFERENCES {
        for orphan in ids(&format!("SELECT DISTINCT {column} FROM {child} WHERE {column} NOT IN (SELECT id FROM {parent})"))? {
            let near: Vec<String> = ids(&format!("SELECT id FROM {parent}"))?.into_iter().filter(|id| differ_by_one(id, &orphan)).collect();
            let [near] = &near[..] else { continue };
            let is_used: bool =
                connection.query_row(&format!("SELECT EXISTS (SELECT 1 FROM {child} WHERE {column} = ?1)"), [near], |row| row.get(0))?;
            if is_used || *parent == "leases" {
                connection.execute(&format!("UPDATE OR IGNORE {child} SET {column} = ?1 WHERE {column} = ?2"), [near, &orphan])?;
                repaired.push(format!("{column} of {child}: {orphan} is {near}"));
            } else {
                connection.execute(&format!("UPDATE OR IGNORE {parent} SET id = ?1 WHERE id = ?2"), [&orphan, near])?;
                repaired.push(format!("id of {parent}: {near} is {orphan}"));
            }
        }
    }
    Ok(repaired)
}

fn differ_by_one(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count() == 1
}

/// Sessions whose thread is not there get one again.
fn repair_references(connection: &Connection) -> Result<Vec<String>> {
    let mut repaired = Vec::new();
    let lost: Vec<String> = connection
        .prepare("SELECT DISTINCT thread_id FROM sessions WHERE thread_id NOT IN (SELECT id FROM threads)")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for thread in lost {
        let name = format!("recovered-{}", &thread[..thread.len().min(8)]);
        let workspace = std::env::var("HOME").unwrap_or_else(|_| "/".to_owned());
        connection.execute(
            "INSERT OR IGNORE INTO threads (id, name, workspace, created_at) VALUES (?1, ?2, ?3, 0)",
            [&thread, &name, &workspace],
        )?;
        repaired.push(format!("thread {name}: its name and workspace were lost"));
    }
    Ok(repaired)
}

/// What goes with its session or webhook. Missing terminals and leases are not here: they are made again (`store/thread.rs`).
const BELONGING: &[(&str, &str, &str)] = &[
    ("runtimes", "session_id", "sessions"),
    ("events", "session_id", "sessions"),
    ("execs", "session_id", "sessions"),
    ("activity", "session_id", "sessions"),
    ("commands", "session_id", "sessions"),
    ("commands", "runtime_id", "runtimes"),
    ("changed_files", "session_id", "sessions"),
    ("deliveries", "webhook_id", "webhooks"),
];

/// After a recovery: removes rows whose session could not be read.
fn remove_orphans(connection: &Connection) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    for (table, column, parent) in BELONGING {
        let count = connection.execute(&format!("DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM {parent})"), [])?;
        if count > 0 {
            removed.push(format!("{count} rows of {table} belonged to {parent} that could not be read"));
        }
    }
    Ok(removed)
}

/// Keeps a value that is replaced, in a file beside the database.
fn keep_value(path: &Path, table: &str, key: &[Value], column: &str, was: &Value) {
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("base64:{}", base64::engine::general_purpose::STANDARD.encode(bytes)),
        other => format!("{other:?}"),
    };
    let key: Vec<String> = key.iter().map(text).collect();
    let line = serde_json::json!({
        "found_at": jiff::Timestamp::now(), "table": table, "key": key, "column": column, "value": text(was)
    });
    let file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path.with_file_name("damaged-rows.jsonl"));
    let _ = file.and_then(|mut file| writeln!(file, "{line}"));
}

/// The copy of a sound database that damage is filled in from.
pub fn backup_path(path: &Path) -> PathBuf {
    path.with_extension("backup.db")
}

/// Makes that copy, or makes it anew. Blocks, in a connection of its own.
pub fn back_up(path: &Path) -> Result<()> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    let unfinished = path.with_extension("backup.db-new");
    let _ = std::fs::remove_file(&unfinished);
    // a copy that nobody else may read, also while it is made
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
    let copied = made.map_err(|error| super::Error::Broken(error.to_string())).and_then(|_| {
        connection.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])?;
        // standard input of execs is removed from the database when they are over: it must not live on in a copy
        let copy = Connection::open(&unfinished)?;
        copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA secure_delete = ON; UPDATE execs SET stdin = NULL WHERE stdin IS NOT NULL")?;
        drop(copy);
        std::fs::rename(&unfinished, backup_path(path)).map_err(|error| super::Error::Broken(error.to_string()))
    });
    if copied.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    copied
}

/// Removes it: something was removed from the database that must not come back.
pub fn drop_backup(path: &Path) {
    let _ = std::fs::remove_file(backup_path(path));
}

/// Reads what can be read of a damaged database into `connection`, an empty one with the same tables, and fills in from the
/// backup what could not. Says what was found.
pub(super) fn salvage(connection: &mut Connection, damaged: &Path, backup: &Path) -> Result<String> {
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "ignore_check_constraints", true)?;
    let count = |connection: &Connection, table: &str| -> Result<i64> {
        Ok(connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?)
    };
    let mut sources = Vec::new();
    for source in [damaged, backup] {
        if source.exists()
            && let Ok(source) = Connection::open_with_flags(source, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        {
            sources.push(source);
        } else {
            sources.push(Connection::open_in_memory()?);
        }
    }
    let transaction = connection.transaction()?;
    let (mut read, mut filled_in) = (Vec::new(), Vec::new());
    for table in tables(&transaction)? {
        let columns = columns(&transaction, &table)?;
        for (source, found) in sources.iter().zip([&mut read, &mut filled_in]) {
            let before = count(&transaction, &table)?;
            copy_rows(source, &transaction, &table, &columns);
            let copied = count(&transaction, &table)? - before;
            if copied > 0 {
                found.push(format!("{copied} {table}"));
            }
        }
    }
    let removed = remove_orphans(&transaction)?;
    transaction.commit()?;
    connection.pragma_update(None, "ignore_check_constraints", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let list = |found: &[String]| if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    let report = format!("read from it: {}; filled in from the last backup: {}", list(&read), list(&filled_in));
    Ok([vec![report], removed].concat().join("; "))
}

/// Copies the rows that can be read: from the front, then from the back, since damage in one place hides what is behind it.
fn copy_rows(source: &Connection, target: &Connection, table: &str, columns: &[Column]) {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let keys: Vec<&str> = columns.iter().filter(|column| column.is_key).map(|column| column.name.as_str()).collect();
    let marks: Vec<String> = (1..=names.len()).map(|n| format!("?{n}")).collect();
    let insert = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({})", names.join(", "), marks.join(", "));
    for order in ["ASC", "DESC"] {
        let order: Vec<String> = keys.iter().map(|key| format!("{key} {order}")).collect();
        let select = format!("SELECT {} FROM {table} ORDER BY {}", names.join(", "), order.join(", "));
        let Ok(mut statement) = source.prepare(&select) else { return };
        let Ok(mut rows) = statement.query([]) else { continue };
        let is_whole = loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let values: rusqlite::Result<Vec<Value>> = (0..names.len()).map(|n| row.get_ref(n).map(raw)).collect();
                    if let Ok(values) = values {
                        // a key that is no key is no row
                        let _ = target.execute(&insert, params_from_iter(values.iter().map(bound)));
                    }
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if is_whole {
            return;
        }
    }
}

/// Sessions with repaired rows, and what was repaired.
pub(super) fn damaged(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT name, remembered.value FROM remembered JOIN sessions ON what = ?1 || sessions.id JOIN threads ON threads.id = thread_id",
    )?;
    let found = statement.query_map([DAMAGED], |row| Ok(format!("{}: {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// An empty database with the tables of this version.
pub(super) fn empty(path: &Path) -> Result<Connection> {
    let mut connection = super::open::connect(path)?;
    schema::migrate(&mut connection, |_, _| Ok(()))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use rusqlite::params;
    use shared::filter::Filter;
    use shared::id::{RuntimeId, ThreadId};
    use shared::session::Session;

    use super::super::open::open;
    use super::super::session::list;
    use super::*;

    const SESSIONS: i64 = 12;

    /// A database with some sessions, and its backup.
    fn example(path: &Path) -> Vec<Session> {
        let connection = open(path).expect("creates").connection;
        let lease = SessionId::new().to_string();
        connection.execute("INSERT INTO leases (id, provider, created_at) VALUES (?1, 'local', 0)", [&lease]).expect("stores");
        for n in 0..SESSIONS {
            let (thread, session, terminal, runtime) =
                (ThreadId::new().to_string(), SessionId::new().to_string(), SessionId::new().to_string(), RuntimeId::new().to_string());
            let sql = |sql: &str, values: &[&dyn rusqlite::ToSql]| connection.execute(sql, values).expect("stores");
            sql(
                "INSERT INTO threads (id, name, workspace, created_at) VALUES (?1, ?2, '/tmp', ?3)",
                params![thread, format!("thread{n}"), n],
            );
            sql(
                "INSERT INTO sessions (id, thread_id, task, status, created_at, updated_at, last_activity_at, ended_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5, ?6)",
                params![
                    session,
                    thread,
                    format!("task number {n}"),
                    if n % 2 == 0 { "active" } else { "completed" },
                    n,
                    (n % 2 == 1).then_some(n)
                ],
            );
            sql(
                "INSERT INTO terminals (id, thread_id, kind, cwd, cols, rows, lease_id) VALUES (?1, ?2, 'terminal', '/tmp', 80, 24, ?3)",
                params![terminal, thread, lease],
            );
            sql(
                &format!(
                    "INSERT INTO runtimes (id, terminal_id, session_id, launch, is_live, state, created_at) VALUES (?1, ?2, ?3, {ANY_LAUNCH}, ?4, '{{\"state\":\"starting\"}}', ?5)"
                ),
                params![runtime, terminal, session, n % 2 == 0, n],
            );
            for m in 0..40i64 {
                let data = format!("{{\"text\":\"{}\"}}", "x".repeat(m as usize * 3));
                sql(
                    "INSERT INTO events (session_id, at, author, type, data, n) VALUES (?1, ?2, 'api', 'custom', ?3, ?2)",
                    params![session, m, data],
                );
            }
        }
        let sessions = all(&connection);
        assert_eq!(sessions.len() as i64, SESSIONS);
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
        drop(connection);
        back_up(path).expect("copies");
        sessions
    }

    fn all(connection: &Connection) -> Vec<Session> {
        let filter = Filter { statuses: vec![Status::Active, Status::Completed, Status::Failed], ..Filter::default() };
        list(connection, &filter).expect("lists")
    }

    /// How many sessions are not as they were.
    fn changed(before: &[Session], after: &[Session]) -> usize {
        before.iter().filter(|session| !after.contains(session)).count()
    }

    #[test]
    fn a_damaged_value_in_any_column_harms_its_own_session_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let good = dir.path().join("good.db");
        let before = example(&good);
        let path = dir.path().join("sessions.db");
        let columns_of: Vec<(String, Vec<Column>)> = {
            let connection = open(&good).expect("opens").connection;
            let tables = tables(&connection).expect("has tables");
            tables.into_iter().map(|table| (table.clone(), columns(&connection, &table).expect("has columns"))).collect()
        };
        for (table, columns) in columns_of {
            for column in columns.iter().filter(|column| column.kind == "TEXT") {
                for bad in ["x'ff fe 41'", "x'7b'", "x''"] {
                    let bad = bad.replace(' ', "");
                    std::fs::copy(&good, &path).expect("copies");
                    for suffix in ["-wal", "-shm"] {
                        let _ = std::fs::remove_file(dir.path().join(format!("sessions.db{suffix}")));
                    }
                    let connection = Connection::open(&path).expect("opens");
                    connection.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF").expect("sets");
                    let (name, key) = (&column.name, columns.iter().find(|column| column.is_key).map_or("rowid", |key| key.name.as_str()));
                    let sql =
                        format!("UPDATE OR IGNORE {table} SET {name} = CAST({bad} AS TEXT) WHERE {key} = (SELECT min({key}) FROM {table})");
                    connection.execute(&sql, []).unwrap_or_else(|error| panic!("{table}.{name}: {error}"));
                    drop(connection);
                    let opened = open(&path).unwrap_or_else(|error| panic!("{table}.{name} = {bad}: {error}"));
                    let after = all(&opened.connection);
                    // a lease belongs to all of them
                    let most = if table == "leases" { SESSIONS as usize } else { 1 };
                    assert!(changed(&before, &after) <= most, "{table}.{name} = {bad}: {:?}", opened.repaired);
                    assert!(diagnose_is_clean(&opened.connection), "{table}.{name} = {bad}");
                    drop(opened);
                    assert!(open(&path).expect("opens again").repaired.is_empty(), "{table}.{name} = {bad}: repaired twice");
                }
            }
        }
    }

    fn diagnose_is_clean(connection: &Connection) -> bool {
        let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).expect("checks");
        verdict == "ok"
    }

    /// Flips by `SESSIONS_STRESS_ROUNDS` times 100.
    #[test]
    fn a_flipped_byte_in_any_page_harms_one_session_at_most() {
        let rounds: usize = std::env::var("SESSIONS_STRESS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
        let dir = tempfile::tempdir().expect("a directory");
        let good = dir.path().join("good.db");
        let before = example(&good);
        let whole = std::fs::read(&good).expect("reads");
        let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for n in 0..rounds * 100 {
            let mut at = next() as usize % whole.len();
            if n % 4 == 0 {
                // page headers and the schema are where one byte does most
                at = (n / 4 * 4096 + next() as usize % 64) % whole.len();
            }
            // a version that is a little higher cannot be told from a newer database
            if (60..64).contains(&at) {
                continue;
            }
            let mut bad = whole.clone();
            bad[at] ^= 1 << (next() % 8);
            let path = dir.path().join(format!("{n}.db"));
            std::fs::write(&path, &bad).expect("writes");
            std::fs::copy(backup_path(&good), backup_path(&path)).expect("copies");
            let opened = open(&path).unwrap_or_else(|error| panic!("byte {at}: {error}"));
            let after = all(&opened.connection);
            assert!(changed(&before, &after) <= 1, "byte {at}: {} of {SESSIONS} changed; {:?}", changed(&before, &after), opened.repaired);
            assert!(diagnose_is_clean(&opened.connection), "byte {at}");
        }
    }
}
