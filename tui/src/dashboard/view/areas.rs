//! Which part of the window is for what: the drawing and the mouse agree because both ask here. Pure.

use ratatui::layout::{Position, Rect};
use shared::id::SessionId;

use crate::dashboard::app::{App, Focus, View};
use crate::dashboard::state::detail::Page;
use crate::dashboard::state::remembered::Layout;

pub fn header(area: Rect) -> Rect {
    Rect { height: 1.min(area.height), ..area }
}

pub fn footer(area: Rect) -> Rect {
    Rect { y: area.bottom().saturating_sub(1), height: 1.min(area.height), ..area }
}

/// Between header and footer.
pub fn body(area: Rect) -> Rect {
    Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    /// With the titles of its columns in the first row.
    pub list: Option<Rect>,
    /// With a line above, or beside, that names it.
    pub preview: Option<Rect>,
    /// The terminal itself.
    pub pane: Option<Rect>,
    /// The line above it.
    pub pane_title: Option<Rect>,
}

/// From here on list and preview stand side by side.
const WIDE: u16 = 110;

/// Columns of a preview beside the list that shows most terminals whole: 80, and a few for those a little wider.
const USUAL_PREVIEW: u16 = 90;

/// Rows below which there is no room for a preview under the list.
const TALL: u16 = 18;

/// Columns of the list beside a terminal.
const NARROW_LIST: u16 = 30;

/// A terminal beside the list has at least this many columns; else it has all of them.
const MIN_PANE: u16 = 44;

pub fn sessions(app: &App) -> Sessions {
    let body = body(app.area);
    if app.pane.is_some() {
        let has_room = body.width >= NARROW_LIST + MIN_PANE;
        let shows_list = has_room || app.focus == Focus::List;
        let list_width = match (shows_list, has_room) {
            (false, _) => 0,
            (true, true) => NARROW_LIST + (body.width.saturating_sub(140) / 6).min(20),
            (true, false) => body.width,
        };
        let pane = Rect { x: body.x + list_width, width: body.width - list_width, ..body };
        let title = Rect { height: 1.min(pane.height), ..pane };
        let inside = Rect { y: pane.y + 1, height: pane.height.saturating_sub(1), ..pane };
        let (list, is_pane_shown) = (Rect { width: list_width.saturating_sub(u16::from(has_room)), ..body }, pane.width > 0);
        return Sessions {
            list: shows_list.then_some(list),
            preview: None,
            // hidden behind the list it keeps the size it would have
            pane: Some(if is_pane_shown { inside } else { Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body } })
                .filter(|_| is_pane_shown),
            pane_title: is_pane_shown.then_some(title),
        };
    }
    if app.hides_preview || app.list.rows.is_empty() {
        return Sessions { list: Some(body), ..Sessions::default() };
    }
    if body.width >= WIDE {
        // more than half where the preview still has room for a terminal of the usual width
        let list = (body.width * 11 / 20).min(body.width.saturating_sub(USUAL_PREVIEW)).max(body.width / 2).max(64);
        return Sessions {
            list: Some(Rect { width: list, ..body }),
            preview: Some(Rect { x: body.x + list, width: body.width - list, ..body }),
            ..Sessions::default()
        };
    }
    if body.height >= TALL {
        // as many rows as there are, but the preview keeps more than half
        let rows = (app.list.rows.len() as u16).saturating_add(1).clamp(4, body.height * 2 / 5);
        return Sessions {
            list: Some(Rect { height: rows, ..body }),
            preview: Some(Rect { y: body.y + rows, height: body.height - rows, ..body }),
            ..Sessions::default()
        };
    }
    Sessions { list: Some(body), ..Sessions::default() }
}

/// Rows of sessions that can be seen at once.
pub fn list_height(app: &App) -> usize {
    sessions(app).list.map_or(1, |list| usize::from(list.height.saturating_sub(1)))
}

/// A tile is at least this large, with its border.
const TILE_COLS: u16 = 36;
const TILE_ROWS: u16 = 8;

/// Tiles at once: more than these nobody can watch, and each is a question to the daemon.
const MOST_TILES: u16 = 96;

/// Columns and rows of tiles, for so many sessions.
fn shape(area: Rect, count: usize) -> (u16, u16) {
    let most_cols = (area.width / TILE_COLS).max(1);
    let most_rows = (area.height / TILE_ROWS).max(1);
    let count = u16::try_from(count.max(1)).unwrap_or(u16::MAX);
    // the fewest columns with which all are seen at once, so that tiles are as wide as can be
    let most_rows = most_rows.min((MOST_TILES / most_cols).max(1));
    let cols =
        (1..=most_cols).find(|cols| count.div_ceil(*cols) <= most_rows && count.div_ceil(*cols) <= (*cols).max(2)).unwrap_or(most_cols);
    let rows = count.div_ceil(cols).min(most_rows);
    (cols, rows)
}

pub fn tile_columns(app: &App) -> usize {
    usize::from(shape(body(app.area), app.list.shown_count()).0)
}

