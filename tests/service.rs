//! Starting on login: what `daemon install` writes is right, can be repeated, and goes again; stopping under it ends no session.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::root::{Output, finish};
use crate::support::{Root, process};

const SYSTEMCTL: &str = include_str!("data/systemctl.py");

/// A machine with a user manager: a stand-in for systemctl comes first on PATH.
struct Machine {
    root: Root,
}

impl Machine {
    fn new() -> Self {
        let root = Root::new();
        let machine = Self { root };
        machine.program("systemctl", SYSTEMCTL);
        machine
    }

    fn program(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.root.join("bin")).expect("a folder");
        let path = self.root.join("bin").join(name);
        std::fs::write(&path, text).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Output {
        let path = format!("{}:{}", self.root.join("bin").display(), std::env::var("PATH").expect("a path"));
        self.root.run_with(args, &[("PATH", &path)])
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(args).ok()).expect("JSON")
    }

    /// How systemctl was called since the last look.
    fn calls(&self) -> Vec<String> {
        let path = self.root.join("bin/calls");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        text.lines().map(|line| line.strip_prefix("--user ").unwrap_or(line).split(' ').next().unwrap_or_default().to_owned()).collect()
    }

    fn file(&self, report: &Value) -> PathBuf {
        let file = PathBuf::from(report["files"][0].as_str().expect("a file"));
        assert!(file.starts_with(self.root.join("home")), "{}", file.display());
        file
    }
}

#[test]
fn a_unit_is_written_once_starts_the_daemon_and_is_taken_away() {
    let machine = Machine::new();
    let rehearsal = machine.run(&["daemon", "install", "--dry-run"]).ok();
    assert!(rehearsal.contains("would be written") && rehearsal.contains("KillMode=process"), "{rehearsal}");
    assert!(rehearsal.contains("would run: systemctl --user enable"), "{rehearsal}");
    assert!(!machine.root.join("home/.config").exists(), "a rehearsal writes nothing");
    assert_eq!(machine.calls(), ["show-environment"]);
    assert_eq!(machine.root.daemons(), Vec::<u32>::new());

    let report = machine.json(&["daemon", "install", "--json"]);
    assert_eq!((&report["kind"], &report["changed"]), (&"systemd".into(), &true.into()), "{report}");
    assert_eq!(machine.calls(), ["show-environment", "daemon-reload", "enable", "start"]);
    let file = machine.file(&report);
    let daemon = machine.root.daemon_pid();
    assert_eq!(process::command(daemon), format!("{} daemon run", env!("CARGO_BIN_EXE_sessions-tui")), "the service's, not a client's");
    let status = machine.json(&["daemon", "status", "--json"]);
    assert_eq!((&status["service"]["kind"], &status["service"]["is_current"]), (&"systemd".into(), &true.into()), "{status}");
    assert!(machine.run(&["daemon", "status"]).ok().contains("systemd user unit"));

    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["--user", "verify"]).arg(&file).env("XDG_RUNTIME_DIR", machine.root.path());
    if let Ok(verified) = analyze.output() {
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(verified.status.success() && !said.contains(file.to_str().expect("Unicode")), "{said}");
    }

    let before = std::fs::metadata(&file).expect("there").modified().expect("a time");
    let again = machine.json(&["daemon", "install", "--json"]);
    assert_eq!(again["changed"], false, "{again}");
    assert!(again["notes"][0].as_str().expect("a note").contains("build folder") || again["notes"].to_string().contains("running already"));
    assert_eq!(std::fs::metadata(&file).expect("there").modified().expect("a time"), before, "not written again");
    assert_eq!(machine.root.daemon_pid(), daemon);
    machine.calls();

    let neighbour = file.with_file_name("other.service");
    std::fs::write(&neighbour, "[Unit]\n").expect("writes");
    let said = machine.run(&["daemon", "uninstall"]).ok();
    assert!(said.contains("removed") && said.contains("goes on"), "{said}");
    assert!(!file.exists() && neighbour.exists());
    assert_eq!(machine.calls(), ["disable", "daemon-reload"]);
    assert_eq!(machine.root.daemon_pid(), daemon, "what runs goes on");
    assert!(machine.run(&["daemon", "uninstall"]).ok().contains("nothing was installed"));
    assert_eq!(machine.json(&["daemon", "status", "--json"])["service"], Value::Null);
}

#[test]
fn restarting_moves_a_daemon_to_its_service_and_ends_no_session() {
    let machine = Machine::new();
    machine.root.start_script("api", "echo up; exec cat");
    machine.root.wait_screen("api", "up");
    let (program, first) = (machine.root.program("api"), machine.root.daemon_pid());
    let said = machine.run(&["daemon", "install"]).ok();
    assert!(said.contains("`sessions-tui daemon restart` moves it"), "{said}");
    assert_eq!(machine.root.daemon_pid(), first);

    machine.run(&["daemon", "restart"]).ok();
    let second = machine.root.daemon_pid();
    assert_ne!(second, first);
    assert!(!process::command(second).contains("--detached"), "started by the service");
    machine.run(&["daemon", "stop"]).ok();
    machine.run(&["daemon", "start"]).ok();
    assert!(!process::command(machine.root.daemon_pid()).contains("--detached"), "started by the service");
    assert_eq!(machine.root.program("api"), program);
    machine.root.run(&["send", "api", "--enter", "still here"]).ok();
    machine.root.wait_screen("api", "still here\nstill here");
    // a service whose manager fails is no reason to be without a daemon
    machine.program("systemctl", "#!/bin/sh\nexit 1\n");
    machine.run(&["daemon", "restart"]).ok();
    assert!(process::command(machine.root.daemon_pid()).contains("--detached"));
    assert_eq!(machine.root.program("api"), program);
}

