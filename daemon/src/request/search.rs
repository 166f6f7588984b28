//! search: hits of all sessions, newest first, as they are found. Sessions and the segments of their recordings are looked at
//! by the newest that each may have, so that a hit can be told as soon as nothing newer can come. Recordings are read on threads
//! of their own, segment by segment.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use shared::id::{Offset, RuntimeId, SessionId};
use shared::message::{Failure, Push};
use shared::replay::MarkKind;
use shared::search::{Hit, Kind, SearchQuery, SearchSummary};

use super::Caller;
use super::replay::found_marks;
use crate::context::Context;
use crate::gaps;
use crate::recording::{self, Hole, OVERHEAD};
use crate::search::{self, Asked, During, Line, Searched, Segment, SegmentHit, Wanted, lines_of};
use crate::store::{ExecFacts, Scope, SearchedEvent, SearchedExec, SearchedRuntime, SearchedSession};

/// Sessions whose records are read at once.
const SESSIONS: usize = 32;

/// Between two words about how far it is.
const PROGRESS: Duration = Duration::from_millis(200);

/// Damaged recordings that are named.
const NAMED: usize = 10;

/// Of the hits told last of a recording, so many are not told again if the segment before ends with the same.
const SCREENFUL: usize = 64;

pub async fn search(context: &Context, caller: &Arc<Caller>, call: u64, query: SearchQuery) -> Result<SearchSummary, Failure> {
    let began = Instant::now();
    let pattern = Arc::new(search::Pattern::new(&query.pattern)?);
    let scope = match &query.name {
        Some(name) => scope(context, name.clone()).await?,
        None => Scope::All,
    };
    let coming = Coming { order: in_order(context, &query, scope).await?, read: VecDeque::new() };
    let live: u64 = context.registry.all().iter().map(|handle| handle.facts.end()).sum();
    let total = context.store.recorded_bytes(query.filter.clone(), scope).await? + live;
    let mut search = Search {
        context,
        caller,
        call,
        pattern,
        wanted: Wanted::default(),
        summary: SearchSummary::default(),
        found_in: HashSet::new(),
        pending: Vec::new(),
        told_last: HashMap::new(),
        passed: 0,
        total,
        told: began,
        query,
    };
    search.everything(coming).await?;
    let mut summary = search.summary;
    summary.sessions = search.found_in.len() as u64;
    summary.took_ms = began.elapsed().as_secs_f64() * 1000.0;
    Ok(summary)
}

async fn scope(context: &Context, name: String) -> Result<Scope, Failure> {
    let found = context.store.find(name).await?;
    Ok(if found.by_id { Scope::Session(found.session) } else { Scope::Thread(context.store.session(found.session).await?.thread) })
}

/// Which sessions, and until when something happened in each, latest first: what runs knows better than the database when that was.
async fn in_order(context: &Context, query: &SearchQuery, scope: Scope) -> Result<VecDeque<(SessionId, Timestamp)>, Failure> {
    let mut order = context.store.search_order(&query.filter, scope).await?;
    let live = context.registry.by_session();
    for (id, at) in &mut order {
        for handle in live.get(id).into_iter().flatten() {
            *at = handle.facts.last_activity().map_or(*at, |active| active.max(*at));
        }
    }
    order.sort_by_key(|(id, at)| std::cmp::Reverse((*at, *id)));
    Ok(order.into())
}

/// Sessions that have not been looked at yet.
struct Coming {
    order: VecDeque<(SessionId, Timestamp)>,
    /// What has been read of the first ones.
    read: VecDeque<SearchedSession>,
}

impl Coming {
    /// Nothing in any of them is newer than this, in microseconds since 1970.
    fn newest(&self) -> Option<i64> {
        self.order.front().map(|(_, at)| at.as_microsecond())
    }

    /// The first one, unless it has gone meanwhile.
    async fn next(&mut self, context: &Context) -> Result<Option<SearchedSession>, Failure> {
        if self.read.is_empty() {
            let ids = self.order.iter().take(SESSIONS).map(|(id, _)| *id).collect();
            self.read = context.store.searched_sessions(ids).await?.0.into();
        }
        let id = self.order.pop_front().map(|(id, _)| id);
        Ok(self.read.pop_front_if(|session| Some(session.id) == id))
    }
}

