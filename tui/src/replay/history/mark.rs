//! Marking what is looked back at, by keys or with the mouse, and copying it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{History, Mode};
use crate::replay::event::Effect;
use crate::replay::keys::Direction;
use crate::replay::screen_widget::Part;
use crate::replay::selection::{Point, Selection, Shape};

impl History {
    /// Lines that can be marked: those that are shown, or the rows of the screen of then.
    pub(super) fn line(&self, line: usize) -> Option<(String, bool)> {
        match (self.mode, self.player.screen()) {
            (Mode::Time, Some(screen)) => {
                let row = u16::try_from(line).ok().filter(|row| *row < screen.size().rows)?;
                Some((screen.row_text(row), screen.row_wrapped(row)))
            }
            _ => self.lines.get(line).map(|line| (line.text.clone(), line.wrapped)),
        }
    }

    pub(super) fn count(&self) -> usize {
        match (self.mode, self.player.screen()) {
            (Mode::Time, Some(screen)) => usize::from(screen.size().rows),
            _ => self.lines.len(),
        }
    }

    /// The row and column of the first cell that is shown.
    pub(super) fn corner(&self) -> (usize, usize) {
        match (self.mode, self.player.part()) {
            (Mode::Time, Part::From { row, col }) => (usize::from(row), usize::from(col)),
            (Mode::Time, Part::All) => (0, 0),
            (Mode::Lines, _) => (self.top, usize::from(self.left)),
        }
    }

    /// Keys of marking; `true` if this was one.
    pub(super) fn selecting(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
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
    pub(super) fn mark_to(&mut self, line: usize) {
        let (last, height, bottom) = (self.count().saturating_sub(1), self.height(), self.bottom());
        let Some(selection) = &mut self.selection else { return };
        selection.head.line = line.min(last);
        if self.mode == Mode::Lines {
            let head = selection.head.line;
            self.top = self.top.clamp((head + 1).saturating_sub(height), head).min(bottom);
            self.has_moved = true;
        }
    }

    pub(super) fn copy(&mut self, selection: Selection, effects: &mut Vec<Effect>) {
        self.selection = None;
        let lines: Vec<Option<(String, bool)>> = (0..self.count()).map(|line| self.line(line)).collect();
        let text = selection.text(|line| lines.get(line)?.as_ref().map(|(text, wrapped)| (text.as_str(), *wrapped)));
        let what = shared::text::count(selection.lines(), "line");
        self.player.say(&format!("copied {what} to the clipboard"));
        effects.push(Effect::Copy(text));
    }

    pub(super) fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<Effect>) {
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
}
