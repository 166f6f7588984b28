//! Colours and attributes: reading SGR sequences and writing them back in one plain form.
//! Knows nothing of cells or positions.

use super::token::{Csi, number};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Color {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// What the next character will look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent SGR attributes")]
pub struct Pen {
    pub fg: Color,
    pub bg: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
    pub concealed: bool,
}

impl Pen {
    /// What an erased cell keeps of the pen.
    pub fn erasing(self) -> Pen {
        Pen { bg: self.bg, ..Pen::default() }
    }

    pub fn has_background(self) -> bool {
        self.bg != Color::Default
    }

    /// Follows one SGR sequence.
    pub fn apply(&mut self, csi: &Csi<'_>) {
        // Plain codes, which is nearly all there is, need no splitting.
        let mut rest = csi.params;
        loop {
            let mut code = 0u16;
            let mut at = 0;
            while let Some(digit @ b'0'..=b'9') = rest.get(at) {
                code = code.saturating_mul(10).saturating_add(u16::from(digit - b'0'));
                at += 1;
            }
            match rest.get(at) {
                Some(b':') => break,
                _ if matches!(code, 38 | 48 | 58) => break,
                None => return self.apply_code(code),
                Some(_) => {
                    self.apply_code(code);
                    rest = &rest[at + 1..];
                }
            }
        }
        self.apply_groups(rest);
    }

    fn apply_groups(&mut self, params: &[u8]) {
        let mut groups = params.split(|&byte| byte == b';');
        while let Some(group) = groups.next() {
            if group.contains(&b':') {
                self.apply_colon(group);
                continue;
            }
            match number(group) {
                code @ (38 | 48 | 58) => {
                    let color = match groups.next().map(number) {
                        Some(5) => groups.next().map(|index| indexed(number(index))),
                        Some(2) => {
                            let mut next = || groups.next().map(number);
                            match (next(), next(), next()) {
                                (Some(red), Some(green), Some(blue)) => Some(rgb(red, green, blue)),
                                _ => None,
                            }
                        }
                        _ => None,
                    };
                    self.set_color(code, color.flatten());
                }
                code => self.apply_code(code),
            }
        }
    }

    /// `38:2::r:g:b`, `38:2:r:g:b`, `38:5:n`, `4:3` and the like.
    fn apply_colon(&mut self, group: &[u8]) {
        let mut parts = [0u16; 8];
        let mut count = 0;
        for part in group.split(|&byte| byte == b':').take(parts.len()) {
            parts[count] = number(part);
            count += 1;
        }
        match parts[0] {
            4 => self.underline = parts[1] != 0,
            code @ (38 | 48) => {
                let color = match (parts[1], count) {
                    (5, 3..) => indexed(parts[2]),
                    (2, 6..) => rgb(parts[3], parts[4], parts[5]),
                    (2, 5) => rgb(parts[2], parts[3], parts[4]),
                    _ => None,
                };
                self.set_color(code, color);
            }
            _ => {}
        }
    }

    fn set_color(&mut self, code: u16, color: Option<Color>) {
        match (code, color) {
            (38, Some(color)) => self.fg = color,
            (48, Some(color)) => self.bg = color,
            _ => {}
        }
    }

    fn apply_code(&mut self, code: u16) {
        // A u16 code that fits a colour range fits a u8.
        let offset = |base: u16| (code - base) as u8;
        match code {
            0 => *self = Pen::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            3 => self.italic = true,
            4 | 21 => self.underline = true,
            7 => self.inverse = true,
            8 => self.concealed = true,
            22 => (self.bold, self.dim) = (false, false),
            23 => self.italic = false,
            24 => self.underline = false,
            27 => self.inverse = false,
            28 => self.concealed = false,
            30..=37 => self.fg = Color::Indexed(offset(30)),
            39 => self.fg = Color::Default,
            40..=47 => self.bg = Color::Indexed(offset(40)),
            49 => self.bg = Color::Default,
            90..=97 => self.fg = Color::Indexed(offset(82)),
            100..=107 => self.bg = Color::Indexed(offset(92)),
            _ => {}
        }
    }

    /// One self-contained SGR sequence, beginning with a reset.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0");
        for (on, code) in [
            (self.bold, b";1"),
            (self.dim, b";2"),
            (self.italic, b";3"),
            (self.underline, b";4"),
            (self.inverse, b";7"),
            (self.concealed, b";8"),
        ] {
            if on {
                out.extend_from_slice(code);
            }
        }
        write_color(out, self.fg, 30);
        write_color(out, self.bg, 40);
        out.push(b'm');
    }
}

