//! Hibernating: the processes end and their memory is free; everything else stays, and the program is started again when needed.

use crate::support::{BASH, Root, Term, process, wait_until};

fn processes(root: &Root, name: &str) -> Vec<u32> {
    let runtime = root.runtime(name)["id"].as_str().expect("an id").to_owned();
    root.processes()
        .into_iter()
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&format!("SESSIONS_RUNTIME={runtime}")))
        })
        .collect()
}

#[track_caller]
fn shell(root: &Root, name: &str) {
    let mut args = vec!["new", "-d", "--json", "-n", name, "-e", "ASKED=yes", "--size", "90x20", "--"];
    args.extend_from_slice(BASH);
    root.json(&args);
    root.wait_screen(name, "$");
}

#[test]
fn its_memory_is_free_and_it_comes_back_where_it_was() {
    let root = Root::new();
    std::fs::create_dir(root.join("work/deep")).expect("a folder");
    shell(&root, "api");
    root.run(&["send", "api", "--enter", "cd deep; sleep 1000 & echo said-before"]).ok();
    root.wait_screen("api", "said-before\n");
    let (program, holder) = (root.program("api"), root.holder("api"));
    assert!(processes(&root, "api").len() >= 2);
    let before = root.runtime("api");
    root.run(&["pause", "--hibernate", "api", "--force"]).ok();
    assert_eq!(root.status("api"), ("paused".into(), "hibernated".into()));
    assert_eq!(root.runtime("api")["state"]["state"], "hibernated");
    wait_until("every process to be gone", || !process::is_alive(program) && !process::is_alive(holder) && root.holders().is_empty());
    assert!(root.screen("api").contains("said-before"), "its screen stays");
    assert!(root.run(&["pause", "--hibernate", "api"]).refused(4).contains("hibernated already"));

    root.kill_daemon();
    root.run(&["resume", "api"]).ok();
    assert_eq!(root.status("api").0, "active");
    root.wait_screen("api", "was hibernated; started again");
    let screen = root.screen("api");
    let (said, line) = (screen.find("said-before").expect("above"), screen.find("was hibernated").expect("below"));
    assert!(said < line, "{screen}");
    root.run(&["send", "api", "--enter", "echo at=$PWD asked=$ASKED size=$(stty size)"]).ok();
    root.wait_screen("api", &format!("at={} asked=yes size=20 90", root.join("work/deep").display()));
    let after = root.runtime("api");
    assert_ne!(after["id"], before["id"]);
    assert_eq!(after["launch"]["argv"], before["launch"]["argv"]);
    let kinds = root.kinds("api");
    let tail: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|kind| ["start", "pause", "hibernate", "resume"].contains(kind)).collect();
    assert_eq!(tail, ["start", "pause", "hibernate", "resume", "start"]);
}

#[test]
fn what_works_is_refused_unless_forced() {
    let root = Root::new();
    let working = "printf '\\033]7501;state=working\\007'; exec sleep 1000";
    root.start_script("agent", working);
    root.run(&["wait", "agent", "--for", "attention=working", "--timeout", "20s"]).ok();
    let refusal = root.run(&["pause", "agent", "--hibernate"]).refused(4);
    assert!(refusal.contains("is working") && refusal.contains("--force"), "{refusal}");
    assert_eq!(root.status("agent").0, "active", "nothing was changed");
    root.run(&["exec", "-s", "agent", "--detach", "sleep 1000"]).ok();
    wait_until("the call", || root.run(&["pause", "agent", "--hibernate"]).refused(4).contains("call"));
    root.run(&["pause", "agent", "--hibernate", "--force"]).ok();
    assert_eq!(root.runtime("agent")["state"]["state"], "hibernated");
    assert!(root.run(&["pause", "nobody", "--hibernate"]).refused(3).contains("nobody"));
    root.record("record", &[]);
    assert!(root.run(&["pause", "record", "--hibernate"]).refused(4).contains("nothing that runs"));
    assert_eq!(root.status("record").0, "active", "nothing was changed");
}

