//! The life of a session by command: complete, fail, reset.

use shared::event::Author;
use shared::json::MAX_DATA;
use shared::message::{Changed, Code, Failure, Previous};
use shared::session::Session;

use super::{find_exact, find_to_use, with_live};
use crate::context::Context;
use crate::ending::{end_leftovers, end_runtimes};
use crate::store::{Asked, EndAsked};

pub async fn complete(context: &Context, name: String, result: Option<String>, author: Author) -> Result<Changed, Failure> {
    check_text("the result", result.as_deref())?;
    let (session, previous) = find_to_use(context, name, author).await?;
    let completed = context.store.change_status(session.id, Asked::Complete { result }, author).await?;
    let note = format!("its program goes on: `sessions-tui kill {}` ends it", completed.name);
    Ok(with_note(context, completed, previous, &note))
}

pub async fn fail(context: &Context, name: String, error: String, author: Author) -> Result<Changed, Failure> {
    if error.trim().is_empty() {
        return Err(Failure::usage("--error is empty: say what went wrong"));
    }
    check_text("the error", Some(&error))?;
    let (session, previous) = find_to_use(context, name, author).await?;
    let failed = context.store.change_status(session.id, Asked::Fail { error }, author).await?;
    let note = format!("its program goes on: `sessions-tui kill {}` ends it", failed.name);
    Ok(with_note(context, failed, previous, &note))
}

/// Ends the session and its program, then forgets folder and variables: in this order, so that whatever the program still
/// does is forgotten too.
pub async fn reset(context: &Context, name: String, author: Author) -> Result<Changed, Failure> {
    let session = find_exact(context, name).await?;
    let latest = context.store.find_exact(session.name.clone()).await?.session;
    if latest != session.id {
        return Err(Failure::new(
            Code::Status,
            format!(
                "cannot reset: session {} has been followed by {latest}; `sessions-tui reset {}` resets that",
                session.id, session.name
            ),
        ));
    }
    if let EndAsked::Program(runtimes) | EndAsked::Ended(runtimes) = context.store.ask_to_end(session.id, "reset", author).await? {
        end_runtimes(context, runtimes, author).await?;
    }
    end_leftovers(context, session.id, None).await?;
    let session = context.store.forget_state(session.id, author).await?;
    let mut changed = answer(context, session, None);
    changed.note = Some(format!(
        "the folder and variables of {0} are forgotten: its next session starts clean, in {1}",
        changed.session.name, changed.session.workspace
    ));
    Ok(changed)
}

/// What was asked happened in the place of a session that was lost.
pub(super) fn answer(context: &Context, session: Session, previous: Option<Previous>) -> Changed {
    let note = previous.as_ref().map(|previous| format!("{}; this is session {}", previous.sentence(), session.id));
    Changed { session: with_live(context, session), note, previous }
}

/// The note is only true while there is a program.
pub(super) fn with_note(context: &Context, session: Session, previous: Option<Previous>, note: &str) -> Changed {
    let mut changed = answer(context, session, previous);
    if changed.note.is_none() && context.registry.of_session(changed.session.id).is_some() {
        changed.note = Some(note.to_owned());
    }
    changed
}

pub(super) fn check_text(what: &str, text: Option<&str>) -> Result<(), Failure> {
    match text {
        Some(text) if text.len() > MAX_DATA => Err(Failure::usage(format!(
            "{what} has {} bytes, at most {MAX_DATA} are kept: store it in a file and give its name",
            text.len()
        ))),
        _ => Ok(()),
    }
}
