//! `doctor` finds each thing that can be broken in a root, names the command that fixes it, and that command fixes it. It starts and changes nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::term::contains;
use crate::support::{Root, Term, process, wait_until};

/// The findings of one check.
#[track_caller]
fn findings(root: &Root, check: &str, variables: &[(&str, &str)]) -> Vec<(String, String, String)> {
    let said = root.run_with(&["doctor", "--json"], variables);
    let all: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    let all = all.as_array().expect("a list");
    let wrong = all.iter().any(|finding| finding["verdict"] == "wrong");
    assert_eq!(said.code, i32::from(wrong), "the exit code says whether something is wrong: {all:?}");
    let found = all.iter().filter(|finding| finding["check"] == check);
    found.map(|finding| (text(finding, "verdict"), text(finding, "says"), text(finding, "mend"))).collect()
}

/// The verdict of one check, and what mends it.
#[track_caller]
fn verdict(root: &Root, check: &str) -> (String, String) {
    let found = findings(root, check, &[]);
    let (verdict, _, mend) = found.first().unwrap_or_else(|| panic!("nothing about {check}")).clone();
    (verdict, mend)
}

#[test]
fn before_anything_ran_it_says_so_and_leaves_no_trace() {
    let root = Root::new();
    assert_eq!(verdict(&root, "daemon").0, "note");
    assert_eq!(verdict(&root, "database").0, "note");
    assert!(!root.join("state").exists() && !root.join("run").exists() && root.daemons().is_empty());
}

#[test]
fn a_healthy_root_has_nothing_wrong() {
    let root = Root::new();
    root.start_script("api", "exec cat");
    let said = root.run(&["doctor"]).ok();
    for line in ["✓ daemon", "✓ socket", "✓ permissions", "✓ database", "✓ disk", "✓ shell", "✓ locale", "✓ holders", "✓ clock"]
    {
        assert!(said.contains(line), "{line}:\n{said}");
    }
    assert!(said.ends_with("nothing is wrong\n"), "{said}");
    assert!(!said.contains('\x1b'), "no colours where nobody looks");
}

#[test]
fn a_daemon_that_was_killed_and_its_socket() {
    let root = Root::new();
    root.start_script("api", "exec cat");
    root.kill_daemon();
    let (wrong, mend) = verdict(&root, "daemon");
    assert_eq!((wrong.as_str(), mend.as_str()), ("wrong", "sessions-tui daemon start"));
    assert_eq!(verdict(&root, "socket").0, "wrong", "its file is still there");
    assert_eq!(verdict(&root, "holders").0, "fine", "the session goes on");
    assert!(root.daemons().is_empty(), "nothing was started");
    root.run(&["daemon", "start"]).ok();
    assert_eq!((verdict(&root, "daemon").0, verdict(&root, "socket").0), ("fine".into(), "fine".into()));
}

#[test]
fn a_daemon_that_does_not_answer() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let pid = root.daemon_pid();
    process::signal(pid, Signal::STOP);
    let (wrong, mend) = verdict(&root, "daemon");
    assert!(wrong == "wrong" && mend.contains("daemon logs") && mend.contains(&format!("kill -9 {pid}")), "{mend}");
    // commands do not wait for ever either
    let said = root.run(&["daemon", "status"]).refused(5);
    assert!(said.contains(&format!("(pid {pid}) does not answer")) && said.contains(&format!("kill -9 {pid}")), "{said}");
    process::signal(pid, Signal::CONT);
    assert_eq!(verdict(&root, "daemon").0, "fine");
}

#[test]
fn a_socket_that_nobody_has_is_no_fault_of_the_daemon() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let nobody = root.join("nosuch.sock").display().to_string();
    let said = root.run(&["--socket", &nobody, "ls"]).refused(5);
    assert!(said.contains(&format!("nobody listens at {nobody}, which --socket names")), "{said}");
    let said = root.run_with(&["ls"], &[("SESSIONS_SOCKET", &nobody)]).refused(5);
    assert!(said.contains("which SESSIONS_SOCKET names"), "{said}");
    let (wrong, says, mend) = findings(&root, "daemon", &[("SESSIONS_SOCKET", &nobody)]).swap_remove(0);
    assert!(wrong == "wrong" && says.contains("nobody listens at") && !mend.contains("kill"), "{says}: {mend}");
    assert_eq!(root.daemons().len(), 1);
}

