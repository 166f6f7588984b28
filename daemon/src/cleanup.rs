//! What is done once a day: sessions that ended long ago go with their recordings (also on demand), and a large database is
//! looked through for damage.

use std::path::PathBuf;
use std::time::Instant;

use shared::config::Config;
use shared::message::{Cleanup, Failure};
use shared::stats::Cleaned;

use crate::age::SeenTime;
use crate::clock::Steady;
use crate::context::Context;
use crate::ending;
use crate::recording;
use crate::store::{self, Candidate, Old};

/// Sessions of one step, which takes some tens of milliseconds: between two of them everybody else has their turn.
const STEP: u32 = 50;

/// How many of them are named in an answer.
const NAMED: usize = 1000;

const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;

/// What was last done when; see `remembered`.
const DONE: &str = "cleanup";

/// Takes away a step's worth of what is old, or says what would go.
pub async fn clean(context: &Context, asked: Cleanup) -> Result<Cleaned, Failure> {
    let days = asked.older_than_days.unwrap_or_else(|| default_days(&context.config()));
    if !days.is_finite() || !(0.0..=36_500.0).contains(&days) {
        return Err(Failure::usage(format!("{days} is no number of days: write --older-than 30")));
    }
    let age = (days * DAY_MICROS as f64) as i64;
    let seen = look_at_clocks(context).await?;
    let ended_before = jiff::Timestamp::from_microsecond(seen.before(age)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let old = Old { filter: asked.filter, ended_before };
    let store = &context.store;
    let mut cleaned = Cleaned { dry_run: asked.dry_run, ..Cleaned::default() };
    let jumped = seen.jumped_within(age);
    let limit = if asked.dry_run { NAMED as u32 } else { STEP };
    let candidates = store.old_sessions(old.clone(), limit).await?;
    let is_full_step = candidates.len() == limit as usize;
    if !asked.dry_run {
        for runtime in candidates.iter().flat_map(|candidate| &candidate.runtimes) {
            ending::end_lingering(context, *runtime).await;
        }
    }
    let dirs: Vec<_> = candidates.iter().flat_map(|candidate| &candidate.runtimes).map(|id| context.paths.recording(*id)).collect();
    let is_dry = asked.dry_run;
    // the bytes first: should we end in between, the record still says what is left to do
    let taken = tokio::task::spawn_blocking(move || take_away(&dirs, is_dry)).await.map_err(|error| Failure::failed(error.to_string()))?;
    cleaned.bytes = taken.bytes;
    for error in &taken.errors {
        context.log.warn(&format!("cleanup: {error}; its session was kept"));
    }
    // what could not be taken away keeps its record, and holds up nobody else
    let is_kept = |candidate: &Candidate| candidate.runtimes.iter().any(|id| taken.kept.contains(&context.paths.recording(*id)));
    cleaned.kept.clone_from(&taken.errors);
    if jumped > 0 {
        let days = in_days(jumped);
        cleaned
            .kept
            .push(format!("the clock has jumped ahead by {days} days: ages are counted without that time, until as much has passed"));
    }
    let candidates: Vec<Candidate> = candidates.into_iter().filter(|candidate| !is_kept(candidate)).collect();
    if asked.dry_run {
        cleaned.count = store.count_old(old.clone()).await?;
        if asked.audit {
            cleaned.audit = store.count_audit(old).await?;
        }
    } else {
        let ids = candidates.iter().map(|candidate| candidate.line.id).collect();
        store::drop_backup(&context.paths.database());
        cleaned.count = store.remove_old(ids, !asked.audit).await?;
        cleaned.more = is_full_step && cleaned.count > 0;
        if asked.audit && !cleaned.more {
            cleaned.audit = store.remove_audit(old).await?;
        }
    }
    cleaned.sessions = candidates.into_iter().map(|candidate| candidate.line).collect();
    Ok(cleaned)
}

/// Time as it was seen to pass. A jump of the wall clock is reported once.
pub async fn look_at_clocks(context: &Context) -> store::Result<SeenTime> {
    let (seen, jumped) = context.store.seen_time().await?;
    if let Some(jumped) = jumped {
        let days = in_days(jumped);
        context.warn(format!(
            "the clock has jumped ahead by {days} days (it was set, or the machine was off): cleanup and retention by age do not count \
             that time"
        ));
    }
    Ok(seen)
}

/// The nearest number of days.
fn in_days(micros: i64) -> i64 {
    (micros + DAY_MICROS / 2) / DAY_MICROS
}

/// What became of recordings.
#[derive(Default)]
struct Taken {
    /// How much there was on disk.
    bytes: u64,
    /// Those that could not be removed.
    kept: Vec<PathBuf>,
    errors: Vec<String>,
}

fn take_away(dirs: &[PathBuf], is_dry: bool) -> Taken {
    let mut taken = Taken::default();
    for dir in dirs {
        let bytes = recording::disk_bytes(dir);
        if !is_dry && let Err(error) = recording::remove(dir) {
            taken.errors.push(format!("{}: {error}", dir.display()));
            taken.kept.push(dir.clone());
            continue;
        }
        taken.bytes += bytes;
    }
    taken
}

/// Without a setting that says otherwise, a month.
fn default_days(config: &Config) -> f64 {
    match config.cleanup.older_than_days {
        0 => 30.0,
        days => f64::from(days),
    }
}

/// Once a day, also when the daemon is replaced more often than that.
pub async fn run(context: Context) {
    loop {
        let last: Steady = match context.store.last_done(DONE).await {
            Ok(last) => last.unwrap_or(0),
            Err(error) => return context.log.warn(&format!("the daily cleanup: {error}")),
        };
        tokio::time::sleep_until(context.clock.instant(last + DAY_MICROS)).await;
        if context.config().cleanup.older_than_days > 0 {
            clean_all(&context).await;
        }
        look_for_damage(&context).await;
        back_up(&context).await;
        if let Err(error) = context.store.done_now(DONE).await {
            return context.log.warn(&format!("the daily cleanup: {error}"));
        }
    }
}

async fn clean_all(context: &Context) {
    let mut count = 0;
    loop {
        let began = Instant::now();
        match clean(context, Cleanup::default()).await {
            Ok(cleaned) => {
                count += cleaned.count;
                if !cleaned.more {
                    break;
                }
                // nobody waits for it: most of the time is everybody else's
                tokio::time::sleep(3 * began.elapsed()).await;
            }
            Err(failure) => {
                context.log.warn(&format!("the daily cleanup: {failure}"));
                break;
            }
        }
    }
    if count > 0 {
        context.log.note(&format!("the daily cleanup removed {}", shared::text::count(count as usize, "session")));
    }
}

/// A database larger than this is copied once a day only: copying takes about a second for each 500 MB.
const SMALL_BYTES: u64 = 64 << 20;

/// Copies the database for `store::open` to recover from.
pub async fn back_up(context: &Context) {
    let path = context.paths.database();
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > SMALL_BYTES) {
        return;
    }
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || store::back_up(&path)).await {
        context.log.warn(&format!("the database could not be copied for recovery: {error}"));
    }
}

async fn look_for_damage(context: &Context) {
    let path = context.paths.database();
    if let Ok(Some(damage)) = tokio::task::spawn_blocking(move || store::check_large(&path)).await {
        context.warn(format!("the database is damaged ({damage}): stop the daemon and keep a copy of it; what can be read still is"));
    }
}
