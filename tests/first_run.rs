//! From nothing: the daemon starts by itself, once, detached; it stops, and recognises what a dead one left behind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::support::root::finish;
use crate::support::term::DETACH;
use crate::support::{BASH, Root, Term, process, wait_until};

#[test]
fn the_first_command_starts_the_daemon_and_it_goes_on() {
    let root = Root::new();
    assert_eq!(root.daemons(), Vec::<u32>::new());
    let said = root.run(&["ls"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""));
    assert!(said.stderr.contains("sessions-tui new"), "an empty list says how to begin: {}", said.stderr);
    let pid = root.daemon_pid();
    assert_eq!(root.daemons(), vec![pid], "the daemon lives on after its client");
    assert_eq!(root.daemon_pid(), pid, "the next command finds the same one");
    let stat = process::stat(pid).expect("a process");
    assert_eq!(stat.session, pid, "it leads a session of its own");
    assert_ne!(stat.session, process::stat(std::process::id()).expect("ourselves").session);
    let terminal = std::fs::read_link(format!("/proc/{pid}/fd/0")).expect("its standard input");
    assert_eq!(terminal, Path::new("/dev/null"));
}

#[test]
fn twenty_clients_at_once_start_one_daemon() {
    let root = Root::new();
    let mut clients: Vec<_> = (0..20).map(|_| root.command(&["ls", "--json"]).spawn().expect("starts")).collect();
    for client in &mut clients {
        assert!(client.wait().expect("ends").success());
    }
    let pid = root.daemon_pid();
    wait_until("those that came second to leave", || root.daemons().len() == 1);
    assert_eq!(root.daemons(), vec![pid]);
}

#[test]
fn start_status_restart_stop_and_logs() {
    let root = Root::new();
    root.run(&["daemon", "status"]).refused(5);
    assert!(root.run(&["daemon", "stop"]).ok().contains("not running"));
    assert!(root.run(&["daemon", "start"]).ok().contains("is running, pid"));
    let first = root.daemon_pid();
    assert!(root.run(&["daemon", "start"]).ok().contains(&format!("already running, pid {first}")));
    root.start("one", BASH);
    root.start("two", BASH);
    let programs = (root.program("one"), root.program("two"));
    let text = root.run(&["daemon", "status"]).ok();
    assert!(text.contains(&format!("pid {first}")) && text.contains("sessions        2"), "{text}");

    let text = root.run(&["daemon", "restart"]).ok();
    assert!(text.contains("2 sessions"), "{text}");
    let second = root.daemon_pid();
    assert_ne!(first, second);
    assert_eq!((root.program("one"), root.program("two")), programs);

    let text = root.run(&["daemon", "stop"]).ok();
    assert!(text.contains("2 sessions go on"), "{text}");
    assert!(!process::is_alive(second));
    assert!(process::is_alive(programs.0) && process::is_alive(programs.1));
    assert_eq!(root.status("one").0, "active", "the next command brings it back");

    let log = root.run(&["daemon", "logs"]).ok();
    assert!(log.contains(&format!("pid {first}")) && log.contains("2 sessions going on"), "{log}");
    assert_eq!(root.run(&["daemon", "logs", "-n", "1"]).ok().lines().count(), 1);
}

#[test]
fn stop_all_asks_and_ends_everything() {
    let root = Root::new();
    root.start("one", BASH);
    root.start("two", &["sleep", "1000"]);
    let programs = [root.program("one"), root.program("two")];
    let daemon = root.daemon_pid();
    let sentence = root.run(&["daemon", "stop", "--all"]).refused(2);
    assert!(sentence.contains("--yes"), "{sentence}");
    assert!(process::is_alive(daemon) && programs.iter().all(|pid| process::is_alive(*pid)), "a refusal changes nothing");

    let mut term = Term::open(&root, 80, 24, &["daemon", "stop", "--all"]);
    term.wait_for_text("2 running sessions");
    term.send(b"n\r");
    assert_eq!(term.wait_exit(), 0);
    assert!(process::is_alive(daemon));

    let text = root.run(&["daemon", "stop", "--all", "--yes"]).ok();
    assert!(text.contains("2 sessions ended"), "{text}");
    assert_eq!(root.processes(), Vec::<u32>::new());
    assert_eq!(root.status("one").0, "ended");
    assert_eq!(root.status("two"), ("ended".into(), "killed".into()));
}

#[test]
fn what_a_killed_daemon_left_is_recognised() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let dead = root.kill_daemon();
    assert!(root.socket().exists() && root.join("state/daemon.lock").exists(), "kill -9 leaves both files");
    root.run(&["ls"]).ok();
    let pid = root.daemon_pid();
    assert_ne!(pid, dead);
    assert_eq!(root.daemons(), vec![pid]);

    // not even a socket: somebody's file in its place
    root.run(&["daemon", "stop"]).ok();
    std::fs::write(root.socket(), "").expect("writes");
    root.run(&["ls"]).ok();
    assert_eq!(root.daemons().len(), 1);
}

#[test]
fn a_second_daemon_on_one_root_is_refused() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let pid = root.daemon_pid();
    let sentence = root.run(&["daemon", "run"]).refused(4);
    assert!(sentence.contains("already running"), "{sentence}");
    assert_eq!(root.daemons(), vec![pid]);
    root.run(&["ls"]).ok();
}

