//! Agents that are known: how one is recognised, how its conversation is gone on with, what its hooks, its title and its screen
//! mean. Manifests in TOML, some built in, others of the user's own. Pure: knows no file and no process.

mod manifest;
mod payload;
mod reading;
mod recognise;
mod resume;

pub use manifest::{Agent, Agents, HookState};
pub use payload::Payload;
pub use reading::Reading;
pub use resume::Known;
