//! Recordings as they are on disk: frames, times, segments, torn tails, a full disk.

use std::process::Command;

use serde_json::Value;

use crate::support::recording::{self, Kind};
use crate::support::{BASH, Root, Term, process, wait_until};

#[test]
fn promise_1_everything_said_is_recorded_with_times_and_the_exit_is_last() {
    let root = Root::new();
    root.start_script("short", "echo first; printf 'no newline'; exit 7");
    root.run(&["wait", "short", "--for", "exit", "--timeout", "20s"]).ok();
    let dir = root.recording("short");
    assert_eq!(recording::output(&dir), b"first\r\nno newline");
    let frames = recording::frames(&dir);
    assert_eq!(frames.first().map(|frame| frame.kind.clone()), Some(Kind::Header));
    let last = frames.last().expect("frames");
    assert_eq!((last.kind.clone(), last.body.as_slice()), (Kind::Exit, &[0, 7, 0, 0, 0][..]));
    assert!(frames.is_sorted_by_key(|frame| frame.time), "times rise");
}

#[test]
fn segments_roll_the_oldest_go_and_the_screen_stays_right() {
    let root = Root::new();
    root.config("[recording]\nmax_mib = 32\ncompress = false\n");
    root.start_script("long", "yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 70000000; echo; echo the-end; exec sleep 1000");
    root.wait_screen("long", "the-end");
    let segments = recording::segments(&root.recording("long"));
    assert!((2..=3).contains(&segments.len()), "{segments:?}");
    assert!(!segments[0].ends_with("0000000000000000.rec"), "the first has gone: {segments:?}");
    let before = root.json(&["screen", "long", "--json"]);
    root.kill_daemon();
    assert_eq!(root.json(&["screen", "long", "--json"]), before);
    let scrolled = root.run(&["screen", "long", "--scrollback", "1000"]).ok();
    assert!(scrolled.lines().count() > 1000 && scrolled.contains("the-end"));
}

#[test]
fn a_torn_tail_is_left_and_the_rest_is_shown() {
    let root = Root::new();
    root.start_script("torn", "echo whole line; echo; exec sleep 1000");
    root.wait_screen("torn", "whole line");
    let segment = recording::segments(&root.recording("torn")).pop().expect("a segment");
    let (holder, daemon) = (root.holder("torn"), root.daemon_pid());
    process::kill(daemon);
    process::kill(holder);
    // as if the holder had died in the middle of a write
    let mut bytes = std::fs::read(&segment).expect("reads");
    let whole = bytes.len();
    bytes.extend_from_slice(&[2, 100, 0, 0, 0, 1, 2, 3]);
    std::fs::write(&segment, &bytes).expect("writes");
    assert_eq!(root.status("torn"), ("failed".into(), "lost".into()));
    assert_eq!(std::fs::metadata(&segment).expect("there").len(), whole as u64 + 8, "nothing was removed");
    assert_eq!(root.runtime("torn")["recording"]["end"], whole);
    assert!(root.screen("torn").contains("whole line"), "an ended session still has its screen");
}

#[test]
fn changes_of_size_are_recorded_where_they_happened() {
    let root = Root::new();
    root.start("shell", BASH);
    let term = Term::open(&root, 80, 24, &["attach", "shell"]);
    term.wait_for_text("$");
    term.send(b"echo small-$((40+2))\r");
    term.wait_for_text("small-42");
    term.resize(100, 30);
    wait_until("the new size", || root.session("shell")["size"]["cols"] == 100);
    term.send(b"echo large-$((40+2))\r");
    term.wait_for_text("large-42");
    let frames = recording::frames(&root.recording("shell"));
    let place = |wanted: &dyn Fn(&recording::Frame) -> bool| frames.iter().position(wanted).expect("a frame");
    let said = |text: &'static str| move |frame: &recording::Frame| String::from_utf8_lossy(&frame.body).contains(text);
    let resize = place(&|frame| frame.kind == Kind::Resize);
    assert_eq!(frames[resize].body, [100, 0, 30, 0]);
    assert!(place(&said("small-42")) < resize && resize < place(&said("large-42")));
    assert_eq!(frames.iter().filter(|frame| frame.kind == Kind::Resize).count(), 1);
}

#[test]
fn promise_10_a_long_recording_has_its_screen_after_kill_9() {
    let root = Root::new();
    let script = "yes \"$(printf '\\033[3%dmcolour %d\\033[0m ' 1 1 2 2 3 3)\" | head -c 60000000; printf '\\nlast words'; exec sleep 1000";
    root.start_script("long", script);
    root.wait_screen("long", "last words");
    let before = root.json(&["screen", "long", "--json"]);
    root.kill_daemon();
    assert_eq!(root.json(&["screen", "long", "--json"]), before);
    // and once more without any keyframe to start from
    let dir = root.recording("long");
    root.kill_daemon();
    for entry in std::fs::read_dir(dir).expect("lists").filter_map(Result::ok) {
        if entry.path().extension().is_some_and(|extension| extension == "keys") {
            std::fs::remove_file(entry.path()).expect("removes");
        }
    }
    assert_eq!(root.json(&["screen", "long", "--json"]), before);
}

