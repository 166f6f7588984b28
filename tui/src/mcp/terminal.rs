//! Tools for terminals: start a program, type into it, look at its screen, wait for it.

use base64::Engine;
use rmcp::handler::server::tool::ToolRoute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use shared::exec::Language;
use shared::id::SessionId;
use shared::message::{Code, Condition, Failure, Layers, Line, NewSession, Request, ScreenShot, Waited};
use shared::model_text::hidden_mark;
use shared::runtime::ExitStatus;
use shared::screen::{Size, perceived_row};
use shared::seen::{Seen, Text};
use shared::session::Session;

use super::clip::clip_front;
use super::described::LanguageWord;
use super::row::{Row, StatusWord};
use super::server::{Call, Server};
use super::session::change;
use super::tool::{self, About, Effect};
use crate::environment;
use crate::key_name;

/// The size of a terminal that nobody looks at.
const COLS: u16 = 80;
const ROWS: u16 = 24;

/// How long a wait lasts when it does not say, and at most: below the time any client gives a tool.
const WAIT_MS: u64 = 10_000;
const MAX_WAIT_MS: u64 = 30_000;

/// Without output for this long, a program is quiet.
const QUIET_MS: u64 = 1000;

/// Bytes of one send to the daemon: each part is acknowledged, so that a program that reads slowly is waited for.
const PART: usize = 256 << 10;

/// Lines of history with a screen, at most, and bytes of it all.
const MAX_SCROLLBACK: u32 = 2000;
const MAX_SCREEN: usize = 64 << 10;

