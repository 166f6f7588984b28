//! Whether a session needs a person: pure rules over evidence. What is heard of a program is kept with its time; what it
//! comes to is decided when somebody asks. Silence alone never becomes anything.

mod explain;
mod line;
mod report;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use shared::attention::{Attention, Needs};
use shared::screen::{Event, Located, NotificationSource};
use shared::session::Status;
use shared::text::{fit, visible};

use crate::agent::{HookState, Reading};

use line::Line;
use report::{Kind, Records, State};

/// Of a batch of output the last so many reports are looked at: a flood of them says no more than its end.
const MAX_REPORTS: usize = 64;

/// Columns of a reason.
const MAX_WHY: usize = 200;

/// An agent that works draws something: when it has said so and then nothing for this long, that is not believed any more.
const STALE: Duration = Duration::from_mins(10);

/// Nothing tells that an agent was interrupted but its title: when that has said so for this long, it is believed.
const TITLE_STANDS: Duration = Duration::from_secs(3);

/// What a program has said that bears on attention. The strongest counts: reports of its own, then what its hooks say, then
/// notifications and bells, then its title and progress, then marks of a shell and the state of its terminal. Rules for the
/// screen are the weakest evidence about what an agent does; below them is only which program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    reports: Records,
    notification: Option<(Timestamp, String)>,
    bell: Option<Timestamp>,
    progress: Option<(Timestamp, Progress)>,
    shell: Option<(Timestamp, Shell)>,
    /// What was asked was answered then, and nothing has been said since.
    answered: Option<Timestamp>,
    hook: Option<Hooked>,
    /// What the title means, by the agent's rules.
    title: Option<Sign>,
    /// The same of what is on the screen.
    screen: Option<Sign>,
    /// Input has arrived since the screen was read: a question on it counts again only if the next reading finds it.
    is_screen_answered: bool,
    /// When title and screen went from working to idle; since then the agent has not worked.
    turn_ended_at: Option<Timestamp>,
    /// The terminal takes a line and does not show it.
    hidden_line: Option<Timestamp>,
    foreground: Option<(Timestamp, Foreground)>,
    line: Line,
    /// A person has dismissed what asked before this.
    dismissed_at: Option<Timestamp>,
}

/// The last that an agent's hooks said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooked {
    /// For people.
    pub agent: String,
    pub state: HookState,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    pub at: Timestamp,
}

/// A text on the screen or in the title, and what it means by the agent's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    pub state: Attention,
    /// For a person: the question, or what the agent works on.
    pub text: String,
    /// Tells two questions with the same text apart: the lines above it.
    pub context: String,
    /// The agent shows the same text in other states too, so that the screen counts more.
    pub is_weak: bool,
    pub at: Timestamp,
}

impl Sign {
    pub fn new(Reading { state, text, context, is_weak }: Reading, at: Timestamp) -> Self {
        Self { state, text, context, is_weak, at }
    }
}

/// Where a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Stated by the program, its hooks, its shell or the kernel.
    Stated,
    /// Read from the title or the screen by rules, which may be wrong.
    Rules,
}

/// What has the terminal, of a shell that does not tell of its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreground {
    Shell,
    Program(String),
}

/// What can be seen of a terminal from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub hides_line: bool,
    pub foreground: Option<Foreground>,
}

/// When it is asked, and since when nothing was printed.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    pub quiet_since: Option<Timestamp>,
}

impl Moment {
    fn is_long_ago(self, at: Timestamp, how_long: Duration) -> bool {
        self.now.duration_since(at).unsigned_abs() >= how_long && self.now > at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    At(Option<u8>),
    Failed,
    Paused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Prompt,
    Command,
}

/// What people should hear of besides a changed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Bell,
    Notification { source: NotificationSource, text: String },
}

impl Call {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bell => "bell",
            Self::Notification { .. } => "notification",
        }
    }

    pub fn data(&self) -> serde_json::Value {
        match self {
            Self::Bell => json!({}),
            Self::Notification { source, text } => {
                let source = match source {
                    NotificationSource::Osc9 => "osc9",
                    NotificationSource::Osc99 => "osc99",
                    NotificationSource::Osc777 => "osc777",
                };
                json!({"text": text, "source": source})
            }
        }
    }
}

