//! Where the dashboard keeps what it remembers: one small file in the state folder.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use shared::paths::Paths;

use crate::dashboard::state::remembered::Remembered;

/// What was kept, and what is wrong with it: then everything is as on the first day.
pub fn load(paths: &Paths) -> (Remembered, Option<String>) {
    let path = paths.dashboard();
    let kept = match std::fs::read_to_string(&path) {
        Ok(text) => Remembered::parse(&text).map_err(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Remembered::default(), None),
        Err(error) => Err(error.to_string()),
    };
    match kept {
        Ok(kept) => (kept, None),
        Err(why) => (Remembered::default(), Some(format!("{}: {why}; order, groups and filter start anew", path.display()))),
    }
}

/// Beside it first: what is there is whole.
pub fn save(paths: &Paths, remembered: &Remembered) -> io::Result<()> {
    let (path, text) = (paths.dashboard(), serde_json::to_string(remembered)?);
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let written = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut out| out.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}
