//! new, ls, show, kill, rename, rm.

use std::path::PathBuf;

use shared::filter::Filter;
use shared::id::SessionId;
use shared::message::{Changed, Code, Failure, Gone, Layers, NewSession, Request};
use shared::paths::Paths;
use shared::runtime::{Keeps, Runtime, RuntimeState};
use shared::session::{Session, Status};
use shared::text::{shell_words, visible};

use super::table::{self, Look};
use super::targets::{self, TargetArgs};
use super::{LsArgs, NewArgs, print, print_json};
use crate::attach::{self, Wish};
use crate::{connect, environment, tty};

pub async fn new(paths: &Paths, args: NewArgs) -> Result<(), Failure> {
    let stays = args.detached || args.no_run || args.queue;
    if args.json && !stays {
        return Err(Failure::usage("--json prints the session instead of attaching to it: give -d too"));
    }
    if !stays && !tty::is_interactive() {
        return Err(Failure::usage("this is not a terminal, so there is nothing to attach to it: use `new -d` to start without attaching"));
    }
    let window = if stays { None } else { tty::window() };
    let given = args.workspace.is_some();
    let here = workspace(args.workspace)?;
    let request = NewSession {
        session: Some(SessionId::new()),
        name: args.name,
        workspace: given.then(|| here.clone()),
        here,
        argv: args.argv,
        no_run: args.no_run,
        must_start: !args.attach_existing,
        env_delta: args.env,
        environment: environment::inherited(),
        size: args.size.or(window),
        umask: Some(environment::umask()),
        task: args.task,
        mode: args.mode,
        user: args.user,
        channel: args.channel,
        max_iterations: args.max_iterations,
        context: args.context.unwrap_or_default(),
        metadata: args.metadata.unwrap_or_default(),
        idle_timeout: args.idle_timeout,
        max_duration: args.max_duration,
        group: args.group,
        queue: args.queue,
        keeps: match (args.no_record, args.record_input) {
            (true, _) => Some(Keeps::Nothing),
            (_, true) => Some(Keeps::OutputAndInput),
            _ => None,
        },
        watch: args.watch,
    };
    let changed: Changed = connect::call_repeatable(paths, Request::New(request)).await.map_err(with_flags)?;
    if args.json {
        return print_json(&changed);
    }
    if let Some(note) = &changed.note {
        eprintln!("{}", visible(note));
    }
    let session = changed.session;
    if session.status == Status::Queued && !args.detached {
        return print(&format!("{} is {}\n", visible(&session.name), table::status_words(&session)));
    }
    if stays {
        return print(&format!("{}\n", visible(&session.name)));
    }
    let client = connect::connect(paths).await?;
    let prefix = crate::settings::load_config(paths).0.keys.prefix;
    let wish = Wish { language: None, name: session.id.to_string(), read_only: false, prefix, typed: Vec::new() };
    attach::attach(paths, client, &wish).await?.say()
}

/// How to go on after a refusal, in words of the command line: the daemon answers other callers too.
fn with_flags(failure: Failure) -> Failure {
    if failure.code != Code::Status {
        return failure;
    }
    Failure { message: format!("{} (`sessions-tui kill NAME`, --attach-existing)", failure.message), ..failure }
}

pub fn workspace(given: Option<PathBuf>) -> Result<String, Failure> {
    let path = match given {
        Some(path) => std::path::absolute(&path).map_err(|error| Failure::usage(format!("-w {}: {error}", path.display())))?,
        None => {
            std::env::current_dir().map_err(|error| Failure::usage(format!("this folder cannot be used ({error}): give one with -w")))?
        }
    };
    // links are kept as the user wrote them, but dots are resolved
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    path.into_os_string().into_string().map_err(|path| Failure::usage(format!("the workspace {} is not Unicode", path.display())))
}

