//! The dashboard's state and its pure update: events in, effects out. No I/O, no clock, no drawing.

mod acts;
mod answers;
mod keys;
mod mouse;
mod overlay;
mod refusal;
mod terminal;
#[cfg(test)]
pub mod tests;
mod time;
mod watch;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::layout::Rect;
use shared::config::Prefix;
use shared::id::SessionId;
use shared::live::Calendar;
use shared::stats::{Disk, Stats};

use crate::dashboard::event::{Asked, Effect, Event, Turn};
use crate::dashboard::state::act::{Batch, Done};
use crate::dashboard::state::detail::Detail;
use crate::dashboard::state::hits::Hits;
use crate::dashboard::state::list::List;
use crate::dashboard::state::log::{Log, Tone};
use crate::dashboard::state::output::Output;
use crate::dashboard::state::pane::Pane;
use crate::dashboard::state::rates::Rates;
use crate::dashboard::state::remembered::{Layout, Remembered};
use crate::dashboard::state::sights::Sights;
use crate::dashboard::view::areas;
use crate::keymap::{Action, Keymap, Place};
use crate::settings::Look;
use crate::theme::Theme;

pub use overlay::{Asks, HelpPage, Overlay, Prompt};
pub use time::TimeMachine;

/// What is shown over the sessions; the last one is seen.
pub enum View {
    Detail(Box<Detail>),
    Time(TimeMachine),
    Hits(Box<Hits>),
    Stats(Box<Charts>),
    Messages {
        cursor: usize,
    },
    /// What the last code printed.
    Output,
}

#[derive(Default)]
pub struct Charts {
    pub stats: Option<Stats>,
    pub calendar: Option<Calendar>,
    pub disk: Option<Disk>,
    pub failure: Option<String>,
    pub top: usize,
}

/// Where keys go while a terminal is beside the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    List,
    Pane,
}

/// How the daemon is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Up,
    /// Gone; another one is being started.
    Lost,
    /// Stopped on purpose: nobody starts it unasked.
    Stopped,
    Failed(String),
}

/// What the surroundings are.
pub struct Setting {
    pub look: Look,
    /// The folder new sessions start in.
    pub here: String,
    pub home: Option<String>,
    /// Of the user's clock.
    pub zone: TimeZone,
    /// The wall clock at the beginning.
    pub at: jiff::Timestamp,
    pub remembered: Remembered,
}

pub struct App {
    /// What a user inside tmux has to know of the prefix.
    pub tmux_hint: Option<String>,
    pub list: List,
    pub rates: Rates,
    pub sights: Sights,
    pub log: Log,
    pub views: Vec<View>,
    pub overlay: Option<Overlay>,
    pub layout: Layout,
    pub hides_preview: bool,
    pub pane: Option<Pane>,
    pub focus: Focus,
    pub link: Link,
    /// When to look whether somebody else has started a daemon.
    peek_at: Option<Duration>,
    pub keymap: Keymap,
    pub theme: Theme,
    pub prefix: Prefix,
    /// What is wrong with the settings, as the daemon tells it.
    pub wrong: Vec<String>,
    pub here: String,
    pub home: Option<String>,
    pub zone: TimeZone,
    pub area: Rect,
    pub now: Duration,
    pub at: jiff::Timestamp,
    /// A file that is being written, in parts of a thousand.
    pub exporting: Option<(Turn, String, u64)>,
    kept: Remembered,
    /// The prefix key was pressed in the terminal beside the list.
    is_armed: bool,
    /// A recording was asked for and is not there yet.
    pub is_opening: bool,
    turn: Turn,
    batches: HashMap<Turn, Batch>,
    /// What takes the last changes back, newest last, each with the turn of the change.
    undo: Vec<Done>,
    /// What the last code that was run here printed.
    pub output: Option<Output>,
    /// Lines that were typed and are under way, or were refused.
    lines: refusal::Lines,
    /// What holds the mouse from its press to its release.
    grab: Option<mouse::Grab>,
    stale: HashSet<SessionId>,
    stale_due: Option<Duration>,
    is_asking_rows: bool,
    pulse: watch::Pulsing,
    resting: watch::Resting,
    last_click: Option<(Duration, u16, u16)>,
    is_dirty: bool,
}

/// A dashboard without a daemon looks this often whether somebody has started one.
const PEEK: Duration = Duration::from_secs(2);

/// Changes that can be taken back.
const MOST_UNDO: usize = 50;

