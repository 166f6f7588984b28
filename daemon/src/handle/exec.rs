//! Execs that have not ended: what each has printed so far, who waits for it, and where those of each place go.

mod known;
mod live;

pub use known::{Asking, Execs, Known};
pub use live::{Captured, Live, Progress, Text, describe, output_limit, text};
