//! Frames: a kind, a length, a payload. The client socket, the holder link and the recording all use them.
//! Works on byte slices only; what a kind means is said where it is used.

/// Kind and length before every payload.
pub const HEADER: usize = 5;

/// No frame is longer: a length above it is garbage, and is refused before anything is allocated.
pub const MAX_PAYLOAD: usize = 1 << 20;

/// The header of a frame with this payload length.
pub fn header(kind: u8, payload: usize) -> [u8; HEADER] {
    let length = u32::try_from(payload).unwrap_or(u32::MAX).to_le_bytes();
    [kind, length[0], length[1], length[2], length[3]]
}

pub fn encode(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header(kind, payload.len()));
    out.extend_from_slice(payload);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: u8,
    pub payload: &'a [u8],
    /// Bytes of header and payload together.
    pub size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes is longer than {MAX_PAYLOAD}")]
pub struct TooLong {
    pub length: usize,
}

/// The first frame of `bytes`, or `None` while it is not complete.
pub fn decode(bytes: &[u8]) -> Result<Option<Frame<'_>>, TooLong> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > MAX_PAYLOAD {
        return Err(TooLong { length });
    }
    Ok(rest.get(..length).map(|payload| Frame { kind: head[0], payload, size: HEADER + length }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_round_trip_at_every_cut(frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..8)) {
            let mut bytes = Vec::new();
            for (kind, payload) in &frames {
                encode(*kind, payload, &mut bytes);
            }
            for cut in 0..=bytes.len() {
                let mut rest = &bytes[..cut];
                let mut seen = 0;
                while let Some(frame) = decode(rest).expect("all are short") {
                    prop_assert_eq!(frame.kind, frames[seen].0);
                    prop_assert_eq!(frame.payload, &frames[seen].1[..]);
                    rest = &rest[frame.size..];
                    seen += 1;
                }
                if cut == bytes.len() {
                    prop_assert_eq!(seen, frames.len());
                }
            }
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn giant_lengths_are_refused() {
        assert_eq!(decode(&[1, 0, 0, 0x10, 0]), Ok(None));
        assert!(decode(&[1, 1, 0, 0x10, 0]).is_err());
        assert!(decode(&[1, 0xff, 0xff, 0xff, 0xff]).is_err());
    }
}
