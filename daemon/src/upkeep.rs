//! Care for recordings, behind everybody's back: keyframes and an index for closed segments so that any moment is near, packing,
//! and the limits on what is kept. One piece of work at a time, in a thread that gives way to everything else.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use shared::id::{Offset, RuntimeId};
use shared::screen::Size;
use tokio::sync::oneshot;

use crate::context::Context;
use crate::found;
use crate::gaps;
use crate::handle::upkeep::GiveWay;
use crate::picture::Picture;
use crate::recording::{self, Kept};
use crate::store::Recorded;

/// The limits are looked at this long after something has grown: a walk through all folders should be worth it.
const LOOK_AFTER: Duration = Duration::from_secs(5);

/// A last segment smaller than this needs no index: reading it takes no longer.
const WORTH_INDEXING: u64 = 1 << 20;

pub async fn run(context: Context) {
    finish_removals(&context).await;
    let mut found = 0;
    // what an earlier daemon had no time for
    let folder = context.paths.recordings();
    for runtime in low(move || recording::folders(&folder)).await.unwrap_or_default() {
        let mark = context.paths.recording(runtime).join(recording::UNFINISHED);
        if mark.exists() && !context.upkeep.is_ours(runtime) {
            match context.store.recorded(runtime).await {
                Ok(Some(_)) => drop(std::fs::remove_file(mark)),
                // an import that a daemon before this one did not end
                Ok(None) => drop(std::fs::remove_dir_all(context.paths.recording(runtime))),
                Err(_) => {}
            }
        }
        found += u32::from(list_found(&context, runtime).await);
        context.upkeep.add(runtime);
    }
    if found > 0 {
        context.warn(format!(
            "{} had no session (the database was lost or is an older copy): `sessions-tui ls --all --status ended` lists them as found",
            shared::text::count(found as usize, "recording")
        ));
    }
    // recordings whose directory is gone are found by the database alone
    for runtime in context.store.ended_runtimes().await.unwrap_or_default() {
        context.upkeep.add(runtime);
    }
    let mut settings = context.settings.changes();
    let mut limits_due = Some(tokio::time::Instant::now());
    loop {
        while let Some(runtime) = context.upkeep.next() {
            tend(&context, runtime).await;
            let soon = tokio::time::Instant::now() + LOOK_AFTER;
            limits_due = Some(limits_due.map_or(soon, |due| due.min(soon)));
        }
        let look = async {
            match limits_due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = context.upkeep.changed() => {}
            _ = settings.changed() => limits_due = Some(tokio::time::Instant::now()),
            () = look => {
                keep_to_limits(&context).await;
                // what is quiet grows old too
                let by_age = context.config().recording.max_age_days > 0;
                limits_due = by_age.then(|| tokio::time::Instant::now() + Duration::from_hours(24));
            }
        }
    }
}

/// Removes the files of recordings that `rm` had removed from the database when an earlier daemon died.
async fn finish_removals(context: &Context) {
    for runtime in context.store.removed_recordings().await.unwrap_or_default() {
        let dir = context.paths.recording(runtime);
        match low(move || recording::remove(&dir)).await {
            Some(Ok(())) => drop(context.store.removal_is_done(runtime).await),
            Some(Err(error)) => context.log.warn(&format!("removing the recording of runtime {runtime}: {error}")),
            None => {}
        }
    }
}

/// Lists a recording that the database does not know. One that a holder may be writing to is left alone: a socket says so.
async fn list_found(context: &Context, runtime: RuntimeId) -> bool {
    let dir = context.paths.recording(runtime);
    let is_in_use = |context: &Context| {
        context.paths.holder_socket(runtime).exists() || context.registry.runtime(runtime).is_some() || context.upkeep.is_ours(runtime)
    };
    if is_in_use(context) || dir.join(recording::UNFINISHED).exists() || !matches!(context.store.recorded(runtime).await, Ok(None)) {
        return false;
    }
    let Some(Some((header, tail))) = low(move || found::describe(&dir, runtime)).await else { return false };
    if let Err(error) = found::list(context, runtime, &header, &tail).await {
        context.log.warn(&format!("the recording of runtime {runtime} has no session and could not be listed: {error}"));
        return false;
    }
    true
}

