//! A root of its own for each test: folders, environment, commands, the daemon; and nothing left at the end.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{PATIENCE, process, wait_for, wait_until};

/// What a command did.
#[derive(Debug)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Its standard output, provided that it succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// What it printed, whether it found something wrong or not.
    #[track_caller]
    pub fn refused_or_printed(self) -> String {
        assert!(matches!(self.code, 0 | 1), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// Its error sentence, provided that it ended with this code.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(!self.stderr.trim().is_empty(), "a refusal needs a sentence");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self.stderr
    }
}

pub struct Root {
    dir: TempDir,
    /// Whose commands are run: ours, unless a test is about another version.
    program: PathBuf,
    /// For the whole of `SESSIONS_ROOT`; without it the XDG rules hold.
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Root,
    Home,
}

impl Root {
    pub fn new() -> Self {
        Self::with(Mode::Root)
    }

    /// Without `SESSIONS_ROOT`: only `HOME` says where things are.
    pub fn home_only() -> Self {
        Self::with(Mode::Home)
    }

    fn with(mode: Mode) -> Self {
        let dir = tempfile::Builder::new().prefix("e2e").tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("home")).expect("a home");
        std::fs::create_dir(dir.path().join("work")).expect("a workspace");
        Self { dir, program: env!("CARGO_BIN_EXE_sessions-tui").into(), mode }
    }

    /// From here on commands are those of another build.
    pub fn use_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    pub fn executable(&self) -> &Path {
        &self.program
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn join(&self, part: &str) -> PathBuf {
        self.dir.path().join(part)
    }

    /// The folder commands are run in.
    pub fn work(&self) -> PathBuf {
        self.join("work")
    }

    pub fn socket(&self) -> PathBuf {
        self.join("run/daemon.sock")
    }

    pub fn config(&self, text: &str) {
        std::fs::create_dir_all(self.join("config")).expect("a folder");
        std::fs::write(self.join("config/config.toml"), text).expect("writes");
    }

    /// Everything a command sees of the environment.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_str().expect("Unicode").to_owned();
        let mut environment: Vec<(String, String)> = [
            ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())),
            ("HOME", text(self.join("home"))),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/bash".into()),
            ("PS1", "$ ".into()),
            ("TERM", "xterm-256color".into()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec();
        if self.mode == Mode::Root {
            environment.push(("SESSIONS_ROOT".into(), text(self.path().to_owned())));
        }
        environment
    }

    /// The program with these arguments, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs(self.environment()).current_dir(self.work());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        finish(self.command(args), b"", args)
    }

    #[track_caller]
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped());
        finish(command, input, args)
    }

    #[track_caller]
    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        finish(command, b"", args)
    }

    /// What a successful command printed, as JSON.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.run(args).ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// Starts `argv` in a detached session of this name and gives it as JSON.
    #[track_caller]
    pub fn start(&self, name: &str, argv: &[&str]) -> Value {
        let mut args = vec!["new", "-d", "--json", "-n", name, "--"];
        args.extend_from_slice(argv);
        self.json(&args)
    }

    /// Starts a line of shell in a detached session.
    #[track_caller]
    pub fn start_script(&self, name: &str, script: &str) -> Value {
        self.start(name, &["bash", "-c", script])
    }

    #[track_caller]
    pub fn session(&self, name: &str) -> Value {
        self.json(&["show", name, "--json"])["session"].clone()
    }

    /// Status and reason of a session.
    #[track_caller]
    pub fn status(&self, name: &str) -> (String, String) {
        let session = self.session(name);
        (session["status"].as_str().unwrap_or_default().into(), session["status_reason"].as_str().unwrap_or_default().into())
    }

    /// The latest runtime of a session.
    #[track_caller]
    pub fn runtime(&self, name: &str) -> Value {
        self.json(&["show", name, "--json"])["runtimes"][0].clone()
    }

    #[track_caller]
    pub fn recording(&self, name: &str) -> PathBuf {
        let id = self.runtime(name)["id"].as_str().expect("an id").replace('-', "");
        self.join("state/recordings").join(id)
    }

    #[track_caller]
    pub fn holder_socket(&self, name: &str) -> PathBuf {
        let id = self.runtime(name)["id"].as_str().expect("an id").replace('-', "");
        self.join("run").join(format!("{id}.sock"))
    }

    /// Pid of the program in a session.
    #[track_caller]
    pub fn program(&self, name: &str) -> u32 {
        number(&self.runtime(name)["state"]["pid"])
    }

    #[track_caller]
    pub fn holder(&self, name: &str) -> u32 {
        number(&self.runtime(name)["holder_pid"])
    }

    #[track_caller]
    pub fn screen(&self, name: &str) -> String {
        self.run(&["screen", name]).ok()
    }

    #[track_caller]
    pub fn wait_screen(&self, name: &str, text: &str) {
        let mut last = String::new();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            last = self.screen(name);
            if last.contains(text) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{text:?} did not come to the screen of {name}:\n{last}");
    }

    #[track_caller]
    pub fn wait_status(&self, name: &str, status: &str) {
        wait_until(&format!("{name} to be {status}"), || self.status(name).0 == status);
    }

    #[track_caller]
    pub fn daemon_pid(&self) -> u32 {
        number(&self.json(&["daemon", "status", "--json"])["pid"])
    }

    /// kill -9; returns when it is gone.
    #[track_caller]
    pub fn kill_daemon(&self) -> u32 {
        let pid = self.daemon_pid();
        process::kill(pid);
        pid
    }

    /// kill -9 of whatever daemon there is right now, also one that is only starting.
    #[track_caller]
    pub fn kill_daemon_at_once(&self) {
        for pid in self.daemons() {
            process::kill(pid);
        }
    }

    /// All processes of this root: clients, daemon, holders, programs.
    pub fn processes(&self) -> Vec<u32> {
        process::mentioning(self.path())
    }

    pub fn daemons(&self) -> Vec<u32> {
        self.role("daemon run")
    }

    pub fn holders(&self) -> Vec<u32> {
        self.role("holder")
    }

    fn role(&self, arguments: &str) -> Vec<u32> {
        let binary = env!("CARGO_BIN_EXE_sessions-tui");
        self.processes()
            .into_iter()
            .filter(|pid| process::command(*pid).strip_prefix(binary).is_some_and(|rest| rest.trim_start().starts_with(arguments)))
            .collect()
    }

    /// Opens the record of a task, without a program, and gives it as JSON.
    #[track_caller]
    pub fn record(&self, name: &str, more: &[&str]) -> Value {
        let mut args = vec!["new", "--no-run", "--json", "-n", name];
        args.extend_from_slice(more);
        self.json(&args)
    }

    /// All events of a session, oldest first.
    #[track_caller]
    pub fn events(&self, name: &str) -> Vec<Value> {
        let text = self.run(&["events", name, "--json"]).ok();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The types of a session's events, but for files: those are told when a burst is over, between any others.
    #[track_caller]
    pub fn kinds(&self, name: &str) -> Vec<String> {
        let events = self.events(name);
        let kinds = events.iter().map(|event| event["type"].as_str().expect("a type"));
        kinds.filter(|kind| *kind != "file_changed").map(str::to_owned).collect()
    }

    /// The daemon's database, from outside and without its promises.
    #[track_caller]
    pub fn database(&self) -> rusqlite::Connection {
        let database = rusqlite::Connection::open(self.join("state/sessions.db")).expect("opens");
        database.busy_timeout(PATIENCE).expect("waits");
        database.pragma_update(None, "foreign_keys", false).expect("no keys");
        database
    }

    #[track_caller]
    pub fn sql(&self, statement: &str) -> usize {
        self.database().execute(statement, []).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Whether any recording holds these bytes.
    pub fn recordings_contain(&self, text: &str) -> bool {
        let dirs = std::fs::read_dir(self.join("state/recordings")).into_iter().flatten().filter_map(Result::ok);
        let mut files = dirs.flat_map(|dir| std::fs::read_dir(dir.path()).into_iter().flatten().filter_map(Result::ok));
        files.any(|file| std::fs::read(file.path()).is_ok_and(|bytes| super::term::contains(&bytes, text.as_bytes())))
    }

    /// How many calls have ended, as recordings tell it.
    pub fn recorded_results(&self) -> usize {
        let dirs = std::fs::read_dir(self.join("state/recordings")).into_iter().flatten().filter_map(Result::ok);
        let files = dirs.flat_map(|dir| std::fs::read_dir(dir.path()).into_iter().flatten().filter_map(Result::ok));
        let bytes = files.filter_map(|file| std::fs::read(file.path()).ok());
        bytes.map(|bytes| bytes.windows(8).filter(|window| window == b"{\"exit\":").count()).sum()
    }

    /// A file that a program of the test writes; waits until it has something in it that ends with a newline.
    #[track_caller]
    pub fn wait_file(&self, part: &str) -> String {
        wait_for(&format!("the file {part}"), || {
            let text = std::fs::read_to_string(self.join(part)).ok()?;
            text.ends_with('\n').then_some(text)
        })
    }
}

#[track_caller]
fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap_or_else(|| panic!("{value} is not a pid"))).expect("a pid")
}

