//! Commands of shells that are typed into, from their marks (OSC 133): where each begins and ends in the recording, its text and
//! how it ended. The recording is the truth: what was heard while no daemon was there is read from it, by the same rules.

use std::path::Path;

use shared::event::Author;
use shared::id::Offset;
use shared::screen::{Event, Located, Scanner};

use crate::recording::{self, OVERHEAD, Reader, Record, as_typed, told_command};

/// Of a command as it was typed, before it is made a text.
const MAX_TYPED: usize = 16 << 10;

/// Of its text.
const MAX_TEXT: usize = 8 << 10;

/// Read from a recording at a time; between two, others get their turn.
const SLICE: usize = 256 << 10;

/// A frame of the recording in bytes that are looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where its first byte is among them.
    pub at: usize,
    pub start: Offset,
    pub end: Offset,
    /// Microseconds since the recording began.
    pub time: u64,
}

/// A command that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its place in the recording, exact to the byte.
    pub mark: u64,
    pub offset: Offset,
    pub time: u64,
    pub text: String,
    pub cwd: Option<String>,
    pub author: Option<Author>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Began(Begun),
    Ended { begun: Begun, offset: Offset, time: u64, exit_code: Option<i32> },
}

/// Up to where marks have been heard: the frame, and the place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub from: Offset,
    pub mark: u64,
}

/// Follows the marks of one shell.
#[derive(Default)]
pub struct Tracker {
    /// What the terminal showed since a prompt ended: the command that is being typed.
    typed: Option<Vec<u8>>,
    running: Option<Begun>,
    heard: Heard,
}

impl Tracker {
    /// Goes on where an earlier one was.
    pub fn resume(heard: Heard, running: Option<Begun>) -> Self {
        Self { typed: None, running, heard }
    }

    pub fn heard(&self) -> Heard {
        self.heard
    }

    pub fn running(&self) -> Option<&Begun> {
        self.running.as_ref()
    }

    /// Whether nothing would be lost by going on from here without what came before.
    pub fn is_between(&self) -> bool {
        self.typed.is_none()
    }

    /// Nothing before this matters any more.
    pub fn pass(&mut self, to: Offset) {
        self.heard = Heard { from: to, mark: to.max(self.heard.mark) };
    }

    pub fn feed(&mut self, bytes: &[u8], events: &[Located], frames: &[Frame], cwd: Option<&str>, author: Option<Author>) -> Vec<Told> {
        let mut told = Vec::new();
        let mut seen = 0;
        let mut moved = None;
        for Located { start, end, event } in events {
            if let Event::Cwd(folder) = event {
                moved = Some(folder.as_str());
            }
            let Event::Prompt { mark, rest } = event else { continue };
            let Some(frame) = frames.iter().rev().find(|frame| frame.at < (*end).max(1)) else { continue };
            let place = frame.start + (OVERHEAD + end - frame.at) as u64;
            let before = usize::try_from(*start).unwrap_or(0).max(seen).min(bytes.len());
            self.type_in(&bytes[seen..before]);
            seen = (*end).min(bytes.len());
            if place <= self.heard.mark {
                continue;
            }
            self.heard = Heard { from: frame.start, mark: place };
            match mark {
                'A' => told.extend(self.end(frame, None)),
                'B' => self.typed = Some(Vec::new()),
                'C' => {
                    told.extend(self.end(frame, None));
                    let typed = self.typed.take().unwrap_or_default();
                    let text = told_command(rest).unwrap_or_else(|| as_typed(&typed));
                    let begun = Begun {
                        mark: place,
                        offset: frame.end,
                        time: frame.time,
                        text: clean(&text),
                        cwd: moved.or(cwd).map(str::to_owned),
                        author,
                    };
                    self.running = Some(begun.clone());
                    told.push(Told::Began(begun));
                }
                'D' => {
                    let exit_code = rest.trim_start_matches(';').split(';').next().and_then(|code| code.parse().ok());
                    told.extend(self.end(frame, exit_code));
                }
                _ => {}
            }
        }
        self.type_in(&bytes[seen..]);
        told
    }

    fn end(&mut self, frame: &Frame, exit_code: Option<i32>) -> Option<Told> {
        self.running.take().map(|begun| Told::Ended { begun, offset: frame.end, time: frame.time, exit_code })
    }

