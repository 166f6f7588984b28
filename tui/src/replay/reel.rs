//! The screen at a position of a recording, and what has been loaded to go on from there. Pure.

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use shared::id::Offset;
use shared::replay::{Inside, Moment, Position, Record, Records, What};
use shared::runtime::ExitStatus;
use shared::screen::{Keyframe, Screen, Size};

pub struct Reel {
    pub screen: Screen,
    pub at: Position,
    loaded: VecDeque<Loaded>,
    loaded_bytes: usize,
    /// What is shown of the frame behind `at` already.
    inside: Option<Inside>,
    /// Nothing more was there when we last heard.
    pub is_whole: bool,
}

struct Loaded {
    end: Offset,
    time: u64,
    step: Step,
}

enum Step {
    Bytes(Vec<u8>),
    Resize(Size),
    Gap(u64),
    Exit(ExitStatus),
    /// Nothing to be seen.
    Nothing,
}

/// What was passed that is not on the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    Gap(u64),
    Exit(ExitStatus),
}

impl Reel {
    /// `None` if a newer daemon writes screens that we do not understand.
    pub fn restore(moment: &Moment) -> Option<Self> {
        let keyframe = Keyframe::from_bytes(&BASE64.decode(&moment.keyframe).ok()?)?;
        Some(Self {
            screen: Screen::restore(&keyframe),
            at: moment.at,
            loaded: VecDeque::new(),
            loaded_bytes: 0,
            inside: moment.inside,
            is_whole: false,
        })
    }

    /// Exactly what is shown, which may be further than the position.
    pub fn shown_until(&self) -> Offset {
        self.inside.map_or(self.at.offset, |inside| inside.offset)
    }

    /// Where what is loaded ends.
    pub fn loaded_until(&self) -> Offset {
        self.loaded.back().map_or(self.at.offset, |loaded| loaded.end)
    }

    pub fn loaded_bytes(&self) -> usize {
        self.loaded_bytes
    }

    /// When the next thing happens, if it is loaded.
    pub fn next_time(&self) -> Option<u64> {
        self.loaded.front().map(|loaded| loaded.time)
    }

    pub fn is_at_end(&self) -> bool {
        self.is_whole && self.loaded.is_empty()
    }

    pub fn load(&mut self, records: Records) {
        self.is_whole = records.at_end;
        let from = self.loaded_until();
        // the first output behind the position is the one it is inside of
        let mut is_behind = !self.loaded.is_empty();
        let mut time = self.loaded.back().map_or(self.at.time, |loaded| loaded.time);
        for record in records.records.into_iter().filter(|record| record.end > from) {
            // damage has no time of its own
            time = record.time.max(time);
            let mut loaded = Loaded { end: record.end, time, step: step(record) };
            if let (Step::Bytes(bytes), Some(Inside { drawn, .. })) = (&mut loaded.step, self.inside.filter(|_| !is_behind)) {
                bytes.drain(..drawn.min(bytes.len()));
                is_behind = true;
            }
            self.loaded_bytes += loaded.size();
            self.loaded.push_back(loaded);
        }
    }

    /// Goes on up to this time, or until about `budget` bytes were drawn. Tells what it came by.
    pub fn advance(&mut self, until: u64, mut budget: usize, passed: &mut Vec<Passed>) {
        let mut events = Vec::new();
        while let Some(loaded) = self.loaded.pop_front_if(|loaded| loaded.time <= until && budget > 0) {
            let size = loaded.size();
            self.loaded_bytes -= size;
            budget = budget.saturating_sub(size);
            self.at = Position { offset: loaded.end, time: loaded.time };
            self.inside = None;
            match loaded.step {
                Step::Bytes(bytes) => self.screen.feed(&bytes, &mut events),
                Step::Resize(size) => self.screen.resize(size),
                Step::Gap(bytes) => passed.push(Passed::Gap(bytes)),
                Step::Exit(status) => passed.push(Passed::Exit(status)),
                Step::Nothing => {}
            }
            // titles, bells, queries: nothing recorded acts on anybody
            events.clear();
        }
    }
}

impl Loaded {
    fn size(&self) -> usize {
        // a frame without bytes costs something too
        64 + if let Step::Bytes(bytes) = &self.step { bytes.len() } else { 0 }
    }
}

fn step(record: Record) -> Step {
    match record.what {
        What::Output { base64 } => BASE64.decode(base64).map_or(Step::Nothing, Step::Bytes),
        What::Resize { size } => Step::Resize(size),
        What::Gap { bytes, .. } => Step::Gap(bytes),
        What::Exit { status } => Step::Exit(status),
        What::Input { .. } | What::Marker { .. } | What::Call { .. } | What::Result { .. } => Step::Nothing,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn moment(text: &str, at: Position, size: Size) -> Moment {
        let mut screen = Screen::new(size);
        screen.feed(text.as_bytes(), &mut Vec::new());
        Moment { at, inside: None, keyframe: BASE64.encode(screen.keyframe().to_bytes()), end: 1000, is_live: false }
    }

    pub fn output(end: Offset, time: u64, text: &str) -> Record {
        Record { end, time, what: What::Output { base64: BASE64.encode(text) } }
    }

    #[test]
    fn what_is_shown_of_a_frame_is_not_drawn_again() {
        let mut moment = moment("one", Position { offset: 10, time: 5 }, Size { cols: 20, rows: 4 });
        moment.inside = Some(Inside { offset: 13, drawn: 3 });
        let mut reel = Reel::restore(&moment).expect("a screen");
        assert_eq!((reel.at.offset, reel.shown_until()), (10, 13));
        reel.load(Records { records: vec![output(20, 5, "one two"), output(30, 6, " three")], at_end: true, is_live: false, end: 30 });
        reel.advance(1000, 1 << 20, &mut Vec::new());
        assert_eq!((reel.screen.row_text(0).as_str(), reel.shown_until()), ("one two three", 30));
    }

    #[test]
    fn the_screen_follows_what_is_loaded() {
        let mut reel = Reel::restore(&moment("one", Position { offset: 10, time: 5 }, Size { cols: 20, rows: 4 })).expect("a screen");
        let records = vec![
            output(10, 5, "seen before"),
            output(20, 100, " two"),
            Record { end: 30, time: 200, what: What::Resize { size: Size { cols: 30, rows: 5 } } },
            Record { end: 40, time: 0, what: What::Gap { bytes: 7, is_lost: false } },
            output(50, 300, " three"),
        ];
        reel.load(Records { records, at_end: true, is_live: false, end: 50 });
        let mut passed = Vec::new();
        reel.advance(100, 1 << 20, &mut passed);
        assert_eq!((reel.screen.row_text(0).as_str(), reel.at.offset, reel.next_time()), ("one two", 20, Some(200)));
        reel.advance(1000, 1, &mut passed);
        assert_eq!((reel.at.offset, reel.screen.size().cols), (30, 30), "no more than the budget, but never nothing");
        reel.advance(1000, 1 << 20, &mut passed);
        assert_eq!((reel.screen.row_text(0).as_str(), reel.is_at_end(), reel.loaded_bytes()), ("one two three", true, 0));
        assert_eq!(passed, [Passed::Gap(7)]);
    }
}
