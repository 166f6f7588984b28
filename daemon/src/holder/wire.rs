//! The holder's protocol: tiny and frozen, because old holders live on under new daemons.
//! Frames of `shared::frame`; kinds are only ever added, and an unknown kind is passed over.

use serde::{Deserialize, Serialize};
use shared::frame;
use shared::id::{ExecId, Offset};
use shared::runtime::{ExitStatus, Keeps};
use shared::screen::Size;

use crate::recording::{decode_exit, decode_size, encode_exit, encode_size};

/// Raised only when an older daemon must not talk to a newer holder at all.
pub const VERSION: u8 = 1;

/// Bytes of input the daemon may have under way that the holder has not said it has taken.
pub const INPUT_WINDOW: u64 = 64 << 10;

/// The holder says what it has taken each time this much has gone to the program.
pub const INPUT_STEP: u64 = 16 << 10;

mod kind {
    // daemon to holder
    pub const START: u8 = 1;
    pub const HELLO: u8 = 2;
    pub const INPUT: u8 = 3;
    pub const RESIZE: u8 = 4;
    pub const ANSWER: u8 = 5;
    pub const TERMINATE: u8 = 6;
    pub const CALL: u8 = 7;
    pub const INTERRUPT: u8 = 8;
    pub const NAMES: u8 = 9;
    pub const FORGET: u8 = 10;
    pub const FREEZE: u8 = 11;
    pub const THAW: u8 = 12;
    pub const QUEUE: u8 = 13;
    pub const TYPED: u8 = 24;
    // holder to daemon
    pub const GREETING: u8 = 64;
    pub const END: u8 = 65;
    pub const EXIT: u8 = 66;
    pub const REFUSED: u8 = 67;
    pub const SUSPENDED: u8 = 68;
    pub const UNRECORDED: u8 = 69;
    pub const TAKEN: u8 = 70;
    pub const READY: u8 = 71;
    pub const UNRECORDED_FRAME: u8 = 72;
    pub const BASELINE: u8 = 73;
    pub const STATE: u8 = 74;
    pub const NAMES_ARE: u8 = 75;
    pub const HELLO_OF: u8 = 76;
    pub const FROZEN: u8 = 77;
    pub const QUEUED: u8 = 78;
    pub const UNRECORDED_OUTPUT: u8 = 79;
}

/// Everything a holder needs to know; sent once, over a socket, because arguments can be seen by others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub runtime: String,
    pub argv: Vec<String>,
    pub cwd: String,
    pub env: Vec<(String, String)>,
    pub size: Size,
    pub recording: String,
    pub max_bytes: u64,
    /// How many files the program may open, as before the daemon raised its own limit.
    #[serde(default)]
    pub open_files: Option<u64>,
    /// The caller's mask for new files.
    #[serde(default)]
    pub umask: Option<u32>,
    /// The program is a language's driver: no PTY, but pipes, and descriptors of its own for calls and answers.
    #[serde(default)]
    pub is_driver: bool,
    /// How many processes the runtime may have, as far as the system can be told.
    #[serde(default)]
    pub max_processes: Option<u64>,
    /// What is recorded of it.
    #[serde(default)]
    pub keeps: Keeps,
    /// Rules of secrets that are covered before anything is recorded or shown; none: nothing is covered.
    #[serde(default)]
    pub redact: Option<Vec<String>>,
    /// Recorded before anything the program says: what its place looked like before.
    #[serde(default)]
    pub preface: String,
    /// It is to be frozen by signals alone.
    #[serde(default)]
    pub no_groups: bool,
    /// The driver answers with the nonce that it was asked with; those of earlier versions do not.
    #[serde(default)]
    pub has_nonces: bool,
    /// The driver can be told to print into other pipes.
    #[serde(default)]
    pub can_switch: bool,
    /// How large a core file of the program may be, as before the daemon allowed none for itself.
    #[serde(default)]
    pub core_files: Option<u64>,
}

