//! The form for a new session: what to run, where, for what. Recent ones can be taken again. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shared::message::NewSession;
use shared::session::Session;
use shared::text::shell_words;

use crate::line_editor::Line;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Recent,
    Command,
    Name,
    Workspace,
    Task,
    Mode,
    Budget,
    Group,
}

impl Field {
    pub const ALL: [Self; 8] =
        [Self::Recent, Self::Command, Self::Name, Self::Workspace, Self::Task, Self::Mode, Self::Budget, Self::Group];

    pub fn label(self) -> &'static str {
        match self {
            Self::Recent => "recent",
            Self::Command => "command",
            Self::Name => "name",
            Self::Workspace => "workspace",
            Self::Task => "task",
            Self::Mode => "mode",
            Self::Budget => "iterations",
            Self::Group => "group",
        }
    }

    /// What an empty field means.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Recent => "← → takes one you had before",
            Self::Command => "your shell",
            Self::Name => "made from the workspace",
            Self::Workspace => "this folder",
            Self::Task => "what it is for, in words",
            Self::Mode => "a word of yours: developer, review, …",
            Self::Budget => "50",
            Self::Group => "none; a full group makes it wait",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Recent {
    command: String,
    workspace: String,
    task: String,
    mode: String,
}

#[derive(Clone, Debug)]
pub struct Form {
    lines: [Line; Field::ALL.len()],
    pub focus: Field,
    recent: Vec<Recent>,
    chosen: Option<usize>,
    pub error: Option<String>,
    /// It was asked for; whether it can be had is not known yet.
    pub is_sent: bool,
}

/// What a key has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    More,
    Never,
    Start,
    StartBehind,
}

/// Recent ones that are offered.
const MOST_RECENT: usize = 20;

impl Form {
    /// Recent ones come from what the list has, newest first.
    pub fn new<'a>(sessions: impl Iterator<Item = &'a Session>) -> Self {
        let mut sessions: Vec<&Session> = sessions.filter(|session| !session.command.is_empty()).collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.number));
        let mut recent = Vec::new();
        for session in sessions {
            let one = Recent {
                command: command_line(&session.command),
                workspace: session.workspace.clone(),
                task: session.task.clone().unwrap_or_default(),
                mode: session.mode.clone().unwrap_or_default(),
            };
            if !recent.contains(&one) && recent.len() < MOST_RECENT {
                recent.push(one);
            }
        }
        Self { lines: Default::default(), focus: Field::Command, recent, chosen: None, error: None, is_sent: false }
    }

    fn at(field: Field) -> usize {
        Field::ALL.iter().position(|one| *one == field).unwrap_or(0)
    }

    pub fn line(&self, field: Field) -> &Line {
        &self.lines[Self::at(field)]
    }

    fn line_mut(&mut self, field: Field) -> &mut Line {
        &mut self.lines[Self::at(field)]
    }

    /// The recent one that was taken, of how many.
    pub fn recent(&self) -> (Option<usize>, usize) {
        (self.chosen, self.recent.len())
    }

    pub fn paste(&mut self, text: &str) {
        if self.focus != Field::Recent {
            let focus = self.focus;
            self.line_mut(focus).insert(text);
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        self.error = None;
        match key.code {
            KeyCode::Esc => return Outcome::Never,
            KeyCode::Char('c') if is_control => return Outcome::Never,
            _ if self.is_sent => return Outcome::More,
            KeyCode::Char('s') if is_control => return Outcome::StartBehind,
            KeyCode::Enter => return Outcome::Start,
            KeyCode::Tab | KeyCode::Down => self.step(1),
            KeyCode::BackTab | KeyCode::Up => self.step(-1),
            KeyCode::Char('n') if is_control => self.take_recent(1),
            KeyCode::Char('p') if is_control => self.take_recent(-1),
            KeyCode::Right | KeyCode::Char('l' | ' ') if self.focus == Field::Recent => self.take_recent(1),
            KeyCode::Left | KeyCode::Char('h') if self.focus == Field::Recent => self.take_recent(-1),
            _ if self.focus == Field::Recent => {}
            _ => {
                let focus = self.focus;
                self.line_mut(focus).key(key);
            }
        }
        Outcome::More
    }

    pub fn step(&mut self, by: isize) {
        let count = Field::ALL.len().cast_signed();
        let at = (Self::at(self.focus).cast_signed() + by).rem_euclid(count);
        self.focus = Field::ALL[at.unsigned_abs()];
    }

    pub fn take_recent(&mut self, by: isize) {
        let count = self.recent.len();
        if count == 0 {
            return;
        }
        let at = match self.chosen {
            None if by > 0 => 0,
            None => count - 1,
            Some(at) => (at.cast_signed() + by).rem_euclid(count.cast_signed()).unsigned_abs(),
        };
        self.chosen = Some(at);
        let one = self.recent[at].clone();
        for (field, text) in
            [(Field::Command, one.command), (Field::Workspace, one.workspace), (Field::Task, one.task), (Field::Mode, one.mode)]
        {
            *self.line_mut(field) = Line::new(text);
        }
    }

    /// What is asked for; `home` is what `~` means.
    pub fn request(&self, here: &str, home: Option<&str>) -> Result<NewSession, String> {
        let text = |field: Field| Some(self.line(field).text().trim().to_owned()).filter(|text| !text.is_empty());
        let max_iterations = match text(Field::Budget) {
            Some(number) => {
                let number = number.parse::<u64>().ok().filter(|number| *number > 0);
                Some(number.ok_or("iterations: a number above 0")?)
            }
            None => None,
        };
        let workspace = text(Field::Workspace).map(|path| match (path.strip_prefix('~'), home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ if path.starts_with('/') => path,
            _ => format!("{here}/{path}"),
        });
        Ok(NewSession {
            name: text(Field::Name),
            here: here.to_owned(),
            workspace,
            argv: text(Field::Command).map(|line| words(&line)).unwrap_or_default(),
            task: text(Field::Task),
            mode: text(Field::Mode),
            max_iterations,
            group: text(Field::Group),
            must_start: true,
            ..NewSession::default()
        })
    }
}

