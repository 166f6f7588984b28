//! Starting an interpreter as its terminal was left.

use std::path::Path;
use std::sync::Arc;

use shared::exec::Language;
use shared::id::RuntimeId;
use shared::message::Failure;
use shared::runtime::{Keeps, Launch, LostReason, RuntimeState};
use shared::session::IDLE;

use crate::context::Context;
use crate::language::{self, find};
use crate::launch::{self, Driven, Ready};
use crate::store::Absent;

/// What a runtime is started with, if it has to be.
pub struct Caller {
    pub environment: Arc<Vec<(String, String)>>,
    pub umask: Option<u32>,
}

/// Starts an interpreter as its terminal was left. Gives what is to be said of the one before.
pub async fn start_runtime(context: &Context, absent: Absent, language: Language, caller: &Caller) -> Result<Option<String>, Failure> {
    let environment = if caller.environment.is_empty() { launch::own_environment() } else { caller.environment.to_vec() };
    let search = environment.iter().find(|(key, _)| key == "PATH").map_or("/usr/local/bin:/usr/bin:/bin", |(_, value)| value.as_str());
    let interpreter =
        find::interpreter(language, &context.config().runtime, Path::new(&absent.workspace), search).map_err(Failure::failed)?;
    let cannot = |error: std::io::Error| Failure::failed(format!("the {language} driver cannot be written: {error}"));
    let driver = language::install(language, &context.paths.drivers()).map_err(cannot)?;
    let runtime = RuntimeId::new();
    let scratch = context.paths.scratch(runtime);
    let (cwd, moved) = match [&absent.cwd, &absent.workspace].into_iter().find(|folder| Path::new(folder).is_dir()) {
        Some(folder) => (folder.clone(), folder != &absent.cwd),
        None => {
            return Err(Failure::failed(format!(
                "the workspace {} is gone: make it again, or use another with -w",
                shared::text::visible(&absent.workspace)
            )));
        }
    };
    let own = match &interpreter.virtualenv {
        Some(folder) => vec![
            ("VIRTUAL_ENV".to_owned(), folder.to_string_lossy().into_owned()),
            ("PATH".to_owned(), format!("{}/bin:{search}", folder.display())),
        ],
        None => Vec::new(),
    };
    let launch = Launch {
        argv: language::argv(language, &interpreter.path, &driver, &scratch),
        cwd,
        env_delta: absent.env.set.clone(),
        env_removed: absent.env.removed.clone(),
        size: absent.size,
        // what a call has printed is read back from there
        keeps: Keeps::Output,
        umask: caller.umask,
    };
    let note = absent
        .last
        .as_ref()
        .and_then(|(state, ending)| why_restarted(language, state, ending.as_deref()))
        .map(|note| if moved { format!("{note}; {} is gone, so it is in the workspace again", absent.cwd) } else { note });
    let holder = launch::holder(context, runtime);
    if !context.store.launch_runtime(absent.clone(), language, runtime, launch.clone(), context.local_lease).await? {
        // somebody else was quicker; the holder ends by itself
        return Ok(None);
    }
    let ready = Ready {
        runtime,
        session: absent.session,
        thread: absent.thread,
        name: absent.name,
        launch,
        environment,
        holder,
        interpreter: Some(Driven { language, removed: absent.env.removed, own }),
        preface: String::new(),
    };
    match launch::start(context, ready).await? {
        Ok(()) => Ok(note),
        Err(why) => Err(Failure::failed(format!("the {language} runtime could not be started: {why}"))),
    }
}

/// What a caller is told of the runtime before this one; `None` if nothing was lost that they did not ask to lose.
fn why_restarted(language: Language, state: &RuntimeState, ending: Option<&str>) -> Option<String> {
    let gone = "its variables are gone, its folder and environment were restored";
    let why = match (state, ending) {
        (_, Some("reset"))
        | (RuntimeState::Refused { .. } | RuntimeState::Starting | RuntimeState::Running { .. } | RuntimeState::Frozen { .. }, _) => {
            return None;
        }
        (RuntimeState::Hibernated { .. }, _) => "was ended when its session was hibernated".to_owned(),
        (_, Some(IDLE)) => "was idle for too long and has been ended".to_owned(),
        (_, Some(reason)) => format!("has been ended ({reason})"),
        (RuntimeState::Exited { status, .. }, None) => format!("ended with {status}"),
        (RuntimeState::Lost { reason: LostReason::MachineRestarted, .. }, None) => "was lost when the machine was restarted".to_owned(),
        (RuntimeState::Lost { .. }, None) => "was lost: its holder was killed".to_owned(),
    };
    Some(format!("the last {language} runtime {why}: {gone}"))
}
