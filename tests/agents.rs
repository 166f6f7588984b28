//! Agents and shells in terminals: what they tell of themselves is known, explained and kept; whoever is waited for is told, once.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Root, Term, wait_for, wait_until};

/// A program of this name that is found first; what it does is a script for bash.
fn program(root: &Root, name: &str, script: &str) -> String {
    let folder = root.join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/bash\n{script}\n")).expect("writes");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("may run");
    file.to_str().expect("Unicode").to_owned()
}

/// An agent that reads events as lines `EVENT JSON` and calls our hook with them.
fn agent(root: &Root, name: &str, hook: &str) -> String {
    let ours = env!("CARGO_BIN_EXE_sessions-tui");
    program(
        root,
        name,
        &format!("while read -r event json; do printf '%s' \"$json\" | '{ours}' hook {hook} \"$event\"; echo \"said $? $event\"; done"),
    )
}

#[track_caller]
fn say(root: &Root, name: &str, event: &str, payload: &Value) {
    let before = root.screen(name).matches(&format!("said 0 {event}")).count();
    root.run(&["send", name, "--enter", &format!("{event} {payload}")]).ok();
    wait_until("the hook to be called", || root.screen(name).matches(&format!("said 0 {event}")).count() > before);
}

fn explained(root: &Root, name: &str) -> Value {
    root.json(&["explain", name, "--json"])
}

#[track_caller]
fn wait_state(root: &Root, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} to be {state}"), || Some(explained(root, name)).filter(|found| found["state"] == state))
}

fn conversation(root: &Root, name: &str) -> Value {
    root.runtime(name)["agent"].clone()
}

/// A prompt that can be waited for.
fn prompt(root: &Root) {
    std::fs::write(root.join("home/.bashrc"), "PS1='ready> '\n").expect("writes");
}

fn history(root: &Root, name: &str) -> Vec<(String, Option<i64>)> {
    let found = root.json(&["history", name, "--json"]);
    let line = |command: &Value| (command["command"].as_str().unwrap_or_default().to_owned(), command["exitCode"].as_i64());
    found.as_array().expect("a list").iter().map(line).collect()
}

fn ended(commands: &[(&str, i64)]) -> Vec<(String, Option<i64>)> {
    commands.iter().map(|(text, code)| ((*text).to_owned(), Some(*code))).collect()
}

#[test]
fn commands_of_a_shell_are_history_also_those_nobody_heard() {
    let root = Root::new();
    prompt(&root);
    root.run(&["new", "-d", "-n", "shell", "-w", "/", "--", "bash"]).ok();
    root.wait_screen("shell", "ready>");
    root.run(&["send", "shell", "--enter", "cd /tmp; (exit 3)"]).ok();
    wait_until("one command", || history(&root, "shell") == ended(&[("cd /tmp; (exit 3)", 3)]));
    let first = root.json(&["history", "-s", "shell", "-l", "terminal", "--json"])[0].clone();
    assert_eq!((&first["cwd"], &first["author"], &first["running"]), (&json!("/"), &json!("api"), &json!(false)), "{first}");
    assert!(first["duration"].as_f64().is_some_and(|ms| ms < 20_000.0), "{first}");
    assert!(first["startOffset"].as_u64() <= first["endOffset"].as_u64(), "{first}");
    // typed ahead: the shell goes on without a daemon
    let go = root.join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    root.run(&["send", "shell", "--enter", &format!("{waits}\ntrue\n(exit 5)\necho x >{}", root.join("done").display())]).ok();
    wait_until("it to run", || history(&root, "shell").last() == Some(&(waits.clone(), None)));
    root.kill_daemon();
    std::fs::write(&go, "").expect("goes");
    root.wait_file("done");
    let touch = format!("echo x >{}", root.join("done").display());
    let all = ended(&[("cd /tmp; (exit 3)", 3), (&waits, 0), ("true", 0), ("(exit 5)", 5), (&touch, 0)]);
    wait_until("all of them, once", || history(&root, "shell") == all);
    root.kill_daemon();
    root.run(&["send", "shell", "--enter", "true"]).ok();
    wait_until("one more", || history(&root, "shell").len() == all.len() + 1);
    assert_eq!(root.json(&["history", "shell", "--json"])[5]["cwd"], "/tmp");
    // the shell ends while no daemon is there
    std::fs::remove_file(&go).expect("stops");
    root.run(&["send", "shell", "--enter", &format!("{waits}\n(exit 6)\nexit 4")]).ok();
    wait_until("it to run", || history(&root, "shell").last() == Some(&(waits.clone(), None)));
    let shell = root.program("shell");
    root.kill_daemon();
    std::fs::write(&go, "").expect("goes");
    wait_until("the shell to end", || !crate::support::process::is_alive(shell));
    wait_until("what was not heard", || history(&root, "shell").contains(&("(exit 6)".to_owned(), Some(6))));
    assert_eq!(history(&root, "shell").len(), all.len() + 4);
    let text = root.run(&["history", "shell", "--limit", "2"]).ok();
    assert!(text.contains("✗ 6") && text.contains("exit 4"), "{text}");
    root.run(&["history", "-l", "terminal"]).refused(2);
    root.run(&["forget", "shell"]).ok();
    assert!(history(&root, "shell").iter().all(|(text, _)| text.is_empty()), "what is forgotten has no words");
}

