//! Moments of a recording: the screen as it was at any position, and the nearest ones at which something else was to be seen.
//! Reads recordings and nothing else; it is work, so it belongs into a thread of its own.

mod sight;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use shared::id::Offset;
use shared::replay::{self, Inside, Position, Seek, What};
use shared::screen::{Keyframe, Screen, Size};
use shared::transcript::Transcript;

use crate::picture::{Picture, draw};
use crate::recording::{self, ReadError, Reader, Record};
use crate::search::Gone;

/// How far the next change is looked for: further on it counts as found there.
const MAX_AHEAD: u64 = 8 << 20;

/// Frames before a position that are looked at one by one, first; then so many more each time.
const LOOK_BACK: usize = 48;

/// A recording that is being looked at.
#[derive(Clone)]
pub struct Replay {
    pub dir: PathBuf,
    /// Of the screen before anything is known of it.
    pub size: Size,
    /// Where it ends now.
    pub until: Offset,
    /// Whoever wanted it may have left.
    pub gone: Gone,
}

impl Replay {
    pub fn seek(&self, seek: Seek) -> io::Result<(Position, Keyframe, Option<Inside>)> {
        let (at, keyframe) = match seek {
            Seek::Offset { offset } => {
                let (mut picture, inside) = self.exactly(offset);
                return Ok((picture.position(), picture.screen().keyframe(), inside));
            }
            Seek::Time { time } => self.moment(recording::position_at(&self.dir, time, self.until)?.offset),
            Seek::NextChange { from } => self.next_change(from),
            Seek::PreviousChange { from } => self.previous_change(from),
            Seek::End => self.moment(self.until),
        };
        Ok((at, keyframe, None))
    }

    /// The screen at this offset, which may lie inside of a frame.
    fn exactly(&self, offset: Offset) -> (Picture, Option<Inside>) {
        let mut picture = self.picture(offset);
        let inside = picture.enter(offset.min(self.until), self.until);
        (picture, inside)
    }

    fn picture(&self, offset: Offset) -> Picture {
        let target = offset.min(self.until);
        let mut picture = Picture::open(&self.dir, self.size, target);
        picture.store_often();
        while !self.gone.is_true() && picture.step(target) {}
        picture
    }

    fn moment(&self, offset: Offset) -> (Position, Keyframe) {
        let mut picture = self.picture(offset);
        (picture.position(), picture.screen().keyframe())
    }

    fn next_change(&self, from: Offset) -> (Position, Keyframe) {
        let (mut picture, _) = self.exactly(from);
        let look = look_of(picture.screen());
        let start = picture.offset();
        while !self.gone.is_true() && picture.frame(self.until) && look_of(picture.screen()) == look && picture.offset() - start < MAX_AHEAD
        {
        }
        (picture.position(), picture.screen().keyframe())
    }

