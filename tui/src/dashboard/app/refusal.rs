//! A line that was typed and is refused is not lost: it is there again to be corrected, with the reason; if the user has gone
//! on meanwhile, it is there the next time the same is asked.

use shared::id::SessionId;

use super::{App, Asks, Overlay, Prompt};
use crate::dashboard::event::Turn;

/// Lines under way that are kept; more than anybody has.
const MOST: usize = 16;

#[derive(Default)]
pub struct Lines {
    /// Keys pressed so far: whoever has pressed another one has gone on.
    keys: u64,
    under_way: Vec<(Turn, u64, Sent)>,
    refused: Vec<Sent>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    asks: Asks,
    text: String,
    sessions: Vec<SessionId>,
}

impl Lines {
    pub fn key(&mut self) {
        self.keys += 1;
    }

    /// What was refused, when the same is asked about the same session again.
    pub fn refused(&self, asks: &Asks, session: SessionId) -> Option<String> {
        self.refused.iter().rev().find(|sent| sent.asks == *asks && sent.sessions.first() == Some(&session)).map(|sent| sent.text.clone())
    }

    fn take(&mut self, turn: Turn) -> Option<(u64, Sent)> {
        let at = self.under_way.iter().position(|(of, ..)| *of == turn)?;
        let (_, keys, sent) = self.under_way.remove(at);
        Some((keys, sent))
    }

    fn forget(&mut self, sent: &Sent) {
        self.refused.retain(|one| (&one.asks, &one.sessions) != (&sent.asks, &sent.sessions));
    }
}

impl App {
    /// What was typed is under way.
    pub(super) fn line_sent(&mut self, turn: Turn, asks: Asks, text: &str, sessions: &[SessionId]) {
        let sent = Sent { asks, text: text.to_owned(), sessions: sessions.to_vec() };
        self.lines.forget(&sent);
        self.lines.under_way.push((turn, self.lines.keys, sent));
        let surplus = self.lines.under_way.len().saturating_sub(MOST);
        self.lines.under_way.drain(..surplus);
    }

    /// Gives whether nobody has pressed a key since it was sent.
    pub(super) fn line_done(&mut self, turn: Turn) -> bool {
        let keys = self.lines.keys;
        self.lines.take(turn).is_some_and(|(at, _)| at == keys)
    }

    pub(super) fn line_refused(&mut self, turn: Turn, why: &str) {
        let Some((keys, sent)) = self.lines.take(turn) else { return };
        if self.overlay.is_none() && self.lines.keys == keys {
            let whom = self.whom(&sent.sessions);
            let mut prompt = Prompt::new(sent.asks, sent.text.clone(), sent.sessions).about(whom);
            prompt.refused = Some(sent.text);
            prompt.error = Some(why.to_owned());
            self.overlay = Some(Overlay::Prompt(prompt));
            self.is_dirty = true;
            return;
        }
        self.lines.forget(&sent);
        self.lines.refused.push(sent);
        let surplus = self.lines.refused.len().saturating_sub(MOST);
        self.lines.refused.drain(..surplus);
    }
}
