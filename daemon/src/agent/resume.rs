//! How an agent's conversation is gone on with: its own command, the id, and of the flags it was first started with those that are
//! safe to repeat. Never the prompt, and never by itself what lifts its limits.

use shared::agent::{Conversation, Resume};

use super::{Agent, Agents};

/// What is known of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'a> {
    /// Something was asked in it.
    Prompted(&'a str),
    /// It has an id, but nothing was asked yet.
    Unprompted(&'a str),
    Nothing,
}

impl<'a> Known<'a> {
    pub fn of(conversation: Option<&'a Conversation>) -> Self {
        match conversation.and_then(|known| Some((known.session_id.as_deref()?, known.prompted))) {
            Some((id, true)) => Self::Prompted(id),
            Some((id, false)) => Self::Unprompted(id),
            None => Self::Nothing,
        }
    }
}

impl Agents {
    /// How the agent that this command started is gone on with; nothing if it is none.
    pub fn resume(&self, argv: &[String], known: Known<'_>) -> Option<Resume> {
        let (agent, words) = self.find(argv)?;
        Some(agent.resume(argv, words, known))
    }

    /// The words that go on with a conversation which was begun from a shell.
    pub fn resume_by_name(&self, conversation: &Conversation) -> Option<Vec<String>> {
        let agent = self.by_name(&conversation.agent)?;
        let id = conversation.session_id.as_deref().filter(|id| agent.is_id(id))?;
        let program = agent.programs.first()?.clone();
        Some(std::iter::once(program).chain(agent.resume.with_id.iter().map(|word| word.replace("{id}", id))).collect())
    }

    /// Whether a command goes on with a conversation that was there before.
    pub fn is_resumed(&self, argv: &[String]) -> bool {
        let Some((agent, words)) = self.find(argv) else { return false };
        let way = agent.resume.with_id.first();
        way.is_some_and(|way| argv[words..].iter().any(|word| word == way || word.starts_with(&format!("{way}="))))
    }

    /// The id that a command names itself.
    pub fn id_in(&self, argv: &[String]) -> Option<String> {
        let (agent, words) = self.find(argv)?;
        let rest = &argv[words..];
        let word = &agent.resume;
        let by_flag = rest.iter().enumerate().find_map(|(at, flag)| match flag.split_once('=') {
            Some((flag, id)) if word.id_flags.iter().any(|known| known == flag) => Some(id),
            _ => word.id_flags.contains(flag).then(|| rest.get(at + 1).map(String::as_str))?,
        });
        let by_word = || rest.iter().position(|given| word.id_words.contains(given)).and_then(|at| rest.get(at + 1)).map(String::as_str);
        by_flag.or_else(by_word).filter(|id| agent.is_id(id)).map(str::to_owned)
    }
}

impl Agent {
    fn resume(&self, argv: &[String], words: usize, known: Known<'_>) -> Resume {
        let known = match known {
            Known::Prompted(id) | Known::Unprompted(id) if !self.is_id(id) => Known::Nothing,
            known => known,
        };
        let (way, id) = match known {
            Known::Prompted(id) => (&self.resume.with_id, id),
            Known::Unprompted(id) => (&self.resume.before_prompt, id),
            Known::Nothing => (&self.resume.without_id, ""),
        };
        let title = &self.title;
        let (continues, says) = match known {
            Known::Prompted(id) if !way.is_empty() => (true, format!("{title} goes on with conversation {id}")),
            Known::Unprompted(_) => (false, format!("{title} is started again: nothing had been asked yet")),
            Known::Nothing if !way.is_empty() => (true, format!("{title} goes on with what it kept in this folder")),
            _ => (false, format!("{title} is started afresh: which conversation it had is not known")),
        };
        let (kept, withheld) = self.kept(&argv[words..]);
        let mut resumed = argv[..words].to_vec();
        resumed.extend(way.iter().map(|word| word.replace("{id}", id)));
        for flag in kept {
            // what the way says is said once
            if !way.iter().any(|word| *word == flag[0]) {
                resumed.extend(flag);
            }
        }
        Resume { argv: resumed, says, continues, withheld }
    }

    /// Of the arguments of the first launch: flags with their values that are used again, and those that only a person may.
    fn kept(&self, arguments: &[String]) -> (Vec<Vec<String>>, Vec<String>) {
        let (mut kept, mut withheld) = (Vec::<Vec<String>>::new(), Vec::new());
        let has = |list: &[String], flag: &str| list.iter().any(|known| known == flag);
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            at += 1;
            if word == "--" {
                break;
            }
            if !word.starts_with('-') {
                continue;
            }
            let (flag, inline) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
            let mut taken = vec![word.clone()];
            let is_many = has(&self.resume.keep_many, flag);
            let is_known = is_many || has(&self.resume.keep_one, flag) || (inline.is_none() && has(&self.resume.keep, flag));
            if inline.is_none() && (is_many || has(&self.resume.keep_one, flag)) {
                let most = if is_many { usize::MAX } else { 1 };
                while taken.len() <= most
                    && let Some(value) = arguments.get(at).filter(|value| !is_many || !value.starts_with('-'))
                {
                    taken.push(value.clone());
                    at += 1;
                }
            }
            if taken.iter().any(|word| lifts_limits(word)) {
                withheld.extend(taken);
            } else if is_known {
                kept.push(taken);
            }
        }
        (kept, withheld)
    }
}

