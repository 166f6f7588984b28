//! Recordings under attack: floods beside everything that reads, packs and removes, and files that are damaged or gone.
//! Nothing but retention, `forget` and `rm` removes recorded bytes, and what is missing is reported.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{Root, recording, wait_until};

/// Prints `lines` numbered lines without conversion by the terminal, and leaves their SHA-256 in `$PWD/NAME.sum`.
fn flood(root: &Root, name: &str, lines: u32) {
    let script = format!(
        "stty raw -echo; seq -f {name}-%09.0f-0123456789abcdefghijklmnopqrstuvwxyz 1 {lines} | tee /dev/tty | sha256sum >{sum}.new; mv {sum}.new {sum}",
        sum = root.join(&format!("{name}.sum")).display()
    );
    root.start(name, &["bash", "-c", &script]);
}

/// Waits for the flood to be over, however busy the machine is.
fn printed_sum(root: &Root, name: &str) -> String {
    // the daemon is killed all the time
    while root.run(&["wait", name, "--for", "exit", "--timeout", "300s"]).code != 0 {}
    let sum = std::fs::read_to_string(root.join(&format!("{name}.sum"))).expect("a sum");
    sum.split(' ').next().expect("a sum").to_owned()
}

/// Ends the threads beside the test, also when it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn recorded_sum(dir: &Path) -> String {
    format!("{:x}", Sha256::digest(recording::output(dir)))
}

/// Promise 1, under everything that touches recordings. Rounds by `SESSIONS_STRESS_ROUNDS`, one in CI.
#[test]
fn floods_beside_upkeep_replay_search_forget_and_retention_lose_nothing() {
    let rounds: usize = std::env::var("SESSIONS_STRESS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let root = Root::new();
    root.config("[recording]\nmax_total_mib = 4000\nmax_age_days = 1\n");
    for round in 0..rounds {
        let names: Vec<String> = (0..2).map(|n| format!("flood{round}x{n}")).collect();
        for name in &names {
            flood(&root, name, 1_000_000);
        }
        // a long listing gives whoever lists twice time to be wrong
        for dir in names.iter().map(|name| root.recording(name)) {
            for n in 0..3000 {
                std::fs::write(dir.join(format!("other-{n}")), b"").expect("writes");
            }
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ends = Ends(&is_over);
            let busy = |args: Vec<String>| {
                while !is_over.load(Ordering::Relaxed) {
                    let args: Vec<&str> = args.iter().map(String::as_str).collect();
                    root.run(&args);
                }
            };
            for name in &names {
                let name = name.clone();
                scope.spawn(move || busy(vec!["export".into(), name, "--format".into(), "asciicast".into()]));
            }
            scope.spawn(move || busy(vec!["search".into(), "-000999999-".into()]));
            scope.spawn(|| {
                for n in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let other = format!("other{round}x{n}");
                    root.start_script(&other, "seq 100000; exit 0");
                    root.run(&["wait", &other, "--for", "exit", "--timeout", "30s"]).ok();
                    root.run(&["forget", &other]).ok();
                    root.run(&["cleanup", "--older-than", "0", "--dry-run"]).ok();
                    root.kill_daemon_at_once();
                }
            });
            let sums: Vec<String> = names.iter().map(|name| printed_sum(&root, name)).collect();
            drop(ends);
            for (name, sum) in names.iter().zip(sums) {
                assert_eq!(recorded_sum(&root.recording(name)), sum, "{name}: the recording is not what was printed");
            }
        });
        for name in &names {
            assert!(!root.kinds(name).contains(&"recording_gap".to_owned()), "{name}");
            root.run(&["rm", name]).ok();
        }
    }
}

fn segment_files(dir: &Path) -> Vec<PathBuf> {
    recording::segments(dir)
}

