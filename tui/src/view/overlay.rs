//! What lies over a view: help, questions, the form, the palette.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use shared::text::{columns, fit, visible};

use super::{cell, wrapped};
use crate::app::{App, Overlay};
use crate::keymap::{Keymap, Place};
use crate::state::form::{Field, Form};
use crate::state::palette::Palette;

/// Where it lies; a prompt is in the footer.
pub fn area(app: &App) -> Option<Rect> {
    let window = app.area;
    let centred = |width: u16, height: u16| {
        let (width, height) = (width.min(window.width), height.min(window.height));
        Rect { x: window.x + (window.width - width) / 2, y: window.y + (window.height - height) / 2, width, height }
    };
    Some(match app.overlay.as_ref()? {
        Overlay::Help { place, .. } => {
            let rows = app.keymap.help(*place).len() as u16;
            centred(64, rows + 2)
        }
        Overlay::Confirm { question, deed, .. } => {
            let width = 64.min(window.width);
            centred(width, confirm_lines(question, deed.verb(), width).len() as u16 + 3)
        }
        Overlay::New(_) => centred(70, Field::ALL.len() as u16 + 5),
        Overlay::Palette(palette) => {
            let rows = (palette.found.len() as u16).clamp(1, 14);
            let mut place = centred(66, rows + 3);
            // at the top, so that it does not jump while one types
            place.y = window.y + (window.height / 6).min(window.height.saturating_sub(place.height));
            place
        }
        Overlay::Prompt(_) => return None,
    })
}

/// The question and its keys, in a box of this width.
fn confirm_lines(question: &str, verb: &str, width: u16) -> Vec<String> {
    let room = usize::from(width.saturating_sub(4));
    let mut lines = wrapped(&visible(question), room);
    lines.push(String::new());
    lines.extend(wrapped(&format!("y: {verb}   any other key: leave it"), room));
    lines
}

/// How many rows of the help do not fit.
pub fn help_overflow(keymap: &Keymap, place: Place, window: Rect) -> u16 {
    (keymap.help(place).len() as u16).saturating_sub(window.height.saturating_sub(2))
}

pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let (Some(overlay), Some(place)) = (&app.overlay, area(app)) else { return };
    let theme = &app.theme;
    frame.render_widget(Clear, place);
    let title = match overlay {
        Overlay::Help { .. } => " keys ",
        Overlay::Confirm { .. } => " sure? ",
        Overlay::New(_) => " new session ",
        Overlay::Palette(_) => " actions ",
        Overlay::Prompt(_) => "",
    };
    let block = Block::bordered().title(Span::styled(title, theme.accent)).border_style(theme.focus);
    let inside = block.inner(place);
    frame.render_widget(block, place);
    match overlay {
        Overlay::Help { place: of, top } => {
            let rows = app.keymap.help(*of);
            let widest = rows.iter().map(|(keys, _)| columns(keys)).max().unwrap_or(0).min(18);
            let lines: Vec<Line<'_>> = rows
                .iter()
                .skip(usize::from(*top))
                .take(usize::from(inside.height))
                .map(|(keys, what)| {
                    let room = usize::from(inside.width).saturating_sub(widest + 3);
                    Line::from(vec![Span::styled(format!(" {} ", cell(keys, widest)), theme.accent), Span::raw(fit(what, room))])
                })
                .collect();
            frame.render_widget(Paragraph::new(lines), inside);
            if help_overflow(&app.keymap, *of, app.area) > *top {
                let hint = Rect { x: inside.right().saturating_sub(12), y: place.bottom() - 1, width: 10.min(inside.width), height: 1 };
                frame.render_widget(Paragraph::new(Span::styled(" j: more ↓", theme.warn)), hint);
            }
        }
        Overlay::Confirm { question, deed, .. } => {
            let text = Rect { x: inside.x + 1, width: inside.width.saturating_sub(1), ..inside };
            let lines = confirm_lines(question, deed.verb(), place.width);
            frame.render_widget(Paragraph::new(lines.into_iter().map(Line::raw).collect::<Vec<_>>()), text);
        }
        Overlay::New(form) => draw_form(app, form, frame, inside),
        Overlay::Palette(palette) => draw_palette(app, palette, frame, inside),
        Overlay::Prompt(_) => {}
    }
}

