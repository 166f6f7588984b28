//! Recordings: the append-only truth of what a runtime said, with times, in segments that can be dropped from the front.
//! The holder appends, everyone else reads; nothing here parses terminal bytes.
//!
//! A segment `<start offset>.rec` is a row of frames (`shared::frame`). Each payload is a time, a check, and a body:
//! microseconds since the recording began (8 bytes), CRC-32 of kind, time and body (4), body. Every segment begins with a
//! header frame. Keyframes lie beside a segment in `<start offset>.keys`, in the same form.

mod append;
mod keys;
mod read;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shared::frame;
use shared::id::Offset;
use shared::runtime::ExitStatus;
use shared::screen::Size;

pub use append::Writer;
pub use keys::{append_keyframe, last_keyframe};
pub use read::{ReadError, Reader, cut_torn_tail, tail};

/// Raised when an older reader could misread a newer recording.
const FORMAT: u32 = 1;

/// A segment is closed above this: the unit of dropping old output.
pub const SEGMENT_BYTES: u64 = 16 << 20;

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
    /// Only in `.keys` files.
    pub const KEYFRAME: u8 = 16;
}

/// First frame of every segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentHeader {
    pub format: u32,
    pub runtime: String,
    /// Wall clock at time 0 of the recording, in microseconds since 1970.
    pub began_at: i64,
    pub size: Size,
}

/// One frame of a recording, understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    Header(SegmentHeader),
    Output(&'a [u8]),
    Resize(Size),
    Gap(u64),
    Exit(ExitStatus),
    /// A later version's kind: passed over.
    Unknown,
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

fn understand(kind: u8, body: &[u8]) -> Record<'_> {
    match kind {
        kind::HEADER => serde_json::from_slice(body).map_or(Record::Unknown, Record::Header),
        kind::OUTPUT => Record::Output(body),
        kind::RESIZE => decode_size(body).map_or(Record::Unknown, Record::Resize),
        kind::GAP => body.first_chunk::<8>().map_or(Record::Unknown, |n| Record::Gap(u64::from_le_bytes(*n))),
        kind::EXIT => decode_exit(body).map_or(Record::Unknown, Record::Exit),
        _ => Record::Unknown,
    }
}

fn segment_path(dir: &Path, start: Offset) -> PathBuf {
    dir.join(format!("{start:016x}.rec"))
}

fn keys_path(dir: &Path, start: Offset) -> PathBuf {
    dir.join(format!("{start:016x}.keys"))
}

/// Start offsets of the segments that are there, oldest first.
pub fn segments(dir: &Path) -> std::io::Result<Vec<Offset>> {
    let mut starts: Vec<Offset> = std::fs::read_dir(dir)?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name();
            u64::from_str_radix(name.to_str()?.strip_suffix(".rec")?, 16).ok()
        })
        .collect();
    starts.sort_unstable();
    Ok(starts)
}

/// Bytes on disk, keyframes included.
pub fn disk_bytes(dir: &Path) -> u64 {
    std::fs::read_dir(dir)
        .map_or(0, |entries| entries.filter_map(Result::ok).filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum())
}

/// When output was last appended, as the file system has it.
pub fn last_written(dir: &Path) -> Option<jiff::Timestamp> {
    let last = segments(dir).ok()?.into_iter().next_back()?;
    let modified = std::fs::metadata(dir.join(format!("{last:016x}.rec"))).ok()?.modified().ok()?;
    jiff::Timestamp::try_from(modified).ok()
}
