//! A recording is written to a file beside the loop; how far it is, is told.

use std::path::PathBuf;

use shared::message::Failure;
use shared::paths::Paths;
use shared::replay::Of;
use tokio::sync::mpsc;

use crate::connect;
use crate::event::{Event, Turn};
use crate::export::{self, Format, Overwrite, Wish};

/// In a thread of its own: making cells of a large recording is work, and the dashboard goes on meanwhile.
pub fn begin(paths: &Paths, turn: Turn, name: String, format: Format, file: PathBuf, said: mpsc::Sender<Event>) {
    let paths = paths.clone();
    std::thread::spawn(move || {
        let outcome = write(&paths, turn, name, format, &file, &said);
        let outcome = outcome.map(|()| format!("written: {}; secrets that are known are covered", file.display()));
        // a dashboard that is gone needs no answer
        let _ = said.blocking_send(Event::Wrote(turn, outcome.map_err(|failure| failure.message)));
    });
}

fn write(
    paths: &Paths,
    turn: Turn,
    name: String,
    format: Format,
    file: &std::path::Path,
    said: &mpsc::Sender<Event>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("nothing can be written now: {error}")))?;
    runtime.block_on(async {
        let redactor = Some(export::redactor(paths)?);
        let mut client = connect::connect(paths).await?;
        let wish = Wish { of: Of { name, ..Of::default() }, format, redactor, idle_limit: None };
        let mut told = 0;
        let tell = |done: u64| {
            // by the percent; one that cannot be told now is followed by another
            if done / 10 != told {
                told = done / 10;
                let _ = said.try_send(Event::Exported(turn, done));
            }
        };
        export::to_file(&mut client, wish, file, Overwrite::No, tell).await.map(|_| ())
    })
}
