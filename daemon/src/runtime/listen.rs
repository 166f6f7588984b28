//! What a program says besides its screen, as it comes: its title, and whatever bears on whether it needs a person.

use serde_json::json;
use shared::attention::Attention;
use shared::event::Author;
use shared::id::Offset;
use shared::screen::{Event, Located, Scanner};
use tokio::time::{Duration, Instant};

use super::{Runtime, Typist};
use crate::attention::{self, Call};
use crate::recording::{self, Reader, Record};

/// A state has to stand this long before it is told: programs that say everything say much that is over at once.
const SETTLED: Duration = Duration::from_millis(300);

/// Bells and notifications of a session are told no more often than this, each kind by itself.
const CALLS_APART: Duration = Duration::from_secs(3);

/// How far before the end of its recording an earlier daemon's evidence is looked for.
const LOOK_BACK: u64 = 1 << 20;

/// Scanned at a time when looking back.
const SLICE: usize = 256 << 10;

/// What was told of attention, and what is to be.
pub(super) struct Listening {
    hears: Hears,
    told: Attention,
    /// When what is thought now has stood for long enough to be told.
    pub settles_at: Option<Instant>,
    bell_at: Option<Instant>,
    notified_at: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    /// What an earlier daemon may have heard, and told.
    Again,
    News,
}

impl Default for Listening {
    fn default() -> Self {
        Self { hears: Hears::News, told: Attention::Unknown, settles_at: None, bell_at: None, notified_at: None }
    }
}

impl Runtime {
    pub(super) fn listen(&mut self, events: &[Located]) {
        if events.iter().any(|located| matches!(located.event, Event::Title(_))) {
            self.facts.set_title(&self.scanner.modes().title);
        }
        if self.listening.hears == Hears::Again || !attention::concerns(events) {
            return;
        }
        let calls = self.facts.evidence(|evidence| evidence.hear(events, jiff::Timestamp::now()));
        let now = Instant::now();
        for call in calls {
            let last = match call {
                Call::Bell => &mut self.listening.bell_at,
                Call::Notification { .. } => &mut self.listening.notified_at,
            };
            if last.is_none_or(|last| now >= last + CALLS_APART) {
                *last = Some(now);
                self.tell(call.kind(), Author::Daemon, call.data());
            }
        }
        self.attention_may_have_changed();
    }

    pub(super) fn heard_typing(&mut self, from: Typist, bytes: &[u8]) {
        // what is sent is always meant; a client's terminal also speaks for itself
        if from == Typist::Api || attention::is_typed(bytes) {
            self.facts.evidence(|evidence| evidence.typed(jiff::Timestamp::now()));
            self.attention_may_have_changed();
        }
    }

    /// A person has looked.
    pub(super) fn note_seen(&mut self) {
        self.facts.set_seen(jiff::Timestamp::now());
        self.attention_may_have_changed();
        let (store, session) = (self.context.store.clone(), self.facts.session());
        tokio::spawn(async move {
            // a session removed meanwhile has nothing to be seen
            let _ = store.seen(session).await;
        });
    }

    fn attention(&self) -> Attention {
        self.facts.needs().map_or(Attention::Unknown, |needs| needs.state)
    }

    pub(super) fn attention_may_have_changed(&mut self) {
        if self.interpreter.is_some() {
            // its calls are told one by one
            return;
        }
        self.listening.settles_at = if self.attention() == self.listening.told {
            None
        } else {
            Some(self.listening.settles_at.unwrap_or_else(|| Instant::now() + SETTLED))
        };
    }

    pub(super) fn tell_attention_if_settled(&mut self, now: Instant) {
        if self.listening.settles_at.is_none_or(|at| now < at) {
            return;
        }
        self.listening.settles_at = None;
        let needs = self.facts.needs();
        let state = needs.as_ref().map_or(Attention::Unknown, |needs| needs.state);
        let was = std::mem::replace(&mut self.listening.told, state);
        if was != state {
            let why = needs.map(|needs| needs.why).unwrap_or_default();
            self.tell("status", Author::Daemon, json!({"state": state, "was": was, "why": why}));
        }
    }

    /// What the program said before there was this daemon, as far as the last part of its recording tells; whatever an earlier
    /// one was able to tell of it has been told.
    pub(super) async fn remember_evidence(&mut self) {
        self.listening.hears = Hears::Again;
        self.read_evidence(self.end).await;
    }

    /// From here on everything is new.
    pub(super) fn begin_listening(&mut self) {
        self.listening.told = self.attention();
        self.listening.hears = Hears::News;
    }

    async fn read_evidence(&mut self, until: Offset) {
        let dir = self.context.paths.recording(self.id);
        let Some(header) = recording::header(&dir).filter(|_| until > 0) else { return };
        let first = recording::segments(&dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
        let near = recording::last_keyframe(&dir, until.saturating_sub(LOOK_BACK)).ok().flatten();
        let mut reader = Reader::new(&dir, near.map_or(first, |(at, _)| at.offset.max(first)));
        let mut scanner = Scanner::new();
        let mut events = Vec::new();
        loop {
            let facts = &self.facts;
            let read = reader.read(until, SLICE, |_, time, record| {
                if let Record::Output(bytes) = record {
                    events.clear();
                    scanner.feed(bytes, &mut events);
                    let at = jiff::Timestamp::from_microsecond(header.began_at.saturating_add_unsigned(time));
                    if let Ok(at) = at
                        && attention::concerns(&events)
                    {
                        facts.evidence(|evidence| evidence.hear(&events, at));
                    }
                }
            });
            // what cannot be read any more says nothing
            if !matches!(read, Ok(true)) {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}
