//! Files of a workspace that changed while a session was active: what happened to them, and whether anybody looks.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the workspace of a session is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchMode {
    /// Unless it is a home folder or a huge tree.
    #[default]
    Auto,
    On,
    Off,
}

impl WatchMode {
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    Created,
    Changed,
    Removed,
}

impl FileChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Created, Self::Changed, Self::Removed].into_iter().find(|change| change.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// From the workspace on.
    pub path: String,
    pub change: FileChange,
    /// When it was last seen to change.
    pub at: Timestamp,
    /// In how many bursts of changes it was.
    pub times: u64,
}

/// From when on files are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    /// The session's beginning.
    #[default]
    Start,
    /// The beginning of its last command or call.
    Command,
    At(Timestamp),
}

/// Whether changes of a session's files are noticed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Watching {
    On {
        folders: u64,
        files: u64,
    },
    /// Only these folders.
    Part {
        folders: u64,
        why: String,
    },
    Off {
        why: String,
    },
}

impl Watching {
    pub fn off(why: impl Into<String>) -> Self {
        Self::Off { why: why.into() }
    }

    /// For a person.
    pub fn in_words(&self) -> String {
        match self {
            Self::On { folders, .. } => format!("{} watched", crate::text::count(*folders as usize, "folder")),
            Self::Part { folders, why } => format!("only {} watched: {why}", crate::text::count(*folders as usize, "folder")),
            Self::Off { why } => format!("not watched: {why}"),
        }
    }
}

/// What is answered to `Files`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFiles {
    pub workspace: String,
    pub watch: Watching,
    /// Files that changed at this moment or later are told.
    pub since: Timestamp,
    /// The command whose beginning that is, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<String>,
    /// Newest first.
    pub files: Vec<ChangedFile>,
    /// Left out, because only so many were asked for.
    pub more: u64,
}

/// Two changes of one file, told as one; nothing if it came and went.
pub fn together(before: FileChange, after: FileChange) -> Option<FileChange> {
    use FileChange::{Changed, Created, Removed};
    match (before, after) {
        (Created, Removed) => None,
        (Created, _) => Some(Created),
        (Changed | Removed, Removed) => Some(Removed),
        (Changed | Removed, _) => Some(Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileChange::{Changed, Created, Removed};

    #[test]
    fn changes_of_one_file_are_one() {
        for (before, after, one) in [
            (Created, Changed, Some(Created)),
            (Created, Removed, None),
            (Changed, Changed, Some(Changed)),
            (Changed, Removed, Some(Removed)),
            (Removed, Created, Some(Changed)),
            (Removed, Removed, Some(Removed)),
        ] {
            assert_eq!(together(before, after), one, "{before:?} then {after:?}");
        }
    }

    #[test]
    fn words_are_read_back() {
        for mode in [WatchMode::Auto, WatchMode::On, WatchMode::Off] {
            assert_eq!(WatchMode::parse(mode.as_str()), Some(mode));
            assert_eq!(serde_json::to_value(mode).expect("serialises"), mode.as_str());
        }
        for change in [Created, Changed, Removed] {
            assert_eq!(FileChange::parse(change.as_str()), Some(change));
        }
        let since = serde_json::to_value(Since::At(Timestamp::UNIX_EPOCH)).expect("serialises");
        assert_eq!(since, serde_json::json!({"at": "1970-01-01T00:00:00Z"}));
    }
}
