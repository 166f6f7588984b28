//! Everything about one session, page by page: layers, events, commands, context, files. Pure.

use std::collections::{BTreeMap, HashSet};

use jiff::tz::TimeZone;
use shared::event::Event;
use shared::exec::{HistoryEntry, Place, Stage, State, States};
use shared::id::{ExecId, RuntimeId, SessionId};
use shared::message::{Layers, Request};
use shared::replay::{Mark, MarkKind, Of, Outline};
use shared::session::Session;
use shared::text::visible;
use shared::watch::{ChangedFile, ChangedFiles, Since};

use super::tree;
use crate::dashboard::event::{Asked, Effect, Spot, Where};

#[derive(Clone, Copy, PartialEq, Eq)]
enum AtOnce {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Page {
    #[default]
    Layers,
    Events,
    Commands,
    Context,
    Files,
}

impl Page {
    pub const ALL: [Self; 5] = [Self::Layers, Self::Events, Self::Commands, Self::Context, Self::Files];

    pub fn words(self) -> &'static str {
        match self {
            Self::Layers => "layers",
            Self::Events => "events",
            Self::Commands => "commands",
            Self::Context => "context",
            Self::Files => "files",
        }
    }

    pub fn step(self, by: isize) -> Self {
        let at = Self::ALL.iter().position(|page| *page == self).unwrap_or(0).cast_signed();
        Self::ALL[(at + by).rem_euclid(Self::ALL.len().cast_signed()).unsigned_abs()]
    }
}

/// Which events are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinds {
    #[default]
    All,
    /// Without those that only tell of people coming and going.
    Work,
    /// What went wrong.
    Trouble,
}

impl Kinds {
    pub fn next(self) -> Self {
        match self {
            Self::All => Self::Work,
            Self::Work => Self::Trouble,
            Self::Trouble => Self::All,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Work => "work",
            Self::Trouble => "trouble",
        }
    }

    fn shows(self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Work => !matches!(event.kind.as_str(), "attach" | "detach" | "control" | "exec_started" | "bell" | "status"),
            Self::Trouble => {
                matches!(event.kind.as_str(), "error" | "timeout" | "lost" | "recording_suspended")
                    || event.data.get("exit_code").and_then(serde_json::Value::as_i64).is_some_and(|code| code != 0)
                    || event.data.get("success") == Some(&serde_json::Value::Bool(false))
            }
        }
    }
}

/// A command of a shell that marks them, or a call to an interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub at: jiff::Timestamp,
    pub text: String,
    /// The interpreter; none: typed into the terminal.
    pub language: Option<shared::exec::Language>,
    pub exit_code: Option<i32>,
    pub took_ms: Option<f64>,
    pub author: Option<shared::event::Author>,
    pub is_running: bool,
    call: Option<ExecId>,
    spot: Option<Spot>,
}

/// Events asked for at a time.
const BATCH: u32 = 500;

#[derive(Default)]
pub struct Detail {
    pub session: Option<Session>,
    pub page: Page,
    pub layers: Option<Layers>,
    pub states: Vec<State>,
    /// Newest first.
    events: Vec<Event>,
    has_all_events: bool,
    is_loading: bool,
    /// Calls have begun or ended since they were asked for.
    has_new_calls: bool,
    has_new_marks: bool,
    calls: Vec<HistoryEntry>,
    marks: Vec<(RuntimeId, jiff::Timestamp, Mark)>,
    pub changed: Option<ChangedFiles>,
    has_new_files: bool,
    /// From when on files are shown.
    pub files_since: Since,
    pub kinds: Kinds,
    pub filter: String,
    closed: HashSet<String>,
    cursors: BTreeMap<Page, usize>,
    /// The first row that is shown, of each page.
    tops: BTreeMap<Page, usize>,
    pub failure: Option<String>,
}

impl Detail {
    pub fn open(session: Session) -> (Self, Vec<Effect>) {
        let detail = Self { session: Some(session), ..Self::default() };
        let effects = detail.asks();
        (detail, effects)
    }

