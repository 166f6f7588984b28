//! Keys of the dashboard: which key means what where, and the words for it. One table serves the keys, the help, the
//! footer, the palette and config.toml. Pure.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use shared::config::{Prefix, Wrong, did_you_mean};

/// Everything a user can ask the dashboard for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    Down,
    Up,
    Left,
    Right,
    PageDown,
    PageUp,
    First,
    Last,
    Open,
    Attach,
    Split,
    Watch,
    Detail,
    Replay,
    New,
    Filter,
    Select,
    SelectAll,
    Sort,
    Reverse,
    OnlyAsks,
    OnlyWorking,
    OnlyIdle,
    OnlyEnded,
    Group,
    Scope,
    Preview,
    Grid,
    Search,
    Stats,
    Messages,
    PauseResume,
    Hibernate,
    Complete,
    Fail,
    Kill,
    Remove,
    Rename,
    Send,
    Exec,
    Output,
    Reset,
    Export,
    Forget,
    Dismiss,
    Undo,
    Refresh,
    NextTab,
    PreviousTab,
    Kinds,
    Cancel,
    Copy,
    Palette,
    Help,
    Back,
    Quit,
}

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    List,
    Grid,
    /// The list, with a terminal beside it.
    Beside,
    /// The terminal beside the list: its keys are the program's, but for those behind the prefix.
    Pane,
    Detail,
    Stats,
    Messages,
    Hits,
}

pub struct Row {
    pub action: Action,
    /// What it is called in config.toml and in the palette.
    pub name: &'static str,
    pub what: &'static str,
    pub keys: &'static [&'static str],
    pub places: &'static [Place],
}

use Place::{Beside, Detail, Grid, Hits, List, Messages, Stats};

const SESSIONS: &[Place] = &[List, Grid, Beside];
const OF_ONE: &[Place] = &[List, Grid, Beside, Detail];
const EVERYWHERE: &[Place] = &[List, Grid, Beside, Detail, Stats, Messages, Hits];
const IN_VIEWS: &[Place] = &[Detail, Stats, Messages, Hits];

macro_rules! rows {
    ($($action:ident $name:literal $what:literal $keys:expr, $places:expr;)*) => {
        &[$(Row { action: Action::$action, name: $name, what: $what, keys: &$keys, places: $places }),*]
    };
}

