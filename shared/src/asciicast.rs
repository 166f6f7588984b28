//! asciicast, the format of asciinema, versions 1 to 3: lines in, events out, and the other way round. Reads no file.
//! Whatever is read may come from anywhere: every number is checked, every length bounded.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::screen::Size;

/// A recording longer than this is a mistake or an attack.
const MAX_TIME: f64 = 100.0 * 365.0 * 86_400.0;

/// Texts of a header, and of a marker.
const MAX_TEXT: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
    V3,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub version: Version,
    pub size: Size,
    /// Seconds since 1970.
    pub timestamp: Option<i64>,
    pub command: Option<String>,
    pub title: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Output(String),
    Input(String),
    Marker(String),
    Resize(Size),
    Exit(i32),
}

/// Something that happened, in microseconds since the beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: u64,
    pub what: What,
}

/// Reads a recording line by line.
#[derive(Debug, Default)]
pub struct Parser {
    version: Option<Version>,
    time: f64,
    /// Of the last event: times that go back are taken for it.
    last: u64,
}

#[derive(Deserialize)]
struct Start {
    version: u64,
    #[serde(default)]
    width: Option<f64>,
    #[serde(default)]
    height: Option<f64>,
    #[serde(default)]
    term: Option<Term>,
    #[serde(default)]
    timestamp: Option<f64>,
    #[serde(default)]
    command: Option<Value>,
    #[serde(default)]
    title: Option<Value>,
    /// Version 1 has everything in one object.
    #[serde(default)]
    stdout: Option<Vec<(f64, String)>>,
}

#[derive(Deserialize)]
struct Term {
    cols: f64,
    rows: f64,
}

impl Parser {
    /// The first line, or the whole of version 1; the events that are in it.
    pub fn header(&mut self, text: &str) -> Result<(Header, Vec<Event>), String> {
        let start: Start = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| format!("this is no asciicast: its first line is not a header ({})", short(&error)))?;
        let (version, size) = match (start.version, &start.term) {
            (1, _) => (Version::V1, (start.width, start.height)),
            (2, _) => (Version::V2, (start.width, start.height)),
            (3, Some(term)) => (Version::V3, (Some(term.cols), Some(term.rows))),
            (3, None) => return Err("this asciicast has no \"term\" in its header, so its size is not known".into()),
            (other, _) => return Err(format!("this is asciicast version {other}: versions 1 to 3 are understood")),
        };
        let (Some(cols), Some(rows)) = size else { return Err("this asciicast does not say how large its terminal was".into()) };
        self.version = Some(version);
        let text_of = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(clean).filter(|text| !text.is_empty());
        let header = Header {
            version,
            size: sane(cols, rows).ok_or("this asciicast has a terminal without a size")?,
            timestamp: start.timestamp.filter(|at| at.is_finite() && (0.0..1e11).contains(at)).map(|at| at as i64),
            command: text_of(start.command),
            title: text_of(start.title),
        };
        let mut events = Vec::new();
        if version == Version::V1 {
            for (delay, data) in start.stdout.ok_or("this asciicast of version 1 has no \"stdout\"")? {
                let time = self.advance(delay)?;
                events.push(Event { time, what: What::Output(data) });
            }
        }
        Ok((header, events))
    }

    /// Any further line; `None` for what says nothing to us.
    pub fn line(&mut self, text: &str) -> Result<Option<Event>, String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') || self.version == Some(Version::V1) {
            return Ok(None);
        }
        let (at, code, data): (f64, String, Value) =
            serde_json::from_str(text).map_err(|error| format!("not an event: {}", short(&error)))?;
        let time = if self.version == Some(Version::V3) {
            self.advance(at)?
        } else {
            self.time = 0.0;
            self.advance(at)?
        };
        let Some(data) = data.as_str() else { return Ok(None) };
        let what = match code.as_str() {
            "o" => What::Output(data.to_owned()),
            "i" => What::Input(data.to_owned()),
            "m" => What::Marker(clean(data)),
            "r" => match data.split_once('x').and_then(|(cols, rows)| sane(cols.parse().ok()?, rows.parse().ok()?)) {
                Some(size) => What::Resize(size),
                None => return Err(format!("not a size: {:?}", crate::text::fit(&clean(data), 40))),
            },
            "x" => match data.parse() {
                Ok(code) => What::Exit(code),
                Err(_) => return Ok(None),
            },
            // others must be tolerated
            _ => return Ok(None),
        };
        Ok(Some(Event { time, what }))
    }

    fn advance(&mut self, seconds: f64) -> Result<u64, String> {
        if !seconds.is_finite() || seconds.abs() > MAX_TIME {
            return Err(format!("not a time: {seconds}"));
        }
        self.time = (self.time + seconds.max(0.0)).min(MAX_TIME);
        self.last = self.last.max((self.time * 1e6).round() as u64);
        Ok(self.last)
    }
}

