//! What the dashboard remembers from one time to the next. Pure; where it is kept is the loop's business.

use serde::{Deserialize, Serialize};
use shared::id::SessionId;

use super::list::Scope;
use super::order::{Group, Sort};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    pub sort: Sort,
    pub group: Group,
    pub scope: Scope,
    pub layout: Layout,
    pub hides_preview: bool,
    pub filter: String,
    /// The session the cursor was on.
    pub cursor: Option<SessionId>,
    /// It has been opened before: the first words are said once.
    pub is_known: bool,
    /// Code that was run from here, newest last.
    pub code: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    #[default]
    List,
    Grid,
}

/// Code that is remembered.
pub const MOST_CODE: usize = 100;

impl Remembered {
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    pub fn note_code(&mut self, code: &str) {
        self.code.retain(|known| known != code);
        self.code.push(code.to_owned());
        let over = self.code.len().saturating_sub(MOST_CODE);
        self.code.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_refused_and_newer_words_are_passed_over() {
        assert!(Remembered::parse("{").is_err());
        let kept = Remembered { sort: Sort::Name, is_known: true, ..Remembered::default() };
        let text = serde_json::to_string(&kept).expect("writes");
        assert_eq!(Remembered::parse(&text.replacen('{', "{\"new\":1,", 1)).expect("reads"), kept);
    }

    #[test]
    fn code_is_kept_once_and_bounded() {
        let mut kept = Remembered::default();
        for n in 0..200 {
            kept.note_code(&format!("{}", n % 150));
        }
        assert_eq!(kept.code.len(), MOST_CODE);
        assert_eq!(kept.code.last().map(String::as_str), Some("49"));
    }
}