/// In the order in which the help shows them.
pub const ROWS: &[Row] = rows! {
    Open "open" "attach; of an ended one, play what it recorded" ["enter"], &[List, Grid];
    Open "open" "type into it; of an ended one, play what it recorded" ["enter"], &[Beside];
    Open "open" "play from there; fold and unfold; say all of it" ["enter"], &[Detail];
    Open "open" "play from there" ["enter"], &[Hits];
    Split "split" "type into it, with the list beside it" ["tab"], &[List, Grid];
    Split "split" "close the terminal" ["tab"], &[Beside];
    Watch "watch" "attach, only to watch" ["W"], OF_ONE;
    New "new" "new session" ["n"], SESSIONS;
    Detail "detail" "everything about it: layers, events, commands, context" ["i"], SESSIONS;
    Replay "replay" "play what it recorded" ["r"], OF_ONE;
    Attach "attach" "attach" ["a"], &[Detail];
    Send "send" "type a line into it without attaching" ["s"], OF_ONE;
    Exec "exec" "run code in its bash, python or node" ["!", "e"], OF_ONE;
    Output "output" "show what that code printed" ["o"], OF_ONE;
    PauseResume "pause" "pause, or go on; start a lost one again" ["p"], OF_ONE;
    Hibernate "hibernate" "hibernate: free its memory until it is needed" ["H"], OF_ONE;
    Complete "complete" "say that its task is done" ["c"], OF_ONE;
    Fail "fail" "say that its task has failed" ["f"], OF_ONE;
    Kill "kill" "end its program" ["x"], OF_ONE;
    Remove "remove" "remove an ended one, with its recording" ["D", "delete"], OF_ONE;
    Rename "rename" "rename" ["R", "f2"], OF_ONE;
    Reset "reset" "end it and forget folder and variables" ["Z"], OF_ONE;
    Export "export" "write its recording to a file" ["E"], OF_ONE;
    Forget "forget" "take its recordings away, keep the record" ["F"], OF_ONE;
    Dismiss "dismiss" "dismiss its question without answering" ["d"], OF_ONE;
    Undo "undo" "undo the last change: pause, resume, rename" ["u"], OF_ONE;
    Down "down" "down" ["j", "down"], EVERYWHERE;
    Up "up" "up" ["k", "up"], EVERYWHERE;
    Left "left" "left" ["h", "left"], &[Grid];
    Right "right" "right" ["l", "right"], &[Grid];
    Left "left" "page before" ["h", "left"], &[Detail];
    Right "right" "next page" ["l", "right"], &[Detail];
    PageDown "page-down" "a page down" ["pagedown", "ctrl-d"], EVERYWHERE;
    PageUp "page-up" "a page up" ["pageup", "ctrl-u"], EVERYWHERE;
    First "first" "first" ["g", "home"], EVERYWHERE;
    Last "last" "last" ["G", "end"], EVERYWHERE;
    Filter "filter" "filter as you type" ["/"], OF_ONE;
    Filter "filter" "look for something else" ["/"], &[Hits];
    Select "select" "select, for doing something with several" ["space"], SESSIONS;
    SelectAll "select-all" "select all that are shown, or none" ["A", "ctrl-a"], SESSIONS;
    Sort "sort" "sort by the next column" ["S"], SESSIONS;
    Reverse "reverse" "reverse the order; also a second click on a column" ["O"], SESSIONS;
    OnlyAsks "only-asks" "show only what asks; again: all" ["1"], SESSIONS;
    OnlyWorking "only-working" "show only what works" ["2"], SESSIONS;
    OnlyIdle "only-idle" "show only what is idle" ["3"], SESSIONS;
    OnlyEnded "only-ended" "show only what has ended" ["4"], SESSIONS;
    Group "group" "group by workspace, status, mode or user" ["B"], SESSIONS;
    Scope "scope" "also those that ended long ago" ["L"], SESSIONS;
    Preview "preview" "show or hide the preview" ["v"], &[List];
    Grid "grid" "many live tiles" ["t"], &[List];
    Grid "grid" "the list again" ["t"], &[Grid];
    Grid "grid" "close the terminal and show many live tiles" ["t"], &[Beside];
    Search "search" "search everything that was ever printed, run or told" ["ctrl-s", "F3"], SESSIONS;
    Search "search" "search everything this session printed, ran or told" ["ctrl-s", "F3"], &[Detail];
    Search "search" "search everything that was ever printed, run or told" ["ctrl-s", "F3"], &[Stats, Messages];
    Search "search" "a new search" ["ctrl-s", "F3"], &[Hits];
    Stats "statistics" "statistics" ["T"], &[List, Grid, Beside, Detail, Messages, Hits];
    Messages "messages" "messages" ["m"], &[List, Grid, Beside, Detail, Stats, Hits];
    NextTab "next-tab" "next page" ["tab"], &[Detail];
    PreviousTab "previous-tab" "page before" ["backtab"], &[Detail];
    Kinds "kinds" "which kinds of events; files since when" ["K"], &[Detail];
    Cancel "cancel" "interrupt the call under the cursor" ["C"], &[Detail];
    Copy "copy" "copy its name to the clipboard" ["y"], SESSIONS;
    Copy "copy" "copy this row to the clipboard" ["y"], &[Detail, Messages, Hits];
    Refresh "refresh" "ask the daemon again" ["ctrl-l", "ctrl-r"], EVERYWHERE;
    Palette "palette" "every action, by name" [":", "ctrl-p"], EVERYWHERE;
    Help "help" "these keys" ["?", "f1"], EVERYWHERE;
    Back "back" "out of what is selected, then of the filter" ["esc"], &[List, Grid];
    Back "back" "close the terminal" ["esc"], &[Beside];
    Back "back" "back" ["esc"], IN_VIEWS;
    Quit "quit" "leave; sessions go on" ["q"], SESSIONS;
    Quit "quit" "back" ["q"], IN_VIEWS;
};