/// How everything of a runtime has come to a stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frozen {
    /// `cgroup2`, `cgroup1` or `signals`.
    pub by: String,
    pub processes: u32,
    /// Processes of another user, which go on.
    pub refused: u32,
    /// Not all of it stands still yet.
    pub is_slow: bool,
    /// How long ago it was asked for.
    pub since_ms: u64,
    /// What is typed is kept until it goes on.
    pub queues_input: bool,
    /// Bytes that are kept.
    pub queued: u64,
}

/// The holder's answer to a hello: who it is and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Greeting {
    pub runtime: String,
    pub pid: u32,
    pub child: u32,
    pub size: Size,
    pub end: Offset,
    /// Terminal queries up to here have been answered.
    pub answered: Offset,
    pub suspended: Option<String>,
    pub exit: Option<ExitStatus>,
    /// The call that is being carried out, and where it begins in the recording.
    #[serde(default)]
    pub call: Option<(ExecId, Offset)>,
    /// It has no PTY, but a language's driver.
    #[serde(default)]
    pub is_driver: bool,
    #[serde(default)]
    pub keeps: Keeps,
    /// It knows how to freeze; those of before do not.
    #[serde(default)]
    pub can_freeze: bool,
    #[serde(default)]
    pub frozen: Option<Frozen>,
    /// How long the call that is being carried out has run, without the time it was frozen for.
    #[serde(default)]
    pub call_ran_ms: u64,
    /// Streams of typed bytes, and how many of each were taken; nothing from a holder that does not count them.
    #[serde(default)]
    pub typed: Option<Vec<(u64, u64)>>,
}

/// How hard a call is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// As ctrl-c in a terminal; one that has stopped itself goes on to hear it.
    Interrupt,
    /// Ends what the call has started, and leaves the interpreter.
    KillChildren,
    /// Ends the interpreter too.
    Kill,
}

/// A call to a language's driver.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOrder {
    pub id: ExecId,
    /// What the driver calls it: `x` runs, `v` evaluates.
    pub verb: u8,
    /// A file to read from, or empty.
    pub stdin: String,
    pub code: String,
}

/// Daemon to holder.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    Start(Start),
    /// "I am the daemon now": the version of this protocol it speaks.
    Hello(u8),
    Input(Vec<u8>),
    /// Input of a client that counts its bytes: the stream, and where in it these begin. What was taken before is passed over.
    Typed(u64, u64, Vec<u8>),
    Resize(Size),
    /// Queries up to this offset are answered, with these bytes (none if a client's terminal answers).
    Answer(Offset, Vec<u8>),
    /// Hang up the program, and end whatever is left after this many milliseconds.
    Terminate(u32),
    Call(CallOrder),
    Interrupt(Force),
    /// Asks the driver which names its code has defined.
    Names,
    /// What was recorded so far goes for good; what comes is recorded.
    Forget,
    /// Stops everything where it is. What is typed meanwhile is kept, or not.
    Freeze {
        queues_input: bool,
    },
    Thaw,
    /// Input for when it goes on: kept here, where no daemon's death reaches it.
    Queue(Vec<u8>),
    Unknown,
}

/// Holder to daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The version comes first and is readable whatever follows.
    Greeting(u8, Option<Greeting>),
    /// The recording now ends here.
    End(Offset),
    Exit(ExitStatus),
    /// The program could not be started.
    Refused(String),
    /// Why recording is suspended; empty when it goes on again.
    Suspended(String),
    /// Output while recording is suspended.
    Unrecorded(Vec<u8>),
    /// Bytes of input given to the program so far.
    Taken(u64),
    /// The socket is there: from now on a later daemon can find this holder, so a program may be started.
    Ready,
    /// A frame that should be in the recording, while that is suspended: its kind and body.
    UnrecordedFrame(u8, Vec<u8>),
    /// The environment an interpreter started with, and what it is now, in its driver's words. Never recorded.
    Baseline(Vec<u8>),
    State(Vec<u8>),
    Names(Vec<u8>),
    /// What a driver said when it was ready.
    Hello(Vec<u8>),
    /// It stands still now, or is slow to; nothing: it runs.
    Frozen(Option<Frozen>),
    /// So many bytes are kept for when it goes on; `false` if the last ones were too many.
    Queued(u64, bool),
    /// The exec that ends now has printed so many bytes that are not in the recording. Said before its result.
    UnrecordedOutput(ExecId, u64),
    Unknown,
}