#[test]
fn it_wakes_for_whoever_attaches_sends_or_calls() {
    let root = Root::new();
    shell(&root, "a");
    root.run(&["pause", "--hibernate", "a"]).ok();
    let watching = Term::open(&root, 90, 20, &["attach", "--read-only", "a"]);
    watching.wait_for_text("hibernated");
    assert_eq!(root.status("a").0, "paused", "whoever only looks wakes nobody");
    let mut term = Term::open(&root, 90, 20, &["attach", "a"]);
    term.wait_for_text("started again");
    term.send(b"echo typed-$ASKED\r");
    term.wait_for_text("typed-yes");
    term.send(b"\x02d");
    assert_eq!(term.wait_exit(), 0);

    // one that is attached is told
    let mut term = Term::open(&root, 90, 20, &["attach", "a"]);
    term.wait_for_text("typed-yes");
    root.run(&["pause", "--hibernate", "a"]).ok();
    term.wait_for_text("hibernated: `sessions-tui attach a` starts it again");
    assert_eq!(term.wait_exit(), 0);
    root.run(&["send", "a", "--enter", "echo sent-$ASKED"]).ok();
    root.wait_screen("a", "sent-yes");

    root.run(&["exec", "-s", "a", "-l", "python", "x = 1"]).ok();
    root.run(&["pause", "--hibernate", "a"]).ok();
    let result = root.json(&["exec", "-s", "a", "-l", "python", "--json", "print('called')"]);
    assert_eq!((result["stdout"].as_str(), result["restarted"].as_bool()), (Some("called\n"), Some(true)), "{result}");
    assert!(result["note"].as_str().expect("a note").contains("hibernated"), "{result}");
    assert_eq!(root.status("a").0, "active");
    root.wait_screen("a", "started again");

    // a folder's own interpreters have no program
    root.run(&["exec", "-l", "bash", "y=2; cd /"]).ok();
    let place = root.json(&["state", "--json"])["name"].as_str().expect("a name").to_owned();
    root.run(&["pause", "--hibernate", &place]).ok();
    assert_eq!(root.run(&["exec", "-l", "bash", "echo $PWD"]).ok().trim(), "/");
}

#[test]
fn what_cannot_be_started_again_says_why_and_stays() {
    let root = Root::new();
    let program = root.join("work/program");
    std::fs::write(&program, "#!/bin/sh\necho up; exec cat\n").expect("writes");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("may be run");
    root.start("own", &["./program"]);
    root.wait_screen("own", "up");
    root.run(&["pause", "--hibernate", "own"]).ok();
    std::fs::rename(&program, root.join("work/elsewhere")).expect("moves");
    assert!(root.run(&["resume", "own"]).refused(4).contains("no program ./program"));
    assert_eq!(root.status("own"), ("paused".into(), "hibernated".into()));
    std::fs::rename(root.join("work/elsewhere"), &program).expect("moves back");
    root.run(&["resume", "own"]).ok();
    root.wait_screen("own", "up");
    root.run(&["pause", "--hibernate", "own"]).ok();
    root.run(&["kill", "own"]).ok();
    assert_eq!(root.status("own"), ("ended".into(), "killed".into()));
}

/// The daemon dies when it has decided: the next one ends the processes, and the session stays paused.
#[test]
fn promise_5_a_hibernation_that_was_decided_is_carried_out() {
    let root = Root::new();
    shell(&root, "api");
    let program = root.program("api");
    root.run(&["daemon", "stop"]).ok();
    root.sql("UPDATE sessions SET status = 'paused', status_reason = 'hibernated', active_since = NULL");
    root.sql("UPDATE runtimes SET ending = 'hibernated'");
    root.run(&["ls"]).ok();
    wait_until("its processes to end", || !process::is_alive(program));
    wait_until("it to be hibernated", || root.runtime("api")["state"]["state"] == "hibernated");
    assert_eq!(root.status("api"), ("paused".into(), "hibernated".into()));
    root.run(&["resume", "api"]).ok();
    root.wait_screen("api", "started again");
}