impl App {
    pub fn new(setting: Setting) -> (Self, Vec<Effect>) {
        let kept = setting.remembered;
        let mut list = List::default();
        list.sort = kept.sort;
        list.group = kept.group;
        list.scope = kept.scope;
        list.filter.clone_from(&kept.filter);
        list.cursor = kept.cursor;
        let is_first_time = !kept.is_known;
        let mut app = Self {
            list,
            rates: Rates::default(),
            sights: Sights::default(),
            log: Log::default(),
            views: Vec::new(),
            overlay: None,
            layout: kept.layout,
            hides_preview: kept.hides_preview,
            pane: None,
            focus: Focus::List,
            link: Link::Up,
            peek_at: None,
            keymap: setting.look.keymap,
            theme: setting.look.theme,
            prefix: setting.look.prefix,
            wrong: Vec::new(),
            here: setting.here,
            home: setting.home,
            zone: setting.zone,
            area: Rect::default(),
            now: Duration::ZERO,
            at: setting.at,
            exporting: None,
            kept,
            is_armed: false,
            is_opening: false,
            turn: 0,
            batches: HashMap::new(),
            undo: Vec::new(),
            tmux_hint: None,
            output: None,
            lines: refusal::Lines::default(),
            grab: None,
            stale: HashSet::new(),
            stale_due: None,
            is_asking_rows: false,
            pulse: watch::Pulsing::default(),
            resting: watch::Resting::default(),
            last_click: None,
            is_dirty: true,
        };
        if is_first_time {
            let key = |action| app.keymap.hint(Place::List, action);
            let (new, open, help) = (key(Action::New), key(Action::Open), key(Action::Help));
            app.say(format!("{new} starts something, {open} attaches to it, {help} shows every key"));
        }
        let effects = vec![app.ask_list()];
        (app, effects)
    }

    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Time { now, at } => {
                self.now = now;
                self.at = at;
                return self.passed();
            }
            Event::Key(key) => {
                self.is_dirty = true;
                self.key(key)
            }
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Paste(text) => {
                self.is_dirty = true;
                self.paste(&text)
            }
            Event::Resized(area) => {
                self.is_dirty = true;
                self.area = area;
                self.resized()
            }
            Event::Answer(asked, reply) => self.answered(asked, *reply),
            Event::Refused(asked, failure) => self.refused(&asked, &failure),
            Event::Told(event) => self.told(&event),
            Event::Lost => self.lost(Link::Lost),
            Event::Stopped => self.lost(Link::Stopped),
            Event::NoDaemon(why) => self.lost(Link::Failed(why)),
            Event::Daemon if self.has_given_up() => self.refresh(),
            Event::Daemon => Vec::new(),
            Event::Back => self.back(),
            Event::Pane(turn, news) => self.pane_news(turn, news),
            Event::Hit(turn, hit) => {
                let now = self.now;
                self.in_hits(|hits| hits.take_hit(turn, *hit, now))
            }
            Event::Searched { turn, done, total } => self.in_hits(|hits| hits.searched(turn, done, total)),
            Event::Found(turn, outcome) => self.in_hits(|hits| hits.finished(turn, outcome)),
            Event::Exported(turn, done) => {
                if let Some((mine, _, shown)) = &mut self.exporting
                    && *mine == turn
                {
                    *shown = done;
                    self.is_dirty = true;
                }
                Vec::new()
            }
            Event::Wrote(turn, outcome) => {
                if self.exporting.as_ref().is_some_and(|(mine, _, _)| *mine == turn) {
                    self.exporting = None;
                }
                match &outcome {
                    Ok(_) => {
                        self.line_done(turn);
                    }
                    Err(why) => self.line_refused(turn, why),
                }
                self.say_outcome(outcome);
                Vec::new()
            }
            Event::Left(outcome) => {
                self.is_dirty = true;
                self.say_outcome(outcome);
                let mut effects = vec![self.ask_list()];
                effects.extend(self.reopen_pane());
                effects
            }
            Event::Complaint(text) => {
                self.fail(text);
                Vec::new()
            }
            Event::Settings { look, wrong } => {
                self.take_settings(look.map(|look| *look), wrong);
                Vec::new()
            }
        };
        if effects.iter().any(|effect| matches!(effect, Effect::Ask(Asked::Open(_), _))) {
            self.is_opening = true;
            self.is_dirty = true;
        }
        effects.extend(self.look_after());
        effects
    }

    fn take_settings(&mut self, look: Option<Look>, wrong: Vec<String>) {
        self.is_dirty = true;
        if let Some(Look { keymap, theme, prefix }) = look {
            (self.keymap, self.theme, self.prefix) = (keymap, theme, prefix);
        }
        for sentence in wrong.iter().filter(|sentence| !self.wrong.contains(sentence)).cloned().collect::<Vec<_>>() {
            self.fail(sentence);
        }
        if wrong.is_empty() {
            self.say(if self.wrong.is_empty() { "the settings were changed" } else { "the settings are in order again" });
        }
        self.wrong = wrong;
    }

    /// Whether it has to be drawn anew; asked once for each drawing.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.is_dirty)
    }

    pub fn touch(&mut self) {
        self.is_dirty = true;
    }

    /// When something has to happen that nobody else will tell of.
    pub fn next_deadline(&self) -> Option<Duration> {
        let hits = match self.views.last() {
            Some(View::Hits(hits)) => hits.next_deadline(),
            _ => None,
        };
        let time = match self.views.last() {
            Some(View::Time(machine)) => machine.next_deadline(),
            _ => None,
        };
        let list = if self.shows_sessions() { self.next_tick() } else { None };
        let stale = self.stale_due.filter(|_| !self.is_asking_rows && self.link == Link::Up);
        let watching = if self.link == Link::Up { self.next_watch() } else { None };
        let peek = self.peek_at.filter(|_| self.has_given_up());
        [self.log.next_deadline(), hits, time, list, stale, watching, peek].into_iter().flatten().min()
    }

    /// Time has passed.
    fn passed(&mut self) -> Vec<Effect> {
        let now = self.now;
        if self.log.passed(now) {
            self.is_dirty = true;
        }
        let mut effects = Vec::new();
        match self.views.last_mut() {
            Some(View::Hits(hits)) => {
                // what was found before is gone, also if nothing is searched for now
                self.is_dirty |= hits.next_deadline().is_some_and(|at| now >= at);
                effects.extend(hits.passed(now));
            }
            Some(View::Time(_)) => effects.extend(self.time_passed()),
            _ => {}
        }
        if self.shows_sessions() && self.tick_is_due() {
            self.is_dirty = true;
        }
        if self.has_given_up() && self.peek_at.is_some_and(|at| now >= at) {
            self.peek_at = Some(now + PEEK);
            effects.push(Effect::Peek);
        }
        effects.extend(self.ask_stale());
        effects.extend(self.look_after());
        effects
    }

    /// Whether there is no daemon, and nobody here starts one unasked.
    fn has_given_up(&self) -> bool {
        matches!(self.link, Link::Stopped | Link::Failed(_))
    }

    pub fn shows_sessions(&self) -> bool {
        self.views.is_empty()
    }

    /// Where keys are looked up.
    pub fn place(&self) -> Place {
        match self.views.last() {
            None if self.layout == Layout::Grid && self.pane.is_none() => Place::Grid,
            None if self.pane.is_some() => Place::Beside,
            None => Place::List,
            Some(View::Detail(_)) => Place::Detail,
            Some(View::Hits(_)) => Place::Hits,
            Some(View::Stats(_)) => Place::Stats,
            Some(View::Messages { .. } | View::Output | View::Time(_)) => Place::Messages,
        }
    }

    fn next_turn(&mut self) -> Turn {
        self.turn += 1;
        self.turn
    }

    pub fn say(&mut self, text: impl Into<String>) {
        self.log.say(text, Tone::Said, self.at, self.now);
        self.is_dirty = true;
    }

    pub fn fail(&mut self, text: impl Into<String>) {
        self.log.say(text, Tone::Failed, self.at, self.now);
        self.is_dirty = true;
    }

    fn say_outcome(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(text) => self.say(text),
            Err(text) => self.fail(text),
        }
    }

    fn in_hits(&mut self, change: impl FnOnce(&mut Hits) -> bool) -> Vec<Effect> {
        let found = self.views.iter_mut().find_map(|view| match view {
            View::Hits(hits) => Some(hits),
            _ => None,
        });
        if found.is_some_and(|hits| change(hits)) {
            self.is_dirty = true;
        }
        Vec::new()
    }

    /// The window has another size.
    fn resized(&mut self) -> Vec<Effect> {
        self.place_cursor();
        let mut effects = self.resize_pane();
        effects.extend(self.time_resized());
        effects
    }

    /// The connection was given up: what was asked will not be answered.
    pub fn forget_asked(&mut self) {
        self.sights.lost();
        self.pulse = watch::Pulsing::default();
        self.is_asking_rows = false;
        self.is_opening = false;
    }

    /// What is remembered, if it is not what was.
    pub fn remember(&mut self) -> Option<Effect> {
        let now = Remembered {
            sort: self.list.sort,
            group: self.list.group,
            scope: self.list.scope,
            layout: self.layout,
            hides_preview: self.hides_preview,
            filter: self.list.filter.clone(),
            cursor: self.list.cursor,
            is_known: true,
            code: self.kept.code.clone(),
        };
        (now != self.kept).then(|| {
            self.kept = now.clone();
            Effect::Remember(Box::new(now))
        })
    }

    /// Scrolls so that the cursor is seen.
    fn place_cursor(&mut self) {
        let height = areas::list_height(self);
        self.list.follow_cursor(height);
        let page = areas::page_height(self);
        match self.views.last_mut() {
            Some(View::Detail(detail)) => detail.follow_cursor(page),
            Some(View::Hits(hits)) => hits.follow_cursor(areas::hits_height(self.area)),
            _ => {}
        }
    }

    fn ask_list(&self) -> Effect {
        let filter = shared::filter::Filter { all: self.list.scope == crate::dashboard::state::list::Scope::All, ..Default::default() };
        Effect::Ask(Asked::List, shared::message::Request::List(filter))
    }
}
