//! How much of all recordings is kept: by size, by age, the oldest first. Removes whole segments, always from the front of a
//! recording, and never one that a holder may be writing to.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use shared::id::{Offset, RuntimeId};

use super::{disk_bytes, end, index_path, keys_path, lock_removal, mark_dropped, packed_path, remove_segment, segment_path, segments};

pub struct Limits {
    pub total: Option<u64>,
    /// Of one runtime.
    pub each: u64,
    /// Segments that were last written to before this go.
    pub written_before: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Segments that went, and what they took.
    pub dropped: u64,
    pub bytes: u64,
    /// What is left.
    pub left: u64,
}

struct Part {
    dir: PathBuf,
    start: Offset,
    /// Where the next one starts.
    end: Offset,
    written_at: SystemTime,
    bytes: u64,
}

/// Runtimes that have a folder here.
pub fn folders(folder: &Path) -> Vec<RuntimeId> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(Result::ok).filter_map(|entry| RuntimeId::parse(entry.file_name().to_str()?)).collect()
}

/// Keeps all recordings to these limits. The last segment of a recording goes only if its runtime is known to have `ended`: a
/// runtime that is missing in a list of live ones may have been started since.
pub fn keep_to(folder: &Path, limits: &Limits, ended: &HashSet<RuntimeId>) -> Kept {
    let mut kept = Kept::default();
    let mut parts: Vec<Part> = Vec::new();
    for runtime in folders(folder) {
        let dir = folder.join(runtime.compact());
        kept.left += disk_bytes(&dir);
        let mut own = parts_of(&dir);
        if !ended.contains(&runtime) {
            own.pop();
        }
        let mut bytes: u64 = own.iter().map(|part| part.bytes).sum();
        let mut own = own.into_iter().peekable();
        let is_old = |part: &Part| limits.written_before.is_some_and(|at| part.written_at < at);
        while let Some(part) = own.next_if(|part| is_old(part) || bytes > limits.each) {
            bytes -= part.bytes;
            kept.take(&part);
        }
        parts.extend(own);
    }
    if let Some(total) = limits.total {
        parts.sort_by_key(|part| (part.written_at, part.start));
        for part in &parts {
            if kept.left <= total {
                break;
            }
            kept.take(part);
        }
    }
    kept
}

impl Kept {
    fn take(&mut self, part: &Part) {
        let _removal = lock_removal(&part.dir);
        if mark_dropped(&part.dir, part.end).is_err() {
            return;
        }
        remove_segment(&part.dir, part.start);
        self.dropped += 1;
        self.bytes += part.bytes;
        self.left = self.left.saturating_sub(part.bytes);
    }
}

/// Segments with everything that belongs to them, oldest first. A segment counts as no older than the one before it, whatever
/// the clock did: otherwise a part from the middle could go.
fn parts_of(dir: &Path) -> Vec<Part> {
    let Ok(starts) = segments(dir) else { return Vec::new() };
    let mut latest = SystemTime::UNIX_EPOCH;
    let ends: Vec<Offset> = starts.iter().skip(1).copied().chain([end(dir).unwrap_or(Offset::MAX)]).collect();
    starts
        .into_iter()
        .zip(ends)
        .map(|(start, end)| {
            let paths = [segment_path(dir, start), packed_path(dir, start), keys_path(dir, start), index_path(dir, start)];
            let metas: Vec<_> = paths.iter().filter_map(|path| std::fs::metadata(path).ok()).collect();
            latest = metas.first().and_then(|meta| meta.modified().ok()).map_or(latest, |at| at.max(latest));
            Part { dir: dir.to_owned(), start, end, written_at: latest, bytes: metas.iter().map(std::fs::Metadata::len).sum() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Reader, SEGMENT_BYTES, Writer, kind};
    use super::*;
    use shared::screen::Size;
    use std::time::Duration;

    const SIZE: Size = Size { cols: 80, rows: 24 };
    const NO_LIMITS: Limits = Limits { total: None, each: u64::MAX, written_before: None };

    /// Two runtimes with three segments each; the first is older.
    fn two(folder: &Path) -> [RuntimeId; 2] {
        let ids = [RuntimeId::new(), RuntimeId::new()];
        for (age, id) in [200, 100].into_iter().zip(ids) {
            let dir = folder.join(id.compact());
            std::fs::create_dir(&dir).expect("a folder");
            let mut writer = Writer::create(&dir, id.to_string(), 0, SIZE, u64::MAX).expect("creates");
            while writer.end() < 2 * SEGMENT_BYTES + 2_000_000 {
                writer.append(kind::OUTPUT, 0, SIZE, &vec![b'x'; 500_000]).expect("appends");
            }
            for (n, start) in segments(&dir).expect("lists").into_iter().enumerate() {
                let file = std::fs::File::options().append(true).open(segment_path(&dir, start)).expect("opens");
                let at = SystemTime::now() - Duration::from_secs(age * 86_400 - n as u64 * 3600);
                file.set_modified(at).expect("is old");
            }
        }
        ids
    }

    #[test]
    fn the_oldest_go_first_and_what_is_being_written_never() {
        let folder = tempfile::tempdir().expect("a folder");
        let ids = two(folder.path());
        let live = HashSet::new();
        assert_eq!(keep_to(folder.path(), &NO_LIMITS, &live).dropped, 0);
        let limits = Limits { total: Some(4 * SEGMENT_BYTES), ..NO_LIMITS };
        let kept = keep_to(folder.path(), &limits, &live);
        assert_eq!(kept.dropped, 1, "{kept:?}");
        let starts = |id: RuntimeId| segments(&folder.path().join(id.compact())).expect("lists").len();
        assert_eq!(ids.map(starts), [2, 3]);
        let none = Limits { total: Some(0), ..NO_LIMITS };
        keep_to(folder.path(), &none, &live);
        assert_eq!(ids.map(starts), [1, 1], "what is open stays");
        assert!(Reader::new(&folder.path().join(ids[0].compact()), 0).read(u64::MAX, 1, |_, _, _| {}).is_err());
        keep_to(folder.path(), &none, &HashSet::from(ids));
        assert_eq!(ids.map(starts), [0, 0]);
    }

    #[test]
    fn age_and_the_limit_of_each_count_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let ids = two(folder.path());
        let starts = |id: RuntimeId| segments(&folder.path().join(id.compact())).expect("lists").len();
        let limits = Limits { written_before: Some(SystemTime::now() - Duration::from_hours(150 * 24)), ..NO_LIMITS };
        keep_to(folder.path(), &limits, &HashSet::new());
        assert_eq!(ids.map(starts), [1, 3]);
        let limits = Limits { each: SEGMENT_BYTES + 1_000_000, ..NO_LIMITS };
        keep_to(folder.path(), &limits, &HashSet::new());
        assert_eq!(ids.map(starts), [1, 2]);
    }
}
