//! Each rule of the layer over vt100 in one line: bytes in, rows and cursor out.

use super::support::{fed, feed, size};
use shared::screen::{Color, Event, Keyframe, Modes, NotificationSource, Query, Screen, Size, answer};

/// Bytes, the rows they leave (trailing blank rows may be left out), and the cursor.
type Rule = (&'static str, &'static [u8], &'static [&'static str], (u16, u16));

const RULES: &[Rule] = &[
    ("text", b"ab\r\ncd", &["ab", "cd"], (1, 2)),
    ("invalid UTF-8", b"a\xff\xe4\xb8b", &["a\u{fffd}\u{fffd}b"], (0, 4)),
    ("C1 in UTF-8 is nothing", b"a\xc2\x9bb\xc2\x85c", &["abc"], (0, 3)),
    ("raw C1 is invalid text", b"\x9b1mx", &["\u{fffd}1mx"], (0, 4)),
    ("variation selector", b"\xe2\x9a\xa0\xef\xb8\x8fx", &["\u{26a0}x"], (0, 2)),
    ("combining mark", b"e\xcc\x81x", &["e\u{301}x"], (0, 2)),
    ("mark on nothing", b"\x1b[5G\xcc\x81x", &["    x"], (0, 5)),
    ("wide at the margin", b"123456789\xe4\xb8\xad", &["123456789", "\u{4e2d}"], (1, 2)),
    ("line drawing", b"\x1b(0lqk\x1b(Bq", &["\u{250c}\u{2500}\u{2510}q"], (0, 4)),
    ("line drawing by shift", b"\x1b)0a\x0eq\x0fq", &["a\u{2500}q"], (0, 3)),
    ("save keeps the charset", b"\x1b(0\x1b7\x1b(B\x1b8q", &["\u{2500}"], (0, 1)),
    ("save and restore", b"ab\x1b7\x1b[3;3Hc\x1b8d", &["abd", "", "  c"], (0, 3)),
    ("SCO save and restore", b"ab\x1b[s\x1b[3;3Hc\x1b[ud", &["abd", "", "  c"], (0, 3)),
    ("NEL", b"ab\x1bEc", &["ab", "c"], (1, 1)),
    ("IND", b"ab\x1bDc", &["ab", "  c"], (1, 3)),
    ("RI at the top", b"ab\x1bMc", &["  c", "ab"], (0, 3)),
    ("RI above the region", b"a\x1b[2;4rb\x1b[1;1H\x1bMc", &["c"], (0, 1)),
    ("tab", b"a\tb", &["a       b"], (0, 9)),
    ("HTS", b"\x1b[4G\x1bH\ra\tb", &["a  b"], (0, 4)),
    ("TBC one", b"\x1b[4G\x1bH\x1b[g\ra\tb", &["a       b"], (0, 9)),
    ("TBC all", b"\x1b[3ga\tb", &["a        b"], (0, 9)),
    ("tab stops by default", b"\x1b[3g\x1b[?5Wa\tb", &["a       b"], (0, 9)),
    ("CBT", b"\x1b[10Ga\x1b[Zb", &["        ba"], (0, 9)),
    ("CHT", b"\x1b[Ia", &["        a"], (0, 9)),
    ("IRM", b"abc\r\x1b[4hX\x1b[4lY", &["XYbc"], (0, 2)),
    ("IRM at the margin", b"0123456789\r\x1b[4hXY", &["XY01234567"], (0, 2)),
    ("ESC k is a title", b"\x1bkname\x1b\\x", &["x"], (0, 1)),
    ("strings are swallowed", b"\x1bPq#1\x1b\\a\x1b_b\x1b\\\x1b^c\x1b\\\x1bXd\x1b\\e", &["ae"], (0, 2)),
    ("OSC is swallowed", b"\x1b]0;t\x07a\x1b]9;x\x1b\\b", &["ab"], (0, 2)),
    ("DECSTBM homes", b"\x1b[3;3H\x1b[2;4rx", &["x"], (0, 1)),
    ("a wrong region is ignored", b"ab\x1b[4;2rx", &["abx"], (0, 3)),
    ("region scrolls", b"a\x1b[2;3r\x1b[3;1Hb\r\nc\r\nd", &["a", "c", "d"], (2, 1)),
    ("no wrap", b"\x1b[?7l0123456789abc", &["012345678c"], (0, 9)),
    ("no wrap, wide", b"\x1b[?7l012345678\xe4\xb8\xad", &["012345678"], (0, 9)),
    ("origin CUP", b"\x1b[2;4r\x1b[?6h\x1b[2;2Hx", &["", "", " x"], (2, 2)),
    ("origin VPA", b"\x1b[2;4r\x1b[?6h\x1b[2dx", &["", "", "x"], (2, 1)),
    ("origin clamps", b"\x1b[2;4r\x1b[?6h\x1b[9;1Hx", &["", "", "", "x"], (3, 1)),
    ("alternate 1049", b"ab\x1b[?1049hcd\x1b[?1049le", &["abe"], (0, 3)),
    ("alternate 1047", b"ab\x1b[?1047hcd\x1b[?1047le", &["ab  e"], (0, 5)),
    ("alternate 47", b"ab\x1b[?47h\x1b[2;2Hcd\x1b[?47le", &["ab", "   e"], (1, 4)),
    ("leaving twice", b"ab\x1b[?1049h\x1b[?1049lcd\x1b[?1049le", &["abed"], (0, 3)),
    ("leaving what was not entered", b"ab\x1b[?1049lc", &["abc"], (0, 3)),
    ("1048", b"ab\x1b[?1048h\x1b[3;3H\x1b[?1048lc", &["abc"], (0, 3)),
    ("entered empty", b"\x1b[?47hab\x1b[?47l\x1b[?47h", &[""], (0, 2)),
    ("DECSTR", b"\x1b[4h\x1b[?6h\x1b[2;3r\x1b[?7l\x1b[2;1Ha\x1b[!p\x1b[4;1Hb", &["", "", "a", "b"], (3, 1)),
    ("DECALN", b"\x1b#8\x1b[2;1H", &["EEEEEEEEEE", "EEEEEEEEEE", "EEEEEEEEEE", "EEEEEEEEEE"], (1, 0)),
    ("REP", b"ab\x1b[3bc", &["abbbbc"], (0, 6)),
    ("REP of nothing", b"\x1b[3bc", &["c"], (0, 1)),
    ("REP is bounded", b"x\x1b[65535b\x1b[Hy", &["yxxxxxxxxx", "x"], (0, 1)),
    ("huge counts", b"ab\x1b[65535A\x1b[65535C\x1b[65535L\x1b[65535@z", &["         z"], (0, 9)),
    ("pending wrap", b"0123456789a", &["0123456789", "a"], (1, 1)),
    ("pending wrap, LF", b"0123456789\na", &["0123456789", "         a"], (1, 9)),
    ("pending wrap, EL", b"0123456789\x1b[Ka", &["0123456789", "a"], (1, 1)),
    ("pending wrap, CUU", b"\n0123456789\x1b[Aa", &["         a", "0123456789"], (0, 9)),
    ("controls inside a sequence", b"ab\x1b[\r1Cc", &["ac"], (0, 2)),
    ("an aborted sequence", b"\x1b[3\x18Cx\x1b[3\x1aCy", &["CxCy"], (0, 4)),
    ("RIS", b"ab\x1b[?6h\x1b[4h\x1b(0\x1bcq", &["q"], (0, 1)),
    ("ICH DCH ECH", b"abcdef\x1b[2G\x1b[2@\x1b[5G\x1b[P\x1b[6G\x1b[X", &["a  bd f"], (0, 5)),
    ("HPR and VPR", b"\x1b[2a\x1b[1ex", &["", "  x"], (1, 3)),
    ("mouse tracking is no scroll", b"a\x1b[1;2;3;4;5Tb", &["ab"], (0, 2)),
    ("DEL and NUL", b"a\x7f\x00b", &["ab"], (0, 2)),
];

