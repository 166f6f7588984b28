//! What was reported as failed is not carried out later, and a repeated request does nothing twice.

use rustix::process::Signal;
use serde_json::json;

use crate::support::wire::Wire;
use crate::support::{Root, process};

#[test]
fn a9_what_a_stopped_daemon_did_not_answer_is_not_done_when_it_wakes() {
    let root = Root::new();
    root.start("live", &["sleep", "1000"]);
    root.run(&["exec", "-l", "bash", "true"]).ok();
    let daemon = root.daemon_pid();
    process::signal(daemon, Signal::STOP);
    let work = root.work();
    let touched = work.join("touched");
    let touch = format!("touch {}", touched.display());
    let exec = ["exec", "-l", "bash", touch.as_str()];
    let commands: [&[&str]; 4] = [&["new", "-d", "-n", "late", "--", "sleep", "1000"], &["kill", "live"], &exec, &["pause", "live"]];
    std::thread::scope(|scope| {
        for args in commands {
            let root = &root;
            scope.spawn(move || {
                let refusal = root.run(args).refused(if args[0] == "exec" { 125 } else { 5 });
                assert!(refusal.contains("nothing was done"), "{args:?}: {refusal}");
            });
        }
    });
    process::signal(daemon, Signal::CONT);
    // connections are served in order, and each is a few milliseconds of work
    for _ in 0..3 {
        let names: Vec<String> =
            root.json(&["ls", "--all", "--json"]).as_array().expect("a list").iter().map(|row| row["name"].to_string()).collect();
        assert!(!names.contains(&"\"late\"".to_owned()), "{names:?}");
    }
    assert_eq!(root.status("live").0, "active");
    assert_eq!(root.run(&["exec", "-l", "bash", "echo next"]).ok(), "next\n", "execs are carried out in order");
    assert!(!touched.exists());
}

#[test]
fn a9_new_with_the_same_id_is_the_same_session() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let folder = root.work();
    let request = json!({"request": "new", "session": id, "here": folder, "argv": ["sleep", "1000"],
        "environment": root.environment()});
    let mut first = Wire::greeted(&root.socket());
    let opened = first.call(1, request.clone());
    assert_eq!(opened["ok"]["id"], id, "{opened}");
    let mut again = Wire::greeted(&root.socket());
    let repeated = again.call(1, request.clone());
    assert_eq!(repeated["ok"]["id"], id, "{repeated}");
    root.kill_daemon();
    root.run(&["ls"]).ok();
    let repeated = Wire::greeted(&root.socket()).call(1, request);
    assert_eq!(repeated["ok"]["id"], id, "{repeated}");
    assert_eq!(root.json(&["ls", "--all", "--json"]).as_array().map(Vec::len), Some(1));
    assert_eq!(root.holders().len(), 1, "one program");
}

#[test]
fn a9_new_survives_daemons_that_die_under_it() {
    let root = Root::new();
    for number in 0..12 {
        let name = format!("n{number}");
        std::thread::scope(|scope| {
            let started = scope.spawn(|| root.run(&["new", "-d", "-n", &name, "--", "sleep", "1000"]).ok());
            root.kill_daemon_at_once();
            started.join().expect("it is started, by this daemon or the next");
        });
    }
    let sessions = root.json(&["ls", "--json"]);
    let live = sessions.as_array().expect("a list").iter().filter(|row| row["status"] == "active").count();
    assert_eq!(live, 12, "{sessions}");
    assert_eq!(root.holders().len(), 12, "none twice, none missing");
}
