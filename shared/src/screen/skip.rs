//! Exact fast-forward: finds the part of a large slice whose text certainly scrolls away.
//! It must only ever say so when the screen afterwards is the same, cell by cell.

use super::Screen;
use super::token::{Csi, Token};
use memchr::{memchr, memchr_iter, memrchr_iter};
use std::collections::VecDeque;

/// Below this, planning costs more than it saves.
const WORTH_IT: usize = 8 * 1024;

/// Draw up to `from`, skim to `to`, put the cursor at the start of the last row, draw the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub from: usize,
    pub to: usize,
}

pub(super) fn plan(screen: &Screen, bytes: &[u8]) -> Option<Plan> {
    let rows = usize::from(screen.size().rows);
    if bytes.len() < WORTH_IT || !looks_like_a_flood(bytes, rows) {
        return None;
    }
    let mut search = Search::new(rows + 1, screen);
    let mut tokenizer = screen.tokenizer.clone();
    tokenizer.feed(bytes, |token, start, end| {
        search.token(bytes, &token, start, end);
    });
    search.found()
}

/// A cheap guess that spares full-screen programs the planning: enough lines at the end, and no cursor
/// addressing among them.
fn looks_like_a_flood(bytes: &[u8], rows: usize) -> bool {
    let Some(tail) = memrchr_iter(b'\n', bytes).nth(2 * rows + 3) else {
        return false;
    };
    let mut rest = &bytes[tail..];
    while let Some(escape) = memchr(0x1b, rest) {
        rest = &rest[escape + 1..];
        if rest.first() == Some(&b'[') {
            let last = rest[1..].iter().find(|&&byte| byte >= b'@');
            if matches!(last, Some(b'H' | b'f' | b'A' | b'B' | b'd' | b'r' | b'L' | b'M')) {
                return false;
            }
        }
    }
    true
}

struct Search {
    /// Line feeds wanted before and after the cut.
    wanted: usize,
    full_region: bool,
    rows: u16,
    /// End of the last token that depends on the cursor's row.
    from: usize,
    /// Line feeds since `from`.
    count: usize,
    /// The last `wanted` of them, each with whether a carriage return came right before.
    recent: VecDeque<(usize, bool)>,
    /// The latest cut with enough line feeds behind it.
    cut: Option<usize>,
}

impl Search {
    fn new(wanted: usize, screen: &Screen) -> Search {
        let rows = screen.size().rows;
        Search {
            wanted,
            full_region: screen.canvas.emulator.region() == (0, rows - 1) && !screen.modes.origin(),
            rows,
            from: 0,
            count: 0,
            recent: VecDeque::with_capacity(wanted + 1),
            cut: None,
        }
    }

    fn token(&mut self, bytes: &[u8], token: &Token<'_>, start: isize, end: usize) {
        match token {
            Token::Text(run) => {
                // A run that began in an earlier slice is a single character.
                if let Ok(start) = usize::try_from(start) {
                    self.text(bytes, run, start);
                }
            }
            token if depends_on_row(token) => {
                self.watch_region(token);
                self.from = end;
                self.count = 0;
                self.recent.clear();
                self.cut = None;
            }
            _ => {}
        }
    }

    fn text(&mut self, bytes: &[u8], run: &[u8], start: usize) {
        for at in memchr_iter(b'\n', run) {
            let returned = at > 0 && bytes[start + at - 1] == b'\r';
            self.recent.push_back((start + at, returned));
            self.count += 1;
            if self.recent.len() > self.wanted
                && let Some((feed, returned)) = self.recent.pop_front()
                && returned
                && self.count - self.wanted >= self.wanted
            {
                self.cut = Some(feed + 1);
            }
        }
    }

    /// Follows whether lines scroll over the whole screen.
    fn watch_region(&mut self, token: &Token<'_>) {
        match token {
            Token::Csi(Csi { prefix: 0, intermediates: b"", last: b'r', .. }) => {
                if let Token::Csi(csi) = token {
                    let top = csi.number_or(0, 1);
                    let bottom = csi.number_or(1, self.rows).min(self.rows);
                    if top < bottom {
                        self.full_region = (top, bottom) == (1, self.rows);
                    }
                }
            }
            Token::Escape { intermediates: [], last: b'c' }
            | Token::Escape { intermediates: [b'#'], last: b'8' }
            | Token::Csi(Csi { prefix: 0, intermediates: b"!", last: b'p', .. }) => self.full_region = true,
            Token::Csi(csi) if csi.prefix == b'?' && csi.numbers().any(|number| number == 6) => {
                self.full_region = false;
            }
            _ => {}
        }
    }

    fn found(&self) -> Option<Plan> {
        let to = self.cut.filter(|_| self.full_region)?;
        Some(Plan { from: self.from, to })
    }
}

/// Anything but text, columns, colours and harmless modes.
fn depends_on_row(token: &Token<'_>) -> bool {
    match token {
        Token::Text(_) | Token::Control(_) | Token::Osc(_) | Token::String { .. } | Token::Skipped => false,
        Token::Escape { intermediates: [], last } => !matches!(last, b'=' | b'>' | b'\\'),
        Token::Escape { intermediates, .. } => !matches!(intermediates, [b'(' | b')' | b'*' | b'+' | b'%']),
        Token::Csi(csi) => match (csi.prefix, csi.intermediates, csi.last) {
            (0, b"", last) if b"mKJX@PCDG`abIZtchl".contains(&last) => false,
            (b'?', b"", last) if b"JKum".contains(&last) => false,
            (b'>', b"", last) if b"cqmnu".contains(&last) => false,
            (b'<' | b'=', b"", b'u' | b'c') | (0, b" ", b'q') | (0 | b'?', b"$", b'p') => false,
            (0 | b'?', b"", b'n') => csi.number_or(0, 0) == 6,
            (b'?', b"", b'h' | b'l') => csi.numbers().any(|number| matches!(number, 3 | 6 | 47 | 1047 | 1048 | 1049)),
            _ => true,
        },
    }
}
