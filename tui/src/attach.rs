//! The pass-through terminal: the user's terminal becomes the session's until they leave.

use std::io;
use std::time::Duration;

use shared::config::Prefix;
use shared::exec::Language;
use shared::filter::Filter;
use shared::id::SessionId;
use shared::keys::{Action, PrefixKeys};
use shared::message::{Attach, Attached, Code, Detached, Direction, Failure, Layers, Push, Request};
use shared::paths::Paths;
use shared::replay::Of;
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Client, Incoming};
use crate::connect::{self, Crashes};
use crate::tty::{self, Tty};
use crate::{environment, replay};

/// Output waiting for a slow terminal; above it the daemon is left to skip ahead.
const MAX_WAITING: usize = 128 << 10;

/// A daemon that lives gives the terminal back at once.
const LEAVE_PATIENCE: Duration = Duration::from_secs(1);

/// How an attachment ended, in words for the last line.
#[derive(Debug, PartialEq, Eq)]
pub enum Left {
    Detached(String),
    /// It had ended before: only its last screen was shown.
    HadEnded(String),
}

pub struct Wish {
    /// The transcript of this language's runtime instead of the program.
    pub language: Option<shared::exec::Language>,
    pub name: String,
    pub read_only: bool,
    pub prefix: Prefix,
    /// Typed behind the key that asked for it.
    pub typed: Vec<u8>,
}

/// Attaches until the user leaves, the program ends, or nothing can be reached any more.
pub async fn attach(paths: &Paths, mut client: Client, wish: &Wish) -> Result<Left, Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage(
            "attach needs a terminal on standard input and output: in scripts use `send`, `screen` and `wait` instead",
        ));
    }
    refuse_own(&mut client, wish).await?;
    let tty = Tty::raw().map_err(broken)?;
    let keys = PrefixKeys::new(wish.prefix);
    let mut session = Session {
        tty,
        keys,
        waiting: Vec::new(),
        name: wish.name.clone(),
        id: None,
        language: wish.language,
        typed: wish.typed.clone(),
        behind: Vec::new(),
        was_watching: false,
    };
    let mut crashes = Crashes::default();
    loop {
        client = match session.follow(&mut client, wish).await {
            Ok(End::Left(left)) => return Ok(left),
            Ok(End::Refused(failure)) => return Err(failure),
            Ok(End::DaemonRestarts) => connect::connect(paths).await?,
            Ok(End::LooksBack) => {
                let name = session.name.clone();
                session = match session.look_back(paths, wish).await? {
                    Some(session) => session,
                    None => return Ok(Left::Detached(format!("detached from {name}"))),
                };
                connect::connect(paths).await?
            }
            // on the same connection: the daemon then knows that what is on the terminal is a session's
            Ok(End::Switches(direction)) => match session.switch(&mut client, direction).await {
                Ok(()) => client,
                Err(_) => crashes.again(paths).await?,
            },
            Err(Trouble::Terminal(error)) => return Err(broken(error)),
            // the daemon died under us: it is started again, and we are back on the same screen
            Err(Trouble::Daemon(_)) => crashes.again(paths).await?,
        };
    }
}

/// The session this runs in, before anything is done to the terminal: it would only see its own picture. The daemon refuses it too, for
/// whoever has lost the mark.
pub async fn refuse_own(client: &mut Client, wish: &Wish) -> Result<(), Failure> {
    let Some(own) = environment::own_session() else { return Ok(()) };
    // whatever else is wrong with the name is said when it is attached to
    let Ok(layers) = client.call::<Layers>(Request::Show { name: wish.name.clone() }).await else { return Ok(()) };
    if layers.session.id != own {
        return Ok(());
    }
    let name = shared::text::visible(&layers.thread.name);
    let why = format!("this terminal is inside session {name}: attached to itself it would only see its own picture");
    Err(Failure::new(Code::Status, why))
}

#[expect(clippy::needless_pass_by_value, reason = "the form map_err wants")]
fn broken(error: io::Error) -> Failure {
    Failure::failed(format!("the terminal: {error}"))
}

