//! Finding where text, sequences and strings end, on plain slices and fast.
//! Stateless: what is not complete here is left to the tokenizer.

use super::token::{BEL, Csi, ESC, SEQUENCE_CAP, STRING_CAP};
use memchr::{memchr, memchr3};

/// Where a string stops: its terminator, the ESC of one, or an abort.
pub fn string_end(bytes: &[u8], osc: bool) -> Option<usize> {
    let end = memchr3(ESC, 0x18, 0x1a, bytes);
    if osc { memchr(BEL, &bytes[..end.unwrap_or(bytes.len())]).or(end) } else { end }
}

/// A complete, ordinary control sequence at the start of `bytes`, and its length.
#[inline]
pub fn whole_csi(bytes: &[u8]) -> Option<(Csi<'_>, usize)> {
    let [_, b'[', body @ ..] = bytes else {
        return None;
    };
    let body = &body[..body.len().min(SEQUENCE_CAP - 3)];
    let (prefix, body) = match body {
        [first @ b'<'..=b'?', body @ ..] => (*first, body),
        _ => (0, body),
    };
    let split = body.iter().position(|byte| !matches!(byte, b'0'..=b';'))?;
    let (params, rest) = body.split_at(split);
    let split = match rest.first() {
        Some(b'@'..=b'~') => 0,
        _ => rest.iter().position(|byte| !matches!(byte, 0x20..=0x2f))?,
    };
    let intermediates = &rest[..split];
    let last @ b'@'..=b'~' = rest[split] else {
        return None;
    };
    let length = 3 + usize::from(prefix != 0) + params.len() + intermediates.len();
    let csi = Csi { prefix, params, intermediates, last };
    Some((csi, length))
}

/// The length of a complete string within the cap at the start of `bytes`, and whether it is an OSC.
pub fn whole_string(bytes: &[u8]) -> Option<(usize, bool)> {
    let osc = match bytes.get(1)? {
        b']' => true,
        b'P' | b'_' | b'^' | b'X' | b'k' => false,
        _ => return None,
    };
    let window = &bytes[2..bytes.len().min(STRING_CAP)];
    let end = 2 + string_end(window, osc)?;
    match bytes[end] {
        BEL => Some((end + 1, osc)),
        ESC if bytes.get(end + 1) == Some(&b'\\') => Some((end + 2, osc)),
        _ => None,
    }
}

#[expect(clippy::needless_bitwise_bool, reason = "branches would keep the loop below from becoming vector code")]
fn is_special(byte: u8) -> bool {
    (byte < 0x20) & (byte.wrapping_sub(8) > 5) | (byte == 0x7f)
}

/// The first byte that cannot be part of a text run.
pub fn find_special(bytes: &[u8]) -> usize {
    const LANES: usize = 32;
    // Runs between colours are short: look near first.
    let near = bytes.len().min(LANES / 2);
    if let Some(found) = bytes[..near].iter().position(|&byte| is_special(byte)) {
        return found;
    }
    let mut at = near;
    // Without a branch per byte the compiler turns this into vector instructions.
    for chunk in bytes[near..].chunks_exact(LANES) {
        if chunk.iter().fold(false, |any, &byte| any | is_special(byte)) {
            break;
        }
        at += LANES;
    }
    bytes[at..].iter().position(|&byte| is_special(byte)).map_or(bytes.len(), |found| at + found)
}

/// How many bytes at the end are a character that is not complete yet.
pub fn split_tail(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if byte < 0x80 {
            return 0;
        }
        if byte >= 0xc0 {
            return match std::str::from_utf8(&bytes[bytes.len() - back..]) {
                Err(error) if error.error_len().is_none() => back,
                _ => 0,
            };
        }
    }
    0
}
