//! Appending: used by the holder alone. One write per frame; a frame that did not fit is taken back whole.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use shared::id::Offset;
use shared::screen::Size;

use super::{FORMAT, SEGMENT_BYTES, SegmentHeader, encode, kind, remove_segment, segment_bytes, segment_path};

pub struct Writer {
    dir: PathBuf,
    runtime: String,
    began_at: i64,
    max_bytes: u64,
    file: File,
    /// Starts of the segments on disk, the open one last.
    segments: VecDeque<Offset>,
    end: Offset,
    /// Reused for every frame, so that appending allocates nothing.
    scratch: Vec<u8>,
}

impl Writer {
    /// A new recording in an existing folder.
    pub fn create(dir: &Path, runtime: String, began_at: i64, size: Size, max_bytes: u64) -> io::Result<Self> {
        let file = create_segment(dir, 0)?;
        let mut writer =
            Self { dir: dir.to_owned(), runtime, began_at, max_bytes, file, segments: VecDeque::from([0]), end: 0, scratch: Vec::new() };
        if let Err(error) = writer.header(0, size) {
            // it is tried again when there is room
            let _ = std::fs::remove_file(segment_path(dir, 0));
            return Err(error);
        }
        Ok(writer)
    }

    /// Takes away everything so far and goes on in a new segment.
    pub fn forget(&mut self, time: u64, size: Size) -> io::Result<()> {
        self.next_segment(time, size)?;
        while self.segments.len() > 1 {
            if let Some(oldest) = self.segments.pop_front() {
                remove_segment(&self.dir, oldest);
            }
        }
        Ok(())
    }

    /// Where the next frame will begin.
    pub fn end(&self) -> Offset {
        self.end
    }

    /// Appends one frame, opening the next segment when this one is full.
    pub fn append(&mut self, kind: u8, time: u64, size: Size, body: &[u8]) -> io::Result<()> {
        if self.end - self.segment_start() >= SEGMENT_BYTES {
            self.next_segment(time, size)?;
        }
        self.write(kind, time, body)
    }

    fn segment_start(&self) -> Offset {
        self.segments.back().copied().unwrap_or(0)
    }

    fn next_segment(&mut self, time: u64, size: Size) -> io::Result<()> {
        let file = create_segment(&self.dir, self.end)?;
        let before = std::mem::replace(&mut self.file, file);
        self.segments.push_back(self.end);
        if let Err(error) = self.header(time, size) {
            // stay in the segment that works
            let _ = std::fs::remove_file(segment_path(&self.dir, self.end));
            self.segments.pop_back();
            self.file = before;
            return Err(error);
        }
        self.drop_oldest();
        Ok(())
    }

    /// Keeps to the limit by what is on the disk: segments that the daemon has packed take less.
    fn drop_oldest(&mut self) {
        let mut bytes = SEGMENT_BYTES + self.segments.iter().map(|start| segment_bytes(&self.dir, *start)).sum::<u64>();
        while bytes > self.max_bytes && self.segments.len() > 2 {
            if let Some(oldest) = self.segments.pop_front() {
                bytes -= segment_bytes(&self.dir, oldest);
                remove_segment(&self.dir, oldest);
            }
        }
    }

    fn header(&mut self, time: u64, size: Size) -> io::Result<()> {
        let header = SegmentHeader { format: FORMAT, runtime: self.runtime.clone(), began_at: self.began_at, size };
        let body = serde_json::to_vec(&header)?;
        self.write(kind::HEADER, time, &body)
    }

    fn write(&mut self, kind: u8, time: u64, body: &[u8]) -> io::Result<()> {
        self.scratch.clear();
        encode(kind, time, body, &mut self.scratch);
        let position = self.end - self.segment_start();
        if let Err(error) = self.file.write_all(&self.scratch) {
            // a part may have been written: without it the next frame starts where readers expect it
            let _ = self.file.set_len(position);
            return Err(error);
        }
        self.end += self.scratch.len() as u64;
        Ok(())
    }
}

fn create_segment(dir: &Path, start: Offset) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(segment_path(dir, start))
}
