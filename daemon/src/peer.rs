//! Who is calling, as the kernel tells it; what a caller says of itself counts only where the kernel agrees.

use shared::event::Author;
use shared::runtime::MARKS;

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    author: Author,
    has_terminal: bool,
}

impl Peer {
    /// A process inside a session is at work there for somebody, and so is the MCP server; any other is a script or a
    /// person at a prompt. What is typed into an attached terminal is always a person's.
    pub fn of(pid: Option<i32>) -> Self {
        let read = |what: &str| pid.and_then(|pid| std::fs::read(format!("/proc/{pid}/{what}")).ok());
        let inside = read("environ").is_some_and(|environment| {
            let mark = format!("{}=", MARKS[0]);
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()))
        });
        // the MCP server is a program of ours
        let is_door = read("cmdline").is_some_and(|line| {
            let mut words = line.split(|byte| *byte == 0);
            let is_ours = words.next().is_some_and(|program| program.ends_with(b"sessions-tui"));
            is_ours && words.find(|word| !word.starts_with(b"--socket")).is_some_and(|word| word == b"mcp")
        });
        let author = if inside || is_door { Author::Agent } else { Author::Api };
        let has_terminal = match read("stat") {
            Some(stat) => controlling_terminal(&String::from_utf8_lossy(&stat)),
            // where there is no /proc its word has to do
            None => !std::path::Path::new("/proc/self/stat").exists(),
        };
        Self { author, has_terminal }
    }

    /// Who it is; one that says it acts for a person is believed if it has a terminal and is no agent.
    pub fn author(self, says_person: bool) -> Author {
        match self.author {
            Author::Api if says_person && self.has_terminal => Author::Human,
            author => author,
        }
    }
}

/// Whether a line of `/proc/PID/stat` tells of one: the seventh field, counted behind the name, which may contain anything.
fn controlling_terminal(stat: &str) -> bool {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name.split_whitespace().nth(4).is_some_and(|number| number != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_believed_who_has_a_terminal_and_is_no_agent() {
        for (author, has_terminal, says, expected) in [
            (Author::Api, true, true, Author::Human),
            (Author::Api, true, false, Author::Api),
            (Author::Api, false, true, Author::Api),
            (Author::Agent, true, true, Author::Agent),
        ] {
            assert_eq!(Peer { author, has_terminal }.author(says), expected, "{author:?} {has_terminal} {says}");
        }
    }

    #[test]
    fn the_terminal_is_found_behind_any_name() {
        assert!(controlling_terminal("12 (a ) b) S 1 12 12 34816 12 0"));
        assert!(!controlling_terminal("12 (cat) S 1 12 12 0 -1 0"));
        assert!(!controlling_terminal("nothing"));
    }
}
