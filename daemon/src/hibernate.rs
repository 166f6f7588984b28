//! Sessions that are hibernated by themselves: idle for too long, too many of them, or the machine is short of memory. It sleeps until
//! one of these may have come true. Never one that somebody looks at, that works, or that waits for an answer.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use shared::attention::Attention;
use shared::config::PauseConfig;
use shared::event::Author;
use shared::id::SessionId;
use shared::message::Failure;
use shared::session::{Session, Status};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};

use crate::clock::Steady;
use crate::context::{Context, Stop};
use crate::overlay::with_live;
use crate::pausing::{self, Working};

/// What was used a moment ago is not in the way yet, however many there are.
const JUST_USED: i64 = 5_000_000;

/// The kernel watches for pressure over such windows; users without rights may only ask for multiples of this.
const WINDOW_MICROS: u64 = 2_000_000;

/// After any of these somebody may be idle, or one too many.
const NEARER: &[&str] = &["start", "resume", "detach", "exec_finished", "status", "restored", "notification", "bell"];

/// A program that could be hibernated, if it is free.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    session: SessionId,
    idle_since: Steady,
    is_free: bool,
}

/// Why one is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Because {
    Idle,
    TooMany,
    Pressure,
}

impl Because {
    fn words(self, config: &PauseConfig) -> String {
        match self {
            Self::Idle => format!("hibernated: nothing happened in it for {}", config.hibernate_after),
            Self::TooMany => format!("hibernated: more than {} programs were live", config.max_live),
            Self::Pressure => "hibernated: the machine was short of memory".to_owned(),
        }
    }
}

pub async fn run(context: Context) {
    let mut settings = context.settings.changes();
    loop {
        settings.borrow_and_update();
        let config = context.config().pause.clone();
        if config.hibernate_after.span().is_none() && config.max_live == 0 && config.memory_pressure == 0 {
            if settings.changed().await.is_err() {
                return;
            }
            continue;
        }
        keep_to(&context, &config, &mut settings).await;
        if *context.stop.borrow() != Stop::No {
            return;
        }
    }
}

