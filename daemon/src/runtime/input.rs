//! What is typed into a runtime: by whoever has control, or by a call; in order, once, and as the program takes it.

use shared::message::Failure;
use tokio::time::Instant;

use super::{EAGER, MAX_INPUT, Place, Runtime, Typed, Typist};

impl Runtime {
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
                return;
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
