//! Whether the terminal's background is light: the terminal is asked (OSC 11), else `COLORFGBG` tells. It must never lose a key that
//! was typed meanwhile.

use std::io::Write;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

/// What came back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub background: Option<Background>,
    /// Bytes that belong to nobody's answer: keys.
    pub typed: Vec<u8>,
    /// Every terminal answers the second question; one that has not may still do so.
    pub is_complete: bool,
}

/// The colour of the background, then the device's attributes: the second is answered by every terminal, also by one that does not
/// know the first, so that nobody waits for long.
const QUESTION: &[u8] = b"\x1b]11;?\x1b\\\x1b[c";

/// Longer than a terminal on this machine takes, and not long enough to be felt.
const PATIENCE: Duration = Duration::from_millis(150);

/// Asks the terminal, unless keys are waiting already or there is none.
pub fn ask() -> Reply {
    let stdin = rustix::stdio::stdin();
    let is_terminal = rustix::termios::isatty(stdin) && rustix::termios::isatty(rustix::stdio::stdout());
    if !is_terminal || rustix::io::ioctl_fionread(stdin).is_ok_and(|waiting| waiting > 0) {
        return Reply { is_complete: true, ..Reply::default() };
    }
    let Ok(before) = tcgetattr(stdin) else { return Reply { is_complete: true, ..Reply::default() } };
    let mut raw = before.clone();
    raw.make_raw();
    if tcsetattr(stdin, OptionalActions::Now, &raw).is_err() {
        return Reply { is_complete: true, ..Reply::default() };
    }
    let reply = converse();
    let _ = tcsetattr(stdin, OptionalActions::Now, &before);
    reply
}

fn converse() -> Reply {
    let mut out = std::io::stdout();
    if out.write_all(QUESTION).and_then(|()| out.flush()).is_err() {
        return Reply { is_complete: true, ..Reply::default() };
    }
    let stdin = rustix::stdio::stdin();
    let deadline = Instant::now() + PATIENCE;
    let mut received = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = rustix::event::Timespec::try_from(left) else { break };
        let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
        if !matches!(poll(&mut waits, Some(&timeout)), Ok(1..)) {
            break;
        }
        let mut bytes = [0; 256];
        match rustix::io::read(stdin, &mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(count) => received.extend_from_slice(&bytes[..count]),
        }
        if understand(&received).is_complete {
            break;
        }
    }
    understand(&received)
}

/// Takes the answers out of what was received; the rest was typed.
fn understand(received: &[u8]) -> Reply {
    let mut reply = Reply::default();
    let mut rest = received;
    while !rest.is_empty() {
        if let Some(answer) = rest.strip_prefix(b"\x1b]11;") {
            let Some(end) = answer.iter().position(|byte| matches!(byte, 0x07 | 0x1b)) else { break };
            reply.background = std::str::from_utf8(&answer[..end]).ok().and_then(of_colour);
            rest = answer[end..].strip_prefix(b"\x07").or_else(|| answer[end..].strip_prefix(b"\x1b\\")).unwrap_or(&answer[end..]);
        } else if let Some(answer) = rest.strip_prefix(b"\x1b[?") {
            let Some(end) = answer.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';')) else { break };
            reply.is_complete |= answer[end] == b'c';
            rest = &answer[end + 1..];
        } else {
            reply.typed.push(rest[0]);
            rest = &rest[1..];
        }
    }
    reply
}

/// `rgb:ffff/ffff/ffff`, with one to four digits each, or `#rrggbb`.
fn of_colour(text: &str) -> Option<Background> {
    let parts: Vec<f64> = match (text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:")), text.strip_prefix('#')) {
        (Some(rgb), _) => rgb
            .split('/')
            .take(3)
            .map(|part| Some(f64::from(u32::from_str_radix(part, 16).ok()?) / (16f64.powi(part.len() as i32) - 1.0)))
            .collect::<Option<_>>()?,
        (None, Some(hex)) if hex.len() == 6 && hex.is_ascii() => {
            (0..3).map(|n| Some(f64::from(u32::from_str_radix(&hex[n * 2..n * 2 + 2], 16).ok()?) / 255.0)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let [red, green, blue] = parts[..] else { return None };
    // how bright it looks; half way between black and white text has the same contrast
    let bright = 0.299 * red + 0.587 * green + 0.114 * blue;
    Some(if bright > 0.5 { Background::Light } else { Background::Dark })
}

/// `COLORFGBG` is `foreground;background`, in the sixteen colours; some terminals put a third word between them.
pub fn of_variable(text: &str) -> Option<Background> {
    let colour: u8 = text.rsplit(';').next()?.parse().ok()?;
    Some(if matches!(colour, 7 | 9..=15) { Background::Light } else { Background::Dark })
}

/// Drops an answer that comes after all: as keys it would do things.
#[derive(Debug, Default)]
pub struct LateReply {
    is_due: bool,
    is_inside: bool,
}

impl LateReply {
    pub fn of(reply: &Reply) -> Self {
        Self { is_due: !reply.is_complete, is_inside: false }
    }

    /// Whether a key is a part of it.
    pub fn takes(&mut self, key: &crossterm::event::KeyEvent) -> bool {
        use crossterm::event::{KeyCode, KeyModifiers};
        let (alt, ctrl) = (key.modifiers.contains(KeyModifiers::ALT), key.modifiers.contains(KeyModifiers::CONTROL));
        if self.is_due && alt && key.code == KeyCode::Char(']') {
            (self.is_due, self.is_inside) = (false, true);
            return true;
        }
        let was_inside = self.is_inside;
        if (alt && key.code == KeyCode::Char('\\')) || (ctrl && key.code == KeyCode::Char('g')) {
            self.is_inside = false;
        }
        was_inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood_and_keys_are_kept() {
        let reply = understand(b"\x1b]11;rgb:ffff/ffff/f0f0\x1b\\\x1b[?62;22c");
        assert_eq!(reply, Reply { background: Some(Background::Light), typed: Vec::new(), is_complete: true });
        let reply = understand(b"j\x1b]11;rgb:1e/1e/1e\x07k\x1b[?6c\r");
        assert_eq!(reply, Reply { background: Some(Background::Dark), typed: b"jk\r".to_vec(), is_complete: true });
        assert!(!understand(b"\x1b]11;rgb:ff").is_complete);
        assert_eq!(understand(b"\x1b[?1;2c"), Reply { background: None, typed: Vec::new(), is_complete: true });
        for (text, expected) in
            [("#fdf6e3", Some(Background::Light)), ("#002b36", Some(Background::Dark)), ("red", None), ("rgb:f/f", None)]
        {
            assert_eq!(of_colour(text), expected, "{text}");
        }
        for (text, expected) in [("0;15", Some(Background::Light)), ("15;default;0", Some(Background::Dark)), ("", None), ("x;y", None)] {
            assert_eq!(of_variable(text), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_that_comes_late_does_nothing() {
        use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
        let mut late = LateReply::of(&Reply::default());
        let alt = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT);
        let plain = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        assert!(!late.takes(&plain('j')));
        assert!(late.takes(&alt(']')));
        for c in "11;rgb:ffff/ffff/ffff".chars() {
            assert!(late.takes(&plain(c)));
        }
        assert!(late.takes(&alt('\\')) && !late.takes(&plain('x')));
    }
}
