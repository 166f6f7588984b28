//! What the dashboard watches while it is looked at: screens, pulses, rows that have changed. Nothing is watched that is not
//! on the screen, and nothing ticks while nothing happens.

use std::time::Duration;

use shared::attention::Attention;
use shared::event::Event;
use shared::id::SessionId;
use shared::live::{Pulse, PulseOf};
use shared::message::Request;

use super::{App, Link, View};
use crate::dashboard::event::{Asked, Effect, Turn};
use crate::dashboard::state::pane::State;
use crate::dashboard::state::rates;
use crate::dashboard::state::remembered::Layout;
use crate::dashboard::view::areas;

/// Changes are gathered for this long before their rows are asked for.
const GATHER: Duration = Duration::from_millis(80);

/// More changes than this are a new list.
const MANY_ROWS: usize = 100;

/// Between two pulses, at least.
const PULSE: Duration = Duration::from_secs(1);

/// Rows that have just come into view get their pulse after this.
const NEW_ROWS: Duration = Duration::from_millis(400);

/// While something uses the processor, it is measured this often; else less and less often, unless it prints.
const BUSY_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Percent of a core that counts as busy.
const BUSY: f64 = 1.0;

/// Whoever rests on a session for this long, with its screen in view, has seen it.
const SEEN: Duration = Duration::from_millis(1200);

#[derive(Default)]
pub struct Pulsing {
    turn: Turn,
    asked: Option<Duration>,
    ids: Vec<SessionId>,
    seen: Option<u64>,
    wait: Duration,
    due: Duration,
}

/// How long the cursor has been on a session.
#[derive(Default)]
pub struct Resting {
    on: Option<SessionId>,
    since: Duration,
}

impl App {
    /// Sessions whose screens are in view.
    fn looked_at(&self) -> Vec<SessionId> {
        if !self.shows_sessions() {
            return Vec::new();
        }
        if self.layout == Layout::Grid && self.pane.is_none() {
            return areas::tiles(self).into_iter().map(|(id, _)| id).collect();
        }
        let shows_preview = areas::sessions(self).preview.is_some();
        self.list.cursor.filter(|_| shows_preview).into_iter().collect()
    }

    /// Sessions whose rows, or whose page, are in view.
    fn rows_in_view(&self) -> Vec<SessionId> {
        if let Some(View::Detail(detail)) = self.views.last() {
            return detail.session.as_ref().filter(|session| !session.is_over()).map(|session| session.id).into_iter().collect();
        }
        if !self.shows_sessions() {
            return Vec::new();
        }
        if self.layout == Layout::Grid && self.pane.is_none() {
            return self.looked_at();
        }
        let height = areas::list_height(self);
        let rows = self.list.rows.iter().skip(self.list.top).take(height);
        rows.filter_map(|row| match row {
            crate::dashboard::state::list::Row::Session(at) => self.list.all.get(*at).map(|session| session.id),
            crate::dashboard::state::list::Row::Heading { .. } => None,
        })
        .collect()
    }

    /// Asks for what is due, after every event.
    pub(super) fn look_after(&mut self) -> Vec<Effect> {
        let mut effects = self.note_seen();
        if self.link != Link::Up {
            return effects;
        }
        let now = self.now;
        self.sights.want(self.looked_at(), now);
        effects.extend(self.sights.due(now).into_iter().map(|(id, request)| Effect::Ask(Asked::Look(id), request)));
        effects.extend(self.ask_pulse());
        effects
    }

    pub(super) fn next_watch(&self) -> Option<Duration> {
        let pulse = (!self.rows_in_view().is_empty()).then(|| match self.pulse.asked {
            Some(at) if self.pulse.ids != self.rows_in_view() => Some(at + NEW_ROWS),
            Some(_) => None,
            None => Some(self.pulse.due),
        });
        [self.sights.next_deadline(self.now), pulse.flatten()].into_iter().flatten().min()
    }

