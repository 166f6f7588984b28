//! Every example of every `--help` is run as it stands there.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::support::http::{Reply, Server};
use crate::support::root::finish;
use crate::support::{Root, Term, wait_until};

/// Commands with commands of their own.
const FAMILIES: &[&str] = &["daemon", "config", "hook", "webhook", "group", "files"];

/// The help of the program and of every command, by the words that lead to it.
fn pages(root: &Root) -> Vec<(String, String)> {
    let main = root.run(&["--help"]).ok();
    let mut pages = Vec::new();
    for name in commands_in(&main) {
        let help = root.run(&[&name, "--help"]).ok();
        if FAMILIES.contains(&name.as_str()) {
            for inner in commands_in(&help) {
                let mut args = vec![name.as_str()];
                if name == "files" {
                    args.push("NAME");
                }
                args.extend([inner.as_str(), "--help"]);
                pages.push((format!("{name} {inner}"), root.run(&args).ok()));
            }
        }
        pages.push((name, help));
    }
    pages.push(("sessions-tui".into(), main));
    pages
}

/// Names in the indented lists before the options.
fn commands_in(help: &str) -> Vec<String> {
    let lists = help.split("\nOptions:").next().unwrap_or_default();
    let mut names = Vec::new();
    for line in lists.lines() {
        let Some(rest) = line.strip_prefix("  ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase())) else { continue };
        let name = rest.split(' ').next().unwrap_or_default();
        if rest[name.len()..].starts_with("  ") || rest[name.len()..].starts_with(' ') {
            names.push(name.to_owned());
        }
    }
    names.retain(|name| name != "help" && name != "sessions-tui");
    names
}

/// The examples of a page, without what is said about them.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.starts_with("sessions-tui"));
    lines.map(without_remark).collect()
}

/// Two spaces outside of quotes end a command.
fn without_remark(line: &str) -> String {
    let (mut quote, mut spaces, mut out) = (None, 0, String::new());
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            _ => {}
        }
        spaces = if c == ' ' && quote.is_none() { spaces + 1 } else { 0 };
        if spaces == 2 {
            break;
        }
        out.push(c);
    }
    out.trim_end().to_owned()
}

/// The sessions that examples name, as they expect them.
fn prepare(root: &Root, example: &str) {
    let names = |name: &str| example.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == name);
    let start = |name: &str, argv: &[&str]| {
        root.run(&["resume", name]);
        let mut args = vec!["new", "-d", "-n", name, "--attach-existing", "--"];
        args.extend_from_slice(argv);
        root.run(&args).ok();
    };
    if example.starts_with("sessions-tui new ") {
        // `new` with a command needs a name that is free
        for name in ["api", "build", "fix"] {
            root.run(&["kill", name]);
        }
        return;
    }
    if example.contains("send --group builds") {
        root.run(&["new", "-d", "-n", "first", "--group", "builds", "--", "cat"]).ok();
    }
    if example.contains(" exec 'cd") {
        root.run(&["reset", "-l", "bash"]).ok();
    }
    let shell = ["bash", "-c", "echo Listening on 3000; exec bash --norc --noprofile"];
    if names("api") {
        let shown: serde_json::Value = serde_json::from_str(&root.run(&["show", "api", "--json"]).stdout).unwrap_or_default();
        if !shown["session"]["command"].to_string().contains("Listening on 3000") {
            // an example has started something else under this name
            root.run(&["kill", "api"]);
        }
        start("api", &shell);
        root.wait_screen("api", "Listening on 3000");
        for language in ["python", "bash"] {
            root.run(&["exec", "-s", "api", "-l", language, "x = 1"]);
        }
    }
    for name in ["web", "editor", "old-agent", "notebook"] {
        if names(name) {
            start(name, &["cat"]);
        }
    }
    if names("notebook") {
        root.run(&["exec", "-s", "notebook", "-l", "python", "x = 1"]).ok();
    }
    if names("build") {
        start("build", &["bash", "-c", "echo built; sleep 4"]);
        root.wait_screen("build", "built");
    }
    if names("sh") {
        root.run(&["new", "-d", "-n", "sh"]).ok();
    }
    if names("fix") {
        root.run(&["new", "--no-run", "-n", "fix", "--task", "Fix the login"]).ok();
        if example.contains("resume") {
            root.run(&["pause", "fix"]).ok();
        } else {
            root.run(&["resume", "fix"]);
        }
    }
    if names("x") || example.contains(" eval 'x") {
        root.run(&["exec", "-l", "python", "x = 21"]).ok();
    }
}

