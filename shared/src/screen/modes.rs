//! What a terminal remembers besides its cells: modes, charsets, titles, key protocols.
//! Follows tokens only; it must not need the cursor (tab stops are set by the screen).

use super::text;
use super::token::{Csi, StringKind, Token};

/// Stacks of titles and key flags are cut here: programs that push without end exist.
pub const STACK_LIMIT: usize = 16;
/// Titles and the like are kept to this many bytes.
pub const TEXT_LIMIT: usize = 2048;

/// The DEC private modes we remember. Order is the bit index.
pub(super) const KNOWN: [u16; 23] =
    [1, 5, 6, 7, 9, 12, 25, 66, 67, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2026, 2027, 2031, 2048];
const MOUSE: [u16; 4] = [9, 1000, 1002, 1003];

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Charset {
    #[default]
    Ascii,
    LineDrawing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CursorShape {
    #[default]
    Default,
    BlinkingBlock,
    Block,
    BlinkingUnderline,
    Underline,
    BlinkingBar,
    Bar,
}

impl CursorShape {
    pub fn from_number(number: u16) -> CursorShape {
        match number {
            1 => CursorShape::BlinkingBlock,
            2 => CursorShape::Block,
            3 => CursorShape::BlinkingUnderline,
            4 => CursorShape::Underline,
            5 => CursorShape::BlinkingBar,
            6 => CursorShape::Bar,
            _ => CursorShape::Default,
        }
    }

    /// The parameter of DECSCUSR.
    pub fn number(self) -> u16 {
        self as u16
    }
}

/// What DECSC keeps besides position and colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SavedModes {
    /// Something was saved at all.
    pub set: bool,
    pub charsets: [Charset; 2],
    pub shifted: bool,
    pub origin: bool,
}

/// The kitty keyboard flags of one screen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyFlags {
    pub current: u8,
    pub stack: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a terminal")]
pub struct Modes {
    private: u32,
    pub alternate: bool,
    /// IRM: characters push the rest of the line to the right.
    pub insert: bool,
    /// DECKPAM (`ESC =`).
    pub keypad: bool,
    pub charsets: [Charset; 2],
    /// SO is in force: G1 is used.
    pub shifted: bool,
    /// Main and alternate screen.
    pub saved: [SavedModes; 2],
    pub key_flags: [KeyFlags; 2],
    /// xterm's modifyOtherKeys level.
    pub modify_other_keys: u8,
    pub cursor_shape: CursorShape,
    pub title: String,
    pub title_stack: Vec<String>,
    /// The URI of OSC 7 as sent, without control characters.
    pub cwd: String,
    /// The last character printed, for REP.
    pub last_char: Option<char>,
    /// Columns (0-based) of custom stops; `None` is every eighth column.
    pub tabs: Option<Vec<u16>>,
}

impl Default for Modes {
    fn default() -> Self {
        Modes {
            private: bit(7) | bit(25),
            alternate: false,
            insert: false,
            keypad: false,
            charsets: [Charset::Ascii; 2],
            shifted: false,
            saved: [SavedModes::default(); 2],
            key_flags: [KeyFlags::default(), KeyFlags::default()],
            modify_other_keys: 0,
            cursor_shape: CursorShape::Default,
            title: String::new(),
            title_stack: Vec::new(),
            cwd: String::new(),
            last_char: None,
            tabs: None,
        }
    }
}

fn bit(number: u16) -> u32 {
    KNOWN.iter().position(|&known| known == number).map_or(0, |index| 1 << index)
}

impl Modes {
    /// A DEC private mode by its number; unknown ones are off.
    pub fn get(&self, number: u16) -> bool {
        match number {
            47 | 1047 | 1049 => self.alternate,
            _ => self.private & bit(number) != 0,
        }
    }

    pub fn knows(number: u16) -> bool {
        bit(number) != 0 || matches!(number, 47 | 1047 | 1049)
    }

    /// The modes that a fresh terminal has otherwise, with their present value.
    pub fn changed(&self) -> impl Iterator<Item = (u16, bool)> {
        let difference = self.private ^ Modes::default().private;
        let private = self.private;
        KNOWN
            .iter()
            .enumerate()
            .filter(move |(index, _)| difference & (1 << index) != 0)
            .map(move |(index, &number)| (number, private & (1 << index) != 0))
    }

    pub fn origin(&self) -> bool {
        self.get(6)
    }

    pub fn autowrap(&self) -> bool {
        self.get(7)
    }

    pub fn cursor_visible(&self) -> bool {
        self.get(25)
    }

    pub fn application_cursor(&self) -> bool {
        self.get(1)
    }

    pub fn application_keypad(&self) -> bool {
        self.keypad || self.get(66)
    }

    pub fn bracketed_paste(&self) -> bool {
        self.get(2004)
    }

    pub fn focus_events(&self) -> bool {
        self.get(1004)
    }

    /// A frame is being drawn (mode 2026): what is on screen now is not meant to be seen.
    pub fn synchronized(&self) -> bool {
        self.get(2026)
    }