#[test]
fn a_command_across_two_segments_has_its_text() {
    let root = Root::new();
    prompt(&root);
    root.run(&["new", "-d", "-n", "shell", "--", "bash"]).ok();
    root.wait_screen("shell", "ready>");
    // a segment has 16 MiB
    root.run(&["send", "shell", "--enter", "head -c 18000000 /dev/zero | tr '\\0' x"]).ok();
    wait_until("the flood to be over", || history(&root, "shell").first().is_some_and(|(_, code)| *code == Some(0)));
    root.run(&["send", "shell", "--enter", "false"]).ok();
    wait_until("both", || history(&root, "shell") == ended(&[("head -c 18000000 /dev/zero | tr '\\0' x", 0), ("false", 1)]));
}

#[test]
fn what_a_shell_exports_is_kept_but_no_secrets() {
    for shell in ["bash", "zsh", "fish"] {
        let root = Root::new();
        root.run(&["new", "-d", "-n", "shell", "-w", "/", "-e", "GIVEN=1", "--", shell]).ok();
        let delta = || {
            let terminal = root.json(&["show", "shell", "--json"])["terminals"][0].clone();
            let pairs = terminal["env_delta"].as_array().cloned().unwrap_or_default();
            let mut all: Vec<String> =
                pairs.iter().map(|pair| format!("{}={}", pair[0].as_str().unwrap_or(""), pair[1].as_str().unwrap_or(""))).collect();
            all.sort();
            (terminal["cwd"].as_str().unwrap_or_default().to_owned(), all)
        };
        root.run(&["send", "shell", "--enter", "export PLAIN='a b' MY_TOKEN=hidden; cd /tmp"]).ok();
        let expected = ("/tmp".to_owned(), vec!["GIVEN=1".to_owned(), "PLAIN=a b".to_owned()]);
        wait_until(&format!("{shell}: {expected:?}"), || delta() == expected);
        // a daemon that is killed misses nothing
        root.kill_daemon();
        root.run(&["send", "shell", "--enter", "export LATER=2"]).ok();
        wait_until("the next one", || delta().1.contains(&"LATER=2".to_owned()));
        let file = format!("{}.now", root.runtime("shell")["id"].as_str().expect("an id").replace('-', ""));
        assert!(root.join("run").join(&file).exists());
        root.run(&["kill", "shell"]).ok();
        wait_until("nothing of it to be left", || !root.join("run").join(&file).exists());
        // the next program has it
        root.run(&["new", "-d", "-n", "shell", "--", "bash", "-c", "echo \"<$PLAIN$LATER$GIVEN$MY_TOKEN>\"; sleep 100"]).ok();
        root.wait_screen("shell", "<a b21>");
    }
}

