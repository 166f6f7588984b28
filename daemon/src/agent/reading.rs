//! What the title and the screen of an agent mean, by the rules of its manifest. Pure. Rules are guesses: they may be wrong, and
//! nothing here decides how much they count.

use shared::attention::Attention;

use super::Agent;

/// Rows above the line of a rule in which the question is looked for: a menu of answers is rarely longer.
const QUESTION_WITHIN: usize = 12;

/// Rows above a question that tell it from another one with the same words.
const CONTEXT_ROWS: usize = 6;

/// A text that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub state: Attention,
    /// For a person: the question, or the title without its glyph.
    pub text: String,
    /// Of a question: the rows above it.
    pub context: String,
    /// The agent shows the same in other states too.
    pub is_weak: bool,
}

impl Agent {
    pub fn read_title(&self, title: &str) -> Option<Reading> {
        let rule = self.titles.iter().find(|rule| rule.pattern.is_match(title))?;
        Some(Reading { state: rule.state, text: without_glyph(title).to_owned(), context: String::new(), is_weak: rule.is_weak })
    }

    /// `rows` are the screen's rows from top to bottom; empty ones do not count.
    pub fn read_screen(&self, rows: &[String]) -> Option<Reading> {
        let rows: Vec<&str> = rows.iter().map(|row| inside_of_box(row)).filter(|row| !row.is_empty()).collect();
        self.screens.iter().find_map(|rule| {
            let region = &rows[rows.len().saturating_sub(usize::from(rule.lines))..];
            // the last match is the present one, those above it may be history
            let at = region.iter().rposition(|row| rule.pattern.is_match(row))?;
            if !rule.with.as_ref().is_none_or(|with| region.iter().any(|row| with.is_match(row))) {
                return None;
            }
            let asks = matches!(rule.state, Attention::WaitingApproval | Attention::WaitingAnswer);
            let at = at + rows.len() - region.len();
            let question = if asks { question_at(&rows, at) } else { at };
            let context = if asks { rows[question.saturating_sub(CONTEXT_ROWS)..question].join("\n") } else { String::new() };
            Some(Reading { state: rule.state, text: rows[question].to_owned(), context, is_weak: false })
        })
    }
}

/// The row of the question that the row `at` belongs to: itself, or the nearest one above it that ends like a question.
fn question_at(rows: &[&str], at: usize) -> usize {
    let is_question = |row: &str| row.ends_with('?') || row.contains("? ");
    let from = at.saturating_sub(QUESTION_WITHIN);
    (from..=at).rev().find(|row| is_question(rows[*row])).unwrap_or(at)
}

/// A row without the lines of the box it is drawn in.
fn inside_of_box(row: &str) -> &str {
    let is_frame = |c: char| c.is_whitespace() || ('\u{2500}'..='\u{259f}').contains(&c);
    row.trim_matches(is_frame)
}

