//! What the command line tells of itself: versions, completions with live names, manuals, a list that stays; and pipes that close.

use std::process::{Command, Stdio};

use crate::support::root::finish;
use crate::support::{Root, Term};

/// A line of a shell that finds our program by its name.
#[track_caller]
fn shell(root: &Root, shell: &str, line: &str) -> String {
    shell_with(root, shell, line, &[])
}

/// The same, with arguments.
#[track_caller]
fn shell_with(root: &Root, shell: &str, line: &str, arguments: &[&str]) -> String {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_sessions-tui")).parent().expect("a folder").display().to_string();
    let mut command = Command::new(shell);
    command.args(["-c", line, shell]).args(arguments).env_clear().envs(root.environment()).current_dir(root.work());
    command.env("PATH", format!("{folder}:{}", std::env::var("PATH").expect("a path")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command, b"", &[line]).ok()
}

#[test]
fn the_version_names_the_commit_where_there_is_one() {
    let root = Root::new();
    let said = root.run(&["--version"]).ok();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[..2], ["sessions-tui", env!("CARGO_PKG_VERSION")]);
    if let Some(commit) = words.get(2) {
        let commit = commit.trim_matches(['(', ')']);
        assert!(commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{said}");
    }
    assert!(root.daemons().is_empty(), "nothing was started");
}

/// What bash offers for a line that ends with an unfinished word.
fn bash_offers(root: &Root, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "eval \"$(sessions-tui completions bash)\"; COMP_WORDS=(sessions-tui {}); COMP_CWORD={}; COMP_TYPE=9; \
         f=$(complete -p sessions-tui | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \"$f\" sessions-tui {}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len(),
        quoted.last().expect("a word"),
    );
    shell(root, "bash", &line).lines().map(|word| word.trim_end().to_owned()).collect()
}

#[test]
fn bash_completes_commands_and_the_names_of_sessions() {
    let root = Root::new();
    assert!(bash_offers(&root, &["att"]).contains(&"attach".to_owned()));
    let none = bash_offers(&root, &["attach", ""]);
    assert!(!none.contains(&"api".to_owned()) && root.daemons().is_empty(), "the tab key starts no daemon: {none:?}");
    root.record("api", &[]);
    root.record("apricot", &[]);
    root.record("build", &[]);
    for (words, word) in [
        (&["ls", "--status", "pa"][..], "paused"),
        (&["ls", "--status", ""], "active"),
        (&["new", "--watch", "a"], "auto"),
        (&["exec", "-l", "py"], "python"),
        (&["wait", "x", "--for", "pr"], "prompt"),
        (&["wait", "x", "--for", "attention=id"], "attention=idle"),
    ] {
        let offers = bash_offers(&root, words);
        assert!(offers.contains(&word.to_owned()), "{words:?}: {offers:?}");
    }
    root.run(&["kill", "build"]).ok();
    assert_eq!(bash_offers(&root, &["rm", ""]).iter().filter(|word| !word.starts_with('-')).collect::<Vec<_>>(), ["build"]);
    assert!(!bash_offers(&root, &["attach", "b"]).contains(&"build".to_owned()), "it has ended");
    for command in ["attach", "show", "kill", "replay", "pause", "export", "forget", "send"] {
        let offers = bash_offers(&root, &[command, "ap"]);
        assert_eq!(offers, ["api", "apricot"], "{command}");
    }
}

#[test]
fn what_bash_offers_is_quoted_and_never_run() {
    let root = Root::new();
    let names = ["zz$(touch${IFS}pwned)", "yy'\"!b`touch${IFS}pwned`", "*", "xx;touch${IFS}pwned", "ww\\$HOME"];
    for name in names {
        root.record(name, &[]);
    }
    // none of these has another's beginning; files that * would stand for are there
    std::fs::write(root.work().join("file"), "").expect("writes");
    for name in names {
        for quote in ["", "'", "\""] {
            // as readline hands it over: the word with its quote in COMP_WORDS, without it in $2; then the line is entered
            let begin: String = name.chars().take(if name == "*" { 0 } else { 2 }).collect();
            let line = format!(
                r#"eval "$(sessions-tui completions bash)"; COMP_WORDS=(sessions-tui show "$1$2"); COMP_CWORD=2; COMP_TYPE=9
                _sessions_tui sessions-tui "$2"
                for offer in "${{COMPREPLY[@]}}"; do eval "set -- $1$offer$1"; printf '%s\n' "$#" "$1"; set -- "{}"; done"#,
                if quote == "\"" { "\\\"" } else { quote }
            );
            let said = shell_with(&root, "bash", &line, &[quote, &begin]);
            let words: Vec<&str> = said.lines().collect();
            assert!(words.chunks(2).all(|pair| pair[0] == "1") && words.contains(&name), "{quote}{name}: {said}");
        }
    }
    let there: Vec<_> = std::fs::read_dir(root.work()).expect("a folder").filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    assert_eq!(there, ["file"], "nothing of it was run");
}