#[test]
fn hooks_tell_what_an_agent_does_and_which_conversation_it_has() {
    let root = Root::new();
    let claude = agent(&root, "claude", "claude-code");
    root.run(&["new", "-d", "-n", "work", "--", &claude, "--model", "opus", "fix it"]).ok();
    assert_eq!(conversation(&root, "work")["agent"], "claude-code");
    let found = wait_state(&root, "work", "unknown");
    assert_eq!((&found["agent"], found["evidence"].as_array().map(Vec::len)), (&json!("Claude Code"), Some(0)), "{found}");
    let id = "11111111-2222-4333-8444-555555555555";
    let with = |more: Value| {
        let mut payload = json!({"session_id": id, "cwd": root.work(), "transcript_path": "/t/1.jsonl"});
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        payload
    };
    say(&root, "work", "SessionStart", &with(json!({"source": "startup"})));
    wait_state(&root, "work", "idle");
    let known = conversation(&root, "work");
    assert_eq!((&known["session_id"], &known["prompted"], &known["id_source"]), (&json!(id), &json!(false), &json!("hook")), "{known}");
    assert_eq!(root.runtime("work")["resume"]["argv"], json!([claude, "--session-id", id, "--model", "opus"]));
    say(&root, "work", "UserPromptSubmit", &with(json!({"prompt": "very private"})));
    let found = wait_state(&root, "work", "working");
    assert_eq!(
        (&found["evidence"][0]["source"], &found["evidence"][0]["weight"], &found["evidence"][0]["decides"]),
        (&json!("hook"), &json!(80), &json!(true))
    );
    assert_eq!(root.runtime("work")["resume"]["argv"], json!([claude, "--resume", id, "--model", "opus"]));
    // parts of it and others do not speak for it
    say(&root, "work", "Stop", &with(json!({"agent_id": "sub"})));
    say(&root, "work", "SessionStart", &json!({"session_id": "99999999-other", "source": "startup", "cwd": "/"}));
    say(&root, "work", "Stop", &json!({"session_id": "99999999-other"}));
    assert_eq!(explained(&root, "work")["state"], "working");
    assert_eq!(conversation(&root, "work")["session_id"], id);
    say(&root, "work", "PermissionRequest", &with(json!({"tool_name": "Bash", "tool_input": {"command": "rm -r build"}})));
    let found = wait_state(&root, "work", "waiting_approval");
    assert_eq!(found["why"], "allow Bash: rm -r build");
    // kept by the next daemon, though nothing of it is in the recording
    root.kill_daemon();
    assert_eq!(explained(&root, "work")["why"], "allow Bash: rm -r build");
    // told while no daemon is there
    let pid = root.kill_daemon();
    assert!(!crate::support::process::is_alive(pid));
    let ours = program(&root, "call", &format!("printf '%s' \"$2\" | '{}' hook claude-code \"$1\"", env!("CARGO_BIN_EXE_sessions-tui")));
    let runtime = known_runtime(&root);
    let stop = with(json!({"last_assistant_message": "All done."})).to_string();
    let called = std::process::Command::new(&ours)
        .args(["Stop", &stop])
        .env_clear()
        .envs(root.environment())
        .env("SESSIONS_RUNTIME", &runtime)
        .output()
        .expect("runs");
    assert_eq!((called.status.code(), called.stdout.len(), called.stderr.len()), (Some(0), 0, 0), "{called:?}");
    assert!(root.daemons().is_empty(), "a hook starts no daemon");
    let found = wait_state(&root, "work", "done_unseen");
    assert_eq!(found["why"], "All done.");
    wait_until("the spool to be empty", || std::fs::read_dir(root.join("state/hooks")).is_ok_and(|files| files.count() == 0));
    // the next conversation of the same agent takes its place
    say(&root, "work", "SessionStart", &json!({"session_id": "22222222-next", "source": "clear", "cwd": root.work()}));
    assert_eq!(
        (&conversation(&root, "work")["session_id"], &conversation(&root, "work")["prompted"]),
        (&json!("22222222-next"), &json!(false))
    );
    say(&root, "work", "SessionEnd", &json!({"session_id": "22222222-next"}));
    assert_eq!(conversation(&root, "work")["ended"], true);
}

