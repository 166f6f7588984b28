//! Settings: a commented file, mistakes with their place, and changes that count at once.

use std::path::Path;

use crate::support::{Root, Term, wait_until};

fn warnings(root: &Root) -> String {
    root.json(&["daemon", "status", "--json"])["warnings"].to_string()
}

fn limit_of_builds(root: &Root) -> Option<u64> {
    root.json(&["config", "show", "--json"])["groups"]["builds"].as_u64()
}

#[test]
fn a_commented_file_is_written_once_and_changes_nothing() {
    let root = Root::new();
    let path = root.run(&["config", "path"]).ok();
    assert_eq!(Path::new(path.trim()), root.join("config/config.toml"));
    assert!(root.run(&["config", "check"]).ok().contains("no mistakes"), "without a file the defaults hold");
    let before = root.json(&["config", "show", "--json"]);
    root.run(&["config", "init"]).ok();
    assert_eq!(root.json(&["config", "show", "--json"]), before);
    assert!(root.run(&["config", "check"]).ok().contains("no mistakes"));
    std::fs::write(root.join("config/config.toml"), "[groups]\nbuilds = 2\n").expect("writes");
    assert!(root.run(&["config", "init"]).refused(2).contains("--force"));
    assert!(root.run(&["config", "show"]).ok().contains("builds = 2"), "it was left alone");
    root.run(&["config", "init", "--force"]).ok();
    assert_eq!(limit_of_builds(&root), None);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let root = Root::new();
    root.config("[recording]\nmax_mb = 3\n");
    let said = root.run(&["config", "check"]).refused(1);
    assert!(said.contains("line 2, column 1") && said.contains("did you mean \"max_mib\"?"), "{said}");
    root.config("[keys.dashboard]\nkil = \"X\"\n[theme]\n  acent = \"red\"\ngood = \"gren\"\n");
    let said = root.run(&["config", "check"]).refused(1);
    for part in [
        "line 2, column 1: keys.dashboard.kil",
        "\"kill\"?",
        "line 4, column 3: theme.acent",
        "\"accent\"?",
        "line 5, column 1: theme.good",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    root.config("");
    std::fs::create_dir_all(root.join("config/agents")).expect("a folder");
    std::fs::write(root.join("config/agents/mine.toml"), "name = \"mine\"\nprograms = [\"mine\"]\n[hooks]\nask = \"iddle\"\n")
        .expect("writes");
    let said = root.run(&["config", "check"]).refused(1);
    assert!(said.contains("agents/mine.toml, line 4, column 1") && said.contains("\"idle\"?"), "{said}");
    let other = root.join("other.toml");
    std::fs::write(&other, "restore = \"atuo\"\n").expect("writes");
    let said = root.run(&["config", "check", other.to_str().expect("Unicode")]).refused(1);
    assert!(said.contains("other.toml, line 1, column 11") && said.contains("\"auto\"?"), "{said}");
    assert!(root.run(&["config", "check", "/no/such/file"]).refused(1).contains("/no/such/file"));
}

#[test]
fn each_mistake_is_a_line_in_the_order_of_the_file() {
    let root = Root::new();
    root.config("[theme]\nnam = \"dark\"\n[keys.dashboard]\nkil = \"X\"\nnew = 3\n[groups]\nb = \"x\"\n[webhooks]\ntimeout = \"0s\"\n");
    let said = root.run(&["config", "check"]).refused(1);
    let lines: Vec<&str> = said.lines().collect();
    let parts = ["line 2, column 1", "line 4, column 1", "line 5, column 7", "line 7, column 5", "line 9, column 1"];
    assert_eq!(lines.len(), parts.len(), "{said}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "{part}: {said}");
    }
    assert!(lines[0].contains("did you mean \"name\"?") && lines[2].contains("text or a list of texts"), "{said}");
    let json = root.run(&["config", "check", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (1, ""));
    let mistakes: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((mistakes.as_array().map(Vec::len), &mistakes[3]["line"]), (Some(5), &7.into()), "{mistakes}");
}

#[test]
fn what_is_no_file_of_settings_keeps_nobody_waiting() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    std::fs::create_dir_all(root.join("config")).expect("a folder");
    let path = root.join("config/config.toml");
    let made = std::process::Command::new("mkfifo").arg(root.join("config/pipe")).status().expect("runs");
    assert!(made.success());
    for (target, part) in [("pipe", "not a regular file"), ("/dev/zero", "not a regular file")] {
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(target, &path).expect("links");
        wait_until("the daemon to say so", || warnings(&root).contains(part));
        assert!(root.run(&["config", "check"]).refused(1).contains(part), "{target}");
    }
    std::fs::remove_file(&path).expect("goes");
    root.config(&"# long\n".repeat(200_000));
    wait_until("the daemon to say so", || warnings(&root).contains("larger than 1 MiB"));
    root.run(&["daemon", "restart"]).ok();
    assert!(warnings(&root).contains("larger than 1 MiB"), "also one that starts");
}

#[test]
fn what_is_written_is_for_this_user_alone_and_what_was_there_stays_as_open() {
    use std::os::unix::fs::PermissionsExt;
    let root = Root::new();
    let mode = |part: &str| std::fs::metadata(root.join(part)).expect("there").permissions().mode() & 0o777;
    root.run(&["config", "init"]).ok();
    assert_eq!((mode("config"), mode("config/config.toml")), (0o700, 0o600));
    std::fs::set_permissions(root.join("config"), PermissionsExt::from_mode(0o755)).expect("a mode");
    std::fs::set_permissions(root.join("config/config.toml"), PermissionsExt::from_mode(0o644)).expect("a mode");
    root.run(&["config", "init", "--force"]).ok();
    assert_eq!((mode("config"), mode("config/config.toml")), (0o755, 0o644));
}

#[test]
fn a_mistake_in_keys_or_colours_keeps_what_was_everywhere() {
    let root = Root::new();
    root.config("[groups]\nbuilds = 2\n[keys.dashboard]\nhelp = \"H\"\n");
    root.run(&["daemon", "start"]).ok();
    let term = Term::open(&root, 140, 24, &[]);
    term.wait_for_text("sessions");
    for (text, part) in [
        ("[groups]\nbuilds = 3\n[keys.dashboard]\nhelp = \"hyper-x\"\n", "keys.dashboard.help"),
        ("[groups]\nbuilds = 3\n[theme]\naccent = \"gren\"\n", "theme.accent"),
    ] {
        root.config(text);
        wait_until("the mistake to be told", || warnings(&root).contains(part));
        assert!(warnings(&root).contains("the settings of before are kept"));
        assert_eq!(limit_of_builds(&root), Some(2));
        term.wait_for_text(part);
        assert!(!term.text().contains("the settings were changed"), "{}", term.text());
        let log = std::fs::read_to_string(root.join("state/daemon.log")).expect("a log");
        assert!(log.contains(part), "{log}");
        let doctor = root.run(&["doctor"]).refused_or_printed();
        let about: Vec<&str> = doctor.lines().skip_while(|line| !line.contains("config ")).take(2).collect();
        assert!(about[0].starts_with('✗') && about[0].contains(part) && about[0].contains("of before are kept"), "{doctor}");
        assert!(about[1].contains("counts at once") && !about[1].contains("restart"), "{doctor}");
    }
    // keys of before hold
    term.send(b"H");
    term.wait_for_text("attach, only to watch");
    term.send(b"\x1b");
    root.config("[groups]\nbuilds = 3\n");
    term.wait_for_text("in order again");
    assert_eq!(limit_of_builds(&root), Some(3));
    term.send(b"q");
    // one that starts with it has the rest of the file
    root.run(&["daemon", "stop"]).ok();
    root.config("[groups]\nbuilds = 4\n[theme]\naccent = \"gren\"\n");
    assert_eq!(limit_of_builds(&root), Some(4));
    root.run(&["daemon", "start"]).ok();
    assert_eq!(limit_of_builds(&root), Some(4));
    assert!(warnings(&root).contains("the usual keys and colours are used"), "{}", warnings(&root));
}

#[test]
fn changes_count_at_once_and_a_mistake_keeps_what_was() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    // where there was no folder yet
    root.config("[groups]\nbuilds = 2\n");
    wait_until("the file that appeared", || limit_of_builds(&root) == Some(2));
    // as editors do that rename a new file over the old one
    std::fs::write(root.join("config/new"), "[groups]\nbuilds = 3\n").expect("writes");
    std::fs::rename(root.join("config/new"), root.join("config/config.toml")).expect("renames");
    wait_until("the file that was renamed", || limit_of_builds(&root) == Some(3));
    root.config("[groups]\nbuilds = many\n");
    wait_until("the mistake to be told", || warnings(&root).contains("line 2, column 10"));
    assert!(warnings(&root).contains("the settings of before are kept"));
    let shown = root.run(&["config", "show"]);
    assert!(shown.stdout.contains("builds = 3") && shown.stderr.contains("line 2"), "{shown:?}");
    root.config("[groups]\nbuilds = 4\n");
    wait_until("the mistake to be mended", || warnings(&root) == "[]" && limit_of_builds(&root) == Some(4));
    std::fs::remove_file(root.join("config/config.toml")).expect("goes");
    wait_until("the defaults", || limit_of_builds(&root).is_none());
    let log = std::fs::read_to_string(root.join("state/daemon.log")).expect("a log");
    assert!(log.contains("line 2, column 10") && log.contains("in order again") && log.contains("settings were changed: groups"), "{log}");
}