    fn previous_change(&self, from: Offset) -> (Position, Keyframe) {
        let (mut here, _) = self.exactly(from);
        let now = here.position();
        let look = look_of(here.screen());
        let first = recording::segments(&self.dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
        let mut back = LOOK_BACK;
        let mut end = now.offset;
        loop {
            let edges = self.edges_before(end, back);
            let Some(start) = edges.front().copied() else { return self.moment(first) };
            let mut picture = self.picture(start);
            let mut found = (look_of(picture.screen()) != look).then(|| (picture.position(), picture.screen().keyframe()));
            while picture.offset() < end && picture.frame(end) && picture.offset() < end {
                if look_of(picture.screen()) != look {
                    found = Some((picture.position(), picture.screen().keyframe()));
                }
            }
            match found {
                _ if self.gone.is_true() => return self.moment(first),
                Some(found) => return found,
                None if start <= first => return self.moment(first),
                None => (end, back) = (start, back * 4),
            }
        }
    }

    /// Up to `count` edges of frames before `end`, oldest first.
    fn edges_before(&self, end: Offset, count: usize) -> VecDeque<Offset> {
        let starts = recording::segments(&self.dir).unwrap_or_default();
        let mut edges: VecDeque<Offset> = VecDeque::new();
        for start in starts.iter().rev().filter(|start| **start < end) {
            let most = count.saturating_sub(edges.len());
            let until = edges.front().copied().unwrap_or(end);
            // most of the time they lie behind the last keyframe
            let key = recording::last_keyframe(&self.dir, until - 1).ok().flatten().map(|(at, _)| at.offset).filter(|at| at > start);
            let mut these = key.map(|key| self.edges_between(key, until, most)).unwrap_or_default();
            if these.len() < most {
                these = self.edges_between(*start, until, most);
            }
            these.extend(edges);
            edges = these;
            if edges.len() >= count {
                break;
            }
        }
        edges
    }

    /// The last `most` edges from `start` on, before `end`.
    fn edges_between(&self, start: Offset, end: Offset, most: usize) -> VecDeque<Offset> {
        let mut edges = VecDeque::from([start]);
        let mut reader = Reader::new(&self.dir, start);
        while let Ok(true) = reader.read(end, 1 << 20, |offset, _, _| {
            if offset < end {
                edges.push_back(offset);
                if edges.len() > most {
                    edges.pop_front();
                }
            }
        }) {}
        edges
    }

    /// What comes after `from`, about `most` bytes of it; and whether that is all.
    pub fn records(&self, from: Offset, most: usize) -> Result<(Vec<replay::Record>, bool), ReadError> {
        let mut reader = Reader::new(&self.dir, from);
        let mut transcript = Transcript::default();
        let mut records = Vec::new();
        let mut size = 0;
        loop {
            let outcome = reader.read(self.until, most.saturating_sub(size).max(1), |end, time, record| {
                size += told(&mut transcript, end, time, &record, &mut records);
            });
            match outcome {
                // frames that say nothing to a client are no answer
                Ok(true) if size < most || records.is_empty() => {}
                Ok(true) => return Ok((records, false)),
                Ok(false) => return Ok((records, true)),
                Err(_) if !records.is_empty() => return Ok((records, false)),
                Err(ReadError::Dropped { first }) => reader.seek(first),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A frame as clients know it; gives about how large that is.
fn told(transcript: &mut Transcript, end: Offset, time: u64, record: &Record<'_>, out: &mut Vec<replay::Record>) -> usize {
    let before = match record {
        Record::Resize(size) => Some(What::Resize { size: *size }),
        Record::Gap(bytes) => Some(What::Gap { bytes: *bytes, is_lost: false }),
        Record::Missing(bytes) => Some(What::Gap { bytes: *bytes, is_lost: true }),
        Record::Exit(status) => Some(What::Exit { status: *status }),
        Record::Input(bytes) => Some(What::Input { base64: BASE64.encode(bytes) }),
        Record::Marker(text) => Some(What::Marker { text: String::from_utf8_lossy(text).into_owned() }),
        Record::Call(call) => Some(What::Call { code: String::from_utf8_lossy(call.code).into_owned() }),
        Record::Result(result) => Some(What::Result { exit_code: crate::language::understand(result.said).exit }),
        _ => None,
    };
    out.extend(before.map(|what| replay::Record { end, time, what }));
    let mut drawn = Vec::new();
    draw(transcript, record, &mut drawn);
    let size = drawn.len();
    if !drawn.is_empty() {
        out.push(replay::Record { end, time, what: What::Output { base64: BASE64.encode(drawn) } });
    }
    size + 64
}

/// What is to be seen, as a number.
fn look_of(screen: &Screen) -> u64 {
    let mut hasher = DefaultHasher::new();
    let (size, cursor) = (screen.size(), screen.cursor());
    (size.cols, size.rows, cursor.row, cursor.col, cursor.visible).hash(&mut hasher);
    for row in 0..size.rows {
        screen.row_ansi(row).hash(&mut hasher);
    }
    hasher.finish()
}
