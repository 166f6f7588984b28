//! Changes of files that are to be told: one for each file, whatever happened to it in between. Pure.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use shared::watch::{FileChange, together};

/// Changed files that are kept by name until they are told; of more, only how many.
const MOST_NAMED: usize = 2000;

/// Changes that are to be told.
#[derive(Debug, Default)]
pub struct Changes {
    pub files: BTreeMap<PathBuf, (FileChange, Timestamp)>,
    /// Of those that are not kept by name.
    pub unnamed: [u64; 3],
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.unnamed == [0; 3]
    }

    pub fn add(&mut self, path: PathBuf, change: FileChange, at: Timestamp) {
        if let Some((before, _)) = self.files.get(&path) {
            match together(*before, change) {
                Some(one) => drop(self.files.insert(path, (one, at))),
                None => drop(self.files.remove(&path)),
            }
        } else if self.files.len() < MOST_NAMED {
            self.files.insert(path, (change, at));
        } else {
            self.unnamed[change as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileChange::{Created, Removed};

    #[test]
    fn more_than_can_be_named_is_counted() {
        let mut changes = Changes::default();
        let now = Timestamp::now();
        for n in 0..MOST_NAMED + 5 {
            changes.add(PathBuf::from(n.to_string()), Created, now);
        }
        changes.add(PathBuf::from("0"), Removed, now);
        assert_eq!((changes.files.len(), changes.unnamed), (MOST_NAMED - 1, [5, 0, 0]));
    }
}
