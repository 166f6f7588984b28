//! The end of a runtime: how it came to it, stored, and told to everybody who was there.

use shared::id::Offset;
use shared::message::{Code, Failure};
use shared::runtime::{ExitStatus, LostReason};

use super::{Ask, Ended, Runtime};
use crate::holder::end_orphans;
use crate::holder::link::Link;
use crate::lifecycle::End;
use crate::recording;
use crate::store::{EndingAt, Settles};

/// A holder that is there answers at once.
const REACH_PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// What is left of a killed holder's programs gets this long to end by itself.
const ORPHAN_GRACE: std::time::Duration = std::time::Duration::from_secs(2);

/// A database that could not take the end of a session (a full disk) is asked again this often.
const STORE_RETRY: std::time::Duration = std::time::Duration::from_secs(2);

impl Runtime {
    /// A link can end while its holder lives (somebody else said hello to it): the holder itself is the one to ask.
    pub(super) async fn reach_again(&mut self) -> bool {
        let socket = self.context.paths.holder_socket(self.id);
        let Ok(Ok((link, greeting))) = tokio::time::timeout(REACH_PATIENCE, Link::connect(&socket)).await else { return false };
        self.link = link;
        self.facts.set_streams(&greeting);
        self.end = greeting.end;
        self.exit = greeting.exit;
        self.consume(greeting.end).await;
        self.send_again(greeting.call.map(|(id, _)| id)).await;
        self.settle_freezing_again(greeting.frozen).await;
        true
    }

    /// The link ended without an exit: either it is in the recording, or the holder was killed.
    pub(super) async fn holder_is_gone(&mut self) -> End {
        self.consume(Offset::MAX).await;
        let dir = self.context.paths.recording(self.id);
        let tail = recording::tail(&dir).unwrap_or_default();
        let _ = std::fs::remove_file(self.context.paths.holder_socket(self.id));
        if let Some(status) = self.exit.or(tail.exit) {
            return match self.terminating {
                Some(author) => End::Killed(status, author),
                None => End::Exited(status),
            };
        }
        let id = self.id.to_string();
        let ended = tokio::task::spawn_blocking(move || end_orphans(&id, ORPHAN_GRACE)).await.unwrap_or(0);
        self.context.log.warn(&format!(
            "session {} ({}): its holder was killed; ended {ended} process(es) it left behind",
            self.name,
            self.facts.session()
        ));
        End::Lost(LostReason::HolderDied)
    }

    pub(super) async fn finish(mut self, end: End) {
        let now = jiff::Timestamp::now();
        self.asks.close();
        while let Ok(ask) = self.asks.try_recv() {
            // calls that came too late wait for another runtime; whoever asked anything else hears that it is over
            if let (Ask::Call(calling), Some(interpreter)) = (ask, &mut self.interpreter) {
                interpreter.wait(calling);
            }
        }
        let language = self.interpreter.as_ref().map(|interpreter| interpreter.language);
        let mut ended = describe(&end);
        let last_activity = match end {
            End::Lost(_) => self.facts.last_activity().unwrap_or(now),
            _ => now,
        };
        let recorded = self.consumed;
        let settles = loop {
            match self
                .context
                .store
                .runtime_has_ended(self.id, end.clone(), EndingAt { now, last_activity, screen_at: self.asked_to_end_at }, recorded)
                .await
            {
                Ok(settles) => break settles,
                Err(crate::store::Error::Gone) => break Settles::Ended,
                Err(error) => {
                    self.context.log.warn(&format!("session {}: its end could not be stored: {error}", self.name));
                    let why = format!("its program has ended ({}), which could not be stored yet: {error}", ended.sentence);
                    self.context.registry.set_unreachable(self.id, self.facts.session(), why);
                    // whoever waits for the end need not wait for the disk
                    self.ended.send_replace(Some(ended.clone()));
                    self.dismiss(ended.push()).await;
                    tokio::time::sleep(STORE_RETRY).await;
                }
            }
        };
        self.picture.store();
        if language.is_none() {
            self.end_commands(ended.exit.map(|_| ended.exit_code()));
        }
        if settles == Settles::Sleeps {
            let sentence = format!("hibernated: `sessions-tui attach {}` starts it again", self.name);
            ended = Ended { sentence, exit: Some(ExitStatus::Code(0)) };
        } else if language.is_none() {
            self.notify_of_end(&ended.sentence);
        }
        if self.control.is_some() {
            // whoever typed saw the end
            self.note_seen();
        }
        self.context.registry.remove(self.id);
        self.context.upkeep.look_at(self.id);
        if language.is_some() {
            // after its end is stored, so that another can be started
            self.calls_end(&end);
        }
        self.dismiss(ended.push()).await;
        for typed in std::mem::take(&mut self.input) {
            if let Some(taken) = typed.taken {
                let _ = taken.send(Err(Failure::new(Code::Status, format!("session {} has ended: {}", self.name, ended.sentence))));
            }
        }
        self.ended.send_replace(Some(ended));
    }
}

fn describe(end: &End) -> Ended {
    match end {
        End::Exited(status) => Ended { sentence: status.to_string(), exit: Some(*status) },
        End::Killed(status, _) => Ended { sentence: format!("killed ({status})"), exit: Some(*status) },
        End::Lost(reason) => Ended { sentence: reason.sentence().to_owned(), exit: None },
        End::Refused(why) => Ended { sentence: why.clone(), exit: None },
        End::Found(exit) => Ended { sentence: shared::session::FOUND.to_owned(), exit: *exit },
    }
}
