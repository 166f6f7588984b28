//! The database: one thread, typed calls. The only place with SQL is this module and its files.
//! A change and the events that tell of it are one transaction, announced after commit.

mod agent;
mod attention;
mod calendar;
mod cleanup;
mod clock;
mod command;
mod event;
mod exec;
mod forget;
mod interpreter;
mod launch;
mod life;
mod look;
mod new;
mod open;
mod pause;
mod queue;
mod record;
mod recorded;
mod repair;
mod restore;
mod runtime;
mod schema;
mod search;
mod session;
mod stats;
mod thread;
mod watch;
mod webhook;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, Params, Row, Transaction};
use shared::event::Event;
use shared::filter::Filter;
use shared::id::RuntimeId;
use shared::session::Session;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use crate::clock::Clock;
pub use crate::fact::{Ending, Fact};

pub use cleanup::{Candidate, Old};
pub use clock::steady_clock;
pub use command::Memory;
pub use exec::{Adopted, AskedExec, Begun, Finished, Outcome, RUNTIME_MODE, StoredExec};
pub use interpreter::{Absent, Remembered};
pub use life::{Asked, EndAsked};
pub use look::{look, refuse_newer};
pub use new::{New, Opened, Program};
pub use open::{check_large, open};
pub use pause::{Asleep, Waking};
pub use queue::{Promoted, QueuedLaunch};
pub use recorded::Recorded;
pub use repair::{back_up, drop_backup};
pub use restore::AfterLoss;
pub use runtime::{EndingAt, LiveRuntime, Settles};
pub use search::{ExecFacts, Scope, SearchedEvent, SearchedExec, SearchedRuntime, SearchedSession};
pub use watch::{Burst, Watched};
pub use webhook::{Head, NewWebhook, Settled};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the database was written by a newer version (schema {found}, this one knows {known}): upgrade sessions-tui; nothing was changed"
    )]
    Newer { found: i64, known: i64 },
    #[error("a session called {0} is already there: choose another name, or attach to it")]
    NameTaken(String),
    /// Not allowed in its present status; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// What was asked makes no sense as asked.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    /// Refused in the words and with the code it has for the caller.
    #[error("{0}")]
    Refusal(shared::message::Failure),
    #[error("there is no such session any more")]
    Gone,
    /// The terminal's last program is being ended: when it is gone, ask again.
    #[error("the last program of {name} is being ended: try again in a moment")]
    Ending { name: String, runtime: RuntimeId },
    #[error("there is no such webhook any more")]
    WebhookGone,
    #[error("the disk is full: nothing was stored; free some space and try again")]
    DiskFull,
    #[error("the database: {0}")]
    Sqlite(rusqlite::Error),
    #[error("the database: {0}")]
    Broken(String),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull,
            // what it belongs to was removed meanwhile
            Some(rusqlite::ErrorCode::ConstraintViolation)
                if error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY) =>
            {
                Self::Gone
            }
            _ => Self::Sqlite(error),
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// How much a commit must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// A power cut: lifecycle facts.
    Power,
    /// kill -9 of anything: high-rate rows.
    Process,
}

type Job = Box<dyn FnOnce(&mut Desk) + Send>;

/// What the store's thread works with.
struct Desk {
    connection: Connection,
    /// As the connection is set now: to set it is not for nothing.
    durability: Option<Durability>,
}

/// The callable side of the store; cheap to clone.
#[derive(Clone)]
pub struct StoreHandle {
    jobs: mpsc::Sender<Job>,
    announcements: broadcast::Sender<Event>,
    /// Counts commits: what was read at the same count is still true.
    commits: Arc<AtomicU64>,
    /// The last list that was read; asked for again and again by everyone who watches.
    listed: Arc<Mutex<Option<Listed>>>,
    /// Counts changes of where anything stands: sessions, runtimes, threads. What was found at the same count still stands.
    standings: Arc<AtomicU64>,
    clock: Clock,
    /// Told when a commit queued a delivery or changed what may be sent.
    deliveries_changed: Arc<Notify>,
    /// Somebody is to be told of events: what is queued for them survives a power cut.
    has_webhooks: Arc<AtomicBool>,
}

struct Listed {
    at: u64,
    filter: Filter,
    sessions: Arc<Vec<Session>>,
}

/// Calls waiting for the store thread; more make callers wait, which is what should happen.
const WAITING_CALLS: usize = 256;

/// Events a slow subscriber may be behind before it has to read them from the database.
const ANNOUNCED_EVENTS: usize = 1024;

