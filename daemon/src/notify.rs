//! Telling people that a session waits for them: on the terminals of whoever is attached elsewhere (OSC 9), and by a command of
//! the user's own. Dashboards hear of it by the event; webhooks too.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use shared::attention::Attention;
use shared::config::NotifyConfig;
use shared::id::SessionId;
use tokio::sync::{Semaphore, broadcast};

use crate::log::Log;

/// Notices that a runtime may be behind; older ones are not worth showing any more.
const WAITING: usize = 16;

/// Commands at once: whoever is told of more has enough to look at.
const COMMANDS: usize = 4;

/// A command that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub session: SessionId,
    pub name: String,
    pub state: Attention,
    pub text: String,
}

impl Notice {
    fn title(&self) -> String {
        let what = match self.state {
            Attention::WaitingApproval => "asks for permission",
            Attention::WaitingAnswer => "waits for an answer",
            Attention::Stuck => "is stuck",
            _ => "has ended",
        };
        format!("{} {what}", self.name)
    }

    /// As a terminal is told; the text has nothing in it that could act on one.
    pub fn osc(&self) -> Vec<u8> {
        let text = shared::text::visible(&format!("{}: {}", self.title(), self.text));
        format!("\x1b]9;{}\x1b\\", text.replace(';', ",")).into_bytes()
    }
}

pub struct Notify {
    notices: broadcast::Sender<Notice>,
    commands: Arc<Semaphore>,
}

impl Default for Notify {
    fn default() -> Self {
        Self { notices: broadcast::Sender::new(WAITING), commands: Arc::new(Semaphore::new(COMMANDS)) }
    }
}

impl Notify {
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    pub fn tell(&self, config: &NotifyConfig, log: &Log, notice: Notice) {
        if let (Some(argv), Ok(place)) = (argv(config, &notice), Arc::clone(&self.commands).try_acquire_owned()) {
            let (log, notice) = (log.clone(), notice.clone());
            tokio::spawn(async move {
                if let Err(why) = run(&argv, &notice).await {
                    log.warn(&format!("notify.command {}: {why}", argv[0]));
                }
                drop(place);
            });
        }
        if config.terminals {
            // nobody attached anywhere is fine
            let _ = self.notices.send(notice);
        }
    }
}

/// The user's command with what it is about in it; nothing if there is none.
fn argv(config: &NotifyConfig, notice: &Notice) -> Option<Vec<String>> {
    let clean = |text: &str| shared::text::visible(text);
    let fill = |word: &String| {
        let mut filled = String::new();
        let mut rest = word.as_str();
        // one pass: what a text has in it is never filled again
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = [
                ("{title}", notice.title()),
                ("{body}", notice.text.clone()),
                ("{name}", notice.name.clone()),
                ("{state}", notice.state.to_string()),
            ];
            match known.iter().find(|(mark, _)| rest.starts_with(mark)) {
                Some((mark, text)) => {
                    filled.push_str(&clean(text));
                    rest = &rest[mark.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled + rest
    };
    (!config.command.is_empty()).then(|| config.command.iter().map(fill).collect())
}

async fn run(argv: &[String], notice: &Notice) -> Result<(), String> {
    let mut command = tokio::process::Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .env("SESSIONS_NOTIFY_NAME", &notice.name)
        .env("SESSIONS_NOTIFY_STATE", notice.state.as_str())
        .env("SESSIONS_NOTIFY_TITLE", shared::text::visible(&notice.title()))
        .env("SESSIONS_NOTIFY_BODY", shared::text::visible(&notice.text))
        .env_remove(shared::runtime::ROLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let status = tokio::time::timeout(PATIENCE, command.status()).await;
    match status {
        Err(_) => Err(format!("it took longer than {} s and was ended", PATIENCE.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(status)) if !status.success() => Err(status.to_string()),
        Ok(Ok(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_filled_once_and_nothing_acts_on_a_terminal() {
        let notice = Notice {
            session: SessionId::new(),
            name: "api".into(),
            state: Attention::WaitingApproval,
            text: "run {name}; rm -rf $HOME \x1b]0;x\x07".into(),
        };
        let config = NotifyConfig { command: vec!["say".into(), "{title}: {body}".into(), "{other}".into()], ..NotifyConfig::default() };
        let filled = argv(&config, &notice).expect("a command");
        assert_eq!(filled, ["say", "api asks for permission: run {name}; rm -rf $HOME ·]0;x·", "{other}"]);
        let osc = String::from_utf8(notice.osc()).expect("text");
        assert_eq!(osc, "\x1b]9;api asks for permission: run {name}, rm -rf $HOME ·]0,x·\x1b\\");
        assert_eq!(argv(&NotifyConfig::default(), &notice), None);
    }
}