/// Whether somebody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Somebody is there who may type.
    Now,
    /// Not since then; never, if there is no time.
    Since(Option<Timestamp>),
}

impl Watched {
    fn has_seen(self, at: Timestamp) -> bool {
        match self {
            Self::Now => true,
            Self::Since(seen) => seen.is_some_and(|seen| seen >= at),
        }
    }
}

/// Whether any of this bears on attention.
pub fn concerns(events: &[Located]) -> bool {
    events.iter().any(|located| {
        matches!(
            located.event,
            Event::Bell | Event::Notification { .. } | Event::Progress { .. } | Event::Prompt { .. } | Event::Status(_) | Event::Reset
        )
    })
}

impl Evidence {
    /// What a batch of output says. Gives the last bell and notification in it.
    pub fn hear(&mut self, events: &[Located], at: Timestamp) -> Vec<Call> {
        let reports = events.iter().filter(|located| matches!(located.event, Event::Status(_))).count();
        let mut skipped = reports.saturating_sub(MAX_REPORTS);
        let (mut bell, mut notification) = (None, None);
        for located in events {
            match &located.event {
                Event::Bell => bell = Some(Call::Bell),
                Event::Notification { source, text } => notification = Some((*source, text)),
                Event::Progress { state, percent } => {
                    let progress = match state {
                        1 | 3 => Some(Progress::At(*percent)),
                        2 => Some(Progress::Failed),
                        4 => Some(Progress::Paused),
                        _ => None,
                    };
                    // since when it makes progress, not when it last said so
                    let since = match (self.progress, progress) {
                        (Some((since, Progress::At(_))), Some(Progress::At(_))) => since,
                        _ => at,
                    };
                    self.progress = progress.map(|progress| (since, progress));
                }
                Event::Prompt { mark, .. } => self.mark(*mark, at),
                Event::Status(_) if skipped > 0 => skipped -= 1,
                Event::Status(text) => {
                    if let Some(said) = report::parse(text) {
                        self.reports.take(said, at);
                    }
                }
                Event::Reset => {
                    self.reports.clear();
                    self.progress = None;
                }
                _ => {}
            }
        }
        let notification = notification.map(|(source, text)| Call::Notification { source, text: one_line(text) });
        if bell.is_some() {
            self.bell = Some(at);
        }
        if let Some(Call::Notification { text, .. }) = &notification {
            self.notification = Some((at, text.clone()));
        }
        self.answered = None;
        self.hidden_line = None;
        bell.into_iter().chain(notification).collect()
    }

    /// OSC 133: `A` and `B` belong to a prompt, `C` begins a command's output, `D` ends it.
    fn mark(&mut self, mark: char, at: Timestamp) {
        let shell = match mark {
            'A' | 'B' | 'D' => Shell::Prompt,
            'C' => Shell::Command,
            _ => return,
        };
        self.line.mark(mark);
        if shell == Shell::Prompt {
            // whatever ran is over
            self.reports.prompt();
            self.progress = None;
            self.forget_signs();
            self.hook = self.hook.take().filter(|hook| hook.at > at);
            self.hidden_line = None;
        }
        if self.shell.is_none_or(|(_, before)| before != shell) {
            self.shell = Some((at, shell));
        }
    }

    /// A person dismisses what asks: it needs nobody until something new is said.
    pub fn dismiss(&mut self, at: Timestamp) {
        self.typed(at);
        self.dismissed_before(at);
    }

    /// What asked before was answered or dismissed, as an earlier daemon has stored it.
    pub fn dismissed_before(&mut self, at: Timestamp) {
        self.dismissed_at = self.dismissed_at.max(Some(at));
    }

    /// Until when what asked is answered or dismissed.
    pub fn dismissed_at(&self) -> Option<Timestamp> {
        self.dismissed_at
    }

    fn is_dismissed(&self, at: Timestamp) -> bool {
        self.dismissed_at.is_some_and(|dismissed| dismissed >= at)
    }

