//! What the pages show is run as it stands there.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::root::finish;
use crate::support::{Root, wait_until};

const README: &str = include_str!("../README.md");
const MANUAL: &str = include_str!("../MANUAL.md");
const PROTOCOL: &str = include_str!("../shared/PROTOCOL.md");

/// The first block of this language after a heading.
fn block(page: &str, heading: &str, language: &str) -> String {
    let after = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}")).1;
    let block = after.split_once(&format!("```{language}\n")).expect("a block").1;
    block.split_once("```").expect("its end").0.to_owned()
}

/// Runs a script with our binary on the PATH; gives what it printed.
fn run(root: &Root, shell: &[&str], script: &str) -> String {
    let bin = root.join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_sessions-tui"), bin.join("sessions-tui")).expect("a link");
    let mut command = Command::new(shell[0]);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    command.args(&shell[1..]).arg("-c").arg(script);
    command.env_clear().envs(root.environment()).env("PATH", path).current_dir(root.work());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(command, b"", &["a page's script"]).ok()
}

const SH: &[&str] = &["sh", "-eu"];

#[test]
fn the_five_minutes_run_as_the_readme_shows_them() {
    let root = Root::new();
    let output = run(&root, SH, &block(README, "## Five minutes", "sh"));
    for expected in ["listening on 8080\nGET /users\nGET /users\n", "in / with CI=1\n", "\n42\n", "paused: lunch", "GET /users"] {
        assert!(output.contains(expected), "{expected:?} is not in:\n{output}");
    }
    assert_eq!(root.status("api"), ("ended".into(), "killed".into()));
    let page = std::fs::read_to_string(root.work().join("api.html")).expect("a page");
    assert!(page.contains("<html"), "{page}");
}

#[test]
fn a_short_task_runs_as_the_readme_shows_it() {
    let root = Root::new();
    let (_, tasks) = README.split_once("**Tasks.**").expect("tasks");
    let script = block(&format!("\n## Tasks\n{tasks}"), "## Tasks", "sh");
    let output = run(&root, SH, &script);
    assert!(output.contains("write the missing test") && output.contains("\"resumable\": true"), "{output}");
    assert_eq!(root.status("fix").0, "completed");
}

#[test]
fn the_client_in_python_runs_as_the_protocol_s_page_shows_it() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    let output = run(&root, &["python3"], &block(PROTOCOL, "## A client", "python"));
    assert!(output.starts_with("[]\n42\nTrue 0\n1 start\n"), "{output}");
    assert!(output.trim_end().ends_with(" complete"), "{output}");
}

#[test]
fn every_request_and_push_is_on_the_protocol_s_page() {
    let root = Root::new();
    for name in root.run(&["schema", "--list"]).ok().lines() {
        if let Some((_, word)) = name.split_once('.') {
            assert!(PROTOCOL.contains(&format!("`{word}`")), "{name}");
        }
    }
}

#[test]
fn one_line_of_socat_is_a_client_too() {
    let root = Root::home_only();
    root.run(&["new", "-d", "-n", "api", "--", "sleep", "1000"]).ok();
    let output = run(&root, SH, &block(PROTOCOL, "## Try it", "sh"));
    let lines: Vec<serde_json::Value> = output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["hello"]["protocol"], 1, "{output}");
    assert_eq!(lines[1]["ok"][0]["name"], "api", "{output}");
}

#[test]
fn the_settings_of_the_manual_are_ones_that_hold() {
    let root = Root::new();
    root.config(&block(MANUAL, "## Settings", "toml"));
    let said = root.run(&["config", "check"]);
    assert_eq!(said.code, 0, "{said:?}");
}

/// Every page is there, and what it leads to in another.
#[test]
fn links_between_the_pages_lead_somewhere() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["README.md", "MANUAL.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md", "shared/PROTOCOL.md"] {
        let page = std::fs::read_to_string(folder.join(name)).expect(name);
        for link in page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { folder.join(name) } else { folder.join(name).with_file_name("").join(file) };
            let target = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {link}: {error}"));
            let is_heading = |line: &str| {
                let words = line.trim_start_matches('#').trim().to_lowercase();
                let plain: String = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-')).collect();
                line.starts_with('#') && plain.replace(' ', "-") == anchor
            };
            assert!(anchor.is_empty() || target.lines().any(is_heading), "{name}: nothing is called {link}");
        }
    }
}

#[test]
fn the_quick_start_for_agents_runs_as_the_manual_shows_it() {
    let root = Root::new();
    std::fs::create_dir(root.work().join("src")).expect("a folder");
    let output = run(&root, SH, &block(MANUAL, "### Quick start for agents", "sh"));
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
fn a_whole_task_runs_as_the_manual_shows_it() {
    let root = Root::new();
    let output = run(&root, SH, &block(MANUAL, "### A task from start to end", "sh"));
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
