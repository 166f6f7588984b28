//! One call of code from the request to its result: told of while it runs, interrupted when the caller cancels, and found
//! again when the daemon went away in the middle of it.

use base64::Engine;
use shared::exec::{ExecCall, ExecResult};
use shared::id::ExecId;
use shared::message::{Answer, Code, Failure, Push, Request};
use tokio::time::{Duration, Instant};

use super::clip::last_line;
use super::daemon::{self, Away};
use super::progress::Progress;
use super::server::{Call, cancelled};
use crate::client::{Client, Incoming, refusal_of};
use crate::connect;

/// Between two tries to cancel a call that the daemon does not know yet: it is only just being stored.
const CANCEL_AGAIN: Duration = Duration::from_millis(50);

/// Daemons that may go away under one call.
const MAX_LOST: u32 = 2;

/// Carries `code` out. Its id was chosen by us, so that it can be spoken of whatever happens.
pub async fn run(call: &Call, id: ExecId, code: ExecCall) -> Result<ExecResult, Failure> {
    code.check()?;
    let started = Instant::now();
    let patience = Duration::from_millis(code.soft_limit_ms.unwrap_or_default());
    let mut following = Following { call, id, progress: call.progress(), line: String::new() };
    let asked = Request::Exec(ExecCall { stream: following.progress.is_wanted(), ..code.clone() });
    let mut request = asked.clone();
    // after a daemon went away, whether it had taken the call
    let mut is_looking = false;
    for _ in 0..=MAX_LOST {
        let mut client = connect::connect(call.paths()).await?;
        if call.is_cancelled() && !is_looking {
            return Err(cancelled());
        }
        match following.follow(&mut client, request).await {
            Err(Away::Refused(refusal)) => return Err(refusal),
            Ok(answer) => match answer.understand::<ExecResult>() {
                // it never came to the daemon that is gone: the same call, with the same id, cannot run twice
                Err(failure) if failure.code == Code::NotFound && is_looking => {
                    is_looking = false;
                    request = asked.clone();
                }
                outcome => return outcome,
            },
            Err(Away::Stopped) => {
                return Err(Failure::failed(format!("{}; this call is {id}: ask for it with action result", daemon::stopped())));
            }
            Err(Away::Lost) => {
                is_looking = true;
                following.line.replace_range(.., "the daemon went away: looking for the call");
                request = Request::Result {
                    exec: id,
                    wait_ms: Some(patience.saturating_sub(started.elapsed()).as_millis() as u64),
                    output_limit: code.output_limit,
                    stream: false,
                };
            }
        }
    }
    Err(Failure::failed(format!(
        "the daemon went away during the call and its result could not be had; if it was taken, it goes on: ask with action result for {id}"
    )))
}

struct Following<'a> {
    call: &'a Call,
    id: ExecId,
    progress: Progress,
    /// The last line of output so far.
    line: String,
}

impl Following<'_> {
    /// Sends the request and waits for its answer, telling of it and ready to cancel it.
    async fn follow(&mut self, client: &mut Client, request: Request) -> Result<Answer, Away> {
        let asked = client.send(request).await.map_err(|error| refusal_of(&error).map_or(Away::Lost, Away::Refused))?;
        let mut cancel = Cancel::NotAsked;
        loop {
            tokio::select! {
                incoming = daemon::next(client) => match incoming? {
                    Incoming::Answer(answer) if answer.id == asked || answer.id == 0 => return Ok(answer),
                    Incoming::Answer(answer) if cancel == Cancel::Sent(answer.id) => {
                        // not known yet is not gone: it is asked again until the call itself is answered
                        cancel = match answer.understand::<serde_json::Value>() {
                            Err(failure) if failure.code == Code::NotFound => Cancel::Again(Instant::now() + CANCEL_AGAIN),
                            _ => Cancel::Done,
                        };
                    }
                    Incoming::Push(Push::ExecOutput { exec, base64, .. }) if exec == self.id => self.hear(&base64),
                    _ => {}
                },
                () = self.progress.due() => {
                    let line = std::mem::take(&mut self.line);
                    self.progress.tell(&line).await;
                    self.line = line;
                }
                () = self.call.cancelled(), if cancel == Cancel::NotAsked => cancel = Cancel::Again(Instant::now()),
                () = cancel.due() => match client.send(Request::Cancel { exec: self.id }).await {
                    Ok(sent) => cancel = Cancel::Sent(sent),
                    Err(_) => return Err(Away::Lost),
                },
            }
        }
    }

    fn hear(&mut self, base64: &str) {
        if let Ok(output) = base64::engine::general_purpose::STANDARD.decode(base64)
            && let Some(line) = last_line(&output)
        {
            self.line = line;
        }
    }
}

/// How far a wish to cancel has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cancel {
    NotAsked,
    Again(Instant),
    Sent(u64),
    Done,
}

impl Cancel {
    async fn due(&self) {
        match self {
            Self::Again(at) => tokio::time::sleep_until(*at).await,
            Self::NotAsked | Self::Sent(_) | Self::Done => std::future::pending().await,
        }
    }
}
