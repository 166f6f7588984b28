//! The layers of each crate, as ARCHITECTURE.md shows them: a module imports only its own layer and those below it, and no two
//! modules import each other, however indirectly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An import of one module by another: where it is written.
type Imports = BTreeMap<(String, String), String>;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(dir).expect("lists").filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The code of a file: without comments, and without its tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names that follow a `crate::`: one, or the first of each path in braces.
fn named(rest: &str) -> Vec<String> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(list) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let (mut names, mut depth, mut is_first) = (Vec::new(), 0, true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            c if is_first && !c.is_whitespace() => {
                names.push(word(&list[at..]));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

/// Every import between the top modules of a crate.
fn imports(source: &Path) -> (BTreeSet<String>, Imports) {
    let (mut modules, mut imports) = (BTreeSet::new(), Imports::new());
    for path in sources(source) {
        let relative = path.strip_prefix(source).expect("inside");
        let module = relative.components().next().expect("a name").as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        if module == "lib" || module == "main" || relative.ends_with("tests.rs") {
            continue;
        }
        modules.insert(module.clone());
        let code = code(&std::fs::read_to_string(&path).expect("reads"));
        for (at, mark) in code.match_indices("crate::") {
            let line = code[..at].matches('\n').count() + 1;
            for name in named(&code[at + mark.len()..]) {
                let place = format!("{}:{line}", path.strip_prefix(project()).expect("inside").display());
                imports.entry((module.clone(), name)).or_insert(place);
            }
        }
    }
    imports.retain(|(from, to), _| from != to && modules.contains(to));
    (modules, imports)
}

/// The rows of a crate's table in ARCHITECTURE.md, from the bottom up: the layer's name and its modules.
fn table(of_crate: &str) -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(project().join("ARCHITECTURE.md")).expect("reads");
    let heading = format!("### Layers of `{of_crate}`");
    let section = text.split(&heading).nth(1).unwrap_or_else(|| panic!("ARCHITECTURE.md has no section \"{heading}\""));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    let mut layers: Vec<_> = rows
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].to_owned(), cells[1].split_whitespace().map(|module| module.trim_matches('`').to_owned()).collect())
        })
        .collect();
    layers.reverse();
    layers
}

fn check(of_crate: &str, source: &str) {
    let (modules, imports) = imports(&project().join(source));
    let layers = table(of_crate);
    let place: BTreeMap<&str, usize> =
        layers.iter().enumerate().flat_map(|(n, (_, modules))| modules.iter().map(move |module| (module.as_str(), n))).collect();
    let mut wrong = Vec::new();
    for module in &modules {
        if !place.contains_key(module.as_str()) {
            wrong.push(format!("{source}: module `{module}` is in no layer of ARCHITECTURE.md's table"));
        }
    }
    for module in place.keys().filter(|module| !modules.contains(**module)) {
        wrong.push(format!("ARCHITECTURE.md: there is no module `{module}` in {source}"));
    }
    for ((from, to), at) in &imports {
        if let (Some(own), Some(other)) = (place.get(from.as_str()), place.get(to.as_str()))
            && other > own
        {
            let (own, other) = (&layers[*own].0, &layers[*other].0);
            wrong.push(format!("{at}: `{from}` ({own}) imports `{to}` ({other}): a module imports only its own layer and those below"));
        }
    }
    if let Some(cycle) = cycle(&modules, &imports) {
        let steps = cycle.iter().zip(cycle.iter().cycle().skip(1)).map(|(from, to)| {
            let at = imports.get(&(from.clone(), to.clone())).cloned().unwrap_or_default();
            format!("{at}: `{from}` imports `{to}`")
        });
        wrong.push(format!("modules import each other:\n  {}", steps.collect::<Vec<_>>().join("\n  ")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Modules that import each other in a circle, if there are any.
fn cycle(modules: &BTreeSet<String>, imports: &Imports) -> Option<Vec<String>> {
    let next = |module: &String| imports.keys().filter(move |(from, _)| from == module).map(|(_, to)| to.clone()).collect::<Vec<_>>();
    let mut done: BTreeSet<String> = BTreeSet::new();
    for start in modules {
        let mut way: Vec<(String, Vec<String>)> = vec![(start.clone(), next(start))];
        while let Some((module, left)) = way.last_mut() {
            let Some(to) = left.pop() else {
                done.insert(module.clone());
                way.pop();
                continue;
            };
            if let Some(at) = way.iter().position(|(on_it, _)| *on_it == to) {
                return Some(way[at..].iter().map(|(module, _)| module.clone()).collect());
            }
            if !done.contains(&to) {
                let further = next(&to);
                way.push((to, further));
            }
        }
    }
    None
}

#[test]
fn the_daemon_imports_downwards() {
    check("daemon", "daemon/src");
}

#[test]
fn shared_imports_downwards() {
    check("shared", "shared/src");
}

#[test]
fn the_client_imports_downwards() {
    check("tui", "tui/src");
}

/// The rules are pure: nothing that reads files, sockets, processes or the database is imported by them.
#[test]
fn rules_do_no_input_or_output() {
    let (_, imports) = imports(&project().join("daemon/src"));
    let (_, rules) = table("daemon").into_iter().find(|(layer, _)| layer == "rules").expect("a layer of rules");
    for ((from, to), at) in imports {
        assert!(!rules.contains(&from) || rules.contains(&to) || to == "clock", "{at}: `{from}` is a pure rule and imports `{to}`");
    }
    for module in rules {
        let path = project().join("daemon/src").join(format!("{module}.rs"));
        let code = code(&std::fs::read_to_string(&path).expect("reads"));
        for what in ["std::fs", "std::net", "std::process", "tokio::", "rusqlite", "rustix", "Timestamp::now", "SystemTime::now"] {
            assert!(!code.contains(what), "daemon/src/{module}.rs: a pure rule uses {what}");
        }
    }
}

/// The checker itself: what it is there for is found.
#[test]
fn paths_in_braces_and_circles_are_found() {
    assert_eq!(named("{a, b::{c, d}, e as f}"), ["a", "b", "e"]);
    assert_eq!(named("log::Log;"), ["log"]);
    let modules: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let import = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), String::new());
    let straight = Imports::from([import("a", "b"), import("b", "c"), import("a", "c")]);
    assert_eq!(cycle(&modules, &straight), None);
    let round = Imports::from([import("a", "b"), import("b", "c"), import("c", "b"), import("c", "d")]);
    assert_eq!(cycle(&modules, &round), Some(vec!["b".to_owned(), "c".to_owned()]));
}
