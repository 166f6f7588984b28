//! The clients of a runtime: who has control, who gets bytes, who gets pictures.

use std::sync::Arc;

use serde_json::json;
use shared::config::Prefix;
use shared::event::Author;
use shared::message::{Detached, Push};
use shared::screen::{Passthrough, Size, View};
use shared::text::columns;
use tokio::time::Instant;

use super::{ClientId, FRAME, Interpreter, JOIN_PATIENCE, Joins, MAX_BACKLOG, Place, Room, Runtime};
use crate::attachment::Outbox;
use crate::context::Stop;
use crate::notify::Notice;
use crate::store::Fact;

/// Ends any unfinished sequence on the way to a terminal, then takes it back from whatever modes a program left it in.
const NEUTRAL: &[u8] = b"\x18\x1b[0m\x1b[?6l\x1b[4l\x1b[r\x1b(B\x0f\x1b[?7h\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?2026l\x1b[?1l\x1b>\x1b[<u\x1b[>4m";

/// Before pictures are drawn over a stream of bytes: only what would disturb drawing.
const STEADY: &[u8] = b"\x18\x1b[0m\x1b[?6l\x1b[4l\x1b(B\x0f\x1b[?7h";

/// Where another session was shown: nothing of it is left, neither its modes nor its title, and nothing goes into the scrollback.
const INSTEAD: &[u8] = b"\x18\x1b[?2026l\x1b[?1049l\x1b[r\x1b[!p\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[<99u\x1b[>4m\x1b[0 q\x1b[23;0t\x1b[22;0t\x1b[H\x1b[2J";

/// What is on a client's terminal moves up into its own scrollback; the session starts on a clean screen. The first
/// part is for a terminal that an earlier daemon left in the middle of something; the title is kept for later.
fn make_room(window: Size) -> Vec<u8> {
    let mut bytes = b"\x18\x1b7\x1b[?1049l\x1b[!p\x1b[0m\x1b[22;0t".to_vec();
    bytes.extend_from_slice(format!("\x1b[{};1H", window.rows).as_bytes());
    bytes.extend(std::iter::repeat_n(b'\n', usize::from(window.rows)));
    bytes.extend_from_slice(b"\x1b[H\x1b[2J");
    bytes
}

pub(super) struct Client {
    pub id: ClientId,
    outbox: Arc<Outbox>,
    window: Size,
    read_only: bool,
    prefix: Prefix,
    showing: Showing,
    shows_help: bool,
    filter: Passthrough,
    /// The client's terminal is in its alternate screen.
    in_alternate: bool,
    /// What was on its terminal before.
    room: Room,
    /// Something has changed since this client's last picture.
    is_behind: bool,
    /// What it is attached to is an interpreter: pictures only.
    is_transcript: bool,
    /// Where its next byte belongs, if it counts what it types.
    place: Option<Place>,
}

enum Showing {
    /// Waits for the terminal to take its size, so that bytes can pass unchanged; until then, or this time, nothing.
    Joining(Instant),
    Bytes,
    Pictures(Box<View>),
}

impl Client {
    /// What was queued is of no use any more: a whole screen follows.
    fn start_over(&mut self) {
        self.outbox.skip_output();
        match std::mem::replace(&mut self.room, Room::Made) {
            Room::OfUser => self.outbox.output(&make_room(self.window)),
            Room::OfSession => self.outbox.output(INSTEAD),
            Room::Made => {}
        }
    }

    fn show_pictures(&mut self) {
        if !matches!(self.showing, Showing::Pictures(_)) {
            self.start_over();
            self.outbox.output(STEADY);
        }
        self.showing = Showing::Pictures(Box::new(View::new(self.window)));
    }

    /// Whether it is, or was before a flood, one that gets the program's bytes.
    fn shows_bytes(&self) -> bool {
        !self.is_transcript
    }