impl Order {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start(start) => encode_json(kind::START, start, out),
            Self::Hello(version) => frame::encode(kind::HELLO, &[*version], out),
            Self::Input(bytes) => frame::encode(kind::INPUT, bytes, out),
            Self::Typed(stream, at, bytes) => {
                frame::encode(kind::TYPED, &[&stream.to_le_bytes()[..], &at.to_le_bytes(), bytes].concat(), out);
            }
            Self::Resize(size) => frame::encode(kind::RESIZE, &encode_size(*size), out),
            Self::Answer(offset, bytes) => frame::encode(kind::ANSWER, &[&offset.to_le_bytes()[..], bytes].concat(), out),
            Self::Terminate(grace) => frame::encode(kind::TERMINATE, &grace.to_le_bytes(), out),
            Self::Call(call) => {
                let path = u16::try_from(call.stdin.len()).unwrap_or(0).to_le_bytes();
                let body = [&call.id.bytes()[..], &[call.verb], &path, call.stdin.as_bytes(), call.code.as_bytes()].concat();
                frame::encode(kind::CALL, &body, out);
            }
            Self::Interrupt(force) => {
                let level = match force {
                    Force::Interrupt => 0,
                    Force::KillChildren => 1,
                    Force::Kill => 2,
                };
                frame::encode(kind::INTERRUPT, &[level], out);
            }
            Self::Names => frame::encode(kind::NAMES, &[], out),
            Self::Forget => frame::encode(kind::FORGET, &[], out),
            Self::Freeze { queues_input } => frame::encode(kind::FREEZE, &[u8::from(*queues_input)], out),
            Self::Thaw => frame::encode(kind::THAW, &[], out),
            Self::Queue(bytes) => frame::encode(kind::QUEUE, bytes, out),
            Self::Unknown => {}
        }
    }

    /// The first order of `bytes` and its size; `Ok(None)` while incomplete; an error for garbage.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, frame::TooLong> {
        let Some(frame) = frame::decode(bytes)? else { return Ok(None) };
        let body = frame.payload;
        let order = match frame.kind {
            kind::START => serde_json::from_slice(body).ok().map(Self::Start),
            kind::HELLO => body.first().map(|version| Self::Hello(*version)),
            kind::INPUT => Some(Self::Input(body.to_vec())),
            kind::TYPED => decode_typed(body),
            kind::RESIZE => decode_size(body).map(Self::Resize),
            kind::ANSWER => body.split_first_chunk::<8>().map(|(n, rest)| Self::Answer(u64::from_le_bytes(*n), rest.to_vec())),
            kind::TERMINATE => body.first_chunk::<4>().map(|n| Self::Terminate(u32::from_le_bytes(*n))),
            kind::CALL => decode_call(body).map(Self::Call),
            kind::INTERRUPT => match body {
                [0] => Some(Self::Interrupt(Force::Interrupt)),
                [1] => Some(Self::Interrupt(Force::KillChildren)),
                [2] => Some(Self::Interrupt(Force::Kill)),
                _ => None,
            },
            kind::NAMES => Some(Self::Names),
            kind::FORGET => Some(Self::Forget),
            kind::FREEZE => Some(Self::Freeze { queues_input: body.first() == Some(&1) }),
            kind::THAW => Some(Self::Thaw),
            kind::QUEUE => Some(Self::Queue(body.to_vec())),
            _ => None,
        };
        Ok(Some((order.unwrap_or(Self::Unknown), frame.size)))
    }
}

