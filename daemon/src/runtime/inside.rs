//! What runs inside of a terminal, as far as it can be known: which agent it is, what a shell tells of its commands and its
//! environment, what has the terminal and what its screen means. Only for programs on a PTY.

use std::path::Path;
use std::time::SystemTime;

use serde_json::json;
use shared::event::Author;
use shared::id::Offset;
use shared::screen::{Event, Located};
use tokio::time::{Duration, Instant};

use super::{Runtime, Typist};
use crate::agent::Agent;
use crate::attention::{Basis, Evidence, Foreground, Hooked, Sample, Sign};
use crate::command::{self, Frame, Told, Tracker};
use crate::holder;
use crate::language::environment::Delta;
use crate::notify::Notice;
use crate::recording;
use crate::shell;
use crate::store::{Fact, Memory};

/// After output that may have changed what the screen means, by rules for it: agents draw in bursts.
const SCREEN_AFTER: Duration = Duration::from_millis(400);

/// What was heard of commands is stored this often while nothing is heard: so much a later daemon reads again at most.
const HEARD_EVERY: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Inside {
    /// By its name in the manifests.
    agent: Option<String>,
    /// The program that was started is a shell.
    is_shell: bool,
    /// What it was started with beyond its caller's environment.
    given: Delta,
    tracker: Tracker,
    /// When the recording began, by the wall clock.
    began_at: Option<i64>,
    /// Up to where what was heard of commands is stored.
    stored: Offset,
    /// Who pressed enter last.
    author: Option<Author>,
    /// The environment's file as it was last read.
    environment: Option<(SystemTime, u64)>,
    /// When the screen is to be looked at.
    pub look_at: Option<Instant>,
    pub notified_at: Option<jiff::Timestamp>,
    /// When somebody typed last.
    pub typed_at: Option<jiff::Timestamp>,
    /// The title is to be read together with the screen.
    is_title_due: bool,
    /// The agent was recognised as the program in front of a shell.
    is_agent_by_process: bool,
}

impl Runtime {
    /// What an earlier daemon knew, and what the launch tells.
    pub(super) async fn remember(&mut self) {
        let Ok(Some(memory)) = self.context.store.memory_of(self.id).await else { return };
        let Memory { launch, agent, hook, notified_at, heard, running } = memory;
        let recognised = self.context.agents().recognise(&launch.argv).map(|agent| agent.name.clone());
        if agent.is_none()
            && let Some(name) = &recognised
        {
            self.bind_by_launch(name.clone(), &launch.argv, &launch.cwd);
        }
        self.inside.agent = agent.map(|agent| agent.agent).or(recognised);
        self.inside.is_shell = shell::is_shell(&launch.argv);
        self.inside.given = Delta { set: launch.env_delta, removed: launch.env_removed };
        self.inside.stored = heard.from;
        self.inside.tracker = Tracker::resume(heard, running);
        self.inside.notified_at = notified_at;
        if let Some(hook) = hook {
            self.facts.evidence(|evidence| evidence.hooked(hook));
        }
        self.facts.set_agent(self.inside.agent.as_deref());
    }

    /// The command that started an agent may name its conversation.
    fn bind_by_launch(&self, agent: String, argv: &[String], cwd: &str) {
        use shared::agent::{Conversation, IdSource};
        let session_id = self.context.agents().id_in(argv);
        let id_source = if session_id.is_some() { IdSource::Launch } else { IdSource::None };
        let is_resumed = self.context.agents().is_resumed(argv);
        let conversation = Conversation {
            agent,
            session_id,
            cwd: Some(cwd.to_owned()),
            transcript: None,
            prompted: is_resumed,
            id_source,
            bound_at: jiff::Timestamp::now(),
            ended: false,
        };
        let (store, id) = (self.context.store.clone(), self.id);
        tokio::spawn(async move {
            let _ = store.rebind(id, move |before| Some(before.unwrap_or(conversation))).await;
        });
    }