pub fn tools() -> Vec<ToolRoute<Server>> {
    vec![
        tool::structured::<StartArguments, Row, _, _, _>(
            &About {
                name: "terminal_start",
                title: "Start a program in a terminal",
                description: "Start a program on a terminal of its own, in a session that outlives this client: dev servers, watchers, \
builds, editors, REPLs, other agents, anything interactive. Gives its `session`, valid until the session is removed. Then use \
terminal_wait, terminal_screen and terminal_send. A person can watch and type with `sessions-tui attach NAME`. For commands whose \
output you want as data use runtime instead.",
                effect: Effect::Starts,
            },
            start,
        ),
        tool::structured::<SendArguments, Sent, _, _, _>(
            &About {
                name: "terminal_send",
                title: "Type into a terminal",
                description: "Type into a session's program: first text, then keys, then enter if submit is true. Follow it with \
terminal_wait (quiet or text) and terminal_screen to see what came of it. Keys have tmux names: Enter, Escape, Tab, BTab, Space, \
BSpace, Up, Down, Left, Right, Home, End, PageUp, PageDown, IC, DC, F1…F12, C-c, M-x (also ctrl-c, alt-x).",
                effect: Effect::Acts,
            },
            send,
        ),
        tool::text::<ScreenArguments, _, _>(
            &About {
                name: "terminal_screen",
                title: "Read a terminal's screen",
                description: "What a person sees on a session's screen, as text; the first line says whose it is, its status and where the cursor is. \
`scrollback` adds lines that have scrolled away. Of a session that has ended, its last screen. `language` shows the transcript of \
that interpreter of the session instead.",
                effect: Effect::Reads,
            },
            screen,
        ),
        tool::structured::<WaitArguments, WaitOutcome, _, _, _>(
            &About {
                name: "terminal_wait",
                title: "Wait for a terminal",
                description: "Wait for a session: exit (its program ends), quiet (no output for quiet_ms), text (`pattern`, a regular \
expression, is on the screen), status (the session has `status`). Comes back with met: false when timeout_ms is over first: look at \
the screen, or wait again.",
                effect: Effect::Reads,
            },
            wait,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    /// A command line, run by the user's shell. Without it and without argv, the shell itself.
    command: Option<String>,
    /// A program and its arguments, run without a shell. Not together with command.
    argv: Option<Vec<String>>,
    /// Absolute path of the folder to run in. Without it, where the name was left, or the folder the client works in.
    cwd: Option<String>,
    /// A name people can use; no spaces or slashes. One that has a live session continues it.
    name: Option<String>,
    /// Variables for the program.
    env: Option<std::collections::BTreeMap<String, String>>,
    /// Columns of the terminal.
    #[schemars(range(min = 2, max = 1000), extend("default" = 80))]
    cols: Option<u16>,
    /// Rows of the terminal.
    #[schemars(range(min = 2, max = 500), extend("default" = 24))]
    rows: Option<u16>,
}

async fn start(call: Call, given: StartArguments) -> Result<Row, Failure> {
    let argv = match (given.command, given.argv) {
        (Some(_), Some(_)) => return Err(Failure::usage("give `command` or `argv`, not both")),
        (Some(command), None) => vec![shell(), "-c".into(), command],
        (None, Some(argv)) if argv.is_empty() => {
            return Err(Failure::usage("`argv` is empty: name a program, or leave it out for a shell"));
        }
        (None, Some(argv)) => argv,
        (None, None) => Vec::new(),
    };
    let here = call.workspace(given.cwd.as_deref()).await?;
    let new = NewSession {
        session: Some(SessionId::new()),
        name: given.name,
        workspace: given.cwd.is_some().then(|| here.clone()),
        here,
        argv,
        must_start: true,
        env_delta: given.env.unwrap_or_default().into_iter().collect(),
        environment: environment::inherited(),
        size: Some(Size { cols: given.cols.unwrap_or(COLS), rows: given.rows.unwrap_or(ROWS) }),
        umask: Some(environment::umask()),
        ..NewSession::default()
    };
    change(&call, Request::New(new)).await
}

/// The user's shell, which agents pass on to us even where they pass on little else.
fn shell() -> String {
    std::env::var("SHELL").ok().filter(|shell| shell.starts_with('/')).unwrap_or_else(|| "/bin/sh".into())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    /// Id or name of the session.
    session: String,
    /// Typed as it is.
    text: Option<String>,
    /// Pressed after the text, one after the other.
    keys: Option<Vec<String>>,
    /// Press enter at the end.
    submit: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Sent {
    /// Bytes that were typed.
    bytes: usize,
}

async fn send(call: Call, given: SendArguments) -> Result<Sent, Failure> {
    let mut bytes = given.text.unwrap_or_default().into_bytes();
    for key in given.keys.unwrap_or_default() {
        bytes.extend(key_bytes(&key)?);
    }
    if given.submit.unwrap_or_default() {
        bytes.push(b'\r');
    }
    if bytes.is_empty() {
        return Err(Failure::usage("nothing to type: give `text`, `keys` or `submit`"));
    }
    for part in bytes.chunks(PART) {
        let part = base64::engine::general_purpose::STANDARD.encode(part);
        call.ask::<()>(Request::Send { name: given.session.clone(), bytes: part, queue_input: false }).await?;
    }
    Ok(Sent { bytes: bytes.len() })
}

/// A key by our name or tmux's.
fn key_bytes(name: &str) -> Result<Vec<u8>, Failure> {
    let ours = match name {
        "BSpace" => "backspace",
        "PPage" | "PgUp" => "pageup",
        "NPage" | "PgDn" => "pagedown",
        "IC" => "insert",
        "DC" => "delete",
        // shift and tab have a sequence of their own
        "BTab" | "S-Tab" => return Ok(b"\x1b[Z".to_vec()),
        name => name,
    };
    key_name::parse(ours).map(|bytes| bytes.0).map_err(|_| {
        Failure::usage(format!(
            "{name:?} is not a key: Enter, Escape, Tab, BTab, Space, BSpace, Up, Down, Left, Right, Home, End, PageUp, PageDown, IC, DC, \
             F1…F12, C-a…C-z, M-x; what is to be typed as it is goes into `text`"
        ))
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScreenArguments {
    /// Id or name of the session.
    session: String,
    /// Lines that have scrolled away to show before the screen.
    #[schemars(range(min = 0, max = 2000), extend("default" = 0))]
    scrollback: Option<u32>,
    /// The transcript of this interpreter of the session instead of its program's screen.
    language: Option<LanguageWord>,
    /// Also text that a person does not see on the screen: concealed, or in the colour of its background.
    raw: Option<bool>,
}

async fn screen(call: Call, given: ScreenArguments) -> Result<String, Failure> {
    // by its id from now on: a name may go to another
    let layers: Layers = call.ask(Request::Show { name: given.session }).await?;
    let session = layers.session;
    let shot: ScreenShot = call
        .ask(Request::Screen {
            name: session.id.to_string(),
            scrollback: given.scrollback.unwrap_or_default().min(MAX_SCROLLBACK),
            language: given.language.map(Language::from),
        })
        .await?;
    let lines = if given.raw.unwrap_or_default() { raw_lines(&shot) } else { lines(&shot) };
    Ok(format!("{}\n{}", header(&session, &shot), clip_front(&lines, MAX_SCREEN)))
}

fn header(session: &Session, shot: &ScreenShot) -> String {
    let (row, column) = shot.cursor;
    let mut words = vec![
        format!("session {} ({})", session.name, session.id),
        session.in_words(),
        format!("{}x{}", shot.size.cols, shot.size.rows),
        format!("cursor at row {}, column {}", row + 1, column + 1),
    ];
    if !shot.scrollback.is_empty() {
        words.push(format!("{} lines of scrollback first", shot.scrollback.len()));
    }
    if !shot.title.is_empty() {
        words.push(format!("title {:?}", shared::text::fit(&shot.title, 80)));
    }
    shared::text::visible(&words.join(" · "))
}

/// The rows as a person sees them, with a mark behind those that have hidden text.
fn lines(shot: &ScreenShot) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in shot.scrollback.iter().chain(&shot.rows) {
        let mut row = perceived_row(line.ansi.as_bytes());
        if row.hidden > 0 {
            row.text += if row.text.is_empty() { "" } else { " " };
            row.text += &hidden_mark(row.hidden);
        }
        lines.push(row.text);
    }
    joined(&lines, shot.scrollback.len())
}

/// The rows with all text that is in them.
fn raw_lines(shot: &ScreenShot) -> String {
    let plain = |line: &Line| {
        let mut text = Text::default();
        Seen::default().feed(line.ansi.as_bytes(), 0, &mut text);
        String::from_utf8_lossy(&text.bytes).trim_end_matches(' ').to_owned()
    };
    joined(&shot.scrollback.iter().chain(&shot.rows).map(plain).collect::<Vec<_>>(), shot.scrollback.len())
}

/// Blank rows at the end of the screen are left out, of the scrollback none.
fn joined(lines: &[String], scrollback: usize) -> String {
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1).max(scrollback);
    lines[..used].iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Until {
    Exit,
    Prompt,
    Quiet,
    Text,
    Status,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitArguments {
    /// Id or name of the session.
    session: String,
    /// What to wait for; prompt: a shell asks for a line, and none has been entered since.
    until: Until,
    /// For text: a regular expression; ^ and $ are the ends of lines.
    pattern: Option<String>,
    /// For status: the one that is awaited.
    status: Option<StatusWord>,
    /// For quiet: without output for this many milliseconds.
    #[schemars(range(min = 1, max = 30000), extend("default" = 1000))]
    quiet_ms: Option<u64>,
    /// Give up after this many milliseconds.
    #[schemars(range(min = 0, max = 30000), extend("default" = 10000))]
    timeout_ms: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct WaitOutcome {
    /// What was awaited has happened; otherwise the time was over first.
    met: bool,
    /// The session's status now.
    status: StatusWord,
    /// Of a program that has ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Of a program that a signal has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
}

async fn wait(call: Call, given: WaitArguments) -> Result<WaitOutcome, Failure> {
    let (condition, meanwhile) = match given.until {
        Until::Exit => (Condition::Exit, "waiting for its program to end".to_owned()),
        Until::Prompt => (Condition::Prompt, "waiting for a shell's prompt".to_owned()),
        Until::Quiet => {
            let ms = given.quiet_ms.unwrap_or(QUIET_MS).clamp(1, MAX_WAIT_MS);
            (Condition::Quiet { ms }, format!("waiting for {ms} ms without output"))
        }
        Until::Text => {
            let pattern = given.pattern.ok_or_else(|| Failure::usage("until text needs `pattern`: a regular expression"))?;
            let meanwhile = format!("waiting for {pattern:?}");
            (Condition::Text { pattern }, meanwhile)
        }
        Until::Status => {
            let status = given.status.ok_or_else(|| Failure::usage("until status needs `status`"))?.into();
            (Condition::Status { status }, format!("waiting for status {status}"))
        }
    };
    let layers: Layers = call.ask(Request::Show { name: given.session }).await?;
    let name = layers.session.id.to_string();
    let timeout_ms = Some(given.timeout_ms.unwrap_or(WAIT_MS).min(MAX_WAIT_MS));
    let request = Request::Wait { name: name.clone(), condition, timeout_ms };
    match call.ask_patiently::<Waited>(request, &meanwhile).await {
        Ok(waited) => {
            let (exit_code, signal) = match waited.exit {
                Some(ExitStatus::Code(code)) => (Some(code), None),
                Some(ExitStatus::Signal(signal)) => (None, Some(signal)),
                None => (None, None),
            };
            Ok(WaitOutcome { met: true, status: waited.status.into(), exit_code, signal })
        }
        // the time is over: that is an answer, not an error
        Err(failure) if failure.code == Code::TimedOut => {
            let layers: Layers = call.ask(Request::Show { name }).await?;
            Ok(WaitOutcome { met: false, status: layers.session.status.into(), exit_code: None, signal: None })
        }
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_of_tmux_and_ours() {
        for (name, expected) in [
            ("Enter", &b"\r"[..]),
            ("C-c", b"\x03"),
            ("M-x", b"\x1bx"),
            ("BSpace", b"\x7f"),
            ("PPage", b"\x1b[5~"),
            ("DC", b"\x1b[3~"),
            ("BTab", b"\x1b[Z"),
            ("Up", b"\x1b[A"),
            ("F5", b"\x1b[15~"),
            ("ctrl-d", b"\x04"),
            ("y", b"y"),
        ] {
            assert_eq!(key_bytes(name).expect(name), expected, "{name}");
        }
        let failure = key_bytes("hello world").expect_err("not a key");
        assert!(failure.message.contains("`text`"), "{failure}");
    }
}