#[test]
fn every_rule_holds_in_one_piece_and_byte_by_byte() {
    for (name, bytes, rows, cursor) in RULES {
        let whole = fed(size(10, 4), bytes);
        let mut bitwise = Screen::new(size(10, 4));
        for byte in *bytes {
            feed(&mut bitwise, &[*byte]);
        }
        for screen in [&whole, &bitwise] {
            for row in 0..4u16 {
                let expected = rows.get(usize::from(row)).copied().unwrap_or("");
                assert_eq!(screen.row_text(row), expected, "{name}: row {row}");
            }
            let at = screen.cursor();
            assert_eq!((at.row, at.col), *cursor, "{name}: cursor");
        }
    }
}

/// The backgrounds of a screen, one letter per cell: `.` default, else the colour's number.
fn backgrounds(screen: &Screen) -> Vec<String> {
    let size = screen.size();
    (0..size.rows)
        .map(|row| {
            (0..size.cols)
                .map(|col| match screen.cell(row, col).map(|cell| cell.bg) {
                    Some(Color::Indexed(index)) => char::from(b'0' + index),
                    _ => '.',
                })
                .collect()
        })
        .collect()
}

#[test]
fn fresh_cells_get_the_background() {
    for (name, bytes, expected) in [
        ("LF at the bottom", &b"\x1b[3;1H\x1b[41m\n"[..], ["....", "....", "1111"]),
        ("LF elsewhere", b"\x1b[41m\n", ["....", "....", "...."]),
        ("RI", b"\x1b[41m\x1bM", ["1111", "....", "...."]),
        ("IL", b"\x1b[2;1H\x1b[42m\x1b[L", ["....", "2222", "...."]),
        ("DL", b"\x1b[2;1H\x1b[42m\x1b[M", ["....", "....", "2222"]),
        ("SU", b"\x1b[43m\x1b[2S", ["....", "3333", "3333"]),
        ("SD", b"\x1b[43m\x1b[T", ["3333", "....", "...."]),
        ("ICH", b"abc\x1b[2G\x1b[44m\x1b[@", [".4..", "....", "...."]),
        ("DCH", b"abcd\x1b[2G\x1b[44m\x1b[2P", ["..44", "....", "...."]),
        ("ECH", b"\x1b[44;1;7m\x1b[2X", ["44..", "....", "...."]),
        ("EL", b"\x1b[2G\x1b[45m\x1b[K", [".555", "....", "...."]),
        ("ED", b"\x1b[45m\x1b[2;3H\x1b[J", ["....", "..55", "5555"]),
        ("the alternate screen is not", b"\x1b[45m\x1b[?1049h", ["....", "....", "...."]),
    ] {
        let screen = fed(size(4, 3), bytes);
        assert_eq!(backgrounds(&screen), expected, "{name}");
        let blank = screen.cell(0, 0).expect("inside");
        assert!(!blank.inverse && !blank.bold, "{name}: only the background stays");
    }
}