fn short(error: &serde_json::Error) -> String {
    crate::text::fit(&crate::text::visible(&error.to_string()), 100)
}

fn clean(text: &str) -> String {
    crate::text::fit(&crate::text::visible(text), MAX_TEXT)
}

fn sane(cols: f64, rows: f64) -> Option<Size> {
    let is_size = |n: f64| n.is_finite() && n >= 1.0;
    (is_size(cols) && is_size(rows)).then(|| Size { cols: cols.min(10_000.0) as u16, rows: rows.min(10_000.0) as u16 }.clamped())
}

/// Writes a recording, line by line.
#[derive(Debug)]
pub struct Writer {
    version: Version,
    /// Of the last line.
    time: u64,
    /// The beginning of a character whose rest comes with the next output.
    partial: Vec<u8>,
}

#[derive(Serialize)]
struct Line<'a>(&'a serde_json::value::RawValue, &'a str, &'a str);

impl Writer {
    /// The header's line, and whoever writes the others.
    pub fn new(header: &Header) -> (String, Self) {
        let mut value = match header.version {
            Version::V3 => json!({
                "version": 3,
                "term": {"cols": header.size.cols, "rows": header.size.rows, "type": "xterm-256color", "version": format!("sessions-tui {}", crate::VERSION)},
            }),
            _ => json!({"version": 2, "width": header.size.cols, "height": header.size.rows}),
        };
        if let Value::Object(map) = &mut value {
            let texts = [
                ("timestamp", header.timestamp.map(Value::from)),
                ("command", text(header.command.as_ref())),
                ("title", text(header.title.as_ref())),
            ];
            for (key, given) in texts {
                map.extend(given.map(|given| (key.to_owned(), given)));
            }
            map.insert("env".into(), json!({"TERM": "xterm-256color"}));
        }
        let version = if header.version == Version::V3 { Version::V3 } else { Version::V2 };
        (format!("{value}\n"), Self { version, time: 0, partial: Vec::new() })
    }

    /// Output is bytes, and lines are text: a character that is cut in two waits for its rest, what is none is replaced.
    pub fn output(&mut self, time: u64, bytes: &[u8], out: &mut String) {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.len() - unfinished(&self.partial);
        let text = String::from_utf8_lossy(&self.partial[..whole]).into_owned();
        self.partial.drain(..whole);
        if !text.is_empty() {
            self.line(time, "o", &text, out);
        }
    }

    pub fn event(&mut self, event: &Event, out: &mut String) {
        match &event.what {
            What::Output(text) => self.output(event.time, text.as_bytes(), out),
            What::Input(text) => self.line(event.time, "i", text, out),
            What::Marker(label) => self.line(event.time, "m", label, out),
            What::Resize(size) => self.line(event.time, "r", &format!("{}x{}", size.cols, size.rows), out),
            // version 2 knows no end
            What::Exit(code) if self.version == Version::V3 => self.line(event.time, "x", &code.to_string(), out),
            What::Exit(_) => {}
        }
    }

