//! What several screen tests need: a full description of a screen, and a small deterministic fuzzer.

use shared::screen::{Located, Screen, Size};

pub fn size(cols: u16, rows: u16) -> Size {
    Size { cols, rows }
}

pub fn feed(screen: &mut Screen, bytes: &[u8]) -> Vec<Located> {
    let mut events = Vec::new();
    screen.feed(bytes, &mut events);
    events
}

pub fn fed(size: Size, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(size);
    feed(&mut screen, bytes);
    screen
}

/// Name, bytes and size of each recording in `tests/data`.
pub fn recordings() -> Vec<(String, Vec<u8>, Size)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut found: Vec<(String, Vec<u8>, Size)> = std::fs::read_dir(folder)
        .expect("the recordings are there")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".raw")?.to_owned();
            let (cols, rows) = name.rsplit_once('.')?.1.split_once('x')?;
            let size = size(cols.parse().ok()?, rows.parse().ok()?);
            Some((name, std::fs::read(&path).ok()?, size))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!found.is_empty());
    found
}

/// Everything that can be seen of the screen in use.
pub fn visible(screen: &Screen) -> Vec<String> {
    let size = screen.size();
    let mut rows: Vec<String> = (0..size.rows)
        .map(|row| {
            let cells: Vec<String> = (0..size.cols).map(|col| format!("{:?}", screen.cell(row, col))).collect();
            format!("{row} wrapped {} {}", screen.row_wrapped(row), cells.join("|"))
        })
        .collect();
    rows.push(format!("{:?} {}", screen.cursor(), screen.is_alternate()));
    rows
}

/// Panics with the first difference. Compares what is seen, the modes and the keyframes, which hold the rest.
pub fn assert_same(left: &Screen, right: &Screen, what: &str) {
    for (a, b) in visible(left).iter().zip(&visible(right)) {
        if a != b {
            let at = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
            let from = at.saturating_sub(120);
            let cut = |s: &str| String::from_utf8_lossy(&s.as_bytes()[from.min(s.len())..(at + 120).min(s.len())]).into_owned();
            panic!("{what}: screens differ:\n  {}\n  {}", cut(a), cut(b));
        }
    }
    assert_eq!(left.modes(), right.modes(), "{what}: modes");
    let (a, b) = (left.keyframe(), right.keyframe());
    assert_eq!(a.pending, b.pending, "{what}: pending");
    assert_eq!(a.extra, b.extra, "{what}: extra");
    assert!(a.paint == b.paint, "{what}: paint\n  {:?}\n  {:?}", String::from_utf8_lossy(&a.paint), String::from_utf8_lossy(&b.paint));
}

/// xorshift: the tests must be repeatable.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Valid-looking and noisy terminal output.
    pub fn output(&mut self, pieces: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..pieces {
            self.piece(&mut out);
        }
        out
    }

    #[expect(clippy::too_many_lines, reason = "a table of samples")]
    fn piece(&mut self, out: &mut Vec<u8>) {
        match self.below(24) {
            0..=4 => {
                let texts = [
                    "hello",
                    "world wide",
                    "中文字",
                    "e\u{301}x",
                    "⚠\u{fe0f}",
                    "👨\u{200d}👩",
                    "🇩🇪",
                    "ก็ำ",
                    "\u{301}",
                    "x",
                    " ",
                    "┌──┐",
                    "\u{fffd}",
                    "\u{85}",
                    "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}",
                    "the quick brown fox jumps over the lazy dog and again ",
                    "\u{ad}",
                    "ﷺ",
                    "\u{17d8}",
                    "\u{200b}",
                ];
                out.extend_from_slice(self.pick(&texts).as_bytes());
            }
            5 | 6 => out.extend_from_slice(b"\r\n"),
            7 => {
                let controls = [&b"\n"[..], b"\r", b"\t", b"\x08", b"\x0b", b"\x0e", b"\x0f", b"\x07", b"\x00", b"\x7f", b"\x18", b"\x05"];
                out.extend_from_slice(self.pick(&controls));
            }
            8..=14 => {
                let finals = b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstu";
                out.extend_from_slice(b"\x1b[");
                for index in 0..self.below(3) {
                    if index > 0 {
                        out.push(b';');
                    }
                    let value = match self.below(12) {
                        0 => 65535,
                        1 => 999,
                        2 => 0,
                        _ => 1 + self.below(30),
                    };
                    out.extend_from_slice(value.to_string().as_bytes());
                }
                out.push(finals[self.below(finals.len())]);
            }
            15 | 16 => {
                let sgr = [
                    "0",
                    "1",
                    "31",
                    "44",
                    "7",
                    "38;5;200",
                    "48;2;1;2;3",
                    "38:2::9:8:7",
                    "58;5;1",
                    "4:3",
                    "",
                    "2",
                    "3",
                    "49",
                    "100",
                    "39;22",
                ];
                out.extend_from_slice(format!("\x1b[{}m", self.pick(&sgr)).as_bytes());
            }
            17 | 18 => {
                let modes =
                    ["1", "6", "7", "25", "47", "1047", "1048", "1049", "1000", "1006", "2004", "2026", "1049;25", "66", "5", "2048"];
                let last = if self.below(2) == 0 { 'h' } else { 'l' };
                out.extend_from_slice(format!("\x1b[?{}{last}", self.pick(&modes)).as_bytes());
            }
            19 => {
                let escapes = [
                    "\x1b7",
                    "\x1b8",
                    "\x1bM",
                    "\x1bD",
                    "\x1bE",
                    "\x1bH",
                    "\x1b(0",
                    "\x1b(B",
                    "\x1b)0",
                    "\x1b#8",
                    "\x1b=",
                    "\x1b>",
                    "\x1bc",
                    "\x1b[4h",
                    "\x1b[4l",
                    "\x1b[!p",
                    "\x1b[2 q",
                    "\x1b[>1u",
                    "\x1b[<u",
                    "\x1b[=5;2u",
                    "\x1b[22t",
                    "\x1b[23t",
                    "\x1b[>4;2m",
                    "\x1b[?5W",
                    "\x1b[3g",
                    "\x1b[6n",
                    "\x1b[?6n",
                ];
                out.extend_from_slice(self.pick(&escapes).as_bytes());
            }
            20 => {
                let strings = [
                    "\x1b]0;title\x07",
                    "\x1b]2;a;b\x1b\\",
                    "\x1b]7;file://h/tmp/x\x07",
                    "\x1b]52;c;?\x07",
                    "\x1bPq#0\x1b\\",
                    "\x1b_Gx\x1b\\",
                    "\x1bkname\x1b\\",
                    "\x1b]133;A\x07",
                    "\x1b]8;;http://x\x1b\\",
                    "\x1b]11;?\x07",
                    "\x1bP+q544e\x1b\\",
                    "\x1b]0;cut",
                    "\x1bX",
                ];
                out.extend_from_slice(self.pick(&strings).as_bytes());
            }
            21 => {
                for _ in 0..self.below(8) {
                    out.push(self.below(256) as u8);
                }
            }
            22 => {
                let top = 1 + self.below(8);
                let bottom = top + self.below(12);
                out.extend_from_slice(format!("\x1b[{top};{bottom}r").as_bytes());
            }
            _ => {
                let row = 1 + self.below(14);
                let col = 1 + self.below(40);
                out.extend_from_slice(format!("\x1b[{row};{col}H").as_bytes());
            }
        }
    }
}
