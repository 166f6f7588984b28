//! Gives a player or a look back a terminal and a daemon: the loop, and what effects do.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyModifiers};
use futures_util::StreamExt;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::Rect;
use shared::id::RuntimeId;
use shared::message::{Answer, Failure, Push, Request};
use shared::paths::Paths;
use shared::replay::{Of, Outline};
use shared::search::{Hit, Pattern};
use tokio::signal::unix::{SignalKind, signal};

use super::event::{Effect, Event, Turn, Waits};
use super::{History, Player, Start, view};
use crate::client::{Client, Incoming};
use crate::connect::{self, Crashes};
use crate::tty;
use crate::window::{Window, broken};

/// Between two drawings.
const FRAME: Duration = Duration::from_millis(16);

/// At the end of a live recording: asked again after this.
const WAIT: Duration = Duration::from_mins(1);

/// What the loop needs to know of whatever it shows.
pub trait Component {
    fn update(&mut self, event: Event) -> Vec<Effect>;
    fn next_deadline(&self) -> Option<Duration>;
    fn take_dirty(&mut self) -> bool;
    fn draw(&self, frame: &mut Frame<'_>, area: Rect);
}

impl Component for Player {
    fn update(&mut self, event: Event) -> Vec<Effect> {
        self.update(event)
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.next_deadline()
    }

    fn take_dirty(&mut self) -> bool {
        self.take_dirty()
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        view::draw(self, frame, area);
    }
}

/// Why it is over.
#[derive(Debug, PartialEq, Eq)]
pub enum Left {
    /// What was typed behind that key is for whatever comes next.
    ByKey { typed: Vec<u8> },
    /// The window is gone, or somebody ended us.
    Gone,
}

/// Plays a recording until the user leaves.
pub async fn replay(paths: &Paths, of: Of, start: &Start) -> Result<Left, Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("replay needs a terminal: in scripts use `sessions-tui screen` for what is to be seen at the end"));
    }
    let mut client = connect::connect(paths).await?;
    let outline: Outline = client.call(Request::Replay(of)).await?;
    let runtime = outline.runtime;
    let (mut player, effects) = Player::new(outline, start, TimeZone::system()).map_err(Failure::usage)?;
    show(paths, client, runtime, &mut player, effects).await
}

/// Shows what scrolled away, and what was before it, until the user goes back.
pub async fn look_back(paths: &Paths, of: Of) -> Result<Left, Failure> {
    let mut client = connect::connect(paths).await?;
    let outline: Outline = client.call(Request::Replay(of)).await?;
    let runtime = outline.runtime;
    let (mut history, effects) = History::new(outline, TimeZone::system()).map_err(Failure::usage)?;
    show(paths, client, runtime, &mut history, effects).await
}

/// What was asked, to understand the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Outline,
    Seek(Turn),
    Records(Turn),
    Find(Turn),
    Scrolled(Turn),
}

/// What an effect comes to, for whoever has a daemon to ask.
#[expect(clippy::large_enum_variant, reason = "short-lived, and most of them are the large one")]
pub enum Wanted {
    Ask(Request, Asked),
    /// Into the clipboard of the user's terminal.
    Copy(String),
}

/// What is to be done for an effect; nothing more for one that leaves.
pub fn request(runtime: RuntimeId, effect: Effect) -> Option<Wanted> {
    let (request, asked) = match effect {
        Effect::Leave => return None,
        Effect::Copy(text) => return Some(Wanted::Copy(text)),
        Effect::Find { turn, pattern: text, ignore_case, from, forward } => {
            let pattern = Pattern { text, regex: false, ignore_case };
            (Request::Find { runtime, pattern, from, forward }, Asked::Find(turn))
        }
        Effect::Outline => (Request::Replay(Of { runtime: Some(runtime), ..Of::default() }), Asked::Outline),
        Effect::Seek(turn, seek) => (Request::Seek { runtime, seek }, Asked::Seek(turn)),
        Effect::Records { turn, from, waits } => {
            let wait_ms = (waits == Waits::ForMore).then_some(WAIT.as_millis() as u64);
            (Request::Records { runtime, from, most: None, wait_ms }, Asked::Records(turn))
        }
        Effect::Scrolled { turn, until, most } => (Request::Scrolled { runtime, until, most }, Asked::Scrolled(turn)),
    };
    Some(Wanted::Ask(request, asked))
}

