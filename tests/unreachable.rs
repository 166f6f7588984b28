//! Holders that cannot be reached: visible with the reason, answered for within seconds, and used again when they are back.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Root, Term, process, wait_until, wire};

/// A command on a stopped holder must answer within this time.
const SOON: Duration = Duration::from_secs(5);

#[track_caller]
fn soon<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = act();
    assert!(began.elapsed() < SOON + Duration::from_secs(1), "{what} took {:?}", began.elapsed());
    outcome
}

#[test]
fn a11_a_stopped_holder_is_visible_and_nothing_is_claimed_of_it() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    let holder = root.holder("api");
    process::signal(holder, Signal::STOP);
    let why = format!("its holder (pid {holder}) is stopped");
    wait_until("ls to say so", || root.run(&["ls"]).ok().contains("is stopped"));
    for args in [&["show", "api"][..], &["daemon", "status"], &["doctor"]] {
        let said = root.run(args);
        assert!(said.stdout.contains(&why), "{args:?}: {said:?}");
    }
    let refusal = soon("pause", || root.run(&["pause", "api"]).refused(1));
    assert!(refusal.contains(&why) && refusal.contains("nothing was changed"), "{refusal}");
    assert_eq!(root.status("api").0, "active", "it is not told as paused");
    process::signal(holder, Signal::CONT);
    root.run(&["pause", "api"]).ok();
    assert_eq!(root.status("api").0, "paused");
    process::signal(holder, Signal::STOP);
    let refusal = soon("resume", || root.run(&["resume", "api"]).refused(1));
    assert!(refusal.contains(&why), "{refusal}");
    soon("kill", || root.run(&["kill", "api"]).ok());
}

#[test]
fn a11_a_new_daemon_says_which_holder_it_cannot_reach_and_uses_it_when_it_is_back() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    let holder = root.holder("api");
    process::signal(holder, Signal::STOP);
    root.kill_daemon();
    root.run(&["ls"]).ok();
    let row = root.session("api");
    assert!(row["unreachable"].as_str().is_some_and(|why| why.contains("is stopped")), "{row}");
    let refusal = soon("pause", || root.run(&["pause", "api"]).refused(1));
    assert!(refusal.contains("is stopped"), "{refusal}");
    assert_eq!(root.status("api").0, "active");
    process::signal(holder, Signal::CONT);
    wait_until("it to be used again", || root.session("api")["unreachable"].is_null());
    root.run(&["pause", "api"]).ok();
    root.run(&["resume", "api"]).ok();
}

#[test]
fn a11_a_timeout_on_a_stopped_holder_answers_and_does_not_kill_the_interpreter() {
    let root = Root::new();
    let first = root.run(&["exec", "-l", "python", "import os; x = 41; print(os.getpid())"]).ok();
    let interpreter: u32 = first.trim().parse().expect("a pid");
    let holder = process::stat(interpreter).expect("it runs").parent;
    process::signal(holder, Signal::STOP);
    let late = soon("exec", || root.run(&["exec", "-l", "python", "--timeout", "1s", "--json", "import time; time.sleep(60)"]));
    assert!(late.stdout.contains("is stopped"), "{late:?}");
    // longer than it takes to use all force
    std::thread::sleep(Duration::from_secs(6));
    process::signal(holder, Signal::CONT);
    assert_eq!(root.run(&["exec", "-l", "python", "print(x + 1)"]).ok(), "42\n", "it was only stopped");
    assert!(process::is_alive(interpreter));
}

#[test]
fn a11_everything_can_be_ended_while_a_holder_is_stopped() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    root.start("web", &["sleep", "1000"]);
    let programs = [root.program("api"), root.program("web")];
    process::signal(root.holder("api"), Signal::STOP);
    let said = soon("daemon stop", || root.run(&["daemon", "stop", "--all", "--yes"]).ok());
    assert!(said.contains("2 sessions ended"), "{said}");
    assert!(!programs.into_iter().any(process::is_alive));
}

/// Answers in the place of a holder until it is dropped; the holder itself lives on behind it.
struct Impostor {
    socket: PathBuf,
    aside: PathBuf,
    is_over: Arc<AtomicBool>,
}

impl Impostor {
    fn new(socket: &Path, says: &[u8]) -> Self {
        let aside = socket.with_extension("aside");
        std::fs::rename(socket, &aside).expect("the holder has a socket");
        let listener = UnixListener::bind(socket).expect("binds");
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, says) = (is_over.clone(), says.to_vec());
        std::thread::spawn(move || {
            let mut open = Vec::new();
            while let Ok((mut client, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let _ = client.read(&mut [0; 64]);
                let _ = client.write_all(&says);
                open.push(client);
            }
        });
        Self { socket: socket.to_owned(), aside, is_over }
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = std::os::unix::net::UnixStream::connect(&self.socket);
        std::fs::rename(&self.aside, &self.socket).expect("the holder has its socket again");
    }
}

