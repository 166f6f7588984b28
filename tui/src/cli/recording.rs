//! export, import.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use shared::asciicast::{Event, Header, Parser, What};
use shared::exec::Language;
use shared::message::{Changed, Failure, Import, Request};
use shared::paths::Paths;
use shared::policy::Span;
use shared::replay::{self, Of, Outline};
use shared::text::visible;

use super::{parse, print, print_json};
use crate::export::{self, Format, Overwrite, Wish};
use crate::{connect, tty};

/// The whole of a recording of version 1, and a line of the others.
const MAX_LINE: u64 = 256 << 20;

/// Sent at a time: events, and bytes in them.
const BATCH_EVENTS: usize = 4000;
const BATCH_BYTES: usize = 1 << 20;

#[derive(Subcommand)]
pub enum RecordingCommand {
    /// Write a recording as a file: asciicast (plays in asciinema), plain text, or a page that plays it
    #[command(
        after_help = "What looks like a secret (tokens, keys, passwords in addresses) is covered with stars, and whatever your own rules find\n(config.toml, [recording.redact] rules). Rules find what they know: read a file before you give it away.\n\nExamples:\n  sessions-tui export build -o build.cast        asciicast version 2, plays in every asciinema\n  sessions-tui export build -o build.html        one file, plays in any browser\n  sessions-tui export build --format text        as it was seen, to standard output\n  sessions-tui export build --format asciicast-v3 --idle-limit 2s -o build.cast"
    )]
    Export {
        /// The session: its name, its id, or the beginning of either
        name: String,
        /// asciicast (version 3), asciicast-v2, text, html [default: by the file's name, else asciicast]
        #[arg(long, short, value_parser = Format::parse)]
        format: Option<Format>,
        /// The file to write; without it, or for -, standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The transcript of this language's runtime instead of the program
        #[arg(short, long, value_name = "LANG", value_parser = parse::language)]
        language: Option<Language>,
        /// Cut pauses to this (2s, 500ms)
        #[arg(long, value_name = "DURATION", value_parser = Span::parse)]
        idle_limit: Option<Span>,
        /// As it was recorded, secrets and all
        #[arg(long)]
        raw: bool,
        /// Write over a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Take in an asciicast (versions 1 to 3) as a session that has ended: to replay, to search, to export
    #[command(
        after_help = "Examples:\n  sessions-tui import demo.cast\n  curl -s https://example.org/demo.cast | sessions-tui import - -n demo"
    )]
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// What to call it; without it, by the file's name
        #[arg(short, long)]
        name: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn perform(paths: &Paths, command: RecordingCommand) -> Result<(), Failure> {
    match command {
        RecordingCommand::Export { name, format, output, language, idle_limit, raw, force } => {
            // as everywhere: - is standard output
            let output = output.filter(|path| path.as_os_str() != "-");
            let by_name = || output.as_ref().and_then(|path| Format::of_file(&path.to_string_lossy()));
            let format = format.or_else(by_name).unwrap_or(Format::AsciicastV2);
            let redactor = if raw { None } else { Some(export::redactor(paths)?) };
            let of = Of { name, language, runtime: None };
            let idle_limit = idle_limit.map(|span| span.ms * 1000);
            export(paths, Wish { of, format, redactor, idle_limit }, output.as_deref(), force).await
        }
        RecordingCommand::Import { file, name, json } => import(paths, &file, name, json).await,
    }
}

async fn export(paths: &Paths, wish: Wish, output: Option<&Path>, force: bool) -> Result<(), Failure> {
    let mut client = connect::connect(paths).await?;
    let Some(path) = output else {
        if wish.format != Format::Text && io::stdout().is_terminal() {
            return Err(Failure::usage("this is for a file: give one with -o, or `--format text` for the terminal"));
        }
        let mut out = BufWriter::new(io::stdout());
        let mut bar = Bar::new();
        let outline = export::export(&mut client, wish, &mut out, |done| bar.show(done, 1000)).await?;
        bar.clear();
        match out.flush() {
            // whoever reads has seen enough
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            other => other.map_err(|error| Failure::failed(format!("writing: {error}")))?,
        }
        return refuse_missing(&outline);
    };
    let overwrite = if force { Overwrite::Yes } else { Overwrite::No };
    let mut bar = Bar::new();
    let written = export::to_file(&mut client, wish, path, overwrite, |done| bar.show(done, 1000)).await;
    bar.clear();
    let (outline, bytes) = written?;
    let note = if outline.is_live { ", as far as it was: the session goes on" } else { "" };
    eprintln!("{}: {} written to {}{note}", visible(&outline.name), super::table::bytes(bytes), super::shown(path));
    refuse_missing(&outline)
}

/// A file that lacks a part must not pass for a whole one: what could be read is written, and the exit code says that it is not all.
fn refuse_missing(outline: &Outline) -> Result<(), Failure> {
    let bytes: u64 = outline.missing.iter().map(|hole| hole.bytes).sum();
    if bytes == 0 {
        return Ok(());
    }
    let places = shared::text::count(outline.missing.len(), "place");
    Err(Failure::failed(format!(
        "the export is incomplete: {} of the recording of {} cannot be read, at {places} (`sessions-tui show {}` lists them)",
        super::table::bytes(bytes),
        visible(&outline.name),
        visible(&outline.name)
    )))
}

