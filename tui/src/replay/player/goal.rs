//! Where somebody wants to go by name: a time, a match, a command, a mark.

use shared::id::Offset;
use shared::replay::{Mark, MarkKind, Seek};
use shared::text::{fit, visible};

use super::{Player, State, offset_at};
use crate::replay::event::{Effect, Turn};
use crate::replay::find::Pattern;
use crate::replay::keys::Direction;
use crate::replay::place::Place;
use crate::replay::reel::Reel;

/// Jumping back to a command while playing: one that has only just begun is not meant.
const JUST_BEGUN: u64 = 1_000_000;

impl Player {
    pub(super) fn go_to(&mut self, text: &str, effects: &mut Vec<Effect>) {
        if text.trim().is_empty() {
            return;
        }
        let resolved = Place::parse(text).and_then(|place| place.resolve(&self.outline, &self.clock, self.time, &self.zone));
        match resolved {
            Ok(time) => {
                self.stop_following();
                self.seek_time(time, effects);
            }
            Err(why) => self.fail(&why),
        }
    }

    pub(super) fn search(&mut self, text: &str, effects: &mut Vec<Effect>) {
        // nothing typed: the same again
        if !text.is_empty() {
            self.pattern = Some(Pattern::new(text));
        }
        self.find(Direction::Forward, effects);
    }

    pub fn find(&mut self, direction: Direction, effects: &mut Vec<Effect>) {
        let Some(pattern) = self.pattern.clone() else { return self.say("type / and what to look for first") };
        if self.seeking.is_some() {
            self.find_then = Some(direction);
            return self.say("searching…");
        }
        let Some(from) = self.reel.as_ref().map(Reel::shown_until) else { return };
        self.turn += 1;
        self.finding = Some((self.turn, direction));
        self.say("searching…");
        effects.push(Effect::Find {
            turn: self.turn,
            pattern: pattern.text,
            ignore_case: pattern.ignore_case,
            from,
            forward: direction == Direction::Forward,
        });
    }

    pub(super) fn found(&mut self, turn: Turn, found: Option<Offset>, effects: &mut Vec<Effect>) {
        let Some((_, direction)) = self.finding.take_if(|(finding, _)| *finding == turn) else { return };
        self.message = None;
        self.is_dirty = true;
        match found {
            Some(offset) => {
                self.state = State::Paused;
                self.seek(Seek::Offset { offset }, None, effects);
            }
            None => {
                let where_ = if direction == Direction::Forward { "after" } else { "before" };
                let what = self.pattern.as_ref().map_or("", |pattern| &pattern.text);
                self.say(&format!("no {:?} {where_} this", fit(&visible(what), 40)));
            }
        }
    }

    /// The position that is shown, or the one that is on its way.
    pub(super) fn goal(&self) -> Offset {
        let seek = self.next.map(|(seek, _)| seek).or_else(|| self.seeking.map(|seeking| seeking.seek));
        match seek {
            Some(Seek::Offset { offset }) => offset,
            Some(Seek::Time { time }) => offset_at(&self.outline, time),
            Some(Seek::End) => self.outline.end.offset,
            _ => self.reel.as_ref().map_or(0, |reel| reel.at.offset),
        }
    }

    pub(super) fn jump_to_mark(&mut self, direction: Direction, is_meant: fn(&Mark) -> bool, what: &str, effects: &mut Vec<Effect>) {
        self.stop_following();
        let here = self.goal();
        let slack = if matches!(self.state, State::Playing { .. }) { JUST_BEGUN } else { 0 };
        let is_after = |mark: &&Mark| match mark.offset {
            Some(offset) => offset > here,
            None => mark.time > self.time,
        };
        let is_before = |mark: &&Mark| match mark.offset {
            Some(offset) => offset < here && mark.time + slack <= self.time,
            None => mark.time + slack < self.time,
        };
        let mut marks = self.outline.marks.iter().filter(|mark| is_meant(mark));
        let found = match direction {
            Direction::Forward => marks.find(is_after),
            Direction::Back => marks.rfind(is_before),
        };
        match found.map(|mark| (mark.offset, mark.time, mark.text.clone(), mark.kind)) {
            Some((offset, time, text, kind)) => {
                match offset {
                    Some(offset) => self.seek(Seek::Offset { offset }, Some(time), effects),
                    None => self.seek_time(time, effects),
                }
                if kind != MarkKind::Command {
                    self.say(&text);
                }
            }
            None => {
                let where_ = if direction == Direction::Forward { "after" } else { "before" };
                self.say(&format!("there is no {what} {where_} this"));
            }
        }
    }
}
