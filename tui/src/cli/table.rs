//! Tables and times for people: columns that fit the width, colours that mean something. Pure.

use shared::attention::Attention;
use shared::session::{Session, Status};
use shared::text::{columns, pad, visible};

pub use crate::words::{ago, attention_mark, bytes, known_state, length, mark, question, short_path, state_words, status_words, what};

fn colour(status: Status) -> &'static str {
    match status {
        Status::Active => "32",
        Status::Queued | Status::Paused => "33",
        Status::Completed | Status::Ended => "2",
        Status::Failed | Status::Timeout => "31",
    }
}

/// The colour of a row's status; nothing is done by one that is idle.
fn state_colour(session: &Session) -> &'static str {
    if session.unreachable.is_some() {
        return "1;31";
    }
    let state = session.needs.as_ref().map(|needs| needs.state).filter(|_| known_state(session).is_some());
    match state {
        Some(Attention::WaitingApproval | Attention::WaitingAnswer) => "1;33",
        Some(Attention::Stuck) => "1;31",
        Some(Attention::DoneUnseen) => "1;36",
        Some(Attention::Idle) => "2",
        Some(Attention::Working | Attention::Unknown) | None => colour(session.status),
    }
}

fn attention_colour(mark: &str) -> &'static str {
    match mark {
        "?" => "1;33",
        "!" => "1;31",
        _ => "1;36",
    }
}

pub struct Look<'a> {
    /// Without one, nothing is cut.
    pub width: Option<usize>,
    pub colours: bool,
    pub home: Option<&'a str>,
    pub now: jiff::Timestamp,
}

/// Below this many columns a folder has no room.
const NARROW: usize = 70;

pub fn sessions(sessions: &[Session], look: &Look<'_>) -> String {
    let rows: Vec<[String; 7]> = sessions
        .iter()
        .map(|session| {
            let clients = if session.clients > 0 { format!("{} attached", session.clients) } else { String::new() };
            [
                // the name comes first, whoever needs somebody: scripts look for it there
                visible(&session.name),
                attention_mark(session).map(String::from).unwrap_or_default(),
                format!("{} {}", mark(session.status), state_words(session)),
                ago(session.last_activity_at, look.now),
                question(session).unwrap_or_else(|| what(session)),
                short_path(&session.workspace, look.home),
                clients,
            ]
        })
        .collect();
    let titles = ["NAME", "", "STATUS", "IDLE", "TASK OR COMMAND", "WORKSPACE", ""];
    let natural = |column: usize| rows.iter().map(|row| columns(&row[column])).chain([columns(titles[column])]).max().unwrap_or(0);
    let mut widths: [usize; 7] = std::array::from_fn(natural);
    if let Some(width) = look.width {
        fit_columns(&mut widths, width);
    }
    let shown: Vec<usize> = (0..7).filter(|column| widths[*column] > 0).collect();
    let mut out = String::new();
    let heading: Vec<String> = shown.iter().map(|&c| pad(titles[c], widths[c])).collect();
    push_line(&mut out, &heading.join("  "), look.colours.then_some("1"));
    for (row, session) in rows.iter().zip(sessions) {
        let cells: Vec<String> = shown
            .iter()
            .map(|&c| {
                let text = pad(&row[c], widths[c]);
                let sgr = match c {
                    1 if !row[1].is_empty() => attention_colour(&row[1]),
                    2 => state_colour(session),
                    _ => return text,
                };
                if look.colours { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text }
            })
            .collect();
        push_line(&mut out, &cells.join("  "), None);
    }
    out
}

/// Each may have its share of the width; the two that can be cut without harm share what is left.
fn fit_columns(widths: &mut [usize; 7], width: usize) {
    widths[0] = widths[0].min((width / 4).clamp(8, 28));
    widths[2] = widths[2].min((width * 3 / 10).clamp(10, 30));
    if width < NARROW {
        widths[5] = 0;
        widths[6] = 0;
    }
    let gaps = 2 * (widths.iter().filter(|width| **width > 0).count() - 1);
    let left = width.saturating_sub(widths[0] + widths[1] + widths[2] + widths[3] + widths[6] + gaps).max(8);
    if widths[4] + widths[5] > left {
        // a task says more than a folder
        widths[5] = widths[5].min((left / 3).max(left.saturating_sub(widths[4])));
        widths[4] = left - widths[5];
    }
}

fn push_line(out: &mut String, line: &str, sgr: Option<&str>) {
    let line = line.trim_end();
    let (before, after) = sgr.map_or((String::new(), ""), |sgr| (format!("\x1b[{sgr}m"), "\x1b[0m"));
    out.extend([&before, line, after, "\n"]);
}

