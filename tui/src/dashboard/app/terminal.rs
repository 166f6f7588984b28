//! The terminal beside the list: opening, typing, what it says.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use shared::id::SessionId;
use shared::message::Request;
use shared::replay::Of;
use shared::screen::Size;
use shared::session::Session;

use super::{App, Focus, HelpPage, Link, Overlay};
use crate::dashboard::event::{Asked, Effect, Opens, PaneNews, PaneOrder, Turn};
use crate::dashboard::state::pane::{Pane, State};
use crate::dashboard::view::areas;
use crate::input;
use crate::keymap::{Action, Place};

impl App {
    fn pane_size(&self) -> Option<Size> {
        let area = areas::sessions(self).pane?;
        (area.width > 0 && area.height > 0).then_some(Size { cols: area.width, rows: area.height })
    }

    /// The terminal of the session under the cursor, beside the list.
    pub(super) fn open_pane(&mut self, focus: Focus) -> Vec<Effect> {
        let Some(session) = self.list.current() else { return Vec::new() };
        if session.is_over() {
            let (id, sentence) = (session.id, {
                let key = self.keymap.hint(Place::List, Action::Replay);
                format!("{} has ended: {key} plays what it recorded", shared::text::visible(&session.name))
            });
            if self.pane.is_none() {
                self.say(sentence);
                return Vec::new();
            }
            // its last screen is shown, but there is nobody to type to
            if focus == Focus::Pane {
                return self.play(id);
            }
        }
        let (id, name) = (session.id, session.name.clone());
        if self.pane.as_ref().is_some_and(|pane| pane.session == id && pane.state == State::Attached) {
            self.focus = focus;
            // whoever looked on by the list wants to type now
            let takes = focus == Focus::Pane && self.pane.as_ref().is_some_and(|pane| !pane.has_control);
            return if takes { vec![Effect::Pane(PaneOrder::TakeControl)] } else { Vec::new() };
        }
        let turn = self.next_turn();
        self.focus = focus;
        self.is_armed = false;
        let mut effects = self.seen(id);
        if self.pane.is_some() {
            effects.push(Effect::Pane(PaneOrder::Close));
        }
        // the pane has its place only once it is there
        self.pane = Some(Pane::new(turn, id, name, Size { cols: 80, rows: 24 }));
        let size = self.pane_size().unwrap_or(Size { cols: 80, rows: 24 });
        if let Some(pane) = &mut self.pane {
            pane.resize(size);
        }
        self.is_dirty = true;
        // moving in the list is looking: it takes nobody's control and changes no size
        effects.push(Effect::Pane(PaneOrder::Open { turn, name: id.to_string(), size, watches: focus == Focus::List }));
        effects
    }

    pub(super) fn close_pane(&mut self) -> Vec<Effect> {
        self.focus = Focus::List;
        self.is_armed = false;
        self.is_dirty = true;
        if self.pane.take().is_none() {
            return Vec::new();
        }
        self.place_cursor();
        vec![Effect::Pane(PaneOrder::Close)]
    }

    /// After a crash of the daemon, or when the terminal was given away meanwhile.
    pub(super) fn reopen_pane(&mut self) -> Vec<Effect> {
        let Some(session) = self.pane.as_ref().map(|pane| pane.session) else { return Vec::new() };
        let size = self.pane_size().unwrap_or(Size { cols: 80, rows: 24 });
        let turn = self.next_turn();
        if let Some(pane) = &mut self.pane {
            // what was on it stays until there is something else
            pane.turn = turn;
            pane.state = State::Joining;
        }
        let watches = self.pane.as_ref().is_some_and(|pane| !pane.has_control) && self.focus == Focus::List;
        vec![Effect::Pane(PaneOrder::Open { turn, name: session.to_string(), size, watches })]
    }

    /// The list's cursor has moved: the terminal beside it follows.
    pub(super) fn pane_follows(&mut self) -> Vec<Effect> {
        if self.pane.is_none() || self.pane.as_ref().map(|pane| pane.session) == self.list.cursor {
            return Vec::new();
        }
        if self.list.cursor.is_some() { self.open_pane(Focus::List) } else { self.close_pane() }
    }

    pub(super) fn resize_pane(&mut self) -> Vec<Effect> {
        let Some(size) = self.pane_size() else { return Vec::new() };
        let changed = self.pane.as_mut().is_some_and(|pane| pane.resize(size));
        if changed { vec![Effect::Pane(PaneOrder::Resize(size))] } else { Vec::new() }
    }

