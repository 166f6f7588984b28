//! A page that plays a recording by itself: every row as it looked, and when it changed. The page draws rows that were drawn here, so
//! it needs no terminal of its own, and nothing recorded can do anything in it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use shared::replay::Outline;
use shared::screen::{Cell, Color, Screen, Size};
use shared::text::{shell_words, visible};

use super::{Piece, Said, Sink};

/// What happens within this time is one picture; doubled when there are too many.
const APART: u64 = 40_000;

/// Pictures, and bytes of different rows, at most: what a browser takes without trouble.
const MAX_FRAMES: usize = 20_000;
const MAX_ROW_BYTES: usize = 24 << 20;

const PAGE: &str = include_str!("player.html");

pub struct Html {
    title: String,
    began_at: i64,
    screen: Screen,
    frames: Vec<Frame>,
    rows: Rows,
    /// What the last picture had in each row.
    shown: Vec<u32>,
    /// Something was drawn since, at this time.
    drawn_at: Option<u64>,
    apart: u64,
    markers: Vec<(u64, String)>,
    end: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Frame {
    /// Milliseconds.
    t: u64,
    /// Columns and rows.
    s: (u16, u16),
    /// The cursor, if it is to be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<(u16, u16)>,
    /// Rows that changed, and what they are now.
    r: Vec<(u16, u32)>,
}

/// Rows that look different, each once.
#[derive(Default)]
struct Rows {
    known: HashMap<String, u32>,
    all: Vec<String>,
    bytes: usize,
}

impl Rows {
    fn number(&mut self, row: String) -> u32 {
        if let Some(number) = self.known.get(&row) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.bytes += row.len();
        self.known.insert(row.clone(), number);
        self.all.push(row);
        number
    }
}

#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    began: i64,
    end: u64,
    rows: &'a [String],
    frames: &'a [Frame],
    markers: &'a [(u64, String)],
}

impl Html {
    pub fn new(outline: &Outline, size: Size) -> Self {
        let command = if outline.command.is_empty() { String::new() } else { format!(" · {}", shell_words(&outline.command)) };
        Self {
            title: visible(&outline.title.clone().unwrap_or_else(|| format!("{}{command}", outline.name))),
            began_at: outline.began_at.as_millisecond(),
            screen: Screen::new(size),
            frames: Vec::new(),
            rows: Rows::default(),
            shown: Vec::new(),
            drawn_at: Some(0),
            apart: APART,
            markers: Vec::new(),
            end: 0,
        }
    }

    /// Keeps the picture as it stands.
    fn keep(&mut self) {
        let Some(time) = self.drawn_at.take() else { return };
        let (size, cursor) = (self.screen.size(), self.screen.cursor());
        let mut changed = Vec::new();
        self.shown.resize(usize::from(size.rows), u32::MAX);
        for row in 0..size.rows {
            let number = self.rows.number(row_html(&self.screen, row));
            if self.shown[usize::from(row)] != number {
                self.shown[usize::from(row)] = number;
                changed.push((row, number));
            }
        }
        let c = cursor.visible.then_some((cursor.row, cursor.col));
        let s = (size.cols, size.rows);
        let is_same = self.frames.last().is_some_and(|last| changed.is_empty() && last.c == c && last.s == s);
        if !is_same {
            self.frames.push(Frame { t: time / 1000, s, c, r: changed });
        }
        if self.frames.len() > MAX_FRAMES || self.rows.bytes > MAX_ROW_BYTES {
            self.thin();
        }
    }

    /// Two pictures become one, and rows that were only in the first are gone.
    fn thin(&mut self) {
        self.apart *= 2;
        let mut frames: Vec<Frame> = Vec::with_capacity(self.frames.len() / 2 + 1);
        let mut all = std::mem::take(&mut self.frames).into_iter();
        while let Some(first) = all.next() {
            let Some(mut second) = all.next() else {
                frames.push(first);
                break;
            };
            let missing: Vec<_> = first.r.into_iter().filter(|(row, _)| second.r.iter().all(|(other, _)| other != row)).collect();
            second.r.extend(missing);
            frames.push(second);
        }
        let old = std::mem::take(&mut self.rows);
        let mut again = |number: &mut u32| {
            if let Some(row) = old.all.get(*number as usize) {
                *number = self.rows.number(row.clone());
            }
        };
        frames.iter_mut().flat_map(|frame| frame.r.iter_mut()).for_each(|(_, number)| again(number));
        self.shown.iter_mut().for_each(again);
        self.frames = frames;
    }
}