/// What cannot be done here is done as nearly as possible: no question, no service, no stranger, no end of a wait.
fn as_runnable(root: &Root, example: &str, server: &Server) -> String {
    let mut line = example.to_owned();
    if line.contains("EXEC_ID") {
        let code = if line.contains("cancel") { "sleep 100" } else { "echo done" };
        let id = root.run(&["exec", "--detach", code]).ok().trim().to_owned();
        if let Some((_, rest)) = line.split_once("&& ") {
            line = rest.to_owned();
        }
        line = line.replace("EXEC_ID", &id);
    }
    if line.contains("webhook") {
        let here = server.url();
        for address in ["https://example.com/hook", "https://example.com/all", "http://10.0.0.5:8080/hook", "http://localhost:3000/hook"] {
            line = line.replace(address, &here);
        }
        root.run(&["webhook", "rm", &here]);
        if !line.contains("webhook add") {
            root.run(&["webhook", "add", &here]).ok();
        }
    }
    for (words, more) in
        [("daemon install", " --dry-run"), ("daemon stop --all", " --yes"), ("hook install", " --yes"), ("hook uninstall", " --yes")]
    {
        if line.contains(words) && !line.contains(more) {
            line += more;
        }
    }
    if line.contains("hook uninstall") {
        root.run(&["hook", "install", "claude-code", "--yes"]);
    }
    // a time of day is in the recording only then
    line.replace("--at 14:05", "--at 0").replace(" --follow", "").replace("| source", "> /dev/null")
}

/// Whether an example takes the terminal.
fn is_interactive(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.get(1).copied() {
        None | Some("attach" | "replay") => true,
        Some("new") => !["-d", "--no-run", "--queue"].iter().any(|flag| words.contains(flag)),
        _ => false,
    }
}

fn run_in_terminal(root: &Root, line: &str) {
    let words = shell_split(line);
    let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let mut term = Term::open(root, 100, 30, &args);
    let (ready, keys): (&str, &[u8]) = match args.first().copied() {
        None => ("sessions", b"q"),
        Some("replay") => ("", b"q"),
        _ => ("", b"\x02d"),
    };
    if args.first() == Some(&"replay") || args.is_empty() {
        term.wait_for("its screen", |screen| !screen.row_text(0).trim().is_empty() || screen.is_alternate());
        if !ready.is_empty() {
            term.wait_for_text(ready);
        }
    } else {
        wait_until(&format!("a client of {line}"), || {
            let all = root.json(&["ls", "--json"]);
            all.as_array().is_some_and(|all| all.iter().any(|session| session["clients"].as_u64() > Some(0)))
        });
    }
    term.send(keys);
    assert_eq!(term.wait_exit(), 0, "{line}:\n{}", term.text());
}

/// Words as a shell sees them; enough for examples.
fn shell_split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Codes that are an answer too: nothing was found, something is wrong with this machine, nothing was lost.
fn is_answer(line: &str, code: i32) -> bool {
    code == 0
        || (code == 1 && ["search", "doctor", "restore", "| grep", "hook status", "config check"].iter().any(|word| line.contains(word)))
        || (matches!(code, 3 | 4) && line.contains("restore api notes"))
        || (line.contains("--since 42") && code != 2)
}

