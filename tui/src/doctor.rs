//! What may be wrong with the machine, the daemon and its files: facts are gathered by `gather`, judged by `check`, which is pure.
//! Nothing is started and nothing is changed: it has to work when everything is broken.

mod check;
mod gather;

use serde::Serialize;

pub use check::check;
pub use gather::gather;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Fine,
    Wrong,
    /// Nothing is wrong, but worth knowing; or it cannot be told.
    Note,
}

impl Verdict {
    pub fn mark(self) -> char {
        match self {
            Self::Fine => '✓',
            Self::Wrong => '✗',
            Self::Note => '–',
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    /// What was found, and what it means.
    pub says: String,
    /// The command, or the step, that fixes it.
    pub mend: Option<String>,
}