/// A title without the glyph or the mark before it.
fn without_glyph(title: &str) -> &str {
    let is_text = |c: char| c.is_alphanumeric() || "~/.\"'(".contains(c);
    // `[ ! ]` is a mark, whatever is in it
    let unmarked = title.strip_prefix("[ ").and_then(|rest| rest.split_once(" ] ")).map_or(title, |(_, text)| text);
    let text = unmarked.trim_start_matches(|c| !is_text(c)).trim();
    if text.is_empty() { title.trim() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agents;

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn titles_of_known_agents_are_understood() {
        use Attention::{Idle, WaitingApproval, Working};
        let agents = Agents::default();
        for (agent, title, expected) in [
            ("claude-code", "◐ fix the login", Some((Working, "fix the login", false))),
            ("claude-code", "⠋ fix the login", Some((Working, "fix the login", false))),
            ("claude-code", "✳ fix the login", Some((Idle, "fix the login", true))),
            ("claude-code", "✳", Some((Idle, "✳", true))),
            ("claude-code", "bash", None),
            ("codex", "⠋ projx", Some((Working, "projx", false))),
            ("codex", "[ ! ] Action Required | projx", Some((WaitingApproval, "Action Required | projx", false))),
            ("codex", "[ . ] Action Required | projx", Some((WaitingApproval, "Action Required | projx", false))),
            ("codex", "projx", None),
            ("gemini", "◇  Ready (projx)", Some((Idle, "Ready (projx)", false))),
            ("gemini", "✋  Action Required (projx)", Some((WaitingApproval, "Action Required (projx)", false))),
            ("gemini", "✦  Working… (projx)", Some((Working, "Working… (projx)", false))),
        ] {
            let found = agents.by_name(agent).expect("is known").read_title(title);
            let expected = expected.map(|(state, text, is_weak)| Reading { state, text: text.into(), context: String::new(), is_weak });
            assert_eq!(found, expected, "{agent}: {title}");
        }
    }

    #[test]
    fn screens_of_known_agents_are_understood_and_the_question_is_found() {
        use Attention::{WaitingAnswer, WaitingApproval, Working};
        let agents = Agents::default();
        let claude = "● Bash(rm -r build)\n╭────────────╮\n│ Bash command │\n│   rm -r build  │\n│ Do you want to proceed? │\n│ ❯ 1. Yes │\n│   2. No, and tell Claude what to do differently (esc) │\n╰──────╯";
        let select =
            " Which database should it use?\n\n ❯ 1. PostgreSQL\n   2. SQLite\n\n Enter to select · ↑/↓ to navigate · Esc to cancel";
        let codex = "  Would you like to run the following command?\n\n  $ touch x\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n  Press enter to confirm or esc to cancel";
        let gemini = "│ ?  Shell rm -r build │\n│ Allow execution of: 'rm'? │\n│ ● 1. Yes, allow once │\n│   2. No (esc) │";
        for (agent, screen, expected) in [
            ("claude-code", claude, Some((WaitingApproval, "Do you want to proceed?"))),
            ("claude-code", select, Some((WaitingAnswer, "Which database should it use?"))),
            ("claude-code", "✻ Thinking… (12s · esc to interrupt)\n> ", Some((Working, "✻ Thinking… (12s · esc to interrupt)"))),
            // a question in what it says is not a dialog that waits
            ("claude-code", "● Done. Do you want to see the diff?\n\n> ", None),
            ("claude-code", "> ", None),
            ("codex", codex, Some((WaitingApproval, "Would you like to run the following command?"))),
            ("gemini", gemini, Some((WaitingApproval, "Allow execution of: 'rm'?"))),
            (
                "opencode",
                "┃ △ Permission required\n┃   # rm -r build\n┃  Allow once   Allow always   Reject",
                Some((WaitingApproval, "△ Permission required")),
            ),
            (
                "aider",
                "Add main.py to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:",
                Some((WaitingApproval, "Add main.py to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:")),
            ),
        ] {
            let found = agents.by_name(agent).expect("is known").read_screen(&rows(screen));
            let found = found.map(|reading| (reading.state, reading.text));
            assert_eq!(found, expected.map(|(state, text)| (state, text.to_owned())), "{agent}: {screen}");
        }
    }

    #[test]
    fn questions_with_the_same_words_differ_by_what_is_above_them() {
        let agents = Agents::default();
        let read = |command: &str, selected: usize| {
            let options: Vec<String> = (1..=2).map(|n| format!("{} {n}. Yes", if n == selected { "❯" } else { " " })).collect();
            let screen = format!("Bash command\n  {command}\nDo you want to proceed?\n{}", options.join("\n"));
            agents.by_name("claude").expect("is known").read_screen(&rows(&screen)).expect("asks")
        };
        assert_ne!(read("rm x", 1).context, read("rm y", 1).context);
        assert_eq!(read("rm x", 1), read("rm x", 2), "the chosen answer is no part of the question");
    }
}
