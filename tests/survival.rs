//! What survives what: the README's table, cell by cell. Each row is a world in which everything is under way at once, one
//! thing that happens to it, and a look at what is left.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::http::{self, Reply, Server};
use crate::support::{BASH, Root, Term, process, wait_until};

/// What may survive.
const COLUMNS: [&str; 10] = [
    "program",
    "its screen",
    "recorded output",
    "running call",
    "variables",
    "folder, exports",
    "tasks, events",
    "queue",
    "webhooks",
    "pause",
];

const YES: &str = "yes";
const NO: &str = "no";
/// Its program is started again where it was, when somebody says so or by itself.
const AGAIN: &str = "again";
/// It is lost, and whoever asks is told.
const SAID: &str = "lost (reported)";
/// What was printed meanwhile is missing, and the gap is marked.
const GAP: &str = "gap, marked";

/// What happens; what is left of each, and the test that has looked.
struct Row {
    what: &'static str,
    cells: [(&'static str, &'static str); COLUMNS.len()],
}

/// A row that one test looks at from end to end.
const fn row(what: &'static str, test: &'static str, left: [&'static str; COLUMNS.len()]) -> Row {
    let mut cells = [("", test); COLUMNS.len()];
    let mut column = 0;
    while column < COLUMNS.len() {
        cells[column].0 = left[column];
        column += 1;
    }
    Row { what, cells }
}

const TABLE: [Row; 10] = [
    row("the window is closed", "the_window_is_closed", [YES; COLUMNS.len()]),
    row("`kill -9` of the client", "the_client_is_killed", [YES; COLUMNS.len()]),
    row("the daemon is stopped or upgraded", "the_daemon_is_stopped_and_replaced", [YES; COLUMNS.len()]),
    row("`kill -9` of the daemon", "the_daemon_is_killed", [YES; COLUMNS.len()]),
    row("the disk is full for a while", "the_disk_is_full", [YES, YES, GAP, YES, YES, YES, YES, YES, YES, YES]),
    row("`kill -9` of the program", "the_program_crashes", [NO, YES, YES, SAID, NO, YES, YES, YES, YES, NO]),
    row("`kill -9` of its holder", "its_holder_is_killed", [AGAIN, YES, YES, SAID, NO, YES, YES, YES, YES, AGAIN]),
    row("the machine crashes: everything ends at once", "the_machine_is_restarted", [AGAIN, YES, YES, SAID, NO, YES, YES, YES, YES, AGAIN]),
    row("shutdown, or a logout that ends everything", "everything_is_asked_to_end", [AGAIN, YES, YES, SAID, NO, YES, YES, YES, YES, AGAIN]),
    row("the runtime folder is removed, and the daemon killed", "the_runtime_folder_is_removed", [YES; COLUMNS.len()]),
];

fn page() -> String {
    let mut text = format!("| | {} |\n|---|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    for row in &TABLE {
        let cells: Vec<&str> = row.cells.iter().map(|(left, _)| *left).collect();
        text += &["| ", row.what, " | ", &cells.join(" | "), " |\n"].concat();
    }
    text
}

#[test]
fn the_readme_says_what_was_seen_and_every_cell_has_a_test() {
    let readme = include_str!("../README.md");
    assert!(readme.contains(&page()), "README.md must have this table:\n{}", page());
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/survival.rs")).expect("reads");
    for row in &TABLE {
        for (column, (_, test)) in COLUMNS.iter().zip(&row.cells) {
            assert!(source.contains(&format!("#[test]\nfn {test}() {{")), "{} / {column}: no test {test}", row.what);
        }
    }
}

/// What is left, by column, must be what the table says.
#[track_caller]
fn compare(test: &str, left: &[(&'static str, &'static str)]) {
    let row = TABLE.iter().find(|row| row.cells[0].1 == test).expect("a row");
    let seen: Vec<(&str, &str)> = COLUMNS.iter().map(|column| *left.iter().find(|(name, _)| name == column).expect("looked at")).collect();
    let expected: Vec<(&str, &str)> = COLUMNS.iter().zip(&row.cells).map(|(column, (left, _))| (*column, *left)).collect();
    assert_eq!(seen, expected, "{}", row.what);
}

/// Everything that can be under way, under way.
struct World {
    root: Root,
    program: u32,
    call: String,
    /// Whoever waits for the call, if it is not detached.
    waits: Option<Child>,
    told: Vec<String>,
    hook: std::net::SocketAddr,
}

#[derive(Clone, Copy)]
enum CallIs {
    WaitedFor,
    Detached,
}

const CALL: &str = "echo begun; touch begun; while [ ! -e go ]; do sleep 0.02; done; echo out; (exit 7)";

impl World {
    fn new(call: CallIs) -> Self {
        Self::on(Root::new(), call)
    }

    fn on(root: Root, call: CallIs) -> Self {
        root.config("[webhooks]\nfirst_retry = \"50ms\"\nmax_retry = \"100ms\"\n");
        let hook = http::closed_port();
        root.run(&["webhook", "add", &http::url(hook), "--event", "iteration"]).ok();
        root.start("program", BASH);
        root.run(&["send", "program", "--enter", "echo said-before"]).ok();
        root.wait_screen("program", "\nsaid-before");

        root.run(&["exec", "true"]).ok();
        let waits = match call {
            CallIs::Detached => {
                root.run(&["exec", "--detach", CALL]).ok();
                None
            }
            CallIs::WaitedFor => Some(root.command(&["exec", CALL]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")),
        };
        wait_until("the call to begin", || root.work().join("begun").exists());
        let history = root.json(&["history", "-l", "bash", "--json"]);
        let call = history.as_array().and_then(|calls| calls.last()).expect("a call")["execId"].as_str().expect("an id").to_owned();
        root.run(&["exec", "-l", "python", "import os; os.chdir('/'); os.environ['KEPT'] = 'yes'; x = 41"]).ok();

        root.record("task", &["--task", "Mend it", "--context", r#"{"next":"the test"}"#]);
        root.run(&["iterate", "task", "--data", r#"{"n":1}"#]).ok();
        root.run(&["iterate", "task", "--data", r#"{"n":2}"#]).ok();
        let told = root.kinds("task");

        root.record("first", &["--group", "g"]);
        root.run(&["new", "-d", "-n", "second", "--group", "g", "--", "sleep", "1000"]).ok();
        assert_eq!(root.status("second").0, "queued");

        root.start("paused", &["cat"]);
        root.run(&["pause", "paused", "--reason", "night"]).ok();
        wait_until("it to stand still", || root.runtime("paused")["state"]["state"] == "frozen");
        let program = root.program("program");
        Self { root, program, call, waits, told, hook }
    }

    /// Pids of the processes behind the terminal and both interpreters.
    fn programs(&self) -> Vec<u32> {
        let states = self.root.json(&["state", "--json"]);
        let of_calls = states["runtimes"].as_array().expect("a list").iter().filter_map(|state| state["pid"].as_u64());
        of_calls.map(|pid| pid as u32).chain([self.program, self.root.program("paused")]).collect()
    }

    /// Looks at everything, and compares it with what the table says.
    #[track_caller]
    fn check(mut self, test: &str) {
        if let Some(mut client) = self.waits.take() {
            client.wait().expect("ends");
        }
        let left = [
            // these first: starting something again adds to them
            ("its screen", self.screen()),
            ("recorded output", self.recorded()),
            ("tasks, events", self.tasks()),
            ("program", self.program()),
            ("running call", self.running_call()),
            ("variables", self.variables()),
            ("folder, exports", self.folder()),
            ("queue", self.queue()),
            ("webhooks", self.webhooks()),
            ("pause", self.pause()),
        ];
        compare(test, &left);
    }

    fn screen(&self) -> &'static str {
        if self.root.screen("program").contains("\nsaid-before") { YES } else { NO }
    }

    fn recorded(&self) -> &'static str {
        let text = self.root.run(&["export", "program", "--format", "text"]).ok();
        match (text.contains("\nsaid-before"), self.has_gap()) {
            (true, true) if !text.contains("said-0-meanwhile") => GAP,
            (true, false) => YES,
            _ => NO,
        }
    }

    /// Bytes that are known to be missing.
    fn has_gap(&self) -> bool {
        let frames = crate::support::recording::frames(&self.root.recording("program"));
        frames.iter().any(|frame| frame.kind == crate::support::recording::Kind::Gap && frame.body != [0; 8])
    }

    fn program(&self) -> &'static str {
        let root = &self.root;
        if root.status("program").0 == "active" {
            assert_eq!(root.program("program"), self.program, "the same process");
            root.run(&["send", "program", "--enter", "echo alive-$((40+2))"]).ok();
            root.wait_screen("program", "alive-42");
            return YES;
        }
        assert!(!process::is_alive(self.program), "it is not listed, and yet it runs");
        if root.run(&["restore", "program"]).code != 0 {
            return NO;
        }
        root.wait_screen("program", "was lost; started again");
        assert!(root.screen("program").contains("said-before"), "below its last screen");
        root.run(&["send", "program", "--enter", "echo alive-$((40+2))"]).ok();
        root.wait_screen("program", "alive-42");
        AGAIN
    }

    fn running_call(&self) -> &'static str {
        std::fs::write(self.root.work().join("go"), "").expect("writes");
        let output = self.root.run(&["result", &self.call, "--wait", "--json"]);
        let result: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        match (result["exitCode"].as_i64(), result["stdout"].as_str()) {
            (Some(7), Some("begun\nout\n")) => YES,
            (code, _) if result["success"] == false => {
                assert!(result["error"].is_string() || code.is_some_and(|code| code != 0), "it says how: {result}");
                SAID
            }
            _ => panic!("a call that did not end as it should, and does not say so: {result}"),
        }
    }

    fn variables(&self) -> &'static str {
        let value = self.root.run(&["eval", "x + 1"]);
        if value.stdout == "42\n" { YES } else { NO }
    }

    fn folder(&self) -> &'static str {
        let text = self.root.run(&["exec", "-l", "python", "import os; print(os.getcwd(), os.environ.get('KEPT'))"]).ok();
        if text == "/ yes\n" { YES } else { NO }
    }

    fn tasks(&self) -> &'static str {
        let session = self.root.session("task");
        let is_same = session["status"] == "active"
            && session["iterations"] == 2
            && session["context"]["next"] == "the test"
            && self.root.kinds("task") == self.told;
        if is_same { YES } else { NO }
    }

    fn queue(&self) -> &'static str {
        let root = &self.root;
        let second = root.session("second");
        if (second["status"].as_str(), second["queue_place"].as_u64()) != (Some("queued"), Some(1)) {
            return NO;
        }
        root.run(&["complete", "first"]).ok();
        root.wait_status("second", "active");
        wait_until("its program", || root.runtime("second")["state"]["state"] == "running");
        YES
    }

    fn webhooks(&self) -> &'static str {
        let server = Server::start_at(self.hook, |_| Reply::Status(200));
        let received = server.wait(2);
        let numbers: Vec<Option<i64>> = received.iter().map(|request| request.json()["data"]["n"].as_i64()).collect();
        assert_eq!(server.words(), ["iteration of task", "iteration of task"]);
        if numbers == [Some(1), Some(2)] { YES } else { NO }
    }

    fn pause(&self) -> &'static str {
        let root = &self.root;
        if root.status("paused") != ("paused".into(), "night".into()) {
            return NO;
        }
        // a daemon that has just come back may not have heard of it yet
        wait_until("its state to be known", || {
            let state = root.runtime("paused")["state"]["state"].clone();
            state == "frozen" || state == "hibernated"
        });
        let was_frozen = root.runtime("paused")["state"]["state"] == "frozen";
        root.run(&["resume", "paused"]).ok();
        root.run(&["send", "paused", "--enter", "hello"]).ok();
        root.wait_screen("paused", "hello\nhello");
        if was_frozen { YES } else { AGAIN }
    }
}

