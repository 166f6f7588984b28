//! Recordings: the append-only truth of what a runtime said, with times, in segments that can be dropped from the front.
//! The holder appends, everyone else reads; nothing here parses terminal bytes.
//!
//! A segment `<start offset>.rec` is a row of frames (`shared::frame`). Each payload is a time, a check, and a body:
//! microseconds since the recording began (8 bytes), CRC-32 of kind, time and body (4), body. Every segment begins with a
//! header frame. Keyframes lie beside a segment in `<start offset>.keys`, in the same form.

mod append;
mod index;
mod keys;
mod read;
mod retain;
mod segment;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shared::exec::Stream;
use shared::frame;
use shared::id::{ExecId, Offset};
use shared::runtime::ExitStatus;
use shared::screen::Size;
use shared::stats::DiskUse;

pub use append::Writer;
pub use index::{FoundMark, Index, as_typed, has_index, position_at, store_index, told_command};
pub use keys::{append_keyframe, last_keyframe};
pub use read::{ReadError, Reader, Tail, tail};
pub use retain::{Kept, Limits, folders, keep_to};
pub use segment::pack;
pub use shared::runtime::Hole;

/// Raised when an older reader could misread a newer recording.
const FORMAT: u32 = 1;

/// A segment is closed above this: the unit of dropping old output.
pub const SEGMENT_BYTES: u64 = 16 << 20;

/// Beside an import that has not ended.
pub const UNFINISHED: &str = "unfinished";

/// Time and check before every body.
const STAMP: usize = 12;

/// Bytes a frame takes beyond its body.
pub const OVERHEAD: usize = frame::HEADER + STAMP;

pub mod kind {
    pub const HEADER: u8 = 1;
    pub const OUTPUT: u8 = 2;
    pub const RESIZE: u8 = 3;
    /// Output that was not recorded: how many bytes.
    pub const GAP: u8 = 4;
    pub const EXIT: u8 = 5;
    /// What an interpreter's code printed, apart.
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
    /// A call to an interpreter, before it is carried out.
    pub const CALL: u8 = 8;
    /// What came of it.
    pub const RESULT: u8 = 9;
    /// What was typed, of a session that records that.
    pub const INPUT: u8 = 10;
    /// A mark of an imported recording.
    pub const MARKER: u8 = 11;
    /// What earlier execs left running printed while another exec ran: no part of its output.
    pub const LATE_STDOUT: u8 = 12;
    pub const LATE_STDERR: u8 = 13;
    /// Kinds up to here are for segments, now and in later versions.
    pub const LAST: u8 = 15;
    /// Only in `.keys` files.
    pub const KEYFRAME: u8 = 16;
    /// Only in `.index` files.
    pub const POINTS: u8 = 17;
    pub const MARK: u8 = 18;
    pub const INDEXED: u8 = 19;
}

/// First frame of every segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentHeader {
    pub format: u32,
    pub runtime: String,
    /// Wall clock at time 0 of the recording, in microseconds since 1970.
    pub began_at: i64,
    pub size: Size,
    /// Its holder leaves a note when it drops old segments (`mark_dropped`).
    #[serde(default)]
    pub notes_drops: bool,
}

