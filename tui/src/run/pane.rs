//! The connection of the terminal beside the list: one task for each, which ends with its handle.

use shared::config::Prefix;
use shared::message::{Attach, Attached, Failure, Push, Request};
use shared::paths::Paths;
use shared::screen::Size;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::client::Incoming;
use crate::event::{Event, PaneNews, PaneOrder, Turn};
use crate::{connect, environment};

/// Orders that wait: a program that takes no input makes the typist wait, not the dashboard.
const ORDERS: usize = 256;

pub struct Handle {
    orders: mpsc::Sender<PaneOrder>,
    task: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Handle {
    pub async fn order(&self, order: PaneOrder) {
        // what cannot be taken now is lost, as keys are in a full terminal
        let _ = self.orders.try_send(order);
        tokio::task::yield_now().await;
    }
}

pub fn open(paths: &Paths, turn: Turn, name: String, size: Size, watches: bool, prefix: Prefix, said: mpsc::Sender<Event>) -> Handle {
    let (orders, taken) = mpsc::channel(ORDERS);
    let paths = paths.clone();
    let request = Attach {
        name,
        language: None,
        size,
        read_only: watches,
        watching: false,
        inside: environment::own_session(),
        prefix,
        // cells are drawn here: the terminal is not for the daemon to write to
        tty: None,
    };
    let task = tokio::spawn(async move {
        let end = follow(&paths, turn, request, taken, &said).await;
        let news = match end {
            Ok(()) => PaneNews::Lost,
            Err(failure) => PaneNews::Refused(failure.message),
        };
        let _ = said.send(Event::Pane(turn, news)).await;
    });
    Handle { orders, task: task.abort_handle() }
}

/// `Ok` when the connection is gone.
async fn follow(
    paths: &Paths,
    turn: Turn,
    request: Attach,
    mut orders: mpsc::Receiver<PaneOrder>,
    said: &mpsc::Sender<Event>,
) -> Result<(), Failure> {
    let mut client = connect::connect(paths).await?;
    let Ok(call) = client.send(Request::Attach(request)).await else { return Ok(()) };
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => {
                let sent = match order {
                    Some(PaneOrder::Type(bytes)) => client.input(&bytes).await,
                    Some(PaneOrder::Resize(size)) => client.send(Request::Resize { size }).await.map(|_| ()),
                    Some(PaneOrder::TakeControl) => client.send(Request::TakeControl).await.map(|_| ()),
                    Some(PaneOrder::Open { .. } | PaneOrder::Close) | None => return std::future::pending().await,
                };
                if sent.is_err() {
                    return Ok(());
                }
            }
            incoming = client.receive() => {
                let news = match incoming {
                    Ok(Incoming::Output(bytes)) => PaneNews::Output(bytes),
                    Ok(Incoming::Answer(answer)) if answer.id == call => PaneNews::Attached(Box::new(answer.understand::<Attached>()?)),
                    Ok(Incoming::Push(Push::Control { held })) => PaneNews::Control(held),
                    Ok(Incoming::Push(Push::Detached { why, .. })) => PaneNews::Detached(why),
                    Ok(Incoming::Push(Push::Stopping { .. })) | Err(_) => return Ok(()),
                    Ok(Incoming::Push(_) | Incoming::Answer(_)) => continue,
                };
                let is_over = matches!(news, PaneNews::Detached(_));
                if said.send(Event::Pane(turn, news)).await.is_err() || is_over {
                    return std::future::pending().await;
                }
            }
        }
    }
}
