//! Stopping everything a runtime consists of, and letting it go on exactly there. Every descendant is taken into a frozen control group,
//! or, where none can be had, stopped by a signal: in sweeps, until no new one turns up. The group stays, with all that is started in it: the
//! next time it is frozen at once. It is made when it is first needed: entering one costs what starting a program does, which most would pay for
//! nothing. Never waits: the loop asks again.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::group::{Freezer, Taking};
use super::tree::{self, Stat};
use super::wire::Frozen;

/// Between two looks at what is coming to a stop.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// What has not come to a stop by then is told; it is looked at on, less often.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_NOW_AND_THEN: Duration = Duration::from_millis(500);

/// So many sweeps in a row must find nothing new: what forks between two of them is found by the next.
const CLEAN_SWEEPS: u32 = 3;

/// As long as sweeps go on finding something, they are made for this long before others get their turn.
const SWEEPING: Duration = Duration::from_millis(5);

pub struct Freeze {
    runtime: String,
    /// Ways to have a group that are not open to us.
    tried: Vec<&'static str>,
    freezer: Option<Freezer>,
    state: State,
    /// What was stopped by signals, in that order: parents before their children.
    stopped: Vec<Stat>,
    /// Those that had been stopped before, by a person or by themselves: they stay so.
    were_stopped: Vec<Stat>,
    /// Those that are somebody else's.
    refused: u32,
    clean_sweeps: u32,
}

/// What may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Groups,
    Signals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Since when, and when to look again. `told`: that it takes long.
    Stopping {
        since: Instant,
        look_at: Instant,
        told: bool,
    },
    Frozen {
        since: Instant,
    },
}

/// What is to be told after a look.
pub enum Seen {
    Nothing,
    /// All of it stands still, or what could not be stopped is known.
    Stopped,
    /// It takes long.
    Slow,
}

impl Freeze {
    /// By signals alone, or by groups too.
    pub fn new(runtime: &str, by: By) -> Self {
        let tried = if by == By::Signals { vec!["cgroup2", "cgroup1"] } else { Vec::new() };
        Self {
            runtime: runtime.to_owned(),
            tried,
            freezer: None,
            state: State::Running,
            stopped: Vec::new(),
            were_stopped: Vec::new(),
            refused: 0,
            clean_sweeps: 0,
        }
    }

    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Asked to stop, whether it stands still by now or not.
    pub fn since(&self) -> Option<Instant> {
        match self.state {
            State::Running => None,
            State::Stopping { since, .. } | State::Frozen { since } => Some(since),
        }
    }

    pub fn next_look(&self) -> Option<Instant> {
        match self.state {
            State::Stopping { look_at, .. } => Some(look_at),
            _ => None,
        }
    }

    pub fn begin(&mut self) {
        if !self.is_running() {
            return;
        }
        let now = Instant::now();
        if self.freezer.as_ref().is_none_or(|freezer| freezer.freeze().is_err()) {
            self.freezer = Freezer::make(&self.runtime, &self.tried);
        }
        self.clean_sweeps = 0;
        self.refused = 0;
        self.state = State::Stopping { since: now, look_at: now, told: false };
    }

    /// How far it has come; `root` is the process whose descendants are meant.
    pub fn look(&mut self, root: u32) -> Seen {
        let State::Stopping { since, look_at, told } = self.state else { return Seen::Nothing };
        if Instant::now() < look_at {
            return Seen::Nothing;
        }
        let has_stopped = self.sweep(root) && self.freezer.as_ref().is_none_or(Freezer::is_frozen);
        if has_stopped {
            self.state = State::Frozen { since };
            return Seen::Stopped;
        }
        if let Some(freezer) = &self.freezer {
            // the first version forgets it when something was in the way
            let _ = freezer.freeze();
        }
        let is_slow = since.elapsed() > PATIENCE;
        let pause = if is_slow { LOOK_NOW_AND_THEN } else { LOOK_AGAIN };
        self.state = State::Stopping { since, look_at: Instant::now() + pause, told: told || is_slow };
        if is_slow && !told { Seen::Slow } else { Seen::Nothing }
    }

    /// Stops whatever is found; `true` once nothing new has turned up for some sweeps and all of it stands.
    fn sweep(&mut self, root: u32) -> bool {
        let until = Instant::now() + SWEEPING;
        while Instant::now() < until {
            let is_clean = match &self.freezer {
                Some(_) => self.sweep_into_group(root),
                None => self.sweep_by_signals(root),
            };
            self.clean_sweeps = if is_clean { self.clean_sweeps + 1 } else { 0 };
            if self.clean_sweeps >= CLEAN_SWEEPS {
                return true;
            }
        }
        false
    }

    /// What is in the group cannot fork any more: each that is taken in is one less.
    fn sweep_into_group(&mut self, root: u32) -> bool {
        let Some(freezer) = &self.freezer else { return false };
        let members = freezer.members();
        let (mut is_clean, mut refused) = (true, 0);
        for found in tree::descend(root).into_iter().filter(|found| !members.contains(&found.pid)) {
            match freezer.take_in(found.pid) {
                Taking::In | Taking::Gone => is_clean = false,
                Taking::Refused => refused += 1,
            }
        }
        if refused > 0 && freezer.members().is_empty() {
            // nobody may enter: another way
            freezer.thaw();
            freezer.remove();
            self.tried.push(freezer.word());
            self.freezer = Freezer::make(&self.runtime, &self.tried);
            return false;
        }
        self.refused = refused;
        is_clean
    }

    fn sweep_by_signals(&mut self, root: u32) -> bool {
        let (mut is_clean, mut refused) = (true, 0);
        for found in tree::descend(root) {
            let is_known = self.stopped.contains(&found) || self.were_stopped.contains(&found);
            if is_known {
                is_clean &= found.is_stopped || self.were_stopped.contains(&found);
            } else if found.is_stopped {
                self.were_stopped.push(found);
            } else if tree::send(found.pid, Signal::STOP) {
                is_clean = false;
                self.stopped.push(found);
            } else {
                refused += 1;
            }
        }
        self.refused = refused;
        is_clean
    }

    /// Everything goes on where it was; gives how long it stood.
    pub fn thaw(&mut self) -> Duration {
        let Some(since) = self.since() else { return Duration::ZERO };
        if let Some(freezer) = &self.freezer {
            freezer.thaw();
        }
        // children first: a shell that goes on before its child takes it for stopped, and says so
        for stopped in self.stopped.drain(..).rev() {
            if tree::stat(stopped.pid).is_some_and(|now| now == stopped) {
                tree::signal(stopped.pid, Signal::CONT);
            }
        }
        self.were_stopped.clear();
        self.state = State::Running;
        since.elapsed()
    }

    /// Ends everything at once, if there is a way that nothing escapes.
    pub fn kill(&self) -> bool {
        self.freezer.as_ref().is_some_and(Freezer::kill)
    }

    pub fn told(&self, queued: u64, queues_input: bool) -> Option<Frozen> {
        let since = self.since()?;
        let by = self.freezer.as_ref().map_or("signals", Freezer::word);
        let processes =
            self.freezer.as_ref().map_or((self.stopped.len() + self.were_stopped.len()) as u32, |freezer| freezer.members().len() as u32);
        Some(Frozen {
            by: by.to_owned(),
            processes,
            refused: self.refused,
            is_slow: matches!(self.state, State::Stopping { .. }),
            since_ms: since.elapsed().as_millis() as u64,
            queues_input,
            queued,
        })
    }

    /// Everything is over.
    pub fn remove(&self) {
        if let Some(freezer) = &self.freezer {
            freezer.remove();
        }
    }
}
