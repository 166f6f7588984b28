//! Tables and times for people: columns that fit the width, colours that mean something. Pure.

use shared::attention::Attention;
use shared::runtime::RuntimeState;
use shared::session::{Session, Status};
use shared::text::{columns, pad, shell_words, visible};

/// How long ago, in one unit: `5s`, `12m`, `3h`, `2d`.
pub fn ago(from: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = (now.as_second() - from.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took, in milliseconds: `350ms`, `12.5s`, `3m20s`, `2h5m`.
pub fn length(ms: f64) -> String {
    let seconds = (ms / 1000.0) as u64;
    match seconds {
        0 => format!("{ms:.0}ms"),
        1..60 => format!("{:.1}s", ms / 1000.0),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// An amount on disk.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// A mark for people who do not see colours.
pub fn mark(status: Status) -> char {
    match status {
        Status::Active => '●',
        Status::Queued => '○',
        Status::Paused => '‖',
        Status::Completed => '✓',
        Status::Failed => '✗',
        Status::Timeout => '!',
        Status::Ended => '■',
    }
}

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

/// Who needs somebody, for people who do not see colours; nothing for the others.
pub fn attention_mark(session: &Session) -> Option<char> {
    if session.unreachable.is_some() {
        return Some('!');
    }
    match session.needs.as_ref()?.state {
        Attention::WaitingApproval | Attention::WaitingAnswer => Some('?'),
        Attention::Stuck => Some('!'),
        Attention::DoneUnseen => Some('*'),
        Attention::Working | Attention::Idle | Attention::Unknown => None,
    }
}

fn attention_colour(mark: &str) -> &'static str {
    match mark {
        "?" => "1;33",
        "!" => "1;31",
        _ => "1;36",
    }
}

/// The status with its reason: `failed: exit code 3`.
pub fn status_words(session: &Session) -> String {
    if let Some(place) = session.queue_place {
        let group = session.group.as_deref().unwrap_or("default");
        return format!("queued: #{place} in {}", visible(group));
    }
    if let Some(why) = &session.unreachable {
        return format!("{}: {}", session.status, visible(why));
    }
    if session.damaged.is_some() {
        return format!("{}, damaged", session.status);
    }
    if session.restorable {
        return format!("{}: lost, restorable", session.status);
    }
    let status = match (session.status, session.status_reason.as_deref()) {
        (Status::Completed, _) | (_, None) => session.status.to_string(),
        // the usual way to end one needs no reason
        (Status::Ended, Some("killed")) => session.status.to_string(),
        (status, Some(reason)) => format!("{status}: {}", visible(reason)),
    };
    match &session.runtime_state {
        Some(RuntimeState::Starting | RuntimeState::Running { .. }) if session.status.has_ended() => format!("{status}, runs"),
        _ => status,
    }
}

/// What is known of it, for a row: while it is active, what its program does; `active` only if nothing is known.
pub fn state_words(session: &Session) -> String {
    if session.unreachable.is_some() {
        // the reason stands where its question would
        return "unreachable".into();
    }
    known_state(session).map_or_else(|| status_words(session), str::to_owned)
}

/// What the program of an active session does, in one word.
pub fn known_state(session: &Session) -> Option<&'static str> {
    let is_plain = session.status == Status::Active && session.unreachable.is_none() && session.damaged.is_none();
    match session.needs.as_ref().filter(|_| is_plain)?.state {
        Attention::WaitingApproval | Attention::WaitingAnswer => Some("asks"),
        Attention::Stuck => Some("failed"),
        Attention::DoneUnseen => Some("finished"),
        Attention::Working => Some("working"),
        Attention::Idle => Some("idle"),
        Attention::Unknown => None,
    }
}

/// What it wants of a person: the question itself, or why it cannot be reached. Of one that has ended the status says it already.
pub fn question(session: &Session) -> Option<String> {
    if let Some(why) = &session.unreachable {
        return Some(visible(why));
    }
    // that a task is done is its status; what its program asks is not
    let is_news = |state| state != Attention::DoneUnseen || !session.status.has_ended();
    let needs = session.needs.as_ref().filter(|needs| !session.is_over() && is_news(needs.state))?;
    (needs.state.needs_someone() && !needs.why.is_empty()).then(|| visible(&needs.why))
}

/// What it is about: its task, or else its program.
pub fn what(session: &Session) -> String {
    match &session.task {
        Some(task) => visible(task.lines().next().unwrap_or_default()),
        None => command_words(session),
    }
}

/// Its program; without one, its interpreters are all there is.
pub fn command_words(session: &Session) -> String {
    if session.command.is_empty() {
        let languages: Vec<&str> = session.languages.iter().map(|language| language.as_str()).collect();
        return languages.join(" ");
    }
    shell_words(&session.command)
}

/// A path with the home folder as `~`.
pub fn short_path(path: &str, home: Option<&str>) -> String {
    let text = match home.filter(|home| home.len() > 1).and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    };
    visible(&text)
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
        let mut long = crate::state::tests::session(&"x".repeat(60), Status::Paused);
        long.status_reason = Some("waits for an answer from the customer".into());
        long.task = Some("Fix the login of users whose cache is cold, größe 世界".into());
        long.workspace = "/a/rather/long/path/to/some/project/of/mine".into();
        let list = [long, crate::state::tests::session("b", Status::Active)];
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
                    let mut session = crate::state::tests::session("a", Status::Active);
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
            let mut session = crate::state::tests::session("a", status);
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
        let mut session = crate::state::tests::needing("a", Attention::WaitingAnswer);
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