fn indexed(index: u16) -> Option<Color> {
    u8::try_from(index).ok().map(Color::Indexed)
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Color> {
    Some(Color::Rgb(u8::try_from(red).ok()?, u8::try_from(green).ok()?, u8::try_from(blue).ok()?))
}

fn write_color(out: &mut Vec<u8>, color: Color, base: u16) {
    let mut push = |value: u16| {
        out.push(b';');
        write_number(out, value);
    };
    match color {
        Color::Default => {}
        Color::Indexed(index @ 0..=7) => push(base + u16::from(index)),
        Color::Indexed(index @ 8..=15) => push(base + 52 + u16::from(index)),
        Color::Indexed(index) => {
            push(base + 8);
            push(5);
            push(u16::from(index));
        }
        Color::Rgb(red, green, blue) => {
            push(base + 8);
            push(2);
            push(u16::from(red));
            push(u16::from(green));
            push(u16::from(blue));
        }
    }
}

pub fn write_number(out: &mut Vec<u8>, value: u16) {
    let mut digits = [0u8; 5];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// `CSI a ; b final` with 1-based numbers.
pub fn write_csi(out: &mut Vec<u8>, numbers: &[u16], last: u8) {
    out.extend_from_slice(b"\x1b[");
    for (index, &value) in numbers.iter().enumerate() {
        if index > 0 {
            out.push(b';');
        }
        write_number(out, value);
    }
    out.push(last);
}

#[cfg(test)]
mod tests {
    use super::super::token::{Token, Tokenizer};
    use super::*;

    fn pen(bytes: &[u8]) -> Pen {
        let mut pen = Pen::default();
        Tokenizer::new().feed(bytes, |token, _, _| {
            if let Token::Csi(csi) = token {
                pen.apply(&csi);
            }
        });
        pen
    }

    #[test]
    fn the_odd_forms_mean_what_they_mean_in_tmux() {
        let red = |fg| Pen { fg, ..Pen::default() };
        for (bytes, expected) in [
            ("\x1b[38:2::1:2:3m", red(Color::Rgb(1, 2, 3))),
            ("\x1b[38:2:1:2:3m", red(Color::Rgb(1, 2, 3))),
            ("\x1b[38;2;1;2;3m", red(Color::Rgb(1, 2, 3))),
            ("\x1b[38:5:200m", red(Color::Indexed(200))),
            ("\x1b[58;5;1;31m", red(Color::Indexed(1))),
            ("\x1b[58;2;4;7;9;31m", red(Color::Indexed(1))),
            ("\x1b[58:2::1:2:3;59;31m", red(Color::Indexed(1))),
            ("\x1b[91;4:3;4:0m", red(Color::Indexed(9))),
            ("\x1b[31;5;8;28;9;53m", red(Color::Indexed(1))),
            ("\x1b[1;31;38;5m\x1b[22m", red(Color::Indexed(1))),
            ("\x1b[31;4;21;24;m", Pen::default()),
        ] {
            assert_eq!(pen(bytes.as_bytes()), expected, "{bytes:?}");
        }
        assert!(pen(b"\x1b[21m").underline && pen(b"\x1b[4:3m").underline);
    }

    #[test]
    fn writing_and_reading_agree() {
        for bytes in ["\x1b[1;2;3;4;7;8m", "\x1b[97;107m", "\x1b[38;5;16;48;5;255m", "\x1b[48;2;0;9;255m"] {
            let first = pen(bytes.as_bytes());
            let mut written = Vec::new();
            first.write(&mut written);
            assert_eq!(pen(&written), first);
        }
    }
}
