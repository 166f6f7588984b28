//! A search has a connection of its own: dropping it ends the search in the daemon too.

use shared::message::{Failure, Push, Request};
use shared::paths::Paths;
use shared::search::{SearchQuery, SearchSummary};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::client::Incoming;
use crate::connect;
use crate::dashboard::event::{Event, Turn};

pub fn begin(paths: &Paths, turn: Turn, query: Box<SearchQuery>, said: mpsc::Sender<Event>) -> AbortHandle {
    let paths = paths.clone();
    let task = tokio::spawn(async move {
        let outcome = follow(&paths, turn, query, &said).await;
        let _ = said.send(Event::Found(turn, outcome.map_err(|failure| failure.message))).await;
    });
    task.abort_handle()
}

async fn follow(paths: &Paths, turn: Turn, query: Box<SearchQuery>, said: &mpsc::Sender<Event>) -> Result<SearchSummary, Failure> {
    let lost = |error: std::io::Error| Failure::failed(format!("the daemon went away: {error}; search again"));
    let mut client = connect::connect(paths).await?;
    let call = client.send(Request::Search(query)).await.map_err(lost)?;
    loop {
        let event = match client.receive().await.map_err(lost)? {
            Incoming::Answer(answer) if answer.id == call => return answer.understand(),
            Incoming::Push(Push::Hit { hit, .. }) => Event::Hit(turn, hit),
            Incoming::Push(Push::SearchProgress { searched, total, .. }) => Event::Searched { turn, done: searched, total },
            Incoming::Push(_) | Incoming::Answer(_) | Incoming::Output(_) => continue,
        };
        if said.send(event).await.is_err() {
            return Ok(SearchSummary::default());
        }
    }
}
