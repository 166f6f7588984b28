//! Appending: used by the holder alone. One write per frame; a frame that did not fit is taken back whole.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use shared::id::Offset;
use shared::screen::Size;

use super::{
    FORMAT, SEGMENT_BYTES, SegmentHeader, encode, kind, mark_dropped, remove_segment, segment_bytes, segment_path, try_lock_removal,
};

pub struct Writer {
    dir: PathBuf,
    runtime: String,
    began_at: i64,
    max_bytes: u64,
    /// A segment is closed above this.
    segment_bytes: u64,
    file: File,
    /// Of `file`: tells whether the open segment is still the one that has its name.
    inode: u64,
    /// Starts of the segments on disk, the open one last.
    segments: VecDeque<Offset>,
    end: Offset,
    /// Reused for every frame, so that appending allocates nothing.
    scratch: Vec<u8>,
}

impl Writer {
    /// A new recording.
    pub fn create(dir: &Path, runtime: String, began_at: i64, size: Size, max_bytes: u64) -> io::Result<Self> {
        let (file, inode) = create_segment(dir, 0)?;
        let segments = VecDeque::from([0]);
        let mut writer = Self {
            dir: dir.to_owned(),
            runtime,
            began_at,
            max_bytes,
            segment_bytes: SEGMENT_BYTES,
            file,
            inode,
            segments,
            end: 0,
            scratch: Vec::new(),
        };
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
        mark_dropped(&self.dir, self.segment_start())?;
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

    /// Appends one frame, opening the next segment when this one is full or no longer where readers look for it.
    pub fn append(&mut self, kind: u8, time: u64, size: Size, body: &[u8]) -> io::Result<()> {
        if self.end - self.segment_start() >= self.segment_bytes || !self.is_in_place() {
            self.next_segment(time, size)?;
        }
        self.write(kind, time, body)
    }

    /// Whether the open segment still has its name. If the file or the directory was removed, renamed or replaced, what is
    /// appended would be lost without an error.
    fn is_in_place(&self) -> bool {
        match std::fs::symlink_metadata(segment_path(&self.dir, self.segment_start())) {
            Ok(meta) => meta.ino() == self.inode,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn segment_start(&self) -> Offset {
        self.segments.back().copied().unwrap_or(0)
    }

    fn next_segment(&mut self, time: u64, size: Size) -> io::Result<()> {
        let (file, inode) = create_segment(&self.dir, self.end)?;
        let before = (std::mem::replace(&mut self.file, file), std::mem::replace(&mut self.inode, inode));
        self.segments.push_back(self.end);
        if let Err(error) = self.header(time, size) {
            // stay in the segment that works
            let _ = std::fs::remove_file(segment_path(&self.dir, self.end));
            self.segments.pop_back();
            (self.file, self.inode) = before;
            return Err(error);
        }
        self.drop_oldest();
        Ok(())
    }

    /// Keeps to the limit by what is on the disk: segments that the daemon has packed take less.
    fn drop_oldest(&mut self) {
        // The daemon may be replacing a segment by its packed form: then the oldest goes when the next segment is opened.
        let Some(_removal) = try_lock_removal(&self.dir) else { return };
        let mut bytes = self.segment_bytes + self.segments.iter().map(|start| segment_bytes(&self.dir, *start)).sum::<u64>();
        while bytes > self.max_bytes && self.segments.len() > 2 {
            // without the note it would look like a loss
            if mark_dropped(&self.dir, self.segments[1]).is_err() {
                return;
            }
            if let Some(oldest) = self.segments.pop_front() {
                bytes -= segment_bytes(&self.dir, oldest);
                remove_segment(&self.dir, oldest);
            }
        }
    }

    fn header(&mut self, time: u64, size: Size) -> io::Result<()> {
        let header = SegmentHeader { format: FORMAT, runtime: self.runtime.clone(), began_at: self.began_at, size, notes_drops: true };
        let body = serde_json::to_vec(&header)?;
        self.write(kind::HEADER, time, &body)
    }

    fn write(&mut self, kind: u8, time: u64, body: &[u8]) -> io::Result<()> {
        self.scratch.clear();
        encode(kind, time, body, &mut self.scratch);
        let position = self.end - self.segment_start();
        // At its position, not at the end of the file: if the file was truncated, what comes now is still where readers expect it.
        if let Err(error) = self.file.write_all_at(&self.scratch, position) {
            // a part may have been written: without it the next frame starts where readers expect it
            let _ = self.file.set_len(position);
            return Err(error);
        }
        self.end += self.scratch.len() as u64;
        Ok(())
    }
}

/// A new, empty segment and its inode. The directory is created if it is not there: it could not be made when the runtime
/// was started, or was removed since.
fn create_segment(dir: &Path, start: Offset) -> io::Result<(File, u64)> {
    let create = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(segment_path(dir, start));
    let file = match create() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            create()?
        }
        other => other?,
    };
    let inode = file.metadata()?.ino();
    Ok((file, inode))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, SystemTime};

