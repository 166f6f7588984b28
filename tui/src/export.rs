//! A recording as a file for others: read from the daemon part by part, secrets covered on the way, written in one of the formats.
//! What is written is either text and numbers (asciicast, text) or cells (HTML); nothing here draws on the user's terminal.

mod cast;
mod covered;
mod html;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use shared::message::{Failure, Request};
use shared::paths::Paths;
use shared::redact::Redactor;
use shared::replay::{MarkKind, Moment, Of, Outline, Records, Seek, What};
use shared::runtime::Hole;
use shared::screen::{Keyframe, Screen};

use crate::client::Client;

/// Asked for at a time.
const BATCH: u32 = 512 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// asciicast version 3.
    AsciicastV2,
    AsciicastV3,
    Text,
    Html,
}

impl Format {
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "asciicast" | "asciicast-v2" | "cast" => Ok(Self::AsciicastV2),
            "asciicast-v3" => Ok(Self::AsciicastV3),
            "text" | "txt" => Ok(Self::Text),
            "html" => Ok(Self::Html),
            _ => Err("formats are asciicast (version 3), asciicast-v2, text and html".into()),
        }
    }

    /// By the end of a file's name.
    pub fn of_file(name: &str) -> Option<Self> {
        let (_, end) = name.rsplit_once('.')?;
        match end.to_ascii_lowercase().as_str() {
            // what asciinema before 3 plays too
            "cast" => Some(Self::AsciicastV2),
            "txt" | "text" | "log" => Some(Self::Text),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

pub struct Wish {
    pub of: Of,
    pub format: Format,
    /// Without one, everything is written as it was recorded.
    pub redactor: Option<Redactor>,
    /// Pauses are cut to this, in microseconds.
    pub idle_limit: Option<u64>,
}

/// Something that was recorded, ready to be written.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Microseconds since the beginning, pauses cut.
    pub time: u64,
    pub what: Said,
}

#[derive(Clone, Debug)]
pub enum Said {
    Output(Vec<u8>),
    Input(Vec<u8>),
    Resize(shared::screen::Size),
    Marker(String),
    Exit(i32),
}

/// A format takes pieces in order.
pub trait Sink {
    fn take(&mut self, piece: Piece, out: &mut dyn Write) -> io::Result<()>;
    /// Everything has been given.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// Writes a recording; `progress` hears how much of it is done, in parts of a thousand.
pub async fn export(client: &mut Client, wish: Wish, out: &mut dyn Write, mut progress: impl FnMut(u64)) -> Result<Outline, Failure> {
    let mut outline: Outline = client.call(Request::Replay(wish.of)).await?;
    if let Some(redactor) = &wish.redactor {
        // headers and titles are read first of all
        outline.name = redactor.cover(&outline.name);
        outline.command = outline.command.iter().map(|word| redactor.cover(word)).collect();
    }
    let start = Seek::Offset { offset: outline.first.offset };
    let moment: Moment = client.call(Request::Seek { runtime: outline.runtime, seek: start }).await?;
    let screen = restore(&moment)?;
    let mut sink: Box<dyn Sink> = match wish.format {
        Format::AsciicastV3 => Box::new(cast::Cast::new(&outline, screen.size(), shared::asciicast::Version::V3)),
        Format::AsciicastV2 => Box::new(cast::Cast::new(&outline, screen.size(), shared::asciicast::Version::V2)),
        Format::Text => Box::new(text::Text::new(screen.size())),
        Format::Html => Box::new(html::Html::new(&outline, screen.size())),
    };
    let mut covered = covered::Covered::new(wish.redactor, &mut *sink, out);
    let written = |error: io::Error| Failure::failed(format!("writing: {error}"));
    // of a recording whose beginning was dropped, what stood there then
    if outline.first.time > 0 {
        covered.take(Piece { time: 0, what: Said::Output(screen.keyframe().paint) }).map_err(written)?;
    }
    let mut clock = Clock { before: outline.first.time, time: 0, limit: wish.idle_limit };
    let mut commands = outline.marks.iter().filter(|mark| mark.kind == MarkKind::Command && outline.language.is_none()).peekable();
    let mut from = outline.first.offset;
    loop {
        let request = Request::Records { runtime: outline.runtime, from, most: Some(BATCH), wait_ms: None };
        let records: Records = client.call(request).await?;
        for record in records.records {
            if record.end > outline.end.offset {
                break;
            }
            from = record.end;
            if let What::Gap { bytes, is_lost: true } = record.what {
                note_missing(&mut outline.missing, Hole { offset: record.end.saturating_sub(bytes), bytes });
            }
            let time = clock.at(record.time);
            while let Some(mark) = commands.next_if(|mark| mark.offset.is_some_and(|offset| offset <= record.end)) {
                covered.take(Piece { time, what: Said::Marker(mark.text.clone()) }).map_err(written)?;
            }
            if let Some(what) = said(record.what) {
                covered.take(Piece { time, what }).map_err(written)?;
            }
        }
        let span = (outline.end.offset - outline.first.offset).max(1);
        progress((from - outline.first.offset.min(from)) * 1000 / span);
        // a live one is written as far as it was when it was asked for
        if records.at_end || from >= outline.end.offset {
            break;
        }
    }
    covered.finish().map_err(written)?;
    progress(1000);
    Ok(outline)
}

/// Whether a file that is there already may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    No,
    Yes,
}

/// Writes a recording to a file, which is whole as soon as it is there; gives how large it is.
pub async fn to_file(
    client: &mut Client,
    wish: Wish,
    path: &Path,
    overwrite: Overwrite,
    progress: impl FnMut(u64),
) -> Result<(Outline, u64), Failure> {
    let cannot = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    if path.exists() && overwrite == Overwrite::No {
        return Err(Failure::usage(format!("{} is there already: --force writes over it, or give another name", path.display())));
    }
    // beside it first
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let file = File::options().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(cannot)?;
    let mut out = BufWriter::new(file);
    let outcome = match export(client, wish, &mut out, progress).await {
        Ok(outline) => out.flush().and_then(|()| std::fs::rename(&unfinished, path)).map(|()| outline).map_err(cannot),
        Err(failure) => Err(failure),
    };
    if outcome.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    outcome.map(|outline| (outline, bytes))
}

/// The rules of the settings; without being able to read those, nothing is given away.
pub fn redactor(paths: &Paths) -> Result<Redactor, Failure> {
    let (config, warning) = crate::settings::load_config(paths);
    if let Some(warning) = warning {
        let why = warning.trim_end_matches("; the defaults are used");
        return Err(Failure::usage(format!("{why}: your rules for secrets are not known, so nothing is exported; mend it, or give --raw")));
    }
    Redactor::new(&config.recording.redact.rules).map_err(Failure::usage)
}

/// The screen of a moment.
pub fn restore(moment: &Moment) -> Result<Screen, Failure> {
    let bytes = BASE64.decode(&moment.keyframe).ok();
    let keyframe = bytes.and_then(|bytes| Keyframe::from_bytes(&bytes));
    keyframe.map(|keyframe| Screen::restore(&keyframe)).ok_or_else(|| Failure::failed("the daemon's answer is not a screen"))
}

fn note_missing(known: &mut Vec<Hole>, found: Hole) {
    if known.iter().all(|hole| hole.offset != found.offset) {
        known.push(found);
    }
}

fn said(what: What) -> Option<Said> {
    let bytes = |base64: &str| BASE64.decode(base64).unwrap_or_default();
    Some(match what {
        What::Output { base64 } => Said::Output(bytes(&base64)),
        What::Input { base64 } => Said::Input(bytes(&base64)),
        What::Resize { size } => Said::Resize(size),
        What::Marker { text } => Said::Marker(text),
        What::Call { code } => Said::Marker(code.lines().next().unwrap_or_default().to_owned()),
        What::Gap { bytes: 0, .. } | What::Result { .. } => return None,
        What::Gap { bytes, is_lost: true } => Said::Marker(format!("{bytes} recorded bytes are missing here")),
        What::Gap { bytes, is_lost: false } => Said::Marker(format!("{bytes} bytes were not recorded here")),
        What::Exit { status } => Said::Exit(match status {
            shared::runtime::ExitStatus::Code(code) => code,
            shared::runtime::ExitStatus::Signal(signal) => 128 + signal,
        }),
    })
}

/// Recorded time to written time: pauses cut.
struct Clock {
    before: u64,
    time: u64,
    limit: Option<u64>,
}

impl Clock {
    fn at(&mut self, recorded: u64) -> u64 {
        let pause = recorded.saturating_sub(self.before);
        self.before = self.before.max(recorded);
        self.time += self.limit.map_or(pause, |limit| pause.min(limit));
        self.time
    }
}
