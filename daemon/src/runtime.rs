//! One task per live runtime: the link to its holder, the live scan of its output, its clients and who has control.
//! No SQL: what must be stored goes through the store's typed calls.

mod calls;
mod clients;
mod end;
mod follow;
mod freezing;
mod input;
mod inside;
mod line;
mod listen;
mod waiters;

use std::sync::Arc;
use std::time::Duration;

use shared::event::Author;
use shared::id::{ExecId, Offset, RuntimeId, SessionId, ThreadId};
use shared::message::Failure;
use shared::runtime::{ExitStatus, Keeps};
use shared::screen::{Scanner, Size};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::clock::Steady;
use crate::context::Context;
use crate::handle::ask::{Ask, ClientId, Ended, Joins, Keep, Place, Room, Typist};
use crate::handle::runtime::{Facts, RuntimeHandle};
use crate::holder::link::Link;
use crate::holder::wire::Greeting;
use crate::picture::Picture;
use crate::recording::Reader;

use calls::Interpreter;
pub use calls::Revived;
use clients::Client;
use freezing::Freezing;
use inside::Inside;
use listen::Listening;
use waiters::Waiters;

/// Asks that may wait for a runtime's task. More than there are ever calls at once: calls that had to wait for room here would
/// go on in the order in which their tasks happen to be woken, which is not that in which they were accepted.
const WAITING_ASKS: usize = 1 << 16;

/// Output faster than this over one window is a flood: clients then get pictures instead of bytes.
const FLOOD_BYTES: usize = 512 << 10;
const FLOOD_WINDOW: Duration = Duration::from_millis(50);

/// In a flood the recording is read in such steps, so that the daemon has time for others.
const FLOOD_PAUSE: Duration = Duration::from_millis(4);

/// After a key was pressed its effect is looked for without any pause.
const EAGER: Duration = Duration::from_millis(100);

/// Rendered clients are drawn at most this often.
const FRAME: Duration = Duration::from_millis(16);

/// A screen nobody looks at gives its memory back after this much silence.
const REST_AFTER: Duration = Duration::from_secs(2);

/// How far an unwatched screen may lag behind the recording before it is brought up.
const MAX_LAG: u64 = 4 << 20;

/// A client that has this much unread output gets a fresh screen instead.
const MAX_BACKLOG: usize = 256 << 10;

/// Typed input waiting for a program that does not read; then whoever types has to wait.
const MAX_INPUT: usize = 256 << 10;

/// A client waits this long for the program's terminal to take its size; then it gets a picture first.
const JOIN_PATIENCE: Duration = Duration::from_millis(300);

/// What a runtime is started with.
pub struct Beginning {
    pub id: RuntimeId,
    pub session: SessionId,
    pub thread: ThreadId,
    pub name: String,
    /// The folder its program was in, as far as known.
    pub cwd: String,
    pub link: Link,
    pub greeting: Greeting,
    /// Not a program on a PTY, but an interpreter.
    pub interpreter: Option<Revived>,
}

struct Runtime {
    context: Context,
    id: RuntimeId,
    name: String,
    /// The folder its program was last seen in.
    cwd: String,
    link: Link,
    asks: mpsc::Receiver<Ask>,
    facts: Arc<Facts>,
    ended: watch::Sender<Option<Ended>>,
    activity: watch::Sender<u64>,
    /// Where what is on the screen ends: says that there is something else to look at.
    sight: watch::Sender<Offset>,

    /// Reads what is new; the picture has a reader of its own, further behind.
    reader: Reader,
    end: Offset,
    /// Where reading was to end when somebody asked for something in the middle of it.
    unread: Option<Offset>,
    /// Where it ended when its recording was last looked after.
    looked_after: Offset,
    /// What has been scanned and passed on ends here; never inside what the reader has handed out.
    consumed: Offset,
    scanner: Scanner,
    picture: Picture,
    listening: Listening,
    inside: Inside,
    notices: tokio::sync::broadcast::Receiver<crate::notify::Notice>,
    /// Notices for terminals that are in the middle of a sequence.
    owed: Vec<u8>,
    size: Size,
    /// What was asked for last; the recording tells when it is true.
    ordered_size: Size,

