//! The official client, in a virtual environment that is made the first time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use crate::support::Root;
use crate::support::root::finish;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_client.py")
}

/// Where it stays between runs.
pub fn environment() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-client")
}

/// Fetching packages takes as long as it takes; what is tested is what comes after.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let output = Command::new("python3").arg(script()).arg(environment()).arg("prepare").output().expect("python3 starts");
        assert!(output.status.success(), "the client could not be installed: {}", String::from_utf8_lossy(&output.stderr));
    });
}

#[track_caller]
fn run(root: &Root, scenario: &str) {
    prepare();
    let mut command = Command::new("python3");
    command.arg(script()).arg(environment()).arg(scenario).arg(env!("CARGO_BIN_EXE_sessions-tui")).arg(root.work());
    command.args(root.environment().iter().map(|(name, value)| format!("{name}={value}")));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let text = finish(command, b"", &["mcp_client.py", scenario]).ok();
    assert_eq!(text.trim_end(), "all is well");
}

#[test]
fn terminals_and_sessions_work_with_the_official_client() {
    run(&Root::new(), "terminals");
}

#[test]
fn runtimes_work_with_the_official_client() {
    run(&Root::new(), "runtimes");
}
