//! The sessions in the order in which they are shown: sorted, grouped, filtered, with a cursor that stays on its session. Pure.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use serde::{Deserialize, Serialize};
use shared::id::{SessionId, ThreadId};
use shared::session::Session;
use shared::text::shell_words;

use super::order::{Group, Only, Sort, compare, group_rank, group_title};

/// Which sessions are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Those that live, and those that ended within a day; of each name the latest.
    #[default]
    Recent,
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Heading {
        title: String,
        count: usize,
    },
    /// Where in `all`.
    Session(usize),
}

#[derive(Default)]
pub struct List {
    pub all: Vec<Session>,
    pub rows: Vec<Row>,
    /// The session under the cursor.
    pub cursor: Option<SessionId>,
    pub selected: HashSet<SessionId>,
    pub filter: String,
    pub sort: Sort,
    /// The other way round.
    pub is_reversed: bool,
    pub only: Only,
    pub group: Group,
    pub scope: Scope,
    /// The first row that is shown.
    pub top: usize,
    pub has_loaded: bool,
    /// The session that fits the filter best.
    best: Option<SessionId>,
    /// Where each one is in `all`.
    index: HashMap<SessionId, usize>,
}

impl List {
    /// Everything as the daemon has it now.
    pub fn load(&mut self, sessions: Vec<Session>) {
        let thread = self.current().map(|session| session.thread);
        self.all = sessions;
        self.has_loaded = true;
        self.follow_thread(thread);
        self.arrange();
    }

    /// Some as the daemon has them now; those that were asked for and did not come are gone.
    pub fn refresh(&mut self, asked: &[SessionId], rows: Vec<Session>) {
        let thread = self.current().map(|session| session.thread);
        let came: HashSet<SessionId> = rows.iter().map(|session| session.id).collect();
        let gone: HashSet<SessionId> = asked.iter().copied().filter(|id| !came.contains(id)).collect();
        self.all.retain(|session| !gone.contains(&session.id));
        let mut at: HashMap<SessionId, usize> = self.all.iter().enumerate().map(|(at, session)| (session.id, at)).collect();
        for row in rows {
            match at.get(&row.id) {
                Some(&at) => self.all[at] = row,
                None => {
                    at.insert(row.id, self.all.len());
                    self.all.push(row);
                }
            }
        }
        if self.scope == Scope::Recent {
            self.keep_latest();
        }
        self.follow_thread(thread);
        self.arrange();
    }

    /// A session that has been followed by the next of its name gives the cursor on to it.
    fn follow_thread(&mut self, thread: Option<ThreadId>) {
        if self.all.iter().all(|session| Some(session.id) != self.cursor)
            && let Some(next) = self.all.iter().filter(|session| Some(session.thread) == thread).max_by_key(|session| session.id)
        {
            self.cursor = Some(next.id);
        }
    }

