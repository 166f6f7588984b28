//! What can be done with sessions: the request for it, what is said before and after, and what undoes it. Pure.

use shared::id::SessionId;
use shared::message::{Pause, Request, Resume};
use shared::session::{ITERATIONS, Session, Status};
use shared::text::{count, visible};

use crate::keymap::{Action, Keymap, Place};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Pause,
    Hibernate,
    Resume,
    Restore,
    Complete(Option<String>),
    Fail(String),
    Kill,
    Remove,
    Rename(String),
    Send(String),
    Reset,
    Forget,
    /// Clears the mark of a question without answering it.
    Dismiss,
}

impl Deed {
    /// As in "cannot …".
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Hibernate => "hibernate",
            Self::Resume => "resume",
            Self::Restore => "restore",
            Self::Complete(_) => "complete",
            Self::Fail(_) => "fail",
            Self::Kill => "end",
            Self::Remove => "remove",
            Self::Rename(_) => "rename",
            Self::Send(_) => "send",
            Self::Reset => "reset",
            Self::Forget => "forget",
            Self::Dismiss => "dismiss",
        }
    }

    /// As in "api …", "3 sessions …".
    pub fn done(&self) -> String {
        match self {
            Self::Pause => "paused".into(),
            Self::Hibernate => "hibernated: its memory is free".into(),
            Self::Resume => "resumed".into(),
            Self::Restore => "started again".into(),
            Self::Complete(_) => "completed".into(),
            Self::Fail(_) => "failed, as said".into(),
            Self::Kill => "ended".into(),
            Self::Remove => "removed".into(),
            Self::Rename(new) => format!("is {} now", visible(new)),
            Self::Send(_) => "got the line".into(),
            Self::Reset => "reset: the next session starts clean".into(),
            Self::Forget => "forgotten: nothing recorded is left".into(),
            Self::Dismiss => "dismissed: asks nothing until something new is said".into(),
        }
    }

    pub fn request(&self, session: &Session) -> Request {
        let name = session.id.to_string();
        match self.clone() {
            Self::Pause => Request::Pause(Pause { name, ..Pause::default() }),
            Self::Hibernate => Request::Pause(Pause { name, hibernate: true, ..Pause::default() }),
            Self::Resume => Request::Resume(Resume { name, max_iterations: more_iterations(session), ..Resume::default() }),
            Self::Restore => Request::Restore { names: vec![name], environment: None },
            Self::Complete(result) => Request::Complete { name, result },
            Self::Fail(error) => Request::Fail { name, error },
            Self::Kill => Request::Kill { name },
            Self::Remove => Request::Remove { name },
            Self::Rename(new) => Request::Rename { name, new },
            Self::Send(line) => Request::Send { name, bytes: base64(&format!("{line}\r")), queue_input: false },
            Self::Reset => Request::Reset { name },
            Self::Forget => Request::Forget { name },
            Self::Dismiss => Request::Dismiss { name },
        }
    }

    /// Whether it makes sense for a session; else why not.
    pub fn check(&self, session: &Session, keys: &Keymap) -> Result<(), String> {
        let name = visible(&session.name);
        let ended = session.status.has_ended();
        match self {
            Self::Kill if session.is_over() => {
                Err(format!("{name} has ended already; {} removes it", keys.hint(Place::List, Action::Remove)))
            }
            Self::Remove if !ended => Err(format!("{name} is {}; {} ends it first", session.status, keys.hint(Place::List, Action::Kill))),
            Self::Remove if session.has_live_program() => Err(format!(
                "{name} is {}, but its program still runs; {} ends it first",
                session.status,
                keys.hint(Place::List, Action::Kill)
            )),
            Self::Pause if session.status != Status::Active => Err(format!("cannot pause {name}: it is {}", session.in_words())),
            Self::Hibernate if session.is_hibernated() => Err(format!("{name} is hibernated already")),
            Self::Hibernate if !matches!(session.status, Status::Active | Status::Paused) => {
                Err(format!("cannot hibernate {name}: it is {}", session.in_words()))
            }
            Self::Complete(_) | Self::Fail(_) if ended => Err(format!("{name} has ended already: {}", session.in_words())),
            Self::Send(_) if session.is_over() => Err(format!("{name} has ended: no program reads what is typed")),
            Self::Dismiss if !session.needs.as_ref().is_some_and(|needs| needs.state.needs_someone()) => {
                Err(format!("{name} asks nothing"))
            }
            _ => Ok(()),
        }
    }

    /// What to ask before it is done, if it cannot be undone.
    pub fn question(&self, sessions: &[&Session]) -> Option<String> {
        let who = match sessions {
            [one] => visible(&one.name),
            many => count(many.len(), "session"),
        };
        let running = sessions.iter().filter(|session| session.status == Status::Active).count();
        Some(match self {
            Self::Kill => format!(
                "End {who}? {} will be hung up, and killed if need be.",
                if sessions.len() == 1 { "Its program" } else { "Their programs" }
            ),
            Self::Hibernate => format!(
                "Hibernate {who}? {} ended, and started again in the same folder when resumed: what is only in memory is lost.",
                if sessions.len() == 1 { "Its program is" } else { "Their programs are" }
            ),
            Self::Remove => format!("Remove {who} for good, with everything recorded?"),
            Self::Reset if running > 0 => format!("Reset {who}? What runs is ended; folder and variables are forgotten."),
            Self::Reset => format!("Reset {who}? Folder and variables are forgotten."),
            Self::Forget => format!("Forget everything {who} printed? Recordings go for good, the record stays."),
            _ => return None,
        })
    }

    /// What takes it back.
    pub fn undo(&self, before: &Session) -> Option<Self> {
        match self {
            Self::Pause => Some(Self::Resume),
            Self::Resume if before.status == Status::Paused => Some(Self::Pause),
            Self::Rename(_) => Some(Self::Rename(before.name.clone())),
            _ => None,
        }
    }
}

