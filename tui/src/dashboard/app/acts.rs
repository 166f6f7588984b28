//! Doing something with sessions: asked, checked, sent, told, undone.

use shared::id::SessionId;
use shared::session::Session;
use shared::text::{count, visible};

use super::{App, Asks, MOST_UNDO, Overlay, Prompt};
use crate::dashboard::event::{Asked, Effect};
use crate::dashboard::state::act::{Batch, Deed, Done, pause_or_resume};

impl App {
    /// What an action is about, in any view.
    pub(super) fn meant(&self) -> Vec<Session> {
        match self.views.last() {
            Some(super::View::Detail(detail)) => detail.session.clone().into_iter().collect(),
            _ => self.list.meant().into_iter().cloned().collect(),
        }
    }

    /// As above; if that is nothing, why is said.
    fn meant_or_say(&mut self) -> Vec<Session> {
        let meant = self.meant();
        let hidden = self.list.selected.len();
        if meant.is_empty() && hidden > 0 {
            let back = self.keymap.hint(self.place(), crate::keymap::Action::Back);
            self.say(format!("what is selected ({hidden}) does not fit the filter: {back} shows it again"));
        }
        meant
    }

    /// Does it, after asking if it cannot be undone.
    pub(super) fn deed(&mut self, deed: Deed) -> Vec<Effect> {
        let meant = self.meant_or_say();
        let (can, cannot): (Vec<&Session>, Vec<&Session>) = meant.iter().partition(|session| deed.check(session, &self.keymap).is_ok());
        if can.is_empty() {
            if let Some(why) = cannot.first().and_then(|session| deed.check(session, &self.keymap).err()) {
                self.say(why);
            }
            return Vec::new();
        }
        let sessions: Vec<SessionId> = can.iter().map(|session| session.id).collect();
        match deed.question(&can) {
            Some(question) => {
                self.overlay = Some(Overlay::Confirm { question, deed, sessions });
                Vec::new()
            }
            None => self.carry_out(&deed, &sessions),
        }
    }

    /// `p`: those that run are paused; if none does, those that are paused go on.
    pub(super) fn pause_or_resume(&mut self) -> Vec<Effect> {
        let meant = self.meant_or_say();
        let deeds: Vec<(SessionId, Result<Deed, String>)> = meant.iter().map(|session| (session.id, pause_or_resume(session))).collect();
        for wanted in [Deed::Pause, Deed::Resume, Deed::Restore] {
            let ids: Vec<SessionId> = deeds.iter().filter(|(_, deed)| deed.as_ref() == Ok(&wanted)).map(|(id, _)| *id).collect();
            if !ids.is_empty() {
                return self.carry_out(&wanted, &ids);
            }
        }
        if let Some((_, Err(why))) = deeds.into_iter().next() {
            self.say(why);
        }
        Vec::new()
    }

    /// Asks for a line first.
    pub(super) fn prompt(&mut self, asks: Asks) -> Vec<Effect> {
        let only_one = matches!(asks, Asks::Rename | Asks::File);
        let mut meant = self.meant_or_say();
        if only_one && self.views.is_empty() {
            // of several, the one that is looked at
            let current = self.list.current().map(|session| session.id);
            if let Some(at) = meant.iter().position(|session| Some(session.id) == current) {
                meant.swap(0, at);
            } else if let Some(current) = self.list.current().cloned() {
                meant = vec![current];
            }
        }
        let Some(first) = meant.first() else { return Vec::new() };
        let text = self.lines.refused(&asks, first.id).unwrap_or_else(|| match &asks {
            Asks::Rename => first.name.clone(),
            Asks::File => format!("{}.cast", visible(&first.name).replace('/', "-")),
            _ => String::new(),
        });
        let check = match &asks {
            Asks::Send => Some(Deed::Send(String::new())),
            Asks::Result => Some(Deed::Complete(None)),
            Asks::Error => Some(Deed::Fail(String::new())),
            _ => None,
        };
        let fits = |session: &&Session| check.as_ref().is_none_or(|deed| deed.check(session, &self.keymap).is_ok());
        let sessions: Vec<SessionId> =
            meant.iter().filter(fits).take(if only_one { 1 } else { usize::MAX }).map(|session| session.id).collect();
        if sessions.is_empty() {
            if let Some(why) = check.and_then(|deed| deed.check(first, &self.keymap).err()) {
                self.say(why);
            }
            return Vec::new();
        }
        let whom = self.whom(&sessions);
        self.overlay = Some(Overlay::Prompt(Prompt::new(asks, text, sessions).about(whom)));
        Vec::new()
    }

    /// Sessions in words.
    pub(super) fn whom(&self, sessions: &[SessionId]) -> String {
        match sessions {
            [one] => self.session(*one).map_or_else(String::new, |session| visible(&session.name)),
            many => count(many.len(), "session"),
        }
    }