/// As stored: no daemon is there to ask.
fn known_runtime(root: &Root) -> String {
    root.database().query_row("SELECT id FROM runtimes", [], |row| row.get(0)).expect("one")
}

#[test]
fn a_hook_never_disturbs_whoever_calls_it() {
    let root = Root::new();
    for args in [
        &["hook", "claude-code", "Stop"][..],
        &["hook", "nobody", "Nothing"],
        &["hook", "codex", "{\"type\":\"agent-turn-complete\"}"],
        &["hook", "codex", "--odd", "{broken"],
    ] {
        for variables in [&[][..], &[("SESSIONS_SESSION", "0198c9aa-1111-7222-8333-444455556666")]] {
            let output = root.run_with(args, variables);
            assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{args:?}");
        }
    }
    assert!(root.daemons().is_empty(), "and starts nothing");
    root.run(&["hook"]).refused(2);
}

#[test]
fn hooks_are_set_up_and_taken_away_exactly() {
    let root = Root::new();
    let file = root.join("home/.claude/settings.json");
    let before = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n        ]\n    }\n}";
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("makes it");
    std::fs::write(&file, before).expect("writes");
    let shown = root.run(&["hook", "install", "claude"]);
    assert_eq!(shown.code, 2, "standard input is not a terminal");
    assert!(shown.stdout.contains("hooks will be added to") && shown.stdout.contains("--show prints the change"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("+ "), "{}", shown.stdout);
    let shown = root.run(&["hook", "install", "claude", "--show"]);
    assert!(shown.stdout.contains("+ ") && shown.stdout.contains("hook claude-code"), "{}", shown.stdout);
    assert_eq!(std::fs::read_to_string(&file).expect("reads"), before);
    root.run(&["hook", "install", "claude-code", "--yes"]).ok();
    let after: Value = serde_json::from_slice(&std::fs::read(&file).expect("reads")).expect("JSON");
    assert_eq!(after["model"], "opus");
    assert_eq!(after["hooks"]["Stop"].as_array().map(Vec::len), Some(2));
    let again = root.run(&["hook", "install", "claude-code", "--yes"]).ok();
    assert!(again.contains("already"), "{again}");
    assert!(root.run(&["hook", "status"]).ok().contains("✓ claude-code"));
    root.run(&["hook", "uninstall", "claude-code", "--yes"]).ok();
    assert_eq!(std::fs::read_to_string(&file).expect("reads"), before, "to the byte");
    // what the user does meanwhile stays
    root.run(&["hook", "install", "claude-code", "--yes"]).ok();
    let edited = std::fs::read_to_string(&file).expect("reads").replace("opus", "sonnet");
    std::fs::write(&file, edited).expect("writes");
    root.run(&["hook", "uninstall", "claude-code", "--yes"]).ok();
    let left: Value = serde_json::from_slice(&std::fs::read(&file).expect("reads")).expect("JSON");
    assert_eq!(left, json!({"model": "sonnet", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}));
    // one that was not there goes again; one that is not understood is not touched
    root.run(&["hook", "install", "codex", "--yes"]).ok();
    assert!(root.join("home/.codex/hooks.json").exists());
    root.run(&["hook", "uninstall", "codex", "--yes"]).ok();
    assert!(!root.join("home/.codex/hooks.json").exists());
    std::fs::create_dir_all(root.join("home/.gemini")).expect("makes it");
    std::fs::write(root.join("home/.gemini/settings.json"), "{ // mine\n}").expect("writes");
    let why = root.run(&["hook", "install", "gemini", "--yes"]).refused(1);
    assert!(why.contains("not plain JSON"), "{why}");
    assert_eq!(std::fs::read_to_string(root.join("home/.gemini/settings.json")).expect("reads"), "{ // mine\n}");
    root.run(&["hook", "install", "aider", "--yes"]).refused(2);
    root.run(&["hook", "install", "nobody", "--yes"]).refused(2);
}

