//! What the system tells of watched folders, as it comes: in a thread of the watcher's own. It only says where to look.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};

use super::tree::{Refused, Watches};

/// Places to look at that are kept; with more, everything is looked at.
const MOST_PLACES: usize = 20_000;

/// Events are taken at this rate at most: whoever writes without end costs us next to nothing, since the kernel makes one of what it
/// has to tell twice. What does not fit into its queue is found by looking everywhere.
const BATCH: u32 = 512;
const BATCH_TIME: Duration = Duration::from_millis(25);

#[derive(Default)]
pub struct Touched {
    /// Whether folders there may be others than before.
    pub places: HashMap<PathBuf, bool>,
    /// Something was not told: everything has to be looked at.
    pub missed: bool,
}

impl Touched {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && !self.missed
    }
}

pub struct Inbox {
    touched: Mutex<Touched>,
    changed: Notify,
    /// A folder of ours in which marks are made: whatever happened before a mark was told before it.
    marks: PathBuf,
    seen: watch::Sender<u64>,
    /// The latest mark that somebody waits for.
    wanted: AtomicU64,
    /// Whoever looks through a tree need not go on.
    pub is_over: AtomicBool,
}

impl Inbox {
    pub fn new(marks: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            touched: Mutex::default(),
            changed: Notify::new(),
            marks,
            seen: watch::Sender::new(0),
            wanted: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    pub fn take(&self) -> Touched {
        std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, event: notify::Result<notify::Event>) {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            // being read is no change, least of all by ourselves
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if event.need_rescan() => self.miss(&mut touched),
            Ok(event) => {
                let anew = !matches!(event.kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)));
                for path in event.paths {
                    if path.parent() == Some(&self.marks) {
                        let mark: Option<u64> = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
                        if let Some(mark) = mark {
                            self.seen.send_modify(|seen| *seen = mark.max(*seen));
                        }
                    } else if touched.places.len() < MOST_PLACES {
                        *touched.places.entry(path).or_default() |= anew;
                    } else {
                        self.miss(&mut touched);
                    }
                }
                if touched.is_empty() {
                    return;
                }
            }
            Err(_) => self.miss(&mut touched),
        }
        drop(touched);
        self.changed.notify_one();
    }

    /// Everything has to be looked at: there is no need to wait for a mark, which may be among what was lost.
    fn miss(&self, touched: &mut Touched) {
        touched.missed = true;
        let wanted = self.wanted.load(Ordering::Acquire);
        self.seen.send_modify(|seen| *seen = wanted.max(*seen));
    }

    /// Waits until everything that has happened in watched folders by now is here; not for ever.
    pub async fn caught_up(&self, patience: Duration) {
        let mut seen = self.seen.subscribe();
        let mark = *seen.borrow() + 1;
        self.wanted.store(mark, Ordering::Release);
        let path = self.marks.join(mark.to_string());
        if std::fs::write(&path, "").is_ok() {
            let _ = tokio::time::timeout(patience, seen.wait_for(|seen| *seen >= mark)).await;
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The system's watcher, and how many trees want each folder.
pub struct Eye {
    inbox: Arc<Inbox>,
    watcher: RecommendedWatcher,
    wanted: HashMap<PathBuf, usize>,
}

impl Eye {
    pub fn open(inbox: &Arc<Inbox>) -> Result<Self, String> {
        crate::files::private_dir(&inbox.marks).map_err(|error| error.to_string())?;
        let told = Arc::clone(inbox);
        let (mut count, mut began) = (0, Instant::now());
        let mut watcher = notify::recommended_watcher(move |event| {
            told.put(event);
            count += 1;
            if count == BATCH {
                std::thread::sleep(BATCH_TIME.saturating_sub(began.elapsed()));
                (count, began) = (0, Instant::now());
            }
        })
        .map_err(|error| in_words(&error))?;
        watcher.watch(&inbox.marks, RecursiveMode::NonRecursive).map_err(|error| in_words(&error))?;
        Ok(Self { inbox: Arc::clone(inbox), watcher, wanted: HashMap::new() })
    }

    fn watch(&mut self, folder: &Path) -> Result<(), Refused> {
        // elsewhere than on Linux a watch is of everything below
        let mode = if cfg!(target_os = "linux") { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive };
        match self.watcher.watch(folder, mode) {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => Err(Refused::Full(in_words(&error))),
            Err(error) if matches!(&error.kind, notify::ErrorKind::Io(why) if why.kind() == io::ErrorKind::PermissionDenied) => Ok(()),
            Err(_) => Err(Refused::Gone),
        }
    }

    /// Whether what is told of a folder above it is told of it too.
    fn is_covered(&self, folder: &Path) -> bool {
        !cfg!(target_os = "linux") && folder.ancestors().skip(1).any(|above| self.wanted.contains_key(above))
    }
}

impl Drop for Eye {
    fn drop(&mut self) {
        // marks are taken away when they have been seen
        let _ = std::fs::remove_dir(&self.inbox.marks);
    }
}

impl Watches for Eye {
    fn add(&mut self, folder: &Path) -> Result<(), Refused> {
        if !self.wanted.contains_key(folder) && !self.is_covered(folder) {
            self.watch(folder)?;
        }
        *self.wanted.entry(folder.to_owned()).or_default() += 1;
        Ok(())
    }

    fn renew(&mut self, folder: &Path) -> Result<(), Refused> {
        if self.is_covered(folder) { Ok(()) } else { self.watch(folder) }
    }

    fn remove(&mut self, folder: &Path) {
        let Some(count) = self.wanted.get_mut(folder) else { return };
        *count -= 1;
        if *count == 0 {
            self.wanted.remove(folder);
            // one that is gone takes its watch along
            let _ = self.watcher.unwatch(folder);
        }
    }

    fn is_over(&self) -> bool {
        self.inbox.is_over.load(Ordering::Relaxed)
    }
}

pub fn in_words(error: &notify::Error) -> String {
    let limit = |name: &str| {
        let now = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).unwrap_or_default();
        format!("sysctl fs.inotify.{name}, now {}", now.trim())
    };
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => format!("the system's limit on watched folders is reached ({})", limit("max_user_watches")),
        notify::ErrorKind::Io(why) if why.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            format!("the system's limit on watchers is reached ({})", limit("max_user_instances"))
        }
        _ => error.to_string(),
    }
}
