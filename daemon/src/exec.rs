//! One call to an interpreter, from being asked to its stored result: where it goes, what is known of it while it runs, what
//! is answered. The runtime's own task carries it out (`runtime/calls.rs`).

pub mod output;
pub mod result;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::event::Author;
use shared::exec::{DEFAULT_OUTPUT, ExecCall, ExecResult, Language, MAX_OUTPUT, PerStream, Place, Stage, Stream};
use shared::id::{ExecId, Offset, RuntimeId, SessionId};
use shared::message::{Code, Failure};
use shared::runtime::{Launch, LostReason, RuntimeState};
use shared::session::IDLE;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::context::Context;
use crate::language::{self, find};
use crate::launch::{self, Driven, Ready};
use crate::lifecycle::End;
use crate::runtime::Calling;
use crate::store::{self, Absent, Adopted, AskedExec, Begun, Finished, New, Outcome, RUNTIME_MODE, StoredExec};

/// How long a runtime that is being started, reached or ended is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A result that could not be stored (a full disk) is tried again this often.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// The calls that have not ended, by id; and where calls went last.
#[derive(Default)]
pub struct Execs {
    live: Mutex<HashMap<ExecId, Arc<Live>>>,
    known: Mutex<HashMap<(Place, Language), Known>>,
    /// Calls that are asking the database where to go: nobody may overtake them.
    asking: Mutex<HashMap<(Place, Language), usize>>,
}

/// Where the calls of a place go, for as long as nothing has changed.
#[derive(Clone)]
struct Known {
    standings: u64,
    runtime: RuntimeId,
    session: SessionId,
    name: String,
}

/// Places that are known at once: more than anybody uses.
const MAX_KNOWN: usize = 1000;

impl Execs {
    fn live(&self) -> MutexGuard<'_, HashMap<ExecId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: ExecId) -> Option<Arc<Live>> {
        self.live().get(&id).cloned()
    }

    /// The one that is there already, or this one.
    pub fn insert(&self, live: Arc<Live>) -> Arc<Live> {
        Arc::clone(self.live().entry(live.id).or_insert(live))
    }

    fn remove(&self, id: ExecId) {
        self.live().remove(&id);
    }

    fn known(&self, place: &Place, language: Language, standings: u64) -> Option<Known> {
        if self.asking().contains_key(&(place.clone(), language)) {
            return None;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(place.clone(), language)).filter(|known| known.standings == standings).cloned()
    }

    fn asking(&self) -> MutexGuard<'_, HashMap<(Place, Language), usize>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, place: &Place, language: Language, found: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert((place.clone(), language), found);
    }
}

/// For as long as a call asks where to go.
struct Asking<'e> {
    execs: &'e Execs,
    whose: (Place, Language),
}

impl<'e> Asking<'e> {
    fn new(execs: &'e Execs, place: &Place, language: Language) -> Self {
        let whose = (place.clone(), language);
        *execs.asking().entry(whose.clone()).or_default() += 1;
        Self { execs, whose }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut asking = self.execs.asking();
        if let Some(count) = asking.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                asking.remove(&self.whose);
            }
        }
    }
}

/// How far a call has come.
#[derive(Clone, Debug)]
pub enum Progress {
    /// So many are before it.
    Waiting(u64),
    /// Where its output begins in the recording.
    Running(Offset),
    Ended(Arc<Finished>),
}

/// A call that has not ended, or has just.
pub struct Live {
    pub id: ExecId,
    pub language: Language,
    pub session: SessionId,
    pub name: String,
    pub runtime: Mutex<RuntimeId>,
    pub progress: watch::Sender<Progress>,
    captured: Mutex<PerStream<Captured>>,
    asked: Instant,
}

/// The beginning of a stream, and how long it is in all.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    pub head: Vec<u8>,
    pub total: u64,
}

impl Live {
    pub fn new(id: ExecId, language: Language, session: SessionId, name: String, runtime: RuntimeId) -> Self {
        Self {
            id,
            language,
            session,
            name,
            runtime: Mutex::new(runtime),
            progress: watch::Sender::new(Progress::Waiting(0)),
            captured: Mutex::default(),
            asked: Instant::now(),
        }
    }

