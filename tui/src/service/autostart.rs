//! The entry of the desktop's autostart folder, where no service manager is: it starts the daemon once, on login.

use super::MARK;

pub fn entry(executable: &str, environment: &[(String, String)]) -> String {
    let mut exec = String::new();
    // the format has no variables of its own
    if !environment.is_empty() {
        exec.push_str("env ");
        for (key, value) in environment {
            exec.push_str(&argument(&format!("{key}={value}")));
            exec.push(' ');
        }
    }
    exec.push_str(&argument(executable));
    exec.push_str(" daemon start");
    format!(
        "# {MARK}; `sessions-tui daemon uninstall` takes it away.
[Desktop Entry]
Type=Application
Name=sessions-tui
Comment=Keeps terminals, interpreters and tasks alive
Exec={exec}
Terminal=false
NoDisplay=true
"
    )
}

/// Quoted as the specification of desktop entries says: its own quoting first, then that of every string in such a file.
fn argument(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '`' | '$' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted.replace('\\', "\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_twice() {
        let cases = [
            ("/usr/bin/x", r#""/usr/bin/x""#),
            ("/a b/x", r#""/a b/x""#),
            (r#"/a"b"#, r#""/a\\"b""#),
            ("/a$b%", r#""/a\\$b%%""#),
            (r"/a\b", r#""/a\\\\b""#),
        ];
        for (text, expected) in cases {
            assert_eq!(argument(text), expected, "{text}");
        }
    }
}