    fn line(&mut self, time: u64, code: &str, data: &str, out: &mut String) {
        let shown = match self.version {
            Version::V3 => time.saturating_sub(self.time),
            _ => time,
        };
        // microseconds are exact: nothing is rounded, so nothing drifts
        let number = format!("{}.{:06}", shown / 1_000_000, shown % 1_000_000);
        self.time = self.time.max(time);
        if let Ok(number) = serde_json::value::RawValue::from_string(number)
            && let Ok(line) = serde_json::to_string(&Line(&number, code, data))
        {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

fn text(value: Option<&String>) -> Option<Value> {
    value.cloned().map(Value::from)
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for (back, byte) in tail.iter().rev().enumerate() {
        let needed = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if back + 1 < needed { back + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(version: Version) -> Header {
        Header { version, size: Size { cols: 80, rows: 24 }, timestamp: Some(1_794_795_945), command: Some("make".into()), title: None }
    }

    fn read(text: &str) -> Result<(Header, Vec<Event>), String> {
        let mut parser = Parser::default();
        let mut lines = text.lines();
        let (header, mut events) = parser.header(lines.next().unwrap_or_default())?;
        for line in lines {
            events.extend(parser.line(line)?);
        }
        Ok((header, events))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let events = [
            Event { time: 248_000, what: What::Output("\u{1b}[1mHello\r\n".into()) },
            Event { time: 1_249_001, what: What::Input("ls\r".into()) },
            Event { time: 1_249_001, what: What::Marker("tests start".into()) },
            Event { time: 9_000_000, what: What::Resize(Size { cols: 90, rows: 30 }) },
            Event { time: 9_000_007, what: What::Exit(3) },
        ];
        for version in [Version::V2, Version::V3] {
            let (mut text, mut writer) = Writer::new(&header(version));
            for event in &events {
                writer.event(event, &mut text);
            }
            let (read_header, read_events) = read(&text).expect("reads");
            assert_eq!(read_header, header(version));
            let expected = if version == Version::V2 { &events[..4] } else { &events[..] };
            assert_eq!(read_events, expected, "{text}");
        }
    }

    #[test]
    fn version_1_is_one_object_with_delays() {
        let (header, events) =
            read(r#"{"version":1,"width":80,"height":24,"duration":1.5,"command":"x","stdout":[[0.5,"a"],[1.0,"b"]]}"#).expect("reads");
        assert_eq!((header.version, header.command.as_deref()), (Version::V1, Some("x")));
        assert_eq!(events.iter().map(|event| event.time).collect::<Vec<_>>(), [500_000, 1_500_000]);
    }

    #[test]
    fn hostile_recordings_get_a_sentence_or_are_tamed() {
        for text in [
            "",
            "{}",
            "[]",
            "{\"version\":9,\"width\":1,\"height\":1}",
            "{\"version\":3}",
            "{\"version\":2,\"width\":0,\"height\":24}",
            "{\"version\":2,\"width\":-5,\"height\":24}",
            "{\"version\":2,\"width\":80}",
            "{\"version\":2,\"width\":80,\"height\":24}\nnonsense",
            "{\"version\":2,\"width\":80,\"height\":24}\n[1e400,\"o\",\"x\"]",
            "{\"version\":2,\"width\":80,\"height\":24}\n[1e300,\"o\",\"x\"]",
            "{\"version\":2,\"width\":80,\"height\":24}\n[1,\"r\",\"axb\"]",
            "{\"version\":1,\"width\":80,\"height\":24}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let (header, events) = read(
            "{\"version\":2,\"width\":65535,\"height\":65535,\"title\":\"a\\u001b]0;x\\u0007\",\"timestamp\":1e300}\n\
             [5,\"o\",\"later\"]\n[1,\"o\",\"back in time\"]\n[-3,\"o\",\"before\"]\n[6,\"z\",\"unknown\"]\n[7,\"o\",7]\n",
        )
        .expect("tamed");
        assert_eq!((header.size, header.timestamp), (Size { cols: 1000, rows: 500 }, None));
        assert!(!header.title.expect("kept").contains('\u{1b}'));
        assert_eq!(events.iter().map(|event| event.time).collect::<Vec<_>>(), [5_000_000; 3]);
    }

    proptest! {
        #[test]
        fn output_is_whole_however_it_is_cut(text in "\\PC{0,40}", cuts in prop::collection::vec(0usize..60, 0..6)) {
            let (mut cast, mut writer) = Writer::new(&header(Version::V3));
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                writer.output(1, &bytes[pair[0]..pair[1]], &mut cast);
            }
            let (_, events) = read(&cast).expect("reads");
            let seen: String = events.iter().map(|event| match &event.what { What::Output(text) => text.as_str(), _ => "" }).collect();
            prop_assert_eq!(seen, text);
        }

        #[test]
        fn garbage_never_panics(line in "\\PC{0,80}") {
            let mut parser = Parser::default();
            let _ = parser.header(&line);
            let _ = parser.line(&line);
        }
    }
}