#[test]
fn the_window_is_closed() {
    let mut world = World::new(CallIs::WaitedFor);
    let mut window = Term::open(&world.root, 80, 24, &["attach", "program"]);
    window.wait_for_text("said-before");
    window.close();
    let client = world.waits.as_ref().expect("a client").id();
    process::signal(client, Signal::HUP);
    world.waits.take().expect("a client").wait().expect("ends");
    wait_until("nobody to be there", || world.root.session("program")["clients"] == 0);
    world.check("the_window_is_closed");
}

#[test]
fn the_client_is_killed() {
    let world = World::new(CallIs::WaitedFor);
    let window = Term::open(&world.root, 80, 24, &["attach", "program"]);
    window.wait_for_text("said-before");
    process::signal(window.pid(), Signal::KILL);
    process::signal(world.waits.as_ref().expect("a client").id(), Signal::KILL);
    wait_until("nobody to be there", || world.root.session("program")["clients"] == 0);
    world.check("the_client_is_killed");
}

#[test]
fn the_daemon_is_stopped_and_replaced() {
    let world = World::new(CallIs::Detached);
    world.root.run(&["daemon", "restart"]).ok();
    world.root.run(&["daemon", "stop"]).ok();
    world.check("the_daemon_is_stopped_and_replaced");
}