#[test]
fn agents_of_the_users_own_have_rules_for_title_and_screen() {
    let root = Root::new();
    let folder = root.join("config/agents");
    std::fs::create_dir_all(&folder).expect("a folder");
    let manifest = "name = \"mine\"\nprograms = [\"myagent\"]\n[[titles]]\npattern = \"^BUSY\"\nstate = \"working\"\n[[screens]]\npattern = \"Proceed\\\\? \"\nstate = \"waiting_approval\"\n";
    std::fs::write(folder.join("mine.toml"), manifest).expect("writes");
    std::fs::write(folder.join("bad.toml"), "name = \"bad\"\nprogram = 1\n").expect("writes");
    let mine = program(
        &root,
        "myagent",
        "printf '\\e]0;BUSY x\\a'; read -r; printf '\\e]0;x\\a\\e[2J\\e[Happly patch?\\r\\nProceed? [y/n] '; read -r; printf '\\e[2J\\e[Hnothing'; sleep 1000",
    );
    root.run(&["new", "-d", "-n", "work", "--", &mine]).ok();
    let found = wait_state(&root, "work", "working");
    assert_eq!(found["evidence"][0]["source"], "title", "{found}");
    root.run(&["send", "work", "--enter", ""]).ok();
    let found = wait_state(&root, "work", "waiting_approval");
    assert_eq!((&found["evidence"][0]["source"], &found["why"]), (&json!("screen"), &json!("Proceed? [y/n]")), "{found}");
    root.run(&["send", "work", "--enter", "y"]).ok();
    wait_state(&root, "work", "unknown");
    let status = root.run(&["daemon", "status"]).ok();
    assert!(status.contains("bad.toml") && status.contains("is not known here"), "{status}");
    assert!(!status.contains("mine.toml"), "{status}");
}

/// Screens and titles as Claude Code draws them, without hooks and reports: each line that is read shows the next one.
const CLAUDE_LIKE: &str = r#"
title() { printf '\e]0;%s\a' "$1"; }
show() { printf '\e[2J\e[H%b' "$1"; }
asks() { show "╭───────────────╮\r\n│ Bash command  │\r\n│   $1  │\r\n│ Do you want to proceed? │\r\n│ ❯ 1. Yes      │\r\n│   2. No       │\r\n╰───────────────╯"; }
title '✳ Claude Code'; show 'Welcome\r\n\r\n> '
while read -r line; do
  case "$line" in
    work) title '◐ fix the login'; show '✻ Thinking… (3s · esc to interrupt)\r\n> ' ;;
    ask) title '✳ fix the login'; asks 'rm -r build' ;;
    again) asks 'rm -r dist' ;;
    wrong) for n in 1 2 3 4 5 6; do asks "rm file$n"; sleep 1; show 'nothing'; sleep 1; done; echo over ;;
    done) title '✳ fix the login'; show '● Done. Do you want to see the diff?\r\n\r\n> ' ;;
  esac
done
"#;

fn row_of(root: &Root, name: &str) -> String {
    let list = root.run(&["ls"]).ok();
    list.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned()
}

