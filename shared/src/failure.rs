//! A refusal, as every interface of the daemon gives it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// What was asked makes no sense as asked.
    Usage,
    NotFound,
    /// Not allowed in its present status.
    Status,
    /// The sides do not understand each other.
    Version,
    TimedOut,
    Failed,
}

/// A refusal: a stable code, and a sentence for a person that says what to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Code::Failed, message)
    }
}