    /// Commands between what was stored and where this daemon begins to read.
    pub(super) async fn catch_up_commands(&mut self, until: Offset) {
        if self.inside.tracker.heard().from >= until {
            return;
        }
        let dir = self.context.paths.recording(self.id);
        let mut found = Vec::new();
        command::read_on(&dir, &mut self.inside.tracker, until, |told, _| found.extend(told)).await;
        self.store_commands(found);
    }

    /// What a batch of output says of commands.
    pub(super) fn note_commands(&mut self, bytes: &[u8], events: &[Located], frames: &[Frame]) {
        let cwd = self.cwd.clone();
        let told = self.inside.tracker.feed(bytes, events, frames, Some(&cwd), self.inside.author);
        if !told.is_empty() {
            self.store_commands(told);
        }
    }

    fn store_commands(&mut self, told: Vec<Told>) {
        if self.inside.began_at.is_none() {
            self.inside.began_at = recording::header(&self.context.paths.recording(self.id)).map(|header| header.began_at);
        }
        let (store, id, heard) = (self.context.store.clone(), self.id, self.inside.tracker.heard());
        let began_at = self.inside.began_at.unwrap_or_else(|| jiff::Timestamp::now().as_microsecond());
        self.inside.stored = heard.from;
        tokio::spawn(async move {
            // what could not be stored is read again from the recording by the next daemon
            let _ = store.commands(id, told, heard, began_at).await;
        });
    }

    /// After a burst of output: what was passed over need not be read again.
    pub(super) fn note_heard(&mut self) {
        if self.interpreter.is_none() && self.inside.tracker.is_between() && self.consumed.saturating_sub(self.inside.stored) >= HEARD_EVERY
        {
            self.inside.tracker.pass(self.consumed);
            self.store_commands(Vec::new());
        }
    }

    /// The program is over: a command that runs ends with it, and nothing is to be read again.
    pub(super) fn end_commands(&mut self, exit_code: Option<i32>) {
        let Some(began_at) = self.inside.began_at.or_else(|| {
            let header = recording::header(&self.context.paths.recording(self.id));
            header.map(|header| header.began_at)
        }) else {
            return;
        };
        self.inside.began_at = Some(began_at);
        let time = u64::try_from(jiff::Timestamp::now().as_microsecond() - began_at).unwrap_or(0);
        let running = self.inside.tracker.running().cloned();
        let told = running.map(|begun| Told::Ended { begun, offset: self.consumed, time, exit_code });
        self.inside.tracker.pass(self.consumed);
        self.store_commands(told.into_iter().collect());
        let _ = std::fs::remove_file(self.context.paths.shell_state(self.id));
        let _ = std::fs::remove_file(self.context.paths.shell_start(self.id));
    }

    /// Whose the line is that is being typed.
    pub(super) fn note_typist(&mut self, from: Typist, bytes: &[u8]) {
        if bytes.contains(&b'\r') || bytes.contains(&b'\n') {
            self.inside.author = Some(match from {
                Typist::Client(_) => Author::Human,
                Typist::Api => self.facts.sender(),
            });
        }
    }

    /// What a shell has exported since its first prompt, as the file says that our script keeps.
    pub(super) fn look_at_environment(&mut self) {
        if self.interpreter.is_some() || !self.inside.is_shell || !self.context.config().shell.environment {
            return;
        }
        let (now, first) = (self.context.paths.shell_state(self.id), self.context.paths.shell_start(self.id));
        // empty until the first prompt
        let Some(file) = std::fs::metadata(&now).ok().filter(|file| file.len() > 0) else { return };
        let stamp = (file.modified().unwrap_or(SystemTime::UNIX_EPOCH), file.len());
        if self.inside.environment == Some(stamp) {
            return;
        }
        self.inside.environment = Some(stamp);
        let Some(delta) = changed_between(&first, &now, self.context.config().shell.secrets) else { return };
        let (store, id, delta) = (self.context.store.clone(), self.id, self.inside.given.then(&delta));
        tokio::spawn(async move {
            let _ = store.environment_changed(id, delta).await;
        });
    }

