//! Looking back from an attached terminal: first the lines that scrolled away, then back in time through the recording, which
//! is all there is of programs that draw the whole screen. Pure, except for drawing; what time travel needs is a [`Player`]'s.

mod mark;
mod view;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::Rect;
use shared::id::Offset;
use shared::message::Line;
use shared::replay::{Outline, Records, What};
use shared::text::{fit, visible};

use super::clock::IdleLimit;
use super::event::{Effect, Event, Turn, Waits};
use super::find::Pattern;
use super::keys::{Action, Direction};
use super::player::{Player, Start};
use super::run::Component;
use super::selection::Selection;
use crate::line_editor::{Line as Edited, Typed};

/// Lines asked for first, and when somebody scrolls beyond them: all that the daemon gives.
const FIRST_LINES: u32 = 2000;
const ALL_LINES: u32 = 20_000;

/// Turns of our own are told from the player's.
const OURS: Turn = 1 << 63;

/// A page of time.
const PAGE_OF_TIME: i64 = 1_000_000;

/// Pauses while going through time by pages: every page shows something else.
const SHORT_PAUSES: IdleLimit = IdleLimit(Some(500_000));

/// While the program prints, it is looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

const WHEEL: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Lines,
    Time,
}

/// What to do once more lines are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Up(usize),
    Top,
    Match,
}

pub struct History {
    player: Player,
    mode: Mode,
    /// Where the recording stood when this was opened; lines and screen are from then.
    opened_at: Option<Offset>,
    is_alternate: bool,
    /// What scrolled away, oldest first, and behind it the screen's own rows.
    lines: Vec<Line>,
    scrolled: usize,
    has_all_lines: bool,
    loading: Option<Turn>,
    wanted: Option<Wanted>,
    /// The first line that is shown.
    top: usize,
    /// The line of the match that was found last.
    found: Option<usize>,
    left: u16,
    has_moved: bool,
    /// Going on from the top was tried once.
    is_at_edge: bool,
    last: Direction,
    area: Rect,
    prompt: Option<Edited>,
    /// The help is shown, from this line on.
    help: Option<u16>,
    selection: Option<Selection>,
    /// Following what the program does meanwhile.
    watched: Offset,
    watching: Option<Turn>,
    watch_at: Option<Duration>,
    has_news: bool,
    now: Duration,
    turn: Turn,
    is_lost: bool,
    is_dirty: bool,
}

impl History {
    pub fn new(outline: Outline, zone: TimeZone) -> Result<(Self, Vec<Effect>), String> {
        let start = Start { offset: Some(outline.end.offset), limit: SHORT_PAUSES, ..Start::default() };
        let watched = outline.end.offset;
        let (mut player, effects) = Player::new(outline, &start, zone)?;
        player.message = None;
        let history = Self {
            player,
            mode: Mode::Lines,
            opened_at: None,
            is_alternate: false,
            lines: Vec::new(),
            scrolled: 0,
            has_all_lines: false,
            loading: None,
            wanted: None,
            top: 0,
            found: None,
            left: 0,
            has_moved: false,
            is_at_edge: false,
            last: Direction::Back,
            area: Rect::default(),
            prompt: None,
            help: None,
            selection: None,
            watched,
            watching: None,
            watch_at: None,
            has_news: false,
            now: Duration::ZERO,
            turn: OURS,
            is_lost: false,
            is_dirty: true,
        };
        Ok((history, effects))
    }

    /// Rows of lines that fit.
    fn height(&self) -> usize {
        usize::from(self.area.height.saturating_sub(1)).max(1)
    }

    fn bottom(&self) -> usize {
        self.lines.len().saturating_sub(self.height())
    }

