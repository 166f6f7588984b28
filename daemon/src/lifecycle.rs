//! The life of a session as a state machine, and what the end of a program means in it. Pure: facts in, a verdict out.
//!
//! ```text
//! queued ─► active ◄──► paused
//!    │         ├──► completed
//!    │         ├──► failed
//!    │         └──► timeout ─► active   (only `iterations`, with a larger budget)
//!    └──► failed                        (cancelled before its turn came)
//! ```

use serde_json::json;
use shared::event::Author;
use shared::id::SessionId;
use shared::runtime::{ExitStatus, LostReason, RuntimeState};
use shared::session::{FOUND, HIBERNATED, ITERATIONS, LOST, Session, Status};

use crate::fact::{Ending, Fact};

/// What is asked of a session: by a command, its program, a policy or the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Start,
    Pause,
    Resume,
    /// Goes on after the budget was used up.
    ResumeWithBudget,
    Complete,
    Fail,
    TimeOut,
    /// Ends because a person, a script or a reset asked for it.
    End,
    /// Leaves the queue without having run.
    Cancel,
    /// Leaves the queue because its program could not be started.
    FailToStart,
    /// Counts an iteration: the status stays.
    Iterate,
}

impl Step {
    #[cfg(test)]
    const ALL: [Self; 11] = [
        Self::Start,
        Self::Pause,
        Self::Resume,
        Self::ResumeWithBudget,
        Self::Complete,
        Self::Fail,
        Self::TimeOut,
        Self::End,
        Self::Cancel,
        Self::FailToStart,
        Self::Iterate,
    ];

    fn verb(self) -> &'static str {
        match self {
            Self::Start | Self::FailToStart => "start",
            Self::Pause => "pause",
            Self::Resume | Self::ResumeWithBudget => "resume",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::TimeOut => "time out",
            Self::End => "end",
            Self::Cancel => "cancel",
            Self::Iterate => "iterate",
        }
    }

    fn target(self) -> Status {
        match self {
            Self::Start | Self::Resume | Self::ResumeWithBudget | Self::Iterate => Status::Active,
            Self::Pause => Status::Paused,
            Self::Complete => Status::Completed,
            Self::Fail | Self::FailToStart => Status::Failed,
            Self::TimeOut => Status::Timeout,
            Self::End | Self::Cancel => Status::Ended,
        }
    }

    /// The statuses it is allowed in.
    fn starts_in(self, status: Status, reason: Option<&str>) -> bool {
        match self {
            Self::Start | Self::Cancel | Self::FailToStart => status == Status::Queued,
            Self::Resume => status == Status::Paused,
            Self::ResumeWithBudget => status == Status::Paused || (status == Status::Timeout && reason == Some(ITERATIONS)),
            Self::Pause | Self::Complete | Self::Fail | Self::TimeOut | Self::End | Self::Iterate => status == Status::Active,
        }
    }
}

/// Where a step leads from here, or why it does not: a sentence that names the present status and what to do.
pub fn step(name: &str, status: Status, reason: Option<&str>, step: Step) -> Result<Status, String> {
    if step.starts_in(status, reason) {
        return Ok(step.target());
    }
    let present = match reason {
        Some(reason) => format!("{status} ({reason})"),
        None => status.to_string(),
    };
    let advice = match (status, step) {
        (Status::Timeout, _) if reason == Some(ITERATIONS) => {
            format!(": give it a larger budget with `sessions-tui resume {name} --max-iterations N`")
        }
        (Status::Paused, Step::Pause) | (Status::Active, _) => String::new(),
        (Status::Paused, _) => format!(": `sessions-tui resume {name}` first"),
        (Status::Queued, _) => format!(": it waits for its turn, `sessions-tui kill {name}` cancels it"),
        (Status::Completed | Status::Failed | Status::Timeout | Status::Ended, _) => {
            format!(": `sessions-tui new -n {name}` goes on with its thread")
        }
    };
    Err(format!("cannot {}: session {name} is {present}{advice}", step.verb()))
}

