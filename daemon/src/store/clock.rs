//! What the daemon itself remembers: its steady clock, and when it last did what it does once a day.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Change, Durability, Result, StoreHandle, json, micros, parse};
use crate::age::SeenTime;
use crate::clock::{Clock, Kept, Steady, monotonic};

/// The steady clock of this boot: the one an earlier daemon left, or a new one, which is stored.
pub fn steady_clock(connection: &Connection, boot: &str) -> Result<Clock> {
    let kept = kept(connection)?;
    let latest: Steady = connection.query_row(
        "SELECT max(coalesce((SELECT max(max(coalesce(active_since, 0), coalesce(idle_since, 0))) FROM sessions
                WHERE status IN ('queued', 'active', 'paused')), 0),
            coalesce((SELECT max(queued_at) FROM deliveries WHERE state = 'pending'), 0))",
        [],
        |row| row.get(0),
    )?;
    let clock = Clock::settle(kept.as_ref(), boot, latest, micros(jiff::Timestamp::now()), monotonic());
    let now = Kept { boot: boot.to_owned(), offset: clock.offset() };
    if kept.as_ref() != Some(&now) {
        connection.execute(REMEMBER, params!["clock", json(&(now.boot, now.offset))?])?;
    }
    Ok(clock)
}

/// What the last daemon left of it.
pub(super) fn kept(connection: &Connection) -> Result<Option<Kept>> {
    let kept = remembered(connection, "clock")?.map(|text| parse::<(String, i64)>("clock", &text)).transpose()?;
    Ok(kept.map(|(boot, offset)| Kept { boot, offset }))
}

/// Key of `remembered`.
const SEEN: &str = "seen_time";

const REMEMBER: &str = "INSERT INTO remembered (what, value) VALUES (?1, ?2) ON CONFLICT (what) DO UPDATE SET value = ?2";

fn remembered(connection: &Connection, what: &str) -> Result<Option<String>> {
    Ok(connection.query_row("SELECT value FROM remembered WHERE what = ?1", [what], |row| row.get(0)).optional()?)
}

impl StoreHandle {
    /// When something was last done, by the steady clock.
    pub async fn last_done(&self, what: &'static str) -> Result<Option<Steady>> {
        self.read(move |connection| remembered(connection, what)?.map(|text| parse("a time", &text)).transpose()).await
    }

    /// Looks at the clocks and stores that: ages by time that was seen to pass, and by how much the wall clock has jumped ahead
    /// since the last look, if it has.
    pub async fn seen_time(&self) -> Result<(SeenTime, Option<i64>)> {
        self.write_beside(Durability::Process, |change| {
            let boot = kept(&change.sql)?.map(|kept| kept.boot).unwrap_or_default();
            let mut seen = match remembered(&change.sql, SEEN)?.and_then(|text| parse("the time that was seen", &text).ok()) {
                Some(seen) => seen,
                // a database from before: the last thing that happened in it was seen
                None => SeenTime::since(change.query_row("SELECT coalesce(max(updated_at), 0) FROM sessions", [], |row| row.get(0))?),
            };
            let jumped = seen.look(micros(jiff::Timestamp::now()), change.clock.now(), &boot);
            change.remember(SEEN, &json(&seen)?)?;
            Ok((seen, jumped))
        })
        .await
    }

    pub async fn done_now(&self, what: &'static str) -> Result<()> {
        self.write(Durability::Process, move |change| change.remember(what, &change.clock.now().to_string())).await
    }
}

impl Change<'_> {
    pub(super) fn remember(&self, what: &str, value: &str) -> Result<()> {
        self.execute(REMEMBER, params![what, value])?;
        Ok(())
    }
}