#[test]
fn a_new_width_cuts_lines_anew() {
    let long = b"0123456789abcdefghij\r\nshort\r\n$ ";
    let mut screen = fed(size(10, 6), long);
    screen.resize(size(7, 6));
    let rows: Vec<String> = (0..6).map(|row| screen.row_text(row)).collect();
    assert_eq!(rows, ["0123456", "789abcd", "efghij", "short", "$", ""]);
    assert_eq!((screen.cursor().row, screen.cursor().col), (4, 2));
    screen.resize(size(30, 6));
    assert_eq!(screen.row_text(0), "0123456789abcdefghij");
    assert_eq!((screen.cursor().row, screen.cursor().col), (2, 2));
    screen.resize(size(30, 2));
    assert_eq!((screen.row_text(0), screen.cursor().row), ("short".to_owned(), 1));
}

#[test]
fn the_alternate_screen_is_only_cropped() {
    let mut screen = fed(size(10, 3), b"0123456789ab\x1b[?1049h\x1b[Hfull width\x1b[2;1Hx");
    screen.resize(size(5, 3));
    assert_eq!((screen.row_text(0), screen.row_text(1)), ("full".into(), "x".into()));
    feed(&mut screen, b"\x1b[?1049l");
    assert_eq!((screen.row_text(0), screen.row_text(1)), ("01234".into(), "56789".into()));
    assert_eq!((screen.cursor().row, screen.cursor().col), (2, 2));
}

#[test]
fn rows_that_leave_the_top_can_be_kept() {
    let mut screen = Screen::new(size(6, 2));
    screen.capture_scrolled(true);
    feed(&mut screen, b"one\r\n\x1b[31mlonglo\x1b[mng\r\nx\r\n");
    let lines = screen.take_scrolled();
    let told: Vec<(&str, bool)> = lines.iter().map(|line| (line.text.as_str(), line.wrapped)).collect();
    assert_eq!(told, [("one", false), ("longlo", true), ("ng", false)]);
    assert!(lines[1].ansi.starts_with(b"\x1b[31m") && lines[1].ansi.ends_with(b"\x1b[0m"));
    feed(&mut screen, b"\x1b[?1049ha\r\nb\r\nc\r\nd");
    assert_eq!(screen.take_scrolled(), []);
    feed(&mut screen, &b"line\r\n".repeat(5000));
    assert_eq!(screen.take_scrolled().len(), 0, "the alternate screen has no history");
    feed(&mut screen, b"\x1b[?1049l");
    feed(&mut screen, &b"line\r\n".repeat(5000));
    assert!(screen.take_scrolled().len() >= 4999, "nothing is skipped while capturing");
}

