//! One async function per request. They know the context and the caller, but no socket.

mod daemon;
mod event;
mod session;
mod terminal;
mod wait;

use std::sync::{Arc, Mutex, PoisonError};

use shared::event::Author;
use shared::id::SessionId;
use shared::message::{Answer, Code, Failure, Request};
use shared::runtime::RuntimeState;
use shared::session::Session;
use tokio::task::AbortHandle;

use crate::attachment::Outbox;
use crate::context::Context;
use crate::poll::Sink;
use crate::runtime::{ClientId, RuntimeHandle, Typist};
use crate::store;

/// Whoever sent the request, as far as requests need to know.
pub struct Caller {
    pub outbox: Arc<Outbox>,
    attachment: Mutex<Option<(RuntimeHandle, ClientId)>>,
    /// The client's terminal, while the daemon has it.
    terminal: Mutex<Option<Terminal>>,
}

struct Terminal {
    screen: Arc<Sink>,
    reader: Option<AbortHandle>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

impl Caller {
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, attachment: Mutex::new(None), terminal: Mutex::new(None) }
    }

    fn attachment(&self) -> Option<(RuntimeHandle, ClientId)> {
        self.attachment.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn attach(&self, handle: RuntimeHandle, client: ClientId) {
        *self.attachment.lock().unwrap_or_else(PoisonError::into_inner) = Some((handle, client));
    }

    /// The terminal to write to, if the daemon has it.
    pub fn screen(&self) -> Option<Arc<Sink>> {
        self.terminal.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|terminal| Arc::clone(&terminal.screen))
    }

    fn take_terminal(&self, screen: Sink) {
        *self.terminal.lock().unwrap_or_else(PoisonError::into_inner) = Some(Terminal { screen: Arc::new(screen), reader: None });
    }

    fn read_terminal(&self, reader: AbortHandle) {
        match self.terminal.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(terminal) => terminal.reader = Some(reader),
            None => reader.abort(),
        }
    }

    /// Typed bytes go to the terminal the caller is attached to; without one they are for nobody.
    pub async fn input(&self, bytes: Vec<u8>) {
        if let Some((handle, client)) = self.attachment() {
            // a program that has just ended is told by its own push
            let _ = handle.input(Typist::Client(client), bytes).await;
        }
    }

    /// The attachment is over. Gives whether the client's terminal was in its alternate screen, if it was attached.
    pub async fn leave(&self) -> Option<bool> {
        let attachment = self.attachment.lock().unwrap_or_else(PoisonError::into_inner).take();
        let in_alternate = match attachment {
            Some((handle, client)) => handle.detach(client).await,
            None => None,
        };
        // with its reader; what is queued for it goes nowhere
        self.terminal.lock().unwrap_or_else(PoisonError::into_inner).take();
        in_alternate
    }
}

/// Whether the next thing the client says only makes sense after this one.
pub fn is_in_order(request: &Request) -> bool {
    matches!(request, Request::Attach(_) | Request::Resize { .. } | Request::TakeControl | Request::KeyHelp | Request::Leave)
}

/// Whether a request only waits, so that it is of no use once the client has gone.
pub fn only_waits(request: &Request) -> bool {
    matches!(request, Request::Wait { .. })
}

/// Carries a request out; `None` when it has sent its own answer.
pub async fn perform(context: &Context, caller: &Arc<Caller>, id: u64, request: Request) -> Result<Option<Answer>, Failure> {
    macro_rules! answer {
        ($outcome:expr) => {
            Ok(Some(Answer::new(id, $outcome)))
        };
    }
    match request {
        Request::New(new) => answer!(session::new(context, new).await),
        Request::List(filter) => answer!(session::list(context, filter).await),
        Request::Show { name } => answer!(session::show(context, name).await),
        Request::Rename { name, new } => answer!(session::rename(context, name, new).await),
        Request::Kill { name } => answer!(session::kill(context, name).await),
        Request::Remove { name } => answer!(session::remove(context, name).await),
        Request::Send { name, bytes } => answer!(terminal::send(context, name, &bytes).await),
        Request::Screen { name, scrollback } => answer!(terminal::screen(context, name, scrollback).await),
        Request::Wait { name, condition, timeout_ms } => answer!(wait::wait(context, name, condition, timeout_ms).await),
        Request::Attach(attach) => terminal::attach(context, caller, id, attach).await.map(|()| None),
        Request::Detach { name } => answer!(terminal::detach(context, name).await),
        Request::Resize { size } => answer!(terminal::resize(caller, size).await),
        Request::TakeControl => answer!(terminal::take_control(caller).await),
        Request::KeyHelp => answer!(terminal::key_help(caller).await),
        Request::Leave => answer!(terminal::leave(caller).await),
        Request::Events { name, since, follow } => event::events(context, caller, id, name, since, follow).await.map(|()| None),
        Request::Watch => answer!(event::watch(context, caller).await),
        Request::Status => answer!(daemon::status(context)),
        Request::Stop { end_sessions, restart } => daemon::stop(context, caller, id, end_sessions, restart).await.map(|()| None),
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        let code = match error {
            store::Error::SessionIsLive { .. } => Code::Status,
            store::Error::NameTaken(_) => Code::Usage,
            store::Error::Gone => Code::NotFound,
            _ => Code::Failed,
        };
        Self::new(code, error.to_string())
    }
}

/// The session a user means, as stored, with what is known live.
async fn find(context: &Context, name: String) -> Result<Session, Failure> {
    let id = context.store.find(name).await?;
    Ok(with_live(context, context.store.session(id).await?))
}

/// The runtime of a session that must be live for what is asked.
async fn find_live(context: &Context, name: String, verb: &str) -> Result<(Session, RuntimeHandle), Failure> {
    let session = find(context, name).await?;
    match context.registry.get(session.id) {
        Some(handle) => Ok((session, handle)),
        None if session.status.has_ended() => {
            Err(Failure::new(Code::Status, format!("cannot {verb}: session {} is {}", session.name, in_words(&session))))
        }
        None => Err(Failure::failed(format!(
            "cannot {verb}: the holder of session {} does not answer; it is tried again every second",
            session.name
        ))),
    }
}

/// `completed (exit code 0)`
fn in_words(session: &Session) -> String {
    match &session.status_reason {
        Some(reason) => format!("{} ({reason})", session.status),
        None => session.status.to_string(),
    }
}

fn with_live(context: &Context, mut session: Session) -> Session {
    if let Some(handle) = context.registry.get(session.id) {
        session.runtime_state = Some(RuntimeState::Running { pid: handle.facts.pid });
        session.clients = handle.facts.clients();
        session.size = Some(handle.facts.size());
        if let Some(at) = handle.facts.last_activity() {
            session.last_activity_at = session.last_activity_at.max(at);
        }
    }
    session
}

/// Requests over the socket come from scripts and people alike; keys of attached clients are a person's.
const AUTHOR: Author = Author::Api;

fn session_runtime_dir(context: &Context, session: &Session) -> Option<(SessionId, std::path::PathBuf)> {
    session.runtime.map(|runtime| (session.id, context.paths.recording(runtime)))
}
