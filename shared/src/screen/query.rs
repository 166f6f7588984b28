//! Questions that programs put to the terminal, and our constant answers.
//! It must never send back text that came from the program.

use super::Size;
use super::modes::Modes;
use super::token::{Csi, number};

/// Pixels of one cell that we claim; nothing here is drawn in pixels.
const CELL: (u16, u16) = (8, 16);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    /// DA1, DA2, DA3.
    PrimaryAttributes,
    SecondaryAttributes,
    TertiaryAttributes,
    /// DSR 5.
    Status,
    /// CPR, and its DEC form.
    CursorPosition,
    ExtendedCursorPosition,
    /// DECRQM.
    AnsiMode(u16),
    PrivateMode(u16),
    /// XTVERSION.
    Version,
    KeyboardFlags,
    ModifyOtherKeys,
    WindowPixels,
    CellPixels,
    WindowCells,
    ScreenCells,
    PaletteColor(u8),
    Foreground,
    Background,
    CursorColor,
    /// Is the terminal dark or light?
    ColorScheme,
    /// The program turned mode 2048 on and expects the size now.
    InBandSize,
    /// OSC 7501.
    ProgramStatus,
    /// DECRQSS.
    Setting,
    /// XTGETTCAP.
    Capability,
    /// Title reports, ENQ-like questions: known, never answered.
    Refused,
}

impl Query {
    /// Whether the answer depends on where the cursor was.
    pub fn needs_cursor(&self) -> bool {
        matches!(self, Query::CursorPosition | Query::ExtendedCursorPosition)
    }
}

pub(super) fn in_csi(csi: &Csi<'_>, mut found: impl FnMut(Query)) {
    let first = csi.number_or(0, 0);
    let query = match (csi.prefix, csi.intermediates, csi.last) {
        (0, b"", b'c') if first == 0 => Query::PrimaryAttributes,
        (b'>', b"", b'c') if first == 0 => Query::SecondaryAttributes,
        (b'=', b"", b'c') if first == 0 => Query::TertiaryAttributes,
        (0, b"", b'n') if first == 5 => Query::Status,
        (0, b"", b'n') if first == 6 => Query::CursorPosition,
        (b'?', b"", b'n') if first == 6 => Query::ExtendedCursorPosition,
        (b'?', b"", b'n') if first == 996 => Query::ColorScheme,
        (0, b"$", b'p') => Query::AnsiMode(first),
        (b'?', b"$", b'p') => Query::PrivateMode(first),
        (b'>', b"", b'q') if first == 0 => Query::Version,
        (b'?', b"", b'u') => Query::KeyboardFlags,
        (b'?', b"", b'm') if first == 4 => Query::ModifyOtherKeys,
        (b'?', b"", b'h') if csi.numbers().any(|number| number == 2048) => Query::InBandSize,
        (0, b"", b't') => match first {
            14 => Query::WindowPixels,
            16 => Query::CellPixels,
            18 => Query::WindowCells,
            19 => Query::ScreenCells,
            20 | 21 => Query::Refused,
            _ => return,
        },
        _ => return,
    };
    found(query);
}

pub(super) fn in_dcs(payload: &[u8]) -> Option<Query> {
    if payload.starts_with(b"$q") {
        Some(Query::Setting)
    } else if payload.starts_with(b"+q") {
        Some(Query::Capability)
    } else {
        None
    }
}

pub(super) fn in_osc(code: u16, rest: &[u8], mut found: impl FnMut(Query)) {
    match code {
        4 => {
            let mut parts = rest.split(|&byte| byte == b';');
            // A program may ask for all 256 at once, not for more.
            for _ in 0..256 {
                let (Some(index), Some(value)) = (parts.next(), parts.next()) else {
                    break;
                };
                if let (b"?", Ok(index)) = (value, u8::try_from(number(index))) {
                    found(Query::PaletteColor(index));
                }
            }
        }
        10..=12 => {
            for (offset, part) in rest.split(|&byte| byte == b';').enumerate().take(3) {
                if part == b"?" {
                    match usize::from(code) + offset {
                        10 => found(Query::Foreground),
                        11 => found(Query::Background),
                        12 => found(Query::CursorColor),
                        _ => {}
                    }
                }
            }
        }
        7501 if rest.starts_with(b"?") => found(Query::ProgramStatus),
        _ => {}
    }
}

