//! Calls to an interpreter: one at a time, the others in order behind it. What came of each is read from the recording, so it
//! does not matter whether this daemon sent it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use shared::exec::{Language, Stage, Stream, Verb};
use shared::id::{ExecId, Offset};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Runtime;
use super::line::{Line, Typed};
use crate::exec;
use crate::exec::result::{self, Interrupted};
use crate::handle::ask::Calling;
use crate::handle::exec::{Live, Progress};
use crate::handle::upcall::Upcall;
use crate::holder::wire::{CallOrder, Force, News};
use crate::language::environment::{self, Delta, Environment};
use crate::language::{self, Names};
use crate::lifecycle::End;
use crate::recording::{Call, CallResult};
use crate::store::{Finished, Outcome, StoredExec};

/// What is interrupted gets this long before more force is used.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);

/// A call that is interrupted so soon after it was sent may not have begun: a driver that has not is not interrupted by it, so it
/// is interrupted once more after as long.
const BARELY_BEGUN: Duration = Duration::from_millis(100);

/// A holder that is stopped is looked at again after this long.
const STOPPED_HOLDER: Duration = Duration::from_millis(500);

/// Calls that were cancelled before they came; one that never comes takes a place for good.
const MAX_CANCELLED: usize = 64;

/// An interpreter as it is found: just started, or after a crash of the daemon with calls that have not ended.
pub struct Revived {
    pub language: Language,
    /// The environment it was started with, beyond its caller's.
    pub carried: Delta,
    pub open: Vec<StoredExec>,
    /// Results up to here are stored.
    pub settled: Offset,
}

pub(super) struct Interpreter {
    pub language: Language,
    carried: Delta,
    /// The environment it had when it was ready.
    baseline: Option<Environment>,
    waiting: VecDeque<Calling>,
    current: Option<Current>,
    /// Accepted before the daemon died: which of them were sent, the recording says.
    open: Vec<StoredExec>,
    names: Vec<oneshot::Sender<Names>>,
    /// Cancelled before they were here.
    cancelled: Vec<ExecId>,
    pub line: Line,
}

/// The call that is being carried out.
struct Current {
    calling: Calling,
    start: Option<Offset>,
    since: Instant,
    /// When it is to be interrupted, or with more force.
    interrupt_at: Option<Instant>,
    interrupted: Option<BeingInterrupted>,
    stdin: Option<std::path::PathBuf>,
    unrecorded: Unrecorded,
}

/// What an exec printed while nothing could be recorded, in bytes.
#[derive(Default)]
struct Unrecorded {
    /// As its holder has counted it; older ones do not.
    told: Option<u64>,
    /// As the recording says itself, where it was resumed. That may include what earlier execs printed.
    gap: u64,
    /// What of it came over the link.
    seen: u64,
}

impl Unrecorded {
    fn lost(&self) -> u64 {
        self.told.unwrap_or(self.gap).saturating_sub(self.seen)
    }
}

impl Current {
    fn order(&self) -> CallOrder {
        CallOrder {
            id: self.calling.live.id,
            verb: language::verb_byte(self.calling.verb),
            stdin: self.stdin.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
            code: self.calling.code.clone(),
        }
    }
}

/// A call that has been interrupted, and how hard it will be next.
struct BeingInterrupted {
    why: Interrupted,
    next: Option<Force>,
}

impl Interpreter {
    pub fn new(revived: Revived) -> Self {
        Self {
            language: revived.language,
            carried: revived.carried,
            baseline: None,
            waiting: VecDeque::new(),
            current: None,
            open: revived.open,
            names: Vec::new(),
            cancelled: Vec::new(),
            line: Line::default(),
        }
    }

    pub fn wait(&mut self, calling: Calling) {
        self.waiting.push_back(calling);
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.current.as_ref()?.interrupt_at
    }

    /// Nothing of it ran for this long: that counts for nobody.
    pub fn stood(&mut self, long: Duration) {
        if let Some(current) = &mut self.current {
            current.since += long;
            current.interrupt_at = current.interrupt_at.map(|at| at + long);
        }
    }

    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }
}

