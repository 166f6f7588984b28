//! The time machine inside the dashboard: a player, or what scrolled away of the terminal beside the list.

use std::time::Duration;

use ratatui::layout::Rect;
use shared::exec::Language;
use shared::id::{RuntimeId, SessionId};
use shared::message::Request;
use shared::replay::{Of, Outline};
use shared::search;

use super::{App, View};
use crate::dashboard::event::{Asked, Effect, Opens, Turn, Where};
use crate::dashboard::view::areas;
use crate::replay::{self, Component, History, Pattern, Place, Player, Start};

pub struct TimeMachine {
    pub turn: Turn,
    runtime: RuntimeId,
    /// Beside the list, in the place of the terminal.
    pub is_beside: bool,
    pub component: Box<dyn Component>,
}

impl TimeMachine {
    pub fn next_deadline(&self) -> Option<Duration> {
        self.component.next_deadline()
    }

    fn update(&mut self, event: replay::Event, now: Duration) -> Vec<replay::Effect> {
        let mut wants = self.component.update(replay::Event::Time(now));
        wants.extend(self.component.update(event));
        wants
    }

    /// What it wants, as requests; `None`: it wants to be left.
    fn effects(&self, wants: Vec<replay::Effect>) -> Option<Vec<Effect>> {
        let mut effects = Vec::new();
        for want in wants {
            match replay::request(self.runtime, want) {
                Some(replay::Wanted::Ask(request, asked)) => effects.push(Effect::Ask(Asked::Time(self.turn, asked), request)),
                Some(replay::Wanted::Copy(text)) => effects.push(Effect::Copy(text)),
                None => return None,
            }
        }
        Some(effects)
    }

    pub fn lost(&mut self, now: Duration) {
        self.update(replay::Event::Lost, now);
    }

    pub fn back(&mut self, now: Duration) -> Vec<Effect> {
        let wants = self.update(replay::Event::Back, now);
        self.effects(wants).unwrap_or_default()
    }
}

impl App {
    /// Asks for a recording to play.
    pub(super) fn open_recording(of: Of, at: Option<Where>, pattern: Option<search::Pattern>) -> Vec<Effect> {
        vec![Effect::Ask(Asked::Open(Box::new(Opens::Player { at, pattern })), Request::Replay(of))]
    }

    pub(super) fn play(&mut self, session: SessionId) -> Vec<Effect> {
        let mut effects = self.seen(session);
        effects.extend(Self::open_recording(Of { name: session.to_string(), ..Of::default() }, None, None));
        effects
    }

    pub(super) fn play_call(session: SessionId, language: Language, at: jiff::Timestamp) -> Vec<Effect> {
        Self::open_recording(Of { name: session.to_string(), language: Some(language), runtime: None }, Some(Where::Moment(at)), None)
    }

    pub(super) fn opened(&mut self, opens: &Opens, outline: Outline) -> Vec<Effect> {
        let runtime = outline.runtime;
        let made: Result<(Box<dyn Component>, Vec<replay::Effect>), String> = match opens {
            Opens::Player { at, pattern } => {
                let mut start = Start {
                    pattern: pattern.as_ref().filter(|pattern| !pattern.regex).map(|pattern| Pattern::new(&pattern.text)),
                    ..Start::default()
                };
                match at {
                    Some(Where::Offset(offset)) => start.offset = Some(*offset),
                    Some(Where::Moment(moment)) => {
                        start.place = Some(Place::Near(*moment));
                        start.is_paused = true;
                    }
                    None => {}
                }
                Player::new(outline, &start, self.zone.clone()).map(|(player, wants)| (Box::new(player) as Box<dyn Component>, wants))
            }
            Opens::History => {
                History::new(outline, self.zone.clone()).map(|(history, wants)| (Box::new(history) as Box<dyn Component>, wants))
            }
        };
        match made {
            Ok((component, wants)) => {
                let turn = self.next_turn();
                let machine = TimeMachine { turn, runtime, is_beside: *opens == Opens::History, component };
                let mut effects = machine.effects(wants).unwrap_or_default();
                self.views.push(View::Time(machine));
                effects.extend(self.time_resized());
                self.is_dirty = true;
                effects
            }
            Err(why) => {
                self.fail(why);
                Vec::new()
            }
        }
    }

    pub(super) fn time_event(&mut self, event: replay::Event) -> Vec<Effect> {
        let now = self.now;
        let Some(View::Time(machine)) = self.views.last_mut() else { return Vec::new() };
        let wants = machine.update(event, now);
        let effects = machine.effects(wants);
        self.is_dirty |= machine.component.take_dirty();
        match effects {
            Some(effects) => effects,
            None => {
                self.views.pop();
                self.is_dirty = true;
                Vec::new()
            }
        }
    }

    pub(super) fn time_passed(&mut self) -> Vec<Effect> {
        let now = self.now;
        self.time_event(replay::Event::Time(now))
    }

    /// An answer that belongs to the machine that is open.
    pub(super) fn time_answer(&mut self, turn: Turn, event: replay::Event) -> Vec<Effect> {
        match self.views.last() {
            Some(View::Time(machine)) if machine.turn == turn => self.time_event(event),
            _ => Vec::new(),
        }
    }

    pub(super) fn time_resized(&mut self) -> Vec<Effect> {
        let area = areas::time(self);
        if area == Rect::default() {
            return Vec::new();
        }
        self.time_event(replay::Event::Resized(area))
    }
}
