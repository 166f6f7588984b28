//! A screen as one string of bytes that any fresh screen, or a person's own terminal, can be fed with.
//! It must not use RIS: that would also reset what belongs to the person's terminal.

use super::glyph::{PaintOn, paint_lines};
use super::modes::{Charset, KNOWN, KeyFlags, Modes, STACK_LIMIT, SavedModes};
use super::pen::{Pen, write_csi};
use super::rewrite::Saved;
use super::text::REPLACEMENT;
use super::{Screen, Size};
use serde::{Deserialize, Serialize};

/// What escape sequences cannot express.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Extra {
    /// For REP.
    pub last_char: Option<char>,
    pub title_stack: Vec<String>,
}

/// Feed `paint`, then `pending`, then everything after the cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Keyframe {
    pub size: Size,
    pub paint: Vec<u8>,
    pub pending: Vec<u8>,
    pub extra: Extra,
}

const MAGIC: [u8; 4] = *b"SKF\x01";
/// A screen of 1000x500 with a colour per cell stays below this.
const PAINT_LIMIT: usize = 64 << 20;

impl Keyframe {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.size.cols.to_le_bytes());
        out.extend_from_slice(&self.size.rows.to_le_bytes());
        out.extend_from_slice(&self.extra.last_char.map_or(0, u32::from).to_le_bytes());
        put(&mut out, &self.paint);
        put(&mut out, &self.pending);
        out.push(self.extra.title_stack.len().min(STACK_LIMIT) as u8);
        for title in self.extra.title_stack.iter().take(STACK_LIMIT) {
            put(&mut out, title.as_bytes());
        }
        out
    }

    /// `None` when the bytes are not a keyframe of this version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Keyframe> {
        let mut rest = bytes.strip_prefix(&MAGIC)?;
        let cols = u16::from_le_bytes(array(&mut rest)?);
        let rows = u16::from_le_bytes(array(&mut rest)?);
        let last_char = match u32::from_le_bytes(array(&mut rest)?) {
            0 => None,
            code => Some(char::from_u32(code)?),
        };
        let paint = get(&mut rest)?.to_vec();
        let pending = get(&mut rest)?.to_vec();
        let [count] = array(&mut rest)?;
        let mut title_stack = Vec::new();
        for _ in 0..usize::from(count).min(STACK_LIMIT) {
            title_stack.push(String::from_utf8(get(&mut rest)?.to_vec()).ok()?);
        }
        let size = Size { cols, rows };
        (rest.is_empty() && size == size.clamped()).then_some(Keyframe { size, paint, pending, extra: Extra { last_char, title_stack } })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn get<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(array(rest)?) as usize;
    if length > PAINT_LIMIT {
        return None;
    }
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

pub(super) fn restore(keyframe: &Keyframe) -> Screen {
    let mut screen = Screen::new(keyframe.size);
    let mut events = Vec::new();
    screen.feed(&keyframe.paint, &mut events);
    screen.modes.last_char = keyframe.extra.last_char;
    screen.modes.title_stack.clone_from(&keyframe.extra.title_stack);
    screen.modes.title_stack.truncate(STACK_LIMIT);
    events.clear();
    screen.feed(&keyframe.pending, &mut events);
    screen
}

pub(super) fn take(screen: &Screen) -> Keyframe {
    Keyframe {
        size: screen.size(),
        paint: paint(screen),
        pending: screen.tokenizer.pending(),
        extra: Extra { last_char: screen.modes.last_char, title_stack: screen.modes.title_stack.clone() },
    }
}

fn paint(screen: &Screen) -> Vec<u8> {
    let (modes, canvas) = (&screen.modes, &screen.canvas);
    let mut out = Vec::with_capacity(8 * 1024);
    prepare(&mut out);
    save_slot(&mut out, canvas.saved[0], modes.saved[0]);
    if canvas.alternate {
        paint_lines(&canvas.emulator.hidden_main(), PaintOn::Terminal, &mut out);
        key_flags(&mut out, &modes.key_flags[0]);
        // The slot becomes the cursor, 1049 keeps it again: any way of leaving finds it.
        out.extend_from_slice(if modes.saved[0].set { b"\x1b8\x1b[?1049h".as_slice() } else { b"\x1b[?1047h" });
        out.extend_from_slice(b"\x1b[?6l\x1b[0m\x1b(B\x1b)B\x0f");
        save_slot(&mut out, canvas.saved[1], modes.saved[1]);
    }
    let lines = canvas.emulator.lines();
    paint_lines(&lines, PaintOn::Terminal, &mut out);
    if let Some(stops) = &modes.tabs {
        out.extend_from_slice(b"\x1b[3g");
        for stop in stops {
            write_csi(&mut out, &[stop + 1], b'G');
            out.extend_from_slice(b"\x1bH");
        }
    }
    let size = screen.size();
    let (top, bottom) = canvas.emulator.region();
    if (top, bottom) != (0, size.rows - 1) {
        write_csi(&mut out, &[top + 1, bottom + 1], b'r');
    }
    let (row, col) = canvas.emulator.flushed_position();
    let mut told_row = row;
    if modes.origin() {
        out.extend_from_slice(b"\x1b[?6h");
        told_row = row.saturating_sub(top);
    }
    if col < size.cols {
        write_csi(&mut out, &[told_row + 1, col + 1], b'H');
    } else {
        // Printing the last character again is what makes the next one wrap.
        let cells = &lines[usize::from(row)].cells;
        let at = cells.iter().rposition(|cell| cell.width > 0).unwrap_or(0);
        write_csi(&mut out, &[told_row + 1, at as u16 + 1], b'H');
        cells[at].pen.write(&mut out);
        let text = cells[at].text();
        out.extend_from_slice(if text.is_empty() { b" " } else { text });
    }
    canvas.pen.write(&mut out);
    // Inside the emulator U+FFFD has a stand-in; outside it must not be seen.
    let mut out = replace(&out, REPLACEMENT.encode_utf8(&mut [0; 4]).as_bytes());
    charsets(&mut out, modes.charsets, modes.shifted);
    finish(&mut out, modes);
    out
}

