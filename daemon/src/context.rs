//! What every request needs, passed first; never global.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use shared::config::Config;
use shared::id::LeaseId;
use shared::paths::Paths;
use tokio::sync::watch;

use crate::log::Log;
use crate::registry::Registry;
use crate::store::StoreHandle;

pub type Context = Arc<World>;

pub struct World {
    pub paths: Paths,
    pub config: Config,
    pub store: StoreHandle,
    pub registry: Registry,
    pub log: Log,
    pub local_lease: LeaseId,
    pub started_at: jiff::Timestamp,
    pub clients: AtomicU32,
    pub warnings: Vec<String>,
    /// The limit on open files that programs get.
    pub open_files: Option<u64>,
    /// Set once, to end the daemon.
    pub stop: watch::Sender<Stop>,
}

/// Whether the daemon is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    No,
    Leave,
    /// Another one follows at once: attached clients wait for it.
    Restart,
}