/// The root on a small disk of its own, if this machine lets us mount one.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(root: &Root) -> Option<Self> {
        Self::mount_at(root.join("state"))
    }

    fn mount_at(path: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&path).expect("a folder");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs"]).arg(&path).status();
        status.is_ok_and(|status| status.success()).then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_disk_programs_can_be_ended_and_a_daemon_starts() {
    let root = Root::new();
    let Some(disk) = SmallDisk::mount(&root) else {
        println!("not checked: no file system can be mounted here");
        return;
    };
    root.start_script("killed", "echo up; exec cat");
    root.start_script("ends", "echo up; read line; exit 3");
    let program = root.program("killed");
    let ballast = disk.0.join("ballast");
    let _ = Command::new("dd").args(["if=/dev/zero", "bs=4k", "status=none"]).arg(format!("of={}", ballast.display())).status();
    // what is left in files that have room inside is used up too
    for n in 0..200 {
        root.run(&["event", "killed", "filler", "--data", &format!("\"{n}{}\"", "x".repeat(2000))]);
    }
    root.run(&["kill", "killed"]).ok();
    wait_until("the program to be gone", || !crate::support::process::is_alive(program));
    root.run(&["send", "ends", "--enter", "go"]).ok();
    let waited = root.json(&["wait", "ends", "--for", "exit", "--timeout", "20s", "--json"]);
    assert_eq!(waited["exit"]["code"], 3, "{waited}");
    root.kill_daemon();
    let listed = root.run(&["ls", "--all"]).ok();
    assert!(listed.contains("killed") && listed.contains("ends"), "{listed}");
    std::fs::remove_file(&ballast).expect("space again");
    wait_until("the ends to be stored", || root.status("ends").0 == "failed" && root.session("killed")["ended_at"].is_string());
    root.run(&["daemon", "stop", "--all", "--yes"]).ok();
}

#[test]
fn a_full_disk_suspends_the_recording_never_the_program() {
    let root = Root::new();
    let Some(disk) = SmallDisk::mount(&root) else {
        println!("not checked: no file system can be mounted here");
        return;
    };
    root.start("shell", &["bash", "--norc", "--noprofile"]);
    root.run(&["send", "shell", "--enter", "echo before"]).ok();
    root.wait_screen("shell", "\nbefore");
    let ballast = disk.0.join("ballast");
    // everything that is left, to the last byte
    let _ = Command::new("dd").args(["if=/dev/zero", "bs=4k", "status=none"]).arg(format!("of={}", ballast.display())).status();
    root.run(&["send", "shell", "--enter", "seq 1 20000; echo while-$((40+2))-full"]).ok();
    root.wait_screen("shell", "while-42-full");
    let suspended = |root: &Root| -> Value { root.runtime("shell")["recording"]["suspended"].clone() };
    assert!(suspended(&root).as_str().is_some_and(|why| why.contains("No space")), "{}", suspended(&root));
    assert!(root.run(&["daemon", "status"]).ok().contains("not being recorded"));
    std::fs::remove_file(&ballast).expect("space again");
    // by itself: nobody types, nothing is printed
    wait_until("the recording to go on", || suspended(&root).is_null());
    root.run(&["send", "shell", "--enter", "echo after"]).ok();
    root.wait_screen("shell", "\nafter");
    let frames = recording::frames(&root.recording("shell"));
    assert!(frames.iter().any(|frame| frame.kind == Kind::Gap && frame.body != [0; 8]), "the gap is marked with its size");
    let events = root.run(&["events", "shell", "--json"]).ok();
    assert!(events.contains("recording_resumed"), "{events}");
    root.kill_daemon();
    let screen = root.screen("shell");
    assert!(screen.contains("after"), "{screen}");
    root.run(&["daemon", "stop", "--all", "--yes"]).ok();
}

/// The disk becomes full in the middle of execs, again and again, and the daemon is killed in between: what an exec printed is in
/// its result, or the result says how much is lost.
#[test]
fn on_a_full_disk_an_exec_never_loses_output_silently() {
    let root = Root::new();
    // the database has room: execs are accepted
    let Some(disk) = SmallDisk::mount_at(root.join("state/recordings")) else {
        println!("not checked: no file system can be mounted here");
        return;
    };
    let languages =
        [("bash", "printf %01500d 7"), ("python", "print('7' * 1500, end='')"), ("node", "process.stdout.write('7'.repeat(1500))")];
    for (language, code) in languages {
        root.run(&["exec", "-l", language, code]).ok();
    }
    let ballast = disk.0.join("ballast");
    let mut answered = 0;
    for round in 0..4 {
        let _ = Command::new("dd").args(["if=/dev/zero", "bs=4k", "status=none"]).arg(format!("of={}", ballast.display())).status();
        for (language, code) in languages.into_iter().cycle().take(12) {
            let output = root.run(&["exec", "-l", language, "--json", code]);
            let Ok(result) = serde_json::from_str::<Value>(&output.stdout) else { continue };
            if result["exitCode"] != 0 {
                continue;
            }
            answered += 1;
            let printed = result["stdout"].as_str().map_or(0, str::len);
            assert_eq!(printed, 1500, "{language}, round {round}: {result}");
            // as it is printed, too
            let output = root.run(&["exec", "-l", language, code]);
            assert_eq!((output.code, output.stdout.len()), (0, 1500), "{language}, round {round}: {}", output.stderr);
        }
        // it prints while the disk is full and no daemon is there
        let detached = root.json(&["exec", "-l", "bash", "--json", "--detach", "echo >begun; sleep 0.3; printf %01500d 7; echo >printed"]);
        root.wait_file("work/begun");
        root.kill_daemon();
        root.wait_file("work/printed");
        for file in ["work/begun", "work/printed"] {
            std::fs::remove_file(root.join(file)).expect("removes");
        }
        std::fs::remove_file(&ballast).expect("space again");
        let result = root.json(&["result", detached["execId"].as_str().expect("an id"), "--wait", "--json"]);
        let printed = result["stdout"].as_str().map_or(0, str::len);
        let is_told = result["note"].as_str().is_some_and(|note| note.contains("1500 bytes of its output are lost"));
        assert!(printed == 1500 || is_told, "round {round}: {printed} bytes: {result}");
    }
    assert!(answered > 20, "only {answered} execs were answered");
    root.run(&["daemon", "stop", "--all", "--yes"]).ok();
}
