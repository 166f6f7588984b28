//! The dashboard's loop: events in, pure update, effects out, then draw, at most once a frame and only if something changed.

mod answer;
mod export;
mod keep;
mod pane;
mod report;
mod search;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyEvent, KeyModifiers};
use futures_util::StreamExt;
use ratatui::layout::Rect;
use shared::config::Config;
use shared::exec::{ExecCall, Place, Verb};
use shared::id::{Seq, SessionId};
use shared::message::{Failure, NewSession, Push, Request, Resume};
use shared::paths::Paths;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

use super::view;
use crate::attach::{self, Wish};
use crate::background::LateReply;
use crate::client::{Acts, Client, Incoming, refusal_of};
use crate::connect::{self, Crashes};
use crate::dashboard::app::{App, Setting};
use crate::dashboard::event::{Asked, Effect, Event, PaneOrder, Then};
use crate::replay::typed_behind;
use crate::settings::{self, Look};
use crate::window::{self, Window};
use crate::{environment, tty};

/// Between two drawings.
const FRAME: Duration = Duration::from_millis(16);

/// What tasks beside the loop have said and is not dealt with yet; a full queue makes them wait.
const WAITING: usize = 64;

/// Events dealt with before the next drawing, at most: a flood must not keep the screen from being drawn.
const BURST: usize = 64;

/// Code run from the dashboard is answered after this long, even if it goes on.
const EXEC_SOFT_LIMIT_MS: u64 = 5000;

pub async fn dashboard(paths: &Paths) -> Result<(), Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("the dashboard needs a terminal: in scripts use `sessions-tui ls`, or see `sessions-tui --help`"));
    }
    report::on_panic(paths);
    let reply = settings::ask_background(paths);
    let (look, mut complaints) = settings::read(paths).unwrap_or_else(|why| {
        let (look, _) = Look::of(&Config::default(), settings::colours(), settings::background());
        (look, vec![format!("{why}; the defaults are used")])
    });
    let (remembered, wrong) = keep::load(paths);
    complaints.extend(wrong);
    let here = std::env::current_dir().map_err(|error| Failure::failed(format!("this folder cannot be used: {error}")))?;
    let setting = Setting {
        look,
        here: here.to_string_lossy().into_owned(),
        home: std::env::var("HOME").ok(),
        zone: jiff::tz::TimeZone::system(),
        at: jiff::Timestamp::now(),
        remembered,
    };
    let client = watching(paths).await?;
    let (mut app, effects) = App::new(setting);
    app.tmux_hint = environment::tmux_hint(app.prefix);
    let (said, hears) = mpsc::channel(WAITING);
    let mut dashboard = Dashboard {
        paths: paths.clone(),
        app,
        client: Some(client),
        asked: HashMap::new(),
        connecting: None,
        crashes: Some(Crashes::of(Acts::ForPerson)),
        said,
        hears,
        pane: None,
        search: None,
        began: Instant::now(),
        events: complaints.into_iter().map(Event::Complaint).chain(typed_before(&reply.typed)).collect(),
        late: LateReply::of(&reply),
        effects: effects.into(),
    };
    dashboard.run().await
}

/// Keys that came while the terminal was asked something.
fn typed_before(bytes: &[u8]) -> Vec<Event> {
    let key = |byte: u8| match byte {
        b'\r' | b'\n' => Some(KeyCode::Enter),
        b'\t' => Some(KeyCode::Tab),
        0x1b => Some(KeyCode::Esc),
        0x7f => Some(KeyCode::Backspace),
        b' '..=b'~' => Some(KeyCode::Char(char::from(byte))),
        _ => None,
    };
    bytes.iter().filter_map(|byte| key(*byte)).map(|code| Event::Key(KeyEvent::new(code, KeyModifiers::NONE))).collect()
}

/// A connection that hears of every change.
async fn watching(paths: &Paths) -> Result<Client, Failure> {
    let mut client = connect::connect_as(paths, Acts::ForPerson).await?;
    client.call::<Seq>(Request::Watch).await?;
    Ok(client)
}

/// Why the dashboard gives the terminal back.
enum Leaves {
    Quits,
    Attaches { name: String, watches: bool },
}

struct Signals {
    terminated: Signal,
    hung_up: Signal,
    resized: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            resized: signal(SignalKind::window_change())?,
        })
    }
}