    /// Of each thread only the latest session: the one before has had its time.
    fn keep_latest(&mut self) {
        let mut latest: HashMap<ThreadId, SessionId> = HashMap::new();
        for session in &self.all {
            let present = latest.entry(session.thread).or_insert(session.id);
            // ids sort by the time they were made
            if session.id > *present {
                *present = session.id;
            }
        }
        self.all.retain(|session| latest.get(&session.thread) == Some(&session.id));
    }

    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.index.get(&id).and_then(|at| self.all.get(*at))
    }

    /// It printed something just now.
    pub fn touch(&mut self, id: SessionId, at: jiff::Timestamp) {
        if let Some(session) = self.index.get(&id).copied().and_then(|index| self.all.get_mut(index)) {
            session.last_activity_at = session.last_activity_at.max(at);
        }
    }

    pub fn current(&self) -> Option<&Session> {
        self.cursor.and_then(|id| self.get(id))
    }

    /// What an action is about: what is selected and shown, else what is under the cursor.
    pub fn meant(&self) -> Vec<&Session> {
        if self.selected.is_empty() {
            return self.current().into_iter().collect();
        }
        self.shown().filter(|session| self.selected.contains(&session.id)).collect()
    }

    /// Sessions that pass the filter, in order.
    pub fn shown(&self) -> impl DoubleEndedIterator<Item = &Session> {
        self.rows.iter().filter_map(|row| match row {
            Row::Session(at) => self.all.get(*at),
            Row::Heading { .. } => None,
        })
    }

    pub fn shown_count(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row, Row::Session(_))).count()
    }

    /// Sorts, groups and filters anew. The cursor stays on its session; if that is gone, it stays where it was.
    pub fn arrange(&mut self) {
        let before = self.cursor_row();
        self.index = self.all.iter().enumerate().map(|(at, session)| (session.id, at)).collect();
        self.selected.retain(|id| self.index.contains_key(id));
        let mut order = self.filtered();
        let by_score = !self.filter.is_empty();
        order.sort_by(|(a, score_a), (b, score_b)| {
            let (a, b) = (&self.all[*a], &self.all[*b]);
            let by_group = group_rank(a, self.group).cmp(&group_rank(b, self.group));
            let by_match = if by_score { score_b.cmp(score_a) } else { Ordering::Equal };
            let by_order = || if self.is_reversed { compare(b, a, self.sort) } else { compare(a, b, self.sort) };
            by_group.then(by_match).then_with(by_order)
        });
        // the first of the highest, which is the first in order
        let best = order.iter().rev().max_by_key(|(_, score)| *score).filter(|_| by_score);
        self.best = best.map(|(at, _)| self.all[*at].id);
        self.rows.clear();
        let mut heading: Option<String> = None;
        let mut heading_at = 0;
        for (at, _) in order {
            if self.group != Group::None {
                let title = group_title(&self.all[at], self.group);
                if heading.as_ref() != Some(&title) {
                    heading_at = self.rows.len();
                    self.rows.push(Row::Heading { title: title.clone(), count: 0 });
                    heading = Some(title);
                }
                if let Some(Row::Heading { count, .. }) = self.rows.get_mut(heading_at) {
                    *count += 1;
                }
            }
            self.rows.push(Row::Session(at));
        }
        if self.cursor_row().is_none() {
            let row = before.unwrap_or(0);
            self.cursor = self.nearest(row);
        }
    }

    /// Sessions that pass, with how well they do.
    fn filtered(&self) -> Vec<(usize, u32)> {
        if self.filter.is_empty() {
            return (0..self.all.len()).filter(|at| self.only.shows(&self.all[*at])).map(|at| (at, 0)).collect();
        }
        let pattern = Pattern::parse(&self.filter, CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut buffer = Vec::new();
        // each word for itself, and each field: letters that are spread over all of them say nothing
        let mut score = |word: &Atom, fields: &[String]| {
            let text = word.needle_text().to_string().to_lowercase();
            let mut scores = fields.iter().enumerate().map(|(at, field)| {
                // letters that are scattered over a path or a command say nothing: only names may have gaps
                let is_weak = at > 0 && !word.negative && word.kind == AtomKind::Fuzzy && !field.to_lowercase().contains(&text);
                if is_weak { None } else { word.score(Utf32Str::new(field, &mut buffer), &mut matcher) }
            });
            // what must not be there must be nowhere
            if word.negative { scores.all(|score| score.is_some()).then_some(0) } else { scores.flatten().max() }
        };
        let passes = |(at, session): (usize, &Session)| {
            let fields = fields(session);
            let total: Option<u32> = pattern.atoms.iter().map(|word| score(word, &fields).map(u32::from)).sum();
            total.map(|total| (at, total))
        };
        self.all.iter().enumerate().filter(|(_, session)| self.only.shows(session)).filter_map(passes).collect()
    }

    pub fn cursor_row(&self) -> Option<usize> {
        let cursor = self.cursor?;
        let at = *self.index.get(&cursor)?;
        self.rows.iter().position(|row| *row == Row::Session(at))
    }

    fn session_at(&self, row: usize) -> Option<SessionId> {
        match self.rows.get(row)? {
            Row::Session(at) => self.all.get(*at).map(|session| session.id),
            Row::Heading { .. } => None,
        }
    }

    /// The session of that row, or of the nearest that has one.
    fn nearest(&self, row: usize) -> Option<SessionId> {
        let row = row.min(self.rows.len().saturating_sub(1));
        (row..self.rows.len()).chain((0..row).rev()).find_map(|row| self.session_at(row))
    }

    /// By so many sessions, stopping at both ends.
    pub fn step(&mut self, by: isize) {
        let shown: Vec<SessionId> = self.shown().map(|session| session.id).collect();
        let at = self.cursor.and_then(|cursor| shown.iter().position(|id| *id == cursor)).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(shown.len().saturating_sub(1));
        self.cursor = shown.get(to).copied();
    }

    /// The first; while there is a filter the one that fits it best, whichever group it is in.
    pub fn first(&mut self) {
        let first = self.shown().next().map(|session| session.id);
        self.cursor = self.best.or(first);
    }

    /// The cursor goes to that row, if it has a session.
    pub fn go_to_row(&mut self, row: usize) -> bool {
        let found = self.session_at(row);
        if found.is_some() {
            self.cursor = found;
        }
        found.is_some()
    }

    pub fn go_to(&mut self, id: SessionId) {
        if self.index.contains_key(&id) {
            self.cursor = Some(id);
        }
    }

    pub fn toggle_selected(&mut self) {
        if let Some(id) = self.cursor
            && !self.selected.remove(&id)
        {
            self.selected.insert(id);
        }
    }

    pub fn toggle_all(&mut self) {
        let shown: HashSet<SessionId> = self.shown().map(|session| session.id).collect();
        if shown.iter().all(|id| self.selected.contains(id)) {
            self.selected.clear();
        } else {
            self.selected.extend(shown);
        }
    }

    /// Scrolls as little as needed for the cursor to be seen in so many rows.
    pub fn follow_cursor(&mut self, height: usize) {
        let height = height.max(1);
        if let Some(row) = self.cursor_row() {
            // the heading above the first of a group is seen with it
            let wanted = if row > 0 && matches!(self.rows[row - 1], Row::Heading { .. }) { row - 1 } else { row };
            if wanted < self.top {
                self.top = wanted;
            }
            if row >= self.top + height {
                self.top = row + 1 - height;
            }
        }
        self.top = self.top.min(self.rows.len().saturating_sub(height));
    }

    pub fn count(&self, wanted: impl Fn(&Session) -> bool) -> usize {
        self.all.iter().filter(|session| wanted(session)).count()
    }
}

