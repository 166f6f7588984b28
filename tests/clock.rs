//! A client whose clock is wrong: no command panics, whatever the clock says.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Root, Term};

/// A library that makes the wall clock of a program stand in 1966.
const BEFORE_1970: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int outcome = real(id, now);
    if (outcome == 0 && id == CLOCK_REALTIME) now->tv_sec -= 60L * 365 * 24 * 3600;
    return outcome;
}
"#;

/// Our program with that library.
fn wrapped(root: &Root) -> std::path::PathBuf {
    let (source, library, wrapper) = (root.join("clock.c"), root.join("clock.so"), root.join("wrapper"));
    std::fs::write(&source, BEFORE_1970).expect("writes");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status().expect("cc runs");
    assert!(made.success());
    let script = format!("#!/bin/sh\nLD_PRELOAD='{}' exec '{}' \"$@\"\n", library.display(), env!("CARGO_BIN_EXE_sessions-tui"));
    std::fs::write(&wrapper, script).expect("writes");
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).expect("may run");
    wrapper
}

#[test]
#[cfg(target_os = "linux")]
fn a3_a_clock_before_1970_does_not_panic_the_client() {
    let mut root = Root::new();
    let wrapper = wrapped(&root);
    let year = Command::new("date").arg("+%Y").env("LD_PRELOAD", root.join("clock.so")).output().expect("date runs");
    assert!(year.stdout.starts_with(b"196"), "the clock is not wrong: {year:?}");
    // the daemon has the right clock
    root.start("api", &["bash", "-c", "echo hello; exec sleep 1000"]);
    root.run(&["exec", "-l", "python", "1"]).ok();
    root.use_program(&wrapper);
    for args in [
        &["new", "-d", "-n", "late", "--", "sleep", "1000"][..],
        &["ls"],
        &["ls", "--all", "--json"],
        &["show", "api"],
        &["explain", "api"],
        &["send", "api", "x"],
        &["exec", "-s", "api", "-l", "python", "--timeout", "5s", "print(1)"],
        &["history", "api"],
        &["events", "api"],
        &["search", "hello"],
        &["stats"],
        &["context", "api"],
        &["daemon", "status"],
        &["doctor"],
        &["wait", "api", "--for", "text=hello", "--timeout", "5s"],
        &["export", "api", "-o", "api.cast"],
        &["pause", "api"],
        &["resume", "api"],
        &["kill", "late"],
        &["rm", "late"],
    ] {
        let done = root.run(args);
        assert!(!done.stderr.contains("panicked") && done.code != 101, "{args:?}: {done:?}");
    }
    let dashboard = Term::open(&root, 100, 30, &[]);
    dashboard.wait_for_text("api");
    dashboard.wait_for_text("hello");
    dashboard.send(b"i");
    dashboard.wait_for_text("up since");
    dashboard.send(b"qT");
    dashboard.wait_for_text("statistics");
    dashboard.send(b"qq");
    // a daemon that starts with such a clock serves all the same
    root.kill_daemon();
    assert!(root.run(&["ls"]).ok().contains("api"));
}
