//! Terminals: attach and what an attached client says, send, screen, detach.

use std::sync::Arc;

use base64::Engine;
use shared::config::Prefix;
use shared::keys::{Action, PrefixKeys};
use shared::message::{Answer, Attach, Attached, Code, Detached, Failure, Push, ScreenShot};
use shared::runtime::RuntimeState;
use shared::screen::Size;
use shared::session::Session;

use super::{Caller, find, find_live, in_words, session_runtime_dir};
use crate::context::Context;
use crate::picture::Picture;
use crate::poll::Source;
use crate::recording;
use crate::runtime::Typist;
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
    caller.leave().await;
    let respond = |control: bool, direct: bool, ended: Option<String>| {
        let attached = Attached { session: session.id, name: session.name.clone(), control, direct, ended };
        caller.outbox.line(&Answer::new(id, Ok(attached)));
    };
    if let Some(handle) = context.registry.get(session.id) {
        // where the device cannot be opened (another namespace, another user) the client passes bytes on
        let terminal = attach.tty.as_ref().and_then(|name| tty::open(name).ok());
        respond(!attach.read_only, terminal.is_some(), None);
        let reader = terminal.map(|terminal| {
            caller.take_terminal(terminal.screen);
            terminal.keys
        });
        // a program that ends at this very moment is told like one that ended before
        if let Ok((client, _)) = handle.attach(Arc::clone(&caller.outbox), window, attach.read_only, attach.prefix).await {
            caller.attach(handle, client);
            // only now: keys typed before have waited in the terminal, and have somewhere to go
            if let Some(keys) = reader {
                caller.read_terminal(tokio::spawn(read_keys(Arc::clone(caller), keys, attach.prefix)).abort_handle());
            }
        } else {
            let ended = handle.ended().await;
            caller.outbox.line(&Push::Detached(Detached::Ended { exit_code: ended.exit_code(), sentence: ended.sentence }));
        }
        return Ok(());
    }
    // the last screen, and how it ended
    let shot = ended_shot(context, &session, 0).await?;
    respond(false, false, Some(in_words(&session)));
    let last = shot.rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |row| row + 1);
    for row in &shot.rows[..last] {
        caller.outbox.output(row.ansi.as_bytes());
        caller.outbox.output(b"\r\n");
    }
    caller.outbox.line(&Push::Detached(Detached::Ended { sentence: in_words(&session), exit_code: 0 }));
    Ok(())
}

/// Keys of a terminal the daemon has: most go to the program, a few are for us.
async fn read_keys(caller: Arc<Caller>, keys: Source, prefix: Prefix) {
    let mut prefixed = PrefixKeys::new(prefix);
    let mut bytes = [0; 1024];
    while let Ok(count) = keys.read(&mut bytes).await {
        if count == 0 {
            return;
        }
        for action in prefixed.feed(&bytes[..count]) {
            match action {
                Action::Send(bytes) => caller.input(bytes).await,
                Action::Detach => {
                    caller.outbox.line(&Push::Detached(Detached::ByKey));
                    return;
                }
                Action::Help => {
                    let _ = key_help(&caller).await;
                }
                Action::TakeControl => {
                    let _ = take_control(&caller).await;
                }
            }
        }
    }
}

/// The client wants its terminal back: nothing is written to it after the answer.
pub async fn leave(caller: &Caller) -> Result<(), Failure> {
    caller.leave().await;
    caller.outbox.skip_output();
    caller.outbox.written().await;
    Ok(())
}

async fn ended_shot(context: &Context, session: &Session, scrollback: u32) -> Result<ScreenShot, Failure> {
    let missing = || Failure::new(Code::Status, format!("session {} has no screen: nothing of it was recorded", session.name));
    let (_, dir) = session_runtime_dir(context, session).ok_or_else(missing)?;
    if matches!(session.runtime_state, Some(RuntimeState::Refused { .. })) {
        return Err(Failure::new(
            Code::Status,
            format!("session {} has no screen: {}", session.name, session.error.as_deref().unwrap_or("it never started")),
        ));
    }
    let tail = recording::cut_torn_tail(&dir).map_err(|_| missing())?;
    let size = session.size.unwrap_or(Size { cols: 80, rows: 24 });
    Ok(Picture::open(&dir, size, tail.end).shot(tail.end, scrollback).await)
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

fn not_attached() -> Failure {
    Failure::new(Code::Status, "this client is not attached to a session")
}

pub async fn send(context: &Context, name: String, bytes: &str) -> Result<(), Failure> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(bytes)
        .map_err(|error| Failure::usage(format!("\"bytes\" must be base64: {error}")))?;
    let (session, handle) = find_live(context, name, "send").await?;
    match tokio::time::timeout(SEND_PATIENCE, handle.input(Typist::Api, bytes)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::new(
            Code::TimedOut,
            format!("the program in {} is not reading its input: part of it may still arrive", session.name),
        )),
    }
}

pub async fn screen(context: &Context, name: String, scrollback: u32) -> Result<ScreenShot, Failure> {
    let session = find(context, name).await?;
    match context.registry.get(session.id) {
        Some(handle) => handle.shot(scrollback).await,
        None => ended_shot(context, &session, scrollback).await,
    }
}
