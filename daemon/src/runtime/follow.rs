//! The runtime's loop: news from the holder, asks from clients, and the few moments when time matters.

use serde_json::json;
use shared::event::Author;
use shared::exec::Stream;
use shared::id::Offset;
use shared::screen::{Event, Keyframe, Located, Size, answer};
use tokio::time::Instant;

use super::calls::Noted;
use super::{Ask, FLOOD_BYTES, FLOOD_PAUSE, FLOOD_WINDOW, FRAME, MAX_LAG, REST_AFTER, Running, Runtime, Typed, Typist};
use crate::command::Frame;
use crate::context::Stop;
use crate::holder::link::LinkError;
use crate::holder::wire::{Frozen, News};
use crate::lifecycle::End;
use crate::recording::{self, Hole, OVERHEAD, ReadError, Record, SEGMENT_BYTES};

/// Read from the recording at a time; between two, others get their turn.
const BATCH: usize = 64 << 10;

/// A quarter of a segment.
const GROWN: u64 = SEGMENT_BYTES / 4;

/// What the recording holds, in the order it happened.
enum Piece {
    /// Bytes, and the frames they are in.
    Output(Vec<u8>, Vec<Frame>),
    Resize(Size, Offset),
    /// Recorded bytes that cannot be read.
    Missing(Hole),
    /// What concerns an interpreter's calls, and where it ends.
    Noted(Noted, Offset),
}

/// How far is read on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stops {
    AtTheEnd,
    WhenAsked,
}

enum Turn {
    Ask(Option<Ask>),
    News(Result<News, LinkError>),
    Drained,
    /// The program takes input again.
    Room,
    /// Another session waits for somebody.
    Notice(crate::notify::Notice),
    Time,
}

impl Runtime {
    pub(super) async fn run(mut self, answered: Offset, running: Option<Running>, frozen: Option<Frozen>) {
        if frozen.is_some() {
            self.heard_frozen(frozen).await;
        }
        if let Some(why) = self.facts.suspended().filter(|_| self.end == 0) {
            // not even begun: its directory could not be made, or there was no room for a header
            self.tell("recording_suspended", Author::Daemon, json!({"reason": why}));
        }
        if self.interpreter.is_some() {
            self.resume_calls(answered, running).await;
        } else {
            self.resume_from(answered).await;
        }
        let end = self.follow().await;
        self.finish(end).await;
    }

    /// Everything up to `answered` was dealt with by an earlier daemon: read it without reacting.
    async fn resume_from(&mut self, answered: Offset) {
        let from = answered.max(self.picture.offset()).min(self.end);
        self.remember().await;
        self.remember_evidence().await;
        // a program that has just been started needs no screen yet
        if from > 0 {
            let screen = self.picture.catch_up(from).await;
            self.scanner = screen.scanner();
            self.size = screen.size();
            self.ordered_size = self.size;
            self.facts.set_title(&self.scanner.modes().title);
        }
        self.consumed = self.picture.offset();
        self.reader.seek(self.consumed);
        self.catch_up_commands(self.consumed).await;
        if self.end > 0 {
            self.consume(self.end).await;
            if self.reads_screen() {
                // before anything is told: what it asked is still on its screen
                self.read_screen().await;
            }
        }
        self.begin_listening();
        self.rest_soon();
    }

    /// Results up to `settled` are stored: what came after is read, what was never sent is sent.
    async fn resume_calls(&mut self, settled: Offset, running: Option<Running>) {
        self.consumed = settled;
        self.reader.seek(settled);
        if self.end > 0 {
            self.consume(self.end).await;
        }
        if let Some(running) = running {
            // its beginning may have been dropped from the recording
            self.call_began(running.id, running.start, "");
            self.call_has_run(std::time::Duration::from_millis(running.ran_ms));
        }
        self.go_on_with_open().await;
        self.rest_soon();
    }