pub async fn ls(paths: &Paths, args: LsArgs) -> Result<(), Failure> {
    let filter = Filter { all: args.all, limit: args.limit, order: args.order.unwrap_or_default(), ..args.filter.filter()? };
    if args.watch {
        return super::watch::watch(paths, filter, colours()).await;
    }
    let is_filtered = filter.searches() || filter.limit.is_some();
    let sessions: Vec<Session> = connect::call(paths, Request::List(filter)).await?;
    if args.json {
        return print_json(&sessions);
    }
    if sessions.is_empty() {
        eprintln!(
            "{}",
            if is_filtered { "no session matches" } else { "no sessions yet: start one with `sessions-tui new -n NAME -- COMMAND`" }
        );
        return Ok(());
    }
    let home = std::env::var("HOME").ok();
    let look = Look { width: width(), colours: colours(), home: home.as_deref(), now: jiff::Timestamp::now() };
    print(&table::sessions(&sessions, &look))
}

/// How wide a line may be: as the terminal, or as COLUMNS says where there is none; else nothing is cut, for whoever looks for it.
pub(super) fn width() -> Option<usize> {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    tty::window().map(|size| usize::from(size.cols)).or_else(said)
}

pub(super) fn colours() -> bool {
    rustix::termios::isatty(rustix::stdio::stdout())
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

pub async fn show(paths: &Paths, name: String, json: bool) -> Result<(), Failure> {
    let layers: Layers = connect::call(paths, Request::Show { name }).await?;
    if json { print_json(&layers) } else { print(&layers_text(&layers)) }
}

fn layers_text(layers: &Layers) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let (thread, session) = (&layers.thread, &layers.session);
    let _ = writeln!(out, "thread {}", visible(&thread.name));
    out += &table::field("id", &thread.id.to_string());
    out += &table::field("workspace", &thread.workspace);
    for (label, value) in [("user", &thread.user), ("channel", &thread.channel)] {
        if let Some(value) = value {
            out += &table::field(label, value);
        }
    }
    out += &table::field("created", &thread.created_at.to_string());
    out += &table::field("tasks", &thread.task_count.to_string());
    let _ = writeln!(out, "session {} {}", table::mark(session.status), table::status_words(session));
    out += &table::field("id", &session.id.to_string());
    for (label, value) in [("task", &session.task), ("mode", &session.mode), ("error", &session.error), ("result", &session.result)] {
        if let Some(value) = value {
            out += &table::field(label, value);
        }
    }
    out += &table::field("iterations", &format!("{} of {}", session.iterations, session.max_iterations));
    if session.policy.has_limits() {
        out += &table::field("policy", &format!("idle {}, in all {}", session.policy.idle_timeout, session.policy.max_duration));
    }
    for (label, value) in [("context", &session.context), ("metadata", &session.metadata)] {
        if value.as_object().is_some_and(|map| !map.is_empty()) {
            out += &table::field(label, &value.to_string());
        }
    }
    if let Some(group) = &session.group {
        out += &table::field("group", group);
    }
    if let Some(watch) = &layers.watch {
        out += &table::field("files", &watch.in_words());
    }
    out += &table::field("created", &session.created_at.to_string());
    out += &table::field("last activity", &session.last_activity_at.to_string());
    if let Some(ended) = session.ended_at {
        out += &table::field("ended", &ended.to_string());
    }
    out += &table::field("clients", &session.clients.to_string());
    for line in layers.sessions.iter().filter(|line| line.id != session.id) {
        let reason = line.status_reason.as_ref().map(|reason| format!(": {}", visible(reason))).unwrap_or_default();
        let when = if line.created_at < session.created_at { "earlier" } else { "later" };
        let _ = writeln!(out, "{when} session {} {}{reason}", table::mark(line.status), line.status);
        out += &table::field("id", &line.id.to_string());
        out += &table::field("tasks", &line.task_count.to_string());
        out += &table::field("created", &line.created_at.to_string());
        out += &table::field("last activity", &line.last_activity_at.to_string());
    }
    for terminal in &layers.terminals {
        let _ = writeln!(out, "terminal {}", terminal.kind);
        out += &table::field("id", &terminal.id.to_string());
        out += &table::field("folder", &terminal.cwd);
        out += &table::field("size", &format!("{}x{}", terminal.size.cols, terminal.size.rows));
        out += &table::field("state version", &terminal.state_version.to_string());
        for (key, value) in &terminal.env_delta {
            out += &table::field("variable", &format!("{key}={value}"));
        }
    }
    for runtime in &layers.runtimes {
        out += &runtime_text(runtime);
    }
    for lease in &layers.leases {
        let _ = writeln!(out, "lease {}", lease.provider);
        out += &table::field("id", &lease.id.to_string());
        if let Some(instance) = &lease.instance {
            out += &table::field("instance", &format!("{} ({})", instance.id, instance.place));
        }
    }
    out
}

