//! Which agent a command is: by its program, or by what an interpreter or a package runner is told to run.

use std::path::Path;

use super::{Agent, Agents};

/// Programs that run another one, which is named among their arguments.
const RUNNERS: &[&str] = &["node", "nodejs", "bun", "bunx", "deno", "npx", "pnpm", "yarn", "uv", "uvx", "pipx"];

/// Shells that run a script which is named as an agent: the kernel puts them before it.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish"];

/// Words of runners that only lead to what they run.
const LEADS: &[&str] = &["run", "exec", "x", "dlx", "tool", "-y", "--yes", "-m", "-u", "--", "-p"];

impl Agents {
    /// The agent that a command starts, if it is one that is known.
    pub fn recognise(&self, argv: &[String]) -> Option<&Agent> {
        self.find(argv).map(|(agent, _)| agent)
    }

    /// The agent, and how many of the first words start it; what follows is for it.
    pub(super) fn find(&self, argv: &[String]) -> Option<(&Agent, usize)> {
        let mut at = 0;
        if file_name(argv.first()?) == "env" {
            at = 1 + argv[1..].iter().position(|word| !word.contains('='))?;
        }
        let program = argv.get(at)?;
        if let Some(agent) = self.0.iter().find(|agent| agent.is_program(program)) {
            return Some((agent, at + 1));
        }
        let name = file_name(program);
        if SHELLS.contains(&name) {
            let script = argv.get(at + 1).filter(|word| word.contains('/'))?;
            return self.0.iter().find(|agent| agent.is_program(script)).map(|agent| (agent, at + 2));
        }
        if !RUNNERS.contains(&name) && !name.starts_with("python") {
            return None;
        }
        // the first word that is neither a flag nor a way to it
        let run = argv[at + 1..].iter().position(|word| !word.starts_with('-') && !LEADS.contains(&word.as_str()))? + at + 1;
        let agent = self.0.iter().find(|agent| agent.is_program(&argv[run]) || agent.is_package(&argv[run]))?;
        Some((agent, run + 1))
    }
}

impl Agent {
    fn is_program(&self, word: &str) -> bool {
        let name = file_name(word);
        let stem = name.strip_suffix(".js").or_else(|| name.strip_suffix(".mjs")).or_else(|| name.strip_suffix(".py")).unwrap_or(name);
        self.programs.iter().any(|program| program == stem)
    }

    /// `@scope/name`, `@scope/name@1.2`, or a file inside of it.
    fn is_package(&self, word: &str) -> bool {
        self.packages.iter().any(|package| {
            let version = word.strip_prefix(package.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'));
            version || word.contains(&format!("/{package}/"))
        })
    }
}

fn file_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_recognised_by_what_is_started() {
        let agents = Agents::default();
        for (line, expected) in [
            ("claude", Some(("claude-code", 1))),
            ("/usr/local/bin/claude --model opus", Some(("claude-code", 1))),
            ("node /opt/bin/claude -c", Some(("claude-code", 2))),
            ("node --max-old-space-size=4096 /lib/node_modules/@anthropic-ai/claude-code/cli.js", Some(("claude-code", 3))),
            ("npx -y @openai/codex@0.166 resume x", Some(("codex", 3))),
            ("bunx opencode-ai", Some(("opencode", 2))),
            ("env FOO=1 BAR=2 codex", Some(("codex", 4))),
            ("gemini", Some(("gemini", 1))),
            ("python3.12 -m aider --model x", Some(("aider", 3))),
            ("uv tool run aider", Some(("aider", 4))),
            ("uvx aider-chat", Some(("aider", 2))),
            ("bash", None),
            ("bash -c claude", None),
            ("/bin/bash /opt/bin/claude --model opus", Some(("claude-code", 2))),
            ("bash ./notes.sh", None),
            ("vim claude", None),
            ("node server.js claude", None),
            ("claudette", None),
            ("npx @openai/codexy", None),
            ("env", None),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found = agents.find(&argv).map(|(agent, words)| (agent.name.as_str(), words));
            assert_eq!(found, expected, "{line}");
        }
        assert!(agents.recognise(&[]).is_none());
    }
}
