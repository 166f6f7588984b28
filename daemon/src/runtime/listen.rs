//! What a program says besides its screen, as it comes: its title, and whatever bears on whether it needs a person.

use serde_json::json;
use shared::attention::Attention;
use shared::event::Author;
use shared::id::Offset;
use shared::screen::{Event, Located, Scanner};
use tokio::time::{Duration, Instant};

use super::{Runtime, Typist, inside};
use crate::attention::{self, Call, Sign};
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
    /// When it may be thought otherwise without anything being said.
    pub doubts_at: Option<Instant>,
    /// What it was waiting for when that was told.
    told_why: String,
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
        Self {
            hears: Hears::News,
            told: Attention::Unknown,
            settles_at: None,
            doubts_at: None,
            told_why: String::new(),
            bell_at: None,
            notified_at: None,
        }
    }
}

/// It waits for a person.
fn is_question(state: Attention) -> bool {
    matches!(state, Attention::WaitingApproval | Attention::WaitingAnswer | Attention::Stuck)
}

impl Runtime {
    pub(super) fn listen(&mut self, events: &[Located]) {
        if events.iter().any(|located| matches!(located.event, Event::Title(_))) {
            self.facts.set_title(&self.scanner.modes().title);
            if self.listening.hears == Hears::News {
                self.read_title(jiff::Timestamp::now());
            }
        }
        if inside::is_at_prompt(events) && self.listening.hears == Hears::News {
            self.look_at_folder();
            self.look_at_environment();
        }
        if self.listening.hears == Hears::Again || !attention::concerns(events) {
            return;
        }
        let had_hook = self.facts.evidence(|evidence| evidence.hook().is_some());
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
        if events.iter().any(|located| matches!(located.event, Event::Prompt { .. })) {
            self.forget_hook_if_over(had_hook);
        }
    }

    /// What no longer stands is not to be believed by the next daemon.
    fn forget_hook_if_over(&self, had_hook: bool) {
        if had_hook && self.facts.evidence(|evidence| evidence.hook().is_none()) {
            self.keep_hook();
        }
    }

    pub(super) fn heard_typing(&mut self, from: Typist, bytes: &[u8]) {
        // what is sent is always meant; a client's terminal also speaks for itself
        if from == Typist::Api || attention::is_typed(bytes) {
            let had_hook = self.facts.evidence(|evidence| evidence.hook().is_some());
            let enters = bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
            let is_answer = self.facts.evidence(|evidence| {
                let is_answer = evidence.typed(jiff::Timestamp::now());
                if enters {
                    evidence.entered();
                }
                is_answer
            });
            let is_first_since_notice = self.inside.notified_at.is_some() && self.inside.typed_at < self.inside.notified_at;
            self.inside.typed_at = Some(jiff::Timestamp::now());
            self.attention_may_have_changed();
            self.forget_hook_if_over(had_hook);
            if is_answer || is_first_since_notice {
                self.keep_answered();
            }
        }
    }

    /// A person dismisses what it asks.
    pub(super) fn dismissed(&mut self) {
        let had_hook = self.facts.evidence(|evidence| evidence.hook().is_some());
        self.facts.evidence(|evidence| evidence.dismiss(jiff::Timestamp::now()));
        self.inside.typed_at = Some(jiff::Timestamp::now());
        self.attention_may_have_changed();
        self.forget_hook_if_over(had_hook);
        self.keep_answered();
    }

    /// The next daemon reads the question in the recording again, but not its answer.
    fn keep_answered(&self) {
        let (context, session) = (self.context.clone(), self.facts.session());
        tokio::spawn(async move {
            match context.store.answered(session).await {
                // a session removed meanwhile has no question
                Ok(()) | Err(crate::store::Error::Gone) => {}
                Err(error) => context.log.warn(&format!("storing that session {session} was answered: {error}")),
            }
        });
    }