    /// Input answers whatever asked for a person; `true` if something did.
    pub fn typed(&mut self, at: Timestamp) -> bool {
        let mut asked = self.reports.answered();
        asked |= self.notification.take().is_some();
        asked |= self.bell.take().is_some();
        asked |= matches!(self.progress, Some((_, Progress::Failed | Progress::Paused)));
        self.progress = self.progress.filter(|(_, progress)| matches!(progress, Progress::At(_)));
        if self.hook.as_ref().is_some_and(Hooked::asks) {
            self.hook = None;
            asked = true;
        }
        asked |= self.hidden_line.take().is_some();
        asked |= self.screen_question().is_some();
        self.is_screen_answered = true;
        if asked {
            self.answered = Some(at);
        }
        asked
    }

    /// Somebody has ended a line: what becomes of it is told by what comes next.
    pub fn entered(&mut self) {
        self.line.entered();
    }

    /// Whether its shell has told of a prompt or a command.
    pub fn has_marks(&self) -> bool {
        self.shell.is_some()
    }

    /// Whether a shell seemed to wait for one.
    pub fn looked_for_a_line(&mut self, waits: bool) {
        let runs = self.shell.is_some_and(|(_, shell)| shell == Shell::Command);
        self.line.look(waits && !runs);
    }

    /// Whether a shell waits for a line, and none has been entered since its prompt.
    pub fn is_asked_for_a_line(&self) -> bool {
        self.line.is_asked_for()
    }

    /// What an agent's hooks say, which come in any order: the latest counts.
    pub fn hooked(&mut self, hook: Hooked) {
        if self.hook.as_ref().is_some_and(|before| before.at > hook.at) {
            return;
        }
        self.answered = None;
        self.hook = (hook.state != HookState::Ended).then_some(hook);
    }

    pub fn hook(&self) -> Option<&Hooked> {
        self.hook.as_ref()
    }

    /// What the title means now, if anything.
    pub fn titled(&mut self, sign: Option<Sign>) {
        let at = self.title.as_ref().zip(sign.as_ref()).filter(|(before, now)| before.state == now.state).map(|(before, _)| before.at);
        self.change_signs(|evidence| evidence.title = sign.map(|sign| Sign { at: at.unwrap_or(sign.at), ..sign }));
    }

    /// What the screen means now, if anything. The same question found again keeps its time: it is not another one.
    pub fn on_screen(&mut self, sign: Option<Sign>) {
        let is_same = |before: &Sign, now: &Sign| {
            (before.state, &before.context) == (now.state, &now.context) && (before.text == now.text || !now.asks())
        };
        let at = self.screen.as_ref().zip(sign.as_ref()).filter(|(before, now)| is_same(before, now)).map(|(before, _)| before.at);
        self.change_signs(|evidence| {
            evidence.screen = sign.map(|sign| Sign { at: at.unwrap_or(sign.at), ..sign });
            evidence.is_screen_answered = false;
        });
    }

    /// The agent has left the terminal: what its title and screen said is over.
    pub fn forget_signs(&mut self) {
        self.title = None;
        self.screen = None;
        self.turn_ended_at = None;
    }

    /// Applies a change of title or screen and notes the end of a turn: only a text that means idle ends one, never its absence.
    fn change_signs(&mut self, change: impl FnOnce(&mut Self)) {
        let was_working = self.sign().is_some_and(|sign| sign.state == Attention::Working);
        change(self);
        match self.sign().map(|sign| (sign.state, sign.at)) {
            Some((Attention::Idle, at)) if was_working => self.turn_ended_at = Some(at),
            None | Some((Attention::Idle, _)) => {}
            Some(_) => self.turn_ended_at = None,
        }
    }

    /// What title and screen come to together.
    fn sign(&self) -> Option<&Sign> {
        self.strong_title().or_else(|| self.counted_screen()).or_else(|| self.weak_title())
    }

    fn strong_title(&self) -> Option<&Sign> {
        self.title.as_ref().filter(|sign| !sign.is_weak && (!sign.asks() || !self.is_dismissed(sign.at)))
    }

    fn weak_title(&self) -> Option<&Sign> {
        self.title.as_ref().filter(|sign| sign.is_weak && (!sign.asks() || !self.is_dismissed(sign.at)))
    }

