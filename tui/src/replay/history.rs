//! Looking back from an attached terminal: first the lines that scrolled away, then back in time through the recording, which
//! is all there is of programs that draw the whole screen. Pure, except for drawing; what time travel needs is a [`Player`]'s.

use std::collections::HashSet;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Paragraph;
use shared::id::Offset;
use shared::message::Line;
use shared::replay::{Outline, Records, What};
use shared::screen::{Screen, Size};
use shared::text::{columns, fit, pad, visible};

use super::clock::IdleLimit;
use super::event::{Effect, Event, Turn, Waits};
use super::find::Pattern;
use super::keys::{Action, Direction};
use super::place::on_the_wall;
use super::player::{Player, Start};
use super::prompt::{Asks, Prompt, Typed};
use super::run::Component;
use super::screen_widget::{Part, ScreenWidget};
use super::selection::{Point, Selection, Shape};
use super::view;

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
    prompt: Option<Prompt>,
    shows_help: bool,
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

const HELP: &[(&str, &str)] = &[
    ("↑ ↓  k j", "a line up, down"),
    ("pgup pgdn", "a page; ctrl-u ctrl-d half of one"),
    ("g G", "top, bottom"),
    ("/ n N", "search upwards; next, previous"),
    ("H L", "left, right in long lines"),
    ("v y", "mark lines; copy them, or all that is shown"),
    ("drag", "mark with the mouse, and copy"),
    ("", "above the top it goes back in time:"),
    ("↑ ↓", "by change; pgup pgdn by a second"),
    ("q esc enter", "back to the program"),
];

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
            shows_help: false,
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
        if std::mem::take(&mut self.shows_help) {
            return;
        }
        if let Some(prompt) = &mut self.prompt {
            match prompt.key(key) {
                Typed::More => {}
                Typed::Never => self.prompt = None,
                Typed::Done(text) => {
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
            KeyCode::Char('/') => self.prompt = Some(Prompt::new(Asks::Pattern)),
            KeyCode::Char('n') => self.search(Direction::Back, effects),
            KeyCode::Char('N') => self.search(Direction::Forward, effects),
            KeyCode::Left | KeyCode::Char('H') => self.left = self.left.saturating_sub(8),
            KeyCode::Right | KeyCode::Char('L') => self.left = (self.left + 8).min(self.widest().saturating_sub(self.area.width)),
            KeyCode::Char('?') => self.shows_help = true,
            _ => {}
        }
    }

    /// Lines that can be marked: those that are shown, or the rows of the screen of then.
    fn line(&self, line: usize) -> Option<(String, bool)> {
        match (self.mode, self.player.screen()) {
            (Mode::Time, Some(screen)) => {
                let row = u16::try_from(line).ok().filter(|row| *row < screen.size().rows)?;
                Some((screen.row_text(row), screen.row_wrapped(row)))
            }
            _ => self.lines.get(line).map(|line| (line.text.clone(), line.wrapped)),
        }
    }

    fn count(&self) -> usize {
        match (self.mode, self.player.screen()) {
            (Mode::Time, Some(screen)) => usize::from(screen.size().rows),
            _ => self.lines.len(),
        }
    }

    /// The row and column of the first cell that is shown.
    fn corner(&self) -> (usize, usize) {
        match (self.mode, self.player.part()) {
            (Mode::Time, Part::From { row, col }) => (usize::from(row), usize::from(col)),
            (Mode::Time, Part::All) => (0, 0),
            (Mode::Lines, _) => (self.top, usize::from(self.left)),
        }
    }

    /// Keys of marking; `true` if this was one.
    fn selecting(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.height().saturating_sub(1).max(1).cast_signed();
        let Some(selection) = &mut self.selection else {
            match key.code {
                KeyCode::Char('v' | 'V') if !is_control => {
                    let last = (self.corner().0 + self.height()).min(self.count()).saturating_sub(1);
                    self.selection = Some(Selection::new(Point { line: last, col: 0 }, Shape::Lines));
                    self.player.say("↑ ↓ mark lines; y copies them, esc does not");
                }
                KeyCode::Char('y') if !is_control => {
                    let top = self.corner().0;
                    let mut all = Selection::new(Point { line: top, col: 0 }, Shape::Lines);
                    all.head.line = (top + self.height()).min(self.count()).saturating_sub(1);
                    self.copy(all, effects);
                }
                _ => return false,
            }
            return true;
        };
        let by = match key.code {
            KeyCode::Char('y') | KeyCode::Enter => {
                let selection = *selection;
                self.copy(selection, effects);
                return true;
            }
            KeyCode::Esc | KeyCode::Char('q' | 'v' | 'V') => {
                self.selection = None;
                return true;
            }
            KeyCode::Char('u') if is_control => -page / 2,
            KeyCode::Char('d') if is_control => page / 2,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::PageUp => -page,
            KeyCode::PageDown => page,
            KeyCode::Home | KeyCode::Char('g') => isize::MIN / 4,
            KeyCode::End | KeyCode::Char('G') => isize::MAX / 4,
            _ => return true,
        };
        selection.shape = Shape::Lines;
        let to = selection.head.line.saturating_add_signed(by);
        self.mark_to(to);
        true
    }

    /// The end of what is marked moves, and is seen.
    fn mark_to(&mut self, line: usize) {
        let (last, height, bottom) = (self.count().saturating_sub(1), self.height(), self.bottom());
        let Some(selection) = &mut self.selection else { return };
        selection.head.line = line.min(last);
        if self.mode == Mode::Lines {
            let head = selection.head.line;
            self.top = self.top.clamp((head + 1).saturating_sub(height), head).min(bottom);
            self.has_moved = true;
        }
    }

    fn copy(&mut self, selection: Selection, effects: &mut Vec<Effect>) {
        self.selection = None;
        let lines: Vec<Option<(String, bool)>> = (0..self.count()).map(|line| self.line(line)).collect();
        let text = selection.text(|line| lines.get(line)?.as_ref().map(|(text, wrapped)| (text.as_str(), *wrapped)));
        let what = shared::text::count(selection.lines(), "line");
        self.player.say(&format!("copied {what} to the clipboard"));
        effects.push(Effect::Copy(text));
    }

    fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<Effect>) {
        let (top, left) = self.corner();
        let row = usize::from(mouse.row.saturating_sub(self.area.y)).min(self.height().saturating_sub(1));
        let at = Point {
            line: (top + row).min(self.count().saturating_sub(1)),
            col: left + usize::from(mouse.column.saturating_sub(self.area.x)),
        };
        match mouse.kind {
            MouseEventKind::ScrollUp => self.wheel(Direction::Back, effects),
            MouseEventKind::ScrollDown => self.wheel(Direction::Forward, effects),
            MouseEventKind::Down(MouseButton::Left) => self.selection = Some(Selection::new(at, Shape::Characters)),
            MouseEventKind::Drag(MouseButton::Left) => {
                if let Some(selection) = &mut self.selection {
                    selection.head = at;
                }
            }
            MouseEventKind::Up(MouseButton::Left) => match self.selection.take() {
                Some(selection) if !selection.is_click() => self.copy(selection, effects),
                _ => {}
            },
            _ => return,
        }
        self.is_dirty = true;
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

    fn widest(&self) -> u16 {
        let end = (self.top + self.height()).min(self.lines.len());
        let widest = self.lines[self.top.min(end)..end].iter().map(|line| columns(&line.text)).max().unwrap_or(0);
        u16::try_from(widest).unwrap_or(u16::MAX).max(self.area.width)
    }

    /// The lines that are to be seen, as a screen.
    fn page(&self) -> Screen {
        let end = (self.top + self.height()).min(self.lines.len());
        let mut screen = Screen::new(Size { cols: self.widest(), rows: self.height() as u16 });
        let mut bytes = b"\x1b[?7l\x1b[?25l".to_vec();
        for (row, line) in self.lines[self.top.min(end)..end].iter().enumerate() {
            bytes.extend_from_slice(format!("\x1b[{};1H\x1b[0m", row + 1).as_bytes());
            bytes.extend_from_slice(line.ansi.as_bytes());
        }
        screen.feed(&bytes, &mut Vec::new());
        screen
    }

    fn status(&self, width: usize) -> String {
        if let Some(prompt) = &self.prompt {
            return pad(&format!(" search upwards: {}▏", visible(&prompt.text)), width);
        }
        let player = &self.player;
        let place = match self.mode {
            Mode::Lines => format!(" [{}/{}]", self.bottom() - self.top.min(self.bottom()), self.bottom()),
            Mode::Time => {
                let (here, length) = player.times();
                format!(" ◀ {}  {here} / {length}", on_the_wall(&player.outline, player.time, &player.zone))
            }
        };
        if let Some(message) = &player.message {
            return pad(&format!("{place}  {}", message.text), width);
        }
        let waits = if self.loading.is_some() || player.is_seeking() { " …" } else { "" };
        let news = match (player.outline.is_live, self.has_news) {
            (false, _) => "  it has ended",
            (true, true) => "  it goes on meanwhile",
            (true, false) => "",
        };
        let name = fit(&visible(&player.outline.name), 24);
        let back = if self.mode == Mode::Lines && self.is_alternate { "   ↑ back in time" } else { "" };
        let full = format!("{place}{waits}  {name}{news}{back}   / search   ? keys   q back to the program");
        if columns(&full) <= width {
            return pad(&full, width);
        }
        let short = format!("{place}{waits}{back}  ? keys  q back");
        pad(if columns(&short) <= width { &short } else { &place }, width)
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
        let above = Rect { height: area.height.saturating_sub(1), ..area };
        let found = |screen: &Screen| self.player.pattern.as_ref().map_or_else(HashSet::new, |pattern| pattern.cells(screen));
        match (self.mode, self.player.screen()) {
            (Mode::Time, Some(screen)) => {
                frame.render_widget(ScreenWidget { screen, part: self.player.part(), found: &found(screen) }, above);
            }
            _ if !self.lines.is_empty() => {
                let page = self.page();
                let part = Part::From { row: 0, col: self.left };
                frame.render_widget(ScreenWidget { screen: &page, part, found: &found(&page) }, above);
            }
            _ => {}
        }
        if let Some(selection) = &self.selection {
            let (top, left) = self.corner();
            let buffer = frame.buffer_mut();
            for y in 0..above.height {
                let Some(columns) = selection.columns(top + usize::from(y)) else { continue };
                for x in (0..above.width).filter(|x| columns.contains(&(left + usize::from(*x)))) {
                    buffer[(above.x + x, above.y + y)].set_style(Style::new().add_modifier(Modifier::REVERSED));
                }
            }
        }
        let status = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        let text = self.status(usize::from(area.width));
        frame.render_widget(Paragraph::new(text).style(Style::new().add_modifier(Modifier::REVERSED)), status);
        if self.shows_help {
            view::help(HELP, frame, area);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::player::tests::outline;
    use crate::replay::reel::tests::{moment, output};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use shared::replay::{Position, Seek};

    const END: Position = Position { offset: 1000, time: 100_000_000 };

    /// Opened over this screen, in a window of 40 by 6, of a session that has ended.
    fn opened(text: &str) -> (History, Vec<Effect>) {
        let (mut history, effects) = History::new(outline(), TimeZone::UTC).expect("a history");
        assert_eq!(effects, [Effect::Seek(1, Seek::Offset { offset: 1000 })]);
        history.update(Event::Resized(Rect::new(0, 0, 40, 6)));
        let effects = history.update(Event::Moment(1, moment(text, END, Size { cols: 40, rows: 6 })));
        (history, effects)
    }

    fn press(history: &mut History, code: KeyCode) -> Vec<Effect> {
        history.update(Event::Key(KeyEvent::from(code)))
    }

    fn drawn(history: &History) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(40, 6)).expect("a backend");
        terminal.draw(|frame| history.draw(frame, frame.area())).expect("draws");
        let buffer = terminal.backend().buffer().clone();
        (0..6).map(|y| (0..40).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
    }

    fn lines(range: std::ops::Range<usize>) -> Vec<Line> {
        range.map(|n| Line { text: format!("line {n}"), ansi: format!("\x1b[32mline {n}\x1b[0m"), wrapped: false }).collect()
    }

    #[test]
    fn lines_come_first_then_time() {
        let (mut history, effects) = opened("now\r\n$ ");
        assert_eq!(effects, [Effect::Scrolled { turn: OURS + 1, until: 1000, most: FIRST_LINES }]);
        history.update(Event::Scrolled(OURS + 1, lines(0..10)));
        assert_eq!(drawn(&history)[..5], ["line 7", "line 8", "line 9", "now", "$"]);
        assert!(drawn(&history)[5].starts_with(" [0/7]"), "{:?}", drawn(&history));
        assert_eq!(press(&mut history, KeyCode::Down), [], "nobody has moved yet");
        press(&mut history, KeyCode::PageUp);
        assert_eq!(drawn(&history)[0], "line 3");
        press(&mut history, KeyCode::Char('g'));
        assert_eq!(drawn(&history)[0], "line 0");
        assert_eq!(press(&mut history, KeyCode::Up), [], "the top is said first");
        assert!(drawn(&history)[5].contains("back in time"), "{:?}", drawn(&history));
        assert_eq!(press(&mut history, KeyCode::Up), [Effect::Seek(2, Seek::PreviousChange { from: 1000 })]);
        history.update(Event::Moment(2, moment("before", Position { offset: 900, time: 90_000_000 }, Size { cols: 40, rows: 6 })));
        assert_eq!(drawn(&history)[0], "before");
        assert!(drawn(&history)[5].contains("◀ 00:01:30"), "{:?}", drawn(&history));
        assert_eq!(press(&mut history, KeyCode::Down), [Effect::Seek(3, Seek::NextChange { from: 900 })]);
        let effects = history.update(Event::Moment(3, moment("now", END, Size { cols: 40, rows: 6 })));
        assert_eq!(effects, [Effect::Leave], "the end is where it came from");
    }

    #[test]
    fn programs_of_the_whole_screen_have_only_time() {
        let (mut history, effects) = opened("\x1b[?1049hpage");
        assert_eq!(effects, []);
        assert_eq!(press(&mut history, KeyCode::Char('k')), [Effect::Seek(2, Seek::PreviousChange { from: 1000 })]);
    }

    #[test]
    fn what_is_in_no_line_is_looked_for_in_time() {
        let (mut history, _) = opened("$ ");
        history.update(Event::Scrolled(OURS + 1, lines(0..10)));
        let search = |history: &mut History, text: &str| {
            press(history, KeyCode::Char('/'));
            for c in text.chars() {
                press(history, KeyCode::Char(c));
            }
            press(history, KeyCode::Enter)
        };
        let effects = search(&mut history, "drawn");
        let find = |turn| Effect::Find { turn, pattern: "drawn".into(), ignore_case: true, from: 1000, forward: false };
        assert_eq!(effects, [find(2)]);
        history.update(Event::Found(2, None));
        assert!(drawn(&history)[5].contains("no \"drawn\" before this"), "{:?}", drawn(&history));
        assert_eq!(drawn(&history)[0], "line 6", "the lines are still there");
        assert_eq!(press(&mut history, KeyCode::Char('n')), [find(3)]);
        assert_eq!(history.update(Event::Found(3, Some(500))), [Effect::Seek(4, Seek::Offset { offset: 500 })]);
        history.update(Event::Moment(4, moment("as drawn", Position { offset: 500, time: 50_000_000 }, Size { cols: 40, rows: 6 })));
        assert_eq!(drawn(&history)[0], "as drawn");
    }

    #[test]
    fn more_lines_are_loaded_when_they_are_needed_and_searched_upwards() {
        let (mut history, _) = opened("$ ");
        history.update(Event::Scrolled(OURS + 1, lines(1000..3000)));
        press(&mut history, KeyCode::Char('/'));
        for c in "LINE 1500".to_lowercase().chars() {
            press(&mut history, KeyCode::Char(c));
        }
        press(&mut history, KeyCode::Enter);
        assert!(drawn(&history).contains(&"line 1500".to_owned()), "{:?}", drawn(&history));
        let top = history.top;
        let effects = press(&mut history, KeyCode::Char('n'));
        assert_eq!(effects, [Effect::Scrolled { turn: OURS + 2, until: 1000, most: ALL_LINES }], "not in those that are there");
        history.update(Event::Scrolled(OURS + 2, lines(0..3000)));
        assert_eq!(history.top, top + 1000, "what is shown stays");
        assert!(drawn(&history)[5].contains("no \"line 1500\" above this"), "{:?}", drawn(&history));
        press(&mut history, KeyCode::Char('g'));
        assert_eq!(drawn(&history)[0], "line 0");
        assert_eq!(press(&mut history, KeyCode::Char('q')), [Effect::Leave]);
    }

    #[test]
    fn what_the_program_does_meanwhile_is_told() {
        let (mut history, _) = History::new(Outline { is_live: true, ..outline() }, TimeZone::UTC).expect("a history");
        history.update(Event::Resized(Rect::new(0, 0, 40, 6)));
        let mut now = moment("$ ", END, Size { cols: 40, rows: 6 });
        now.is_live = true;
        let effects = history.update(Event::Moment(1, now));
        assert_eq!(effects[1], Effect::Records { turn: OURS + 2, from: 1000, waits: Waits::ForMore });
        let records = vec![output(1010, 101_000_000, "more")];
        assert_eq!(history.update(Event::Records(OURS + 2, Records { records, at_end: true, is_live: true, end: 1010 })), []);
        assert!(history.next_deadline().is_some(), "looked at again in a moment");
        let effects = history.update(Event::Time(LOOK_AGAIN));
        assert!(effects.contains(&Effect::Records { turn: OURS + 3, from: 1010, waits: Waits::ForMore }), "{effects:?}");
        history.update(Event::Records(OURS + 3, Records { records: Vec::new(), at_end: true, is_live: false, end: 1010 }));
        assert!(drawn(&history)[5].contains("the program has ended"), "{:?}", drawn(&history));
    }
}
