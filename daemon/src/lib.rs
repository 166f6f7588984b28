//! The daemon: keeps the database and the screens, reaches holders, serves clients. And the holder, which outlives it.

mod age;
mod agent;
mod attachment;
mod attention;
mod cleanup;
mod clock;
mod command;
mod command_history;
mod connection;
mod context;
mod delivery;
mod descriptor;
mod ending;
mod exec;
mod execute;
mod expiry;
mod fact;
mod file_time;
mod files;
mod found;
mod gaps;
mod handle;
mod hibernate;
mod holder;
mod language;
mod launch;
mod leftover;
mod lifecycle;
mod log;
mod memory;
mod notify;
mod overlay;
mod pausing;
mod peer;
mod picture;
mod policy;
mod poll;
mod pulse;
mod queue;
mod recording;
mod recover;
mod registry;
mod reload;
mod replay;
mod request;
mod restore;
mod runtime;
mod search;
mod server;
mod settings;
mod shell;
mod signals;
mod store;
mod tty;
mod upcalls;
mod upkeep;
mod wake;
mod watch;
mod webhook;
mod workspace;

/// What is wrong with the agents' manifests in a folder, a sentence each.
pub fn check_agents(folder: &std::path::Path) -> Vec<String> {
    agent::Agents::read(&files::read_folder(folder, "toml")).1
}

pub use holder::run as run_holder;
pub use server::{Place, StartError, run as run_daemon};
pub use settings::FirstSettings;
pub use signals::reset as reset_signals;
pub use store::{look as look_at_database, refuse_newer as refuse_newer_database};