impl News {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Greeting(version, greeting) => {
                let mut body = vec![*version];
                if let Some(greeting) = greeting {
                    body.extend(serde_json::to_vec(greeting).unwrap_or_default());
                }
                frame::encode(kind::GREETING, &body, out);
            }
            Self::End(offset) => frame::encode(kind::END, &offset.to_le_bytes(), out),
            Self::Exit(status) => frame::encode(kind::EXIT, &encode_exit(*status), out),
            Self::Refused(why) => frame::encode(kind::REFUSED, why.as_bytes(), out),
            Self::Suspended(why) => frame::encode(kind::SUSPENDED, why.as_bytes(), out),
            Self::Unrecorded(bytes) => frame::encode(kind::UNRECORDED, bytes, out),
            Self::Taken(total) => frame::encode(kind::TAKEN, &total.to_le_bytes(), out),
            Self::Ready => frame::encode(kind::READY, &[], out),
            Self::UnrecordedFrame(frame_kind, body) => frame::encode(kind::UNRECORDED_FRAME, &[&[*frame_kind][..], body].concat(), out),
            Self::Baseline(said) => frame::encode(kind::BASELINE, said, out),
            Self::State(said) => frame::encode(kind::STATE, said, out),
            Self::Names(said) => frame::encode(kind::NAMES_ARE, said, out),
            Self::Hello(said) => frame::encode(kind::HELLO_OF, said, out),
            Self::Frozen(frozen) => encode_json(kind::FROZEN, frozen, out),
            Self::UnrecordedOutput(exec, bytes) => {
                frame::encode(kind::UNRECORDED_OUTPUT, &[&exec.bytes()[..], &bytes.to_le_bytes()].concat(), out);
            }
            Self::Queued(bytes, is_taken) => frame::encode(kind::QUEUED, &[&bytes.to_le_bytes()[..], &[u8::from(*is_taken)]].concat(), out),
            Self::Unknown => {}
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, frame::TooLong> {
        let Some(frame) = frame::decode(bytes)? else { return Ok(None) };
        let body = frame.payload;
        let text = || String::from_utf8_lossy(body).into_owned();
        let number = || body.first_chunk::<8>().map(|n| u64::from_le_bytes(*n));
        let news = match frame.kind {
            kind::GREETING => body.split_first().map(|(version, rest)| Self::Greeting(*version, serde_json::from_slice(rest).ok())),
            kind::END => number().map(Self::End),
            kind::EXIT => decode_exit(body).map(Self::Exit),
            kind::REFUSED => Some(Self::Refused(text())),
            kind::SUSPENDED => Some(Self::Suspended(text())),
            kind::UNRECORDED => Some(Self::Unrecorded(body.to_vec())),
            kind::TAKEN => number().map(Self::Taken),
            kind::READY => Some(Self::Ready),
            kind::UNRECORDED_FRAME => body.split_first().map(|(frame_kind, body)| Self::UnrecordedFrame(*frame_kind, body.to_vec())),
            kind::BASELINE => Some(Self::Baseline(body.to_vec())),
            kind::STATE => Some(Self::State(body.to_vec())),
            kind::NAMES_ARE => Some(Self::Names(body.to_vec())),
            kind::HELLO_OF => Some(Self::Hello(body.to_vec())),
            kind::FROZEN => serde_json::from_slice(body).ok().map(Self::Frozen),
            kind::UNRECORDED_OUTPUT => decode_unrecorded_output(body),
            kind::QUEUED => number().map(|bytes| Self::Queued(bytes, body.get(8) == Some(&1))),
            _ => None,
        };
        Ok(Some((news.unwrap_or(Self::Unknown), frame.size)))
    }
}

fn decode_unrecorded_output(body: &[u8]) -> Option<News> {
    let (exec, rest) = body.split_first_chunk::<16>()?;
    Some(News::UnrecordedOutput(ExecId::from_bytes(*exec), u64::from_le_bytes(*rest.first_chunk::<8>()?)))
}

fn decode_typed(body: &[u8]) -> Option<Order> {
    let (stream, rest) = body.split_first_chunk::<8>()?;
    let (at, bytes) = rest.split_first_chunk::<8>()?;
    Some(Order::Typed(u64::from_le_bytes(*stream), u64::from_le_bytes(*at), bytes.to_vec()))
}

fn decode_call(body: &[u8]) -> Option<CallOrder> {
    let (id, rest) = body.split_first_chunk::<16>()?;
    let ([verb, low, high], rest) = rest.split_first_chunk::<3>()?;
    let (stdin, code) = rest.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(CallOrder { id: ExecId::from_bytes(*id), verb: *verb, stdin: text(stdin)?, code: text(code)? })
}

