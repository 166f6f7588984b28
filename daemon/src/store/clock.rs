//! What the daemon itself remembers: its steady clock, and when it last did what it does once a day.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Change, Durability, Result, StoreHandle, json, micros, parse};
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

const REMEMBER: &str = "INSERT INTO remembered (what, value) VALUES (?1, ?2) ON CONFLICT (what) DO UPDATE SET value = ?2";

fn remembered(connection: &Connection, what: &str) -> Result<Option<String>> {
    Ok(connection.query_row("SELECT value FROM remembered WHERE what = ?1", [what], |row| row.get(0)).optional()?)
}

impl StoreHandle {
    /// When something was last done, by the steady clock.
    pub async fn last_done(&self, what: &'static str) -> Result<Option<Steady>> {
        self.read(move |connection| remembered(connection, what)?.map(|text| parse("a time", &text)).transpose()).await
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
