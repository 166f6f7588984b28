//! Searching everything from the dashboard: hits come as one types, the moment of the one under the cursor is shown. Pure.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shared::id::{Offset, RuntimeId};
use shared::message::Request;
use shared::replay::Seek;
use shared::screen::Screen;
use shared::search::{Hit, Pattern, SearchQuery, SearchSummary};

use crate::dashboard::event::{Asked, Effect, Turn};
use crate::line_editor::Line;

/// After the last key, before the search begins.
const PAUSE: Duration = Duration::from_millis(150);

/// The cursor rests before the moment under it is asked for.
const REST: Duration = Duration::from_millis(80);

/// Hits that are asked for.
const MOST: u32 = 500;

/// Fewer characters find everything.
const MIN_TEXT: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    Text,
    Hits,
}

pub struct Hits {
    pub line: Line,
    pub focus: Focus,
    pub is_regex: bool,
    pub is_exact: bool,
    /// Only in this session: its name and id.
    pub only: Option<(String, String)>,
    pub found: Vec<Hit>,
    pub cursor: usize,
    pub top: usize,
    pub progress: Option<(u64, u64)>,
    pub summary: Option<Result<SearchSummary, String>>,
    pub moment: Option<(Spot, Screen)>,
    turn: Turn,
    due: Option<Duration>,
    moment_due: Option<Duration>,
    asked: Option<(Turn, Spot)>,
    moment_turn: Turn,
}

type Spot = (RuntimeId, Offset);

/// What a key has come to.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    More(Vec<Effect>),
    Leave,
    /// It is for the keys of the view.
    NotOurs,
}

impl Hits {
    /// Its searches are counted from `turn` on: hits of an earlier view come too late.
    pub fn new(only: Option<(String, String)>, turn: Turn) -> Self {
        Self {
            line: Line::default(),
            focus: Focus::Text,
            is_regex: false,
            is_exact: false,
            only,
            found: Vec::new(),
            cursor: 0,
            top: 0,
            progress: None,
            summary: None,
            moment: None,
            turn,
            due: None,
            moment_due: None,
            asked: None,
            moment_turn: 0,
        }
    }

    pub fn pattern(&self) -> Pattern {
        // small letters find large ones too, as in editors
        let has_upper = self.line.text().chars().any(char::is_uppercase);
        Pattern { text: self.line.text().to_owned(), regex: self.is_regex, ignore_case: !self.is_exact && !has_upper }
    }