/// One frame of a recording, understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    Header(SegmentHeader),
    Output(&'a [u8]),
    Resize(Size),
    Gap(u64),
    Exit(ExitStatus),
    Stdout(&'a [u8]),
    Stderr(&'a [u8]),
    /// Output of earlier execs while another one runs.
    Late(Stream, &'a [u8]),
    Call(Call<'a>),
    Result(CallResult<'a>),
    Input(&'a [u8]),
    Marker(&'a [u8]),
    /// So many bytes that were recorded cannot be read: a file is missing, truncated or damaged. Made by the reader, never
    /// stored.
    Missing(u64),
    /// A later version's kind: passed over.
    Unknown,
}

/// A call, as recorded: id (16 bytes), whether the last output ended in the middle of a line (1), verb (1), code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call<'a> {
    pub id: ExecId,
    pub mid_line: bool,
    pub verb: u8,
    pub code: &'a [u8],
}

/// The end of a call: id (16), mid-line (1), microseconds it took (8), what the driver said of it (JSON).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallResult<'a> {
    pub id: ExecId,
    pub mid_line: bool,
    pub took: u64,
    pub said: &'a [u8],
}

impl<'a> Call<'a> {
    /// Bytes of its body.
    pub fn size(&self) -> usize {
        18 + self.code.len()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.id.bytes().to_vec();
        body.extend([u8::from(self.mid_line), self.verb]);
        body.extend_from_slice(self.code);
        body
    }

    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let (id, rest) = body.split_first_chunk::<16>()?;
        let ([mid_line, verb], code) = rest.split_first_chunk::<2>()?;
        Some(Self { id: ExecId::from_bytes(*id), mid_line: *mid_line != 0, verb: *verb, code })
    }
}

impl<'a> CallResult<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.id.bytes().to_vec();
        body.push(u8::from(self.mid_line));
        body.extend(self.took.to_le_bytes());
        body.extend_from_slice(self.said);
        body
    }

    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let (id, rest) = body.split_first_chunk::<16>()?;
        let ([mid_line], rest) = rest.split_first_chunk::<1>()?;
        let (took, said) = rest.split_first_chunk::<8>()?;
        Some(Self { id: ExecId::from_bytes(*id), mid_line: *mid_line != 0, took: u64::from_le_bytes(*took), said })
    }
}

pub fn encode_size(size: Size) -> [u8; 4] {
    let (cols, rows) = (size.cols.to_le_bytes(), size.rows.to_le_bytes());
    [cols[0], cols[1], rows[0], rows[1]]
}

pub fn decode_size(body: &[u8]) -> Option<Size> {
    let [a, b, c, d] = *body.first_chunk::<4>()?;
    Some(Size { cols: u16::from_le_bytes([a, b]), rows: u16::from_le_bytes([c, d]) })
}

pub fn encode_exit(status: ExitStatus) -> [u8; 5] {
    let (tag, number) = match status {
        ExitStatus::Code(code) => (0, code),
        ExitStatus::Signal(signal) => (1, signal),
    };
    let n = number.to_le_bytes();
    [tag, n[0], n[1], n[2], n[3]]
}

pub fn decode_exit(body: &[u8]) -> Option<ExitStatus> {
    let [tag, a, b, c, d] = *body.first_chunk::<5>()?;
    let number = i32::from_le_bytes([a, b, c, d]);
    Some(if tag == 0 { ExitStatus::Code(number) } else { ExitStatus::Signal(number) })
}

fn check(kind: u8, time: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&time.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// A whole frame with its stamp, appended to `out`.
fn encode(kind: u8, time: u64, body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&frame::header(kind, STAMP + body.len()));
    out.extend_from_slice(&time.to_le_bytes());
    out.extend_from_slice(&check(kind, time, body).to_le_bytes());
    out.extend_from_slice(body);
}

struct Stamped<'a> {
    kind: u8,
    time: u64,
    body: &'a [u8],
    size: usize,
}

/// The first frame of `bytes` if it is whole and its check agrees.
fn decode(bytes: &[u8]) -> Option<Stamped<'_>> {
    let frame = frame::decode(bytes).ok()??;
    let (stamp, body) = frame.payload.split_first_chunk::<STAMP>()?;
    let (time, sum) = stamp.split_first_chunk::<8>()?;
    let time = u64::from_le_bytes(*time);
    let sum = u32::from_le_bytes(*sum.first_chunk::<4>()?);
    (check(frame.kind, time, body) == sum).then_some(Stamped { kind: frame.kind, time, body, size: frame.size })
}

/// What a frame's body says.
pub fn understand(kind: u8, body: &[u8]) -> Record<'_> {
    match kind {
        kind::HEADER => serde_json::from_slice(body).map_or(Record::Unknown, Record::Header),
        kind::OUTPUT => Record::Output(body),
        kind::RESIZE => decode_size(body).map_or(Record::Unknown, Record::Resize),
        kind::GAP => body.first_chunk::<8>().map_or(Record::Unknown, |n| Record::Gap(u64::from_le_bytes(*n))),
        kind::EXIT => decode_exit(body).map_or(Record::Unknown, Record::Exit),
        kind::STDOUT => Record::Stdout(body),
        kind::LATE_STDOUT => Record::Late(Stream::Stdout, body),
        kind::LATE_STDERR => Record::Late(Stream::Stderr, body),
        kind::STDERR => Record::Stderr(body),
        kind::CALL => Call::decode(body).map_or(Record::Unknown, Record::Call),
        kind::RESULT => CallResult::decode(body).map_or(Record::Unknown, Record::Result),
        kind::INPUT => Record::Input(body),
        kind::MARKER => Record::Marker(body),
        _ => Record::Unknown,
    }
}

