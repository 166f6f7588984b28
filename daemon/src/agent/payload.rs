//! What an agent's hook was given: JSON in words that differ a little from agent to agent. Nothing of it is trusted further than
//! it is understood.

use serde_json::Value;
use shared::attention::Attention;
use shared::text::{fit, visible};

use super::{Agent, HookState};

/// Columns of a message that is shown.
const MAX_TEXT: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    pub event: String,
    /// The type of a notification.
    pub kind: Option<String>,
    pub conversation: Option<String>,
    pub transcript: Option<String>,
    pub cwd: Option<String>,
    /// Why a conversation begins: `startup`, `resume`, `clear`, `compact`.
    pub source: Option<String>,
    pub message: Option<String>,
    /// It is of a sub-agent, whose comings and goings are not the agent's.
    pub is_of_part: bool,
    /// Work goes on in the background after a turn has ended.
    pub goes_on: bool,
}

/// What an event says of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub state: HookState,
    pub text: Option<String>,
}

impl Payload {
    /// `event` is what the command line names; without it, what the payload says itself.
    pub fn read(event: Option<&str>, payload: &Value) -> Self {
        let text = |names: &[&str]| {
            let found = names.iter().find_map(|name| payload.get(*name).and_then(Value::as_str));
            found.map(str::to_owned).filter(|text| !text.is_empty())
        };
        let is_filled = |name: &str| payload.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        Self {
            event: event.map(str::to_owned).or_else(|| text(&["hook_event_name", "type", "event"])).unwrap_or_default(),
            kind: text(&["notification_type"]),
            conversation: text(&["session_id", "thread-id", "sessionID", "session"]),
            transcript: text(&["transcript_path"]),
            cwd: text(&["cwd", "directory"]),
            source: text(&["source"]),
            message: asked(payload).or_else(|| text(&["message", "last_assistant_message", "last-assistant-message", "prompt_response"])),
            is_of_part: payload.get("agent_id").is_some_and(|id| !id.is_null()),
            goes_on: is_filled("background_tasks"),
        }
    }

    /// What it means for this agent; nothing if it means nothing, or is of a part of it.
    pub fn said(&self, agent: &Agent) -> Option<Said> {
        if self.is_of_part {
            return None;
        }
        let state = match agent.hook(&self.event, self.kind.as_deref())? {
            HookState::Done if self.goes_on => HookState::State(Attention::Working),
            state => state,
        };
        let is_telling =
            matches!(state, HookState::Done | HookState::State(Attention::WaitingApproval | Attention::WaitingAnswer | Attention::Stuck));
        let text = self.message.as_deref().filter(|_| is_telling).map(|text| fit(&visible(&one_line(text)), MAX_TEXT));
        Some(Said { state, text: text.filter(|text| !text.is_empty()) })
    }

    pub fn begins_conversation(&self) -> bool {
        plainly(&self.event) == "sessionstart" || plainly(&self.event) == "sessioncreated"
    }

    /// Somebody has asked something: from here on there is a conversation to go on with.
    pub fn is_prompt(&self) -> bool {
        matches!(plainly(&self.event).as_str(), "userpromptsubmit" | "beforeagent" | "stop" | "afteragent" | "agentturncomplete")
    }
}

/// The tool that a permission is asked for, with what it would do.
fn asked(payload: &Value) -> Option<String> {
    let tool = payload.get("tool_name").and_then(Value::as_str)?;
    let input = payload.get("tool_input");
    let what = ["command", "file_path", "url", "path", "pattern", "description"]
        .iter()
        .find_map(|name| input.and_then(|input| input.get(*name)).and_then(Value::as_str));
    Some(what.map_or_else(|| format!("allow {tool}?"), |what| format!("allow {tool}: {what}")))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn plainly(event: &str) -> String {
    event.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agents;
    use serde_json::json;

    #[test]
    fn payloads_are_understood() {
        let agents = Agents::default();
        let done = |text: &str| Some(Said { state: HookState::Done, text: Some(text.into()) });
        let state = |state, text: Option<&str>| Some(Said { state: HookState::State(state), text: text.map(str::to_owned) });
        for (agent, event, payload, expected) in [
            ("claude-code", None, json!({"hook_event_name": "Stop", "last_assistant_message": "All\n  done"}), done("All done")),
            ("claude-code", None, json!({"hook_event_name": "Stop", "background_tasks": [{"id": 1}]}), state(Attention::Working, None)),
            ("claude-code", None, json!({"hook_event_name": "Stop", "agent_id": "a1"}), None),
            ("claude-code", None, json!({"hook_event_name": "SubagentStop"}), None),
            (
                "claude-code",
                Some("PermissionRequest"),
                json!({"tool_name": "Bash", "tool_input": {"command": "touch x\u{1b}[2J"}}),
                state(Attention::WaitingApproval, Some("allow Bash: touch x\u{241b}[2J")),
            ),
            ("claude-code", None, json!({"hook_event_name": "UserPromptSubmit", "prompt": "secret"}), state(Attention::Working, None)),
            (
                "claude-code",
                None,
                json!({"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": "Waiting"}),
                state(Attention::WaitingAnswer, Some("Waiting")),
            ),
            ("codex", None, json!({"type": "agent-turn-complete", "last-assistant-message": "ok"}), done("ok")),
            ("codex", None, json!([1, 2]), None),
            ("codex", None, json!("text"), None),
        ] {
            let read = Payload::read(event, &payload);
            let said = read.said(agents.by_name(agent).expect("is there"));
            let plain =
                |said: Option<Said>| said.map(|said| (said.state, said.text.map(|text| text.replace(|c: char| !c.is_ascii(), "?"))));
            assert_eq!(plain(said), plain(expected), "{payload}");
        }
        let start =
            Payload::read(None, &json!({"hook_event_name": "SessionStart", "session_id": "x", "cwd": "/w", "transcript_path": "/t"}));
        assert!(start.begins_conversation() && !start.is_prompt());
        assert_eq!((start.conversation.as_deref(), start.cwd.as_deref(), start.transcript.as_deref()), (Some("x"), Some("/w"), Some("/t")));
    }
}