    fn ask_pulse(&mut self) -> Option<Effect> {
        let ids = self.rows_in_view();
        if ids.is_empty() {
            return None;
        }
        let is_new = ids != self.pulse.ids;
        let is_due = match self.pulse.asked {
            // what is asked now is about other rows
            Some(at) => is_new && self.now >= at + NEW_ROWS,
            None => self.now >= self.pulse.due || is_new,
        };
        if !is_due {
            return None;
        }
        self.pulse.turn += 1;
        self.pulse.asked = Some(self.now);
        if is_new {
            self.pulse.seen = None;
        }
        self.pulse.ids.clone_from(&ids);
        let wait = self.pulse.seen.map(|_| self.pulse.wait.clamp(BUSY_WAIT, LONGEST_WAIT).as_millis() as u64);
        let of = PulseOf { sessions: ids, seen: self.pulse.seen, wait_ms: wait };
        Some(Effect::Ask(Asked::Pulse(self.pulse.turn), Request::Pulse(of)))
    }

    pub(super) fn take_pulses(&mut self, turn: Turn, pulses: Vec<Pulse>) {
        let mut is_busy = false;
        let came: Vec<SessionId> = pulses.iter().map(|pulse| pulse.session).collect();
        let sum = pulses.iter().map(|pulse| pulse.output).sum();
        for pulse in pulses {
            let id = pulse.session;
            if self.list.get(id).is_some_and(|session| session.unreachable != pulse.unreachable) {
                self.is_stale(id);
            }
            if self.rates.take(pulse, self.now) {
                is_busy = true;
                self.list.touch(id, self.at);
            }
            is_busy |= self.rates.get(id).and_then(|rate| rate.cpu).is_some_and(|cpu| cpu >= BUSY);
        }
        self.is_dirty = true;
        if turn != self.pulse.turn {
            return;
        }
        // those that did not come are gone
        let gone: Vec<SessionId> = self.pulse.ids.iter().copied().filter(|id| !came.contains(id)).collect();
        for id in gone {
            self.is_stale(id);
        }
        let is_first = self.pulse.seen.is_none();
        self.pulse.seen = Some(sum);
        self.pulse.asked = None;
        self.pulse.due = self.now + PULSE;
        self.pulse.wait = if is_busy || is_first { BUSY_WAIT } else { (self.pulse.wait * 2).clamp(BUSY_WAIT, LONGEST_WAIT) };
    }

    pub(super) fn pulse_failed(&mut self, turn: Turn) {
        if turn == self.pulse.turn {
            self.pulse.asked = None;
            self.pulse.due = self.now + LONGEST_WAIT;
        }
    }

    fn is_stale(&mut self, id: SessionId) {
        self.stale.insert(id);
        self.stale_due.get_or_insert(self.now + GATHER);
    }

    /// Something was announced.
    pub(super) fn told(&mut self, event: &Event) -> Vec<Effect> {
        self.is_stale(event.session);
        match event.kind.as_str() {
            "start" | "resume" | "restored" => self.sights.stir(event.session, self.now),
            "forgotten" => self.sights.forget(event.session),
            _ => {}
        }
        for view in &mut self.views {
            if let View::Detail(detail) = view {
                detail.told(event);
                self.is_dirty = true;
            }
        }
        // told by the daemon only if nobody looks at it
        let text = event.data.get("text").and_then(serde_json::Value::as_str).filter(|_| event.kind == "notified");
        text.map(|text| Effect::Notify(format!("{}: {text}", event.name))).into_iter().collect()
    }

    /// Rows that have changed, gathered.
    pub(super) fn ask_stale(&mut self) -> Option<Effect> {
        if self.link != Link::Up || self.is_asking_rows || self.stale_due.is_none_or(|at| self.now < at) {
            return None;
        }
        self.stale_due = None;
        self.is_asking_rows = true;
        let ids: Vec<SessionId> = self.stale.drain().collect();
        if ids.len() > MANY_ROWS {
            return Some(self.ask_list());
        }
        Some(Effect::Ask(Asked::Rows(ids.clone()), Request::Rows { sessions: ids }))
    }

