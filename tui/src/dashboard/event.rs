//! What can happen to the dashboard, and what it can want. Both closed.

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;
use shared::exec::{ExecResult, HistoryEntry, Language, States};
use shared::id::{Offset, RuntimeId, SessionId};
use shared::live::{Calendar, Pulse, Sight};
use shared::message::{Attached, Detached, Failure, Layers, Request};
use shared::replay::{Moment, Outline};
use shared::screen::Size;
use shared::search::{Hit, Pattern, SearchQuery, SearchSummary};
use shared::session::Session;
use shared::stats::{Disk, Stats};

use crate::dashboard::state::act::Deed;
use crate::dashboard::state::remembered::Remembered;
use crate::export::Format;
use crate::replay;
use crate::settings::Look;

/// Which of several tries an answer belongs to; those of earlier ones come too late.
pub type Turn = u64;

#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resized(Rect),
    /// So long since some beginning, and the wall clock; comes before every other event, and when the time that was asked
    /// for has come.
    Time {
        now: Duration,
        at: jiff::Timestamp,
    },
    Answer(Asked, Box<Reply>),
    /// What was asked for cannot be had.
    Refused(Asked, Failure),
    /// Something was announced.
    Told(Box<shared::event::Event>),
    /// The daemon is gone; another one is being started.
    Lost,
    Back,
    /// The daemon was stopped on purpose.
    Stopped,
    /// There is none, and none can be started.
    NoDaemon(String),
    /// Somebody else has started one.
    Daemon,
    Pane(Turn, PaneNews),
    Hit(Turn, Box<Hit>),
    Searched {
        turn: Turn,
        done: u64,
        total: u64,
    },
    Found(Turn, Result<SearchSummary, String>),
    /// A file that is being written, in parts of a thousand.
    Exported(Turn, u64),
    /// What came of it, in a sentence.
    Wrote(Turn, Result<String, String>),
    /// The terminal is ours again.
    Left(Result<String, String>),
    /// To be said: what is wrong with the settings.
    Complaint(String),
    /// The settings have changed; without a look, what was there stays.
    Settings {
        look: Option<Box<Look>>,
        wrong: Vec<String>,
    },
}

/// What a terminal inside the dashboard has to say.
#[derive(Debug)]
pub enum PaneNews {
    Attached(Box<Attached>),
    Output(Vec<u8>),
    Control(bool),
    Detached(Detached),
    Refused(String),
    /// Its connection is gone.
    Lost,
    /// The daemon was stopped on purpose.
    Stopped,
}

/// What was asked, to understand the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    List,
    Rows(Vec<SessionId>),
    Pulse(Turn),
    Look(SessionId),
    Seen,
    New(Then),
    Deed(Turn, SessionId, Deed),
    Exec(Turn),
    Cancel,
    Layers(SessionId),
    States(SessionId),
    Events(SessionId),
    Calls(SessionId),
    Marks(SessionId),
    Files(SessionId),
    Open(Box<Opens>),
    /// Of the time machine that is open.
    Time(Turn, replay::Asked),
    Moment(Turn),
    Stats,
    Calendar,
    Disk,
}

/// What to do with a session that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Attach,
    Stay,
}

/// How a recording is opened.
#[derive(Clone, Debug, PartialEq)]
pub enum Opens {
    Player {
        at: Option<Where>,
        pattern: Option<Pattern>,
    },
    /// What scrolled away, beside the list.
    History,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Where {
    Offset(Offset),
    Moment(jiff::Timestamp),
}

#[derive(Debug)]
pub enum Reply {
    Sessions(Vec<Session>),
    Session(Box<Session>),
    Pulses(Vec<Pulse>),
    Sight(Sight),
    /// Done; what the daemon says beyond that.
    Done(Option<String>),
    Exec(Box<ExecResult>),
    Layers(Box<Layers>),
    States(States),
    Events(Vec<shared::event::Event>),
    Calls(Vec<HistoryEntry>),
    Outline(Outline),
    Files(shared::watch::ChangedFiles),
    Time(replay::Event),
    Moment(Moment),
    Stats(Box<Stats>),
    Calendar(Calendar),
    Disk(Disk),
}

#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "short-lived, and most of them are the large one")]
pub enum Effect {
    Ask(Asked, Request),
    /// Starts a program as if from this terminal.
    New(Box<shared::message::NewSession>, Then),
    /// Runs code in an interpreter of a session, which is started as if from this terminal.
    Exec {
        turn: Turn,
        session: SessionId,
        language: Language,
        code: String,
    },
    /// The whole window becomes the session's terminal.
    Attach {
        name: String,
        watches: bool,
    },
    Pane(PaneOrder),
    Search(Turn, Box<SearchQuery>),
    StopSearch,
    Export {
        turn: Turn,
        name: String,
        format: Format,
        file: PathBuf,
        overwrites: bool,
    },
    /// Into the clipboard of the user's terminal.
    Copy(String),
    /// The user's terminal is to tell this, wherever they look.
    Notify(String),
    Remember(Box<Remembered>),
    /// Reach a daemon again, starting one.
    Connect,
    /// Whether somebody has started a daemon.
    Peek,
    Quit,
}

#[derive(Debug, PartialEq)]
pub enum PaneOrder {
    Open { turn: Turn, name: String, size: Size, watches: bool },
    Type(Vec<u8>),
    Resize(Size),
    TakeControl,
    Close,
}

/// Which recording a hit or a mark is in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    pub runtime: RuntimeId,
    pub at: Where,
}