/// Whether a session can be gone on with, and what to do.
pub fn resumable(session: &Session) -> (bool, String) {
    let name = &session.name;
    match session.status {
        Status::Active => (true, "it is active: just go on".into()),
        Status::Paused => (true, format!("it is paused: `sessions-tui resume {name}` goes on")),
        Status::Timeout if session.status_reason.as_deref() == Some(ITERATIONS) => {
            (true, format!("its budget is used up: `sessions-tui resume {name} --max-iterations N` goes on with a larger one"))
        }
        Status::Queued => (false, "it has not started yet: it waits for its turn".into()),
        Status::Completed | Status::Failed | Status::Timeout | Status::Ended => {
            (false, format!("it is {}: `sessions-tui new -n {name}` opens the next session of its thread", session.in_words()))
        }
    }
}

/// How a runtime came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Exited(ExitStatus),
    /// Ended because someone asked for it.
    Killed(ExitStatus, Author),
    Lost(LostReason),
    /// The program could not be started.
    Refused(String),
    /// Only its recording is known, with the exit that it may have recorded.
    Found(Option<ExitStatus>),
}

/// An end that is none: its processes were to go, or went with the machine while it was paused; it is started again when it is needed.
pub fn sleeps(end: &End, status: Status, why: Option<&str>) -> bool {
    match end {
        End::Refused(_) | End::Found(_) => false,
        End::Lost(LostReason::HolderDied | LostReason::HolderGone | LostReason::MachineRestarted) => {
            status == Status::Paused && why.is_none_or(|why| why == HIBERNATED)
        }
        _ => why == Some(HIBERNATED),
    }
}

/// What the end of a program comes to.
pub struct Settled {
    pub state: RuntimeState,
    pub ending: Ending,
    /// Told in any case.
    pub exit: Option<Fact>,
    /// Told if it ends the session, which may have ended before.
    pub end: Fact,
}

/// The event of a session that was ended on request.
pub fn ended(session: SessionId, author: Author, reason: &str) -> Fact {
    Fact::new(session, author, "complete", json!({"status": Status::Ended, "reason": reason}))
}

