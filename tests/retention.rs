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
