//! A session's terminal inside the dashboard: what it shows, and what is typed into it. The program's bytes are drawn by a
//! screen of our own; questions they ask are answered here, as a terminal would. Pure.

use shared::id::SessionId;
use shared::message::{Attached, Detached};
use shared::screen::{Event, Screen, Size, answer};

use crate::replay::Selection;

/// Which attachment something belongs to; what is left of earlier ones is dropped.
pub type Turn = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Joining,
    /// There is no daemon; it is joined when there is one.
    Away,
    Attached,
    /// Why there is nothing to type into.
    Over(String),
}

pub struct Pane {
    pub turn: Turn,
    pub session: SessionId,
    pub name: String,
    pub screen: Screen,
    pub state: State,
    /// Keys go to the program; otherwise somebody else has it.
    pub has_control: bool,
    /// What is marked with the mouse, by row and column.
    pub selection: Option<Selection>,
    /// Typed before it was there.
    typed: Vec<u8>,
}

/// Typed ahead of an attachment, at most.
const MAX_TYPED: usize = 16 << 20;

impl Pane {
    pub fn new(turn: Turn, session: SessionId, name: String, size: Size) -> Self {
        let screen = Screen::new(size);
        Self { turn, session, name, screen, state: State::Joining, has_control: false, selection: None, typed: Vec::new() }
    }

    /// The answer to its attach; gives what was typed meanwhile.
    pub fn attached(&mut self, attached: Attached) -> Vec<u8> {
        self.name = attached.name;
        self.has_control = attached.control;
        self.state = match attached.ended {
            Some(sentence) => State::Over(format!("it has ended: {sentence}")),
            None => State::Attached,
        };
        std::mem::take(&mut self.typed)
    }

    /// What its program printed; gives the answers to what it asked.
    pub fn output(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut events = Vec::new();
        self.screen.feed(bytes, &mut events);
        let mut reply = Vec::new();
        for located in events {
            if let Event::Query(query, cursor) = located.event
                && let Some(bytes) = answer(&query, self.screen.modes(), self.screen.size(), cursor)
            {
                reply.extend(bytes);
            }
        }
        if self.has_control { reply } else { Vec::new() }
    }

    /// The window around it changed.
    pub fn resize(&mut self, size: Size) -> bool {
        let changed = self.screen.size() != size.clamped();
        if changed {
            self.screen.resize(size);
            self.selection = None;
        }
        changed
    }

    /// Bytes to be typed, unless they have to wait.
    pub fn typed(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if matches!(self.state, State::Joining | State::Away) {
            if self.typed.len() + bytes.len() <= MAX_TYPED {
                self.typed.extend(bytes);
            }
            return Vec::new();
        }
        bytes
    }

    /// What was marked, as text and in how many lines; nothing for a mere click.
    pub fn take_selected(&mut self) -> Option<(String, usize)> {
        let selection = self.selection.take().filter(|selection| !selection.is_click())?;
        let row = |line: usize| {
            let row = u16::try_from(line).ok().filter(|row| *row < self.screen.size().rows)?;
            Some((self.screen.row_text(row), self.screen.row_wrapped(row)))
        };
        let rows: Vec<Option<(String, bool)>> = (0..usize::from(self.screen.size().rows)).map(row).collect();
        let text = selection.text(|line| rows.get(line)?.as_ref().map(|(text, wrapped)| (text.as_str(), *wrapped)));
        Some((text, selection.lines()))
    }

    pub fn detached(&mut self, why: &Detached) {
        self.state = State::Over(match why {
            Detached::Ended { sentence, .. } => format!("it ended: {sentence}"),
            Detached::Asked => "detached by another client".into(),
            Detached::ByKey | Detached::History | Detached::Switch { .. } => "detached".into(),
        });
        self.has_control = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(control: bool) -> Attached {
        Attached { session: SessionId::new(), name: "api".into(), control, direct: false, ended: None, runtime: None, taken: None }
    }

    #[test]
    fn what_is_typed_ahead_arrives_and_questions_are_answered_once() {
        let size = Size { cols: 20, rows: 4 };
        let mut pane = Pane::new(1, SessionId::new(), "api".into(), size);
        assert_eq!(pane.typed(b"ls".to_vec()), b"");
        assert_eq!(pane.attached(attached(true)), b"ls");
        assert_eq!(pane.typed(b"x".to_vec()), b"x");
        assert_eq!(pane.output(b"hi\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(pane.screen.row_text(0), "hi");
        pane.has_control = false;
        assert_eq!(pane.output(b"\x1b[6n"), b"", "whoever has control answers");
        pane.detached(&Detached::Ended { sentence: "exit code 0".into(), exit_code: 0 });
        assert_eq!(pane.state, State::Over("it ended: exit code 0".into()));
    }
}
