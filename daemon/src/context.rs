//! What every request needs, passed first; never global.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use shared::config::Config;
use shared::id::LeaseId;
use shared::paths::Paths;
use tokio::sync::watch;

use crate::agent::Agents;
use crate::clock::Clock;
use crate::handle::exec::Execs;
use crate::handle::queue::Queue;
use crate::handle::upcall::Upcalls;
use crate::handle::upkeep::Upkeep;
use crate::handle::watch::Watch;
use crate::log::Log;
use crate::notify::Notify;
use crate::registry::Registry;
use crate::search::Turns;
use crate::settings::Settings;
use crate::store::StoreHandle;
use crate::webhook::Post;

pub type Context = Arc<World>;

pub struct World {
    pub paths: Paths,
    pub settings: Settings,
    pub store: StoreHandle,
    pub registry: Registry,
    pub notify: Notify,
    pub execs: Execs,
    pub queue: Queue,
    pub upkeep: Upkeep,
    pub upcalls: Upcalls,
    pub watch: Watch,
    pub searches: Turns,
    pub replays: Turns,
    pub clock: Clock,
    pub post: Post,
    pub log: Log,
    pub local_lease: LeaseId,
    /// When the first daemon of this boot started: a runtime from before then was lost with the machine.
    pub boot_since: jiff::Timestamp,
    pub started_at: jiff::Timestamp,
    pub clients: AtomicU32,
    pub warnings: Mutex<Vec<String>>,
    /// The limit on open files that programs get.
    pub open_files: Option<u64>,
    /// The limit on core files that programs get.
    pub core_files: Option<u64>,
    /// Set once, to end the daemon.
    pub stop: watch::Sender<Stop>,
}

impl World {
    /// The settings as they are now; whoever keeps them over an await keeps the old ones.
    pub fn config(&self) -> Arc<Config> {
        self.settings.config()
    }

    pub fn agents(&self) -> Arc<Agents> {
        self.settings.agents()
    }

    /// What a user should know: in the log, and in `daemon status` from now on.
    pub fn warn(&self, text: String) {
        self.log.warn(&text);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// Whether the daemon is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    No,
    Leave,
    /// Another one follows at once: attached clients wait for it.
    Restart,
}
