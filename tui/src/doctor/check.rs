//! The judgement: facts in, findings out. No I/O.

use shared::doctor::Database;
use shared::text::count;

use super::{Finding, Verdict};

/// Below this, recordings are about to be suspended.
const LITTLE_DISK: u64 = 512 << 20;

/// Fewer watched folders than a middling source tree has.
const FEW_WATCHES: u64 = 8192;

/// A clock that is corrected by a time server moves less.
const CLOCK_SLACK_SECONDS: i64 = 60;

/// Everything that is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub daemon: Daemon,
    pub version: String,
    pub socket: Socket,
    /// Why the socket cannot be where it should, or that it is elsewhere for its length.
    pub path: Path,
    /// Folders and files that are to be ours alone.
    pub places: Vec<Place>,
    /// What is wrong with config.toml and agents' files, and what holds instead.
    pub config: Vec<String>,
    pub database: Database,
    pub disk_free: Option<u64>,
    /// Files that can still be made, where that is limited.
    pub files_free: Option<u64>,
    /// Name of a language, and its interpreter or why there is none.
    pub interpreters: Vec<(String, Result<String, Missing>)>,
    pub shell: Shell,
    /// `LC_ALL`, `LC_CTYPE` or `LANG`, whichever decides, and what it says.
    pub locale: Option<(String, String)>,
    pub terminal: Terminal,
    /// The session this runs in.
    pub inside: Option<String>,
    /// The prefix of the tmux around, as tmux writes it; empty if it does not say.
    pub tmux: Option<String>,
    /// Our own, as tmux would write it.
    pub prefix: String,
    pub service: Option<Service>,
    pub lingers: Option<bool>,
    pub has_user_manager: bool,
    pub watches: Option<u64>,
    pub holders: Vec<Holder>,
    pub clock: Option<Clock>,
    /// Names of sessions that were lost with the machine and can be started again.
    pub restorable: Vec<String>,
    /// Sessions whose holders cannot be reached, and why.
    pub unreachable: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// It never ran here.
    Never,
    NotRunning,
    Running {
        pid: u32,
        version: String,
        same_protocol: bool,
    },
    /// It has the lock, or listens, but says nothing; with its pid, if that can be told.
    Silent(Option<u32>),
    /// It listens, but not where the user says: a sentence.
    Elsewhere(String),
    /// Something else listens there.
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    Absent,
    Listening,
    Stale,
    OtherFile,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    Usual,
    /// The folder that is used instead.
    Elsewhere(String),
    /// The named socket, and its length.
    TooLong(String, usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub path: String,
    pub mode: u32,
    pub is_ours: bool,
    pub is_folder: bool,
    pub guard: Guard,
    /// Nothing can be made in it.
    pub is_read_only: bool,
}

/// What others may not do with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Anything,
    /// It may be read: settings are no secret, but whoever can change them decides what is run.
    Writing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The settings name it, and it is no program.
    Named(String),
    NotOnPath,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    Found(String),
    Unset,
    NoProgram(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminal {
    None,
    Is { term: Option<String>, columns: u16, rows: u16 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub words: String,
    pub is_current: bool,
    pub is_systemd: bool,
}

/// A process that holds a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// The runtime's id, hyphens left out as in the name of its socket.
    pub runtime: String,
    pub has_socket: bool,
}

/// Seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The wall clock, beyond the steady one.
    pub ahead: i64,
    /// How long the machine was suspended since it was started.
    pub suspended: i64,
}

