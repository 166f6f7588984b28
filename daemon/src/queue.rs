//! The queue's loop: whenever a place may have become free, whoever is next is started. It sleeps in between.

use tokio::sync::broadcast::error::RecvError;

use crate::context::{Context, Stop};
use crate::launch::{self, Ready};
use crate::pausing;
use crate::store::{self, Promoted};

/// After any of these a place may be free, or somebody new may wait.
const FREEING: &[&str] = &["complete", "error", "timeout", "lost", "queued", "exit"];

pub async fn run(context: Context) {
    let mut news = context.store.announcements();
    let mut settings = context.settings.changes();
    loop {
        promote_all(&context).await;
        loop {
            tokio::select! {
                () = context.queue.changed() => break,
                _ = settings.changed() => break,
                event = news.recv() => match event {
                    Ok(event) if FREEING.contains(&event.kind.as_str()) => {
                        if matches!(event.kind.as_str(), "error" | "complete") {
                            // cancelled, or refused: its caller's environment is of no more use
                            context.queue.take_environment(event.session);
                        }
                        break;
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

async fn promote_all(context: &Context) {
    // what cannot be started now holds up nobody behind it
    let mut aside = Vec::new();
    while *context.stop.borrow() == Stop::No {
        match context.store.promote(context.config().groups.clone(), context.local_lease, aside.clone()).await {
            Ok(Some(promotion)) => match promotion.outcome {
                Ok(Some(promoted)) => {
                    let context = context.clone();
                    // a holder that is slow to start holds up nobody either
                    tokio::spawn(async move { begin(&context, promoted).await });
                }
                Ok(None) => {}
                Err(error) => {
                    // its thread's last program is on its way out: its exit brings us back here
                    if !matches!(error, store::Error::Ending { .. }) {
                        context.log.warn(&format!("session {}: its turn came, but {error}", promotion.session));
                    }
                    aside.push(promotion.session);
                }
            },
            Ok(None) => return,
            Err(error) => return context.log.warn(&format!("the queue: {error}")),
        }
    }
}

/// Starts a session whose turn has come.
pub async fn begin(context: &Context, promoted: Promoted) {
    let Promoted { session, adopted, launch } = promoted;
    for runtime in adopted {
        context.registry.pass_on(runtime, session.id);
    }
    pausing::settle(context, session.id).await;
    let environment = context.queue.take_environment(session.id);
    let Some((runtime, queued)) = launch else { return };
    let holder = launch::holder(context, runtime);
    let ready = Ready {
        runtime,
        session: session.id,
        thread: session.thread,
        name: session.name.clone(),
        launch: queued.launch,
        environment: environment.unwrap_or_else(launch::own_environment),
        holder,
        interpreter: None,
        preface: String::new(),
    };
    match launch::start(context, ready).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => context.log.warn(&format!("session {}: its turn came, but {why}", session.name)),
        Err(error) => context.log.warn(&format!("session {}: {error}", session.name)),
    }
}
