//! The connection of the terminal beside the list: one task for each, which ends with its handle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::config::Prefix;
use shared::message::{Attach, Attached, Failure, Push, Request};
use shared::paths::Paths;
use shared::screen::Size;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use crate::client::{Client, Incoming};
use crate::dashboard::event::{Event, PaneNews, PaneOrder, Turn};
use crate::dashboard::state::ledger::Ledger;
use crate::{connect, environment};

/// Orders that wait: a program that takes no input makes the typist wait, not the dashboard.
const ORDERS: usize = 256;

/// What is typed and may not have arrived yet. It outlives a connection that breaks.
#[derive(Clone, Default)]
pub struct Typed(Arc<(Mutex<Ledger>, Notify)>);

impl Typed {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, more: &[u8]) {
        self.ledger().push(more);
        self.0.1.notify_one();
    }

    /// Waits until there is something to send.
    async fn some(&self) {
        while self.ledger().unsent().is_empty() {
            self.0.1.notified().await;
        }
    }

    async fn send(&self, client: &mut Client) -> std::io::Result<()> {
        let bytes = self.ledger().unsent().to_vec();
        client.input(&bytes).await?;
        self.ledger().sent(bytes.len());
        Ok(())
    }
}

pub struct Wish {
    pub name: String,
    pub size: Size,
    pub watches: bool,
    pub prefix: Prefix,
}

pub struct Handle {
    name: String,
    typed: Typed,
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
        match order {
            PaneOrder::Type(bytes) => self.typed.push(&bytes),
            // one that cannot be taken now is followed by another
            order => {
                let _ = self.orders.try_send(order);
            }
        }
        tokio::task::yield_now().await;
    }

    /// For the next connection to the same session.
    pub fn untyped(&self, name: &str) -> Typed {
        if self.name == name { self.typed.clone() } else { Typed::default() }
    }
}

pub fn open(paths: &Paths, turn: Turn, wish: Wish, typed: Typed, said: mpsc::Sender<Event>) -> Handle {
    let (orders, taken) = mpsc::channel(ORDERS);
    let paths = paths.clone();
    let request = Attach {
        name: wish.name.clone(),
        language: None,
        size: wish.size,
        read_only: false,
        watching: wish.watches,
        inside: environment::own_session(),
        prefix: wish.prefix,
        // cells are drawn here: the terminal is not for the daemon to write to
        tty: None,
        environment: Some(environment::inherited()),
        stream: Some(typed.ledger().stream()),
    };
    let pending = typed.clone();
    let task = tokio::spawn(async move {
        let news = match follow(&paths, turn, request, taken, &pending, &said).await {
            Ok(End::Lost) => PaneNews::Lost,
            Ok(End::Stopped) => PaneNews::Stopped,
            Err(failure) => PaneNews::Refused(failure.message),
        };
        let _ = said.send(Event::Pane(turn, news)).await;
    });
    Handle { name: wish.name, typed, orders, task: task.abort_handle() }
}

/// How a connection ends that was not refused.
enum End {
    Lost,
    Stopped,
}

/// What a daemon that is gone said before: that it was asked to stop, or nothing.
async fn last_word(client: &mut Client) -> End {
    loop {
        match client.receive().await {
            Ok(Incoming::Push(Push::Stopping { restart: false })) => return End::Stopped,
            Ok(_) => {}
            Err(_) => return End::Lost,
        }
    }
}

async fn follow(
    paths: &Paths,
    turn: Turn,
    request: Attach,
    mut orders: mpsc::Receiver<PaneOrder>,
    typed: &Typed,
    said: &mpsc::Sender<Event>,
) -> Result<End, Failure> {
    let mut client = connect::connect(paths).await?;
    let Ok(call) = client.send(Request::Attach(request)).await else { return Ok(last_word(&mut client).await) };
    let mut is_attached = false;
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => {
                let sent = match order {
                    Some(PaneOrder::Resize(size)) => client.send(Request::Resize { size }).await.map(|_| ()),
                    Some(PaneOrder::TakeControl) => client.send(Request::TakeControl).await.map(|_| ()),
                    Some(PaneOrder::Open { .. } | PaneOrder::Close | PaneOrder::Type(_)) | None => return std::future::pending().await,
                };
                if sent.is_err() {
                    return Ok(last_word(&mut client).await);
                }
            }
            () = typed.some(), if is_attached => {
                if typed.send(&mut client).await.is_err() {
                    return Ok(last_word(&mut client).await);
                }
            }
            incoming = client.receive() => {
                let news = match incoming {
                    Ok(Incoming::Output(bytes)) => PaneNews::Output(bytes),
                    Ok(Incoming::Answer(answer)) if answer.id == call => {
                        is_attached = true;
                        let attached = answer.understand::<Attached>()?;
                        typed.ledger().attached(attached.runtime, attached.taken);
                        PaneNews::Attached(Box::new(attached))
                    }
                    Ok(Incoming::Push(Push::Taken { bytes })) => {
                        typed.ledger().taken(bytes);
                        continue;
                    }
                    Ok(Incoming::Push(Push::Control { held })) => PaneNews::Control(held),
                    Ok(Incoming::Push(Push::Detached { why, .. })) => PaneNews::Detached(why),
                    Ok(Incoming::Push(Push::Stopping { restart: false })) => return Ok(End::Stopped),
                    Ok(Incoming::Push(Push::Stopping { restart: true })) | Err(_) => return Ok(End::Lost),
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
