//! A webhook: somewhere to tell of events, and how that went.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Seq, WebhookId};

/// Event types that are told when none are named: the life of a session.
pub const LIFE: &[&str] = &["start", "pause", "resume", "complete", "error", "timeout", "lost"];

/// Which events an endpoint hears of. Everything that is given must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hears {
    /// Types; empty: the life of a session; `*`: all of them.
    pub events: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Plain http to another machine is meant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

impl Hears {
    pub fn hears_type(&self, kind: &str) -> bool {
        if self.events.is_empty() {
            return LIFE.contains(&kind);
        }
        self.events.iter().any(|event| event == "*" || event == kind)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    pub filter: Hears,
    pub created_at: Timestamp,
    /// Why nothing is sent to it any more, if so.
    pub disabled: Option<String>,
    /// Deliveries that wait to be made.
    pub pending: u64,
    /// Deliveries given up because too many were waiting.
    pub dropped: u64,
    /// How the last attempt went.
    pub last: Option<Delivery>,
    /// Only told when it is added.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub secret: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Given up: it was too old, or the endpoint was disabled.
    Expired,
}

/// One message to one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The `webhook-id` header: the same in every attempt.
    pub id: String,
    pub event: String,
    pub seq: Option<Seq>,
    pub state: DeliveryState,
    pub created_at: Timestamp,
    pub attempts: u32,
    pub attempted_at: Option<Timestamp>,
    /// The HTTP status that was answered.
    pub answer: Option<u16>,
    pub error: Option<String>,
}
