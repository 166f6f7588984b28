//! import: a recording from elsewhere is written like one of ours, and becomes a session that has ended.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use base64::Engine;
use serde_json::json;
use shared::event::Author;
use shared::id::RuntimeId;
use shared::message::{Answer, Changed, Code, Failure, Import, to};
use shared::name;
use shared::replay::{Record, What};
use shared::runtime::{ExitStatus, Keeps};
use shared::screen::Size;

use super::Caller;
use crate::context::Context;
use crate::files;
use crate::launch;
use crate::lifecycle::End;
use crate::recording::{self, Writer, encode_exit, encode_size, kind};
use crate::store::{EndingAt, New, Program};

/// A piece of output that is larger is written in several.
const MAX_BODY: usize = 256 << 10;

/// A recording that is not whole yet: it goes with its connection.
pub struct Importing {
    runtime: RuntimeId,
    dir: PathBuf,
    writer: Writer,
    name: String,
    here: String,
    command: Option<String>,
    title: Option<String>,
    began_at: i64,
    size: Size,
    first_size: Size,
    time: u64,
    is_kept: bool,
}

impl Drop for Importing {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

pub async fn step(context: &Context, caller: &Arc<Caller>, id: u64, step: Import, author: Author) -> Result<Answer, Failure> {
    let take = || caller.import.lock().unwrap_or_else(PoisonError::into_inner).take();
    let keep = |importing: Importing| *caller.import.lock().unwrap_or_else(PoisonError::into_inner) = Some(importing);
    match step {
        Import::Begin { .. } => {
            drop(take());
            keep(begin(context, step).await?);
            Ok(Answer::to::<to::Import>(id, Ok(None)))
        }
        Import::Records { records } => {
            let importing = take().ok_or_else(not_begun)?;
            // the disk may be slow, and others are not to wait for it
            let written = tokio::task::spawn_blocking(move || write(importing, records)).await;
            keep(written.map_err(|error| Failure::failed(error.to_string()))??);
            Ok(Answer::to::<to::Import>(id, Ok(None)))
        }
        Import::End { exit_code } => {
            let importing = take().ok_or_else(not_begun)?;
            Ok(Answer::to::<to::Import>(id, end(context, importing, exit_code, author).await.map(Some)))
        }
    }
}

fn not_begun() -> Failure {
    Failure::usage("an import begins with the step \"begin\"")
}

async fn begin(context: &Context, step: Import) -> Result<Importing, Failure> {
    let Import::Begin { name, called, here, began_at, size, command, title } = step else { return Err(not_begun()) };
    let name = match name {
        Some(name) => {
            let name = name::normalise(&name).map_err(Failure::usage)?;
            if context.store.free_name(name.clone()).await? != name && context.store.find_exact(name.clone()).await.is_ok() {
                return Err(Failure::usage(format!("there is a thread called {name} already: give the import another name with -n")));
            }
            name
        }
        None => context.store.free_name(called.unwrap_or_else(|| "import".to_owned())).await?,
    };
    let runtime = RuntimeId::new();
    context.upkeep.is_importing(runtime);
    let dir = context.paths.recording(runtime);
    let began_at = began_at.unwrap_or_else(jiff::Timestamp::now).as_microsecond();
    let size = size.clamped();
    let cannot = |error: std::io::Error| Failure::failed(format!("the recording cannot be written: {error}"));
    files::private_dir(&dir).map_err(cannot)?;
    files::write_private(&unfinished(&dir), b"").map_err(cannot)?;
    let writer = Writer::create(&dir, runtime.to_string(), began_at, size, u64::MAX).map_err(cannot)?;
    Ok(Importing { runtime, dir, writer, name, here, command, title, began_at, size, first_size: size, time: 0, is_kept: false })
}

/// Says that a folder is of an import that did not end.
fn unfinished(dir: &Path) -> PathBuf {
    dir.join(recording::UNFINISHED)
}

fn write(mut importing: Importing, records: Vec<Record>) -> Result<Importing, Failure> {
    for record in records {
        importing.time = importing.time.max(record.time);
        let bytes = |base64: &str| {
            base64::engine::general_purpose::STANDARD.decode(base64).map_err(|error| Failure::usage(format!("\"base64\": {error}")))
        };
        let (kind, body) = match record.what {
            What::Output { base64 } => (kind::OUTPUT, bytes(&base64)?),
            What::Input { base64 } => (kind::INPUT, bytes(&base64)?),
            What::Marker { text } => (kind::MARKER, text.into_bytes()),
            What::Resize { size } => {
                importing.size = size.clamped();
                (kind::RESIZE, encode_size(importing.size).to_vec())
            }
            What::Gap { bytes, .. } => (kind::GAP, bytes.to_le_bytes().to_vec()),
            What::Call { .. } | What::Result { .. } | What::Exit { .. } => continue,
        };
        for part in body.chunks(MAX_BODY) {
            importing.append(kind, part)?;
        }
    }
    Ok(importing)
}

impl Importing {
    fn append(&mut self, kind: u8, body: &[u8]) -> Result<(), Failure> {
        self.writer
            .append(kind, self.time, self.size, body)
            .map_err(|error| Failure::failed(format!("the recording cannot be written: {error}; nothing was imported")))
    }
}

async fn end(context: &Context, mut importing: Importing, exit_code: i32, author: Author) -> Result<Changed, Failure> {
    let status = ExitStatus::Code(exit_code);
    importing.append(kind::EXIT, &encode_exit(status))?;
    if !importing.dir.exists() {
        return Err(Failure::failed("the recording was removed while it was taken in: nothing was imported"));
    }
    let program = Program {
        // as words, for lists; it is never run
        argv: match importing.command.as_deref().unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>() {
            words if words.is_empty() => vec!["(imported)".to_owned()],
            words => words,
        },
        is_named: true,
        env_delta: Vec::new(),
        size: Some(importing.first_size),
        umask: None,
        keeps: Keeps::Output,
    };
    let recorded_at = jiff::Timestamp::from_microsecond(importing.began_at).unwrap_or_default();
    let imported = json!({"title": importing.title, "recorded_at": recorded_at});
    let asked = New {
        name: Some(importing.name.clone()),
        here: importing.here.clone(),
        program: Some(program),
        metadata: [("imported".to_owned(), imported)].into_iter().collect(),
        runtime: importing.runtime,
        ..launch::plain(context, author)
    };
    let opened = context.store.open_session(asked).await?;
    if opened.launch.is_none() {
        return Err(Failure::new(Code::Status, format!("{} is in use by now: nothing was imported", opened.session.name)));
    }
    importing.is_kept = true;
    let now = jiff::Timestamp::now();
    let (end, bytes) = (importing.writer.end(), importing.runtime);
    context.store.runtime_has_ended(bytes, End::Exited(status), EndingAt { now, last_activity: now, screen_at: None }, end).await?;
    let _ = std::fs::remove_file(unfinished(&importing.dir));
    context.upkeep.look_at(importing.runtime);
    // it is not news to whoever brings it
    context.store.known(opened.session.id).await?;
    let session = context.store.session(opened.session.id).await?;
    Ok(Changed { session, note: None, previous: None })
}