    fn key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        self.is_dirty = true;
        self.player.message = None;
        if let Some(top) = self.help.take() {
            self.help = super::view::help_key(view::HELP, top, key, self.area);
            return;
        }
        if let Some(prompt) = &mut self.prompt {
            match prompt.typed(key) {
                Typed::More => {}
                Typed::Never => self.prompt = None,
                Typed::Done => {
                    let text = prompt.text().to_owned();
                    self.prompt = None;
                    if !text.is_empty() {
                        self.player.pattern = Some(Pattern::new(&text));
                        self.found = None;
                    }
                    self.search(Direction::Back, effects);
                }
            }
            return;
        }
        if self.selecting(key, effects) {
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.height().saturating_sub(1).max(1);
        match key.code {
            KeyCode::Char('c') if is_control => effects.push(Effect::Leave),
            KeyCode::Char('u') if is_control => self.up(page.div_ceil(2), effects),
            KeyCode::Char('d') if is_control => self.down(page.div_ceil(2), effects),
            KeyCode::Char('b') if is_control => self.up(page, effects),
            KeyCode::Char('f') if is_control => self.down(page, effects),
            KeyCode::Char('y' | 'p') if is_control => self.up(1, effects),
            KeyCode::Char('e' | 'n') if is_control => self.down(1, effects),
            _ if is_control => {}
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter => effects.push(Effect::Leave),
            KeyCode::Up | KeyCode::Char('k') => self.up(1, effects),
            KeyCode::Down | KeyCode::Char('j') => self.down(1, effects),
            KeyCode::Left if self.mode == Mode::Time => self.up(1, effects),
            KeyCode::Right if self.mode == Mode::Time => self.down(1, effects),
            KeyCode::PageUp => self.up(page, effects),
            KeyCode::PageDown | KeyCode::Char(' ') => self.down(page, effects),
            KeyCode::Home | KeyCode::Char('g') => self.go_to_top(effects),
            KeyCode::End | KeyCode::Char('G') => self.go_to_bottom(effects),
            KeyCode::Char('/') => self.prompt = Some(Edited::default()),
            KeyCode::Char('n') => self.search(Direction::Back, effects),
            KeyCode::Char('N') => self.search(Direction::Forward, effects),
            KeyCode::Left | KeyCode::Char('H') => self.left = self.left.saturating_sub(8),
            KeyCode::Right | KeyCode::Char('L') => self.left = (self.left + 8).min(self.widest().saturating_sub(self.area.width)),
            KeyCode::Char('?') => self.help = Some(0),
            _ => {}
        }
    }

    fn wheel(&mut self, direction: Direction, effects: &mut Vec<Effect>) {
        self.is_dirty = true;
        let count = if self.mode == Mode::Time { 1 } else { WHEEL };
        match direction {
            // a flick of the wheel must not run on into the past
            Direction::Back if self.mode == Mode::Lines && self.top == 0 && self.scrolled > 0 && self.has_all_lines => {
                self.player.say("the top; ↑ again: back in time");
                self.is_at_edge = true;
            }
            Direction::Back => self.up(count, effects),
            Direction::Forward => self.down(count, effects),
        }
    }

    fn up(&mut self, count: usize, effects: &mut Vec<Effect>) {
        self.last = Direction::Back;
        self.has_moved = true;
        if self.mode == Mode::Time {
            if count == 1 {
                self.player.act(Action::Step(Direction::Back), effects);
            } else {
                self.player.jump_played(-PAGE_OF_TIME, effects);
            }
        } else if self.top > 0 {
            self.top = self.top.saturating_sub(count);
        } else if !self.has_all_lines {
            self.load_more(Wanted::Up(count), effects);
        } else if self.scrolled > 0 && !self.is_at_edge {
            self.is_at_edge = true;
            self.player.say("the top; ↑ again: back in time");
        } else {
            self.mode = Mode::Time;
            self.up(count, effects);
        }
    }

    fn down(&mut self, count: usize, effects: &mut Vec<Effect>) {
        self.last = Direction::Forward;
        if self.mode == Mode::Time {
            if count == 1 {
                self.player.act(Action::Step(Direction::Forward), effects);
            } else {
                self.player.jump_played(PAGE_OF_TIME, effects);
            }
        } else if self.top < self.bottom() {
            self.top = (self.top + count).min(self.bottom());
        } else if self.has_moved {
            // where it came from
            effects.push(Effect::Leave);
        }
    }

    fn go_to_top(&mut self, effects: &mut Vec<Effect>) {
        self.has_moved = true;
        match self.mode {
            Mode::Time => self.player.act(Action::Start, effects),
            Mode::Lines if self.has_all_lines => self.top = 0,
            Mode::Lines => self.load_more(Wanted::Top, effects),
        }
    }

    fn go_to_bottom(&mut self, effects: &mut Vec<Effect>) {
        self.top = self.bottom();
        if std::mem::replace(&mut self.mode, Mode::Lines) == Mode::Time {
            self.player.seek_offset(self.opened_at.unwrap_or(Offset::MAX), effects);
        }
    }

