//! Where the dashboard keeps what it remembers: one small file in the state folder.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use shared::paths::Paths;

use crate::state::remembered::Remembered;

pub fn load(paths: &Paths) -> Remembered {
    std::fs::read_to_string(paths.dashboard()).map(|text| Remembered::parse(&text)).unwrap_or_default()
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
