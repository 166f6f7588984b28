//! Names of threads: what is allowed, how one is made up, how a user's word finds one. Pure.

use crate::text;

/// Long enough for a branch name, short enough for one table column.
pub const MAX_CHARS: usize = 64;

/// Long enough for a mail address or a channel's id, short enough for one line.
pub const MAX_LABEL_CHARS: usize = 256;

/// The form in which a name is stored (NFC), or why a user may not call a thread this.
pub fn normalise(name: &str) -> Result<String, String> {
    let name = label("a name", name, MAX_CHARS)?;
    if name.starts_with('-') {
        return Err(format!("a name cannot start with '-': {name}"));
    }
    if let Some(c) = name.chars().find(|c| c.is_whitespace() || *c == '/') {
        return Err(format!("a name cannot contain {c:?}: try {:?}", name.replace(|c: char| c.is_whitespace() || c == '/', "-")));
    }
    Ok(name)
}

/// Whether a user may call a thread this; the error says what to change.
pub fn check(name: &str) -> Result<(), String> {
    normalise(name).map(drop)
}

/// The form in which another label of a user's is stored: `mode`, `user`, `channel`. Spaces are allowed.
pub fn normalise_label(what: &str, text: &str) -> Result<String, String> {
    label(&format!("the {what}"), text, MAX_LABEL_CHARS)
}

fn label(what: &str, given: &str, max_chars: usize) -> Result<String, String> {
    let text = text::composed(given);
    let chars = text.chars().count();
    if text.is_empty() {
        return Err(format!("{what} cannot be empty"));
    }
    if chars > max_chars {
        return Err(format!("{what} has at most {max_chars} characters, this one has {chars}"));
    }
    if let Some(c) = text.chars().find(|c| text::is_unsafe(*c)) {
        return Err(format!("{what} cannot contain control or invisible characters: remove U+{:04X}", c as u32));
    }
    if text::has_mark_stack(&text) {
        return Err(format!("{what} cannot have more than {} combining marks on one character", text::MAX_MARKS));
    }
    if text::is_blank(&text) {
        return Err(format!("{what} needs at least one visible character"));
    }
    Ok(text)
}

/// A free name made from the workspace folder: `api`, then `api-2`, `api-3`, …
pub fn generate(workspace: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let folder = workspace.rsplit('/').find(|part| !part.is_empty()).unwrap_or("root");
    let base: String = text::composed(folder)
        .chars()
        .map(|c| if c.is_alphanumeric() && !text::is_unsafe(c) || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .take(MAX_CHARS - 8) // room for the number
        .collect();
    let mut base = base.trim_start_matches(['-', '.']).to_owned();
    if base.is_empty() || text::is_blank(&base) || text::has_mark_stack(&base) {
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
            ("api\u{e0041}\u{e0042}", "U+E0041"),
            ("\u{3164}", "invisible"),
            ("\u{2800}\u{2800}", "visible character"),
            ("\u{301}", "visible character"),
            ("z\u{316}\u{317}\u{318}\u{319}\u{31c}", "combining marks"),
        ] {
            let error = check(name).expect_err(name);
            assert!(error.contains(word), "{name:?}: {error}");
        }
        assert!(check(&"x".repeat(65)).is_err());
        assert_eq!(normalise("cafe\u{301}").as_deref(), Ok("caf\u{e9}"));
        assert_eq!(normalise_label("user", "Jose\u{301} M").as_deref(), Ok("Jos\u{e9} M"));
        assert!(normalise_label("mode", "a\u{200b}b").expect_err("invisible").starts_with("the mode cannot"));
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
        for folder in ["/tmp/\u{3164}\u{3164}", "/tmp/\u{e0041}", "/tmp/cafe\u{301}", "/tmp/\u{2800}"] {
            let name = generate(folder, |_| false);
            assert_eq!(normalise(&name).as_ref(), Ok(&name), "{folder:?}");
        }
    }
}
