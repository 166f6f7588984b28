//! Carries out what runtimes want from above them (`handle/upcall.rs`).

use shared::id::{RuntimeId, SessionId};

use crate::context::Context;
use crate::handle::upcall::Upcall;
use crate::{execute, request};

pub async fn run(context: Context) {
    let Some(mut upcalls) = context.upcalls.take() else { return };
    while let Some(upcall) = upcalls.recv().await {
        let context = context.clone();
        // none of them waits for another
        tokio::spawn(async move {
            match upcall {
                Upcall::MoveExecs { session, language, execs } => execute::go_on_elsewhere(context, session, language, execs).await,
                Upcall::RunLine { session, language, code } => execute::typed(&context, session, language, code).await,
                Upcall::Resume { session, runtime } => resume(&context, session, runtime).await,
            }
        });
    }
}

/// A refusal is shown where the key was pressed.
async fn resume(context: &Context, session: SessionId, runtime: RuntimeId) {
    if let Err(failure) = request::go_on(context, session, runtime).await
        && let Some(handle) = context.registry.runtime(runtime)
    {
        handle.notice(failure.message).await;
    }
}
