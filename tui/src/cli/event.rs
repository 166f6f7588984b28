//! events: what happened, and what happens.

use shared::event::Event;
use shared::id::Seq;
use shared::message::{Failure, Push, Request};
use shared::paths::Paths;
use shared::text::{pad, visible};

use super::print;
use crate::connect;

pub async fn events(paths: &Paths, name: Option<String>, since: Option<Seq>, follow: bool, json: bool) -> Result<(), Failure> {
    let mut last = since;
    loop {
        let mut client = connect::connect(paths).await?;
        client.call::<serde_json::Value>(Request::Events { name: name.clone(), since: last, follow }).await?;
        while let Some(push) = client.waiting_push() {
            last = show(push, json)?.or(last);
        }
        if !follow {
            return Ok(());
        }
        // a daemon that went away is started again, and told where we were: nothing is missed, nothing comes twice
        while let Ok(push) = client.push().await {
            if matches!(push, Push::Stopping { restart: false }) {
                return Err(connect::no_daemon("the daemon was stopped".into()));
            }
            last = show(push, json)?.or(last);
        }
    }
}

fn show(push: Push, json: bool) -> Result<Option<Seq>, Failure> {
    let event = match push {
        Push::Event(event) => event,
        Push::CaughtUp { seq } => return Ok(Some(seq)),
        Push::Detached { .. } | Push::Control { .. } | Push::Stopping { .. } => return Ok(None),
    };
    let line = if json { serde_json::to_string(&event).map_err(|error| Failure::failed(error.to_string()))? } else { words(&event) };
    print(&format!("{line}\n"))?;
    Ok(Some(event.seq))
}

pub fn words(event: &Event) -> String {
    let data = if event.data.as_object().is_some_and(serde_json::Map::is_empty) { String::new() } else { event.data.to_string() };
    let time = event.at.strftime("%Y-%m-%dT%H:%M:%SZ");
    format!(
        "{:>6}  {time}  {}  {}  {}  {}",
        event.seq,
        pad(&visible(&event.name), 16),
        pad(&visible(&event.kind), 12),
        pad(event.author.as_str(), 6),
        visible(&data)
    )
    .trim_end()
    .to_owned()
}
