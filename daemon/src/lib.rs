//! The daemon: keeps the database and the screens, reaches holders, serves clients. And the holder, which outlives it.

mod attachment;
mod attention;
mod cleanup;
mod clock;
mod connection;
mod context;
mod exec;
mod expiry;
mod files;
mod holder;
mod language;
mod launch;
mod lifecycle;
mod log;
mod peer;
mod picture;
mod policy;
mod poll;
mod pulse;
mod queue;
mod recording;
mod recover;
mod registry;
mod replay;
mod request;
mod runtime;
mod search;
mod server;
mod shell;
mod store;
mod tty;
mod upkeep;
mod webhook;

pub use holder::run as run_holder;
pub use server::{StartError, run as run_daemon};
