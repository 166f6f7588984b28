//! The directory a session works in.

use std::path::Path;

use shared::message::Failure;

/// A folder one can work in, or why not.
pub fn check_folder(path: &str) -> Result<(), Failure> {
    if !Path::new(path).is_absolute() {
        return Err(Failure::usage(format!("the workspace must be an absolute path, not {path:?}")));
    }
    let Err(error) = std::fs::read_dir(path) else { return Ok(()) };
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        std::io::ErrorKind::NotADirectory => "is not a folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "may not be read by you".to_owned(),
        _ => error.to_string(),
    };
    Err(Failure::usage(format!("the workspace {} {why}: give a folder with -w", shared::text::visible(path))))
}