enum End {
    Left(Left),
    Refused(Failure),
    DaemonRestarts,
    /// The user wants to see what was before; then to be attached again.
    LooksBack,
    /// The user wants another session in this one's place.
    Switches(Direction),
}

enum Trouble {
    Terminal(io::Error),
    #[expect(dead_code, reason = "said nowhere: the next connection succeeds or says why not")]
    Daemon(io::Error),
}

struct Session {
    tty: Tty,
    keys: PrefixKeys,
    waiting: Vec<u8>,
    name: String,
    /// Known once it was shown; what it is called may change.
    id: Option<SessionId>,
    language: Option<Language>,
    /// For the program, as soon as we are attached.
    typed: Vec<u8>,
    /// Typed behind the key that brought us here, if we read the keys.
    behind: Vec<u8>,
    /// Somebody else had control when we last heard: coming back after a crash does not change that.
    was_watching: bool,
}

impl Session {
    /// Gives the terminal to the look back, and takes it again; `None` if the window is gone.
    async fn look_back(self, paths: &Paths, wish: &Wish) -> Result<Option<Self>, Failure> {
        let Self { tty, mut waiting, name, id, language, was_watching, .. } = self;
        // the program's modes and its alternate screen go, as when leaving
        drop(tty);
        waiting.clear();
        let shown = id.map_or_else(|| name.clone(), |id| id.to_string());
        let of = Of { name: shown, language, runtime: None };
        let left = match replay::look_back(paths, of).await {
            // nothing of it is recorded: that is said, and there it ends
            Err(failure) if failure.code == Code::Status => replay::notice(&failure.message).await,
            outcome => outcome,
        };
        let typed = match left? {
            replay::Left::ByKey { typed } => typed,
            replay::Left::Gone => return Ok(None),
        };
        let tty = Tty::raw().map_err(broken)?;
        Ok(Some(Self { tty, keys: PrefixKeys::new(wish.prefix), waiting, name, id, language, typed, behind: Vec::new(), was_watching }))
    }

    /// Goes on with the next session that has a live terminal; without another one, with the same.
    async fn switch(&mut self, client: &mut Client, direction: Direction) -> Result<(), Failure> {
        let sessions: Vec<shared::session::Session> = client.call(Request::List(Filter::default())).await?;
        if let Some(next) = beside(&sessions, self.id, environment::own_session(), direction) {
            (self.id, self.name, self.language, self.was_watching) = (Some(next.id), next.name.clone(), None, false);
        }
        Ok(())
    }