    fn id(&self) -> Option<SessionId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Everything, as it is now.
    pub fn asks(&self) -> Vec<Effect> {
        let Some(id) = self.id() else { return Vec::new() };
        let name = id.to_string();
        let place = || Place::Session(name.clone());
        let mut effects = vec![
            Effect::Ask(Asked::Layers(id), Request::Show { name: name.clone() }),
            Effect::Ask(Asked::Events(id), Request::Recent { name: name.clone(), before: None, most: BATCH }),
            Effect::Ask(Asked::Calls(id), Request::History { place: place(), language: None, limit: Some(BATCH) }),
            self.ask_files(id, AtOnce::Yes),
        ];
        let session = self.session.as_ref();
        if session.is_some_and(|session| !session.languages.is_empty()) {
            effects
                .push(Effect::Ask(Asked::States(id), Request::State { place: place(), language: None, history: Some(0), reveal: false }));
        }
        if let Some(runtime) = session.and_then(|session| session.runtime) {
            let of = Of { name, language: None, runtime: Some(runtime) };
            effects.push(Effect::Ask(Asked::Marks(id), Request::Replay(of)));
        }
        effects
    }

    fn ask_files(&self, id: SessionId, at_once: AtOnce) -> Effect {
        let at_once = at_once == AtOnce::Yes;
        Effect::Ask(Asked::Files(id), Request::Files { name: id.to_string(), since: self.files_since, limit: None, at_once })
    }

    /// Files since the session began, or since its last command did.
    pub fn turn_files(&mut self) -> Option<Effect> {
        self.files_since = if self.files_since == Since::Start { Since::Command } else { Since::Start };
        self.go_to(0);
        Some(self.ask_files(self.id()?, AtOnce::Yes))
    }

    pub fn is_of(&self, id: SessionId) -> bool {
        self.id() == Some(id)
    }

    pub fn take_layers(&mut self, layers: Layers) {
        self.session = Some(layers.session.clone());
        self.layers = Some(layers);
        self.clamp();
    }

    pub fn take_states(&mut self, states: States) {
        self.states = states.runtimes;
    }

    pub fn take_calls(&mut self, calls: Vec<HistoryEntry>) {
        self.calls = calls;
        self.clamp();
    }

    pub fn take_files(&mut self, changed: ChangedFiles) {
        self.changed = Some(changed);
        self.clamp();
    }

    pub fn take_outline(&mut self, outline: &Outline) {
        let at = |time: u64| outline.began_at + jiff::SignedDuration::from_micros(time.min(i64::MAX as u64) as i64);
        let commands = outline.marks.iter().filter(|mark| mark.kind != MarkKind::Event);
        self.marks = commands.map(|mark| (outline.runtime, at(mark.time), mark.clone())).collect();
        self.clamp();
    }

    /// Either the newest, or those before the oldest that is there.
    pub fn take_events(&mut self, events: Vec<Event>) {
        self.is_loading = false;
        let is_full = events.len() >= BATCH as usize;
        let reaches = |known: &Event| events.last().is_some_and(|last| last.seq <= known.seq);
        // more is new than was asked for: what lies between is not known
        if is_full && self.events.first().is_some_and(|newest| !reaches(newest)) {
            self.events.clear();
            self.has_all_events = false;
        }
        if !is_full {
            // fewer than were asked for: these are the oldest there are
            self.has_all_events = true;
        }
        self.events.extend(events);
        self.events.sort_by_key(|event| std::cmp::Reverse(event.seq));
        self.events.dedup_by_key(|event| event.seq);
        self.clamp();
    }

    /// One that was announced.
    pub fn told(&mut self, event: &Event) {
        if !self.is_of(event.session) {
            return;
        }
        if self.events.first().is_none_or(|first| first.seq < event.seq) {
            let moves = self.page == Page::Events && self.cursor() > 0 && self.kinds.shows(event);
            self.events.insert(0, event.clone());
            if moves {
                // the cursor stays on its event
                self.set_cursor(self.cursor() + 1);
            }
        }
        self.has_new_calls |= matches!(event.kind.as_str(), "exec_started" | "exec_finished");
        // a shell has begun or ended a command
        self.has_new_marks |= event.kind == "status";
        self.has_new_files |= event.kind == "file_changed";
    }