impl Sink for Html {
    fn take(&mut self, Piece { time, what }: Piece, _: &mut dyn Write) -> io::Result<()> {
        self.end = self.end.max(time);
        if self.drawn_at.is_some_and(|at| time.saturating_sub(at) >= self.apart) {
            self.keep();
        }
        match what {
            Said::Output(bytes) => self.screen.feed(&bytes, &mut Vec::new()),
            Said::Resize(size) => self.screen.resize(size),
            Said::Marker(label) => {
                self.markers.push((time / 1000, visible(&label)));
                return Ok(());
            }
            Said::Input(_) | Said::Exit(_) => return Ok(()),
        }
        self.drawn_at.get_or_insert(time);
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.keep();
        let data = Data {
            title: &self.title,
            began: self.began_at,
            end: self.end / 1000,
            rows: &self.rows.all,
            frames: &self.frames,
            markers: &self.markers,
        };
        // nothing in it can end the script it stands in
        let json = serde_json::to_string(&data)?.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        let rows: Vec<String> = (0..self.screen.size().rows).map(|row| row_html(&self.screen, row)).collect();
        let last = format!("<div>{}</div>", rows.join("</div><div>"));
        for (n, part) in PAGE.split("@@").enumerate() {
            // the template's own text and its places take turns
            match (n % 2, part) {
                (0, text) => out.write_all(text.as_bytes())?,
                (_, "title") => out.write_all(escape(&self.title).as_bytes())?,
                (_, "last") => out.write_all(last.as_bytes())?,
                (_, "data") => out.write_all(json.as_bytes())?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A row as spans of the same look; a blank row is empty.
fn row_html(screen: &Screen, row: u16) -> String {
    let mut out = String::new();
    let mut open: Option<String> = None;
    let mut blanks = 0;
    for col in 0..screen.size().cols {
        let Some(cell) = screen.cell(row, col) else { break };
        if cell.width == 0 {
            continue;
        }
        let look = look_of(&cell);
        if look.is_empty() && matches!(cell.text, "" | " ") {
            // blanks at the end of a row are nothing
            blanks += 1;
            continue;
        }
        if blanks > 0 {
            if open.take().is_some() {
                out += "</span>";
            }
            out.extend(std::iter::repeat_n(' ', blanks));
            blanks = 0;
        }
        if open.as_deref().unwrap_or_default() != look {
            if open.take().is_some() {
                out += "</span>";
            }
            if !look.is_empty() {
                let _ = write!(out, "<span{look}>");
                open = Some(look);
            }
        }
        let text = escape(&visible(if cell.text.is_empty() { " " } else { cell.text }));
        if cell.width == 2 {
            // fonts disagree about wide characters: each gets exactly two columns
            let _ = write!(out, "<b class=w>{text}</b>");
        } else {
            out += &text;
        }
    }
    if open.is_some() {
        out += "</span>";
    }
    out
}

/// Classes and colours of a cell, as attributes; nothing for one that looks like any other.
fn look_of(cell: &Cell<'_>) -> String {
    let (mut classes, mut style) = (Vec::new(), String::new());
    let (fg, bg) = if cell.inverse { (cell.bg, cell.fg) } else { (cell.fg, cell.bg) };
    match fg {
        Color::Default if cell.inverse => classes.push("fi".to_owned()),
        Color::Default => {}
        color => paint(color, 'f', "color", &mut classes, &mut style),
    }
    match bg {
        Color::Default if cell.inverse => classes.push("gi".to_owned()),
        Color::Default => {}
        color => paint(color, 'g', "background", &mut classes, &mut style),
    }
    for (is, class) in [(cell.bold, "o"), (cell.dim, "d"), (cell.italic, "t"), (cell.underline, "u")] {
        if is {
            classes.push(class.to_owned());
        }
    }
    let mut out = String::new();
    if !classes.is_empty() {
        let _ = write!(out, " class=\"{}\"", classes.join(" "));
    }
    if !style.is_empty() {
        let _ = write!(out, " style=\"{style}\"");
    }
    out
}

fn paint(color: Color, prefix: char, property: &str, classes: &mut Vec<String>, style: &mut String) {
    match color {
        Color::Indexed(n @ 0..16) => classes.push(format!("{prefix}{n}")),
        Color::Indexed(n) => {
            let (red, green, blue) = of_palette(n);
            let _ = write!(style, "{property}:#{red:02x}{green:02x}{blue:02x};");
        }
        Color::Rgb(red, green, blue) => {
            let _ = write!(style, "{property}:#{red:02x}{green:02x}{blue:02x};");
        }
        Color::Default => {}
    }
}

/// The colour cube and the greys of 256 colours.
fn of_palette(n: u8) -> (u8, u8, u8) {
    if n >= 232 {
        let grey = 8 + (n - 232) * 10;
        return (grey, grey, grey);
    }
    let n = n.saturating_sub(16);
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    (level(n / 36), level(n / 6 % 6), level(n % 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(pieces: &[(u64, &[u8])]) -> (String, Html) {
        let outline = Outline {
            missing: Vec::new(),
            runtime: shared::id::RuntimeId::new(),
            session: shared::id::SessionId::new(),
            name: "a<b".into(),
            title: None,
            language: None,
            command: vec!["echo".into(), "</script>".into()],
            began_at: jiff::Timestamp::UNIX_EPOCH,
            first: shared::replay::Position::default(),
            end: shared::replay::Position::default(),
            is_live: false,
            points: Vec::new(),
            marks: Vec::new(),
            grain: 1_000_000,
            marks_left_off: 0,
        };
        let mut html = Html::new(&outline, Size { cols: 20, rows: 3 });
        let mut out = Vec::new();
        for (time, bytes) in pieces {
            html.take(Piece { time: *time, what: Said::Output(bytes.to_vec()) }, &mut out).expect("takes");
        }
        html.finish(&mut out).expect("finishes");
        (String::from_utf8(out).expect("text"), html)
    }

    #[test]
    fn nothing_recorded_can_act_in_the_page() {
        let (text, _) = page(&[(0, b"</script><script>alert(1)</script>\r\n<img src=x onerror=alert(1)>")]);
        assert_eq!(text.matches("<script").count(), 2, "the data and the player");
        assert_eq!(text.matches("</script>").count(), 2);
        assert!(!text.contains("<img") && text.contains("&lt;img"));
        assert!(text.contains("<title>a&lt;b"));
    }

    #[test]
    fn rows_keep_their_look() {
        let mut screen = Screen::new(Size { cols: 20, rows: 2 });
        screen.feed("a \x1b[1;31mred\x1b[0m \x1b[7minv\x1b[0m 中\x1b[38;5;196mx".as_bytes(), &mut Vec::new());
        assert_eq!(
            row_html(&screen, 0),
            "a <span class=\"f1 o\">red</span> <span class=\"fi gi\">inv</span> <b class=w>中</b><span style=\"color:#ff0000;\">x</span>"
        );
        assert_eq!(row_html(&screen, 1), "");
    }

    #[test]
    fn many_pictures_are_thinned_and_the_last_one_stays() {
        let chunks: Vec<(u64, Vec<u8>)> = (0..45_000u64).map(|n| (n * 50_000, format!("\r{n}").into_bytes())).collect();
        let pieces: Vec<(u64, &[u8])> = chunks.iter().map(|(time, bytes)| (*time, &bytes[..])).collect();
        let (_, html) = page(&pieces);
        assert!(html.frames.len() <= MAX_FRAMES + 1, "{}", html.frames.len());
        let mut rows = [u32::MAX; 3];
        for (row, number) in html.frames.iter().flat_map(|frame| &frame.r) {
            rows[usize::from(*row)] = *number;
        }
        assert_eq!(html.rows.all[rows[0] as usize], "44999");
        assert!(html.frames.windows(2).all(|pair| pair[0].t <= pair[1].t));
    }
}
