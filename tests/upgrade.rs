//! Versions meet: a daemon is replaced by another program's, holders of before are driven by the daemon of now, old clients are heard.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::root::finish;
use crate::support::version::{OLD_VERSION, old_program};
use crate::support::wire::{Wire, frame};
use crate::support::{BASH, Root, Term, process, wait_until};

/// By a program of its own: what we have open for writing, another test's child has too for a moment, and cannot be started then.
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().expect("cp").success());
}

#[test]
fn c9_a_daemon_that_takes_long_to_leave_is_waited_for() {
    let root = Root::new();
    root.start("kept", &["sleep", "1000"]);
    let old = root.daemon_pid();
    let lock = std::fs::File::options().append(true).open(root.join("state/daemon.lock")).expect("the daemon's lock");
    std::thread::scope(|scope| {
        // As if the old daemon took this long: we are in line for its lock before the successor is.
        scope.spawn(|| {
            rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("is let in");
            // longer than a successor used to wait
            std::thread::sleep(std::time::Duration::from_secs(12));
            rustix::fs::flock(&lock, rustix::fs::FlockOperation::Unlock).expect("leaves");
        });
        let us = format!(" {} ", std::process::id());
        wait_until("us to be in line", || {
            let locks = std::fs::read_to_string("/proc/locks").expect("the kernel's list");
            locks.lines().any(|line| line.contains("-> FLOCK") && line.contains(&us))
        });
        root.run(&["daemon", "restart"]).ok();
    });
    assert_ne!(root.daemon_pid(), old);
    assert_eq!(root.status("kept").0, "active");
}

#[test]
fn promise_2_a_daemon_is_replaced_by_that_of_another_file_and_no_session_is_lost() {
    let root = Root::new();
    // as a package does it: the old file is gone, its daemon and holders still run
    let old = root.join("old-sessions-tui");
    copy_program(Path::new(env!("CARGO_BIN_EXE_sessions-tui")), &old);
    let mut new = Command::new(&old);
    new.args(["new", "-d", "-n", "api", "--", "bash", "-c", "echo up; exec cat"]).env_clear().envs(root.environment());
    new.current_dir(root.work()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(new, b"", &["new"]).ok();
    root.wait_screen("api", "up");
    let (program, holder, daemon) = (root.program("api"), root.holder("api"), root.daemon_pid());
    assert!(process::command(daemon).contains("old-sessions-tui"));
    std::fs::remove_file(&old).expect("goes");

    let said = root.run(&["daemon", "restart"]).ok();
    assert!(said.contains("with 1 session"), "{said}");
    assert!(process::command(root.daemon_pid()).starts_with(env!("CARGO_BIN_EXE_sessions-tui")), "the program that was asked");
    assert_eq!((root.program("api"), root.holder("api")), (program, holder), "same program, same holder");
    root.run(&["send", "api", "--enter", "hello"]).ok();
    root.wait_screen("api", "up\nhello\nhello");
    // and what is started while the file of the running daemon is gone
    root.start_script("more", "echo second; exec cat");
    root.wait_screen("more", "second");
}

const NEW_VERSION: &str = env!("CARGO_PKG_VERSION");

fn new_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sessions-tui"))
}

#[test]
fn promise_2_a_later_version_takes_over_all_that_an_older_one_has_started() {
    take_over((old_program(), OLD_VERSION), (new_program(), NEW_VERSION));
}

#[test]
fn promise_2_and_the_other_way_round_an_older_version_what_a_later_one_has() {
    take_over((new_program(), NEW_VERSION), (old_program(), OLD_VERSION));
}

/// What is alive, by its pids: the shell, its holder, the python.
fn living(root: &Root) -> (u32, u32, String) {
    (root.program("api"), root.holder("api"), root.run(&["eval", "os.getpid()"]).ok())
}

fn version_of_daemon(root: &Root) -> String {
    root.json(&["daemon", "status", "--json"])["version"].as_str().expect("a version").to_owned()
}

/// A window that was there from the start shows what is typed, and what was typed before.
#[track_caller]
fn type_and_see(window: &Term, word: &str) {
    window.send(format!("echo {word}-$((6*7))\n").as_bytes());
    window.wait_for_text(&format!("{word}-42"));
    window.wait_for_text("first-42");
}

