//! The dashboard's state, part by part. Pure: no I/O, no clock, no drawing.

pub mod act;
pub mod detail;
pub mod form;
pub mod hits;
pub mod layers;
pub mod ledger;
pub mod list;
pub mod log;
pub mod order;
pub mod output;
pub mod palette;
pub mod pane;
pub mod rates;
pub mod remembered;
pub mod sights;
pub mod tree;

#[cfg(test)]
pub mod tests {
    use shared::attention::{Attention, Needs};
    use shared::id::{SessionId, ThreadId};
    use shared::session::{Session, Status};

    pub fn session(name: &str, status: Status) -> Session {
        let at = jiff::Timestamp::UNIX_EPOCH;
        Session {
            id: SessionId::new(),
            thread: ThreadId::new(),
            name: name.into(),
            workspace: "/src".into(),
            user: None,
            channel: None,
            mode: None,
            task: None,
            status,
            status_reason: None,
            created_at: at,
            number: 0,
            updated_at: at,
            last_activity_at: at,
            started_at: None,
            ended_at: None,
            iterations: 0,
            max_iterations: 50,
            context: serde_json::Value::Null,
            result: None,
            error: None,
            metadata: serde_json::Value::Null,
            policy: shared::policy::Policy::default(),
            group: None,
            queue_place: None,
            task_count: 1,
            command: vec!["bash".into()],
            runtime: None,
            runtime_state: None,
            size: None,
            languages: Vec::new(),
            clients: 0,
            needs: None,
            restorable: false,
            damaged: None,
            unreachable: None,
        }
    }

    pub fn needing(name: &str, state: Attention) -> Session {
        let status = if state == Attention::DoneUnseen { Status::Completed } else { Status::Active };
        let needs = Needs { state, since: jiff::Timestamp::UNIX_EPOCH, why: "Apply this change?".into() };
        Session { needs: Some(needs), ..session(name, status) }
    }
}
