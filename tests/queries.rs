//! Terminal queries are answered exactly once: by the terminal of the client in control, else by the daemon.

use crate::support::term::Habits;
use crate::support::{Root, Term, process, wait_until};

/// Shell functions for a program that asks its terminal. `ask SEQUENCE` sends it, and a status query behind it as a
/// fence; everything that comes before the fence's answer is written to the file `replies`, a line a question.
const ASK: &str = r#"
stty raw -echo
read_to() {
    reply=
    while IFS= read -r -N 1 -t 25 byte; do
        reply+=$byte
        case $reply in *"$1") return 0;; esac
    done
    return 1
}
ask() {
    printf "$1\033[5n"
    if read_to $'\033[0n'; then reply=${reply%$'\033[0n'}; else reply="timeout:$reply"; fi
    printf '%s\n' "${reply//$'\033'/<ESC>}" >> replies
}
"#;

/// One ask for each of these queries, with its answer by the daemon when nobody is attached (80x24, cursor at row 3, column 7).
const QUERIES: &[(&str, &str)] = &[
    (r"\033[c", "<ESC>[?62;22c"),
    (r"\033[0c", "<ESC>[?62;22c"),
    (r"\033[>c", "<ESC>[>1;10;0c"),
    (r"\033[6n", "<ESC>[3;7R"),
    (r"\033[?6n", "<ESC>[?3;7;1R"),
    (r"\033[?2004\$p", "<ESC>[?2004;2$y"),
    (r"\033]11;?\033\\", r"<ESC>]11;rgb:1010/1010/1010<ESC>\"),
    (r"\033]10;?\a", r"<ESC>]10;rgb:d0d0/d0d0/d0d0<ESC>\"),
    (r"\033[?u", "<ESC>[?0u"),
    (r"\033[18t", "<ESC>[8;24;80t"),
];

fn start(root: &Root, name: &str, script: &str) {
    std::fs::write(root.work().join("ask.sh"), ASK).expect("writes");
    root.start("setup", &["true"]);
    root.start_script(name, &format!(". ./ask.sh; {script}"));
}

/// What the program has been told, a line a question, once there are `count` of them.
#[track_caller]
fn replies(root: &Root, count: usize) -> Vec<String> {
    let path = root.work().join("replies");
    let lines = || -> Vec<String> { std::fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect() };
    wait_until(&format!("{count} replies"), || lines().len() >= count);
    lines()
}

#[test]
fn promise_8_each_query_is_answered_once_by_the_daemon_when_nobody_is_attached() {
    let root = Root::new();
    let asks: Vec<String> = QUERIES.iter().map(|(query, _)| format!("ask '{}'", query.replace(r"\$", "$"))).collect();
    start(&root, "one", &format!("printf '\\033[3;7H'; {}; exec sleep 1000", asks.join("; ")));
    let said = replies(&root, QUERIES.len());
    for ((query, answer), reply) in QUERIES.iter().zip(&said) {
        assert_eq!(reply, answer, "{query}");
    }
    assert_eq!(said.len(), QUERIES.len());
}

#[test]
fn promise_8_version_and_program_status_come_before_the_attributes() {
    let root = Root::new();
    // all in one write, as agents do at their start
    start(&root, "one", r"ask '\033]7501;?\033\\\033[>q\033[c'; exec sleep 1000");
    let said = replies(&root, 1).remove(0);
    let place = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text} in {said}"));
    let (status, version, attributes) = (place("<ESC>]7501;?"), place("<ESC>P>|sessions-tui"), place("<ESC>[?62;22c"));
    assert!(status < version && version < attributes, "{said}");
    for text in ["]7501;", "P>|", "[?62"] {
        assert_eq!(said.matches(text).count(), 1, "{text} in {said}");
    }
}

#[test]
fn promise_8_queries_cut_anywhere_are_answered_once() {
    let root = Root::new();
    let script = r#"
        slowly() { local i; for ((i = 0; i < ${#1}; i++)); do printf %s "${1:i:1}"; sleep 0.02; done; }
        for query in $'\033[c' $'\033]11;?\033\\' $'\033[?2004$p'; do slowly "$query"; ask ''; done
        exec sleep 1000"#;
    start(&root, "one", script);
    assert_eq!(replies(&root, 3), ["<ESC>[?62;22c", r"<ESC>]11;rgb:1010/1010/1010<ESC>\", "<ESC>[?2004;2$y"]);
}

#[test]
fn promise_8_the_terminal_of_the_client_in_control_answers_and_nobody_else() {
    let root = Root::new();
    // this terminal answers DA1 only, so that is what fences here
    let script = r#"
        asked() { printf '\033[c'; read_to c; printf '%s\n' "${reply//$'\033'/<ESC>}" >> replies; }
        while read_to x; do asked; asked; done"#;
    start(&root, "one", script);
    root.run(&["send", "one", "x"]).ok();
    assert_eq!(replies(&root, 2), ["<ESC>[?62;22c"; 2], "detached: the daemon");

    let habits = Habits { attributes: b"\x1b[?99c", ..Habits::default() };
    let term = Term::open_with(&root, 80, 24, &["attach", "one"], habits);
    wait_until("the client", || root.session("one")["clients"] == 1);
    for round in 0..5 {
        term.send(b"x");
        assert_eq!(replies(&root, 4 + 2 * round)[2 + 2 * round..], ["<ESC>[?99c"; 2], "attached: the client's terminal");
    }
    // an observer's terminal is not asked
    let observer = Term::open_with(&root, 80, 24, &["attach", "one", "--read-only"], Habits { attributes: b"\x1b[?77c", ..habits });
    observer.wait_for_text("watching only");
    term.send(b"x");
    assert_eq!(replies(&root, 14)[12..], ["<ESC>[?99c"; 2]);
    drop(term);
    wait_until("only the observer", || root.session("one")["clients"] == 1);
    root.run(&["send", "one", "x"]).ok();
    assert_eq!(replies(&root, 16)[14..], ["<ESC>[?62;22c"; 2], "nobody in control: the daemon again");
}

#[test]
fn promise_8_nothing_is_answered_again_after_kill_9() {
    let root = Root::new();
    start(&root, "one", r"ask '\033[c'; while read_to x; do printf '%s\n' 'extra' >> replies; ask '\033[6n'; done");
    assert_eq!(replies(&root, 1), ["<ESC>[?62;22c"]);
    for round in 0..3 {
        root.kill_daemon();
        root.run(&["ls"]).ok();
        // had an old query been answered again, its answer would be in front of the x
        root.run(&["send", "one", "x"]).ok();
        let said = replies(&root, 3 + 2 * round);
        assert_eq!(said[1 + 2 * round..], ["extra".to_owned(), "<ESC>[1;1R".to_owned()], "{said:?}");
    }
}

#[test]
fn promise_8_a_query_asked_while_the_daemon_is_away_is_answered_when_it_is_back() {
    let root = Root::new();
    start(&root, "one", r"while [ ! -e go ]; do sleep 0.02; done; : > asked; ask '\033[c'; exec sleep 1000");
    wait_until("the program", || root.status("one").0 == "active");
    root.kill_daemon();
    std::fs::write(root.work().join("go"), "").expect("writes");
    wait_until("the question", || root.work().join("asked").exists());
    root.run(&["ls"]).ok();
    assert_eq!(replies(&root, 1), ["<ESC>[?62;22c"]);
}

#[test]
fn programs_that_ask_start_without_delay_when_detached() {
    let root = Root::new();
    for (name, argv, text) in [
        ("vim", &["vim", "-u", "NONE", "-N", "+help"][..], "VIM"),
        ("less", &["less", "/etc/passwd"], "root:"),
        ("htop", &["htop"], "F10Quit"),
        ("fish", &["fish", "--no-config"], "work"),
        ("python", &["/usr/bin/python3", "-q"], ">>>"),
    ] {
        if !std::env::var("PATH").unwrap_or_default().split(':').any(|folder| std::path::Path::new(folder).join(argv[0]).exists()) {
            println!("not checked: {} is not installed", argv[0]);
            continue;
        }
        root.start(name, argv);
        root.wait_screen(name, text);
        assert!(process::is_alive(root.program(name)), "{name}");
    }
}
