//! Live runtimes by id, and whose they are now. Its lock is never held across an await.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::exec::Language;
use shared::id::{RuntimeId, SessionId, ThreadId};
use tokio::sync::Notify;

use crate::handle::runtime::RuntimeHandle;

#[derive(Default)]
pub struct Registry {
    live: Mutex<Live>,
    changed: Notify,
}

#[derive(Default)]
struct Live {
    handles: HashMap<RuntimeId, RuntimeHandle>,
    /// Runtimes whose holders an earlier daemon started and this one cannot reach: of which session, and why.
    unreachable: HashMap<RuntimeId, (SessionId, String)>,
    /// Runtimes that were taken over by another session before they were here.
    expected: HashMap<RuntimeId, SessionId>,
}

impl Registry {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn insert(&self, handle: RuntimeHandle) {
        let mut live = self.live();
        if let Some(session) = live.expected.remove(&handle.id) {
            handle.facts.set_session(session);
        }
        live.unreachable.remove(&handle.id);
        live.handles.insert(handle.id, handle);
        drop(live);
        self.changed.notify_waiters();
    }

    pub fn remove(&self, runtime: RuntimeId) {
        let mut live = self.live();
        live.handles.remove(&runtime);
        live.unreachable.remove(&runtime);
        live.expected.remove(&runtime);
        drop(live);
        self.changed.notify_waiters();
    }

    /// A holder cannot be reached, for now.
    pub fn set_unreachable(&self, runtime: RuntimeId, session: SessionId, why: String) {
        let before = self.live().unreachable.insert(runtime, (session, why.clone()));
        if before.is_none_or(|(of, was)| (of, was) != (session, why)) {
            self.changed.notify_waiters();
        }
    }

    pub fn forget_unreachable(&self, runtime: RuntimeId) {
        self.live().unreachable.remove(&runtime);
        self.changed.notify_waiters();
    }

    /// Why the holder of a runtime cannot be reached, if it cannot.
    pub fn why_unreachable(&self, runtime: RuntimeId) -> Option<String> {
        self.live().unreachable.get(&runtime).map(|(_, why)| why.clone())
    }

    /// Why something of a session cannot be reached, if it cannot.
    pub fn unreachable(&self, session: SessionId) -> Option<String> {
        let live = self.live();
        let stopped = |handle: &RuntimeHandle| crate::holder::why_silent(handle.facts.holder_pid);
        let away = live.unreachable.values().find(|(of, _)| *of == session).map(|(_, why)| why.clone());
        away.or_else(|| live.handles.values().filter(|handle| handle.facts.session() == session).find_map(stopped))
    }

    /// Every session of which something cannot be reached, and why.
    pub fn all_unreachable(&self) -> Vec<(SessionId, String)> {
        let live = self.live();
        let stopped = |handle: &RuntimeHandle| Some((handle.facts.session(), crate::holder::why_silent(handle.facts.holder_pid)?));
        live.unreachable.values().cloned().chain(live.handles.values().filter_map(stopped)).collect()
    }

    /// Returns when something has come or gone since the call.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        let mut changed = Box::pin(self.changed.notified());
        // counted from now on, not from when it is first waited for
        changed.as_mut().enable();
        changed
    }

    /// A program that is still running, or about to, belongs to the next session of its thread.
    pub fn pass_on(&self, runtime: RuntimeId, to: SessionId) {
        let mut live = self.live();
        match live.handles.get(&runtime) {
            Some(handle) => handle.facts.set_session(to),
            None => {
                live.expected.insert(runtime, to);
            }
        }
    }

    pub fn runtime(&self, runtime: RuntimeId) -> Option<RuntimeHandle> {
        self.live().handles.get(&runtime).cloned()
    }

    /// The program of a session.
    pub fn of_session(&self, session: SessionId) -> Option<RuntimeHandle> {
        self.live().handles.values().find(|handle| handle.language.is_none() && handle.facts.session() == session).cloned()
    }

    /// The program of a thread.
    pub fn of_thread(&self, thread: ThreadId) -> Option<RuntimeHandle> {
        self.live().handles.values().find(|handle| handle.language.is_none() && handle.thread == thread).cloned()
    }

    /// A thread's program and its interpreters.
    pub fn all_of_thread(&self, thread: ThreadId) -> Vec<RuntimeHandle> {
        self.live().handles.values().filter(|handle| handle.thread == thread).cloned().collect()
    }

    /// The interpreter of a thread for a language; for any, the one that was used last.
    pub fn interpreter(&self, thread: ThreadId, language: Option<Language>) -> Option<RuntimeHandle> {
        let live = self.live();
        let of_thread = live.handles.values().filter(|handle| handle.thread == thread && handle.language.is_some());
        of_thread
            .filter(|handle| language.is_none() || handle.language == language)
            .max_by_key(|handle| handle.facts.last_steady())
            .cloned()
    }

    /// For whoever asks of many sessions: all that runs for each.
    pub fn by_session(&self) -> HashMap<SessionId, Vec<RuntimeHandle>> {
        let mut found: HashMap<SessionId, Vec<RuntimeHandle>> = HashMap::new();
        for handle in self.live().handles.values() {
            found.entry(handle.facts.session()).or_default().push(handle.clone());
        }
        found
    }

    pub fn all(&self) -> Vec<RuntimeHandle> {
        self.live().handles.values().cloned().collect()
    }

    /// How many sessions have something that runs: a program and its interpreters are one.
    pub fn count_sessions(&self) -> usize {
        self.live().handles.values().map(|handle| handle.facts.session()).collect::<HashSet<_>>().len()
    }
}
