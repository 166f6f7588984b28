//! exec, eval, result, cancel, state, history, and the reset of runtimes.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine;
use clap::{Args, Subcommand};
use shared::command::Command;
use shared::exec::{ExecCall, ExecResult, HistoryEntry, Language, OutputPage, Place, ResetDone, Stage, State, States, Stream, Verb};
use shared::id::ExecId;
use shared::message::{Code, Failure, Push, Request};
use shared::paths::Paths;
use shared::policy::Limit;
use shared::text::{fit, visible};
use tokio::signal::unix::{SignalKind, signal};

use super::session::{self, workspace};
use super::{parse, print, print_json, table};
use crate::client::Incoming;
use crate::{connect, environment};

/// The call itself failed: nothing is known of the code's own exit code.
const CALL_FAILED: u8 = 125;

/// The call's `--timeout` ended it.
const TIMED_OUT: u8 = 124;

/// `result --wait` and a soft limit of none: as long as it takes.
const FOR_EVER_MS: u64 = 10 * 365 * 86_400_000;

#[derive(Subcommand)]
pub enum ExecCommand {
    /// Run code in a persistent bash, python or node; variables, folder and imports stay
    #[command(
        after_help = "The exit code is the code's own; 125 if the call failed, 124 if --timeout ended it. Each folder has runtimes of its own, and so has each session (-s). Calls to one runtime wait for each other; different ones run at the same time.\n\nExamples:\n  sessions-tui exec 'cd src && export CI=1'\n  sessions-tui exec 'pwd; echo $CI'                     goes on where the last call left it\n  sessions-tui exec -l python 'import math; x = math.pi'\n  sessions-tui exec -s api -l node --json 'const fs = require(\"fs\"); await fs.promises.readdir(\".\")'\n  sessions-tui exec --detach 'make all' && sessions-tui result EXEC_ID --wait\n  sessions-tui exec - < script.sh"
    )]
    Exec(CallArgs),
    /// Give the value of an expression, in python if nothing else is said
    #[command(
        after_help = "Examples:\n  sessions-tui eval 'x * 2'\n  sessions-tui eval -l node --json '[1, 2, 3].map(n => n * n)'\n  sessions-tui eval -l bash 'echo $HOME'"
    )]
    Eval(CallArgs),
    /// Show an exec's result
    #[command(
        after_help = "Examples:\n  sessions-tui result EXEC_ID\n  sessions-tui result EXEC_ID --wait\n  sessions-tui result EXEC_ID --stream stdout --offset 1048576 > rest"
    )]
    Result {
        /// The call, as its result or `history` names it
        #[arg(value_name = "EXEC_ID", value_parser = exec_id)]
        exec: ExecId,
        /// Wait until it has ended, and show what it prints meanwhile
        #[arg(long)]
        wait: bool,
        /// Only this stream, its exact bytes: stdout or stderr
        #[arg(long, value_parser = stream)]
        stream: Option<Stream>,
        /// From this byte of the stream on
        #[arg(long, value_name = "BYTES")]
        offset: Option<u64>,
        /// At most this many bytes of the stream
        #[arg(long, value_name = "BYTES")]
        limit: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Interrupt a call, or take it out of the queue
    #[command(
        after_help = "As ctrl-c: the runtime keeps its state if the code lets itself be interrupted; if not, it is ended.\n\nExample:\n  sessions-tui cancel EXEC_ID"
    )]
    Cancel {
        /// The call, as its result or `history` names it
        #[arg(value_name = "EXEC_ID", value_parser = exec_id)]
        exec: ExecId,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What runtimes have in them: folder, variables, imports, names, history
    #[command(after_help = "Examples:\n  sessions-tui state\n  sessions-tui state -s api -l python --json")]
    State {
        #[command(flatten)]
        place: PlaceArgs,
        /// Only this language: bash, python or node
        #[arg(long, short, value_name = "LANG", value_parser = parse::language)]
        language: Option<Language>,
        /// How many calls of the history [default: 100]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Values of variables that look like secrets too
        #[arg(long)]
        reveal: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The calls of a folder or a session; with -l terminal the commands typed into its shell
    #[command(
        after_help = "Examples:\n  sessions-tui history\n  sessions-tui history -s api -l bash --limit 20\n  sessions-tui history api\n  sessions-tui history -s api -l terminal --json"
    )]
    History {
        /// Commands typed into the shell of this session: the same as -s NAME -l terminal
        #[arg(conflicts_with_all = ["session", "workspace", "language"])]
        name: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
        /// Only this language: bash, python or node; terminal: what was typed into the session's shell
        #[arg(long, short, value_name = "LANG", value_parser = parse::history_of)]
        language: Option<parse::HistoryOf>,
        /// At most this many, the newest [default: 100]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Whose runtimes are meant.
#[derive(Args)]
pub struct PlaceArgs {
    /// The runtimes of this session
    #[arg(long, short, value_name = "NAME", conflicts_with = "workspace")]
    session: Option<String>,
    /// The runtimes of this folder [default: where you are]
    #[arg(long, short, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl PlaceArgs {
    pub fn new(session: Option<String>, workspace: Option<PathBuf>) -> Self {
        Self { session, workspace }
    }

    pub fn place(self) -> Result<Place, Failure> {
        match self.session {
            Some(name) => Ok(Place::Session(name)),
            None => Ok(Place::Workspace(workspace(self.workspace)?)),
        }
    }
}

#[derive(Args)]
pub struct CallArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// bash, python or node [default: bash for exec, python for eval]
    #[arg(long, short, value_name = "LANG", value_parser = parse::language)]
    language: Option<Language>,
    /// Interrupt it after this long (500ms, 30s, 10m)
    #[arg(long, value_name = "DURATION", value_parser = parse::duration_ms)]
    timeout: Option<u64>,
    /// Leave it running and return after this long, or none [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = Limit::parse)]
    soft_limit: Option<Limit>,
    /// Do not wait: print its id and return
    #[arg(long, short)]
    detach: bool,
    /// What the code reads from its standard input, which is empty otherwise
    #[arg(long, value_name = "TEXT")]
    stdin: Option<String>,
    /// The result as JSON, when it is there
    #[arg(long)]
    json: bool,
    /// The code; - reads it from standard input, -- comes before code that begins with a dash
    #[arg(value_name = "CODE", allow_negative_numbers = true)]
    code: std::ffi::OsString,
}

