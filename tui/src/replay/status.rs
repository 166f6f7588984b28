//! The line below the timeline: what matters most first; a narrow window leaves the rest out.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use shared::text::{columns, fit, visible};
use unicode_width::UnicodeWidthChar;

use super::place::on_the_wall;
use super::player::{Overlay, Player, State};

/// A command is cut to this before something else is left out for it.
const MIN_COMMAND: usize = 12;

/// A part of the line: how much it matters (0: always there), and what it says.
type Piece = (u8, String, Style);

pub fn line(player: &Player, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if let Some(Overlay::Prompt(asks, line)) = &player.overlay {
        return Line::from(with_cursor(&format!(" {}", asks.label()), line, width));
    }
    let mut pieces = pieces(player, width);
    if let Some(message) = &player.message {
        pieces.truncate(2);
        let used: usize = pieces.iter().map(|(_, text, _)| columns(text) + 2).sum();
        let style = if message.is_failure { Style::new().fg(Color::Red) } else { Style::new().fg(Color::Yellow) };
        // said in full if need be: then the rest waits
        if used + columns(&message.text) > width {
            pieces.truncate(1);
        }
        pieces.push((0, message.text.clone(), style));
    }
    fitted(pieces, width)
}

/// A line that is being typed, behind what it is for, with the cursor in it.
pub fn with_cursor(label: &str, line: &crate::line_editor::Line, width: usize) -> String {
    let (shown, cursor) = line.shown(width.saturating_sub(columns(label) + 1));
    let mut at = 0;
    let is_before = |c: &char| {
        let here = at < cursor;
        at += c.width().unwrap_or(0);
        here
    };
    let bytes: usize = shown.chars().take_while(is_before).map(char::len_utf8).sum();
    let (before, behind) = shown.split_at(bytes);
    format!("{label}{before}▏{behind}")
}

fn pieces(player: &Player, width: usize) -> Vec<Piece> {
    let plain = Style::new();
    let dim = Style::new().add_modifier(Modifier::DIM);
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let state = match player.state {
        _ if player.is_seeking() && player.reel.is_none() => (0, "…".into(), strong),
        State::Paused => (0, "⏸".into(), strong.fg(Color::Yellow)),
        State::Playing { .. } => (0, "▶".into(), strong.fg(Color::Green)),
        State::Following => (0, "● live".into(), strong.fg(Color::Red)),
    };
    let (here, length) = player.times();
    let mut pieces = vec![state, (0, format!("{here} / {length}"), plain)];
    pieces.push((5, on_the_wall(&player.outline, player.time, &player.zone), dim));
    let speed_matters = if player.speed.label() == "1×" { 6 } else { 1 };
    pieces.push((speed_matters, player.speed.label().into(), plain));
    pieces.push((7, player.limit.label(), dim));
    let name = match player.outline.language {
        Some(language) => format!("{} {language}", player.outline.name),
        None => player.outline.name.clone(),
    };
    pieces.push((8, fit(&visible(&name), 24), dim));
    if let Some((text, exit_code)) = player.command() {
        let (mark, style) = match exit_code {
            Some(0) => (" ✓".into(), Style::new().fg(Color::Green)),
            Some(code) => (format!(" ✗ {code}"), Style::new().fg(Color::Red)),
            None => (String::new(), Style::new().fg(Color::Cyan)),
        };
        pieces.push((COMMAND, format!("❯ {}{mark}", visible(text)), style));
    }
    if let Some(hint) = player.size_hint(width) {
        pieces.push((4, hint, dim));
    }
    pieces.push((3, "? keys".into(), dim));
    pieces.push((9, "q leave".into(), dim));
    pieces
}

/// How much a command matters; also how it is known here.
const COMMAND: u8 = 2;

fn fitted(mut pieces: Vec<Piece>, width: usize) -> Line<'static> {
    let wanted = |(matters, text, _): &Piece| if *matters == COMMAND { columns(text).min(MIN_COMMAND) } else { columns(text) };
    // a space before everything, and two between
    while pieces.iter().map(|piece| wanted(piece) + 2).sum::<usize>() > width + 1 {
        let Some(least) = pieces.iter().map(|piece| piece.0).max().filter(|matters| *matters > 0) else { break };
        pieces.retain(|piece| piece.0 != least);
    }
    let used: usize = pieces.iter().map(|piece| wanted(piece) + 2).sum();
    let spare = (width + 1).saturating_sub(used);
    let mut spans = vec![Span::raw(" ")];
    let mut left = width.saturating_sub(1);
    for (n, piece) in pieces.iter().enumerate() {
        let room = if piece.0 == COMMAND { wanted(piece) + spare } else { left };
        let text = fit(&piece.1, room.min(left));
        left = left.saturating_sub(columns(&text) + 2);
        spans.push(Span::styled(text, piece.2));
        if n + 1 < pieces.len() {
            spans.push(Span::raw("  "));
        }
    }
    Line::from(spans)
}
