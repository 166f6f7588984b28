//! The dashboard's loop: events in, pure update, effects out, then draw, and only if something changed.

use crossterm::event::{Event as TerminalEvent, EventStream};
use futures_util::StreamExt;
use ratatui::DefaultTerminal;
use shared::filter::Filter;
use shared::message::{Failure, Gone, NewSession, Push, Request};
use shared::paths::Paths;
use shared::replay::Of;
use shared::session::Session;

use crate::app::App;
use crate::attach::{self, Wish};
use crate::client::Client;
use crate::event::{Effect, Event};
use crate::view::{self, Surroundings};
use crate::{connect, environment, replay, tty};

pub async fn dashboard(paths: &Paths) -> Result<(), Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("the dashboard needs a terminal: in scripts use `sessions-tui ls`, or see `sessions-tui --help`"));
    }
    let mut client = watching(paths).await?;
    let mut app = App::default();
    let mut effects = vec![Effect::Refresh];
    loop {
        // the screen is taken for as long as the dashboard shows, and given back for an attachment
        let mut terminal = ratatui::try_init().map_err(|error| Failure::failed(format!("the terminal: {error}")))?;
        let outcome = show(paths, &mut client, &mut app, &mut terminal, std::mem::take(&mut effects)).await;
        ratatui::restore();
        let name = match outcome? {
            Leaves::Quits => return Ok(()),
            Leaves::Attaches(name) => name,
            Leaves::Replays(name) => {
                let of = Of { name, ..Of::default() };
                if let Err(failure) = replay::replay(paths, of, &replay::Start::default()).await {
                    effects.extend(app.update(Event::Failed(failure.message)));
                }
                effects.push(Effect::Refresh);
                continue;
            }
        };
        let prefix = environment::load_config(paths).0.keys.prefix;
        let attached = async {
            let client = connect::connect(paths).await?;
            attach::attach(paths, client, &Wish { language: None, name, read_only: false, prefix }).await
        };
        let event = match attached.await {
            Ok(attach::Left::Detached(sentence) | attach::Left::HadEnded(sentence)) => Event::Said(sentence),
            Err(failure) => Event::Failed(failure.message),
        };
        effects.extend(app.update(event));
        effects.push(Effect::Refresh);
    }
}

/// A connection that hears of every change.
async fn watching(paths: &Paths) -> Result<Client, Failure> {
    let mut client = connect::connect(paths).await?;
    client.call::<shared::id::Seq>(Request::Watch).await?;
    Ok(client)
}

/// Why the list gives the terminal back.
enum Leaves {
    Quits,
    Attaches(String),
    Replays(String),
}

/// Runs until the user wants something else.
async fn show(
    paths: &Paths,
    client: &mut Client,
    app: &mut App,
    terminal: &mut DefaultTerminal,
    mut effects: Vec<Effect>,
) -> Result<Leaves, Failure> {
    let mut keys = EventStream::new();
    let home = std::env::var("HOME").ok();
    loop {
        while !effects.is_empty() {
            for effect in std::mem::take(&mut effects) {
                let event = match perform(client, effect).await {
                    Ok(Done::Event(event)) => event,
                    Ok(Done::Leave(leaves)) => return Ok(leaves),
                    Err(failure) => Event::Failed(failure.message),
                };
                effects.extend(app.update(event));
            }
        }
        let around = Surroundings { now: jiff::Timestamp::now(), home: home.clone() };
        terminal.draw(|frame| view::draw(app, &around, frame)).map_err(|error| Failure::failed(format!("the terminal: {error}")))?;
        let event = tokio::select! {
            key = keys.next() => match key {
                Some(Ok(TerminalEvent::Key(key))) => Event::Key(key),
                Some(Ok(_)) => Event::Resized,
                // the window was closed
                Some(Err(_)) | None => return Ok(Leaves::Quits),
            },
            push = client.push() => match push {
                Ok(Push::Stopping { restart: false }) => return Err(connect::no_daemon("the daemon was stopped; sessions go on".into())),
                Ok(_) => Event::News,
                Err(_) => {
                    *client = watching(paths).await?;
                    Event::News
                }
            },
        };
        effects.extend(app.update(event));
        // whatever else was announced meanwhile is in the same answer
        while client.waiting_push().is_some() {}
    }
}

enum Done {
    Event(Event),
    Leave(Leaves),
}

async fn perform(client: &mut Client, effect: Effect) -> Result<Done, Failure> {
    Ok(match effect {
        Effect::Quit => Done::Leave(Leaves::Quits),
        Effect::Attach(name) => Done::Leave(Leaves::Attaches(name)),
        Effect::Replay(name) => Done::Leave(Leaves::Replays(name)),
        Effect::Refresh => Done::Event(Event::Sessions(client.call(Request::List(Filter::default())).await?)),
        Effect::New => {
            let workspace = std::env::current_dir().map_err(|error| Failure::failed(format!("this folder cannot be used: {error}")))?;
            let request = NewSession {
                here: workspace.to_string_lossy().into_owned(),
                environment: environment::inherited(),
                size: tty::window(),
                umask: Some(environment::umask()),
                ..NewSession::default()
            };
            let session: Session = client.call(Request::New(request)).await?;
            Done::Leave(Leaves::Attaches(session.id.to_string()))
        }
        Effect::Kill(name) => {
            let session: Session = client.call(Request::Kill { name }).await?;
            Done::Event(Event::Said(format!("{} is {}", session.name, session.status)))
        }
        Effect::Remove(name) => {
            let gone: Gone = client.call(Request::Remove { name }).await?;
            Done::Event(Event::Said(format!("{} is removed", gone.name)))
        }
    })
}
