//! OSC 7501, the program status protocol: what a program says of itself, and what stands of it. Pure.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jiff::Timestamp;

/// Padding may be left out.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// Records kept of one terminal; the one that was renewed longest ago goes first.
const MAX_RECORDS: usize = 64;

const MAX_APP: usize = 32;
const MAX_ID: usize = 128;
const MAX_LEVELS: usize = 8;
const MAX_SEGMENT: usize = 32;
const MAX_TITLE: usize = 192;
const MAX_MESSAGE: usize = 2048;

/// In the order in which one speaks for all: a helper that is blocked is more than a whole that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Idle,
    Done,
    Working,
    Error,
    Blocked(Kind),
}

/// What it is blocked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Unsaid,
    Auth,
    Question,
    Permission,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Empty for the whole program.
    pub id: String,
    pub state: State,
    pub app: Option<String>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Report(Report),
    /// The record of this id goes, with everything beneath it.
    Clear(String),
}

/// A report as it was sent. Pairs that are malformed are passed over; a limit that is broken discards the whole.
pub fn parse(text: &str) -> Option<Said> {
    let (mut state, mut kind, mut progress, mut app, mut id, mut title, mut message) = (None, None, None, None, None, None, None);
    for pair in text.split(':') {
        let Some((key, value)) = pair.trim_matches([' ', '\t']).split_once('=') else { continue };
        let is_value = |c: char| c.is_ascii_alphanumeric() || "_.,+/=-".contains(c);
        if key.is_empty() || key.len() > 16 || !key.bytes().all(|byte| byte.is_ascii_lowercase()) || !value.chars().all(is_value) {
            continue;
        }
        let place = match key {
            "state" => &mut state,
            "kind" => &mut kind,
            "progress" => &mut progress,
            "app" => &mut app,
            "id" => &mut id,
            "title" => &mut title,
            "msg" => &mut message,
            _ => continue,
        };
        *place = Some(value);
    }
    let id = id.unwrap_or_default();
    let is_segment = |part: &str| {
        (1..=MAX_SEGMENT).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '-'))
    };
    if !id.is_empty() && (id.len() > MAX_ID || id.split('/').count() > MAX_LEVELS || !id.split('/').all(is_segment)) {
        return None;
    }
    if app.is_some_and(|app| app.len() > MAX_APP) || progress.is_some_and(|text| text.parse::<u8>().map_or(true, |percent| percent > 100)) {
        return None;
    }
    title.map_or(Some(String::new()), |title| decoded(title, MAX_TITLE))?;
    let message = match message {
        Some(message) => Some(decoded(message, MAX_MESSAGE)?),
        None => None,
    };
    let state = match state? {
        "clear" => return Some(Said::Clear(id.to_owned())),
        "idle" => State::Idle,
        "working" => State::Working,
        "done" => State::Done,
        "error" => State::Error,
        "blocked" => State::Blocked(match kind {
            Some("permission") => Kind::Permission,
            Some("question") => Kind::Question,
            Some("auth") => Kind::Auth,
            _ => Kind::Unsaid,
        }),
        _ => return None,
    };
    Some(Said::Report(Report {
        id: id.to_owned(),
        state,
        app: app.filter(|app| !app.is_empty()).map(str::to_owned),
        message: message.filter(|message| !message.is_empty()),
    }))
}

fn decoded(text: &str, most: usize) -> Option<String> {
    let text = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
    (text.len() <= most && !text.chars().any(char::is_control)).then_some(text)
}

/// What stands of all reports of one terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records(Vec<(Timestamp, Report)>);

