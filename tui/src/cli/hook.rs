//! Hooks of agents: what they call, and setting them up. Called as a hook it never disturbs whoever calls it: no output, no failure,
//! no waiting.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::agent::{Hook, Install, KnownAgent};
use shared::attention::Explanation;
use shared::id::{RuntimeId, SessionId};
use shared::message::{Code, Failure, Request};
use shared::paths::Paths;
use shared::text::visible;

use super::{print, print_json, table};
use crate::connect;
use crate::hooks::{self, Change};

pub const HELP: &str = "\
Agents call `sessions-tui hook AGENT EVENT` (or leave EVENT to the JSON on standard input, or in the last argument); it says nothing
and always succeeds. Outside of a session it does nothing. `explain NAME` shows what came of it.

Examples:
  sessions-tui hook install claude-code     says what would change in its settings, asks, and keeps the old ones
  sessions-tui hook install codex --show    prints the change line by line
  sessions-tui hook status
  sessions-tui hook uninstall claude-code   exactly back
  sessions-tui hook mine waiting_answer     in a session, from a script of yours; agents/mine.toml says what it means";

/// A payload that is larger says no more than its beginning, and no hook sends one.
const MAX_PAYLOAD: u64 = 1 << 20;

/// Whoever calls a hook waits for it.
const STDIN_PATIENCE: Duration = Duration::from_secs(1);
const DAEMON_PATIENCE: Duration = Duration::from_millis(300);