pub fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![daemon(facts), socket(facts), path(&facts.path)];
    findings.extend(permissions(&facts.places));
    if facts.config.is_empty() {
        findings.push(fine("config", "the settings are read without complaint"));
    }
    let corrected = "correct it: a file without mistakes counts at once (`sessions-tui config check` names each)";
    findings.extend(facts.config.iter().map(|why| wrong("config", why.clone(), corrected)));
    findings.push(database(&facts.database));
    findings.extend(gaps(&facts.database));
    findings.push(disk(facts.disk_free, facts.files_free));
    findings.extend(facts.interpreters.iter().map(|(language, found)| interpreter(language, found)));
    findings.push(shell(&facts.shell));
    findings.push(locale(facts.locale.as_ref()));
    findings.push(terminal(&facts.terminal));
    findings.push(nested(facts));
    findings.push(service(facts));
    findings.extend(linger(facts));
    findings.extend(facts.watches.map(watches));
    findings.extend(holders(facts));
    findings.extend(facts.clock.map(clock));
    findings.extend(restorable(&facts.restorable));
    findings
}

fn fine(check: &'static str, says: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Fine, says: says.into(), mend: None }
}

fn wrong(check: &'static str, says: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Wrong, says: says.into(), mend: Some(mend.into()) }
}

fn note(check: &'static str, says: impl Into<String>, mend: Option<&str>) -> Finding {
    Finding { check, verdict: Verdict::Note, says: says.into(), mend: mend.map(str::to_owned) }
}

fn daemon(facts: &Facts) -> Finding {
    match &facts.daemon {
        Daemon::Never => note("daemon", "it has never run here; any command starts it", Some("sessions-tui daemon start")),
        Daemon::NotRunning => {
            wrong("daemon", "it is not running; sessions go on without it, and any command starts it", "sessions-tui daemon start")
        }
        Daemon::Running { version, pid, same_protocol } if *version != facts.version || !same_protocol => wrong(
            "daemon",
            format!("pid {pid} is of version {version}, this program of {}", facts.version),
            "sessions-tui daemon restart (no session ends)",
        ),
        Daemon::Running { pid, version, .. } => fine("daemon", format!("running, pid {pid}, version {version}")),
        Daemon::Silent(pid) => {
            let (who, kill) = match pid {
                Some(pid) => (format!("one is there (pid {pid})"), format!("kill -9 {pid}")),
                None => ("one is there".to_owned(), "kill -9".to_owned()),
            };
            wrong(
                "daemon",
                format!("{who} but does not answer: it is stopped, stuck, or starting"),
                format!("sessions-tui daemon logs; if it stays so, `{kill}` (no session ends) and `sessions-tui daemon start`"),
            )
        }
        Daemon::Elsewhere(where_to) => wrong("daemon", where_to.clone(), "leave --socket and SESSIONS_SOCKET away, or name that one"),
        Daemon::Other(what) => wrong("daemon", what.clone(), "end whatever listens there, or name another socket with --socket"),
    }
}

fn socket(facts: &Facts) -> Finding {
    match facts.socket {
        Socket::Listening => fine("socket", "somebody listens"),
        Socket::Absent => note("socket", "there is none while no daemon runs", None),
        Socket::Stale => wrong("socket", "its file is there but nobody listens: a daemon was killed", "sessions-tui daemon start"),
        Socket::OtherFile => wrong("socket", "another file is in its place", "sessions-tui daemon start (it is replaced)"),
    }
}

fn path(path: &Path) -> Finding {
    match path {
        Path::Usual => fine("path", "short enough for sockets"),
        Path::Elsewhere(folder) => note("path", format!("the usual folder's name is too long for sockets: they are in {folder}"), None),
        Path::TooLong(socket, length) => wrong(
            "path",
            format!("{socket} has {length} bytes: systems take about 100"),
            "name a shorter one with --socket or SESSIONS_SOCKET",
        ),
    }
}

fn permissions(places: &[Place]) -> Vec<Finding> {
    let mut found: Vec<Finding> = places.iter().filter_map(place).collect();
    if found.is_empty() {
        found.push(fine("permissions", "nobody else can read or write what is ours"));
    }
    found
}

