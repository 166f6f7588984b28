//! What a program gets from us, and what becomes of it and its children.

use rustix::process::Signal;

use crate::support::{Root, process, wait_until};

#[test]
fn a_program_has_clean_descriptors_signals_and_a_session_of_its_own() {
    let root = Root::new();
    let script = "tty > tty; yes | head -1 > yes; echo done; exec sleep 1000";
    root.start_script("clean", script);
    root.wait_screen("clean", "done");
    let pid = root.program("clean");
    wait_until("the last program of the script", || process::command(pid) == "sleep 1000");
    let mut descriptors: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("its descriptors")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    descriptors.sort();
    assert_eq!(descriptors, ["0", "1", "2"]);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    for line in status.lines().filter(|line| line.starts_with("SigBlk:") || line.starts_with("SigIgn:")) {
        let signals = u64::from_str_radix(line.split_whitespace().last().expect("a set"), 16).expect("hexadecimal");
        // those above 31 are the C library's own affair
        assert_eq!(signals & 0x7fff_ffff, 0, "no signal is blocked or ignored: {line}");
    }
    assert!(root.wait_file("work/tty").starts_with("/dev/pts/"));
    assert_eq!(root.wait_file("work/yes"), "y\n");
    let stat = process::stat(pid).expect("runs");
    assert_eq!(stat.session, pid, "it leads its own session");
    assert_eq!(stat.parent, root.holder("clean"));
}

#[test]
fn exit_codes_and_signals_are_told_as_they_were() {
    let root = Root::new();
    root.start_script("zero", "exit 0");
    root.start_script("three", "exit 3");
    let victim = root.start_script("victim", "exec sleep 1000");
    assert_eq!(victim["status"], "active");
    process::signal(root.program("victim"), Signal::SEGV);
    for (name, status, reason) in
        [("zero", "completed", "exit code 0"), ("three", "failed", "exit code 3"), ("victim", "failed", "signal SEGV")]
    {
        root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
        assert_eq!(root.status(name), (status.into(), reason.into()), "{name}");
    }
}

#[test]
fn what_a_program_leaves_behind_is_still_known() {
    let root = Root::new();
    // double fork and a session of its own: nobody's child any more, but for the subreaper
    root.start_script(
        "leaver",
        "(setsid sleep 1000 & echo $! > pid); while [ $(ps -o sid= -p $(cat pid)) != $(cat pid) ]; do :; done; exit 0",
    );
    root.run(&["wait", "leaver", "--for", "exit", "--timeout", "20s"]).ok();
    let left: u32 = root.wait_file("work/pid").trim().parse().expect("a pid");
    let holder = root.holder("leaver");
    wait_until("the holder to adopt it", || process::stat(left).is_some_and(|stat| stat.parent == holder));
    assert!(process::is_alive(holder), "the holder stays while its program's children do");
    // also after a restart, which must not take it for a session of its own
    root.kill_daemon();
    assert_eq!(root.json(&["ls", "--all", "--json"]).as_array().map(Vec::len), Some(1));
    root.run(&["kill", "leaver"]).ok();
    assert!(!process::is_alive(left));
    wait_until("the holder to leave", || !process::is_alive(holder));
    root.run(&["kill", "leaver"]).refused(4);
}

#[test]
fn a_program_that_ignores_hang_ups_is_killed_in_the_end() {
    let root = Root::new();
    root.start_script("stubborn", "trap '' HUP TERM INT; (trap '' HUP TERM; setsid sleep 1000) & echo $$ ready; while :; do sleep 1; done");
    root.wait_screen("stubborn", "ready");
    let (program, holder) = (root.program("stubborn"), root.holder("stubborn"));
    assert!(root.run(&["kill", "stubborn"]).ok().contains("failed: killed"));
    wait_until("everything of it to be gone", || !process::is_alive(program) && !process::is_alive(holder));
}
