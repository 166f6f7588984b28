//! The callable side of everything that lives in the daemon: runtimes, execs, and its loops. Cheap to clone or shared, with no
//! rules of their own. Must not know the tasks behind it.

pub mod ask;
pub mod exec;
pub mod queue;
pub mod runtime;
pub mod upcall;
pub mod upkeep;
pub mod watch;
