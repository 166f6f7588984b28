//! After a restart of the machine: programs that were lost are started again where they were, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use shared::config::Restore;
use shared::event::Author;
use shared::id::SessionId;
use shared::message::{Code, Failure, Restored};
use shared::runtime::LostReason;
use shared::session::Session;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::context::{Context, Stop};
use crate::launch;
use crate::lifecycle::End;
use crate::store::{AfterLoss, New, Program};
use crate::wake::{self, Was};

/// A program that has said nothing for this long has come up; the next one's turn.
const SETTLED: Duration = Duration::from_millis(500);

/// … and so has one that goes on talking.
const STAGE: Duration = Duration::from_secs(5);

/// What becomes of a session whose program came to this end while no daemon was there.
pub fn after(end: &End, policy: Restore) -> AfterLoss {
    match (end, policy) {
        (End::Lost(LostReason::HolderGone | LostReason::MachineRestarted), Restore::Ask) => AfterLoss::Asked,
        (End::Lost(LostReason::HolderGone | LostReason::MachineRestarted), Restore::Auto) => AfterLoss::Due,
        _ => AfterLoss::Stays,
    }
}

/// Goes on where an earlier daemon stopped, too: what is due is stored.
pub async fn run(context: Context) {
    let due = match context.store.to_restore(false).await {
        Ok(due) => due,
        Err(error) => return context.log.warn(&format!("looking for what is to be restored: {error}")),
    };
    if due.is_empty() {
        return;
    }
    context.log.note(&format!("{} to be started again", shared::text::count(due.len(), "lost session")));
    for restored in all(&context, due, None, Author::Daemon).await {
        match restored.error {
            None => context.log.note(&format!("session {} of {} was started again", restored.lost, restored.name)),
            Some(why) => context.log.warn(&format!("session {} of {} could not be restored: {why}", restored.lost, restored.name)),
        }
    }
}

/// Restores these, a few at a time, in their order.
pub async fn all(context: &Context, lost: Vec<SessionId>, environment: Option<Vec<(String, String)>>, author: Author) -> Vec<Restored> {
    let places = Arc::new(Semaphore::new(context.config().pause.restore_at_once.max(1) as usize));
    let mut stages = JoinSet::new();
    for (number, id) in lost.into_iter().enumerate() {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        if *context.stop.borrow() != Stop::No {
            break;
        }
        let (context, environment) = (context.clone(), environment.clone());
        stages.spawn(async move {
            let restored = one(&context, id, environment, author).await;
            if let Some(session) = restored.session.as_ref().map(|session| session.id) {
                // whoever asked need not wait for that, only those behind it
                tokio::spawn(async move {
                    come_up(&context, session).await;
                    drop(place);
                });
            }
            (number, restored)
        });
    }
    let mut restored = Vec::new();
    while let Some(Ok(done)) = stages.join_next().await {
        restored.push(done);
    }
    restored.sort_by_key(|(number, _)| *number);
    restored.into_iter().map(|(_, restored)| restored).collect()
}

/// Waits until a program that was just started is quiet.
async fn come_up(context: &Context, session: SessionId) {
    let Some(handle) = context.registry.of_session(session) else { return };
    let mut activity = handle.activity();
    let quiet = async { while let Ok(Ok(())) = tokio::time::timeout(SETTLED, activity.changed()).await {} };
    let _ = tokio::time::timeout(STAGE, quiet).await;
}

async fn one(context: &Context, id: SessionId, environment: Option<Vec<(String, String)>>, author: Author) -> Restored {
    let name = context.store.session(id).await.map_or_else(|_| id.to_string(), |session| session.name);
    match start(context, id, environment, author).await {
        Ok(session) => Restored { name, lost: id, session: Some(session), error: None },
        Err(failure) => {
            if failure.code != Code::NotFound {
                let _ = context.store.could_not_restore(id, failure.message.clone()).await;
            }
            Restored { name, lost: id, session: None, error: Some(failure.message) }
        }
    }
}

async fn start(context: &Context, id: SessionId, environment: Option<Vec<(String, String)>>, author: Author) -> Result<Session, Failure> {
    let lost = context.store.session(id).await?;
    let environment = wake::environment(environment);
    let Some(asleep) = context.store.asleep(id).await? else {
        return Err(Failure::new(Code::Status, format!("nothing of {} was lost", lost.name)));
    };
    let again = wake::again(context, asleep, Was::Lost).await?;
    wake::check(&lost, &again.launch, &environment)?;
    let program = Program {
        argv: again.launch.argv.clone(),
        is_named: true,
        env_delta: again.launch.env_delta.clone(),
        size: Some(again.launch.size),
        umask: again.launch.umask,
        keeps: again.launch.keeps,
    };
    let new = New {
        name: Some(lost.name.clone()),
        here: lost.workspace.clone(),
        // exactly there, whatever the terminal's row says
        workspace: Some(again.launch.cwd.clone()),
        program: Some(program),
        group: lost.group.clone(),
        runtime: again.runtime,
        lost: Some(Box::new(lost)),
        ..launch::plain(context, author)
    };
    let opened = context.store.restore(id, new, again.continues).await?;
    if opened.launch.is_some()
        && let Err(why) = wake::start(context, &opened.session, again, environment).await?
    {
        return Err(Failure::failed(why));
    }
    Ok(opened.session)
}
