//! Benchmarks end and say why when something is slow or missing; what they could measure is printed all the same.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::Root;

fn script(folder: &Path, name: &str, text: &str) -> String {
    std::fs::create_dir_all(folder).expect("a folder");
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/bash\n{text}\n")).expect("writes");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("may run");
    file.to_str().expect("Unicode").to_owned()
}

fn bench(name: &str, args: &[&str], binary: &str, path: Option<&Path>) -> Output {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let usual = std::env::var("PATH").expect("a path");
    let path = path.map_or(usual.clone(), |first| format!("{}:{usual}", first.display()));
    let run = Command::new("python3").arg(file).args(args).env("SESSIONS_BIN", binary).env("PATH", path).output();
    run.expect("python3 runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn d8_a_peer_that_is_slow_or_fails_is_named_and_the_others_are_measured() {
    let root = Root::new();
    let bin = root.join("bin");
    script(&bin, "tmux", "exec sleep 1000");
    script(&bin, "screen", "exit 3");
    let done = bench("bench_start.py", &["--rounds", "2", "--patience", "8"], env!("CARGO_BIN_EXE_sessions-tui"), Some(&bin));
    let (out, said) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{out}\n{said}");
    let row = out.lines().find(|line| line.starts_with("| new session")).expect("a row");
    assert!(row.split('|').nth(2).is_some_and(|cell| cell.trim().parse::<f64>().is_ok()), "{out}");
    assert!(said.contains("tmux: 3 turns failed, left out from then on: 'tmux -V' took longer than 8 s"), "{said}");
    assert!(said.contains("screen: 3 turns failed") && said.contains("ended with exit code 3"), "{said}");
}

#[test]
fn d8_a_recording_with_missing_data_is_named_and_the_others_are_measured() {
    let root = Root::new();
    let ours = env!("CARGO_BIN_EXE_sessions-tui");
    // as if the end of one recording were never seen
    let binary =
        script(&root.join("bin"), "ours", &format!("if [ \"$1 $2\" = 'wait log-1' ]; then exec sleep 1000; fi\nexec '{ours}' \"$@\""));
    let done = bench("bench_replay.py", &["--sizes", "1", "--kinds", "log,colour", "--seeks", "4", "--patience", "10"], &binary, None);
    let (out, said) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{out}\n{said}");
    assert!(said.contains("log-1: the end of what was written was not seen, so data is missing"), "{said}");
    assert!(out.lines().any(|line| line.trim_start().starts_with("colour    1MB") && !line.contains("not measured")), "{out}");
}