/// Subjects of the help, in its order.
const SECTIONS: [&str; 6] = ["Open and start", "Change", "Move", "The list", "Pages and the rest", "After the prefix, and more"];

fn section(action: Action) -> &'static str {
    match action {
        Action::Open | Action::Split | Action::Watch | Action::New | Action::Detail | Action::Replay | Action::Attach => SECTIONS[0],
        Action::Send
        | Action::Exec
        | Action::Output
        | Action::PauseResume
        | Action::Hibernate
        | Action::Complete
        | Action::Fail
        | Action::Kill
        | Action::Remove
        | Action::Rename
        | Action::Reset
        | Action::Export
        | Action::Forget
        | Action::Dismiss
        | Action::Undo
        | Action::Cancel
        | Action::Copy => SECTIONS[1],
        Action::Down
        | Action::Up
        | Action::Left
        | Action::Right
        | Action::PageDown
        | Action::PageUp
        | Action::First
        | Action::Last
        | Action::NextTab
        | Action::PreviousTab => SECTIONS[2],
        Action::Filter
        | Action::Select
        | Action::SelectAll
        | Action::Sort
        | Action::Reverse
        | Action::OnlyAsks
        | Action::OnlyWorking
        | Action::OnlyIdle
        | Action::OnlyEnded
        | Action::Group
        | Action::Scope
        | Action::Preview
        | Action::Grid
        | Action::Kinds => SECTIONS[3],
        Action::Search
        | Action::Stats
        | Action::Messages
        | Action::Refresh
        | Action::Palette
        | Action::Help
        | Action::Back
        | Action::Quit => SECTIONS[4],
    }
}

/// Keys behind the prefix, of the terminal beside the list; the empty one is the prefix itself.
const PREFIXED: &[(&str, &str)] = &[
    ("d", "to the list; also esc, tab, ←"),
    ("n", "next session"),
    ("p", "previous session"),
    ("z", "the whole window; also enter"),
    ("[", "look back: what scrolled away, and before; also pgup"),
    ("t", "take control"),
    ("x", "close it; also q"),
    ("", "type the key itself"),
    ("?", "these keys"),
];

/// Those of a session that has the whole window, which the daemon or the attached client reads.
const ATTACHED: &[(&str, &str)] = &[
    ("d", "in a session: back here"),
    ("n", "in a session: the next one"),
    ("p", "in a session: the one before"),
    ("[", "in a session: look back"),
    ("t", "in a session: take control"),
    ("?", "in a session: its keys"),
];

/// Keys of a search that have no action.
const OF_HITS: &[(&str, &str)] =
    &[("alt-r", "regular expression, or plain text"), ("alt-c", "exact case, or any"), ("alt-s", "in all sessions, not only in one")];

/// A key as people write it: `j`, `ctrl-d`, `enter`, `f2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Key {
    pub fn parse(text: &str) -> Option<Self> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        loop {
            let lower = rest.to_ascii_lowercase();
            let (found, length) = match lower.as_str() {
                word if word.starts_with("ctrl-") && word.len() > 5 => (KeyModifiers::CONTROL, 5),
                word if word.starts_with("c-") && word.len() > 2 => (KeyModifiers::CONTROL, 2),
                word if word.starts_with("alt-") && word.len() > 4 => (KeyModifiers::ALT, 4),
                word if word.starts_with("m-") && word.len() > 2 => (KeyModifiers::ALT, 2),
                word if word.starts_with("shift-") && word.len() > 6 => (KeyModifiers::SHIFT, 6),
                _ => break,
            };
            modifiers |= found;
            rest = &rest[length..];
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => named(&rest.to_ascii_lowercase())?,
        };
        Some(Self { code, modifiers }.plain())
    }

    /// Terminals tell of shift in two ways; for characters it is in the character.
    fn plain(mut self) -> Self {
        match self.code {
            KeyCode::Char(c) => {
                if self.modifiers.contains(KeyModifiers::SHIFT) && c.is_ascii_lowercase() {
                    self.code = KeyCode::Char(c.to_ascii_uppercase());
                }
                self.modifiers.remove(KeyModifiers::SHIFT);
                if self.modifiers.contains(KeyModifiers::CONTROL)
                    && let KeyCode::Char(c) = self.code
                {
                    self.code = KeyCode::Char(c.to_ascii_lowercase());
                }
            }
            KeyCode::BackTab => self.modifiers.remove(KeyModifiers::SHIFT),
            KeyCode::Tab if self.modifiers.contains(KeyModifiers::SHIFT) => {
                self.code = KeyCode::BackTab;
                self.modifiers.remove(KeyModifiers::SHIFT);
            }
            _ => {}
        }
        self
    }
}