/// What lets an agent do anything without asking. Said in words by every agent so far.
fn lifts_limits(word: &str) -> bool {
    let word = word.to_lowercase();
    ["dangerous", "danger-", "bypass", "yolo", "skip-permission", "full-auto", "yes-always"].iter().any(|part| word.contains(part))
        || word == "never"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn conversations_go_on_by_the_agents_own_command() {
        let agents = Agents::default();
        let id = "0198c9aa-1111-7222-8333-444455556666";
        let known = Known::Prompted(id);
        for (line, known, expected, withheld) in [
            ("claude", known, format!("claude --resume {id}"), ""),
            ("claude --model opus fix-the-login", known, format!("claude --resume {id} --model opus"), ""),
            ("claude --model=opus -p prompt", known, format!("claude --resume {id} --model=opus"), ""),
            ("claude --session-id old --add-dir a b --verbose", known, format!("claude --resume {id} --add-dir a b --verbose"), ""),
            ("claude --resume other --fork-session", known, format!("claude --resume {id}"), ""),
            ("claude --dangerously-skip-permissions", known, format!("claude --resume {id}"), "--dangerously-skip-permissions"),
            (
                "claude --permission-mode bypassPermissions --verbose",
                known,
                format!("claude --resume {id} --verbose"),
                "--permission-mode bypassPermissions",
            ),
            ("claude --permission-mode plan -- do it", known, format!("claude --resume {id} --permission-mode plan"), ""),
            ("claude --unknown value", known, format!("claude --resume {id}"), ""),
            ("claude x", Known::Unprompted(id), format!("claude --session-id {id}"), ""),
            ("claude --model opus x", Known::Nothing, "claude --model opus".into(), ""),
            ("claude", Known::Prompted("$(reboot)"), "claude".into(), ""),
            ("claude", Known::Prompted("--help"), "claude".into(), ""),
            ("codex -m gpt-5 --full-auto fix", known, format!("codex resume {id} -m gpt-5"), "--full-auto"),
            ("codex resume older -a never -s read-only", known, format!("codex resume {id} -s read-only"), "-a never"),
            ("codex --yolo", Known::Unprompted(id), "codex".into(), "--yolo"),
            ("npx -y @openai/codex --search", known, format!("npx -y @openai/codex resume {id} --search"), ""),
            ("node /opt/gemini -m pro -i hello", known, format!("node /opt/gemini --resume {id} -m pro"), ""),
            ("gemini --approval-mode yolo", known, format!("gemini --resume {id}"), "--approval-mode yolo"),
            ("opencode --port 7", Known::Prompted("ses_abcdefgh123"), "opencode --session ses_abcdefgh123 --port 7".into(), ""),
            ("opencode", known, "opencode".into(), ""),
            ("aider --model x main.py --yes-always", Known::Nothing, "aider --restore-chat-history --model x".into(), "--yes-always"),
        ] {
            let resume = agents.resume(&argv(line), known).expect(line);
            assert_eq!((resume.argv.join(" "), resume.withheld.join(" ")), (expected, withheld.to_owned()), "{line}: {}", resume.says);
        }
        assert_eq!(agents.resume(&argv("bash"), known), None);
    }

    #[test]
    fn what_it_does_is_said() {
        let agents = Agents::default();
        let says = |line: &str, known| agents.resume(&argv(line), known).map(|resume| (resume.continues, resume.says)).expect(line);
        assert_eq!(says("claude", Known::Prompted("ab")), (true, "Claude Code goes on with conversation ab".into()));
        assert_eq!(says("claude", Known::Unprompted("ab")), (false, "Claude Code is started again: nothing had been asked yet".into()));
        assert_eq!(says("claude", Known::Nothing), (false, "Claude Code is started afresh: which conversation it had is not known".into()));
        assert_eq!(says("aider", Known::Nothing), (true, "aider goes on with what it kept in this folder".into()));
    }

    #[test]
    fn ids_are_found_in_commands() {
        let agents = Agents::default();
        for (line, expected) in [
            ("claude --session-id abc-1", Some("abc-1")),
            ("claude --resume=abc-2 --verbose", Some("abc-2")),
            ("claude -r abc-3", Some("abc-3")),
            ("claude --resume", None),
            ("claude --resume --verbose", None),
            ("codex resume abc-4 --search", Some("abc-4")),
            ("codex", None),
            ("opencode -s ses_12345678", Some("ses_12345678")),
            ("opencode -s 12345678", None),
            ("bash --resume x", None),
        ] {
            assert_eq!(agents.id_in(&argv(line)).as_deref(), expected, "{line}");
        }
    }
}
