//! `--help` by subject: about fifty commands in one list are hard to read.

/// Commands by what they are for; a test checks that each is in one group.
const GROUPS: &[(&str, &[&str])] = &[
    ("Sessions", &["new", "ls", "attach", "detach", "show", "send", "screen", "logs", "wait", "kill", "rm", "rename", "status"]),
    ("Pause and restore", &["pause", "resume", "restore", "reset"]),
    ("Interpreters", &["exec", "eval", "result", "cancel", "state", "history"]),
    ("Recordings", &["replay", "search", "export", "import", "forget", "cleanup"]),
    ("Tasks", &["iterate", "complete", "fail", "context", "event", "tool-call", "learn"]),
    ("What happened", &["events", "files", "stats", "audit", "explain"]),
    ("Automation", &["mcp", "hook", "webhook", "group"]),
    ("Setup", &["daemon", "config", "doctor", "completions", "man", "schema"]),
];

/// Longest description in the list; the command's own help has all of it.
const MOST: usize = 74;

/// The command with a help that lists its subcommands by subject.
pub fn grouped(command: clap::Command) -> clap::Command {
    let list = list(&command);
    command.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}\n\n{{after-help}}"))
}

fn list(command: &clap::Command) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(out, "{title}:");
        for name in *names {
            let Some(inner) = command.find_subcommand(name) else { continue };
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            // the first half of a long sentence
            let about = about.split(['\n', ';', ':']).next().unwrap_or_default().trim();
            let aliases: Vec<&str> = inner.get_visible_aliases().collect();
            let also = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
            let _ = writeln!(out, "  {name:<12} {}{also}", shared::text::fit(about, MOST.saturating_sub(also.len())));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut there: Vec<&str> = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
            .map(clap::Command::get_name)
            .filter(|name| *name != "help")
            .collect();
        listed.sort_unstable();
        there.sort_unstable();
        assert_eq!(listed, there);
    }

    #[test]
    fn the_help_names_every_group() {
        let help = grouped(Cli::command()).render_help().to_string();
        for (title, _) in GROUPS {
            assert!(help.contains(&format!("{title}:")), "{help}");
        }
        assert!(help.contains("list, ps") && help.contains("--socket") && help.contains("Examples:"), "{help}");
    }
}
