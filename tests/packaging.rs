//! What is given away may be: the licences of everything that is linked in, and what a package needs to know.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::Root;

/// Licences under which a binary may be given away without asking anybody. One of each "OR" is enough, all of each "AND" are needed.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Whether an SPDX expression is satisfied; an old form separates by a slash.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let expression = expression.trim();
    // the outermost level first
    let split = |word: &str| -> Option<(String, String)> {
        let mut depth = 0;
        for (at, character) in expression.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ if depth == 0 && expression[at..].starts_with(word) => {
                    return Some((expression[..at].to_owned(), expression[at + word.len()..].to_owned()));
                }
                _ => {}
            }
        }
        None
    };
    if let Some((left, right)) = split(" OR ") {
        return is_allowed(&left) || is_allowed(&right);
    }
    if let Some((left, right)) = split(" AND ") {
        return is_allowed(&left) && is_allowed(&right);
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => ALLOWED.contains(&expression),
    }
}

#[test]
fn expressions_of_licences_are_read() {
    for (expression, allowed) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0-only", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
    ] {
        assert_eq!(is_allowed(expression), allowed, "{expression}");
    }
}

#[test]
fn everything_that_is_linked_in_has_a_licence_that_allows_it() {
    // on every system; what only tests use, or no feature asks for, is not given away
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--target", "all", "--prefix", "none", "--format", "{p}\t{l}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("Unicode");
    let packages: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('\t')).collect();
    assert!(packages.len() > 50, "the dependencies were found");
    let doubtful: Vec<_> = packages.into_iter().filter(|(_, licence)| !is_allowed(licence)).collect();
    assert!(doubtful.is_empty(), "not on the list of licences: {doubtful:#?}");
}

/// Our own package, as cargo knows it.
fn package() -> Value {
    let metadata = metadata();
    metadata["packages"].as_array().expect("packages").iter().find(|package| package["name"] == "sessions-tui").expect("ours").clone()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn a_debian_package_names_files_that_are_there_or_are_made() {
    let package = package();
    assert!(package["rust_version"].as_str().is_some_and(|version| version.starts_with("1.")), "the Rust it needs is stated");
    let deb = &package["metadata"]["deb"];
    // what the script writes before it packs
    let root = Root::new();
    let made = root.join("target/package");
    std::fs::create_dir_all(made.join("man1")).expect("a folder");
    root.run(&["man", made.join("man1").to_str().expect("Unicode")]).ok();
    for shell in ["bash", "zsh", "fish"] {
        std::fs::write(made.join(format!("completions.{shell}")), root.run(&["completions", shell]).ok()).expect("writes");
    }
    std::fs::write(made.join("changelog"), "").expect("writes");
    let script = read(".ci/deb");
    for words in ["man \"$pages/man1\"", "completions \"$shell\"", "$pages/completions.$shell", "$pages/changelog", "pages=target/package"]
    {
        assert!(script.contains(words), "{words}");
    }
    let sources = deb["assets"].as_array().expect("a recipe for Debian").iter().map(|asset| &asset[0]);
    for source in sources.chain([&deb["license-file"][0], &deb["changelog"]]) {
        let source = source.as_str().expect("a file");
        let there = if source.starts_with("target/package/") { root.path() } else { Path::new(env!("CARGO_MANIFEST_DIR")) };
        let is_there = match source.strip_suffix("/*.1") {
            Some(folder) => std::fs::read_dir(there.join(folder)).is_ok_and(|pages| pages.count() > 20),
            None => there.join(source).exists(),
        };
        assert!(is_there || source == "target/release/sessions-tui", "{source}");
    }
}

#[test]
fn the_homebrew_formula_says_what_cargo_says_and_runs_what_there_is() {
    let (package, formula) = (package(), read("sessions-tui.rb"));
    assert!(formula.contains(&format!("desc {}", package["description"])), "{formula}");
    let licences: Vec<_> = package["license"].as_str().expect("a licence").split(" OR ").map(|name| format!("{name:?}")).collect();
    assert!(formula.contains(&format!("license any_of: [{}]", licences.join(", "))), "{formula}");
    let bin = package["targets"].as_array().expect("targets").iter().find(|target| target["kind"][0] == "bin").expect("a program");
    let root = Root::new();
    let mut commands = 0;
    for line in formula.lines() {
        // bin/"sessions-tui", "command", …
        let Some(words) = line.split_once("bin/").map(|(_, rest)| rest.split('"').collect::<Vec<_>>()) else { continue };
        if let [_, program, _, command, ..] = words[..] {
            assert_eq!(program, bin["name"], "{line}");
            root.run(&[command, "--help"]).ok();
            commands += 1;
        }
    }
    assert!(commands >= 4, "its commands were found");
}