#[test]
fn c8_an_agent_without_hooks_is_understood_by_its_screen_and_title() {
    let root = Root::new();
    let claude = program(&root, "claude", CLAUDE_LIKE);
    root.run(&["new", "-d", "-n", "work", "--", &claude]).ok();
    let say = |line: &str| root.run(&["send", "work", "--enter", line]).ok();
    let found = wait_state(&root, "work", "idle");
    assert_eq!(found["evidence"][0]["source"], "title", "{found}");
    assert!(row_of(&root, "work").contains("● idle"), "{}", row_of(&root, "work"));
    say("work");
    wait_state(&root, "work", "working");
    assert!(row_of(&root, "work").contains("● working"), "{}", row_of(&root, "work"));
    say("ask");
    let found = wait_state(&root, "work", "waiting_approval");
    assert_eq!(found["why"], "Do you want to proceed?");
    let screen = &found["evidence"][0];
    assert_eq!((&screen["source"], &screen["weight"], &screen["decides"]), (&json!("screen"), &json!(25), &json!(true)), "{found}");
    assert!(screen["changes"].as_str().is_some_and(|text| text.contains("weakest evidence")), "{found}");
    let row = row_of(&root, "work");
    assert!(row.contains("● asks") && row.contains("Do you want to proceed?") && !row.contains("says"), "{row}");
    let dashboard = Term::open(&root, 120, 40, &[]);
    dashboard.wait_for_text("asks");
    dashboard.wait_for_text("Do you want to proceed?");
    dashboard.send(b"q");
    // a daemon that dies neither forgets it nor tells of it again
    let notified = || root.kinds("work").iter().filter(|kind| *kind == "notified").count();
    wait_until("the notice", || notified() == 1);
    root.kill_daemon();
    wait_state(&root, "work", "waiting_approval");
    say("work");
    wait_state(&root, "work", "working");
    assert_eq!(notified(), 1);
    say("done");
    let found = wait_state(&root, "work", "done_unseen");
    assert_eq!((&found["why"], &found["evidence"][0]["source"]), (&json!("fix the login"), &json!("title")), "{found}");
    let row = row_of(&root, "work");
    assert!(row.contains("● finished") && row.contains("fix the login"), "{row}");
    // it was seen: then it is only idle, also for the next daemon
    let looking = Term::open(&root, 80, 24, &["attach", "work"]);
    looking.wait_for_text("Done.");
    looking.send(b"\x02d");
    wait_state(&root, "work", "idle");
    root.kill_daemon();
    assert_eq!(wait_state(&root, "work", "idle")["why"], "fix the login");
}

#[test]
fn c8_an_agent_in_a_shell_is_understood_until_it_leaves() {
    let root = Root::new();
    prompt(&root);
    let claude = program(&root, "claude", &format!("{CLAUDE_LIKE}\nexit"));
    root.run(&["new", "-d", "-n", "shell", "--", "bash"]).ok();
    root.wait_screen("shell", "ready>");
    root.run(&["send", "shell", "--enter", &claude]).ok();
    root.wait_screen("shell", "Welcome");
    root.run(&["send", "shell", "--enter", "ask"]).ok();
    assert_eq!(wait_state(&root, "shell", "waiting_approval")["why"], "Do you want to proceed?");
    // it ends with its question still on the screen
    root.run(&["send", "shell", "--key", "ctrl-d"]).ok();
    wait_state(&root, "shell", "idle");
    root.run(&["send", "shell", "--enter", "sleep 1000"]).ok();
    assert_ne!(wait_state(&root, "shell", "working")["evidence"][0]["source"], "title");
}

#[test]
fn c8_a_wrong_screen_rule_notifies_once_until_somebody_types() {
    let root = Root::new();
    let claude = program(&root, "claude", CLAUDE_LIKE);
    root.run(&["new", "-d", "-n", "work", "--", &claude]).ok();
    root.wait_screen("work", "Welcome");
    let notified = || root.kinds("work").iter().filter(|kind| *kind == "notified").count();
    root.run(&["send", "work", "--enter", "wrong"]).ok();
    root.wait_screen("work", "over");
    assert_eq!(notified(), 1, "{:?}", root.kinds("work"));
    // the next question after an answer is another one
    root.run(&["send", "work", "--enter", "ask"]).ok();
    wait_until("the second notice", || notified() == 2);
    root.run(&["send", "work", "--enter", "again"]).ok();
    wait_until("the third notice", || notified() == 3);
}

