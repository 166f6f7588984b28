//! One segment, as it was written (`.rec`) or in small (`.recz`): read at any position either way.
//! A packed segment is a row of zstd frames of the same size with a table at its end (zstd's seekable format), so that a
//! position costs one block and `zstd -d` gives the plain segment back.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use shared::id::{Offset, RuntimeId};

use super::{Record, decode, lock_removal, open_regular, packed_path, segment_path, understand};

/// What is unpacked at a time: about a third of a millisecond's work, and large enough to be packed well.
const BLOCK: usize = 256 << 10;

/// Closed segments smaller than this stay as they are.
const WORTH_IT: u64 = 64 << 10;

/// zstd's own default: three to ten times smaller at some hundred megabytes a second.
const LEVEL: i32 = 3;

/// The header frame of a segment is shorter.
const MAX_HEADER: usize = 1024;

const TABLE_MAGIC: u32 = 0x184D_2A5E;
const FOOTER_MAGIC: u32 = 0x8F92_EAB1;
const FOOTER: usize = 9;

pub(super) enum Segment {
    Plain(File),
    Packed(Packed),
    /// It is there, and nothing in it can be read.
    Unreadable,
}

pub(super) struct Packed {
    file: File,
    /// Of each block: where it begins in the file, and how long it is there and unpacked.
    blocks: Vec<Block>,
    /// The last one that was needed.
    unpacked: Option<(usize, Vec<u8>)>,
    /// Made once: it is larger than a block.
    decompressor: zstd::bulk::Decompressor<'static>,
    /// A block as it is in the file; kept for its room.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    at: u64,
    start: u64,
    packed: usize,
    plain: usize,
}

