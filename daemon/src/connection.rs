//! One client: hello, then calls and typed bytes in, answers, pushes and output out. No rules, no SQL.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use shared::frame;
use shared::message::{
    self, Answer, CALLS_AT_ONCE, Code, Failure, HELLO_MS, Hello, HelloLine, INPUT, MAX_LINE, OUTPUT, PROTOCOL, Push, Request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use crate::attachment::{Outbox, Outgoing};
use crate::context::{Context, Stop};
use crate::peer::Peer;
use crate::request::{self, Caller};

/// Typed bytes that wait for a program that does not read; more are dropped, so that whatever the client says next is heard.
const MAX_WAITING: usize = 8 << 20;

/// Typed bytes get this long to reach the program before a request that is about the attachment.
const LAST_KEYS: Duration = Duration::from_secs(1);

/// How long a client may go on writing after it was refused.
const DISCARDING: Duration = Duration::from_secs(2);

/// Room made for each read.
const READ_BYTES: usize = 4 << 10;

pub async fn serve(context: Context, stream: Stream, peer: Peer) {
    context.clients.fetch_add(1, Ordering::Relaxed);
    let stream = Arc::new(stream);
    let outbox = Arc::new(Outbox::default());
    let caller = Arc::new(Caller::new(Arc::clone(&outbox), peer));
    let mut writer = tokio::spawn(write(Arc::clone(&stream), Arc::clone(&caller)));
    let mut reading = Reading {
        context: Arc::clone(&context),
        stream,
        outbox: Arc::clone(&outbox),
        caller: Arc::clone(&caller),
        bytes: Vec::new(),
        speaks_ours: false,
        typed: TypedQueue::new(Arc::clone(&caller)),
    };
    // a client leaving is not an error; a misbehaving one has been told why
    let mut stop = context.stop.subscribe();
    tokio::select! {
        () = reading.run() => {}
        _ = stop.wait_for(|stop| *stop != Stop::No) => {}
    }
    let restart = *context.stop.borrow() == Stop::Restart;
    if *context.stop.borrow() != Stop::No {
        outbox.line(&Push::Stopping { restart });
    }
    caller.leave().await;
    outbox.close();
    // a client that does not read its farewell is not waited for long
    if tokio::time::timeout(Duration::from_secs(2), &mut writer).await.is_err() {
        writer.abort();
    }
    context.clients.fetch_sub(1, Ordering::Relaxed);
}

async fn write(stream: Arc<Stream>, caller: Arc<Caller>) {
    let mut stream = &*stream;
    while let Some(outgoing) = caller.outbox.next().await {
        let written = match outgoing {
            Outgoing::Lines(lines) => stream.write_all(&lines).await,
            Outgoing::Output(bytes) => {
                if let Some(screen) = caller.screen() {
                    // a terminal that is gone takes its client with it; there is nobody to tell
                    let _ = screen.write(&bytes).await;
                    continue;
                }
                let mut framed = Vec::with_capacity(bytes.len() + frame::HEADER);
                frame::encode(OUTPUT, &bytes, &mut framed);
                stream.write_all(&framed).await
            }
        };
        if written.is_err() {
            return;
        }
    }
}

struct Reading {
    context: Context,
    stream: Arc<Stream>,
    outbox: Arc<Outbox>,
    caller: Arc<Caller>,
    bytes: Vec<u8>,
    /// The client said the same protocol as ours.
    speaks_ours: bool,
    typed: TypedQueue,
}

/// Typed bytes on their way to the program, in order, beside the requests.
struct TypedQueue {
    bytes: mpsc::UnboundedSender<Vec<u8>>,
    /// How many of them wait.
    waiting: Arc<watch::Sender<usize>>,
}

impl TypedQueue {
    fn new(caller: Arc<Caller>) -> Self {
        let (bytes, mut arrives) = mpsc::unbounded_channel::<Vec<u8>>();
        let waiting = Arc::new(watch::Sender::new(0));
        let counter = Arc::clone(&waiting);
        tokio::spawn(async move {
            while let Some(bytes) = arrives.recv().await {
                let count = bytes.len();
                caller.input(bytes).await;
                counter.send_modify(|waiting| *waiting -= count);
            }
        });
        Self { bytes, waiting }
    }

    fn push(&self, bytes: Vec<u8>) {
        let count = bytes.len();
        if *self.waiting.borrow() + count <= MAX_WAITING {
            self.waiting.send_modify(|waiting| *waiting += count);
            let _ = self.bytes.send(bytes);
        }
    }

    /// Returns when everything is on its way to the program, or the program does not take it.
    async fn settle(&self) {
        let _ = tokio::time::timeout(LAST_KEYS, self.waiting.subscribe().wait_for(|waiting| *waiting == 0)).await;
    }
}

/// What the next bytes of a client are.
enum Part {
    Line(Vec<u8>),
    Input(Vec<u8>),
}

impl Reading {
    async fn run(&mut self) {
        match tokio::time::timeout(Duration::from_millis(HELLO_MS), self.hello()).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => return self.refuse(0, Failure::usage("no hello within 5 seconds: start with {\"hello\":{…}}")),
        }
        let places = Arc::new(tokio::sync::Semaphore::new(CALLS_AT_ONCE));
        loop {
            match self.part().await {
                Ok(Some(Part::Input(bytes))) => self.typed.push(bytes),
                Ok(Some(Part::Line(line))) => match message::parse_call(&line) {
                    // a client of another version may only ask this daemon to make way for its own
                    Ok(call) if !self.speaks_ours && !matches!(call.request, Request::Stop { .. }) => {
                        let text =
                            format!("this daemon ({}) speaks protocol {PROTOCOL}: run `sessions-tui daemon restart`", shared::VERSION);
                        self.refuse(call.id, Failure::new(Code::Version, text));
                    }
                    Ok(call) => {
                        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                        if self.is_left() {
                            // it was told that nothing was done
                            return;
                        }
                        let (context, caller, outbox) = (Arc::clone(&self.context), Arc::clone(&self.caller), Arc::clone(&self.outbox));
                        // what follows an attach is about it, so that one is answered before anything else is read
                        let in_order = request::is_in_order(&call.request);
                        let only_waits = request::only_waits(&call.request);
                        let work = async move {
                            let id = call.id;
                            match request::perform(&context, &caller, id, call.request).await {
                                Ok(Some(answer)) => outbox.line(&answer),
                                // answered already
                                Ok(None) => {}
                                Err(failure) => outbox.line(&Answer::refusal(id, failure)),
                            }
                            drop(place);
                        };
                        if in_order {
                            self.typed.settle().await;
                            Box::pin(work).await;
                        } else if only_waits {
                            let client = Arc::clone(&self.outbox);
                            tokio::spawn(async move {
                                tokio::select! {
                                    () = work => {}
                                    () = client.closed() => {}
                                }
                            });
                        } else {
                            // goes on to its end even if the client does not wait for it
                            tokio::spawn(work);
                        }
                    }
                    Err((id, failure)) => self.refuse(id, failure),
                },
                Ok(None) => return,
                Err(failure) => {
                    self.refuse(0, failure);
                    return self.discard().await;
                }
            }
        }
    }

    /// Reads on for a while without looking: a client that is still writing sees its refusal only when it has written.
    async fn discard(&mut self) {
        let discarding = async {
            loop {
                self.bytes.clear();
                self.bytes.reserve(READ_BYTES);
                if !matches!((&*self.stream).read_buf(&mut self.bytes).await, Ok(1..)) {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(DISCARDING, discarding).await;
    }

    /// Whether the client has closed its end. One that only sends no more still reads answers.
    fn is_left(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Stream::UdSocket(socket) = &*self.stream;
        let mut fds = [PollFd::new(socket, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok_and(|_| fds[0].revents().contains(PollFlags::HUP))
    }

    fn refuse(&self, id: u64, failure: Failure) {
        self.outbox.line(&Answer::refusal(id, failure));
    }

    /// Both sides say their versions first; the client decides what to do about a difference.
    async fn hello(&mut self) -> bool {
        let line = match self.part().await {
            Ok(Some(Part::Line(line))) => line,
            Ok(None) => return false,
            Ok(Some(Part::Input(_))) | Err(_) => {
                self.refuse(0, Failure::usage("this is the socket of sessions-tui: start with {\"hello\":{…}}"));
                return false;
            }
        };
        match serde_json::from_slice::<HelloLine>(&line) {
            Ok(theirs) => {
                self.speaks_ours = theirs.hello.protocol == PROTOCOL;
                if theirs.hello.person {
                    self.caller.says_person();
                }
                let hello = Hello { protocol: PROTOCOL, version: shared::VERSION.to_owned(), pid: std::process::id(), person: false };
                self.outbox.line(&HelloLine { hello });
                true
            }
            Err(error) => {
                self.refuse(0, Failure::usage(format!("the first line must be a hello: {error}")));
                false
            }
        }
    }

    /// The next line or frame; `None` when the client has gone.
    async fn part(&mut self) -> Result<Option<Part>, Failure> {
        loop {
            if let Some(part) = self.complete()? {
                return Ok(Some(part));
            }
            // read into the buffer itself: a chunk on the stack would be part of every waiting task
            self.bytes.reserve(READ_BYTES);
            match (&*self.stream).read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }

    fn complete(&mut self) -> Result<Option<Part>, Failure> {
        let Some(first) = self.bytes.first() else { return Ok(None) };
        if *first == b'{' {
            let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
                if self.bytes.len() > MAX_LINE {
                    return Err(Failure::usage(format!("the request is too large: a line has at most {MAX_LINE} bytes")));
                }
                return Ok(None);
            };
            let line = self.bytes.drain(..=end).collect();
            return Ok(Some(Part::Line(line)));
        }
        if *first != INPUT {
            return Err(Failure::usage("neither a JSON line nor a frame of input"));
        }
        match frame::decode(&self.bytes) {
            Ok(Some(frame)) => {
                let (input, size) = (frame.payload.to_vec(), frame.size);
                self.bytes.drain(..size);
                Ok(Some(Part::Input(input)))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(Failure::usage(error.to_string())),
        }
    }
}