fn place(place: &Place) -> Option<Finding> {
    let Place { path, mode, is_ours, is_folder, guard, is_read_only } = place;
    let private = if *is_folder { "700" } else { "600" };
    if !is_ours {
        return Some(wrong("permissions", format!("{path} belongs to another user"), format!("sudo chown -R \"$USER\" '{path}'")));
    }
    if *guard == Guard::Writing {
        let says = || format!("{path} can be changed by others (mode {:o}), who then decide what is run", mode & 0o777);
        return (mode & 0o022 != 0).then(|| wrong("permissions", says(), format!("chmod go-w '{path}'")));
    }
    if mode & 0o077 != 0 {
        return Some(wrong(
            "permissions",
            format!("{path} is open to others (mode {:o})", mode & 0o777),
            format!("chmod {private} '{path}'"),
        ));
    }
    is_read_only.then(|| wrong("permissions", format!("{path} cannot be written to"), format!("chmod {private} '{path}'")))
}

fn database(database: &Database) -> Finding {
    match database {
        Database::Absent => note("database", "there is none yet", None),
        Database::Sound { damaged, .. } if !damaged.is_empty() => wrong(
            "database",
            format!(
                "some rows were damaged and were repaired: {}",
                damaged.iter().map(|row| shared::text::visible(row)).collect::<Vec<_>>().join("; ")
            ),
            "check the disk; the values as they were found are in damaged-rows.jsonl in the state directory; `sessions-tui rm NAME` removes a session",
        ),
        Database::Sound { version, known, runtimes, .. } if version < known => note(
            "database",
            format!("sound, of version {version}: the daemon brings it to {known} and keeps a copy; {}", count(runtimes.len(), "runtime")),
            None,
        ),
        Database::Sound { version, runtimes, .. } => {
            fine("database", format!("sound, version {version}, {}", count(runtimes.len(), "runtime")))
        }
        Database::Newer { found, known } => wrong(
            "database",
            format!("it is of version {found}, this program knows {known}; it was not touched"),
            "install the newer sessions-tui again",
        ),
        Database::Damaged(why) => wrong(
            "database",
            format!("it is damaged: {why}"),
            "sessions-tui daemon restart: what can be read is recovered into a new file, live sessions and recordings are kept",
        ),
        Database::Unreadable(why) => {
            wrong("database", format!("it cannot be read: {why}"), "see `permissions`, and whether the disk is sound")
        }
    }
}

/// Recordings that lack a part.
fn gaps(database: &Database) -> Option<Finding> {
    let Database::Sound { gaps, .. } = database else { return None };
    if gaps.is_empty() {
        return None;
    }
    let more = if gaps.len() > MOST_NAMES { ", …" } else { "" };
    let named: Vec<String> =
        gaps.iter().take(MOST_NAMES).map(|(name, bytes)| format!("{} ({bytes} bytes)", shared::text::visible(name))).collect();
    Some(wrong(
        "recordings",
        format!("parts of recordings are missing or damaged: {}{more}", named.join(", ")),
        "check the disk; restore the recordings directory from a backup; `sessions-tui show NAME` lists what is missing",
    ))
}

/// Below this many files that can still be made, recordings are about to be suspended: each segment needs some.
const FEW_FILES: u64 = 1000;

fn disk(free: Option<u64>, files: Option<u64>) -> Finding {
    if let Some(files) = files.filter(|files| *files < FEW_FILES) {
        return wrong(
            "disk",
            format!("only {files} more files can be made (inodes): recordings are suspended when none is left, programs continue"),
            "sessions-tui cleanup --older-than 7; `df -i` shows the file system",
        );
    }
    match free {
        None => note("disk", "how much is free cannot be told", None),
        Some(free) if free < LITTLE_DISK => wrong(
            "disk",
            format!("{} MiB are free: recordings are suspended when nothing is left, programs go on", free >> 20),
            "sessions-tui stats --disk; sessions-tui cleanup --older-than 7",
        ),
        Some(free) => fine("disk", format!("{} GiB free", free >> 30)),
    }
}