/// A command as it was typed, or could have been.
fn command_line(argv: &[String]) -> String {
    match argv {
        [shell, flag, line] if shell == "sh" && flag == "-c" => line.clone(),
        _ => shell_words(argv),
    }
}

/// Plain words are a program and its arguments; anything a shell has to understand is for a shell.
fn words(line: &str) -> Vec<String> {
    let needs_shell = line.chars().any(|c| "|&;<>$`*?(){}[]~#!'\"\\\n".contains(c))
        || line.split_whitespace().next().is_some_and(|word| word.contains('='));
    if needs_shell {
        return vec!["sh".into(), "-c".into(), line.to_owned()];
    }
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::state::tests::session;
    use shared::session::Status;

    fn typed(form: &mut Form, text: &str) {
        for c in text.chars() {
            form.key(KeyEvent::from(KeyCode::Char(c)));
        }
    }

    #[test]
    fn what_is_typed_is_asked_for() {
        let mut form = Form::new(std::iter::empty());
        typed(&mut form, "npm run dev");
        form.key(KeyEvent::from(KeyCode::Tab));
        typed(&mut form, "api");
        form.key(KeyEvent::from(KeyCode::Tab));
        typed(&mut form, "~/src");
        let new = form.request("/here", Some("/home/me")).expect("fine");
        assert_eq!((new.argv.len(), new.name.as_deref(), new.workspace.as_deref()), (3, Some("api"), Some("/home/me/src")));
        assert_eq!(words("make && ./run"), ["sh", "-c", "make && ./run"]);
        assert_eq!(words("CI=1 make"), ["sh", "-c", "CI=1 make"]);
        form.focus = Field::Budget;
        typed(&mut form, "many");
        assert!(form.request("/here", None).is_err());
        assert_eq!(form.key(KeyEvent::from(KeyCode::Enter)), Outcome::Start);
        assert_eq!(form.key(KeyEvent::from(KeyCode::Esc)), Outcome::Never);
    }

    #[test]
    fn recent_ones_can_be_taken_again() {
        let mut old = session("old", Status::Completed);
        old.command = vec!["sh".into(), "-c".into(), "make && make test".into()];
        let mut new = session("new", Status::Active);
        new.number = 9;
        new.task = Some("Fix it".into());
        let mut form = Form::new([&old, &new, &old].into_iter());
        assert_eq!(form.recent(), (None, 2));
        form.focus = Field::Recent;
        form.key(KeyEvent::from(KeyCode::Right));
        assert_eq!((form.line(Field::Command).text(), form.line(Field::Task).text()), ("bash", "Fix it"), "the newest first");
        form.key(KeyEvent::from(KeyCode::Right));
        assert_eq!(form.line(Field::Command).text(), "make && make test");
        let asked = form.request("/", None).expect("fine");
        assert_eq!(asked.argv, old.command);
    }
}
