//! Keys, mouse and pastes as the bytes a terminal sends for them, in the modes its program has set. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use shared::screen::Modes;

/// Modes of DEC that matter here.
const APPLICATION_CURSOR: u16 = 1;
const MOUSE_CLICKS: u16 = 1000;
const MOUSE_DRAGS: u16 = 1002;
const MOUSE_MOVES: u16 = 1003;
const MOUSE_SGR: u16 = 1006;
const PASTES: u16 = 2004;

/// The flag of kitty's protocol that asks for keys that cannot be mistaken.
const DISAMBIGUATE: u8 = 1;

pub fn key(key: KeyEvent, modes: &Modes) -> Vec<u8> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let flags = modes.key_flags[usize::from(modes.alternate)].current;
    if flags & DISAMBIGUATE != 0
        && let Some(bytes) = kitty(key)
    {
        return bytes;
    }
    let modifiers = key.modifiers;
    let is_alt = modifiers.contains(KeyModifiers::ALT);
    let is_control = modifiers.contains(KeyModifiers::CONTROL);
    let mut out = Vec::new();
    if is_alt && matches!(key.code, KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace | KeyCode::Esc | KeyCode::Tab) {
        out.push(0x1b);
    }
    match key.code {
        KeyCode::Char(c) if is_control => match control(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        },
        KeyCode::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        KeyCode::Enter => out.push(b'\r'),
        KeyCode::Tab => out.push(b'\t'),
        KeyCode::BackTab => out.extend_from_slice(b"\x1b[Z"),
        KeyCode::Backspace => out.push(if is_control { 0x08 } else { 0x7f }),
        KeyCode::Esc => out.push(0x1b),
        KeyCode::Up => out.extend(arrow(b'A', modifiers, modes)),
        KeyCode::Down => out.extend(arrow(b'B', modifiers, modes)),
        KeyCode::Right => out.extend(arrow(b'C', modifiers, modes)),
        KeyCode::Left => out.extend(arrow(b'D', modifiers, modes)),
        KeyCode::Home => out.extend(arrow(b'H', modifiers, modes)),
        KeyCode::End => out.extend(arrow(b'F', modifiers, modes)),
        KeyCode::Insert => out.extend(numbered(2, modifiers)),
        KeyCode::Delete => out.extend(numbered(3, modifiers)),
        KeyCode::PageUp => out.extend(numbered(5, modifiers)),
        KeyCode::PageDown => out.extend(numbered(6, modifiers)),
        KeyCode::F(number) => out.extend(function(number, modifiers)),
        _ => {}
    }
    out
}

