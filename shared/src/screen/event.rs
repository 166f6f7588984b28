//! What a program tells besides text: bells, titles, notifications, marks. Found in tokens, made fit for
//! people. It must not answer anything; that is `query`.

use super::modes::{Modes, TEXT_LIMIT};
use super::query::{self, Query};
use super::text::{path_of_uri, sanitise, split_osc};
use super::token::{StringKind, Token};

/// An event and the bytes it came from, in the slice fed now; `start` is below 0 when it began earlier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    pub start: isize,
    pub end: usize,
    pub event: Event,
}

/// Which of the notification protocols was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotificationSource {
    Osc9,
    Osc99,
    Osc777,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A question of the program, and for those that need it the cursor (row, column from 1) then.
    Query(Query, Option<(u16, u16)>),
    Bell,
    Title(String),
    /// The folder of OSC 7, decoded.
    Cwd(String),
    Notification {
        source: NotificationSource,
        text: String,
    },
    /// OSC 9;4: state 0 gone, 1 normal, 2 error, 3 indeterminate, 4 paused.
    Progress {
        state: u8,
        percent: Option<u8>,
    },
    /// OSC 133: the mark (`A` prompt, `B` command, `C` output, `D` done) and what follows it.
    Prompt {
        mark: char,
        rest: String,
    },
    /// OSC 7501: the report as sent.
    Status(String),
    ClipboardWrite,
    ClipboardRead,
    /// RIS: everything a program told before no longer holds.
    Reset,
}

/// Finds the events of one token. `modes` has already followed it.
pub fn observe(token: &Token<'_>, modes: &Modes, mut found: impl FnMut(Event)) {
    match token {
        Token::Control(0x07) => found(Event::Bell),
        Token::Osc(payload) => observe_osc(payload, &mut found),
        Token::String { kind: StringKind::Title, .. } => found(Event::Title(modes.title.clone())),
        Token::Escape { intermediates: [], last: b'c' } => found(Event::Reset),
        // Colours are most of what there is; they are not looked at twice.
        Token::Csi(csi) if csi.last != b'm' || csi.prefix != 0 => {
            if csi.last == b't' && csi.number_or(0, 0) == 23 {
                found(Event::Title(modes.title.clone()));
            }
            query::in_csi(csi, |query| found(Event::Query(query, None)));
        }
        Token::String { kind: StringKind::Dcs, payload } => {
            if let Some(query) = query::in_dcs(payload) {
                found(Event::Query(query, None));
            }
        }
        _ => {}
    }
}

fn observe_osc(payload: &[u8], found: &mut impl FnMut(Event)) {
    let (Some(code), rest) = split_osc(payload) else {
        return;
    };
    let clean = |bytes: &[u8]| sanitise(bytes, TEXT_LIMIT);
    match code {
        0 | 2 => found(Event::Title(clean(rest))),
        7 => {
            if let Some(path) = path_of_uri(&clean(rest)) {
                found(Event::Cwd(path));
            }
        }
        9 => found(osc_9(rest)),
        52 => {
            let data = rest.splitn(2, |&byte| byte == b';').nth(1);
            if let Some(data) = data {
                found(if data == b"?" { Event::ClipboardRead } else { Event::ClipboardWrite });
            }
        }
        99 => {
            let text = rest.splitn(2, |&byte| byte == b';').nth(1);
            found(Event::Notification { source: NotificationSource::Osc99, text: clean(text.unwrap_or_default()) });
        }
        133 => {
            let mark = rest.first().copied().map_or('?', char::from);
            if mark.is_ascii_alphabetic() {
                let rest = rest.get(2..).unwrap_or_default();
                found(Event::Prompt { mark, rest: clean(rest) });
            }
        }
        777 => {
            if let Some(rest) = rest.strip_prefix(b"notify;") {
                found(Event::Notification { source: NotificationSource::Osc777, text: clean(rest).replacen(';', ": ", 1) });
            }
        }
        7501 if !rest.starts_with(b"?") => found(Event::Status(clean_status(rest))),
        _ => query::in_osc(code, rest, |query| found(Event::Query(query, None))),
    }
}

/// A report may be longer than a title: two base64 texts fit in 4096 bytes.
fn clean_status(rest: &[u8]) -> String {
    sanitise(rest, 4096)
}

fn osc_9(rest: &[u8]) -> Event {
    let mut parts = rest.split(|&byte| byte == b';');
    if parts.next() == Some(b"4") {
        let mut small = || {
            let text = parts.next().and_then(|part| std::str::from_utf8(part).ok());
            text.and_then(|text| text.trim().parse::<u8>().ok())
        };
        let state = small().unwrap_or(0).min(4);
        return Event::Progress { state, percent: small().map(|percent| percent.min(100)) };
    }
    Event::Notification { source: NotificationSource::Osc9, text: sanitise(rest, TEXT_LIMIT) }
}
