//! events: what happened, and what happens.

use shared::event::Event;
use shared::id::Seq;
use shared::message::{Failure, Push, Request, Told};
use shared::paths::Paths;
use shared::text::{fit, pad, visible};

use super::print_on;
use crate::client::Incoming;
use crate::connect;

pub async fn events(paths: &Paths, name: Option<String>, since: Option<Seq>, follow: bool, json: bool) -> Result<(), Failure> {
    let mut last = since;
    let mut who = name;
    loop {
        let mut client = connect::connect(paths).await?;
        let sent = client.send(Request::Events { name: who.clone(), since: last, follow }).await;
        let Ok(call) = sent else { continue };
        // printed as they come: there may be millions. A daemon that went away is started again, and told where we were:
        // nothing is missed, nothing comes twice
        while let Ok(incoming) = client.receive().await {
            match incoming {
                Incoming::Push(Push::Stopping { restart: false }) => return Err(connect::no_daemon("the daemon was stopped".into())),
                Incoming::Push(push) => {
                    let seq = match &push {
                        Push::Event(event) => Some(event.seq),
                        Push::CaughtUp { seq } => Some(*seq),
                        _ => None,
                    };
                    if !show(push, json)? {
                        return Ok(());
                    }
                    last = seq.or(last);
                }
                Incoming::Answer(answer) if answer.id == call || answer.id == 0 => {
                    let told: Told = answer.understand()?;
                    // by its id from now on: a name may go to another
                    who = told.session.map(|session| session.to_string()).or(who);
                    if !follow {
                        return Ok(());
                    }
                }
                Incoming::Answer(_) | Incoming::Output(_) => {}
            }
        }
    }
}

/// Prints an event; `false` when nobody reads any more.
fn show(push: Push, json: bool) -> Result<bool, Failure> {
    let Push::Event(event) = push else { return Ok(true) };
    let line = match super::session::width() {
        _ if json => super::json_line(&event)?,
        Some(width) => fit(&words(&event), width),
        None => words(&event),
    };
    print_on(&format!("{line}\n"))
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