fn segment_path(dir: &Path, start: Offset) -> PathBuf {
    dir.join(format!("{start:016x}.rec"))
}

/// The same segment, packed.
fn packed_path(dir: &Path, start: Offset) -> PathBuf {
    dir.join(format!("{start:016x}.recz"))
}

/// Whether a segment begins here.
fn is_segment(dir: &Path, start: Offset) -> bool {
    segment_path(dir, start).exists() || packed_path(dir, start).exists()
}

fn keys_path(dir: &Path, start: Offset) -> PathBuf {
    dir.join(format!("{start:016x}.keys"))
}

fn index_path(dir: &Path, start: Offset) -> PathBuf {
    dir.join(format!("{start:016x}.index"))
}

/// Takes one segment away with everything that belongs to it; what is not there is no error.
fn remove_segment(dir: &Path, start: Offset) {
    for path in [segment_path(dir, start), packed_path(dir, start), keys_path(dir, start), index_path(dir, start)] {
        let _ = std::fs::remove_file(path);
    }
}

/// Start offsets of the segments that are there, oldest first.
pub fn segments(dir: &Path) -> io::Result<Vec<Offset>> {
    let mut starts: Vec<Offset> = std::fs::read_dir(dir)?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name();
            let (start, kind) = name.to_str()?.split_once('.')?;
            matches!(kind, "rec" | "recz").then(|| u64::from_str_radix(start, 16).ok()).flatten()
        })
        .collect();
    starts.sort_unstable();
    // both forms of one that is just being packed
    starts.dedup();
    Ok(starts)
}

/// Where a recording that is being written ends about now; a frame may be half-written there.
pub fn open_end(dir: &Path) -> Option<Offset> {
    let last = segments(dir).ok()?.into_iter().next_back()?;
    Some(last + std::fs::metadata(segment_path(dir, last)).ok()?.len())
}

/// Where a recording ends that nobody appends to any more, as far as its files say.
pub fn end(dir: &Path) -> Option<Offset> {
    let last = segments(dir).ok()?.into_iter().next_back()?;
    Some(last + segment::Segment::open(dir, last).and_then(|segment| segment.length()).ok()?)
}

