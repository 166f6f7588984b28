//! Folders of ours: made 0700, and refused when they are somebody else's.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes the folder if it is missing, and makes sure that only this user can look into it.
pub fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot make the folder {}: {error}", path.display())))?;
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", path.display())));
    let meta = std::fs::symlink_metadata(path)?;
    if meta.file_type().is_symlink() {
        return refuse("is a link: point SESSIONS_ROOT or the XDG variable at the folder itself");
    }
    if !meta.is_dir() {
        return refuse("is not a folder");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return refuse("belongs to another user");
    }
    if meta.permissions().mode() & 0o077 != 0 {
        // ours, but open to others: an earlier umask, or a restore from a backup
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700))?;
    }
    Ok(())
}

/// Refuses a directory of another user. One that is missing is no refusal.
pub fn refuse_foreign(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} belongs to another user", path.display())))
        }
        _ => Ok(()),
    }
}

/// Writes a file that only this user can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Files with this ending that a folder has, by their names, in order; what cannot be read is not there.
pub fn read_folder(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    // nobody writes so much by hand
    let is_small = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= 1 << 20);
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        is_small(path).then(|| std::fs::read(path).ok())?.map(|bytes| (name, String::from_utf8_lossy(&bytes).into_owned()))
    };
    paths.iter().filter_map(read).collect()
}

/// Puts a script of ours where programs can read it. Its path has its contents' sum in it: one that is in use is never changed under
/// whoever reads it.
pub fn install(path: &Path, text: &str) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() == text.len() as u64) {
        return Ok(());
    }
    let folder = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    private_dir(folder)?;
    // another one may be doing the same: whoever is last puts the same thing in its place
    let draft = folder.join(format!("draft-{}", shared::id::RuntimeId::new().compact()));
    write_private(&draft, text.as_bytes())?;
    std::fs::rename(&draft, path)
}

/// The sum of a script's contents, for its path.
pub fn sum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_private_and_never_links_or_files() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a/b");
        private_dir(&path).expect("makes it");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("links");
        assert!(private_dir(&link).expect_err("a link").to_string().contains("is a link"));
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("writes");
        assert!(private_dir(&file.join("x")).is_err());
    }
}
