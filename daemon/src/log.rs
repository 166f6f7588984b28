//! The daemon's own log file: one line a fact, rotated by size so that no error repeated for ever can fill a disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// One file's size, and how many older ones are kept.
const MAX_BYTES: u64 = 2 << 20;
const KEPT: u32 = 3;

/// Cheap to clone: all clones write to the same file.
#[derive(Clone)]
pub struct Log {
    path: PathBuf,
    file: Arc<Mutex<Option<(File, u64)>>>,
}

impl Log {
    /// A log that cannot be written is no reason not to run.
    pub fn open(path: &Path) -> Self {
        Self { path: path.to_owned(), file: Arc::new(Mutex::new(open_file(path).ok())) }
    }

    pub fn note(&self, text: &str) {
        self.write("note", text);
    }

    pub fn warn(&self, text: &str) {
        self.write("warning", text);
    }

    fn write(&self, level: &str, text: &str) {
        let line = format!("{} {level}: {}\n", jiff::Timestamp::now(), shared::text::visible(text));
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|(_, bytes)| *bytes > MAX_BYTES) {
            *slot = None;
            rotate(&self.path);
        }
        if slot.is_none() {
            *slot = open_file(&self.path).ok();
        }
        if let Some((file, bytes)) = slot.as_mut() {
            *bytes += line.len() as u64;
            let _ = file.write_all(line.as_bytes());
        }
    }
}

fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

fn rotate(path: &Path) {
    let numbered = |n: u32| path.with_extension(format!("log.{n}"));
    for n in (1..KEPT).rev() {
        let _ = std::fs::rename(numbered(n), numbered(n + 1));
    }
    let _ = std::fs::rename(path, numbered(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_rotated_and_control_characters_are_shown() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("daemon.log");
        let log = Log::open(&path);
        log.warn("evil \x1b[31m name");
        assert!(std::fs::read_to_string(&path).expect("reads").contains("evil ·[31m name"));
        let text = "x".repeat(100_000);
        for _ in 0..100 {
            log.note(&text);
        }
        let files = std::fs::read_dir(dir.path()).expect("lists").count();
        assert_eq!(files, 1 + KEPT as usize);
    }
}