#[derive(Subcommand)]
pub enum HookCommand {
    /// Set up an agent's hooks: says what would change and asks first
    #[command(after_help = "Example:\n  sessions-tui hook install claude-code")]
    Install {
        /// claude-code, codex, gemini, …
        agent: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// Print the change line by line
        #[arg(long)]
        show: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Take an agent's hooks away again
    #[command(after_help = "Example:\n  sessions-tui hook uninstall claude-code")]
    Uninstall {
        /// claude-code, codex, gemini, …
        agent: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// Print the change line by line
        #[arg(long)]
        show: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Which agents are known, and whose hooks are set up
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    #[command(external_subcommand)]
    Called(Vec<String>),
}

pub async fn perform(paths: &Paths, command: HookCommand) -> Result<(), Failure> {
    match command {
        HookCommand::Called(words) => {
            called(paths, words).await;
            Ok(())
        }
        HookCommand::Install { agent, yes, show, json } => set_up(paths, &agent, Wish::Install, Talk { yes, show, json }).await,
        HookCommand::Uninstall { agent, yes, show, json } => set_up(paths, &agent, Wish::Uninstall, Talk { yes, show, json }).await,
        HookCommand::Status { json } => status(paths, json).await,
    }
}

/// A hook was called. Whatever goes wrong is nobody's business here.
async fn called(paths: &Paths, words: Vec<String>) {
    let session = std::env::var("SESSIONS_SESSION").ok().and_then(|id| SessionId::parse(&id));
    let runtime = std::env::var("SESSIONS_RUNTIME").ok().and_then(|id| RuntimeId::parse(&id));
    if session.is_none() && runtime.is_none() {
        return;
    }
    let mut words = words.into_iter();
    let Some(agent) = words.next() else { return };
    let mut rest: Vec<String> = words.collect();
    let given = rest.pop_if(|last| last.starts_with('{'));
    let event = rest.into_iter().find(|word| !word.starts_with('-'));
    let text = match given {
        Some(text) => text,
        None => from_stdin().unwrap_or_default(),
    };
    let payload = serde_json::from_str(&text).unwrap_or(Value::Null);
    if event.is_none() && payload.is_null() {
        return;
    }
    let hook = Hook { agent, event, runtime, session, payload: needed(payload), at: jiff::Timestamp::now() };
    let told = tokio::time::timeout(DAEMON_PATIENCE, async {
        let mut client = connect::running(paths).await.ok().flatten()?;
        // a refusal is an answer too: it would be the same the next time
        match client.call::<()>(Request::Hook(hook.clone())).await {
            Err(failure) if failure.code == Code::Version => None,
            _ => Some(()),
        }
    });
    if !matches!(told.await, Ok(Some(()))) {
        let _ = spool(paths, &hook);
    }
}

/// What a daemon looks at: not the prompt, not what tools printed.
fn needed(payload: Value) -> Value {
    let Value::Object(mut fields) = payload else { return Value::Null };
    for name in ["prompt", "tool_response", "input-messages", "messages", "content"] {
        fields.remove(name);
    }
    Value::Object(fields)
}

/// On a thread of its own: whoever leaves standard input open must not keep us.
fn from_stdin() -> Option<String> {
    if std::io::stdin().is_terminal() {
        return None;
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = std::io::stdin().lock().take(MAX_PAYLOAD).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    let bytes = receiver.recv_timeout(STDIN_PATIENCE).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// For the next daemon, whole or not at all.
fn spool(paths: &Paths, hook: &Hook) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let folder = paths.hooks();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    // in the order of their times
    let name = format!("{:020}-{}", hook.at.as_microsecond(), std::process::id());
    let draft = folder.join(format!("{name}.new"));
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(hook)?)?;
    std::fs::rename(draft, folder.join(format!("{name}.json")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Install,
    Uninstall,
}

/// What a file was before its hooks were set up, so that it can be that again.
#[derive(Serialize, Deserialize)]
struct Before {
    file: PathBuf,
    /// Nothing: there was none.
    text: Option<String>,
    /// As we left it: whoever has changed it since keeps that.
    left: String,
}

#[derive(Serialize)]
struct Done<'a> {
    agent: &'a str,
    file: &'a Path,
    changed: bool,
    installed: bool,
}

/// What is said and asked while hooks are set up.
#[derive(Clone, Copy)]
struct Talk {
    yes: bool,
    show: bool,
    json: bool,
}

/// The change in one line: `8 hooks will be added to ~/.claude/settings.json; --show prints the change`.
fn summary(change: &Change, file: &str, show: bool) -> String {
    let hooks = |number: usize| shared::text::count(number, "hook");
    let words = match (change.added, change.removed) {
        (0, removed) => format!("{} will be removed from {file}", hooks(removed)),
        (added, 0) => format!("{} will be added to {file}", hooks(added)),
        (added, removed) => format!("{} will be added to {file} in the place of {removed}", hooks(added)),
    };
    if show { format!("{words}\n") } else { format!("{words}; --show prints the change\n") }
}

async fn set_up(paths: &Paths, name: &str, wish: Wish, talk: Talk) -> Result<(), Failure> {
    let Talk { yes, show, json } = talk;
    let agent = known(paths, name).await?;
    let (file, install) = place(&agent)?;
    let before = read(&file)?;
    let kept = paths.state.join("hooks-before").join(format!("{}.json", agent.name));
    let remembered: Option<Before> = std::fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let sentence = |why: String| Failure::failed(format!("{}: {why}; nothing was changed", file.display()));
    let change = match wish {
        Wish::Install => hooks::install(before.as_deref(), &install, &command(&agent.name)),
        Wish::Uninstall => match remembered.as_ref().filter(|was| was.file == file && before.as_deref() == Some(&was.left)) {
            // untouched since: what was there is there again, to the byte
            Some(was) => hooks::uninstall(before.as_deref()).map(|change| Change { after: was.text.clone(), ..change }),
            None => hooks::uninstall(before.as_deref()),
        },
    }
    .map_err(sentence)?;
    let done = |changed| Done { agent: &agent.name, file: &file, changed, installed: wish == Wish::Install };
    if change.after == before {
        let words = match wish {
            Wish::Install => "already set up",
            Wish::Uninstall => "not set up",
        };
        return if json { print_json(&done(false)) } else { print(&format!("{} is {words} in {}\n", agent.title, super::shown(&file))) };
    }
    if !json {
        print(&summary(&change, &super::shown(&file), show))?;
        if show {
            print(&hooks::difference(before.as_deref().unwrap_or(""), change.after.as_deref().unwrap_or("")))?;
        }
    }
    if !yes {
        ask()?;
    }
    if wish == Wish::Install {
        // what was there before the first time: a second one must not take our own for it
        let first = remembered.filter(|was| was.file == file && before.as_deref() == Some(&was.left)).map_or(before, |was| was.text);
        let was = Before { file: file.clone(), text: first, left: change.after.clone().unwrap_or_default() };
        write(&kept, &serde_json::to_string(&was).map_err(|error| Failure::failed(error.to_string()))?)?;
    }
    match &change.after {
        Some(text) => write(&file, text)?,
        None => std::fs::remove_file(&file).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?,
    }
    if wish == Wish::Uninstall {
        let _ = std::fs::remove_file(&kept);
    }
    if json {
        return print_json(&done(true));
    }
    match wish {
        Wish::Install => {
            print(&format!("{} now tells sessions-tui what it does; what was there is kept in {}\n", agent.title, super::shown(&kept)))
        }
        Wish::Uninstall => print(&format!("{} no longer calls sessions-tui\n", agent.title)),
    }
}

async fn known(paths: &Paths, name: &str) -> Result<KnownAgent, Failure> {
    let agents: Vec<KnownAgent> = connect::call(paths, Request::Agents).await?;
    let names: Vec<&str> = agents.iter().filter(|agent| agent.install.is_some()).map(|agent| agent.name.as_str()).collect();
    let unknown = || Failure::usage(format!("no agent is called {:?}: {}", visible(name), names.join(", ")));
    agents.iter().find(|agent| agent.name == name || agent.aliases.iter().any(|alias| alias == name)).cloned().ok_or_else(unknown)
}

/// The file an agent's hooks are in, as its own environment says.
fn place(agent: &KnownAgent) -> Result<(PathBuf, Install), Failure> {
    let none = || Failure::usage(format!("{} has no hooks that can be set up: what it says by itself is used", agent.title));
    let install = agent.install.clone().ok_or_else(none)?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = install.folder_variable.as_deref().and_then(variable);
    let file = match (folder, install.file.strip_prefix("~/")) {
        (Some(folder), _) => folder.join(Path::new(&install.file).file_name().unwrap_or_default()),
        (None, Some(rest)) => variable("HOME").ok_or_else(|| Failure::failed("HOME is not set"))?.join(rest),
        (None, None) => PathBuf::from(&install.file),
    };
    Ok((followed(file), install))
}

/// Where a path leads: a link stays one, and what it leads to is changed, also if that is not there yet.
fn followed(file: PathBuf) -> PathBuf {
    if let Ok(path) = std::fs::canonicalize(&file) {
        return path;
    }
    match std::fs::read_link(&file) {
        Ok(target) => file.parent().unwrap_or(Path::new("/")).join(target),
        Err(_) => file,
    }
}

fn read(file: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read(file) {
        Ok(bytes) => {
            let text =
                String::from_utf8(bytes).map_err(|_| Failure::failed(format!("{} is not text; nothing was changed", file.display())))?;
            Ok(Some(text))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::failed(format!("{}: {error}; nothing was changed", file.display()))),
    }
}

/// In the place of what is there, with the mode, owner and group it had; whole or not at all. A file that has other names, or whose
/// owner cannot be kept, is written in place: the text it had is kept elsewhere.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let work = || {
        let folder = file.parent().unwrap_or(Path::new("/"));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let there = std::fs::metadata(file).ok();
        if there.as_ref().is_none_or(|meta| meta.nlink() == 1) {
            let draft = file.with_extension(format!("sessions-{}", std::process::id()));
            let replaced = write_draft(&draft, text, there.as_ref()).and_then(|()| std::fs::rename(&draft, file));
            if replaced.is_ok() || there.is_none() {
                return replaced;
            }
            let _ = std::fs::remove_file(&draft);
        }
        let mut open = std::fs::File::options().write(true).truncate(true).open(file)?;
        open.write_all(text.as_bytes())?;
        open.sync_all()
    };
    work().map_err(|error: std::io::Error| Failure::failed(format!("{}: {error}; nothing was changed", file.display())))
}

fn write_draft(draft: &Path, text: &str, like: Option<&std::fs::Metadata>) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    let mut open = std::fs::File::options().write(true).create_new(true).mode(0o600).open(draft)?;
    if let Some(like) = like {
        let own = open.metadata()?;
        if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
            std::os::unix::fs::fchown(&open, Some(like.uid()), Some(like.gid()))?;
        }
        open.set_permissions(std::fs::Permissions::from_mode(like.permissions().mode() & 0o7777))?;
    }
    open.write_all(text.as_bytes())?;
    open.sync_all()
}