    /// The session has changed: what of it is shown and was not in its row.
    pub fn freshen(&mut self, session: Session) -> Vec<Effect> {
        let (id, name, runtime) = (session.id, session.id.to_string(), session.runtime);
        self.session = Some(session);
        let mut effects = vec![Effect::Ask(Asked::Layers(id), Request::Show { name: name.clone() })];
        let has_new_command = (self.has_new_marks || self.has_new_calls) && self.files_since == Since::Command;
        if std::mem::take(&mut self.has_new_files) || has_new_command {
            // what has been told: to ask for more would have it told, and that is why we are here
            effects.push(self.ask_files(id, AtOnce::No));
        }
        if let Some(runtime) = runtime.filter(|_| std::mem::take(&mut self.has_new_marks)) {
            let of = Of { name: name.clone(), language: None, runtime: Some(runtime) };
            effects.push(Effect::Ask(Asked::Marks(id), Request::Replay(of)));
        }
        if std::mem::take(&mut self.has_new_calls) {
            let place = Place::Session(name);
            effects.push(Effect::Ask(Asked::Calls(id), Request::History { place, language: None, limit: Some(BATCH) }));
        }
        effects
    }

    pub fn cursor(&self) -> usize {
        self.cursors.get(&self.page).copied().unwrap_or(0)
    }

    fn set_cursor(&mut self, to: usize) {
        let last = self.count().saturating_sub(1);
        self.cursors.insert(self.page, to.min(last));
    }

    fn clamp(&mut self) {
        let cursor = self.cursor();
        self.set_cursor(cursor);
    }

    /// Moves, and asks for more where that may be needed.
    pub fn step(&mut self, by: isize) -> Vec<Effect> {
        self.set_cursor(self.cursor().saturating_add_signed(by));
        let near_end = self.cursor() + 50 > self.count();
        if self.page == Page::Events
            && near_end
            && !self.has_all_events
            && !self.is_loading
            && let (Some(id), Some(oldest)) = (self.id(), self.events.last())
        {
            self.is_loading = true;
            let before = Some(oldest.seq);
            return vec![Effect::Ask(Asked::Events(id), Request::Recent { name: id.to_string(), before, most: BATCH })];
        }
        Vec::new()
    }

    pub fn go_to(&mut self, row: usize) {
        self.set_cursor(row);
    }

    pub fn top(&self) -> usize {
        self.tops.get(&self.page).copied().unwrap_or(0)
    }

    pub fn follow_cursor(&mut self, height: usize) {
        let (cursor, count) = (self.cursor(), self.count());
        let mut top = self.top();
        let height = height.max(1);
        if cursor < top {
            top = cursor;
        }
        if cursor >= top + height {
            top = cursor + 1 - height;
        }
        self.tops.insert(self.page, top.min(count.saturating_sub(height)));
    }

    /// Rows of the page.
    pub fn count(&self) -> usize {
        match self.page {
            Page::Layers => self.layer_lines(&TimeZone::UTC).len(),
            Page::Events => self.events().len(),
            Page::Commands => self.commands().len(),
            Page::Context => self.context().len(),
            Page::Files => self.files().len(),
        }
    }

    fn passes(&self, text: &str) -> bool {
        self.filter.is_empty() || text.to_lowercase().contains(&self.filter.to_lowercase())
    }

    pub fn events(&self) -> Vec<&Event> {
        let wanted =
            |event: &&Event| self.kinds.shows(event) && (self.filter.is_empty() || self.passes(&format!("{} {}", event.kind, event.data)));
        self.events.iter().filter(wanted).collect()
    }

    /// Newest first.
    pub fn commands(&self) -> Vec<Command> {
        let calls = self.calls.iter().map(|call| Command {
            at: call.started_at,
            text: visible(call.command.lines().next().unwrap_or_default()),
            language: Some(call.language),
            exit_code: call.exit_code,
            took_ms: call.duration,
            author: Some(call.author),
            is_running: matches!(call.stage, Stage::Running | Stage::Queued),
            call: Some(call.exec_id),
            spot: None,
        });
        let marks = self.marks.iter().map(|(runtime, at, mark)| Command {
            at: *at,
            text: visible(&mark.text),
            language: None,
            exit_code: mark.exit_code,
            took_ms: mark.took.map(|took| took as f64 / 1000.0),
            author: None,
            is_running: mark.took.is_none() && mark.kind == MarkKind::Command,
            call: None,
            spot: Some(Spot { runtime: *runtime, at: mark.offset.map_or(Where::Moment(*at), Where::Offset) }),
        });
        let mut all: Vec<Command> = calls.chain(marks).filter(|command| self.passes(&command.text)).collect();
        all.sort_by_key(|command| std::cmp::Reverse(command.at));
        all
    }

