//! What can happen to a player or a look back, and what they can want. Both closed.

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;
use shared::id::Offset;
use shared::message::Line;
use shared::replay::{Moment, Outline, Records, Seek};

/// Which wish an answer belongs to; answers to earlier ones come too late.
pub type Turn = u64;

#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The area it is drawn into.
    Resized(Rect),
    /// So long since some beginning; comes before every other event, and when the time it asked for has come.
    Time(Duration),
    Outline(Box<Outline>),
    Moment(Turn, Moment),
    Records(Turn, Records),
    /// The position behind a match, if there is one.
    Found(Turn, Option<Offset>),
    Scrolled(Turn, Vec<Line>),
    /// What was wanted in that turn cannot be had.
    Failed(Turn, String),
    /// The daemon is gone: nothing that was wanted will be answered.
    Lost,
    /// Another one is there.
    Back,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Outline,
    Seek(Turn, Seek),
    Records {
        turn: Turn,
        from: Offset,
        waits: Waits,
    },
    Find {
        turn: Turn,
        pattern: String,
        ignore_case: bool,
        from: Offset,
        forward: bool,
    },
    /// Lines that had scrolled away at a position.
    Scrolled {
        turn: Turn,
        until: Offset,
        most: u32,
    },
    /// Into the clipboard of the user's terminal.
    Copy(String),
    Leave,
}

/// At the end of a live recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    No,
    ForMore,
}
