//! Asking the daemon: one connection for each call, so that calls do not wait for each other. A daemon that went away is
//! started again, and asked again if that can do no harm.

use serde::de::DeserializeOwned;
use shared::message::{Answer, Code, Failure, Push, Request};
use shared::paths::Paths;

use crate::client::{Client, Incoming, refusal_of};
use crate::connect;

/// One call and its answer.
pub async fn ask<T: DeserializeOwned>(paths: &Paths, request: Request) -> Result<T, Failure> {
    match try_once(paths, &request).await? {
        Tried::Answered(answer) => answer.understand(),
        Tried::NotReached => again(paths, &request).await,
        Tried::Lost if changes_nothing(&request) => again(paths, &request).await,
        Tried::Lost => Err(unknown_outcome()),
    }
}

async fn again<T: DeserializeOwned>(paths: &Paths, request: &Request) -> Result<T, Failure> {
    match try_once(paths, request).await? {
        Tried::Answered(answer) => answer.understand(),
        Tried::NotReached | Tried::Lost => Err(Failure::failed(
            "the daemon went away twice before it answered: `sessions-tui daemon logs` says why; what runs in sessions goes on",
        )),
    }
}

/// What came of one try.
enum Tried {
    Answered(Answer),
    /// The daemon was gone before it had all of the call.
    NotReached,
    /// The daemon went away after it had been asked.
    Lost,
}

async fn try_once(paths: &Paths, request: &Request) -> Result<Tried, Failure> {
    let mut client = connect::connect(paths).await?;
    let id = match client.send(request.clone()).await {
        Ok(id) => id,
        Err(error) => return refusal_of(&error).map_or(Ok(Tried::NotReached), Err),
    };
    loop {
        match next(&mut client).await {
            Ok(Incoming::Answer(answer)) if answer.id == id || answer.id == 0 => return Ok(Tried::Answered(answer)),
            Ok(_) => {}
            Err(Away::Stopped) => return Err(stopped()),
            Err(Away::Lost) => return Ok(Tried::Lost),
            Err(Away::Refused(refusal)) => return Err(refusal),
        }
    }
}

/// Why nothing more comes from a daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum Away {
    /// Somebody stopped it on purpose: it is not started again behind their back.
    Stopped,
    Lost,
    /// The request was not sent, and why.
    Refused(Failure),
}

/// The next word of the daemon.
pub async fn next(client: &mut Client) -> Result<Incoming, Away> {
    match client.receive().await {
        Ok(Incoming::Push(Push::Stopping { restart: false })) => Err(Away::Stopped),
        Ok(incoming) => Ok(incoming),
        // what cannot be read is as good as nothing
        Err(_) => Err(Away::Lost),
    }
}

pub fn stopped() -> Failure {
    Failure::failed("the daemon was stopped during the call; what runs in sessions goes on, and the next call starts the daemon again")
}

fn unknown_outcome() -> Failure {
    Failure::failed(
        "the daemon went away before it answered: whether this was done is not known; look (session_list, session_context, \
         terminal_screen) before you repeat it",
    )
}

/// Whether asking twice is the same as asking once.
fn changes_nothing(request: &Request) -> bool {
    match request {
        Request::List(_)
        | Request::Show { .. }
        | Request::Screen { .. }
        | Request::Search(_)
        | Request::Wait { .. }
        | Request::Result { .. }
        | Request::Output { .. }
        | Request::State { .. }
        | Request::History { .. } => true,
        // merging the same once more changes nothing, but looks to others like a second change
        Request::Context { set, metadata, .. } => set.is_null() && metadata.is_null(),
        _ => false,
    }
}

/// The word of a failure's kind, as on the wire.
pub fn code(code: Code) -> &'static str {
    match code {
        Code::Usage => "usage",
        Code::NotFound => "not_found",
        Code::Status => "status",
        Code::Version => "version",
        Code::TimedOut => "timed_out",
        Code::Failed => "failed",
    }
}
