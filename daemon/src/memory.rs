//! The memory of daemon and holder, which holds environments and output: no core file of it is written, and no other process reads it.
//! Programs that we start are not meant.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// No limit.
const UNLIMITED: u64 = u64::MAX;

/// Allows no core file of this process; gives the limit of before.
pub fn hide() -> u64 {
    let limit = getrlimit(Resource::Core);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: limit.maximum });
    limit.current.unwrap_or(UNLIMITED)
}

/// Other processes of this user cannot attach to it or read its memory, and no core file is piped to a collector, which a limit does not
/// prevent. Programs start without that.
pub fn refuse_inspection() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// While it is there, programs that are started get this limit.
pub struct CoreFiles;

impl CoreFiles {
    pub fn allow(limit: Option<u64>) -> Self {
        if let Some(limit) = limit {
            let current = (limit != UNLIMITED).then_some(limit);
            let _ = setrlimit(Resource::Core, Rlimit { current, maximum: getrlimit(Resource::Core).maximum });
        }
        Self
    }
}

impl Drop for CoreFiles {
    fn drop(&mut self) {
        hide();
    }
}