    fn load_more(&mut self, wanted: Wanted, effects: &mut Vec<Effect>) {
        self.wanted = Some(wanted);
        if self.loading.is_none() {
            self.ask_lines(ALL_LINES, effects);
        }
    }

    fn ask_lines(&mut self, most: u32, effects: &mut Vec<Effect>) {
        let Some(until) = self.opened_at else { return };
        self.turn += 1;
        self.loading = Some(self.turn);
        effects.push(Effect::Scrolled { turn: self.turn, until, most });
    }

    /// The lines have come: what is shown stays where it is.
    fn scrolled(&mut self, turn: Turn, lines: Vec<Line>, effects: &mut Vec<Effect>) {
        if self.loading != Some(turn) {
            return;
        }
        self.loading = None;
        self.is_dirty = true;
        let is_first = self.scrolled == 0;
        self.has_all_lines = lines.len() < FIRST_LINES as usize || !is_first;
        let more = lines.len().saturating_sub(self.scrolled);
        self.lines.splice(..self.scrolled, lines);
        self.selection = None;
        self.scrolled += more;
        self.top += more;
        self.found = self.found.map(|line| line + more);
        if !self.has_moved {
            self.top = self.bottom();
        }
        match self.wanted.take() {
            Some(Wanted::Up(count)) => self.up(count, effects),
            Some(Wanted::Top) => self.go_to_top(effects),
            Some(Wanted::Match) => self.search(Direction::Back, effects),
            None => {}
        }
    }

    /// The screen as it is now has come.
    fn open(&mut self, effects: &mut Vec<Effect>) {
        let Some(reel) = &self.player.reel else { return };
        let screen = &reel.screen;
        let rows: Vec<Line> = (0..screen.size().rows)
            .map(|row| Line {
                text: screen.row_text(row),
                ansi: String::from_utf8_lossy(&screen.row_ansi(row)).into_owned(),
                wrapped: screen.row_wrapped(row),
            })
            .collect();
        let used = rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |row| row + 1);
        let shown = used.max(usize::from(screen.cursor().row) + 1).min(rows.len());
        self.lines = rows[..shown].to_vec();
        self.is_alternate = screen.is_alternate();
        self.opened_at = Some(reel.at.offset);
        self.top = self.bottom();
        if self.is_alternate {
            self.has_all_lines = true;
        } else {
            self.ask_lines(FIRST_LINES, effects);
        }
    }

    /// Upwards first, as whoever looks back wants it; what is not in the lines may be in the recording.
    fn search(&mut self, direction: Direction, effects: &mut Vec<Effect>) {
        self.has_moved = true;
        let Some(pattern) = self.player.pattern.clone() else { return self.player.say("type / and what to look for first") };
        if self.mode == Mode::Time {
            return self.player.find(direction, effects);
        }
        let from = self.found.unwrap_or(if self.top == self.bottom() { self.lines.len() } else { self.top + self.height() });
        let groups = groups(&self.lines);
        let is_match = |(first, text): &&(usize, String)| {
            let is_there = if direction == Direction::Back { *first < from } else { *first > from };
            is_there && pattern.is_in(text)
        };
        let found = match direction {
            Direction::Back => groups.iter().rfind(is_match),
            Direction::Forward => groups.iter().find(is_match),
        };
        match found {
            Some((line, _)) => {
                self.found = Some(*line);
                let height = self.height();
                if *line < self.top || *line >= self.top + height {
                    self.top = line.saturating_sub(height / 2).min(self.bottom());
                }
            }
            None if direction == Direction::Back && !self.has_all_lines => self.load_more(Wanted::Match, effects),
            // what a full-screen program showed before is in no line
            None if direction == Direction::Back && (self.is_alternate || !groups.iter().any(|(_, text)| pattern.is_in(text))) => {
                self.mode = Mode::Time;
                self.player.find(direction, effects);
            }
            None => {
                let (where_, what) = (if direction == Direction::Back { "above" } else { "below" }, fit(&visible(&pattern.text), 40));
                self.player.say(&format!("no {what:?} {where_} this"));
            }
        }
    }

    /// What the program does meanwhile.
    fn watched(&mut self, records: &Records) {
        self.watching = None;
        let exit = records.records.iter().find_map(|record| if let What::Exit { status } = record.what { Some(status) } else { None });
        if let Some(last) = records.records.last() {
            self.watched = last.end.max(records.end);
            self.is_dirty |= !std::mem::replace(&mut self.has_news, true);
            self.watch_at = Some(self.now + LOOK_AGAIN);
        }
        if exit.is_some() || !records.is_live {
            self.watch_at = None;
            self.player.outline.is_live = false;
            self.player.fail(&exit.map_or_else(|| "the program has ended".into(), |status| format!("the program has ended: {status}")));
        }
    }

    fn watch(&mut self, effects: &mut Vec<Effect>) {
        let is_time = self.watch_at.is_none_or(|at| at <= self.now);
        if self.opened_at.is_some() && self.watching.is_none() && is_time && self.player.outline.is_live {
            self.watch_at = None;
            self.turn += 1;
            self.watching = Some(self.turn);
            effects.push(Effect::Records { turn: self.turn, from: self.watched, waits: Waits::ForMore });
        }
    }
}

