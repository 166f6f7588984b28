//! The screen of one runtime as a cache over its recording: built when somebody looks, dropped when nobody does.
//! Cells are the expensive part, so they lag behind; a keyframe on disk is never far.

use std::path::{Path, PathBuf};
use std::time::Duration;

use shared::exec::Stream;
use shared::id::Offset;
use shared::message::{Line, ScreenShot};
use shared::replay::{Inside, Position};
use shared::screen::{Keyframe, Screen, ScrolledLine, Size};
use shared::transcript::{Ending, Transcript};

use crate::language;
use crate::recording::{self, ReadError, Reader, Record, SegmentHeader};
use crate::search::{Gone, Wanted};

/// Fed in one go: more lets more of a flood be skipped, less keeps other sessions quick.
const SLICE: std::ops::RangeInclusive<usize> = (8 << 10)..=(256 << 10);

/// A slice that takes longer is made smaller.
const TURN: Duration = Duration::from_micros(400);

/// Lines of scrollback at most: an answer that fits into one message and into memory.
const MAX_SCROLLBACK: usize = 20_000;

/// Lines are looked for no further back than about this.
const MAX_BACK: u64 = 64 << 20;

/// The control character CAN.
const CANCEL: u8 = 0x18;

pub struct Picture {
    reader: Reader,
    /// Of the last frame before the reader's offset.
    time: u64,
    dir: PathBuf,
    /// The screen at `at`, in small, while there is no live one.
    base: Keyframe,
    live: Option<Screen>,
    /// Output bytes after the reader's offset that have been fed already.
    ahead: usize,
    /// Turns an interpreter's calls into text.
    transcript: Transcript,
    slice: usize,
    stored_at: Offset,
    work: Duration,
    /// When the next keyframe is stored.
    stores: Stores,
}

/// How often a screen is stored beside the recording.
#[derive(Clone, Copy)]
struct Stores {
    after_work: Duration,
    after_bytes: u64,
    /// At least this far apart, however slow the machine.
    apart: u64,
}

/// While a session lives: enough for a restart to be quick.
const SOMETIMES: Stores = Stores { after_work: Duration::from_millis(20), after_bytes: 16 << 20, apart: 0 };

/// For seeking: whatever comes after one is on a screen within a fraction of a frame's time.
const OFTEN: Stores = Stores { after_work: Duration::from_millis(8), after_bytes: 4 << 20, apart: 96 << 10 };

const NEVER: Stores = Stores { after_work: Duration::MAX, after_bytes: u64::MAX, apart: u64::MAX };

/// What a batch of the recording holds for a screen.
enum Piece {
    Output(Vec<u8>),
    Resize(Size),
}