/// What the agent is to call: by its whole path, since nobody knows what is on the agent's PATH. Where a link there leads to us the link
/// is named, which an upgrade keeps.
fn command(agent: &str) -> String {
    let own = std::env::current_exe().ok().and_then(|path| std::fs::canonicalize(path).ok());
    let is_own = |file: &PathBuf| own.is_some() && std::fs::canonicalize(file).ok() == own;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let linked = std::env::split_paths(&path).map(|folder| folder.join("sessions-tui")).find(is_own);
    let program = linked.or_else(|| own.clone()).map_or_else(|| "sessions-tui".to_owned(), |path| path.display().to_string());
    let is_plain = program.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '+' | '@'));
    let program = if is_plain { program } else { format!("'{}'", program.replace('\'', "'\\''")) };
    format!("{program} hook {agent}")
}

fn ask() -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("not a terminal: pass --yes"));
    }
    eprint!("Write this? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Failure::failed(error.to_string()))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::failed("nothing was changed")) }
}

#[derive(Serialize)]
struct Standing {
    agent: String,
    title: String,
    /// Where its hooks would be; nothing if it has none.
    file: Option<PathBuf>,
    installed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

async fn status(paths: &Paths, json: bool) -> Result<(), Failure> {
    let agents: Vec<KnownAgent> = connect::call(paths, Request::Agents).await?;
    let standing = agents.iter().map(|agent| {
        let (file, text) = match place(agent) {
            Ok((file, _)) => (Some(file.clone()), read(&file)),
            Err(_) => (None, Ok(None)),
        };
        let installed = text.map_err(|failure| failure.message).and_then(|text| hooks::is_installed(text.as_deref()));
        let (installed, problem) = installed.map_or_else(|why| (false, Some(why)), |installed| (installed, None));
        Standing { agent: agent.name.clone(), title: agent.title.clone(), file, installed, problem }
    });
    let standing: Vec<Standing> = standing.collect();
    if json {
        return print_json(&standing);
    }
    let line = |standing: &Standing| {
        let (mark, words) = match (&standing.file, &standing.problem) {
            (None, _) => ('·', "has no hooks to set up".to_owned()),
            (Some(file), Some(why)) => ('!', format!("{}: {}", super::shown(file), visible(why))),
            (Some(file), None) if standing.installed => ('✓', super::shown(file)),
            (Some(_), None) => ('○', format!("`sessions-tui hook install {}`", standing.agent)),
        };
        format!("{mark} {:12} {words}\n", standing.agent)
    };
    print(&standing.iter().map(line).collect::<String>())
}

pub async fn explain(paths: &Paths, name: String, json: bool) -> Result<(), Failure> {
    let found: Explanation = connect::call(paths, Request::Explain { name }).await?;
    if json { print_json(&found) } else { print(&explained(&found, jiff::Timestamp::now())) }
}

fn explained(found: &Explanation, now: jiff::Timestamp) -> String {
    let since = found.since.map(|since| format!(", for {}", table::ago(since, now))).unwrap_or_default();
    let mut out = format!("{}: {}{since}: {}\n", visible(&found.name), found.state, visible(&found.why));
    if let Some(agent) = &found.agent {
        out += &table::field("agent", agent);
    }
    if found.evidence.is_empty() {
        out += &table::field("evidence", "none: it has said nothing of itself");
    }
    for clue in &found.evidence {
        let mark = match (&clue.ignored, clue.decides) {
            (Some(_), _) => '×',
            (None, true) => '▸',
            (None, false) => ' ',
        };
        let ignored = clue.ignored.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let ago = table::ago(clue.at, now);
        let (source, state, text) = (&clue.source, clue.state.as_str(), visible(&clue.text));
        let line = format!("{mark} {:>3}  {source:13} {state:17} {ago:>5} ago  {text}{}\n", clue.weight, visible(&ignored));
        out.push_str(&line);
    }
    for change in &found.would_change {
        out += &table::field("would change", change);
    }
    out
}
