//! What is typed into a runtime: by whoever has control, or by a call; in order, once, and as the program takes it.

use shared::message::Failure;
use tokio::time::Instant;

use super::{EAGER, MAX_INPUT, Place, Runtime, Typed, Typist};

/// Longest line that a terminal in canonical mode takes; the kernel drops what is beyond it (`N_TTY_BUF_SIZE` of 4096, with the newline).
const MAX_LINE: usize = 4095;

/// How long the longest line is, the beginning of which is in the terminal already; and how long the last one that is not ended.
fn lines(begun: usize, bytes: &[u8]) -> (usize, usize) {
    let (mut longest, mut present) = (0, begun);
    for byte in bytes {
        match byte {
            b'\n' | b'\r' | b'\x03' | b'\x04' | b'\x15' => present = 0,
            _ => present += 1,
        }
        longest = longest.max(present);
    }
    (longest, present)
}

impl Runtime {
    /// Why input cannot be typed as it is, if it cannot: the terminal would cut a line of it without a word.
    fn cut_line(&mut self, from: Typist, bytes: &[u8]) -> Option<Failure> {
        if self.link.is_line_mode() != Some(true) {
            self.begun_line = 0;
            return None;
        }
        let (longest, present) = lines(self.begun_line, bytes);
        if longest > MAX_LINE && from == Typist::Api {
            return Some(Failure::usage(format!(
                "a line of {longest} bytes cannot be sent: the program in {} reads whole lines, of which the terminal keeps {MAX_LINE} bytes; nothing was sent: use shorter lines, or a file",
                self.name
            )));
        }
        self.begun_line = present;
        None
    }

    pub(super) fn take_input(&mut self, from: Typist, bytes: Vec<u8>, taken: tokio::sync::oneshot::Sender<Result<(), Failure>>) {
        let mut place = None;
        if let Typist::Client(id) = from {
            self.end_help(id);
            place = self.place_of(id, bytes.len());
            if self.control != Some(id) {
                // typed while control was being taken away: it is not for this terminal any more
                self.pass_over(place, bytes.len());
                let _ = taken.send(Ok(()));
                return;
            }
        }
        if let Some(failure) = self.cut_line(from, &bytes) {
            let _ = taken.send(Err(failure));
            return;
        }
        if bytes.contains(&b'\r') || bytes.contains(&b'\n') {
            self.look_at_folder();
        }
        self.heard_typing(from, &bytes);
        self.note_typist(from, &bytes);
        self.rest_soon();
        let now = Instant::now();
        self.eager_until = now + EAGER;
        self.pause_until = None;
        self.facts.happened_now();
        self.input_bytes += bytes.len();
        let mut typed = Typed { from, bytes, place, sent: 0, taken: Some(taken) };
        // a client goes on reading keys while there is room; an API call hears when its bytes are on their way
        if matches!(from, Typist::Client(_))
            && self.input_bytes <= MAX_INPUT
            && let Some(taken) = typed.taken.take()
        {
            let _ = taken.send(Ok(()));
        }
        self.input.push_back(typed);
    }

    /// Sends what the holder has room for.
    pub(super) async fn send_input(&mut self) {
        if self.is_frozen() {
            // the terminal would echo what nobody reads
            return;
        }
        while let Some(typed) = self.input.front_mut() {
            let rest = &typed.bytes[typed.sent..];
            // a link that is gone is seen by the loop
            let sent = match typed.place {
                Some(place) => {
                    let place = Place { at: place.at + typed.sent as u64, ..place };
                    let sent = self.link.typed(place.stream, place.at, rest).await;
                    if let Ok(sent) = sent {
                        self.facts.taken(place, &rest[..sent]);
                    }
                    sent
                }
                None => self.link.input(rest).await,
            };
            let Ok(sent) = sent else { return };
            if sent == 0 && !rest.is_empty() {
                return self.signal_instead();
            }
            typed.sent += sent;
            self.input_bytes -= sent;
            if typed.sent == typed.bytes.len() {
                if let Some(taken) = typed.taken.take() {
                    let _ = taken.send(Ok(()));
                }
                self.input.pop_front();
            }
        }
    }

    /// The terminal has no room: a ctrl-c behind input that nobody reads is heard all the same, and that input goes with it, as in any
    /// terminal.
    fn signal_instead(&mut self) {
        if !self.input.iter().any(|typed| self.link.signal_in_front(&typed.bytes[typed.sent..])) {
            return;
        }
        for typed in std::mem::take(&mut self.input) {
            self.input_bytes -= typed.bytes.len() - typed.sent;
            self.pass_over(typed.place.map(|place| Place { at: place.at + typed.sent as u64, ..place }), typed.bytes.len() - typed.sent);
            if let Some(taken) = typed.taken {
                let _ = taken.send(Ok(()));
            }
        }
        self.begun_line = 0;
    }

    /// Bytes of a client that counts them are for nobody: they are not to come again either.
    pub(super) fn pass_over(&mut self, place: Option<Place>, count: usize) {
        if let Some(place) = place {
            let place = Some(Place { at: place.at + count as u64, ..place });
            self.input.push_back(Typed { from: Typist::Api, bytes: Vec::new(), place, sent: 0, taken: None });
        }
    }

    /// The holder has given more to the program: a client that counts may forget as much.
    pub(super) fn tell_taken(&mut self) {
        let under_way = self.link.under_way();
        self.confirm_typed(under_way);
    }

    /// What a client typed that has not reached the program goes with its control.
    pub(super) fn drop_input_of(&mut self, id: super::ClientId) {
        for typed in std::mem::take(&mut self.input) {
            if typed.from == Typist::Client(id) {
                self.input_bytes -= typed.bytes.len() - typed.sent;
                self.pass_over(typed.place, typed.bytes.len());
                if let Some(taken) = typed.taken {
                    let _ = taken.send(Ok(()));
                }
            } else {
                self.input.push_back(typed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn how_long_lines_are() {
        for (begun, bytes, expected) in
            [(0, &b""[..], (0, 0)), (0, b"abc\nde", (3, 2)), (4, b"ab\r", (6, 0)), (4, b"ab", (6, 6)), (9, b"\x15a", (1, 1))]
        {
            assert_eq!(lines(begun, bytes), expected, "{begun} {bytes:?}");
        }
    }
}