#[test]
fn questions_are_answered_with_constants() {
    let mut screen = Screen::new(size(80, 24));
    let mut ask = |bytes: &[u8]| -> Vec<String> {
        let events = feed(&mut screen, bytes);
        events
            .iter()
            .filter_map(|located| match &located.event {
                Event::Query(query, cursor) => Some(
                    answer(query, screen.modes(), screen.size(), *cursor)
                        .map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned()),
                ),
                _ => None,
            })
            .collect()
    };
    for (question, expected) in [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[4;7H\x1b[6n", "\x1b[4;7R"),
        ("\x1b[?6n", "\x1b[?4;7;1R"),
        ("\x1b[3;9r\x1b[?6h\x1b[2;1H\x1b[6n\x1b[?6l\x1b[r", "\x1b[2;1R"),
        ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
        ("\x1b[?2026$p", "\x1b[?2026;2$y"),
        ("\x1b[?4711$p", "\x1b[?4711;0$y"),
        ("\x1b[4$p", "\x1b[4;2$y"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        ("\x1b[14t", "\x1b[4;384;640t"),
        ("\x1b[16t", "\x1b[6;16;8t"),
        ("\x1b[>5u\x1b[?u", "\x1b[?5u"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:1010/1010/1010\x1b\\"),
        ("\x1b]4;196;?\x1b\\", "\x1b]4;196;rgb:ffff/0000/0000\x1b\\"),
        ("\x1bP$qm\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[21t", ""),
        ("\x1b]7501;?\x1b\\", "\x1b]7501;?:states=idle,working,done,blocked,error:kinds=permission,question,auth\x1b\\"),
    ] {
        assert_eq!(ask(question.as_bytes()), [expected], "{question:?}");
    }
    assert_eq!(ask(b"\x1b]10;?;?\x07").len(), 2);
    assert!(ask(b"\x1b[>0q")[0].starts_with("\x1bP>|sessions-tui("));
    assert!(ask(b"\x05\x1b]52;c;?\x07").is_empty());
    assert!(Query::CursorPosition.needs_cursor() && !Query::Status.needs_cursor());
    assert!(answer(&Query::Refused, &Modes::default(), Size { cols: 0, rows: 0 }, None).is_none());
}

#[test]
fn events_are_found_clean_and_located() {
    let mut screen = Screen::new(size(20, 5));
    let bytes = b"x\x07\x1b]0;a\x01;b\x07\x1b]9;hi\x07\x1b]9;4;1;50\x07\x1b]777;notify;t;b\x1b\\\x1b]133;D;1\x07\x1b]7501;state=idle\x07\x1b]52;c;aGk=\x07\x1b]52;c;?\x07\x1b]99;i=1;yo\x1b\\\x1b]7;file://h/a%20b\x07\x1bc";
    let events: Vec<Event> = feed(&mut screen, bytes).into_iter().map(|located| located.event).collect();
    let note = |source, text: &str| Event::Notification { source, text: text.into() };
    assert_eq!(
        events,
        [
            Event::Bell,
            Event::Title("a;b".into()),
            note(NotificationSource::Osc9, "hi"),
            Event::Progress { state: 1, percent: Some(50) },
            note(NotificationSource::Osc777, "t: b"),
            Event::Prompt { mark: 'D', rest: "1".into() },
            Event::Status("state=idle".into()),
            Event::ClipboardWrite,
            Event::ClipboardRead,
            note(NotificationSource::Osc99, "yo"),
            Event::Cwd("/a b".into()),
            Event::Reset,
        ]
    );
    let first = feed(&mut screen, b"ab\x1b]2;ti");
    assert!(first.is_empty());
    let second = feed(&mut screen, b"tle\x07");
    assert_eq!((second[0].start, second[0].end), (-6, 4));
}

#[test]
fn a_cut_inside_an_endless_string_still_swallows_the_rest() {
    let mut screen = fed(size(20, 3), b"before\x1b]52;c;");
    feed(&mut screen, &vec![b'A'; 100_000]);
    let keyframe = screen.keyframe();
    assert!(keyframe.pending.len() < 8);
    let mut restored = Screen::restore(&keyframe);
    for screen in [&mut screen, &mut restored] {
        assert_eq!(feed(screen, b"2;AAA\x07after"), []);
        assert_eq!(screen.row_text(0), "beforeafter");
    }
}

#[test]
fn a_keyframe_is_json_too() {
    let keyframe = fed(size(20, 3), b"\x1b[31mred").keyframe();
    let json = serde_json::to_string(&keyframe).expect("it is plain data");
    let read: Keyframe = serde_json::from_str(&json).expect("it was just written");
    assert_eq!(read, keyframe);
}

#[test]
fn a_screen_can_move_to_another_thread() {
    fn movable<T: Send>(_: &T) {}
    movable(&Screen::new(size(80, 24)));
}