/// A session that has ended with three segments.
fn ended(root: &Root, name: &str) -> PathBuf {
    root.start_script(name, "stty raw; seq -f line-%09.0f-0123456789012345678901234567890123456789 1 650000; exit 0");
    root.run(&["wait", name, "--for", "exit", "--timeout", "60s"]).ok();
    let dir = root.recording(name);
    wait_until("its segments to be packed", || {
        let files = segment_files(&dir);
        files.len() >= 3 && files.iter().all(|file| file.extension().is_some_and(|extension| extension == "recz"))
    });
    dir
}

#[test]
fn a_gap_in_an_ended_recording_is_reported_and_passed_over() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("removed", |dir| std::fs::remove_file(&segment_files(dir)[1]).expect("removes")),
        ("truncated", |dir| {
            let file = std::fs::File::options().write(true).open(&segment_files(dir)[1]).expect("opens");
            file.set_len(file.metadata().expect("is there").len() / 2).expect("cuts");
        }),
        ("overwritten", |dir| {
            let path = &segment_files(dir)[1];
            let mut bytes = std::fs::read(path).expect("reads");
            let middle = bytes.len() / 2;
            bytes[middle..middle + 64].fill(0xff);
            std::fs::write(path, bytes).expect("writes");
        }),
        ("fifo", |dir| {
            let path = segment_files(dir)[1].clone();
            std::fs::remove_file(&path).expect("removes");
            assert!(std::process::Command::new("mkfifo").arg(path).status().expect("runs").success());
        }),
    ];
    let root = Root::new();
    for (name, _) in &harms {
        ended(&root, name);
    }
    root.kill_daemon();
    for (name, harm) in harms {
        let dir = root.recording(name);
        harm(&dir);
        let output = root.join(&format!("{name}.txt"));
        let refusal = root.run(&["export", name, "--format", "asciicast", "--raw", "-o", &output.to_string_lossy()]).refused(1);
        assert!(refusal.contains("incomplete") && refusal.contains(name), "{name}: {refusal}");
        let text = std::fs::read_to_string(&output).expect("was written all the same");
        assert!(text.contains("line-000000001-") && text.contains("line-000650000-"), "{name}: both ends are there");
        let missing = &root.runtime(name)["recording"]["missing"];
        assert!(missing[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{name}: {missing}");
        let shown = root.run(&["show", name]).ok();
        assert!(shown.contains("cannot be read"), "{shown}");
        wait_until("an event of it", || root.kinds(name).contains(&"recording_gap".to_owned()));
        let found = root.json(&["search", "line-000650000-", "--json", "-s", name]);
        assert!(!found.to_string().is_empty());
    }
    let doctor = root.run(&["doctor"]).refused_or_printed();
    for name in ["removed", "truncated", "overwritten", "fifo"] {
        assert!(doctor.contains(name), "{doctor}");
    }
    // one event for each, however often it is met
    root.kill_daemon();
    root.run(&["export", "removed", "--raw", "--format", "asciicast"]).refused(1);
    assert_eq!(root.kinds("removed").iter().filter(|kind| *kind == "recording_gap").count(), 1);
}

#[test]
fn a_recording_that_is_gone_or_belongs_to_another_session_is_reported() {
    let root = Root::new();
    for (name, text) in [("one", "first output"), ("two", "second output"), ("gone", "third output")] {
        root.start_script(name, &format!("echo {text}; exit 0"));
        root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
    }
    let (one, two, gone) = (root.recording("one"), root.recording("two"), root.recording("gone"));
    root.kill_daemon();
    let away = root.join("away");
    std::fs::rename(&one, &away).expect("renames");
    std::fs::rename(&two, &one).expect("renames");
    std::fs::rename(&away, &two).expect("renames");
    std::fs::remove_dir_all(&gone).expect("removes");
    for (name, foreign) in [("one", "second output"), ("two", "first output")] {
        let out = root.run(&["export", name, "--format", "text"]);
        assert!(!out.stdout.contains(foreign), "{name} shows another session's output: {}", out.stdout);
        assert!(out.refused(1).contains("another session"));
        assert!(!root.run(&["screen", name]).stdout.contains(foreign));
    }
    for name in ["one", "two", "gone"] {
        let missing = &root.runtime(name)["recording"]["missing"];
        assert!(missing[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{name}: {missing}");
        wait_until("an event of it", || root.kinds(name).contains(&"recording_gap".to_owned()));
    }
    let id = root.json(&["exec", "-s", "one", "--json", "echo printed by an exec"])["execId"].as_str().expect("an id").to_owned();
    let shown = root.json(&["show", "one", "--json"]);
    let runtimes = shown["runtimes"].as_array().expect("runtimes");
    let bash = runtimes.iter().find(|runtime| runtime["state"]["state"] == "running").expect("an interpreter");
    let dir = root.join("state/recordings").join(bash["id"].as_str().expect("an id").replace('-', ""));
    root.run(&["reset", "-s", "one", "-l", "bash"]).ok();
    assert_eq!(root.run(&["result", &id]).ok(), "printed by an exec\n");
    std::fs::remove_dir_all(&dir).expect("removes");
    assert!(root.run(&["result", &id]).refused(1).contains("cannot be read back"));
    // what was forgotten on purpose is no gap
    root.start_script("meant", "echo output; exit 0");
    root.run(&["wait", "meant", "--for", "exit", "--timeout", "20s"]).ok();
    root.run(&["forget", "meant"]).ok();
    root.kill_daemon();
    assert_eq!(root.runtime("meant")["recording"]["missing"], Value::Null);
}

/// Files of a live session are damaged under it: its program continues, and everything it prints afterwards is seen.
#[test]
fn new_output_is_seen_after_damage_to_a_live_recording() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("truncated", |dir| {
            let file = std::fs::File::options().write(true).open(&segment_files(dir)[0]).expect("opens");
            file.set_len(file.metadata().expect("is there").len() - 10).expect("cuts");
        }),
        ("removed", |dir| std::fs::remove_file(&segment_files(dir)[0]).expect("removes")),
        ("directory", |dir| std::fs::remove_dir_all(dir).expect("removes")),
        ("overwritten", |dir| {
            let file = std::fs::File::options().write(true).open(&segment_files(dir)[0]).expect("opens");
            let length = file.metadata().expect("is there").len();
            let mut file = file;
            std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(length / 2)).expect("seeks");
            file.write_all(&[0xff; 40]).expect("writes");
        }),
    ];
    let root = Root::new();
    for (name, harm) in harms {
        for kills in [false, true] {
            let name = &format!("{name}{}", if kills { "-killed" } else { "" });
            root.start_script(name, "seq 1000; while read line; do echo \"said $line\"; done");
            root.wait_screen(name, "1000");
            let dir = root.recording(name);
            harm(&dir);
            if kills {
                root.kill_daemon();
            }
            root.run(&["send", name, "--enter", "hello"]).ok();
            root.wait_screen(name, "said hello");
            root.run(&["send", name, "--enter", "again"]).ok();
            root.run(&["wait", name, "--for", "text=said again", "--timeout", "20s"]).ok();
            root.kill_daemon();
            assert!(root.screen(name).contains("said again"), "{name}: another daemon sees it too");
            if name.starts_with("removed") || name.starts_with("directory") {
                wait_until("a report", || root.runtime(name)["recording"]["missing"][0]["bytes"].as_u64().is_some());
            }
            root.run(&["kill", name]).ok();
        }
    }
}

