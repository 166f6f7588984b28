//! Pausing, in a runtime's task: what the database says is to stand still is made to by the holder, whoever asks, in the order they
//! ask. No decisions: those are stored before.

use std::time::Duration;

use shared::message::{Code, Failure};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{ClientId, Interpreter, Keep, Runtime, Typist};
use crate::handle::upcall::Upcall;
use crate::holder::wire::Frozen;

/// What is on its way to the holder, and who waits for it.
#[derive(Default)]
pub(super) struct Freezing {
    /// Everything stands still since then, as far as is known.
    pub since: Option<Instant>,
    pub queues_input: bool,
    /// Why it could not be let go on, for whoever tried.
    pub notice: Option<String>,
    settling: Vec<Settling>,
    queueing: std::collections::VecDeque<oneshot::Sender<Result<(), Failure>>>,
}

/// Somebody who waits until it stands still or goes on.
struct Settling {
    wants: Wants,
    answer: oneshot::Sender<Result<Option<Frozen>, Failure>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    Standing,
    Running,
}

/// As the holder has it.
const MAX_QUEUED: usize = 1 << 20;

/// Keys with one that lets a paused program go on.
fn is_go_on(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'r' | b'R' | b'\r' | b'\n' => return true,
            // what a terminal says by itself (reports, focus, the mouse) and keys without a letter
            b'\x1b' => match after.split_first() {
                Some((b'[' | b'O', sequence)) => {
                    let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte)).map_or(sequence.len(), |place| place + 1);
                    &sequence[end..]
                }
                Some((b']' | b'P' | b'_', _)) => &[],
                _ => after,
            },
            _ => after,
        };
    }
    false
}

impl Runtime {
    /// Has the holder stop everything or let it go on, as the database says by now.
    pub(super) async fn settle_freezing(&mut self, answer: oneshot::Sender<Result<Option<Frozen>, Failure>>) {
        let wanted = match self.context.store.wanted_freeze(self.id).await {
            Ok(wanted) => wanted,
            Err(error) => {
                let _ = answer.send(Err(error.into()));
                return;
            }
        };
        if wanted.is_some() && !self.facts.can_freeze {
            let text = format!(
                "the holder of {} is from before sessions-tui could freeze: its program goes on; one that is started anew can be frozen",
                self.name
            );
            let _ = answer.send(Err(Failure::failed(text)));
            return;
        }
        let wants = if wanted.is_some() { Wants::Standing } else { Wants::Running };
        let outcome = match wanted {
            Some(queues_input) => self.link.freeze(queues_input).await,
            None if self.freezing.since.is_none() && self.freezing.settling.is_empty() => {
                let _ = answer.send(Ok(None));
                return;
            }
            None => self.link.thaw().await,
        };
        // a link that is gone is seen by the loop, which settles it again
        if outcome.is_ok() {
            self.freezing.settling.push(Settling { wants, answer });
        }
    }

    /// After the link was lost: whatever was on its way is asked for again.
    pub(super) async fn settle_freezing_again(&mut self, frozen: Option<Frozen>) {
        self.heard_frozen(frozen).await;
        let (answer, _) = oneshot::channel();
        self.settle_freezing(answer).await;
    }

    pub(super) async fn heard_frozen(&mut self, frozen: Option<Frozen>) {
        let was = self.freezing.since;
        let now = Instant::now();
        self.freezing.since = frozen.as_ref().map(|frozen| now.checked_sub(Duration::from_millis(frozen.since_ms)).unwrap_or(now));
        self.freezing.queues_input = frozen.as_ref().is_some_and(|frozen| frozen.queues_input);
        if let (Some(since), None) = (was, self.freezing.since) {
            // its clocks stood with it
            let stood = since.elapsed();
            if let Some(interpreter) = &mut self.interpreter {
                interpreter.stood(stood);
            }
        }
        self.freezing.notice = None;
        self.facts.set_frozen(frozen.as_ref());
        self.is_dirty = true;
        self.eager_until = Instant::now();
        if frozen.is_some() {
            self.show_frozen();
        }
        for waiter in std::mem::take(&mut self.freezing.settling) {
            // whoever waits for it to go on has come later: what it says first is for those before
            if frozen.is_some() && waiter.wants == Wants::Running {
                self.freezing.settling.push(waiter);
            } else {
                let _ = waiter.answer.send(Ok(frozen.clone()));
            }
        }
        if was.is_some() && frozen.is_none() {
            // how long it has been idle is counted from here on
            self.facts.happened_now();
            // calls that came meanwhile
            self.call_next().await;
        }
        self.activity.send_modify(|count| *count += 1);
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.freezing.since.is_some()
    }

