//! The layers of a thread as lines: what is there, in words. Pure.

use jiff::tz::TimeZone;
use shared::exec::State;
use shared::message::Layers;
use shared::runtime::{Runtime, RuntimeState};
use shared::session::Session;
use shared::text::{count, shell_words, visible};

use crate::words::{bytes, status_words};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerLine {
    /// Empty: a heading.
    pub label: String,
    pub value: String,
    pub tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Heading,
    Plain,
    Bad,
}

struct Lines<'a> {
    lines: Vec<LayerLine>,
    zone: &'a TimeZone,
}

impl Lines<'_> {
    /// On the user's own clock.
    fn moment(&self, at: jiff::Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    fn heading(&mut self, text: impl Into<String>) {
        if !self.lines.is_empty() {
            self.lines.push(LayerLine { label: String::new(), value: String::new(), tone: Tone::Plain });
        }
        self.lines.push(LayerLine { label: String::new(), value: text.into(), tone: Tone::Heading });
    }

    fn field(&mut self, label: &str, value: impl AsRef<str>) {
        self.lines.push(LayerLine { label: label.into(), value: visible(value.as_ref()), tone: Tone::Plain });
    }

    fn maybe(&mut self, label: &str, value: Option<&str>) {
        if let Some(value) = value {
            for (n, line) in value.lines().enumerate() {
                self.field(if n == 0 { label } else { "" }, line);
            }
        }
    }

    fn bad(&mut self, label: &str, value: &str) {
        self.lines.push(LayerLine { label: label.into(), value: visible(value), tone: Tone::Bad });
    }
}

pub fn lines(session: Option<&Session>, layers: Option<&Layers>, states: &[State], zone: &TimeZone) -> Vec<LayerLine> {
    let mut lines = Lines { lines: Vec::new(), zone };
    if let Some(session) = session {
        of_session(session, layers, &mut lines);
    }
    if let Some(layers) = layers {
        of_thread(layers, &mut lines);
        for terminal in &layers.terminals {
            lines.heading(format!("terminal · {}", terminal.kind));
            lines.field("folder", &terminal.cwd);
            lines.field("state", format!("version {}, {}×{}", terminal.state_version, terminal.size.cols, terminal.size.rows));
            for (name, value) in &terminal.env_delta {
                let value = if shared::exec::looks_secret(name) { shared::exec::MASK } else { value };
                lines.field("sets", format!("{name}={value}"));
            }
            for runtime in layers.runtimes.iter().filter(|runtime| runtime.terminal == terminal.id) {
                of_runtime(runtime, &mut lines);
            }
        }
        for lease in &layers.leases {
            lines.heading(format!("lease · {}", lease.provider));
            if let Some(instance) = &lease.instance {
                lines.field("instance", format!("{} since {}", instance.place, lines.moment(instance.created_at)));
            }
        }
    }
    for state in states {
        lines.heading(format!("interpreter · {}", state.language));
        let how = match (state.alive, state.busy) {
            (false, _) => "not running".to_owned(),
            (true, busy) => {
                let pid = state.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
                format!(
                    "{}{pid}{}",
                    if busy { "busy" } else { "ready" },
                    state.version.as_ref().map(|version| format!(", {version}")).unwrap_or_default()
                )
            }
        };
        lines.field("is", how);
        lines.field("folder", &state.working_dir);
        for (name, value) in &state.env_vars {
            lines.field("sets", format!("{name}={value}"));
        }
        if !state.imports.is_empty() {
            lines.field("imports", state.imports.join(" "));
        }
        if !state.names.is_empty() {
            lines.field("names", state.names.join(" "));
        }
        lines.field("state", format!("version {}", state.state_version));
    }
    if let Some(session) = session {
        lines.heading("ids");
        lines.field("session", session.id.to_string());
    }
    if let Some(layers) = layers {
        lines.field("thread", layers.thread.id.to_string());
        for lease in &layers.leases {
            lines.field("lease", lease.id.to_string());
        }
    }
    lines.lines
}

