//! asciicast: what `asciinema play` plays.

use std::io::{self, Write};

use shared::asciicast::{Event, Header, Version, What, Writer};
use shared::replay::Outline;
use shared::screen::Size;
use shared::text::{shell_words, visible};

use super::{Piece, Said, Sink};

pub struct Cast {
    header: Option<String>,
    writer: Writer,
}

impl Cast {
    pub fn new(outline: &Outline, size: Size, version: Version) -> Self {
        let header = Header {
            version,
            size,
            timestamp: Some(outline.began_at.as_second()),
            command: (!outline.command.is_empty()).then(|| visible(&shell_words(&outline.command))),
            title: Some(visible(outline.title.as_ref().unwrap_or(&outline.name))),
        };
        let (line, writer) = Writer::new(&header);
        Self { header: Some(line), writer }
    }
}

impl Sink for Cast {
    fn take(&mut self, Piece { time, what }: Piece, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.header.take().unwrap_or_default();
        let what = match what {
            Said::Output(bytes) => {
                self.writer.output(time, &bytes, &mut lines);
                return out.write_all(lines.as_bytes());
            }
            Said::Input(bytes) => What::Input(String::from_utf8_lossy(&bytes).into_owned()),
            Said::Resize(size) => What::Resize(size),
            Said::Marker(label) => What::Marker(visible(&label)),
            Said::Exit(code) => What::Exit(code),
        };
        self.writer.event(&Event { time, what }, &mut lines);
        out.write_all(lines.as_bytes())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        // of a recording with nothing in it, the header alone
        out.write_all(self.header.take().unwrap_or_default().as_bytes())
    }
}