struct Search<'a> {
    context: &'a Context,
    caller: &'a Arc<Caller>,
    call: u64,
    query: SearchQuery,
    pattern: Arc<search::Pattern>,
    /// With us, whatever still reads for us ends.
    wanted: Wanted,
    summary: SearchSummary,
    found_in: HashSet<SessionId>,
    /// Hits that something newer may come before, newest first.
    pending: Vec<Hit>,
    /// The latest lines that were found in each recording.
    told_last: HashMap<RuntimeId, Vec<String>>,
    /// Bytes of recordings that are behind us, read or not.
    passed: u64,
    total: u64,
    told: Instant,
}

impl Search<'_> {
    /// Tells what is found until everything has been looked at, or enough is found.
    async fn everything(&mut self, mut coming: Coming) -> Result<(), Failure> {
        // oldest first: the next is the last
        let mut units: Vec<Unit> = Vec::new();
        loop {
            let (session, unit) = (coming.newest(), units.last().map(|unit| unit.segment.ended_at));
            if !self.tell(session.max(unit).unwrap_or(i64::MIN)).await? {
                self.summary.more = true;
                return Ok(());
            }
            if session.is_some() && session >= unit {
                if let Some(session) = coming.next(self.context).await? {
                    self.summary.searched_sessions += 1;
                    units.extend(self.session(session).await?);
                    units.sort_by_key(Unit::age);
                }
            } else if let Some(unit) = units.pop() {
                self.recording(&unit).await?;
                self.tell_progress();
            } else {
                return Ok(());
            }
        }
    }

    /// Looks through what the database has of a session, and gives the parts of its recordings that are to be searched.
    async fn session(&mut self, session: SearchedSession) -> Result<Vec<Unit>, Failure> {
        let found = self.records(&session).await?;
        self.found(found);
        if self.query.wants(Kind::Output) { self.units(&Arc::new(session)).await } else { Ok(Vec::new()) }
    }

    /// Keeps hits until it is their turn; more than are wanted need not be kept.
    fn found(&mut self, hits: Vec<Hit>) {
        if !hits.is_empty() {
            self.pending.extend(hits);
            self.pending.sort_by_key(|hit| std::cmp::Reverse((hit.at, hit.offset)));
            self.pending.truncate(self.left() + 1);
        }
    }

    fn left(&self) -> usize {
        self.query.limit().saturating_sub(self.summary.hits as usize)
    }

    /// Hits in what the database has of a session.
    async fn records(&self, session: &SearchedSession) -> Result<Vec<Hit>, Failure> {
        let mut hits = if self.query.wants(Kind::Task) { self.in_task(session) } else { Vec::new() };
        if self.query.wants(Kind::Event) {
            let own = Own { task: session.task.clone(), result: session.result.clone(), error: session.error.clone() };
            let (mut before, mut found) = (None, 0);
            loop {
                let own = own.clone();
                let page = self.context.store.searched_events(session.id, before).await?;
                let events = self.in_texts(page.rows, |event| self.takes_event(event), move |event| event_text(event, &own)).await;
                found += events.len();
                hits.extend(events.into_iter().map(|(event, line)| Hit {
                    part: Some(event.kind.clone()),
                    author: Some(event.author),
                    runtime: running_at(session, event.at),
                    ..hit(session, Kind::Event, event.at, line)
                }));
                before = page.next;
                if before.is_none() || found >= self.left() {
                    break;
                }
            }
        }
        if self.query.wants(Kind::Command) {
            hits.extend(self.in_commands(session).await);
        }
        if self.query.wants(Kind::Code) && session.has_execs {
            let (mut before, mut found) = (None, 0);
            loop {
                let page = self.context.store.searched_execs(session.id, before).await?;
                let execs = self.in_texts(page.rows, |exec| self.takes_exec(exec), |exec| exec.code.clone()).await;
                found += execs.len();
                hits.extend(execs.into_iter().map(|(exec, line)| Hit {
                    runtime: Some(exec.runtime),
                    offset: exec.start.map(|start| start + end_of_call(&exec)),
                    exec: Some(exec.id),
                    language: Some(exec.language),
                    exit_code: exec.exit_code,
                    author: Some(exec.author),
                    ..hit(session, Kind::Code, exec.at, line)
                }));
                before = page.next;
                if before.is_none() || found >= self.left() {
                    break;
                }
            }
        }
        Ok(hits)
    }

    /// Commands that shells have marked in their output.
    async fn in_commands(&self, session: &SearchedSession) -> Vec<Hit> {
        let mut hits = Vec::new();
        for runtime in session.runtimes.iter().filter(|runtime| runtime.language.is_none()) {
            let dir = self.context.paths.recording(runtime.id);
            let end = self.context.registry.runtime(runtime.id).map_or(Offset::MAX, |handle| handle.facts.end());
            let gone = self.wanted.gone();
            let marks = move || Some((recording::header(&dir)?, recording::Index::read(&dir, end, &|| gone.is_true()).ok()?.marks));
            let Some((header, marks)) = self.context.searches.take(marks).await.flatten() else { continue };
            // newest first, also of those that came in one piece
            for mark in found_marks(marks).into_iter().rev().filter(|mark| mark.kind == MarkKind::Command) {
                let at = Timestamp::from_microsecond(header.began_at.saturating_add_unsigned(mark.time)).unwrap_or_default();
                let is_meant = self.query.exit_code.is_none_or(|code| mark.exit_code == Some(code)) && self.query.is_in_time(at);
                if is_meant {
                    hits.extend(lines_of(&self.pattern, &mark.text, self.query.context()).into_iter().map(|line| Hit {
                        runtime: Some(runtime.id),
                        offset: mark.offset,
                        exit_code: mark.exit_code,
                        ..hit(session, Kind::Command, at, line)
                    }));
                }
            }
        }
        hits
    }

    fn in_task(&self, session: &SearchedSession) -> Vec<Hit> {
        let ended_at = session.ended_at.unwrap_or(session.updated_at);
        let texts = [
            ("name", Some(&session.name), session.created_at),
            ("task", session.task.as_ref(), session.created_at),
            ("result", session.result.as_ref(), ended_at),
            ("error", session.error.as_ref(), ended_at),
        ];
        let mut hits = Vec::new();
        for (part, text, at) in texts {
            if let Some(text) = text.filter(|_| self.query.is_in_time(at)) {
                hits.extend(lines_of(&self.pattern, text, self.query.context()).into_iter().map(|line| Hit {
                    part: Some(part.to_owned()),
                    runtime: running_at(session, at),
                    ..hit(session, Kind::Task, at, line)
                }));
            }
        }
        hits
    }

    fn takes_event(&self, event: &SearchedEvent) -> bool {
        self.query.author.is_none_or(|author| event.author == author) && self.query.is_in_time(event.at)
    }

    fn takes_exec(&self, exec: &SearchedExec) -> bool {
        self.query.author.is_none_or(|author| exec.author == author)
            && self.query.exit_code.is_none_or(|code| exec.exit_code == Some(code))
            && self.query.is_in_time(exec.at)
    }

    /// The rows with a match; looked for on another thread, because an expression may take its time.
    async fn in_texts<T: Send + Sync + 'static>(
        &self,
        mut rows: Vec<T>,
        takes: impl Fn(&T) -> bool,
        text: impl Fn(&T) -> String + Send + 'static,
    ) -> Vec<(Arc<T>, Line)> {
        rows.retain(takes);
        if rows.is_empty() {
            return Vec::new();
        }
        let (pattern, context) = (Arc::clone(&self.pattern), self.query.context());
        let work = move || {
            let mut found = Vec::new();
            for row in rows.into_iter().map(Arc::new) {
                found.extend(lines_of(&pattern, &text(&row), context).into_iter().map(|line| (Arc::clone(&row), line)));
            }
            found
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    /// Searches a part of a recording. Parts come newest first, so what a later one ended with is known.
    async fn recording(&mut self, unit: &Unit) -> Result<(), Failure> {
        let found = self.search_unit(unit).await?;
        let last = self.told_last.entry(unit.runtime.id).or_default();
        let mut hits = Vec::new();
        for hit in found {
            if !last.contains(&hit.line.text) {
                last.push(hit.line.text.clone());
                hits.push(output_hit(&unit.session, &unit.runtime, hit));
            }
        }
        last.drain(..last.len().saturating_sub(SCREENFUL));
        self.found(hits);
        Ok(())
    }

    /// The segments of a session's recordings that may have what is looked for.
    async fn units(&mut self, session: &Arc<SearchedSession>) -> Result<Vec<Unit>, Failure> {
        let mut units = Vec::new();
        for runtime in &session.runtimes {
            let narrowed = self.query.exit_code.is_some() || self.query.author.is_some();
            let spans = match runtime.language {
                Some(_) if narrowed => {
                    let spans = self.context.store.exec_spans(session.thread, runtime.id, self.query.exit_code, self.query.author).await?;
                    Some(Arc::new(spans)).filter(|spans| !spans.is_empty())
                }
                _ => None,
            };
            let is_meant = match runtime.language {
                Some(_) => !narrowed || spans.is_some(),
                // a program has no author, and the exit code is its own
                None => self.query.author.is_none() && self.query.exit_code.is_none_or(|code| runtime.exit_code == Some(code)),
            };
            let end = self.context.registry.runtime(runtime.id).map(|handle| handle.facts.end());
            if !is_meant {
                self.passed += end.unwrap_or(runtime.recorded_bytes);
                continue;
            }
            let dir = self.context.paths.recording(runtime.id);
            let Some((segments, dropped)) = self.context.searches.take(move || search::plan(&dir, end)).await else { continue };
            self.summary.dropped_bytes += dropped;
            self.passed += dropped;
            for segment in segments {
                let is_too_old = self.query.after.is_some_and(|after| segment.ended_at < after.as_microsecond());
                let is_too_new = self.query.before.is_some_and(|before| segment.began_at >= before.as_microsecond());
                if is_too_old || is_too_new {
                    self.passed += segment.until.min(runtime.recorded_bytes.max(segment.start)) - segment.start;
                } else {
                    units.push(Unit { session: Arc::clone(session), runtime: runtime.clone(), segment, spans: spans.clone() });
                }
            }
        }
        Ok(units)
    }

    async fn search_unit(&mut self, unit: &Unit) -> Result<Vec<SegmentHit>, Failure> {
        let asked = Asked {
            pattern: Arc::clone(&self.pattern),
            context: self.query.context(),
            newest: Some(self.left()),
            after: self.query.after.map(Timestamp::as_microsecond),
            before: self.query.before.map(Timestamp::as_microsecond),
            between: (0, Offset::MAX),
            spans: unit.spans.clone(),
            gone: self.wanted.gone(),
        };
        let searched = read(self.context, unit.segment.clone(), asked).await?;
        self.passed += searched.bytes;
        self.summary.searched_bytes += searched.bytes;
        for hole in searched.missing {
            let Hole { offset, bytes } = hole;
            self.summary.damaged_bytes += bytes;
            if self.summary.damaged.len() < NAMED {
                let (name, id) = (&unit.session.name, unit.runtime.id);
                self.summary.damaged.push(format!("{name} ({id}): {bytes} bytes from offset {offset} on cannot be read"));
            }
            Box::pin(gaps::note(self.context, unit.session.id, unit.runtime.id, hole)).await;
        }
        Ok(searched.hits)
    }

    /// Tells hits at or behind this time, newest first; `false` when no more are wanted.
    async fn tell(&mut self, bound: i64) -> Result<bool, Failure> {
        let ready = self.pending.partition_point(|hit| hit.at.as_microsecond() >= bound);
        if ready == 0 {
            return Ok(true);
        }
        for mut hit in self.pending.drain(..ready).collect::<Vec<_>>() {
            if self.left() == 0 {
                return Ok(false);
            }
            complete(self.context, &mut hit).await?;
            self.summary.hits += 1;
            self.found_in.insert(hit.session);
            self.caller.outbox.line(&Push::Hit { call: self.call, hit: Box::new(hit) });
        }
        // a client that has gone takes this request with it
        self.caller.outbox.drained().await;
        Ok(self.left() > 0)
    }

    fn tell_progress(&mut self) {
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            let (searched, total) = (self.passed, self.total.max(self.passed));
            self.caller.outbox.line(&Push::SearchProgress { call: self.call, searched, total });
        }
    }
}