fn of_session(session: &Session, layers: Option<&Layers>, lines: &mut Lines<'_>) {
    lines.heading(format!("session · {}", visible(&session.name)));
    lines.field("status", status_words(session));
    if let Some(why) = &session.unreachable {
        lines.bad("unreachable", why);
    }
    opening(session, layers, lines);
    if let Some(needs) = &session.needs {
        lines.field("attention", format!("{} since {}: {}", needs.state, lines.moment(needs.since), needs.why));
    }
    for (n, clue) in layers.into_iter().flat_map(|layers| &layers.evidence).enumerate() {
        let mark = if clue.decides { "▸" } else { " " };
        let ignored = clue.ignored.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("{mark} {} {} {}: {}{ignored}", clue.weight, clue.source, clue.state, clue.text);
        lines.field(if n == 0 { "because" } else { "" }, text);
    }
    lines.maybe("task", session.task.as_deref());
    lines.maybe("mode", session.mode.as_deref());
    lines.maybe("user", session.user.as_deref());
    lines.maybe("channel", session.channel.as_deref());
    lines.field("iterations", format!("{} of {}", session.iterations, session.max_iterations));
    lines.field("created", lines.moment(session.created_at));
    lines.field("policy", format!("idle {}, in all {}", session.policy.idle_timeout, session.policy.max_duration));
    lines.maybe("group", session.group.as_deref());
    lines.maybe("files", layers.and_then(|layers| layers.watch.as_ref()).map(shared::watch::Watching::in_words).as_deref());
    lines.maybe("result", session.result.as_deref());
    if let Some(error) = &session.error {
        lines.bad("error", error);
    }
}

/// What people look for first: what runs where, since when, how large, when it last said something, who watches.
fn opening(session: &Session, layers: Option<&Layers>, lines: &mut Lines<'_>) {
    let command = crate::words::command_words(session);
    if !command.is_empty() {
        lines.field("command", command);
    }
    let terminal = layers.and_then(|layers| layers.terminals.first());
    lines.field("directory", terminal.map_or(&session.workspace, |terminal| &terminal.cwd));
    if terminal.is_some_and(|terminal| terminal.cwd != session.workspace) {
        lines.field("workspace", &session.workspace);
    }
    let started = session.started_at.unwrap_or(session.created_at);
    match session.ended_at {
        Some(at) => {
            let ran = at.duration_since(started).as_secs_f64().max(0.0) * 1000.0;
            lines.field("ran", format!("{}, until {}", crate::words::length(ran), lines.moment(at)));
        }
        None => lines.field("up since", lines.moment(started)),
    }
    if let Some(size) = session.size {
        lines.field("size", format!("{}×{}", size.cols, size.rows));
    }
    lines.field("last output", lines.moment(session.last_activity_at));
    lines.field("clients", if session.clients == 0 { "none".to_owned() } else { count(session.clients as usize, "client") });
}

fn of_thread(layers: &Layers, lines: &mut Lines<'_>) {
    lines.heading("thread");
    lines.field("tasks", layers.thread.task_count.to_string());
    for line in layers.sessions.iter().skip(1).take(10) {
        let task = line.task.as_deref().map(|task| format!(": {}", task.lines().next().unwrap_or_default())).unwrap_or_default();
        lines.field("before", format!("{} {}{task}", lines.moment(line.created_at), line.status));
    }
}

fn of_runtime(runtime: &Runtime, lines: &mut Lines<'_>) {
    lines.field("program", shell_words(&runtime.launch.argv));
    if let Some(known) = &runtime.agent {
        let id = known.session_id.as_deref().map(|id| format!(", conversation {id}")).unwrap_or_default();
        lines.field("agent", format!("{}{id}", known.agent));
    }
    match &runtime.state {
        RuntimeState::Starting => lines.field("runtime", "starting"),
        RuntimeState::Running { pid } => {
            let holder = runtime.holder_pid.map(|pid| format!(", holder {pid}")).unwrap_or_default();
            lines.field("runtime", format!("running, pid {pid}{holder}"));
        }
        RuntimeState::Frozen { pid, since } => {
            lines.field("runtime", format!("paused {}: everything of it stands still, pid {pid}", lines.moment(*since)));
        }
        RuntimeState::Hibernated { since, .. } => {
            lines.field("runtime", format!("hibernated {}: started again when it is needed", lines.moment(*since)));
        }
        RuntimeState::Exited { status, at } => lines.field("runtime", format!("ended {} with {status}", lines.moment(*at))),
        RuntimeState::Lost { reason, at } => lines.bad("runtime", &format!("{} ({})", reason.sentence(), lines.moment(*at))),
        RuntimeState::Refused { error, .. } => lines.bad("runtime", error),
    }
    lines.field("recording", format!("{} on disk", bytes(runtime.recording.bytes)));
    if let Some(why) = &runtime.recording.suspended {
        lines.bad("suspended", why);
    }
    let missing: u64 = runtime.recording.missing.iter().map(|hole| hole.bytes).sum();
    if missing > 0 {
        lines.bad("missing", &format!("{} of it cannot be read", bytes(missing)));
    }
}
