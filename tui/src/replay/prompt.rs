//! A line to type in, at the bottom. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    Time,
    Pattern,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub asks: Asks,
    pub text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    More,
    Done(String),
    Never,
}

/// Longer than anything that makes sense here.
const MAX_TEXT: usize = 500;

impl Prompt {
    pub fn new(asks: Asks) -> Self {
        Self { asks, text: String::new() }
    }

    pub fn key(&mut self, key: KeyEvent) -> Typed {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Typed::Never,
            KeyCode::Char('c' | 'g') if is_control => return Typed::Never,
            KeyCode::Char('u') if is_control => self.text.clear(),
            KeyCode::Char('w') if is_control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.truncate(kept);
            }
            KeyCode::Backspace if self.text.is_empty() => return Typed::Never,
            KeyCode::Backspace => {
                self.text.pop();
            }
            KeyCode::Char('h') if is_control => {
                self.text.pop();
            }
            KeyCode::Enter => return Typed::Done(std::mem::take(&mut self.text)),
            KeyCode::Char(c) if !is_control && !c.is_control() && self.text.len() < MAX_TEXT => self.text.push(c),
            _ => {}
        }
        Typed::More
    }

    pub fn label(&self) -> &'static str {
        match self.asks {
            Asks::Time => "go to: ",
            Asks::Pattern => "/",
        }
    }
}
