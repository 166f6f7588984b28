//! A line to type in, with the keys people know from shells. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    text: String,
    /// In bytes, always between two characters.
    cursor: usize,
}

/// Longer than anything that makes sense in one line.
const MAX_TEXT: usize = 64 << 10;

impl Line {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is before the cursor, and what is behind it.
    pub fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Pasted text: on one line, without anything that cannot be seen.
    pub fn insert(&mut self, text: &str) {
        let clean: String =
            text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).filter(|c| !c.is_control()).collect();
        if self.text.len() + clean.len() <= MAX_TEXT {
            self.text.insert_str(self.cursor, &clean);
            self.cursor += clean.len();
        }
    }

    /// `true` if the key was for the line.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if is_control => self.cursor = 0,
            KeyCode::Char('e') if is_control => self.cursor = self.text.len(),
            KeyCode::Char('u') if is_control => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('k') if is_control => self.text.truncate(self.cursor),
            KeyCode::Char('w') if is_control => self.cut_word(),
            KeyCode::Char('h') if is_control => self.backspace(),
            KeyCode::Char('b') if is_control => self.cursor = self.before(),
            KeyCode::Char('f') if is_control => self.cursor = self.after(),
            KeyCode::Char('b') if is_alt => self.cursor = self.word_before(),
            KeyCode::Char('f') if is_alt => self.cursor = self.word_after(),
            KeyCode::Backspace if is_alt || is_control => self.cut_word(),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => {
                let after = self.after();
                self.text.drain(self.cursor..after);
            }
            KeyCode::Left if is_control || is_alt => self.cursor = self.word_before(),
            KeyCode::Right if is_control || is_alt => self.cursor = self.word_after(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            KeyCode::Char(c) if !is_control && !is_alt && !c.is_control() => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => return false,
        }
        true
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    fn word_before(&self) -> usize {
        self.text[..self.cursor].trim_end().rfind(char::is_whitespace).map_or(0, |at| {
            // behind the blank, whatever its size
            at + self.text[at..].chars().next().map_or(1, char::len_utf8)
        })
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        rest[word..].find(char::is_whitespace).map_or(self.text.len(), |at| self.cursor + word + at)
    }

    fn backspace(&mut self) {
        let before = self.before();
        self.text.drain(before..self.cursor);
        self.cursor = before;
    }

    fn cut_word(&mut self) {
        let before = self.word_before();
        self.text.drain(before..self.cursor);
        self.cursor = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn keys_of_shells_work_on_any_text() {
        let mut line = Line::new("größe 世界 end");
        line.key(control('w'));
        assert_eq!(line.text(), "größe 世界 ");
        line.key(control('w'));
        assert_eq!(line.text(), "größe ");
        line.key(KeyEvent::from(KeyCode::Backspace));
        line.key(KeyEvent::from(KeyCode::Left));
        line.key(KeyEvent::from(KeyCode::Char('x')));
        assert_eq!((line.text(), line.parts()), ("größxe", ("größx", "e")));
        line.key(control('a'));
        line.key(KeyEvent::from(KeyCode::Delete));
        line.key(control('f'));
        line.key(control('k'));
        assert_eq!(line.text(), "r");
        line.key(control('u'));
        assert!(line.is_empty());
        line.key(KeyEvent::from(KeyCode::Backspace));
        line.insert("two\nlines\x1b[31m");
        assert_eq!(line.text(), "two lines[31m");
        assert!(!line.key(KeyEvent::from(KeyCode::Enter)), "enter is for whoever asked");
    }
}
