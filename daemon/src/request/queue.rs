//! Groups of the queue: their limits, and how full they are.

use shared::message::Failure;
use shared::stats::Group;

use crate::context::Context;

/// More at once than any machine has room for.
const MAX_LIMIT: u64 = 100_000;

pub fn normalise_name(name: &str) -> Result<String, Failure> {
    shared::name::normalise(name).map_err(|error| Failure::usage(format!("a group is called like a session: {error}")))
}

pub async fn groups(context: &Context) -> Result<Vec<Group>, Failure> {
    Ok(context.store.groups(context.config().groups.clone()).await?)
}

/// 0 holds the group: nothing new starts.
pub async fn set(context: &Context, name: String, limit: u64) -> Result<Group, Failure> {
    let name = normalise_name(&name)?;
    if limit > MAX_LIMIT {
        return Err(Failure::usage(format!("a limit of {limit} is too large: at most {MAX_LIMIT}")));
    }
    context.store.set_group(name.clone(), limit).await?;
    context.queue.look_again();
    group(context, &name).await
}

pub async fn unset(context: &Context, name: String) -> Result<Group, Failure> {
    // a name that an older version allowed can still be taken away
    let name = normalise_name(&name).unwrap_or(name);
    context.store.unset_group(name.clone()).await?;
    context.queue.look_again();
    match group(context, &name).await {
        Ok(group) => Ok(group),
        // nobody is in it, and nothing is set for it any more
        Err(_) => Ok(Group { name, limit: 1, source: shared::stats::LimitSource::Default, running: 0, queued: 0 }),
    }
}

async fn group(context: &Context, name: &str) -> Result<Group, Failure> {
    let all = groups(context).await?;
    all.into_iter().find(|group| group.name == name).ok_or_else(|| Failure::failed(format!("there is no group {name}")))
}