/// Removes what belongs to no segment: our own unfinished files, and keyframes and indexes whose segment is gone. Never a
/// segment: retention, `forget` and `rm` alone remove recorded bytes. Call it only while nothing is written beside the
/// recording (`Upkeep::quiet`), or unfinished files of the present would go.
pub fn sweep(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let Some((start, kind)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
        let Ok(start) = Offset::from_str_radix(start, 16) else { continue };
        let is_stray = match kind {
            "recz-new" | "index-new" => true,
            // asked of the file itself: a listing is old by the time it is compared
            "keys" | "index" => !is_segment(dir, start),
            _ => false,
        };
        if is_stray {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Held while segments of a recording are removed or replaced, by the holder (`drop_oldest`, `forget`) and by the daemon
/// (packing, retention). Waits for the other one, which is never long: no data is read or written under it.
fn lock_removal(dir: &Path) -> io::Result<File> {
    let file = File::open(dir)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

/// As `lock_removal`, but `None` at once if the lock is taken: the holder must not wait.
fn try_lock_removal(dir: &Path) -> Option<File> {
    let file = File::open(dir).ok()?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Flags for opening files of a recording: a FIFO in the place of one would block whoever opens it, and a link leads elsewhere.
const NEVER_BLOCKS: i32 = (rustix::fs::OFlags::NONBLOCK.bits() | rustix::fs::OFlags::NOFOLLOW.bits()) as i32;

/// Opens a file of a recording to read it. Anything but a regular file is damage; a FIFO would otherwise block its opener.
fn open_regular(path: &Path) -> io::Result<File> {
    let file = match File::options().read(true).custom_flags(NEVER_BLOCKS).open(path) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => return Err(not_regular()),
        other => other?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a segment is not a regular file")
}

/// Everything in a file beside a segment (keyframes, index).
fn read_companion(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Parts of a recording that its own files show to be missing: between two segments, and before `end` if that is known.
/// Reads no frames; damage inside of a segment is found by reading it.
pub fn holes(dir: &Path, end: Option<Offset>) -> Vec<Hole> {
    let starts = segments(dir).unwrap_or_default();
    let mut holes = Vec::new();
    let dropped = dropped(dir);
    if let Some(first) = starts.first().copied() {
        // holders from before the note dropped segments without leaving one
        let expected = if dropped > 0 || header(dir).is_some_and(|header| header.notes_drops) { dropped } else { first };
        if expected < first {
            holes.push(Hole { offset: expected, bytes: first - expected });
        }
    } else if let Some(end) = end.filter(|end| *end > dropped) {
        holes.push(Hole { offset: dropped, bytes: end - dropped });
    }
    for (n, start) in starts.iter().copied().enumerate() {
        let Some(expected) = starts.get(n + 1).copied().or(end) else { break };
        let length = segment::Segment::open(dir, start).and_then(|segment| segment.length());
        let found = match length {
            Ok(length) => start + length,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => start,
            // dropped since it was listed, or out of reach for the moment
            Err(_) => continue,
        };
        if found < expected {
            holes.push(Hole { offset: found, bytes: expected - found });
        }
    }
    holes
}

/// In a recording's directory: the offset before which retention or `forget` removed everything.
const DROPPED: &str = "dropped";

/// Notes that everything before `offset` is removed on purpose. Called before the removal: a kill in between leaves more than
/// the note says, never less.
pub fn mark_dropped(dir: &Path, offset: Offset) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(DROPPED);
    let unfinished = path.with_extension("new");
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?
        .write_all(format!("{offset:016x}").as_bytes())?;
    std::fs::rename(unfinished, path)
}

fn dropped(dir: &Path) -> Offset {
    let note = read_companion(&dir.join(DROPPED)).unwrap_or_default();
    std::str::from_utf8(&note).ok().and_then(|hex| Offset::from_str_radix(hex, 16).ok()).unwrap_or(0)
}

/// Takes a whole recording away; one that is not there is no error.
pub fn remove(dir: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match std::fs::remove_dir_all(dir) {
            // a keyframe was stored meanwhile
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && tries < 5 => tries += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
}

/// What a segment takes on disk, without what belongs to it.
pub fn segment_bytes(dir: &Path, start: Offset) -> u64 {
    let length = |path: PathBuf| std::fs::metadata(path).map(|meta| meta.len());
    length(segment_path(dir, start)).or_else(|_| length(packed_path(dir, start))).unwrap_or(0)
}

/// Bytes on disk, keyframes included.
pub fn disk_bytes(dir: &Path) -> u64 {
    std::fs::read_dir(dir)
        .map_or(0, |entries| entries.filter_map(Result::ok).filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum())
}

/// The same, by what it is for.
pub fn disk_use(dir: &Path) -> DiskUse {
    let mut disk = DiskUse::default();
    let Ok(entries) = std::fs::read_dir(dir) else { return disk };
    for entry in entries.filter_map(Result::ok) {
        let (Ok(meta), name) = (entry.metadata(), entry.file_name()) else { continue };
        disk.bytes += meta.len();
        match name.to_str().and_then(|name| name.rsplit_once('.')).map(|(_, kind)| kind) {
            Some("rec") => disk.plain += meta.len(),
            Some("recz") => disk.packed += meta.len(),
            _ => disk.index += meta.len(),
        }
    }
    disk
}

/// The first header that is there: when it began, and whose it is.
pub fn header(dir: &Path) -> Option<SegmentHeader> {
    let first = segments(dir).ok()?.into_iter().next()?;
    let mut header = None;
    let _ = Reader::new(dir, first).read(Offset::MAX, 1 << 10, |_, _, record| {
        if let Record::Header(found) = record {
            header.get_or_insert(found);
        }
    });
    header
}

/// When output was last appended, as the file system has it.
pub fn last_written(dir: &Path) -> Option<jiff::Timestamp> {
    let last = segments(dir).ok()?.into_iter().next_back()?;
    let meta = std::fs::metadata(segment_path(dir, last)).or_else(|_| std::fs::metadata(packed_path(dir, last)));
    let modified = meta.ok()?.modified().ok()?;
    jiff::Timestamp::try_from(modified).ok()
}