/// Lines put together that were one, with the number of the first.
fn groups(lines: &[Line]) -> Vec<(usize, String)> {
    let mut groups: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (n, line) in lines.iter().enumerate() {
        match groups.last_mut().filter(|_| goes_on) {
            Some((_, text)) => text.push_str(&line.text),
            None => groups.push((n, line.text.clone())),
        }
        goes_on = line.wrapped;
    }
    groups
}

impl Component for History {
    fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => {}
            Event::Key(key) => self.key(key, &mut effects),
            Event::Mouse(mouse) => self.mouse(mouse, &mut effects),
            Event::Paste(text) => {
                if let Some(prompt) = &mut self.prompt {
                    prompt.insert(&text);
                    self.is_dirty = true;
                }
            }
            Event::Resized(area) => {
                let from_bottom = self.bottom().saturating_sub(self.top);
                self.area = area;
                self.top = self.bottom().saturating_sub(from_bottom);
                self.is_dirty = true;
                // its two lines below are one here
                effects.extend(self.player.update(Event::Resized(Rect { height: area.height.saturating_add(1), ..area })));
            }
            Event::Scrolled(turn, lines) => self.scrolled(turn, lines, &mut effects),
            Event::Records(turn, records) if Some(turn) == self.watching => self.watched(&records),
            Event::Failed(turn, _) if Some(turn) == self.loading => {
                self.loading = None;
                self.has_all_lines = true;
                self.wanted = None;
            }
            Event::Failed(turn, _) if Some(turn) == self.watching => {
                self.watching = None;
                self.player.outline.is_live = false;
            }
            Event::Time(now) => {
                self.now = now;
                effects.extend(self.player.update(Event::Time(now)));
            }
            Event::Lost => {
                self.is_lost = true;
                effects.extend(self.player.update(Event::Lost));
            }
            Event::Back => {
                self.is_lost = false;
                self.watching = None;
                effects.extend(self.player.update(Event::Back));
                if self.loading.take().is_some() {
                    self.ask_lines(if self.scrolled == 0 { FIRST_LINES } else { ALL_LINES }, &mut effects);
                }
            }
            event => {
                let is_moment = matches!(event, Event::Moment(..));
                let is_missed = matches!(event, Event::Found(_, None));
                effects.extend(self.player.update(event));
                if is_missed && !self.is_alternate && self.player.reel.as_ref().map(|reel| reel.at.offset) == self.opened_at {
                    // nothing in the past either: the lines are where it was asked
                    self.mode = Mode::Lines;
                }
                if is_moment && self.opened_at.is_none() {
                    self.open(&mut effects);
                } else if is_moment
                    && self.mode == Mode::Time
                    && self.last == Direction::Forward
                    && !self.player.is_seeking()
                    && self.player.reel.as_ref().is_some_and(|reel| Some(reel.at.offset) >= self.opened_at)
                {
                    effects.push(Effect::Leave);
                }
            }
        }
        if !self.is_lost {
            self.watch(&mut effects);
        }
        effects
    }

    fn next_deadline(&self) -> Option<Duration> {
        [self.player.next_deadline(), self.watch_at].into_iter().flatten().min()
    }

    fn take_dirty(&mut self) -> bool {
        self.player.take_dirty() | std::mem::take(&mut self.is_dirty)
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        self.draw_all(frame, area);
    }
}

#[cfg(test)]
mod tests;