/// What a filter looks at.
fn fields(session: &Session) -> Vec<String> {
    let words = [
        Some(session.name.as_str()),
        session.task.as_deref(),
        Some(session.workspace.as_str()),
        session.mode.as_deref(),
        session.user.as_deref(),
        Some(session.status.as_str()),
    ];
    words.into_iter().flatten().map(str::to_owned).chain([shell_words(&session.command)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::state::tests::session;
    use shared::session::Status;

    fn names(list: &List) -> Vec<String> {
        list.shown().map(|session| session.name.clone()).collect()
    }

    fn list(sessions: Vec<Session>) -> List {
        let mut list = List::default();
        list.load(sessions);
        list
    }

    #[test]
    fn the_cursor_stays_on_its_session_or_where_it_was() {
        let (a, b, c) = (session("a", Status::Active), session("b", Status::Active), session("c", Status::Active));
        let mut list = list(vec![a.clone(), b.clone(), c.clone()]);
        list.step(1);
        assert_eq!(list.current().map(|s| s.name.as_str()), Some("b"));
        list.load(vec![session("0", Status::Active), a.clone(), b.clone(), c.clone()]);
        assert_eq!(list.current().map(|s| s.name.as_str()), Some("b"));
        let next = Session { id: shared::id::SessionId::new(), ..b.clone() };
        list.refresh(&[b.id, next.id], vec![b.clone(), next.clone()]);
        assert_eq!(list.cursor, Some(next.id), "the next session of the same name has the cursor");
        list.refresh(&[b.id, next.id], vec![]);
        assert_eq!(list.current().map(|s| s.name.as_str()), Some("c"), "what follows takes its place");
        list.load(vec![]);
        assert_eq!(list.current(), None);
        list.step(1);
        assert_eq!(list.cursor, None);
    }

    #[test]
    fn filters_are_fuzzy_and_the_best_comes_first() {
        let mut list = list(vec![session("web-frontend", Status::Active), session("api", Status::Active), session("wf", Status::Failed)]);
        list.filter = "wf".into();
        list.arrange();
        assert_eq!(names(&list)[0], "wf");
        assert!(!names(&list).contains(&"api".to_owned()));
        list.filter = "failed".into();
        list.arrange();
        assert_eq!(names(&list), ["wf"]);
        list.filter = "apih".into();
        list.arrange();
        assert_eq!(list.shown_count(), 0, "not across what has nothing to do with each other");
        list.filter.clear();
        list.arrange();
        assert_eq!(list.shown_count(), 3);
    }

    #[test]
    fn each_word_of_a_filter_is_found_in_any_field() {
        let (mut web, mut api) = (session("web", Status::Active), session("api", Status::Active));
        (web.mode, api.user) = (Some("review".into()), Some("alice".into()));
        let mut list = list(vec![web, api]);
        let cases: [(&str, &[&str]); 7] = [
            ("web review", &["web"]),
            ("review web", &["web"]),
            ("api alice", &["api"]),
            ("web alice", &[]),
            ("active !alice", &["web"]),
            ("active !nobody", &["api", "web"]),
            (" ", &["api", "web"]),
        ];
        for (filter, expected) in cases {
            list.filter = filter.into();
            list.arrange();
            assert_eq!(names(&list), expected, "{filter:?}");
        }
    }

    #[test]
    fn the_best_match_has_the_cursor_whichever_group_it_is_in() {
        let (mut web, mut shell) = (session("web", Status::Active), session("shell", Status::Active));
        (web.workspace, shell.workspace) = ("/a".into(), "/b".into());
        web.command = vec!["ssh".into(), "myshells".into()];
        let mut list = list(vec![web, shell]);
        list.group = Group::Workspace;
        list.filter = "shell".into();
        list.arrange();
        assert_eq!(names(&list), ["web", "shell"], "groups keep their order");
        list.first();
        assert_eq!(list.current().map(|session| session.name.as_str()), Some("shell"));
        list.filter.clear();
        list.arrange();
        list.first();
        assert_eq!(list.current().map(|session| session.name.as_str()), Some("web"));
    }

    #[test]
    fn groups_have_headings_that_the_cursor_passes_over() {
        let (mut a, mut b) = (session("a", Status::Active), session("b", Status::Active));
        a.workspace = "/x".into();
        b.workspace = "/y".into();
        let mut list = list(vec![a, b]);
        list.group = Group::Workspace;
        list.arrange();
        assert_eq!(list.rows.len(), 4);
        list.first();
        assert_eq!(list.cursor_row(), Some(1));
        list.step(1);
        assert_eq!(list.cursor_row(), Some(3));
        assert!(!list.go_to_row(2), "a heading is no session");
        list.follow_cursor(2);
        assert_eq!(list.top, 2);
        list.first();
        list.follow_cursor(2);
        assert_eq!(list.top, 0, "the heading is seen with its first session");
    }

    #[test]
    fn the_next_session_of_a_thread_takes_the_place_of_the_one_before() {
        let old = session("a", Status::Completed);
        let mut new = session("a", Status::Active);
        new.thread = old.thread;
        let mut list = list(vec![old.clone()]);
        list.refresh(&[new.id], vec![new.clone()]);
        assert_eq!(list.all.len(), 1);
        assert_eq!(list.all[0].id, new.id);
        list.scope = Scope::All;
        list.refresh(&[old.id], vec![old]);
        assert_eq!(list.all.len(), 2);
    }

    #[test]
    fn what_is_meant_is_what_is_selected() {
        let mut list = list(vec![session("a", Status::Active), session("queen", Status::Active), session("c", Status::Active)]);
        assert_eq!(list.meant().len(), 1);
        list.toggle_all();
        assert_eq!(list.meant().len(), 3);
        list.filter = "queen".into();
        list.arrange();
        assert_eq!(list.meant().len(), 1, "what cannot be seen is not meant");
        list.toggle_all();
        assert!(list.selected.is_empty());
    }
}
