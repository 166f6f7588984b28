//! The mouse: what is under it decides.

use std::time::Duration;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{App, Focus, Overlay, View};
use crate::event::{Effect, PaneOrder};
use crate::keymap::Action;
use crate::state::remembered::Layout;
use crate::view::{areas, footer};
use crate::{input, replay};

/// Two clicks within this are one that means more.
const TWICE: Duration = Duration::from_millis(400);

const WHEEL: isize = 3;

impl App {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
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
            // the first row has the titles: a click sorts
            if at.y == area.y {
                return self.act(Action::Sort);
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
            hits.focus = crate::state::hits::Focus::Hits;
            hits.go_to(hits.top + usize::from(at.y - rows.y), now);
            if is_twice {
                return self.act(Action::Open);
            }
        }
        Vec::new()
    }

    fn mouse_over_pane(&mut self, mouse: MouseEvent, area: Rect) -> Vec<Effect> {
        let Some(pane) = &self.pane else { return Vec::new() };
        if matches!(mouse.kind, MouseEventKind::Down(_)) && self.focus != Focus::Pane {
            self.focus = Focus::Pane;
            return Vec::new();
        }
        if self.focus != Focus::Pane || !pane.has_control {
            return Vec::new();
        }
        if input::wants_mouse(pane.screen.modes()) {
            let bytes = input::mouse(mouse, area, pane.screen.modes());
            return if bytes.is_empty() { Vec::new() } else { vec![Effect::Pane(PaneOrder::Type(bytes))] };
        }
        // a program that does not ask for the mouse is scrolled back
        match mouse.kind {
            MouseEventKind::ScrollUp => self.look_back(),
            _ => Vec::new(),
        }
    }

    fn mouse_over_overlay(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let by = match mouse.kind {
            MouseEventKind::ScrollDown => 1,
            MouseEventKind::ScrollUp => -1,
            MouseEventKind::Down(MouseButton::Left) => {
                let inside = crate::view::overlay::area(self).is_some_and(|area| area.contains((mouse.column, mouse.row).into()));
                // beside it means: not this
                if !inside && !matches!(self.overlay, Some(Overlay::Prompt(_))) {
                    self.overlay = None;
                }
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        match &mut self.overlay {
            Some(Overlay::Palette(palette)) => palette.step(by),
            Some(Overlay::Help { place, top }) => {
                let most = crate::view::overlay::help_overflow(&self.keymap, *place, self.area);
                *top = top.saturating_add_signed(by as i16).min(most);
            }
            _ => {}
        }
        Vec::new()
    }
}
