//! bash, python, node: what to start, and what their drivers say. The drivers are scripts beside this file, inside the binary;
//! each reads calls from descriptor 3 and answers on 4, framed by length (`holder/driver.rs`).

pub mod environment;
pub mod find;

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shared::exec::{Language, Verb};

/// What a driver says of a call that has ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Said {
    pub exit: i32,
    pub cwd: Option<String>,
    pub value: Option<String>,
    #[serde(deserialize_with = "shared::json::present")]
    pub json: Option<serde_json::Value>,
    pub value_truncated: bool,
    pub error: Option<SaidError>,
    pub interrupted: bool,
    /// The code asked the interpreter to exit, which went on.
    pub exited: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SaidError {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
}

impl SaidError {
    pub fn sentence(&self) -> String {
        if self.message.is_empty() { self.kind.clone() } else { format!("{}: {}", self.kind, self.message) }
    }
}

/// A folder's name may be no UTF-8, so what is said is read with replacements.
pub fn understand(said: &[u8]) -> Said {
    serde_json::from_str(&String::from_utf8_lossy(said)).unwrap_or_else(|_| Said {
        exit: 1,
        error: Some(SaidError { kind: "the driver's answer is not readable".into(), message: String::new() }),
        ..Said::default()
    })
}

/// How a driver calls a verb.
pub fn verb_byte(verb: Verb) -> u8 {
    match verb {
        Verb::Exec => b'x',
        Verb::Eval => b'v',
    }
}

/// What a driver says when it is ready.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Hello {
    pub pid: u32,
    pub version: String,
}

pub fn hello(said: &[u8]) -> Hello {
    serde_json::from_slice(said).unwrap_or_default()
}

/// What the code has defined.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Names {
    pub names: Vec<String>,
    pub imports: Vec<String>,
}

/// JSON, or bash's lines: `f NAME` for a function, `v NAME` for a variable.
pub fn names(said: &[u8]) -> Names {
    if said.first() == Some(&b'{') {
        return serde_json::from_slice(said).unwrap_or_default();
    }
    let mut names: Vec<String> = String::from_utf8_lossy(said)
        .lines()
        .filter_map(|line| match line.split_once(' ')? {
            ("f", name) => Some(format!("{name}()")),
            ("v", name) => Some(name.to_owned()),
            _ => None,
        })
        .collect();
    names.sort();
    Names { names, imports: Vec::new() }
}

fn driver(language: Language) -> (&'static str, &'static str) {
    match language {
        Language::Bash => ("bash", include_str!("language/bash.sh")),
        Language::Python => ("py", include_str!("language/python.py")),
        Language::Node => ("js", include_str!("language/node.js")),
    }
}

/// The language of a driver that was put somewhere by its file's name.
pub fn of_driver(path: &str) -> Option<Language> {
    let name = path.rsplit('/').next()?.strip_prefix("driver-")?;
    let (_, extension) = name.split_once('.')?;
    Language::ALL.into_iter().find(|language| driver(*language).0 == extension)
}

/// Puts the driver where the interpreter can read it.
pub fn install(language: Language, dir: &Path) -> io::Result<PathBuf> {
    let (extension, text) = driver(language);
    let path = dir.join(format!("driver-{}.{extension}", crate::files::sum(text)));
    crate::files::install(&path, text)?;
    Ok(path)
}

/// The command line of an interpreter with its driver; `scratch` is a file of the driver's own.
pub fn argv(language: Language, interpreter: &Path, driver: &Path, scratch: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let flags: &[&str] = match language {
        Language::Bash => &["--norc", "--noprofile"],
        Language::Python | Language::Node => &[],
    };
    let mut argv = vec![text(interpreter)];
    argv.extend(flags.iter().map(|flag| (*flag).to_owned()));
    argv.extend([text(driver), text(scratch)]);
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_say_is_understood() {
        let said = understand(br#"{"exit":1,"cwd":"/x","error":{"type":"ValueError","message":"no"},"later":1}"#);
        assert_eq!((said.exit, said.cwd.as_deref()), (1, Some("/x")));
        assert_eq!(said.error.expect("error").sentence(), "ValueError: no");
        assert!(understand(b"nonsense").error.is_some());
        assert_eq!(understand(b"{\"exit\":0,\"cwd\":\"/\xff\"}").cwd.as_deref(), Some("/\u{fffd}"));
        assert_eq!(names(b"v B\nf f\n").names, ["B", "f()"]);
        assert_eq!(names(br#"{"names":["a"],"imports":["os"]}"#).imports, ["os"]);
    }
}
