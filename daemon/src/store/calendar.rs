//! How much happened when: sessions by day, events by day of the week and hour. Events are counted once, in steps, into sums
//! that a calendar reads.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use shared::filter::Filter;
use shared::live::{Calendar, Day};
use shared::session::Status;

use super::session::conditions;
use super::{Durability, Result, StoreHandle, broken, micros};

/// Microseconds of a quarter of an hour.
const QUARTER: i64 = 15 * 60 * 1_000_000;

/// Events counted in one step; between two, others get their turn.
const STEP: i64 = 20_000;

impl StoreHandle {
    /// The last `days`, today included, in a time zone.
    pub async fn calendar(&self, filter: Filter, days: u32, zone: TimeZone) -> Result<Calendar> {
        self.count_activity().await?;
        let month = Month::until(Timestamp::now().to_zoned(zone.clone()).date(), days, zone);
        self.read(move |connection| calendar(connection, &filter, &month)).await
    }

    /// Counts what has not been counted yet.
    pub async fn count_activity(&self) -> Result<()> {
        loop {
            let is_done = self
                .write_beside(Durability::Process, |change| {
                    let counted: Option<String> =
                        change.query_row("SELECT value FROM remembered WHERE what = 'activity'", [], |row| row.get(0)).optional()?;
                    let counted = counted.map_or(Ok(0), |text| text.parse::<i64>().map_err(|_| broken("count of activity", &text)))?;
                    let last: i64 = change.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?;
                    if counted >= last {
                        return Ok(true);
                    }
                    let until = last.min(counted + STEP);
                    // grouped first: whether its session is there is asked once for each
                    change.execute(
                        "INSERT INTO activity (session_id, quarter, events)
                         SELECT session_id, quarter, told FROM
                            (SELECT session_id, at / ?3 AS quarter, count(*) AS told FROM events WHERE seq > ?1 AND seq <= ?2 GROUP BY 1, 2)
                         WHERE session_id IN (SELECT id FROM sessions)
                         ON CONFLICT (session_id, quarter) DO UPDATE SET events = events + excluded.events",
                        params![counted, until, QUARTER],
                    )?;
                    change.execute(
                        "INSERT INTO remembered (what, value) VALUES ('activity', ?1) ON CONFLICT (what) DO UPDATE SET value = excluded.value",
                        [until.to_string()],
                    )?;
                    Ok(until >= last)
                })
                .await?;
            if is_done {
                return Ok(());
            }
        }
    }
}

/// The days of a calendar, where each begins.
struct Month {
    dates: Vec<Date>,
    starts: Vec<Timestamp>,
    zone: TimeZone,
}

impl Month {
    fn until(today: Date, days: u32, zone: TimeZone) -> Self {
        let mut dates: Vec<Date> = std::iter::successors(Some(today), |date| date.yesterday().ok()).take(days as usize).collect();
        dates.reverse();
        let starts = dates.iter().map(|date| date.to_zoned(zone.clone()).map_or(Timestamp::MIN, |start| start.timestamp())).collect();
        Self { dates, starts, zone }
    }

    fn first(&self) -> i64 {
        self.starts.first().map_or(0, |start| micros(*start))
    }

    /// Where the last day is over.
    fn end(&self) -> i64 {
        let last = self.dates.last().and_then(|date| date.checked_add(1.day()).ok());
        last.and_then(|date| date.to_zoned(self.zone.clone()).ok()).map_or(i64::MAX, |end| micros(end.timestamp()))
    }

    /// Which of the days a moment is on.
    fn day(&self, at: Timestamp) -> Option<usize> {
        self.starts.partition_point(|start| *start <= at).checked_sub(1)
    }

    /// Day of the week, Monday first, and hour.
    fn hour(&self, at: Timestamp) -> (usize, usize) {
        let at = at.to_zoned(self.zone.clone());
        (at.weekday().to_monday_zero_offset() as usize, at.hour() as usize)
    }
}

fn start_of(quarter: i64) -> Timestamp {
    super::timestamp(quarter.saturating_mul(QUARTER))
}

fn calendar(connection: &Connection, filter: &Filter, month: &Month) -> Result<Calendar> {
    let (mut clauses, mut values) = conditions(filter);
    let is_all = clauses == "TRUE";
    if is_all {
        // leads to an index that has the status and the day; a filter has an index of its own
        let all: Vec<String> = Status::ALL.iter().map(|status| format!("'{status}'")).collect();
        clauses = format!("status IN ({})", all.join(", "));
    }
    let filtered = values.len();
    values.extend([Sql::Integer(month.first()), Sql::Integer(month.end())]);
    let (from, until) = (format!("?{}", filtered + 1), format!("?{}", filtered + 2));

    let mut days: Vec<Day> = month.dates.iter().map(|date| Day { date: date.to_string(), by_status: BTreeMap::new() }).collect();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT status, sessions.created_at / {QUARTER}, count(*) FROM sessions
         WHERE {clauses} AND sessions.created_at >= {from} AND sessions.created_at < {until} GROUP BY 1, 2"
    ))?;
    let mut rows = statement.query(params_from_iter(values.iter()))?;
    while let Some(row) = rows.next()? {
        let (status, quarter, count): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let Some(day) = month.day(start_of(quarter)).and_then(|day| days.get_mut(day)) {
            *day.by_status.entry(status).or_default() += count.max(0) as u64;
        }
    }

    let mut hours = vec![vec![0; 24]; 7];
    let whose = if is_all { String::new() } else { format!("AND session_id IN (SELECT id FROM sessions WHERE {clauses})") };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT quarter, sum(events) FROM activity WHERE quarter >= {from} / {QUARTER} AND quarter < {until} / {QUARTER} {whose} GROUP BY quarter"
    ))?;
    let mut rows = statement.query(params_from_iter(values.iter()))?;
    while let Some(row) = rows.next()? {
        let (quarter, events): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (weekday, hour) = month.hour(start_of(quarter));
        if let Some(sum) = hours.get_mut(weekday).and_then(|day| day.get_mut(hour)) {
            *sum += events.max(0) as u64;
        }
    }
    Ok(Calendar { days, hours })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn days_and_hours_are_those_of_the_time_zone() {
        let india = TimeZone::fixed(jiff::tz::Offset::from_seconds(5 * 3600 + 1800).expect("an offset"));
        let month = Month::until(jiff::civil::date(2026, 11, 17), 3, india);
        assert_eq!(month.dates.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2026-11-15", "2026-11-16", "2026-11-17"]);
        for (moment, day, hour) in [
            ("2026-11-14T18:29:59Z", None, (5, 23)),
            ("2026-11-14T18:30:00Z", Some(0), (6, 0)),
            ("2026-11-16T18:15:00Z", Some(1), (0, 23)),
            ("2026-11-16T18:30:00Z", Some(2), (1, 0)),
            ("2026-11-17T12:00:00Z", Some(2), (1, 17)),
        ] {
            assert_eq!((month.day(at(moment)), month.hour(at(moment))), (day, hour), "{moment}");
        }
        assert_eq!(month.end(), micros(at("2026-11-17T18:30:00Z")));
    }

    #[test]
    fn a_day_may_have_twenty_five_hours() {
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").expect("a zone");
        let month = Month::until(jiff::civil::date(2026, 11, 2), 2, zone);
        assert_eq!(month.starts, [at("2026-11-01T04:00:00Z"), at("2026-11-02T05:00:00Z")]);
        assert_eq!(month.day(at("2026-11-02T04:30:00Z")), Some(0));
    }
}