#[test]
fn a_daemon_in_the_foreground_ends_on_ctrl_c_and_sessions_go_on() {
    let root = Root::new();
    let mut daemon = root.command(&["daemon", "run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    wait_until("the daemon", || root.run(&["daemon", "status"]).code == 0);
    assert_eq!(root.daemon_pid(), daemon.id());
    root.start("stays", BASH);
    let program = root.program("stays");
    process::signal(daemon.id(), rustix::process::Signal::INT);
    assert!(daemon.wait().expect("ends").success());
    assert!(process::is_alive(program));
    assert_eq!(root.program("stays"), program);
}

#[test]
fn the_dashboard_lists_attaches_comes_back_and_quits() {
    let root = Root::new();
    let mut term = Term::open(&root, 80, 24, &[]);
    term.wait_for_text("No sessions yet");
    root.start("api", BASH);
    term.wait_for_text("api");
    root.start("web", &["sleep", "1000"]);
    term.wait_for_text("2 active");
    root.run(&["kill", "web"]).ok();
    term.wait_for_text("1 active 1 ended");

    term.send(b"g\r");
    wait_until("a client", || root.session("api")["clients"] == 1);
    term.send(b"echo here-$((40+2))\r");
    term.wait_for_text("here-42");
    term.send(DETACH);
    term.wait_for_text("detached from api");
    term.wait_for_text("1 active 1 ended");
    wait_until("nobody", || root.session("api")["clients"] == 0);
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    assert!(!term.is_alternate() && term.is_cooked(), "the terminal is given back");
    assert_eq!(root.status("api").0, "active");
}

#[test]
fn the_dashboard_needs_a_terminal() {
    let root = Root::new();
    let sentence = root.run(&[]).refused(2);
    assert!(sentence.contains("terminal") && sentence.contains("ls"), "{sentence}");
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

#[test]
fn promise_11_folders_sockets_and_files_are_for_this_user_alone() {
    let root = Root::new();
    // even with a careless umask
    let mut careless = std::process::Command::new("sh");
    careless.args(["-c", &format!("umask 000; exec {} new -d -n one -- bash --norc", env!("CARGO_BIN_EXE_sessions-tui"))]);
    careless.env_clear().envs(root.environment()).current_dir(root.work()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(careless, b"", &["new"]).ok();
    root.wait_screen("one", "$");
    root.run(&["daemon", "restart"]).ok();
    for folder in ["state", "run", "state/recordings"] {
        assert_eq!(mode(&root.join(folder)), 0o700, "{folder}");
    }
    assert_eq!(mode(&root.recording("one")), 0o700);
    assert_eq!(mode(&root.socket()), 0o600);
    assert_eq!(mode(&root.holder_socket("one")), 0o600);
    let mut readable = Vec::new();
    let mut open: Vec<_> = vec![root.join("state")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("lists").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                open.push(entry);
            } else if mode(&entry) & 0o077 != 0 {
                readable.push(entry);
            }
        }
    }
    assert!(readable.is_empty(), "open to others: {readable:?}");
}

#[test]
fn without_a_root_the_xdg_rules_hold_and_a_stripped_client_finds_the_daemon() {
    let root = Root::home_only();
    let runtime = root.join("xdg");
    std::fs::create_dir(&runtime).expect("a folder");
    let xdg = [("XDG_RUNTIME_DIR", runtime.to_str().expect("Unicode"))];
    let start = ["new", "-d", "-n", "one", "--", "sleep", "1000"];
    assert_eq!(root.run_with(&start, &xdg).ok().trim(), "one");
    assert!(runtime.join("sessions-tui/daemon.sock").exists());
    assert!(root.join("home/.local/state/sessions-tui/sessions.db").exists());
    let text = root.run(&["ls"]).ok();
    assert!(text.contains("one"), "a client without XDG_RUNTIME_DIR finds it: {text}");
    assert_eq!(root.daemons().len(), 1);
    // and by name alone
    let socket = runtime.join("sessions-tui/daemon.sock");
    let text = root.run(&["--socket", socket.to_str().expect("Unicode"), "ls"]).ok();
    assert!(text.contains("one"), "{text}");
}

#[test]
fn a_long_root_still_has_sockets() {
    let root = Root::new();
    let long = root.join(&"d".repeat(150));
    std::fs::create_dir(&long).expect("a folder");
    let variables = [("SESSIONS_ROOT", long.to_str().expect("Unicode"))];
    root.run_with(&["new", "-d", "-n", "one", "--", "sleep", "1000"], &variables).ok();
    let text = root.run_with(&["ls"], &variables).ok();
    assert!(text.contains("one"), "{text}");
    let status = root.run_with(&["daemon", "status", "--json"], &variables).ok();
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let socket = Path::new(status["socket"].as_str().expect("a path")).to_owned();
    root.run_with(&["daemon", "stop", "--all", "--yes"], &variables).ok();
    assert_eq!(root.processes(), Vec::<u32>::new());
    // its sockets were outside of the root: the folder for them is ours to take away, and empty
    std::fs::remove_dir(socket.parent().expect("a folder")).expect("an empty folder");
}