#[test]
fn files_behind_links_are_followed() {
    let root = Root::new();
    let dots = root.join("dots");
    std::fs::create_dir_all(&dots).expect("a folder");
    std::fs::create_dir_all(root.join("config")).expect("a folder");
    std::fs::write(dots.join("sessions.toml"), "[groups]\nbuilds = 2\n").expect("writes");
    std::os::unix::fs::symlink("../dots/sessions.toml", root.join("config/config.toml")).expect("links");
    root.run(&["daemon", "start"]).ok();
    assert_eq!(limit_of_builds(&root), Some(2));
    std::fs::write(dots.join("sessions.toml"), "[groups]\nbuilds = 3\n").expect("writes");
    wait_until("the target to be read", || limit_of_builds(&root) == Some(3));
    std::fs::write(dots.join("new"), "[groups]\nbuilds = 4\n").expect("writes");
    std::fs::rename(dots.join("new"), dots.join("sessions.toml")).expect("renames");
    wait_until("the new target to be read", || limit_of_builds(&root) == Some(4));
    std::fs::write(dots.join("other.toml"), "[groups]\nbuilds = 5\n").expect("writes");
    std::os::unix::fs::symlink("../dots/other.toml", root.join("config/link")).expect("links");
    std::fs::rename(root.join("config/link"), root.join("config/config.toml")).expect("renames");
    wait_until("the link to be followed", || limit_of_builds(&root) == Some(5));
}