impl From<KeyEvent> for Key {
    fn from(key: KeyEvent) -> Self {
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        Self { code: key.code, modifiers: key.modifiers & known }.plain()
    }
}

#[cfg(test)]
impl From<Key> for KeyEvent {
    fn from(key: Key) -> Self {
        Self::new(key.code, key.modifiers)
    }
}

fn named(name: &str) -> Option<KeyCode> {
    if let Some(number) = name.strip_prefix('f').and_then(|rest| rest.parse::<u8>().ok()) {
        return (1..=12).contains(&number).then_some(KeyCode::F(number));
    }
    Some(match name {
        "enter" | "return" => KeyCode::Enter,
        "esc" | "escape" => KeyCode::Esc,
        "space" => KeyCode::Char(' '),
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" | "pgup" => KeyCode::PageUp,
        "pagedown" | "pgdn" => KeyCode::PageDown,
        _ => return None,
    })
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, text) in [(KeyModifiers::CONTROL, "ctrl-"), (KeyModifiers::ALT, "alt-"), (KeyModifiers::SHIFT, "shift-")] {
            if self.modifiers.contains(modifier) {
                f.write_str(text)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("space"),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            KeyCode::Up => f.write_str("↑"),
            KeyCode::Down => f.write_str("↓"),
            KeyCode::Left => f.write_str("←"),
            KeyCode::Right => f.write_str("→"),
            KeyCode::PageUp => f.write_str("pgup"),
            KeyCode::PageDown => f.write_str("pgdn"),
            KeyCode::BackTab => f.write_str("shift-tab"),
            other => f.write_str(&format!("{other:?}").to_lowercase()),
        }
    }
}

/// Whether an action can be asked for somewhere where this row can.
fn meets(row: &Row, name: &str) -> bool {
    ROWS.iter().any(|other| other.name == name && other.places.iter().any(|place| row.places.contains(place)))
}

/// Whether two actions can be asked for in the same place.
fn meet(one: &str, other: &str) -> bool {
    ROWS.iter().any(|row| row.name == one && meets(row, other))
}

/// The table with the user's own keys in it.
#[derive(Clone, Debug)]
pub struct Keymap {
    /// For each row of the table.
    keys: Vec<Vec<Key>>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self { keys: ROWS.iter().map(|row| row.keys.iter().filter_map(|key| Key::parse(key)).collect()).collect() }
    }
}

impl Keymap {
    /// The user's keys take the place of the usual ones of that action, and win where two actions have the same. What makes
    /// no sense is said, and the rest is used.
    pub fn with(wishes: &BTreeMap<String, Vec<String>>) -> (Self, Vec<Wrong>) {
        let mut map = Self::default();
        let mut complaints = Vec::new();
        let mut wished: Vec<(&str, Key)> = Vec::new();
        for (name, keys) in wishes {
            if !ROWS.iter().any(|row| row.name == name) {
                let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                names.dedup();
                let path = ["keys", "dashboard", name].map(str::to_owned).to_vec();
                complaints.push(Wrong { path, reason: format!("this is not an action: {}", did_you_mean(name, names.into_iter())) });
                continue;
            }
            let mut parsed = Vec::new();
            for key in keys {
                match Key::parse(key) {
                    Some(key) => {
                        let same = wished.iter().find(|(other, known)| *known == key && other != name && meet(other, name));
                        if let Some((other, _)) = same {
                            let reason = format!("{key} is also the key of {other:?}, in the same place");
                            complaints.push(Wrong::new(&format!("keys.dashboard.{name}"), reason));
                        }
                        wished.push((name, key));
                        parsed.push(key);
                    }
                    None => complaints.push(Wrong::new(&format!("keys.dashboard.{name}"), format!("{key:?} is not a key"))),
                }
            }
            for (row, present) in ROWS.iter().zip(&mut map.keys) {
                if row.name == name {
                    present.clone_from(&parsed);
                }
            }
            // taken from whoever had them in the same place
            for (index, row) in ROWS.iter().enumerate() {
                if row.name != name && !wishes.contains_key(row.name) && meets(row, name) {
                    map.keys[index].retain(|key| !parsed.contains(key));
                }
            }
        }
        (map, complaints)
    }

