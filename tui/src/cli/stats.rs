//! stats, cleanup, audit.

use std::fmt::Write;

use clap::Subcommand;
use shared::message::{Cleanup, Failure, Forgotten, Request};
use shared::paths::Paths;
use shared::stats::{AuditLine, Cleaned, Disk, Stats};
use shared::text::{count, pad, visible};

use super::filter::FilterArgs;
use super::{parse, print, print_json, table};
use crate::{connect, tty};

#[derive(Subcommand)]
pub enum StatsCommand {
    /// What sessions come to: how many, how they ended, how long they took, what they cost
    #[command(
        after_help = "Examples:\n  sessions-tui stats\n  sessions-tui stats --mode developer --created-after 7d --json\n  sessions-tui stats --disk"
    )]
    Stats {
        /// What recordings take on disk, the largest first
        #[arg(long)]
        disk: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Remove sessions that ended long ago, with their recordings
    #[command(
        after_help = "Sessions that have not ended never go. What stays is a line for each: `sessions-tui audit`. This also happens once a day by\nitself (config.toml, [cleanup]).\n\nExamples:\n  sessions-tui cleanup --dry-run\n  sessions-tui cleanup --older-than 7 --mode test"
    )]
    Cleanup {
        /// Those that ended more than this many days ago [default: config.toml, else 30]
        #[arg(long, value_name = "DAYS", value_parser = parse::days, allow_negative_numbers = true)]
        older_than: Option<f64>,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
        /// Their audit lines go too, and those of earlier cleanups
        #[arg(long)]
        audit: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Take away for good what a session has said: its recordings, and the code and values of its calls; its record stays
    #[command(
        after_help = "Cannot be undone; does not ask. A session that goes on keeps its screen.\n\nExample:\n  sessions-tui forget api"
    )]
    Forget {
        /// The session: its exact name or id
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What stays of sessions that were cleaned up
    #[command(after_help = "Examples:\n  sessions-tui audit\n  sessions-tui audit api --limit 10 --json")]
    Audit {
        /// Only of this name
        name: Option<String>,
        /// At most this many, the newest
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn perform(paths: &Paths, command: StatsCommand) -> Result<(), Failure> {
    match command {
        StatsCommand::Stats { filter, json, disk: true } => {
            let disk: Disk = connect::call(paths, Request::Disk(filter.filter()?)).await?;
            if json { print_json(&disk) } else { print(&disk_words(&disk)) }
        }
        StatsCommand::Forget { name, json } => {
            let forgotten: Forgotten = connect::call(paths, Request::Forget { name }).await?;
            if json {
                return print_json(&forgotten);
            }
            let note = forgotten.note.map(|note| format!("; {note}")).unwrap_or_default();
            print(&format!("{}: {} of recordings are forgotten{note}\n", visible(&forgotten.name), table::bytes(forgotten.bytes)))
        }
        StatsCommand::Stats { filter, json, disk: false } => {
            let stats: Stats = connect::call(paths, Request::Stats(filter.filter()?)).await?;
            if json { print_json(&stats) } else { print(&words(&stats)) }
        }
        StatsCommand::Cleanup { older_than, dry_run, audit, filter, json } => {
            let asked = Cleanup { filter: filter.filter()?, older_than_days: older_than, dry_run, audit };
            let cleaned = clean(paths, asked).await?;
            if json { print_json(&cleaned) } else { print(&cleaned_words(&cleaned)) }
        }
        StatsCommand::Audit { name, limit, json } => {
            let lines: Vec<AuditLine> = connect::call(paths, Request::Audit { thread: name.clone(), limit }).await?;
            if json {
                return print_json(&lines);
            }
            if lines.is_empty() {
                let of = name.map_or_else(String::new, |name| format!(" of {}", visible(&name)));
                eprintln!("nothing{of} has been cleaned up yet: `sessions-tui cleanup --dry-run` shows what would go");
                return Ok(());
            }
            print(&audit_table(&lines))
        }
    }
}

/// Step by step, so that everybody else is served in between and a long one can be watched.
async fn clean(paths: &Paths, asked: Cleanup) -> Result<Cleaned, Failure> {
    let mut client = connect::connect(paths).await?;
    if asked.dry_run {
        return client.call(Request::Cleanup(asked)).await;
    }
    let shows_progress = rustix::termios::isatty(rustix::stdio::stderr());
    let all =
        if shows_progress { client.call::<Cleaned>(Request::Cleanup(Cleanup { dry_run: true, ..asked.clone() })).await?.count } else { 0 };
    let mut whole = Cleaned::default();
    loop {
        let step: Cleaned = client.call(Request::Cleanup(asked.clone())).await?;
        whole.count += step.count;
        whole.bytes += step.bytes;
        whole.audit += step.audit;
        whole.sessions.extend(step.sessions);
        // those that cannot go are met again by every step
        whole.kept = step.kept;
        if !step.more {
            if shows_progress && whole.count > step.count {
                eprint!("\r\x1b[K");
            }
            return Ok(whole);
        }
        if shows_progress {
            let width = tty::window().map_or(80, |size| usize::from(size.cols));
            eprint!("\r{}", progress(whole.count, all.max(whole.count), width));
        }
    }
}

fn progress(done: u64, all: u64, width: usize) -> String {
    let cells = width.saturating_sub(30).clamp(10, 40);
    let full = (done * cells as u64 / all.max(1)) as usize;
    format!("{}{} {done} of {all}", "█".repeat(full), "░".repeat(cells - full))
}

fn words(stats: &Stats) -> String {
    let mut out = String::new();
    let counts = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(what, count)| format!("{} {count}", visible(what))).collect::<Vec<_>>().join(", ")
    };
    out += &table::field("sessions", &stats.total.to_string());
    if stats.total == 0 {
        return out;
    }
    out += &table::field("by status", &counts(&stats.by_status));
    out += &table::field("by mode", &counts(&stats.by_mode));
    if let Some(rate) = stats.success_rate {
        out += &table::field("success rate", &format!("{:.1} % of those that completed, failed or timed out", rate * 100.0));
    }
    if let Some(average) = stats.average_iterations {
        out += &table::field("iterations", &format!("{average:.1} on average"));
    }
    if let (Some(average), Some(p95)) = (stats.average_duration_ms, stats.p95_duration_ms) {
        out += &table::field("duration", &format!("{} on average, 95 % within {}", table::length(average), table::length(p95 as f64)));
    }
    out += &table::field("execs", &stats.execs.to_string());
    out += &table::field("recorded", &table::bytes(stats.recorded_bytes));
    if stats.cost > 0.0 {
        out += &table::field("cost", &format!("{:.4}", stats.cost));
    }
    if stats.tokens.total > 0 {
        let tokens = &stats.tokens;
        out += &table::field("tokens", &format!("{} ({} prompt, {} completion)", tokens.total, tokens.prompt, tokens.completion));
    }
    out
}