async fn import(paths: &Paths, file: &Path, name: Option<String>, json: bool) -> Result<(), Failure> {
    let is_stdin = file.as_os_str() == "-";
    let cannot = |error: io::Error| Failure::usage(format!("{}: {error}", visible(&file.to_string_lossy())));
    let (source, size): (Box<dyn Read>, u64) = if is_stdin {
        (Box::new(io::stdin()), 0)
    } else {
        let opened = File::open(file).map_err(cannot)?;
        let meta = opened.metadata().map_err(cannot)?;
        if meta.is_dir() {
            return Err(Failure::usage(format!("{} is a folder", visible(&file.to_string_lossy()))));
        }
        (Box::new(opened), meta.len())
    };
    let mut lines = Lines { source: BufReader::new(source), number: 0, read: 0 };
    let mut parser = Parser::default();
    let first = lines.first().map_err(cannot)?;
    let (header, events) = parser.header(&first).map_err(Failure::usage)?;
    let mut events: VecDeque<Event> = pieces(events).into();
    let mut client = connect::connect(paths).await?;
    let here = super::session::workspace(None)?;
    let called = if is_stdin { None } else { file.file_stem().map(|stem| stem.to_string_lossy().into_owned()) };
    client.call::<()>(Request::Import(begin(&header, name, called, here))).await?;
    let mut bar = Bar::new();
    let mut exit_code = 0;
    loop {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_EVENTS && bytes < BATCH_BYTES {
            if let Some(event) = events.pop_front() {
                bytes += 40 + length(&event);
                batch.push(event);
                continue;
            }
            let Some(line) = lines.next().map_err(cannot)? else { break };
            let event = parser.line(&line).map_err(|why| Failure::usage(format!("line {}: {why}", lines.number)))?;
            events.extend(pieces(event.into_iter().collect()));
        }
        if batch.is_empty() {
            break;
        }
        let records = batch.into_iter().filter_map(|event| record(event, &mut exit_code)).collect();
        client.call::<()>(Request::Import(Import::Records { records })).await?;
        if size > 0 {
            bar.show(lines.read.min(size), size);
        }
    }
    let changed: Changed = client.call(Request::Import(Import::End { exit_code })).await?;
    bar.clear();
    if json {
        return print_json(&changed);
    }
    print(&format!("{}\n", visible(&changed.session.name)))
}

fn begin(header: &Header, name: Option<String>, called: Option<String>, here: String) -> Import {
    Import::Begin {
        name,
        called,
        here,
        began_at: header.timestamp.and_then(|at| jiff::Timestamp::from_second(at).ok()),
        size: header.size,
        command: header.command.clone(),
        title: header.title.clone(),
    }
}

/// Events that each fit into a request: what was printed or typed at once is cut, at borders of characters. The parser keeps other
/// texts short.
fn pieces(events: Vec<Event>) -> Vec<Event> {
    let mut out = Vec::with_capacity(events.len());
    for event in events {
        let time = event.time;
        let mut cut = |text: &str, what: fn(String) -> What| {
            let mut rest = text;
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(rest.floor_char_boundary(BATCH_BYTES));
                out.push(Event { time, what: what(piece.to_owned()) });
                rest = tail;
            }
        };
        match event.what {
            What::Output(text) if text.len() > BATCH_BYTES => cut(&text, What::Output),
            What::Input(text) if text.len() > BATCH_BYTES => cut(&text, What::Input),
            what => out.push(Event { time, what }),
        }
    }
    out
}

fn length(event: &Event) -> usize {
    match &event.what {
        What::Output(text) | What::Input(text) | What::Marker(text) => text.len(),
        What::Resize(_) | What::Exit(_) => 0,
    }
}

fn record(event: Event, exit_code: &mut i32) -> Option<replay::Record> {
    use base64::Engine;
    let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
    let what = match event.what {
        What::Output(text) => replay::What::Output { base64: encode(text) },
        What::Input(text) => replay::What::Input { base64: encode(text) },
        What::Marker(text) => replay::What::Marker { text },
        What::Resize(size) => replay::What::Resize { size },
        What::Exit(code) => {
            *exit_code = code;
            return None;
        }
    };
    Some(replay::Record { end: 0, time: event.time, what })
}

/// Lines of a file that may be anything.
struct Lines {
    source: BufReader<Box<dyn Read>>,
    number: usize,
    read: u64,
}

impl Lines {
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let read = (&mut self.source).take(MAX_LINE).read_until(b'\n', &mut bytes)?;
        if read as u64 == MAX_LINE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long for an asciicast"));
        }
        self.read += read as u64;
        self.number += 1;
        Ok((read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The header; of version 1, which may be written over many lines, the whole.
    fn first(&mut self) -> io::Result<String> {
        let mut text = self.next()?.unwrap_or_default();
        let is_object = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        if !is_object && text.trim_start().starts_with('{') {
            let mut rest = String::new();
            let read = (&mut self.source).take(MAX_LINE).read_to_string(&mut rest)?;
            self.read += read as u64;
            text.push_str(&rest);
        }
        Ok(text)
    }
}

/// How far it is, where somebody looks; nothing for what is over at once.
struct Bar {
    began: std::time::Instant,
    is_shown: bool,
    last: u64,
}

impl Bar {
    /// Shorter than this needs no bar.
    const PATIENCE: std::time::Duration = std::time::Duration::from_millis(400);

    fn new() -> Self {
        Self { began: std::time::Instant::now(), is_shown: false, last: 0 }
    }

    fn show(&mut self, done: u64, all: u64) {
        let percent = done * 100 / all.max(1);
        if !io::stderr().is_terminal() || self.began.elapsed() < Self::PATIENCE || (self.is_shown && percent == self.last) {
            return;
        }
        (self.is_shown, self.last) = (true, percent);
        let cells = tty::window().map_or(80, |size| usize::from(size.cols)).saturating_sub(12).clamp(10, 40);
        let full = (percent as usize * cells / 100).min(cells);
        eprint!("\r{}{} {percent} %", "█".repeat(full), "░".repeat(cells - full));
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            eprint!("\r\x1b[K");
        }
    }
}
