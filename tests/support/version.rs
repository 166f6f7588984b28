//! The program in another version, really built: these sources with another number, in a folder of its own under `target/tmp`.
//! What is compiled of others' crates is taken over from our own target folder, so that only ours are compiled once more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Lower than any that was ever given away.
pub const OLD_VERSION: &str = "0.0.9";

/// What the program is made of.
const SOURCES: [&str; 6] = ["Cargo.toml", "Cargo.lock", "build.rs", "shared", "daemon", "tui"];

/// Ours are compiled anew, whatever lies in the target folder. `main` is the tests.
const OURS: [&str; 6] = ["shared", "daemon", "tui", "sessions-tui", "sessions_tui", "main"];

/// Nobody debugs it, and what is slow in it is slow for a few lines only: a third less to compile.
const SETTINGS: [&str; 5] = [
    "profile.dev.package.shared.opt-level=1",
    "profile.dev.package.shared.debug=0",
    "profile.dev.package.daemon.debug=0",
    "profile.dev.package.tui.debug=0",
    "profile.dev.package.sessions-tui.debug=0",
];

/// The executable of [`OLD_VERSION`]; the first who asks builds it, and nothing is done while nothing has changed.
pub fn old_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.join("old-version");
    let sources = folder.join("src");
    for part in SOURCES {
        copy_changed(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &sources.join(part)).expect("the sources are copied");
    }
    // an empty test asks for the same features of dependencies as ours does, and so for what is compiled already
    write_changed(&sources.join("tests/main.rs"), b"//! Empty.\n").expect("writes");
    let ours = target.parent().expect("the target folder").join("debug");
    for part in [".fingerprint", "build", "deps"] {
        // without it, or with half of it, everything is compiled: that only takes longer
        let _ = seed(&ours.join(part), &folder.join("target/debug").join(part));
    }
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--offline", "--workspace", "--bin", "sessions-tui", "--test", "main", "--target-dir"]);
    command.arg(folder.join("target")).current_dir(&sources).env("CARGO_INCREMENTAL", "0");
    for setting in SETTINGS {
        command.args(["--config", setting]);
    }
    // what cargo tells tests of themselves would be news to build scripts (ring's asks), and compile them and their like again
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"].iter().any(|about| name.to_string_lossy().starts_with(about)) {
            command.env_remove(name);
        }
    }
    let output = command.output().expect("cargo");
    assert!(output.status.success(), "the old version: {}", String::from_utf8_lossy(&output.stderr));
    folder.join("target/debug/sessions-tui")
}

/// Leaves alone what is the same, so that cargo sees no change; takes away what is gone.
fn copy_changed(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        let bytes = fs::read(from)?;
        if from.ends_with("Cargo.toml") && from.parent() == Some(Path::new(env!("CARGO_MANIFEST_DIR"))) {
            return write_changed(to, with_old_version(bytes).as_bytes());
        }
        return write_changed(to, &bytes);
    }
    // also an empty one, which git leaves behind in a work tree
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        copy_changed(&from.join(&name), &to.join(&name))?;
    }
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        if !from.join(path.file_name().unwrap_or_default()).exists() {
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
    }
    Ok(())
}

fn write_changed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("in a folder"))?;
    fs::write(path, bytes)
}

fn with_old_version(manifest: Vec<u8>) -> String {
    let text = String::from_utf8(manifest).expect("Unicode");
    let present = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    assert_eq!(text.matches(&present).count(), 1, "one place says the version");
    text.replace(&present, &format!("version = \"{OLD_VERSION}\""))
}

/// Adds what is not there yet. Large files, which are only ever replaced, are linked; small ones, which cargo writes over, are copied.
fn seed(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let plain = name.to_string_lossy();
        let of = plain.strip_prefix("lib").unwrap_or(&plain);
        let copy = to.join(&name);
        if OURS.iter().any(|package| of.strip_prefix(package).is_some_and(is_hash)) || copy.exists() {
            continue;
        }
        if entry.file_type()?.is_dir() {
            seed(&entry.path(), &copy)?;
        } else if ["rlib", "rmeta", "so", "a", "o"].iter().any(|extension| copy.extension().is_some_and(|own| own == *extension)) {
            fs::hard_link(entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), &copy)?;
            // cargo tells by times what is old
            fs::File::options().write(true).open(&copy)?.set_modified(entry.metadata()?.modified()?)?;
        }
    }
    Ok(())
}

/// `-` and sixteen digits, then an extension or nothing: how cargo names what it has compiled.
fn is_hash(rest: &str) -> bool {
    let rest = rest.strip_prefix('-').map(|rest| rest.split('.').next().unwrap_or_default());
    rest.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
