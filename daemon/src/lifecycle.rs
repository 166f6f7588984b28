//! What the end of a program means for its session. Pure: facts in, a verdict out.

use serde_json::json;
use shared::event::Author;
use shared::id::SessionId;
use shared::runtime::{ExitStatus, LostReason, RuntimeState};
use shared::session::Status;

use crate::store::{Ending, Fact};

/// How a runtime came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Exited(ExitStatus),
    /// Ended because someone asked for it.
    Killed(ExitStatus, Author),
    Lost(LostReason),
    /// The program could not be started.
    Refused(String),
}

/// The runtime's last state, what becomes of its session, and the events that tell of it.
pub fn settle(end: &End, session: SessionId, at: jiff::Timestamp) -> (RuntimeState, Ending, Vec<Fact>) {
    let daemon = |kind, data| Fact::new(session, Author::Daemon, kind, data);
    let ending = |status, reason: String, error: Option<String>| Ending { status, reason, error, last_activity_at: at };
    match end {
        End::Exited(status) if status.is_success() => (
            RuntimeState::Exited { status: *status, at },
            ending(Status::Completed, status.to_string(), None),
            vec![daemon("exit", json!({"status": status})), daemon("complete", json!({}))],
        ),
        End::Exited(status) => (
            RuntimeState::Exited { status: *status, at },
            ending(Status::Failed, status.to_string(), Some(format!("the program ended with {status}"))),
            vec![daemon("exit", json!({"status": status})), daemon("error", json!({"reason": status.to_string()}))],
        ),
        End::Killed(status, author) => (
            RuntimeState::Exited { status: *status, at },
            ending(Status::Failed, "killed".into(), Some("ended on request".into())),
            vec![daemon("exit", json!({"status": status})), Fact::new(session, *author, "error", json!({"reason": "killed"}))],
        ),
        End::Lost(reason) => (
            RuntimeState::Lost { reason: *reason, at },
            ending(Status::Failed, "lost".into(), Some(reason.sentence().into())),
            vec![daemon("lost", json!({"reason": reason}))],
        ),
        End::Refused(error) => (
            RuntimeState::Refused { error: error.clone(), at },
            ending(Status::Failed, "not started".into(), Some(error.clone())),
            vec![daemon("error", json!({"reason": error}))],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_status_and_reason() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        for (end, status, reason, last_event) in [
            (End::Exited(ExitStatus::Code(0)), Status::Completed, "exit code 0", "complete"),
            (End::Exited(ExitStatus::Code(3)), Status::Failed, "exit code 3", "error"),
            (End::Exited(ExitStatus::Signal(9)), Status::Failed, "signal KILL", "error"),
            (End::Killed(ExitStatus::Signal(1), Author::Human), Status::Failed, "killed", "error"),
            (End::Killed(ExitStatus::Code(0), Author::Human), Status::Failed, "killed", "error"),
            (End::Lost(LostReason::HolderDied), Status::Failed, "lost", "lost"),
            (End::Refused("no such program".into()), Status::Failed, "not started", "error"),
        ] {
            let (state, ending, facts) = settle(&end, SessionId::new(), now);
            assert!(!state.is_live(), "{end:?}");
            assert_eq!((ending.status, ending.reason.as_str()), (status, reason), "{end:?}");
            assert_eq!(facts.last().map(|fact| fact.kind), Some(last_event), "{end:?}");
        }
    }
}
