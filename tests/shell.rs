//! Shell integration: bash, zsh and fish tell of their commands, and nothing of the user's is touched.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::wire::Wire;
use crate::support::{Root, wait_for};

/// The commands a shell has told of, with how they ended.
fn commands(root: &Root, name: &str) -> Vec<(String, Option<i64>)> {
    let mut wire = Wire::greeted(&root.socket());
    let outline = wire.call(1, json!({"request": "replay", "name": name}));
    let marks = outline["ok"]["marks"].as_array().cloned().unwrap_or_default();
    let commands = marks.iter().filter(|mark| mark["kind"] == "command");
    commands.map(|mark| (mark["text"].as_str().unwrap_or_default().to_owned(), mark["exit_code"].as_i64())).collect()
}

#[track_caller]
fn wait_command(root: &Root, name: &str, text: &str, exit_code: i64) {
    let wanted = (text.to_owned(), Some(exit_code));
    wait_for(&format!("{wanted:?}"), || commands(root, name).contains(&wanted).then_some(()));
}

fn home(root: &Root, file: &str, text: &str) {
    let path = root.join("home").join(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes it");
    std::fs::write(path, text).expect("writes");
}

/// Every file in the user's folder, with its contents.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.to_string_lossy().into_owned(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[test]
fn bash_tells_of_its_commands_and_keeps_what_the_user_has_set_up() {
    let root = Root::new();
    home(&root, ".bashrc", "PS1='mine> '\nalias hi='echo hello there'\nPROMPT_COMMAND='seen=$?'\n");
    let before = files(&root.join("home"));
    root.run(&["new", "-d", "-n", "shell", "--", "bash"]).ok();
    root.wait_screen("shell", "mine>");
    let send = |line: &str| root.run(&["send", "shell", "--enter", line]).ok();
    send("cd /; false");
    wait_command(&root, "shell", "cd /; false", 1);
    send("echo größe 'a;b' | tr a c");
    wait_command(&root, "shell", "echo größe 'a;b' | tr a c", 0);
    send("hi; (exit 7)");
    wait_command(&root, "shell", "hi; (exit 7)", 7);
    assert!(root.screen("shell").contains("hello there"), "{}", root.screen("shell"));
    send("echo seen=$seen");
    root.wait_screen("shell", "seen=7");
    // a line the history does not keep is on the screen
    send("HISTCONTROL=ignorespace");
    send(" echo quiet");
    wait_command(&root, "shell", "echo quiet", 0);
    send("echo left=$(env | grep -cE '^(ENV|HISTFILE|SESSIONS_SHELL.*)=') $(set -o | grep posix)");
    // nothing of ours is left for programs
    root.wait_screen("shell", "left=0 posix off");
    assert_eq!(files(&root.join("home")), before, "no file of the user's is touched");
    let layers = root.json(&["show", "shell", "--json"]);
    assert_eq!(layers["runtimes"][0]["launch"]["argv"], json!(["bash"]), "what is stored is what was asked for");
    let needs: Value = layers["session"]["needs"].clone();
    assert_eq!(needs["state"], "idle", "{needs}");
}

#[test]
fn strict_shells_and_those_inside_them_are_not_disturbed() {
    let root = Root::new();
    home(&root, ".bashrc", "set -u\nPS1='mine> '\nexport PROMPT_COMMAND='true'\n");
    root.run(&["new", "-d", "-n", "shell", "--", "bash"]).ok();
    root.wait_screen("shell", "mine>");
    let send = |line: &str| root.run(&["send", "shell", "--enter", line]).ok();
    send("(exit 4)");
    wait_command(&root, "shell", "(exit 4)", 4);
    // one that inherits the hook has not the function it calls
    send("PS1='inner> ' bash --norc");
    root.wait_screen("shell", "inner>");
    send("echo inside-$((40+2))");
    root.wait_screen("shell", "inside-42");
    let screen = root.screen("shell");
    assert!(!screen.contains("unbound") && !screen.contains("not found"), "{screen}");
}

#[test]
fn a_login_shell_reads_what_login_shells_read_and_its_history_is_where_it_was() {
    let root = Root::new();
    home(&root, ".bash_profile", "PS1='login> '\n");
    root.run(&["new", "-d", "-n", "shell", "--", "bash", "-l"]).ok();
    root.wait_screen("shell", "login>");
    root.run(&["send", "shell", "--enter", "true"]).ok();
    wait_command(&root, "shell", "true", 0);
    root.run(&["send", "shell", "--enter", "exit"]).ok();
    root.wait_status("shell", "completed");
    let history = std::fs::read_to_string(root.join("home/.bash_history")).expect("a history");
    assert_eq!(history, "true\nexit\n");
}

#[test]
fn it_can_be_left_out() {
    let root = Root::new();
    home(&root, ".bashrc", "PS1='mine> '\n");
    root.run(&["new", "-d", "-n", "one", "-e", "SESSIONS_NO_SHELL_INTEGRATION=1", "--", "bash"]).ok();
    root.wait_screen("one", "mine>");
    assert!(!root.recordings_contain("]133;"), "asked not to");
    root.run(&["daemon", "stop"]).ok();
    root.config("[shell]\nintegration = false\n");
    root.run(&["new", "-d", "-n", "two", "--", "bash"]).ok();
    root.wait_screen("two", "mine>");
    assert!(!root.recordings_contain("]133;"), "set not to");
}

#[test]
fn zsh_tells_of_its_commands() {
    let root = Root::new();
    home(&root, "dots/.zshrc", "PS1='zmine> '\nprecmd() { seen=$? }\n");
    let dots = root.join("home/dots");
    let variable = format!("ZDOTDIR={}", dots.display());
    root.run(&["new", "-d", "-n", "shell", "-e", &variable, "--", "zsh"]).ok();
    root.wait_screen("shell", "zmine>");
    let send = |line: &str| root.run(&["send", "shell", "--enter", line]).ok();
    send("echo größe 'a;b' | tr a c");
    wait_command(&root, "shell", "echo größe 'a;b' | tr a c", 0);
    send("(exit 3)");
    wait_command(&root, "shell", "(exit 3)", 3);
    send("echo seen=$seen $ZDOTDIR; env | grep -c SESSIONS_SHELL");
    root.wait_screen("shell", "seen=3");
    assert!(root.screen("shell").contains("home/dots"), "{}", root.screen("shell"));
}

#[test]
fn fish_tells_of_its_commands() {
    let root = Root::new();
    home(&root, ".config/fish/config.fish", "function fish_prompt; echo 'fmine> '; end\nset -g fish_greeting\n");
    root.run(&["new", "-d", "-n", "shell", "--", "fish"]).ok();
    root.wait_screen("shell", "fmine>");
    let send = |line: &str| root.run(&["send", "shell", "--enter", line]).ok();
    send("echo größe 'a;b' | tr a c");
    wait_command(&root, "shell", "echo größe 'a;b' | tr a c", 0);
    send("sh -c 'exit 3'");
    wait_command(&root, "shell", "sh -c 'exit 3'", 3);
    send("set -q XDG_DATA_DIRS; and echo is-set; or echo is-unset");
    root.wait_screen("shell", "is-unset");
}
