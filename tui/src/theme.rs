//! Colours by what they mean. Pure: what the terminal and the user want comes in as arguments.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use shared::attention::Attention;
use shared::config::{Wrong, did_you_mean};
use shared::session::Status;

use crate::background::Background;

#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    pub text: Style,
    pub dim: Style,
    pub strong: Style,
    /// What is ours: the name of the product, the selected tab.
    pub accent: Style,
    pub good: Style,
    pub warn: Style,
    pub bad: Style,
    pub note: Style,
    /// The row under the cursor.
    pub cursor: Style,
    /// A row that is selected.
    pub selected: Style,
    pub border: Style,
    pub focus: Style,
    pub banner: Style,
    /// What a filter or a search has found.
    pub found: Style,
    /// Whether the cursor's style replaces the colours of what is on its row.
    pub is_plain: bool,
    /// Whether the terminal shows any: else not even programs have them here.
    pub has_colours: bool,
}

pub const NAMES: [&str; 5] = ["dark", "light", "contrast", "16", "none"];

/// What the environment says about colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    None,
    Sixteen,
    Many,
}

impl Colours {
    /// `NO_COLOR` set to anything wins, as its page asks.
    pub fn of(no_color: bool, term: &str, colorterm: &str) -> Self {
        if no_color || term.is_empty() || term == "dumb" || term.starts_with("vt1") || term.starts_with("vt2") || term.ends_with("-m") {
            return Self::None;
        }
        if colorterm.contains("truecolor")
            || colorterm.contains("24bit")
            || term.contains("256")
            || term.contains("kitty")
            || term.contains("ghostty")
        {
            return Self::Many;
        }
        Self::Sixteen
    }
}

impl Theme {
    /// The theme of the settings, as far as the terminal can show it, and what is wrong with the settings.
    pub fn new(name: Option<&str>, own: &BTreeMap<String, String>, colours: Colours, background: Background) -> (Self, Vec<Wrong>) {
        let complaints = Self::wrong(name, own);
        let mut theme = match (name, colours) {
            (_, Colours::None) => return (Self { has_colours: false, ..Self::none() }, complaints),
            (Some("none"), _) => return (Self::none(), complaints),
            (Some("light"), _) => Self::light(),
            (None, Colours::Many) if background == Background::Light => Self::light(),
            (Some("contrast"), _) => Self::contrast(),
            (Some("16"), _) | (None, Colours::Sixteen) => Self::sixteen(),
            (Some(_), _) | (None, Colours::Many) => Self::dark(),
        };
        for (role, text) in own {
            if let (Some(style), Ok(colour)) = (theme.role(role), text.parse::<Color>()) {
                *style = style.fg(colour);
            }
        }
        (theme, complaints)
    }

    /// What is wrong with the settings, whether or not this terminal can show them.
    fn wrong(name: Option<&str>, own: &BTreeMap<String, String>) -> Vec<Wrong> {
        let mut complaints = Vec::new();
        if let Some(name) = name.filter(|name| !NAMES.contains(name)) {
            complaints.push(Wrong::new("theme.name", format!("{name:?} is not known: {}", did_you_mean(name, NAMES.into_iter()))));
        }
        for (role, text) in own {
            let reason = if !ROLES.contains(&role.as_str()) {
                format!("this is not known: {}", did_you_mean(role, ROLES.into_iter().chain(["name"])))
            } else if text.parse::<Color>().is_err() {
                format!("{text:?} is not a colour: write it as \"#ff8800\", \"cyan\" or \"208\"")
            } else {
                continue;
            };
            complaints.push(Wrong { path: vec!["theme".to_owned(), role.clone()], reason });
        }
        complaints
    }

    fn role(&mut self, name: &str) -> Option<&mut Style> {
        Some(match name {
            "text" => &mut self.text,
            "dim" => &mut self.dim,
            "strong" => &mut self.strong,
            "accent" => &mut self.accent,
            "good" => &mut self.good,
            "warn" => &mut self.warn,
            "bad" => &mut self.bad,
            "note" => &mut self.note,
            "border" => &mut self.border,
            "focus" => &mut self.focus,
            _ => return None,
        })
    }