/// Everything begun by one version is gone on with by the other: its client with the daemon of before, its daemon, and after a crash.
fn take_over((first, first_version): (&Path, &str), (second, second_version): (&Path, &str)) {
    let mut root = Root::new();
    root.use_program(first);
    root.start("api", BASH);
    let window = Term::open(&root, 80, 24, &["attach", "api"]);
    type_and_see(&window, "first");
    root.run(&["exec", "-l", "python", "import os; kept = {'answer': 42}"]).ok();
    let call = root.run(&["exec", "--detach", "x=kept; while [ ! -e go ]; do sleep 0.02; done; echo $x"]).ok().trim().to_owned();
    let before = living(&root);
    let first_daemon = root.daemon_pid();

    // the client of one, the daemon of the other
    root.use_program(second);
    assert_eq!((living(&root), root.daemon_pid()), (before.clone(), first_daemon));
    assert!(root.run(&["--version"]).ok().contains(second_version));
    assert_eq!(version_of_daemon(&root), first_version);
    let status = root.run(&["daemon", "status"]).ok();
    assert!(status.contains(first_version) && status.contains(second_version) && status.contains("daemon restart"), "{status}");
    let doctor = root.run(&["doctor"]).refused_or_printed();
    assert!(doctor.contains(first_version) && doctor.contains(second_version) && doctor.contains("daemon restart"), "{doctor}");
    let other_window = Term::open(&root, 80, 24, &["attach", "api"]);
    type_and_see(&other_window, "across");
    window.wait_for_text("across-42");

    let said = root.run(&["daemon", "restart"]).ok();
    assert!(said.contains(&format!("version {second_version}")), "{said}");
    assert_eq!(version_of_daemon(&root), second_version, "the version that was asked, whoever else waits for a daemon");
    assert!(root.daemon_pid() != first_daemon && !process::is_alive(first_daemon));
    assert_eq!(living(&root), before, "nothing was ended");
    // the window that had control has it again, the other one watches
    type_and_see(&other_window, "replaced");
    window.wait_for_text("replaced-42");
    root.wait_screen("api", "first-42");
    assert_eq!(root.run(&["eval", "kept['answer']"]).ok().trim(), "42");

    root.kill_daemon();
    assert_eq!(living(&root), before, "nor by a crash");
    type_and_see(&other_window, "crashed");
    std::fs::write(root.work().join("go"), "").expect("writes");
    let result = root.json(&["result", &call, "--wait", "--json"]);
    assert_eq!((&result["exitCode"], &result["stdout"]), (&json!(0), &json!("kept\n")), "{result}");

    // and back again, to what the first one knows
    root.use_program(first);
    root.run(&["daemon", "restart"]).ok();
    assert_eq!(version_of_daemon(&root), first_version);
    assert_eq!(living(&root), before, "nor by going back");
    type_and_see(&other_window, "back");
    window.wait_for_text("back-42");
    drop((window, other_window));
}

#[test]
fn a_window_that_was_open_during_an_upgrade_starts_what_is_installed_now() {
    let mut root = Root::new();
    let installed = root.join("sessions-tui");
    copy_program(old_program(), &installed);
    root.use_program(&installed);
    root.start("api", BASH);
    let window = Term::open(&root, 80, 24, &["attach", "api"]);
    type_and_see(&window, "first");
    let daemon = root.daemon_pid();
    // as packages do it: another file takes the name
    let unpacked = root.join("sessions-tui.new");
    copy_program(new_program(), &unpacked);
    std::fs::rename(&unpacked, &installed).expect("a rename");

    process::kill(daemon);
    type_and_see(&window, "replaced");
    assert_eq!(version_of_daemon(&root), NEW_VERSION);
}

#[test]
fn promise_9_a_restart_by_a_program_that_is_too_old_for_the_database_stops_nothing() {
    let root = Root::new();
    root.start("api", BASH);
    let daemon = root.daemon_pid();
    let known: i64 = root.database().pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    // what a later version would have made of it
    root.database().pragma_update(None, "user_version", known + 1).expect("writes");
    let said = root.run(&["daemon", "restart"]).refused(5);
    assert!(said.contains("nothing was restarted"), "{said}");
    assert_eq!(root.daemon_pid(), daemon, "it goes on");
    root.database().pragma_update(None, "user_version", known).expect("writes");
    root.run(&["daemon", "restart"]).ok();
    assert_ne!(root.daemon_pid(), daemon);
}

/// What the first holders knew: orders up to `Terminate`, news up to `Taken`, and these fields of a greeting.
const OLD_ORDERS: std::ops::RangeInclusive<u8> = 1..=6;
const OLD_NEWS: std::ops::RangeInclusive<u8> = 64..=70;
const OLD_GREETING: [&str; 8] = ["runtime", "pid", "child", "size", "end", "answered", "suspended", "exit"];

/// Puts a holder of the first version in the place of a session's: its own, which then hears and says only what was known then.
fn make_old(socket: &Path) {
    let behind = socket.with_extension("behind");
    std::fs::rename(socket, &behind).expect("the socket moves");
    let listener = UnixListener::bind(socket).expect("listens");
    std::thread::spawn(move || {
        for daemon in listener.incoming() {
            let Ok(daemon) = daemon else { return };
            let Ok(holder) = UnixStream::connect(&behind) else { return };
            let (from_daemon, from_holder) = (daemon.try_clone().expect("a copy"), holder.try_clone().expect("a copy"));
            std::thread::spawn(move || pass_on(from_daemon, holder, |kind, body| OLD_ORDERS.contains(&kind).then(|| body.to_vec())));
            std::thread::spawn(move || {
                pass_on(from_holder, daemon, |kind, body| match kind {
                    64 => Some(old_greeting(body)),
                    _ => OLD_NEWS.contains(&kind).then(|| body.to_vec()),
                });
            });
        }
    });
}

