//! What can be asked of the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Hook;
use crate::attention::Attention;
use crate::config::Prefix;
use crate::exec::{ExecCall, Language, Place, Stream};
use crate::filter::Filter;
use crate::id::{ExecId, Offset, RuntimeId, Seq, SessionId};
use crate::live::{Look, PulseOf};
use crate::policy::Limit;
use crate::replay::{self, Seek};
use crate::runtime::Keeps;
use crate::screen::Size;
use crate::search::{Pattern, SearchQuery};
use crate::session::Status;
use crate::terminal::TerminalKind;
use crate::watch::{Since, WatchMode};
use crate::webhook::Hears;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "requests come one at a time and are never kept in lists")]
pub enum Request {
    New(NewSession),
    List(Filter),
    /// These sessions as they are now, for whoever keeps a list; those that are gone are left out.
    Rows {
        sessions: Vec<SessionId>,
    },
    Show {
        name: String,
    },
    Rename {
        name: String,
        new: String,
    },
    /// Ends the program and the session, by its exact name or id; a queued one is cancelled.
    Kill {
        name: String,
    },
    Pause(Pause),
    Resume(Resume),
    /// Starts the programs of lost sessions again; of all that can be, without names. Answered with a `Restored` for each.
    Restore {
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        environment: Option<Vec<(String, String)>>,
    },
    Complete {
        name: String,
        result: Option<String>,
    },
    Fail {
        name: String,
        error: String,
    },
    /// Ends the session and forgets what its terminals remember.
    Reset {
        name: String,
    },
    Iterate {
        name: String,
        #[serde(default)]
        data: Value,
    },
    /// A fact in the caller's own words.
    Tell {
        name: String,
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        data: Value,
    },
    ToolCall {
        name: String,
        tool: String,
        #[serde(default)]
        input: Value,
        #[serde(default)]
        output: Value,
    },
    Learn {
        name: String,
        text: String,
        file: Option<String>,
    },
    /// Everything needed to go on; first merges what is given into context and metadata.
    Context {
        name: String,
        #[serde(default)]
        set: Value,
        #[serde(default)]
        metadata: Value,
    },
    /// A structured call to an interpreter; answered with an `ExecResult`.
    Exec(ExecCall),
    /// An exec's result; waits for its end for this long, if at all.
    Result {
        exec: ExecId,
        wait_ms: Option<u64>,
        output_limit: Option<u64>,
        /// Output is pushed from its beginning on.
        #[serde(default)]
        stream: bool,
    },
    /// A part of what a call printed.
    Output {
        exec: ExecId,
        stream: Stream,
        #[serde(default)]
        offset: u64,
        limit: Option<u64>,
    },
    /// Interrupts a call, or takes it out of the queue.
    Cancel {
        exec: ExecId,
    },
    /// What runtimes have in them.
    State {
        #[serde(flatten)]
        place: Place,
        language: Option<Language>,
        history: Option<u32>,
        /// Values of secret-looking names too.
        #[serde(default)]
        reveal: bool,
    },
    /// The calls of a place, newest last.
    History {
        #[serde(flatten)]
        place: Place,
        language: Option<Language>,
        limit: Option<u32>,
    },
    /// Commands that were typed into a session's shell, newest last.
    Commands {
        name: String,
        limit: Option<u32>,
    },
    /// Files of its workspace that changed while it was active, newest first; answered with `ChangedFiles`.
    Files {
        name: String,
        #[serde(default)]
        since: Since,
        limit: Option<u32>,
        /// Also what happened just now; without it, what has been told.
        #[serde(default)]
        at_once: bool,
    },
    /// An agent's hook was called.
    Hook(Hook),
    /// Why a session is thought to be in its state; answered with an `Explanation`.
    Explain {
        name: String,
    },
    /// Agents that are known.
    Agents,
    /// Fresh processes and clean state for the runtimes of a place, or for one language of it.
    ResetRuntime {
        #[serde(flatten)]
        place: Place,
        language: Option<Language>,
    },
    /// Hits are pushed, newest first; answered with a `SearchSummary` when all is searched.
    Search(Box<SearchQuery>),
    /// The next match in one recording after an offset, or the last one before it; answered with a hit or nothing.
    Find {
        runtime: RuntimeId,
        #[serde(flatten)]
        pattern: Pattern,
        /// As in hits: the end of a frame.
        from: Offset,
        #[serde(default)]
        forward: bool,
    },
    Stats(Filter),
    Cleanup(Cleanup),
    /// What stays of sessions that were cleaned up.
    Audit {
        thread: Option<String>,
        limit: Option<u32>,
    },
    Groups,
    SetGroup {
        name: String,
        limit: u64,
    },
    /// Forgets what `SetGroup` said.
    UnsetGroup {
        name: String,
    },
    AddWebhook {
        url: String,
        #[serde(default)]
        filter: Hears,
        secret: Option<String>,
    },
    Webhooks,
    RemoveWebhook {
        webhook: String,
    },
    /// Sends again to an endpoint that was disabled.
    EnableWebhook {
        webhook: String,
    },
    /// One delivery, now.
    TestWebhook {
        webhook: String,
    },
    Deliveries {
        webhook: String,
        limit: Option<u32>,
    },
    Remove {
        name: String,
    },
    Send {
        name: String,
        bytes: String,
        /// For what is paused: kept until it goes on, instead of refused.
        #[serde(default)]
        queue_input: bool,
    },
    Screen {
        name: String,
        #[serde(default)]
        scrollback: u32,
        /// The transcript of this language's runtime instead of the program's screen.
        #[serde(default)]
        language: Option<Language>,
    },
    Wait {
        name: String,
        condition: Condition,
        timeout_ms: Option<u64>,
    },
    Attach(Attach),
    /// Takes a session's recordings away for good, with the words of its calls; its record stays.
    Forget {
        name: String,
    },
    /// A recording from elsewhere becomes a session that has ended: beginning, records, end.
    Import(Import),
    /// What recordings take on disk.
    Disk(Filter),
    /// A recording from outside: its length, where things happened, its marks.
    Replay(replay::Of),
    /// The screen at a moment of a recording.
    Seek {
        runtime: RuntimeId,
        #[serde(flatten)]
        seek: Seek,
    },
    /// What was recorded from an edge of a frame on, about `most` bytes of it.
    Records {
        runtime: RuntimeId,
        from: Offset,
        most: Option<u32>,
        /// At the end of a live recording: waits this long for more.
        wait_ms: Option<u64>,
    },
    /// Lines that had left the top of the screen at a position of a recording: the last `most`, oldest first.
    Scrolled {
        runtime: RuntimeId,
        until: Offset,
        most: u32,
    },
    /// How busy sessions are; answered with a `Pulse` for each that is there.
    Pulse(PulseOf),
    /// The screen as it is, for previews; answered with a `Sight`.
    Look(Look),
    /// A person has looked at it: what had ended by then is not news any more.
    Seen {
        name: String,
    },
    /// A person dismisses what the session asks; it needs nobody until something new is said.
    Dismiss {
        name: String,
    },
    /// How much happened on which of the last days; answered with a `Calendar`.
    Calendar {
        #[serde(flatten)]
        filter: Filter,
        days: u32,
    },
    /// Ends every attachment to that session.
    Detach {
        name: String,
    },
    /// The attached client's window changed.
    Resize {
        size: Size,
    },
    /// The attached client wants to type.
    TakeControl,
    /// Shows or hides the attached client's line of keys.
    KeyHelp,
    /// The attached client takes its terminal back; answered when nothing more will be written to it.
    Leave,
    Events {
        name: Option<String>,
        since: Option<Seq>,
        #[serde(default)]
        follow: bool,
    },
    /// The last events of a session, newest first: those before `before`, `most` of them.
    Recent {
        name: String,
        before: Option<Seq>,
        most: u32,
    },
    /// Events from now on.
    Watch,
    Status,
    /// The settings that hold; answered with `SettingsNow`.
    Settings,
    Stop {
        #[serde(default)]
        end_sessions: bool,
        #[serde(default)]
        restart: bool,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NewSession {
    /// The id of the session, should one be opened: chosen by the caller, so that a repeated request gives the same session.
    pub session: Option<SessionId>,
    /// A thread's name, or the id of a session of it; without one, a new thread.
    pub name: Option<String>,
    /// Where the caller is: the workspace of a new thread, if none is given.
    pub here: String,
    /// The workspace the user named; a thread that is there already keeps the folder it was left in without it.
    pub workspace: Option<String>,
    /// Empty: the user's shell.
    pub argv: Vec<String>,
    /// Starts nothing: the record alone.
    pub no_run: bool,
    /// Refuses (code `status`) instead of continuing a live session without starting `argv`.
    pub must_start: bool,
    /// Variables the user asked for: stored with the launch.
    pub env_delta: Vec<(String, String)>,
    /// The caller's environment: given to the program, never stored.
    pub environment: Vec<(String, String)>,
    pub size: Option<Size>,
    /// The caller's mask for new files.
    pub umask: Option<u32>,
    pub task: Option<String>,
    pub mode: Option<String>,
    pub user: Option<String>,
    pub channel: Option<String>,
    pub max_iterations: Option<u64>,
    pub context: Value,
    pub metadata: Value,
    pub idle_timeout: Option<Limit>,
    pub max_duration: Option<Limit>,
    /// Counts in this group, and waits if it is full.
    pub group: Option<String>,
    /// Waits for its turn, in the group `default` if none is named.
    pub queue: bool,
    /// What of its terminal is recorded; without it, what the settings say.
    pub keeps: Option<Keeps>,
    /// Whether changes of files in its workspace are told; without it, what the settings say.
    pub watch: Option<WatchMode>,
}

/// Everything of a session stands still until it is resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pause {
    pub name: String,
    pub reason: Option<String>,
    /// Ends its processes to free their memory; they are started again when they are needed.
    pub hibernate: bool,
    /// Hibernates also what is working.
    pub force: bool,
    /// What is typed meanwhile is kept until it goes on.
    pub queue_input: bool,
    /// Only this terminal of it.
    pub terminal: Option<TerminalKind>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resume {
    pub name: String,
    pub max_iterations: Option<u64>,
    /// Only this terminal of it.
    pub terminal: Option<TerminalKind>,
    /// The caller's, for a program that has to be started again; never stored.
    pub environment: Option<Vec<(String, String)>>,
}

/// A step of taking in a recording; one at a time on a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Import {
    Begin {
        /// What to call it; must be free.
        name: Option<String>,
        /// Without a name: what one is made from.
        called: Option<String>,
        /// Where the caller is.
        here: String,
        began_at: Option<jiff::Timestamp>,
        size: Size,
        command: Option<String>,
        title: Option<String>,
    },
    /// In order of time; their ends are not looked at.
    Records {
        records: Vec<replay::Record>,
    },
    End {
        exit_code: i32,
    },
}

/// Takes away what ended long ago.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cleanup {
    /// Of these, those that ended long enough ago.
    pub filter: Filter,
    /// Without it, what the settings say.
    pub older_than_days: Option<f64>,
    pub dry_run: bool,
    /// Their audit lines go too.
    pub audit: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Exit,
    /// A shell waits for a line: none has been entered since its prompt.
    Prompt,
    /// No output for this long.
    Quiet {
        ms: u64,
    },
    /// A regular expression on the text of the screen.
    Text {
        pattern: String,
    },
    Status {
        status: Status,
    },
    /// Whether it needs a person.
    Attention {
        state: Attention,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attach {
    pub name: String,
    /// The transcript of this language's runtime instead of the program.
    #[serde(default)]
    pub language: Option<Language>,
    pub size: Size,
    #[serde(default)]
    pub read_only: bool,
    /// Comes back after a crash and had no control before: does not take it now.
    #[serde(default)]
    pub watching: bool,
    /// The session this client itself runs in: it must not be attached to its own output.
    pub inside: Option<SessionId>,
    /// The client's prefix key.
    #[serde(default)]
    pub prefix: Prefix,
    /// The client's terminal, if the daemon may use it directly: a key then has no process to pass through.
    pub tty: Option<TtyName>,
    /// The caller's, for a hibernated program that has to be started again; never stored.
    #[serde(default)]
    pub environment: Option<Vec<(String, String)>>,
    /// A number of its own for what this client types, so that after a crash each byte arrives, and none twice.
    #[serde(default)]
    pub stream: Option<u64>,
}

/// A terminal device: its path, and its number to make sure that it is the same one here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TtyName {
    pub path: String,
    pub device: u64,
    /// Where its name is: another container's terminals have the same numbers, but not the same file system.
    pub filesystem: u64,
    pub inode: u64,
}