/// A segment that is to be searched.
struct Unit {
    session: Arc<SearchedSession>,
    runtime: SearchedRuntime,
    segment: Segment,
    spans: Option<Arc<Vec<(Offset, Offset)>>>,
}

impl Unit {
    fn age(&self) -> (i64, i64, Offset) {
        (self.segment.ended_at, self.segment.began_at, self.segment.start)
    }
}

pub(super) async fn read(context: &Context, segment: Segment, asked: Asked) -> Result<Searched, Failure> {
    let searched = context.searches.take(move || search::search(&segment, &asked)).await;
    searched.ok_or_else(|| Failure::failed("the search came to an unexpected end: `sessions-tui daemon logs` may say why"))
}

fn hit(session: &SearchedSession, kind: Kind, at: Timestamp, line: Line) -> Hit {
    Hit {
        session: session.id,
        name: session.name.clone(),
        thread: session.thread,
        kind,
        part: None,
        at,
        runtime: None,
        offset: None,
        exec: None,
        language: None,
        exit_code: None,
        author: None,
        line: line.text,
        ranges: line.ranges,
        perceived: line.perceived,
        before: line.before,
        after: line.after,
        times: 1,
    }
}

pub(super) fn output_hit(session: &SearchedSession, runtime: &SearchedRuntime, found: SegmentHit) -> Hit {
    let at = Timestamp::from_microsecond(found.at).unwrap_or(Timestamp::UNIX_EPOCH);
    Hit {
        part: found.stream.map(|stream| stream.as_str().to_owned()),
        runtime: Some(runtime.id),
        offset: Some(found.offset),
        exec: match found.during {
            During::Exec(id) => Some(id),
            During::Unknown | During::Nothing => None,
        },
        language: runtime.language,
        exit_code: runtime.language.is_none().then_some(runtime.exit_code).flatten(),
        times: found.times,
        ..hit(session, Kind::Output, at, found.line)
    }
}

