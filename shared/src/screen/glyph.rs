//! Rows of a screen as values: taken out of the emulator, painted back as bytes, reflowed to a new width.
//! It must not know modes or the cursor's meaning.

use super::pen::{Pen, write_csi};

/// One cell. The text is short enough to live inside: vt100 keeps at most 22 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Glyph {
    text: [u8; 22],
    length: u8,
    /// 2 for a wide character, 0 for its second half.
    pub width: u8,
    pub pen: Pen,
}

impl Glyph {
    pub fn new(text: &str, width: u8, pen: Pen) -> Glyph {
        let mut bytes = [0; 22];
        let length = text.len().min(bytes.len());
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Glyph { text: bytes, length: length as u8, width, pen }
    }

    pub fn blank(pen: Pen) -> Glyph {
        Glyph::new("", 1, pen)
    }

    pub fn second_half() -> Glyph {
        Glyph::new("", 0, Pen::default())
    }

    pub fn text(&self) -> &[u8] {
        &self.text[..usize::from(self.length)]
    }

    pub fn is_blank(&self) -> bool {
        self.length == 0 && self.width == 1
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub cells: Vec<Glyph>,
    pub wrapped: bool,
}

impl Line {
    pub fn blank(cols: u16) -> Line {
        Line { cells: vec![Glyph::blank(Pen::default()); usize::from(cols)], wrapped: false }
    }

    pub fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_blank() && cell.pen == Pen::default())
    }
}

/// What rows are painted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PaintOn {
    /// A terminal, or a [`Screen`](super::Screen).
    Terminal,
    /// The emulator crate, which needs the mark of concealed characters.
    Emulator,
}

/// Paints rows on a cleared screen whose pen is the default one and which wraps at the margin.
/// Leaves pen and cursor anywhere.
pub fn paint_lines(lines: &[Line], canvas: PaintOn, out: &mut Vec<u8>) {
    let mut brush = Brush { out, canvas, pen: Pen::default(), at: None };
    let mut continues = false;
    for (row, line) in lines.iter().enumerate() {
        continues = brush.line(row as u16, line, continues);
    }
}

struct Brush<'a> {
    out: &'a mut Vec<u8>,
    canvas: PaintOn,
    pen: Pen,
    /// Where the next character would land, if known.
    at: Option<(u16, u16)>,
}

impl Brush<'_> {
    fn pen(&mut self, pen: Pen) {
        if self.pen != pen {
            pen.write(self.out);
            self.pen = pen;
        }
    }

    fn go(&mut self, row: u16, col: u16) {
        if self.at != Some((row, col)) {
            write_csi(self.out, &[row + 1, col + 1], b'H');
            self.at = Some((row, col));
        }
    }

    /// Paints one row; `continues` says that the row before wraps into it and was just painted to its
    /// last column. Returns the same about this row.
    fn line(&mut self, row: u16, line: &Line, continues: bool) -> bool {
        if continues {
            // The next character printed makes the row before a wrapped one.
            match line.cells.first() {
                Some(first) if !first.is_blank() => self.at = Some((row, 0)),
                _ => {
                    self.out.push(b' ');
                    self.go(row, 0);
                    self.pen(Pen::default());
                    write_csi(self.out, &[1], b'X');
                }
            }
        }
        let mut col = 0;
        while col < line.cells.len() {
            let cell = &line.cells[col];
            if cell.is_blank() {
                let length = line.cells[col..].iter().take_while(|next| next.is_blank() && next.pen == cell.pen).count();
                if cell.pen != Pen::default() {
                    self.go(row, col as u16);
                    self.pen(cell.pen);
                    write_csi(self.out, &[length as u16], b'X');
                }
                col += length;
                continue;
            }
            if cell.width > 0 {
                self.go(row, col as u16);
                self.pen(cell.pen);
                self.out.extend_from_slice(cell.text());
                if self.canvas == PaintOn::Emulator && cell.pen.concealed {
                    self.out.extend_from_slice(super::text::CONCEALED.encode_utf8(&mut [0; 4]).as_bytes());
                }
                self.at = Some((row, col as u16 + u16::from(cell.width)));
            }
            col += 1;
        }
        let full = self.at == Some((row, line.cells.len() as u16));
        if full {
            self.at = None;
        }
        line.wrapped && full
    }
}

/// Where the cursor is, in rows of a list of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub row: usize,
    pub col: usize,
}