impl Segment {
    pub fn open(dir: &Path, start: Offset) -> io::Result<Self> {
        // plain first: while a segment is being packed both may be there
        let mut segment = match open_regular(&segment_path(dir, start)) {
            Ok(file) => Ok(Self::Plain(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Packed::open(open_regular(&packed_path(dir, start))?).map(Self::Packed)
            }
            Err(error) => Err(error),
        }?;
        if segment.is_foreign(dir) {
            return Err(broken("it belongs to another runtime"));
        }
        Ok(segment)
    }

    /// Whether it was written by another runtime than the one its directory is named after: a directory was renamed, or
    /// restored into the wrong place.
    fn is_foreign(&mut self, dir: &Path) -> bool {
        let Some(owner) = dir.file_name().and_then(|name| name.to_str()).and_then(RuntimeId::parse) else { return false };
        let mut bytes = [0; MAX_HEADER];
        let Ok(filled) = self.fill_at(&mut bytes, 0) else { return false };
        let Some(frame) = decode(&bytes[..filled]) else { return false };
        match understand(frame.kind, frame.body) {
            Record::Header(header) => RuntimeId::parse(&header.runtime).is_some_and(|writer| writer != owner),
            _ => false,
        }
    }

    /// As much as is there, up to the whole of `buffer`.
    pub fn fill_at(&mut self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = match self {
                Self::Plain(file) => file.read_at(&mut buffer[filled..], position + filled as u64),
                Self::Packed(packed) => packed.read_at(&mut buffer[filled..], position + filled as u64),
                Self::Unreadable => Ok(0),
            };
            match read {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // what is before the damage counts
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Bytes that are in it.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Self::Plain(file) => Ok(file.metadata()?.len()),
            Self::Packed(packed) => Ok(packed.blocks.last().map_or(0, |block| block.start + block.plain as u64)),
            Self::Unreadable => Ok(0),
        }
    }

    /// Where to try next after `position` could not be read: the start of the following block, or the end of the segment.
    pub fn after_unreadable(&self, position: u64) -> io::Result<u64> {
        let length = self.length()?;
        match self {
            Self::Plain(_) | Self::Unreadable => Ok(length),
            Self::Packed(packed) => {
                let next = packed.blocks.partition_point(|block| block.start <= position);
                Ok(packed.blocks.get(next).map_or(length, |block| block.start))
            }
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a packed segment is damaged: {what}"))
}

impl Packed {
    fn open(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut footer = [0; FOOTER];
        let at = length.checked_sub(FOOTER as u64).ok_or_else(|| broken("it has no end"))?;
        file.read_exact_at(&mut footer, at)?;
        let count = u32::from_le_bytes([footer[0], footer[1], footer[2], footer[3]]) as usize;
        if footer[5..] != FOOTER_MAGIC.to_le_bytes() || count > super::SEGMENT_BYTES as usize {
            return Err(broken("its end is not one"));
        }
        let mut table = vec![0; count * 8];
        let begin = at.checked_sub(table.len() as u64).ok_or_else(|| broken("its table is cut"))?;
        file.read_exact_at(&mut table, begin)?;
        let (mut at, mut start) = (0, 0);
        let mut blocks = Vec::with_capacity(count);
        for entry in table.as_chunks::<8>().0 {
            let packed = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            let plain = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            if plain as usize > BLOCK {
                return Err(broken("a block is too long"));
            }
            blocks.push(Block { at, start, packed: packed as usize, plain: plain as usize });
            at += u64::from(packed);
            start += u64::from(plain);
        }
        if at > length {
            return Err(broken("its table does not fit"));
        }
        Ok(Self { file, blocks, unpacked: None, decompressor: zstd::bulk::Decompressor::new()?, scratch: Vec::new() })
    }

    fn read_at(&mut self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let Some(number) = self.blocks.partition_point(|block| block.start <= position).checked_sub(1) else { return Ok(0) };
        let block = self.blocks[number];
        if self.unpacked.as_ref().is_none_or(|(known, _)| *known != number) {
            self.scratch.resize(block.packed, 0);
            self.file.read_exact_at(&mut self.scratch, block.at)?;
            let mut plain = self.unpacked.take().map(|(_, plain)| plain).unwrap_or_default();
            plain.clear();
            plain.reserve(block.plain);
            self.decompressor.decompress_to_buffer(&self.scratch, &mut plain).map_err(|_| broken("a block cannot be unpacked"))?;
            if plain.len() != block.plain {
                return Err(broken("a block has another length than its table says"));
            }
            self.unpacked = Some((number, plain));
        }
        let Some((_, plain)) = &self.unpacked else { return Ok(0) };
        let from = &plain[((position - block.start) as usize).min(plain.len())..];
        let length = from.len().min(buffer.len());
        buffer[..length].copy_from_slice(&from[..length]);
        Ok(length)
    }
}

/// Packs a closed segment; `false` if there was nothing to gain. Readers are not disturbed, and a kill or a power cut at
/// any point leaves the plain segment, or both. The plain file is removed only after the packed one was read back and
/// found equal.
pub fn pack(dir: &Path, start: Offset, gives_up: &dyn Fn() -> bool) -> io::Result<bool> {
    let path = segment_path(dir, start);
    let mut plain = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let meta = plain.metadata()?;
    let target = packed_path(dir, start);
    if target.exists() {
        // An earlier daemon died between the rename and the removal of the plain file, which is the truth of the two.
        if !holds_the_same(&mut plain, &target)? {
            std::fs::remove_file(&target)?;
            return pack(dir, start, gives_up);
        }
        let _removal = lock_removal(dir)?;
        std::fs::remove_file(&path)?;
        return Ok(true);
    }
    if meta.len() < WORTH_IT {
        return Ok(false);
    }
    let unfinished = target.with_extension("recz-new");
    let packed = write_packed(&mut plain, &unfinished, gives_up).and_then(|file| {
        // its age is that of what is in it
        file.set_modified(meta.modified()?)?;
        file.sync_all()?;
        holds_the_same(&mut plain, &unfinished)
    });
    match packed {
        Ok(true) => {}
        Ok(false) => {
            let _ = std::fs::remove_file(&unfinished);
            return Err(io::Error::other("a segment changed while it was packed; it was left as it is"));
        }
        Err(error) => {
            let _ = std::fs::remove_file(&unfinished);
            return Err(error);
        }
    }
    // The holder drops old segments under the same lock: a segment it has dropped must not come back, and one that is
    // here stays in one form or the other.
    let _removal = lock_removal(dir)?;
    if !path.exists() {
        let _ = std::fs::remove_file(&unfinished);
        return Ok(false);
    }
    std::fs::rename(&unfinished, &target)?;
    File::open(dir)?.sync_all()?;
    match std::fs::remove_file(&path) {
        // A holder from before the lock dropped it in between. The packed one stays: it is the only copy, and retention
        // will take it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        other => other.map(|()| true),
    }
}

/// Whether a packed segment unpacks to exactly the bytes of the plain one.
fn holds_the_same(plain: &mut File, packed: &Path) -> io::Result<bool> {
    let mut packed = match Packed::open(open_regular(packed)?) {
        Ok(packed) => Segment::Packed(packed),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
        Err(error) => return Err(error),
    };
    let (mut expected, mut found) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut plain = Segment::Plain(plain.try_clone()?);
    let mut position = 0;
    loop {
        let length = plain.fill_at(&mut expected, position)?;
        match packed.fill_at(&mut found, position) {
            Ok(unpacked) if unpacked == length && expected[..length] == found[..length] => {}
            Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
            _ => return Ok(false),
        }
        if length == 0 {
            return Ok(true);
        }
        position += length as u64;
    }
}

fn write_packed(plain: &mut File, path: &Path, gives_up: &dyn Fn() -> bool) -> io::Result<File> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut table = Vec::new();
    let mut count: u32 = 0;
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        plain.take(BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            break;
        }
        if gives_up() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let packed = compressor.compress(&block)?;
        file.write_all(&packed)?;
        table.extend((packed.len() as u32).to_le_bytes());
        table.extend((block.len() as u32).to_le_bytes());
        count += 1;
    }
    let mut end = Vec::new();
    end.extend(TABLE_MAGIC.to_le_bytes());
    end.extend(((table.len() + FOOTER) as u32).to_le_bytes());
    end.extend(table);
    end.extend(count.to_le_bytes());
    end.push(0);
    end.extend(FOOTER_MAGIC.to_le_bytes());
    file.write_all(&end)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::{Reader, Record, SEGMENT_BYTES, Writer, kind, segments, tail};
    use super::*;
    use shared::screen::Size;

    const SIZE: Size = Size { cols: 80, rows: 24 };

    fn output(dir: &Path, from: Offset) -> Vec<u8> {
        let mut reader = Reader::new(dir, from);
        let mut bytes = Vec::new();
        while reader
            .read(Offset::MAX, 100_000, |_, _, record| {
                if let Record::Output(body) = record {
                    bytes.extend_from_slice(body);
                }
            })
            .expect("reads")
        {}
        bytes
    }

    #[test]
    fn what_is_packed_reads_as_before_from_everywhere() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(dir.path(), "r".into(), 7, SIZE, 1 << 30).expect("creates");
        let mut edges = vec![writer.end()];
        for n in 0u64.. {
            let chunk: Vec<u8> = (0..9000u64).map(|i| (i * i * n % 91) as u8 + 32).collect();
            writer.append(kind::OUTPUT, n, SIZE, &chunk).expect("appends");
            edges.push(writer.end());
            if writer.end() > SEGMENT_BYTES + (1 << 20) {
                break;
            }
        }
        let before = output(dir.path(), 0);
        let end = tail(dir.path()).expect("has a tail");
        let starts = segments(dir.path()).expect("lists");
        assert_eq!(starts.len(), 2);
        for start in &starts {
            assert!(pack(dir.path(), *start, &|| false).expect("packs"));
            assert!(!pack(dir.path(), *start, &|| false).expect("is packed already"));
            assert!(!segment_path(dir.path(), *start).exists());
        }
        assert_eq!(segments(dir.path()).expect("lists"), starts);
        assert!(output(dir.path(), 0) == before, "the same bytes");
        assert_eq!(tail(dir.path()).expect("has a tail"), end);
        for edge in edges.iter().step_by(97) {
            assert!(before.ends_with(&output(dir.path(), *edge)), "from {edge}");
        }
    }

    #[test]
    fn damage_is_said_and_never_shown() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(dir.path(), "r".into(), 7, SIZE, 1 << 30).expect("creates");
        for n in 0..40u64 {
            writer.append(kind::OUTPUT, n, SIZE, &vec![b'a' + (n % 26) as u8; 5000]).expect("appends");
        }
        assert!(pack(dir.path(), 0, &|| false).expect("packs"));
        let path = packed_path(dir.path(), 0);
        let whole = std::fs::read(&path).expect("reads");
        let good = output(dir.path(), 0);
        for n in 0..whole.len() {
            let mut bad = whole.clone();
            bad[n] ^= 0x10;
            std::fs::write(&path, &bad).expect("writes");
            let mut left = good.chunks(5000);
            let mut reader = Reader::new(dir.path(), 0);
            while let Ok(true) = reader.read(Offset::MAX, 100_000, |_, _, record| {
                if let Record::Output(body) = record {
                    assert!(left.any(|frame| frame == body), "byte {n}: a frame that was not recorded, or not here");
                }
            }) {}
            std::fs::write(&path, &whole[..n]).expect("writes");
            let _ = Reader::new(dir.path(), 0).read(Offset::MAX, 100_000, |_, _, _| {});
        }
    }
}
