//! What lies over a view and takes its keys: questions, lines to type in, the form, the palette, the help.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shared::exec::Language;
use shared::id::SessionId;

use super::App;
use crate::dashboard::event::{Effect, Then};
use crate::dashboard::state::act::Deed;
use crate::dashboard::state::form::{Form, Outcome};
use crate::dashboard::state::output::Output;
use crate::dashboard::state::palette::Palette;
use crate::export::Format;
use crate::keymap::Place;
use crate::line_editor::{Line, Typed};

/// The keys of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpPage {
    pub place: Place,
    /// The first line that is shown.
    pub top: u16,
    /// Only keys and sentences with this text.
    pub find: String,
    /// Keys go into it.
    pub is_finding: bool,
}

impl HelpPage {
    pub fn of(place: Place) -> Self {
        Self { place, top: 0, find: String::new(), is_finding: false }
    }
}

pub enum Overlay {
    Help(HelpPage),
    /// Asks before something that cannot be undone.
    Confirm {
        question: String,
        deed: Deed,
        sessions: Vec<SessionId>,
    },
    Prompt(Prompt),
    New(Box<Form>),
    Palette(Box<Palette>),
}

/// A line that is asked for.
pub struct Prompt {
    pub asks: Asks,
    pub line: Line,
    pub sessions: Vec<SessionId>,
    /// Those, in words.
    pub whom: String,
    /// It was entered and refused.
    pub refused: Option<String>,
    /// Of code that was run before: which one is shown.
    past: Option<usize>,
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Narrows the list, or the page, as it is typed.
    Filter,
    Rename,
    Send,
    Result,
    Error,
    Code(Language),
    File,
}

impl Asks {
    /// What is asked, and about whom if that is said.
    pub fn label(&self, whom: &str) -> String {
        let about = |word: &str| if whom.is_empty() { String::new() } else { format!(" {word} {whom}") };
        match self {
            Self::Filter => "/".into(),
            Self::Rename => format!("new name{}: ", about("of")),
            Self::Send => format!("send{}: ", about("to")),
            Self::Result => format!("result{} (may be empty): ", about("of")),
            Self::Error => format!("what went wrong{}: ", about("with")),
            Self::Code(language) => format!("{language}{}> ", about("in")),
            Self::File => format!("file{}: ", about("for")),
        }
    }

    /// What the keys do, for the line below.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Filter => "enter keeps it · esc takes it away",
            Self::Code(_) => "enter runs · tab: language · ↑ before · esc",
            Self::File => ".cast, .html or .txt · enter · esc",
            _ => "enter · esc",
        }
    }
}

impl Prompt {
    pub fn new(asks: Asks, text: impl Into<String>, sessions: Vec<SessionId>) -> Self {
        Self { asks, line: Line::new(text), sessions, whom: String::new(), refused: None, past: None, error: None }
    }

    pub fn about(self, whom: String) -> Self {
        Self { whom, ..self }
    }
}

