//! Statistics over any filter: sums that read one index, not the rows.

use rusqlite::{Connection, params_from_iter};
use shared::filter::Filter;
use shared::id::RuntimeId;
use shared::stats::{Stats, Tokens};

use super::session::conditions;
use super::{Result, StoreHandle};

impl StoreHandle {
    /// `recorded_bytes` counts runtimes that are over; those that are live are named, for whoever knows what they have.
    pub async fn stats(&self, filter: Filter) -> Result<(Stats, Vec<RuntimeId>)> {
        self.read(move |connection| stats(connection, &filter)).await
    }
}

fn stats(connection: &Connection, filter: &Filter) -> Result<(Stats, Vec<RuntimeId>)> {
    let (clauses, values) = conditions(filter);
    let mut stats = Stats::default();
    let mut ended = 0u64;
    let mut completed = 0u64;
    let mut judged = 0u64;
    let mut iterations = 0u64;
    let mut duration = 0i64;
    // one pass by status and mode gives everything but the percentile
    let mut statement = connection.prepare_cached(&format!(
        "SELECT status, mode, count(*), sum(iterations), count(ended_at), sum(ended_at - coalesce(started_at, created_at)),
            total(cost), total(tokens_prompt), total(tokens_completion), total(tokens_total)
         FROM sessions WHERE {clauses} GROUP BY status, mode"
    ))?;
    let mut rows = statement.query(params_from_iter(values.iter()))?;
    let number = |row: &rusqlite::Row<'_>, column: usize| -> rusqlite::Result<u64> {
        Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64)
    };
    while let Some(row) = rows.next()? {
        let (status, mode): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let count = number(row, 2)?;
        stats.total += count;
        iterations += number(row, 3)?;
        let over = number(row, 4)?;
        ended += over;
        if status == "completed" {
            completed += over;
        }
        // what was ended on request is neither a success nor a failure
        if status != "ended" {
            judged += over;
        }
        duration += row.get::<_, Option<i64>>(5)?.unwrap_or(0);
        stats.cost += row.get::<_, f64>(6)?;
        let tokens = |column: usize| row.get::<_, f64>(column).map(|sum| sum as u64);
        let tokens = Tokens { prompt: tokens(7)?, completion: tokens(8)?, total: tokens(9)? };
        stats.tokens.prompt = stats.tokens.prompt.saturating_add(tokens.prompt);
        stats.tokens.completion = stats.tokens.completion.saturating_add(tokens.completion);
        stats.tokens.total = stats.tokens.total.saturating_add(tokens.total);
        *stats.by_status.entry(status).or_default() += count;
        *stats.by_mode.entry(mode.unwrap_or_else(|| "none".to_owned())).or_default() += count;
    }
    let share = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
    stats.success_rate = share(completed as f64, judged);
    stats.average_iterations = share(iterations as f64, stats.total);
    stats.average_duration_ms = share(duration as f64 / 1000.0, ended);
    if ended > 0 {
        // the nearest rank: the smallest duration that 95 in 100 do not exceed
        let rank = (ended * 95).div_ceil(100).max(1);
        // the status leads to the index for statistics; by the end alone every row would have to be read
        let micros: i64 = connection
            .prepare_cached(&format!(
                "SELECT ended_at - coalesce(started_at, created_at) FROM sessions
                 WHERE {clauses} AND status IN ('completed', 'failed', 'timeout', 'ended') AND +ended_at IS NOT NULL
                 ORDER BY 1 LIMIT 1 OFFSET {}",
                rank - 1
            ))?
            .query_row(params_from_iter(values.iter()), |row| row.get(0))?;
        stats.p95_duration_ms = Some((micros / 1000).max(0) as u64);
    }
    let below = if clauses == "TRUE" { String::new() } else { format!("WHERE session_id IN (SELECT id FROM sessions WHERE {clauses})") };
    let sum = |sql: String| -> Result<u64> {
        Ok(connection.prepare_cached(&sql)?.query_row(params_from_iter(values.iter()), |row| number(row, 0))?)
    };
    stats.execs = sum(format!("SELECT count(*) FROM execs {below}"))?;
    stats.recorded_bytes = sum(format!("SELECT sum(recorded_bytes) FROM runtimes {below}"))?;
    let live: Vec<String> = connection
        .prepare_cached(&format!(
            "SELECT id FROM runtimes {} is_live",
            if below.is_empty() { "WHERE".to_owned() } else { format!("{below} AND") }
        ))?
        .query_map(params_from_iter(values.iter()), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok((stats, live.iter().filter_map(|id| RuntimeId::parse(id)).collect()))
}
