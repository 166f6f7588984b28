//! Keys of the player: which key means what, and the help that says so. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    PlayOrPause,
    /// To the next or previous moment at which something else is to be seen.
    Step(Direction),
    /// By so many seconds.
    Jump(i64),
    Percent(u8),
    Start,
    End,
    AskTime,
    AskPattern,
    Match(Direction),
    Command(Direction),
    Mark(Direction),
    Faster,
    Slower,
    LongerPauses,
    ShorterPauses,
    Live,
    Scale,
    /// Columns and rows.
    Pan(i16, i16),
    Help,
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Back,
    Forward,
}

use Direction::{Back, Forward};

/// How far one key pans.
const PAN_COLUMNS: i16 = 8;
const PAN_ROWS: i16 = 4;

pub fn action(key: KeyEvent) -> Option<Action> {
    let has = |modifier: KeyModifiers| key.modifiers.contains(modifier);
    if has(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Leave),
            KeyCode::Left => Some(Action::Jump(-10)),
            KeyCode::Right => Some(Action::Jump(10)),
            _ => None,
        };
    }
    if has(KeyModifiers::ALT) {
        return match key.code {
            KeyCode::Left | KeyCode::Char('h') => Some(Action::Pan(-PAN_COLUMNS, 0)),
            KeyCode::Right | KeyCode::Char('l') => Some(Action::Pan(PAN_COLUMNS, 0)),
            KeyCode::Up | KeyCode::Char('k') => Some(Action::Pan(0, -PAN_ROWS)),
            KeyCode::Down | KeyCode::Char('j') => Some(Action::Pan(0, PAN_ROWS)),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char(' ') => Action::PlayOrPause,
        KeyCode::Left if has(KeyModifiers::SHIFT) => Action::Jump(-1),
        KeyCode::Right if has(KeyModifiers::SHIFT) => Action::Jump(1),
        KeyCode::Left | KeyCode::Char(',') => Action::Step(Back),
        KeyCode::Right | KeyCode::Char('.') => Action::Step(Forward),
        KeyCode::Up | KeyCode::Char('k') => Action::Jump(-1),
        KeyCode::Down | KeyCode::Char('j') => Action::Jump(1),
        KeyCode::PageUp => Action::Jump(-10),
        KeyCode::PageDown => Action::Jump(10),
        KeyCode::Home | KeyCode::Char('g') => Action::Start,
        KeyCode::End | KeyCode::Char('G') => Action::End,
        KeyCode::Char(digit @ '0'..='9') => Action::Percent((digit as u8 - b'0') * 10),
        KeyCode::Char('t' | ':') => Action::AskTime,
        KeyCode::Char('/') => Action::AskPattern,
        KeyCode::Char('n') => Action::Match(Forward),
        KeyCode::Char('N') => Action::Match(Back),
        KeyCode::Char('{') => Action::Command(Back),
        KeyCode::Char('}') => Action::Command(Forward),
        KeyCode::Char('m') => Action::Mark(Forward),
        KeyCode::Char('M') => Action::Mark(Back),
        KeyCode::Char('+' | '=' | '>') => Action::Faster,
        KeyCode::Char('-' | '_' | '<') => Action::Slower,
        KeyCode::Char('i' | ']') => Action::LongerPauses,
        KeyCode::Char('I' | '[') => Action::ShorterPauses,
        KeyCode::Char('l') => Action::Live,
        KeyCode::Char('z') => Action::Scale,
        KeyCode::Char('H') => Action::Pan(-PAN_COLUMNS, 0),
        KeyCode::Char('L') => Action::Pan(PAN_COLUMNS, 0),
        KeyCode::Char('K') => Action::Pan(0, -PAN_ROWS),
        KeyCode::Char('J') => Action::Pan(0, PAN_ROWS),
        KeyCode::Char('?') => Action::Help,
        KeyCode::Char('q') | KeyCode::Esc => Action::Leave,
        _ => return None,
    })
}

/// The help, most needed first: a small window shows the beginning.
pub const HELP: &[(&str, &str)] = &[
    ("space", "play, pause"),
    ("← →  , .", "step to the change before, after"),
    ("↑ ↓  k j", "a second back, on; also shift-← →"),
    ("pgup pgdn", "10 seconds; also ctrl-← →"),
    ("0 … 9", "0 % … 90 %"),
    ("g G", "start, end"),
    ("t :", "to a time: 1:23  90s  14:05:10  50%  -10s"),
    ("/ n N", "search; next, previous match"),
    ("{ }", "previous, next command"),
    ("m M", "next, previous mark or event"),
    ("+ -  > <", "faster, slower"),
    ("i I  ] [", "longer, shorter pauses"),
    ("l", "live: follow the end"),
    ("z", "all of it, small; and back"),
    ("H J K L", "move in a large one; also alt-arrows"),
    ("q esc", "leave"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let with = |code, modifiers| KeyEvent::new(code, modifiers);
        for (key, expected) in [
            (plain(KeyCode::Char(' ')), Some(Action::PlayOrPause)),
            (plain(KeyCode::Left), Some(Action::Step(Back))),
            (plain(KeyCode::Char('.')), Some(Action::Step(Forward))),
            (with(KeyCode::Left, KeyModifiers::SHIFT), Some(Action::Jump(-1))),
            (with(KeyCode::Right, KeyModifiers::CONTROL), Some(Action::Jump(10))),
            (plain(KeyCode::PageUp), Some(Action::Jump(-10))),
            (plain(KeyCode::Char('7')), Some(Action::Percent(70))),
            (with(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Action::End)),
            (with(KeyCode::Char('}'), KeyModifiers::SHIFT), Some(Action::Command(Forward))),
            (plain(KeyCode::Char('l')), Some(Action::Live)),
            (with(KeyCode::Char('l'), KeyModifiers::ALT), Some(Action::Pan(8, 0))),
            (with(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Action::Leave)),
            (with(KeyCode::Char('q'), KeyModifiers::CONTROL), None),
            (plain(KeyCode::F(5)), None),
        ] {
            assert_eq!(action(key), expected, "{key:?}");
        }
        // every single key of the help does something
        for word in HELP.iter().flat_map(|(keys, _)| keys.split_whitespace()).filter(|word| word.chars().count() == 1) {
            let c = word.chars().next().expect("one");
            let code = match c {
                '←' => KeyCode::Left,
                '→' => KeyCode::Right,
                '↑' => KeyCode::Up,
                '↓' => KeyCode::Down,
                '…' => continue,
                c => KeyCode::Char(c),
            };
            assert!(action(plain(code)).is_some(), "{word}");
        }
    }
}
