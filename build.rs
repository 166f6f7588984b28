//! Linux: a fixed address for the executable. Position independence would be paid for in every holder: its relocations
//! alone are a quarter of a megabyte of private memory in each.
//! And the commit, for `--version`, where there is one to be asked.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    // a package built from an archive has none; whoever packs it may say it
    println!("cargo:rerun-if-env-changed=SESSIONS_COMMIT");
    let said = std::env::var("SESSIONS_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = said.or_else(commit) {
        println!("cargo:rustc-env=SESSIONS_COMMIT={}", commit.trim());
    }
}

fn commit() -> Option<String> {
    // of this folder itself: an archive inside somebody's repository is not of that
    let head = Path::new(".git/HEAD");
    if !head.exists() {
        return None;
    }
    println!("cargo:rerun-if-changed={}", head.display());
    let log = Path::new(".git/logs/HEAD");
    if log.exists() {
        // grows with each commit, also where branches are packed
        println!("cargo:rerun-if-changed={}", log.display());
    }
    let output = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output().ok()?;
    let commit = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    (!commit.trim().is_empty()).then_some(commit)
}
