//! Which interpreter speaks a language here: the settings' choice, a virtualenv of the workspace, or the first on PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use shared::config::RuntimeConfig;
use shared::exec::Language;

/// An interpreter, and the virtualenv it belongs to, if it does.
#[derive(Debug, PartialEq)]
pub struct Interpreter {
    pub path: PathBuf,
    pub virtualenv: Option<PathBuf>,
}

/// One clear sentence when there is none.
pub fn interpreter(language: Language, config: &RuntimeConfig, workspace: &Path, search: &str) -> Result<Interpreter, String> {
    let plain = |path| Interpreter { path, virtualenv: None };
    if let Some(chosen) = config.interpreter(language) {
        let chosen = Path::new(chosen);
        if chosen.is_absolute() && is_program(chosen) {
            return Ok(plain(chosen.to_owned()));
        }
        return Err(format!(
            "{} is no program: write the full path of a {language} into config.toml, [runtime] {language} = \"…\"",
            shared::text::visible(&chosen.to_string_lossy())
        ));
    }
    if language == Language::Python {
        let virtualenv = workspace.join(".venv");
        let path = virtualenv.join("bin/python");
        if is_program(&path) {
            return Ok(Interpreter { path, virtualenv: Some(virtualenv) });
        }
    }
    let names: &[&str] = match language {
        Language::Bash => &["bash"],
        Language::Python => &["python3", "python"],
        Language::Node => &["node", "nodejs"],
    };
    let folders = || search.split(':').filter(|folder| folder.starts_with('/'));
    names.iter().find_map(|name| folders().map(|folder| Path::new(folder).join(name)).find(|path| is_program(path))).map(plain).ok_or_else(
        || {
            format!(
                "there is no {} on PATH: install it, or write its path into config.toml, [runtime] {language} = \"…\"",
                names.join(" or ")
            )
        },
    )
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
