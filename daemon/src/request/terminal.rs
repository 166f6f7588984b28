//! Terminals: attach and what an attached client says, send, screen, detach.

use std::sync::Arc;

use base64::Engine;
use shared::config::Prefix;
use shared::event::Author;
use shared::exec::Language;
use shared::id::RuntimeId;
use shared::keys::{Action, PrefixKeys};
use shared::message::{Answer, Attach, Attached, Code, Detached, Failure, Push, ScreenShot, to};
use shared::runtime::RuntimeState;
use shared::screen::Size;
use shared::session::{Session, Status};

use super::pause::wake_if_hibernated;
use super::{Caller, find, find_live, find_to_use, session_runtime_dir, shown_of};
use crate::context::Context;
use crate::handle::ask::{Joins, Typist};
use crate::picture::{Picture, scrolled_away};
use crate::poll::Source;
use crate::recording;
use crate::tty;

/// How long `send` waits for a program that does not read its input.
const SEND_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

fn check_size(size: Size) -> Result<Size, Failure> {
    if size.cols == 0 || size.rows == 0 {
        return Err(Failure::usage("the window has no size: is this a terminal?"));
    }
    Ok(Size { cols: size.cols.clamp(2, 1000), rows: size.rows.clamp(2, 500) })
}

pub async fn attach(context: &Context, caller: &Arc<Caller>, id: u64, attach: Attach) -> Result<(), Failure> {
    let window = check_size(attach.size)?;
    let session = find(context, attach.name).await?;
    if attach.inside == Some(session.id) {
        return Err(Failure::new(
            Code::Status,
            format!("this terminal is inside session {}: attached to itself it would only see its own picture", session.name),
        ));
    }
    let session = if session.status == Status::Paused && !attach.read_only && attach.language.is_none() {
        wake_if_hibernated(context, session.id.to_string(), attach.environment, Author::Human).await?;
        find(context, session.id.to_string()).await?
    } else {
        session
    };
    caller.leave().await;
    let joins = match (attach.read_only, attach.watching) {
        (true, _) => Joins::ReadOnly,
        (false, true) => Joins::Watching,
        (false, false) => Joins::InControl,
    };
    let respond = |control: bool, direct: bool, ended: Option<String>, taken: Option<(RuntimeId, u64)>| {
        let (runtime, taken) = taken.unzip();
        let attached = Attached { session: session.id, name: session.name.clone(), control, direct, ended, runtime, taken };
        caller.outbox.line(&Answer::to::<to::Attach>(id, Ok(attached)));
    };
    if let Some(handle) = shown_of(context, &session, attach.language) {
        // where the device cannot be opened (another namespace, another user) the client passes bytes on
        let terminal = attach.tty.as_ref().and_then(|name| tty::open(name).ok());
        let place = attach.stream.filter(|_| terminal.is_none()).and_then(|stream| handle.facts.place_of(stream));
        respond(joins == Joins::InControl, terminal.is_some(), None, place.map(|place| (handle.id, place.at)));
        let reader = terminal.map(|terminal| {
            caller.take_terminal(terminal.screen);
            terminal.keys
        });
        // a program that ends at this very moment is told like one that ended before
        if let Ok((client, _)) = handle.attach(Arc::clone(&caller.outbox), window, joins, caller.room(), attach.prefix, place).await {
            caller.attach(handle, client);
            // only now: keys typed before have waited in the terminal, and have somewhere to go
            if let Some(keys) = reader {
                caller.read_terminal(tokio::spawn(read_keys(Arc::clone(caller), keys, attach.prefix)).abort_handle());
            }
        } else {
            let ended = handle.ended().await;
            let why = Detached::Ended { exit_code: ended.exit_code(), sentence: ended.sentence };
            caller.outbox.line(&Push::Detached { why, alternate: Some(false) });
        }
        return Ok(());
    }
    if let Some(language) = attach.language {
        return Err(no_interpreter(&session, language));
    }
    if session.runtime.is_none() {
        find_live(context, session.id.to_string(), "attach").await?;
    }
    context.store.seen(session.id).await?;
    // the last screen, and how it ended
    let shot = ended_shot(context, &session, 0).await?;
    respond(false, false, Some(session.in_words()), None);
    let last = shot.rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |row| row + 1);
    for row in &shot.rows[..last] {
        caller.outbox.output(row.ansi.as_bytes());
        caller.outbox.output(b"\r\n");
    }
    let why = Detached::Ended { sentence: session.in_words(), exit_code: 0 };
    caller.outbox.line(&Push::Detached { why, alternate: Some(false) });
    Ok(())
}