    fn counted_screen(&self) -> Option<&Sign> {
        self.screen.as_ref().filter(|sign| !sign.asks() || (!self.is_screen_answered && !self.is_dismissed(sign.at)))
    }

    fn screen_question(&self) -> Option<&Sign> {
        self.counted_screen().filter(|sign| sign.asks())
    }

    /// What a sign comes to. A title that asks seldom says what: the screen does.
    fn signed(&self, sign: &Sign, watched: Watched) -> Needs {
        match self.turn_ended_at {
            Some(at) if sign.state == Attention::Idle && !watched.has_seen(at) => needs(Attention::DoneUnseen, at, &sign.text),
            _ => {
                let question = self.screen_question().filter(|_| sign.asks()).unwrap_or(sign);
                needs(sign.state, sign.at, &question.text)
            }
        }
    }

    pub fn sampled(&mut self, sample: Sample, at: Timestamp) {
        self.hidden_line = if sample.hides_line { self.hidden_line.or(Some(at)) } else { None };
        if self.foreground.as_ref().map(|(_, before)| before) != sample.foreground.as_ref() {
            self.foreground = sample.foreground.map(|foreground| (at, foreground));
        }
        if matches!(self.foreground, Some((_, Foreground::Shell))) {
            self.forget_signs();
        }
    }

    /// What it comes to; nothing if nothing has been said.
    pub fn needs(&self, watched: Watched, moment: Moment) -> Option<Needs> {
        self.decide(watched, moment).map(|(needs, _)| needs)
    }

    /// What it comes to, and whether rules had to decide it.
    pub fn decide(&self, watched: Watched, moment: Moment) -> Option<(Needs, Basis)> {
        let by_rules = |sign: &Sign| (self.signed(sign, watched), Basis::Rules);
        let stated = |needs: Needs| (needs, Basis::Stated);
        self.own_word(watched, moment)
            .map(stated)
            .or_else(|| self.strong_title().map(by_rules))
            .or_else(|| self.progress.map(|(since, progress)| progressing(since, progress)).map(stated))
            .or_else(|| self.at_prompt().map(stated))
            .or_else(|| self.hidden_line.map(|since| needs(Attention::WaitingAnswer, since, HIDDEN_LINE)).map(stated))
            .or_else(|| self.counted_screen().map(by_rules))
            .or_else(|| self.weak_title().map(by_rules))
            .or_else(|| self.in_command().map(stated))
            .or_else(|| self.in_front().map(stated))
            .or_else(|| self.answered.map(|since| needs(Attention::Unknown, since, NOT_SINCE_TYPED)).map(stated))
            .or_else(|| self.hook.as_ref().map(|hook| needs(Attention::Unknown, hook.at, &hook.was())).map(stated))
    }

    /// What the program says itself: reports, hooks, notifications and bells.
    fn own_word(&self, watched: Watched, moment: Moment) -> Option<Needs> {
        let calls = self.calls(watched);
        if let Some((since, report, app)) = self.reports.foremost() {
            // what is done or idle is overtaken by a call for somebody; what works or asks by itself is not
            let is_overtaken = |called: &Needs| called.since > since && matches!(report.state, State::Idle | State::Done);
            return Some(calls.filter(is_overtaken).unwrap_or_else(|| reported(since, report, app, watched)));
        }
        if let Some(hook) = self.believed_hook(moment) {
            let is_overtaken = |called: &Needs| called.since > hook.at && !hook.asks() && !hook.works();
            return Some(calls.filter(is_overtaken).unwrap_or_else(|| hook.needs(watched)));
        }
        calls
    }

    /// What the hooks said last, unless something shows that it is over: interrupts, crashes and kills have no hook.
    fn believed_hook(&self, moment: Moment) -> Option<&Hooked> {
        let hook = self.hook.as_ref()?;
        if !hook.works() {
            return Some(hook);
        }
        let is_quiet = moment.quiet_since.is_none_or(|since| moment.is_long_ago(since, STALE));
        let is_stale = is_quiet && moment.is_long_ago(hook.at, STALE);
        let is_contradicted = self
            .title
            .as_ref()
            .is_some_and(|sign| sign.state == Attention::Idle && sign.at > hook.at && moment.is_long_ago(sign.at, TITLE_STANDS));
        let is_gone = matches!(&self.foreground, Some((at, Foreground::Shell)) if *at > hook.at);
        (!is_stale && !is_contradicted && !is_gone).then_some(hook)
    }