    /// Words like "3m" and small curves change with time alone; this is when they do next.
    pub(super) fn next_tick(&self) -> Option<Duration> {
        let ids = self.rows_in_view();
        let moving = ids.iter().filter_map(|id| self.rates.get(*id)).any(|rate| rate.moves_until().is_some_and(|until| until > self.now));
        if moving {
            return Some(rates::next_slot(self.now));
        }
        let youngest = ids
            .iter()
            .filter_map(|id| self.list.get(*id))
            .map(|session| self.at.as_second() - session.last_activity_at.as_second())
            .min()?;
        let step = if youngest < 60 { 5 } else { 60 };
        let passed = youngest.max(0) % step;
        Some(self.now + Duration::from_secs((step - passed).unsigned_abs()))
    }

    /// Only what is drawn every now and then is drawn then: whoever else changes something says so.
    pub(super) fn tick_is_due(&self) -> bool {
        let moved =
            |id: &SessionId| self.rates.get(*id).is_some_and(|rate| rate.moves_until().is_some_and(|until| until + PULSE * 2 > self.now));
        let is_young = |id: &SessionId| {
            self.list.get(*id).is_some_and(|session| {
                let age = self.at.as_second() - session.last_activity_at.as_second();
                if age < 60 { age % 5 == 0 } else { age % 60 == 0 }
            })
        };
        self.rows_in_view().iter().any(|id| moved(id) || is_young(id))
    }

    /// Whoever rests on something has seen it, which is said when the cursor moves on, so that rows do not jump under it.
    fn note_seen(&mut self) -> Vec<Effect> {
        let on = if self.looked_at().len() == 1 { self.list.cursor } else { None };
        if on == self.resting.on {
            return Vec::new();
        }
        let left = self.resting.on.filter(|_| self.now >= self.resting.since + SEEN);
        self.resting = Resting { on, since: self.now };
        left.map(|id| self.seen(id)).unwrap_or_default()
    }

    /// A person has looked at it: that it is done is no news any more. A question stays until it is answered or dismissed.
    pub(super) fn seen(&mut self, id: SessionId) -> Vec<Effect> {
        let needs = self.list.get(id).and_then(|session| session.needs.as_ref());
        let is_news = needs.is_some_and(|needs| needs.state == Attention::DoneUnseen);
        if is_news && self.link == Link::Up {
            return vec![Effect::Ask(Asked::Seen, Request::Seen { name: id.to_string() })];
        }
        Vec::new()
    }

    pub(super) fn lost(&mut self, link: Link) -> Vec<Effect> {
        self.is_dirty = true;
        let connects = link == Link::Lost;
        self.link = link;
        self.peek_at = Some(self.now + super::PEEK);
        self.forget_asked();
        let now = self.now;
        for view in &mut self.views {
            match view {
                View::Hits(hits) => hits.lost(now),
                View::Time(machine) => machine.lost(now),
                View::Detail(_) | View::Stats(_) | View::Messages { .. } | View::Output => {}
            }
        }
        if connects { vec![Effect::Connect] } else { Vec::new() }
    }

    /// A daemon is there again: everything that is shown is asked for anew.
    pub(super) fn back(&mut self) -> Vec<Effect> {
        self.is_dirty = true;
        self.link = Link::Up;
        let mut effects = vec![self.ask_list()];
        let now = self.now;
        for view in &mut self.views {
            match view {
                View::Time(machine) => effects.extend(machine.back(now)),
                View::Detail(detail) => effects.extend(detail.asks()),
                View::Hits(_) | View::Stats(_) | View::Messages { .. } | View::Output => {}
            }
        }
        // one that finds the new daemon by itself is left alone: keys may be on their way through it
        if self.pane.as_ref().is_some_and(|pane| matches!(pane.state, State::Away | State::Over(_))) {
            effects.extend(self.reopen_pane());
        }
        effects
    }
}