    async fn follow(&mut self, client: &mut Client, wish: &Wish) -> Result<End, Trouble> {
        let mut resized = signal(SignalKind::window_change()).map_err(Trouble::Terminal)?;
        let mut terminated = signal(SignalKind::terminate()).map_err(Trouble::Terminal)?;
        let mut hung_up = signal(SignalKind::hangup()).map_err(Trouble::Terminal)?;
        let mut size = self.tty.size().map_err(Trouble::Terminal)?;
        let request = Attach {
            name: self.id.map_or_else(|| self.name.clone(), |id| id.to_string()),
            language: self.language,
            size,
            read_only: wish.read_only,
            watching: self.was_watching,
            inside: environment::own_session(),
            prefix: wish.prefix,
            tty: tty::name(),
            environment: Some(environment::inherited()),
            stream: None,
        };
        let call = client.send(Request::Attach(request)).await.map_err(Trouble::Daemon)?;
        self.waiting.clear();
        let mut is_ended = false;
        // until the daemon has said whether it reads them itself
        let mut reads_keys = false;
        loop {
            tokio::select! {
                // keys first: a flood must not keep a person from stopping it
                biased;
                _ = terminated.recv() => {
                    if let Some(in_alternate) = leave(client).await {
                        tty::is_in_alternate(in_alternate);
                    }
                    return Ok(End::Left(Left::Detached(format!("detached from {}: this client was terminated", self.name))));
                }
                _ = hung_up.recv() => {
                    leave(client).await;
                    return Ok(End::Left(Left::Detached(format!("detached from {}", self.name))));
                }
                keys = self.tty.read(), if reads_keys => {
                    let keys = keys.map_err(Trouble::Terminal)?;
                    if keys.is_empty() {
                        return Ok(End::Left(Left::Detached(format!("detached from {}", self.name))));
                    }
                    if let Some(end) = self.obey(client, &keys).await? {
                        return Ok(end);
                    }
                }
                _ = resized.recv() => {
                    let now = self.tty.size().map_err(Trouble::Terminal)?;
                    if now != size {
                        size = now;
                        client.send(Request::Resize { size }).await.map_err(Trouble::Daemon)?;
                    }
                }
                written = self.tty.write(&self.waiting), if !self.waiting.is_empty() => {
                    let written = written.map_err(Trouble::Terminal)?;
                    self.waiting.drain(..written);
                }
                incoming = client.receive(), if self.waiting.len() < MAX_WAITING => match incoming.map_err(Trouble::Daemon)? {
                    Incoming::Output(bytes) => self.waiting.extend_from_slice(&bytes),
                    Incoming::Answer(answer) if answer.id == call => match answer.understand::<Attached>() {
                        Ok(attached) => {
                            // one that ended while we looked back ended under us
                            is_ended = attached.ended.is_some() && self.id.is_none();
                            self.name = attached.name;
                            self.id = Some(attached.session);
                            reads_keys = !attached.direct;
                            let typed = std::mem::take(&mut self.typed);
                            if !typed.is_empty() {
                                client.input(&typed).await.map_err(Trouble::Daemon)?;
                            }
                            let behind = std::mem::take(&mut self.behind);
                            if let Some(end) = self.obey(client, &behind).await? {
                                return Ok(end);
                            }
                        }
                        Err(failure) => return Ok(End::Refused(failure)),
                    },
                    Incoming::Answer(answer) => {
                        // a resize or a line of keys that came too late: the push says why
                        let _ = answer;
                    }
                    Incoming::Push(Push::Detached { why, alternate }) => {
                        self.write_rest().await?;
                        let answered = leave(client).await;
                        if let Some(in_alternate) = alternate.or(answered) {
                            tty::is_in_alternate(in_alternate);
                        }
                        return Ok(match why {
                            Detached::History => End::LooksBack,
                            Detached::Switch { direction } => End::Switches(direction),
                            why => End::Left(self.leave(why, is_ended)),
                        });
                    }
                    Incoming::Push(Push::Control { held }) => self.was_watching = !held,
                    Incoming::Push(Push::Stopping { restart: true }) => return Ok(End::DaemonRestarts),
                    Incoming::Push(Push::Stopping { restart: false }) => {
                        return Ok(End::Left(Left::Detached(format!("the daemon was stopped; {} goes on", self.name))));
                    }
                    Incoming::Push(Push::Event(_) | Push::CaughtUp { .. } | Push::ExecOutput { .. } | Push::Hit { .. } | Push::SearchProgress { .. } | Push::Taken { .. } | Push::Settings { .. }) => {}
                },
            }
        }
    }

    /// Keys that we read ourselves: most go to the program, a few are for us.
    async fn obey(&mut self, client: &mut Client, keys: &[u8]) -> Result<Option<End>, Trouble> {
        for action in self.keys.feed(keys) {
            let end = match action {
                Action::Send(bytes) => {
                    client.input(&bytes).await.map_err(Trouble::Daemon)?;
                    continue;
                }
                Action::Help => {
                    client.send(Request::KeyHelp).await.map_err(Trouble::Daemon)?;
                    continue;
                }
                Action::TakeControl => {
                    client.send(Request::TakeControl).await.map_err(Trouble::Daemon)?;
                    continue;
                }
                Action::Detach => return Ok(Some(End::Left(Left::Detached(format!("detached from {}", self.name))))),
                Action::History => End::LooksBack,
                Action::Switch { direction, behind } => {
                    self.behind = behind;
                    End::Switches(direction)
                }
            };
            if let Some(in_alternate) = leave(client).await {
                tty::is_in_alternate(in_alternate);
            }
            return Ok(Some(end));
        }
        Ok(None)
    }

