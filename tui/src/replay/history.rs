//! Looking back from an attached terminal.

use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::Rect;
use shared::replay::Outline;

use super::event::{Effect, Event};
use super::run::Component;
use super::{Place, Player, Start, view};

pub struct History {
    player: Player,
}

impl History {
    pub fn new(outline: Outline, zone: TimeZone) -> Result<(Self, Vec<Effect>), String> {
        let start = Start { place: Some(Place::End), ..Start::default() };
        let (player, effects) = Player::new(outline, &start, zone)?;
        Ok((Self { player }, effects))
    }
}

impl Component for History {
    fn update(&mut self, event: Event) -> Vec<Effect> {
        self.player.update(event)
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.player.next_deadline()
    }

    fn take_dirty(&mut self) -> bool {
        self.player.take_dirty()
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        view::draw(&self.player, frame, area);
    }
}