    fn status(&self, name: &str, has_control: bool) -> Option<String> {
        let prefix = self.prefix.label();
        if self.shows_help {
            let again = format!("{prefix} send it");
            let keys = if has_control {
                ["d detach", "? hide this", "[ look back", "n/p other session", &again]
            } else {
                ["d leave", "t take control", "? hide this", "[ look back", "n/p other session"]
            };
            return Some(keys_line(name, &prefix, &keys, self.window.cols));
        }
        (!has_control).then(|| {
            if self.read_only {
                format!(" {name}: watching only   {prefix} d leave")
            } else {
                format!(" {name}: another client has control   {prefix} t take it   {prefix} d leave")
            }
        })
    }
}

/// As many keys as there is room for, the most needed first; whose they are is said if that leaves two of them.
fn keys_line(name: &str, prefix: &str, keys: &[&str], cols: u16) -> String {
    let room = usize::from(cols);
    let needed: usize = keys.iter().take(2).map(|key| columns(key) + 3).sum();
    let (mut line, alone) = (format!(" {name}   after {prefix}:"), format!(" after {prefix}:"));
    if columns(&line) + needed > room {
        line = alone;
    }
    for key in keys {
        if columns(&line) + 3 + columns(key) > room {
            break;
        }
        line += "   ";
        line += key;
    }
    line
}

/// The last row of a window is for the line to type in.
fn above_line(window: Size) -> Size {
    Size { rows: window.rows.saturating_sub(1).max(1), ..window }
}

/// The line a person types in, with what it is for.
fn prompt(name: &str, interpreter: &Interpreter, cols: u16) -> String {
    let mark = if interpreter.is_busy() { "…" } else { "❯" };
    let before = format!(" {name} {} {mark} ", interpreter.language);
    let line = interpreter.line.shown();
    // of a long line its end is what is being typed
    let room = usize::from(cols).saturating_sub(before.chars().count() + 2);
    let hidden = line.chars().count().saturating_sub(room);
    let shown: String = if hidden > 0 { std::iter::once('…').chain(line.chars().skip(hidden + 1)).collect() } else { line };
    format!("{before}{shown}▏")
}

