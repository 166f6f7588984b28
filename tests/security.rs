//! What SECURITY.md says: claims that had no test elsewhere, and that each of its claims has one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::root::finish;
use crate::support::{Root, wait_until};

#[test]
fn the_page_names_tests_that_are_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = include_str!("../SECURITY.md");
    let mut named = 0;
    for words in page.split('`').skip(1).step_by(2) {
        let Some((file, test)) = words.split_once("::") else { continue };
        let file = if file.contains('/') { folder.join(file) } else { folder.join(format!("tests/{file}.rs")) };
        let source = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{words}: {}: {error}", file.display()));
        assert!(source.contains(&format!("fn {test}(")), "{words}: no such test");
        named += 1;
    }
    assert!(named > 25, "{named}");
}

/// What a process of somebody else gets to hear at a socket.
fn heard_by_nobody_s_process(socket: &Path) -> String {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "socat", "-t", "5", "-"]);
    command.arg(format!("UNIX-CONNECT:{}", socket.display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finish(command, b"{\"hello\":{\"protocol\":1,\"version\":\"x\",\"pid\":1}}\n", &["socat"]);
    assert!(!output.stderr.contains("Permission denied"), "the files do not keep it away here: {}", output.stderr);
    output.stdout
}

#[test]
fn promise_11_another_user_is_turned_away_even_where_everything_is_open() {
    if !rustix::process::geteuid().is_root() {
        println!("not checked: only root can be somebody else");
        return;
    }
    let root = Root::new();
    root.start("one", &["cat"]);
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("opens");
    let sockets = [root.socket(), root.holder_socket("one")];
    for path in [root.path(), &root.join("run"), &sockets[0], &sockets[1]] {
        open(path);
    }
    for socket in &sockets {
        assert_eq!(heard_by_nobody_s_process(socket), "", "{}", socket.display());
    }
    wait_until("it to be said", || root.run(&["daemon", "logs"]).ok().contains("another user was refused"));
    root.run(&["send", "one", "--enter", "still-here"]).ok();
    root.wait_screen("one", "still-here\nstill-here");
}

#[test]
fn environments_are_stored_nowhere() {
    const SECRET: &str = "canary-5f1d7c";
    let root = Root::new();
    let mine = [("MY_SETTING", SECRET)];
    root.run_with(&["ls"], &mine).ok();
    root.run_with(&["new", "-d", "-n", "shell", "--", "bash", "--norc"], &mine).ok();
    root.run_with(&["new", "-d", "-n", "first", "--group", "g", "--", "sleep", "1000"], &mine).ok();
    root.run_with(&["new", "-d", "-n", "second", "--group", "g", "--", "sleep", "1000"], &mine).ok();
    for language in ["bash", "python", "node"] {
        root.run_with(&["exec", "-l", language, "0"], &mine);
    }
    root.run(&["send", "shell", "--enter", "export OTHER=kept; cd /; test -n \"$MY_SETTING\" && echo has-it"]).ok();
    root.wait_screen("shell", "\nhas-it");
    wait_until("what the shell changed to be stored", || root.json(&["show", "shell", "--json"])["terminals"][0]["cwd"] == "/");
    root.run_with(&["pause", "--hibernate", "--force", "shell"], &mine).ok();
    root.run_with(&["resume", "shell"], &mine).ok();
    let mut open = vec![root.join("state")];
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).expect("lists").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                assert!(!crate::support::term::contains(&bytes, SECRET.as_bytes()), "it is in {}", path.display());
            }
        }
    }
}

#[test]
fn what_a_program_says_is_never_run_by_the_command_that_tells_of_it() {
    let root = Root::new();
    let told = root.join("told");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\n", told.display());
    let notifier = root.join("notifier");
    std::fs::write(&notifier, script).expect("writes");
    std::fs::set_permissions(&notifier, PermissionsExt::from_mode(0o755)).expect("may be run");
    root.config(&format!("[notify]\ncommand = [\"{}\", \"{{body}}\"]\n", notifier.display()));
    let trap = "$(touch trap); touch trap & `touch trap` | touch trap";
    root.start_script("one", &format!("printf '\\033]9;%s\\007' '{trap}'; echo up; exec sleep 1000"));
    root.wait_screen("one", "up");
    wait_until("the command to be run", || std::fs::read_to_string(&told).is_ok_and(|text| text.contains(trap)));
    assert!(!root.work().join("trap").exists() && !root.join("trap").exists());
}

#[test]
fn nothing_of_ours_is_on_the_network() {
    let root = Root::new();
    root.start("one", &["cat"]);
    root.run(&["exec", "true"]).ok();
    let tables: String = ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"]
        .iter()
        .map(|table| std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default())
        .collect();
    let of_network: Vec<&str> = tables.lines().filter_map(|line| line.split_whitespace().nth(9)).collect();
    let ours = root.daemons().into_iter().chain(root.holders());
    let mut seen = 0;
    for pid in ours {
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors").filter_map(Result::ok) {
            let Ok(link) = std::fs::read_link(entry.path()) else { continue };
            let link = link.to_string_lossy().into_owned();
            let Some(inode) = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) else { continue };
            seen += 1;
            assert!(!of_network.contains(&inode), "process {pid} has a socket of the network");
        }
    }
    assert!(seen >= 3, "their own sockets were looked at");
}

/// Listens as another user in a directory of ours, or in one of theirs; keeps what it receives.
const FOREIGN_LISTENER: &str = "import os, socket, sys
path, directory_owner, kept = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.chown(os.path.dirname(path), directory_owner, -1)
kept = open(kept, 'wb')
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o777)
os.setuid(65534)
listener.listen()
print('ready', flush=True)
while True:
    connection, _ = listener.accept()
    connection.settimeout(1)
    try:
        kept.write(b'connected ' + connection.recv(65536))
    except OSError:
        kept.write(b'connected')
    kept.flush()
    connection.close()";

#[test]
fn b1_nothing_is_sent_to_another_user() {
    use std::io::BufRead;
    if !rustix::process::geteuid().is_root() {
        // another user can only be had by root
        return;
    }
    for (owner, reached) in [(65534, ""), (0, "connected")] {
        let root = Root::new();
        std::fs::create_dir_all(root.join("run")).expect("a directory");
        let kept = root.join("kept");
        let mut listener = std::process::Command::new("python3")
            .args(["-c", FOREIGN_LISTENER])
            .arg(root.socket())
            .arg(owner.to_string())
            .arg(&kept)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("python3");
        let mut ready = String::new();
        std::io::BufReader::new(listener.stdout.take().expect("a pipe")).read_line(&mut ready).expect("a line");
        for args in [&["new", "-d", "--", "true"][..], &["ls"], &["daemon", "status"], &["exec", "-l", "bash", "true"]] {
            let refusal = root.run_with(args, &[("SECRET_TOKEN", "canary")]).refused(if args[0] == "exec" { 125 } else { 5 });
            assert!(refusal.contains("another user"), "{args:?}: {refusal}");
        }
        root.run(&["doctor"]);
        root.run_with_input(&["hook", "claude", "Stop"], b"{}");
        listener.kill().expect("it runs");
        listener.wait().expect("it ends");
        let seen = String::from_utf8_lossy(&std::fs::read(&kept).expect("a file")).into_owned();
        assert!(!seen.contains('{'), "nothing is sent: {seen:?}");
        assert_eq!(seen.is_empty(), reached.is_empty(), "a directory of another user is not even connected to: {seen:?}");
    }
}
