//! What the daemon answers.

use shared::exec::ExecResult;
use shared::message::{Failure, Request};
use shared::text::{columns, visible};

use super::{App, Focus, View};
use crate::dashboard::event::{Asked, Effect, Reply, Then, Turn};
use crate::dashboard::state::output;
use crate::export;
use crate::keymap::Action;

/// A result of code that still runs is waited for so long at a time.
const STILL_RUNS_MS: u64 = 30_000;

impl App {
    pub(super) fn answered(&mut self, asked: Asked, reply: Reply) -> Vec<Effect> {
        match (asked, reply) {
            (Asked::List, Reply::Sessions(sessions)) => {
                self.is_asking_rows = false;
                self.list.load(sessions);
                self.rows_changed()
            }
            (Asked::Rows(ids), Reply::Sessions(rows)) => {
                self.is_asking_rows = false;
                self.list.refresh(&ids, rows);
                let mut effects = self.rows_changed();
                effects.extend(self.freshen_detail(&ids));
                effects
            }
            (Asked::Pulse(turn), Reply::Pulses(pulses)) => {
                self.take_pulses(turn, pulses);
                Vec::new()
            }
            (Asked::Look(id), Reply::Sight(sight)) => {
                self.is_dirty |= self.sights.take(id, Ok(sight), self.now);
                Vec::new()
            }
            (Asked::New(then), Reply::Session(session)) => {
                let session = *session;
                // one whose form was left meanwhile is not attached to
                let is_awaited = matches!(self.overlay, Some(super::Overlay::New(_)));
                let then = if is_awaited { then } else { Then::Stay };
                if is_awaited {
                    self.overlay = None;
                }
                let id = session.id;
                let name = shared::text::visible(&session.name);
                let is_queued = session.status == shared::session::Status::Queued;
                self.list.refresh(&[id], vec![session]);
                self.list.go_to(id);
                let mut effects = self.rows_changed();
                match then {
                    Then::Attach if !is_queued => effects.extend(self.attach_current(false)),
                    _ if is_queued => self.say(format!("{name} waits for its turn")),
                    _ => self.say(format!("{name} is running")),
                }
                effects
            }
            (Asked::Deed(turn, session, _), Reply::Done(note)) => self.deed_done(turn, session, Ok(note)),
            (Asked::Exec(turn), Reply::Exec(result)) => self.code_done(turn, &result),
            (Asked::Cancel, Reply::Exec(result)) => {
                let (language, name) = (result.language, shared::text::visible(&result.name));
                let how = if result.success { "was done before it could be cancelled" } else { "was interrupted: the call is over" };
                self.say(format!("{language} in {name} {how}"));
                Vec::new()
            }
            (Asked::Layers(id), Reply::Layers(layers)) => self.in_detail(id, |detail| detail.take_layers(*layers)),
            (Asked::States(id), Reply::States(states)) => self.in_detail(id, |detail| detail.take_states(states)),
            (Asked::Events(id), Reply::Events(events)) => self.in_detail(id, |detail| detail.take_events(events)),
            (Asked::Calls(id), Reply::Calls(calls)) => self.in_detail(id, |detail| detail.take_calls(calls)),
            (Asked::Files(id), Reply::Files(changed)) => self.in_detail(id, |detail| detail.take_files(changed)),
            (Asked::Marks(id), Reply::Outline(outline)) => self.in_detail(id, |detail| detail.take_outline(&outline)),
            // unless the user did not want to wait
            (Asked::Open(opens), Reply::Outline(outline)) if std::mem::take(&mut self.is_opening) => self.opened(&opens, outline),
            (Asked::Time(turn, _), Reply::Time(event)) => self.time_answer(turn, event),
            (Asked::Moment(turn), Reply::Moment(moment)) => {
                let screen = export::restore(&moment).ok();
                self.in_hits(|hits| hits.take_moment(turn, screen))
            }
            (Asked::Stats, Reply::Stats(stats)) => self.in_charts(|charts| charts.stats = Some(*stats)),
            (Asked::Calendar, Reply::Calendar(calendar)) => self.in_charts(|charts| charts.calendar = Some(calendar)),
            (Asked::Disk, Reply::Disk(disk)) => self.in_charts(|charts| charts.disk = Some(disk)),
            _ => Vec::new(),
        }
    }