struct Dashboard {
    paths: Paths,
    app: App,
    /// Lost while the daemon is gone, or while the terminal is somebody else's.
    client: Option<Client>,
    asked: HashMap<u64, Asked>,
    connecting: Option<JoinHandle<(Crashes, Result<Client, Failure>)>>,
    crashes: Option<Crashes>,
    /// For tasks beside the loop.
    said: mpsc::Sender<Event>,
    hears: mpsc::Receiver<Event>,
    pane: Option<pane::Handle>,
    search: Option<AbortHandle>,
    /// The terminal's answer to a question, if it is still due.
    late: LateReply,
    began: Instant,
    events: VecDeque<Event>,
    effects: VecDeque<Effect>,
}

impl Dashboard {
    async fn run(&mut self) -> Result<(), Failure> {
        // one that comes while the terminal is a session's is found when it is ours again
        let mut signals = Signals::new().map_err(window::broken)?;
        loop {
            // the screen is taken for as long as the dashboard shows, and given back for an attachment
            let mut window = Window::open()?;
            let outcome = self.show(&mut window, &mut signals).await;
            // what is typed right behind the key is for the session, not for the dashboard that comes back
            let typed = if matches!(outcome, Ok(Leaves::Attaches { .. })) { typed_behind() } else { Vec::new() };
            drop(window);
            match outcome? {
                Leaves::Quits => return Ok(()),
                Leaves::Attaches { name, watches } => self.attach(name, watches, typed).await?,
            }
        }
    }

    /// The whole window is the session's until the user comes back. Nothing is heard meanwhile: on the way back everything
    /// is asked for anew, so that nothing piles up here or in the daemon.
    async fn attach(&mut self, name: String, watches: bool, typed: Vec<u8>) -> Result<(), Failure> {
        self.drop_connection();
        let wish = Wish { language: None, name, read_only: watches, prefix: self.app.prefix, typed };
        let attached = async {
            let client = connect::connect(&self.paths).await?;
            attach::attach(&self.paths, client, &wish).await
        };
        let outcome = match attached.await {
            Ok(attach::Left::Detached(sentence) | attach::Left::HadEnded(sentence)) => {
                // what is left of it on the user's screen ends there, as after `attach`
                println!("\r\n[{}]", shared::text::visible(&sentence));
                Ok(sentence)
            }
            Err(failure) => Err(failure.message),
        };
        match watching(&self.paths).await {
            Ok(client) => {
                self.client = Some(client);
                self.events.push_back(Event::Back);
            }
            Err(failure) => self.events.push_back(Event::NoDaemon(failure.message)),
        }
        self.events.push_back(Event::Left(outcome));
        Ok(())
    }

    fn drop_connection(&mut self) {
        self.client = None;
        // who asked for something to be done is told; what is only shown is asked for again
        for (_, asked) in self.asked.drain() {
            if matches!(asked, Asked::New(_) | Asked::Deed(..) | Asked::Exec(_) | Asked::Open(_)) {
                let why = Failure::failed("the daemon went away: what was asked last may or may not have been done");
                self.events.push_back(Event::Refused(asked, why));
            }
        }
        self.app.forget_asked();
    }

