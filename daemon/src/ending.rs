//! Ends programs whose end is stored already: live ones, those that are being started or reached, and what they left behind.

use std::path::Path;
use std::time::Duration;

use shared::event::Author;
use shared::exec::Language;
use shared::id::{RuntimeId, SessionId};
use shared::message::Failure;

use crate::context::Context;
use crate::holder::link::Link;
use crate::launch::ENDING_GRACE_MS;

/// How long a holder that is being reached is waited for before an end is reported as still to come.
const REACHING_PATIENCE: Duration = Duration::from_secs(4);

/// Beyond the grace, for what is left to be killed and reaped.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Ends programs of which that is stored already, all at once.
pub async fn end_runtimes(context: &Context, runtimes: Vec<RuntimeId>, author: Author) -> Result<(), Failure> {
    let mut endings = tokio::task::JoinSet::new();
    for runtime in runtimes {
        let context = context.clone();
        endings.spawn(async move { end_runtime(&context, runtime, author).await });
    }
    let mut outcome = Ok(());
    while let Some(ended) = endings.join_next().await {
        outcome = outcome.and(ended.unwrap_or(Ok(())));
    }
    outcome
}

/// Ends a program of which that is stored already; one that is only being started, or reached, is waited for.
pub async fn end_runtime(context: &Context, runtime: RuntimeId, author: Author) -> Result<(), Failure> {
    let deadline = tokio::time::Instant::now() + REACHING_PATIENCE;
    loop {
        let changed = context.registry.changed();
        if let Some(handle) = context.registry.runtime(runtime) {
            handle.terminate(ENDING_GRACE_MS, author).await;
            return Ok(());
        }
        if context.store.is_ending(runtime).await?.is_none() {
            return Ok(());
        }
        if tokio::time::timeout_at(deadline, changed).await.is_err() {
            let why = context.registry.why_unreachable(runtime).unwrap_or_else(|| "its holder does not answer".to_owned());
            return Err(Failure::failed(format!("{why}; the program is ended as soon as it can be reached")));
        }
    }
}

/// What programs and interpreters of a session's thread have left running when they ended, or only those of a language; `false` if
/// there is nothing.
pub async fn end_leftovers(context: &Context, session: SessionId, language: Option<Language>) -> Result<bool, Failure> {
    let terminals = context.store.terminals_of(session).await?;
    let is_meant = |terminal| language.is_none_or(|language| terminals.iter().any(|one| one.id == terminal && one.kind == language.kind()));
    let mut endings = tokio::task::JoinSet::new();
    for runtime in context.store.runtimes_of(session).await? {
        let is_over = context.registry.runtime(runtime.id).is_none() && !runtime.state.is_live();
        if is_over && is_meant(runtime.terminal) && context.paths.holder_socket(runtime.id).exists() {
            let context = context.clone();
            endings.spawn(async move { end_lingering(&context, runtime.id).await });
        }
    }
    let mut has_ended = false;
    while let Some(ended) = endings.join_next().await {
        has_ended |= ended.unwrap_or(false);
    }
    Ok(has_ended)
}

/// A program that has ended may have left processes behind, and its holder with them. Ends both; `false` if there is none.
pub async fn end_lingering(context: &Context, runtime: RuntimeId) -> bool {
    end_behind(&context.paths.holder_socket(runtime), ENDING_GRACE_MS).await
}

/// Ends whatever is behind a holder's socket; `false` if there is nothing.
pub async fn end_behind(socket: &Path, grace_ms: u32) -> bool {
    let ending = async {
        let Ok((mut link, _)) = Link::connect(socket).await else { return false };
        let _ = link.terminate(grace_ms).await;
        // it closes the link when everything is gone
        while link.news().await.is_ok() {}
        true
    };
    // a holder that is stopped or stuck must not hold up the user
    tokio::time::timeout(Duration::from_millis(u64::from(grace_ms)) + END_PATIENCE, ending).await.unwrap_or(true)
}
