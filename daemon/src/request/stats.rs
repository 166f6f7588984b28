//! Statistics and audit: what many sessions come to, and what stays of them.

use std::collections::HashMap;

use shared::filter::Filter;
use shared::id::RuntimeId;
use shared::live::Calendar;
use shared::message::Failure;
use shared::stats::{AuditLine, Disk, DiskUse, SessionDisk, Stats};

use crate::context::Context;
use crate::recording;

pub async fn stats(context: &Context, filter: Filter) -> Result<Stats, Failure> {
    let (mut stats, live) = context.store.stats(filter).await?;
    // runtimes that are over have stored what they recorded; the others know it themselves
    stats.recorded_bytes +=
        context.registry.all().iter().filter(|handle| live.contains(&handle.id)).map(|handle| handle.facts.end()).sum::<u64>();
    Ok(stats)
}

/// What recordings take on disk, session by session.
pub async fn disk(context: &Context, filter: Filter) -> Result<Disk, Failure> {
    let sessions = context.store.recorded_sessions(filter).await?;
    let folder = context.paths.recordings();
    let limit = context.config().recording.max_total_mib;
    let mut disk = tokio::task::spawn_blocking(move || {
        let mut of_runtime: HashMap<RuntimeId, DiskUse> =
            recording::folders(&folder).into_iter().map(|id| (id, recording::disk_use(&folder.join(id.compact())))).collect();
        let mut disk = Disk::default();
        for (runtime, session) in sessions {
            let Some(of_runtime) = of_runtime.remove(&runtime) else { continue };
            disk.total.add(of_runtime);
            match disk.sessions.last_mut().filter(|last| last.session == session.session) {
                Some(last) => last.disk.add(of_runtime),
                None => disk.sessions.push(SessionDisk { disk: of_runtime, ..session }),
            }
        }
        disk.unknown = of_runtime.values().map(|left| left.bytes).sum();
        disk.sessions.sort_by_key(|session| std::cmp::Reverse(session.disk.bytes));
        disk.free = rustix::fs::statvfs(&folder).ok().map(|stat| stat.f_bavail * stat.f_frsize);
        disk
    })
    .await
    .map_err(|error| Failure::failed(error.to_string()))?;
    disk.limit = (limit > 0).then_some(limit << 20);
    Ok(disk)
}

pub async fn audit(context: &Context, thread: Option<String>, limit: Option<u32>) -> Result<Vec<AuditLine>, Failure> {
    Ok(context.store.audit(thread, limit).await?)
}

/// Days that a calendar shows at most.
const MAX_DAYS: u32 = 366;

pub async fn calendar(context: &Context, filter: Filter, days: u32) -> Result<Calendar, Failure> {
    Ok(context.store.calendar(filter, days.clamp(1, MAX_DAYS), jiff::tz::TimeZone::system()).await?)
}