#[test]
fn fish_completes_names_and_zsh_reads_its_script() {
    let root = Root::new();
    root.record("api", &["--task", "x"]);
    let offers = shell(&root, "fish", "sessions-tui completions fish | source; complete -C 'sessions-tui attach a'");
    assert!(offers.lines().any(|line| line.split('\t').next() == Some("api")), "{offers}");
    let line = "autoload -U compinit; compinit -u -D; eval \"$(sessions-tui completions zsh)\"; print -r -- $_comps[sessions-tui]";
    assert!(!shell(&root, "zsh", line).trim().is_empty(), "zsh knows who completes it");
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let root = Root::new();
    let page = root.run(&["man"]).ok();
    assert!(page.contains(".TH sessions-tui 1") && page.contains("attach"), "{page}");
    let folder = root.join("man1");
    root.run(&["man", folder.to_str().expect("Unicode")]).ok();
    for name in ["sessions-tui.1", "sessions-tui-attach.1", "sessions-tui-daemon-install.1"] {
        assert!(folder.join(name).exists(), "{name}");
    }
}

#[test]
fn a_list_that_stays_shows_what_happens_and_survives_the_daemon() {
    let root = Root::new();
    root.record("first", &[]);
    let mut term = Term::open(&root, 80, 12, &["ls", "--watch"]);
    term.wait_for_text("first");
    term.wait_for_text("q leaves");
    root.record("second", &[]);
    term.wait_for_text("second");
    root.run(&["complete", "first"]).ok();
    term.wait_for_text("completed");
    root.kill_daemon();
    root.record("third", &[]);
    term.wait_for_text("third");
    term.send(b"q");
    assert_eq!(term.wait_exit(), 0);
    assert!(term.is_cooked() && !term.is_alternate(), "the terminal is given back");
    let sentence = root.run(&["ls", "--watch"]).refused(2);
    assert!(sentence.contains("needs a terminal"), "{sentence}");
}

#[test]
fn lists_are_cut_only_for_a_window() {
    let root = Root::new();
    let folder = root.work().join("a-folder-with-a-rather-long-name".repeat(4)).join("x".repeat(40));
    std::fs::create_dir_all(&folder).expect("folders");
    let folder = std::fs::canonicalize(&folder).expect("there").display().to_string();
    root.record("long", &["-w", &folder, "--task", &"do it well ".repeat(12)]);
    assert!(root.run(&["ls"]).ok().contains(&folder), "grep finds it");
    let narrow = root.run_with(&["ls"], &[("COLUMNS", "60")]).ok();
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    root.run(&["exec", "-s", "long", &format!("echo {}", "y".repeat(150))]).ok();
    for args in [&["events", "long"][..], &["history", "-s", "long"]] {
        let narrow = root.run_with(args, &[("COLUMNS", "70")]).ok();
        assert!(narrow.lines().count() > 0 && narrow.lines().all(|line| line.chars().count() <= 70), "{narrow}");
        assert!(root.run(args).ok().contains(&"y".repeat(150)), "{args:?}");
    }
}

#[test]
fn no_files_at_all_cannot_be_asked_for() {
    let root = Root::new();
    assert!(root.run(&["files", "x", "changed", "--limit", "0"]).refused(2).contains("--limit"));
}

#[test]
fn sessions_are_counted_not_their_programs() {
    let root = Root::new();
    for name in ["one", "two"] {
        root.start(name, &["cat"]);
        root.run(&["exec", "-s", name, "echo"]).ok();
    }
    assert!(root.run(&["daemon", "restart"]).ok().contains("with 2 sessions"));
    assert!(root.run(&["daemon", "stop"]).ok().contains("; 2 sessions go on"));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let root = Root::new();
    for number in 0..40 {
        root.record(&format!("task-{number}"), &[]);
    }
    let pipes = ["sessions-tui ls", "sessions-tui ls --json", "sessions-tui events", "sessions-tui man", "sessions-tui doctor"];
    for pipe in pipes {
        // nobody reads: what it says of that, and how it ends, goes elsewhere
        let said = shell(&root, "bash", &format!("set +o pipefail; {{ {pipe}; echo \"code $?\" >&2; }} 2>said | true; cat said"));
        let code = said.lines().last().and_then(|line| line.strip_prefix("code ")).and_then(|code| code.parse::<i32>().ok());
        // as it would have ended, or by the pipe; doctor finds that no service is installed
        assert!(matches!(code, Some(0 | 1 | 141)), "{pipe}: {said}");
        assert_eq!(said.lines().count(), 1, "{pipe}: {said}");
    }
}