fn old_greeting(body: &[u8]) -> Vec<u8> {
    let greeting: Value = serde_json::from_slice(&body[1..]).expect("a greeting");
    let old: serde_json::Map<String, Value> = OLD_GREETING.iter().map(|field| ((*field).to_owned(), greeting[*field].clone())).collect();
    [&body[..1], Value::Object(old).to_string().as_bytes()].concat()
}

/// Frames one way; what is not known is passed over. A read takes no descriptors along: the first holders gave none.
fn pass_on(mut from: UnixStream, mut to: UnixStream, known: impl Fn(u8, &[u8]) -> Option<Vec<u8>>) {
    let mut head = [0; 5];
    while from.read_exact(&mut head).is_ok() {
        let mut body = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
        if from.read_exact(&mut body).is_err() {
            break;
        }
        if let Some(body) = known(head[0], &body)
            && to.write_all(&frame(head[0], &body)).is_err()
        {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

#[test]
fn promise_9_a_holder_of_the_first_version_is_driven_by_the_daemon_of_now() {
    let root = Root::new();
    root.start_script("api", "echo up; while read -r line; do echo \"got $line\"; done; exit 3");
    root.wait_screen("api", "up");
    let program = root.program("api");
    root.run(&["daemon", "stop"]).ok();
    make_old(&wait_for_socket(&root));

    root.wait_screen("api", "up");
    assert_eq!(root.program("api"), program, "the same program goes on");
    root.run(&["send", "api", "--enter", "one"]).ok();
    root.wait_screen("api", "got one");
    let flood = "x".repeat(3000);
    for _ in 0..30 {
        root.run(&["send", "api", "--enter", &flood]).ok();
    }
    root.run(&["send", "api", "--enter", "two"]).ok();
    root.wait_screen("api", "got two");

    // it says what such a holder cannot do, and the program goes on
    let paused = root.run(&["pause", "api"]);
    let said = format!("{}{}", paused.stdout, paused.stderr);
    assert!(said.contains("before sessions-tui could freeze"), "{said}");
    root.run(&["resume", "api"]).ok();
    root.run(&["send", "api", "--enter", "three"]).ok();
    root.wait_screen("api", "got three");

    // once more, and a crash
    root.run(&["daemon", "restart"]).ok();
    root.kill_daemon();
    root.run(&["send", "api", "--enter", "four"]).ok();
    root.wait_screen("api", "got four");
    let found = root.run(&["search", "got one"]).ok();
    assert!(found.contains("got one"), "{found}");
    root.run(&["send", "api", "--key", "ctrl-d"]).ok();
    root.wait_status("api", "failed");
    assert_eq!(root.status("api").1, "exit code 3", "its exit is known");
    wait_until("the holder to be gone", || root.holders().is_empty());
}

/// The only holder's, without a daemon to ask.
fn wait_for_socket(root: &Root) -> std::path::PathBuf {
    std::fs::read_dir(root.join("run"))
        .expect("a folder")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "sock") && *path != root.socket())
        .expect("a holder's socket")
}

#[test]
fn promise_9_clients_of_before_and_after_are_heard_or_told() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    // the first clients said no more than this
    let mut old = Wire::connect(&root.socket());
    old.say(&json!({"hello": {"protocol": 1, "version": "0.0.1", "pid": 1}}));
    assert_eq!(old.line().expect("a hello")["hello"]["protocol"], 1);
    assert!(old.call(1, json!({"request": "list"}))["ok"].is_array());
    // a field and a request of tomorrow
    assert!(old.call(2, json!({"request": "list", "from_tomorrow": true}))["ok"].is_array());
    let refusal = old.call(3, json!({"request": "teleport"}));
    assert!(
        refusal["failure"]["message"].as_str().is_some_and(|text| text.contains("teleport") && text.contains("daemon restart")),
        "{refusal}"
    );
    // another protocol: told what to do, and allowed to do it
    let mut newer = Wire::connect(&root.socket());
    newer.say(&json!({"hello": {"protocol": 2, "version": "9.0.0", "pid": 1, "tongue": "new"}}));
    assert_eq!(newer.line().expect("a hello")["hello"]["protocol"], 1);
    let refusal = newer.call(1, json!({"request": "list"}));
    assert!(refusal["failure"]["message"].as_str().is_some_and(|text| text.contains("daemon restart")), "{refusal}");
    assert!(newer.call(2, json!({"request": "stop", "restart": true}))["ok"].is_object());
}
