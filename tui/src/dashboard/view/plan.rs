//! The columns of the list: which there is room for, how wide they are, and which order a click on a title means.

use ratatui::layout::{Position, Rect};
use shared::session::Session;
use shared::text::{self, visible};

use crate::dashboard::app::App;
use crate::dashboard::state::order::Sort;
use crate::words::{short_path, state_words};

/// In the order in which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Mark,
    Name,
    Status,
    What,
    Budget,
    Curve,
    Cpu,
    Memory,
    Idle,
    Age,
    Workspace,
}

impl Column {
    pub fn title(self) -> &'static str {
        match self {
            Self::Mark => "",
            Self::Name => "name",
            Self::Status => "status",
            Self::What => "runs",
            Self::Budget => "iter",
            Self::Curve => "activity",
            Self::Cpu => "cpu",
            Self::Memory => "mem",
            Self::Idle => "idle",
            Self::Age => "age",
            Self::Workspace => "workspace",
        }
    }

    /// The order that goes by it, if there is one.
    pub(super) fn sort(self) -> Option<Sort> {
        match self {
            Self::Mark | Self::Status => Some(Sort::Attention),
            Self::Name => Some(Sort::Name),
            Self::Idle => Some(Sort::Active),
            Self::Age => Some(Sort::Newest),
            Self::Workspace => Some(Sort::Workspace),
            Self::What | Self::Budget | Self::Curve | Self::Cpu | Self::Memory => None,
        }
    }
}

/// Fewer columns of what runs say nothing.
const MIN_WHAT: usize = 9;

/// What runs is mostly shorter: columns beyond these are better used by names and states that were cut.
const ENOUGH_WHAT: usize = 30;

/// Fewer columns of a path say nothing.
const MIN_WORKSPACE: usize = 9;

/// What runs keeps so much beside a path, which the preview's title says too.
const WHAT_BESIDE_WORKSPACE: usize = 20;

/// How wide a column is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    /// For nearly all: of the few that are longer the end is cut, rather than that all others make room for them.
    usual: usize,
    /// For all.
    widest: usize,
}

/// What a column may take.
struct Bounds {
    least: usize,
    /// Up to here even a single one has the room it needs.
    fair: usize,
    most: usize,
}

/// Over all sessions that are shown, in view or not: columns stay where they are while one scrolls.
fn wanted(app: &App, width: impl Fn(&Session) -> usize, bounds: &Bounds) -> Wanted {
    let mut widths: Vec<usize> = app.list.shown().map(width).collect();
    let nearly_all = widths.len() * 9 / 10;
    let usual = if widths.is_empty() { 0 } else { *widths.select_nth_unstable(nearly_all).1 };
    let widest = widths.into_iter().max().unwrap_or(0);
    let within = |width: usize| width.clamp(bounds.least, bounds.most);
    Wanted { usual: within(widest.min(usual.max(bounds.fair))), widest: within(widest) }
}

/// Columns and their widths for a width: what matters most stays longest.
pub fn columns(app: &App, width: usize) -> Vec<(Column, usize)> {
    let name =
        wanted(app, |session| text::columns(&visible(&session.name)), &Bounds { least: 6, fair: 14, most: (width / 4).clamp(10, 26) });
    let status =
        wanted(app, |session| text::columns(&state_words(session)), &Bounds { least: 6, fair: 20, most: (width / 4).clamp(8, 24) });
    let has_budget = app.list.all.iter().any(|session| session.iterations > 0 || session.task.is_some());
    let mut left = width.saturating_sub(3 + name.usual + status.usual + 3);
    let mut plan = Vec::new();
    // what runs wants at least so much before anything else is shown
    let mut take = |column: Column, wanted: usize, keeps: usize| {
        if left > wanted + keeps {
            left -= wanted + 1;
            plan.push((column, wanted));
        }
        left
    };
    take(Column::Idle, 4, 8);
    if has_budget {
        take(Column::Budget, 7, 14);
    }
    take(Column::Curve, 8, 16);
    take(Column::Cpu, 4, 18);
    let left_for_more = take(Column::Memory, 5, 18);
    let room = left_for_more.saturating_sub(WHAT_BESIDE_WORKSPACE + 1);
    if room >= MIN_WORKSPACE {
        let home = app.home.as_deref();
        let bounds = Bounds { least: MIN_WORKSPACE, fair: 14, most: (width / 6).clamp(MIN_WORKSPACE, 30) };
        let workspace = wanted(app, |session| text::columns(&short_path(&session.workspace, home)), &bounds);
        take(Column::Workspace, workspace.usual.min(room), WHAT_BESIDE_WORKSPACE);
    }
    take(Column::Age, 4, 18);
    let mut more = |wanted: Wanted| {
        let given = (wanted.widest - wanted.usual).min(left.saturating_sub(ENOUGH_WHAT));
        left -= given;
        wanted.usual + given
    };
    plan.extend([(Column::Mark, 3), (Column::Name, more(name)), (Column::Status, more(status))]);
    if left >= MIN_WHAT {
        plan.push((Column::What, left - 1));
    }
    plan.sort_by_key(|(column, _)| *column);
    plan
}

/// The order that a click on the titles of the list means.
pub fn sort_at(app: &App, list: Rect, at: Position) -> Option<Sort> {
    let mut x = usize::from(list.x);
    for (column, width) in columns(app, usize::from(list.width)) {
        // the gap behind a column belongs to it
        x += width + 1;
        if usize::from(at.x) < x {
            return column.sort();
        }
    }
    None
}