fn runtime_text(runtime: &Runtime) -> String {
    let state = match &runtime.state {
        RuntimeState::Starting => "starting".to_owned(),
        RuntimeState::Running { pid } => format!("running, pid {pid}"),
        RuntimeState::Frozen { pid, since } => format!("frozen since {}, pid {pid}", since.strftime("%Y-%m-%d %H:%M:%SZ")),
        RuntimeState::Hibernated { since, .. } => format!("hibernated since {}", since.strftime("%Y-%m-%d %H:%M:%SZ")),
        RuntimeState::Exited { status, .. } => format!("ended with {status}"),
        RuntimeState::Lost { reason, .. } => reason.sentence().to_owned(),
        RuntimeState::Refused { error, .. } => format!("not started: {error}"),
    };
    let mut out = format!("runtime {}\n", visible(&state));
    out += &table::field("id", &runtime.id.to_string());
    out += &table::field("command", &shell_words(&runtime.launch.argv));
    if let Some(pid) = runtime.holder_pid {
        out += &table::field("holder", &format!("pid {pid}"));
    }
    let recording = &runtime.recording;
    out += &table::field("recording", &format!("{} bytes on disk, offsets {} to {}", recording.bytes, recording.start, recording.end));
    if let Some(why) = &recording.suspended {
        out += &table::field("", &format!("suspended: {why}"));
    }
    for hole in &recording.missing {
        out += &table::field("", &format!("missing: {} bytes from offset {} on cannot be read", hole.bytes, hole.offset));
    }
    out
}

pub async fn kill(paths: &Paths, targets: TargetArgs, yes: bool, json: bool) -> Result<(), Failure> {
    if let Some(name) = targets.only() {
        return super::life::changed(paths, Request::Kill { name }, json).await;
    }
    let mut client = connect::connect(paths).await?;
    let targets = targets.resolve(&mut client, |session| !session.is_over()).await?;
    targets.confirm("End", yes)?;
    targets::change_each(&mut client, &targets, |name| Request::Kill { name }, json).await
}

pub async fn rename(paths: &Paths, name: String, new: String, json: bool) -> Result<(), Failure> {
    let session: Session = connect::call(paths, Request::Rename { name, new }).await?;
    if json { print_json(&session) } else { print(&format!("{}\n", visible(&session.name))) }
}

pub async fn rm(paths: &Paths, targets: TargetArgs, yes: bool, json: bool) -> Result<(), Failure> {
    let mut client = connect::connect(paths).await?;
    let targets = targets.resolve(&mut client, Session::is_over).await?;
    targets.confirm("Remove", yes)?;
    let (gone, failure) = targets::each::<Gone>(&mut client, &targets, |name| Request::Remove { name }).await;
    match gone.as_slice() {
        [one] if json && targets.is_one() => print_json(one)?,
        all if json && !targets.is_one() => print_json(&all)?,
        [] if failure.is_none() => print("no session matches\n")?,
        all => {
            let lines: Vec<String> = all.iter().map(|gone| format!("{} is removed, with its recording\n", visible(&gone.name))).collect();
            print(&lines.concat())?;
        }
    }
    failure.map_or(Ok(()), Err)
}