    /// Code has ended, or goes on: a short result is said in the status line, a longer one has a page.
    fn code_done(&mut self, turn: Turn, result: &ExecResult) -> Vec<Effect> {
        // keys that were pressed since may have led elsewhere
        let has_stayed = self.line_done(turn) && self.overlay.is_none();
        let is_latest = self.output.as_ref().is_some_and(|output| output.owns(turn));
        if let Some(output) = self.output.as_mut().filter(|output| output.owns(turn)) {
            output.take(turn, result);
        }
        let lead = format!("{} in {} {}", result.language, visible(&result.name), output::how(result));
        let room = usize::from(self.area.width).saturating_sub(2);
        let line = output::only_line(result).map(|line| if line.is_empty() { lead.clone() } else { format!("{lead}: {line}") });
        let line = line.filter(|line| columns(line) <= room);
        let is_shown = matches!(self.views.last(), Some(View::Output)) && is_latest;
        let text = match line {
            Some(line) => line,
            None if is_shown => lead,
            None if is_latest && has_stayed => {
                self.show(View::Output);
                lead
            }
            None => format!("{lead}; {} shows what it printed", self.keymap.hint(self.place(), Action::Output)),
        };
        if result.success || result.running {
            self.say(text);
        } else {
            self.fail(text);
        }
        // one that still runs is asked for again until it has ended
        let again =
            Request::Result { exec: result.exec_id, wait_ms: Some(STILL_RUNS_MS), output_limit: Some(output::LIMIT), stream: false };
        if result.running && is_latest { vec![Effect::Ask(Asked::Exec(turn), again)] } else { Vec::new() }
    }

    pub(super) fn refused(&mut self, asked: &Asked, failure: &Failure) -> Vec<Effect> {
        let why = failure.message.clone();
        match asked {
            // the next one will tell
            Asked::Pulse(turn) => {
                self.pulse_failed(*turn);
                Vec::new()
            }
            Asked::Seen => Vec::new(),
            Asked::Look(id) => {
                self.is_dirty |= self.sights.take(*id, Err(why), self.now);
                Vec::new()
            }
            Asked::List | Asked::Rows(_) => {
                self.is_asking_rows = false;
                self.fail(why);
                Vec::new()
            }
            Asked::New(_) => {
                if let Some(super::Overlay::New(form)) = &mut self.overlay {
                    form.error = Some(why.clone());
                    form.is_sent = false;
                }
                self.fail(why);
                Vec::new()
            }
            Asked::Deed(turn, session, _) => self.deed_done(*turn, *session, Err(why)),
            Asked::Time(turn, asked) => self.time_answer(*turn, crate::replay::failed(*asked, why)),
            Asked::Moment(turn) => self.in_hits(|hits| hits.take_moment(*turn, None)),
            Asked::Stats | Asked::Calendar | Asked::Disk => self.in_charts(|charts| charts.failure = Some(why)),
            // what was never recorded has no commands to show
            Asked::Marks(_) | Asked::Calls(_) | Asked::States(_) | Asked::Files(_) => Vec::new(),
            Asked::Layers(id) | Asked::Events(id) => self.in_detail(*id, |detail| detail.failure = Some(why)),
            Asked::Exec(turn) => {
                self.line_refused(*turn, &why);
                self.fail(why);
                Vec::new()
            }
            Asked::Cancel => {
                self.fail(why);
                Vec::new()
            }
            Asked::Open(_) => {
                self.is_opening = false;
                self.fail(why);
                Vec::new()
            }
        }
    }

    /// The list has changed.
    pub(super) fn rows_changed(&mut self) -> Vec<Effect> {
        self.is_dirty = true;
        self.rates.keep(|id| self.list.get(id).is_some());
        self.place_cursor();
        if self.pane.is_some() && self.focus == Focus::List { self.pane_follows() } else { Vec::new() }
    }

    /// What is shown in detail of those that have changed.
    fn freshen_detail(&mut self, ids: &[shared::id::SessionId]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for view in &mut self.views {
            if let View::Detail(detail) = view
                && let Some(session) =
                    detail.session.as_ref().filter(|session| ids.contains(&session.id)).and_then(|session| self.list.get(session.id))
            {
                effects.extend(detail.freshen(session.clone()));
            }
        }
        effects
    }

    fn in_detail(&mut self, id: shared::id::SessionId, change: impl FnOnce(&mut crate::dashboard::state::detail::Detail)) -> Vec<Effect> {
        let found = self.views.iter_mut().find_map(|view| match view {
            View::Detail(detail) if detail.is_of(id) => Some(detail),
            _ => None,
        });
        if let Some(detail) = found {
            change(detail);
            self.is_dirty = true;
            self.place_cursor();
        }
        Vec::new()
    }

    fn in_charts(&mut self, change: impl FnOnce(&mut super::Charts)) -> Vec<Effect> {
        for view in &mut self.views {
            if let View::Stats(charts) = view {
                change(charts);
                self.is_dirty = true;
                break;
            }
        }
        Vec::new()
    }
}