    async fn follow(&mut self) -> End {
        loop {
            if let Some(status) = self.exit {
                // nothing is appended after the exit
                self.consume(Offset::MAX).await;
                return match self.terminating {
                    Some(author) => End::Killed(status, author),
                    None => End::Exited(status),
                };
            }
            let turn = {
                let deadline = self.next_deadline();
                let wakes = async {
                    match deadline {
                        Some(at) => tokio::time::sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                };
                let room = self.link.input_room();
                let is_pausing = self.pause_until.is_some();
                tokio::select! {
                    biased;
                    ask = self.asks.recv() => Turn::Ask(ask),
                    news = self.link.news(), if !is_pausing => Turn::News(news),
                    () = self.drained.notified(), if self.has_pictures() => Turn::Drained,
                    // what goes through the holder waits for its word instead
                    () = room, if !self.is_frozen() && self.input.front().is_some_and(|typed| typed.place.is_none()) => Turn::Room,
                    Ok(notice) = self.notices.recv() => Turn::Notice(notice),
                    () = wakes => Turn::Time,
                }
            };
            match turn {
                Turn::Ask(Some(ask)) => {
                    self.obey(ask).await;
                    if let Some(until) = self.unread {
                        self.consume_until_asked(until).await;
                    }
                }
                // every handle is gone: the daemon is stopping
                Turn::Ask(None) => std::future::pending().await,
                Turn::News(Ok(news)) => self.hear(news).await,
                Turn::News(Err(_)) => {
                    if !self.reach_again().await {
                        let end = self.holder_is_gone().await;
                        if matches!(end, End::Lost(_)) && *self.context.stop.borrow() != Stop::No {
                            // we are all being ended: the next daemon finds what was lost, and knows with what
                            std::future::pending::<()>().await;
                        }
                        return end;
                    }
                }
                Turn::Drained | Turn::Room => {}
                Turn::Notice(notice) => self.show_notice(&notice),
                Turn::Time => self.time_passed().await,
            }
            self.send_input().await;
            // a flood of news must not keep everybody's picture from being drawn
            if self.has_pictures() && Instant::now() >= self.last_drawn + FRAME && self.next_draw().is_some() {
                self.draw().await;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let flood_end = self.is_flooding.then(|| self.window_began + FLOOD_WINDOW);
        let interrupt = self.call_deadline();
        [
            self.pause_until,
            self.next_draw(),
            flood_end,
            self.rest_at,
            interrupt,
            self.listening.settles_at,
            self.listening.doubts_at,
            self.inside.look_at,
            self.waiters.look_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    async fn time_passed(&mut self) {
        let now = Instant::now();
        if self.pause_until.is_some_and(|at| now >= at) {
            self.pause_until = None;
        }
        if self.is_flooding && self.pause_until.is_none() && now >= self.window_began + FLOOD_WINDOW {
            self.count_output(0);
        }
        if self.next_draw().is_some_and(|at| now >= at) {
            self.draw().await;
        }
        self.interrupt_if_due().await;
        self.tell_attention_if_settled(now);
        if self.inside.look_at.is_some_and(|at| now >= at) {
            self.read_screen().await;
        }
        if self.waiters.look_at.is_some_and(|at| now >= at) {
            self.waiters.look_at = None;
            self.look_from_outside();
        }
        if self.rest_at.is_some_and(|at| now >= at) {
            self.rest_at = None;
            self.note_activity();
            self.note_heard();
            self.look_from_outside();
            self.have_looked_after(GROWN / 8);
            if self.clients.is_empty() && self.waiters.has_no_text() && !self.is_suspended {
                self.picture.rest();
                self.reader.rest();
            }
        }
    }

    /// Its recording is looked after when it has grown by this much: a segment may have been closed.
    fn have_looked_after(&mut self, grown: u64) {
        if self.end.saturating_sub(self.looked_after) >= grown {
            self.looked_after = self.end;
            self.context.upkeep.look_at(self.id);
        }
    }

    /// After a burst of activity: what a later daemon should know of it.
    fn note_activity(&mut self) {
        self.look_at_folder();
        let Some(at) = self.facts.last_activity() else { return };
        let (store, session, steady) = (self.context.store.clone(), self.facts.session(), self.facts.last_steady());
        if std::mem::replace(&mut self.noted, steady) == steady {
            return;
        }
        tokio::spawn(async move {
            let _ = store.touch(session, at, steady).await;
        });
    }

    /// Where the program is now: its terminal keeps that for the next one. Asked when a line has been typed and after each
    /// burst of activity, since a program that has ended is nowhere.
    pub(super) fn look_at_folder(&mut self) {
        if self.interpreter.is_some() {
            // each result says where it is
            return;
        }
        let Ok(folder) = std::fs::read_link(format!("/proc/{}/cwd", self.facts.pid())) else { return };
        let Some(folder) = folder.to_str().filter(|folder| *folder != self.cwd) else { return };
        // a folder that was removed has a name that leads nowhere
        if self.terminating.is_some() || folder.ends_with(" (deleted)") {
            return;
        }
        self.cwd = folder.to_owned();
        let (store, id, cwd) = (self.context.store.clone(), self.id, self.cwd.clone());
        tokio::spawn(async move {
            let _ = store.moved(id, cwd).await;
        });
    }

    pub(super) fn rest_soon(&mut self) {
        self.rest_at = Some(Instant::now() + REST_AFTER);
        self.waiters.look_soon();
    }

    async fn hear(&mut self, news: News) {
        match news {
            News::End(end) => {
                self.end = end;
                self.facts.set_end(end);
                self.facts.happened_now();
                self.consume_until_asked(end).await;
                self.have_looked_after(GROWN);
            }
            News::Exit(status) => self.exit = Some(status),
            News::Suspended(why) => self.recording_changed(why).await,
            News::Unrecorded(bytes) => self.unrecorded(&bytes).await,
            News::UnrecordedFrame(kind, body) => self.unrecorded_frame(kind, &body).await,
            News::UnrecordedOutput(exec, bytes) => self.output_was_unrecorded(exec, bytes),
            News::Frozen(frozen) => self.heard_frozen(frozen).await,
            News::Queued(_, is_taken) => self.heard_queued(is_taken),
            News::Hello(_) | News::Baseline(_) | News::State(_) | News::Names(_) => self.hear_driver(news).await,
            News::Taken(_) => self.tell_taken(),
            News::Greeting(..) | News::Refused(_) | News::Ready | News::Unknown => {}
        }
    }

    /// Reads what was put off: what is not recorded was printed after it.
    async fn read_unread(&mut self) {
        if let Some(until) = self.unread {
            self.consume(until).await;
        }
    }

    /// Reads what is new and deals with it, batch by batch, to the end.
    pub(super) async fn consume(&mut self, until: Offset) {
        self.read_on(until, Stops::AtTheEnd).await;
    }

    /// As `consume`, but somebody who asks for something is heard in between: on a busy machine a flood is read for long. The rest
    /// is read when they have been heard.
    async fn consume_until_asked(&mut self, until: Offset) {
        // an interpreter's calls go by what is recorded of those before them
        let stops = if self.interpreter.is_some() { Stops::AtTheEnd } else { Stops::WhenAsked };
        self.read_on(until, stops).await;
    }

    async fn read_on(&mut self, until: Offset, stops: Stops) {
        self.unread = None;
        loop {
            let mut pieces: Vec<Piece> = Vec::new();
            let outcome = self.reader.read(until, BATCH, |end, time, record| match record {
                Record::Output(body) => {
                    let frame = |at| Frame { at, start: end - (body.len() + OVERHEAD) as u64, end, time };
                    match pieces.last_mut() {
                        Some(Piece::Output(bytes, frames)) => {
                            frames.push(frame(bytes.len()));
                            bytes.extend_from_slice(body);
                        }
                        _ => pieces.push(Piece::Output(body.to_vec(), vec![frame(0)])),
                    }
                }
                Record::Resize(size) => pieces.push(Piece::Resize(size, end)),
                Record::Exit(status) => self.exit = Some(status),
                Record::Stdout(body) | Record::Stderr(body) => {
                    let stream = if matches!(record, Record::Stdout(_)) { Stream::Stdout } else { Stream::Stderr };
                    match pieces.last_mut() {
                        Some(Piece::Noted(Noted::Printed(last, bytes), at)) if *last == stream => {
                            bytes.extend_from_slice(body);
                            *at = end;
                        }
                        _ => pieces.push(Piece::Noted(Noted::Printed(stream, body.to_vec()), end)),
                    }
                }
                Record::Late(_, body) => pieces.push(Piece::Noted(Noted::Late(body.len()), end)),
                Record::Call(call) => pieces.push(Piece::Noted(Noted::call(&call, end - (call.size() + OVERHEAD) as u64), end)),
                Record::Result(result) => pieces.push(Piece::Noted(Noted::result(&result, end), end)),
                Record::Missing(bytes) => pieces.push(Piece::Missing(Hole { offset: end - bytes, bytes })),
                Record::Gap(bytes) if bytes > 0 => pieces.push(Piece::Noted(Noted::Gap(bytes), end)),
                Record::Header(_) | Record::Gap(_) | Record::Input(_) | Record::Marker(_) | Record::Unknown => {}
            });
            match outcome {
                Ok(true) => {}
                Ok(false) if self.reader.offset() < until && until != Offset::MAX => {
                    // The holder says that it has written this much. Whatever is not there will not come.
                    self.pass_missing(until);
                    break;
                }
                Ok(false) => break,
                Err(ReadError::Dropped { first }) => {
                    self.pass_missing(first);
                    continue;
                }
                Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound && until != Offset::MAX => {
                    self.pass_missing(until);
                    break;
                }
                Err(error) => {
                    // It may pass (no descriptors left): what is unread is read with the next output.
                    self.context.log.warn(&format!("session {}: {error}", self.name));
                    break;
                }
            }
            for piece in pieces {
                match piece {
                    Piece::Output(bytes, frames) => {
                        self.output(&bytes, &frames).await;
                        self.consumed = frames.last().map_or(self.consumed, |frame| frame.end);
                    }
                    Piece::Resize(size, end) => {
                        self.consumed = end;
                        self.resized(size).await;
                    }
                    Piece::Missing(hole) => self.note_missing(hole),
                    Piece::Noted(noted, end) => {
                        self.consumed = end;
                        self.noted(noted).await;
                    }
                }
            }
            self.consumed = self.reader.offset();
            if self.reader.offset() < until {
                tokio::task::yield_now().await;
                if stops == Stops::WhenAsked && !self.asks.is_empty() {
                    self.unread = Some(until);
                    break;
                }
            }
        }
        if self.consumed.saturating_sub(self.picture.offset()) > MAX_LAG {
            let at = self.consumed;
            self.picture.catch_up(at).await;
        }
        self.check_text().await;
        self.tell_sight();
        if self.is_flooding && Instant::now() >= self.eager_until {
            self.pause_until = Some(Instant::now() + FLOOD_PAUSE);
        }
    }

    /// Continues at `next`: what is before it cannot be read.
    fn pass_missing(&mut self, next: Offset) {
        let from = self.reader.offset();
        self.reader.seek(next);
        self.consumed = next;
        if next > from {
            self.note_missing(Hole { offset: from, bytes: next - from });
        }
    }

    /// Tells of a gap; clients that follow the bytes get a fresh screen, because they missed some.
    fn note_missing(&mut self, hole: Hole) {
        self.scanner.feed(b"\x18", &mut Vec::new());
        self.show_pictures_to_all();
        let (context, session, runtime) = (self.context.clone(), self.facts.session(), self.id);
        tokio::spawn(async move { crate::gaps::note(&context, session, runtime, hole).await });
    }

    async fn output(&mut self, bytes: &[u8], frames: &[Frame]) {
        let (Some(start), Some(end)) = (frames.first().map(|frame| frame.start), frames.last().map(|frame| frame.end)) else { return };
        self.count_output(bytes.len());
        let mut events = Vec::new();
        self.scanner.feed(bytes, &mut events);
        // before the folder is looked at anew: a command was typed where it was then
        self.note_commands(bytes, &events, frames);
        self.listen(&events);
        let answered_elsewhere = self.pass_on(bytes);
        self.pay_notices();
        self.look_soon();
        if events.iter().any(|located| matches!(located.event, Event::Query(..))) {
            let reply = if answered_elsewhere { Vec::new() } else { self.replies(bytes, start, &events).await };
            // a link that is gone is seen by the loop
            let _ = self.link.answer(end, reply).await;
        }
        self.activity.send_modify(|count| *count += 1);
        self.rest_soon();
    }

    /// Answers, in order, of the queries in this batch.
    async fn replies(&mut self, bytes: &[u8], start: Offset, events: &[Located]) -> Vec<u8> {
        let mut reply = Vec::new();
        for located in events {
            let Event::Query(query, _) = &located.event else { continue };
            let cursor = if query.needs_cursor() { Some(self.cursor_at(start, &bytes[..located.end]).await) } else { None };
            reply.extend(answer(query, self.scanner.modes(), self.size, cursor).unwrap_or_default());
        }
        reply
    }

    /// Where the cursor is after these bytes of the frames that begin at `start`; row and column from 1.
    async fn cursor_at(&mut self, start: Offset, bytes: &[u8]) -> (u16, u16) {
        self.picture.catch_up(start).await;
        self.picture.feed_ahead(bytes);
        let cursor = self.picture.screen().cursor();
        (cursor.row + 1, cursor.col + 1)
    }

    fn count_output(&mut self, bytes: usize) {
        let now = Instant::now();
        if now >= self.window_began + FLOOD_WINDOW {
            self.is_flooding = self.window_bytes >= FLOOD_BYTES;
            self.window_began = now;
            self.window_bytes = 0;
        }
        self.window_bytes += bytes;
        self.is_flooding |= self.window_bytes >= FLOOD_BYTES;
    }

    async fn recording_changed(&mut self, why: String) {
        self.read_unread().await;
        let at = self.consumed;
        self.picture.catch_up(at).await;
        let is_suspended = !why.is_empty();
        self.is_suspended = is_suspended;
        self.facts.set_suspended(is_suspended.then(|| why.clone()));
        let kind = if is_suspended { "recording_suspended" } else { "recording_resumed" };
        self.context.log.warn(&format!("session {}: {kind} {why}", self.name));
        if !is_suspended {
            // from here on the recording alone does not tell the screen any more
            self.picture.store();
        }
        let fact = crate::store::Fact::new(self.facts.session(), Author::Daemon, kind, json!({"reason": why}));
        let store = self.context.store.clone();
        tokio::spawn(async move {
            let _ = store.tell(fact).await;
        });
    }

    /// Output while the disk is full: shown, answered, but kept nowhere.
    async fn unrecorded(&mut self, bytes: &[u8]) {
        self.read_unread().await;
        self.count_output(bytes.len());
        let at = self.consumed;
        self.picture.catch_up(at).await;
        let mut events = Vec::new();
        self.scanner.feed(bytes, &mut events);
        self.listen(&events);
        let answered_elsewhere = self.pass_on(bytes);
        let mut seen: Vec<Located> = Vec::new();
        self.picture.screen().feed(bytes, &mut seen);
        if !answered_elsewhere {
            let mut reply = Vec::new();
            for located in &seen {
                if let Event::Query(query, cursor) = &located.event {
                    reply.extend(answer(query, self.scanner.modes(), self.size, *cursor).unwrap_or_default());
                }
            }
            if !reply.is_empty() {
                self.input_bytes += reply.len();
                self.input.push_back(Typed { from: Typist::Api, bytes: reply, place: None, sent: 0, taken: None });
            }
        }
        self.facts.happened_now();
        self.facts.add_unrecorded(bytes.len());
        self.activity.send_modify(|count| *count += 1);
        self.tell_sight();
    }

    async fn obey(&mut self, ask: Ask) {
        match ask {
            Ask::Attach { outbox, window, joins, room, prefix, stream, answer } => {
                let joined = self.attach(outbox, window, joins, room, prefix, stream).await;
                let _ = answer.send(joined);
            }
            Ask::Detach(id, answer) => {
                let _ = answer.send(self.detach(id).await);
            }
            Ask::DetachAll(answer) => {
                let _ = answer.send(self.detach_all().await);
            }
            Ask::Input { from, keep, bytes, taken } if self.is_frozen() => self.input_while_frozen(from, keep, bytes, taken).await,
            Ask::Input { from, bytes, taken, .. } if self.interpreter.is_some() => {
                let may_type = !matches!(from, Typist::Client(id) if self.control != Some(id));
                if let Typist::Client(id) = from {
                    self.end_help(id);
                }
                if may_type {
                    self.typed(&bytes).await;
                }
                let _ = taken.send(Ok(()));
            }
            Ask::Input { from, bytes, taken, .. } => self.take_input(from, bytes, taken),
            Ask::Call(calling) => self.accept(calling).await,
            Ask::Cancel(exec) => self.cancel(exec).await,
            Ask::Names(answer) => self.ask_names(answer).await,
            Ask::Resize(id, window) => self.window_changed(id, window).await,
            Ask::TakeControl(id) => self.take_control(id).await,
            Ask::KeyHelp(id) => self.toggle_help(id),
            Ask::Shot(answer) => {
                let at = self.consumed;
                let _ = answer.send((self.picture.shot(at).await, at));
                self.rest_soon();
            }
            Ask::Look { after, answer } => {
                let _ = answer.send(self.look(after).await);
            }
            Ask::Seen => self.attention_may_have_changed(),
            Ask::Dismiss => self.dismissed(),
            Ask::Hooked(agent, hook) => self.hear_hook(agent, hook),
            Ask::WaitText { pattern, found } => self.wait_for_text(pattern, found).await,
            Ask::WaitPrompt(found) => self.wait_for_prompt(found),
            Ask::Terminate { grace_ms, author } => {
                self.look_at_folder();
                self.terminating = Some(author);
                self.asked_to_end_at.get_or_insert(self.consumed);
                let _ = self.link.terminate(grace_ms).await;
            }
            Ask::Forget(ordered) => {
                // nothing of what goes is needed for the screen any more
                let at = self.consumed;
                self.picture.catch_up(at).await;
                let _ = ordered.send(self.link.forget().await.is_ok());
            }
            Ask::Renamed(name) => {
                self.name = name;
                self.is_dirty = true;
            }
            Ask::SettleFreezing(answer) => self.settle_freezing(answer).await,
            Ask::Notice(text) => {
                self.freezing.notice = Some(text);
                self.is_dirty = true;
            }
        }
    }

    /// The screen for somebody who only looks; built only if it is another than the one of `after`.
    async fn look(&mut self, after: Option<Offset>) -> (Offset, Option<Keyframe>) {
        let place = self.place();
        if after == Some(place) {
            return (place, None);
        }
        let at = self.consumed;
        let keyframe = self.picture.catch_up(at).await.keyframe();
        self.rest_soon();
        (place, Some(keyframe))
    }

    /// Names what is on the screen now: it changes with everything that changes that, recorded or not.
    fn place(&self) -> Offset {
        self.consumed + self.facts.unrecorded()
    }

    /// There is something else to look at.
    fn tell_sight(&self) {
        let place = self.place();
        self.sight.send_if_modified(|seen| std::mem::replace(seen, place) != place);
    }

    /// Something of an interpreter's calls was recorded: it counts, and whoever watches sees it.
    async fn noted(&mut self, noted: Noted) {
        match &noted {
            Noted::Printed(_, bytes) => self.count_output(bytes.len()),
            Noted::Late(bytes) => self.count_output(*bytes),
            _ => {}
        }
        self.note(noted).await;
        self.facts.happened_now();
        self.is_dirty = true;
        self.check_text().await;
        self.activity.send_modify(|count| *count += 1);
        self.rest_soon();
    }

    /// What should be in the recording, while the disk is full.
    async fn unrecorded_frame(&mut self, kind: u8, body: &[u8]) {
        let at = self.consumed;
        self.facts.add_unrecorded(body.len());
        let record = recording::understand(kind, body);
        if let Record::Stdout(bytes) | Record::Stderr(bytes) = record {
            self.unrecorded_output_seen(bytes.len() as u64);
        }
        let noted = match record {
            Record::Stdout(bytes) => Noted::Printed(Stream::Stdout, bytes.to_vec()),
            Record::Stderr(bytes) => Noted::Printed(Stream::Stderr, bytes.to_vec()),
            Record::Late(_, bytes) => Noted::Late(bytes.len()),
            Record::Call(call) => Noted::call(&call, at),
            Record::Result(result) => Noted::result(&result, at),
            Record::Resize(size) => {
                self.picture.catch_up(at).await;
                self.picture.screen().resize(size);
                self.resized(size).await;
                return self.tell_sight();
            }
            _ => return,
        };
        self.noted(noted).await;
        self.tell_sight();
    }
}