/// The daemon dies when the launch is stored and nothing runs yet: the next one starts it.
#[test]
fn promise_4_waking_survives_the_daemon() {
    let root = Root::new();
    shell(&root, "api");
    root.run(&["pause", "--hibernate", "api"]).ok();
    let asleep = root.runtime("api")["id"].as_str().expect("an id").to_owned();
    root.run(&["daemon", "stop"]).ok();
    root.sql("UPDATE sessions SET status = 'active', status_reason = NULL, active_since = 1");
    root.sql(&format!(
        "INSERT INTO runtimes (id, terminal_id, session_id, launch, is_live, state, created_at, continues)
         SELECT '0198ffff-0000-7000-8000-000000000001', terminal_id, session_id, launch, 1, '{{\"state\":\"starting\"}}', created_at + 1, id
         FROM runtimes WHERE id = '{asleep}'"
    ));
    root.wait_screen("api", "started again");
    assert_eq!(root.status("api").0, "active");
}

#[test]
fn sessions_hibernate_by_themselves_when_they_are_idle() {
    let root = Root::new();
    root.config("[pause]\nhibernate_after = \"1s\"\n");
    root.start_script("asks", "printf '\\033]7501;state=blocked:kind=question\\007'; exec cat");
    root.start_script("works", "printf '\\033]7501;state=working\\007'; exec cat");
    shell(&root, "watched");
    let term = Term::open(&root, 90, 20, &["attach", "watched"]);
    term.wait_for_text("$");
    root.start("idle", &["cat"]);
    wait_until("the idle one to be hibernated", || root.status("idle").0 == "paused");
    let (_, reason) = root.status("idle");
    assert!(reason.contains("nothing happened in it for 1s"), "{reason}");
    for name in ["asks", "works", "watched"] {
        assert_eq!(root.status(name).0, "active", "{name} is left alone");
    }
    drop(term);
    wait_until("the one nobody looks at any more", || root.status("watched").0 == "paused");
    assert_eq!((root.status("asks").0.as_str(), root.status("works").0.as_str()), ("active", "active"));
}

#[test]
fn the_longest_idle_make_room_for_others() {
    let root = Root::new();
    root.config("[pause]\nmax_live = 2\n");
    for name in ["one", "two", "three"] {
        root.start(name, &["cat"]);
    }
    wait_until("the oldest to make room", || root.status("one").0 == "paused");
    assert_eq!((root.status("two").0.as_str(), root.status("three").0.as_str()), ("active", "active"));
    assert!(root.status("one").1.contains("more than 2"));
}

/// The same words of the kernel about another thing: processor time, of which a test can make a want.
#[test]
fn pressure_hibernates_what_is_idle() {
    if !std::path::Path::new("/proc/pressure/cpu").exists() {
        // a kernel without pressure information: the daemon says so, which the next test shows
        return;
    }
    let root = Root::new();
    root.config("[pause]\nmemory_pressure = 5\npressure_file = \"/proc/pressure/cpu\"\n");
    root.start("idle", &["cat"]);
    let busy = "printf '\\033]7501;state=working\\007'; for n in $(seq $(($(nproc) * 3))); do (while :; do :; done) & done; wait";
    root.start_script("busy", busy);
    wait_until("the idle one to be hibernated", || root.status("idle").0 == "paused");
    assert!(root.status("idle").1.contains("short of memory"));
    assert_eq!(root.status("busy").0, "active");
}

#[test]
fn pressure_that_cannot_be_watched_is_said() {
    let root = Root::new();
    root.config("[pause]\nmemory_pressure = 5\npressure_file = \"/nowhere/pressure\"\n");
    root.start("api", &["cat"]);
    let status = root.run(&["daemon", "status"]).ok();
    assert!(status.contains("memory_pressure") && status.contains("/nowhere/pressure"), "{status}");
}

/// What was exported and taken away in a shell is so again; what looks like a secret is not kept.
#[test]
fn a_shell_gets_its_environment_back() {
    let root = Root::new();
    root.run(&["new", "-d", "-n", "sh", "-e", "GIVEN=1"]).ok();
    root.run(&["wait", "sh", "--for", "attention=idle", "--timeout", "20s"]).ok();
    root.run(&["send", "sh", "--enter", "export MINE=own API_TOKEN=hidden; unset LANG; cd /usr"]).ok();
    let kept = || root.json(&["show", "sh", "--json"])["terminals"][0].clone();
    wait_until("its environment to be kept", || kept()["env_delta"].to_string().contains("own"));
    assert!(!kept().to_string().contains("hidden"));
    for round in 0..2 {
        root.run(&["pause", "--hibernate", "sh", "--force"]).ok();
        root.kill_daemon();
        root.run(&["resume", "sh"]).ok();
        root.run(&["send", "sh", "--enter", &format!("echo {round}:$GIVEN:$MINE:${{API_TOKEN-none}}:${{LANG-none}}:$PWD")]).ok();
        root.wait_screen("sh", &format!("{round}:1:own:none:none:/usr"));
        root.run(&["wait", "sh", "--for", "attention=idle", "--timeout", "20s"]).ok();
    }
    assert!(kept()["env_delta"].to_string().contains("own"), "nothing good was overwritten");
}

