//! The client: the command line, the pass-through terminal, and the dashboard. It keeps nothing: the daemon does.

mod app;
mod attach;
mod background;
pub mod cli;
mod client;
mod connect;
mod doctor;
mod environment;
mod event;
mod export;
mod hooks;
mod input;
mod keymap;
mod mcp;
mod notify_ready;
mod replay;
mod run;
mod service;
mod settings;
mod state;
mod theme;
mod trust;
mod tty;
mod view;
mod window;

pub use notify_ready::notify_ready;
pub use service::ALREADY_RUNNING;

pub use environment::{keep_descriptors_to_ourselves, paths};
pub use settings::{config as read_config, load_config};