/// Runs to the end, or fails when that takes too long.
#[track_caller]
pub fn finish(mut command: Command, input: &[u8], args: &[&str]) -> Output {
    let mut child = command.spawn().expect("the program starts");
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        std::thread::spawn(move || {
            // a program that does not read its input says why in its own words
            let _ = stdin.write_all(&input);
        });
    }
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            break status;
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{args:?} did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |received: &mpsc::Receiver<Vec<u8>>, which: &str| {
        let bytes = received.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{args:?} ended but somebody holds its {which} open"));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Output { code: status.code().unwrap_or(-1), stdout: text(&stdout, "output"), stderr: text(&stderr, "error output") }
}

fn read_all(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

impl Drop for Root {
    /// Ends everything the test started, and fails the test when the product's own way of doing so is not enough.
    fn drop(&mut self) {
        for pid in self.processes() {
            // a test may have stopped some
            process::signal(pid, Signal::CONT);
        }
        let failing = std::thread::panicking();
        let stop = self.command(&["daemon", "stop", "--all", "--yes"]);
        // a panic while panicking would end the whole run
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| finish(stop, b"", &["daemon", "stop"])));
        let deadline = Instant::now() + Duration::from_secs(5);
        while !self.processes().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let left: Vec<String> = self.processes().into_iter().map(|pid| format!("{pid}: {}", process::command(pid))).collect();
        for pid in self.processes() {
            process::signal(pid, Signal::KILL);
        }
        let repaired = std::fs::read_to_string(self.join("state/damaged-rows.jsonl")).unwrap_or_default();
        let is_meant = std::thread::current().name().is_some_and(|test| test.contains("damaged"));
        assert!(failing || is_meant || repaired.is_empty(), "rows were taken for damaged:\n{repaired}");
        if !left.is_empty() && !failing {
            let log = std::fs::read_to_string(self.join("state/daemon.log")).unwrap_or_default();
            panic!("processes were left behind:\n{}\nlog:\n{log}", left.join("\n"));
        }
    }
}