#[test]
fn a_password_that_is_asked_for_is_a_question() {
    let root = Root::new();
    root.start_script("asks", "read -rsp 'Password: ' x; echo; echo thanks; sleep 1000");
    let found = wait_state(&root, "asks", "waiting_answer");
    assert_eq!(found["evidence"][0]["source"], "terminal", "{found}");
    root.run(&["send", "asks", "--enter", "secret"]).ok();
    root.wait_screen("asks", "thanks");
    wait_until("it not to ask any more", || explained(&root, "asks")["state"] != "waiting_answer");
}

/// A full-screen program as agents are: it works, asks, works on in the background, is done.
const SCRIPTED: &str = r#"
import base64, os, subprocess, sys, termios, tty
def report(state, text=None, **more):
    parts = [f"state={state}", "app=scripted"] + [f"{k}={v}" for k, v in more.items()]
    if text: parts.append("msg=" + base64.b64encode(text.encode()).decode())
    os.write(1, ("\x1b]7501;" + ":".join(parts) + "\x07").encode())
def show(text):
    os.write(1, ("\x1b[2J\x1b[H" + text).encode())
tty.setraw(0)
os.write(1, b"\x1b[?1049h")
show("ready"); report("idle")
while True:
    key = os.read(0, 1)
    if key == b"w": show("working silently"); report("working")
    if key == b"a": show("Allow rm -r build? y/n"); report("blocked", "Allow rm -r build?", kind="permission")
    if key == b"q": show("Which one? 1/2"); report("blocked", "Which one?", kind="question")
    if key == b"y": show("approved"); report("working")
    if key == b"b": subprocess.Popen(["sleep", "1000"]); show("in the background"); report("working")
    if key == b"d": show("done"); report("done", "Changed 3 files")
    if key == b"x": sys.exit(0)
"#;

#[test]
fn whoever_is_waited_for_is_told_once_and_not_while_they_look() {
    let root = Root::new();
    let told = root.join("told");
    let notifier =
        program(&root, "notifier", &format!("printf '%s|%s|%s\\n' \"$1\" \"$2\" \"$SESSIONS_NOTIFY_STATE\" >> {}", told.display()));
    root.config(&format!("[notify]\ncommand = [\"{notifier}\", \"{{title}}\", \"{{body}}\"]\n"));
    std::fs::write(root.join("agent.py"), SCRIPTED).expect("writes");
    let script = root.join("agent.py");
    root.run(&["new", "-d", "-n", "work", "--", "python3", script.to_str().expect("Unicode")]).ok();
    root.run(&["new", "-d", "-n", "other", "--", "bash", "-c", "echo here; sleep 1000"]).ok();
    let notices = || std::fs::read_to_string(&told).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let key = |key: &str| root.run(&["send", "work", key]).ok();
    root.wait_screen("work", "ready");
    let elsewhere = Term::open(&root, 80, 24, &["attach", "other"]);
    elsewhere.wait_for_text("here");
    let dashboard = Term::open(&root, 80, 24, &[]);
    dashboard.wait_for_text("other");
    key("w");
    wait_state(&root, "work", "working");
    key("a");
    wait_state(&root, "work", "waiting_approval");
    let first = "work asks for permission|Allow rm -r build?|waiting_approval".to_owned();
    wait_until("the command to be run", || notices() == [first.clone()]);
    wait_until("the other terminal to be told", || {
        String::from_utf8_lossy(&elsewhere.bytes()).contains("\x1b]9;work asks for permission: Allow rm -r build?\x1b\\")
    });
    wait_until("the dashboard's terminal to be told", || {
        String::from_utf8_lossy(&dashboard.bytes()).contains("\x1b]9;work: Allow rm -r build?\x1b\\")
    });
    assert_eq!(root.kinds("work").iter().filter(|kind| *kind == "notified").count(), 1);
    // neither the next daemon nor a look tells it again
    root.kill_daemon();
    wait_state(&root, "work", "waiting_approval");
    key("y");
    wait_state(&root, "work", "working");
    key("b");
    assert_eq!(wait_state(&root, "work", "working")["why"], "scripted works", "what is silent is not done");
    key("q");
    wait_state(&root, "work", "waiting_answer");
    let second = "work waits for an answer|Which one?|waiting_answer".to_owned();
    wait_until("the second question", || notices() == [first.clone(), second.clone()]);
    // somebody looks
    let looking = Term::open(&root, 80, 24, &["attach", "work"]);
    looking.wait_for_text("Which one?");
    looking.send(b"y");
    looking.wait_for_text("approved");
    looking.send(b"a");
    looking.wait_for_text("Allow rm");
    wait_state(&root, "work", "waiting_approval");
    wait_until("the state to be told", || {
        root.events("work").iter().filter(|event| event["type"] == "status" && event["data"]["state"] == "waiting_approval").count() == 2
    });
    assert_eq!(root.kinds("work").iter().filter(|kind| *kind == "notified").count(), 2, "not to whoever looks");
    looking.send(b"\x02d");
    key("d");
    let found = wait_state(&root, "work", "done_unseen");
    assert_eq!(found["why"], "Changed 3 files");
    assert_eq!(notices().len(), 2);
    // an end that nobody saw
    key("x");
    let end = "work has ended|exit code 0|done_unseen".to_owned();
    wait_until("the end to be told", || notices() == [first.clone(), second.clone(), end.clone()]);
    root.run(&["kill", "other"]).ok();
    assert_eq!(notices().len(), 3, "whoever ends something knows of it");
}

