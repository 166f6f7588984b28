//! A call while it runs, or has just ended: what it has printed so far, who waits for it, and its result in words.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::exec::{DEFAULT_OUTPUT, ExecResult, Language, MAX_OUTPUT, PerStream, Stage, Stream};
use shared::id::{ExecId, Offset, RuntimeId, SessionId};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::store::{AskedExec, Finished, StoredExec};

/// How far a call has come.
#[derive(Clone, Debug)]
pub enum Progress {
    /// So many are before it.
    Waiting(u64),
    /// Where its output begins in the recording.
    Running(Offset),
    Ended(Arc<Finished>),
}

/// A call that has not ended, or has just.
pub struct Live {
    pub id: ExecId,
    pub language: Language,
    pub session: SessionId,
    pub name: String,
    pub runtime: Mutex<RuntimeId>,
    pub progress: watch::Sender<Progress>,
    captured: Mutex<PerStream<Captured>>,
    /// What is to be stored of it, while that has not been asked for.
    unaccepted: Mutex<Option<Arc<AskedExec>>>,
    /// Why it is not in the database, if it is not.
    unstored: Mutex<Option<String>>,
    asked: Instant,
}

/// The beginning of a stream, and how long it is in all.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    pub head: Vec<u8>,
    pub total: u64,
    /// From here on, parts of it are not in the recording.
    pub unrecorded_from: Option<u64>,
}

impl Live {
    pub fn new(id: ExecId, language: Language, session: SessionId, name: String, runtime: RuntimeId) -> Self {
        Self {
            id,
            language,
            session,
            name,
            runtime: Mutex::new(runtime),
            progress: watch::Sender::new(Progress::Waiting(0)),
            captured: Mutex::default(),
            unaccepted: Mutex::default(),
            unstored: Mutex::default(),
            asked: Instant::now(),
        }
    }

    pub fn of(stored: &StoredExec) -> Self {
        Self::new(stored.id, stored.language, stored.session, stored.name.clone(), stored.runtime)
    }