fn interpreter(language: &str, found: &Result<String, Missing>) -> Finding {
    match found {
        Ok(path) => fine("interpreter", format!("{language}: {path}")),
        Err(Missing::Named(path)) => wrong(
            "interpreter",
            format!("{language}: {path} of config.toml is no program"),
            format!("[runtime] {language} = \"/full/path\""),
        ),
        // the language that exec takes when none is named
        Err(Missing::NotOnPath) if language == "bash" => {
            wrong("interpreter", "bash: not on PATH, `exec` cannot work", "install bash, or name it: [runtime] bash = \"/full/path\"")
        }
        Err(Missing::NotOnPath) => note(
            "interpreter",
            format!("{language}: not on PATH, `exec -l {language}` is refused"),
            Some("install it, or name it in config.toml, [runtime]"),
        ),
    }
}

fn shell(shell: &Shell) -> Finding {
    match shell {
        Shell::Found(path) => fine("shell", path.clone()),
        Shell::Unset => note("shell", "SHELL is not set: `new` starts /bin/sh", Some("export SHELL=/bin/bash")),
        Shell::NoProgram(path) => wrong("shell", format!("SHELL is {path}, which is no program: `new` fails"), "export SHELL=/bin/bash"),
    }
}

fn locale(locale: Option<&(String, String)>) -> Finding {
    let without = "programs print ? for everything beyond ASCII";
    match locale {
        None => wrong("locale", format!("none is set: {without}"), "export LANG=C.UTF-8"),
        Some((_, value)) if ["utf-8", "utf8"].iter().any(|mark| value.to_lowercase().contains(mark)) => fine("locale", value),
        Some((variable, value)) => {
            wrong("locale", format!("{variable}={value} is not UTF-8: {without}"), format!("export {variable}=C.UTF-8"))
        }
    }
}

fn terminal(terminal: &Terminal) -> Finding {
    match terminal {
        Terminal::None => note("terminal", "this is none: attach and the dashboard need one", None),
        Terminal::Is { term, .. } if term.as_deref().is_none_or(|term| matches!(term, "" | "dumb" | "unknown")) => wrong(
            "terminal",
            format!("TERM is {}: it cannot move its cursor", term.as_deref().filter(|term| !term.is_empty()).unwrap_or("not set")),
            "export TERM=xterm-256color",
        ),
        Terminal::Is { columns, rows, .. } if *columns < 40 || *rows < 10 => {
            note("terminal", format!("{columns}×{rows} is small: the dashboard shows the list alone"), None)
        }
        Terminal::Is { term, columns, rows } => fine("terminal", format!("{}, {columns}×{rows}", term.as_deref().unwrap_or_default())),
    }
}

fn nested(facts: &Facts) -> Finding {
    match (&facts.inside, &facts.tmux) {
        (Some(session), _) => note(
            "nested",
            format!(
                "this is inside session {session}: attaching from here shows a session in a session, and ctrl-b is heard by the outer one"
            ),
            Some("ctrl-b d first; or ctrl-b ctrl-b for the inner one"),
        ),
        (None, Some(theirs)) if !theirs.is_empty() && !theirs.eq_ignore_ascii_case(&facts.prefix) => {
            fine("nested", format!("inside tmux, whose prefix is {theirs}: ours is {}", facts.prefix))
        }
        (None, Some(_)) => note(
            "nested",
            format!("this is inside tmux, which takes {} for itself", facts.prefix),
            Some("type ctrl-b ctrl-b d to detach, or set [keys] prefix = \"ctrl-a\" in config.toml"),
        ),
        (None, None) => fine("nested", "neither inside a session nor inside tmux"),
    }
}

fn service(facts: &Facts) -> Finding {
    match &facts.service {
        None => note("service", "not installed: after a login the daemon waits for the first command", Some("sessions-tui daemon install")),
        Some(service) if !service.is_current => wrong("service", service.words.clone(), "sessions-tui daemon install"),
        Some(service) => fine("service", service.words.clone()),
    }
}

