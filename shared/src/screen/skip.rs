//! Exact fast-forward: finds the part of a large slice whose text certainly scrolls away.
//! It must only ever say so when the screen afterwards is the same, cell by cell.

use super::Screen;
use super::token::{Csi, Token};
use memchr::{memchr, memchr_iter, memrchr_iter};

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
    let mut search = Search::new(screen);
    let mut tokenizer = screen.tokenizer.clone();
    tokenizer.feed(bytes, |token, _, end| search.token(&token, end));
    // The slice may end inside a string, whose line feeds are none.
    let ends_in_string = tokenizer.pending().len() > 1 && tokenizer.pending().contains(&b'\n');
    if !search.full_region || ends_in_string || tokenizer.is_overlong() {
        return None;
    }
    search.cut(bytes, rows + 1)
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
    full_region: bool,
    rows: u16,
    /// End of the last token that depends on the cursor's row.
    from: usize,
    /// End of the last string with a line feed in it; behind it every line feed is one.
    clear: usize,
}

impl Search {
    fn new(screen: &Screen) -> Search {
        let rows = screen.size().rows;
        Search { full_region: screen.canvas.emulator.region() == (0, rows - 1) && !screen.modes.origin(), rows, from: 0, clear: 0 }
    }

    fn token(&mut self, token: &Token<'_>, end: usize) {
        match token {
            Token::Text(_) | Token::Control(_) | Token::Csi(Csi { last: b'm', .. }) => {}
            Token::Osc(payload) | Token::String { payload, .. } if memchr(b'\n', payload).is_none() => {}
            Token::Osc(_) | Token::String { .. } | Token::Skipped => self.clear = end,
            token if depends_on_row(token) => {
                self.watch_region(token);
                self.from = end;
            }
            _ => {}
        }
    }

    /// The latest cut behind a "\r\n" with `wanted` line feeds on either side.
    fn cut(&self, bytes: &[u8], wanted: usize) -> Option<Plan> {
        let begin = self.from.max(self.clear);
        let first = begin + memchr_iter(b'\n', &bytes[begin..]).nth(wanted)?;
        let to = memrchr_iter(b'\n', bytes).skip(wanted).take_while(|&feed| feed > first).find(|&feed| bytes[feed - 1] == b'\r')?;
        Some(Plan { from: self.from, to: to + 1 })
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
