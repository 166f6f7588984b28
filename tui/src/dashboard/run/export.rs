//! A recording is written to a file beside the loop; how far it is, is told.

use std::path::PathBuf;

use shared::message::Failure;
use shared::paths::Paths;
use shared::replay::Of;
use tokio::sync::mpsc;

use crate::connect;
use crate::dashboard::event::{Event, Turn};
use crate::export::{self, Format, Overwrite, Wish};

/// In a thread of its own: making cells of a large recording is work, and the dashboard goes on meanwhile.
pub fn begin(paths: &Paths, turn: Turn, what: What, said: mpsc::Sender<Event>) {
    let paths = paths.clone();
    std::thread::spawn(move || {
        let file = what.file.clone();
        let outcome = write(&paths, turn, what, &said);
        let outcome = outcome.map(|()| format!("written: {}; secrets that are known are covered", file.display()));
        // a dashboard that is gone needs no answer
        let _ = said.blocking_send(Event::Wrote(turn, outcome.map_err(|failure| failure.message)));
    });
}

/// What is written, and where.
pub struct What {
    pub name: String,
    pub format: Format,
    pub file: PathBuf,
    pub overwrites: bool,
}

fn write(paths: &Paths, turn: Turn, what: What, said: &mpsc::Sender<Event>) -> Result<(), Failure> {
    let What { name, format, file, overwrites } = what;
    if !overwrites && file.exists() {
        return Err(Failure::usage("it is there already: enter writes over it, or give another name"));
    }
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
        let overwrite = if overwrites { Overwrite::Yes } else { Overwrite::No };
        export::to_file(&mut client, wish, &file, overwrite, tell).await.map(|_| ())
    })
}
