//! The words every part of the product uses, their form on the wire, and the screen.
//! No files, sockets, clock or async here: everything is a value or a pure function.

pub mod agent;
mod answer;
pub mod asciicast;
pub mod attention;
pub mod command;
pub mod config;
pub mod doctor;
pub mod event;
pub mod exec;
pub mod failure;
pub mod filter;
pub mod frame;
pub mod id;
pub mod json;
pub mod keys;
pub mod lease;
pub mod live;
pub mod message;
pub mod model_text;
pub mod name;
pub mod paths;
pub mod policy;
pub mod redact;
pub mod replay;
pub mod request;
pub mod runtime;
pub mod schema;
pub mod screen;
pub mod search;
pub mod seen;
pub mod session;
pub mod stats;
pub mod terminal;
pub mod text;
pub mod thread;
pub mod transcript;
pub mod watch;
pub mod webhook;

/// The release, as `--version` and the hello print it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