    /// The mouse protocol in force: 9, 1000, 1002 or 1003.
    pub fn mouse(&self) -> Option<u16> {
        MOUSE.into_iter().find(|&number| self.get(number))
    }

    /// The encoding of mouse reports: 1016, 1006, 1015, 1005, or `None` for the oldest.
    pub fn mouse_encoding(&self) -> Option<u16> {
        [1016, 1006, 1015, 1005].into_iter().find(|&number| self.get(number))
    }

    /// The kitty keyboard flags of the screen in use.
    pub fn keyboard(&self) -> u8 {
        self.key_flags[usize::from(self.alternate)].current
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// The path of OSC 7, if it told one.
    pub fn cwd_path(&self) -> Option<String> {
        text::path_of_uri(&self.cwd)
    }

    /// The charset that text is drawn with now.
    pub fn charset(&self) -> Charset {
        self.charsets[usize::from(self.shifted)]
    }

    pub(super) fn set(&mut self, number: u16, on: bool) {
        if MOUSE.contains(&number) {
            for other in MOUSE {
                self.private &= !bit(other);
            }
        }
        if on {
            self.private |= bit(number);
        } else {
            self.private &= !bit(number);
        }
    }

    /// Follows one token.
    pub(super) fn apply(&mut self, token: &Token<'_>) {
        match token {
            Token::Text(run) => {
                if let Some(last) = text::last_printed(run, self.charset()) {
                    self.last_char = Some(last);
                }
            }
            Token::Control(0x0e) => self.shifted = true,
            Token::Control(0x0f) => self.shifted = false,
            Token::Escape { intermediates, last } => self.apply_escape(intermediates, *last),
            // Colours are not ours.
            Token::Csi(csi) if csi.last == b'm' && csi.prefix == 0 => {}
            Token::Csi(csi) => self.apply_csi(csi),
            Token::Osc(payload) => self.apply_osc(payload),
            Token::String { kind: StringKind::Title, payload } => self.title = text::sanitise(payload, TEXT_LIMIT),
            _ => {}
        }
    }

    fn apply_escape(&mut self, intermediates: &[u8], last: u8) {
        let charset = match last {
            b'0' => Charset::LineDrawing,
            _ => Charset::Ascii,
        };
        match (intermediates, last) {
            (b"(", _) => self.charsets[0] = charset,
            (b")", _) => self.charsets[1] = charset,
            (b"#", b'8') => self.set(6, false),
            ([], b'7') => self.save(),
            ([], b'8') => self.restore(),
            ([], b'=') => self.keypad = true,
            ([], b'>') => self.keypad = false,
            ([], b'c') => {
                // The title and the folder are the window's, not the terminal's.
                *self = Modes { title: std::mem::take(&mut self.title), cwd: std::mem::take(&mut self.cwd), ..Modes::default() };
            }
            _ => {}
        }
    }

    fn save(&mut self) {
        self.saved[usize::from(self.alternate)] =
            SavedModes { set: true, charsets: self.charsets, shifted: self.shifted, origin: self.origin() };
    }

    fn restore(&mut self) {
        let saved = self.saved[usize::from(self.alternate)];
        self.charsets = saved.charsets;
        self.shifted = saved.shifted;
        self.set(6, saved.origin);
    }

    fn apply_csi(&mut self, csi: &Csi<'_>) {
        match (csi.prefix, csi.intermediates, csi.last) {
            (b'?', b"", b'h') => csi.numbers().for_each(|number| self.private_mode(number, true)),
            (b'?', b"", b'l') => csi.numbers().for_each(|number| self.private_mode(number, false)),
            (0, b"", b'h' | b'l') if csi.numbers().any(|number| number == 4) => {
                self.insert = csi.last == b'h';
            }
            (0, b"", b's') => self.save(),
            (0, b"", b'u') => self.restore(),
            (0, b"!", b'p') => self.soft_reset(),
            (0, b" ", b'q') => self.cursor_shape = CursorShape::from_number(csi.number_or(0, 0)),
            (0, b"", b't') => self.window_operation(csi),
            (b'>', b"", b'm') if csi.number_or(0, 0) == 4 => {
                self.modify_other_keys = csi.number_or(1, 0).min(3) as u8;
            }
            (b'>', b"", b'n') if csi.number_or(0, 0) == 4 => self.modify_other_keys = 0,
            (b'>' | b'<' | b'=', b"", b'u') => self.key_protocol(csi),
            (b'?', b"", b'W') if csi.number_or(0, 0) == 5 => self.tabs = None,
            _ => {}
        }
    }

    fn private_mode(&mut self, number: u16, on: bool) {
        match (number, on) {
            (47 | 1047, _) => self.show_alternate(on),
            (1048, true) => self.save(),
            (1048, false) => self.restore(),
            (1049, true) if !self.alternate => {
                self.save();
                self.show_alternate(true);
            }
            // Leaving what was never entered does nothing: tools send it to be safe. Leaving twice brings
            // the cursor back twice.
            (1049, false) if self.alternate || self.saved[0].set => {
                self.show_alternate(false);
                self.restore();
            }
            (1049, _) => {}
            _ => self.set(number, on),
        }
    }

    /// The alternate screen begins with nothing saved and no key flags, and keeps none when left.
    fn show_alternate(&mut self, on: bool) {
        if on != self.alternate {
            self.saved[1] = SavedModes::default();
            self.key_flags[1] = KeyFlags::default();
        }
        self.alternate = on;
    }

    fn soft_reset(&mut self) {
        self.insert = false;
        self.keypad = false;
        for (number, on) in [(1, false), (6, false), (7, true), (25, true), (66, false)] {
            self.set(number, on);
        }
        self.charsets = [Charset::Ascii; 2];
        self.shifted = false;
        self.saved[usize::from(self.alternate)] = SavedModes::default();
    }

    /// `CSI 22 t` keeps the title, `CSI 23 t` brings it back.
    fn window_operation(&mut self, csi: &Csi<'_>) {
        let about_title = matches!(csi.number_or(1, 0), 0 | 2);
        match csi.number_or(0, 0) {
            22 if about_title => {
                if self.title_stack.len() == STACK_LIMIT {
                    self.title_stack.remove(0);
                }
                self.title_stack.push(self.title.clone());
            }
            23 if about_title => {
                if let Some(title) = self.title_stack.pop() {
                    self.title = title;
                }
            }
            _ => {}
        }
    }

    fn key_protocol(&mut self, csi: &Csi<'_>) {
        let keys = &mut self.key_flags[usize::from(self.alternate)];
        let flags = (csi.number_or(0, 0) & 31) as u8;
        match csi.prefix {
            b'>' => {
                if keys.stack.len() == STACK_LIMIT {
                    keys.stack.remove(0);
                }
                keys.stack.push(keys.current);
                keys.current = flags;
            }
            b'<' => {
                for _ in 0..csi.number_or(0, 1).min(STACK_LIMIT as u16 + 1) {
                    keys.current = keys.stack.pop().unwrap_or(0);
                }
            }
            _ => match csi.number_or(1, 1) {
                1 => keys.current = flags,
                2 => keys.current |= flags,
                3 => keys.current &= !flags,
                _ => {}
            },
        }
    }

    fn apply_osc(&mut self, payload: &[u8]) {
        let (code, rest) = text::split_osc(payload);
        match code {
            Some(0 | 2) => self.title = text::sanitise(rest, TEXT_LIMIT),
            Some(7) => self.cwd = text::sanitise(rest, TEXT_LIMIT),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::Tokenizer;
    use super::*;

    fn after(bytes: &[u8]) -> Modes {
        let mut modes = Modes::default();
        Tokenizer::new().feed(bytes, |token, _, _| modes.apply(&token));
        modes
    }

    #[test]
    fn modes_are_followed() {
        let modes = after(b"\x1b[?1000;1006h\x1b[?1003h\x1b[?2004h\x1b=\x1b[4h\x1b[3 q\x1b[>4;2m");
        assert_eq!((modes.mouse(), modes.mouse_encoding()), (Some(1003), Some(1006)));
        assert!(modes.bracketed_paste() && modes.application_keypad() && modes.insert);
        assert_eq!(modes.cursor_shape, CursorShape::BlinkingUnderline);
        assert_eq!(modes.modify_other_keys, 2);
        assert_eq!(after(b"\x1b[?1000h\x1b[?1003l\x1b[?25l\x1bc"), Modes::default());
    }

    #[test]
    fn each_screen_has_its_own_key_flags() {
        let modes = after(b"\x1b[>1u\x1b[?1049h\x1b[>5u\x1b[=2;2u");
        assert_eq!(modes.keyboard(), 7);
        let modes = after(b"\x1b[>1u\x1b[?1049h\x1b[>5u\x1b[?1049l");
        assert_eq!(modes.keyboard(), 1);
        let endless: Vec<u8> = b"\x1b[>3u".repeat(100);
        assert_eq!(after(&endless).key_flags[0].stack.len(), STACK_LIMIT);
        assert_eq!(after(b"\x1b[>1u\x1b[>3u\x1b[<9u").keyboard(), 0);
    }

    #[test]
    fn titles_stack_and_join() {
        let modes = after(b"\x1b]2;a;b\x07\x1b[22;0t\x1b]0;c\x1b\\");
        assert_eq!((modes.title(), modes.title_stack.len()), ("c", 1));
        assert_eq!(after(b"\x1b]2;a\x07\x1b[22t\x1b]0;c\x07\x1b[23t").title(), "a");
        assert_eq!(after(b"\x1bkname\x1b\\").title(), "name");
        assert_eq!(after(b"\x1b]7;file://host/tmp/a%20b\x07").cwd_path().as_deref(), Some("/tmp/a b"));
    }
}