/// What of a recording concerns calls, taken out of the reader's buffer.
pub(super) enum Noted {
    Call {
        id: ExecId,
        start: Offset,
        code: String,
    },
    Printed(Stream, Vec<u8>),
    /// So many bytes were printed by what earlier execs left running.
    Late(usize),
    /// So many bytes were printed and not recorded.
    Gap(u64),
    Result {
        id: ExecId,
        took: u64,
        said: Vec<u8>,
        end: Offset,
    },
}

impl Noted {
    pub fn call(call: &Call<'_>, start: Offset) -> Self {
        Self::Call { id: call.id, start, code: String::from_utf8_lossy(call.code).into_owned() }
    }

    pub fn result(result: &CallResult<'_>, end: Offset) -> Self {
        Self::Result { id: result.id, took: result.took, said: result.said.to_vec(), end }
    }
}

impl Runtime {
    /// A call is sent now if nothing else runs, else when its turn comes.
    pub(super) async fn accept(&mut self, calling: Calling) {
        self.facts.happened_now();
        let Some(interpreter) = &mut self.interpreter else { return };
        if let Some(place) = interpreter.cancelled.iter().position(|id| *id == calling.live.id) {
            interpreter.cancelled.remove(place);
            return self.settle_cancelled(calling);
        }
        interpreter.wait(calling);
        self.call_next().await;
    }

    pub(super) async fn call_next(&mut self) {
        let Some(interpreter) = &mut self.interpreter else { return };
        if interpreter.current.is_none()
            && self.terminating.is_none()
            && self.freezing.since.is_none()
            && let Some(mut calling) = interpreter.waiting.pop_front()
        {
            let stdin = match calling.stdin.take() {
                Some(text) => {
                    let path = self.context.paths.stdin(calling.live.id);
                    if let Err(error) = crate::files::write_private(&path, text.as_bytes()) {
                        let why = format!("its standard input could not be written: {error}; nothing of it was done");
                        tokio::spawn(exec::settle(self.context.clone(), calling.live, Finished::lost(&why)));
                        return Box::pin(self.call_next()).await;
                    }
                    Some(path)
                }
                None => None,
            };
            let interrupt_at = calling.timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
            let current = Current {
                calling,
                start: None,
                since: Instant::now(),
                interrupt_at,
                interrupted: None,
                stdin,
                unrecorded: Unrecorded::default(),
            };
            let order = current.order();
            interpreter.current = Some(current);
            // a link that is gone is seen by the loop, and then it is sent again
            let _ = self.link.call(order).await;
        }
        self.count_waiting();
    }

    /// After the link was lost: a call the holder has not heard of is sent again. `running` is what it is carrying out.
    pub(super) async fn send_again(&mut self, running: Option<ExecId>) {
        let unheard = |current: &&mut Current| current.start.is_none() && running != Some(current.calling.live.id);
        if let Some(order) = self.current().filter(unheard).map(|current| current.order()) {
            let _ = self.link.call(order).await;
        }
    }

    fn count_waiting(&self) {
        let Some(interpreter) = &self.interpreter else { return };
        let running = u64::from(interpreter.current.is_some());
        for (before, calling) in (running..).zip(&interpreter.waiting) {
            calling.live.progress.send_if_modified(|progress| match progress {
                Progress::Waiting(known) if *known != before => {
                    *known = before;
                    true
                }
                _ => false,
            });
        }
        self.facts.set_calls(running + interpreter.waiting.len() as u64);
    }

    /// What the recording says of calls, in its order.
    pub(super) async fn note(&mut self, noted: Noted) {
        match noted {
            Noted::Call { id, start, code } => self.call_began(id, start, &code),
            Noted::Printed(stream, bytes) => {
                if let Some(current) = self.current().filter(|current| current.start.is_some()) {
                    current.calling.live.printed(stream, &bytes);
                }
            }
            Noted::Late(_) => {}
            Noted::Gap(bytes) => {
                if let Some(current) = self.current().filter(|current| current.start.is_some()) {
                    current.unrecorded.gap += bytes;
                }
            }
            Noted::Result { id, took, said, end } => self.call_ended(id, took, &said, end).await,
        }
    }