    /// Made for a dark background; the background itself stays the terminal's.
    pub fn dark() -> Self {
        let rgb = Color::Indexed;
        Self {
            text: Style::new(),
            dim: Style::new().fg(rgb(249)),
            strong: Style::new().add_modifier(Modifier::BOLD),
            accent: Style::new().fg(rgb(117)).add_modifier(Modifier::BOLD),
            good: Style::new().fg(rgb(114)),
            warn: Style::new().fg(rgb(221)),
            bad: Style::new().fg(rgb(210)),
            note: Style::new().fg(rgb(80)),
            cursor: Style::new().bg(rgb(237)),
            selected: Style::new().bg(rgb(17)),
            border: Style::new().fg(rgb(240)),
            focus: Style::new().fg(rgb(117)),
            banner: Style::new().fg(rgb(16)).bg(rgb(221)),
            found: Style::new().fg(rgb(16)).bg(rgb(221)),
            is_plain: false,
            has_colours: true,
        }
    }

    pub fn light() -> Self {
        let rgb = Color::Indexed;
        Self {
            text: Style::new(),
            dim: Style::new().fg(rgb(240)),
            strong: Style::new().add_modifier(Modifier::BOLD),
            accent: Style::new().fg(rgb(25)).add_modifier(Modifier::BOLD),
            good: Style::new().fg(rgb(22)),
            warn: Style::new().fg(rgb(94)),
            bad: Style::new().fg(rgb(124)),
            note: Style::new().fg(rgb(23)),
            cursor: Style::new().bg(rgb(255)),
            selected: Style::new().bg(rgb(195)),
            border: Style::new().fg(rgb(248)),
            focus: Style::new().fg(rgb(25)),
            banner: Style::new().fg(rgb(231)).bg(rgb(130)),
            found: Style::new().fg(rgb(16)).bg(rgb(228)),
            is_plain: false,
            has_colours: true,
        }
    }

    pub fn contrast() -> Self {
        let bold = |colour| Style::new().fg(colour).add_modifier(Modifier::BOLD);
        Self {
            text: Style::new().fg(Color::Indexed(231)),
            dim: Style::new().fg(Color::Indexed(252)),
            strong: bold(Color::Indexed(231)),
            accent: bold(Color::Indexed(51)),
            good: bold(Color::Indexed(46)),
            warn: bold(Color::Indexed(226)),
            bad: bold(Color::Indexed(203)),
            note: bold(Color::Indexed(51)),
            cursor: Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(231)).add_modifier(Modifier::BOLD),
            selected: Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            border: Style::new().fg(Color::Indexed(252)),
            focus: bold(Color::Indexed(226)),
            banner: Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(226)).add_modifier(Modifier::BOLD),
            found: Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(226)).add_modifier(Modifier::BOLD),
            is_plain: true,
            has_colours: true,
        }
    }

    /// The sixteen colours every terminal has, as its user has set them.
    pub fn sixteen() -> Self {
        Self {
            text: Style::new(),
            dim: Style::new().add_modifier(Modifier::DIM),
            strong: Style::new().add_modifier(Modifier::BOLD),
            accent: Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
            good: Style::new().fg(Color::Green),
            warn: Style::new().fg(Color::Yellow),
            bad: Style::new().fg(Color::Red),
            note: Style::new().fg(Color::Cyan),
            cursor: Style::new().add_modifier(Modifier::REVERSED),
            selected: Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            border: Style::new().add_modifier(Modifier::DIM),
            focus: Style::new().fg(Color::Cyan),
            banner: Style::new().fg(Color::Black).bg(Color::Yellow),
            found: Style::new().fg(Color::Black).bg(Color::Yellow),
            is_plain: true,
            has_colours: true,
        }
    }

    /// Without any colour: marks and words say it all.
    pub fn none() -> Self {
        let plain = Style::new();
        Self {
            text: plain,
            dim: plain,
            strong: plain.add_modifier(Modifier::BOLD),
            accent: plain.add_modifier(Modifier::BOLD),
            good: plain,
            warn: plain,
            bad: plain.add_modifier(Modifier::BOLD),
            note: plain,
            cursor: plain.add_modifier(Modifier::REVERSED),
            selected: plain.add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            border: plain,
            focus: plain.add_modifier(Modifier::BOLD),
            banner: plain.add_modifier(Modifier::REVERSED),
            found: plain.add_modifier(Modifier::REVERSED),
            is_plain: true,
            has_colours: true,
        }
    }

    pub fn status(&self, status: Status) -> Style {
        match status {
            Status::Active => self.good,
            Status::Queued | Status::Paused => self.warn,
            Status::Completed | Status::Ended => self.dim,
            Status::Failed | Status::Timeout => self.bad,
        }
    }

    pub fn attention(&self, state: Attention) -> Style {
        match state {
            Attention::WaitingApproval | Attention::WaitingAnswer => self.warn.add_modifier(Modifier::BOLD),
            Attention::Stuck => self.bad.add_modifier(Modifier::BOLD),
            Attention::DoneUnseen => self.note.add_modifier(Modifier::BOLD),
            Attention::Working => self.good,
            Attention::Idle | Attention::Unknown => self.dim,
        }
    }
}