fn encode_json(kind: u8, value: &impl Serialize, out: &mut Vec<u8>) {
    frame::encode(kind, &serde_json::to_vec(value).unwrap_or_default(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// These bytes are what version 1 holders speak for ever: a change here strands running sessions.
    #[test]
    fn promise_9_the_protocol_is_frozen() {
        let size = Size { cols: 80, rows: 24 };
        let call = CallOrder { id: ExecId::from_bytes([7; 16]), verb: b'x', stdin: "/i".into(), code: "ls".into() };
        let orders: [(Order, &[u8]); 12] = [
            (Order::Typed(258, 3, b"x".to_vec()), &[24, 17, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, b'x']),
            (Order::Call(call), &[7, 23, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, b'x', 2, 0, b'/', b'i', b'l', b's']),
            (Order::Interrupt(Force::KillChildren), &[8, 1, 0, 0, 0, 1]),
            (Order::Names, &[9, 0, 0, 0, 0]),
            (Order::Freeze { queues_input: true }, &[11, 1, 0, 0, 0, 1]),
            (Order::Thaw, &[12, 0, 0, 0, 0]),
            (Order::Queue(b"ls".to_vec()), &[13, 2, 0, 0, 0, b'l', b's']),
            (Order::Hello(1), &[2, 1, 0, 0, 0, 1]),
            (Order::Input(b"ls\r".to_vec()), &[3, 3, 0, 0, 0, b'l', b's', b'\r']),
            (Order::Resize(size), &[4, 4, 0, 0, 0, 80, 0, 24, 0]),
            (Order::Answer(258, b"x".to_vec()), &[5, 9, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, b'x']),
            (Order::Terminate(1000), &[6, 4, 0, 0, 0, 0xe8, 3, 0, 0]),
        ];
        for (order, bytes) in orders {
            let mut encoded = Vec::new();
            order.encode(&mut encoded);
            assert_eq!(encoded, bytes, "{order:?}");
            assert_eq!(Order::decode(bytes), Ok(Some((order, bytes.len()))));
        }
        let news: [(News, &[u8]); 15] = [
            (News::UnrecordedFrame(9, b"x".to_vec()), &[72, 2, 0, 0, 0, 9, b'x']),
            (
                News::UnrecordedOutput(ExecId::from_bytes([7; 16]), 258),
                &[79, 24, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 1, 0, 0, 0, 0, 0, 0],
            ),
            (News::Baseline(b"a".to_vec()), &[73, 1, 0, 0, 0, b'a']),
            (News::State(b"b".to_vec()), &[74, 1, 0, 0, 0, b'b']),
            (News::Names(b"c".to_vec()), &[75, 1, 0, 0, 0, b'c']),
            (News::Hello(b"d".to_vec()), &[76, 1, 0, 0, 0, b'd']),
            (News::Ready, &[71, 0, 0, 0, 0]),
            (News::Frozen(None), &[77, 4, 0, 0, 0, b'n', b'u', b'l', b'l']),
            (News::Queued(2, true), &[78, 9, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1]),
            (News::End(513), &[65, 8, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]),
            (News::Exit(ExitStatus::Code(3)), &[66, 5, 0, 0, 0, 0, 3, 0, 0, 0]),
            (News::Exit(ExitStatus::Signal(9)), &[66, 5, 0, 0, 0, 1, 9, 0, 0, 0]),
            (News::Refused("no".into()), &[67, 2, 0, 0, 0, b'n', b'o']),
            (News::Suspended(String::new()), &[68, 0, 0, 0, 0]),
            (News::Taken(7), &[70, 8, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (news, bytes) in news {
            let mut encoded = Vec::new();
            news.encode(&mut encoded);
            assert_eq!(encoded, bytes, "{news:?}");
            assert_eq!(News::decode(bytes), Ok(Some((news, bytes.len()))));
        }
    }

    #[test]
    fn a_later_kind_is_passed_over() {
        assert_eq!(Order::decode(&[200, 1, 0, 0, 0, 5]), Ok(Some((Order::Unknown, 6))));
        assert_eq!(News::decode(&[200, 0, 0, 0, 0]), Ok(Some((News::Unknown, 5))));
    }

    proptest! {
        #[test]
        fn garbage_is_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Order::decode(&bytes);
            let _ = News::decode(&bytes);
        }
    }
}
