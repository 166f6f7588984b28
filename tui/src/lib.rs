//! The client: the command line, the pass-through terminal, and the dashboard. It keeps nothing: the daemon does.

mod attach;
mod background;
pub mod cli;
mod client;
mod connect;
mod dashboard;
mod doctor;
mod environment;
mod export;
mod hooks;
mod input;
mod key_name;
mod keymap;
mod line_editor;
mod mcp;
mod notify_ready;
mod replay;
mod service;
mod settings;
mod theme;
mod trust;
mod tty;
mod window;
mod words;

pub use notify_ready::notify_ready;
pub use service::ALREADY_RUNNING;

pub use environment::{keep_descriptors_to_ourselves, paths};
pub use settings::{config as read_config, load_config};
