//! What can happen to the dashboard, and what it can want. Both closed.

use crossterm::event::KeyEvent;
use shared::session::Session;

#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Resized,
    /// The list as the daemon has it now.
    Sessions(Vec<Session>),
    /// Something was announced: the list may have changed.
    News,
    /// The last effect failed; the sentence says why.
    Failed(String),
    /// Something to say that is no failure.
    Said(String),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    Refresh,
    Attach(String),
    /// Plays what it recorded.
    Replay(String),
    New,
    Kill(String),
    Remove(String),
    Quit,
}
