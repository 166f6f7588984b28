//! One async function per request. They know the context and the caller, but no socket.

mod daemon;
mod event;
mod exec;
mod files;
mod find;
mod forget;
mod hook;
mod import;
mod life;
mod live;
mod pause;
mod queue;
mod record;
mod replay;
mod search;
mod session;
mod stats;
mod terminal;
mod wait;
mod webhook;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shared::event::Author;
use shared::exec::Language;
use shared::id::SessionId;
use shared::message::{Answer, Code, Failure, Previous, Request, to};
use shared::session::{Session, Status};
use tokio::task::AbortHandle;

use crate::attachment::Outbox;
use crate::context::Context;
use crate::handle::ask::{ClientId, Room, Typist};
use crate::handle::runtime::RuntimeHandle;
use crate::peer::Peer;
use crate::poll::Sink;
use crate::{cleanup, store};

pub use hook::drain_hooks;
pub use pause::go_on;

use crate::overlay::{with_handles, with_live};

/// Whoever sent the request, as far as requests need to know.
pub struct Caller {
    pub outbox: Arc<Outbox>,
    peer: Peer,
    /// It has said that a person acts through it.
    is_person: AtomicBool,
    attachment: Mutex<Option<(RuntimeHandle, ClientId)>>,
    /// Its terminal has shown a session.
    has_shown: AtomicBool,
    /// Keys for the session that it goes on to.
    typed_behind: Mutex<Vec<u8>>,
    /// The client's terminal, while the daemon has it.
    terminal: Mutex<Option<Terminal>>,
    /// A recording that is being taken in.
    import: Mutex<Option<import::Importing>>,
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
    pub fn new(outbox: Arc<Outbox>, peer: Peer) -> Self {
        Self {
            outbox,
            peer,
            is_person: AtomicBool::new(false),
            attachment: Mutex::new(None),
            has_shown: AtomicBool::new(false),
            typed_behind: Mutex::default(),
            terminal: Mutex::new(None),
            import: Mutex::new(None),
        }
    }

    pub fn says_person(&self) {
        self.is_person.store(true, Ordering::Relaxed);
    }

    /// Who it is, as far as the daemon can see.
    fn author(&self) -> Author {
        self.peer.author(self.is_person.load(Ordering::Relaxed))
    }

