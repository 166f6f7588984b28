//! What is answered to requests, beside the words themselves.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::KnownAgent;
use crate::attention::Explanation;
use crate::command::Command;
use crate::event::Event;
use crate::exec::{ExecResult, HistoryEntry, OutputPage, ResetDone, States};
use crate::id::{RuntimeId, Seq, SessionId, ThreadId};
use crate::lease::Lease;
use crate::live::{Calendar, Pulse, Sight};
use crate::replay::{Moment, Outline, Records};
use crate::request::Request;
use crate::runtime::Runtime;
use crate::screen::Size;
use crate::search::{Hit, SearchSummary};
use crate::session::{Session, Status};
use crate::stats::{AuditLine, Cleaned, Disk, Group, Stats};
use crate::terminal::Terminal;
use crate::thread::Thread;
use crate::watch::ChangedFiles;
use crate::webhook::{Delivery, Webhook};

/// A request, as far as its answer goes.
pub trait Answered {
    /// What `ok` is.
    type Ok: Serialize + DeserializeOwned + JsonSchema;
}

/// What each request is answered with. The daemon can answer nothing else ([`Answer::to`](crate::message::Answer::to)), and a
/// request that is not here does not compile.
macro_rules! answers {
    ($($request:ident: $ok:ty,)*) => {
        /// Requests as types, to name the answer to one.
        pub mod to {
            $(pub enum $request {})*
        }
        $(impl Answered for to::$request {
            type Ok = $ok;
        })*
        const _: fn(&Request) = |request| match request {
            $(Request::$request { .. } => {})*
        };
        /// The schema of each answer, by the name of its request as it is written here.
        pub(crate) const SCHEMAS: &[(&str, fn(&mut SchemaGenerator) -> Schema)] =
            &[$((stringify!($request), |generator| generator.subschema_for::<$ok>()),)*];
    };
}

answers! {
    New: Changed,
    List: Vec<Session>,
    Rows: Vec<Session>,
    Show: Layers,
    Rename: Session,
    Kill: Changed,
    Pause: Changed,
    Resume: Changed,
    Restore: Vec<Restored>,
    Complete: Changed,
    Fail: Changed,
    Reset: Changed,
    Iterate: Changed,
    Tell: Changed,
    ToolCall: Changed,
    Learn: Changed,
    Context: Resumption,
    Exec: ExecResult,
    Result: ExecResult,
    Output: OutputPage,
    Cancel: ExecResult,
    State: States,
    History: Vec<HistoryEntry>,
    Commands: Vec<Command>,
    Files: ChangedFiles,
    Hook: (),
    Explain: Explanation,
    Agents: Vec<KnownAgent>,
    ResetRuntime: ResetDone,
    Search: SearchSummary,
    Find: Option<Hit>,
    Stats: Stats,
    Cleanup: Cleaned,
    Audit: Vec<AuditLine>,
    Groups: Vec<Group>,
    SetGroup: Group,
    UnsetGroup: Group,
    AddWebhook: Webhook,
    Webhooks: Vec<Webhook>,
    RemoveWebhook: Webhook,
    EnableWebhook: Webhook,
    TestWebhook: Delivery,
    Deliveries: Vec<Delivery>,
    Remove: Gone,
    Send: (),
    Screen: ScreenShot,
    Wait: Waited,
    Attach: Attached,
    Forget: Forgotten,
    // the session, once the recording has ended
    Import: Option<Changed>,
    Disk: Disk,
    Replay: Outline,
    Seek: Moment,
    Records: Records,
    Scrolled: Vec<Line>,
    Pulse: Vec<Pulse>,
    Look: Sight,
    Seen: (),
    Dismiss: (),
    Calendar: Calendar,
    // how many attachments it ended
    Detach: usize,
    Resize: (),
    TakeControl: (),
    KeyHelp: (),
    // whether the terminal was left in its alternate screen
    Leave: Option<bool>,
    Events: Told,
    Recent: Vec<Event>,
    // the last event before those that follow
    Watch: Seq,
    Status: DaemonStatus,
    Settings: SettingsNow,
    Stop: Stopped,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attached {
    pub session: SessionId,
    pub name: String,
    pub control: bool,
    /// The daemon reads and writes the client's terminal itself.
    pub direct: bool,
    /// How the program ended, when there is only its last screen to show.
    pub ended: Option<String>,
    /// Whoever counts what it types: in which runtime, and how much of it arrived there. What is typed next is counted from there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime: Option<RuntimeId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub taken: Option<u64>,
}

/// A session after what was asked, and what the caller should know about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    #[serde(flatten)]
    pub session: Session,
    /// What a person should be told beyond the new state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    /// The session that was meant, if a fresh one had to take its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub previous: Option<Previous>,
}

