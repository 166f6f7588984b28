//! Waiting for a session: for its exit, for a prompt, for silence, for text on its screen, for a status.

use std::time::Duration;

use shared::attention::Attention;
use shared::message::{Code, Condition, Failure, Waited};
use shared::runtime::RuntimeState;
use shared::session::{Session, Status};

use super::{find, with_live};
use crate::context::Context;
use crate::handle::runtime::RuntimeHandle;

pub async fn wait(context: &Context, name: String, condition: Condition, timeout_ms: Option<u64>) -> Result<Waited, Failure> {
    let session = find(context, name).await?;
    let label = session.name.clone();
    let work = until(context, &session, condition);
    let outcome = match timeout_ms {
        Some(ms) => tokio::time::timeout(Duration::from_millis(ms), work)
            .await
            .map_err(|_| Failure::new(Code::TimedOut, format!("timed out after {} waiting for {label}", shared::policy::Span { ms })))?,
        None => work.await,
    };
    outcome?;
    // an end that cannot be stored while the disk is full is known all the same
    let unstored = match context.registry.of_session(session.id) {
        Some(handle) => handle.has_ended().and_then(|ended| ended.exit),
        None => None,
    };
    let session = context.store.session(session.id).await?;
    let exit = match session.runtime_state {
        Some(RuntimeState::Exited { status, .. }) => Some(status),
        _ => unstored,
    };
    Ok(Waited { status: session.status, exit })
}

async fn until(context: &Context, session: &Session, condition: Condition) -> Result<(), Failure> {
    let live = match condition {
        // what is on a screen, or is not, can only be known once there is one
        Condition::Prompt | Condition::Quiet { .. } | Condition::Text { .. } => until_started(context, session).await?,
        Condition::Exit | Condition::Status { .. } | Condition::Attention { .. } => context.registry.of_session(session.id),
    };
    match condition {
        Condition::Exit => {
            if let Some(handle) = live {
                handle.ended().await;
                if context.registry.why_unreachable(handle.id).is_some() {
                    return Ok(());
                }
            }
            until_status(context, session, Status::has_ended).await.map(|_| ())
        }
        Condition::Prompt => match live {
            Some(handle) if handle.wait_prompt().await.is_ok() => Ok(()),
            _ => {
                let present = context.store.session(session.id).await?;
                let why = if present.status.has_ended() { present.in_words() } else { "without a program".into() };
                Err(Failure::new(Code::Status, format!("session {} is {why}: no shell of it will ask for a line", session.name)))
            }
        },
        Condition::Quiet { ms } => match live {
            Some(handle) => quiet(&handle, Duration::from_millis(ms)).await,
            None => Ok(()),
        },
        Condition::Text { pattern } => {
            let pattern = regex::RegexBuilder::new(&pattern).multi_line(true).size_limit(1 << 20).build().map_err(|error| {
                // the last line says what is wrong; those before it draw a picture that one sentence cannot hold
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                Failure::usage(format!("{pattern:?} is not a regular expression: {reason}"))
            })?;
            match live {
                Some(handle) => match handle.wait_text(pattern.clone()).await {
                    Ok(()) => Ok(()),
                    Err(_) => last_screen_has(context, session, &pattern).await,
                },
                None => last_screen_has(context, session, &pattern).await,
            }
        }
        Condition::Status { status } => {
            let present = until_status(context, session, |present| present == status || present.has_ended()).await?;
            if present.status == status {
                return Ok(());
            }
            Err(Failure::new(Code::Status, format!("session {} is {} and will not become {status}", session.name, present.in_words())))
        }
        Condition::Attention { state } => until_attention(context, session, state).await,
    }
}

/// Waits until the session is thought to be in this state; what has ended goes nowhere any more.
async fn until_attention(context: &Context, session: &Session, state: Attention) -> Result<(), Failure> {
    let present = until_change(context, session, |present| {
        present.status.has_ended() || present.needs.as_ref().is_some_and(|needs| needs.state == state)
    })
    .await?;
    if present.needs.as_ref().is_some_and(|needs| needs.state == state) {
        return Ok(());
    }
    Err(Failure::new(Code::Status, format!("session {} is {} and will not become {state}", session.name, present.in_words())))
}

/// Waits until the session's status is a wanted one; gives the session as it is then.
async fn until_status(context: &Context, session: &Session, is_wanted: impl Fn(Status) -> bool) -> Result<Session, Failure> {
    until_change(context, session, |present| is_wanted(present.status)).await
}

/// Looks at the session at each of its events.
async fn until_change(context: &Context, session: &Session, is_wanted: impl Fn(&Session) -> bool) -> Result<Session, Failure> {
    loop {
        // subscribed before looking, so that a change in between is not missed
        let mut changes = context.store.announcements();
        let present = with_live(context, context.store.session(session.id).await?);
        if is_wanted(&present) {
            return Ok(present);
        }
        loop {
            match changes.recv().await {
                Ok(event) if event.session != session.id => {}
                _ => break,
            }
        }
    }
}

/// The runtime of a session, waiting for its turn in the queue first.
async fn until_started(context: &Context, session: &Session) -> Result<Option<RuntimeHandle>, Failure> {
    if session.status == Status::Queued {
        until_status(context, session, |status| status != Status::Queued).await?;
    }
    loop {
        let changed = context.registry.changed();
        let present = context.store.session(session.id).await?;
        let found = context.registry.of_session(session.id);
        let is_starting = matches!(present.runtime_state, Some(RuntimeState::Starting));
        if found.is_some() || present.status.has_ended() || !is_starting {
            return Ok(found);
        }
        // stored, but not there yet: it is being started, or its holder is being reached
        tokio::select! {
            () = changed => {}
            _ = until_status(context, session, Status::has_ended) => {}
        }
    }
}

async fn quiet(handle: &RuntimeHandle, silence: Duration) -> Result<(), Failure> {
    let mut activity = handle.activity();
    activity.mark_unchanged();
    loop {
        match tokio::time::timeout(silence, activity.changed()).await {
            // silent for long enough, or over and silent for ever
            Err(_) | Ok(Err(_)) => return Ok(()),
            Ok(Ok(())) => {}
        }
    }
}

/// An ended session's text may be on its last screen; if not, it never will be.
async fn last_screen_has(context: &Context, session: &Session, pattern: &regex::Regex) -> Result<(), Failure> {
    let shot = super::terminal::screen(context, session.id.to_string(), 0, None).await?;
    let text: Vec<String> = shot.rows.into_iter().map(|row| row.text).collect();
    if pattern.is_match(&text.join("\n")) {
        return Ok(());
    }
    Err(Failure::new(Code::Status, format!("session {} has ended and its last screen does not match {}", session.name, pattern.as_str())))
}
