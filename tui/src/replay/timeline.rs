//! The timeline: how much happened in each column, where the marks are, which moment a column stands for. Pure, and its drawing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use shared::replay::{Mark, MarkKind, Outline};

use super::clock::Clock;

const BLOCKS: [&str; 9] = ["▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// What a mark tells by its colour; of several in a column the later of these is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tick {
    Event,
    Command,
    Marker,
    Failed,
}

impl Tick {
    fn of(mark: &Mark) -> Self {
        match mark.kind {
            MarkKind::Event => Self::Event,
            MarkKind::Marker => Self::Marker,
            MarkKind::Command if mark.exit_code.is_some_and(|code| code != 0) => Self::Failed,
            MarkKind::Command => Self::Command,
        }
    }

    fn colour(self) -> Color {
        match self {
            Self::Event => Color::Yellow,
            Self::Command => Color::Green,
            Self::Marker => Color::Cyan,
            Self::Failed => Color::Red,
        }
    }
}

/// The column of a played time.
pub fn column(clock: &Clock, played: u64, width: u16) -> u16 {
    if clock.length() == 0 || width == 0 {
        return 0;
    }
    let share = played as f64 / clock.length() as f64;
    ((share * f64::from(width)) as u16).min(width - 1)
}

/// The recording time a column stands for: the first column is the start, the last one the end.
pub fn time_at(clock: &Clock, column: u16, width: u16) -> u64 {
    let share = if width > 1 { f64::from(column.min(width - 1)) / f64::from(width - 1) } else { 0.0 };
    clock.recorded((clock.length() as f64 * share) as u64)
}

/// How much happened in each column, from 0 (nothing) to 8 (as much as anywhere).
pub fn activity(outline: &Outline, clock: &Clock, width: u16) -> Vec<u8> {
    let mut bytes = vec![0.0_f64; usize::from(width)];
    if width == 0 {
        return Vec::new();
    }
    for pair in outline.points.windows(2) {
        let amount = pair[1].offset.saturating_sub(pair[0].offset) as f64;
        let last = usize::from(column(clock, clock.played(pair[1].time), width));
        let is_pause = pair[1].time.saturating_sub(pair[0].time) >= outline.grain;
        // after a pause it all came at once
        let first = if is_pause { last } else { usize::from(column(clock, clock.played(pair[0].time), width)) };
        let share = amount / (last - first.min(last) + 1) as f64;
        bytes[first.min(last)..=last].iter_mut().for_each(|column| *column += share);
    }
    let most = bytes.iter().copied().fold(1.0, f64::max);
    // a log: one flood must not make a shell's lines invisible
    bytes.iter().map(|bytes| ((8.0 * (1.0 + bytes).ln() / (1.0 + most).ln()).ceil() as u8).min(8)).collect()
}

/// The most telling mark of each column.
pub fn ticks(outline: &Outline, clock: &Clock, width: u16) -> Vec<Option<Tick>> {
    let mut ticks = vec![None; usize::from(width)];
    for mark in &outline.marks {
        if let Some(place) = ticks.get_mut(usize::from(column(clock, clock.played(mark.time), width))) {
            *place = Some(Tick::of(mark)).max(*place);
        }
    }
    ticks
}

pub fn draw(outline: &Outline, clock: &Clock, time: u64, area: Rect, buffer: &mut Buffer) {
    let here = column(clock, clock.played(time), area.width);
    let columns = activity(outline, clock, area.width).into_iter().zip(ticks(outline, clock, area.width));
    for ((height, tick), x) in columns.zip(0..area.width) {
        let (symbol, colour) = match tick {
            Some(tick) => ("│", tick.colour()),
            None if x <= here => (BLOCKS[usize::from(height)], Color::Blue),
            None => (BLOCKS[usize::from(height)], Color::DarkGray),
        };
        let mut style = Style::new().fg(colour);
        if x == here {
            style = style.add_modifier(Modifier::REVERSED | Modifier::BOLD);
        }
        buffer[(area.x + x, area.y)].set_symbol(symbol).set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::clock::IdleLimit;
    use crate::replay::player::tests::outline;
    use shared::replay::Position;

    const S: u64 = 1_000_000;

    #[test]
    fn columns_show_where_things_happened() {
        let mut outline = outline();
        outline.grain = S;
        outline.end = Position { offset: 100_000, time: 10 * S };
        outline.points = [(0, 0), (10, 100), (5_000_000, 100), (6_000_000, 50_000), (10 * S, 100_000)]
            .map(|(time, offset)| Position { offset, time })
            .to_vec();
        let clock = Clock::new(0, 10 * S, &outline.points, S, IdleLimit(None));
        let heights = activity(&outline, &clock, 10);
        assert_eq!(heights.len(), 10);
        assert!(heights[0] > 0 && heights[1..5].iter().all(|height| *height == 0), "{heights:?}");
        assert!(heights[6] == 8 && heights[9] == 8 && heights[7] == 0, "{heights:?}");
        outline.marks =
            vec![mark(0, MarkKind::Event, None), mark(5 * S, MarkKind::Command, Some(0)), mark(5 * S, MarkKind::Command, Some(1))];
        let ticks = ticks(&outline, &clock, 10);
        assert_eq!((ticks[0], ticks[1], ticks[5]), (Some(Tick::Event), None, Some(Tick::Failed)));
        assert_eq!((column(&clock, 0, 10), column(&clock, 5 * S, 10), column(&clock, 20 * S, 10)), (0, 5, 9));
        assert_eq!((time_at(&clock, 0, 11), time_at(&clock, 5, 11), time_at(&clock, 10, 11)), (0, 5 * S, 10 * S));
        assert_eq!((time_at(&clock, 0, 0), activity(&outline, &clock, 0).len()), (0, 0));
    }

    fn mark(time: u64, kind: MarkKind, exit_code: Option<i32>) -> Mark {
        Mark { time, offset: None, kind, text: "x".into(), exit_code, took: None }
    }
}