    pub fn context(&self) -> Vec<tree::Row> {
        let Some(session) = &self.session else { return Vec::new() };
        let mut shown = serde_json::Map::new();
        shown.insert("context".into(), session.context.clone());
        shown.insert("metadata".into(), session.metadata.clone());
        let rows = tree::rows(&serde_json::Value::Object(shown), &self.closed);
        rows.into_iter().filter(|row| self.passes(&format!("{} {}", row.key, row.value))).collect()
    }

    /// Files that changed, newest first.
    pub fn files(&self) -> Vec<&ChangedFile> {
        let all = self.changed.iter().flat_map(|changed| &changed.files);
        all.filter(|file| self.passes(&format!("{} {}", file.change.as_str(), file.path))).collect()
    }

    /// Folds or unfolds; or gives what enter opens.
    pub fn open_row(&mut self) -> Option<Opening> {
        let cursor = self.cursor();
        let session = self.session.as_ref()?;
        match self.page {
            Page::Events => {
                let at = self.events().get(cursor)?.at;
                let runtime = session.runtime?;
                Some(Opening::Spot(Spot { runtime, at: Where::Moment(at) }))
            }
            Page::Commands => {
                let command = self.commands().into_iter().nth(cursor)?;
                Some(match (command.spot, command.language) {
                    (Some(spot), _) => Opening::Spot(spot),
                    (None, Some(language)) => Opening::Call { language, at: command.at },
                    (None, None) => return None,
                })
            }
            Page::Files => {
                let at = self.files().get(cursor)?.at;
                let runtime = session.runtime?;
                Some(Opening::Spot(Spot { runtime, at: Where::Moment(at) }))
            }
            Page::Context => {
                let row = self.context().into_iter().nth(cursor)?;
                if row.folds == tree::Fold::Leaf {
                    return Some(Opening::Text(row.value));
                }
                let path = row.path;
                if !self.closed.remove(&path) {
                    self.closed.insert(path);
                }
                self.clamp();
                None
            }
            Page::Layers => self.row_text().map(Opening::Text),
        }
    }

    /// The call under the cursor, if it runs or waits.
    pub fn running_call(&self) -> Option<ExecId> {
        let command = self.commands().into_iter().nth(self.cursor()).filter(|_| self.page == Page::Commands)?;
        command.call.filter(|_| command.is_running)
    }

    /// The row under the cursor as text, for the clipboard.
    pub fn row_text(&self) -> Option<String> {
        let cursor = self.cursor();
        match self.page {
            Page::Layers => self.layer_lines(&TimeZone::UTC).get(cursor).map(|line| line.value.clone()),
            Page::Events => self.events().get(cursor).map(|event| format!("{} {} {}", event.at, event.kind, event.data)),
            Page::Commands => self.commands().get(cursor).map(|command| command.text.clone()),
            Page::Context => self.context().get(cursor).map(|row| row.value.clone()),
            Page::Files => self.files().get(cursor).map(|file| file.path.clone()),
        }
    }

    pub fn layer_lines(&self, zone: &TimeZone) -> Vec<super::layers::LayerLine> {
        super::layers::lines(self.session.as_ref(), self.layers.as_ref(), &self.states, zone)
    }
}