    pub(super) fn carry_out(&mut self, deed: &Deed, sessions: &[SessionId]) -> Vec<Effect> {
        let back: Vec<(SessionId, Deed)> =
            sessions.iter().filter_map(|id| self.session(*id)).filter_map(|session| Some((session.id, deed.undo(session)?))).collect();
        let who = self.whom(sessions);
        let effects = self.ask_deed(deed, sessions);
        if !effects.is_empty() {
            if back.is_empty() {
                // what was done before it must not be undone in its place
                self.undo.clear();
            }
            self.undo.push(Done { turn: self.turn, deed: deed.clone(), who, is_final: back.is_empty(), back });
            let over = self.undo.len().saturating_sub(MOST_UNDO);
            self.undo.drain(..over);
        }
        effects
    }

    /// Without a way back.
    fn ask_deed(&mut self, deed: &Deed, sessions: &[SessionId]) -> Vec<Effect> {
        let sessions: Vec<Session> = sessions.iter().filter_map(|id| self.session(*id).cloned()).collect();
        if sessions.is_empty() {
            return Vec::new();
        }
        let turn = self.next_turn();
        let name = match sessions.as_slice() {
            [one] => Some(one.name.clone()),
            _ => None,
        };
        let batch = Batch { deed: deed.clone(), total: sessions.len(), left: sessions.len(), failures: Vec::new(), name, note: None };
        self.batches.insert(turn, batch);
        self.list.selected.clear();
        sessions.iter().map(|session| Effect::Ask(Asked::Deed(turn, session.id, deed.clone()), deed.request(session))).collect()
    }

    fn session(&self, id: SessionId) -> Option<&Session> {
        self.list.get(id).or_else(|| {
            self.views.iter().find_map(|view| match view {
                super::View::Detail(detail) => detail.session.as_ref().filter(|session| session.id == id),
                _ => None,
            })
        })
    }

    pub(super) fn deed_done(&mut self, turn: u64, session: SessionId, outcome: Result<Option<String>, String>) -> Vec<Effect> {
        if outcome.is_err() {
            // what was not done cannot be taken back
            for done in self.undo.iter_mut().filter(|done| done.turn == turn) {
                done.back.retain(|(id, _)| *id != session);
            }
            let is_alone = self.batches.get(&turn).is_none_or(|batch| batch.total == 1);
            self.undo.retain(|done| done.turn != turn || !done.back.is_empty() || (done.is_final && !is_alone));
        }
        let Some(batch) = self.batches.get_mut(&turn) else { return Vec::new() };
        let Some((text, has_failed)) = batch.one_done(outcome) else { return Vec::new() };
        let (deed, is_refused) = (batch.deed.clone(), batch.failures.len() == batch.total);
        let why = batch.failures.first().cloned().filter(|_| is_refused);
        self.batches.remove(&turn);
        match &why {
            Some(why) => self.line_refused(turn, why),
            None => {
                self.line_done(turn);
            }
        }
        if has_failed {
            self.fail(text);
        } else {
            self.say(text);
        }
        // what is removed is told by nobody
        if deed == Deed::Remove {
            if matches!(self.views.last(), Some(super::View::Detail(_))) {
                self.views.pop();
            }
            return vec![self.ask_list()];
        }
        Vec::new()
    }

    /// How much of something with several is done, for the status line.
    pub fn under_way(&self) -> Option<(String, usize, usize)> {
        let batch = self.batches.values().find(|batch| batch.total > 1)?;
        Some((batch.deed.verb().to_owned(), batch.total - batch.left, batch.total))
    }

    pub(super) fn undo_last(&mut self) -> Vec<Effect> {
        let Some(last) = self.undo.last() else {
            self.say("there is nothing to undo");
            return Vec::new();
        };
        let did = format!("{} {}", last.deed.verb(), last.who);
        if last.back.is_empty() {
            self.say(format!("cannot undo: {did}"));
            return Vec::new();
        }
        let is_shown = |id: SessionId| match self.views.last() {
            Some(super::View::Detail(detail)) => detail.session.as_ref().is_some_and(|session| session.id == id),
            _ => self.list.shown().any(|session| session.id == id),
        };
        if !last.back.iter().all(|(id, _)| is_shown(*id)) {
            self.say(format!("not undone: {did}: it is not shown here"));
            return Vec::new();
        }
        let back = self.undo.pop().map(|last| last.back).unwrap_or_default();
        self.say(format!("undoing: {did}"));
        let mut deeds: Vec<(Deed, Vec<SessionId>)> = Vec::new();
        for (id, deed) in back {
            match deeds.iter_mut().find(|(same, _)| *same == deed) {
                Some((_, ids)) => ids.push(id),
                None => deeds.push((deed, vec![id])),
            }
        }
        // undoing is not undone: it would go back and forth
        deeds.iter().flat_map(|(deed, ids)| self.ask_deed(deed, ids)).collect()
    }
}
