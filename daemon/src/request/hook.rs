//! What agents' hooks say, and why a session is thought to be in its state.

use shared::agent::{Conversation, Hook, IdSource};
use shared::attention::{Attention, Explanation};
use shared::message::Failure;
use shared::session::Session;

use super::{find, program_of};
use crate::agent::{Agent, Payload};
use crate::attention::Hooked;
use crate::context::Context;
use crate::files;
use crate::handle::runtime::RuntimeHandle;

/// A hook was called in a session. What cannot be understood, or is nobody's, changes nothing.
pub async fn hook(context: &Context, hook: Hook) -> Result<(), Failure> {
    let agents = context.agents();
    let Some(agent) = agents.by_name(&hook.agent) else {
        let known: Vec<String> = agents.known().into_iter().map(|agent| agent.name).collect();
        return Err(Failure::usage(format!("no agent is called {:?}: {}, or one of yours in agents/*.toml", hook.agent, known.join(", "))));
    };
    let payload = Payload::read(hook.event.as_deref(), &hook.payload);
    let by_runtime = hook.runtime.and_then(|runtime| context.registry.runtime(runtime)).filter(|handle| handle.language.is_none());
    let Some(handle) = by_runtime.or_else(|| hook.session.and_then(|session| context.registry.of_session(session))) else {
        return Ok(());
    };
    if payload.is_of_part {
        return Ok(());
    }
    if !is_its_own(context, &handle, agent, &payload, hook.at).await? {
        return Ok(());
    }
    let said = payload.said(agent).map(|said| Hooked { agent: agent.title.clone(), state: said.state, text: said.text, at: hook.at });
    handle.hooked(agent.name.clone(), said).await;
    Ok(())
}

/// Whether this is of the conversation that the runtime has. One that begins may become it: in a runtime that has none, in the place
/// of one that has ended, or as the same agent's next one (`/clear`, `/resume`). An agent that another one started inherits our
/// variables, and is none of this.
async fn is_its_own(
    context: &Context,
    handle: &RuntimeHandle,
    agent: &Agent,
    payload: &Payload,
    at: jiff::Timestamp,
) -> Result<bool, Failure> {
    let id = payload.conversation.clone().filter(|id| agent.is_id(id));
    let (name, begins, is_prompt) = (agent.name.clone(), payload.begins_conversation(), payload.is_prompt());
    let is_end = payload.said(agent).is_some_and(|said| said.state == crate::agent::HookState::Ended);
    let (cwd, transcript, source) = (payload.cwd.clone(), payload.transcript.clone(), payload.source.clone());
    let asked = id.clone();
    let after = context
        .store
        .rebind(handle.id, move |before| {
            let takes_over = match &before {
                None => true,
                Some(known) if known.ended || known.id_source == IdSource::None => true,
                Some(known) if known.session_id == id => true,
                Some(known) => known.agent == name && matches!(source.as_deref(), Some("clear" | "resume" | "compact")),
            };
            let mut known = before;
            if begins && takes_over && id.is_some() {
                let same = known.take().filter(|known| known.session_id == id);
                known = Some(Conversation {
                    agent: name,
                    prompted: same.as_ref().is_some_and(|same| same.prompted) || source.as_deref() == Some("resume"),
                    session_id: id.clone(),
                    cwd,
                    transcript,
                    id_source: IdSource::Hook,
                    bound_at: at,
                    ended: false,
                });
            }
            if let Some(known) = &mut known
                && (id.is_none() || known.session_id == id)
            {
                known.prompted |= is_prompt;
                known.ended = is_end;
            }
            known
        })
        .await?;
    // what names no conversation is believed; what names another is not
    Ok(match (after.and_then(|known| known.session_id), asked) {
        (Some(known), Some(asked)) => known == asked,
        _ => true,
    })
}

/// What hooks said while no daemon was there, in order.
pub async fn drain_hooks(context: &Context) {
    for (name, text) in files::read_folder(&context.paths.hooks(), "json") {
        match serde_json::from_str(&text) {
            Ok(said) => {
                if let Err(failure) = hook(context, said).await {
                    context.log.warn(&format!("a hook from before: {failure}"));
                }
            }
            Err(error) => context.log.warn(&format!("a hook from before is not understood: {error}")),
        }
        let _ = std::fs::remove_file(context.paths.hooks().join(name));
    }
}

pub async fn explain(context: &Context, name: String) -> Result<Explanation, Failure> {
    let session = find(context, name).await?;
    let program = program_of(context, &session);
    let evidence = program.as_ref().map(|handle| handle.facts.explain()).unwrap_or_default();
    let agent = program.as_ref().and_then(|handle| handle.facts.agent());
    let agent = agent.and_then(|name| context.agents().by_name(&name).map(|agent| agent.title.clone()));
    let needs = session.needs.clone();
    let mut would_change: Vec<String> = evidence.iter().filter(|clue| clue.decides).map(|clue| clue.changes.clone()).collect();
    let is_by_rules = evidence.iter().any(|clue| clue.decides && matches!(clue.source.as_str(), "title" | "screen"));
    if would_change.is_empty() || is_by_rules {
        would_change.push(unsaid(&session, agent.as_deref()));
    }
    Ok(Explanation {
        session: session.id,
        name: session.name.clone(),
        state: needs.as_ref().map_or(Attention::Unknown, |needs| needs.state),
        since: needs.as_ref().map(|needs| needs.since),
        why: needs.map_or_else(|| session.in_words(), |needs| needs.why),
        agent,
        evidence,
        would_change,
    })
}

/// What would make more known of a session of which little is.
fn unsaid(session: &Session, agent: Option<&str>) -> String {
    if session.status.has_ended() {
        return "somebody looks at it".into();
    }
    match agent {
        Some(agent) => format!("a report, hook or notification of {agent}; `sessions-tui hook install` sets its hooks up"),
        None => "anything that it says of itself: a report (OSC 7501), a notification, a bell, a shell's marks".into(),
    }
}