    pub(super) fn pane_news(&mut self, turn: Turn, news: PaneNews) -> Vec<Effect> {
        let Some(pane) = self.pane.as_mut().filter(|pane| pane.turn == turn) else { return Vec::new() };
        self.is_dirty = true;
        let typed = match news {
            PaneNews::Attached(attached) => pane.attached(*attached),
            PaneNews::Output(bytes) => pane.output(&bytes),
            PaneNews::Control(held) => {
                pane.has_control = held;
                Vec::new()
            }
            PaneNews::Detached(why) => {
                pane.detached(&why);
                self.focus = Focus::List;
                Vec::new()
            }
            PaneNews::Refused(why) => {
                pane.state = State::Over(why.clone());
                self.focus = Focus::List;
                self.fail(why);
                Vec::new()
            }
            PaneNews::Lost => {
                // the loop's own connection tells of a daemon that died; one that lives has only lost this one
                pane.state = State::Away;
                return if self.link == Link::Up { self.reopen_pane() } else { Vec::new() };
            }
            PaneNews::Stopped => {
                // nobody starts another one unasked; the pane is opened again when there is one
                pane.state = State::Away;
                Vec::new()
            }
        };
        if typed.is_empty() { Vec::new() } else { vec![Effect::Pane(PaneOrder::Type(typed))] }
    }

    fn type_into_pane(&mut self, bytes: Vec<u8>) -> Vec<Effect> {
        let Some(pane) = &mut self.pane else { return Vec::new() };
        if let State::Over(why) = &pane.state {
            let why = format!("{}: {why}", shared::text::visible(&pane.name));
            self.say(why);
            return Vec::new();
        }
        if !pane.has_control && pane.state == State::Attached {
            let sentence = format!("{} t takes control of {}", self.prefix.label(), shared::text::visible(&pane.name));
            self.say(format!("another client has control; {sentence}"));
            return Vec::new();
        }
        let bytes = pane.typed(bytes);
        if bytes.is_empty() { Vec::new() } else { vec![Effect::Pane(PaneOrder::Type(bytes))] }
    }

    pub(super) fn paste_into_pane(&mut self, text: &str) -> Vec<Effect> {
        let Some(pane) = &self.pane else { return Vec::new() };
        let bytes = input::paste(text, pane.screen.modes());
        self.type_into_pane(bytes)
    }

    pub(super) fn is_prefix(&self, key: KeyEvent) -> bool {
        key.modifiers.contains(KeyModifiers::CONTROL)
            && matches!(key.code, KeyCode::Char(c) if c.to_ascii_lowercase() == self.prefix.letter())
    }

    pub(super) fn pane_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let is_prefix = self.is_prefix(key);
        if !std::mem::take(&mut self.is_armed) {
            if is_prefix {
                self.is_armed = true;
                return Vec::new();
            }
            let Some(pane) = &self.pane else { return Vec::new() };
            let bytes = input::key(key, pane.screen.modes());
            return self.type_into_pane(bytes);
        }
        if is_prefix {
            return self.type_into_pane(vec![self.prefix.byte()]);
        }
        match key.code {
            KeyCode::Char('d') | KeyCode::Esc | KeyCode::Tab | KeyCode::Left => {
                self.focus = Focus::List;
                // a narrow window shows it again only now
                self.place_cursor();
                Vec::new()
            }
            KeyCode::Char('n') => self.switch_pane(1),
            KeyCode::Char('p') => self.switch_pane(-1),
            KeyCode::Char('t') => vec![Effect::Pane(PaneOrder::TakeControl)],
            KeyCode::Char('z') | KeyCode::Enter => self.attach_current(false),
            KeyCode::Char('[') | KeyCode::PageUp => self.look_back(),
            KeyCode::Char('q' | 'x') => self.close_pane(),
            KeyCode::Char('?') => {
                self.overlay = Some(Overlay::Help(HelpPage::of(Place::Pane)));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// To the next or previous session that lives, staying in the terminal.
    fn switch_pane(&mut self, by: isize) -> Vec<Effect> {
        let live: Vec<SessionId> = self.list.shown().filter(|session| !session.is_over()).map(|session| session.id).collect();
        let Some(pane) = &self.pane else { return Vec::new() };
        let at = live.iter().position(|id| *id == pane.session);
        let count = live.len().cast_signed();
        if count == 0 {
            return Vec::new();
        }
        let to = at.map_or(0, |at| (at.cast_signed() + by).rem_euclid(count).unsigned_abs());
        self.list.go_to(live[to]);
        self.place_cursor();
        self.open_pane(Focus::Pane)
    }

    pub(super) fn look_back(&mut self) -> Vec<Effect> {
        let Some(pane) = &self.pane else { return Vec::new() };
        let of = Of { name: pane.session.to_string(), ..Of::default() };
        vec![Effect::Ask(Asked::Open(Box::new(Opens::History)), Request::Replay(of))]
    }

    /// The whole window becomes the terminal of the session under the cursor.
    pub(super) fn attach_current(&mut self, watches: bool) -> Vec<Effect> {
        match self.list.current().cloned() {
            Some(session) => self.attach_to(&session, watches),
            None => Vec::new(),
        }
    }

    pub(super) fn attach_to(&mut self, session: &Session, watches: bool) -> Vec<Effect> {
        if session.is_over() {
            return self.play(session.id);
        }
        let mut effects = Vec::new();
        if self.pane.is_some() {
            // it comes back with the list
            effects.push(Effect::Pane(PaneOrder::Close));
        }
        effects.push(Effect::Attach { name: session.id.to_string(), watches });
        effects
    }
}
