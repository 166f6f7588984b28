//! The dashboard's state and its pure update: events in, effects out. No I/O, no clock, no drawing.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use shared::session::Session;

use crate::event::{Effect, Event};

#[derive(Debug, Default)]
pub struct App {
    pub sessions: Vec<Session>,
    pub selected: usize,
    pub overlay: Option<Overlay>,
    pub message: Option<Message>,
    pub has_loaded: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Overlay {
    Help,
    /// Asks before something that cannot be undone.
    Confirm {
        question: String,
        name: String,
        deed: Deed,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Kill,
    Remove,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    Said(String),
    Failed(String),
}

impl App {
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => vec![],
            Event::Key(key) => self.key(key),
            Event::Resized => vec![],
            Event::News => vec![Effect::Refresh],
            Event::Sessions(sessions) => {
                self.show(sessions);
                vec![]
            }
            Event::Failed(why) => {
                self.message = Some(Message::Failed(why));
                vec![]
            }
            Event::Said(what) => {
                self.message = Some(Message::Said(what));
                vec![]
            }
        }
    }

    pub fn selection(&self) -> Option<&Session> {
        self.sessions.get(self.selected)
    }

    /// The new list, with the cursor on the session it was on.
    fn show(&mut self, sessions: Vec<Session>) {
        let before = self.selection().map(|session| session.id);
        self.sessions = sessions;
        // those that run first, in their order; then those that ended, the latest first
        self.sessions.sort_by_key(|session| (session.status.has_ended(), session.ended_at.map(|at| -at.as_microsecond())));
        self.has_loaded = true;
        let same = before.and_then(|id| self.sessions.iter().position(|session| session.id == id));
        self.selected = same.unwrap_or(self.selected).min(self.sessions.len().saturating_sub(1));
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return vec![Effect::Quit];
        }
        match self.overlay.take() {
            // any key closes the help
            Some(Overlay::Help) => return vec![],
            Some(Overlay::Confirm { name, deed, .. }) => {
                return match key.code {
                    KeyCode::Char('y' | 'Y') if deed == Deed::Kill => vec![Effect::Kill(name)],
                    KeyCode::Char('y' | 'Y') => vec![Effect::Remove(name)],
                    _ => vec![],
                };
            }
            None => {}
        }
        self.message = None;
        let last = self.sessions.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return vec![Effect::Quit],
            KeyCode::Char('?') => self.overlay = Some(Overlay::Help),
            KeyCode::Char('j') | KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('g') | KeyCode::Home => self.selected = 0,
            KeyCode::Char('G') | KeyCode::End => self.selected = last,
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::Char('r') => return vec![Effect::Refresh],
            KeyCode::Char('n') => return vec![Effect::New],
            KeyCode::Enter => {
                if let Some(session) = self.selection() {
                    let id = session.id.to_string();
                    return vec![if session.status.has_ended() { Effect::Replay(id) } else { Effect::Attach(id) }];
                }
            }
            KeyCode::Char('p') => return self.selection().map(|session| Effect::Replay(session.id.to_string())).into_iter().collect(),
            KeyCode::Char('x') => self.ask(Deed::Kill),
            KeyCode::Char('D') => self.ask(Deed::Remove),
            _ => {}
        }
        vec![]
    }

    fn ask(&mut self, deed: Deed) {
        let Some(session) = self.selection() else { return };
        let name = shared::text::visible(&session.name);
        let refusal = match (deed, session.status.has_ended()) {
            (Deed::Kill, true) => Some(format!("{name} has ended already; D removes it")),
            (Deed::Remove, false) => Some(format!("{name} is running; x ends it first")),
            _ => None,
        };
        if let Some(text) = refusal {
            self.message = Some(Message::Said(text));
            return;
        }
        let question = match deed {
            Deed::Kill => format!("End {name}? y ends it, any other key does not"),
            Deed::Remove => format!("Remove {name} and its recording for good? y removes it"),
        };
        self.overlay = Some(Overlay::Confirm { question, name: session.id.to_string(), deed });
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use shared::id::{SessionId, ThreadId};
    use shared::session::Status;

    pub fn session(name: &str, status: Status) -> Session {
        let at = jiff::Timestamp::UNIX_EPOCH;
        Session {
            id: SessionId::new(),
            thread: ThreadId::new(),
            name: name.into(),
            workspace: "/src".into(),
            user: None,
            channel: None,
            mode: None,
            task: None,
            status,
            status_reason: None,
            created_at: at,
            updated_at: at,
            last_activity_at: at,
            started_at: None,
            ended_at: None,
            iterations: 0,
            max_iterations: 50,
            context: serde_json::Value::Null,
            result: None,
            error: None,
            metadata: serde_json::Value::Null,
            policy: shared::policy::Policy::default(),
            group: None,
            queue_place: None,
            task_count: 1,
            command: vec!["bash".into()],
            runtime: None,
            runtime_state: None,
            size: None,
            languages: Vec::new(),
            clients: 0,
            needs: None,
        }
    }

    fn press(app: &mut App, code: KeyCode) -> Vec<Effect> {
        app.update(Event::Key(KeyEvent::from(code)))
    }

    #[test]
    fn keys_move_act_and_leave() {
        let mut app = App::default();
        let list = vec![session("a", Status::Active), session("b", Status::Completed)];
        let (first, ended) = (list[0].id.to_string(), list[1].id.to_string());
        app.update(Event::Sessions(list));
        assert_eq!(press(&mut app, KeyCode::Enter), vec![Effect::Attach(first.clone())]);
        press(&mut app, KeyCode::Char('j'));
        press(&mut app, KeyCode::Char('j'));
        assert_eq!(app.selected, 1);
        assert_eq!(press(&mut app, KeyCode::Enter), vec![Effect::Replay(ended)], "an ended session is not attached to");
        press(&mut app, KeyCode::Char('k'));
        assert_eq!(press(&mut app, KeyCode::Char('p')), vec![Effect::Replay(first.clone())]);
        assert_eq!(press(&mut app, KeyCode::Char('x')), vec![]);
        assert_eq!(press(&mut app, KeyCode::Char('n')), vec![], "n is no");
        press(&mut app, KeyCode::Char('x'));
        assert_eq!(press(&mut app, KeyCode::Char('y')), vec![Effect::Kill(first)]);
        press(&mut app, KeyCode::Char('?'));
        assert_eq!(press(&mut app, KeyCode::Char('q')), vec![], "q closes the help first");
        assert_eq!(press(&mut app, KeyCode::Char('q')), vec![Effect::Quit]);
    }

    #[test]
    fn the_cursor_stays_on_its_session() {
        let mut app = App::default();
        let (a, b) = (session("a", Status::Active), session("b", Status::Active));
        app.update(Event::Sessions(vec![a.clone(), b.clone()]));
        press(&mut app, KeyCode::Down);
        app.update(Event::Sessions(vec![session("new", Status::Active), a, b]));
        assert_eq!(app.selection().map(|s| s.name.as_str()), Some("b"));
        app.update(Event::Sessions(vec![]));
        assert_eq!(press(&mut app, KeyCode::Enter), vec![]);
    }

    #[test]
    fn those_that_run_come_first() {
        let mut app = App::default();
        let (mut old, mut new) = (session("old", Status::Failed), session("new", Status::Completed));
        old.ended_at = Some(jiff::Timestamp::UNIX_EPOCH);
        new.ended_at = Some(jiff::Timestamp::from_second(9).expect("a time"));
        app.update(Event::Sessions(vec![old, session("one", Status::Active), new, session("two", Status::Paused)]));
        let names: Vec<&str> = app.sessions.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "new", "old"]);
    }
}
