//! How much is kept, and what happens when there is no room.

use serde_json::Value;

use crate::support::{Root, wait_until};

fn starts(root: &Root, name: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root.recording(name))
        .map(|entries| entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    names.retain(|name| name.contains(".rec") && !name.ends_with("-new"));
    names.sort();
    names
}

fn flood(root: &Root, name: &str, bytes: u64) {
    root.start_script(name, &format!("yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c {bytes}; echo; echo WRITTEN; exec sleep 1000"));
    root.run(&["wait", name, "--for", "text=WRITTEN", "--timeout", "60s"]).ok();
}

#[test]
fn the_limit_of_all_takes_the_oldest_first_and_screens_stay() {
    let root = Root::new();
    // 20 MiB of all: the second flood has to push the first one's beginning out
    root.config("[recording]\ncompress = false\nmax_total_mib = 40\n");
    flood(&root, "old", 34_000_000);
    let before = starts(&root, "old");
    flood(&root, "new", 34_000_000);
    // it is looked at when a daemon starts, and some seconds after something has grown
    wait_until("the oldest to go", || starts(&root, "old").len() < before.len());
    assert!(!starts(&root, "old").contains(&before[0]));
    assert!(starts(&root, "old").contains(before.last().expect("segments")), "what is being written stays");
    assert!(root.screen("old").contains("WRITTEN") && root.screen("new").contains("WRITTEN"));
    let disk = root.json(&["stats", "--disk", "--json"]);
    assert_eq!(disk["limit"], 40 << 20);
    root.kill_daemon();
    assert!(root.screen("old").contains("WRITTEN"), "also for another daemon");
    // what is gone is said, not guessed
    let text = root.run(&["export", "old", "--format", "text"]).ok();
    assert!(text.contains("WRITTEN"));
}

#[test]
fn old_output_goes_with_its_age() {
    let root = Root::new();
    root.config("[recording]\nmax_age_days = 7\n");
    root.start_script("past", "echo long ago; exit 0");
    root.run(&["wait", "past", "--for", "exit", "--timeout", "20s"]).ok();
    root.start_script("now", "echo today; exit 0");
    root.run(&["wait", "now", "--for", "exit", "--timeout", "20s"]).ok();
    let file = root.recording("past").join(&starts(&root, "past")[0]);
    let then = std::time::SystemTime::now() - std::time::Duration::from_hours(8 * 24);
    std::fs::File::options().append(true).open(&file).expect("opens").set_modified(then).expect("is old");
    root.kill_daemon();
    root.run(&["ls"]).ok();
    wait_until("it to go", || !file.exists());
    assert_eq!(starts(&root, "now").len(), 1);
    let refusal = root.run(&["export", "past"]).refused(4);
    assert!(refusal.contains("recorded"), "{refusal}");
    assert_eq!(root.status("past").0, "completed", "its record stays");
}

#[test]
fn the_view_of_the_disk_adds_up() {
    let root = Root::new();
    flood(&root, "big", 18_000_000);
    root.start_script("small", "echo hi; exec sleep 1000");
    root.wait_screen("small", "hi");
    wait_until("the big one to be packed", || starts(&root, "big").iter().any(|name| name.contains(".recz")));
    let disk: Value = root.json(&["stats", "--disk", "--json"]);
    let (total, sessions) = (&disk["total"], disk["sessions"].as_array().expect("sessions"));
    assert_eq!((sessions.len(), sessions[0]["name"].as_str()), (2, Some("big")), "the largest first: {disk}");
    let number = |value: &Value| value.as_u64().expect("a number");
    assert_eq!(number(&total["bytes"]), number(&total["plain"]) + number(&total["packed"]) + number(&total["index"]));
    assert_eq!(number(&total["bytes"]), sessions.iter().map(|session| number(&session["bytes"])).sum::<u64>());
    let words = root.run(&["stats", "--disk"]).ok();
    assert!(words.contains("big") && words.contains("packed") && words.contains("on disk"), "{words}");
}

