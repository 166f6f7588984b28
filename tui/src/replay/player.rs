//! The player's state and its pure update: events in, effects out. No I/O, no clock of its own, no drawing.

mod goal;
mod seek;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use jiff::tz::TimeZone;
use ratatui::layout::{Position as Point, Rect};
use shared::id::Offset;
use shared::replay::{Mark, MarkKind, Outline, Seek};
use shared::screen::{Screen, Size};
use shared::text::visible;

use super::clock::{Clock, IdleLimit, Speed};
use super::event::{Effect, Event, Turn};
use super::find::Pattern;
use super::keys::{self, Action, Direction};
use super::place::{Place, in_words};
use super::reel::Reel;
use super::screen_widget::Part;
use super::{timeline, view};
use crate::line_editor::{Line, Typed};

/// The pace of pictures while playing, and of the time shown when there is nothing else to draw.
const FRAME: Duration = Duration::from_millis(33);
const TICK: Duration = Duration::from_millis(200);

/// The timeline of a live recording is asked for again after this at the earliest.
const OUTLINE_AGE: Duration = Duration::from_secs(2);

/// How long something is said that nobody asked for.
const BRIEFLY: Duration = Duration::from_secs(3);

/// Where the first frame of a whole recording ends, at most: what begins later has lost its first segments, which are far larger.
const DROPPED: u64 = 1 << 20;

/// Columns from which on it is said at length that a recording is larger than the window.
const ROOM_FOR_HINT: usize = 120;

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
    /// From this line on.
    Help { top: u16 },
    /// A line to type in, at the bottom.
    Prompt(Asks, Line),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    Time,
    Pattern,
}

impl Asks {
    pub fn label(self) -> &'static str {
        match self {
            Self::Time => "go to: ",
            Self::Pattern => "/",
        }
    }
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
            // there is nothing before the beginning: so long before the end is meant
            Some(place @ Place::By(..0)) => place.resolve(&outline, &clock, outline.end.time, &zone)?,
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
            Event::Paste(text) => {
                if let Some(Overlay::Prompt(_, line)) = &mut self.overlay {
                    line.insert(&text);
                    self.is_dirty = true;
                }
            }
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
            Some(Overlay::Help { top }) => {
                self.overlay = view::help_key(keys::HELP, *top, key, self.area).map(|top| Overlay::Help { top });
            }
            Some(Overlay::Prompt(asks, line)) => {
                let asks = *asks;
                match line.typed(key) {
                    Typed::More => {}
                    Typed::Never => self.overlay = None,
                    Typed::Done => {
                        let text = line.text().to_owned();
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
            Action::Help => self.overlay = Some(Overlay::Help { top: 0 }),
            Action::AskTime => self.overlay = Some(Overlay::Prompt(Asks::Time, Line::default())),
            Action::AskPattern => self.overlay = Some(Overlay::Prompt(Asks::Pattern, Line::default())),
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
        if let Some(Overlay::Help { top }) = self.overlay {
            let code = match mouse.kind {
                MouseEventKind::ScrollUp => KeyCode::Up,
                MouseEventKind::ScrollDown => KeyCode::Down,
                MouseEventKind::Down(_) => KeyCode::Esc,
                _ => return,
            };
            let to = view::help_key(keys::HELP, top, KeyEvent::from(code), self.area);
            // the wheel closes nothing
            self.overlay = to.or((code != KeyCode::Esc).then_some(top)).map(|top| Overlay::Help { top });
            self.is_dirty = true;
            return;
        }
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
pub mod tests;
