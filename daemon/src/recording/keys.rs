//! Keyframes beside a recording: a screen at an offset, so that nobody has to read from the beginning.
//! Written by the daemon alone; losing them costs time, never truth.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use shared::id::Offset;
use shared::replay::Position;
use shared::screen::Keyframe;

use super::{NEVER_BLOCKS, decode, encode, is_segment, keys_path, kind, read_companion, segments};

/// Stores a screen as it is at `offset`.
pub fn append_keyframe(dir: &Path, offset: Offset, time: u64, keyframe: &Keyframe) -> io::Result<()> {
    let starts = segments(dir)?;
    let Some(start) = starts.iter().rev().find(|start| **start <= offset) else {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    };
    let mut body = offset.to_le_bytes().to_vec();
    body.extend_from_slice(&keyframe.to_bytes());
    if body.len() + super::STAMP > shared::frame::MAX_PAYLOAD {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    let mut bytes = Vec::with_capacity(body.len() + 32);
    encode(kind::KEYFRAME, time, &body, &mut bytes);
    let path = keys_path(dir, *start);
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(NEVER_BLOCKS).open(&path)?;
    let length = file.metadata()?.len();
    if let Err(error) = file.write_all(&bytes) {
        // a part of one would hide all that come after it
        let _ = file.set_len(length);
        return Err(error);
    }
    if !is_segment(dir, *start) {
        // dropped or forgotten meanwhile: nothing of it may stay
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// The last keyframe at or before `offset`.
pub fn last_keyframe(dir: &Path, offset: Offset) -> io::Result<Option<(Position, Keyframe)>> {
    let starts = segments(dir)?;
    for start in starts.iter().rev().filter(|start| **start <= offset) {
        let bytes = match read_companion(&keys_path(dir, *start)) {
            Ok(bytes) => bytes,
            // a cache: what cannot be read is made again
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &bytes[..];
        let mut best = None;
        while let Some(frame) = decode(rest) {
            rest = &rest[frame.size..];
            let Some((at, body)) = frame.body.split_first_chunk::<8>() else { continue };
            let at = Offset::from_le_bytes(*at);
            // not always in order: a screen that was looked at live may be stored before what is indexed later
            let is_nearer = best.is_none_or(|(known, _): (Position, _)| known.offset < at);
            if frame.kind == kind::KEYFRAME && at <= offset && is_nearer {
                best = Some((Position { offset: at, time: frame.time }, body));
            }
        }
        if !rest.is_empty() {
            // torn by a kill: it would hide all that come after it
            let _ = OpenOptions::new()
                .write(true)
                .open(keys_path(dir, *start))
                .and_then(|file| file.set_len((bytes.len() - rest.len()) as u64));
        }
        if let Some((at, body)) = best
            && let Some(keyframe) = Keyframe::from_bytes(body)
        {
            return Ok(Some((at, keyframe)));
        }
    }
    Ok(None)
}