impl Records {
    pub fn take(&mut self, said: Said, at: Timestamp) {
        match said {
            Said::Report(report) => {
                self.0.retain(|(_, record)| record.id != report.id);
                // renewed ones are at the end
                if self.0.len() >= MAX_RECORDS {
                    self.0.remove(0);
                }
                self.0.push((at, report));
            }
            Said::Clear(id) if id.is_empty() => self.0.clear(),
            Said::Clear(id) => {
                self.0.retain(|(_, record)| !record.id.strip_prefix(&id).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
            }
        }
    }

    /// The next prompt of a shell: whoever said this runs no more.
    pub fn prompt(&mut self) {
        self.0.retain(|(_, record)| matches!(record.state, State::Done | State::Error));
    }

    /// Somebody has typed: what was asked is answered. Gives whether anything was.
    pub fn answered(&mut self) -> bool {
        let before = self.0.len();
        self.0.retain(|(_, record)| !matches!(record.state, State::Blocked(_) | State::Error));
        self.0.len() < before
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// All that stand, each with the application's name.
    pub fn all(&self) -> impl Iterator<Item = (Timestamp, &Report, Option<&str>)> {
        self.0.iter().rev().map(|(at, report)| (*at, report, report.app.as_deref().or_else(|| self.inherited(report))))
    }

    fn inherited(&self, report: &Report) -> Option<&str> {
        let is_above = |record: &Report| record.id.is_empty() || report.id.starts_with(&format!("{}/", record.id));
        self.0.iter().filter(|(_, record)| is_above(record)).max_by_key(|(_, record)| record.id.len())?.1.app.as_deref()
    }

    /// The one that speaks for all, since when, and the application's name.
    pub fn foremost(&self) -> Option<(Timestamp, &Report, Option<&str>)> {
        let (at, report) = self.0.iter().max_by_key(|(at, record)| (record.state, *at))?;
        Some((*at, report, report.app.as_deref().or_else(|| self.inherited(report))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(id: &str, state: State, app: Option<&str>, message: Option<&str>) -> Said {
        Said::Report(Report { id: id.into(), state, app: app.map(Into::into), message: message.map(Into::into) })
    }

    #[test]
    fn reports_are_understood() {
        let codex = Some("codex");
        for (text, expected) in [
            ("state=idle:app=codex", Some(report("", State::Idle, codex, None))),
            ("state=working:app=codex:progress=40", Some(report("", State::Working, codex, None))),
            (
                "state=blocked:kind=permission:msg=YXBwcm92ZSBCYXNo",
                Some(report("", State::Blocked(Kind::Permission), None, Some("approve Bash"))),
            ),
            ("state=blocked:kind=question", Some(report("", State::Blocked(Kind::Question), None, None))),
            ("state=blocked:kind=odd", Some(report("", State::Blocked(Kind::Unsaid), None, None))),
            ("state=done:id=a/b.1", Some(report("a/b.1", State::Done, None, None))),
            ("state=error:msg=bm8", Some(report("", State::Error, None, Some("no")))),
            (" state=idle : app=x\t", Some(report("", State::Idle, Some("x"), None))),
            // the last of a key counts, what is malformed or unknown is passed over
            ("state=idle:state=working:nonsense:X=1:future=2:app=\u{7}", Some(report("", State::Working, None, None))),
            ("state=clear", Some(Said::Clear(String::new()))),
            ("state=clear:id=a", Some(Said::Clear("a".into()))),
            // these are discarded whole
            ("", None),
            ("app=x", None),
            ("state=lazy", None),
            ("state=idle:msg=!!!!", Some(report("", State::Idle, None, None))),
            ("state=idle:msg=YQ=a", None),
            ("state=idle:msg=G1szMW0", None),
            ("state=idle:progress=101", None),
            ("state=idle:id=a//b", None),
            ("state=idle:id=1/2/3/4/5/6/7/8/9", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse(&format!("state=idle:app={}", "x".repeat(33))), None);
        assert_eq!(parse(&format!("state=idle:msg={}", "YWFh".repeat(700))), None);
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn records_replace_each_other_and_the_most_urgent_speaks() {
        let mut records = Records::default();
        assert_eq!(records.foremost(), None);
        let say = |records: &mut Records, second, text: &str| records.take(parse(text).expect(text), at(second));
        say(&mut records, 1, "state=working:app=codex");
        say(&mut records, 2, "state=blocked:id=a/b:kind=permission");
        say(&mut records, 3, "state=done:id=a");
        let (since, report, app) = records.foremost().expect("one");
        assert_eq!((since, report.id.as_str(), app), (at(2), "a/b", None), "the nearest above it has no name");
        say(&mut records, 4, "state=clear:id=a");
        let (since, report, app) = records.foremost().expect("one");
        assert_eq!((since, report.state, app), (at(1), State::Working, Some("codex")));
        say(&mut records, 5, "state=blocked:id=ab");
        assert_eq!(records.foremost().and_then(|(_, _, app)| app), Some("codex"));
        assert!(records.answered());
        assert!(!records.answered());
        records.prompt();
        assert_eq!(records.foremost(), None);
        say(&mut records, 6, "state=done");
        records.prompt();
        assert_eq!(records.foremost().map(|(since, report, _)| (since, report.state)), Some((at(6), State::Done)));
    }

    #[test]
    fn there_are_never_too_many() {
        let mut records = Records::default();
        for n in 0..1000 {
            records.take(parse(&format!("state=working:id=x{n}")).expect("one"), at(n));
        }
        assert_eq!(records.0.len(), MAX_RECORDS);
        assert_eq!(records.foremost().map(|(since, ..)| since), Some(at(999)));
    }
}