    /// A part of what an exec printed has come over the link, because it could not be recorded.
    pub(super) fn unrecorded_output_seen(&mut self, bytes: u64) {
        if let Some(current) = self.current().filter(|current| current.start.is_some()) {
            current.unrecorded.seen += bytes;
            current.calling.live.mark_unrecorded();
        }
    }

    /// The holder has counted what an exec printed and what was not recorded of it.
    pub(super) fn output_was_unrecorded(&mut self, exec: ExecId, bytes: u64) {
        if let Some(current) = self.current().filter(|current| current.calling.live.id == exec) {
            current.unrecorded.told = Some(bytes);
        }
    }

    fn current(&mut self) -> Option<&mut Current> {
        self.interpreter.as_mut()?.current.as_mut()
    }

    pub(super) fn call_began(&mut self, id: ExecId, start: Offset, code: &str) {
        let Some(interpreter) = &mut self.interpreter else { return };
        if interpreter.current.as_ref().is_none_or(|current| current.calling.live.id != id) {
            // sent by an earlier daemon
            let Some(place) = interpreter.open.iter().position(|open| open.id == id) else { return };
            let open = interpreter.open.remove(place);
            let passed = jiff::Timestamp::now().duration_since(open.asked_at).unsigned_abs();
            let left = open.timeout_ms.map(|ms| Duration::from_millis(ms).saturating_sub(passed));
            let stdin = open.stdin.is_some().then(|| self.context.paths.stdin(id));
            let calling = calling_of(&self.context, open, code.to_owned());
            let interrupt_at = left.map(|left| Instant::now() + left);
            interpreter.current = Some(Current {
                calling,
                start: None,
                since: Instant::now(),
                interrupt_at,
                interrupted: None,
                stdin,
                unrecorded: Unrecorded::default(),
            });
        }
        if let Some(current) = &mut interpreter.current {
            current.start = Some(start);
            // it is recorded: nobody needs it any more
            current.calling.code = String::new();
            current.calling.live.progress.send_replace(Progress::Running(start));
        }
    }

    /// What its holder says of how long a call sent by an earlier daemon has run: that knows of pauses.
    pub(super) fn call_has_run(&mut self, ran: Duration) {
        if let Some(current) = self.current()
            && let Some(ms) = current.calling.timeout_ms
        {
            current.interrupt_at = Some(Instant::now() + Duration::from_millis(ms).saturating_sub(ran));
        }
    }

    async fn call_ended(&mut self, id: ExecId, took: u64, said: &[u8], end: Offset) {
        if self.current().is_none_or(|current| current.calling.live.id != id) {
            // its beginning has been dropped from the recording
            self.call_began(id, 0, "");
        }
        let Some(interpreter) = &mut self.interpreter else { return };
        let language = interpreter.language;
        let Some(current) = interpreter.current.take_if(|current| current.calling.live.id == id) else { return };
        let said = language::understand(said);
        let exit = said.exit;
        let mut outcome =
            result::outcome(said, language, current.calling.verb, current.interrupted.as_ref().map(|interrupted| interrupted.why));
        if language == Language::Bash && current.calling.verb == Verb::Eval && exit == 0 {
            // as $(…) would give it
            outcome.value = Some(current.calling.live.printed_text().trim_end_matches('\n').to_owned());
        }
        outcome.say_output_lost(current.unrecorded.lost(), language, current.calling.verb);
        self.finish_current(current, Some(exit), took, Some(end), outcome);
        self.call_next().await;
    }

