//! What a delivery says: the frozen form that receivers parse. Pure.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
pub struct Body<'a> {
    pub event: &'a str,
    pub session: Option<Subject<'a>>,
    pub timestamp: Timestamp,
    #[serde(skip_serializing_if = "is_empty")]
    pub data: &'a Value,
}

/// The session an event is about, as it is after it. The names are those of the receivers, who had them first.
#[derive(Serialize)]
pub struct Subject<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub mode: Option<&'a str>,
    pub status: &'a str,
    pub task: Option<&'a str>,
    #[serde(rename = "userId", skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    #[serde(rename = "channelId", skip_serializing_if = "Option::is_none")]
    pub channel: Option<&'a str>,
}

impl Body<'_> {
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("text and numbers are always JSON")
    }
}

fn is_empty(data: &Value) -> bool {
    match data {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unknown_is_left_out() {
        let (data, nothing) = (json!({"code": 0}), json!({}));
        let subject = |user| Subject { id: "01", name: "api", mode: None, status: "completed", task: Some("try"), user, channel: None };
        let body = |session, data| Body { event: "exit", session, timestamp: Timestamp::UNIX_EPOCH, data }.text();
        assert_eq!(
            body(Some(subject(Some("mo"))), &data),
            r#"{"event":"exit","session":{"id":"01","name":"api","mode":null,"status":"completed","task":"try","userId":"mo"},"timestamp":"1970-01-01T00:00:00Z","data":{"code":0}}"#
        );
        assert!(!body(Some(subject(None)), &nothing).contains("userId"));
        assert_eq!(body(None, &nothing), r#"{"event":"exit","session":null,"timestamp":"1970-01-01T00:00:00Z"}"#);
    }
}