    /// Deadlines of calls stand still with what they are for.
    pub(super) fn call_deadline(&self) -> Option<Instant> {
        if self.is_frozen() { None } else { self.interpreter.as_ref().and_then(Interpreter::next_deadline) }
    }

    /// Input for what stands still: the keys of a person who looks at it may let it go on, everything else is kept or refused.
    pub(super) async fn input_while_frozen(
        &mut self,
        from: Typist,
        keep: Keep,
        bytes: Vec<u8>,
        taken: oneshot::Sender<Result<(), Failure>>,
    ) {
        if let Typist::Client(id) = from {
            self.end_help(id);
            // whatever becomes of it here, it is not to come again
            let place = self.place_of(id, bytes.len());
            self.pass_over(place, bytes.len());
            if self.control != Some(id) || is_go_on(&bytes) {
                let _ = taken.send(Ok(()));
                if self.control == Some(id) {
                    self.let_it_go_on();
                }
                return;
            }
        }
        if !self.freezing.queues_input && keep == Keep::No {
            let why = format!(
                "session {0} is paused and takes no input: `sessions-tui resume {0}` first, or `sessions-tui send {0} --queue-input …` keeps it until then",
                self.name
            );
            let outcome = if matches!(from, Typist::Client(_)) { Ok(()) } else { Err(Failure::new(Code::Status, why)) };
            let _ = taken.send(outcome);
            return;
        }
        if self.interpreter.is_some() {
            let why = format!("session {0} is paused: calls to it are for `sessions-tui exec`, once it goes on", self.name);
            let _ = taken.send(Err(Failure::new(Code::Status, why)));
            return;
        }
        if bytes.len() > MAX_QUEUED {
            let _ = taken.send(Err(self.too_much()));
            return;
        }
        if self.link.queue(bytes).await.is_ok() {
            self.freezing.queueing.push_back(taken);
        }
    }

    pub(super) fn heard_queued(&mut self, is_taken: bool) {
        let Some(waiter) = self.freezing.queueing.pop_front() else { return };
        let _ = waiter.send(if is_taken { Ok(()) } else { Err(self.too_much()) });
    }

    fn too_much(&self) -> Failure {
        Failure::new(
            Code::Status,
            format!("at most 1 MiB of input is kept for session {}, and none of this was: resume it first", self.name),
        )
    }

    fn let_it_go_on(&mut self) {
        self.context.upcalls.send(Upcall::Resume { session: self.facts.session(), runtime: self.id });
    }

    /// Whoever looks at it sees that it stands, in a last line.
    pub(super) fn frozen_line(&self, client: ClientId) -> Option<String> {
        self.freezing.since?;
        if let Some(notice) = &self.freezing.notice {
            return Some(format!(" {notice}"));
        }
        let keys = if self.control == Some(client) { "r or enter goes on" } else { "whoever has control can go on" };
        let kept = if self.freezing.queues_input { "   keys are kept for then" } else { "" };
        Some(format!(" ‖ {} is paused   {keys}{kept}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::is_go_on;

    #[test]
    fn which_keys_let_it_go_on() {
        let yes: [&[u8]; 4] = [b"r", b"\r", b"x\x1b[A\r", b"\x1b[Ir"];
        let no: [&[u8]; 7] = [b"x", b"", b"\x1b[1;1R", b"\x1b[I", b"\x1bOR", b"\x1b]11;rgb:0/0/0\x07", b"\x1b[<0;3;4M"];
        for (bytes, goes_on) in yes.map(|bytes| (bytes, true)).into_iter().chain(no.map(|bytes| (bytes, false))) {
            assert_eq!(is_go_on(bytes), goes_on, "{bytes:?}");
        }
    }
}