/// `why` is what its end was asked for, if it was.
pub fn settle(end: &End, session: SessionId, at: jiff::Timestamp, why: Option<&str>) -> Settled {
    let daemon = |kind, data| Fact::new(session, Author::Daemon, kind, data);
    let ending = |status, reason: String, error: Option<String>| Ending { status, reason, error, last_activity_at: at };
    let exit = |status: &ExitStatus| Some(daemon("exit", json!({"status": status})));
    // whoever decided it may not have lived to see it: the decision stands, whatever the program made of it
    let decided = match (end, why) {
        (End::Exited(status), Some(_)) => Some(End::Killed(*status, Author::Daemon)),
        _ => None,
    };
    match decided.as_ref().unwrap_or(end) {
        End::Exited(status) if status.is_success() => Settled {
            state: RuntimeState::Exited { status: *status, at },
            ending: ending(Status::Completed, status.to_string(), None),
            exit: exit(status),
            end: daemon("complete", json!({})),
        },
        End::Exited(status) => Settled {
            state: RuntimeState::Exited { status: *status, at },
            ending: ending(Status::Failed, status.to_string(), Some(format!("the program ended with {status}"))),
            exit: exit(status),
            end: daemon("error", json!({"reason": status.to_string()})),
        },
        End::Killed(status, author) => {
            let reason = why.unwrap_or("killed");
            Settled {
                state: RuntimeState::Exited { status: *status, at },
                ending: ending(Status::Ended, reason.into(), None),
                exit: exit(status),
                end: ended(session, *author, reason),
            }
        }
        End::Lost(reason) => Settled {
            state: RuntimeState::Lost { reason: *reason, at },
            ending: ending(Status::Failed, LOST.into(), Some(reason.sentence().into())),
            exit: None,
            end: daemon("lost", json!({"reason": reason})),
        },
        End::Refused(error) => Settled {
            state: RuntimeState::Refused { error: error.clone(), at },
            ending: ending(Status::Failed, "not started".into(), Some(error.clone())),
            exit: None,
            end: daemon("error", json!({"reason": error})),
        },
        End::Found(status) => Settled {
            state: match status {
                Some(status) => RuntimeState::Exited { status: *status, at },
                None => RuntimeState::Lost { reason: LostReason::HolderGone, at },
            },
            ending: ending(Status::Ended, FOUND.into(), None),
            exit: status.as_ref().and_then(exit),
            end: ended(session, Author::Daemon, FOUND),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Active, Completed, Ended, Failed, Paused, Queued, Timeout};

    /// Every state a session can be in, with the reasons that matter.
    const STATES: [(Status, Option<&str>); 9] = [
        (Queued, None),
        (Active, None),
        (Paused, Some("lunch")),
        (Completed, Some("exit code 0")),
        (Failed, Some("exit code 3")),
        (Ended, Some("killed")),
        (Timeout, Some(ITERATIONS)),
        (Timeout, Some("idle")),
        (Timeout, Some("duration")),
    ];

    #[test]
    fn every_pair_of_states_is_as_drawn() {
        // rows: from; columns: queued active paused completed failed timeout ended
        let drawn = [
            [false, true, false, false, true, false, true],
            [false, true, true, true, true, true, true], // active to active: an iteration
            [false, true, false, false, false, false, false],
            [false; 7],
            [false; 7],
            [false; 7],
            [false, true, false, false, false, false, false],
            [false; 7],
            [false; 7],
        ];
        for ((from, reason), row) in STATES.into_iter().zip(drawn) {
            for (to, expected) in Status::ALL.into_iter().zip(row) {
                let way = Step::ALL.into_iter().find(|candidate| step("api", from, reason, *candidate) == Ok(to));
                assert_eq!(way.is_some(), expected, "{from} ({reason:?}) to {to} by {way:?}");
            }
        }
    }

    #[test]
    fn each_step_starts_where_it_should() {
        for (from, reason) in STATES {
            for candidate in Step::ALL {
                let expected = match candidate {
                    Step::Start | Step::Cancel | Step::FailToStart => from == Queued,
                    Step::Resume => from == Paused,
                    Step::ResumeWithBudget => from == Paused || reason == Some(ITERATIONS),
                    _ => from == Active,
                };
                assert_eq!(step("api", from, reason, candidate).is_ok(), expected, "{candidate:?} in {from} ({reason:?})");
            }
        }
    }

    #[test]
    fn a_refusal_names_the_present_status_and_what_to_do() {
        for (status, reason, asked, words) in [
            (Completed, None, Step::Pause, "cannot pause: session api is completed: `sessions-tui new -n api`"),
            (Ended, Some("killed"), Step::Complete, "cannot complete: session api is ended (killed)"),
            (Paused, None, Step::Iterate, "cannot iterate: session api is paused: `sessions-tui resume api` first"),
            (Timeout, Some(ITERATIONS), Step::Resume, "--max-iterations"),
            (Active, None, Step::Resume, "cannot resume: session api is active"),
            (Queued, None, Step::Complete, "cannot complete: session api is queued"),
        ] {
            let sentence = step("api", status, reason, asked).expect_err("refused");
            assert!(sentence.contains(words), "{sentence}");
        }
    }

    #[test]
    fn an_end_that_was_decided_is_no_success() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        for status in [ExitStatus::Code(0), ExitStatus::Signal(9)] {
            let settled = settle(&End::Exited(status), SessionId::new(), now, Some("reset"));
            assert_eq!((settled.ending.status, settled.ending.reason.as_str()), (Ended, "reset"));
            assert_eq!(settled.state, RuntimeState::Exited { status, at: now });
        }
    }

    #[test]
    fn every_end_has_its_status_and_reason() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        for (end, status, reason, told) in [
            (End::Exited(ExitStatus::Code(0)), Completed, "exit code 0", "complete"),
            (End::Exited(ExitStatus::Code(3)), Failed, "exit code 3", "error"),
            (End::Exited(ExitStatus::Signal(9)), Failed, "signal KILL", "error"),
            (End::Killed(ExitStatus::Signal(1), Author::Human), Ended, "killed", "complete"),
            (End::Killed(ExitStatus::Code(0), Author::Human), Ended, "killed", "complete"),
            (End::Lost(LostReason::HolderDied), Failed, "lost", "lost"),
            (End::Refused("no such program".into()), Failed, "not started", "error"),
            (End::Found(None), Ended, "found", "complete"),
            (End::Found(Some(ExitStatus::Code(3))), Ended, "found", "complete"),
        ] {
            let settled = settle(&end, SessionId::new(), now, None);
            assert!(!settled.state.is_live(), "{end:?}");
            assert_eq!((settled.ending.status, settled.ending.reason.as_str()), (status, reason), "{end:?}");
            assert_eq!(settled.end.kind, told, "{end:?}");
        }
    }
}
