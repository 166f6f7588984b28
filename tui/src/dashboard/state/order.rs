//! In which order sessions are shown, and under which headings. Pure.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use shared::attention::Attention;
use shared::session::{Session, Status};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Who needs you first.
    #[default]
    Attention,
    Name,
    Active,
    Newest,
    Workspace,
}

impl Sort {
    const ALL: [Self; 5] = [Self::Attention, Self::Name, Self::Active, Self::Newest, Self::Workspace];

    pub fn next(self) -> Self {
        next(&Self::ALL, self)
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Attention => "who needs you",
            Self::Name => "name",
            Self::Active => "last active",
            Self::Newest => "newest",
            Self::Workspace => "workspace",
        }
    }
}

/// Which sessions are shown: one key each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    #[default]
    All,
    Asks,
    Working,
    Idle,
    Ended,
}

impl Only {
    pub fn words(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Asks => "only what asks",
            Self::Working => "only what works",
            Self::Idle => "only what is idle",
            Self::Ended => "only what has ended",
        }
    }

    pub fn shows(self, session: &Session) -> bool {
        let state = session.needs.as_ref().map(|needs| needs.state);
        match self {
            Self::All => true,
            Self::Asks => matches!(state, Some(Attention::WaitingApproval | Attention::WaitingAnswer | Attention::Stuck)),
            Self::Working => !session.is_over() && matches!(state, Some(Attention::Working)),
            Self::Idle => !session.is_over() && matches!(state, None | Some(Attention::Idle | Attention::Unknown)),
            Self::Ended => session.is_over(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    #[default]
    None,
    Workspace,
    Status,
    Mode,
    User,
}

impl Group {
    const ALL: [Self; 5] = [Self::None, Self::Workspace, Self::Status, Self::Mode, Self::User];

    pub fn next(self) -> Self {
        next(&Self::ALL, self)
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Workspace => "workspace",
            Self::Status => "status",
            Self::Mode => "mode",
            Self::User => "user",
        }
    }
}

fn next<T: Copy + PartialEq>(all: &[T], present: T) -> T {
    let at = all.iter().position(|one| *one == present).unwrap_or(0);
    all[(at + 1) % all.len()]
}

/// How much a session needs somebody: smaller is more. Those that end are news until they are seen, others are at rest.
pub fn urgency(session: &Session) -> u8 {
    match session.needs.as_ref().map(|needs| needs.state) {
        // whatever was last known of its program, nothing reaches it
        _ if session.unreachable.is_some() => 2,
        Some(Attention::WaitingApproval) => 0,
        Some(Attention::WaitingAnswer) => 1,
        Some(Attention::Stuck) => 2,
        Some(Attention::DoneUnseen) => 3,
        _ => match session.status {
            // a budget that is used up waits for a review
            Status::Timeout if session.status_reason.as_deref() == Some(shared::session::ITERATIONS) => 4,
            Status::Active => 5,
            Status::Paused => 6,
            Status::Queued => 7,
            _ => 8,
        },
    }
}

pub fn compare(a: &Session, b: &Session, sort: Sort) -> Ordering {
    let by_name = || natural(&a.name, &b.name).then_with(|| b.id.cmp(&a.id));
    let ended = |session: &Session| session.is_over();
    match sort {
        // among equals the order must not jump about with every bit of output: by name while they live, by their end after
        Sort::Attention => urgency(a).cmp(&urgency(b)).then_with(|| match (a.ended_at, b.ended_at) {
            (Some(x), Some(y)) => y.cmp(&x).then_with(by_name),
            _ => by_name(),
        }),
        Sort::Name => by_name(),
        Sort::Active => {
            ended(a).cmp(&ended(b)).then_with(|| b.last_activity_at.as_second().cmp(&a.last_activity_at.as_second())).then_with(by_name)
        }
        Sort::Newest => b.number.cmp(&a.number).then_with(by_name),
        Sort::Workspace => a.workspace.cmp(&b.workspace).then_with(by_name),
    }
}

/// `api-2` before `api-10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.chars().peekable(), b.chars().peekable());
    let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        let mut value: u64 = 0;
        while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(u64::from(digit));
            chars.next();
        }
        value
    };
    loop {
        let order = match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => number(&mut a).cmp(&number(&mut b)),
            (Some(x), Some(y)) => {
                a.next();
                b.next();
                x.cmp(&y)
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

pub fn group_rank(session: &Session, group: Group) -> (u8, String) {
    let named = |value: &Option<String>| (u8::from(value.is_none()), value.clone().unwrap_or_default());
    match group {
        Group::None => (0, String::new()),
        Group::Workspace => (0, session.workspace.clone()),
        Group::Status => (status_rank(session.status), String::new()),
        Group::Mode => named(&session.mode),
        Group::User => named(&session.user),
    }
}

fn status_rank(status: Status) -> u8 {
    match status {
        Status::Active => 0,
        Status::Paused => 1,
        Status::Queued => 2,
        Status::Timeout => 3,
        Status::Failed => 4,
        Status::Completed => 5,
        Status::Ended => 6,
    }
}

pub fn group_title(session: &Session, group: Group) -> String {
    match group {
        Group::None => String::new(),
        Group::Workspace => session.workspace.clone(),
        Group::Status => session.status.to_string(),
        Group::Mode => session.mode.clone().unwrap_or_else(|| "without a mode".into()),
        Group::User => session.user.clone().unwrap_or_else(|| "without a user".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::state::tests::{needing, session};

    #[test]
    fn who_needs_you_comes_first_and_the_order_is_steady() {
        let mut late = session("done", Status::Completed);
        late.ended_at = Some(jiff::Timestamp::UNIX_EPOCH);
        let mut sessions = [
            late,
            session("b10", Status::Active),
            session("b9", Status::Active),
            needing("asks", Attention::WaitingAnswer),
            needing("finished", Attention::DoneUnseen),
            session("rest", Status::Paused),
            needing("approve", Attention::WaitingApproval),
        ];
        sessions.sort_by(|a, b| compare(a, b, Sort::Attention));
        let names: Vec<&str> = sessions.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["approve", "asks", "finished", "b9", "b10", "rest", "done"]);
    }

    #[test]
    fn groups_have_an_order_and_those_without_come_last() {
        let (mut a, b) = (session("a", Status::Failed), session("b", Status::Active));
        a.mode = Some("review".into());
        assert!(group_rank(&a, Group::Mode) < group_rank(&b, Group::Mode));
        assert!(group_rank(&b, Group::Status) < group_rank(&a, Group::Status));
        assert_eq!(group_title(&b, Group::Mode), "without a mode");
    }
}