/// Cuts wrapped lines anew for another width; blank rows below the cursor are given up.
pub fn reflow(lines: &[Line], cols: u16, cursor: Place) -> (Vec<Line>, Place) {
    let used = lines.iter().rposition(|line| !line.is_blank()).map_or(0, |last| last + 1).max(cursor.row + 1).min(lines.len());
    let mut result = Vec::new();
    let mut place = Place { row: 0, col: 0 };
    let mut row = 0;
    while row < used {
        let mut logical: Vec<Glyph> = Vec::new();
        let mut cursor_offset = None;
        loop {
            let line = &lines[row];
            if cursor.row == row {
                cursor_offset = Some(logical.len() + cursor.col);
            }
            logical.extend_from_slice(&line.cells);
            row += 1;
            if !line.wrapped || row >= used {
                break;
            }
        }
        let placed = cut(&logical, cols, cursor_offset, &mut result);
        if let Some(found) = placed {
            place = found;
        }
    }
    (result, place)
}

/// Appends one logical line to `result`; tells where `offset` of it ended up.
fn cut(logical: &[Glyph], cols: u16, offset: Option<usize>, result: &mut Vec<Line>) -> Option<Place> {
    let cols = usize::from(cols);
    let length = logical.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
    let mut place = None;
    let mut cells: Vec<Glyph> = Vec::with_capacity(cols);
    for (index, cell) in logical[..length].iter().enumerate() {
        if cells.len() + usize::from(cell.width.max(1)) > cols && cell.width > 0 {
            // A gap at the margin becomes a space, so that the row still counts as wrapped.
            if let Some(last) = cells.last_mut().filter(|last| last.is_blank()) {
                *last = Glyph::new(" ", 1, last.pen);
            }
            let wrapped = cells.len() == cols;
            finish(&mut cells, cols, wrapped, result);
        }
        if offset == Some(index) {
            place = Some(Place { row: result.len(), col: cells.len() });
        }
        cells.push(*cell);
    }
    if let Some(offset) = offset.filter(|&offset| offset >= length) {
        place = Some(Place { row: result.len(), col: cells.len() + offset - length });
    }
    let room = cols.saturating_sub(cells.len());
    cells.extend(logical[length..].iter().take(room));
    finish(&mut cells, cols, false, result);
    place.map(|place| Place { col: place.col.min(cols - 1), ..place })
}

fn finish(cells: &mut Vec<Glyph>, cols: usize, wrapped: bool, result: &mut Vec<Line>) {
    cells.resize(cols, Glyph::blank(Pen::default()));
    result.push(Line { cells: std::mem::take(cells), wrapped });
}

/// Rows cut off or filled with blanks at the right.
pub fn crop(lines: &[Line], cols: u16) -> Vec<Line> {
    lines
        .iter()
        .map(|line| {
            let mut cells = line.cells.clone();
            cells.resize(usize::from(cols), Glyph::blank(Pen::default()));
            if let Some(last) = cells.last_mut().filter(|last| last.width == 2) {
                *last = Glyph::blank(last.pen.erasing());
            }
            Line { wrapped: line.wrapped && line.cells.len() == usize::from(cols), cells }
        })
        .collect()
}

/// Brings `lines` to `rows`: surplus rows go first below the cursor, then at the top (those are
/// returned); missing ones are added at the bottom.
pub fn fit(lines: &mut Vec<Line>, rows: u16, cols: u16, cursor: &mut Place) -> Vec<Line> {
    let rows = usize::from(rows);
    let keep_below = rows.max(cursor.row + 1);
    lines.truncate(keep_below);
    let surplus = lines.len().saturating_sub(rows);
    let gone: Vec<Line> = lines.drain(..surplus).collect();
    cursor.row = cursor.row.saturating_sub(surplus);
    lines.resize_with(rows, || Line::blank(cols));
    if let Some(last) = lines.last_mut() {
        last.wrapped = false;
    }
    gone
}

/// SGR and text of one row, without trailing default blanks, ending in the default pen.
pub fn row_ansi(cells: &[Glyph]) -> Vec<u8> {
    let length = cells.iter().rposition(|cell| !cell.is_blank() || cell.pen != Pen::default()).map_or(0, |last| last + 1);
    let mut out = Vec::with_capacity(length + 16);
    let mut pen = Pen::default();
    for cell in cells[..length].iter().filter(|cell| cell.width > 0) {
        if cell.pen != pen {
            cell.pen.write(&mut out);
            pen = cell.pen;
        }
        if cell.is_blank() {
            out.push(b' ');
        } else {
            super::text::push_clean(&String::from_utf8_lossy(cell.text()), &mut out);
        }
    }
    out.extend_from_slice(b"\x1b[0m");
    out
}
