//! The callable side of a runtime: typed asks to its task, and facts that can be read without asking.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shared::attention::{Clue, Needs};
use shared::config::Prefix;
use shared::event::Author;
use shared::exec::Language;
use shared::id::{ExecId, Offset, RuntimeId, SessionId, ThreadId};
use shared::message::{Failure, ScreenShot};
use shared::runtime::RuntimeState;
use shared::screen::{Keyframe, Size};
use tokio::sync::{mpsc, oneshot, watch};

use super::ask::{Ask, Calling, ClientId, Ended, Joins, Keep, Place, Room, Typist};
use crate::attachment::Outbox;
use crate::attention::{Basis, Evidence, Hooked, Moment, Watched};
use crate::clock::{Clock, Steady};
use crate::holder::typed::Streams;
use crate::holder::wire::{Frozen, Greeting};
use crate::language::Names;

/// Numbers that change often and are only looked at.
pub struct Facts {
    /// Of the program; a bash that survives its own death goes on under another.
    pid: AtomicU32,
    pub holder_pid: u32,
    /// The session it belongs to: the next one of its thread takes it over if it is still running then.
    session: Mutex<SessionId>,
    clock: Clock,
    last_activity: AtomicI64,
    last_steady: AtomicI64,
    is_controlled: AtomicBool,
    /// Whoever had control when the last daemon ended has until then to come back.
    held_until: AtomicI64,
    clients: AtomicU32,
    /// Calls to an interpreter that have not ended.
    calls: AtomicU64,
    size: AtomicU32,
    end: AtomicU64,
    /// Bytes that were shown but kept nowhere.
    unrecorded: AtomicU64,
    /// What the program calls its window.
    title: Mutex<String>,
    evidence: Mutex<Evidence>,
    /// The agent in it, by its name in the manifests.
    agent: Mutex<Option<String>>,
    /// Who sent something to it last.
    sender: Mutex<Author>,
    /// When a person last looked; 0 if never.
    seen_at: AtomicI64,
    suspended: Mutex<Option<String>>,
    /// Of an interpreter that has said it.
    version: Mutex<Option<String>>,
    /// Its holder knows how to stop everything.
    pub can_freeze: bool,
    /// Everything stands still since then.
    frozen: Mutex<Option<(jiff::Timestamp, Frozen)>>,
    /// What was taken of clients that count what they type, if its holder counts too.
    streams: Mutex<Option<Streams>>,
}

impl Facts {
    pub fn new(greeting: &Greeting, session: SessionId, clock: Clock) -> Self {
        let facts = Self {
            pid: AtomicU32::new(greeting.child),
            holder_pid: greeting.pid,
            session: Mutex::new(session),
            clock,
            last_activity: AtomicI64::new(0),
            last_steady: AtomicI64::new(0),
            is_controlled: AtomicBool::new(false),
            held_until: AtomicI64::new(0),
            clients: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            size: AtomicU32::new(0),
            end: AtomicU64::new(greeting.end),
            unrecorded: AtomicU64::new(0),
            title: Mutex::default(),
            evidence: Mutex::default(),
            agent: Mutex::default(),
            sender: Mutex::new(Author::Api),
            seen_at: AtomicI64::new(0),
            suspended: Mutex::new(greeting.suspended.clone()),
            version: Mutex::default(),
            can_freeze: greeting.can_freeze,
            frozen: Mutex::default(),
            streams: Mutex::default(),
        };
        facts.set_frozen(greeting.frozen.as_ref());
        facts.set_size(greeting.size);
        facts.set_streams(greeting);
        facts
    }

    pub fn set_frozen(&self, frozen: Option<&Frozen>) {
        let now = jiff::Timestamp::now();
        let since = |frozen: &Frozen| now.checked_sub(std::time::Duration::from_millis(frozen.since_ms)).unwrap_or(now);
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = frozen.map(|frozen| (since(frozen), frozen.clone()));
    }