/// Rows of `stats --disk`; the rest is in `--json`.
const DISK_ROWS: usize = 20;

fn disk_words(disk: &Disk) -> String {
    let mut out = String::new();
    let largest = disk.sessions.first().map_or(0, |session| session.disk.bytes);
    for session in disk.sessions.iter().take(DISK_ROWS) {
        let full = (session.disk.bytes * 12).div_ceil(largest.max(1)) as usize;
        let _ = writeln!(
            out,
            "{:>10}  {}{}  {} {}",
            table::bytes(session.disk.bytes),
            "█".repeat(full),
            "░".repeat(12 - full.min(12)),
            table::mark(session.status),
            visible(&session.name)
        );
    }
    if disk.sessions.len() > DISK_ROWS {
        let _ = writeln!(out, "{:>10}  and {} more: --json shows all", "", disk.sessions.len() - DISK_ROWS);
    }
    let limit = disk.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("limit {}", table::bytes(limit)));
    let free = disk.free.map(|free| format!(", {} free", table::bytes(free))).unwrap_or_default();
    out += &table::field("on disk", &format!("{} of recordings ({limit}{free})", table::bytes(disk.total.bytes)));
    let parts = [("as written", disk.total.plain), ("packed", disk.total.packed), ("for seeking", disk.total.index)];
    let parts: Vec<String> =
        parts.iter().filter(|(_, bytes)| *bytes > 0).map(|(what, bytes)| format!("{} {what}", table::bytes(*bytes))).collect();
    if !parts.is_empty() {
        out += &table::field("of which", &parts.join(", "));
    }
    out
}

fn cleaned_words(cleaned: &Cleaned) -> String {
    let mut out = String::new();
    if cleaned.dry_run && !cleaned.sessions.is_empty() {
        out += &audit_table(&cleaned.sessions);
    }
    let verb = if cleaned.dry_run { "would go" } else { "removed" };
    let _ = write!(out, "{} {verb}", count(cleaned.count as usize, "session"));
    if cleaned.bytes > 0 {
        let _ = write!(out, ", with {} of recordings", table::bytes(cleaned.bytes));
    }
    if cleaned.audit > 0 {
        let _ = write!(out, ", and {}", count(cleaned.audit as usize, "audit line"));
    }
    out.push('\n');
    for why in &cleaned.kept {
        let _ = writeln!(out, "kept: {}", visible(why));
    }
    out
}

fn audit_table(lines: &[AuditLine]) -> String {
    let mut out = format!("{}  {}  {}  {}  {}\n", pad("ENDED", 17), pad("NAME", 20), pad("STATUS", 26), pad("TASKS", 9), "WORKSPACE");
    for line in lines {
        let reason = line.status_reason.as_ref().map(|reason| format!(": {}", visible(reason))).unwrap_or_default();
        let _ = writeln!(
            out,
            "{}  {}  {}  {}  {}",
            pad(&line.ended_at.map(|at| at.strftime("%Y-%m-%dT%H:%MZ").to_string()).unwrap_or_default(), 17),
            pad(&visible(&line.name), 20),
            pad(&format!("{} {}{reason}", table::mark(line.status), line.status), 26),
            pad(&count(line.task_count as usize, "task"), 9),
            visible(&line.workspace)
        );
    }
    out
}
