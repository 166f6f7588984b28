//! Never a wrong screen after a restart: what is shown before kill -9 of the daemon is shown after it.

use crate::support::{Root, wait_until};

#[test]
fn promise_10_screens_of_real_programs_survive_kill_9() {
    let root = Root::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the recordings").filter_map(Result::ok) {
        let path = entry.path();
        let Some(stem) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".raw").map(str::to_owned)) else { continue };
        let (name, size) = stem.rsplit_once('.').expect("a size");
        let session = format!("{name}-{size}");
        // raw: the recorded bytes went through a terminal once already
        let script = format!("stty raw -echo; cat '{}'; printf ready > '{session}'; exec sleep 1000", path.display());
        root.run(&["new", "-d", "-n", &session, "--size", size, "--", "bash", "-c", &script]).ok();
        names.push(session);
    }
    assert!(names.len() > 20, "{names:?}");
    for name in &names {
        wait_until("the program to have said all", || root.join("work").join(name).exists());
    }
    let shots = || -> Vec<serde_json::Value> { names.iter().map(|name| root.json(&["screen", name, "--json"])).collect() };
    let before = shots();
    assert!(before.iter().any(|shot| shot["alternate"] == true), "some are full-screen programs");
    root.kill_daemon();
    for (name, (before, after)) in names.iter().zip(before.iter().zip(shots())) {
        assert_eq!(*before, after, "{name}");
    }
}