#[test]
fn what_sleeps_by_settings_wakes_when_they_change() {
    let root = Root::new();
    root.config("[groups]\nbuilds = 1\n");
    root.json(&["new", "-d", "--json", "--queue", "--group", "builds", "-n", "first", "--", "sleep", "1000"]);
    root.wait_status("first", "active");
    root.json(&["new", "-d", "--json", "--queue", "--group", "builds", "-n", "second", "--", "sleep", "1000"]);
    assert_eq!(root.status("second").0, "queued");
    root.config("[groups]\nbuilds = 2\n");
    root.wait_status("second", "active");
    // and what did not even look before
    root.config("[pause]\nhibernate_after = \"1s\"\n");
    root.wait_status("first", "paused");
}

#[test]
fn agents_are_known_as_soon_as_their_file_is_there() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    let agents = root.join("config/agents");
    std::fs::create_dir_all(&agents).expect("folders");
    std::fs::write(agents.join("mine.toml"), "name = \"mine\"\nprogram = [\"mine\"]\n").expect("writes");
    wait_until("the mistake to be told", || warnings(&root).contains("did you mean \\\"programs\\\"?"));
    std::fs::write(agents.join("mine.toml"), "name = \"mine\"\nprograms = [\"mine\"]\n").expect("writes");
    wait_until("it to be mended", || warnings(&root) == "[]");
    assert!(root.run(&["hook", "status"]).ok().contains("mine") || root.run(&["hook", "status", "--json"]).stdout.contains("mine"));
}

#[test]
fn the_dashboard_takes_new_keys_and_says_what_is_wrong() {
    let root = Root::new();
    root.run(&["daemon", "start"]).ok();
    let term = Term::open(&root, 100, 24, &[]);
    term.wait_for_text("sessions");
    root.config("[keys.dashboard]\nhelp = \"H\"\n");
    term.wait_for_text("the settings were changed");
    term.send(b"H");
    term.wait_for_text("attach, only to watch");
    term.send(b"\x1b");
    root.config("[keys.dashboard]\nhelp = 3\n");
    term.wait_for_text("config.toml, line 2");
    root.config("");
    term.wait_for_text("in order again");
    term.send(b"q");
}