/// What the database knows of the call whose output it is.
pub(super) async fn complete(context: &Context, hit: &mut Hit) -> Result<(), Failure> {
    let (Kind::Output, Some(_), Some(runtime), Some(offset)) = (hit.kind, hit.language, hit.runtime, hit.offset) else { return Ok(()) };
    let facts = match hit.exec {
        Some(id) => context.store.exec_facts(id).await?,
        None => context.store.exec_at(hit.thread, runtime, offset).await?,
    };
    if let Some(ExecFacts { id, author, exit_code }) = facts {
        (hit.exec, hit.author, hit.exit_code) = (Some(id), Some(author), exit_code);
    }
    Ok(())
}

/// What a session says of itself.
#[derive(Clone)]
struct Own {
    task: Option<String>,
    result: Option<String>,
    error: Option<String>,
}

/// An event as it is shown; without what its session says itself, which is found there.
fn event_text(event: &SearchedEvent, own: &Own) -> String {
    let mut data = Cow::Borrowed(event.data.as_str());
    if matches!(event.kind.as_str(), "start" | "queued" | "task" | "complete" | "error")
        && let Ok(serde_json::Value::Object(mut fields)) = serde_json::from_str(&event.data)
    {
        for (name, text) in [("task", &own.task), ("result", &own.result), ("error", &own.error)] {
            if fields.get(name).and_then(serde_json::Value::as_str) == text.as_deref() {
                fields.shift_remove(name);
            }
        }
        data = Cow::Owned(serde_json::Value::Object(fields).to_string());
    }
    format!("{} {data}", event.kind)
}

/// The program, or else the interpreter, that was there at that time.
fn running_at(session: &SearchedSession, at: Timestamp) -> Option<RuntimeId> {
    let there = || session.runtimes.iter().filter(|runtime| runtime.created_at <= at);
    there().find(|runtime| runtime.language.is_none()).or_else(|| there().next()).map(|runtime| runtime.id)
}

/// Bytes of a call's frame.
fn end_of_call(exec: &SearchedExec) -> u64 {
    let call = recording::Call { id: exec.id, mid_line: false, verb: 0, code: exec.code.as_bytes() };
    (OVERHEAD + call.size()) as u64
}
