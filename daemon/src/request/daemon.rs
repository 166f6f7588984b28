//! The daemon itself: its status, and its end.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use shared::message::{Answer, DaemonStatus, Failure, PROTOCOL, SettingsNow, Stopped, to};

use super::Caller;
use crate::context::{Context, Stop};
use crate::ending::end_behind;
use crate::launch::ENDING_GRACE_MS;

#[expect(clippy::unnecessary_wraps, reason = "requests all have the same form")]
pub fn status(context: &Context) -> Result<DaemonStatus, Failure> {
    let mut warnings = context.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
    warnings.extend(context.settings.wrong());
    for handle in context.registry.all() {
        if let Some(why) = handle.facts.suspended() {
            warnings.push(format!("session {} is not being recorded: {why}", handle.facts.session()));
        }
    }
    warnings.extend(context.registry.all_unreachable().into_iter().map(|(session, why)| format!("session {session}: {why}")));
    Ok(DaemonStatus {
        pid: std::process::id(),
        version: shared::VERSION.to_owned(),
        protocol: PROTOCOL,
        started_at: context.started_at,
        live_sessions: context.registry.count_sessions() as u32,
        clients: context.clients.load(Ordering::Relaxed),
        socket: context.paths.socket().to_string_lossy().into_owned(),
        state_dir: context.paths.state.to_string_lossy().into_owned(),
        log: context.paths.log().to_string_lossy().into_owned(),
        warnings,
    })
}

#[expect(clippy::unnecessary_wraps, reason = "requests all have the same form")]
pub fn settings(context: &Context) -> Result<SettingsNow, Failure> {
    Ok(SettingsNow { config: (*context.config()).clone(), wrong: context.settings.wrong() })
}

/// Answers first: nobody can be told anything by a daemon that has stopped.
pub async fn stop(context: &Context, caller: &Caller, id: u64, end_sessions: bool, restart: bool) -> Result<(), Failure> {
    let mut stopped = Stopped { going_on: context.registry.count_sessions() as u32, ended: 0 };
    if end_sessions {
        // the queue first: what waits there would take the places that become free
        let cancelled = context.store.cancel_queue(caller.author()).await?;
        stopped = Stopped { going_on: 0, ended: stopped.going_on + cancelled };
        let live = context.registry.all();
        let mut endings = tokio::task::JoinSet::new();
        let sockets: Vec<_> = live.iter().map(|handle| context.paths.holder_socket(handle.id)).collect();
        let author = caller.author();
        for handle in live {
            endings.spawn(async move {
                handle.terminate(ENDING_GRACE_MS, author).await;
            });
        }
        // and what programs that ended earlier have left behind
        for entry in std::fs::read_dir(&context.paths.runtime).into_iter().flatten().filter_map(Result::ok) {
            let socket = entry.path();
            if socket != context.paths.socket()
                && !sockets.contains(&socket)
                && socket.extension().is_some_and(|extension| extension == "sock")
            {
                endings.spawn(async move {
                    end_behind(&socket, ENDING_GRACE_MS).await;
                });
            }
        }
        while endings.join_next().await.is_some() {}
    }
    context.log.note(&format!("stopping on request: {} go on, {} ended", stopped.going_on, stopped.ended));
    caller.outbox.line(&Answer::to::<to::Stop>(id, Ok(stopped)));
    context.stop.send_replace(if restart { Stop::Restart } else { Stop::Leave });
    Ok(())
}