/// What enter on a row leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    Spot(Spot),
    /// A call to an interpreter: in its transcript, at that time.
    Call {
        language: shared::exec::Language,
        at: jiff::Timestamp,
    },
    /// The value of the row.
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::state::tests::session;
    use shared::event::Author;
    use shared::id::{RuntimeId, Seq, ThreadId};
    use shared::session::Status;

    fn event(detail: &Detail, seq: Seq, kind: &str) -> Event {
        Event {
            seq,
            n: 1,
            session: detail.id().expect("a session"),
            thread: ThreadId::new(),
            name: "a".into(),
            at: jiff::Timestamp::from_second(seq).expect("a time"),
            author: Author::Api,
            kind: kind.into(),
            data: serde_json::json!({"phase": kind}),
        }
    }

    #[test]
    fn events_come_in_pages_and_the_cursor_stays_on_its_own() {
        let (mut detail, asks) = Detail::open(session("a", Status::Active));
        assert_eq!(asks.len(), 4, "nothing was recorded, no interpreter runs");
        detail.page = Page::Events;
        let first: Vec<Event> = (501..=1000).rev().map(|seq| event(&detail, seq, "iteration")).collect();
        detail.take_events(first);
        assert_eq!(detail.events().len(), 500);
        let more = detail.step(isize::MAX / 2);
        assert!(matches!(&more[0], Effect::Ask(_, Request::Recent { before: Some(501), .. })));
        assert!(detail.step(1).is_empty(), "asked once");
        let rest: Vec<Event> = (1..=500).rev().map(|seq| event(&detail, seq, "attach")).collect();
        detail.take_events(rest);
        assert_eq!(detail.events().len(), 1000);
        let at = detail.cursor();
        let news = event(&detail, 1001, "error");
        detail.told(&news);
        assert_eq!((detail.cursor(), detail.events().len()), (at + 1, 1001));
        detail.kinds = Kinds::Work;
        assert_eq!(detail.events().len(), 501, "people coming and going are left out");
        detail.kinds = Kinds::Trouble;
        assert_eq!(detail.events().len(), 1);
        detail.filter = "nothing like this".into();
        assert_eq!(detail.events().len(), 0);
    }

    #[test]
    fn enter_leads_to_the_moment() {
        let mut of = session("a", Status::Active);
        let runtime = RuntimeId::new();
        of.runtime = Some(runtime);
        of.context = serde_json::json!({"next": {"step": 1}});
        let (mut detail, asks) = Detail::open(of);
        assert_eq!(asks.len(), 5);
        let told = event(&detail, 7, "error");
        detail.take_events(vec![told.clone()]);
        detail.page = Page::Events;
        assert_eq!(detail.open_row(), Some(Opening::Spot(Spot { runtime, at: Where::Moment(told.at) })));
        detail.page = Page::Context;
        let open = detail.count();
        assert_eq!(detail.open_row(), None);
        assert!(detail.count() < open, "it folds");
        detail.open_row();
        assert_eq!(detail.count(), open);
        assert_eq!(Page::Layers.step(-1), Page::Files);
    }
    #[test]
    fn files_are_asked_for_again_when_some_have_changed_but_not_at_once() {
        let (mut detail, asks) = Detail::open(session("a", Status::Active));
        assert!(asks.iter().any(|ask| matches!(ask, Effect::Ask(Asked::Files(_), Request::Files { at_once: true, .. }))));
        let file = |path: &str| ChangedFile {
            path: path.into(),
            change: shared::watch::FileChange::Changed,
            at: jiff::Timestamp::UNIX_EPOCH,
            times: 1,
        };
        let changed = ChangedFiles {
            workspace: "/w".into(),
            watch: shared::watch::Watching::off("no"),
            since: jiff::Timestamp::UNIX_EPOCH,
            command: None,
            files: vec![file("src/a"), file("b")],
            more: 0,
        };
        detail.take_files(changed);
        detail.page = Page::Files;
        assert_eq!(detail.count(), 2);
        detail.filter = "SRC".into();
        assert_eq!((detail.count(), detail.row_text()), (1, Some("src/a".into())));
        let asks_files = |effects: &[Effect]| {
            effects.iter().any(|ask| matches!(ask, Effect::Ask(Asked::Files(_), Request::Files { at_once: false, .. })))
        };
        let of = detail.session.clone().expect("a session");
        assert!(!asks_files(&detail.freshen(of.clone())));
        let news = event(&detail, 7, "file_changed");
        detail.told(&news);
        assert!(asks_files(&detail.freshen(of)));
        assert!(matches!(detail.turn_files(), Some(Effect::Ask(_, Request::Files { since: Since::Command, .. }))));
    }
}
