//! The client: the command line, the pass-through terminal, and the dashboard. It keeps nothing: the daemon does.

mod app;
mod attach;
pub mod cli;
mod client;
mod connect;
mod environment;
mod event;
mod export;
mod hooks;
mod input;
mod keymap;
mod mcp;
mod replay;
mod run;
mod settings;
mod state;
mod theme;
mod tty;
mod view;
mod window;

pub use environment::{keep_descriptors_to_ourselves, load_config, paths};