#[test]
fn settings_that_others_can_change_are_found() {
    let root = Root::new();
    root.run(&["config", "init"]).ok();
    assert_eq!(verdict(&root, "permissions").0, "fine");
    set_mode(&root.join("config/config.toml"), 0o644);
    assert_eq!(verdict(&root, "permissions").0, "fine", "they may be read");
    set_mode(&root.join("config/config.toml"), 0o666);
    let (wrong, mend) = verdict(&root, "permissions");
    assert!(wrong == "wrong" && mend.starts_with("chmod go-w "), "{mend}");
}

#[test]
fn the_variable_that_decides_the_locale_is_named() {
    let root = Root::new();
    let (wrong, _, mend) = findings(&root, "locale", &[("LC_ALL", "C")]).swap_remove(0);
    assert_eq!((wrong.as_str(), mend.as_str()), ("wrong", "export LC_ALL=C.UTF-8"));
}

#[test]
fn another_file_in_the_place_of_the_socket() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    root.run(&["daemon", "stop"]).ok();
    std::fs::write(root.socket(), "").expect("writes");
    assert_eq!(verdict(&root, "socket").0, "wrong");
    root.run(&["daemon", "start"]).ok();
    assert_eq!(verdict(&root, "socket").0, "fine");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn open_permissions_are_found_and_the_command_mends_them() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    for (part, mode) in [("state", 0o755), ("run", 0o711), ("state/sessions.db", 0o644)] {
        set_mode(&root.join(part), mode);
        let (wrong, mend) = verdict(&root, "permissions");
        assert!(wrong == "wrong" && mend.starts_with("chmod "), "{part}: {mend}");
        let mended = std::process::Command::new("sh").args(["-c", &mend]).status().expect("runs");
        assert!(mended.success());
        assert_eq!(verdict(&root, "permissions").0, "fine", "{part}");
    }
}

#[test]
fn a_damaged_database_is_found_with_and_without_a_daemon_and_left_as_it_is() {
    let root = Root::new();
    root.record("task", &[]);
    root.run(&["daemon", "stop"]).ok();
    let path = root.join("state/sessions.db");
    // all of it in the one file
    root.database().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    let mut bytes = std::fs::read(&path).expect("a database");
    for byte in bytes.iter_mut().skip(4096).take(8192) {
        *byte = 0x5a;
    }
    std::fs::write(&path, &bytes).expect("writes");
    let (wrong, mend) = verdict(&root, "database");
    assert!(wrong == "wrong" && mend.contains("daemon restart"), "{mend}");
    assert_eq!(std::fs::read(&path).expect("there"), bytes, "untouched");
    root.run(&["daemon", "restart"]).ok();
    assert_eq!(verdict(&root, "database").0, "fine", "set aside, and a new one begun");

    root.run(&["daemon", "stop"]).ok();
    std::fs::write(&path, "this is no database, and long enough to be looked at as one, which it is not at all, really not")
        .expect("writes");
    for side in ["state/sessions.db-wal", "state/sessions.db-shm"] {
        let _ = std::fs::remove_file(root.join(side));
    }
    assert_eq!(verdict(&root, "database").0, "wrong");
}

#[test]
fn a_newer_database_is_named() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    root.run(&["daemon", "stop"]).ok();
    root.database().pragma_update(None, "user_version", 999).expect("sets");
    let found = findings(&root, "database", &[]);
    assert!(found[0].0 == "wrong" && found[0].1.contains("999"), "{found:?}");
    root.database().pragma_update(None, "user_version", 6).expect("sets");
}

