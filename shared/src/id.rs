//! Ids of everything that is stored (`UUIDv7`, so they sort by time), and positions in what flows.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An id for this moment. A clock before 1970 counts as 1970: such a time has no place in an id.
fn new_id(now: std::time::SystemTime) -> Uuid {
    if now < std::time::SystemTime::UNIX_EPOCH {
        return Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0));
    }
    Uuid::now_v7()
}

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id; later ones sort after earlier ones.
            #[expect(clippy::new_without_default, reason = "a default id would be a surprise: each one is new")]
            pub fn new() -> Self {
                Self(new_id(std::time::SystemTime::now()))
            }

            pub fn parse(text: &str) -> Option<Self> {
                Uuid::try_parse(text).ok().map(Self)
            }

            pub fn bytes(&self) -> [u8; 16] {
                *self.0.as_bytes()
            }

            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// 32 hexadecimal digits: for file names, where every byte of a path counts.
            pub fn compact(&self) -> String {
                self.0.simple().to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.hyphenated())
            }
        }
    )*};
}

id! {
    ThreadId
    SessionId
    TerminalId
    RuntimeId
    LeaseId
    InstanceId
    ExecId
    WebhookId
    DeliveryId
}

/// The number of an event: rises by at least one with each, over all sessions.
pub type Seq = i64;

/// A position in a recording: bytes since its beginning, headers included, always at a frame's edge.
pub type Offset = u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_gives_ids_all_the_same() {
        let then = std::time::SystemTime::UNIX_EPOCH - std::time::Duration::from_hours(24);
        assert_ne!(new_id(then), new_id(then));
    }

    #[test]
    fn ids_sort_by_time_and_round_trip() {
        let first = SessionId::new();
        let second = SessionId::new();
        assert!(first < second);
        assert_eq!(SessionId::parse(&first.to_string()), Some(first));
        assert_eq!(SessionId::parse(&first.compact()), Some(first));
        assert_eq!(SessionId::parse("nonsense"), None);
    }
}