#[test]
fn b8_hooks_leave_everything_else_of_the_file_as_it_is() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let root = Root::new();
    let real = root.join("dotfiles/settings.json");
    let file = root.join("home/.claude/settings.json");
    let before = "{\r\n  \"model\": \"opus\",\r\n  \"big\": 123456789012345678901234567890,\r\n  \"a\": 1,\r\n  \"a\": 2,\r\n  \"u\": \"\\u00e9\"\r\n}\r\n";
    for folder in [&real, &file] {
        std::fs::create_dir_all(folder.parent().expect("a folder")).expect("makes it");
    }
    std::fs::write(&real, before).expect("writes");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).expect("changes");
    std::os::unix::fs::symlink(&real, &file).expect("links");
    root.run(&["hook", "install", "claude-code", "--yes"]).ok();
    let after = std::fs::read_to_string(&real).expect("reads");
    let ours = after.find("\"hooks\"").expect("installed");
    assert!(before.starts_with(after[..ours].trim_end().trim_end_matches(',')), "{after}");
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    assert!(after.contains("123456789012345678901234567890") && after.contains("\"a\": 1") && after.contains("\\u00e9"), "{after}");
    assert!(file.is_symlink() && std::fs::metadata(&real).expect("there").mode() & 0o7777 == 0o640);
    // changed meanwhile: ours go, the rest stays to the byte
    std::fs::write(&real, after.replace("opus", "sonnet")).expect("writes");
    root.run(&["hook", "uninstall", "claude-code", "--yes"]).ok();
    assert_eq!(std::fs::read_to_string(&real).expect("reads"), before.replace("opus", "sonnet"));
    assert!(file.is_symlink());
    // a second name of the file stays one
    let other = root.join("dotfiles/second.json");
    std::fs::hard_link(&real, &other).expect("links");
    root.run(&["hook", "install", "claude-code", "--yes"]).ok();
    assert_eq!(std::fs::metadata(&other).expect("there").ino(), std::fs::metadata(&real).expect("there").ino());
    root.run(&["hook", "uninstall", "claude-code", "--yes"]).ok();
    assert_eq!(std::fs::read_to_string(&other).expect("reads"), before.replace("opus", "sonnet"));
}