/// One row that cannot be understood harms its own session only: that one is marked, reachable and removable, everything else works.
#[test]
fn a_damaged_row_is_isolated_and_named() {
    let harms = [
        ("context", "UPDATE sessions SET context = '{broken' WHERE id = ?1"),
        ("policy", "UPDATE sessions SET policy = '[1]' WHERE id = ?1"),
        ("metadata", "UPDATE sessions SET metadata = CAST(x'7bff' AS TEXT) WHERE id = ?1"),
        ("launch", "UPDATE runtimes SET launch = '{\"argv\":7}' WHERE session_id = ?1"),
        ("state", "UPDATE runtimes SET state = '{\"state\":\"nowhere\"}' WHERE session_id = ?1"),
        ("data", "UPDATE events SET data = 'no json' WHERE session_id = ?1"),
    ];
    let root = Root::new();
    root.start_script("whole", "echo whole output; exec cat");
    for (column, _) in harms {
        root.start_script(column, "echo some output; exec cat");
        root.wait_screen(column, "some output");
    }
    let programs: Vec<u32> = harms.iter().map(|(column, _)| root.program(column)).collect();
    let ids: Vec<String> = harms.iter().map(|(column, _)| root.session(column)["id"].as_str().expect("an id").to_owned()).collect();
    root.kill_daemon();
    {
        let database = root.database();
        database.execute_batch("PRAGMA ignore_check_constraints = ON").expect("sets");
        for ((column, sql), id) in harms.iter().zip(&ids) {
            assert!(database.execute(sql, [id]).expect("damages") > 0, "{column}");
        }
    }
    let listed = root.json(&["ls", "--json"]);
    let rows = listed.as_array().expect("a list");
    assert_eq!(rows.len(), harms.len() + 1, "{listed}");
    for ((column, _), program) in harms.iter().zip(programs) {
        let row = rows.iter().find(|row| row["name"] == *column).expect("is listed under its name");
        assert!(row["damaged"].as_str().is_some_and(|why| why.contains(column)), "{row}");
        assert_eq!((&row["status"], root.program(column)), (&"active".into(), program), "{column}: its program is still there");
        root.run(&["send", column, "--enter", "hello"]).ok();
        root.wait_screen(column, "hello");
    }
    assert!(root.run(&["ls"]).ok().contains("damaged"));
    assert_eq!(root.session("whole")["damaged"], Value::Null);
    let doctor = root.run(&["doctor"]).refused_or_printed();
    assert!(doctor.contains("context of sessions could not be read"), "{doctor}");
    for (column, _) in harms {
        root.run(&["kill", column]).ok();
        root.run(&["rm", column]).ok();
    }
    assert!(root.screen("whole").contains("whole output"));
    let kept = std::fs::read_to_string(root.join("state/damaged-rows.jsonl")).expect("the values as they were");
    assert!(kept.contains("{broken") && kept.contains("nowhere"), "{kept}");
}

