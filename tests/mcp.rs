//! The agents' door: the real server over its standard input and output, with a client that is only JSON lines, and with
//! the official one.

pub mod client;
mod connection;
mod hidden;
pub mod official;
mod runtime;
mod schema;
mod stand_in;
mod tools;