fn exec_id(text: &str) -> Result<ExecId, String> {
    ExecId::parse(text).ok_or_else(|| format!("{text:?} is not the id of a call: `sessions-tui history --json` shows them"))
}

fn stream(text: &str) -> Result<Stream, String> {
    [Stream::Stdout, Stream::Stderr].into_iter().find(|stream| stream.as_str() == text).ok_or_else(|| "stdout or stderr".to_owned())
}

/// Carries the command out; calls have exit codes of their own.
pub async fn perform(paths: &Paths, command: ExecCommand) -> Result<ExitCode, Failure> {
    let done = match command {
        ExecCommand::Exec(args) => return Ok(or_call_failed(call(paths, args, Verb::Exec).await)),
        ExecCommand::Eval(args) => return Ok(or_call_failed(call(paths, args, Verb::Eval).await)),
        ExecCommand::Result { exec, wait, stream, offset, limit, json } => {
            if stream.is_some() || offset.is_some() || limit.is_some() {
                return pages(paths, exec, stream.unwrap_or(Stream::Stdout), offset.unwrap_or(0), limit, json)
                    .await
                    .map(|()| ExitCode::SUCCESS);
            }
            return result(paths, exec, wait, json).await;
        }
        ExecCommand::Cancel { exec, json } => {
            let result: ExecResult = connect::call(paths, Request::Cancel { exec }).await?;
            if json { print_json(&result) } else { print(&format!("{}\n", visible(&ending(&result)))) }
        }
        ExecCommand::State { place, language, limit, reveal, json } => {
            let place = place.place()?;
            let states: States = connect::call(paths, Request::State { place: place.clone(), language, history: limit, reveal }).await?;
            if json { print_json(&states) } else { print(&states_text(&states, &place)) }
        }
        ExecCommand::History { name: Some(name), limit, json, .. } => commands(paths, name, limit, json).await,
        ExecCommand::History { place, language: Some(parse::HistoryOf::Terminal), limit, json, .. } => match place.place()? {
            Place::Session(name) => commands(paths, name, limit, json).await,
            Place::Workspace(_) => Err(Failure::usage("-l terminal needs a session: say which with -s NAME")),
        },
        ExecCommand::History { place, language, limit, json, .. } => {
            let place = place.place()?;
            let language = language.and_then(parse::HistoryOf::language);
            let entries: Vec<HistoryEntry> = connect::call(paths, Request::History { place, language, limit }).await?;
            if json {
                print_json(&entries)
            } else if entries.is_empty() {
                eprintln!("no calls yet: `sessions-tui exec CODE` makes one");
                Ok(())
            } else {
                let width = session::width();
                print(&entries.iter().map(|entry| history_line(entry, width)).collect::<String>())
            }
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Fresh runtimes for a place.
pub async fn reset(paths: &Paths, place: PlaceArgs, language: Option<Language>, json: bool) -> Result<(), Failure> {
    let place = place.place()?;
    let done: ResetDone = connect::call(paths, Request::ResetRuntime { place, language }).await?;
    if json { print_json(&done) } else { print(&format!("{}\n", visible(&done.note))) }
}

fn or_call_failed(outcome: Result<ExitCode, Failure>) -> ExitCode {
    outcome.unwrap_or_else(|failure| {
        eprintln!("error: {}", visible(&failure.message));
        ExitCode::from(if failure.code == Code::Usage { 2 } else { CALL_FAILED })
    })
}

async fn call(paths: &Paths, args: CallArgs, verb: Verb) -> Result<ExitCode, Failure> {
    let code = read_code(args.code)?;
    let (is_detached, json) = (args.detach, args.json);
    let soft_limit_ms = match args.soft_limit {
        _ if is_detached => Some(0),
        Some(Limit::None) => Some(FOR_EVER_MS),
        Some(Limit::After(span)) => Some(span.ms),
        None => None,
    };
    let id = ExecId::new();
    let call = ExecCall {
        place: args.place.place()?,
        id: Some(id),
        code,
        verb,
        language: args.language,
        stdin: args.stdin,
        timeout_ms: args.timeout,
        soft_limit_ms,
        stream: !json && !is_detached,
        output_limit: None,
        environment: environment::inherited(),
        umask: Some(environment::umask()),
    };
    call.check()?;
    let result = follow(paths, id, Request::Exec(call), Follow { verb, wait_ms: soft_limit_ms }).await?;
    if json {
        print_json(&result)?;
    } else if is_detached {
        print(&format!("{id}\n"))?;
    } else {
        say(&result, verb)?;
    }
    Ok(if is_detached { ExitCode::SUCCESS } else { exit_code(&result) })
}

fn read_code(given: std::ffi::OsString) -> Result<String, Failure> {
    let not_text =
        |at: usize| Failure::usage(format!("the code is not UTF-8 from byte {at} on: write such bytes with escapes, as in printf '\\xff'"));
    if given != "-" {
        return given.into_string().map_err(|code| {
            let valid = std::str::from_utf8(code.as_encoded_bytes()).map_or_else(|error| error.valid_up_to(), str::len);
            not_text(valid)
        });
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    String::from_utf8(bytes).map_err(|error| not_text(error.utf8_error().valid_up_to()))
}

/// How a call is followed.
struct Follow {
    verb: Verb,
    wait_ms: Option<u64>,
}

/// Sends a call and shows what it prints until it is answered. ctrl-c interrupts the code, a second one leaves it alone. A daemon that goes away meanwhile changes nothing: the next one
/// is asked for the rest.
async fn follow(paths: &Paths, id: ExecId, first: Request, follow: Follow) -> Result<ExecResult, Failure> {
    let is_streamed = matches!(&first, Request::Exec(ExecCall { stream: true, .. }) | Request::Result { stream: true, .. });
    let mut shown = Shown::default();
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| Failure::failed(error.to_string()))?;
    let mut interrupted = 0;
    let mut request = first.clone();
    let mut tries = 0;
    loop {
        let mut client = connect::send_first(paths, &request).await?;
        shown.again();
        let outcome = loop {
            let incoming = tokio::select! {
                incoming = client.receive() => incoming,
                _ = interrupts.recv() => {
                    interrupted += 1;
                    if interrupted > 1 {
                        let text = format!("it goes on: `sessions-tui result {id} --wait` waits for it");
                        return Err(Failure::failed(text));
                    }
                    // as in a terminal; what comes of it is awaited
                    let mut other = connect::send_first(paths, &Request::Cancel { exec: id }).await?;
                    tokio::spawn(async move { while other.receive().await.is_ok_and(|incoming| !matches!(incoming, Incoming::Answer(_))) {} });
                    continue;
                }
            };
            match incoming {
                Ok(Incoming::Push(Push::ExecOutput { exec, stream, base64 })) if exec == id => shown.show(stream, &base64)?,
                Ok(Incoming::Answer(answer)) => break Some(answer.understand::<ExecResult>()),
                Ok(_) => {}
                Err(_) => break None,
            }
        };
        match outcome {
            // it never got there
            Some(Err(failure)) if failure.code == Code::NotFound && tries > 0 && matches!(first, Request::Exec(_)) => {
                request = first.clone();
            }
            Some(outcome) => return outcome,
            None if tries < 20 => {
                let wait_ms = Some(follow.wait_ms.unwrap_or(FOR_EVER_MS));
                request = Request::Result { exec: id, wait_ms, output_limit: None, stream: is_streamed };
            }
            None => {
                return Err(Failure::failed(format!(
                    "the daemon goes away again and again: `sessions-tui result {id} --wait` has the {}",
                    follow.verb.as_str()
                )));
            }
        }
        tries += 1;
    }
}

/// How much of each stream has been shown: after a reconnect it comes again from its beginning.
#[derive(Default)]
struct Shown {
    done: [u64; 2],
    seen: [u64; 2],
}

impl Shown {
    fn again(&mut self) {
        self.seen = [0; 2];
    }

    fn show(&mut self, stream: Stream, base64: &str) -> Result<(), Failure> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(base64).map_err(|error| Failure::failed(error.to_string()))?;
        let which = usize::from(stream == Stream::Stderr);
        let skip = self.done[which].saturating_sub(self.seen[which]).min(bytes.len() as u64) as usize;
        self.seen[which] += bytes.len() as u64;
        self.done[which] = self.done[which].max(self.seen[which]);
        let written = match stream {
            Stream::Stdout => write_all(&mut std::io::stdout().lock(), &bytes[skip..]),
            Stream::Stderr => write_all(&mut std::io::stderr().lock(), &bytes[skip..]),
        };
        match written {
            // a reader that has gone needs no more; the call goes on
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            written => written.map_err(|error| Failure::failed(format!("standard output: {error}"))),
        }
    }
}

fn write_all(out: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

/// What is to be said beside the output: the value of an expression, and whatever is out of the ordinary.
fn say(result: &ExecResult, verb: Verb) -> Result<(), Failure> {
    // a bash's value is what it printed
    let shows_value = result.language != Language::Bash && (verb == Verb::Eval || rustix::termios::isatty(rustix::stdio::stdout()));
    if let Some(value) = result.value.as_ref().filter(|_| shows_value) {
        print(&format!("{value}\n"))?;
    }
    if result.running || result.timed_out || result.interrupted || result.ended || result.exit_code.is_none() {
        eprintln!("{}", visible(&ending(result)));
    }
    if let Some(note) = result.note.as_ref().filter(|_| !result.running) {
        eprintln!("{}", visible(note));
    }
    Ok(())
}

/// How it stands, in a sentence.
fn ending(result: &ExecResult) -> String {
    match (&result.error, result.exit_code) {
        (Some(error), _) => error.clone(),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => result.note.clone().unwrap_or_else(|| "it goes on".to_owned()),
    }
}

fn exit_code(result: &ExecResult) -> ExitCode {
    ExitCode::from(match result.exit_code {
        _ if result.timed_out => TIMED_OUT,
        Some(code) => code as u8,
        None => CALL_FAILED,
    })
}

async fn result(paths: &Paths, exec: ExecId, wait: bool, json: bool) -> Result<ExitCode, Failure> {
    let wait_ms = wait.then_some(FOR_EVER_MS);
    let request = Request::Result { exec, wait_ms, output_limit: None, stream: !json };
    let result = follow(paths, exec, request, Follow { verb: Verb::Exec, wait_ms }).await?;
    if json {
        print_json(&result)?;
        return Ok(exit_code_of_result(&result));
    }
    say(&result, if result.value.is_some() { Verb::Eval } else { Verb::Exec })?;
    if result.missing_bytes > 0 {
        return Err(Failure::failed(format!(
            "{} bytes of what it printed cannot be read back: they were forgotten or dropped, or the recording is damaged \
             (`sessions-tui show {}` lists what is missing)",
            result.missing_bytes,
            visible(&result.name)
        )));
    }
    Ok(exit_code_of_result(&result))
}

/// Of a call that still runs, that could be told; otherwise the call's own.
fn exit_code_of_result(result: &ExecResult) -> ExitCode {
    if result.running { ExitCode::SUCCESS } else { exit_code(result) }
}

/// A stream from an offset on, page by page, as it is.
async fn pages(paths: &Paths, exec: ExecId, stream: Stream, offset: u64, limit: Option<u64>, json: bool) -> Result<(), Failure> {
    let mut client = connect::connect(paths).await?;
    let mut at = offset;
    let mut left = limit.unwrap_or(u64::MAX);
    loop {
        let page: OutputPage = client.call(Request::Output { exec, stream, offset: at, limit: Some(left) }).await?;
        if json {
            return print_json(&page);
        }
        if page.offset > at {
            eprintln!("the first {} bytes have been dropped from the recording", page.offset);
        }
        let bytes = base64::engine::general_purpose::STANDARD.decode(&page.base64).map_err(|error| Failure::failed(error.to_string()))?;
        match write_all(&mut std::io::stdout().lock(), &bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(|error| Failure::failed(format!("standard output: {error}")))?,
        }
        left -= bytes.len() as u64;
        at = page.next_offset;
        if bytes.is_empty() || left == 0 || at >= page.bytes {
            return Ok(());
        }
    }
}

fn states_text(states: &States, place: &Place) -> String {
    if states.runtimes.is_empty() {
        let whose = match place {
            Place::Session(name) => format!("session {}", visible(name)),
            Place::Workspace(folder) => visible(folder),
        };
        return format!("{whose} has no runtimes yet: `sessions-tui exec CODE` starts one\n");
    }
    states.runtimes.iter().map(state_text).collect()
}

fn state_text(state: &State) -> String {
    let how = match (state.alive, state.busy) {
        (true, true) => "busy",
        (true, false) => "idle",
        (false, _) => "not running: the next call starts it",
    };
    let mut out = format!("{} {how}\n", state.language);
    let version = state.version.as_ref().map(|version| format!(", {} {version}", state.language)).unwrap_or_default();
    if let Some(pid) = state.pid {
        out += &table::field("process", &format!("pid {pid}{version}"));
    }
    out += &table::field("folder", &state.working_dir);
    for (name, value) in &state.env_vars {
        out += &table::field("variable", &format!("{name}={value}"));
    }
    for name in &state.env_removed {
        out += &table::field("removed", name);
    }
    if !state.imports.is_empty() {
        out += &table::field("imports", &state.imports.join(" "));
    }
    if !state.names.is_empty() {
        out += &table::field("names", &state.names.join(" "));
    }
    out += &table::field("state version", &state.state_version.to_string());
    out += &table::field("calls", &state.history.len().to_string());
    if let Some(at) = state.last_activity {
        out += &table::field("last activity", &at.to_string());
    }
    out
}

/// What was typed into a session's shell.
async fn commands(paths: &Paths, name: String, limit: Option<u32>, json: bool) -> Result<(), Failure> {
    let found: Vec<Command> = connect::call(paths, Request::Commands { name, limit }).await?;
    if json {
        return print_json(&found);
    }
    if found.is_empty() {
        eprintln!("no commands yet: bash, zsh and fish tell of what is typed into them");
        return Ok(());
    }
    let width = session::width();
    print(&found.iter().map(|found| fitted(command_line(found), width) + "\n").collect::<String>())
}

/// One line a command: when, how it ended, how long it took, who typed it, where, what it was.
fn command_line(found: &Command) -> String {
    let ended = match (found.exit_code, found.running) {
        (Some(0), _) => "✓".to_owned(),
        (Some(code), _) => format!("✗ {code}"),
        (None, true) => "…".to_owned(),
        (None, false) => "?".to_owned(),
    };
    let took = found.duration.map(table::length).unwrap_or_default();
    let at = found.started_at.to_zoned(jiff::tz::TimeZone::system()).strftime("%m-%d %H:%M:%S").to_string();
    let author = found.author.map(|author| author.to_string()).unwrap_or_default();
    let home = std::env::var("HOME").ok();
    let cwd = found.cwd.as_deref().map(|cwd| visible(&table::short_path(cwd, home.as_deref()))).unwrap_or_default();
    let text = visible(&found.command.replace('\n', " ⏎ "));
    format!("{at}  {ended:5}  {took:>8}  {author:6}  {cwd}  {text}")
}

/// One line a call: when, where to, how it ended, how long it took, what it was.
fn history_line(entry: &HistoryEntry, width: Option<usize>) -> String {
    let ended = match (entry.stage, entry.exit_code) {
        (Stage::Finished, Some(0)) => "✓".to_owned(),
        (Stage::Finished, Some(code)) => format!("✗ {code}"),
        (Stage::Finished | Stage::Lost, _) => "lost".to_owned(),
        (Stage::Cancelled, _) => "cancelled".to_owned(),
        (Stage::Queued | Stage::Running, _) => "…".to_owned(),
    };
    let took = entry.duration.map(|ms| if ms < 1000.0 { format!("{ms:.1}ms") } else { format!("{:.1}s", ms / 1000.0) }).unwrap_or_default();
    let at = entry.started_at.to_zoned(jiff::tz::TimeZone::system()).strftime("%m-%d %H:%M:%S").to_string();
    let code = visible(&entry.command.replace('\n', " ⏎ "));
    // where there is no room for both, what was run says more
    let id = if width.is_some_and(|width| width < NARROW) { String::new() } else { format!("{}  ", entry.exec_id) };
    fitted(format!("{at}  {:6}  {ended:9}  {took:>8}  {:6}  {id}{code}", entry.language, entry.author), width) + "\n"
}

/// Columns below which an id leaves no room for the code.
const NARROW: usize = 120;

fn fitted(line: String, width: Option<usize>) -> String {
    match width {
        Some(width) => fit(&line, width),
        None => line,
    }
}