impl App {
    pub(super) fn overlay_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match self.overlay.take() {
            // the prefix belongs to what comes after it, not to the help
            Some(Overlay::Help(page)) if page.place == Place::Pane && self.is_prefix(key) => self.pane_key(key),
            Some(Overlay::Help(page)) => {
                self.overlay = self.help_key(page, key).map(Overlay::Help);
                Vec::new()
            }
            Some(Overlay::Confirm { deed, sessions, .. }) => match key.code {
                KeyCode::Char('y' | 'Y') => self.carry_out(&deed, &sessions),
                _ => {
                    self.say("nothing was done");
                    Vec::new()
                }
            },
            Some(Overlay::Prompt(prompt)) => self.prompt_key(prompt, key),
            Some(Overlay::New(form)) => self.form_key(form, key),
            Some(Overlay::Palette(palette)) => self.palette_key(palette, key),
            None => Vec::new(),
        }
    }

    /// The page after a key; nothing if that closes it.
    fn help_key(&self, mut page: HelpPage, key: KeyEvent) -> Option<HelpPage> {
        if page.is_finding {
            match key.code {
                KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => page.find.push(c),
                KeyCode::Backspace => drop(page.find.pop()),
                KeyCode::Enter => page.is_finding = false,
                KeyCode::Esc => (page.is_finding, page.find) = (false, String::new()),
                _ => return Some(page),
            }
            page.top = 0;
            return Some(page);
        }
        let most = crate::dashboard::view::help::overflow(self, &page);
        let height = self.area.height.saturating_sub(3).max(1);
        page.top = match key.code {
            KeyCode::Down | KeyCode::Char('j') => page.top + 1,
            KeyCode::Up | KeyCode::Char('k') => page.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => page.top + height,
            KeyCode::PageUp => page.top.saturating_sub(height),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => most,
            KeyCode::Char('/') => {
                page.is_finding = true;
                0
            }
            KeyCode::Esc if !page.find.is_empty() => {
                page.find.clear();
                0
            }
            // any other key closes it
            _ => return None,
        }
        .min(most);
        Some(page)
    }

    fn palette_key(&mut self, mut palette: Box<Palette>, key: KeyEvent) -> Vec<Effect> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Vec::new(),
            KeyCode::Char('c') if is_control => return Vec::new(),
            KeyCode::Enter => {
                return match palette.chosen() {
                    Some(action) => self.act(action),
                    None => Vec::new(),
                };
            }
            KeyCode::Down | KeyCode::Tab => palette.step(1),
            KeyCode::Up | KeyCode::BackTab => palette.step(-1),
            KeyCode::Char('n') if is_control => palette.step(1),
            KeyCode::Char('p') if is_control => palette.step(-1),
            KeyCode::Backspace if palette.line.is_empty() => return Vec::new(),
            _ => {
                palette.line.key(key);
                palette.find();
            }
        }
        self.overlay = Some(Overlay::Palette(palette));
        Vec::new()
    }

    pub(super) fn form_key(&mut self, mut form: Box<Form>, key: KeyEvent) -> Vec<Effect> {
        let then = match form.key(key) {
            Outcome::Never => return Vec::new(),
            Outcome::More => {
                self.overlay = Some(Overlay::New(form));
                return Vec::new();
            }
            Outcome::Start => Then::Attach,
            Outcome::StartBehind => Then::Stay,
        };
        let asked = form.request(&self.here, self.home.as_deref());
        match asked {
            Ok(new) => {
                // stays until it is known whether it can be done, and asks only once
                form.is_sent = true;
                self.overlay = Some(Overlay::New(form));
                vec![Effect::New(Box::new(new), then)]
            }
            Err(why) => {
                form.error = Some(why);
                self.overlay = Some(Overlay::New(form));
                Vec::new()
            }
        }
    }

    fn prompt_key(&mut self, mut prompt: Prompt, key: KeyEvent) -> Vec<Effect> {
        prompt.error = None;
        match (&prompt.asks, key.code) {
            (Asks::Code(language), KeyCode::Tab) => {
                let at = Language::ALL.iter().position(|one| one == language).unwrap_or(0);
                prompt.asks = Asks::Code(Language::ALL[(at + 1) % Language::ALL.len()]);
            }
            (Asks::Code(_), KeyCode::Up) => self.past_code(&mut prompt, 1),
            (Asks::Code(_), KeyCode::Down) => self.past_code(&mut prompt, -1),
            // the list moves below what is typed
            (Asks::Filter, KeyCode::Up) => self.list.step(-1),
            (Asks::Filter, KeyCode::Down | KeyCode::Tab) => self.list.step(1),
            _ => match prompt.line.typed(key) {
                Typed::Done => return self.prompt_done(prompt),
                Typed::Never => {
                    if prompt.asks == Asks::Filter {
                        self.set_filter("");
                    }
                    return Vec::new();
                }
                Typed::More if prompt.asks == Asks::Filter => {
                    let text = prompt.line.text().to_owned();
                    self.set_filter(&text);
                }
                Typed::More => {}
            },
        }
        self.overlay = Some(Overlay::Prompt(prompt));
        self.place_cursor();
        Vec::new()
    }

    fn past_code(&self, prompt: &mut Prompt, by: isize) {
        let code = &self.kept.code;
        if code.is_empty() {
            return;
        }
        let at = match prompt.past {
            None if by > 0 => Some(0),
            None => None,
            Some(0) if by < 0 => None,
            Some(at) => Some(at.saturating_add_signed(by).min(code.len() - 1)),
        };
        prompt.past = at;
        prompt.line = Line::new(at.map_or("", |at| code[code.len() - 1 - at].as_str()));
    }

    fn prompt_done(&mut self, mut prompt: Prompt) -> Vec<Effect> {
        let text = prompt.line.text().trim().to_owned();
        let missing = |what: &str| format!("{what}, or esc");
        let deed = match &prompt.asks {
            Asks::Filter => return self.remember().into_iter().collect(),
            Asks::Rename if text.is_empty() => Err(missing("type a name")),
            Asks::Rename => Ok(Deed::Rename(text)),
            Asks::Send => Ok(Deed::Send(prompt.line.text().to_owned())),
            Asks::Result => Ok(Deed::Complete(Some(text).filter(|text| !text.is_empty()))),
            Asks::Error if text.is_empty() => Err(missing("say what went wrong")),
            Asks::Error => Ok(Deed::Fail(text)),
            Asks::Code(_) if text.is_empty() => Err(missing("type some code")),
            Asks::Code(language) => return self.run_code(*language, &text, &prompt.sessions),
            Asks::File if text.is_empty() => Err(missing("type a file's name")),
            Asks::File => return self.export(&text, prompt),
        };
        match deed {
            Ok(deed) => {
                let effects = self.carry_out(&deed, &prompt.sessions);
                if !effects.is_empty() {
                    self.line_sent(self.turn, prompt.asks, prompt.line.text(), &prompt.sessions);
                }
                effects
            }
            Err(why) => {
                prompt.error = Some(why);
                self.overlay = Some(Overlay::Prompt(prompt));
                Vec::new()
            }
        }
    }

    fn run_code(&mut self, language: Language, code: &str, sessions: &[SessionId]) -> Vec<Effect> {
        self.kept.note_code(code);
        self.list.selected.clear();
        let mut effects = vec![Effect::Remember(Box::new(self.kept.clone()))];
        self.output = Some(Output::new(self.turn + 1, code));
        for session in sessions {
            let turn = self.next_turn();
            self.line_sent(turn, Asks::Code(language), code, &[*session]);
            effects.push(Effect::Exec { turn, session: *session, language, code: code.to_owned() });
        }
        self.say(format!("runs in {language} …"));
        effects
    }

    fn export(&mut self, file: &str, mut prompt: Prompt) -> Vec<Effect> {
        let Some(session) = prompt.sessions.first().and_then(|id| self.list.get(*id)) else { return Vec::new() };
        let Some(format) = Format::of_file(file) else {
            prompt.error = Some("the name says the format: end it with .cast, .html or .txt".into());
            self.overlay = Some(Overlay::Prompt(prompt));
            return Vec::new();
        };
        if self.exporting.is_some() {
            prompt.error = Some("one file is being written already: wait for it".into());
            self.overlay = Some(Overlay::Prompt(prompt));
            return Vec::new();
        }
        let name = session.id.to_string();
        let path = match (file.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => std::path::Path::new(home).join(rest),
            _ => std::path::Path::new(&self.here).join(file),
        };
        let turn = self.next_turn();
        self.exporting = Some((turn, file.to_owned(), 0));
        self.line_sent(turn, Asks::File, file, &prompt.sessions);
        // entered once more after it was said to be there
        let overwrites = prompt.refused.as_deref() == Some(file);
        vec![Effect::Export { turn, name, format, file: path, overwrites }]
    }

    pub(super) fn paste_into_overlay(&mut self, text: &str) -> Vec<Effect> {
        let mut filter = None;
        match &mut self.overlay {
            Some(Overlay::Prompt(prompt)) => {
                prompt.line.insert(text);
                filter = (prompt.asks == Asks::Filter).then(|| prompt.line.text().to_owned());
            }
            Some(Overlay::New(form)) => form.paste(text),
            Some(Overlay::Palette(palette)) => {
                palette.line.insert(text);
                palette.find();
            }
            Some(Overlay::Help(_) | Overlay::Confirm { .. }) | None => {}
        }
        if let Some(filter) = filter {
            self.set_filter(&filter);
        }
        Vec::new()
    }

    pub(super) fn set_filter(&mut self, text: &str) {
        match self.views.last_mut() {
            Some(super::View::Detail(detail)) => {
                text.clone_into(&mut detail.filter);
                detail.go_to(0);
            }
            _ => {
                text.clone_into(&mut self.list.filter);
                self.list.arrange();
                if !text.is_empty() {
                    self.list.first();
                }
            }
        }
        self.place_cursor();
    }
}
