//! Draws what is looked back at; changes nothing.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::Paragraph;
use shared::screen::{Screen, Size};
use shared::text::{columns, fit, pad, visible};

use super::{History, Mode};
use crate::replay::place::on_the_wall;
use crate::replay::screen_widget::{Part, ScreenWidget};
use crate::replay::{status, view};

pub(super) const HELP: &[(&str, &str)] = &[
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
    pub(super) fn widest(&self) -> u16 {
        let end = (self.top + self.height()).min(self.lines.len());
        let widest = self.lines[self.top.min(end)..end].iter().map(|line| columns(&line.text)).max().unwrap_or(0);
        u16::try_from(widest).unwrap_or(u16::MAX).max(self.area.width)
    }

    /// The lines that are to be seen, as a screen.
    pub(super) fn page(&self) -> Screen {
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

    pub(super) fn status(&self, width: usize) -> String {
        if let Some(prompt) = &self.prompt {
            return pad(&status::with_cursor(" search upwards: ", prompt, width), width);
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

    pub(super) fn draw_all(&self, frame: &mut Frame<'_>, area: Rect) {
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
        if let Some(top) = self.help {
            view::help(HELP, top, frame, area);
        }
    }
}