    /// Since when everything of it stands still, and how, if it does.
    pub fn frozen(&self) -> Option<(jiff::Timestamp, Frozen)> {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As clients see it.
    pub fn state(&self) -> RuntimeState {
        let pid = self.pid();
        match self.frozen() {
            Some((since, _)) => RuntimeState::Frozen { pid, since },
            None => RuntimeState::Running { pid },
        }
    }

    pub fn happened_now(&self) {
        self.last_activity.store(jiff::Timestamp::now().as_microsecond(), Ordering::Relaxed);
        self.last_steady.store(self.clock.now(), Ordering::Relaxed);
    }

    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    pub fn set_pid(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// Something happened while no daemon was there.
    pub fn happened(&self, at: jiff::Timestamp, steady: Steady) {
        self.last_activity.fetch_max(at.as_microsecond(), Ordering::Relaxed);
        self.last_steady.fetch_max(steady, Ordering::Relaxed);
    }

    /// The last input or output this daemon knows of, by the steady clock; 0 if none.
    pub fn last_steady(&self) -> Steady {
        self.last_steady.load(Ordering::Relaxed)
    }

    pub fn session(&self) -> SessionId {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_session(&self, session: SessionId) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    pub fn set_controlled(&self, is_controlled: bool) {
        self.is_controlled.store(is_controlled, Ordering::Relaxed);
        // whoever was awaited is here, or somebody else
        self.held_until.store(0, Ordering::Relaxed);
    }

    /// Somebody is attached who may type, or was when the last daemon ended and may be on the way back.
    pub fn is_controlled(&self) -> bool {
        self.is_controlled.load(Ordering::Relaxed) || self.held_until().is_some()
    }

    pub fn hold_until(&self, at: Steady) {
        self.held_until.store(at, Ordering::Relaxed);
    }

    /// Until when it is held for somebody who is not there, if it is.
    pub fn held_until(&self) -> Option<Steady> {
        let at = self.held_until.load(Ordering::Relaxed);
        (!self.is_controlled.load(Ordering::Relaxed) && at > self.clock.now()).then_some(at)
    }

    pub fn last_activity(&self) -> Option<jiff::Timestamp> {
        let micros = self.last_activity.load(Ordering::Relaxed);
        (micros > 0).then(|| jiff::Timestamp::from_microsecond(micros).ok()).flatten()
    }

    pub fn set_clients(&self, count: usize) {
        self.clients.store(count as u32, Ordering::Relaxed);
    }

    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }

    pub fn set_calls(&self, count: u64) {
        self.calls.store(count, Ordering::Relaxed);
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn set_size(&self, size: Size) {
        self.size.store(u32::from(size.cols) << 16 | u32::from(size.rows), Ordering::Relaxed);
    }

    pub fn size(&self) -> Size {
        let packed = self.size.load(Ordering::Relaxed);
        Size { cols: (packed >> 16) as u16, rows: packed as u16 }
    }

    pub fn set_end(&self, end: Offset) {
        self.end.store(end, Ordering::Relaxed);
    }

    pub fn end(&self) -> Offset {
        self.end.load(Ordering::Relaxed)
    }

    pub fn add_unrecorded(&self, bytes: usize) {
        self.unrecorded.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Ordering::Relaxed)
    }

    /// Grows with whatever it prints, recorded or not.
    pub fn printed(&self) -> u64 {
        self.end() + self.unrecorded()
    }

    pub fn evidence<T>(&self, work: impl FnOnce(&mut Evidence) -> T) -> T {
        work(&mut self.evidence.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_seen(&self, at: jiff::Timestamp) {
        self.seen_at.fetch_max(at.as_microsecond(), Ordering::Relaxed);
    }

    /// What asked before this was answered or dismissed while an earlier daemon ran.
    pub fn set_answered(&self, at: jiff::Timestamp) {
        self.evidence(|evidence| evidence.dismissed_before(at));
    }

    /// Whether it needs a person; nothing if it has said nothing.
    pub fn needs(&self) -> Option<Needs> {
        let (watched, moment) = (self.watched(), self.moment());
        self.evidence(|evidence| evidence.needs(watched, moment))
    }

    /// The same, and whether rules had to decide it.
    pub fn decide(&self) -> Option<(Needs, Basis)> {
        let (watched, moment) = (self.watched(), self.moment());
        self.evidence(|evidence| evidence.decide(watched, moment))
    }

    /// Why that is thought.
    pub fn explain(&self) -> Vec<Clue> {
        let (watched, moment) = (self.watched(), self.moment());
        self.evidence(|evidence| evidence.explain(watched, moment))
    }

    pub fn moment(&self) -> Moment {
        Moment { now: jiff::Timestamp::now(), quiet_since: self.last_activity() }
    }

    pub fn agent(&self) -> Option<String> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_agent(&self, name: Option<&str>) {
        *self.agent.lock().unwrap_or_else(PoisonError::into_inner) = name.map(str::to_owned);
    }

    pub fn set_sender(&self, author: Author) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = author;
    }

    pub fn sender(&self) -> Author {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> Watched {
        let seen_at = self.seen_at.load(Ordering::Relaxed);
        if self.is_controlled.load(Ordering::Relaxed) {
            Watched::Now
        } else {
            Watched::Since((seen_at > 0).then(|| jiff::Timestamp::from_microsecond(seen_at).ok()).flatten())
        }
    }

    pub fn set_title(&self, title: &str) {
        let mut present = self.title.lock().unwrap_or_else(PoisonError::into_inner);
        if *present != title {
            title.clone_into(&mut present);
        }
    }

    /// The title its program has set, if any.
    pub fn title(&self) -> Option<String> {
        Some(self.title.lock().unwrap_or_else(PoisonError::into_inner).clone()).filter(|title| !title.is_empty())
    }

    pub fn set_suspended(&self, why: Option<String>) {
        *self.suspended.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub fn set_version(&self, version: String) {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
    }

    pub fn version(&self) -> Option<String> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A driver takes lines, not keys: its input is not counted.
    pub fn set_streams(&self, greeting: &Greeting) {
        let streams = greeting.typed.clone().filter(|_| !greeting.is_driver).map(Streams::new);
        *self.streams.lock().unwrap_or_else(PoisonError::into_inner) = streams;
    }

    /// Where a client goes on that counts what it types; nothing if that is not counted here.
    pub fn place_of(&self, stream: u64) -> Option<Place> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.as_ref().map(|streams| Place { stream, at: streams.taken(stream) })
    }

    pub fn taken(&self, place: Place, bytes: &[u8]) {
        if let Some(streams) = self.streams.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            streams.take(place.stream, place.at, bytes);
        }
    }

    pub fn suspended(&self) -> Option<String> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Clone)]
pub struct RuntimeHandle {
    pub id: RuntimeId,
    pub thread: ThreadId,
    /// `None` for a program on a PTY.
    pub language: Option<Language>,
    pub facts: Arc<Facts>,
    pub asks: mpsc::Sender<Ask>,
    pub ended: watch::Receiver<Option<Ended>>,
    pub activity: watch::Receiver<u64>,
    pub sight: watch::Receiver<Offset>,
}

impl RuntimeHandle {
    async fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(make(answer)).await.map_err(|_| over())?;
        answered.await.map_err(|_| over())
    }

    async fn say(&self, ask: Ask) {
        // a runtime that is over needs nothing more
        let _ = self.asks.send(ask).await;
    }

    /// Joins a client; gives its number and whether it has control.
    pub async fn attach(
        &self,
        outbox: Arc<Outbox>,
        window: Size,
        joins: Joins,
        room: Room,
        prefix: Prefix,
        stream: Option<Place>,
    ) -> Result<(ClientId, bool), Failure> {
        self.ask(|answer| Ask::Attach { outbox, window, joins, room, prefix, stream, answer }).await
    }

    /// Gives whether the client's terminal was in its alternate screen, if it was attached.
    pub async fn detach(&self, client: ClientId) -> Option<bool> {
        self.ask(|answer| Ask::Detach(client, answer)).await.ok().flatten()
    }

    pub async fn detach_all(&self) -> Result<usize, Failure> {
        self.ask(Ask::DetachAll).await
    }

    /// Returns once the input is on its way to the program.
    pub async fn input(&self, from: Typist, bytes: Vec<u8>) -> Result<(), Failure> {
        self.ask(|taken| Ask::Input { from, keep: Keep::No, bytes, taken }).await?
    }

    /// As `input`; for what stands still it is kept until that goes on.
    pub async fn queue_input(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        self.ask(|taken| Ask::Input { from: Typist::Api, keep: Keep::UntilItGoesOn, bytes, taken }).await?
    }

    /// Returns when it stands still or goes on, as the database says.
    pub async fn settle_freezing(&self) -> Result<Option<Frozen>, Failure> {
        self.ask(Ask::SettleFreezing).await?
    }

    pub async fn notice(&self, text: String) {
        self.say(Ask::Notice(text)).await;
    }

    pub async fn resize(&self, client: ClientId, window: Size) {
        self.say(Ask::Resize(client, window)).await;
    }

    pub async fn take_control(&self, client: ClientId) {
        self.say(Ask::TakeControl(client)).await;
    }

    pub async fn key_help(&self, client: ClientId) {
        self.say(Ask::KeyHelp(client)).await;
    }

    /// The screen, and where in the recording it was taken.
    pub async fn shot(&self) -> Result<(ScreenShot, Offset), Failure> {
        self.ask(Ask::Shot).await
    }

    /// The screen and its place, for somebody who is not a client; no screen if it is the one of `after`.
    pub async fn look(&self, after: Option<Offset>) -> Result<(Offset, Option<Keyframe>), Failure> {
        self.ask(|answer| Ask::Look { after, answer }).await
    }

    /// A person has looked, just now.
    pub async fn seen(&self) {
        self.facts.set_seen(jiff::Timestamp::now());
        self.say(Ask::Seen).await;
    }

    /// A person dismisses what it asks.
    pub async fn dismiss(&self) {
        self.say(Ask::Dismiss).await;
    }

    /// An agent's hook was called in it.
    pub async fn hooked(&self, agent: String, hook: Option<Hooked>) {
        self.say(Ask::Hooked(agent, hook)).await;
    }

    /// Changes when there is something else to be seen; ends with the runtime.
    pub fn sight(&self) -> watch::Receiver<Offset> {
        self.sight.clone()
    }

    /// Returns when the pattern is on the screen.
    pub async fn wait_text(&self, pattern: regex::Regex) -> Result<(), Failure> {
        self.ask(|found| Ask::WaitText { pattern, found }).await
    }

    /// Returns when a shell waits for a line.
    pub async fn wait_prompt(&self) -> Result<(), Failure> {
        self.ask(Ask::WaitPrompt).await
    }

    /// Asks the program to end, and sees to it that it does; returns when it has. A holder that was stopped is continued: whoever
    /// stopped it wanted its program to stand still, not to outlive its end.
    pub async fn terminate(&self, grace_ms: u32, author: Author) -> Ended {
        if crate::holder::why_silent(self.facts.holder_pid).is_some() {
            crate::holder::go_on(self.facts.holder_pid);
        }
        self.say(Ask::Terminate { grace_ms, author }).await;
        self.ended().await
    }

    /// Has what was recorded so far taken away; gives whether its holder could be told.
    pub async fn forget(&self) -> Result<bool, Failure> {
        self.ask(Ask::Forget).await
    }

    pub async fn renamed(&self, name: String) {
        self.say(Ask::Renamed(name)).await;
    }

    /// Gives a call to an interpreter; back if that is over.
    pub async fn call(&self, calling: Calling) -> Result<(), Calling> {
        self.asks.send(Ask::Call(calling)).await.map_err(|refused| match refused.0 {
            Ask::Call(calling) => calling,
            _ => unreachable!("what was sent comes back"),
        })
    }

    pub async fn cancel(&self, exec: ExecId) {
        self.say(Ask::Cancel(exec)).await;
    }

    /// What an interpreter's code has defined; an error while a call runs.
    pub async fn names(&self) -> Result<Names, Failure> {
        self.ask(Ask::Names).await
    }

    /// Returns when the runtime is over and that is stored.
    /// How it has ended, if it has.
    pub fn has_ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    pub async fn ended(&self) -> Ended {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(seen) => seen.clone().unwrap_or_else(unknown_end),
            Err(_) => unknown_end(),
        }
    }

    /// Changes with every bit of output.
    pub fn activity(&self) -> watch::Receiver<u64> {
        self.activity.clone()
    }
}

fn over() -> Failure {
    Failure::new(shared::message::Code::Status, "the program has just ended")
}

fn unknown_end() -> Ended {
    Ended { sentence: "it ended while the daemon was stopping".into(), exit: None }
}