fn linger(facts: &Facts) -> Option<Finding> {
    let says = "off: with your last logout systemd ends everything of yours, sessions included";
    match facts.lingers? {
        true => Some(fine("linger", "on: sessions outlive a logout")),
        // whoever installed a service expects it to stay
        false if facts.service.as_ref().is_some_and(|service| service.is_systemd) => Some(wrong("linger", says, "loginctl enable-linger")),
        false => facts.has_user_manager.then(|| note("linger", says, Some("loginctl enable-linger"))),
    }
}

fn watches(watches: u64) -> Finding {
    if watches < FEW_WATCHES {
        let says = format!("{watches} folders may be watched (fs.inotify.max_user_watches): too few for large workspaces");
        return wrong("inotify", says, "sudo sysctl fs.inotify.max_user_watches=524288");
    }
    fine("inotify", format!("{watches} folders may be watched"))
}

fn holders(facts: &Facts) -> Vec<Finding> {
    let known = match &facts.database {
        Database::Sound { runtimes, .. } => Some(runtimes),
        Database::Absent if !facts.holders.is_empty() => None,
        _ if facts.holders.is_empty() => return vec![fine("holders", "there are none")],
        _ => return vec![note("holders", format!("{} are there; the database cannot say whose", facts.holders.len()), None)],
    };
    let is_known = |holder: &Holder| known.is_some_and(|known| known.iter().any(|(id, _)| id.replace('-', "") == holder.runtime));
    let mut found = Vec::new();
    for holder in &facts.holders {
        if !holder.has_socket {
            let says = format!("pid {} has lost its socket: its program goes on, but nobody can reach it any more", holder.pid);
            found.push(wrong("holders", says, format!("kill {} ends it with its program", holder.pid)));
        } else if !is_known(holder) {
            let says = format!("pid {} holds a program that no session knows", holder.pid);
            found.push(wrong("holders", says, "sessions-tui daemon restart (it becomes a session)"));
        }
    }
    for (name, why) in &facts.unreachable {
        let says = format!("session {name}: {why}");
        found.push(wrong("holders", says, "it is used again as soon as it answers; `sessions-tui daemon logs` says more"));
    }
    if found.is_empty() {
        found.push(fine("holders", format!("{}, all known", facts.holders.len())));
    }
    found
}

/// Names that are said; the list has the others.
const MOST_NAMES: usize = 5;

fn restorable(names: &[String]) -> Option<Finding> {
    if names.is_empty() {
        return None;
    }
    let more = if names.len() > MOST_NAMES { ", …" } else { "" };
    let named = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let says = format!("{} lost and can be started again: {named}{more}", count_were(names.len()));
    Some(note("restore", says, Some("sessions-tui restore")))
}

fn count_were(sessions: usize) -> String {
    format!("{} {}", count(sessions, "session"), if sessions == 1 { "was" } else { "were" })
}