/// Something that was done, for `u`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The batch it was sent with.
    pub turn: u64,
    pub deed: Deed,
    /// Whom it concerned, in words.
    pub who: String,
    /// What takes it back, for each session.
    pub back: Vec<(SessionId, Deed)>,
    /// Nothing takes it back.
    pub is_final: bool,
}

/// A used-up budget goes on with as much again.
fn more_iterations(session: &Session) -> Option<u64> {
    let is_used_up = session.status == Status::Timeout && session.status_reason.as_deref() == Some(ITERATIONS);
    is_used_up.then(|| session.max_iterations.saturating_mul(2).max(session.iterations + 1))
}

/// What `p` means for a session.
pub fn pause_or_resume(session: &Session) -> Result<Deed, String> {
    match session.status {
        Status::Active => Ok(Deed::Pause),
        Status::Paused => Ok(Deed::Resume),
        Status::Timeout if more_iterations(session).is_some() => Ok(Deed::Resume),
        Status::Failed if session.restorable => Ok(Deed::Restore),
        _ => Err(format!("{} is {}: it can neither be paused nor resumed", visible(&session.name), session.in_words())),
    }
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Several of one deed under way: what came of them is said once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub deed: Deed,
    pub total: usize,
    pub left: usize,
    pub failures: Vec<String>,
    /// The only one, by name.
    pub name: Option<String>,
    /// What the daemon said beyond doing it.
    pub note: Option<String>,
}

impl Batch {
    /// One more has come to its end; gives what to say when it was the last.
    pub fn one_done(&mut self, outcome: Result<Option<String>, String>) -> Option<(String, bool)> {
        self.left = self.left.saturating_sub(1);
        match outcome {
            Ok(note) => self.note = note.or(self.note.take()),
            Err(why) => self.failures.push(why),
        }
        if self.left > 0 {
            return None;
        }
        let done = self.total - self.failures.len();
        let mut parts = Vec::new();
        if done > 0 {
            let who = self.name.clone().map_or_else(|| count(done, "session"), |name| visible(&name));
            parts.push(format!("{who} {}", self.deed.done()));
        }
        if let Some(note) = self.note.take() {
            parts.push(note);
        }
        match self.failures.as_slice() {
            [] => {}
            [one] => parts.push(one.clone()),
            [first, ..] => parts.push(format!("{} failed: {first}", count(self.failures.len(), "session"))),
        }
        Some((parts.join("; "), !self.failures.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::state::tests::session;

    #[test]
    fn deeds_fit_the_status() {
        let (active, ended, paused) = (session("a", Status::Active), session("e", Status::Failed), session("p", Status::Paused));
        let keys = Keymap::default();
        assert!(Deed::Kill.check(&active, &keys).is_ok() && Deed::Kill.check(&ended, &keys).is_err());
        assert!(Deed::Remove.check(&active, &keys).is_err() && Deed::Remove.check(&ended, &keys).is_ok());
        assert_eq!(pause_or_resume(&active), Ok(Deed::Pause));
        assert_eq!(pause_or_resume(&paused), Ok(Deed::Resume));
        assert!(pause_or_resume(&ended).is_err());
        let mut used_up = session("t", Status::Timeout);
        used_up.status_reason = Some(ITERATIONS.into());
        assert_eq!(pause_or_resume(&used_up), Ok(Deed::Resume));
        assert!(matches!(Deed::Resume.request(&used_up), Request::Resume(Resume { max_iterations: Some(100), .. })));
        assert!(matches!(Deed::Resume.request(&paused), Request::Resume(Resume { max_iterations: None, .. })));
    }

    #[test]
    fn only_what_cannot_be_undone_is_asked_about() {
        let (a, b) = (session("a", Status::Active), session("b", Status::Active));
        assert!(Deed::Pause.question(&[&a]).is_none());
        assert!(Deed::Hibernate.question(&[&a]).is_some_and(|text| text.contains("what is only in memory is lost")));
        assert_eq!(Deed::Hibernate.undo(&a), None);
        assert!(Deed::Kill.question(&[&a, &b]).is_some_and(|text| text.contains("2 sessions")));
        assert_eq!(Deed::Pause.undo(&a), Some(Deed::Resume));
        assert_eq!(Deed::Rename("x".into()).undo(&a), Some(Deed::Rename("a".into())));
        assert_eq!(Deed::Kill.undo(&a), None);
    }

    #[test]
    fn a_batch_says_once_what_came_of_it() {
        let mut batch = Batch { deed: Deed::Pause, total: 3, left: 3, failures: vec![], name: None, note: None };
        assert_eq!(batch.one_done(Ok(None)), None);
        assert_eq!(batch.one_done(Err("cannot pause: c is completed".into())), None);
        let (text, failed) = batch.one_done(Ok(None)).expect("the last");
        assert_eq!((text.as_str(), failed), ("2 sessions paused; cannot pause: c is completed", true));
    }
}