    pub fn key(&mut self, key: KeyEvent, now: Duration) -> Outcome {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('r') if is_alt => {
                self.is_regex = !self.is_regex;
                return self.changed(now);
            }
            KeyCode::Char('c') if is_alt => {
                self.is_exact = !self.is_exact;
                return self.changed(now);
            }
            KeyCode::Char('s') if is_alt && self.only.is_some() => {
                self.only = None;
                return self.changed(now);
            }
            _ => {}
        }
        if self.focus == Focus::Hits {
            return Outcome::NotOurs;
        }
        match key.code {
            KeyCode::Esc => Outcome::Leave,
            KeyCode::Char('c') if is_control => Outcome::Leave,
            KeyCode::Enter | KeyCode::Down | KeyCode::Tab => {
                if self.found.is_empty() {
                    // not waiting for the pause
                    self.due = self.due.map(|_| now);
                    return Outcome::More(self.passed(now));
                }
                self.focus = Focus::Hits;
                Outcome::More(Vec::new())
            }
            _ => {
                let before = self.line.text().to_owned();
                self.line.key(key);
                if before == self.line.text() { Outcome::More(Vec::new()) } else { self.changed(now) }
            }
        }
    }

    pub fn paste(&mut self, text: &str, now: Duration) -> Vec<Effect> {
        self.focus = Focus::Text;
        self.line.insert(text);
        match self.changed(now) {
            Outcome::More(effects) => effects,
            Outcome::Leave | Outcome::NotOurs => Vec::new(),
        }
    }

    fn changed(&mut self, now: Duration) -> Outcome {
        self.due = Some(now + PAUSE);
        Outcome::More(Vec::new())
    }

    pub fn next_deadline(&self) -> Option<Duration> {
        [self.due, self.moment_due].into_iter().flatten().min()
    }

    /// Time has passed: a search may begin, a moment may be asked for.
    pub fn passed(&mut self, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.due.is_some_and(|at| now >= at) {
            self.due = None;
            effects.extend(self.begin());
        }
        if self.moment_due.is_some_and(|at| now >= at) {
            self.moment_due = None;
            effects.extend(self.ask_moment());
        }
        effects
    }

    fn begin(&mut self) -> Vec<Effect> {
        self.turn += 1;
        self.found.clear();
        self.cursor = 0;
        self.top = 0;
        self.summary = None;
        self.moment = None;
        self.asked = None;
        self.progress = None;
        let pattern = self.pattern();
        if pattern.text.chars().count() < MIN_TEXT {
            return vec![Effect::StopSearch];
        }
        if let Err(failure) = pattern.check() {
            self.summary = Some(Err(failure.message));
            return vec![Effect::StopSearch];
        }
        self.progress = Some((0, 0));
        let name = self.only.as_ref().map(|(_, id)| id.clone());
        let query = SearchQuery { pattern, name, limit: Some(MOST), context: 0, ..SearchQuery::default() };
        vec![Effect::Search(self.turn, Box::new(query))]
    }

    pub fn take_hit(&mut self, turn: Turn, hit: Hit, now: Duration) -> bool {
        if turn != self.turn || self.progress.is_none() {
            return false;
        }
        self.found.push(hit);
        if self.found.len() == 1 {
            self.moment_due = Some(now);
        }
        true
    }

    pub fn searched(&mut self, turn: Turn, done: u64, total: u64) -> bool {
        let is_ours = turn == self.turn && self.progress.is_some();
        if is_ours {
            self.progress = Some((done, total));
        }
        is_ours
    }

    pub fn finished(&mut self, turn: Turn, outcome: Result<SearchSummary, String>) -> bool {
        let is_ours = turn == self.turn;
        if is_ours {
            self.progress = None;
            self.summary = Some(outcome);
        }
        is_ours
    }

    pub fn current(&self) -> Option<&Hit> {
        self.found.get(self.cursor)
    }

    pub fn step(&mut self, by: isize, now: Duration) {
        if by < 0 && self.cursor == 0 {
            self.focus = Focus::Text;
        }
        self.go_to(self.cursor.saturating_add_signed(by), now);
    }

    pub fn go_to(&mut self, row: usize, now: Duration) {
        self.cursor = row.min(self.found.len().saturating_sub(1));
        self.moment_due = Some(now + REST);
    }

    pub fn follow_cursor(&mut self, height: usize) {
        let height = height.max(1);
        self.top = self.top.clamp((self.cursor + 1).saturating_sub(height), self.cursor);
    }

    fn ask_moment(&mut self) -> Option<Effect> {
        let hit = self.current()?;
        let spot = (hit.runtime?, hit.offset?);
        let is_known = self.moment.as_ref().is_some_and(|(shown, _)| *shown == spot);
        if is_known || self.asked.is_some_and(|(_, asked)| asked == spot) {
            return None;
        }
        self.moment_turn += 1;
        let turn = self.moment_turn;
        self.asked = Some((turn, spot));
        let request = Request::Seek { runtime: spot.0, seek: Seek::Offset { offset: spot.1 } };
        Some(Effect::Ask(Asked::Moment(turn), request))
    }

    pub fn take_moment(&mut self, turn: Turn, screen: Option<Screen>) -> bool {
        let Some((asked, spot)) = self.asked.filter(|(asked, _)| *asked == turn) else { return false };
        debug_assert_eq!(asked, turn);
        self.moment = screen.map(|screen| (spot, screen));
        true
    }

    /// The screen of the hit under the cursor, once it is there.
    pub fn shown(&self) -> Option<&Screen> {
        let hit = self.current()?;
        let (spot, screen) = self.moment.as_ref()?;
        (Some(spot.0) == hit.runtime && Some(spot.1) == hit.offset).then_some(screen)
    }

    /// The daemon is gone: whatever was under way is over.
    pub fn lost(&mut self, now: Duration) {
        if self.progress.take().is_some() {
            self.due = Some(now);
        }
        self.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::id::{SessionId, ThreadId};
    use shared::search::Kind;

    fn hit(line: &str) -> Hit {
        Hit {
            session: SessionId::new(),
            name: "api".into(),
            thread: ThreadId::new(),
            kind: Kind::Output,
            part: None,
            at: jiff::Timestamp::UNIX_EPOCH,
            runtime: Some(RuntimeId::new()),
            offset: Some(10),
            exec: None,
            language: None,
            exit_code: None,
            author: None,
            line: line.into(),
            ranges: vec![(0, 1)],
            perceived: None,
            before: vec![],
            after: vec![],
            times: 1,
        }
    }

    #[test]
    fn the_search_begins_when_typing_rests_and_old_hits_are_dropped() {
        let mut hits = Hits::new(None, 0);
        let at = Duration::from_millis;
        for (n, c) in "err".chars().enumerate() {
            hits.key(KeyEvent::from(KeyCode::Char(c)), at(n as u64 * 50));
        }
        assert!(hits.passed(at(200)).is_empty());
        assert_eq!(hits.next_deadline(), Some(at(250)));
        let begun = hits.passed(at(250));
        assert!(matches!(&begun[0], Effect::Search(1, query) if query.pattern.text == "err" && query.pattern.ignore_case));
        assert!(hits.take_hit(1, hit("error"), at(260)));
        assert!(!hits.take_hit(0, hit("too late"), at(260)));
        let asked = hits.passed(at(260));
        assert!(matches!(&asked[0], Effect::Ask(Asked::Moment(1), Request::Seek { .. })));
        assert!(hits.take_moment(1, Some(Screen::new(shared::screen::Size { cols: 10, rows: 2 }))));
        assert!(hits.shown().is_some());
        hits.key(KeyEvent::from(KeyCode::Enter), at(300));
        assert_eq!(hits.focus, Focus::Hits);
        hits.step(-1, at(300));
        assert_eq!(hits.focus, Focus::Text, "above the first is the text");
        hits.key(KeyEvent::from(KeyCode::Char('R')), at(400));
        let begun = hits.passed(at(550));
        assert!(matches!(&begun[0], Effect::Search(2, query) if !query.pattern.ignore_case), "a capital letter means itself");
        assert!(hits.found.is_empty());
    }

    #[test]
    fn too_little_finds_nothing_and_bad_patterns_say_so() {
        let mut hits = Hits::new(Some(("api".into(), "id".into())), 0);
        hits.key(KeyEvent::from(KeyCode::Char('x')), Duration::ZERO);
        assert_eq!(hits.passed(Duration::from_secs(1)), vec![Effect::StopSearch]);
        assert_eq!(hits.key(KeyEvent::from(KeyCode::Esc), Duration::ZERO), Outcome::Leave);
        hits.paste("yz", Duration::ZERO);
        let begun = hits.passed(Duration::from_secs(1));
        assert!(matches!(&begun[0], Effect::Search(_, query) if query.name.as_deref() == Some("id")));
        assert!(hits.finished(2, Err("not a regular expression".into())));
        assert!(hits.progress.is_none());
    }
}