impl Runtime {
    fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.id == id)
    }

    /// Where so many bytes of a client begin, if it counts them; the next ones are behind them.
    pub(super) fn place_of(&mut self, id: ClientId, count: usize) -> Option<Place> {
        let place = self.client(id)?.place.as_mut()?;
        let here = *place;
        place.at += count as u64;
        Some(here)
    }

    /// All but so many of the last bytes have certainly reached the program.
    pub(super) fn confirm_typed(&mut self, under_way: u64) {
        for client in &self.clients {
            if let Some(place) = client.place.and_then(|place| self.facts.place_of(place.stream)) {
                client.outbox.line(&Push::Taken { bytes: place.at.saturating_sub(under_way) });
            }
        }
    }

    pub(super) fn tell(&self, kind: &'static str, author: Author, data: serde_json::Value) {
        let (store, session) = (self.context.store.clone(), self.facts.session());
        tokio::spawn(async move {
            // a session removed meanwhile has nobody to tell
            let _ = store.tell(Fact::new(session, author, kind, data)).await;
        });
    }

    pub(super) async fn attach(
        &mut self,
        outbox: Arc<Outbox>,
        window: Size,
        joins: Joins,
        room: Room,
        prefix: Prefix,
        place: Option<Place>,
    ) -> (ClientId, bool) {
        let read_only = joins == Joins::ReadOnly;
        let id = self.next_client;
        self.next_client += 1;
        outbox.watch(Arc::clone(&self.drained));
        self.clients.push(Client {
            id,
            outbox,
            window,
            read_only,
            prefix,
            showing: Showing::Joining(Instant::now() + JOIN_PATIENCE),
            shows_help: false,
            filter: Passthrough::default(),
            in_alternate: false,
            room,
            is_behind: true,
            is_transcript: self.interpreter.is_some(),
            place,
        });
        self.facts.set_clients(self.clients.len());
        self.tell("attach", Author::Human, json!({"client": id, "read_only": read_only}));
        if joins == Joins::InControl {
            self.note_seen();
            self.give_control(id).await;
        } else {
            self.observe(id);
        }
        (id, joins == Joins::InControl)
    }

    /// Turns a client into one that watches: its own alternate screen, pictures that fit.
    fn observe(&mut self, id: ClientId) {
        if let Some(client) = self.client(id) {
            client.start_over();
            client.outbox.output(NEUTRAL);
            if !client.in_alternate {
                client.outbox.output(b"\x1b[?1049h");
                client.in_alternate = true;
            }
            client.showing = Showing::Pictures(Box::new(View::new(client.window)));
            client.outbox.line(&Push::Control { held: false });
        }
        self.is_dirty = true;
    }

    /// The client types from now on, and the terminal takes its size. Whoever had control watches.
    async fn give_control(&mut self, id: ClientId) {
        if self.control == Some(id) {
            return;
        }
        self.set_controlled(true);
        if let Some(before) = self.control.replace(id) {
            self.drop_input_of(before);
            self.observe(before);
            self.tell("control", Author::Human, json!({"from": before, "to": id}));
        }
        let Some(window) = self.client(id).map(|client| client.window) else { return };
        if self.interpreter.is_some() {
            // a transcript is always drawn: below it is the line to type in
            self.observe(id);
            if let Some(client) = self.client(id) {
                client.outbox.line(&Push::Control { held: true });
            }
            return self.order_size(above_line(window)).await;
        }
        if let Some(client) = self.client(id) {
            client.showing = Showing::Joining(Instant::now() + JOIN_PATIENCE);
            client.outbox.line(&Push::Control { held: true });
        }
        if self.is_frozen() {
            // what stands still does not draw itself anew for another size: it is shown as it is
            if let Some(client) = self.client(id) {
                client.show_pictures();
            }
            self.is_dirty = true;
            self.order_size(window).await;
        } else if window == self.size && window == self.ordered_size {
            self.show_bytes(id).await;
        } else {
            // the paint comes when the recording says that the size has changed
            self.order_size(window).await;
        }
    }

    /// Kept for the next daemon too: nothing expires for somebody who is on the way back. One that is stopping itself says
    /// nothing, since it is not the client who left.
    fn set_controlled(&self, is_controlled: bool) {
        self.facts.set_controlled(is_controlled);
        if *self.context.stop.borrow() != Stop::No {
            return;
        }
        let (store, id, facts) = (self.context.store.clone(), self.id, Arc::clone(&self.facts));
        tokio::spawn(async move {
            // as it is by then: two of these may be under way, and the later one must be right
            let _ = store.controlled(id, move || facts.is_controlled()).await;
        });
    }

    /// Asks for a size. The one we know is what the recording said last; another may be on its way.
    async fn order_size(&mut self, size: Size) {
        self.ordered_size = size;
        // a link that is gone is seen by the loop
        let _ = self.link.resize(size).await;
    }

    pub(super) async fn take_control(&mut self, id: ClientId) {
        if self.client(id).is_some_and(|client| !client.read_only) {
            self.give_control(id).await;
        }
    }

    /// The exact screen, then everything that follows it, byte for byte.
    async fn show_bytes(&mut self, id: ClientId) {
        let at = self.consumed;
        let keyframe = self.picture.catch_up(at).await.keyframe();
        let is_alternate = self.picture.screen().is_alternate();
        let Some(client) = self.client(id) else { return };
        client.start_over();
        if client.in_alternate {
            client.outbox.output(b"\x18\x1b[?1049l");
        }
        client.outbox.output(&keyframe.paint);
        client.filter = Passthrough::default();
        let mut pending = Vec::new();
        client.filter.filter(&keyframe.pending, &mut pending);
        client.outbox.output(&pending);
        client.in_alternate = is_alternate;
        client.showing = Showing::Bytes;
    }

    /// Passes new output on. `true` if a client's own terminal gets it and answers the queries in it.
    pub(super) fn pass_on(&mut self, bytes: &[u8]) -> bool {
        self.is_dirty = true;
        let is_alternate = self.scanner.modes().alternate;
        let (is_flooding, control) = (self.is_flooding, self.control);
        let Some(client) = control.and_then(|id| self.client(id)) else { return false };
        if !matches!(client.showing, Showing::Bytes) {
            return false;
        }
        if is_flooding || client.outbox.backlog() > MAX_BACKLOG {
            client.show_pictures();
            return false;
        }
        let mut passed = Vec::with_capacity(bytes.len());
        client.filter.filter(bytes, &mut passed);
        client.outbox.output(&passed);
        client.in_alternate = is_alternate;
        true
    }

    /// Another session waits for somebody: told to whoever looks at this one.
    pub(super) fn show_notice(&mut self, notice: &Notice) {
        if notice.session == self.facts.session() || self.clients.is_empty() {
            return;
        }
        // a terminal that shows bytes may be in the middle of a sequence of the program's
        self.owed.extend(notice.osc());
        self.pay_notices();
    }

    /// Says what is owed as soon as no sequence is cut by it.
    pub(super) fn pay_notices(&mut self) {
        if self.owed.is_empty() || !self.scanner.pending().is_empty() {
            return;
        }
        let owed = std::mem::take(&mut self.owed);
        for client in &self.clients {
            if !matches!(client.showing, Showing::Joining(_)) {
                client.outbox.output(&owed);
            }
        }
    }

    /// Bytes were missed: every client gets a whole screen next, and bytes again when that is drawn.
    pub(super) fn show_pictures_to_all(&mut self) {
        self.clients.iter_mut().filter(|client| client.shows_bytes()).for_each(Client::show_pictures);
        self.is_dirty = true;
    }

    pub(super) fn has_pictures(&self) -> bool {
        self.clients.iter().any(|client| matches!(client.showing, Showing::Pictures(_)))
    }

    /// When pictures are due next, if anybody needs one.
    pub(super) fn next_draw(&self) -> Option<Instant> {
        let joining = self.clients.iter().filter_map(|client| match client.showing {
            Showing::Joining(until) => Some(until),
            _ => None,
        });
        let wants_picture = self.clients.iter().any(|client| {
            matches!(client.showing, Showing::Pictures(_))
                && client.outbox.is_drained()
                && (self.is_dirty || client.is_behind || self.may_have_bytes(client))
        });
        let frame = wants_picture.then(|| if Instant::now() < self.eager_until { self.last_drawn } else { self.last_drawn + FRAME });
        joining.chain(frame).min()
    }

    /// A controlling client goes back to bytes once the flood is over.
    fn may_have_bytes(&self, client: &Client) -> bool {
        self.interpreter.is_none()
            && !self.is_frozen()
            && self.control == Some(client.id)
            && !self.is_flooding
            && !client.shows_help
            && client.window == self.size
    }

    pub(super) async fn draw(&mut self) {
        let now = Instant::now();
        self.last_drawn = now;
        let at = self.consumed;
        if std::mem::take(&mut self.is_dirty) {
            for client in &mut self.clients {
                client.is_behind = true;
            }
        }
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            let id = client.id;
            match &client.showing {
                Showing::Bytes => continue,
                Showing::Joining(until) if now < *until => continue,
                Showing::Joining(_) => self.clients[index].show_pictures(),
                Showing::Pictures(_) => {
                    if !client.outbox.is_drained() {
                        // looked at again when it is
                        continue;
                    }
                    if self.may_have_bytes(client) {
                        self.show_bytes(id).await;
                        continue;
                    }
                    if !client.is_behind {
                        continue;
                    }
                }
            }
            let stands = self.frozen_line(id);
            let screen = self.picture.catch_up(at).await;
            let client = &mut self.clients[index];
            let has_control = self.control == Some(id);
            let status = match &self.interpreter {
                _ if stands.is_some() && !client.shows_help => stands,
                Some(interpreter) if has_control && !client.shows_help => Some(prompt(&self.name, interpreter, client.window.cols)),
                _ => client.status(&self.name, has_control),
            };
            if let Showing::Pictures(view) = &mut client.showing {
                client.outbox.output(&view.draw(screen, status.as_deref()));
            }
            client.is_behind = false;
        }
    }

    /// The recording says that the terminal has this size from here on.
    pub(super) async fn resized(&mut self, size: Size) {
        self.size = size;
        self.facts.set_size(size);
        self.is_dirty = true;
        let (store, id) = (self.context.store.clone(), self.id);
        tokio::spawn(async move {
            let _ = store.resize(id, size).await;
        });
        if let Some(id) = self.control
            && self.client(id).is_some_and(|client| client.window == size && matches!(client.showing, Showing::Joining(_)))
        {
            self.show_bytes(id).await;
        }
    }

    pub(super) async fn window_changed(&mut self, id: ClientId, window: Size) {
        let has_control = self.control == Some(id);
        let Some(client) = self.client(id) else { return };
        client.window = window;
        if matches!(client.showing, Showing::Pictures(_)) {
            client.showing = Showing::Pictures(Box::new(View::new(window)));
        }
        self.is_dirty = true;
        if has_control && self.interpreter.is_some() {
            self.order_size(above_line(window)).await;
        } else if has_control {
            // bytes go on: the user's terminal has changed itself, as if the program ran there directly
            self.order_size(window).await;
        }
    }

    /// What stands still is drawn, with a line that says so.
    pub(super) fn show_frozen(&mut self) {
        for client in &mut self.clients {
            if matches!(client.showing, Showing::Bytes) {
                client.show_pictures();
            }
        }
    }

    pub(super) fn toggle_help(&mut self, id: ClientId) {
        if let Some(client) = self.client(id) {
            client.shows_help = !client.shows_help;
            client.show_pictures();
            self.is_dirty = true;
        }
    }

    /// Any key ends the line of keys.
    pub(super) fn end_help(&mut self, id: ClientId) {
        if let Some(client) = self.client(id)
            && client.shows_help
        {
            client.shows_help = false;
            self.is_dirty = true;
        }
    }

    /// Gives whether the client's terminal was in its alternate screen, if it was attached.
    pub(super) async fn detach(&mut self, id: ClientId) -> Option<bool> {
        let place = self.clients.iter().position(|client| client.id == id)?;
        let in_alternate = self.clients.remove(place).in_alternate;
        self.facts.set_clients(self.clients.len());
        if self.control == Some(id) {
            self.drop_input_of(id);
            self.control = None;
            self.set_controlled(false);
            // the last one who was able to type gets control back
            if let Some(next) = self.clients.iter().rev().find(|client| !client.read_only).map(|client| client.id) {
                self.give_control(next).await;
            }
        }
        // what happened while it was attached was seen
        self.note_seen();
        // told last: whoever hears of it finds control as it is now
        self.tell("detach", Author::Human, json!({"client": id}));
        self.rest_soon();
        Some(in_alternate)
    }

    pub(super) async fn detach_all(&mut self) -> usize {
        let ids: Vec<ClientId> = self.clients.iter().map(|client| client.id).collect();
        for client in &self.clients {
            client.outbox.line(&Push::Detached { why: Detached::Asked, alternate: Some(client.in_alternate) });
        }
        for id in &ids {
            self.detach(*id).await;
        }
        ids.len()
    }

    /// The program is gone: everybody sees its last screen and hears how it ended.
    pub(super) async fn dismiss(&mut self, why: Detached) {
        self.is_flooding = false;
        self.is_dirty = true;
        let at = self.consumed;
        for index in 0..self.clients.len() {
            let id = self.clients[index].id;
            if self.control == Some(id) && self.clients[index].shows_bytes() {
                // those who had bytes have them all; those who skipped get the last picture
                if !matches!(self.clients[index].showing, Showing::Bytes) {
                    self.show_bytes(id).await;
                }
            } else {
                let screen = self.picture.catch_up(at).await;
                let client = &mut self.clients[index];
                if let Showing::Pictures(view) = &mut client.showing {
                    client.outbox.output(&view.draw(screen, None));
                }
            }
            let client = &self.clients[index];
            client.outbox.line(&Push::Detached { why: why.clone(), alternate: Some(client.in_alternate) });
        }
        self.clients.clear();
        self.facts.set_clients(0);
        self.facts.set_controlled(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_do_not_fit_are_left_out_whole() {
        let keys = ["d detach", "? hide this", "[ look back"];
        for (cols, expected) in [
            (80, " api   after ctrl-b:   d detach   ? hide this   [ look back"),
            (50, " api   after ctrl-b:   d detach   ? hide this"),
            (40, " after ctrl-b:   d detach   ? hide this"),
            (30, " after ctrl-b:   d detach"),
            (5, " after ctrl-b:"),
        ] {
            assert_eq!(keys_line("api", "ctrl-b", &keys, cols), expected, "{cols}");
        }
    }
}