/// As if the clock had been a year behind until now: nothing is a year old because of that.
#[test]
fn a_clock_that_jumps_ahead_removes_nothing() {
    let root = Root::new();
    root.config("[recording]\nmax_age_days = 7\n");
    root.start_script("today", "echo some output; exit 0");
    root.run(&["wait", "today", "--for", "exit", "--timeout", "20s"]).ok();
    let (dir, segments) = (root.recording("today"), starts(&root, "today"));
    root.kill_daemon();
    let year_micros = 365 * 24 * 3600 * 1_000_000_i64;
    {
        let database = root.database();
        let sql = format!(
            "UPDATE sessions SET created_at = created_at - {year_micros}, updated_at = updated_at - {year_micros}, ended_at = ended_at - {year_micros};
             UPDATE remembered SET value = json_set(value, '$.wall', (value ->> '$.wall') - {year_micros}) WHERE what = 'seen_time';
             DELETE FROM remembered WHERE what = 'cleanup';"
        );
        database.execute_batch(&sql).expect("goes back");
    }
    let then = std::time::SystemTime::now() - std::time::Duration::from_hours(365 * 24);
    for name in segments {
        std::fs::File::options().append(true).open(dir.join(name)).expect("opens").set_modified(then).expect("is old");
    }
    root.run(&["ls"]).ok();
    wait_until("it to be reported", || root.run(&["daemon", "status"]).ok().contains("the clock has jumped ahead by 365 days"));
    wait_until("the daily cleanup", || {
        let done = root.database().query_row("SELECT count(*) FROM remembered WHERE what = 'cleanup'", [], |row| row.get::<_, i64>(0));
        done.expect("counts") == 1
    });
    assert_eq!(root.status("today").0, "completed");
    assert_eq!(starts(&root, "today").len(), 1);
    assert!(root.run(&["export", "today", "--format", "text"]).ok().contains("some output"));
    let cleaned = root.json(&["cleanup", "--older-than", "30", "--json"]);
    assert_eq!(cleaned["count"], 0, "{cleaned}");
    assert!(cleaned["kept"].to_string().contains("jumped ahead"), "{cleaned}");
    let cleaned = root.json(&["cleanup", "--older-than", "0", "--json"]);
    assert_eq!(cleaned["count"], 1, "{cleaned}");
}

/// A limit on file sizes suspends the recording like a full disk; holder, daemon and program continue.
#[test]
fn a_file_size_limit_ends_nobody() {
    let root = Root::new();
    let program = root.executable().to_string_lossy().into_owned();
    // in units of 1024 bytes: enough for the database, not for the recording
    let script = format!("ulimit -f 2000; exec {program} new -d -n limited -- bash -c 'seq 1000000; echo up-$((40+2)); exec cat'");
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).env_clear().envs(root.environment()).current_dir(root.work());
    assert!(command.status().expect("runs").success());
    root.wait_screen("limited", "up-42");
    let daemon = root.daemon_pid();
    // by the event: a small frame may still fit, and then the recording is resumed until the next large one
    let events = root.events("limited");
    let suspended = events.iter().find(|event| event["type"] == "recording_suspended").expect("it is reported");
    assert!(suspended["data"]["reason"].to_string().contains("arge"), "it says why: {suspended}");
    root.run(&["send", "limited", "--enter", "hello"]).ok();
    root.wait_screen("limited", "hello");
    assert_eq!(root.daemon_pid(), daemon, "the daemon is the same");
}

/// Without a directory for it nothing is recorded, which is reported; it is tried again until it can be made.
#[test]
fn a_recording_directory_that_could_not_be_made_is_made_later() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let (recordings, away) = (root.join("state/recordings"), root.join("state/away"));
    std::fs::rename(&recordings, &away).expect("renames");
    std::fs::write(&recordings, b"in the way").expect("writes");
    root.start_script("early", "echo before; while read line; do echo \"said $line\"; done");
    root.wait_screen("early", "before");
    assert!(root.kinds("early").contains(&"recording_suspended".to_owned()), "{:?}", root.kinds("early"));
    assert!(root.run(&["show", "early"]).ok().contains("suspended"));
    std::fs::remove_file(&recordings).expect("removes");
    std::fs::rename(&away, &recordings).expect("renames");
    wait_until("it to be recorded", || root.kinds("early").contains(&"recording_resumed".to_owned()));
    root.run(&["send", "early", "--enter", "hello"]).ok();
    root.wait_screen("early", "said hello");
    assert!(root.recordings_contain("said hello"));
    root.kill_daemon();
    root.wait_screen("early", "said hello");
}
