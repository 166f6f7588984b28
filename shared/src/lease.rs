//! A lease: the durable handle on compute, and the instance it points to now.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{InstanceId, LeaseId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    pub id: LeaseId,
    pub provider: String,
    pub created_at: Timestamp,
    pub instance: Option<Instance>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Instance {
    pub id: InstanceId,
    /// What it is: for this machine, its boot, since a reboot is a new instance.
    pub place: String,
    pub created_at: Timestamp,
}