    /// What an agent's hooks say, by way of `sessions-tui hook`.
    pub(super) fn hear_hook(&mut self, agent: String, hook: Option<Hooked>) {
        self.inside.agent = Some(agent);
        self.facts.set_agent(self.inside.agent.as_deref());
        if let Some(hook) = hook {
            self.facts.evidence(|evidence| evidence.hooked(hook));
            self.attention_may_have_changed();
            self.keep_hook();
        }
    }

    /// What stands of hooks is kept for the next daemon: nothing of it is in the recording.
    pub(super) fn keep_hook(&self) {
        let hook = self.facts.evidence(|evidence| evidence.hook().cloned());
        let (store, id) = (self.context.store.clone(), self.id);
        tokio::spawn(async move {
            let _ = store.hooked(id, hook).await;
        });
    }

    /// The title by the agent's rules. One that an agent also shows while it asks counts once the screen has been read.
    pub(super) fn read_title(&mut self, at: jiff::Timestamp) {
        let Some(agent) = self.agent() else { return };
        let reading = agent.read_title(&self.scanner.modes().title);
        self.inside.is_title_due = reading.as_ref().is_some_and(|reading| reading.is_weak);
        if self.inside.is_title_due {
            self.look_soon();
            return;
        }
        self.facts.evidence(|evidence| evidence.titled(reading.map(|reading| Sign::new(reading, at))));
        self.attention_may_have_changed();
    }

    /// The agent in it, if it is one that is known.
    pub(super) fn agent(&self) -> Option<Agent> {
        self.inside.agent.as_deref().and_then(|name| self.context.agents().by_name(name).cloned())
    }

    pub(super) fn reads_screen(&self) -> bool {
        self.interpreter.is_none() && self.context.config().attention.screen_rules && self.inside.agent.is_some()
    }

    /// Something was printed: its screen may mean something else.
    pub(super) fn look_soon(&mut self) {
        if self.reads_screen() {
            self.inside.look_at.get_or_insert_with(|| Instant::now() + SCREEN_AFTER);
        }
    }

    /// The screen by the agent's rules.
    pub(super) async fn read_screen(&mut self) {
        self.inside.look_at = None;
        let Some(agent) = self.agent() else { return };
        let at = self.consumed;
        let screen = self.picture.catch_up(at).await;
        let rows: Vec<String> = (0..screen.size().rows).map(|row| screen.row_text(row)).collect();
        let reading = agent.read_screen(&rows);
        // it has looked like this since something was last printed
        let at = self.facts.last_activity().unwrap_or_else(jiff::Timestamp::now);
        self.facts.evidence(|evidence| evidence.on_screen(reading.map(|reading| Sign::new(reading, at))));
        if std::mem::take(&mut self.inside.is_title_due) {
            let reading = agent.read_title(&self.scanner.modes().title);
            self.facts.evidence(|evidence| evidence.titled(reading.map(|reading| Sign::new(reading, at))));
        }
        self.attention_may_have_changed();
    }

