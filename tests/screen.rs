//! The screen layer against its rules, random bytes, real programs' recordings, and tmux.

mod fuzz;
mod recordings;
mod rules;
mod skip;
mod support;
mod vs_tmux;
