//! The dashboard: state (`state`), its pure update (`app`), drawing (`view`), and the loop with its effects (`run`).

mod app;
mod event;
mod run;
mod state;
mod view;

pub use run::dashboard;

/// Sessions for tests elsewhere.
#[cfg(test)]
pub use state::tests as fixtures;