    fn finish_current(&mut self, current: Current, exit_code: Option<i32>, took: u64, end: Option<Offset>, mut outcome: Outcome) {
        let Current { calling, start, stdin, .. } = current;
        if let Some(path) = stdin {
            let _ = std::fs::remove_file(path);
        }
        outcome.say_restarted(calling.restarted);
        if let Some(cwd) = &outcome.cwd {
            self.cwd.clone_from(cwd);
        }
        let bytes = calling.live.bytes();
        // while nothing is recorded, the database alone knows
        let end = end.filter(|_| !self.is_suspended);
        let finished = Finished { stage: Stage::Finished, exit_code, took, start, end, bytes, outcome };
        tokio::spawn(exec::settle(self.context.clone(), calling.live, finished));
    }

    /// Everything recorded has been read: what was accepted and never sent is sent now.
    pub(super) async fn go_on_with_open(&mut self) {
        let Some(interpreter) = &mut self.interpreter else { return };
        for open in std::mem::take(&mut interpreter.open) {
            let code = open.code.clone();
            let calling = calling_of(&self.context, open, code);
            interpreter.waiting.push_back(calling);
        }
        self.call_next().await;
    }

    /// What a driver says beside results.
    pub(super) async fn hear_driver(&mut self, news: News) {
        let Some(interpreter) = &mut self.interpreter else { return };
        match news {
            News::Hello(said) => {
                let hello = language::hello(&said);
                if hello.pid > 0 {
                    self.facts.set_pid(hello.pid);
                }
                self.facts.set_version(hello.version);
            }
            News::Baseline(said) => interpreter.baseline = Some(environment::parse(interpreter.language, &said)),
            News::State(said) => {
                let Some(baseline) = &interpreter.baseline else { return };
                let now = environment::parse(interpreter.language, &said);
                let delta = interpreter.carried.then(&environment::delta(baseline, &now));
                // in the order in which it is heard: the next thing may be asked after it
                let _ = self.context.store.environment_changed(self.id, delta).await;
            }
            News::Names(said) => {
                let names = language::names(&said);
                let _ = self.context.store.names_seen(self.id, names.clone()).await;
                for waiter in std::mem::take(&mut interpreter.names) {
                    let _ = waiter.send(names.clone());
                }
            }
            _ => {}
        }
    }

    /// Which names are defined; nobody is told while a call runs.
    pub(super) async fn ask_names(&mut self, answer: oneshot::Sender<Names>) {
        let is_frozen = self.is_frozen();
        let Some(interpreter) = self.interpreter.as_mut().filter(|interpreter| !interpreter.is_busy() && !is_frozen) else { return };
        interpreter.names.push(answer);
        let _ = self.link.names().await;
    }

    pub(super) async fn cancel(&mut self, id: ExecId) {
        let Some(interpreter) = &mut self.interpreter else { return };
        if let Some(place) = interpreter.waiting.iter().position(|calling| calling.live.id == id) {
            if let Some(calling) = interpreter.waiting.remove(place) {
                self.settle_cancelled(calling);
            }
            self.count_waiting();
        } else if interpreter.current.as_ref().is_some_and(|current| current.calling.live.id == id) {
            self.interrupt(Interrupted::Cancel).await;
        } else if interpreter.cancelled.len() < MAX_CANCELLED {
            // on its way here
            interpreter.cancelled.push(id);
        }
    }

    fn settle_cancelled(&self, calling: Calling) {
        let cancelled = Finished::cancelled("cancelled before its turn came; nothing of it was done");
        tokio::spawn(exec::settle(self.context.clone(), calling.live, cancelled));
    }

    /// As ctrl-c: the call that runs, if one does.
    pub(super) async fn interrupt(&mut self, why: Interrupted) {
        let Some(current) = self.current() else { return };
        if current.interrupted.is_none() {
            let (next, after) = if current.since.elapsed() < BARELY_BEGUN {
                (Force::Interrupt, BARELY_BEGUN)
            } else {
                (Force::KillChildren, INTERRUPT_GRACE)
            };
            current.interrupted = Some(BeingInterrupted { why, next: Some(next) });
            current.interrupt_at = Some(Instant::now() + after);
        }
        let _ = self.link.interrupt(Force::Interrupt).await;
    }

