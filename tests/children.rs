//! What a program gets from us, and what becomes of it and its children.

use std::process::Stdio;

use rustix::process::Signal;

use crate::support::root::finish;
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

/// Runs a command with signals blocked and ignored, as an odd starter (a supervisor, a debugger, a CI runner) may have them.
const ODD_STARTER: &str = "import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR2, signal.SIGWINCH})
for name in 'TSTP TTIN TTOU USR1 ALRM XFSZ HUP INT QUIT'.split():
    signal.signal(getattr(signal, 'SIG' + name), signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn the_starters_signals_do_not_reach_sessions() {
    let root = Root::new();
    let odd = |args: &[&str]| {
        let mut starter = std::process::Command::new("python3");
        starter.args(["-c", ODD_STARTER]).arg(root.executable()).args(args);
        starter.env_clear().envs(root.environment()).current_dir(root.work());
        starter.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(starter, b"", args)
    };
    odd(&["new", "-d", "-n", "one", "--", "sleep", "1000"]).ok();
    // bash ignores SIGQUIT by itself
    let interpreter = odd(&["exec", "-l", "python", "import os; print(os.getpid())"]).ok().trim().parse().expect("a pid");
    for pid in [root.program("one"), interpreter] {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        for line in status.lines().filter(|line| line.starts_with("SigBlk:") || line.starts_with("SigIgn:")) {
            let signals = u64::from_str_radix(line.split_whitespace().last().expect("a set"), 16).expect("hexadecimal");
            // python ignores SIGPIPE and SIGXFSZ by itself
            let own = if pid == interpreter && line.starts_with("SigIgn:") { (1 << 12) | (1 << 24) } else { 0 };
            assert_eq!(signals & 0x7fff_ffff & !own, 0, "{}: {line}", process::command(pid));
        }
    }
    // ends are seen: SIGCHLD reaches the holder
    root.run(&["kill", "one"]).ok();
    odd(&["new", "-d", "-n", "two", "--", "true"]).ok();
    root.run(&["wait", "two", "--for", "exit", "--timeout", "20s"]).ok();
}

#[test]
fn b4_core_files_are_off_for_ourselves_and_as_before_for_programs() {
    let root = Root::new();
    let script = "ulimit -S -c 4096; exec \"$0\" \"$@\"";
    let mut starter = std::process::Command::new("bash");
    starter.args(["-c", script]).arg(root.executable()).args(["new", "-d", "-n", "one", "--", "sleep", "1000"]);
    starter.env_clear().envs(root.environment()).current_dir(root.work());
    starter.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(starter, b"", &["new"]).ok();
    let limit = |pid: u32| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("its limits");
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a line").to_owned();
        line.split_whitespace().nth(4).expect("a number").to_owned()
    };
    assert_eq!((limit(root.daemon_pid()).as_str(), limit(root.holder("one")).as_str()), ("0", "0"));
    // bash counts in kibibytes
    assert_eq!(limit(root.program("one")), (4096 * 1024).to_string());
    let interpreter = root.run(&["exec", "-l", "bash", "echo $$"]).ok().trim().parse().expect("a pid");
    assert_eq!(limit(interpreter), (4096 * 1024).to_string());
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
    assert!(root.run(&["kill", "stubborn"]).ok().contains("stubborn is ended"));
    wait_until("everything of it to be gone", || !process::is_alive(program) && !process::is_alive(holder));
}

#[test]
fn limits_and_the_mask_of_new_files_are_not_the_daemons() {
    let root = Root::new();
    // the daemon raises its own limit of descriptors, and keeps its files to itself
    let start = |name: &str, before: &str| {
        let binary = env!("CARGO_BIN_EXE_sessions-tui");
        let mut shell = std::process::Command::new("bash");
        shell.args([
            "-c",
            &format!("{before}; exec {binary} new -d -n {name} -- bash -c 'ulimit -Sn > {name}; umask >> {name}; echo END >> {name}'"),
        ]);
        shell.env_clear().envs(root.environment()).current_dir(root.work());
        shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        finish(shell, b"", &["new"]).ok();
        wait_until("its limits", || root.wait_file(&format!("work/{name}")).ends_with("END\n"));
        root.wait_file(&format!("work/{name}"))
    };
    assert_eq!(start("first", "ulimit -Sn 512; umask 027"), "512\n0027\nEND\n");
}

#[test]
fn a_daemon_started_from_inside_a_session_does_not_end_with_it() {
    let root = Root::new();
    let binary = env!("CARGO_BIN_EXE_sessions-tui");
    root.start("inside", crate::support::BASH);
    root.start("other", &["sleep", "1000"]);
    root.run(&["daemon", "stop"]).ok();
    // typed before the daemon is gone, run after it: the next daemon is a child of this session
    root.run(&["send", "inside", "--enter", &format!("{binary} daemon stop; {binary} new -d -n born-inside -- sleep 1000")]).ok();
    wait_until("the session made from inside", || {
        root.run(&["show", "born-inside"]).code == 0 && root.runtime("born-inside")["state"]["state"] == "running"
    });
    let (daemon, others) = (root.daemon_pid(), [root.program("other"), root.program("born-inside")]);
    let holder = root.holder("inside");
    root.run(&["kill", "inside"]).ok();
    wait_until("the holder to leave", || !process::is_alive(holder));
    assert!(process::is_alive(daemon), "the daemon goes on");
    assert!(others.iter().all(|pid| process::is_alive(*pid)), "and so do the others");
    process::kill(root.holder("born-inside"));
    root.run(&["wait", "born-inside", "--for", "exit", "--timeout", "20s"]).ok();
    assert!(process::is_alive(daemon) && process::is_alive(others[0]), "also when one of them is lost");
}

#[test]
fn a_child_that_prints_for_ever_does_not_keep_an_ended_program_active() {
    let root = Root::new();
    root.start_script("noisy", "(trap '' HUP; exec yes) & sleep 0.3; exit 3");
    root.run(&["wait", "noisy", "--for", "exit", "--timeout", "20s"]).ok();
    assert_eq!(root.status("noisy"), ("failed".into(), "exit code 3".into()));
}

#[test]
fn a_program_that_asks_and_never_reads_costs_no_memory() {
    let root = Root::new();
    root.start_script("asker", "stty raw -echo; i=0; while [ $i -lt 40000 ]; do printf '\\033[c\\033[c\\033[c\\033[c\\033[c'; i=$((i+1)); done; printf asked; exec sleep 1000");
    root.wait_screen("asker", "asked");
    let private = process::private_kib(root.holder("asker"));
    assert!(private < 1024, "{private} KiB");
}