    pub fn of(stored: &StoredExec) -> Self {
        Self::new(stored.id, stored.language, stored.session, stored.name.clone(), stored.runtime)
    }

    pub fn runtime(&self) -> RuntimeId {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn captured(&self) -> MutexGuard<'_, PerStream<Captured>> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was printed.
    pub fn printed(&self, stream: Stream, bytes: &[u8]) {
        let mut captured = self.captured();
        let captured = match stream {
            Stream::Stdout => &mut captured.stdout,
            Stream::Stderr => &mut captured.stderr,
        };
        captured.total += bytes.len() as u64;
        let room = (MAX_OUTPUT as usize).saturating_sub(captured.head.len());
        captured.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub fn bytes(&self) -> PerStream<u64> {
        let captured = self.captured();
        PerStream { stdout: captured.stdout.total, stderr: captured.stderr.total }
    }

    /// What was printed so far, from the beginning, in text.
    pub fn printed_text(&self) -> String {
        String::from_utf8_lossy(&self.captured().stdout.head).into_owned()
    }

    /// How long ago it was asked for.
    pub fn asked_before(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Returns when it has ended and that is stored.
    pub async fn ended(&self) -> Arc<Finished> {
        let mut progress = self.progress.subscribe();
        loop {
            if let Progress::Ended(finished) = &*progress.borrow_and_update() {
                return Arc::clone(finished);
            }
            if progress.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// As it stands now.
    pub fn result(&self, limit: u64) -> ExecResult {
        let (finished, queued_behind) = match &*self.progress.borrow() {
            Progress::Ended(finished) => (Some(Arc::clone(finished)), None),
            Progress::Waiting(before) => (None, Some(*before)),
            Progress::Running(_) => (None, None),
        };
        let captured = self.captured();
        let streams = PerStream { stdout: text(&captured.stdout, limit), stderr: text(&captured.stderr, limit) };
        let mut result = describe(self.id, self.language, (self.session, self.name.clone()), finished.as_deref(), streams);
        if result.running {
            result.queued_behind = queued_behind;
            result.duration_ms = self.asked.elapsed().as_micros() as f64 / 1000.0;
            result.bytes = PerStream { stdout: captured.stdout.total, stderr: captured.stderr.total };
            result.note = Some(match queued_behind {
                Some(1..) => format!("it waits for its turn: `sessions-tui result {} --wait` waits for it", self.id),
                _ => format!("it goes on: `sessions-tui result {} --wait` waits for it, `sessions-tui cancel {0}` interrupts it", self.id),
            });
        }
        result
    }
}

/// A part of a stream as text: whether there is more, whether bytes were replaced.
pub struct Text {
    pub part: String,
    pub is_cut: bool,
    pub is_lossy: bool,
}

pub fn text(captured: &Captured, limit: u64) -> Text {
    let head = &captured.head[..captured.head.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let is_cut = (head.len() as u64) < captured.total;
    // a character that was cut in two is not a wrong one
    let head = match std::str::from_utf8(head) {
        Err(error) if is_cut && error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    };
    let text = String::from_utf8_lossy(head);
    let is_lossy = matches!(text, std::borrow::Cow::Owned(_));
    Text { part: text.into_owned(), is_cut, is_lossy }
}

/// The result of a call; `finished` is `None` while it runs.
pub fn describe(
    id: ExecId,
    language: Language,
    (session, name): (SessionId, String),
    finished: Option<&Finished>,
    streams: PerStream<Text>,
) -> ExecResult {
    let outcome = finished.map(|finished| finished.outcome.clone()).unwrap_or_default();
    ExecResult {
        success: finished
            .is_none_or(|finished| finished.exit_code == Some(0) && finished.stage == Stage::Finished && !finished.outcome.interrupted),
        exit_code: finished.and_then(|finished| finished.exit_code),
        stdout: streams.stdout.part,
        stderr: streams.stderr.part,
        error: outcome.error,
        value: outcome.value,
        json: outcome.json,
        duration_ms: finished.map_or(0.0, |finished| finished.took as f64 / 1000.0),
        cwd: outcome.cwd,
        exec_id: id,
        language,
        session,
        name,
        truncated: PerStream { stdout: streams.stdout.is_cut, stderr: streams.stderr.is_cut },
        lossy: PerStream { stdout: streams.stdout.is_lossy, stderr: streams.stderr.is_lossy },
        bytes: finished.map(|finished| finished.bytes).unwrap_or_default(),
        running: finished.is_none(),
        queued_behind: None,
        timed_out: outcome.timed_out,
        interrupted: outcome.interrupted,
        restarted: outcome.restarted,
        ended: outcome.ended,
        note: outcome.note,
    }
}

pub fn output_limit(asked: Option<u64>) -> u64 {
    asked.unwrap_or(DEFAULT_OUTPUT).min(MAX_OUTPUT)
}

/// What a runtime is started with, if it has to be.
struct Caller {
    environment: Arc<Vec<(String, String)>>,
    umask: Option<u32>,
}

/// Accepts a call and sees it on its way.
pub async fn begin(context: &Context, call: ExecCall, author: Author) -> Result<Arc<Live>, Failure> {
    let language = call.language.unwrap_or_else(|| call.verb.default_language());
    call.check()?;
    let (world, calls) = (context.clone(), context.clone());
    let asked = Arc::new(AskedExec {
        id: call.id.unwrap_or_else(ExecId::new),
        place: call.place,
        language,
        verb: call.verb,
        code: call.code,
        stdin: call.stdin,
        timeout_ms: call.timeout_ms,
        author,
        max_open: context.config.runtime.max_queue,
        open: Box::new(move |runtime| calls.registry.runtime(runtime).map_or(0, |handle| handle.facts.calls())),
        new: Box::new(move || New { mode: Some(RUNTIME_MODE.to_owned()), for_calls: true, ..launch::plain(&world, author) }),
        check_folder: crate::request::check_folder,
    });
    let caller = Caller { environment: Arc::new(call.environment), umask: call.umask };
    let deadline = Instant::now() + PATIENCE;
    let standings = context.store.standings();
    if let Some(known) = context.execs.known(&asked.place, language, standings)
        && let Some(handle) = context.registry.runtime(known.runtime)
        && handle.facts.calls() <= u64::from(asked.max_open)
        && context.execs.get(asked.id).is_none()
    {
        // the holder records a call before it is carried out: it need not wait for the database, and is not answered before it
        let accepting = context.store.accept_exec(Arc::clone(&asked), known.runtime, known.session);
        let going = on_its_way(context, &asked, (known.runtime, known.session, known.name), None, &caller, deadline);
        let (accepted, live) = tokio::join!(biased; accepting, going);
        accepted?;
        return Ok(live);
    }
    let _asking = Asking::new(&context.execs, &asked.place, language);
    let mut restarted = None;
    loop {
        let changed = context.registry.changed();
        let standings = context.store.standings();
        let (begun, adopted) = match context.store.begin_exec(Arc::clone(&asked)).await {
            Err(store::Error::Ending { .. }) if tokio::time::timeout_at(deadline, changed).await.is_ok() => continue,
            outcome => outcome?,
        };
        pass_on(context, adopted);
        match begun {
            Begun::On { runtime, session, name } => {
                // its own change is the only one since
                context.execs.remember(&asked.place, language, Known { standings: standings + 1, runtime, session, name: name.clone() });
                return Ok(on_its_way(context, &asked, (runtime, session, name), restarted, &caller, deadline).await);
            }
            Begun::Absent(absent) => {
                if let Some(note) = start_runtime(context, *absent, language, &caller).await? {
                    restarted = Some(note);
                }
            }
        }
    }
}

/// Sessions that were opened for a call take over what was still running.
fn pass_on(context: &Context, adopted: Adopted) {
    if let Some(session) = adopted.session {
        for runtime in adopted.runtimes {
            context.registry.pass_on(runtime, session);
        }
    }
}

/// An accepted call is known, and goes to its runtime.
async fn on_its_way(
    context: &Context,
    asked: &AskedExec,
    (runtime, session, name): (RuntimeId, SessionId, String),
    restarted: Option<String>,
    caller: &Caller,
    deadline: Instant,
) -> Arc<Live> {
    let live = context.execs.insert(Arc::new(Live::new(asked.id, asked.language, session, name, runtime)));
    let calling = Calling {
        live: Arc::clone(&live),
        verb: asked.verb,
        code: asked.code.clone(),
        stdin: asked.stdin.clone(),
        timeout_ms: asked.timeout_ms,
        restarted,
        environment: Arc::clone(&caller.environment),
    };
    hand_over(context, runtime, vec![calling], deadline).await;
    live
}

/// Gives accepted calls to their runtime, which may still be starting. If there is none in the end, they are lost, and say so.
async fn hand_over(context: &Context, runtime: RuntimeId, calls: Vec<Calling>, deadline: Instant) {
    let handle = loop {
        let changed = context.registry.changed();
        if let Some(handle) = context.registry.runtime(runtime) {
            break Some(handle);
        }
        let is_live = matches!(context.store.is_ending(runtime).await, Ok(Some(_)));
        if !is_live || tokio::time::timeout_at(deadline, changed).await.is_err() {
            break None;
        }
    };
    for calling in calls {
        let refused = match &handle {
            Some(handle) => handle.call(calling).await.err(),
            None => Some(calling),
        };
        if let Some(calling) = refused {
            let lost = Finished::lost("its runtime ended before it was run; nothing of it was done");
            tokio::spawn(settle(context.clone(), calling.live, lost));
        }
    }
}

/// Starts an interpreter as its terminal was left. Gives what is to be said of the one before.
async fn start_runtime(context: &Context, absent: Absent, language: Language, caller: &Caller) -> Result<Option<String>, Failure> {
    let environment = if caller.environment.is_empty() { launch::own_environment() } else { caller.environment.to_vec() };
    let search = environment.iter().find(|(key, _)| key == "PATH").map_or("/usr/local/bin:/usr/bin:/bin", |(_, value)| value.as_str());
    let interpreter =
        find::interpreter(language, &context.config.runtime, Path::new(&absent.workspace), search).map_err(Failure::failed)?;
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
        size: absent.size,
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
        umask: caller.umask,
        holder,
        interpreter: Some(Driven { language, removed: absent.env.removed, own }),
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
        (_, Some("reset")) | (RuntimeState::Refused { .. } | RuntimeState::Starting | RuntimeState::Running { .. }, _) => return None,
        (_, Some(IDLE)) => "was idle for too long and has been ended".to_owned(),
        (_, Some(reason)) => format!("has been ended ({reason})"),
        (RuntimeState::Exited { status, .. }, None) => format!("ended with {status}"),
        (RuntimeState::Lost { reason: LostReason::MachineRestarted, .. }, None) => "was lost when the machine was restarted".to_owned(),
        (RuntimeState::Lost { .. }, None) => "was lost: its holder was killed".to_owned(),
    };
    Some(format!("the last {language} runtime {why}: {gone}"))
}

/// Calls that waited for a runtime that has just ended get another one.
pub async fn go_on_elsewhere(context: Context, session: SessionId, language: Language, mut calls: Vec<Calling>) {
    let environment = calls.first().map(|calling| Arc::clone(&calling.environment)).unwrap_or_default();
    let caller = Caller { environment, umask: None };
    let deadline = Instant::now() + PATIENCE;
    let outcome = async {
        let mut note = None;
        loop {
            match context.store.interpreter_of(session, language).await? {
                Begun::On { runtime, .. } => {
                    let ids = calls.iter().map(|calling| calling.live.id).collect();
                    context.store.move_execs(ids, runtime).await?;
                    return Ok::<_, Failure>((runtime, note));
                }
                Begun::Absent(absent) => note = start_runtime(&context, *absent, language, &caller).await?.or(note),
            }
        }
    }
    .await;
    match outcome {
        Ok((runtime, note)) => {
            for calling in &calls {
                *calling.live.runtime.lock().unwrap_or_else(PoisonError::into_inner) = runtime;
            }
            if let Some(first) = calls.first_mut() {
                first.restarted = note;
            }
            hand_over(&context, runtime, calls, deadline).await;
        }
        Err(failure) => {
            for calling in calls {
                settle(context.clone(), calling.live, Finished::lost(&failure.message)).await;
            }
        }
    }
}

/// Stores the end of a call. What is recorded is told at once: after a crash it is read from there. Anything else is told when
/// it is stored; what cannot be stored is told all the same, and tried again.
pub async fn settle(context: Context, live: Arc<Live>, mut finished: Finished) {
    let mut is_told = finished.is_recorded();
    if is_told {
        live.progress.send_replace(Progress::Ended(Arc::new(finished.clone())));
    }
    loop {
        match context.store.finish_exec(live.id, finished.clone()).await {
            Ok(()) | Err(store::Error::Gone) => break,
            Err(error) => {
                context.log.warn(&format!("session {}: the result of exec {} could not be stored: {error}", live.name, live.id));
                if !is_told {
                    finished.outcome.note = Some(format!("this result is not stored yet: {error}"));
                    live.progress.send_replace(Progress::Ended(Arc::new(finished.clone())));
                    finished.outcome.note = None;
                    is_told = true;
                }
                tokio::time::sleep(STORE_RETRY).await;
            }
        }
    }
    if !is_told {
        live.progress.send_replace(Progress::Ended(Arc::new(finished)));
    }
    context.execs.remove(live.id);
}

impl Finished {
    /// The driver's own word is in the recording.
    fn is_recorded(&self) -> bool {
        self.stage == Stage::Finished && self.end.is_some() && !self.outcome.ended
    }

    /// A call of which nothing more will be heard.
    pub fn lost(why: &str) -> Self {
        Self {
            stage: Stage::Lost,
            exit_code: None,
            took: 0,
            start: None,
            end: None,
            bytes: PerStream::default(),
            outcome: Outcome { error: Some(why.to_owned()), ..Outcome::default() },
        }
    }

    pub fn cancelled(why: &str) -> Self {
        Self { stage: Stage::Cancelled, ..Self::lost(why) }
    }
}

/// Interrupts a call, or takes it out of the queue; returns when it is over.
pub async fn cancel(context: &Context, id: ExecId) -> Result<Arc<Live>, Failure> {
    let Some(live) = context.execs.get(id) else {
        let stored = context.store.exec(id).await?;
        let what = if stored.finished.is_some() { "has ended already" } else { "cannot be reached: its runtime does not answer" };
        return Err(Failure::new(Code::Status, format!("cannot cancel: exec {id} {what}")));
    };
    let Some(handle) = context.registry.runtime(live.runtime()) else {
        return Err(Failure::new(Code::Status, format!("cannot cancel: the runtime of exec {id} is just being started or ended")));
    };
    handle.cancel(id).await;
    Ok(live)
}

/// A line that a person typed into a transcript. What comes of it is there to be seen; a refusal is told as an event.
pub async fn typed(context: &Context, session: SessionId, language: Language, code: String) {
    let call = ExecCall {
        place: Place::Session(session.to_string()),
        id: None,
        code,
        verb: shared::exec::Verb::Exec,
        language: Some(language),
        stdin: None,
        timeout_ms: None,
        soft_limit_ms: None,
        stream: false,
        output_limit: None,
        environment: Vec::new(),
        umask: None,
    };
    if let Err(failure) = begin(context, call, Author::Human).await {
        context.log.warn(&format!("session {session}: a typed line was not run: {failure}"));
    }
}

/// The calls of a runtime that ended while no daemon was there: what the recording says of them is stored, the rest is lost.
pub async fn settle_ended(context: &Context, runtime: RuntimeId, end: &End, recorded: Offset) -> store::Result<()> {
    let (open, settled) = context.store.open_execs(runtime).await?;
    if open.is_empty() {
        return Ok(());
    }
    let mut found = output::calls(&context.paths.recording(runtime), settled, recorded).await;
    for stored in open {
        let finished = match found.remove(&stored.id) {
            Some(seen) => seen.finished(&stored, end, recorded),
            None => Finished::lost("its runtime ended before it was run; nothing of it was done"),
        };
        context.store.finish_exec(stored.id, finished).await?;
    }
    Ok(())
}
