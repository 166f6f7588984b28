//! What the end of a call comes to: from what the driver said, or from how the runtime ended. Pure.

use shared::exec::{Language, Verb};
use shared::policy::Span;
use shared::runtime::{ExitStatus, LostReason};

use crate::language::{Said, SaidError};
use crate::lifecycle::End;
use crate::store::Outcome;

/// A call that was interrupted: for which reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    Timeout { ms: u64 },
    Cancel,
}

impl Interrupted {
    fn verb(self) -> String {
        match self {
            Self::Timeout { ms } => format!("timed out after {}", Span { ms }),
            Self::Cancel => "cancelled".to_owned(),
        }
    }
}

impl Outcome {
    /// What is to be said of the runtime before this one, if anything is.
    pub fn say_restarted(&mut self, note: Option<String>) {
        let Some(note) = note else { return };
        self.restarted = true;
        self.note = Some(match self.note.take() {
            Some(also) => format!("{note}; {also}"),
            None => note,
        });
    }
}

impl Outcome {
    /// Reports output that was printed and neither recorded nor delivered. What a bash eval printed is its value: without all
    /// of it there is none.
    pub fn say_output_lost(&mut self, bytes: u64, language: Language, verb: Verb) {
        if bytes == 0 {
            return;
        }
        let lost = format!("{bytes} bytes of its output are lost: they could not be recorded (the disk was full)");
        if language == Language::Bash && verb == Verb::Eval && self.value.take().is_some() {
            self.error = Some(lost);
            return;
        }
        self.note = Some(match self.note.take() {
            Some(note) => format!("{lost}; {note}"),
            None => lost,
        });
    }
}

/// The driver has said how it went. `printed`: what a bash eval printed, which is its value.
pub fn outcome(said: Said, language: Language, verb: Verb, interrupted: Option<Interrupted>) -> Outcome {
    let mut outcome = Outcome {
        error: said.error.as_ref().map(SaidError::sentence),
        value: said.value,
        json: said.json,
        cwd: said.cwd,
        interrupted: said.interrupted,
        ..Outcome::default()
    };
    if said.value_truncated {
        outcome.note = Some("the value is longer than what is given here".into());
    }
    if let Some(why) = interrupted.filter(|_| said.interrupted || said.exit != 0) {
        outcome.interrupted = true;
        outcome.timed_out = matches!(why, Interrupted::Timeout { .. });
        outcome.error = Some(format!("{}: interrupted, the state of the runtime is kept", why.verb()));
    }
    if said.exit != 0 && outcome.error.is_none() {
        outcome.error = Some(format!("exit code {}", said.exit));
    }
    if language == Language::Bash && verb == Verb::Eval && said.exit != 0 {
        outcome.value = None;
    }
    outcome
}

/// The runtime ended before the driver could say anything.
pub fn ended_with_runtime(end: &End, interrupted: Option<Interrupted>) -> Outcome {
    let error = match (end, interrupted) {
        (_, Some(why)) => {
            Some(format!("{}: it did not react to an interrupt, so the runtime was ended; its variables are gone", why.verb()))
        }
        (End::Exited(ExitStatus::Code(0)), None) => None,
        (End::Exited(ExitStatus::Code(code)), None) => Some(format!("exit code {code}: the runtime ended with this call")),
        (End::Exited(status @ ExitStatus::Signal(_)), None) => Some(format!("the interpreter was killed ({status})")),
        (End::Killed(..), None) => Some("the runtime was ended while the call ran".to_owned()),
        (End::Lost(reason), None) => Some(reason.sentence().to_owned()),
        (End::Refused(why), None) => Some(why.clone()),
        (End::Found(_), None) => Some(LostReason::HolderGone.sentence().to_owned()),
    };
    Outcome {
        error,
        ended: true,
        interrupted: interrupted.is_some(),
        timed_out: matches!(interrupted, Some(Interrupted::Timeout { .. })),
        note: Some("the next call starts a fresh runtime, with the folder and environment of the last completed call".to_owned()),
        ..Outcome::default()
    }
}

/// As a shell would show it; none if the end was not seen.
pub fn exit_code(end: &End) -> Option<i32> {
    match end {
        End::Exited(ExitStatus::Code(code)) | End::Killed(ExitStatus::Code(code), _) => Some(*code),
        End::Exited(ExitStatus::Signal(signal)) | End::Killed(ExitStatus::Signal(signal), _) => Some(128 + signal),
        End::Lost(_) | End::Refused(_) | End::Found(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_comes_to() {
        let failed = Said { exit: 3, ..Said::default() };
        assert_eq!(outcome(failed.clone(), Language::Bash, Verb::Exec, None).error.as_deref(), Some("exit code 3"));
        let timeout = Some(Interrupted::Timeout { ms: 500 });
        let interrupted = outcome(Said { exit: 130, interrupted: true, ..Said::default() }, Language::Python, Verb::Exec, timeout);
        assert!(interrupted.timed_out && interrupted.interrupted);
        assert_eq!(interrupted.error.as_deref(), Some("timed out after 500ms: interrupted, the state of the runtime is kept"));
        // it had ended well before it heard of it
        assert!(!outcome(Said::default(), Language::Python, Verb::Exec, timeout).timed_out);
    }

    #[test]
    fn every_end_of_a_runtime_is_said() {
        for (end, code, words) in [
            (End::Exited(ExitStatus::Code(3)), Some(3), "exit code 3"),
            (End::Exited(ExitStatus::Signal(9)), Some(137), "killed"),
            (End::Lost(LostReason::HolderDied), None, "lost"),
        ] {
            assert_eq!(exit_code(&end), code);
            let outcome = ended_with_runtime(&end, None);
            assert!(outcome.ended && outcome.error.expect("an error").contains(words), "{end:?}");
        }
        assert_eq!(ended_with_runtime(&End::Exited(ExitStatus::Code(0)), None).error, None);
    }
}
