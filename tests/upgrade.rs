//! Versions meet: a daemon is replaced by another program's, holders of before are driven by the daemon of now, old clients are heard.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::root::finish;
use crate::support::wire::{Wire, frame};
use crate::support::{Root, process, wait_until};

#[test]
fn promise_2_a_daemon_is_replaced_by_that_of_another_file_and_no_session_is_lost() {
    let root = Root::new();
    // as a package does it: the old file is gone, its daemon and holders still run
    let old = root.join("old-sessions-tui");
    std::fs::copy(env!("CARGO_BIN_EXE_sessions-tui"), &old).expect("a copy");
    let mut new = Command::new(&old);
    new.args(["new", "-d", "-n", "api", "--", "bash", "-c", "echo up; exec cat"]).env_clear().envs(root.environment());
    new.current_dir(root.work()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(new, b"", &["new"]).ok();
    root.wait_screen("api", "up");
    let (program, holder, daemon) = (root.program("api"), root.holder("api"), root.daemon_pid());
    assert!(process::command(daemon).contains("old-sessions-tui"));
    std::fs::remove_file(&old).expect("goes");

    let said = root.run(&["daemon", "restart"]).ok();
    assert!(said.contains("with 1 session"), "{said}");
    assert!(process::command(root.daemon_pid()).starts_with(env!("CARGO_BIN_EXE_sessions-tui")), "the program that was asked");
    assert_eq!((root.program("api"), root.holder("api")), (program, holder), "same program, same holder");
    root.run(&["send", "api", "--enter", "hello"]).ok();
    root.wait_screen("api", "up\nhello\nhello");
    // and what is started while the file of the running daemon is gone
    root.start_script("more", "echo second; exec cat");
    root.wait_screen("more", "second");
}

/// What the first holders knew: orders up to `Terminate`, news up to `Taken`, and these fields of a greeting.
const OLD_ORDERS: std::ops::RangeInclusive<u8> = 1..=6;
const OLD_NEWS: std::ops::RangeInclusive<u8> = 64..=70;
const OLD_GREETING: [&str; 8] = ["runtime", "pid", "child", "size", "end", "answered", "suspended", "exit"];

/// Puts a holder of the first version in the place of a session's: its own, which then hears and says only what was known then.
fn make_old(socket: &Path) {
    let behind = socket.with_extension("behind");
    std::fs::rename(socket, &behind).expect("the socket moves");
    let listener = UnixListener::bind(socket).expect("listens");
    std::thread::spawn(move || {
        for daemon in listener.incoming() {
            let Ok(daemon) = daemon else { return };
            let Ok(holder) = UnixStream::connect(&behind) else { return };
            let (from_daemon, from_holder) = (daemon.try_clone().expect("a copy"), holder.try_clone().expect("a copy"));
            std::thread::spawn(move || pass_on(from_daemon, holder, |kind, body| OLD_ORDERS.contains(&kind).then(|| body.to_vec())));
            std::thread::spawn(move || {
                pass_on(from_holder, daemon, |kind, body| match kind {
                    64 => Some(old_greeting(body)),
                    _ => OLD_NEWS.contains(&kind).then(|| body.to_vec()),
                });
            });
        }
    });
}

fn old_greeting(body: &[u8]) -> Vec<u8> {
    let greeting: Value = serde_json::from_slice(&body[1..]).expect("a greeting");
    let old: serde_json::Map<String, Value> = OLD_GREETING.iter().map(|field| ((*field).to_owned(), greeting[*field].clone())).collect();
    [&body[..1], Value::Object(old).to_string().as_bytes()].concat()
}

/// Frames one way; what is not known is passed over. A read takes no descriptors along: the first holders gave none.
fn pass_on(mut from: UnixStream, mut to: UnixStream, known: impl Fn(u8, &[u8]) -> Option<Vec<u8>>) {
    let mut head = [0; 5];
    while from.read_exact(&mut head).is_ok() {
        let mut body = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
        if from.read_exact(&mut body).is_err() {
            break;
        }
        if let Some(body) = known(head[0], &body)
            && to.write_all(&frame(head[0], &body)).is_err()
        {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

#[test]
fn promise_9_a_holder_of_the_first_version_is_driven_by_the_daemon_of_now() {
    let root = Root::new();
    root.start_script("api", "echo up; while read -r line; do echo \"got $line\"; done; exit 3");
    root.wait_screen("api", "up");
    let program = root.program("api");
    root.run(&["daemon", "stop"]).ok();
    make_old(&wait_for_socket(&root));

    root.wait_screen("api", "up");
    assert_eq!(root.program("api"), program, "the same program goes on");
    root.run(&["send", "api", "--enter", "one"]).ok();
    root.wait_screen("api", "got one");
    let flood = "x".repeat(3000);
    for _ in 0..30 {
        root.run(&["send", "api", "--enter", &flood]).ok();
    }
    root.run(&["send", "api", "--enter", "two"]).ok();
    root.wait_screen("api", "got two");

    // it says what such a holder cannot do, and the program goes on
    let paused = root.run(&["pause", "api"]);
    let said = format!("{}{}", paused.stdout, paused.stderr);
    assert!(said.contains("before sessions-tui could freeze"), "{said}");
    root.run(&["resume", "api"]).ok();
    root.run(&["send", "api", "--enter", "three"]).ok();
    root.wait_screen("api", "got three");

    // once more, and a crash
    root.run(&["daemon", "restart"]).ok();
    root.kill_daemon();
    root.run(&["send", "api", "--enter", "four"]).ok();
    root.wait_screen("api", "got four");
    let found = root.run(&["search", "got one"]).ok();
    assert!(found.contains("got one"), "{found}");
    root.run(&["send", "api", "--key", "ctrl-d"]).ok();
    root.wait_status("api", "failed");
    assert_eq!(root.status("api").1, "exit code 3", "its exit is known");
    wait_until("the holder to be gone", || root.holders().is_empty());
}

/// The only holder's, without a daemon to ask.
fn wait_for_socket(root: &Root) -> std::path::PathBuf {
    std::fs::read_dir(root.join("run"))
        .expect("a folder")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "sock") && *path != root.socket())
        .expect("a holder's socket")
}

#[test]
fn promise_9_clients_of_before_and_after_are_heard_or_told() {
    let root = Root::new();
    root.run(&["ls"]).ok();
    // the first clients said no more than this
    let mut old = Wire::connect(&root.socket());
    old.say(&json!({"hello": {"protocol": 1, "version": "0.0.1", "pid": 1}}));
    assert_eq!(old.line().expect("a hello")["hello"]["protocol"], 1);
    assert!(old.call(1, json!({"request": "list"}))["ok"].is_array());
    // a field and a request of tomorrow
    assert!(old.call(2, json!({"request": "list", "from_tomorrow": true}))["ok"].is_array());
    let refusal = old.call(3, json!({"request": "teleport"}));
    assert!(refusal["failure"]["message"].as_str().is_some_and(|text| text.contains("teleport")), "{refusal}");
    // another protocol: told what to do, and allowed to do it
    let mut newer = Wire::connect(&root.socket());
    newer.say(&json!({"hello": {"protocol": 2, "version": "9.0.0", "pid": 1, "tongue": "new"}}));
    assert_eq!(newer.line().expect("a hello")["hello"]["protocol"], 1);
    let refusal = newer.call(1, json!({"request": "list"}));
    assert!(refusal["failure"]["message"].as_str().is_some_and(|text| text.contains("daemon restart")), "{refusal}");
    assert!(newer.call(2, json!({"request": "stop", "restart": true}))["ok"].is_object());
}