    pub fn action(&self, place: Place, key: KeyEvent) -> Option<Action> {
        let key = Key::from(key);
        let found = ROWS.iter().zip(&self.keys).find(|(row, keys)| row.places.contains(&place) && keys.contains(&key));
        found.map(|(row, _)| row.action)
    }

    /// The key to name for an action, if it has one there.
    pub fn key(&self, place: Place, action: Action) -> Option<Key> {
        let found = ROWS.iter().zip(&self.keys).find(|(row, _)| row.action == action && row.places.contains(&place));
        found.and_then(|(_, keys)| keys.first().copied())
    }

    /// How to do something, for a sentence: its key, or its name in the palette if it has none.
    pub fn hint(&self, place: Place, action: Action) -> String {
        if let Some(key) = self.key(place, action) {
            return key.to_string();
        }
        let name = ROWS.iter().find(|row| row.action == action).map_or("", |row| row.name);
        let palette = self.key(place, Action::Palette).map(|key| key.to_string());
        palette.map_or_else(|| name.to_owned(), |palette| format!("{palette}{name}"))
    }

    /// Keys and what they do, of a place.
    pub fn help(&self, place: Place, prefix: Prefix) -> Vec<(String, &'static str)> {
        let rows = ROWS.iter().zip(&self.keys).filter(|(row, keys)| row.places.contains(&place) && !keys.is_empty());
        let own = rows.map(|(row, keys)| (keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), row.what));
        let label = prefix.label();
        let behind = |(key, what): &(&str, &'static str)| (format!("{label} {}", if key.is_empty() { &label } else { *key }), *what);
        let more: Vec<(String, &'static str)> = match place {
            Place::Pane | Place::Beside => PREFIXED.iter().map(behind).collect(),
            Place::List | Place::Grid => ATTACHED.iter().map(behind).collect(),
            Place::Hits => OF_HITS.iter().map(|(key, what)| ((*key).to_owned(), *what)).collect(),
            Place::Detail | Place::Stats | Place::Messages => Vec::new(),
        };
        own.chain(more).collect()
    }