/// A program that goes by an agent's name and says what it was started with.
fn stand_in(root: &Root) -> String {
    let (folder, binary) = (root.join("bin"), env!("CARGO_BIN_EXE_sessions-tui"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let hook = format!(
        "printf '{{\"session_id\":\"conv-1\",\"hook_event_name\":\"%s\",\"cwd\":\"%s\"}}' \"$1\" \"$PWD\" | {binary} hook claude-code \"$1\""
    );
    let script =
        format!("#!/bin/sh\nhook() {{ {hook}; }}\nhook SessionStart\nhook UserPromptSubmit\nhook Stop\necho \"asked for: $*\"\nexec cat\n");
    std::fs::write(folder.join("claude"), script).expect("writes");
    std::fs::set_permissions(folder.join("claude"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("may be run");
    format!("PATH={}:{}", folder.display(), std::env::var("PATH").expect("a path"))
}

#[test]
fn an_agent_goes_on_with_its_conversation() {
    let root = Root::new();
    let path = stand_in(&root);
    let args = [
        "new",
        "-d",
        "--json",
        "-n",
        "agent",
        "--size",
        "220x20",
        "-e",
        &path,
        "--",
        "claude",
        "--model",
        "opus",
        "--dangerously-skip-permissions",
        "mend the login",
    ];
    root.json(&args);
    root.wait_screen("agent", "asked for: --model opus");
    wait_until("its conversation to be known", || root.runtime("agent")["agent"]["session_id"] == "conv-1");
    root.run(&["pause", "--hibernate", "agent"]).ok();
    root.kill_daemon();
    root.run(&["resume", "agent"]).ok();
    root.wait_screen("agent", "asked for: --resume conv-1 --model opus\n");
    assert!(root.screen("agent").contains("without --dangerously-skip-permissions"), "{}", root.screen("agent"));
    // no two go on with the same
    wait_until("it to be known again", || root.runtime("agent")["agent"]["session_id"] == "conv-1");
    let twin = ["new", "-d", "--json", "-n", "twin", "-e", &path, "--", "claude"];
    root.json(&twin);
    root.wait_screen("twin", "asked for:");
    wait_until("the twin's conversation", || root.runtime("twin")["agent"]["session_id"] == "conv-1");
    root.run(&["pause", "--hibernate", "twin"]).ok();
    assert!(root.run(&["resume", "twin"]).refused(4).contains("another session already"));
    assert_eq!(root.status("twin").0, "paused");
    root.run(&["kill", "agent"]).ok();
    root.run(&["resume", "twin"]).ok();
    root.wait_screen("twin", "asked for: --resume conv-1\n");
}

#[test]
fn the_screen_of_a_full_screen_program_stays() {
    let root = Root::new();
    std::fs::write(root.work().join("poem.txt"), "the words of the poem\n").expect("a file");
    root.start("editor", &["vim", "-u", "NONE", "-n", "poem.txt"]);
    root.wait_screen("editor", "the words of the poem");
    root.run(&["pause", "editor", "--hibernate", "--force"]).ok();
    assert!(root.screen("editor").contains("the words of the poem"), "{}", root.screen("editor"));
    let term = Term::open(&root, 100, 30, &[]);
    term.wait_for_text("editor");
    term.wait_for_text("the words of the poem");
    // another daemon knows it too, and it is above the program when it is started again
    root.kill_daemon();
    assert!(root.screen("editor").contains("the words of the poem"));
    root.run(&["resume", "editor"]).ok();
    root.run(&["wait", "editor", "--for", "text=the words of the poem", "--timeout", "20s"]).ok();
}