/// Keys read ahead of a program that does not read its input; what is typed beyond that is dropped, so that our own keys are heard.
const MAX_AHEAD: usize = 8 << 20;

/// Keys before the one that leaves get this long to reach the program.
const LAST_KEYS: std::time::Duration = std::time::Duration::from_secs(1);

/// Keys of a terminal the daemon has: most go to the program, a few are for us. Those few are obeyed even while the
/// program takes nothing.
async fn read_keys(caller: Arc<Caller>, keys: Source, prefix: Prefix) {
    let mut prefixed = PrefixKeys::new(prefix);
    let mut bytes = [0; 1024];
    // typed at the session that was here before, but for this one
    let mut behind = caller.take_typed_behind();
    let mut ahead: Vec<u8> = Vec::new();
    loop {
        let sending = std::mem::take(&mut ahead);
        let is_sending = !sending.is_empty();
        let input = caller.input(sending);
        tokio::pin!(input);
        loop {
            let count = if behind.is_empty() {
                tokio::select! {
                    () = &mut input, if is_sending => break,
                    count = keys.read(&mut bytes) => count,
                }
            } else {
                // a part of one read, so it fits
                let typed = std::mem::take(&mut behind);
                bytes[..typed.len()].copy_from_slice(&typed);
                Ok(typed.len())
            };
            let Ok(count @ 1..) = count else { return };
            for action in prefixed.feed(&bytes[..count]) {
                let why = match action {
                    Action::Send(bytes) => {
                        if ahead.len() + bytes.len() <= MAX_AHEAD {
                            ahead.extend_from_slice(&bytes);
                        }
                        continue;
                    }
                    Action::Help => {
                        let _ = key_help(&caller).await;
                        continue;
                    }
                    Action::TakeControl => {
                        let _ = take_control(&caller).await;
                        continue;
                    }
                    Action::Detach => Detached::ByKey,
                    Action::History => Detached::History,
                    Action::Switch { direction, behind } => {
                        caller.type_behind(behind);
                        Detached::Switch { direction }
                    }
                };
                if is_sending || !ahead.is_empty() {
                    // what was typed before is still for the program
                    let last = async {
                        if is_sending {
                            (&mut input).await;
                        }
                        caller.input(std::mem::take(&mut ahead)).await;
                    };
                    let _ = tokio::time::timeout(LAST_KEYS, last).await;
                }
                caller.outbox.line(&Push::Detached { why, alternate: None });
                return;
            }
            if !is_sending && !ahead.is_empty() {
                break;
            }
        }
    }
}

/// The client wants its terminal back: nothing is written to it after the answer. Tells whether it is in its alternate
/// screen, if that is known.
pub async fn leave(caller: &Caller) -> Result<Option<bool>, Failure> {
    let in_alternate = caller.leave().await;
    caller.outbox.skip_output();
    caller.outbox.written().await;
    Ok(in_alternate)
}