fn draw_form(app: &App, form: &Form, frame: &mut Frame<'_>, inside: Rect) {
    let theme = &app.theme;
    let label_width = 12;
    // in a low window the field in focus is seen
    let rows = inside.height.saturating_sub(2).max(1);
    let at = Field::ALL.iter().position(|field| *field == form.focus).unwrap_or(0) as u16;
    let top = (at + 1).saturating_sub(rows);
    for (n, field) in Field::ALL.into_iter().enumerate().skip(usize::from(top)).take(usize::from(rows)) {
        let y = inside.y + n as u16 - top;
        let place = Rect { y, height: 1, ..inside };
        let is_focus = field == form.focus;
        let label = Span::styled(format!(" {}", cell(field.label(), label_width - 1)), if is_focus { theme.accent } else { theme.dim });
        let room = usize::from(inside.width).saturating_sub(label_width + 2);
        let (text, style) = value(app, form, field);
        let (before, _) = form.line(field).parts();
        let before = visible(before);
        let skip = if is_focus { columns(&before).saturating_sub(room.saturating_sub(1)) } else { 0 };
        let shown: String = fit(&text.chars().skip(skip).collect::<String>(), room);
        frame.render_widget(Paragraph::new(Line::from(vec![label, Span::styled(shown, style)])), place);
        if is_focus && field != Field::Recent {
            let x = inside.x + label_width as u16 + (columns(&before) - skip) as u16;
            frame.set_cursor_position(Position { x: x.min(inside.right().saturating_sub(1)), y });
        }
    }
    let below = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
    let line = match &form.error {
        None if form.is_sent => Line::styled(" starting …", theme.note),
        Some(why) => Line::styled(format!(" {}", fit(&visible(why), usize::from(inside.width).saturating_sub(2))), theme.bad),
        None => hints(
            &[("enter", "start and attach"), ("ctrl-s", "start, stay here"), ("ctrl-n", "recent"), ("esc", "no")],
            theme.accent,
            theme.dim,
        ),
    };
    frame.render_widget(Paragraph::new(line), below);
}

fn value(app: &App, form: &Form, field: Field) -> (String, Style) {
    let theme = &app.theme;
    if field == Field::Recent {
        return match form.recent() {
            (_, 0) => ("none yet".into(), theme.dim),
            (None, count) => (format!("‹ {} › {count}", field.hint()), theme.dim),
            (Some(at), count) => (format!("‹ {} of {count} ›", at + 1), theme.note),
        };
    }
    let text = form.line(field).text();
    if text.is_empty() {
        let hint = if field == Field::Workspace { crate::cli::short_path(&app.here, app.home.as_deref()) } else { field.hint().to_owned() };
        return (hint, theme.dim);
    }
    (visible(text), theme.text)
}

fn hints(pairs: &[(&'static str, &'static str)], key: Style, what: Style) -> Line<'static> {
    Line::from(
        pairs
            .iter()
            .flat_map(|(name, text)| [Span::styled(format!(" {name}"), key), Span::styled(format!(" {text} "), what)])
            .collect::<Vec<_>>(),
    )
}

fn draw_palette(app: &App, palette: &Palette, frame: &mut Frame<'_>, inside: Rect) {
    let theme = &app.theme;
    let (before, behind) = palette.line.parts();
    let line = Line::from(vec![Span::styled(" ❯ ", theme.focus), Span::raw(visible(before)), Span::raw(visible(behind))]);
    frame.render_widget(Paragraph::new(line), Rect { height: 1, ..inside });
    frame.set_cursor_position(Position {
        x: (inside.x + 3 + columns(&visible(before)) as u16).min(inside.right().saturating_sub(1)),
        y: inside.y,
    });
    let rows = Rect { y: inside.y + 1, height: inside.height.saturating_sub(1), ..inside };
    if palette.found.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled("   no such action", theme.dim)), rows);
    }
    let top = (palette.cursor + 1).saturating_sub(usize::from(rows.height));
    for (n, entry) in palette.found.iter().enumerate().skip(top).take(usize::from(rows.height)) {
        let place = Rect { y: rows.y + (n - top) as u16, height: 1, ..rows };
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        let room = usize::from(rows.width).saturating_sub(14 + 10);
        let line = Line::from(vec![
            Span::styled(format!("   {} ", cell(entry.name, 12)), theme.strong),
            Span::styled(cell(entry.what, room), theme.dim),
            Span::styled(format!("{key:>6} "), theme.accent),
        ]);
        frame.render_widget(Paragraph::new(line), place);
        if n == palette.cursor {
            let buffer = frame.buffer_mut();
            for x in place.left()..place.right() {
                buffer[(x, place.y)].set_style(theme.cursor);
            }
        }
    }
}