    pub fn runtime(&self) -> RuntimeId {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is stored later: when it takes its time, or together with its end.
    pub fn accept_later(&self, asked: Arc<AskedExec>) {
        *self.unaccepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
    }

    /// Whoever gets it stores it.
    pub fn take_unaccepted(&self) -> Option<Arc<AskedExec>> {
        self.unaccepted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// It was carried out, but the database knows nothing of it.
    pub fn was_not_stored(&self, why: &str) {
        let note = format!("this call is not in the history: {why}");
        *self.unstored.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
    }

    fn captured(&self) -> MutexGuard<'_, PerStream<Captured>> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was printed.
    pub fn printed(&self, stream: Stream, bytes: &[u8]) {
        let mut captured = self.captured();
        let captured = match stream {
            Stream::Stdout => &mut captured.stdout,
            Stream::Stderr => &mut captured.stderr,
        };
        captured.total += bytes.len() as u64;
        let room = (MAX_OUTPUT as usize).saturating_sub(captured.head.len());
        captured.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// What is printed next, on either stream, is not in the recording.
    pub fn mark_unrecorded(&self) {
        let mut captured = self.captured();
        let PerStream { stdout, stderr } = &mut *captured;
        for captured in [stdout, stderr] {
            captured.unrecorded_from.get_or_insert(captured.total);
        }
    }

    /// Up to where the recording has all of a stream; without a limit if it has everything.
    pub fn recorded_until(&self, stream: Stream) -> u64 {
        let captured = self.captured();
        match stream {
            Stream::Stdout => captured.stdout.unrecorded_from,
            Stream::Stderr => captured.stderr.unrecorded_from,
        }
        .unwrap_or(u64::MAX)
    }

    /// The part of a stream that was kept, from this byte on.
    pub fn kept_from(&self, stream: Stream, from: u64) -> Vec<u8> {
        let captured = self.captured();
        let captured = match stream {
            Stream::Stdout => &captured.stdout,
            Stream::Stderr => &captured.stderr,
        };
        captured.head.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default().to_vec()
    }

    pub fn bytes(&self) -> PerStream<u64> {
        let captured = self.captured();
        PerStream { stdout: captured.stdout.total, stderr: captured.stderr.total }
    }

    /// What was printed so far, from the beginning, in text.
    pub fn printed_text(&self) -> String {
        String::from_utf8_lossy(&self.captured().stdout.head).into_owned()
    }

    /// How long ago it was asked for.
    pub fn asked_before(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Returns when it has ended and that is stored.
    pub async fn ended(&self) -> Arc<Finished> {
        let mut progress = self.progress.subscribe();
        loop {
            if let Progress::Ended(finished) = &*progress.borrow_and_update() {
                return Arc::clone(finished);
            }
            if progress.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// As it stands now.
    pub fn result(&self, limit: u64) -> ExecResult {
        let (finished, queued_behind) = match &*self.progress.borrow() {
            Progress::Ended(finished) => (Some(Arc::clone(finished)), None),
            Progress::Waiting(before) => (None, Some(*before)),
            Progress::Running(_) => (None, None),
        };
        let captured = self.captured();
        let streams = PerStream { stdout: text(&captured.stdout, limit), stderr: text(&captured.stderr, limit) };
        let mut result = describe(self.id, self.language, (self.session, self.name.clone()), finished.as_deref(), streams);
        if result.running {
            result.queued_behind = queued_behind;
            result.duration_ms = self.asked.elapsed().as_micros() as f64 / 1000.0;
            result.bytes = PerStream { stdout: captured.stdout.total, stderr: captured.stderr.total };
            result.note = Some(match queued_behind {
                Some(1..) => format!("it waits for its turn: `sessions-tui result {} --wait` waits for it", self.id),
                _ => format!("it goes on: `sessions-tui result {} --wait` waits for it, `sessions-tui cancel {0}` interrupts it", self.id),
            });
        }
        if let Some(why) = self.unstored.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            result.note = Some(result.note.map_or(why.clone(), |note| format!("{note}; {why}")));
        }
        result
    }
}

/// A part of a stream as text: whether there is more, whether bytes were replaced.
pub struct Text {
    pub part: String,
    pub is_cut: bool,
    pub is_lossy: bool,
}

pub fn text(captured: &Captured, limit: u64) -> Text {
    let head = &captured.head[..captured.head.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let is_cut = (head.len() as u64) < captured.total;
    // a character that was cut in two is not a wrong one
    let head = match std::str::from_utf8(head) {
        Err(error) if is_cut && error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    };
    let text = String::from_utf8_lossy(head);
    let is_lossy = matches!(text, std::borrow::Cow::Owned(_));
    Text { part: text.into_owned(), is_cut, is_lossy }
}

/// The result of a call; `finished` is `None` while it runs.
pub fn describe(
    id: ExecId,
    language: Language,
    (session, name): (SessionId, String),
    finished: Option<&Finished>,
    streams: PerStream<Text>,
) -> ExecResult {
    let outcome = finished.map(|finished| finished.outcome.clone()).unwrap_or_default();
    ExecResult {
        missing_bytes: 0,
        success: finished
            .is_none_or(|finished| finished.exit_code == Some(0) && finished.stage == Stage::Finished && !finished.outcome.interrupted),
        exit_code: finished.and_then(|finished| finished.exit_code),
        stdout: streams.stdout.part,
        stderr: streams.stderr.part,
        error: outcome.error,
        value: outcome.value,
        json: outcome.json,
        duration_ms: finished.map_or(0.0, |finished| finished.took as f64 / 1000.0),
        cwd: outcome.cwd,
        exec_id: id,
        language,
        session,
        name,
        truncated: PerStream { stdout: streams.stdout.is_cut, stderr: streams.stderr.is_cut },
        lossy: PerStream { stdout: streams.stdout.is_lossy, stderr: streams.stderr.is_lossy },
        bytes: finished.map(|finished| finished.bytes).unwrap_or_default(),
        running: finished.is_none(),
        queued_behind: None,
        timed_out: outcome.timed_out,
        interrupted: outcome.interrupted,
        restarted: outcome.restarted,
        ended: outcome.ended,
        note: outcome.note,
    }
}

pub fn output_limit(asked: Option<u64>) -> u64 {
    asked.unwrap_or(DEFAULT_OUTPUT).min(MAX_OUTPUT)
}
