//! What can be told of a database without opening it for work.

/// As found on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    Absent,
    Sound {
        version: i64,
        known: i64,
        /// Runtimes it knows of, and whether they live.
        runtimes: Vec<(String, bool)>,
        /// What the steady clock adds to the kernel's, and for which boot.
        clock: Option<(String, i64)>,
        /// Sessions whose recordings have gaps: name, and bytes that are missing.
        gaps: Vec<(String, u64)>,
        /// Rows that cannot be understood: what they belong to, and why.
        damaged: Vec<String>,
    },
    /// Of a later version of this program.
    Newer {
        found: i64,
        known: i64,
    },
    Damaged(String),
    Unreadable(String),
}
