//! Whether a session needs a person: pure rules over evidence. What is heard of a program is kept with its time; what it
//! comes to is decided when somebody asks. Silence alone never becomes anything.

mod explain;
mod report;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use shared::attention::{Attention, Needs};
use shared::screen::{Event, Located, NotificationSource};
use shared::session::Status;
use shared::text::{fit, visible};

use crate::agent::HookState;

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
/// notifications and bells, then its title and progress, then marks of a shell and what can be seen of its terminal.
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
    /// The terminal takes a line and does not show it.
    hidden_line: Option<Timestamp>,
    foreground: Option<(Timestamp, Foreground)>,
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

/// A text that can be seen, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    pub state: Attention,
    pub text: String,
    pub at: Timestamp,
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
        if shell == Shell::Prompt {
            // whatever ran is over
            self.reports.prompt();
            self.progress = None;
            self.hook = self.hook.take().filter(|hook| hook.at > at);
            self.hidden_line = None;
        }
        if self.shell.is_none_or(|(_, before)| before != shell) {
            self.shell = Some((at, shell));
        }
    }

    /// Somebody has typed into it: whatever asked for a person has got one.
    pub fn typed(&mut self, at: Timestamp) {
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
        asked |= self.screen.take_if(|sign| sign.asks()).is_some();
        if asked {
            self.answered = Some(at);
        }
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
        let stays = self.title.as_ref().map(|sign| sign.state) == sign.as_ref().map(|sign| sign.state);
        if !stays {
            self.title = sign;
        }
    }

    /// What the screen means now, if anything.
    pub fn on_screen(&mut self, sign: Option<Sign>) {
        let stays = self.screen.as_ref().map(|sign| (sign.state, &sign.text)) == sign.as_ref().map(|sign| (sign.state, &sign.text));
        if !stays {
            self.screen = sign;
        }
    }

    pub fn sampled(&mut self, sample: Sample, at: Timestamp) {
        self.hidden_line = if sample.hides_line { self.hidden_line.or(Some(at)) } else { None };
        if self.foreground.as_ref().map(|(_, before)| before) != sample.foreground.as_ref() {
            self.foreground = sample.foreground.map(|foreground| (at, foreground));
        }
    }

    /// What it comes to; nothing if nothing has been said.
    pub fn needs(&self, watched: Watched, moment: Moment) -> Option<Needs> {
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
            .or_else(|| self.title.as_ref().map(|sign| sign.needs("its title")))
            .or_else(|| self.progress.map(|(since, progress)| progressing(since, progress)))
            .or_else(|| self.at_prompt())
            .or_else(|| self.hidden_line.map(|since| needs(Attention::WaitingAnswer, since, HIDDEN_LINE)))
            .or_else(|| self.screen.as_ref().map(|sign| sign.needs("its screen")))
            .or_else(|| self.in_command())
            .or_else(|| self.in_front())
            .or_else(|| self.answered.map(|since| needs(Attention::Unknown, since, "nothing has been said since something was typed")))
            .or_else(|| self.hook.as_ref().map(|hook| needs(Attention::Unknown, hook.at, &hook.was())))
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

    /// Notifications and bells that nobody has seen. One text says more than one bell.
    fn calls(&self, watched: Watched) -> Option<Needs> {
        if let Some((at, text)) = self.notification.as_ref().filter(|(at, _)| !watched.has_seen(*at)) {
            return Some(needs(if asks_for_approval(text) { Attention::WaitingApproval } else { Attention::WaitingAnswer }, *at, text));
        }
        let at = self.bell.filter(|at| !watched.has_seen(*at))?;
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
    fn asks(&self) -> bool {
        matches!(self.state, Attention::WaitingApproval | Attention::WaitingAnswer)
    }

    fn needs(&self, which: &str) -> Needs {
        needs(self.state, self.at, &format!("{which} says: {}", self.text))
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
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn soon() -> Moment {
        Moment { now: at(20), quiet_since: Some(at(20)) }
    }

    fn located(event: Event) -> Located {
        Located { start: 0, end: 0, event }
    }

    fn notification(text: &str) -> Event {
        Event::Notification { source: NotificationSource::Osc9, text: text.into() }
    }

    fn status(text: &str) -> Event {
        Event::Status(text.into())
    }

    fn prompt(mark: char) -> Event {
        Event::Prompt { mark, rest: String::new() }
    }

    /// What happens, in order: second after second.
    enum Step {
        Say(Event),
        Type,
    }
    use Step::{Say, Type};

    fn after(steps: Vec<Step>) -> Evidence {
        let mut evidence = Evidence::default();
        for (second, step) in (1..).zip(steps) {
            match step {
                Say(event) => {
                    evidence.hear(&[located(event)], at(second));
                }
                Type => evidence.typed(at(second)),
            }
        }
        evidence
    }

    #[test]
    fn what_evidence_comes_to() {
        use Attention::{DoneUnseen, Idle, Stuck, Unknown, WaitingAnswer, WaitingApproval, Working};
        let never = Watched::Since(None);
        let progress = |state, percent| Say(Event::Progress { state, percent });
        let blocked = "state=blocked:app=codex:kind=permission:msg=YXBwcm92ZSBCYXNo";
        for (steps, watched, expected) in [
            (vec![], never, None),
            // reports
            (vec![Say(status("state=working:app=codex"))], never, Some((Working, 1, "codex works"))),
            (vec![Say(status(blocked))], never, Some((WaitingApproval, 1, "approve Bash"))),
            (vec![Say(status(blocked))], Watched::Now, Some((WaitingApproval, 1, "approve Bash"))),
            (vec![Say(status(blocked)), Say(status("state=working:app=codex"))], never, Some((Working, 2, "codex works"))),
            (vec![Say(status(blocked)), Type], never, Some((Unknown, 2, "nothing has been said since something was typed"))),
            (vec![Say(status("state=blocked:kind=question"))], never, Some((WaitingAnswer, 1, "the program asks something"))),
            (vec![Say(status("state=error:app=x"))], never, Some((Stuck, 1, "x says that something went wrong"))),
            (vec![Say(status("state=done:app=x"))], never, Some((DoneUnseen, 1, "x is done"))),
            (vec![Say(status("state=done:app=x"))], Watched::Since(Some(at(1))), Some((Idle, 1, "x is done"))),
            (vec![Say(status("state=done:app=x"))], Watched::Since(Some(at(0))), Some((DoneUnseen, 1, "x is done"))),
            (vec![Say(status(blocked)), Say(Event::Reset)], never, None),
            (vec![Say(status(blocked)), Say(prompt('A'))], never, Some((Idle, 2, "at a prompt"))),
            (vec![Say(status("state=nonsense"))], never, None),
            // calls for somebody
            (vec![Say(notification("Build done"))], never, Some((WaitingAnswer, 1, "Build done"))),
            (vec![Say(notification("needs your Approval"))], never, Some((WaitingApproval, 1, "needs your Approval"))),
            (vec![Say(notification("a\u{202e}b"))], never, Some((WaitingAnswer, 1, "a·b"))),
            (vec![Say(notification("x"))], Watched::Since(Some(at(1))), None),
            (vec![Say(notification("x"))], Watched::Now, None),
            (vec![Say(notification("x")), Type], never, Some((Unknown, 2, "nothing has been said since something was typed"))),
            (vec![Say(Event::Bell)], never, Some((WaitingAnswer, 1, "the bell rang"))),
            (vec![Say(Event::Bell), Say(notification("x"))], never, Some((WaitingAnswer, 2, "x"))),
            (vec![Say(Event::Bell)], Watched::Since(Some(at(5))), None),
            // the stronger counts, whichever came first, but what is over is overtaken
            (vec![Say(status("state=working:app=x")), Say(Event::Bell)], never, Some((Working, 1, "x works"))),
            (vec![Say(status("state=idle:app=x")), Say(notification("y"))], never, Some((WaitingAnswer, 2, "y"))),
            (vec![Say(notification("y")), Say(status("state=idle:app=x"))], never, Some((Idle, 2, "x waits for a task"))),
            (vec![Say(prompt('C')), Say(Event::Bell)], never, Some((WaitingAnswer, 2, "the bell rang"))),
            // progress
            (vec![progress(1, Some(40))], never, Some((Working, 1, "40 % done"))),
            (vec![progress(1, Some(40)), progress(1, Some(50))], never, Some((Working, 1, "50 % done"))),
            (vec![progress(3, None)], never, Some((Working, 1, "makes progress"))),
            (vec![progress(2, None)], never, Some((Stuck, 1, "its progress has met an error"))),
            (vec![progress(4, None)], never, Some((WaitingAnswer, 1, "its progress is paused"))),
            (vec![progress(1, None), progress(0, None)], never, None),
            (vec![progress(1, None), Say(prompt('A'))], never, Some((Idle, 2, "at a prompt"))),
            // marks of a shell; typing at a prompt answers nothing
            (vec![Say(prompt('A')), Say(prompt('B'))], never, Some((Idle, 1, "at a prompt"))),
            (vec![Say(prompt('A')), Type], never, Some((Idle, 1, "at a prompt"))),
            (vec![Say(prompt('A')), Say(prompt('C'))], never, Some((Working, 2, "a command runs"))),
            (vec![Say(prompt('C')), Say(prompt('D')), Say(prompt('A'))], never, Some((Idle, 2, "at a prompt"))),
            (vec![Say(prompt('P'))], never, None),
            (vec![Type], never, None),
        ] {
            let count = steps.len();
            let found = after(steps).needs(watched, soon()).map(|needs| (needs.state, needs.since.as_second(), needs.why));
            let expected = expected.map(|(state, since, why): (Attention, i64, &str)| (state, since, why.to_owned()));
            assert_eq!(found, expected, "{count} steps, {watched:?}");
        }
    }

    fn hook(state: HookState, second: i64) -> Hooked {
        Hooked { agent: "Codex".into(), state, text: None, at: at(second) }
    }

    fn sign(state: Attention, second: i64) -> Sign {
        Sign { state, text: "◇ Ready".into(), at: at(second) }
    }

    #[test]
    fn hooks_are_believed_until_something_stronger_or_later_says_otherwise() {
        use Attention::{DoneUnseen, Idle, Unknown, WaitingAnswer, WaitingApproval, Working};
        type Case = (&'static str, fn(&mut Evidence), Moment, Option<(Attention, i64)>);
        let never = Watched::Since(None);
        let later = |second| Moment { now: at(second), quiet_since: Some(at(5)) };
        let cases: Vec<Case> = vec![
            ("works", |e| e.hooked(hook(HookState::State(Working), 5)), later(10), Some((Working, 5))),
            ("done", |e| e.hooked(hook(HookState::Done, 5)), later(10), Some((DoneUnseen, 5))),
            ("asks", |e| e.hooked(hook(HookState::State(WaitingApproval), 5)), later(100_000), Some((WaitingApproval, 5))),
            ("stale", |e| e.hooked(hook(HookState::State(Working), 5)), later(5 + 600), Some((Unknown, 5))),
            (
                "not stale while it prints",
                |e| e.hooked(hook(HookState::State(Working), 5)),
                Moment { now: at(900), quiet_since: Some(at(899)) },
                Some((Working, 5)),
            ),
            (
                "ended",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.hooked(hook(HookState::Ended, 6));
                },
                later(10),
                None,
            ),
            (
                "late",
                |e| {
                    e.hooked(hook(HookState::Done, 6));
                    e.hooked(hook(HookState::State(Working), 5));
                },
                later(10),
                Some((DoneUnseen, 6)),
            ),
            (
                "answered",
                |e| {
                    e.hooked(hook(HookState::State(WaitingApproval), 5));
                    e.typed(at(6));
                },
                later(10),
                Some((Unknown, 6)),
            ),
            (
                "typing does not end work",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.typed(at(6));
                },
                later(10),
                Some((Working, 5)),
            ),
            (
                "reports are stronger",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.hear(&[located(status("state=idle"))], at(4));
                },
                later(10),
                Some((Idle, 4)),
            ),
            (
                "a prompt ends it",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.hear(&[located(prompt('A'))], at(6));
                },
                later(10),
                Some((Idle, 6)),
            ),
            (
                "the title shows an interrupt",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.titled(Some(sign(Idle, 6)));
                },
                later(9),
                Some((Idle, 6)),
            ),
            (
                "but not at once",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.titled(Some(sign(Idle, 6)));
                },
                later(8),
                Some((Working, 5)),
            ),
            (
                "its shell is in front",
                |e| {
                    e.hooked(hook(HookState::State(Working), 5));
                    e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Shell) }, at(7));
                },
                later(10),
                Some((Idle, 7)),
            ),
            (
                "a notification after it was done",
                |e| {
                    e.hooked(hook(HookState::Done, 5));
                    e.hear(&[located(notification("hello?"))], at(6));
                },
                later(10),
                Some((WaitingAnswer, 6)),
            ),
        ];
        for (what, steps, moment, expected) in cases {
            let mut evidence = Evidence::default();
            steps(&mut evidence);
            let found = evidence.needs(never, moment).map(|needs| (needs.state, needs.since.as_second()));
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn what_can_be_seen_counts_least() {
        use Attention::{Idle, WaitingAnswer, WaitingApproval, Working};
        type Case = (&'static str, fn(&mut Evidence), Option<Attention>);
        let asks = || Some(Sign { state: WaitingApproval, text: "allow command?".into(), at: at(3) });
        let hides = || Sample { hides_line: true, foreground: None };
        let cases: Vec<Case> = vec![
            ("a title", |e| e.titled(Some(sign(Working, 1))), Some(Working)),
            (
                "no title any more",
                |e| {
                    e.titled(Some(sign(Working, 1)));
                    e.titled(None);
                },
                None,
            ),
            ("a password", |e| e.sampled(Sample { hides_line: true, foreground: None }, at(2)), Some(WaitingAnswer)),
            (
                "a password of a command",
                |e| {
                    e.hear(&[located(prompt('C'))], at(1));
                    e.sampled(Sample { hides_line: true, foreground: None }, at(2));
                },
                Some(WaitingAnswer),
            ),
            (
                "a password that was typed",
                |e| {
                    e.sampled(Sample { hides_line: true, foreground: None }, at(2));
                    e.typed(at(3));
                },
                Some(Attention::Unknown),
            ),
            (
                "a program in front",
                |e| e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Program("make".into())) }, at(2)),
                Some(Working),
            ),
            ("a shell in front", |e| e.sampled(Sample { hides_line: false, foreground: Some(Foreground::Shell) }, at(2)), Some(Idle)),
        ];
        for (what, steps, expected) in cases {
            let mut evidence = Evidence::default();
            steps(&mut evidence);
            assert_eq!(evidence.needs(Watched::Since(None), soon()).map(|needs| needs.state), expected, "{what}");
        }
        let mut evidence = Evidence::default();
        evidence.on_screen(asks());
        assert_eq!(evidence.needs(Watched::Now, soon()).map(|needs| needs.why), Some("its screen says: allow command?".into()));
        evidence.sampled(hides(), at(4));
        evidence.hear(&[located(prompt('A'))], at(5));
        assert_eq!(evidence.needs(Watched::Now, soon()).map(|needs| needs.state), Some(Idle), "a prompt is stronger than what is seen");
    }

    #[test]
    fn a_flood_is_one_call_and_ends_with_its_last_report() {
        let mut evidence = Evidence::default();
        let mut flood: Vec<Located> = (0..10_000).map(|_| located(Event::Bell)).collect();
        flood.extend((0..1000).map(|n| located(notification(&format!("n{n}")))));
        flood.extend((0..1000).map(|_| located(status("state=working"))));
        flood.push(located(status("state=idle")));
        let source = NotificationSource::Osc9;
        assert_eq!(evidence.hear(&flood, at(1)), [Call::Bell, Call::Notification { source, text: "n999".into() }]);
        assert_eq!(evidence.needs(Watched::Since(None), soon()).map(|needs| needs.state), Some(Attention::Idle));
    }

    #[test]
    fn what_has_ended_is_news_until_it_is_seen() {
        let why = |status, reason, seen| ended(status, reason, at(10), seen).map(|needs| (needs.state, needs.why));
        let news = |why: &str| Some((Attention::DoneUnseen, why.to_owned()));
        assert_eq!(why(Status::Completed, Some("exit code 0"), None), news("completed"));
        assert_eq!(why(Status::Failed, Some("exit code 3"), None), news("failed: exit code 3"));
        assert_eq!(why(Status::Timeout, Some("idle"), Some(at(9))), news("timeout: idle"));
        assert_eq!(why(Status::Failed, None, Some(at(10))), None);
        assert_eq!(why(Status::Failed, None, Some(at(11))), None);
    }

    #[test]
    fn terminals_speak_for_themselves_and_people_type() {
        for typed in
            [&b"y"[..], b"\r", b"\x1b", b"\x1b[A", b"\x1b[1;5C", b"\x1bOP", b"\x1b[97u", b"\x1b[Iy", b"\x1b[5~", b"\x1b[200~x\x1b[201~"]
        {
            assert!(is_typed(typed), "{:?}", String::from_utf8_lossy(typed));
        }
        for spoken in [
            &b""[..],
            b"\x1b[I",
            b"\x1b[O",
            b"\x1b[I\x1b[O",
            b"\x1b[?62;4c",
            b"\x1b[>1;10;0c",
            b"\x1b[12;40R",
            b"\x1b[0n",
            b"\x1b[<0;10;5M\x1b[<0;10;5m",
            b"\x1b[?1u",
            b"\x1b[?2026;2$y",
            b"\x1b[8;24;80t",
            b"\x1b]11;rgb:0000/0000/0000\x1b\\",
            b"\x1b]10;rgb:ffff/ffff/ffff\x07",
            b"\x1bP>|kitty\x1b\\\x1b[?62c",
        ] {
            assert!(!is_typed(spoken), "{:?}", String::from_utf8_lossy(spoken));
        }
    }
}