fn control(c: char) -> Option<u8> {
    Some(match c {
        'a'..='z' | 'A'..='Z' => c as u8 & 0x1f,
        ' ' | '@' | '2' => 0,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '6' => 0x1e,
        '_' | '/' | '7' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// xterm's number for modifiers; 1 is none.
fn number(modifiers: KeyModifiers) -> u8 {
    1 + u8::from(modifiers.contains(KeyModifiers::SHIFT))
        + 2 * u8::from(modifiers.contains(KeyModifiers::ALT))
        + 4 * u8::from(modifiers.contains(KeyModifiers::CONTROL))
}

fn arrow(last: u8, modifiers: KeyModifiers, modes: &Modes) -> Vec<u8> {
    match number(modifiers) {
        1 if modes.get(APPLICATION_CURSOR) => vec![0x1b, b'O', last],
        1 => vec![0x1b, b'[', last],
        number => format!("\x1b[1;{number}{}", char::from(last)).into_bytes(),
    }
}

fn numbered(key: u8, modifiers: KeyModifiers) -> Vec<u8> {
    match number(modifiers) {
        1 => format!("\x1b[{key}~").into_bytes(),
        number => format!("\x1b[{key};{number}~").into_bytes(),
    }
}

fn function(key: u8, modifiers: KeyModifiers) -> Vec<u8> {
    let code = match key {
        1..=4 => {
            let last = char::from(b'P' + key - 1);
            return match number(modifiers) {
                1 => format!("\x1bO{last}").into_bytes(),
                number => format!("\x1b[1;{number}{last}").into_bytes(),
            };
        }
        5 => 15,
        6..=10 => 11 + key,
        11 | 12 => 12 + key,
        _ => return Vec::new(),
    };
    numbered(code, modifiers)
}

/// Keys that look like others in the old way of writing them.
fn kitty(key: KeyEvent) -> Option<Vec<u8>> {
    let number = number(key.modifiers);
    let code = match key.code {
        KeyCode::Esc => 27,
        KeyCode::Enter if number > 1 => 13,
        KeyCode::Tab if number > 1 => 9,
        KeyCode::BackTab => return Some(b"\x1b[9;2u".to_vec()),
        KeyCode::Backspace if number > 1 => 127,
        KeyCode::Char(c) if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => u32::from(c.to_ascii_lowercase()),
        _ => return None,
    };
    Some(if number == 1 { format!("\x1b[{code}u") } else { format!("\x1b[{code};{number}u") }.into_bytes())
}

/// What is pasted is text, whatever it contains: the end of a paste is not for it to say.
pub fn paste(text: &str, modes: &Modes) -> Vec<u8> {
    if modes.get(PASTES) {
        let mut inside = text.to_owned();
        // taking one away may make another
        while inside.contains("\x1b[201~") {
            inside = inside.replace("\x1b[201~", "");
        }
        return [b"\x1b[200~", inside.as_bytes(), b"\x1b[201~"].concat();
    }
    // as if it were typed
    text.replace("\r\n", "\r").replace('\n', "\r").into_bytes()
}

/// Whether its program wants to hear of the mouse.
pub fn wants_mouse(modes: &Modes) -> bool {
    [9, MOUSE_CLICKS, MOUSE_DRAGS, MOUSE_MOVES].into_iter().any(|mode| modes.get(mode))
}

/// The mouse over a terminal that is drawn in `area`.
pub fn mouse(mouse: MouseEvent, area: Rect, modes: &Modes) -> Vec<u8> {
    let is_inside = area.contains((mouse.column, mouse.row).into());
    if !wants_mouse(modes) || !is_inside {
        return Vec::new();
    }
    let button = |button: MouseButton| match button {
        MouseButton::Left => 0,
        MouseButton::Middle => 1,
        MouseButton::Right => 2,
    };
    let (mut code, is_release) = match mouse.kind {
        MouseEventKind::Down(which) => (button(which), false),
        MouseEventKind::Up(which) => (button(which), true),
        MouseEventKind::Drag(which) if modes.get(MOUSE_DRAGS) || modes.get(MOUSE_MOVES) => (button(which) + 32, false),
        MouseEventKind::Moved if modes.get(MOUSE_MOVES) => (35, false),
        MouseEventKind::ScrollUp => (64, false),
        MouseEventKind::ScrollDown => (65, false),
        MouseEventKind::ScrollLeft => (66, false),
        MouseEventKind::ScrollRight => (67, false),
        _ => return Vec::new(),
    };
    for (modifier, bit) in [(KeyModifiers::SHIFT, 4), (KeyModifiers::ALT, 8), (KeyModifiers::CONTROL, 16)] {
        if mouse.modifiers.contains(modifier) {
            code += bit;
        }
    }
    let (col, row) = (mouse.column - area.x + 1, mouse.row - area.y + 1);
    if modes.get(MOUSE_SGR) {
        return format!("\x1b[<{code};{col};{row}{}", if is_release { 'm' } else { 'M' }).into_bytes();
    }
    // the old way has no place for more than 223 columns
    let coordinate = |n: u16| u8::try_from(n + 32).unwrap_or(255);
    vec![0x1b, b'[', b'M', 32 + if is_release { 3 } else { code }, coordinate(col), coordinate(row)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::screen::{Screen, Size};

    fn modes(bytes: &str) -> Modes {
        let mut screen = Screen::new(Size { cols: 80, rows: 24 });
        screen.feed(bytes.as_bytes(), &mut Vec::new());
        screen.modes().clone()
    }

    fn with(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn keys_as_terminals_send_them() {
        let plain = modes("");
        for (event, bytes) in [
            (with(KeyCode::Char('ä'), KeyModifiers::NONE), "ä".as_bytes()),
            (with(KeyCode::Char('c'), KeyModifiers::CONTROL), b"\x03"),
            (with(KeyCode::Char(' '), KeyModifiers::CONTROL), b"\x00"),
            (with(KeyCode::Char('x'), KeyModifiers::ALT), b"\x1bx"),
            (with(KeyCode::Enter, KeyModifiers::NONE), b"\r"),
            (with(KeyCode::Up, KeyModifiers::NONE), b"\x1b[A"),
            (with(KeyCode::Left, KeyModifiers::CONTROL), b"\x1b[1;5D"),
            (with(KeyCode::PageUp, KeyModifiers::SHIFT), b"\x1b[5;2~"),
            (with(KeyCode::F(5), KeyModifiers::NONE), b"\x1b[15~"),
            (with(KeyCode::F(12), KeyModifiers::NONE), b"\x1b[24~"),
            (with(KeyCode::F(1), KeyModifiers::SHIFT), b"\x1b[1;2P"),
            (with(KeyCode::BackTab, KeyModifiers::SHIFT), b"\x1b[Z"),
        ] {
            assert_eq!(key(event, &plain), bytes, "{event:?}");
        }
        assert_eq!(key(KeyEvent::from(KeyCode::Up), &modes("\x1b[?1h")), b"\x1bOA");
        let kitty = modes("\x1b[>1u");
        assert_eq!(key(with(KeyCode::Enter, KeyModifiers::SHIFT), &kitty), b"\x1b[13;2u");
        assert_eq!(key(KeyEvent::from(KeyCode::Enter), &kitty), b"\r");
        assert_eq!(key(KeyEvent::from(KeyCode::Esc), &kitty), b"\x1b[27u");
        assert_eq!(key(with(KeyCode::Char('c'), KeyModifiers::CONTROL), &kitty), b"\x1b[99;5u");
    }

    #[test]
    fn pastes_are_marked_where_that_is_wanted_and_cannot_break_out() {
        assert_eq!(paste("a\nb", &modes("")), b"a\rb");
        assert_eq!(paste("a\x1b[201~rm", &modes("\x1b[?2004h")), b"\x1b[200~arm\x1b[201~");
    }

    #[test]
    fn the_mouse_goes_to_programs_that_ask_for_it() {
        let area = Rect::new(10, 5, 40, 10);
        let at = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let down = at(MouseEventKind::Down(MouseButton::Left), 12, 6);
        assert_eq!(mouse(down, area, &modes("")), b"");
        let sgr = modes("\x1b[?1000h\x1b[?1006h");
        assert_eq!(mouse(down, area, &sgr), b"\x1b[<0;3;2M");
        assert_eq!(mouse(at(MouseEventKind::Up(MouseButton::Left), 12, 6), area, &sgr), b"\x1b[<0;3;2m");
        assert_eq!(mouse(at(MouseEventKind::ScrollUp, 12, 6), area, &sgr), b"\x1b[<64;3;2M");
        assert_eq!(mouse(at(MouseEventKind::Drag(MouseButton::Left), 12, 6), area, &sgr), b"", "only clicks were asked for");
        assert_eq!(mouse(at(MouseEventKind::ScrollUp, 2, 6), area, &sgr), b"", "beside it");
        assert_eq!(mouse(down, area, &modes("\x1b[?1000h")), b"\x1b[M \x23\x22");
    }
}