/// `label  value`, aligned.
pub fn field(label: &str, value: &str) -> String {
    format!("  {} {}\n", pad(label, 15), visible(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::attention::Needs;

    #[test]
    fn times_are_short() {
        let at = |s| jiff::Timestamp::from_second(s).expect("a time");
        for (seconds, text) in [(0, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (200_000, "2d"), (-5, "0s")] {
            assert_eq!(ago(at(1_000_000), at(1_000_000 + seconds)), text);
        }
    }

    #[test]
    fn no_line_is_wider_than_the_window() {
        let mut long = crate::dashboard::fixtures::session(&"x".repeat(60), Status::Paused);
        long.status_reason = Some("waits for an answer from the customer".into());
        long.task = Some("Fix the login of users whose cache is cold, größe 世界".into());
        long.workspace = "/a/rather/long/path/to/some/project/of/mine".into();
        let list = [long, crate::dashboard::fixtures::session("b", Status::Active)];
        for width in [40, 60, 80, 120, 200] {
            let text = sessions(&list, &Look { width: Some(width), colours: false, home: None, now: jiff::Timestamp::UNIX_EPOCH });
            for line in text.lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
            assert!(text.contains("Fix "), "{width}: {text}");
        }
        let text = sessions(&list, &Look { width: None, colours: false, home: None, now: jiff::Timestamp::UNIX_EPOCH });
        for whole in [&list[0].name, &list[0].workspace, "größe 世界", "from the customer"] {
            assert!(text.contains(whole), "{whole}: {text}");
        }
    }

    #[test]
    fn who_needs_somebody_is_marked() {
        let list = |states: &[Option<Attention>]| {
            let sessions: Vec<Session> = states
                .iter()
                .map(|state| {
                    let mut session = crate::dashboard::fixtures::session("a", Status::Active);
                    session.needs = state.map(|state| Needs { state, since: jiff::Timestamp::UNIX_EPOCH, why: String::new() });
                    session
                })
                .collect();
            let text = super::sessions(&sessions, &Look { width: Some(80), colours: false, home: None, now: jiff::Timestamp::UNIX_EPOCH });
            text.lines().map(|line| line.chars().take(7).collect::<String>()).collect::<Vec<_>>()
        };
        let waits = Some(Attention::WaitingAnswer);
        assert_eq!(
            list(&[waits, Some(Attention::Stuck), Some(Attention::DoneUnseen), Some(Attention::Working), None]),
            ["NAME   ", "a     ?", "a     !", "a     *", "a      ", "a      "]
        );
        assert_eq!(list(&[Some(Attention::Idle), None])[0], "NAME  S", "no column for nothing");
    }

    #[test]
    fn a_row_says_what_is_known_and_the_question_itself() {
        let row = |status, state: Option<Attention>, why: &str| {
            let mut session = crate::dashboard::fixtures::session("a", status);
            session.command = vec!["claude".into()];
            session.needs = state.map(|state| Needs { state, since: jiff::Timestamp::UNIX_EPOCH, why: why.into() });
            let text = super::sessions(&[session], &Look { width: None, colours: false, home: None, now: jiff::Timestamp::UNIX_EPOCH });
            text.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
        };
        for (status, state, why, expected) in [
            (Status::Active, Some(Attention::WaitingApproval), "Do you want to proceed?", "a ? ● asks 0s Do you want to proceed? /src"),
            (Status::Active, Some(Attention::Stuck), "it met an error", "a ! ● failed 0s it met an error /src"),
            (Status::Active, Some(Attention::DoneUnseen), "fix the login", "a * ● finished 0s fix the login /src"),
            (Status::Active, Some(Attention::Working), "make runs", "a ● working 0s claude /src"),
            (Status::Active, Some(Attention::Idle), "at a prompt", "a ● idle 0s claude /src"),
            (Status::Active, Some(Attention::Unknown), "", "a ● active 0s claude /src"),
            (Status::Active, None, "", "a ● active 0s claude /src"),
            (Status::Paused, Some(Attention::Working), "make runs", "a ‖ paused 0s claude /src"),
        ] {
            assert_eq!(row(status, state, why), expected);
        }
    }

    #[test]
    fn a_holder_that_cannot_be_reached_is_named_with_the_reason() {
        let mut session = crate::dashboard::fixtures::needing("a", Attention::WaitingAnswer);
        session.unreachable = Some("its holder (pid 7) is stopped".into());
        let text = super::sessions(&[session], &Look { width: None, colours: false, home: None, now: jiff::Timestamp::UNIX_EPOCH });
        assert!(text.contains("● unreachable") && text.contains("its holder (pid 7) is stopped"), "{text}");
    }

    #[test]
    fn paths_under_home_are_short() {
        assert_eq!(short_path("/home/me/x", Some("/home/me")), "~/x");
        assert_eq!(short_path("/home/me", Some("/home/me")), "~");
        assert_eq!(short_path("/home/meg", Some("/home/me")), "/home/meg");
        assert_eq!(short_path("/x", Some("/")), "/x");
    }
}
