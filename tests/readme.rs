//! What the README shows is run as it stands there.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::root::finish;
use crate::support::{Root, wait_until};

/// The first block of shell after this heading.
fn script(heading: &str) -> String {
    let text = include_str!("../README.md");
    let after = text.split_once(heading).unwrap_or_else(|| panic!("no heading {heading:?}")).1;
    let block = after.split_once("```sh\n").expect("a block").1;
    block.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn a_whole_task_runs_as_the_readme_shows_it() {
    let root = Root::new();
    let bin = root.join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_sessions-tui"), bin.join("sessions-tui")).expect("a link");
    let mut shell = Command::new("sh");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    shell.arg("-eu").arg("-c").arg(script("### A task from start to end"));
    shell.env_clear().envs(root.environment()).env("PATH", path).current_dir(root.work());
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let output = finish(shell, b"", &["the README's script"]).ok();
    assert!(output.contains("\"resumable\": true"), "{output}");
    assert!(output.contains("\"status\": \"completed\""), "{output}");
    let session = root.session("fix-login");
    assert_eq!((session["status"].as_str(), session["iterations"].as_u64()), (Some("completed"), Some(2)));
    assert_eq!(session["metadata"]["tools_used"][0], "bash");
    wait_until("all of its events", || {
        let events = root.run(&["events", "fix-login"]).ok();
        ["start", "iteration", "tool_call", "context", "pause", "resume", "complete"].iter().all(|kind| events.contains(kind))
    });
}