async fn tend(context: &Context, runtime: RuntimeId) {
    // what the database does not know is nobody's to touch; what cannot be asked now is asked next time
    let Ok(Some(recorded)) = context.store.recorded(runtime).await else { return };
    let dir = context.paths.recording(runtime);
    note_gaps(context, &recorded).await;
    let Recorded { launch, is_live, name, .. } = recorded;
    let starts = {
        let _work = context.upkeep.work().await;
        let dir = dir.clone();
        let tidied = low(move || {
            recording::sweep(&dir);
            recording::segments(&dir).unwrap_or_default()
        });
        tidied.await.unwrap_or_default()
    };
    for (n, start) in starts.iter().enumerate() {
        let part = Part { dir: dir.clone(), size: launch.size, start: *start, next: starts.get(n + 1).copied(), is_live };
        let packs = context.config().recording.compress;
        // segment by segment: whoever wants one to be gone does not wait for all of them
        let (_work, give_way) = context.upkeep.work().await;
        match low(move || part.tend(packs, &give_way)).await {
            // begun again when whoever waits is done
            Some(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {
                context.upkeep.look_at(runtime);
                return;
            }
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                context.log.warn(&format!("session {name}: its recording could not be packed: {error}"));
                return;
            }
            _ => {}
        }
    }
}

/// Tells of what is missing in a recording.
async fn note_gaps(context: &Context, recorded: &Recorded) {
    let (context_, recorded_) = (context.clone(), recorded.clone());
    for hole in low(move || gaps::check(&context_, &recorded_)).await.unwrap_or_default() {
        gaps::note(context, recorded.session, recorded.runtime, hole).await;
    }
}

/// One segment that is looked after.
struct Part {
    dir: PathBuf,
    size: Size,
    start: Offset,
    next: Option<Offset>,
    is_live: bool,
}

impl Part {
    fn tend(&self, packs: bool, give_way: &GiveWay) -> std::io::Result<()> {
        let (dir, start) = (&self.dir, self.start);
        let interrupted = || std::io::Error::from(std::io::ErrorKind::Interrupted);
        if self.next.is_none() && self.is_live {
            index_open(dir, self.size, give_way);
            return Ok(());
        }
        let is_worth_it = self.next.is_some() || recording::segment_bytes(dir, start) >= WORTH_INDEXING;
        if is_worth_it && !recording::has_index(dir, start) {
            let end = self.next.unwrap_or(Offset::MAX);
            let mut picture = Picture::open(dir, self.size, start);
            picture.store_often();
            while picture.step(end) {
                if give_way.is_due() {
                    return Err(interrupted());
                }
            }
            picture.store();
            recording::store_index(dir, start, end)?;
        }
        if packs {
            recording::pack(dir, start, &|| give_way.is_due())?;
        }
        Ok(())
    }
}

/// What is being written gets keyframes too, as far as it has come.
fn index_open(dir: &Path, size: Size, give_way: &GiveWay) {
    let known = recording::last_keyframe(dir, u64::MAX).ok().flatten().map_or(0, |(at, _)| at.offset);
    let mut picture = Picture::open(dir, size, known);
    let Some(end) = recording::open_end(dir).filter(|end| end - known.min(*end) > WORTH_INDEXING) else { return };
    picture.store_often();
    while !give_way.is_due() && picture.step(end) {}
}

/// Takes away the oldest output while there is more than there should be, or older than it should be.
async fn keep_to_limits(context: &Context) {
    let config = context.config();
    let settings = &config.recording;
    let mut written_before = None;
    if settings.max_age_days > 0 {
        let Ok(seen) = crate::cleanup::look_at_clocks(context).await else { return };
        let at = seen.before(i64::from(settings.max_age_days) * 24 * 3600 * 1_000_000);
        written_before = u64::try_from(at).ok().map(|micros| SystemTime::UNIX_EPOCH + Duration::from_micros(micros));
    }
    let limits = recording::Limits {
        total: (settings.max_total_mib > 0).then_some(settings.max_total_mib << 20),
        each: settings.max_mib << 20,
        written_before,
    };
    let Ok(ended) = context.store.ended_runtimes().await else { return };
    let folder = context.paths.recordings();
    let Some(Kept { dropped, bytes, .. }) = low(move || recording::keep_to(&folder, &limits, &ended)).await else { return };
    if dropped > 0 {
        let mib = bytes >> 20;
        context.log.note(&format!("recordings: the oldest {} went, {mib} MiB", shared::text::count(dropped as usize, "segment")));
    }
}

/// In a thread of its own that everything else goes before. `None` if it ended badly.
async fn low<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, is_done) = oneshot::channel();
    let spawned = std::thread::Builder::new().name("upkeep".into()).spawn(move || {
        // Linux knows priorities of threads; elsewhere it would be the whole daemon's
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, 19);
        let _ = done.send(work());
    });
    spawned.ok()?;
    is_done.await.ok()
}