#[test]
fn the_daemon_is_killed() {
    let world = World::new(CallIs::Detached);
    for _ in 0..3 {
        world.root.kill_daemon();
        world.root.run(&["ls"]).ok();
    }
    world.root.kill_daemon();
    world.check("the_daemon_is_killed");
}

#[test]
fn the_program_crashes() {
    let world = World::new(CallIs::Detached);
    for pid in world.programs() {
        process::kill(pid);
    }
    world.root.wait_status("program", "failed");
    world.root.wait_status("paused", "failed");
    world.check("the_program_crashes");
}

#[test]
fn its_holder_is_killed() {
    let world = World::new(CallIs::Detached);
    for pid in world.root.holders() {
        process::kill(pid);
    }
    world.root.wait_status("program", "failed");
    world.check("its_holder_is_killed");
}

#[test]
fn the_disk_is_full() {
    let root = Root::new();
    let Some(disk) = SmallDisk::mount(&root) else {
        println!("not checked: no file system can be mounted here");
        return;
    };
    let world = World::on(root, CallIs::Detached);
    let ballast = disk.0.join("ballast");
    // everything that is left, to the last byte
    let _ = Command::new("dd").args(["if=/dev/zero", "bs=4k", "status=none"]).arg(format!("of={}", ballast.display())).status();
    world.root.run(&["send", "program", "--enter", "seq 1 20000; echo said-$((0))-meanwhile"]).ok();
    world.root.wait_screen("program", "said-0-meanwhile");
    std::fs::remove_file(&ballast).expect("space again");
    wait_until("the recording to go on", || world.root.runtime("program")["recording"]["suspended"].is_null());
    world.root.run(&["send", "program", "--enter", "clear; echo; echo said-before"]).ok();
    world.root.wait_screen("program", "said-before");
    world.check("the_disk_is_full");
}

