//! The settings as they are now: `config.toml` and the agents' manifests. Whoever asks gets the present ones; a mistake in the files
//! leaves those of before, and is told until it is fixed.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use shared::config::Config;
use shared::paths::Paths;
use tokio::sync::watch;

use crate::agent::Agents;
use crate::files;

/// What the daemon begins with.
pub struct FirstSettings {
    pub config: Config,
    /// What is wrong with `config.toml`, a sentence each.
    pub wrong: Vec<String>,
    /// Reads the file again, and says why it cannot be used: keys and colours are in it, which only the client knows.
    pub read: fn(&Paths) -> Result<Config, String>,
}

pub struct Settings {
    read: fn(&Paths) -> Result<Config, String>,
    config: RwLock<Arc<Config>>,
    agents: RwLock<Arc<Agents>>,
    /// What those were read from, by the names of the files.
    manifests: Mutex<Vec<(String, String)>>,
    /// What is wrong with the files, a sentence each.
    wrong: Mutex<Vec<String>>,
    /// Counts changes of any of these.
    changes: watch::Sender<u64>,
}

impl Settings {
    pub fn new(paths: &Paths, first: FirstSettings) -> Self {
        let FirstSettings { config, mut wrong, read } = first;
        let manifests = files::read_folder(&paths.agents(), "toml");
        let (agents, of_agents) = Agents::read(&manifests);
        wrong.extend(of_agents);
        Self {
            read,
            config: RwLock::new(Arc::new(config)),
            agents: RwLock::new(Arc::new(agents)),
            manifests: Mutex::new(manifests),
            wrong: Mutex::new(wrong),
            changes: watch::Sender::new(0),
        }
    }

    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn agents(&self) -> Arc<Agents> {
        Arc::clone(&self.agents.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// For loops that sleep by settings: `changed()` on it returns when they are others.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// What reading the files again came to.
pub struct Reread {
    /// Sentences that were not known before.
    pub newly_wrong: Vec<String>,
    pub is_in_order_again: bool,
    /// Tables of the settings that say something else now.
    pub changed: Vec<String>,
}

impl Settings {
    /// Reads everything again. `blind` is why changes are not noticed, if they are not.
    pub fn read_again(&self, paths: &Paths, blind: Option<String>) -> Reread {
        let mut wrong: Vec<String> = blind.into_iter().collect();
        let mut changed = Vec::new();
        match (self.read)(paths) {
            Ok(config) => {
                let before = self.config();
                if *before != config {
                    changed = differences(&before, &config);
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                }
            }
            Err(why) => {
                // what was wrong at the start already is told as it was then: there are no settings of before
                let known = self.wrong().into_iter().find(|sentence| sentence.starts_with(&why));
                wrong.push(known.unwrap_or_else(|| format!("{why}; the settings of before are kept")));
            }
        }
        let manifests = files::read_folder(&paths.agents(), "toml");
        let (agents, of_agents) = Agents::read(&manifests);
        wrong.extend(of_agents);
        let known = std::mem::replace(&mut *self.manifests.lock().unwrap_or_else(PoisonError::into_inner), manifests.clone());
        if known != manifests {
            changed.push("agents".to_owned());
            *self.agents.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(agents);
        }
        let before = std::mem::replace(&mut *self.wrong.lock().unwrap_or_else(PoisonError::into_inner), wrong.clone());
        if !changed.is_empty() || wrong != before {
            self.changes.send_modify(|count| *count += 1);
        }
        let is_in_order_again = wrong.is_empty() && !before.is_empty();
        wrong.retain(|sentence| !before.contains(sentence));
        Reread { newly_wrong: wrong, is_in_order_again, changed }
    }
}

/// The tables that say something else than before.
fn differences(before: &Config, now: &Config) -> Vec<String> {
    let (Ok(serde_json::Value::Object(before)), Ok(serde_json::Value::Object(now))) =
        (serde_json::to_value(before), serde_json::to_value(now))
    else {
        return Vec::new();
    };
    now.into_iter().filter(|(key, value)| before.get(key) != Some(value)).map(|(key, _)| key).collect()
}
