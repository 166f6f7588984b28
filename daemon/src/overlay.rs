//! Sessions as they are now: the stored row with what its live runtimes know beyond it.

use shared::attention::Needs;
use shared::session::{Session, Status};

use crate::attention;
use crate::context::Context;
use crate::handle::runtime::RuntimeHandle;

/// A session with what is known of it live.
pub fn with_live(context: &Context, session: Session) -> Session {
    let of_session = |handle: &RuntimeHandle| handle.facts.session() == session.id;
    let handles: Vec<RuntimeHandle> = context.registry.all_of_thread(session.thread).into_iter().filter(of_session).collect();
    let unreachable = context.registry.unreachable(session.id);
    Session { unreachable, ..with_handles(session, &handles) }
}

/// Whether a session that goes on needs a person; of one that is over its record tells.
fn needs_of(session: &Session, handles: &[RuntimeHandle]) -> Option<Needs> {
    if session.status != Status::Active {
        // a task that is over may have a program that still asks
        let program = handles.iter().find(|handle| handle.language.is_none() && session.status.has_ended());
        let asks = program.and_then(|handle| handle.facts.needs()).filter(|needs| needs.state.needs_someone());
        return asks.or_else(|| session.needs.clone());
    }
    let since = session.started_at.unwrap_or(session.created_at);
    if let Some(program) = handles.iter().find(|handle| handle.language.is_none()) {
        return Some(program.facts.needs().unwrap_or_else(|| attention::silent(since)));
    }
    if handles.is_empty() {
        return Some(attention::silent(since));
    }
    let last = handles.iter().filter_map(|handle| handle.facts.last_activity()).max();
    Some(attention::of_calls(handles.iter().map(|handle| handle.facts.calls()).sum(), last.unwrap_or(since)))
}

/// What is known of a session live: from its program, and from its interpreters.
pub fn with_handles(mut session: Session, handles: &[RuntimeHandle]) -> Session {
    session.needs = needs_of(&session, handles);
    for handle in handles {
        if let Some(at) = handle.facts.last_activity() {
            session.last_activity_at = session.last_activity_at.max(at);
        }
        session.clients += handle.facts.clients();
        match handle.language {
            Some(language) => session.languages.push(language),
            None => {
                session.runtime_state = Some(handle.facts.state());
                session.size = Some(handle.facts.size());
            }
        }
    }
    session.languages.sort_unstable();
    session
}