const ROLES: [&str; 10] = ["text", "dim", "strong", "accent", "good", "warn", "bad", "note", "border", "focus"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_and_no_color_wins() {
        for (no_color, term, colorterm, expected) in [
            (true, "xterm-256color", "truecolor", Colours::None),
            (false, "dumb", "", Colours::None),
            (false, "vt100", "", Colours::None),
            (false, "linux", "", Colours::Sixteen),
            (false, "xterm-256color", "", Colours::Many),
            (false, "xterm", "truecolor", Colours::Many),
        ] {
            assert_eq!(Colours::of(no_color, term, colorterm), expected, "{term} {colorterm}");
        }
        let (theme, _) = Theme::new(Some("dark"), &BTreeMap::new(), Colours::None, Background::Dark);
        assert_eq!(theme, Theme { has_colours: false, ..Theme::none() });
    }

    #[test]
    fn a_light_background_gets_the_light_theme_unless_the_user_chose_one() {
        let of = |name, colours, background| Theme::new(name, &BTreeMap::new(), colours, background).0;
        assert_eq!(of(None, Colours::Many, Background::Light), Theme::light());
        assert_eq!(of(None, Colours::Many, Background::Dark), Theme::dark());
        assert_eq!(of(Some("dark"), Colours::Many, Background::Light), Theme::dark());
        assert_eq!(of(None, Colours::Sixteen, Background::Light), Theme::sixteen());
    }

    #[test]
    fn own_colours_are_taken_and_mistakes_said() {
        let own = BTreeMap::from([
            ("accent".to_owned(), "#ff8800".to_owned()),
            ("good".to_owned(), "gren".to_owned()),
            ("glow".to_owned(), "red".to_owned()),
        ]);
        let (theme, complaints) = Theme::new(None, &own, Colours::Many, Background::Dark);
        assert_eq!(theme.accent.fg, Some(Color::Rgb(255, 136, 0)));
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert_eq!(Theme::new(Some("drak"), &BTreeMap::new(), Colours::Many, Background::Dark).1.len(), 1);
        assert_eq!(Theme::new(Some("none"), &own, Colours::None, Background::Dark).1.len(), 2, "wrong is wrong on every terminal");
        let misspelt = BTreeMap::from([("nam".to_owned(), "dark".to_owned())]);
        let said = Theme::new(None, &misspelt, Colours::Many, Background::Dark).1.swap_remove(0).reason;
        assert!(said.contains("did you mean \"name\"?"), "{said}");
    }
}