#[test]
fn without_a_user_manager_it_is_an_entry_of_the_desktop() {
    let machine = Machine::new();
    machine.program("systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n");
    let report = machine.json(&["daemon", "install", "--json"]);
    assert_eq!(report["kind"], "autostart", "{report}");
    let file = machine.file(&report);
    assert!(file.ends_with(format!(".config/autostart/{}", file.file_name().expect("a name").to_string_lossy())));
    let text = std::fs::read_to_string(&file).expect("there");
    for line in ["[Desktop Entry]", "Type=Application", "Name=sessions-tui", "Terminal=false"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    // what the desktop runs on login
    let exec = text.lines().find_map(|line| line.strip_prefix("Exec=")).expect("a command");
    let mut login = Command::new("sh");
    login.args(["-c", exec]).env_clear().env("HOME", machine.root.join("home")).env("PATH", "/usr/bin:/bin");
    login.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(login, b"", &["login"]).ok();
    assert_eq!(machine.root.daemons().len(), 1);
    machine.run(&["daemon", "uninstall"]).ok();
    assert!(!file.exists());
}

#[test]
fn the_agent_of_launchd_is_a_plist_that_lets_holders_live() {
    let machine = Machine::new();
    let report = machine.json(&["daemon", "install", "--as", "launchd", "--json"]);
    let file = machine.file(&report);
    let script = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let mut parse = Command::new("python3");
    parse.args(["-c", script]).arg(&file).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let plist: Value = serde_json::from_str(&finish(parse, b"", &["plistlib"]).ok()).expect("JSON");
    assert_eq!(plist["ProgramArguments"], serde_json::json!([env!("CARGO_BIN_EXE_sessions-tui"), "daemon", "run"]));
    assert_eq!(plist["KeepAlive"], serde_json::json!({"SuccessfulExit": false}));
    assert_eq!((&plist["RunAtLoad"], &plist["AbandonProcessGroup"]), (&true.into(), &true.into()));
    assert_eq!(plist["EnvironmentVariables"]["SESSIONS_ROOT"], machine.root.path().to_str().expect("Unicode"));
    assert!(report["notes"].to_string().contains("launchctl"), "it says what is left to do: {report}");
    machine.run(&["daemon", "uninstall"]).ok();
    assert!(!file.exists());
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    let machine = Machine::new();
    let file = machine.file(&machine.json(&["daemon", "install", "--dry-run", "--json"]));
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    std::fs::write(&file, "[Unit]\nDescription=mine\n").expect("writes");
    assert!(machine.run(&["daemon", "install"]).refused(1).contains("left as it is"));
    machine.run(&["daemon", "uninstall"]).ok();
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "[Unit]\nDescription=mine\n");
}

#[test]
fn lingering_is_explained_and_offered() {
    let machine = Machine::new();
    let loginctl = "#!/bin/sh\necho \"loginctl $*\" >> \"$(dirname \"$0\")/calls\"\ncase $1 in show-user) echo no;; esac\n";
    machine.program("loginctl", loginctl);
    let said = machine.run(&["daemon", "install"]).ok();
    assert!(said.contains("log out") && said.contains("enable-linger"), "{said}");
    let said = machine.run(&["daemon", "install", "--linger"]).ok();
    assert!(said.contains("ran: loginctl enable-linger"), "{said}");
}

#[test]
fn what_lingering_does_not_do_is_said() {
    let machine = Machine::new();
    let said = machine.run(&["daemon", "install", "--as", "autostart", "--linger"]).ok();
    assert!(said.contains("--linger does nothing"), "{said}");
}

#[test]
fn everything_is_taken_away_though_a_manager_fails() {
    let machine = Machine::new();
    let unit = machine.file(&machine.json(&["daemon", "install", "--as", "systemd", "--json"]));
    let entry = machine.file(&machine.json(&["daemon", "install", "--as", "autostart", "--json"]));
    machine.program("systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n");
    let said = machine.run(&["daemon", "uninstall"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("systemctl --user disable") && said.stderr.contains("Failed to connect to bus"), "{said:?}");
    for file in [unit, entry] {
        assert!(said.stdout.contains(&format!("{} removed", file.display())) && !file.exists(), "{said:?}");
    }
    assert!(machine.run(&["daemon", "uninstall"]).ok().contains("nothing was installed"));
}

#[test]
fn a_manager_that_refuses_is_heard() {
    let machine = Machine::new();
    let script = "#!/bin/sh\ncase \"$*\" in *enable*) echo 'Unit is masked.' >&2; exit 1;; esac\n";
    machine.program("systemctl", script);
    let sentence = machine.run(&["daemon", "install"]).refused(1);
    assert!(sentence.contains("systemctl --user enable") && sentence.contains("Unit is masked."), "{sentence}");
}
