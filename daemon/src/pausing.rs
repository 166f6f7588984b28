//! Has what runs stand still or go on as the database says, and ends what is to hibernate.

use std::time::Duration;

use shared::attention::Attention;
use shared::event::Author;
use shared::id::SessionId;
use shared::message::{Code, Failure};
use shared::session::Session;

use crate::context::Context;
use crate::ending::{end_leftovers, end_runtimes};
use crate::handle::runtime::RuntimeHandle;
use crate::overlay::with_live;

pub const UNREACHED: &str = "its holder does not answer: it is told as soon as it does";

/// Has everything of a session stand as the database says. Gives what a person should know: what could not be stopped.
pub async fn settle(context: &Context, session: SessionId) -> Option<String> {
    let mut settling = tokio::task::JoinSet::new();
    let handles: Vec<RuntimeHandle> = context.registry.all().into_iter().filter(|handle| handle.facts.session() == session).collect();
    for handle in handles {
        settling.spawn(async move { settle_one(&handle).await });
    }
    let mut problem = None;
    while let Some(outcome) = settling.join_next().await {
        problem = problem.or(outcome.ok().flatten());
    }
    problem
}

/// A holder that answers does so at once; what is slow to stop is told as such before that.
const SETTLING_PATIENCE: Duration = Duration::from_secs(4);

pub async fn settle_one(handle: &RuntimeHandle) -> Option<String> {
    let Ok(outcome) = tokio::time::timeout(SETTLING_PATIENCE, handle.settle_freezing()).await else { return Some(UNREACHED.to_owned()) };
    match outcome {
        Ok(Some(frozen)) if frozen.refused > 0 => {
            Some(format!("{} of another user could not be stopped and go on", shared::text::count(frozen.refused as usize, "process")))
        }
        Ok(Some(frozen)) if frozen.is_slow => Some("some of its processes have not come to a stop yet: they wait for the system".into()),
        Ok(_) => None,
        // one that has ended stands still too
        Err(failure) if failure.code == Code::Status => None,
        Err(failure) => Some(failure.message),
    }
}

/// What becomes of a session that is working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Working {
    IsRefused,
    IsEnded,
}

/// Ends the processes of a session and keeps everything else: it is started again when it is needed.
pub async fn hibernate(
    context: &Context,
    session: Session,
    reason: Option<String>,
    working: Working,
    author: Author,
) -> Result<Session, Failure> {
    let cannot = |why: String| Failure::new(Code::Status, format!("cannot hibernate: {why}"));
    let name = &session.name;
    if session.is_hibernated() {
        return Err(cannot(format!("session {name} is hibernated already")));
    }
    if working == Working::IsRefused
        && let Some(what) = works(context, &session)
    {
        return Err(cannot(format!("session {name} {what}; wait for it, or --force ends it all the same")));
    }
    let runtimes = context.store.hibernate(session.id, reason, author).await?;
    end_runtimes(context, runtimes, author).await?;
    end_leftovers(context, session.id, None).await?;
    Ok(with_live(context, context.store.session(session.id).await?))
}

/// What a session is in the middle of, if it is.
pub fn works(context: &Context, session: &Session) -> Option<String> {
    let handles = context.registry.all().into_iter().filter(|handle| handle.facts.session() == session.id);
    let calls: u64 = handles.map(|handle| handle.facts.calls()).sum();
    if calls > 0 {
        return Some(format!("carries out {}", shared::text::count(calls as usize, "call")));
    }
    let needs = session.needs.as_ref()?;
    (needs.state == Attention::Working).then(|| format!("is working ({})", needs.why))
}
