//! Statistics and audit: what many sessions come to, and what stays of them.

use shared::filter::Filter;
use shared::message::Failure;
use shared::stats::{AuditLine, Stats};

use crate::context::Context;

pub async fn stats(context: &Context, filter: Filter) -> Result<Stats, Failure> {
    let (mut stats, live) = context.store.stats(filter).await?;
    // runtimes that are over have stored what they recorded; the others know it themselves
    stats.recorded_bytes +=
        context.registry.all().iter().filter(|handle| live.contains(&handle.id)).map(|handle| handle.facts.end()).sum::<u64>();
    Ok(stats)
}

pub async fn audit(context: &Context, thread: Option<String>, limit: Option<u32>) -> Result<Vec<AuditLine>, Failure> {
    Ok(context.store.audit(thread, limit).await?)
}