    fn type_in(&mut self, bytes: &[u8]) {
        if let Some(typed) = &mut self.typed {
            let room = MAX_TYPED.saturating_sub(typed.len());
            typed.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// Lines stay lines; what could act on a terminal does not.
fn clean(text: &str) -> String {
    let mut clean = text.trim().lines().map(|line| shared::text::visible(line.trim_end())).collect::<Vec<_>>().join("\n");
    let mut end = clean.len().min(MAX_TEXT);
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    clean.truncate(end);
    clean
}

/// Reads on in a recording: gives what a tracker hears up to `until`, a slice at a time. What cannot be read any more says nothing.
pub async fn read_on(dir: &Path, tracker: &mut Tracker, until: Offset, mut tell: impl FnMut(Vec<Told>, Heard)) {
    let first = recording::segments(dir).ok().and_then(|starts| starts.first().copied()).unwrap_or(0);
    let mut reader = Reader::new(dir, tracker.heard().from.max(first));
    let (mut scanner, mut events) = (Scanner::new(), Vec::new());
    let mut cwd: Option<String> = None;
    loop {
        let mut told = Vec::new();
        let read = reader.read(until, SLICE, |end, time, record| {
            if let Record::Output(bytes) = record {
                events.clear();
                scanner.feed(bytes, &mut events);
                let frame = Frame { at: 0, start: end - (bytes.len() + OVERHEAD) as u64, end, time };
                told.extend(tracker.feed(bytes, &events, &[frame], cwd.as_deref(), None));
                for located in &events {
                    if let Event::Cwd(folder) = &located.event {
                        cwd = Some(folder.clone());
                    }
                }
            }
        });
        if !told.is_empty() {
            tell(told, tracker.heard());
        }
        if !matches!(read, Ok(true)) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of these texts, one after the other, from an offset on; scanned as one piece.
    fn heard(tracker: &mut Tracker, scanner: &mut Scanner, from: Offset, texts: &[&str]) -> (Vec<String>, Offset) {
        let (mut bytes, mut frames, mut offset) = (Vec::new(), Vec::new(), from);
        for (time, text) in (1..).zip(texts) {
            let end = offset + (text.len() + OVERHEAD) as u64;
            frames.push(Frame { at: bytes.len(), start: offset, end, time });
            bytes.extend_from_slice(text.as_bytes());
            offset = end;
        }
        let mut events = Vec::new();
        scanner.feed(&bytes, &mut events);
        let told = tracker.feed(&bytes, &events, &frames, Some("/w"), Some(Author::Human)).into_iter().map(|told| match told {
            Told::Began(begun) => format!("+{} {}", begun.time, begun.text),
            Told::Ended { begun, time, exit_code, .. } => format!("-{time} {} {exit_code:?}", begun.text),
        });
        (told.collect(), offset)
    }

    #[test]
    fn marks_become_commands() {
        for (texts, expected) in [
            (vec!["\x1b]133;A\x07$ \x1b]133;B\x07", "ls\r\n\x1b]133;C\x07", "out", "\x1b]133;D;2\x07"], vec!["+2 ls", "-4 ls Some(2)"]),
            (vec!["\x1b]133;C;cmdline_url=a%20b\x07", "\x1b]133;D\x07"], vec!["+1 a b", "-2 a b None"]),
            // all in one read
            (
                vec!["\x1b]133;C;cmdline_url=a\x07\x1b]133;D;0\x07\x1b]133;C;cmdline_url=b\x07\x1b]133;D;1\x07"],
                vec!["+1 a", "-1 a Some(0)", "+1 b", "-1 b Some(1)"],
            ),
            // a mark in two frames
            (vec!["\x1b]133;C;cmdline_", "url=ab\x07", "\x1b]133;D;0\x07"], vec!["+2 ab", "-3 ab Some(0)"]),
            // no end was told
            (vec!["\x1b]133;C;cmdline_url=a\x07", "\x1b]133;A\x07"], vec!["+1 a", "-2 a None"]),
            (vec!["\x1b]133;A\x07\x1b]133;B\x07\x1b]133;A\x07"], vec![]),
            (vec!["no marks"], vec![]),
        ] {
            let (told, _) = heard(&mut Tracker::default(), &mut Scanner::new(), 100, &texts);
            assert_eq!(told, expected, "{texts:?}");
        }
    }

    #[test]
    fn what_was_heard_is_not_heard_again() {
        let (mut tracker, mut scanner) = (Tracker::default(), Scanner::new());
        let one = "\x1b]133;C;cmdline_url=a\x07\x1b]133;D;0\x07\x1b]133;A\x07\x1b]133;B\x07";
        let two = "\x1b]133;C;cmdline_url=b\x07";
        let (told, _) = heard(&mut tracker, &mut scanner, 0, &[one, two]);
        assert_eq!(told.len(), 3);
        let mut again = Tracker::resume(tracker.heard(), tracker.running().cloned());
        let (told, end) = heard(&mut again, &mut Scanner::new(), 0, &[one, two]);
        assert_eq!(told, Vec::<String>::new());
        let (told, _) = heard(&mut again, &mut Scanner::new(), end, &["\x1b]133;D;7\x07"]);
        assert_eq!(told, ["-1 b Some(7)"]);
    }
}