#[test]
fn what_the_environment_lacks() {
    let root = Root::new();
    let cases: &[(&str, &str, &str, &str)] = &[
        ("locale", "LANG", "C", "wrong"),
        ("locale", "LC_ALL", "POSIX", "wrong"),
        ("shell", "SHELL", "/no/such/shell", "wrong"),
        ("nested", "TMUX", "/tmp/tmux-0/default,1,0", "note"),
        ("nested", "SESSIONS_THREAD", "api", "note"),
    ];
    for (check, variable, value, verdict) in cases {
        let found = findings(&root, check, &[(variable, value)]);
        assert_eq!(found[0].0, *verdict, "{variable}={value}: {found:?}");
        assert!(!found[0].2.is_empty(), "what mends it: {found:?}");
    }
    // no programs at all
    let found = findings(&root, "interpreter", &[("PATH", "/nowhere")]);
    let verdicts: Vec<&str> = found.iter().map(|(verdict, ..)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["wrong", "note", "note"], "{found:?}");
    let long = root.join(&"d".repeat(150));
    let found = findings(&root, "path", &[("SESSIONS_SOCKET", long.to_str().expect("Unicode"))]);
    assert_eq!(found[0].0, "wrong", "{found:?}");
    let found = findings(&root, "path", &[("SESSIONS_ROOT", long.to_str().expect("Unicode"))]);
    assert_eq!(found[0].0, "note", "{found:?}");
}

#[test]
fn settings_that_are_wrong() {
    let root = Root::new();
    root.config("[runtime]\nnode = \"/no/such/node\"\n");
    let found = findings(&root, "interpreter", &[]);
    assert!(found.iter().any(|(verdict, says, _)| verdict == "wrong" && says.contains("/no/such/node")), "{found:?}");
    root.config("[keys]\nprefix = 7\n");
    assert_eq!(verdict(&root, "config").0, "wrong");
}

#[test]
fn a_service_of_another_program_is_stale() {
    let root = Root::new();
    root.run(&["daemon", "install", "--as", "autostart"]).ok();
    assert_eq!(verdict(&root, "service").0, "fine");
    let folder = root.join("home/.config/autostart");
    let file = std::fs::read_dir(folder).expect("a folder").next().expect("a file").expect("a file").path();
    let text = std::fs::read_to_string(&file).expect("text").replace(env!("CARGO_BIN_EXE_sessions-tui"), "/gone/sessions-tui");
    std::fs::write(&file, text).expect("writes");
    let (wrong, mend) = verdict(&root, "service");
    assert_eq!((wrong.as_str(), mend.as_str()), ("wrong", "sessions-tui daemon install"));
    root.run(&["daemon", "uninstall"]).ok();
    assert_eq!(verdict(&root, "service").0, "note");
}

#[test]
fn holders_that_nobody_knows_or_can_reach() {
    let root = Root::new();
    root.start_script("api", "exec cat");
    let (holder, program, socket) = (root.holder("api"), root.program("api"), root.holder_socket("api"));
    root.run(&["daemon", "stop"]).ok();
    // the database is put aside: no session knows the program
    std::fs::rename(root.join("state/sessions.db"), root.join("state/elsewhere.db")).expect("moves");
    root.run(&["daemon", "start"]).ok();
    assert_eq!(verdict(&root, "holders").0, "fine", "the daemon makes a session of it");
    root.run(&["daemon", "stop"]).ok();
    for file in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _ = std::fs::remove_file(root.join("state").join(file));
    }
    let found = findings(&root, "holders", &[]);
    assert!(found[0].0 == "wrong" && found[0].1.contains(&holder.to_string()) && found[0].2.contains("daemon restart"), "{found:?}");
    root.run(&["daemon", "restart"]).ok();
    assert_eq!(verdict(&root, "holders").0, "fine");
    assert!(process::is_alive(program));

    // its socket is swept away
    std::fs::remove_file(&socket).expect("goes");
    let found = findings(&root, "holders", &[]);
    assert!(found[0].0 == "wrong" && found[0].2.contains(&format!("kill {holder}")), "{found:?}");
    process::signal(holder, Signal::TERM);
    wait_until("its program to end", || !process::is_alive(program));
}

#[test]
fn a_terminal_is_named_with_its_size_and_gets_colours() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let mut term = Term::open(&root, 100, 50, &["doctor"]);
    term.wait_for_text("xterm-256color, 100×50");
    assert_eq!(term.wait_exit(), 0);
    assert!(contains(&term.bytes(), "\x1b[32m✓".as_bytes()), "{}", term.text());
}
