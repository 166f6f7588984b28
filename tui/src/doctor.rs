//! What may be wrong with the machine, the daemon and its files: facts are gathered by `gather`, judged by `check`, which is pure.
//! Nothing is started and nothing is changed: it has to work when everything is broken.

mod check;
mod gather;

use std::path::Path;

use serde::Serialize;
use shared::doctor::Database;

pub use check::check;
pub use gather::gather;

/// Reads a database, and a folder of agents' manifests: the daemon's crate alone knows how.
#[derive(Clone, Copy)]
pub struct Lookers {
    pub database: fn(&Path) -> Database,
    pub agents: fn(&Path) -> Vec<String>,
}

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
