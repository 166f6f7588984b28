//! Where things happened in a recording: points of its timeline, and the marks that are in the bytes themselves.
//! Read from the recording, or from `<start>.index` beside a closed segment; losing those costs time, never truth.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shared::id::Offset;
use shared::replay::Position;
use shared::screen::{Event, Located, Scanner};

use super::{Reader, Record, decode, encode, index_path, is_segment, kind, read_companion, segments};

/// Points are at least this far apart, in bytes or in time, unless there is a pause between them.
const POINT_BYTES: u64 = 64 << 10;
const POINT_TIME: u64 = 1_000_000;

/// Points in one frame of an index.
const POINTS_PER_FRAME: usize = 16 << 10;

/// Marks of one segment, and of a whole recording: the newest. More is no timeline, but an attack.
const MAX_MARKS: usize = 4000;
const MAX_ALL_MARKS: usize = 20_000;

/// Of a command, as shown on its mark.
const MAX_TEXT: usize = 1000;

/// What is typed at a prompt is looked at up to here.
const MAX_TYPED: usize = 8 << 10;

/// A mark that is in the recording itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "snake_case")]
pub enum FoundMark {
    /// A command begins: of a shell that marks them, or a call to an interpreter.
    Begins {
        offset: Offset,
        time: u64,
        text: String,
    },
    Ends {
        offset: Offset,
        time: u64,
        exit_code: Option<i32>,
    },
    Marker {
        offset: Offset,
        time: u64,
        text: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    pub points: Vec<Position>,
    pub marks: Vec<FoundMark>,
    /// Behind the last frame.
    pub end: Position,
}

impl Index {
    /// Of everything that is there before `until`; ends early when nobody wants it any more.
    pub fn read(dir: &Path, until: Offset, is_over: &dyn Fn() -> bool) -> io::Result<Self> {
        let mut whole = Self::default();
        let starts = segments(dir)?;
        for (n, start) in starts.iter().enumerate().take_while(|(_, start)| **start < until) {
            let part = match starts.get(n + 1).filter(|next| **next <= until).and_then(|_| load(dir, *start)) {
                Some(part) => part,
                None => scan(dir, *start, starts.get(n + 1).copied().unwrap_or(Offset::MAX).min(until), is_over),
            };
            if is_over() {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            // of one that cannot be read nothing is known, also not where it ends
            if part.end.time >= whole.end.time {
                whole.end = part.end;
            }
            whole.points.extend(part.points);
            whole.marks.extend(part.marks);
            let surplus = whole.marks.len().saturating_sub(MAX_ALL_MARKS);
            whole.marks.drain(..surplus);
        }
        Ok(whole)
    }
}

/// Whether this segment has been gone through.
pub fn has_index(dir: &Path, start: Offset) -> bool {
    index_path(dir, start).exists()
}

/// Stores the index of a closed segment.
pub fn store_index(dir: &Path, start: Offset, next: Offset) -> io::Result<()> {
    let path = index_path(dir, start);
    let index = scan(dir, start, next, &|| false);
    let mut bytes = Vec::new();
    for points in index.points.chunks(POINTS_PER_FRAME) {
        let body: Vec<u8> = points.iter().flat_map(|point| [point.offset.to_le_bytes(), point.time.to_le_bytes()].concat()).collect();
        encode(kind::POINTS, 0, &body, &mut bytes);
    }
    for mark in &index.marks {
        encode(kind::MARK, 0, &serde_json::to_vec(mark)?, &mut bytes);
    }
    encode(kind::INDEXED, index.end.time, &index.end.offset.to_le_bytes(), &mut bytes);
    let unfinished = path.with_extension("index-new");
    std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?.write_all(&bytes)?;
    std::fs::rename(unfinished, &path)?;
    if !is_segment(dir, start) {
        // dropped or forgotten meanwhile: nothing of it may stay
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn load(dir: &Path, start: Offset) -> Option<Index> {
    let bytes = read_companion(&index_path(dir, start)).ok()?;
    let mut rest = &bytes[..];
    let mut index = Index::default();
    while let Some(frame) = decode(rest) {
        rest = &rest[frame.size..];
        match frame.kind {
            kind::POINTS => index.points.extend(frame.body.as_chunks::<16>().0.iter().filter_map(|pair| {
                let (offset, time) = pair.split_first_chunk::<8>()?;
                Some(Position { offset: u64::from_le_bytes(*offset), time: u64::from_le_bytes(*time.first_chunk::<8>()?) })
            })),
            kind::MARK => index.marks.extend(serde_json::from_slice::<FoundMark>(frame.body).ok()),
            kind::INDEXED => {
                index.end = Position { offset: u64::from_le_bytes(*frame.body.first_chunk::<8>()?), time: frame.time };
                return Some(index);
            }
            _ => {}
        }
    }
    None
}

/// What lies between two offsets, read from the recording.
fn scan(dir: &Path, from: Offset, until: Offset, is_over: &dyn Fn() -> bool) -> Index {
    let mut scan = Scan::default();
    let mut reader = Reader::new(dir, from);
    let mut before = Position { offset: from, time: 0 };
    let mut is_first = true;
    // damage ends it: what lies behind is in the next segment's own index
    while !is_over()
        && let Ok(true) = reader.read(until, 1 << 20, |offset, time, record| {
            let here = Position { offset, time };
            if is_first {
                scan.index.points.push(here);
                is_first = false;
            } else {
                scan.point(before, here);
            }
            before = here;
            scan.look(here, &record);
        })
    {
        let surplus = scan.index.marks.len().saturating_sub(MAX_MARKS);
        scan.index.marks.drain(..surplus);
    }
    scan.index.end = before;
    if scan.index.points.last().is_some_and(|last| *last != before) {
        scan.index.points.push(before);
    }
    scan.index
}

#[derive(Default)]
struct Scan {
    index: Index,
    scanner: Scanner,
    /// What the terminal showed since a prompt ended: the command that is being typed.
    typed: Option<Vec<u8>>,
    events: Vec<Located>,
}

impl Scan {
    fn point(&mut self, before: Position, here: Position) {
        let Some(last) = self.index.points.last().copied() else { return };
        if here.time.saturating_sub(last.time) >= POINT_TIME {
            // both ends of a pause are known exactly, and what lies so far apart is one
            if before != last {
                self.index.points.push(before);
            }
            if here.time.saturating_sub(before.time) >= POINT_TIME {
                self.index.points.push(here);
            }
        } else if here.offset - last.offset >= POINT_BYTES {
            self.index.points.push(here);
        }
    }

    fn look(&mut self, here: Position, record: &Record<'_>) {
        let Position { offset, time } = here;
        match record {
            Record::Output(bytes) => self.output(here, bytes),
            Record::Call(call) => {
                let text = label(&String::from_utf8_lossy(call.code));
                self.index.marks.push(FoundMark::Begins { offset, time, text });
            }
            Record::Result(result) => {
                let exit_code = Some(crate::language::understand(result.said).exit);
                self.index.marks.push(FoundMark::Ends { offset, time, exit_code });
            }
            Record::Marker(text) => {
                let text = label(&String::from_utf8_lossy(text));
                self.index.marks.push(FoundMark::Marker { offset, time, text });
            }
            _ => {}
        }
    }

    fn output(&mut self, Position { offset, time }: Position, bytes: &[u8]) {
        let mut events = std::mem::take(&mut self.events);
        self.scanner.feed(bytes, &mut events);
        let mut seen = 0;
        for Located { start, end, event } in events.drain(..) {
            let Event::Prompt { mark, rest } = event else { continue };
            let before = usize::try_from(start).unwrap_or(0).max(seen);
            self.type_in(&bytes[seen..before.min(bytes.len())]);
            seen = end.min(bytes.len());
            match mark {
                'B' => self.typed = Some(Vec::new()),
                'C' => {
                    let typed = self.typed.take().unwrap_or_default();
                    let text = told_command(&rest).unwrap_or_else(|| as_typed(&typed));
                    self.index.marks.push(FoundMark::Begins { offset, time, text: label(&text) });
                }
                'D' => {
                    let exit_code = rest.trim_start_matches(';').split(';').next().and_then(|code| code.parse().ok());
                    self.index.marks.push(FoundMark::Ends { offset, time, exit_code });
                }
                _ => {}
            }
        }
        self.type_in(&bytes[seen..]);
        self.events = events;
    }

    fn type_in(&mut self, bytes: &[u8]) {
        if let Some(typed) = &mut self.typed {
            let room = MAX_TYPED.saturating_sub(typed.len());
            typed.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// One line of clean text.
fn label(text: &str) -> String {
    let line: String = text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join(" ⏎ ");
    shared::text::fit(&shared::text::visible(&line), MAX_TEXT)
}

/// The command line as some shells tell it with the mark itself.
pub fn told_command(rest: &str) -> Option<String> {
    rest.split(';').find_map(|part| {
        if let Some(url) = part.strip_prefix("cmdline_url=") {
            return Some(String::from_utf8_lossy(&shared::text::percent_decoded(url.as_bytes())).into_owned());
        }
        part.strip_prefix("cmdline=").map(|plain| plain.trim_matches('\'').to_owned())
    })
}

/// What was to be seen behind the prompt when the command began: drawn on a small screen, as the shell drew it.
pub fn as_typed(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return String::new();
    }
    let lines = 1 + memchr::memchr_iter(b'\n', bytes).count();
    let size = shared::screen::Size { cols: 500, rows: (lines + bytes.len() / 500).clamp(2, 20) as u16 };
    let mut screen = shared::screen::Screen::new(size);
    screen.feed(bytes, &mut Vec::new());
    let rows: Vec<String> = (0..size.rows).map(|row| screen.row_text(row)).collect();
    rows.join("\n").trim().to_owned()
}

/// The last edge of a frame whose time is at or before `time`, before `until`.
pub fn position_at(dir: &Path, time: u64, until: Offset) -> io::Result<Position> {
    let starts = segments(dir)?;
    let Some(first) = starts.first().copied() else { return Ok(Position::default()) };
    // every segment begins with a header, which has a time
    let begins = |start: Offset| {
        let mut at = None;
        let _ = Reader::new(dir, start).read(until, 1, |_, time, _| at = at.or(Some(time)));
        at.unwrap_or(u64::MAX)
    };
    let after = starts.partition_point(|start| begins(*start) <= time);
    let start = after.checked_sub(1).map_or(first, |n| starts[n]);
    let mut from = Position { offset: start, time: 0 };
    if let Some(index) = load(dir, start) {
        let n = index.points.partition_point(|point| point.time <= time);
        from = n.checked_sub(1).map_or(from, |n| index.points[n]);
    }
    let mut reader = Reader::new(dir, from.offset);
    let mut is_past = false;
    while !is_past
        && let Ok(true) = reader.read(until, 128 << 10, |offset, at, _| {
            is_past = is_past || at > time;
            if !is_past {
                from = Position { offset, time: at };
            }
        })
    {}
    Ok(from)
}