#[test]
fn every_example_of_every_help_runs() {
    let root = Root::new();
    let bin = root.join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    for (name, script) in [("make", "exit 0"), ("npm", "exec cat"), ("man", "cat > /dev/null")] {
        use std::os::unix::fs::PermissionsExt;
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    for dir in ["work/src", "home/src/api"] {
        std::fs::create_dir_all(root.join(dir)).expect("a directory");
    }
    let program = root.executable().parent().expect("a directory").display().to_string();
    let path = format!("{}:{program}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    std::fs::write(root.work().join("script.sh"), "echo from a file\n").expect("writes");
    std::fs::write(root.work().join("demo.cast"), "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"hello\"]\n").expect("writes");
    let server = Server::start(|_| Reply::with(200, "", ""));
    let pages = pages(&root);
    assert!(pages.len() > 50, "{}", pages.len());
    let mut wrong = Vec::new();
    let mut done = BTreeSet::new();
    for (page, help) in &pages {
        for example in examples(help) {
            if !done.insert(example.clone()) {
                continue;
            }
            // an example may not depend on another one's leftovers
            for file in ["build.cast", "build.html", "rest"] {
                let _ = std::fs::remove_file(root.work().join(file));
            }
            prepare(&root, &example);
            let line = as_runnable(&root, &example, &server);
            if is_interactive(&line) {
                if !line.contains("npm") {
                    run_in_terminal(&root, &line);
                }
                continue;
            }
            let mut command = Command::new("bash");
            command.args(["-c", &line]).env_clear().envs(root.environment()).env("PATH", &path).current_dir(root.work());
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let output = finish(command, b"", &[&line]);
            if !is_answer(&line, output.code) {
                wrong.push(format!("{page}: {line}: {} {}{}", output.code, output.stdout, output.stderr));
            }
        }
    }
    assert!(done.len() > 100, "{} examples were found", done.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_is_grouped_and_knows_the_words_people_type() {
    let root = Root::new();
    let help = root.run(&["--help"]).ok();
    for title in ["Sessions:", "Interpreters:", "Recordings:", "Setup:"] {
        assert!(help.contains(title), "{title}: {help}");
    }
    root.start("api", &["bash", "-c", "echo printed-by-it; cat"]);
    root.wait_screen("api", "printed-by-it");
    for list in ["list", "ps", "status"] {
        assert!(root.run(&[list]).ok().contains("api"), "{list}");
    }
    assert!(root.run(&["status", "api"]).ok().contains("thread api"));
    assert!(root.run(&["logs", "api"]).ok().contains("printed-by-it"));
    root.run(&["start", "-d", "-n", "web", "--", "cat"]).ok();
    let wrong = root.run(&["atach", "api"]).refused(2);
    assert!(wrong.contains("attach"), "{wrong}");
    // several at once, and one style of errors
    let refused = root.run(&["stop", "api", "apii"]).refused(3);
    assert!(refused.lines().all(|line| line.starts_with("error: ")) && refused.contains("did you mean api?"), "{refused}");
    assert_eq!(root.status("api").0, "ended", "one that fails does not stop the others");
    root.run(&["stop", "--status", "active"]).refused(2);
    let said = root.run(&["stop", "--status", "active", "--yes"]).ok();
    assert_eq!(said, "web is ended\n");
    root.run(&["delete", "api", "web"]).ok();
    assert_eq!(root.json(&["ls", "--json"]).as_array().map(Vec::len), Some(0));
    let both = root.run(&["kill", "api", "--group", "g"]).refused(2);
    assert!(both.contains("not both"), "{both}");
}

#[test]
fn a_line_is_sent_to_several() {
    let root = Root::new();
    for name in ["a1", "b2"] {
        root.run(&["new", "-d", "-n", name, "--mode", "loud", "--", "cat"]).ok();
    }
    root.run(&["send", "--to", "a1", "--to", "b2", "hello", "--enter"]).ok();
    root.run(&["send", "--mode", "loud", "again", "--enter"]).ok();
    for name in ["a1", "b2"] {
        root.wait_screen(name, "hello");
        root.wait_screen(name, "again");
    }
    root.run(&["send", "a1", "--text", "hello"]).refused(2);
    root.run(&["send"]).refused(2);
    root.run(&["pause", "a1", "b2"]).ok();
    assert_eq!((root.status("a1").0, root.status("b2").0), ("paused".into(), "paused".into()));
    root.run(&["resume", "--mode", "loud"]).ok();
    assert_eq!((root.status("a1").0, root.status("b2").0), ("active".into(), "active".into()));
}