#[test]
fn everything_is_asked_to_end() {
    let world = World::new(CallIs::Detached);
    // as a service manager does it: asked first, then ended, and the runtime folder goes
    let holders = world.root.holders();
    for pid in world.root.processes() {
        process::signal(pid, Signal::TERM);
    }
    wait_until("the holders to have ended", || holders.iter().all(|pid| !process::is_alive(*pid)));
    for pid in world.root.processes() {
        process::kill(pid);
    }
    std::fs::remove_dir_all(world.root.join("run")).expect("the sockets go");
    world.check("everything_is_asked_to_end");
}

#[test]
fn the_runtime_folder_is_removed() {
    let world = World::new(CallIs::Detached);
    std::fs::remove_dir_all(world.root.join("run")).expect("the sockets go");
    world.root.kill_daemon_at_once();
    world.check("the_runtime_folder_is_removed");
}

#[test]
fn the_machine_is_restarted() {
    let world = World::new(CallIs::Detached);
    world.root.kill_daemon_at_once();
    for pid in world.root.holders().into_iter().chain(world.root.processes()) {
        process::kill(pid);
    }
    std::fs::remove_dir_all(world.root.join("run")).expect("the sockets go");
    world.check("the_machine_is_restarted");
}

/// The state folder on a small disk of its own, if this machine lets us mount one.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(root: &Root) -> Option<Self> {
        let path = root.join("state");
        std::fs::create_dir_all(&path).expect("a folder");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"]).arg(&path).status();
        status.is_ok_and(|status| status.success()).then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
