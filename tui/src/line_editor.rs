//! A line to type in, with the keys people know from shells. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shared::text::{columns, visible};
use unicode_width::UnicodeWidthChar;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    text: String,
    /// In bytes, always between two characters.
    cursor: usize,
}

/// What a key has come to, where a line is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    More,
    Done,
    Never,
}

/// Of a line that is too long, this much is seen behind the cursor.
const BEHIND: usize = 4;

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

    /// A key, where the line is all that is asked for.
    pub fn typed(&mut self, key: KeyEvent) -> Typed {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => Typed::Never,
            KeyCode::Char('c' | 'g') if is_control => Typed::Never,
            KeyCode::Backspace if self.is_empty() => Typed::Never,
            KeyCode::Enter => Typed::Done,
            _ => {
                self.key(key);
                Typed::More
            }
        }
    }

    /// What is seen of it in so many columns, and in which of them the cursor is: of a long line the part around it.
    pub fn shown(&self, room: usize) -> (String, usize) {
        let (before, behind) = self.parts();
        let (mut before, behind) = (visible(before), visible(behind));
        let most = room.saturating_sub(1 + columns(&behind).min(BEHIND).min(room / 2));
        if columns(&before) > most {
            let mut width = 0;
            // a wide character that does not fit is left out as a whole
            let fits = |c: &char| {
                width += c.width().unwrap_or(0);
                width <= most
            };
            let kept: usize = before.chars().rev().take_while(fits).map(char::len_utf8).sum();
            before = before.split_off(before.len() - kept);
        }
        let cursor = columns(&before);
        let mut left = room.saturating_sub(cursor);
        let fits = |c: &char| {
            let width = c.width().unwrap_or(0);
            let has_room = width <= left;
            left = left.saturating_sub(width);
            has_room
        };
        let behind: String = behind.chars().take_while(fits).collect();
        (before + &behind, cursor)
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

    #[test]
    fn a_long_line_moves_by_columns() {
        for (text, back, room, expected) in [
            ("short", 0, 10, ("short", 5)),
            ("abcdefghij", 0, 6, ("fghij", 5)),
            ("世界世界世界", 0, 6, ("世界", 4)),
            ("a世界世界世界", 0, 8, ("界世界", 6)),
            ("世界世界", 4, 6, ("世界世", 0)),
            ("👍👍👍 ok", 0, 7, ("👍 ok", 5)),
            ("abcdefghij", 5, 6, ("defghi", 2)),
            ("any", 0, 0, ("", 0)),
        ] {
            let mut line = Line::new(text);
            for _ in 0..back {
                line.key(KeyEvent::from(KeyCode::Left));
            }
            let (shown, cursor) = line.shown(room);
            assert_eq!((shown.as_str(), cursor), expected, "{text} in {room}");
            assert!(columns(&shown) <= room && cursor <= room);
        }
    }

    #[test]
    fn where_a_line_is_asked_for_it_can_be_left() {
        let mut line = Line::new("a");
        assert_eq!(line.typed(KeyEvent::from(KeyCode::Char('b'))), Typed::More);
        assert_eq!(line.typed(KeyEvent::from(KeyCode::Enter)), Typed::Done);
        assert_eq!(line.typed(control('g')), Typed::Never);
        assert_eq!(line.typed(KeyEvent::from(KeyCode::Backspace)), Typed::More);
        assert_eq!(line.typed(KeyEvent::from(KeyCode::Backspace)), Typed::More);
        assert_eq!(line.typed(KeyEvent::from(KeyCode::Backspace)), Typed::Never, "there is nothing left to take away");
    }
}
