//! Where the player is: steps, seeks and their answers, and going on from there as time passes.

use std::time::Duration;

use shared::id::Offset;
use shared::replay::{Moment, Outline, Position, Records, Seek};

use super::{OUTLINE_AGE, Player, Seeking, State, clock_of, offset_at};
use crate::replay::event::{Effect, Turn, Waits};
use crate::replay::keys::Direction;
use crate::replay::reel::{Passed, Reel};

/// Bytes drawn at once at most: about what fits into one frame.
const BUDGET: usize = 512 << 10;

/// Less than this loaded ahead: more is asked for.
const AHEAD: usize = 192 << 10;

/// Further behind than this, in bytes: what lies between is skipped.
const TOO_FAR: u64 = 4 << 20;

/// Points of a growing timeline are this far apart, in bytes.
const POINT_BYTES: u64 = 64 << 10;

/// Steps asked for while one is under way: more would go on after the key is up.
const MAX_STEPS: i32 = 5;

impl Player {
    pub(super) fn step(&mut self, direction: Direction, effects: &mut Vec<Effect>) {
        self.state = State::Paused;
        let step = if direction == Direction::Forward { 1 } else { -1 };
        if self.seeking.is_some() {
            self.next = None;
            self.steps = (self.steps + step).clamp(-MAX_STEPS, MAX_STEPS);
            return;
        }
        let Some(from) = self.reel.as_ref().map(Reel::shown_until) else { return };
        let seek = if step > 0 { Seek::NextChange { from } } else { Seek::PreviousChange { from } };
        self.seek(seek, None, effects);
    }

    /// By so much of what is played: through long pauses quickly.
    pub fn jump_played(&mut self, delta: i64, effects: &mut Vec<Effect>) {
        self.stop_following();
        let played = self.clock.played(self.time).saturating_add_signed(delta).min(self.clock.length());
        self.seek_time(self.clock.recorded(played), effects);
    }

    pub fn seek_offset(&mut self, offset: Offset, effects: &mut Vec<Effect>) {
        self.stop_following();
        self.seek(Seek::Offset { offset }, None, effects);
    }

    pub(super) fn seek_time(&mut self, time: u64, effects: &mut Vec<Effect>) {
        self.seek(Seek::Time { time }, Some(time), effects);
    }

    /// One at a time: while one is under way, the last wish waits.
    pub(super) fn seek(&mut self, seek: Seek, shows: Option<u64>, effects: &mut Vec<Effect>) {
        self.steps = 0;
        self.is_dirty = true;
        if let Some(time) = shows {
            self.time = time;
        }
        if self.seeking.is_some() {
            self.next = Some((seek, shows));
            return;
        }
        self.begin_seek(seek, shows, true, effects);
    }

    pub(super) fn begin_seek(&mut self, seek: Seek, shows: Option<u64>, sets_clock: bool, effects: &mut Vec<Effect>) {
        self.turn += 1;
        self.loading = None;
        self.seeking = Some(Seeking { turn: self.turn, seek, shows, sets_clock });
        effects.push(Effect::Seek(self.turn, seek));
    }

    pub(super) fn moment(&mut self, turn: Turn, moment: &Moment, effects: &mut Vec<Effect>) {
        let Some(seeking) = self.seeking.filter(|seeking| seeking.turn == turn) else { return };
        self.seeking = None;
        self.is_dirty = true;
        let Some(reel) = Reel::restore(moment) else {
            return self.fail("this screen cannot be read: the daemon may be of another version");
        };
        let before = self.reel.replace(reel).map(|reel| reel.at.offset);
        if self.next.is_none() && seeking.sets_clock {
            self.time = seeking.shows.unwrap_or(moment.at.time).max(moment.at.time);
        }
        if before == Some(moment.at.offset) {
            match seeking.seek {
                Seek::NextChange { .. } => self.say("nothing changes after this"),
                Seek::PreviousChange { .. } => self.say("this is the beginning"),
                _ => {}
            }
        }
        self.is_live_now(moment.is_live, moment.end.max(moment.at.offset));
        if seeking.sets_clock {
            self.set_clock();
        }
        if let Some((seek, shows)) = self.next.take() {
            self.begin_seek(seek, shows, true, effects);
        } else if self.steps != 0 {
            let direction = if self.steps > 0 { Direction::Forward } else { Direction::Back };
            let left = self.steps - self.steps.signum();
            self.step(direction, effects);
            self.steps = left;
        } else if let Some(direction) = self.find_then.take() {
            self.find(direction, effects);
        }
    }

    /// What an answer said about the recording as a whole.
    pub(super) fn is_live_now(&mut self, is_live: bool, end: Offset) {
        if is_live != self.outline.is_live || end > self.outline.end.offset {
            self.is_outline_old = true;
        }
        self.outline.is_live = is_live;
    }

