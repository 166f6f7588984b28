//! Keys: to an overlay, to the terminal beside the list, or to an action of the view.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use shared::filter::Filter;
use shared::message::Request;
use shared::replay::Of;

use super::{App, Asks, Focus, HelpPage, Link, Overlay, Prompt, View};
use crate::dashboard::event::{Asked, Effect, Where};
use crate::dashboard::state::act::Deed;
use crate::dashboard::state::detail::{Detail, Opening, Page};
use crate::dashboard::state::form::Form;
use crate::dashboard::state::hits::{self, Hits};
use crate::dashboard::state::list::Scope;
use crate::dashboard::state::order::Only;
use crate::dashboard::state::palette::Palette;
use crate::dashboard::state::remembered::Layout;
use crate::dashboard::view::{areas, charts, output};
use crate::keymap::{Action, Place};
use crate::replay;

/// Days of the charts.
const DAYS: u32 = 28;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.log.dismiss();
        self.lines.key();
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if matches!(self.views.last(), Some(View::Time(_))) {
            return self.time_event(replay::Event::Key(key));
        }
        if self.shows_sessions() && self.focus == Focus::Pane && self.pane.is_some() {
            return self.pane_key(key);
        }
        if self.is_opening && matches!(self.keymap.action(self.place(), key), Some(Action::Back | Action::Quit)) {
            self.is_opening = false;
            self.say("not opened");
            return Vec::new();
        }
        let now = self.now;
        if let Some(View::Hits(hits)) = self.views.last_mut() {
            match hits.key(key, now) {
                hits::Outcome::More(effects) => return effects,
                hits::Outcome::Leave => return self.back_out(),
                hits::Outcome::NotOurs => {}
            }
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.quit();
        }
        match self.keymap.action(self.place(), key) {
            Some(action) => self.act(action),
            None => Vec::new(),
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        let now = self.now;
        if self.overlay.is_some() {
            return self.paste_into_overlay(text);
        }
        if let Some(View::Hits(hits)) = self.views.last_mut() {
            return hits.paste(text, now);
        }
        if matches!(self.views.last(), Some(View::Time(_))) {
            return self.time_event(replay::Event::Paste(text.to_owned()));
        }
        if self.shows_sessions() && self.focus == Focus::Pane {
            return self.paste_into_pane(text);
        }
        let key = |action| self.keymap.hint(Place::List, action);
        let sentence =
            format!("nothing here takes text: {} types into a session, {} sends it a line", key(Action::Split), key(Action::Send));
        self.say(sentence);
        Vec::new()
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        let mut effects = match action {
            Action::Down => self.step(1),
            Action::Up => self.step(-1),
            Action::Left => self.sideways(-1),
            Action::Right => self.sideways(1),
            Action::PageDown => self.step(self.page()),
            Action::PageUp => self.step(-self.page()),
            Action::First => self.step(isize::MIN / 4),
            Action::Last => self.step(isize::MAX / 4),
            Action::Open => self.open(),
            Action::Attach => self.attach_meant(),
            Action::Watch => match self.meant().into_iter().next() {
                Some(session) => self.attach_to(&session, true),
                None => Vec::new(),
            },
            Action::Split => self.split(),
            Action::Detail => self.open_detail(),
            Action::Replay => self.replay_meant(),
            Action::New => self.open_form(),
            Action::Filter => self.open_filter(),
            Action::Select => {
                self.list.toggle_selected();
                self.step(1)
            }
            Action::SelectAll => {
                self.list.toggle_all();
                Vec::new()
            }
            Action::Sort => return self.sort_by(self.list.sort.next()),
            Action::Reverse => return self.sort_by(self.list.sort),
            Action::OnlyAsks => self.show_only(Only::Asks),
            Action::OnlyWorking => self.show_only(Only::Working),
            Action::OnlyIdle => self.show_only(Only::Idle),
            Action::OnlyEnded => self.show_only(Only::Ended),
            Action::Group => {
                self.list.group = self.list.group.next();
                self.list.arrange();
                self.say(format!("grouped by {}", self.list.group.words()));
                Vec::new()
            }
            Action::Scope => {
                self.list.scope = if self.list.scope == Scope::Recent { Scope::All } else { Scope::Recent };
                self.say(if self.list.scope == Scope::All {
                    "all sessions, however long ago they ended"
                } else {
                    "those that live, and those of the last day"
                });
                vec![self.ask_list()]
            }
            // which of them is chosen could not be seen, and would be remembered
            Action::Preview | Action::Grid if self.shows_nothing() => {
                self.say(if self.list.filter.is_empty() { "there is nothing to show yet" } else { "nothing fits the filter" });
                Vec::new()
            }
            Action::Preview => {
                self.hides_preview = !self.hides_preview;
                Vec::new()
            }
            Action::Grid => {
                self.layout = if self.layout == Layout::Grid { Layout::List } else { Layout::Grid };
                self.close_pane()
            }
            Action::Search => self.open_search(),
            Action::Stats => self.open_stats(),
            Action::Messages => {
                let cursor = self.log.messages.len().saturating_sub(1);
                self.show(View::Messages { cursor });
                Vec::new()
            }
            Action::Output if self.output.is_none() => {
                self.say(format!("no code was run from here yet: {} runs some", self.keymap.hint(Place::List, Action::Exec)));
                Vec::new()
            }
            Action::Output => {
                self.show(View::Output);
                Vec::new()
            }
            Action::PauseResume => self.pause_or_resume(),
            Action::Hibernate => self.deed(Deed::Hibernate),
            Action::Complete => self.prompt(Asks::Result),
            Action::Fail => self.prompt(Asks::Error),
            Action::Kill => self.deed(Deed::Kill),
            Action::Remove => self.deed(Deed::Remove),
            Action::Rename => self.prompt(Asks::Rename),
            Action::Send => self.prompt(Asks::Send),
            Action::Exec => self.prompt(Asks::Code(shared::exec::Language::Bash)),
            Action::Reset => self.deed(Deed::Reset),
            Action::Export => self.prompt(Asks::File),
            Action::Forget => self.deed(Deed::Forget),
            Action::Dismiss => self.deed(Deed::Dismiss),
            Action::Undo => self.undo_last(),
            Action::Refresh => self.refresh(),
            Action::NextTab => self.turn_page(1),
            Action::PreviousTab => self.turn_page(-1),
            Action::Kinds => match self.views.last_mut() {
                Some(View::Detail(detail)) if detail.page == Page::Files => detail.turn_files().into_iter().collect(),
                Some(View::Detail(detail)) => {
                    detail.kinds = detail.kinds.next();
                    detail.go_to(0);
                    Vec::new()
                }
                _ => Vec::new(),
            },
            Action::Copy => self.copy(),
            Action::Cancel => self.cancel_call(),
            Action::Palette => {
                self.overlay = Some(Overlay::Palette(Box::new(Palette::new(&self.keymap, self.place()))));
                Vec::new()
            }
            Action::Help => {
                self.overlay = Some(Overlay::Help(HelpPage::of(self.place())));
                Vec::new()
            }
            Action::Back => self.back_out(),
            Action::Quit if self.views.is_empty() => self.quit(),
            Action::Quit => self.back_out(),
        };
        self.place_cursor();
        self.is_dirty = true;
        if matches!(action, Action::Group | Action::Scope | Action::Preview | Action::Grid) {
            effects.extend(self.remember());
        }
        effects
    }

    /// Before the list has come nobody knows: a key that was quicker than it holds.
    fn shows_nothing(&self) -> bool {
        self.shows_sessions() && self.list.has_loaded && self.list.rows.is_empty() && self.pane.is_none()
    }

    fn quit(&mut self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self.remember().into_iter().collect();
        effects.push(Effect::Quit);
        effects
    }

    /// One step out: of the view, of the terminal, of what is selected, of the filter.
    fn back_out(&mut self) -> Vec<Effect> {
        match self.views.last_mut() {
            Some(View::Detail(detail)) if !detail.filter.is_empty() => {
                detail.filter.clear();
                return Vec::new();
            }
            Some(View::Hits(_)) => {
                self.views.pop();
                return vec![Effect::StopSearch];
            }
            Some(_) => {
                self.views.pop();
                return Vec::new();
            }
            None => {}
        }
        if self.pane.is_some() {
            return self.close_pane();
        }
        if !self.list.selected.is_empty() {
            self.list.selected.clear();
        } else if !self.list.filter.is_empty() {
            self.set_filter("");
        } else if self.list.only != Only::All {
            self.show_only(self.list.only);
        } else {
            let sentence = format!("{} leaves; sessions go on", self.keymap.hint(self.place(), Action::Quit));
            self.say(sentence);
        }
        Vec::new()
    }

    /// A view of a kind is there once.
    pub(super) fn show(&mut self, view: View) {
        self.views.retain(|there| std::mem::discriminant(there) != std::mem::discriminant(&view));
        self.views.push(view);
        self.is_dirty = true;
    }

    fn page(&self) -> isize {
        let height = match self.views.last() {
            None if self.layout == Layout::Grid => return areas::tiles(self).len().max(1).cast_signed(),
            None => areas::list_height(self),
            Some(View::Hits(_)) => areas::hits_height(self.area),
            Some(_) => areas::page_height(self),
        };
        height.saturating_sub(1).max(1).cast_signed()
    }

    fn step(&mut self, by: isize) -> Vec<Effect> {
        let now = self.now;
        let most = match self.views.last() {
            Some(View::Stats(charts)) => charts::overflow(self, charts),
            _ => 0,
        };
        match self.views.last_mut() {
            None => {
                let is_grid = self.layout == Layout::Grid && self.pane.is_none();
                let columns = if is_grid && by.abs() == 1 { areas::tile_columns(self).cast_signed() } else { 1 };
                self.list.step(by.saturating_mul(columns));
                self.place_cursor();
                self.pane_follows()
            }
            Some(View::Detail(detail)) => detail.step(by),
            Some(View::Hits(hits)) => {
                hits.step(by, now);
                Vec::new()
            }
            Some(View::Stats(charts)) => {
                // the window may have grown since
                charts.top = charts.top.min(most).saturating_add_signed(by).min(most);
                Vec::new()
            }
            Some(View::Messages { cursor }) => {
                *cursor = cursor.saturating_add_signed(by).min(self.log.messages.len().saturating_sub(1));
                Vec::new()
            }
            Some(View::Output) => {
                let area = areas::body(self.area);
                if let Some(output) = &mut self.output {
                    output.scroll(by, output::width(area), usize::from(area.height));
                }
                Vec::new()
            }
            Some(View::Time(_)) => Vec::new(),
        }
    }

    fn sideways(&mut self, by: isize) -> Vec<Effect> {
        match self.views.last() {
            Some(View::Detail(_)) => self.turn_page(by),
            None => {
                self.list.step(by);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn turn_page(&mut self, by: isize) -> Vec<Effect> {
        if let Some(View::Detail(detail)) = self.views.last_mut() {
            detail.page = detail.page.step(by);
            detail.filter.clear();
        }
        Vec::new()
    }

    fn open(&mut self) -> Vec<Effect> {
        match self.views.last_mut() {
            None if self.pane.is_some() => self.open_pane(Focus::Pane),
            None => self.attach_current(false),
            Some(View::Detail(detail)) => {
                let id = detail.session.as_ref().map(|session| session.id);
                match (detail.open_row(), id) {
                    (Some(Opening::Spot(spot)), _) => {
                        Self::open_recording(Of { runtime: Some(spot.runtime), ..Of::default() }, Some(spot.at), None)
                    }
                    (Some(Opening::Call { language, at }), Some(id)) => Self::play_call(id, language, at),
                    // all of it, also what a row has no room for
                    (Some(Opening::Text(text)), _) => {
                        self.say(text);
                        Vec::new()
                    }
                    _ => Vec::new(),
                }
            }
            Some(View::Hits(hits)) => {
                let Some(hit) = hits.current().cloned() else { return Vec::new() };
                let pattern = hits.pattern();
                let of = Of { name: hit.session.to_string(), language: hit.language, runtime: hit.runtime };
                let at = hit.offset.map_or(Where::Moment(hit.at), Where::Offset);
                Self::open_recording(of, Some(at), Some(pattern))
            }
            Some(_) => Vec::new(),
        }
    }

    fn attach_meant(&mut self) -> Vec<Effect> {
        let Some(session) = self.meant().into_iter().next() else { return Vec::new() };
        self.attach_to(&session, false)
    }

    fn replay_meant(&mut self) -> Vec<Effect> {
        let Some(session) = self.meant().into_iter().next() else { return Vec::new() };
        self.play(session.id)
    }

    fn split(&mut self) -> Vec<Effect> {
        if self.pane.is_some() { self.close_pane() } else { self.open_pane(Focus::Pane) }
    }

    pub(super) fn open_detail(&mut self) -> Vec<Effect> {
        let Some(session) = self.list.current().cloned() else { return Vec::new() };
        let mut effects = self.seen(session.id);
        let (detail, asks) = Detail::open(session);
        self.show(View::Detail(Box::new(detail)));
        effects.extend(asks);
        effects
    }

    fn open_form(&mut self) -> Vec<Effect> {
        self.overlay = Some(Overlay::New(Box::new(Form::new(self.list.all.iter()))));
        Vec::new()
    }

    fn open_filter(&mut self) -> Vec<Effect> {
        if let Some(View::Hits(hits)) = self.views.last_mut() {
            hits.focus = hits::Focus::Text;
            return Vec::new();
        }
        let text = match self.views.last() {
            Some(View::Detail(detail)) => detail.filter.clone(),
            _ => self.list.filter.clone(),
        };
        self.overlay = Some(Overlay::Prompt(Prompt::new(Asks::Filter, text, Vec::new())));
        Vec::new()
    }

    fn open_search(&mut self) -> Vec<Effect> {
        let only = match self.views.last() {
            Some(View::Detail(detail)) => detail.session.as_ref().map(|session| (session.name.clone(), session.id.to_string())),
            _ => None,
        };
        // room for as many searches as anybody types
        let turn = self.next_turn() << 32;
        self.show(View::Hits(Box::new(Hits::new(only, turn))));
        Vec::new()
    }

    fn open_stats(&mut self) -> Vec<Effect> {
        self.show(View::Stats(Box::default()));
        Self::ask_charts()
    }

    fn ask_charts() -> Vec<Effect> {
        let all = || Filter { all: true, ..Filter::default() };
        vec![
            Effect::Ask(Asked::Stats, Request::Stats(all())),
            Effect::Ask(Asked::Calendar, Request::Calendar { filter: all(), days: DAYS }),
            Effect::Ask(Asked::Disk, Request::Disk(Filter::default())),
        ]
    }

    pub(super) fn refresh(&mut self) -> Vec<Effect> {
        if self.has_given_up() {
            self.link = Link::Lost;
            return vec![Effect::Connect];
        }
        let mut effects = vec![self.ask_list()];
        match self.views.last() {
            Some(View::Detail(detail)) => effects.extend(detail.asks()),
            Some(View::Stats(_)) => effects.extend(Self::ask_charts()),
            _ => {}
        }
        effects
    }

    pub(super) fn sort_by(&mut self, sort: crate::dashboard::state::order::Sort) -> Vec<Effect> {
        // the same column again
        self.list.is_reversed = sort == self.list.sort && !self.list.is_reversed;
        self.list.sort = sort;
        self.list.arrange();
        self.place_cursor();
        self.say(format!("sorted by {}{}", sort.words(), if self.list.is_reversed { ", reversed" } else { "" }));
        self.remember().into_iter().collect()
    }

    /// The same key again shows all.
    fn show_only(&mut self, only: Only) -> Vec<Effect> {
        self.list.only = if self.list.only == only { Only::All } else { only };
        self.list.arrange();
        self.place_cursor();
        self.say(format!("shown: {}", self.list.only.words()));
        Vec::new()
    }

    fn cancel_call(&mut self) -> Vec<Effect> {
        let call = match self.views.last() {
            Some(View::Detail(detail)) => detail.running_call(),
            _ => None,
        };
        let Some(exec) = call else {
            self.say("there is no call under the cursor that runs: the page `commands` shows them");
            return Vec::new();
        };
        vec![Effect::Ask(Asked::Cancel, Request::Cancel { exec })]
    }

    fn copy(&mut self) -> Vec<Effect> {
        let text = match self.views.last() {
            None => self.list.current().map(|session| session.name.clone()),
            Some(View::Detail(detail)) => detail.row_text(),
            Some(View::Hits(hits)) => hits.current().map(|hit| hit.line.clone()),
            Some(View::Messages { cursor }) => self.log.messages.get(*cursor).map(|message| message.text.clone()),
            Some(View::Output) => self.output.as_ref().map(crate::dashboard::state::output::Output::text),
            Some(View::Stats(_) | View::Time(_)) => None,
        };
        match text {
            Some(text) => {
                self.say(format!("copied: {}", shared::text::fit(&shared::text::visible(&text), 60)));
                vec![Effect::Copy(text)]
            }
            None => Vec::new(),
        }
    }
}