    /// What can be seen of the terminal from outside, once it is quiet.
    pub(super) fn look_from_outside(&mut self) {
        if self.interpreter.is_some() {
            return;
        }
        let Some((hides_line, group)) = self.link.terminal_state() else { return };
        let mut found = None;
        let foreground = group.filter(|_| self.inside.is_shell).and_then(|group| {
            if group == self.facts.pid() {
                return Some(Foreground::Shell);
            }
            let line = std::fs::read(format!("/proc/{group}/cmdline")).ok()?;
            let argv: Vec<String> = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            found = self.context.agents().recognise(&argv).map(|agent| agent.name.clone());
            let name = Path::new(argv.first()?).file_name()?.to_string_lossy().into_owned();
            Some(Foreground::Program(shared::text::visible(&name)))
        });
        let is_in_front = foreground == Some(Foreground::Shell);
        // the rules of an agent are for its own screen, not for that of its shell or of what is started after it
        let has_left = is_in_front || (self.inside.is_agent_by_process && foreground.is_some() && found.is_none());
        if has_left {
            self.inside.agent = None;
            self.inside.look_at = None;
            self.facts.evidence(Evidence::forget_signs);
        } else if found.is_some() && found != self.inside.agent {
            self.inside.agent = found;
            self.inside.is_agent_by_process = true;
            self.read_title(jiff::Timestamp::now());
            self.look_soon();
        }
        self.facts.set_agent(self.inside.agent.as_deref());
        // one that runs has not come to its prompt yet
        let pid = self.facts.pid();
        // before its first mark it may be at its start files; later a job of its own may be in its group (fish)
        let is_starting = !self.facts.evidence(|evidence| evidence.has_marks()) && holder::runs_in_front(pid);
        let is_awake = is_awake(pid) || is_starting;
        self.facts.evidence(|evidence| {
            evidence.sampled(Sample { hides_line, foreground }, jiff::Timestamp::now());
            evidence.looked_for_a_line(is_in_front && !is_awake);
        });
        if is_in_front && is_awake {
            self.waiters.look_soon();
        }
        self.attention_may_have_changed();
    }

    /// It waits for somebody: people are told, once, unless somebody looks at it. What rules read is told once until somebody
    /// has typed: a question does not change by itself, but a rule that is wrong may match again and again.
    pub(super) fn notify_of(&mut self, needs: &shared::attention::Needs, basis: Basis) {
        // what was typed before this daemon began is stored as an answer
        let typed_at = self.inside.typed_at.max(self.facts.evidence(|evidence| evidence.dismissed_at()));
        let is_told = |told: jiff::Timestamp| match basis {
            Basis::Stated => told >= needs.since,
            Basis::Rules => told >= needs.since || typed_at.is_none_or(|typed| typed < told),
        };
        if self.facts.clients() > 0 || self.inside.notified_at.is_some_and(is_told) {
            return;
        }
        self.inside.notified_at = Some(needs.since);
        let session = self.facts.session();
        let notice = Notice { session, name: self.name.clone(), state: needs.state, text: needs.why.clone() };
        let fact = Fact::new(session, Author::Daemon, "notified", json!({"state": needs.state, "text": needs.why}));
        let (context, id, since) = (self.context.clone(), self.id, needs.since);
        tokio::spawn(async move {
            if let Ok(true) = context.store.notified(id, since, fact).await {
                context.notify.tell(&context.config().notify, &context.log, notice);
            }
        });
    }
}

impl Runtime {
    /// It has ended by itself, and nobody saw it.
    pub(super) fn notify_of_end(&self, how: &str) {
        let is_news = self.context.config().notify.ends && self.facts.clients() == 0 && self.terminating.is_none();
        if is_news {
            let state = shared::attention::Attention::DoneUnseen;
            let notice = Notice { session: self.facts.session(), name: self.name.clone(), state, text: how.to_owned() };
            self.context.notify.tell(&self.context.config().notify, &self.context.log, notice);
        }
    }
}

/// Whether a process has something to do at this moment, or waits for a disk; not where nothing tells.
fn is_awake(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['R', 'D']))
}

/// What of an environment differs from the one of the first prompt. Values of secret-looking names stay out unless they may be kept.
fn changed_between(first: &Path, now: &Path, secrets: bool) -> Option<Delta> {
    let read = |path: &Path| {
        let file = std::fs::File::open(path).ok()?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, shell::MAX_ENVIRONMENT), &mut bytes).ok()?;
        Some(shell::environment_of(&bytes))
    };
    Some(shell::delta(&read(first)?, &read(now)?, secrets))
}

/// Whether a batch tells of a prompt or a folder: then is the time to look at both.
pub(super) fn is_at_prompt(events: &[Located]) -> bool {
    events.iter().any(|located| matches!(located.event, Event::Prompt { mark: 'A', .. } | Event::Cwd(_)))
}