    fn attachment(&self) -> Option<(RuntimeHandle, ClientId)> {
        self.attachment.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What an attachment finds on the client's terminal; from then on it is ours.
    fn room(&self) -> Room {
        if self.has_shown.swap(true, Ordering::Relaxed) { Room::OfSession } else { Room::OfUser }
    }

    fn type_behind(&self, keys: Vec<u8>) {
        *self.typed_behind.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    fn take_typed_behind(&self) -> Vec<u8> {
        std::mem::take(&mut *self.typed_behind.lock().unwrap_or_else(PoisonError::into_inner))
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
    matches!(
        request,
        Request::Attach(_)
            | Request::Import(_)
            | Request::Resize { .. }
            | Request::TakeControl
            | Request::KeyHelp
            | Request::Leave
            // a pause and what takes it back may follow each other faster than the first is stored
            | Request::Pause(_)
            | Request::Resume(_)
    )
}

/// Whether a request only waits, so that it is of no use once the client has gone.
pub fn only_waits(request: &Request) -> bool {
    matches!(
        request,
        Request::Wait { .. }
            | Request::Result { .. }
            | Request::Replay(_)
            | Request::Seek { .. }
            | Request::Scrolled { .. }
            | Request::Records { .. }
            | Request::Search(_)
            | Request::Find { .. }
            | Request::Pulse(_)
            | Request::Look(_)
    )
}

/// Carries a request out; `None` when it has sent its own answer.
pub async fn perform(context: &Context, caller: &Arc<Caller>, id: u64, request: Request) -> Result<Option<Answer>, Failure> {
    macro_rules! answer {
        ($request:ident, $outcome:expr) => {
            Ok(Some(Answer::to::<to::$request>(id, $outcome)))
        };
    }
    let author = caller.author();
    match request {
        Request::New(new) => answer!(New, session::new(context, new, author).await),
        Request::List(filter) => answer!(List, session::list(context, filter).await),
        Request::Rows { sessions } => answer!(Rows, session::rows(context, sessions).await),
        Request::Show { name } => answer!(Show, session::show(context, name).await),
        Request::Rename { name, new } => answer!(Rename, session::rename(context, name, new, author).await),
        Request::Kill { name } => answer!(Kill, session::kill(context, name, author).await),
        Request::Remove { name } => answer!(Remove, session::remove(context, name).await),
        Request::Pause(asked) => answer!(Pause, pause::pause(context, asked, author).await),
        Request::Resume(asked) => answer!(Resume, pause::resume(context, asked, author).await),
        Request::Restore { names, environment } => answer!(Restore, pause::restore(context, names, environment, author).await),
        Request::Complete { name, result } => answer!(Complete, life::complete(context, name, result, author).await),
        Request::Fail { name, error } => answer!(Fail, life::fail(context, name, error, author).await),
        Request::Reset { name } => answer!(Reset, life::reset(context, name, author).await),
        Request::Iterate { name, data } => answer!(Iterate, record::iterate(context, name, data, author).await),
        Request::Tell { name, kind, data } => answer!(Tell, record::tell(context, name, kind, data, author).await),
        Request::ToolCall { name, tool, input, output } => {
            answer!(ToolCall, record::tool_call(context, name, tool, input, output, author).await)
        }
        Request::Learn { name, text, file } => answer!(Learn, record::learn(context, name, text, file, author).await),
        Request::Context { name, set, metadata } => answer!(Context, record::context(context, name, set, metadata, author).await),
        Request::Search(query) => answer!(Search, search::search(context, caller, id, *query).await),
        Request::Find { runtime, pattern, from, forward } => answer!(Find, find::find(context, runtime, pattern, from, forward).await),
        Request::Stats(filter) => answer!(Stats, stats::stats(context, filter).await),
        Request::Cleanup(asked) => answer!(Cleanup, cleanup::clean(context, asked).await),
        Request::Audit { thread, limit } => answer!(Audit, stats::audit(context, thread, limit).await),
        Request::Groups => answer!(Groups, queue::groups(context).await),
        Request::SetGroup { name, limit } => answer!(SetGroup, queue::set(context, name, limit).await),
        Request::UnsetGroup { name } => answer!(UnsetGroup, queue::unset(context, name).await),
        Request::AddWebhook { url, filter, secret } => answer!(AddWebhook, webhook::add(context, url, filter, secret).await),
        Request::Webhooks => answer!(Webhooks, webhook::list(context).await),
        Request::RemoveWebhook { webhook } => answer!(RemoveWebhook, webhook::remove(context, webhook).await),
        Request::EnableWebhook { webhook } => answer!(EnableWebhook, webhook::enable(context, webhook).await),
        Request::TestWebhook { webhook } => answer!(TestWebhook, webhook::test(context, webhook).await),
        Request::Deliveries { webhook, limit } => answer!(Deliveries, webhook::deliveries(context, webhook, limit).await),
        Request::Send { name, bytes, queue_input } => answer!(Send, terminal::send(context, name, &bytes, queue_input, author).await),
        Request::Exec(call) => answer!(Exec, exec::exec(context, caller, call, author).await),
        Request::Result { exec, wait_ms, output_limit, stream } => {
            answer!(Result, exec::result(context, caller, exec, wait_ms, output_limit, stream).await)
        }
        Request::Output { exec, stream, offset, limit } => answer!(Output, exec::page(context, exec, stream, offset, limit).await),
        Request::Cancel { exec } => answer!(Cancel, exec::cancel(context, exec).await),
        Request::State { place, language, history, reveal } => answer!(State, exec::state(context, place, language, history, reveal).await),
        Request::History { place, language, limit } => answer!(History, exec::history(context, place, language, limit).await),
        Request::ResetRuntime { place, language } => answer!(ResetRuntime, exec::reset(context, place, language, author).await),
        Request::Screen { name, scrollback, language } => answer!(Screen, terminal::screen(context, name, scrollback, language).await),
        Request::Wait { name, condition, timeout_ms } => answer!(Wait, wait::wait(context, name, condition, timeout_ms).await),
        Request::Import(step) => import::step(context, caller, id, step, author).await.map(Some),
        Request::Forget { name } => answer!(Forget, forget::forget(context, name, author).await),
        Request::Disk(filter) => answer!(Disk, stats::disk(context, filter).await),
        Request::Replay(of) => answer!(Replay, replay::outline(context, of).await),
        Request::Seek { runtime, seek } => answer!(Seek, replay::seek(context, runtime, seek).await),
        Request::Records { runtime, from, most, wait_ms } => answer!(Records, replay::records(context, runtime, from, most, wait_ms).await),
        Request::Scrolled { runtime, until, most } => answer!(Scrolled, replay::scrolled(context, runtime, until, most).await),
        Request::Pulse(of) => answer!(Pulse, live::pulse(context, of).await),
        Request::Look(look) => answer!(Look, live::look(context, look).await),
        Request::Seen { name } => answer!(Seen, live::seen(context, name).await),
        Request::Dismiss { name } => answer!(Dismiss, live::dismiss(context, name).await),
        Request::Calendar { filter, days } => answer!(Calendar, stats::calendar(context, filter, days).await),
        Request::Attach(attach) => terminal::attach(context, caller, id, attach).await.map(|()| None),
        Request::Hook(said) => answer!(Hook, hook::hook(context, said).await),
        Request::Explain { name } => answer!(Explain, hook::explain(context, name).await),
        Request::Agents => answer!(Agents, Ok(context.agents().known())),
        Request::Files { name, since, limit, at_once } => answer!(Files, files::changed(context, name, since, limit, at_once).await),
        Request::Commands { name, limit } => answer!(Commands, exec::commands(context, name, limit).await),
        Request::Detach { name } => answer!(Detach, terminal::detach(context, name).await),
        Request::Resize { size } => answer!(Resize, terminal::resize(caller, size).await),
        Request::TakeControl => answer!(TakeControl, terminal::take_control(caller).await),
        Request::KeyHelp => answer!(KeyHelp, terminal::key_help(caller).await),
        Request::Leave => answer!(Leave, terminal::leave(caller).await),
        Request::Events { name, since, follow } => event::events(context, caller, id, name, since, follow).await.map(|()| None),
        Request::Recent { name, before, most } => answer!(Recent, event::recent(context, name, before, most).await),
        Request::Watch => answer!(Watch, event::watch(context, caller).await),
        Request::Status => answer!(Status, daemon::status(context)),
        Request::Settings => answer!(Settings, daemon::settings(context)),
        Request::Stop { end_sessions, restart } => daemon::stop(context, caller, id, end_sessions, restart).await.map(|()| None),
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        if let store::Error::Refusal(failure) = error {
            return failure;
        }
        let code = match error {
            store::Error::Refused(_) | store::Error::Ending { .. } => Code::Status,
            store::Error::NameTaken(_) | store::Error::Usage(_) => Code::Usage,
            store::Error::Gone | store::Error::WebhookGone | store::Error::NotFound(_) => Code::NotFound,
            _ => Code::Failed,
        };
        Self::new(code, error.to_string())
    }
}

/// The session a user means, as stored, with what is known live.
async fn find(context: &Context, name: String) -> Result<Session, Failure> {
    let found = context.store.find(name).await?;
    Ok(with_live(context, context.store.session(found.session).await?))
}

/// As `find`, by its exact name or id: for requests that end or remove something.
async fn find_exact(context: &Context, name: String) -> Result<Session, Failure> {
    let found = context.store.find_exact(name).await?;
    Ok(with_live(context, context.store.session(found.session).await?))
}

/// The session to be worked with. One that was named by its id and was lost when the machine restarted cannot go on: that
/// is said and logged, and a fresh one on the same thread takes its place.
async fn find_to_use(context: &Context, name: String, author: Author) -> Result<(Session, Option<Previous>), Failure> {
    let found = context.store.find(name).await?;
    let session = with_live(context, context.store.session(found.session).await?);
    if !found.by_id || !session.is_lost_with_machine() {
        return Ok((session, None));
    }
    let fresh = session::open_record(context, session.id, author).await?;
    Ok((fresh.session, fresh.previous))
}

/// The runtime of a session that must be live for what is asked.
async fn find_live(context: &Context, name: String, verb: &str) -> Result<(Session, RuntimeHandle), Failure> {
    let session = find(context, name).await?;
    match program_of(context, &session) {
        Some(handle) => Ok((session, handle)),
        None if session.status.has_ended() => {
            Err(Failure::new(Code::Status, format!("cannot {verb}: session {} is {}", session.name, session.in_words())))
        }
        None if session.status == Status::Queued => {
            Err(Failure::new(Code::Status, format!("cannot {verb}: session {} is queued; its program has not started yet", session.name)))
        }
        None if session.is_hibernated() => Err(Failure::new(
            Code::Status,
            format!("cannot {verb}: session {0} is hibernated; `sessions-tui resume {0}` starts its program again", session.name),
        )),
        None if session.runtime_state.as_ref().is_none_or(|state| !state.is_live()) => Err(Failure::new(
            Code::Status,
            format!("cannot {verb}: session {0} has no program; `sessions-tui new -n {0} -- COMMAND` starts one in it", session.name),
        )),
        None => {
            let why = context.registry.unreachable(session.id).unwrap_or_else(|| "its holder does not answer".to_owned());
            Err(Failure::failed(format!("cannot {verb}: session {}: {why}; it is tried again every second", session.name)))
        }
    }
}

/// What of a session is to be looked at: the program, or the interpreter of a language; without a program, the one that was
/// used last.
fn shown_of(context: &Context, session: &Session, language: Option<Language>) -> Option<RuntimeHandle> {
    match language {
        Some(_) => context.registry.interpreter(session.thread, language),
        None => program_of(context, session).or_else(|| {
            let has_no_program = session.runtime.is_none();
            has_no_program.then(|| context.registry.interpreter(session.thread, None)).flatten()
        }),
    }
}

/// The program of a session: its own, or, before it has had one, what its thread's last session left running.
fn program_of(context: &Context, session: &Session) -> Option<RuntimeHandle> {
    let own = context.registry.of_session(session.id);
    if own.is_some() || session.runtime.is_some() { own } else { context.registry.of_thread(session.thread) }
}

/// Refuses what needs a holder that cannot be reached, before anything is stored.
fn check_reachable(context: &Context, session: &Session, verb: &str) -> Result<(), Failure> {
    match context.registry.unreachable(session.id) {
        Some(why) => Err(Failure::failed(format!("cannot {verb} session {}: {why}; nothing was changed", session.name))),
        None => Ok(()),
    }
}

fn session_runtime_dir(context: &Context, session: &Session) -> Option<(SessionId, std::path::PathBuf)> {
    session.runtime.map(|runtime| (session.id, context.paths.recording(runtime)))
}