/// The file itself is damaged while no daemon runs: it is recovered, with every session, and that is reported.
#[test]
fn a_damaged_database_file_is_recovered_with_its_sessions() {
    let root = Root::new();
    for n in 0..5 {
        root.start_script(&format!("live{n}"), "echo some output; exec cat");
        root.record(&format!("record{n}"), &[]);
    }
    let programs: Vec<u32> = (0..5).map(|n| root.program(&format!("live{n}"))).collect();
    root.run(&["daemon", "stop"]).ok();
    let path = root.join("state/sessions.db");
    root.database().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("everything is in the file");
    let whole = std::fs::read(&path).expect("reads");
    for page in [0, 1, 2, whole.len() / 4096 / 2] {
        let mut bad = whole.clone();
        bad[page * 4096..page * 4096 + 200].fill(0xa5);
        std::fs::write(&path, &bad).expect("writes");
        let listed = root.json(&["ls", "--all", "--json"]);
        assert_eq!(listed.as_array().expect("a list").len(), 10, "page {page}: {listed}");
        for (n, program) in programs.iter().enumerate() {
            assert_eq!(root.program(&format!("live{n}")), *program, "page {page}");
        }
        let status = root.run(&["daemon", "status"]).ok();
        assert!(status.contains("recovered into a new file"), "page {page}: {status}");
        root.run(&["daemon", "stop"]).ok();
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(root.join(&format!("state/sessions.db{suffix}")));
        }
    }
}