async fn show(
    paths: &Paths,
    mut client: Client,
    runtime: RuntimeId,
    component: &mut impl Component,
    mut effects: Vec<Effect>,
) -> Result<Left, Failure> {
    let mut terminated = signal(SignalKind::terminate()).map_err(broken)?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(broken)?;
    let mut resized = signal(SignalKind::window_change()).map_err(broken)?;
    let mut window = Window::open()?;
    let mut keys = EventStream::new();
    let mut asked: HashMap<u64, Asked> = HashMap::new();
    let mut crashes = Crashes::default();
    let began = Instant::now();
    let mut drawn: Option<Instant> = None;
    let mut is_dirty = true;
    let size = window.size()?;
    let mut events = vec![Event::Resized(Rect::new(0, 0, size.width, size.height))];
    loop {
        for event in std::mem::take(&mut events) {
            effects.extend(component.update(Event::Time(began.elapsed())));
            effects.extend(component.update(event));
        }
        let mut is_lost = false;
        for effect in std::mem::take(&mut effects) {
            let (request, what) = match self::request(runtime, effect) {
                Some(Wanted::Ask(request, what)) => (request, what),
                Some(Wanted::Copy(text)) => {
                    tty::copy(&text).map_err(broken)?;
                    continue;
                }
                None => {
                    drop(keys);
                    return Ok(Left::ByKey { typed: typed_behind() });
                }
            };
            match client.send(request).await {
                Ok(id) => {
                    asked.insert(id, what);
                }
                Err(_) => is_lost = true,
            }
        }
        is_dirty |= component.take_dirty();
        if is_dirty && drawn.is_none_or(|at| at.elapsed() >= FRAME) {
            window.draw(|frame| component.draw(frame, frame.area()))?;
            drawn = Some(Instant::now());
            is_dirty = false;
        }
        let next = [component.next_deadline().map(|at| began + at), drawn.filter(|_| is_dirty).map(|at| at + FRAME)];
        let deadline = next.into_iter().flatten().min();
        let event = tokio::select! {
            biased;
            _ = terminated.recv() => return Ok(Left::Gone),
            _ = hung_up.recv() => return Ok(Left::Gone),
            _ = resized.recv() => {
                let size = window.resized()?;
                Some(Event::Resized(Rect::new(0, 0, size.width, size.height)))
            }
            key = keys.next() => match key {
                Some(Ok(TerminalEvent::Key(key))) => Some(Event::Key(key)),
                Some(Ok(TerminalEvent::Mouse(mouse))) => Some(Event::Mouse(mouse)),
                Some(Ok(TerminalEvent::Paste(text))) => Some(Event::Paste(text)),
                Some(Ok(_)) => None,
                Some(Err(_)) | None => return Ok(Left::Gone),
            },
            incoming = client.receive(), if !is_lost => match incoming {
                Ok(Incoming::Answer(answer)) => asked.remove(&answer.id).map(|what| understood(what, answer)),
                Ok(Incoming::Push(Push::Stopping { restart: false })) => {
                    return Err(connect::no_daemon("the daemon was stopped; sessions go on".into()));
                }
                Ok(Incoming::Push(Push::Stopping { restart: true })) | Err(_) => {
                    is_lost = true;
                    None
                }
                Ok(Incoming::Push(_) | Incoming::Output(_)) => None,
            },
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now).into()), if deadline.is_some() => None,
            () = std::future::ready(()), if is_lost => None,
        };
        if is_lost {
            asked.clear();
            component.update(Event::Time(began.elapsed()));
            component.update(Event::Lost);
            window.draw(|frame| component.draw(frame, frame.area()))?;
            client = crashes.again(paths).await?;
            events.push(Event::Back);
        }
        events.extend(event);
        if events.is_empty() {
            effects.extend(component.update(Event::Time(began.elapsed())));
        }
    }
}

/// Keys that have been read with the last one, as a terminal sends them; those that have no such form are few, and lost.
pub fn typed_behind() -> Vec<u8> {
    let mut typed = Vec::new();
    // without any time crossterm does not even look at what it has read
    while crossterm::event::poll(Duration::from_millis(1)).unwrap_or(false) {
        let Ok(event) = crossterm::event::read() else { break };
        if let TerminalEvent::Key(key) = event {
            match key.code {
                KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) && c.is_ascii_alphabetic() => typed.push(c as u8 & 0x1f),
                KeyCode::Char(c) => typed.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                KeyCode::Enter => typed.push(b'\r'),
                KeyCode::Tab => typed.push(b'\t'),
                KeyCode::Backspace => typed.push(0x7f),
                _ => {}
            }
        }
    }
    typed
}

/// What was asked cannot be had.
pub fn failed(what: Asked, why: String) -> Event {
    match what {
        Asked::Outline => Event::Failed(0, why),
        Asked::Seek(turn) | Asked::Records(turn) | Asked::Find(turn) | Asked::Scrolled(turn) => Event::Failed(turn, why),
    }
}

/// The answer to what was asked, as an event.
pub fn understood(what: Asked, answer: Answer) -> Event {
    let outcome = match what {
        Asked::Outline => answer.understand().map(|outline| Event::Outline(Box::new(outline))),
        Asked::Seek(turn) => answer.understand().map(|moment| Event::Moment(turn, moment)),
        Asked::Records(turn) => answer.understand().map(|records| Event::Records(turn, records)),
        Asked::Find(turn) => answer.understand::<Option<Hit>>().map(|hit| Event::Found(turn, hit.and_then(|hit| hit.offset))),
        Asked::Scrolled(turn) => answer.understand().map(|lines| Event::Scrolled(turn, lines)),
    };
    outcome.unwrap_or_else(|failure| failed(what, failure.message))
}