    pub(super) fn records(&mut self, turn: Turn, records: Records, effects: &mut Vec<Effect>) {
        if self.loading != Some(turn) {
            return;
        }
        self.loading = None;
        let was_live = self.outline.is_live;
        self.grow(&records);
        self.is_live_now(records.is_live, records.end);
        let end = records.end;
        let Some(reel) = &mut self.reel else { return };
        reel.load(records);
        if self.state != State::Following {
            return;
        }
        if end.saturating_sub(reel.loaded_until()) > TOO_FAR {
            return self.begin_seek(Seek::End, None, true, effects);
        }
        let before = reel.at.offset;
        let mut passed = Vec::new();
        reel.advance(u64::MAX, usize::MAX, &mut passed);
        self.is_dirty |= reel.at.offset != before;
        self.time = reel.at.time;
        let is_over = reel.is_at_end() && !self.outline.is_live;
        self.tell(&passed);
        if is_over {
            self.state = State::Paused;
            self.is_dirty = true;
            if was_live && self.message.is_none() {
                self.say("the program has ended");
            }
        }
    }

    /// A recording that goes on: its timeline too.
    pub(super) fn grow(&mut self, records: &Records) {
        let mut before = self.outline.end;
        let points = &mut self.outline.points;
        for record in records.records.iter().filter(|record| record.end > self.outline.end.offset) {
            let here = Position { offset: record.end, time: record.time.max(before.time) };
            let last = points.last().copied().unwrap_or(before);
            if here.time - last.time.min(here.time) >= self.outline.grain {
                points.extend((before != last).then_some(before));
                points.extend((here.time - before.time >= self.outline.grain).then_some(here));
            } else if here.offset.saturating_sub(last.offset) >= POINT_BYTES {
                points.push(here);
            }
            before = here;
        }
        if before.offset > self.outline.end.offset {
            self.outline.end = before;
            self.clock = clock_of(&self.outline, self.limit);
            self.is_outline_old = true;
            self.is_dirty = true;
        }
    }

    pub(super) fn outline(&mut self, mut outline: Outline) {
        self.is_asking_outline = false;
        self.is_outline_old = false;
        self.is_dirty = true;
        // what was seen since it was written
        if outline.end.offset < self.outline.end.offset {
            outline.points.extend(self.outline.points.iter().filter(|point| point.offset > outline.end.offset));
            outline.end = self.outline.end;
        }
        self.outline = outline;
        self.clock = clock_of(&self.outline, self.limit);
        self.set_clock();
    }

    /// What happens by itself: playing, loading ahead, following, asking for the timeline again.
    pub(super) fn go_on(&mut self, effects: &mut Vec<Effect>) {
        if let State::Playing { since, from } = self.state
            && self.seeking.is_none()
        {
            self.play(since, from, effects);
        }
        if let (State::Following, None) = (self.state, self.seeking)
            && !self.outline.is_live
            && self.reel.as_ref().is_some_and(Reel::is_at_end)
        {
            self.state = State::Paused;
        }
        if let (Some(reel), None, None) = (&self.reel, self.seeking, self.loading) {
            let waits = match self.state {
                State::Paused => None,
                State::Following => Some(Waits::ForMore),
                State::Playing { .. } => (!reel.is_whole && reel.loaded_bytes() < AHEAD).then_some(Waits::No),
            };
            if let Some(waits) = waits {
                self.turn += 1;
                self.loading = Some(self.turn);
                effects.push(Effect::Records { turn: self.turn, from: reel.loaded_until(), waits });
            }
        }
        if self.is_outline_old && !self.is_asking_outline && self.now >= self.outline_asked + OUTLINE_AGE {
            self.is_asking_outline = true;
            self.outline_asked = self.now;
            effects.push(Effect::Outline);
        }
    }

    pub(super) fn play(&mut self, since: Duration, from: u64, effects: &mut Vec<Effect>) {
        let Some(reel) = &mut self.reel else { return };
        let played = from + (self.now.saturating_sub(since).as_micros() as f64 * self.speed.factor()) as u64;
        let target = self.clock.recorded(played);
        let before = (reel.at.offset, self.time / 1_000_000);
        if offset_at(&self.outline, target).saturating_sub(reel.at.offset) > TOO_FAR {
            return self.begin_seek(Seek::Time { time: target }, None, false, effects);
        }
        let mut passed = Vec::new();
        reel.advance(target, BUDGET, &mut passed);
        self.time = target;
        if reel.is_at_end() {
            self.time = reel.at.time;
            self.state = if self.outline.is_live { State::Following } else { State::Paused };
            self.is_dirty = true;
        }
        self.is_dirty |= before != (reel.at.offset, self.time / 1_000_000);
        self.tell(&passed);
    }

    /// What was passed while playing.
    pub(super) fn tell(&mut self, passed: &[Passed]) {
        for passed in passed {
            match passed {
                Passed::Gap(bytes) => self.say(&format!("… {bytes} bytes were not recorded here")),
                Passed::Exit(status) => self.say(&format!("the program ended here: {status}")),
            }
        }
    }
}