    /// When what is thought may be something else, without anything being said.
    pub fn changes_in(&self, moment: Moment) -> Option<Duration> {
        let hook = self.hook.as_ref().filter(|hook| hook.works())?;
        let left = |at: Timestamp, how_long: Duration| how_long.checked_sub(moment.now.duration_since(at).unsigned_abs());
        let last = moment.quiet_since.map_or(hook.at, |quiet| quiet.max(hook.at));
        let by_title = self.title.as_ref().filter(|sign| sign.state == Attention::Idle && sign.at > hook.at);
        [left(last, STALE), by_title.and_then(|sign| left(sign.at, TITLE_STANDS))].into_iter().flatten().min()
    }

    /// Notifications that nobody has answered, and bells that nobody has seen. One text says more than one bell. A notification may be a
    /// question: looking at it is no answer.
    fn calls(&self, watched: Watched) -> Option<Needs> {
        let is_open = |at: Timestamp| watched != Watched::Now && !self.is_dismissed(at);
        if let Some((at, text)) = self.notification.as_ref().filter(|(at, _)| is_open(*at)) {
            return Some(needs(if asks_for_approval(text) { Attention::WaitingApproval } else { Attention::WaitingAnswer }, *at, text));
        }
        let at = self.bell.filter(|at| !watched.has_seen(*at) && !self.is_dismissed(*at))?;
        Some(needs(Attention::WaitingAnswer, at, "the bell rang"))
    }

    fn at_prompt(&self) -> Option<Needs> {
        let (since, shell) = self.shell?;
        (shell == Shell::Prompt).then(|| needs(Attention::Idle, since, "at a prompt"))
    }

    fn in_command(&self) -> Option<Needs> {
        let (since, shell) = self.shell?;
        (shell == Shell::Command).then(|| needs(Attention::Working, since, "a command runs"))
    }

    fn in_front(&self) -> Option<Needs> {
        let (since, foreground) = self.foreground.as_ref()?;
        Some(match foreground {
            Foreground::Shell => needs(Attention::Idle, *since, "its shell waits"),
            Foreground::Program(name) => needs(Attention::Working, *since, &format!("{name} runs")),
        })
    }
}

const NOT_SINCE_TYPED: &str = "nothing has been said since something was typed";

const HIDDEN_LINE: &str = "it takes a line that is not shown: a password, perhaps";

impl Hooked {
    fn asks(&self) -> bool {
        matches!(self.state, HookState::State(Attention::WaitingApproval | Attention::WaitingAnswer | Attention::Stuck))
    }

    fn works(&self) -> bool {
        self.state == HookState::State(Attention::Working)
    }

    fn needs(&self, watched: Watched) -> Needs {
        let agent = &self.agent;
        let (state, plain) = match self.state {
            HookState::State(state) => {
                let plain = match state {
                    Attention::WaitingApproval => format!("{agent} asks for permission"),
                    Attention::WaitingAnswer => format!("{agent} waits for somebody"),
                    Attention::Stuck => format!("{agent} says that something went wrong"),
                    Attention::Working => format!("{agent} works"),
                    _ => format!("{agent} waits for a task"),
                };
                (state, plain)
            }
            HookState::Done if watched.has_seen(self.at) => (Attention::Idle, format!("{agent} is done")),
            HookState::Done => (Attention::DoneUnseen, format!("{agent} is done")),
            HookState::Ended => (Attention::Unknown, format!("{agent} has ended")),
        };
        needs(state, self.at, self.text.as_deref().unwrap_or(&plain))
    }

    /// Of what is not believed any more.
    fn was(&self) -> String {
        format!("{} said that it works, and nothing since", self.agent)
    }
}

impl Sign {
    pub fn asks(&self) -> bool {
        matches!(self.state, Attention::WaitingApproval | Attention::WaitingAnswer | Attention::Stuck)
    }
}

