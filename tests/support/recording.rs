//! Reads recordings on its own terms, from the format's description: a second opinion on what the product wrote.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Header,
    Output,
    Resize,
    Gap,
    Exit,
    Input,
    Marker,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: Kind,
    /// Microseconds since the recording began.
    pub time: u64,
    pub body: Vec<u8>,
}

/// Segment files, oldest first, plain or packed.
pub fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("the recording's folder")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rec" || extension == "recz"))
        .collect();
    files.sort();
    files
}

/// All whole frames; fails on a check that does not agree, on an unknown kind, or on a tail that is not whole.
pub fn frames(dir: &Path) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut seen: Option<std::ffi::OsString> = None;
    for file in segments(dir) {
        // both forms are there for a moment, and the plain one may go between the list and the reading
        let stem = file.file_stem().map(ToOwned::to_owned);
        if std::mem::replace(&mut seen, stem.clone()) == stem {
            continue;
        }
        let packed = file.with_extension("recz");
        let bytes = match std::fs::read(file.with_extension("rec")) {
            Ok(bytes) => bytes,
            Err(_) => zstd::stream::decode_all(std::fs::File::open(&packed).expect("a segment")).expect("a packed segment"),
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let frame = take(&mut rest).unwrap_or_else(|| panic!("{} has a frame that is not whole", file.display()));
            frames.push(frame);
        }
    }
    frames
}

/// The program's bytes, in order.
pub fn output(dir: &Path) -> Vec<u8> {
    frames(dir).into_iter().filter(|frame| frame.kind == Kind::Output).flat_map(|frame| frame.body).collect()
}

fn take(rest: &mut &[u8]) -> Option<Frame> {
    let (head, after) = rest.split_first_chunk::<5>()?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let payload = after.get(..length)?;
    let (time, checked) = payload.split_first_chunk::<8>()?;
    let (sum, body) = checked.split_first_chunk::<4>()?;
    let kind = match head[0] {
        1 => Kind::Header,
        2 => Kind::Output,
        3 => Kind::Resize,
        4 => Kind::Gap,
        5 => Kind::Exit,
        10 => Kind::Input,
        11 => Kind::Marker,
        other => panic!("a frame of unknown kind {other}"),
    };
    assert_eq!(crc32(&[&head[..1], time, body]), u32::from_le_bytes(*sum), "the check of a frame");
    *rest = &after[length..];
    Some(Frame { kind, time: u64::from_le_bytes(*time), body: body.to_vec() })
}

fn crc32(parts: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    let mut sum = u32::MAX;
    for byte in parts.iter().copied().flatten() {
        sum = TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8);
    }
    !sum
}
