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

/// Runs it with our binary on the PATH; gives what it printed.
fn run(root: &Root, heading: &str) -> String {
    let bin = root.join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_sessions-tui"), bin.join("sessions-tui")).expect("a link");
    let mut shell = Command::new("sh");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    shell.arg("-eu").arg("-c").arg(script(heading));
    shell.env_clear().envs(root.environment()).env("PATH", path).current_dir(root.work());
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(shell, b"", &["the README's script"]).ok()
}

#[test]
fn the_quick_start_for_agents_runs_as_the_readme_shows_it() {
    let root = Root::new();
    std::fs::create_dir(root.work().join("src")).expect("a folder");
    let output = run(&root, "### Quick start for agents");
    let folder = root.work().canonicalize().expect("a path").join("src");
    for expected in [
        &format!("{} 1 3\n", folder.display()),
        "\n42\n",
        "\"json\": [\n    true,\n    2\n  ]",
        "\"exitCode\": 2",
        "exit code 2\n",
        "interrupted: 124",
        "got to be read\n",
        "done\nne\n",
        "it had ended already\n",
        "variable        CI=1",
        "python of",
        "❯ read line",
    ] {
        assert!(output.contains(expected), "{expected:?} is not in:\n{output}");
    }
}

#[test]
fn a_whole_task_runs_as_the_readme_shows_it() {
    let root = Root::new();
    let output = run(&root, "### A task from start to end");
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