/// A thread that was taken away, with everything below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gone {
    pub name: String,
}

/// What was forgotten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forgotten {
    pub session: SessionId,
    pub name: String,
    /// What it took on disk.
    pub bytes: u64,
    /// What is still there, for a person: the screen of a session that goes on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

/// What the answer to `Events` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// The last event that was told.
    pub seq: Seq,
    /// The session that was meant: its name may change.
    pub session: Option<SessionId>,
}

/// A session that cannot go on, in whose place a fresh one was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Previous {
    pub id: SessionId,
    pub thread: ThreadId,
    pub name: String,
    pub status: Status,
    pub status_reason: Option<String>,
    pub error: Option<String>,
    pub last_activity_at: jiff::Timestamp,
}

impl Previous {
    pub fn of(session: &Session) -> Self {
        Self {
            id: session.id,
            thread: session.thread,
            name: session.name.clone(),
            status: session.status,
            status_reason: session.status_reason.clone(),
            error: session.error.clone(),
            last_activity_at: session.last_activity_at,
        }
    }

    /// What happened to it, for a person.
    pub fn sentence(&self) -> String {
        let why = self.error.as_deref().unwrap_or("it was lost");
        format!("session {} cannot go on: {why}; last activity {}", self.id, self.last_activity_at)
    }
}

/// Everything needed to go on with a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resumption {
    pub id: SessionId,
    pub name: String,
    pub workspace: String,
    /// The folder its terminal was left in.
    pub cwd: Option<String>,
    pub mode: Option<String>,
    pub task: Option<String>,
    pub status: Status,
    pub status_reason: Option<String>,
    pub iterations: u64,
    pub max_iterations: u64,
    pub context: Value,
    pub metadata: Value,
    pub result: Option<String>,
    pub error: Option<String>,
    /// Newest last.
    pub recent_events: Vec<Event>,
    pub resumable: bool,
    /// Why, or why not, and what to do.
    pub reason: String,
    /// The session that was meant, if a fresh one had to take its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub previous: Option<Previous>,
}

/// All layers of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layers {
    pub thread: Thread,
    pub session: Session,
    /// Every session of the thread, newest first.
    pub sessions: Vec<SessionLine>,
    pub terminals: Vec<Terminal>,
    pub runtimes: Vec<Runtime>,
    pub leases: Vec<Lease>,
    /// Why the session is thought to be in its state, the strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub evidence: Vec<crate::attention::Clue>,
    /// Whether changes of files in the workspace are noticed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watch: Option<crate::watch::Watching>,
}

/// A session of a thread in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionLine {
    pub id: SessionId,
    pub status: Status,
    pub status_reason: Option<String>,
    pub task: Option<String>,
    /// Tasks given to this session.
    pub task_count: u64,
    pub created_at: jiff::Timestamp,
    pub last_activity_at: jiff::Timestamp,
    pub ended_at: Option<jiff::Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenShot {
    pub size: Size,
    pub cursor: (u16, u16),
    pub cursor_visible: bool,
    pub alternate: bool,
    pub title: String,
    /// Lines that scrolled away, oldest first.
    pub scrollback: Vec<Line>,
    pub rows: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    pub text: String,
    pub ansi: String,
    pub wrapped: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    pub pid: u32,
    pub version: String,
    pub protocol: u32,
    pub started_at: jiff::Timestamp,
    pub live_sessions: u32,
    pub clients: u32,
    pub socket: String,
    pub state_dir: String,
    pub log: String,
    /// What a user should know: a suspended recording, a database set aside.
    pub warnings: Vec<String>,
}

/// The settings a daemon holds to, and what is wrong with their files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsNow {
    pub config: crate::config::Config,
    pub wrong: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Sessions that go on without the daemon.
    pub going_on: u32,
    pub ended: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    pub status: Status,
    pub exit: Option<crate::runtime::ExitStatus>,
}

/// What came of restoring a lost session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    pub name: String,
    pub lost: SessionId,
    /// The session that took its place.
    pub session: Option<Session>,
    /// Why there is none.
    pub error: Option<String>,
}
