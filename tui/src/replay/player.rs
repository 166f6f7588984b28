//! The player's state and its pure update: events in, effects out. No I/O, no clock of its own, no drawing.

use std::time::Duration;

use crossterm::event::{KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use jiff::tz::TimeZone;
use ratatui::layout::{Position as Point, Rect};
use shared::id::Offset;
use shared::replay::{Mark, MarkKind, Moment, Outline, Position, Records, Seek};
use shared::screen::{Screen, Size};
use shared::text::{fit, visible};

use super::clock::{Clock, IdleLimit, Speed};
use super::event::{Effect, Event, Turn, Waits};
use super::find::Pattern;
use super::keys::{self, Action, Direction};
use super::place::{Place, in_words};
use super::prompt::{Asks, Prompt, Typed};
use super::reel::{Passed, Reel};
use super::screen_widget::Part;
use super::{timeline, view};

/// Bytes drawn at once at most: about what fits into one frame.
const BUDGET: usize = 512 << 10;

/// Less than this loaded ahead: more is asked for.
const AHEAD: usize = 192 << 10;

/// Further behind than this, in bytes: what lies between is skipped.
const TOO_FAR: u64 = 4 << 20;

/// The pace of pictures while playing, and of the time shown when there is nothing else to draw.
const FRAME: Duration = Duration::from_millis(33);
const TICK: Duration = Duration::from_millis(200);

/// The timeline of a live recording is asked for again after this at the earliest.
const OUTLINE_AGE: Duration = Duration::from_secs(2);

/// How long something is said that nobody asked for.
const BRIEFLY: Duration = Duration::from_secs(3);

/// Steps asked for while one is under way: more would go on after the key is up.
const MAX_STEPS: i32 = 5;

/// Jumping back to a command while playing: one that has only just begun is not meant.
const JUST_BEGUN: u64 = 1_000_000;

/// Where the first frame of a whole recording ends, at most: what begins later has lost its first segments, which are far larger.
const DROPPED: u64 = 1 << 20;

/// Columns from which on it is said at length that a recording is larger than the window.
const ROOM_FOR_HINT: usize = 120;

/// Points of a growing timeline are this far apart, in bytes.
const POINT_BYTES: u64 = 64 << 10;

/// How a replay begins.
#[derive(Clone, Debug, Default)]
pub struct Start {
    pub place: Option<Place>,
    /// Exactly there, paused.
    pub offset: Option<Offset>,
    pub speed: Speed,
    pub limit: IdleLimit,
    pub is_paused: bool,
    /// What is to be highlighted, and gone on with.
    pub pattern: Option<Pattern>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    Paused,
    /// At `since` the played time was `from`.
    Playing {
        since: Duration,
        from: u64,
    },
    /// At the end of a live recording, which goes on.
    Following,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub text: String,
    pub is_failure: bool,
    /// Then it goes by itself.
    until: Option<Duration>,
}

/// A seek that is under way.
#[derive(Clone, Copy, Debug)]
struct Seeking {
    turn: Turn,
    seek: Seek,
    /// The time to be shown when it is done, if that is not the position's own.
    shows: Option<u64>,
    /// The clock goes on from there; else it has gone on meanwhile.
    sets_clock: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// As it was; in a smaller window, the part with the cursor.
    AtCursor,
    /// The part the user has moved to.
    AtPan,
    /// All of it, in small.
    Small,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Overlay {
    Help,
    Prompt(Prompt),
}

pub struct Player {
    pub outline: Outline,
    pub clock: Clock,
    pub zone: TimeZone,
    pub state: State,
    pub speed: Speed,
    pub limit: IdleLimit,
    /// What is shown, once there is something.
    pub reel: Option<Reel>,
    /// In the recording; in a pause it is later than the position's.
    pub time: u64,
    pub looks: Looks,
    pub pan: (u16, u16),
    pub overlay: Option<Overlay>,
    pub message: Option<Message>,
    pub pattern: Option<Pattern>,
    area: Rect,
    now: Duration,
    turn: Turn,
    seeking: Option<Seeking>,
    /// What to do when that is done: the last wish, or so many steps.
    next: Option<(Seek, Option<u64>)>,
    steps: i32,
    loading: Option<Turn>,
    finding: Option<(Turn, Direction)>,
    /// A search that begins where the seek under way leads.
    find_then: Option<Direction>,
    outline_asked: Duration,
    is_asking_outline: bool,
    is_outline_old: bool,
    is_lost: bool,
    is_dirty: bool,
}

impl Player {
    pub fn new(outline: Outline, start: &Start, zone: TimeZone) -> Result<(Self, Vec<Effect>), String> {
        let clock = clock_of(&outline, start.limit);
        let time = match &start.place {
            Some(place) => place.resolve(&outline, &clock, outline.first.time, &zone)?,
            None => outline.first.time,
        };
        let is_end = start.place == Some(Place::End);
        let is_paused = start.is_paused || start.offset.is_some() || is_end;
        let mut player = Self {
            state: if is_paused { State::Paused } else { State::Playing { since: Duration::ZERO, from: 0 } },
            clock,
            zone,
            speed: start.speed,
            limit: start.limit,
            reel: None,
            time,
            looks: Looks::AtCursor,
            pan: (0, 0),
            overlay: None,
            message: None,
            pattern: start.pattern.clone(),
            area: Rect::default(),
            now: Duration::ZERO,
            turn: 0,
            seeking: None,
            next: None,
            steps: 0,
            loading: None,
            finding: None,
            find_then: None,
            outline_asked: Duration::ZERO,
            is_asking_outline: false,
            is_outline_old: false,
            is_lost: false,
            is_dirty: true,
            outline,
        };
        if player.outline.first.offset > DROPPED {
            player.say("the beginning was dropped: the recording had become too large");
        }
        let mut effects = Vec::new();
        match start.offset {
            Some(offset) => player.seek(Seek::Offset { offset }, None, &mut effects),
            None if is_end && player.outline.is_live => player.follow(&mut effects),
            None if is_end => player.seek(Seek::End, None, &mut effects),
            None => player.seek_time(time, &mut effects),
        }
        Ok((player, effects))
    }

    /// Whether it has to be drawn anew; asked once for each drawing.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.is_dirty)
    }

    pub fn screen(&self) -> Option<&Screen> {
        self.reel.as_ref().map(|reel| &reel.screen)
    }

    pub fn is_seeking(&self) -> bool {
        self.seeking.is_some()
    }

    /// The last that there is, is what is shown.
    pub fn is_at_end(&self) -> bool {
        self.reel.as_ref().is_some_and(|reel| reel.at.offset >= self.outline.end.offset)
    }

    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Time(now) => {
                self.now = now;
                self.message_ends();
            }
            Event::Key(key) if key.kind == KeyEventKind::Release => {}
            Event::Key(key) => self.key(key, &mut effects),
            Event::Mouse(mouse) => self.mouse(mouse, &mut effects),
            Event::Resized(area) => {
                self.area = area;
                self.is_dirty = true;
            }
            Event::Outline(outline) => self.outline(*outline),
            Event::Moment(turn, moment) => self.moment(turn, &moment, &mut effects),
            Event::Records(turn, records) => self.records(turn, records, &mut effects),
            Event::Found(turn, found) => self.found(turn, found, &mut effects),
            Event::Scrolled(..) => {}
            Event::Failed(turn, why) => self.failed(turn, &why),
            Event::Lost => {
                self.is_lost = true;
                self.fail("the daemon went away: another is being started");
            }
            Event::Back => self.back(&mut effects),
        }
        if !self.is_lost {
            self.go_on(&mut effects);
        }
        self.settle_pan();
        effects
    }

    /// When something has to happen by itself; `None` while nothing moves.
    pub fn next_deadline(&self) -> Option<Duration> {
        let message = self.message.as_ref().and_then(|message| message.until);
        let outline = (self.is_outline_old && !self.is_asking_outline && !self.is_lost).then(|| self.outline_asked + OUTLINE_AGE);
        let playing = match self.state {
            State::Playing { since, from } if self.seeking.is_none() && !self.is_lost => {
                let due = self.reel.as_ref().and_then(Reel::next_time).map(|time| {
                    let ahead = self.clock.played(time).saturating_sub(from) as f64 / self.speed.factor();
                    since + Duration::from_micros(ahead as u64)
                });
                Some(due.map_or(self.now + TICK, |due| due.min(self.now + TICK)).max(self.now + FRAME))
            }
            _ => None,
        };
        [message, outline, playing].into_iter().flatten().min()
    }

    fn key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        self.is_dirty = true;
        self.message = None;
        match &mut self.overlay {
            Some(Overlay::Help) => {
                self.overlay = None;
            }
            Some(Overlay::Prompt(prompt)) => {
                let asks = prompt.asks;
                match prompt.key(key) {
                    Typed::More => {}
                    Typed::Never => self.overlay = None,
                    Typed::Done(text) => {
                        self.overlay = None;
                        match asks {
                            Asks::Time => self.go_to(&text, effects),
                            Asks::Pattern => self.search(&text, effects),
                        }
                    }
                }
            }
            None => {
                if let Some(action) = keys::action(key) {
                    self.act(action, effects);
                }
            }
        }
    }

    pub fn act(&mut self, action: Action, effects: &mut Vec<Effect>) {
        self.is_dirty = true;
        match action {
            Action::Leave => effects.push(Effect::Leave),
            Action::Help => self.overlay = Some(Overlay::Help),
            Action::AskTime => self.overlay = Some(Overlay::Prompt(Prompt::new(Asks::Time))),
            Action::AskPattern => self.overlay = Some(Overlay::Prompt(Prompt::new(Asks::Pattern))),
            Action::PlayOrPause => self.play_or_pause(effects),
            Action::Step(direction) => self.step(direction, effects),
            Action::Jump(seconds) => {
                self.stop_following();
                let time = self.time.saturating_add_signed(seconds * 1_000_000);
                self.seek_time(time.clamp(self.outline.first.time, self.outline.end.time.max(self.outline.first.time)), effects);
            }
            Action::Percent(percent) => {
                self.stop_following();
                let played = (self.clock.length() as f64 * f64::from(percent) / 100.0) as u64;
                self.seek_time(self.clock.recorded(played), effects);
            }
            Action::Start => {
                self.stop_following();
                self.seek_time(self.outline.first.time, effects);
            }
            Action::End => {
                if self.state != State::Following {
                    self.state = State::Paused;
                    self.seek(Seek::End, None, effects);
                }
            }
            Action::Live if self.outline.is_live => self.follow(effects),
            Action::Live => {
                self.state = State::Paused;
                self.say("it has ended: this is its end");
                self.seek(Seek::End, None, effects);
            }
            Action::Match(direction) => self.find(direction, effects),
            Action::Command(direction) => self.jump_to_mark(direction, |mark| mark.kind == MarkKind::Command, "command", effects),
            Action::Mark(direction) => self.jump_to_mark(direction, |mark| mark.kind != MarkKind::Command, "mark or event", effects),
            Action::Faster => self.set_pace(self.speed.faster(), self.limit),
            Action::Slower => self.set_pace(self.speed.slower(), self.limit),
            Action::LongerPauses => self.set_pace(self.speed, self.limit.longer()),
            Action::ShorterPauses => self.set_pace(self.speed, self.limit.shorter()),
            Action::Scale => self.looks = if self.looks == Looks::Small { Looks::AtCursor } else { Looks::Small },
            Action::Pan(cols, rows) => {
                self.looks = Looks::AtPan;
                self.pan = (self.pan.0.saturating_add_signed(rows), self.pan.1.saturating_add_signed(cols));
            }
        }
    }

    fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<Effect>) {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.step(Direction::Back, effects),
            MouseEventKind::ScrollDown => self.step(Direction::Forward, effects),
            MouseEventKind::Down(MouseButton::Left) | MouseEventKind::Drag(MouseButton::Left) => {
                let Some(bar) = view::areas(self.area).bar.filter(|bar| bar.contains(Point::new(mouse.column, mouse.row))) else { return };
                self.stop_following();
                self.seek_time(timeline::time_at(&self.clock, mouse.column - bar.x, bar.width), effects);
            }
            _ => return,
        }
        self.message = None;
        self.is_dirty = true;
    }

    fn play_or_pause(&mut self, effects: &mut Vec<Effect>) {
        self.state = match self.state {
            State::Playing { .. } | State::Following => State::Paused,
            State::Paused if self.is_at_end() && self.outline.is_live => return self.follow(effects),
            State::Paused => {
                if self.is_at_end() {
                    // as every player does: from the beginning again
                    self.seek_time(self.outline.first.time, effects);
                }
                State::Playing { since: self.now, from: self.clock.played(self.time) }
            }
        };
    }

    /// Whoever looks elsewhere does not follow the end any more.
    fn stop_following(&mut self) {
        if self.state == State::Following {
            self.state = State::Paused;
        }
    }

    fn follow(&mut self, effects: &mut Vec<Effect>) {
        self.state = State::Following;
        self.seek(Seek::End, None, effects);
    }

    fn set_pace(&mut self, speed: Speed, limit: IdleLimit) {
        self.speed = speed;
        if limit != self.limit {
            self.limit = limit;
            self.clock = clock_of(&self.outline, limit);
        }
        self.set_clock();
    }

    /// The clock goes on from the time that is shown.
    fn set_clock(&mut self) {
        if let State::Playing { since, from } = &mut self.state {
            (*since, *from) = (self.now, self.clock.played(self.time));
        }
    }

    fn step(&mut self, direction: Direction, effects: &mut Vec<Effect>) {
        self.state = State::Paused;
        let step = if direction == Direction::Forward { 1 } else { -1 };
        if self.seeking.is_some() {
            self.next = None;
            self.steps = (self.steps + step).clamp(-MAX_STEPS, MAX_STEPS);
            return;
        }
        let Some(from) = self.reel.as_ref().map(|reel| reel.at.offset) else { return };
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

    fn seek_time(&mut self, time: u64, effects: &mut Vec<Effect>) {
        self.seek(Seek::Time { time }, Some(time), effects);
    }

    /// One at a time: while one is under way, the last wish waits.
    fn seek(&mut self, seek: Seek, shows: Option<u64>, effects: &mut Vec<Effect>) {
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

    fn begin_seek(&mut self, seek: Seek, shows: Option<u64>, sets_clock: bool, effects: &mut Vec<Effect>) {
        self.turn += 1;
        self.loading = None;
        self.seeking = Some(Seeking { turn: self.turn, seek, shows, sets_clock });
        effects.push(Effect::Seek(self.turn, seek));
    }

    fn moment(&mut self, turn: Turn, moment: &Moment, effects: &mut Vec<Effect>) {
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
    fn is_live_now(&mut self, is_live: bool, end: Offset) {
        if is_live != self.outline.is_live || end > self.outline.end.offset {
            self.is_outline_old = true;
        }
        self.outline.is_live = is_live;
    }

    fn records(&mut self, turn: Turn, records: Records, effects: &mut Vec<Effect>) {
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
    fn grow(&mut self, records: &Records) {
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

    fn outline(&mut self, mut outline: Outline) {
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
    fn go_on(&mut self, effects: &mut Vec<Effect>) {
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

    fn play(&mut self, since: Duration, from: u64, effects: &mut Vec<Effect>) {
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
    fn tell(&mut self, passed: &[Passed]) {
        for passed in passed {
            match passed {
                Passed::Gap(bytes) => self.say(&format!("… {bytes} bytes were not recorded here")),
                Passed::Exit(status) => self.say(&format!("the program ended here: {status}")),
            }
        }
    }

    fn go_to(&mut self, text: &str, effects: &mut Vec<Effect>) {
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

    fn search(&mut self, text: &str, effects: &mut Vec<Effect>) {
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
        let Some(from) = self.reel.as_ref().map(|reel| reel.at.offset) else { return };
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

    fn found(&mut self, turn: Turn, found: Option<Offset>, effects: &mut Vec<Effect>) {
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
    fn goal(&self) -> Offset {
        let seek = self.next.map(|(seek, _)| seek).or_else(|| self.seeking.map(|seeking| seeking.seek));
        match seek {
            Some(Seek::Offset { offset }) => offset,
            Some(Seek::Time { time }) => offset_at(&self.outline, time),
            Some(Seek::End) => self.outline.end.offset,
            _ => self.reel.as_ref().map_or(0, |reel| reel.at.offset),
        }
    }

    fn jump_to_mark(&mut self, direction: Direction, is_meant: fn(&Mark) -> bool, what: &str, effects: &mut Vec<Effect>) {
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

    /// The command that was running or had run last, and its exit code if it had ended.
    pub fn command(&self) -> Option<(&str, Option<i32>)> {
        let here = self.reel.as_ref()?.at.offset;
        let is_past = |mark: &&Mark| mark.offset.map_or(mark.time <= self.time, |offset| offset <= here);
        let mark = self.outline.marks.iter().filter(|mark| mark.kind == MarkKind::Command).rfind(is_past)?;
        let has_ended = mark.took.is_some_and(|took| mark.time + took <= self.time);
        Some((&mark.text, mark.exit_code.filter(|_| has_ended)))
    }

    fn failed(&mut self, turn: Turn, why: &str) {
        if self.seeking.is_some_and(|seeking| seeking.turn == turn) {
            self.seeking = None;
            self.next = None;
            self.find_then = None;
            self.steps = 0;
            self.state = State::Paused;
        } else if self.loading == Some(turn) {
            self.loading = None;
            self.state = State::Paused;
        } else if self.finding.is_some_and(|(finding, _)| finding == turn) {
            self.finding = None;
        } else if turn != 0 {
            return;
        }
        self.is_asking_outline &= turn != 0;
        self.fail(why);
    }

    /// Another daemon: whatever was wanted is wanted again.
    fn back(&mut self, effects: &mut Vec<Effect>) {
        self.is_lost = false;
        self.message = None;
        self.is_dirty = true;
        self.loading = None;
        self.finding = None;
        self.is_asking_outline = false;
        self.is_outline_old |= self.outline.is_live;
        self.set_clock();
        if let Some(seeking) = self.seeking.take() {
            self.begin_seek(seeking.seek, seeking.shows, seeking.sets_clock, effects);
        }
    }

    pub fn say(&mut self, text: &str) {
        self.message = Some(Message { text: visible(text), is_failure: false, until: Some(self.now + BRIEFLY) });
        self.is_dirty = true;
    }

    pub fn fail(&mut self, text: &str) {
        self.message = Some(Message { text: visible(text), is_failure: true, until: None });
        self.is_dirty = true;
    }

    fn message_ends(&mut self) {
        if self.message.take_if(|message| message.until.is_some_and(|until| until <= self.now)).is_some() {
            self.is_dirty = true;
        }
    }

    /// Keeps the part that is shown inside the screen, and the cursor inside the part.
    fn settle_pan(&mut self) {
        let Some(reel) = &self.reel else { return };
        let (size, shown) = (reel.screen.size(), view::areas(self.area).screen);
        let cursor = reel.screen.cursor();
        let follow = |pan: u16, at: u16, room: u16| pan.min(at).max((at + 1).saturating_sub(room));
        if self.looks == Looks::AtCursor && cursor.visible {
            self.pan = (follow(self.pan.0, cursor.row, shown.height), follow(self.pan.1, cursor.col, shown.width));
        }
        self.pan.0 = self.pan.0.min(size.rows.saturating_sub(shown.height));
        self.pan.1 = self.pan.1.min(size.cols.saturating_sub(shown.width));
    }

    pub fn part(&self) -> Part {
        match self.looks {
            Looks::Small if self.is_larger() => Part::All,
            _ => Part::From { row: self.pan.0, col: self.pan.1 },
        }
    }

    /// Whether the recorded screen is larger than its place.
    fn is_larger(&self) -> bool {
        let shown = view::areas(self.area).screen;
        self.screen().is_some_and(|screen| screen.size().cols > shown.width || screen.size().rows > shown.height)
    }

    /// What a user should know whose window is smaller than the recorded one, in words that fit.
    pub fn size_hint(&self, width: usize) -> Option<String> {
        let Size { cols, rows } = self.screen().filter(|_| self.is_larger())?.size();
        if width < ROOM_FOR_HINT {
            return Some(format!("{cols}×{rows}: z"));
        }
        let shown = view::areas(self.area).screen;
        let how = if self.looks == Looks::Small { "in small (z)" } else { "panning (z all, HJKL)" };
        Some(format!("{cols}×{rows}, window {}×{}, {how}", shown.width, shown.height))
    }

    /// `0:01:23`, of what is shown and of all.
    pub fn times(&self) -> (String, String) {
        let first = self.outline.first.time;
        (in_words(self.time.saturating_sub(first)), in_words(self.outline.end.time.saturating_sub(first)))
    }
}

fn clock_of(outline: &Outline, limit: IdleLimit) -> Clock {
    Clock::new(outline.first.time, outline.end.time, &outline.points, outline.grain, limit)
}

/// About where the recording stood at that time.
fn offset_at(outline: &Outline, time: u64) -> Offset {
    let after = outline.points.partition_point(|point| point.time <= time);
    let Some(before) = after.checked_sub(1).map(|n| outline.points[n]) else { return outline.first.offset };
    match outline.points.get(after) {
        Some(next) if next.time - before.time < outline.grain => {
            let share = (time - before.time) as f64 / (next.time - before.time) as f64;
            before.offset + (next.offset.saturating_sub(before.offset) as f64 * share) as u64
        }
        _ => before.offset,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::replay::reel::tests::{moment, output};
    use crossterm::event::{KeyCode, KeyModifiers};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use shared::id::{RuntimeId, SessionId};
    use shared::replay::{Record, What};
    use shared::runtime::ExitStatus;

    const S: u64 = 1_000_000;

    pub fn outline() -> Outline {
        Outline {
            runtime: RuntimeId::new(),
            session: SessionId::new(),
            name: "api".into(),
            language: None,
            command: vec!["bash".into()],
            began_at: jiff::Timestamp::UNIX_EPOCH,
            first: Position::default(),
            end: Position { offset: 1000, time: 100 * S },
            is_live: false,
            points: vec![Position::default(), Position { offset: 1000, time: 100 * S }],
            grain: 200 * S,
            marks: Vec::new(),
            marks_left_off: 0,
        }
    }

    const SIZE: Size = Size { cols: 80, rows: 24 };

    fn opened(outline: Outline, start: &Start) -> (Player, Vec<Effect>) {
        let (mut player, effects) = Player::new(outline, start, TimeZone::UTC).expect("a player");
        player.update(Event::Resized(Rect::new(0, 0, 80, 26)));
        (player, effects)
    }

    /// One that plays from the beginning and has loaded these.
    fn playing(records: Vec<Record>) -> Player {
        let (mut player, effects) = opened(outline(), &Start::default());
        assert_eq!(effects, [Effect::Seek(1, Seek::Time { time: 0 })]);
        let effects = player.update(Event::Moment(1, moment("zero", Position::default(), SIZE)));
        assert_eq!(effects, [Effect::Records { turn: 2, from: 0, waits: Waits::No }]);
        player.update(Event::Records(2, Records { records, at_end: true, is_live: false, end: 1000 }));
        player
    }

    fn press(player: &mut Player, code: KeyCode) -> Vec<Effect> {
        player.update(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn type_in(player: &mut Player, text: &str) -> Vec<Effect> {
        text.chars().flat_map(|c| press(player, if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) })).collect()
    }

    fn at(player: &mut Player, seconds: f64) -> Vec<Effect> {
        player.update(Event::Time(Duration::from_secs_f64(seconds)))
    }

    fn top(player: &Player) -> String {
        player.screen().map(|screen| screen.row_text(0)).unwrap_or_default()
    }

    pub fn drawn(player: &Player, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
        terminal.draw(|frame| view::draw(player, frame, frame.area())).expect("draws");
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn it_plays_when_things_happened_and_stops_at_the_end() {
        let mut player = playing(vec![output(10, S, " one"), output(20, 2 * S, " two"), output(1000, 100 * S, " end")]);
        assert_eq!(player.next_deadline(), Some(TICK));
        at(&mut player, 0.9);
        assert_eq!(top(&player), "zero");
        at(&mut player, 1.0);
        assert_eq!(top(&player), "zero one");
        press(&mut player, KeyCode::Char(' '));
        assert_eq!(player.next_deadline(), None, "nothing ticks while it is paused");
        at(&mut player, 50.0);
        assert_eq!((top(&player).as_str(), player.time), ("zero one", S));
        press(&mut player, KeyCode::Char(' '));
        at(&mut player, 51.0);
        assert_eq!(top(&player), "zero one two");
        for _ in 0..6 {
            press(&mut player, KeyCode::Char('+'));
        }
        at(&mut player, 52.0);
        assert_eq!(player.time, (2 + 64) * S);
        at(&mut player, 53.0);
        assert_eq!((top(&player).as_str(), player.state, player.time), ("zero one two end", State::Paused, 100 * S));
        assert_eq!(press(&mut player, KeyCode::Char(' ')), [Effect::Seek(3, Seek::Time { time: 0 })], "from the beginning again");
    }

    #[test]
    fn long_pauses_are_short_unless_asked_for() {
        let mut outline = outline();
        outline.grain = S;
        let (mut player, _) = opened(outline, &Start::default());
        player.update(Event::Moment(1, moment("", Position::default(), SIZE)));
        player.update(Event::Records(2, Records { records: vec![output(1000, 100 * S, "end")], at_end: true, is_live: false, end: 1000 }));
        at(&mut player, 1.0);
        assert_eq!(player.time, 50 * S);
        press(&mut player, KeyCode::Char('i'));
        assert_eq!(player.limit.label(), "idle 5s");
        at(&mut player, 2.0);
        assert_eq!(player.time, 70 * S, "the clock goes on from where it was");
    }

    #[test]
    fn one_seek_at_a_time_and_the_last_wish_counts() {
        let mut player = playing(vec![]);
        let time = |time| Seek::Time { time: time * S };
        assert_eq!(press(&mut player, KeyCode::Char('5')), [Effect::Seek(3, time(50))]);
        assert_eq!(press(&mut player, KeyCode::Char('7')), []);
        assert_eq!(press(&mut player, KeyCode::PageDown), []);
        assert_eq!(player.time, 80 * S, "shown at once");
        let effects = player.update(Event::Moment(3, moment("fifty", Position { offset: 500, time: 49 * S }, SIZE)));
        assert_eq!(effects, [Effect::Seek(4, time(80))]);
        assert_eq!(player.time, 80 * S);
        assert_eq!(player.update(Event::Moment(3, moment("too late", Position::default(), SIZE))), []);
        player.update(Event::Moment(4, moment("eighty", Position { offset: 800, time: 79 * S }, SIZE)));
        assert_eq!((top(&player).as_str(), player.time), ("eighty", 80 * S));
    }

    #[test]
    fn steps_pause_and_are_counted() {
        let mut player = playing(vec![]);
        assert_eq!(press(&mut player, KeyCode::Right), [Effect::Seek(3, Seek::NextChange { from: 0 })]);
        press(&mut player, KeyCode::Right);
        press(&mut player, KeyCode::Char('.'));
        press(&mut player, KeyCode::Left);
        let effects = player.update(Event::Moment(3, moment("a", Position { offset: 10, time: S }, SIZE)));
        assert_eq!(effects, [Effect::Seek(4, Seek::NextChange { from: 10 })]);
        assert_eq!(player.update(Event::Moment(4, moment("b", Position { offset: 20, time: 2 * S }, SIZE))), []);
        assert_eq!((player.state, player.time), (State::Paused, 2 * S));
        press(&mut player, KeyCode::Right);
        player.update(Event::Moment(5, moment("b", Position { offset: 20, time: 2 * S }, SIZE)));
        assert_eq!(player.message.as_ref().map(|message| message.text.as_str()), Some("nothing changes after this"));
    }

    #[test]
    fn who_is_far_behind_skips() {
        let mut outline = outline();
        outline.end.offset = 1 << 40;
        outline.points[1].offset = 1 << 40;
        let (mut player, _) = opened(outline, &Start { speed: Speed::parse("64").expect("a speed"), ..Start::default() });
        player.update(Event::Moment(1, moment("", Position::default(), SIZE)));
        assert_eq!(at(&mut player, 0.5), [Effect::Seek(3, Seek::Time { time: 32 * S })]);
        at(&mut player, 0.7);
        let effects = player.update(Event::Moment(3, moment("later", Position { offset: 1 << 38, time: 32 * S }, SIZE)));
        assert!(matches!(effects[..], [Effect::Seek(4, Seek::Time { time })] if time > 40 * S), "{effects:?}");
        assert_eq!(top(&player), "later", "what came is shown");
    }

    fn live() -> Outline {
        Outline { is_live: true, ..outline() }
    }

    #[test]
    fn live_follows_until_the_program_ends() {
        let (mut player, effects) = opened(live(), &Start { place: Some(Place::End), ..Start::default() });
        assert_eq!(effects, [Effect::Seek(1, Seek::End)]);
        let mut now = moment("now", Position { offset: 1000, time: 100 * S }, SIZE);
        now.is_live = true;
        assert_eq!(player.update(Event::Moment(1, now)), [Effect::Records { turn: 2, from: 1000, waits: Waits::ForMore }]);
        assert_eq!(player.next_deadline(), None, "nothing ticks while nothing comes");
        let records = vec![output(1010, 105 * S, " more")];
        at(&mut player, 10.0);
        let effects = player.update(Event::Records(2, Records { records, at_end: true, is_live: true, end: 1010 }));
        assert_eq!(effects, [Effect::Records { turn: 3, from: 1010, waits: Waits::ForMore }, Effect::Outline]);
        assert_eq!((top(&player).as_str(), player.time, player.outline.end.offset), ("now more", 105 * S, 1010));
        let records = vec![Record { end: 1020, time: 106 * S, what: What::Exit { status: ExitStatus::Code(3) } }];
        player.update(Event::Records(3, Records { records, at_end: true, is_live: false, end: 1020 }));
        assert_eq!(player.state, State::Paused);
        assert!(player.message.as_ref().is_some_and(|message| message.text.contains("exit code 3")), "{:?}", player.message);
        assert_eq!(press(&mut player, KeyCode::Char('l')), [Effect::Seek(4, Seek::End)]);
    }

    #[test]
    fn playing_a_live_one_to_its_end_follows_it() {
        let (mut player, _) = opened(live(), &Start::default());
        let mut beginning = moment("", Position::default(), SIZE);
        beginning.is_live = true;
        player.update(Event::Moment(1, beginning));
        let records = vec![output(1000, 100 * S, "end")];
        player.update(Event::Records(2, Records { records, at_end: true, is_live: true, end: 1000 }));
        let effects = at(&mut player, 101.0);
        assert_eq!(player.state, State::Following);
        assert!(matches!(effects[..], [Effect::Records { waits: Waits::ForMore, .. }]), "{effects:?}");
    }

    fn mark(time: u64, offset: Option<Offset>, kind: MarkKind, text: &str, exit_code: Option<i32>) -> Mark {
        Mark { time, offset, kind, text: text.into(), exit_code, took: exit_code.map(|_| S) }
    }

    fn marked() -> Player {
        let mut player = playing(vec![]);
        player.outline.marks = vec![
            mark(0, None, MarkKind::Event, "start", None),
            mark(10 * S, Some(100), MarkKind::Command, "make", Some(2)),
            mark(20 * S, Some(200), MarkKind::Command, "ls", Some(0)),
            mark(30 * S, None, MarkKind::Event, "iteration", None),
        ];
        press(&mut player, KeyCode::Char(' '));
        player
    }

    #[test]
    fn commands_and_marks_are_jumped_to() {
        let mut player = marked();
        assert_eq!(press(&mut player, KeyCode::Char('}')), [Effect::Seek(3, Seek::Offset { offset: 100 })]);
        player.update(Event::Moment(3, moment("", Position { offset: 100, time: 10 * S }, SIZE)));
        assert_eq!(player.command(), Some(("make", None)), "it runs");
        press(&mut player, KeyCode::Down);
        player.update(Event::Moment(4, moment("", Position { offset: 110, time: 11 * S }, SIZE)));
        assert_eq!(player.command(), Some(("make", Some(2))), "it has ended");
        assert_eq!(press(&mut player, KeyCode::Char('{')), [Effect::Seek(5, Seek::Offset { offset: 100 })]);
        player.update(Event::Moment(5, moment("", Position { offset: 100, time: 10 * S }, SIZE)));
        assert_eq!(press(&mut player, KeyCode::Char('{')), []);
        assert!(player.message.is_some());
        assert_eq!(press(&mut player, KeyCode::Char('m')), [Effect::Seek(6, Seek::Time { time: 30 * S })]);
        player.update(Event::Moment(6, moment("", Position { offset: 290, time: 29 * S }, SIZE)));
        assert_eq!(player.time, 30 * S);
        assert_eq!(press(&mut player, KeyCode::Char('M')), [Effect::Seek(7, Seek::Time { time: 0 })]);
    }

    #[test]
    fn times_and_patterns_are_typed() {
        let mut player = playing(vec![]);
        assert_eq!(type_in(&mut player, "t1:15\n"), [Effect::Seek(3, Seek::Time { time: 75 * S })]);
        player.update(Event::Moment(3, moment("", Position { offset: 700, time: 70 * S }, SIZE)));
        assert_eq!(type_in(&mut player, ":moon\n"), []);
        assert!(player.message.as_ref().is_some_and(|message| message.is_failure && message.text.contains("moon")));
        let effects = type_in(&mut player, "/Error\n");
        let find = |turn, forward| Effect::Find { turn, pattern: "Error".into(), ignore_case: false, from: 700, forward };
        let Some(Effect::Find { turn, .. }) = effects.last() else { panic!("{effects:?}") };
        assert_eq!(effects, [find(*turn, true)]);
        let effects = player.update(Event::Found(*turn, Some(800)));
        assert!(matches!(effects[..], [Effect::Seek(_, Seek::Offset { offset: 800 })]), "{effects:?}");
        assert_eq!(press(&mut player, KeyCode::Char('N')), [], "it goes on from where the match leads");
        let Effect::Seek(turn, _) = effects[0] else { panic!("{effects:?}") };
        let effects = player.update(Event::Moment(turn, moment("Error", Position { offset: 800, time: 80 * S }, SIZE)));
        assert!(matches!(effects[..], [Effect::Find { forward: false, from: 800, .. }]), "{effects:?}");
        assert_eq!(press(&mut player, KeyCode::Char('q')), [Effect::Leave]);
    }

    #[test]
    fn after_a_crash_it_goes_on_where_it_was() {
        let mut player = playing(vec![output(10, 2 * S, " two")]);
        at(&mut player, 1.0);
        player.update(Event::Lost);
        assert_eq!(player.next_deadline(), None);
        at(&mut player, 30.0);
        assert_eq!(top(&player), "zero");
        player.update(Event::Back);
        at(&mut player, 31.0);
        assert_eq!((top(&player).as_str(), player.time), ("zero two", 2 * S));
        press(&mut player, KeyCode::Char('5'));
        player.update(Event::Lost);
        assert!(matches!(player.update(Event::Back)[..], [Effect::Seek(_, Seek::Time { time: 50_000_000 })]));
    }

    #[test]
    fn a_click_on_the_timeline_goes_there() {
        let mut player = playing(vec![]);
        let mouse = |kind, column, row| Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
        assert_eq!(player.update(mouse(MouseEventKind::Down(MouseButton::Left), 79, 5)), []);
        let effects = player.update(mouse(MouseEventKind::Down(MouseButton::Left), 79, 24));
        assert_eq!(effects, [Effect::Seek(3, Seek::Time { time: 100 * S })]);
        player.update(Event::Moment(3, moment("", Position { offset: 1000, time: 100 * S }, SIZE)));
        assert_eq!(player.update(mouse(MouseEventKind::ScrollUp, 0, 0)), [Effect::Seek(4, Seek::PreviousChange { from: 1000 })]);
    }

    #[test]
    fn the_view_fits_everywhere() {
        let mut player = marked();
        player.update(Event::Moment(2, moment("", Position::default(), SIZE)));
        press(&mut player, KeyCode::Char('}'));
        player.update(Event::Moment(3, moment("hello\r\n$ \x1b[31mmake", Position { offset: 100, time: 10 * S }, SIZE)));
        for (width, height) in [(80, 24), (40, 15), (200, 50), (20, 5), (10, 2), (1, 1)] {
            player.update(Event::Resized(Rect::new(0, 0, width, height)));
            let text = drawn(&player, width, height);
            let rows: Vec<&str> = text.lines().collect();
            if width >= 40 {
                assert!(rows[0].starts_with("hello") && rows[1].starts_with("$ make"), "{text}");
                assert!(rows.last().is_some_and(|row| row.contains("⏸") && row.contains("0:00:10 / 0:01:40")), "{text}");
                assert!(rows.last().is_some_and(|row| row.contains("❯ make")), "{text}");
                assert!(rows[usize::from(height) - 2].contains('│'), "marks on the timeline: {text}");
            }
            assert_eq!(text.contains("00:00:10"), width >= 80, "the time of day: {text}");
            assert_eq!(text.contains("panning"), width == 200 && height < 26, "{text}");
        }
        press(&mut player, KeyCode::Char('?'));
        let text = drawn(&player, 40, 15);
        assert!(text.contains("play, pause") && text.contains(" keys "), "{text}");
    }

    #[test]
    fn a_large_screen_is_panned_or_small() {
        let (mut player, _) = opened(outline(), &Start::default());
        let rows: Vec<String> = (0..50).map(|row| format!("row {row} {}", "x".repeat(100))).collect();
        let size = Size { cols: 120, rows: 50 };
        player.update(Event::Moment(1, moment(&rows.join("\r\n"), Position::default(), size)));
        let text = drawn(&player, 80, 26);
        assert!(text.contains("xxx") && !text.contains("row 49"), "the part with the cursor, which is at the end of the row: {text}");
        assert_eq!(player.size_hint(120).as_deref(), Some("120×50, window 80×24, panning (z all, HJKL)"));
        for _ in 0..5 {
            press(&mut player, KeyCode::Char('H'));
        }
        assert!(drawn(&player, 80, 26).contains("row 49"));
        for _ in 0..20 {
            press(&mut player, KeyCode::Char('K'));
        }
        assert!(drawn(&player, 80, 26).starts_with("row 0 "));
        press(&mut player, KeyCode::Char('z'));
        let text = drawn(&player, 80, 26);
        assert!(!text.contains("row") && text.contains('█'), "{text}");
        press(&mut player, KeyCode::Char('z'));
        assert!(drawn(&player, 80, 26).contains("xxx"));
    }

    #[test]
    fn nothing_recorded_gets_out_as_more_than_text() {
        let mut player = playing(vec![]);
        player.outline.name = "evil\x1b]2;x\x07".into();
        player.outline.marks = vec![mark(0, Some(0), MarkKind::Command, "rm\x1b[2J\u{202e}", None)];
        player.say("a\x1bb");
        let text = drawn(&player, 200, 24);
        player.message = None;
        let more = drawn(&player, 200, 24);
        assert!(more.contains("rm·[2J·") && more.contains("evil·]2;x·"), "{more}");
        assert!(!format!("{text}{more}").contains(|c: char| c.is_control() && c != '\n'));
    }
}