    use super::super::{Limits, Reader, Record, holes, keep_to, pack, segments, store_index, sweep, tail};
    use super::*;
    use shared::id::RuntimeId;

    const SIZE: Size = Size { cols: 80, rows: 24 };

    fn printed(dir: &Path, until: Offset) -> (Vec<u8>, u64) {
        let mut reader = Reader::new(dir, 0);
        let (mut bytes, mut missing) = (Vec::new(), 0);
        while reader
            .read(until, 100_000, |_, _, record| match record {
                Record::Output(body) => bytes.extend_from_slice(body),
                Record::Missing(lost) => missing += lost,
                _ => {}
            })
            .expect("reads")
        {}
        (bytes, missing)
    }

    fn chunk(n: u64) -> Vec<u8> {
        (0..(n * 7919 % 9000)).map(|i| (i * n % 251) as u8).collect()
    }

    /// Promise 1: what is appended is read back, whatever is done beside it. Rounds by `SESSIONS_STRESS_ROUNDS`.
    #[test]
    fn upkeep_retention_and_readers_beside_a_flood_lose_nothing() {
        let rounds: usize = std::env::var("SESSIONS_STRESS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
        for round in 0..rounds {
            let folder = tempfile::tempdir().expect("a directory");
            let id = RuntimeId::new();
            let dir = folder.path().join(id.compact());
            let mut writer = Writer::create(&dir, id.to_string(), 0, SIZE, u64::MAX).expect("creates");
            writer.segment_bytes = 64 << 10;
            // a directory with many entries takes long to list
            for n in 0..2000 {
                std::fs::write(dir.join(format!("other-{n}")), b"").expect("writes");
            }
            let is_over = AtomicBool::new(false);
            let mut expected = Vec::new();
            std::thread::scope(|scope| {
                let upkeep = || {
                    while !is_over.load(Ordering::Relaxed) {
                        sweep(&dir);
                        let starts = segments(&dir).expect("lists");
                        for pair in starts.windows(2) {
                            store_index(&dir, pair[0], pair[1]).expect("indexes");
                            pack(&dir, pair[0], &|| false).expect("packs");
                        }
                    }
                };
                let retention = || {
                    while !is_over.load(Ordering::Relaxed) {
                        let limits = Limits {
                            total: Some(u64::MAX),
                            each: u64::MAX,
                            written_before: Some(SystemTime::now() - Duration::from_hours(1)),
                        };
                        assert_eq!(keep_to(folder.path(), &limits, &HashSet::new()).dropped, 0);
                    }
                };
                let follower = || {
                    let mut reader = Reader::new(&dir, 0);
                    let mut seen = Vec::new();
                    loop {
                        let was_over = is_over.load(Ordering::Relaxed);
                        while reader
                            .read(Offset::MAX, 64 << 10, |_, _, record| match record {
                                Record::Output(body) => seen.extend_from_slice(body),
                                Record::Missing(bytes) => panic!("{bytes} bytes are missing"),
                                _ => {}
                            })
                            .expect("reads")
                        {}
                        if was_over {
                            return seen;
                        }
                    }
                };
                scope.spawn(upkeep);
                scope.spawn(retention);
                let following = scope.spawn(follower);
                for n in 0..2000u64 {
                    let body = chunk(n + round as u64);
                    writer.append(kind::OUTPUT, n, SIZE, &body).expect("appends");
                    expected.extend(body);
                }
                is_over.store(true, Ordering::Relaxed);
                assert!(following.join().expect("follows") == expected, "round {round}: the follower saw something else");
            });
            let (bytes, missing) = printed(&dir, writer.end());
            assert_eq!(missing, 0);
            assert!(bytes == expected, "round {round}: what is read back is not what was appended");
            assert_eq!(tail(&dir).expect("has a tail").end, writer.end());
            assert_eq!(holes(&dir, Some(writer.end())), []);
        }
    }

    /// The open segment is truncated, overwritten, removed or replaced, or the whole directory is: what comes afterwards is
    /// seen, and what is lost is reported.
    #[test]
    fn what_is_appended_after_damage_is_always_seen() {
        type Harm = fn(&Path);
        let open = |dir: &Path| segment_path(dir, *segments(dir).expect("lists").last().expect("one"));
        let harms: [(&str, Harm); 6] = [
            ("truncate", |path| File::options().write(true).open(path).expect("opens").set_len(100).expect("cuts")),
            ("empty", |path| File::options().write(true).open(path).expect("opens").set_len(0).expect("cuts")),
            ("overwrite", |path| {
                let length = std::fs::metadata(path).expect("is there").len() as usize;
                File::options()
                    .write(true)
                    .open(path)
                    .expect("opens")
                    .write_all_at(&vec![0xff; length / 2], length as u64 / 3)
                    .expect("writes");
            }),
            ("remove", |path| std::fs::remove_file(path).expect("removes")),
            ("remove the directory", |path| std::fs::remove_dir_all(path.parent().expect("has one")).expect("removes")),
            ("rename the directory", |path| {
                let dir = path.parent().expect("has one");
                std::fs::rename(dir, dir.with_extension("away")).expect("renames");
            }),
        ];
        for (name, harm) in harms {
            let folder = tempfile::tempdir().expect("a directory");
            let dir = folder.path().join("recording");
            let mut writer = Writer::create(&dir, "r".into(), 0, SIZE, u64::MAX).expect("creates");
            for n in 0..50 {
                writer.append(kind::OUTPUT, n, SIZE, format!("before {n};").as_bytes()).expect("appends");
            }
            harm(&open(&dir));
            let mut after = String::new();
            for n in 50..100 {
                let text = format!("after {n};");
                writer.append(kind::OUTPUT, n, SIZE, text.as_bytes()).expect("appends");
                after += &text;
            }
            let mut reader = Reader::new(&dir, 0);
            let (mut seen, mut missing) = (String::new(), 0);
            loop {
                match reader.read(writer.end(), 1000, |_, _, record| match record {
                    Record::Output(body) => seen += &String::from_utf8_lossy(body),
                    Record::Missing(bytes) => missing += bytes,
                    _ => {}
                }) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(super::super::ReadError::Dropped { first }) => {
                        missing += first - reader.offset();
                        reader.seek(first);
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            assert!(seen.ends_with(&after), "{name}: {seen}");
            assert!(missing > 0, "{name}: nothing is reported");
            let again = holes(&dir, Some(writer.end()));
            assert!(!again.is_empty() || matches!(name, "truncate" | "empty" | "overwrite"), "{name}: {again:?}");
        }
    }

    /// Every byte of a closed segment, plain and packed, is flipped in turn: all other frames are read, and the loss is reported.
    #[test]
    fn one_damaged_byte_costs_one_frame_or_one_block() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::create(dir.path(), "r".into(), 0, SIZE, u64::MAX).expect("creates");
        writer.segment_bytes = 2000;
        let mut bodies: Vec<Vec<u8>> = Vec::new();
        for n in 0..60u8 {
            bodies.push(vec![b'a' + n % 26; 100]);
            writer.append(kind::OUTPUT, u64::from(n), SIZE, &bodies[usize::from(n)]).expect("appends");
        }
        let path = segment_path(dir.path(), segments(dir.path()).expect("lists")[1]);
        let whole = std::fs::read(&path).expect("reads");
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x41;
            std::fs::write(&path, &bad).expect("writes");
            let (seen, missing) = printed(dir.path(), writer.end());
            let frames = seen.len() / 100;
            assert!(frames >= bodies.len() - 1, "byte {at}: {frames} frames are left");
            assert!(missing > 0, "byte {at}");
        }
    }
}