impl Picture {
    /// The screen of a recording that is there already, from its last keyframe at or before `until`.
    pub fn open(dir: &Path, size: Size, until: Offset) -> Self {
        if let Ok(Some((at, keyframe))) = recording::last_keyframe(dir, until) {
            return Self::at(dir, at, keyframe);
        }
        let first = recording::segments(dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
        Self::at(dir, Position { offset: first, time: 0 }, Screen::new(size).keyframe())
    }

    fn at(dir: &Path, at: Position, base: Keyframe) -> Self {
        Self {
            reader: Reader::new(dir, at.offset),
            time: at.time,
            dir: dir.to_owned(),
            base,
            live: None,
            ahead: 0,
            transcript: Transcript::default(),
            slice: *SLICE.end(),
            stored_at: at.offset,
            work: Duration::ZERO,
            stores: SOMETIMES,
        }
    }

    /// Stores keyframes for seeking on the way.
    pub fn store_often(&mut self) {
        self.stores = OFTEN;
    }

    /// Nothing of the screen may be on the disk.
    pub fn keep_nothing(&mut self) {
        self.stores = NEVER;
    }

    pub fn offset(&self) -> Offset {
        self.reader.offset()
    }

    pub fn position(&self) -> Position {
        Position { offset: self.offset(), time: self.time }
    }

    /// The live screen, without catching up.
    pub fn screen(&mut self) -> &mut Screen {
        self.live.get_or_insert_with(|| Screen::restore(&self.base))
    }

    /// Brings the screen to `until`, giving way to other tasks on long stretches.
    pub async fn catch_up(&mut self, until: Offset) -> &mut Screen {
        while self.step(until) {
            tokio::task::yield_now().await;
        }
        self.screen()
    }

    /// One single frame towards `until`; `false` when there.
    pub fn frame(&mut self, until: Offset) -> bool {
        let edge = self.reader.next_edge(until);
        edge.is_some_and(|edge| self.step(edge))
    }

    /// Goes on to `target` inside of the next frame, of which everything up to `until` may be read.
    pub fn enter(&mut self, target: Offset, until: Offset) -> Option<Inside> {
        if target <= self.offset() || self.ahead > 0 {
            return None;
        }
        let mut transcript = self.transcript.clone();
        let (time, drawn, whole) = self.reader.peek(until, |end, time, record| {
            let rest = usize::try_from(end.checked_sub(target)?).ok()?;
            let before = |bytes: &[u8]| bytes.len().checked_sub(rest);
            let part = match record {
                Record::Output(bytes) => Record::Output(&bytes[..before(bytes)?]),
                Record::Stdout(bytes) => Record::Stdout(&bytes[..before(bytes)?]),
                Record::Stderr(bytes) => Record::Stderr(&bytes[..before(bytes)?]),
                Record::Late(stream, bytes) => Record::Late(stream, &bytes[..before(bytes)?]),
                _ => return None,
            };
            let (mut drawn, mut whole) = (Vec::new(), Vec::new());
            draw(&mut transcript.clone(), &part, &mut drawn);
            draw(&mut transcript, &record, &mut whole);
            Some((time, drawn, whole))
        })??;
        // what ends a part (a colour) need not be in the whole
        self.ahead = drawn.iter().zip(&whole).take_while(|(drawn, whole)| drawn == whole).count();
        self.time = time;
        self.screen().feed(&drawn, &mut Vec::new());
        Some(Inside { offset: target, drawn: self.ahead })
    }

    /// One batch towards `until`; `false` when there.
    pub fn step(&mut self, until: Offset) -> bool {
        let mut pieces: Vec<Piece> = Vec::new();
        let outcome = self.reader.read(until, self.slice, |_, time, record| {
            self.time = time;
            if let Record::Resize(size) | Record::Header(SegmentHeader { size, .. }) = record {
                // a header says how large the screen is there: what was before may be gone
                pieces.push(Piece::Resize(size));
            } else {
                if !matches!(pieces.last(), Some(Piece::Output(_))) {
                    pieces.push(Piece::Output(Vec::new()));
                }
                if let Some(Piece::Output(last)) = pieces.last_mut() {
                    draw(&mut self.transcript, &record, last);
                }
            }
        });
        match outcome {
            Ok(true) => {}
            Ok(false) => return false,
            Err(ReadError::Dropped { first }) => {
                self.restart_from(first, until);
                return true;
            }
            Err(ReadError::Io(_)) => return false,
        }
        let began = spent();
        for piece in pieces {
            match piece {
                Piece::Output(bytes) => {
                    let fed = self.ahead.min(bytes.len());
                    self.ahead -= fed;
                    self.screen().feed(&bytes[fed..], &mut Vec::new());
                }
                Piece::Resize(size) if size.clamped() == self.screen().size() => {}
                Piece::Resize(size) => self.screen().resize(size),
            }
        }
        let took = spent().saturating_sub(began);
        self.work += took;
        self.slice = if took > TURN { (self.slice / 2).max(*SLICE.start()) } else { (self.slice * 2).min(*SLICE.end()) };
        let since = self.offset() - self.stored_at;
        if (self.work >= self.stores.after_work && since >= self.stores.apart) || since >= self.stores.after_bytes {
            self.store();
        }
        true
    }

    fn restart_from(&mut self, first: Offset, until: Offset) {
        let (size, stores) = (self.screen().size(), self.stores);
        let dir = self.dir.clone();
        *self = Self::open(&dir, size, until);
        self.stores = stores;
        if self.offset() < first {
            *self = Self { stores, ..Self::at(&dir, Position { offset: first, time: 0 }, Screen::new(size).keyframe()) };
        }
    }

    /// Writes a keyframe beside the recording; without one, a restart only takes longer.
    pub fn store(&mut self) {
        let (at, ahead) = (self.offset(), self.ahead);
        self.work = Duration::ZERO;
        self.stored_at = at;
        if ahead == 0 && self.stores.apart != NEVER.apart {
            let keyframe = self.screen().keyframe();
            let _ = recording::append_keyframe(&self.dir, at, self.time, &keyframe);
        }
    }

    /// Feeds the part of the next frame up to a query, so that its cursor is known. The rest comes with `catch_up`.
    pub fn feed_ahead(&mut self, bytes: &[u8]) {
        let fed = self.ahead.min(bytes.len());
        self.screen().feed(&bytes[fed..], &mut Vec::new());
        self.ahead = self.ahead.max(bytes.len());
    }

    /// Keeps the screen in small and gives the cells back.
    pub fn rest(&mut self) {
        if let Some(screen) = self.live.take() {
            self.base = screen.keyframe();
        }
        self.reader.rest();
    }

    /// The screen as text.
    pub async fn shot(&mut self, until: Offset) -> ScreenShot {
        let screen = self.catch_up(until).await;
        let cursor = screen.cursor();
        let size = screen.size();
        ScreenShot {
            size,
            cursor: (cursor.row, cursor.col),
            cursor_visible: cursor.visible,
            alternate: screen.is_alternate(),
            title: screen.title().to_owned(),
            scrollback: Vec::new(),
            rows: (0..size.rows)
                .map(|row| Line {
                    text: screen.row_text(row),
                    ansi: String::from_utf8_lossy(&screen.row_ansi(row)).into_owned(),
                    wrapped: screen.row_wrapped(row),
                })
                .collect(),
        }
    }
}

/// What this thread has worked so far. Not the time that passes: on a machine that is busy with other things every slice would seem
/// long, and be made so small that nothing of a flood could be skipped.
fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// What a frame puts on the screen: a program's bytes as they are, an interpreter's calls as a transcript.
pub fn draw(transcript: &mut Transcript, record: &Record<'_>, out: &mut Vec<u8>) {
    match record {
        Record::Output(bytes) => out.extend_from_slice(bytes),
        Record::Stdout(bytes) => transcript.stdout(bytes, out),
        Record::Stderr(bytes) => transcript.stderr(bytes, out),
        Record::Late(Stream::Stdout, bytes) => transcript.stdout(bytes, out),
        Record::Late(Stream::Stderr, bytes) => transcript.stderr(bytes, out),
        Record::Call(call) => transcript.call(&String::from_utf8_lossy(call.code), call.mid_line, out),
        Record::Result(result) => {
            let said = language::understand(result.said);
            let ending = Ending {
                exit_code: said.exit,
                value: said.value.as_deref(),
                error: said.error.as_ref().map(|error| error.kind.as_str()),
                took_micros: result.took,
            };
            transcript.result(&ending, result.mid_line, out);
        }
        // ends an escape sequence whose rest is missing
        Record::Missing(_) => out.push(CANCEL),
        _ => {}
    }
}

/// The last `wanted` lines that left the top of the screen before `until`, read back from the recording.
pub async fn scrolled_away(dir: &Path, until: Offset, wanted: usize) -> Vec<Line> {
    if wanted == 0 {
        return Vec::new();
    }
    // whoever asked may leave, and everybody else is not to wait
    let asker = Wanted::default();
    let (dir, gone) = (dir.to_owned(), asker.gone());
    let lines = tokio::task::spawn_blocking(move || read_back(&dir, until, wanted.min(MAX_SCROLLBACK), &gone)).await;
    lines
        .unwrap_or_default()
        .into_iter()
        .map(|line| Line { text: line.text, ansi: String::from_utf8_lossy(&line.ansi).into_owned(), wrapped: line.wrapped })
        .collect()
}

fn read_back(dir: &Path, until: Offset, wanted: usize, gone: &Gone) -> Vec<ScrolledLine> {
    // a line is rarely longer than this; too little is tried again from further back
    let mut span = (wanted as u64 * 200).max(64 << 10);
    loop {
        let from = until.saturating_sub(span);
        let mut picture = Picture::open(dir, Size { cols: 80, rows: 24 }, from);
        let reached_start = picture.offset() == recording::segments(dir).ok().and_then(|s| s.first().copied()).unwrap_or(0);
        picture.screen().capture_scrolled(true);
        let mut lines: Vec<ScrolledLine> = Vec::new();
        while !gone.is_true() && picture.step(until) {
            lines.extend(picture.screen().take_scrolled());
            if lines.len() > wanted * 2 {
                lines.drain(..lines.len() - wanted);
            }
        }
        // a program that draws its whole screen leaves no lines, however far back one looks
        if lines.len() >= wanted || reached_start || span >= MAX_BACK || gone.is_true() {
            let surplus = lines.len().saturating_sub(wanted);
            lines.drain(..surplus);
            return lines;
        }
        span = span.saturating_mul(4);
    }
}