/// A program and an interpreter whose holders answer with `says`: visible with the reason, answered for in time, used again.
fn a_holder_that_says(says: &[u8], reason: &str) {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    let (program, socket) = (root.program("api"), root.holder_socket("api"));
    root.start("calc", &["sleep", "1000"]);
    let first = root.run(&["exec", "-s", "calc", "-l", "python", "import os; x = 41; print(os.getpid())"]).ok();
    let interpreter: u32 = first.trim().parse().expect("a pid");
    let holder = process::stat(interpreter).expect("it runs").parent;
    let shown = root.json(&["show", "calc", "--json"]);
    let runtime =
        shown["runtimes"].as_array().expect("a list").iter().find(|runtime| runtime["holder_pid"] == holder).expect("it is shown");
    let other = root.join("run").join(format!("{}.sock", runtime["id"].as_str().expect("an id").replace('-', "")));
    root.kill_daemon();
    let impostors = [Impostor::new(&socket, says), Impostor::new(&other, says)];
    wait_until("ls to say so", || root.run(&["ls"]).ok().contains(&reason[..8]));
    for args in [&["show", "api"][..], &["daemon", "status"], &["doctor"]] {
        let said = root.run(args);
        assert!(said.stdout.contains(reason), "{args:?}: {said:?}");
    }
    let dashboard = Term::open(&root, 200, 50, &[]);
    dashboard.wait_for_text("its holder (pid");
    for (args, code) in [(&["pause", "api"][..], 1), (&["exec", "-s", "calc", "-l", "python", "--timeout", "1s", "print(x)"], 125)] {
        let refusal = soon(args[0], || root.run(args).refused(code));
        assert!(refusal.contains(reason) && refusal.contains("nothing was changed"), "{args:?}: {refusal}");
    }
    assert_eq!(root.status("api").0, "active", "it is not told as paused");
    assert!(process::is_alive(program) && process::is_alive(interpreter));
    drop(impostors);
    wait_until("both to be used again", || root.session("api")["unreachable"].is_null() && root.session("calc")["unreachable"].is_null());
    assert_eq!(root.run(&["exec", "-s", "calc", "-l", "python", "print(x + 1)"]).ok(), "42\n");
    assert_eq!(root.program("api"), program);
    wait_until("the dashboard to show it", || !dashboard.text().contains("its holder (pid"));
    root.run(&["pause", "api"]).ok();
    root.kill_daemon();
    let impostor = Impostor::new(&socket, says);
    wait_until("ls to say so", || root.run(&["ls"]).ok().contains(&reason[..8]));
    for args in [["resume", "api"], ["kill", "api"]] {
        let refusal = soon(args[0], || root.run(&args).refused(1));
        assert!(refusal.contains(reason), "{args:?}: {refusal}");
    }
    drop(impostor);
    wait_until("the end that was asked for", || !process::is_alive(program));
    root.wait_status("api", "ended");
}

#[test]
fn a11_a_holder_of_a_newer_version_is_visible_and_used_again_when_it_is_back() {
    a_holder_that_says(&wire::frame(64, b"\x09{}"), "speaks version 9 of its protocol, newer than this daemon: upgrade sessions-tui");
}

#[test]
fn a11_a_holder_that_sends_garbage_is_visible_and_used_again_when_it_is_back() {
    a_holder_that_says(b"\xff\xff\xff\xff HTTP/1.1 400 Bad Request\r\n\r\n", "answers with garbage");
}

#[test]
fn a11_the_dashboard_shows_a_holder_that_is_stopped_and_continued() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    let dashboard = Term::open(&root, 200, 50, &[]);
    dashboard.wait_for_text("api");
    let holder = root.holder("api");
    process::signal(holder, Signal::STOP);
    dashboard.wait_for_text("its holder (pid");
    dashboard.send(b"i");
    dashboard.wait_for_text(&format!("its holder (pid {holder}) is stopped: `kill -CONT {holder}` lets it go on"));
    process::signal(holder, Signal::CONT);
    wait_until("the page to show it", || !dashboard.text().contains("is stopped"));
    dashboard.send(b"q");
    wait_until("the row to show it", || dashboard.text().contains("api") && !dashboard.text().contains("its holder"));
}