    clients: Vec<Client>,
    next_client: ClientId,
    control: Option<ClientId>,
    drained: Arc<Notify>,

    input: std::collections::VecDeque<Typed>,
    input_bytes: usize,
    /// Bytes typed since the last line was ended, in a terminal that takes whole lines.
    begun_line: usize,
    interpreter: Option<Interpreter>,
    freezing: Freezing,
    waiters: Waiters,
    terminating: Option<Author>,
    /// Where its recording stood then.
    asked_to_end_at: Option<Offset>,
    exit: Option<ExitStatus>,
    is_suspended: bool,

    window_began: Instant,
    window_bytes: usize,
    is_flooding: bool,
    eager_until: Instant,
    pause_until: Option<Instant>,
    last_drawn: Instant,
    is_dirty: bool,
    rest_at: Option<Instant>,
    /// The activity that was stored last, by the steady clock.
    noted: Steady,
}

/// The call that a holder is carrying out when it is reached.
struct Running {
    id: ExecId,
    start: Offset,
    /// Without the time it was frozen for.
    ran_ms: u64,
}

/// Input that has not gone to the holder yet.
struct Typed {
    from: Typist,
    bytes: Vec<u8>,
    /// Where they begin, of a client that counts.
    place: Option<Place>,
    sent: usize,
    taken: Option<oneshot::Sender<Result<(), Failure>>>,
}

/// Starts the task and gives its handle; the caller puts it into the registry.
pub fn begin(context: Context, beginning: Beginning) -> RuntimeHandle {
    let (asks, waiting) = mpsc::channel(WAITING_ASKS);
    let (ended, ended_seen) = watch::channel(None);
    let (activity, activity_seen) = watch::channel(0);
    let (sight, sight_seen) = watch::channel(0);
    let greeting = beginning.greeting;
    let facts = Arc::new(Facts::new(&greeting, beginning.session, context.clock));
    let running = greeting.call.map(|(id, start)| Running { id, start, ran_ms: greeting.call_ran_ms });
    let frozen = greeting.frozen.clone();
    let language = beginning.interpreter.as_ref().map(|interpreter| interpreter.language);
    let settled = beginning.interpreter.as_ref().map_or(greeting.answered, |interpreter| interpreter.settled);
    let handle = RuntimeHandle {
        id: beginning.id,
        thread: beginning.thread,
        language,
        facts: Arc::clone(&facts),
        asks,
        ended: ended_seen,
        activity: activity_seen,
        sight: sight_seen,
    };
    let dir = context.paths.recording(beginning.id);
    let now = Instant::now();
    let runtime = Runtime {
        id: beginning.id,
        name: beginning.name,
        cwd: beginning.cwd,
        link: beginning.link,
        asks: waiting,
        facts,
        ended,
        activity,
        sight,
        reader: Reader::new(&dir, 0),
        end: greeting.end,
        unread: None,
        looked_after: greeting.end,
        consumed: 0,
        scanner: Scanner::new(),
        picture: {
            let mut picture = Picture::open(&dir, greeting.size, greeting.end);
            if greeting.keeps == Keeps::Nothing {
                picture.keep_nothing();
            }
            picture
        },
        listening: Listening::default(),
        inside: Inside::default(),
        notices: context.notify.subscribe(),
        owed: Vec::new(),
        size: greeting.size,
        ordered_size: greeting.size,
        clients: Vec::new(),
        next_client: 1,
        control: None,
        drained: Arc::new(Notify::new()),
        input: std::collections::VecDeque::new(),
        input_bytes: 0,
        begun_line: 0,
        interpreter: beginning.interpreter.map(Interpreter::new),
        freezing: Freezing::default(),
        waiters: Waiters::default(),
        terminating: None,
        asked_to_end_at: None,
        exit: greeting.exit,
        is_suspended: greeting.suspended.is_some(),
        window_began: now,
        window_bytes: 0,
        is_flooding: false,
        eager_until: now,
        pause_until: None,
        last_drawn: now,
        is_dirty: false,
        rest_at: None,
        noted: 0,
        context,
    };
    tokio::spawn(runtime.run(settled, running, frozen));
    handle
}
