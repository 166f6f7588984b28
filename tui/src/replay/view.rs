//! Draws a player into any part of a window; changes nothing.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::player::{Overlay, Player};
use super::screen_widget::ScreenWidget;
use super::{keys, status, timeline};

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
    if player.overlay == Some(Overlay::Help) {
        help(keys::HELP, frame, area);
    }
}

/// A box with keys in the middle; what does not fit is left out from the end.
pub fn help(keys: &[(&str, &str)], frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> = keys.iter().map(|(key, what)| Line::raw(format!(" {key:<10} {what} "))).collect();
    let width = (lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 2).min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let text = Paragraph::new(lines).block(Block::bordered().title(" keys "));
    frame.render_widget(text, place);
}