    /// A person has looked.
    pub(super) fn note_seen(&mut self) {
        self.facts.set_seen(jiff::Timestamp::now());
        self.attention_may_have_changed();
        let (store, session) = (self.context.store.clone(), self.facts.session());
        tokio::spawn(async move {
            // a session removed meanwhile has nothing to be seen
            let _ = store.known(session).await;
        });
    }

    pub(super) fn attention_may_have_changed(&mut self) {
        if self.interpreter.is_some() {
            // its calls are told one by one
            return;
        }
        self.check_prompt();
        let needs = self.facts.needs();
        let state = needs.as_ref().map_or(Attention::Unknown, |needs| needs.state);
        // another question is news, also right after the last one
        let asks_else = is_question(state) && needs.is_some_and(|needs| needs.why != self.listening.told_why);
        self.listening.settles_at = if state == self.listening.told && !asks_else {
            None
        } else {
            Some(self.listening.settles_at.unwrap_or_else(|| Instant::now() + SETTLED))
        };
        let moment = self.facts.moment();
        self.listening.doubts_at = self.facts.evidence(|evidence| evidence.changes_in(moment)).map(|left| Instant::now() + left);
    }

    pub(super) fn tell_attention_if_settled(&mut self, now: Instant) {
        if self.listening.doubts_at.is_some_and(|at| now >= at) {
            self.attention_may_have_changed();
        }
        if self.listening.settles_at.is_none_or(|at| now < at) {
            return;
        }
        self.listening.settles_at = None;
        let decision = self.facts.decide();
        let needs = decision.as_ref().map(|(needs, _)| needs);
        let state = needs.map_or(Attention::Unknown, |needs| needs.state);
        let was = std::mem::replace(&mut self.listening.told, state);
        let why = needs.map(|needs| needs.why.clone()).unwrap_or_default();
        self.listening.told_why.clone_from(&why);
        if let Some((needs, basis)) = decision.filter(|(needs, _)| is_question(needs.state)) {
            self.notify_of(&needs, basis);
        }
        if was != state {
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
        let decision = self.facts.decide();
        self.listening.told = decision.as_ref().map_or(Attention::Unknown, |(needs, _)| needs.state);
        self.listening.told_why = decision.as_ref().map(|(needs, _)| needs.why.clone()).unwrap_or_default();
        self.listening.hears = Hears::News;
        self.look_at_environment();
        // what was asked while no daemon was there
        if let Some((needs, basis)) = decision.filter(|(needs, _)| is_question(needs.state)) {
            self.notify_of(&needs, basis);
        }
        self.attention_may_have_changed();
    }

    async fn read_evidence(&mut self, until: Offset) {
        let dir = self.context.paths.recording(self.id);
        let Some(header) = recording::header(&dir).filter(|_| until > 0) else { return };
        let first = recording::segments(&dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
        let near = recording::last_keyframe(&dir, until.saturating_sub(LOOK_BACK)).ok().flatten();
        let mut reader = Reader::new(&dir, near.map_or(first, |(at, _)| at.offset.max(first)));
        let mut scanner = Scanner::new();
        let mut events = Vec::new();
        let agent = self.agent();
        let reads_screen = self.reads_screen();
        loop {
            let facts = &self.facts;
            let read = reader.read(until, SLICE, |_, time, record| {
                if let Record::Output(bytes) = record {
                    events.clear();
                    scanner.feed(bytes, &mut events);
                    let at = jiff::Timestamp::from_microsecond(header.began_at.saturating_add_unsigned(time));
                    let Ok(at) = at else { return };
                    if attention::concerns(&events) {
                        facts.evidence(|evidence| evidence.hear(&events, at));
                    }
                    if let Some(agent) = &agent
                        && events.iter().any(|located| matches!(located.event, Event::Title(_)))
                    {
                        let reading = agent.read_title(&scanner.modes().title).filter(|reading| reads_screen || !reading.is_weak);
                        facts.evidence(|evidence| evidence.titled(reading.map(|reading| Sign::new(reading, at))));
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