/// The database is lost while an interpreter is in the middle of an exec: it is adopted, and not ended as idle.
#[test]
fn an_interpreter_survives_the_loss_of_the_database() {
    let root = Root::new();
    root.run(&["exec", "-l", "bash", "kept=42"]).ok();
    root.run(&["exec", "-l", "bash", "--detach", "sleep 2; echo finished >finished.txt"]).ok();
    root.kill_daemon();
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(root.join(&format!("state/sessions.db{suffix}")));
    }
    let _ = std::fs::remove_file(root.join("state/sessions.backup.db"));
    root.run(&["ls"]).ok();
    root.wait_file("work/finished.txt");
    let listed = root.json(&["ls", "--json"]);
    let name = listed[0]["name"].as_str().expect("it was adopted").to_owned();
    let result = root.json(&["exec", "-s", &name, "-l", "bash", "--json", "echo kept is $kept"]);
    assert_eq!(result["stdout"], "kept is 42\n", "{result}");
}

/// The database is lost: what ended before is listed as found, counted, and can be replayed, searched and removed.
#[test]
fn recordings_without_a_row_are_listed_as_found() {
    let root = Root::new();
    for (name, code) in [("one", "0"), ("two", "3")] {
        root.run(&["new", "-d", "-n", name, "--", "sh", "-c", &format!("echo words of {name}; exit {code}")]).ok();
        root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
    }
    root.run(&["exec", "-l", "python", "print('words of python')"]).ok();
    root.run(&["reset", "-l", "python"]).ok();
    // live: adopted from its socket, not found
    root.run(&["new", "-d", "-n", "live", "--", "cat"]).ok();
    root.kill_daemon();
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(root.join(&format!("state/sessions.db{suffix}")));
    }
    let _ = std::fs::remove_file(root.join("state/sessions.backup.db"));
    root.run(&["ls"]).ok();
    let found = || {
        let listed = root.json(&["ls", "--all", "--json"]);
        let all = listed.as_array().expect("a list").clone();
        all.into_iter().filter(|session| session["status_reason"] == "found").collect::<Vec<_>>()
    };
    wait_until("three recordings to be found", || found().len() == 3);
    for session in found() {
        assert_eq!(session["status"], "ended", "{session}");
        assert!(session["metadata"]["found"]["recorded_at"].is_string(), "{session}");
    }
    let output = root.run(&["search", "words of", "--json"]).ok();
    for name in ["one", "two", "python"] {
        assert!(output.contains(&format!("words of {name}")), "{output}");
    }
    assert_eq!(root.json(&["stats", "--json"])["by_status"]["ended"], 3);
    let status = root.run(&["daemon", "status"]).ok();
    assert!(status.contains("3 recordings had no session"), "{status}");
    let live = root.json(&["ls", "--json"]);
    assert!(live.as_array().expect("a list").iter().any(|session| session["status"] == "active"), "{live}");
    // not found again, and removed for good
    root.kill_daemon();
    let name = found()[0]["name"].as_str().expect("a name").to_owned();
    assert_eq!(found().len(), 3);
    root.run(&["rm", &name]).ok();
    root.kill_daemon();
    root.run(&["search", "words of"]).ok();
    assert_eq!(found().len(), 2);
}

/// kill -9 between the removal of a row and that of its files: the files go, and are not found as a recording without a row.
#[test]
fn a_removal_that_was_interrupted_is_finished() {
    let root = Root::new();
    root.run(&["new", "-d", "-n", "secret", "--", "echo", "do not come back"]).ok();
    root.run(&["wait", "secret", "--for", "exit", "--timeout", "20s"]).ok();
    let recording = root.recording("secret");
    let copy = root.join("copy");
    std::fs::create_dir(&copy).expect("a directory");
    for entry in std::fs::read_dir(&recording).expect("lists").filter_map(Result::ok) {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("copies");
    }
    root.run(&["rm", "secret"]).ok();
    root.kill_daemon();
    // as if the daemon had died right after its commit
    std::fs::rename(&copy, &recording).expect("renames");
    let id = recording.file_name().and_then(|name| name.to_str()).expect("a name");
    let id = format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]);
    root.sql(&format!("INSERT INTO remembered (what, value) VALUES ('removed:{id}', '')"));
    root.run(&["ls"]).ok();
    wait_until("the files to be gone", || !recording.exists());
    assert!(!root.run(&["ls", "--all"]).ok().contains("found"));
}