/// Until there are other rules.
async fn keep_to(context: &Context, config: &PauseConfig, settings: &mut watch::Receiver<u64>) {
    let pressure = Arc::new(Notify::new());
    let mut watched = None;
    if config.memory_pressure > 0 {
        match watch_pressure(config, Arc::clone(&pressure)) {
            Ok(until) => watched = Some(until),
            Err(error) => {
                context.warn(format!("config.toml, [pause] memory_pressure: {} cannot be watched: {error}", config.pressure_file));
            }
        }
    }
    let mut news = context.store.announcements();
    let mut is_short = false;
    loop {
        // a program is announced before it runs: whoever comes or goes is looked at then, too
        let changed = context.registry.changed();
        let (chosen, next) = choose(&candidates(context).await, config, context.clock.now(), is_short);
        is_short = false;
        for (session, because) in chosen {
            if *context.stop.borrow() != Stop::No {
                return;
            }
            match by_itself(context, session, because.words(config)).await {
                Ok(()) => context.log.note(&format!("session {session} is {}", because.words(config))),
                Err(failure) => context.log.warn(&format!("session {session}: {}", failure.message)),
            }
        }
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(context.clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(due, changed);
        loop {
            tokio::select! {
                () = &mut due => break,
                () = &mut changed => break,
                _ = settings.changed() => {
                    if context.config().pause != *config {
                        drop(watched);
                        return;
                    }
                }
                () = pressure.notified() => {
                    is_short = true;
                    break;
                }
                event = news.recv() => match event {
                    Ok(event) if NEARER.contains(&event.kind.as_str()) => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Decided by what was true a moment ago: looked at again.
async fn by_itself(context: &Context, session: SessionId, reason: String) -> Result<(), Failure> {
    let session = with_live(context, context.store.session(session).await?);
    pausing::hibernate(context, session, Some(reason), Working::IsRefused, Author::Daemon).await.map(|_| ())
}

async fn candidates(context: &Context) -> Vec<Candidate> {
    let mut found = Vec::new();
    for handle in context.registry.all().into_iter().filter(|handle| handle.language.is_none()) {
        let Ok(session) = context.store.session(handle.facts.session()).await else { continue };
        let needs = handle.facts.needs().map(|needs| needs.state);
        let is_free = session.status == Status::Active
            && is_quiet(needs)
            && handle.facts.clients() == 0
            && !handle.facts.is_controlled()
            && handle.facts.frozen().is_none()
            && pausing::works(context, &Session { needs: handle.facts.needs(), ..session.clone() }).is_none();
        found.push(Candidate { session: session.id, idle_since: handle.facts.last_steady(), is_free });
    }
    found
}

/// Silence is no answer: what waits for one is left alone.
fn is_quiet(needs: Option<Attention>) -> bool {
    !matches!(needs, Some(Attention::Working | Attention::WaitingApproval | Attention::WaitingAnswer | Attention::Stuck))
}

/// Who is hibernated now and why, and when to look again at the latest. Pure.
fn choose(candidates: &[Candidate], config: &PauseConfig, now: Steady, is_short: bool) -> (Vec<(SessionId, Because)>, Option<Steady>) {
    let mut free: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.is_free).collect();
    free.sort_by_key(|candidate| candidate.idle_since);
    let mut chosen: Vec<(SessionId, Because)> = Vec::new();
    let mut next: Option<Steady> = None;
    let mut again = |at: Steady| next = Some(next.map_or(at, |soonest: Steady| soonest.min(at)));
    if let Some(span) = config.hibernate_after.span() {
        for candidate in &free {
            let due = candidate.idle_since + span.micros();
            if due <= now {
                chosen.push((candidate.session, Because::Idle));
            } else {
                again(due);
            }
        }
    }
    let too_many = match config.max_live {
        0 => 0,
        most => (candidates.len() - chosen.len()).saturating_sub(most as usize),
    };
    let others: Vec<&Candidate> = free.into_iter().filter(|one| chosen.iter().all(|(id, _)| *id != one.session)).collect();
    for candidate in others.iter().take(too_many) {
        if candidate.idle_since + JUST_USED <= now {
            chosen.push((candidate.session, Because::TooMany));
        } else {
            again(candidate.idle_since + JUST_USED);
        }
    }
    // one at a time: what that frees is seen in the next window
    if is_short
        && chosen.is_empty()
        && let Some(candidate) = others.first().filter(|candidate| candidate.idle_since + JUST_USED <= now)
    {
        chosen.push((candidate.session, Because::Pressure));
    }
    (chosen, next)
}

/// Asks the kernel to tell when processes have waited for memory for too long, and waits for that in a thread of its own, which ends
/// when what it gives is dropped.
fn watch_pressure(config: &PauseConfig, pressure: Arc<Notify>) -> std::io::Result<OwnedFd> {
    use std::io::Write;
    let mut file = std::fs::File::options().read(true).write(true).open(&config.pressure_file)?;
    let stall = WINDOW_MICROS * u64::from(config.memory_pressure.min(99)) / 100;
    // in one piece: the kernel takes each for a whole wish
    file.write_all(format!("some {stall} {WINDOW_MICROS}\0").as_bytes())?;
    let (dropped, until) = crate::descriptor::pipe()?;
    std::thread::Builder::new().name("pressure".into()).spawn(move || {
        loop {
            let mut fds =
                [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::PRI), PollFd::from_borrowed_fd(dropped.as_fd(), PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) if !fds[1].revents().is_empty() || fds[0].revents().contains(PollFlags::ERR) => return,
                Ok(_) if fds[0].revents().contains(PollFlags::PRI) => pressure.notify_one(),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::policy::Limit;

    const SECOND: i64 = 1_000_000;

    /// What, candidates, rules, now, short of memory → chosen, look again.
    type Row = (&'static str, Vec<Candidate>, PauseConfig, i64, bool, Vec<(usize, Because)>, Option<i64>);

    #[test]
    fn who_is_hibernated() {
        let ids: Vec<SessionId> = (0..4).map(|_| SessionId::new()).collect();
        let at = |index: usize, idle_since: i64, is_free: bool| Candidate { session: ids[index], idle_since: idle_since * SECOND, is_free };
        let rules = |after: Option<u64>, max_live: u32| PauseConfig {
            hibernate_after: after.map_or(Limit::None, Limit::secs),
            max_live,
            ..PauseConfig::default()
        };
        let table: Vec<Row> = vec![
            ("no rule", vec![at(0, 0, true)], rules(None, 0), 9999, false, vec![], None),
            ("idle long enough", vec![at(0, 0, true), at(1, 50, true)], rules(Some(60), 0), 60, false, vec![(0, Because::Idle)], Some(110)),
            ("idle, but somebody is there", vec![at(0, 0, false)], rules(Some(60), 0), 999, false, vec![], None),
            (
                "too many: the longest idle goes",
                vec![at(0, 40, true), at(1, 10, true), at(2, 20, true)],
                rules(None, 2),
                100,
                false,
                vec![(1, Because::TooMany)],
                None,
            ),
            (
                "those in use count, and stay",
                vec![at(0, 0, false), at(1, 10, true)],
                rules(None, 1),
                100,
                false,
                vec![(1, Because::TooMany)],
                None,
            ),
            ("just used", vec![at(0, 98, true), at(1, 99, true)], rules(None, 1), 100, false, vec![], Some(103)),
            (
                "one that is idle makes room",
                vec![at(0, 0, true), at(1, 90, true)],
                rules(Some(60), 1),
                100,
                false,
                vec![(0, Because::Idle)],
                Some(150),
            ),
            ("short of memory: one", vec![at(0, 30, true), at(1, 10, true)], rules(None, 0), 100, true, vec![(1, Because::Pressure)], None),
            ("short of memory, nobody is free", vec![at(0, 30, false)], rules(None, 0), 100, true, vec![], None),
        ];
        for (what, candidates, config, now, is_short, expected, next) in table {
            let (chosen, again) = choose(&candidates, &config, now * SECOND, is_short);
            let expected: Vec<(SessionId, Because)> = expected.into_iter().map(|(index, because)| (ids[index], because)).collect();
            assert_eq!((chosen, again), (expected, next.map(|at| at * SECOND)), "{what}");
        }
    }

    #[test]
    fn whoever_waits_is_left_alone() {
        for (state, quiet) in [
            (None, true),
            (Some(Attention::Idle), true),
            (Some(Attention::Unknown), true),
            (Some(Attention::DoneUnseen), true),
            (Some(Attention::Working), false),
            (Some(Attention::WaitingApproval), false),
            (Some(Attention::WaitingAnswer), false),
            (Some(Attention::Stuck), false),
        ] {
            assert_eq!(is_quiet(state), quiet, "{state:?}");
        }
    }
}