async fn ended_shot(context: &Context, session: &Session, scrollback: u32) -> Result<ScreenShot, Failure> {
    let (_, dir) = session_runtime_dir(context, session).ok_or_else(|| no_screen(session))?;
    if matches!(session.runtime_state, Some(RuntimeState::Refused { .. })) {
        return Err(no_screen(session));
    }
    let tail = recording::tail(&dir).map_err(|_| no_screen(session))?;
    let size = session.size.unwrap_or(Size { cols: 80, rows: 24 });
    let at = match session.runtime_state {
        Some(RuntimeState::Hibernated { screen_at: Some(at), .. }) => at.min(tail.end),
        _ => tail.end,
    };
    let mut shot = Picture::open(&dir, size, at).shot(at).await;
    shot.scrollback = scrolled_away(&dir, at, scrollback as usize).await;
    Ok(shot)
}

pub(super) fn no_screen(session: &Session) -> Failure {
    let why = match &session.runtime_state {
        Some(RuntimeState::Refused { .. }) => session.error.as_deref().unwrap_or("it never started"),
        // an interpreter has no screen, and its recording is its own
        None if session.runtime.is_none() => "no program was started in it; `history` shows its execs, `replay -l LANGUAGE` plays them",
        _ => "nothing of it was recorded",
    };
    Failure::new(Code::Status, format!("session {} has no screen: {why}", session.name))
}

pub async fn detach(context: &Context, name: String) -> Result<usize, Failure> {
    let (_, handle) = find_live(context, name, "detach").await?;
    handle.detach_all().await
}

pub async fn resize(caller: &Caller, size: Size) -> Result<(), Failure> {
    let window = check_size(size)?;
    let (handle, client) = caller.attachment().ok_or_else(not_attached)?;
    handle.resize(client, window).await;
    Ok(())
}

pub async fn take_control(caller: &Caller) -> Result<(), Failure> {
    let (handle, client) = caller.attachment().ok_or_else(not_attached)?;
    handle.take_control(client).await;
    Ok(())
}

pub async fn key_help(caller: &Caller) -> Result<(), Failure> {
    let (handle, client) = caller.attachment().ok_or_else(not_attached)?;
    handle.key_help(client).await;
    Ok(())
}

pub(super) fn no_interpreter(session: &Session, language: Language) -> Failure {
    let text = format!("session {0} has no {language} runtime: `sessions-tui exec -s {0} -l {language} CODE` starts one", session.name);
    Failure::new(Code::Status, text)
}

fn not_attached() -> Failure {
    Failure::new(Code::Status, "this client is not attached to a session")
}

pub async fn send(context: &Context, name: String, bytes: &str, queue_input: bool, author: Author) -> Result<(), Failure> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(bytes)
        .map_err(|error| Failure::usage(format!("\"bytes\" must be base64: {error}")))?;
    if let (fresh, Some(previous)) = find_to_use(context, name.clone(), author).await? {
        return Err(Failure::new(
            Code::Status,
            format!(
                "{}; session {} was opened in its place; `sessions-tui new -n {}` starts a program in it",
                previous.sentence(),
                fresh.id,
                fresh.name
            ),
        ));
    }
    wake_if_hibernated(context, name.clone(), None, author).await?;
    let (session, handle) = find_live(context, name, "send").await?;
    handle.facts.set_sender(author);
    let given = async { if queue_input { handle.queue_input(bytes).await } else { handle.input(Typist::Api, bytes).await } };
    match tokio::time::timeout(SEND_PATIENCE, given).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::new(
            Code::TimedOut,
            format!("the program in {} is not reading its input: part of it may still arrive", session.name),
        )),
    }
}

pub async fn screen(context: &Context, name: String, scrollback: u32, language: Option<Language>) -> Result<ScreenShot, Failure> {
    let session = find(context, name).await?;
    match shown_of(context, &session, language) {
        Some(handle) => {
            let (mut shot, at) = handle.shot().await?;
            // read here, not in the runtime's task: a long history must not hold up the session
            shot.scrollback = scrolled_away(&context.paths.recording(handle.id), at, scrollback as usize).await;
            Ok(shot)
        }
        None => match language {
            Some(language) => Err(no_interpreter(&session, language)),
            None => ended_shot(context, &session, scrollback).await,
        },
    }
}
