//! Draws a player into any part of a window; changes nothing.

use std::collections::HashSet;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use shared::text::{columns, pad};

use super::player::{Overlay, Player};
use super::screen_widget::ScreenWidget;
use super::{keys, status, timeline};
use crate::words::wrapped;

/// Which part of an area is for what.
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    pub screen: Rect,
    pub bar: Option<Rect>,
    pub status: Option<Rect>,
}

/// Below this height there is no room for a timeline.
const MIN_FOR_BAR: u16 = 6;

pub fn areas(area: Rect) -> Areas {
    let below = match area.height {
        0..2 => 0,
        2..MIN_FOR_BAR => 1,
        _ => 2,
    };
    let row = |from_bottom: u16| Rect { y: area.bottom().saturating_sub(from_bottom), height: 1, ..area };
    Areas { screen: Rect { height: area.height - below, ..area }, bar: (below == 2).then(|| row(2)), status: (below > 0).then(|| row(1)) }
}

pub fn draw(player: &Player, frame: &mut Frame<'_>, area: Rect) {
    let Areas { screen, bar, status } = areas(area);
    if let Some(shown) = player.screen() {
        let found = player.pattern.as_ref().map_or_else(HashSet::new, |pattern| pattern.cells(shown));
        frame.render_widget(ScreenWidget { screen: shown, part: player.part(), found: &found }, screen);
    }
    if let Some(bar) = bar {
        timeline::draw(&player.outline, &player.clock, player.time, bar, frame.buffer_mut());
    }
    if let Some(status) = status {
        frame.render_widget(Paragraph::new(status::line(player, status.width)), status);
    }
    if let Some(Overlay::Help { top }) = player.overlay {
        help(keys::HELP, top, frame, area);
    }
}

/// Columns of keys in the help.
const KEYS: usize = 11;

/// Lines of a help: what is too long for the window goes on in the next.
fn help_lines(keys: &[(&str, &str)], area: Rect) -> Vec<String> {
    let room = usize::from(area.width).saturating_sub(KEYS + 5).max(8);
    let mut lines = Vec::new();
    for (key, what) in keys {
        for (n, part) in wrapped(what, room).into_iter().enumerate() {
            lines.push(format!(" {} {part} ", pad(if n == 0 { key } else { "" }, KEYS)));
        }
    }
    lines
}

/// How many lines of a help do not fit.
pub fn help_overflow(keys: &[(&str, &str)], area: Rect) -> u16 {
    (help_lines(keys, area).len() as u16 + 2).saturating_sub(area.height)
}

/// What a key does in a help: it moves in one that does not fit; nothing if it closes it.
pub fn help_key(keys: &[(&str, &str)], top: u16, key: KeyEvent, area: Rect) -> Option<u16> {
    let most = help_overflow(keys, area);
    let page = area.height.saturating_sub(3).max(1);
    let to = match key.code {
        _ if most == 0 => return None,
        KeyCode::Down | KeyCode::Char('j') => top + 1,
        KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => top + page,
        KeyCode::PageUp => top.saturating_sub(page),
        _ => return None,
    };
    Some(to.min(most))
}

/// A box with keys in the middle.
pub fn help(keys: &[(&str, &str)], top: u16, frame: &mut Frame<'_>, area: Rect) {
    let lines = help_lines(keys, area);
    let width = (lines.iter().map(|line| columns(line)).max().unwrap_or(0) as u16 + 2).min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let more = match help_overflow(keys, area) {
        0 => "",
        most if top < most => " ↓ more ",
        _ => " ↑ more ",
    };
    let block = Block::bordered().title(" keys ").title_bottom(Line::raw(more).right_aligned());
    let shown: Vec<Line<'_>> = lines.into_iter().skip(usize::from(top)).map(Line::raw).collect();
    frame.render_widget(Paragraph::new(shown).block(block), place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_can_be_read_in_a_small_window() {
        let area = Rect::new(0, 0, 40, 15);
        let lines = help_lines(keys::HELP, area);
        assert!(lines.iter().all(|line| columns(line) <= 38), "{lines:?}");
        let most = help_overflow(keys::HELP, area);
        assert!(most > 0);
        let mut top = 0;
        for _ in 0..50 {
            top = help_key(keys::HELP, top, KeyEvent::from(KeyCode::Char('j')), area).expect("it moves");
        }
        assert_eq!(top, most);
        assert!(lines[usize::from(top)..].len() <= 13, "the last is seen");
        assert_eq!(help_key(keys::HELP, top, KeyEvent::from(KeyCode::Esc), area), None, "any other key closes it");
        assert_eq!(help_key(keys::HELP, 0, KeyEvent::from(KeyCode::Char('j')), Rect::new(0, 0, 80, 24)), None, "all of it is seen");
    }
}
