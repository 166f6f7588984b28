//! Every action by name, found as one types. Pure.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::keymap::{Action, Key, Keymap, Place};
use crate::line_editor::Line;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub action: Action,
    pub name: &'static str,
    pub what: &'static str,
    pub key: Option<Key>,
}

#[derive(Clone, Debug)]
pub struct Palette {
    pub line: Line,
    all: Vec<Entry>,
    pub found: Vec<Entry>,
    pub cursor: usize,
}

impl Palette {
    pub fn new(keymap: &Keymap, place: Place) -> Self {
        let all: Vec<Entry> = keymap
            .actions(place)
            .into_iter()
            .filter(|(row, _)| row.action != Action::Palette)
            .map(|(row, key)| Entry { action: row.action, name: row.name, what: row.what, key })
            .collect();
        Self { line: Line::default(), found: all.clone(), all, cursor: 0 }
    }

    /// The line has changed.
    pub fn find(&mut self) {
        let pattern = Pattern::parse(self.line.text(), CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut buffer = Vec::new();
        let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher);
        let mut found: Vec<(u32, Entry)> = self
            .all
            .iter()
            .filter_map(|entry| {
                // its name counts for more than what is said about it
                let by_name = score(entry.name).map(|score| score + 1000);
                by_name.or_else(|| score(entry.what)).map(|score| (score, entry.clone()))
            })
            .collect();
        if !self.line.is_empty() {
            found.sort_by(|(a, _), (b, _)| b.cmp(a));
        }
        self.found = found.into_iter().map(|(_, entry)| entry).collect();
        self.cursor = 0;
    }

    pub fn step(&mut self, by: isize) {
        self.cursor = self.cursor.saturating_add_signed(by).min(self.found.len().saturating_sub(1));
    }

    pub fn chosen(&self) -> Option<Action> {
        self.found.get(self.cursor).map(|entry| entry.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_words() {
        let mut palette = Palette::new(&Keymap::default(), Place::List);
        assert!(palette.found.len() > 30);
        palette.line = Line::new("kill");
        palette.find();
        assert_eq!(palette.chosen(), Some(Action::Kill));
        palette.line = Line::new("clipboard");
        palette.find();
        assert_eq!(palette.chosen(), Some(Action::Copy));
        palette.line = Line::new("zzzz");
        palette.find();
        assert_eq!(palette.chosen(), None);
        palette.step(5);
        assert_eq!(palette.cursor, 0);
    }
}