fn clock(clock: Clock) -> Finding {
    let Clock { ahead, suspended } = clock;
    if (-CLOCK_SLACK_SECONDS..=suspended + CLOCK_SLACK_SECONDS).contains(&ahead) {
        return fine("clock", "steady");
    }
    let (by, where_to) = if ahead < 0 { (-ahead, "back") } else { (ahead - suspended, "forward") };
    note(
        "clock",
        format!(
            "it was set {where_to} by about {by} s since the machine was started: nothing expires by that, but times in lists and replays jump"
        ),
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which all is well.
    fn healthy() -> Facts {
        let id = "01a1e427-07d0-7244-bda9-cb777c2d6ba2";
        Facts {
            daemon: Daemon::Running { pid: 7, version: "1.0.0".into(), same_protocol: true },
            version: "1.0.0".into(),
            socket: Socket::Listening,
            path: Path::Usual,
            places: vec![Place {
                path: "/x/state".into(),
                mode: 0o40700,
                is_ours: true,
                is_folder: true,
                guard: Guard::Anything,
                is_read_only: false,
            }],
            config: Vec::new(),
            database: Database::Sound {
                version: 6,
                known: 6,
                runtimes: vec![(id.into(), true)],
                clock: None,
                gaps: Vec::new(),
                damaged: Vec::new(),
            },
            disk_free: Some(50 << 30),
            files_free: Some(1 << 20),
            interpreters: vec![("bash".into(), Ok("/bin/bash".into()))],
            shell: Shell::Found("/bin/zsh".into()),
            locale: Some(("LANG".into(), "en_GB.utf8".into())),
            terminal: Terminal::Is { term: Some("xterm-256color".into()), columns: 80, rows: 24 },
            inside: None,
            tmux: None,
            prefix: "C-b".into(),
            service: Some(Service { words: "systemd user unit".into(), is_current: true, is_systemd: true }),
            lingers: Some(true),
            has_user_manager: true,
            watches: Some(65_536),
            holders: vec![Holder { pid: 8, runtime: id.replace('-', ""), has_socket: true }],
            clock: Some(Clock { ahead: 3, suspended: 0 }),
            restorable: Vec::new(),
            unreachable: Vec::new(),
        }
    }

    #[test]
    fn a_healthy_machine_has_nothing_but_ticks() {
        for finding in check(&healthy()) {
            assert_eq!((finding.verdict, finding.mend.as_ref()), (Verdict::Fine, None), "{finding:?}");
        }
    }

    #[test]
    fn each_thing_that_breaks_is_one_finding() {
        type Break = fn(&mut Facts);
        let cases: &[(&str, Verdict, &str, Break)] = &[
            ("daemon", Verdict::Note, "daemon start", |f| f.daemon = Daemon::Never),
            ("daemon", Verdict::Wrong, "daemon start", |f| f.daemon = Daemon::NotRunning),
            ("daemon", Verdict::Wrong, "daemon restart", |f| {
                f.daemon = Daemon::Running { pid: 7, version: "0.9.0".into(), same_protocol: true };
            }),
            ("daemon", Verdict::Wrong, "daemon restart", |f| {
                f.daemon = Daemon::Running { pid: 7, version: "1.0.0".into(), same_protocol: false };
            }),
            ("daemon", Verdict::Wrong, "daemon logs", |f| f.daemon = Daemon::Silent(None)),
            ("daemon", Verdict::Wrong, "kill -9 7", |f| f.daemon = Daemon::Silent(Some(7))),
            ("daemon", Verdict::Wrong, "leave --socket", |f| f.daemon = Daemon::Elsewhere("nobody listens at /x".into())),
            ("daemon", Verdict::Wrong, "--socket", |f| f.daemon = Daemon::Other("a web server listens there".into())),
            ("socket", Verdict::Wrong, "daemon start", |f| f.socket = Socket::Stale),
            ("socket", Verdict::Wrong, "daemon start", |f| f.socket = Socket::OtherFile),
            ("path", Verdict::Note, "", |f| f.path = Path::Elsewhere("/tmp/x".into())),
            ("path", Verdict::Wrong, "--socket", |f| f.path = Path::TooLong("/long".into(), 200)),
            ("permissions", Verdict::Wrong, "chmod 700 '/x/state'", |f| f.places[0].mode = 0o40755),
            ("permissions", Verdict::Wrong, "chmod go-w '/x/state'", |f| {
                f.places[0].guard = Guard::Writing;
                f.places[0].mode = 0o40775;
            }),
            ("permissions", Verdict::Wrong, "chown", |f| f.places[0].is_ours = false),
            ("permissions", Verdict::Wrong, "chmod 700", |f| f.places[0].is_read_only = true),
            ("config", Verdict::Wrong, "counts at once", |f| f.config = vec!["line 3".into()]),
            ("database", Verdict::Wrong, "recovered into a new file", |f| f.database = Database::Damaged("page 3".into())),
            ("database", Verdict::Wrong, "newer", |f| f.database = Database::Newer { found: 9, known: 6 }),
            ("database", Verdict::Wrong, "permissions", |f| f.database = Database::Unreadable("no".into())),
            ("disk", Verdict::Wrong, "cleanup", |f| f.disk_free = Some(1 << 20)),
            ("interpreter", Verdict::Wrong, "[runtime] bash", |f| f.interpreters[0].1 = Err(Missing::NotOnPath)),
            ("interpreter", Verdict::Note, "[runtime]", |f| f.interpreters[0] = ("node".into(), Err(Missing::NotOnPath))),
            ("interpreter", Verdict::Wrong, "[runtime] node", |f| f.interpreters[0] = ("node".into(), Err(Missing::Named("/x".into())))),
            ("shell", Verdict::Wrong, "SHELL", |f| f.shell = Shell::NoProgram("/x".into())),
            ("shell", Verdict::Note, "SHELL", |f| f.shell = Shell::Unset),
            ("locale", Verdict::Wrong, "export LC_ALL=C.UTF-8", |f| f.locale = Some(("LC_ALL".into(), "C".into()))),
            ("locale", Verdict::Wrong, "UTF-8", |f| f.locale = None),
            ("terminal", Verdict::Note, "", |f| f.terminal = Terminal::None),
            ("terminal", Verdict::Wrong, "TERM", |f| f.terminal = Terminal::Is { term: Some("dumb".into()), columns: 80, rows: 24 }),
            ("terminal", Verdict::Note, "", |f| f.terminal = Terminal::Is { term: Some("xterm".into()), columns: 20, rows: 5 }),
            ("nested", Verdict::Note, "ctrl-b d", |f| f.inside = Some("api".into())),
            ("nested", Verdict::Note, "prefix", |f| f.tmux = Some("C-b".into())),
            ("service", Verdict::Note, "daemon install", |f| f.service = None),
            ("service", Verdict::Wrong, "daemon install", |f| {
                f.service = Some(Service { words: "x".into(), is_current: false, is_systemd: false });
            }),
            ("linger", Verdict::Wrong, "enable-linger", |f| f.lingers = Some(false)),
            ("inotify", Verdict::Wrong, "sysctl", |f| f.watches = Some(128)),
            ("holders", Verdict::Wrong, "kill 8", |f| f.holders[0].has_socket = false),
            ("holders", Verdict::Wrong, "daemon restart", |f| f.holders[0].runtime = "0".repeat(32)),
            ("disk", Verdict::Wrong, "df -i", |f| f.files_free = Some(3)),
            ("restore", Verdict::Note, "sessions-tui restore", |f| f.restorable = vec!["api".into()]),
            ("clock", Verdict::Note, "", |f| f.clock = Some(Clock { ahead: -3600, suspended: 0 })),
            ("clock", Verdict::Note, "", |f| f.clock = Some(Clock { ahead: 3600, suspended: 1000 })),
        ];
        for (name, verdict, mend, change) in cases {
            let mut facts = healthy();
            change(&mut facts);
            // what the database cannot tell is not a second fault
            let found: Vec<Finding> = check(&facts)
                .into_iter()
                .filter(|f| f.verdict != Verdict::Fine && (f.check == *name || f.verdict == Verdict::Wrong))
                .collect();
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!((found[0].check, found[0].verdict), (*name, *verdict), "{found:?}");
            assert!(found[0].mend.clone().unwrap_or_default().contains(mend), "{found:?}");
            assert!(found[0].verdict != Verdict::Wrong || found[0].mend.is_some(), "what is wrong can be mended: {found:?}");
        }
    }

    #[test]
    fn a_suspended_machine_has_no_jump() {
        assert_eq!(clock(Clock { ahead: 5000, suspended: 4990 }).verdict, Verdict::Fine);
        assert_eq!(clock(Clock { ahead: 0, suspended: 4990 }).verdict, Verdict::Fine);
    }
}