/// A known state to begin with.
fn prepare(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[0m\x1b(B\x1b)B\x0f\x1b[4l\x1b[?6l\x1b[r\x1b[?7h\x1b[?25h\x1b[?5W\x1b>");
    out.extend_from_slice(b"\x1b[?");
    let plain = KNOWN.iter().filter(|mode| !matches!(mode, 6 | 7 | 25));
    let numbers: Vec<String> = plain.map(ToString::to_string).collect();
    out.extend_from_slice(numbers.join(";").as_bytes());
    out.extend_from_slice(b"l\x1b[0 q\x1b[>4;0m\x1b[=0;1u\x1b[H\x1b[2J");
}

/// Makes DECSC keep what the program kept.
fn save_slot(out: &mut Vec<u8>, saved: Saved, modes: SavedModes) {
    if !modes.set {
        return;
    }
    if modes.origin {
        out.extend_from_slice(b"\x1b[?6h");
    }
    write_csi(out, &[saved.row + 1, saved.col + 1], b'H');
    saved.pen.write(out);
    charsets(out, modes.charsets, modes.shifted);
    out.extend_from_slice(b"\x1b7");
    if modes.origin {
        out.extend_from_slice(b"\x1b[?6l");
    }
    if modes.charsets != [Charset::Ascii; 2] || modes.shifted {
        out.extend_from_slice(b"\x1b(B\x1b)B\x0f");
    }
    if saved.pen != Pen::default() {
        out.extend_from_slice(b"\x1b[0m");
    }
}

fn charsets(out: &mut Vec<u8>, charsets: [Charset; 2], shifted: bool) {
    for (charset, sequence) in charsets.into_iter().zip([b"\x1b(0", b"\x1b)0"]) {
        if charset == Charset::LineDrawing {
            out.extend_from_slice(sequence);
        }
    }
    if shifted {
        out.push(0x0e);
    }
}

/// The first entry is set, the others are pushed over it.
fn key_flags(out: &mut Vec<u8>, keys: &KeyFlags) {
    let mut all = keys.stack.iter().copied().chain([keys.current]);
    if let Some(first) = all.next().filter(|_| *keys != KeyFlags::default()) {
        out.extend_from_slice(format!("\x1b[={first};1u").as_bytes());
        for flags in all {
            out.extend_from_slice(format!("\x1b[>{flags}u").as_bytes());
        }
    }
}

/// Everything that would disturb painting if it were set earlier.
fn finish(out: &mut Vec<u8>, modes: &Modes) {
    if modes.insert {
        out.extend_from_slice(b"\x1b[4h");
    }
    if modes.keypad {
        out.extend_from_slice(b"\x1b=");
    }
    let shape = modes.cursor_shape.number();
    if shape != 0 {
        out.extend_from_slice(format!("\x1b[{shape} q").as_bytes());
    }
    key_flags(out, &modes.key_flags[usize::from(modes.alternate)]);
    if modes.modify_other_keys != 0 {
        out.extend_from_slice(format!("\x1b[>4;{}m", modes.modify_other_keys).as_bytes());
    }
    for (text, code) in [(&modes.title, 2), (&modes.cwd, 7)] {
        if !text.is_empty() {
            out.extend_from_slice(format!("\x1b]{code};{text}\x1b\\").as_bytes());
        }
    }
    // Last, so that a terminal that holds back frames (2026) shows this one.
    for (number, on) in modes.changed().filter(|&(number, _)| number != 6) {
        let last = if on { 'h' } else { 'l' };
        out.extend_from_slice(format!("\x1b[?{number}{last}").as_bytes());
    }
}

fn replace(bytes: &[u8], from: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut start = 0;
    for at in memchr::memmem::find_iter(bytes, from) {
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice("\u{fffd}".as_bytes());
        start = at + from.len();
    }
    out.extend_from_slice(&bytes[start..]);
    out
}
