//! Sessions, times and sizes in words, as the command line, the dashboard and MCP show them.

use shared::attention::Attention;
use shared::runtime::RuntimeState;
use shared::session::{Session, Status};
use shared::text::{columns, shell_words, visible};

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

/// A text in lines of at most this width, broken between words; a word that is too long is cut.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word.to_owned();
        loop {
            let last = lines.last().map_or(0, |line| columns(line));
            let gap = usize::from(last > 0);
            if last + gap + columns(&rest) <= width {
                if let Some(line) = lines.last_mut() {
                    line.push_str(&" ".repeat(gap));
                    line.push_str(&rest);
                }
                break;
            }
            if last > 0 {
                lines.push(String::new());
                continue;
            }
            let head: String = rest.chars().take(width.max(1)).collect();
            rest = rest.chars().skip(width.max(1)).collect();
            if let Some(line) = lines.last_mut() {
                line.push_str(&head);
            }
            lines.push(String::new());
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}