/// The answer to send to the program, if there is one. `cursor` is row and column from 1.
pub fn answer(query: &Query, modes: &Modes, size: Size, cursor: Option<(u16, u16)>) -> Option<Vec<u8>> {
    let size = size.clamped();
    let (row, col) = cursor.unwrap_or((1, 1));
    let text = match *query {
        Query::PrimaryAttributes => "\x1b[?62;22c".to_owned(),
        Query::SecondaryAttributes => "\x1b[>1;10;0c".to_owned(),
        Query::TertiaryAttributes => "\x1bP!|00000000\x1b\\".to_owned(),
        Query::Status => "\x1b[0n".to_owned(),
        Query::CursorPosition => format!("\x1b[{row};{col}R"),
        Query::ExtendedCursorPosition => format!("\x1b[?{row};{col};1R"),
        Query::AnsiMode(mode) => format!("\x1b[{mode};{}$y", ansi_mode(mode, modes)),
        Query::PrivateMode(mode) => format!("\x1b[?{mode};{}$y", private_mode(mode, modes)),
        Query::Version => format!("\x1bP>|sessions-tui({})\x1b\\", env!("CARGO_PKG_VERSION")),
        Query::KeyboardFlags => format!("\x1b[?{}u", modes.keyboard()),
        Query::ModifyOtherKeys => format!("\x1b[>4;{}m", modes.modify_other_keys),
        Query::WindowPixels => {
            let (width, height) = pixels(size);
            format!("\x1b[4;{height};{width}t")
        }
        Query::CellPixels => format!("\x1b[6;{};{}t", CELL.1, CELL.0),
        Query::WindowCells => format!("\x1b[8;{};{}t", size.rows, size.cols),
        Query::ScreenCells => format!("\x1b[9;{};{}t", size.rows, size.cols),
        Query::PaletteColor(index) => format!("\x1b]4;{index};{}\x1b\\", color(palette(index))),
        Query::Foreground => format!("\x1b]10;{}\x1b\\", color(FOREGROUND)),
        Query::Background => format!("\x1b]11;{}\x1b\\", color(BACKGROUND)),
        Query::CursorColor => format!("\x1b]12;{}\x1b\\", color(FOREGROUND)),
        Query::ColorScheme => "\x1b[?997;1n".to_owned(),
        Query::InBandSize => return Some(resize_report(size)),
        Query::ProgramStatus => "\x1b]7501;?:states=idle,working,done,blocked,error:kinds=permission,question,auth\x1b\\".to_owned(),
        Query::Setting => "\x1bP0$r\x1b\\".to_owned(),
        Query::Capability => "\x1bP0+r\x1b\\".to_owned(),
        Query::Refused => return None,
    };
    Some(text.into_bytes())
}

/// What a program that set mode 2048 is sent after each resize.
pub fn resize_report(size: Size) -> Vec<u8> {
    let size = size.clamped();
    let (width, height) = pixels(size);
    format!("\x1b[48;{};{};{height};{width}t", size.rows, size.cols).into_bytes()
}

fn pixels(size: Size) -> (u32, u32) {
    (u32::from(size.cols) * u32::from(CELL.0), u32::from(size.rows) * u32::from(CELL.1))
}

fn ansi_mode(mode: u16, modes: &Modes) -> u8 {
    match mode {
        4 if modes.insert => 1,
        4 => 2,
        // LNM: always reset.
        20 => 4,
        _ => 0,
    }
}

fn private_mode(mode: u16, modes: &Modes) -> u8 {
    match mode {
        // We remember 2027 for the attached terminal, but our own cells are not grapheme clusters.
        2027 => 0,
        _ if !Modes::knows(mode) => 0,
        _ if modes.get(mode) => 1,
        _ => 2,
    }
}

pub(super) type Rgb = (u8, u8, u8);
pub(super) const FOREGROUND: Rgb = (0xd0, 0xd0, 0xd0);
pub(super) const BACKGROUND: Rgb = (0x10, 0x10, 0x10);

fn color((red, green, blue): Rgb) -> String {
    format!("rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}")
}

/// xterm's default palette.
pub(super) fn palette(index: u8) -> Rgb {
    const BASE: [Rgb; 16] = [
        (0x00, 0x00, 0x00),
        (0xcd, 0x00, 0x00),
        (0x00, 0xcd, 0x00),
        (0xcd, 0xcd, 0x00),
        (0x00, 0x00, 0xee),
        (0xcd, 0x00, 0xcd),
        (0x00, 0xcd, 0xcd),
        (0xe5, 0xe5, 0xe5),
        (0x7f, 0x7f, 0x7f),
        (0xff, 0x00, 0x00),
        (0x00, 0xff, 0x00),
        (0xff, 0xff, 0x00),
        (0x5c, 0x5c, 0xff),
        (0xff, 0x00, 0xff),
        (0x00, 0xff, 0xff),
        (0xff, 0xff, 0xff),
    ];
    match index {
        0..=15 => BASE[usize::from(index)],
        16..=231 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}
