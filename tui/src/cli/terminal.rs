//! attach, detach, send, screen, wait.

use std::io::Read;

use base64::Engine;
use shared::exec::Language;
use shared::filter::Filter;
use shared::message::{Code, Condition, Failure, Request, ScreenShot, Waited};
use shared::paths::Paths;
use shared::session::Session;

use super::{SendArgs, print, print_json};
use crate::attach::{self, Wish};
use crate::{connect, environment, tty};

pub async fn attach(paths: &Paths, name: Option<String>, language: Option<Language>, read_only: bool) -> Result<(), Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage(
            "attach needs a terminal on standard input and output: in scripts use `send`, `screen` and `wait` instead",
        ));
    }
    let mut client = connect::connect(paths).await?;
    let name = match name {
        Some(name) => name,
        None => last_active(client.call(Request::List(Filter::default())).await?)?,
    };
    let (config, warning) = crate::settings::load_config(paths);
    if let Some(warning) = warning {
        eprintln!("{}", shared::text::visible(&warning));
    }
    let wish = Wish { language, name, read_only, prefix: config.keys.prefix, typed: Vec::new() };
    attach::refuse_own(&mut client, &wish).await?;
    if let Some(outer) = environment::own_session() {
        let prefix = String::from(config.keys.prefix);
        let outer = shared::text::visible(&outer.to_string());
        eprintln!("this is inside session {outer}: the outer one hears {prefix} first; {prefix} {prefix} d detaches the inner one");
    }
    if let Some(hint) = environment::tmux_hint(config.keys.prefix) {
        eprintln!("{hint}");
    }
    attach::attach(paths, client, &wish).await?.say()
}

fn last_active(sessions: Vec<Session>) -> Result<String, Failure> {
    sessions
        .into_iter()
        // a record without a program has nothing to attach to
        .filter(|session| session.has_live_program() || session.is_hibernated() || !session.languages.is_empty())
        .max_by_key(|session| session.last_activity_at)
        .map(|session| session.id.to_string())
        .ok_or_else(|| Failure::new(Code::NotFound, "no session is running: start one with `sessions-tui new`"))
}

pub async fn detach(paths: &Paths, name: String, json: bool) -> Result<(), Failure> {
    let count: usize = connect::call(paths, Request::Detach { name }).await?;
    if json {
        return print_json(&serde_json::json!({"detached": count}));
    }
    print(&format!("{} detached\n", shared::text::count(count, "client")))
}

pub async fn send(paths: &Paths, args: SendArgs) -> Result<(), Failure> {
    let mut bytes: Vec<u8> = args.key.into_iter().flat_map(|key| key.0).collect();
    let filter = args.filter.filter()?;
    if filter.text.is_some() {
        return Err(Failure::usage("send has no --text: write the text after the name, as in `send api 'npm test' --enter`"));
    }
    let mut text = args.words;
    let mut names = args.to;
    if names.is_empty() && !filter.searches() {
        if text.is_empty() {
            return Err(Failure::usage("which session? give its name, --to NAME or a filter such as --group"));
        }
        names.push(text.remove(0));
    }
    if text == ["-"] {
        std::io::stdin().read_to_end(&mut bytes).map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    } else {
        bytes.extend_from_slice(text.join(" ").as_bytes());
    }
    if args.enter {
        bytes.push(b'\r');
    }
    if bytes.is_empty() {
        return Err(Failure::usage("nothing to send: give a text, --key or --enter"));
    }
    let mut client = connect::connect(paths).await?;
    // large texts go in parts, each acknowledged: a program that reads slowly is waited for, not overrun
    // … but what is kept for later is kept whole or not at all
    let part = if args.queue_input { bytes.len() } else { PART };
    let is_one = names.len() == 1;
    if filter.searches() {
        let sessions: Vec<Session> = client.call(Request::List(Filter { all: true, ..filter })).await?;
        names.extend(sessions.iter().filter(|session| session.has_live_program()).map(|session| session.id.to_string()));
        if names.is_empty() {
            return Err(Failure::new(Code::NotFound, "no session with a running program matches"));
        }
    }
    let mut first = None;
    for name in names {
        for part in bytes.chunks(part) {
            let bytes = base64::engine::general_purpose::STANDARD.encode(part);
            match client.call::<()>(Request::Send { name: name.clone(), bytes, queue_input: args.queue_input }).await {
                Ok(()) => {}
                Err(failure) if is_one => return Err(failure),
                Err(failure) => {
                    eprintln!("error: {}: {}", shared::text::visible(&name), shared::text::visible(&failure.message));
                    first.get_or_insert(Failure::new(failure.code, "not all of them got it"));
                    break;
                }
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// Bytes of one send call.
const PART: usize = 256 << 10;

pub async fn screen(
    paths: &Paths,
    name: String,
    language: Option<Language>,
    ansi: bool,
    json: bool,
    scrollback: u32,
) -> Result<(), Failure> {
    let shot: ScreenShot = connect::call(paths, Request::Screen { name, scrollback, language }).await?;
    if json {
        return print_json(&shot);
    }
    let last = shot.rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |row| row + 1);
    let mut out = String::new();
    for line in shot.scrollback.iter().chain(&shot.rows[..last]) {
        out.push_str(if ansi { &line.ansi } else { &line.text });
        out.push('\n');
    }
    print(&out)
}

/// The last lines that a session printed.
pub async fn logs(paths: &Paths, name: String, lines: u32) -> Result<(), Failure> {
    let shot: ScreenShot = connect::call(paths, Request::Screen { name, scrollback: lines.min(MOST_LINES), language: None }).await?;
    let last = shot.rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |row| row + 1);
    let all: Vec<&str> = shot.scrollback.iter().chain(&shot.rows[..last]).map(|line| line.text.as_str()).collect();
    let from = all.len().saturating_sub(lines as usize);
    let mut text = all[from..].join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    print(&text)
}

/// As many lines as the daemon gives at once.
const MOST_LINES: u32 = 20_000;

pub async fn wait(paths: &Paths, name: String, condition: Condition, timeout_ms: Option<u64>, json: bool) -> Result<(), Failure> {
    let waited: Waited = connect::call(paths, Request::Wait { name, condition, timeout_ms }).await?;
    if json { print_json(&waited) } else { Ok(()) }
}