    /// A timeout, or an interrupt that was not heard.
    pub(super) async fn interrupt_if_due(&mut self) {
        let holder = self.facts.holder_pid;
        let Some(current) = self.current().filter(|current| current.interrupt_at.is_some_and(|at| Instant::now() >= at)) else { return };
        if crate::holder::why_silent(holder).is_some() {
            // it would obey everything at once when it goes on, the hardest order last
            current.interrupt_at = Some(Instant::now() + STOPPED_HOLDER);
            return;
        }
        let ms = current.calling.timeout_ms.unwrap_or(0);
        let Some(interrupted) = &mut current.interrupted else { return self.interrupt(Interrupted::Timeout { ms }).await };
        let Some(force) = interrupted.next else {
            current.interrupt_at = None;
            return;
        };
        interrupted.next = match force {
            Force::Interrupt => Some(Force::KillChildren),
            Force::KillChildren => Some(Force::Kill),
            Force::Kill => None,
        };
        current.interrupt_at = Some(Instant::now() + INTERRUPT_GRACE);
        let _ = self.link.interrupt(force).await;
    }

    /// The interpreter is gone: its call ends with it, those behind it get another.
    pub(super) fn calls_end(&mut self, end: &End) {
        let Some(mut interpreter) = self.interpreter.take() else { return };
        let _ = std::fs::remove_file(self.context.paths.scratch(self.id));
        if let Some(current) = interpreter.current.take() {
            let took = current.calling.live.asked_before().as_micros() as u64;
            let why = current.interrupted.as_ref().map(|interrupted| interrupted.why);
            let mut outcome = Outcome { cwd: Some(self.cwd.clone()), ..result::ended_with_runtime(end, why) };
            let mut exit_code = result::exit_code(end);
            if let End::Exited(status) = end
                && self.facts.version().is_none()
            {
                // no driver of ours was ever there: whatever its exit code is, it is not the code's
                let language = interpreter.language;
                outcome.error = Some(format!(
                    "the {language} interpreter ended with {status} before it was ready, so nothing was run: config.toml, [runtime] {language} = \"…\", says which one is used"
                ));
                exit_code = None;
            }
            let at = self.consumed;
            self.finish_current(current, exit_code, took, Some(at), outcome);
        }
        let mut waiting: Vec<Calling> = interpreter.waiting.into();
        for open in interpreter.open {
            let code = open.code.clone();
            waiting.push(calling_of(&self.context, open, code));
        }
        if waiting.is_empty() {
            return;
        }
        if matches!(end, End::Killed(..)) {
            for calling in waiting {
                let cancelled = Finished::cancelled("the runtime was ended before its turn came; nothing of it was done");
                tokio::spawn(exec::settle(self.context.clone(), calling.live, cancelled));
            }
            return;
        }
        let (session, language) = (self.facts.session(), interpreter.language);
        self.context.upcalls.send(Upcall::MoveExecs { session, language, execs: waiting });
    }

    /// What a person types into the transcript: a line that is run, or ctrl-c.
    pub(super) async fn typed(&mut self, bytes: &[u8]) {
        let Some(interpreter) = &mut self.interpreter else { return };
        let language = interpreter.language;
        for typed in interpreter.line.feed(bytes) {
            match typed {
                Typed::Run(code) => {
                    self.context.upcalls.send(Upcall::RunLine { session: self.facts.session(), language, code });
                }
                Typed::Interrupt => self.interrupt(Interrupted::Cancel).await,
            }
        }
        self.is_dirty = true;
    }
}

fn calling_of(context: &crate::context::Context, open: StoredExec, code: String) -> Calling {
    let live = context.execs.insert(Arc::new(Live::of(&open)));
    Calling {
        live,
        verb: open.verb,
        code,
        stdin: open.stdin,
        timeout_ms: open.timeout_ms,
        restarted: open.restarted,
        environment: Arc::default(),
    }
}
