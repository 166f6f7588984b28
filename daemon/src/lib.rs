//! The daemon: keeps the database and the screens, reaches holders, serves clients. And the holder, which outlives it.

mod attachment;
mod connection;
mod context;
mod files;
mod holder;
mod lifecycle;
mod log;
mod picture;
mod poll;
mod recording;
mod recover;
mod registry;
mod request;
mod runtime;
mod server;
mod store;
mod tty;

pub use holder::run as run_holder;
pub use server::{StartError, run as run_daemon};