    /// As `help`, by subject.
    pub fn sections(&self, place: Place, prefix: Prefix) -> Vec<(&'static str, Vec<(String, &'static str)>)> {
        let mut sections: Vec<(&'static str, Vec<(String, &'static str)>)> = SECTIONS.iter().map(|title| (*title, Vec::new())).collect();
        let rows = ROWS.iter().zip(&self.keys).filter(|(row, keys)| row.places.contains(&place) && !keys.is_empty());
        let titles = rows.map(|(row, _)| section(row.action)).chain(std::iter::repeat("After the prefix, and more"));
        for (title, row) in titles.zip(self.help(place, prefix)) {
            if let Some((_, rows)) = sections.iter_mut().find(|(known, _)| *known == title) {
                rows.push(row);
            }
        }
        sections.retain(|(_, rows)| !rows.is_empty());
        sections
    }

    /// Every action of a place, for the palette.
    pub fn actions(&self, place: Place) -> Vec<(&'static Row, Option<Key>)> {
        let rows = ROWS.iter().zip(&self.keys).filter(|(row, _)| row.places.contains(&place));
        rows.map(|(row, keys)| (row, keys.first().copied())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Place::Pane;

    fn press(text: &str) -> KeyEvent {
        Key::parse(text).expect(text).into()
    }

    #[test]
    fn every_key_of_the_table_is_one_and_means_one_thing() {
        let map = Keymap::default();
        for place in EVERYWHERE {
            let mut seen: BTreeMap<String, &str> = BTreeMap::new();
            for row in ROWS.iter().filter(|row| row.places.contains(place)) {
                for key in row.keys {
                    let parsed = Key::parse(key).unwrap_or_else(|| panic!("{key} is a key"));
                    let other = seen.insert(parsed.to_string(), row.name);
                    assert!(other.is_none(), "{key} means {other:?} and {} in {place:?}", row.name);
                    assert_eq!(map.action(*place, press(key)), Some(row.action));
                }
            }
        }
    }

    #[test]
    fn help_is_of_its_place_and_names_the_prefix() {
        let map = Keymap::default();
        let prefix = Prefix::default();
        let says =
            |place, key: &str| map.help(place, prefix).into_iter().find(|(keys, _)| keys.split(' ').next() == Some(key) || keys == key);
        for (place, key, expected) in [
            (List, "tab", Some("type into it, with the list beside it")),
            (Beside, "tab", Some("close the terminal")),
            (Beside, "enter", Some("type into it; of an ended one, play what it recorded")),
            (Stats, "tab", None),
            (Stats, "y", None),
            (Stats, "q", Some("back")),
            (List, "q", Some("leave; sessions go on")),
            (Pane, "ctrl-b d", Some("to the list; also esc, tab, ←")),
            (Beside, "ctrl-b [", Some("look back: what scrolled away, and before; also pgup")),
            (Pane, "ctrl-b ctrl-b", Some("type the key itself")),
            (List, "ctrl-b d", Some("in a session: back here")),
            (Hits, "alt-r", Some("regular expression, or plain text")),
        ] {
            assert_eq!(says(place, key).map(|(_, what)| what), expected, "{key} in {place:?}");
        }
    }

    #[test]
    fn sentences_name_the_keys_that_are_set() {
        let wishes = BTreeMap::from([("kill".to_owned(), vec!["ctrl-k".to_owned()]), ("remove".to_owned(), vec![])]);
        let (map, complaints) = Keymap::with(&wishes);
        assert!(complaints.is_empty(), "{complaints:?}");
        assert_eq!(map.hint(List, Action::Kill), "ctrl-k");
        assert_eq!(map.hint(List, Action::Remove), ":remove", "without a key, by name");
    }

    #[test]
    fn one_key_for_two_actions_in_the_same_place_is_a_mistake() {
        for (one, other, mistakes) in [("kill", "rename", 1), ("kill", "kinds", 1), ("next-tab", "split", 0), ("left", "new", 1)] {
            let wishes = [one, other].map(|name| (name.to_owned(), vec!["X".to_owned()]));
            let complaints = Keymap::with(&BTreeMap::from(wishes)).1;
            assert_eq!(complaints.len(), mistakes, "{one} and {other}: {complaints:?}");
        }
    }

    #[test]
    fn shift_is_in_the_character() {
        let map = Keymap::default();
        let shifted = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(map.action(List, shifted), Some(Action::Last));
        assert_eq!(map.action(Detail, KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT)), Some(Action::PreviousTab));
        assert_eq!(Key::parse("C-S"), Key::parse("ctrl-s"));
    }

    #[test]
    fn the_users_keys_win_and_mistakes_are_said() {
        let wishes = BTreeMap::from([
            ("kill".to_owned(), vec!["p".to_owned(), "ctrl-k".to_owned()]),
            ("kil".to_owned(), vec!["x".to_owned()]),
            ("rename".to_owned(), vec!["hyper-x".to_owned()]),
        ]);
        let (map, complaints) = Keymap::with(&wishes);
        assert_eq!(map.action(List, press("p")), Some(Action::Kill));
        assert_eq!(map.action(List, press("x")), None);
        assert_eq!(map.key(List, Action::PauseResume), None, "its key was taken");
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].reason.contains("did you mean \"kill\"?"), "{complaints:?}");
    }
}