    /// Runs until the user wants something else.
    async fn show(&mut self, window: &mut Window, signals: &mut Signals) -> Result<Leaves, Failure> {
        let mut keys = EventStream::new();
        let mut drawn: Option<Instant> = None;
        let mut is_dirty = true;
        let size = window.size()?;
        self.events.push_front(Event::Resized(Rect::new(0, 0, size.width, size.height)));
        self.app.touch();
        loop {
            self.tell_time();
            let mut burst = 0;
            while let Some(event) = self.events.pop_front() {
                self.effects.extend(self.app.update(event));
                burst += 1;
                if burst % BURST == 0 {
                    break;
                }
            }
            while let Some(effect) = self.effects.pop_front() {
                if let Some(leaves) = self.perform(effect).await {
                    return Ok(leaves);
                }
            }
            is_dirty |= self.app.take_dirty();
            if is_dirty && drawn.is_none_or(|at| at.elapsed() >= FRAME) {
                window.draw(|frame| view::draw(&self.app, frame))?;
                drawn = Some(Instant::now());
                is_dirty = false;
            }
            if !self.events.is_empty() {
                continue;
            }
            let next = [self.app.next_deadline().map(|at| self.began + at), drawn.filter(|_| is_dirty).map(|at| at + FRAME)];
            let deadline = next.into_iter().flatten().min();
            tokio::select! {
                biased;
                _ = signals.terminated.recv() => return Ok(self.ended()),
                _ = signals.hung_up.recv() => return Ok(self.ended()),
                _ = signals.resized.recv() => {
                    let size = window.resized()?;
                    self.events.push_back(Event::Resized(Rect::new(0, 0, size.width, size.height)));
                }
                key = keys.next() => match key {
                    Some(Ok(TerminalEvent::Key(key))) if self.late.takes(&key) => {}
                    Some(Ok(TerminalEvent::Key(key))) => self.events.push_back(Event::Key(key)),
                    Some(Ok(TerminalEvent::Mouse(mouse))) => self.events.push_back(Event::Mouse(mouse)),
                    Some(Ok(TerminalEvent::Paste(text))) => self.events.push_back(Event::Paste(text)),
                    // sizes come by their signal
                    Some(Ok(TerminalEvent::Resize(..) | TerminalEvent::FocusGained | TerminalEvent::FocusLost)) => {}
                    // the window was closed
                    Some(Err(_)) | None => return Ok(self.ended()),
                },
                incoming = receive(&mut self.client) => self.take_incoming(incoming),
                event = self.hears.recv() => self.events.extend(event),
                connected = connected(&mut self.connecting) => self.take_connected(connected),
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now).into()), if deadline.is_some() => {}
            }
            self.take_waiting();
        }
    }

    /// Nobody asked for it, but what was chosen is remembered all the same.
    fn ended(&mut self) -> Leaves {
        if let Some(Effect::Remember(remembered)) = self.app.remember() {
            // nobody is there to be told that it cannot be
            let _ = keep::save(&self.paths, &remembered);
        }
        Leaves::Quits
    }

    fn tell_time(&mut self) {
        let event = Event::Time { now: self.began.elapsed(), at: jiff::Timestamp::now() };
        self.effects.extend(self.app.update(event));
    }

    /// Whatever else has arrived is dealt with before the next drawing.
    fn take_waiting(&mut self) {
        while self.events.len() < BURST {
            match self.hears.try_recv() {
                Ok(event) => self.events.push_back(event),
                Err(_) => break,
            }
        }
    }

    fn take_incoming(&mut self, incoming: std::io::Result<Incoming>) {
        let event = match incoming {
            Ok(Incoming::Answer(answer)) => self.asked.remove(&answer.id).map(|asked| answer::understood(asked, answer)),
            Ok(Incoming::Push(Push::Event(event))) => Some(Event::Told(Box::new(event))),
            Ok(Incoming::Push(Push::Stopping { restart: false })) => {
                self.drop_connection();
                Some(Event::Stopped)
            }
            Ok(Incoming::Push(Push::Stopping { restart: true })) | Err(_) => {
                self.drop_connection();
                Some(Event::Lost)
            }
            Ok(Incoming::Push(Push::Settings { wrong })) => Some(self.take_settings(wrong)),
            Ok(Incoming::Push(_) | Incoming::Output(_)) => None,
        };
        self.events.extend(event);
    }

    /// The daemon tells that the file has changed; what of it is ours is read here.
    fn take_settings(&mut self, mut wrong: Vec<String>) -> Event {
        match settings::read(&self.paths) {
            Ok((look, complaints)) if complaints.is_empty() => Event::Settings { look: Some(Box::new(look)), wrong },
            // a mistake in single keys or colours keeps those of before, as any other
            Ok((_, complaints)) => {
                if wrong.is_empty() {
                    wrong = complaints;
                }
                Event::Settings { look: None, wrong }
            }
            // the daemon has said why
            Err(why) => {
                if wrong.is_empty() {
                    wrong.push(why);
                }
                Event::Settings { look: None, wrong }
            }
        }
    }

    fn take_connected(&mut self, connected: Option<(Crashes, Result<Client, Failure>)>) {
        self.connecting = None;
        let (crashes, outcome) = match connected {
            Some((crashes, outcome)) => (crashes, outcome),
            None => (Crashes::of(Acts::ForPerson), Err(Failure::failed("connecting was interrupted"))),
        };
        self.crashes = Some(crashes);
        match outcome {
            Ok(client) => {
                self.client = Some(client);
                self.events.push_back(Event::Back);
            }
            Err(failure) => self.events.push_back(Event::NoDaemon(failure.message)),
        }
    }

    async fn ask(&mut self, asked: Asked, request: Request) {
        let Some(client) = &mut self.client else {
            let why = Failure::failed("the daemon is not there: nothing was done; try again when it is back");
            self.events.push_back(Event::Refused(asked, why));
            return;
        };
        match client.send(request).await {
            Ok(id) => {
                self.asked.insert(id, asked);
            }
            Err(error) => {
                if let Some(refusal) = refusal_of(&error) {
                    self.events.push_back(Event::Refused(asked, refusal));
                    return;
                }
                // what it said before it went is still to be read: it may have been asked to stop
                while let Some(client) = &mut self.client {
                    let incoming = client.receive().await;
                    self.take_incoming(incoming);
                }
            }
        }
    }

    async fn perform(&mut self, effect: Effect) -> Option<Leaves> {
        match effect {
            Effect::Ask(asked, request) => self.ask(asked, with_environment(request)).await,
            Effect::New(new, then) => {
                let request = Request::New(as_from_here(*new, then));
                self.ask(Asked::New(then), request).await;
            }
            Effect::Exec { turn, session, language, code } => {
                let call = ExecCall {
                    place: Place::Session(session.to_string()),
                    id: None,
                    code,
                    verb: Verb::Exec,
                    language: Some(language),
                    stdin: None,
                    timeout_ms: None,
                    soft_limit_ms: Some(EXEC_SOFT_LIMIT_MS),
                    stream: false,
                    output_limit: Some(crate::dashboard::state::output::LIMIT),
                    environment: environment::inherited(),
                    umask: Some(environment::umask()),
                };
                match call.check() {
                    Ok(()) => self.ask(Asked::Exec(turn), Request::Exec(call)).await,
                    Err(failure) => self.events.push_back(Event::Refused(Asked::Exec(turn), failure)),
                }
            }
            Effect::Attach { name, watches } => {
                self.pane = None;
                return Some(Leaves::Attaches { name, watches });
            }
            Effect::Pane(PaneOrder::Open { turn, name, size, watches }) => {
                // the one before is dropped, and with it its connection; what could not be typed into it is typed into this one
                let typed = self.pane.take().map(|before| before.untyped(&name)).unwrap_or_default();
                let wish = pane::Wish { name, size, watches, prefix: self.app.prefix };
                self.pane = Some(pane::open(&self.paths, turn, wish, typed, self.said.clone()));
            }
            Effect::Pane(PaneOrder::Close) => self.pane = None,
            Effect::Pane(order) => {
                if let Some(pane) = &self.pane {
                    pane.order(order).await;
                }
            }
            Effect::Search(turn, query) => {
                self.stop_search();
                self.search = Some(search::begin(&self.paths, turn, query, self.said.clone()));
            }
            Effect::StopSearch => self.stop_search(),
            Effect::Export { turn, name, format, file, overwrites } => {
                export::begin(&self.paths, turn, export::What { name, format, file, overwrites }, self.said.clone());
            }
            Effect::Copy(text) => {
                // a terminal that takes no more is not worth an end
                let _ = tty::copy(&text);
            }
            Effect::Notify(text) => {
                let _ = tty::notify(&text);
            }
            Effect::Remember(remembered) => {
                if let Err(error) = keep::save(&self.paths, &remembered) {
                    self.events.push_back(Event::Complaint(format!("what you see here is not remembered: {error}")));
                }
            }
            Effect::Connect => self.connect(),
            Effect::Peek => {
                let (paths, said) = (self.paths.clone(), self.said.clone());
                tokio::spawn(async move {
                    if let Ok(Some(_)) = connect::running(&paths).await {
                        let _ = said.send(Event::Daemon).await;
                    }
                });
            }
            Effect::Quit => return Some(Leaves::Quits),
        }
        None
    }

    fn stop_search(&mut self) {
        // with its connection, which ends it in the daemon too
        if let Some(search) = self.search.take() {
            search.abort();
        }
    }

    fn connect(&mut self) {
        if self.connecting.is_some() {
            return;
        }
        let (paths, mut crashes) = (self.paths.clone(), self.crashes.take().unwrap_or_else(|| Crashes::of(Acts::ForPerson)));
        self.connecting = Some(tokio::spawn(async move {
            let outcome = async {
                let mut client = crashes.again(&paths).await?;
                client.call::<Seq>(Request::Watch).await?;
                Ok(client)
            };
            let outcome = outcome.await;
            (crashes, outcome)
        }));
    }
}

/// Programs that are started again get what one would that is started from here.
fn with_environment(request: Request) -> Request {
    let environment = || Some(environment::inherited());
    match request {
        Request::Resume(resume) => Request::Resume(Resume { environment: environment(), ..resume }),
        Request::Restore { names, .. } => Request::Restore { names, environment: environment() },
        other => other,
    }
}

/// A program that is started as if from this terminal.
fn as_from_here(new: NewSession, then: Then) -> NewSession {
    NewSession {
        session: Some(SessionId::new()),
        environment: environment::inherited(),
        // one that nobody attaches to has a size of its own
        size: if then == Then::Attach { tty::window() } else { None },
        umask: Some(environment::umask()),
        ..new
    }
}

async fn receive(client: &mut Option<Client>) -> std::io::Result<Incoming> {
    match client {
        Some(client) => client.receive().await,
        None => std::future::pending().await,
    }
}

async fn connected(connecting: &mut Option<JoinHandle<(Crashes, Result<Client, Failure>)>>) -> Option<(Crashes, Result<Client, Failure>)> {
    match connecting {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}
