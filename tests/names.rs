//! Names and other labels: one form for what looks the same, nothing that cannot be seen, and names of older versions stay usable.

use serde_json::json;

use super::mcp::client::{Era, Mcp};
use crate::support::Root;

const NFC: &str = "caf\u{e9}";
const NFD: &str = "cafe\u{301}";

#[test]
fn b6_invisible_names_are_refused_wherever_one_is_given() {
    let root = Root::new();
    root.record("plain", &[]);
    let zalgo = format!("z{}", "\u{316}".repeat(40));
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"hi\"]\n";
    let mut mcp = Mcp::start(&root, Era::Discover);
    for name in ["api\u{e0041}", "\u{3164}", "\u{2800}", "\u{301}", "a\u{200b}b", "a\u{202e}b", "a\u{ad}b", zalgo.as_str()] {
        for args in [
            &["new", "-d", "--no-run", "-n", name][..],
            &["rename", "plain", name],
            &["new", "-d", "--no-run", "--group", name],
            &["new", "-d", "--no-run", "--user", name],
            &["new", "-d", "--no-run", "--channel", name],
            &["new", "-d", "--no-run", "--mode", name],
            &["group", "set", name, "--limit", "2"],
        ] {
            let why = root.run(args).refused(2);
            assert!(why.contains("visible character") || why.contains("invisible") || why.contains("combining"), "{args:?}: {why}");
            assert!(why.chars().all(|c| c == '\n' || !shared::text::is_unsafe(c)), "{why:?}");
        }
        let why = root.run_with_input(&["import", "-", "-n", name], cast.as_bytes()).refused(2);
        assert!(!why.is_empty());
        mcp.refused("session_start", json!({"task": "x", "name": name}), "usage");
        mcp.refused("terminal_start", json!({"argv": ["true"], "name": name}), "usage");
    }
    let names = root.json(&["ls", "--all", "--json"]);
    assert_eq!(names.as_array().map(Vec::len), Some(1), "{names}");
}

#[test]
fn b6_names_that_look_the_same_are_the_same() {
    let root = Root::new();
    let first = root.record(NFD, &[]);
    assert_eq!(first["name"], NFC, "{first}");
    let second = root.json(&["new", "-d", "--json", "--no-run", "-n", NFC, "--task", "again"]);
    assert_eq!(second["id"], first["id"], "one session, not two");
    assert_eq!(root.session(NFD)["id"], first["id"]);
    root.record("other", &["--user", NFD]);
    let of_user = root.json(&["ls", "--user", NFC, "--json"]);
    assert_eq!(of_user[0]["name"], "other", "{of_user}");
    root.run(&["rename", "other", NFD]).refused(2);
}

#[test]
fn b6_names_of_older_versions_stay_reachable_and_are_shown_safely() {
    let root = Root::new();
    let hidden = "old\u{e0041}\u{e0042}";
    let marks = format!("z{}", "\u{316}".repeat(2000));
    for name in ["hidden", "marks", "decomposed"] {
        root.record(name, &[]);
    }
    root.run(&["daemon", "stop"]).ok();
    let database = root.database();
    for (old, new) in [("hidden", hidden), ("marks", &marks), ("decomposed", NFD)] {
        database.execute("UPDATE threads SET name = ?1 WHERE name = ?2", [new, old]).expect("renames");
    }
    drop(database);
    let listed = root.run(&["ls"]).ok();
    assert!(listed.contains("old··") && !listed.contains('\u{e0041}'), "{listed:?}");
    assert!(listed.matches('\u{316}').count() <= 4, "{listed:?}");
    assert_eq!(root.session(hidden)["name"], hidden);
    // typed in either form, and continued instead of doubled
    assert_eq!(root.session(NFC)["id"], root.session(NFD)["id"]);
    let again = root.json(&["new", "-d", "--json", "--no-run", "-n", NFC, "--task", "x"]);
    assert_eq!(again["id"], root.session(NFD)["id"]);
    let again = root.json(&["new", "-d", "--json", "--no-run", "-n", hidden, "--task", "x"]);
    assert_eq!(again["id"], root.session(hidden)["id"]);
    root.run(&["rename", hidden, "fresh"]).ok();
    assert_eq!(root.session("fresh")["name"], "fresh");
    root.run(&["kill", &marks]).ok();
    root.run(&["rm", &marks, "--yes"]).ok();
}