impl StoreHandle {
    /// Gives the connection to a thread of its own.
    pub fn start(connection: Connection, clock: Clock) -> std::io::Result<Self> {
        let has_webhooks = connection.query_row("SELECT EXISTS (SELECT 1 FROM webhooks)", [], |row| row.get(0)).unwrap_or(true);
        let (jobs, mut waiting) = mpsc::channel::<Job>(WAITING_CALLS);
        let mut desk = Desk { connection, durability: None };
        std::thread::Builder::new().name("store".into()).stack_size(512 << 10).spawn(move || {
            while let Some(job) = waiting.blocking_recv() {
                // an error of ours ends that call, not everybody's: its transaction is rolled back, its caller hears of it
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(&mut desk)));
            }
            // the last handle is gone: leave a database without a log behind
            let _ = desk.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        })?;
        Ok(Self {
            jobs,
            announcements: broadcast::Sender::new(ANNOUNCED_EVENTS),
            commits: Arc::default(),
            standings: Arc::default(),
            listed: Arc::default(),
            clock,
            deliveries_changed: Arc::default(),
            has_webhooks: Arc::new(AtomicBool::new(has_webhooks)),
        })
    }

    /// Events as they are committed, from now on.
    pub fn announcements(&self) -> broadcast::Receiver<Event> {
        self.announcements.subscribe()
    }

    /// Waits until everything asked before is done, so that the daemon may leave.
    pub async fn settle(&self) {
        let _ = self.read(|_| Ok(())).await;
    }

    async fn read<R: Send + 'static>(&self, work: impl FnOnce(&Connection) -> Result<R> + Send + 'static) -> Result<R> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |desk| {
            let _ = answer.send(work(&desk.connection));
        });
        self.jobs.send(job).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// As far as anything has changed that decides where a call goes.
    pub fn standings(&self) -> u64 {
        self.standings.load(Ordering::Acquire)
    }

    /// One transaction; the events it told are announced once it is committed.
    async fn write<R: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&mut Change<'_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let standings = Arc::clone(&self.standings);
        self.write_beside(durability, move |change| {
            let outcome = work(change);
            standings.fetch_add(1, Ordering::Release);
            outcome
        })
        .await
    }

    /// A write after which every session, runtime and thread stands where it stood.
    async fn write_beside<R: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&mut Change<'_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (answer, answered) = oneshot::channel();
        let (announcements, commits) = (self.announcements.clone(), Arc::clone(&self.commits));
        let (clock, deliveries_changed) = (self.clock, Arc::clone(&self.deliveries_changed));
        let durability = if self.has_webhooks.load(Ordering::Relaxed) { Durability::Power } else { durability };
        let job: Job = Box::new(move |desk| {
            let outcome = change(desk, durability, clock, work);
            commits.fetch_add(1, Ordering::Release);
            let outcome = outcome.map(|(result, told)| {
                for event in told.events {
                    // nobody listening is fine
                    let _ = announcements.send(event);
                }
                if told.deliveries_changed {
                    deliveries_changed.notify_one();
                }
                result
            });
            let _ = answer.send(outcome);
        });
        self.jobs.send(job).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

fn stopped() -> Error {
    Error::Broken("the store has stopped".into())
}

/// A transaction under way, with the events that will be announced if it commits.
struct Change<'c> {
    sql: Transaction<'c>,
    events: Vec<Event>,
    clock: Clock,
    /// Whether there is something else to deliver after the commit.
    deliveries_changed: bool,
}

/// Statements are kept ready: most of a short call would be spent on preparing them.
impl Change<'_> {
    fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.sql.prepare_cached(sql)?.execute(params)
    }

    fn query_row<T>(&self, sql: &str, params: impl Params, read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.sql.prepare_cached(sql)?.query_row(params, read)
    }
}

/// What is to be said once a change is committed.
struct Told {
    events: Vec<Event>,
    deliveries_changed: bool,
}

fn change<R>(desk: &mut Desk, durability: Durability, clock: Clock, work: impl FnOnce(&mut Change<'_>) -> Result<R>) -> Result<(R, Told)> {
    if desk.durability != Some(durability) {
        let level = match durability {
            Durability::Power => "FULL",
            Durability::Process => "NORMAL",
        };
        desk.connection.pragma_update(None, "synchronous", level)?;
        desk.durability = Some(durability);
    }
    let sql = desk.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut change = Change { sql, events: Vec::new(), clock, deliveries_changed: false };
    let result = work(&mut change)?;
    let Change { sql, events, deliveries_changed, .. } = change;
    sql.commit()?;
    Ok((result, Told { events, deliveries_changed }))
}

/// Ids of what a removal took with it.
pub struct Removed {
    pub runtimes: Vec<RuntimeId>,
}

/// A time as the database keeps it.
fn micros(at: jiff::Timestamp) -> i64 {
    at.as_microsecond()
}

fn timestamp(micros: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// A stored text that does not parse means a damaged row: said, never guessed.
fn broken(what: &str, text: &str) -> Error {
    Error::Broken(format!("{what} {text:?} is not readable"))
}

/// A value as the database keeps it.
fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Broken(error.to_string()))
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| broken(what, text))
}
