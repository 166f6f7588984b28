//! The calls that have not ended, and where the calls of each place go while nothing changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::exec::{Language, Place};
use shared::id::{ExecId, RuntimeId, SessionId};

use super::Live;

/// The calls that have not ended, by id; and where calls went last.
#[derive(Default)]
pub struct Execs {
    live: Mutex<HashMap<ExecId, Arc<Live>>>,
    known: Mutex<HashMap<(Place, Language), Known>>,
    /// Calls that are asking the database where to go: nobody may overtake them.
    asking: Mutex<HashMap<(Place, Language), usize>>,
}

/// Where the calls of a place go, for as long as nothing has changed.
#[derive(Clone)]
pub struct Known {
    pub standings: u64,
    pub runtime: RuntimeId,
    pub session: SessionId,
    pub name: String,
}

/// Places that are known at once: more than anybody uses.
const MAX_KNOWN: usize = 1000;

impl Execs {
    fn live(&self) -> MutexGuard<'_, HashMap<ExecId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: ExecId) -> Option<Arc<Live>> {
        self.live().get(&id).cloned()
    }

    /// The one that is there already, or this one.
    pub fn insert(&self, live: Arc<Live>) -> Arc<Live> {
        Arc::clone(self.live().entry(live.id).or_insert(live))
    }

    pub fn remove(&self, id: ExecId) {
        self.live().remove(&id);
    }

    pub fn known(&self, place: &Place, language: Language, standings: u64) -> Option<Known> {
        if self.asking().contains_key(&(place.clone(), language)) {
            return None;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(place.clone(), language)).filter(|known| known.standings == standings).cloned()
    }

    fn asking(&self) -> MutexGuard<'_, HashMap<(Place, Language), usize>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn remember(&self, place: &Place, language: Language, found: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert((place.clone(), language), found);
    }
}

/// For as long as a call asks where to go.
pub struct Asking<'e> {
    execs: &'e Execs,
    whose: (Place, Language),
}

impl<'e> Asking<'e> {
    pub fn new(execs: &'e Execs, place: &Place, language: Language) -> Self {
        let whose = (place.clone(), language);
        *execs.asking().entry(whose.clone()).or_default() += 1;
        Self { execs, whose }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut asking = self.execs.asking();
        if let Some(count) = asking.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                asking.remove(&self.whose);
            }
        }
    }
}