/// Tiles of the page that the cursor is on.
pub fn tiles(app: &App) -> Vec<(SessionId, Rect)> {
    if app.layout != Layout::Grid {
        return Vec::new();
    }
    let body = body(app.area);
    let shown: Vec<SessionId> = app.list.shown().map(|session| session.id).collect();
    let (cols, rows) = shape(body, shown.len());
    let per_page = usize::from(cols) * usize::from(rows);
    let at = app.list.cursor.and_then(|cursor| shown.iter().position(|id| *id == cursor)).unwrap_or(0);
    let first = at / per_page * per_page;
    let (width, height) = (body.width / cols, body.height / rows);
    shown
        .into_iter()
        .skip(first)
        .take(per_page)
        .enumerate()
        .map(|(n, id)| {
            let (col, row) = (n as u16 % cols, n as u16 / cols);
            // what does not divide evenly goes to the last
            let more_cols = if col + 1 == cols { body.width - width * cols } else { 0 };
            let more_rows = if row + 1 == rows { body.height - height * rows } else { 0 };
            let place = Rect { x: body.x + col * width, y: body.y + row * height, width: width + more_cols, height: height + more_rows };
            (id, place)
        })
        .collect()
}

/// The rows of a page of the detail, below its tabs.
pub fn page(app: &App) -> Rect {
    let body = body(app.area);
    Rect { y: body.y + 2.min(body.height), height: body.height.saturating_sub(2), ..body }
}

pub fn page_height(app: &App) -> usize {
    usize::from(page(app).height)
}

/// Tabs of the detail that are seen, and where: in a narrow window they move so that the present one is among them, and
/// the one after it if there is room.
pub fn tabs(app: &App) -> Vec<(Page, Rect)> {
    let body = body(app.area);
    let present = match app.views.last() {
        Some(View::Detail(detail)) => Page::ALL.iter().position(|page| *page == detail.page).unwrap_or(0),
        _ => 0,
    };
    let width = |page: &Page| page.words().len() as u16 + 2;
    let room = body.width.saturating_sub(2);
    let taken = |pages: &[Page]| pages.iter().map(|page| width(page) + 1).sum::<u16>().saturating_sub(1);
    let last = (present + 1).min(Page::ALL.len() - 1);
    let first = (0..=present).find(|first| taken(&Page::ALL[*first..=last]) <= room).unwrap_or(present);
    let mut x = body.x + 1;
    let mut shown = Vec::new();
    for page in &Page::ALL[first..] {
        if x + width(page) > body.right() && *page != Page::ALL[present] {
            break;
        }
        shown.push((*page, Rect { x, y: body.y, width: width(page).min(body.right().saturating_sub(x)), height: 1 }));
        x += width(page) + 1;
    }
    shown
}

/// Whether there are tabs before and behind those that are seen.
pub fn more_tabs(shown: &[(Page, Rect)]) -> (bool, bool) {
    let is = |page: Option<&(Page, Rect)>, end: Page| page.is_some_and(|(page, _)| *page == end);
    (!is(shown.first(), Page::ALL[0]), !is(shown.last(), Page::ALL[Page::ALL.len() - 1]))
}

pub fn page_tab(app: &App, at: Position) -> Option<Page> {
    tabs(app).into_iter().find(|(_, place)| place.contains(at)).map(|(page, _)| page)
}

/// Of a search: the hits, and the moment of the one under the cursor if there is room.
pub fn hits(area: Rect) -> (Rect, Option<Rect>) {
    let rest = Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(3), ..area };
    if rest.width >= WIDE {
        let width = rest.width / 2;
        return (Rect { width, ..rest }, Some(Rect { x: rest.x + width, width: rest.width - width, ..rest }));
    }
    if rest.height >= 14 {
        let height = rest.height * 2 / 5;
        return (Rect { height, ..rest }, Some(Rect { y: rest.y + height, height: rest.height - height, ..rest }));
    }
    (rest, None)
}

pub fn hits_height(area: Rect) -> usize {
    usize::from(hits(area).0.height)
}

/// Where a recording is played.
pub fn time(app: &App) -> Rect {
    match app.views.last() {
        Some(View::Time(machine)) if machine.is_beside => {
            let places = sessions(app);
            match (places.pane_title, places.pane) {
                (Some(title), Some(pane)) => Rect { y: title.y, height: pane.height + 1, ..pane },
                _ => app.area,
            }
        }
        Some(View::Time(_)) => app.area,
        _ => Rect::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_window_and_adapt_to_how_many_there_are() {
        let at = |width, height| Rect::new(0, 0, width, height);
        assert_eq!(shape(at(80, 22), 1), (1, 1));
        assert_eq!(shape(at(80, 22), 2), (1, 2));
        assert_eq!(shape(at(80, 22), 4), (2, 2));
        assert_eq!(shape(at(80, 22), 20), (2, 2));
        assert_eq!(shape(at(200, 48), 12), (4, 3));
        assert_eq!(shape(at(40, 13), 5), (1, 1));
    }
}
