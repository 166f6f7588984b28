//! The mouse: what is under it decides.

use std::time::Duration;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{App, Asks, Focus, Overlay, View};
use crate::dashboard::event::{Effect, PaneOrder};
use crate::dashboard::state::pane::Pane;
use crate::dashboard::state::remembered::Layout;
use crate::dashboard::view::{areas, footer, form as form_view, messages, overlay, plan};
use crate::keymap::Action;
use crate::replay::{Point, Selection, Shape};
use crate::{input, replay};

/// Two clicks within this are one that means more.
const TWICE: Duration = Duration::from_millis(400);

const WHEEL: isize = 3;

/// What has the mouse from a press to its release, wherever that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grab {
    /// The program in the terminal, which saw the press of this button.
    Program(MouseButton),
    /// Text of the terminal is being marked.
    Marking,
}

impl App {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        if let Some(effects) = self.mouse_held(mouse) {
            self.is_dirty = true;
            return effects;
        }
        if matches!(self.views.last(), Some(View::Time(_))) && self.overlay.is_none() {
            return self.time_event(replay::Event::Mouse(mouse));
        }
        // moving alone changes nothing
        if mouse.kind == MouseEventKind::Moved && self.pane.is_none() {
            return Vec::new();
        }
        self.is_dirty = true;
        let at = Position { x: mouse.column, y: mouse.row };
        if self.overlay.is_some() {
            return self.mouse_over_overlay(mouse);
        }
        let areas = areas::sessions(self);
        if let Some(area) = areas.pane.filter(|area| self.shows_sessions() && area.contains(at)) {
            return self.mouse_over_pane(mouse, area);
        }
        let by = match mouse.kind {
            MouseEventKind::ScrollDown => Some(WHEEL),
            MouseEventKind::ScrollUp => Some(-WHEEL),
            _ => None,
        };
        if let Some(by) = by {
            // one step a notch where a step is a large one
            let by = if self.shows_sessions() { by.signum() } else { by };
            return self.act_steps(by);
        }
        if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
            return Vec::new();
        }
        let is_twice = self.last_click.is_some_and(|(when, x, y)| self.now < when + TWICE && (x, y) == (at.x, at.y));
        self.last_click = if is_twice { None } else { Some((self.now, at.x, at.y)) };
        if let Some(action) = footer::action_at(self, at) {
            return self.act(action);
        }
        match self.views.last() {
            None => self.click_session(at, &areas, is_twice),
            Some(View::Detail(_)) => self.click_detail(at, is_twice),
            Some(View::Hits(_)) => self.click_hit(at, is_twice),
            Some(View::Messages { cursor }) => {
                if let Some(clicked) = messages::at(self, *cursor, at) {
                    self.views.pop();
                    self.views.push(View::Messages { cursor: clicked });
                }
                Vec::new()
            }
            Some(_) => Vec::new(),
        }
    }

    fn act_steps(&mut self, by: isize) -> Vec<Effect> {
        let action = if by > 0 { Action::Down } else { Action::Up };
        let mut effects = Vec::new();
        for _ in 0..by.unsigned_abs() {
            effects.extend(self.act(action));
        }
        effects
    }

    fn click_session(&mut self, at: Position, areas: &areas::Sessions, is_twice: bool) -> Vec<Effect> {
        self.focus = Focus::List;
        if self.layout == Layout::Grid && self.pane.is_none() {
            let found = areas::tiles(self).into_iter().find(|(_, area)| area.contains(at));
            let Some((id, _)) = found else { return Vec::new() };
            self.list.go_to(id);
            return if is_twice { self.attach_current(false) } else { Vec::new() };
        }
        if let Some(area) = areas.list.filter(|area| area.contains(at)) {
            // the first row has the titles: a click sorts by that column
            if at.y == area.y {
                return plan::sort_at(self, area, at).map(|sort| self.sort_by(sort)).unwrap_or_default();
            }
            let row = self.list.top + usize::from(at.y - area.y - 1);
            if !self.list.go_to_row(row) {
                return Vec::new();
            }
            if is_twice {
                return self.act(Action::Open);
            }
            return self.pane_follows();
        }
        if areas.preview.is_some_and(|area| area.contains(at)) && is_twice {
            return self.attach_current(false);
        }
        Vec::new()
    }

    fn click_detail(&mut self, at: Position, is_twice: bool) -> Vec<Effect> {
        if let Some(page) = areas::page_tab(self, at) {
            if let Some(View::Detail(detail)) = self.views.last_mut() {
                detail.page = page;
            }
            return Vec::new();
        }
        let rows: Rect = areas::page(self);
        if rows.contains(at) {
            if let Some(View::Detail(detail)) = self.views.last_mut() {
                let row = detail.top() + usize::from(at.y - rows.y);
                detail.go_to(row);
            }
            if is_twice {
                return self.act(Action::Open);
            }
        }
        Vec::new()
    }

    fn click_hit(&mut self, at: Position, is_twice: bool) -> Vec<Effect> {
        let rows = areas::hits(self.area).0;
        let now = self.now;
        if let Some(View::Hits(hits)) = self.views.last_mut()
            && rows.contains(at)
        {
            hits.focus = crate::dashboard::state::hits::Focus::Hits;
            hits.go_to(hits.top + usize::from(at.y - rows.y), now);
            if is_twice {
                return self.act(Action::Open);
            }
        }
        Vec::new()
    }

    /// Whoever saw a press hears of what follows it, inside its place or not.
    fn mouse_held(&mut self, mouse: MouseEvent) -> Option<Vec<Effect>> {
        let grab = self.grab?;
        let (button, is_release) = match mouse.kind {
            MouseEventKind::Drag(button) => (button, false),
            MouseEventKind::Up(button) => (button, true),
            // its release was never told
            MouseEventKind::Down(_) => {
                self.let_go();
                return None;
            }
            _ => return None,
        };
        let is_held = match grab {
            Grab::Program(pressed) => pressed == button,
            Grab::Marking => button == MouseButton::Left,
        };
        if !is_held {
            return None;
        }
        let Some((area, pane)) = areas::sessions(self).pane.filter(|area| !area.is_empty()).zip(self.pane.as_mut()) else {
            self.let_go();
            return Some(Vec::new());
        };
        let column = mouse.column.clamp(area.left(), area.right() - 1);
        let row = mouse.row.clamp(area.top(), area.bottom() - 1);
        if is_release {
            self.grab = None;
        }
        match grab {
            Grab::Program(_) => {
                let bytes = input::mouse(MouseEvent { column, row, ..mouse }, area, pane.screen.modes());
                let reaches = pane.has_control && !bytes.is_empty();
                Some(if reaches { vec![Effect::Pane(PaneOrder::Type(bytes))] } else { Vec::new() })
            }
            Grab::Marking => {
                if let Some(selection) = &mut pane.selection {
                    selection.head = Point { line: usize::from(row - area.y), col: usize::from(column - area.x) };
                }
                let selected = if is_release { pane.take_selected() } else { None };
                Some(selected.map(|(text, lines)| self.copied(text, lines)).unwrap_or_default())
            }
        }
    }

    fn let_go(&mut self) {
        self.grab = None;
        if let Some(pane) = &mut self.pane {
            pane.selection = None;
        }
    }

    fn copied(&mut self, text: String, lines: usize) -> Vec<Effect> {
        self.say(format!("copied {} to the clipboard", shared::text::count(lines, "line")));
        vec![Effect::Copy(text)]
    }

    fn mouse_over_pane(&mut self, mouse: MouseEvent, area: Rect) -> Vec<Effect> {
        let Some(pane) = &mut self.pane else { return Vec::new() };
        let has_focus = self.focus == Focus::Pane;
        // with shift the mouse is the user's, as in every terminal
        let is_own = mouse.modifiers.contains(KeyModifiers::SHIFT);
        let is_programs = has_focus && pane.has_control && !is_own && input::wants_mouse(pane.screen.modes());
        match mouse.kind {
            MouseEventKind::Down(button) if is_programs => {
                self.grab = Some(Grab::Program(button));
                Self::to_program(mouse, area, pane)
            }
            MouseEventKind::Down(button) => {
                if button == MouseButton::Left {
                    let at = Point { line: usize::from(mouse.row - area.y), col: usize::from(mouse.column - area.x) };
                    pane.selection = Some(Selection::new(at, Shape::Characters));
                    self.grab = Some(Grab::Marking);
                }
                let is_current = self.list.current().is_some_and(|session| session.id == pane.session && !session.is_over());
                if !has_focus && is_current { self.open_pane(Focus::Pane) } else { Vec::new() }
            }
            // a drag or a release whose press was elsewhere is not for it
            MouseEventKind::Drag(_) | MouseEventKind::Up(_) => Vec::new(),
            _ if is_programs => Self::to_program(mouse, area, pane),
            // a program that does not ask for the mouse is scrolled back
            MouseEventKind::ScrollUp => self.look_back(),
            _ => Vec::new(),
        }
    }

    fn to_program(mouse: MouseEvent, area: Rect, pane: &Pane) -> Vec<Effect> {
        let bytes = input::mouse(mouse, area, pane.screen.modes());
        if bytes.is_empty() { Vec::new() } else { vec![Effect::Pane(PaneOrder::Type(bytes))] }
    }

    fn mouse_over_overlay(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let at = Position { x: mouse.column, y: mouse.row };
        let by = match mouse.kind {
            MouseEventKind::ScrollDown => 1,
            MouseEventKind::ScrollUp => -1,
            MouseEventKind::Down(MouseButton::Left) => return self.click_overlay(at),
            _ => return Vec::new(),
        };
        let most = match &self.overlay {
            Some(Overlay::Help(page)) => crate::dashboard::view::help::overflow(self, page),
            _ => 0,
        };
        match &mut self.overlay {
            Some(Overlay::Palette(palette)) => palette.step(by),
            Some(Overlay::Help(page)) => page.top = page.top.saturating_add_signed(by as i16 * WHEEL as i16).min(most),
            Some(Overlay::New(form)) => form.step(by),
            // the list moves below what is typed
            Some(Overlay::Prompt(prompt)) if prompt.asks == Asks::Filter => {
                self.list.step(by);
                self.place_cursor();
            }
            Some(Overlay::Prompt(_) | Overlay::Confirm { .. }) | None => {}
        }
        Vec::new()
    }

    fn click_overlay(&mut self, at: Position) -> Vec<Effect> {
        let is_inside = overlay::area(self).is_some_and(|area| area.contains(at));
        match self.overlay.take() {
            Some(Overlay::Palette(mut palette)) if is_inside => {
                if let Some(row) = overlay::palette_row(self, &palette, at) {
                    palette.cursor = row;
                    return palette.chosen().map(|action| self.act(action)).unwrap_or_default();
                }
                self.overlay = Some(Overlay::Palette(palette));
            }
            Some(Overlay::Confirm { question, deed, sessions }) if is_inside => match overlay::answer_at(self, &question, &deed, at) {
                Some(overlay::Answer::Yes) => return self.carry_out(&deed, &sessions),
                Some(overlay::Answer::No) => self.say("nothing was done"),
                None => self.overlay = Some(Overlay::Confirm { question, deed, sessions }),
            },
            Some(Overlay::New(mut form)) if is_inside => {
                match form_view::spot(self, &form, at) {
                    Some(form_view::Spot::Key(key)) => return self.form_key(form, key),
                    Some(form_view::Spot::Field(field)) if !form.is_sent => form.focus = field,
                    Some(form_view::Spot::Recent(by)) if !form.is_sent => form.take_recent(by),
                    _ => {}
                }
                self.overlay = Some(Overlay::New(form));
            }
            // what is typed is not thrown away by a slip of the hand
            Some(typed @ (Overlay::Prompt(_) | Overlay::New(_))) => self.overlay = Some(typed),
            Some(help @ Overlay::Help(_)) if is_inside => self.overlay = Some(help),
            Some(Overlay::Confirm { .. }) => self.say("nothing was done"),
            // beside it means: not this
            _ => {}
        }
        Vec::new()
    }
}