fn asks_for_approval(text: &str) -> bool {
    let text = text.to_lowercase();
    ["permission", "approval", "approve", "allow"].iter().any(|word| text.contains(word))
}

fn reported(since: Timestamp, report: &report::Report, app: Option<&str>, watched: Watched) -> Needs {
    let app = app.unwrap_or("the program");
    let (state, plain) = match report.state {
        State::Blocked(Kind::Permission) => (Attention::WaitingApproval, format!("{app} asks for permission")),
        State::Blocked(Kind::Question) => (Attention::WaitingAnswer, format!("{app} asks something")),
        State::Blocked(Kind::Auth) => (Attention::WaitingAnswer, format!("{app} wants somebody to sign in")),
        State::Blocked(Kind::Unsaid) => (Attention::WaitingAnswer, format!("{app} waits for somebody")),
        State::Error => (Attention::Stuck, format!("{app} says that something went wrong")),
        State::Working => (Attention::Working, format!("{app} works")),
        State::Done if watched.has_seen(since) => (Attention::Idle, format!("{app} is done")),
        State::Done => (Attention::DoneUnseen, format!("{app} is done")),
        State::Idle => (Attention::Idle, format!("{app} waits for a task")),
    };
    needs(state, since, report.message.as_deref().unwrap_or(&plain))
}

fn progressing(since: Timestamp, progress: Progress) -> Needs {
    match progress {
        Progress::At(Some(percent)) => needs(Attention::Working, since, &format!("{percent} % done")),
        Progress::At(None) => needs(Attention::Working, since, "makes progress"),
        Progress::Failed => needs(Attention::Stuck, since, "its progress has met an error"),
        Progress::Paused => needs(Attention::WaitingAnswer, since, "its progress is paused"),
    }
}

fn needs(state: Attention, since: Timestamp, why: &str) -> Needs {
    Needs { state, since, why: one_line(why) }
}

fn one_line(text: &str) -> String {
    fit(&visible(text.trim()), MAX_WHY)
}

/// A session that is over: news until somebody has looked.
pub fn ended(status: Status, reason: Option<&str>, ended_at: Timestamp, seen_at: Option<Timestamp>) -> Option<Needs> {
    if Watched::Since(seen_at).has_seen(ended_at) {
        return None;
    }
    let why = match reason {
        Some(reason) if status != Status::Completed => format!("{status}: {reason}"),
        _ => status.to_string(),
    };
    Some(needs(Attention::DoneUnseen, ended_at, &why))
}

/// A program of which nothing is known.
pub fn silent(since: Timestamp) -> Needs {
    needs(Attention::Unknown, since, "nothing has said anything")
}

/// A session in which only interpreters run: they say themselves what they do.
pub fn of_calls(open: u64, since: Timestamp) -> Needs {
    match open {
        0 => needs(Attention::Idle, since, "no call runs"),
        1 => needs(Attention::Working, since, "a call runs"),
        more => needs(Attention::Working, since, &format!("{more} calls run or wait")),
    }
}

/// Whether bytes from a terminal were typed. Terminals also speak for themselves: answers to queries, focus, the mouse.
pub fn is_typed(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        match spoken(rest) {
            Some(length) => rest = &rest[length..],
            None => return true,
        }
    }
    false
}

/// The length of what a terminal says by itself at the beginning, if it is that.
fn spoken(bytes: &[u8]) -> Option<usize> {
    match bytes {
        // OSC, DCS, APC: answers, up to their end
        [0x1b, b']' | b'P' | b'_', body @ ..] => {
            let end = body.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
            Some(2 + end + if body[end] == 0x1b { 2.min(body.len() - end) } else { 1 })
        }
        [0x1b, b'[', body @ ..] => {
            let end = body.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let is_private = matches!(body.first(), Some(b'?' | b'>' | b'<'));
            let speaks = match body[end] {
                b'I' | b'O' => end == 0,
                b'M' | b'm' | b'c' | b'u' | b'y' => is_private,
                b'R' | b'n' | b't' => true,
                _ => false,
            };
            speaks.then_some(2 + end + 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
