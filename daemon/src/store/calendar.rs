//! How much happened when: sessions by day, events by day of the week and hour.

use jiff::tz::TimeZone;
use rusqlite::Connection;
use shared::filter::Filter;
use shared::live::{Calendar, Day};

use super::{Result, StoreHandle};

impl StoreHandle {
    /// The last `days`, today included, in a time zone.
    pub async fn calendar(&self, filter: Filter, days: u32, zone: TimeZone) -> Result<Calendar> {
        let now = jiff::Timestamp::now();
        self.read(move |connection| calendar(connection, &filter, days, &now.to_zoned(zone))).await
    }
}

fn calendar(_connection: &Connection, _filter: &Filter, _days: u32, _now: &jiff::Zoned) -> Result<Calendar> {
    Ok(Calendar { days: Vec::<Day>::new(), hours: vec![vec![0; 24]; 7] })
}
