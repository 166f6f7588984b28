//! Names of threads: what is allowed, how one is made up, how a user's word finds one. Pure.

use crate::text;

/// Long enough for a branch name, short enough for one table column.
pub const MAX_CHARS: usize = 64;

/// Whether a user may call a thread this; the error says what to change.
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a name cannot be empty".into());
    }
    if name.chars().count() > MAX_CHARS {
        return Err(format!("a name has at most {MAX_CHARS} characters, this one has {}", name.chars().count()));
    }
    if !text::is_visible(name) {
        return Err("a name cannot contain control or invisible characters".into());
    }
    if name.starts_with('-') {
        return Err(format!("a name cannot start with '-': {name}"));
    }
    if let Some(c) = name.chars().find(|c| c.is_whitespace() || *c == '/') {
        return Err(format!("a name cannot contain {c:?}: try {:?}", name.replace(|c: char| c.is_whitespace() || c == '/', "-")));
    }
    Ok(())
}

/// A free name made from the workspace folder: `api`, then `api-2`, `api-3`, …
pub fn generate(workspace: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let folder = workspace.rsplit('/').find(|part| !part.is_empty()).unwrap_or("root");
    let base: String = folder
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .take(MAX_CHARS - 8) // room for the number
        .collect();
    let mut base = base.trim_start_matches(['-', '.']).to_owned();
    if base.is_empty() {
        base = "session".into();
    }
    if !is_taken(&base) {
        return base;
    }
    let mut number = 2u64;
    loop {
        let candidate = format!("{base}-{number}");
        if !is_taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_are_refused_with_a_reason() {
        for (name, word) in [
            ("", "empty"),
            ("a\x1bb", "control"),
            ("a b", "cannot contain"),
            ("a/b", "cannot contain"),
            ("-n", "start with"),
            ("\u{202e}x", "invisible"),
        ] {
            let error = check(name).expect_err(name);
            assert!(error.contains(word), "{name:?}: {error}");
        }
        assert!(check(&"x".repeat(65)).is_err());
        for name in ["api", "größe", "a.b_c-d", "世界"] {
            check(name).expect(name);
        }
    }

    #[test]
    fn generated_names_come_from_the_folder_and_are_free() {
        let taken = ["api", "api-2"];
        assert_eq!(generate("/home/me/api", |n| taken.contains(&n)), "api-3");
        assert_eq!(generate("/home/me/my app/", |_| false), "my-app");
        assert_eq!(generate("/", |_| false), "root");
        assert_eq!(generate("/home/.config", |_| false), "config");
        assert!(check(&generate("/tmp/-x\x1b y", |_| false)).is_ok());
    }
}
