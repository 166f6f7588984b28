//! What can be asked of a runtime's task, as the messages to it.

use std::sync::Arc;

use shared::config::Prefix;
use shared::event::Author;
use shared::exec::Verb;
use shared::id::{ExecId, Offset};
use shared::message::{Detached, Failure, ScreenShot};
use shared::runtime::ExitStatus;
use shared::screen::{Keyframe, Size};
use tokio::sync::oneshot;

use super::exec::Live;
use crate::attachment::Outbox;
use crate::holder::wire::Frozen;
use crate::language::Names;

/// What others may ask of a runtime.
pub enum Ask {
    Attach {
        outbox: Arc<Outbox>,
        window: Size,
        joins: Joins,
        room: Room,
        prefix: Prefix,
        stream: Option<Place>,
        answer: oneshot::Sender<(ClientId, bool)>,
    },
    Detach(ClientId, oneshot::Sender<Option<bool>>),
    DetachAll(oneshot::Sender<usize>),
    Input {
        from: Typist,
        keep: Keep,
        bytes: Vec<u8>,
        taken: oneshot::Sender<Result<(), Failure>>,
    },
    Resize(ClientId, Size),
    TakeControl(ClientId),
    KeyHelp(ClientId),
    Shot(oneshot::Sender<(ScreenShot, Offset)>),
    /// The screen for a preview; nothing if it is the one that was seen at `after`.
    Look {
        after: Option<Offset>,
        answer: oneshot::Sender<(Offset, Option<Keyframe>)>,
    },
    /// Somebody has looked: what it needs may be something else now.
    Seen,
    /// A person dismisses what it asks.
    Dismiss,
    /// An agent's hook was called in it: which agent it is, and what it says.
    Hooked(String, Option<crate::attention::Hooked>),
    WaitText {
        pattern: regex::Regex,
        found: oneshot::Sender<()>,
    },
    WaitPrompt(oneshot::Sender<()>),
    Terminate {
        grace_ms: u32,
        author: Author,
    },
    /// What was recorded so far is to go; whether the holder could be told.
    Forget(oneshot::Sender<bool>),
    /// The user renamed the thread.
    Renamed(String),
    /// It is to stand still or to go on, as the database says; answered when it does.
    SettleFreezing(oneshot::Sender<Result<Option<Frozen>, Failure>>),
    /// Why it stands still on, for whoever looks at it.
    Notice(String),
    Call(Calling),
    /// Interrupts a call or takes it out of the queue.
    Cancel(ExecId),
    Names(oneshot::Sender<Names>),
}

pub type ClientId = u64;

/// What a client wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    InControl,
    /// May take control later.
    Watching,
    ReadOnly,
}

/// What is on a client's terminal when it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// What the user had there: it is to be found in the scrollback afterwards.
    OfUser,
    /// Another session, in whose place this one comes.
    OfSession,
    /// Nothing that matters: room has been made.
    Made,
}

/// A place in the bytes of a client that counts them: which stream, and how many were before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub stream: u64,
    pub at: u64,
}

/// Where input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typist {
    Client(ClientId),
    /// `send` and its like, which need no control.
    Api,
}

/// How a runtime ended, for whoever waits for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub sentence: String,
    pub exit: Option<ExitStatus>,
}

impl Ended {
    /// The exit code a shell would show.
    pub fn exit_code(&self) -> i32 {
        match self.exit {
            Some(ExitStatus::Code(code)) => code,
            Some(ExitStatus::Signal(signal)) => 128 + signal,
            None => 1,
        }
    }

    pub fn push(&self) -> Detached {
        Detached::Ended { sentence: self.sentence.clone(), exit_code: self.exit_code() }
    }
}

/// A call on its way.
pub struct Calling {
    pub live: Arc<Live>,
    pub verb: Verb,
    pub code: String,
    pub stdin: Option<String>,
    pub timeout_ms: Option<u64>,
    /// What is to be said of the runtime before this one, if the call is the first of a fresh one.
    pub restarted: Option<String>,
    /// Its caller's environment, should it need another runtime.
    pub environment: Arc<Vec<(String, String)>>,
}

/// Whether input is to wait until it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    No,
    UntilItGoesOn,
}
