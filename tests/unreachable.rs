//! Holders that cannot be reached: visible with the reason, answered for within seconds, and used again when they are back.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Root, process, wait_until};

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