    async fn write_rest(&mut self) -> Result<(), Trouble> {
        while !self.waiting.is_empty() {
            let written = self.tty.write(&self.waiting).await.map_err(Trouble::Terminal)?;
            self.waiting.drain(..written);
        }
        Ok(())
    }

    fn leave(&self, why: Detached, is_ended: bool) -> Left {
        let name = &self.name;
        match why {
            Detached::Ended { sentence, .. } if is_ended => Left::HadEnded(format!("{name} has ended: {sentence}")),
            Detached::Ended { sentence, .. } => Left::Detached(format!("{name} ended: {sentence}")),
            Detached::ByKey | Detached::History | Detached::Switch { .. } => Left::Detached(format!("detached from {name}")),
            Detached::Asked => Left::Detached(format!("detached from {name} by another client")),
        }
    }
}

/// The live session after this one, or before it, in the order of the list and round its ends; not the one we run in.
fn beside(
    sessions: &[shared::session::Session],
    present: Option<SessionId>,
    inside: Option<SessionId>,
    direction: Direction,
) -> Option<&shared::session::Session> {
    let here = sessions.iter().position(|session| Some(session.id) == present);
    let count = sessions.len();
    let step = match direction {
        Direction::Next => 1,
        Direction::Previous => count.saturating_sub(1),
    };
    // from nowhere, the next is the first and the one before is the last
    let start = here.unwrap_or(if direction == Direction::Next { count.saturating_sub(1) } else { 0 });
    (1..=count)
        .map(|n| &sessions[(start + n * step) % count])
        .find(|session| Some(session.id) != present && Some(session.id) != inside && session.has_live_program())
}

/// Waits until the daemon does not write to our terminal any more; a daemon that does not answer is not waited for.
/// Gives whether the terminal is in its alternate screen, if the daemon knows.
async fn leave(client: &mut Client) -> Option<bool> {
    let call = client.call::<Option<bool>>(Request::Leave);
    tokio::time::timeout(LEAVE_PATIENCE, call).await.ok()?.ok()?
}

impl Left {
    /// The last line, and the exit code that goes with it.
    pub fn say(&self) -> Result<(), Failure> {
        match self {
            Self::Detached(sentence) => {
                println!("\r\n[{sentence}]");
                Ok(())
            }
            Self::HadEnded(sentence) => Err(Failure::new(Code::Status, format!("[{sentence}]"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::runtime::RuntimeState;
    use shared::session::Status;

    #[test]
    fn the_session_beside_is_live_and_another() {
        let mut sessions: Vec<_> = ["a", "b", "c", "d"].map(|name| crate::dashboard::fixtures::session(name, Status::Active)).into();
        for (n, session) in sessions.iter_mut().enumerate() {
            session.id = SessionId::new();
            session.runtime_state = (n != 1).then_some(RuntimeState::Running { pid: 1 });
        }
        let id = |name: &str| sessions.iter().find(|session| session.name == name).map(|session| session.id);
        let (next, previous) = (Direction::Next, Direction::Previous);
        for (present, inside, direction, expected) in [
            ("a", "", next, Some("c")),
            ("c", "", next, Some("d")),
            ("d", "", next, Some("a")),
            ("a", "", previous, Some("d")),
            ("c", "", previous, Some("a")),
            ("b", "", next, Some("c")),
            ("b", "", previous, Some("a")),
            ("d", "a", next, Some("c")),
            ("gone", "", next, Some("a")),
            ("gone", "", previous, Some("d")),
        ] {
            let found = beside(&sessions, id(present), id(inside), direction).map(|session| session.name.as_str());
            assert_eq!(found, expected, "{present} {direction:?}");
        }
        assert_eq!(beside(&[], None, None, next), None);
        assert_eq!(beside(&sessions[..2], sessions.first().map(|one| one.id), None, next), None);
    }
}
